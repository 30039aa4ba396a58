// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "built.h"
#include "expected.h"

/*
 * Runs the command lines of tests/data/fragctl/commands.txt in a copy of that folder, and compares
 * all that they print with a recorded text.
 */
#define PARTS 3 /* a test takes every third line: they may run beside each other */

/* Takes out of what programs write what differs between runs. */
#define STRIP                                                                                      \
	"strip() { sed -E 's/[0-9]{16,}/N/g; s/((host_pid|message_ns|duration_ns|shutdown_ns)"     \
	"\": )[0-9]+/\\1N/g'; }; "

static char here[] = "/tmp/frag-commands-XXXXXX";

/* Digits of a time of the log, or of how long something took: "2026-11-30T08:33:06.793Z". */
static size_t time_at(const char *text)
{
	size_t length = strspn(text, "0123456789-T:.");

	return length > 20 && text[length] == 'Z' ? length + 1 : 0;
}

/* " 1.4 ms" at the end of a line. */
static size_t duration_at(const char *text)
{
	size_t digits = text[0] == ' ' ? strspn(text + 1, "0123456789.") : 0;
	const char *unit = text + 1 + digits;

	return digits > 0 && (strcmp(unit, " us\n") == 0 || strcmp(unit, " ms\n") == 0 ||
			      strcmp(unit, " s\n") == 0)
		       ? strlen(text)
		       : 0;
}

/* Prints a line behind a mark, without what differs between machines and runs. */
static void put_line(FILE *out, char mark, const char *line)
{
	static char build[PATH_MAX];
	const struct {
		const char *is, *as;
	} names[] = {{here, "HERE"}, {build, "BUILD"}, {FRAG_VERSION, "VERSION"}};

	snprintf(build, sizeof(build), "%s", built(""));
	build[strlen(build) - 1] = '\0';
	fprintf(out, "  %c ", mark);
	for (size_t length; *line != '\0'; line += length) {
		size_t i = 0;

		while (i < 3 && strncmp(line, names[i].is, strlen(names[i].is)) != 0)
			i++;
		length = i < 3 ? strlen(names[i].is) : time_at(line);
		if (length > 0)
			fputs(i < 3 ? names[i].as : "TIME", out);
		else if ((length = duration_at(line)) > 0)
			fputs(" N\n", out);
		else
			length = 1, fputc(*line, out);
	}
}

/* What it writes to stdout, behind "|", and then to stderr, behind "!". */
static void run_line(FILE *out, const char *line)
{
	char command[4096], printed[16384], errors[64];
	FILE *pipe, *file;
	int status;

	snprintf(errors, sizeof(errors), "%s.errors", here);
	snprintf(command, sizeof(command), STRIP "{ cd %s && %s; } 2>%s", here, line, errors);
	fprintf(out, "$ %s\n", line);
	pipe = popen(command, "re");
	cr_assert_not_null(pipe);
	while (fgets(printed, sizeof(printed), pipe) != NULL)
		put_line(out, '|', printed);
	status = pclose(pipe);
	file = fopen(errors, "re");
	cr_assert_not_null(file);
	while (fgets(printed, sizeof(printed), file) != NULL)
		put_line(out, '!', printed);
	fclose(file);
	unlink(errors);
	fprintf(out, "  exit code %d%s\n", WEXITSTATUS(status),
		WIFEXITED(status) ? "" : ", by a signal");
}

static void run_part(int part)
{
	char command[PATH_MAX], line[1024], name[64], *text;
	FILE *in = fopen("tests/data/fragctl/commands.txt", "r"), *out;
	size_t bytes;

	cr_assert_not_null(in);
	umask(022);
	cr_assert_not_null(mkdtemp(here));
	snprintf(command, sizeof(command), "cp tests/data/fragctl/* %s", here);
	cr_assert_eq(system(command), 0);
	snprintf(command, sizeof(command), "%s:%s", built("bin"), getenv("PATH"));
	setenv("PATH", command, 1);
	setenv("HOME", here, 1);
	setenv("LC_ALL", "C.UTF-8", 1);
	setenv("TZ", "UTC", 1);
	setenv("COLUMNS", "100", 1);
	setenv("MALLOC_PERTURB_", "165", 1); /* memory that nobody has cleared is no zeros */
	unsetenv("FRAG_BUILD");
	out = open_memstream(&text, &bytes);
	for (int i = 0; fgets(line, sizeof(line), in) != NULL; i++) {
		line[strcspn(line, "\n")] = '\0';
		if (i % PARTS == part)
			run_line(out, line);
	}
	fclose(in);
	fclose(out);
	snprintf(command, sizeof(command), "rm -rf %s", here);
	cr_assert_eq(system(command), 0);
	snprintf(name, sizeof(name), "fragctl/commands%d", part + 1);
	expected_compare(name, text);
	free(text);
}

Test(commands, first_part)
{
	run_part(0);
}

Test(commands, second_part)
{
	run_part(1);
}

Test(commands, third_part)
{
	run_part(2);
}
