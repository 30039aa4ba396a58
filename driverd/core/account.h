/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_ACCOUNT_H
#define DRV_ACCOUNT_H

#include <stdbool.h>

#include <wire/message.h>

/*
 * The sum of one flow from the rows that its ends last reported. Every counter was counted where it
 * happened; what is missing from the sum is in flight after an orderly end, and lost when an end
 * was not orderly. Where the last page of an end could not be read (its node is gone), its true
 * counters lie beyond what it last reported, by at most what the window lets be open: `lost` is
 * then counted up to that bound, so that it may exceed the truth by at most the window and never
 * falls short of it, and what must have been sent or settled meanwhile is added to sent and
 * delivered. An end that never reported may have had a whole window open as well. The sum always
 * balances.
 */
struct drv_account_end {
	const struct fw_flow_stats *row; /* NULL: never reported */
	bool is_final;                   /* read after the host was gone */
	bool is_orderly;                 /* the host ended by itself when it was told to */
};

struct drv_account {
	uint64_t sent, delivered, lost, in_flight, bytes;
	uint64_t dropped[FW_DROP_REASONS];
};

/* A flow inside a host: both halves are in one row. */
void drv_account_inner(const struct drv_account_end *end, uint32_t capacity,
		       struct drv_account *out);
/*
 * A flow between hosts. window: messages that may be open. queues: the policy is pop, reject or
 * latest: the credit returns on arrival, so that as many again may wait in the receiver's queue,
 * and as many in the sender's.
 */
void drv_account_between(const struct drv_account_end *sender,
			 const struct drv_account_end *receiver, uint32_t window, bool queues,
			 struct drv_account *out);

#endif
