/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_LOOK_H
#define FRAGI_BASE_LOOK_H

#include <stdbool.h>
#include <stdint.h>

#include <base/blame.h>
#include <base/counters.h>

/*
 * Where the time of an application goes, over a window, as plain tables: a driver fills them while
 * somebody looks, the wire carries them, track/cause.h finds the root cause in them, and top, page
 * and metrics show them. Everything that is said about time is read from here.
 *
 * Texts are borrowed; NULL is an empty text, or none where a comment says so. Numbers of a window
 * are those of that window alone: rates are what was counted, divided by window_ns.
 */

/*
 * What an operator did at each moment: exactly one of these, so that the times of an operator add
 * up to the window. X(NAME, name, what)
 */
#define FRAGI_USE_LIST(X)                                                                          \
	X(BUSY, busy, "It was in a callback, or its outside work was pending.")                    \
	X(INPUT, input, "It waited for a message.")                                                \
	X(ROOM, room, "It waited for room in a queue behind it.")                                  \
	X(MEMORY, memory, "It waited for memory of a pool.")                                       \
	X(THREAD, thread, "It could have ticked, but no thread was free.")                         \
	X(TIME, time, "It waited for a time or an event that it asked for itself.")                \
	X(SUSPENDED, suspended, "It did not run: a start, a restart, a move, a pause, or its end.")

#define FRAGI_USE_ENUM(NAME, name, what) FRAGI_USE_##NAME,
enum fragi_use { FRAGI_USE_LIST(FRAGI_USE_ENUM) FRAGI_USES };
#undef FRAGI_USE_ENUM

#define FRAGI_LOOK_NONE UINT32_MAX

#define FRAGI_LIVE_SUM(name, unit, metric, help) uint64_t name##_sum;

struct fragi_look_operator {
	const char *name; /* "fragment1.detect" */
	const char *type;
	uint32_t host; /* index of its host */
	uint64_t use_ns[FRAGI_USES];
	/* the flow that it waited for longest; FRAGI_LOOK_NONE: it waited for none */
	uint32_t input_flow, room_flow;
	/* the pool that it waited for, of several the one that was empty longest: "frames"; NULL: none */
	const char *pool;
	uint64_t ticks; /* begun in the window */
	/* ns a tick, since the start of its process */
	struct fragi_quantiles compute;
	/* the rate that the graph promises, in 1/1000 Hz, and its budget; 0: none */
	uint64_t promised_mhz, budget_ns;
	/* between two ticks, by a periodic condition of its own; 0: it has none */
	uint64_t period_ns;
	bool has_ended; /* done or failed: it will not tick again */
	/* since the start, of all its processes; times: while somebody looked */
	uint64_t use_sums[FRAGI_USES]; /* ns */
	uint64_t ticks_sum;
	FRAGI_OP_LIVE_LIST(FRAGI_LIVE_SUM)
	uint64_t late_sums[FRAGI_BLAME_CAUSES];     /* what messages of paths were late by */
	const struct fragi_late_place *late_places; /* where, as far as that is known */
	uint32_t late_place_count;
};

struct fragi_look_flow {
	const char *from, *to;     /* "fragment1.tx.out" */
	uint32_t sender, receiver; /* indices of operators */
	const char *edge;          /* "inproc", "shm", "ucx" */
	const char *policy;        /* "block" */
	uint32_t capacity;
	/* in the window */
	uint64_t sent, delivered, bytes, lost;
	uint64_t dropped[FRAGI_DROP_REASONS];
	uint64_t full_ns; /* it had no room */
	uint64_t depth;   /* messages in flight at its end */
	/* since the start, exactly as the summary counts them */
	uint64_t sent_sum, delivered_sum, dropped_sum, lost_sum;
	FRAGI_FLOW_LIVE_LIST(FRAGI_LIVE_SUM)
	uint64_t dropped_sums[FRAGI_DROP_REASONS];
	struct fragi_quantiles latency; /* ns from emit to receive, since the start */
	/* whether its receiver may drop messages for reasons from FRAGI_DROP_STALE on */
	bool is_timed;
};

/* A process that runs operators. */
struct fragi_look_host {
	const char *name;   /* its fragments: "detect", or "a+b" */
	const char *worker; /* NULL: it has none, as under fragctl run */
	int64_t pid;        /* 0: it does not run */
	uint64_t epoch;
	uint32_t restarts;
	uint32_t threads;      /* that compute */
	uint32_t cores;        /* that they may use */
	uint64_t cpu_ns;       /* in the window, of all threads */
	uint64_t starved_ns;   /* in the window: threads could run and the kernel gave no core */
	uint64_t io_ns;        /* in the window: threads waited for a disk */
	uint64_t rss_bytes;    /* at its end */
	uint64_t major_faults; /* in the window */
	/* why its operators are suspended: "restarts after crash"; NULL: they are not */
	const char *suspended_because;
	uint64_t cpu_sum_ns; /* of all its processes; 0: not known */
};

/* A pool of blocks of a host, or of bytes of a GPU: block_bytes 1. */
struct fragi_look_pool {
	const char *name; /* "fragment1.frames" */
	uint32_t host;    /* index of its host */
	uint64_t blocks, block_bytes, used;
	uint64_t empty_ns; /* in the window: no block was free */
	/* of all processes: blocks that were asked for in vain; while somebody looked */
	uint64_t refused_sum, empty_sum_ns;
};

struct fragi_look_worker {
	const char *name;
	uint32_t cores;
	uint64_t cpu_ns; /* in the window, of the whole machine */
	uint64_t memory_bytes, memory_used_bytes;
	uint64_t received_bytes, sent_bytes; /* in the window, by all networks but loopback */
	/* GPUs of NVIDIA; busy: of all of them on average, at the end of the window */
	uint64_t gpus, gpu_busy_permille, gpu_memory_bytes, gpu_memory_used_bytes;
};

/* A link of the chain from what is slow to what causes it. */
struct fragi_look_step {
	uint32_t op;      /* index of an operator; FRAGI_LOOK_NONE: it is about a flow */
	uint32_t flow;    /* index of a flow; FRAGI_LOOK_NONE: it is about an operator */
	const char *text; /* "fragment1.video waits 740 ms a second for room in video.out" */
};

struct fragi_look {
	const char *application;
	const char *state;  /* as `fragctl list` shows it */
	uint64_t window_ns; /* 0: nothing was measured yet */
	int64_t unix_ns;    /* the end of the window, by the driver's clock */
	const struct fragi_look_operator *operators;
	const struct fragi_look_flow *flows;
	const struct fragi_look_host *hosts;
	const struct fragi_look_worker *workers;
	uint32_t operator_count, flow_count, host_count, worker_count;
	/* left out because there are too many: the quietest ones */
	uint32_t operators_left_out, flows_left_out;
	/* track/cause.h, or what bounds the rate; NULL: nothing does, or nothing was measured */
	const char *cause;
	const struct fragi_look_pool *pools;
	uint32_t pool_count;
};

#endif
