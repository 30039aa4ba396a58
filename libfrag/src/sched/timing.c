// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <base/alloc.h>
#include <data/message.h>
#include <sched/kind.h>
#include <sched/lane.h>
#include <sched/logging.h>
#include <sched/path_deadline.h>

/*
 * Inputs with timing (frag/timing.h). Each flow of such an input is a lane (lane.h). When all else
 * would let the operator be ticked, the lanes are filled, messages that no tick can get are dropped
 * with their reason, and it is decided what each lane gives the tick. receive only hands that out.
 *
 *   queue -> held -> settled (delivered), or dropped: stale, clocks, superseded, late, skipped
 *
 * A lane is only touched by the thread that works on the exec.
 */

/* So many ticks are skipped in one evaluation at most; then other operators have their turn. */
#define SKIPS_MAX 64

struct fragi_timed_port {
	struct fragi_lane *lanes;
	uint32_t count;
	bool in_turn;                   /* one message of any lane is enough */
	struct frag_message *otherwise; /* of missing: default; NULL: nothing */
	bool is_aligned;
};

struct fragi_timing_state {
	struct fragi_timed_port *ports;
	uint32_t port_count;
	struct fragi_lane *lanes;
	uint32_t lane_count;
	bool waits;     /* for messages: an input does not just read the last one again */
	bool has_clock; /* a condition says when a tick is due, with messages or without */
	bool timed_out; /* the set of aligned inputs has waited for long enough */
	int64_t window_ns, timeout_ns;
	struct fragi_lane_time time; /* of one evaluation */
};

/* What a full queue has dropped before the message could get here. */
static uint64_t dropped_before(const struct fragi_lane *lane)
{
	const struct fragi_flow_row *row = lane->rx->row;

	return atomic_load_explicit(&row->tx_dropped[FRAGI_DROP_QUEUE_FULL], memory_order_relaxed) +
	       atomic_load_explicit(&row->tx_dropped[FRAGI_DROP_NO_ROOM], memory_order_relaxed);
}

/* Sets of aligned inputs. */

static struct fragi_lane *first_aligned(const struct fragi_timing_state *timing)
{
	for (uint32_t i = 0; i < timing->lane_count; i++)
		if (timing->lanes[i].is_aligned && timing->lanes[i].held != NULL)
			return &timing->lanes[i];
	return NULL;
}

/*
 * Drops the first message that can never be in a set with the others: of another clock than the
 * first one, or further from the latest one than the window. Later messages of its flow may fit,
 * but no later ones of the others. Returns its lane; NULL: all that are held fit together.
 */
static struct fragi_lane *drop_misfit(struct fragi_timing_state *timing)
{
	const struct fragi_lane *first = first_aligned(timing);
	int64_t latest_ns = INT64_MIN;

	for (uint32_t i = 0; first != NULL && i < timing->lane_count; i++) {
		struct fragi_lane *lane = &timing->lanes[i];

		if (!lane->is_aligned || lane->held == NULL)
			continue;
		if (lane->domain != first->domain) {
			fragi_lane_drop(lane, FRAGI_DROP_CLOCKS);
			return lane;
		}
		latest_ns = lane->time_ns > latest_ns ? lane->time_ns : latest_ns;
	}
	for (uint32_t i = 0; first != NULL && i < timing->lane_count; i++) {
		struct fragi_lane *lane = &timing->lanes[i];

		if (lane->is_aligned && lane->held != NULL &&
		    fragi_time_difference(latest_ns, lane->time_ns) > timing->window_ns) {
			fragi_lane_drop(lane, FRAGI_DROP_LATE);
			return lane;
		}
	}
	return NULL;
}

static void align(struct fragi_timing_state *timing)
{
	struct fragi_lane *lane;

	while ((lane = drop_misfit(timing)) != NULL)
		fragi_lane_fill(lane, &timing->time);
}

/* Returns when the present set has waited for long enough; INT64_MAX: it may wait on. */
static int64_t set_until_ns(const struct fragi_timing_state *timing)
{
	int64_t since_ns = INT64_MAX;

	if (timing->timeout_ns == 0)
		return INT64_MAX;
	for (uint32_t i = 0; i < timing->lane_count; i++)
		if (timing->lanes[i].is_aligned && timing->lanes[i].held != NULL &&
		    timing->lanes[i].held_ns < since_ns)
			since_ns = timing->lanes[i].held_ns;
	return since_ns < INT64_MAX - timing->timeout_ns ? since_ns + timing->timeout_ns
							 : INT64_MAX;
}

/* The decision. */

struct decision {
	bool waits;        /* an input waits for a message */
	bool waits_in_set; /* and would not any more, if the time of its set were over */
	bool skips;
	bool never;
	bool is_fresh; /* there is a message that no tick has got */
	bool is_free;  /* there may be a tick without such a message */
};

/* What the port does about a lane without a message. */
static void decide_missing(const struct fragi_timing_state *timing, struct fragi_lane *lane,
			   bool all_ended, struct decision *decision)
{
	bool has_ended = fragi_lane_has_ended(lane);

	if (lane->is_aligned && !has_ended && !timing->timed_out &&
	    lane->timing->missing != FRAG_MISSING_WAIT) {
		decision->waits = decision->waits_in_set = true;
		return;
	}
	decision->is_free |= fragi_lane_is_free(lane);
	switch (lane->timing->missing) {
	case FRAG_MISSING_SKIP:
		decision->never |= all_ended;
		decision->skips |= !has_ended || all_ended;
		break;
	case FRAG_MISSING_REUSE_LAST:
		if (lane->last != NULL)
			lane->give = FRAGI_GIVE_LAST;
		else
			decision->waits |= !has_ended && !fragi_lane_is_free(lane);
		break;
	case FRAG_MISSING_DEFAULT:
		lane->give = FRAGI_GIVE_DEFAULT;
		break;
	default:
		decision->never |= all_ended;
		decision->waits |= !has_ended;
		break;
	}
}

static void decide_port(const struct fragi_timing_state *timing,
			const struct fragi_timed_port *port, struct decision *decision)
{
	uint32_t held = 0, ended = 0;

	for (uint32_t i = 0; i < port->count; i++) {
		port->lanes[i].give =
			port->lanes[i].held != NULL ? FRAGI_GIVE_HELD : FRAGI_GIVE_NOTHING;
		held += port->lanes[i].held != NULL;
		ended += fragi_lane_has_ended(&port->lanes[i]);
	}
	decision->is_fresh |= held > 0;
	if (port->in_turn && held > 0)
		return;
	for (uint32_t i = 0; i < port->count; i++) {
		if (port->lanes[i].held == NULL)
			decide_missing(timing, &port->lanes[i], ended == port->count, decision);
		if (port->in_turn)
			break; /* one stands for all */
	}
}

static bool all_have_ended(const struct fragi_timing_state *timing)
{
	for (uint32_t i = 0; i < timing->lane_count; i++)
		if (!fragi_lane_has_ended(&timing->lanes[i]))
			return false;
	return timing->lane_count > 0;
}

static struct decision decide(struct fragi_exec *exec)
{
	struct fragi_timing_state *timing = exec->timing;
	struct decision decision = {.never = false};

	timing->time.now_ns = exec->begin_ns;
	timing->time.clock = exec->clock;
	timing->time.knows_clocks = false;
	for (uint32_t i = 0; i < timing->lane_count; i++)
		fragi_lane_fill(&timing->lanes[i], &timing->time);
	if (timing->window_ns > 0)
		align(timing);
	timing->timed_out = set_until_ns(timing) <= timing->time.now_ns;
	for (uint32_t i = 0; i < timing->port_count; i++)
		decide_port(timing, &timing->ports[i], &decision);
	decision.never |= all_have_ended(timing);
	return decision;
}

/* Counts why a lane has nothing for a tick that takes place, or is skipped. */
static void count_absence(const struct fragi_timing_state *timing, struct fragi_lane *lane)
{
	struct fragi_flow_row *row = lane->rx->row;
	_Atomic uint64_t *counter = &row->absent_late;

	if (fragi_lane_has_ended(lane))
		counter = &row->absent_ended;
	else if (lane->why != NULL)
		counter = lane->why;
	else if (lane->is_aligned && timing->timed_out)
		counter = &row->absent_window;
	else if (dropped_before(lane) > lane->dropped)
		counter = &row->absent_dropped;
	fragi_count(counter, 1);
}

/* For each lane that has no message, unless another lane of its port has that for it. */
static void count_absences(struct fragi_timing_state *timing)
{
	for (uint32_t i = 0; i < timing->port_count; i++) {
		const struct fragi_timed_port *port = &timing->ports[i];
		uint32_t held = 0;

		for (uint32_t k = 0; k < port->count; k++)
			held += port->lanes[k].held != NULL;
		for (uint32_t k = 0; k < port->count; k++) {
			struct fragi_lane *lane = &port->lanes[k];

			if (lane->held == NULL && !lane->reads_again &&
			    (!port->in_turn || held == 0))
				count_absence(timing, lane);
			lane->why = NULL;
			lane->dropped = dropped_before(lane);
		}
	}
}

static void skip(struct fragi_exec *exec)
{
	struct fragi_timing_state *timing = exec->timing;

	count_absences(timing);
	for (uint32_t i = 0; i < timing->lane_count; i++)
		if (timing->lanes[i].held != NULL)
			fragi_lane_drop(&timing->lanes[i], FRAGI_DROP_SKIPPED);
	fragi_checks_ticked(exec);
}

/*
 * A tick that is skipped takes what would have been its messages, and its time. When there is
 * neither, the operator waits for a message.
 */
enum frag_ready fragi_timing_ready(struct fragi_exec *exec, enum frag_ready others,
				   int64_t *out_until_ns)
{
	const struct fragi_timing_state *timing = exec->timing;
	struct decision decision;
	int64_t until_ns;

	if (others == FRAG_NEVER)
		return others;
	if (others != FRAG_READY)
		return all_have_ended(timing) ? FRAG_NEVER : others;
	for (uint32_t skips = 0; skips < SKIPS_MAX; skips++) {
		decision = decide(exec);
		if (decision.never)
			return FRAG_NEVER;
		until_ns = decision.waits_in_set ? set_until_ns(timing) : INT64_MAX;
		if (decision.waits && until_ns == INT64_MAX)
			return FRAG_WAIT;
		if (decision.waits) {
			*out_until_ns = until_ns;
			return FRAG_WAIT_TIME;
		}
		if (!decision.is_fresh && !decision.is_free && !timing->has_clock &&
		    exec->in_count == 0)
			return FRAG_WAIT;
		if (!decision.skips)
			return FRAG_READY;
		if (!decision.is_fresh && !timing->has_clock)
			return FRAG_WAIT;
		skip(exec);
		if (timing->has_clock)
			break; /* the conditions are to say when the next tick is due */
	}
	*out_until_ns = timing->time.now_ns;
	return FRAG_WAIT_TIME;
}

void fragi_timing_begins(struct fragi_exec *exec)
{
	count_absences(exec->timing);
}

/* Receive. */

static int lane_receive(struct frag_tick *tick, const struct fragi_timed_port *port,
			struct fragi_lane *lane, const struct frag_message **out_message)
{
	struct frag_message *message = NULL;
	enum fragi_give give = lane->give;
	int r;

	if (give == FRAGI_GIVE_HELD)
		message = lane->held;
	else if (give == FRAGI_GIVE_LAST)
		message = frag_message_ref(lane->last);
	else if (give == FRAGI_GIVE_DEFAULT && port->otherwise != NULL)
		message = frag_message_ref(port->otherwise);
	if (message == NULL)
		return -ENOMSG;
	lane->give = FRAGI_GIVE_NOTHING;
	if (give == FRAGI_GIVE_LAST)
		fragi_count(&lane->rx->row->reused, 1);
	if (give == FRAGI_GIVE_HELD) {
		lane->held = NULL;
		fragi_rx_settle(lane->rx, lane->stamp, tick->stamp);
		if (lane->timing->missing == FRAG_MISSING_REUSE_LAST) {
			frag_message_unref(lane->last);
			lane->last = frag_message_ref(message);
		}
	}
	if (give == FRAGI_GIVE_LAST)
		fragi_path_redelivered(tick);
	if (tick->op->logged != NULL && give != FRAGI_GIVE_DEFAULT)
		fragi_logging_given(tick, lane->rx);
	r = fragi_tick_keep(tick, message, out_message);
	return r;
}

int fragi_timing_receive(struct frag_tick *tick, struct fragi_timed_port *port,
			 const struct frag_message **out_message)
{
	int r = -ENOMSG;

	for (uint32_t i = 0; i < port->count && r == -ENOMSG; i++)
		r = lane_receive(tick, port, &port->lanes[i], out_message);
	return r;
}

int fragi_timing_receive_all(struct frag_tick *tick, struct fragi_timed_port *port,
			     const struct frag_message **all)
{
	int r;

	for (uint32_t i = 0; i < port->count; i++) {
		all[i] = NULL;
		r = lane_receive(tick, port, &port->lanes[i], &all[i]);
		if (r < 0 && r != -ENOMSG)
			return r;
	}
	return (int)port->count;
}

/* Life. */

/* Of inputs that declare no timing, but have a flow whose messages are read again. */
static const struct fragi_timing newest_again = {.take = FRAG_TAKE_LATEST_WITHIN,
						 .missing = FRAG_MISSING_REUSE_LAST};
static const struct fragi_timing each_once;

static void lane_init(struct fragi_exec *exec, struct fragi_lane *lane, struct fragi_rx *rx,
		      const struct fragi_port *port)
{
	const struct fragi_deadline *deadline = &exec->op->deadline;
	bool reads_again = port->timing == NULL && rx->policy->reads_again;

	*lane = (struct fragi_lane){
		.rx = rx,
		.timing = reads_again            ? &newest_again
			  : port->timing != NULL ? port->timing
						 : &each_once,
		.reads_again = reads_again,
		.waits_for_first = (port->flags & FRAG_PORT_NO_CONDITION) == 0,
		.is_aligned = port->is_aligned,
		.deadline_ns = deadline->on_miss == FRAG_ON_MISS_DROP ? deadline->budget_ns : 0,
		.misses = &exec->row->deadline_misses,
		.drops_late = exec->op->drops_late ? exec : NULL,
	};
	lane->has_deadline = lane->deadline_ns > 0 || lane->drops_late != NULL;
}

/* Makes the flows of a port lanes. Its gate is the timing, so nothing else sees them. */
static int port_create(struct fragi_exec *exec, uint32_t index)
{
	struct fragi_timing_state *timing = exec->timing;
	struct fragi_timed_port *timed = &timing->ports[timing->port_count++];
	struct fragi_exec_port *port = &exec->tick.ports[index];
	const struct fragi_port *declared = &exec->op->ports[index];

	*timed = (struct fragi_timed_port){
		.lanes = &timing->lanes[timing->lane_count],
		.count = port->count,
		.in_turn = port->in_turn,
		.is_aligned = declared->is_aligned,
	};
	for (uint32_t i = 0; i < port->count; i++)
		lane_init(exec, &timing->lanes[timing->lane_count++], port->rx[i], declared);
	for (uint32_t i = 0; i < timed->count; i++)
		timing->waits |= !timed->lanes[i].reads_again;
	port->timed = timed;
	port->next_rx = NULL;
	port->in_turn = false;
	port->count = 0;
	return declared->timing != NULL ? fragi_timing_default(declared, &timed->otherwise) : 0;
}

/* A condition that says by the time when a tick is due, whatever waits at the inputs. */
static bool has_clock(const struct frag_op *op)
{
	for (uint32_t i = 0; i < op->condition_count; i++) {
		const struct frag_condition *condition = op->conditions[i];

		if ((condition->type->flags & FRAG_CONDITION_TIMED) != 0 &&
		    (condition->built_in == NULL || condition->built_in->check_inputs == NULL))
			return true;
	}
	return false;
}

static bool is_timed_port(const struct fragi_exec *exec, uint32_t index)
{
	const struct fragi_exec_port *port = &exec->tick.ports[index];
	bool is_timed = exec->op->ports[index].timing != NULL && port->count > 0;

	for (uint32_t i = 0; port->dir == FRAG_IN && i < port->count; i++)
		is_timed |= port->rx[i]->policy->reads_again;
	return is_timed;
}

bool fragi_timing_waits(const struct fragi_exec *exec)
{
	return exec->timing != NULL && exec->timing->waits;
}

int fragi_timing_create(struct fragi_exec *exec)
{
	const struct frag_op *op = exec->op;
	struct fragi_timing_state *timing;
	bool is_timed = false;

	for (uint32_t i = 0; i < op->port_count; i++)
		is_timed |= is_timed_port(exec, i);
	if (!is_timed)
		return 0;
	timing = fragi_calloc(1, sizeof(*timing));
	if (timing == NULL)
		return -ENOMEM;
	exec->timing = timing;
	timing->ports = fragi_calloc(op->port_count + 1, sizeof(*timing->ports));
	timing->lanes = fragi_calloc(exec->rx_count + 1, sizeof(*timing->lanes));
	timing->window_ns = op->align.window_ns;
	timing->timeout_ns = op->align.timeout_ns;
	timing->has_clock = has_clock(op);
	exec->timed = true;
	if (timing->ports == NULL || timing->lanes == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < op->port_count; i++)
		if (is_timed_port(exec, i) && port_create(exec, i) < 0)
			return -ENOMEM;
	return 0;
}

void fragi_timing_end(struct fragi_exec *exec, bool stopped)
{
	const struct fragi_timing_state *timing = exec->timing;

	for (uint32_t i = 0; timing != NULL && i < timing->lane_count; i++) {
		struct fragi_lane *lane = &timing->lanes[i];

		if (lane->held != NULL)
			fragi_rx_drop_last(lane->rx, lane->held,
					   stopped ? FRAGI_DROP_STOPPED : FRAGI_DROP_RECEIVER_DONE);
		lane->held = NULL;
		frag_message_unref(lane->last);
		lane->last = NULL;
	}
}

void fragi_timing_destroy(struct fragi_exec *exec)
{
	struct fragi_timing_state *timing = exec->timing;

	if (timing == NULL)
		return;
	fragi_timing_end(exec, true);
	for (uint32_t i = 0; i < timing->port_count; i++)
		frag_message_unref(timing->ports[i].otherwise);
	fragi_free(timing->ports);
	fragi_free(timing->lanes);
	fragi_free(timing);
}
