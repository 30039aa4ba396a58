// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>

#include <run/state.h>

#include "cycle_ops.h"
#include "left.h"

/* How operators, fragments and applications end; under both schedulers. */

RIG_TEST(end, a_closed_output_is_drained_before_its_receiver_ends)
{
	rig_run(rig, &rig_plugin,
		rig_graph(s, "operators:\n"
			     "  tx: {type: source, parameters: {count: 64}}\n"
			     "  rx: {type: sink, parameters: {work_us: 100}}\n"
			     "flows: [{from: tx, to: rx, capacity: 64}]\n"));
	cr_expect_eq(notes[0]->count, 64);
	cr_expect_eq(rig_row(rig, 0)->delivered, 64);
}

RIG_TEST(end, left_overs_below_min_size_are_delivered_after_the_close)
{
	rig_run(rig, &rig_plugin,
		rig_graph(
			s,
			"operators:\n"
			"  tx: {type: source, parameters: {count: 7}}\n"
			"  rx: {type: sink, conditions: [{type: message_available, min_size: 3}]}\n"
			"flows: [{from: tx, to: rx, capacity: 4}]\n"));
	cr_expect_eq(notes[0]->count, 7);
}

RIG_TEST(end, a_receiver_that_is_done_ends_its_sender)
{
	const struct fragi_flow_row *row;

	rig_run(rig, &rig_plugin,
		rig_graph(
			s,
			"operators:\n"
			"  tx: {type: source}\n"
			"  m: {type: middle, parameters: {slot: 1}}\n"
			"  rx: {type: sink, parameters: {done_after: 5}}\n"
			"flows: [{from: tx, to: m, capacity: 3}, {from: m, to: rx, capacity: 3}]\n"));
	cr_expect_eq(notes[0]->count, 5);
	cr_expect_eq(notes[1]->stopped, 1);
	cr_expect_eq(notes[SLOTS - 1]->stopped, 1);
	row = rig_row(rig, 1);
	cr_expect_eq(row->delivered, 5);
	cr_expect_eq(row->sent, 5 + rig_dropped(row, FRAGI_DROP_RECEIVER_DONE));
	cr_expect(rig_balances(rig));
}

RIG_TEST(end, a_sender_goes_on_for_the_receivers_that_are_left)
{
	rig_run(rig, &rig_plugin,
		rig_graph(s, "operators:\n"
			     "  tx: {type: source, parameters: {count: 500}}\n"
			     "  few: {type: sink, parameters: {done_after: 5, slot: 1}}\n"
			     "  all: {type: sink}\n"
			     "flows: [{from: tx, to: [few, all]}]\n"));
	cr_expect_eq(notes[1]->count, 5);
	cr_expect_eq(notes[0]->count, 500);
	cr_expect_eq(rig_dropped(rig_row(rig, 0), FRAGI_DROP_RECEIVER_DONE), 495);
	cr_expect(rig_balances(rig));
}

/* The cycles of Holoscan's tests, and some more. `ticks`: by slot; 0: any number. */
static const struct {
	const char *graph;
	int ticks[4];
} cycles[] = {
	/* a cycle with a source */
	{"operators:\n"
	 "  tx: {type: source, parameters: {count: 1}}\n"
	 "  t: {type: free, conditions: [{type: count, count: 10}]}\n"
	 "  m: {type: bound, parameters: {slot: 1}}\n"
	 "flows: [tx.out -> t.a, t.x -> m.a, m.x -> t.b]\n",
	 {10, 10}},
	/* the last message goes all the way round */
	{"operators:\n"
	 "  t: {type: free, conditions: [{type: count, count: 10}]}\n"
	 "  m: {type: bound, parameters: {slot: 1}}\n"
	 "  n: {type: bound, parameters: {slot: 2}}\n"
	 "  o: {type: bound, parameters: {slot: 3}}\n"
	 "flows: [t.x -> m.a, m.x -> n.a, n.x -> o.a, o.x -> t.b]\n",
	 {10, 10, 10, 10}},
	/* two receivers in the cycle, and one outside */
	{"operators:\n"
	 "  tx: {type: source, parameters: {count: 1}}\n"
	 "  t: {type: free, parameters: {slot: 3}, conditions: [{type: count, count: 10}]}\n"
	 "  u: {type: free, conditions: [{type: count, count: 10}]}\n"
	 "  m: {type: bound, parameters: {slot: 1}}\n"
	 "  rx: {type: sink, parameters: {slot: 2}}\n"
	 "flows: [tx.out -> t.a, t.x -> u.a, u.x -> m.a, {from: m.x, to: [t.b, u.b, rx]}]\n",
	 {10, 10, 10}},
	/* two cycles through one operator, which nothing else would end */
	{"operators:\n"
	 "  start: {type: bound, conditions: [{type: count, count: 5}]}\n"
	 "  middle: {type: free, parameters: {slot: 1}}\n"
	 "  end: {type: bound, parameters: {slot: 2}}\n"
	 "flows: [start.x -> middle.a, middle.x -> end.a, middle.y -> start.a, end.x -> middle.b]\n",
	 {5}},
	{"operators:\n"
	 "  start: {type: free, conditions: [{type: count, count: 10}]}\n"
	 "  middle: {type: free, parameters: {slot: 1}}\n"
	 "  end: {type: free, parameters: {slot: 2}}\n"
	 "flows: [start.x -> middle.a, middle.x -> end.a, middle.y -> start.a, end.x -> middle.b]\n",
	 {10}},
	/* what waits for no message because it reads the newest one again */
	{"operators:\n"
	 "  t: {type: free, conditions: [{type: count, count: 10}]}\n"
	 "  m: {type: bound, parameters: {slot: 1}}\n"
	 "  n: {type: bound, parameters: {slot: 2}}\n"
	 "flows: [{from: t.x, to: m.a, policy: async_buffer}, {from: m.x, to: n.a, policy: async_buffer},\n"
	 "        {from: n.x, to: t.b, policy: async_buffer}]\n",
	 {10}},
	/* a source without end feeds the cycle */
	{"operators:\n"
	 "  tx: {type: source}\n"
	 "  p: {type: bound, parameters: {slot: 1}}\n"
	 "  m: {type: bound, parameters: {slot: 2}}\n"
	 "  r: {type: bound, conditions: [{type: count, count: 3}]}\n"
	 "flows: [tx.out -> p.a, p.x -> m.a, m.x -> r.a, r.x -> p.a]\n",
	 {3}},
};

Test(end, a_cycle_ends_with_an_operator_of_it)
{
	struct rig rig;

	for (size_t i = 0; i < FRAG_COUNT_OF(cycles); i++)
		FOR_EACH_SCHEDULER(s)
	for (int again = 0; again < 5; again++, notes_clear()) {
		make_wide(s < RIG_ONE_THREAD && i < 6 ? 1 : 16);
		rig_prepare_good(&rig, &cycles_plugin, rig_graph(s, cycles[i].graph));
		rig.is_host = true;
		rig_start(&rig);
		cr_assert(rig_wait(&rig, rig_is_done, RIG_LIMIT_NS), "%zu: %zu", i, s);
		cr_expect_eq(rig.failed, 0, "%zu: %s", i, rig.sentence);
		for (size_t slot = 0; slot < FRAG_COUNT_OF(cycles[i].ticks); slot++)
			if (cycles[i].ticks[slot] > 0)
				cr_expect_eq(notes[slot]->ticks, cycles[i].ticks[slot],
					     "%zu: %zu: slot %zu ticked %d times", i, s, slot,
					     (int)notes[slot]->ticks);
		cr_expect(rig_balances(&rig));
		rig_end(&rig);
	}
}

RIG_TEST(end, stop_execution_of_an_operator_ends_it_after_its_tick)
{
	rig_run(rig, &rig_plugin,
		rig_graph(s, "operators:\n"
			     "  tx: {type: source}\n"
			     "  rx: {type: sink, parameters: {stop_self_at: 41}}\n"
			     "flows: [tx -> rx]\n"));
	cr_expect_eq(notes[0]->count, 42);
	cr_expect_eq(rig->failed + rig->stopped, 0);
}

RIG_TEST(end, stop_execution_of_the_fragment_finishes_the_application)
{
	rig_run(rig, &rig_plugin,
		rig_graph(s, "operators:\n"
			     "  tx: {type: source, parameters: {stop_app_at: 100}}\n"
			     "  other: {type: source}\n"
			     "  rx: {type: sink}\n"
			     "  rx2: {type: sink, parameters: {slot: 1}}\n"
			     "flows: [{from: tx, to: rx, capacity: 8}, other -> rx2]\n"));
	cr_expect_eq(rig->stopped, 1);
	cr_expect_eq(rig->failed, 0);
	cr_expect_geq(notes[0]->count, 101);
	for (uint32_t i = 0; i < notes[0]->count; i++) /* what was sent is not lost */
		cr_assert_eq(notes[0]->values[i], i);
	cr_expect_eq(rig_row(rig, 0)->delivered, rig_row(rig, 0)->sent);
	cr_expect_eq(rig_row(rig, 1)->delivered, rig_row(rig, 1)->sent);
}

RIG_TEST(end, a_drain_delivers_all_that_was_sent)
{
	rig_prepare_good(
		rig, &rig_plugin,
		rig_graph(
			s,
			"operators:\n"
			"  tx: {type: source}\n"
			"  m: {type: middle, parameters: {work_us: 20}}\n"
			"  rx: {type: sink, parameters: {work_us: 20}}\n"
			"flows: [{from: tx, to: m, capacity: 16}, {from: m, to: rx, capacity: 16}]\n"));
	rig_start(rig);
	RIG_AWAIT(noted(0) >= 50);
	fragi_run_drain(rig->run);
	cr_assert(rig_wait(rig, rig_is_done, RIG_LIMIT_NS));
	for (size_t i = 0; i < 2; i++)
		cr_expect_eq(rig_row(rig, i)->delivered, rig_row(rig, i)->sent);
	cr_expect_eq(notes[0]->count, rig_row(rig, 0)->sent);
	cr_expect_eq(rig_dropped_all(rig_row(rig, 0)) + rig_dropped_all(rig_row(rig, 1)), 0);
}

RIG_TEST(end, a_drain_ends_cycles_and_what_never_ends_by_itself)
{
	rig_prepare_good(
		rig, &rig_plugin,
		rig_graph(
			s,
			"operators:\n"
			"  a: {type: ring, parameters: {slot: 3}}\n"
			"  b: {type: middle}\n"
			"  poll: {type: sink, ports: {in: {condition: none}},\n"
			"         conditions: [{type: periodic, recess_period: 1ms}]}\n"
			"  tx: {type: source, conditions: [{type: periodic, recess_period: 1ms}]}\n"
			"flows: [a -> b, b -> a, tx -> poll]\n"));
	rig_start(rig);
	RIG_AWAIT(noted(0) >= 3 && noted(3) >= 3);
	fragi_run_drain(rig->run);
	cr_assert(rig_wait(rig, rig_is_done, RIG_LIMIT_NS));
	cr_expect_eq(rig->failed, 0);
	cr_expect(rig_balances(rig));
	cr_expect_eq(rig_row(rig, 2)->delivered, rig_row(rig, 2)->sent);
}

RIG_TEST(end, a_drain_waits_for_a_sink_that_is_ticked_by_time)
{
	rig_prepare_good(
		rig, &rig_plugin,
		rig_graph(
			s,
			"operators:\n"
			"  tx: {type: source, conditions: [{type: count, count: 20}]}\n"
			"  rx: {type: sink, ports: {in: {condition: none}}, conditions: [\n"
			"       {type: count, count: 100000}, {type: periodic, recess_period: 3ms}]}\n"
			"flows: [{from: tx, to: rx, capacity: 20}]\n"));
	rig_start(rig);
	RIG_AWAIT(rig_row(rig, 0)->sent >= 20);
	fragi_run_drain(rig->run);
	cr_assert(rig_wait(rig, rig_is_done, RIG_LIMIT_NS));
	cr_expect_eq(notes[0]->count, 20);
}

RIG_TEST(end, a_halt_counts_what_was_queued_as_stopped)
{
	rig_prepare_good(
		rig, &rig_plugin,
		rig_graph(s,
			  "operators:\n"
			  "  tx: {type: source, conditions: [{type: count, count: 10}]}\n"
			  "  rx: {type: sink, conditions: [{type: periodic, recess_period: 1h}]}\n"
			  "flows: [{from: tx, to: rx, capacity: 16}]\n"));
	rig_start(rig);
	RIG_AWAIT(rig_row(rig, 0)->sent >= 10);
	fragi_run_halt(rig->run);
	cr_assert(rig_wait(rig, rig_is_done, RIG_LIMIT_NS));
	cr_expect_leq(notes[0]->count, 1);
	cr_expect_eq(rig_dropped(rig_row(rig, 0), FRAGI_DROP_STOPPED), 10 - notes[0]->count);
	cr_expect(rig_balances(rig));
	cr_expect_eq(notes[0]->stopped, 1);
}

RIG_TEST(end, a_failure_in_compute_stops_the_application_with_a_sentence)
{
	rig_run(rig, &rig_plugin,
		rig_graph(s, "operators:\n"
			     "  tx: {type: source, parameters: {fail_at: 16}}\n"
			     "  rx: {type: sink}\n"
			     "flows: [tx -> rx]\n"));
	cr_expect_eq(rig->failed, 1);
	cr_expect_str_eq(rig->sentence,
			 "app.tx: compute returned -5 (Input/output error) in tick 17");
	cr_expect_eq(notes[0]->stopped, 1, "stop is called on failure too");
	cr_expect_eq(notes[SLOTS - 1]->stopped, 1);
	cr_expect_eq(fragi_run_ledger(rig->run)->ops[0].state, FRAGI_OP_FAILED);
	cr_expect(rig_balances(rig));
	rig_end(rig);
	rig_run(rig, &rig_plugin,
		rig_graph(s, "operators:\n"
			     "  tx: {type: source}\n"
			     "  m: {type: middle, parameters: {fail_at: 3}}\n"
			     "  rx: {type: sink}\n"
			     "flows: [tx -> m, m -> rx]\n"));
	cr_expect_str_eq(rig->sentence, "app.m: number 3 is bad; send others");
}

static int leaver_compute(void *state, struct frag_tick *tick)
{
	(void)state, (void)tick;
	pthread_exit(NULL);
}

TEST_OP(leaver, FRAG_PORTS(source_ports));
TEST_PLUGIN(leaver, &leaver_type, &sink_type);

static bool has_failed(struct rig *rig)
{
	return rig->failed > 0;
}

Test(end, an_operator_that_ends_its_thread_has_failed)
{
	/* What hangs is never freed; LeakSanitizer finds it here. */
	static struct fragi_run *left[8];
	size_t left_count = 0;
	struct rig rig;

	FOR_EACH_SCHEDULER(s)
	{
		rig_prepare_good(&rig, &leaver_plugin,
				 rig_graph(s, "operators:\n"
					      "  rx: {type: sink}\n"
					      "  tx: {type: leaver}\n"
					      "flows: [tx -> rx]\n"));
		rig_start(&rig);
		cr_assert(rig_wait(&rig, has_failed, RIG_LIMIT_NS));
		cr_expect_eq(rig.failed, 1);
		cr_expect_str_eq(
			rig.sentence,
			"app.tx: compute has ended its thread (pthread_exit), which belongs to frag; return instead");
		for (uint32_t i = 0; i < 2; i++)
			cr_expect_eq(fragi_run_ledger(rig.run)->ops[i].state == FRAGI_OP_FAILED,
				     strcmp(rig.run->fragments[0].fragment->ops[i]->name, "tx") ==
					     0);
		cr_expect(atomic_load(&rig.run->hung), "nothing may be freed under its operators");
		cr_assert(left_count < FRAG_COUNT_OF(left));
		left[left_count++] = rig.run;
		left_own.descriptors += 8;
		left_own.shared_maps += 2;
		rig_end(&rig);
	}
}

RIG_TEST(end, a_failure_in_start_stops_those_that_were_started)
{
	rig_run(rig, &rig_plugin,
		rig_graph(s, "operators:\n"
			     "  tx: {type: source}\n"
			     "  m: {type: middle, parameters: {start_fails: 1, slot: 1}}\n"
			     "  rx: {type: sink}\n"
			     "flows: [tx -> m, m -> rx]\n"));
	cr_expect_str_eq(rig->sentence, "app.m: there is no device; plug one in");
	cr_expect_eq(notes[SLOTS - 1]->stopped, 1);
	cr_expect_eq(notes[SLOTS - 1]->ticks, 0);
	cr_expect(notes[0] == NULL || notes[0]->stopped == notes[0]->started);
}

/* Its file is incomplete, and says so or not; or it has failed before, in compute. */
struct recorder {
	int64_t words, stop_returns, fail_at;
	int64_t ticks;
};
static const struct frag_param recorder_params[] = {
	FRAG_PARAM_I64(struct recorder, words, 1),
	FRAG_PARAM_I64(struct recorder, stop_returns, -EIO),
	FRAG_PARAM_I64(struct recorder, fail_at, 0),
};

static int recorder_compute(void *state, struct frag_tick *tick)
{
	struct recorder *s = state;
	int64_t x;
	int r = frag_tick_receive_i64(tick, 0, &x);

	if (r == 0 && ++s->ticks == s->fail_at)
		return frag_op_fail(frag_tick_op(tick), -EPIPE, "the writer has ended");
	return r;
}

static int recorder_stop(void *state, struct frag_op *op)
{
	const struct recorder *s = state;

	if (s->words)
		frag_op_fail(op, (int)s->stop_returns, "the disk is full; make room");
	return (int)s->stop_returns;
}

TEST_OP(recorder, FRAG_PORTS(sink_ports), FRAG_PARAMS(recorder_params), .stop = recorder_stop,
	.state_size = sizeof(struct recorder));
TEST_PLUGIN(recorder, &source_type, &sink_type, &recorder_type);

/* Whether it ends by itself or is stopped; the stop of the others is called all the same. */
Test(end, a_failure_in_stop_fails_the_application)
{
	static const struct {
		const char *source, *recorder, *sentence;
	} cases[] = {
		{"count: 5", "words: 1", "app.rec: the disk is full; make room"},
		{"count: 5", "words: 0", "app.rec: stop returned -5 (Input/output error)"},
		{"count: 5", "words: 0, stop_returns: 1",
		 "app.rec: stop returned 1; return 0 or a negative errno"},
		{"stop_app_at: 20", "words: 1", "app.rec: the disk is full; make room"},
		{"count: 0", "words: 1, fail_at: 2", "app.rec: the writer has ended"},
		{"count: 5", "words: 0, stop_returns: 0", ""},
	};
	char ops[300];
	struct rig rig;

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++)
		FOR_EACH_SCHEDULER(s)
		{
			const bool fails = cases[i].sentence[0] != '\0';

			snprintf(ops, sizeof(ops),
				 "operators:\n"
				 "  tx: {type: source, parameters: {%s}}\n"
				 "  rx: {type: sink}\n"
				 "  rec: {type: recorder, parameters: {%s}}\n"
				 "flows: [{from: tx, to: [rx, rec]}]\n",
				 cases[i].source, cases[i].recorder);
			rig_run(&rig, &recorder_plugin, rig_graph(s, ops));
			cr_expect_eq(rig.failed, fails, "%zu", i);
			cr_expect_str_eq(rig.sentence, cases[i].sentence, "%zu", i);
			if (fails)
				cr_expect_eq(rig.failure, FRAGI_FAILURE_OPERATOR_FAILED, "%zu", i);
			cr_expect_eq(notes[0]->stopped, notes[0]->started, "%zu", i);
			cr_expect_eq(notes[SLOTS - 1]->stopped, 1, "%zu", i);
			cr_expect_eq(fragi_run_ledger(rig.run)->ops[2].state,
				     fails ? FRAGI_OP_FAILED : FRAGI_OP_DONE, "%zu", i);
			cr_expect(rig_balances(&rig));
			rig_end(&rig);
		}
}

RIG_ONE_TEST(end, a_failure_in_one_fragment_ends_the_others)
{
	rig_run(rig, &rig_plugin,
		"frag: 1\napplication: app\nfragments:\n"
		"  one: {scheduler: {type: greedy}, operators: {tx: {type: source, parameters: {fail_at: 100}},\n"
		"        rx: {type: sink}}, flows: [tx -> rx]}\n"
		"  two: {operators: {tx: {type: source}, rx: {type: sink, parameters: {slot: 1}}},\n"
		"        flows: [tx -> rx]}\n");
	cr_expect_eq(rig->failed, 1);
	cr_expect_eq(rig->done, 1);
	cr_expect(notes[1] == NULL || notes[1]->stopped == notes[1]->started);
	cr_expect(rig_balances(rig));
}

Test(end, the_watchdog_names_what_hangs)
{
	struct rig rig;

	/* What hangs keeps its notes until the end of the process. */
	for (size_t s = 0; s < FRAG_COUNT_OF(rig_schedulers); s++) {
		rig_prepare_good(
			&rig, &rig_plugin,
			rig_graph(s,
				  "operators:\n"
				  "  tx: {type: source, parameters: {hang_at: 2}, watchdog: 50ms}\n"
				  "  rx: {type: sink}\n"
				  "flows: [tx -> rx]\n"));
		rig_start(&rig);
		cr_assert(rig_wait(&rig, rig_has_failed, RIG_LIMIT_NS));
		cr_expect_not_null(strstr(rig.sentence, "app.tx: compute has run for "), "%s",
				   rig.sentence);
		cr_expect_not_null(
			strstr(rig.sentence, "longer than its watchdog of 50.0 ms (tick 3); "),
			"%s", rig.sentence);
		fragi_run_destroy(rig.run); /* does not wait */
	}
	_exit(0);
}

Test(end, a_stop_limits_every_callback)
{
	struct rig rig;

	for (size_t s = 0; s < FRAG_COUNT_OF(rig_schedulers); s++) {
		int64_t stop_ns;

		rig_prepare_good(&rig, &rig_plugin,
				 rig_graph(s, "operators:\n"
					      "  tx: {type: source, parameters: {hang_at: 2}}\n"
					      "  rx: {type: sink}\n"
					      "flows: [tx -> rx]\n"));
		rig_start(&rig);
		RIG_AWAIT(atomic_load(&fragi_run_ledger(rig.run)->ops[0].ticks) == 3);
		stop_ns = fragi_now_ns();
		fragi_run_limit_calls(rig.run, 200000000);
		fragi_run_drain(rig.run);
		cr_assert(rig_wait(&rig, rig_has_failed, RIG_LIMIT_NS));
		cr_expect_geq(fragi_now_ns() - stop_ns, 200000000);
		cr_expect_not_null(strstr(rig.sentence, "app.tx: compute has run for "), "%s",
				   rig.sentence);
		cr_expect_not_null(
			strstr(rig.sentence,
			       "longer than the 200 ms that a stop leaves to it (tick 3)"),
			"%s", rig.sentence);
		fragi_run_destroy(rig.run); /* does not wait */
	}
	_exit(0);
}

/* What arrives is taken quickly: each call is short, although there is always one. */
RIG_ONE_TEST(end, a_limit_of_callbacks_is_no_limit_of_the_drain)
{
	rig_prepare_good(rig, &rig_plugin,
			 "frag: 1\napplication: app\noperators:\n"
			 "  tx: {type: source, parameters: {work_us: 10000, count: 130}}\n"
			 "  rx: {type: sink}\nflows: [tx -> rx]\n");
	rig_start(rig);
	fragi_run_limit_calls(rig->run, 1000000000);
	cr_assert(rig_wait(rig, rig_is_done, RIG_LIMIT_NS));
	cr_expect_eq(rig->failed, 0, "%s", rig->sentence);
}

static bool never(struct rig *rig)
{
	return rig->done > 0;
}

RIG_TEST(end, rest_ends_only_what_may_end_so)
{
	char text[512];

	/* Two inputs, one of which never gets anything more. */
	snprintf(text, sizeof(text),
		 "frag: 1\napplication: app\nscheduler: {type: %s, stop_on_deadlock: false}\n"
		 "operators:\n  a: {type: middle, parameters: {slot: 1}}\n"
		 "  b: {type: middle}\nflows: [a -> b, b -> a]\n",
		 s == 0 ? "greedy" : "event_based");
	rig_prepare_good(rig, &rig_plugin, text);
	rig_start(rig);
	cr_expect_not(rig_wait(rig, never, 200000000));
	fragi_run_drain(rig->run);
	cr_assert(rig_wait(rig, rig_is_done, RIG_LIMIT_NS));
}

/*
 * The shortest of some runs, because the machine may be busy: whether it took at least that long,
 * and not so much longer that the time itself must be another.
 */
#define RUNS_MAX 5
static bool lasts(const struct rig *rig, int64_t ns, int run)
{
	int64_t took = rig->done_ns - rig->start_ns;

	cr_expect_geq(took, ns);
	cr_assert(took < ns * 8 / 5 || run + 1 < RUNS_MAX, "%lld ns instead of %lld",
		  (long long)took, (long long)ns);
	return took < ns * 8 / 5;
}

#define RESTS(ms)                                                                                  \
	"scheduler: {type: event_based, stop_on_deadlock_timeout_ms: " #ms "}, "                   \
	"operators: {a: {type: middle, parameters: {slot: 1}}, b: {type: middle}}, "               \
	"flows: [a -> b, b -> a]"

/* Of several fragments as long as the one says that has the most patience. */
Test(end, rest_may_have_to_last)
{
	static const char *const graphs[] = {
		"fragments:\n  f: {" RESTS(300) "}\n",
		"fragments:\n  f: {" RESTS(300) "}\n  g: {" RESTS(20) "}\n",
		"fragments:\n  f: {" RESTS(20) "}\n  g: {" RESTS(300) "}\n",
	};
	struct rig rig;

	for (size_t i = 0; i < FRAG_COUNT_OF(graphs); i++) {
		char text[1024];
		bool over = false;

		snprintf(text, sizeof(text), "frag: 1\napplication: app\n%s", graphs[i]);
		for (int run = 0; !over; run++) {
			rig_run(&rig, &rig_plugin, text);
			over = lasts(&rig, 300000000, run);
			rig_end(&rig);
		}
	}
}

Test(end, max_duration_ends_in_order)
{
	struct rig rig;

	for (int s = 0, run = 0; s < 2; run++) {
		char text[512];

		snprintf(
			text, sizeof(text),
			"frag: 1\napplication: app\nscheduler: {type: %s, max_duration_ms: 200}\n"
			"operators:\n  tx: {type: source, conditions: [{type: periodic, recess_period: 1ms}]}\n"
			"  rx: {type: sink}\nflows: [tx -> rx]\n",
			s == 0 ? "greedy" : "event_based");
		rig_run(&rig, &rig_plugin, text);
		cr_expect_eq(rig.failed, 0);
		cr_expect_eq(rig_row(&rig, 0)->sent, rig_row(&rig, 0)->delivered);
		if (lasts(&rig, 200000000, run)) {
			s++;
			run = -1;
		}
		rig_end(&rig);
		notes_clear();
	}
}

/* The sources are in the other fragment, whose time is not over. */
Test(end, max_duration_ends_a_fragment_without_sources)
{
	struct rig rig;

	FOR_EACH_SCHEDULER(s)
	{
		char text[600];

		snprintf(
			text, sizeof(text),
			"frag: 1\napplication: app\nfragments:\n"
			"  one: {operators: {tx: {type: source, conditions: [{type: periodic, recess_period: 1ms}]}}}\n"
			"  two: {scheduler: {type: %s, max_duration_ms: 200},\n"
			"        operators: {mid: {type: middle}, rx: {type: sink}}, flows: [mid -> rx]}\n"
			"flows: [one.tx -> two.mid]\n",
			s == 0 ? "greedy" : "event_based");
		rig_run(&rig, &rig_plugin, text);
		cr_expect_eq(rig.failed, 0);
		cr_expect_geq(rig.done_ns - rig.start_ns, 200000000);
		cr_expect(rig_balances(&rig));
		rig_end(&rig);
		notes_clear();
	}
}

RIG_ONE_TEST(end, nothing_to_run_is_done)
{
	rig_run(rig, &rig_plugin,
		"frag: 1\napplication: app\noperators:\n"
		"  tx: {type: source, conditions: [{type: count, count: 0}]}\n");
	cr_expect_eq(notes[SLOTS - 1]->ticks, 0);
	cr_expect_eq(notes[SLOTS - 1]->stopped, 1);
}

RIG_ONE_TEST(end, destroy_in_any_phase)
{
	static const char yaml[] = "frag: 1\napplication: app\noperators:\n  tx: {type: source}\n"
				   "  rx: {type: sink}\nflows: [tx -> rx]\n";

	rig_prepare_good(rig, &rig_plugin, yaml);
	rig_end(rig);
	rig_prepare_good(rig, &rig_plugin, yaml);
	fragi_run_drain(rig->run);
	cr_expect(rig_wait(rig, rig_is_done, RIG_LIMIT_NS));
	rig_end(rig);
	rig_prepare_good(rig, &rig_plugin, yaml);
	rig_start(rig);
	rig_end(rig); /* in full flight */
	cr_expect_lt(rig_prepare(rig, &rig_plugin,
				 "frag: 1\napplication: app\noperators:\n  tx: {type: nix}\n"),
		     0);
}

/*
 * `idle` sends nothing and `tx` has filled the queue, so `all` waits for a message of `idle`. That
 * the end of `idle` would let it go on does not matter: no tick begins once the run is halted.
 */
Test(end, no_operator_is_ticked_because_another_fragment_was_halted_first)
{
	struct rig rig;

	for (int i = 0; i < 100; i++, notes_clear()) {
		rig_run(&rig, &rig_plugin,
			"frag: 1\napplication: app\nfragments:\n"
			"  one:\n    operators:\n"
			"      idle: {type: source, conditions: [{type: boolean, enable_tick: false}]}\n"
			"  two: {operators: {tx: {type: source}}}\n"
			"  three: {operators: {all: {type: gather}}}\n"
			"flows: [one.idle -> three.all, two.tx -> three.all]\n");
		cr_assert_eq(noted(0), 0, "run %d: %u", i, noted(0));
		cr_expect(rig_balances(&rig));
		rig_end(&rig);
	}
}
