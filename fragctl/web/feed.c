// SPDX-License-Identifier: Apache-2.0
#include <fragctl/web/feed.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/stamp.h>
#include <fragctl/fail.h>
#include <fragctl/service.h>
#include <fragctl/web/web.h>

/*
 * While somebody wants tables, the driver sends a window after the other (LOOK). After each one its
 * state is asked for, and the text of both is made once, for all browsers: a slow one goes on with
 * the newest text when it has read the one before, so what it holds up is bounded.
 *
 * A LOOK cannot be taken back, but another one replaces it: one for a single window, whose end is
 * the end of looking.
 */
#define SECOND_NS INT64_C(1000000000)
#define LINGER_NS (3 * SECOND_NS) /* a page that is loaded again finds its tables */
#define STATE_NS (SECOND_NS * 9 / 10)
#define QUESTION_NS (8 * SECOND_NS)

struct stream {
	struct ctl_web_feed *feed;
	struct ctl_web_frame *frame; /* being sent */
	size_t at;
	uint64_t seen;
};

static bool is_connected(const struct ctl_web_feed *feed)
{
	return feed->driver->connection != NULL && feed->driver->is_welcome;
}

/* --- the text --- */

static void drop(struct ctl_web_frame *frame)
{
	if (frame == NULL || --frame->references > 0)
		return;
	free(frame->text);
	free(frame);
}

static void write_driver(const struct ctl_web_feed *feed, FILE *out)
{
	struct ctl_json json = ctl_json_begin(out);

	ctl_json_text(&json, "version", FRAG_VERSION);
	fprintf(ctl_json_value(&json, "address"), "\"%s:%u\"", feed->driver->address.host,
		(unsigned int)feed->driver->address.port);
	ctl_json_optional(&json, "lost", feed->lost);
	ctl_json_number(&json, "every_ns", feed->every_ns);
	ctl_json_bool(&json, "controls", feed->controls);
	ctl_json_bool(&json, "graphs", feed->graphs);
	ctl_json_end(&json);
}

/* The documents are those that fragctl prints: top, list and workers with --output json. */
static void write_text(const struct ctl_web_feed *feed, FILE *out)
{
	static const struct fw_reply nothing;
	const struct fw_reply *state = feed->state != NULL ? &feed->state->reply : &nothing;
	const struct ctl_top view = {
		.apps = feed->window.apps, .app_count = feed->window.count, .op = FRAGI_LOOK_NONE};

	fputs("data: {\"driver\": ", out);
	write_driver(feed, out);
	fputs("data: ,\"top\": ", out);
	ctl_top_print_json(&view, out);
	fputs("data: ,\"list\": ", out);
	ctl_service_json_applications(state, NULL, out);
	fputs("data: ,\"workers\": ", out);
	ctl_service_json_workers(state, out);
	fputs("data: }\n\n", out);
}

static void make_frame(struct ctl_web_feed *feed)
{
	struct ctl_web_frame *frame = calloc(1, sizeof(*frame));
	FILE *out = frame != NULL ? open_memstream(&frame->text, &frame->size) : NULL;

	if (out != NULL)
		write_text(feed, out);
	if (out == NULL || fclose(out) != 0) { /* the next one may succeed */
		if (frame != NULL)
			free(frame->text);
		free(frame);
		return;
	}
	frame->references = 1;
	drop(feed->frame);
	feed->frame = frame;
	feed->frame_number++;
}

static bool has_streams(const struct ctl_web_feed *feed)
{
	return feed->http_module->streams(feed->http) > 0;
}

static void publish(struct ctl_web_feed *feed)
{
	if (!has_streams(feed))
		return;
	make_frame(feed);
	feed->http_module->wake(feed->http);
}

static ssize_t read_stream(void *arg, char *out, size_t size)
{
	struct stream *stream = arg;
	struct ctl_web_feed *feed = stream->feed;
	size_t left;

	if (stream->frame != NULL && stream->at == stream->frame->size) {
		drop(stream->frame);
		stream->frame = NULL;
	}
	if (stream->frame == NULL) {
		if (feed->frame == NULL || feed->frame_number == stream->seen)
			return 0;
		stream->frame = feed->frame;
		stream->frame->references++;
		stream->seen = feed->frame_number;
		stream->at = 0;
	}
	left = stream->frame->size - stream->at;
	size = left < size ? left : size;
	memcpy(out, stream->frame->text + stream->at, size);
	stream->at += size;
	return (ssize_t)size;
}

static void end_stream(void *arg)
{
	struct stream *stream = arg;

	drop(stream->frame);
	free(stream);
}

int ctl_web_feed_stream(struct ctl_web_feed *feed, struct ctl_http_stream *out)
{
	struct stream *stream = calloc(1, sizeof(*stream));

	if (stream == NULL)
		return -ENOMEM;
	stream->feed = feed;
	*out = (struct ctl_http_stream){.read = read_stream, .end = end_stream, .arg = stream};
	ctl_web_feed_want(feed, LINGER_NS);
	if (feed->frame == NULL || !has_streams(feed))
		make_frame(feed);
	return 0;
}

/* --- questions --- */

static void answer(struct ctl_web_feed *feed, struct ctl_web_question *question,
		   struct ctl_http_response response)
{
	ctl_web_add_policies(&response);
	feed->http_module->answer(question->request, &response);
	question->request = NULL;
}

struct ctl_http_response ctl_web_failure(const struct fw_failure *failure)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (out == NULL)
		return ctl_web_json(409, NULL, 0);
	ctl_fail_put_document(failure, fragi_failure_exit(failure->code), out);
	return fclose(out) == 0 ? ctl_web_json(409, text, size) : ctl_web_json(409, NULL, 0);
}

struct ctl_http_response ctl_web_feed_lost(const struct ctl_web_feed *feed)
{
	const char *why = feed->lost[0] != '\0' ? feed->lost : "the driver has not answered";

	return ctl_web_failure(
		&(struct fw_failure){.code = FRAGI_FAILURE_DRIVER_LOST, .sentence = why});
}

static struct ctl_http_response response_of(const struct ctl_web_question *question,
					    const struct fw_message *message)
{
	char *text = NULL;
	size_t size;
	FILE *out;

	if (message->kind == FW_ANSWER && message->answer.failure.code != FRAGI_FAILURE_NONE)
		return ctl_web_failure(&message->answer.failure);
	out = open_memstream(&text, &size);
	if (out == NULL)
		return ctl_web_json(500, NULL, 0);
	question->write(message, out);
	return fclose(out) == 0 ? ctl_web_json(200, text, size) : ctl_web_json(500, NULL, 0);
}

bool ctl_web_feed_send(struct ctl_web_feed *feed, struct fw_message *message)
{
	return is_connected(feed) && ctl_driver_send(feed->driver, message) == 0;
}

void ctl_web_feed_ask(struct ctl_web_feed *feed, struct ctl_http_request *request,
		      struct fw_message *message, ctl_web_write_fn write,
		      struct ctl_http_response *out)
{
	struct ctl_web_question *question = NULL;

	for (size_t i = 0; i < CTL_WEB_QUESTIONS_MAX && question == NULL; i++)
		if (feed->questions[i].request == NULL)
			question = &feed->questions[i];
	if (question == NULL) {
		*out = ctl_web_text(429, "too many questions at a time; ask again\n");
		return;
	}
	if (!ctl_web_feed_send(feed, message)) {
		*out = ctl_web_feed_lost(feed);
		return;
	}
	*question = (struct ctl_web_question){.request = request,
					      .seq = message->seq,
					      .until_ns = fragi_now_ns() + QUESTION_NS,
					      .write = write};
	out->is_pending = true;
}

/* Answers those that have waited too long, or all. Returns whether there were any. */
static bool give_up_questions(struct ctl_web_feed *feed, bool all)
{
	int64_t now_ns = fragi_now_ns();
	bool any = false;

	for (size_t i = 0; i < CTL_WEB_QUESTIONS_MAX; i++) {
		struct ctl_web_question *question = &feed->questions[i];

		if (question->request == NULL || (!all && question->until_ns > now_ns))
			continue;
		answer(feed, question, ctl_web_feed_lost(feed));
		any = true;
	}
	return any;
}

static bool take_answer(struct ctl_web_feed *feed, const struct fw_message *message)
{
	for (size_t i = 0; i < CTL_WEB_QUESTIONS_MAX; i++) {
		struct ctl_web_question *question = &feed->questions[i];

		if (question->request == NULL || question->seq != message->reply_to)
			continue;
		answer(feed, question, response_of(question, message));
		return true;
	}
	return false;
}

/* --- the driver --- */

void ctl_web_feed_want(struct ctl_web_feed *feed, int64_t for_ns)
{
	int64_t until_ns = fragi_now_ns() + for_ns;

	if (until_ns > feed->wanted_until_ns)
		feed->wanted_until_ns = until_ns;
}

/*
 * One at a time: a driver may take longer for an answer than a window lasts; and once a second,
 * however short windows are. Returns whether it will come.
 */
static bool ask_state(struct ctl_web_feed *feed)
{
	struct fw_message request = {.kind = FW_REQUEST, .request = {FW_REQUEST_STATE, ""}};
	int64_t now_ns = fragi_now_ns();

	if (feed->state_seq != 0)
		return true;
	if (feed->state != NULL && now_ns < feed->state_asked_ns + STATE_NS)
		return false;
	feed->state_asked_ns = now_ns;
	feed->state_seq = ctl_driver_send(feed->driver, &request) == 0 ? request.seq : 0;
	return feed->state_seq != 0;
}

static void begin_look(struct ctl_web_feed *feed)
{
	struct fw_message look = {
		.kind = FW_LOOK, .look = {.name = "", .every_ns = feed->every_ns, .changes = true}};

	feed->look_seq = ctl_driver_send(feed->driver, &look) == 0 ? look.seq : 0;
	(void)ask_state(feed);
}

static void forget(struct ctl_web_feed *feed)
{
	ctl_top_window_free(&feed->coming);
	ctl_top_window_free(&feed->window);
	fw_message_free(feed->state);
	feed->state = NULL;
	drop(feed->frame);
	feed->frame = NULL;
}

static void end_look(struct ctl_web_feed *feed)
{
	struct fw_message look = {.kind = FW_LOOK, .look = {"", feed->every_ns, true}};

	(void)ctl_driver_send(feed->driver, &look);
	feed->look_seq = feed->state_seq = 0;
	forget(feed);
}

static void take_window(struct ctl_web_feed *feed, struct fw_message *message)
{
	bool is_last = message->looked.is_last;

	(void)ctl_top_window_add(&feed->coming, &feed->window, message);
	if (!is_last)
		return;
	ctl_top_window_free(&feed->window);
	feed->window = feed->coming;
	feed->coming = (struct ctl_top_window){0};
	feed->lost[0] = '\0';
	feed->awaits_window = false;
	if (!ask_state(feed))
		publish(feed);
}

static bool take_message(struct ctl_web_feed *feed, struct fw_message *message)
{
	bool has_answered = false;

	if (ctl_web_scrape_take(feed, message, &has_answered))
		return has_answered;
	if (message->kind == FW_LOOKED && message->reply_to == feed->look_seq) {
		take_window(feed, message);
		return false;
	}
	if (message->kind == FW_REPLY && message->reply_to == feed->state_seq) {
		fw_message_free(feed->state);
		feed->state = message;
		feed->state_seq = 0;
		if (!feed->awaits_window)
			publish(feed);
		return true;
	}
	if (message->kind == FW_ANSWER && message->reply_to == feed->look_seq) {
		snprintf(feed->lost, sizeof(feed->lost), "%.800s",
			 message->answer.failure.sentence);
		feed->look_seq = 0;
		feed->is_refused = true;
		publish(feed);
		has_answered = true;
	} else if (!ctl_web_echo_take(feed, message)) {
		has_answered = take_answer(feed, message);
	}
	fw_message_free(message);
	return has_answered;
}

/* What was known stays, and is shown as old. */
static void lose(struct ctl_web_feed *feed)
{
	snprintf(feed->lost, sizeof(feed->lost), "lost the driver at %.300s: %.400s",
		 feed->driver->where, feed->driver->why);
	feed->was_connected = false;
	ctl_top_window_free(&feed->coming);
	feed->look_seq = feed->state_seq = 0;
	(void)give_up_questions(feed, true);
	(void)ctl_web_scrape_give_up(feed, true);
	ctl_web_echo_forget(feed);
	publish(feed);
}

static void reconnect(struct ctl_web_feed *feed)
{
	if (ctl_driver_reopen(feed->driver) == CTL_OK) {
		/* Until the first window browsers keep what is marked as old. */
		feed->awaits_window = feed->window.count > 0;
		ctl_top_window_free(&feed->window);
		feed->lost[0] = '\0';
		feed->was_connected = true;
		return;
	}
	snprintf(feed->lost, sizeof(feed->lost), "%.800s", feed->driver->sentence);
	publish(feed); /* shows browsers that this process is there */
}

static bool is_wanted(const struct ctl_web_feed *feed)
{
	return has_streams(feed) || fragi_now_ns() < feed->wanted_until_ns;
}

bool ctl_web_feed_step(struct ctl_web_feed *feed)
{
	struct fw_message *message;
	bool has_news = false;

	while (feed->driver->first != NULL && ctl_driver_next(feed->driver, &message) == CTL_OK)
		has_news |= take_message(feed, message);
	if (feed->driver->connection == NULL && feed->was_connected) {
		lose(feed);
		has_news = true;
	}
	if (feed->is_due) {
		feed->is_due = feed->is_refused = false;
		has_news |= give_up_questions(feed, false);
		has_news |= ctl_web_scrape_give_up(feed, false);
		ctl_web_echo_expire(feed);
		if (feed->driver->connection == NULL) {
			reconnect(feed);
			has_news = true;
		}
		if (has_streams(feed))
			ctl_web_feed_want(feed, LINGER_NS);
		if (is_connected(feed) && feed->look_seq != 0 && !is_wanted(feed))
			end_look(feed);
	}
	if (is_connected(feed) && feed->look_seq == 0 && !feed->is_refused && is_wanted(feed))
		begin_look(feed);
	return has_news;
}

static void on_tick(uv_timer_t *timer)
{
	struct ctl_web_feed *feed = timer->data;

	feed->is_due = true;
}

void ctl_web_feed_begin(struct ctl_web_feed *feed)
{
	feed->driver->is_quiet = true;
	snprintf(feed->lost, sizeof(feed->lost), "the driver has not answered yet");
	feed->is_due = true;
	uv_timer_init(&feed->driver->loop, &feed->tick);
	feed->tick.data = feed;
	uv_timer_start(&feed->tick, on_tick, 1000, 1000);
}

void ctl_web_feed_end(struct ctl_web_feed *feed)
{
	uv_close((uv_handle_t *)&feed->tick, NULL);
	ctl_web_scrape_fini(&feed->scrape);
	ctl_web_echo_forget(feed);
	forget(feed);
}
