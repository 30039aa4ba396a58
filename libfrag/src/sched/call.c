// SPDX-License-Identifier: Apache-2.0
#include <time.h>

#include <sched/kind.h>
#include <sched/saved.h>

/* The calls of an operator's callbacks, as the watchdog and crash reports see them. */

static int64_t coarse_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void watch_begin(struct fragi_exec *exec, enum fragi_call_kind callback)
{
	atomic_store_explicit(&exec->callback, callback, memory_order_relaxed);
	/* Release: a thread that reads the time also sees the callback. */
	atomic_store_explicit(&exec->row->running_since_ns, (uint64_t)coarse_now_ns(),
			      memory_order_release);
}

static void watch_end(struct fragi_exec *exec)
{
	atomic_store_explicit(&exec->row->running_since_ns, 0, memory_order_relaxed);
}

void fragi_exec_tick_begins(struct fragi_exec *exec)
{
	if (fragi_clock_kind_of(exec->clock) != FRAGI_CLOCK_MACHINE)
		exec->tick.time_ns = fragi_clock_now_ns(exec->clock);
	if (exec->watchdog_ns > 0 && !exec->pending) /* it waits since the tick began */
		watch_begin(exec, FRAGI_CALL_COMPUTE);
	if (exec->timing != NULL && !exec->pending)
		fragi_timing_begins(exec);
}

static void save(struct fragi_exec *exec)
{
	fragi_current_set(exec->op, FRAGI_CALL_SAVE);
	watch_begin(exec, FRAGI_CALL_SAVE);
	fragi_saved_save(exec->op);
	watch_end(exec);
	fragi_current_set(NULL, FRAGI_CALL_COMPUTE);
}

void fragi_exec_tick_ended(struct fragi_exec *exec, bool has_failed)
{
	if (exec->watchdog_ns > 0)
		watch_end(exec);
	if (exec->op->saved != NULL && !has_failed)
		save(exec);
	fragi_checks_ticked(exec);
}

struct fragi_current *fragi_exec_current(void)
{
	struct fragi_current *current = fragi_current();

	__atomic_store_n(&current->callback, FRAGI_CALL_COMPUTE, __ATOMIC_RELAXED);
	return current;
}

int fragi_exec_call(struct fragi_exec *exec, enum fragi_call_kind kind,
		    int (*callback)(void *self, struct frag_op *op))
{
	int r;

	fragi_current_set(exec->op, kind);
	watch_begin(exec, kind);
	r = callback(exec->self, exec->op);
	watch_end(exec);
	fragi_current_set(NULL, FRAGI_CALL_COMPUTE);
	return r;
}
