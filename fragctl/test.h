/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_TEST_H
#define CTL_TEST_H

#include <fragctl/graph.h>
#include <text/node.h>

/*
 * The verb test: test.c has its flags and runs each test in a process of its own, test_file.c reads
 * the file of tests, test_compare.c compares what ports have emitted with what was expected, and
 * test_tensor.c the tensors in it.
 */
struct ctl_test_file {
	const char *port; /* "scale.out" */
	const char *path;
};

struct ctl_test {
	const char *name;
	const char **arguments; /* --name=value */
	size_t argument_count;
	const char **sets; /* of `set`, as --set takes them */
	size_t set_count;
	struct ctl_test_file *inputs, *outputs;
	size_t input_count, output_count;
	int64_t duration_ms; /* of the clock; 0: until the application ends */
	double tolerance;    /* of floating-point numbers, absolute */
};

struct ctl_tests {
	struct fragi_arena arena;
	struct ctl_test *items;
	size_t count;
};

/* Returns an exit code; what is wrong was printed. */
int ctl_tests_read(struct ctl_tests *tests, const char *path);
void ctl_tests_fini(struct ctl_tests *tests);

/* One line that is not as expected; NULL: it is not there at all. */
struct ctl_difference {
	size_t message; /* from 1 */
	/*
	 * time, type, value, value.FIELD, tensor "NAME", tensor "NAME"[1, 2]; "message": it is
	 * missing, or one too many
	 */
	char *field;
	char *expected, *got;
};
struct ctl_differences {
	struct ctl_difference *items; /* the first ones */
	size_t count, total, messages;
};
#define CTL_DIFFERENCES_MAX 10

/*
 * Compares two files line by line. Returns 0; a negative errno with a sentence when one of them, or
 * a file of a tensor that they name, cannot be read.
 */
int ctl_compare(const char *expected, const char *got, double tolerance,
		struct ctl_differences *out, struct frag_err *err);
void ctl_differences_fini(struct ctl_differences *differences);
/* Notes that the present message differs; the first ones are kept. */
void ctl_differs(struct ctl_differences *all, const char *field, const char *expected,
		 const char *got);

/* A line of either file, for sentences. */
struct ctl_test_line {
	const char *path;
	size_t number;
	const char *begin;
};

/*
 * A tensor of a line: `"NAME" FILE.npy`, or `"NAME" CODE:BITS[SHAPE] SUM`, behind which an emitted
 * one has `@FILE.npy`.
 */
struct ctl_test_tensor {
	const char *name;
	const char *shape; /* CODE:BITS[SHAPE] SUM; "": the file counts */
	const char *file;  /* NULL: none */
	const char *place; /* in the line, from the file or the shape on */
};
/* Cuts the next tensor off *text, behind `tensor `. Returns whether there is one. */
bool ctl_test_tensor_next(char **text, struct ctl_test_tensor *out);
/* As ctl_compare, for the tensors of two lines. */
int ctl_compare_tensors(struct ctl_differences *all, char *expected, char *got,
			const struct ctl_test_line *expected_line,
			const struct ctl_test_line *got_line, double tolerance,
			struct frag_err *err);
/*
 * Copies what was emitted to a file of expected messages; the files of its tensors become files
 * beside it. Returns 0 or a negative errno.
 */
int ctl_test_update(const char *got, const char *expected);

#endif
