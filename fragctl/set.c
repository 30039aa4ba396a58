// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include <fragctl/service.h>

/*
 * `fragctl set NAME F.OP.PARAM=VALUE` changes a dynamic parameter of an application that runs, and
 * returns when its host has taken the value.
 */
struct set {
	struct ctl_driver driver;
	bool json;
};

static int set(struct set *set, const char *name, const char *text)
{
	struct fw_message command = {.kind = FW_SET, .set = {name, text}};
	uint64_t run = 0;
	int code = ctl_driver_open(&set->driver);

	if (code == CTL_OK)
		code = ctl_service_command(&set->driver, &command, set->json, &run);
	if (code != CTL_OK)
		return code;
	if (set->json)
		ctl_service_json_set(name, run, text);
	else
		printf("%s: %s\n", name, text);
	return CTL_OK;
}

/* The driver would close the connection of a client that sends a name that no application has. */
static int read_operands(const struct fragi_texts *operands)
{
	if (operands->count != 2)
		return ctl_fail(CTL_USAGE, "give the name of one application and one "
					   "FRAGMENT.OPERATOR.PARAMETER=VALUE; see `fragctl set "
					   "--help`");
	return ctl_check_name(operands->items[0], "fragctl set");
}

int ctl_set(int argc, char **argv)
{
	struct set options = {0};
	struct ctl_common common = {0};
	struct fragi_texts operands = {0};
	const char *output = NULL;
	const struct fragi_flag table[] = {
		CTL_OUTPUT_FLAG(output),
		CTL_DRIVER_FLAGS(options.driver),
		CTL_COMMON_FLAGS(common),
	};
	const struct fragi_flags flags = {
		.program = "fragctl set",
		.usage = "NAME F.OP.PARAM=VALUE [flags]",
		.headline =
			"Changes a dynamic parameter of an application that runs, between two ticks.",
		.flags = table,
		.count = FRAG_COUNT_OF(table),
	};
	int code;

	if (ctl_begin(&flags, &common, argc, argv, &operands, NULL, &code)) {
		code = ctl_output(output, &options.json) ? read_operands(&operands) : CTL_USAGE;
		if (code == CTL_OK)
			code = set(&options, operands.items[0], operands.items[1]);
	}
	ctl_driver_close(&options.driver);
	fragi_texts_fini(&operands);
	return code;
}
