// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

/* Whether the kernel was asked for huge pages where `memory` lies: "VmFlags: rd wr ... hg". */
static bool asks_for_huge_pages(const void *memory)
{
	unsigned long first, end;
	bool here = false, asks = false;
	FILE *maps = fopen("/proc/self/smaps", "r");
	char line[512];

	cr_assert_not_null(maps);
	while (fgets(line, sizeof(line), maps) != NULL) {
		if (sscanf(line, "%lx-%lx ", &first, &end) == 2)
			here = (uintptr_t)memory >= first && (uintptr_t)memory < end;
		else if (here && strncmp(line, "VmFlags:", 8) == 0)
			asks = strstr(line, " hg") != NULL;
	}
	fclose(maps);
	return asks;
}

Test(alloc, bulk_memory_lies_in_huge_pages)
{
	const size_t huge = 2 << 20;
	unsigned char *small = fragi_bulk_alloc(1000), *large = fragi_bulk_alloc(3 * huge + 5);

	cr_assert_not_null(small);
	cr_assert_not_null(large);
	cr_expect_eq((uintptr_t)small % 64, 0);
	cr_expect_eq((uintptr_t)large % huge, 0);
	memset(small, 1, 1000);
	memset(large, 1, 3 * huge + 5);
	if (access("/sys/kernel/mm/transparent_hugepage/enabled", F_OK) == 0) {
		cr_expect(asks_for_huge_pages(large));
		cr_expect(asks_for_huge_pages(large + 3 * huge - 1));
	}
	fragi_free(small);
	fragi_free(large);
	/* Sanitizers report a request that no machine can meet. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	cr_expect_null(fragi_bulk_alloc(SIZE_MAX - 4096));
#endif
}
