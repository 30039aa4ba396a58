// SPDX-License-Identifier: Apache-2.0
#include <base/alloc.h>
#include <cond/condition.h>
#include <type/params.h>

#include "graph_texts.h"
#include "rig_ops.h"

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
	cr_expect_eq(frag_condition_set_event_state(s->event, FRAG_EVENT_NEVER + 1), -EINVAL);
	cr_expect_eq(frag_condition_set_event_state(s->event, FRAG_EVENT_READY - 1), -EINVAL);
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

#define BAD(graph, lines)                                                                          \
	do {                                                                                       \
		struct rig rig;                                                                    \
		cr_expect_lt(                                                                      \
			rig_prepare(&rig, &inputs_plugin, "frag: 1\napplication: app\n" graph),    \
			0);                                                                        \
		expect_errors(&rig.diag, lines);                                                   \
		rig_end(&rig);                                                                     \
	} while (0)

Test(inputs, what_the_queues_can_never_hold_is_refused)
{
	BAD("operators:\n"
	    "  tx: {type: source, conditions: [{type: downstream_affordable, min_size: 3}]}\n"
	    "  rx: {type: sink, conditions: [{type: message_available, min_size: 3}]}\n"
	    "  ry: {type: gather, conditions: [{type: message_available, min_size: 3}]}\n"
	    "  rz: {type: taker, conditions: [{type: expiring_message_available, max_batch_size: 5, max_delay_ns: 1ms}]}\n"
	    "  r2: {type: two, conditions: [{type: multi_message_available, min_sum: 6}]}\n"
	    "  r3: {type: two, conditions: [{type: multi_message_available, sampling_mode: PerReceiver, min_sizes: [2, 3]}]}\n"
	    "  r4: {type: sink, conditions: [{type: message_available, min_size: 2}]}\n"
	    "  ty: {type: source}\n"
	    "flows:\n"
	    "  - {from: tx, to: rx, capacity: 2}\n"
	    "  - {from: tx, to: ry, capacity: 4}\n"
	    "  - {from: ty, to: ry, capacity: 2}\n"
	    "  - {from: tx, to: rz, capacity: 4}\n"
	    "  - {from: tx, to: r2.a, capacity: 3}\n"
	    "  - {from: tx, to: r2.b, policy: latest}\n"
	    "  - {from: ty, to: r3.a, capacity: 2}\n"
	    "  - {from: ty, to: r3.b, capacity: 2}\n"
	    "  - {from: ty, to: r4, policy: latest}\n",
	    "test.yaml:4:35: app.tx: condition downstream_affordable: it asks for room for 3 messages, and a flow of port \"out\" holds 2 at most; give a larger capacity, or ask for less\n"
	    "test.yaml:5:33: app.rx: condition message_available: it asks for 3 messages, and the flow of port \"in\" holds 2 at most; give a larger capacity, or ask for less\n"
	    "test.yaml:6:35: app.ry: condition message_available: it asks for 3 messages, and a flow of port \"receivers\" holds 2 at most; give a larger capacity, or ask for less\n"
	    "test.yaml:7:34: app.rz: condition expiring_message_available: it asks for 5 messages, and the flow of port \"in\" holds 4 at most; give a larger capacity, or ask for less\n"
	    "test.yaml:8:32: app.r2: condition multi_message_available: it asks for 6 messages, and the flows of its inputs hold 4 at most; give a larger capacity, or ask for less\n"
	    "test.yaml:9:32: app.r3: condition multi_message_available: it asks for 3 messages, and the flow of port \"b\" holds 2 at most; give a larger capacity, or ask for less\n"
	    "test.yaml:10:33: app.r4: condition message_available: it asks for 2 messages, and the flow of port \"in\" holds 1 at most; give a larger capacity, or ask for less\n");
	BAD("operators: {ty: {type: source}, rx: {type: sink, conditions: [{type: message_available, min_size: 3, front_stage_max_size: 2}]}}\n"
	    "flows: [{from: ty, to: rx, capacity: 8}]\n",
	    "test.yaml:3:63: app.rx: condition message_available: min_size is 3 and front_stage_max_size 2, so no number of messages is right; lower min_size\n");
}

#define GOOD(graph)                                                                                \
	do {                                                                                       \
		struct rig rig;                                                                    \
		rig_prepare_good(&rig, &inputs_plugin, "frag: 1\napplication: app\n" graph);       \
		rig_end(&rig);                                                                     \
	} while (0)

/* As much as the queues can hold, in each of the ways that the refusals above have. */
Test(inputs, what_fits_is_not_refused)
{
	GOOD("operators:\n"
	     "  tx: {type: source, conditions: [{type: downstream_affordable, min_size: 3}]}\n"
	     "  rx: {type: sink, conditions: [{type: message_available, min_size: 3}]}\n"
	     "  ry: {type: taker, conditions: [{type: message_available, min_size: 6}]}\n"
	     "  rz: {type: sink, conditions: [{type: message_available, min_size: 2, front_stage_max_size: 2}]}\n"
	     "  rw: {type: two, conditions: [{type: multi_message_available, sampling_mode: PerReceiver, min_sizes: [65536, 1]}]}\n"
	     "  ty: {type: source}\n"
	     "flows:\n"
	     "  - {from: tx, to: rx, capacity: 3}\n"
	     "  - {from: tx, to: ry, capacity: 1, policy: pop}\n"
	     "  - {from: ty, to: ry, capacity: 5}\n"
	     "  - {from: ty, to: rz, capacity: 2}\n"
	     "  - {from: ty, to: rw.a, capacity: 65536}\n"
	     "  - {from: ty, to: rw.b, capacity: 1}\n");
	GOOD("operators:\n"
	     "  tx: {type: source}\n"
	     "  ty: {type: source}\n"
	     "  ry: {type: gather, conditions: [{type: message_available, min_size: 3}]}\n"
	     "  rz: {type: taker, conditions: [{type: expiring_message_available, max_batch_size: 4, max_delay_ns: 1ms}]}\n"
	     "  r2: {type: two, conditions: [{type: multi_message_available, min_sum: 4}]}\n"
	     "  r3: {type: two, conditions: [{type: multi_message_available, sampling_mode: PerReceiver, min_sizes: [2, 3]}]}\n"
	     "flows:\n"
	     "  - {from: tx, to: ry, capacity: 3}\n"
	     "  - {from: ty, to: ry, capacity: 4}\n"
	     "  - {from: tx, to: rz, capacity: 4}\n"
	     "  - {from: tx, to: r2.a, capacity: 3}\n"
	     "  - {from: tx, to: r2.b, policy: latest}\n"
	     "  - {from: ty, to: r3.a, capacity: 2}\n"
	     "  - {from: ty, to: r3.b, capacity: 3}\n");
	GOOD("fragments:\n"
	     "  one: {operators: {tx: {type: source, conditions: [{type: downstream_affordable, min_size: 5}]}}}\n"
	     "  two: {operators: {rx: {type: sink, conditions: [{type: message_available, min_size: 5}]}}}\n"
	     "flows: [{from: one.tx, to: two.rx, capacity: 5}]\n");
	GOOD("fragments:\n"
	     "  one: {operators: {tx: {type: source, conditions: [{type: downstream_affordable, min_size: 5}]}}}\n"
	     "  two: {operators: {rx: {type: sink}}}\n"
	     "flows: [{from: one.tx, to: two.rx, capacity: 4, policy: pop}]\n");
	/* What an input asks for says nothing about the room behind an output. */
	GOOD("fragments:\n"
	     "  one:\n"
	     "    operators: {tx: {type: source}, mid: {type: middle, conditions: [{type: message_available, min_size: 5}]}}\n"
	     "    flows: [{from: tx, to: mid, capacity: 5}]\n"
	     "  two: {operators: {rx: {type: sink}}}\n"
	     "flows: [one.mid -> two.rx]\n");
}

Test(inputs, between_fragments_too)
{
	BAD("fragments:\n"
	    "  one: {operators: {tx: {type: source, conditions: [{type: downstream_affordable, min_size: 5}]}}}\n"
	    "  two: {operators: {rx: {type: sink, conditions: [{type: message_available, min_size: 5}]}}}\n"
	    "flows: [one.tx -> two.rx]\n",
	    "test.yaml:5:51: two.rx: condition message_available: it asks for 5 messages, and the flow of port \"in\" holds 4 at most; give a larger capacity, or ask for less\n");
	BAD("fragments:\n"
	    "  one: {operators: {tx: {type: source, conditions: [{type: downstream_affordable, min_size: 5}]}}}\n"
	    "  two: {operators: {rx: {type: sink}}}\n"
	    "flows: [one.tx -> two.rx]\n",
	    "test.yaml:6:9: one.tx: a condition of output \"out\" asks for room for 5 messages, and a flow of it holds 4 at most; give the flow a larger capacity, or ask for less\n");
	/* The condition that asks for most counts, whichever comes first. */
	BAD("fragments:\n"
	    "  one: {operators: {tx: {type: source, conditions: [{type: downstream_affordable, min_size: 5}, {type: downstream_affordable, name: again, min_size: 2}]}}}\n"
	    "  two: {operators: {rx: {type: sink}}}\n"
	    "flows: [one.tx -> two.rx]\n",
	    "test.yaml:6:9: one.tx: a condition of output \"out\" asks for room for 5 messages, and a flow of it holds 4 at most; give the flow a larger capacity, or ask for less\n");
	BAD("fragments:\n"
	    "  one: {operators: {tx: {type: source, conditions: [{type: downstream_affordable, min_size: 2}, {type: downstream_affordable, name: again, min_size: 5}]}}}\n"
	    "  two: {operators: {rx: {type: sink}}}\n"
	    "flows: [one.tx -> two.rx]\n",
	    "test.yaml:6:9: one.tx: a condition of output \"out\" asks for room for 5 messages, and a flow of it holds 4 at most; give the flow a larger capacity, or ask for less\n");
	BAD("fragments:\n"
	    "  one: {operators: {tx: {type: source, conditions: [{type: downstream_affordable, min_size: 5}]}}}\n"
	    "  two: {operators: {rx: {type: sink}}}\n"
	    "flows: [{from: one.tx, to: two.rx, capacity: 4}]\n",
	    "test.yaml:4:53: one.tx: condition downstream_affordable: it asks for room for 5 messages, and the flow of port \"out\" holds 4 at most; give a larger capacity, or ask for less\n");
}

Test(inputs, mistakes_are_refused_with_a_sentence)
{
	BAD("resources: {pool: {type: block_memory_pool, block_size: 64, num_blocks: 2}, heap: {type: unbounded_allocator}, gpu: {type: stream_ordered_allocator, device_memory_initial_size: 1K, device_memory_max_size: 2K}}\n"
	    "operators:\n"
	    "  a: {type: borrower, parameters: {pool: $pool}, conditions: [{type: memory_available, allocator: $pool}]}\n"
	    "  b: {type: borrower, parameters: {pool: $pool}, conditions: [{type: memory_available, allocator: $pool, min_blocks: 3}]}\n"
	    "  c: {type: borrower, parameters: {pool: $pool}, conditions: [{type: memory_available, allocator: $pool, min_bytes: 129}]}\n"
	    "  d: {type: borrower, parameters: {pool: $pool}, conditions: [{type: memory_available, allocator: $heap, min_blocks: 1}]}\n"
	    "  e: {type: borrower, parameters: {pool: $pool}, conditions: [{type: memory_available, allocator: $poll, min_blocks: 1}]}\n"
	    "  f: {type: borrower, parameters: {pool: $pool}, conditions: [{type: memory_available, min_blocks: 1}]}\n"
	    "  g: {type: two, conditions: [{type: multi_message_available, min_sizes: [1, 1]}]}\n"
	    "  h: {type: two, conditions: [{type: multi_message_available, sampling_mode: PerReceiver, min_sizes: [1]}]}\n"
	    "  i: {type: two, conditions: [{type: multi_message_available, receivers: [a, c]}]}\n"
	    "  j: {type: two, conditions: [{type: multi_message_available, receivers: [a, a]}]}\n"
	    "  k: {type: two, conditions: [{type: multi_message_available, sampling_mode: PerReceiver, min_sizes: [1, 0]}]}\n"
	    "  l: {type: borrower, parameters: {pool: $pool}, conditions: [{type: multi_message_available}]}\n"
	    "  m: {type: two, conditions: [{type: expiring_message_available, receiver: a, max_batch_size: 2}]}\n"
	    "  n: {type: two, conditions: [{type: multi_message_available_timeout, sampling_mode: Sum}]}\n"
	    "  o: {type: borrower, parameters: {pool: $pool}, conditions: [{type: memory_available, allocator: $gpu, min_bytes: 2049}]}\n"
	    "  p: {type: borrower, parameters: {pool: $pool}, conditions: [{type: memory_available, allocator: $gpu, min_bytes: 2048}]}\n"
	    "  q: {type: two, conditions: [{type: multi_message_available, sampling_mode: PerReceiver, min_sizes: [1, 1, 1]}]}\n"
	    "  r: {type: two, conditions: [{type: multi_message_available, sampling_mode: PerReceiver, min_sizes: [65537, 1]}]}\n"
	    "  ty: {type: source}\n"
	    "flows: [ty -> q.a, ty -> q.b, ty -> r.a, ty -> r.b, ty -> g.a, ty -> g.b, ty -> h.a, ty -> h.b, ty -> i.a, ty -> i.b, ty -> j.a, ty -> j.b, ty -> k.a, ty -> k.b, ty -> m.a, ty -> m.b, ty -> n.a, ty -> n.b]\n",
	    "test.yaml:5:63: app.a: condition memory_available: give either min_bytes or min_blocks, more than 0\n"
	    "test.yaml:6:63: app.b: condition memory_available: min_blocks is 3, and resource \"pool\" has 2 blocks; lower min_blocks, or raise its num_blocks\n"
	    "test.yaml:7:63: app.c: condition memory_available: min_bytes is 129, and resource \"pool\" has 128 bytes; lower min_bytes, or make the pool larger\n"
	    "test.yaml:8:63: app.d: condition memory_available: resource \"heap\" has no blocks; give min_bytes\n"
	    "test.yaml:9:99: app.e: condition memory_available: parameter \"allocator\": there is no resource \"poll\"; did you mean \"pool\"?\n"
	    "test.yaml:10:63: app.f: condition memory_available: parameter \"allocator\" (resource) is required and not set\n"
	    "test.yaml:11:31: app.g: condition multi_message_available: min_sizes counts in sampling_mode PerReceiver only; give min_sum, or that mode\n"
	    "test.yaml:12:31: app.h: condition multi_message_available: min_sizes is a list of 1, and there are 2 inputs; give one number for each\n"
	    "test.yaml:13:31: app.i: condition multi_message_available: there is no input \"c\"; its inputs: a, b\n"
	    "test.yaml:14:31: app.j: condition multi_message_available: port \"a\" is named twice\n"
	    "test.yaml:15:31: app.k: condition multi_message_available: min_sizes has 0; give numbers from 1 to 65536\n"
	    "test.yaml:16:63: app.l: condition multi_message_available: the operator has no inputs\n"
	    "test.yaml:17:31: app.m: condition expiring_message_available: parameter \"max_delay_ns\" (duration) is required and not set\n"
	    "test.yaml:18:31: app.n: condition multi_message_available_timeout: parameter \"execution_frequency\" (duration) is required and not set\n"
	    "test.yaml:18:86: app.n: condition multi_message_available_timeout: parameter \"sampling_mode\": \"Sum\" is not a valid choice; choices: SumOfAll, PerReceiver\n"
	    "test.yaml:19:63: app.o: condition memory_available: min_bytes is 2049, and resource \"gpu\" has 2048 bytes; lower min_bytes, or make the pool larger\n"
	    "test.yaml:21:31: app.q: condition multi_message_available: min_sizes is a list of 3, and there are 2 inputs; give one number for each\n"
	    "test.yaml:22:31: app.r: condition multi_message_available: min_sizes has 65537; give numbers from 1 to 65536\n");
}
