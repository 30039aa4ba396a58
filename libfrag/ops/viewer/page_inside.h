/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VIEWER_PAGE_INSIDE_H
#define VIEWER_PAGE_INSIDE_H

#include <microhttpd.h>
#include <pthread.h>

#include "page.h"

/* A connection, from accept to close. Everything is guarded by the page's lock. */
struct guest {
	struct guest *next;
	int fd;
	int64_t came_ns; /* on the monotonic clock */
	bool has_asked;
};

struct page {
	struct page_owner owner;
	struct MHD_Daemon *daemon;
	bool is_loopback;
	unsigned int connections; /* the most at a time */

	pthread_mutex_t lock;
	struct guest *guests; /* the newest first */
	struct stream *streams;
	unsigned int watchers; /* streams */
	struct picture *newest;
	bool is_closing;
};

/*
 * A response that sends pictures to one connection.
 * - is_endless: /stream; else /picture.jpg
 * Returns it, to be queued; NULL when memory is short.
 */
struct MHD_Response *viewer_stream_create(struct page *page, struct MHD_Connection *connection,
					  bool is_endless);
/* Lets all streams that wait go on: a new picture is there, or the page closes. Under the lock. */
void viewer_streams_resume_locked(struct page *page);
/* Ends the streams that wait and whose browser has gone. Under the lock. */
void viewer_streams_end_gone_locked(struct page *page);

#endif
