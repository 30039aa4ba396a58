/* SPDX-License-Identifier: Apache-2.0 */
#include <workerd/peer_user.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ESTABLISHED 1u

static bool has_same_host(const struct sockaddr *a, const struct sockaddr *b)
{
	if (a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET)
		return ((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)(const void *)b)->sin_addr.s_addr;
	return a->sa_family == AF_INET6 &&
	       memcmp(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr,
		      &((const struct sockaddr_in6 *)(const void *)b)->sin6_addr,
		      sizeof(struct in6_addr)) == 0;
}

static unsigned int port_of(const struct sockaddr *address)
{
	return ntohs(address->sa_family == AF_INET
			     ? ((const struct sockaddr_in *)(const void *)address)->sin_port
			     : ((const struct sockaddr_in6 *)(const void *)address)->sin6_port);
}

/*
 * Counts the connections of one table from port `from` to port `to`, and those that are another
 * user's. The hosts are not compared, because one connection may stand in the table of IPv6 with an
 * address of IPv4: another user's connection between the same ports is a reason for doubt.
 */
static void count(const char *table, unsigned int from, unsigned int to, unsigned int *found,
		  unsigned int *others)
{
	FILE *file = fopen(table, "re");
	unsigned int local, remote, state, uid;
	char line[512];

	while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
		if (sscanf(line, " %*u: %*32[0-9A-F]:%x %*32[0-9A-F]:%x %x %*s %*s %*s %u", &local,
			   &remote, &state, &uid) != 4 ||
		    state != ESTABLISHED || local != from || remote != to)
			continue;
		++*found;
		*others += uid != geteuid();
	}
	if (file != NULL)
		fclose(file);
}

bool wrk_peer_is_own_user(const struct sockaddr *own, const struct sockaddr *peer)
{
	unsigned int found = 0, others = 0;

	/* The address of the other end is one of this network namespace's if it is this end's. */
	if (!has_same_host(own, peer))
		return false;
	count("/proc/net/tcp", port_of(peer), port_of(own), &found, &others);
	count("/proc/net/tcp6", port_of(peer), port_of(own), &found, &others);
	return found > 0 && others == 0;
}
