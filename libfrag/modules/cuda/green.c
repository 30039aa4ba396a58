// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#define LOG_TOPIC "cuda"
#include <base/alloc.h>
#include <base/log.h>

#include "device.h"
#include "module.h"

static int check_driver(const struct cuda_device *gpu, struct frag_err *err)
{
	const char *missing = NULL;

#define ASK(function, parameters)                                                                  \
	if (cu.function == NULL && missing == NULL)                                                \
		missing = #function;
	FRAGI_CU_GREEN_FUNCTIONS(ASK)
#undef ASK
	if (missing == NULL)
		return 0;
	return frag_err_set(
		err, -ENOTSUP,
		"the driver of GPU %d (%s) has no function %s: green contexts need a driver of NVIDIA for CUDA 12.5 or newer",
		(int)gpu->id, gpu->name, missing);
}

/* The largest number of SMs that each of `count` partitions can have; 0: there are not enough. */
static unsigned int equal_share(const CUdevResource *all, unsigned int count)
{
	unsigned int sms = all->sm.smCount / count, groups;

	/* The driver rounds up, by a step that depends on the GPU. */
	for (; sms > 0; sms--) {
		groups = count;
		if (cu.cuDevSmResourceSplitByCount(NULL, &groups, all, NULL, 0, sms) ==
			    CUDA_SUCCESS &&
		    groups >= count)
			break;
	}
	return sms;
}

/* Makes `count` groups of at least `sms` SMs: the driver makes them all of the same size. */
static int split(const struct cuda_device *gpu, const CUdevResource *all, unsigned int sms,
		 unsigned int count, CUdevResource *out, struct frag_err *err)
{
	unsigned int groups = count;
	int r = 0;

	if (sms <= all->sm.smCount)
		r = cuda_check(cu.cuDevSmResourceSplitByCount(out, &groups, all, NULL, 0, sms), err,
			       "GPU %d (%s): cuDevSmResourceSplitByCount", (int)gpu->id, gpu->name);
	else
		groups = 0;
	if (r == 0 && groups < count)
		r = frag_err_set(
			err, -EINVAL,
			"GPU %d (%s) has %u SMs, not enough for all partitions: %u of %u groups of %u SMs fit; the driver rounds partitions up, so ask for fewer or smaller ones",
			(int)gpu->id, gpu->name, all->sm.smCount, groups, count, sms);
	return r;
}

/* The size of the equal groups that all partitions are made of. */
static int find_unit(const struct cuda_device *gpu, const CUdevResource *all,
		     const unsigned int *sms, uint32_t count, unsigned int *out,
		     struct frag_err *err)
{
	CUdevResource group;
	unsigned int unit = 0, size, rest;
	int r = 0;

	/* The greatest common divisor of the sizes as the driver rounds them. */
	for (uint32_t i = 0; i < count && r == 0; i++) {
		r = split(gpu, all, sms[i], 1, &group, err);
		for (size = r == 0 ? group.sm.smCount : 0; size > 0; size = rest) {
			rest = unit % size;
			unit = size;
		}
	}
	/* The driver may make no groups that are so small. */
	if (r == 0)
		r = split(gpu, all, unit, 1, &group, err);
	if (r == 0)
		*out = group.sm.smCount;
	return r;
}

/* Groups of SMs: those of the first partition, then those of the second, and so on. */
struct division {
	CUdevResource *groups;
	uint32_t counts[FRAGI_GREEN_CONTEXTS_MAX];
};

/*
 * The driver splits nothing that a split has made or left, and makes groups of one size only: so
 * all groups are made at once, and a partition gets one or more of them.
 */
static int divide_by(const struct cuda_device *gpu, const CUdevResource *all,
		     const unsigned int *sms, uint32_t count, struct division *out,
		     struct frag_err *err)
{
	unsigned int unit = 0, total = 0;
	int r = find_unit(gpu, all, sms, count, &unit, err);

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < count; i++) {
		out->counts[i] = (sms[i] + unit - 1) / unit;
		total += out->counts[i];
	}
	out->groups = fragi_calloc(total, sizeof(*out->groups));
	if (out->groups == NULL)
		return frag_err_set(err, -ENOMEM, "out of memory");
	r = split(gpu, all, unit, total, out->groups, err);
	if (r < 0)
		fragi_free(out->groups);
	return r;
}

/* - out: the caller frees its groups */
static int divide(const struct cuda_device *gpu, const int64_t *sms, uint32_t count,
		  struct division *out, struct frag_err *err)
{
	CUdevResource all;
	unsigned int sizes[FRAGI_GREEN_CONTEXTS_MAX], share = 0;
	int r = cuda_check(cu.cuDeviceGetDevResource(gpu->device, &all, CU_DEV_RESOURCE_TYPE_SM),
			   err, "GPU %d (%s): cuDeviceGetDevResource", (int)gpu->id, gpu->name);

	if (r < 0)
		return r;
	if (sms == NULL && count == 1) {
		out->groups = fragi_malloc(sizeof(*out->groups));
		if (out->groups == NULL)
			return frag_err_set(err, -ENOMEM, "out of memory");
		out->groups[0] = all;
		out->counts[0] = 1;
		return 0;
	}
	if (sms == NULL)
		share = equal_share(&all, count);
	if (sms == NULL && share == 0)
		return frag_err_set(err, -EINVAL,
				    "GPU %d (%s) has %u SMs, not enough for %u partitions",
				    (int)gpu->id, gpu->name, all.sm.smCount, (unsigned int)count);
	for (uint32_t i = 0; i < count; i++)
		sizes[i] = sms != NULL ? (unsigned int)sms[i] : share;
	return divide_by(gpu, &all, sizes, count, out, err);
}

static int make_context(const struct cuda_device *gpu, CUdevResource *groups, uint32_t count,
			void **out, uint32_t *out_sms, struct frag_err *err)
{
	CUdevResourceDesc what;
	CUgreenCtx context;
	int r = cuda_check(cu.cuDevResourceGenerateDesc(&what, groups, count), err,
			   "GPU %d (%s): cuDevResourceGenerateDesc", (int)gpu->id, gpu->name);

	if (r == 0)
		r = cuda_check(cu.cuGreenCtxCreate(&context, what, gpu->device,
						   CU_GREEN_CTX_DEFAULT_STREAM),
			       err, "GPU %d (%s): cuGreenCtxCreate", (int)gpu->id, gpu->name);
	if (r == 0) {
		*out = context;
		*out_sms = count * groups->sm.smCount;
	}
	return r;
}

int cuda_green_create(int32_t id, const int64_t *sms, uint32_t count, void **out_contexts,
		      uint32_t *out_sms, struct frag_err *err)
{
	const struct cuda_device *gpu = cuda_device_of(id);
	struct division parts = {.groups = NULL};
	CUdevResource *groups;
	uint32_t made = 0;
	int r;

	if (gpu == NULL)
		return frag_err_set(err, -ENODEV, "nothing has opened GPU %d", (int)id);
	if (count == 0 || count > FRAGI_GREEN_CONTEXTS_MAX)
		return frag_err_set(err, -EINVAL, "%u green contexts; give 1 to %d",
				    (unsigned int)count, FRAGI_GREEN_CONTEXTS_MAX);
	r = check_driver(gpu, err);
	if (r == 0)
		r = divide(gpu, sms, count, &parts, err);
	if (r < 0)
		return r;
	groups = parts.groups;
	for (; r == 0 && made < count; made += r == 0) {
		r = make_context(gpu, groups, parts.counts[made], &out_contexts[made],
				 &out_sms[made], err);
		groups += parts.counts[made];
	}
	fragi_free(parts.groups);
	while (r < 0 && made > 0)
		cuda_green_destroy(id, out_contexts[--made]);
	return r;
}

void cuda_green_destroy(int32_t id, void *context)
{
	struct frag_err err = FRAG_ERR_INIT;

	if (cuda_check(cu.cuGreenCtxDestroy(context), &err, "GPU %d (%s): cuGreenCtxDestroy",
		       (int)id, cuda_device_of(id)->name) < 0)
		log_error(NULL, "a green context was not destroyed: %s", err.text);
}
