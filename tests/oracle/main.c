// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "oracle.h"

/*
 * Graphs are checked in processes of their own, so that one that hangs or crashes takes nothing
 * with it. The processes take seeds from a counter that they share. When one fails the others are
 * ended, and the graph is shrunk.
 */
#define JOBS_MAX 64

struct shared {
	_Atomic uint64_t next; /* seed */
	uint64_t last;
	_Atomic uint64_t at[JOBS_MAX]; /* the seed that a process checks; 0: it is through */
	struct oracle_totals totals[JOBS_MAX];
	_Atomic uint64_t failed_seed;  /* 0: none */
	uint32_t checks;               /* how many the latest call of fails took */
	struct oracle_finding finding; /* its scheduler: a constant, the same in each process */
};
static struct shared *shared;

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void check_share(uint32_t job)
{
	static struct oracle_graph graph;
	struct oracle_finding finding;
	uint64_t seed, none = 0;

	while ((seed = atomic_fetch_add(&shared->next, 1)) <= shared->last) {
		atomic_store(&shared->at[job], seed);
		oracle_graph_make(&graph, seed);
		if (oracle_check(&graph, &shared->totals[job], &finding))
			continue;
		if (atomic_compare_exchange_strong(&shared->failed_seed, &none, seed))
			shared->finding = finding;
		_exit(1);
	}
	atomic_store(&shared->at[job], 0);
	_exit(0);
}

/*
 * Checks a graph in another process, `times` times at most. Returns whether it failed.
 * A graph that fails once in many checks takes as many each time that it is made smaller.
 */
#define TIMES_FIRST 1000
#define TIMES_MAX 300
#define SHRINK_S 300
static uint32_t times = TIMES_FIRST;
static double shrink_until_s;
static bool fails(const struct oracle_graph *graph)
{
	struct oracle_finding finding;
	int status;
	pid_t child;

	if (shrink_until_s != 0 && now_s() > shrink_until_s)
		return false;
	fflush(NULL);
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (freopen("/dev/null", "w", stderr) == NULL)
			_exit(2);
		oracle_limit_ns = 3000000000;
		for (shared->checks = 1; shared->checks <= times; shared->checks++) {
			if (oracle_check(graph, NULL, &finding))
				continue;
			shared->finding = finding;
			_exit(1);
		}
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0)
		return false;
	if (WIFSIGNALED(status))
		snprintf(shared->finding.text, sizeof(shared->finding.text),
			 "it crashes (signal %d)", WTERMSIG(status));
	/* A graph that lacks too much to be one has not failed. */
	return status != 0 && !(WIFEXITED(status) && WEXITSTATUS(status) == ORACLE_REFUSED);
}

static bool shrinks = true;
static int report(uint64_t seed)
{
	static struct oracle_graph graph;

	fprintf(stderr, "seed %llu: %s\n", (unsigned long long)seed, shared->finding.text);
	oracle_graph_make(&graph, seed);
	if (!shrinks)
		return 1;
	fprintf(stderr, "shrinking the graph ...\n");
	times = TIMES_FIRST;
	if (!fails(&graph)) {
		fprintf(stderr, "it did not fail again in %u checks\n", times);
		return 1;
	}
	times = shared->checks * 3 + 5 < TIMES_MAX ? shared->checks * 3 + 5 : TIMES_MAX;
	shrink_until_s = now_s() + SHRINK_S;
	oracle_shrink(&graph, fails);
	fprintf(stderr, "# %s\n# fragctl run --library-path build/tests/oracle GRAPH\n",
		shared->finding.text);
	oracle_graph_write(&graph, shared->finding.scheduler, true, stderr);
	return 1;
}

static uint64_t read_progress(const char *path)
{
	unsigned long long done = 0;
	FILE *f = path != NULL ? fopen(path, "r") : NULL;

	if (f == NULL)
		return 0;
	if (fscanf(f, "%llu", &done) != 1)
		done = 0;
	fclose(f);
	return done;
}

/* Writes down up to which seed all graphs were checked. */
static void write_progress(const char *path, uint32_t jobs)
{
	uint64_t least = atomic_load(&shared->next), at;
	FILE *f;

	if (path == NULL)
		return;
	for (uint32_t i = 0; i < jobs; i++) {
		at = atomic_load(&shared->at[i]);
		least = at != 0 && at < least ? at : least;
	}
	f = fopen(path, "w");
	if (f == NULL)
		return;
	fprintf(f, "%llu\n", (unsigned long long)(least - 1));
	fclose(f);
}

static void end_all(const pid_t *children, uint32_t jobs)
{
	for (uint32_t i = 0; i < jobs; i++)
		if (children[i] > 0) {
			kill(children[i], SIGKILL);
			waitpid(children[i], NULL, 0);
		}
}

/* Waits for the processes. Returns the seed that failed, or 0. */
static uint64_t wait_for(pid_t *children, uint32_t jobs, const char *progress)
{
	uint32_t left = jobs;
	int status;

	while (left > 0) {
		usleep(50000);
		for (uint32_t i = 0; i < jobs; i++) {
			if (children[i] <= 0 || waitpid(children[i], &status, WNOHANG) <= 0)
				continue;
			children[i] = 0;
			left--;
			if (status == 0)
				continue;
			if (atomic_load(&shared->failed_seed) == 0) {
				shared->failed_seed = atomic_load(&shared->at[i]);
				snprintf(shared->finding.text, sizeof(shared->finding.text),
					 "it crashes (status %d)", status);
			}
			end_all(children, jobs);
			return atomic_load(&shared->failed_seed);
		}
		write_progress(progress, jobs);
	}
	return 0;
}

static void print_totals(uint32_t jobs, double began_s)
{
	struct oracle_totals all = {0};

	for (uint32_t i = 0; i < jobs; i++) {
		const struct oracle_totals *one = &shared->totals[i];

		all.graphs += one->graphs;
		all.operators += one->operators;
		all.flows += one->flows;
		all.exact += one->exact;
		all.prefix += one->prefix;
		all.messages += one->messages;
		all.rested += one->rested;
	}
	printf("%llu graphs, %llu operators, %llu flows (%llu the same under all schedulers, %llu up to their end), %llu messages; %llu ended at rest; %.1f s\n",
	       (unsigned long long)all.graphs, (unsigned long long)all.operators,
	       (unsigned long long)all.flows, (unsigned long long)all.exact,
	       (unsigned long long)all.prefix, (unsigned long long)all.messages,
	       (unsigned long long)all.rested, now_s() - began_s);
}

static int check_many(uint64_t first, uint64_t last, uint32_t jobs, const char *progress)
{
	uint64_t done = read_progress(progress), failed;
	double began_s = now_s();
	pid_t children[JOBS_MAX];

	if (done >= first)
		printf("graphs up to %llu were checked before\n", (unsigned long long)done);
	atomic_store(&shared->next, done >= first ? done + 1 : first);
	shared->last = last;
	fflush(stdout);
	for (uint32_t i = 0; i < jobs; i++) {
		children[i] = fork();
		if (children[i] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			check_share(i);
		}
		if (children[i] < 0) {
			perror("fork");
			end_all(children, i);
			return 2;
		}
	}
	failed = wait_for(children, jobs, progress);
	if (failed != 0)
		return report(failed);
	print_totals(jobs, began_s);
	if (progress != NULL)
		unlink(progress); /* the next call begins anew */
	return 0;
}

static uint64_t number(const char *text)
{
	char *end = NULL;
	unsigned long long value = text != NULL ? strtoull(text, &end, 10) : 0;

	if (value == 0 || *end != '\0') {
		fprintf(stderr,
			"usage: oracle [--graphs N] [--from SEED] [--jobs N] [--progress FILE] [--no-shrink]\n"
			"       oracle --seed SEED    checks one graph, 20 times\n"
			"       oracle --write SEED   prints one graph for fragctl run\n");
		exit(2);
	}
	return value;
}

int main(int argc, char **argv)
{
	static struct oracle_graph graph;
	uint64_t graphs = 300, first = 1, last, jobs = 1;
	const char *progress = NULL;

	/* Without the polls that hide a lost wake-up. */
	setenv("FRAG_TEST_NO_SAFETY_POLL", "all", 1);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED) {
		perror("mmap");
		return 2;
	}
	shared->finding.scheduler = "{type: event_based}"; /* of a graph that crashes */
	for (int i = 1; i < argc; i += 2) {
		if (strcmp(argv[i], "--graphs") == 0) {
			graphs = number(argv[i + 1]);
		} else if (strcmp(argv[i], "--from") == 0) {
			first = number(argv[i + 1]);
		} else if (strcmp(argv[i], "--jobs") == 0) {
			jobs = number(argv[i + 1]);
		} else if (strcmp(argv[i], "--progress") == 0 && argv[i + 1] != NULL) {
			progress = argv[i + 1];
		} else if (strcmp(argv[i], "--no-shrink") == 0) {
			shrinks = false;
			i--;
		} else if (strcmp(argv[i], "--seed") == 0) {
			oracle_graph_make(&graph, number(argv[i + 1]));
			times = 20;
			if (!fails(&graph)) {
				puts("all rules hold");
				return 0;
			}
			return report(graph.seed);
		} else if (strcmp(argv[i], "--write") == 0) {
			oracle_graph_make(&graph, number(argv[i + 1]));
			oracle_graph_write(&graph, "{type: event_based}", true, stdout);
			return 0;
		} else {
			number(NULL);
		}
	}
	last = first + graphs - 1;
	return check_many(first, last, jobs < JOBS_MAX ? (uint32_t)jobs : JOBS_MAX, progress);
}
