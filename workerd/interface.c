// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <workerd/interface.h>

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <string.h>

/* The address in binary form, IPv4 inside IPv6 as IPv4. Returns its length, 0 when it is none. */
static size_t address_bytes(const char *text, unsigned char out[16])
{
	static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (inet_pton(AF_INET, text, out) == 1)
		return 4;
	if (inet_pton(AF_INET6, text, out) != 1)
		return 0;
	if (memcmp(out, mapped, sizeof(mapped)) != 0)
		return 16;
	memmove(out, out + 12, 4);
	return 4;
}

static size_t entry_bytes(const struct ifaddrs *entry, unsigned char out[16])
{
	if (entry->ifa_addr != NULL && entry->ifa_addr->sa_family == AF_INET) {
		memcpy(out, &((const struct sockaddr_in *)(const void *)entry->ifa_addr)->sin_addr,
		       4);
		return 4;
	}
	if (entry->ifa_addr != NULL && entry->ifa_addr->sa_family == AF_INET6) {
		memcpy(out,
		       &((const struct sockaddr_in6 *)(const void *)entry->ifa_addr)->sin6_addr,
		       16);
		return 16;
	}
	return 0;
}

int wrk_interface_find(const char *address, char out_device[IF_NAMESIZE], struct frag_err *err)
{
	unsigned char wanted[16] = {0}, have[16] = {0};
	size_t size = address_bytes(address, wanted), used = 0;
	struct ifaddrs *all = NULL;
	char list[512] = "";
	int r = -ENOENT;

	if (size == 0)
		return frag_err_set(err, -EINVAL, "\"%.80s\" is no IP address", address);
	if (getifaddrs(&all) < 0)
		return frag_err_set(err, -errno, "cannot list the network interfaces: %s",
				    frag_strerror(-errno));
	for (const struct ifaddrs *entry = all; entry != NULL && r == -ENOENT;
	     entry = entry->ifa_next) {
		size_t n = entry_bytes(entry, have);
		char text[INET6_ADDRSTRLEN];

		if (n == 0)
			continue;
		if (n == size && memcmp(have, wanted, n) == 0) {
			snprintf(out_device, IF_NAMESIZE, "%s", entry->ifa_name);
			r = (entry->ifa_flags & IFF_RUNNING) != 0 ? 0 : -ENETDOWN;
		}
		inet_ntop(n == 4 ? AF_INET : AF_INET6, have, text, sizeof(text));
		if (used < sizeof(list))
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s (%s)",
						 used > 0 ? ", " : "", text, entry->ifa_name);
	}
	freeifaddrs(all);
	if (r == -ENETDOWN)
		return frag_err_set(
			err, r,
			"the network interface %s, which has the address %.80s, is down or has no link; look at its cable and at its switch",
			out_device, address);
	if (r < 0)
		return frag_err_set(
			err, r,
			"no network interface of this machine has the address %.80s; it has %s",
			address, list);
	return 0;
}
