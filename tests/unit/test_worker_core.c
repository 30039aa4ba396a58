/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <errno.h>
#include <signal.h>
#include <string.h>

#include <base/alloc.h>
#include <workerd/core/core.h>

#define MS 1000000ll

/* A shell without a network: time stands still until the test moves it. */
static struct wrk_core *core;
static struct wrk_actions actions;
static int64_t now = 1000 * MS;
static uint64_t seen_link; /* of the last DO_CONNECT */
static uint32_t seen_host; /* of the last DO_SPAWN */
static const char *fragment_names[] = {"fragment1"};

static void make(bool once)
{
	struct wrk_config config = {.name = "a",
				    .fragments = fragment_names,
				    .fragment_count = 1,
				    .driver = "127.0.0.1:57777",
				    .worker_address = "",
				    .node = "boot",
				    .version = "0.1.0",
				    .once = once,
				    .seed = 42};

	cr_assert_eq(wrk_core_create(&config, &core), 0);
}

static void finish(void)
{
	if (core != NULL)
		cr_expect_eq(wrk_core_illegal_moves(core), 0);
	wrk_core_destroy(core);
	core = NULL;
	wrk_actions_fini(&actions);
}
TestSuite(worker_core, .fini = finish);

static int step(struct wrk_event event)
{
	int r;

	wrk_actions_reset(&actions);
	r = wrk_core_step(core, &event, now, &actions);
	for (size_t i = 0; i < actions.count; i++) {
		if (actions.items[i].kind == WRK_DO_CONNECT)
			seen_link = actions.items[i].link;
		if (actions.items[i].kind == WRK_DO_SPAWN)
			seen_host = actions.items[i].host;
	}
	return r;
}

/* The n-th action of that kind in the last step; NULL: not there. */
static const struct wrk_action *did_nth(enum wrk_action_kind kind, int n)
{
	for (size_t i = 0; i < actions.count; i++)
		if (actions.items[i].kind == kind && n-- == 0)
			return &actions.items[i];
	return NULL;
}
static const struct wrk_action *did(enum wrk_action_kind kind)
{
	return did_nth(kind, 0);
}
/* A frame that the last step sent to the driver. */
static const struct fw_message *sent(enum fw_kind kind)
{
	const struct wrk_action *action;

	for (int n = 0; (action = did_nth(WRK_DO_SEND_DRIVER, n)) != NULL; n++)
		if (action->message->kind == kind)
			return action->message;
	return NULL;
}
static const char *logged(enum fragi_log_level level)
{
	for (size_t i = 0; i < actions.count; i++)
		if (actions.items[i].kind == WRK_DO_LOG && actions.items[i].level == level)
			return actions.items[i].text;
	return NULL;
}

static void from_driver(const struct fw_message *message)
{
	cr_assert_eq(
		step((struct wrk_event){.kind = WRK_DRIVER_MESSAGE, .link = seen_link, .message = message}),
		0);
}
static void from_host(const struct fw_message *message)
{
	cr_assert_eq(
		step((struct wrk_event){.kind = WRK_HOST_MESSAGE, .host = seen_host, .message = message}), 0);
}

/* Runs the timer whenever it is due, up to `until`, stopping at the first step that did `kind`. */
static bool timers_until(int64_t until, enum wrk_action_kind kind)
{
	while (wrk_core_deadline_ns(core) <= until) {
		now = wrk_core_deadline_ns(core);
		cr_assert_eq(step((struct wrk_event){.kind = WRK_TIMER}), 0);
		if (did(kind) != NULL)
			return true;
	}
	now = until;
	return false;
}

static const struct fw_message welcome = {
	.kind = FW_WELCOME,
	.welcome =
		{.session = 77, .name = "a#2", .beat_ns = 250 * MS, .dead_ns = 3000 * MS, .version = "0.1.0"},
};
static const struct fw_message beat = {.kind = FW_BEAT};

static void attach(void)
{
	cr_assert_eq(step((struct wrk_event){.kind = WRK_CONNECTED, .link = seen_link, .text = "127.0.0.1"}),
		     0);
	cr_assert_not_null(sent(FW_HELLO));
	from_driver(&welcome);
	cr_assert_eq(wrk_core_session(core), WRK_SESSION_ATTACHED);
}
static void start_attached(bool once)
{
	make(once);
	cr_assert_eq(step((struct wrk_event){.kind = WRK_START}), 0);
	attach();
}
static struct fw_message create_of(uint64_t run, uint32_t host, uint64_t epoch)
{
	return (struct fw_message){
		.kind = FW_HOST_CREATE,
		.run = run,
		.host = host,
		.epoch = epoch,
		.create = {.application = "app", .fragments = fragment_names, .fragment_count = 1},
	};
}
static void spawn(uint64_t epoch)
{
	struct fw_message create = create_of(7, 1, epoch);

	from_driver(&create);
	cr_assert_not_null(did(WRK_DO_SPAWN));
	cr_assert_eq(did(WRK_DO_SPAWN)->message, &create);
	cr_assert_eq(step((struct wrk_event){.kind = WRK_HOST_SPAWNED, .host = seen_host, .pid = 4711}), 0);
	cr_assert_eq(wrk_core_host_state(core, seen_host), WRK_HOST_UP);
}
static struct fw_message host_frame(enum fw_kind kind)
{
	return (struct fw_message){.kind = kind, .run = 7, .host = 1, .epoch = 1};
}
static void prepared(void)
{
	static struct fw_op ops[] = {{.name = "tx", .type = "ping_tx"},
				     {.name = "detect", .type = "detector"}};
	static struct fw_fragment fragments[] = {{.name = "fragment1", .ops = ops, .op_count = 2}};
	struct fw_message message = host_frame(FW_HOST_PREPARED);

	message.prepared = (struct fw_host_prepared){.ok = true, .fragments = fragments, .fragment_count = 1};
	from_host(&message);
	cr_assert_eq(sent(FW_HOST_PREPARED), &message);
}
static void exited(int status, int number, bool page)
{
	static const char *lines[] = {"last words"};
	struct fw_op_stats ops[2] = {{.ticks = 3}, {.ticks = 17, .running = true}};
	struct fw_host_stats stats = {.ops = ops, .op_count = 2};
	struct wrk_exited how = {.status = status,
				 .signal = number,
				 .stats = page ? &stats : NULL,
				 .lines = lines,
				 .line_count = 1};

	cr_assert_eq(step((struct wrk_event){.kind = WRK_HOST_EXITED, .host = seen_host, .exited = &how}), 0);
}

Test(worker_core, attaches_and_beats)
{
	const struct fw_hello *hello;

	make(false);
	cr_assert_eq(step((struct wrk_event){.kind = WRK_START}), 0);
	cr_assert_not_null(did(WRK_DO_CONNECT));
	cr_assert_eq(step((struct wrk_event){.kind = WRK_CONNECTED, .link = seen_link, .text = "10.0.0.2"}),
		     0);
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

Test(worker_core, waits_with_growing_jittered_pauses_and_says_so_once)
{
	int64_t last = now, pause = 0;
	int lines = 0;

	make(false);
	step((struct wrk_event){.kind = WRK_START});
	for (int i = 0; i < 20; i++) {
		cr_assert_eq(step((struct wrk_event){.kind = WRK_CONNECT_FAILED,
						     .link = seen_link,
						     .text = "connection refused"}),
			     0);
		lines += logged(FRAGI_LOG_INFO) != NULL;
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
	cr_expect(strstr(logged(FRAGI_LOG_INFO), "back at"), "%s", logged(FRAGI_LOG_INFO));
}

Test(worker_core, a_refusal_ends_it_with_the_sentence)
{
	static const struct fw_message refused = {
		.kind = FW_REFUSED,
		.refused = {.exit_code = 5, .sentence = "this driver speaks protocol 2.0, the worker 1.0"},
	};

	make(false);
	step((struct wrk_event){.kind = WRK_START});
	step((struct wrk_event){.kind = WRK_CONNECTED, .link = seen_link, .text = "127.0.0.1"});
	from_driver(&refused);
	cr_expect(strstr(logged(FRAGI_LOG_ERROR), "protocol 2.0"));
	cr_expect_not_null(did(WRK_DO_DISCONNECT));
	cr_assert_not_null(did(WRK_DO_EXIT));
	cr_expect_eq(did(WRK_DO_EXIT)->exit_code, 5);
	cr_expect_eq(wrk_core_deadline_ns(core), INT64_MAX);
}

Test(worker_core, a_driver_that_does_not_answer_is_given_up)
{
	make(false);
	step((struct wrk_event){.kind = WRK_START});
	cr_assert(timers_until(now + WRK_CONNECT_NS, WRK_DO_DISCONNECT));
	cr_assert(timers_until(now + WRK_BACKOFF_MAX_NS, WRK_DO_CONNECT));
	step((struct wrk_event){.kind = WRK_CONNECTED, .link = seen_link, .text = ""});
	cr_assert(timers_until(now + WRK_DEAD_NS, WRK_DO_DISCONNECT));
	cr_expect_eq(wrk_core_session(core), WRK_SESSION_BACKOFF);
}

Test(worker_core, events_of_an_old_connection_are_ignored)
{
	uint64_t old;

	start_attached(false);
	old = seen_link;
	step((struct wrk_event){.kind = WRK_DRIVER_LOST, .link = old, .text = "connection reset"});
	cr_assert(timers_until(now + WRK_BACKOFF_MAX_NS, WRK_DO_CONNECT));
	cr_assert_neq(seen_link, old);
	attach();
	step((struct wrk_event){.kind = WRK_DRIVER_LOST, .link = old, .text = "connection reset"});
	cr_expect_eq(wrk_core_session(core), WRK_SESSION_ATTACHED);
	step((struct wrk_event){.kind = WRK_DRIVER_MESSAGE, .link = old, .message = &welcome});
	cr_expect_eq(wrk_core_session(core), WRK_SESSION_ATTACHED);
}

Test(worker_core, relays_between_driver_and_host)
{
	static const enum fw_kind down[] = {FW_HOST_WIRE, FW_HOST_START, FW_HOST_STOP};
	static const enum fw_kind up[] = {FW_HOST_WIRED, FW_HOST_STARTED, FW_HOST_EVENT};

	start_attached(false);
	spawn(1);
	prepared();
	for (size_t i = 0; i < FRAG_COUNT_OF(down); i++) {
		struct fw_message message = host_frame(down[i]);

		from_driver(&message);
		cr_assert_not_null(did(WRK_DO_SEND_HOST));
		cr_expect_eq(did(WRK_DO_SEND_HOST)->message, &message);
		cr_expect_eq(did(WRK_DO_SEND_HOST)->host, seen_host);
	}
	cr_expect_eq(wrk_core_host_state(core, seen_host), WRK_HOST_STOPPING);
	for (size_t i = 0; i < FRAG_COUNT_OF(up); i++) {
		struct fw_message message = host_frame(up[i]);

		message.result.ok = true;
		from_host(&message);
		cr_expect_eq(sent(up[i]), &message);
	}
}

Test(worker_core, stale_epochs_are_refused)
{
	struct fw_message message = host_frame(FW_HOST_START), create = create_of(7, 1, 2);

	start_attached(false);
	spawn(2);
	from_driver(&message);
	cr_expect_null(did(WRK_DO_SEND_HOST), "epoch 1 is not here");
	from_driver(&create);
	cr_expect_null(did(WRK_DO_SPAWN), "epoch 2 runs already");
	create.epoch = 3;
	from_driver(&create);
	cr_assert_not_null(did(WRK_DO_SPAWN));
	cr_assert_not_null(did(WRK_DO_SIGNAL_HOST), "never two live owners");
	cr_expect_eq(did(WRK_DO_SIGNAL_HOST)->signal, SIGKILL);
	cr_expect_neq(did(WRK_DO_SIGNAL_HOST)->host, seen_host);
}

Test(worker_core, an_epoch_that_is_over_does_not_come_back)
{
	struct fw_message create = create_of(7, 1, 2);

	start_attached(false);
	spawn(2);
	exited(1, 0, false);
	cr_assert_eq(wrk_core_host_count(core), 0);
	from_driver(&create);
	cr_expect_null(did(WRK_DO_SPAWN));
}

Test(worker_core, another_session_counts_its_epochs_anew)
{
	start_attached(false);
	spawn(1);
	exited(1, 0, false);
	step((struct wrk_event){.kind = WRK_DRIVER_LOST, .link = seen_link, .text = "connection reset"});
	cr_assert(timers_until(now + WRK_BACKOFF_MAX_NS, WRK_DO_CONNECT));
	attach();
	spawn(1);
}

Test(worker_core, a_kill_from_outside_is_named_although_the_socket_closed_first)
{
	start_attached(false);
	spawn(1);
	step((struct wrk_event){
		.kind = WRK_HOST_LINK_LOST, .host = seen_host, .text = "it closed its control socket"});
	exited(0, SIGKILL, false);
	cr_expect_eq(strncmp(sent(FW_HOST_EXIT)->exit.sentence,
			     "fraghost 4711 of fragment1 was killed: signal 9 (SIGKILL)", 57),
		     0, "%s", sent(FW_HOST_EXIT)->exit.sentence);
}

Test(worker_core, a_crash_is_reported_with_place_and_last_lines)
{
	const struct fw_message *exit;

	start_attached(false);
	spawn(1);
	prepared();
	exited(0, SIGSEGV, true);
	cr_assert_not_null(sent(FW_HOST_STATS));
	cr_expect(sent(FW_HOST_STATS)->stats.final);
	exit = sent(FW_HOST_EXIT);
	cr_assert_not_null(exit);
	cr_expect_str_eq(exit->exit.sentence,
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

Test(worker_core, an_operator_that_exits_is_a_failure)
{
	start_attached(false);
	spawn(1);
	prepared();
	exited(3, 0, true);
	cr_expect_str_eq(sent(FW_HOST_EXIT)->exit.sentence,
			 "fraghost 4711 exited with status 3 in fragment1.detect, tick 17");
	cr_expect_eq(sent(FW_HOST_EXIT)->exit.exit_code, 3);
}

Test(worker_core, an_ordered_end_has_no_sentence)
{
	struct fw_message stop = host_frame(FW_HOST_STOP);

	start_attached(false);
	spawn(1);
	from_driver(&stop);
	exited(0, 0, false);
	cr_assert_not_null(sent(FW_HOST_EXIT));
	cr_expect_str_eq(sent(FW_HOST_EXIT)->exit.sentence, "");
	cr_expect_null(logged(FRAGI_LOG_ERROR));
	cr_expect_null(did(WRK_DO_EXIT), "it serves on");
}

Test(worker_core, the_driver_may_kill_a_host_in_any_state)
{
	struct fw_message create = create_of(7, 1, 1), kill = host_frame(FW_HOST_KILL);

	start_attached(false);
	from_driver(&create);
	from_driver(&kill);
	cr_assert_not_null(did(WRK_DO_SIGNAL_HOST));
	step((struct wrk_event){.kind = WRK_HOST_SPAWNED, .host = seen_host, .pid = 4711});
	cr_expect_eq(did(WRK_DO_SIGNAL_HOST)->signal, SIGKILL, "it came to be after the order");
	exited(0, SIGKILL, false);
	cr_expect_str_eq(sent(FW_HOST_EXIT)->exit.sentence, "");
}

Test(worker_core, a_host_that_cannot_be_spawned_is_reported)
{
	struct fw_message create = create_of(7, 1, 1);

	start_attached(false);
	from_driver(&create);
	step((struct wrk_event){.kind = WRK_HOST_FAILED, .host = seen_host, .text = "cannot start fraghost"});
	cr_assert_not_null(sent(FW_HOST_EXIT));
	cr_expect_null(sent(FW_HOST_STATS));
	cr_expect_str_eq(sent(FW_HOST_EXIT)->exit.sentence, "cannot start fraghost");
	cr_expect_eq(sent(FW_HOST_EXIT)->exit.exit_code, 3);
	cr_expect_eq(wrk_core_host_count(core), 0);
}

Test(worker_core, hosts_die_with_the_driver_and_the_worker_comes_back)
{
	start_attached(false);
	spawn(1);
	step((struct wrk_event){.kind = WRK_DRIVER_LOST, .link = seen_link, .text = "connection reset"});
	cr_assert_not_null(did(WRK_DO_SIGNAL_HOST));
	cr_expect_eq(did(WRK_DO_SIGNAL_HOST)->signal, SIGKILL);
	cr_expect_not_null(logged(FRAGI_LOG_WARN));
	exited(0, SIGKILL, true);
	cr_expect_null(sent(FW_HOST_EXIT), "the session is over");
	cr_assert(timers_until(now + WRK_BACKOFF_MAX_NS, WRK_DO_CONNECT));
	attach();
}

Test(worker_core, an_exit_of_an_old_session_is_not_told_to_the_new_one)
{
	uint32_t old;

	start_attached(false);
	spawn(1);
	old = seen_host;
	step((struct wrk_event){.kind = WRK_DRIVER_LOST, .link = seen_link, .text = "connection reset"});
	cr_assert(timers_until(now + WRK_BACKOFF_MAX_NS, WRK_DO_CONNECT));
	attach();
	seen_host = old;
	exited(0, SIGKILL, true);
	cr_expect_null(sent(FW_HOST_STATS));
	cr_expect_null(sent(FW_HOST_EXIT));
	cr_expect_eq(wrk_core_host_count(core), 0);
}

Test(worker_core, a_silent_driver_is_lost_after_the_time_of_death)
{
	int64_t from;

	start_attached(false);
	from = now;
	cr_assert(timers_until(now + 4000 * MS, WRK_DO_DISCONNECT));
	cr_expect_eq(now - from, 3000 * MS);
	cr_expect_eq(wrk_core_session(core), WRK_SESSION_BACKOFF);
}

Test(worker_core, a_silent_host_is_killed_and_reported)
{
	start_attached(false);
	spawn(1);
	prepared();
	for (int i = 0; i < 11; i++) {
		cr_assert_not(timers_until(now + 249 * MS, WRK_DO_SIGNAL_HOST));
		from_driver(&beat);
	}
	cr_assert(timers_until(now + 400 * MS, WRK_DO_SIGNAL_HOST));
	cr_expect_eq(did(WRK_DO_SIGNAL_HOST)->signal, SIGKILL);
	exited(0, SIGKILL, true);
	cr_expect_str_eq(sent(FW_HOST_EXIT)->exit.sentence,
			 "fraghost 4711 was ended in fragment1.detect, tick 17: its control thread has not "
			 "been heard for "
			 "3.0 s");
}

Test(worker_core, own_sleep_is_no_silence_of_others)
{
	start_attached(false);
	spawn(1);
	from_host(&beat);
	from_driver(&beat);
	now += 60000 * MS; /* stopped and continued */
	cr_assert_eq(step((struct wrk_event){.kind = WRK_TIMER}), 0);
	cr_expect_null(did(WRK_DO_SIGNAL_HOST));
	cr_expect_null(did(WRK_DO_DISCONNECT));
	cr_assert(timers_until(now + 4000 * MS, WRK_DO_DISCONNECT), "silence from then on counts");
}

Test(worker_core, who_is_always_late_finds_the_dead_too)
{
	bool killed = false, dropped = false;

	start_attached(false);
	spawn(1);
	from_host(&beat);
	from_driver(&beat);
	for (int i = 0; i < 7; i++) { /* every timer is late by more than a beat */
		now += 600 * MS;
		cr_assert_eq(step((struct wrk_event){.kind = WRK_TIMER}), 0);
		killed = killed || did(WRK_DO_SIGNAL_HOST) != NULL;
		dropped = dropped || did(WRK_DO_DISCONNECT) != NULL;
	}
	cr_expect(killed);
	cr_expect(dropped);
}

Test(worker_core, a_host_killed_by_others_while_it_stops_says_so)
{
	struct fw_message stop = host_frame(FW_HOST_STOP);

	start_attached(false);
	spawn(1);
	from_driver(&stop);
	exited(0, SIGKILL, false);
	cr_expect_eq(strncmp(sent(FW_HOST_EXIT)->exit.sentence,
			     "fraghost 4711 of fragment1 was killed: signal 9 (SIGKILL)", 57),
		     0, "%s", sent(FW_HOST_EXIT)->exit.sentence);
}

Test(worker_core, pages_are_sampled_with_every_beat)
{
	struct fw_op_stats ops[1] = {{.ticks = 5}};
	struct fw_host_stats stats = {.ops = ops, .op_count = 1};

	start_attached(false);
	spawn(1);
	cr_assert(timers_until(now + 250 * MS, WRK_DO_SAMPLE_HOST));
	step((struct wrk_event){.kind = WRK_HOST_SAMPLED, .host = seen_host, .stats = &stats});
	cr_assert_not_null(sent(FW_HOST_STATS));
	cr_expect_not(sent(FW_HOST_STATS)->stats.final);
	cr_expect_eq(sent(FW_HOST_STATS)->stats.ops[0].ticks, 5);
	cr_expect_eq(sent(FW_HOST_STATS)->epoch, 1);
}

Test(worker_core, a_host_that_closes_its_socket_is_killed_after_a_moment)
{
	start_attached(false);
	spawn(1);
	step((struct wrk_event){
		.kind = WRK_HOST_LINK_LOST, .host = seen_host, .text = "it closed its socket"});
	cr_expect_null(did(WRK_DO_SIGNAL_HOST), "its own exit usually follows");
	cr_assert(timers_until(now + 250 * MS, WRK_DO_SIGNAL_HOST));
	exited(0, SIGKILL, false);
	cr_expect(strstr(sent(FW_HOST_EXIT)->exit.sentence, "it closed its socket"));
}

Test(worker_core, a_crash_is_named_although_the_socket_closed_first)
{
	start_attached(false);
	spawn(1);
	step((struct wrk_event){
		.kind = WRK_HOST_LINK_LOST, .host = seen_host, .text = "it closed its socket"});
	exited(0, SIGBUS, false);
	cr_expect(strstr(sent(FW_HOST_EXIT)->exit.sentence, "SIGBUS"), "%s",
		  sent(FW_HOST_EXIT)->exit.sentence);
}

Test(worker_core, a_host_may_not_say_what_is_not_its_to_say)
{
	struct fw_message message = host_frame(FW_HOST_EVENT);

	start_attached(false);
	spawn(1);
	message.host = 2; /* in another's name */
	from_host(&message);
	cr_expect_null(sent(FW_HOST_EVENT));
	cr_assert_not_null(did(WRK_DO_SIGNAL_HOST));
}

Test(worker_core, a_frame_that_is_not_for_a_worker_ends_the_connection)
{
	static const struct fw_message odd = {.kind = FW_HOST_EXIT};

	start_attached(false);
	from_driver(&odd);
	cr_expect_not_null(did(WRK_DO_DISCONNECT));
	cr_expect_eq(wrk_core_session(core), WRK_SESSION_BACKOFF);
}

Test(worker_core, once_ends_with_the_result_of_what_it_served)
{
	struct fw_message stop = host_frame(FW_HOST_STOP);

	start_attached(true);
	spawn(1);
	from_driver(&stop);
	exited(0, 0, false);
	cr_assert_not_null(did(WRK_DO_EXIT));
	cr_expect_eq(did(WRK_DO_EXIT)->exit_code, 0);
	cr_expect_not_null(sent(FW_HOST_EXIT), "reported before it goes");
}

Test(worker_core, once_passes_on_a_failure_elsewhere)
{
	struct fw_message kill = host_frame(FW_HOST_KILL);

	start_attached(true);
	spawn(1);
	kill.stop.exit_code = 1;
	from_driver(&kill);
	exited(0, SIGKILL, false);
	cr_expect_eq(did(WRK_DO_EXIT)->exit_code, 1);
}

Test(worker_core, once_ends_as_the_driver_says_whatever_its_host_said_before)
{
	struct fw_message wired = host_frame(FW_HOST_WIRED), kill = host_frame(FW_HOST_KILL);

	start_attached(true);
	spawn(1);
	wired.result = (struct fw_host_result){.exit_code = 1, .sentence = "its peer was killed first"};
	from_host(&wired);
	from_driver(&kill); /* stopped on request while it was wiring */
	step((struct wrk_event){
		.kind = WRK_DRIVER_LOST, .link = seen_link, .text = "the peer closed the connection"});
	exited(0, SIGKILL, false);
	cr_assert_not_null(did(WRK_DO_EXIT));
	cr_expect_eq(did(WRK_DO_EXIT)->exit_code, 0);
}

Test(worker_core, a_silent_host_is_the_cause_while_it_stops_too)
{
	struct fw_message stop = host_frame(FW_HOST_STOP);

	start_attached(false);
	spawn(1);
	stop.stop.drain_ns = 5000 * MS;
	from_driver(&stop);
	for (int i = 0; i < 20 && did(WRK_DO_SIGNAL_HOST) == NULL; i++) {
		timers_until(now + 200 * MS, WRK_DO_SIGNAL_HOST);
		if (did(WRK_DO_SIGNAL_HOST) == NULL)
			from_driver(&beat);
	}
	exited(0, SIGKILL, false);
	cr_assert_not_null(strstr(sent(FW_HOST_EXIT)->exit.sentence, "has not been heard"));
}

Test(worker_core, once_fails_with_its_host)
{
	start_attached(true);
	spawn(1);
	exited(0, SIGSEGV, false);
	cr_expect_eq(did(WRK_DO_EXIT)->exit_code, 1);
}

Test(worker_core, once_without_its_driver_is_3_and_only_after_having_served)
{
	start_attached(true);
	step((struct wrk_event){.kind = WRK_DRIVER_LOST, .link = seen_link, .text = "connection reset"});
	cr_expect_null(did(WRK_DO_EXIT));
	cr_assert(timers_until(now + WRK_BACKOFF_MAX_NS, WRK_DO_CONNECT));
	attach();
	spawn(1);
	step((struct wrk_event){.kind = WRK_DRIVER_LOST, .link = seen_link, .text = "connection reset"});
	cr_expect_null(did(WRK_DO_EXIT), "its host goes first");
	exited(0, SIGKILL, false);
	cr_assert_not_null(did(WRK_DO_EXIT));
	cr_expect_eq(did(WRK_DO_EXIT)->exit_code, 3);
}

Test(worker_core, once_takes_no_second_application)
{
	struct fw_message other = create_of(8, 1, 1);

	start_attached(true);
	spawn(1);
	from_driver(&other);
	cr_expect_null(did(WRK_DO_SPAWN));
	cr_assert_not_null(sent(FW_HOST_EXIT));
	cr_expect(strstr(sent(FW_HOST_EXIT)->exit.sentence, "--once"));
	cr_expect_eq(sent(FW_HOST_EXIT)->run, 8);
}

Test(worker_core, told_to_end_it_stops_its_hosts_first)
{
	start_attached(false);
	spawn(1);
	prepared();
	step((struct wrk_event){.kind = WRK_STOP});
	cr_assert(timers_until(now + WRK_GRACE_NS, WRK_DO_SIGNAL_HOST));
	cr_expect_eq(did(WRK_DO_SIGNAL_HOST)->signal, SIGTERM);
	cr_assert(timers_until(now + WRK_KILL_NS, WRK_DO_SIGNAL_HOST));
	cr_expect_eq(did(WRK_DO_SIGNAL_HOST)->signal, SIGKILL);
	exited(0, SIGKILL, true);
	cr_assert_not_null(sent(FW_HOST_EXIT));
	cr_expect_str_eq(sent(FW_HOST_EXIT)->exit.sentence,
			 "fraghost 4711 was ended in fragment1.detect, tick 17: "
			 "its workerd was told to end");
	cr_assert_not_null(did(WRK_DO_EXIT));
	cr_expect_eq(did(WRK_DO_EXIT)->exit_code, 0);
}

Test(worker_core, told_to_end_a_driver_that_stops_in_order_is_let)
{
	struct fw_message stop = host_frame(FW_HOST_STOP);

	start_attached(false);
	spawn(1);
	step((struct wrk_event){.kind = WRK_STOP});
	cr_expect_null(did(WRK_DO_SIGNAL_HOST));
	stop.stop.drain_ns = 5000 * MS;
	from_driver(&stop);
	for (int i = 0; i < 20; i++) {
		cr_assert_not(timers_until(now + 200 * MS, WRK_DO_SIGNAL_HOST), "it drains");
		from_driver(&beat);
		from_host(&beat);
	}
	exited(0, 0, false);
	cr_assert_not_null(did(WRK_DO_EXIT));
	cr_expect_eq(did(WRK_DO_EXIT)->exit_code, 0);
}

Test(worker_core, told_to_end_a_driver_that_says_nothing_is_not_waited_for)
{
	start_attached(false);
	spawn(1);
	step((struct wrk_event){.kind = WRK_STOP});
	cr_assert(timers_until(now + WRK_GRACE_NS, WRK_DO_SIGNAL_HOST));
	cr_expect_eq(did(WRK_DO_SIGNAL_HOST)->signal, SIGTERM);
}

Test(worker_core, told_twice_it_ends_at_once_even_if_a_host_does_not)
{
	start_attached(false);
	spawn(1);
	step((struct wrk_event){.kind = WRK_STOP});
	step((struct wrk_event){.kind = WRK_STOP});
	cr_expect_eq(did(WRK_DO_SIGNAL_HOST)->signal, SIGKILL);
	cr_assert(timers_until(now + 3 * WRK_KILL_NS, WRK_DO_EXIT));
}

Test(worker_core, told_to_end_without_hosts_it_ends)
{
	make(false);
	step((struct wrk_event){.kind = WRK_START});
	step((struct wrk_event){.kind = WRK_CONNECT_FAILED, .link = seen_link, .text = "connection refused"});
	step((struct wrk_event){.kind = WRK_STOP});
	cr_assert_not_null(did(WRK_DO_EXIT));
	cr_expect_eq(did(WRK_DO_EXIT)->exit_code, 0);
}

Test(worker_core, short_memory_is_an_error_not_a_crash)
{
	int64_t failed = 1;

	for (int64_t skip = 0; failed > 0 && skip < 100; skip++) {
		struct fw_message create = create_of(7, 1, 1);
		int r;

		finish();
		start_attached(false);
		wrk_actions_fini(&actions);
		fragi_alloc_fail_after(skip, INT64_MAX);
		r = step((struct wrk_event){
			.kind = WRK_DRIVER_MESSAGE, .link = seen_link, .message = &create});
		failed = fragi_alloc_fail_off();
		cr_expect_eq(r, failed > 0 ? -ENOMEM : 0);
	}
}
