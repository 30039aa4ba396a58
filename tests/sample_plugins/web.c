// SPDX-License-Identifier: Apache-2.0
/*
 * Operators that serve HTTP and fetch it, by plain sockets on the thread that ticks them, while
 * their messages go to another host. What they send and receive must be what a program without frag
 * would see: no byte more or less, and each connection accepted when it comes.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <frag/frag.h>

enum { PORT };

struct web {
	int64_t count, seen;
	int server;
	struct sockaddr_in address;
};

static const struct frag_param params[] = {
	FRAG_PARAM_I64(struct web, count, 100, .headline = "Messages to send"),
};
static const struct frag_port tx_ports[] = {{.name = "out", .dir = FRAG_OUT, .type = "i64"}};
static const struct frag_port rx_ports[] = {{.name = "in", .dir = FRAG_IN, .type = "i64"}};

static int web_start(void *state, struct frag_op *op)
{
	struct web *s = state;
	socklen_t size = sizeof(s->address);

	s->address =
		(struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	s->server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (s->server < 0 || bind(s->server, (struct sockaddr *)&s->address, size) < 0 ||
	    listen(s->server, 4) < 0 ||
	    getsockname(s->server, (struct sockaddr *)&s->address, &size) < 0)
		return frag_op_fail(op, -errno, "cannot listen: %s", strerror(errno));
	return 0;
}

static int web_stop(void *state, struct frag_op *op)
{
	const struct web *s = state;

	close(s->server);
	return 0;
}

/* Sends text from one end to the other, which must get it as it is. */
static int pass(int from, int to, const char *text)
{
	size_t length = strlen(text);
	char got[128];

	if (send(from, text, length, MSG_NOSIGNAL) != (ssize_t)length)
		return -EIO;
	if (recv(to, got, sizeof(got), 0) != (ssize_t)length || memcmp(got, text, length) != 0)
		return -EBADMSG;
	return 0;
}

static int exchange(const struct web *s, int client, int64_t number)
{
	struct sockaddr_in peer = {0};
	socklen_t size = sizeof(peer);
	char text[64];
	int taken, r;

	if (connect(client, (const struct sockaddr *)&s->address, sizeof(s->address)) < 0 ||
	    getpeername(client, (struct sockaddr *)&peer, &size) < 0 ||
	    peer.sin_port != s->address.sin_port)
		return -ENOTCONN;
	taken = accept(s->server, NULL, NULL); /* before the client has said anything */
	if (taken < 0)
		return -errno;
	snprintf(text, sizeof(text), "GET /%lld HTTP/1.0\r\n\r\n", (long long)number);
	r = pass(client, taken, text);
	snprintf(text, sizeof(text), "HTTP/1.0 200 OK\r\n\r\n%lld", (long long)number);
	if (r == 0)
		r = pass(taken, client, text);
	close(taken);
	return r;
}

static int fetch(const struct web *s, struct frag_tick *tick, int64_t number)
{
	int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), r;

	if (client < 0)
		return -errno;
	r = exchange(s, client, number);
	close(client);
	return r == 0 ? 0
		      : frag_op_fail(frag_tick_op(tick), r, "the exchange %lld failed: %s",
				     (long long)number, strerror(-r));
}

static int tx_compute(void *state, struct frag_tick *tick)
{
	struct web *s = state;
	int r = fetch(s, tick, ++s->seen);

	if (r == 0)
		r = frag_tick_emit_i64(tick, PORT, s->seen);
	return r < 0 ? r : s->seen == s->count ? FRAG_DONE : 0;
}

static int rx_compute(void *state, struct frag_tick *tick)
{
	int64_t number;
	int r = frag_tick_receive_i64(tick, PORT, &number);

	return r < 0 ? r : fetch(state, tick, number);
}

static const struct frag_op_type web_tx = {
	FRAG_OP_TYPE_INIT,
	.name = "web_tx",
	.headline = "Fetches from itself and sends numbers",
	.state_size = sizeof(struct web),
	FRAG_PORTS(tx_ports),
	FRAG_PARAMS(params),
	.start = web_start,
	.compute = tx_compute,
	.stop = web_stop,
};
static const struct frag_op_type web_rx = {
	FRAG_OP_TYPE_INIT,
	.name = "web_rx",
	.headline = "Receives numbers and fetches from itself",
	.state_size = sizeof(struct web),
	FRAG_PORTS(rx_ports),
	FRAG_PARAMS(params),
	.start = web_start,
	.compute = rx_compute,
	.stop = web_stop,
};
static const struct frag_op_type *const ops[] = {&web_tx, &web_rx};

FRAG_PLUGIN(.name = "web", .version = "1.0.0", FRAG_OPS(ops));
