// SPDX-License-Identifier: Apache-2.0
#include "module.h"

/*
 * Credit goes back in batches of half a window, and in smaller ones where the sender may be
 * waiting: at rest when it has no more than half of its window left, at once when it has said that
 * it waits for bytes, and with every beat. A message to that host carries a batch, so that a
 * question and its answer need no more messages than two. The counts are the window's.
 */

void ucx_rx_return_credit(struct ucx_rx *rx, bool all)
{
	uint64_t messages, bytes;

	if (!fragi_window_owes(&rx->window) ||
	    (!all && !rx->close_known && !fragi_window_sender_may_wait(&rx->window)))
		return;
	fragi_window_give_back(&rx->window, &messages, &bytes);
	ucx_op_send_control(&rx->link, WIRE_CREDIT, 0, messages, bytes);
}

bool ucx_peer_take_credit(struct fragi_peer *peer, struct wire_credit *out)
{
	struct ucx_rx *rx = atomic_load_explicit(&peer->owing, memory_order_acquire);

	if (rx == NULL)
		return false;
	atomic_store_explicit(&peer->owing, NULL, memory_order_relaxed);
	if (!fragi_window_owes(&rx->window))
		return false;
	out->flow = rx->link.config.flow;
	fragi_window_give_back(&rx->window, &out->messages, &out->bytes);
	return true;
}

bool ucx_rx_credit_is_due(const struct ucx_rx *rx)
{
	return fragi_window_is_due(&rx->window, fragi_rx_available(&rx->rx));
}

void ucx_rx_consume(struct ucx_rx *rx)
{
	uint64_t n = atomic_load_explicit(&rx->window.consumed, memory_order_relaxed);

	fragi_window_consume(&rx->window, rx->sizes[n & rx->mask]);
}

void ucx_rx_consume_delivered(struct ucx_rx *rx)
{
	fragi_window_consume_to(&rx->window, rx->next, rx->next_bytes);
}
