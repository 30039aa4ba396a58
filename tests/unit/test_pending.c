// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <semaphore.h>

#include <frag/harness.h>

#include "rig_ops.h"

/*
 * Operators that return FRAG_PENDING. Each has a thread of its own, which does what compute asks it
 * for and then calls frag_op_resume, as a device or an engine does.
 */
enum { LATER_IN, LATER_OUT };

/* What `later` does otherwise, by the number that it receives. */
static _Atomic int64_t held_at; /* the thread does nothing with this number before `release` */
static _Atomic bool release;
static _Atomic uint32_t calls, gave_up, ends;

struct later {
	int64_t fail_at, early, wakes, done_after;
	pthread_t thread;
	sem_t asked;
	struct frag_op *op;
	const struct frag_message *message; /* borrowed while the tick is pending */
	_Atomic bool ready, leaves;
	bool begun;
	int64_t result, seen, time_ns;
	uint64_t count;
};

static const struct frag_port later_ports[] = {
	{.name = "in", .dir = FRAG_IN, .type = "i64"},
	{.name = "out", .dir = FRAG_OUT, .type = "i64"},
};
static const struct frag_param later_params[] = {
	FRAG_PARAM_I64(struct later, fail_at, -1),
	FRAG_PARAM_I64(struct later, early, 0),
	FRAG_PARAM_I64(struct later, wakes, 0),
	FRAG_PARAM_I64(struct later, done_after, -1),
};

/* Reads the message only now: it must still be there, whatever became of the operator. */
static void *later_thread(void *arg)
{
	struct later *s = arg;
	const void *value;

	for (;;) {
		while (sem_wait(&s->asked) < 0)
			;
		if (atomic_load(&s->leaves))
			return NULL;
		for (int64_t i = 0; i < s->wakes; i++)
			frag_op_resume(s->op);
		frag_message_value(s->message, &value, NULL);
		while (*(const int64_t *)value == atomic_load(&held_at) && !atomic_load(&release) &&
		       !atomic_load(&s->leaves))
			usleep(1000);
		s->result = *(const int64_t *)value + 1000;
		atomic_store(&s->ready, true);
		frag_op_resume(s->op);
	}
}

static int later_start(void *state, struct frag_op *op)
{
	struct later *s = state;

	s->op = op;
	sem_init(&s->asked, 0, 0);
	return -pthread_create(&s->thread, NULL, later_thread, s);
}

static int later_begin(struct later *s, struct frag_tick *tick)
{
	int r = frag_tick_receive(tick, LATER_IN, &s->message);

	if (r < 0)
		return r;
	s->begun = true;
	s->time_ns = frag_tick_time_ns(tick);
	s->count = frag_tick_count(tick);
	atomic_store(&s->ready, false);
	sem_post(&s->asked);
	while (s->early != 0 && !atomic_load(&s->ready))
		usleep(100); /* it is resumed before compute has returned */
	return FRAG_PENDING;
}

static int later_compute(void *state, struct frag_tick *tick)
{
	struct later *s = state;
	int r;

	atomic_fetch_add(&calls, 1);
	if (!s->begun)
		return later_begin(s, tick);
	if (!atomic_load(&s->ready))
		return FRAG_PENDING;
	s->begun = false;
	cr_expect_eq(frag_tick_time_ns(tick), s->time_ns, "it is still the same tick");
	cr_expect_eq(frag_tick_count(tick), s->count);
	if (s->result - 1000 == s->fail_at)
		return frag_op_fail(s->op, -EIO, "the device lost number %lld; plug it in",
				    (long long)s->fail_at);
	r = frag_tick_emit_i64(tick, LATER_OUT, s->result);
	return r < 0 ? r : ++s->seen == s->done_after ? FRAG_DONE : 0;
}

static int later_stop(void *state, struct frag_op *op)
{
	struct later *s = state;

	atomic_fetch_add(&gave_up, s->begun);
	atomic_fetch_add(&ends, 1);
	atomic_store(&s->leaves, true);
	sem_post(&s->asked);
	pthread_join(s->thread, NULL);
	sem_destroy(&s->asked);
	return 0;
}

TEST_OP(later, .state_size = sizeof(struct later), FRAG_PORTS(later_ports),
	FRAG_PARAMS(later_params), .start = later_start, .stop = later_stop);

/* A source of which nothing ever comes. */
static _Atomic bool silent_waits;

static int silent_compute(void *state, struct frag_tick *tick)
{
	atomic_store(&silent_waits, true);
	return FRAG_PENDING;
}

static int silent_stop(void *state, struct frag_op *op)
{
	atomic_fetch_add(&ends, 1);
	return 0;
}

static const struct frag_port silent_ports[] = {{.name = "out", .dir = FRAG_OUT, .type = "i64"}};
TEST_OP(silent, FRAG_PORTS(silent_ports), .stop = silent_stop);

/* Writes the number into the metadata too; compares the two. */
static int labels_compute(void *state, struct frag_tick *tick)
{
	int64_t x;
	int r = frag_tick_receive_i64(tick, MIDDLE_IN, &x);

	if (r == 0)
		r = frag_metadata_set_i64(frag_tick_metadata(tick), "number", x);
	return r < 0 ? r : frag_tick_emit_i64(tick, MIDDLE_OUT, x);
}

static int compares_compute(void *state, struct frag_tick *tick)
{
	int64_t x, label = -1;
	int r = frag_tick_receive_i64(tick, MIDDLE_IN, &x);

	if (r < 0)
		return r;
	frag_metadata_get_i64(frag_tick_metadata(tick), "number", &label);
	return frag_tick_emit_i64(tick, MIDDLE_OUT, label + 1000 == x ? x : -1);
}

TEST_OP(labels, FRAG_PORTS(middle_ports));
TEST_OP(compares, FRAG_PORTS(middle_ports));
/* Each tick is of two calls that take a millisecond. */
static int busy_compute(void *state, struct frag_tick *tick)
{
	bool *was_pending = state;
	int64_t x, end_ns = fragi_now_ns() + 1000000;

	while (fragi_now_ns() < end_ns)
		;
	*was_pending = !*was_pending;
	if (*was_pending) {
		frag_op_resume(frag_tick_op(tick));
		return FRAG_PENDING;
	}
	return frag_tick_receive_i64(tick, MIDDLE_IN, &x) == 0
		       ? frag_tick_emit_i64(tick, MIDDLE_OUT, x)
		       : 0;
}

TEST_OP(busy, FRAG_PORTS(middle_ports), .state_size = sizeof(bool));
TEST_PLUGIN(pending, &source_type, &sink_type, &later_type, &silent_type, &labels_type,
	    &compares_type, &busy_type);

static void begin(void)
{
	atomic_store(&held_at, -1);
	atomic_store(&release, false);
	atomic_store(&silent_waits, false);
	atomic_store(&calls, 0);
	atomic_store(&gave_up, 0);
	atomic_store(&ends, 0);
}

/* All numbers in order, each with its own metadata; a tick and a compute for each. */
static void expect_in_order(const char *parameters)
{
	const struct fragi_op_row *op;
	char rest[600];
	struct rig rig;

	snprintf(rest, sizeof(rest),
		 "operators:\n"
		 "  tx: {type: source, parameters: {count: 300}}\n"
		 "  label: {type: labels}\n"
		 "  op: {type: later, parameters: {%s}}\n"
		 "  compare: {type: compares}\n"
		 "  rx: {type: sink}\n"
		 "flows: [tx -> label, label -> op, op -> compare, compare -> rx]\n",
		 parameters);
	FOR_EACH_SCHEDULER(s)
	{
		begin();
		rig_run(&rig, &pending_plugin, rig_graph(s, rest));
		cr_assert_eq(noted(0), 300, "%s", rig.sentence);
		for (int64_t i = 0; i < 300; i++)
			cr_assert_eq(notes[0]->values[i], 1000 + i);
		op = &fragi_run_ledger(rig.run)->ops[2];
		cr_expect_eq(atomic_load(&op->ticks), 300);
		cr_expect_eq(atomic_load(&op->compute.count), 300);
		cr_expect_geq(atomic_load(&calls), 600);
		cr_expect_eq(atomic_load(&gave_up), 0);
		cr_expect(rig_balances(&rig));
		rig_end(&rig);
	}
}

Test(pending, results_come_in_order_with_their_metadata)
{
	expect_in_order("early: 0");
}

/* A tick has the time of its own calls, and not that of the ticks before it too. */
RIG_TEST(pending, a_tick_takes_as_long_as_its_calls)
{
	int64_t begin_ns = fragi_now_ns();
	const struct fragi_op_row *op;

	rig_run(rig, &pending_plugin,
		rig_graph(s, "operators:\n"
			     "  tx: {type: source, parameters: {count: 20}}\n"
			     "  op: {type: busy}\n"
			     "  rx: {type: sink}\n"
			     "flows: [tx -> op, op -> rx]\n"));
	cr_assert_eq(noted(0), 20, "%s", rig->sentence);
	op = &fragi_run_ledger(rig->run)->ops[1];
	cr_expect_eq(atomic_load(&op->compute.count), 20);
	cr_expect_geq(atomic_load(&op->compute.max), 2 * 1000000);
	/* The 19 others have taken two milliseconds each. */
	cr_expect_leq(atomic_load(&op->compute.max),
		      (uint64_t)(fragi_now_ns() - begin_ns) - 19 * 2 * 1000000);
}

/* Resumed before compute has returned, and many times before there is anything. */
Test(pending, no_wake_is_lost_and_early_ones_do_no_harm)
{
	expect_in_order("early: 1");
	expect_in_order("wakes: 50");
}

static bool is_pending(void)
{
	return atomic_load(&calls) > 0;
}

/* One thread: while a tick is pending, the other operators go on. */
Test(pending, no_thread_is_occupied)
{
	struct rig rig;

	for (size_t s = 0; s < 2; s++, notes_clear()) {
		begin();
		atomic_store(&held_at, 0);
		rig_prepare_good(&rig, &pending_plugin,
				 rig_graph(s, "operators:\n"
					      "  tx: {type: source, parameters: {count: 20}}\n"
					      "  op: {type: later}\n"
					      "  rx: {type: sink}\n"
					      "  a: {type: source, parameters: {count: 5000}}\n"
					      "  b: {type: sink, parameters: {slot: 1}}\n"
					      "flows: [tx -> op, op -> rx, a -> b]\n"));
		rig_start(&rig);
		RIG_AWAIT(is_pending() && noted(1) == 5000);
		cr_expect_eq(noted(0), 0);
		atomic_store(&release, true);
		cr_assert(rig_wait(&rig, rig_is_done, RIG_LIMIT_NS));
		cr_expect_eq(noted(0), 20);
		rig_end(&rig);
	}
}

/* Everything else waits, but the fragment does not rest: what is pending will still come. */
RIG_TEST(pending, a_pending_tick_keeps_the_application_alive)
{
	begin();
	atomic_store(&held_at, 1);
	rig_prepare_good(rig, &pending_plugin,
			 rig_graph(s, "operators:\n"
				      "  tx: {type: source, parameters: {count: 2}}\n"
				      "  op: {type: later}\n"
				      "  rx: {type: sink}\n"
				      "flows: [tx -> op, op -> rx]\n"));
	rig_start(rig);
	cr_expect_not(rig_wait(rig, rig_is_done, 300000000));
	cr_expect_eq(rig->idle, 0);
	atomic_store(&release, true);
	cr_assert(rig_wait(rig, rig_is_done, RIG_LIMIT_NS));
	cr_expect_eq(noted(0), 2);
}

/* A stop that drains loses nothing that is pending; a source that waits is given up. */
RIG_TEST(pending, a_drain_waits_for_results_and_gives_up_sources)
{
	begin();
	atomic_store(&held_at, 7);
	rig_prepare_good(rig, &pending_plugin,
			 rig_graph(s, "operators:\n"
				      "  tx: {type: source, parameters: {count: 8}}\n"
				      "  op: {type: later}\n"
				      "  rx: {type: sink}\n"
				      "  camera: {type: silent}\n"
				      "  film: {type: sink, parameters: {slot: 1}}\n"
				      "flows: [tx -> op, op -> rx, camera -> film]\n"));
	rig_start(rig);
	RIG_AWAIT(noted(0) == 7 && atomic_load(&silent_waits));
	fragi_run_drain(rig->run);
	RIG_AWAIT(atomic_load(&ends) == 1);
	atomic_store(&release, true);
	cr_assert(rig_wait(rig, rig_is_done, RIG_LIMIT_NS));
	cr_expect_eq(rig->failed, 0, "%s", rig->sentence);
	cr_expect_eq(noted(0), 8);
	cr_expect_eq(atomic_load(&ends), 2);
	cr_expect_eq(atomic_load(&gave_up), 0);
}

/* After a failure elsewhere stop is called; what was received stays until stop has returned. */
RIG_TEST(pending, a_failure_gives_up_what_is_pending)
{
	begin();
	atomic_store(&held_at, 3);
	rig_prepare_good(rig, &pending_plugin,
			 rig_graph(s, "operators:\n"
				      "  tx: {type: source, parameters: {count: 100}}\n"
				      "  op: {type: later}\n"
				      "  rx: {type: sink}\n"
				      "flows: [tx -> op, op -> rx]\n"));
	rig_start(rig);
	RIG_AWAIT(noted(0) == 3 && atomic_load(&calls) >= 7);
	fragi_run_halt(rig->run);
	cr_assert(rig_wait(rig, rig_is_done, RIG_LIMIT_NS));
	cr_expect_eq(noted(0), 3);
	cr_expect_eq(atomic_load(&gave_up), 1);
	cr_expect(rig_balances(rig));
}

RIG_TEST(pending, a_tick_that_goes_on_may_fail_or_be_the_last)
{
	begin();
	rig_run(rig, &pending_plugin,
		rig_graph(s, "operators:\n"
			     "  tx: {type: source}\n"
			     "  op: {type: later, parameters: {fail_at: 5}}\n"
			     "  rx: {type: sink}\n"
			     "flows: [tx -> op, op -> rx]\n"));
	cr_expect_str_eq(rig->sentence, "app.op: the device lost number 5; plug it in");
	rig_end(rig);
	notes_clear();
	begin();
	rig_run(rig, &pending_plugin,
		rig_graph(s, "operators:\n"
			     "  tx: {type: source}\n"
			     "  op: {type: later, parameters: {done_after: 4}}\n"
			     "  rx: {type: sink}\n"
			     "flows: [tx -> op, op -> rx]\n"));
	cr_expect_eq(rig->failed, 0, "%s", rig->sentence);
	cr_expect_eq(noted(0), 4);
}

Test(pending, the_watchdog_and_the_limit_of_a_stop_hold_for_what_is_pending)
{
	struct rig rig;

	for (size_t s = 0; s < FRAG_COUNT_OF(rig_schedulers); s++) {
		begin();
		rig_prepare_good(&rig, &pending_plugin,
				 rig_graph(s, "operators:\n"
					      "  tx: {type: silent, watchdog: 50ms}\n"
					      "  rx: {type: sink}\n"
					      "flows: [tx -> rx]\n"));
		rig_start(&rig);
		cr_assert(rig_wait(&rig, rig_has_failed, RIG_LIMIT_NS));
		cr_expect_not_null(
			strstr(rig.sentence, "longer than its watchdog of 50.0 ms (tick 1)"), "%s",
			rig.sentence);
		fragi_run_destroy(rig.run); /* does not wait */
		begin();
		atomic_store(&held_at, 0);
		rig_prepare_good(&rig, &pending_plugin,
				 rig_graph(s, "operators:\n"
					      "  tx: {type: source, parameters: {count: 1}}\n"
					      "  op: {type: later}\n"
					      "  rx: {type: sink}\n"
					      "flows: [tx -> op, op -> rx]\n"));
		rig_start(&rig);
		RIG_AWAIT(is_pending());
		fragi_run_limit_calls(rig.run, 200000000);
		fragi_run_drain(rig.run);
		cr_assert(rig_wait(&rig, rig_has_failed, RIG_LIMIT_NS));
		cr_expect_not_null(
			strstr(rig.sentence,
			       "longer than the 200 ms that a stop leaves to it (tick 1)"),
			"%s", rig.sentence);
		fragi_run_destroy(rig.run); /* does not wait */
	}
	_exit(0);
}

Test(pending, the_harness_waits_for_the_end_of_the_tick)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_harness *h = frag_harness_create(&later_type, FRAG_NO_ARGS, &err);
	int64_t x;

	cr_assert_not_null(h, "%s", err.text);
	begin();
	for (int64_t i = 0; i < 3; i++) {
		cr_assert_eq(frag_harness_give_i64(h, "in", i), 0);
		cr_assert_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
		cr_assert_eq(frag_harness_take_i64(h, "out", &x), 0);
		cr_expect_eq(x, 1000 + i);
	}
	cr_expect_str_eq(frag_strerror(FRAG_PENDING), "pending");
	frag_harness_destroy(h);
}
