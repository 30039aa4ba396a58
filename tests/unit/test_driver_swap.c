// SPDX-License-Identifier: Apache-2.0
#include "driver_world.h"

/* A swap replaces a library of a fragment while the application runs. */
#define CLIENT 50

#define GRAPH                                                                                      \
	"frag: 1\n"                                                                                \
	"application: app\n"                                                                       \
	"fragments:\n"                                                                             \
	"  f1: {operators: {tx: {type: t}}}\n"                                                     \
	"  f2: {extensions: [libold.so], host: b, operators: {rx: {type: t}}}\n"                   \
	"flows: [f1.tx.out -> f2.rx.in]\n"
static const char graph[] = GRAPH;
static const char sender_restarts[] =
	"frag: 1\n"
	"application: app\n"
	"fragments:\n"
	"  f1: {operators: {tx: {type: t}}, on_failure: {policy: restart, intensity: 2}}\n"
	"  f2: {extensions: [libold.so], host: b, operators: {rx: {type: t}}}\n"
	"flows: [f1.tx.out -> f2.rx.in]\n";

/* Whether the source of a request has that --set. */
static bool has_set(const struct fw_message *create, const char *set)
{
	const size_t size = strlen(set) + 1;
	const char *bytes = create->create.source;

	for (uint32_t i = 0; i + size <= create->create.source_bytes; i++)
		if (memcmp(bytes + i, set, size) == 0)
			return true;
	return false;
}

static void runs(struct world *w, const char *text)
{
	two_run(w, text);
	client_hello(w, CLIENT, "top");
}

static void ask_of(struct world *w, uint64_t client, const struct fw_swap *wanted)
{
	struct fw_message message = {.kind = FW_SWAP, .seq = 9, .swap = *wanted};

	if (message.swap.replaces == NULL)
		message.swap.replaces = "";
	say(w, client, &message);
}

static void ask(struct world *w, const struct fw_swap *wanted)
{
	ask_of(w, CLIENT, wanted);
}

/* The new process of f2 is asked for on the same worker. start_timeout_s 0: none was given. */
static void swap_begins_with(struct world *w, const char *text, int start_timeout_s)
{
	const struct fw_message *create;

	runs(w, text);
	w->core->apps[0]->given.timeout_ns = start_timeout_s * SECOND;
	ask(w, &(struct fw_swap){.name = "app",
				 .fragment = "f2",
				 .library = "libnew.so",
				 .probation_ns = 10 * 1000 * MS});
	create = must_take(w, 2, FW_HOST_CREATE);
	cr_expect_eq(create->epoch, 2);
	cr_expect(create->create.is_beside);
	cr_expect(has_set(create, "swap:f2/libold.so=libnew.so"));
	assert_has(w->log,
		   "f2 goes on in another process on worker b: 10.0.0.9:1 replaces libold.so "
		   "by libnew.so");
	cr_expect_null(taken(w, 2, FW_HOST_STOP), "nothing changes before it is prepared");
	cr_expect_null(taken(w, 1, FW_HOST_SUSPEND));
	cr_expect_null(taken(w, CLIENT, FW_ANSWER), "it does not run yet");
}

static void swap_begins(struct world *w, const char *text)
{
	swap_begins_with(w, text, 0);
}

static void new_is_prepared(struct world *w)
{
	speaking_epoch[2] = 2;
	say_prepared(w, 2, 2, "f2", false);
}

static void old_ends(struct world *w)
{
	speaking_epoch[2] = 1;
	say_event(w, 2, 2, FW_STATE_DONE, "");
	say_end(w, 2, 2, 0, 5, 0, 0);
}

static void hangs_in_start_with(struct world *w, int start_timeout_s)
{
	swap_begins_with(w, graph, start_timeout_s);
	new_is_prepared(w);
	old_ends(w);
	speaking_epoch[2] = 2;
	say_result(w, 2, 2, FW_HOST_WIRED);
}

static void hangs_in_start(struct world *w)
{
	hangs_in_start_with(w, 0);
}

static void new_starts(struct world *w)
{
	const struct fw_message *answer;

	speaking_epoch[2] = 2;
	cr_assert_not_null(taken(w, 2, FW_HOST_WIRE), "%s", w->log);
	say_result(w, 2, 2, FW_HOST_WIRED);
	cr_expect_null(taken(w, CLIENT, FW_ANSWER), "it does not run yet");
	say_result(w, 2, 2, FW_HOST_STARTED);
	answer = must_take(w, CLIENT, FW_ANSWER);
	cr_expect_eq(answer->answer.failure.code, FRAGI_FAILURE_NONE);
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_RUNNING);
}

static void new_runs_of(struct world *w, const char *text)
{
	swap_begins(w, text);
	new_is_prepared(w);
	cr_assert_not_null(taken(w, 2, FW_HOST_STOP));
	cr_assert_not_null(taken(w, 1, FW_HOST_SUSPEND));
	old_ends(w);
	new_starts(w);
}

static void new_runs(struct world *w)
{
	new_runs_of(w, graph);
}

WORLD_TEST(driver_swap, the_new_process_takes_over_and_nothing_is_lost, NULL)
{
	new_runs(w);
	cr_expect_eq(drv_core_placed(w->core), 2, "what was reserved for both is given back");
	step(w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 2});
	both_are_done(w);
	say_stats(w, 1, 1, true, 12, 0);
	say_stats(w, 2, 2, true, 0, 7);
	both_exit(w);
	cr_assert(w->ended, "%s", w->log);
	assert_has(w->json, "\"sent\": 12, \"delivered\": 12");
	assert_has(w->json, "\"lost\": 0, \"in_flight\": 0, \"exact\": true");
}

WORLD_TEST(driver_swap, what_cannot_be_prepared_changes_nothing, NULL)
{
	struct fw_failure error = {FRAGI_FAILURE_LIBRARY_MISSING, "no libnew.so", ""};
	const struct fw_message *m;
	struct fw_message failed;

	swap_begins(w, graph);
	speaking_epoch[2] = 2;
	failed = of_host(FW_HOST_PREPARED, 2);
	failed.prepared = (struct fw_host_prepared){.errors = &error, .error_count = 1};
	say(w, 2, &failed);
	m = must_take(w, CLIENT, FW_ANSWER);
	cr_expect_eq(m->answer.failure.code, FRAGI_FAILURE_LIBRARY_MISSING);
	assert_has(
		m->answer.failure.sentence,
		"worker b could not prepare it: no libnew.so; nothing has changed, f2 goes on with "
		"libold.so");
	m = must_take(w, 2, FW_HOST_KILL);
	cr_expect_eq(m->epoch, 2);
	cr_expect_null(taken(w, 2, FW_HOST_STOP));
	cr_expect_null(taken(w, 1, FW_HOST_SUSPEND));
	cr_expect_eq(drv_core_placed(w->core), 2);
	ask(w, &(struct fw_swap){.name = "app", .fragment = "f2", .library = "libother.so"});
	m = must_take(w, 2, FW_HOST_CREATE);
	cr_expect(has_set(m, "swap:f2/libold.so=libother.so"));
	cr_expect_not(has_set(m, "swap:f2/libold.so=libnew.so"));
}

/* So many seconds, in which the client waits. */
static void pass_waiting(struct world *w, int seconds)
{
	for (int i = 0; i < 2 * seconds; i++) {
		struct fw_message beat = {.kind = FW_BEAT, .beat.waits_for = ""};

		pass_beating(w, 500 * MS, 1, 2);
		say(w, CLIENT, &beat);
	}
}

/* A library that hangs in a constructor: 2 minutes, where no start timeout was given. */
WORLD_TEST(driver_swap, one_that_hangs_while_it_is_prepared_changes_nothing, NULL)
{
	const struct fw_message *m;

	swap_begins(w, graph);
	pass_waiting(w, 119);
	cr_expect_null(taken(w, CLIENT, FW_ANSWER), "it may take that long");
	pass_waiting(w, 2);
	m = must_take(w, CLIENT, FW_ANSWER);
	assert_has(m->answer.failure.sentence, "worker b did not answer PREPARE in time; nothing");
	m = must_take(w, 2, FW_HOST_KILL);
	cr_expect_eq(m->epoch, 2);
	cr_expect_null(taken(w, 2, FW_HOST_STOP));
	cr_expect_eq(drv_core_placed(w->core), 2);
	ask(w, &(struct fw_swap){.name = "app", .fragment = "f2", .library = "libother.so"});
	cr_expect_not_null(taken(w, 2, FW_HOST_CREATE), "the next swap is taken");
}

/* Longer than the usual time, or shorter. */
WORLD_TEST(driver_swap, a_start_timeout_is_the_limit_of_a_swap_too, NULL)
{
	static const int limits_s[] = {7, 150};

	for (size_t i = 0; i < 2 * FRAG_COUNT_OF(limits_s); i++) {
		bool prepares = i % 2 == 0;

		if (i > 0)
			world_fini(w);
		if (prepares)
			swap_begins_with(w, graph, limits_s[i / 2]);
		else
			hangs_in_start_with(w, limits_s[i / 2]);
		pass_waiting(w, limits_s[i / 2] - 1);
		cr_expect_null(taken(w, 2, FW_HOST_KILL), "%zu", i);
		pass_waiting(w, 2);
		cr_expect_not_null(taken(w, 2, FW_HOST_KILL), "%zu: %s", i, w->log);
		assert_has(taken(w, CLIENT, FW_ANSWER)->answer.failure.sentence, "in time");
	}
}

WORLD_TEST(driver_swap, one_that_hangs_in_start_brings_the_old_library_back, NULL)
{
	const struct fw_message *m;

	hangs_in_start(w);
	forget_requests(w, 2);
	pass_waiting(w, 119);
	cr_expect_null(taken(w, 2, FW_HOST_KILL), "it may take that long");
	pass_beating(w, 1500 * MS, 1, 2);
	cr_expect_not_null(taken(w, 2, FW_HOST_KILL), "%s", w->log);
	m = must_take(w, CLIENT, FW_ANSWER);
	assert_has(m->answer.failure.sentence, "did not answer START in time");
	say_exit(w, 2, 2, 0, 9, "");
	m = must_take(w, 2, FW_HOST_CREATE);
	cr_expect(has_set(m, "swap:f2/libold.so=libold.so"));
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING);
}

/* Which library the next run has, of an application that is started anew while a swap goes on. */
static bool command_has(struct world *w, struct fw_message *command, const char *set)
{
	const struct fw_message *create;

	forget_requests(w, 2);
	say(w, CLIENT, command);
	say_end(w, 1, 1, 5, 0, 0, 9);
	say_exit(w, 2, 2, 0, 9, "");
	step(w, &(struct drv_event){.kind = DRV_EVENT_TIMER});
	create = must_take(w, 2, FW_HOST_CREATE);
	cr_assert_eq(create->run, 2);
	return has_set(create, set);
}

static bool next_run_has(struct world *w, const char *set)
{
	return command_has(
		w,
		&(struct fw_message){.kind = FW_STOP_APP,
				     .seq = 10,
				     .stop_app = {.name = "app", .at_once = true, .restart = true}},
		set);
}

/* Also where it does not use that library any more. */
WORLD_TEST(driver_swap, a_changed_graph_names_its_libraries_anew, NULL)
{
	const char *text =
		"frag: 1\napplication: app\nfragments:\n"
		"  f1: {operators: {tx: {type: t}}}\n"
		"  f2: {extensions: [libthird.so], host: b, operators: {rx: {type: t}}}\n"
		"flows: [f1.tx.out -> f2.rx.in]\n";
	struct fragi_spec_source source = {.graph = {"app.yaml", text, strlen(text)}};
	struct fw_message message = {.kind = FW_APPLY, .seq = 11};
	size_t bytes;
	void *packed;

	hangs_in_start(w);
	cr_assert_eq(fragi_source_pack(&source, &packed, &bytes), 0);
	message.apply = (struct fw_apply){"app", packed, (uint32_t)bytes, false};
	cr_expect_not(command_has(w, &message, "swap:f2/libold.so=libold.so"));
	fragi_free(packed);
}

WORLD_TEST(driver_swap, a_restart_has_a_new_library_once_that_ran, NULL)
{
	new_runs(w);
	cr_expect(next_run_has(w, "swap:f2/libold.so=libnew.so"));
}

WORLD_TEST(driver_swap, a_restart_has_the_old_library_until_the_new_one_ran, NULL)
{
	hangs_in_start(w);
	cr_expect(next_run_has(w, "swap:f2/libold.so=libold.so"));
}

WORLD_TEST(driver_swap, a_failure_within_probation_brings_the_old_library_back, NULL)
{
	const struct fw_message *create;

	new_runs(w);
	pass_beating(w, 9 * 1000 * MS, 1, 2);
	forget_requests(w, 2);
	say_exit(w, 2, 2, 139, 11, RX_CRASH);
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "%s", w->log);
	create = must_take(w, 2, FW_HOST_CREATE);
	cr_expect_gt(create->epoch, 2);
	cr_expect_not(create->create.is_beside);
	cr_expect(has_set(create, "swap:f2/libold.so=libold.so"));
	cr_expect_not(has_set(create, "swap:f2/libold.so=libnew.so"));
	assert_has(w->log, "f2: libnew.so has failed, and libold.so returns: " RX_CRASH);
}

WORLD_TEST(driver_swap, an_operator_that_fails_within_probation_is_such_a_failure, NULL)
{
	new_runs(w);
	say_event(w, 2, 2, FW_STATE_FAILED, "f2.rx failed");
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "%s", w->log);
	cr_expect_not_null(taken(w, 2, FW_HOST_KILL));
}

WORLD_TEST(driver_swap, a_failure_after_probation_is_the_failure_of_the_application, NULL)
{
	new_runs(w);
	pass_beating(w, 11 * 1000 * MS, 1, 2);
	say_exit(w, 2, 2, 139, 11, RX_CRASH);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_FAILING, "%s", w->log);
}

/* The first message after a silence may be of what happened within it. */
WORLD_TEST(driver_swap, a_probation_lasts_longer_by_what_its_worker_was_silent, NULL)
{
	new_runs(w);
	pass_beating(w, 9 * 1000 * MS, 1, 2);
	pass_beating(w, 2 * 1000 * MS, 1, 1);
	forget_requests(w, 2);
	say_exit(w, 2, 2, 139, 11, RX_CRASH);
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "%s", w->log);
	assert_has(w->log, "f2: libnew.so has failed, and libold.so returns: " RX_CRASH);
}

WORLD_TEST(driver_swap, one_that_dies_before_it_takes_over_leaves_the_old_library, NULL)
{
	const struct fw_message *create, *answer;

	swap_begins(w, graph);
	new_is_prepared(w);
	speaking_epoch[2] = 2;
	say_exit(w, 2, 2, 139, 11, RX_CRASH);
	assert_has(w->log, "f2, which is swapped, lost its new process: " RX_CRASH);
	answer = must_take(w, CLIENT, FW_ANSWER);
	cr_expect_neq(answer->answer.failure.code, FRAGI_FAILURE_NONE);
	old_ends(w);
	create = must_take(w, 2, FW_HOST_CREATE);
	cr_expect_not(has_set(create, "swap:f2/libold.so=libnew.so"));
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING);
}

/* It neither drains nor ends, and its worker does not confirm that it was killed. */
WORLD_TEST(driver_swap, an_old_process_that_does_not_end_is_named, NULL)
{
	swap_begins(w, graph);
	new_is_prepared(w);
	speaking_epoch[2] = 1;
	say_event(w, 2, 2, FW_STATE_DONE, "");
	pass_beating(w, 4 * SECOND, 1, 2);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_FAILING);
	assert_has(w->log, "worker b did not confirm the end of f2, which is to be swapped");
}

static const struct fw_failure *ask_for_another(struct world *w, uint64_t client)
{
	const struct fw_message *answer;

	client_hello(w, client, "top");
	ask_of(w, client, &(struct fw_swap){.name = "app", .fragment = "f2", .library = "x.so"});
	answer = taken(w, client, FW_ANSWER);
	return answer != NULL ? &answer->answer.failure : NULL;
}

/* The first one goes on, and the next one may follow as soon as its probation is over. */
Test(driver_swap, one_at_a_time)
{
	const struct fw_message *create;
	struct world w;

	swap_begins(&w, graph);
	cr_expect_str_eq(ask_for_another(&w, CLIENT + 1)->sentence,
			 "f2 of app is being replaced already; try again when `fragctl events` "
			 "shows that it runs");
	new_is_prepared(&w);
	old_ends(&w);
	new_starts(&w);
	pass_beating(&w, 9900 * MS, 1, 2);
	w.now_ns += 100 * MS - 1;
	cr_expect_str_eq(ask_for_another(&w, CLIENT + 2)->sentence,
			 "f2 has libnew.so on probation; try again when that is over");
	w.now_ns++;
	cr_expect_null(ask_for_another(&w, CLIENT + 3));
	create = taken(&w, 2, FW_HOST_CREATE);
	cr_assert_not_null(create, "%s", w.log);
	cr_expect(has_set(create, "swap:f2/libold.so=x.so"), "it replaces what the graph names");
	world_fini(&w);
}

/* That is no failure of the swap; what ends the application in another way is. */
WORLD_TEST(driver_swap, a_stop_ends_what_was_only_prepared, NULL)
{
	const struct fw_message *answer;

	swap_begins(w, graph);
	step(w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 2});
	answer = must_take(w, CLIENT, FW_ANSWER);
	cr_expect_eq(answer->answer.failure.code, FRAGI_FAILURE_NONE);
	cr_expect_eq(answer->run, 0, "the new library did not run");
	cr_expect_not_null(taken(w, 1, FW_HOST_STOP));
}

/* Nobody asked the application to end, and it goes on without the new library. */
WORLD_TEST(driver_swap, a_restart_before_the_new_library_runs_is_why_a_swap_fails, NULL)
{
	const struct fw_message *answer;

	swap_begins(w, graph);
	client_hello(w, CLIENT + 1, "top");
	say(w, CLIENT + 1,
	    &(struct fw_message){
		    .kind = FW_STOP_APP, .seq = 3, .stop_app = {.name = "app", .restart = true}});
	answer = must_take(w, CLIENT, FW_ANSWER);
	cr_expect_eq(answer->answer.failure.code, FRAGI_FAILURE_OTHER);
	cr_expect_str_eq(answer->answer.failure.sentence,
			 "app was started anew before f2 ran with libnew.so; swap again");
	cr_expect_not_null(taken(w, 1, FW_HOST_STOP));
}

WORLD_TEST(driver_swap, the_end_of_its_application_is_why_a_swap_fails, NULL)
{
	const struct fw_message *answer;

	swap_begins(w, graph);
	step(w, &(struct drv_event){.kind = DRV_EVENT_CLOSED, .connection = 1, .text = "cut"});
	answer = must_take(w, CLIENT, FW_ANSWER);
	cr_expect_eq(answer->answer.failure.code, FRAGI_FAILURE_WORKER_LOST);
	assert_has(answer->answer.failure.sentence,
		   "app ended before the new library ran: worker ");
}

static const char migrating[] =
	"frag: 1\n"
	"application: app\n"
	"fragments:\n"
	"  f1: {operators: {tx: {type: t}}}\n"
	"  f2: {extensions: [libold.so], host: b, operators: {rx: {type: t}}, "
	"on_failure: {policy: migrate, backoff: 1ms, lease: 0s}}\n"
	"flows: [f1.tx.out -> f2.rx.in]\n";

enum moment { PREPARING, YIELDING, STARTING, ON_PROBATION };

/* The worker of f2 is lost at a moment of its swap; c takes f2 and is asked for it. */
static const struct fw_message *lost_at(struct world *w, enum moment moment)
{
	const struct fw_message *create;

	swap_begins(w, migrating);
	hello(w, 3, "c", "f2");
	if (moment >= YIELDING)
		new_is_prepared(w);
	if (moment >= STARTING)
		old_ends(w);
	if (moment >= ON_PROBATION)
		new_starts(w);
	step(w, &(struct drv_event){.kind = DRV_EVENT_CLOSED, .connection = 2, .text = "reset"});
	pass_beating(w, SECOND, 1, 1);
	beat(w, 3);
	create = must_take(w, 3, FW_HOST_CREATE);
	cr_expect_not(create->create.is_beside);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING);
	return create;
}

static void runs_on_c(struct world *w, uint64_t epoch)
{
	speaking_epoch[2] = epoch;
	say_prepared(w, 3, 2, "f2", false);
	say_result(w, 3, 2, FW_HOST_WIRED);
	say_result(w, 3, 2, FW_HOST_STARTED);
	assert_has(w->log, "f2 runs again on worker c");
}

Test(driver_swap, a_host_that_has_to_leave_its_worker_goes_with_the_old_library)
{
	for (enum moment moment = PREPARING; moment < ON_PROBATION; moment++) {
		const struct fw_message *create, *answer;
		struct world w;

		create = lost_at(&w, moment);
		cr_expect_not(has_set(create, "swap:f2/libold.so=libnew.so"), "at %d", moment);
		answer = taken(&w, CLIENT, FW_ANSWER);
		cr_assert_not_null(answer, "at %d: %s", moment, w.log);
		cr_expect_neq(answer->answer.failure.code, FRAGI_FAILURE_NONE);
		assert_has(answer->answer.failure.sentence, "libold.so");
		runs_on_c(&w, create->epoch);
		cr_expect_eq(drv_core_placed(w.core), 2, "nothing stays reserved, at %d", moment);
		/* Another swap can begin, so this one is over. */
		ask(&w, &(struct fw_swap){.name = "app", .fragment = "f2", .library = "libnew.so"});
		create = taken(&w, 3, FW_HOST_CREATE);
		cr_assert_not_null(create, "at %d: %s", moment, w.log);
		cr_expect(create->create.is_beside);
		world_fini(&w);
	}
}

/* Its worker is lost, and no other one is there: it runs nowhere. */
WORLD_TEST(driver_swap, a_host_that_waits_for_a_worker_is_not_swapped, NULL)
{
	const struct fw_message *answer;

	runs(w, migrating);
	step(w, &(struct drv_event){.kind = DRV_EVENT_CLOSED, .connection = 2, .text = "reset"});
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "%s", w->errors);
	ask(w, &(struct fw_swap){.name = "app", .fragment = "f2", .library = "libnew.so"});
	answer = must_take(w, CLIENT, FW_ANSWER);
	cr_expect_eq(answer->answer.failure.code, FRAGI_FAILURE_HOST_FAILED);
	cr_expect_str_eq(answer->answer.failure.sentence,
			 "f2 on worker b is being started again; try again when it runs");
}

/* That its worker is lost is no failure of the library. */
WORLD_TEST(driver_swap, a_probation_goes_on_on_another_worker, NULL)
{
	const struct fw_message *create;

	create = lost_at(w, ON_PROBATION);
	cr_expect(has_set(create, "swap:f2/libold.so=libnew.so"));
	runs_on_c(w, create->epoch);
	forget_requests(w, 2);
	say_exit(w, 3, 2, 139, 11, RX_CRASH);
	create = must_take(w, 3, FW_HOST_CREATE);
	cr_expect_not(has_set(create, "swap:f2/libold.so=libnew.so"));
	assert_has(w->log, "f2: libnew.so has failed, and libold.so returns: " RX_CRASH);
}

static const struct fw_message *fails_on_probation(struct world *w)
{
	const struct fw_message *create;

	forget_requests(w, 2);
	say_exit(w, 2, 2, 139, 11, RX_CRASH);
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "%s", w->log);
	create = must_take(w, 2, FW_HOST_CREATE);
	cr_expect_not(create->create.is_beside);
	cr_expect(has_set(create, "swap:f2/libold.so=libold.so"));
	return create;
}

/* That the old library returned was no failure that its policy counts. */
Test(driver_swap, a_host_with_its_old_library_is_started_again_by_its_policy)
{
	struct world w;

	new_runs_of(&w, migrating);
	speaking_epoch[2] = fails_on_probation(&w)->epoch;
	say_prepared(&w, 2, 2, "f2", false);
	say_result(&w, 2, 2, FW_HOST_WIRED);
	say_result(&w, 2, 2, FW_HOST_STARTED);
	forget_requests(&w, 2);
	say_exit(&w, 2, 2, 139, 11, RX_CRASH);
	pass_beating(&w, SECOND, 1, 2);
	cr_expect_eq(drv_core_app_state(w.core), DRV_APP_RUNNING, "%s", w.log);
	cr_expect_not_null(taken(&w, 2, FW_HOST_CREATE), "%s", w.log);
	world_fini(&w);
}

static void cannot_be_wired(struct world *w, uint64_t connection, uint32_t host)
{
	struct fw_message wired = of_host(FW_HOST_WIRED, host);

	wired.result.failure =
		(struct fw_failure){FRAGI_FAILURE_EDGE_LOST, "its data link broke", NULL};
	say(w, connection, &wired);
}

/* The neighbour died meanwhile: that is no failure of a host whose policy allows none. */
Test(driver_swap, a_host_with_its_old_library_waits_for_a_neighbour_that_restarts)
{
	for (int restarts = 0; restarts < 2; restarts++) {
		struct world w;

		new_runs_of(&w, restarts ? sender_restarts : graph);
		speaking_epoch[2] = fails_on_probation(&w)->epoch;
		say_prepared(&w, 2, 2, "f2", false);
		if (restarts)
			say_exit(&w, 1, 1, 139, 11, "fraghost 101 crashed");
		cannot_be_wired(&w, 2, 2);
		cr_expect_eq(drv_core_app_state(w.core),
			     restarts ? DRV_APP_RUNNING : DRV_APP_FAILING, "%s", w.log);
		world_fini(&w);
	}
}

/*
 * The neighbour was being moved, and was to be wired to the library that failed: its new process
 * ends, and takes the link to the one with the old library along. Both are started again.
 */
WORLD_TEST(driver_swap, a_host_with_its_old_library_waits_for_a_neighbour_that_moves, NULL)
{
	const struct fw_message *create;

	new_runs_of(w, graph);
	hello(w, 3, "c", "f1");
	say(w, CLIENT, &(struct fw_message){.kind = FW_DRAIN, .drain = {"a", false}});
	create = taken(w, 3, FW_HOST_CREATE);
	cr_assert_not_null(create, "%s", w->log);
	speaking_epoch[1] = create->epoch;
	say_prepared(w, 3, 1, "f1", true);
	speaking_epoch[1] = 1;
	say_event(w, 1, 1, FW_STATE_DONE, "");
	say_exit(w, 1, 1, 0, 0, "");
	cr_assert_not_null(taken(w, 3, FW_HOST_WIRE), "%s", w->log);
	speaking_epoch[1] = create->epoch;
	speaking_epoch[2] = fails_on_probation(w)->epoch;
	say_prepared(w, 2, 2, "f2", false);
	cr_assert_not_null(taken(w, 2, FW_HOST_WIRE), "%s", w->log);
	cannot_be_wired(w, 3, 1);
	pass_beating(w, SECOND, 1, 3);
	cr_assert_not_null(taken(w, 3, FW_HOST_KILL), "%s", w->log);
	cannot_be_wired(w, 2, 2);
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "%s", w->log);
	for (uint32_t host = 1; host <= 2; host++) {
		const uint64_t worker = host == 1 ? 3 : 2;

		say_exit(w, worker, host, 137, 9, "");
		create = taken(w, worker, FW_HOST_CREATE);
		cr_assert_not_null(create, "%s", w->log);
		speaking_epoch[host] = create->epoch;
	}
	say_prepared(w, 3, 1, "f1", true);
	say_prepared(w, 2, 2, "f2", false);
	say_result(w, 3, 1, FW_HOST_WIRED);
	say_result(w, 2, 2, FW_HOST_WIRED);
	say_result(w, 2, 2, FW_HOST_STARTED);
	cr_expect(drv_core_moves(w->core, "app"), "f1 has not started");
	say_result(w, 3, 1, FW_HOST_STARTED);
	cr_expect_not(drv_core_moves(w->core, "app"));
	assert_has(w->log, "f1 runs again on worker c");
	assert_has(w->log, "f2 runs again on worker b");
}

Test(driver_swap, one_on_probation_that_leaves_a_drained_worker_gets_the_old_library_back)
{
	for (int yields = 0; yields < 2; yields++) {
		const struct fw_message *create;
		struct world w;

		new_runs_of(&w, graph);
		hello(&w, 3, "c", "f2");
		say(&w, CLIENT, &(struct fw_message){.kind = FW_DRAIN, .drain = {"b", false}});
		create = taken(&w, 3, FW_HOST_CREATE);
		cr_assert_not_null(create, "%s", w.log);
		if (yields == 1) {
			speaking_epoch[2] = create->epoch;
			say_prepared(&w, 3, 2, "f2", false);
			cr_assert_not_null(taken(&w, 2, FW_HOST_STOP));
			speaking_epoch[2] = 2;
		}
		fails_on_probation(&w);
		world_fini(&w);
	}
}
