// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>

#include <run/state.h>

#include "rig_ops.h"

/* Execution flows, the start operator and dynamic flows. */

/* Notes the number of each tick; with `pends` each tick is pending once. Ends after done_after. */
struct step {
	int64_t slot, done_after;
	bool pends, pending, reads;
};
static const struct frag_param step_params[] = {
	FRAG_PARAM_I64(struct step, slot, 0), FRAG_PARAM_I64(struct step, done_after, -1),
	FRAG_PARAM_BOOL(struct step, pends, false),
	FRAG_PARAM_BOOL(struct step, reads, false), /* notes what the metadata say instead */
};

static int step_compute(void *state, struct frag_tick *tick)
{
	struct step *s = state;
	int64_t index = -1;

	if (s->pends && !s->pending) {
		s->pending = true;
		frag_op_resume(frag_tick_op(tick));
		return FRAG_PENDING;
	}
	s->pending = false;
	if (s->reads)
		frag_metadata_get_i64(frag_tick_metadata(tick), "index", &index);
	note_add(note_of(s->slot), s->reads ? index : (int64_t)frag_tick_count(tick));
	return (int64_t)frag_tick_count(tick) + 1 == s->done_after ? FRAG_DONE : 0;
}

TEST_OP(step, .state_size = sizeof(struct step), FRAG_PARAMS(step_params));

/*
 * Sends `emit` numbers on `out` in each tick and chooses: `again` in the first `turns` ticks, by
 * execution too with `both`, then `after`; "" chooses nothing. bad: what else the callback does.
 */
struct chooser {
	int64_t slot, turns, emit, next;
	const char *again, *after, *bad;
	bool both;
	const struct frag_op *stranger;
};
static const struct frag_port chooser_ports[] = {{.name = "out", .dir = FRAG_OUT, .type = "i64"}};
static const struct frag_param chooser_params[] = {
	FRAG_PARAM_I64(struct chooser, slot, 0),      FRAG_PARAM_I64(struct chooser, turns, 0),
	FRAG_PARAM_I64(struct chooser, emit, 0),      FRAG_PARAM_STRING(struct chooser, again, ""),
	FRAG_PARAM_STRING(struct chooser, after, ""), FRAG_PARAM_STRING(struct chooser, bad, ""),
	FRAG_PARAM_BOOL(struct chooser, both, false),
};

static int chooser_bad(struct chooser *s, struct frag_tick *tick)
{
	struct frag_op *op = frag_tick_op(tick);
	const struct frag_flow_info *const *flows;
	struct frag_flow_info copy;

	if (strcmp(s->bad, "nothing") == 0)
		return frag_tick_add_dynamic_flow(tick, NULL);
	if (strcmp(s->bad, "null_flow") == 0)
		return frag_tick_add_dynamic_flow_info(tick, NULL);
	if (strcmp(s->bad, "stranger") == 0)
		return frag_tick_add_dynamic_flow(tick, op);
	if (strcmp(s->bad, "ambiguous") == 0 && frag_op_next_flows(op, &flows) > 0)
		return frag_tick_add_dynamic_flow(tick, flows[0]->next);
	if (strcmp(s->bad, "output") == 0 && frag_op_next_flows(op, &flows) > 0)
		return frag_tick_add_dynamic_flow_from(tick, "nowhere", flows[0]->next);
	if (strcmp(s->bad, "foreign") == 0 && frag_op_next_flows(op, &flows) > 0) {
		copy = *flows[0];
		return frag_tick_add_dynamic_flow_info(tick, &copy);
	}
	if (strcmp(s->bad, "ignored") == 0)
		frag_tick_add_dynamic_flow(tick, NULL);
	if (strcmp(s->bad, "positive") == 0)
		return 1;
	return strcmp(s->bad, "fails") == 0 ? -EIO : 0;
}

static int chooser_choose(void *state, struct frag_tick *tick, void *arg)
{
	struct chooser *s = state;
	bool is_again = (int64_t)frag_tick_count(tick) < s->turns;
	const char *next = is_again ? s->again : s->after;
	struct frag_op *op = frag_tick_op(tick);
	const struct frag_flow_info *flow;
	int r;

	cr_assert_null(arg);
	frag_metadata_set_i64(frag_tick_metadata(tick), "index", (int64_t)frag_tick_count(tick));
	if (s->bad[0] != '\0')
		return chooser_bad(s, tick);
	if (next[0] == '\0')
		return 0;
	flow = frag_op_find_flow_info(op, NULL, next);
	cr_assert_not_null(flow, "%s", next);
	r = frag_tick_add_dynamic_flow_info(tick, flow);
	if (r == 0 && is_again && s->both)
		r = frag_tick_add_dynamic_flow_from(tick, FRAG_OUTPUT_EXEC, op);
	return r;
}

static int chooser_setup(void *state, struct frag_op *op)
{
	cr_assert_eq(frag_op_next_flows(op, NULL), 0); /* not yet */
	return frag_set_dynamic_flows(op, chooser_choose, NULL);
}

static int chooser_start(void *state, struct frag_op *op)
{
	if (frag_op_find_flow_info(op, NULL, NULL) == NULL)
		return frag_op_fail(op, -ENOENT, "it has no flows");
	cr_assert_null(frag_op_find_flow_info(op, NULL, "nobody"));
	cr_assert_null(frag_op_find_flow_info(op, "nowhere", NULL));
	cr_assert_null(frag_op_find_flow_info(NULL, NULL, NULL));
	cr_assert_eq(frag_op_next_flows(NULL, NULL), 0);
	cr_assert_eq(frag_set_dynamic_flows(NULL, NULL, NULL), -EINVAL);
	return 0;
}

static int chooser_compute(void *state, struct frag_tick *tick)
{
	struct chooser *s = state;

	note_add(note_of(s->slot), (int64_t)frag_tick_count(tick));
	if (strcmp(s->bad, "outside") == 0)
		return frag_tick_add_dynamic_flow(tick, frag_tick_op(tick));
	for (int64_t i = 0; i < s->emit; i++)
		if (frag_tick_emit_i64(tick, 0, s->next++) < 0)
			return -EIO;
	return 0;
}

TEST_OP(chooser, .state_size = sizeof(struct chooser), FRAG_PORTS(chooser_ports),
	FRAG_PARAMS(chooser_params), .setup = chooser_setup, .start = chooser_start);

/* Passes a number on to its flow of the number's remainder; the last one gets nothing. */
struct router {
	int64_t number;
	struct frag_resource *pool;
};
static const struct frag_port router_ports[] = {
	{.name = "in", .dir = FRAG_IN, .type = "i64"},
	{.name = "out", .dir = FRAG_OUT},
};
static const struct frag_param router_params[] = {
	FRAG_PARAM_RESOURCE(struct router, pool, NULL, .flags = FRAG_PARAM_OPTIONAL),
};

static int router_choose(void *state, struct frag_tick *tick, void *arg)
{
	const struct router *s = state;
	const struct frag_flow_info *const *flows;
	uint32_t count = frag_op_next_flows(frag_tick_op(tick), &flows);
	uint32_t i = (uint32_t)(s->number % (count + 1));

	return i < count ? frag_tick_add_dynamic_flow_info(tick, flows[i]) : 0;
}

static int router_setup(void *state, struct frag_op *op)
{
	return frag_set_dynamic_flows(op, router_choose, NULL);
}

static int router_compute(void *state, struct frag_tick *tick)
{
	struct router *s = state;
	int r = frag_tick_receive_i64(tick, 0, &s->number);

	return r < 0 ? r : frag_tick_emit_i64(tick, 1, s->number);
}

TEST_OP(router, .state_size = sizeof(struct router), FRAG_PORTS(router_ports),
	FRAG_PARAMS(router_params), .setup = router_setup);

/* A loop in C: start, head, body; the second call asks for the operator that is there. */
static int loop_choose(void *state, struct frag_tick *tick, void *arg)
{
	return frag_tick_count(tick) < 4 ? frag_tick_add_dynamic_flow(tick, *(struct frag_op **)arg)
					 : 0;
}

static int loop_compose(struct frag_fragment *fragment)
{
	static struct frag_op *body;
	struct frag_op *head = frag_make_operator(fragment, "head", "step", FRAG_NO_ARGS);

	body = frag_make_operator(fragment, "body", "step", FRAG_ARGS({"slot", "1"}));
	frag_add_flow(fragment, frag_start_op(fragment), NULL, head, NULL);
	cr_assert_eq(frag_start_op(fragment), frag_start_op(fragment));
	frag_add_flow(fragment, head, FRAG_OUTPUT_EXEC, body, FRAG_INPUT_EXEC);
	frag_add_flow(fragment, body, NULL, head, NULL);
	cr_assert_null(frag_start_op(NULL));
	return frag_set_dynamic_flows(head, loop_choose, &body);
}

static int bad_compose(struct frag_fragment *fragment)
{
	static const struct frag_op_type taken = {FRAG_OP_TYPE_INIT, .name = "step2",
						  .compute = step_compute};
	struct frag_op *a = frag_make_operator(fragment, "a", "step", FRAG_NO_ARGS);

	frag_make_operator_of(fragment, "<|start|>", &taken, FRAG_NO_ARGS);
	frag_add_flow(fragment, a, NULL, frag_start_op(fragment), NULL);
	return 0;
}

static const struct frag_op_type *const ops[] = {&source_type, &middle_type,  &sink_type,
						 &step_type,   &chooser_type, &router_type};
static const struct frag_composer composers[] = {{"loop", "A loop", loop_compose},
						 {"bad", "Mistakes", bad_compose}};
static const struct frag_plugin plugin = {TEST_PLUGIN_INIT, .name = "flow_control", FRAG_OPS(ops),
					  FRAG_COMPOSERS(composers)};

/* The row of the first flow from an operator to another. */
static const struct fragi_flow_row *row_of(const struct rig *rig, const char *from, const char *to)
{
	size_t fragment_count, count;
	const struct fragi_fragment_info *fragments =
		fragi_run_fragments(rig->run, &fragment_count);
	const struct fragi_flow_info *flows = fragi_run_flows(rig->run, &count);

	for (size_t i = 0; i < count; i++)
		if (strcmp(fragments[flows[i].from_fragment].ops[flows[i].from_op].name, from) ==
			    0 &&
		    strcmp(fragments[flows[i].to_fragment].ops[flows[i].to_op].name, to) == 0)
			return rig_row(rig, i);
	RIG_FAIL("no flow from %s to %s\n", from, to);
}

static uint64_t sent(const struct rig *rig, const char *from, const char *to)
{
	return atomic_load(&row_of(rig, from, to)->sent);
}

static uint64_t delivered(const struct rig *rig, const char *from, const char *to)
{
	return atomic_load(&row_of(rig, from, to)->delivered);
}

/* The graph under the s-th scheduler; with `ends` it must end by itself: rest does not end it. */
static const char *graph_of(size_t s, const char *rest, bool ends)
{
	static char text[4000];
	const char *scheduler = rig_schedulers[s];

	snprintf(text, sizeof(text), "frag: 1\napplication: app\nscheduler: %.*s%s}\n%s",
		 (int)strlen(scheduler) - 1, scheduler, ends ? ", stop_on_deadlock: false" : "",
		 rest);
	return text;
}

/* Runs it without a failure and without a drop. */
static void run_good(struct rig *rig, const char *text)
{
	size_t count;

	rig_run(rig, &plugin, text);
	cr_assert_eq(rig->failed, 0, "%s", rig->sentence);
	cr_assert(rig_balances(rig));
	fragi_run_flows(rig->run, &count);
	for (size_t i = 0; i < count; i++)
		cr_assert_eq(rig_dropped_all(rig_row(rig, i)), 0);
}

RIG_TEST(flow_control, each_follower_ticks_once)
{
	run_good(rig, graph_of(s,
			       "operators:\n"
			       "  a: {type: step}\n"
			       "  b: {type: step, parameters: {slot: 1, pends: true}}\n"
			       "  c: {type: step, parameters: {slot: 2}}\n"
			       "flows: [<|start|> -> a, a -> b, {from: b, to: c}]\n",
			       true));
	for (int slot = 0; slot < 3; slot++)
		cr_assert_eq(noted(slot), 1);
	cr_assert_eq(sent(rig, "<|start|>", "a"), 1);
	cr_assert_eq(sent(rig, "b", "c"), 1);
}

/* As often as the operator before it, which may have an output for data. */
RIG_TEST(flow_control, a_follower_ticks_as_often)
{
	run_good(rig, graph_of(s,
			       "operators:\n"
			       "  tx: {type: source, parameters: {count: 100}}\n"
			       "  a: {type: step}\n"
			       "  b: {type: step, parameters: {slot: 1}}\n"
			       "  rx: {type: sink, parameters: {slot: 2}}\n"
			       "flows: [tx -> a, tx -> rx, a -> b]\n",
			       true));
	cr_assert_eq(noted(0), 100);
	cr_assert_eq(noted(1), 100);
	cr_assert_eq(noted(2), 100);
}

/* They may tick at the same time, so each has a slot of its own. */
#define FORKED                                                                                     \
	"  a: {type: step}\n"                                                                      \
	"  b: {type: step, parameters: {slot: 2}}\n"                                               \
	"  c: {type: step, parameters: {slot: 3}}\n"
#define FORK                                                                                       \
	"flows:\n"                                                                                 \
	"  - {from: <|start|>, to: [a, b, c]}\n"                                                   \
	"  - a -> join\n  - b -> join\n  - c -> join\n"

/* Each execution message is a tick, unless a condition asks for several. */
RIG_TEST(flow_control, operators_join)
{
	run_good(rig, graph_of(s,
			       "operators:\n" FORKED
			       "  join: {type: step, parameters: {slot: 1}}\n" FORK,
			       true));
	cr_assert_eq(noted(1), 3);
	rig_end(rig);
	notes_clear();
	run_good(
		rig,
		graph_of(
			s,
			"operators:\n" FORKED
			"  join: {type: step, parameters: {slot: 1}, conditions: [{type: message_available, receiver: __input_exec__, min_size: 3}]}\n" FORK,
			true));
	cr_assert_eq(noted(1), 1);
	for (int last = 0; last < 2; last++) { /* of several conditions the largest counts */
		rig_end(rig);
		notes_clear();
		run_good(
			rig,
			graph_of(
				s,
				last ? "operators:\n" FORKED
				       "  join: {type: step, parameters: {slot: 1}, conditions: [{name: x, type: message_available, receiver: __input_exec__, min_size: 2}, {name: y, type: message_available, receiver: __input_exec__, min_size: 3}]}\n" FORK
				     : "operators:\n" FORKED
				       "  join: {type: step, parameters: {slot: 1}, conditions: [{name: x, type: message_available, receiver: __input_exec__, min_size: 3}, {name: y, type: message_available, receiver: __input_exec__, min_size: 2}]}\n" FORK,
				true));
		cr_assert_eq(noted(1), 1);
		for (int i = 0; i < 3; i++)
			cr_assert_eq(delivered(rig, i == 0 ? "a" : i == 1 ? "b" : "c", "join"), 1);
	}
}

#define LOOP(turns)                                                                                \
	"operators:\n"                                                                             \
	"  head: {type: chooser, parameters: {turns: " #turns ", again: body, after: last}}\n"     \
	"  body: {type: step, parameters: {slot: 1, reads: true}}\n"                               \
	"  tail: {type: step, parameters: {slot: 2}}\n"                                            \
	"  last: {type: step, parameters: {slot: 3, reads: true}}\n"                               \
	"flows:\n"                                                                                 \
	"  - <|start|> -> head\n"                                                                  \
	"  - {from: head, to: [body, last], dynamic: true}\n"                                      \
	"  - body -> tail\n"                                                                       \
	"  - tail -> head\n"

/* The callback's metadata come with the execution message. */
RIG_TEST(flow_control, a_loop_turns_as_often_as_its_head_chooses)
{
	run_good(rig, graph_of(s, LOOP(20), false));
	cr_assert_eq(noted(0), 21);
	cr_assert_eq(noted(1), 20);
	cr_assert_eq(noted(2), 20);
	cr_assert_eq(noted(3), 1);
	for (int i = 0; i < 20; i++)
		cr_assert_eq(notes[1]->values[i], i);
	cr_assert_eq(notes[3]->values[0], 20);
	cr_assert_eq(sent(rig, "head", "last"), 1);
	cr_assert_eq(sent(rig, "tail", "head"), 20);
}

RIG_TEST(flow_control, a_loop_of_c)
{
	run_good(rig, graph_of(s, "compose: loop\n", false));
	cr_assert_eq(noted(0), 5);
	cr_assert_eq(noted(1), 4);
}

/* As Holoscan's example "streaming". It ends without a rest: nothing can tick it any more. */
RIG_TEST(flow_control, an_operator_ticks_itself)
{
	run_good(
		rig,
		graph_of(
			s,
			"operators:\n"
			"  head: {type: chooser, parameters: {turns: 50, emit: 1, again: rx, both: true}}\n"
			"  rx: {type: sink, parameters: {slot: 1}}\n"
			"flows:\n"
			"  - <|start|> -> head\n"
			"  - {from: head, to: head, dynamic: true}\n"
			"  - {from: head.out, to: rx.in, dynamic: true}\n",
			true));
	cr_assert_eq(noted(0), 51);
	cr_assert_eq(noted(1), 50);
	cr_assert_eq(sent(rig, "head", "head"), 50);
}

/* Its own end is no receiver that it goes on for, and without another reason it never ticks. */
RIG_TEST(flow_control, an_operator_is_no_receiver_of_its_own)
{
	rig_run(rig, &plugin,
		graph_of(
			s,
			"operators:\n"
			"  head: {type: chooser, parameters: {turns: 1000000000, emit: 1, again: rx, both: true}}\n"
			"  rx: {type: sink, parameters: {slot: 1, done_after: 7}}\n"
			"  alone: {type: step, parameters: {slot: 2}}\n"
			"flows: [<|start|> -> head, head -> head, head.out -> rx.in, alone -> alone]\n",
			true));
	cr_assert_eq(rig->failed, 0, "%s", rig->sentence);
	cr_assert(rig_balances(rig));
	cr_assert_eq(noted(1), 7);
	cr_assert_eq(noted(2), 0);
}

/* What is not routed is neither sent nor dropped. */
RIG_TEST(flow_control, each_message_takes_its_way)
{
	run_good(rig, graph_of(s,
			       "operators:\n"
			       "  tx: {type: source, parameters: {count: 900}}\n"
			       "  route: {type: router}\n"
			       "  rx0: {type: sink}\n"
			       "  rx1: {type: sink, parameters: {slot: 1}}\n"
			       "flows:\n"
			       "  - tx -> route\n"
			       "  - {from: route, to: [rx0, rx1], dynamic: true}\n",
			       true));
	cr_assert_eq(noted(0), 300);
	cr_assert_eq(noted(1), 300);
	for (int i = 0; i < 300; i++) {
		cr_assert_eq(notes[0]->values[i], 3 * i);
		cr_assert_eq(notes[1]->values[i], 3 * i + 1);
	}
	cr_assert_eq(sent(rig, "route", "rx0"), 300);
	cr_assert_eq(sent(rig, "tx", "route"), 900);
}

RIG_TEST(flow_control, a_flow_that_nobody_chooses_is_fine)
{
	run_good(
		rig,
		graph_of(
			s,
			"operators:\n"
			"  a: {type: chooser, parameters: {emit: 3}}\n"
			"  rx: {type: sink, parameters: {slot: 1}}\n"
			"flows: [<|start|> -> a, {from: a.out, to: rx, dynamic: true, capacity: 3}]\n",
			true));
	cr_assert_eq(noted(0), 1);
	cr_assert_eq(noted(1), 0);
	cr_assert_eq(sent(rig, "a", "rx"), 0);
}

/* Several of one tick arrive in order. */
RIG_TEST(flow_control, all_that_a_tick_sends_is_routed)
{
	run_good(
		rig,
		graph_of(
			s,
			"operators:\n"
			"  a: {type: chooser, parameters: {emit: 20, turns: 1, again: rx}}\n"
			"  rx: {type: sink, parameters: {slot: 1}}\n"
			"flows: [<|start|> -> a, {from: a.out, to: rx, dynamic: true, capacity: 20}]\n",
			true));
	cr_assert_eq(noted(1), 20);
	for (int i = 0; i < 20; i++)
		cr_assert_eq(notes[1]->values[i], i);
}

RIG_TEST(flow_control, flows_lead_to_another_fragment)
{
	char text[2000];

	snprintf(
		text, sizeof(text),
		"frag: 1\napplication: app\nfragments:\n"
		"  f:\n    scheduler: %s\n    operators:\n"
		"      head: {type: chooser, parameters: {turns: 30, emit: 1, again: g.rx, after: g.last}}\n"
		"    flows: [<|start|> -> head]\n"
		"  g:\n    scheduler: %s\n    operators:\n"
		"      rx: {type: sink, parameters: {slot: 1}}\n"
		"      last: {type: step, parameters: {slot: 2}}\n"
		"  gg:\n    scheduler: %s\n    operators:\n"
		"      rx: {type: sink, parameters: {slot: 3}}\n"
		"flows:\n" /* also to one of that name in a fragment whose name begins so */
		"  - {from: f.head.out, to: gg.rx.in, dynamic: true}\n"
		"  - {from: f.head.out, to: g.rx.in, dynamic: true}\n"
		"  - g.rx -> f.head\n"
		"  - {from: f.head, to: g.last, dynamic: true}\n",
		rig_schedulers[s], rig_schedulers[s], rig_schedulers[s]);
	run_good(rig, text);
	cr_assert_eq(noted(0), 31);
	cr_assert_eq(noted(1), 30);
	cr_assert_eq(noted(2), 1);
	cr_assert_eq(noted(3), 0);
	cr_assert_eq(sent(rig, "head", "last"), 1);
}

static bool turns_on(struct rig *rig)
{
	return noted(0) > 200;
}

/* A drain ends a loop that would never end, and nothing that was sent is lost for it. */
Test(flow_control, a_drain_ends_a_loop)
{
	FOR_EACH_SCHEDULER(s)
	{
		static const char *const graphs[] = {
			LOOP(1000000000),
			"operators:\n"
			"  head: {type: chooser, parameters: {turns: 1000000000, again: head}}\n"
			"flows: [<|start|> -> head, head -> head]\n"};

		for (size_t i = 0; i < FRAG_COUNT_OF(graphs); i++, notes_clear()) {
			struct rig rig;

			rig_prepare_good(&rig, &plugin, rig_graph(s, graphs[i]));
			rig_start(&rig);
			cr_assert(rig_wait(&rig, turns_on, RIG_LIMIT_NS));
			fragi_run_drain(rig.run);
			cr_assert(rig_wait(&rig, rig_is_done, RIG_LIMIT_NS));
			cr_assert_eq(rig.failed, 0);
			cr_assert(rig_balances(&rig));
			rig_end(&rig);
		}
	}
}

/* Bad input. */

static void fails_with(const char *bad, const char *flows, const char *sentence)
{
	char text[1000];
	struct rig rig;

	snprintf(text, sizeof(text),
		 "operators:\n"
		 "  a: {type: chooser, parameters: {bad: %s, emit: 1}}\n"
		 "  b: {type: step, parameters: {slot: 1}}\n"
		 "  rx: {type: sink, parameters: {slot: 2}}\n"
		 "flows: [<|start|> -> a%s]\n",
		 bad, flows);
	FOR_EACH_SCHEDULER(s)
	{
		rig_run(&rig, &plugin, rig_graph(s, text));
		cr_expect_eq(rig.failed, 1, "%s", bad);
		cr_expect(strstr(rig.sentence, sentence) != NULL, "%s: %s", bad, rig.sentence);
		cr_expect_eq((strstr(flows, "a -> b") != NULL ? noted(1) : 0) + noted(2), 0);
		cr_expect(rig_balances(&rig));
		rig_end(&rig);
	}
}

static void fails(const char *bad, const char *sentence)
{
	fails_with(bad, ", a -> rx, a -> b, a -> rx.__input_exec__", sentence);
}

Test(flow_control, a_bad_choice_fails_the_operator)
{
	fails_with("null_flow", ", a -> rx",
		   "cannot add a dynamic flow: it is NULL; its flows lead to app.rx");
	fails("nothing", "app.a: cannot add a dynamic flow: the next operator is NULL");
	fails("null_flow",
	      "cannot add a dynamic flow: it is NULL; its flows lead to app.rx, app.b, app.rx");
	fails("stranger",
	      "cannot add a dynamic flow: none leads to app.a; its flows lead to app.rx, app.b, app.rx");
	fails("ambiguous",
	      "cannot add a dynamic flow: several lead to app.rx, at out and __output_exec__; name the output, or pass the flow");
	fails("output", "cannot add a dynamic flow: none leads from nowhere to app.rx");
	fails("foreign", "cannot add a dynamic flow: it leads away from another operator");
	fails("ignored", "the next operator is NULL");
	fails("positive",
	      "the callback that chooses its flows returned 1; return 0 or a negative errno");
	fails("fails", "the callback that chooses its flows returned -5");
	fails("outside",
	      "a dynamic flow can only be added in the callback of frag_set_dynamic_flows");
}

static void refused(const char *rest, const char *sentences)
{
	char line[2048], all[8192] = "";
	struct rig rig;

	cr_assert_lt(rig_prepare(&rig, &plugin, rig_graph(0, rest)), 0);
	for (size_t i = 0; i < rig.diag.count; i++) {
		strcat(all, fragi_err_line(&rig.diag.items[i], line, sizeof(line)));
		strcat(all, "\n");
	}
	cr_expect_str_eq(all, sentences);
	rig_end(&rig);
}

#define OPS                                                                                        \
	"operators:\n  a: {type: step}\n  rx: {type: sink}\n  tx: {type: source}\n"                \
	"  c: {type: chooser}\nflows:\n  - tx -> rx\n"

Test(flow_control, mistakes_of_a_graph_are_refused)
{
	refused(OPS "  - {from: tx, to: a, dynamic: true}\n",
		"test.yaml:11:5: app.tx: a flow that begins here is dynamic, but the operator (type source) chooses no flows; leave dynamic out, or take a type that calls frag_set_dynamic_flows\n");
	refused(OPS "  - <|start|> -> rx\n",
		"test.yaml:11:5: flow end app.<|start|>: the operator has no outputs; it begins execution flows: to operators without inputs, or to __input_exec__\n");
	refused(OPS "  - a -> <|start|>\n",
		"test.yaml:11:5: flow end app.<|start|>: flows only begin at the start operator\n");
	refused(OPS "  - a -> rx\n",
		"test.yaml:11:5: flow end app.a: the operator has no outputs\n");
	refused(OPS "  - tx.out -> a\n",
		"test.yaml:11:5: flow end app.a: the operator has no inputs\n");
	refused(OPS "  - tx.out -> a.__input_exec__\n  - a.__output_exec__ -> rx.in\n",
		"test.yaml:11:5: flow app.tx.out -> app.a.__input_exec__: only one of these ports is for execution; connect __output_exec__ with __input_exec__, or an output with an input\n"
		"test.yaml:12:5: flow app.a.__output_exec__ -> app.rx.in: only one of these ports is for execution; connect __output_exec__ with __input_exec__, or an output with an input\n");
	refused(OPS "  - <|strat|> -> a\n  - {from: tx, to: a, dynamic: maybe}\n",
		"test.yaml:11:5: app: \"<|strat|>\" is not a valid end of a flow; write OPERATOR.PORT or OPERATOR\n"
		"test.yaml:12:32: app: dynamic \"maybe\" is neither true nor false\n");
	refused("operators: {<|start|>: {type: step}}\n",
		"test.yaml:4:13: app: operator \"<|start|>\" is not a valid name; a name begins with a letter, goes on with letters, digits, - and _, and has at most 63 characters\n");
	refused("compose: bad\n",
		"app: \"<|start|>\" is not a valid name of an operator; write a letter, then letters, digits, _ or -, 63 at most\n"
		"flow end app.<|start|>: flows only begin at the start operator\n");
}

/* Each flow of a dynamic output may hold other messages; execution messages hold no blocks. */
RIG_ONE_TEST(flow_control, pools_need_blocks_for_each_way)
{
	rig_run(rig, &plugin,
		rig_graph(
			0,
			"resources:\n  pool: {type: block_memory_pool, block_size: 64, num_blocks: 1}\n"
			"operators:\n"
			"  tx: {type: source, parameters: {count: 1}}\n"
			"  route: {type: router, parameters: {pool: $pool}}\n"
			"  a: {type: sink}\n  b: {type: sink}\n  c: {type: step}\n"
			"flows:\n"
			"  - tx -> route\n"
			"  - {from: route, to: a, capacity: 2}\n"
			"  - {from: route, to: b, capacity: 3}\n"
			"  - {from: route, to: c, capacity: 100}\n"));
	cr_assert_eq(rig->run->fragments[0].fragment->resources[0]->blocks_needed, 2 + 3 + 1);
}
