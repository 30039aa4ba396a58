/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_INPUT_OPS_H
#define TESTS_UNIT_INPUT_OPS_H

#include "rig_ops.h"

/* Operators with several inputs, with memory that goes round, and with events from outside. */

/* Takes all that waits at both inputs; notes 1000 * messages of a + those of b. */
static const struct frag_port two_ports[] = {
	{.name = "a", .dir = FRAG_IN, .type = "i64"},
	{.name = "b", .dir = FRAG_IN, .type = "i64", .flags = FRAG_PORT_OPTIONAL},
};

/*
 * Takes no more than that of each: what it receives makes room, and a source on another thread may
 * send again while the tick lasts.
 */
struct two {
	int64_t most_a, most_b;
};
static const struct frag_param two_params[] = {
	FRAG_PARAM_I64(struct two, most_a, INT64_MAX),
	FRAG_PARAM_I64(struct two, most_b, INT64_MAX),
};

static int two_compute(void *state, struct frag_tick *tick)
{
	const struct two *s = state;
	const int64_t most[2] = {s->most_a, s->most_b};
	int64_t x, n[2] = {0, 0};

	for (uint32_t i = 0; i < 2; i++)
		while (n[i] < most[i] && frag_tick_receive_i64(tick, i, &x) == 0)
			n[i]++;
	note_add(note_of(0), 1000 * n[0] + n[1]);
	return 0;
}

TEST_OP(two, .state_size = sizeof(struct two), FRAG_PORTS(two_ports), FRAG_PARAMS(two_params));

/* The same with a condition that its setup makes. */
static int two_setup(void *state, struct frag_op *op)
{
	return frag_make_condition(
		       op, NULL, "multi_message_available",
		       FRAG_ARGS({"sampling_mode", "PerReceiver"}, {"min_sizes", "[2, 1]"})) != NULL
		       ? 0
		       : -EINVAL;
}

TEST_OP_BY(two_of_c, two_compute, .state_size = sizeof(struct two), FRAG_PORTS(two_ports),
	   FRAG_PARAMS(two_params), .setup = two_setup);

/* Takes memory in each tick, which another operator gives back one by one. */
#define LENT_MAX 64
static struct {
	pthread_mutex_t lock;
	void *items[LENT_MAX];
	size_t count;
} lent = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct borrower {
	struct frag_resource *pool;
	int64_t count, at_once;
};
static const struct frag_param borrower_params[] = {
	FRAG_PARAM_RESOURCE(struct borrower, pool, NULL),
	FRAG_PARAM_I64(struct borrower, count, 10),
	FRAG_PARAM_I64(struct borrower, at_once, 1),
};

static int borrow(struct borrower *s, struct frag_op *op)
{
	void *memory;
	int r = frag_alloc(s->pool, 64, &memory);

	if (r < 0)
		return frag_op_fail(op, r, "no memory");
	pthread_mutex_lock(&lent.lock);
	lent.items[lent.count++] = memory;
	pthread_mutex_unlock(&lent.lock);
	note_add(note_of(0), 0);
	return 0;
}

static int borrower_compute(void *state, struct frag_tick *tick)
{
	struct borrower *s = state;
	int r = 0;

	for (int64_t i = 0; r == 0 && i < s->at_once; i++)
		r = borrow(s, frag_tick_op(tick));
	return r < 0 ? r : noted(0) >= s->count ? FRAG_DONE : 0;
}

static int lender_compute(void *state, struct frag_tick *tick)
{
	const struct borrower *s = state;
	void *memory = NULL;

	pthread_mutex_lock(&lent.lock);
	if (lent.count > 0)
		memory = lent.items[--lent.count];
	pthread_mutex_unlock(&lent.lock);
	frag_free(s->pool, memory);
	note_of(1)->ticks += memory != NULL;
	return (int64_t)note_of(1)->ticks == s->count ? FRAG_DONE : 0;
}

TEST_OP(borrower, FRAG_PARAMS(borrower_params), .state_size = sizeof(struct borrower));
TEST_OP(lender, FRAG_PARAMS(borrower_params), .state_size = sizeof(struct borrower));

/* Asks for an event in each tick; a thread of its own reports it later. */
struct asker {
	struct frag_condition *event;
	pthread_t thread;
	bool has_thread;
	int64_t ticks;
};

static void *bring(void *arg)
{
	struct asker *s = arg;

	usleep(20000); /* meanwhile nothing else is going on */
	cr_expect_eq(frag_condition_event_state(s->event), FRAG_EVENT_WAITING);
	frag_condition_set_event_state(s->event, FRAG_EVENT_DONE);
	return NULL;
}

static void asker_join(struct asker *s)
{
	if (s->has_thread)
		pthread_join(s->thread, NULL);
	s->has_thread = false;
}

static int asker_compute(void *state, struct frag_tick *tick)
{
	struct asker *s = state;

	s->event = frag_op_condition(frag_tick_op(tick), "event");
	asker_join(s);
	cr_expect_eq(frag_condition_event_state(s->event),
		     s->ticks == 0 ? FRAG_EVENT_READY : FRAG_EVENT_DONE);
	note_add(note_of(0), 0);
	cr_expect_eq(frag_condition_set_event_state(s->event,
						    (enum frag_event_state)(FRAG_EVENT_NEVER + 1)),
		     -EINVAL);
	cr_expect_eq(frag_condition_set_event_state(s->event,
						    (enum frag_event_state)(FRAG_EVENT_READY - 1)),
		     -EINVAL);
	if (++s->ticks == 5)
		return frag_condition_set_event_state(s->event, FRAG_EVENT_NEVER);
	frag_condition_set_event_state(s->event, FRAG_EVENT_WAITING);
	s->has_thread = pthread_create(&s->thread, NULL, bring, s) == 0;
	return 0;
}

static int asker_stop(void *state, struct frag_op *op)
{
	asker_join(state);
	return 0;
}

TEST_OP(asker, .state_size = sizeof(struct asker), .stop = asker_stop);

TEST_PLUGIN(inputs, &source_type, &sink_type, &gather_type, &taker_type, &two_type, &two_of_c_type,
	    &borrower_type, &lender_type, &asker_type, &middle_type);

#endif
