// SPDX-License-Identifier: Apache-2.0
#include "driver_world.h"

#include <driverd/core/placement/placement.h>

#define CLIENT 50

static const struct fw_failure *drain(struct world *w, const char *worker, bool undo)
{
	struct fw_message message = {.kind = FW_DRAIN, .seq = 9, .drain = {worker, undo}};
	const struct fw_message *answer;

	say(w, CLIENT, &message);
	answer = must_take(w, CLIENT, FW_ANSWER);
	cr_expect_eq(answer->reply_to, 9);
	return &answer->answer.failure;
}

WORLD_TEST(driver_drain, a_drained_worker_is_given_nothing_until_that_ends, world_init)
{
	client_hello(w, CLIENT, "top");
	hello(w, 1, "a", NULL);
	cr_expect_eq(drain(w, "a", false)->code, FRAGI_FAILURE_NONE);
	cr_expect_eq(drain(w, "a", false)->code, FRAGI_FAILURE_NONE, "once more is no error");
	app(w, two_fragments);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_WAITING);
	request_state(w, CLIENT, 2);
	cr_expect(taken(w, CLIENT, FW_REPLY)->reply.workers[0].drained);
	cr_expect_eq(drain(w, "a", true)->code, FRAGI_FAILURE_NONE);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_PREPARING, "it has waited for that");
	cr_expect_str_eq(drain(w, "a", true)->sentence, "worker a is not drained");
}

WORLD_TEST(driver_drain, what_runs_there_goes_on, world_init)
{
	client_hello(w, CLIENT, "top");
	to_running(w);
	cr_expect_eq(drain(w, "a", false)->code, FRAGI_FAILURE_NONE);
	pass_beating(w, 2 * SECOND, 1, 2);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING);
	cr_expect_eq(drv_core_placed(w->core), 2);
	cr_expect_null(taken(w, 1, FW_HOST_STOP));
	cr_expect_null(taken(w, 1, FW_HOST_KILL));
}

WORLD_TEST(driver_drain, as_many_are_drained_as_there_may_be_workers, world_init)
{
	client_hello(w, CLIENT, "top");
	hello(w, 1, "a", NULL);
	w->core->drained_count = DRV_WORKERS_MAX - 1;
	cr_expect_eq(drv_drain_restore(w->core, "last"), 0);
	cr_expect(drv_drain_is(w->core, "last"));
	cr_expect_eq(drv_drain_restore(w->core, "last"), 0, "it is known");
	cr_expect_eq(drv_drain_restore(w->core, "beyond"), 0, "which ends no driver");
	cr_expect_not(drv_drain_is(w->core, "beyond"));
	cr_expect_eq(w->core->drained_count, DRV_WORKERS_MAX);
	cr_expect_str_eq(drain(w, "a", false)->sentence,
			 "driverd knows 8192 drained workers, as many as it takes");
	cr_expect_eq(drain(w, "last", true)->code, FRAGI_FAILURE_NONE);
	cr_expect_eq(drain(w, "a", false)->code, FRAGI_FAILURE_NONE, "there is room again");
}

WORLD_TEST(driver_drain, it_is_drained_when_it_comes_back, world_init)
{
	client_hello(w, CLIENT, "top");
	hello(w, 1, "a", NULL);
	cr_expect_eq(drain(w, "a", false)->code, FRAGI_FAILURE_NONE);
	step(w,
	     &(struct drv_event){.kind = DRV_EVENT_CLOSED, .connection = 1, .text = "it closed"});
	cr_expect_eq(drain(w, "a", false)->code, FRAGI_FAILURE_NONE,
		     "it is known though it is away");
	hello(w, 2, "a", NULL);
	app(w, two_fragments);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_WAITING);
	hello(w, 3, "b", NULL);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_PREPARING);
	cr_expect_null(taken(w, 2, FW_HOST_CREATE));
	cr_expect_not_null(taken(w, 3, FW_HOST_CREATE));
}

WORLD_TEST(driver_drain, who_may_drain_whom, world_init)
{
	struct fw_message message = {.kind = FW_DRAIN, .drain = {"b", false}};
	const struct fw_failure *failure;

	client_hello(w, CLIENT, "top");
	hello(w, 1, "left", NULL);
	hello(w, 2, "b", NULL);
	failure = drain(w, "lefd", false);
	cr_expect_eq(failure->code, FRAGI_FAILURE_USAGE);
	cr_expect_str_eq(failure->sentence, "there is no worker \"lefd\"; did you mean \"left\"?");
	cr_expect_str_eq(drain(w, "top", false)->sentence,
			 "there is no worker \"top\"; workers: left, b", "a client is no worker");
	say(w, 1, &message);
	cr_expect_eq(w->closed_count, 1, "a worker drains nobody");
}

/* Its new process may come before the driver has given up the connection of the old one. */
WORLD_TEST(driver_drain, it_is_drained_under_its_name_with_a_number_too, world_init)
{
	client_hello(w, CLIENT, "top");
	hello(w, 1, "a", NULL);
	cr_expect_eq(drain(w, "a", false)->code, FRAGI_FAILURE_NONE);
	hello(w, 2, "a", NULL);
	app(w, two_fragments);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_WAITING);
	cr_expect_eq(drain(w, "a#2", true)->code, FRAGI_FAILURE_NONE);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_PREPARING);
	cr_expect_str_eq(drain(w, "a#2", true)->sentence, "worker a#2 is not drained");
}

WORLD_TEST(driver_drain, each_of_two_names_drains_for_itself, world_init)
{
	client_hello(w, CLIENT, "top");
	hello(w, 1, "a", NULL);
	hello(w, 2, "a", NULL);
	cr_expect_eq(drain(w, "a#2", false)->code, FRAGI_FAILURE_NONE);
	cr_expect_eq(drain(w, "a", false)->code, FRAGI_FAILURE_NONE);
	cr_expect_eq(drain(w, "a", true)->code, FRAGI_FAILURE_NONE);
	request_state(w, CLIENT, 2);
	cr_expect_not(taken(w, CLIENT, FW_REPLY)->reply.workers[0].drained);
	request_state(w, CLIENT, 3);
	cr_expect(taken(w, CLIENT, FW_REPLY)->reply.workers[1].drained, "a#2 still is");
}

/* The rows of a reply are bounded; that of the worker that is asked for is never left out. */
WORLD_TEST(driver_drain, the_reply_about_a_worker_has_its_row, NULL)
{
	static char text[1 << 19];
	const struct fw_message *reply;
	const uint32_t count = 3000;
	size_t used;

	used = (size_t)sprintf(text, "frag: 1\napplication: app\nfragments:\n");
	for (uint32_t i = 0; i < count; i++)
		used += (size_t)sprintf(text + used,
					"  f%u: {host: h%u, operators: {tx: {type: t}}}\n", i, i);
	world_init(w);
	client_hello(w, CLIENT, "top");
	hello(w, 1, "a", NULL);
	for (uint64_t i = 0; i < 11; i++) /* each takes FW_WORKER_HOSTS_MAX hosts */
		hello(w, 100 + i, "other", NULL);
	app(w, text);
	hello(w, 2, "b", NULL);
	request_state(w, CLIENT, 2);
	reply = must_take(w, CLIENT, FW_REPLY);
	cr_assert_eq(reply->reply.worker_count, 0, "there are more rows than a reply has");
	for (int i = 0; i < 2; i++) {
		const char *const worker = i == 0 ? "a" : "b";

		say(w, CLIENT,
		    &(struct fw_message){.kind = FW_REQUEST,
					 .seq = 3,
					 .request = {.what = FW_REQUEST_STATE, .worker = worker}});
		reply = must_take(w, CLIENT, FW_REPLY);
		cr_assert_eq(reply->reply.worker_count, 1);
		cr_expect_str_eq(reply->reply.workers[0].name, worker);
		cr_expect_eq(reply->reply.workers[0].fragments, i == 0 ? count / 12 : 0);
		cr_expect_eq(reply->reply.application_count, i == 0 ? 1 : 0, "only what it runs");
	}
}

WORLD_TEST(driver_drain, the_next_driver_knows_of_it, world_init)
{
	cr_assert_eq(drv_core_restore(w->core, &(struct drv_record){.kind = DRV_RECORD_DRAINED,
								    .name = "a"}),
		     0);
	client_hello(w, CLIENT, "top");
	hello(w, 1, "a", NULL);
	cr_expect(drv_core_is_drained(w->core, "a"));
	app(w, two_fragments);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_WAITING);
	cr_expect_eq(drain(w, "a", true)->code, FRAGI_FAILURE_NONE);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_PREPARING);
}

/* So the next one knows of it, and of its end. */
WORLD_TEST(driver_drain, it_is_acknowledged_when_it_is_kept, NULL)
{
	world_init_with(w, (struct drv_config){.version = "test", .keeps_state = true});
	client_hello(w, CLIENT, "top");
	hello(w, 1, "a", NULL);
	for (int undo = 0; undo < 2; undo++) {
		const enum drv_record_kind kind = undo ? DRV_RECORD_UNDRAINED : DRV_RECORD_DRAINED;

		cr_assert_null(kept(w, kind, 0));
		say(w, CLIENT,
		    &(struct fw_message){
			    .kind = FW_DRAIN, .seq = 9, .drain = {"a", .undo = undo != 0}});
		if (!undo) /* it tries the folder first */
			step(w, &(struct drv_event){.kind = DRV_EVENT_PERSISTED,
						    .change = w->persist});
		cr_expect_null(taken(w, CLIENT, FW_ANSWER), "%d", undo);
		cr_assert_not_null(kept(w, kind, 0));
		cr_expect_str_eq(kept(w, kind, 0)->name, "a");
		step(w, &(struct drv_event){.kind = DRV_EVENT_PERSISTED, .change = w->persist});
		cr_expect_eq(must_take(w, CLIENT, FW_ANSWER)->answer.failure.code,
			     FRAGI_FAILURE_NONE, "%d", undo);
	}
}

/* Where the driver and its worker are one process nothing is counted, so nothing is given back. */
WORLD_TEST(driver_drain, a_restart_has_no_place_in_the_process_of_a_drained_worker, NULL)
{
	struct fw_message restart = {.kind = FW_STOP_APP, .seq = 3};

	world_init_with(w, (struct drv_config){.version = "test", .is_local = true});
	client_hello(w, CLIENT, "top");
	hello(w, 1, "a", NULL);
	app(w, "frag: 1\napplication: app\nfragments: {f1: {operators: {tx: {type: t}}}}\n");
	say_prepared(w, 1, 1, "f1", true);
	say_result(w, 1, 1, FW_HOST_WIRED);
	say_result(w, 1, 1, FW_HOST_STARTED);
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "%s", w->errors);
	cr_expect_eq(drain(w, "a", false)->code, FRAGI_FAILURE_NONE);
	restart.stop_app.name = "app";
	restart.stop_app.restart = true;
	say(w, CLIENT, &restart);
	assert_has(must_take(w, CLIENT, FW_ANSWER)->answer.failure.sentence,
		   "app would end and wait for a worker: ");
	cr_expect_eq(drv_core_load(w->core), 0);
}
