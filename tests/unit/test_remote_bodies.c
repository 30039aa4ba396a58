// SPDX-License-Identifier: Apache-2.0
/* The memory of bodies that arrive. */
#include <criterion/criterion.h>
#include <errno.h>

#include <data/allocator.h>
#include <edge/remote/state.h>

Test(remote_bodies, large_blocks_are_kept_for_the_next_message)
{
	struct frag_resource *bodies = fragi_remote_bodies_create();
	const struct frag_dtype u8 = {FRAG_DTYPE_UINT, 8, 1};
	int64_t shape = 3000000;
	struct frag_tensor *tensor, *other;
	const void *first;

	cr_assert_not_null(bodies);
	cr_assert_eq(frag_tensor_create(bodies, u8, 1, &shape, &tensor), 0);
	first = frag_tensor_data(tensor);
	cr_assert_eq((uintptr_t)first % 64, 0);
	cr_assert_eq(frag_tensor_create(bodies, u8, 1, &shape, &other), 0);
	cr_assert_neq(frag_tensor_data(other), first); /* that one is in use */
	frag_tensor_unref(tensor);
	shape = 2900000; /* a little less fits too */
	cr_assert_eq(frag_tensor_create(bodies, u8, 1, &shape, &tensor), 0);
	cr_assert_eq(frag_tensor_data(tensor), first);
	frag_tensor_unref(tensor);
	shape = 1000000; /* much less does not waste it */
	cr_assert_eq(frag_tensor_create(bodies, u8, 1, &shape, &tensor), 0);
	cr_assert_neq(frag_tensor_data(tensor), first);
	frag_tensor_unref(tensor);
	/* Tensors outlive their resource. */
	fragi_resource_unref(bodies);
	memset(frag_tensor_writable(other), 1, 3000000);
	frag_tensor_unref(other);
}

/* A block is taken for its own size, or less by an eighth; of several the newest. */
Test(remote_bodies, a_block_fits_within_an_eighth)
{
	static const struct {
		size_t size;
		bool fits;
	} rows[] = {{1600000, true}, {1600001, false}, {1400000, true}, {1399999, false}};
	struct frag_resource *bodies;
	void *first, *second, *again;

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		bodies = fragi_remote_bodies_create();
		cr_assert_eq(frag_alloc(bodies, 1600000, &first), 0);
		frag_free(bodies, first);
		cr_assert_eq(frag_alloc(bodies, rows[i].size, &again), 0);
		cr_expect_eq(again == first, rows[i].fits, "%zu", rows[i].size);
		frag_free(bodies, again);
		fragi_resource_unref(bodies);
	}
	bodies = fragi_remote_bodies_create();
	cr_assert_eq(frag_alloc(bodies, 300000, &first), 0);
	cr_assert_eq(frag_alloc(bodies, 300000, &second), 0);
	frag_free(bodies, second);
	frag_free(bodies, first);
	cr_assert_eq(frag_alloc(bodies, 300000, &again), 0);
	cr_expect_eq(again, first);
	frag_free(bodies, again);
	fragi_resource_unref(bodies);
}

Test(remote_bodies, all_are_aligned_and_a_readers_own)
{
	struct frag_resource *bodies = fragi_remote_bodies_create();
	void *blocks[200];

	for (size_t i = 0; i < 200; i++) {
		cr_assert_eq(frag_alloc(bodies, 1 + i * i * 3, &blocks[i]), 0);
		cr_assert_eq((uintptr_t)blocks[i] % 64, 0);
		memset(blocks[i], (int)i, 1 + i * i * 3);
	}
	for (size_t i = 0; i < 200; i++) {
		for (size_t k = 0; k <= i * i * 3; k++)
			cr_assert_eq(((const uint8_t *)blocks[i])[k], (uint8_t)i);
		frag_free(bodies, blocks[i]);
	}
	cr_expect_eq(frag_alloc(bodies, SIZE_MAX - 8, &blocks[0]), -ENOMEM);
	fragi_resource_unref(bodies);
}

Test(remote_bodies, what_is_kept_is_bounded)
{
	struct frag_resource *bodies = fragi_remote_bodies_create();
	void *blocks[200];

	for (size_t round = 0; round < 3; round++) {
		for (size_t i = 0; i < 200; i++)
			cr_assert_eq(
				frag_alloc(bodies, (round + 1) * 100000 + i * 20000, &blocks[i]),
				0);
		for (size_t i = 0; i < 200; i++)
			frag_free(bodies, blocks[i]);
	}
	fragi_resource_unref(bodies);
}
