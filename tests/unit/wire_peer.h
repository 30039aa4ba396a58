/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_WIRE_PEER_H
#define TESTS_UNIT_WIRE_PEER_H

#include <criterion/criterion.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <base/alloc.h>
#include <base/stamp.h>
#include <wire/frame.h>

/* An end of a control connection that a test plays, of real daemons. */
#define PATIENCE_NS INT64_C(20000000000)
#define MS INT64_C(1000000)

struct wire_peer {
	int fd; /* -1: closed */
	struct fw_reader reader;
	uint64_t seq;
	bool beats; /* while it waits for a frame */
};

static inline struct sockaddr_in wire_peer_address(uint16_t port)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_port = htons(port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static inline void wire_peer_open(struct wire_peer *peer, int fd)
{
	cr_assert_geq(fd, 0);
	*peer = (struct wire_peer){.fd = fd};
	fw_reader_init(&peer->reader, FW_FRAME_MAX);
}

static inline void wire_peer_close(struct wire_peer *peer)
{
	if (peer->fd < 0)
		return;
	close(peer->fd);
	fw_reader_fini(&peer->reader);
	peer->fd = -1;
}

static inline void wire_peer_tell(struct wire_peer *peer, struct fw_message message)
{
	uint8_t *frame;
	size_t size;

	message.seq = ++peer->seq;
	cr_assert_eq(fw_encode(&message, &frame, &size), 0);
	cr_assert_eq(send(peer->fd, frame, size, MSG_NOSIGNAL), (ssize_t)size);
	fragi_free(frame);
}

/* The next frame; NULL: the other end has closed the connection. */
static inline struct fw_message *wire_peer_hear(struct wire_peer *peer)
{
	int64_t end_ns = fragi_now_ns() + PATIENCE_NS;
	struct fw_message *message;
	const uint8_t *bytes;
	size_t size;

	while (fragi_now_ns() < end_ns) {
		struct pollfd wait = {.fd = peer->fd, .events = POLLIN};
		static uint8_t buffer[65536];
		ssize_t n;

		if (fw_reader_next(&peer->reader, &bytes, &size, NULL) > 0) {
			cr_assert_eq(fw_decode(bytes, size, &message, NULL), 0);
			return message;
		}
		if (peer->beats)
			wire_peer_tell(peer, (struct fw_message){.kind = FW_BEAT});
		if (poll(&wait, 1, 50) <= 0)
			continue;
		n = recv(peer->fd, buffer, sizeof(buffer), 0);
		if (n <= 0)
			return NULL;
		cr_assert_eq(fw_reader_feed(&peer->reader, buffer, (size_t)n, fragi_now_ns()), 0);
	}
	cr_assert_fail("the other end says nothing");
	return NULL;
}

#endif
