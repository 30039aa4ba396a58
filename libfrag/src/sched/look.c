// SPDX-License-Identifier: Apache-2.0
#include <sched/look.h>

#include <sched/event.h>
#include <sched/kind.h>
#include <sched/path_deadline.h>
#include <sched/trace.h>

/*
 * What an operator does, seen from outside while its scheduler runs on: from queues, credits, and
 * what the scheduler has written for itself. Nothing is locked, nothing is called that belongs to a
 * user, and no operator executes an instruction for it. Between two reads the operator goes on, so
 * a single answer may be wrong; they are many, and each moment counts once.
 */

static bool is_in_callback(const struct fragi_exec *exec)
{
	const struct fragi_op_row *row = exec->row;
	uint64_t ticks = atomic_load_explicit(&row->ticks, memory_order_acquire);

	return ticks > atomic_load_explicit(&row->compute.count, memory_order_acquire) ||
	       atomic_load_explicit(&row->running, memory_order_relaxed) != 0;
}

static bool is_suspended(const struct fragi_exec *exec)
{
	return atomic_load_explicit(&exec->row->state, memory_order_acquire) != FRAGI_OP_STARTED ||
	       atomic_load_explicit(&exec->sched->halting, memory_order_relaxed);
}

/* Counts the flows of a gate that are to have a message and have none. Returns whether any was. */
static bool lacks_messages(struct fragi_rx *const *rx, uint32_t count, uint32_t min, bool in_turn,
			   uint64_t ns)
{
	bool lacks = false, has_some = false;

	for (uint32_t i = 0; i < count; i++) {
		if (atomic_load_explicit(&rx[i]->queue.sender_closed, memory_order_relaxed))
			continue;
		if (fragi_rx_available(rx[i]) >= min)
			has_some = true;
		else
			lacks = true;
	}
	if (!lacks || (in_turn && has_some))
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (fragi_rx_available(rx[i]) < min)
			fragi_count(&rx[i]->row->input_ns, ns);
	return true;
}

static bool lacks_room(const struct fragi_gate *gate, uint64_t ns, bool *out_is_away)
{
	bool lacks = false;

	for (uint32_t i = 0; i < gate->count; i++)
		if (gate->tx[i]->ops->room(gate->tx[i]) < gate->min) {
			fragi_count(&gate->tx[i]->row->room_ns, ns);
			lacks = true;
			if (gate->tx[i]->ops->is_away != NULL &&
			    gate->tx[i]->ops->is_away(gate->tx[i]))
				*out_is_away = true;
		}
	return lacks;
}

static bool waits_for_room(const struct fragi_exec *exec, uint64_t ns)
{
	bool waits = false, is_away = false;

	for (uint32_t i = 0; i < exec->out_count; i++)
		waits |= lacks_room(&exec->out[i], ns, &is_away);
	if (is_away)
		fragi_path_awaits_host(exec->op, ns);
	return waits;
}

static bool waits_for_input(const struct fragi_exec *exec, uint64_t ns)
{
	bool waits = false;

	for (uint32_t i = 0; i < exec->in_count; i++)
		waits |= lacks_messages(exec->in[i].rx, exec->in[i].count, exec->in[i].min,
					exec->in[i].in_turn != NULL, ns);
	return waits;
}

/*
 * Whether the receiver of one of its flows is in a callback: the sender is told of what that tick
 * has taken when it ends, so it still waits for room. Counts those flows.
 */
static bool waits_for_receiver(const struct fragi_exec *exec, uint64_t ns)
{
	bool waits = false;

	for (uint32_t i = 0; i < exec->tx_count; i++) {
		const struct fragi_rx *rx = exec->txs[i]->rx;

		if (rx == NULL || !rx->blocking || rx->arrival.arg == NULL ||
		    !is_in_callback(rx->arrival.arg))
			continue;
		fragi_count(&exec->txs[i]->row->room_ns, ns);
		waits = true;
	}
	return waits;
}

/*
 * Its ports let it run, so it waits for a condition that is no gate: for memory, for a message that
 * such a condition looks at, or for a time or an event.
 */
static bool waits_for_condition(const struct fragi_exec *exec, uint64_t ns, enum fragi_use *out_use)
{
	if (fragi_checks_lack_memory(exec))
		*out_use = FRAGI_USE_MEMORY;
	else if (exec->waits_for_inputs &&
		 lacks_messages(exec->rxs, exec->rx_count, 1, exec->timing != NULL, ns))
		*out_use = FRAGI_USE_INPUT;
	else if (exec->check_count != 0 || exec->timing != NULL ||
		 atomic_load_explicit(&exec->timer_armed, memory_order_relaxed))
		*out_use = FRAGI_USE_TIME;
	else
		return false;
	return true;
}

/* has_idle: not all threads of its scheduler are in operators. */
static enum fragi_use use_of(const struct fragi_exec *exec, bool has_idle, uint64_t ns)
{
	bool is_queued =
		(atomic_load_explicit(&exec->state, memory_order_relaxed) & FRAGI_QUEUED) != 0;
	enum fragi_use use;

	if (is_suspended(exec))
		return FRAGI_USE_SUSPENDED;
	if (is_in_callback(exec))
		return FRAGI_USE_BUSY;
	if (waits_for_room(exec, ns))
		return FRAGI_USE_ROOM;
	if (waits_for_input(exec, ns))
		return FRAGI_USE_INPUT;
	if (!is_queued && waits_for_condition(exec, ns, &use))
		return use;
	if (!has_idle)
		return FRAGI_USE_THREAD;
	/* What a tick sends and takes is told to the others when it ends. */
	if (waits_for_receiver(exec, ns))
		return FRAGI_USE_ROOM;
	for (uint32_t i = 0; i < exec->rx_count; i++)
		fragi_count(&exec->rxs[i]->row->input_ns, ns);
	return exec->rx_count != 0 ? FRAGI_USE_INPUT : FRAGI_USE_THREAD;
}

/* Whether a thread of the scheduler is in no operator. */
static bool has_idle_thread(const struct fragi_sched *sched)
{
	const struct event *event = (const struct event *)sched;
	uint32_t threads = 1, busy = 0;

	if (sched->kind == &fragi_sched_event_based)
		threads = event->thread_count + fragi_event_crews_threads(event);
	for (uint32_t i = 0; i < sched->count; i++)
		busy += is_in_callback(sched->execs[i]);
	return busy < threads;
}

static bool is_full(const struct fragi_tx *tx)
{
	return tx->rx != NULL ? fragi_rx_available(tx->rx) >= tx->rx->queue.capacity
			      : tx->ops->room(tx) == 0;
}

void fragi_sched_look(struct fragi_sched *sched, uint64_t ns)
{
	bool has_idle = has_idle_thread(sched);

	for (uint32_t i = 0; i < sched->count; i++) {
		const struct fragi_exec *exec = sched->execs[i];

		const enum fragi_use use = use_of(exec, has_idle, ns);

		fragi_count(&exec->row->use_busy + use, ns);
		fragi_exec_trace_use(exec, use);
		for (uint32_t k = 0; k < exec->tx_count; k++)
			if (is_full(exec->txs[k]))
				fragi_count(&exec->txs[k]->row->full_ns, ns);
	}
}
