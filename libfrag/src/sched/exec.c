// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <base/alloc.h>
#include <data/metadata.h>
#include <graph/pools.h>
#include <sched/kind.h>
#include <sched/logging.h>
#include <sched/path_deadline.h>
#include <sched/saved.h>
#include <sched/tap.h>
#include <sched/trace.h>
#include <sched/tracking.h>

/*
 * An exec and its arrays lie in the arena of its fragment, as each by itself would take a third
 * more.
 */
static void *exec_room(const struct fragi_exec *exec, size_t count, size_t size)
{
	return fragi_arena_alloc(&exec->op->fragment->arena, count * size);
}

/* Binds the ports to the ends of their flows. */
static int ports_create(struct fragi_exec *exec, const struct fragi_binding *bindings,
			void (*notify)(void *exec))
{
	const struct frag_op *op = exec->op;
	uint32_t rx_count = 0, tx_count = 0;

	exec->tick.ports = exec_room(exec, op->port_count, sizeof(*exec->tick.ports));
	if (exec->tick.ports == NULL)
		return -ENOMEM;
	exec->tick.port_count = op->port_count;
	for (uint32_t i = 0; i < op->port_count; i++) {
		rx_count += op->ports[i].dir == FRAG_IN ? bindings[i].count : 0;
		tx_count += op->ports[i].dir == FRAG_OUT ? bindings[i].count : 0;
	}
	exec->rxs = exec_room(exec, rx_count, sizeof(struct fragi_rx *));
	exec->txs = exec_room(exec, tx_count, sizeof(struct fragi_tx *));
	if (exec->rxs == NULL || exec->txs == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < op->port_count; i++) {
		struct fragi_exec_port *port = &exec->tick.ports[i];

		port->type = op->ports[i].type;
		port->dir = op->ports[i].dir;
		port->tensor = op->ports[i].type_name != NULL &&
			       strcmp(op->ports[i].type_name, "tensor") == 0;
		port->count = bindings[i].count;
		port->in_turn = port->dir == FRAG_IN && port->count > 1 &&
				(op->ports[i].flags & FRAG_PORT_MULTI) == 0;
		port->rx = &exec->rxs[exec->rx_count];
		port->tx = &exec->txs[exec->tx_count];
		if (port->dir == FRAG_IN && (port->count == 1 || port->in_turn))
			port->next_rx = bindings[i].rx[0];
		if (port->dir == FRAG_OUT && port->count == 1 && !port->tensor &&
		    bindings[i].tx[0]->rx != NULL)
			port->only_tx = bindings[i].tx[0];
		for (uint32_t k = 0; k < port->count && port->dir == FRAG_IN; k++) {
			bindings[i].rx[k]->arrival = (struct fragi_notify){notify, exec};
			bindings[i].rx[k]->after = bindings[i].rx[(k + 1) % port->count];
			exec->rxs[exec->rx_count++] = bindings[i].rx[k];
		}
		for (uint32_t k = 0; k < port->count && port->dir == FRAG_OUT; k++) {
			bindings[i].tx[k]->room = (struct fragi_notify){notify, exec};
			exec->txs[exec->tx_count++] = bindings[i].tx[k];
		}
		if (port->dir == FRAG_IN) {
			port->all = exec_room(exec, port->count, sizeof(*port->all));
			if (port->all == NULL)
				return -ENOMEM;
		}
	}
	exec->receiver_count = exec->tx_count;
	return 0;
}

static const _Atomic bool nobody_done;

struct fragi_gate fragi_gate_of(const struct fragi_exec *exec, uint32_t port, uint32_t min,
				uint32_t max)
{
	const struct fragi_exec_port *p = &exec->tick.ports[port];
	bool is_in = p->dir == FRAG_IN;

	return (struct fragi_gate){
		.rx = is_in ? p->rx : NULL,
		.tx = is_in ? NULL : p->tx,
		.count = p->count,
		.min = min > 0 ? min : 1,
		.max = max,
		.in_turn = p->in_turn ? p : NULL,
	};
}

static void gate_add(struct fragi_exec *exec, uint32_t port, uint32_t min, uint32_t max)
{
	struct fragi_gate gate = fragi_gate_of(exec, port, min, max);

	if (gate.count == 0)
		return; /* an unconnected port never makes the operator wait */
	if (gate.rx != NULL)
		exec->in[exec->in_count++] = gate;
	else
		exec->out[exec->out_count++] = gate;
}

static int64_t poll_ns(const struct fragi_spec_fragment *own)
{
	double ms = own != NULL ? own->scheduler.check_recession_period_ms : FRAGI_RECESSION_MS;

	return (int64_t)(ms * 1e6);
}

static bool ends_operator(const struct frag_condition *condition)
{
	return condition->built_in != NULL && condition->built_in->ends != NULL
		       ? condition->built_in->ends(condition->state)
		       : (condition->type->flags & FRAG_CONDITION_ENDS) != 0;
}

/* Adds the default conditions of the ports of a direction, then those of the graph. */
static void gates_add(struct fragi_exec *exec, enum frag_dir dir)
{
	const struct frag_op *op = exec->op;

	for (uint32_t i = 0; i < op->port_count; i++) {
		uint32_t min = op->ports[i].min_size;

		if (min == FRAG_PORT_PRECEDING_COUNT)
			min = exec->tick.ports[i].in_turn ? exec->tick.ports[i].count : 1;
		if (op->ports[i].dir == dir && (op->ports[i].flags & FRAG_PORT_NO_CONDITION) == 0)
			gate_add(exec, i, min, 0);
	}
	for (uint32_t i = 0; i < op->condition_count; i++) {
		const struct frag_condition *condition = op->conditions[i];

		if (condition->gate_min > 0 && condition->port < op->port_count &&
		    op->ports[condition->port].dir == dir && !condition->is_term)
			gate_add(exec, condition->port, condition->gate_min, condition->gate_max);
	}
}

static int conditions_create(struct fragi_exec *exec, void (*notify)(void *exec))
{
	struct frag_op *op = exec->op;
	bool ends = false;

	exec->poll_ns = poll_ns(op->fragment->own);
	exec->in = exec_room(exec, op->port_count + op->condition_count, sizeof(*exec->in));
	if (exec->in == NULL || fragi_checks_create(exec, notify) < 0)
		return -ENOMEM;
	gates_add(exec, FRAG_IN);
	exec->out = exec->in + exec->in_count;
	gates_add(exec, FRAG_OUT);
	for (uint32_t i = 0; i < op->condition_count; i++)
		ends |= ends_operator(op->conditions[i]);
	exec->waits_for_inputs |= exec->in_count > 0 || fragi_timing_waits(exec);
	/*
	 * An operator whose inputs have no condition does not end when its inputs end: it may still
	 * produce output. But when it has no outputs either, and no condition that ends
	 * it, further ticks cannot have an effect, so it ends with its inputs.
	 */
	exec->sink = exec->tx_count == 0 && exec->rx_count > 0 && !exec->waits_for_inputs &&
		     exec->timing == NULL && !ends;
	return 0;
}

static void distance_add(struct fragi_exec *exec, const struct fragi_queue *queue, bool is_room,
			 uint32_t min, const _Atomic bool *closed)
{
	exec->repeats &= queue->capacity > min;
	*exec->distances_end++ = (struct fragi_distance){
		.ahead = is_room ? &queue->head : &queue->tail,
		.behind = is_room ? &queue->tail : &queue->head,
		.least = is_room ? (int64_t)min - queue->capacity : min,
		.closed = closed,
	};
}

/* Prepares the fast check of fragi_exec_ready from the gates. */
static int distances_create(struct fragi_exec *exec)
{
	uint32_t flows = 0, away = 0;
	bool limited = false;

	for (uint32_t i = 0; i < exec->in_count; i++)
		flows += exec->in[i].count;
	for (uint32_t i = 0; i < exec->out_count; i++) {
		flows += exec->out[i].count;
		for (uint32_t k = 0; k < exec->out[i].count; k++)
			away += exec->out[i].tx[k]->rx == NULL;
	}
	exec->distances = exec_room(exec, flows - away, sizeof(*exec->distances));
	exec->turns = exec_room(exec, exec->in_count, sizeof(struct fragi_exec_port *));
	exec->rooms = exec_room(exec, away, sizeof(struct fragi_tx *));
	exec->repeats = true;
	exec->distances_end = exec->distances;
	exec->turns_end = exec->turns;
	exec->rooms_end = exec->rooms;
	if (exec->distances == NULL || exec->turns == NULL || exec->rooms == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < exec->in_count; i++) {
		const struct fragi_gate *gate = &exec->in[i];

		limited |= gate->max > 0 || (gate->in_turn != NULL && gate->min > 1);
		if (gate->in_turn != NULL)
			*exec->turns_end++ = gate->in_turn;
		for (uint32_t k = 0; k < gate->count && gate->in_turn == NULL; k++)
			distance_add(exec, &gate->rx[k]->queue, false, gate->min,
				     &gate->rx[k]->queue.sender_closed);
	}
	for (uint32_t i = 0; i < exec->out_count; i++) {
		const struct fragi_gate *gate = &exec->out[i];

		for (uint32_t k = 0; k < gate->count; k++) {
			const struct fragi_tx *tx = gate->tx[k];

			limited |= tx->rx == NULL && gate->min > 1;
			if (tx->rx == NULL)
				*exec->rooms_end++ = tx;
			else if (fragi_rx_blocks(tx->rx))
				distance_add(exec, &tx->rx->queue, true, gate->min,
					     &tx->receiver_done);
		}
	}
	for (uint32_t i = 0; i < exec->tx_count && !exec->waits_for_inputs; i++)
		exec->is_free_in_cycle |= exec->txs[i]->cycle_capacity > 0;
	if (exec->check_count > 0 || exec->timed || limited ||
	    (exec->in_count == 0 && exec->rx_count > 0))
		exec->is_never_fast = true;
	atomic_init(&exec->needs_full_check, exec->is_never_fast);
	exec->has_more_gates = exec->turns_end > exec->turns || exec->rooms_end > exec->rooms;
	exec->watches_ticks = exec->check_count > 0 || exec->watchdog_ns > 0 ||
			      exec->op->saved != NULL || exec->timing != NULL ||
			      fragi_clock_kind_of(exec->clock) != FRAGI_CLOCK_MACHINE;
	exec->receiver_done = exec->tx_count > 0 ? &exec->txs[0]->receiver_done : &nobody_done;
	return 0;
}

int fragi_exec_create(struct frag_op *op, const struct fragi_binding *bindings,
		      struct fragi_op_row *row, struct fragi_sched *sched,
		      void (*notify)(void *exec))
{
	struct fragi_exec *exec =
		fragi_arena_alloc_aligned(&op->fragment->arena, 64, sizeof(*exec));

	if (exec == NULL)
		return -ENOMEM;
	exec->op = op;
	op->exec = exec;
	exec->self = op->state;
	exec->row = row;
	fragi_hist_give_buckets(&row->compute);
	exec->sched = sched;
	exec->clock = op->fragment->clock;
	exec->watchdog_ns = op->watchdog_ns;
	exec->tick.op = op;
	exec->tick.metadata = fragi_metadata_create(op->metadata_policy == FRAG_METADATA_DEFAULT
							    ? FRAG_METADATA_RAISE
							    : op->metadata_policy);
	if (exec->tick.metadata == NULL || ports_create(exec, bindings, notify) < 0 ||
	    fragi_logging_bind(op) < 0 || fragi_timing_create(exec) < 0 ||
	    conditions_create(exec, notify) < 0 || fragi_flow_control_create(exec, bindings) < 0 ||
	    distances_create(exec) < 0) {
		fragi_exec_destroy(op);
		return -ENOMEM;
	}
	exec->tick.received_capacity = exec->rx_count > 2 ? exec->rx_count : 2;
	exec->tick.received =
		fragi_calloc(exec->tick.received_capacity, sizeof(struct frag_message *));
	if (exec->tick.received == NULL) {
		fragi_exec_destroy(op);
		return -ENOMEM;
	}
	fragi_around_bind(exec);
	if (atomic_load(&op->stop_asked))
		fragi_exec_request_stop(exec);
	return 0;
}

void fragi_exec_destroy(struct frag_op *op)
{
	struct fragi_exec *exec = op->exec;

	if (exec == NULL)
		return;
	fragi_logging_release(op);
	op->exec = NULL;
	fragi_tracking_release(op);
	for (uint32_t i = 0; exec->rxs != NULL && i < exec->rx_count; i++)
		exec->rxs[i]->arrival = (struct fragi_notify){NULL, NULL};
	for (uint32_t i = 0; exec->txs != NULL && i < exec->tx_count; i++)
		exec->txs[i]->room = (struct fragi_notify){NULL, NULL};
	if (exec->tick.received != NULL)
		fragi_tick_end(&exec->tick);
	fragi_exec_free_sets(exec);
	fragi_exec_trace_free(exec);
	fragi_flow_control_destroy(exec);
	fragi_timing_destroy(exec);
	fragi_free(exec->tick.received);
	fragi_metadata_destroy(exec->tick.metadata);
	fragi_checks_destroy(exec);
}

static bool rx_is_closed(const struct fragi_rx *rx)
{
	return atomic_load_explicit(&rx->queue.sender_closed, memory_order_acquire);
}

/*
 * Evaluates an input whose flows count separately. Every open flow must have `min` messages. A flow
 * that its sender has closed need not have any more than what is left in it. When all flows are
 * closed and empty, no message can come any more: NEVER.
 */
static enum frag_ready gate_in_each(const struct fragi_gate *gate)
{
	uint32_t finished = 0;
	bool wait = false;

	for (uint32_t i = 0; i < gate->count; i++) {
		const struct fragi_rx *rx = gate->rx[i];
		uint32_t available = fragi_rx_available(rx);

		if (__builtin_expect(available < gate->min, 0)) {
			if (!rx_is_closed(rx))
				wait = true;
			else if (fragi_rx_available(rx) == 0)
				finished++;
		}
		if (gate->max > 0 && available > gate->max)
			wait = true;
	}
	if (finished == gate->count)
		return FRAG_NEVER;
	return wait ? FRAG_WAIT : FRAG_READY;
}

/*
 * Evaluates an input whose flows count together, by the same rules. When every flow is closed or
 * full, no more messages can wait than do: once a flow has ended, the others alone may hold fewer
 * than `min`.
 */
static enum frag_ready gate_in_turn(const struct fragi_gate *gate)
{
	bool wait = false, has_room = false;
	uint32_t finished = 0;
	uint64_t waiting = 0;

	for (uint32_t i = 0; i < gate->count; i++) {
		bool is_closed = rx_is_closed(gate->rx[i]);
		uint32_t available = fragi_rx_available(gate->rx[i]);

		has_room |= !is_closed && available < gate->rx[i]->queue.capacity;
		finished += is_closed && available == 0;
		waiting += available;
		wait |= gate->max > 0 && available > gate->max;
	}
	if (finished == gate->count)
		return FRAG_NEVER;
	return wait || (waiting < gate->min && has_room) ? FRAG_WAIT : FRAG_READY;
}

static enum frag_ready gate_out(const struct fragi_gate *gate)
{
	for (uint32_t i = 0; i < gate->count; i++)
		if (gate->tx[i]->ops->room(gate->tx[i]) < gate->min)
			return FRAG_WAIT;
	return FRAG_READY;
}

enum frag_ready fragi_gate_ready(const struct fragi_gate *gate)
{
	if (gate->tx != NULL)
		return gate_out(gate);
	return gate->in_turn != NULL ? gate_in_turn(gate) : gate_in_each(gate);
}

/* Returns whether a receiver still takes messages, or the operator has no outputs. */
static bool has_receiver(struct fragi_exec *exec)
{
	if (!atomic_load_explicit(exec->receiver_done, memory_order_acquire))
		return true;
	for (uint32_t i = 0; i < exec->receiver_count; i++)
		if (!atomic_load_explicit(&exec->txs[i]->receiver_done, memory_order_acquire)) {
			exec->receiver_done = &exec->txs[i]->receiver_done;
			return true;
		}
	return false;
}

/*
 * Whether a message may still come, or waits, on a flow of a cycle that leads here. More than the
 * cycle can hold do not count: they were sent later, by an operator that others feed.
 */
static bool cycle_goes_on(struct fragi_exec *exec)
{
	for (uint32_t i = 0; i < exec->rx_count; i++)
		if (exec->rxs[i]->cycle_capacity > 0 && !fragi_rx_is_finished(exec->rxs[i])) {
			if (exec->last_tick == 0)
				exec->last_tick = exec->tick.number + exec->rxs[i]->cycle_capacity;
			return exec->tick.number < exec->last_tick;
		}
	return false;
}

/*
 * Whether the operator ends because its receivers have. In a cycle they stand before it too:
 * - One that waits for messages still gets what is on its way round, up to the close, which comes
 *   behind it. So how often it ticks does not depend on who is faster.
 * - One that waits for none would tick for ever for those that it keeps alive itself, and ends with
 *   the first of its receivers in the cycle.
 */
static bool ends_with_receivers(struct fragi_exec *exec)
{
	if (!has_receiver(exec))
		return !exec->waits_for_inputs || !cycle_goes_on(exec);
	for (uint32_t i = 0; exec->is_free_in_cycle && i < exec->receiver_count; i++)
		if (exec->txs[i]->cycle_capacity > 0 &&
		    atomic_load_explicit(&exec->txs[i]->receiver_done, memory_order_acquire))
			return true;
	return false;
}

static bool inputs_are_finished(const struct fragi_exec *exec)
{
	for (uint32_t i = 0; i < exec->rx_count; i++)
		if (!fragi_rx_is_finished(exec->rxs[i]))
			return false;
	return true;
}

/* The fast check is enough again, unless something has come meanwhile that it does not see. */
static void apply_taps(struct fragi_exec *exec)
{
	fragi_exec_apply_taps(exec);
	if (exec->is_never_fast)
		return;
	atomic_store(&exec->needs_full_check, false);
	if (atomic_load(&exec->stop_asked) || atomic_load(&exec->sets) != NULL ||
	    atomic_load(&exec->taps_change) ||
	    (exec->sched != NULL && atomic_load(&exec->sched->halting)))
		atomic_store(&exec->needs_full_check, true);
}

enum frag_ready fragi_exec_ready_all(struct fragi_exec *exec)
{
	enum frag_ready all = FRAG_READY, one;
	int64_t until_ns = 0;

	if (exec->done || atomic_load_explicit(&exec->stop_asked, memory_order_acquire))
		return FRAG_NEVER;
	if (exec->sched != NULL &&
	    atomic_load_explicit(&exec->sched->halting, memory_order_acquire))
		return FRAG_WAIT; /* for ever: no further tick may begin */
	if (exec->pending)
		return atomic_load(&exec->resumed) ? FRAG_READY : FRAG_WAIT_EVENT;
	if (atomic_load(&exec->sets) != NULL)
		fragi_exec_apply_sets(exec);
	if (atomic_load(&exec->taps_change))
		apply_taps(exec);
	for (uint32_t i = 0; i < exec->in_count; i++) {
		one = fragi_gate_ready(&exec->in[i]);
		all = one > all ? one : all;
	}
	for (uint32_t i = 0; i < exec->out_count; i++) {
		one = fragi_gate_ready(&exec->out[i]);
		all = one > all ? one : all;
	}
	if (ends_with_receivers(exec))
		return FRAG_NEVER;
	if ((exec->sink || atomic_load_explicit(&exec->draining, memory_order_relaxed)) &&
	    inputs_are_finished(exec))
		return FRAG_NEVER;
	if (exec->timed)
		exec->begin_ns = fragi_clock_now_ns(exec->clock);
	if (exec->check_count > 0) {
		one = fragi_checks_ready(exec, &until_ns);
		all = one > all ? one : all;
	}
	if (exec->timing != NULL)
		all = fragi_timing_ready(exec, all, &until_ns);
	if (all == FRAG_WAIT_TIME)
		exec->until_ns = until_ns;
	return all;
}

bool fragi_exec_port_has_message(const struct fragi_exec_port *in)
{
	for (uint32_t i = 0; i < in->count; i++)
		if (fragi_rx_available(in->rx[i]) > 0)
			return true;
	return false;
}

void fragi_exec_request_stop(struct fragi_exec *exec)
{
	atomic_store(&exec->stop_asked, true);
	atomic_store(&exec->needs_full_check, true);
}

int fragi_exec_unexpected_result(struct fragi_exec *exec, int r)
{
	if (exec->tick.fault != 0)
		return exec->tick.fault;
	if (r == 0)
		/* The operator worded a failure, but then returned 0. */
		fragi_op_forget_failure(exec->op);
	if (r > 0 && r != FRAG_DONE) {
		frag_op_fail(
			exec->op, -EINVAL,
			"compute returned %d in tick %llu; return 0, FRAG_DONE, FRAG_PENDING or a negative errno",
			r, (unsigned long long)exec->tick.number);
		return -EINVAL;
	}
	return r;
}

static int restore(void *self, struct frag_op *op)
{
	(void)self;
	return fragi_saved_restore(op);
}

int fragi_exec_start(struct fragi_exec *exec)
{
	int r;

	assert(!exec->started && !exec->done && "an operator starts once");
	r = fragi_checks_start(exec);

	if (r == 0 && exec->op->saved != NULL && fragi_saved_has_state(exec->op->saved))
		r = fragi_op_callback_result(exec->op, FRAGI_CALL_RESTORE,
					     fragi_exec_call(exec, FRAGI_CALL_RESTORE, restore));
	if (r == 0 && exec->op->type->start != NULL)
		r = fragi_op_callback_result(
			exec->op, FRAGI_CALL_START,
			fragi_exec_call(exec, FRAGI_CALL_START, exec->op->type->start));
	if (r < 0)
		return r;
	exec->started = true;
	fragi_op_row_enter(exec->row, FRAGI_OP_STARTED, fragi_clock_now_ns(exec->clock));
	return 0;
}

/* The failure of an earlier callback was reported; a sentence of stop is about stop. */
static int call_stop(struct fragi_exec *exec)
{
	struct frag_op *op = exec->op;
	int r;

	fragi_op_forget_failure(op);
	r = fragi_op_callback_result(op, FRAGI_CALL_STOP,
				     fragi_exec_call(exec, FRAGI_CALL_STOP, op->type->stop));
	exec->failed |= r < 0;
	return r;
}

int fragi_exec_finish(struct fragi_exec *exec, bool stopped)
{
	int r = 0;

	if (exec->done)
		return 0;
	exec->done = true;
	atomic_store_explicit(&exec->needs_full_check, true, memory_order_relaxed);
	for (uint32_t i = 0; i < exec->tx_count; i++)
		fragi_tx_close(exec->txs[i]);
	fragi_timing_end(exec, stopped);
	for (uint32_t i = 0; i < exec->rx_count; i++)
		(stopped ? fragi_rx_stop : fragi_rx_close)(exec->rxs[i]);
	if (exec->started && exec->op->type->stop != NULL)
		r = call_stop(exec);
	fragi_stream_end(exec);
	fragi_exec_give_up_pending(exec);
	fragi_checks_stop(exec);
	fragi_checks_end(exec);
	fragi_op_row_enter(exec->row, exec->failed ? FRAGI_OP_FAILED : FRAGI_OP_DONE,
			   fragi_clock_now_ns(exec->clock));
	return r;
}
