// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>

#include <base/alloc.h>

#include "rig_ops.h"

/* Parameters that change between two ticks; under both schedulers. */

struct stepper {
	int64_t step;
	bool loud;
	const char *mode, *title;
	double factor;
	int64_t pause;
};

static const char *const modes[] = {"slow", "fast", NULL};
static const struct frag_param stepper_params[] = {
	FRAG_PARAM_I64(struct stepper, step, 1, .min = 1, .max = 100, .flags = FRAG_PARAM_DYNAMIC),
	FRAG_PARAM_BOOL(struct stepper, loud, false, .flags = FRAG_PARAM_DYNAMIC),
	FRAG_PARAM_STRING(struct stepper, mode, "slow", .choices = modes,
			  .flags = FRAG_PARAM_DYNAMIC),
	FRAG_PARAM_STRING(struct stepper, title, "none", .flags = FRAG_PARAM_DYNAMIC),
	FRAG_PARAM_F64(struct stepper, factor, 1.0),
	FRAG_PARAM_DURATION(struct stepper, pause, 0, .flags = FRAG_PARAM_DYNAMIC),
};

static struct {
	_Atomic int64_t step;       /* of the last tick */
	_Atomic uint32_t torn;      /* ticks in which it changed */
	_Atomic uint32_t backwards; /* it went back, which the test never asks for */
	_Atomic uint32_t ticks;
	_Atomic bool fast, loud;
	_Atomic int64_t pause;
} saw;

/* Done at step 100. */
static int stepper_compute(void *state, struct frag_tick *tick)
{
	volatile struct stepper *s = state;
	int64_t step = s->step;

	saw.backwards += step < saw.step;
	work_for(20);
	saw.torn += s->step != step;
	saw.fast = s->mode == modes[1];
	saw.loud = s->loud;
	saw.pause = s->pause;
	saw.step = step;
	saw.ticks++;
	return step == 100 ? FRAG_DONE : 0;
}

TEST_OP(stepper, .state_size = sizeof(struct stepper), FRAG_PARAMS(stepper_params));
TEST_PLUGIN(stepper, &stepper_type, &source_type, &sink_type);

static void start_graph(struct rig *rig, const char *text)
{
	memset(&saw, 0, sizeof(saw));
	rig_prepare_good(rig, &stepper_plugin, text);
	rig_start(rig);
}

static void set(struct rig *rig, const char *text)
{
	struct frag_err err = FRAG_ERR_INIT;

	cr_assert_eq(fragi_run_set(rig->run, text, "the test", &err), 0, "%s", err.text);
}

static void refused(struct rig *rig, const char *text, int code, const char *sentence)
{
	struct frag_err err = FRAG_ERR_INIT;

	cr_expect_eq(fragi_run_set(rig->run, text, "the test", &err), code, "%s", text);
	cr_expect_str_eq(err.text, sentence);
}

static void finish(struct rig *rig)
{
	cr_assert(rig_wait(rig, rig_is_done, RIG_LIMIT_NS));
	cr_expect_eq(rig->failed, 0, "%s", rig->sentence);
	rig_end(rig);
}

/* The operator waits, so that no other thread needs memory meanwhile. */
RIG_ONE_TEST(dynamic, a_change_for_which_there_is_no_memory_changes_nothing)
{
	struct frag_err err = FRAG_ERR_INIT;
	int64_t failed = 1;
	int refusals = 0, r;

	start_graph(rig,
		    rig_graph(0, "operators: {op: {type: stepper, conditions: [{type: periodic, "
				 "recess_period: 20ms}]}}\n"));
	RIG_AWAIT(saw.ticks > 0);
	for (int64_t n = 0; failed > 0; n++) {
		fragi_alloc_fail_after(n, 1);
		r = fragi_run_set(rig->run, "app.op.mode=fast", "the test", &err);
		failed = fragi_alloc_fail_off();
		cr_assert(r == 0 || (r == -ENOMEM && failed > 0), "%s", err.text);
		refusals += r < 0;
	}
	cr_expect_geq(refusals, 2, "of the change, and of its state");
	RIG_AWAIT(saw.fast);
	set(rig, "app.op.step=100");
	cr_assert(rig_wait(rig, rig_is_done, RIG_LIMIT_NS));
	cr_expect_eq(rig->failed, 0, "%s", rig->sentence);
}

Test(dynamic, a_value_changes_between_two_ticks)
{
	char text[40];
	struct rig rig;

	FOR_EACH_SCHEDULER(s)
	{
		start_graph(&rig, rig_graph(s, "operators: {op: {type: stepper}}\n"));
		RIG_AWAIT(saw.ticks > 0);
		cr_expect_eq(saw.step, 1);
		for (int i = 2; i < 50; i++) {
			snprintf(text, sizeof(text), "app.op.step=%d", i);
			set(&rig, text);
			if (i % 8 == 0)
				RIG_AWAIT(saw.step == i);
		}
		RIG_AWAIT(saw.step == 49);
		cr_expect(!saw.fast && !saw.loud && saw.pause == 0);
		set(&rig, "app.op.mode=fast");
		set(&rig, "app.op.loud=true");
		set(&rig, "app.op.pause=5ms");
		RIG_AWAIT(saw.fast && saw.loud && saw.pause == 5000000);
		cr_expect_eq(saw.step, 49, "the others stay");
		set(&rig, "app.op.step=100");
		finish(&rig);
		cr_expect_eq(saw.torn, 0);
		cr_expect_eq(saw.backwards, 0);
	}
}

/* Its conditions do not allow another tick for an hour. */
Test(dynamic, no_change_makes_an_operator_tick)
{
	struct rig rig;

	FOR_EACH_SCHEDULER(s)
	{
		start_graph(&rig, rig_graph(s, "operators:\n"
					       "  op: {type: stepper, conditions: "
					       "[{type: periodic, recess_period: 1h}]}\n"));
		RIG_AWAIT(saw.ticks == 1);
		for (int i = 0; i < 20; i++)
			set(&rig, "app.op.step=5");
		usleep(1000);
		cr_expect_eq(saw.ticks, 1);
		fragi_run_halt(rig.run);
		finish(&rig);
		cr_expect_eq(saw.ticks, 1);
	}
}

static struct frag_op *_Atomic waiting;

/* A tick of two calls; then one whose step must be the new one. */
static int waiter_compute(void *state, struct frag_tick *tick)
{
	const struct stepper *s = state;

	if (frag_tick_count(tick) == 1) {
		saw.step = s->step;
		return FRAG_DONE;
	}
	saw.torn += s->step != 1;
	if (waiting == NULL) {
		waiting = frag_tick_op(tick);
		return FRAG_PENDING;
	}
	return 0;
}

static const struct frag_op_type waiter_type = {
	FRAG_OP_TYPE_INIT, .name = "stepper", .state_size = sizeof(struct stepper),
	FRAG_PARAMS(stepper_params), .compute = waiter_compute};
TEST_PLUGIN(waiter, &waiter_type);

Test(dynamic, changes_wait_for_the_end_of_a_pending_tick_and_are_bounded)
{
	struct rig rig;

	FOR_EACH_SCHEDULER(s)
	{
		memset(&saw, 0, sizeof(saw));
		waiting = NULL;
		rig_prepare_good(&rig, &waiter_plugin,
				 rig_graph(s, "operators: {op: {type: stepper}}\n"));
		rig_start(&rig);
		RIG_AWAIT(waiting != NULL);
		for (int i = 0; i < 63; i++)
			set(&rig, "app.op.step=5");
		set(&rig, "app.op.step=6");
		refused(&rig, "app.op.step=7", -EBUSY,
			"app.op: 64 changes of its parameters wait for its next tick");
		frag_op_resume(waiting);
		finish(&rig);
		cr_expect_eq(saw.torn, 0, "the value changed in a tick");
		cr_expect_eq(saw.step, 6, "the last one counts");
	}
}

/* What waits when the operator is stopped is given up. */
Test(dynamic, changes_that_come_too_late_are_freed)
{
	struct rig rig;

	waiting = NULL;
	rig_prepare_good(&rig, &waiter_plugin, rig_graph(2, "operators: {op: {type: stepper}}\n"));
	rig_start(&rig);
	RIG_AWAIT(waiting != NULL);
	set(&rig, "app.op.step=5");
	fragi_run_halt(rig.run);
	finish(&rig);
}

RIG_ONE_TEST(dynamic, what_cannot_be_set_is_refused_with_what_can)
{
	start_graph(rig,
		    rig_graph(1, "operators: {op: {type: stepper, conditions: [{type: count, name: "
				 "most, count: 1000000}]}, tx: {type: source, parameters: {count: "
				 "1}}}\n"));
	RIG_AWAIT(saw.ticks > 0);
	for (size_t i = 0; i < 2; i++) /* its name, and its type or parameter */
		refused(rig, i == 0 ? "app.op.most=2" : "app.op.count=2", -EINVAL,
			i == 0 ? "app.op: \"most\" is of its condition most, and conditions cannot "
				 "be changed while it runs; `fragctl apply` brings a graph with "
				 "another value"
			       : "app.op: \"count\" is of its condition most, and conditions "
				 "cannot be changed while it runs; `fragctl apply` brings a graph "
				 "with another value");
	refused(rig, "op.step=0", -EINVAL,
		"app.op: parameter \"step\": 0 is out of range; it must be from 1 to 100");
	refused(rig, "app.op.step=0", -EINVAL,
		"app.op: parameter \"step\": 0 is out of range; it must be from 1 to 100");
	refused(rig, "app.op.step=abc", -EINVAL,
		"app.op: parameter \"step\": \"abc\" is not a valid integer; write a whole number such as 3");
	refused(rig, "app.op.mode=fasr", -EINVAL,
		"app.op: parameter \"mode\": \"fasr\" is not a valid choice; did you mean "
		"\"fast\"?");
	refused(rig, "app.op.factor=2", -EINVAL,
		"app.op: parameter \"factor\" cannot be changed while it runs; "
		"those that can: step, loud, mode, pause; "
		"`fragctl apply` brings a graph with another value");
	refused(rig, "app.op.title=x", -EINVAL,
		"app.op: parameter \"title\" cannot be changed while it runs; "
		"those that can: step, loud, mode, pause; "
		"`fragctl apply` brings a graph with another value");
	refused(rig, "app.op.steb=2", -EINVAL,
		"app.op: unknown parameter \"steb\"; did you mean \"step\"?");
	refused(rig, "app.op.nothing=2", -EINVAL,
		"app.op: unknown parameter \"nothing\"; its parameters: step, loud, mode, "
		"title, factor, pause");
	refused(rig, "app.tx.cuont=2", -EINVAL,
		"app.tx: unknown parameter \"cuont\"; did you mean \"count\"?");
	refused(rig, "app.opp.step=2", -EINVAL, "unknown operator \"opp\"; did you mean \"op\"?");
	refused(rig, "ap.op.step=2", -EINVAL, "unknown fragment \"ap\"; fragments: app");
	refused(rig, "app.tx.count=2", -EINVAL,
		"app.tx: parameter \"count\" cannot be changed while it runs; none of its "
		"parameters can; `fragctl apply` brings a graph with another value");
	refused(rig, "app.op=2", -EINVAL, "unknown operator \"app\"; operators: op, tx");
	refused(rig, "app=2", -EINVAL,
		"\"app=2\" is not understood; write FRAGMENT.OPERATOR.PARAMETER=VALUE");
	refused(rig, "app.op.step", -EINVAL,
		"\"app.op.step\" is not understood; write FRAGMENT.OPERATOR.PARAMETER=VALUE");
	refused(rig, "", -EINVAL,
		"\"\" is not understood; write FRAGMENT.OPERATOR.PARAMETER=VALUE");
	set(rig, "op.step=100");
	cr_assert(rig_wait(rig, rig_is_done, RIG_LIMIT_NS));
	refused(rig, "app.op.step=3", -ESRCH, "app.op has ended: its parameters stay as they are");
}

Test(dynamic, a_change_is_bounded)
{
	static char text[10000];
	struct rig rig;

	start_graph(&rig, rig_graph(1, "operators: {op: {type: stepper}}\n"));
	RIG_AWAIT(saw.ticks > 0);
	memset(text, '1', sizeof(text) - 1);
	memcpy(text, "app.op.step=", 12);
	refused(&rig, text, -EINVAL, "a change is longer than 4095 bytes; shorten it");
	set(&rig, "app.op.step=100");
	finish(&rig);
}

/* Threads set while others tick, under ThreadSanitizer too. */
static void *set_often(void *arg)
{
	struct rig *rig = arg;

	for (int i = 0; i < 200; i++) {
		int r = fragi_run_set(rig->run, i % 2 == 0 ? "app.a.step=2" : "app.b.loud=true",
				      "the test", NULL);

		cr_assert(r == 0 || r == -EBUSY);
	}
	return NULL;
}

Test(dynamic, several_threads_may_set)
{
	pthread_t threads[3];
	struct rig rig;

	FOR_EACH_SCHEDULER(s)
	{
		start_graph(&rig,
			    rig_graph(s, "operators: {a: {type: stepper}, b: {type: stepper}}\n"));
		RIG_AWAIT(saw.ticks > 0);
		for (int i = 0; i < 3; i++)
			cr_assert_eq(pthread_create(&threads[i], NULL, set_often, &rig), 0);
		for (int i = 0; i < 3; i++)
			pthread_join(threads[i], NULL);
		while (fragi_run_set(rig.run, "app.a.step=100", "the test", NULL) == -EBUSY)
			usleep(100);
		while (fragi_run_set(rig.run, "app.b.step=100", "the test", NULL) == -EBUSY)
			usleep(100);
		finish(&rig);
		cr_expect_eq(saw.torn, 0);
	}
}
