// SPDX-License-Identifier: Apache-2.0
#include "gate.h"

#include <errno.h>
#include <sys/socket.h>

#define LOG_TOPIC "ucx"
#include <base/log.h>

/*
 * UCX (1.10 to 1.22) completes a message twice when a send fails after a part of that message has
 * been sent. Its assertion ends the process; a UCX without assertions would count in a request that
 * may be another message's by then. It survives the end of a connection from which it reads. So the
 * connection is closed here, and UCX is told that there is no room yet, until it has read what the
 * peer had sent, and the end.
 */
int ucx_failed_send(int fd, int reason)
{
	if (reason != EPIPE && reason != ECONNRESET) /* as when the peer has ended */
		log_warn(NULL, "UCX cannot send to a host (%s), so its connection is closed",
			 frag_strerror(-reason));
	/* Where the peer has reset it, it counts as not connected. */
	return shutdown(fd, SHUT_RDWR) == 0 || errno == ENOTCONN ? EAGAIN : reason;
}
