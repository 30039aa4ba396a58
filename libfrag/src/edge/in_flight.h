/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_IN_FLIGHT_H
#define FRAGI_IN_FLIGHT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * What is in flight between hosts, for termination detection (driverd/core/termination.c). Counted
 * is what can wake an operator: messages and the close; and in the other direction credit and the
 * report that the receiver is done. Each host adds up what it has sent and what has arrived. Every
 * edge and kind has a weight of its own in the sums. So if the sums of all hosts are equal, each
 * single count is equal (but for one chance in 2^64): nothing is in flight, whenever each host
 * counted.
 *
 * A process that takes the place of another one counts from zero, and the counts of two links could
 * be equal by chance. So the link is in the sums too: both its ends name it by the sum of the
 * epochs of its two processes.
 */
/* zeroed: nothing was sent */
struct fragi_in_flight {
	uint64_t sent, arrived;
};

enum fragi_in_flight_kind {
	FRAGI_IN_FLIGHT_MESSAGE,
	FRAGI_IN_FLIGHT_CREDIT, /* counts as sent when it is owed */
	FRAGI_IN_FLIGHT_CLOSE,
	FRAGI_IN_FLIGHT_DONE,
	FRAGI_IN_FLIGHT_LINK,
	FRAGI_IN_FLIGHT_KINDS
};

/*
 * splitmix64 of S. Vigna's "An experimental exploration of Marsaglia's xorshift generators,
 * scrambled", 2016
 */
static inline uint64_t fragi_in_flight_weight(uint32_t flow, enum fragi_in_flight_kind kind)
{
	uint64_t x = ((uint64_t)flow * FRAGI_IN_FLIGHT_KINDS + (uint64_t)kind + 1) *
		     0x9e3779b97f4a7c15ull;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

/* flow: the edge's number, the same at both its ends. */
static inline void fragi_in_flight_sender(struct fragi_in_flight *in_flight, uint32_t flow,
					  uint64_t link, uint64_t messages, bool closed,
					  uint64_t credit, bool receiver_done)
{
	in_flight->sent += fragi_in_flight_weight(flow, FRAGI_IN_FLIGHT_LINK) * link +
			   fragi_in_flight_weight(flow, FRAGI_IN_FLIGHT_MESSAGE) * messages +
			   fragi_in_flight_weight(flow, FRAGI_IN_FLIGHT_CLOSE) * closed;
	in_flight->arrived += fragi_in_flight_weight(flow, FRAGI_IN_FLIGHT_CREDIT) * credit +
			      fragi_in_flight_weight(flow, FRAGI_IN_FLIGHT_DONE) * receiver_done;
}

static inline void fragi_in_flight_receiver(struct fragi_in_flight *in_flight, uint32_t flow,
					    uint64_t link, uint64_t messages, bool sender_closed,
					    uint64_t consumed, bool done)
{
	in_flight->arrived += fragi_in_flight_weight(flow, FRAGI_IN_FLIGHT_LINK) * link +
			      fragi_in_flight_weight(flow, FRAGI_IN_FLIGHT_MESSAGE) * messages +
			      fragi_in_flight_weight(flow, FRAGI_IN_FLIGHT_CLOSE) * sender_closed;
	in_flight->sent += fragi_in_flight_weight(flow, FRAGI_IN_FLIGHT_CREDIT) * consumed +
			   fragi_in_flight_weight(flow, FRAGI_IN_FLIGHT_DONE) * done;
}

#endif
