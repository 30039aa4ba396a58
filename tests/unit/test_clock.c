// SPDX-License-Identifier: Apache-2.0
#include <frag/harness.h>

#include "graph_texts.h"
#include "rig_ops.h"

/* Clocks: by which operators are ticked, what they read, and how long they sleep. */

#define MS INT64_C(1000000)
#define S INT64_C(1000000000)

/* Notes at each tick what its clock shows, and what the next parameters ask for. */
struct watcher {
	int64_t slot, sleep_ms, advance_ms, stop_at;
	double scale;
	bool emitted; /* notes when its message was emitted */
	struct note *note;
	struct frag_clock *clock;
	int64_t ticks;
};
enum { WATCHER_IN, WATCHER_OUT };
static const struct frag_port watcher_ports[] = {
	[WATCHER_IN] = {.name = "in",
			.dir = FRAG_IN,
			.type = "i64",
			.flags = FRAG_PORT_NO_CONDITION | FRAG_PORT_OPTIONAL},
	[WATCHER_OUT] = {.name = "out", .dir = FRAG_OUT, .type = "i64"},
};
static const struct frag_param watcher_params[] = {
	FRAG_PARAM_I64(struct watcher, slot, 0),
	FRAG_PARAM_I64(struct watcher, sleep_ms, 0),
	FRAG_PARAM_I64(struct watcher, advance_ms, 0),
	FRAG_PARAM_I64(struct watcher, stop_at, -1),
	FRAG_PARAM_F64(struct watcher, scale, 0),
	FRAG_PARAM_BOOL(struct watcher, emitted, false),
};

static int watcher_initialize(void *state, struct frag_op *op)
{
	struct watcher *s = state;

	s->note = note_of(s->slot);
	s->clock = frag_op_clock(op);
	return s->clock != NULL ? 0 : -ENODEV;
}

static int watcher_compute(void *state, struct frag_tick *tick)
{
	struct watcher *s = state;
	int64_t got = -1;

	note_add(s->note,
		 s->emitted ? frag_tick_emitted_ns(tick, WATCHER_IN) : frag_tick_time_ns(tick));
	frag_tick_receive_i64(tick, WATCHER_IN, &got);
	if (s->ticks++ == s->stop_at)
		frag_fragment_stop_execution(frag_op_fragment(frag_tick_op(tick)));
	if (s->scale > 0 && frag_clock_set_time_scale(s->clock, s->scale) < 0)
		return frag_op_fail(frag_tick_op(tick), -EINVAL, "no scale");
	if (s->advance_ms > 0 && frag_clock_advance_by(s->clock, s->advance_ms * MS) < 0)
		return frag_op_fail(frag_tick_op(tick), -EINVAL, "no advance");
	if (s->sleep_ms > 0) {
		frag_clock_sleep_for(s->clock, s->sleep_ms * MS);
		note_add(s->note, frag_clock_timestamp(s->clock));
	}
	return frag_tick_emit_i64(tick, WATCHER_OUT, s->ticks);
}

TEST_OP(watcher, .state_size = sizeof(struct watcher), FRAG_PORTS(watcher_ports),
	FRAG_PARAMS(watcher_params), .initialize = watcher_initialize);
static const struct frag_op_type *const clock_ops[] = {&watcher_type, &sink_type};
static void (*in_compose)(struct frag_fragment *fragment);
static int compose(struct frag_fragment *fragment)
{
	in_compose(fragment);
	return 0;
}
static int compose_subgraph(struct frag_subgraph *subgraph, struct frag_fragment *fragment)
{
	return frag_fragment_set_clock(fragment, "manual", NULL);
}
static const struct frag_composer clock_composers[] = {{"c", NULL, compose}};
static const struct frag_subgraph_type clock_subgraphs[] = {{"s", NULL, compose_subgraph}};

static const struct frag_plugin clock_plugin = {
	TEST_PLUGIN_INIT, .name = "clock", FRAG_OPS(clock_ops), FRAG_COMPOSERS(clock_composers),
	FRAG_SUBGRAPHS(clock_subgraphs)};

static void expect_times(int64_t slot, int64_t first_ns, int64_t period_ns, uint32_t count)
{
	cr_assert_eq(noted(slot), count, "slot %lld: %u of %u", (long long)slot, noted(slot),
		     count);
	for (uint32_t i = 0; i < count; i++)
		cr_assert_eq(notes[slot]->values[i], first_ns + i * period_ns,
			     "slot %lld, tick %u: %lld", (long long)slot, i,
			     (long long)notes[slot]->values[i]);
}

RIG_TEST(clock, a_manual_one_goes_from_one_awaited_time_to_the_next)
{
	rig_run(rig, &clock_plugin,
		rig_graph(s, "clock: {type: ManualClock, initial_timestamp: 5}\n"
			     "operators:\n"
			     "  a: {type: watcher, conditions: [{type: count, count: 2000},"
			     " {type: periodic, recess_period: 1s}]}\n"
			     "  b: {type: watcher, parameters: {slot: 1}, conditions:"
			     " [{type: count, count: 3}, {type: periodic,"
			     " recess_period: 700ms}]}\n"));
	expect_times(0, 5, S, 2000);
	expect_times(1, 5, 700 * MS, 3);
	cr_expect_lt(rig->done_ns - rig->start_ns, 20 * S, "it does not wait");
}

/* The earliest of several times is next, in whatever order the operators stand. */
Test(clock, each_of_several_periods_keeps_its_times)
{
	static const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
					{1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
	static const struct {
		int period_ms, count;
	} rows[] = {{300, 30}, {700, 12}, {1100, 9}};
	char text[1000];
	struct rig rig;

	for (size_t i = 0; i < FRAG_COUNT_OF(orders); i++)
		FOR_EACH_SCHEDULER(s)
		{
			int n = snprintf(text, sizeof(text), "clock: manual\noperators:\n");

			for (int k = 0; k < 3; k++)
				n += snprintf(text + n, sizeof(text) - (size_t)n,
					      "  w%d: {type: watcher, parameters: {slot: %d}, "
					      "conditions: [{type: count, count: %d}, {type: "
					      "periodic, recess_period: %dms}]}\n",
					      k, orders[i][k], rows[orders[i][k]].count,
					      rows[orders[i][k]].period_ms);
			rig_run(&rig, &clock_plugin, rig_graph(s, text));
			for (int k = 0; k < 3; k++)
				expect_times(k, 0, rows[k].period_ms * MS, (uint32_t)rows[k].count);
			rig_end(&rig);
		}
}

RIG_TEST(clock, all_is_measured_in_its_time)
{
	rig_run(rig, &clock_plugin,
		rig_graph(s, "clock: manual\n"
			     "operators:\n"
			     "  tx: {type: watcher, conditions: [{type: count, count: 7},"
			     " {type: periodic, recess_period: 10ms}]}\n"
			     "  rx: {type: watcher, parameters: {slot: 1}, ports: {in:"
			     " {capacity: 8}}, conditions: [{type:"
			     " expiring_message_available, receiver: in, max_batch_size: 5,"
			     " max_delay_ns: 25ms}]}\n"
			     "flows: [tx.out -> rx.in]\n"));
	expect_times(0, 0, 10 * MS, 7);
	cr_assert_geq(noted(1), 2);
	cr_expect_eq(notes[1]->values[0], 25 * MS, "%lld", (long long)notes[1]->values[0]);
	cr_expect_eq(notes[1]->values[1], 35 * MS, "%lld", (long long)notes[1]->values[1]);
	cr_expect_eq(rig_row(rig, 0)->latency.max, 25 * MS);
	cr_expect_eq(fragi_run_ledger(rig->run)->ops[0].compute.max, 0);
}

RIG_TEST(clock, a_message_has_the_time_at_which_it_was_emitted)
{
	rig_run(rig, &clock_plugin,
		rig_graph(s,
			  "clock: manual\n"
			  "operators:\n"
			  "  tx: {type: watcher, conditions: [{type: count, count: 7},"
			  " {type: periodic, recess_period: 10ms}]}\n"
			  "  rx: {type: watcher, parameters: {slot: 1, emitted: true}, ports: {in:"
			  " {capacity: 8}}, conditions: [{type: count, count: 7},"
			  " {type: expiring_message_available, receiver: in,"
			  " max_batch_size: 7, max_delay_ns: 1s}]}\n"
			  "flows: [tx.out -> rx.in]\n"));
	expect_times(1, 0, 10 * MS, 7);
}

Test(clock, thread_pools_follow_it)
{
	static const char text[] =
		"frag: 1\napplication: app\nclock: manual\n"
		"thread_pools: {p: {initial_size: 1, add: [{operators: [tx, rx]}]},"
		" q: {initial_size: 1, add: [{operators: own}]}}\n"
		"operators:\n"
		"  tx: {type: watcher, conditions: [{type: count, count: 300},"
		" {type: periodic, recess_period: 2ms}]}\n"
		"  rx: {type: watcher, parameters: {slot: 1}, conditions: [{type:"
		" message_available, receiver: in}]}\n"
		"  own: {type: watcher, parameters: {slot: 2}, conditions: [{type: count,"
		" count: 200}, {type: periodic, recess_period: 3s}]}\n"
		"  free: {type: watcher, parameters: {slot: 3}, conditions: [{type: count,"
		" count: 100}, {type: periodic, recess_period: 7ms}]}\n"
		"flows: [tx.out -> rx.in]\n";
	struct rig rig;

	for (int i = 0; i < 20; i++, notes_clear()) {
		rig_run(&rig, &clock_plugin, text);
		expect_times(0, 0, 2 * MS, 300);
		expect_times(1, 0, 2 * MS, 300);
		expect_times(2, 0, 3 * S, 200);
		expect_times(3, 0, 7 * MS, 100);
		rig_end(&rig);
	}
}

Test(clock, fragments_share_the_one_at_the_top)
{
	static const char text[] =
		"frag: 1\napplication: app\nclock: manual\n"
		"fragments:\n"
		"  f: {scheduler: {type: greedy}, operators: {tx: {type: watcher, conditions: ["
		"{type: count, count: 300}, {type: periodic, recess_period: 2ms}]}}}\n"
		"  g: {scheduler: {worker_thread_number: 3}, operators: {rx: {type: watcher,"
		" parameters: {slot: 1}, conditions: [{type: message_available, receiver: in}]},\n"
		"    own: {type: watcher, parameters: {slot: 2}, conditions: [{type: count,"
		" count: 200}, {type: periodic, recess_period: 3ms}]}}}\n"
		"flows: [f.tx.out -> g.rx.in]\n";
	struct rig rig;

	for (int i = 0; i < 20; i++, notes_clear()) {
		rig_run(&rig, &clock_plugin, text);
		expect_times(0, 0, 2 * MS, 300);
		expect_times(1, 0, 2 * MS, 300);
		expect_times(2, 0, 3 * MS, 200);
		rig_end(&rig);
	}
}

/* The one that ends waits for nothing more, so the clock goes on for the other. */
Test(clock, a_fragment_that_ends_holds_up_no_other)
{
	static const char text[] =
		"frag: 1\napplication: app\nclock: manual\n"
		"fragments:\n"
		"  f: {operators: {a: {type: watcher, conditions: [{type: count, count: 5},"
		" {type: periodic, recess_period: 2ms}]}}}\n"
		"  g: {operators: {b: {type: watcher, parameters: {slot: 1}, conditions: ["
		"{type: count, count: 50}, {type: periodic, recess_period: 2ms}]}}}\n";
	struct rig rig;

	for (int i = 0; i < 100; i++, notes_clear()) {
		rig_run(&rig, &clock_plugin, text);
		expect_times(0, 0, 2 * MS, 5);
		expect_times(1, 0, 2 * MS, 50);
		rig_end(&rig);
	}
}

/* Stamps stand still with the clock, and yet no operator keeps a thread for itself. */
Test(clock, no_operator_keeps_the_thread_while_time_stands_still)
{
	static const char *const pools[] = {
		"", "thread_pools: {p: {initial_size: 1, add: [{operators: [tx, rx]}]}}\n"};
	struct rig rig;

	for (int i = 0; i < 2; i++, notes_clear()) {
		char text[1024];

		snprintf(text, sizeof(text),
			 "frag: 1\napplication: app\nclock: manual\n%s"
			 "scheduler: {type: event_based, worker_thread_number: 1}\n"
			 "operators:\n"
			 "  tx: {type: watcher, conditions: [{type: count, count: 1000}]}\n"
			 "  rx: {type: watcher, parameters: {slot: 1}, conditions: [{type:"
			 " message_available, receiver: in}]}\n"
			 "flows: [{from: tx.out, to: rx.in, policy: latest}]\n",
			 pools[i]);
		rig_run(&rig, &clock_plugin, text);
		cr_expect_eq(noted(0), 1000);
		cr_expect_gt(noted(1), 100, "%u of 1000", noted(1));
		rig_end(&rig);
	}
}

RIG_ONE_TEST(clock, a_fragment_may_have_one_of_its_own)
{
	rig_run(rig, &clock_plugin,
		"frag: 1\napplication: app\n"
		"fragments:\n"
		"  f: {clock: manual, operators: {a: {type: watcher, conditions: ["
		"{type: count, count: 5}, {type: periodic, recess_period: 1h}]}}}\n"
		"  g: {scheduler: {clock: {type: realtime, initial_time_offset: 7}}, operators: {"
		"b: {type: watcher, parameters: {slot: 1}, conditions: [{type: count}]}}}\n"
		"  h: {operators: {c: {type: watcher, parameters: {slot: 2}, conditions: ["
		"{type: count}]}}}\n");
	expect_times(0, 0, 3600 * S, 5);
	cr_expect(notes[1]->values[0] >= 7 * S && notes[1]->values[0] < 37 * S);
	cr_expect(notes[2]->values[0] >= rig->start_ns && notes[2]->values[0] <= rig->done_ns,
		  "without a clock it is that of the machine");
}

Test(clock, the_time_limit_is_on_it_and_what_happens_at_that_time_happens)
{
	struct rig rig;

	FOR_EACH_SCHEDULER(s)
	{
		char text[1024];

		snprintf(text, sizeof(text),
			 "frag: 1\napplication: app\nclock: manual\n"
			 "scheduler: %.*s, max_duration_ms: 30000}\n"
			 "operators:\n"
			 "  tx: {type: watcher, conditions: [{type: periodic, recess_period:"
			 " 100ms}]}\n"
			 "  rx: {type: watcher, parameters: {slot: 1}, conditions: [{type:"
			 " message_available, receiver: in}]}\n"
			 "flows: [tx.out -> rx.in]\n",
			 (int)strlen(rig_schedulers[s]) - 1, rig_schedulers[s]);
		for (int i = 0; i < 10; i++, notes_clear()) {
			rig_run(&rig, &clock_plugin, text);
			expect_times(0, 0, 100 * MS, 301);
			expect_times(1, 0, 100 * MS, 301);
			rig_end(&rig);
		}
	}
}

/*
 * A user that goes on by itself just after it was found to wait, while the clock is being set.
 * Without the call the thread would read the time of before, unless it is very slow.
 */
struct early {
	struct frag_clock *clock;
	pthread_t thread;
	_Atomic bool runs;
	int calls;
	int64_t read_ns;
};

static void *go_on_early(void *arg)
{
	struct early *early = arg;

	atomic_store(&early->runs, true);
	fragi_clock_going_on(early->clock);
	early->read_ns = fragi_clock_read_ns(early->clock);
	return NULL;
}

static bool early_waits(void *arg, int64_t *out_next_ns, uint64_t *out_rounds)
{
	struct early *early = arg;

	*out_next_ns = 5 * S;
	*out_rounds = 0;
	if (++early->calls == 2) {
		cr_assert_eq(pthread_create(&early->thread, NULL, go_on_early, early), 0);
		while (!atomic_load(&early->runs))
			sched_yield();
		for (int i = 0; i < 100; i++)
			sched_yield();
	}
	return true;
}

static void early_moved(void *arg, int64_t waited_ns)
{
}

Test(clock, who_goes_on_while_it_is_set_reads_the_new_time)
{
	struct fragi_clock_config config = {.kind = FRAGI_CLOCK_MANUAL};
	struct early early = {0};
	struct fragi_clock_user user = {.arg = &early, .waits = early_waits, .moved = early_moved};

	cr_assert_eq(fragi_clock_create(&config, &early.clock), 0);
	fragi_clock_join(early.clock, &user);
	fragi_clock_waiting(early.clock);
	cr_assert_eq(early.calls, 2);
	pthread_join(early.thread, NULL);
	cr_expect_eq(early.read_ns, 5 * S);
	fragi_clock_leave(early.clock, &user);
	fragi_clock_destroy(early.clock);
}

RIG_TEST(clock, a_sleep_sets_a_manual_one_forward)
{
	rig_run(rig, &clock_plugin,
		rig_graph(s, "clock: manual\n"
			     "operators:\n"
			     "  a: {type: watcher, parameters: {sleep_ms: 3600000},"
			     " conditions: [{type: count, count: 4}]}\n"));
	cr_assert_eq(noted(0), 8);
	for (int i = 0; i < 8; i++)
		cr_expect_eq(notes[0]->values[i], (i + 1) / 2 * 3600 * S);
}

RIG_TEST(clock, only_an_operator_moves_a_synthetic_one)
{
	rig_run(rig, &clock_plugin,
		rig_graph(s, "clock: {type: synthetic, initial_timestamp: 1000}\n"
			     "operators:\n"
			     "  hand: {type: watcher, parameters: {advance_ms: 500},"
			     " conditions: [{type: count, count: 5}]}\n"
			     "  waits: {type: watcher, parameters: {slot: 1}, conditions: ["
			     "{type: periodic, recess_period: 1s}]}\n"));
	expect_times(0, 1000, 500 * MS, 5);
	cr_assert_eq(noted(1), 3, "at 0, 1 and 2 s; then nobody moves it: %u", noted(1));
	cr_expect_eq(rig->idle, 1, "it rests");
}

RIG_ONE_TEST(clock, a_sleep_on_a_synthetic_one_waits_for_who_moves_it)
{
	rig_run(rig, &clock_plugin,
		"frag: 1\napplication: app\nclock: synthetic\n"
		"scheduler: {worker_thread_number: 2}\n"
		"operators:\n"
		"  sleeps: {type: watcher, parameters: {sleep_ms: 250}, conditions: [{type:"
		" count}]}\n"
		"  hand: {type: watcher, parameters: {slot: 1, advance_ms: 1}, conditions: [{type:"
		" count, count: 1000}]}\n");
	cr_assert_eq(noted(0), 2);
	cr_expect_geq(notes[0]->values[1], notes[0]->values[0] + 250 * MS);
}

static bool has_noted(struct rig *rig)
{
	return noted(0) > 0;
}

Test(clock, a_stop_ends_sleeps)
{
	static const char *const clocks[] = {"synthetic", "realtime"};
	char text[512];
	struct rig rig;

	for (size_t i = 0; i < FRAG_COUNT_OF(clocks); i++, notes_clear()) {
		snprintf(text, sizeof(text),
			 "frag: 1\napplication: app\nclock: %s\noperators:\n"
			 "  a: {type: watcher, parameters: {sleep_ms: 86400000}}\n",
			 clocks[i]);
		rig_prepare_good(&rig, &clock_plugin, text);
		rig_start(&rig);
		cr_assert(rig_wait(&rig, has_noted, RIG_LIMIT_NS));
		fragi_run_drain(rig.run);
		cr_assert(rig_wait(&rig, rig_is_done, RIG_LIMIT_NS));
		cr_expect_eq(rig.failed, 0);
		rig_end(&rig);
	}
}

RIG_ONE_TEST(clock, the_time_limit_ends_sleeps)
{
	/* nobody moves the synthetic one */
	static const char *const clocks[] = {"realtime", "synthetic"};
	static const char *const graphs[][2] = {
		{"scheduler: {type: ",
		 ", max_duration_ms: 50}\n"
		 "operators: {a: {type: watcher, parameters: {sleep_ms: 86400000}}}\n"},
		{"fragments:\n  one: {scheduler: {type: ",
		 ", max_duration_ms: 50}, operators: {a: {type: watcher, parameters: {sleep_ms: 86400000}}}}\n"
		 "  two: {scheduler: {max_duration_ms: 80}, operators: {b: {type: watcher, parameters: {slot: 1, sleep_ms: 86400000}}}}\n"}};
	char text[700];

	for (int i = 0; i < 8; i++, notes_clear()) {
		if (i > 0)
			rig_end(rig);
		snprintf(text, sizeof(text), "frag: 1\napplication: app\nclock: %s\n%s%s%s",
			 clocks[i / 2 % 2], graphs[i / 4][0], i % 2 == 0 ? "greedy" : "event_based",
			 graphs[i / 4][1]);
		rig_run(rig, &clock_plugin, text);
		cr_expect_eq(rig->failed, 0);
		cr_expect_geq(rig->done_ns - rig->start_ns, 50 * MS);
	}
}

RIG_TEST(clock, a_realtime_one_runs_as_fast_as_its_scale_says)
{
	rig_run(rig, &clock_plugin,
		rig_graph(s, "clock: {type: realtime, initial_time_offset: -3,"
			     " initial_time_scale: 1000}\n"
			     "operators:\n"
			     "  a: {type: watcher, parameters: {sleep_ms: 10000},"
			     " conditions: [{type: count, count: 3},"
			     " {type: periodic, recess_period: 20s}]}\n"));
	cr_assert_eq(noted(0), 6);
	/* The condition counts from its first check, which comes before the tick reads the time. */
	for (int i = 0; i < 6; i += 2) {
		cr_expect_geq(notes[0]->values[i], -3 * S + i * 10 * S);
		cr_expect_geq(notes[0]->values[i + 1], notes[0]->values[i] + 10 * S);
	}
	/* 50 s of the clock are 50 ms */
	cr_expect_geq(rig->done_ns - rig->start_ns, 50 * MS);
	cr_expect_leq(notes[0]->values[5] - notes[0]->values[0],
		      1000 * (rig->done_ns - rig->start_ns));
	cr_expect_lt(rig->done_ns - rig->start_ns, 20 * S);
}

RIG_TEST(clock, a_new_scale_counts_for_those_who_wait)
{
	rig_run(rig, &clock_plugin,
		rig_graph(s, "clock: realtime\n"
			     "operators:\n"
			     "  waits: {type: watcher, conditions: [{type: count, count: 2},"
			     " {type: periodic, recess_period: 1h}]}\n"
			     "  faster: {type: watcher, parameters: {slot: 1, scale:"
			     " 100000}, conditions: [{type: count, count: 2}, {type:"
			     " periodic, recess_period: 20ms}]}\n"));
	cr_assert_eq(noted(0), 2);
	cr_expect_geq(notes[0]->values[1], 3600 * S);
}

RIG_ONE_TEST(clock, unix_time)
{
	struct timespec now;

	rig_run(rig, &clock_plugin,
		"frag: 1\napplication: app\n"
		"clock: {type: realtime, use_time_since_epoch: true, initial_time_offset: 1000}\n"
		"operators: {a: {type: watcher, conditions: [{type: count}]}}\n");
	clock_gettime(CLOCK_REALTIME, &now);
	cr_expect_lt(llabs(notes[0]->values[0] - (int64_t)(now.tv_sec + 1000) * S), 60 * S);
}

Test(clock, what_a_clock_cannot_do_is_refused)
{
	struct frag_harness *h = frag_harness_create(&watcher_type, NULL, NULL);
	struct frag_clock *clock = frag_harness_clock(h), *real;
	const struct fragi_clock_config config = {.kind = FRAGI_CLOCK_REALTIME, .scale = 1};

	cr_expect_eq(frag_clock_set_time_scale(clock, 2), -EINVAL, "it is manual");
	cr_expect_eq(frag_clock_advance_by(clock, -1), -EINVAL);
	cr_expect_eq(frag_clock_advance_by(clock, INT64_MAX), -EINVAL);
	cr_expect_eq(frag_clock_advance_to(clock, 5), 0);
	cr_expect_eq(frag_clock_advance_to(clock, 4), -EINVAL, "time does not go back");
	cr_expect_eq(frag_clock_sleep_for(clock, -1), 0);
	cr_expect_eq(frag_clock_sleep_until(clock, 3), 0);
	cr_expect_eq(frag_clock_timestamp(clock), 5);
	frag_harness_destroy(h);
	cr_assert_eq(fragi_clock_create(&config, &real), 0);
	cr_expect_eq(frag_clock_advance_by(real, 1), -EINVAL);
	cr_expect_eq(frag_clock_set_time_scale(real, 0), -EINVAL);
	cr_expect_eq(frag_clock_set_time_scale(real, -1), -EINVAL);
	cr_expect_eq(frag_clock_set_time_scale(real, 1e7), -EINVAL);
	cr_expect_eq(frag_clock_set_time_scale(real, 0.0 / 0.0), -EINVAL);
	cr_expect_eq(frag_clock_set_time_scale(real, 1e-6), 0);
	fragi_clock_destroy(real);
}

Test(clock, the_harness_has_it_in_its_hand)
{
	struct frag_harness *h =
		frag_harness_create(&watcher_type, FRAG_ARGS({"sleep_ms", "1500"}), NULL);
	struct frag_clock *clock = frag_harness_clock(h);

	cr_expect_eq(frag_harness_tick(h), 0);
	cr_expect_float_eq(frag_clock_time(clock), 1.5, 1e-9);
	frag_clock_advance_by(clock, 500 * MS);
	cr_expect_eq(frag_harness_tick(h), 0);
	cr_expect_eq(notes[0]->values[0], 0);
	cr_expect_eq(notes[0]->values[1], 1500 * MS);
	cr_expect_eq(notes[0]->values[2], 2 * S, "the tick's time is the clock's");
	cr_expect_eq(notes[0]->values[3], 3500 * MS);
	frag_harness_destroy(h);
}

static void choose_for_fragment(struct frag_fragment *fragment)
{
	cr_expect_eq(frag_fragment_set_clock(
			     fragment, "ManualClock",
			     FRAG_ARGS({"initial_timestamp", "9"}, {"initial_timestamp", "5"})),
		     0);
}

static void choose_for_all(struct frag_fragment *fragment)
{
	cr_expect_eq(frag_application_set_clock(fragment, "manual", NULL), 0);
}

#define TICKING(slot)                                                                              \
	"operators: {a: {type: watcher, parameters: {slot: " slot                                  \
	"}, conditions: [{type: count, count: 100}, {type: periodic, recess_period: 2s}]}}"

#define HEAD "frag: 1\napplication: app\n"
Test(clock, a_composer_chooses_that_of_its_fragment)
{
	static const struct {
		const char *graph;
		int64_t first_ns;
	} cases[] = {
		{HEAD "fragments:\n  f: {compose: c, " TICKING("0") "}\n", 5},
		{HEAD "compose: c\nclock: {type: manual, initial_timestamp: 7}\n" TICKING("0") "\n",
		 7},
		{HEAD
		 "compose: c\nscheduler: {clock: {type: manual, initial_timestamp: 8}}\n" TICKING(
			 "0") "\n",
		 8},
	};
	struct rig rig;

	in_compose = choose_for_fragment;
	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++, notes_clear()) {
		rig_run(&rig, &clock_plugin, cases[i].graph);
		expect_times(0, cases[i].first_ns, 2 * S, 100);
		rig_end(&rig);
	}
}

/* The second fragment has no composer, and yet its operators wait by the same clock. */
Test(clock, a_composer_chooses_that_of_the_application)
{
	struct rig rig;

	in_compose = choose_for_all;
	for (int i = 0; i < 20; i++, notes_clear()) {
		rig_run(&rig, &clock_plugin,
			"frag: 1\napplication: app\nfragments:\n"
			"  f: {compose: c, operators: {tx: {type: watcher, conditions: ["
			"{type: count, count: 300}, {type: periodic, recess_period: 2ms}]}}}\n"
			"  g: {operators: {rx: {type: watcher, parameters: {slot: 1},"
			" conditions: [{type: message_available, receiver: in}]}}}\n"
			"  h: {compose: c, " TICKING("2") "}\n"
							  "flows: [f.tx.out -> g.rx.in]\n");
		expect_times(0, 0, 2 * MS, 300);
		expect_times(1, 0, 2 * MS, 300);
		expect_times(2, 0, 2 * S, 100);
		rig_end(&rig);
	}
}

static void choose_badly(struct frag_fragment *fragment)
{
	frag_fragment_set_clock(fragment, "manul", NULL);
	frag_fragment_set_clock(fragment, NULL, NULL);
	frag_fragment_set_clock(fragment, "manual", FRAG_ARGS({"initial_timestamp", "-1"}));
	frag_fragment_set_clock(fragment, "manual", FRAG_ARGS({"initial_time_scale", "2"}));
	frag_application_set_clock(fragment, "realtime",
				   FRAG_ARGS({"initial_time_scale", "0"},
					     {"use_time_since_epoch", "perhaps"},
					     {"initial_time_ofset", "1"}));
	cr_expect_eq(frag_fragment_set_clock(fragment, "manual", NULL), 0);
	cr_expect_eq(frag_fragment_set_clock(fragment, "manual", NULL), -EINVAL);
	frag_make_subgraph(fragment, "x", "s", NULL);
}

/* What fragments f and g choose for the application, which differs in one value. */
static const struct {
	const char *type[2];
	struct frag_arg arg[2];
} chosen[] = {
	{{"manual", "synthetic"}, {{0}}},
	{{"manual", "manual"}, {{"initial_timestamp", "5"}, {"initial_timestamp", "6"}}},
	{{"realtime", "realtime"}, {{"initial_time_offset", "1"}, {"initial_time_offset", "2"}}},
	{{"realtime", "realtime"}, {{"initial_time_scale", "1"}, {"initial_time_scale", "2"}}},
	{{"realtime", "realtime"},
	 {{"use_time_since_epoch", "true"}, {"use_time_since_epoch", "false"}}},
};
static size_t choice;

static void choose_by_name(struct frag_fragment *fragment)
{
	const int i = strcmp(frag_fragment_name(fragment), "f") != 0;
	const struct frag_arg args[] = {chosen[choice].arg[i], {0}};

	frag_application_set_clock(fragment, chosen[choice].type[i], args);
}

RIG_ONE_TEST(clock, what_c_chooses_is_checked_as_what_graphs_say)
{
	in_compose = choose_badly;
	cr_expect_eq(
		rig_prepare(rig, &clock_plugin, rig_graph(0, "compose: c\n" TICKING("0") "\n")),
		-EINVAL);
	expect_errors(
		&rig->diag,
		"app: no clock \"manul\"; did you mean \"manual\"?\n"
		"app: no clock \"\"; clocks: realtime, manual, synthetic\n"
		"app: initial_timestamp \"-1\" is not a whole number from 0 to 4611686018427387903\n"
		"app: unknown key \"initial_time_scale\"; did you mean \"initial_timestamp\"?\n"
		"app: unknown key \"initial_time_ofset\"; did you mean \"initial_time_offset\"?\n"
		"app: initial_time_scale \"0\" is not a number from 1e-06 to 1000000\n"
		"app: use_time_since_epoch \"perhaps\" is neither true nor false\n"
		"app: a composer chooses a clock twice; remove one\n"
		"app: a subgraph chooses a clock; let the composer of the fragment do so\n");
	in_compose = choose_by_name;
	for (choice = 0; choice < FRAG_COUNT_OF(chosen); choice++) {
		rig_end(rig);
		cr_expect_eq(rig_prepare(rig, &clock_plugin,
					 "frag: 1\napplication: app\nfragments:\n"
					 "  f: {compose: c, " TICKING(
						 "0") "}\n"
						      "  g: {compose: c, " TICKING("1") "}\n"),
			     -EINVAL);
		expect_errors(&rig->diag,
			      "the composers of fragments f and g choose different clocks for "
			      "the application; let them choose the same, or write clock at the "
			      "top of the graph\n");
	}
}
