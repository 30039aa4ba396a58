// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/log.h>
#include <fragctl/driver.h>
#include <fragctl/look.h>
#include <fragctl/top_window.h>
#include <track/cause.h>

#include "expected.h"
#include "transcript.h"
#include "wire_messages.h"

/*
 * What verbs of fragctl ask a driver, and all that they print of its answers, compared with a
 * recorded text. The driver is played: its answers have something of its own in every field. The
 * first functions take the place of fragctl/driver.c.
 */
struct view {
	const char *words;
	/*
	 * what the driver answers, one after the other: Reply, Looked (the last one: l), Answer,
	 * Outcome, Events, loGs, eXplanation, Tapped; and then it is gone
	 */
	const char *answers;
};

static const struct view views[] = {
	{"list", "R"},
	{"list -o json", "R"},
	{"list --cause", "LlR"},
	{"list --cause -o json", "lR"},
	{"list a", "R"},
	{"list -o yaml", ""},
	{"status --no-wait", "R"},
	{"status", "RLl"},
	{"status a", "Rl"},
	{"status a -o json", "Rl"},
	{"status b", "RO"},
	{"status b -o json", "RO"},
	{"status none", "R"},
	{"status -o json", "RLl"},
	{"workers", "R"},
	{"workers -o json", "R"},
	{"events", "EE"},
	{"events -o json", "EE"},
	{"events --follow", "EEEEA"},
	{"logs a", "GG"},
	{"logs a -o json", "GG"},
	{"logs a/f", "RG"},
	{"logs a --follow", "GGGG"},
	{"explain a", "Xl"},
	{"explain a -o json", "Xl"},
	{"explain a --no-wait", "XR"},
	{"explain a f1", "X"},
	{"explain a f1 -o json", "X"},
	{"health", "R"},
	{"health a", "R"},
	{"health b -o json", "R"},
	{"health --for 1s", "RLl"},
	{"health a --for 1s -o json", "Rl"},
	{"top --once", "Ll"},
	{"top a --once", "l"},
	{"top a --once -o json", "l"},
	{"top --once --plain", "Ll"},
	{"top --plain", "lLll"},
	{"top --no-wait", "R"},
	{"top --no-wait -o json", "R"},
	{"top --every 249ms", ""},
	{"echo a f.x -n 2", "ATTT"},
	{"echo a f.x -n 2 -o json", "ATT"},
	{"echo a f.x -n 0", ""},
	{"echo a f.x --every 99ms", ""},
	{"set a f.op.p=3", "A"},
	{"set a f.op.p=3 -o json", "A"},
	{"restart a", "AO"},
	{"restart a --now -o json", "AO"},
	{"stop a", "AO"},
	{"stop a --now -o json", "AO"},
	{"stop --all", "RAOAO"},
	{"stop --all -o json", "RAOAO"},
	{"stop a --all", ""},
	{"drain w", "AE"},
	{"drain w -o json", "AE"},
};

static struct maker maker;
static const char *left;
static uint64_t last_seq;
static int opened;

static const char *one_of(const char *const *texts, uint32_t count)
{
	return texts[below(&maker, count)];
}

/* Names and states that verbs compare with what they know. */
static void name_reply(struct fw_reply *reply)
{
	static const char *const states[] = {"running", "running", "waiting", "starting", "ending"};
	static const char *const worker_states[] = {"live", "live", "lost", "suspect"};

	for (uint32_t i = 0; i < reply->application_count; i++) {
		reply->applications[i].name = i == 0 ? "a" : "c";
		reply->applications[i].state = one_of(states, 5);
		for (uint32_t h = 0; h < reply->applications[i].host_count; h++) {
			reply->applications[i].hosts[h].state = one_of(states, 5);
			reply->applications[i].hosts[h].fragments = h == 0 ? "f, g" : "h";
		}
		if (below(&maker, 2) == 0)
			reply->applications[i].missing = "";
	}
	for (uint32_t i = 0; i < reply->ended_count; i++)
		reply->ended[i].name = i == 0 ? "b" : one_of((const char *const[]){"a", "d"}, 2);
	for (uint32_t i = 0; i < reply->worker_count; i++) {
		reply->workers[i].name = i == 0 ? "w" : "v";
		reply->workers[i].state = one_of(worker_states, 4);
	}
	if (below(&maker, 4) != 0)
		reply->state_failure = "";
}

static void name_events(struct fw_events *events)
{
	static uint64_t number;

	for (uint32_t i = 0; i < events->count; i++) {
		number += below(&maker, 4) == 0 ? 2 : 1;
		events->rows[i].number = number;
	}
}

static enum fw_kind kind_of(char answer)
{
	static const struct {
		char answer;
		enum fw_kind kind;
	} kinds[] = {{'R', FW_REPLY},  {'L', FW_LOOKED},      {'l', FW_LOOKED}, {'A', FW_ANSWER},
		     {'a', FW_ANSWER}, {'O', FW_OUTCOME},     {'E', FW_EVENTS}, {'G', FW_LOGS},
		     {'T', FW_TAPPED}, {'X', FW_EXPLANATION}, {'W', FW_WELCOME}};
	size_t i = 0;

	while (kinds[i].answer != answer)
		i++;
	return kinds[i].kind;
}

static void make_answer(char answer, struct fw_message *message)
{
	struct fw_message passed;
	size_t size;

	make(&maker, kind_of(answer), message);
	message->reply_to = last_seq;
	if (message->kind == FW_REPLY)
		name_reply(&message->reply);
	if (message->kind == FW_EVENTS)
		name_events(&message->events);
	if (message->kind == FW_LOOKED) {
		message->looked.is_last = answer == 'l';
		message->looked.is_same = false;
		message->looked.cause =
			below(&maker, FRAGI_CAUSE_RULE + 2); /* and an unknown one */
		message->looked.look.application = answer == 'l' ? "a" : "c";
	}
	if (message->kind == FW_ANSWER && answer == 'A')
		message->answer.failure = (struct fw_failure){0};
	else if (message->kind == FW_ANSWER)
		message->answer.failure.code = 1 + below(&maker, FRAGI_FAILURES - 1);
	if (message->kind == FW_TAPPED) {
		uint8_t *frame;

		make(&maker, FW_PASSED, &passed);
		cr_assert_eq(fw_encode(&passed, &frame, &size), 0);
		message->tapped.passed = frame;
		message->tapped.size = (uint32_t)size;
	}
}

static int next_answer(struct fw_message **out)
{
	struct fw_message message;
	size_t size;

	if (*left == '\0')
		return ctl_fail(CTL_MISSING, "the driver is gone");
	make_answer(*left++, &message);
	cr_assert_eq(fw_message_copy(&message, out, &size), 0);
	if (message.kind == FW_TAPPED)
		fragi_free((void *)(uintptr_t)message.tapped.passed);
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

void ctl_driver_find(struct ctl_driver *driver)
{
	(void)driver;
}

int ctl_driver_ask(struct ctl_driver *driver, struct fw_message *request,
		   struct fw_message **out_reply)
{
	(void)driver;
	transcript_message("asks", request);
	request->seq = ++last_seq;
	return next_answer(out_reply);
}

int ctl_driver_send(struct ctl_driver *driver, struct fw_message *message)
{
	(void)driver;
	transcript_message("sends", message);
	return CTL_OK;
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

int ctl_top_on_screen(struct ctl_driver *driver, const struct ctl_driver *again, const char *name,
		      int64_t every_ns)
{
	(void)driver, (void)again, (void)name, (void)every_ns;
	return -ENOTTY;
}

static int run_verb(const char *words)
{
	static const struct {
		const char *name;
		int (*run)(int argc, char **argv);
	} verbs[] = {{"list", ctl_list},     {"status", ctl_status},   {"workers", ctl_workers},
		     {"events", ctl_events}, {"logs", ctl_logs},       {"explain", ctl_explain},
		     {"health", ctl_health}, {"top", ctl_top},         {"echo", ctl_echo},
		     {"set", ctl_set},       {"restart", ctl_restart}, {"stop", ctl_stop},
		     {"drain", ctl_drain}};
	char copy[256], *argv[12] = {NULL}, *rest = copy;
	int argc = 0;
	size_t i = 0;

	snprintf(copy, sizeof(copy), "%s", words);
	while ((argv[argc] = strsep(&rest, " ")) != NULL)
		cr_assert_lt(++argc, 12);
	while (strcmp(verbs[i].name, argv[0]) != 0)
		i++;
	return verbs[i].run(argc, argv);
}

static void show_view(const char *words, const char *answers, uint64_t seed)
{
	int outputs[2] = {dup(1), dup(2)}, code;
	FILE *printed = tmpfile();
	char line[8192];

	fprintf(transcript, "fragctl %s (answers %s, %" PRIu64 ")\n", words, answers, seed);
	maker = (struct maker){.state = seed * 7919, .is_natural = true};
	left = answers;
	last_seq = 0;
	fflush(NULL);
	dup2(fileno(printed), 1);
	dup2(fileno(printed), 2);
	code = run_verb(words);
	fflush(NULL);
	for (int i = 0; i < 2; i++) {
		dup2(outputs[i], i + 1);
		close(outputs[i]);
	}
	rewind(printed);
	while (fgets(line, sizeof(line), printed) != NULL)
		fprintf(transcript, "  | %s", line);
	fclose(printed);
	fprintf(transcript, "  exit code %d%s%s\n", code, *left != '\0' ? ", not asked for: " : "",
		left);
	cr_expect_eq(opened, 0, "%s: what it opened is closed", words);
	fragi_arena_fini(&maker.arena);
}

static void show_all_of(const struct view *view)
{
	size_t count = strlen(view->answers);

	for (uint64_t seed = 1; seed <= (count > 0 ? 3 : 1); seed++)
		show_view(view->words, view->answers, seed);
	for (size_t k = 0; k < count; k++) {
		char answers[8];

		snprintf(answers, sizeof(answers), "%.*sa", (int)k, view->answers);
		show_view(view->words, answers, 1); /* refused */
		answers[k] = '\0';
		show_view(view->words, answers, 1); /* lost */
		answers[k] = 'W';
		answers[k + 1] = '\0';
		show_view(view->words, answers, 1); /* not what was asked for */
	}
}

/* Each in a process of its own: that failures are documents stays so. */
Test(views, are_as_recorded)
{
	static char text[4 << 20];
	FILE *all = tmpfile();

	unsetenv("FRAG_BUILD"); /* of the tests, and no variable that a verb knows */
	setenv("TZ", "UTC", 1);
	for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++) {
		pid_t child = fork();
		int status;

		if (child == 0) {
			transcript_begin();
			show_all_of(&views[i]);
			fclose(transcript);
			fputs(transcript_text, all);
			fclose(all);
			free(transcript_text);
			exit(0);
		}
		cr_assert_eq(waitpid(child, &status, 0), child);
		cr_expect_eq(status, 0, "fragctl %s", views[i].words);
	}
	rewind(all);
	text[fread(text, 1, sizeof(text) - 1, all)] = '\0';
	fclose(all);
	expected_compare("fragctl/views", text);
}
