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

static void run_input(const char *path, int (*one)(const uint8_t *bytes, size_t size))
{
	FILE *file = fopen(path, "rb");
	uint8_t *bytes = malloc(INPUT_MAX);
	double start;
	size_t size;

	cr_assert(file != NULL && bytes != NULL, "%s", path);
	size = fread(bytes, 1, INPUT_MAX, file);
	fclose(file);
	snprintf(current, sizeof(current), "%.8000s\n", path);
	start = cpu_seconds();
	one(bytes, size);
	cr_expect_lt(cpu_seconds() - start, SECONDS_MAX * SCALE, "%s takes longer than 1 s", path);
	free(bytes);
}

static void run_corpus(const char *target, int (*one)(const uint8_t *bytes, size_t size))
{
	char folder[4096], path[8192];
	struct rusage usage;
	struct dirent *entry;
	int count = 0;
	DIR *dir;

	snprintf(folder, sizeof(folder), "%s/corpus/%s", FUZZ_DIR, target);
	dir = opendir(folder);
	cr_assert_not_null(dir, "%s", folder);
	signal(SIGABRT, on_crash);
	signal(SIGSEGV, on_crash);
	one((const uint8_t *)"", 0);
	while ((entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		run_input(path, one);
		count++;
	}
	closedir(dir);
	cr_expect_gt(count, 0, "%s is empty", folder);
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
#ifdef HAVE_UCX
CORPUS(ucx);
#endif
