// SPDX-License-Identifier: Apache-2.0
#include "module.h"

/*
 * Credit goes back as totals, so that a credit message says all that those before it said. It goes back in
 * batches of half a window, and in smaller ones where the sender may be waiting: at rest when it has no more
 * than half of its window left, at once when it has said that it waits for bytes, and with every beat.
 *
 * A batch of messages goes at once only when more than it has arrived since the last one: else the sender has
 * half a window left, and the answer that the operator is perhaps about to send would wait behind the credit.
 */

/* The sender has less than half of its window left. */
static bool sender_may_wait(const struct ucx_rx *rx)
{
	const struct fragi_link *config = &rx->link.config;
	uint64_t returned = atomic_load_explicit(&rx->returned, memory_order_relaxed);
	uint64_t returned_bytes = atomic_load_explicit(&rx->returned_bytes, memory_order_relaxed);

	return atomic_load_explicit(&rx->wanted, memory_order_relaxed) ||
	       (rx->accepted - returned) * 2 >= config->window_messages ||
	       (rx->accepted_bytes - returned_bytes) * 2 >= config->window_bytes;
}

bool ucx_rx_owes_credit(const struct ucx_rx *rx)
{
	return atomic_load_explicit(&rx->consumed, memory_order_acquire) !=
	       atomic_load_explicit(&rx->returned, memory_order_relaxed);
}

void ucx_rx_return_credit(struct ucx_rx *rx, bool all)
{
	/* The bytes may be newer than the messages: never more than what has begun to arrive. */
	uint64_t messages = atomic_load_explicit(&rx->consumed, memory_order_acquire);
	uint64_t bytes = atomic_load_explicit(&rx->consumed_bytes, memory_order_relaxed);

	if (messages == atomic_load_explicit(&rx->returned, memory_order_relaxed))
		return;
	if (!all && !rx->close_known && !sender_may_wait(rx))
		return;
	if (messages == rx->accepted)
		atomic_store_explicit(&rx->wanted, false, memory_order_relaxed);
	atomic_store_explicit(&rx->returned, messages, memory_order_relaxed);
	atomic_store_explicit(&rx->returned_bytes, bytes, memory_order_relaxed);
	ucx_op_send_control(&rx->link, WIRE_CREDIT, 0, messages, bytes);
}

bool ucx_rx_batch_is_due(const struct ucx_rx *rx)
{
	const struct fragi_link *config = &rx->link.config;
	uint64_t messages = atomic_load_explicit(&rx->consumed, memory_order_relaxed) -
			    atomic_load_explicit(&rx->returned, memory_order_relaxed);
	uint64_t bytes = atomic_load_explicit(&rx->consumed_bytes, memory_order_relaxed) -
			 atomic_load_explicit(&rx->returned_bytes, memory_order_relaxed);

	return (messages * 2 >= config->window_messages &&
		(messages + fragi_rx_available(&rx->rx)) * 2 > config->window_messages) ||
	       bytes * 2 >= config->window_bytes || atomic_load_explicit(&rx->wanted, memory_order_relaxed);
}

void ucx_rx_consume(struct ucx_rx *rx)
{
	uint64_t n = atomic_load_explicit(&rx->consumed, memory_order_relaxed);

	fragi_count(&rx->consumed_bytes, rx->sizes[n & rx->mask]);
	atomic_store_explicit(&rx->consumed, n + 1, memory_order_release);
}

void ucx_rx_consume_delivered(struct ucx_rx *rx)
{
	atomic_store_explicit(&rx->consumed_bytes, rx->next_bytes, memory_order_relaxed);
	atomic_store_explicit(&rx->consumed, rx->next, memory_order_release);
}
