// SPDX-License-Identifier: Apache-2.0
#include <fragctl/web/web.h>

#include <stdlib.h>

#include <base/stamp.h>
#include <fragctl/metrics.h>

#define SECOND_NS INT64_C(1000000000)
#define MEASURE_NS (120 * SECOND_NS) /* a scrape counts as looking for so long */
#define FRESH_NS (SECOND_NS / 4)     /* tables are as good as new for so long */
#define ANSWER_NS (8 * SECOND_NS)    /* Prometheus waits 10 s */

static struct ctl_http_response page_of(const struct ctl_web_scrape *scrape)
{
	const struct ctl_metrics_source source = {
		.state = scrape->state != NULL ? &scrape->state->reply : NULL,
		.apps = scrape->window.apps,
		.app_count = scrape->window.count,
	};
	struct ctl_http_response response = {.status = 200,
					     .type = "text/plain; version=0.0.4; charset=utf-8",
					     .is_owned = true};
	char *text;

	if (ctl_metrics_write(&source, &text, &response.size) < 0)
		return ctl_web_text(500, "out of memory\n");
	response.body = text;
	return response;
}

static void forget(struct ctl_web_scrape *scrape)
{
	ctl_top_window_free(&scrape->window);
	fw_message_free(scrape->state);
	scrape->state = NULL;
	scrape->look_seq = scrape->state_seq = 0;
	scrape->asked_ns = 0;
}

static void answer_all(struct ctl_web_feed *feed)
{
	struct ctl_web_scrape *scrape = &feed->scrape;

	for (uint32_t i = 0; i < scrape->waiting_count; i++) {
		struct ctl_http_response response = page_of(scrape);

		ctl_web_add_policies(&response);
		feed->http_module->answer(scrape->waiting[i], &response);
	}
	scrape->waiting_count = 0;
}

static bool ask(struct ctl_web_feed *feed, int64_t now_ns)
{
	struct ctl_web_scrape *scrape = &feed->scrape;
	struct fw_message look = {.kind = FW_LOOK};
	struct fw_message request = {.kind = FW_REQUEST, .request = {FW_REQUEST_STATE, ""}};

	forget(scrape);
	look.look = (struct fw_look){
		.name = "", .every_ns = MEASURE_NS, .at_once = true, .rows = FW_LOOK_ROWS_MOST};
	if (ctl_driver_send(feed->driver, &look) < 0 || ctl_driver_send(feed->driver, &request) < 0)
		return false;
	scrape->look_seq = look.seq;
	scrape->state_seq = request.seq;
	scrape->asked_ns = now_ns;
	scrape->until_ns = now_ns + ANSWER_NS;
	return true;
}

void ctl_web_metrics(struct ctl_web *web, struct ctl_http_request *request,
		     struct ctl_http_response *out)
{
	struct ctl_web_feed *feed = &web->feed;
	struct ctl_web_scrape *scrape = &feed->scrape;
	int64_t now_ns = fragi_now_ns();
	bool is_asking = scrape->look_seq != 0 || scrape->state_seq != 0;
	bool is_fresh = scrape->asked_ns != 0 && now_ns - scrape->asked_ns < FRESH_NS;

	if (feed->driver->connection == NULL || !feed->driver->is_welcome)
		forget(scrape);
	else if (scrape->waiting_count == CTL_WEB_SCRAPES_MAX) {
		*out = ctl_web_text(429, "too many scrapes at a time\n");
		return;
	} else if (is_asking || (!is_fresh && ask(feed, now_ns))) {
		scrape->waiting[scrape->waiting_count++] = request;
		out->is_pending = true;
		return;
	}
	*out = page_of(scrape);
}

bool ctl_web_scrape_take(struct ctl_web_feed *feed, struct fw_message *message, bool *answered)
{
	struct ctl_web_scrape *scrape = &feed->scrape;
	uint64_t seq = message->reply_to;

	if (seq == 0 || (seq != scrape->look_seq && seq != scrape->state_seq))
		return false;
	if (message->kind == FW_LOOKED) {
		scrape->look_seq = message->looked.is_last ? 0 : scrape->look_seq;
		(void)ctl_top_window_add(&scrape->window, NULL, message);
	} else if (message->kind == FW_REPLY) {
		scrape->state_seq = 0;
		scrape->state = message;
	} else { /* refused */
		scrape->look_seq = scrape->look_seq != seq ? scrape->look_seq : 0;
		scrape->state_seq = scrape->state_seq != seq ? scrape->state_seq : 0;
		fw_message_free(message);
	}
	*answered = scrape->look_seq == 0 && scrape->state_seq == 0;
	if (*answered)
		answer_all(feed);
	return true;
}

bool ctl_web_scrape_give_up(struct ctl_web_feed *feed, bool is_lost)
{
	struct ctl_web_scrape *scrape = &feed->scrape;
	bool waited = scrape->waiting_count > 0;

	if (!is_lost && (!waited || fragi_now_ns() < scrape->until_ns))
		return false;
	forget(scrape);
	answer_all(feed);
	return waited;
}

void ctl_web_scrape_fini(struct ctl_web_scrape *scrape)
{
	forget(scrape);
}
