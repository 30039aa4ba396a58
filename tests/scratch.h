/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SCRATCH_H
#define TESTS_SCRATCH_H

/* A folder of the test, and the files in it. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char scratch[] = "/tmp/frag-scratch-XXXXXX";

static inline void scratch_make(void)
{
	cr_assert_not_null(mkdtemp(scratch));
}

static inline void scratch_remove(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", scratch);
	cr_expect_eq(system(command), 0);
}

/* The path of "driver/version" and the like; eight of them at a time. */
static inline const char *at(const char *name)
{
	static char paths[8][256];
	static size_t next;
	char *path = paths[next++ % 8];

	snprintf(path, sizeof(paths[0]), "%s/%s", scratch, name);
	return path;
}

/* Writes such a file; the folders above it are made where they are missing. */
static inline void put(const char *name, const char *text)
{
	char path[256];
	FILE *file;

	for (const char *end = strchr(name, '/'); end != NULL; end = strchr(end + 1, '/')) {
		snprintf(path, sizeof(path), "%s/%.*s", scratch, (int)(end - name), name);
		(void)mkdir(path, 0700);
	}
	file = fopen(at(name), "w");
	cr_assert_not_null(file, "%s", name);
	fputs(text, file);
	fclose(file);
}

#endif
