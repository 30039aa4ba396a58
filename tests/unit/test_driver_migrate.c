// SPDX-License-Identifier: Apache-2.0
#include "driver_world.h"

#include <driverd/core/placement/placement.h>

/* Hosts that go on on another worker (on_failure: migrate), and when their leases are over. */

#define CLIENT 50
#define LEASE (10 * SECOND)
#define RATES (LEASE / 100) /* the driver waits longer, because clocks differ */

static const char graph[] = TWO_FRAGMENTS(
	"", ", on_failure: {policy: migrate, intensity: 2, period: 60s, backoff: 1s, lease: %s}");

static void spare_comes(struct world *w)
{
	hello(w, 3, "c", "f2");
}

/* It runs on a and b, and c would take f2 too. */
static void runs(struct world *w, const char *lease, bool has_spare)
{
	char text[1024];

	snprintf(text, sizeof(text), graph, lease);
	two_run(w, text);
	if (has_spare)
		spare_comes(w);
}

static void lose(struct world *w, uint64_t connection)
{
	step(w, &(struct drv_event){
			.kind = DRV_EVENT_CLOSED, .connection = connection, .text = "reset"});
}

/* Those that are left beat. */
static void pass_without_b(struct world *w, int64_t ns)
{
	for (int64_t i = 0; i < ns / (100 * MS); i++) {
		pass(w, 100 * MS);
		beat(w, 1);
		beat(w, 3);
	}
}

/* f2 is asked for on a worker, and comes as far as running there. */
static void runs_on(struct world *w, uint64_t connection, uint64_t epoch)
{
	const struct fw_message *m = must_take(w, connection, FW_HOST_CREATE);
	cr_assert_eq(m->epoch, epoch);
	speaking_epoch[2] = epoch;
	say_prepared(w, connection, 2, "f2", false);
	cr_assert_not_null(taken(w, 1, FW_HOST_WIRE), "its neighbour hears where it is");
	say_result(w, connection, 2, FW_HOST_WIRED);
	cr_assert_not_null(taken(w, connection, FW_HOST_START));
	say_result(w, connection, 2, FW_HOST_STARTED);
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_RUNNING);
}

static void ends_on(struct world *w, uint64_t connection)
{
	step(w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 2});
	say_event(w, 1, 1, FW_STATE_DONE, "");
	say_event(w, connection, 2, FW_STATE_DONE, "");
	say_stats(w, 1, 1, true, 20, 0);
	say_stats(w, connection, 2, true, 0, 12);
	say_exit(w, 1, 1, 0, 0, "");
	say_exit(w, connection, 2, 0, 0, "");
	cr_assert(w->ended, "%s", w->log);
}

/* That of any host of it, the first like the last. */
WORLD_TEST(driver_migrate, a_lease_that_an_earlier_driver_may_have_given_is_remembered, NULL)
{
	static const char lease[] = ", on_failure: {policy: migrate, lease: 5s}";
	static const struct {
		const char *of_f1, *of_f2;
	} rows[] = {{"", ""}, {lease, ""}, {"", lease}, {lease, lease}};

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		char text[600];

		if (i > 0)
			world_fini(w);
		world_init(w);
		snprintf(text, sizeof(text),
			 "frag: 1\napplication: app\nfragments:\n"
			 "  f1: {operators: {tx: {type: t}}%s}\n"
			 "  f2: {operators: {rx: {type: t}}%s}\n"
			 "flows: [f1.tx.out -> f2.rx.in]\n",
			 rows[i].of_f1, rows[i].of_f2);
		app(w, text);
		drv_lease_record_earlier(w->core->apps[0]);
		cr_expect_eq(w->core->outstanding != NULL, i > 0, "%zu", i);
	}
}

/* Of two hosts of a worker one may go on elsewhere, and the other, the first or the last, fails. */
WORLD_TEST(driver_migrate, no_restart_is_reported_of_what_fails_with_its_worker, NULL)
{
	static const char *const rows[] = {
		TWO_FRAGMENTS(", on_failure: {policy: migrate, lease: 0s}", ", host: x"),
		TWO_FRAGMENTS("", ", host: x, on_failure: {policy: migrate, lease: 0s}"),
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		const struct drv_notice *notice;
		uint64_t number = 0;

		if (i > 0)
			world_fini(w);
		memset(speaking_epoch, 0, sizeof(speaking_epoch));
		world_init(w);
		app(w, rows[i]);
		hello(w, 1, "a", NULL);
		say_prepared(w, 1, 1, "f1", true);
		say_prepared(w, 1, 2, "f2", false);
		for (uint32_t host = 1; host <= 2; host++)
			say_result(w, 1, host, FW_HOST_WIRED);
		for (uint32_t host = 1; host <= 2; host++)
			say_result(w, 1, host, FW_HOST_STARTED);
		cr_assert_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "%s", w->errors);
		lose(w, 1);
		assert_has(w->errors, i == 0 ? "which ran f2, was lost" : "which ran f1, was lost");
		cr_expect_null(strstr(w->log, "is started again"), "%s", w->log);
		while ((notice = drv_history_after(&w->core->history, number)) != NULL) {
			cr_expect_neq(notice->kind, FW_NOTICE_RESTART, "%s", notice->text);
			number = notice->number;
		}
		cr_expect_gt(number, 0);
	}
}

WORLD_TEST(driver_migrate, a_lost_worker_is_waited_for_until_its_lease_is_over, NULL)
{
	const struct fw_message *create;

	runs(w, "10s", true);
	pass_beating(w, SECOND, 1, 3);
	say_stats(w, 2, 2, false, 0, 5); /* some of them */
	lose(w, 2);
	cr_expect_str_eq(w->errors, "");
	cr_expect_null(taken(w, 1, FW_HOST_KILL));
	/* It was heard 0 s ago. */
	pass_without_b(w, LEASE + RATES - 100 * MS);
	cr_expect_null(taken(w, 3, FW_HOST_CREATE), "it may still run");
	pass_without_b(w, 100 * MS);
	create = must_take(w, 3, FW_HOST_CREATE);
	cr_expect_eq(create->epoch, 2);
	cr_expect_eq(create->create.lease_ns, LEASE);
	cr_expect(create->create.is_moved);
	cr_expect_eq(create->create.restarts, 1);
	speaking_epoch[2] = 2;
	say_prepared(w, 3, 2, "f2", false);
	cr_assert_not_null(taken(w, 1, FW_HOST_WIRE));
	say_result(w, 3, 2, FW_HOST_WIRED);
	say_result(w, 3, 2, FW_HOST_STARTED);
	assert_has(w->log, "f2 runs again on worker c, epoch 2");
	assert_has(w->core->apps[0]->fragments[1].place.reason, "worker c");
	ends_on(w, 3);
	cr_expect_eq(w->result, FRAGI_SUMMARY_STOPPED);
	assert_has(w->json, "\"sent\": 20, \"delivered\": 17");
	assert_has(w->json, "\"lost\": 3, \"in_flight\": 0, \"exact\": false");
	assert_has(w->json,
		   "\"lost_because\": \"worker b at 10.0.0.9:1, which ran f2, was lost: reset\"");
	assert_has(w->json, "\"worker\": \"c\"");
}

static void keeps_state(struct world *w)
{
	world_init_with(
		w, (struct drv_config){.version = "test", .keeps_state = true, .adopts = true});
}

static void written(struct world *w)
{
	step(w, &(struct drv_event){.kind = DRV_EVENT_PERSISTED, .change = w->persist});
}

/* A driver that comes back asks both workers of a host that had not got as far as the second. */
WORLD_TEST(driver_migrate, the_worker_before_is_recorded_until_the_host_runs_again, keeps_state)
{
	char text[1024];

	snprintf(text, sizeof(text), graph, "0");
	memset(speaking_epoch, 0, sizeof(speaking_epoch));
	app(w, text);
	written(w);
	both_come(w);
	both_prepare(w);
	both_run(w);
	cr_expect_str_eq(w->placed, "a\nb\n");
	spare_comes(w);
	lose(w, 2);
	pass_without_b(w, 100 * MS);
	cr_expect_null(taken(w, 3, FW_HOST_CREATE), "it is not recorded yet");
	cr_expect_str_eq(w->placed, "a\nc\n\tb\n");
	step(w, &(struct drv_event){
			.kind = DRV_EVENT_PERSISTED, .change = w->persist, .text = "it is full"});
	cr_expect_null(taken(w, 3, FW_HOST_CREATE), "the next driver would start one on b");
	written(w);
	runs_on(w, 3, 2);
	cr_expect_str_eq(w->placed, "a\nc\n");
}

WORLD_TEST(driver_migrate, while_the_disk_is_full_no_host_goes_elsewhere, keeps_state)
{
	char text[1024];

	snprintf(text, sizeof(text), graph, "0");
	memset(speaking_epoch, 0, sizeof(speaking_epoch));
	app(w, text);
	written(w);
	both_come(w);
	both_prepare(w);
	both_run(w);
	spare_comes(w);
	step(w, &(struct drv_event){
			.kind = DRV_EVENT_PERSISTED, .change = w->persist, .text = "it is full"});
	lose(w, 2);
	pass_without_b(w, 100 * MS);
	assert_has(w->log, "f2 waits for a worker: the state folder cannot be written");
	written(w);
	pass_without_b(w, 100 * MS);
	cr_expect_null(taken(w, 3, FW_HOST_CREATE), "it is not recorded yet");
	written(w);
	runs_on(w, 3, 2);
}

/* The lease is counted from the last BEAT, not from when the worker is given up. */
WORLD_TEST(driver_migrate, a_silent_worker_has_used_up_some_of_its_lease, NULL)
{
	runs(w, "10s", true);
	pass_beating(w, SECOND, 1, 3);
	pass_without_b(w, 3 * SECOND);
	assert_has(w->log, "worker b at 10.0.0.9:1, which ran f2, was lost: it has not been heard");
	pass_without_b(w, LEASE + RATES - 3 * SECOND - 100 * MS);
	cr_expect_null(taken(w, 3, FW_HOST_CREATE));
	pass_without_b(w, 100 * MS);
	runs_on(w, 3, 2);
}

WORLD_TEST(driver_migrate, without_a_lease_nothing_is_waited_for, NULL)
{
	runs(w, "0s", true);
	lose(w, 2);
	runs_on(w, 3, 2);
	ends_on(w, 3);
}

WORLD_TEST(driver_migrate, where_no_worker_fits_it_waits_for_one, NULL)
{
	runs(w, "0s", false);
	lose(w, 2);
	assert_has(w->log,
		   "f2 waits for a worker: no live worker names it, and none takes whatever fits");
	pass_beating(w, 60 * SECOND, 1, 1);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING);
	cr_expect_null(taken(w, 1, FW_HOST_CREATE));
	spare_comes(w);
	runs_on(w, 3, 2);
	ends_on(w, 3);
}

WORLD_TEST(driver_migrate, a_stop_does_not_wait_for_a_worker, NULL)
{
	runs(w, "1h", true);
	lose(w, 2);
	step(w, &(struct drv_event){.kind = DRV_EVENT_STOP, .signal = 2});
	say_event(w, 1, 1, FW_STATE_DONE, "");
	say_end(w, 1, 1, 20, 0, 0, 0);
	cr_expect(w->ended, "%s", w->log);
	cr_expect_null(taken(w, 3, FW_HOST_CREATE));
}

/* Its host has surely ended. */
WORLD_TEST(driver_migrate, a_worker_that_is_told_to_end_is_not_waited_for, NULL)
{
	struct fw_message message;

	runs(w, "1h", true);
	message = of_host(FW_HOST_EXIT, 2);
	message.exit.asked = true;
	message.exit.failure = (struct fw_failure){FRAGI_FAILURE_WORKER_LOST, "told to end", ""};
	say(w, 2, &message);
	runs_on(w, 3, 2);
}

WORLD_TEST(driver_migrate, it_stays_where_what_it_saved_is_as_long_as_that_works, NULL)
{
	const struct fw_message *create;

	runs(w, "1h", true);
	say_exit(w, 2, 2, 139, 11, "it crashed");
	create = must_take(w, 2, FW_HOST_CREATE);
	cr_expect_not(create->create.is_moved);
	speaking_epoch[2] = 2;
	say_exit(w, 2, 2, 3, 0, "cannot start a host: out of processes");
	cr_expect_null(taken(w, 2, FW_HOST_CREATE));
	pass_beating(w, SECOND, 1, 3);
	cr_expect_null(taken(w, 2, FW_HOST_CREATE));
	runs_on(w, 3, 3);
}

/* What its first worker knows of it is older than what has been lost with the other one. */
WORLD_TEST(driver_migrate, a_host_that_comes_back_has_moved_though_the_worker_between_is_lost, NULL)
{
	const struct fw_message *create, *past;

	runs(w, "0s", true);
	say_exit(w, 2, 2, 139, 11, "it crashed");
	cr_assert_not_null(taken(w, 2, FW_HOST_CREATE));
	speaking_epoch[2] = 2;
	say_exit(w, 2, 2, 3, 0, "cannot start a host: out of processes");
	pass_beating(w, SECOND, 1, 3);
	runs_on(w, 3, 3);
	pass_beating(w, 61 * SECOND, 1, 3);
	lose(w, 3);
	create = must_take(w, 2, FW_HOST_CREATE);
	cr_expect_eq(create->epoch, 4);
	cr_expect_eq(create->create.restarts, 3);
	cr_expect(create->create.is_moved);
	past = must_take(w, 2, FW_HOST_PAST);
	cr_expect_eq(past->epoch, 4);
}

WORLD_TEST(driver_migrate, lost_workers_count_as_failures, NULL)
{
	runs(w, "0s", true);
	lose(w, 2);
	runs_on(w, 3, 2);
	hello(w, 4, "d", "f2");
	lose(w, 3);
	pass_beating(w, SECOND, 1, 1);
	beat(w, 4);
	runs_on(w, 4, 3);
	lose(w, 4);
	assert_has(w->errors, "f2 on worker d failed again after 2 restarts within 60.0 s");
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_FAILING);
	say_exit(w, 1, 1, 137, 9, "");
	assert_has(w->json, "\"code\": \"worker_lost\"");
}

WORLD_TEST(driver_migrate, a_worker_that_knows_no_leases_gets_none, NULL)
{
	struct fw_message message = {.kind = FW_HELLO, .seq = 1};
	const char *fragments[] = {"f2"};

	runs(w, "10s", false);
	message.hello = (struct fw_hello){.major = FW_PROTOCOL_MAJOR,
					  .minor = DRV_LEASES_MINOR - 1,
					  .role = FW_ROLE_WORKER,
					  .name = "old",
					  .node = "node",
					  .clock = "node",
					  .version = "old",
					  .fragments = fragments,
					  .fragment_count = 1,
					  .has = {[FRAGI_AMOUNT_CPU] = 64 * FRAGI_AMOUNT_ONE}};
	say(w, 3, &message);
	lose(w, 2);
	pass_without_b(w, LEASE + SECOND);
	cr_expect_null(taken(w, 3, FW_HOST_CREATE));
	assert_has(w->log, "worker old is nearest: it is of an older frag, which knows no leases");
}

WORLD_TEST(driver_migrate, a_beat_says_what_was_heard_last, world_init)
{
	struct fw_message message = {.kind = FW_BEAT, .beat.sent_ns = 4711};
	const struct fw_message *answer = NULL, *next;

	hello(w, 1, "a", NULL);
	say(w, 1, &message);
	pass(w, 300 * MS);
	while ((next = taken(w, 1, FW_BEAT)) != NULL)
		answer = next;
	cr_assert_not_null(answer);
	cr_expect_eq(answer->beat.heard_ns, 4711);
	cr_expect_not(answer->beat.leaves);
	step(w, &(struct drv_event){.kind = DRV_EVENT_LEAVE});
	answer = must_take(w, 1, FW_BEAT);
	cr_expect_eq(answer->beat.heard_ns, 4711);
	cr_expect(answer->beat.leaves);
}

/* Its leases run out while it waits for the answer to its first beat. */
WORLD_TEST(driver_migrate, a_worker_that_is_heard_again_is_answered_at_once, world_init)
{
	struct fw_message message = {.kind = FW_BEAT, .beat.sent_ns = 4711};
	const struct fw_message *answer;

	hello(w, 1, "a", NULL);
	pass(w, 2 * SECOND);
	while (taken(w, 1, FW_BEAT) != NULL)
		;
	for (int i = 0; i < 2; i++) {
		message.beat.sent_ns += i; /* the second one is answered in its turn */
		say(w, 1, &message);
		pass(w, 0);
		answer = taken(w, 1, FW_BEAT);
		cr_assert_eq(answer != NULL, i == 0, "%s", w->log);
		cr_expect(answer == NULL || answer->beat.heard_ns == 4711);
	}
	assert_has(w->log, "worker a is heard again");
}

/* It failed when its workers were lost, and somebody starts it anew. The longest lease counts. */
WORLD_TEST(driver_migrate, another_run_of_the_name_waits_for_the_lease_too, NULL)
{
	static const char migrates[] =
		", on_failure: {policy: migrate, intensity: 2, period: 60s, backoff: 1s, lease: %s}";
	static const struct {
		const char *of_f1, *of_f2; /* its lease; NULL: none, so its loss is the end */
	} rows[] = {{NULL, "10s"}, {"10s", NULL}, {"10s", "5s"}, {"5s", "10s"}};

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++) {
		char of_f1[200] = "", of_f2[200] = "", text[1024];

		if (i > 0)
			world_fini(w);
		if (rows[i].of_f1 != NULL)
			snprintf(of_f1, sizeof(of_f1), migrates, rows[i].of_f1);
		if (rows[i].of_f2 != NULL)
			snprintf(of_f2, sizeof(of_f2), migrates, rows[i].of_f2);
		snprintf(text, sizeof(text), TWO_FRAGMENTS("%s", "%s"), of_f1, of_f2);
		two_run(w, text);
		spare_comes(w);
		w->many_end = true;
		pass_beating(w, SECOND, 1, 3);
		lose(w, rows[i].of_f1 != NULL ? 1 : 2);
		lose(w, rows[i].of_f1 != NULL ? 2 : 1);
		if (rows[i].of_f1 != NULL && rows[i].of_f2 != NULL) { /* it waits for both */
			client_hello(w, CLIENT, "top");
			say(w, CLIENT,
			    &(struct fw_message){.kind = FW_STOP_APP,
						 .seq = 5,
						 .stop_app = {"app", true, false}});
		}
		cr_assert_eq(drv_core_app_count(w->core), 0, "%zu: %s", i, w->log);
		app(w, text);
		hello(w, 4, "d", "f1");
		assert_has(w->log,
			   "a host of its last run may still run on a worker that is out of reach");
		cr_expect_null(taken(w, 3, FW_HOST_CREATE), "%zu", i);
		for (int64_t k = 0; k < (LEASE + RATES) / (100 * MS) - 1; k++) {
			pass(w, 100 * MS);
			beat(w, 3);
			beat(w, 4);
		}
		cr_expect_null(taken(w, 3, FW_HOST_CREATE), "%zu", i);
		pass(w, 100 * MS);
		cr_expect_not_null(taken(w, 3, FW_HOST_CREATE), "%zu", i);
		cr_expect_not_null(taken(w, 4, FW_HOST_CREATE), "%zu", i);
	}
}

/* b is drained, c has prepared f2, and the process on b is to drain. */
static void is_being_moved(struct world *w, const char *lease)
{
	struct fw_message message = {.kind = FW_DRAIN, .seq = 9, .drain = {"b", false}};

	runs(w, lease, true);
	client_hello(w, 50, "top");
	say(w, 50, &message);
	cr_assert_not_null(taken(w, 3, FW_HOST_CREATE), "%s", w->log);
	speaking_epoch[2] = 2;
	say_prepared(w, 3, 2, "f2", false);
	cr_assert_not_null(taken(w, 2, FW_HOST_STOP), "%s", w->log);
}

WORLD_TEST(driver_migrate, a_worker_that_is_lost_while_its_host_moves_is_waited_for_too, NULL)
{
	const struct fw_message *kill, *create;

	is_being_moved(w, "10s");
	lose(w, 2);
	kill = taken(w, 3, FW_HOST_KILL);
	cr_assert_not_null(kill, "what was prepared is not used: %s", w->log);
	cr_expect_eq(kill->epoch, 2);
	say_exit(w, 3, 2, 137, 9, "");
	pass_without_b(w, LEASE + RATES - 100 * MS);
	cr_expect_null(taken(w, 3, FW_HOST_CREATE), "it may still run");
	pass_without_b(w, 200 * MS);
	create = must_take(w, 3, FW_HOST_CREATE);
	cr_expect_gt(create->epoch, 2);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING);
}

WORLD_TEST(driver_migrate, a_host_whose_new_worker_is_lost_while_it_moves_starts_where_it_was, NULL)
{
	const struct fw_message *create;

	is_being_moved(w, "10s");
	lose(w, 3);
	speaking_epoch[2] = 1;
	say_event(w, 2, 2, FW_STATE_DONE, "");
	say_end(w, 2, 2, 0, 5, 0, 0);
	create = must_take(w, 2, FW_HOST_CREATE);
	cr_expect_gt(create->epoch, 2);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING);
}

#define HERE "boot.net.user.7"
#define ELSEWHERE "other.net.user.7"

static const char chain[] =
	"frag: 1\n"
	"application: app\n"
	"fragments:\n"
	"  f1: {operators: {tx: {type: t}}}\n"
	"  f2: {operators: {relay: {type: t}}, on_failure: {policy: migrate, intensity: 3, period: 60s, lease: 0s}}\n"
	"  f3: {operators: {rx: {type: t}}, on_failure: {policy: migrate, intensity: 2, period: 60s, lease: 0s}}\n"
	"flows: [f1.tx.out -> f2.relay.in, f2.relay.out -> f3.rx.in]\n";

static void say_relay(struct world *w, uint64_t connection)
{
	struct fw_message message = of_host(FW_HOST_PREPARED, 2);
	struct fw_port ports[] = {
		{.name = "in", .type = "message", .dir = FRAG_IN, .has_codec = true},
		{.name = "out", .type = "message", .dir = FRAG_OUT, .has_codec = true}};
	struct fw_op op = {.name = "relay", .type = "t", .ports = ports, .port_count = 2};
	struct fw_fragment fragment = {.name = "f2", .ops = &op, .op_count = 1};
	struct fw_address address = {"shm", "address", 7, ""};

	message.prepared = (struct fw_host_prepared){.ok = true,
						     .fragments = &fragment,
						     .fragment_count = 1,
						     .addresses = &address,
						     .address_count = 1,
						     .pid = 102};
	say(w, connection, &message);
}

/* f1 -> f2 -> f3, over shared memory, on three workers of one machine. */
static void chain_runs_as(struct world *w, const char *text)
{
	static const char *const names[] = {"a", "b", "c"};
	static const char *const fragments[] = {"f1", "f2", "f3"};
	struct table ends[] = {table_of("f1", true), table_of("f3", false)};

	world_init(w);
	memset(speaking_epoch, 0, sizeof(speaking_epoch));
	app(w, text);
	for (size_t i = 0; i < FRAG_COUNT_OF(names); i++)
		hello_by_memory(w, i + 1, names[i], fragments[i], HERE);
	for (size_t i = 0; i < FRAG_COUNT_OF(ends); i++) {
		ends[i].transport = "shm";
		ends[i].detail = "";
		say_table(w, 2 * i + 1, (uint32_t)(2 * i + 1), &ends[i]);
	}
	say_relay(w, 2);
	for (uint32_t host = 1; host <= 3; host++)
		say_result(w, host, host, FW_HOST_WIRED);
	for (uint32_t host = 1; host <= 3; host++)
		say_result(w, host, host, FW_HOST_STARTED);
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "%s", w->errors);
}

static void chain_runs(struct world *w)
{
	chain_runs_as(w, chain);
}

/* Of its hosts that may still run, the one whose lease is the longest. */
WORLD_TEST(driver_migrate, another_run_of_the_name_waits_for_all_leases, NULL)
{
	static const int leases[][2] = {{4, 10}, {10, 4}};
	static const char *const fragments[] = {"f1", "f2", "f3"};
	char text[1024];

	for (size_t i = 0; i < FRAG_COUNT_OF(leases); i++) {
		if (i > 0)
			world_fini(w);
		snprintf(
			text, sizeof(text),
			"frag: 1\napplication: app\nfragments:\n"
			"  f1: {operators: {tx: {type: t}}}\n"
			"  f2: {operators: {relay: {type: t}}, on_failure: {policy: migrate, lease: %ds}}\n"
			"  f3: {operators: {rx: {type: t}}, on_failure: {policy: migrate, lease: %ds}}\n"
			"flows: [f1.tx.out -> f2.relay.in, f2.relay.out -> f3.rx.in]\n",
			leases[i][0], leases[i][1]);
		chain_runs_as(w, text);
		w->many_end = true;
		for (uint64_t connection = 3; connection > 0; connection--)
			lose(w, connection);
		app(w, text);
		for (uint64_t k = 0; k < 3; k++)
			hello(w, 4 + k, (char[]){(char)('d' + k), '\0'}, fragments[k]);
		for (int64_t k = 0; k < (LEASE + RATES) / (100 * MS); k++) {
			cr_expect_null(taken(w, 5, FW_HOST_CREATE), "%zu: after %d00 ms", i,
				       (int)k);
			pass(w, 100 * MS);
			for (uint64_t c = 4; c < 7; c++)
				beat(w, c);
		}
		for (uint64_t c = 4; c < 7; c++)
			cr_expect_not_null(taken(w, c, FW_HOST_CREATE), "%zu: %s", i, w->log);
	}
}

/* f2 has to share the memory of both. */
WORLD_TEST(driver_migrate, none_goes_where_another_that_waits_for_a_worker_cannot_follow,
	   chain_runs)
{
	lose(w, 2);
	lose(w, 3);
	hello_by_memory(w, 4, "d", NULL, ELSEWHERE);
	cr_expect_null(taken(w, 4, FW_HOST_CREATE), "%s", w->log);
	hello_by_memory(w, 5, "e", NULL, HERE);
	cr_expect_not_null(taken(w, 5, FW_HOST_CREATE), "%s", w->log);
	cr_expect_not_null(taken(w, 5, FW_HOST_CREATE), "%s", w->log);
	cr_expect_str_eq(w->errors, "");
}

/* f2 waits for a worker, so f1 and f3 are to share their memory, each with the other one. */
WORLD_TEST(driver_migrate, the_memory_of_the_other_end_decides_who_may_stay, NULL)
{
	static const struct {
		const char *first, *last;
		bool waits, first_may, last_may;
	} cases[] = {
		{HERE, HERE, true, true, true},
		{HERE, ELSEWHERE, true, false, false},
		{ELSEWHERE, HERE, true, false, false},
		{HERE, HERE, false, true, true}, /* f2 runs here itself */
		{HERE, ELSEWHERE, false, true, false},
		{ELSEWHERE, HERE, false, false, true},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct drv_host *hosts;
		struct drv_session *session;

		if (i > 0)
			world_fini(w);
		chain_runs(w);
		w->core->actions = &w->actions; /* what is asked for is part of no step */
		hosts = w->core->apps[0]->hosts;
		session = hosts[1].now.session;
		hosts[0].memory = hosts[0].now.session->memory = cases[i].first;
		hosts[2].memory = hosts[2].now.session->memory = cases[i].last;
		if (cases[i].waits)
			hosts[1].now.session = NULL;
		cr_expect_eq(drv_candidate_may_stay(&hosts[0]), cases[i].first_may, "%zu", i);
		cr_expect_eq(drv_candidate_may_stay(&hosts[2]), cases[i].last_may, "%zu", i);
		hosts[1].now.session = session;
	}
}

/* f2 has lost both neighbours, of which one has crashed, and the other one is there. */
WORLD_TEST(driver_migrate, each_lost_link_is_judged, NULL)
{
	for (int crashed_first = 0; crashed_first < 2; crashed_first++) {
		struct fw_message lost;

		chain_runs(w);
		lost = of_host(FW_HOST_EVENT, 2);
		for (int i = 0; i < 2; i++) {
			lost.event = (struct fw_host_event){
				.state = FW_STATE_PEER_LOST,
				.peer = (i == 0) == (crashed_first == 1) ? 3 : 1,
				.failure = {FRAGI_FAILURE_EDGE_LOST, "no beat for 3.0 s", ""}};
			say(w, 2, &lost);
		}
		say_exit(w, 3, 3, 139, 11, "fraghost 103 of f3 crashed: signal 11 (SIGSEGV)");
		cr_expect_str_eq(w->errors, "");
		cr_expect_not_null(taken(w, 3, FW_HOST_CREATE), "it is started again");
		pass_beating(w, SECOND, 1, 3);
		assert_has(w->errors, "the data link between f2 on worker b and f1 on worker a");
		world_fini(w);
	}
	chain_runs(w);
}

/* Whoever reports it. */
WORLD_TEST(driver_migrate, a_link_that_is_none_is_not_judged, chain_runs)
{
	struct fw_message lost = of_host(FW_HOST_EVENT, 1);

	lost.event = (struct fw_host_event){
		.state = FW_STATE_PEER_LOST,
		.peer = 3,
		.failure = {FRAGI_FAILURE_EDGE_LOST, "no beat for 3.0 s", ""}};
	say(w, 1, &lost);
	pass_beating(w, 3 * SECOND, 1, 3);
	cr_expect_str_eq(w->errors, "");
}
