// SPDX-License-Identifier: Apache-2.0
#include <fragctl/web/web.h>

#include <string.h>

/* The table of routes, and those that need no driver. */

/* The files of the page are in the program: a page and its server are always of one build. */
#define FILE_OF_PAGE(symbol, file)                                                                 \
	__asm__(".pushsection .rodata\n" #symbol ":\n.incbin \"fragctl/web/page/" file             \
		"\"\n.byte 0\n.popsection\n");                                                     \
	extern const char symbol[] __attribute__((visibility("hidden")))
FILE_OF_PAGE(ctl_web_page_html, "page.html");
FILE_OF_PAGE(ctl_web_icon_svg, "icon.svg");
FILE_OF_PAGE(ctl_web_page_css, "page.css");
FILE_OF_PAGE(ctl_web_graph_js, "graph.js");
FILE_OF_PAGE(ctl_web_page_js, "page.js");

static const struct file {
	const char *path, *type, *text;
} files[] = {
	{"/", "text/html; charset=utf-8", ctl_web_page_html},
	{"/icon.svg", "image/svg+xml", ctl_web_icon_svg},
	{"/page.css", "text/css; charset=utf-8", ctl_web_page_css},
	{"/graph.js", "text/javascript; charset=utf-8", ctl_web_graph_js},
	{"/page.js", "text/javascript; charset=utf-8", ctl_web_page_js},
};

static void page(struct ctl_web *web, struct ctl_http_request *request,
		 struct ctl_http_response *out)
{
	(void)web;
	for (size_t i = 0; i < FRAG_COUNT_OF(files); i++)
		if (strcmp(files[i].path, request->path) == 0) {
			*out = ctl_web_text(200, files[i].text);
			out->type = files[i].type;
		}
}

/* All that happens, as server-sent events. */
static void data(struct ctl_web *web, struct ctl_http_request *request,
		 struct ctl_http_response *out)
{
	if (strcmp(request->method, "GET") != 0 ||
	    web->http_module->streams(web->http) >= CTL_HTTP_STREAMS_MAX) {
		*out = ctl_web_text(503, "too many pages are open\n");
		return;
	}
	*out = (struct ctl_http_response){.status = 200, .type = "text/event-stream"};
	out->headers[0].name = "X-Accel-Buffering"; /* of reverse proxies */
	out->headers[0].value = "no";
	if (ctl_web_feed_stream(&web->feed, &out->stream) < 0)
		*out = ctl_web_json(500, NULL, 0);
}

static void healthz(struct ctl_web *web, struct ctl_http_request *request,
		    struct ctl_http_response *out)
{
	(void)web;
	(void)request;
	*out = ctl_web_text(200, "ok\n");
}

static void readyz(struct ctl_web *web, struct ctl_http_request *request,
		   struct ctl_http_response *out)
{
	(void)request;
	*out = web->feed.lost[0] == '\0' ? ctl_web_text(200, "ok\n")
					 : ctl_web_text(503, "there is no driver now\n");
}

/* The browser keeps the token as a cookie that scripts cannot read. */
static void login(struct ctl_web *web, struct ctl_http_request *request,
		  struct ctl_http_response *out)
{
	static char cookie[CTL_WEB_TOKEN_MAX + 100];

	if (!ctl_web_token_is_right(web, request->body)) {
		*out = ctl_web_text(401, "this is not the token\n");
		return;
	}
	*out = ctl_web_text(200, "ok\n");
	snprintf(cookie, sizeof(cookie), CTL_WEB_COOKIE "%s; Path=/; HttpOnly; SameSite=Strict%s",
		 request->body, web->certificate_file != NULL ? "; Secure" : "");
	out->headers[0].name = "Set-Cookie";
	out->headers[0].value = cookie;
}

static const struct ctl_web_route routes[] = {
	{"GET", "/", page, .is_open = true},
	{"GET", "/icon.svg", page, .is_open = true},
	{"GET", "/page.css", page, .is_open = true},
	{"GET", "/graph.js", page, .is_open = true},
	{"GET", "/page.js", page, .is_open = true},
	{"GET", "/healthz", healthz, .is_open = true},
	{"GET", "/readyz", readyz, .is_open = true},
	{"POST", "/login", login, .is_open = true},
	{"GET", "/data", data},
	{"GET", "/metrics", ctl_web_metrics},
	{"GET", "/events", ctl_web_events},
	{"GET", "/logs", ctl_web_logs},
	{"GET", "/echo", ctl_web_echo},
	{"GET", "/graphs", ctl_web_graphs},
	{"POST", "/start", ctl_web_start, .is_control = true},
	{"POST", "/set", ctl_web_set, .is_control = true},
	{"POST", "/stop", ctl_web_stop, .is_control = true},
	{"POST", "/restart", ctl_web_restart, .is_control = true},
	{"POST", "/drain", ctl_web_drain, .is_control = true},
	{"POST", "/undrain", ctl_web_undrain, .is_control = true},
};

const struct ctl_web_route *ctl_web_route_at(size_t i)
{
	return i < FRAG_COUNT_OF(routes) ? &routes[i] : NULL;
}
