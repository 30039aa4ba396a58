// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "page_inside.h"

#define REQUEST_BYTES_MAX (32 * 1024)
/* Pictures beyond the one that a browser reads would only be old when they arrive. */
#define SEND_BUFFER_BYTES (128 * 1024)
#define STATUS_BYTES 1024

__asm__(".pushsection .rodata\n"
	"viewer_page_html:\n"
	".incbin \"libfrag/ops/viewer/page.html\"\n"
	".byte 0\n"
	".popsection\n");
extern const char viewer_page_html[] __attribute__((visibility("hidden")));

static int64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

struct asked {
	const char *host;
	unsigned int count;
};

static enum MHD_Result note_host(void *arg, enum MHD_ValueKind kind, const char *key,
				 const char *value)
{
	struct asked *asked = arg;

	(void)kind;
	if (strcasecmp(key, "Host") == 0) {
		asked->host = value;
		asked->count++;
	}
	return MHD_YES;
}

/* What follows the name of a host: nothing, or a colon and a number. */
static bool is_port(const char *text)
{
	return text[0] == '\0' ||
	       (text[0] == ':' && text[1 + strspn(text + 1, "0123456789")] == '\0');
}

/*
 * A request names one host, or a proxy on the way could have read another one than is read here. A
 * page on loopback answers only if the browser asked for loopback. Otherwise a web site could have
 * its own name resolve to this address, and read the pictures through the browser.
 */
static bool is_for_us(const struct page *page, struct MHD_Connection *connection)
{
	struct asked asked = {0};
	const char *host;
	char name[64];
	size_t length;
	uint8_t address[16];

	(void)MHD_get_connection_values(connection, MHD_HEADER_KIND, note_host, &asked);
	host = asked.host;
	if (asked.count != 1 || host == NULL)
		return false;
	if (!page->is_loopback)
		return true;
	length = host[0] == '[' ? strcspn(host, "]") + (strchr(host, ']') != NULL)
				: strcspn(host, ":");
	if (length == 0 || length >= sizeof(name) || !is_port(host + length))
		return false;
	memcpy(name, host, length);
	name[length] = '\0';
	if (strcmp(name, "localhost") == 0 || inet_pton(AF_INET, name, address) == 1)
		return true;
	if (name[0] != '[' || name[length - 1] != ']')
		return false;
	name[length - 1] = '\0';
	return inet_pton(AF_INET6, name + 1, address) == 1;
}

static struct MHD_Response *text_response(const char *type, const char *text,
					  enum MHD_ResponseMemoryMode mode)
{
	/* MHD takes what it only reads as void *. */
	union {
		const char *text;
		void *bytes;
	} body = {.text = text};
	struct MHD_Response *response =
		MHD_create_response_from_buffer(strlen(text), body.bytes, mode);

	if (response != NULL)
		MHD_add_response_header(response, "Content-Type", type);
	return response;
}

static struct MHD_Response *status_response(struct page *page)
{
	char text[STATUS_BYTES];
	unsigned int watchers;

	pthread_mutex_lock(&page->lock);
	watchers = page->watchers;
	pthread_mutex_unlock(&page->lock);
	page->owner.status(page->owner.arg, watchers, text, sizeof(text));
	return text_response("application/json", text, MHD_RESPMEM_MUST_COPY);
}

/* Makes the response to a request, and sets its status. */
static struct MHD_Response *respond(struct page *page, struct MHD_Connection *connection,
				    const char *path, const char *method, unsigned int *status)
{
	static const char plain[] = "text/plain";

	*status = MHD_HTTP_OK;
	if (!is_for_us(page, connection)) {
		*status = MHD_HTTP_FORBIDDEN;
		return text_response(plain, "ask for this page by its address, or as localhost\n",
				     MHD_RESPMEM_PERSISTENT);
	}
	if (strcmp(method, "GET") != 0) {
		*status = MHD_HTTP_METHOD_NOT_ALLOWED;
		return text_response(plain, "only GET is answered here\n", MHD_RESPMEM_PERSISTENT);
	}
	if (strcmp(path, "/") == 0)
		return text_response("text/html; charset=utf-8", viewer_page_html,
				     MHD_RESPMEM_PERSISTENT);
	if (strcmp(path, "/stream") == 0)
		return viewer_stream_create(page, connection, true);
	if (strcmp(path, "/picture.jpg") == 0)
		return viewer_stream_create(page, connection, false);
	if (strcmp(path, "/status") == 0)
		return status_response(page);
	*status = MHD_HTTP_NOT_FOUND;
	return text_response(plain, "there are /, /stream, /picture.jpg and /status\n",
			     MHD_RESPMEM_PERSISTENT);
}

/* MHD's handler: the head of a request is complete. */
static enum MHD_Result answer(void *arg, struct MHD_Connection *connection, const char *path,
			      const char *method, const char *version, const char *upload,
			      size_t *upload_size, void **request)
{
	struct page *page = arg;
	struct guest *guest =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)
			->socket_context;
	struct MHD_Response *response;
	enum MHD_Result result;
	unsigned int status;

	(void)version;
	(void)upload;
	(void)upload_size;
	(void)request;
	if (guest == NULL)
		return MHD_NO;
	pthread_mutex_lock(&page->lock);
	guest->has_asked = true;
	pthread_mutex_unlock(&page->lock);
	response = respond(page, connection, path, method, &status);
	if (response == NULL)
		return MHD_NO;
	MHD_add_response_header(response, "Connection", "close");
	MHD_add_response_header(response, "Cache-Control", "no-store");
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	/* No other web site may embed the pictures, nor the page. */
	MHD_add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin");
	MHD_add_response_header(
		response, "Content-Security-Policy",
		"default-src 'self'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; frame-ancestors 'none'");
	result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

/*
 * Where the newest connection is the last one that there is room for, the oldest one that has not
 * asked yet must go, so that silence keeps nobody out. What it has sent is still read and answered.
 */
static void make_room_locked(struct page *page)
{
	struct guest *oldest = NULL;
	unsigned int count = 0;

	for (struct guest *g = page->guests; g != NULL; g = g->next) {
		count++;
		if (!g->has_asked && g != page->guests)
			oldest = g;
	}
	if (oldest != NULL && count >= page->connections)
		shutdown(oldest->fd, SHUT_RD);
}

static void welcome(struct page *page, struct MHD_Connection *connection, void **context)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct guest *guest = calloc(1, sizeof(*guest));
	int bytes = SEND_BUFFER_BYTES;

	*context = guest;
	if (guest == NULL || info == NULL) {
		free(guest);
		*context = NULL;
		return;
	}
	guest->fd = info->connect_fd;
	guest->came_ns = clock_ns();
	setsockopt(guest->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	pthread_mutex_lock(&page->lock);
	guest->next = page->guests;
	page->guests = guest;
	make_room_locked(page);
	pthread_mutex_unlock(&page->lock);
}

static void part(struct page *page, struct guest *guest)
{
	struct guest **link = &page->guests;

	if (guest == NULL)
		return;
	pthread_mutex_lock(&page->lock);
	while (*link != guest)
		link = &(*link)->next;
	*link = guest->next;
	pthread_mutex_unlock(&page->lock);
	free(guest);
}

/* MHD's notification: a connection came, or is about to be closed. */
static void came_or_left(void *arg, struct MHD_Connection *connection, void **context,
			 enum MHD_ConnectionNotificationCode code)
{
	struct page *page = arg;

	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		welcome(page, connection, context);
	else
		part(page, *context);
	page->owner.changed(page->owner.arg);
}

int viewer_page_create(const struct listener *listener, unsigned int connections,
		       const struct page_owner *owner, struct page **out, struct frag_err *err)
{
	struct page *page = calloc(1, sizeof(*page));

	if (page == NULL) {
		close(listener->fd);
		return frag_err_set(err, -ENOMEM, "no memory for the page");
	}
	page->owner = *owner;
	page->is_loopback = listener->is_loopback;
	page->connections = connections;
	pthread_mutex_init(&page->lock, NULL);
	page->daemon = MHD_start_daemon(
		MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_AUTO | MHD_ALLOW_SUSPEND_RESUME, 0, NULL,
		NULL, answer, page, MHD_OPTION_LISTEN_SOCKET, listener->fd,
		MHD_OPTION_CONNECTION_LIMIT, connections, MHD_OPTION_CONNECTION_TIMEOUT,
		(unsigned int)PAGE_STALLED_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)(REQUEST_BYTES_MAX), MHD_OPTION_NOTIFY_CONNECTION, came_or_left, page,
		MHD_OPTION_END);
	if (page->daemon == NULL) {
		close(listener->fd);
		pthread_mutex_destroy(&page->lock);
		free(page);
		return frag_err_set(
			err, -EAGAIN,
			"cannot start the thread that serves %s; check the limits of processes and descriptors",
			listener->url);
	}
	*out = page;
	return 0;
}

void viewer_page_destroy(struct page *page)
{
	if (page == NULL)
		return;
	pthread_mutex_lock(&page->lock);
	page->is_closing = true;
	viewer_streams_resume_locked(page);
	pthread_mutex_unlock(&page->lock);
	MHD_stop_daemon(page->daemon);
	viewer_picture_unref(page->newest);
	pthread_mutex_destroy(&page->lock);
	free(page);
}

bool viewer_page_wants(struct page *page, uint64_t number)
{
	bool wants;

	pthread_mutex_lock(&page->lock);
	wants = page->watchers > 0 && (page->newest == NULL || page->newest->number < number);
	pthread_mutex_unlock(&page->lock);
	return wants;
}

void viewer_page_show(struct page *page, struct picture *picture)
{
	struct picture *older = picture;

	pthread_mutex_lock(&page->lock);
	if (page->watchers > 0) {
		older = page->newest;
		page->newest = picture;
		viewer_streams_resume_locked(page);
	}
	pthread_mutex_unlock(&page->lock);
	viewer_picture_unref(older);
}

bool viewer_page_tidy(struct page *page)
{
	int64_t now_ns = clock_ns();
	bool has_guests;

	pthread_mutex_lock(&page->lock);
	for (struct guest *g = page->guests; g != NULL; g = g->next) {
		if (!g->has_asked && now_ns - g->came_ns > PAGE_REQUEST_MS * INT64_C(1000000))
			shutdown(g->fd, SHUT_RDWR);
	}
	viewer_streams_end_gone_locked(page);
	has_guests = page->guests != NULL;
	pthread_mutex_unlock(&page->lock);
	return has_guests;
}
