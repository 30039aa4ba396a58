// SPDX-License-Identifier: Apache-2.0
/*
 * What a hop costs: from one operator to the next through edges inside a process. The operators are
 * libbench.so's, opened as a graph's extension; every flow's sum is checked.
 *
 *   hop GRAPH SCHEDULER MESSAGES [RUNS]   GRAPH: pair, chain, fan_out, fan_in, with :CAPACITY
 *                                         SCHEDULER: greedy, event1, event2
 *
 * A line a run: ns a hop by the clock, ns a hop of processor time (which says more on a busy
 * machine), hops, and the allocations from the heap in the whole run, start and end included.
 */
#include "../unit/rig.h"

#include <libgen.h>
#include <stdarg.h>

#define EXPORTED __attribute__((visibility("default")))

/* What libfrag and the plugin allocate comes through here: symbols of the program win. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
static _Atomic uint64_t allocations;

EXPORTED void *malloc(size_t size)
{
	atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
	return __libc_malloc(size);
}

EXPORTED void *calloc(size_t count, size_t size)
{
	atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
	return __libc_calloc(count, size);
}

EXPORTED void *realloc(void *memory, size_t size)
{
	atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
	return __libc_realloc(memory, size);
}

#define CHAIN 10
#define FAN 8

struct graph {
	char text[4096];
	size_t used;
	int64_t hops;
};

__attribute__((format(printf, 2, 3))) static void say(struct graph *graph, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	graph->used += (size_t)vsnprintf(graph->text + graph->used,
					 sizeof(graph->text) - graph->used, format, args);
	va_end(args);
}

static bool graph_write(struct graph *graph, const char *name, const char *scheduler,
			int64_t messages)
{
	const char *colon = strchr(name, ':');
	int capacity = colon != NULL ? atoi(colon + 1) : 1;
	size_t length = colon != NULL ? (size_t)(colon - name) : strlen(name);
	long long each = messages;
	int sources = 1, sinks = 1, passes = 0;

	if (strncmp(name, "chain", length) == 0)
		passes = CHAIN - 2;
	else if (strncmp(name, "fan_out", length) == 0)
		sinks = FAN;
	else if (strncmp(name, "fan_in", length) == 0)
		sources = FAN;
	else if (strncmp(name, "pair", length) != 0)
		return false;
	each = messages / (sources * sinks * (passes + 1));
	graph->hops = each * sources * sinks * (passes + 1);
	say(graph,
	    "frag: 1\napplication: hop\nextensions: [libbench.so]\nscheduler: %s\noperators:\n",
	    strcmp(scheduler, "greedy") == 0   ? "{type: greedy}"
	    : strcmp(scheduler, "event1") == 0 ? "{type: event_based, worker_thread_number: 1}"
					       : "{type: event_based, worker_thread_number: 2}");
	for (int i = 0; i < sources; i++)
		say(graph, "  a%d: {type: bench_source, parameters: {count: %lld}}\n", i, each);
	for (int i = 0; i < passes; i++)
		say(graph, "  p%d: {type: bench_pass}\n", i);
	for (int i = 0; i < sinks; i++)
		say(graph, "  z%d: {type: bench_sink}\n", i);
	say(graph, "flows:\n");
	for (int i = 0; i < passes; i++)
		say(graph, "  - {from: %c%d, to: p%d, capacity: %d}\n", i == 0 ? 'a' : 'p',
		    i == 0 ? 0 : i - 1, i, capacity);
	for (int i = 0; i < sources; i++)
		for (int k = 0; k < sinks; k++)
			say(graph, "  - {from: %c%d, to: z%d, capacity: %d}\n",
			    passes > 0 ? 'p' : 'a', passes > 0 ? passes - 1 : i, k, capacity);
	return true;
}

static void rig_open(struct rig *rig, const char *folder, const struct graph *graph)
{
	const struct fragi_spec_source source = {.graph = {"hop.yaml", graph->text, graph->used}};
	const char *const library_path[] = {folder, NULL};
	const struct fragi_registry_config registry = {.library_path = library_path};
	struct fragi_run_config config = {
		.epoch = 1, .beat_ns = 50000000, .dead_ns = 1000000000, .ledger_fd = -1};

	memset(rig, 0, sizeof(*rig));
	if (fragi_spec_parse(&source, &rig->diag, &rig->spec) < 0 ||
	    fragi_registry_create(&registry, &rig->registry) < 0)
		goto refused;
	config.spec = rig->spec;
	config.registry = rig->registry;
	if (fragi_run_create(&config, &rig->run) < 0 || fragi_run_prepare(rig->run, &rig->diag) < 0)
		goto refused;
	return;
refused:
	rig_errors(rig);
	RIG_FAIL("the graph was refused\n%s", graph->text);
}

static int64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void run(const char *folder, const struct graph *graph)
{
	uint64_t before = atomic_load(&allocations), delivered = 0;
	struct rig rig;
	int64_t cpu;
	size_t flows;

	rig_open(&rig, folder, graph);
	cpu = cpu_ns();
	rig_start(&rig);
	if (!rig_wait(&rig, rig_is_done, 10 * RIG_LIMIT_NS) || rig.failed > 0)
		RIG_FAIL("not done: %s\n", rig.sentence);
	cpu = cpu_ns() - cpu;
	fragi_run_flows(rig.run, &flows);
	for (size_t i = 0; i < flows; i++)
		delivered += atomic_load(&rig_row(&rig, i)->delivered);
	if (delivered != (uint64_t)graph->hops || !rig_balances(&rig))
		RIG_FAIL("%llu of %lld delivered\n", (unsigned long long)delivered,
			 (long long)graph->hops);
	printf("%.2f %.2f %lld %llu\n", (double)(rig.done_ns - rig.start_ns) / (double)graph->hops,
	       (double)cpu / (double)graph->hops, (long long)graph->hops,
	       (unsigned long long)(atomic_load(&allocations) - before));
	fflush(stdout);
	rig_end(&rig);
}

int main(int argc, char **argv)
{
	struct graph graph = {.used = 0};
	const char *folder = dirname(argv[0]);
	int runs = argc > 4 ? atoi(argv[4]) : 1;

	if (argc < 4 || !graph_write(&graph, argv[1], argv[2], atoll(argv[3]))) {
		fprintf(stderr,
			"usage: hop pair|chain|fan_out|fan_in[:CAPACITY] greedy|event1|event2 MESSAGES [RUNS]\n");
		return 2;
	}
	for (int i = 0; i < runs; i++)
		run(folder, &graph);
	return 0;
}
