// SPDX-License-Identifier: Apache-2.0
#include "worker_world.h"

#include <base/beat.h>

TestSuite(worker_session, .fini = finish);

Test(worker_session, attaches_and_beats)
{
	const struct fw_hello *hello;

	make_started(false);
	cr_assert_not_null(did(WRK_DO_CONNECT));
	connected("10.0.0.2");
	hello = &sent(FW_HELLO)->hello;
	cr_expect_eq(hello->major, FW_PROTOCOL_MAJOR);
	cr_expect_eq(hello->role, FW_ROLE_WORKER);
	cr_expect_str_eq(hello->worker_address, "10.0.0.2");
	cr_expect_str_eq(hello->fragments[0], "fragment1");
	cr_expect_eq(hello->session, 0);
	from_driver(&welcome);
	cr_expect(strstr(logged(FRAGI_LOG_INFO), "as a#2"));
	for (int i = 0; i < 8; i++) {
		cr_assert(timers_until(now + 250 * MS, WRK_DO_SEND_DRIVER));
		cr_assert_not_null(sent(FW_BEAT));
		from_driver(&beat);
	}
}

Test(worker_session, nothing_is_due_before_it_starts)
{
	make(false);
	cr_expect_eq(wrk_core_deadline_ns(core), INT64_MAX);
	cr_expect_eq(wrk_core_session(core), WRK_SESSION_DISCONNECTED);
	step((struct wrk_event){.kind = WRK_EVENT_START});
	cr_expect_eq(wrk_core_deadline_ns(core), now + WRK_CONNECT_NS);
}

Test(worker_session, waits_with_growing_jittered_pauses_and_says_so_once)
{
	int64_t last, pause = 0;
	int lines = 0;

	make_started(false);
	for (int i = 0; i < 20; i++) {
		connect_failed("connection refused");
		lines += logged(FRAGI_LOG_INFO) != NULL;
		if (i == 0)
			cr_expect_str_eq(
				logged(FRAGI_LOG_INFO),
				"waiting for the driver at 127.0.0.1:57777: connection refused");
		cr_assert_eq(wrk_core_session(core), WRK_SESSION_BACKOFF);
		last = now;
		cr_assert(timers_until(now + WRK_BACKOFF_MAX_NS, WRK_DO_CONNECT));
		pause = now - last;
		cr_assert_geq(pause, WRK_BACKOFF_MIN_NS / 2);
		cr_assert_leq(pause, WRK_BACKOFF_MAX_NS);
		if (i == 0)
			cr_assert_leq(pause, WRK_BACKOFF_MIN_NS);
	}
	cr_expect_geq(pause, WRK_BACKOFF_MAX_NS / 2);
	cr_expect_eq(lines, 1);
	attach();
	cr_expect_str_eq(logged(FRAGI_LOG_INFO), "attached to the driver at 127.0.0.1:57777 as a#2",
			 "it has never been there");
	for (int i = 0; i < 2; i++) {
		step((struct wrk_event){.kind = i == 0 ? WRK_EVENT_DRIVER_LOST
						       : WRK_EVENT_CONNECT_FAILED,
					.connection = seen_connection,
					.text = "connection refused"});
		cr_assert(timers_until(now + WRK_BACKOFF_MAX_NS, WRK_DO_CONNECT));
	}
	attach();
	cr_expect_str_eq(logged(FRAGI_LOG_INFO), "back at the driver at 127.0.0.1:57777 as a#2");
}

static void strangers_port(void)
{
	step((struct wrk_event){.kind = WRK_EVENT_CONNECT_FAILED,
				.connection = seen_connection,
				.failure = FRAGI_FAILURE_USER_REFUSED,
				.text = "a process of user bob listens there"});
}

Test(worker_session, another_users_process_on_the_port_is_waited_out_and_warned_of_once)
{
	int lines = 0;

	make_started(false);
	connect_failed("connection refused");
	for (int i = 0; i < 3; i++) {
		cr_assert(timers_until(now + WRK_BACKOFF_MAX_NS, WRK_DO_CONNECT));
		strangers_port();
		cr_expect_eq(wrk_core_session(core), WRK_SESSION_BACKOFF);
		lines += logged(FRAGI_LOG_WARN) != NULL;
		if (i == 0)
			cr_expect_str_eq(
				logged(FRAGI_LOG_WARN),
				"waiting for the driver at 127.0.0.1:57777: a process of user bob listens there");
	}
	cr_expect_eq(lines, 1);
	cr_assert(timers_until(now + WRK_BACKOFF_MAX_NS, WRK_DO_CONNECT));
	attach();
	driver_lost("it left");
	cr_assert(timers_until(now + WRK_BACKOFF_MAX_NS, WRK_DO_CONNECT));
	strangers_port();
	cr_expect_not_null(logged(FRAGI_LOG_WARN), "the right driver was there meanwhile");
}

Test(worker_session, with_once_another_users_process_on_the_port_ends_it)
{
	make_started(true);
	strangers_port();
	cr_expect(strstr(logged(FRAGI_LOG_ERROR), "user bob"));
	expect_exit(5);
	cr_expect_eq(wrk_core_deadline_ns(core), INT64_MAX);
}

Test(worker_session, a_refusal_ends_it_with_the_sentence)
{
	static const struct fw_message refused = {
		.kind = FW_REFUSED,
		.refused = {{FRAGI_FAILURE_VERSION_REFUSED,
			     "this driver speaks protocol 2.0, the worker 1.0", ""}},
	};

	make_started(false);
	connected("127.0.0.1");
	from_driver(&refused);
	cr_expect(strstr(logged(FRAGI_LOG_ERROR), "protocol 2.0"));
	cr_expect_not_null(did(WRK_DO_DISCONNECT));
	expect_exit(5);
	cr_expect_eq(wrk_core_deadline_ns(core), INT64_MAX);
}

Test(worker_session, a_missing_network_is_logged_every_10_s_and_goes_out_with_hello_and_beats)
{
	const struct fw_message *message;
	struct wrk_event lost = {.kind = WRK_EVENT_NETWORK, .text = "eth0 has no link"};

	make(false);
	step(lost);
	cr_expect_str_eq(logged(FRAGI_LOG_WARN), "waiting for the network: eth0 has no link");
	step((struct wrk_event){.kind = WRK_EVENT_START});
	connected("");
	message = sent(FW_HELLO);
	cr_assert_not_null(message);
	cr_expect_str_eq(message->hello.waits_for, "eth0 has no link");
	from_driver(&welcome);
	for (int i = 0, lines = 0; lines < 2; i++) {
		cr_assert_lt(i, 200);
		cr_assert(timers_until(now + 250 * MS, WRK_DO_SEND_DRIVER));
		cr_expect_str_eq(sent(FW_BEAT)->beat.waits_for, "eth0 has no link");
		lines += logged(FRAGI_LOG_WARN) != NULL;
		from_driver(&beat);
		step(lost);
		cr_expect_null(logged(FRAGI_LOG_WARN), "it is no news");
	}
	cr_expect_geq(now, 20000 * MS);
	cr_expect_leq(now, 22000 * MS);
	step((struct wrk_event){.kind = WRK_EVENT_NETWORK});
	cr_expect_str_eq(logged(FRAGI_LOG_INFO), "the network is there");
	cr_assert(timers_until(now + 250 * MS, WRK_DO_SEND_DRIVER));
	cr_expect_str_eq(sent(FW_BEAT)->beat.waits_for, "");
}

/* They were asked for while the worker was at work already. */
Test(worker_session, gpus_that_are_found_after_hello_go_out_at_once_and_with_each_beat)
{
	static const int64_t has[FRAGI_AMOUNTS] = {[FRAGI_AMOUNT_GPU] = 2 * FRAGI_AMOUNT_ONE,
						   [FRAGI_AMOUNT_GPU_MEMORY] = INT64_C(48) << 30};

	make_started(false);
	connected("");
	cr_expect_eq(sent(FW_HELLO)->hello.has[FRAGI_AMOUNT_GPU_MEMORY], 0);
	from_driver(&welcome);
	cr_assert(timers_until(now + 250 * MS, WRK_DO_SEND_DRIVER));
	cr_expect_not(sent(FW_BEAT)->beat.has_gpus, "nothing is known yet");
	step((struct wrk_event){.kind = WRK_EVENT_GPUS, .has = has, .mig = "1g.10gb=2"});
	for (int i = 0; i < 2; i++) {
		cr_assert(timers_until(now + (i == 0 ? 0 : 250 * MS), WRK_DO_SEND_DRIVER));
		cr_expect(sent(FW_BEAT)->beat.has_gpus);
		cr_expect_eq(sent(FW_BEAT)->beat.has[FRAGI_AMOUNT_GPU], 2 * FRAGI_AMOUNT_ONE);
		cr_expect_str_eq(sent(FW_BEAT)->beat.mig, "1g.10gb=2");
		cr_expect_eq(sent(FW_BEAT)->beat.has[FRAGI_AMOUNT_GPU_MEMORY], INT64_C(48) << 30);
	}
	driver_lost("connection reset");
	cr_assert(timers_until(now + WRK_BACKOFF_MAX_NS, WRK_DO_CONNECT));
	connected("");
	cr_expect_eq(sent(FW_HELLO)->hello.has[FRAGI_AMOUNT_GPU], 2 * FRAGI_AMOUNT_ONE);
	cr_expect_str_eq(sent(FW_HELLO)->hello.mig, "1g.10gb=2");
}

Test(worker_session, a_driver_that_does_not_answer_is_given_up)
{
	make_started(false);
	cr_assert(timers_until(now + WRK_CONNECT_NS, WRK_DO_DISCONNECT));
	cr_assert(timers_until(now + WRK_BACKOFF_MAX_NS, WRK_DO_CONNECT));
	connected("");
	cr_assert(timers_until(now + FRAGI_DEAD_NS, WRK_DO_DISCONNECT));
	cr_expect_eq(wrk_core_session(core), WRK_SESSION_BACKOFF);
}

Test(worker_session, it_comes_back_with_the_secret_of_its_session)
{
	const struct fw_hello *hello;

	start_attached(false);
	driver_lost("connection reset");
	cr_assert(timers_until(now + WRK_BACKOFF_MAX_NS, WRK_DO_CONNECT));
	connected("");
	hello = &sent(FW_HELLO)->hello;
	cr_expect_eq(hello->session, welcome.welcome.session);
	cr_expect_arr_eq(hello->secret, welcome.welcome.secret, FW_SECRET_BYTES);
}

/* A person who starts it sees what is wrong; one that has run already outlives it. */
Test(worker_session, a_refused_key_ends_a_worker_that_no_driver_has_accepted)
{
	for (int i = 0; i < 2; i++) {
		make_started(false);
		if (i == 1)
			connected("");
		step((struct wrk_event){.kind = i == 0 ? WRK_EVENT_CONNECT_FAILED
						       : WRK_EVENT_DRIVER_LOST,
					.connection = seen_connection,
					.failure = FRAGI_FAILURE_KEY_REFUSED,
					.text = "it does not know the key"});
		expect_exit(FRAGI_EXIT_REFUSED);
		cr_expect_str_eq(
			logged(FRAGI_LOG_ERROR),
			"cannot attach to the driver at 127.0.0.1:57777: it does not know the key");
		finish();
	}
}

/* A service manager would start it again every few seconds. */
Test(worker_session, a_refused_key_makes_a_service_wait_longer_and_longer)
{
	static const struct fw_message refused = {
		.kind = FW_REFUSED, .refused = {{FRAGI_FAILURE_KEY_REFUSED, "no such key", ""}}};

	for (int by_hello = 0; by_hello < 2; by_hello++) {
		int64_t pause = 0;
		int lines = 0;

		outlives_refusal = true;
		make(false);
		outlives_refusal = false;
		step((struct wrk_event){.kind = WRK_EVENT_START});
		for (int i = 0; i < 15; i++) {
			if (by_hello) {
				connected("");
				from_driver(&refused);
			} else {
				step((struct wrk_event){.kind = WRK_EVENT_CONNECT_FAILED,
							.connection = seen_connection,
							.failure = FRAGI_FAILURE_KEY_REFUSED,
							.text = "no such key"});
			}
			cr_assert_null(did(WRK_DO_EXIT));
			cr_expect_str_eq(wrk_core_refusal(core), "no such key");
			lines += logged(FRAGI_LOG_ERROR) != NULL;
			if (i == 0)
				cr_expect_str_eq(
					logged(FRAGI_LOG_ERROR),
					"the driver at 127.0.0.1:57777 refused this worker: no such key; tries again, after 30 s at most");
			pause = now;
			cr_assert(timers_until(now + WRK_BACKOFF_REFUSED_NS, WRK_DO_CONNECT));
			pause = now - pause;
		}
		cr_expect_eq(lines, 1);
		cr_expect_geq(pause, WRK_BACKOFF_REFUSED_NS / 2);
		attach();
		cr_expect_null(wrk_core_refusal(core));
		finish();
	}
}

Test(worker_session, a_refused_key_does_not_end_a_worker_that_was_attached)
{
	start_attached(false);
	driver_lost("connection reset");
	cr_assert(timers_until(now + WRK_BACKOFF_MAX_NS, WRK_DO_CONNECT));
	step((struct wrk_event){.kind = WRK_EVENT_CONNECT_FAILED,
				.connection = seen_connection,
				.failure = FRAGI_FAILURE_KEY_REFUSED,
				.text = "it does not know the key"});
	cr_expect_eq(wrk_core_session(core), WRK_SESSION_BACKOFF);
	cr_expect_null(did(WRK_DO_EXIT));
}

Test(worker_session, what_does_not_answer_hello_may_be_no_driver)
{
	make_started(false);
	connect_failed("connection refused");
	cr_assert_not_null(logged(FRAGI_LOG_INFO));
	for (int i = 0; i < 2; i++) {
		cr_assert(timers_until(now + WRK_BACKOFF_MAX_NS, WRK_DO_CONNECT));
		connected("");
		step((struct wrk_event){
			.kind = WRK_EVENT_DRIVER_LOST,
			.connection = seen_connection,
			.text = "it sent \"SSH-2.0\", so it is not a frag program"});
		if (i == 0)
			cr_expect_str_eq(
				logged(FRAGI_LOG_INFO),
				"waiting for the driver at 127.0.0.1:57777: it sent \"SSH-2.0\", so it is not a frag program; does a driverd listen there?");
		else
			cr_expect_null(logged(FRAGI_LOG_INFO), "it is no news");
	}
}

Test(worker_session, events_of_an_old_connection_are_ignored)
{
	uint64_t old;

	start_attached(false);
	old = seen_connection;
	step((struct wrk_event){
		.kind = WRK_EVENT_DRIVER_LOST, .connection = old, .text = "connection reset"});
	cr_assert(timers_until(now + WRK_BACKOFF_MAX_NS, WRK_DO_CONNECT));
	cr_assert_neq(seen_connection, old);
	attach();
	step((struct wrk_event){
		.kind = WRK_EVENT_DRIVER_LOST, .connection = old, .text = "connection reset"});
	cr_expect_eq(wrk_core_session(core), WRK_SESSION_ATTACHED);
	step((struct wrk_event){
		.kind = WRK_EVENT_DRIVER_MESSAGE, .connection = old, .message = &welcome});
	cr_expect_eq(wrk_core_session(core), WRK_SESSION_ATTACHED);
}

Test(worker_session, a_silent_driver_is_lost_after_the_time_of_death)
{
	int64_t from;

	start_attached(false);
	from = now;
	cr_assert(timers_until(now + 4000 * MS, WRK_DO_DISCONNECT));
	cr_expect_eq(now - from, 3000 * MS);
	cr_expect_eq(wrk_core_session(core), WRK_SESSION_BACKOFF);
	cr_expect_null(logged(FRAGI_LOG_WARN), "no application ends: %s", logged(FRAGI_LOG_WARN));
}

Test(worker_session, hosts_end_with_the_driver_and_the_worker_comes_back)
{
	int64_t from;

	start_with_host(false, 1);
	driver_lost("connection reset");
	cr_assert_not_null(did(WRK_DO_SIGNAL_HOST));
	cr_expect_eq(did(WRK_DO_SIGNAL_HOST)->signal, SIGTERM, "its operators stop first");
	cr_expect_str_eq(
		logged(FRAGI_LOG_WARN),
		"lost the driver at 127.0.0.1:57777: connection reset; its applications end here");
	from = now;
	cr_assert(timers_until(now + 2 * WRK_LOST_NS, WRK_DO_SIGNAL_HOST));
	cr_expect_eq(did(WRK_DO_SIGNAL_HOST)->signal, SIGKILL);
	cr_expect_eq(now - from, WRK_LOST_NS);
	exited(0, SIGKILL, true);
	cr_expect_null(sent(FW_HOST_EXIT), "the session is over");
	cr_assert(timers_until(now + WRK_BACKOFF_MAX_NS, WRK_DO_CONNECT));
	attach();
}

Test(worker_session, an_exit_of_an_old_session_is_not_told_to_the_new_one)
{
	uint32_t old;

	start_with_host(false, 1);
	old = seen_host;
	driver_lost("connection reset");
	cr_assert(timers_until(now + WRK_BACKOFF_MAX_NS, WRK_DO_CONNECT));
	attach();
	seen_host = old;
	exited(0, SIGKILL, true);
	cr_expect_null(sent(FW_HOST_STATS));
	cr_expect_null(sent(FW_HOST_EXIT));
	cr_expect_eq(wrk_core_host_count(core), 0);
}

Test(worker_session, own_sleep_is_no_silence_of_others)
{
	start_with_host(false, 1);
	from_host(&beat);
	from_driver(&beat);
	now += 60000 * MS; /* stopped and continued */
	cr_assert_eq(step((struct wrk_event){.kind = WRK_EVENT_TIMER}), 0);
	cr_expect_null(did(WRK_DO_SIGNAL_HOST));
	cr_expect_null(did(WRK_DO_DISCONNECT));
	cr_assert(timers_until(now + 4000 * MS, WRK_DO_DISCONNECT), "silence from then on counts");
}

Test(worker_session, own_sleep_before_the_welcome_is_no_silence_of_the_driver)
{
	make_started(false);
	connected("");
	now += 60000 * MS;
	cr_assert_eq(step((struct wrk_event){.kind = WRK_EVENT_TIMER}), 0);
	cr_expect_null(did(WRK_DO_DISCONNECT));
	cr_assert_not(timers_until(now + 2500 * MS, WRK_DO_DISCONNECT));
	cr_assert(timers_until(now + 500 * MS, WRK_DO_DISCONNECT));
}

static bool sent_host_beat(void)
{
	const struct wrk_action *action = did(WRK_DO_SEND_HOST);

	return action != NULL && action->message->kind == FW_BEAT;
}

/* Some ms between pauses: all get a beat, and what has arrived is read before time goes on. */
Test(worker_session, who_is_stopped_again_and_again_judges_nobody)
{
	start_with_host(false, 1);
	from_host(&beat);
	from_driver(&beat);
	for (int i = 0; i < 20; i++) {
		now = wrk_core_deadline_ns(core) + (1000 + 90 * i) * MS;
		cr_assert_eq(step((struct wrk_event){.kind = WRK_EVENT_TIMER}), 0);
		cr_expect_eq(wrk_core_deadline_ns(core) <= now, i % 2 == 0, "one waits: %d", i);
		cr_expect_not_null(sent(FW_BEAT), "%d", i);
		cr_expect(sent_host_beat(), "%d", i);
		cr_expect_null(did(WRK_DO_SIGNAL_HOST), "%d", i);
		cr_expect_null(did(WRK_DO_DISCONNECT), "%d", i);
		if (i % 4 == 3) { /* else it is stopped before it has read anything */
			from_host(&beat);
			from_driver(&beat);
		}
	}
}

/* It runs, and is busy with one frame after the other. */
Test(worker_session, beats_are_sent_between_frames_when_timers_are_late)
{
	start_with_host(false, 1);
	now = wrk_core_deadline_ns(core);
	for (int i = 1; i <= 50; i++) {
		now += 10 * MS;
		from_host(&beat);
		cr_expect_eq(sent(FW_BEAT) != NULL, i == 26, "%d", i);
		cr_expect_eq(sent_host_beat(), i == 26, "%d", i);
	}
}

Test(worker_session, who_is_always_late_finds_the_dead_too)
{
	bool killed = false, dropped = false;

	start_with_host(false, 1);
	from_host(&beat);
	from_driver(&beat);
	for (int i = 0; i < 13; i++) { /* every timer is late by more than a beat */
		now += 600 * MS;
		cr_assert_eq(step((struct wrk_event){.kind = WRK_EVENT_TIMER}), 0);
		cr_expect_null(did(WRK_DO_SIGNAL_HOST), "what has arrived is read first");
		cr_assert_eq(step((struct wrk_event){.kind = WRK_EVENT_TIMER}), 0);
		killed = killed || did(WRK_DO_SIGNAL_HOST) != NULL;
		dropped = dropped || did(WRK_DO_DISCONNECT) != NULL;
	}
	cr_expect(killed);
	cr_expect(dropped);
}

Test(worker_session, a_frame_that_is_not_for_a_worker_ends_the_connection)
{
	static const struct fw_message odd = {.kind = FW_HOST_EXIT};

	start_attached(false);
	from_driver(&odd);
	cr_expect_not_null(did(WRK_DO_DISCONNECT));
	cr_expect_eq(wrk_core_session(core), WRK_SESSION_BACKOFF);
}

Test(worker_session, a_refusal_ends_it_with_a_code_of_the_documented_ones)
{
	static const int codes[][2] = {{FRAGI_FAILURE_DRIVER_FULL, 3},
				       {FRAGI_FAILURE_VERSION_REFUSED, 5},
				       {FRAGI_FAILURE_USAGE, 2}};

	for (size_t i = 0; i < FRAG_COUNT_OF(codes); i++) {
		struct fw_message refused = {
			.kind = FW_REFUSED,
			.refused = {{(enum fragi_failure)codes[i][0], "no", ""}}};

		finish();
		make_started(false);
		connected("127.0.0.1");
		from_driver(&refused);
		expect_exit(codes[i][1]);
	}
}

Test(worker_session, a_driver_that_ends_the_session_is_tried_again)
{
	static const struct fw_message refused = {
		.kind = FW_REFUSED, .refused = {{FRAGI_FAILURE_OTHER, "judged dead", ""}}};

	start_with_host(false, 1);
	from_driver(&refused);
	cr_expect_not_null(did(WRK_DO_DISCONNECT));
	cr_expect(strstr(logged(FRAGI_LOG_WARN),
			 "it ended the session: judged dead; its applications end here"));
	cr_assert_not_null(did(WRK_DO_SIGNAL_HOST));
	cr_expect_null(did(WRK_DO_EXIT));
	exited(0, SIGKILL, false);
	cr_assert(timers_until(now + WRK_BACKOFF_MAX_NS, WRK_DO_CONNECT));
	attach();
}

Test(worker_session, who_answers_hello_with_something_else_is_no_driver)
{
	make_started(false);
	connected("127.0.0.1");
	from_driver(&beat);
	cr_expect_not_null(did(WRK_DO_DISCONNECT));
	cr_expect(strstr(logged(FRAGI_LOG_INFO), "it did not answer HELLO with WELCOME"));
	cr_expect_eq(wrk_core_session(core), WRK_SESSION_BACKOFF);
}

Test(worker_session, nothing_is_heard_before_the_connection_is_there_and_it_comes_once)
{
	make_started(false);
	from_driver(&welcome);
	cr_expect_eq(wrk_core_session(core), WRK_SESSION_CONNECTING);
	attach();
	connected("127.0.0.1");
	cr_expect_null(sent(FW_HELLO));
	cr_expect_eq(wrk_core_session(core), WRK_SESSION_ATTACHED);
}

/* What the last driver asked for is its own matter: the next one may be another. */
Test(worker_session, a_driver_that_does_not_welcome_is_given_up_in_this_workers_time)
{
	struct fw_message slow = welcome;
	int64_t from;

	slow.welcome.dead_ns = 60000 * MS;
	make_started(false);
	connected("");
	from_driver(&slow);
	driver_lost("end of file");
	cr_assert(timers_until(now + WRK_BACKOFF_MAX_NS, WRK_DO_CONNECT));
	connected("");
	from = now;
	cr_assert(timers_until(now + 60000 * MS, WRK_DO_DISCONNECT));
	cr_expect_eq(now - from, FRAGI_DEAD_NS);
}

/* Nothing about the network is logged any more once it is there. */
Test(worker_session, the_line_about_the_network_is_the_last_one_when_it_is_there)
{
	make(false);
	step((struct wrk_event){.kind = WRK_EVENT_NETWORK, .text = "eth0 has no link"});
	step((struct wrk_event){.kind = WRK_EVENT_START});
	attach();
	step((struct wrk_event){.kind = WRK_EVENT_NETWORK});
	cr_expect_str_eq(logged(FRAGI_LOG_INFO), "the network is there");
	for (int64_t until = now + 60000 * MS; now < until;) {
		cr_assert(timers_until(until, WRK_DO_SEND_DRIVER));
		cr_assert_null(logged(FRAGI_LOG_WARN), "%s", logged(FRAGI_LOG_WARN));
		from_driver(&beat);
	}
	step((struct wrk_event){.kind = WRK_EVENT_NETWORK, .text = "eth0 has no link"});
	cr_expect_not_null(logged(FRAGI_LOG_WARN), "it is gone again");
}

Test(worker_session, what_the_driver_asks_for_is_kept_within_reason)
{
	struct fw_message quick = welcome, slow = welcome;
	int64_t from;

	quick.welcome.beat_ns = 1; /* would have it beat a billion times a second */
	quick.welcome.dead_ns = 1;
	make_started(false);
	connected("127.0.0.1");
	from_driver(&quick);
	timers_until(now, WRK_DO_SEND_DRIVER);
	from = now;
	cr_assert(timers_until(now + 1000 * MS, WRK_DO_SEND_DRIVER));
	cr_expect_eq(now - from, 10 * MS);

	finish();
	slow.welcome.beat_ns = INT64_MAX / 2;
	slow.welcome.dead_ns = INT64_MAX;
	make_started(false);
	connected("127.0.0.1");
	from_driver(&slow);
	timers_until(now, WRK_DO_SEND_DRIVER);
	cr_assert_not(timers_until(now + 599000 * MS, WRK_DO_DISCONNECT));
	cr_assert(timers_until(now + 2000 * MS, WRK_DO_DISCONNECT), "ten minutes are the most");
}
