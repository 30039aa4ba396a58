// SPDX-License-Identifier: Apache-2.0
#include <base/alloc.h>
#include <cond/condition.h>
#include <sched/exec.h>

#include "graph_texts.h"
#include "rig_ops.h"

/* Takes what waits at either of two inputs; notes 1000 * input + value. */
struct either {
	int64_t slot;
	bool combines; /* in setup */
};
static const struct frag_port either_ports[] = {
	{.name = "a", .dir = FRAG_IN, .type = "i64"},
	{.name = "b", .dir = FRAG_IN, .type = "i64"},
};
static const struct frag_param either_params[] = {
	FRAG_PARAM_I64(struct either, slot, 0),
	FRAG_PARAM_BOOL(struct either, combines, false),
};

static int either_setup(void *state, struct frag_op *op)
{
	const struct either *s = state;

	return s->combines ? frag_or_combine_port_conditions(op, (const char *const[]){"a", "b"}, 2)
			   : 0;
}

static int either_compute(void *state, struct frag_tick *tick)
{
	struct note *note = note_of(((const struct either *)state)->slot);
	int64_t x;

	atomic_fetch_add(&note->ticks, 1);
	for (uint32_t i = 0; i < 2; i++)
		if (frag_tick_receive_i64(tick, i, &x) == 0)
			note_add(note, 1000 * i + x);
	return 0;
}

TEST_OP(either, .state_size = sizeof(struct either), FRAG_PORTS(either_ports),
	FRAG_PARAMS(either_params), .setup = either_setup);

/* Only counts its ticks. */
static int ticker_compute(void *state, struct frag_tick *tick)
{
	note_add(note_of(0), frag_tick_time_ns(tick));
	atomic_fetch_add(&note_of(0)->ticks, 1);
	return 0;
}

TEST_OP(ticker);

/* Answers what its parameter says. */
struct fixed {
	int64_t ready, until;
};
static const struct frag_param fixed_params[] = {
	FRAG_PARAM_I64(struct fixed, ready, 0),
	FRAG_PARAM_I64(struct fixed, until, 0),
};

static enum frag_ready fixed_check(void *state, int64_t now_ns, int64_t *out_until_ns)
{
	const struct fixed *s = state;

	*out_until_ns = s->until;
	return (enum frag_ready)s->ready;
}

static const struct frag_condition_type fixed_type = {
	FRAG_CONDITION_TYPE_INIT,  .name = "fixed",      .state_size = sizeof(struct fixed),
	FRAG_PARAMS(fixed_params), .check = fixed_check,
};

/* A combination of the plugin's own: so many of the terms are ready. */
struct at_least {
	int64_t least;
	struct frag_string_list terms;
};
static const struct frag_param at_least_params[] = {
	FRAG_PARAM_I64(struct at_least, least, 1),
	FRAG_PARAM_STRING_LIST(struct at_least, terms, NULL),
};

static enum frag_ready at_least_combine(void *state, const struct frag_term *terms, uint32_t count,
					int64_t *out_until_ns)
{
	const struct at_least *s = state;
	int64_t ready = 0;

	cr_expect_eq(count, s->terms.count);
	for (uint32_t i = 0; i < count; i++) {
		cr_expect_str_eq(terms[i].name, s->terms.items[i]);
		ready += terms[i].ready == FRAG_READY;
	}
	return ready >= s->least ? FRAG_READY : FRAG_WAIT_EVENT;
}

static const struct frag_condition_type at_least_type = {
	FRAG_CONDITION_TYPE_INIT,
	.name = "at_least",
	.state_size = sizeof(struct at_least),
	FRAG_PARAMS(at_least_params),
	.combine = at_least_combine,
};

/* Notes its callbacks. */
struct life {
	int64_t bind_returns, initialize_returns, start_returns, check_returns;
	struct frag_condition *condition;
};
static const struct frag_param life_params[] = {FRAG_PARAM_I64(struct life, bind_returns, 0),
						FRAG_PARAM_I64(struct life, initialize_returns, 0),
						FRAG_PARAM_I64(struct life, start_returns, 0),
						FRAG_PARAM_I64(struct life, check_returns, 0)};
static char lived[16];

static int live(char c)
{
	lived[strlen(lived)] = c;
	return 0;
}

static int live_and_return(char c, int64_t r, struct frag_err *err)
{
	live(c);
	return r == -ENODEV ? frag_err_set(err, -ENODEV, "there is no device; plug one in")
			    : (int)r;
}

static int life_bind(void *state, struct frag_condition *condition, struct frag_err *err)
{
	struct life *life = state;

	life->condition = condition;
	cr_expect_str_eq(frag_op_name(frag_condition_op(condition)), "op");
	cr_expect_eq(frag_condition_context(condition), lived);
	return live_and_return('b', life->bind_returns, err);
}

static int life_initialize(void *state, struct frag_condition *condition, struct frag_err *err)
{
	return live_and_return('i', ((const struct life *)state)->initialize_returns, err);
}

static int life_start(void *state, struct frag_condition *condition, struct frag_err *err)
{
	return live_and_return('s', ((const struct life *)state)->start_returns, err);
}

static enum frag_ready life_check(void *state, int64_t now_ns, int64_t *out_until_ns)
{
	struct life *life = state;

	(void)now_ns, (void)out_until_ns;
	return life->check_returns == -ENODEV
		       ? frag_condition_fail(life->condition, -ENODEV, "there is no %s", "device")
		       : (enum frag_ready)life->check_returns;
}

static int life_stop(void *state, struct frag_condition *condition)
{
	(void)state, (void)condition;
	return live('p');
}

static void life_fini(void *state)
{
	live('f');
}

static const struct frag_condition_type life_type = {
	FRAG_CONDITION_TYPE_INIT,
	.name = "life",
	.state_size = sizeof(struct life),
	FRAG_PARAMS(life_params),
	.bind = life_bind,
	.check = life_check,
	.fini = life_fini,
	.initialize = life_initialize,
	.start = life_start,
	.stop = life_stop,
	.context = lived,
};

static const struct frag_op_type *const ops[] = {&source_type, &sink_type, &either_type,
						 &ticker_type};
static const struct frag_condition_type *const conditions[] = {&fixed_type, &at_least_type,
							       &life_type};
static const struct frag_plugin plugin = {TEST_PLUGIN_INIT, .name = "combining", FRAG_OPS(ops),
					  FRAG_CONDITIONS(conditions)};

static void nobody(void *exec)
{
}

/* What an operator with conditions of these answers, until these times, is answered. */
static enum frag_ready evaluate_times(const char *first, const char *first_until,
				      const char *second, const char *second_until, bool or,
				      int64_t *until_ns)
{
	struct fragi_registry *registry;
	struct frag_fragment *fragment;
	struct fragi_diag diag = {0};
	struct fragi_op_row row = {0};
	struct frag_err err = FRAG_ERR_INIT;
	enum frag_ready ready;
	struct frag_op *op;

	cr_assert_eq(fragi_registry_create(&(struct fragi_registry_config){0}, &registry), 0);
	cr_assert_eq(fragi_registry_add(registry, "combining", &plugin, &err), 0);
	cr_assert_eq(fragi_fragment_begin("f", NULL, NULL, registry, &diag, &fragment), 0);
	op = frag_make_operator(fragment, "op", "ticker", FRAG_NO_ARGS);
	cr_assert_eq(frag_add_operator(fragment, op), 0);
	frag_make_condition(op, "a", "fixed", FRAG_ARGS({"ready", first}, {"until", first_until}));
	frag_make_condition(op, "b", "fixed",
			    FRAG_ARGS({"ready", second}, {"until", second_until}));
	if (or)
		frag_make_condition(op, NULL, "or", FRAG_ARGS({"terms", "[a, $b]"}));
	cr_assert_eq(fragi_fragment_complete(fragment), 0);
	cr_assert_eq(fragi_exec_create(op, NULL, &row, NULL, nobody), 0);
	ready = fragi_exec_ready_all(op->exec);
	*until_ns = ((struct fragi_exec *)op->exec)->until_ns;
	fragi_exec_destroy(op);
	fragi_fragment_destroy(fragment);
	fragi_registry_destroy(registry);
	fragi_diag_fini(&diag);
	return ready;
}

static enum frag_ready evaluate(const char *first, const char *second, bool or, int64_t *until_ns)
{
	return evaluate_times(first, "70", second, "50", or, until_ns);
}

static const char *const answers[] = {"0", "1", "2", "3", "4"};

Test(combine, the_strongest_answer_counts_under_and)
{
	int64_t until_ns;

	for (int a = FRAG_READY; a <= FRAG_NEVER; a++)
		for (int b = FRAG_READY; b <= FRAG_NEVER; b++) {
			cr_expect_eq((int)evaluate(answers[a], answers[b], false, &until_ns),
				     a > b ? a : b, "%d and %d", a, b);
			if (a == FRAG_WAIT_TIME && b == FRAG_WAIT_TIME)
				cr_expect_eq(until_ns, 70, "both times must have come");
			if (a == FRAG_READY && b == FRAG_WAIT_TIME)
				cr_expect_eq(until_ns, 50);
		}
}

Test(combine, the_first_to_be_ready_counts_under_or_and_never_is_final)
{
	int64_t until_ns;

	for (int a = FRAG_READY; a <= FRAG_NEVER; a++)
		for (int b = FRAG_READY; b <= FRAG_NEVER; b++) {
			bool never = a == FRAG_NEVER || b == FRAG_NEVER;

			cr_expect_eq((int)evaluate(answers[a], answers[b], true, &until_ns),
				     never   ? FRAG_NEVER
				     : a < b ? a
					     : b,
				     "%d or %d", a, b);
			if (!never && a == FRAG_WAIT_TIME && b >= FRAG_WAIT_TIME)
				cr_expect_eq(until_ns, b == FRAG_WAIT_TIME ? 50 : 70,
					     "the earlier time counts");
		}
}

/* In both orders, and when both are the same. */
Test(combine, the_later_time_counts_under_and_and_the_earlier_one_under_or)
{
	static const struct {
		const char *first, *second;
		int64_t and_ns, or_ns;
	} cases[] = {{"70", "50", 70, 50}, {"50", "70", 70, 50}, {"60", "60", 60, 60}};
	int64_t until_ns;

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		cr_expect_eq(
			evaluate_times("1", cases[i].first, "1", cases[i].second, false, &until_ns),
			FRAG_WAIT_TIME);
		cr_expect_eq(until_ns, cases[i].and_ns, "%s and %s", cases[i].first,
			     cases[i].second);
		cr_expect_eq(
			evaluate_times("1", cases[i].first, "1", cases[i].second, true, &until_ns),
			FRAG_WAIT_TIME);
		cr_expect_eq(until_ns, cases[i].or_ns, "%s or %s", cases[i].first, cases[i].second);
	}
}

/* Where the combination comes from: YAML, with a key of the operator or a condition; or C. */
static const char *const ways[] = {
	"or_combine_port_conditions: [a, b]",
	"or_combine_port_conditions: [[a, b]]",
	"conditions: [{type: or, ports: [b, a]}]",
	"conditions: [{type: message_available, name: one, receiver: a}, {type: message_available, name: two, receiver: b}, {type: or_condition_combiner, terms: [$one, two]}]",
	"parameters: {combines: true}",
	/* One condition is about both ports, and is one term. */
	"conditions: [{type: multi_message_available, receivers: [a, b]}, {type: or, ports: [a, b]}]",
};

Test(combine, messages_at_one_of_two_inputs_are_enough)
{
	struct rig rig;
	char text[600];

	for (size_t way = 0; way < FRAG_COUNT_OF(ways); way++) {
		snprintf(
			text, sizeof(text),
			"operators:\n"
			"  one: {type: source, parameters: {count: 20}}\n"
			"  silent: {type: source, conditions: [{type: boolean, enable_tick: false}]}\n"
			"  rx: {type: either, %s}\n"
			"flows: [one -> rx.a, silent -> rx.b]\n",
			ways[way]);
		FOR_EACH_SCHEDULER(s)
		{
			rig_run(&rig, &plugin, rig_graph(s, text));
			cr_expect_eq(rig.failed, 0, "%s", rig.sentence);
			cr_expect_eq(noted(0), 20, "%s: %u", ways[way], noted(0));
			cr_expect(rig_balances(&rig));
			rig_end(&rig);
		}
	}
	/* Without the combination both must have one. */
	rig_run(&rig, &plugin,
		rig_graph(0, "operators:\n"
			     "  one: {type: source, parameters: {count: 20}}\n"
			     "  silent: {type: source, conditions: [{type: boolean, enable_tick: "
			     "false}]}\n"
			     "  rx: {type: either}\n"
			     "flows: [one -> rx.a, silent -> rx.b]\n"));
	cr_expect_eq(noted(0), 0);
	rig_end(&rig);
	notes_clear();
}

/* Runs a graph that ends by itself: nobody stops it when it rests. */
static void run_to_its_end(struct rig *rig, const char *graph)
{
	rig_prepare_good(rig, &plugin, graph);
	rig->is_host = true;
	rig_start(rig);
	cr_assert(rig_wait(rig, rig_is_done, RIG_LIMIT_NS), "it does not end by itself");
}

RIG_TEST(combine, an_input_that_has_ended_leaves_the_others)
{
	run_to_its_end(rig,
		       rig_graph(s, "operators:\n"
				    "  few: {type: source, parameters: {count: 3}}\n"
				    "  many: {type: source, parameters: {count: 200}}\n"
				    "  rx: {type: either, or_combine_port_conditions: [a, b]}\n"
				    "flows: [few -> rx.a, many -> rx.b]\n"));
	cr_expect_eq(noted(0), 203, "%u", noted(0));
}

/* A term that looks at no input does not keep the operator once its inputs have ended. */
RIG_TEST(combine, inputs_that_have_ended_end_the_operator_beside_other_terms)
{
	run_to_its_end(
		rig,
		rig_graph(
			s,
			"operators:\n"
			"  one: {type: source, parameters: {count: 7}}\n"
			"  rx: {type: either, conditions: [{type: boolean, name: off, enable_tick: false}, {type: message_available, receiver: a}, {type: or, terms: [off, message_available]}, {type: none, port: b}]}\n"
			"flows: [one -> rx.a, one -> rx.b]\n"));
	cr_expect_geq(noted(0), 7, "%u", noted(0));
}

RIG_TEST(combine, a_term_that_ends_ends_the_operator)
{
	run_to_its_end(
		rig,
		rig_graph(
			s,
			"operators:\n"
			"  op: {type: ticker, conditions: [{type: count, count: 4}, {type: boolean, name: on}, {type: or, terms: [on, count]}]}\n"));
	cr_expect_eq(notes[0]->ticks, 4);
}

RIG_TEST(combine, a_time_is_enough_where_no_message_comes)
{
	rig_run(rig, &plugin,
		rig_graph(
			s,
			"operators:\n"
			"  silent: {type: source, conditions: [{type: boolean, enable_tick: false}]}\n"
			"  rx: {type: sink, conditions: [{type: count, count: 5}, {type: message_available}, {type: periodic, recess_period: 1ms}, {type: or, terms: [message_available, periodic]}]}\n"
			"flows: [silent -> rx]\n"));
	cr_expect_eq(notes[0]->ticks, 5);
	cr_expect_eq(noted(0), 0);
}

/* Two rhythms, of which the faster one counts wherever it stands. */
Test(combine, the_shorter_of_two_periods_counts)
{
	static const char *const orders[] = {"[fast, slow]", "[slow, fast]"};
	char text[400];
	struct rig rig;

	for (size_t order = 0; order < FRAG_COUNT_OF(orders); order++)
		FOR_EACH_SCHEDULER(s)
		{
			snprintf(
				text, sizeof(text),
				"clock: {type: manual}\n"
				"operators:\n"
				"  op: {type: ticker, conditions: [{type: count, count: 6}, {type: periodic, name: fast, recess_period: 20ms}, {type: periodic, name: slow, recess_period: 100ms}, {type: or, terms: %s}]}\n",
				orders[order]);
			run_to_its_end(&rig, rig_graph(s, text));
			cr_assert_eq(notes[0]->count, 6);
			for (int i = 1; i < 6; i++)
				cr_expect_eq(notes[0]->values[i] - notes[0]->values[0],
					     i * 20000000, "%s, tick %d", orders[order], i);
			rig_end(&rig);
		}
}

Test(combine, combinations_of_a_plugin_and_of_combinations)
{
	static const char *const terms[] = {
		"{type: at_least, least: 2, terms: [a, b, c]}",
		"{type: at_least, least: 3, terms: [a, b, c]}",
		"{type: or, name: o, terms: [c, b]}, {type: at_least, least: 2, terms: [a, o]}"};
	static const uint64_t ticks[] = {3, 0, 3};
	struct rig rig;
	char text[700];

	for (size_t i = 0; i < FRAG_COUNT_OF(terms); i++) {
		snprintf(
			text, sizeof(text),
			"operators:\n"
			"  op: {type: ticker, conditions: [{type: boolean, name: a}, {type: boolean, name: b}, {type: boolean, name: c, enable_tick: false}, %s, {type: count, count: 3}]}\n",
			terms[i]);
		FOR_EACH_SCHEDULER(s)
		{
			note_of(0);
			rig_run(&rig, &plugin, rig_graph(s, text));
			cr_expect_eq(notes[0]->ticks, ticks[i], "%s: %llu", terms[i],
				     (unsigned long long)notes[0]->ticks);
			rig_end(&rig);
		}
	}
}

/* The fragments drain: what waits at one input is still taken. */
static bool has_ten(struct rig *rig)
{
	return noted(0) >= 10;
}

RIG_TEST(combine, a_stop_still_takes_what_was_sent)
{
	rig_prepare_good(
		rig, &plugin,
		rig_graph(
			s,
			"operators:\n"
			"  one: {type: source}\n"
			"  silent: {type: source, conditions: [{type: boolean, enable_tick: false}]}\n"
			"  rx: {type: either, or_combine_port_conditions: [a, b]}\n"
			"flows: [{from: one, to: rx.a, capacity: 8}, silent -> rx.b]\n"));
	rig_start(rig);
	cr_assert(rig_wait(rig, has_ten, RIG_LIMIT_NS));
	fragi_run_drain(rig->run);
	cr_assert(rig_wait(rig, rig_is_done, RIG_LIMIT_NS));
	cr_expect_eq(rig_dropped_all(rig_row(rig, 0)), 0);
	cr_expect_eq(noted(0), (uint32_t)atomic_load(&rig_row(rig, 0)->sent));
}

Test(combine, a_condition_has_a_life_cycle)
{
	struct rig rig;

	FOR_EACH_SCHEDULER(s)
	{
		memset(lived, 0, sizeof(lived));
		rig_run(&rig, &plugin,
			rig_graph(s, "operators: {op: {type: ticker, conditions: [{type: life}, "
				     "{type: count, count: 2}]}}\n"));
		cr_expect_eq(notes[0]->ticks, 2);
		rig_end(&rig);
		cr_expect_str_eq(lived, "bispf");
	}
}

Test(combine, a_callback_of_a_condition_that_fails)
{
	static const struct {
		const char *callback, *lived;
		bool is_prepared;
	} cases[] = {
		{"bind", "b", false},
		{"initialize", "bif", false},
		{"start", "bisf", true}, /* one that did not start is not stopped */
	};
	static const int returns[] = {-ENODEV, -EIO, 1};
	char text[200], sentence[200];
	struct rig rig;

	for (size_t i = 0; i < FRAG_COUNT_OF(cases) * FRAG_COUNT_OF(returns); i++)
		FOR_EACH_SCHEDULER(s)
		{
			const size_t c = i / FRAG_COUNT_OF(returns);
			const int r = returns[i % FRAG_COUNT_OF(returns)];

			memset(lived, 0, sizeof(lived));
			snprintf(text, sizeof(text),
				 "operators: {op: {type: ticker, conditions: [{type: life, "
				 "%s_returns: %d}]}}\n",
				 cases[c].callback, r);
			snprintf(sentence, sizeof(sentence), "app.op: condition life: %s%s",
				 r == 1 ? cases[c].callback : "",
				 r == -ENODEV ? "there is no device; plug one in"
				 : r == -EIO  ? "Input/output error"
					      : " returned 1; return 0 or a negative errno");
			cr_assert_eq(rig_prepare(&rig, &plugin, rig_graph(s, text)) == 0,
				     cases[c].is_prepared, "%s", text);
			if (cases[c].is_prepared) {
				rig_start(&rig);
				cr_assert(rig_wait(&rig, rig_is_done, RIG_LIMIT_NS));
				cr_expect_eq(rig.failed, 1);
				cr_expect_str_eq(rig.sentence, sentence);
			} else {
				cr_expect_str_eq(rig.diag.items[0].text, sentence);
			}
			rig_end(&rig);
			cr_expect_str_eq(lived, cases[c].lived, "%s: %s", text, lived);
		}
}

Test(combine, a_check_that_fails)
{
	static const struct {
		const char *conditions, *sentence;
	} cases[] = {
		{"{type: life, check_returns: -19}", "app.op: condition life: there is no device"},
		{"{type: life, check_returns: -5}",
		 "app.op: condition life: check returned -5 (Input/output error)"},
		{"{type: life, check_returns: -19}, {type: or, terms: [life]}",
		 "app.op: condition life: there is no device"},
	};
	char text[200];

	for (size_t i = 0; i < 2 * FRAG_COUNT_OF(cases); i++) {
		struct rig rig;

		memset(lived, 0, sizeof(lived));
		snprintf(text, sizeof(text), "operators: {op: {type: ticker, conditions: [%s]}}\n",
			 cases[i / 2].conditions);
		rig_run(&rig, &plugin, rig_graph(i % 2, text));
		cr_expect_eq(rig.failed, 1);
		cr_expect_str_eq(rig.sentence, cases[i / 2].sentence);
		rig_end(&rig);
		cr_expect_str_eq(lived, "bispf", "it is stopped as ever");
	}
}

#define BAD(graph, lines)                                                                          \
	do {                                                                                       \
		struct rig rig;                                                                    \
		cr_expect_lt(rig_prepare(&rig, &plugin, "frag: 1\napplication: app\n" graph), 0);  \
		expect_errors(&rig.diag, lines);                                                   \
		rig_end(&rig);                                                                     \
	} while (0)

Test(combine, mistakes_are_refused_with_a_sentence)
{
	BAD("operators:\n"
	    "  a: {type: ticker, conditions: [{type: boolean, name: on}, {type: or, terms: [onn]}]}\n"
	    "  b: {type: ticker, conditions: [{type: or}]}\n"
	    "  c: {type: ticker, conditions: [{type: or, terms: [on]}, {type: boolean, name: on}]}\n"
	    "  d: {type: ticker, conditions: [{type: boolean, name: on}, {type: or, terms: [on]}, {type: or, terms: [on]}]}\n"
	    "  e: {type: ticker, conditions: [{type: none}, {type: or, terms: [none]}]}\n"
	    "  f: {type: ticker, conditions: [{type: at_least}]}\n"
	    "  g: {type: ticker, or_combine_port_conditions: [in]}\n"
	    "  h: {type: ticker, conditions: [{type: or, term: [on]}]}\n",
	    "test.yaml:4:61: app.a: condition or: there is no condition \"onn\" before it; did you mean \"on\"?\n"
	    "test.yaml:5:34: app.b: condition or combines nothing; name conditions in terms, or ports in ports\n"
	    "test.yaml:6:34: app.c: condition or: its term \"on\" does not stand before it; list the terms first\n"
	    "test.yaml:7:86: app.d: condition or_2: its term \"on\" is a term of another combination too\n"
	    "test.yaml:8:48: app.e: condition or: its term \"none\" asks for nothing; leave it out\n"
	    "test.yaml:9:34: app.f: condition at_least combines nothing; name conditions in terms, or ports in ports\n"
	    "test.yaml:10:49: app.g: condition or: there is no port \"in\"\n"
	    "test.yaml:11:45: app.h: condition or: unknown parameter \"term\"; did you mean \"terms\"?\n");
	BAD("operators:\n"
	    "  one: {type: source}\n"
	    "  rx: {type: either, or_combine_port_conditions: [a, c]}\n"
	    "  ry: {type: either, ports: {b: {condition: none}}, or_combine_port_conditions: [a, b]}\n"
	    "flows: [one -> rx.a, one -> rx.b, one -> ry.a, one -> ry.b]\n",
	    "test.yaml:5:50: app.rx: condition or: there is no port \"c\"; its ports: a, b\n"
	    "test.yaml:6:81: app.ry: condition or: port \"b\" has no condition to combine; give it one, or leave it out\n");
	BAD("operators:\n"
	    "  rx: {type: either, or_combine_port_conditions: a}\n"
	    "  ry: {type: either, or_combine_port_conditions: [[a], b]}\n",
	    "test.yaml:4:50: app.rx: or_combine_port_conditions is a single value; it must be a list ([a, b])\n"
	    "test.yaml:5:56: app.ry: or_combine_port_conditions is a single value; it must be a list ([a, b])\n");
}
