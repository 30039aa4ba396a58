/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CONFORMANCE_MISCHIEF_H
#define TESTS_CONFORMANCE_MISCHIEF_H

#include "message.h"

/* The state of the socket transport, and what its seed makes of a round. */
struct endpoint {
	struct fragi_endpoint base;
	struct endpoint *next;
	const struct transport *there;
	struct endpoint *peer; /* NULL: it has not connected yet */
	_Atomic bool is_cut;
	uint32_t stops;
	struct message *messages; /* that are not over, in order */
	struct message *unsent;   /* the first of them that has not left */
	struct message *receives;
};

struct transport {
	struct fragi_transport base;
	struct transport *next, *self; /* self is the address */
	struct fragi_transport_config config;
	uint32_t number, steps;
	unsigned int seed;
	int in, out; /* -1: destroyed */
	struct endpoint *endpoints;
};

static inline struct transport *of(const struct endpoint *e)
{
	return (struct transport *)(void *)e->base.transport;
}

/* The parts of socket.c that take a step. Returns whether a message was sent. */
bool socket_write_one(struct endpoint *endpoint);
/* Ends the send or the receive at *at, which is taken off its list. */
void socket_end_send(struct endpoint *endpoint, struct message **at, bool abandoned);
void socket_end_receive(struct message **at, const char *cause);
/* What is under way stays so, until stop or destroy. cause: reported; NULL: it is not. */
void socket_cut(struct endpoint *endpoint, const char *cause);

/* One round; returns how many things happened. */
uint32_t mischief_progress(struct transport *transport);
/* Whether steps can be taken that nothing will wake for. */
bool mischief_is_busy(const struct transport *transport);

#endif
