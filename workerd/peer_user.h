/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_PEER_USER_H
#define WRK_PEER_USER_H

#include <stdbool.h>
#include <sys/socket.h>

/*
 * Whether the other end of a TCP connection is a socket of this process's user on this machine. The
 * kernel's own tables of sockets say so, not the peer.
 * - own, peer: the two ends, as getsockname and getpeername give them
 * When in doubt (another address, network namespace or user, no /proc): false.
 */
bool wrk_peer_is_own_user(const struct sockaddr *own, const struct sockaddr *peer);

#endif
