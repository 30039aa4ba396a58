// SPDX-License-Identifier: Apache-2.0
#include "driver_world.h"

/* Parameters that clients change while an application runs. */

#define CLIENT 50

static const char restarting[] =
	TWO_FRAGMENTS("", ", on_failure: {policy: restart, intensity: 9, period: 60s}");

static void start(struct world *w, uint64_t seq, const char *text, const char *const *sets,
		  size_t set_count)
{
	struct fragi_spec_source source = {
		.graph = {"app.yaml", text, strlen(text)}, .sets = sets, .set_count = set_count};

	say_source(w, CLIENT,
		   (struct fw_message){.kind = FW_START_APP, .seq = seq, .start_app.name = ""},
		   &source);
	cr_assert_not_null(taken(w, CLIENT, FW_ANSWER));
}

/* The application of a driver, with hosts of epoch 1 or what speaking_epoch says, runs. */
static void runs(struct world *w, const char *text)
{
	const char *const sets[] = {"f1.tx.value=2", "f2.rx.value=3"};

	world_init(w);
	speaking_run = 1;
	memset(speaking_epoch, 0, sizeof(speaking_epoch));
	client_hello(w, CLIENT, "");
	both_come(w);
	start(w, 2, text, sets, 2);
	both_prepare(w);
	both_run(w);
	while (taken(w, 2, FW_HOST_CREATE) != NULL || taken(w, 1, FW_HOST_CREATE) != NULL)
		;
}

static void set(struct world *w, uint64_t seq, const char *text)
{
	say(w, CLIENT, &(struct fw_message){.kind = FW_SET, .seq = seq, .set = {"app", text}});
}

/* What the host of that connection was asked for; the number of its request. */
static uint64_t asked(struct world *w, uint64_t connection, const char *text)
{
	const struct fw_message *m = must_take(w, connection, FW_HOST_SET);
	cr_expect_str_eq(m->host_set.text, text);
	cr_expect_eq(m->host, connection);
	return m->host_set.number;
}

static void answers(struct world *w, uint32_t host, uint64_t number, const char *sentence)
{
	struct fw_message message = of_host(FW_HOST_SET_DONE, host);

	message.host_set_done.number = number;
	if (sentence[0] != '\0')
		message.host_set_done.failure =
			(struct fw_failure){FRAGI_FAILURE_USAGE, sentence, ""};
	say(w, host, &message);
}

static void expect_answer(struct world *w, uint64_t seq, enum fragi_failure code,
			  const char *sentence)
{
	const struct fw_message *m = must_take(w, CLIENT, FW_ANSWER);
	cr_expect_eq(m->reply_to, seq);
	cr_expect_eq(m->answer.failure.code, code, "%s", m->answer.failure.sentence);
	assert_has(m->answer.failure.sentence, sentence);
}

/* The --set of a source that was sent to a host, as "a, b". */
static void expect_sets(const struct fw_message *create, const char *expected)
{
	struct fragi_source source;
	char all[512] = "";

	cr_assert_not_null(create);
	cr_assert_eq(
		fragi_source_unpack(create->create.source, create->create.source_bytes, &source),
		0);
	for (size_t i = 0; i < source.source.set_count; i++) {
		strcat(all, i > 0 ? ", " : "");
		strcat(all, source.source.sets[i]);
	}
	cr_expect_str_eq(all, expected);
	fragi_source_fini(&source);
}

WORLD_TEST(driver_parameter, the_answer_of_the_host_is_the_answer, NULL)
{
	runs(w, two_fragments);
	set(w, 3, "f2.rx.value=5");
	cr_expect_null(taken(w, CLIENT, FW_ANSWER), "nobody knows yet");
	answers(w, 2, asked(w, 2, "f2.rx.value=5"), "");
	expect_answer(w, 3, FRAGI_FAILURE_NONE, "");
	set(w, 4, "f1.tx.value=500");
	answers(w, 1, asked(w, 1, "f1.tx.value=500"), "it is out of range");
	expect_answer(w, 4, FRAGI_FAILURE_USAGE, "it is out of range");
	assert_has(w->log, "refused to set f1.tx.value=500");
}

WORLD_TEST(driver_parameter, the_only_fragment_may_be_left_out, NULL)
{
	static const char one[] =
		"frag: 1\napplication: app\nfragments: {f1: {operators: {tx: {type: t}}}}\n";

	world_init(w);
	speaking_run = 1;
	memset(speaking_epoch, 0, sizeof(speaking_epoch));
	client_hello(w, CLIENT, "");
	both_come(w);
	start(w, 2, one, NULL, 0);
	say_prepared(w, 1, 1, "f1", true);
	say_result(w, 1, 1, FW_HOST_WIRED);
	say_result(w, 1, 1, FW_HOST_STARTED);
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "%s", w->errors);
	set(w, 3, "tx.value=1.5");
	answers(w, 1, asked(w, 1, "f1.tx.value=1.5"), "");
	expect_answer(w, 3, FRAGI_FAILURE_NONE, "");
	set(w, 4, "f1.tx.value=a.b.c");
	asked(w, 1, "f1.tx.value=a.b.c");
	set(w, 5, "tx=1.5");
	expect_answer(w, 5, FRAGI_FAILURE_USAGE, "is not understood");
}

WORLD_TEST(driver_parameter, several_changes_are_answered_each_for_itself, NULL)
{
	uint64_t first, second;

	runs(w, two_fragments);
	set(w, 3, "f2.rx.value=5");
	set(w, 4, "f2.rx.other=6");
	first = asked(w, 2, "f2.rx.value=5");
	second = asked(w, 2, "f2.rx.other=6");
	answers(w, 2, second, "no");
	expect_answer(w, 4, FRAGI_FAILURE_USAGE, "no");
	answers(w, 1, first, "");
	cr_expect_null(taken(w, CLIENT, FW_ANSWER), "another host was asked");
	answers(w, 2, first, "");
	expect_answer(w, 3, FRAGI_FAILURE_NONE, "");
	answers(w, 2, first, "no");
	cr_expect_null(taken(w, CLIENT, FW_ANSWER), "it is answered");
}

WORLD_TEST(driver_parameter, what_was_set_is_shown_and_remembered, NULL)
{
	const struct fw_message *m;

	runs(w, two_fragments);
	for (int i = 0; i < 3; i++) {
		const char *const texts[] = {"f2.rx.value=5", "f1.tx.value=6", "f2.rx.value=7"};
		uint32_t host = i == 1 ? 1 : 2;

		set(w, 3, texts[i]);
		answers(w, host, asked(w, host, texts[i]), "");
		w->now_ns += SECOND;
	}
	request_state(w, CLIENT, 9);
	m = must_take(w, CLIENT, FW_REPLY);
	cr_assert_eq(m->reply.applications[0].parameter_count, 2, "the last value counts");
	cr_expect_str_eq(m->reply.applications[0].parameters[0].name, "f1.tx.value");
	cr_expect_str_eq(m->reply.applications[0].parameters[0].value, "6");
	cr_expect_eq(m->reply.applications[0].parameters[0].age_ns, 2 * SECOND);
	cr_expect_str_eq(m->reply.applications[0].parameters[1].name, "f2.rx.value");
	cr_expect_str_eq(m->reply.applications[0].parameters[1].value, "7");
	say(w, CLIENT, &(struct fw_message){.kind = FW_WATCH, .seq = 10});
	m = must_take(w, CLIENT, FW_EVENTS);
	cr_expect_eq(m->events.rows[m->events.count - 1].kind, FW_NOTICE_SET);
	cr_expect_str_eq(m->events.rows[m->events.count - 1].text, "f2.rx.value=7");
}

/* Its host has it whole. */
WORLD_TEST(driver_parameter, a_password_that_was_set_is_shown_to_nobody, NULL)
{
	static const char text[] = "f2.rx.url=rtsp://ann:secret@camera";
	const struct fw_message *m;

	runs(w, two_fragments);
	set(w, 3, text);
	answers(w, 2, asked(w, 2, text), "");
	request_state(w, CLIENT, 9);
	m = must_take(w, CLIENT, FW_REPLY);
	cr_assert_eq(m->reply.applications[0].parameter_count, 1);
	cr_expect_null(strstr(m->reply.applications[0].parameters[0].value, "secret"));
	assert_has(m->reply.applications[0].parameters[0].value, "camera");
	cr_expect_null(strstr(w->log, "secret"));
}

WORLD_TEST(driver_parameter, a_host_that_is_started_again_begins_with_it, NULL)
{
	runs(w, restarting);
	set(w, 3, "f2.rx.value=5");
	answers(w, 2, asked(w, 2, "f2.rx.value=5"), "");
	expect_answer(w, 3, FRAGI_FAILURE_NONE, "");
	set(w, 4, "f2.rx.value=9");
	asked(w, 2, "f2.rx.value=9");
	say_exit(w, 2, 2, 139, 11, "fraghost 102 crashed");
	expect_answer(w, 4, FRAGI_FAILURE_HOST_FAILED, "f2 on worker b ended before it answered");
	step(w, &(struct drv_event){.kind = DRV_EVENT_TIMER});
	expect_sets(taken(w, 2, FW_HOST_CREATE), "f1.tx.value=2, f2.rx.value=5");
	set(w, 5, "f2.rx.value=5");
	expect_answer(w, 5, FRAGI_FAILURE_HOST_FAILED, "is being started again; try again");
}

WORLD_TEST(driver_parameter, a_restart_of_the_application_begins_with_it, NULL)
{
	runs(w, two_fragments);
	set(w, 3, "f2.rx.value=5");
	answers(w, 2, asked(w, 2, "f2.rx.value=5"), "");
	expect_answer(w, 3, FRAGI_FAILURE_NONE, "");
	say(w, CLIENT,
	    &(struct fw_message){.kind = FW_STOP_APP, .seq = 4, .stop_app = {"app", true, true}});
	both_are_killed(w);
	step(w, &(struct drv_event){.kind = DRV_EVENT_TIMER});
	expect_sets(taken(w, 2, FW_HOST_CREATE), "f1.tx.value=2, f2.rx.value=5");
}

WORLD_TEST(driver_parameter, a_host_that_does_not_answer_is_not_waited_for_for_ever, NULL)
{
	uint64_t number;

	runs(w, two_fragments);
	set(w, 3, "f2.rx.value=5");
	number = asked(w, 2, "f2.rx.value=5");
	for (int i = 0; i < 40; i++) {
		w->now_ns += 100 * MS;
		for (uint64_t connection = 1; connection <= 2; connection++)
			say(w, connection, &(struct fw_message){.kind = FW_BEAT});
		say(w, CLIENT, &(struct fw_message){.kind = FW_BEAT});
		step(w, &(struct drv_event){.kind = DRV_EVENT_TIMER});
	}
	expect_answer(w, 3, FRAGI_FAILURE_HOST_LATE,
		      "f2 on worker b did not answer in time; whether it has changed is not known");
	answers(w, 2, number, "");
	cr_expect_null(taken(w, CLIENT, FW_ANSWER));
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING);
}

WORLD_TEST(driver_parameter, what_the_driver_can_refuse_no_host_hears_of, NULL)
{
	static const struct {
		const char *name, *text;
		enum fragi_failure code;
		const char *sentence;
	} cases[] = {
		{"other", "f1.tx.value=1", FRAGI_FAILURE_APPLICATION_UNKNOWN,
		 "there is no application other"},
		{"app", "f3.tx.value=1", FRAGI_FAILURE_USAGE,
		 "unknown fragment \"f3\"; fragments: f1, f2"},
		{"app", "tx.value=1", FRAGI_FAILURE_USAGE,
		 "unknown fragment \"tx\"; fragments: f1, f2"},
		{"app", "f1=1.5", FRAGI_FAILURE_USAGE,
		 "is not understood; write FRAGMENT.OPERATOR.PARAMETER=VALUE"},
		{"app", "f1.tx.value", FRAGI_FAILURE_USAGE, "is not understood"},
		{"app", "", FRAGI_FAILURE_USAGE, "is not understood"},
	};

	runs(w, two_fragments);
	for (uint64_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		say(w, CLIENT,
		    &(struct fw_message){
			    .kind = FW_SET, .seq = 10 + i, .set = {cases[i].name, cases[i].text}});
		expect_answer(w, 10 + i, cases[i].code, cases[i].sentence);
	}
	cr_expect_null(taken(w, 1, FW_HOST_SET));
	say(w, CLIENT,
	    &(struct fw_message){.kind = FW_STOP_APP, .seq = 4, .stop_app = {"app", false, false}});
	cr_assert_not_null(taken(w, CLIENT, FW_ANSWER));
	set(w, 30, "f1.tx.value=1");
	expect_answer(w, 30, FRAGI_FAILURE_APPLICATION_UNKNOWN,
		      "app is draining; its parameters can be set while it runs");
}

WORLD_TEST(driver_parameter, a_client_that_goes_is_not_answered, NULL)
{
	uint64_t number;

	runs(w, two_fragments);
	set(w, 3, "f2.rx.value=5");
	number = asked(w, 2, "f2.rx.value=5");
	step(w, &(struct drv_event){
			.kind = DRV_EVENT_CLOSED, .connection = CLIENT, .text = "it left"});
	answers(w, 2, number, "");
	assert_has(w->log, "sets f2.rx.value=5");
	cr_expect_eq(drv_core_app_state(w->core), DRV_APP_RUNNING);
}

WORLD_TEST(driver_parameter, changes_that_wait_are_bounded, NULL)
{
	runs(w, two_fragments);
	for (uint64_t i = 0; i < DRV_SETS_MAX; i++) {
		if (i == DRV_REQUESTS_MAX / 2) { /* the beat lets it ask on */
			w->now_ns += 250 * MS;
			step(w, &(struct drv_event){.kind = DRV_EVENT_TIMER});
		}
		set(w, 10 + i, "f2.rx.value=5");
	}
	cr_expect_null(taken(w, CLIENT, FW_ANSWER));
	w->now_ns += 250 * MS;
	step(w, &(struct drv_event){.kind = DRV_EVENT_TIMER});
	set(w, 200, "f2.rx.value=5");
	expect_answer(w, 200, FRAGI_FAILURE_DRIVER_FULL, "64 changes of app are not answered yet");
}

WORLD_TEST(driver_parameter, an_older_worker_is_not_asked, world_init)
{
	struct fw_message message = {.kind = FW_HELLO, .seq = 1};
	const char *names[] = {"f1", "f2"};

	speaking_run = 1;
	memset(speaking_epoch, 0, sizeof(speaking_epoch));
	client_hello(w, CLIENT, "");
	message.hello = (struct fw_hello){.major = FW_PROTOCOL_MAJOR,
					  .minor = 3,
					  .role = FW_ROLE_WORKER,
					  .name = "old",
					  .fragments = names,
					  .fragment_count = 2,
					  .node = "node",
					  .clock = "node",
					  .memory = "node",
					  .version = "test"};
	say(w, 1, &message);
	start(w, 2, "frag: 1\napplication: app\nfragments: {f1: {operators: {tx: {type: t}}}}\n",
	      NULL, 0);
	say_prepared(w, 1, 1, "f1", true);
	say_result(w, 1, 1, FW_HOST_WIRED);
	say_result(w, 1, 1, FW_HOST_STARTED);
	cr_assert_eq(drv_core_app_state(w->core), DRV_APP_RUNNING, "%s", w->errors);
	set(w, 3, "f1.tx.value=1");
	expect_answer(w, 3, FRAGI_FAILURE_VERSION_REFUSED,
		      "worker old has a frag that cannot change parameters");
}
