// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include <base/alloc.h>
#include <base/failure.h>
#include <data/allocator.h>
#include <frag/cuda.h>
#include <graph/compose.h>
#include <graph/thread_pool.h>
#include <type/cuda.h>

int frag_op_use_device(struct frag_op *op, struct frag_device device)
{
	const struct fragi_cuda_ops *ops;
	struct frag_err why = FRAG_ERR_INIT;

	if (device.type == FRAG_DEVICE_CPU)
		return 0;
	if (!fragi_device_is_known(device))
		return frag_op_fail(op, -EINVAL,
				    "%d is no kind of device; use one of enum frag_device_type",
				    (int)device.type);
	if (fragi_cuda_use(device, &ops, &why) == 0)
		return device.type == FRAG_DEVICE_CUDA ? fragi_thread_pool_use_gpu(op, device.id)
						       : 0;
	return fragi_op_fail_as(
		op, FRAGI_FAILURE_GPU_MISSING, -ENODEV,
		"it needs GPU %d, and %s; run the fragment on a worker with a GPU (requirements: {gpu: 1})",
		(int)device.id, why.text);
}

/* The first cuda_stream_pool that the graph lists for the operator; NULL: none. */
static struct frag_resource *listed_pool(const struct frag_op *op)
{
	struct frag_device gpu;

	for (uint32_t i = 0; i < op->resource_count; i++)
		if (fragi_is_stream_pool(op->resources[i], &gpu))
			return op->resources[i];
	return NULL;
}

/* Takes a stream of the pool, which must be of that GPU. */
static int take_stream(struct frag_op *op, struct frag_resource *pool, struct frag_device gpu,
		       void **out_stream)
{
	struct frag_device of_pool;
	int r;

	if (!fragi_is_stream_pool(pool, &of_pool))
		return frag_op_fail(op, -EINVAL, "resource \"%s\" is no cuda_stream_pool",
				    frag_resource_name(pool));
	if (!fragi_device_is(of_pool, gpu))
		return frag_op_fail(
			op, -EINVAL,
			"it uses GPU %d, and the streams of resource \"%s\" are of GPU %d; set dev_id of the resource to %d",
			(int)gpu.id, frag_resource_name(pool), (int)of_pool.id, (int)gpu.id);
	r = frag_cuda_stream_take(pool, out_stream);
	if (r == -EBUSY)
		return frag_op_fail(op, r,
				    "all streams of resource \"%s\" are in use; raise its max_size",
				    frag_resource_name(pool));
	return r < 0 ? frag_op_fail(op, r, "resource \"%s\" gives no stream: %s",
				    frag_resource_name(pool), frag_strerror(r))
		     : 0;
}

int frag_cuda_stream_gpu(const struct frag_resource *pool, struct frag_device *out_gpu)
{
	return pool != NULL && fragi_is_stream_pool(pool, out_gpu) ? 0 : -EINVAL;
}

int frag_op_use_stream(struct frag_op *op, struct frag_resource *pool, struct frag_device gpu)
{
	struct frag_err why = FRAG_ERR_INIT;
	struct fragi_op_stream *stream;
	void *handle = NULL;
	int r;

	if (gpu.type != FRAG_DEVICE_CUDA)
		return frag_op_fail(op, -EINVAL,
				    "a stream is of a GPU; give a device of type FRAG_DEVICE_CUDA");
	if (op->stream != NULL)
		return frag_op_fail(op, -EBUSY, "it has a stream; call frag_op_use_stream once");
	if (op->exec != NULL)
		return frag_op_fail(op, -EPERM,
				    "it runs already; call frag_op_use_stream in initialize");
	r = frag_op_use_device(op, gpu);
	if (r < 0)
		return r;
	stream = fragi_calloc(1, sizeof(*stream));
	if (stream == NULL)
		return frag_op_fail(op, -ENOMEM, "out of memory");
	stream->ops = fragi_memory_of(gpu)->streams;
	stream->pool = pool != NULL ? pool : listed_pool(op);
	if (stream->pool != NULL)
		r = take_stream(op, stream->pool, gpu, &handle);
	if (r == 0) {
		r = stream->ops->open(gpu, handle, &stream->stream, &why);
		if (r < 0)
			frag_op_fail(op, r, "there is no stream: %s", why.text);
		if (r < 0 && stream->pool != NULL)
			frag_cuda_stream_give(stream->pool, handle);
	}
	if (r < 0)
		fragi_free(stream);
	else
		op->stream = stream;
	return r;
}

int frag_stream_wait(struct frag_device gpu, void *stream, struct frag_err *err)
{
	const struct fragi_cuda_ops *ops;
	int r;

	if (gpu.type != FRAG_DEVICE_CUDA)
		return frag_err_set(err, -EINVAL,
				    "a stream is of a GPU; give a device of type FRAG_DEVICE_CUDA");
	r = fragi_cuda_use(gpu, &ops, err);
	return r < 0 ? r : ops->stream_wait(gpu.id, stream, err);
}

void fragi_op_release_stream(struct frag_op *op)
{
	struct fragi_op_stream *stream = op->stream;
	void *handle;

	if (stream == NULL)
		return;
	handle = stream->stream->handle;
	(void)stream->ops->finish(stream->stream, NULL);
	stream->ops->close(stream->stream);
	if (stream->pool != NULL)
		frag_cuda_stream_give(stream->pool, handle);
	fragi_free(stream->held);
	fragi_free(stream);
	op->stream = NULL;
}
