/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_SCHED_STATE_H
#define TESTS_UNIT_SCHED_STATE_H

#include <sched/kind.h>

#include "state_sum.h"

/*
 * What a scheduler remembers of its operators, for the sum. On a manual clock, where stamps are
 * taken of it. Left out is what other threads set when they come to it.
 */
static inline void state_of_gates(const struct fragi_gate *gates, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		STATE(gates[i].count), STATE(gates[i].min), STATE(gates[i].max);
		STATE_HAS(gates[i].rx), STATE_HAS(gates[i].in_turn);
	}
}

static inline void state_of_queue(const struct fragi_queue *queue)
{
	STATE(queue->capacity), STATE(queue->mask), STATE(queue->tail), STATE(queue->head);
	STATE(queue->sender_closed), STATE(queue->receiver_closed);
}

static inline void state_of_tick(const struct frag_tick *tick)
{
	STATE(tick->number), STATE(tick->attaches), STATE(tick->received_count);
	STATE(tick->received_capacity), STATE(tick->stamp), STATE_HAS(tick->metadata_of);
	STATE(tick->time_ns), STATE(tick->fault), STATE(tick->refused);
	STATE(tick->refused_port), STATE(tick->refused_in);
	for (uint32_t i = 0; i < tick->port_count; i++) {
		const struct fragi_exec_port *port = &tick->ports[i];

		STATE(port->count), STATE(port->dir), STATE(port->tensor), STATE(port->in_turn);
		STATE_HAS(port->next_rx), STATE_HAS(port->only_tx), STATE_HAS(port->type);
		STATE_HAS(port->timed);
	}
}

static inline void state_of_exec(const struct fragi_exec *exec)
{
	state_of_tick(&exec->tick);
	STATE(exec->distances_end - exec->distances), STATE(exec->turns_end - exec->turns);
	STATE(exec->rooms_end - exec->rooms), STATE(exec->has_more_gates);
	STATE(exec->is_never_fast), STATE(exec->repeats), STATE(exec->watches_ticks);
	STATE(exec->waits_for_inputs), STATE(exec->timed), STATE(exec->sink);
	STATE(exec->is_free_in_cycle), state_of_gates(exec->in, exec->in_count);
	state_of_gates(exec->out, exec->out_count), STATE(exec->check_count);
	STATE(exec->around_ticks), STATE(exec->around_emits), STATE(exec->deadline_begin);
	STATE(exec->tx_count), STATE(exec->receiver_count), STATE(exec->rx_count);
	STATE(exec->started), STATE(exec->done), STATE(exec->failed), STATE(exec->awaits_outside);
	STATE(exec->pending), STATE(exec->missed_deadline), STATE(exec->timer_armed);
	STATE(exec->parks), STATE(exec->pending_time_ns), STATE(exec->busy_ns);
	STATE(exec->watchdog_ns), STATE(exec->begin_ns), STATE(exec->callback);
	STATE(exec->result), STATE(exec->until_ns), STATE(exec->last_tick), STATE(exec->poll_ns);
	STATE(exec->order), STATE(exec->expected), STATE(exec->long_from), STATE(exec->mark_bit);
	STATE(exec->resumed), STATE(exec->sets_waiting), STATE(exec->state);
	for (uint32_t i = 0; i < exec->rx_count; i++)
		state_of_queue(&exec->rxs[i]->queue);
}

static inline void state_of_sched(const struct fragi_sched *sched)
{
	STATE(sched->count), STATE(sched->live), STATE(sched->pending), STATE(sched->has_failed);
	for (uint32_t i = 0; i < sched->count; i++)
		state_of_exec(sched->execs[i]);
}

#endif
