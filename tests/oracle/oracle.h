/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ORACLE_H
#define ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <frag/operator.h>

/*
 * The oracle of the schedulers: random graphs, each made from a seed, run under greedy and under
 * event_based with 1, 2 and 8 threads. Every flow must deliver the same messages under all of them
 * where the graph decides what it delivers (same.c says where), and some rules hold for every graph
 * (run.c and node.c). All operators are of one type, oracle_node (node.c), and differ by their
 * parameters.
 */
#define ORACLE_OPS_MAX 256u
#define ORACLE_FLOWS_MAX 1024u
#define ORACLE_PORTS_MAX 4u
#define ORACLE_POOLS_MAX 3u /* in each fragment */

/* An operator. Bits number its ports. 0 stands for "not at all" unless stated otherwise. */
struct oracle_op {
	bool removed; /* while a graph is shrunk */
	uint32_t fragment;
	uint32_t inputs, outputs;
	uint32_t multi;             /* inputs that are multi-receivers */
	uint32_t free_in, free_out; /* ports without a condition */
	uint32_t take, emit;        /* messages of each flow, and on each output, in a tick */
	uint32_t count;             /* it returns FRAG_DONE in this tick */
	uint32_t count_condition;   /* a condition `count` ends it */
	uint32_t period_us;         /* a condition `periodic` */
	/* A condition `expiring_message_available` of its input; only under the manual clock. */
	uint32_t batch, delay_us;
	uint32_t front_max;  /* it waits while a flow has more messages */
	uint32_t disable_at; /* in this tick it switches its condition `boolean` off, and ends */
	uint32_t enable_at, enables; /* in this tick it switches on that of operator `enables` */
	bool starts_disabled;
	bool routes;                  /* it emits on one output, which the messages decide */
	uint32_t work_ns, work_every; /* how long each n-th tick computes */
	uint32_t pend_every;          /* each n-th tick is pending for a while */
	uint32_t blocks;              /* its messages are tensors of a pool with so many blocks */
	bool one_token;               /* the flows of its input carry one message together */
	bool started;                 /* an execution flow leads to it from the start operator */
	bool chooses;                 /* its flows are dynamic: what it has received decides */
	uint32_t turns;               /* dynamic too: all flows in so many ticks, then none */
	uint32_t pool;                /* number of its thread pool */
	bool pinned;                  /* it has a thread of its own there */
};

struct oracle_flow {
	bool removed;
	bool execution; /* between the execution ports; out and in do not count */
	uint32_t from, out, to, in;
	uint32_t capacity;
	enum frag_policy policy;
};

struct oracle_graph {
	uint64_t seed;
	uint32_t op_count, flow_count, fragment_count;
	uint32_t pool_sizes[ORACLE_POOLS_MAX + 1]; /* initial sizes, by number */
	bool manual_clock;                         /* of all fragments together */
	struct oracle_op ops[ORACLE_OPS_MAX];
	struct oracle_flow flows[ORACLE_FLOWS_MAX];
};

/* graph.c */
void oracle_graph_make(struct oracle_graph *graph, uint64_t seed);
/* Makes a graph whole again after operators and flows were removed. */
void oracle_graph_mend(struct oracle_graph *graph);
bool oracle_flow_exists(const struct oracle_graph *graph, uint32_t flow);
bool oracle_input_has_flow(const struct oracle_graph *graph, uint32_t op, uint32_t in);

bool oracle_waits_for_execution(const struct oracle_graph *graph, uint32_t op);
static inline bool oracle_is_dynamic(const struct oracle_op *op)
{
	return op->chooses || op->turns > 0;
}

/* text.c: writes the graph as YAML. extension: a line for operators from liboracle.so. */
void oracle_graph_write(const struct oracle_graph *graph, const char *scheduler, bool extension,
			FILE *out);

/* What a flow delivered. */
struct oracle_history {
	uint32_t count;
	uint32_t *values;
};

/* What a run did. */
struct oracle_run {
	char failure[2048]; /* empty: nothing was wrong */
	bool rested;        /* it ended because every operator waited */
	struct oracle_history flows[ORACLE_FLOWS_MAX];
};
/* A run that takes longer does not end. */
extern int64_t oracle_limit_ns;
/* The exit status of a process with a graph that is refused. */
#define ORACLE_REFUSED 3
/* run.c: runs the graph once. oracle_run_fini frees what it filled in. */
void oracle_run(const struct oracle_graph *graph, const char *scheduler, struct oracle_run *run);
void oracle_run_fini(struct oracle_run *run);

/* same.c: which flows deliver the same under every scheduler. */
bool oracle_flow_is_lossy(const struct oracle_graph *graph, uint32_t flow);
struct oracle_sameness {
	bool exact[ORACLE_FLOWS_MAX];  /* the flow delivers the same in each run */
	bool prefix[ORACLE_FLOWS_MAX]; /* of two runs one delivers what the other begins with */
};
void oracle_sameness(const struct oracle_graph *graph, struct oracle_sameness *out);

/* What checking a graph found. */
struct oracle_totals {
	uint64_t graphs, operators, flows, exact, prefix, messages, rested;
};
/* What was wrong, and under which scheduler, as a graph names it. */
struct oracle_finding {
	char text[2400];
	const char *scheduler;
};
/*
 * check.c: runs the graph under all schedulers and compares. Returns false with a finding.
 * totals: added to; may be NULL.
 */
bool oracle_check(const struct oracle_graph *graph, struct oracle_totals *totals,
		  struct oracle_finding *out_finding);

/* shrink.c: makes a graph that fails smaller, as long as fails(graph) holds. */
void oracle_shrink(struct oracle_graph *graph, bool (*fails)(const struct oracle_graph *graph));

#endif
