/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FW_PEER_USER_H
#define FW_PEER_USER_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Which user of this machine has the other end of a connected socket. The kernel is asked, not the
 * peer: for TCP its table of sockets (sock_diag), for a unix socket the credentials that it noted.
 *
 * The user of a TCP socket is the one whose process created or accepted it, in the numbers of this
 * process's user namespace. "This machine" is the network namespace of the socket.
 *
 * Returns 0, or:
 * - -EAGAIN: the peer listens and has not accepted the connection yet; ask again
 * - -ENOENT, -ESHUTDOWN: no process of this machine has the other end; it has closed it
 * - -EREMOTE: the same, and the addresses may be those of two machines
 * - -EOVERFLOW: a user that has no number of its own in this user namespace
 * - -EPROTONOSUPPORT: the kernel has no sock_diag for TCP
 * - what else the system says: nobody is known, and the next attempt may succeed
 */
int fw_peer_user(int fd, uid_t *out_user);

/* The ends of a TCP connection; an IPv4 address is mapped into IPv6 (::ffff:a.b.c.d). */
struct fw_ends {
	struct in6_addr local, remote;
	in_port_t local_port, remote_port; /* network byte order */
	uint32_t interface;                /* of link-local addresses; 0: none */
};

/*
 * Reads the kernel's answer to the question who has the socket with these ends. Returns as above,
 * and -EBADMSG: it is no answer to that question.
 * - sequence: the number of the question
 */
int fw_peer_user_parse(const void *answer, size_t size, uint32_t sequence,
		       const struct fw_ends *ends, uid_t *out_user);

#endif
