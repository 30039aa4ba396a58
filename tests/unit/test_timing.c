// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "graph_texts.h"
#include "stamp_ops.h"

#include <frag/harness.h>

/*
 * Timing of inputs: which messages a tick gets, what becomes of the others, and how each is
 * counted. The sources stamp what they send with times that are far from each other, so that no
 * test depends on how fast it runs.
 */
#define HOUR 3600000000000ll
#define TAI_AHEAD_S 37

/* TAI is ahead here as in the world, which most kernels do not know. */
int clock_gettime(clockid_t id, struct timespec *time)
{
	const int r = (int)syscall(SYS_clock_gettime, id == CLOCK_TAI ? CLOCK_REALTIME : id, time);

	time->tv_sec += id == CLOCK_TAI ? TAI_AHEAD_S : 0;
	return r;
}

/* The same with timing of its own. */
static int timed_setup(void *state, struct frag_op *op)
{
	static const char *const inputs[] = {"a", "b"};
	int r = frag_set_input_timing(op, "b", FRAG_TAKE_EVERY, HOUR, FRAG_MISSING_DEFAULT, "7");

	return r < 0 ? r : frag_align_inputs(op, inputs, 2, HOUR, 0);
}

TEST_OP_BY(timed, pair_compute, FRAG_PORTS(pair_ports), FRAG_PARAMS(pair_params),
	   .setup = timed_setup, .state_size = sizeof(struct pair));

/* An input whose queue takes no newer message in place of an older one. */
static const struct frag_port keeper_ports[] = {
	{.name = "a", .dir = FRAG_IN}, {.name = "b", .dir = FRAG_IN, .policy = FRAG_POLICY_REJECT}};
TEST_OP_BY(keeper, pair_compute, FRAG_PORTS(keeper_ports), FRAG_PARAMS(pair_params),
	   .state_size = sizeof(struct pair));

/* Passes on the message that it gets. */
static const struct frag_port passer_ports[] = {{.name = "in", .dir = FRAG_IN},
						{.name = "out", .dir = FRAG_OUT}};

static int passer_compute(void *state, struct frag_tick *tick)
{
	const struct frag_message *message;
	int r = frag_tick_receive(tick, 0, &message);

	return r < 0 ? r : frag_tick_emit(tick, 1, frag_message_ref(message));
}

TEST_OP(passer, FRAG_PORTS(passer_ports));

TEST_PLUGIN(timing, &stamper_type, &pair_type, &timed_type, &keeper_type, &many_type, &source_type,
	    &middle_type, &passer_type, &sink_type);

static void expect_notes(const int64_t *values, uint32_t count)
{
	char got[1024] = "";
	size_t used = 0;

	for (uint32_t i = 0; i < noted(0) && used + 30 < sizeof(got); i++)
		used += (size_t)sprintf(got + used, " %lld", (long long)note_of(0)->values[i]);
	cr_expect_eq(noted(0), count, "got %u:%s", noted(0), got);
	for (uint32_t i = 0; i < count && i < noted(0); i++)
		cr_expect_eq(note_of(0)->values[i], values[i], "%u: got%s", i, got);
}
#define NOTES(...)                                                                                 \
	expect_notes((const int64_t[]){__VA_ARGS__},                                               \
		     sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static struct rig rig;

/* Runs operators that `yaml` declares under greedy; slot 0 then has what was noted. */
static void run(const char *yaml)
{
	static char text[4096];

	snprintf(text, sizeof(text), "frag: 1\napplication: app\nscheduler: {type: greedy}\n%s",
		 yaml);
	notes_clear();
	rig_run(&rig, &timing_plugin, text);
	cr_expect_eq(rig.failed, 0, "%s", rig.sentence);
	cr_expect(rig_balances(&rig));
}

/* Each is counted once in the row of that flow: delivered, dropped by that reason, absent. */
#define EXPECT(flow, member, n)                                                                    \
	cr_expect_eq(atomic_load(&rig_row(&rig, flow)->member), n, "flow %d: %s is %llu", flow,    \
		     #member, (unsigned long long)atomic_load(&rig_row(&rig, flow)->member))
#define EXPECT_DROPPED(flow, reason, n)                                                            \
	cr_expect_eq(rig_dropped(rig_row(&rig, flow), FRAGI_DROP_##reason), n,                     \
		     "flow %d: %s is %llu", flow, #reason,                                         \
		     (unsigned long long)rig_dropped(rig_row(&rig, flow), FRAGI_DROP_##reason))

Test(timing, a_message_that_is_too_old_is_dropped_as_stale)
{
	run("operators:\n"
	    "  a: {type: stamper, parameters: {values: [1, 2, 3, 4], ages: [0, 7200, 7200, 0]}}\n"
	    "  p: {type: pair, ports: {a: {age: 1h}}}\n"
	    "flows: [{from: a, to: p.a, capacity: 4}]\n");
	NOTES(1999, 4999);
	EXPECT(0, delivered, 2);
	EXPECT_DROPPED(0, STALE, 2);
	EXPECT(0, absent_stale, 0); /* no tick went without */
	rig_end(&rig);
}

Test(timing, ages_are_those_on_the_clock_of_the_fragment)
{
	static const int stamps[] = {FRAG_CLOCK_UNIX, FRAG_CLOCK_TAI, FRAG_CLOCK_MONOTONIC};

	for (size_t i = 0; i < FRAG_COUNT_OF(stamps); i++) {
		char text[400];

		snprintf(text, sizeof(text),
			 "clock: {type: realtime, use_time_since_epoch: true}\n"
			 "operators:\n"
			 "  a: {type: stamper, parameters: {values: [1, 2, 3], ages: [0, 7200, 0],"
			 " clock: %d}}\n"
			 "  p: {type: pair, ports: {a: {age: 1h}}}\n"
			 "flows: [{from: a, to: p.a, capacity: 4}]\n",
			 stamps[i]);
		run(text);
		NOTES(1999, 3999);
		EXPECT_DROPPED(0, STALE, 1);
		rig_end(&rig);
	}
}

Test(timing, times_of_all_clocks_of_this_machine_are_compared)
{
	static const int clocks[] = {FRAG_CLOCK_UNIX, FRAG_CLOCK_TAI, FRAG_CLOCK_MONOTONIC};
	char text[400];

	for (size_t i = 0; i < 3; i++) {
		snprintf(
			text, sizeof(text),
			"operators:\n"
			"  a: {type: stamper, parameters: {values: [1, 2], ages: [3585, 3615], clock: %d}}\n"
			"  p: {type: pair, ports: {a: {age: 1h}}}\n"
			"flows: [{from: a, to: p.a}]\n",
			clocks[i]);
		run(text);
		NOTES(1999);
		EXPECT_DROPPED(0, STALE, 1);
		rig_end(&rig);
	}
}

Test(timing, a_message_without_acquisition_time_is_as_old_as_its_emit)
{
	run("operators:\n"
	    "  a: {type: stamper, parameters: {values: [1, 2, 3]}}\n"
	    "  p: {type: pair, ports: {a: {age: 1h}}}\n"
	    "flows: [a -> p.a]\n");
	NOTES(1999, 2999, 3999);
	rig_end(&rig);
}

Test(timing, other_clocks_cannot_be_compared_with_the_time_of_the_tick)
{
	run("operators:\n"
	    "  a: {type: stamper, parameters: {values: [1, 2], ages: [0, 0], clock: 300}}\n"
	    "  b: {type: stamper, parameters: {values: [5, 6]}}\n"
	    "  p: {type: pair, ports: {a: {age: 1h, missing: default}}}\n"
	    "flows: [a -> p.a, b -> p.b]\n");
	NOTES(999005, 999006);
	EXPECT_DROPPED(0, CLOCKS, 2);
	EXPECT(0, absent_clocks, 1);
	EXPECT(0, absent_ended, 1); /* a has ended then */
	rig_end(&rig);
}

Test(timing, times_of_another_machine_cannot_be_compared)
{
	/* nor do they become comparable when the message is passed on here */
	run("operators:\n"
	    "  a: {type: stamper, parameters: {values: [1, 2], ages: [0, 0], foreign: true}}\n"
	    "  m: {type: middle}\n"
	    "  f: {type: passer}\n"
	    "  p: {type: pair, ports: {a: {age: 1h, missing: default}, b: {age: 1h, missing: default}}}\n"
	    "flows: [{from: a, to: [f, m]}, f -> p.a, m -> p.b]\n");
	NOTES(999001, 999002); /* m makes new messages, without times */
	EXPECT_DROPPED(2, CLOCKS, 2);
	rig_end(&rig);
}

Test(timing, the_latest_is_taken_and_those_before_it_are_superseded)
{
	/* b sends five in its one tick, which all wait when the first of a comes */
	run("operators:\n"
	    "  b: {type: source, parameters: {count: 5, burst: 5}}\n"
	    "  a: {type: stamper, parameters: {values: [1, 2]}}\n"
	    "  p: {type: pair, ports: {b: {take: latest_within, age: 1h, missing: reuse_last}}}\n"
	    "flows: [a -> p.a, {from: b, to: p.b, capacity: 5, policy: block}]\n");
	NOTES(1004, 2004);
	EXPECT(1, delivered, 1);
	EXPECT(1, reused, 1);
	EXPECT_DROPPED(1, SUPERSEDED, 4);
	EXPECT(1, absent_ended, 1);
	rig_end(&rig);
}

Test(timing, flows_to_an_input_that_takes_the_latest_keep_the_latest)
{
	run("operators:\n"
	    "  b: {type: source, parameters: {count: 5, burst: 5}}\n"
	    "  a: {type: stamper, parameters: {values: [1]}}\n"
	    "  p: {type: pair, ports: {b: {take: latest_within, age: 1h}}}\n"
	    "flows: [a -> p.a, b -> p.b]\n");
	NOTES(1004);
	EXPECT_DROPPED(1, QUEUE_FULL, 4);
	rig_end(&rig);
	/* but for what the operator says itself */
	run("operators:\n"
	    "  b: {type: source, parameters: {count: 5, burst: 5}}\n"
	    "  a: {type: stamper, parameters: {values: [1]}}\n"
	    "  p: {type: keeper, ports: {b: {take: latest_within, age: 1h}}}\n"
	    "flows: [a -> p.a, b -> p.b]\n");
	NOTES(1000);
	rig_end(&rig);
}

Test(timing, what_is_missing_waits_is_skipped_reused_or_a_default)
{
	static const struct {
		const char *missing;
		int64_t notes[3];
		uint32_t count;
	} cases[] = {
		/* b has 5, then one that is stale, then 7 */
		{"wait", {1005, 2007}, 2},
		{"skip", {1005, 3007}, 2},
		{"reuse_last", {1005, 2005, 3007}, 3},
		{"default", {1005, 2999, 3007}, 3},
		{"default, default: 42", {1005, 2042, 3007}, 3},
	};
	char text[600];

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		/* b goes through m: it comes after a, and p.b has nothing else when a is there */
		snprintf(
			text, sizeof(text),
			"operators:\n"
			"  b: {type: stamper, parameters: {values: [5, 6, 7], ages: [0, 7200, 0]}}\n"
			"  a: {type: stamper, parameters: {values: [1, 2, 3]}}\n"
			"  p: {type: pair, ports: {b: {age: 1h, missing: %s}}}\n"
			"flows: [a -> p.a, b -> p.b]\n",
			cases[i].missing);
		run(text);
		expect_notes(cases[i].notes, cases[i].count);
		EXPECT_DROPPED(1, STALE, 1);
		EXPECT(1, absent_stale, i == 0 ? 0u : 1u);
		EXPECT(1, reused, i == 2 ? 1u : 0u);
		EXPECT_DROPPED(0, SKIPPED, i == 1 ? 1u : 0u);
		rig_end(&rig);
	}
}

/* The message that is stale accounts for one tick, and not for those after it. */
Test(timing, each_tick_has_its_own_reason_why_a_message_is_absent)
{
	run("operators:\n"
	    "  b: {type: source, parameters: {count: 1}}\n"
	    "  a: {type: stamper, parameters: {values: [5, 6], ages: [7200, 7200]},\n"
	    "      conditions: [{type: periodic, recess_period: 1h}]}\n"
	    "  p: {type: pair, parameters: {ticks: 3}, conditions: [{type: periodic, recess_period: 1ms}],\n"
	    "      ports: {a: {age: 1h, missing: default}, b: {missing: default}}}\n"
	    "flows: [a -> p.a, b -> p.b]\n");
	NOTES(999000, 999999, 999999);
	EXPECT_DROPPED(0, STALE, 1);
	EXPECT(0, absent_stale, 1);
	EXPECT(0, absent_late, 2);
	EXPECT(1, absent_ended, 2);
	rig_end(&rig);
}

Test(timing, without_a_clock_a_tick_needs_a_new_message)
{
	/* else the operator would run for ever, on messages of the past and on nothing */
	run("operators:\n"
	    "  b: {type: stamper, parameters: {values: [5, 6]}}\n"
	    "  a: {type: stamper, parameters: {values: [1, 2, 3]}}\n"
	    "  p: {type: pair, ports: {a: {missing: default}, b: {missing: reuse_last}}}\n"
	    "flows: [a -> p.a, b -> p.b]\n");
	NOTES(1005, 2006, 3006);
	EXPECT(1, absent_ended, 1);
	rig_end(&rig);
	run("operators:\n"
	    "  b: {type: stamper, parameters: {values: [5]}}\n"
	    "  a: {type: stamper, parameters: {values: [1, 2, 3]}, conditions: [{type: periodic, recess_period: 2ms}]}\n"
	    "  p: {type: pair, ports: {a: {missing: default}, b: {missing: reuse_last}}}\n"
	    "flows: [a -> p.a, b -> p.b]\n");
	NOTES(1005, 2005, 3005);
	rig_end(&rig);
}

Test(timing, on_a_clock_a_tick_comes_without_messages)
{
	run("operators:\n"
	    "  b: {type: source, parameters: {count: 1}}\n"
	    "  a: {type: source, conditions: [{type: periodic, recess_period: 1s}]}\n"
	    "  p: {type: pair, parameters: {ticks: 4}, conditions: [{type: periodic, recess_period: 1ms}],\n"
	    "      ports: {a: {take: latest_within, age: 1h, missing: default}, b: {take: latest_within, age: 1h, missing: reuse_last}}}\n"
	    "flows: [a -> p.a, b -> p.b]\n");
	NOTES(0, 999000, 999000, 999000);
	EXPECT(0, absent_late, 3);
	EXPECT(1, absent_ended, 3);
	EXPECT(1, reused, 3);
	rig_end(&rig);
}

Test(timing, on_a_clock_a_tick_that_is_skipped_takes_its_time)
{
	int64_t begin_ns = fragi_now_ns();

	/* b never comes: each of the three ticks that are counted is skipped */
	run("operators:\n"
	    "  b: {type: source, conditions: [{type: boolean, enable_tick: false}]}\n"
	    "  a: {type: stamper, parameters: {values: [1, 2, 3]}}\n"
	    "  p: {type: pair, conditions: [{type: periodic, recess_period: 5ms}, {type: count, count: 3}], ports: {b: {missing: skip}}}\n"
	    "flows: [a -> p.a, b -> p.b]\n");
	cr_expect_eq(noted(0), 0);
	cr_expect_geq(fragi_now_ns() - begin_ns, 10000000);
	EXPECT(1, absent_late, 3);
	EXPECT_DROPPED(0, SKIPPED, 3);
	rig_end(&rig);
}

Test(timing, the_operator_ends_with_what_it_waits_for)
{
	run("operators:\n"
	    "  b: {type: stamper, parameters: {values: [5]}}\n"
	    "  a: {type: stamper, parameters: {values: [1, 2, 3, 4, 5]}}\n"
	    "  p: {type: pair, ports: {b: {age: 1h, missing: wait}}}\n"
	    "flows: [{from: a, to: p.a, capacity: 8}, b -> p.b]\n");
	NOTES(1005);
	EXPECT(0, delivered, 1);
	EXPECT_DROPPED(0, RECEIVER_DONE, 1);
	rig_end(&rig);
}

/* Ticks of both at times that never coincide; the receiver goes on when its sender has ended. */
Test(timing, an_async_buffer_is_read_again_and_does_not_end_with_its_sender)
{
	FOR_EACH_SCHEDULER(s)
	{
		rig_run(&rig, &timing_plugin,
			rig_graph(
				s,
				"clock: {type: manual}\n"
				"operators:\n"
				"  tx: {type: source, conditions: [{type: periodic, recess_period: 10ms}, {type: count, count: 3}]}\n"
				"  rx: {type: sink, conditions: [{type: periodic, recess_period: 3ms}, {type: count, count: 12}]}\n"
				"  none: {type: source, conditions: [{type: count, count: 0}]}\n"
				"  waits: {type: sink, parameters: {slot: 1}}\n"
				"flows: [{from: tx, to: rx, policy: async_buffer}, {from: none, to: waits, policy: async_buffer}]\n"));
		cr_expect_eq(rig.failed, 0, "%s", rig.sentence);
		NOTES(0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 2);
		EXPECT(0, delivered, 3);
		EXPECT(0, reused, 9);
		EXPECT(0, absent_late, 0);
		cr_expect_eq(noted(1), 0, "it waits for the first message, and ends without any");
		cr_expect(rig_balances(&rig));
		rig_end(&rig);
	}
}

Test(timing, inputs_are_aligned_by_acquisition_time)
{
	/* 102 fits to 100; 200 has no partner, nor has 255; 300 fits to 310 */
	run("operators:\n"
	    "  a: {type: stamper, parameters: {values: [1, 2, 3], at: [100, 200, 300], clock: 256}}\n"
	    "  b: {type: stamper, parameters: {values: [5, 6, 7], at: [102, 255, 310], clock: 256}}\n"
	    "  p: {type: pair, align: {window: 10ns}}\n"
	    "flows: [a -> p.a, b -> p.b]\n");
	NOTES(1005, 3007);
	EXPECT_DROPPED(0, LATE, 1);
	EXPECT_DROPPED(1, LATE, 1);
	rig_end(&rig);
}

Test(timing, the_window_is_that_of_the_whole_set_and_no_further)
{
	run("operators:\n"
	    "  a: {type: stamper, parameters: {values: [1, 2], at: [-9223372036854775807, 100], clock: 256}}\n"
	    "  b: {type: stamper, parameters: {values: [3, 4], at: [9, 110], clock: 256}}\n"
	    "  c: {type: stamper, parameters: {values: [5, 6], at: [9223372036854775807, 105], clock: 256}}\n"
	    "  m: {type: many, align: {window: 10ns}}\n"
	    "flows: [{from: a, to: m.in, capacity: 2}, {from: b, to: m.in, capacity: 2}, {from: c, to: m.in, capacity: 2}]\n");
	/*
	 * c's first is in the far future: none of the others can be with it. They end, and a
	 * multi-receiver goes on without flows that have ended.
	 */
	NOTES(5, 6);
	EXPECT_DROPPED(0, LATE, 2);
	rig_end(&rig);
	run("operators:\n"
	    "  a: {type: stamper, parameters: {values: [1, 2], at: [-9223372036854775807, 100], clock: 256}}\n"
	    "  b: {type: stamper, parameters: {values: [3, 4], at: [9, 110], clock: 256}}\n"
	    "  c: {type: stamper, parameters: {values: [5, 6], at: [89, 105], clock: 256}}\n"
	    "  m: {type: many, align: {window: 10ns}}\n"
	    "flows: [{from: a, to: m.in, capacity: 2}, {from: b, to: m.in, capacity: 2}, {from: c, to: m.in, capacity: 2}]\n");
	NOTES(246);
	rig_end(&rig);
}

Test(timing, messages_of_two_clocks_are_in_no_set)
{
	run("operators:\n"
	    "  a: {type: stamper, parameters: {values: [1, 2], at: [100, 200], clock: 256}}\n"
	    "  b: {type: stamper, parameters: {values: [5, 6], at: [100, 200], clock: 257}}\n"
	    "  p: {type: pair, align: {window: 10ns}, ports: {b: {missing: default}}}\n"
	    "flows: [a -> p.a, b -> p.b]\n");
	NOTES(1999, 2999);
	EXPECT_DROPPED(1, CLOCKS, 2);
	rig_end(&rig);
}

Test(timing, a_set_waits_for_its_timeout_and_no_longer)
{
	/* b sends nothing for an hour */
	run("operators:\n"
	    "  a: {type: stamper, parameters: {values: [1, 2], at: [100, 200], clock: 256}}\n"
	    "  b: {type: source, conditions: [{type: boolean, enable_tick: false}]}\n"
	    "  p: {type: pair, parameters: {ticks: 2}, align: {window: 10ns, timeout: 5ms}, ports: {b: {missing: default}}}\n"
	    "flows: [a -> p.a, b -> p.b]\n");
	NOTES(1999, 2999);
	EXPECT(1, absent_window, 2);
	cr_expect_geq(note_of(0)->times[0] - rig.start_ns, 5000000);
	rig_end(&rig);
}

Test(timing, a_set_without_a_timeout_waits_for_all)
{
	run("operators:\n"
	    "  a: {type: stamper, parameters: {values: [1, 2], at: [100, 200], clock: 256}}\n"
	    "  b: {type: stamper, parameters: {values: [5, 6], at: [100, 200], clock: 256},\n"
	    "      conditions: [{type: periodic, recess_period: 20ms}]}\n"
	    "  p: {type: pair, align: {window: 10ns}, ports: {b: {missing: default}}}\n"
	    "flows: [a -> p.a, b -> p.b]\n");
	NOTES(1005, 2006);
	EXPECT(1, absent_window, 0);
	rig_end(&rig);
}

static const struct frag_port set_ports[] = {{.name = "a", .dir = FRAG_IN, .type = "i64"},
					     {.name = "b", .dir = FRAG_IN, .type = "i64"},
					     {.name = "c", .dir = FRAG_IN, .type = "i64"}};

static int set_setup(void *state, struct frag_op *op)
{
	static const char *const inputs[] = {"a", "b", "c"};

	for (int i = 0; i < 3; i++)
		frag_set_input_timing(op, inputs[i], FRAG_TAKE_EVERY, 0, FRAG_MISSING_DEFAULT, "7");
	return frag_align_inputs(op, inputs, 3, HOUR, 50);
}

static int set_compute(void *state, struct frag_tick *tick)
{
	int64_t value;

	for (uint32_t i = 0; i < 3; i++)
		frag_tick_receive_i64(tick, i, &value);
	return 0;
}

TEST_OP(set, FRAG_PORTS(set_ports), .setup = set_setup);

static void give(struct frag_harness *h, const char *port)
{
	const int64_t value = 1;
	struct frag_message *message = frag_message_create();

	frag_message_set_value(message, &frag_type_i64, &value, sizeof(value), NULL);
	frag_message_set_acquisition(message, 100, 256);
	cr_expect_eq(frag_harness_give(h, port, message), 0);
}

/* Whichever input it comes to. */
Test(timing, a_set_waits_from_its_first_message_on)
{
	static const char *const orders[][2] = {{"a", "b"}, {"b", "a"}, {"c", "a"}, {"b", "c"}};

	for (size_t i = 0; i < FRAG_COUNT_OF(orders); i++) {
		struct frag_harness *h = frag_harness_create(&set_type, FRAG_NO_ARGS, NULL);

		cr_assert_not_null(h);
		for (int set = 0; set < 2; set++) { /* the second counts anew */
			give(h, orders[i][0]);
			cr_expect_eq(frag_harness_ready(h), 0);
			frag_clock_advance_by(frag_harness_clock(h), 30);
			give(h, orders[i][1]);
			cr_expect_eq(frag_harness_ready(h), 0);
			frag_clock_advance_by(frag_harness_clock(h), 19);
			cr_expect_eq(frag_harness_ready(h), 0, "order %zu, set %d", i, set);
			frag_clock_advance_by(frag_harness_clock(h), 1);
			cr_expect_eq(frag_harness_ready(h), 1, "order %zu, set %d", i, set);
			cr_expect_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
			frag_clock_advance_by(frag_harness_clock(h), 7);
		}
		frag_harness_destroy(h);
	}
}

static struct {
	int64_t window_ns, timeout_ns;
	size_t count;
} asked;

static int asking_setup(void *state, struct frag_op *op)
{
	static const char *const inputs[] = {"a", "b", "c"};

	return frag_align_inputs(op, inputs, asked.count, asked.window_ns, asked.timeout_ns);
}

TEST_OP_BY(asking, set_compute, FRAG_PORTS(set_ports), .setup = asking_setup);

Test(timing, an_operator_cannot_ask_for_what_makes_no_set)
{
	static const struct {
		typeof(asked) asked;
		const char *sentence; /* "": none */
	} rows[] = {
		{{1, 0, 3}, ""},
		{{0, 0, 3}, "give a window of more than 0 ns"},
		{{-1, 0, 3}, "give a window of more than 0 ns"},
		{{1, -1, 3}, "give a window of more than 0 ns"},
		{{1, 0, UINT16_MAX + 1},
		 "65536 inputs are named, and an operator aligns 65535 at most"},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		struct frag_err err = FRAG_ERR_INIT;
		struct frag_harness *h;

		asked = rows[i].asked;
		h = frag_harness_create(&asking_type, FRAG_NO_ARGS, &err);
		cr_expect_eq(h != NULL, rows[i].sentence[0] == '\0', "row %zu: %s", i, err.text);
		cr_expect_not_null(strstr(err.text, rows[i].sentence), "row %zu: %s", i, err.text);
		frag_harness_destroy(h);
	}
}

Test(timing, an_operator_may_declare_it_itself_and_the_graph_wins)
{
	run("operators:\n"
	    "  a: {type: stamper, parameters: {values: [1, 2], ages: [7200, 7200]}}\n"
	    "  b: {type: stamper, parameters: {values: [5, 6], ages: [7200, 7200]}}\n"
	    "  p: {type: timed}\n"
	    "flows: [a -> p.a, b -> p.b]\n");
	NOTES(1007, 2007);
	EXPECT_DROPPED(1, STALE, 2);
	rig_end(&rig);
	run("operators:\n"
	    "  a: {type: stamper, parameters: {values: [1, 2], ages: [7200, 7200]}}\n"
	    "  b: {type: stamper, parameters: {values: [5, 6], ages: [7200, 14400]}}\n"
	    "  p: {type: timed, ports: {b: {missing: default, default: 8}}}\n"
	    "flows: [a -> p.a, b -> p.b]\n");
	NOTES(1005, 2008); /* the graph gives b no age; the window is that of the operator */
	EXPECT_DROPPED(1, LATE, 1);
	rig_end(&rig);
}

Test(timing, threads_take_and_send_at_once)
{
	static const char *const policies[] = {"block", "pop", "latest"};
	char text[1024];

	for (size_t i = 0; i < 3; i++) {
		notes_clear();
		snprintf(
			text, sizeof(text),
			"frag: 1\napplication: app\nscheduler: {worker_thread_number: 2}\noperators:\n"
			"  a: {type: source, parameters: {count: 20000}}\n"
			"  b: {type: source, parameters: {count: 20000}}\n"
			"  p: {type: pair, ports: {b: {take: latest_within, age: 1h, missing: reuse_last}}}\n"
			"flows: [{from: a, to: p.a, capacity: 3}, {from: b, to: p.b, policy: %s}]\n",
			policies[i]);
		rig_run(&rig, &timing_plugin, text);
		cr_expect_eq(rig.failed, 0, "%s", rig.sentence);
		cr_expect(rig_balances(&rig));
		cr_expect_eq(noted(0), 20000);
		/* b's numbers only grow: what was taken later was sent later */
		for (int64_t k = 1, last = 0; k < noted(0); k++) {
			int64_t b = note_of(0)->values[k] - 1000 * k;

			cr_assert_geq(b, last, "a's %lld", (long long)k);
			last = b;
		}
		EXPECT(0, delivered, 20000);
		rig_end(&rig);
	}
}

static void expect_refused(const char *operators, const char *lines)
{
	static char text[4096];

	snprintf(text, sizeof(text),
		 "frag: 1\napplication: app\nflows: [a -> p.a, b -> p.b]\noperators:\n"
		 "  a: {type: source}\n  b: {type: source}\n%s",
		 operators);
	cr_expect_lt(rig_prepare(&rig, &timing_plugin, text), 0);
	expect_errors(&rig.diag, lines);
	rig_end(&rig);
}

Test(timing, mistakes_in_the_text_are_refused_all_at_once)
{
	expect_refused(
		"  p:\n    type: pair\n    align: {inputs: [a], window: 0s, timeout: soon, widow: 1s}\n    ports:\n"
		"      a: {take: latest_within, missing: reuse}\n"
		"      b: {take: lates_within, age: 50, missing: wait, default: 5}\n"
		"      text: {age: 0ms, condition: none}\n"
		"      out: {default: 1}\n",
		"test.yaml:9:21: app.p: align.inputs names fewer than two inputs; name those that belong together, or leave it out for all\n"
		"test.yaml:9:34: app.p: align.window is 0; leave it out to have none\n"
		"test.yaml:9:47: app.p: align.timeout \"soon\" is not a valid duration; write for example 10ms, 2s or 30hz\n"
		"test.yaml:9:53: app.p: unknown key \"widow\"; did you mean \"window\"?\n"
		"test.yaml:11:17: app.p.a: latest_within needs an age; add for example `age: 50ms`\n"
		"test.yaml:11:41: app.p.a: missing \"reuse\" is not known; did you mean \"reuse_last\"?\n"
		"test.yaml:12:17: app.p.b: take \"lates_within\" is not known; did you mean \"latest_within\"?\n"
		"test.yaml:12:36: app.p.b: age \"50\" has no unit; write for example 50s\n"
		"test.yaml:12:64: app.p.b: a default is only used with `missing: default`\n"
		"test.yaml:13:19: app.p.text: age is 0; leave it out to have none\n"
		"test.yaml:13:19: app.p.text: `condition: none` and age exclude each other; leave the condition out, since `missing` says whether the tick waits\n"
		"test.yaml:14:22: app.p.out: a default is only used with `missing: default`; add that\n");
}

Test(timing, mistakes_about_ports_are_refused_all_at_once)
{
	expect_refused(
		"  p:\n    type: pair\n    ports: {out: {age: 1s}, b: {missing: default, default: five}}\n"
		"    conditions: [{type: message_available, receiver: a}]\n"
		"    align: {inputs: [a, bb], window: 1s}\n",
		"test.yaml:9:24: app.p: timing: port \"out\" is an output; only inputs have it\n"
		"test.yaml:9:42: app.p: default \"five\" of input \"b\" is not a valid i64\n"
		"test.yaml:11:12: app.p: align: input \"a\" has condition message_available, and both say when a tick begins; leave one of them out\n"
		"test.yaml:11:12: app.p: align: unknown input \"bb\"; its inputs: a, b, text\n");
	expect_refused(
		"  p:\n    type: pair\n    ports: {a: {take: latest_within, age: 1s}}\n"
		"    align: {window: 1s}\n",
		"test.yaml:10:12: app.p: input \"a\" takes latest_within, and align looks at every message; leave take out, or name the inputs to align without it\n");
}

/* What stands for a message that is missing, by the type of its input. */
Test(timing, defaults_have_the_type_of_their_input)
{
	static const bool yes = true, no = false;
	static const int64_t five = -5;
	static const double half = 2.5;
	static const struct {
		const struct frag_type *type;
		const char *text;
		const void *value; /* NULL: it is refused */
		size_t size;
	} rows[] = {
		{&frag_type_bool, "true", &yes, sizeof(yes)},
		{&frag_type_bool, "off", &no, sizeof(no)},
		{&frag_type_bool, "perhaps", NULL, 0},
		{&frag_type_i64, "-5", &five, sizeof(five)},
		{&frag_type_i64, "5.5", NULL, 0},
		{&frag_type_f64, "2.5", &half, sizeof(half)},
		{&frag_type_f64, "x", NULL, 0},
		{&frag_type_string, "any text", "any text", 8},
		{&frag_type_string, "", "", 0},
		{&frag_type_bytes, "any", NULL, 0},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		const struct fragi_timing timing = {.default_text = rows[i].text};
		const struct fragi_port port = {.type = rows[i].type, .timing = &timing};
		struct frag_message *m = NULL;
		const void *value = NULL;
		size_t size = 0;

		cr_expect_eq(fragi_timing_default(&port, &m), rows[i].value == NULL ? -EINVAL : 0,
			     "row %zu", i);
		cr_assert_eq(m != NULL, rows[i].value != NULL, "row %zu", i);
		if (m == NULL)
			continue;
		cr_expect_eq(frag_message_value(m, &value, &size), rows[i].type, "row %zu", i);
		cr_assert_eq(size, rows[i].size, "row %zu", i);
		cr_expect(size == 0 || memcmp(value, rows[i].value, size) == 0, "row %zu", i);
		frag_message_unref(m);
	}
}
