// SPDX-License-Identifier: Apache-2.0
#include "fake_driver.h"

/*
 * Green contexts. As on a GPU of compute capability 9: partitions are multiples of 8 SMs. As with
 * driver 580: what a split has made or left is not split again, and a context is made of groups of
 * one split.
 */

#define SM_STEP 8u

struct CUdevResourceDesc_st {
	unsigned int sms;
	bool has[SMS_MAX];
};

/* In the bytes of a resource that belong to the driver. */
struct origin {
	unsigned int split,
		first; /* split: 0: none, the whole GPU; first: number of its first SM */
};

static struct origin origin_of(const CUdevResource *resource)
{
	struct origin origin;

	memcpy(&origin, resource->padding, sizeof(origin));
	return origin;
}

static void set_part(CUdevResource *part, struct origin origin, unsigned int sms)
{
	memset(part, 0, sizeof(*part));
	part->type = sms > 0 ? CU_DEV_RESOURCE_TYPE_SM : CU_DEV_RESOURCE_TYPE_INVALID;
	part->sm.smCount = sms;
	memcpy(part->padding, &origin, sizeof(origin));
}

CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource *out, CUdevResourceType type)
{
	ENTER(cuDeviceGetDevResource, false)
	if (device < 0 || device >= fake.device_count || type != CU_DEV_RESOURCE_TYPE_SM)
		LEAVE(CUDA_ERROR_INVALID_VALUE);
	set_part(out, (struct origin){0, 0}, (unsigned int)number("FAKE_CUDA_SMS", 132));
	if (out->sm.smCount > SMS_MAX)
		abort();
	LEAVE(CUDA_SUCCESS);
}

CUresult cuDevSmResourceSplitByCount(CUdevResource *groups, unsigned int *count,
				     const CUdevResource *from, CUdevResource *rest,
				     unsigned int flags, unsigned int sms)
{
	const unsigned int each = (sms + SM_STEP - 1) / SM_STEP * SM_STEP;
	static unsigned int splits;
	unsigned int made;

	ENTER(cuDevSmResourceSplitByCount, false)
	if (from->type != CU_DEV_RESOURCE_TYPE_SM || flags != 0 || sms == 0 ||
	    sms > from->sm.smCount)
		LEAVE(CUDA_ERROR_INVALID_VALUE);
	if (origin_of(from).split != 0)
		LEAVE(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
	made = from->sm.smCount / each;
	if (groups != NULL && made > *count)
		made = *count;
	*count = made;
	splits++;
	for (unsigned int i = 0; groups != NULL && i < made; i++)
		set_part(&groups[i], (struct origin){splits, i * each}, each);
	if (rest != NULL)
		set_part(rest, (struct origin){splits, made * each},
			 from->sm.smCount - made * each);
	LEAVE(CUDA_SUCCESS);
}

CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *out, CUdevResource *resources,
				   unsigned int count)
{
	static __thread struct CUdevResourceDesc_st what;

	ENTER(cuDevResourceGenerateDesc, false)
	memset(&what, 0, sizeof(what));
	if (count == 0)
		LEAVE(CUDA_ERROR_INVALID_VALUE);
	for (unsigned int i = 0; i < count; i++) {
		if (resources[i].type != CU_DEV_RESOURCE_TYPE_SM)
			LEAVE(CUDA_ERROR_INVALID_VALUE);
		if (origin_of(&resources[i]).split != origin_of(resources).split)
			LEAVE(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
		what.sms += resources[i].sm.smCount;
		memset(what.has + origin_of(&resources[i]).first, true, resources[i].sm.smCount);
	}
	*out = &what;
	LEAVE(CUDA_SUCCESS);
}

/* The real driver allows it; nothing here means it. */
static void refuse_overlap(const struct CUdevResourceDesc_st *what)
{
	for (const struct CUgreenCtx_st *other = fake.greens; other != NULL; other = other->next)
		for (unsigned int sm = 0; sm < SMS_MAX && !other->destroyed; sm++)
			if (what->has[sm] && other->has[sm]) {
				fprintf(stderr, "fake_cuda: two green contexts have SM %u\n", sm);
				abort();
			}
}

CUresult cuGreenCtxCreate(CUgreenCtx *out, CUdevResourceDesc what, CUdevice device,
			  unsigned int flags)
{
	struct CUgreenCtx_st *green;

	ENTER(cuGreenCtxCreate, false)
	if (device < 0 || device >= fake.device_count || flags != CU_GREEN_CTX_DEFAULT_STREAM)
		LEAVE(CUDA_ERROR_INVALID_VALUE);
	green = calloc(1, sizeof(*green));
	if (green == NULL)
		abort();
	refuse_overlap(what);
	green->sms = what->sms;
	memcpy(green->has, what->has, sizeof(green->has));
	green->next = fake.greens;
	fake.greens = green;
	*out = green;
	LEAVE(CUDA_SUCCESS);
}

static bool is_green(const struct CUgreenCtx_st *green)
{
	for (const struct CUgreenCtx_st *known = fake.greens; known != NULL; known = known->next)
		if (known == green)
			return !known->destroyed;
	return false;
}

CUresult cuGreenCtxDestroy(CUgreenCtx green)
{
	ENTER(cuGreenCtxDestroy, false)
	if (!is_green(green))
		LEAVE(CUDA_ERROR_INVALID_HANDLE);
	for (const struct CUstream_st *stream = fake.streams; stream != NULL; stream = stream->next)
		if (stream->green == green) {
			fprintf(stderr, "fake_cuda: a green context went before its streams\n");
			abort();
		}
	green->destroyed = true;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuGreenCtxStreamCreate(CUstream *out, CUgreenCtx green, unsigned int flags, int priority)
{
	ENTER(cuGreenCtxStreamCreate, false)
	if (flags != CU_STREAM_NON_BLOCKING)
		LEAVE(CUDA_ERROR_INVALID_VALUE);
	if (!is_green(green))
		LEAVE(CUDA_ERROR_INVALID_HANDLE);
	*out = stream_make(green);
	LEAVE(CUDA_SUCCESS);
}

unsigned int fake_cuda_sms(void *stream)
{
	const struct CUstream_st *made = stream;

	return made->green != NULL ? made->green->sms : 0;
}
