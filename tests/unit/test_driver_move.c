// SPDX-License-Identifier: Apache-2.0
#include "driver_world.h"

/* A drain moves hosts to other workers while they run. */
#define CLIENT 50
#define NEW 3 /* the worker that takes over */
#define CRASH "fraghost 101 crashed in f1.tx, tick 5: signal 11 (SIGSEGV)"

static const char restarting[] = TWO_FRAGMENTS(
	", on_failure: {policy: restart, intensity: 2, period: 60s, backoff: 1s}", "");

static void drain(struct world *w, const char *worker)
{
	struct fw_message message = {.kind = FW_DRAIN, .seq = 9, .drain = {worker, false}};
	const struct fw_message *answer;

	say(w, CLIENT, &message);
	answer = must_take(w, CLIENT, FW_ANSWER);
	cr_assert_eq(answer->answer.failure.code, FRAGI_FAILURE_NONE);
}

/* f1 sends to f2, which runs on b; c could take f2. */
static void runs(struct world *w, const char *text)
{
	two_run(w, text);
	client_hello(w, CLIENT, "top");
	hello(w, NEW, "c", "f2");
}

static void move_begins_of(struct world *w, const char *text)
{
	const struct fw_message *create;

	runs(w, text);
	drain(w, "b");
	create = must_take(w, NEW, FW_HOST_CREATE);
	cr_expect_eq(create->host, 2);
	cr_expect_eq(create->epoch, 2);
	cr_expect_null(taken(w, 2, FW_HOST_STOP), "nothing changes before it is prepared");
	cr_expect_null(taken(w, 1, FW_HOST_SUSPEND));
}

static void move_begins(struct world *w)
{
	move_begins_of(w, two_fragments);
}

static void new_is_prepared(struct world *w)
{
	speaking_epoch[2] = 2;
	say_prepared(w, NEW, 2, "f2", false);
}

static void old_has_drained(struct world *w)
{
	speaking_epoch[2] = 1;
	say_event(w, 2, 2, FW_STATE_DONE, "");
}

static void old_ends(struct world *w)
{
	speaking_epoch[2] = 1;
	say_end(w, 2, 2, 0, 5, 0, 0);
}

static void new_runs(struct world *w)
{
	speaking_epoch[2] = 2;
	say_result(w, NEW, 2, FW_HOST_WIRED);
	cr_assert_not_null(taken(w, NEW, FW_HOST_START));
	say_result(w, NEW, 2, FW_HOST_STARTED);
}

static void ends(struct world *w)
{
	say_event(w, 1, 1, FW_STATE_DONE, "");
	say_event(w, NEW, 2, FW_STATE_DONE, "");
	say_stats(w, 1, 1, true, 12, 0);
	say_stats(w, NEW, 2, true, 0, 7);
	say_exit(w, 1, 1, 0, 0, "");
	say_exit(w, NEW, 2, 0, 0, "");
	cr_assert(w->ended, "%s", w->log);
}

WORLD_TEST(driver_move, a_host_goes_on_where_it_was_moved_to_and_nothing_is_lost, move_begins)
{
	const struct fw_message *m, *again;

	new_is_prepared(w);
	m = must_take(w, 2, FW_HOST_STOP);
	cr_expect(m->stop.drain_ns > 0 && m->stop.restarts);
	m = must_take(w, 1, FW_HOST_SUSPEND);
	cr_expect_eq(m->suspend.peer, 2);
	cr_expect_eq(m->suspend.peer_epoch, 1);
	cr_expect_null(taken(w, NEW, FW_HOST_WIRE), "the old one runs yet");
	old_has_drained(w);
	m = must_take(w, 2, FW_HOST_STOP);
	cr_expect_eq(m->stop.drain_ns, 0);
	cr_expect_null(taken(w, NEW, FW_HOST_WIRE), "the old one lives yet");
	old_ends(w);
	m = taken(w, NEW, FW_HOST_WIRE);
	again = taken(w, 1, FW_HOST_WIRE);
	cr_assert_not_null(m);
	cr_assert_not_null(again);
	cr_expect_eq(m->epoch, 2);
	cr_expect_eq(again->wire.peers[0].epoch, 2);
	cr_expect_arr_eq(m->wire.edges[0].token, again->wire.edges[0].token, FW_TOKEN_BYTES);
	new_runs(w);
	assert_has(w->log, "f2 runs again on worker c, epoch 2");
	step(w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 2});
	ends(w);
	assert_has(w->json, "\"sent\": 12, \"delivered\": 12");
	assert_has(w->json, "\"lost\": 0, \"in_flight\": 0, \"exact\": true");
	assert_has(w->json, "\"worker\": \"c\"");
	assert_has(w->json, "\"epoch\": 2, \"restarts\": 0");
	cr_expect_eq(drv_core_placed(w->core), 0);
}

/* The old process is done because it yields, and what its peer has sent waits for the new one. */
WORLD_TEST(driver_move, hosts_that_are_done_wait_for_one_that_is_between_processes, move_begins)
{
	new_is_prepared(w);
	say_event(w, 1, 1, FW_STATE_DONE, "");
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING);
	old_has_drained(w);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING);
	old_ends(w);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING);
	new_runs(w);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING);
	ends(w);
	cr_expect_eq(w->exit_code, 0);
}

WORLD_TEST(driver_move, what_cannot_be_prepared_elsewhere_runs_on, move_begins)
{
	struct fw_failure error = {FRAGI_FAILURE_LIBRARY_MISSING, "no libx.so", ""};
	const struct fw_message *reply;
	struct fw_message failed;

	speaking_epoch[2] = 2;
	failed = of_host(FW_HOST_PREPARED, 2);
	failed.prepared = (struct fw_host_prepared){.errors = &error, .error_count = 1};
	say(w, NEW, &failed);
	cr_expect_not_null(taken(w, NEW, FW_HOST_KILL));
	cr_expect_null(taken(w, 2, FW_HOST_STOP));
	cr_expect_null(taken(w, 1, FW_HOST_SUSPEND));
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING);
	cr_expect_eq(drv_core_placed(w->core), 2);
	cr_expect_eq(drv_core_load(w->core), 2 * FRAGI_AMOUNT_ONE,
		     "the place elsewhere is given back");
	forget_requests(w, NEW);
	step(w, &(struct drv_event){.kind = DRV_EVENT_TIMER});
	cr_expect_null(taken(w, NEW, FW_HOST_CREATE), "it is not tried again at once");
	say(w, CLIENT,
	    &(struct fw_message){.kind = FW_REQUEST,
				 .seq = 2,
				 .request = {.what = FW_REQUEST_STATE, .worker = "b"}});
	reply = must_take(w, CLIENT, FW_REPLY);
	cr_assert_eq(reply->reply.applications[0].host_count, 1, "only those of that worker");
	cr_expect_str_eq(reply->reply.applications[0].hosts[0].stays,
			 "worker c could not prepare it: no libx.so");
}

/* When a worker comes a second later, and not before. */
WORLD_TEST(driver_move, what_could_not_be_prepared_is_tried_again, NULL)
{
	static const struct {
		int64_t after_ns;
		bool is_tried;
	} rows[] = {{SECOND - 1, false}, {SECOND, true}, {SECOND + 1, true}};

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		struct fw_failure error = {FRAGI_FAILURE_LIBRARY_MISSING, "no libx.so", ""};
		struct fw_message failed;

		if (i > 0)
			world_fini(w);
		move_begins(w);
		speaking_epoch[2] = 2;
		failed = of_host(FW_HOST_PREPARED, 2);
		failed.prepared = (struct fw_host_prepared){.errors = &error, .error_count = 1};
		say(w, NEW, &failed);
		pass(w, rows[i].after_ns);
		cr_expect_null(taken(w, NEW, FW_HOST_CREATE), "nothing has changed");
		hello(w, 4, "d", "f3");
		cr_expect_eq(taken(w, NEW, FW_HOST_CREATE) != NULL, rows[i].is_tried, "%zu", i);
	}
}

WORLD_TEST(driver_move, a_worker_that_takes_over_and_is_lost_changes_nothing_before_it_was_prepared,
	   move_begins)
{
	step(w, &(struct drv_event){.kind = DRV_EVENT_CLOSED, .connection = NEW, .text = "gone"});
	cr_expect_null(taken(w, 2, FW_HOST_STOP));
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING);
	cr_expect_eq(drv_core_placed(w->core), 2);
}

WORLD_TEST(driver_move, parameters_that_change_meanwhile_make_another_process, move_begins)
{
	struct fw_message done = of_host(FW_HOST_SET_DONE, 2);
	const struct fw_message *m;

	say(w, CLIENT,
	    &(struct fw_message){.kind = FW_SET, .seq = 10, .set = {"app", "f2.rx.value=4"}});
	m = must_take(w, 2, FW_HOST_SET);
	done.epoch = 1;
	done.host_set_done.number = m->host_set.number;
	say(w, 2, &done);
	new_is_prepared(w);
	cr_expect_null(taken(w, 2, FW_HOST_STOP), "the new one has the old value");
	m = must_take(w, NEW, FW_HOST_KILL);
	cr_expect_eq(m->epoch, 2);
	m = must_take(w, NEW, FW_HOST_CREATE);
	cr_expect_eq(m->epoch, 3);
	speaking_epoch[2] = 3;
	say_prepared(w, NEW, 2, "f2", false);
	cr_expect_not_null(taken(w, 2, FW_HOST_STOP), "%s", w->log);
}

static void set_other(struct world *w, uint64_t seq)
{
	struct fw_message done = of_host(FW_HOST_SET_DONE, 1);
	const struct fw_message *m;

	forget_requests(w, 1);
	say(w, CLIENT,
	    &(struct fw_message){.kind = FW_SET, .seq = seq, .set = {"app", "f1.tx.value=4"}});
	m = must_take(w, 1, FW_HOST_SET);
	done.epoch = 1;
	done.host_set_done.number = m->host_set.number;
	say(w, 1, &done);
}

/* Else nobody could be moved while somebody tunes another fragment. */
WORLD_TEST(driver_move, parameters_of_other_hosts_make_no_other_process, move_begins)
{
	set_other(w, 10);
	new_is_prepared(w);
	cr_expect_not_null(taken(w, 2, FW_HOST_STOP), "%s", w->log);
	set_other(w, 11);
	old_has_drained(w);
	set_other(w, 12);
	old_ends(w);
	cr_expect_null(taken(w, NEW, FW_HOST_KILL), "%s", w->log);
	cr_expect_not_null(taken(w, NEW, FW_HOST_WIRE), "%s", w->log);
	new_runs(w);
	assert_has(w->log, "f2 runs again on worker c, epoch 2");
}

WORLD_TEST(driver_move, one_that_is_lost_later_is_started_anew_where_it_was, move_begins)
{
	const struct fw_message *create;

	new_is_prepared(w);
	step(w, &(struct drv_event){.kind = DRV_EVENT_CLOSED, .connection = NEW, .text = "gone"});
	old_has_drained(w);
	old_ends(w);
	create = must_take(w, 2, FW_HOST_CREATE);
	cr_expect_gt(create->epoch, 2);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING);
}

/* The old process yields already, so the one that has failed is not the host any more. */
static void new_fails(struct world *w, bool ends)
{
	speaking_epoch[2] = 2;
	if (ends)
		say_exit(w, NEW, 2, 139, 11, "");
	else
		say_event(w, NEW, 2, FW_STATE_FAILED, CRASH);
	cr_expect_eq(taken(w, NEW, FW_HOST_KILL) == NULL, ends, "%s", w->log);
	old_has_drained(w);
	old_ends(w);
	cr_expect_not_null(taken(w, 2, FW_HOST_CREATE), "%s", w->log);
}

WORLD_TEST(driver_move, one_that_fails_later_is_killed, move_begins)
{
	new_is_prepared(w);
	new_fails(w, false);
}

WORLD_TEST(driver_move, one_that_has_ended_later_is_not_killed, move_begins)
{
	new_is_prepared(w);
	new_fails(w, true);
}

/* Nobody can tell any more what it had got. */
WORLD_TEST(driver_move, a_worker_that_is_lost_while_the_old_process_is_killed_is_the_cause,
	   move_begins)
{
	new_is_prepared(w);
	old_has_drained(w);
	pass_beating(w, 2 * SECOND + 300 * MS, 1, NEW);
	cr_assert_not_null(taken(w, 2, FW_HOST_KILL), "%s", w->log);
	step(w, &(struct drv_event){.kind = DRV_EVENT_CLOSED, .connection = 2, .text = "reset"});
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_FAILING, "%s", w->log);
	assert_has(w->log, "which ran f2, was lost: reset");
}

static void pass_with_all(struct world *w, int64_t ns)
{
	for (int64_t i = 0; i < ns / (100 * MS) && !w->ended; i++) {
		pass(w, 100 * MS);
		beat(w, 1);
		beat(w, 2);
		beat(w, NEW);
	}
}

WORLD_TEST(driver_move, one_that_a_kill_does_not_end_is_the_cause, move_begins)
{
	new_is_prepared(w);
	old_has_drained(w);
	pass_with_all(w, 3 * SECOND + 500 * MS);
	assert_has(w->errors, "worker b did not confirm the end of f2, which is to be moved");
	say_exit(w, 1, 1, 0, 0, "");
	pass_with_all(w, 20 * SECOND);
	cr_assert(w->ended, "%s", w->log);
	assert_has(w->json, "\"host_pid\": 102, \"state\": \"lost\"");
}

/* The new process is the host, and is wired. */
static void new_takes_over(struct world *w)
{
	move_begins(w);
	new_is_prepared(w);
	old_has_drained(w);
	old_ends(w);
	speaking_epoch[2] = 2;
	cr_assert_not_null(taken(w, NEW, FW_HOST_WIRE), "%s", w->log);
}

WORLD_TEST(driver_move, a_broken_link_to_the_new_process_is_no_cause_before_its_end_was_awaited,
	   new_takes_over)
{
	say_event(w, 1, 1, FW_STATE_PEER_LOST, "its data link broke");
	cr_expect_str_eq(w->errors, "");
	say_exit(w, NEW, 2, 137, 9, "fraghost 102 was killed");
	assert_has(w->errors, "fraghost 102 was killed");
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_FAILING);
}

WORLD_TEST(driver_move, a_broken_link_to_a_new_process_that_lives_is_the_cause, new_takes_over)
{
	say_event(w, 1, 1, FW_STATE_PEER_LOST, "its data link broke");
	pass_beating(w, 2 * SECOND, 1, NEW);
	assert_has(w->errors,
		   "the data link between f1 on worker a and f2 on worker c was lost, while");
}

/* The worker is killed after its process was prepared; its crash reporter says what it counted. */
static void new_is_lost(struct world *w, bool is_reported)
{
	new_is_prepared(w);
	old_has_drained(w);
	speaking_epoch[2] = 2;
	if (is_reported)
		say_stats(w, NEW, 2, true, 0, 0);
	old_ends(w);
	step(w, &(struct drv_event){.kind = DRV_EVENT_CLOSED, .connection = NEW, .text = "gone"});
	say_end(w, 1, 1, 5, 0, 0, 0);
	cr_assert(w->ended, "%s", w->log);
	assert_has(w->json, "\"sent\": 5, \"delivered\": 5");
}

WORLD_TEST(driver_move, last_counts_that_come_before_a_process_takes_over_are_kept, move_begins)
{
	new_is_lost(w, true);
	assert_has(w->json, "\"lost\": 0, \"in_flight\": 0, \"exact\": true");
}

WORLD_TEST(driver_move, what_a_process_that_takes_over_counted_is_unknown_else, move_begins)
{
	new_is_lost(w, false);
	assert_has(w->json, "\"exact\": false");
}

WORLD_TEST(driver_move, a_stop_waits_for_a_host_that_is_between_two_processes, move_begins)
{
	new_is_prepared(w);
	step(w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 2});
	cr_expect_null(taken(w, 1, FW_HOST_STOP));
	old_has_drained(w);
	old_ends(w);
	cr_expect_null(taken(w, 1, FW_HOST_STOP));
	new_runs(w);
	cr_expect_not_null(taken(w, 1, FW_HOST_STOP));
	cr_expect_not_null(taken(w, NEW, FW_HOST_STOP));
	ends(w);
	assert_has(w->json, "\"lost\": 0, \"in_flight\": 0, \"exact\": true");
}

/* As with ^C in a terminal: the workers get it too. */
WORLD_TEST(driver_move, a_worker_that_ends_while_a_stop_waits_for_a_move_is_no_failure, move_begins)
{
	new_is_prepared(w);
	step(w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 2});
	old_has_drained(w);
	old_ends(w);
	speaking_epoch[2] = 2;
	say_exit(w, NEW, 2, 0, 0, "");
	cr_expect_not_null(taken(w, 1, FW_HOST_STOP), "%s", w->log);
	say_event(w, 1, 1, FW_STATE_DONE, "");
	say_end(w, 1, 1, 12, 0, 0, 0);
	cr_assert(w->ended, "%s", w->log);
	assert_has(w->json, "\"stopped\"");
}

/* The same of the worker of a neighbour, before the new process is wired to it or after that. */
WORLD_TEST(driver_move, a_neighbour_that_ends_while_a_stop_waits_for_a_move_is_no_failure, NULL)
{
	for (int is_late = 0; is_late < 2; is_late++) {
		struct fw_message wired;

		move_begins(w);
		new_is_prepared(w);
		step(w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 2});
		old_has_drained(w);
		old_ends(w);
		speaking_epoch[2] = 2;
		if (!is_late)
			say_exit(w, 1, 1, 0, 0, "");
		wired = of_host(FW_HOST_WIRED, 2);
		wired.result.failure =
			(struct fw_failure){FRAGI_FAILURE_EDGE_LOST, "its data link broke", NULL};
		say(w, NEW, &wired);
		if (is_late)
			say_exit(w, 1, 1, 0, 0, "");
		pass_beating(w, 2 * SECOND, 1, NEW);
		cr_assert_not_null(taken(w, NEW, FW_HOST_KILL), "%s", w->log);
		say_exit(w, NEW, 2, 137, 9, "");
		cr_assert(w->ended, "%s", w->log);
		cr_expect_str_eq(w->errors, "");
		cr_expect_eq(w->result, FRAGI_SUMMARY_STOPPED);
		world_fini(w);
	}
	move_begins(w);
}

/* The same, when the new process is gone, and the host is to be started anew where it was. */
static void stop_while_started_anew(struct world *w)
{
	move_begins(w);
	new_is_prepared(w);
	step(w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 2});
	step(w, &(struct drv_event){.kind = DRV_EVENT_CLOSED, .connection = NEW, .text = "gone"});
	old_has_drained(w);
	old_ends(w);
	cr_assert_not_null(taken(w, 2, FW_HOST_CREATE), "%s", w->log);
}

static void is_stopped(struct world *w)
{
	cr_assert_not_null(taken(w, 1, FW_HOST_STOP), "%s", w->log);
	say_event(w, 1, 1, FW_STATE_DONE, "");
	say_end(w, 1, 1, 12, 0, 0, 0);
	cr_assert(w->ended, "%s", w->log);
	assert_has(w->json, "\"stopped\"");
}

WORLD_TEST(driver_move, a_worker_that_leaves_instead_of_starting_anew_for_a_stop_is_no_failure,
	   stop_while_started_anew)
{
	say(w, 2, &(struct fw_message){.kind = FW_LEAVE, .leave = {"it was told to end"}});
	is_stopped(w);
}

WORLD_TEST(driver_move, a_worker_that_ends_and_refuses_to_start_anew_for_a_stop_is_no_failure,
	   stop_while_started_anew)
{
	struct fw_message refusal;

	speaking_epoch[2] = 3;
	refusal = of_host(FW_HOST_EXIT, 2);
	refusal.exit = (struct fw_host_exit){
		.exit_code = 3,
		.failure = {FRAGI_FAILURE_WORKER_BUSY, "worker b has been told to end", ""},
	};
	say(w, 2, &refusal);
	is_stopped(w);
}

WORLD_TEST(driver_move, a_second_stop_does_not_wait, move_begins)
{
	new_is_prepared(w);
	step(w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 2});
	step(w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 2});
	for (uint64_t c = 1; c <= NEW; c++)
		cr_expect_not_null(taken(w, c, FW_HOST_KILL));
}

WORLD_TEST(driver_move, what_operators_have_saved_goes_along, move_begins)
{
	struct fw_message saved;
	const struct fw_message *m;

	new_is_prepared(w);
	old_has_drained(w);
	saved = of_host(FW_HOST_SAVED, 2);
	saved.saved = (struct fw_host_saved){64, "state", 5};
	say(w, 2, &saved);
	old_ends(w);
	m = must_take(w, NEW, FW_HOST_SAVED);
	cr_expect_eq(m->epoch, 2);
	cr_expect_eq(m->saved.offset, 64);
	cr_expect(m->saved.size == 5 && memcmp(m->saved.bytes, "state", 5) == 0);
	new_runs(w);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "%s", w->errors);
}

WORLD_TEST(driver_move, a_worker_of_an_older_frag_keeps_what_it_runs, NULL)
{
	struct fw_message old = {.kind = FW_HELLO, .seq = 1};

	runs(w, two_fragments);
	old.hello = (struct fw_hello){.major = FW_PROTOCOL_MAJOR,
				      .minor = DRV_MOVES_MINOR - 1,
				      .role = FW_ROLE_WORKER,
				      .name = "d",
				      .node = "node",
				      .worker_address = "127.0.0.1",
				      .version = "older",
				      .has = {[FRAGI_AMOUNT_CPU] = 64 * FRAGI_AMOUNT_ONE}};
	step(w, &(struct drv_event){.kind = DRV_EVENT_CLOSED, .connection = NEW, .text = "gone"});
	say(w, NEW + 1, &old);
	drain(w, "b");
	cr_expect_null(taken(w, NEW + 1, FW_HOST_CREATE));
	assert_has(w->log, "f2 stays on worker b, which is drained: no worker fits f2");
}

static void is_written(struct world *w, const char *why_not)
{
	step(w, &(struct drv_event){
			.kind = DRV_EVENT_PERSISTED, .change = w->persist, .text = why_not});
}

/* The next driver could not know where the host is. */
WORLD_TEST(driver_move, nothing_moves_while_the_state_folder_cannot_be_written, NULL)
{
	for (int is_full = 0; is_full < 2; is_full++) {
		world_init_with(w, (struct drv_config){.version = "test", .keeps_state = true});
		memset(speaking_epoch, 0, sizeof(speaking_epoch));
		app(w, two_fragments);
		is_written(w, NULL);
		both_come(w);
		both_prepare(w);
		both_run(w);
		client_hello(w, CLIENT, "top");
		hello(w, NEW, "c", "f2");
		is_written(w, NULL);
		say(w, CLIENT,
		    &(struct fw_message){.kind = FW_DRAIN, .seq = 9, .drain = {"b", false}});
		is_written(w, NULL); /* that it is drained */
		speaking_epoch[2] = must_take(w, NEW, FW_HOST_CREATE)->epoch;
		say_prepared(w, NEW, 2, "f2", false);
		cr_expect_null(taken(w, 2, FW_HOST_STOP), "it is not known yet where it goes");
		is_written(w, is_full ? "no space is left" : NULL);
		cr_expect_eq(taken(w, 2, FW_HOST_STOP) != NULL, !is_full, "%s", w->log);
		cr_expect_eq(taken(w, NEW, FW_HOST_KILL) != NULL, is_full, "%s", w->log);
		cr_expect_eq(
			strstr(w->log,
			       "f2 stays on worker b, which is drained: the state folder cannot") !=
				NULL,
			is_full, "%s", w->log);
		world_fini(w);
	}
	world_init(w);
}

static const struct fw_failure *undrain(struct world *w, const char *worker)
{
	struct fw_message message = {
		.kind = FW_DRAIN, .seq = 9, .drain = {worker, .undo = true, .rebalance = true}};
	const struct fw_message *answer;

	say(w, CLIENT, &message);
	answer = must_take(w, CLIENT, FW_ANSWER);
	return &answer->answer.failure;
}

static void moved_to_new(struct world *w)
{
	new_is_prepared(w);
	old_has_drained(w);
	old_ends(w);
	new_runs(w);
	while (taken(w, 2, FW_HOST_CREATE) != NULL)
		;
}

WORLD_TEST(driver_move, what_a_drain_moved_goes_back_when_that_is_asked_for, move_begins)
{
	const struct fw_message *create;

	moved_to_new(w);
	hello(w, NEW + 1, "z", "f2");
	cr_expect_eq(undrain(w, "b")->code, FRAGI_FAILURE_NONE);
	create = must_take(w, 2, FW_HOST_CREATE);
	cr_expect_eq(create->host, 2);
	speaking_epoch[2] = (uint64_t)create->epoch;
	say_prepared(w, 2, 2, "f2", false);
	speaking_epoch[2] = 2;
	say_event(w, NEW, 2, FW_STATE_DONE, "");
	say_end(w, NEW, 2, 0, 7, 0, 0);
	speaking_epoch[2] = (uint64_t)create->epoch;
	say_result(w, 2, 2, FW_HOST_WIRED);
	say_result(w, 2, 2, FW_HOST_STARTED);
	assert_has(w->log, "f2 runs again on worker b");
	cr_expect_eq(undrain(w, "b")->code, FRAGI_FAILURE_NONE, "it has nothing elsewhere");
	cr_expect_eq(undrain(w, "c")->code, FRAGI_FAILURE_NONE, "it was there for the drain alone");
	for (uint64_t c = 2; c <= NEW + 1; c++)
		cr_expect_null(taken(w, c, FW_HOST_CREATE), "%s", w->log);
	hello(w, NEW + 2, "y", "f1");
	cr_expect_not(w->core->apps[0]->moves.is_back, "nothing is looked for any more");
}

/* Whether there is such an event about a move. */
static bool is_told(const struct world *w, const char *text)
{
	const struct drv_notice *notice;
	uint64_t last = 0;

	while ((notice = drv_history_after(&w->core->history, last)) != NULL) {
		last = notice->number;
		if (notice->kind == FW_NOTICE_MOVE && strstr(notice->text, text) != NULL)
			return true;
	}
	return false;
}

WORLD_TEST(driver_move, what_cannot_go_back_stays, move_begins)
{
	moved_to_new(w);
	hello(w, NEW + 1, "z", "f2");
	step(w, &(struct drv_event){.kind = DRV_EVENT_CLOSED, .connection = 2, .text = "gone"});
	cr_expect_eq(undrain(w, "b")->code, FRAGI_FAILURE_NONE);
	assert_has(w->log, "f2 stays on worker c and does not go back to b: no worker fits f2");
	cr_expect(is_told(w, "f2 stays on c and does not go back to b: no worker fits f2"));
	cr_expect_null(taken(w, NEW + 1, FW_HOST_CREATE), "nobody has asked for that");
	cr_expect_eq(undrain(w, "b")->code, FRAGI_FAILURE_USAGE, "there is no such worker");
	hello(w, NEW + 2, "b", "f2");
	cr_expect_null(taken(w, NEW + 2, FW_HOST_CREATE), "it was asked for before");
	step(w, &(struct drv_event){.kind = DRV_EVENT_CLOSED, .connection = NEW, .text = "gone"});
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_FAILING);
}

static const struct fw_failure *restart(struct world *w)
{
	struct fw_message message = {
		.kind = FW_STOP_APP, .seq = 9, .stop_app = {.name = "app", .restart = true}};
	const struct fw_message *answer;

	while (taken(w, CLIENT, FW_ANSWER) != NULL)
		;
	say(w, CLIENT, &message);
	answer = must_take(w, CLIENT, FW_ANSWER);
	return &answer->answer.failure;
}

WORLD_TEST(driver_move, no_restart_ends_what_could_not_start_while_its_worker_is_drained, NULL)
{
	/* Each takes all of its worker, which it would have again. */
	two_run(w, "frag: 1\napplication: app\nfragments:\n"
		   "  f1: {operators: {tx: {type: t}}, requirements: {cpu: 4}}\n"
		   "  f2: {operators: {rx: {type: t}}, requirements: {cpu: 4}}\n"
		   "flows: [f1.tx.out -> f2.rx.in]\n");
	client_hello(w, CLIENT, "top");
	drain(w, "b");
	cr_expect_eq(restart(w)->code, FRAGI_FAILURE_WORKER_BUSY);
	cr_expect_str_eq(
		restart(w)->sentence,
		"app would end and wait for a worker: no worker fits f2; worker b is nearest: it is drained, and takes fragments again by `fragctl drain b --undo`; `fragctl stop app` ends it");
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING);
	cr_expect_eq(drv_core_load(w->core), 8 * FRAGI_AMOUNT_ONE, "its places are its own again");
	cr_expect_null(taken(w, 2, FW_HOST_STOP));
	hello(w, NEW, "d", NULL);
	cr_expect_eq(restart(w)->code, FRAGI_FAILURE_NONE);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_DRAINING);
}

/* The new process of f2 cannot reach f1, which has crashed: the report of that is on its way. */
static void new_finds_its_neighbour_dead(struct world *w)
{
	struct fw_message wired;

	new_is_prepared(w);
	old_has_drained(w);
	old_ends(w);
	speaking_epoch[2] = 2;
	wired = of_host(FW_HOST_WIRED, 2);
	wired.result.failure =
		(struct fw_failure){FRAGI_FAILURE_EDGE_LOST, "its data link broke", ""};
	say(w, NEW, &wired);
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "%s", w->log);
}

WORLD_TEST(driver_move, a_neighbour_that_crashes_meanwhile_is_the_cause, move_begins)
{
	new_finds_its_neighbour_dead(w);
	say_exit(w, 1, 1, 139, 11, CRASH);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_FAILING);
	assert_has(w->log, CRASH);
	cr_expect_null(strstr(w->log, "its data link broke"), "%s", w->log);
}

WORLD_TEST(driver_move, what_cannot_be_wired_is_the_cause_when_no_other_shows, move_begins)
{
	new_finds_its_neighbour_dead(w);
	pass_beating(w, 500 * MS, 1, NEW);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_FAILING);
	assert_has(w->log, "its data link broke");
}

/* Both are between two processes, and each is wired to the other's next one. */
WORLD_TEST(driver_move, a_neighbour_that_is_started_again_does_not_wait_for_the_move_to_end, NULL)
{
	const struct fw_message *m;

	move_begins_of(w, restarting);
	new_is_prepared(w);
	old_has_drained(w);
	old_ends(w);
	cr_assert_not_null(taken(w, NEW, FW_HOST_WIRE));
	while (taken(w, 1, FW_HOST_WIRE) != NULL)
		;
	say_exit(w, 1, 1, 139, 11, CRASH);
	m = must_take(w, 1, FW_HOST_CREATE);
	speaking_epoch[1] = m->epoch;
	say_prepared(w, 1, 1, "f1", true);
	cr_expect_not_null(taken(w, 1, FW_HOST_WIRE));
	m = must_take(w, NEW, FW_HOST_WIRE);
	cr_expect_eq(m->wire.peers[0].epoch, speaking_epoch[1]);
}

WORLD_TEST(driver_move, a_worker_that_is_lost_after_the_kill_of_what_does_not_end_is_the_cause,
	   move_begins)
{
	new_is_prepared(w);
	old_has_drained(w);
	for (int i = 0; i < 100 && taken(w, 2, FW_HOST_KILL) == NULL; i++) {
		pass(w, 100 * MS);
		beat(w, 1);
		beat(w, 2);
		beat(w, NEW);
	}
	step(w, &(struct drv_event){.kind = DRV_EVENT_CLOSED, .connection = 2, .text = "reset"});
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_FAILING, "%s", w->log);
	assert_has(w->log, "worker b at ");
}
