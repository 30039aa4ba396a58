/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_TRAVEL_H
#define FRAGI_TRAVEL_H

#include <stdbool.h>
#include <stdint.h>

/*
 * What travels between hosts and can wake an operator there: messages and the close; and the other
 * way credit and the word that the receiver is done. Each host adds up what it has sent and what
 * has arrived. Every edge and kind has a weight of its own in the sums, so that sums of all hosts
 * which are equal mean that each single count is (but for one chance in 2^64): nothing is on the
 * way, whenever each host counted.
 *
 * Counts begin anew with each process that takes the place of another one, and those of two links
 * could be equal by chance. So the link is in the sums too: both its ends name it by the sum of the
 * epochs of its two processes.
 */
/* zeroed: nothing yet */
struct fragi_travel {
	uint64_t sent, arrived;
};

enum fragi_travel_kind {
	FRAGI_TRAVEL_MESSAGE,
	FRAGI_TRAVEL_CREDIT, /* counts as sent when it is owed */
	FRAGI_TRAVEL_CLOSE,
	FRAGI_TRAVEL_DONE,
	FRAGI_TRAVEL_LINK,
	FRAGI_TRAVEL_KINDS
};

/*
 * splitmix64 of S. Vigna's "An experimental exploration of Marsaglia's xorshift generators,
 * scrambled", 2016
 */
static inline uint64_t fragi_travel_weight(uint32_t flow, enum fragi_travel_kind kind)
{
	uint64_t x =
		((uint64_t)flow * FRAGI_TRAVEL_KINDS + (uint64_t)kind + 1) * 0x9e3779b97f4a7c15ull;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

/* flow: the edge's number, the same at both its ends. */
static inline void fragi_travel_sender(struct fragi_travel *travel, uint32_t flow, uint64_t link,
				       uint64_t messages, bool closed, uint64_t credit,
				       bool receiver_done)
{
	travel->sent += fragi_travel_weight(flow, FRAGI_TRAVEL_LINK) * link +
			fragi_travel_weight(flow, FRAGI_TRAVEL_MESSAGE) * messages +
			fragi_travel_weight(flow, FRAGI_TRAVEL_CLOSE) * closed;
	travel->arrived += fragi_travel_weight(flow, FRAGI_TRAVEL_CREDIT) * credit +
			   fragi_travel_weight(flow, FRAGI_TRAVEL_DONE) * receiver_done;
}

static inline void fragi_travel_receiver(struct fragi_travel *travel, uint32_t flow, uint64_t link,
					 uint64_t messages, bool sender_closed, uint64_t consumed,
					 bool done)
{
	travel->arrived += fragi_travel_weight(flow, FRAGI_TRAVEL_LINK) * link +
			   fragi_travel_weight(flow, FRAGI_TRAVEL_MESSAGE) * messages +
			   fragi_travel_weight(flow, FRAGI_TRAVEL_CLOSE) * sender_closed;
	travel->sent += fragi_travel_weight(flow, FRAGI_TRAVEL_CREDIT) * consumed +
			fragi_travel_weight(flow, FRAGI_TRAVEL_DONE) * done;
}

#endif
