// SPDX-License-Identifier: Apache-2.0
/*
 * What the machine itself takes, in the run that frag is measured in:
 *   floor hop MESSAGES      two calls through pointers that hand a number over in a ring, ns a
 *   message
 *   floor cache MESSAGES    the same number from core to core and back, ns one way
 *   floor memcpy BYTES      ns a copy
 *   floor yaml FILE         ms libyaml alone takes to read a file
 *   floor malloc COUNT      ms to allocate and name COUNT objects of 256 bytes
 *   floor operators COUNT   ms to allocate what COUNT operators of a line take, and to name them
 *   floor run COUNT COMMAND...  ms from fork to the end of a program, the median of COUNT runs
 * By the clock and of processor time.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <yaml.h>

static double now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

struct ring {
	_Atomic uint64_t head, tail;
	int64_t slots[4];
};

static int produce(struct ring *ring, int64_t *value)
{
	uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);

	if (head - atomic_load_explicit(&ring->tail, memory_order_acquire) == 1)
		return 0;
	ring->slots[head & 3] = (*value)++;
	atomic_store_explicit(&ring->head, head + 1, memory_order_release);
	return 1;
}

static int consume(struct ring *ring, int64_t *value)
{
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);

	if (atomic_load_explicit(&ring->head, memory_order_acquire) == tail)
		return 0;
	*value += ring->slots[tail & 3];
	atomic_store_explicit(&ring->tail, tail + 1, memory_order_release);
	return 1;
}

static int64_t hop(int64_t count)
{
	static int (*volatile const ticks[2])(struct ring *, int64_t *) = {produce, consume};
	struct ring ring = {0};
	int64_t values[2] = {0, 0};

	for (int64_t i = 0; i < count; i++)
		for (int k = 0; k < 2; k++)
			ticks[k](&ring, &values[k]);
	return values[1];
}

static _Atomic int64_t turn __attribute__((aligned(64)));
static int64_t turns;

static void *answer(void *arg)
{
	for (int64_t i = 1; i < turns; i += 2) {
		while (atomic_load_explicit(&turn, memory_order_acquire) != i)
			;
		atomic_store_explicit(&turn, i + 1, memory_order_release);
	}
	return NULL;
}

static void cache(int64_t count)
{
	pthread_t thread;

	turns = count;
	if (pthread_create(&thread, NULL, answer, NULL) != 0)
		exit(1);
	for (int64_t i = 0; i < turns; i += 2) {
		atomic_store_explicit(&turn, i + 1, memory_order_release);
		while (atomic_load_explicit(&turn, memory_order_acquire) != i + 2)
			;
	}
	pthread_join(thread, NULL);
}

static double copies(size_t bytes)
{
	int64_t count = (int64_t)((1u << 28) / bytes) + 1;
	char *from = malloc(bytes), *to = malloc(bytes);

	if (from == NULL || to == NULL)
		exit(1);
	count = count > 1000000 ? 1000000 : count;
	memset(from, 1, bytes);
	memset(to, 1, bytes);
	for (int64_t i = 0; i < count; i++) {
		memcpy(to, from, bytes);
		__asm__ volatile("" : : "r"(to), "r"(from) : "memory");
	}
	free(from);
	free(to);
	return (double)count;
}

static void read_yaml(const char *path)
{
	FILE *file = fopen(path, "r");
	yaml_parser_t parser;
	yaml_event_t event;
	int end = 0;

	if (file == NULL || !yaml_parser_initialize(&parser))
		exit(1);
	yaml_parser_set_input_file(&parser, file);
	while (!end) {
		if (!yaml_parser_parse(&parser, &event))
			exit(1);
		end = event.type == YAML_STREAM_END_EVENT;
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&parser);
	fclose(file);
}

static void allocate(int64_t count)
{
	char **objects = calloc((size_t)count, sizeof(*objects));

	if (objects == NULL)
		exit(1);
	for (int64_t i = 0; i < count; i++) {
		objects[i] = calloc(1, 256);
		if (objects[i] == NULL)
			exit(1);
		snprintf(objects[i], 32, "o%lld", (long long)i);
	}
	for (int64_t i = 0; i < count; i++)
		free(objects[i]);
	free(objects);
}

/* As valgrind counts the allocations of `graph start`: so many for each operator. */
#define OPERATOR_ALLOCATIONS 21
#define OPERATOR_BYTES 6280

static char *volatile floor_latest
	__attribute__((used)); /* what is allocated stays until the program ends */

static void allocate_operators(int64_t count)
{
	char *one;

	for (int64_t i = 0; i < count * OPERATOR_ALLOCATIONS; i++) {
		one = calloc(1, OPERATOR_BYTES / OPERATOR_ALLOCATIONS);
		if (one == NULL)
			exit(1);
		floor_latest = one;
		if (i % OPERATOR_ALLOCATIONS == 0)
			snprintf(one, 32, "o%lld", (long long)(i / OPERATOR_ALLOCATIONS));
	}
}

static double run_once(char **command)
{
	double start = now_ns(CLOCK_MONOTONIC);
	pid_t pid = fork();
	int status, null;

	if (pid == 0) {
		null = open("/dev/null", O_RDWR);
		for (int fd = 0; fd < 3; fd++)
			dup2(null, fd);
		execvp(command[0], command);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		exit(1);
	return now_ns(CLOCK_MONOTONIC) - start;
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static int run(int count, char **command)
{
	double *took = count < 1 ? NULL : calloc((size_t)count, sizeof(*took));

	if (took == NULL)
		return 1;
	for (int i = 0; i < count; i++)
		took[i] = run_once(command);
	qsort(took, (size_t)count, sizeof(*took), compare);
	printf("%.3f\n", took[count / 2] / 1e6);
	free(took);
	return 0;
}

int main(int argc, char **argv)
{
	double wall = now_ns(CLOCK_MONOTONIC), cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID), unit;
	int64_t count = argc == 3 ? atoll(argv[2]) : 0;

	if (argc > 3 && strcmp(argv[1], "run") == 0)
		return run(atoi(argv[2]), argv + 3);
	if (argc != 3) {
		fprintf(stderr,
			"usage: floor hop MESSAGES | cache MESSAGES | memcpy BYTES | yaml FILE | malloc COUNT | operators COUNT | run COUNT COMMAND...\n");
		return 2;
	}
	unit = (double)count;
	if (strcmp(argv[1], "hop") == 0) {
		if (hop(count) != count * (count - 1) / 2)
			return 1;
	} else if (strcmp(argv[1], "cache") == 0) {
		cache(count);
	} else if (strcmp(argv[1], "memcpy") == 0) {
		unit = copies((size_t)count);
	} else if (strcmp(argv[1], "yaml") == 0) {
		read_yaml(argv[2]);
		unit = 1e6;
	} else if (strcmp(argv[1], "malloc") == 0) {
		allocate(count);
		unit = 1e6;
	} else if (strcmp(argv[1], "operators") == 0) {
		allocate_operators(count);
		unit = 1e6;
	}
	printf("%.3f %.3f\n", (now_ns(CLOCK_MONOTONIC) - wall) / unit,
	       (now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu) / unit);
	return 0;
}
