// SPDX-License-Identifier: Apache-2.0
#include "sim.h"

#include <signal.h>
#include <string.h>

#define CREDIT_SHIFT 44 /* messages above, bytes below */

/*
 * The data plane, by its counters: every fragment has an operator a (a source, or a relay of all
 * inputs) that feeds an operator b (a sink, or one that emits on all outputs). Flows within a host
 * are queues; between hosts a slot at the sender for what has no credit, a queue at the receiver,
 * and the window of credits as it is (edge/window.h), driven as libfrag/src/edge/remote drives it.
 * What operators truly sent and received, and what truly left, arrived, was dropped and was
 * consumed, is counted apart from ledger and window.
 */
static void drop_at_sender(struct sim_flow *flow, enum fragi_drop reason, uint32_t count)
{
	flow->true_dropped[reason] += count;
	flow->tx.tx_dropped[reason] += count;
}

static void drop_at_receiver(struct sim_flow *flow, enum fragi_drop reason, uint32_t count)
{
	flow->true_dropped[reason] += count;
	(flow->in_host ? &flow->tx : &flow->rx)->rx_dropped[reason] += count;
}

static struct sim_op *op_at(struct sim_app *app, uint32_t fragment, bool second)
{
	return &app->ops[2 * fragment + (second ? 1 : 0)];
}

static struct sim_flow *inner_of(struct sim_app *app, uint32_t fragment)
{
	return &app->flows[fragment];
}

struct sim_host *sim_op_host(const struct sim_app *app, const struct sim_op *op)
{
	return app->flows[op->fragment].from;
}

static bool blocks(const struct sim_flow *flow)
{
	return flow->policy == FRAG_POLICY_BLOCK;
}

static bool both_alive(const struct sim_flow *flow)
{
	return flow->from != NULL && flow->to != NULL && flow->from->process.alive &&
	       flow->to->process.alive;
}

static bool has_room(const struct sim_flow *flow)
{
	if (!blocks(flow))
		return true;
	if (flow->in_host)
		return flow->receiver_closed || flow->queued < flow->capacity;
	if (flow->receiver_done)
		return true;
	return !flow->dead && fragi_window_room(&flow->tx_window) > 0;
}

/* The bytes of credit of the n-th message. */
static uint64_t credit_bytes(const struct sim_flow *flow, uint64_t n)
{
	return 1 + (n * 2654435761u + flow->to_port * 40503u) % flow->largest;
}

static void drop_pending(struct sim_flow *flow, enum fragi_drop reason)
{
	struct fragi_window_tx *window = &flow->tx_window;

	drop_at_sender(flow, reason, flow->pending);
	for (; flow->pending > 0; flow->pending--)
		if (blocks(flow))
			fragi_window_drop(window,
					  credit_bytes(flow, window->sent + window->dropped));
}

/*
 * Whether b's output flows exist, and whether all of them have room, or are closed by their
 * receivers.
 */
static void look_at_outputs(const struct sim_op *op, struct sim *sim, uint32_t *out_count,
			    bool *out_room, bool *out_closed)
{
	const struct sim_app *app = &sim->apps[op->app];

	*out_count = 0;
	*out_room = *out_closed = true;
	for (uint32_t i = app->fragment_count; i < app->flow_count; i++) {
		const struct sim_flow *flow = &app->flows[i];

		if (flow->from_fragment != op->fragment)
			continue;
		(*out_count)++;
		*out_room = *out_room && has_room(flow);
		*out_closed = *out_closed &&
			      (flow->in_host ? flow->receiver_closed : flow->receiver_done);
	}
}

/*
 * The first input of a relay that holds a message; NULL: none. open: whether one may still get
 * some.
 */
static struct sim_flow *input_of(struct sim_app *app, const struct sim_op *op, bool *out_open)
{
	struct sim_flow *found = NULL;

	*out_open = false;
	for (uint32_t i = app->fragment_count; i < app->flow_count; i++) {
		struct sim_flow *flow = &app->flows[i];

		if (flow->to_fragment != op->fragment)
			continue;
		if (flow->queued > 0 && found == NULL)
			found = flow;
		*out_open = *out_open || !flow->sender_closed || flow->queued > 0;
	}
	return found;
}

bool sim_op_can_run(const struct sim *sim, const struct sim_op *op)
{
	struct sim_app *app = (struct sim_app *)(uintptr_t)&sim->apps[op->app];
	struct sim_flow *inner = inner_of(app, op->fragment);
	uint32_t outputs;
	bool room, closed, open;

	if (!op->started || op->done || op->ticking)
		return false;
	if (op->second) {
		look_at_outputs(op, (struct sim *)(uintptr_t)sim, &outputs, &room, &closed);
		return inner->queued > 0 && room;
	}
	if (op->source != SIM_SOURCE_NONE)
		return (op->source == SIM_SOURCE_ENDLESS || op->ticks < op->limit) &&
		       has_room(inner);
	return input_of(app, op, &open) != NULL && has_room(inner);
}

static void poke(struct sim *sim, struct sim_op *op);
static void transmit(struct sim *sim, uint32_t app, uint32_t index);

static int64_t data_latency(struct sim *sim, const struct sim_flow *flow)
{
	int64_t base = 20000;

	if (flow->from->worker != flow->to->worker)
		base += sim->workers[flow->from->worker].latency_ns +
			sim->workers[flow->to->worker].latency_ns;
	return sim_between(sim, base / 2, base * 2);
}

static uint32_t index_of(const struct sim *sim, const struct sim_flow *flow)
{
	return (uint32_t)(flow - sim->apps[flow->app].flows);
}

/* What is under way on the flow, and the link that it is on. */
#define LINK_SHIFT 8
_Static_assert(SIM_FLOWS_MAX < 1 << LINK_SHIFT, "a flow and its link fit into one number");
static uint32_t way_of(const struct sim *sim, const struct sim_flow *flow)
{
	return index_of(sim, flow) | flow->link << LINK_SHIFT;
}

/* Something of the receiver's for the sender. */
static void send_back(struct sim *sim, struct sim_flow *flow, enum sim_event_kind kind,
		      uint64_t value)
{
	int64_t at_ns = sim->now_ns + data_latency(sim, flow);

	if (at_ns < flow->last_back_ns)
		at_ns = flow->last_back_ns;
	flow->last_back_ns = at_ns;
	sim_put(sim, at_ns, kind, flow->app, way_of(sim, flow), value);
}

/* all: else only where the sender may be waiting for it. */
static void return_credit(struct sim *sim, struct sim_flow *flow, bool all)
{
	struct fragi_window_rx *window = &flow->rx_window;
	uint64_t messages, bytes;

	if (flow->dead || !fragi_window_owes(window) ||
	    (!all && !flow->sender_closed && !fragi_window_sender_may_wait(window)))
		return;
	fragi_window_give_back(window, &messages, &bytes);
	flow->credits_flying++;
	send_back(sim, flow, SIM_EV_CREDIT,
		  (messages - flow->rx_before) << CREDIT_SHIFT | (bytes - flow->rx_bytes_before));
}

/* Credit is owed: it goes now, or when its host comes to rest, or with a beat. */
static void owe_credit(struct sim *sim, struct sim_flow *flow)
{
	if (fragi_window_is_due(&flow->rx_window, flow->queued)) {
		return_credit(sim, flow, true);
	} else if (!flow->calm_comes) {
		flow->calm_comes = true;
		sim_put(sim, sim->now_ns + sim_between(sim, 1000, 300000), SIM_EV_CALM, flow->app,
			way_of(sim, flow), 0);
	}
}

void sim_data_beat(struct sim *sim, struct sim_host *host)
{
	for (uint32_t i = 0; i < host->edge_count; i++) {
		struct sim_flow *flow = &host->app->flows[host->edges[i].flow];

		if (!host->edges[i].sends && both_alive(flow))
			return_credit(sim, flow, true);
	}
}

static void flow_take(struct sim *sim, struct sim_flow *flow)
{
	struct sim_app *app = &sim->apps[flow->app];

	uint32_t bytes = flow->sizes[flow->size_first++ % SIM_QUEUE_MAX];

	flow->queued--;
	flow->true_received++;
	if (flow->in_host) {
		flow->tx.delivered++;
		poke(sim, op_at(app, flow->from_fragment, flow->from_op));
		return;
	}
	flow->rx.delivered++;
	if (blocks(flow)) {
		fragi_window_consume(&flow->rx_window, bytes);
		sim_limit_consumed(sim, flow);
		owe_credit(sim, flow);
	}
}

static void emit_in_host(struct sim *sim, struct sim_flow *flow)
{
	if (flow->receiver_closed) {
		drop_at_sender(flow, FRAGI_DROP_RECEIVER_DONE, 1);
		return;
	}
	if (flow->queued == flow->capacity) {
		drop_at_sender(flow, blocks(flow) ? FRAGI_DROP_NO_ROOM : FRAGI_DROP_QUEUE_FULL, 1);
		return;
	}
	flow->queued++;
	poke(sim, op_at(&sim->apps[flow->app], flow->to_fragment, flow->to_op));
}

static void flow_emit(struct sim *sim, struct sim_flow *flow)
{
	uint32_t slot = flow->policy == FRAG_POLICY_LATEST ? 1 : flow->window;

	flow->true_sent++;
	flow->tx.sent++;
	flow->tx.bytes += 8;
	if (flow->in_host) {
		emit_in_host(sim, flow);
	} else if (flow->receiver_done) {
		drop_at_sender(flow, FRAGI_DROP_RECEIVER_DONE, 1);
	} else if (blocks(flow) && !fragi_window_post(&flow->tx_window,
						      credit_bytes(flow, flow->tx_window.posted))) {
		drop_at_sender(flow, FRAGI_DROP_NO_ROOM, 1);
	} else if (!blocks(flow) && flow->pending == slot) {
		/* pop: the oldest, reject: this one */
		drop_at_sender(flow, FRAGI_DROP_QUEUE_FULL, 1);
	} else {
		flow->pending++;
		transmit(sim, flow->app, index_of(sim, flow));
	}
}

/* Something of the sender's for the receiver; bytes: credit of a message. */
static void send_on(struct sim *sim, struct sim_flow *flow, enum sim_event_kind kind,
		    uint64_t bytes)
{
	int64_t at_ns = sim->now_ns + data_latency(sim, flow);

	flow->last_ns = at_ns < flow->last_ns ? flow->last_ns : at_ns;
	sim_put(sim, flow->last_ns, kind, flow->app, way_of(sim, flow), bytes);
}

static bool transmit_one(struct sim *sim, struct sim_flow *flow)
{
	struct fragi_window_tx *window = &flow->tx_window;
	uint64_t bytes = credit_bytes(flow, window->sent);

	if (flow->pending == 0 || !fragi_window_is_open(window))
		return false;
	if (!fragi_window_fits(window, bytes)) {
		if (fragi_window_want(window))
			send_on(sim, flow, SIM_EV_WANT, 0);
		flow->short_bytes = bytes;
		sim_limit_consumed(sim, flow);
		return false;
	}
	sim_limit_left(sim, flow);
	fragi_window_spend(window, bytes);
	flow->pending--;
	flow->true_left++;
	flow->flying++;
	send_on(sim, flow, SIM_EV_DATA, bytes);
	return true;
}

static void transmit(struct sim *sim, uint32_t app, uint32_t index)
{
	struct sim_flow *flow = &sim->apps[app].flows[index];

	if (flow->dead || flow->in_host || flow->to == NULL || flow->suspended)
		return;
	if (flow->receiver_done) {
		drop_pending(flow, FRAGI_DROP_RECEIVER_DONE);
	}
	while (transmit_one(sim, flow))
		;
	if (flow->closing && flow->pending == 0 && !flow->close_sent && !flow->from->yields) {
		flow->close_sent = true;
		flow->flying++;
		send_on(sim, flow, SIM_EV_CLOSE, 0);
	}
}

void sim_data_suspend(struct sim *sim, struct sim_flow *flow)
{
	if (flow->suspended)
		return;
	flow->suspended = true;
	if (flow->dead || flow->close_sent)
		return;
	flow->close_sent = true;
	flow->flying++;
	send_on(sim, flow, SIM_EV_CLOSE, 0);
}

/* The receiver closes its end: what is queued is dropped, and what comes. */
static void close_receiver(struct sim *sim, struct sim_flow *flow, enum fragi_drop reason)
{
	if (flow->receiver_closed || flow->to == NULL)
		return;
	flow->receiver_closed = true;
	drop_at_receiver(flow, reason, flow->queued);
	flow->queued = 0;
	if (flow->in_host) {
		poke(sim, op_at(&sim->apps[flow->app], flow->from_fragment, flow->from_op));
		return;
	}
	fragi_window_consume_to(&flow->rx_window, flow->rx.arrived, flow->rx_window.accepted_bytes);
	if (reason == FRAGI_DROP_RECEIVER_DONE && flow->from != NULL && flow->from->process.alive) {
		if (!flow->to->yields) {
			flow->done_flying = true;
			send_back(sim, flow, SIM_EV_DONE, 0);
		}
		return_credit(sim, flow, true);
	}
}

static void close_sender(struct sim *sim, struct sim_flow *flow)
{
	if (flow->closing)
		return;
	flow->closing = true;
	if (!flow->in_host) {
		transmit(sim, flow->app, index_of(sim, flow));
		return;
	}
	flow->close_sent = flow->close_arrived = flow->sender_closed = true;
	poke(sim, op_at(&sim->apps[flow->app], flow->to_fragment, flow->to_op));
}

static void op_done(struct sim *sim, struct sim_op *op)
{
	struct sim_app *app = &sim->apps[op->app];

	if (op->done)
		return;
	op->done = true;
	for (uint32_t i = 0; i < app->flow_count; i++) {
		struct sim_flow *flow = &app->flows[i];

		if (flow->from_fragment == op->fragment && flow->from_op == op->second)
			close_sender(sim, flow);
		if (flow->to_fragment == op->fragment && flow->to_op == op->second)
			close_receiver(sim, flow, FRAGI_DROP_RECEIVER_DONE);
	}
	if (sim_op_host(app, op) != NULL)
		sim_run_look(sim, sim_op_host(app, op));
}

/* Whether it can never run again, so that it is done. */
static bool never(struct sim *sim, struct sim_op *op)
{
	struct sim_app *app = &sim->apps[op->app];
	const struct sim_flow *inner = inner_of(app, op->fragment);
	uint32_t outputs;
	bool room, closed, open;

	if (op->second) {
		look_at_outputs(op, sim, &outputs, &room, &closed);
		return (inner->sender_closed && inner->queued == 0) || (outputs > 0 && closed) ||
		       (op->limit > 0 && op->ticks >= op->limit);
	}
	if (inner->receiver_closed)
		return true;
	if (op->source == SIM_SOURCE_NONE)
		return input_of(app, op, &open) == NULL && !open;
	return op->source == SIM_SOURCE_FINITE && op->ticks >= op->limit;
}

static void poke(struct sim *sim, struct sim_op *op)
{
	struct sim_host *host = sim_op_host(&sim->apps[op->app], op);
	int64_t at_ns = sim->now_ns + op->compute_ns;

	if (!op->started || op->done || op->ticking || host == NULL || !sim_host_runs(host))
		return;
	if (never(sim, op)) {
		op_done(sim, op);
		return;
	}
	if (!sim_op_can_run(sim, op))
		return;
	if (op->source != SIM_SOURCE_NONE && op->next_ns > at_ns)
		at_ns = op->next_ns;
	op->ticking = true;
	sim_put(sim, at_ns, SIM_EV_TICK, op->app, (uint32_t)(op - sim->apps[op->app].ops),
		op->life);
}

/* Whether its fate has struck in this tick. */
static bool strikes(struct sim *sim, struct sim_app *app, struct sim_op *op, struct sim_host *host)
{
	if (op->fragment != app->fate_fragment || app->fate_met || host->dying || host->struck ||
	    !sim_fate_is(host, (enum sim_fate)app->fate) ||
	    (app->fate_late ? !app->stop_requested && !app->stopped_by_op
			    : op->ticks < app->fate_tick))
		return false;
	if (host->works && (app->fate == SIM_FATE_OP_FAILS || app->fate == SIM_FATE_OP_HANGS ||
			    app->fate == SIM_FATE_OP_WATCHDOG))
		return false;    /* the run is being destroyed, and reports no more */
	app->fate_exit_code = 1; /* whatever it exits with after it was prepared */
	switch ((enum sim_fate)app->fate) {
	case SIM_FATE_OP_FAILS:
		app->fate_exit_code = (int)sim_between(sim, 1, 3);
		sim_run_fail(sim, host, app->fate_exit_code, "f.a: compute returned -5");
		break;
	case SIM_FATE_OP_CRASHES:
		sim_host_die(sim, host, 0, SIGSEGV, false);
		break;
	case SIM_FATE_OP_EXITS:
		/* An exit with 0 cannot be told from the end that it was told. */
		sim_host_die(sim, host, (int)sim_between(sim, host->end_requested ? 1 : 0, 3), 0,
			     false);
		break;
	case SIM_FATE_OP_WATCHDOG:
		sim_put(sim, sim->now_ns + 500 * SIM_MS, SIM_EV_WATCHDOG, host->index, 0, 0);
		host->hangs = op->hung = true;
		break;
	case SIM_FATE_OP_HANGS:
		app->fate_exit_code = 0;
		host->hangs = op->hung = true;
		if (host->limit_ns != 0)
			sim_run_limit(sim, host);
		break;
	default:
		return false;
	}
	sim_fate_meet(host, app->fate_exit_code);
	app->fate_ns = app->fate_met ? sim->now_ns : 0;
	sim_print(sim, "fate", "strikes %s: %d", app->name, app->fate);
	return true;
}

static void tick(struct sim *sim, struct sim_app *app, struct sim_op *op)
{
	struct sim_host *host = sim_op_host(app, op);
	bool open;

	if (!op->done && strikes(sim, app, op, host))
		return; /* still in its tick, for ever */
	op->ticking = false;
	if (!sim_host_runs(host) || op->done)
		return;
	op->ticks++;
	if (op->second) {
		flow_take(sim, inner_of(app, op->fragment));
		for (uint32_t n = 0; n < op->burst; n++)
			for (uint32_t i = app->fragment_count; i < app->flow_count; i++)
				if (app->flows[i].from_fragment == op->fragment)
					flow_emit(sim, &app->flows[i]);
	} else if (op->source != SIM_SOURCE_NONE) {
		op->next_ns = sim->now_ns + op->period_ns;
		flow_emit(sim, inner_of(app, op->fragment));
	} else {
		flow_take(sim, input_of(app, op, &open));
		flow_emit(sim, inner_of(app, op->fragment));
	}
	if (op->source == SIM_SOURCE_STOPPER && op->ticks >= op->limit && !app->stopped_by_op) {
		app->stopped_by_op = true;
		sim_run_report(sim, host, FW_STATE_STOPPED, 0, NULL, "");
	}
	poke(sim, op);
}

void sim_data_start(struct sim *sim, struct sim_host *host)
{
	for (uint32_t i = 0; i < host->fragment_count; i++)
		for (int second = 0; second < 2; second++) {
			struct sim_op *op = op_at(host->app, host->fragments[i], second == 1);

			op->started = true;
			op->next_ns = sim->now_ns;
			poke(sim, op);
		}
}

void sim_data_stop_sources(struct sim *sim, struct sim_host *host)
{
	for (uint32_t i = 0; i < host->fragment_count; i++) {
		struct sim_op *op = op_at(host->app, host->fragments[i], false);

		if (op->source != SIM_SOURCE_NONE && !op->hung)
			op_done(sim, op);
	}
}

void sim_data_end(struct sim *sim, struct sim_host *host)
{
	struct sim_app *app = host->app;

	for (uint32_t i = 0; i < app->flow_count; i++) {
		struct sim_flow *flow = &app->flows[i];

		if (flow->to == host)
			close_receiver(sim, flow, FRAGI_DROP_STOPPED);
		if (flow->from == host && !flow->in_host) {
			drop_pending(flow, FRAGI_DROP_STOPPED);
		}
	}
}

/* The host finds the edges to a peer dead. */
void sim_data_cut(struct sim_host *host, const struct sim_host *peer)
{
	for (uint32_t i = 0; i < host->app->flow_count; i++) {
		struct sim_flow *flow = &host->app->flows[i];

		if (flow->from == NULL || flow->to == NULL || flow->in_host)
			continue; /* by number: another process may be there already */
		if (flow->from == host && flow->to->number == peer->number)
			flow->dead = flow->sender_knows = true;
		else if (flow->from->number == peer->number && flow->to == host)
			flow->dead = flow->receiver_knows = true;
	}
}

/* The host drains: its ends of dead edges end. */
void sim_data_end_dead(struct sim *sim, struct sim_host *host)
{
	struct sim_app *app = host->app;

	for (uint32_t i = 0; i < app->flow_count; i++) {
		struct sim_flow *flow = &app->flows[i];

		if (flow->from == host && flow->sender_knows) {
			flow->receiver_done = true;
			drop_pending(flow, FRAGI_DROP_RECEIVER_DONE);
			poke(sim, op_at(app, flow->from_fragment, flow->from_op));
		} else if (flow->to == host && flow->receiver_knows) {
			flow->sender_closed = true;
			poke(sim, op_at(app, flow->to_fragment, flow->to_op));
		}
	}
}

/* A message has come through. */
static void arrive(struct sim *sim, struct sim_flow *flow, uint64_t bytes)
{
	struct fragi_window_rx *window = &flow->rx_window;
	uint64_t n = flow->rx.arrived++;

	flow->true_arrived++; /* what came of a former sender may still be queued before it */
	flow->flying--;
	if (!fragi_window_covers(window, n) || !fragi_window_accept(window, bytes))
		sim_fail(sim, "credit", "message %llu of %llu bytes came beyond its credit",
			 (unsigned long long)n, (unsigned long long)bytes);
	if (flow->receiver_closed)
		drop_at_receiver(flow, FRAGI_DROP_RECEIVER_DONE, 1);
	else if (flow->queued == flow->capacity && !(blocks(flow) && flow->link > 0))
		drop_at_receiver(flow, FRAGI_DROP_QUEUE_FULL, 1);
	else
		flow->sizes[(flow->size_first + flow->queued++) % SIM_QUEUE_MAX] = (uint32_t)bytes;
	if (!blocks(flow) || flow->receiver_closed)
		fragi_window_consume_to(window, flow->rx.arrived, window->accepted_bytes);
	sim_limit_consumed(sim, flow);
	if (fragi_window_owes(window))
		owe_credit(sim, flow);
	poke(sim, op_at(&sim->apps[flow->app], flow->to_fragment, flow->to_op));
}

uint64_t sim_flow_consumed(const struct sim_flow *flow)
{
	uint64_t before = flow->received_before;

	if (!blocks(flow) || flow->receiver_closed)
		return flow->true_arrived - flow->arrived_before;
	return flow->true_received > before ? flow->true_received - before : 0;
}

static void on_credit(struct sim *sim, struct sim_flow *flow, uint64_t messages, uint64_t bytes)
{
	struct fragi_window_tx *window = &flow->tx_window;
	uint64_t before = window->credited;
	bool is_owed = messages <= sim_flow_consumed(flow);

	flow->credits_flying--;
	messages += flow->sent_before;
	bytes += flow->sent_bytes_before;
	if (!fragi_window_credit(window, messages, bytes) || !is_owed)
		sim_fail(sim, "credit", "credit of %llu messages came back, %llu were consumed",
			 (unsigned long long)messages, (unsigned long long)sim_flow_consumed(flow));
	if (window->credited == window->sent && window->credited_bytes != window->sent_bytes)
		sim_fail(sim, "credit", "all messages came back, but only %llu of %llu bytes",
			 (unsigned long long)window->credited_bytes,
			 (unsigned long long)window->sent_bytes);
	flow->tx.confirmed += messages - before;
	transmit(sim, flow->app, index_of(sim, flow));
	poke(sim, op_at(&sim->apps[flow->app], flow->from_fragment, flow->from_op));
}

void sim_data_resume(struct sim *sim, struct sim_flow *flow)
{
	struct sim_app *app = &sim->apps[flow->app];

	if (flow->receiver_closed) {
		flow->done_flying = true;
		send_back(sim, flow, SIM_EV_DONE, 0);
	}
	transmit(sim, flow->app, index_of(sim, flow));
	poke(sim, op_at(app, flow->from_fragment, flow->from_op));
	poke(sim, op_at(app, flow->to_fragment, flow->to_op));
}

/* When the process that is to take this may do so; 0: now. */
static int64_t held_until(const struct sim *sim, const struct sim_flow *flow,
			  enum sim_event_kind kind)
{
	bool back = kind == SIM_EV_CREDIT || kind == SIM_EV_DONE;
	const struct sim_host *from = back ? flow->to : flow->from,
			      *to = back ? flow->from : flow->to;
	int64_t until = to->process.stopped_until_ns;

	if (from->worker != to->worker && sim->cut_until_ns[from->worker][to->worker] > until)
		until = sim->cut_until_ns[from->worker][to->worker];
	return until;
}

static void on_flow(struct sim *sim, const struct sim_event *event)
{
	uint32_t index = event->b & ((1u << LINK_SHIFT) - 1);
	struct sim_flow *flow = &sim->apps[event->a].flows[index];
	struct sim_app *app = &sim->apps[event->a];
	int64_t until;

	if (way_of(sim, flow) != event->b) /* from before one of its ends was started again */
		return;
	until = held_until(sim, flow, event->kind);
	if (flow->dead || !both_alive(flow)) {
		if (flow->from->process.alive && flow->to->dead_ns_at != 0 && flow->to->orderly &&
		    (event->kind == SIM_EV_DATA || event->kind == SIM_EV_CLOSE)) {
			flow->flying--; /* nobody is there any more, as all know */
			if (event->kind == SIM_EV_CLOSE)
				flow->close_arrived = true;
			sim_run_look(sim, flow->from);
		}
		return;
	}
	if (until > sim->now_ns) {
		sim_put_back(sim, *event, until);
		return;
	}
	switch (event->kind) {
	case SIM_EV_DATA:
		arrive(sim, flow, event->c);
		break;
	case SIM_EV_CREDIT:
		on_credit(sim, flow, event->c >> CREDIT_SHIFT,
			  event->c & ((1ull << CREDIT_SHIFT) - 1));
		break;
	case SIM_EV_WANT:
		flow->rx_window.wanted = true;
		return_credit(sim, flow, true);
		break;
	case SIM_EV_CALM:
		flow->calm_comes = false;
		return_credit(sim, flow, false);
		break;
	case SIM_EV_CLOSE:
		flow->flying--;
		flow->to->yields = flow->to->yields || flow->suspended;
		flow->sender_closed = flow->close_arrived = true;
		owe_credit(sim, flow);
		poke(sim, op_at(app, flow->to_fragment, flow->to_op));
		break;
	default:
		flow->done_flying = false;
		flow->receiver_done = true;
		transmit(sim, event->a, index);
		poke(sim, op_at(app, flow->from_fragment, flow->from_op));
		break;
	}
	if (flow->from->process.alive)
		sim_run_look(sim, flow->from);
}

void sim_on_data(struct sim *sim, const struct sim_event *event)
{
	struct sim_app *app = &sim->apps[event->a];
	struct sim_op *op;
	struct sim_host *host;

	if (event->kind != SIM_EV_TICK) {
		on_flow(sim, event);
		return;
	}
	op = &app->ops[event->b];
	host = sim_op_host(app, op);
	if (!host->process.alive || event->c != op->life)
		return;
	if (sim_is_stopped(sim, &host->process)) {
		sim_put_back(sim, *event, host->process.stopped_until_ns);
		return;
	}
	tick(sim, app, op);
}
