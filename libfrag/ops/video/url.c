/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
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

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define HOST_CHARACTERS LETTERS "0123456789.:[]%_-"

/* Whether a part of a path may be a user or a password, or name one. */
static bool is_suspicious(const char *part, size_t length)
{
	static const char *const names[] = {"user", "usr",   "pass", "pwd",   "login",
					    "auth", "token", "key",  "secret"};

	for (size_t i = 0; i < length; i++) {
		char c = part[i];

		if (!isalnum((unsigned char)c) && strchr("._-", c) == NULL)
			return true;
		for (size_t n = 0; n < FRAG_COUNT_OF(names); n++) {
			if (i + strlen(names[n]) <= length &&
			    strncasecmp(part + i, names[n], strlen(names[n])) == 0)
				return true;
		}
	}
	return false;
}

/* A password may hold any character, so that what stands before the last @ is not the host. */
void video_url_show(const char *url, char out[VIDEO_URL_SHOWN])
{
	const char *scheme_end = strstr(url, "://"), *at = strrchr(url, '@');
	const char *host = at != NULL ? at + 1 : scheme_end + 3;
	const char *path = host + strcspn(host, "/?#"), *end = path;

	while (*end == '/') {
		size_t length = strcspn(end + 1, "/?#");

		if (is_suspicious(end + 1, length))
			break;
		end += 1 + length;
	}
	if (strspn(host, HOST_CHARACTERS) < (size_t)(path - host))
		snprintf(out, VIDEO_URL_SHOWN, "%.*s://...", (int)(scheme_end - url), url);
	else
		snprintf(out, VIDEO_URL_SHOWN, "%.*s://%.*s%s", (int)(scheme_end - url), url,
			 (int)(end - host), host, *end == '/' ? "/..." : "");
}

void video_url_hide(const char *text, char *out, size_t size)
{
	size_t n = 0;

	while (*text != '\0' && n + 1 < size) {
		size_t scheme = strspn(text, LETTERS);
		char url[2048], shown[VIDEO_URL_SHOWN];
		size_t length = scheme > 0 ? scheme : 1;
		int written;

		if (scheme > 0 && strncmp(text + scheme, "://", 3) == 0) {
			length += strcspn(text + scheme, " \t\r\n'\"");
			snprintf(url, sizeof(url), "%.*s", (int)length, text);
			video_url_show(url, shown);
			written = snprintf(out + n, size - n, "%s", shown);
		} else {
			written = snprintf(out + n, size - n, "%.*s", (int)length, text);
		}
		n += (size_t)written;
		text += length;
	}
	out[n < size ? n : size - 1] = '\0';
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
