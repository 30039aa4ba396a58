// SPDX-License-Identifier: Apache-2.0
/*
 * What a hop costs: nanoseconds from one operator to the next through edges inside a process, int64 values,
 * for a pair, a chain of ten and a fan of eight, under both schedulers. Operators call libfrag.so as plugins
 * do. Every delivery is checked.
 *
 * hop [messages [runs [graph [scheduler]]]]: parts of their names
 */
#include "../unit/rig.h"

struct source {
	int64_t count, next;
};
static const struct frag_port source_ports[] = {{.name = "out", .dir = FRAG_OUT, .type = "i64"}};
static const struct frag_param source_params[] = {FRAG_PARAM_I64(struct source, count, 0)};

static int source_compute(void *state, struct frag_tick *tick)
{
	struct source *s = state;
	int r = frag_tick_emit_i64(tick, 0, s->next);

	if (r < 0)
		return r;
	return ++s->next == s->count ? FRAG_DONE : 0;
}

static const struct frag_op_type source_type = {
	FRAG_OP_TYPE_INIT,        .name = "source",           .state_size = sizeof(struct source),
	FRAG_PORTS(source_ports), FRAG_PARAMS(source_params), .compute = source_compute,
};

static const struct frag_port forward_ports[] = {
	{.name = "in", .dir = FRAG_IN, .type = "i64"},
	{.name = "out", .dir = FRAG_OUT, .type = "i64"},
};

/* A new message for each: the dearer of the two ways to pass something on. */
static int forward_compute(void *state, struct frag_tick *tick)
{
	int64_t x;
	int r = frag_tick_receive_i64(tick, 0, &x);

	(void)state;
	return r < 0 ? r : frag_tick_emit_i64(tick, 1, x);
}

static const struct frag_op_type forward_type = {
	FRAG_OP_TYPE_INIT,
	.name = "pass",
	FRAG_PORTS(forward_ports),
	.compute = forward_compute,
};

struct sink {
	int64_t next;
};
static const struct frag_port sink_ports[] = {{.name = "in", .dir = FRAG_IN, .type = "i64"}};
static _Atomic int64_t delivered;

static int sink_compute(void *state, struct frag_tick *tick)
{
	struct sink *s = state;
	int64_t x;
	int r = frag_tick_receive_i64(tick, 0, &x);

	if (r < 0)
		return r;
	return x == s->next++ ? 0 : -EBADMSG;
}

static int sink_stop(void *state, struct frag_op *op)
{
	(void)op;
	atomic_fetch_add(&delivered, ((struct sink *)state)->next);
	return 0;
}

static const struct frag_op_type sink_type = {
	FRAG_OP_TYPE_INIT,      .name = "sink",          .state_size = sizeof(struct sink),
	FRAG_PORTS(sink_ports), .compute = sink_compute, .stop = sink_stop,
};
static const struct frag_op_type *const ops[] = {&source_type, &forward_type, &sink_type};
static const struct frag_plugin plugin = {.struct_size = sizeof(struct frag_plugin),
					  .abi_major = FRAG_ABI_MAJOR,
					  .name = "hop",
					  .version = "1",
					  FRAG_OPS(ops)};

static int64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Returns ns a hop by the clock; *out_cpu of processor time, which says more on a busy machine. */
static double run(const char *scheduler, const char *graph, int64_t hops, double *out_cpu)
{
	char yaml[8192];
	struct rig rig;
	int64_t cpu = cpu_ns();
	double ns;

	snprintf(yaml, sizeof(yaml), "frag: 1\napplication: hop\nscheduler: %s\n%s", scheduler, graph);
	atomic_store(&delivered, 0);
	rig_run(&rig, &plugin, yaml);
	if (rig.failed > 0)
		RIG_FAIL("%s\n", rig.sentence);
	*out_cpu = (double)(cpu_ns() - cpu) / (double)hops;
	ns = (double)(rig.done_ns - rig.start_ns) / (double)hops;
	rig_end(&rig);
	return ns;
}

static int compare(const void *a, const void *b)
{
	return *(const double *)a < *(const double *)b ? -1 : *(const double *)a > *(const double *)b;
}

static const char *only_graph = "", *only_scheduler = "";

static void measure(const char *name, const char *graph, int64_t hops, int64_t deliveries, int runs)
{
	static const char *const schedulers[] = {
		"{type: greedy}",
		"{type: event_based, worker_thread_number: 1}",
		"{type: event_based, worker_thread_number: 2}",
	};
	double ns[64], cpu[64];

	if (strstr(name, only_graph) == NULL)
		return;
	printf("%-18s", name);
	for (size_t s = 0; s < FRAG_COUNT_OF(schedulers); s++) {
		if (strstr(schedulers[s], only_scheduler) == NULL)
			continue;
		for (int i = 0; i < runs; i++) {
			ns[i] = run(schedulers[s], graph, hops, &cpu[i]);
			if (atomic_load(&delivered) != deliveries)
				RIG_FAIL("%s: %lld of %lld delivered\n", name,
					 (long long)atomic_load(&delivered), (long long)deliveries);
		}
		qsort(ns, (size_t)runs, sizeof(ns[0]), compare);
		qsort(cpu, (size_t)runs, sizeof(cpu[0]), compare);
		printf("  %6.1f [%5.1f..%5.1f] %6.1f", ns[runs / 2], ns[0], ns[runs - 1], cpu[runs / 2]);
		fflush(stdout);
	}
	printf("\n");
}

int main(int argc, char **argv)
{
	int64_t n = argc > 1 ? atoll(argv[1]) : 2000000;
	int runs = argc > 2 ? atoi(argv[2]) : 5;
	char graph[4096], name[32];
	int k;

	only_graph = argc > 3 ? argv[3] : "";
	only_scheduler = argc > 4 ? argv[4] : "";
	runs = runs < 1 ? 1 : runs > 64 ? 64 : runs;
	printf("ns a hop, median [min..max] of %d, and of processor time: greedy; event_based with 1 and 2 "
	       "threads\n",
	       runs);
	for (int capacity = 1; capacity <= 64; capacity *= 8) {
		snprintf(graph, sizeof(graph),
			 "operators: {a: {type: source, parameters: {count: %lld}}, b: {type: sink}}\n"
			 "flows: [{from: a, to: b, capacity: %d}]\n",
			 (long long)n, capacity);
		snprintf(name, sizeof(name), "pair, capacity %d", capacity);
		measure(name, graph, n, n, runs);
	}
	for (int capacity = 1; capacity <= 4; capacity *= 4) {
		k = snprintf(graph, sizeof(graph),
			     "operators:\n  o0: {type: source, parameters: {count: %lld}}\n",
			     (long long)n / 8);
		for (int i = 1; i < 9; i++)
			k += snprintf(graph + k, sizeof(graph) - (size_t)k, "  o%d: {type: pass}\n", i);
		k += snprintf(graph + k, sizeof(graph) - (size_t)k, "  o9: {type: sink}\nflows:\n");
		for (int i = 0; i < 9; i++)
			k += snprintf(graph + k, sizeof(graph) - (size_t)k,
				      "  - {from: o%d, to: o%d, capacity: %d}\n", i, i + 1, capacity);
		snprintf(name, sizeof(name), "chain, capacity %d", capacity);
		measure(name, graph, n / 8 * 9, n / 8, runs);
	}
	for (int capacity = 1; capacity <= 4; capacity *= 4) {
		k = snprintf(graph, sizeof(graph),
			     "operators:\n  o: {type: source, parameters: {count: %lld}}\n",
			     (long long)n / 8);
		for (int i = 0; i < 8; i++)
			k += snprintf(graph + k, sizeof(graph) - (size_t)k, "  s%d: {type: sink}\n", i);
		k += snprintf(graph + k, sizeof(graph) - (size_t)k, "flows:\n");
		for (int i = 0; i < 8; i++)
			k += snprintf(graph + k, sizeof(graph) - (size_t)k,
				      "  - {from: o, to: s%d, capacity: %d}\n", i, capacity);
		snprintf(name, sizeof(name), "fan 1:8, capacity %d", capacity);
		measure(name, graph, n / 8 * 8, n / 8 * 8, runs);
	}
	return 0;
}
