// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#define LOG_TOPIC "cuda"
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

/*
 * Takes `count` partitions of the same size from `rest`, which is what is left then.
 * - all: SMs of the GPU
 */
static int split(const struct cuda_device *gpu, unsigned int all, unsigned int sms,
		 unsigned int count, CUdevResource *out, CUdevResource *rest, struct frag_err *err)
{
	CUdevResource from = *rest;
	unsigned int groups = count;
	int r = 0;

	if (from.type == CU_DEV_RESOURCE_TYPE_SM && sms <= from.sm.smCount)
		r = cuda_check(cu.cuDevSmResourceSplitByCount(out, &groups, &from, rest, 0, sms),
			       err, "GPU %d (%s): cuDevSmResourceSplitByCount", (int)gpu->id,
			       gpu->name);
	else
		groups = 0;
	if (r == 0 && groups < count)
		r = frag_err_set(
			err, -EINVAL,
			"GPU %d (%s) has %u SMs, not enough for all partitions: %u of %u SMs fit where %u are asked for; the driver rounds partitions up, so ask for fewer or smaller ones",
			(int)gpu->id, gpu->name, all, groups, sms, count);
	return r;
}

static int divide(const struct cuda_device *gpu, const int64_t *sms, uint32_t count,
		  CUdevResource *out, struct frag_err *err)
{
	CUdevResource rest;
	unsigned int all, share;
	uint32_t same;
	int r = cuda_check(cu.cuDeviceGetDevResource(gpu->device, &rest, CU_DEV_RESOURCE_TYPE_SM),
			   err, "GPU %d (%s): cuDeviceGetDevResource", (int)gpu->id, gpu->name);

	if (r < 0)
		return r;
	all = rest.sm.smCount;
	if (sms == NULL && count == 1) {
		out[0] = rest;
		return 0;
	}
	share = sms == NULL ? equal_share(&rest, count) : 0;
	if (sms == NULL && share == 0)
		return frag_err_set(err, -EINVAL,
				    "GPU %d (%s) has %u SMs, not enough for %u partitions",
				    (int)gpu->id, gpu->name, all, (unsigned int)count);
	if (sms == NULL)
		return split(gpu, all, share, count, out, &rest, err);
	/* What is left is worse to divide: partitions of one size are made at once. */
	for (uint32_t i = 0; i < count && r == 0; i += same) {
		for (same = 1; i + same < count && sms[i + same] == sms[i]; same++)
			;
		r = split(gpu, all, (unsigned int)sms[i], same, out + i, &rest, err);
	}
	return r;
}

static int make_context(const struct cuda_device *gpu, CUdevResource *part, void **out,
			struct frag_err *err)
{
	CUdevResourceDesc what;
	CUgreenCtx context;
	int r = cuda_check(cu.cuDevResourceGenerateDesc(&what, part, 1), err,
			   "GPU %d (%s): cuDevResourceGenerateDesc", (int)gpu->id, gpu->name);

	if (r == 0)
		r = cuda_check(cu.cuGreenCtxCreate(&context, what, gpu->device,
						   CU_GREEN_CTX_DEFAULT_STREAM),
			       err, "GPU %d (%s): cuGreenCtxCreate", (int)gpu->id, gpu->name);
	if (r == 0)
		*out = context;
	return r;
}

int cuda_green_create(int32_t id, const int64_t *sms, uint32_t count, void **out_contexts,
		      uint32_t *out_sms, struct frag_err *err)
{
	const struct cuda_device *gpu = cuda_device_of(id);
	CUdevResource parts[FRAGI_GREEN_CONTEXTS_MAX];
	uint32_t made = 0;
	int r;

	if (gpu == NULL)
		return frag_err_set(err, -ENODEV, "nothing has opened GPU %d", (int)id);
	if (count == 0 || count > FRAGI_GREEN_CONTEXTS_MAX)
		return frag_err_set(err, -EINVAL, "%u green contexts; give 1 to %d",
				    (unsigned int)count, FRAGI_GREEN_CONTEXTS_MAX);
	r = check_driver(gpu, err);
	if (r == 0)
		r = divide(gpu, sms, count, parts, err);
	for (; r == 0 && made < count; made += r == 0) {
		r = make_context(gpu, &parts[made], &out_contexts[made], err);
		out_sms[made] = parts[made].sm.smCount;
	}
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
