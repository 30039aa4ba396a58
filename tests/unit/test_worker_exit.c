// SPDX-License-Identifier: Apache-2.0
#include "worker_world.h"

#include <base/crash_note.h>
#include <workerd/core/host_exit.h>

TestSuite(worker_exit, .fini = finish);

Test(worker_exit, a_crash_is_reported_with_place_and_last_lines)
{
	const struct fw_message *exit;

	start_with_host(false, 1);
	prepared();
	exited(0, SIGSEGV, true);
	cr_assert_not_null(sent(FW_HOST_STATS));
	cr_expect(sent(FW_HOST_STATS)->stats.final);
	exit = sent(FW_HOST_EXIT);
	cr_assert_not_null(exit);
	cr_expect_str_eq(exit->exit.failure.sentence,
			 "fraghost 4711 crashed in fragment1.detect, tick 17: signal 11 (SIGSEGV)");
	cr_expect_eq(exit->exit.exit_code, 139);
	cr_expect_eq(exit->exit.signal, SIGSEGV);
	cr_expect_str_eq(exit->exit.lines[0], "last words");
	cr_expect_eq(exit->run, 7);
	cr_expect_eq(exit->host, 1);
	cr_expect_eq(exit->epoch, 1);
	cr_expect_eq(wrk_core_host_state(core, seen_host), WRK_HOST_NONE);
	cr_expect_eq(wrk_core_session(core), WRK_SESSION_ATTACHED);
}

Test(worker_exit, a_host_whose_socket_was_given_up_is_told_with_the_reason)
{
	start_with_host(false, 1);
	step((struct wrk_event){.kind = WRK_EVENT_HOST_CONNECTION_LOST,
				.host = seen_host,
				.text = "HOST_WIRE cannot be sent to it: out of memory",
				.cut = true});
	exited(WRK_HOST_EXIT_LOST, 0, false);
	cr_expect(strstr(sent(FW_HOST_EXIT)->exit.failure.sentence,
			 "was ended: HOST_WIRE cannot be sent to it"),
		  "%s", sent(FW_HOST_EXIT)->exit.failure.sentence);
}

Test(worker_exit, a_crash_of_a_host_whose_socket_was_given_up_is_one)
{
	start_with_host(false, 1);
	step((struct wrk_event){.kind = WRK_EVENT_HOST_CONNECTION_LOST,
				.host = seen_host,
				.text = "HOST_WIRE cannot be sent to it: out of memory",
				.cut = true});
	exited(0, SIGSEGV, false);
	cr_expect(strstr(sent(FW_HOST_EXIT)->exit.failure.sentence, "crashed"), "%s",
		  sent(FW_HOST_EXIT)->exit.failure.sentence);
}

Test(worker_exit, an_exit_of_its_own_is_told_as_one)
{
	start_with_host(false, 1);
	step((struct wrk_event){.kind = WRK_EVENT_HOST_CONNECTION_LOST,
				.host = seen_host,
				.text = "something in its process closed its control socket"});
	exited(WRK_HOST_EXIT_LOST, 0, false);
	cr_expect(strstr(sent(FW_HOST_EXIT)->exit.failure.sentence,
			 "exited with status 3: it had lost this worker; "),
		  "%s", sent(FW_HOST_EXIT)->exit.failure.sentence);
}

Test(worker_exit, an_operator_that_exits_with_the_status_of_a_lost_worker_has_not_lost_it)
{
	const struct fragi_crash_note note = {.op = "fragment1.tx"};
	const struct wrk_exited how = {.status = WRK_HOST_EXIT_LOST, .note = &note};
	const char *sentence;

	start_with_host(false, 1);
	step((struct wrk_event){.kind = WRK_EVENT_HOST_EXITED, .host = seen_host, .exited = &how});
	sentence = sent(FW_HOST_EXIT)->exit.failure.sentence;
	cr_expect_not_null(strstr(sentence, "exited with status 3"), "%s", sentence);
	cr_expect_null(strstr(sentence, "it had lost this worker"), "%s", sentence);
}

Test(worker_exit, a_crash_is_named_although_the_socket_closed_first)
{
	start_with_host(false, 1);
	step((struct wrk_event){.kind = WRK_EVENT_HOST_CONNECTION_LOST,
				.host = seen_host,
				.text = "it closed its socket"});
	exited(0, SIGBUS, false);
	cr_expect(strstr(sent(FW_HOST_EXIT)->exit.failure.sentence, "SIGBUS"), "%s",
		  sent(FW_HOST_EXIT)->exit.failure.sentence);
}

/* Once it has spoken, its exit is that of any host. */
Test(worker_exit, a_python_that_ends_before_it_has_spoken_may_lack_frag)
{
	for (int speaks = 0; speaks < 2; speaks++) {
		struct fw_message create = create_of(7, 1, 1);
		const char *sentence;

		start_attached(false);
		from_driver(&create);
		seen_host = did(WRK_DO_SPAWN)->host;
		step((struct wrk_event){.kind = WRK_EVENT_HOST_SPAWNED,
					.host = seen_host,
					.pid = 4711,
					.is_interpreter = true});
		if (speaks)
			from_host(&beat);
		exited(1, 0, false);
		sentence = sent(FW_HOST_EXIT)->exit.failure.sentence;
		cr_expect_not_null(strstr(sentence, "exited with status 1"), "%s", sentence);
		cr_expect_eq(strstr(sentence, "install the package frag for that Python") != NULL,
			     !speaks, "%s", sentence);
		finish();
	}
}

/* Shared memory of which the kernel cannot back a page ends its writer in this way. */
Test(worker_exit, a_page_that_the_kernel_does_not_have_is_explained)
{
	start_with_host(false, 1);
	exited(0, SIGBUS, false);
	cr_expect_not_null(
		strstr(sent(FW_HOST_EXIT)->exit.failure.sentence,
		       "crashed: signal 7 (SIGBUS); the kernel had no page to put behind an address: memory is short"),
		"%s", sent(FW_HOST_EXIT)->exit.failure.sentence);
}

Test(worker_exit, a_kill_from_outside_is_named_although_the_socket_closed_first)
{
	start_with_host(false, 1);
	step((struct wrk_event){.kind = WRK_EVENT_HOST_CONNECTION_LOST,
				.host = seen_host,
				.text = "something in its process closed its control socket"});
	exited(0, SIGKILL, false);
	cr_expect_eq(strncmp(sent(FW_HOST_EXIT)->exit.failure.sentence,
			     "fraghost 4711 of fragment1 was killed: signal 9 (SIGKILL)", 57),
		     0, "%s", sent(FW_HOST_EXIT)->exit.failure.sentence);
}

Test(worker_exit, an_operator_that_exits_is_a_failure)
{
	start_with_host(false, 1);
	prepared();
	exited(7, 0, true);
	cr_expect_str_eq(sent(FW_HOST_EXIT)->exit.failure.sentence,
			 "fraghost 4711 exited with status 7 in fragment1.detect, tick 17");
	cr_expect_eq(sent(FW_HOST_EXIT)->exit.exit_code, 7);
}

Test(worker_exit, an_ordered_end_has_no_sentence)
{
	struct fw_message stop = host_frame(FW_HOST_STOP);

	start_with_host(false, 1);
	from_driver(&stop);
	exited(0, 0, false);
	cr_assert_not_null(sent(FW_HOST_EXIT));
	cr_expect(sent(FW_HOST_EXIT)->exit.asked);
	cr_expect_str_eq(sent(FW_HOST_EXIT)->exit.failure.sentence, "");
	cr_expect_null(logged(FRAGI_LOG_ERROR));
	cr_expect_null(did(WRK_DO_EXIT), "it serves on");
}

/* It comes before the host can catch it. */
Test(worker_exit, a_host_that_the_signal_to_end_finds_starting_has_not_crashed)
{
	struct fw_message kill = host_frame(FW_HOST_KILL);

	grace_ns = 1000 * MS;
	start_with_host(false, 1);
	from_driver(&kill);
	cr_assert_eq(did(WRK_DO_SIGNAL_HOST)->signal, SIGTERM);
	exited(0, SIGTERM, false);
	cr_expect(sent(FW_HOST_EXIT)->exit.asked);
	cr_expect_str_eq(sent(FW_HOST_EXIT)->exit.failure.sentence, "");
	cr_expect_null(logged(FRAGI_LOG_ERROR));
	grace_ns = 0;
}

Test(worker_exit, the_signal_to_end_when_nobody_here_sent_it_is_a_crash)
{
	start_with_host(false, 1);
	exited(0, SIGTERM, false);
	cr_expect_not(sent(FW_HOST_EXIT)->exit.asked);
	cr_expect_str_eq(sent(FW_HOST_EXIT)->exit.failure.sentence,
			 "fraghost 4711 of fragment1 crashed: signal 15 (SIGTERM)");
}

Test(worker_exit, a_host_of_a_lost_driver_that_ends_by_the_signal_says_why)
{
	start_with_host(false, 1);
	driver_lost("out of memory");
	exited(0, SIGTERM, false);
	cr_expect_not_null(strstr(logged(FRAGI_LOG_ERROR), "was ended: its driver was lost"));
}

Test(worker_exit, the_first_reason_to_end_is_the_one_that_is_logged)
{
	struct fw_message stop = host_frame(FW_HOST_STOP), kill = host_frame(FW_HOST_KILL);

	start_attached(false);
	spawn(1);
	from_driver(&stop); /* without a reason */
	kill.stop.reason = "two crashed";
	from_driver(&kill);
	kill.stop.reason = "three crashed";
	from_driver(&kill);
	exited(0, SIGKILL, false);
	cr_expect_str_eq(logged(FRAGI_LOG_INFO), "fragment1 was ended by the driver: two crashed");
}

Test(worker_exit, an_exit_with_zero_while_it_drains_was_not_asked_for)
{
	struct fw_message stop = host_frame(FW_HOST_STOP);

	start_with_host(false, 1);
	prepared();
	stop.stop.drain_ns = 5000 * MS;
	from_driver(&stop);
	step((struct wrk_event){.kind = WRK_EVENT_HOST_CONNECTION_LOST,
				.host = seen_host,
				.text = "something in its process closed its control socket"});
	exited(0, 0, true);
	cr_assert_not_null(sent(FW_HOST_EXIT));
	cr_expect_not(sent(FW_HOST_EXIT)->exit.asked);
	cr_expect_str_eq(sent(FW_HOST_EXIT)->exit.failure.sentence,
			 "fraghost 4711 exited with status 0 in fragment1.detect, tick 17");
}

Test(worker_exit, a_host_killed_by_others_while_it_stops_says_so)
{
	struct fw_message stop = host_frame(FW_HOST_STOP);

	start_with_host(false, 1);
	from_driver(&stop);
	exited(0, SIGKILL, false);
	cr_expect_eq(strncmp(sent(FW_HOST_EXIT)->exit.failure.sentence,
			     "fraghost 4711 of fragment1 was killed: signal 9 (SIGKILL)", 57),
		     0, "%s", sent(FW_HOST_EXIT)->exit.failure.sentence);
}

Test(worker_exit, a_silent_host_is_the_cause_while_it_stops_too)
{
	struct fw_message stop = host_frame(FW_HOST_STOP);

	start_with_host(false, 1);
	stop.stop.drain_ns = 5000 * MS;
	from_driver(&stop);
	for (int i = 0; i < 20 && did(WRK_DO_SIGNAL_HOST) == NULL; i++) {
		timers_until(now + 200 * MS, WRK_DO_SIGNAL_HOST);
		if (did(WRK_DO_SIGNAL_HOST) == NULL)
			from_driver(&beat);
	}
	exited(0, SIGKILL, false);
	cr_assert_not_null(strstr(sent(FW_HOST_EXIT)->exit.failure.sentence, "has not been heard"));
}

static void ended_by(int number, const char *core_file, const struct fw_host_stats *stats)
{
	struct wrk_exited how = {.signal = number, .core_file = core_file, .stats = stats};

	cr_assert_eq(step((struct wrk_event){
			     .kind = WRK_EVENT_HOST_EXITED, .host = seen_host, .exited = &how}),
		     0);
}

/* Better than the page, which says nothing of setup and of composers. */
Test(worker_exit, a_place_that_the_host_noted_is_named)
{
	static const struct {
		struct fragi_crash_note note;
		const char *sentence, *op;
	} cases[] = {
		{{.pid = 4711}, "fraghost 4711 crashed in a composer: signal 6 (SIGABRT)", ""},
		{{.pid = 4711, .op = "fragment1.tx", .callback = FRAGI_CALL_SETUP, .tick = 3},
		 "fraghost 4711 crashed in setup of fragment1.tx: signal 6 (SIGABRT)",
		 "fragment1.tx"},
		{{.pid = 4711, .op = "fragment1.tx", .callback = FRAGI_CALL_COMPUTE, .tick = 3},
		 "fraghost 4711 crashed in fragment1.tx, tick 3: signal 6 (SIGABRT)",
		 "fragment1.tx"},
		{{.pid = 4711,
		  .op = "fragment1.tx",
		  .callback = FRAGI_CALL_COMPUTE,
		  .cause = "UCX gave up at tcp_ep.c:7: it is tired"},
		 "fraghost 4711 of fragment1 ended itself: UCX gave up at tcp_ep.c:7: it is tired",
		 ""},
	};

	start_attached(false);
	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct wrk_exited how = {.signal = SIGABRT, .note = &cases[i].note};

		spawn(i + 1);
		cr_assert_eq(step((struct wrk_event){.kind = WRK_EVENT_HOST_EXITED,
						     .host = seen_host,
						     .exited = &how}),
			     0);
		cr_assert_not_null(sent(FW_HOST_EXIT));
		cr_expect_str_eq(sent(FW_HOST_EXIT)->exit.failure.sentence, cases[i].sentence);
		cr_expect_str_eq(sent(FW_HOST_EXIT)->exit.failure.op, cases[i].op);
	}
}

Test(worker_exit, a_core_file_is_named)
{
	start_with_host(false, 1);
	ended_by(SIGABRT, "its core file is /tmp/core.4711", NULL);
	cr_expect_str_eq(
		sent(FW_HOST_EXIT)->exit.failure.sentence,
		"fraghost 4711 of fragment1 crashed: signal 6 (SIGABRT); its core file is /tmp/core.4711");
}

Test(worker_exit, a_host_beyond_its_memory_limit_is_told_from_one_that_was_killed)
{
	struct wrk_exited how = {.signal = SIGKILL, .memory_limit_bytes = UINT64_C(64) << 20};

	start_with_host(false, 1);
	cr_assert_eq(step((struct wrk_event){
			     .kind = WRK_EVENT_HOST_EXITED, .host = seen_host, .exited = &how}),
		     0);
	cr_expect_eq(sent(FW_HOST_EXIT)->exit.failure.code, FRAGI_FAILURE_HOST_OVER_LIMIT);
	cr_expect_str_eq(
		sent(FW_HOST_EXIT)->exit.failure.sentence,
		"fraghost 4711 of fragment1 was killed: it needed more than its memoryLimit of 64 MiB; raise the limit, or find out what takes the memory");
	spawn(2);
	ended_by(SIGKILL, NULL, NULL);
	cr_expect_eq(sent(FW_HOST_EXIT)->exit.failure.code, FRAGI_FAILURE_HOST_KILLED);
}

Test(worker_exit, a_signal_without_a_name_has_its_number)
{
	start_with_host(false, 1);
	ended_by(SIGRTMIN + 3, NULL, NULL);
	cr_expect(strstr(sent(FW_HOST_EXIT)->exit.failure.sentence, "(SIG?)"));
	cr_expect_eq(sent(FW_HOST_EXIT)->exit.exit_code, 128 + SIGRTMIN + 3);
}

/* Up to three are named; the failure is that of an operator where only one was at work. */
Test(worker_exit, some_of_many_operators_that_ran_are_named)
{
	static const struct {
		unsigned running; /* a bit for each row; there is one row more than operators */
		const char *place, *op;
	} cases[] = {
		{0x01, " in fragment1.a, tick 10", "fragment1.a"},
		{0x20, " in fragment1.f, tick 15", "fragment1.f"},
		{0x40, " of fragment1", ""},
		{0x41, " in fragment1.a, tick 10", "fragment1.a"},
		{0x21, " in fragment1.a, tick 10 or fragment1.f, tick 15", ""},
		{0x2a, " in fragment1.b, tick 11 or fragment1.d, tick 13 or fragment1.f, tick 15",
		 ""},
		{0x2b,
		 " in fragment1.a, tick 10 or fragment1.b, tick 11 or fragment1.d, tick 13 or 1 more",
		 ""},
		{0x7b,
		 " in fragment1.a, tick 10 or fragment1.b, tick 11 or fragment1.d, tick 13 or 2 more",
		 ""},
	};
	static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
	struct fw_op ops[6];
	struct fw_fragment table = {.name = "fragment1", .ops = ops, .op_count = 6};
	struct fw_message message = host_frame(FW_HOST_PREPARED);
	struct fw_op_stats rows[7];
	struct fw_host_stats stats = {.ops = rows, .op_count = 7};
	char sentence[300];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (i > 0)
			finish();
		for (unsigned k = 0; k < 7; k++) {
			rows[k] = (struct fw_op_stats){.ticks = 10 + k,
						       .running = (cases[i].running >> k & 1) != 0};
			if (k < 6)
				ops[k] = (struct fw_op){.name = names[k], .type = "t"};
		}
		start_with_host(false, 1);
		message.prepared = (struct fw_host_prepared){
			.ok = true, .fragments = &table, .fragment_count = 1};
		from_host(&message);
		ended_by(SIGSEGV, NULL, &stats);
		snprintf(sentence, sizeof(sentence),
			 "fraghost 4711%s crashed%s: signal 11 (SIGSEGV)",
			 strncmp(cases[i].place, " of", 3) == 0 ? cases[i].place : "",
			 strncmp(cases[i].place, " of", 3) == 0 ? "" : cases[i].place);
		cr_expect_str_eq(sent(FW_HOST_EXIT)->exit.failure.sentence, sentence, "%zu", i);
		cr_expect_str_eq(sent(FW_HOST_EXIT)->exit.failure.op, cases[i].op, "%zu", i);
	}
}

Test(worker_exit, log_lines_name_what_they_are_about)
{
	start_with_host(false, 3);
	cr_expect_str_eq(logged(FRAGI_LOG_DEBUG),
			 "host 1 of run 7, epoch 3, pid 4711: spawning -> up");
	exited(0, SIGSEGV, false);
	cr_expect_str_eq(logged(FRAGI_LOG_ERROR),
			 "fraghost 4711 of fragment1 crashed: signal 11 (SIGSEGV)");
	cr_expect_str_eq(logged_of(FRAGI_LOG_ERROR), "app/fragment1");
}
