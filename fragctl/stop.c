// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include <base/units.h>
#include <fragctl/service.h>

/*
 * `fragctl stop NAME` stops an application in order and returns when it has ended; its summary is
 * kept by the driver.
 */
struct stop {
	struct ctl_driver driver;
	bool now, json, all;
};

static int show(const struct fw_message *outcome, bool json)
{
	const struct fragi_summary *summary = &outcome->outcome.summary;
	const char *name = outcome->outcome.name;

	if (summary->failure.code != FRAGI_FAILURE_NONE)
		ctl_complain("%s", summary->failure.sentence);
	if (json)
		ctl_service_json_run(name, outcome->run,
				     summary->failure.code != FRAGI_FAILURE_NONE ? "failed"
				     : summary->result == FRAGI_SUMMARY_DONE     ? "done"
										 : "stopped");
	else
		printf("%s: %s after %.1f s; `fragctl status %s` shows its summary\n", name,
		       summary->failure.code != FRAGI_FAILURE_NONE ? "failed"
		       : summary->result == FRAGI_SUMMARY_DONE     ? "done"
								   : "stopped",
		       (double)summary->duration_ns * 1e-9, name);
	return summary->exit_code;
}

static int stop_one(struct stop *stop, const char *name)
{
	struct fw_message *outcome;
	int code = ctl_service_stop(&stop->driver, name, stop->now, stop->json, &outcome);

	if (code != CTL_OK)
		return code;
	code = show(outcome, stop->json);
	fw_message_free(outcome);
	return code;
}

/* All that run, one after the other. Returns the first exit code that is not 0. */
static int stop_all(struct stop *stop)
{
	struct fw_message *reply;
	int code = ctl_service_state(&stop->driver, &reply);

	if (code != CTL_OK)
		return code;
	for (uint32_t i = 0; i < reply->reply.application_count; i++) {
		int own = stop_one(stop, reply->reply.applications[i].name);

		code = code == CTL_OK ? own : code;
	}
	if (reply->reply.more > 0 && code == CTL_OK)
		code = ctl_fail(CTL_FAILED,
				"the driver runs more than it could list; stop the rest likewise");
	fw_message_free(reply);
	return code;
}

static int stop(struct stop *stop, const char *name)
{
	int code = ctl_driver_open(&stop->driver);

	if (code != CTL_OK)
		return code;
	return stop->all ? stop_all(stop) : stop_one(stop, name);
}

int ctl_stop(int argc, char **argv)
{
	struct stop options = {0};
	struct ctl_common common = {0};
	struct fragi_texts operands = {0};
	const char *output = NULL, *name = NULL;
	const struct fragi_flag table[] = {
		{.name = "all",
		 .no_env = true,
		 .help = "stops every application, in place of NAME",
		 .on = &options.all},
		{.name = "now",
		 .no_env = true,
		 .help = "kills its hosts; what is queued is dropped",
		 .on = &options.now},
		CTL_OUTPUT_FLAG(output),
		CTL_DRIVER_FLAGS(options.driver),
		CTL_COMMON_FLAGS(common),
	};
	const struct fragi_flags flags = {
		.program = "fragctl stop",
		.usage = "NAME|--all [flags]",
		.headline =
			"Stops an application in order: its sources end, and what was sent is delivered.",
		.flags = table,
		.count = FRAG_COUNT_OF(table),
	};
	int code;

	if (ctl_begin(&flags, &common, argc, argv, &operands, NULL, &code)) {
		code = ctl_output(output, &options.json)
			       ? ctl_one_name(&operands, flags.program, options.all, &name)
			       : CTL_USAGE;
		if (code == CTL_OK && options.all && name != NULL)
			code = ctl_fail(CTL_USAGE, "fragctl stop takes NAME or --all, not both");
		if (code == CTL_OK)
			code = stop(&options, name);
	}
	ctl_driver_close(&options.driver);
	fragi_texts_fini(&operands);
	return code;
}
