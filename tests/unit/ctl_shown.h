/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_CTL_SHOWN_H
#define TESTS_UNIT_CTL_SHOWN_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <unistd.h>

/*
 * What a part of fragctl prints on stdout and stderr, as lines of a recorded text: behind | and !.
 */
static struct {
	int fds[2];
	FILE *printed[2];
} shown;

static inline void shown_begin(void)
{
	fflush(NULL);
	for (int i = 0; i < 2; i++) {
		shown.fds[i] = dup(i + 1);
		shown.printed[i] = tmpfile();
		cr_assert_not_null(shown.printed[i]);
		dup2(fileno(shown.printed[i]), i + 1);
	}
}

static inline void shown_end(FILE *out)
{
	static char line[1 << 16];

	fflush(NULL);
	for (int i = 0; i < 2; i++) {
		dup2(shown.fds[i], i + 1);
		close(shown.fds[i]);
		rewind(shown.printed[i]);
		while (fgets(line, sizeof(line), shown.printed[i]) != NULL)
			fprintf(out, "  %c %s%s", i == 0 ? '|' : '!', line,
				strchr(line, '\n') != NULL ? "" : "(no end of line)\n");
		fclose(shown.printed[i]);
	}
}

#endif
