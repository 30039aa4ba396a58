/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_BUILT_H
#define TESTS_BUILT_H

/* Where the build has what tests load and start. */
#include <criterion/criterion.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The path of a file of the build, whose tests/FOLDER has this program; until the next call. */
static inline const char *built(const char *name)
{
	static char path[PATH_MAX + 64];
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);

	cr_assert_gt(n, 0);
	path[n] = '\0';
	for (int i = 0; i < 3; i++)
		*strrchr(path, '/') = '\0';
	snprintf(path + strlen(path), 64, "/%s", name);
	return path;
}

#endif
