// SPDX-License-Identifier: Apache-2.0
#include <base/alloc.h>
#include <cond/condition.h>
#include <type/params.h>

#include "graph_texts.h"
#include "input_ops.h"

#define MS 1000000

/* Conditions that look at what waits at inputs, at memory, and at events from outside. */

/* A built-in condition with its parameters, without a graph. */
static void *make(const struct fragi_built_in_condition *built_in, const struct frag_arg *args)
{
	static struct fragi_arena arena;
	const struct frag_condition_type *type = &built_in->type;
	void *state = fragi_arena_alloc(&arena, type->state_size);
	struct fragi_spec_setting *settings;
	struct fragi_diag diag = {0};
	size_t count;

	cr_assert_eq(fragi_settings_from_args(&arena, args, &settings, &count), 0);
	cr_assert_eq(
		fragi_params_fill(&(struct fragi_param_table){type->params, type->param_count,
							      type->param_size},
				  settings, count, state,
				  &(struct fragi_param_context){.arena = &arena, .diag = &diag}),
		0);
	return state;
}

static struct fragi_waiting open_with(uint64_t count, int64_t oldest_ns)
{
	return (struct fragi_waiting){.count = count, .least = count, .oldest_ns = oldest_ns};
}

static struct fragi_waiting closed_with(uint64_t count, int64_t oldest_ns)
{
	return (struct fragi_waiting){
		.count = count, .least = UINT64_MAX, .oldest_ns = oldest_ns, .ended = count == 0};
}

Test(inputs, a_batch_or_the_time_of_its_oldest_message)
{
	const struct fragi_built_in_condition *type = &fragi_condition_expiring_message_available;
	void *state = make(type, FRAG_ARGS({"max_batch_size", "3"}, {"max_delay_ns", "10ms"}));
	struct fragi_waiting waiting;
	int64_t until = 0;

#define CHECK(now) type->check_inputs(state, &waiting, 1, now, &until)
	waiting = open_with(0, 0);
	cr_expect_eq(CHECK(100 * MS), FRAG_WAIT);
	waiting = open_with(2, 95 * MS);
	cr_expect_eq(CHECK(100 * MS), FRAG_WAIT_TIME);
	cr_expect_eq(until, 105 * MS);
	cr_expect_eq(CHECK(105 * MS - 1), FRAG_WAIT_TIME);
	cr_expect_eq(CHECK(105 * MS), FRAG_READY);
	waiting = open_with(3, 100 * MS);
	cr_expect_eq(CHECK(100 * MS), FRAG_READY);
	waiting = closed_with(1, 100 * MS);
	cr_expect_eq(CHECK(100 * MS), FRAG_READY, "no other will come");
	waiting = closed_with(0, 0);
	cr_expect_eq(CHECK(100 * MS), FRAG_NEVER);
	/* of a message from another clock, the time counts from when it was seen */
	waiting = open_with(1, FRAGI_TIME_UNKNOWN);
	cr_expect_eq(CHECK(200 * MS), FRAG_WAIT_TIME);
	cr_expect_eq(until, 210 * MS);
	cr_expect_eq(CHECK(209 * MS), FRAG_WAIT_TIME);
	cr_expect_eq(until, 210 * MS);
	cr_expect_eq(CHECK(210 * MS), FRAG_READY);
	type->type.ticked(state, 210 * MS);
	cr_expect_eq(CHECK(211 * MS), FRAG_WAIT_TIME);
	cr_expect_eq(until, 221 * MS, "the next message has a time of its own");
	/* also when others have taken the one before, without a tick */
	waiting = open_with(0, 0);
	cr_expect_eq(CHECK(215 * MS), FRAG_WAIT);
	waiting = open_with(1, FRAGI_TIME_UNKNOWN);
	cr_expect_eq(CHECK(230 * MS), FRAG_WAIT_TIME);
	cr_expect_eq(until, 240 * MS);
#undef CHECK
}

Test(inputs, a_sum_or_each_input)
{
	const struct fragi_built_in_condition *type = &fragi_condition_multi_message_available;
	void *sum = make(type, FRAG_ARGS({"min_sum", "4"}));
	void *each =
		make(type, FRAG_ARGS({"sampling_mode", "PerReceiver"}, {"min_sizes", "[2, 1]"}));
	void *ones = make(type, FRAG_ARGS({"sampling_mode", "per_receiver"}));
	struct fragi_waiting w[2];

#define CHECK(state) type->check_inputs(state, w, 2, 0, NULL)
	w[0] = open_with(3, 0), w[1] = open_with(0, 0);
	cr_expect_eq(CHECK(sum), FRAG_WAIT);
	cr_expect_eq(CHECK(each), FRAG_WAIT);
	cr_expect_eq(CHECK(ones), FRAG_WAIT);
	w[1] = open_with(1, 0);
	cr_expect_eq(CHECK(sum), FRAG_READY);
	cr_expect_eq(CHECK(each), FRAG_READY);
	w[0] = open_with(1, 0), w[1] = open_with(3, 0);
	cr_expect_eq(CHECK(sum), FRAG_READY);
	cr_expect_eq(CHECK(each), FRAG_WAIT);
	cr_expect_eq(CHECK(ones), FRAG_READY);
	/* one has ended: the others may still bring the sum, but not the ended one its messages */
	const struct {
		struct fragi_waiting w[2];
		enum frag_ready sum, each;
	} ends[] = {
		{{closed_with(0, 0), open_with(2, 0)}, FRAG_WAIT, FRAG_NEVER},
		{{open_with(2, 0), closed_with(0, 0)}, FRAG_WAIT, FRAG_NEVER},
		/* also beside one that waits, on either side */
		{{closed_with(0, 0), open_with(0, 0)}, FRAG_WAIT, FRAG_NEVER},
		{{open_with(1, 0), closed_with(0, 0)}, FRAG_WAIT, FRAG_NEVER},
		{{open_with(1, 0), open_with(0, 0)}, FRAG_WAIT, FRAG_WAIT},
		{{closed_with(0, 0), open_with(4, 0)}, FRAG_READY, FRAG_NEVER},
		{{open_with(4, 0), closed_with(0, 0)}, FRAG_READY, FRAG_NEVER},
		{{closed_with(2, 0), open_with(1, 0)}, FRAG_WAIT, FRAG_READY},
		{{open_with(2, 0), closed_with(1, 0)}, FRAG_WAIT, FRAG_READY},
		/* what is left is enough */
		{{closed_with(0, 0), closed_with(2, 0)}, FRAG_READY, FRAG_NEVER},
		{{closed_with(1, 0), closed_with(0, 0)}, FRAG_READY, FRAG_NEVER},
		{{closed_with(0, 0), closed_with(0, 0)}, FRAG_NEVER, FRAG_NEVER},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(ends); i++) {
		memcpy(w, ends[i].w, sizeof(w));
		cr_expect_eq(CHECK(sum), ends[i].sum, "%zu", i);
		cr_expect_eq(CHECK(each), ends[i].each, "%zu", i);
	}
#undef CHECK
}

Test(inputs, a_timeout_counts_from_the_last_tick)
{
	const struct fragi_built_in_condition *type =
		&fragi_condition_multi_message_available_timeout;
	void *state = make(type, FRAG_ARGS({"execution_frequency", "10ms"}, {"min_sum", "2"}));
	struct fragi_waiting w = open_with(0, 0);
	int64_t until = 0;

#define CHECK(now) type->check_inputs(state, &w, 1, now, &until)
	cr_expect_eq(CHECK(100 * MS), FRAG_WAIT_TIME);
	cr_expect_eq(until, 110 * MS);
	w = open_with(1, 0);
	cr_expect_eq(CHECK(109 * MS), FRAG_WAIT_TIME);
	cr_expect_eq(CHECK(110 * MS), FRAG_READY);
	w = open_with(2, 0);
	cr_expect_eq(CHECK(101 * MS), FRAG_READY);
	type->type.ticked(state, 101 * MS);
	w = open_with(0, 0);
	cr_expect_eq(CHECK(102 * MS), FRAG_WAIT_TIME);
	cr_expect_eq(until, 111 * MS);
	w = closed_with(0, 0);
	cr_expect_eq(CHECK(103 * MS), FRAG_NEVER);
	/* with a tolerance a message that comes meanwhile is taken along */
	state = make(type, FRAG_ARGS({"execution_frequency", "10ms"}, {"tolerance", "4ms"},
				     {"min_sum", "9"}));
	w = open_with(1, 0);
	cr_expect_eq(CHECK(100 * MS), FRAG_WAIT_TIME);
	cr_expect_eq(until, 114 * MS);
	w = open_with(2, 0);
	cr_expect_eq(CHECK(109 * MS), FRAG_WAIT_TIME);
	cr_expect_eq(CHECK(111 * MS), FRAG_READY);
#undef CHECK
}

/* The messages that taker, or two, has noted, and the fewest that it took in a tick. */
static int64_t taken(int64_t *out_fewest)
{
	int64_t sum = 0;

	*out_fewest = INT64_MAX;
	for (uint32_t i = 0; i < noted(0); i++) {
		sum += notes[0]->values[i];
		/* the last one may be the rest */
		if (i + 1 < noted(0) && notes[0]->values[i] < *out_fewest)
			*out_fewest = notes[0]->values[i];
	}
	return sum;
}

RIG_TEST(inputs, a_batch_is_gathered_and_the_rest_is_taken_at_the_end)
{
	int64_t fewest;

	rig_run(rig, &inputs_plugin,
		rig_graph(
			s,
			"operators:\n"
			"  tx: {type: source, parameters: {count: 32}}\n"
			"  rx: {type: taker, conditions: [{type: expiring_message_available, max_batch_size: 3, max_delay_ns: 1h}]}\n"
			"flows: [{from: tx, to: rx, capacity: 4}]\n"));
	cr_expect_eq(taken(&fewest), 32);
	cr_expect_geq(fewest, 3);
}

RIG_TEST(inputs, a_message_is_not_held_for_longer_than_its_delay)
{
	int64_t fewest, begin_ns;

	begin_ns = fragi_now_ns();
	/*
	 * The input stays open, and no second message comes. Two clocks may disagree by a
	 * little.
	 */
	rig_run(rig, &inputs_plugin,
		rig_graph(
			s,
			"operators:\n"
			"  tx: {type: source, parameters: {count: 1}}\n"
			"  silent: {type: source, conditions: [{type: boolean, enable_tick: false}]}\n"
			"  rx: {type: taker, conditions: [{type: expiring_message_available, max_batch_size: 2, max_delay_ns: 20ms}]}\n"
			"flows: [tx -> rx, silent -> rx]\n"));
	cr_assert_eq(noted(0), 1);
	cr_expect_eq(taken(&fewest), 1);
	cr_expect_geq(notes[0]->times[0] - begin_ns, 19 * MS);
}

RIG_TEST(inputs, messages_of_several_inputs_count_together)
{
	rig_run(rig, &inputs_plugin,
		rig_graph(
			s,
			"operators:\n"
			"  tx: {type: source, parameters: {count: 9}}\n"
			"  silent: {type: source, conditions: [{type: boolean, enable_tick: false}]}\n"
			"  rx: {type: two, parameters: {most_a: 3}, conditions: [{type: multi_message_available, min_sum: 3}]}\n"
			"flows: [{from: tx, to: rx.a, capacity: 3}, silent -> rx.b]\n"));
	cr_assert_eq(noted(0), 3);
	for (uint32_t i = 0; i < 3; i++)
		cr_expect_eq(notes[0]->values[i], 3000);
}

static const char *const each_of_two[] = {
	"{type: two, parameters: {most_a: 2, most_b: 1}, conditions: [{type: multi_message_available, receivers: [b, a], sampling_mode: PerReceiver, min_sizes: [1, 2]}]}",
	"{type: two_of_c, parameters: {most_a: 2, most_b: 1}}",
};

Test(inputs, each_of_several_inputs_has_its_number)
{
	struct rig rig;
	char text[600];

	for (size_t i = 0; i < FRAG_COUNT_OF(each_of_two); i++) {
		snprintf(text, sizeof(text),
			 "operators:\n"
			 "  one: {type: source, parameters: {count: 10}}\n"
			 "  other: {type: source, parameters: {count: 5}}\n"
			 "  rx: %s\n"
			 "flows: [{from: one, to: rx.a, capacity: 2}, other -> rx.b]\n",
			 each_of_two[i]);
		FOR_EACH_SCHEDULER(s)
		{
			rig_run(&rig, &inputs_plugin, rig_graph(s, text));
			cr_expect_eq(noted(0), 5, "%u", noted(0));
			for (uint32_t k = 0; k < noted(0); k++)
				cr_expect_eq(notes[0]->values[k], 2001, "%lld",
					     (long long)notes[0]->values[k]);
			rig_end(&rig);
		}
	}
}

/* An input that no flow leads to asks for nothing, and it has not ended. */
Test(inputs, one_that_is_not_connected_asks_for_nothing)
{
	static const char *const conditions[] = {
		"multi_message_available, sampling_mode: PerReceiver",
		"multi_message_available, sampling_mode: PerReceiver, receivers: [b, a]",
		"multi_message_available, min_sum: 1",
		"multi_message_available_timeout, sampling_mode: PerReceiver, execution_frequency: 1h",
	};
	struct rig rig;
	char text[400];

	for (size_t i = 0; i < FRAG_COUNT_OF(conditions); i++)
		FOR_EACH_SCHEDULER(s)
		{
			snprintf(
				text, sizeof(text),
				"operators:\n"
				"  one: {type: source, parameters: {count: 10}}\n"
				"  rx: {type: two, parameters: {most_a: 1}, conditions: [{type: %s}]}\n"
				"flows: [one -> rx.a]\n",
				conditions[i]);
			rig_run(&rig, &inputs_plugin, rig_graph(s, text));
			cr_expect_eq(noted(0), 10, "%s: %u", conditions[i], noted(0));
			rig_end(&rig);
		}
}

RIG_TEST(inputs, ticks_without_messages_come_with_the_timeout)
{
	rig_run(rig, &inputs_plugin,
		rig_graph(
			s,
			"operators:\n"
			"  silent: {type: source, conditions: [{type: boolean, enable_tick: false}]}\n"
			"  rx: {type: two, conditions: [{type: multi_message_available_timeout, execution_frequency: 200hz}, {type: count, count: 4}]}\n"
			"flows: [silent -> rx.a, silent -> rx.b]\n"));
	cr_assert_eq(noted(0), 4);
	for (uint32_t i = 0; i < 4; i++)
		cr_expect_eq(notes[0]->values[i], 0);
	cr_expect_geq(notes[0]->times[3] - rig->start_ns, 4 * 5 * MS);
}

/* Messages on the flows of a plain input count together, those of a multi-receiver each. */
RIG_TEST(inputs, several_flows_and_multi_receivers)
{
	rig_run(rig, &inputs_plugin,
		rig_graph(
			s,
			"operators:\n"
			"  a: {type: source, parameters: {count: 6}}\n"
			"  b: {type: source, parameters: {count: 6}}\n"
			"  silent: {type: source, conditions: [{type: boolean, enable_tick: false}]}\n"
			"  rx: {type: gather, parameters: {rounds: 2}, conditions: [{type: multi_message_available, sampling_mode: PerReceiver, min_sizes: [2]}]}\n"
			"  ry: {type: gather, parameters: {slot: 1}, conditions: [{type: multi_message_available, min_sum: 2}]}\n"
			"flows: [{from: a, to: rx, capacity: 2}, {from: b, to: rx, capacity: 2}, {from: a, to: ry, capacity: 2}, {from: b, to: ry, capacity: 2}, silent -> ry]\n"));
	cr_expect_eq(noted(0), 12);
	for (uint32_t i = 0; i < noted(0); i++)
		cr_expect_eq(notes[0]->values[i], 1000 * (i % 2) + i / 2);
}

static const char *const sums[] = {
	"{type: multi_message_available, receivers: [in], min_sum: 4}",
	"{type: message_available, min_size: 4}",
	"{type: expiring_message_available, max_batch_size: 4, max_delay_ns: 1h}",
};

/* The flow that is left holds fewer than are asked for. */
Test(inputs, a_flow_that_has_ended_does_not_hold_up_the_others)
{
	int64_t fewest;
	struct rig rig;
	char text[500];

	for (size_t i = 0; i < FRAG_COUNT_OF(sums); i++) {
		snprintf(
			text, sizeof(text),
			"operators:\n"
			"  few: {type: source, parameters: {count: 3}}\n"
			"  many: {type: source, parameters: {count: 50}}\n"
			"  rx: {type: taker, conditions: [%s]}\n"
			"flows: [{from: few, to: rx, capacity: 2}, {from: many, to: rx, capacity: 2}]\n",
			sums[i]);
		FOR_EACH_SCHEDULER(s)
		{
			rig_run(&rig, &inputs_plugin, rig_graph(s, text));
			cr_expect_eq(taken(&fewest), 53, "%s", sums[i]);
			cr_expect_geq(fewest, 2);
			rig_end(&rig);
		}
	}
}

static const char *const memory_conditions[] = {"min_blocks: 1", "min_bytes: 64", "min_blocks: 2",
						"min_bytes: 128"};

Test(inputs, memory_is_there_before_it_is_taken)
{
	struct rig rig;
	char text[900];

	for (size_t i = 0; i < FRAG_COUNT_OF(memory_conditions); i++) {
		snprintf(
			text, sizeof(text),
			"resources: {pool: {type: block_memory_pool, block_size: 64, num_blocks: 2}, heap: {type: unbounded_allocator}}\n"
			"operators:\n"
			"  tx: {type: borrower, parameters: {pool: $pool, count: 40}, conditions: [{type: memory_available, allocator: $pool, %s}]}\n"
			"  rx: {type: lender, parameters: {pool: $pool, count: 40}, conditions: [{type: periodic, recess_period: 100us}, {type: memory_available, allocator: $heap, min_bytes: 1GB}]}\n",
			memory_conditions[i]);
		FOR_EACH_SCHEDULER(s)
		{
			rig_run(&rig, &inputs_plugin, rig_graph(s, text));
			cr_expect_eq(rig.failed, 0, "%s", rig.sentence);
			cr_expect_eq(noted(0), 40);
			rig_end(&rig);
		}
	}
}

/*
 * A time that is far away hides none that is near, in whatever order they come; one of them is
 * given up whenever rx has its batch.
 */
Test(inputs, a_time_that_is_far_hides_none_that_is_near)
{
	static const char *const orders[] = {"near, far", "far, near"};
	const struct fragi_op_row *ops;
	struct rig rig;
	char text[900];

	for (size_t i = 0; i < 4; i++)
		FOR_EACH_SCHEDULER(s)
		{
			const bool is_far_first = i % 2 != 0;

			snprintf(
				text, sizeof(text),
				"%s%s%s"
				"operators:\n"
				"  long: {type: source, parameters: {count: 40}, conditions: [{type: periodic, recess_period: 3ms}]}\n"
				"  %s: {type: source, parameters: {count: 9}, conditions: [{type: periodic, recess_period: %s}]}\n"
				"  %s: {type: source, parameters: {count: 9}, conditions: [{type: periodic, recess_period: %s}]}\n"
				"  rx: {type: taker, conditions: [{type: expiring_message_available, max_batch_size: 2, max_delay_ns: 1h}]}\n"
				"  ry: {type: sink, parameters: {slot: 1}}\n"
				"  rz: {type: sink, parameters: {slot: 2}}\n"
				"flows: [long -> rz, {from: near, to: rx, capacity: 4}, far -> ry]\n",
				i < 2 ? ""
				      : "thread_pools: {p: {initial_size: 1, add: [{operators: [",
				i < 2 ? "" : orders[i % 2], i < 2 ? "" : ", rx]}]}}\n",
				is_far_first ? "far" : "near", is_far_first ? "1h" : "2ms",
				is_far_first ? "near" : "far", is_far_first ? "2ms" : "1h");
			notes_clear();
			rig_prepare_good(&rig, &inputs_plugin, rig_graph(s, text));
			rig_start(&rig);
			ops = fragi_run_ledger(rig.run)->ops;
			RIG_AWAIT(atomic_load(&ops[1 + is_far_first].ticks) >= 9);
			RIG_AWAIT(atomic_load(&ops[0].ticks) >= 40); /* rx waits no more */
			fragi_run_halt(rig.run);
			cr_assert(rig_wait(&rig, rig_is_done, RIG_LIMIT_NS));
			cr_expect_eq(rig.failed, 0, "%s", rig.sentence);
			rig_end(&rig);
		}
}

Test(inputs, an_event_from_outside_keeps_the_application_alive)
{
	struct rig rig;

	FOR_EACH_SCHEDULER(s)
	{
		rig_run(&rig, &inputs_plugin,
			rig_graph(
				s,
				"operators:\n"
				"  op: {type: asker, conditions: [{type: asynchronous, name: event}]}\n"));
		cr_expect_eq(rig.failed, 0, "%s", rig.sentence);
		cr_expect_eq(noted(0), 5);
		rig_end(&rig);
		notes_clear();
		/* as a term too */
		rig_run(&rig, &inputs_plugin,
			rig_graph(
				s,
				"operators:\n"
				"  op: {type: asker, conditions: [{type: asynchronous, name: event}, {type: boolean, name: off, enable_tick: false}, {type: or, terms: [event, off]}]}\n"));
		cr_expect_eq(noted(0), 5);
		rig_end(&rig);
	}
	cr_expect_eq(frag_condition_event_state(NULL), -EINVAL);
	cr_expect_eq(frag_condition_set_event_state(NULL, FRAG_EVENT_DONE), -EINVAL);
}
