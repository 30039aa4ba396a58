// SPDX-License-Identifier: Apache-2.0
#include <driverd/listener.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LOG_TOPIC "driver"
#include <base/log.h>

#define RETRY_MS 100
#define BACKLOG 128

static void on_retry(uv_timer_t *timer);

/* Gives the connection to the owner. Until the owner has taken it, libuv accepts no other. */
static int take(struct drv_listener *listener)
{
	int r = listener->take(listener, listener->arg);

	if (r < 0)
		uv_timer_start(&listener->retry, on_retry, RETRY_MS, 0);
	return r;
}

static void on_retry(uv_timer_t *timer)
{
	struct drv_listener *listener = timer->data;

	listener->turn_ms = uv_now(timer->loop);
	listener->taken = 1;
	(void)take(listener);
}

/*
 * libuv goes on taking connections for as long as there are any, so those who come faster than they
 * are taken would keep the loop from everybody else.
 */
static bool is_enough(struct drv_listener *listener, uint64_t now_ms)
{
	if (now_ms != listener->turn_ms)
		listener->taken = 0;
	listener->turn_ms = now_ms;
	if (listener->taken >= DRV_TAKEN_AT_ONCE)
		return true;
	listener->taken++;
	return false;
}

static void on_connection(uv_stream_t *server, int status)
{
	struct drv_listener *listener = server->data;
	int r = status;

	if (status >= 0 && is_enough(listener, uv_now(server->loop))) {
		uv_timer_start(&listener->retry, on_retry, 0, 0);
		return;
	}
	if (status >= 0)
		r = take(listener);
	if (r < 0)
		log_warn(NULL, "cannot take a connection yet: %s", frag_strerror(r));
}

void drv_listener_init(struct drv_listener *listener, uv_loop_t *loop, enum fw_stream_kind kind,
		       int (*take_one)(struct drv_listener *listener, void *arg), void *arg)
{
	*listener = (struct drv_listener){.kind = kind, .take = take_one, .arg = arg};
	if (kind == FW_STREAM_TCP)
		(void)uv_tcp_init(loop, &listener->server.tcp);
	else
		(void)uv_pipe_init(loop, &listener->server.pipe, 0);
	uv_timer_init(loop, &listener->retry);
	listener->server.handle.data = listener->retry.data = listener;
}

static int listen_on(struct drv_listener *listener, const struct sockaddr *address)
{
	struct sockaddr_storage bound;
	char host[INET6_ADDRSTRLEN];
	int length = sizeof(bound), r;

	r = uv_tcp_bind(&listener->server.tcp, address, 0);
	if (r == 0)
		r = uv_listen(&listener->server.stream, BACKLOG, on_connection);
	if (r == 0)
		r = uv_tcp_getsockname(&listener->server.tcp, (struct sockaddr *)&bound, &length);
	if (r != 0)
		return r;
	if (bound.ss_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&bound;

		inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host));
		listener->port = ntohs(in6->sin6_port);
		snprintf(listener->address, sizeof(listener->address), "[%s]:%u", host,
			 listener->port);
	} else {
		const struct sockaddr_in *in = (const struct sockaddr_in *)&bound;

		inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host));
		listener->port = ntohs(in->sin_port);
		snprintf(listener->address, sizeof(listener->address), "%s:%u", host,
			 listener->port);
	}
	return 0;
}

int drv_listener_open(struct drv_listener *listener, const struct fragi_address *wanted,
		      struct frag_err *err)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *found = NULL;
	bool v6 = strchr(wanted->host, ':') != NULL;
	char port[8];
	int r;

	snprintf(port, sizeof(port), "%u", wanted->port);
	r = getaddrinfo(wanted->host, port, &hints, &found);
	if (r != 0)
		return fragi_err_fail(
			err, FRAGI_FAILURE_ADDRESS_UNUSABLE, NULL, -EADDRNOTAVAIL,
			"the address %s cannot be found: %s; give --address an address of this machine",
			wanted->host, gai_strerror(r));
	r = listen_on(listener, found->ai_addr);
	freeaddrinfo(found);
	if (r == 0) {
		log_info(NULL, "listening on %s", listener->address);
		return 0;
	}
	if (r == -EADDRINUSE)
		return fragi_err_fail(
			err, FRAGI_FAILURE_PORT_IN_USE, NULL, r,
			"cannot listen on %s%s%s:%s: the port is in use, perhaps by another driverd; give --address another port",
			v6 ? "[" : "", wanted->host, v6 ? "]" : "", port);
	return fragi_err_fail(
		err, FRAGI_FAILURE_ADDRESS_UNUSABLE, NULL, r,
		"cannot listen on %s%s%s:%s: %s; give --address an address of this machine",
		v6 ? "[" : "", wanted->host, v6 ? "]" : "", port, frag_strerror(r));
}

int drv_listener_open_local(struct drv_listener *listener, uint16_t port,
			    const struct fw_users *users, struct frag_err *err)
{
	int fd, r = drv_local_socket_open(&listener->local, port, users, &fd, err);

	if (r < 0)
		return r;
	snprintf(listener->address, sizeof(listener->address), "%s",
		 listener->local.address.sun_path);
	r = uv_pipe_open(&listener->server.pipe, fd);
	if (r < 0)
		close(fd);
	if (r == 0)
		r = uv_listen(&listener->server.stream, BACKLOG, on_connection);
	if (r < 0)
		return frag_err_set(err, r, "cannot listen on %s: %s", listener->address,
				    frag_strerror(r));
	log_debug(NULL, "listening on %s for clients of this machine", listener->address);
	return 0;
}

void drv_listener_close(struct drv_listener *listener)
{
	drv_local_socket_close(&listener->local);
	if (!uv_is_closing(&listener->server.handle))
		uv_close(&listener->server.handle, NULL);
	if (!uv_is_closing((uv_handle_t *)&listener->retry))
		uv_close((uv_handle_t *)&listener->retry, NULL);
}
