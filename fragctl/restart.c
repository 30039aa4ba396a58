// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include <fragctl/service.h>

/*
 * `fragctl restart NAME` stops an application in order and starts it anew with the graph and the
 * arguments that the driver has; one that has ended starts. Returns when it runs.
 */
static int restart(struct ctl_driver *driver, const char *name, bool now, bool json)
{
	struct fw_message command = {.kind = FW_STOP_APP}, *outcome;
	uint64_t run;
	int code = ctl_driver_open(driver);

	command.stop_app = (struct fw_stop_app){.name = name, .at_once = now, .restart = true};
	if (code == CTL_OK)
		code = ctl_service_command(driver, &command, json, &run);
	if (code == CTL_OK)
		code = ctl_service_await(driver, run, FW_RUNNING, json, &outcome);
	if (code != CTL_OK)
		return code;
	code = ctl_service_show_start(outcome, json);
	fw_message_free(outcome);
	return code;
}

int ctl_restart(int argc, char **argv)
{
	struct ctl_driver driver = {0};
	struct ctl_common common = {0};
	struct fragi_texts operands = {0};
	const char *output = NULL, *name;
	bool now = false, json;
	const struct fragi_flag table[] = {
		{.name = "now",
		 .no_env = true,
		 .help = "kills its hosts first; what is queued is dropped",
		 .on = &now},
		CTL_OUTPUT_FLAG(output),
		CTL_DRIVER_FLAGS(driver),
		CTL_COMMON_FLAGS(common),
	};
	const struct fragi_flags flags = {
		.program = "fragctl restart",
		.usage = "NAME [flags]",
		.headline =
			"Stops an application in order and starts it anew, with the graph and the arguments that the driver has.",
		.flags = table,
		.count = FRAG_COUNT_OF(table),
	};
	int code;

	if (ctl_begin(&flags, &common, argc, argv, &operands, NULL, &code)) {
		code = ctl_output(output, &json)
			       ? ctl_one_name(&operands, flags.program, false, &name)
			       : CTL_USAGE;
		if (code == CTL_OK)
			code = restart(&driver, name, now, json);
	}
	ctl_driver_close(&driver);
	fragi_texts_fini(&operands);
	return code;
}
