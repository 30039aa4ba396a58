// SPDX-License-Identifier: Apache-2.0
#include <fragctl/service.h>

/* `fragctl list` answers at once: it measures only when it is asked for root causes. */
static int list(struct ctl_driver *driver, bool json, bool measures)
{
	struct ctl_top_window window = {0};
	struct fw_message *reply;
	int code = ctl_driver_open_any(driver);

	if (code == CTL_OK && measures)
		code = ctl_top_window_causes(driver, "", &window);
	if (code == CTL_OK)
		code = ctl_service_state(driver, &reply);
	if (code == CTL_OK) {
		if (json)
			ctl_service_json_causes(&reply->reply, NULL, &window, stdout);
		else
			ctl_service_print_applications(&reply->reply, &window);
		fw_message_free(reply);
	}
	ctl_top_window_free(&window);
	return code;
}

int ctl_list(int argc, char **argv)
{
	struct ctl_driver driver = {0};
	struct ctl_common common = {0};
	const char *output = NULL;
	bool json, measures = false;
	const struct fragi_flag table[] = {
		{.name = "cause",
		 .no_env = true,
		 .help = "measures a second, and shows what makes each application slow",
		 .on = &measures},
		CTL_OUTPUT_FLAG(output),
		CTL_DRIVER_FLAGS(driver),
		CTL_COMMON_FLAGS(common),
	};
	const struct fragi_flags flags = {
		.program = "fragctl list",
		.usage = "[flags]",
		.headline =
			"Lists the applications of a driver: those that run, and how others ended.",
		.flags = table,
		.count = FRAG_COUNT_OF(table),
	};
	int code;

	if (ctl_begin(&flags, &common, argc, argv, NULL, NULL, &code))
		code = ctl_output(output, &json) ? list(&driver, json, measures) : CTL_USAGE;
	ctl_driver_close(&driver);
	return code;
}
