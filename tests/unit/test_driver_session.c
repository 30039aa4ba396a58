// SPDX-License-Identifier: Apache-2.0
#include "driver_world.h"

Test(driver_session, a_silent_worker_is_suspected_then_dead)
{
	struct world w;

	world_init(&w);
	to_running(&w);
	say_stats(&w, 1, 1, false, 6, 0);
	say_stats(&w, 2, 2, false, 0, 5);
	pass_beating(&w, 1500 * MS, 1, 1);
	assert_has(w.log, "worker b has not been heard for 1.");
	cr_expect_eq(drv_core_app_state(w.core), DRV_APP_RUNNING);
	say_event(&w, 1, 1, FW_HOST_PEER_LOST, "no beat");
	pass_beating(&w, SECOND, 1, 1);
	cr_expect_eq(drv_core_app_state(w.core), DRV_APP_RUNNING, "a suspect is not judged yet");
	pass_beating(&w, SECOND, 1, 1);
	assert_has(w.errors, "worker b at 10.0.0.9:1, which ran f2, was lost: it has not been heard for 3.");
	cr_expect_eq(w.closed[0], 2);
	cr_expect_eq(drv_core_session_count(w.core), 1);
	say_stats(&w, 1, 1, true, 20, 0);
	say_exit(&w, 1, 1, 137, 9, "");
	cr_assert(w.ended);
	assert_has(w.json, "\"name\": \"f2\", \"worker\": \"b\", \"host_pid\": 102, \"state\": \"lost\"");
	assert_has(w.json, "\"sent\": 20, \"delivered\": 16");
	assert_has(w.json, "\"lost\": 4");
	world_fini(&w);
}

Test(driver_session, a_worker_that_is_heard_again_is_no_longer_suspected)
{
	struct world w;

	world_init(&w);
	to_running(&w);
	pass_beating(&w, 2 * SECOND, 1, 1);
	beat(&w, 2);
	assert_has(w.log, "worker b is heard again");
	pass_beating(&w, 10 * SECOND, 1, 2);
	cr_expect_eq(drv_core_app_state(w.core), DRV_APP_RUNNING);
	world_fini(&w);
}

Test(driver_session, who_slept_himself_judges_nobody)
{
	struct world w;

	world_init(&w);
	to_running(&w);
	w.now_ns += 60 * SECOND; /* SIGSTOP, SIGCONT */
	step(&w, &(struct drv_event){.kind = DRV_EVENT_TIMER});
	pass_beating(&w, 5 * SECOND, 1, 2);
	cr_expect_eq(drv_core_app_state(w.core), DRV_APP_RUNNING);
	cr_expect_str_eq(w.errors, "");
	world_fini(&w);
}

Test(driver_session, who_is_always_late_finds_the_dead_too)
{
	struct world w;

	world_init(&w);
	to_running(&w);
	for (int i = 0; i < 7; i++) { /* every timer is late by more than a beat */
		w.now_ns += 600 * MS;
		step(&w, &(struct drv_event){.kind = DRV_EVENT_TIMER});
		beat(&w, 1);
	}
	assert_has(w.errors, "worker b at 10.0.0.9:1, which ran f2, was lost: it has not been heard for");
	world_fini(&w);
}

Test(driver_session, a_worker_that_leaves_while_it_has_nothing_is_no_failure)
{
	struct world w;

	world_init(&w);
	app(&w, two_fragments);
	hello(&w, 1, "a", "f1");
	step(&w, &(struct drv_event){.kind = DRV_EVENT_CLOSED, .connection = 1, .text = "it closed"});
	cr_expect_eq(drv_core_app_state(w.core), DRV_APP_WAITING);
	hello(&w, 3, "a", "f1");
	hello(&w, 2, "b", "f2");
	cr_expect_eq(drv_core_app_state(w.core), DRV_APP_PREPARING);
	world_fini(&w);
}

Test(driver_session, another_major_is_refused_naming_both)
{
	struct fw_message message = {.kind = FW_HELLO, .seq = 4};
	const struct fw_message *m;
	struct world w;

	world_init(&w);
	message.hello.major = 99;
	say(&w, 1, &message);
	m = taken(&w, 1, FW_REFUSED);
	cr_assert_not_null(m);
	cr_expect_eq(m->refused.exit_code, 5);
	assert_has(m->refused.sentence, "99.0");
	assert_has(m->refused.sentence, "1.0");
	cr_expect_eq(w.closed[0], 1);
	cr_expect_eq(drv_core_session_count(w.core), 0);
	world_fini(&w);
}

Test(driver_session, strangers_and_clients_are_sent_away)
{
	struct fw_message message = {.kind = FW_HELLO};
	struct world w;

	world_init(&w);
	say(&w, 7, &(struct fw_message){.kind = FW_BEAT});
	cr_expect_eq(w.closed[0], 7);
	message.hello = (struct fw_hello){.major = FW_PROTOCOL_MAJOR, .role = FW_ROLE_CLIENT};
	say(&w, 8, &message);
	assert_has(taken(&w, 8, FW_REFUSED)->refused.sentence, "not built yet");
	cr_expect_eq(drv_core_session_count(w.core), 0);
	world_fini(&w);
}

Test(driver_session, names_are_made_unique)
{
	struct world w;

	world_init(&w);
	hello(&w, 1, "node", NULL);
	hello(&w, 2, "node", NULL);
	hello(&w, 3, "node", NULL);
	cr_expect_str_eq(taken(&w, 1, FW_WELCOME)->welcome.name, "node");
	cr_expect_str_eq(taken(&w, 2, FW_WELCOME)->welcome.name, "node#2");
	cr_expect_str_eq(taken(&w, 3, FW_WELCOME)->welcome.name, "node#3");
	world_fini(&w);
}

Test(driver_session, a_misspelt_fragment_is_pointed_out)
{
	struct world w;

	world_init(&w);
	app(&w, "frag: 1\napplication: app\nfragments: {camera: {operators: {tx: {type: t}}}}\n");
	hello(&w, 1, "a", "camrea");
	assert_has(w.log, "names the fragment \"camrea\", which this application does not have; did you mean "
			  "\"camera\"?");
	world_fini(&w);
}

Test(driver_session, frames_of_other_hosts_runs_and_epochs_are_not_heard)
{
	struct fw_message message;
	struct world w;

	world_init(&w);
	to_running(&w);
	say_exit(&w, 1, 2, 139, 11, "not its host");
	message = of_host(FW_HOST_EXIT, 1);
	message.epoch = 2;
	say(&w, 1, &message);
	message.epoch = 1;
	message.run = 9;
	say(&w, 1, &message);
	message = of_host(FW_HOST_EXIT, 77);
	say(&w, 1, &message);
	cr_expect_eq(drv_core_app_state(w.core), DRV_APP_RUNNING);
	world_fini(&w);
}
