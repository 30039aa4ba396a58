/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_PRINTED_H
#define TESTS_UNIT_PRINTED_H

/* What stands in a text that was printed. */
#include <criterion/criterion.h>
#include <string.h>

/* Each of the parts is in the text; each that is not is shown with it. */
#define EXPECT_IN(text, ...)                                                                       \
	expect_in(text, (const char *const[]){__VA_ARGS__},                                        \
		  sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

static inline void expect_in(const char *text, const char *const *parts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		cr_expect_not_null(strstr(text, parts[i]), "%s is not in\n%s", parts[i], text);
}

#endif
