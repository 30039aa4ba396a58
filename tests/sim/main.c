/* SPDX-License-Identifier: Apache-2.0 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <base/units.h>

/* Sums of several histories. */
struct totals {
	uint64_t runs, events, steps, done, stopped, failed, waiting, hash;
	uint64_t first_failure; /* a seed; 0: none */
};

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * SIM_S + now.tv_nsec;
}

static void add(struct totals *totals, uint64_t seed, const struct sim_result *result)
{
	totals->runs++;
	totals->events += result->events;
	totals->steps += result->steps;
	totals->done += result->outcomes[FRAGI_SUMMARY_DONE];
	totals->stopped += result->outcomes[FRAGI_SUMMARY_STOPPED];
	totals->failed += result->outcomes[FRAGI_SUMMARY_FAILED];
	totals->waiting += result->waiting;
	totals->hash += result->hash;
	if (result->failed && (totals->first_failure == 0 || seed < totals->first_failure))
		totals->first_failure = seed;
}

/* Every step-th seed from first on, until one fails. */
static void run_share(uint64_t first, uint64_t last, uint64_t step, bool keep_going,
		      struct totals *totals)
{
	struct sim_result result;

	for (uint64_t seed = first; seed <= last; seed += step) {
		sim_run(seed, NULL, &result);
		add(totals, seed, &result);
		if (!result.failed)
			continue;
		fprintf(stderr, "seed %llu: %s: %s\n  replay: make sim SEED=%llu\n",
			(unsigned long long)seed, result.invariant, result.failure,
			(unsigned long long)seed);
		if (!keep_going)
			return;
	}
}

static void merge(struct totals *into, const struct totals *one)
{
	into->runs += one->runs;
	into->events += one->events;
	into->steps += one->steps;
	into->done += one->done;
	into->stopped += one->stopped;
	into->failed += one->failed;
	into->waiting += one->waiting;
	into->hash += one->hash;
	if (one->first_failure != 0 &&
	    (into->first_failure == 0 || one->first_failure < into->first_failure))
		into->first_failure = one->first_failure;
}

static int run_many(uint64_t from, uint64_t every, uint64_t runs, uint64_t jobs, bool keep_going)
{
	struct totals totals = {0}, one;
	int64_t started_ns = now_ns();
	int pipes[64][2];

	for (uint64_t j = 0; j < jobs; j++) {
		if (pipe(pipes[j]) < 0) {
			perror("pipe");
			return 1;
		}
		if (fork() == 0) {
			one = (struct totals){0};
			run_share(from + j * every, from + (runs - 1) * every, jobs * every,
				  keep_going, &one);
			_exit(write(pipes[j][1], &one, sizeof(one)) == (ssize_t)sizeof(one) ? 0
											    : 1);
		}
		close(pipes[j][1]);
	}
	for (uint64_t j = 0; j < jobs; j++) {
		if (read(pipes[j][0], &one, sizeof(one)) != (ssize_t)sizeof(one)) {
			fprintf(stderr, "a process of the simulator died\n");
			totals.first_failure = from;
		} else {
			merge(&totals, &one);
		}
		close(pipes[j][0]);
	}
	while (wait(NULL) > 0)
		;
	printf("%llu runs, %llu events, %llu steps of a core; applications: %llu done, %llu stopped, %llu failed, %llu ended with their driver; %.1f s; hash %016llx%s\n",
	       (unsigned long long)totals.runs, (unsigned long long)totals.events,
	       (unsigned long long)totals.steps, (unsigned long long)totals.done,
	       (unsigned long long)totals.stopped, (unsigned long long)totals.failed,
	       (unsigned long long)totals.waiting, (double)(now_ns() - started_ns) * 1e-9,
	       (unsigned long long)totals.hash, totals.first_failure != 0 ? "; FAILED" : "");
	return totals.first_failure != 0 ? 1 : 0;
}

static int run_one(uint64_t seed)
{
	struct sim_result result;

	sim_run(seed, stdout, &result);
	printf("seed %llu: %llu events, hash %016llx: ", (unsigned long long)seed,
	       (unsigned long long)result.events, (unsigned long long)result.hash);
	if (result.failed)
		printf("%s: %s\n", result.invariant, result.failure);
	else
		printf("all invariants hold\n");
	return result.failed ? 1 : 0;
}

static uint64_t number(const char *text, const char *flag)
{
	int64_t value;

	if (text == NULL || fragi_parse_i64(text, &value) < 0 || value < 1) {
		fprintf(stderr, "sim: %s needs a number from 1 on\n", flag);
		exit(2);
	}
	return (uint64_t)value;
}

int main(int argc, char **argv)
{
	uint64_t runs = 1000, from = 1, every = 1, jobs = 1;
	bool keep_going = false;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--seed") == 0)
			return run_one(number(argv[i + 1], argv[i]));
		if (strcmp(argv[i], "--runs") == 0) {
			runs = number(argv[++i], "--runs");
		} else if (strcmp(argv[i], "--from") == 0) {
			from = number(argv[++i], "--from");
		} else if (strcmp(argv[i], "--every") ==
			   0) { /* what a history has follows from it */
			every = number(argv[++i], "--every");
		} else if (strcmp(argv[i], "--jobs") == 0) {
			jobs = number(argv[++i], "--jobs");
		} else if (strcmp(argv[i], "--keep-going") == 0) {
			keep_going = true;
		} else {
			fprintf(stderr,
				"usage: sim --seed N | --runs N [--from SEED] [--every N] [--jobs N] [--keep-going]\n");
			return 2;
		}
	}
	return run_many(from, every, runs, jobs < 64 ? jobs : 64, keep_going);
}
