// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <wire/peer_user.h>

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * One question and one answer: the socket whose local end is the connection's remote end. Both are
 * within send(), so nothing waits.
 *
 * The user counts only if a process has the socket: then its inode is not 0. A socket that waits to
 * be accepted, or that its process has closed, may be shown as root's. Where no connection has
 * these ends, the kernel may answer with a socket that listens.
 *
 * There is no other source: /proc/net/tcp has the same table, but is read from the start for each
 * connection, so a user with many sockets could slow this process down. sock_diag is older than
 * what frag needs elsewhere (pidfd_open).
 */
struct question {
	struct nlmsghdr head;
	struct inet_diag_req_v2 body;
};

static bool is_v4(const struct in6_addr *address)
{
	return IN6_IS_ADDR_V4MAPPED(address);
}

static int take_address(const struct sockaddr_storage *from, struct in6_addr *out_address,
			in_port_t *out_port, uint32_t *out_interface)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)from;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)from;

	if (from->ss_family == AF_INET) {
		*out_address = (struct in6_addr){.s6_addr[10] = 0xff, .s6_addr[11] = 0xff};
		memcpy(&out_address->s6_addr[12], &v4->sin_addr, sizeof(v4->sin_addr));
		*out_port = v4->sin_port;
		return 0;
	}
	if (from->ss_family != AF_INET6)
		return -EPROTONOSUPPORT;
	*out_address = v6->sin6_addr;
	*out_port = v6->sin6_port;
	*out_interface = v6->sin6_scope_id;
	return 0;
}

static void put_address(const struct in6_addr *address, bool v4, __be32 out[4])
{
	if (v4)
		memcpy(out, &address->s6_addr[12], 4);
	else
		memcpy(out, address, sizeof(*address));
}

static bool is_address(const __be32 in[4], uint8_t family, const struct in6_addr *wanted)
{
	if (family == AF_INET)
		return is_v4(wanted) && memcmp(in, &wanted->s6_addr[12], 4) == 0;
	return memcmp(in, wanted, sizeof(*wanted)) == 0;
}

static bool is_loopback(const struct in6_addr *address)
{
	return is_v4(address) ? address->s6_addr[12] == IN_LOOPBACKNET
			      : IN6_IS_ADDR_LOOPBACK(address);
}

/* Whether the addresses alone show that both ends are on this machine. */
static bool is_here(const struct fw_ends *ends)
{
	return is_loopback(&ends->local) || is_loopback(&ends->remote) ||
	       memcmp(&ends->local, &ends->remote, sizeof(ends->local)) == 0;
}

/* Whether users without a number of their own are given this one, which may be another user's. */
static bool is_ambiguous(uid_t user)
{
	unsigned int first = 1, lower = 0, count = 0, overflow = 65534;
	FILE *file = fopen("/proc/sys/kernel/overflowuid", "re");

	if (file != NULL) {
		(void)!fscanf(file, "%u", &overflow);
		fclose(file);
	}
	if (user != overflow)
		return false;
	file = fopen("/proc/self/uid_map", "re");
	if (file != NULL) {
		(void)!fscanf(file, "%u %u %u", &first, &lower, &count);
		fclose(file);
	}
	return first != 0 || lower != 0 || count != UINT32_MAX;
}

static int judge(const struct inet_diag_msg *found, uid_t *out_user)
{
	bool is_whole = found->idiag_state == TCP_ESTABLISHED || found->idiag_state == TCP_SYN_RECV;

	if (found->idiag_inode == 0)
		return is_whole ? -EAGAIN : -ESHUTDOWN;
	if (is_ambiguous(found->idiag_uid))
		return -EOVERFLOW;
	*out_user = found->idiag_uid;
	return 0;
}

int fw_peer_user_parse(const void *answer, size_t size, uint32_t sequence,
		       const struct fw_ends *ends, uid_t *out_user)
{
	struct inet_diag_msg found;
	struct nlmsghdr head;
	struct nlmsgerr error;

	if (size < sizeof(head))
		return -EBADMSG;
	memcpy(&head, answer, sizeof(head));
	if (head.nlmsg_len > size || head.nlmsg_seq != sequence)
		return -EBADMSG;
	if (head.nlmsg_type == NLMSG_ERROR && head.nlmsg_len >= NLMSG_LENGTH(sizeof(error.error))) {
		memcpy(&error.error, (const char *)answer + NLMSG_HDRLEN, sizeof(error.error));
		return error.error < 0 ? error.error : -EBADMSG;
	}
	if (head.nlmsg_type != SOCK_DIAG_BY_FAMILY || head.nlmsg_len < NLMSG_LENGTH(sizeof(found)))
		return -EBADMSG;
	memcpy(&found, (const char *)answer + NLMSG_HDRLEN, sizeof(found));
	if (found.idiag_family != AF_INET && found.idiag_family != AF_INET6)
		return -EBADMSG;
	if (found.idiag_state == TCP_LISTEN)
		return -ENOENT;
	if (found.id.idiag_sport != ends->local_port || found.id.idiag_dport != ends->remote_port ||
	    !is_address(found.id.idiag_src, found.idiag_family, &ends->local) ||
	    !is_address(found.id.idiag_dst, found.idiag_family, &ends->remote))
		return -EBADMSG;
	return judge(&found, out_user);
}

/* The user of the socket with these ends. */
static int ask(const struct fw_ends *ends, uid_t *out_user)
{
	static uint32_t sequence;
	const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	bool v4 = is_v4(&ends->local) && is_v4(&ends->remote);
	struct question question = {
		.head = {.nlmsg_len = sizeof(question),
			 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			 .nlmsg_flags = NLM_F_REQUEST,
			 .nlmsg_seq = ++sequence},
		.body = {.sdiag_family = v4 ? AF_INET : AF_INET6,
			 .sdiag_protocol = IPPROTO_TCP,
			 .idiag_states = UINT32_MAX,
			 .id = {.idiag_sport = ends->local_port,
				.idiag_dport = ends->remote_port,
				.idiag_if = ends->interface,
				.idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}},
	};
	_Alignas(struct nlmsghdr) char answer[1024];
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
	ssize_t size = -1;
	int r;

	if (fd < 0)
		return -errno;
	put_address(&ends->local, v4, question.body.id.idiag_src);
	put_address(&ends->remote, v4, question.body.id.idiag_dst);
	/* Connected to the kernel, the socket takes messages from nobody else. */
	if (connect(fd, (const struct sockaddr *)&kernel, sizeof(kernel)) == 0 &&
	    send(fd, &question, sizeof(question), 0) == (ssize_t)sizeof(question))
		size = recv(fd, answer, sizeof(answer), 0);
	r = size < 0 ? -errno
		     : fw_peer_user_parse(answer, (size_t)size, question.head.nlmsg_seq, ends,
					  out_user);
	close(fd);
	return r;
}

static int tcp_user(const struct sockaddr_storage *local, const struct sockaddr_storage *remote,
		    uid_t *out_user)
{
	struct fw_ends own = {.interface = 0}, peer;
	uid_t ignored;
	int r = take_address(local, &own.local, &own.local_port, &own.interface);

	if (r == 0)
		r = take_address(remote, &own.remote, &own.remote_port, &own.interface);
	if (r < 0)
		return r;
	peer = (struct fw_ends){.local = own.remote,
				.remote = own.local,
				.local_port = own.remote_port,
				.remote_port = own.local_port,
				.interface = own.interface};
	r = ask(&peer, out_user);
	/* This end is there, so a kernel that does not find it either cannot be asked. */
	if (r == -ENOENT && ask(&own, &ignored) == -ENOENT)
		return -EPROTONOSUPPORT;
	return r == -ENOENT && !is_here(&own) ? -EREMOTE : r;
}

int fw_peer_user(int fd, uid_t *out_user)
{
	struct sockaddr_storage local, remote;
	socklen_t local_size = sizeof(local), remote_size = sizeof(remote);
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (getsockname(fd, (struct sockaddr *)&local, &local_size) < 0)
		return -errno;
	if (local.ss_family == AF_UNIX) {
		if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
			return -errno;
		if (peer.uid == (uid_t)-1)
			return -ENOENT;
		if (is_ambiguous(peer.uid))
			return -EOVERFLOW;
		*out_user = peer.uid;
		return 0;
	}
	if (getpeername(fd, (struct sockaddr *)&remote, &remote_size) < 0)
		return errno == ENOTCONN ? -ENOENT : -errno;
	return tcp_user(&local, &remote, out_user);
}
