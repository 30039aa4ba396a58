// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include <fragctl/service.h>

/*
 * `fragctl events` prints what happened at a driver, as far as it remembers: a line an event; with
 * --output json each line is a document. --follow goes on with what happens.
 */
static void print(const struct fw_events *events, bool json)
{
	for (uint32_t i = 0; i < events->count; i++) {
		if (json)
			ctl_service_json_event(&events->rows[i]);
		else
			ctl_service_print_event(&events->rows[i]);
	}
	fflush(stdout);
}

static int print_all(struct ctl_driver *driver, bool json, uint64_t *last)
{
	struct fw_message *reply;
	uint32_t count = 1;
	int code = CTL_OK;

	while (code == CTL_OK && count > 0) {
		struct fw_message watch = {.kind = FW_WATCH, .watch.after = *last};

		code = ctl_driver_ask(driver, &watch, &reply);
		if (code != CTL_OK)
			break;
		count = reply->kind == FW_EVENTS ? reply->events.count : 0;
		if (count > 0) {
			print(&reply->events, json);
			*last = reply->events.rows[count - 1].number;
		}
		fw_message_free(reply);
	}
	return code;
}

static int follow(struct ctl_driver *driver, bool json, uint64_t last)
{
	struct fw_message watch = {.kind = FW_WATCH, .watch = {last, true}}, *message;
	int code = ctl_driver_ask(driver, &watch, &message);

	while (code == CTL_OK) {
		if (message->kind == FW_EVENTS)
			print(&message->events, json);
		fw_message_free(message);
		code = ferror(stdout) != 0 ? CTL_MISSING : ctl_driver_next(driver, &message);
	}
	return code;
}

int ctl_events(int argc, char **argv)
{
	struct ctl_driver driver = {0};
	struct ctl_common common = {0};
	const char *output = NULL;
	bool json, goes_on = false;
	const struct fragi_flag table[] = {
		{.name = "follow",
		 .letter = 'f',
		 .no_env = true,
		 .help = "goes on with what happens, until it is interrupted",
		 .on = &goes_on},
		CTL_OUTPUT_FLAG(output),
		CTL_DRIVER_FLAGS(driver),
		CTL_COMMON_FLAGS(common),
	};
	const struct fragi_flags flags = {
		.program = "fragctl events",
		.usage = "[flags]",
		.headline =
			"Prints what happened at a driver: commands and who gave them, starts, ends, workers.",
		.flags = table,
		.count = FRAG_COUNT_OF(table),
	};
	uint64_t last = 0;
	int code;

	if (ctl_begin(&flags, &common, argc, argv, NULL, NULL, &code)) {
		code = ctl_service_output(output, &json) ? ctl_driver_open(&driver) : CTL_USAGE;
		if (code == CTL_OK)
			code = print_all(&driver, json, &last);
		if (code == CTL_OK && goes_on)
			code = follow(&driver, json, last);
	}
	ctl_driver_close(&driver);
	return code;
}
