/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_WEB_FEED_H
#define CTL_WEB_FEED_H

#include <fragctl/http/http.h>
#include <fragctl/tap.h>
#include <fragctl/top_window.h>
#include <fragctl/web/scrape.h>

/*
 * What the driver says: the newest tables while somebody wants them, one text of them for all
 * browsers, and answers to questions. While the driver is gone it is looked for every second.
 */
#define CTL_WEB_QUESTIONS_MAX 24 /* that are open; a driver takes 64 between two of its beats */

/* The text of a moment, as an event of a stream. */
struct ctl_web_frame {
	uint32_t references;
	size_t size;
	char *text;
};

/* Writes what answers a question, as JSON. */
typedef void (*ctl_web_write_fn)(const struct fw_message *answer, FILE *out);

struct ctl_web_question {
	struct ctl_http_request *request; /* NULL: free */
	uint64_t seq;
	int64_t until_ns;
	ctl_web_write_fn write;
};

/* A flow that pages watch. */
#define CTL_WEB_ECHOES_MAX 4 /* as many as a driver gives a client */
struct ctl_web_echo {
	struct ctl_tap tap; /* its seq 0: free */
	char *application, *flow;
	int64_t until_ns; /* pages want it until then */
	char *text;       /* its newest message as JSON, or why there is none; NULL: none yet */
	size_t size;
	uint64_t seen; /* of that message */
	bool has_failed;
};

struct ctl_web_feed {
	struct ctl_driver *driver;
	const struct ctl_http_module *http_module;
	struct ctl_http *http;
	int64_t every_ns;
	bool controls, graphs; /* the page may give commands, and start graphs */
	/* the newest tables; none before the first window, and while nobody wants them */
	struct ctl_top_window window;
	struct fw_message *state; /* a REPLY; NULL: none */
	char lost[900];           /* why there is no driver now; empty: there is one */

	struct ctl_web_frame *frame; /* NULL: none */
	uint64_t frame_number;
	struct ctl_top_window coming;
	uint64_t look_seq, state_seq; /* 0: not asked */
	int64_t state_asked_ns;
	int64_t wanted_until_ns; /* also without streams */
	struct ctl_web_question questions[CTL_WEB_QUESTIONS_MAX];
	struct ctl_web_scrape scrape;
	struct ctl_web_echo echoes[CTL_WEB_ECHOES_MAX];
	uv_timer_t tick;
	bool is_due;     /* a second has passed */
	bool is_refused; /* it may not look now */
	bool was_connected;
	bool awaits_window; /* of a driver that is back */
};

void ctl_web_feed_begin(struct ctl_web_feed *feed);
/* After each turn of the driver's loop. Returns whether the server has something to do. */
bool ctl_web_feed_step(struct ctl_web_feed *feed);
void ctl_web_feed_end(struct ctl_web_feed *feed);
/* Somebody wants the tables for so long from now on. */
void ctl_web_feed_want(struct ctl_web_feed *feed, int64_t for_ns);
/* A stream of all that comes. Returns 0 or -ENOMEM. */
int ctl_web_feed_stream(struct ctl_web_feed *feed, struct ctl_http_stream *out);
/* Sends a message to the driver. Returns false: there is no driver now. */
bool ctl_web_feed_send(struct ctl_web_feed *feed, struct fw_message *message);
/* Says that there is no driver now. */
struct ctl_http_response ctl_web_feed_lost(const struct ctl_web_feed *feed);
/*
 * Asks the driver with this message, and answers the request with what comes.
 * - write: gets what is no ANSWER with a failure
 */
void ctl_web_feed_ask(struct ctl_web_feed *feed, struct ctl_http_request *request,
		      struct fw_message *message, ctl_web_write_fn write,
		      struct ctl_http_response *out);

/* echo.c */
/* Returns whether it was about an echo; it stays the caller's. */
bool ctl_web_echo_take(struct ctl_web_feed *feed, const struct fw_message *message);
/* Once a second: ends what no page asks for any more. */
void ctl_web_echo_expire(struct ctl_web_feed *feed);
/* The driver is gone, and all that it was asked for. */
void ctl_web_echo_forget(struct ctl_web_feed *feed);

#endif
