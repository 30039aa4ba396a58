// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "draw.h"

#include <base/alloc.h>
#include <base/diag.h>
#include <base/sentence.h>

Test(error, the_first_sentence_stays)
{
	struct frag_err err = FRAG_ERR_INIT;

	cr_expect_eq(frag_err_set(&err, -EINVAL, "no %s", "shape"), -EINVAL);
	cr_expect_eq(frag_err_set(&err, -ENOMEM, "later"), -ENOMEM);
	cr_expect_eq(err.code, -EINVAL);
	cr_expect_str_eq(err.text, "no shape");
}

Test(error, accepts_null_and_zeroed)
{
	struct frag_err err = {0};

	cr_expect_eq(frag_err_set(NULL, -EIO, "x"), -EIO);
	cr_expect_eq(frag_err_set(&err, -EIO, "x"), -EIO);
	cr_expect_str_eq(err.text, "x");
}

Test(error, a_sentence_has_no_newline_and_no_half_character)
{
	struct frag_err err = FRAG_ERR_INIT;
	char text[2000];

	frag_err_set(&err, -EIO, "a\nb\rc");
	cr_expect_str_eq(err.text, "a b c");

	memset(&err, 0, sizeof(err));
	memset(text, 'x', sizeof(text));
	memcpy(text + sizeof(err.text) - 3, "\xE2\x82\xAC", 3); /* one byte of it does not fit */
	text[sizeof(text) - 1] = '\0';
	frag_err_set(&err, -EIO, "%s", text);
	cr_expect_eq(strlen(err.text), sizeof(err.text) - 1);
	cr_expect_str_eq(err.text + strlen(err.text) - 5, "xx...", "a cut is marked");
}

/* A text that does not fit ends with a mark, which stands behind a whole character. */
Test(error, a_sentence_that_is_cut_says_so)
{
	static const struct {
		const char *text, *in_ten;
	} rows[] = {
		{"", ""},
		{"12345678", "12345678"},
		{"123456789", "123456789"},
		{"1234567890", "123456..."},
		{"12345\xC3\xA9xyz", "12345..."},
		{"1234\xC3\xA9zyxw", "1234\xC3\xA9..."},
		{"123\xF0\x9F\x98\x80zyxw", "123..."},
		{"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80", "\x80\x80\x80..."},
	};
	char out[11], small[4] = "abc";

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		out[10] = '!';
		cr_expect_eq(fragi_sentence(out, 10, "%s", rows[i].text), out);
		cr_expect_str_eq(out, rows[i].in_ten);
		out[0] = '\0';
		for (const char *c = rows[i].text; *c != '\0'; c++)
			fragi_sentence_add(out, 10, "%c", *c);
		cr_expect_str_eq(out, rows[i].in_ten, "what is added behind a cut is left out");
		cr_expect_eq(out[10], '!');
	}
	fragi_sentence(small, 3, "defg");
	cr_expect_str_eq(small, "de", "there is no room for a mark");
}

Test(error, a_sentence_holds_nothing_that_a_terminal_obeys)
{
	struct frag_err err = FRAG_ERR_INIT;

	frag_err_set(&err, -EINVAL, "unknown \"%s\"", "a\x1b[2Jb\tc\x07\x7f \xc3\xa9");
	cr_expect_str_eq(err.text, "unknown \"a?[2Jb c?? \xc3\xa9\"");
	err = (struct frag_err)FRAG_ERR_INIT;
	frag_err_set(&err, -EINVAL, "unknown \"%s\"", "a\xff\xc3 \x80\xc2\x9b");
	cr_expect_str_eq(err.text, "unknown \"a?? ???\"", "nor what breaks the encoding of a log");
}

Test(error, an_older_callers_smaller_struct_is_not_overrun)
{
	struct {
		struct frag_err err;
		char behind;
	} old;

	memset(&old, 0, sizeof(old));
	old.err.struct_size = offsetof(struct frag_err, text) + 8;
	frag_err_set(&old.err, -EIO, "0123456789");
	cr_expect_str_eq(old.err.text, "0123...");
	cr_expect_eq(old.err.text[8], 0);
}

Test(error, every_code_has_a_text)
{
	cr_expect_str_eq(frag_strerror(-ENOBUFS), "no room in the queue");
	cr_expect_str_eq(frag_strerror(-EACCES), "Permission denied");
	cr_expect_str_eq(frag_strerror(-EMFILE),
			 "Too many open files (raise the limit: ulimit -n)");
	cr_expect_str_eq(frag_strerror(0), "no error");
	cr_expect_str_eq(frag_strerror(FRAG_DONE), "done");
	cr_expect_str_eq(frag_strerror(-100000), "unknown error");
	cr_expect_str_eq(frag_strerror(77), "unknown error");
	cr_expect_str_eq(frag_strerror(INT32_MIN), "unknown error");
}

Test(diag, keeps_places_and_counts_the_rest)
{
	struct fragi_diag diag = {0};
	char line[256];

	for (int i = 0; i < FRAGI_DIAG_MAX + 7; i++)
		cr_expect_eq(fragi_diag_add(&diag, -EINVAL, "app.yaml", i + 1, 9, "error %d", i),
			     -EINVAL);
	cr_expect_eq(diag.count, FRAGI_DIAG_MAX);
	cr_expect_eq(diag.beyond, 7);
	cr_expect_str_eq(fragi_err_line(&diag.items[13], line, sizeof(line)),
			 "app.yaml:14:9: error 13");
	fragi_diag_fini(&diag);
	cr_expect_eq(diag.count, 0);
}

Test(diag, what_was_wanted_belongs_to_the_last_error_that_was_kept)
{
	struct fragi_diag diag = {0};

	fragi_diag_compare(&diag, "a", "b");
	for (int i = 0; i < FRAGI_DIAG_MAX; i++)
		fragi_diag_add(&diag, -EINVAL, NULL, 0, 0, "error %d", i);
	fragi_diag_compare(&diag, "a map", "a list");
	fragi_diag_add(&diag, -EINVAL, NULL, 0, 0, "one too many");
	fragi_diag_compare(&diag, "a number", "a text");
	cr_expect_str_eq(diag.items[FRAGI_DIAG_MAX - 1].required, "a map");
	cr_expect_str_eq(diag.items[FRAGI_DIAG_MAX - 1].provided, "a list");
	cr_expect_str_eq(diag.items[0].required, "");
	fragi_diag_fini(&diag);
}

/* The order that is wanted: by file, as first named, line and column; equal places as they came. */
static int compare_places(const struct frag_err *items, size_t a, size_t b)
{
	size_t files[2] = {0, 0};

	while (strcmp(items[files[0]].file, items[a].file) != 0)
		files[0]++;
	while (strcmp(items[files[1]].file, items[b].file) != 0)
		files[1]++;
	return files[0] != files[1]                 ? (int)files[0] - (int)files[1]
	       : items[a].line != items[b].line     ? items[a].line - items[b].line
	       : items[a].column != items[b].column ? items[a].column - items[b].column
						    : (int)a - (int)b;
}

Test(diag, is_sorted_by_place_and_says_nothing_twice)
{
	static const char *const files[] = {"b.yaml", "a.yaml", "c.yaml", NULL};

	draw_from(3);
	for (int round = 0; round < 400; round++) {
		const size_t count = draw(14), first = draw(3);
		struct frag_err before[16], wanted[16];
		struct fragi_diag diag = {0};
		size_t left = 0, rest = 0;
		bool taken[16] = {false};

		for (size_t i = 0; i < first + count; i++)
			fragi_diag_add(&diag, -EINVAL, DRAW_OF(files), (int)draw(3), (int)draw(2),
				       "error %u", draw(3));
		for (size_t i = 0; i < diag.count; i++)
			before[i] = diag.items[i];
		if (diag.count > first)
			rest = diag.count - first;
		for (size_t i = 0; i < rest; i++) {
			size_t least = SIZE_MAX, k;

			for (k = 0; k < rest; k++)
				if (!taken[k] && (least == SIZE_MAX ||
						  compare_places(before + first, k, least) < 0))
					least = k;
			taken[least] = true;
			for (k = 0; k < left; k++)
				if (wanted[k].line == before[first + least].line &&
				    wanted[k].column == before[first + least].column &&
				    strcmp(wanted[k].file, before[first + least].file) == 0 &&
				    strcmp(wanted[k].text, before[first + least].text) == 0)
					break;
			if (k == left)
				wanted[left++] = before[first + least];
		}
		fragi_diag_sort(&diag, first);
		cr_assert_eq(diag.count, (count == 0 ? first : first + left));
		cr_expect_eq(memcmp(diag.items, before, first * sizeof(*before)), 0);
		cr_expect_eq(memcmp(diag.items + first, wanted, left * sizeof(*wanted)), 0, "%d",
			     round);
		fragi_diag_fini(&diag);
	}
}

Test(diag, lines_without_a_place)
{
	struct fragi_diag diag = {0};
	struct frag_err err = FRAG_ERR_INIT;
	char line[64];

	frag_err_set(&err, -ENOENT, "gone");
	cr_expect_eq(fragi_diag_add_err(&diag, &err), -ENOENT);
	cr_expect_str_eq(fragi_err_line(&diag.items[0], line, sizeof(line)), "gone");
	fragi_diag_add(&diag, -ENOENT, "a.yaml", 0, 0, "not there");
	cr_expect_str_eq(fragi_err_line(&diag.items[1], line, sizeof(line)), "a.yaml: not there");
	cr_expect_str_eq(fragi_err_line(&diag.items[1], line, 7), "a.yaml");
	fragi_diag_fini(&diag);
}

Test(diag, short_memory_is_counted)
{
	struct fragi_diag diag = {0};

	fragi_alloc_fail_after(0, 1);
	cr_expect_eq(fragi_diag_add(&diag, -EINVAL, NULL, 0, 0, "lost"), -EINVAL);
	fragi_alloc_fail_off();
	cr_expect_eq(diag.count, 0);
	cr_expect_eq(diag.beyond, 1);
	fragi_diag_fini(&diag);
}
