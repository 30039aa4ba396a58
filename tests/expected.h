/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_EXPECTED_H
#define TESTS_EXPECTED_H

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/*
 * A text of all that something does, compared with the file of tests/data/expected that holds what
 * it should be. Who changes what it does writes the file anew (make expected), and judges the
 * difference that git shows.
 */
#define EXPECTED_FOLDER "tests/data/expected/"
#define EXPECTED_AROUND 3

static inline void expected_path(const char *name, char *out, size_t size)
{
	snprintf(out, size, EXPECTED_FOLDER "%s.txt", name);
}

/* The folders of NAME, which may contain slashes, are made where they are missing. */
static inline void expected_write(const char *name, const char *text)
{
	char path[256];
	FILE *file;

	expected_path(name, path, sizeof(path));
	for (char *end = path + strlen("tests/data"); end != NULL; end = strchr(end + 1, '/')) {
		*end = '\0';
		(void)mkdir(path, 0777);
		*end = '/';
	}
	file = fopen(path, "w");
	cr_assert_not_null(file, "%s cannot be written: %s", path, strerror(errno));
	fputs(text, file);
	cr_assert_eq(fclose(file), 0, "%s cannot be written: %s", path, strerror(errno));
}

/* Returns what the file holds, which the caller frees; an empty text where there is none. */
static inline char *expected_read(const char *name)
{
	char path[256], *text, buffer[4096];
	size_t bytes, got;
	FILE *file, *out;

	expected_path(name, path, sizeof(path));
	out = open_memstream(&text, &bytes);
	cr_assert_not_null(out);
	file = fopen(path, "r");
	while (file != NULL && (got = fread(buffer, 1, sizeof(buffer), file)) > 0)
		fwrite(buffer, 1, got, out);
	if (file != NULL)
		fclose(file);
	fclose(out);
	return text;
}

static inline const char *expected_next_line(const char *line)
{
	line += strcspn(line, "\n");
	return line + (*line == '\n');
}

static inline void expected_show(FILE *out, char mark, const char *line, int lines)
{
	for (; lines > 0 && *line != '\0'; lines--, line = expected_next_line(line))
		fprintf(out, "%c %.*s\n", mark, (int)strcspn(line, "\n"), line);
}

/* Prints the first lines that differ; returns the number of the first one, 0 if none does. */
static inline int expected_difference(const char *should, const char *is, FILE *out)
{
	const char *before[EXPECTED_AROUND] = {0};
	int line = 1;

	for (; *is != '\0' || *should != '\0'; line++) {
		const char *next = expected_next_line(is),
			   *should_next = expected_next_line(should);

		if (next - is != should_next - should ||
		    memcmp(is, should, (size_t)(next - is)) != 0)
			break;
		before[line % EXPECTED_AROUND] = is;
		is = next;
		should = should_next;
	}
	if (*is == '\0' && *should == '\0')
		return 0;
	for (int i = line > EXPECTED_AROUND ? line - EXPECTED_AROUND : 1; i < line; i++)
		expected_show(out, ' ', before[i % EXPECTED_AROUND], 1);
	expected_show(out, '-', should, 1 + EXPECTED_AROUND);
	expected_show(out, '+', is, 1 + EXPECTED_AROUND);
	return line;
}

/*
 * Compares text, which consists of whole lines, with tests/data/expected/NAME.txt. It must be the
 * same on every machine: no times, paths, addresses or process ids of this one.
 */
static inline void expected_compare(const char *name, const char *text)
{
	const char *program = strrchr(__BASE_FILE__, '/') + 1;
	char *should;
	int line;

	if (getenv("FRAG_TEST_WRITE_EXPECTED") != NULL) {
		expected_write(name, text);
		return;
	}
	should = expected_read(name);
	line = expected_difference(should, text, stderr);
	free(should);
	cr_expect_eq(line, 0,
		     "from line %d on " EXPECTED_FOLDER
		     "%s.txt differs: - is there, + is what came; "
		     "if that is right, write it by: make expected ONLY=%.*s",
		     line, name, (int)strcspn(program, "."), program);
}

#endif
