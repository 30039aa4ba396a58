// SPDX-License-Identifier: Apache-2.0
#include <sched/kind.h>

/*
 * A tick in which compute has returned FRAG_PENDING. Nothing of it ends: its messages stay
 * received, its metadata stays, and it counts as one tick and one compute, whose time is the sum of
 * all calls. In the ledger the operator is in this tick all the time, so its watchdog, and the time
 * that a stop leaves, hold for what it waits for too.
 *
 * Plain ticks pay nothing: only while a tick is pending something goes around compute, and the
 * conditions are evaluated in fragi_exec_ready_all, which answers READY when the tick was resumed.
 */

/*
 * Goes on with the tick: takes back what the begin of a tick has changed. compute reads what it
 * waits for after `resumed` was cleared, so what comes later comes with a later resume.
 */
static int go_on(void *self, struct frag_tick *tick)
{
	struct fragi_exec *exec = (struct fragi_exec *)tick;

	atomic_exchange(&exec->resumed, false);
	tick->number--;
	atomic_store_explicit(&exec->row->ticks, tick->number, memory_order_relaxed);
	tick->time_ns = exec->pending_time_ns;
	exec->result = fragi_inside_compute(FRAGI_AROUND_PENDING, self, tick);
	return FRAG_PENDING; /* fragi_exec_unusual_end decides by the result */
}

static bool is_wanted(const struct fragi_exec *exec)
{
	return exec->pending;
}

const struct fragi_around fragi_around_pending = {
	.is_wanted = is_wanted,
	.compute = go_on,
};

static void begin_pending(struct fragi_exec *exec)
{
	exec->pending = true;
	exec->pending_time_ns = frag_tick_time_ns(&exec->tick);
	fragi_around_bind(exec);
	atomic_store_explicit(&exec->needs_full_check, true, memory_order_relaxed);
	if (exec->sched != NULL)
		atomic_fetch_add(&exec->sched->pending, 1);
}

static void end_tick(struct fragi_exec *exec, bool has_failed)
{
	if (exec->pending) {
		if (exec->sched != NULL)
			atomic_fetch_sub(&exec->sched->pending, 1);
		exec->pending = false;
		fragi_around_bind(exec);
	}
	fragi_hist_add(&exec->row->compute, exec->busy_ns);
	exec->busy_ns = 0;
	fragi_tick_end(&exec->tick);
	if (exec->watches_ticks)
		fragi_exec_tick_ended(exec, has_failed);
}

int fragi_exec_unusual_end(struct fragi_exec *exec, int r, uint64_t lasted_ns)
{
	exec->busy_ns += lasted_ns;
	if (exec->pending)
		r = exec->result;
	if (fragi_tick_goes_on(&exec->tick, r)) {
		fragi_op_forget_failure(exec->op); /* as after 0: it is no failure */
		if (!exec->pending)
			begin_pending(exec);
		return 0;
	}
	end_tick(exec, (r != 0 && r != FRAG_DONE) || exec->tick.fault != 0);
	return (r | exec->op->failed.code) == 0 ? 0 : fragi_exec_unexpected_result(exec, r);
}

void fragi_exec_give_up_pending(struct fragi_exec *exec)
{
	if (exec->pending)
		end_tick(exec, true);
}

void frag_op_resume(struct frag_op *op)
{
	struct fragi_exec *exec = op->exec;

	if (exec == NULL)
		return;
	atomic_store(&exec->resumed, true);
	if (exec->sched != NULL)
		exec->sched->kind->notify(exec);
}
