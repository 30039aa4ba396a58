// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <frag/harness.h>
#include <frag/resource.h>
#include <frag/tensor.h>
#include <base/failure.h>
#include <data/memory.h>
#include <res/resource.h>
#include <type/cuda.h>

#include "cuda_tensors.h"

/*
 * Memory of GPUs over the driver of tests. A device pointer that the CPU touched would end the
 * test.
 */

TestSuite(cuda, .init = load_fake);

GPU_TEST(cuda, nothing_opens_the_driver_unasked)
{
	struct frag_tensor *tensor;
	struct frag_resource *unbounded = NULL;

	cr_assert_eq(make("unbounded_allocator", &unbounded, NULL, NULL, NULL), 0);
	cr_expect_eq(frag_tensor_create_on(NULL, GPU, U8, 1, (const int64_t[]){8}, &tensor),
		     -ENODEV);
	cr_expect_eq(frag_tensor_create_on(unbounded, GPU, U8, 1, (const int64_t[]){8}, &tensor),
		     -ENODEV);
	cr_expect_eq(fake.calls("cuInit"), 0);
	fragi_resource_unref(unbounded);
}

GPU_TEST(cuda, a_tensor_crosses_to_every_kind_of_memory_and_back)
{
	const struct frag_device devices[] = {GPU, PINNED, MANAGED, CPU};
	struct frag_tensor *host = counting(), *there, *back;
	struct frag_resource *unbounded = NULL;
	struct frag_err err = FRAG_ERR_INIT;
	int32_t seen[24];

	use(GPU);
	cr_assert_eq(make("unbounded_allocator", &unbounded, NULL, NULL, NULL), 0);
	for (size_t i = 0; i < FRAG_COUNT_OF(devices); i++) {
		struct frag_resource *allocator = i % 2 == 0 ? NULL : unbounded;

		cr_assert_eq(frag_tensor_copy(host, allocator, devices[i], &there, &err), 0, "%s",
			     err.text);
		cr_expect_eq(frag_tensor_dl(there)->device.type, devices[i].type);
		cr_assert_eq(fake.peek((uintptr_t)frag_tensor_data(there), seen, sizeof(seen)), 0);
		for (int k = 0; k < 24; k++)
			cr_expect_eq(seen[k], k);
		cr_assert_eq(frag_tensor_copy(there, NULL, CPU, &back, &err), 0, "%s", err.text);
		expect_counting(back);
		frag_tensor_unref(there);
		frag_tensor_unref(back);
	}
	cr_expect_eq(fake.used(), 0);
	frag_tensor_unref(host);
	fragi_resource_unref(unbounded);
}

/* Strided tensors are packed by the GPU that has them. */
GPU_TEST(cuda, elements_of_a_strided_tensor_are_packed)
{
	static const struct {
		int64_t shape[3], strides[3];
		uint64_t offset;
	} cases[] = {
		{{2, 3, 2}, {12, 4, 1}, 0},   /* columns left out: rows at one distance */
		{{2, 3, 2}, {12, 4, 2}, 0},   /* every second element */
		{{2, 2, 4}, {12, 8, 1}, 0},   /* every second row */
		{{3, 2, 4}, {4, 12, 1}, 0},   /* dimensions swapped */
		{{2, 3, 2}, {12, 4, 1}, 8},   /* from an offset */
		{{2, 3, 4}, {0, 4, 1}, 0},    /* one plane, twice */
		{{3, 1, 4}, {0, 100, 0}, 20}, /* one element, again and again */
		{{1, 1, 1}, {5, 6, 7}, 40},
	};
	struct frag_tensor *host = counting(), *there, *strided, *back, *expected;
	struct frag_err err = FRAG_ERR_INIT;

	use(GPU);
	cr_assert_eq(frag_tensor_copy(host, NULL, GPU, &there, &err), 0, "%s", err.text);
	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct frag_dltensor dl = *frag_tensor_dl(there);

		dl.shape = (int64_t *)(uintptr_t)cases[i].shape;
		dl.strides = (int64_t *)(uintptr_t)cases[i].strides;
		dl.byte_offset = cases[i].offset;
		cr_assert_eq(frag_tensor_wrap(&dl, NULL, NULL, &strided), 0);
		cr_assert_eq(frag_tensor_copy(strided, NULL, CPU, &back, &err), 0, "%s", err.text);
		frag_tensor_unref(strided);
		dl.data = frag_tensor_dl(host)->data;
		dl.device = CPU;
		cr_assert_eq(frag_tensor_wrap(&dl, NULL, NULL, &strided), 0);
		cr_assert_eq(frag_tensor_copy(strided, NULL, CPU, &expected, &err), 0);
		cr_expect_eq(memcmp(frag_tensor_data(back), frag_tensor_data(expected),
				    frag_tensor_size_bytes(expected)),
			     0, "case %zu", i);
		frag_tensor_unref(back);
		frag_tensor_unref(expected);
		/* From the host: packed there, then copied. */
		cr_assert_eq(frag_tensor_copy(strided, NULL, GPU, &back, &err), 0, "%s", err.text);
		cr_assert_eq(frag_tensor_copy(back, NULL, CPU, &expected, &err), 0);
		frag_tensor_unref(back);
		cr_assert_eq(frag_tensor_copy(strided, NULL, CPU, &back, &err), 0);
		cr_expect_eq(memcmp(frag_tensor_data(back), frag_tensor_data(expected),
				    frag_tensor_size_bytes(expected)),
			     0, "case %zu", i);
		frag_tensor_unref(back);
		frag_tensor_unref(expected);
		frag_tensor_unref(strided);
	}
	frag_tensor_unref(there);
	frag_tensor_unref(host);
	cr_expect_eq(fake.used(), 0);
}

GPU_TEST(cuda, a_copy_is_complete_when_it_returns)
{
	struct frag_tensor *host = counting(), *there, *back;
	const struct fragi_memory *memory;
	int32_t zeros[24] = {0}, seen[24];

	use(GPU);
	cr_assert_eq(frag_tensor_create_on(NULL, GPU, I32, 1, (const int64_t[]){24}, &there), 0);
	memory = fragi_memory_of(GPU);
	cr_assert_eq(memory->copy(GPU, frag_tensor_dl(there)->data, zeros, sizeof(zeros), NULL), 0);
	cr_assert_eq(memory->wait(GPU, NULL), 0);
	/* What was begun while streams are held has not happened; wait waits for it. */
	fake.hold(true);
	cr_assert_eq(memory->copy(GPU, frag_tensor_dl(there)->data, frag_tensor_data(host),
				  sizeof(seen), NULL),
		     0);
	cr_assert_eq(fake.peek((uintptr_t)frag_tensor_data(there), seen, sizeof(seen)), 0);
	cr_expect_eq(memcmp(seen, zeros, sizeof(seen)), 0);
	fake.hold(false);
	cr_assert_eq(memory->wait(GPU, NULL), 0);
	cr_assert_eq(frag_tensor_copy(there, NULL, CPU, &back, NULL), 0);
	expect_counting(back);
	frag_tensor_unref(back);
	frag_tensor_unref(there);
	frag_tensor_unref(host);
}

GPU_TEST(cuda, a_pool_of_blocks_lies_where_its_storage_type_says)
{
	const struct frag_device devices[] = {PINNED, GPU};
	struct frag_resource *pool = NULL;
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_tensor *a, *b, *c;
	void *block;

	for (int storage = 0; storage < 2; storage++) {
		cr_assert_eq(make_pool(storage, 0, &pool, &err), 0, "%s", err.text);
		cr_expect_eq(frag_resource_blocks_free(pool), 2);
		cr_expect_eq(fake.used(), 2 * 1024);
		cr_assert_eq(frag_tensor_create_on(pool, devices[storage], U8, 1,
						   (const int64_t[]){1000}, &a),
			     0);
		cr_assert_eq(frag_tensor_create_on(pool, devices[storage], U8, 1,
						   (const int64_t[]){10}, &b),
			     0);
		cr_expect_eq(frag_tensor_dl(a)->device.type, devices[storage].type);
		cr_expect_eq(frag_tensor_dl(b)->device.type, devices[storage].type);
		cr_expect_eq((uintptr_t)frag_tensor_data(b) % 64, 0);
		cr_expect_eq(frag_tensor_create_on(pool, devices[storage], U8, 0, NULL, &c),
			     -ENOMEM);
		cr_expect_eq(frag_tensor_create_on(pool, devices[storage], U8, 1,
						   (const int64_t[]){1001}, &c),
			     -EMSGSIZE);
		cr_expect_eq(frag_tensor_create_on(pool, CPU, U8, 0, NULL, &c), -EXDEV);
		cr_expect_eq(frag_tensor_create_on(pool, MANAGED, U8, 0, NULL, &c), -EXDEV);
		/* What asks for no device gets nothing that the CPU cannot use. */
		cr_expect_eq(frag_tensor_create(pool, U8, 0, NULL, &c),
			     storage == 1 ? -EXDEV : -ENOMEM);
		cr_expect_eq(frag_alloc(pool, 1, &block), storage == 1 ? -EXDEV : -ENOMEM);
		frag_tensor_unref(b);
		cr_expect_eq(frag_resource_blocks_free(pool), 1);
		if (storage == 0) {
			cr_assert_eq(frag_tensor_create(pool, U8, 0, NULL, &b), 0);
			cr_expect_eq(frag_tensor_dl(b)->device.type, FRAG_DEVICE_CUDA_HOST);
			*(char *)frag_tensor_writable(b) = 1;
			frag_tensor_unref(b);
		}
		/* A tensor keeps the pool and its memory. */
		fragi_resource_unref(pool);
		cr_expect_eq(fake.used(), 2 * 1024);
		frag_tensor_unref(a);
		cr_expect_eq(fake.used(), 0);
	}
}

/* Pinned memory is of all GPUs: any one that is open will do. */
Test(cuda, pinned_memory_is_made_by_whichever_gpu_is_open)
{
	struct frag_tensor *host = counting(), *pinned, *back;
	struct frag_err err = FRAG_ERR_INIT;

	setenv("FAKE_CUDA_DEVICES", "2", 1);
	use((struct frag_device){FRAG_DEVICE_CUDA, 1});
	cr_assert_eq(frag_tensor_copy(host, NULL, (struct frag_device){FRAG_DEVICE_CUDA_HOST, 0},
				      &pinned, &err),
		     0, "%s", err.text);
	cr_assert_eq(frag_tensor_copy(pinned, NULL, CPU, &back, &err), 0, "%s", err.text);
	expect_counting(back);
	frag_tensor_unref(back);
	frag_tensor_unref(pinned);
	frag_tensor_unref(host);
	expect_nothing_left();
}

Test(cuda, memory_is_on_the_gpu_that_was_named)
{
	struct frag_resource *pool = NULL;
	struct frag_tensor *host = counting(), *a, *b, *back;
	struct frag_err err = FRAG_ERR_INIT;

	setenv("FAKE_CUDA_DEVICES", "2", 1);
	use(GPU);
	cr_assert_eq(make_pool(1, 1, &pool, &err), 0, "%s", err.text);
	cr_assert_eq(frag_tensor_copy(host, NULL, GPU, &a, &err), 0, "%s", err.text);
	/* From one GPU to the other. */
	cr_assert_eq(frag_tensor_copy(a, pool, (struct frag_device){FRAG_DEVICE_CUDA, 1}, &b, &err),
		     0, "%s", err.text);
	cr_expect_eq(frag_tensor_dl(b)->device.id, 1);
	cr_assert_eq(frag_tensor_copy(b, NULL, CPU, &back, &err), 0, "%s", err.text);
	expect_counting(back);
	frag_tensor_unref(a);
	frag_tensor_unref(b);
	frag_tensor_unref(back);
	frag_tensor_unref(host);
	fragi_resource_unref(pool);
	cr_expect_eq(fake.used(), 0);
}

GPU_TEST(cuda, an_empty_tensor_has_a_device_and_no_memory)
{
	struct frag_tensor *empty, *copy;

	use(GPU);
	cr_assert_eq(frag_tensor_create_on(NULL, GPU, U8, 2, (const int64_t[]){0, 5}, &empty), 0);
	cr_expect_null(frag_tensor_data(empty));
	cr_expect_eq(frag_tensor_dl(empty)->device.type, FRAG_DEVICE_CUDA);
	cr_assert_eq(frag_tensor_copy(empty, NULL, CPU, &copy, NULL), 0);
	frag_tensor_unref(empty);
	frag_tensor_unref(copy);
	cr_expect_eq(fake.used(), 0);
}

GPU_TEST(cuda, what_makes_no_sense_is_refused)
{
	struct frag_dltensor dl = {.data = (void *)64, .dtype = U8};
	struct frag_resource *pool = NULL;
	struct frag_tensor *tensor;

	use(GPU);
	cr_expect_eq(frag_tensor_create_on(NULL, (struct frag_device){7, 0}, U8, 0, NULL, &tensor),
		     -EINVAL);
	cr_expect_eq(frag_tensor_create_on(NULL, (struct frag_device){FRAG_DEVICE_CUDA, 5}, U8, 0,
					   NULL, &tensor),
		     -ENODEV);
	cr_expect_eq(frag_tensor_create_on(NULL, (struct frag_device){FRAG_DEVICE_CUDA, -1}, U8, 0,
					   NULL, &tensor),
		     -ENODEV);
	cr_assert_eq(make_pool(2, 0, &pool, NULL), 0);
	cr_expect_eq(frag_tensor_create_on(pool, GPU, U8, 0, NULL, &tensor), -EXDEV,
		     "a pool of system memory has none of a GPU");
	fragi_resource_unref(pool);
	dl.device = (struct frag_device){14, 0};
	cr_expect_eq(frag_tensor_wrap(&dl, NULL, NULL, &tensor), -EINVAL);
	dl.device = MANAGED;
	cr_assert_eq(frag_tensor_wrap(&dl, NULL, NULL, &tensor), 0);
	frag_tensor_unref(tensor);
}

/* Every call of the driver fails once: nothing is left behind, and the sentence names the call. */
GPU_TEST(cuda, each_call_of_the_driver_may_fail)
{
	static const struct {
		const char *call, *says;
	} cases[] = {
		{"cuInit", "cuInit: CUDA_ERROR_FAKE (999): an error of the tests"},
		{"cuDriverGetVersion", "cuDriverGetVersion"},
		{"cuDeviceGetCount", "cuDeviceGetCount"},
		{"cuDeviceGet", "GPU 0: cuDeviceGet: "},
		{"cuDeviceGetName", "cuDeviceGetName"},
		{"cuDeviceGetAttribute", "cuDeviceGetAttribute"},
		{"cuDeviceGetUuid_v2", "cuDeviceGetUuid"},
		{"cuDevicePrimaryCtxRetain", "GPU 0 (Fake 0): cuDevicePrimaryCtxRetain"},
		{"cuStreamCreateWithPriority", "cuStreamCreateWithPriority"},
		{"cuCtxPushCurrent_v2", "cuCtxPushCurrent"},
		{"cuMemAlloc_v2", "GPU 0 (Fake 0): cuMemAlloc of 2048 bytes"},
	};
	struct frag_resource *pool = NULL;

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct frag_err err = FRAG_ERR_INIT;

		fake.fail(cases[i].call, 1, 999);
		cr_expect_lt(make_pool(1, 0, &pool, &err), 0, "%s", cases[i].call);
		cr_expect_not_null(strstr(err.text, cases[i].says), "%s: %s", cases[i].call,
				   err.text);
		fake.fail(cases[i].call, 0, 0);
	}
	/* What failed is tried again. */
	cr_assert_eq(make_pool(1, 0, &pool, NULL), 0);
	fragi_resource_unref(pool);
	cr_expect_eq(fake.used(), 0);
	cr_expect_eq(fake.calls("cuDevicePrimaryCtxRetain"), 2, "one failed, one was kept");
}

GPU_TEST(cuda, copies_that_fail_leave_nothing)
{
	static const char *const failing[] = {"cuMemAlloc_v2", "cuCtxPushCurrent_v2",
					      "cuMemcpyAsync", "cuStreamSynchronize"};
	struct frag_tensor *host = counting(), *copy;

	use(GPU);
	for (size_t i = 0; i < FRAG_COUNT_OF(failing); i++) {
		struct frag_err err = FRAG_ERR_INIT;

		fake.fail(failing[i], 1, 700);
		cr_expect_eq(frag_tensor_copy(host, NULL, GPU, &copy, &err), -EIO, "%s",
			     failing[i]);
		cr_expect_neq(err.text[0], '\0');
		cr_expect_eq(fake.used(), 0, "%s", failing[i]);
	}
	fake.fail("cuMemAlloc_v2", 1, 2);
	cr_expect_eq(frag_tensor_copy(host, NULL, GPU, &copy, NULL), -ENOMEM);
	frag_tensor_unref(host);
}

GPU_TEST(cuda, a_gpu_without_enough_memory)
{
	struct frag_resource *pool = NULL;
	struct frag_err err = FRAG_ERR_INIT;

	setenv("FAKE_CUDA_MEMORY", "2047", 1);
	cr_expect_eq(make_pool(1, 0, &pool, &err), -ENOMEM);
	cr_expect_str_eq(
		err.text,
		"there is no memory for 2 blocks of 1000 bytes: GPU 0 (Fake 0): cuMemAlloc of 2048 bytes: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory; make them fewer or smaller");
}

static void expect_missing(int64_t dev_id, const char *says)
{
	struct frag_resource *pool = NULL;
	struct frag_err err = FRAG_ERR_INIT;

	cr_expect_eq(make_pool(1, dev_id, &pool, &err), -ENODEV);
	cr_expect_eq(err.failure, FRAGI_FAILURE_GPU_MISSING);
	cr_expect_not_null(strstr(err.text, says), "%s", err.text);
}

GPU_TEST(cuda, a_machine_without_gpus)
{
	setenv("FAKE_CUDA_DEVICES", "0", 1);
	expect_missing(0, "storage_type 1 needs GPU 0, and the driver of NVIDIA cannot be used: "
			  "cuInit: CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected; "
			  "run the fragment on a worker with a GPU");
}

GPU_TEST(cuda, a_gpu_that_is_not_there)
{
	const struct fragi_cuda_ops *ops;
	struct frag_err err = FRAG_ERR_INIT;

	expect_missing(1, "there is no GPU 1: this process sees 1");
	cr_expect_eq(fragi_cuda_use((struct frag_device){FRAG_DEVICE_CUDA, 64}, &ops, &err),
		     -ENODEV);
	cr_expect_str_eq(err.text, "there is no GPU 64");
}

GPU_TEST(cuda, a_driver_that_is_too_old)
{
	setenv("FAKE_CUDA_VERSION", "11080", 1);
	expect_missing(0, "the driver of NVIDIA is for CUDA 11.8: install one for 12.0 or newer");
}

GPU_TEST(cuda, the_oldest_driver_that_will_do)
{
	setenv("FAKE_CUDA_VERSION", "12000", 1);
	use(GPU);
}

/* Other memory of the GPU serves: messages are received into it where there are no pools. */
GPU_TEST(cuda, a_gpu_without_pools_and_managed_memory)
{
	struct frag_resource *pool = NULL;
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_tensor *tensor;
	void *memory;

	setenv("FAKE_CUDA_WITHOUT", "managed pools", 1);
	use(GPU);
	cr_expect_eq(frag_tensor_create_on(NULL, MANAGED, U8, 0, NULL, &tensor), -ENOTSUP);
	cr_assert_eq(frag_tensor_create_on(NULL, GPU, U8, 0, NULL, &tensor), 0);
	frag_tensor_unref(tensor);
	cr_expect_eq(make("rmm_allocator", &pool, &err, NULL, NULL), -ENOTSUP);
	cr_expect_not_null(strstr(err.text, "GPU 0 (Fake 0) has no memory pools"), "%s", err.text);
	cr_assert_eq(fragi_memory_of(GPU)->pool_alloc(GPU, 1000, &memory, NULL), 0);
	cr_expect_eq(fake.used(), 1000);
	fragi_memory_of(GPU)->pool_free(GPU, memory);
}

/* The rest of frag asks only for GPUs that it has opened. */
GPU_TEST(cuda, a_gpu_that_nothing_has_opened_has_nothing)
{
	const struct frag_device other = {FRAG_DEVICE_CUDA, 1};
	const struct fragi_cuda_ops *ops;
	const struct fragi_memory *memory;
	struct fragi_cuda_pool *pool;
	struct frag_kernel *kernel;
	struct fragi_stream *stream;
	uint32_t sms;
	size_t bytes;
	void *out;

	setenv("FAKE_CUDA_DEVICES", "2", 1);
	cr_assert_eq(fragi_cuda_use(GPU, &ops, NULL), 0);
	memory = fragi_memory_of(GPU);
	cr_expect_eq(memory->alloc(other, 1, &out, NULL), -ENODEV);
	cr_expect_eq(memory->wait(other, NULL), -ENODEV);
	cr_expect_eq(memory->streams->open(other, NULL, &stream, NULL), -ENODEV);
	cr_expect_eq(memory->shared->alloc(other, 1, &out, &bytes, NULL), -ENODEV);
	cr_expect_eq(ops->stream_create(1, NULL, 1, 0, &out, NULL), -ENODEV);
	cr_expect_eq(ops->pool_create(1, 0, 1, &pool, NULL), -ENODEV);
	cr_expect_eq(ops->kernel_create(1, "", "k", &kernel, NULL), -ENODEV);
	cr_expect_eq(ops->green_create(1, NULL, 1, &out, &sms, NULL), -ENODEV);
	cr_expect_eq(ops->green_create(0, NULL, 0, &out, &sms, NULL), -EINVAL);
	cr_expect_eq(ops->green_create(0, NULL, FRAGI_GREEN_CONTEXTS_MAX + 1, &out, &sms, NULL),
		     -EINVAL);
	cr_assert_eq(ops->green_create(0, NULL, 1, &out, &sms, NULL), 0);
	ops->green_destroy(0, out);
	/* Areas are whole pages of the driver: 64 KiB here. */
	for (size_t size = 65535; size <= 65537; size++) {
		cr_assert_eq(memory->shared->alloc(GPU, size, &out, &bytes, NULL), 0);
		cr_expect_eq(bytes, size <= 65536 ? 65536 : 131072, "%zu", size);
		memory->shared->free(GPU, out, bytes);
	}
	cr_expect_eq(memory->shared->alloc(GPU, SIZE_MAX - 65535, &out, &bytes, NULL), -ENOMEM);
	cr_expect_eq(memory->shared->alloc(MANAGED, 1, &out, &bytes, NULL), -ENOTSUP);
}
