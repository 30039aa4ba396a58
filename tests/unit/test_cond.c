// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>

#include <cond/condition.h>
#include <type/params.h>

#include "rig_ops.h"

#define MS 1000000

/* A condition as a graph makes it, with its parameters filled in. */
static struct frag_condition make(const char *type, const struct frag_arg *args)
{
	static struct fragi_arena arena;
	struct frag_condition c = {.built_in = fragi_built_in_condition(type), .name = type};
	struct fragi_spec_setting *settings;
	struct fragi_diag diag = {0};
	size_t count;

	cr_assert_not_null(c.built_in);
	c.type = &c.built_in->type;
	c.state = fragi_arena_alloc(&arena, c.type->state_size);
	cr_assert_eq(fragi_settings_from_args(&arena, args, &settings, &count), 0);
	cr_assert_eq(
		fragi_params_fill(&(struct fragi_param_table){c.type->params, c.type->param_count,
							      c.type->param_size},
				  settings, count, c.state,
				  &(struct fragi_param_context){.arena = &arena, .diag = &diag}),
		0);
	return c;
}

static enum frag_ready check(const struct frag_condition *c, int64_t now_ns, int64_t *until_ns)
{
	return c->type->check(c->state, now_ns, until_ns);
}

/* Ticks begin at these times; the next is due at `due`. */
static void expect_due(const char *policy, const int64_t *ticks, size_t count, int64_t due)
{
	struct frag_condition c =
		make("periodic", FRAG_ARGS({"recess_period", "10ms"}, {"policy", policy}));
	int64_t until = 0;

	for (size_t i = 0; i < count; i++) {
		cr_expect_eq(check(&c, ticks[i], &until), FRAG_READY, "%s: tick %zu", policy, i);
		c.type->ticked(c.state, ticks[i]);
	}
	cr_expect_eq(check(&c, due - 1, &until), FRAG_WAIT_TIME);
	cr_expect_eq(until, due, "%s: %lld", policy, (long long)until);
	cr_expect_eq(check(&c, due, &until), FRAG_READY);
}

Test(cond, periodic_policies)
{
	/* Due at 100, 110, 120 ...; the third begins 27 ms late. */
	static const int64_t late[] = {100 * MS, 110 * MS, 147 * MS};
	static const int64_t caught[] = {100 * MS, 110 * MS, 147 * MS, 147 * MS, 148 * MS};

	expect_due("catch_up_missed_ticks", caught, 5, 150 * MS);
	expect_due("min_time_between_ticks", late, 3, 157 * MS);
	expect_due("no_catch_up_missed_ticks", late, 3, 150 * MS);
	/* as Holoscan writes them */
	expect_due("CatchUpMissedTicks", caught, 5, 150 * MS);
	expect_due("MinTimeBetweenTicks", late, 3, 157 * MS);
	expect_due("NoCatchUpMissedTicks", late, 3, 150 * MS);
	expect_due("no_catch_up_missed_ticks", (const int64_t[]){100 * MS, 120 * MS}, 2, 130 * MS);
}

Test(cond, count_and_boolean)
{
	struct frag_condition c = make("count", FRAG_ARGS({"count", "2"}));
	int64_t until;

	cr_expect_eq(check(&c, 0, &until), FRAG_READY);
	c.type->ticked(c.state, 0);
	c.type->ticked(c.state, 0);
	cr_expect_eq(check(&c, 0, &until), FRAG_NEVER);
	cr_expect_eq(frag_condition_enable_tick(&c), -EINVAL);
	c = make("count", FRAG_ARGS({"count", "0"}));
	cr_expect_eq(check(&c, 0, &until), FRAG_NEVER);
	c = make("count", FRAG_ARGS({"count", "-1"}));
	for (int i = 0; i < 5; i++) {
		cr_expect_eq(check(&c, 0, &until), FRAG_READY, "%d", i);
		c.type->ticked(c.state, 0);
	}
	c = make("boolean", FRAG_NO_ARGS);
	cr_expect_eq(check(&c, 0, &until), FRAG_READY);
	cr_expect_eq(frag_condition_disable_tick(&c), 0);
	cr_expect_eq(check(&c, 0, &until), FRAG_NEVER);
	cr_expect_eq(frag_condition_enable_tick(&c), 0);
	cr_expect_eq(check(&c, 0, &until), FRAG_READY);
	c = make("boolean", FRAG_ARGS({"enable_tick", "false"}));
	cr_expect_eq(check(&c, 0, &until), FRAG_WAIT_EVENT);
	cr_expect_eq(frag_condition_disable_tick(&c), 0);
	cr_expect_eq(check(&c, 0, &until), FRAG_NEVER);
	cr_expect_null(fragi_built_in_condition("periodc"));
}

RIG_TEST(cond, count_ends_an_operator)
{
	rig_run(rig, &rig_plugin,
		rig_graph(s, "operators:\n"
			     "  tx: {type: source, conditions: [{type: count, count: 7}]}\n"
			     "  rx: {type: sink}\n"
			     "flows: [tx -> rx]\n"));
	cr_expect_eq(notes[0]->count, 7);
	cr_expect_eq(notes[SLOTS - 1]->ticks, 7);
}

/* The receiver ends the source; an input without a condition ends an operator without outputs. */
Test(cond, a_negative_count_is_without_end)
{
	static const char *const receivers[] = {
		"{type: sink, conditions: [{type: count, count: 50}]}",
		"{type: sink, conditions: [{type: none}, {type: count, count: -1}]}",
	};
	static const int64_t counts[] = {-1, -7};
	char ops[300];
	struct rig rig;

	for (size_t i = 0; i < FRAG_COUNT_OF(receivers); i++)
		FOR_EACH_SCHEDULER(s)
		{
			snprintf(
				ops, sizeof(ops),
				"operators:\n"
				"  tx: {type: source, parameters: {count: %d}, conditions: [{type: count, count: %d}]}\n"
				"  rx: %s\n"
				"flows: [tx -> rx]\n",
				i == 0 ? 0 : 60, (int)counts[i], receivers[i]);
			rig_prepare_good(&rig, &rig_plugin, rig_graph(s, ops));
			rig.is_host = true;
			rig_start(&rig);
			cr_assert(rig_wait(&rig, rig_is_done, RIG_LIMIT_NS), "%s", receivers[i]);
			cr_expect_eq(rig.failed, 0, "%s", rig.sentence);
			cr_expect(i == 0 ? notes[0]->count == 50 : notes[0]->count <= 60);
			rig_end(&rig);
		}
}

RIG_TEST(cond, periodic_ticks_are_not_early)
{
	rig_run(rig, &rig_plugin,
		rig_graph(s, "operators:\n"
			     "  tx: {type: source, parameters: {count: 20},\n"
			     "       conditions: [{type: periodic, recess_period: 5ms,\n"
			     "                     policy: min_time_between_ticks}]}\n"
			     "  rx: {type: sink}\n"
			     "flows: [tx -> rx]\n"));
	cr_assert_eq(notes[0]->count, 20);
	cr_expect_geq(notes[0]->times[19] - notes[0]->times[0], 18 * 5 * MS);
}

Test(cond, several_periods_side_by_side)
{
	struct rig rig;
	int64_t begin_ns;

	/*
	 * No timer may hold up, or hide, another: whatever the load, 200 of the fast come before 10
	 * of the slow.
	 */
	FOR_EACH_SCHEDULER(s)
	{
		begin_ns = fragi_now_ns();
		rig_run(&rig, &rig_plugin,
			rig_graph(s, "operators:\n"
				     "  a: {type: source, parameters: {count: 10},\n"
				     "      conditions: [{type: periodic, recess_period: 20ms}]}\n"
				     "  b: {type: source, parameters: {count: 200},\n"
				     "      conditions: [{type: periodic, recess_period: 500us}]}\n"
				     "  c: {type: source, parameters: {count: 50},\n"
				     "      conditions: [{type: periodic, recess_period: 3ms}]}\n"
				     "  ra: {type: sink, parameters: {slot: 0}}\n"
				     "  rb: {type: sink, parameters: {slot: 1}}\n"
				     "  rc: {type: sink, parameters: {slot: 2}}\n"
				     "flows: [a -> ra, b -> rb, c -> rc]\n"));
		cr_expect_eq(notes[0]->count, 10);
		cr_expect_eq(notes[1]->count, 200);
		cr_expect_eq(notes[2]->count, 50);
		cr_expect_geq(notes[0]->times[9] - begin_ns, 9 * 20 * MS);
		rig_end(&rig);
	}
}

RIG_TEST(cond, none_lets_an_operator_be_ticked_without_messages)
{
	rig_run(rig, &rig_plugin,
		rig_graph(
			s,
			"operators:\n"
			"  tx: {type: source, parameters: {count: 2}}\n"
			"  rx: {type: sink, conditions: [{type: none}, {type: count, count: 500}]}\n"
			"flows: [tx -> rx]\n"));
	cr_expect_eq(notes[0]->ticks, 500);
	/* On threads of their own its 500 ticks may be over before both have come. */
	cr_expect(s == 0 ? notes[0]->count == 2 : notes[0]->count <= 2);
}

RIG_TEST(cond, min_size_gathers)
{
	rig_run(rig, &rig_plugin,
		rig_graph(s, "operators:\n"
			     "  tx: {type: source, parameters: {burst: 3, count: 30},\n"
			     "       conditions: [{type: downstream_affordable, min_size: 3}]}\n"
			     "  rx: {type: sink}\n"
			     "flows: [{from: tx, to: rx, capacity: 3}]\n"));
	/* Three at a time into room for three: nothing is dropped. */
	cr_expect_eq(notes[0]->count, 30);
	cr_expect_eq(rig_dropped_all(rig_row(rig, 0)), 0);
}

/* In every tick but the last, when nothing more can come, at least so many were waiting. */
static void expect_taken(const struct note *note, int64_t least, int64_t all)
{
	int64_t taken = 0;

	cr_assert_gt(note->count, 0);
	for (uint32_t i = 0; i < note->count; i++) {
		taken += note->values[i];
		cr_expect(note->values[i] >= least || i + 1 == note->count,
			  "tick %u of %u took %lld", i, note->count, (long long)note->values[i]);
	}
	cr_expect_eq(taken, all);
}

RIG_TEST(cond, message_available_waits_for_min_size)
{
	rig_run(rig, &rig_plugin,
		rig_graph(
			s,
			"operators:\n"
			"  tx: {type: source, parameters: {count: 100}}\n"
			"  rx: {type: taker, conditions: [{type: message_available, min_size: 3}]}\n"
			"flows: [{from: tx, to: rx, capacity: 4}]\n"));
	expect_taken(notes[0], 3, 100);
}

/* The flows of a plain input count together. */
RIG_TEST(cond, min_size_counts_the_flows_of_an_input_together)
{
	static const struct {
		const char *how;
		int64_t min;
	} cases[] = {
		{"conditions: [{type: message_available, min_size: 4}], ports: {in: {capacity: 4}}",
		 4},
		/* Holoscan's size of a port, and as many as there are flows */
		{"ports: {in: {size: 4}}", 4},
		{"ports: {in: {size: 0, capacity: 4}}", 2},
		/* a queue alone, beside a condition */
		{"ports: {in: {size: 4}}, conditions: [{type: message_available, min_size: 1}]", 1},
	};
	char text[512];

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++, notes_clear()) {
		if (i > 0)
			rig_end(rig);
		snprintf(text, sizeof(text),
			 "operators:\n"
			 "  a: {type: source, parameters: {count: 50}}\n"
			 "  b: {type: source, parameters: {count: 30, work_us: 20}}\n"
			 "  rx: {type: taker, %s}\n"
			 "flows: [a -> rx, b -> rx]\n",
			 cases[i].how);
		rig_run(rig, &rig_plugin, rig_graph(s, text));
		expect_taken(notes[0], cases[i].min, 80);
	}
}

/* A multi-receiver waits for that many on each of its flows, whichever is the slower one. */
Test(cond, min_size_holds_for_each_flow_of_a_multi_receiver)
{
	struct rig rig;
	char text[1024];

	for (int slower = 0; slower < 2; slower++) {
		snprintf(
			text, sizeof(text),
			"operators:\n"
			"  a: {type: source, parameters: {count: 30, work_us: %d}}\n"
			"  b: {type: source, parameters: {count: 30, work_us: %d}}\n"
			"  rx: {type: gather, parameters: {rounds: 3},\n"
			"       conditions: [{type: message_available, min_size: 3}]}\n"
			"flows: [{from: a, to: rx, capacity: 4}, {from: b, to: rx, capacity: 4}]\n",
			slower == 0 ? 30 : 0, slower == 1 ? 30 : 0);
		FOR_EACH_SCHEDULER(s)
		{
			rig_run(&rig, &rig_plugin, rig_graph(s, text));
			cr_expect_eq(notes[0]->count, 60);
			for (uint32_t i = 0; i < notes[0]->count; i++)
				cr_expect_eq(notes[0]->values[i], 1000 * (i % 2) + i / 2,
					     "%u: %lld", i, (long long)notes[0]->values[i]);
			rig_end(&rig);
		}
	}
}

Test(cond, message_available_waits_above_front_stage_max_size)
{
	struct rig rig;

	/*
	 * Three come in one tick, and nobody takes one away: it can only end at rest. Another
	 * thread may take the first one before the third is there.
	 */
	for (size_t s = 0; s < RIG_ONE_THREAD; s++, notes_clear()) {
		rig_run(&rig, &rig_plugin,
			rig_graph(
				s,
				"operators:\n"
				"  tx: {type: source, parameters: {burst: 3, count: 6}}\n"
				"  rx: {type: sink, conditions: [{type: message_available, front_stage_max_size: 2}]}\n"
				"flows: [{from: tx, to: rx, capacity: 8}]\n"));
		cr_expect_eq(notes[0]->count, 0);
		rig_end(&rig);
	}
	FOR_EACH_SCHEDULER(s)
	{
		/* As many as the limit are not more than it. */
		rig_run(&rig, &rig_plugin,
			rig_graph(
				s,
				"operators:\n"
				"  tx: {type: source, parameters: {burst: 2, count: 2}}\n"
				"  rx: {type: sink, conditions: [{type: message_available, front_stage_max_size: 2}]}\n"
				"flows: [{from: tx, to: rx, capacity: 8}]\n"));
		cr_expect_eq(notes[0]->count, 2);
		rig_end(&rig);
		notes_clear();
		rig_run(&rig, &rig_plugin,
			rig_graph(
				s,
				"operators:\n"
				"  tx: {type: source, parameters: {count: 6}}\n"
				"  rx: {type: sink, conditions: [{type: message_available, front_stage_max_size: 2}]}\n"
				"flows: [{from: tx, to: rx, capacity: 2}]\n"));
		cr_expect_eq(notes[0]->count, 6);
		rig_end(&rig);
	}
}

/* Switches another operator's boolean condition on after ten ticks of its own. */
struct switcher {
	struct frag_condition *condition;
	int64_t ticks;
};
static struct frag_condition *the_condition;

static int switched_start(void *state, struct frag_op *op)
{
	the_condition = frag_op_condition(op, "gate");
	return the_condition != NULL ? 0 : -ENOENT;
}

static int switched_compute(void *state, struct frag_tick *tick)
{
	note_add(note_of(0), (int64_t)frag_tick_count(tick));
	return frag_tick_count(tick) == 2 ? FRAG_DONE : 0;
}

static int switcher_compute(void *state, struct frag_tick *tick)
{
	struct switcher *s = state;

	if (++s->ticks < 10)
		return note_of(0)->count == 0 ? 0 : -EBUSY;
	return frag_condition_enable_tick(the_condition) < 0 ? -EINVAL : FRAG_DONE;
}

TEST_OP(switched, .start = switched_start);
TEST_OP(switcher, .state_size = sizeof(struct switcher));

/* Sends its ticks, and disables its own condition in the third. */
static const struct frag_port disabler_ports[] = {{.name = "out", .dir = FRAG_OUT, .type = "i64"}};

static int disabler_compute(void *state, struct frag_tick *tick)
{
	struct frag_condition *gate = frag_op_condition(frag_tick_op(tick), "gate");

	if (frag_tick_count(tick) == 2 && frag_condition_disable_tick(gate) < 0)
		return -EINVAL;
	return frag_tick_emit_i64(tick, 0, (int64_t)frag_tick_count(tick));
}

TEST_OP(disabler, FRAG_PORTS(disabler_ports));
TEST_PLUGIN(switch, &switched_type, &switcher_type, &disabler_type, &sink_type);

RIG_TEST(cond, boolean_is_switched_by_another_operator)
{
	rig_run(rig, &switch_plugin,
		rig_graph(
			s,
			"operators:\n"
			"  a: {type: switched, conditions: [{type: boolean, name: gate, enable_tick: false}]}\n"
			"  b: {type: switcher, conditions: [{type: periodic, recess_period: 1ms}]}\n"));
	cr_expect_eq(rig->failed, 0, "%s", rig->sentence);
	cr_expect_eq(notes[0]->count, 3);
}

/* And with it the operator behind it; the application rests nowhere. */
RIG_TEST(cond, an_operator_that_is_disabled_ends)
{
	rig_prepare_good(
		rig, &switch_plugin,
		rig_graph(s, "operators:\n"
			     "  tx: {type: disabler, conditions: [{type: boolean, name: gate}]}\n"
			     "  rx: {type: sink}\n"
			     "flows: [tx -> rx]\n"));
	rig->is_host = true;
	rig_start(rig);
	cr_assert(rig_wait(rig, rig_is_done, RIG_LIMIT_NS), "it does not end by itself");
	cr_expect_eq(rig->failed, 0, "%s", rig->sentence);
	cr_expect_eq(notes[0]->count, 3);
}

/*
 * Conditions of a plugin. `turns`: so many ticks, not closer together than a time. `latch`: the
 * same until somebody opens it.
 */
struct turns {
	int64_t count, gap;
	int64_t used, next_ns;
};
static int64_t turns_bound, turns_ended;

static int turns_bind(void *state, struct frag_condition *condition, struct frag_err *err)
{
	const struct turns *s = state;

	cr_expect_gt(s->count, 0, "the parameters are in place");
	turns_bound++;
	return 0;
}

static enum frag_ready turns_check(void *state, int64_t now_ns, int64_t *out_until_ns)
{
	const struct turns *s = state;

	if (s->used == s->count)
		return FRAG_NEVER;
	*out_until_ns = s->next_ns;
	return now_ns < s->next_ns ? FRAG_WAIT_TIME : FRAG_READY;
}

static void turns_ticked(void *state, int64_t now_ns)
{
	struct turns *s = state;

	cr_expect_geq(now_ns, s->next_ns, "ticked too early");
	s->used++;
	s->next_ns = now_ns + s->gap;
}

static void turns_fini(void *state)
{
	turns_ended += ((const struct turns *)state)->used;
}

static const struct frag_param turns_params[] = {
	FRAG_PARAM_I64(struct turns, count, 1),
	FRAG_PARAM_DURATION(struct turns, gap, 0),
};
static const struct frag_condition_type turns_type = {
	FRAG_CONDITION_TYPE_INIT,
	.name = "turns",
	.state_size = sizeof(struct turns),
	FRAG_PARAMS(turns_params),
	.flags = FRAG_CONDITION_TIMED | FRAG_CONDITION_ENDS,
	.bind = turns_bind,
	.check = turns_check,
	.ticked = turns_ticked,
	.fini = turns_fini,
};

static enum frag_ready latch_check(void *state, int64_t now_ns, int64_t *out_until_ns)
{
	cr_expect_eq(now_ns, 0, "nobody asked for the time");
	return atomic_load((_Atomic bool *)state) ? FRAG_READY : FRAG_WAIT_EVENT;
}

static const struct frag_condition_type latch_type = {
	FRAG_CONDITION_TYPE_INIT,
	.name = "latch",
	.state_size = sizeof(_Atomic bool),
	.check = latch_check,
};

/* Ready at its tenth check; nobody reports that. */
#define RIPE_CHECKS 10
static _Atomic int ripe_checks;

static enum frag_ready ripe_check(void *state, int64_t now_ns, int64_t *out_until_ns)
{
	return atomic_fetch_add(&ripe_checks, 1) + 1 < RIPE_CHECKS ? FRAG_WAIT : FRAG_READY;
}

static const struct frag_condition_type ripe_type = {
	FRAG_CONDITION_TYPE_INIT,
	.name = "ripe",
	.flags = FRAG_CONDITION_POLLED,
	.check = ripe_check,
};

static int opener_compute(void *state, struct frag_tick *tick)
{
	_Atomic bool *open = frag_condition_state(the_condition, "latch");

	if (frag_tick_count(tick) < 10)
		return note_of(0)->count == 0 ? 0 : -EBUSY;
	atomic_store(open, true);
	frag_condition_changed(the_condition);
	return FRAG_DONE;
}

TEST_OP(opener);
static const struct frag_op_type *const conditioned_ops[] = {&source_type, &sink_type,
							     &switched_type, &opener_type};
static const struct frag_condition_type *const own_conditions[] = {&turns_type, &latch_type,
								   &ripe_type};
static const struct frag_plugin conditioned_plugin = {TEST_PLUGIN_INIT, .name = "conditioned",
						      FRAG_OPS(conditioned_ops),
						      FRAG_CONDITIONS(own_conditions)};

RIG_TEST(cond, a_plugin_has_a_condition_of_time_that_ends)
{
	turns_bound = turns_ended = 0;
	rig_run(rig, &conditioned_plugin,
		rig_graph(s,
			  "operators:\n"
			  "  tx: {type: source, conditions: [{type: turns, count: 8, gap: 2ms}]}\n"
			  "  rx: {type: sink}\n"
			  "flows: [tx -> rx]\n"));
	cr_assert_eq(notes[0]->count, 8);
	cr_expect_eq(turns_bound, 1);
	rig_end(rig);
	cr_expect_eq(turns_ended, 8, "fini has the state");
	notes_clear();
	/* It goes on after its input has ended, because its condition ends it. */
	rig_run(rig, &conditioned_plugin,
		rig_graph(
			s,
			"operators:\n"
			"  tx: {type: source, parameters: {count: 2}}\n"
			"  rx: {type: sink, conditions: [{type: none}, {type: turns, count: 40}]}\n"
			"flows: [tx -> rx]\n"));
	cr_expect_eq(notes[0]->ticks, 40);
}

Test(cond, a_condition_that_is_polled_is_checked_once_in_each_recession_period)
{
	static const char *const kinds[] = {"greedy", "event_based"};
	char graph[400];
	struct rig rig;

	for (size_t i = 0; i < FRAG_COUNT_OF(kinds); i++) {
		atomic_store(&ripe_checks, 0);
		snprintf(
			graph, sizeof(graph),
			"frag: 1\napplication: app\n"
			"scheduler: {type: %s, check_recession_period_ms: 20}\n"
			"operators:\n"
			"  tx: {type: source, parameters: {count: 1}, conditions: [{type: ripe}]}\n"
			"  rx: {type: sink}\n"
			"flows: [tx -> rx]\n",
			kinds[i]);
		rig_run(&rig, &conditioned_plugin, graph);
		cr_expect_eq(rig.failed, 0, "%s", rig.sentence);
		cr_expect_eq(notes[0]->count, 1, "%s", kinds[i]);
		cr_expect_geq(rig.done_ns - rig.start_ns, (RIPE_CHECKS - 1) * 20000000, "%s",
			      kinds[i]);
		rig_end(&rig);
		notes_clear();
	}
}

RIG_TEST(cond, a_condition_of_a_plugin_is_opened_by_another_operator)
{
	rig_run(rig, &conditioned_plugin,
		rig_graph(s, "operators:\n"
			     "  a: {type: switched, conditions: [{type: latch, name: gate}]}\n"
			     "  b: {type: opener, conditions: [{type: count, count: 100}]}\n"));
	cr_expect_eq(rig->failed, 0, "%s", rig->sentence);
	cr_expect_eq(notes[0]->count, 3);
}
