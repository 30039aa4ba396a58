// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <base/units.h>
#include <frag/draft.h>
#include <fragctl/service.h>
#include <fragctl/tap.h>

/*
 * `fragctl echo NAME FLOW` prints messages of a flow while its application runs: at most ten a
 * second, and those that it has no time for not at all. The flow does not notice.
 */
struct echo {
	struct ctl_driver driver;
	struct ctl_tap tap;
	uint64_t count, printed; /* count: 0: until it is interrupted */
	int64_t every_ns;
	const char *pictures; /* folder; NULL: none is written */
	bool json;
	bool has_ended;     /* all was printed, or there is no more */
	bool was_lost;      /* the driver, since the last message that was shown */
	int64_t shown_ns;   /* unix time of that; 0: none was */
	char picture[4096]; /* the last file */
};

/* PNM: P5 of one channel, P6 of three; a fourth one is left out. */
static void write_pixels(const struct fragi_passed *passed, FILE *out)
{
	const uint32_t shown = passed->channels == 1 ? 1 : 3;
	const uint8_t *at = passed->pixels;

	fprintf(out, "P%d\n%" PRIu32 " %" PRIu32 "\n255\n", shown == 1 ? 5 : 6, passed->width,
		passed->height);
	for (uint32_t i = 0; i < passed->width * passed->height; i++, at += passed->channels)
		fwrite(at, 1, shown, out);
}

/* Returns CTL_OK or, complained, an exit code. */
static int write_picture(struct echo *echo, const struct fragi_passed *passed)
{
	struct frag_draft *draft;
	int r;

	echo->picture[0] = '\0';
	if (echo->pictures == NULL || passed->pixel_bytes == 0)
		return CTL_OK;
	snprintf(echo->picture, sizeof(echo->picture), "%s/%s-%06" PRIu64 ".%s", echo->pictures,
		 echo->tap.output, echo->printed, passed->channels == 1 ? "pgm" : "ppm");
	r = frag_draft_create(echo->picture, &draft);
	if (r == 0) {
		write_pixels(passed, frag_draft_stream(draft));
		r = frag_draft_commit(draft);
	}
	return r < 0 ? ctl_fail(CTL_MISSING, "cannot write %s: %s", echo->picture, frag_strerror(r))
		     : CTL_OK;
}

static void print_text(const struct echo *echo, const struct fragi_passed *passed, uint64_t dropped)
{
	if (dropped > 0)
		printf("... %" PRIu64 " dropped on the way\n", dropped);
	printf("#%-6" PRIu64, passed->seen);
	if (passed->type != NULL)
		printf(" %s %s", passed->type, passed->value);
	if (passed->metadata[0] != '\0')
		printf(" metadata %s", passed->metadata);
	for (uint32_t i = 0; i < passed->tensor_count; i++)
		printf("%s tensor %s %s", i > 0 || passed->type != NULL ? "\n       " : "",
		       passed->tensors[i].name, passed->tensors[i].text);
	if (passed->tensors_left_out > 0)
		printf("\n        %" PRIu32 " more tensors", passed->tensors_left_out);
	if (echo->picture[0] != '\0')
		printf("\n        picture %s: %" PRIu32 " x %" PRIu32 " of tensor %s",
		       echo->picture, passed->width, passed->height, passed->picture_of);
	putchar('\n');
}

static void print_json(const struct echo *echo, const struct fragi_passed *passed, uint64_t dropped)
{
	struct ctl_json json = ctl_json_begin(stdout);

	ctl_tap_json(&json, &echo->tap, passed, dropped);
	ctl_json_optional(&json, "picture", echo->picture);
	ctl_json_end(&json);
}

/* While the driver was lost nothing came, and nothing counted what passed. */
static void name_gap(struct echo *echo, int64_t unix_ns)
{
	if (echo->was_lost && echo->shown_ns != 0)
		ctl_complain(
			"goes on, and counts from 1; what passed in the %.1f s before is not shown",
			(double)(unix_ns - echo->shown_ns) / 1e9);
	echo->was_lost = false;
	echo->shown_ns = unix_ns;
}

static int print(struct echo *echo, const struct fw_message *tapped)
{
	struct fw_message *passed;
	uint64_t dropped;
	int code;

	if (!ctl_tap_read(&echo->tap, tapped, &passed, &dropped))
		return ctl_fail_with(
			FRAGI_FAILURE_PROTOCOL,
			"a host sent what is no message of a flow; install the same version");
	name_gap(echo, passed->passed.unix_ns);
	echo->printed++;
	code = write_picture(echo, &passed->passed);
	if (code == CTL_OK && echo->json)
		print_json(echo, &passed->passed, dropped);
	else if (code == CTL_OK)
		print_text(echo, &passed->passed, dropped);
	fw_message_free(passed);
	ctl_check_stdout();
	return code;
}

/* Returns when the driver is lost, all was printed, or with an exit code, complained. */
static int receive(struct echo *echo, const char *application, const char *flow)
{
	struct fw_message *message;
	int code = ctl_tap_begin(&echo->driver, application, flow, echo->every_ns,
				 echo->pictures != NULL, echo->json, &echo->tap);

	while (code == CTL_OK && (echo->count == 0 || echo->printed < echo->count)) {
		code = ctl_driver_next(&echo->driver, &message);
		if (code != CTL_OK)
			break;
		if (message->kind == FW_TAPPED && message->reply_to == echo->tap.seq)
			code = print(echo, message);
		if (message->kind == FW_ANSWER && message->reply_to == echo->tap.seq) {
			code = ctl_service_show_failure(&message->answer.failure, echo->json);
			echo->has_ended = true;
		}
		fw_message_free(message);
	}
	echo->has_ended |= code == CTL_OK;
	return code;
}

/* The driver ends the connection of a client that was paused; the flow is counted anew then. */
static int follow(struct echo *echo, const char *application, const char *flow)
{
	int code = ctl_driver_open_any(&echo->driver);

	echo->driver.follows = true;
	while (code == CTL_OK) {
		code = receive(echo, application, flow);
		if (echo->driver.connection != NULL || echo->has_ended)
			break;
		code = ctl_driver_reopen(&echo->driver);
		echo->was_lost = true;
	}
	return code;
}

/* Reads -n and --every. Returns CTL_OK or CTL_USAGE, complained. */
static int read_numbers(struct echo *echo, const char *count, const char *every)
{
	int64_t number;

	if (count != NULL && (fragi_parse_i64(count, &number) < 0 || number < 1))
		return ctl_fail(CTL_USAGE, "-n \"%.40s\" is not a number of messages", count);
	echo->count = count != NULL ? (uint64_t)number : 0;
	if (every != NULL &&
	    (fragi_duration_lacks_unit(every) || fragi_parse_time(every, &echo->every_ns) < 0 ||
	     echo->every_ns < FW_TAP_MIN_NS))
		return ctl_fail(CTL_USAGE,
				"--every \"%.40s\" is not a time of at least 100ms; give it as 1s",
				every);
	return CTL_OK;
}

int ctl_echo(int argc, char **argv)
{
	struct echo echo = {0};
	struct ctl_common common = {0};
	struct fragi_texts operands = {0};
	const char *output = NULL, *count = NULL, *every = NULL;
	const struct fragi_flag table[] = {
		{.name = "count",
		 .letter = 'n',
		 .value = "N",
		 .no_env = true,
		 .help = "ends after so many messages; default: goes on until it is interrupted",
		 .text = &count},
		{.name = "every",
		 .value = "TIME",
		 .no_env = true,
		 .help = "at most one message in that time; default and least 100ms",
		 .text = &every},
		{.name = "pictures",
		 .value = "DIR",
		 .no_env = true,
		 .help = "writes pictures in the messages into files there (PPM), made smaller",
		 .text = &echo.pictures},
		CTL_OUTPUT_FLAG(output),
		CTL_DRIVER_FLAGS(echo.driver),
		CTL_COMMON_FLAGS(common),
	};
	const struct fragi_flags flags = {
		.program = "fragctl echo",
		.usage = "NAME FLOW [-n N] [flags]",
		.headline =
			"Prints messages of a flow while its application runs: value, metadata, and of tensors the shape and the first elements. A FLOW is one of its ends, as f1.tx, or \"f1.tx.out -> f2.rx.in\". The number in front counts all that have passed. The flow does not wait: what cannot be shown in time is dropped and counted.",
		.flags = table,
		.count = FRAG_COUNT_OF(table),
	};
	int code;

	if (ctl_begin(&flags, &common, argc, argv, &operands, NULL, &code)) {
		code = ctl_output(output, &echo.json) ? CTL_OK : CTL_USAGE;
		if (code == CTL_OK && operands.count != 2)
			code = ctl_refuse(flags.program,
					  "name an application and a flow; fragctl top shows them");
		if (code == CTL_OK)
			code = ctl_check_name(operands.items[0], flags.program);
		if (code == CTL_OK)
			code = read_numbers(&echo, count, every);
		if (code == CTL_OK)
			code = follow(&echo, operands.items[0], operands.items[1]);
	}
	ctl_driver_close(&echo.driver);
	fragi_texts_fini(&operands);
	return code;
}
