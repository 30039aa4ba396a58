// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include <base/alloc.h>
#include <base/arena.h>

Test(arena, memory_is_zeroed_aligned_and_apart)
{
	struct fragi_arena arena = {0};
	unsigned char *parts[1000];

	for (size_t i = 0; i < 1000; i++) {
		parts[i] = fragi_arena_alloc(&arena, i);
		cr_assert_not_null(parts[i]);
		cr_assert_eq((uintptr_t)parts[i] % 16, 0);
		for (size_t j = 0; j < i; j++)
			cr_assert_eq(parts[i][j], 0);
		memset(parts[i], (int)(i & 0xFF) | 1, i);
	}
	for (size_t i = 0; i < 1000; i++)
		for (size_t j = 0; j < i; j++)
			cr_assert_eq(parts[i][j], (i & 0xFF) | 1);
	fragi_arena_fini(&arena);
	cr_expect_eq(arena.used_bytes, 0);
}

Test(arena, parts_are_aligned_as_asked)
{
	static const size_t sizes[] = {1, 40, 64, 576, 5000, 70000};
	struct fragi_arena arena = {0};

	for (size_t i = 0; i < 600; i++) {
		size_t size = sizes[i % 6], alignment = (size_t)16 << i % 5;
		unsigned char *small = fragi_arena_alloc(&arena, 16);
		unsigned char *part = fragi_arena_alloc_aligned(&arena, alignment, size);

		cr_assert_not_null(small);
		cr_assert_not_null(part);
		cr_assert_eq((uintptr_t)part % alignment, 0, "%zu", alignment);
		for (size_t j = 0; j < size; j++)
			cr_assert_eq(part[j], 0);
		memset(part, 1, size);
		cr_assert_eq(small[15], 0);
	}
	cr_expect_null(fragi_arena_alloc_aligned(&arena, 64, SIZE_MAX - 64));
	fragi_arena_fini(&arena);
}

Test(arena, a_large_part_does_not_waste_the_open_block)
{
	struct fragi_arena arena = {0};
	char *small = fragi_arena_alloc(&arena, 16), *large, *next;

	large = fragi_arena_alloc(&arena, 1 << 20);
	next = fragi_arena_alloc(&arena, 16);
	cr_assert_not_null(large);
	cr_expect(next > small && next < small + 64); /* a sanitizer leaves a gap */
	fragi_arena_fini(&arena);
}

Test(arena, the_limit_holds)
{
	struct fragi_arena arena = {.limit_bytes = 100};

	cr_expect_not_null(fragi_arena_alloc(&arena, 80));
	cr_expect_null(fragi_arena_alloc(&arena, 32));
	cr_expect_not_null(fragi_arena_alloc(&arena, 16));
	cr_expect_null(fragi_arena_alloc(&arena, 0));
	cr_expect_null(fragi_arena_alloc(&arena, SIZE_MAX));
	cr_expect_null(fragi_arena_alloc(&arena, SIZE_MAX / 2));
	fragi_arena_fini(&arena);
}

Test(arena, texts)
{
	struct fragi_arena arena = {0};

	cr_expect_null(fragi_arena_strdup(&arena, NULL));
	cr_expect_str_eq(fragi_arena_strdup(&arena, "abc"), "abc");
	cr_expect_str_eq(fragi_arena_strndup(&arena, "abc", 2), "ab");
	cr_expect_str_eq(fragi_arena_strndup(&arena, "abc", 20), "abc");
	cr_expect_str_eq(fragi_arena_printf(&arena, "%s.%d", "op", 3), "op.3");
	for (int length = 254; length <= 257; length++) {
		const char *text = fragi_arena_printf(&arena, "%*d", length, 7);

		cr_assert_eq(strlen(text), (size_t)length);
		cr_expect_str_eq(text + length - 2, " 7");
	}
	fragi_arena_fini(&arena);
}

Test(arena, short_memory_is_null)
{
	struct fragi_arena arena = {0};

	fragi_alloc_fail_after(0, INT64_MAX);
	cr_expect_null(fragi_arena_alloc(&arena, 16));
	cr_expect_null(fragi_arena_strdup(&arena, "x"));
	cr_expect_null(fragi_arena_printf(&arena, "x"));
	fragi_alloc_fail_off();
	fragi_arena_fini(&arena);
}
