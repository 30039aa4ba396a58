/* SPDX-License-Identifier: Apache-2.0 */
#ifndef UDP_ADDRESS_H
#define UDP_ADDRESS_H

#include <stdbool.h>

#include <netinet/in.h>
#include <sys/socket.h>

#include <frag/error.h>

/* An IPv4 or IPv6 address with a port, and the interface that was named with it. */
struct udp_address {
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	};
	socklen_t size;
	bool multicast;
	unsigned int interface; /* its index; 0: none was named */
};

/*
 * Reads an address. Names are not looked up: that may take long, and says nothing about which
 * interface is meant.
 * - interface: name of the network interface; "": none
 * Returns 0; -EINVAL: it is no address, or needs an interface; -ENODEV: there is no such interface;
 * each with a sentence.
 */
int udp_address_read(const char *text, int64_t port, const char *interface, struct udp_address *out,
		     struct frag_err *err);

/* Returns whether two addresses are the same host; ports do not count. */
bool udp_address_same_host(const struct udp_address *a, const struct udp_address *b);

#define UDP_ADDRESS_TEXT_MAX 80
/* Writes "127.0.0.1:5000" or "[::1]:5000". Returns text. */
const char *udp_address_text(const struct udp_address *address, char text[UDP_ADDRESS_TEXT_MAX]);

#endif
