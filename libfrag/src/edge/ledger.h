/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_EDGE_LEDGER_H
#define FRAGI_EDGE_LEDGER_H

#include <stdbool.h>

#include <base/blame.h>
#include <base/counters.h>
#include <base/stamp.h>
#include <base/trace.h>

/*
 * The ledger: what happened to every message, in a page that the host writes and its workerd reads,
 * also after the host is gone. In a process without a workerd it is ordinary memory. Every counter
 * has one writer and is counted where the thing happens; sent = delivered + dropped + lost + in
 * flight for every flow, where lost is only known to who sees an end die. A flow inside the host
 * uses both halves of its row, a flow between hosts one half in each.
 */

struct fragi_flow_row {
#define FRAGI_ROW_FIELD(name, shown, what) _Atomic uint64_t name;
	/* written by the sender */
	_Alignas(64) _Atomic uint64_t tx_dropped[FRAGI_DROP_REASONS];
	FRAGI_SENDER_LIST(FRAGI_ROW_FIELD)
	/* written by the receiver, the first ones so seldom that they slow no sender */
	FRAGI_RECEIVER_SELDOM_LIST(FRAGI_ROW_FIELD)
	_Alignas(64) _Atomic uint64_t rx_dropped[FRAGI_DROP_REASONS];
	FRAGI_RECEIVER_OFTEN_LIST(FRAGI_ROW_FIELD)
#undef FRAGI_ROW_FIELD
	struct fragi_hist latency; /* ns from emit to receive */
};
/* What is in flight is never below zero: everything settled is read before what was sent. */
FRAGI_API void fragi_flow_row_read(const struct fragi_flow_row *row,
				   struct fragi_hist_buckets latency, struct fragi_flow_stats *out);

enum fragi_op_state {
	FRAGI_OP_MADE,
	FRAGI_OP_STARTED,
	FRAGI_OP_DONE,
	FRAGI_OP_FAILED,
};

struct fragi_op_row {
	_Alignas(64) _Atomic uint64_t state; /* enum fragi_op_state */
	_Atomic uint64_t ticks;              /* begun; in a tick: its number, from 1 */
	/*
	 * CLOCK_MONOTONIC_COARSE-like: set at tick start by watchdogged operators; 0: not in
	 * compute
	 */
	_Atomic uint64_t running_since_ns;
	/*
	 * 1 while in start or stop; it is in compute while more ticks are counted than computes:
	 * what a crash report names
	 */
	_Atomic uint64_t running;
	_Atomic uint64_t started_ns, ended_ns; /* on the fragment's clock, plus 1; 0: not yet */
	/*
	 * what that clock showed when it was last looked at, plus 1, for those that never end;
	 * 0: it is that of the machine
	 */
	_Atomic uint64_t seen_ns;
	/*
	 * How the kernel schedules the thread of a real-time operator, read back: enum
	 * fragi_sched_policy in the lower half, the priority in the upper one; 0: it is none
	 */
	_Atomic uint64_t sched;
	_Alignas(64) struct fragi_hist compute; /* ns a tick */
#define FRAGI_ROW_FIELD(name, shown, what) _Atomic uint64_t name;
	/* Those of paths are counted by the threads of other operators too. */
	FRAGI_OP_LIST(FRAGI_ROW_FIELD)
#undef FRAGI_ROW_FIELD
	_Atomic uint64_t sched_runtime_ns, sched_deadline_ns, sched_period_ns;
};

/* As struct fragi_pool_stats; written by the thread that looks. */
struct fragi_pool_row {
	_Atomic uint64_t blocks, block_bytes, free, refused, empty_ns;
};

/* What was to blame at a place on the paths that end in an operator (base/blame.h). */
struct fragi_late_row {
	_Atomic uint64_t late[FRAGI_BLAME_CAUSES];
};

/* Sets a state and when it began, on the fragment's clock. */
static inline void fragi_op_row_enter(struct fragi_op_row *row, enum fragi_op_state state,
				      int64_t now_ns)
{
	_Atomic uint64_t *when = state == FRAGI_OP_STARTED ? &row->started_ns : &row->ended_ns;

	atomic_store_explicit(when, (uint64_t)now_ns + 1, memory_order_relaxed);
	/* release: who reads it sees what the operator did (frag/status.h) */
	atomic_store_explicit(&row->state, state, memory_order_release);
}

/*
 * What an operator did: how often it was called, for how long in all (of the histogram, so within
 * 7 %), and how long it waited between its start and its end, or until now. computed_ns: that sum.
 */
struct fragi_job {
	uint64_t count, time_ns, waiting_ns;
};
FRAGI_API void fragi_op_row_job(const struct fragi_op_row *row, uint64_t computed_ns,
				struct fragi_job *out);

/* Layout 8. A page of a build that counts something else is refused. */
#define FRAGI_LEDGER_MAGIC                                                                         \
	(0x6c67726608000000ull | FRAGI_DROP_REASONS << 16 | FRAGI_SENDER_COUNTERS << 8 |           \
	 FRAGI_COUNTERS)

/*
 * The page: this head, then op rows, flow rows, the buckets of the operators' histograms and those
 * of the flows', each aligned to 64. Rows are in the order in which the host reported its operators
 * and flows after PREPARE. After size_bytes of it comes the ring of the trace, which the page of an
 * older host lacks.
 */
struct fragi_ledger_head {
	uint64_t magic;
	uint64_t size_bytes;
	uint32_t op_count, flow_count;
	uint32_t op_row_bytes, flow_row_bytes;
	uint64_t op_offset, flow_offset;
	uint64_t op_bucket_offset, flow_bucket_offset;
	_Atomic uint64_t reserved;
	/* how often all schedulers of this host have been found at rest */
	_Atomic uint64_t idle_rounds;
	/* in the order in which the host reported them after PREPARE */
	struct fragi_pool_row pools[FRAGI_POOLS_MAX];
	_Atomic uint64_t late_count; /* of the rows that follow, in the same order */
	struct fragi_late_row lates[FRAGI_LATE_PLACES_MAX];
};

struct fragi_ledger {
	struct fragi_ledger_head *head; /* NULL: none */
	size_t mapped_bytes;
	uint32_t op_count, flow_count; /* of the head as it was checked */
	struct fragi_op_row *ops;
	struct fragi_flow_row *flows;
	struct fragi_hist_group *op_buckets, *flow_buckets;
	struct fragi_trace_ring *ring; /* NULL: its host makes none */
};

/*
 * Makes the page in the file fd (ftruncate, map; a memfd), or in anonymous memory when fd < 0.
 * Returns 0 or negative errno.
 */
FRAGI_API int fragi_ledger_create(struct fragi_ledger *ledger, int fd, uint32_t op_count,
				  uint32_t flow_count);
/*
 * From now on nothing but the mapping writes to the page: no other descriptor of it, which code of
 * an operator may find. Returns 0; -EPERM: somebody has sealed the file before. Without effect
 * where fd is no memfd that can be sealed, and before Linux 5.1.
 */
FRAGI_API int fragi_ledger_seal(int fd);
/*
 * Maps another process's page read-only; everything in its head is checked. Returns 0; -ENOENT: the
 * head has not been written yet; -EBADMSG, or negative errno.
 */
FRAGI_API int fragi_ledger_open(struct fragi_ledger *ledger, int fd);
/* Pages of one that was opened count as memory of this process again once they are read. */
FRAGI_API void fragi_ledger_rest(const struct fragi_ledger *ledger);
FRAGI_API void fragi_ledger_close(struct fragi_ledger *ledger);

static inline struct fragi_hist_buckets fragi_ledger_compute(const struct fragi_ledger *ledger,
							     uint32_t op)
{
	return (struct fragi_hist_buckets){fragi_hist_in_group(ledger->op_buckets, op),
					   8 * FRAGI_HIST_GROUP};
}

static inline struct fragi_hist_buckets fragi_ledger_latency(const struct fragi_ledger *ledger,
							     uint32_t flow)
{
	return (struct fragi_hist_buckets){fragi_hist_in_group(ledger->flow_buckets, flow),
					   8 * FRAGI_HIST_GROUP};
}

#endif
