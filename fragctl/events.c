// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>

#include <fragctl/filter.h>
#include <fragctl/service.h>

/*
 * `fragctl events` prints what happened at a driver, as far as it remembers: a line an event; with
 * --output json each line is a document. --follow goes on with what happens.
 */
struct reading {
	struct ctl_driver driver;
	bool json;
	struct ctl_filter filter;
	uint64_t last; /* number of the event that came last */
};

static void print(struct reading *reading, const struct fw_events *events)
{
	for (uint32_t i = 0; i < events->count; i++) {
		const struct fw_notice *event = &events->rows[i];
		bool follows = reading->last > 0 && event->number > reading->last;
		uint64_t missing = follows ? event->number - reading->last - 1 : 0;

		if (missing > 0)
			ctl_complain("%" PRIu64
				     " event%s missing: the driver keeps the last ones only",
				     missing, missing == 1 ? " is" : "s are");
		reading->last = event->number;
		if (!ctl_filter_notice(&reading->filter, event))
			continue;
		if (reading->json)
			ctl_service_json_notice(event, stdout);
		else
			ctl_service_print_notice(event);
	}
	ctl_check_stdout();
}

static int print_all(struct reading *reading)
{
	struct fw_message *reply;
	uint32_t count = 1;
	int code = CTL_OK;

	while (code == CTL_OK && count > 0) {
		struct fw_message watch = {.kind = FW_WATCH, .watch.after = reading->last};

		code = ctl_driver_ask(&reading->driver, &watch, &reply);
		if (code != CTL_OK)
			break;
		count = reply->kind == FW_EVENTS ? reply->events.count : 0;
		if (count > 0)
			print(reading, &reply->events);
		fw_message_free(reply);
	}
	return code;
}

/* A driver ends the connection of a client that was paused; it goes on with the next event. */
static int follow(struct reading *reading)
{
	int code = CTL_OK;

	reading->driver.follows = true;
	while (code == CTL_OK) {
		struct fw_message watch = {.kind = FW_WATCH, .watch = {reading->last, true}},
				  *message;

		code = ctl_driver_ask(&reading->driver, &watch, &message);
		while (code == CTL_OK) {
			if (message->kind == FW_EVENTS)
				print(reading, &message->events);
			if (message->kind == FW_ANSWER) {
				code = ctl_service_show_failure(&message->answer.failure,
								reading->json);
				fw_message_free(message);
				return code;
			}
			fw_message_free(message);
			code = ctl_driver_next(&reading->driver, &message);
		}
		if (reading->driver.connection != NULL)
			return code;
		code = ctl_driver_reopen(&reading->driver);
	}
	return code;
}

int ctl_events(int argc, char **argv)
{
	struct reading reading = {0};
	struct ctl_common common = {0};
	const char *output = NULL;
	bool goes_on = false;
	const struct fragi_flag table[] = {
		{.name = "follow",
		 .letter = 'f',
		 .no_env = true,
		 .help = "goes on with what happens, until it is interrupted",
		 .on = &goes_on},
		CTL_FILTER_FLAGS(reading.filter),
		CTL_OUTPUT_FLAG(output),
		CTL_DRIVER_FLAGS(reading.driver),
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
	int code;

	if (ctl_begin(&flags, &common, argc, argv, NULL, NULL, &code)) {
		code = ctl_output(output, &reading.json) ? ctl_filter_read(&reading.filter)
							 : CTL_USAGE;
		if (code == CTL_OK)
			code = ctl_driver_open_any(&reading.driver);
		if (code == CTL_OK)
			code = print_all(&reading);
		if (code == CTL_OK && goes_on)
			code = follow(&reading);
	}
	ctl_driver_close(&reading.driver);
	return code;
}
