// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <base/sentence.h>
#include <fragctl/look.h>
#include <fragctl/service.h>
#include <fragctl/top_window.h>

/*
 * `fragctl health [APP]` says in one line whether what runs is well, for scripts and probes: 0 if
 * it is, 1 if not. The first thing that is not well is named.
 */
struct health {
	struct ctl_driver driver;
	const char *name; /* NULL: everything */
	bool json;
	int64_t for_ns; /* measures so long, and a root cause is not well; 0: measures nothing */
	char sick[1024];
	char well[200];
};

/* Names the first thing that is not well. */
static void FRAG_PRINTF(2, 3) blame(struct health *health, const char *format, ...)
{
	va_list args;

	if (health->sick[0] != '\0')
		return;
	va_start(args, format);
	fragi_sentence_of(health->sick, sizeof(health->sick), format, args);
	va_end(args);
}

static void judge_application(struct health *health, const struct fw_application_row *app)
{
	if (strcmp(app->state, "waiting") == 0)
		blame(health, "%s waits for workers that take %s", app->name, app->missing);
	else if (strcmp(app->state, "running") != 0)
		blame(health, "%s is %s", app->name, app->state);
	for (uint32_t i = 0; i < app->host_count; i++) {
		const struct fw_host_row *host = &app->hosts[i];

		if (strcmp(host->state, "running") != 0 && strcmp(host->state, "done") != 0)
			blame(health, "%s: %s on worker %s is %s", app->name, host->fragments,
			      host->worker, host->state);
	}
}

static void judge_ended(struct health *health, const struct fw_ended_row *ended)
{
	const char *text = ended->result == FRAGI_SUMMARY_DONE ? "done" : "was stopped";

	if (ended->result == FRAGI_SUMMARY_FAILED)
		blame(health, "%s failed: %s", ended->name, ended->failure.sentence);
	snprintf(health->well, sizeof(health->well), "%s: %s", ended->name, text);
}

/* What runs under that name, or else how its last run ended. */
static int judge_one(struct health *health, const struct fw_reply *reply)
{
	for (uint32_t i = 0; i < reply->application_count; i++)
		if (strcmp(reply->applications[i].name, health->name) == 0) {
			judge_application(health, &reply->applications[i]);
			snprintf(health->well, sizeof(health->well), "%s: runs", health->name);
			return CTL_OK;
		}
	for (uint32_t i = 0; i < reply->ended_count; i++)
		if (strcmp(reply->ended[i].name, health->name) == 0) {
			judge_ended(health, &reply->ended[i]);
			health->for_ns = 0; /* there is nothing to measure */
			return CTL_OK;
		}
	return ctl_fail_with(
		FRAGI_FAILURE_APPLICATION_UNKNOWN,
		"there is no application %.80s; `fragctl list` shows those that there are",
		health->name);
}

static void judge_all(struct health *health, const struct fw_reply *reply)
{
	uint32_t live = 0;

	if (reply->state_failure[0] != '\0')
		blame(health, "the driver keeps nothing, and starts nothing: %s",
		      reply->state_failure);
	for (uint32_t i = 0; i < reply->application_count; i++)
		judge_application(health, &reply->applications[i]);
	for (uint32_t i = 0; i < reply->worker_count; i++) {
		const struct fw_worker_row *worker = &reply->workers[i];
		bool is_live = strcmp(worker->state, "live") == 0;

		live += is_live;
		if (strcmp(worker->state, "lost") == 0)
			blame(health, "worker %s is lost; it ran %s", worker->name,
			      worker->ran[0] != '\0' ? worker->ran : "nothing");
		else if (strcmp(worker->state, "suspect") == 0)
			blame(health, "worker %s does not answer", worker->name);
	}
	snprintf(health->well, sizeof(health->well), "%u application%s, %u worker%s",
		 reply->application_count, reply->application_count == 1 ? "" : "s", live,
		 live == 1 ? "" : "s");
}

static int measure(struct health *health)
{
	struct ctl_top_window window = {0};
	struct fw_message *message;
	bool is_last = false, begins = true;
	int code = CTL_OK;

	while (code == CTL_OK && !is_last) {
		code = begins ? ctl_look(&health->driver, health->name, health->for_ns, true,
					 &message)
			      : ctl_look_next(&health->driver, &message);
		begins = false;
		if (code != CTL_OK)
			break;
		is_last = message->looked.is_last;
		code = ctl_top_window_add(&window, NULL, message);
	}
	for (uint32_t i = 0; code == CTL_OK && i < window.count; i++)
		if (window.apps[i].cause.kind > FRAGI_CAUSE_UNMEASURED)
			blame(health, "%s: %s", window.apps[i].look.application,
			      ctl_top_cause(&window.apps[i]));
	ctl_top_window_free(&window);
	return code;
}

static int judge(struct health *health)
{
	struct fw_message *reply;
	int code = ctl_driver_open(&health->driver);

	if (code == CTL_OK)
		code = ctl_service_state(&health->driver, &reply);
	if (code != CTL_OK)
		return code;
	if (health->name != NULL)
		code = judge_one(health, &reply->reply);
	else
		judge_all(health, &reply->reply);
	fw_message_free(reply);
	if (code == CTL_OK && health->for_ns > 0)
		code = measure(health);
	return code;
}

static int show(struct health *health)
{
	int code = judge(health);
	bool is_well = health->sick[0] == '\0';

	if (code != CTL_OK)
		return code;
	if (health->json) {
		struct ctl_json json = ctl_json_begin(stdout);

		ctl_json_bool(&json, "healthy", is_well);
		ctl_json_text(&json, "reason", is_well ? NULL : health->sick);
		ctl_json_end(&json);
	} else {
		printf("%s%s\n", is_well ? "ok: " : "", is_well ? health->well : health->sick);
	}
	ctl_check_stdout();
	return is_well ? CTL_OK : CTL_FAILED;
}

static int read_time(struct health *health, const char *text)
{
	if (text != NULL &&
	    (fragi_duration_lacks_unit(text) || fragi_parse_time(text, &health->for_ns) < 0 ||
	     health->for_ns < FW_LOOK_MIN_NS || health->for_ns > 5000000000))
		return ctl_fail(CTL_USAGE, "--for \"%.40s\" is no time from 250ms to 5s", text);
	return CTL_OK;
}

int ctl_health(int argc, char **argv)
{
	struct health health = {0};
	struct ctl_common common = {0};
	struct fragi_texts operands = {0};
	const char *output = NULL, *for_text = NULL;
	const struct fragi_flag table[] = {
		{.name = "for",
		 .value = "TIME",
		 .no_env = true,
		 .help = "measures so long, 250ms to 5s: what is slow or drops is not well either",
		 .text = &for_text},
		CTL_OUTPUT_FLAG(output),
		CTL_DRIVER_FLAGS(health.driver),
		CTL_COMMON_FLAGS(common),
	};
	const struct fragi_flags flags = {
		.program = "fragctl health",
		.usage = "[NAME] [flags]",
		.headline =
			"Says in one line whether an application, or all that a driver runs, is well. Exit code 0: it is; 1: it is not; 3: there is no driver.",
		.flags = table,
		.count = FRAG_COUNT_OF(table),
	};
	int code;

	if (ctl_begin(&flags, &common, argc, argv, &operands, NULL, &code)) {
		code = ctl_output(output, &health.json) ? read_time(&health, for_text) : CTL_USAGE;
		if (code == CTL_OK)
			code = ctl_one_name(&operands, flags.program, true, &health.name);
		if (code == CTL_OK)
			code = show(&health);
	}
	ctl_driver_close(&health.driver);
	fragi_texts_fini(&operands);
	return code;
}
