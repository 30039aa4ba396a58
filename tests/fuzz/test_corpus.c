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
 * FRAG_TEST_CHANGES=N also runs N changed copies of each, made from FRAG_TEST_SEED.
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
static uint64_t changes, seed;

/* Says which input it was. */
static void name_current(void)
{
	(void)!write(STDERR_FILENO, current, strlen(current));
}

static void on_crash(int number)
{
	name_current();
	signal(number, SIG_DFL);
	raise(number);
}

/* Of the sanitizers' runtime, where there is one. */
__attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)(void));

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static size_t draw(size_t below)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (size_t)(seed >> 33) % below;
}

/* Changes a few bytes or a stretch of an input, in a copy of its own size. */
static uint8_t *changed_copy(const uint8_t *bytes, size_t size, size_t *out_size)
{
	static const uint8_t odd[] = {0, 1, 0x7f, 0x80, 0xff, '\n', '0', '-'};
	size_t at = draw(size), length = draw(size - at < 16 ? size - at : 16) + 1;
	uint8_t *larger = malloc(size + length), *copy;
	size_t tail = size - at - length;

	memcpy(larger, bytes, size);
	switch (draw(5)) {
	case 0:
		memmove(larger + at, bytes + at + length, tail);
		size -= length;
		break;
	case 1:
		memcpy(larger + at + length, bytes + at, size - at);
		size += length;
		break;
	case 2:
		memcpy(larger + at, bytes + draw(size - length + 1), length);
		break;
	case 3:
		size = at;
		break;
	default:
		for (size_t left = 1 + draw(4); left > 0; left--, at = draw(size))
			larger[at] = draw(2) ? odd[draw(sizeof(odd))]
					     : (uint8_t)(larger[at] ^ 1 << draw(8));
	}
	copy = fuzz_copy(larger, size);
	free(larger);
	*out_size = size;
	return copy;
}

static void run_changed(const char *name, const uint8_t *bytes, size_t size,
			int (*one)(const uint8_t *bytes, size_t size))
{
	for (uint64_t n = 0; size > 0 && n < changes; n++) {
		size_t changed_size;
		uint8_t *changed = changed_copy(bytes, size, &changed_size);

		snprintf(current, sizeof(current), "%.8000s, change %llu\n", name,
			 (unsigned long long)n);
		one(changed, changed_size);
		free(changed);
	}
}

static void run_input(const char *name, const uint8_t *bytes, size_t size,
		      int (*one)(const uint8_t *bytes, size_t size))
{
	double start = cpu_seconds();

	snprintf(current, sizeof(current), "%.8000s\n", name);
	one(bytes, size);
	cr_expect_lt(cpu_seconds() - start, SECONDS_MAX * SCALE, "%s takes longer than 1 s", name);
	run_changed(name, bytes, size, one);
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
	const char *count = getenv("FRAG_TEST_CHANGES"), *first = getenv("FRAG_TEST_SEED");
	struct rusage usage;

	changes = count == NULL ? 0 : strtoull(count, NULL, 10);
	seed = first == NULL ? 0 : strtoull(first, NULL, 10);
	if (__sanitizer_set_death_callback != NULL)
		__sanitizer_set_death_callback(name_current);
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
