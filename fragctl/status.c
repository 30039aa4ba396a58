// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include <fragctl/service.h>

/*
 * `fragctl status` shows what runs and where. For one application that has ended it shows the
 * summary.
 */
struct status {
	struct ctl_driver driver;
	bool json, no_wait;
};

static const struct fw_application_row *find(const struct fw_reply *reply, const char *name)
{
	for (uint32_t i = 0; i < reply->application_count; i++)
		if (strcmp(reply->applications[i].name, name) == 0)
			return &reply->applications[i];
	return NULL;
}

static int show_summary(struct status *status, const char *name, uint64_t run)
{
	const struct drv_output output = {.json = status->json};
	struct fw_message *outcome;
	int code = ctl_service_await(&status->driver, run, FW_ENDED, status->json, &outcome);

	if (code != CTL_OK)
		return code;
	if (!status->json && outcome->outcome.summary.failure.code != FRAGI_FAILURE_NONE)
		printf("%s: %s\n", name, outcome->outcome.summary.failure.sentence);
	(void)drv_result_show(&output, &outcome->outcome.summary);
	if (outcome->outcome.left_out != 0)
		ctl_complain(
			"the driver has kept %zu flows of this run; %u rows of operators, and of flows beyond those, are left out",
			outcome->outcome.summary.flow_count, outcome->outcome.left_out);
	code = outcome->outcome.summary.result == FRAGI_SUMMARY_FAILED ? CTL_FAILED : CTL_OK;
	fw_message_free(outcome);
	return code;
}

static int show_one(struct status *status, const struct fw_reply *reply, const char *name,
		    const struct ctl_top_window *window)
{
	const struct fw_application_row *app = find(reply, name);

	if (app != NULL && status->json)
		ctl_service_json_causes(reply, name, window, stdout);
	else if (app != NULL)
		ctl_service_print_hosts(app, window);
	if (app != NULL)
		return CTL_OK;
	for (uint32_t i = 0; i < reply->ended_count; i++)
		if (strcmp(reply->ended[i].name, name) == 0)
			return show_summary(status, name, reply->ended[i].run);
	return ctl_fail_with(
		FRAGI_FAILURE_APPLICATION_UNKNOWN,
		"there is no application %.80s; `fragctl list` shows those that there are", name);
}

static int show(struct status *status, const struct fw_reply *reply, const char *name,
		const struct ctl_top_window *window)
{
	if (name != NULL)
		return show_one(status, reply, name, window);
	if (status->json)
		ctl_service_json_causes(reply, NULL, window, stdout);
	else if (reply->application_count == 0)
		ctl_service_print_applications(reply, window);
	for (uint32_t i = 0; !status->json && i < reply->application_count; i++)
		ctl_service_print_hosts(&reply->applications[i], window);
	return CTL_OK;
}

/* Where nothing runs there is nothing to measure, and nothing is waited for. */
static int ask(struct status *status, const char *name)
{
	struct ctl_top_window window = {0};
	struct fw_message *reply;
	bool runs = false;
	int code = ctl_driver_open_any(&status->driver);

	if (code == CTL_OK)
		code = ctl_service_state(&status->driver, &reply);
	if (code != CTL_OK)
		return code;
	for (uint32_t i = 0; i < reply->reply.application_count; i++) {
		const struct fw_application_row *app = &reply->reply.applications[i];

		runs = runs || ((name == NULL || strcmp(name, app->name) == 0) &&
				strcmp(app->state, "running") == 0);
	}
	if (runs && !status->no_wait)
		code = ctl_top_window_causes(&status->driver, name != NULL ? name : "", &window);
	if (code == CTL_OK)
		code = show(status, &reply->reply, name, &window);
	fw_message_free(reply);
	ctl_top_window_free(&window);
	return code;
}

int ctl_status(int argc, char **argv)
{
	struct status status = {0};
	struct ctl_common common = {0};
	struct fragi_texts operands = {0};
	const char *output = NULL, *name = NULL;
	const struct fragi_flag table[] = {
		CTL_NO_WAIT_FLAG(status.no_wait),
		CTL_OUTPUT_FLAG(output),
		CTL_DRIVER_FLAGS(status.driver),
		CTL_COMMON_FLAGS(common),
	};
	const struct fragi_flags flags = {
		.program = "fragctl status",
		.usage = "[NAME] [flags]",
		.headline =
			"Shows the hosts of what runs, and what makes it slow; of one application that has ended, its summary.",
		.flags = table,
		.count = FRAG_COUNT_OF(table),
	};
	int code;

	if (ctl_begin(&flags, &common, argc, argv, &operands, NULL, &code)) {
		code = ctl_output(output, &status.json)
			       ? ctl_one_name(&operands, flags.program, true, &name)
			       : CTL_USAGE;
		if (code == CTL_OK)
			code = ask(&status, name);
	}
	ctl_driver_close(&status.driver);
	fragi_texts_fini(&operands);
	return code;
}
