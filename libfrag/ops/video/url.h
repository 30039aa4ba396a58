/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VIDEO_URL_H
#define VIDEO_URL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <frag/error.h>

/*
 * Which streams of a network may be played, and for how long one is waited for. FFmpeg asks
 * video_watch_expired while it waits.
 */

#define VIDEO_URL_SHOWN 200

/*
 * Checks that a URL is of a protocol that may be used.
 * - out_protocols: receives the protocols that FFmpeg may open for it; static
 * - out_shown: receives the URL as it may be logged, see video_url_show
 * Returns 0; -EINVAL with a sentence.
 */
int video_url_check(const char *url, const char **out_protocols, char out_shown[VIDEO_URL_SHOWN],
		    struct frag_err *err);

/*
 * Whether a path that is none has a URL at its end, as one has that was given for a file; then
 * out_shown is as above.
 */
bool video_url_in_path(const char *path, char out_shown[VIDEO_URL_SHOWN]);

/* Writes a URL as frag_hide_credentials leaves it. */
void video_url_show(const char *url, char out[VIDEO_URL_SHOWN]);

struct video_watch {
	int stop_fd;      /* readable when the application is to stop; -1: there is none */
	int64_t due_ns;   /* by CLOCK_MONOTONIC */
	bool is_stopped;  /* the wait ended because the application is to stop */
	bool timed_out;   /* ... because due_ns had come */
	atomic_bool ends; /* another thread ends every wait */
};

/* Begins a wait of at most limit_ns. */
void video_watch_begin(struct video_watch *watch, int64_t limit_ns);
/* Returns 1 when the wait is over, else 0. context: a struct video_watch. */
int video_watch_expired(void *context);

#endif
