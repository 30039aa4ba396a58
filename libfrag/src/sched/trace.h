/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_SCHED_TRACE_H
#define FRAGI_SCHED_TRACE_H

#include <base/trace.h>
#include <sched/exec.h>

/*
 * The trace of an operator: each of its ticks leaves records in the ring of its host
 * (base/trace.h). The operator's thread takes part, and no longer, between two ticks, as it takes
 * taps (tap.h). What was sent and received is not seen message by message: the ends of flows count,
 * and what a tick has added to the counts is its own. Without a trace nothing goes around the
 * ticks.
 */
struct fragi_exec_trace;

/*
 * The control thread: from now on the operator takes part. ops, flows: the first rows of the
 * ledger. ring, which stays for as long as the operator does; NULL: it takes part no more. It does
 * not take part where there is no memory.
 */
void fragi_exec_trace(struct fragi_exec *exec, struct fragi_trace_ring *ring,
		      const struct fragi_op_row *ops, const struct fragi_flow_row *flows);
void fragi_exec_trace_free(struct fragi_exec *exec);

/*
 * What the operator was seen to do, enum fragi_use: left in the ring if it takes part and did
 * something else before. Thread: the one that looks (look.h).
 */
void fragi_exec_trace_use(const struct fragi_exec *exec, uint32_t use);

/* A message was late that took so long. blamed: NULL: no operator here. */
void fragi_exec_trace_late(const struct fragi_exec *exec, const struct fragi_exec *blamed,
			   uint32_t cause, uint64_t took_ns);

#endif
