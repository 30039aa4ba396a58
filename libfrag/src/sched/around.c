// SPDX-License-Identifier: Apache-2.0
#include <sched/around.h>
#include <sched/exec.h>

/*
 * Why the order is as it is, from the outside in:
 * - a trace shows all that a tick does, and may come and go while the operator runs
 * - a tap sees messages as they leave, and may come and go while the operator runs
 * - a tick that goes on takes back what its begin has changed, before anybody looks at it
 * - the range of a profiler spans all that a tick costs
 * - flow control takes and sends execution messages, and what it sends is emitted like any message
 * - loggers see messages as they leave, and are not part of what a deadline measures
 * - the deadline of the operator does not count a tick that has missed the deadline of a path
 * - paths and tracking read the labels of what compute has received
 * - a stream marks the tensors that its work writes before anybody else holds the message
 */
static const struct fragi_around *const all[FRAGI_AROUND_COUNT] = {
	[FRAGI_AROUND_TRACE] = &fragi_around_trace,
	[FRAGI_AROUND_TAP] = &fragi_around_tap,
	[FRAGI_AROUND_PENDING] = &fragi_around_pending,
	[FRAGI_AROUND_RANGES] = &fragi_around_ranges,
	[FRAGI_AROUND_FLOW_CONTROL] = &fragi_around_flow_control,
	[FRAGI_AROUND_LOGGING] = &fragi_around_logging,
	[FRAGI_AROUND_DEADLINE] = &fragi_around_deadline,
	[FRAGI_AROUND_PATH] = &fragi_around_path,
	[FRAGI_AROUND_TRACKING] = &fragi_around_tracking,
	[FRAGI_AROUND_STREAM] = &fragi_around_stream,
};

/* Returns the outermost entry of the set that lies inside `at`; NULL: there is none. */
static const struct fragi_around *next_of(uint16_t set, enum fragi_around_at at)
{
	uint32_t inside = set & ~0u << (at + 1);

	return inside != 0 ? all[__builtin_ctz(inside)] : NULL;
}

int fragi_inside_compute(enum fragi_around_at at, void *self, struct frag_tick *tick)
{
	const struct fragi_exec *exec = (struct fragi_exec *)tick;
	const struct fragi_around *next = next_of(exec->around_ticks, at);

	return next != NULL ? next->compute(self, tick) : exec->op->type->compute(self, tick);
}

/* Without an entry: FRAGI_ATTACH_*, when fragi_tick_attach is called for a message. */
static uint8_t attaches_when(const struct fragi_exec *exec)
{
	/* metadata is set by what it receives (tick.c) */
	return FRAGI_ATTACH_METADATA | (exec->op->metadata ? 0 : FRAGI_ATTACH_ALWAYS);
}

struct frag_message *fragi_inside_emit(enum fragi_around_at at, struct frag_tick *tick,
				       uint32_t port, struct frag_message *message)
{
	const struct fragi_exec *exec = (struct fragi_exec *)tick;
	const struct fragi_around *next = next_of(exec->around_emits, at);

	if (next != NULL)
		return next->emit(tick, port, message);
	return (tick->attaches & attaches_when(exec)) != 0 ? fragi_tick_attach(tick, port, message)
							   : message;
}

void fragi_around_bind(struct fragi_exec *exec)
{
	uint8_t attaches = (uint8_t)(exec->tick.attaches & ~FRAGI_ATTACH_TAP);

	exec->compute = exec->op->type->compute;
	exec->tick.attach = fragi_tick_attach;
	exec->around_ticks = exec->around_emits = 0;
	for (size_t i = FRAGI_AROUND_COUNT; i-- > 0;) {
		if (!all[i]->is_wanted(exec))
			continue;
		if (all[i]->compute != NULL) {
			exec->compute = all[i]->compute;
			exec->around_ticks |= (uint16_t)(1u << i);
		}
		if (all[i]->emit != NULL) {
			exec->tick.attach = all[i]->emit;
			exec->around_emits |= (uint16_t)(1u << i);
			attaches |= i == FRAGI_AROUND_TAP ? FRAGI_ATTACH_TAP : FRAGI_ATTACH_ALWAYS;
		}
	}
	exec->tick.attaches = attaches;
}
