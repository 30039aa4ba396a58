// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <stdint.h>

#include <base/alloc.h>

Test(alloc, fails_exactly_the_named_allocations)
{
	void *first, *second, *third, *fourth;

	fragi_alloc_fail_after(1, 2);
	first = fragi_malloc(8);
	second = fragi_calloc(1, 8);
	third = fragi_aligned_alloc(64, 8);
	fourth = fragi_strdup("x");
	cr_expect_eq(fragi_alloc_fail_off(), 2);
	cr_expect_not_null(first);
	cr_expect_null(second);
	cr_expect_null(third);
	cr_expect_str_eq(fourth, "x");
	fragi_free(first);
	fragi_free(fourth);
}

Test(alloc, a_failed_realloc_keeps_the_memory)
{
	char *memory = fragi_strdup("kept");

	fragi_alloc_fail_after(0, INT64_MAX);
	cr_expect_null(fragi_realloc(memory, 1000));
	cr_expect_eq(fragi_alloc_fail_off(), 1);
	cr_expect_str_eq(memory, "kept");
	fragi_free(memory);
}

Test(alloc, aligned_memory_is_aligned)
{
	void *memory = fragi_aligned_alloc(64, 1000);

	cr_assert_not_null(memory);
	cr_expect_eq((uintptr_t)memory % 64, 0);
	fragi_free(memory);
}
