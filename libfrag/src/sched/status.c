// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include <frag/status.h>
#include <sched/exec.h>

/*
 * The row of the ledger says it all: it is written for workerd anyway, so operators that nobody
 * looks at pay nothing, and neither do those that somebody does.
 */

struct frag_op *frag_op_find(const struct frag_op *op, const char *name)
{
	const struct frag_fragment *fragment = op->fragment;

	for (uint32_t i = 0; i < fragment->op_count; i++)
		if (strcmp(fragment->ops[i]->name, name) == 0)
			return fragment->ops[i];
	return NULL;
}

enum frag_op_status frag_op_status_get(const struct frag_op *op)
{
	const struct fragi_exec *exec = op->exec;
	uint64_t computes;

	if (exec == NULL)
		return FRAG_OP_STATUS_NOT_STARTED;
	switch ((enum fragi_op_state)atomic_load_explicit(&exec->row->state,
							  memory_order_acquire)) {
	case FRAGI_OP_STARTED:
		break;
	case FRAGI_OP_DONE:
		return FRAG_OP_STATUS_DONE;
	case FRAGI_OP_FAILED:
		return FRAG_OP_STATUS_FAILED;
	case FRAGI_OP_MADE:
	default:
		return FRAG_OP_STATUS_NOT_STARTED;
	}
	/* In this order: ticks that began in between can only make it look busier. */
	computes = atomic_load_explicit(&exec->row->compute.count, memory_order_acquire);
	return atomic_load_explicit(&exec->row->ticks, memory_order_relaxed) > computes
		       ? FRAG_OP_STATUS_TICKING
		       : FRAG_OP_STATUS_IDLE;
}

uint64_t frag_op_ticks(const struct frag_op *op)
{
	const struct fragi_exec *exec = op->exec;

	return exec != NULL ? atomic_load_explicit(&exec->row->ticks, memory_order_relaxed) : 0;
}

void frag_op_count(const struct frag_op *op, enum frag_op_counter counter, uint64_t count)
{
	const struct fragi_exec *exec = op->exec;

	if (exec == NULL)
		return;
	if (counter == FRAG_OP_SKIPPED)
		fragi_count(&exec->row->skipped, count);
	else if (counter == FRAG_OP_REMOVED)
		fragi_count(&exec->row->removed, count);
	else
		fragi_count(&exec->row->held_back, count);
}
