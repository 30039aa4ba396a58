// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <unistd.h>

#include <frag/cuda.h>
#include <frag/tensor.h>
#include <base/alloc.h>
#include <data/gpu_limit.h>
#include <data/memory.h>

#include "cuda/load.h"
#include "cuda/pools.h"

/* How much memory of GPUs a host may have (gpuMemoryLimit), over the driver of tests. */

#define GPU ((struct frag_device){FRAG_DEVICE_CUDA, 0})
#define OTHER ((struct frag_device){FRAG_DEVICE_CUDA, 1})
#define PINNED ((struct frag_device){FRAG_DEVICE_CUDA_HOST, 0})
#define MANAGED ((struct frag_device){FRAG_DEVICE_CUDA_MANAGED, 0})
#define PAGE ((size_t)64 << 10) /* of memory that hosts share, in the driver of tests */

TestSuite(cuda_limit, .init = load_fake);

static void *take(struct frag_device device, size_t bytes)
{
	struct frag_err err = FRAG_ERR_INIT;
	void *memory = NULL;

	cr_assert_eq(fragi_memory_of(device)->alloc(device, bytes, &memory, &err), 0, "%s",
		     err.text);
	return memory;
}

static void give(struct frag_device device, void *memory)
{
	fragi_memory_of(device)->free(device, memory);
}

static void refused(struct frag_device device, size_t bytes, const char *sentence)
{
	struct frag_err err = FRAG_ERR_INIT;
	void *memory;

	cr_expect_eq(fragi_memory_of(device)->alloc(device, bytes, &memory, &err), -ENOMEM);
	cr_expect_str_eq(err.text, sentence);
}

/* An operator that gives back twice gets no more than the limit by it. */
GPU_TEST(cuda_limit, to_give_what_was_not_taken_raises_no_limit)
{
	fragi_gpu_limit_set(5000);
	cr_assert_eq(frag_gpu_memory_take(300, NULL), 0);
	frag_gpu_memory_give(300);
	frag_gpu_memory_give(300);
	cr_expect_eq(frag_gpu_memory_left(), 5000);
	cr_expect_eq(frag_gpu_memory_take(5001, NULL), -ENOMEM);
	cr_assert_eq(frag_gpu_memory_take(4999, NULL), 0);
	frag_gpu_memory_give(UINT64_MAX);
	cr_expect_eq(frag_gpu_memory_left(), 5000);
}

GPU_TEST(cuda_limit, all_of_it_may_be_taken_and_no_byte_more)
{
	void *first, *second;

	setenv("FAKE_CUDA_DEVICES", "2", 1);
	fragi_gpu_limit_set(5000);
	use(GPU);
	first = take(GPU, 3000);
	refused(GPU, 2001,
		"2001 bytes of GPU memory are more than this host may still have: its gpuMemoryLimit is 5000 bytes, and 3000 are in use or kept for models; raise it, or use smaller pools and gpu_memory");
	cr_expect_eq(frag_gpu_memory_left(), 2000, "what was refused is not counted");
	second = take(MANAGED, 2000);
	cr_expect_eq(frag_gpu_memory_left(), 0);
	refused(GPU, 1,
		"1 bytes of GPU memory are more than this host may still have: its gpuMemoryLimit is 5000 bytes, and 5000 are in use or kept for models; raise it, or use smaller pools and gpu_memory");
	give(GPU, first);
	cr_expect_eq(frag_gpu_memory_left(), 3000);
	first = take(GPU, 3000);
	give(MANAGED, second);
	give(GPU, first);
	cr_expect_eq(frag_gpu_memory_left(), 5000);
	refused(GPU, SIZE_MAX,
		"18446744073709551615 bytes of GPU memory are more than this host may still have: its gpuMemoryLimit is 5000 bytes, and 0 are in use or kept for models; raise it, or use smaller pools and gpu_memory");
}

/* Of all GPUs together; each GPU has a stream by which the module frees. */
Test(cuda_limit, gpus_share_it)
{
	void *first, *second;

	setenv("FAKE_CUDA_DEVICES", "2", 1);
	fragi_gpu_limit_set(1000);
	use(GPU);
	use(OTHER);
	first = take(OTHER, 400);
	second = take(GPU, 600);
	cr_expect_eq(frag_gpu_memory_left(), 0);
	give(OTHER, first);
	cr_expect_eq(frag_gpu_memory_left(), 400);
	give(GPU, second);
	cr_expect_eq(frag_gpu_memory_left(), 1000);
}

/* The host's own memory is not the GPU's, and what another process has made is counted there. */
GPU_TEST(cuda_limit, memory_of_others_is_not_counted)
{
	const struct fragi_shared_memory *shared;
	uint8_t name[FRAGI_GPU_NAME_BYTES];
	struct frag_device device;
	void *pinned, *made, *mapped;
	size_t bytes;
	int fd;

	fragi_gpu_limit_set(PAGE);
	use(GPU);
	shared = fragi_memory_of(GPU)->shared;
	pinned = take(PINNED, 1000);
	cr_assert_eq(shared->alloc(GPU, 1, &made, &bytes, NULL), 0, "a page is all there is");
	cr_expect_eq(frag_gpu_memory_left(), 0);
	cr_assert_eq(shared->show(GPU, made, &fd, name, NULL), 0);
	cr_assert_eq(shared->map(fd, name, bytes, &device, &mapped, NULL), 0);
	close(fd);
	shared->unmap(GPU, mapped, bytes);
	cr_expect_eq(frag_gpu_memory_left(), 0);
	cr_expect_eq(shared->alloc(GPU, 1, &mapped, &bytes, NULL), -ENOMEM);
	shared->free(GPU, made, bytes);
	cr_expect_eq(frag_gpu_memory_left(), PAGE);
	cr_expect_eq(shared->alloc(GPU, PAGE + 1, &made, &bytes, NULL), -ENOMEM,
		     "that is two pages");
	give(PINNED, pinned);
}

static int make_blocks(int64_t count, struct frag_resource **out, struct frag_err *err)
{
	return make("block_memory_pool", out, err,
		    (const char *const[]){"storage_type", "block_size", "num_blocks", NULL},
		    (const int64_t[]){1, 1024, count});
}

GPU_TEST(cuda_limit, pools_share_it)
{
	struct frag_resource *first, *second, *third = NULL;
	struct frag_err err = FRAG_ERR_INIT;

	fragi_gpu_limit_set(5 * 1024);
	use(GPU);
	cr_assert_eq(make_blocks(2, &first, &err), 0, "%s", err.text);
	cr_assert_eq(make_blocks(3, &second, &err), 0, "%s", err.text);
	cr_expect_eq(make_blocks(1, &third, &err), -ENOMEM);
	cr_expect_str_eq(
		err.text,
		"there is no memory for 1 blocks of 1024 bytes: 1024 bytes of GPU memory are more than this host may still have: its gpuMemoryLimit is 5120 bytes, and 5120 are in use or kept for models; raise it, or use smaller pools and gpu_memory; make them fewer or smaller");
	fragi_resource_unref(first);
	cr_expect_eq(make_blocks(3, &third, NULL), -ENOMEM);
	cr_assert_eq(make_blocks(2, &third, &err), 0);
	fragi_resource_unref(second);
	fragi_resource_unref(third);
	cr_expect_eq(frag_gpu_memory_left(), 5 * 1024);
}

/* What the driver keeps in a pool is in use: other programs of the GPU do not get it. */
GPU_TEST(cuda_limit, a_pool_of_the_driver_takes_what_it_keeps)
{
	const struct fragi_cuda_ops *ops;
	struct frag_err err = FRAG_ERR_INIT;
	struct fragi_cuda_pool *pool;
	void *a, *b, *c;

	fragi_gpu_limit_set(10000);
	cr_assert_eq(fragi_cuda_use(GPU, &ops, &err), 0, "%s", err.text);
	cr_expect_eq(ops->pool_create(0, 10001, 3000, &pool, &err), -ENOMEM);
	cr_assert_eq(ops->pool_create(0, 2000, 3000, &pool, &err), 0, "%s", err.text);
	cr_expect_eq(frag_gpu_memory_left(), 8000, "what it has taken at first");
	cr_assert_eq(ops->pool_alloc(pool, 1500, &a, &err), 0);
	cr_assert_eq(ops->pool_alloc(pool, 500, &b, &err), 0);
	cr_expect_eq(frag_gpu_memory_left(), 8000, "it had that");
	cr_expect_eq(ops->pool_alloc(pool, 8001, &c, &err), -ENOMEM);
	cr_expect_eq(ops->pool_alloc(pool, 8001, &c, NULL), -ENOMEM);
	cr_assert_eq(ops->pool_alloc(pool, 8000, &c, &err), 0, "all");
	cr_expect_eq(frag_gpu_memory_left(), 0);
	cr_expect_eq(ops->pool_free(pool, b), 500);
	cr_expect_eq(frag_gpu_memory_left(), 500);
	cr_expect_eq(ops->pool_free(pool, c), 8000);
	cr_expect_eq(frag_gpu_memory_left(), 7000, "1500 are in use, and 1500 kept");
	cr_assert_eq(ops->pool_alloc(pool, 1501, &b, &err), 0);
	cr_expect_eq(frag_gpu_memory_left(), 6999, "one more than it had kept");
	cr_expect_eq(ops->pool_free(pool, b), 1501);
	cr_expect_eq(ops->pool_free(pool, a), 1500);
	cr_expect_eq(frag_gpu_memory_left(), 7000);
	ops->pool_destroy(pool);
	cr_expect_eq(frag_gpu_memory_left(), 10000);
}

/* Their pool stays for the life of the process. */
Test(cuda_limit, received_tensors_are_counted)
{
	const struct fragi_memory *memory;
	void *a, *b;

	fragi_gpu_limit_set(1000);
	use(GPU);
	memory = fragi_memory_of(GPU);
	cr_assert_eq(memory->pool_alloc(GPU, 700, &a, NULL), 0);
	cr_expect_eq(memory->pool_alloc(GPU, 301, &b, NULL), -ENOMEM);
	cr_expect_eq(memory->pool_alloc(GPU, 300, &b, NULL), 0);
	memory->pool_free(GPU, a);
	memory->pool_free(GPU, b);
	cr_expect_eq(frag_gpu_memory_left(), 0, "the pool keeps 256 MiB");
	cr_expect_eq(memory->pool_alloc(GPU, 1000, &a, NULL), 0);
	memory->pool_free(GPU, a);
	left_own.shared_maps = 2; /* as said: the pool keeps it */
}

/* What the driver refuses is free for others. */
GPU_TEST(cuda_limit, what_the_driver_refuses_is_not_counted)
{
	static const char *const calls[] = {"cuMemCreate", "cuMemAddressReserve", "cuMemMap",
					    "cuMemSetAccess"};
	static const char *const of_pools[] = {"cuMemAllocFromPoolAsync", "cuStreamSynchronize"};
	const struct fragi_cuda_ops *ops;
	const struct fragi_memory *memory;
	struct fragi_cuda_pool *pool;
	size_t bytes;
	void *out;

	fragi_gpu_limit_set(3 * PAGE);
	cr_assert_eq(fragi_cuda_use(GPU, &ops, NULL), 0);
	memory = fragi_memory_of(GPU);
	fake.fail("cuMemAlloc_v2", 1, 2);
	cr_expect_eq(memory->alloc(GPU, 1000, &out, NULL), -ENOMEM);
	for (size_t i = 0; i < FRAG_COUNT_OF(calls); i++) {
		fake.fail(calls[i], 1, 999);
		cr_expect_eq(memory->shared->alloc(GPU, PAGE, &out, &bytes, NULL), -EIO, "%s",
			     calls[i]);
		cr_expect_eq(frag_gpu_memory_left(), 3 * PAGE, "%s", calls[i]);
	}
	cr_assert_eq(ops->pool_create(0, 100, UINT64_MAX, &pool, NULL), 0);
	for (size_t i = 0; i < FRAG_COUNT_OF(of_pools); i++) {
		fake.fail(of_pools[i], 1, 2);
		cr_expect_eq(ops->pool_alloc(pool, 1000, &out, NULL), -ENOMEM, "%s", of_pools[i]);
		cr_expect_eq(frag_gpu_memory_left(), 3 * PAGE - 100, "%s", of_pools[i]);
	}
	ops->pool_destroy(pool);
	fake.fail("cuMemPoolCreate", 1, 2);
	cr_expect_eq(ops->pool_create(0, 100, 0, &pool, NULL), -ENOMEM);
	cr_expect_eq(frag_gpu_memory_left(), 3 * PAGE);
}

/* Without a limit nothing is counted, and memory is freed without a question to the driver. */
/* What the log says while memory is given back. */
static size_t give_and_read(const struct fragi_cuda_ops *ops, struct fragi_cuda_pool *pool,
			    void *memory, char out[500])
{
	FILE *log = tmpfile();
	int kept = dup(STDERR_FILENO);
	size_t given;

	cr_assert(log != NULL && dup2(fileno(log), STDERR_FILENO) >= 0);
	given = ops->pool_free(pool, memory);
	dup2(kept, STDERR_FILENO);
	close(kept);
	rewind(log);
	out[fread(out, 1, 499, log)] = '\0';
	fclose(log);
	return given;
}

/* It stays counted, and the log says why. */
GPU_TEST(cuda_limit, what_the_driver_does_not_take_back_is_said)
{
	static const char *const failing[] = {"cuCtxPushCurrent_v2", "cuMemGetAddressRange_v2",
					      "cuMemFreeAsync"};
	const struct fragi_cuda_ops *ops;
	struct frag_err err = FRAG_ERR_INIT;
	struct fragi_cuda_pool *pool;
	char text[500];
	void *memory;

	fragi_gpu_limit_set(10000);
	cr_assert_eq(fragi_cuda_use(GPU, &ops, &err), 0, "%s", err.text);
	cr_assert_eq(ops->pool_create(0, 0, 3000, &pool, &err), 0, "%s", err.text);
	cr_assert_eq(ops->pool_alloc(pool, 1500, &memory, &err), 0);
	for (size_t i = 0; i < FRAG_COUNT_OF(failing); i++) {
		fake.fail(failing[i], 1, 999);
		cr_expect_eq(give_and_read(ops, pool, memory, text), 0, "%s", failing[i]);
		cr_expect_not_null(strstr(text, "memory of a pool was not freed: GPU 0 (Fake 0): "),
				   "%s: %s", failing[i], text);
		cr_expect_eq(frag_gpu_memory_left(), 8500, "%s", failing[i]);
	}
	cr_expect_eq(give_and_read(ops, pool, memory, text), 1500);
	cr_expect_str_eq(text, "");
	ops->pool_destroy(pool);
}

GPU_TEST(cuda_limit, without_one_nothing_is_counted)
{
	void *memory;

	use(GPU);
	cr_expect_eq(frag_gpu_memory_left(), UINT64_MAX);
	memory = take(GPU, 1000);
	cr_expect_eq(frag_gpu_memory_take(UINT64_MAX, NULL), 0);
	frag_gpu_memory_give(UINT64_MAX);
	give(GPU, memory);
	cr_expect_eq(frag_gpu_memory_left(), UINT64_MAX);
	cr_expect_eq(fake.calls("cuMemGetAddressRange_v2"), 0);
}

/* An operator that takes memory by itself, with CUDA's runtime. */
GPU_TEST(cuda_limit, operators_count_what_they_take_themselves)
{
	struct frag_err err = FRAG_ERR_INIT;
	void *memory;

	fragi_gpu_limit_set(1000);
	use(GPU);
	cr_expect_eq(frag_gpu_memory_take(600, &err), 0);
	refused(GPU, 401,
		"401 bytes of GPU memory are more than this host may still have: its gpuMemoryLimit is 1000 bytes, and 600 are in use or kept for models; raise it, or use smaller pools and gpu_memory");
	memory = take(GPU, 400);
	cr_expect_eq(frag_gpu_memory_take(1, &err), -ENOMEM);
	frag_gpu_memory_give(600);
	cr_expect_eq(frag_gpu_memory_take(600, NULL), 0);
	frag_gpu_memory_give(600);
	give(GPU, memory);
	cr_expect_eq(frag_gpu_memory_left(), 1000);
}
