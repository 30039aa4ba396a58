// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "module.h"

/*
 * Tries the way to a peer before UCX does, because a refusal in one direction while the other one
 * works makes UCX abort (1.13: an assertion in ucp_request.c). A connection that comes about is
 * reset without a byte, so the kernel over there reports it to nobody.
 */
#define PROBE_MS 200

static bool is_loopback(const uint8_t *end)
{
	static const uint8_t v4[13] = {[10] = 0xff, [11] = 0xff, [12] = 127}, v6[16] = {[15] = 1};

	return memcmp(end, v4, sizeof(v4)) == 0 || memcmp(end, v6, sizeof(v6)) == 0;
}

static int begin(const uint8_t *dial, struct pollfd *out)
{
	const struct linger at_once = {.l_onoff = 1};
	struct sockaddr_storage there = {.ss_family = AF_INET};
	socklen_t size = sizeof(struct sockaddr_in);

	if (ucx_end_to(dial, (struct sockaddr *)&there) < 0) {
		there.ss_family = AF_INET6;
		size = sizeof(struct sockaddr_in6);
		(void)ucx_end_to(dial, (struct sockaddr *)&there);
	}
	*out = (struct pollfd){.fd = -1, .events = POLLOUT};
	out->fd = socket(there.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (out->fd < 0)
		return -EINPROGRESS; /* nothing is known */
	(void)setsockopt(out->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	return connect(out->fd, (struct sockaddr *)&there, size) == 0 ? 0 : -errno;
}

static int look(const struct pollfd *probe)
{
	socklen_t size = sizeof(int);
	int reason = 0;

	if (probe->revents == 0 || getsockopt(probe->fd, SOL_SOCKET, SO_ERROR, &reason, &size) < 0)
		return -EINPROGRESS;
	return -reason;
}

int ucx_probe(const struct ucx_entrance *peer, uint8_t out_dial[UCX_END_BYTES])
{
	struct pollfd probes[UCX_LISTENERS_MAX];
	int64_t until_ns = fragi_now_ns() + PROBE_MS * INT64_C(1000000), left_ns;
	int outcomes[UCX_LISTENERS_MAX];
	bool may_work = false;
	uint32_t count = 0;

	for (uint32_t i = 0; i < peer->count; i++) {
		if (is_loopback(peer->doors[i].dial) && peer->count > 1)
			continue;
		outcomes[count] = begin(peer->doors[i].dial, &probes[count]);
		memcpy(out_dial, peer->doors[i].dial, UCX_END_BYTES);
		count++;
	}
	for (uint32_t i = 0; i < count; i++) {
		left_ns = until_ns - fragi_now_ns();
		if (outcomes[i] == -EINPROGRESS && probes[i].fd >= 0 && left_ns > 0 &&
		    poll(&probes[i], 1, (int)(left_ns / 1000000) + 1) > 0)
			outcomes[i] = look(&probes[i]);
		if (probes[i].fd >= 0)
			close(probes[i].fd);
		/* A host that many connect to at once resets some, and takes the next. */
		may_work = may_work || outcomes[i] == 0 || outcomes[i] == -EINPROGRESS ||
			   outcomes[i] == -ECONNRESET;
	}
	return may_work || count == 0 ? 0 : outcomes[count - 1];
}
