// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>

#include "rig_ops.h"

/* frag/status.h: what operators see of each other; under both schedulers. */

/* Watches the operator `of`. Once it is done, stops `then`, which never ends, or the fragment. */
struct watcher {
	const char *of, *then;
	int64_t idle_after; /* so many ticks, and idle again, is enough; 0: not */
	struct frag_op *watched, *stopped;
};
static const struct frag_param watcher_params[] = {
	FRAG_PARAM_STRING(struct watcher, of, "tx"),
	FRAG_PARAM_STRING(struct watcher, then, NULL),
	FRAG_PARAM_I64(struct watcher, idle_after, 0),
};

static struct {
	_Atomic uint32_t seen[FRAG_OP_STATUS_FAILED + 1];
	_Atomic uint32_t decreases; /* a status that cannot follow */
	_Atomic uint64_t ticks;     /* of the watched operator, when it was done */
	_Atomic int64_t counted;    /* what it had done by then */
	enum frag_op_status at_initialize, self;
	bool found_nobody;
} saw;

static int watcher_initialize(void *state, struct frag_op *op)
{
	struct watcher *s = state;

	s->watched = frag_op_find(op, s->of);
	s->stopped = s->then != NULL ? frag_op_find(op, s->then) : NULL;
	saw.found_nobody = frag_op_find(op, "nobody") == NULL;
	saw.at_initialize = frag_op_status_get(s->watched);
	return 0;
}

static int watcher_compute(void *state, struct frag_tick *tick)
{
	struct watcher *s = state;
	enum frag_op_status status = frag_op_status_get(s->watched);

	saw.self = frag_op_status_get(frag_tick_op(tick));
	if (saw.seen[FRAG_OP_STATUS_DONE] > 0 && status != FRAG_OP_STATUS_DONE)
		saw.decreases++;
	saw.seen[status]++;
	if (s->idle_after > 0 && status == FRAG_OP_STATUS_IDLE &&
	    frag_op_ticks(s->watched) == (uint64_t)s->idle_after)
		frag_fragment_stop_execution(frag_op_fragment(frag_tick_op(tick)));
	if (status != FRAG_OP_STATUS_DONE)
		return 0;
	saw.ticks = frag_op_ticks(s->watched);
	saw.counted = ((const struct source *)s->watched->state)->next;
	if (s->stopped == NULL) {
		frag_fragment_stop_execution(frag_op_fragment(frag_tick_op(tick)));
		return 0;
	}
	frag_op_stop_execution(s->stopped);
	return frag_op_status_get(s->stopped) == FRAG_OP_STATUS_DONE ? FRAG_DONE : 0;
}

TEST_OP(watcher, .state_size = sizeof(struct watcher), FRAG_PARAMS(watcher_params),
	.initialize = watcher_initialize);
TEST_PLUGIN(watcher, &source_type, &sink_type, &watcher_type);

static void run_graph(struct rig *rig, size_t s, const char *rest)
{
	memset(&saw, 0, sizeof(saw));
	rig_run(rig, &watcher_plugin, rig_graph(s, rest));
	cr_expect_eq(rig->failed, 0, "%s", rig->sentence);
}

RIG_TEST(status, an_operator_that_is_done_is_seen_and_what_never_ends_is_stopped)
{
	run_graph(rig, s,
		  "operators:\n"
		  "  tx: {type: source, parameters: {count: 50}}\n"
		  "  rx: {type: sink}\n"
		  "  endless: {type: source, conditions: [{type: periodic, "
		  "recess_period: 200us}]}\n"
		  "  rx2: {type: sink, parameters: {slot: 1}}\n"
		  "  watcher: {type: watcher, parameters: {then: endless}, "
		  "conditions: [{type: periodic, recess_period: 500us}]}\n"
		  "flows: [tx -> rx, endless -> rx2]\n");
	cr_expect(saw.found_nobody);
	cr_expect_eq(saw.at_initialize, FRAG_OP_STATUS_NOT_STARTED);
	cr_expect_eq(saw.self, FRAG_OP_STATUS_TICKING);
	cr_expect_geq(saw.seen[FRAG_OP_STATUS_DONE], 1);
	cr_expect_eq(saw.seen[FRAG_OP_STATUS_NOT_STARTED], 0);
	cr_expect_eq(saw.seen[FRAG_OP_STATUS_FAILED], 0);
	cr_expect_eq(saw.decreases, 0);
	cr_expect_eq(saw.ticks, 50);
	cr_expect_eq(saw.counted, 50);
	cr_expect_eq(rig->stopped, 0, "only an operator was stopped");
	cr_expect(rig_balances(rig));
}

RIG_TEST(status, a_monitor_ends_the_application)
{
	run_graph(rig, s,
		  "operators:\n"
		  "  tx: {type: source, parameters: {count: 5}}\n"
		  "  rx: {type: sink}\n"
		  "  endless: {type: source, conditions: [{type: periodic, "
		  "recess_period: 200us}]}\n"
		  "  rx2: {type: sink, parameters: {slot: 1}}\n"
		  "  watcher: {type: watcher, conditions: [{type: periodic, "
		  "recess_period: 500us}]}\n"
		  "flows: [tx -> rx, endless -> rx2]\n");
	cr_expect_eq(rig->stopped, 1);
	cr_expect_eq(noted(0), 5);
	cr_expect(rig_balances(rig));
}

/* Its next tick is an hour away. */
RIG_TEST(status, an_operator_that_waits_is_idle)
{
	run_graph(rig, s,
		  "operators:\n"
		  "  tx: {type: source, conditions: [{type: periodic, recess_period: 1h}]}\n"
		  "  rx: {type: sink}\n"
		  "  watcher: {type: watcher, parameters: {idle_after: 1}, "
		  "conditions: [{type: periodic, recess_period: 500us}]}\n"
		  "flows: [tx -> rx]\n");
	cr_expect_gt(saw.seen[FRAG_OP_STATUS_IDLE], 0);
	cr_expect_eq(rig->stopped, 1);
}

static _Atomic uint32_t holding, ticking_seen;

/* Ticks until the other has seen that it does. */
static int holder_compute(void *state, struct frag_tick *tick)
{
	holding = 1;
	while (ticking_seen == 0)
		usleep(100);
	return FRAG_DONE;
}

static int looker_compute(void *state, struct frag_tick *tick)
{
	const struct frag_op *holder = frag_op_find(frag_tick_op(tick), "holder");
	uint32_t held = holding; /* before its status is read */
	enum frag_op_status status = frag_op_status_get(holder);

	if (status == FRAG_OP_STATUS_TICKING)
		ticking_seen = 1;
	if (held == 1 && ticking_seen == 0)
		return frag_op_fail(frag_tick_op(tick), -EIO, "it ticks and is status %d", status);
	return status == FRAG_OP_STATUS_DONE ? FRAG_DONE : 0;
}

TEST_OP(holder, .state_size = 8);
TEST_OP(looker, .state_size = 8);
TEST_PLUGIN(holder, &holder_type, &looker_type);

RIG_ONE_TEST(status, an_operator_in_compute_is_ticking)
{
	rig_run(rig, &holder_plugin,
		"frag: 1\napplication: app\n"
		"scheduler: {type: event_based, worker_thread_number: 2}\n"
		"operators:\n"
		"  looker: {type: looker, conditions: [{type: periodic, recess_period: 200us}]}\n"
		"  holder: {type: holder}\n");
	cr_expect_eq(rig->failed, 0, "%s", rig->sentence);
	cr_expect_eq(ticking_seen, 1);
}
