// SPDX-License-Identifier: Apache-2.0
#include <fragctl/web/web.h>

#include <stdlib.h>
#include <string.h>

#include <base/stamp.h>
#include <fragctl/fail.h>

/*
 * Messages of the flows that pages have open. A page asks each second: its first question begins a
 * tap at the driver, and the tap ends when no page has asked for some seconds. All pages share the
 * taps, and the newest message of each, so what is kept is bounded.
 */
#define SECOND_NS INT64_C(1000000000)
#define EVERY_NS SECOND_NS
#define WANTED_NS (4 * SECOND_NS)
#define FAILED_NS (2 * SECOND_NS) /* then the driver is asked again */
#define FLOW_MAX (6 * FRAG_NAME_MAX + 20)

static void forget(struct ctl_web_echo *echo)
{
	free(echo->application);
	free(echo->flow);
	free(echo->text);
	*echo = (struct ctl_web_echo){0};
}

void ctl_web_echo_forget(struct ctl_web_feed *feed)
{
	for (size_t i = 0; i < CTL_WEB_ECHOES_MAX; i++)
		forget(&feed->echoes[i]);
}

void ctl_web_echo_expire(struct ctl_web_feed *feed)
{
	int64_t now_ns = fragi_now_ns();

	for (size_t i = 0; i < CTL_WEB_ECHOES_MAX; i++) {
		struct ctl_web_echo *echo = &feed->echoes[i];

		if (echo->tap.seq == 0 || now_ns < echo->until_ns)
			continue;
		if (!echo->has_failed)
			ctl_tap_end(feed->driver, &echo->tap);
		forget(echo);
	}
}

/* --- the text --- */

static void write_base64(const uint8_t *bytes, size_t size, FILE *out)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < size; i += 3) {
		uint32_t three = (uint32_t)bytes[i] << 16 |
				 (i + 1 < size ? (uint32_t)bytes[i + 1] << 8 : 0) |
				 (i + 2 < size ? bytes[i + 2] : 0);

		putc(digits[three >> 18], out);
		putc(digits[three >> 12 & 63], out);
		putc(i + 1 < size ? digits[three >> 6 & 63] : '=', out);
		putc(i + 2 < size ? digits[three & 63] : '=', out);
	}
}

/* The document of `fragctl echo`, with the picture itself in place of a file's name. */
static void write_message(const struct ctl_web_echo *echo, const struct fragi_passed *passed,
			  uint64_t dropped, FILE *out)
{
	struct ctl_json json = ctl_json_begin(out);

	ctl_tap_json(&json, &echo->tap, passed, dropped);
	if (passed->pixel_bytes == 0) {
		ctl_json_text(&json, "picture", NULL);
		ctl_json_end(&json);
		return;
	}
	ctl_json_open(&json, "picture", '{');
	ctl_json_text(&json, "tensor", passed->picture_of);
	ctl_json_unsigned(&json, "width", passed->width);
	ctl_json_unsigned(&json, "height", passed->height);
	ctl_json_unsigned(&json, "channels", passed->channels);
	ctl_json_unsigned(&json, "step", passed->step);
	putc('"', ctl_json_value(&json, "pixels"));
	write_base64(passed->pixels, passed->pixel_bytes, out);
	putc('"', out);
	ctl_json_close(&json, '}');
	ctl_json_end(&json);
}

static void keep(struct ctl_web_echo *echo, const struct fragi_passed *passed, uint64_t dropped,
		 const struct fw_failure *failure)
{
	FILE *out;

	free(echo->text);
	echo->text = NULL;
	out = open_memstream(&echo->text, &echo->size);
	if (out == NULL)
		return;
	if (failure == NULL) {
		write_message(echo, passed, dropped, out);
		echo->seen = passed->seen;
	} else {
		ctl_fail_put_document(failure, fragi_failure_exit(failure->code), out);
		echo->has_failed = true;
		echo->until_ns = fragi_now_ns() + FAILED_NS;
	}
	if (fclose(out) == 0)
		return;
	free(echo->text);
	echo->text = NULL;
}

/* --- the driver --- */

static void take_passed(struct ctl_web_echo *echo, const struct fw_message *tapped)
{
	struct fw_message *passed;
	uint64_t dropped;

	if (!ctl_tap_read(&echo->tap, tapped, &passed, &dropped)) {
		keep(echo, NULL, 0,
		     &(struct fw_failure){.code = FRAGI_FAILURE_PROTOCOL,
					  .sentence = "a host sent what is no message of a flow; "
						      "install the same version"});
		return;
	}
	keep(echo, &passed->passed, dropped, NULL);
	fw_message_free(passed);
}

bool ctl_web_echo_take(struct ctl_web_feed *feed, const struct fw_message *message)
{
	struct ctl_web_echo *echo = NULL;

	if (message->kind != FW_ANSWER && message->kind != FW_TAPPED)
		return false;
	for (size_t i = 0; i < CTL_WEB_ECHOES_MAX && echo == NULL; i++)
		if (message->reply_to != 0 && feed->echoes[i].tap.seq == message->reply_to)
			echo = &feed->echoes[i];
	if (echo == NULL)
		return message->kind == FW_TAPPED; /* of a tap that has ended */
	if (message->kind == FW_TAPPED && !echo->has_failed)
		take_passed(echo, message);
	else if (message->kind == FW_ANSWER && message->answer.failure.code != FRAGI_FAILURE_NONE)
		keep(echo, NULL, 0, &message->answer.failure);
	else if (message->kind == FW_ANSWER)
		snprintf(echo->tap.output, sizeof(echo->tap.output), "%s", message->answer.name);
	return true;
}

/* --- the route --- */

static struct ctl_web_echo *find(struct ctl_web_feed *feed, const char *application,
				 const char *flow)
{
	for (size_t i = 0; i < CTL_WEB_ECHOES_MAX; i++) {
		struct ctl_web_echo *echo = &feed->echoes[i];

		if (echo->tap.seq != 0 && strcmp(echo->application, application) == 0 &&
		    strcmp(echo->flow, flow) == 0)
			return echo;
	}
	return NULL;
}

/* Returns whether it has begun; else *out says why not. */
static bool begin(struct ctl_web_feed *feed, const char *application, const char *flow,
		  struct ctl_http_response *out)
{
	struct fw_message ask = {.kind = FW_TAP};
	struct ctl_web_echo *echo = NULL;

	for (size_t i = 0; i < CTL_WEB_ECHOES_MAX && echo == NULL; i++)
		if (feed->echoes[i].tap.seq == 0)
			echo = &feed->echoes[i];
	if (echo == NULL) {
		*out = ctl_web_text(429, "other pages watch as many flows as can be; ask again\n");
		return false;
	}
	echo->application = strdup(application);
	echo->flow = strdup(flow);
	ask.tap = (struct fw_tap){
		.name = application, .flow = flow, .every_ns = EVERY_NS, .pictures = true};
	if (echo->application == NULL || echo->flow == NULL) {
		*out = ctl_web_json(500, NULL, 0);
	} else if (!ctl_web_feed_send(feed, &ask)) {
		*out = ctl_web_feed_lost(feed);
	} else {
		echo->tap.seq = ask.seq;
		echo->until_ns = fragi_now_ns() + WANTED_NS;
		return true;
	}
	forget(echo);
	return false;
}

void ctl_web_echo(struct ctl_web *web, struct ctl_http_request *request,
		  struct ctl_http_response *out)
{
	struct ctl_web_feed *feed = &web->feed;
	const char *application = ctl_web_query(web, request, "application");
	const char *flow = ctl_web_query(web, request, "flow");
	uint64_t seen = strtoull(ctl_web_query(web, request, "seen"), NULL, 10);
	struct ctl_web_echo *echo;
	char *text;

	if (!fragi_name_is_valid(application) || flow[0] == '\0' || strlen(flow) > FLOW_MAX) {
		*out = ctl_web_text(400, "name an application and a flow\n");
		return;
	}
	echo = find(feed, application, flow);
	if (echo == NULL && !begin(feed, application, flow, out))
		return;
	if (echo != NULL && !echo->has_failed)
		echo->until_ns = fragi_now_ns() + WANTED_NS;
	if (echo == NULL || echo->text == NULL || (!echo->has_failed && echo->seen == seen)) {
		*out = ctl_web_text(204, "");
		return;
	}
	text = malloc(echo->size);
	if (text != NULL)
		memcpy(text, echo->text, echo->size);
	*out = ctl_web_json(echo->has_failed ? 409 : 200, text, echo->size);
}
