/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_STATUS_H
#define FRAG_STATUS_H

#include <frag/operator.h>

FRAG_BEGIN_DECLS

/*
 * The status of an operator, for the monitor pattern: an operator that looks at others now and
 * then, and ends them or the application (frag_op_stop_execution, frag_fragment_stop_execution). An
 * operator pays nothing for being looked at.
 */
enum frag_op_status {
	/* start has not returned yet, or was not called */
	FRAG_OP_STATUS_NOT_STARTED,
	/* between two ticks: its conditions are not met, or no thread has come to it yet */
	FRAG_OP_STATUS_IDLE,
	/* in a tick, also while it is FRAG_PENDING */
	FRAG_OP_STATUS_TICKING,
	/* finished, and stop has returned */
	FRAG_OP_STATUS_DONE,
	/* start or compute has failed */
	FRAG_OP_STATUS_FAILED
};

/*
 * Finds an operator of the same fragment.
 * - op: any operator of the fragment, as frag_tick_op
 * - name: of the operator that is looked for
 * Returns the operator, borrowed until stop of op has returned; NULL when the fragment has none of
 * that name.
 * Thread: the callback's, from initialize to stop. Blocks: no. RT-safe: yes, but it compares
 * strings: call it in initialize or start.
 */
FRAG_API struct frag_op *frag_op_find(const struct frag_op *op, const char *name);
/*
 * Returns what an operator does at this moment; it may do something else when the call returns. An
 * operator that is DONE or FAILED stays so. What an operator did before it was DONE is visible to
 * the thread that has read it.
 * - op: what frag_op_find has returned, or the operator itself
 * Thread: any, while an operator of the fragment is in a callback from initialize to stop. Blocks:
 * no. RT-safe: yes.
 */
FRAG_API enum frag_op_status frag_op_status_get(const struct frag_op *op);
/*
 * Returns how many ticks an operator has begun.
 * Thread, Blocks, RT-safe: as frag_op_status_get.
 */
FRAG_API uint64_t frag_op_ticks(const struct frag_op *op);

/*
 * Takes a failure back that was worded in this callback, by frag_op_fail or by a function that
 * words its own: for an operator that goes on all the same, so that a later failure is worded anew.
 * - out_err: receives the code and the sentence, if there is one; NULL is accepted
 * Returns the code; 0: nothing was worded.
 * Thread: the callback's. Blocks: no. RT-safe: yes.
 */
FRAG_API int frag_op_take_failure(struct frag_op *op, struct frag_err *out_err);

/* What an operator counts itself, for the summary. */
enum frag_op_counter {
	/* damaged pieces of what it reads that it left out */
	FRAG_OP_SKIPPED,
	/* files that it removed to keep to a limit of disk */
	FRAG_OP_REMOVED,
	/* live frames that waited for its receivers for more than 3 periods */
	FRAG_OP_HELD_BACK
};
/*
 * Adds to a counter of an operator; in the harness nothing is counted.
 * Thread: the callback's, from start to stop. Blocks: no. RT-safe: yes.
 */
FRAG_API void frag_op_count(const struct frag_op *op, enum frag_op_counter counter, uint64_t count);

FRAG_END_DECLS

#endif
