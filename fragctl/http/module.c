// SPDX-License-Identifier: Apache-2.0
#include <fragctl/http/http.h>

#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <base/stamp.h>

/*
 * libmicrohttpd does the protocol. Its own time limit begins anew with each byte, so a connection
 * has a limit of its own here, within which a request comes and is answered.
 */
#define REQUEST_NS INT64_C(10000000000)
#define STALLED_S 30u /* without a byte, where one could travel */
#define RUN_MS_MAX 1000
#define BLOCK_BYTES (32u << 10)

struct connection {
	struct connection *next; /* an older one */
	struct ctl_http *http;
	int fd;
	int64_t until_ns; /* for the request that it brings */
	bool is_trusted, is_stream;
};

enum state { READING, PENDING, ANSWERED, DONE };

struct request {
	struct ctl_http_request head;
	struct request *next; /* of those that exist */
	struct MHD_Connection *mhd;
	struct connection *connection;
	struct ctl_http_response response;
	enum state state;
	bool is_too_large;
	bool is_asleep; /* a stream without bytes */
	char *body;
};

struct ctl_http {
	struct MHD_Daemon *daemon;
	struct ctl_http_options options;
	struct connection *connections; /* the newest first */
	uint32_t connection_count, stream_count;
	struct request *requests;
	bool next_is_trusted, ends;
};

/* --- connections --- */

/* They are closed when the daemon runs. */
static void close_late(struct ctl_http *http)
{
	int64_t now_ns = fragi_now_ns();

	for (struct connection *at = http->connections; at != NULL; at = at->next)
		if (!at->is_stream && now_ns > at->until_ns)
			shutdown(at->fd, SHUT_RDWR);
}

static void close_oldest(struct ctl_http *http)
{
	struct connection *oldest = NULL;

	for (struct connection *at = http->connections; at != NULL; at = at->next)
		if (!at->is_stream)
			oldest = at;
	if (oldest != NULL)
		shutdown(oldest->fd, SHUT_RDWR);
}

static void came(struct ctl_http *http, struct MHD_Connection *mhd, void **context)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct connection *connection = info != NULL ? calloc(1, sizeof(*connection)) : NULL;

	*context = connection;
	if (connection == NULL)
		return;
	connection->http = http;
	connection->fd = info->connect_fd;
	connection->until_ns = fragi_now_ns() + REQUEST_NS;
	connection->is_trusted = http->next_is_trusted;
	connection->next = http->connections;
	http->connections = connection;
	http->connection_count++;
}

static void left(struct ctl_http *http, struct connection *connection)
{
	struct connection **link = &http->connections;

	if (connection == NULL)
		return;
	while (*link != connection)
		link = &(*link)->next;
	*link = connection->next;
	http->connection_count--;
	free(connection);
}

static void came_or_left(void *arg, struct MHD_Connection *mhd, void **context,
			 enum MHD_ConnectionNotificationCode code)
{
	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		came(arg, mhd, context);
	else
		left(arg, *context);
}

static void http_add(struct ctl_http *http, int fd, bool is_trusted)
{
	/* Of a unix socket too: libmicrohttpd only shows it to callbacks that are not set. */
	struct sockaddr address = {.sa_family = AF_UNIX};

	if (http->connection_count - http->stream_count >= CTL_HTTP_CONNECTIONS_MAX) {
		close_oldest(http);
		(void)MHD_run(http->daemon);
	}
	http->next_is_trusted = is_trusted;
	/* It closes the socket when it fails. */
	(void)MHD_add_connection(http->daemon, fd, &address, sizeof(address));
}

/* --- requests --- */

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

static struct request *begin(struct ctl_http *http, struct MHD_Connection *mhd, const char *path,
			     const char *method)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct asked asked = {0};
	struct request *request = calloc(1, sizeof(*request));

	if (request == NULL || info == NULL || info->socket_context == NULL) {
		free(request);
		return NULL;
	}
	(void)MHD_get_connection_values(mhd, MHD_HEADER_KIND, note_host, &asked);
	request->mhd = mhd;
	request->connection = info->socket_context;
	request->head = (struct ctl_http_request){
		.method = method,
		.path = path,
		.host = asked.count == 1 ? asked.host : NULL,
		.body = "",
		.is_trusted = request->connection->is_trusted,
	};
	request->next = http->requests;
	http->requests = request;
	return request;
}

static void take_body(struct request *request, const char *bytes, size_t size)
{
	size_t had = request->head.body_size;
	char *body;

	if (request->is_too_large || had + size > CTL_HTTP_BODY_MAX) {
		request->is_too_large = true;
		return;
	}
	body = realloc(request->body, had + size + 1);
	if (body == NULL) {
		request->is_too_large = true;
		return;
	}
	memcpy(body + had, bytes, size);
	body[had + size] = '\0';
	request->head.body = request->body = body;
	request->head.body_size = had + size;
}

static ssize_t read_stream(void *arg, uint64_t at, char *out, size_t size)
{
	struct request *request = arg;
	struct ctl_http_stream *stream = &request->response.stream;
	ssize_t n = stream->read(stream->arg, out, size);

	(void)at;
	if (n > 0)
		return n;
	if (n < 0 || request->connection->http->ends)
		return MHD_CONTENT_READER_END_OF_STREAM;
	request->is_asleep = true;
	MHD_suspend_connection(request->mhd);
	return 0;
}

static struct MHD_Response *make_response(struct request *request)
{
	const struct ctl_http_response *from = &request->response;
	/* libmicrohttpd takes what it only reads as void *. */
	union {
		const char *text;
		void *bytes;
	} body = {.text = from->body};
	struct MHD_Response *response;

	if (from->stream.read != NULL)
		response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES,
							     read_stream, request, NULL);
	else
		response = MHD_create_response_from_buffer(from->size, body.bytes,
							   from->is_owned ? MHD_RESPMEM_MUST_FREE
									  : MHD_RESPMEM_PERSISTENT);
	if (response == NULL && from->is_owned)
		free(body.bytes);
	return response;
}

static enum MHD_Result send_response(struct request *request)
{
	const struct ctl_http_response *from = &request->response;
	struct MHD_Response *response = make_response(request);
	enum MHD_Result result;

	request->state = DONE;
	if (response == NULL)
		return MHD_NO;
	(void)MHD_add_response_header(response, "Content-Type", from->type);
	for (size_t i = 0; i < CTL_HTTP_HEADERS_MAX && from->headers[i].name != NULL; i++)
		(void)MHD_add_response_header(response, from->headers[i].name,
					      from->headers[i].value);
	if (from->stream.read != NULL) {
		request->connection->is_stream = true;
		request->connection->http->stream_count++;
	}
	result = MHD_queue_response(request->mhd, from->status, response);
	MHD_destroy_response(response);
	return result;
}

/*
 * libmicrohttpd's handler: first for the head of a request, then for each piece of its body, then
 * for its end, and once more when it goes on after it was pending.
 */
static enum MHD_Result on_request(void *arg, struct MHD_Connection *mhd, const char *path,
				  const char *method, const char *version, const char *bytes,
				  size_t *size, void **context)
{
	struct ctl_http *http = arg;
	struct request *request = *context;

	(void)version;
	if (request == NULL) {
		*context = request = begin(http, mhd, path, method);
		return request != NULL ? MHD_YES : MHD_NO;
	}
	if (*size > 0) {
		take_body(request, bytes, *size);
		*size = 0;
		return MHD_YES;
	}
	if (request->state == READING && request->is_too_large) {
		static const char too_large[] = "the body of the request is too large\n";

		request->response = (struct ctl_http_response){.status = MHD_HTTP_CONTENT_TOO_LARGE,
							       .type = "text/plain",
							       .body = too_large,
							       .size = sizeof(too_large) - 1};
	} else if (request->state == READING) {
		http->options.respond(http->options.arg, &request->head, &request->response);
	}
	if (request->response.is_pending) {
		request->state = PENDING;
		MHD_suspend_connection(mhd);
		return MHD_YES;
	}
	return send_response(request);
}

static void on_end(void *arg, struct MHD_Connection *mhd, void **context,
		   enum MHD_RequestTerminationCode code)
{
	struct ctl_http *http = arg;
	struct request *request = *context, **link = &http->requests;
	const struct ctl_http_stream *stream;

	(void)mhd;
	(void)code;
	if (request == NULL)
		return;
	stream = &request->response.stream;
	if (stream->end != NULL)
		stream->end(stream->arg);
	if (request->state == ANSWERED && request->response.is_owned)
		free((char *)(uintptr_t)request->response.body);
	while (*link != request)
		link = &(*link)->next;
	*link = request->next;
	http->stream_count -= request->connection->is_stream;
	request->connection->is_stream = false;
	request->connection->until_ns = fragi_now_ns() + REQUEST_NS;
	free(request->body);
	free(request);
	*context = NULL;
}

static struct request *request_of(struct ctl_http_request *head)
{
	return (struct request *)(void *)head; /* its first member */
}

static void http_answer(struct ctl_http_request *head, const struct ctl_http_response *response)
{
	struct request *request = request_of(head);

	request->response = *response;
	request->state = ANSWERED;
	MHD_resume_connection(request->mhd);
}

static const char *http_header(struct ctl_http_request *head, const char *name)
{
	return MHD_lookup_connection_value(request_of(head)->mhd, MHD_HEADER_KIND, name);
}

static const char *http_query(struct ctl_http_request *head, const char *name)
{
	return MHD_lookup_connection_value(request_of(head)->mhd, MHD_GET_ARGUMENT_KIND, name);
}

/* --- the whole --- */

static void http_wake(struct ctl_http *http)
{
	for (struct request *at = http->requests; at != NULL; at = at->next)
		if (at->is_asleep) {
			at->is_asleep = false;
			MHD_resume_connection(at->mhd);
		}
}

static int http_run(struct ctl_http *http)
{
	MHD_UNSIGNED_LONG_LONG ms;

	close_late(http);
	(void)MHD_run(http->daemon);
	if (http->connection_count == 0)
		return -1;
	return MHD_get_timeout(http->daemon, &ms) == MHD_YES && ms < RUN_MS_MAX ? (int)ms
										: RUN_MS_MAX;
}

static uint32_t http_streams(const struct ctl_http *http)
{
	return http->stream_count;
}

static int http_descriptor(const struct ctl_http *http)
{
	return MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

static void http_destroy(struct ctl_http *http)
{
	static const char ends[] = "the page ends\n";

	if (http == NULL)
		return;
	http->ends = true;
	for (struct request *at = http->requests; at != NULL; at = at->next)
		if (at->state == PENDING)
			http_answer(&at->head, &(struct ctl_http_response){
						       .status = MHD_HTTP_SERVICE_UNAVAILABLE,
						       .type = "text/plain",
						       .body = ends,
						       .size = sizeof(ends) - 1});
	http_wake(http);
	(void)MHD_run(http->daemon);
	MHD_stop_daemon(http->daemon);
	free(http);
}

static int http_create(const struct ctl_http_options *options, struct ctl_http **out,
		       struct frag_err *err)
{
	unsigned int flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_NO_LISTEN_SOCKET;
	struct ctl_http *http = calloc(1, sizeof(*http));
	struct MHD_OptionItem tls[] = {
		{MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)options->certificate},
		{MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)options->certificate_key},
		{MHD_OPTION_END, 0, NULL},
	};

	if (http == NULL)
		return frag_err_set(err, -ENOMEM, "out of memory");
	http->options = *options;
	if (options->certificate == NULL)
		tls[0] = tls[2];
	else
		flags |= MHD_USE_TLS;
	http->daemon = MHD_start_daemon(
		flags, 0, NULL, NULL, on_request, http, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned int)(CTL_HTTP_CONNECTIONS_MAX + CTL_HTTP_STREAMS_MAX + 16),
		MHD_OPTION_CONNECTION_TIMEOUT, STALLED_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)CTL_HTTP_HEAD_MAX, MHD_OPTION_STRICT_FOR_CLIENT, 1,
		MHD_OPTION_NOTIFY_CONNECTION, came_or_left, http, MHD_OPTION_NOTIFY_COMPLETED,
		on_end, http, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
	if (http->daemon == NULL) {
		free(http);
		return frag_err_set(
			err, -EINVAL,
			options->certificate != NULL
				? "libmicrohttpd does not start: the certificate and its key do not fit, or are not PEM"
				: "libmicrohttpd does not start");
	}
	*out = http;
	return 0;
}

const struct ctl_http_module ctl_http_v1 = {
	.head = {.struct_size = sizeof(struct ctl_http_module), .name = "http"},
	.create = http_create,
	.destroy = http_destroy,
	.add = http_add,
	.descriptor = http_descriptor,
	.run = http_run,
	.wake = http_wake,
	.streams = http_streams,
	.header = http_header,
	.query = http_query,
	.answer = http_answer,
};
