/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_TEST_H
#define CTL_TEST_H

#include <fragctl/graph.h>
#include <text/node.h>

/*
 * The verb test: test.c has its flags and runs each test in a process of its own, test_file.c reads
 * the file of tests, test_compare.c compares what ports have emitted with what was expected.
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
	double tolerance;    /* of f64, absolute */
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
	size_t message;    /* from 1 */
	const char *field; /* time, type, value; "message": it is missing, or one too many */
	char *expected, *got;
};
struct ctl_differences {
	struct ctl_difference *items; /* the first ones */
	size_t count, total, messages;
};
#define CTL_DIFFERENCES_MAX 10

/* Compares two files line by line. Returns 0 or -errno (of either file, *out_path). */
int ctl_compare(const char *expected, const char *got, double tolerance,
		struct ctl_differences *out, const char **out_path);
void ctl_differences_fini(struct ctl_differences *differences);

#endif
