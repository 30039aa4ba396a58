/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_HTTP_H
#define CTL_HTTP_H

#include <stdbool.h>
#include <sys/types.h>

#include <type/module.h>

/*
 * An HTTP server without threads and without a socket of its own: the caller accepts connections,
 * gives them to it, and runs it when its descriptor is readable or its timeout is over. A module,
 * since libmicrohttpd and GnuTLS would slow down the start of each fragctl that needs neither.
 *
 * What clients can take is bounded: connections (the oldest that has not asked anything goes when a
 * new one comes), the time for a request, its head and its body.
 */
#define CTL_HTTP_CONNECTIONS_MAX 256 /* that are not streams */
#define CTL_HTTP_STREAMS_MAX 64
#define CTL_HTTP_HEAD_MAX (32u << 10)
#define CTL_HTTP_BODY_MAX (64u << 10)
#define CTL_HTTP_HEADERS_MAX 8

struct ctl_http;

/* A request whose body has come. Its texts live until it is answered. */
struct ctl_http_request {
	const char *method, *path; /* "GET", "/data"; the path is decoded */
	const char *host;          /* NULL: it names no host, or several */
	const char *body;          /* terminated */
	size_t body_size;
	bool is_trusted; /* as its connection was added */
};

/* What a browser reads for as long as it likes. */
struct ctl_http_stream {
	/* Returns how many bytes; 0: none before wake is called. */
	ssize_t (*read)(void *arg, char *out, size_t size);
	void (*end)(void *arg); /* the connection is gone */
	void *arg;
};

struct ctl_http_response {
	unsigned int status; /* 200 */
	const char *type;    /* "text/plain" */
	const char *body;
	size_t size;
	bool is_owned;                 /* by the response: freed with free() */
	bool is_pending;               /* it is answered by `answer` later; nothing else is set */
	struct ctl_http_stream stream; /* read is set: in place of a body */
	struct {
		const char *name, *value; /* copied */
	} headers[CTL_HTTP_HEADERS_MAX];
};

struct ctl_http_options {
	/* Answers a request. It may call everything but run and destroy. */
	void (*respond)(void *arg, struct ctl_http_request *request, struct ctl_http_response *out);
	void *arg;
	const char *certificate, *certificate_key; /* PEM; NULL: without TLS */
};

struct ctl_http_module {
	struct fragi_module_head head;
	int (*create)(const struct ctl_http_options *options, struct ctl_http **out,
		      struct frag_err *err);
	/* Pending requests are given up. NULL is accepted. */
	void (*destroy)(struct ctl_http *http);
	/* Takes a connected socket. is_trusted: its requests say so */
	void (*add)(struct ctl_http *http, int fd, bool is_trusted);
	int (*descriptor)(const struct ctl_http *http);
	/* Returns after how many milliseconds it is to run again; -1: when it is readable */
	int (*run)(struct ctl_http *http);
	/* Streams have bytes. */
	void (*wake)(struct ctl_http *http);
	uint32_t (*streams)(const struct ctl_http *http);
	/* NULL: the request has none; of several the first one. */
	const char *(*header)(struct ctl_http_request *request, const char *name);
	const char *(*query)(struct ctl_http_request *request, const char *name);
	/* Answers a request that is pending. Its stream is not looked at. */
	void (*answer)(struct ctl_http_request *request, const struct ctl_http_response *response);
};
#define CTL_HTTP_SYMBOL "ctl_http_v1"
FRAGI_API extern const struct ctl_http_module ctl_http_v1;

#endif
