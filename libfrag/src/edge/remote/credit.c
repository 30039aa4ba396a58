// SPDX-License-Identifier: Apache-2.0
#include <edge/remote/state.h>

/*
 * Credit goes back in batches of half a window, and in smaller ones where the sender may be
 * waiting: at rest when it has no more than half of its window left, at once when it has reported
 * that it waits for bytes, and with every beat. A message over that endpoint carries a batch, so
 * that a question and its answer need no more messages than two; the credit of an encrypted flow is
 * carried by encrypted flows only. The counts are the window's.
 */

void fragi_remote_rx_return_credit(struct fragi_remote_rx *rx, bool all)
{
	uint64_t messages, bytes;

	if (__builtin_expect(rx->waits_for_place, 0))
		fragi_remote_rx_deliver(rx);
	if (!fragi_window_owes(&rx->window) ||
	    (!all && !rx->close_known && !fragi_window_sender_may_wait(&rx->window)))
		return;
	fragi_window_give_back(&rx->window, &messages, &bytes);
	fragi_remote_send_control(&rx->edge, FRAGI_KIND_CREDIT, 0, messages - rx->before,
				  bytes - rx->before_bytes);
}

bool fragi_remote_take_credit(const struct fragi_remote_edge *carrier, struct fragi_credit *out)
{
	struct fragi_remote_endpoint *endpoint = carrier->endpoint;
	struct fragi_remote_rx *rx = atomic_load_explicit(&endpoint->owing, memory_order_acquire);

	if (rx == NULL || (rx->edge.seal != NULL && carrier->seal == NULL))
		return false;
	atomic_store_explicit(&endpoint->owing, NULL, memory_order_relaxed);
	if (!fragi_window_owes(&rx->window))
		return false;
	out->flow = rx->edge.config.flow;
	fragi_window_give_back(&rx->window, &out->messages, &out->bytes);
	out->messages -= rx->before;
	out->bytes -= rx->before_bytes;
	return true;
}

bool fragi_remote_rx_credit_is_due(const struct fragi_remote_rx *rx)
{
	return fragi_window_is_due(&rx->window, fragi_rx_available(&rx->rx));
}

void fragi_remote_rx_consume(struct fragi_remote_rx *rx)
{
	uint64_t n = atomic_load_explicit(&rx->window.consumed, memory_order_relaxed);

	fragi_window_consume(&rx->window, rx->sizes[n & rx->mask]);
}

void fragi_remote_rx_consume_delivered(struct fragi_remote_rx *rx)
{
	fragi_window_consume_to(&rx->window, rx->next, rx->next_bytes);
}
