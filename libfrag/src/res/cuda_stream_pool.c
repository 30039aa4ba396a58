// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <inttypes.h>

#include <base/alloc.h>
#include <base/failure.h>
#include <base/lock.h>
#include <res/green_context.h>
#include <type/cuda.h>

/* CUDA's streams of one GPU, which operators take and give back. */
#define STREAMS_MAX 4096

struct stream_pool {
	/* parameters */
	int64_t dev_id, flags, priority, reserved_size, max_size;
	struct frag_resource *cuda_green_context; /* NULL: the primary context */
	const char *nvtx_identifier;
	const struct fragi_cuda_ops *cuda; /* from initialize on */
	struct fragi_lock lock;            /* of what follows */
	void **streams;                    /* all; the first idle_count are not in use */
	uint32_t count, idle_count, capacity;
};

static const struct frag_param params[] = {
	{.name = "dev_id",
	 .kind = FRAG_PARAM_KIND_I64,
	 .offset = FRAG_PARAM_OFFSET(struct stream_pool, dev_id, int64_t),
	 .max = INT32_MAX,
	 .headline = "Number of the GPU"},
	{.name = "stream_flags",
	 .kind = FRAG_PARAM_KIND_I64,
	 .offset = FRAG_PARAM_OFFSET(struct stream_pool, flags, int64_t),
	 .max = 1,
	 .headline = "0: they wait for the default stream and it for them, 1: they do not"},
	{.name = "stream_priority",
	 .kind = FRAG_PARAM_KIND_I64,
	 .offset = FRAG_PARAM_OFFSET(struct stream_pool, priority, int64_t),
	 .min = -100,
	 .max = 100,
	 .headline = "Lower numbers go first; CUDA limits them to what the GPU has"},
	FRAG_PARAM_I64(struct stream_pool, reserved_size, 1, .max = STREAMS_MAX,
		       .headline = "Streams that are made at the start"),
	FRAG_PARAM_I64(struct stream_pool, max_size, 0, .max = UINT32_MAX,
		       .headline = "Streams at most; 0: no limit"),
	FRAG_PARAM_RESOURCE(struct stream_pool, cuda_green_context, NULL,
			    .flags = FRAG_PARAM_OPTIONAL,
			    .headline = "The green context that they are made in"),
	FRAG_PARAM_STRING(struct stream_pool, nvtx_identifier, "defaultStreamPool",
			  .headline = "Accepted, because Holoscan has it; without effect"),
};

static int setup(void *state, struct frag_resource *resource, struct frag_err *err)
{
	const struct stream_pool *pool = state;
	int64_t dev_id;

	(void)resource;
	if (pool->cuda_green_context != NULL &&
	    !fragi_is_green_context(pool->cuda_green_context, &dev_id))
		return frag_err_set(err, -EINVAL, "resource \"%s\" is no cuda_green_context",
				    pool->cuda_green_context->name);
	if (pool->cuda_green_context != NULL && dev_id != pool->dev_id)
		return frag_err_set(err, -EINVAL,
				    "dev_id is %" PRId64 " and resource \"%s\" is of GPU %" PRId64
				    "; give both the same",
				    pool->dev_id, pool->cuda_green_context->name, dev_id);
	if (pool->max_size > 0 && pool->reserved_size > pool->max_size)
		return frag_err_set(err, -EINVAL,
				    "reserved_size is %" PRId64 " and max_size is %" PRId64
				    "; give a maximum that is not below it",
				    pool->reserved_size, pool->max_size);
	return 0;
}

/* With the lock. Makes a stream, which is in use. */
static int make_stream(struct stream_pool *pool, void **out_stream, struct frag_err *err)
{
	uint32_t limit = pool->max_size > 0 ? (uint32_t)pool->max_size : UINT32_MAX, capacity;
	void **streams;
	int r;

	if (pool->count >= limit)
		return -EBUSY;
	if (pool->count == pool->capacity) {
		capacity = pool->capacity > 0 ? 2 * pool->capacity : 8;
		streams = fragi_realloc(pool->streams, capacity * sizeof(*streams));
		if (streams == NULL)
			return frag_err_set(err, -ENOMEM, "out of memory");
		pool->streams = streams;
		pool->capacity = capacity;
	}
	r = pool->cuda->stream_create((int32_t)pool->dev_id,
				      pool->cuda_green_context != NULL
					      ? fragi_green_context(pool->cuda_green_context)
					      : NULL,
				      (uint32_t)pool->flags, (int)pool->priority, out_stream, err);
	if (r == 0)
		pool->streams[pool->count++] = *out_stream;
	return r;
}

static int initialize(void *state, struct frag_resource *resource, struct frag_err *err)
{
	struct stream_pool *pool = state;
	const struct frag_device gpu = {FRAG_DEVICE_CUDA, (int32_t)pool->dev_id};
	struct frag_err why = FRAG_ERR_INIT;
	void *stream;
	int r = 0;

	(void)resource;
	if (fragi_cuda_use(gpu, &pool->cuda, &why) < 0)
		return fragi_err_fail(
			err, FRAGI_FAILURE_GPU_MISSING, NULL, -ENODEV,
			"it needs GPU %d, and %s; run the fragment on a worker with a GPU (requirements: {gpu: 1})",
			(int)gpu.id, why.text);
	for (int64_t i = 0; i < pool->reserved_size && r == 0; i++)
		r = make_stream(pool, &stream, err);
	pool->idle_count = pool->count;
	return r;
}

static void fini(void *state)
{
	struct stream_pool *pool = state;

	for (uint32_t i = 0; i < pool->count; i++)
		pool->cuda->stream_destroy((int32_t)pool->dev_id, pool->streams[i]);
	fragi_free(pool->streams);
}

const struct fragi_built_in_resource fragi_cuda_stream_pool = {
	.type = {FRAG_RESOURCE_TYPE_INIT, .name = "cuda_stream_pool",
		 .headline = "Streams of CUDA, for operators that use a GPU", FRAG_PARAMS(params),
		 .state_size = sizeof(struct stream_pool), .setup = setup, .initialize = initialize,
		 .fini = fini},
};

static struct stream_pool *pool_of(const struct frag_resource *resource)
{
	return resource != NULL && resource->built_in == &fragi_cuda_stream_pool
		       ? fragi_resource_state(resource)
		       : NULL;
}

bool fragi_is_stream_pool(const struct frag_resource *resource, struct frag_device *out_gpu)
{
	const struct stream_pool *pool = pool_of(resource);

	if (pool != NULL)
		*out_gpu = (struct frag_device){FRAG_DEVICE_CUDA, (int32_t)pool->dev_id};
	return pool != NULL;
}

int frag_cuda_stream_take(struct frag_resource *resource, void **out_stream)
{
	struct stream_pool *pool = pool_of(resource);
	int r = 0;

	if (pool == NULL)
		return -EINVAL;
	if (pool->cuda == NULL)
		return -ENODEV;
	fragi_lock_take(&pool->lock);
	if (pool->idle_count > 0)
		*out_stream = pool->streams[--pool->idle_count];
	else
		r = make_stream(pool, out_stream, NULL);
	fragi_lock_leave(&pool->lock);
	return r;
}

void frag_cuda_stream_give(struct frag_resource *resource, void *stream)
{
	struct stream_pool *pool = pool_of(resource);
	uint32_t i;

	if (pool == NULL || stream == NULL)
		return;
	fragi_lock_take(&pool->lock);
	for (i = pool->idle_count; i < pool->count && pool->streams[i] != stream; i++)
		;
	if (i < pool->count) {
		pool->streams[i] = pool->streams[pool->idle_count];
		pool->streams[pool->idle_count++] = stream;
	}
	fragi_lock_leave(&pool->lock);
}
