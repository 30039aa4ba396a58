/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_WEB_SCRAPE_H
#define CTL_WEB_SCRAPE_H

#include <fragctl/http/http.h>
#include <fragctl/top_window.h>

/*
 * /metrics: a scrape asks the driver for its state and its sums, and is answered when both have
 * come. Scrapes at the same time, and those within 250 ms, get the same tables.
 */
#define CTL_WEB_SCRAPES_MAX 16 /* that wait */

struct ctl_web;
struct ctl_web_feed;

struct ctl_web_scrape {
	struct ctl_http_request *waiting[CTL_WEB_SCRAPES_MAX];
	uint32_t waiting_count;
	uint64_t look_seq, state_seq; /* 0: has come, or was not asked for */
	int64_t until_ns;             /* the driver has so long to answer */
	struct ctl_top_window window;
	struct fw_message *state; /* a REPLY; NULL: none */
	int64_t asked_ns;         /* of the tables; 0: there are none */
};

/* The route. */
void ctl_web_metrics(struct ctl_web *web, struct ctl_http_request *request,
		     struct ctl_http_response *out);
/* Takes a message if it belongs to a scrape. *answered: a request was answered */
bool ctl_web_scrape_take(struct ctl_web_feed *feed, struct fw_message *message, bool *answered);
/* Answers those that have waited too long, or whose driver is gone. Whether there were any. */
bool ctl_web_scrape_give_up(struct ctl_web_feed *feed, bool is_lost);
void ctl_web_scrape_fini(struct ctl_web_scrape *scrape);

#endif
