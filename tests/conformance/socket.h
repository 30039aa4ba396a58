/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CONFORMANCE_SOCKET_H
#define TESTS_CONFORMANCE_SOCKET_H

#include <edge/transport.h>

/*
 * A transport of the tests' own, that makes use of all freedom that the table gives it: what a
 * transport may do, this one does, as its seed decides. Both hosts are in this process.
 */
extern const struct fragi_transport_ops socket_transport;

struct message;

/* Zero: the default. */
struct socket_settings {
	/* read when a transport is created */
	unsigned int seed;
	size_t header_max;
	/*
	 * The transport of that number (from 1, in the order of creation) breaks off at this step,
	 * counted from when `dies` is set; 0: within connect.
	 */
	uint32_t dies, at_step;
	/* read at every message: all bodies are shown as handles */
	bool by_handle;
	/*
	 * Stands between the hosts: is shown every message before it travels, may change it, and
	 * returns how often it travels.
	 */
	uint32_t (*relay)(struct message *message);
	enum { RECEIVES_IN_PIECES, RECEIVES_NOTHING, RECEIVES_AT_ONCE } receives;
};
extern struct socket_settings socket_settings;
/* What happened, in all transports of the process. */
struct socket_counts {
	uint32_t created, received, mapped, copied, handed_over;
	uint32_t depth_max; /* of receives that complete within one another */
};
extern struct socket_counts socket_counts;

/* Sends a message over the endpoint on which another one was shown to the relay. */
void socket_inject(const struct message *beside, const void *header, uint32_t header_bytes);

#endif
