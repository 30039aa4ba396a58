// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "url.h"

/*
 * What FFmpeg may open for a URL, also when a playlist or a redirect names another one: nothing
 * that reads files of this machine.
 */
static const struct {
	const char *scheme, *protocols;
} allowed[] = {
	{"http://", "http,tcp"},
	{"https://", "https,http,tls,tcp"},
	{"rtsp://", "rtsp,rtp,udp,tcp"},
	{"rtsps://", "rtsps,rtsp,rtp,udp,tls,tcp"},
	{"udp://", "udp"},
};

/* What may not stand in a URL is in no word of a text either. */
void video_url_show(const char *url, char out[VIDEO_URL_SHOWN])
{
	char *text = strdup(url);

	for (char *c = text; c != NULL && *c != '\0'; c++)
		if (strchr(" \t\r\n\"'", *c) != NULL)
			*c = '*';
	if (text != NULL)
		frag_hide_credentials(text, 0);
	snprintf(out, VIDEO_URL_SHOWN, "%s", text != NULL ? text : "...");
	free(text);
}

int video_url_check(const char *url, const char **out_protocols, char out_shown[VIDEO_URL_SHOWN],
		    struct frag_err *err)
{
	for (size_t i = 0; i < FRAG_COUNT_OF(allowed); i++) {
		if (strncasecmp(url, allowed[i].scheme, strlen(allowed[i].scheme)) != 0)
			continue;
		*out_protocols = allowed[i].protocols;
		video_url_show(url, out_shown);
		return 0;
	}
	return frag_err_set(
		err, -EINVAL,
		"url does not begin with http://, https://, rtsp://, rtsps:// or udp://; correct it, or name a file with path");
}

bool video_url_in_path(const char *path, char out_shown[VIDEO_URL_SHOWN])
{
	const char *scheme = strstr(path, "://"), *protocols;

	while (scheme != NULL && scheme > path && scheme[-1] != '/')
		scheme--;
	return scheme != NULL && video_url_check(scheme, &protocols, out_shown, NULL) == 0;
}

static int64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

void video_watch_begin(struct video_watch *watch, int64_t limit_ns)
{
	watch->due_ns = clock_ns() + limit_ns;
	watch->timed_out = false;
}

int video_watch_expired(void *context)
{
	struct video_watch *watch = context;
	struct pollfd stop = {.fd = watch->stop_fd, .events = POLLIN};

	if (poll(&stop, 1, 0) > 0)
		watch->is_stopped = true;
	if (clock_ns() >= watch->due_ns)
		watch->timed_out = true;
	return watch->is_stopped || watch->timed_out || atomic_load(&watch->ends);
}
