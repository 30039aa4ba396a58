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

static void expect_refused(struct world *w, uint64_t connection)
{
	const struct fw_message *refused = must_take(w, connection, FW_REFUSED);
	cr_expect_eq(refused->reply_to, 1);
	cr_expect_eq(refused->refused.failure.code, FRAGI_FAILURE_SESSION_REFUSED);
	cr_expect(is_closed(w, connection));
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
