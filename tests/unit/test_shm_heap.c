// SPDX-License-Identifier: Apache-2.0
/* The heap that hosts of one machine share: how much a block takes, and what becomes of it. */
#include <criterion/criterion.h>
#include <errno.h>
#include <sys/resource.h>

#include <modules/shm/module.h>

static struct shm_heap *heap;

/* Files of so many bytes at most, so the heap has as many. */
static void open_heap(uint64_t bytes)
{
	struct rlimit limit = {.rlim_cur = bytes, .rlim_max = bytes};
	struct frag_err err = FRAG_ERR_INIT;

	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	cr_assert_eq(shm_heap_create(&heap, &err), 0, "%s", err.text);
}

/* Where a block lies; -1: there is none left. */
static int64_t take(size_t size, void **out)
{
	uint64_t offset = 0;
	int r = frag_alloc(shm_heap_resource(heap), size, out);

	if (r < 0) {
		cr_expect_eq(r, -ENOMEM);
		return -1;
	}
	cr_expect(shm_heap_offset(heap, *out, size, &offset));
	return (int64_t)offset;
}

/*
 * Blocks of equal size lie side by side, so the distance is what each takes; of more than half a
 * slab there is one in each.
 */
static const struct {
	size_t size;
	int64_t takes;
} blocks[] = {
	{0, 64},          {1, 64},          {64, 64},           {65, 128},
	{128, 128},       {129, 192},       {192, 192},         {193, 256},
	{256, 256},       {257, 320},       {320, 320},         {321, 384},
	{385, 448},       {449, 512},       {512, 512},         {513, 640},
	{640, 640},       {641, 768},       {896, 896},         {897, 1024},
	{1024, 1024},     {1025, 1280},     {4096, 4096},       {4097, 5120},
	{65536, 65536},   {65537, 81920},   {131072, 131072},   {131073, 262144},
	{262144, 262144}, {262145, 327680}, {1048576, 1048576}, {1048577, 1310720},
};

Test(shm_heap, a_block_takes_what_its_size_is_rounded_up_to)
{
	for (size_t i = 0; i < FRAG_COUNT_OF(blocks); i++) {
		void *memory;
		int64_t first, second;

		open_heap((uint64_t)64 << 20);
		first = take(blocks[i].size, &memory);
		second = take(blocks[i].size, &memory);
		cr_expect_eq(second - first, blocks[i].takes, "%zu bytes take %lld", blocks[i].size,
			     (long long)(second - first));
		shm_heap_unref(heap);
	}
}

/* 4 MiB hold so many blocks, and as many again once they are back, of the same memory. */
static const struct {
	size_t size;
	int count;
} fills[] = {{64, 65536},  {1 << 20, 4},       {(1 << 20) + 1, 3},
	     {4 << 20, 1}, {(4 << 20) + 1, 0}, {65537, 48}};

Test(shm_heap, all_of_it_is_used_and_comes_back)
{
	static void *memory[65537];
	int64_t last = 0;
	int count;

	for (size_t i = 0; i < FRAG_COUNT_OF(fills); i++) {
		open_heap((uint64_t)4 << 20);
		for (int round = 0; round < 3; round++) {
			for (count = 0; count < 65537; count++) {
				int64_t at = take(fills[i].size, &memory[count]);

				if (at < 0)
					break;
				memset(memory[count], round, fills[i].size);
				last = at;
			}
			cr_expect_eq(count, fills[i].count, "%zu bytes: %d", fills[i].size, count);
			while (count-- > 0)
				frag_free(shm_heap_resource(heap), memory[count]);
		}
		shm_heap_unref(heap);
	}
	cr_expect_geq(last, 0);
}

/* The newest that came back is the next; sizes do not mix. */
Test(shm_heap, what_comes_back_goes_to_blocks_of_its_size)
{
	void *small[3], *large[2], *again;

	open_heap((uint64_t)4 << 20);
	for (int i = 0; i < 3; i++)
		cr_assert_geq(take(64, &small[i]), 0);
	for (int i = 0; i < 2; i++)
		cr_assert_geq(take(100000, &large[i]), 0);
	frag_free(shm_heap_resource(heap), small[0]);
	frag_free(shm_heap_resource(heap), large[1]);
	frag_free(shm_heap_resource(heap), small[2]);
	cr_assert_geq(take(100000, &again), 0);
	cr_expect_eq(again, large[1]);
	cr_assert_geq(take(1, &again), 0);
	cr_expect_eq(again, small[2]);
	cr_assert_geq(take(1, &again), 0);
	cr_expect_eq(again, small[0]);
	shm_heap_unref(heap);
}

/* What lies in it, to the byte. */
Test(shm_heap, an_offset_is_that_of_memory_in_it)
{
	uint64_t offset = 7, size;
	void *first;
	uint8_t *base;

	open_heap((uint64_t)4 << 20);
	size = shm_heap_size(heap);
	cr_assert_eq(size, 4 << 20);
	base = (uint8_t *)(frag_alloc(shm_heap_resource(heap), 1, &first) == 0 ? first : NULL);
	cr_assert(shm_heap_offset(heap, base, 1, &offset));
	base -= offset;
	cr_expect(shm_heap_offset(heap, base, size, &offset) && offset == 0);
	cr_expect(shm_heap_offset(heap, base + size, 0, &offset) && offset == size);
	cr_expect(shm_heap_offset(heap, base + size - 1, 1, &offset) && offset == size - 1);
	offset = 7;
	cr_expect(!shm_heap_offset(heap, base, size + 1, &offset));
	cr_expect(!shm_heap_offset(heap, base + size - 1, 2, &offset));
	cr_expect(!shm_heap_offset(heap, base + size + 1, 0, &offset));
	cr_expect(!shm_heap_offset(heap, base - 1, 1, &offset));
	cr_expect_eq(offset, 7);
	shm_heap_unref(heap);
}
