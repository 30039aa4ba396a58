// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include <base/alloc.h>
#include <data/allocator.h>
#include <data/memory.h>
#include <data/staging.h>
#include <data/tensor.h>

static int host_alloc(struct frag_device device, size_t size, void **out_memory,
		      struct frag_err *err)
{
	void *memory = fragi_bulk_alloc(size);

	(void)device;
	if (memory == NULL)
		return frag_err_set(err, -ENOMEM, "there are no %zu bytes of memory left", size);
	*out_memory = memory;
	return 0;
}

static void host_free(struct frag_device device, void *memory)
{
	(void)device;
	fragi_free(memory);
}

static int host_copy(struct frag_device device, void *to, const void *from, size_t size,
		     struct frag_err *err)
{
	(void)device;
	(void)err;
	memcpy(to, from, size);
	return 0;
}

/*
 * Copies the elements of a strided tensor, from dimension `dim` on, without gaps. Returns the end
 * of the copy.
 */
static char *copy_compact(const struct frag_dltensor *dl, int32_t dim, size_t element,
			  const char *from, char *to)
{
	size_t step;

	if (dim == dl->ndim) {
		memcpy(to, from, element);
		return to + element;
	}
	step = (size_t)dl->strides[dim] * element;
	if (dim == dl->ndim - 1 && step == element) {
		memcpy(to, from, (size_t)dl->shape[dim] * element);
		return to + (size_t)dl->shape[dim] * element;
	}
	for (int64_t i = 0; i < dl->shape[dim]; i++)
		to = copy_compact(dl, dim + 1, element, from + (size_t)i * step, to);
	return to;
}

static int host_pack(const struct frag_dltensor *from, size_t element_bytes, void *to,
		     struct frag_err *err)
{
	(void)err;
	copy_compact(from, 0, element_bytes, (const char *)from->data + from->byte_offset, to);
	return 0;
}

static int host_wait(struct frag_device device, struct frag_err *err)
{
	(void)device;
	(void)err;
	return 0;
}

const struct fragi_memory fragi_memory_host = {
	.alloc = host_alloc,
	.free = host_free,
	.pool_alloc = host_alloc,
	.pool_free = host_free,
	.copy = host_copy,
	.pack = host_pack,
	.wait = host_wait,
};

static const struct fragi_memory *_Atomic cuda_memory;
static struct frag_device first_gpu = {FRAG_DEVICE_CUDA, 0}; /* written before cuda_memory is set */

const struct fragi_memory *fragi_memory_of(struct frag_device device)
{
	if (device.type == FRAG_DEVICE_CPU)
		return &fragi_memory_host;
	return fragi_device_is_known(device)
		       ? atomic_load_explicit(&cuda_memory, memory_order_acquire)
		       : NULL;
}

void fragi_memory_install(const struct fragi_memory *cuda, struct frag_device gpu)
{
	if (atomic_load_explicit(&cuda_memory, memory_order_relaxed) == NULL) {
		first_gpu.id = gpu.id;
		fragi_staging_install();
	}
	atomic_store_explicit(&cuda_memory, cuda, memory_order_release);
}

bool fragi_memory_gpu(struct frag_device *out_device)
{
	if (atomic_load_explicit(&cuda_memory, memory_order_acquire) == NULL)
		return false;
	*out_device = first_gpu;
	return true;
}

int fragi_stream_on(struct fragi_stream **streams, struct frag_device gpu,
		    struct fragi_stream **out, struct frag_err *err)
{
	const struct fragi_memory *memory = fragi_memory_of(gpu);
	struct fragi_stream *stream = *streams;
	int r;

	if (memory == NULL || memory->streams == NULL)
		return frag_err_set(err, -ENODEV, "nothing has opened GPU %d", (int)gpu.id);
	while (stream != NULL && !fragi_device_is(stream->gpu, gpu))
		stream = stream->next;
	if (stream == NULL) {
		r = memory->streams->open(gpu, NULL, &stream, err);
		if (r < 0)
			return r;
		stream->next = *streams;
		*streams = stream;
	}
	*out = stream;
	return 0;
}

void fragi_streams_settle(struct fragi_stream *streams)
{
	for (; streams != NULL; streams = streams->next)
		(void)fragi_memory_of(streams->gpu)->streams->finish(streams, NULL);
}

void fragi_streams_free(struct fragi_stream *streams)
{
	struct fragi_stream *next;

	fragi_streams_settle(streams);
	for (; streams != NULL; streams = next) {
		next = streams->next;
		fragi_memory_of(streams->gpu)->streams->close(streams);
	}
}

/* Between GPUs. What has gaps is packed on the one that it lies on. */
static int copy_across(const struct frag_tensor *from, struct frag_device device, void *to,
		       const struct fragi_memory *memory, struct frag_err *err)
{
	const struct frag_dltensor *dl = &from->dl;
	const void *bytes = frag_tensor_data(from);
	void *packed = NULL;
	int r = 0;

	if (!from->compact) {
		r = memory->alloc(dl->device, from->compact_bytes, &packed, err);
		if (r == 0)
			r = memory->pack(dl, fragi_dtype_size(dl->dtype), packed, err);
		bytes = packed;
	}
	if (r == 0)
		r = memory->copy_across(dl->device, bytes, device, to, from->compact_bytes, err);
	if (r == 0)
		r = memory->wait(dl->device, err);
	if (packed != NULL)
		memory->free(dl->device, packed);
	return r;
}

int fragi_memory_transfer(const struct frag_tensor *from, struct frag_device device, void *to,
			  struct frag_err *err)
{
	const struct frag_dltensor *dl = &from->dl;
	/* The GPU that has one side copies; of two, that which has the source. */
	const struct frag_device mover = dl->device.type != FRAG_DEVICE_CPU ? dl->device : device;
	const struct fragi_memory *memory = fragi_memory_of(mover);
	void *packed = NULL;
	int r;

	if (memory == NULL || fragi_memory_of(device) == NULL)
		return frag_err_set(err, -ENODEV,
				    "nothing has opened the GPU whose memory this is");
	if (from->compact_bytes == 0)
		return 0;
	r = fragi_tensor_wait(from, err);
	if (r < 0)
		return r;
	if (dl->device.type == FRAG_DEVICE_CUDA && device.type == FRAG_DEVICE_CUDA &&
	    dl->device.id != device.id)
		return copy_across(from, device, to, memory, err);
	if (from->compact) {
		r = memory->copy(mover, to, frag_tensor_data(from), from->compact_bytes, err);
	} else if (dl->device.type != FRAG_DEVICE_CPU || mover.type == FRAG_DEVICE_CPU) {
		r = memory->pack(dl, fragi_dtype_size(dl->dtype), to, err);
	} else {
		r = host_alloc(dl->device, from->compact_bytes, &packed, err);
		if (r == 0)
			r = host_pack(dl, fragi_dtype_size(dl->dtype), packed, err);
		if (r == 0)
			r = memory->copy(mover, to, packed, from->compact_bytes, err);
	}
	if (r == 0)
		r = memory->wait(mover, err);
	fragi_free(packed);
	return r;
}
