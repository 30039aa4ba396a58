// SPDX-License-Identifier: Apache-2.0
#include <fragctl/service.h>

static int show(struct ctl_driver *driver, bool json)
{
	struct fw_message *reply;
	int code = ctl_driver_open(driver);

	if (code == CTL_OK)
		code = ctl_service_state(driver, &reply);
	if (code != CTL_OK)
		return code;
	if (json)
		ctl_service_json_workers(&reply->reply);
	else
		ctl_service_print_workers(&reply->reply);
	fw_message_free(reply);
	return CTL_OK;
}

int ctl_workers(int argc, char **argv)
{
	struct ctl_driver driver = {0};
	struct ctl_common common = {0};
	const char *output = NULL;
	bool json;
	const struct fragi_flag table[] = {
		CTL_OUTPUT_FLAG(output),
		CTL_DRIVER_FLAGS(driver),
		CTL_COMMON_FLAGS(common),
	};
	const struct fragi_flags flags = {
		.program = "fragctl workers",
		.usage = "[flags]",
		.headline = "Lists the workers of a driver.",
		.flags = table,
		.count = FRAG_COUNT_OF(table),
	};
	int code;

	if (ctl_begin(&flags, &common, argc, argv, NULL, NULL, &code))
		code = ctl_output(output, &json) ? show(&driver, json) : CTL_USAGE;
	ctl_driver_close(&driver);
	return code;
}
