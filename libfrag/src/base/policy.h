/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_POLICY_H
#define FRAGI_BASE_POLICY_H

#include <stdbool.h>

#include <base/diag.h>
#include <frag/operator.h>

/*
 * Messages that a flow can hold at most, wherever its ends run: the queue inside a host, and the
 * window between hosts.
 */
#define FRAGI_CAPACITY_MAX 65536u

/* Bytes that may be under way on an edge between hosts, and those of one message. */
#define FRAGI_WINDOW_BYTES (UINT64_C(64) << 20)
#define FRAGI_MESSAGE_BYTES_MAX (UINT64_C(1) << 30)

/*
 * What the policies of queues do, in one table: graphs are read, edges behave and summaries are
 * written by it. A new policy is a value of enum frag_policy and a row here.
 */
struct fragi_policy {
	const char *name;     /* in graphs and summaries */
	const char *holoscan; /* its number in Holoscan; NULL: none, or its name is this one */
	/*
	 * The sender is not scheduled before there is room, and the window between hosts counts
	 * what the receiver has not taken yet. Otherwise there is always room.
	 */
	bool blocking;
	/* What an emit into a full queue returns; 0: nothing fails, and one message is dropped. */
	int full_error;
	bool drops_oldest; /* of a full queue; otherwise the new message is dropped */
	/* The receiver reads the newest message again, and neither waits nor ends for its sender */
	bool reads_again;
	uint32_t capacity; /* of the queue; 0: as the flow or its port says */
};

/*
 * The row of a policy; of FRAG_POLICY_DEFAULT, that of FRAG_POLICY_BLOCK. NULL: no policy has that
 * number.
 */
FRAGI_API const struct fragi_policy *fragi_policy(unsigned int policy);

#endif
