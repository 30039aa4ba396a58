// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/log.h>
#include <fragctl/driver.h>
#include <fragctl/top_window.h>
#include <track/cause.h>
#include <wire/message.h>

/*
 * Verbs of fragctl, whole, with a driver that is played by hand: it gives the answers of a test one
 * after the other, and then none. These functions take the place of fragctl/driver.c.
 */
#define ASKED_MAX 16

static const struct fw_message *answers;
static size_t answer_count, given, opened, asked_count;
static struct fw_message asked[ASKED_MAX]; /* without what they point to */

static int next_answer(struct fw_message **out)
{
	size_t size;

	if (given == answer_count)
		return CTL_MISSING;
	cr_assert_eq(fw_message_copy(&answers[given++], out, &size), 0);
	return CTL_OK;
}

int ctl_driver_open(struct ctl_driver *driver)
{
	(void)driver;
	opened++;
	return CTL_OK;
}

int ctl_driver_open_any(struct ctl_driver *driver)
{
	return ctl_driver_open(driver);
}

int ctl_driver_ask(struct ctl_driver *driver, struct fw_message *request,
		   struct fw_message **out_reply)
{
	(void)driver;
	cr_assert_lt(asked_count, ASKED_MAX);
	asked[asked_count++] = *request;
	return next_answer(out_reply);
}

int ctl_driver_answer(struct ctl_driver *driver, const struct fw_message *request,
		      struct fw_message **out_reply)
{
	(void)driver;
	(void)request;
	return next_answer(out_reply);
}

int ctl_driver_next(struct ctl_driver *driver, struct fw_message **out_message)
{
	(void)driver;
	return next_answer(out_message);
}

int ctl_driver_reopen(struct ctl_driver *driver)
{
	(void)driver;
	return CTL_MISSING;
}

void ctl_driver_close(struct ctl_driver *driver)
{
	(void)driver;
	opened -= opened > 0; /* it may not have come that far */
}

/* What a verb printed on both of its outputs, in order. */
static char printed[8192];

/* Runs a verb, given as its words, against these answers. Returns its exit code. */
static int verb(int (*run)(int, char **), const char *words, const struct fw_message *given_answers,
		size_t count)
{
	char copy[256], *argv[8] = {NULL}, *rest = copy;
	int argc = 0, outputs[2] = {dup(1), dup(2)}, code;
	FILE *file = tmpfile();
	size_t length;

	cr_assert_not_null(file);
	unsetenv("FRAG_BUILD"); /* of the tests, and no variable that a verb knows */
	snprintf(copy, sizeof(copy), "%s", words);
	while ((argv[argc] = strsep(&rest, " ")) != NULL)
		cr_assert_lt(++argc, 8);
	answers = given_answers;
	answer_count = count;
	given = asked_count = 0;
	fflush(NULL);
	dup2(fileno(file), 1);
	dup2(fileno(file), 2);
	code = run(argc, argv);
	fflush(NULL);
	for (int i = 0; i < 2; i++) {
		dup2(outputs[i], i + 1);
		close(outputs[i]);
	}
	rewind(file);
	length = fread(printed, 1, sizeof(printed) - 1, file);
	printed[length] = '\0';
	fclose(file);
	cr_expect_eq(given, answer_count, "%s: it took %zu of %zu answers", words, given, count);
	cr_expect_eq(opened, 0, "%s: what it opened is closed", words);
	return code;
}

static struct fw_application_row app_row(const char *name, const char *state)
{
	return (struct fw_application_row){.name = name, .state = state};
}

static struct fw_message state_of(struct fw_application_row *apps, uint32_t count)
{
	return (struct fw_message){.kind = FW_REPLY,
				   .reply = {.applications = apps, .application_count = count}};
}

static struct fw_message outcome_of(const char *name, enum fragi_summary_result result,
				    enum fragi_failure failure, int exit_code)
{
	return (struct fw_message){
		.kind = FW_OUTCOME,
		.run = 3,
		.outcome = {.name = name,
			    .reached = FW_ENDED,
			    .summary = {.application = name,
					.result = result,
					.exit_code = exit_code,
					.duration_ns = 1500000000,
					.failure = {.code = failure,
						    .sentence = failure != FRAGI_FAILURE_NONE
									? "the disk is full"
									: NULL}}}};
}

/* An application that was measured, and its cause. */
static struct fw_message looked_at(const char *name, bool is_last, enum fragi_cause_kind cause)
{
	return (struct fw_message){.kind = FW_LOOKED,
				   .looked = {.is_last = is_last,
					      .cause = (uint32_t)cause,
					      .op = FRAGI_LOOK_NONE,
					      .flow = FRAGI_LOOK_NONE,
					      .host = FRAGI_LOOK_NONE,
					      .look = {.application = name, .cause = "it waits"}}};
}

static const struct fw_message done = {.kind = FW_ANSWER, .run = 3};

/* Of several exit codes the first one that is not 0 is the verb's, whatever comes behind it. */
Test(verbs, stop_all_ends_with_the_first_failure)
{
	static const struct {
		int codes[3], expected;
	} rows[] = {
		{{0, 0, 0}, 0}, {{1, 0, 0}, 1}, {{0, 3, 0}, 3},
		{{0, 0, 4}, 4}, {{3, 1, 0}, 3}, {{0, 4, 1}, 4},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fw_application_row apps[3];
		struct fw_message messages[7];
		char name[3][2];

		for (int k = 0; k < 3; k++) {
			int code = rows[i].codes[k];

			snprintf(name[k], sizeof(name[k]), "%c", 'a' + k);
			apps[k] = app_row(name[k], "running");
			messages[1 + 2 * k] = done;
			messages[2 + 2 * k] = outcome_of(
				name[k], code == 0 ? FRAGI_SUMMARY_STOPPED : FRAGI_SUMMARY_FAILED,
				code == 0 ? FRAGI_FAILURE_NONE : FRAGI_FAILURE_OTHER, code);
		}
		messages[0] = state_of(apps, 3);
		cr_expect_eq(verb(ctl_stop, "stop --all", messages, 7), rows[i].expected, "row %zu",
			     i);
		for (int k = 0; k < 3; k++)
			cr_expect_eq(asked[1 + k].kind, FW_STOP_APP);
	}
}

Test(verbs, stop_says_how_it_ended)
{
	static const struct {
		enum fragi_summary_result result;
		enum fragi_failure failure;
		int code;
		const char *flags, *printed;
	} rows[] = {
		{FRAGI_SUMMARY_DONE, FRAGI_FAILURE_NONE, 0, "",
		 "a: done after 1.5 s; `fragctl status a` shows its summary\n"},
		{FRAGI_SUMMARY_STOPPED, FRAGI_FAILURE_NONE, 0, "",
		 "a: stopped after 1.5 s; `fragctl status a` shows its summary\n"},
		{FRAGI_SUMMARY_FAILED, FRAGI_FAILURE_OTHER, 1, "",
		 "fragctl: the disk is full\na: failed after 1.5 s; `fragctl status a` shows its summary\n"},
		/* A failure counts also where the result does not say so. */
		{FRAGI_SUMMARY_DONE, FRAGI_FAILURE_OTHER, 1, "",
		 "fragctl: the disk is full\na: failed after 1.5 s; `fragctl status a` shows its summary\n"},
		{FRAGI_SUMMARY_STOPPED, FRAGI_FAILURE_NONE, 0, " -o json",
		 "{\"application\": \"a\", \"run\": 3, \"state\": \"stopped\"}\n"},
		{FRAGI_SUMMARY_DONE, FRAGI_FAILURE_NONE, 0, " -o json",
		 "{\"application\": \"a\", \"run\": 3, \"state\": \"done\"}\n"},
		{FRAGI_SUMMARY_STOPPED, FRAGI_FAILURE_OTHER, 1, " -o json",
		 "fragctl: the disk is full\n{\"application\": \"a\", \"run\": 3, \"state\": \"failed\"}\n"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fw_message messages[] = {
			done,
			outcome_of("a", rows[i].result, rows[i].failure, rows[i].code),
		};
		char words[64];

		snprintf(words, sizeof(words), "stop a%s", rows[i].flags);
		cr_expect_eq(verb(ctl_stop, words, messages, 2), rows[i].code, "row %zu", i);
		cr_expect_str_eq(printed, rows[i].printed, "row %zu: %s", i, printed);
	}
}

/* Events by their numbers; a gap is told once, and not before the first one that came. */
Test(verbs, events_that_are_missing_are_counted)
{
	static const struct {
		uint64_t numbers[3];
		const char *missing;
	} rows[] = {
		{{1, 2, 3}, ""},
		{{7, 8, 9}, ""},
		{{1, 2, 4}, "fragctl: 1 event is missing: the driver keeps the last ones only\n"},
		{{1, 4, 5}, "fragctl: 2 events are missing: the driver keeps the last ones only\n"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fw_notice events[3];
		struct fw_message messages[] = {
			{.kind = FW_EVENTS, .events = {events, 2}},
			{.kind = FW_EVENTS, .events = {events + 2, 1}},
			{.kind = FW_EVENTS},
		};
		const char *first;

		for (int k = 0; k < 3; k++)
			events[k] = (struct fw_notice){.number = rows[i].numbers[k],
						       .kind = FW_NOTICE_START,
						       .application = "a",
						       .text = "begins"};
		cr_expect_eq(verb(ctl_events, "events", messages, 3), CTL_OK);
		first = strstr(printed, "fragctl: ");
		cr_expect_eq(first != NULL, rows[i].missing[0] != '\0', "row %zu: %s", i, printed);
		cr_expect(first == NULL ||
				  strncmp(first, rows[i].missing, strlen(rows[i].missing)) == 0,
			  "row %zu: %s", i, printed);
		for (size_t k = 0; k < 3; k++)
			cr_expect_eq(asked[k].watch.after,
				     k == 0 ? 0 : rows[i].numbers[k == 1 ? 1 : 2]);
	}
}

/* It goes on behind the last line that the driver has looked at, not the last one that came. */
Test(verbs, logs_go_on_behind_what_was_looked_at)
{
	struct fw_line lines[] = {
		{.number = 5, .level = FRAGI_LOG_INFO, .fragment = "f", .op = "tx", .text = "one"},
		{.number = 8, .level = FRAGI_LOG_WARN, .fragment = "f", .op = "rx", .text = "two"},
	};
	struct fw_message messages[] = {
		{.kind = FW_LOGS, .logs = {lines, 2, 11}},
		{.kind = FW_LOGS, .logs = {NULL, 0, 12}},
	};

	cr_expect_eq(verb(ctl_logs, "logs a", messages, 2), CTL_OK);
	cr_expect_eq(asked[0].watch_logs.after, 0);
	cr_expect_eq(asked[1].watch_logs.after, 11);
	cr_expect_not_null(strstr(printed, "driver f.tx: one\n"));
	cr_expect_not_null(strstr(printed, "driver f.rx: two\n"));
}

/* A name is one of a list, not a part of one. */
Test(verbs, logs_of_a_fragment_that_is_not_there_are_refused)
{
	static const struct {
		const char *hosts, *missing, *fragment;
		bool is_there;
	} rows[] = {
		{"f1, f2", "", "f1", true},     {"f1, f2", "", "f2", true},
		{"f1, f22", "", "f2", false},   {"f11, f2", "", "f1", false},
		{"xf1, f2", "", "f1", false},   {"f11, f1", "", "f1", true},
		{"f1", "f3, f4", "f3", true},   {"f1", "f3, f4", "f4", true},
		{"f1", "f33, f4", "f3", false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fw_host_row host = {.fragments = rows[i].hosts, .state = "running"};
		struct fw_application_row app = app_row("a", "running");
		struct fw_message messages[2];
		char words[64];

		app.hosts = &host;
		app.host_count = 1;
		app.missing = rows[i].missing;
		messages[0] = state_of(&app, 1);
		messages[1] = (struct fw_message){.kind = FW_LOGS};
		snprintf(words, sizeof(words), "logs a/%s", rows[i].fragment);
		cr_expect_eq(verb(ctl_logs, words, messages, rows[i].is_there ? 2 : 1),
			     rows[i].is_there ? CTL_OK : CTL_USAGE, "row %zu", i);
	}
}

/* What is not well is named, the first of several; what is well is counted. */
Test(verbs, health_names_the_first_that_is_not_well)
{
	static const struct {
		const char *app, *first_host, *second_host, *worker, *printed;
		int code;
	} rows[] = {
		{"running", "running", "running", "live", "ok: 1 application, 1 worker\n", 0},
		{"running", "running", "done", "live", "ok: 1 application, 1 worker\n", 0},
		{"running", "done", "wired", "live", "a: f2 on worker w2 is wired\n", 1},
		{"running", "wired", "killed", "lost", "a: f1 on worker w1 is wired\n", 1},
		{"waiting", "running", "running", "lost", "a waits for workers that take f3\n", 1},
		{"preparing", "wired", "running", "live", "a is preparing\n", 1},
		{"running", "running", "running", "lost", "worker w is lost; it ran a/f9\n", 1},
		{"running", "running", "running", "suspect", "worker w does not answer\n", 1},
		{"running", "running", "running", "joining", "ok: 1 application, 0 workers\n", 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fw_host_row hosts[] = {
			{.fragments = "f1", .worker = "w1", .state = rows[i].first_host},
			{.fragments = "f2", .worker = "w2", .state = rows[i].second_host},
		};
		struct fw_worker_row worker = {.name = "w", .state = rows[i].worker, .ran = "a/f9"};
		struct fw_application_row app = app_row("a", rows[i].app);
		struct fw_message message;

		app.hosts = hosts;
		app.host_count = 2;
		app.missing = "f3";
		message = state_of(&app, 1);
		message.reply.workers = &worker;
		message.reply.worker_count = 1;
		cr_expect_eq(verb(ctl_health, "health", &message, 1), rows[i].code, "row %zu", i);
		cr_expect_str_eq(printed, rows[i].printed, "row %zu", i);
	}
}

/* Of one that has ended nothing is measured, whatever --for says; its bounds are times too. */
Test(verbs, health_measures_what_runs)
{
	struct fw_application_row app = app_row("a", "running");
	struct fw_ended_row ended = {.name = "b", .result = FRAGI_SUMMARY_DONE};
	struct fw_message state = state_of(&app, 1), messages[2];
	static const struct {
		const char *words, *printed;
		int code;
		size_t answers;
	} rows[] = {
		{"health b --for 1s", "ok: b: done\n", 0, 1},
		{"health a --for 1s", "ok: a: runs\n", 0, 2},
		{"health a --for 250ms", "ok: a: runs\n", 0, 2},
		{"health a --for 5s", "ok: a: runs\n", 0, 2},
		{"health a --for 249ms", "fragctl: --for \"249ms\" is no time from 250ms to 5s\n",
		 2, 0},
		{"health a --for 5001ms", "fragctl: --for \"5001ms\" is no time from 250ms to 5s\n",
		 2, 0},
	};

	state.reply.ended = &ended;
	state.reply.ended_count = 1;
	messages[0] = state;
	messages[1] = looked_at("a", true, FRAGI_CAUSE_NONE);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cr_expect_eq(verb(ctl_health, rows[i].words, messages, rows[i].answers),
			     rows[i].code, "row %zu", i);
		cr_expect_str_eq(printed, rows[i].printed, "row %zu", i);
	}
}

/* The cause of the second of two applications is as bad as that of the first. */
Test(verbs, health_looks_at_all_that_was_measured)
{
	static const enum fragi_cause_kind kinds[][2] = {
		{FRAGI_CAUSE_UNMEASURED, FRAGI_CAUSE_UNMEASURED + 1},
		{FRAGI_CAUSE_UNMEASURED + 1, FRAGI_CAUSE_UNMEASURED},
		{FRAGI_CAUSE_UNMEASURED, FRAGI_CAUSE_UNMEASURED},
	};

	for (size_t i = 0; i < 3; i++) {
		struct fw_application_row apps[] = {app_row("a", "running"),
						    app_row("b", "running")};
		struct fw_message messages[3] = {state_of(apps, 2)};

		for (uint32_t k = 0; k < 2; k++)
			messages[1 + k] = looked_at(k == 0 ? "a" : "b", k == 1, kinds[i][k]);
		cr_expect_eq(verb(ctl_health, "health --for 1s", messages, 3), i == 2 ? 0 : 1,
			     "row %zu: %s", i, printed);
	}
}

/* Whichever of several applications runs is measured; where none does, nothing is. */
Test(verbs, status_measures_where_one_runs)
{
	static const struct {
		const char *states[2], *words;
		bool measures;
	} rows[] = {
		{{"running", "waiting"}, "status", true},
		{{"waiting", "running"}, "status", true},
		{{"waiting", "preparing"}, "status", false},
		{{"running", "waiting"}, "status a", true},
		{{"running", "waiting"}, "status b", false},
		{{"running", "running"}, "status --no-wait", false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fw_application_row apps[] = {app_row("a", rows[i].states[0]),
						    app_row("b", rows[i].states[1])};
		struct fw_message messages[] = {state_of(apps, 2),
						looked_at("a", true, FRAGI_CAUSE_NONE)};

		cr_expect_eq(verb(ctl_status, rows[i].words, messages, 1 + rows[i].measures),
			     CTL_OK, "row %zu: %s", i, printed);
	}
}

/* A step of a drain: what the driver says of the worker and its hosts. */
struct drain_step {
	int fragments;        /* on the worker; -1: it is gone */
	const char *stays[2]; /* of each host there; NULL: there is none */
};

static void expect_drain(const char *words, const struct drain_step *steps, size_t count,
			 const char *expected)
{
	struct fw_worker_row workers[8];
	struct fw_host_row hosts[8][3];
	struct fw_application_row apps[8];
	struct fw_message messages[9] = {{.kind = FW_ANSWER}};

	for (size_t i = 0; i < count; i++) {
		uint32_t host_count = 0;

		/* One on another worker, which is nothing to wait for. */
		hosts[i][host_count++] = (struct fw_host_row){
			.fragments = "f0", .worker = "w2", .state = "running", .stays = ""};
		for (int k = 0; k < 2 && steps[i].stays[k] != NULL; k++)
			hosts[i][host_count++] =
				(struct fw_host_row){.fragments = k == 0 ? "f1" : "f2",
						     .worker = "w",
						     .state = "running",
						     .stays = steps[i].stays[k]};
		apps[i] = app_row("a", "running");
		apps[i].hosts = hosts[i];
		apps[i].host_count = host_count;
		workers[i] = (struct fw_worker_row){.name = "w",
						    .address = "",
						    .state = "attached",
						    .fragments = (uint32_t)steps[i].fragments,
						    .drained = true};
		messages[i + 1] = state_of(&apps[i], 1);
		messages[i + 1].reply.workers = &workers[i];
		messages[i + 1].reply.worker_count = steps[i].fragments >= 0;
	}
	cr_expect_eq(verb(ctl_drain, words, messages, count + 1), CTL_OK, "%s", words);
	cr_expect_str_eq(printed, expected, "%s: %s", words, printed);
}
#define STEPS(...)                                                                                 \
	(const struct drain_step[]){__VA_ARGS__},                                                  \
		sizeof((const struct drain_step[]){__VA_ARGS__}) / sizeof(struct drain_step)

#define NONE "no worker has 4 cores"
#define F1_STAYS                                                                                   \
	"f1 of a stays there: " NONE "; it moves when another worker takes it, `fragctl stop a` "  \
	"ends it\n"
#define F2_STAYS                                                                                   \
	"f2 of a stays there: its state is too large; `fragctl restart a` places it anew, "        \
	"`fragctl stop a` ends it\n"
#define EMPTY "w: drained, and empty\n"

/* It ends when the worker is empty or gone, and says once what stays, when nothing else is left. */
Test(verbs, drain_waits_until_the_worker_is_empty)
{
	static const char *const large = "its state is too large";

	expect_drain("drain w", STEPS({0, {NULL}}), EMPTY);
	expect_drain("drain w", STEPS({-1, {NULL}}), EMPTY);
	expect_drain("drain w", STEPS({1, {""}}, {1, {""}}, {0, {NULL}}),
		     "waits for f1 of a to leave w\n" EMPTY);
	expect_drain("drain w", STEPS({2, {"", ""}}, {1, {""}}, {-1, {NULL}}),
		     "waits for f1 of a to leave w\nwaits for f2 of a to leave w\n" EMPTY);
	/* A host that is not told yet is none that stays. */
	expect_drain("drain w", STEPS({1, {NULL}}, {1, {NONE}}, {1, {NONE}}, {0, {NULL}}),
		     F1_STAYS EMPTY);
	expect_drain("drain w", STEPS({2, {NONE, ""}}, {2, {NONE, large}}, {0, {NULL}}),
		     "waits for f2 of a to leave w\n" F1_STAYS F2_STAYS EMPTY);
	expect_drain("drain w --no-wait", STEPS({2, {NONE, ""}}), "w: drained\n" F1_STAYS);
	expect_drain("drain w --undo", STEPS({2, {NONE, ""}}),
		     "w: takes fragments again; what the drain moved stays where it is, "
		     "--rebalance moves it back\n");
	expect_drain("drain w --undo --rebalance", STEPS({0, {NULL}}),
		     "w: takes fragments again, and what the drain moved goes back\n");
	expect_drain("drain w --no-wait -o json", STEPS({2, {NONE, ""}}),
		     "{\"worker\": \"w\", \"drained\": true, \"still_there\": [\"a\"], \"stays\": "
		     "[{\"application\": \"a\", \"fragments\": \"f1\", \"reason\": \"" NONE
		     "\"}]}\n");
	expect_drain(
		"drain w -o json", STEPS({1, {""}}, {0, {NULL}}),
		"{\"worker\": \"w\", \"drained\": true, \"still_there\": [], \"stays\": []}\n");
}

/* What a person gives `swap` is checked before the driver is asked: the bounds themselves pass. */
Test(verbs, swap_has_its_words_and_a_probation_of_an_hour_at_most)
{
	static const struct {
		const char *words;
		int code;
		int64_t probation_ns;
	} rows[] = {
		{"swap a f --library x.so", CTL_OK, 10000000000},
		{"swap a f --library x.so --probation 0s", CTL_OK, 0},
		{"swap a f --library x.so --probation 1h", CTL_OK, 3600000000000},
		{"swap a f --library x.so --probation 3600001ms", CTL_USAGE, 0},
		{"swap a f --library x.so --probation 10", CTL_USAGE, 0},
		{"swap a f --library x.so --probation -1s", CTL_USAGE, 0},
		{"swap a f", CTL_USAGE, 0},
		{"swap a --library x.so", CTL_USAGE, 0},
		{"swap a f g --library x.so", CTL_USAGE, 0},
		{"swap a f! --library x.so", CTL_USAGE, 0},
		{"swap a f --library x.so --replaces y.so", CTL_OK, 10000000000},
		{"swap a f --library= ", CTL_USAGE, 0},
		{"swap a f --library x.so --replaces=", CTL_USAGE, 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cr_expect_eq(verb(ctl_swap, rows[i].words, &done, rows[i].code == CTL_OK),
			     rows[i].code, "%s: %s", rows[i].words, printed);
		cr_expect_eq(asked_count, rows[i].code == CTL_OK, "%s", rows[i].words);
		if (rows[i].code == CTL_OK)
			cr_expect_eq(asked[0].swap.probation_ns, rows[i].probation_ns, "%s",
				     rows[i].words);
	}
}

static struct fw_message *copy_of(const struct fw_message *message)
{
	struct fw_message *copy;
	size_t size;

	cr_assert_eq(fw_message_copy(message, &copy, &size), 0);
	return copy;
}

/* Tables that are as before come once: the next windows have them, with times of their own. */
Test(verbs, windows_share_tables_that_are_the_same)
{
	static const struct {
		uint64_t run;
		bool is_same;
		uint32_t apps; /* afterwards in the next window */
	} rows[] = {{3, true, 1}, {4, true, 0}, {4, false, 1}, {3, false, 1}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (int order = 0; order < 2; order++) { /* in which they are given back */
			struct ctl_top_window first = {0}, second = {0}, third = {0};
			struct fw_message message = looked_at("a", true, FRAGI_CAUSE_NONE);

			message.run = 3;
			message.looked.look.unix_ns = 100;
			cr_assert_eq(ctl_top_window_add(&first, NULL, copy_of(&message)), CTL_OK);
			message.run = rows[i].run;
			message.looked.is_same = rows[i].is_same;
			message.looked.look.unix_ns = 200;
			cr_assert_eq(ctl_top_window_add(&second, &first, copy_of(&message)),
				     CTL_OK);
			cr_expect_eq(second.count, rows[i].apps, "row %zu", i);
			message.looked.is_same = true;
			message.looked.look.unix_ns = 300;
			cr_assert_eq(ctl_top_window_add(&third, &second, copy_of(&message)),
				     CTL_OK);
			cr_expect_eq(third.count, rows[i].apps, "row %zu", i);
			ctl_top_window_free(order == 0 ? &first : &third);
			if (second.count > 0) {
				cr_expect_eq(second.apps[0].look.unix_ns, 200, "row %zu", i);
				cr_expect_str_eq(second.apps[0].look.application, "a");
			}
			ctl_top_window_free(&second);
			cr_expect_eq((order == 0 ? third : first).count,
				     order == 0 ? rows[i].apps : 1);
			if (order == 0 && third.count > 0)
				cr_expect_eq(third.apps[0].look.unix_ns, 300, "row %zu", i);
			ctl_top_window_free(order == 0 ? &third : &first);
		}
	}
}
