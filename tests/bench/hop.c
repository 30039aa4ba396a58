// SPDX-License-Identifier: Apache-2.0
/*
 * What a hop costs: from one operator to the next through edges inside a process. The operators are
 * libbench.so's, opened as a graph's extension; every flow's sum is checked.
 *
 *   hop GRAPH SCHEDULER MESSAGES [RUNS]   GRAPH: pair, chain, fan_out, fan_wide, fan_in, sinks,
 *                                         work, mixed, with :CAPACITY;
 *                                         tracked, deadline, late, pop, latest, dynamic,
 *                                         nested, tapped, looked, traced;
 *                                         line, diamond, caterpillar, wide, with @NS
 *                                         SCHEDULER: greedy, event1, event2, ... event99
 *
 * sinks: a chain each of whose operators has a sink too; work: pairs whose sources compute for 20
 * us; mixed: sinks beside the sources of work, which go on until sinks is done. tracked: a chain
 * under data flow tracking; deadline: one that is a path with a deadline; late: the same where all
 * messages are late; nested: the operators of a chain in subgraphs, three deep; pop and latest: a
 * pair whose queue drops; dynamic: a source that chooses one of two sinks for each message; tapped:
 * a pair whose source had a tap, which has ended; looked: a pair at which somebody looks; traced: a
 * pair whose ticks are all traced.
 *
 * line to wide are graphs whose operators all compute, for NS (20000): eight in a line; a source,
 * two operators and one that takes of both; a line of four, each with a leg; a source with seven
 * receivers.
 *
 * A line a run: ns a hop by the clock, ns a hop of processor time (which says more on a busy
 * machine), hops, the allocations from the heap in the whole run, start and end included, what the
 * sources beside sinks sent a second (of mixed, whose hops are those of sinks alone), and how often
 * the clock was read, where HOP_STEADY is set.
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
#define FAN_WIDE 64
#define WORKERS 8       /* of work */
#define MIXED_WORKERS 4 /* of mixed */
#define WORK_NS 20000

struct graph {
	char text[8192];
	size_t used;
	int64_t hops;
	size_t counted_flows; /* the first ones; those behind them have no end of their own */
	bool had_tap, is_looked_at, is_traced;
	bool may_drop; /* a message that is dropped is a hop too */
};

__attribute__((format(printf, 2, 3))) static void say(struct graph *graph, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	graph->used += (size_t)vsnprintf(graph->text + graph->used,
					 sizeof(graph->text) - graph->used, format, args);
	va_end(args);
}

static void write_head(struct graph *graph, const char *scheduler)
{
	say(graph, "frag: 1\napplication: hop\nextensions: [libbench.so]\n");
	if (strcmp(scheduler, "greedy") == 0)
		say(graph, "scheduler: {type: greedy}\noperators:\n");
	else
		say(graph, "scheduler: {type: event_based, worker_thread_number: %d}\noperators:\n",
		    atoi(scheduler + strlen("event")));
}

/* A chain of eight passes, each with a sink too, beside pairs whose sources work. */
static void write_sinks_and_work(struct graph *graph, int64_t messages, int passes, int workers,
				 int capacity)
{
	long long each = messages / (passes > 0 ? 2 * passes : workers);

	graph->hops = each * (passes > 0 ? 2 * passes : workers);
	graph->counted_flows = (size_t)(passes > 0 ? 2 * passes : workers);
	if (passes > 0)
		say(graph, "  p0: {type: bench_source, parameters: {count: %lld}}\n", each);
	for (int i = 0; i < passes; i++)
		say(graph, "  p%d: {type: %s}\n  z%d: {type: bench_sink}\n", i + 1,
		    i + 1 < passes ? "bench_pass" : "bench_sink", i);
	for (int i = 0; i < workers; i++)
		say(graph,
		    "  w%d: {type: bench_source, parameters: {count: %lld, work_ns: %d}}\n"
		    "  y%d: {type: bench_sink}\n",
		    i, passes > 0 ? 0 : each, WORK_NS, i);
	say(graph, "flows:\n");
	for (int i = 0; i < passes; i++)
		say(graph,
		    "  - {from: p%d, to: p%d, capacity: %d}\n"
		    "  - {from: p%d, to: z%d, capacity: %d}\n",
		    i, i + 1, capacity, i, i, capacity);
	for (int i = 0; i < workers; i++)
		say(graph, "  - {from: w%d, to: y%d, capacity: %d}\n", i, i, capacity);
}

/* Two passes in a subgraph, two of these in one, and again: eight in the line of a chain. */
static void write_nested(struct graph *graph, long long each)
{
	say(graph,
	    "  a0: {type: bench_source, parameters: {count: %lld}}\n"
	    "  p: {subgraph: eight}\n"
	    "  z0: {type: bench_sink}\n"
	    "flows: [a0 -> p.in, p.out -> z0]\n"
	    "subgraphs:\n"
	    "  two: {operators: {a: {type: bench_pass}, b: {type: bench_pass}}, flows: [a -> b],\n"
	    "    ports: {in: a.in, out: b.out}}\n",
	    each);
	say(graph, "  four: {operators: {a: {subgraph: two}, b: {subgraph: two}},\n"
		   "    flows: [a.out -> b.in], ports: {in: a.in, out: b.out}}\n"
		   "  eight: {operators: {a: {subgraph: four}, b: {subgraph: four}},\n"
		   "    flows: [a.out -> b.in], ports: {in: a.in, out: b.out}}\n");
}

/* Graphs that use something that others do not pay for. */
static bool write_special(struct graph *graph, const char *name, int64_t messages)
{
	graph->counted_flows = 1;
	graph->hops = messages;
	if (strcmp(name, "nested") == 0) {
		graph->counted_flows = CHAIN - 1;
		graph->hops = messages / (CHAIN - 1) * (CHAIN - 1);
		write_nested(graph, messages / (CHAIN - 1));
	} else if (strcmp(name, "dynamic") == 0) {
		graph->counted_flows = 2;
		say(graph,
		    "  a0: {type: bench_router, parameters: {count: %lld}}\n"
		    "  z0: {type: bench_sink}\n  z1: {type: bench_sink}\n"
		    "flows:\n  - {from: a0, to: [z0.in, z1.in], dynamic: true}\n",
		    (long long)messages);
	} else if (strcmp(name, "pop") == 0 || strcmp(name, "latest") == 0) {
		graph->may_drop = true;
		say(graph,
		    "  a0: {type: bench_source, parameters: {count: %lld}}\n"
		    "  z0: {type: bench_sink}\n"
		    "flows:\n  - {from: a0, to: z0, policy: %s}\n",
		    (long long)messages, name);
	} else if (strcmp(name, "tapped") == 0 || strcmp(name, "looked") == 0 ||
		   strcmp(name, "traced") == 0) {
		graph->had_tap = strcmp(name, "tapped") == 0;
		graph->is_looked_at = strcmp(name, "looked") == 0;
		graph->is_traced = strcmp(name, "traced") == 0;
		say(graph,
		    "  a0: {type: bench_source, parameters: {count: %lld}}\n"
		    "  z0: {type: bench_sink}\nflows: [a0 -> z0]\n",
		    (long long)messages);
	} else {
		return false;
	}
	return true;
}

/* It comes and goes within the first ticks. */
static void tap(struct rig *rig)
{
	struct fragi_run_tap_wish wish = {.id = 1, .every_ns = 1, .for_ns = 1};

	if (fragi_run_tap(rig->run, &wish) < 0)
		RIG_FAIL("no tap\n");
	wish.for_ns = 0;
	(void)fragi_run_tap(rig->run, &wish);
}

/* Nobody reads it: what a tick writes is the same. */
static void trace(struct rig *rig)
{
	struct fragi_run_tap_wish wish = {
		.id = 1, .for_ns = INT64_C(3600000000000), .traces = true};

	if (fragi_run_tap(rig->run, &wish) < 0)
		RIG_FAIL("no trace\n");
}

/* The shape's arrows between operators that compute, numbered from the source 0. */
static const struct shape {
	const char *name;
	int operators;
	const char *arrows; /* from and to, digit by digit */
} shapes[] = {
	{"line", 8, "01122334455667"},
	{"diamond", 4, "01021323"},
	{"caterpillar", 8, "01122304152637"},
	{"wide", 8, "01020304050607"},
};

static bool write_shape(struct graph *graph, const struct shape *shape, const char *options,
			int64_t messages)
{
	const char *at = strchr(options, '@'), *colon = strchr(options, ':');
	long long each, work_ns = at != NULL ? atoll(at + 1) : WORK_NS;
	int capacity = colon != NULL ? atoi(colon + 1) : 1;

	graph->counted_flows = strlen(shape->arrows) / 2;
	each = messages / (int64_t)graph->counted_flows;
	graph->hops = each * (int64_t)graph->counted_flows;
	say(graph, "  o0: {type: bench_source, parameters: {count: %lld, work_ns: %lld}}\n", each,
	    work_ns);
	for (int i = 1; i < shape->operators; i++)
		say(graph, "  o%d: {type: bench_work, parameters: {work_ns: %lld}}\n", i, work_ns);
	say(graph, "flows:\n");
	for (const char *arrow = shape->arrows; *arrow != '\0'; arrow += 2)
		say(graph, "  - {from: o%c, to: o%c, capacity: %d}\n", arrow[0], arrow[1],
		    capacity);
	return true;
}

static bool graph_write(struct graph *graph, const char *name, const char *scheduler,
			int64_t messages)
{
	const char *colon = strchr(name, ':');
	int capacity = colon != NULL ? atoi(colon + 1) : 1;
	size_t length = colon != NULL ? (size_t)(colon - name) : strlen(name);
	long long each = messages;
	int sources = 1, sinks = 1, passes = 0;
	const char *timing = "";

	write_head(graph, scheduler);
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
		size_t n = strlen(shapes[i].name);

		if (strncmp(name, shapes[i].name, n) == 0 && strchr(":@", name[n]) != NULL)
			return write_shape(graph, &shapes[i], name + n, messages);
	}
	if (strncmp(name, "sinks", length) == 0 || strncmp(name, "mixed", length) == 0 ||
	    strncmp(name, "work", length) == 0) {
		write_sinks_and_work(graph, messages, name[0] == 'w' ? 0 : FAN,
				     name[0] == 'w'   ? WORKERS
				     : name[0] == 'm' ? MIXED_WORKERS
						      : 0,
				     capacity);
		return true;
	}
	if (write_special(graph, name, messages))
		return true;
	if (strncmp(name, "chain", length) == 0 || strcmp(name, "tracked") == 0 ||
	    strcmp(name, "deadline") == 0 || strcmp(name, "late") == 0)
		passes = CHAIN - 2;
	else if (strncmp(name, "fan_out", length) == 0)
		sinks = FAN;
	else if (strncmp(name, "fan_wide", length) == 0)
		sinks = FAN_WIDE;
	else if (strncmp(name, "fan_in", length) == 0)
		sources = FAN;
	else if (strncmp(name, "latest_within", length) == 0)
		timing = ", ports: {in: {take: latest_within, age: 1h, policy: block}}";
	else if (strncmp(name, "pair", length) != 0)
		return false;
	graph->may_drop = timing[0] != '\0'; /* what a newer one supersedes */
	each = messages / (sources * sinks * (passes + 1));
	graph->hops = each * sources * sinks * (passes + 1);
	graph->counted_flows = (size_t)(graph->hops / each);
	for (int i = 0; i < sources; i++)
		say(graph, "  a%d: {type: bench_source, parameters: {count: %lld}}\n", i, each);
	for (int i = 0; i < passes; i++)
		say(graph, "  p%d: {type: bench_pass}\n", i);
	for (int i = 0; i < sinks; i++)
		say(graph, "  z%d: {type: bench_sink%s}\n", i, timing);
	say(graph, "flows:\n");
	for (int i = 0; i < passes; i++)
		say(graph, "  - {from: %c%d, to: p%d, capacity: %d}\n", i == 0 ? 'a' : 'p',
		    i == 0 ? 0 : i - 1, i, capacity);
	for (int i = 0; i < sources; i++)
		for (int k = 0; k < sinks; k++)
			say(graph, "  - {from: %c%d, to: z%d, capacity: %d}\n",
			    passes > 0 ? 'p' : 'a', passes > 0 ? passes - 1 : i, k, capacity);
	if (strcmp(name, "tracked") == 0)
		say(graph, "tracking: {print: false}\n");
	if (strcmp(name, "deadline") == 0 || strcmp(name, "late") == 0) {
		say(graph, "deadlines:\n  - {budget: %s, path: [a0", name[0] == 'l' ? "1us" : "1h");
		for (int i = 0; i < passes; i++)
			say(graph, ", p%d", i);
		say(graph, ", z0]}\n");
	}
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

static uint64_t delivered(const struct rig *rig, size_t begin, size_t end)
{
	uint64_t n = 0;

	for (size_t i = begin; i < end; i++)
		n += atomic_load(&rig_row(rig, i)->delivered);
	return n;
}

static uint64_t dropped(const struct rig *rig, size_t flows)
{
	uint64_t n = 0;

	for (size_t i = 0; i < flows; i++)
		n += rig_dropped_all(rig_row(rig, i));
	return n;
}

/* Waits until the counted flows have delivered all; then the others are ended. */
static void wait_for_hops(struct rig *rig, const struct graph *graph, int64_t *out_done_ns)
{
	int64_t end_ns = fragi_now_ns() + 10 * RIG_LIMIT_NS;

	while (delivered(rig, 0, graph->counted_flows) < (uint64_t)graph->hops) {
		if (fragi_now_ns() > end_ns)
			RIG_FAIL("not done: %s\n", rig->sentence);
		usleep(100);
	}
	*out_done_ns = fragi_now_ns();
}

/*
 * For tools that count instructions: each reading of the clock is CLOCK_STEP_NS after the last one,
 * as on a machine that runs nothing else. What a scheduler does depends on how long ticks take, and
 * tools make them take up to a hundred times as long; whoever preempts the thread even longer.
 */
#define CLOCK_STEP_NS 50
#define CLOCK_BEGIN_NS UINT64_C(1000000000)
static _Atomic uint64_t steady_ns = CLOCK_BEGIN_NS;

static uint64_t steady_stamp(void)
{
	return atomic_fetch_add_explicit(&steady_ns, CLOCK_STEP_NS, memory_order_relaxed);
}

static void use_steady_clock(void)
{
	fragi_stamp_refine(); /* which would take the machine's counter again later */
	fragi_stamp_take_from(steady_stamp);
}

static uint64_t steady_readings(void)
{
	return (atomic_load(&steady_ns) - CLOCK_BEGIN_NS) / CLOCK_STEP_NS;
}

static void run(const char *folder, const struct graph *graph)
{
	uint64_t before = atomic_load(&allocations), beside = 0, done;
	int64_t cpu, done_ns = 0;
	struct rig rig;
	size_t flows;

	rig_open(&rig, folder, graph);
	fragi_run_flows(rig.run, &flows);
	cpu = cpu_ns();
	if (graph->is_traced)
		trace(&rig);
	rig_start(&rig);
	if (graph->had_tap)
		tap(&rig);
	if (graph->is_looked_at)
		fragi_run_look(rig.run, 1);
	if (flows > graph->counted_flows) {
		wait_for_hops(&rig, graph, &done_ns);
		beside = delivered(&rig, graph->counted_flows, flows);
		fragi_run_halt(rig.run);
	}
	if (!rig_wait(&rig, rig_is_done, 10 * RIG_LIMIT_NS) || rig.failed > 0)
		RIG_FAIL("not done: %s\n", rig.sentence);
	cpu = cpu_ns() - cpu;
	done_ns = done_ns != 0 ? done_ns : rig.done_ns;
	done = delivered(&rig, 0, graph->counted_flows) +
	       (graph->may_drop ? dropped(&rig, graph->counted_flows) : 0);
	if (done != (uint64_t)graph->hops || !rig_balances(&rig))
		RIG_FAIL("not %lld delivered\n", (long long)graph->hops);
	printf("%.2f %.2f %lld %llu %.0f %llu\n",
	       (double)(done_ns - rig.start_ns) / (double)graph->hops,
	       (double)cpu / (double)graph->hops, (long long)graph->hops,
	       (unsigned long long)(atomic_load(&allocations) - before),
	       (double)beside * 1e9 / (double)(done_ns - rig.start_ns),
	       (unsigned long long)steady_readings());
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
			"usage: hop pair|chain|fan_out|fan_wide|fan_in|latest_within|sinks|work|mixed[:CAPACITY]|tracked|deadline|late|pop|latest|dynamic|nested|tapped|looked|traced|line|diamond|caterpillar|wide[:CAPACITY][@NS] greedy|event1|event2|... MESSAGES [RUNS]\n");
		return 2;
	}
	if (getenv("HOP_STEADY") != NULL)
		use_steady_clock();
	for (int i = 0; i < runs; i++)
		run(folder, &graph);
	return 0;
}
