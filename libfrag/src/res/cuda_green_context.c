// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <inttypes.h>

#include <base/alloc.h>
#include <base/failure.h>
#include <res/green_context.h>
#include <type/cuda.h>

/* Parts of the SMs of a GPU, and the choice of one of them for a cuda_stream_pool. */
#define SMS_MAX 65536

struct green_pool {
	/* parameters */
	int64_t dev_id, flags, num_partitions, default_context_index, min_sm_size;
	struct frag_i64_list sms_per_partition;
	/* from initialize on */
	const struct fragi_cuda_ops *cuda;
	uint32_t count;
	void *contexts[FRAGI_GREEN_CONTEXTS_MAX];
	uint32_t sms[FRAGI_GREEN_CONTEXTS_MAX];
};

static const struct frag_param pool_params[] = {
	FRAG_PARAM_I64(struct green_pool, dev_id, 0, .max = INT32_MAX,
		       .headline = "Number of the GPU"),
	FRAG_PARAM_I64(struct green_pool, flags, 0, .max = 1,
		       .headline = "Accepted, because Holoscan has it; without effect"),
	FRAG_PARAM_I64(struct green_pool, num_partitions, 1, .max = FRAGI_GREEN_CONTEXTS_MAX,
		       .headline = "Green contexts; 0: one that has all SMs"),
	FRAG_PARAM_I64_LIST(
		struct green_pool, sms_per_partition, "[]",
		.headline = "SMs of each, rounded up by the driver; without: the same for all"),
	FRAG_PARAM_I64(struct green_pool, default_context_index, -1, .min = -1,
		       .max = FRAGI_GREEN_CONTEXTS_MAX - 1,
		       .headline = "The one for cuda_green_context without an index; -1: the last"),
	FRAG_PARAM_I64(struct green_pool, min_sm_size, 2, .min = 1, .max = SMS_MAX,
		       .headline = "SMs of each at least"),
	{.name = "min_sm_count",
	 .kind = FRAG_PARAM_KIND_I64,
	 .offset = FRAG_PARAM_OFFSET(struct green_pool, min_sm_size, int64_t),
	 .def_int = 2,
	 .min = 1,
	 .max = SMS_MAX,
	 .headline = "Another name of min_sm_size"},
};

static uint32_t count_of(const struct green_pool *pool)
{
	return pool->num_partitions > 0 ? (uint32_t)pool->num_partitions : 1;
}

static int pool_setup(void *state, struct frag_resource *resource, struct frag_err *err)
{
	const struct green_pool *pool = state;
	const struct frag_i64_list *sms = &pool->sms_per_partition;

	(void)resource;
	if (sms->count > 0 && sms->count != (size_t)pool->num_partitions)
		return frag_err_set(
			err, -EINVAL,
			"sms_per_partition has %zu numbers and num_partitions is %" PRId64
			"; give a number for each partition, or none",
			sms->count, pool->num_partitions);
	for (size_t i = 0; i < sms->count; i++)
		if (sms->items[i] < pool->min_sm_size || sms->items[i] > SMS_MAX)
			return frag_err_set(err, -EINVAL,
					    "sms_per_partition[%zu] is %" PRId64 "; give %" PRId64
					    " (min_sm_size) to %d",
					    i, sms->items[i], pool->min_sm_size, SMS_MAX);
	if (pool->default_context_index >= (int64_t)count_of(pool))
		return frag_err_set(err, -EINVAL,
				    "default_context_index is %" PRId64
				    "; give 0 to %u, or -1 for the last",
				    pool->default_context_index, count_of(pool) - 1);
	return 0;
}

static int pool_initialize(void *state, struct frag_resource *resource, struct frag_err *err)
{
	struct green_pool *pool = state;
	const struct frag_i64_list *sms = &pool->sms_per_partition;
	const struct frag_device gpu = {FRAG_DEVICE_CUDA, (int32_t)pool->dev_id};
	struct frag_err why = FRAG_ERR_INIT;
	int r;

	(void)resource;
	if (fragi_cuda_use(gpu, &pool->cuda, &why) < 0)
		return fragi_err_fail(
			err, FRAGI_FAILURE_GPU_MISSING, NULL, -ENODEV,
			"it needs GPU %d, and %s; run the fragment on a worker with a GPU (requirements: {gpu: 1})",
			(int)gpu.id, why.text);
	r = pool->cuda->green_create(gpu.id, sms->count > 0 ? sms->items : NULL, count_of(pool),
				     pool->contexts, pool->sms, err);
	if (r < 0)
		return r;
	pool->count = count_of(pool);
	for (uint32_t i = 0; i < pool->count; i++)
		if (pool->sms[i] < pool->min_sm_size)
			return frag_err_set(
				err, -EINVAL,
				"each of %u partitions of GPU %d has %u SMs, and min_sm_size is %" PRId64
				"; make fewer partitions",
				pool->count, (int)gpu.id, pool->sms[i], pool->min_sm_size);
	return 0;
}

static void pool_fini(void *state)
{
	struct green_pool *pool = state;

	while (pool->count > 0)
		pool->cuda->green_destroy((int32_t)pool->dev_id, pool->contexts[--pool->count]);
}

const struct fragi_built_in_resource fragi_cuda_green_context_pool = {
	.type = {FRAG_RESOURCE_TYPE_INIT, .name = "cuda_green_context_pool",
		 .headline = "Divides the SMs of a GPU into green contexts of CUDA",
		 FRAG_PARAMS(pool_params), .state_size = sizeof(struct green_pool),
		 .setup = pool_setup, .initialize = pool_initialize, .fini = pool_fini},
};

struct green_context {
	struct frag_resource *pool;
	int64_t index;
	const char *nvtx_identifier;
};

static const struct frag_param context_params[] = {
	{.name = "cuda_green_context_pool",
	 .kind = FRAG_PARAM_KIND_RESOURCE,
	 .offset = FRAG_PARAM_OFFSET(struct green_context, pool, struct frag_resource *),
	 .flags = FRAG_PARAM_OPTIONAL,
	 .headline = "The pool that it is one of"},
	{.name = "green_context_pool",
	 .kind = FRAG_PARAM_KIND_RESOURCE,
	 .offset = FRAG_PARAM_OFFSET(struct green_context, pool, struct frag_resource *),
	 .flags = FRAG_PARAM_OPTIONAL,
	 .headline = "Another name of cuda_green_context_pool"},
	FRAG_PARAM_I64(struct green_context, index, -1, .min = -1,
		       .max = FRAGI_GREEN_CONTEXTS_MAX - 1,
		       .headline = "Which one, from 0; -1: default_context_index of the pool"),
	FRAG_PARAM_STRING(struct green_context, nvtx_identifier, "defaultGreenContext",
			  .headline = "Accepted, because Holoscan has it; without effect"),
};

static struct green_pool *pool_of(const struct green_context *context)
{
	return context->pool != NULL && context->pool->built_in == &fragi_cuda_green_context_pool
		       ? fragi_resource_state(context->pool)
		       : NULL;
}

static int context_setup(void *state, struct frag_resource *resource, struct frag_err *err)
{
	const struct green_context *context = state;
	const struct green_pool *pool = pool_of(context);

	(void)resource;
	if (context->pool == NULL)
		return frag_err_set(err, -EINVAL,
				    "cuda_green_context_pool is not set; name a pool");
	if (pool == NULL)
		return frag_err_set(err, -EINVAL,
				    "cuda_green_context_pool names no cuda_green_context_pool");
	if (context->index >= (int64_t)count_of(pool))
		return frag_err_set(err, -EINVAL,
				    "index is %" PRId64 " and resource \"%s\" has %u partitions; "
				    "give 0 to %u, or -1 for its default_context_index",
				    context->index, context->pool->name, count_of(pool),
				    count_of(pool) - 1);
	return 0;
}

const struct fragi_built_in_resource fragi_cuda_green_context = {
	.type = {FRAG_RESOURCE_TYPE_INIT, .name = "cuda_green_context",
		 .headline = "A green context of a pool, for a cuda_stream_pool",
		 FRAG_PARAMS(context_params), .state_size = sizeof(struct green_context),
		 .setup = context_setup},
};

bool fragi_is_green_context(const struct frag_resource *resource, int64_t *out_dev_id)
{
	const bool is = resource != NULL && resource->built_in == &fragi_cuda_green_context;

	if (is)
		*out_dev_id = pool_of(fragi_resource_state(resource))->dev_id;
	return is;
}

void *fragi_green_context(const struct frag_resource *resource)
{
	const struct green_context *context = fragi_resource_state(resource);
	const struct green_pool *pool = pool_of(context);
	int64_t index = context->index >= 0 ? context->index : pool->default_context_index;

	return pool->contexts[index >= 0 ? index : (int64_t)pool->count - 1];
}
