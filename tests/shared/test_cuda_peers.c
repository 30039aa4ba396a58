// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <frag/resource.h>
#include <frag/tensor.h>
#include <base/alloc.h>
#include <data/memory.h>
#include <res/resource.h>
#include <type/cuda.h>

#include "cuda_tensors.h"

/* Tensors and pools of two GPUs, which reach each other's memory or do not. */
TestSuite(cuda_peers, .init = load_fake);

Test(cuda_peers, a_tensor_goes_into_a_pool_of_another_gpu)
{
	static const char *const names[] = {"device_memory_max_size", "dev_id", NULL};
	static const int64_t shape[] = {2, 2, 4}, strides[] = {12, 8, 1};
	const struct frag_device other = {FRAG_DEVICE_CUDA, 1};
	struct frag_tensor *host = counting(), *here, *there, *again, *back;
	struct frag_resource *pool = NULL, *first = NULL;
	struct frag_dltensor dl;
	struct frag_err err = FRAG_ERR_INIT;

	setenv("FAKE_CUDA_DEVICES", "2", 1);
	cr_assert_eq(
		make("stream_ordered_allocator", &first, &err, names, (const int64_t[]){1000, 0}),
		0, "%s", err.text);
	cr_assert_eq(
		make("stream_ordered_allocator", &pool, &err, names, (const int64_t[]){1000, 1}), 0,
		"%s", err.text);
	cr_assert_eq(frag_tensor_copy(host, first, GPU, &here, &err), 0, "%s", err.text);
	cr_assert_eq(frag_tensor_copy(here, pool, other, &there, &err), 0, "%s", err.text);
	cr_assert_eq(frag_tensor_copy(there, first, GPU, &again, &err), 0, "%s", err.text);
	cr_assert_eq(frag_tensor_copy(again, NULL, CPU, &back, &err), 0, "%s", err.text);
	expect_counting(back);
	frag_tensor_unref(there);
	frag_tensor_unref(back);
	/* Every second row: packed where it is, then copied. */
	dl = *frag_tensor_dl(here);
	dl.shape = (int64_t *)(uintptr_t)shape;
	dl.strides = (int64_t *)(uintptr_t)strides;
	cr_assert_eq(frag_tensor_wrap(&dl, NULL, NULL, &there), 0);
	cr_assert_eq(frag_tensor_copy(there, pool, other, &back, &err), 0, "%s", err.text);
	frag_tensor_unref(there);
	cr_assert_eq(frag_tensor_copy(back, NULL, CPU, &there, &err), 0, "%s", err.text);
	for (int i = 0; i < 16; i++)
		cr_expect_eq(((const int32_t *)frag_tensor_data(there))[i],
			     ((const int32_t *)frag_tensor_data(
				     host))[i / 8 * 12 + i / 4 % 2 * 8 + i % 4]);
	frag_tensor_unref(here);
	frag_tensor_unref(there);
	frag_tensor_unref(again);
	frag_tensor_unref(back);
	frag_tensor_unref(host);
	fragi_resource_unref(pool);
	fragi_resource_unref(first);
}

/* Copies between them go by way of the host otherwise. */
Test(cuda_peers, gpus_of_a_process_reach_each_others_memory)
{
	setenv("FAKE_CUDA_DEVICES", "3", 1);
	use(GPU);
	cr_expect_eq(fake.calls("cuDeviceCanAccessPeer"), 0);
	use((struct frag_device){FRAG_DEVICE_CUDA, 2});
	cr_expect_eq(fake.calls("cuCtxEnablePeerAccess"), 2);
	fake.fail("cuCtxEnablePeerAccess", 1, 2); /* no memory: logged, and no more */
	use((struct frag_device){FRAG_DEVICE_CUDA, 1});
	cr_expect_eq(fake.calls("cuCtxEnablePeerAccess"), 6);
}

Test(cuda_peers, gpus_that_do_not_reach_each_other_are_used_all_the_same)
{
	setenv("FAKE_CUDA_DEVICES", "2", 1);
	setenv("FAKE_CUDA_WITHOUT", "peers", 1);
	use(GPU);
	use((struct frag_device){FRAG_DEVICE_CUDA, 1});
	cr_expect_eq(fake.calls("cuCtxEnablePeerAccess"), 0);
}

#define PAIR_BYTES ((size_t)64 << 10)

/* Memory of a GPU of both kinds that only its own GPU reaches unasked. */
struct own {
	struct frag_device device;
	struct fragi_cuda_pool *pool;
	void *mapped, *pooled;
};

static void own_make(int32_t id, struct own *out)
{
	const struct fragi_cuda_ops *ops;
	struct frag_err err = FRAG_ERR_INIT;
	size_t bytes;

	*out = (struct own){.device = {FRAG_DEVICE_CUDA, id}};
	cr_assert_eq(fragi_cuda_use(out->device, &ops, &err), 0, "%s", err.text);
	cr_assert_eq(
		ops->memory->shared->alloc(out->device, PAIR_BYTES, &out->mapped, &bytes, &err), 0,
		"%s", err.text);
	cr_assert_eq(ops->pool_create(id, 0, 0, &out->pool, &err), 0, "%s", err.text);
	cr_assert_eq(ops->pool_alloc(out->pool, PAIR_BYTES, &out->pooled, &err), 0, "%s", err.text);
}

static void own_free(struct own *own)
{
	const struct fragi_cuda_ops *ops;

	cr_assert_eq(fragi_cuda_use(own->device, &ops, NULL), 0);
	cr_expect_eq(ops->pool_free(own->pool, own->pooled), PAIR_BYTES);
	ops->pool_destroy(own->pool);
	ops->memory->shared->free(own->device, own->mapped, PAIR_BYTES);
}

static void copy_over(struct frag_device from_device, void *from, struct frag_device device,
		      void *to)
{
	static unsigned char byte;
	unsigned char sent[64], got[64];
	struct frag_err err = FRAG_ERR_INIT;

	memset(sent, ++byte, sizeof(sent));
	cr_assert_eq(fake.poke((uintptr_t)from, sent, sizeof(sent)), 0);
	cr_assert_eq(fragi_memory_of(device)->copy_across(from_device, from, device, to, PAIR_BYTES,
							  &err),
		     0, "%s", err.text);
	cr_assert_eq(fragi_memory_of(device)->wait(from_device, &err), 0, "%s", err.text);
	cr_assert_eq(fake.peek((uintptr_t)to, got, sizeof(got)), 0);
	cr_expect_arr_eq(got, sent, sizeof(got));
}

/* Copies each kind of `a` to each of `b`, and back; returns how many went by way of the host. */
static int copy_all(const struct own *a, const struct own *b)
{
	void *const from[] = {a->mapped, a->pooled}, *const to[] = {b->mapped, b->pooled};
	const int before = fake.by_host();

	for (int i = 0; i < 4; i++) {
		copy_over(a->device, from[i / 2], b->device, to[i % 2]);
		copy_over(b->device, to[i % 2], a->device, from[i / 2]);
	}
	return fake.by_host() - before;
}

Test(cuda_peers, copies_between_pools_of_gpus_that_reach_each_other_go_straight)
{
	struct own gpus[3];
	int mapped, pooled;

	setenv("FAKE_CUDA_DEVICES", "4", 1);
	/* Each is made when the next GPU is not open yet. */
	for (int32_t i = 0; i < 3; i++)
		own_make(i, &gpus[i]);
	cr_expect_eq(copy_all(&gpus[0], &gpus[1]), 0);
	cr_expect_eq(copy_all(&gpus[0], &gpus[2]), 0);
	cr_expect_eq(copy_all(&gpus[1], &gpus[2]), 0);
	for (int i = 0; i < 3; i++)
		own_free(&gpus[i]);
	/* What was given back is forgotten. */
	mapped = fake.calls("cuMemSetAccess");
	pooled = fake.calls("cuMemPoolSetAccess");
	use((struct frag_device){FRAG_DEVICE_CUDA, 3});
	cr_expect_eq(fake.calls("cuMemSetAccess"), mapped);
	cr_expect_eq(fake.calls("cuMemPoolSetAccess"), pooled);
	cr_expect_eq(fake.used(), 0);
	cr_expect_eq(fake.left(), 4, "the stream of each GPU stays");
}

Test(cuda_peers, copies_between_pools_of_gpus_that_do_not_reach_each_other_go_by_the_host)
{
	struct own gpus[2];

	setenv("FAKE_CUDA_DEVICES", "2", 1);
	setenv("FAKE_CUDA_WITHOUT", "peers", 1);
	for (int32_t i = 0; i < 2; i++)
		own_make(i, &gpus[i]);
	cr_expect_eq(copy_all(&gpus[0], &gpus[1]), 8);
	cr_expect_eq(fake.calls("cuMemSetAccess"), 2, "each for its own GPU");
	cr_expect_eq(fake.calls("cuMemPoolSetAccess"), 0);
	for (int i = 0; i < 2; i++)
		own_free(&gpus[i]);
	cr_expect_eq(fake.used(), 0);
	cr_expect_eq(fake.left(), 2);
}

/*
 * Of the copies from the second GPU those two go by the host that reach the kind of memory of GPU 0
 * for which it got no access.
 */
Test(cuda_peers, a_gpu_that_gets_no_access_to_a_pool_when_it_is_opened_is_used_all_the_same)
{
	static const struct {
		const char *call;
		int nth;
	} cases[] = {
		{"cuMemSetAccess", 1},
		{"cuMemPoolSetAccess", 1},
		/* GPU 3 and the three before it have asked for each other; then for each memory */
		{"cuDeviceCanAccessPeer", 2 * 3 + 1},
		{"cuCtxPushCurrent_v2", 1 + 2 * 4 + 1},
	};
	struct own first, other;

	setenv("FAKE_CUDA_DEVICES", "5", 1);
	own_make(0, &first);
	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		fake.fail(cases[i].call, cases[i].nth, 999);
		use((struct frag_device){FRAG_DEVICE_CUDA, (int32_t)i + 1});
		own_make((int32_t)i + 1, &other);
		cr_expect_eq(copy_all(&first, &other), 2, "%s", cases[i].call);
		own_free(&other);
	}
	own_free(&first);
	cr_expect_eq(fake.used(), 0);
	cr_expect_eq(fake.left(), 5);
}

Test(cuda_peers, a_pool_that_another_gpu_gets_no_access_to_is_used_all_the_same)
{
	static const struct {
		const char *call;
		int nth;
	} cases[] = {
		{"cuMemSetAccess", 2}, /* the first is for its own GPU */
		{"cuMemPoolSetAccess", 1},
		{"cuDeviceCanAccessPeer", 1},
	};
	struct own first, other;

	setenv("FAKE_CUDA_DEVICES", "2", 1);
	use(GPU);
	own_make(1, &other);
	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		fake.fail(cases[i].call, cases[i].nth, 999);
		own_make(0, &first);
		cr_expect_eq(copy_all(&first, &other), 2, "%s", cases[i].call);
		own_free(&first);
	}
	fragi_alloc_fail_after(0, 1);
	own_make(0, &first);
	cr_expect_eq(fragi_alloc_fail_off(), 1);
	cr_expect_eq(copy_all(&first, &other), 2, "out of memory");
	own_free(&first);
	own_make(0, &first);
	cr_expect_eq(copy_all(&first, &other), 0, "what failed is not kept");
	own_free(&first);
	own_free(&other);
	cr_expect_eq(fake.used(), 0);
	cr_expect_eq(fake.left(), 2);
}
