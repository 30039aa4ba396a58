// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "address.h"

static int find_interface(const char *name, struct udp_address *a, struct frag_err *err)
{
	if (name[0] == '\0')
		return 0;
	a->interface = if_nametoindex(name);
	return a->interface != 0
		       ? 0
		       : frag_err_set(
				 err, -ENODEV,
				 "this machine has no network interface %s; ip link lists those that it has",
				 name);
}

int udp_address_read(const char *text, int64_t port, const char *interface, struct udp_address *out,
		     struct frag_err *err)
{
	struct udp_address a = {0};
	bool scoped = false;
	int r = find_interface(interface, &a, err);

	if (r < 0)
		return r;
	if (inet_pton(AF_INET, text, &a.v4.sin_addr) == 1) {
		a.v4.sin_family = AF_INET;
		a.v4.sin_port = htons((uint16_t)port);
		a.size = sizeof(a.v4);
		a.multicast = IN_MULTICAST(ntohl(a.v4.sin_addr.s_addr));
	} else if (inet_pton(AF_INET6, text, &a.v6.sin6_addr) == 1) {
		a.v6.sin6_family = AF_INET6;
		a.v6.sin6_port = htons((uint16_t)port);
		a.size = sizeof(a.v6);
		a.multicast = IN6_IS_ADDR_MULTICAST(&a.v6.sin6_addr);
		scoped = IN6_IS_ADDR_LINKLOCAL(&a.v6.sin6_addr) ||
			 IN6_IS_ADDR_MC_LINKLOCAL(&a.v6.sin6_addr);
		a.v6.sin6_scope_id = scoped ? a.interface : 0;
	} else {
		return frag_err_set(
			err, -EINVAL,
			"\"%s\" is not an IPv4 or IPv6 address; give a numeric one, as 127.0.0.1 or ::1",
			text);
	}
	if (scoped && a.interface == 0)
		return frag_err_set(
			err, -EINVAL,
			"%s is an address of one link; name the network interface with the parameter interface",
			text);
	if (a.interface != 0 && !scoped && !a.multicast)
		return frag_err_set(
			err, -EINVAL,
			"interface is %s, and %s is no multicast address; give the address of the interface instead",
			interface, text);
	*out = a;
	return 0;
}

bool udp_address_same_host(const struct udp_address *a, const struct udp_address *b)
{
	if (a->any.sa_family != b->any.sa_family)
		return false;
	if (a->any.sa_family == AF_INET)
		return a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
	return a->any.sa_family == AF_INET6 &&
	       memcmp(&a->v6.sin6_addr, &b->v6.sin6_addr, sizeof(a->v6.sin6_addr)) == 0;
}

const char *udp_address_text(const struct udp_address *address, char text[UDP_ADDRESS_TEXT_MAX])
{
	char host[INET6_ADDRSTRLEN] = "?";

	if (address->any.sa_family == AF_INET) {
		inet_ntop(AF_INET, &address->v4.sin_addr, host, sizeof(host));
		snprintf(text, UDP_ADDRESS_TEXT_MAX, "%s:%d", host, ntohs(address->v4.sin_port));
	} else {
		inet_ntop(AF_INET6, &address->v6.sin6_addr, host, sizeof(host));
		snprintf(text, UDP_ADDRESS_TEXT_MAX, "[%s]:%d", host, ntohs(address->v6.sin6_port));
	}
	return text;
}
