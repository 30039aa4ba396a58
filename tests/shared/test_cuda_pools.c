// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <frag/harness.h>
#include <frag/resource.h>
#include <frag/tensor.h>
#include <res/resource.h>

#include "cuda_tensors.h"

/* Pools of memory that the driver keeps, or that is cut from pinned areas, and pools of streams. */

TestSuite(cuda, .init = load_fake);

/* A pool whose tensors the tests take: of the names and values given, {NULL} for the defaults. */
static struct frag_resource *allocator(const char *type, const char *const *names,
				       const int64_t *values)
{
	struct frag_resource *out = NULL;
	struct frag_err err = FRAG_ERR_INIT;

	cr_assert_eq(make(type, &out, &err, names, values), 0, "%s", err.text);
	return out;
}

#define KIB 1024
static const char *const sizes[] = {"device_memory_initial_size", "device_memory_max_size",
				    "host_memory_initial_size", "host_memory_max_size", NULL};
static const int64_t small_sizes[] = {8 * KIB, 16 * KIB, 8 * KIB, 16 * KIB};

/* Of a pool that holds 16 KiB at most. */
static void expect_level(const struct frag_resource *pool, size_t free, uint64_t refused)
{
	struct fragi_blocks level;

	cr_assert_not_null(pool->allocator.level);
	pool->allocator.level(pool->allocator.state, &level);
	cr_expect_eq(level.all, 16 * KIB);
	cr_expect_eq(level.block_bytes, 1);
	cr_expect_eq(level.free, free);
	cr_expect_eq(level.refused, refused);
}

GPU_TEST(cuda, a_pool_of_the_driver_has_a_maximum)
{
	static const char *const types[] = {"rmm_allocator", "stream_ordered_allocator"};
	struct frag_tensor *tensors[5], *host = counting(), *copy, *back;
	struct frag_resource *pool;

	for (size_t i = 0; i < FRAG_COUNT_OF(types); i++) {
		pool = allocator(types[i], sizes, small_sizes);
		for (int k = 0; k < 4; k++)
			cr_assert_eq(frag_tensor_create_on(pool, GPU, U8, 1,
							   (const int64_t[]){4 * KIB}, &tensors[k]),
				     0);
		cr_expect_eq(frag_tensor_create_on(pool, GPU, U8, 0, NULL, &tensors[4]), -ENOMEM);
		expect_level(pool, 0, 1);
		frag_tensor_unref(tensors[0]);
		expect_level(pool, 4 * KIB, 1);
		cr_assert_eq(frag_tensor_copy(host, pool, GPU, &copy, NULL), 0);
		cr_assert_eq(frag_tensor_copy(copy, NULL, CPU, &back, NULL), 0);
		expect_counting(back);
		frag_tensor_unref(back);
		frag_tensor_unref(copy);
		cr_expect_eq(frag_tensor_create_on(pool, (struct frag_device){FRAG_DEVICE_CUDA, 1},
						   U8, 0, NULL, &copy),
			     -EXDEV);
		cr_expect_eq(frag_tensor_create_on(pool, MANAGED, U8, 0, NULL, &copy), -EXDEV);
		for (int k = 1; k < 4; k++)
			frag_tensor_unref(tensors[k]);
		fragi_resource_unref(pool);
		cr_expect_eq(fake.used(), 0, "%s", types[i]);
	}
	frag_tensor_unref(host);
}

GPU_TEST(cuda, pinned_memory_is_cut_from_areas_and_joined_again)
{
	struct frag_resource *pool = allocator("rmm_allocator", sizes, small_sizes);
	struct frag_tensor *large;
	void *pieces[8], *piece;

	for (int i = 0; i < 8; i++) {
		cr_assert_eq(frag_alloc(pool, 2 * KIB, &pieces[i]), 0, "%d", i);
		memset(pieces[i], i, 2 * KIB);
	}
	cr_expect_eq(frag_alloc(pool, 1, &piece), -ENOMEM);
	cr_expect_eq(fake.calls("cuMemHostAlloc"), 2, "two areas hold all");
	for (int i = 0; i < 8; i++)
		for (int k = 0; k < 2 * KIB; k++)
			cr_assert_eq(((char *)pieces[i])[k], i);
	/* In an order in which neighbours are joined on both sides. */
	for (int i = 0; i < 8; i += 2)
		frag_free(pool, pieces[i]);
	cr_expect_eq(frag_alloc(pool, 4 * KIB, &piece), -ENOMEM);
	for (int i = 1; i < 8; i += 2)
		frag_free(pool, pieces[i]);
	for (int i = 0; i < 2; i++)
		cr_expect_eq(frag_alloc(pool, 8 * KIB, &pieces[i]), 0);
	cr_expect_eq(frag_alloc(pool, 1, &piece), -ENOMEM);
	frag_free(pool, pieces[0]);
	frag_free(pool, pieces[1]);
	cr_assert_eq(frag_tensor_create(pool, U8, 1, (const int64_t[]){8 * KIB}, &large), 0);
	cr_expect_eq(frag_tensor_dl(large)->device.type, FRAG_DEVICE_CUDA_HOST);
	frag_tensor_unref(large);
	cr_expect_eq(frag_alloc(pool, 8 * KIB + 1, &piece), -ENOMEM, "larger than an area");
	cr_expect_eq(frag_alloc(pool, SIZE_MAX, &piece), -ENOMEM);
	fragi_resource_unref(pool);
	cr_expect_eq(fake.used(), 0);
}

Test(cuda, pools_of_the_driver_that_cannot_be_made)
{
	static const struct {
		const char *call;
		int code;
		const char *says;
	} cases[] = {
		{"cuMemPoolCreate", -EIO,
		 "there is no pool of device memory: GPU 0 (Fake 0): cuMemPoolCreate"},
		{"cuMemPoolSetAttribute", -EIO, "cuMemPoolSetAttribute"},
		{"cuMemAllocFromPoolAsync", -EIO, "cuMemAllocFromPoolAsync of 8192 bytes"},
		{"cuStreamSynchronize", -EIO, "cuStreamSynchronize"},
		{"cuMemHostAlloc", -EIO, "there is no pinned memory: cuMemHostAlloc of 8192 bytes"},
		/* last: what the driver does not free stays */
		{"cuMemFreeAsync", -EIO, "cuMemFreeAsync"},
	};
	struct frag_resource *pool = NULL;

	left_own.shared_maps = 2; /* of the last case */
	use(GPU);
	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct frag_err err = FRAG_ERR_INIT;

		fake.fail(cases[i].call, 1, 999);
		cr_expect_eq(make("rmm_allocator", &pool, &err, sizes, small_sizes), cases[i].code,
			     "%s", cases[i].call);
		cr_expect_not_null(strstr(err.text, cases[i].says), "%s", err.text);
		cr_expect_leq(fake.left(), 1, "%s: pools or streams are left", cases[i].call);
		if (i + 1 < FRAG_COUNT_OF(cases))
			cr_expect_eq(fake.used(), 0, "%s: memory is left", cases[i].call);
	}
	fake.fail("cuStreamCreateWithPriority", 1, 999);
	cr_expect_eq(make("stream_ordered_allocator", &pool, NULL, sizes, small_sizes), -EIO);
}

GPU_TEST(cuda, a_pool_of_the_driver_outlives_a_call_that_fails)
{
	struct frag_resource *pool = allocator("rmm_allocator", sizes, small_sizes);
	struct frag_tensor *tensor;

	fake.fail("cuMemAllocFromPoolAsync", 1, 2);
	cr_expect_eq(frag_tensor_create_on(pool, GPU, U8, 0, NULL, &tensor), -ENOMEM);
	/* What failed does not count against the maximum. */
	cr_assert_eq(frag_tensor_create_on(pool, GPU, U8, 1, (const int64_t[]){16 * KIB}, &tensor),
		     0);
	frag_tensor_unref(tensor);
	fragi_resource_unref(pool);
	cr_expect_eq(fake.used(), 0);
}

GPU_TEST(cuda, sizes_that_make_no_sense_are_refused)
{
	struct frag_err err = FRAG_ERR_INIT, host_err = FRAG_ERR_INIT;
	struct frag_resource *pool = NULL;

	cr_expect_eq(
		make("stream_ordered_allocator", &pool, &err, sizes, (const int64_t[]){2, 1, 0, 0}),
		-EINVAL);
	cr_expect_str_eq(
		err.text,
		"device_memory_initial_size is 2 and device_memory_max_size is 1; give a maximum that is not below it");
	cr_expect_eq(make("rmm_allocator", &pool, &host_err, sizes, (const int64_t[]){1, 1, 2, 1}),
		     -EINVAL);
	cr_expect_not_null(strstr(host_err.text, "host_memory_initial_size is 2"), "%s",
			   host_err.text);
	cr_expect_eq(fake.calls("cuInit"), 0, "no GPU is opened to check a graph");
}

GPU_TEST(cuda, streams_are_taken_and_given_back)
{
	static const char *const names[] = {"stream_flags", "stream_priority", "reserved_size",
					    "max_size", NULL};
	struct frag_resource *pool = allocator("cuda_stream_pool", names,
					       (const int64_t[]){1, -1, 2, 3}),
			     *other = allocator("unbounded_allocator", NULL, NULL);
	const int made = fake.calls("cuStreamCreateWithPriority");
	void *streams[3], *again;

	for (int i = 0; i < 3; i++) {
		cr_assert_eq(frag_cuda_stream_take(pool, &streams[i]), 0);
		for (int k = 0; k < i; k++)
			cr_expect_neq(streams[i], streams[k]);
	}
	cr_expect_eq(fake.calls("cuStreamCreateWithPriority"), made + 1, "two were reserved");
	cr_expect_eq(frag_cuda_stream_take(pool, &again), -EBUSY);
	frag_cuda_stream_give(pool, streams[1]);
	frag_cuda_stream_give(pool, streams[1]);
	frag_cuda_stream_give(pool, NULL);
	cr_assert_eq(frag_cuda_stream_take(pool, &again), 0);
	cr_expect_eq(again, streams[1]);
	cr_expect_eq(frag_cuda_stream_take(pool, &again), -EBUSY, "given back twice, taken once");
	frag_cuda_stream_give(pool, streams[0]);
	cr_expect_eq(frag_cuda_stream_take(other, &again), -EINVAL);
	cr_expect_eq(frag_cuda_stream_take(NULL, &again), -EINVAL);
	fragi_resource_unref(pool);
	cr_expect_eq(fake.calls("cuStreamDestroy_v2"), 3, "also those that are in use");
	pool = allocator("cuda_stream_pool", NULL, NULL);
	for (int i = 0; i < 1000; i++) /* a thread each here, of 2048 in many containers */
		cr_assert_eq(frag_cuda_stream_take(pool, &again), 0, "max_size 0 is no limit");
	fragi_resource_unref(pool);
	fragi_resource_unref(other);
}

GPU_TEST(cuda, streams_that_cannot_be_made)
{
	static const char *const names[] = {"reserved_size", "max_size", NULL};
	struct frag_err err = FRAG_ERR_INIT, sizes_err = FRAG_ERR_INIT;
	struct frag_resource *pool = NULL;
	void *stream;

	use(GPU);
	fake.fail("cuStreamCreateWithPriority", 2, 999);
	cr_expect_eq(make("cuda_stream_pool", &pool, &err, names, (const int64_t[]){3, 0}), -EIO);
	cr_expect_not_null(strstr(err.text, "GPU 0 (Fake 0): cuStreamCreateWithPriority"), "%s",
			   err.text);
	cr_expect_eq(fake.calls("cuStreamDestroy_v2"), 1, "the one that was made");
	cr_expect_eq(make("cuda_stream_pool", &pool, &sizes_err, names, (const int64_t[]){3, 2}),
		     -EINVAL);
	cr_expect_str_eq(
		sizes_err.text,
		"reserved_size is 3 and max_size is 2; give a maximum that is not below it");
	cr_assert_eq(make("cuda_stream_pool", &pool, NULL, names, (const int64_t[]){0, 0}), 0);
	fake.fail("cuStreamCreateWithPriority", 1, 2);
	cr_expect_eq(frag_cuda_stream_take(pool, &stream), -ENOMEM);
	cr_expect_eq(frag_cuda_stream_take(pool, &stream), 0);
	fragi_resource_unref(pool);
}
