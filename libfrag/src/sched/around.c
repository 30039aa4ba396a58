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

void fragi_around_bind(struct fragi_exec *exec)
{
	struct fragi_inside inside = {
		.compute = exec->op->type->compute,
		.emit = fragi_tick_attach,
		.emit_when = FRAGI_ATTACH_METADATA,
	};
	uint8_t attaches = (uint8_t)(exec->tick.attaches & ~FRAGI_ATTACH_TAP);

	if (!exec->op->metadata) /* set by what it receives (tick.c) */
		inside.emit_when |= FRAGI_ATTACH_ALWAYS;

	for (size_t i = FRAGI_AROUND_COUNT; i-- > 0;) {
		exec->inside[i] = inside;
		if (!all[i]->is_wanted(exec))
			continue;
		if (all[i]->compute != NULL)
			inside.compute = all[i]->compute;
		if (all[i]->emit != NULL) {
			inside.emit = all[i]->emit;
			inside.emit_when |= FRAGI_ATTACH_ALWAYS;
			attaches |= i == FRAGI_AROUND_TAP ? FRAGI_ATTACH_TAP : FRAGI_ATTACH_ALWAYS;
		}
	}
	exec->compute = inside.compute;
	exec->tick.attach = inside.emit;
	exec->tick.attaches = attaches;
}
