// SPDX-License-Identifier: Apache-2.0
#include "driver_world.h"

#define REPORTER 9

/* A reporter that speaks for the session of that WELCOME. */
static void reporter_hello(struct world *w, uint64_t connection, const struct fw_welcome *session)
{
	struct fw_message message = {.kind = FW_HELLO, .seq = 1};

	message.hello = (struct fw_hello){.major = FW_PROTOCOL_MAJOR,
					  .role = FW_ROLE_REPORTER,
					  .session = session->session,
					  .version = "test"};
	memcpy(message.hello.secret, session->secret, FW_SECRET_BYTES);
	say(w, connection, &message);
}

/* The keys of the worker a, proven on the connection of its session and on another one. */
static const struct fw_identity old_key = {
	.name = "old", .roles = FW_ROLE_BIT(FW_ROLE_WORKER), .serial = 1, .binding = {7}};
static const struct fw_identity new_key = {
	.name = "new", .roles = FW_ROLE_BIT(FW_ROLE_WORKER), .serial = 2, .binding = {8}};

/* A worker, or its reporter, that has proven `by` on this connection. */
static void exchange_hello(struct world *w, uint64_t connection, const struct fw_welcome *session,
			   const struct fw_identity *by, uint32_t minor,
			   const uint8_t binding[FW_BINDING_BYTES])
{
	struct fw_message message = {.kind = FW_HELLO, .seq = 1};

	message.hello = (struct fw_hello){.major = FW_PROTOCOL_MAJOR,
					  .minor = minor,
					  .role = FW_ROLE_REPORTER,
					  .session = session->session,
					  .version = "test"};
	memcpy(message.hello.secret, session->secret, FW_SECRET_BYTES);
	memcpy(message.hello.binding, binding, FW_BINDING_BYTES);
	w->identity = by;
	say(w, connection, &message);
	w->identity = NULL;
}

static const char *key_of(const struct world *w, uint64_t connection)
{
	return drv_core_identity(w->core, connection, NULL)->name;
}

static void end_connection(struct world *w, uint64_t connection)
{
	step(w, &(struct drv_event){
			.kind = DRV_EVENT_CLOSED, .connection = connection, .text = "it closed"});
}

/* An application runs on the workers a and b; returns the session of a. */
static const struct fw_welcome *begin(struct world *w)
{
	world_init(w);
	to_running(w);
	return &taken(w, 1, FW_WELCOME)->welcome;
}

/* The same, and they have a key. */
static const struct fw_welcome *begin_with_key(struct world *w)
{
	world_init(w);
	w->identity = &old_key;
	to_running(w);
	w->identity = NULL;
	return &taken(w, 1, FW_WELCOME)->welcome;
}

/* Returns why. */
static const char *expect_refused(struct world *w, uint64_t connection)
{
	const struct fw_message *refused = must_take(w, connection, FW_REFUSED);
	cr_expect_eq(refused->reply_to, 1);
	cr_expect_eq(refused->refused.failure.code, FRAGI_FAILURE_SESSION_REFUSED);
	cr_expect(is_closed(w, connection));
	return refused->refused.failure.sentence;
}

WORLD_TEST(driver_reporter, its_counts_are_those_of_the_lost_worker, NULL)
{
	const struct fw_welcome *a = begin(w), *answer;

	say_stats(w, 1, 1, false, 2, 0);
	reporter_hello(w, REPORTER, a);
	answer = &taken(w, REPORTER, FW_WELCOME)->welcome;
	cr_expect_eq(answer->session, a->session);
	cr_expect_str_eq(answer->name, "a");
	say_stats(w, REPORTER, 1, true, 5, 0);
	say_stats(w, 1, 1, false, 3, 0); /* was under way on the other connection */
	end_connection(w, REPORTER);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "%s", w->errors);
	cr_expect_eq(w->closed_count, 0);
	end_connection(w, 1);
	cr_expect_not(is_closed(w, REPORTER), "it had closed itself");
	assert_has(w->errors, "worker a at 10.0.0.9:1, which ran f1, was lost: it closed");
	say_end(w, 2, 2, 0, 3, 137, 9);
	cr_assert(w->ended);
	assert_has(w->json, "\"sent\": 5, \"delivered\": 3");
	assert_has(w->json, "\"lost\": 2, \"in_flight\": 0, \"exact\": true");
}

WORLD_TEST(driver_reporter, one_without_the_secret_changes_nothing, NULL)
{
	struct fw_welcome a = *begin(w);

	a.secret[0] ^= 1;
	reporter_hello(w, REPORTER, &a);
	expect_refused(w, REPORTER);
	a.secret[0] ^= 1;
	a.session++;
	reporter_hello(w, REPORTER + 1, &a);
	expect_refused(w, REPORTER + 1);
	a.session = 0;
	reporter_hello(w, REPORTER + 2, &a);
	expect_refused(w, REPORTER + 2);
	cr_expect_eq(w->closed_count, 3);
	cr_expect_eq(drv_core_session_count(w->core), 2);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "%s", w->errors);
}

WORLD_TEST(driver_reporter, one_that_comes_after_the_end_of_its_session_changes_nothing, NULL)
{
	struct fw_welcome a = *begin(w);

	end_connection(w, 1);
	reporter_hello(w, REPORTER, &a);
	expect_refused(w, REPORTER);
	cr_expect_eq(drv_core_session_count(w->core), 1);
}

WORLD_TEST(driver_reporter, a_client_has_none, NULL)
{
	begin(w);
	client_hello(w, 3, "top");
	reporter_hello(w, REPORTER, &taken(w, 3, FW_WELCOME)->welcome);
	expect_refused(w, REPORTER);
}

WORLD_TEST(driver_reporter, it_may_send_final_counts_only, NULL)
{
	static const enum fw_kind kinds[] = {
		FW_HELLO,      FW_WELCOME,    FW_BEAT,      FW_HOST_CREATE, FW_HOST_PREPARED,
		FW_HOST_EVENT, FW_HOST_STATS, FW_HOST_EXIT, FW_REQUEST,     FW_LEAVE};
	const struct fw_welcome *a = begin(w);

	for (uint64_t i = 0; i < FRAG_COUNT_OF(kinds); i++) {
		struct fw_message message = of_host(kinds[i], 1);

		reporter_hello(w, REPORTER + i, a);
		cr_expect_not_null(taken(w, REPORTER + i, FW_WELCOME));
		message.hello.major = kinds[i] == FW_HELLO ? FW_PROTOCOL_MAJOR : 0;
		if (kinds[i] == FW_HELLO)
			message.hello.role = FW_ROLE_WORKER;
		if (kinds[i] == FW_WELCOME)
			message.welcome = *a;
		if (kinds[i] == FW_HOST_CREATE)
			message.create = (struct fw_host_create){.beat_ns = 1, .dead_ns = 1};
		if (kinds[i] == FW_HOST_EVENT)
			message.event = (struct fw_host_event){
				.state = FW_STATE_FAILED,
				.failure = {FRAGI_FAILURE_HOST_FAILED, "it lies", ""}};
		if (kinds[i] == FW_REQUEST)
			message.request.what = FW_REQUEST_STATE;
		say(w, REPORTER + i, &message);
		cr_expect(is_closed(w, REPORTER + i), "%s", fw_kind_name(kinds[i]));
	}
	cr_expect_eq(w->closed_count, FRAG_COUNT_OF(kinds));
	cr_expect_eq(drv_core_session_count(w->core), 2);
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "%s", w->errors);
}

WORLD_TEST(driver_reporter, it_reports_hosts_of_its_own_session_only, NULL)
{
	reporter_hello(w, REPORTER, begin(w));
	say_stats(w, REPORTER, 2, true, 0, 99);
	cr_expect_eq(w->closed_count, 0);
	say_stats(w, 2, 2, false, 0, 3);
	pass_beating(w, SECOND, 1, 2);
	assert_has(w->progress, "3 messages");
}

WORLD_TEST(driver_reporter, it_is_no_sign_that_its_worker_lives, NULL)
{
	reporter_hello(w, REPORTER, begin(w));
	for (int i = 0; i < 31; i++) {
		pass(w, 100 * MS);
		beat(w, 2);
		say_stats(w, REPORTER, 1, true, 5, 0);
	}
	assert_has(w->errors,
		   "worker a at 10.0.0.9:1, which ran f1, was lost: it has not been heard");
	cr_expect(is_closed(w, 1));
	cr_expect(is_closed(w, REPORTER), "it ends with its session");
}

WORLD_TEST(driver_reporter, a_later_one_takes_the_place_of_the_first, NULL)
{
	const struct fw_welcome *a = begin(w);

	reporter_hello(w, REPORTER, a);
	reporter_hello(w, REPORTER + 1, a);
	cr_expect(is_closed(w, REPORTER));
	cr_expect_not(is_closed(w, REPORTER + 1));
	say_stats(w, REPORTER + 1, 1, true, 5, 0);
	cr_expect_eq(w->closed_count, 1);
}

WORLD_TEST(driver_reporter, a_worker_exchanges_the_key_of_its_session, NULL)
{
	const struct fw_welcome *a = begin_with_key(w), *welcome;
	struct fw_identity third = new_key;
	const struct drv_notice *notice;

	exchange_hello(w, REPORTER + 5, a, &old_key, FW_PROTOCOL_MINOR, old_key.binding);
	cr_expect_not_null(taken(w, REPORTER + 5, FW_WELCOME));
	cr_expect_null(strstr(w->log, "goes on with"), "it is the same key");
	exchange_hello(w, REPORTER, a, &new_key, FW_PROTOCOL_MINOR, old_key.binding);
	welcome = &taken(w, REPORTER, FW_WELCOME)->welcome;
	cr_expect_eq(welcome->session, a->session);
	cr_expect_eq(welcome->beat_ns, a->beat_ns);
	cr_expect_eq(welcome->dead_ns, a->dead_ns);
	cr_expect_str_eq(welcome->version, "test");
	assert_has(w->log, "worker a goes on with the key new in place of key old");
	cr_expect_str_eq(key_of(w, 1), "new");
	cr_expect_str_eq(key_of(w, 2), "old");
	/* the connection stays the one that it was */
	third.serial++;
	strcpy(third.name, "third");
	exchange_hello(w, REPORTER + 1, a, &third, FW_PROTOCOL_MINOR, new_key.binding);
	expect_refused(w, REPORTER + 1);
	cr_expect_str_eq(key_of(w, 1), "new");
	exchange_hello(w, REPORTER + 2, a, &third, FW_PROTOCOL_MINOR, old_key.binding);
	cr_expect_not_null(taken(w, REPORTER + 2, FW_WELCOME));
	cr_expect_str_eq(key_of(w, 1), "third");
	assert_has(w->log, "worker a goes on with the key third in place of key new");
	third.serial = 0;
	exchange_hello(w, REPORTER + 3, a, &third, FW_PROTOCOL_MINOR, old_key.binding);
	strcpy(third.name, "fourth");
	exchange_hello(w, REPORTER + 4, a, &third, FW_PROTOCOL_MINOR, old_key.binding);
	assert_has(w->log, "worker a goes on with the certificate third in place of key third");
	assert_has(w->log, "worker a goes on with the certificate fourth in place of certificate "
			   "third");
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "%s", w->errors);
	w->many_end = true;
	end_connection(w, 1);
	notice = drv_history_after(&w->core->history, w->core->history.last_notice - 1);
	while (notice->kind != FW_NOTICE_WORKER_LEFT)
		notice--;
	cr_expect_str_eq(notice->who, "certificate fourth");
	cr_expect_str_eq(notice->text, "a: it closed");
}

static const char no_key[] = "there is no key to exchange; give --key-file to both sides";

WORLD_TEST(driver_reporter, a_key_that_is_proven_for_another_connection_is_not_taken, NULL)
{
	const struct fw_welcome *a = begin_with_key(w);
	uint8_t other[FW_BINDING_BYTES];

	memcpy(other, old_key.binding, sizeof(other));
	other[FW_BINDING_BYTES - 1] ^= 1;
	exchange_hello(w, REPORTER, a, &new_key, FW_PROTOCOL_MINOR, other);
	cr_expect_str_eq(
		expect_refused(w, REPORTER),
		"its session is over another connection than here, so somebody who has the key old stands between; remove that one from the driver's file");
	exchange_hello(w, REPORTER + 1, a, NULL, FW_PROTOCOL_MINOR, old_key.binding);
	cr_expect_str_eq(expect_refused(w, REPORTER + 1), no_key);
	cr_expect_str_eq(key_of(w, 1), "old");
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "%s", w->errors);
}

WORLD_TEST(driver_reporter, one_whose_file_has_another_key_exchanges_none, NULL)
{
	static const uint8_t none[FW_BINDING_BYTES];
	const struct fw_welcome *a = begin_with_key(w);

	exchange_hello(w, REPORTER, a, &new_key, FW_PROTOCOL_MINOR, none);
	cr_expect_not_null(taken(w, REPORTER, FW_WELCOME));
	say_stats(w, REPORTER, 1, true, 5, 0);
	cr_expect_not(is_closed(w, REPORTER));
	cr_expect_str_eq(key_of(w, 1), "old");
}

/* Those of minor 16 exchange it without a binding, so they cannot be told from a thief. */
WORLD_TEST(driver_reporter, an_older_worker_keeps_its_key, NULL)
{
	static const uint8_t none[FW_BINDING_BYTES];
	const struct fw_welcome *a = begin_with_key(w);

	exchange_hello(w, REPORTER, a, &new_key, FW_BINDING_MINOR - 1, none);
	cr_expect_str_eq(
		expect_refused(w, REPORTER),
		"its frag is too old to exchange a key safely; restart it with the new one");
	cr_expect_str_eq(key_of(w, 1), "old");
	exchange_hello(w, REPORTER + 1, a, &old_key, FW_BINDING_MINOR - 1, none);
	cr_expect_not_null(taken(w, REPORTER + 1, FW_WELCOME), "its reporter");
}

WORLD_TEST(driver_reporter, without_a_key_there_is_none_to_exchange, NULL)
{
	static const uint8_t binding[FW_BINDING_BYTES] = {1};
	const struct fw_welcome *a = begin(w);

	exchange_hello(w, REPORTER, a, &new_key, FW_PROTOCOL_MINOR, binding);
	cr_expect_str_eq(expect_refused(w, REPORTER), no_key);
	exchange_hello(w, REPORTER + 1, a, NULL, FW_PROTOCOL_MINOR, binding);
	cr_expect_str_eq(expect_refused(w, REPORTER + 1), no_key);
}

/* It keeps its key then, and may try again. */
Test(driver_reporter, memory_that_is_short_exchanges_no_key)
{
	int64_t failures = 0;

	for (int64_t skip = 0; skip >= 0; skip++) {
		static struct world w;
		const struct fw_welcome *a = begin_with_key(&w);

		w.runs_short = true;
		w.short_skip = skip;
		exchange_hello(&w, REPORTER, a, &new_key, FW_PROTOCOL_MINOR, old_key.binding);
		if (w.short_skip < 0)
			skip = -2;
		w.runs_short = false;
		if (!w.broken) {
			bool is_welcome = taken(&w, REPORTER, FW_WELCOME) != NULL;

			cr_expect_eq(is_closed(&w, REPORTER), !is_welcome, "%d", (int)skip);
			cr_expect_str_eq(key_of(&w, 1), is_welcome ? "new" : "old");
			failures += !is_welcome;
		}
		world_fini(&w);
	}
	cr_expect_gt(failures, 1);
}
