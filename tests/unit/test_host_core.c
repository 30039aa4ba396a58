// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>

#include <errno.h>
#include <signal.h>
#include <string.h>

#include <base/alloc.h>
#include <base/beat.h>
#include <workerd/core/host_exit.h>
#include <workerd/host/core/core.h>

#define MS 1000000ll

/* A shell without a run: work is done when the test says so, and time stands still until then. */
static struct host_core *core;
static struct host_actions actions;
static int64_t now = 1000 * MS;

static void make(void)
{
	const struct host_config config = {0};

	cr_assert_eq(host_core_create(&config, now, &core), 0);
}

static void finish(void)
{
	cr_expect_eq(host_core_illegal_transitions(core), 0);
	host_core_destroy(core);
}
TestSuite(host_core, .init = make, .fini = finish);

Test(host_core, without_memory_there_is_none)
{
	struct host_core *none = NULL;

	fragi_alloc_fail_after(0, 1);
	cr_expect_eq(host_core_create(&(struct host_config){0}, now, &none), -ENOMEM);
	cr_expect_eq(fragi_alloc_fail_off(), 1);
	cr_expect_null(none);
}

static void step(struct host_event event)
{
	host_core_step(core, &event, now, &actions);
}

static const struct host_action *did(enum host_action_kind kind)
{
	for (uint32_t i = 0; i < actions.count; i++)
		if (actions.items[i].kind == kind)
			return &actions.items[i];
	return NULL;
}

/* A frame that the last step sent. */
static const struct fw_message *sent(enum fw_kind kind)
{
	for (uint32_t i = 0; i < actions.count; i++)
		if (actions.items[i].kind == HOST_DO_SEND && actions.items[i].message.kind == kind)
			return &actions.items[i].message;
	return NULL;
}

static const char *logged(enum fragi_log_level level)
{
	for (uint32_t i = 0; i < actions.count; i++)
		if (actions.items[i].kind == HOST_DO_LOG && actions.items[i].level == level)
			return actions.items[i].text;
	return "";
}

static void from_workerd(struct fw_message message)
{
	static struct fw_message kept;

	kept = message;
	kept.run = 7;
	kept.host = 2;
	kept.epoch = 3;
	step((struct host_event){.kind = HOST_EV_MESSAGE, .message = &kept});
}

static void create(void)
{
	from_workerd((struct fw_message){.kind = FW_HOST_CREATE,
					 .create = {.beat_ns = 100 * MS, .dead_ns = 1000 * MS}});
}

static void stop(int64_t drain_ns)
{
	from_workerd((struct fw_message){.kind = FW_HOST_STOP, .stop = {.drain_ns = drain_ns}});
}

static const struct fw_host_result good, bad = {{FRAGI_FAILURE_HOST_FAILED, "it breaks", ""}};

static void prepare_done(bool ok)
{
	struct fw_host_prepared prepared = {.ok = ok, .pid = 4711};

	step((struct host_event){.kind = HOST_EV_PREPARE_DONE, .prepared = &prepared});
}

static void work_done(enum host_event_kind kind, const struct fw_host_result *result)
{
	step((struct host_event){.kind = kind, .result = result});
}

static void report(struct fw_host_event event)
{
	step((struct host_event){.kind = HOST_EV_RUN, .report = &event});
}

static void expect_state(enum host_state state)
{
	cr_expect_eq(host_core_state(core), state, "state %d", (int)host_core_state(core));
}

static void up_to_prepared(void)
{
	create();
	prepare_done(true);
}

static void up_to_wiring(void)
{
	static struct fw_peer peers[] = {{.name = "f1, f2"}, {.name = "f3"}};

	up_to_prepared();
	from_workerd((struct fw_message){.kind = FW_HOST_WIRE,
					 .wire = {.peers = peers, .peer_count = 2}});
}

static void up_to_wired(void)
{
	up_to_wiring();
	work_done(HOST_EV_WIRE_DONE, &good);
	step((struct host_event){.kind = HOST_EV_PEERS_READY});
}

static void up_to_started(void)
{
	up_to_wired();
	from_workerd((struct fw_message){.kind = FW_HOST_START});
	work_done(HOST_EV_START_DONE, &good);
}

/* Runs the timer whenever it is due, up to `until`, with a workerd that beats, if it `lives`. */
static bool timers_until(int64_t until, bool lives, enum fw_kind kind)
{
	while (host_core_deadline_ns(core) <= until) {
		now = host_core_deadline_ns(core);
		if (lives)
			from_workerd((struct fw_message){.kind = FW_BEAT});
		step((struct host_event){.kind = HOST_EV_TIMER});
		if (sent(kind) != NULL || did(HOST_DO_EXIT) != NULL)
			return true;
	}
	now = until;
	return false;
}

Test(host_core, walks_the_phases_and_answers_each_with_its_ids)
{
	create();
	cr_assert_not_null(did(HOST_DO_PREPARE));
	cr_expect_eq(did(HOST_DO_PREPARE)->request->kind, FW_HOST_CREATE);
	cr_expect_eq(did(HOST_DO_PREPARE)->beat_ns, 100 * MS);
	cr_expect_eq(did(HOST_DO_PREPARE)->dead_ns, 1000 * MS);
	prepare_done(true);
	cr_assert_not_null(sent(FW_HOST_PREPARED));
	cr_expect(sent(FW_HOST_PREPARED)->prepared.ok);
	cr_expect_eq(sent(FW_HOST_PREPARED)->run, 7);
	cr_expect_eq(sent(FW_HOST_PREPARED)->host, 2);
	cr_expect_eq(sent(FW_HOST_PREPARED)->epoch, 3);
	from_workerd((struct fw_message){.kind = FW_HOST_WIRE});
	cr_assert_not_null(did(HOST_DO_WIRE));
	work_done(HOST_EV_WIRE_DONE, &good);
	cr_expect_null(sent(FW_HOST_WIRED), "its peers have not answered");
	step((struct host_event){.kind = HOST_EV_PEERS_READY});
	cr_assert_not_null(sent(FW_HOST_WIRED));
	cr_expect(sent(FW_HOST_WIRED)->result.failure.code == FRAGI_FAILURE_NONE);
	from_workerd((struct fw_message){.kind = FW_HOST_START});
	cr_assert_not_null(did(HOST_DO_START));
	cr_expect_null(sent(FW_HOST_STARTED));
	work_done(HOST_EV_START_DONE, &good);
	cr_assert_not_null(sent(FW_HOST_STARTED));
	cr_expect(sent(FW_HOST_STARTED)->result.failure.code == FRAGI_FAILURE_NONE);
	stop(5000 * MS);
	cr_expect_not_null(did(HOST_DO_DRAIN));
	report((struct fw_host_event){.state = FW_STATE_DONE});
	cr_expect_eq(sent(FW_HOST_EVENT)->event.state, FW_STATE_DONE);
	stop(0);
	cr_expect_not_null(did(HOST_DO_HALT));
	cr_expect_not_null(did(HOST_DO_DESTROY));
	work_done(HOST_EV_DESTROY_DONE, NULL);
	cr_assert_not_null(did(HOST_DO_EXIT));
	cr_expect_eq(did(HOST_DO_EXIT)->exit_code, 0);
	cr_expect_not(did(HOST_DO_EXIT)->operators_may_hang);
	cr_expect_eq(host_core_deadline_ns(core), INT64_MAX);
}

/* In whichever phase it is; before WIRE it is the first one, and after a failure nothing. */
/* A second WIRE, of peers that were started again, among them. */
Test(host_core, what_a_message_does_depends_on_how_far_the_host_is)
{
	static void (*const up[])(void) = {NULL, up_to_prepared, up_to_wiring, up_to_wired,
					   up_to_started};
	static const struct {
		struct fw_message message;
		enum host_action_kind does;
		const char *when; /* after which of them; x: it does */
	} cases[] = {
		{{.kind = FW_HOST_CREATE, .create = {.lease_until_ns = 4711}},
		 HOST_DO_LEASE,
		 "x...."},
		{{.kind = FW_BEAT, .beat = {.lease_until_ns = 4711}}, HOST_DO_LEASE, "xxxxx"},
		{{.kind = FW_BEAT, .beat = {.looks = 2}}, HOST_DO_LOOK, "....x"},
		{{.kind = FW_BEAT}, HOST_DO_LOOK, "....."},
		{{.kind = FW_BEAT}, HOST_DO_LEASE, "....."},
		{{.kind = FW_HOST_WIRE}, HOST_DO_WIRE, ".x..."},
		{{.kind = FW_HOST_WIRE}, HOST_DO_REWIRE, "..xxx"},
		{{.kind = FW_HOST_SUSPEND}, HOST_DO_SUSPEND, "..xxx"},
		{{.kind = FW_HOST_START}, HOST_DO_START, "...x."},
		{{.kind = FW_HOST_TAP}, HOST_DO_TAP, "....x"},
		{{.kind = FW_HOST_TAP, .host_tap = {.traces = true}}, HOST_DO_TAP, "...xx"},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases) * FRAG_COUNT_OF(up); i++) {
		const size_t n = i / FRAG_COUNT_OF(up), far = i % FRAG_COUNT_OF(up);
		const struct host_action *action;

		finish();
		make();
		if (up[far] != NULL)
			up[far]();
		from_workerd(cases[n].message);
		action = did(cases[n].does);
		cr_expect_eq(action != NULL, cases[n].when[far] == 'x', "case %zu, %zu", n, far);
		if (action == NULL)
			continue;
		if (cases[n].does == HOST_DO_LEASE)
			cr_expect_eq(action->lease_until_ns, 4711);
		else if (cases[n].does == HOST_DO_LOOK)
			cr_expect_eq(action->looks, 2);
		else
			cr_expect(action->request == NULL ||
				  action->request->kind == cases[n].message.kind);
		from_workerd(cases[n].message);
		cr_expect(cases[n].does != HOST_DO_LOOK || did(HOST_DO_LOOK) == NULL,
			  "it looks already");
	}
	step((struct host_event){.kind = HOST_EV_PEERS_READY});
	cr_expect_null(sent(FW_HOST_WIRED), "that was answered before");
}

Test(host_core, beats_from_the_first_moment_and_in_every_state)
{
	int64_t from;

	cr_assert_eq(host_core_deadline_ns(core), now);
	cr_assert(timers_until(now, true, FW_BEAT));
	create();
	from = now;
	for (int i = 0; i < 20; i++)
		cr_assert(timers_until(now + 100 * MS, true, FW_BEAT), "while it prepares");
	cr_expect_leq(now - from, 2000 * MS);
	prepare_done(false);
	cr_assert(timers_until(now + 100 * MS, true, FW_BEAT), "when it has failed");
	stop(0);
	cr_assert(timers_until(now + 100 * MS, true, FW_BEAT), "while it ends");
}

/* From a driver of another make, or one that is broken. */
Test(host_core, nonsense_between_beats_is_brought_within_reason)
{
	static const struct {
		int64_t beat_ns, dead_ns, beat, dead;
	} asked[] = {
		{0, 0, FRAGI_BEAT_NS, FRAGI_DEAD_NS},
		{1, 1, 10 * MS, 20 * MS},
		{10000 * MS, 0, 10000 * MS, 20000 * MS},
		{10000 * MS, 1, 10000 * MS, 20000 * MS},
		{-1, -1, FRAGI_BEAT_NS, FRAGI_DEAD_NS},
		{INT64_MAX, INT64_MAX, 60000 * MS, 600000 * MS},
	};

	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		finish();
		make();
		from_workerd((struct fw_message){
			.kind = FW_HOST_CREATE,
			.create = {.beat_ns = asked[i].beat_ns, .dead_ns = asked[i].dead_ns}});
		cr_assert_not_null(did(HOST_DO_PREPARE));
		cr_expect_eq(did(HOST_DO_PREPARE)->beat_ns, asked[i].beat, "case %zu", i);
		cr_expect_eq(did(HOST_DO_PREPARE)->dead_ns, asked[i].dead, "case %zu", i);
		step((struct host_event){.kind = HOST_EV_TIMER});
		cr_expect_eq(host_core_deadline_ns(core), now + asked[i].beat, "case %zu", i);
		prepare_done(true);
	}
}

Test(host_core, a_failed_phase_is_reported_and_the_host_waits_to_be_ended)
{
	up_to_wired();
	from_workerd((struct fw_message){.kind = FW_HOST_START});
	work_done(HOST_EV_START_DONE, &bad);
	cr_assert_not_null(sent(FW_HOST_STARTED));
	cr_expect_str_eq(sent(FW_HOST_STARTED)->result.failure.sentence, "it breaks");
	expect_state(HOST_STATE_FAILED);
	stop(5000 * MS);
	cr_expect_null(did(HOST_DO_DRAIN));
	cr_expect_null(did(HOST_DO_DESTROY), "there is nothing to drain, and it is not to end yet");
	stop(0);
	cr_expect_not_null(did(HOST_DO_DESTROY));
}

Test(host_core, errors_of_prepare_are_passed_on)
{
	struct fw_failure errors[] = {
		{FRAGI_FAILURE_GRAPH_INVALID, "app.yaml:4:1: no such operator", ""}};
	struct fw_host_prepared prepared = {.errors = errors, .error_count = 1};

	create();
	step((struct host_event){.kind = HOST_EV_PREPARE_DONE, .prepared = &prepared});
	cr_assert_not_null(sent(FW_HOST_PREPARED));
	cr_expect_eq(sent(FW_HOST_PREPARED)->prepared.errors, errors);
	expect_state(HOST_STATE_FAILED);
}

Test(host_core, what_cannot_be_reported_ends_it)
{
	create();
	step((struct host_event){.kind = HOST_EV_PREPARE_DONE, .text = "no memory"});
	cr_expect_str_eq(logged(FRAGI_LOG_ERROR),
			 "cannot report what was prepared: no memory; this host ends");
	cr_assert_not_null(did(HOST_DO_EXIT));
	cr_expect_eq(did(HOST_DO_EXIT)->exit_code, 3);
}

Test(host_core, an_end_waits_for_the_work_that_is_under_way)
{
	create();
	stop(0);
	cr_expect_null(did(HOST_DO_DESTROY));
	step((struct host_event){.kind = HOST_EV_STOP});
	cr_expect_null(did(HOST_DO_DESTROY));
	prepare_done(true);
	cr_expect_not_null(sent(FW_HOST_PREPARED));
	cr_expect_not_null(did(HOST_DO_DESTROY));
	stop(0);
	cr_expect_null(did(HOST_DO_DESTROY), "it is being destroyed already");
	work_done(HOST_EV_DESTROY_DONE, NULL);
	cr_expect_not_null(did(HOST_DO_EXIT));
}

Test(host_core, a_stop_while_its_edges_are_made_ends_it_afterwards)
{
	up_to_wiring();
	step((struct host_event){.kind = HOST_EV_STOP});
	cr_expect_null(did(HOST_DO_DESTROY));
	work_done(HOST_EV_WIRE_DONE, &good);
	cr_expect_not_null(did(HOST_DO_DESTROY));
}

Test(host_core, a_stop_while_it_starts_ends_it_afterwards)
{
	up_to_wired();
	from_workerd((struct fw_message){.kind = FW_HOST_START});
	stop(0);
	cr_expect_null(did(HOST_DO_DESTROY));
	work_done(HOST_EV_START_DONE, &bad);
	cr_expect_not_null(did(HOST_DO_DESTROY), "though it did not start");
}

Test(host_core, a_stop_with_a_time_ends_what_has_not_started)
{
	up_to_prepared();
	stop(5000 * MS);
	cr_expect_null(did(HOST_DO_DRAIN));
	cr_expect_not_null(did(HOST_DO_DESTROY));
}

Test(host_core, a_signal_ends_it_once)
{
	step((struct host_event){.kind = HOST_EV_STOP});
	cr_expect_not_null(did(HOST_DO_DESTROY), "also before HOST_CREATE");
	step((struct host_event){.kind = HOST_EV_STOP});
	cr_expect_null(did(HOST_DO_DESTROY));
}

/* Its driver may not know that a signal has told it to end, and would wait for it for ever. */
Test(host_core, an_operator_that_keeps_it_from_its_end_is_a_failure)
{
	const char *fragments[] = {"f1", "f2"};

	from_workerd((struct fw_message){.kind = FW_HOST_CREATE,
					 .create = {.fragments = fragments, .fragment_count = 2}});
	prepare_done(true);
	step((struct host_event){.kind = HOST_EV_STOP});
	cr_assert_not(timers_until(now + 9999 * MS, true, FW_HOST_EVENT));
	cr_assert(timers_until(now + 1 * MS, true, FW_HOST_EVENT));
	cr_expect_eq(sent(FW_HOST_EVENT)->event.state, FW_STATE_FAILED);
	cr_expect_eq(sent(FW_HOST_EVENT)->event.failure.code, FRAGI_FAILURE_OPERATOR_HUNG);
	cr_expect_str_eq(
		sent(FW_HOST_EVENT)->event.failure.sentence,
		"the host of f1, f2 was told to end, and has not ended within 10 s: a callback of an operator does not return; find out what it waits for");
	expect_state(HOST_STATE_ENDING);
	cr_assert_not(timers_until(now + 20000 * MS, true, FW_HOST_EVENT), "it is reported once");
	work_done(HOST_EV_DESTROY_DONE, NULL);
	cr_expect(did(HOST_DO_EXIT)->operators_may_hang, "nothing is taken from under it");
}

/* One that has failed is known to its driver, which ends it. */
Test(host_core, the_end_of_a_host_that_has_failed_is_not_limited)
{
	up_to_started();
	report((struct fw_host_event){
		.state = FW_STATE_FAILED,
		.failure = {FRAGI_FAILURE_OPERATOR_FAILED, "compute returned -5", "f.a"}});
	step((struct host_event){.kind = HOST_EV_STOP});
	cr_assert_not(timers_until(now + 20000 * MS, true, FW_HOST_EVENT));
}

Test(host_core, frames_out_of_turn_are_ignored)
{
	from_workerd((struct fw_message){.kind = FW_HOST_START});
	cr_expect_str_eq(logged(FRAGI_LOG_WARN),
			 "ignored HOST_START: it does not come at this point");
	up_to_started();
	create();
	cr_expect_null(did(HOST_DO_PREPARE));
	from_workerd((struct fw_message){.kind = FW_HOST_WIRE});
	cr_expect_null(did(HOST_DO_WIRE));
	from_workerd((struct fw_message){.kind = FW_HELLO});
	cr_expect_str_eq(logged(FRAGI_LOG_WARN), "ignored HELLO: it is not for a host");
	expect_state(HOST_STATE_STARTED);
}

/* While it connects, that work has to be completed first. */
Test(host_core, the_time_for_peers_waits_for_the_work)
{
	up_to_wiring();
	cr_assert_not(timers_until(now + 20000 * MS, true, FW_HOST_WIRED));
	expect_state(HOST_STATE_WIRING);
	work_done(HOST_EV_WIRE_DONE, &good);
	cr_assert(timers_until(now + 1 * MS, true, FW_HOST_WIRED));
	cr_expect_eq(sent(FW_HOST_WIRED)->result.failure.code, FRAGI_FAILURE_EDGE_UNREACHABLE);
}

Test(host_core, peers_that_do_not_answer_in_time_are_named)
{
	up_to_wiring();
	work_done(HOST_EV_WIRE_DONE, &good);
	cr_assert_not(timers_until(now + 8999 * MS, true, FW_HOST_WIRED));
	cr_assert(timers_until(now + 1 * MS, true, FW_HOST_WIRED));
	cr_expect_not(sent(FW_HOST_WIRED)->result.failure.code == FRAGI_FAILURE_NONE);
	cr_expect_eq(sent(FW_HOST_WIRED)->result.failure.code, FRAGI_FAILURE_EDGE_UNREACHABLE);
	cr_expect_str_eq(
		sent(FW_HOST_WIRED)->result.failure.sentence,
		"no answer from f1, f2, f3 over the data plane within 9 s; check that the addresses of --worker-address can reach each other and that no firewall stands between");
	expect_state(HOST_STATE_FAILED);
	step((struct host_event){.kind = HOST_EV_PEERS_READY});
	cr_expect_null(sent(FW_HOST_WIRED), "too late");
}

Test(host_core, a_failure_while_its_peers_are_awaited_is_the_result_of_the_phase)
{
	up_to_wiring();
	work_done(HOST_EV_WIRE_DONE, &good);
	report((struct fw_host_event){
		.state = FW_STATE_PEER_LOST,
		.peer = 4,
		.failure = {FRAGI_FAILURE_EDGE_LOST, "its address is wrong", ""}});
	cr_expect_null(sent(FW_HOST_EVENT));
	cr_assert_not_null(sent(FW_HOST_WIRED));
	cr_expect_eq(sent(FW_HOST_WIRED)->result.failure.code, FRAGI_FAILURE_EDGE_LOST);
	cr_expect_str_eq(sent(FW_HOST_WIRED)->result.failure.sentence, "its address is wrong");
	expect_state(HOST_STATE_FAILED);
}

Test(host_core, a_lost_peer_of_a_started_host_is_reported)
{
	up_to_started();
	report((struct fw_host_event){
		.state = FW_STATE_PEER_LOST,
		.peer = 4,
		.failure = {FRAGI_FAILURE_EDGE_LOST, "connection reset", ""}});
	cr_assert_not_null(sent(FW_HOST_EVENT));
	cr_expect_eq(sent(FW_HOST_EVENT)->event.peer, 4);
	expect_state(HOST_STATE_STARTED);
}

Test(host_core, after_a_failure_of_its_run_nothing_is_taken_away_from_operators)
{
	up_to_started();
	report((struct fw_host_event){
		.state = FW_STATE_FAILED,
		.failure = {FRAGI_FAILURE_OPERATOR_FAILED, "f.a hangs", "f1.tx"}});
	cr_assert_not_null(sent(FW_HOST_EVENT));
	cr_expect_str_eq(sent(FW_HOST_EVENT)->event.failure.sentence, "f.a hangs");
	stop(5000 * MS);
	cr_expect_not_null(did(HOST_DO_DRAIN), "its other fragments run on");
	stop(0);
	work_done(HOST_EV_DESTROY_DONE, NULL);
	cr_assert_not_null(did(HOST_DO_EXIT));
	cr_expect_eq(did(HOST_DO_EXIT)->exit_code, 0);
	cr_expect(did(HOST_DO_EXIT)->operators_may_hang);
}

Test(host_core, that_it_runs_again_is_reported_with_a_beat_before_which_it_was_not_idle)
{
	up_to_started();
	report((struct fw_host_event){.state = FW_STATE_IDLE, .idle_rounds = 9});
	cr_assert_not_null(sent(FW_HOST_EVENT));
	cr_expect_eq(sent(FW_HOST_EVENT)->event.idle_rounds, 9);
	cr_assert(timers_until(now + 250 * MS, true, FW_BEAT));
	cr_expect_null(sent(FW_HOST_EVENT), "it was idle since the last beat");
	cr_assert(timers_until(now + 100 * MS, true, FW_BEAT));
	cr_assert_not_null(sent(FW_HOST_EVENT));
	cr_expect_eq(sent(FW_HOST_EVENT)->event.state, FW_STATE_RUNNING);
	cr_assert(timers_until(now + 100 * MS, true, FW_BEAT));
	cr_expect_null(sent(FW_HOST_EVENT), "once");
}

Test(host_core, a_silent_workerd_ends_it)
{
	int64_t from;

	up_to_started();
	from = now;
	cr_assert(timers_until(now + 2000 * MS, false, FW_HOST_WIRED));
	cr_assert_not_null(did(HOST_DO_EXIT));
	cr_expect_eq(now - from, 1000 * MS);
	cr_expect_eq(did(HOST_DO_EXIT)->exit_code, 3);
	cr_expect_str_eq(logged(FRAGI_LOG_ERROR),
			 "workerd has not been heard for 1.0 s: this host ends");
}

Test(host_core, silence_is_judged_in_its_own_awake_time)
{
	up_to_started();
	now += 5000 * MS; /* it did not run itself */
	step((struct host_event){.kind = HOST_EV_TIMER});
	cr_expect_null(did(HOST_DO_EXIT), "what workerd sent lies unread");
	cr_expect_not_null(sent(FW_BEAT));
	cr_assert_not(timers_until(now + 799 * MS, false, FW_HOST_WIRED), "it has been asleep too");
	cr_assert(timers_until(now + 201 * MS, false, FW_HOST_WIRED), "its time of death is over");
	cr_expect_not_null(did(HOST_DO_EXIT));
}

Test(host_core, a_pause_before_the_first_step_is_no_silence)
{
	now += 5000 * MS;
	step((struct host_event){.kind = HOST_EV_TIMER});
	cr_expect_null(did(HOST_DO_EXIT), "what workerd sent lies unread");
}

Test(host_core, a_lost_connection_ends_it_at_once_whatever_it_does)
{
	up_to_wiring();
	step((struct host_event){.kind = HOST_EV_CONNECTION_LOST, .text = ""});
	cr_assert_not_null(did(HOST_DO_EXIT));
	cr_expect_eq(did(HOST_DO_EXIT)->exit_code, 3);
	cr_expect(did(HOST_DO_EXIT)->operators_may_hang);
	cr_expect_str_eq(logged(FRAGI_LOG_ERROR), "", "an end of file is no news");
}

Test(host_core, why_its_connection_broke_is_logged)
{
	step((struct host_event){.kind = HOST_EV_CONNECTION_LOST,
				 .text = "workerd sent what cannot be read: bad message"});
	cr_expect_str_eq(logged(FRAGI_LOG_ERROR), "workerd sent what cannot be read: bad message");
	cr_expect_not_null(did(HOST_DO_EXIT));
}

#ifndef NDEBUG
Test(host_core, a_completion_that_nobody_waits_for_aborts, .signal = SIGABRT)
{
	work_done(HOST_EV_WIRE_DONE, &good);
}

Test(host_core, a_report_of_a_run_that_is_being_worked_on_aborts, .signal = SIGABRT)
{
	create();
	report((struct fw_host_event){.state = FW_STATE_IDLE});
}

Test(host_core, an_event_after_its_exit_aborts, .signal = SIGABRT)
{
	step((struct host_event){.kind = HOST_EV_CONNECTION_LOST, .text = ""});
	step((struct host_event){.kind = HOST_EV_STOP});
}
#endif

Test(host_core, a_drain_limits_callbacks)
{
	up_to_started();
	stop(5000 * MS);
	cr_assert_not_null(did(HOST_DO_DRAIN));
	cr_expect_eq(did(HOST_DO_DRAIN)->drain_ns, 5000 * MS);
}

/* A driver that comes back takes a host for started whose START is still under way. */
Test(host_core, a_host_that_starts_drains_when_it_has_started)
{
	static const enum host_action_kind kinds[] = {HOST_DO_DRAIN, HOST_DO_YIELD};
	struct fw_message message = {.kind = FW_HOST_STOP};

	for (int yields = 0; yields < 2; yields++) {
		up_to_wired();
		from_workerd((struct fw_message){.kind = FW_HOST_START});
		message.stop.drain_ns = 5000 * MS;
		message.stop.restarts = yields;
		from_workerd(message);
		expect_state(HOST_STATE_STARTING);
		work_done(HOST_EV_START_DONE, &good);
		expect_state(HOST_STATE_STARTED);
		cr_assert_not_null(did(kinds[yields]));
		cr_expect_eq(did(kinds[yields])->drain_ns, 5000 * MS);
		cr_expect_null(did(kinds[!yields]));
		finish();
		make();
	}
	/* One that is to end meanwhile begins no drain. */
	up_to_wired();
	from_workerd((struct fw_message){.kind = FW_HOST_START});
	from_workerd(message);
	stop(0);
	work_done(HOST_EV_START_DONE, &good);
	cr_expect_null(did(HOST_DO_YIELD));
	expect_state(HOST_STATE_ENDING);
}

Test(host_core, what_the_run_reports_while_it_starts_is_passed_on)
{
	up_to_wired();
	from_workerd((struct fw_message){.kind = FW_HOST_START});
	report((struct fw_host_event){.state = FW_STATE_STOPPED});
	cr_assert_not_null(sent(FW_HOST_EVENT));
	expect_state(HOST_STATE_STARTING);
	work_done(HOST_EV_START_DONE, &good);
	expect_state(HOST_STATE_STARTED);
}

/* Nothing is taken away from under an operator that does not come back. */
Test(host_core, a_thread_that_is_lost_keeps_what_it_has)
{
	for (int i = 0; i < 3; i++) {
		struct fw_host_prepared prepared = {.ok = i > 0, .pid = 4711};

		if (i > 0) {
			finish();
			make();
		}
		create();
		step((struct host_event){.kind = HOST_EV_PREPARE_DONE,
					 .prepared = &prepared,
					 .operators_may_hang = i == 0});
		step((struct host_event){.kind = HOST_EV_STOP});
		cr_assert_not_null(did(HOST_DO_DESTROY));
		step((struct host_event){.kind = HOST_EV_DESTROY_DONE,
					 .operators_may_hang = i == 1});
		cr_assert_not_null(did(HOST_DO_EXIT));
		cr_expect_eq(did(HOST_DO_EXIT)->operators_may_hang, i < 2);
		cr_expect_eq(did(HOST_DO_EXIT)->exit_code, i == 1 ? WRK_HOST_EXIT_BROKEN_OFF : 0);
	}
}

static void ask_to_set(uint64_t number)
{
	from_workerd((struct fw_message){.kind = FW_HOST_SET,
					 .host_set = {number, "f.op.value=1", "user alice"}});
}

Test(host_core, parameters_are_set_while_the_operators_run)
{
	const struct fw_host_set_done done = {9, {FRAGI_FAILURE_USAGE, "no", ""}};

	up_to_started();
	ask_to_set(9);
	cr_assert_not_null(did(HOST_DO_SET));
	cr_expect_eq(did(HOST_DO_SET)->request->host_set.number, 9);
	cr_expect_null(sent(FW_HOST_SET_DONE), "the run is asked first");
	step((struct host_event){.kind = HOST_EV_SET_DONE, .set_done = &done});
	cr_assert_not_null(sent(FW_HOST_SET_DONE));
	cr_expect_eq(sent(FW_HOST_SET_DONE)->host_set_done.number, 9);
	cr_expect_str_eq(sent(FW_HOST_SET_DONE)->host_set_done.failure.sentence, "no");
	cr_expect_eq(sent(FW_HOST_SET_DONE)->epoch, 3);
}

Test(host_core, before_and_after_no_parameter_is_set)
{
	up_to_prepared();
	for (int end = 0; end < 2; end++) {
		ask_to_set(9);
		cr_expect_null(did(HOST_DO_SET));
		cr_assert_not_null(sent(FW_HOST_SET_DONE), "each one is answered");
		cr_expect_eq(sent(FW_HOST_SET_DONE)->host_set_done.number, 9);
		cr_expect_eq(sent(FW_HOST_SET_DONE)->host_set_done.failure.code,
			     FRAGI_FAILURE_HOST_FAILED);
		stop(0);
	}
	step((struct host_event){.kind = HOST_EV_DESTROY_DONE});
}

/* What people look at is passed on. */
Test(host_core, flows_are_tapped)
{
	const struct fw_message tap = {.kind = FW_HOST_TAP, .host_tap = {.tap = 4, .port = 1}};
	const struct fw_tapped tapped = {4, "message", 7};

	up_to_started();
	from_workerd(tap);
	cr_assert_not_null(did(HOST_DO_TAP));
	cr_expect_eq(did(HOST_DO_TAP)->request->host_tap.tap, 4);
	step((struct host_event){.kind = HOST_EV_TAPPED, .tapped = &tapped});
	cr_assert_not_null(sent(FW_HOST_TAPPED));
	cr_expect_eq(sent(FW_HOST_TAPPED)->tapped.tap, 4);
	cr_expect_eq(sent(FW_HOST_TAPPED)->tapped.size, 7);
	cr_expect_eq(sent(FW_HOST_TAPPED)->epoch, 3);
}
