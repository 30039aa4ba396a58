// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stddef.h>

#include "module.h"

/*
 * The receiving end of a flow: what has arrived is delivered in order to the queue, the operator
 * takes from it, and credit, DONE and the sender's close follow.
 */

static void notify_arrival(struct ucx_rx *rx)
{
	if (rx->rx.arrival.fn != NULL)
		rx->rx.arrival.fn(rx->rx.arrival.arg);
}

/* The receiving operator. */

static void ask_for_lock(struct ucx_rx *rx)
{
	if (!atomic_exchange(&rx->kicked, true))
		fragi_pump_submit(rx->link.peer->transport->config.pump, &rx->kick);
}

static struct ucx_rx *rx_of(struct fragi_rx *rx)
{
	return (struct ucx_rx *)(void *)((char *)rx - offsetof(struct ucx_rx, rx));
}

static void on_taken(void *arg)
{
	struct ucx_rx *rx = arg;
	_Atomic bool *waiting = &rx->link.peer->transport->credits_waiting;

	ucx_rx_consume(rx);
	if (ucx_rx_credit_is_due(rx)) {
		ask_for_lock(rx);
		return;
	}
	if (fragi_window_owes_batch(&rx->window))
		atomic_store_explicit(&rx->link.peer->owing, rx, memory_order_release);
	/*
	 * Full fences here and in return_credits: either this sees the flag taken down, or that
	 * sees what was consumed.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load_explicit(waiting, memory_order_relaxed))
		atomic_store_explicit(waiting, true, memory_order_relaxed);
}

static void rx_closed(struct fragi_rx *base)
{
	struct ucx_rx *rx = rx_of(base);

	atomic_store(&rx->done, true);
	ask_for_lock(rx);
}

/* The holder of the lock. */

void ucx_rx_settle(struct ucx_rx *rx)
{
	if (ucx_peer_state(rx->link.peer) != UCX_PEER_READY)
		return;
	if (atomic_load(&rx->done)) {
		ucx_rx_consume_delivered(rx);
		if (!rx->done_sent) {
			rx->done_sent = true;
			ucx_op_send_control(&rx->link, WIRE_DONE, 0, 0, 0);
		}
	}
	ucx_rx_return_credit(rx, true);
}

static void on_kick(struct fragi_pump_work *work)
{
	struct ucx_rx *rx = (struct ucx_rx *)(void *)((char *)work - offsetof(struct ucx_rx, kick));

	atomic_exchange(&rx->kicked, false); /* before the flags are looked at */
	ucx_rx_settle(rx);
}

static void tell_close(struct ucx_rx *rx)
{
	if (!rx->close_known || rx->close_told || rx->next != rx->close_sequence)
		return;
	rx->close_told = true;
	fragi_rx_sender_close(&rx->rx);
	notify_arrival(rx);
	atomic_store_explicit(&rx->link.peer->transport->credits_waiting, true,
			      memory_order_relaxed);
}

static uint64_t stamp_of(const struct ucx_rx *rx, int64_t publish_ns)
{
	uint64_t stamp;

	if (!rx->link.peer->same_node)
		return 0;
	stamp = fragi_moment_stamp_at(&rx->link.peer->transport->moment, publish_ns);
	return stamp != 0 ? stamp : 1;
}

void ucx_rx_deliver(struct ucx_rx *rx)
{
	struct ucx_part *part = &rx->parts[rx->next & rx->mask];
	bool any = false;

	for (; part->state == UCX_PART_COMPLETE; part = &rx->parts[rx->next & rx->mask]) {
		uint64_t bytes = part->body_bytes + part->descriptor_bytes;
		struct frag_message *message = part->message;

		rx->sizes[rx->next & rx->mask] = bytes;
		rx->next_bytes += bytes;
		rx->next++;
		message->publish_ns = part->publish_ns;
		part->message = NULL;
		ucx_part_reset(part);
		fragi_rx_push(&rx->rx, message, stamp_of(rx, message->publish_ns));
		any = true;
	}
	if (!any)
		return;
	if (atomic_load(&rx->done))
		ucx_rx_consume_delivered(rx);
	else if (!rx->blocking)
		while (atomic_load_explicit(&rx->window.consumed, memory_order_relaxed) != rx->next)
			ucx_rx_consume(rx);
	if (ucx_rx_credit_is_due(rx))
		ucx_rx_return_credit(rx, true);
	else if (!rx->blocking || atomic_load(&rx->done))
		atomic_store_explicit(&rx->link.peer->transport->credits_waiting, true,
				      memory_order_relaxed);
	notify_arrival(rx);
	tell_close(rx);
}

void ucx_rx_on_close(struct ucx_rx *rx, const struct wire_header *header)
{
	if (rx->close_known || header->sequence < rx->next ||
	    header->sequence - rx->next > rx->link.config.window_messages) {
		ucx_rx_broke_rule(rx, "a close that cannot be");
		return;
	}
	rx->close_known = true;
	rx->close_sequence = header->sequence;
	tell_close(rx);
}

/* Life. */

int ucx_rx_create(struct fragi_peer *peer, const struct fragi_link *link,
		  struct fragi_flow_row *row, struct fragi_rx **out_rx)
{
	struct ucx_rx *rx = fragi_aligned_alloc(64, sizeof(*rx));
	uint64_t places = 1;
	int r;

	if (rx == NULL)
		return -ENOMEM;
	memset(rx, 0, sizeof(*rx));
	r = fragi_rx_init(&rx->rx, link->window_messages, link->policy, row);
	if (r < 0)
		goto err_free;
	r = -EINVAL;
	if (link->window_messages > UCX_WINDOW_MAX)
		goto err_rx;
	while (places < link->window_messages)
		places *= 2;
	r = -ENOMEM;
	rx->mask = places - 1;
	rx->parts = fragi_calloc(places, sizeof(*rx->parts));
	rx->sizes = fragi_calloc(places, sizeof(*rx->sizes));
	if (rx->parts == NULL || rx->sizes == NULL)
		goto err_parts;
	for (uint64_t i = 0; i < places; i++)
		rx->parts[i].rx = rx;
	rx->blocking = fragi_rx_blocks(&rx->rx);
	rx->taken = (struct fragi_notify){on_taken, rx};
	if (rx->blocking)
		rx->rx.taken = &rx->taken;
	rx->rx.closed = rx_closed;
	rx->rx.between_hosts = true;
	rx->kick.fn = on_kick;
	rx->window.messages = link->window_messages;
	rx->window.bytes = link->window_bytes;
	r = ucx_link_add(peer, &rx->link, link, false);
	if (r < 0)
		goto err_parts;
	*out_rx = &rx->rx;
	return 0;

err_parts:
	fragi_free(rx->parts);
	fragi_free(rx->sizes);
err_rx:
	fragi_rx_fini(&rx->rx);
err_free:
	fragi_free(rx);
	return r;
}

void ucx_rx_abandon(struct ucx_rx *rx)
{
	rx->broken = true;
	for (uint64_t i = 0; i <= rx->mask; i++) {
		if (rx->parts[i].state != UCX_PART_FREE)
			ucx_part_abandon(&rx->parts[i]);
	}
	rx->link.peer->transport->receiving -= rx->receiving;
	rx->receiving = 0;
	rx->receiving_bytes = 0;
	rx->waiting = 0;
}

void ucx_rx_free(struct ucx_rx *rx)
{
	ucx_rx_abandon(rx);
	fragi_rx_fini(&rx->rx);
	fragi_free(rx->parts);
	fragi_free(rx->sizes);
	fragi_free(rx);
}
