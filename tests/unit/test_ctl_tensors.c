// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "expected.h"
#include "scratch.h"

#include <fragctl/test.h>

/*
 * How `fragctl test` compares tensors that were emitted with files, and how it writes such files
 * anew: what differs, and what is written, compared with a recorded text.
 */
static const float some[] = {1, 2, 3, 4, 5, 6}, fifth[] = {1, 2, 3, 4, 5.5F, 6},
		   last[] = {1, 2, 3, 4, 5, 0}, odd[] = {NAN, INFINITY, 3, 4, 5, 6},
		   odder[] = {NAN, -INFINITY, 3, 4, 5, 6}, third[] = {1.0F / 3, 2, 3, 4, 5, 6};
static const double wide[] = {1, 2, 0.1, 4}, wider[] = {1, 2, 0.3, 4};
static const int8_t small[] = {-1, 2, -128, 127}, smaller[] = {-1, 2, -127, 127};
static const uint8_t bytes[] = {0, 200, 1, 255}, more[] = {0, 200, 1, 254};
static const uint16_t halves[] = {0x3c00, 0x4000}, others[] = {0x3c00, 0x4001};
static const int64_t longs[] = {INT64_MIN, 5}, longer[] = {INT64_MAX, 5};
static const uint64_t large[] = {UINT64_MAX, 5}, larger[] = {UINT64_MAX - 1, 5};

struct content {
	const char *type, *shape;
	const void *data;
	size_t size;
};

#define OF(type, shape, data)                                                                      \
	{                                                                                          \
		type, shape, data, sizeof(data)                                                    \
	}

static const struct {
	struct content expected, got;
	double tolerance;
} contents[] = {
	{OF("<f4", "(6,)", some), OF("<f4", "(6,)", some), 0},
	{OF("<f4", "(6,)", some), OF("<f4", "(6,)", fifth), 0.25},
	{OF("<f4", "(6,)", some), OF("<f4", "(6,)", fifth), 0.5},
	{OF("<f4", "(2, 3)", some), OF("<f4", "(2, 3)", fifth), 0},
	{OF("<f4", "(2, 3)", some), OF("<f4", "(2, 3)", last), 0.5},
	{OF("<f4", "(1, 3, 2)", some), OF("<f4", "(1, 3, 2)", last), 0},
	{OF("<f4", "(2, 3)", some), OF("<f4", "(3, 2)", some), 0},
	{OF("<f4", "(6,)", some), OF("<i4", "(6,)", some), 0},
	{OF("<f4", "(6,)", odd), OF("<f4", "(6,)", odd), 0},
	{OF("<f4", "(6,)", odd), OF("<f4", "(6,)", odder), 1},
	{OF("<f4", "(6,)", odd), OF("<f4", "(6,)", some), 9},
	{OF("<f4", "(6,)", some), OF("<f4", "(6,)", third), 0},
	{OF("<c8", "(3,)", some), OF("<c8", "(3,)", fifth), 0},
	{OF("<c8", "(3, 1)", some), OF("<c8", "(3, 1)", last), 0.5},
	{OF("<c8", "(3,)", some), OF("<c8", "(3,)", fifth), 0.5},
	{OF("<f8", "(4,)", wide), OF("<f8", "(4,)", wider), 0},
	{OF("<f8", "(4,)", wide), OF("<f8", "(4,)", wider), 0.25},
	{OF("<c16", "(2,)", wide), OF("<c16", "(2,)", wider), 0},
	{OF("|i1", "(4,)", small), OF("|i1", "(4,)", smaller), 9},
	{OF("|u1", "(4,)", bytes), OF("|u1", "(4,)", more), 9},
	{OF("|b1", "(4,)", bytes), OF("|b1", "(4,)", more), 9},
	{OF("<f2", "(2,)", halves), OF("<f2", "(2,)", others), 9},
	{OF("<i8", "(2,)", longs), OF("<i8", "(2,)", longer), 9},
	{OF("<u8", "(2,)", large), OF("<u8", "(2,)", larger), 9},
	{OF("<u8", "()", large), {"<u8", "()", larger, 8}, 0},
};

/* Lines whose files are e.npy and g.npy, of floats that are the same. */
static const struct {
	const char *expected, *got;
} lines[] = {
	{"- tensor \"a\" e.npy", "5ms tensor \"a\" 2:32[6] 77 @g.npy"},
	{"5ms tensor \"a\" e.npy", "6ms tensor \"a\" 2:32[6] 77 @g.npy"},
	{"- tensor \"a\" e.npy", "5ms tensor \"b\" 2:32[6] 77 @g.npy"},
	{"- tensor \"a\" none.npy", "5ms tensor \"a\" 2:32[6] 77 @g.npy"},
	{"- tensor \"a\" e.npy", "5ms tensor \"a\" 2:32[6] 77 @none.npy"},
	{"- tensor \"a\" AT/e.npy", "5ms tensor \"a\" 2:32[6] 77 @AT/g.npy"},
	{"- tensor \"a\" 2:32[6] 77", "5ms tensor \"a\" 2:32[6] 77 @g.npy"},
	{"- tensor \"a\" 2:32[6] 78", "5ms tensor \"a\" 2:32[6] 77 @g.npy"},
	{"- tensor \"a\" 2:32[5] 77", "5ms tensor \"a\" 2:32[6] 77"},
	{"- tensor \"a\" e.npy", "5ms tensor \"a\" 2:32[6] 77"},
	{"- tensor \"a\" e.npy tensor \"b\" e.npy", "- tensor \"a\" 2:32[6] 77 @g.npy"},
	{"- tensor \"a\" e.npy", "- tensor \"a\" 2:32[6] 77 @g.npy tensor \"b\" 2:32[6] 77 @g.npy"},
	{"- tensor \"a\" e.npy tensor \"b\" none.npy",
	 "- tensor \"a\" 2:32[6] 77 @g.npy tensor \"b\" 2:32[6] 77 @g.npy"},
	{"- tensor \"a\" e.npy tensor \"b\" 2:32[6] 78",
	 "- tensor \"a\" 2:32[6] 77 @g.npy tensor \"b\" 2:32[6] 77"},
	{"- tensor \"a\" 2:32[6] 70 tensor \"b\" 2:32[6] 78",
	 "- tensor \"a\" 2:32[6] 77 tensor \"b\" 2:32[6] 77"},
	{"- thing {\"a\": 1} tensor \"b\" e.npy",
	 "- thing {\"a\": 1} tensor \"b\" 2:32[6] 7 @g.npy"},
	{"- thing {\"a\": 1} tensor \"b\" 2:32[6] 7", "- thing {\"a\": 1} tensor \"b\" 2:32[6] 8"},
	{"- thing {\"a\": 1} tensor \"b\" 2:32[6] 7", "- thing {\"a\": 2} tensor \"b\" 2:32[6] 8"},
	{"- string a tensor \"b\" 1", "- string a tensor \"b\" 2"},
	{"- string a tensor \"b\" 1", "- string a tensor \"b\" 1"},
	{"- tensor other", "- tensor other"},
	{"- tensor other", "- tensor others"},
	{"- tensor \"a", "- tensor \"b"},
	{"- tensor \"a\"", "- tensor \"a\" 2:32[6] 77"},
	{"-", "5ms"},
	{"5ms", "5ms i64 3"},
	{"5ms\ti64 \t 3", "5ms i64 3"},
};

static void put_npy(const char *name, const struct content *content)
{
	char header[128];
	FILE *out = fopen(at(name), "w");
	int length;

	cr_assert_not_null(out);
	length = snprintf(header, sizeof(header),
			  "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", content->type,
			  content->shape);
	fprintf(out, "%cNUMPY%c%c%c%c%-*s\n", 0x93, 1, 0, 117, 0, 116, header);
	cr_assert_lt(length, 117);
	fwrite(content->data, 1, content->size, out);
	fclose(out);
}

/* Paths of this machine are left out. */
static void show(const char *text, FILE *out)
{
	for (const char *next; (next = strstr(text, scratch)) != NULL;
	     text = next + strlen(scratch))
		fprintf(out, "%.*sHERE", (int)(next - text), text);
	fputs(text, out);
}

static void show_differences(double tolerance, FILE *out)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct ctl_differences all;
	int r = ctl_compare(at("e.txt"), at("g.txt"), tolerance, &all, &err);

	fprintf(out, "  %d, of %zu messages %zu differ", r, all.messages, all.total);
	if (r < 0)
		fputs(": ", out);
	show(r < 0 ? err.text : "", out);
	fputc('\n', out);
	for (size_t i = 0; i < all.count; i++) {
		fprintf(out, "  message %zu, %s: ", all.items[i].message, all.items[i].field);
		show(all.items[i].expected != NULL ? all.items[i].expected : "nothing", out);
		fprintf(out, " | %s\n", all.items[i].got != NULL ? all.items[i].got : "nothing");
	}
	ctl_differences_fini(&all);
}

/* Behind a comment and a message, so that its number is not 1; AT is the folder. */
static void put_line(const char *name, const char *line)
{
	char text[512];
	size_t used = (size_t)snprintf(text, sizeof(text), "# %s\n- i64 1\n", name);

	for (; *line != '\0'; line++) {
		bool is_folder = strncmp(line, "AT", 2) == 0;

		used += (size_t)snprintf(text + used, sizeof(text) - used, "%.*s",
					 is_folder ? (int)sizeof(scratch) : 1,
					 is_folder ? scratch : line);
		line += is_folder;
	}
	put(name, text);
}

Test(ctl_tensors, are_compared, .init = scratch_make, .fini = scratch_remove)
{
	size_t size;
	char *text;
	FILE *out = open_memstream(&text, &size);

	for (size_t i = 0; i < FRAG_COUNT_OF(contents); i++) {
		put_npy("e.npy", &contents[i].expected);
		put_npy("g.npy", &contents[i].got);
		put_line("e.txt", "- tensor \"a\" e.npy");
		put_line("g.txt", "- tensor \"a\" 2:32[6] 77 @g.npy");
		fprintf(out, "%s %s, %s %s, tolerance %g\n", contents[i].expected.type,
			contents[i].expected.shape, contents[i].got.type, contents[i].got.shape,
			contents[i].tolerance);
		show_differences(contents[i].tolerance, out);
	}
	put_npy("e.npy", &contents[0].expected);
	put_npy("g.npy", &contents[0].got);
	for (size_t i = 0; i < FRAG_COUNT_OF(lines); i++) {
		put_line("e.txt", lines[i].expected);
		put_line("g.txt", lines[i].got);
		fprintf(out, "%s, %s\n", lines[i].expected, lines[i].got);
		show_differences(0, out);
	}
	fclose(out);
	expected_compare("fragctl/tensors", text);
	free(text);
}

static void show_file(const char *name, FILE *out)
{
	char text[1024];
	FILE *file = fopen(at(name), "r");

	if (file == NULL) {
		fprintf(out, "%s is not there\n", name);
		return;
	}
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	fprintf(out, "%s:\n", name);
	show(text, out);
}

/* What a port has emitted becomes what is expected of it, with files beside it. */
Test(ctl_tensors, are_written_anew, .init = scratch_make, .fini = scratch_remove)
{
	static const char got[] =
		"0ms tensor \"a\" 2:32[6] 77 @0.1.1.npy\n"
		"1ms\t thing {\"b\": 1} tensor \"c\" 2:32[6] 78 tensor \"d\" 2:32[5] 7 @0.2.2.npy\n"
		"2ms string as it is tensor \"a\" 2:32[6] 77 @0.3.1.npy\n"
		"3ms i64 4\n"
		"4ms tensor \"e\" plain.npy\n"
		"5ms i64 no end of line";
	char was[256], *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	put("got/0", got);
	put("got/0.1.1.npy", "the first\n");
	put("got/0.2.2.npy", "the second\n");
	put("got/0.3.1.npy", "the third\n");
	put("to/x.y.txt", "an older one\n");
	put("plain.npy", "not this\n");
	fprintf(out, "%d\n", ctl_test_update(at("got/0"), at("to/x.y.txt")));
	show_file("to/x.y.txt", out);
	show_file("to/x.y.1.1.npy", out);
	show_file("to/x.y.2.2.npy", out);
	show_file("to/x.y.3.1.npy", out);
	put("got/plain.npy", "plain\n");
	fprintf(out, "%d\n", ctl_test_update(at("got/0"), at("to/noend")));
	show_file("to/noend", out);
	show_file("to/noend.1.1.npy", out);
	show_file("to/noendplain.npy", out);
	show_file("to/noend.npy", out);
	fprintf(out, "%d\n", ctl_test_update(at("got/none"), at("to/x.y.txt")));
	fprintf(out, "%d\n", ctl_test_update(at("got/0"), at("none/x.txt")));
	cr_assert_not_null(getcwd(was, sizeof(was)));
	cr_assert_eq(chdir(scratch), 0);
	fprintf(out, "%d\n", ctl_test_update("got/0", "here.txt"));
	cr_assert_eq(chdir("got"), 0);
	fprintf(out, "%d\n", ctl_test_update("0", "there.txt"));
	show_file("here.1.1.npy", out);
	show_file("got/there.2.2.npy", out);
	cr_assert_eq(chdir(was), 0);
	fclose(out);
	expected_compare("fragctl/tensors_written", text);
	free(text);
}
