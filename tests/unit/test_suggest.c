// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <string.h>

#include <base/units.h>

static const char *const names[] = {"threshold", "factor", "path", NULL, "realtime", "repeat"};

static const char *suggest(const char *word)
{
	return fragi_suggest(word, names, sizeof(names) / sizeof(names[0]));
}

Test(suggest, the_nearest_name)
{
	cr_expect_str_eq(suggest("treshold"), "threshold");
	cr_expect_str_eq(suggest("fcator"), "factor");
	cr_expect_str_eq(suggest("PATH"), "path");
	cr_expect_str_eq(suggest("repaet"), "repeat");
	cr_expect_str_eq(suggest("real_time"), "realtime");
}

Test(suggest, nothing_when_none_is_near)
{
	char longest[300];

	cr_expect_null(suggest("colour"));
	cr_expect_null(suggest("p"));
	cr_expect_null(suggest(""));
	cr_expect_null(fragi_suggest("x", NULL, 0));
	memset(longest, 'a', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	cr_expect_null(suggest(longest));
}
