/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CONFORMANCE_MESSAGE_H
#define TESTS_CONFORMANCE_MESSAGE_H

#include <data/allocator.h>
#include <edge/transport.h>

/*
 * A message of the socket transport, in memory that both hosts can read. Its seed decides how the
 * receiver is shown the bodies, and in which pieces it receives them.
 */
struct message {
	struct message *next;       /* of the sender's endpoint */
	struct endpoint *to, *over; /* over: what it was sent on */
	struct fragi_transport *from;
	struct fragi_send *send; /* NULL: it was over at once */
	_Atomic uint32_t refs;   /* one is the sender's, the others are the receiver's */
	uint32_t count;
	uint64_t bytes; /* of all bodies */
	struct fragi_body bodies[FRAG_MESSAGE_TENSORS_MAX];
	void *copies[FRAG_MESSAGE_TENSORS_MAX]; /* NULL: the body was handed over */
	/* while it is received */
	struct message *next_receive; /* of the receiver's endpoint */
	struct fragi_receive *receive;
	uint64_t received; /* bytes */
	uint32_t header_bytes;
	uint8_t header[];
};

/* A number below n. */
uint32_t random_below(unsigned int *seed, uint32_t n);

/*
 * Copies the header, and the bodies that are not from message_memory. Two references: the sender's,
 * and that of the message that travels.
 */
struct message *message_create(struct fragi_transport *from, const void *header,
			       uint32_t header_bytes, const struct fragi_body *bodies,
			       uint32_t count);
/* The same bytes once more, of no send. */
struct message *message_copy(const struct message *message);
/* Wakes the sender when only its reference is left. Thread: any. */
void message_unref(void *message);
/* Reports that a message has come. */
void message_arrive(struct message *message, const struct fragi_transport_config *config,
		    unsigned int *seed);
/* Copies a piece into the bodies in the room of the receive. Returns whether it was the last. */
bool message_receive_some(struct message *message, unsigned int *seed);

/* An allocator of memory that is handed over. */
extern struct fragi_allocator message_memory;

#endif
