// SPDX-License-Identifier: Apache-2.0
#include "worker_world.h"

#include <base/beat.h>

TestSuite(worker_end, .fini = finish);

Test(worker_end, once_ends_with_the_result_of_what_it_served)
{
	struct fw_message stop = host_frame(FW_HOST_STOP);

	start_with_host(true, 1);
	from_driver(&stop);
	exited(0, 0, false);
	cr_expect_not_null(sent(FW_HOST_EXIT), "reported before it goes");
	cr_expect_null(did(WRK_DO_EXIT), "the driver has the last word");
	app_ended(7, 0);
	expect_exit(0);
}

/* What another worker's part ended with is the result of both. */
Test(worker_end, once_ends_with_the_result_of_the_application)
{
	struct fw_message stop = host_frame(FW_HOST_STOP);

	start_with_host(true, 1);
	from_driver(&stop);
	exited(0, 0, false);
	app_ended(8, 2);
	cr_expect_null(did(WRK_DO_EXIT), "another application");
	app_ended(7, 3);
	expect_exit(3);
}

/* The driver gave up before it needed this worker. */
Test(worker_end, once_ends_with_an_application_that_needed_nothing_here)
{
	start_attached(true);
	app_ended(7, 4);
	expect_exit(4);
}

Test(worker_end, the_end_of_an_application_does_not_end_a_worker_that_serves_on)
{
	start_attached(false);
	app_ended(7, 4);
	cr_expect_null(did(WRK_DO_EXIT));
	cr_expect_null(did(WRK_DO_DISCONNECT));
}

Test(worker_end, once_passes_on_a_failure_elsewhere)
{
	struct fw_message kill = host_frame(FW_HOST_KILL);

	start_with_host(true, 1);
	kill.stop.exit_code = 1;
	from_driver(&kill);
	exited(0, SIGKILL, false);
	cr_expect_eq(did(WRK_DO_EXIT)->exit_code, 1);
}

Test(worker_end, once_ends_as_the_driver_says_whatever_its_host_said_before)
{
	struct fw_message wired = host_frame(FW_HOST_WIRED), kill = host_frame(FW_HOST_KILL);

	start_with_host(true, 1);
	wired.result = (struct fw_host_result){
		{FRAGI_FAILURE_EDGE_REFUSED, "its peer was killed first", ""}};
	from_host(&wired);
	from_driver(&kill); /* stopped on request while it was wiring */
	driver_lost("the peer closed the connection");
	exited(0, SIGKILL, false);
	expect_exit(0);
}

/* A driver that comes to the same address counts its runs from 1 again. */
Test(worker_end, once_does_not_end_as_another_driver_says_after_its_own_has_spoken)
{
	struct fw_message kill = host_frame(FW_HOST_KILL);

	start_with_host(true, 1);
	kill.stop.exit_code = 1;
	from_driver(&kill);
	driver_lost("connection reset");
	cr_assert(timers_until(now + WRK_BACKOFF_MAX_NS, WRK_DO_CONNECT));
	attach();
	app_ended(7, 2);
	cr_expect_null(did(WRK_DO_EXIT), "its host goes first");
	exited(0, SIGKILL, false);
	expect_exit(1);
}

Test(worker_end, once_fails_with_its_host)
{
	start_with_host(true, 1);
	exited(0, SIGSEGV, false);
	step((struct wrk_event){.kind = WRK_EVENT_DRIVER_LOST, /* a driver that says nothing more */
				.connection = seen_connection,
				.text = "the peer closed the connection"});
	expect_exit(1);
}

Test(worker_end, once_without_its_driver_is_3_and_only_after_having_served)
{
	start_attached(true);
	driver_lost("connection reset");
	cr_expect_null(did(WRK_DO_EXIT));
	cr_assert(timers_until(now + WRK_BACKOFF_MAX_NS, WRK_DO_CONNECT));
	attach();
	spawn(1);
	driver_lost("connection reset");
	cr_expect_null(did(WRK_DO_EXIT), "its host goes first");
	exited(0, SIGKILL, false);
	expect_exit(fragi_failure_exit(FRAGI_FAILURE_DRIVER_LOST));
}

Test(worker_end, once_takes_no_second_application)
{
	struct fw_message other = create_of(8, 1, 1);

	start_with_host(true, 1);
	from_driver(&other);
	cr_expect_null(did(WRK_DO_SPAWN));
	cr_assert_not_null(sent(FW_HOST_EXIT));
	cr_expect(strstr(sent(FW_HOST_EXIT)->exit.failure.sentence, "--once"));
	cr_expect_eq(sent(FW_HOST_EXIT)->exit.failure.code, FRAGI_FAILURE_WORKER_BUSY);
	cr_expect_eq(sent(FW_HOST_EXIT)->run, 8);
}

Test(worker_end, told_to_end_it_stops_its_hosts_first)
{
	start_with_host(false, 1);
	prepared();
	step((struct wrk_event){.kind = WRK_EVENT_STOP});
	cr_assert(timers_until(now + WRK_GRACE_NS, WRK_DO_SIGNAL_HOST));
	cr_expect_eq(did(WRK_DO_SIGNAL_HOST)->signal, SIGTERM);
	cr_assert(timers_until(now + WRK_KILL_NS, WRK_DO_SIGNAL_HOST));
	cr_expect_eq(did(WRK_DO_SIGNAL_HOST)->signal, SIGKILL);
	exited(0, SIGKILL, true);
	cr_assert_not_null(sent(FW_HOST_EXIT));
	cr_expect(sent(FW_HOST_EXIT)->exit.asked);
	cr_expect_str_eq(
		sent(FW_HOST_EXIT)->exit.failure.sentence,
		"fraghost 4711 was ended in fragment1.detect, tick 17: its workerd was told to end");
	expect_exit(0);
}

Test(worker_end, told_to_end_a_driver_that_stops_in_order_is_let)
{
	struct fw_message stop = host_frame(FW_HOST_STOP);

	start_with_host(false, 1);
	step((struct wrk_event){.kind = WRK_EVENT_STOP});
	cr_expect_null(did(WRK_DO_SIGNAL_HOST));
	stop.stop.drain_ns = 5000 * MS;
	from_driver(&stop);
	for (int i = 0; i < 20; i++) {
		cr_assert_not(timers_until(now + 200 * MS, WRK_DO_SIGNAL_HOST), "it drains");
		from_driver(&beat);
		from_host(&beat);
	}
	exited(0, 0, false);
	expect_exit(0);
}

Test(worker_end, told_to_end_a_host_that_drains_is_let_though_another_one_is_stopped_here)
{
	struct fw_message create = create_of(7, 2, 1), stop = host_frame(FW_HOST_STOP);
	uint32_t drains, other;

	start_with_host(false, 1);
	drains = seen_host;
	from_driver(&create);
	other = seen_host;
	step((struct wrk_event){.kind = WRK_EVENT_HOST_SPAWNED, .host = other, .pid = 4712});
	step((struct wrk_event){.kind = WRK_EVENT_STOP});
	stop.stop.drain_ns = 5000 * MS;
	from_driver(&stop);
	cr_assert(timers_until(now + WRK_GRACE_NS, WRK_DO_SIGNAL_HOST), "of the other one");
	exited(0, 0, false);
	seen_host = drains;
	for (int i = 0; i < 25; i++) {
		cr_assert_not(timers_until(now + 200 * MS, WRK_DO_EXIT), "it drains");
		from_driver(&beat);
		from_host(&beat);
	}
	exited(0, 0, false);
	expect_exit(0);
}

Test(worker_end, told_to_end_a_driver_that_says_nothing_is_not_waited_for)
{
	start_with_host(false, 1);
	step((struct wrk_event){.kind = WRK_EVENT_STOP});
	cr_assert(timers_until(now + WRK_GRACE_NS, WRK_DO_SIGNAL_HOST));
	cr_expect_eq(did(WRK_DO_SIGNAL_HOST)->signal, SIGTERM);
}

Test(worker_end, told_twice_it_ends_at_once_even_if_a_host_does_not)
{
	start_with_host(false, 1);
	step((struct wrk_event){.kind = WRK_EVENT_STOP});
	step((struct wrk_event){.kind = WRK_EVENT_STOP});
	cr_expect_eq(did(WRK_DO_SIGNAL_HOST)->signal, SIGKILL);
	cr_assert(timers_until(now + 3 * WRK_KILL_NS, WRK_DO_EXIT));
}

Test(worker_end, told_again_and_again_it_does_not_wait_longer)
{
	int64_t latest;

	start_with_host(false, 1);
	step((struct wrk_event){.kind = WRK_EVENT_STOP});
	step((struct wrk_event){.kind = WRK_EVENT_STOP});
	latest = now + 2 * WRK_KILL_NS;
	cr_assert_not(timers_until(now + WRK_KILL_NS, WRK_DO_EXIT));
	step((struct wrk_event){.kind = WRK_EVENT_STOP});
	cr_assert(timers_until(latest, WRK_DO_EXIT));
}

Test(worker_end, told_to_end_without_hosts_it_ends)
{
	make_started(false);
	connect_failed("connection refused");
	step((struct wrk_event){.kind = WRK_EVENT_STOP});
	expect_exit(0);
}

Test(worker_end, told_to_end_a_host_that_is_not_there_yet_is_killed)
{
	struct fw_message create = create_of(7, 1, 1);

	start_attached(false);
	from_driver(&create);
	step((struct wrk_event){.kind = WRK_EVENT_STOP});
	cr_assert(timers_until(now + WRK_GRACE_NS, WRK_DO_SIGNAL_HOST));
	cr_expect_eq(did(WRK_DO_SIGNAL_HOST)->signal, SIGKILL);
	spawned(seen_host);
	exited(0, SIGKILL, false);
	cr_expect(strstr(sent(FW_HOST_EXIT)->exit.failure.sentence, "its workerd was told to end"));
	cr_assert_not_null(did(WRK_DO_EXIT));
}

Test(worker_end, told_to_end_it_starts_nothing_more)
{
	struct fw_message create = create_of(7, 2, 1);

	start_with_host(false, 1);
	step((struct wrk_event){.kind = WRK_EVENT_STOP});
	from_driver(&create);
	cr_expect_null(did(WRK_DO_SPAWN));
	cr_assert_not_null(sent(FW_HOST_EXIT));
	cr_expect_str_eq(sent(FW_HOST_EXIT)->exit.failure.sentence,
			 "worker a has been told to end");
}

Test(worker_end, told_to_end_before_it_began_it_ends)
{
	make(false);
	step((struct wrk_event){.kind = WRK_EVENT_STOP});
	cr_assert_not_null(did(WRK_DO_EXIT));
	cr_expect_null(did(WRK_DO_DISCONNECT), "there is nothing to close");
}

Test(worker_end, after_its_exit_nothing_happens)
{
	start_with_host(false, 1);
	step((struct wrk_event){.kind = WRK_EVENT_STOP});
	step((struct wrk_event){.kind = WRK_EVENT_STOP});
	cr_assert(timers_until(now + 3 * WRK_KILL_NS, WRK_DO_EXIT));
	cr_expect_eq(wrk_core_deadline_ns(core), INT64_MAX);
	step((struct wrk_event){.kind = WRK_EVENT_TIMER});
	cr_expect_eq(actions.count, 0);
	driver_lost("it closed");
	cr_expect_eq(actions.count, 0);
	exited(0, SIGKILL, false); /* the process that did not end in time */
	cr_expect_null(did(WRK_DO_EXIT));
	cr_expect_null(did(WRK_DO_SEND_DRIVER));
}

/* What the terminal of a worker shows of a host: that it runs, and how it ended. */
Test(worker_end, every_end_of_a_host_is_logged)
{
	static const struct {
		bool done, rests, failed, stop, kill;
		const char *reason;
		int status, signal;
		enum fragi_log_level level;
		const char *line;
	} ends[] = {
		{.done = true, .stop = true, .line = "fragment1 ended: done"},
		/* It says with every beat that it rests. */
		{.done = true, .rests = true, .stop = true, .line = "fragment1 ended: done"},
		{.rests = true, .stop = true, .line = "fragment1 ended: stopped"},
		{.stop = true, .line = "fragment1 ended: stopped"},
		{.stop = true,
		 .reason = "worker b was lost",
		 .line = "fragment1 was ended by the driver: worker b was lost"},
		{.kill = true, .signal = SIGKILL, .line = "fragment1 was ended by the driver"},
		{.kill = true,
		 .reason = "worker b was lost",
		 .signal = SIGKILL,
		 .line = "fragment1 was ended by the driver: worker b was lost"},
		{.failed = true,
		 .kill = true,
		 .reason = "fragment1.tx: no camera",
		 .signal = SIGKILL,
		 .line = "fragment1 was ended by the driver: fragment1.tx: no camera"},
		{.signal = SIGSEGV,
		 .level = FRAGI_LOG_ERROR,
		 .line = "fraghost 4711 of fragment1 crashed: signal 11 (SIGSEGV)"},
	};

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct fw_message event = host_frame(FW_HOST_EVENT);
		struct fw_message stop = host_frame(FW_HOST_STOP), kill = host_frame(FW_HOST_KILL);
		enum fragi_log_level level = ends[i].level != 0 ? ends[i].level : FRAGI_LOG_INFO;

		start_with_host(false, 1);
		cr_expect_str_eq(logged(FRAGI_LOG_INFO), "runs fragment1 (fraghost 4711)");
		cr_expect_str_eq(logged_of(FRAGI_LOG_INFO), "app/fragment1");
		event.event.state = FW_STATE_DONE;
		if (ends[i].done)
			from_host(&event);
		event.event.state = FW_STATE_IDLE;
		if (ends[i].rests)
			from_host(&event);
		event.event.state = FW_STATE_FAILED;
		event.event.failure = (struct fw_failure){FRAGI_FAILURE_OPERATOR_FAILED,
							  ends[i].reason, "fragment1.tx"};
		if (ends[i].failed)
			from_host(&event);
		stop.stop.reason = kill.stop.reason = ends[i].reason;
		if (ends[i].stop)
			from_driver(&stop);
		if (ends[i].kill)
			from_driver(&kill);
		exited(ends[i].status, ends[i].signal, false);
		cr_assert_not_null(logged(level), "%s", ends[i].line);
		cr_expect_str_eq(logged(level), ends[i].line);
		cr_expect_str_eq(logged_of(level), "app/fragment1");
		finish();
	}
}

Test(worker_end, a_worker_that_ends_in_order_takes_its_leave)
{
	start_attached(false);
	step((struct wrk_event){.kind = WRK_EVENT_STOP});
	cr_assert_not_null(sent(FW_LEAVE));
	cr_expect_str_eq(sent(FW_LEAVE)->leave.reason, "it was told to end");
	finish();
	start_attached(true);
	app_ended(7, 0);
	cr_assert_not_null(sent(FW_LEAVE));
	cr_expect_str_eq(sent(FW_LEAVE)->leave.reason, "it has served its application (--once)");
}

Test(worker_end, of_many_fragments_some_are_named_and_the_others_counted)
{
	static const char *names[40];
	struct fw_message create = create_of(7, 1, 1);

	for (size_t i = 0; i < 40; i++)
		names[i] = "a_fragment_of_28_characters_";
	create.create.fragments = names;
	create.create.fragment_count = 40;
	start_attached(false);
	from_driver(&create);
	spawned(seen_host);
	cr_expect_str_eq(
		logged(FRAGI_LOG_INFO),
		"runs a_fragment_of_28_characters_, a_fragment_of_28_characters_, a_fragment_of_28_characters_ and 37 more (fraghost 4711)");
}

Test(worker_end, what_operators_saved_goes_with_their_run_and_with_the_driver)
{
	const struct wrk_action *forget;

	start_attached(false);
	forget = did(WRK_DO_FORGET_SAVED);
	cr_assert_not_null(forget);
	cr_expect_eq(forget->run, 0, "all: another driver counts its runs from 1");
	spawn(1);
	cr_expect_null(did(WRK_DO_FORGET_SAVED));
	app_ended(7, 0);
	forget = did(WRK_DO_FORGET_SAVED);
	cr_assert_not_null(forget);
	cr_expect_eq(forget->run, 7);
}

/* Its driver may be back soon, as after a restart of its machine's service. */
Test(worker_end, once_without_having_served_it_ends_when_its_driver_does_not_come_back)
{
	for (int back = 0; back < 2; back++) {
		int64_t lost;

		start_attached(true);
		driver_lost("end of file");
		lost = now;
		cr_expect_null(did(WRK_DO_EXIT));
		while (now - lost < (back ? 2000 : 60000) * MS && did(WRK_DO_EXIT) == NULL) {
			cr_assert(timers_until(now + WRK_BACKOFF_MAX_NS, WRK_DO_CONNECT));
			connect_failed("connection refused");
		}
		if (back) {
			cr_assert(timers_until(now + WRK_BACKOFF_MAX_NS, WRK_DO_CONNECT));
			attach();
		} else {
			expect_exit(3);
			cr_expect_geq(now - lost, FRAGI_DEAD_NS);
			cr_expect_leq(now - lost, FRAGI_DEAD_NS + WRK_BACKOFF_MAX_NS);
			cr_expect_str_eq(
				logged(FRAGI_LOG_ERROR),
				"the driver at 127.0.0.1:57777 has ended: connection refused");
		}
		finish();
	}
}
