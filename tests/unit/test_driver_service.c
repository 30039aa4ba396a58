// SPDX-License-Identifier: Apache-2.0
#include "driver_world.h"

#define CLIENT 50

static void start(struct world *w, uint64_t seq)
{
	say_start(w, CLIENT, seq, "", two_fragments);
}

static void stop(struct world *w, uint64_t seq, const char *name, bool at_once, bool again)
{
	say(w, CLIENT,
	    &(struct fw_message){
		    .kind = FW_STOP_APP, .seq = seq, .stop_app = {name, at_once, again}});
}

static void await(struct world *w, uint64_t seq, uint64_t run, enum fw_milestone until)
{
	say(w, CLIENT,
	    &(struct fw_message){.kind = FW_AWAIT, .seq = seq, .run = run, .await.until = until});
}

static const struct fw_message *answer(struct world *w, uint64_t seq)
{
	const struct fw_message *message = must_take(w, CLIENT, FW_ANSWER);
	cr_expect_eq(message->reply_to, seq);
	return message;
}

static void expect_refused(struct world *w, uint64_t seq, enum fragi_failure code,
			   const char *sentence)
{
	const struct fw_message *message = answer(w, seq);

	cr_expect_eq(message->answer.failure.code, code, "%s", message->answer.failure.sentence);
	assert_has(message->answer.failure.sentence, sentence);
}

static void serve(struct world *w)
{
	world_init(w);
	speaking_run = 1;
	client_hello(w, CLIENT, "");
	both_come(w);
}

/* The hosts of speaking_run, from PREPARE to START. */
static void hosts_run(struct world *w)
{
	both_prepare(w);
	for (uint32_t host = 1; host <= 2; host++)
		say_result(w, host, host, FW_HOST_WIRED);
	for (uint32_t host = 1; host <= 2; host++)
		say_result(w, host, host, FW_HOST_STARTED);
}

static void hosts_end(struct world *w)
{
	both_are_done(w);
	both_exit(w);
	w->ended = false;
}

WORLD_TEST(driver_service, a_client_starts_an_application_and_waits_for_its_end, serve)
{
	const struct fw_message *message;

	start(w, 2);
	message = answer(w, 2);
	cr_expect_eq(message->answer.failure.code, FRAGI_FAILURE_NONE);
	cr_expect_eq(message->run, 1);
	cr_expect_str_eq(message->answer.name, "app");
	await(w, 3, 1, FW_RUNNING);
	both_prepare(w);
	cr_expect_null(taken(w, CLIENT, FW_OUTCOME), "it does not run yet");
	both_run(w);
	message = must_take(w, CLIENT, FW_OUTCOME);
	cr_expect_eq(message->reply_to, 3);
	cr_expect_eq(message->outcome.reached, FW_RUNNING);
	await(w, 4, 1, FW_ENDED);
	say_stats(w, 1, 1, true, 7, 0);
	say_stats(w, 2, 2, true, 0, 7);
	hosts_end(w);
	message = must_take(w, CLIENT, FW_OUTCOME);
	cr_expect_eq(message->reply_to, 4);
	cr_expect_eq(message->outcome.reached, FW_ENDED);
	cr_expect_eq(message->outcome.summary.result, FRAGI_SUMMARY_DONE);
	cr_assert_eq(message->outcome.summary.flow_count, 1);
	cr_expect_eq(message->outcome.summary.flows[0].delivered, 7);
	await(w, 5, 1, FW_ENDED);
	cr_expect_not_null(taken(w, CLIENT, FW_OUTCOME), "it is remembered");
}

WORLD_TEST(driver_service, a_name_runs_once, serve)
{
	start(w, 2);
	answer(w, 2);
	start(w, 3);
	expect_refused(
		w, 3, FRAGI_FAILURE_NAME_TAKEN,
		"app runs already (preparing); end it with `fragctl stop app`, start it anew with `fragctl restart app`");
	w->ended = false;
	say_start(w, CLIENT, 4, "other", two_fragments);
	cr_expect_str_eq(answer(w, 4)->answer.name, "other");
	cr_expect_eq(drv_core_app_count(w->core), 2);
	cr_expect_eq(drv_core_named_state(w->core, "other"), DRV_APP_PREPARING);
}

WORLD_TEST(driver_service, a_graph_with_a_mistake_is_refused_and_forgotten, serve)
{
	say_start(w, CLIENT, 2, "", "frag: 1\napplication: app\n");
	expect_refused(w, 2, FRAGI_FAILURE_GRAPH_INVALID, "app.yaml:");
	await(w, 3, 1, FW_ENDED);
	expect_refused(w, 3, FRAGI_FAILURE_APPLICATION_UNKNOWN, "run 1 was not started");
	cr_expect_eq(drv_core_app_count(w->core), 0);
}

WORLD_TEST(driver_service, it_is_answered_when_it_is_kept, NULL)
{
	world_init_with(w, (struct drv_config){.version = "test", .keeps_state = true});
	client_hello(w, CLIENT, "");
	start(w, 2);
	cr_expect_null(taken(w, CLIENT, FW_ANSWER));
	step(w, &(struct drv_event){.kind = DRV_EVENT_PERSISTED, .change = w->persist});
	cr_expect_eq(answer(w, 2)->answer.failure.code, FRAGI_FAILURE_NONE);
	say_start(w, CLIENT, 3, "other", two_fragments);
	step(w, &(struct drv_event){.kind = DRV_EVENT_PERSISTED,
				    .change = w->persist,
				    .text = "cannot keep state: the disk is full"});
	expect_refused(w, 3, FRAGI_FAILURE_STATE_UNWRITABLE, "the disk is full");
	cr_expect_eq(drv_core_named_state(w->core, "app"), DRV_APP_WAITING, "it goes on");
}

static void keep(struct world *w, uint64_t change)
{
	step(w, &(struct drv_event){.kind = DRV_EVENT_PERSISTED, .change = change});
}

/* Not with the record before it. */
WORLD_TEST(driver_service, an_end_is_told_when_it_is_kept, NULL)
{
	world_init_with(w, (struct drv_config){.version = "test",
					       .keeps_state = true,
					       .realtime_offset_ns = 7});
	speaking_run = 1;
	client_hello(w, CLIENT, "");
	both_come(w);
	start(w, 2);
	for (uint64_t last = 0; last != w->persist;)
		keep(w, last = w->persist);
	both_prepare(w);
	both_run(w);
	keep(w, w->persist);
	await(w, 3, 1, FW_ENDED);
	hosts_end(w);
	cr_assert_not_null(kept(w, DRV_RECORD_END, 1));
	cr_expect_eq(kept(w, DRV_RECORD_END, 1)->ended_unix_ns, 50 * SECOND + 7);
	keep(w, w->persist - 1);
	cr_expect_null(taken(w, CLIENT, FW_OUTCOME), "the disk does not have it");
	await(w, 4, 1, FW_ENDED);
	cr_expect_null(taken(w, CLIENT, FW_OUTCOME), "the disk does not have it");
	keep(w, w->persist);
	cr_expect_eq(must_take(w, CLIENT, FW_OUTCOME)->outcome.reached, FW_ENDED);
}

WORLD_TEST(driver_service, a_stop_is_in_order_and_the_summary_stays, serve)
{
	const struct fw_message *message;

	start(w, 2);
	answer(w, 2);
	hosts_run(w);
	stop(w, 3, "app", false, false);
	cr_expect_eq(answer(w, 3)->run, 1);
	cr_expect_eq(drv_core_named_state(w->core, "app"), DRV_APP_DRAINING);
	await(w, 4, 1, FW_ENDED);
	hosts_end(w);
	message = must_take(w, CLIENT, FW_OUTCOME);
	cr_expect_eq(message->outcome.summary.result, FRAGI_SUMMARY_STOPPED);
	cr_expect_eq(message->outcome.summary.exit_code, 0);
	request_state(w, CLIENT, 5);
	message = taken(w, CLIENT, FW_REPLY);
	cr_assert_eq(message->reply.ended_count, 1);
	cr_expect_str_eq(message->reply.ended[0].name, "app");
	cr_expect_str_eq(message->reply.ended[0].started_by, "10.0.0.9:1");
	stop(w, 6, "app", false, false);
	expect_refused(w, 6, FRAGI_FAILURE_APPLICATION_UNKNOWN, "app has ended already");
	stop(w, 7, "nobody", false, false);
	expect_refused(w, 7, FRAGI_FAILURE_APPLICATION_UNKNOWN, "there is no application nobody");
}

/* A driver with --app ends with its application, and would not answer a later message. */
WORLD_TEST(driver_service, a_stop_may_ask_for_the_outcome_as_well, serve)
{
	const struct fw_message *message;

	start(w, 2);
	answer(w, 2);
	hosts_run(w);
	say(w, CLIENT,
	    &(struct fw_message){
		    .kind = FW_STOP_APP, .seq = 3, .stop_app = {.name = "app", .awaits = true}});
	cr_expect_eq(answer(w, 3)->run, 1);
	cr_expect_null(taken(w, CLIENT, FW_OUTCOME), "it has not ended");
	hosts_end(w);
	message = must_take(w, CLIENT, FW_OUTCOME);
	cr_expect_eq(message->reply_to, 3);
	cr_expect_eq(message->run, 1);
}

WORLD_TEST(driver_service, a_stop_at_once_kills, serve)
{
	start(w, 2);
	hosts_run(w);
	stop(w, 3, "app", true, false);
	cr_expect_eq(drv_core_named_state(w->core, "app"), DRV_APP_KILLING);
	both_are_killed(w);
	cr_expect_eq(w->exit_code, 0, "somebody asked for it");
	cr_expect_eq(w->result, FRAGI_SUMMARY_STOPPED);
}

WORLD_TEST(driver_service, a_restart_begins_a_new_run_of_the_same_graph, serve)
{
	say_start(w, CLIENT, 2, "mine", two_fragments);
	answer(w, 2);
	hosts_run(w);
	stop(w, 3, "mine", false, true);
	cr_expect_eq(answer(w, 3)->run, 2, "the number of the next run");
	await(w, 4, 2, FW_RUNNING);
	hosts_end(w);
	pass(w, 0);
	cr_expect_eq(drv_core_named_state(w->core, "mine"), DRV_APP_PREPARING);
	speaking_run = 2;
	hosts_run(w);
	cr_expect_eq(taken(w, CLIENT, FW_OUTCOME)->run, 2);
	/* and after its end */
	hosts_end(w);
	stop(w, 5, "mine", false, true);
	cr_expect_eq(answer(w, 5)->run, 3);
	cr_expect_eq(drv_core_named_state(w->core, "mine"), DRV_APP_PREPARING);
}

WORLD_TEST(driver_service, a_stop_after_a_restart_counts, serve)
{
	start(w, 2);
	answer(w, 2);
	hosts_run(w);
	stop(w, 3, "app", false, true);
	answer(w, 3);
	await(w, 4, 2, FW_RUNNING);
	cr_expect_null(taken(w, CLIENT, FW_ANSWER), "it is to come");
	stop(w, 5, "app", false, false);
	cr_expect_eq(answer(w, 5)->run, 1);
	expect_refused(w, 4, FRAGI_FAILURE_APPLICATION_UNKNOWN, "run 2 was not started");
	hosts_end(w);
	pass(w, SECOND);
	cr_expect_eq(drv_core_app_count(w->core), 0);
}

Test(driver_service, a_driver_that_ends_or_has_its_own_application_starts_nothing)
{
	struct world w;

	serve(&w);
	start(&w, 2);
	answer(&w, 2);
	hosts_run(&w);
	step(&w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 15});
	say_start(&w, CLIENT, 3, "other", two_fragments);
	expect_refused(&w, 3, FRAGI_FAILURE_NO_SERVICE, "driverd is ending");
	stop(&w, 4, "app", false, true);
	expect_refused(&w, 4, FRAGI_FAILURE_NO_SERVICE, "driverd is ending");
	world_fini(&w);
	world_init_with(&w, (struct drv_config){.version = "test", .ends_with_app = true});
	client_hello(&w, CLIENT, "");
	start(&w, 2);
	expect_refused(&w, 2, FRAGI_FAILURE_NO_SERVICE, "start driverd without --app");
	world_fini(&w);
}

static size_t count_events(struct world *w, uint64_t seq, uint64_t *after, char *kinds)
{
	const struct fw_message *message;

	say(w, CLIENT, &(struct fw_message){.kind = FW_WATCH, .seq = seq, .watch.after = *after});
	message = must_take(w, CLIENT, FW_EVENTS);
	for (uint32_t i = 0; i < message->events.count; i++) {
		cr_expect_gt(message->events.rows[i].number, *after);
		*after = message->events.rows[i].number;
		snprintf(kinds + strlen(kinds), 500 - strlen(kinds), "%s(%s) ",
			 fw_notice_name(message->events.rows[i].kind), message->events.rows[i].who);
	}
	return message->events.count;
}

WORLD_TEST(driver_service, events_tell_who_asked, serve)
{
	const struct fw_message *message;
	char kinds[500] = "";
	uint64_t after = 0;

	start(w, 2);
	start(w, 3);
	w->ended = false;
	hosts_run(w);
	cr_expect_eq(count_events(w, 4, &after, kinds), 5);
	cr_expect_str_eq(kinds, "worker_joined(10.0.0.9:1) worker_joined(10.0.0.9:1) "
				"start(10.0.0.9:1) refused(10.0.0.9:1) running() ");
	cr_expect_eq(count_events(w, 5, &after, kinds), 0);
	request_state(w, CLIENT, 8);
	message = taken(w, CLIENT, FW_REPLY);
	cr_expect_eq(message->reply.notices[FW_NOTICE_WORKER_JOINED], 2);
	cr_expect_eq(message->reply.notices[FW_NOTICE_REFUSED], 1);
	cr_expect_eq(message->reply.notices[FW_NOTICE_STOP], 0);
	say(w, CLIENT, &(struct fw_message){.kind = FW_WATCH, .seq = 6, .watch = {after, true}});
	cr_expect_eq(taken(w, CLIENT, FW_EVENTS)->events.count, 0);
	stop(w, 7, "app", false, false);
	message = taken(w, CLIENT, FW_EVENTS);
	cr_assert_not_null(message, "it follows");
	cr_expect_eq(message->reply_to, 6);
	cr_expect_eq(message->events.rows[0].kind, FW_NOTICE_STOP);
}

/* As who operates a driver reads them: with the verb that was typed. */
WORLD_TEST(driver_service, a_refusal_names_the_verb, serve)
{
	static const char *const texts[] = {
		"stop nobody: there is no application nobody",
		"restart nobody: there is no application nobody",
		"set nobody: there is no application nobody",
		"logs nobody: there is no application nobody",
	};
	const struct fw_message *message;

	stop(w, 2, "nobody", false, false);
	stop(w, 3, "nobody", false, true);
	say(w, CLIENT,
	    &(struct fw_message){.kind = FW_SET, .seq = 4, .set = {"nobody", "f1.tx.value=1"}});
	say(w, CLIENT,
	    &(struct fw_message){.kind = FW_WATCH_LOGS, .seq = 5, .watch_logs.name = "nobody"});
	assert_has(w->log,
		   "refused `fragctl restart` of 10.0.0.9:1: there is no application nobody");
	say(w, CLIENT, &(struct fw_message){.kind = FW_WATCH, .seq = 6});
	message = must_take(w, CLIENT, FW_EVENTS);
	cr_assert_geq(message->events.count, 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_has(message->events.rows[message->events.count - 4 + i].text, texts[i]);
}

WORLD_TEST(driver_service, events_and_runs_that_are_kept_are_bounded, serve)
{
	const struct fw_message *message;
	char kinds[500];
	uint64_t after = 0;
	size_t count = 0, more;

	for (int i = 0; i < DRV_NOTICES_MAX + 100; i++) {
		stop(w, 10 + (uint64_t)i, "nobody", false, false);
		if (i % 32 == 0)
			pass_beating(w, SECOND / 2, CLIENT, CLIENT);
		beat(w, 1);
		beat(w, 2);
	}
	do {
		kinds[0] = '\0';
		more = count_events(w, 5000 + count, &after, kinds);
		count += more;
	} while (more > 0);
	cr_expect_eq(count, DRV_NOTICES_MAX);
	for (speaking_run = 1; speaking_run <= DRV_ENDED_MAX + 5; speaking_run++) {
		pass_beating(w, SECOND / 2, CLIENT, CLIENT);
		beat(w, 1);
		beat(w, 2);
		start(w, 9000 + speaking_run);
		hosts_run(w);
		hosts_end(w);
	}
	pass_beating(w, SECOND / 2, CLIENT, CLIENT);
	request_state(w, CLIENT, 99999);
	message = must_take(w, CLIENT, FW_REPLY);
	cr_expect_eq(message->reply.ended_count, DRV_ENDED_MAX);
	cr_expect_eq(message->reply.ended[0].run, DRV_ENDED_MAX + 5);
}

WORLD_TEST(driver_service, a_client_that_brings_too_much_is_closed, serve)
{
	char *text = calloc(1, 3 << 20);

	snprintf(text, 1000, "%s# ", two_fragments);
	memset(text + strlen(text), 'x', (3 << 20) - 300);
	say_start(w, CLIENT, 2, "one", text);
	answer(w, 2);
	say_start(w, CLIENT, 3, "two", text);
	cr_expect_null(taken(w, CLIENT, FW_ANSWER), "it waits for the next beat");
	say_start(w, CLIENT, 4, "three", text);
	assert_has(w->log, "client client left: it asks too often");
	cr_expect_eq(drv_core_app_count(w->core), 1);
	free(text);
}

WORLD_TEST(driver_service, one_application_fails_and_its_neighbour_goes_on, serve)
{
	say_start(w, CLIENT, 2, "one", two_fragments);
	say_start(w, CLIENT, 3, "two", two_fragments);
	hosts_run(w);
	speaking_run = 2;
	hosts_run(w);
	speaking_run = 1;
	say_exit(w, 1, 1, 139, 11, "it crashed");
	cr_expect_eq(drv_core_named_state(w->core, "one"), DRV_APP_FAILING);
	say_exit(w, 2, 2, 137, 9, "");
	cr_expect_eq(drv_core_named_state(w->core, "one"), DRV_APP_ENDED);
	cr_expect_eq(drv_core_named_state(w->core, "two"), DRV_APP_RUNNING);
	cr_expect_eq(drv_core_placed(w->core), 2);
}
