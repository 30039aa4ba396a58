// SPDX-License-Identifier: Apache-2.0
#include "driver_world.h"

/* Hosts that are started again when they fail (on_failure). */

static void restarting_runs(struct world *w)
{
	two_run(w, receiver_restarts);
}

/* The receiver dies, having counted so many of the messages. */
static void receiver_dies(struct world *w, uint64_t delivered)
{
	say_stats(w, 2, 2, true, 0, delivered);
	say_exit(w, 2, 2, 139, 11, RX_CRASH);
}

/* It is asked for anew, and comes as far as being prepared. */
static void is_prepared_again(struct world *w, uint64_t epoch)
{
	const struct fw_message *m = must_take(w, 2, FW_HOST_CREATE);
	cr_assert_eq(m->epoch, epoch);
	speaking_epoch[2] = epoch;
	say_prepared(w, 2, 2, "f2", false);
}

static void runs_again(struct world *w, uint64_t epoch)
{
	is_prepared_again(w, epoch);
	say_result(w, 2, 2, FW_HOST_WIRED);
	cr_assert_not_null(taken(w, 2, FW_HOST_START));
	say_result(w, 2, 2, FW_HOST_STARTED);
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_RUNNING);
}

/* The last event is this one, and nobody has asked for it. */
static void assert_event(const struct world *w, enum fw_notice_kind kind, const char *text)
{
	const struct drv_history *history = &w->core->history;
	const struct drv_notice *notice = drv_history_after(history, history->last_notice - 1);

	cr_assert_not_null(notice);
	cr_expect_eq(notice->kind, kind);
	cr_expect_str_eq(notice->text, text);
	cr_expect_str_eq(notice->who, "");
	cr_expect_str_eq(notice->application, "app");
}

static void ends(struct world *w)
{
	step(w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 2});
	both_are_done(w);
	say_stats(w, 1, 1, true, 20, 0);
	say_stats(w, 2, 2, true, 0, 12);
	both_exit(w);
	cr_assert(w->ended, "%s", w->log);
}

WORLD_TEST(driver_restart, a_host_that_dies_is_started_again_and_its_neighbour_is_wired_to_it,
	   restarting_runs)
{
	const struct fw_message *m, *again;

	receiver_dies(w, 5);
	cr_expect_str_eq(w->errors, "");
	cr_expect_null(taken(w, 1, FW_HOST_KILL));
	cr_expect_null(taken(w, 1, FW_HOST_WIRE), "not before there is something to wire");
	is_prepared_again(w, 2);
	again = taken(w, 2, FW_HOST_WIRE);
	m = must_take(w, 1, FW_HOST_WIRE);
	cr_assert_not_null(again);
	cr_assert_eq(m->wire.peer_count, 1);
	cr_expect_eq(m->wire.peers[0].host, 2);
	cr_expect_eq(m->wire.peers[0].epoch, 2);
	cr_assert_eq(m->wire.edge_count, 1);
	cr_expect_eq(again->wire.peers[0].epoch, 1);
	cr_expect_arr_eq(m->wire.edges[0].token, again->wire.edges[0].token, FW_TOKEN_BYTES);
	say_result(w, 2, 2, FW_HOST_WIRED);
	cr_assert_not_null(taken(w, 2, FW_HOST_START));
	say_result(w, 2, 2, FW_HOST_STARTED);
	assert_has(w->log, "f2 runs again on worker b, epoch 2");
	assert_event(w, FW_NOTICE_RESTART, "f2 (1 of 2): " RX_CRASH);
	ends(w);
	cr_expect_eq(w->result, FRAGI_SUMMARY_STOPPED);
	assert_has(w->json, "\"sent\": 20, \"delivered\": 17");
	assert_has(w->json, "\"lost\": 3, \"in_flight\": 0, \"exact\": true");
	assert_has(w->json, "\"lost_because\": \"" RX_CRASH "\"");
	assert_has(w->json, "\"epoch\": 2, \"restarts\": 1");
}

/* It may still have messages for the new process. */
WORLD_TEST(driver_restart, a_neighbour_that_is_done_is_wired_again, restarting_runs)
{
	const struct fw_message *m;

	say_event(w, 1, 1, FW_STATE_DONE, "");
	receiver_dies(w, 5);
	is_prepared_again(w, 2);
	m = must_take(w, 1, FW_HOST_WIRE);
	cr_assert_eq(m->wire.peer_count, 1);
	cr_expect_eq(m->wire.peers[0].epoch, 2);
	cr_expect_not_null(taken(w, 2, FW_HOST_WIRE));
}

WORLD_TEST(driver_restart, the_tokens_of_its_edges_are_new, world_init)
{
	uint8_t before[FW_TOKEN_BYTES];
	const struct fw_message *m;

	app(w, receiver_restarts);
	both_come(w);
	both_prepare(w);
	memcpy(before, taken(w, 1, FW_HOST_WIRE)->wire.edges[0].token, sizeof(before));
	both_run(w);
	(void)taken(w, 2, FW_HOST_CREATE);
	receiver_dies(w, 0);
	is_prepared_again(w, 2);
	m = must_take(w, 1, FW_HOST_WIRE);
	cr_expect_arr_neq(m->wire.edges[0].token, before, sizeof(before));
}

WORLD_TEST(driver_restart, more_failures_than_its_intensity_are_that_of_the_application,
	   restarting_runs)
{
	receiver_dies(w, 5);
	runs_again(w, 2);
	say_exit(w, 2, 2, 3, 0, "fraghost 103 exited with status 3");
	cr_expect_null(taken(w, 2, FW_HOST_CREATE), "the second time after its backoff");
	pass_beating(w, 900 * MS, 1, 2);
	cr_expect_null(taken(w, 2, FW_HOST_CREATE));
	pass_beating(w, 200 * MS, 1, 2);
	runs_again(w, 3);
	cr_expect_str_eq(w->errors, "");
	say_exit(w, 2, 2, 3, 0, "fraghost 104 exited with status 3");
	cr_assert_not_null(taken(w, 1, FW_HOST_STOP));
	say_exit(w, 1, 1, 137, 9, "");
	cr_assert(w->ended);
	cr_expect_eq(w->result, FRAGI_SUMMARY_FAILED);
	cr_expect_str_eq(
		w->reason,
		"f2 on worker b failed again after 2 restarts within 60.0 s, as many as its on_failure allows; the first time: " RX_CRASH);
	assert_has(w->json, "\"code\": \"host_crashed\"");
}

/* The code and the operator of an application's failure are those of its host's first one. */
WORLD_TEST(driver_restart, what_fails_for_good_has_the_operator_of_the_first_failure,
	   restarting_runs)
{
	struct fw_message failed = of_host(FW_HOST_EVENT, 2);

	failed.event.state = FW_STATE_FAILED;
	failed.event.failure =
		(struct fw_failure){FRAGI_FAILURE_OPERATOR_FAILED, "f2.rx has had enough", "rx"};
	say(w, 2, &failed);
	say_exit(w, 2, 2, 1, 0, "fraghost 102 exited with status 1");
	runs_again(w, 2);
	say_exit(w, 2, 2, 3, 0, "fraghost 103 exited with status 3");
	pass_beating(w, 1100 * MS, 1, 2);
	runs_again(w, 3);
	say_exit(w, 2, 2, 3, 0, "fraghost 104 exited with status 3");
	cr_assert_not_null(taken(w, 1, FW_HOST_STOP));
	say_exit(w, 1, 1, 137, 9, "");
	cr_assert(w->ended);
	assert_has(w->reason, "as many as its on_failure allows; the first time: f2.rx has had");
	assert_has(w->json, "\"code\": \"operator_failed\"");
	assert_has(w->json, "\"operator\": \"rx\"");
}

/* What is not awaited any more has not ended, so all was not done; another result stays. */
WORLD_TEST(driver_restart, what_is_not_awaited_is_not_done, restarting_runs)
{
	static const enum fragi_summary_result rows[][2] = {
		{FRAGI_SUMMARY_DONE, FRAGI_SUMMARY_STOPPED},
		{FRAGI_SUMMARY_STOPPED, FRAGI_SUMMARY_STOPPED},
		{FRAGI_SUMMARY_FAILED, FRAGI_SUMMARY_FAILED}};

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		struct drv_host *host = &w->core->apps[0]->hosts[1];

		w->core->apps[0]->summary.result = rows[i][0];
		host->replacement.is_given_up = false;
		drv_replace_not_awaited(host);
		cr_expect_eq(w->core->apps[0]->summary.result, rows[i][1], "%zu", i);
		cr_expect(host->replacement.is_given_up);
	}
}

WORLD_TEST(driver_restart, failures_further_apart_than_the_period_do_not_add_up, restarting_runs)
{
	for (uint64_t epoch = 2; epoch < 8; epoch++) {
		receiver_dies(w, 5);
		runs_again(w, epoch);
		pass_beating(w, 61 * SECOND, 1, 2);
	}
	cr_expect_str_eq(w->errors, "");
}

/* A restart that is exactly one period old is none within the last period. */
WORLD_TEST(driver_restart, a_restart_counts_for_less_than_its_period, restarting_runs)
{
	static const int64_t later_ns[] = {60 * SECOND - 100 * MS, 60 * SECOND};

	receiver_dies(w, 5);
	for (uint64_t i = 0; i < FRAG_COUNT_OF(later_ns); i++) {
		runs_again(w, 2 + 2 * i);
		pass_beating(w, later_ns[i], 1, 2);
		receiver_dies(w, 5);
		assert_event(w, FW_NOTICE_RESTART,
			     i == 0 ? "f2 (2 of 2): " RX_CRASH : "f2 (1 of 2): " RX_CRASH);
		if (i != 0)
			break;
		pass_beating(w, SECOND, 1, 2);
		runs_again(w, 3);
		pass_beating(w, 61 * SECOND, 1, 2);
		receiver_dies(w, 5);
	}
}

WORLD_TEST(driver_restart, a_host_that_failed_and_lives_is_killed_first, restarting_runs)
{
	const struct fw_message *m;

	say_event(w, 2, 2, FW_STATE_FAILED, "f2.rx: no display");
	m = must_take(w, 2, FW_HOST_KILL);
	cr_expect(m->stop.restarts, "so its worker has not come to its end");
	cr_expect_null(taken(w, 2, FW_HOST_CREATE));
	say_event(w, 2, 2, FW_STATE_FAILED, "and more");
	say_end(w, 2, 2, 0, 5, 137, 9);
	runs_again(w, 2);
	cr_expect_str_eq(w->errors, "");
}

/* All others are done: the application goes on for the one that will be there again. */
WORLD_TEST(driver_restart, what_is_killed_to_start_again_has_not_ended, restarting_runs)
{
	say_event(w, 1, 1, FW_STATE_DONE, "");
	say_event(w, 2, 2, FW_STATE_FAILED, "f2.rx: no display");
	cr_assert_not_null(taken(w, 2, FW_HOST_KILL));
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING);
	say_end(w, 2, 2, 0, 5, 137, 9);
	runs_again(w, 2);
	say_event(w, 2, 2, FW_STATE_DONE, "");
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_CLOSING);
}

/* It is asked to end only once, however far the application comes meanwhile. */
WORLD_TEST(driver_restart, a_stop_kills_what_is_being_started_once, restarting_runs)
{
	receiver_dies(w, 5);
	is_prepared_again(w, 2);
	step(w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 2});
	cr_expect_not(must_take(w, 2, FW_HOST_KILL)->stop.restarts, "nothing comes after it");
	say_event(w, 1, 1, FW_STATE_DONE, ""); /* before that has ended */
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_CLOSING);
	cr_expect_null(taken(w, 2, FW_HOST_KILL));
	cr_expect_eq(drv_core_illegal_transitions(w->core), 0);
	say_exit(w, 2, 2, 137, 9, "");
	say_exit(w, 1, 1, 0, 0, "");
	cr_assert(w->ended, "%s", w->log);
	cr_expect_eq(w->result, FRAGI_SUMMARY_STOPPED);
}

/* Its worker stands still; no operator is to blame, since nothing was told to end. */
WORLD_TEST(driver_restart, a_stop_does_not_blame_what_was_being_killed, restarting_runs)
{
	say_event(w, 2, 2, FW_STATE_FAILED, "f2.rx: no display");
	step(w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 2});
	say_event(w, 1, 1, FW_STATE_DONE, "");
	say_exit(w, 1, 1, 0, 0, "");
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_CLOSING, "%s", w->log);
	while (drv_core_app_state(w->core) == DRV_APP_CLOSING)
		pass_beating(w, SECOND, 1, 2);
	cr_expect_null(strstr(w->log, "did not end within"), "%s", w->log);
	say_exit(w, 2, 2, 137, 9, "");
	cr_assert(w->ended, "%s", w->log);
	cr_expect_eq(w->result, FRAGI_SUMMARY_STOPPED, "%s", w->log);
}

/* As when everybody in a terminal gets a Ctrl-C: its worker has nothing left to wait for. */
WORLD_TEST(driver_restart, a_worker_may_leave_what_a_stop_has_given_up, restarting_runs)
{
	receiver_dies(w, 5);
	step(w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 2});
	cr_assert_not_null(taken(w, 2, FW_HOST_KILL));
	say(w, 2, &(struct fw_message){.kind = FW_LEAVE});
	cr_expect_str_eq(w->errors, "");
	say_event(w, 1, 1, FW_STATE_DONE, "");
	say_exit(w, 1, 1, 0, 0, "");
	cr_assert(w->ended, "%s", w->log);
	cr_expect_eq(w->result, FRAGI_SUMMARY_STOPPED);
}

/* It would not do so again either. */
WORLD_TEST(driver_restart, a_worker_that_refuses_it_is_the_cause, restarting_runs)
{
	struct fw_message refused = of_host(FW_HOST_EXIT, 2);

	receiver_dies(w, 5);
	cr_assert_not_null(taken(w, 2, FW_HOST_CREATE));
	refused.epoch = 2;
	refused.exit = (struct fw_host_exit){
		.exit_code = 1,
		.failure = {FRAGI_FAILURE_WORKER_BUSY, "worker b has been told to end", NULL}};
	say(w, 2, &refused);
	assert_has(w->errors, "worker b has been told to end");
	cr_expect_null(taken(w, 2, FW_HOST_CREATE));
}

WORLD_TEST(driver_restart, what_was_reported_about_an_older_epoch_means_nothing, restarting_runs)
{
	struct fw_message lost = of_host(FW_HOST_EVENT, 1);

	lost.event = (struct fw_host_event){
		.state = FW_STATE_PEER_LOST,
		.peer = 2,
		.peer_epoch = 1,
		.failure = {FRAGI_FAILURE_EDGE_LOST, "the data link broke", ""}};
	say(w, 1, &lost); /* before its cause */
	receiver_dies(w, 5);
	runs_again(w, 2);
	say(w, 1, &lost); /* and late */
	pass_beating(w, 3 * SECOND, 1, 2);
	cr_expect_str_eq(w->errors, "");
	lost.event.peer_epoch = 2;
	say(w, 1, &lost);
	pass_beating(w, 3 * SECOND, 1, 2);
	assert_has(w->errors, "was lost, while their control connections are up");
}

/* A driver before, whose state is lost, may have given the same epochs to other processes. */
WORLD_TEST(driver_restart, a_process_that_is_not_wired_yet_has_no_links_to_lose, restarting_runs)
{
	struct fw_message lost = of_host(FW_HOST_EVENT, 1);

	lost.event = (struct fw_host_event){
		.state = FW_STATE_PEER_LOST,
		.peer = 2,
		.peer_epoch = 2,
		.failure = {FRAGI_FAILURE_EDGE_LOST, "the data link broke", ""}};
	receiver_dies(w, 5);
	say(w, 1, &lost); /* it is being prepared */
	cr_expect_null(taken(w, 2, FW_HOST_KILL));
	runs_again(w, 2);
	receiver_dies(w, 5);
	lost.event.peer_epoch = 3;
	say(w, 1, &lost); /* it waits for its backoff */
	pass_beating(w, 1100 * MS, 1, 2);
	runs_again(w, 3);
	cr_expect_str_eq(w->errors, "");
}

/* It was idle when it failed, and its neighbour says only then that it has nothing left to do. */
WORLD_TEST(driver_restart, a_host_that_is_killed_is_not_at_rest, restarting_runs)
{
	say_idle(w, 2, 2, 0, 5);
	say_event(w, 2, 2, FW_STATE_FAILED, "f2.rx: no disk");
	cr_assert_not_null(taken(w, 2, FW_HOST_KILL), "%s", w->log);
	say_idle(w, 1, 1, 5, 0);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING);
	say_exit(w, 2, 2, 137, 9, "");
	cr_expect_not_null(taken(w, 2, FW_HOST_CREATE), "%s", w->log);
}

static const char three_times[] = TWO_FRAGMENTS(
	"", ", on_failure: {policy: restart, intensity: 3, period: 60s, backoff: 1s}");

/* A worker that is not what it seems may say so. */
WORLD_TEST(driver_restart, what_waits_for_its_backoff_has_no_process_that_could_fail, NULL)
{
	two_run(w, three_times);
	receiver_dies(w, 5);
	runs_again(w, 2);
	receiver_dies(w, 5);
	speaking_epoch[2] = 3;
	say_event(w, 2, 2, FW_STATE_FAILED, "it failed");
	pass_beating(w, 2100 * MS, 1, 2);
	runs_again(w, 3);
	cr_expect_str_eq(w->errors, "");
}

WORLD_TEST(driver_restart, a_failure_on_the_way_is_one_more, restarting_runs)
{
	struct fw_message wired;

	receiver_dies(w, 5);
	is_prepared_again(w, 2);
	wired = of_host(FW_HOST_WIRED, 2);
	wired.result = (struct fw_host_result){{FRAGI_FAILURE_EDGE_UNREACHABLE, "no answer", ""}};
	say(w, 2, &wired);
	cr_assert_not_null(taken(w, 2, FW_HOST_KILL));
	say_exit(w, 2, 2, 137, 9, "");
	pass_beating(w, 1100 * MS, 1, 2);
	runs_again(w, 3);
	cr_expect_str_eq(w->errors, "");
}

WORLD_TEST(driver_restart, one_that_does_not_answer_is_late, restarting_runs)
{
	receiver_dies(w, 5);
	is_prepared_again(w, 2);
	for (int i = 0; i < 600 && taken(w, 2, FW_HOST_KILL) == NULL; i++)
		pass_beating(w, 100 * MS, 1, 2);
	assert_has(w->log, "f2 on worker b did not answer WIRE in time");
	say_exit(w, 2, 2, 137, 9, "");
	pass_beating(w, 1100 * MS, 1, 2);
	runs_again(w, 3);
}

WORLD_TEST(driver_restart, other_operators_than_before_are_a_failure, restarting_runs)
{
	struct table table = table_of("f2", false);

	receiver_dies(w, 5);
	cr_assert_not_null(taken(w, 2, FW_HOST_CREATE));
	speaking_epoch[2] = 2;
	table.op = "other";
	say_table(w, 2, 2, &table);
	assert_has(w->log, "its operators, ports or types are others than before");
	cr_assert_not_null(taken(w, 2, FW_HOST_KILL));
}

Test(driver_restart, a_stop_is_not_delayed_by_what_is_being_started)
{
	for (int step_of = 0; step_of < 3; step_of++) {
		struct world w;

		restarting_runs(&w);
		receiver_dies(&w, 5);
		if (step_of > 0)
			is_prepared_again(&w, 2);
		if (step_of == 2) { /* it waits for its backoff */
			say_stats(&w, 2, 2, true, 0, 0);
			say_exit(&w, 2, 2, 3, 0, "fraghost 103 exited with status 3");
			cr_expect_null(taken(&w, 2, FW_HOST_CREATE));
		}
		step(&w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 2});
		cr_expect_eq(taken(&w, 2, FW_HOST_KILL) != NULL, step_of < 2);
		speaking_epoch[2] = 2;
		if (step_of == 1)
			say_stats(&w, 2, 2, true, 0, 0);
		if (step_of < 2)
			say_exit(&w, 2, 2, 137, 9, "");
		say_event(&w, 1, 1, FW_STATE_DONE, "");
		say_stats(&w, 1, 1, true, 8, 0);
		say_exit(&w, 1, 1, 0, 0, "");
		cr_assert(w.ended, "%s", w.log);
		cr_expect_eq(w.result, FRAGI_SUMMARY_STOPPED);
		assert_has(w.json, "\"sent\": 8, \"delivered\": 5");
		assert_has(w.json, "\"lost\": 3, \"in_flight\": 0, \"exact\": true");
		world_fini(&w);
	}
}

WORLD_TEST(driver_restart, a_failure_while_the_application_stops_is_its_failure, restarting_runs)
{
	step(w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 2});
	receiver_dies(w, 5);
	assert_has(w->errors, RX_CRASH);
}

WORLD_TEST(driver_restart, a_worker_that_is_gone_starts_nothing, restarting_runs)
{
	receiver_dies(w, 5);
	step(w, &(struct drv_event){.kind = DRV_EVENT_CLOSED, .connection = 2, .text = "reset"});
	cr_assert_not_null(taken(w, 1, FW_HOST_STOP));
	say_exit(w, 1, 1, 137, 9, "");
	cr_assert(w->ended);
	cr_expect_eq(w->result, FRAGI_SUMMARY_FAILED);
}

Test(driver_restart, what_is_wired_may_have_received_something_before_it_was_started)
{
	for (int is_wired = 0; is_wired < 2; is_wired++) {
		struct world w;

		restarting_runs(&w);
		receiver_dies(&w, 5);
		if (is_wired)
			is_prepared_again(&w, 2);
		step(&w,
		     &(struct drv_event){.kind = DRV_EVENT_CLOSED, .connection = 2, .text = ""});
		say_stats(&w, 1, 1, true, 20, 0);
		say_exit(&w, 1, 1, 137, 9, "");
		cr_assert(w.ended, "%s", w.log);
		assert_has(w.json, is_wired ? "\"exact\": false" : "\"exact\": true");
		assert_has(w.json, is_wired ? "\"lost_at_least\": 0" : "\"lost\": 15");
		world_fini(&w);
	}
}

WORLD_TEST(driver_restart, fragments_that_want_something_else_get_hosts_of_their_own, NULL)
{
#define WANTS(what) ", on_failure: {policy: " what "}"
	static const struct {
		const char *f1, *f2;
		bool is_one;
	} rows[] = {
		{"", WANTS("restart, intensity: 2"), false},
		{WANTS("restart"), WANTS("migrate, lease: 0s"), false},
		{WANTS("restart, intensity: 2"), WANTS("restart, intensity: 3"), false},
		{WANTS("restart, period: 50s"), WANTS("restart, period: 51s"), false},
		{WANTS("restart, backoff: 1s"), WANTS("restart, backoff: 2s"), false},
		{WANTS("migrate, lease: 9s"), WANTS("migrate, lease: 10s"), false},
		{WANTS("migrate, lease: 9s"), WANTS("migrate, lease: 9s"), true},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		char text[600];

		if (i > 0)
			world_fini(w);
		world_init(w);
		snprintf(text, sizeof(text), TWO_FRAGMENTS("%s", "%s"), rows[i].f1, rows[i].f2);
		app(w, text);
		hello(w, 1, "a", NULL);
		cr_expect_not_null(taken(w, 1, FW_HOST_CREATE), "%zu: %s", i, w->log);
		cr_expect_eq(taken(w, 1, FW_HOST_CREATE) == NULL, rows[i].is_one, "%zu", i);
		cr_expect_null(taken(w, 1, FW_HOST_CREATE), "%zu", i);
	}
}

/* Its answer has the tables of before, and an error. */
WORLD_TEST(driver_restart, a_process_that_could_not_prepare_has_failed, NULL)
{
	struct fw_failure error = {FRAGI_FAILURE_OPERATOR_FAILED, "f2.rx: no disk", "f2.rx"};
	struct table table = table_of("f2", false);

	two_run(w, receiver_restarts);
	say_exit(w, 2, 2, 139, 11, RX_CRASH);
	step(w, &(struct drv_event){.kind = DRV_EVENT_TIMER});
	cr_assert_not_null(taken(w, 2, FW_HOST_CREATE), "%s", w->log);
	speaking_epoch[2] = 2;
	table.error = &error;
	say_table(w, 2, 2, &table);
	assert_has(w->log, "f2.rx: no disk; f2 is started again on worker b (2 of 2)");
	cr_expect_null(taken(w, 2, FW_HOST_WIRE));
	speaking_epoch[2] = 0;
}
