// SPDX-License-Identifier: Apache-2.0
#include "../expected.h"
#include "../scratch.h"

#include <unistd.h>

/* Where two texts first differ, and what is printed of that. */
static const struct {
	const char *should, *is, *printed;
	int line;
} differences[] = {
	{"", "", "", 0},
	{"a\nb\n", "a\nb\n", "", 0},
	{"a\n", "b\n", "- a\n+ b\n", 1},
	{"", "a\n", "+ a\n", 1},
	{"a\nb\n", "a\n", "  a\n- b\n", 2},
	{"a\nb\n", "a\nbc\n", "  a\n- b\n+ bc\n", 2},
	{"a\nbc\n", "a\nb\n", "  a\n- bc\n+ b\n", 2},
	{"a\nb\n", "a\nb", "  a\n- b\n+ b\n", 2},
	{"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n", "1\n2\n3\n4\n0\n6\n7\n8\n9\n10\n",
	 "  2\n  3\n  4\n- 5\n- 6\n- 7\n- 8\n+ 0\n+ 6\n+ 7\n+ 8\n", 5},
};

Test(expected, shows_the_first_lines_that_differ)
{
	for (size_t i = 0; i < sizeof(differences) / sizeof(differences[0]); i++) {
		char *printed;
		size_t bytes;
		FILE *out = open_memstream(&printed, &bytes);
		int line = expected_difference(differences[i].should, differences[i].is, out);

		fclose(out);
		cr_expect_eq(line, differences[i].line, "%zu: %d", i, line);
		cr_expect_str_eq(printed, differences[i].printed);
		free(printed);
	}
}

Test(expected, reads_what_it_has_written)
{
	char here[4096], *text;

	cr_assert_not_null(getcwd(here, sizeof(here)));
	scratch_make();
	cr_assert_eq(chdir(scratch), 0);
	put("tests/data/none", "");
	text = expected_read("room/lives");
	cr_expect_str_eq(text, "");
	free(text);
	setenv("FRAG_TEST_WRITE_EXPECTED", "1", 1);
	expected_compare("room/lives", "first\nlast\n");
	unsetenv("FRAG_TEST_WRITE_EXPECTED");
	text = expected_read("room/lives");
	cr_expect_str_eq(text, "first\nlast\n");
	free(text);
	expected_compare("room/lives", "first\nlast\n");
	cr_assert_eq(chdir(here), 0);
	scratch_remove();
}
