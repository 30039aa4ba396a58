// SPDX-License-Identifier: Apache-2.0

#include "report_world.h"

/* What a worker keeps of its hosts while their driver is away, and whom it tells. */
TestSuite(worker_report, .fini = finish);

Test(worker_report, a_host_runs_on_and_is_reported_with_all_that_matters)
{
	struct fw_message done = host_frame(FW_HOST_EVENT);

	run_host_as("key a 1");
	lose_driver();
	cr_expect_null(did(WRK_DO_SIGNAL_HOST));
	cr_expect_str_eq(
		logged(FRAGI_LOG_WARN),
		"lost the driver at 127.0.0.1:57777: connection reset; 1 host runs on meanwhile");
	done.event.state = FW_STATE_DONE;
	from_host(&done);
	reconnect();
	cr_expect_eq(attach_as("key a 1", true), 1);
	cr_assert_not_null(sent(FW_HOST_REPORT));
	cr_expect_str_eq(sent(FW_HOST_REPORT)->report.create.application, "app");
	cr_expect(sent(FW_HOST_REPORT)->report.started);
	cr_expect_eq(sent(FW_HOST_REPORT)->report.stop, FW_STOP_NOT);
	cr_assert_not_null(sent(FW_HOST_PREPARED));
	cr_assert_not_null(sent(FW_HOST_EVENT));
	cr_expect_eq(sent(FW_HOST_EVENT)->event.state, FW_STATE_DONE);
	cr_expect_null(sent(FW_HOST_EXIT));
	cr_expect_not_null(sent(FW_REPORTED));
	cr_expect_not_null(did(WRK_DO_REPORTER_HOST));
	/* The present driver may command it. */
	request(FW_HOST_STOP);
	cr_expect_not_null(did(WRK_DO_SEND_HOST));
}

/* The last word on each peer, in the order in which they were first heard of. */
Test(worker_report, what_a_host_says_again_is_reported_once)
{
	static const struct {
		enum fw_host_state state;
		uint32_t peer;
		const char *sentence;
	} said[] = {{FW_STATE_PEER_LOST, 2, "first"},
		    {FW_STATE_PEER_LOST, 3, "other"},
		    {FW_STATE_PEER_LOST, 2, "again"},
		    {FW_STATE_FAILED, 2, "it fails"}},
	  reported[] = {{FW_STATE_PEER_LOST, 2, "again"},
			{FW_STATE_PEER_LOST, 3, "other"},
			{FW_STATE_FAILED, 2, "it fails"}};
	const struct wrk_action *action;
	uint32_t count = 0;

	run_host_as("key a 1");
	lose_driver();
	for (size_t i = 0; i < FRAG_COUNT_OF(said); i++) {
		struct fw_message event = host_frame(FW_HOST_EVENT);

		event.event.state = said[i].state;
		event.event.peer = said[i].peer;
		event.event.failure =
			(struct fw_failure){FRAGI_FAILURE_OTHER, said[i].sentence, ""};
		from_host(&event);
	}
	reconnect();
	cr_assert_eq(attach_as("key a 1", true), 1);
	for (int n = 0; (action = did_nth(WRK_DO_SEND_DRIVER, n)) != NULL; n++) {
		const struct fw_host_event *event = &action->message->event;

		if (action->message->kind != FW_HOST_EVENT)
			continue;
		cr_assert_lt(count, FRAG_COUNT_OF(reported));
		cr_expect_eq(event->state, reported[count].state, "%u", count);
		cr_expect_eq(event->peer, reported[count].peer, "%u", count);
		cr_expect_str_eq(event->failure.sentence, reported[count].sentence);
		count++;
	}
	cr_expect_eq(count, FRAG_COUNT_OF(reported));
}

Test(worker_report, what_ended_meanwhile_is_reported_until_the_run_is_over)
{
	run_host_as("key a 1");
	lose_driver();
	exited(0, SIGSEGV, true);
	for (int again = 0; again < 2; again++) {
		reconnect();
		cr_expect_eq(attach_as("key a 1", true), 1);
		cr_assert_not_null(sent(FW_HOST_EXIT));
		cr_expect_eq(sent(FW_HOST_EXIT)->exit.signal, SIGSEGV);
		cr_expect(sent(FW_HOST_STATS)->stats.final);
		cr_expect_eq(sent(FW_HOST_STATS)->stats.ops[1].ticks, 17);
		cr_expect_null(did(WRK_DO_REPORTER_HOST));
		lose_driver();
	}
	reconnect();
	attach_as("key a 1", true);
	app_ended(7, 0);
	lose_driver();
	cr_assert(timers_until(now + WRK_BACKOFF_MAX_NS, WRK_DO_CONNECT));
	cr_expect_eq(attach_as("key a 1", true), 0);
	cr_expect_null(sent(FW_REPORTED));
}

/* To its driver a host that was told to end fails no more, nor to the next one. */
Test(worker_report, what_a_host_says_before_it_is_told_to_end_is_reported)
{
	struct fw_message failed = host_frame(FW_HOST_EVENT), stop = host_frame(FW_HOST_STOP);

	failed.event.state = FW_STATE_FAILED;
	for (int is_late = 0; is_late < 2; is_late++) {
		run_host_as("key a 1");
		stop.stop.drain_ns = 1000 * MS;
		from_driver(&stop);
		if (!is_late)
			from_host(&failed);
		stop.stop.drain_ns = 0;
		from_driver(&stop);
		if (is_late)
			from_host(&failed);
		exited(0, 0, true);
		lose_driver();
		reconnect();
		cr_expect_eq(attach_as("key a 1", true), 1);
		cr_expect_eq(sent(FW_HOST_EVENT) == NULL, is_late);
		cr_expect_not_null(sent(FW_HOST_EXIT));
		cr_expect_eq(sent(FW_HOST_REPORT)->report.stop, FW_STOP_DRAINED_ENDS);
		finish();
	}
}

/* Its driver took them for gone when the worker came back on a new connection. */
Test(worker_report, hosts_of_an_application_that_has_ended_end)
{
	run_host_as("key a 1");
	lose_driver();
	reconnect();
	attach_as("key a 1", true);
	app_ended(8, 0);
	cr_expect_null(did(WRK_DO_SIGNAL_HOST), "another application has ended");
	app_ended(7, 0);
	cr_assert_not_null(did(WRK_DO_SIGNAL_HOST));
	cr_expect_eq(did(WRK_DO_SIGNAL_HOST)->signal, SIGKILL);
}

Test(worker_report, a_driver_that_proves_something_else_gets_no_hosts)
{
	static const char *const others[] = {"key b 2", "user 1000", NULL};

	for (size_t i = 0; i < FRAG_COUNT_OF(others); i++) {
		start_as("key a 1");
		spawn(1);
		prepared();
		lose_driver();
		reconnect();
		cr_expect_eq(attach_as(others[i], true), 1);
		cr_assert_not_null(did(WRK_DO_SIGNAL_HOST));
		cr_expect_eq(did(WRK_DO_SIGNAL_HOST)->signal, SIGKILL);
		cr_expect_null(sent(FW_HOST_REPORT));
		cr_expect_not_null(sent(FW_REPORTED));
		cr_expect_str_eq(
			logged(FRAGI_LOG_WARN),
			"the driver at 127.0.0.1:57777 has another key than the one before; 1 host ends here");
		exited(0, SIGKILL, true);
		cr_expect_null(sent(FW_HOST_EXIT), "it is not the one of this driver");
		finish();
	}
	make(false); /* for the end of the suite */
}

Test(worker_report, a_driver_of_one_application_gets_no_hosts)
{
	start_as("user 0");
	spawn(1);
	lose_driver();
	reconnect();
	attach_as("user 0", false);
	cr_assert_not_null(did(WRK_DO_SIGNAL_HOST));
	cr_expect_null(sent(FW_HOST_REPORT));
	cr_expect_null(sent(FW_REPORTED), "such a driver knows of no reports");
}

Test(worker_report, sums_of_earlier_epochs_and_the_last_request_to_stop)
{
	struct fw_message kill = host_frame(FW_HOST_KILL), wire = host_frame(FW_HOST_WIRE);

	run_host_as("key a 1");
	exited(0, SIGKILL, true);
	spawn(2);
	lose_driver();
	reconnect();
	cr_expect_eq(attach_as("key a 1", true), 1);
	cr_expect_not(sent(FW_HOST_REPORT)->report.is_wired);
	wire.epoch = kill.epoch = 2;
	from_driver(&wire);
	kill.stop.reason = "another host crashed";
	kill.stop.failure = FRAGI_FAILURE_HOST_EXITED;
	from_driver(&kill);
	lose_driver();
	reconnect();
	cr_expect_eq(attach_as("key a 1", true), 1);
	cr_assert_not_null(sent(FW_HOST_REPORT));
	cr_expect_eq(sent(FW_HOST_REPORT)->epoch, 2);
	cr_expect_eq(sent(FW_HOST_REPORT)->report.restarts, 1);
	cr_expect(sent(FW_HOST_REPORT)->report.has_run);
	cr_expect_not(sent(FW_HOST_REPORT)->report.started);
	cr_expect(sent(FW_HOST_REPORT)->report.is_wired);
	cr_expect_eq(sent(FW_HOST_REPORT)->report.stop, FW_STOP_KILLED);
	cr_expect_eq(sent(FW_HOST_REPORT)->report.failure, FRAGI_FAILURE_HOST_EXITED);
	cr_expect_str_eq(sent(FW_HOST_REPORT)->report.reason, "another host crashed");
	cr_assert_not_null(sent(FW_HOST_PAST));
	cr_expect_eq(sent(FW_HOST_PAST)->stats.ops[1].ticks, 17);
	cr_expect_not(sent(FW_HOST_REPORT)->report.is_inexact);
	exited(0, SIGKILL, true);
	spawn(3);
	lose_driver();
	reconnect();
	cr_expect_eq(attach_as("key a 1", true), 1);
	cr_expect_eq(sent(FW_HOST_REPORT)->epoch, 3);
	cr_expect_eq(sent(FW_HOST_REPORT)->report.stop, FW_STOP_NOT);
	cr_expect_eq(sent(FW_HOST_REPORT)->report.failure, FRAGI_FAILURE_NONE);
	cr_expect_null(sent(FW_HOST_REPORT)->report.reason);
}

/* A process at which nobody looked reports no pools. */
Test(worker_report, sums_of_earlier_epochs_have_pools_and_processor_time)
{
	struct fw_late_counts lates[] = {{{[FRAGI_BLAME_QUEUE] = 2}}, {{[FRAGI_BLAME_CLOCK] = 5}}};
	struct fragi_pool_stats pools[] = {{4, 4096, 1, 2, 900}, {8, 512, 8, 3, 30}};
	struct fw_op_stats ops[] = {
		{.ticks = 3, .compute = {.count = 4, .total_ns = 50, .bars = {0, 4}}}};

	start_as("key a 1");
	for (uint64_t epoch = 1; epoch <= 3; epoch++) {
		struct fw_host_stats stats = {.ops = ops,
					      .op_count = 1,
					      .pools = pools,
					      .pool_count = epoch == 1 ? 0 : 2,
					      .lates = lates,
					      .late_count = 2,
					      .facts.cpu_ns = 1000 * epoch};

		spawn(epoch);
		exited_with(0, SIGKILL, &stats);
	}
	spawn(4);
	lose_driver();
	reconnect();
	cr_expect_eq(attach_as("key a 1", true), 1);
	cr_assert_not_null(sent(FW_HOST_PAST));
	cr_expect_eq(sent(FW_HOST_PAST)->stats.facts.cpu_ns, 6000);
	cr_assert_eq(sent(FW_HOST_PAST)->stats.pool_count, 2);
	cr_expect_eq(sent(FW_HOST_PAST)->stats.pools[0].refused, 4);
	cr_expect_eq(sent(FW_HOST_PAST)->stats.pools[1].empty_ns, 60);
	cr_assert_eq(sent(FW_HOST_PAST)->stats.late_count, 2);
	cr_expect_eq(sent(FW_HOST_PAST)->stats.lates[0].late[FRAGI_BLAME_QUEUE], 6);
	cr_expect_eq(sent(FW_HOST_PAST)->stats.lates[1].late[FRAGI_BLAME_CLOCK], 15);
	cr_assert_eq(sent(FW_HOST_PAST)->stats.op_count, 1);
	cr_expect_eq(sent(FW_HOST_PAST)->stats.ops[0].ticks, 9);
	cr_expect_eq(sent(FW_HOST_PAST)->stats.ops[0].compute.total_ns, 150);
	cr_expect_eq(sent(FW_HOST_PAST)->stats.ops[0].compute.bars[1], 12);
}

/* Also where one in between was not wired, and so counted no flow: that one has a row less. */
Test(worker_report, sums_of_three_epochs)
{
	start_as("key a 1");
	for (uint64_t epoch = 1; epoch <= 3; epoch++) {
		struct fw_op_stats ops[2] = {{.ticks = 3 * epoch}, {.ticks = 5 * epoch}};
		struct fragi_flow_stats flow = {.sent = 7 * epoch};
		struct fw_host_stats stats = {
			.ops = ops, .op_count = 2, .flows = &flow, .flow_count = epoch != 2};
		struct wrk_exited how = {.signal = SIGKILL, .stats = &stats};

		for (int k = 0; k < FRAGI_OP_COUNTERS; k++)
			ops[1].counters[k] = (uint64_t)(11 + k) * epoch;
		spawn(epoch);
		step((struct wrk_event){
			.kind = WRK_EVENT_HOST_EXITED, .host = seen_host, .exited = &how});
	}
	spawn(4);
	lose_driver();
	reconnect();
	cr_expect_eq(attach_as("key a 1", true), 1);
	cr_expect_eq(sent(FW_HOST_REPORT)->report.restarts, 3);
	cr_assert_not_null(sent(FW_HOST_PAST));
	cr_expect_eq(sent(FW_HOST_PAST)->stats.ops[0].ticks, 3 * (1 + 2 + 3));
	cr_expect_eq(sent(FW_HOST_PAST)->stats.ops[1].ticks, 5 * (1 + 2 + 3));
	for (int k = 0; k < FRAGI_OP_COUNTERS; k++)
		cr_expect_eq(sent(FW_HOST_PAST)->stats.ops[1].counters[k],
			     (uint64_t)(11 + k) * (1 + 2 + 3));
	cr_assert_eq(sent(FW_HOST_PAST)->stats.flow_count, 1);
	cr_expect_eq(sent(FW_HOST_PAST)->stats.flows[0].sent, 7 * (1 + 3));
}

Test(worker_report, what_a_driver_did_not_know_of_its_sums_the_next_one_hears)
{
	struct fw_message adopted = host_frame(FW_HOST_ADOPTED);

	run_host_as("key a 1");
	lose_driver();
	reconnect();
	cr_expect_eq(attach_as("key a 1", true), 1);
	cr_expect_not(sent(FW_HOST_REPORT)->report.is_inexact);
	adopted.adopted.is_inexact = true;
	from_driver(&adopted);
	lose_driver();
	reconnect();
	cr_expect_eq(attach_as("key a 1", true), 1);
	cr_expect(sent(FW_HOST_REPORT)->report.is_inexact);
}

Test(worker_report, an_epoch_that_ended_meanwhile_does_not_come_back)
{
	struct fw_message create = create_of(7, 1, 1);

	start_as("key a 1");
	spawn(1);
	lose_driver();
	exited(0, SIGKILL, true);
	reconnect();
	attach_as("key a 1", true);
	from_driver(&create);
	cr_expect_null(did(WRK_DO_SPAWN));
}

Test(worker_report, a_refusal_does_not_end_a_worker_whose_hosts_run)
{
	struct fw_message refused = {.kind = FW_REFUSED};

	start_as("key a 1");
	spawn(1);
	lose_driver();
	reconnect();
	connected("127.0.0.1");
	refused.refused.failure =
		(struct fw_failure){FRAGI_FAILURE_DRIVER_FULL, "driverd is full", ""};
	from_driver(&refused);
	cr_expect_null(did(WRK_DO_EXIT));
	cr_expect_null(did(WRK_DO_SIGNAL_HOST));
	cr_expect_eq(wrk_core_session(core), WRK_SESSION_BACKOFF);
}

Test(worker_report, what_yields_is_reported_so_until_its_successor_runs)
{
	struct fw_message stop = host_frame(FW_HOST_STOP), past = past_of(2);

	run_host_as("key a 1");
	stop.stop.drain_ns = 1;
	stop.stop.restarts = true;
	from_driver(&stop);
	lose_driver();
	exited(0, 0, true);
	cr_expect_null(did(WRK_DO_SEND_SAVED), "nobody would get it");
	reconnect();
	cr_expect_eq(attach_as("key a 1", true), 1);
	cr_expect(sent(FW_HOST_REPORT)->report.yields);
	cr_expect_eq(sent(FW_HOST_REPORT)->report.stop, FW_STOP_NOT);
	cr_assert_not_null(did(WRK_DO_SEND_SAVED), "what it has saved");
	cr_expect_eq(did(WRK_DO_SEND_SAVED)->number, 1);
	from_driver(&past);
	cr_assert_not_null(did(WRK_DO_FORGET_SAVED));
	lose_driver();
	cr_assert(timers_until(now + WRK_BACKOFF_MAX_NS, WRK_DO_CONNECT));
	cr_expect_eq(attach_as("key a 1", true), 0, "it is forgotten");
}

static const struct fw_message revoked = {
	.kind = FW_REFUSED,
	.refused = {{FRAGI_FAILURE_KEY_REFUSED, "its key a is no longer in the key file", ""}}};

Test(worker_report, what_runs_by_a_revoked_key_ends_at_once)
{
	run_host_as("key a 1");
	from_driver(&revoked);
	cr_assert_not_null(did(WRK_DO_SIGNAL_HOST));
	cr_expect_eq(did(WRK_DO_SIGNAL_HOST)->signal, SIGKILL);
	cr_expect_not_null(did(WRK_DO_DISCONNECT));
	cr_expect_str_eq(
		logged(FRAGI_LOG_ERROR),
		"the driver at 127.0.0.1:57777 has revoked this worker: its key a is no longer in the key file; 1 host ends");
	cr_expect_str_eq(wrk_core_refusal(core), "its key a is no longer in the key file");
	cr_expect_null(did(WRK_DO_EXIT), "the key may come back");
	cr_expect_null(logged(FRAGI_LOG_INFO), "the line about the key is enough");
	exited(0, SIGKILL, false);
	cr_assert(timers_until(now + WRK_BACKOFF_MAX_NS, WRK_DO_CONNECT));
	attach_as("key a 2", true);
	cr_expect_null(wrk_core_refusal(core));
}

/* Without a host it ends at once, else when its host has ended; with the code of the revocation. */
Test(worker_report, a_worker_for_one_application_ends_with_its_key)
{
	for (int hosts = 0; hosts < 2; hosts++) {
		start_attached(true);
		if (hosts == 1)
			spawn(1);
		from_driver(&revoked);
		cr_assert_eq(did(WRK_DO_EXIT) != NULL, hosts == 0, "%d", hosts);
		if (hosts == 1)
			exited(0, SIGKILL, false);
		cr_assert_not_null(did(WRK_DO_EXIT), "%d", hosts);
		cr_expect_eq(did(WRK_DO_EXIT)->exit_code,
			     fragi_failure_exit(FRAGI_FAILURE_KEY_REFUSED));
		finish();
	}
}

/* The driver's last word about the application stays that of the worker. */
Test(worker_report, a_revocation_after_the_result_does_not_change_it)
{
	start_attached(true);
	spawn(1);
	app_ended(7, 0);
	from_driver(&revoked);
	exited(0, SIGKILL, false);
	cr_assert_not_null(did(WRK_DO_EXIT));
	cr_expect_eq(did(WRK_DO_EXIT)->exit_code, 0);
}

/* An error in a key file must not end what runs. */
Test(worker_report, a_handshake_that_is_refused_ends_no_host)
{
	run_host_as("key a 1");
	lose_driver();
	for (int i = 0; i < 5; i++) {
		reconnect();
		step((struct wrk_event){.kind = WRK_EVENT_CONNECT_FAILED,
					.connection = seen_connection,
					.failure = FRAGI_FAILURE_KEY_REFUSED,
					.text = "it does not know the key a"});
		cr_expect_null(did(WRK_DO_SIGNAL_HOST));
		cr_expect_str_eq(wrk_core_refusal(core), "it does not know the key a");
	}
	reconnect();
	cr_expect_eq(attach_as("key a 1", true), 1);
}

/* Its driver adopts them the sooner. */
Test(worker_report, with_hosts_it_tries_each_second)
{
	const int64_t second = 1000000000;
	int64_t began, longest[2] = {0, 0};

	for (int hosts = 0; hosts < 2; hosts++) {
		start_as("key a 1");
		if (hosts == 1)
			spawn(1);
		lose_driver();
		for (int i = 0; i < 12; i++) {
			began = now;
			while (!timers_until(began + WRK_BACKOFF_MAX_NS, WRK_DO_CONNECT)) {
				struct fw_message alive = {.kind = FW_BEAT};

				cr_assert_lt(now, began + WRK_BACKOFF_MAX_NS);
				from_host(&alive);
			}
			if (now - began > longest[hosts])
				longest[hosts] = now - began;
			connect_failed("connection refused");
		}
		finish();
	}
	cr_expect_gt(longest[0], 2 * second);
	cr_expect_leq(longest[0], 5 * second);
	cr_expect_leq(longest[1], second);
	cr_expect_geq(longest[1], second / 2);
}

/* Of a host, and of its peers: a driver whose state is lost begins above them. */
Test(worker_report, the_highest_epoch_that_it_has_seen_is_in_its_hello)
{
	struct fw_peer peers[] = {{.host = 2, .epoch = 70, .name = "f2"},
				  {.host = 3, .epoch = 9, .name = "f3"}};
	struct fw_message wire = host_frame(FW_HOST_WIRE);

	start_as("key");
	spawn(1);
	lose_driver();
	reconnect();
	attach_as("key", true);
	cr_expect_eq(told_epoch, 1);
	wire.wire.peers = peers;
	wire.wire.peer_count = 2;
	from_driver(&wire);
	lose_driver();
	reconnect();
	attach_as("key", true);
	cr_expect_eq(told_epoch, 70);
}
