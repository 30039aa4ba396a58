// SPDX-License-Identifier: Apache-2.0
#include "sim.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <base/units.h>

/* Sums of several histories. */
struct totals {
	uint64_t runs, events, steps, done, stopped, failed, waiting, compared, hash;
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
	totals->compared += result->compared;
	totals->hash += result->hash;
	if (result->failed && (totals->first_failure == 0 || seed < totals->first_failure))
		totals->first_failure = seed;
}

/* The histories that were asked for. */
struct asked {
	uint64_t from, runs;
	const struct sim_kind *kind; /* NULL: of any */
	uint64_t jobs;
	bool keeps_going;
};

static uint64_t seed_now;

/* A core has crashed, or an assert of it has failed. */
static void on_crash(int number)
{
	fprintf(stderr, "seed %llu: crash: signal %d\n", (unsigned long long)seed_now, number);
	signal(number, SIG_DFL);
	raise(number);
}

/* Runs those of one process, until one fails. */
static void run_share(const struct asked *asked, uint64_t job, struct totals *totals)
{
	struct sim_result result;
	uint64_t variant;

	signal(SIGABRT, on_crash);
	signal(SIGSEGV, on_crash);
	for (uint64_t n = 0, seed = asked->from; n < asked->runs; seed++) {
		if (asked->kind != NULL && sim_kind_of(seed, &variant) != asked->kind)
			continue;
		if (n++ % asked->jobs != job)
			continue;
		seed_now = seed;
		sim_run(seed, NULL, &result);
		add(totals, seed, &result);
		if (!result.failed)
			continue;
		fprintf(stderr, "seed %llu: %s: %s\n  replay: make sim SEED=%llu\n",
			(unsigned long long)seed, result.invariant, result.failure,
			(unsigned long long)seed);
		if (!asked->keeps_going)
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
	into->compared += one->compared;
	into->hash += one->hash;
	if (one->first_failure != 0 &&
	    (into->first_failure == 0 || one->first_failure < into->first_failure))
		into->first_failure = one->first_failure;
}

static int run_many(const struct asked *asked)
{
	struct totals totals = {0}, one;
	int64_t started_ns = now_ns();
	int pipes[64][2];

	for (uint64_t j = 0; j < asked->jobs; j++) {
		if (pipe(pipes[j]) < 0) {
			perror("pipe");
			return 1;
		}
		if (fork() == 0) {
			one = (struct totals){0};
			run_share(asked, j, &one);
			_exit(write(pipes[j][1], &one, sizeof(one)) == (ssize_t)sizeof(one) ? 0
											    : 1);
		}
		close(pipes[j][1]);
	}
	for (uint64_t j = 0; j < asked->jobs; j++) {
		if (read(pipes[j][0], &one, sizeof(one)) != (ssize_t)sizeof(one)) {
			fprintf(stderr, "a process of the simulator died\n");
			totals.first_failure = asked->from;
		} else {
			merge(&totals, &one);
		}
		close(pipes[j][0]);
	}
	while (wait(NULL) > 0)
		;
	printf("%llu runs, %llu events, %llu steps of a core; applications: %llu done, %llu stopped, %llu failed, %llu ended with their driver; %llu times of other clocks; %.1f s; hash %016llx%s\n",
	       (unsigned long long)totals.runs, (unsigned long long)totals.events,
	       (unsigned long long)totals.steps, (unsigned long long)totals.done,
	       (unsigned long long)totals.stopped, (unsigned long long)totals.failed,
	       (unsigned long long)totals.waiting, (unsigned long long)totals.compared,
	       (double)(now_ns() - started_ns) * 1e-9, (unsigned long long)totals.hash,
	       totals.first_failure != 0 ? "; FAILED" : "");
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
	struct asked asked = {.from = 1, .runs = 1000, .jobs = 1};

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--seed") == 0)
			return run_one(number(argv[i + 1], argv[i]));
		if (strcmp(argv[i], "--runs") == 0) {
			asked.runs = number(argv[++i], "--runs");
		} else if (strcmp(argv[i], "--from") == 0) {
			asked.from = number(argv[++i], "--from");
		} else if (strcmp(argv[i], "--kind") == 0 && i + 1 < argc &&
			   (asked.kind = sim_kind_named(argv[i + 1])) != NULL) {
			i++;
		} else if (strcmp(argv[i], "--jobs") == 0) {
			asked.jobs = number(argv[++i], "--jobs");
			asked.jobs = asked.jobs < 64 ? asked.jobs : 64;
		} else if (strcmp(argv[i], "--keep-going") == 0) {
			asked.keeps_going = true;
		} else {
			fprintf(stderr,
				"usage: sim --seed N | --runs N [--from SEED] [--kind NAME] [--jobs N] [--keep-going]; kind.c lists the kinds\n");
			return 2;
		}
	}
	return run_many(&asked);
}
