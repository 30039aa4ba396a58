// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include <base/units.h>
#include <data/message.h>
#include <sched/exec.h>

/*
 * The deadline of an operator: the time is compared after compute. Messages that are too old
 * already are dropped by timing.c.
 */

/* How old the oldest message of the tick is; 0: none has a time that is known here. */
static int64_t oldest_ns(const struct frag_tick *tick)
{
	int64_t now_ns = fragi_now_ns(), time_ns, oldest = 0;

	for (uint32_t i = 0; i < tick->received_count; i++)
		if (fragi_acquired_ns(tick->received[i], now_ns, &time_ns) &&
		    now_ns - oldest > time_ns)
			oldest = now_ns - time_ns;
	return oldest;
}

int fragi_deadline_fail(struct frag_tick *tick, int64_t took_ns, int64_t budget_ns,
			const char *what)
{
	struct fragi_exec *exec = (struct fragi_exec *)tick;
	char took[32], budget[32];

	exec->missed_deadline = true;
	return frag_op_fail(exec->op, -ETIME,
			    "tick %llu missed a deadline: %s took %s, and its budget is %s",
			    (unsigned long long)tick->number, what,
			    fragi_format_duration(took_ns, took, sizeof(took)),
			    fragi_format_duration(budget_ns, budget, sizeof(budget)));
}

static bool is_wanted(const struct fragi_exec *exec)
{
	return exec->op->deadline.budget_ns != 0;
}

static int compute(void *self, struct frag_tick *tick)
{
	struct fragi_exec *exec = (struct fragi_exec *)tick;
	const struct fragi_deadline *deadline = &exec->op->deadline;
	int64_t took_ns;
	int r;

	if (!exec->pending)
		exec->deadline_begin = tick->stamp;
	r = fragi_inside_compute(FRAGI_AROUND_DEADLINE, self, tick);
	if (r < 0 || fragi_tick_goes_on(tick, r))
		return r;
	took_ns = deadline->from_acquisition
			  ? oldest_ns(tick)
			  : (int64_t)fragi_stamp_diff_ns(exec->deadline_begin, fragi_stamp());
	if (took_ns <= deadline->budget_ns)
		return r;
	fragi_count(&exec->row->deadline_misses, 1);
	if (deadline->on_miss != FRAG_ON_MISS_STOP)
		return r;
	return fragi_deadline_fail(tick, took_ns, deadline->budget_ns,
				   deadline->from_acquisition ? "its oldest message" : "compute");
}

const struct fragi_around fragi_around_deadline = {
	.is_wanted = is_wanted,
	.compute = compute,
};
