// SPDX-License-Identifier: Apache-2.0
#include "gate.h"

#include <errno.h>
#include <sys/socket.h>

#define LOG_TOPIC "ucx"
#include <base/log.h>

/*
 * UCX (1.10 to 1.22) does not survive each send that fails. When a part of a large message has been
 * sent (sendmsg), it completes that message twice: its assertion ends the process, and a UCX
 * without assertions would count in a request that may be another message's by then. When it sends
 * what it has kept until it was connected (send), it misses the message that it has in hand. It
 * survives the end of a connection from which it reads. So the connection is closed here, and UCX
 * is told that there is no room yet, until it has read what the peer had sent, and the end.
 */
uint64_t ucx_cookie_of(int fd)
{
	uint64_t cookie = 0;
	socklen_t size = sizeof(cookie);

	return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) == 0 ? cookie : 0;
}

int ucx_failed_send(int fd, int reason, bool may_insist)
{
	static _Thread_local struct {
		uint64_t cookie;
		int reason;
	} last;
	uint64_t cookie = may_insist ? ucx_cookie_of(fd) : 0;

	if (cookie != 0 && cookie == last.cookie)
		return last.reason;
	if (reason != EPIPE && reason != ECONNRESET) /* as when the peer has ended */
		log_warn(NULL, "UCX cannot send to a host (%s), so its connection is closed",
			 frag_strerror(-reason));
	/* Where the peer has reset it, it counts as not connected. */
	if (shutdown(fd, SHUT_RDWR) < 0 && errno != ENOTCONN)
		return reason;
	last.cookie = cookie;
	last.reason = reason;
	return EAGAIN;
}
