// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#define LOG_TOPIC "gpu"
#include <base/alloc.h>
#include <base/log.h>
#include <data/allocator.h>
#include <data/memory.h>
#include <data/staging.h>
#include <data/tensor.h>

/* Other libraries read these structs: they have the layout of DLPack's on 64-bit machines. */
_Static_assert(sizeof(struct frag_device) == 8, "DLDevice");
_Static_assert(offsetof(struct frag_device, id) == 4, "DLDevice.device_id");
_Static_assert(sizeof(struct frag_dtype) == 4, "DLDataType");
_Static_assert(offsetof(struct frag_dtype, bits) == 1, "DLDataType.bits");
_Static_assert(offsetof(struct frag_dtype, lanes) == 2, "DLDataType.lanes");
_Static_assert(sizeof(struct frag_dltensor) == 48, "DLTensor");
_Static_assert(offsetof(struct frag_dltensor, data) == 0, "DLTensor.data");
_Static_assert(offsetof(struct frag_dltensor, device) == 8, "DLTensor.device");
_Static_assert(offsetof(struct frag_dltensor, ndim) == 16, "DLTensor.ndim");
_Static_assert(offsetof(struct frag_dltensor, dtype) == 20, "DLTensor.dtype");
_Static_assert(offsetof(struct frag_dltensor, shape) == 24, "DLTensor.shape");
_Static_assert(offsetof(struct frag_dltensor, strides) == 32, "DLTensor.strides");
_Static_assert(offsetof(struct frag_dltensor, byte_offset) == 40, "DLTensor.byte_offset");

#define POISON_FROM sizeof(struct fragi_pooled)

size_t fragi_dtype_size(struct frag_dtype dtype)
{
	uint8_t least, most;

	switch (dtype.code) {
	case FRAG_DTYPE_INT:
	case FRAG_DTYPE_UINT:
		least = 8;
		most = 64;
		break;
	case FRAG_DTYPE_FLOAT:
		least = 16;
		most = 64;
		break;
	case FRAG_DTYPE_BFLOAT:
		least = most = 16;
		break;
	case FRAG_DTYPE_COMPLEX:
		least = 64;
		most = 128;
		break;
	case FRAG_DTYPE_BOOL:
		least = most = 8;
		break;
	default:
		return 0;
	}
	if (dtype.bits < least || dtype.bits > most || (dtype.bits & (dtype.bits - 1)) != 0)
		return 0;
	return (size_t)dtype.bits / 8 * dtype.lanes;
}

/*
 * Copies shape and strides (NULL: compact) and computes the sizes. Returns 0, -EINVAL or
 * -EOVERFLOW.
 */
static int tensor_set_layout(struct frag_tensor *tensor, struct frag_dtype dtype, int32_t ndim,
			     const int64_t *shape, const int64_t *strides)
{
	size_t element = fragi_dtype_size(dtype), count = 1, span = 0, extent;
	int64_t compact_stride = 1;
	bool empty = false;

	if (element == 0 || ndim < 0 || ndim > FRAG_TENSOR_NDIM_MAX || (ndim > 0 && shape == NULL))
		return -EINVAL;
	tensor->compact = true;
	for (int32_t i = 0; i < ndim; i++) {
		if (shape[i] < 0 || (strides != NULL && strides[i] < 0))
			return -EINVAL;
		empty = empty || shape[i] == 0;
	}
	for (int32_t i = ndim - 1; i >= 0; i--) {
		tensor->shape[i] = shape[i];
		tensor->strides[i] = strides != NULL ? strides[i] : compact_stride;
		if (shape[i] != 1 && tensor->strides[i] != compact_stride)
			tensor->compact = false;
		if (empty)
			continue;
		if (__builtin_mul_overflow(count, (size_t)shape[i], &count) ||
		    __builtin_mul_overflow((size_t)(shape[i] - 1), (size_t)tensor->strides[i],
					   &extent) ||
		    __builtin_add_overflow(span, extent, &span) ||
		    __builtin_mul_overflow(compact_stride, shape[i], &compact_stride))
			return -EOVERFLOW;
	}
	if (empty) {
		count = 0;
		tensor->compact = true;
	} else if (__builtin_add_overflow(span, (size_t)1, &span)) {
		return -EOVERFLOW;
	}
	if (__builtin_mul_overflow(count, element, &tensor->compact_bytes) ||
	    __builtin_mul_overflow(span, element, &tensor->size_bytes) ||
	    tensor->compact_bytes > PTRDIFF_MAX || tensor->size_bytes > PTRDIFF_MAX)
		return -EOVERFLOW;
	tensor->sends_data = tensor->compact;
	tensor->dl.ndim = ndim;
	tensor->dl.dtype = dtype;
	tensor->dl.shape = tensor->shape;
	tensor->dl.strides = tensor->strides;
	return 0;
}

static struct frag_tensor *tensor_new(void)
{
	struct frag_tensor *tensor = fragi_pool_take(FRAGI_POOL_TENSOR);

	if (tensor == NULL)
		return NULL;
	fragi_pool_unpoison((char *)tensor + POISON_FROM, sizeof(*tensor) - POISON_FROM);
	atomic_store_explicit(&tensor->refs, 1, memory_order_relaxed);
	atomic_store_explicit(&tensor->frozen, false, memory_order_relaxed);
	atomic_store_explicit(&tensor->copy, NULL, memory_order_relaxed);
	tensor->foreign = false;
	tensor->was_on_gpu = false;
	tensor->allocator = NULL;
	tensor->memory = NULL;
	tensor->release = NULL;
	tensor->context = NULL;
	tensor->written = NULL;
	return tensor;
}

static void tensor_drop(struct frag_tensor *tensor)
{
	/* With 0 references, one unref too many does not return it to the pool twice. */
	atomic_store_explicit(&tensor->refs, 0, memory_order_relaxed);
	fragi_pool_poison((char *)tensor + POISON_FROM, sizeof(*tensor) - POISON_FROM);
	fragi_pool_give(FRAGI_POOL_TENSOR, &tensor->home);
}

int frag_tensor_create(struct frag_resource *allocator, struct frag_dtype dtype, int32_t ndim,
		       const int64_t *shape, struct frag_tensor **out)
{
	struct frag_tensor *tensor;
	int r = dtype.lanes == 1 ? fragi_tensor_describe(dtype, ndim, shape, &tensor) : -EINVAL;

	if (r < 0)
		return r;
	r = fragi_tensor_allocate(tensor, allocator);
	if (r < 0)
		frag_tensor_unref(tensor);
	else
		*out = tensor;
	return r;
}

int fragi_tensor_measure(struct frag_dtype dtype, int32_t ndim, const int64_t *shape,
			 size_t *out_bytes)
{
	struct frag_tensor tensor;
	int r = tensor_set_layout(&tensor, dtype, ndim, shape, NULL);

	if (r == 0)
		*out_bytes = tensor.compact_bytes;
	return r;
}

int fragi_tensor_describe(struct frag_dtype dtype, int32_t ndim, const int64_t *shape,
			  struct frag_tensor **out)
{
	struct frag_tensor *tensor = tensor_new();
	int r;

	if (tensor == NULL)
		return -ENOMEM;
	r = tensor_set_layout(tensor, dtype, ndim, shape, NULL);
	if (r < 0) {
		tensor_drop(tensor);
		return r;
	}
	tensor->dl.data = NULL;
	tensor->dl.device = (struct frag_device){FRAG_DEVICE_CPU, 0};
	tensor->dl.byte_offset = 0;
	*out = tensor;
	return 0;
}

int fragi_tensor_describe_as(const struct frag_tensor *like, struct frag_tensor **out)
{
	struct frag_tensor *tensor = tensor_new();

	if (tensor == NULL)
		return -ENOMEM;
	tensor->compact = tensor->sends_data = true;
	tensor->dl = (struct frag_dltensor){
		.device = {FRAG_DEVICE_CPU, 0},
		.ndim = like->dl.ndim,
		.dtype = like->dl.dtype,
		.shape = tensor->shape,
		.strides = tensor->strides,
	};
	tensor->size_bytes = tensor->compact_bytes = like->compact_bytes;
	memcpy(tensor->shape, like->shape, sizeof(tensor->shape));
	memcpy(tensor->strides, like->strides, sizeof(tensor->strides));
	*out = tensor;
	return 0;
}

int fragi_tensor_allocate(struct frag_tensor *tensor, struct frag_resource *allocator)
{
	int r = 0;

	if (allocator == NULL)
		allocator = fragi_default_memory();
	if (tensor->size_bytes > 0)
		r = frag_alloc(allocator, tensor->size_bytes, &tensor->memory);
	if (r < 0)
		return r;
	if (allocator != NULL) {
		tensor->allocator = fragi_resource_ref(allocator);
		tensor->dl.device = fragi_allocator_device(allocator);
	}
	tensor->dl.data = tensor->memory;
	return 0;
}

/* The memory of a tensor on a device other than the one of which its allocator gives by itself. */
static void release_of_device(void *context)
{
	struct frag_tensor *tensor = context;

	fragi_free_on(tensor->allocator, tensor->dl.device, tensor->dl.data);
}

/* dtype: with any lanes, since tensors that user code made may have several. */
static int create_on(struct frag_resource *allocator, struct frag_device device,
		     struct frag_dtype dtype, int32_t ndim, const int64_t *shape,
		     struct frag_tensor **out)
{
	struct frag_tensor *tensor;
	void *memory = NULL;
	int r = fragi_tensor_describe(dtype, ndim, shape, &tensor);

	if (r < 0)
		return r;
	if (fragi_device_is_host(device) &&
	    (allocator != NULL ? fragi_device_is(fragi_allocator_device(allocator), device)
			       : device.type == FRAG_DEVICE_CPU)) {
		r = fragi_tensor_allocate(tensor, allocator);
		if (r < 0)
			frag_tensor_unref(tensor);
		else
			*out = tensor;
		return r;
	}
	/* An empty tensor has no memory, and the device is looked for all the same. */
	r = fragi_alloc_on(allocator, device, tensor->size_bytes, &memory);
	if (r < 0) {
		frag_tensor_unref(tensor);
		return r;
	}
	tensor->allocator = allocator != NULL ? fragi_resource_ref(allocator) : NULL;
	fragi_tensor_place(tensor, memory, device, release_of_device, tensor);
	tensor->sends_data = fragi_device_is_host(device);
	*out = tensor;
	return 0;
}

int frag_tensor_create_on(struct frag_resource *allocator, struct frag_device device,
			  struct frag_dtype dtype, int32_t ndim, const int64_t *shape,
			  struct frag_tensor **out)
{
	return dtype.lanes == 1 ? create_on(allocator, device, dtype, ndim, shape, out) : -EINVAL;
}

/* A tensor of the same elements in other memory, which is not written yet. */
static int create_for_copy(const struct frag_tensor *tensor, struct frag_resource *allocator,
			   struct frag_device device, struct frag_tensor **out,
			   struct frag_err *err)
{
	int r = create_on(allocator, device, tensor->dl.dtype, tensor->dl.ndim, tensor->shape, out);

	if (r < 0)
		return frag_err_set(err, r, "there is no memory of the device for %zu bytes: %s",
				    tensor->compact_bytes, frag_strerror(r));
	return 0;
}

int frag_tensor_copy(const struct frag_tensor *tensor, struct frag_resource *allocator,
		     struct frag_device device, struct frag_tensor **out, struct frag_err *err)
{
	struct frag_tensor *copy;
	int r = create_for_copy(tensor, allocator, device, &copy, err);

	if (r < 0)
		return r;
	r = fragi_memory_transfer(tensor, device, copy->dl.data, err);
	if (r < 0)
		frag_tensor_unref(copy);
	else
		*out = copy;
	return r;
}

/* Gives a stream of the GPU the copy of a tensor to memory of another. */
static int begin_copy(const struct frag_tensor *from, struct frag_device gpu,
		      struct fragi_stream **streams, struct frag_tensor *to, struct frag_err *err)
{
	const struct fragi_stream_ops *ops;
	struct fragi_work *work = NULL;
	struct fragi_stream *stream;
	int r = fragi_stream_on(streams, gpu, &stream, err);

	if (r == 0)
		r = fragi_work_follow(from->written, stream->handle, err);
	if (r < 0)
		return r;
	ops = fragi_memory_of(gpu)->streams;
	r = ops->copy(stream, &from->dl, fragi_dtype_size(from->dl.dtype), to->dl.data, err);
	if (r == 0)
		r = ops->record(stream, &work, err);
	if (r < 0)
		(void)ops->finish(stream, NULL);
	else
		fragi_tensor_set_written(to, work);
	return r;
}

int fragi_tensor_begin_copy(const struct frag_tensor *tensor, struct frag_resource *allocator,
			    struct frag_device device, struct fragi_stream **streams,
			    struct frag_tensor **out, struct frag_err *err)
{
	const struct frag_device gpu =
		tensor->dl.device.type == FRAG_DEVICE_CUDA ? tensor->dl.device : device;
	struct frag_tensor *copy;
	int r = create_for_copy(tensor, allocator, device, &copy, err);

	if (r < 0)
		return r;
	if (tensor->compact_bytes > 0)
		r = begin_copy(tensor, gpu, streams, copy, err);
	if (r < 0)
		frag_tensor_unref(copy);
	else
		*out = copy;
	return r;
}

void fragi_tensor_place(struct frag_tensor *tensor, void *data, struct frag_device device,
			void (*release)(void *context), void *context)
{
	tensor->dl.data = data;
	tensor->dl.device = device;
	tensor->release = release;
	tensor->context = context;
}

static void release_small(void *context)
{
	struct fragi_small_body *body = context;

	fragi_pool_poison(body->bytes, sizeof(body->bytes));
	fragi_pool_give(FRAGI_POOL_BODY, &body->home);
}

int fragi_tensor_allocate_small(struct frag_tensor *tensor)
{
	struct fragi_small_body *body = fragi_pool_take(FRAGI_POOL_BODY);

	if (body == NULL)
		return -ENOMEM;
	fragi_pool_unpoison(body->bytes, sizeof(body->bytes));
	fragi_tensor_place(tensor, body->bytes, tensor->dl.device, release_small, body);
	return 0;
}

int frag_tensor_wrap(const struct frag_dltensor *description, void (*release)(void *context),
		     void *context, struct frag_tensor **out)
{
	struct frag_tensor *tensor;

	if (!fragi_device_is_known(description->device))
		return -EINVAL;
	tensor = tensor_new();
	if (tensor == NULL)
		return -ENOMEM;
	if (tensor_set_layout(tensor, description->dtype, description->ndim, description->shape,
			      description->strides) < 0 ||
	    (description->data == NULL && tensor->size_bytes > 0) ||
	    description->byte_offset > PTRDIFF_MAX - tensor->size_bytes) {
		tensor_drop(tensor);
		return -EINVAL;
	}
	fragi_tensor_place(tensor, description->data, description->device, release, context);
	tensor->dl.byte_offset = description->byte_offset;
	tensor->sends_data = tensor->compact && fragi_device_is_host(description->device);
	tensor->foreign = true;
	*out = tensor;
	return 0;
}

struct frag_tensor *frag_tensor_ref(const struct frag_tensor *tensor)
{
	struct frag_tensor *same = (struct frag_tensor *)(uintptr_t)tensor;

	atomic_fetch_add_explicit(&same->refs, 1, memory_order_relaxed);
	return same;
}

/* Nothing refers to the tensor, and no work uses its memory. */
static inline void tensor_free(struct frag_tensor *tensor)
{
	if (tensor->release != NULL)
		tensor->release(tensor->context);
	frag_free(tensor->allocator, tensor->memory);
	fragi_resource_unref(tensor->allocator);
	tensor_drop(tensor);
}

static void free_after_work(void *arg)
{
	struct frag_tensor *tensor = arg;

	frag_tensor_unref(atomic_load_explicit(&tensor->copy, memory_order_relaxed));
	fragi_work_unref(tensor->written);
	tensor_free(tensor);
}

/*
 * What is on a GPU may still be written, or read by the copy that was to leave: that begins behind
 * the work that writes.
 */
static __attribute__((noinline)) void free_used(struct frag_tensor *tensor,
						const struct frag_tensor *copy)
{
	fragi_work_then(copy != NULL && copy->written != NULL ? copy->written : tensor->written,
			free_after_work, tensor);
}

void frag_tensor_unref(struct frag_tensor *tensor)
{
	const struct frag_tensor *copy;

	if (tensor == NULL ||
	    (atomic_load_explicit(&tensor->refs, memory_order_acquire) != 1 &&
	     atomic_fetch_sub_explicit(&tensor->refs, 1, memory_order_acq_rel) != 1))
		return;
	copy = atomic_load_explicit(&tensor->copy, memory_order_relaxed);
	if (__builtin_expect(copy != NULL || tensor->written != NULL, 0))
		free_used(tensor, copy);
	else
		tensor_free(tensor);
}

const struct frag_dltensor *frag_tensor_dl(const struct frag_tensor *tensor)
{
	return &tensor->dl;
}

const void *frag_tensor_data(const struct frag_tensor *tensor)
{
	return tensor->dl.data == NULL ? NULL
				       : (const char *)tensor->dl.data + tensor->dl.byte_offset;
}

void *frag_tensor_writable(struct frag_tensor *tensor)
{
	if (atomic_load_explicit(&tensor->refs, memory_order_acquire) != 1 ||
	    atomic_load_explicit(&tensor->frozen, memory_order_relaxed))
		return NULL;
	return (void *)(uintptr_t)frag_tensor_data(tensor);
}

size_t frag_tensor_size_bytes(const struct frag_tensor *tensor)
{
	return tensor->size_bytes;
}

int frag_tensor_is_compact(const struct frag_tensor *tensor)
{
	return tensor->compact;
}

/*
 * A compact copy in pinned memory of the host, which a GPU copies to without making anybody wait.
 * NULL: memory is short, or the GPU refuses.
 */
static struct frag_tensor *copy_of_gpu(const struct frag_tensor *tensor,
				       struct fragi_stream **streams)
{
	const struct frag_device host = {FRAG_DEVICE_CPU, 0};
	struct frag_resource *memory = fragi_staging();
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_tensor *copy;
	int r = streams != NULL
			? fragi_tensor_begin_copy(tensor, memory, host, streams, &copy, &err)
			: frag_tensor_copy(tensor, memory, host, &copy, &err);

	if (r == 0)
		return copy;
	log_error(NULL, "a tensor of %zu bytes cannot be copied from its GPU: %s",
		  tensor->compact_bytes, err.text);
	return NULL;
}

/* The same of a tensor that the CPU can read. */
static struct frag_tensor *copy_of_host(const struct frag_tensor *tensor)
{
	struct frag_tensor *copy;

	if (fragi_tensor_wait(tensor, NULL) < 0 ||
	    create_on(fragi_default_memory(), (struct frag_device){FRAG_DEVICE_CPU, 0},
		      tensor->dl.dtype, tensor->dl.ndim, tensor->shape, &copy) < 0)
		return NULL;
	(void)fragi_memory_host.pack(&tensor->dl, fragi_dtype_size(tensor->dl.dtype), copy->dl.data,
				     NULL);
	return copy;
}

struct frag_tensor *fragi_tensor_sent(struct frag_tensor *tensor, struct fragi_stream **streams)
{
	struct frag_tensor *copy, *other = NULL;

	if (tensor->sends_data || tensor->compact_bytes == 0)
		return tensor;
	copy = atomic_load_explicit(&tensor->copy, memory_order_acquire);
	if (copy != NULL)
		return copy;
	copy = fragi_device_is_host(tensor->dl.device) ? copy_of_host(tensor)
						       : copy_of_gpu(tensor, streams);
	if (copy == NULL)
		return NULL;
	if (!atomic_compare_exchange_strong_explicit(&tensor->copy, &other, copy,
						     memory_order_acq_rel, memory_order_acquire)) {
		/* The GPU reads the tensor for it, and who sends `other` may free the tensor. */
		(void)fragi_tensor_wait(copy, NULL);
		frag_tensor_unref(copy);
		copy = other;
	}
	return copy;
}

void *fragi_tensor_body(struct frag_tensor *tensor, size_t *out_size)
{
	const struct frag_tensor *sent = fragi_tensor_sent(tensor, NULL);

	*out_size = tensor->compact_bytes;
	return sent == NULL || tensor->compact_bytes == 0 || fragi_tensor_wait(sent, NULL) < 0
		       ? NULL
		       : (void *)(uintptr_t)frag_tensor_data(sent);
}
