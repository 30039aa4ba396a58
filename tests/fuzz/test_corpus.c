// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/*
 * The corpora of the fuzz targets as plain tests: what each target's functions promise holds for
 * every input that was ever found to be worth keeping, within 1 s of processor time and 256 MB.
 */
#define SECONDS_MAX 1.0
#define MEMORY_KB_MAX (256l << 10)
#define INPUT_MAX (8u << 20)

/* Instrumented, everything takes more of both. */
#if defined(__SANITIZE_ADDRESS__)
#define SCALE 10
#else
#define SCALE 1
#endif

static char current[8192]; /* input */

/* Says which input it was. */
static void on_crash(int number)
{
	(void)!write(STDERR_FILENO, current, strlen(current));
	signal(number, SIG_DFL);
	raise(number);
}

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void run_input(const char *name, const uint8_t *bytes, size_t size,
		      int (*one)(const uint8_t *bytes, size_t size))
{
	double start = cpu_seconds();

	snprintf(current, sizeof(current), "%.8000s\n", name);
	one(bytes, size);
	cr_expect_lt(cpu_seconds() - start, SECONDS_MAX * SCALE, "%s takes longer than 1 s", name);
}

/* Undoes the escapes of a line in place (corpus.py says which there are). Returns the size. */
static size_t read_line(char *line)
{
	char *out = line;

	for (const char *at = line; *at != '\0' && *at != '\n'; out++) {
		unsigned int byte;

		if (*at != '\\') {
			*out = *at++;
		} else if (at[1] == 'x' && sscanf(at + 2, "%2x", &byte) == 1) {
			*out = (char)byte;
			at += 4;
		} else {
			*out = at[1];
			if (at[1] == 'n')
				*out = '\n';
			if (at[1] == 't')
				*out = '\t';
			at += 2;
		}
	}
	return (size_t)(out - line);
}

static int run_lines(const char *target, int (*one)(const uint8_t *bytes, size_t size))
{
	char path[4096], name[4200], *line = NULL;
	size_t capacity = 0;
	int count = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/corpus/%s.txt", FUZZ_DIR, target);
	file = fopen(path, "re");
	cr_assert_not_null(file, "%s", path);
	while (getline(&line, &capacity, file) >= 0) {
		size_t size = read_line(line);
		uint8_t *bytes = fuzz_copy((const uint8_t *)line, size);

		snprintf(name, sizeof(name), "%s:%d", path, ++count);
		run_input(name, bytes, size, one);
		free(bytes);
	}
	free(line);
	fclose(file);
	return count;
}

static int run_files(const char *target, int (*one)(const uint8_t *bytes, size_t size))
{
	char folder[4096], path[8192];
	uint8_t *bytes = malloc(INPUT_MAX);
	struct dirent *entry;
	int count = 0;
	DIR *dir;

	snprintf(folder, sizeof(folder), "%s/corpus/%s", FUZZ_DIR, target);
	dir = opendir(folder);
	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		FILE *file;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		file = fopen(path, "rbe");
		cr_assert(file != NULL && bytes != NULL, "%s", path);
		run_input(path, bytes, fread(bytes, 1, INPUT_MAX, file), one);
		fclose(file);
		count++;
	}
	if (dir != NULL)
		closedir(dir);
	free(bytes);
	return count;
}

static void run_corpus(const char *target, int (*one)(const uint8_t *bytes, size_t size))
{
	struct rusage usage;

	signal(SIGABRT, on_crash);
	signal(SIGSEGV, on_crash);
	one((const uint8_t *)"", 0);
	cr_expect_gt(run_lines(target, one) + run_files(target, one), 0, "%s has no input", target);
	getrusage(RUSAGE_SELF, &usage);
	cr_expect_lt(usage.ru_maxrss, MEMORY_KB_MAX * SCALE, "some input takes %ld kB",
		     usage.ru_maxrss);
}

#define CORPUS(target)                                                                             \
	int fuzz_##target(const uint8_t *bytes, size_t size);                                      \
	Test(corpus, target)                                                                       \
	{                                                                                          \
		run_corpus(#target, fuzz_##target);                                                \
	}                                                                                          \
	_Static_assert(1, "")

CORPUS(control);
CORPUS(source);
CORPUS(graph);
CORPUS(arguments);
CORPUS(units);
CORPUS(value);
CORPUS(message);
CORPUS(ledger);
CORPUS(remote);
CORPUS(tls);
CORPUS(sealed);
CORPUS(shm);
#ifdef HAVE_UCX
CORPUS(ucx);
CORPUS(preface);
#endif
