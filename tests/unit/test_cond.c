// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>

#include <cond/cond.h>

#include "rig_ops.h"

#define MS 1000000

static struct frag_condition periodic(const char *policy, int64_t period)
{
	struct frag_condition c = {.type = fragi_cond_type_find("periodic")};

	c.params.policy = policy;
	c.params.recess_period = period;
	fragi_cond_reset(&c);
	return c;
}

/* Ticks begin at these times; the next is due at `due`. */
static void expect_due(const char *policy, const int64_t *ticks, size_t count, int64_t due)
{
	struct frag_condition c = periodic(policy, 10 * MS);
	int64_t until = 0;

	for (size_t i = 0; i < count; i++) {
		cr_expect_eq(c.type->check(&c, ticks[i], &until), FRAGI_READY, "%s: tick %zu",
			     policy, i);
		c.type->ticked(&c, ticks[i]);
	}
	cr_expect_eq(c.type->check(&c, due - 1, &until), FRAGI_WAIT_TIME);
	cr_expect_eq(until, due, "%s: %lld", policy, (long long)until);
	cr_expect_eq(c.type->check(&c, due, &until), FRAGI_READY);
}

Test(cond, periodic_policies)
{
	/* Due at 100, 110, 120 ...; the third begins 27 ms late. */
	static const int64_t late[] = {100 * MS, 110 * MS, 147 * MS};
	static const int64_t caught[] = {100 * MS, 110 * MS, 147 * MS, 147 * MS, 148 * MS};

	expect_due("catch_up_missed_ticks", caught, 5, 150 * MS);
	expect_due("min_time_between_ticks", late, 3, 157 * MS);
	expect_due("no_catch_up_missed_ticks", late, 3, 150 * MS);
	expect_due("no_catch_up_missed_ticks", (const int64_t[]){100 * MS, 120 * MS}, 2, 130 * MS);
}

Test(cond, count_and_boolean)
{
	struct frag_condition c = {.type = fragi_cond_type_find("count")};
	int64_t until;

	c.params.count = 2;
	fragi_cond_reset(&c);
	cr_expect_eq(c.type->check(&c, 0, &until), FRAGI_READY);
	c.type->ticked(&c, 0);
	c.type->ticked(&c, 0);
	cr_expect_eq(c.type->check(&c, 0, &until), FRAGI_NEVER);
	cr_expect_eq(frag_condition_enable_tick(&c), -EINVAL);
	c = (struct frag_condition){.type = fragi_cond_type_find("boolean")};
	c.params.enable_tick = true;
	fragi_cond_reset(&c);
	cr_expect_eq(c.type->check(&c, 0, &until), FRAGI_READY);
	cr_expect_eq(frag_condition_disable_tick(&c), 0);
	cr_expect_eq(c.type->check(&c, 0, &until), FRAGI_WAIT_EVENT);
	cr_expect_eq(frag_condition_enable_tick(&c), 0);
	cr_expect_eq(c.type->check(&c, 0, &until), FRAGI_READY);
	cr_expect_null(fragi_cond_type_find("periodc"));
}

Test(cond, count_ends_an_operator)
{
	struct rig rig;

	FOR_EACH_SCHEDULER(s)
	{
		rig_run(&rig, &rig_plugin,
			rig_graph(s, "operators:\n"
				     "  tx: {type: source, conditions: [{type: count, count: 7}]}\n"
				     "  rx: {type: sink}\n"
				     "flows: [tx -> rx]\n"));
		cr_expect_eq(notes[0]->count, 7);
		cr_expect_eq(notes[SLOTS - 1]->ticks, 7);
		rig_end(&rig);
	}
}

Test(cond, periodic_ticks_are_not_early)
{
	struct rig rig;

	FOR_EACH_SCHEDULER(s)
	{
		rig_run(&rig, &rig_plugin,
			rig_graph(s, "operators:\n"
				     "  tx: {type: source, parameters: {count: 20},\n"
				     "       conditions: [{type: periodic, recess_period: 5ms,\n"
				     "                     policy: min_time_between_ticks}]}\n"
				     "  rx: {type: sink}\n"
				     "flows: [tx -> rx]\n"));
		cr_assert_eq(notes[0]->count, 20);
		cr_expect_geq(notes[0]->times[19] - notes[0]->times[0], 18 * 5 * MS);
		rig_end(&rig);
	}
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

Test(cond, none_lets_an_operator_be_ticked_without_messages)
{
	struct rig rig;

	FOR_EACH_SCHEDULER(s)
	{
		rig_run(&rig, &rig_plugin,
			rig_graph(
				s,
				"operators:\n"
				"  tx: {type: source, parameters: {count: 2}}\n"
				"  rx: {type: sink, conditions: [{type: none}, {type: count, count: 500}]}\n"
				"flows: [tx -> rx]\n"));
		cr_expect_eq(notes[0]->ticks, 500);
		/* On threads of their own its 500 ticks may be over before both have come. */
		cr_expect(s == 0 ? notes[0]->count == 2 : notes[0]->count <= 2);
		rig_end(&rig);
	}
}

Test(cond, min_size_gathers)
{
	struct rig rig;

	FOR_EACH_SCHEDULER(s)
	{
		rig_run(&rig, &rig_plugin,
			rig_graph(
				s,
				"operators:\n"
				"  tx: {type: source, parameters: {burst: 3, count: 30},\n"
				"       conditions: [{type: downstream_affordable, min_size: 3}]}\n"
				"  rx: {type: sink}\n"
				"flows: [{from: tx, to: rx, capacity: 3}]\n"));
		/* Three at a time into room for three: nothing is dropped. */
		cr_expect_eq(notes[0]->count, 30);
		cr_expect_eq(rig_dropped_all(rig_row(&rig, 0)), 0);
		rig_end(&rig);
	}
}

/* Takes all that waits and writes down how many that were. */
static int taker_compute(void *state, struct frag_tick *tick)
{
	int64_t x, n = 0;

	(void)state;
	while (frag_tick_receive_i64(tick, 0, &x) == 0)
		n++;
	note_add(note_of(0), n);
	return 0;
}

static const struct frag_op_type taker_type = {
	FRAG_OP_TYPE_INIT,
	.name = "taker",
	FRAG_PORTS(sink_ports),
	.compute = taker_compute,
};
static const struct frag_op_type *const taker_ops[] = {&taker_type, &source_type};
static const struct frag_plugin taker_plugin = {.struct_size = sizeof(struct frag_plugin),
						.abi_major = FRAG_ABI_MAJOR,
						.name = "taker",
						.version = "1",
						FRAG_OPS(taker_ops)};

Test(cond, message_available_waits_for_min_size)
{
	struct rig rig;

	FOR_EACH_SCHEDULER(s)
	{
		int64_t taken = 0;

		rig_run(&rig, &taker_plugin,
			rig_graph(
				s,
				"operators:\n"
				"  tx: {type: source, parameters: {count: 100}}\n"
				"  rx: {type: taker, conditions: [{type: message_available, min_size: 3}]}\n"
				"flows: [{from: tx, to: rx, capacity: 4}]\n"));
		cr_assert_gt(notes[0]->count, 0);
		for (uint32_t i = 0; i < notes[0]->count; i++) {
			taken += notes[0]->values[i];
			cr_expect(notes[0]->values[i] >= 3 || i + 1 == notes[0]->count,
				  "tick %u of %u took %lld", i, notes[0]->count,
				  (long long)notes[0]->values[i]);
		}
		cr_expect_eq(taken, 100);
		rig_end(&rig);
	}
}

Test(cond, message_available_waits_above_front_stage_max_size)
{
	struct rig rig;

	FOR_EACH_SCHEDULER(s)
	{
		/* Three come at once, and nobody takes one away: it can only end at rest. */
		rig_run(&rig, &rig_plugin,
			rig_graph(
				s,
				"operators:\n"
				"  tx: {type: source, parameters: {burst: 3, count: 6}}\n"
				"  rx: {type: sink, conditions: [{type: message_available, front_stage_max_size: 2}]}\n"
				"flows: [{from: tx, to: rx, capacity: 8}]\n"));
		cr_expect_eq(notes[0]->count, 0);
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
	(void)state;
	the_condition = frag_op_condition(op, "gate");
	return the_condition != NULL ? 0 : -ENOENT;
}

static int switched_compute(void *state, struct frag_tick *tick)
{
	(void)state;
	note_add(note_of(0), (int64_t)frag_tick_count(tick));
	return frag_tick_count(tick) == 2 ? FRAG_DONE : 0;
}

static int switcher_compute(void *state, struct frag_tick *tick)
{
	struct switcher *s = state;

	(void)tick;
	if (++s->ticks < 10)
		return note_of(0)->count == 0 ? 0 : -EBUSY;
	return frag_condition_enable_tick(the_condition) < 0 ? -EINVAL : FRAG_DONE;
}

static const struct frag_op_type switched_type = {
	FRAG_OP_TYPE_INIT,
	.name = "switched",
	.start = switched_start,
	.compute = switched_compute,
};
static const struct frag_op_type switcher_type = {
	FRAG_OP_TYPE_INIT,
	.name = "switcher",
	.state_size = sizeof(struct switcher),
	.compute = switcher_compute,
};
static const struct frag_op_type *const switch_ops[] = {&switched_type, &switcher_type};
static const struct frag_plugin switch_plugin = {.struct_size = sizeof(struct frag_plugin),
						 .abi_major = FRAG_ABI_MAJOR,
						 .name = "switch",
						 .version = "1",
						 FRAG_OPS(switch_ops)};

Test(cond, boolean_is_switched_by_another_operator)
{
	struct rig rig;

	FOR_EACH_SCHEDULER(s)
	{
		rig_run(&rig, &switch_plugin,
			rig_graph(
				s,
				"operators:\n"
				"  a: {type: switched, conditions: [{type: boolean, name: gate, enable_tick: false}]}\n"
				"  b: {type: switcher, conditions: [{type: periodic, recess_period: 1ms}]}\n"));
		cr_expect_eq(rig.failed, 0, "%s", rig.sentence);
		cr_expect_eq(notes[0]->count, 3);
		rig_end(&rig);
	}
}
