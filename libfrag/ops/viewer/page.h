/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VIEWER_PAGE_H
#define VIEWER_PAGE_H

#include "listener.h"
#include "picture.h"

/*
 * The web page: shows the newest picture to whoever looks, over HTTP.
 * - /             the page
 * - /stream       every new picture, as multipart/x-mixed-replace, without an end
 * - /picture.jpg  the newest picture
 * - /status       counters, as JSON
 *
 * One thread serves all connections and never waits for one of them. A connection gets the newest
 * picture when it has sent the last one, so a slow browser sees fewer pictures, and nobody else
 * notices. Every connection carries one request, which must be complete within PAGE_REQUEST_MS, and
 * sooner when there is no room for others: then the oldest one that has not asked is closed. A
 * connection that takes nothing for PAGE_STALLED_S is closed. What strangers can use up is bounded:
 * connections, bytes of a request, and what the kernel keeps to be sent.
 */
#define PAGE_REQUEST_MS 5000
#define PAGE_STALLED_S 10
#define PAGE_TIDY_MS 250 /* how often page_tidy is to be called */

struct page;

/* What the page asks its owner. Called on the page's thread, which holds no lock. */
struct page_owner {
	/* somebody came or went, so page_wants may have changed */
	void (*changed)(void *arg);
	/* writes the answer to /status, which ends with a NUL */
	void (*status)(void *arg, unsigned int watchers, char *text, size_t size);
	void *arg;
};

/*
 * - listener: takes it, also on failure
 * - connections: the most at a time
 * Returns 0, or a failure with a sentence.
 */
int viewer_page_create(const struct listener *listener, unsigned int connections,
		       const struct page_owner *owner, struct page **out, struct frag_err *err);
/* Closes all connections. NULL is accepted. Thread: not the page's. Blocks: until it is done. */
void viewer_page_destroy(struct page *page);

/* The rest: Thread: any. Blocks: no. */

/* Returns whether somebody looks and has not seen this picture. */
bool viewer_page_wants(struct page *page, uint64_t number);
/* Shows a picture to all who look; takes the reference. */
void viewer_page_show(struct page *page, struct picture *picture);
/*
 * Closes connections that hold no complete request after PAGE_REQUEST_MS, and those whose browser
 * has gone while it waited for a picture. Returns whether there are connections.
 */
bool viewer_page_tidy(struct page *page);

#endif
