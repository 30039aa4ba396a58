/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_LOGGED_H
#define TESTS_UNIT_LOGGED_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* What is logged and printed between begin and end, to be compared: without the times. */
static int logged_fd, logged_stderr, logged_stdout;

static inline void logged_begin(void)
{
	logged_fd = memfd_create("log", MFD_CLOEXEC);
	cr_assert_geq(logged_fd, 0);
	fflush(stdout);
	logged_stderr = dup(STDERR_FILENO);
	logged_stdout = dup(STDOUT_FILENO);
	dup2(logged_fd, STDERR_FILENO);
	dup2(logged_fd, STDOUT_FILENO);
}

static inline void logged_end(FILE *out)
{
	char text[40000];
	ssize_t size;

	fflush(stdout);
	dup2(logged_stderr, STDERR_FILENO);
	dup2(logged_stdout, STDOUT_FILENO);
	close(logged_stderr);
	close(logged_stdout);
	size = pread(logged_fd, text, sizeof(text) - 1, 0);
	cr_assert_geq(size, 0);
	close(logged_fd);
	text[size] = '\0';
	for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"))
		if (line[0] == '2' && strchr(line, 'Z') != NULL)
			fprintf(out, "  logs%s\n", strchr(line, ' '));
		else
			fprintf(out, "  prints %s\n", line);
}

#endif
