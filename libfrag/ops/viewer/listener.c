// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "listener.h"

#define BACKLOG 64

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static bool read_address(const char *text, int64_t port, union address *out, socklen_t *out_size)
{
	*out = (union address){0};
	if (inet_pton(AF_INET, text, &out->v4.sin_addr) == 1) {
		out->v4.sin_family = AF_INET;
		out->v4.sin_port = htons((uint16_t)port);
		*out_size = sizeof(out->v4);
		return true;
	}
	if (inet_pton(AF_INET6, text, &out->v6.sin6_addr) == 1) {
		out->v6.sin6_family = AF_INET6;
		out->v6.sin6_port = htons((uint16_t)port);
		*out_size = sizeof(out->v6);
		return true;
	}
	return false;
}

static bool is_loopback(const union address *address)
{
	if (address->any.sa_family == AF_INET)
		return ntohl(address->v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr);
}

static int port_of(const union address *address)
{
	return ntohs(address->any.sa_family == AF_INET ? address->v4.sin_port
						       : address->v6.sin6_port);
}

static int listen_on(int fd, union address *address, socklen_t size)
{
	int on = 1;

	/* Else a viewer that is started again waits for connections of the last one. */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(fd, &address->any, size) < 0 || listen(fd, BACKLOG) < 0 ||
	    getsockname(fd, &address->any, &size) < 0)
		return -errno;
	return 0;
}

int viewer_listener_open(const char *text, int64_t port, struct listener *out, struct frag_err *err)
{
	union address address;
	socklen_t size;
	int fd, r;

	if (!read_address(text, port, &address, &size))
		return frag_err_set(
			err, -EINVAL,
			"address \"%.80s\" is no IPv4 or IPv6 address; give 127.0.0.1, or the address of an interface of this machine",
			text);
	fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	r = fd >= 0 ? listen_on(fd, &address, size) : -errno;
	if (r < 0) {
		if (fd >= 0)
			close(fd);
		return frag_err_set(
			err, r,
			"cannot listen at %s port %lld: %s; give another port (0: any that is free) or an address of this machine",
			text, (long long)port, frag_strerror(r));
	}
	out->fd = fd;
	out->is_loopback = is_loopback(&address);
	snprintf(out->url, sizeof(out->url),
		 address.any.sa_family == AF_INET ? "http://%.46s:%d/" : "http://[%.46s]:%d/", text,
		 port_of(&address));
	return 0;
}
