// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"
#include "testing/testing.h"

#define TENSORS 5

static char path[200];

static void name_file(void)
{
	const char *folder = getenv("TMPDIR");

	snprintf(path, sizeof(path), "%s/frag-sink-%d", folder != NULL ? folder : "/tmp",
		 (int)getpid());
}

static void remove_file(void)
{
	unlink(path);
}

TestSuite(ops_sink, .init = name_file, .fini = remove_file);

/* Removes the file of a tensor. Returns whether it was there. */
static bool take_file(int message, int tensor)
{
	char name[240];

	snprintf(name, sizeof(name), "%s.%d.%d.npy", path, message, tensor);
	return unlink(name) == 0;
}

static int count_lines(int *out_files)
{
	char line[400];
	FILE *in = fopen(path, "r");
	int lines = 0;

	cr_assert_not_null(in);
	while (fgets(line, sizeof(line), in) != NULL) {
		lines++;
		for (const char *at = line; (at = strstr(at, " @")) != NULL; at++)
			(*out_files)++;
	}
	fclose(in);
	return lines;
}

/* A tensor gets its file while those before have fewer bytes than the limit. */
Test(ops_sink, tensors_have_files_up_to_so_many_bytes)
{
	static const struct {
		const char *limit;
		int files;
	} rows[] = {{"0", 0},  {"1", 1},  {"16", 1}, {"17", 2}, {"32", 2},
		    {"63", 4}, {"64", 4}, {"65", 5}, {"80", 5}};
	/* The second message has two, so that the last file may be in the middle of one. */
	static const int of_message[] = {1, 2, 1, 1};

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		struct frag_harness *h =
			make(&testing_sink_type,
			     FRAG_ARGS({"path", path}, {"max_tensor_bytes", rows[i].limit}));
		int found = 0, files = 0, number = 0;

		for (size_t m = 0; m < FRAG_COUNT_OF(of_message); m++) {
			struct frag_message *message = frag_message_create();
			const float data[] = {(float)m, 1, 2, 3};

			cr_assert_not_null(message);
			for (int k = 0; k < of_message[m]; k++)
				cr_assert_eq(frag_message_add_tensor(message, k == 0 ? "" : "b",
								     numbers(1, 4, data)),
					     0);
			cr_assert_eq(frag_harness_give(h, "in", message), 0);
			cr_assert_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
		}
		frag_harness_destroy(h);
		cr_expect_eq(count_lines(&files), 4, "limit %s", rows[i].limit);
		cr_expect_eq(files, rows[i].files, "limit %s: %d", rows[i].limit, files);
		for (int m = 0; m < 4; m++) {
			for (int k = 0; k < of_message[m]; k++, number++) {
				const bool is_there = take_file(m + 1, k);

				found += is_there;
				cr_expect_eq(is_there, number < rows[i].files,
					     "limit %s: file %d of message %d", rows[i].limit, k,
					     m + 1);
			}
		}
		cr_expect(number == TENSORS && found == rows[i].files);
	}
}

Test(ops_sink, a_link_that_somebody_planted_is_replaced)
{
	struct frag_harness *h;
	char kept[240], line[16] = "";
	struct stat at;
	FILE *file;

	snprintf(kept, sizeof(kept), "%s-kept", path);
	file = fopen(kept, "w");
	cr_assert_not_null(file);
	fputs("kept", file);
	fclose(file);
	cr_assert_eq(symlink(kept, path), 0);

	h = make(&testing_sink_type, FRAG_ARGS({"path", path}));
	frag_harness_destroy(h);
	cr_assert_eq(lstat(path, &at), 0);
	cr_expect(S_ISREG(at.st_mode));
	file = fopen(kept, "r");
	cr_assert_not_null(file);
	cr_expect_not_null(fgets(line, sizeof(line), file));
	cr_expect_str_eq(line, "kept");
	fclose(file);
	unlink(kept);
}
