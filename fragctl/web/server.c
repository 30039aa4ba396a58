// SPDX-License-Identifier: Apache-2.0
#include <fragctl/web/web.h>

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include <base/secret.h>

/*
 * Who may ask: on this machine the user of this process and root, without a token; everybody else
 * brings the token, if there is one. A request names a host that is known: a web site could have
 * its own name resolve to this address, and read the page through the browser. A command comes from
 * the page itself, with a header that other sites cannot send.
 */

/* Nothing is loaded from elsewhere, run inline, framed, kept, or read by other sites. */
static const struct {
	const char *name, *value;
} policies[] = {
	{"Content-Security-Policy",
	 "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
	 "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
	{"X-Content-Type-Options", "nosniff"},
	{"Referrer-Policy", "no-referrer"},
	{"Cross-Origin-Resource-Policy", "same-origin"},
	{"Cache-Control", "no-store"},
};

/* --- texts --- */

struct ctl_http_response ctl_web_text(unsigned int status, const char *text)
{
	return (struct ctl_http_response){.status = status,
					  .type = "text/plain; charset=utf-8",
					  .body = text,
					  .size = strlen(text)};
}

struct ctl_http_response ctl_web_json(unsigned int status, char *text, size_t size)
{
	if (text == NULL)
		return ctl_web_text(500, "out of memory\n");
	return (struct ctl_http_response){.status = status,
					  .type = "application/json",
					  .body = text,
					  .size = size,
					  .is_owned = true};
}

const char *ctl_web_query(struct ctl_web *web, struct ctl_http_request *request, const char *name)
{
	const char *text = web->http_module->query(request, name);

	return text != NULL ? text : "";
}

/* --- who may ask --- */

bool ctl_web_token_is_right(const struct ctl_web *web, const char *text)
{
	return web->token != NULL && text != NULL && strlen(text) == web->token_bytes &&
	       fragi_secret_equal(text, web->token, web->token_bytes);
}

/* Of a list "a=1; frag_token=..; b=2". */
static bool cookie_is_right(const struct ctl_web *web, const char *cookies)
{
	char value[CTL_WEB_TOKEN_MAX + 1];
	bool is_right = false;

	for (const char *at = cookies; at != NULL && !is_right; at = strchr(at, ';')) {
		size_t length;

		at += strspn(at, "; ");
		if (strncmp(at, CTL_WEB_COOKIE, strlen(CTL_WEB_COOKIE)) != 0)
			continue;
		at += strlen(CTL_WEB_COOKIE);
		length = strcspn(at, "; ");
		if (length >= sizeof(value))
			continue;
		memcpy(value, at, length);
		value[length] = '\0';
		is_right = ctl_web_token_is_right(web, value);
	}
	explicit_bzero(value, sizeof(value));
	return is_right;
}

static bool has_token(const struct ctl_web *web, struct ctl_http_request *request)
{
	const char *bearer = web->http_module->header(request, "Authorization");

	return (bearer != NULL && strncasecmp(bearer, "Bearer ", 7) == 0 &&
		ctl_web_token_is_right(web, bearer + 7)) ||
	       cookie_is_right(web, web->http_module->header(request, "Cookie"));
}

/* What follows the name of a host: nothing, or a colon and a number. */
static bool is_port(const char *text)
{
	return text[0] == '\0' ||
	       (text[0] == ':' && text[1 + strspn(text + 1, "0123456789")] == '\0');
}

/* An address is no name, so nobody can have it resolve to another one. */
static bool is_address(char *name)
{
	size_t length = strlen(name);
	uint8_t address[16];

	if (inet_pton(AF_INET, name, address) == 1)
		return true;
	if (length < 3 || name[0] != '[' || name[length - 1] != ']')
		return false;
	name[length - 1] = '\0';
	return inet_pton(AF_INET6, name + 1, address) == 1;
}

static bool host_is_known(const struct ctl_web *web, const char *host)
{
	char name[256];
	size_t length;

	if (host == NULL)
		return false;
	length = host[0] == '[' ? strcspn(host, "]") + (strchr(host, ']') != NULL)
				: strcspn(host, ":");
	if (length == 0 || length >= sizeof(name) || !is_port(host + length))
		return false;
	memcpy(name, host, length);
	name[length] = '\0';
	for (size_t i = 0; i < web->hosts.count; i++)
		if (strcasecmp(name, web->hosts.items[i]) == 0)
			return true;
	return strcasecmp(name, "localhost") == 0 || strcasecmp(name, web->own_host) == 0 ||
	       is_address(name);
}

/* A browser says which site sends a command; this page sends a header besides. */
static bool is_from_page(struct ctl_web *web, struct ctl_http_request *request)
{
	const char *origin = web->http_module->header(request, "Origin");
	const char *site = web->http_module->header(request, "Sec-Fetch-Site");
	const char *after = origin != NULL ? strstr(origin, "://") : NULL;

	return web->http_module->header(request, "X-Frag-Page") != NULL &&
	       (origin == NULL || (after != NULL && strcmp(after + 3, request->host) == 0)) &&
	       (site == NULL || strcmp(site, "same-origin") == 0);
}

static const struct ctl_web_route *find_route(const char *method, const char *path,
					      bool *out_has_path)
{
	const struct ctl_web_route *route;

	*out_has_path = false;
	for (size_t i = 0; (route = ctl_web_route_at(i)) != NULL; i++) {
		if (strcmp(route->path, path) != 0)
			continue;
		*out_has_path = true;
		if (strcmp(route->method, method) == 0)
			return route;
	}
	return NULL;
}

static const char *method_of(const struct ctl_http_request *request)
{
	return strcmp(request->method, "HEAD") == 0 ? "GET" : request->method;
}

static struct ctl_http_response refuse_stranger(const struct ctl_web *web)
{
	struct ctl_http_response response;

	if (web->token == NULL)
		return ctl_web_text(
			403,
			"this page is for the user who runs fragctl web; another one needs its --token-file\n");
	response = ctl_web_text(401, "give the token of fragctl web\n");
	response.headers[0].name = "WWW-Authenticate";
	response.headers[0].value = "Bearer";
	return response;
}

static struct ctl_http_response choose(struct ctl_web *web, struct ctl_http_request *request)
{
	bool has_path;
	const struct ctl_web_route *route =
		find_route(method_of(request), request->path, &has_path);
	struct ctl_http_response response = {0};

	if (!host_is_known(web, request->host))
		return ctl_web_text(
			421,
			"ask for this page by its address, or as localhost; fragctl web --host-name NAME allows a name\n");
	if (route == NULL)
		return has_path ? ctl_web_text(405, "this method is not for this path\n")
				: ctl_web_text(404, "there is nothing here\n");
	if (!route->is_open && !request->is_trusted && !has_token(web, request))
		return refuse_stranger(web);
	if (route->is_control && !web->controls)
		return ctl_web_text(403, "commands are off; fragctl web --control allows them\n");
	if (strcmp(route->method, "POST") == 0 && !is_from_page(web, request))
		return ctl_web_text(403, "only the page itself sends this\n");
	route->respond(web, request, &response);
	return response;
}

static void add_header(struct ctl_http_response *response, const char *name, const char *value)
{
	for (size_t i = 0; i < CTL_HTTP_HEADERS_MAX; i++)
		if (response->headers[i].name == NULL) {
			response->headers[i].name = name;
			response->headers[i].value = value;
			return;
		}
}

void ctl_web_add_policies(struct ctl_http_response *out)
{
	for (size_t i = 0; i < FRAG_COUNT_OF(policies); i++)
		add_header(out, policies[i].name, policies[i].value);
}

void ctl_web_respond(void *arg, struct ctl_http_request *request, struct ctl_http_response *out)
{
	*out = choose(arg, request);
	ctl_web_add_policies(out);
}
