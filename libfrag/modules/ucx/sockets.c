// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "module.h"

/*
 * UCX listens on the interfaces it chooses, and a wrong name or another variable of the user's may
 * make that all of them. Whoever reaches such a port can bring the process down, so what it listens
 * on is looked up afterwards, where the kernel lists it.
 */
#define TCP_LISTEN 0x0a

static bool inode_of_fd(const char *number, uint64_t *out_inode)
{
	char path[64], target[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%.16s", number);
	n = readlink(path, target, sizeof(target) - 1);
	if (n <= 0)
		return false;
	target[n] = '\0';
	if (strncmp(target, "socket:[", 8) != 0)
		return false;
	*out_inode = strtoull(target + 8, NULL, 10);
	return true;
}

int ucx_sockets_list(struct ucx_sockets *out)
{
	DIR *folder = opendir("/proc/self/fd");
	const struct dirent *entry;
	uint64_t inode;

	out->count = 0;
	if (folder == NULL)
		return -errno;
	while ((entry = readdir(folder)) != NULL && out->count < FRAG_COUNT_OF(out->inodes))
		if (inode_of_fd(entry->d_name, &inode))
			out->inodes[out->count++] = inode;
	closedir(folder);
	return 0;
}

/* Numbers above are not looked at: no UCX worker of a host comes near. */
#define DESCRIPTORS_MAX (8 * sizeof(((struct ucx_descriptors *)0)->open))

/* The descriptor of the listing itself is left out. */
void ucx_descriptors_note(struct ucx_descriptors *out)
{
	DIR *folder = opendir("/proc/self/fd");
	const struct dirent *entry;

	memset(out, 0, sizeof(*out));
	while (folder != NULL && (entry = readdir(folder)) != NULL) {
		int fd = atoi(entry->d_name);

		if (entry->d_name[0] != '.' && fd != dirfd(folder) && fd < (int)DESCRIPTORS_MAX)
			out->open[fd / 64] |= (uint64_t)1 << fd % 64;
	}
	if (folder != NULL)
		closedir(folder);
}

static bool is_listed(const struct ucx_descriptors *descriptors, int fd)
{
	return (descriptors->open[fd / 64] & (uint64_t)1 << fd % 64) != 0;
}

void ucx_descriptors_close_on_exec(const struct ucx_descriptors *before)
{
	struct ucx_descriptors now;

	ucx_descriptors_note(&now);
	for (int fd = 0; fd < (int)DESCRIPTORS_MAX; fd++)
		if (is_listed(&now, fd) && !is_listed(before, fd))
			(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
}

bool ucx_descriptors_listen(const struct ucx_descriptors *before)
{
	struct ucx_descriptors now;
	socklen_t size = sizeof(int);
	int listens;

	ucx_descriptors_note(&now);
	for (int fd = 0; fd < (int)DESCRIPTORS_MAX; fd++)
		if (is_listed(&now, fd) && !is_listed(before, fd) &&
		    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens != 0)
			return true;
	return false;
}

static bool has_inode(const struct ucx_sockets *sockets, uint64_t inode)
{
	for (size_t i = 0; i < sockets->count; i++)
		if (sockets->inodes[i] == inode)
			return true;
	return false;
}

bool ucx_interfaces_have(const char *list, const char *name)
{
	size_t length = strlen(name), n;

	for (; *list != '\0'; list += n + (list[n] == ',')) {
		n = strcspn(list, ",");
		if (n == length && memcmp(list, name, n) == 0)
			return true;
	}
	return false;
}

/* Whether the address (4 or 16 bytes) is one of an interface in the list. */
static bool is_on(const struct ifaddrs *all, const char *interfaces, int family,
		  const void *address)
{
	const struct sockaddr_in6 *in6;
	const struct sockaddr_in *in;

	for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next) {
		if (i->ifa_addr == NULL || i->ifa_addr->sa_family != family ||
		    !ucx_interfaces_have(interfaces, i->ifa_name))
			continue;
		in = (const struct sockaddr_in *)(const void *)i->ifa_addr;
		in6 = (const struct sockaddr_in6 *)(const void *)i->ifa_addr;
		if (family == AF_INET ? memcmp(&in->sin_addr, address, 4) == 0
				      : memcmp(&in6->sin6_addr, address, 16) == 0)
			return true;
	}
	return false;
}

struct listener {
	uint32_t address[4]; /* as in memory */
	unsigned int port;
	uint64_t inode;
};

/* "  0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0  0 12345 ..." */
static bool parse_listener(const char *line, int family, struct listener *out)
{
	char address[33], peer[40];
	unsigned int state;
	unsigned long long inode;

	if (sscanf(line, " %*d: %32[0-9A-F]:%x %39s %x %*s %*s %*s %*u %*u %llu", address,
		   &out->port, peer, &state, &inode) != 5 ||
	    state != TCP_LISTEN || strlen(address) != (family == AF_INET ? 8 : 32))
		return false;
	for (size_t i = 0; i < (family == AF_INET ? 1 : 4); i++) {
		char word[9];

		memcpy(word, address + i * 8, 8);
		word[8] = '\0';
		out->address[i] = (uint32_t)strtoul(word, NULL, 16);
	}
	out->inode = inode;
	return true;
}

static int check_table(const char *path, int family, const struct ucx_sockets *before,
		       const struct ucx_sockets *now, const struct ifaddrs *all,
		       const char *interfaces, struct frag_err *err)
{
	FILE *file = fopen(path, "re");
	char line[512], text[INET6_ADDRSTRLEN];
	struct listener l;
	int r = 0;

	if (file == NULL && errno == ENOENT) /* a kernel without this family */
		return 0;
	if (file == NULL)
		return frag_err_set(err, -errno, "cannot look up what UCX listens on: %s: %s", path,
				    frag_strerror(-errno));
	while (r == 0 && fgets(line, sizeof(line), file) != NULL) {
		if (!parse_listener(line, family, &l) || !has_inode(now, l.inode) ||
		    has_inode(before, l.inode) || is_on(all, interfaces, family, l.address))
			continue;
		inet_ntop(family, l.address, text, sizeof(text));
		r = frag_err_set(
			err, -EPERM,
			"UCX listens on %s port %u, which is not an address of %s; whoever reaches that port can stop this process; check the UCX_ variables that are set",
			text, l.port, interfaces);
	}
	fclose(file);
	return r;
}

int ucx_sockets_check(const struct ucx_sockets *before, const char *interfaces,
		      struct frag_err *err)
{
	struct ucx_sockets now;
	struct ifaddrs *all;
	int r = ucx_sockets_list(&now);

	if (r < 0)
		return frag_err_set(err, r, "cannot list what UCX listens on: %s",
				    frag_strerror(r));
	if (getifaddrs(&all) < 0)
		return frag_err_set(err, -errno, "cannot list this node's interfaces (%s)",
				    frag_strerror(-errno));
	r = check_table("/proc/self/net/tcp", AF_INET, before, &now, all, interfaces, err);
	if (r == 0)
		r = check_table("/proc/self/net/tcp6", AF_INET6, before, &now, all, interfaces,
				err);
	freeifaddrs(all);
	return r;
}
