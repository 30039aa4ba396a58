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

/* Of two that are near the nearer one, and of two that are as near the first, in either order. */
Test(suggest, the_nearest_of_similar_names)
{
	static const char *const orders[][2] = {{"output1", "output22"}, {"output22", "output1"}};
	static const char *const equal[] = {"in_a", "in_b"};

	for (size_t i = 0; i < 2; i++)
		cr_expect_str_eq(fragi_suggest("output", orders[i], 2), "output1");
	cr_expect_str_eq(fragi_suggest("in_c", equal, 2), "in_a");
}

Test(suggest, a_name_that_has_the_word_as_a_part)
{
	static const char *const types[] = {"video_recorder", "video_replayer"};

	cr_expect_str_eq(fragi_suggest("replayer", types, 2), "video_replayer");
	cr_expect_null(fragi_suggest("ayer", types, 2), "short words are parts of too many");
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

Test(suggest, choices_are_the_same_in_either_case_and_with_underscores)
{
	static const struct {
		const char *a, *b;
		bool same;
	} pairs[] = {
		{"catch_up", "CatchUp", true},
		{"CatchUp", "catch_up", true},
		{"raise", "RAISE", true},
		{"_a_", "a", true},
		{"", "", true},
		{"", "_", true},
		{"catch_up", "CatchU", false},
		{"CatchU", "catch_up", false},
		{"raise", "rise", false},
		{"", "a", false},
		{"a", "", false},
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		cr_expect_eq(fragi_same_choice(pairs[i].a, pairs[i].b), pairs[i].same, "%s, %s",
			     pairs[i].a, pairs[i].b);
}

Test(suggest, a_list_that_is_cut_says_so)
{
	static char texts[30][64];
	const char *listed[30];
	char advice[512];

	for (int i = 0; i < 30; i++) {
		snprintf(texts[i], sizeof(texts[i]), "n%d", i);
		listed[i] = texts[i];
	}
	fragi_advise(advice, sizeof(advice), "other", "known", listed, 24);
	cr_expect_str_eq(advice + strlen(advice) - 8, "n22, n23", "%s", advice);
	fragi_advise(advice, sizeof(advice), "other", "known", listed, 25);
	cr_expect_str_eq(advice + strlen(advice) - 8, "n23, ...", "%s", advice);
	for (int i = 0; i < 30; i++)
		snprintf(texts[i], sizeof(texts[i]), "%060d", i);
	fragi_advise(advice, sizeof(advice), "other", "known", listed, 6);
	cr_expect_str_eq(advice + strlen(advice) - 6, "000005", "%s", advice);
	fragi_advise(advice, sizeof(advice), "other", "known", listed, 9);
	cr_expect_str_eq(advice + strlen(advice) - 7, "06, ...", "%s", advice);
}
