/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_WEB_H
#define CTL_WEB_H

#include <fragctl/http/http.h>
#include <fragctl/web/feed.h>

/*
 * `fragctl web`: a page in the browser about what a driver runs. It is a client of the driver like
 * any other. One thread: the loop of the session with the driver also runs the HTTP server. While
 * nobody looks at the page the driver measures nothing.
 *
 *   web.c      the verb, the loop
 *   listen.c   the socket at which browsers arrive, keys and tokens
 *   server.c   who may ask, and the route that answers
 *   routes.c   the table of routes, and the plain ones
 *   feed.c     the driver: the newest tables, and one text of them for all browsers
 *   scrape.c   /metrics: what Prometheus asks for
 *   echo.c     /echo: messages of the flows that pages have open
 *   ask.c      routes that the driver answers: logs, events, commands
 *   start.c    the graphs that the page may start
 *   page/      what the browser gets; nothing of it comes from elsewhere
 */
struct ctl_web {
	/* flags */
	const char *listen_text, *token_file, *every_text, *env_file;
	const char *graphs_text; /* folder of graphs that the page may start; NULL: none */
	const char *certificate_file, *certificate_key_file;
	struct fragi_texts hosts; /* names under which the page is asked for */
	bool controls;            /* the page may give commands */
	bool opens;               /* in the browser of this desktop */
	/* the server */
	const struct ctl_http_module *http_module;
	struct ctl_http *http;
	struct fw_users users; /* who needs no token */
	char *token;           /* secret; NULL: there is none */
	size_t token_bytes;
	char *socket_path; /* made by this process; NULL: it listens on TCP */
	int listen_fd;
	uv_poll_t listener, readable;
	uv_timer_t timer;
	char url[300], own_host[256]; /* own_host: as --listen names it */
	char *graphs;                 /* absolute; NULL: none */
	bool is_open;
	/* the driver */
	struct ctl_driver driver;
	struct ctl_web_feed feed;
};

/*
 * A route answers a request; it may look at the newest tables (feed.h). Its caller has checked the
 * host and the method.
 */
struct ctl_web_route {
	const char *method, *path;
	void (*respond)(struct ctl_web *web, struct ctl_http_request *request,
			struct ctl_http_response *out);
	bool is_open;    /* without a token: it shows nothing of what runs */
	bool is_control; /* a command: only from the page itself, and only with --control */
};
/* The i-th route; NULL beyond the last. */
const struct ctl_web_route *ctl_web_route_at(size_t i);

#define CTL_WEB_TOKEN_MAX 512
#define CTL_WEB_COOKIE "frag_token="

/* listen.c */
/*
 * Listens and starts to answer. Returns CTL_OK, or an exit code, complained. ctl_web_close in every
 * case.
 */
int ctl_web_listen(struct ctl_web *web);
/* After requests were answered or streams woken outside of the server. */
void ctl_web_run(struct ctl_web *web);
void ctl_web_close(struct ctl_web *web);

/* server.c */
/* Answers a request; arg: struct ctl_web. */
void ctl_web_respond(void *arg, struct ctl_http_request *request, struct ctl_http_response *out);
/* What each response says to browsers. */
void ctl_web_add_policies(struct ctl_http_response *out);
/* 409, with the failure as a document. */
struct ctl_http_response ctl_web_failure(const struct fw_failure *failure);
/* A word of the query; "": there is none. */
const char *ctl_web_query(struct ctl_web *web, struct ctl_http_request *request, const char *name);
/* Whether it is the token; false where there is none. */
bool ctl_web_token_is_right(const struct ctl_web *web, const char *text);

/* A response with a text that stays where it is. */
struct ctl_http_response ctl_web_text(unsigned int status, const char *text);
/* ... with a document, which the response frees. NULL: out of memory */
struct ctl_http_response ctl_web_json(unsigned int status, char *text, size_t size);

/* echo.c */
void ctl_web_echo(struct ctl_web *web, struct ctl_http_request *request,
		  struct ctl_http_response *out);

/* ask.c */
void ctl_web_events(struct ctl_web *web, struct ctl_http_request *request,
		    struct ctl_http_response *out);
void ctl_web_logs(struct ctl_web *web, struct ctl_http_request *request,
		  struct ctl_http_response *out);
void ctl_web_set(struct ctl_web *web, struct ctl_http_request *request,
		 struct ctl_http_response *out);
void ctl_web_stop(struct ctl_web *web, struct ctl_http_request *request,
		  struct ctl_http_response *out);
void ctl_web_restart(struct ctl_web *web, struct ctl_http_request *request,
		     struct ctl_http_response *out);
void ctl_web_drain(struct ctl_web *web, struct ctl_http_request *request,
		   struct ctl_http_response *out);
void ctl_web_undrain(struct ctl_web *web, struct ctl_http_request *request,
		     struct ctl_http_response *out);

/* start.c */
void ctl_web_graphs(struct ctl_web *web, struct ctl_http_request *request,
		    struct ctl_http_response *out);
void ctl_web_start(struct ctl_web *web, struct ctl_http_request *request,
		   struct ctl_http_response *out);

#endif
