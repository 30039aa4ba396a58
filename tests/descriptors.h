/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_DESCRIPTORS_H
#define TESTS_DESCRIPTORS_H

#include <criterion/criterion.h>
#include <sys/resource.h>

/* Skips the test where a process may not have so many descriptors. */
static inline void need_descriptors(rlim_t count)
{
	struct rlimit limit;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_cur >= count)
		return;
	limit.rlim_cur = count;
	if (limit.rlim_max < count || setrlimit(RLIMIT_NOFILE, &limit) < 0)
		cr_skip_test("it needs %lu descriptors, and the limit is %lu", (unsigned long)count,
			     (unsigned long)limit.rlim_max);
}

#endif
