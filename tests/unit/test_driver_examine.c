// SPDX-License-Identifier: Apache-2.0
#include "driver_world.h"

#define CLIENT 50
#define OTHER 51

static void examine(struct world *w, uint64_t client, uint64_t seq, const char *worker)
{
	struct fw_message message = {.kind = FW_EXAMINE, .seq = seq, .examine = {worker}};

	say(w, client, &message);
}

static void found(struct world *w, uint64_t worker, const char *what)
{
	struct fw_finding finding = {"memlock", true, what, "copies", "ulimit -l"};
	struct fw_message message = {.kind = FW_EXAMINED, .examined = {"", &finding, 1}};

	say(w, worker, &message);
}

static void expect_found(struct world *w, uint64_t client, uint64_t seq, const char *what)
{
	const struct fw_message *answer = must_take(w, client, FW_EXAMINED);
	cr_expect_eq(answer->reply_to, seq);
	cr_assert_eq(answer->examined.finding_count, 1);
	cr_expect_str_eq(answer->examined.findings[0].found, what);
	cr_expect_str_eq(answer->examined.findings[0].mend, "ulimit -l");
}

static void expect_refused(struct world *w, uint64_t client, uint64_t seq, const char *sentence)
{
	const struct fw_message *answer = must_take(w, client, FW_ANSWER);
	cr_expect_eq(answer->reply_to, seq);
	cr_expect_str_eq(answer->answer.failure.sentence, sentence);
}

WORLD_TEST(driver_examine, the_answer_goes_to_those_who_asked, world_init)
{
	const struct fw_message *question;

	client_hello(w, CLIENT, "one");
	client_hello(w, OTHER, "two");
	hello(w, 1, "a", NULL);
	hello(w, 2, "b", NULL);
	examine(w, CLIENT, 7, "b");
	examine(w, OTHER, 8, "a");
	question = must_take(w, 2, FW_EXAMINE);
	cr_expect_str_eq(question->examine.worker, "b");
	found(w, 2, "of b");
	expect_found(w, CLIENT, 7, "of b");
	cr_expect_null(taken(w, OTHER, FW_EXAMINED));
	found(w, 1, "of a");
	expect_found(w, OTHER, 8, "of a");
	found(w, 1, "unasked");
	cr_expect_null(taken(w, OTHER, FW_EXAMINED));
	cr_expect_null(taken(w, CLIENT, FW_EXAMINED));
	cr_expect_eq(w->closed_count, 0);
}

WORLD_TEST(driver_examine, two_who_ask_about_one_get_the_same, world_init)
{
	client_hello(w, CLIENT, "one");
	client_hello(w, OTHER, "two");
	hello(w, 1, "a", NULL);
	examine(w, CLIENT, 7, "a");
	examine(w, OTHER, 8, "a");
	found(w, 1, "once");
	expect_found(w, CLIENT, 7, "once");
	expect_found(w, OTHER, 8, "once");
}

WORLD_TEST(driver_examine, what_is_refused, world_init)
{
	client_hello(w, CLIENT, "one");
	hello(w, 1, "left", NULL);
	examine(w, CLIENT, 7, "lefd");
	expect_refused(w, CLIENT, 7, "there is no worker \"lefd\"; did you mean \"left\"?");
	examine(w, CLIENT, 8, "left");
	examine(w, CLIENT, 9, "left");
	expect_refused(w, CLIENT, 9, "a client asks about one worker at a time");
	found(w, 1, "the first");
	expect_found(w, CLIENT, 8, "the first");
	examine(w, CLIENT, 10, "left");
	found(w, 1, "the next");
	expect_found(w, CLIENT, 10, "the next");
}

WORLD_TEST(driver_examine, a_worker_that_goes_is_an_answer, world_init)
{
	client_hello(w, CLIENT, "one");
	hello(w, 1, "a", NULL);
	examine(w, CLIENT, 7, "a");
	step(w,
	     &(struct drv_event){.kind = DRV_EVENT_CLOSED, .connection = 1, .text = "it closed"});
	expect_refused(w, CLIENT, 7, "worker a went before it had looked at its node");
	hello(w, 2, "a", NULL);
	examine(w, CLIENT, 8, "a");
	found(w, 2, "again");
	expect_found(w, CLIENT, 8, "again");
}

WORLD_TEST(driver_examine, a_client_that_goes_is_forgotten, world_init)
{
	client_hello(w, CLIENT, "one");
	hello(w, 1, "a", NULL);
	examine(w, CLIENT, 7, "a");
	step(w, &(struct drv_event){
			.kind = DRV_EVENT_CLOSED, .connection = CLIENT, .text = "it closed"});
	found(w, 1, "for nobody");
	cr_expect_eq(w->closed_count, 0, "the worker has done nothing wrong");
}

WORLD_TEST(driver_examine, an_older_worker_is_not_asked, world_init)
{
	client_hello(w, CLIENT, "one");
	hello(w, 1, "a", NULL);
	for (size_t i = 0; i < w->core->session_count; i++)
		if (w->core->sessions[i]->role == FW_ROLE_WORKER)
			w->core->sessions[i]->minor = FW_EXAMINE_MINOR - 1;
	examine(w, CLIENT, 7, "a");
	cr_expect_null(taken(w, 1, FW_EXAMINE));
	expect_refused(
		w, CLIENT, 7,
		"worker a speaks protocol 1.11, and looks at its node from 1.12 on; install a newer frag there");
}
