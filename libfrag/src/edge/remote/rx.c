// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <errno.h>
#include <stddef.h>

#include <edge/remote/state.h>

/*
 * The receiving end of a flow: what has arrived is delivered in order to the queue, the operator
 * takes from it, and credit, DONE and the sender's close follow.
 */

static void notify_arrival(struct fragi_remote_rx *rx)
{
	if (rx->rx.arrival.fn != NULL)
		rx->rx.arrival.fn(rx->rx.arrival.arg);
}

/* The receiving operator. */

static void ask_for_lock(struct fragi_remote_rx *rx)
{
	if (!atomic_exchange(&rx->kicked, true))
		fragi_pump_submit(fragi_remote_of(rx->edge.endpoint)->config.pump, &rx->kick);
}

static struct fragi_remote_rx *rx_of(struct fragi_rx *rx)
{
	return (struct fragi_remote_rx *)(void *)((char *)rx -
						  offsetof(struct fragi_remote_rx, rx));
}

static void on_taken(void *arg)
{
	struct fragi_remote_rx *rx = arg;
	_Atomic bool *waiting = &fragi_remote_of(rx->edge.endpoint)->credits_waiting;

	fragi_remote_rx_consume(rx);
	if (fragi_remote_rx_credit_is_due(rx)) {
		ask_for_lock(rx);
		return;
	}
	if (fragi_window_owes_batch(&rx->window))
		atomic_store_explicit(&rx->edge.endpoint->owing, rx, memory_order_release);
	/* Release: who clears the flag that is set here sees what was consumed. */
	atomic_store_explicit(waiting, true, memory_order_release);
}

static void rx_closed(struct fragi_rx *base)
{
	struct fragi_remote_rx *rx = rx_of(base);

	atomic_store(&rx->done, true);
	ask_for_lock(rx);
}

/* The holder of the lock. */

/*
 * The operator has ended. The credit of what it took goes ahead of DONE, and that of what was
 * dropped comes behind it, so that the sender knows them apart. Without DONE none comes: what a
 * process that is to be followed by another one drops was not received.
 */
static void end_credit(struct fragi_remote_rx *rx)
{
	if (!rx->done_sent)
		fragi_remote_rx_return_credit(rx, true); /* may deliver, and so come here again */
	if (!rx->done_sent && !atomic_load(&fragi_remote_of(rx->edge.endpoint)->keeps_open)) {
		rx->done_sent = true;
		fragi_remote_send_control(&rx->edge, FRAGI_KIND_DONE, 0, 0, 0);
	}
	if (rx->done_sent)
		fragi_remote_rx_consume_delivered(rx);
}

void fragi_remote_rx_settle(struct fragi_remote_rx *rx)
{
	if (!fragi_remote_endpoint_is_up(rx->edge.endpoint))
		return;
	if (atomic_load(&rx->done))
		end_credit(rx);
	fragi_remote_rx_return_credit(rx, true);
}

static void on_kick(struct fragi_pump_work *work)
{
	struct fragi_remote_rx *rx =
		(struct fragi_remote_rx *)(void *)((char *)work -
						   offsetof(struct fragi_remote_rx, kick));

	atomic_exchange(&rx->kicked, false); /* before the flags are looked at */
	fragi_remote_rx_settle(rx);
}

void fragi_remote_rx_end(struct fragi_remote_rx *rx)
{
	if (rx->close_reported)
		return;
	rx->close_reported = true;
	fragi_rx_sender_close(&rx->rx);
	notify_arrival(rx);
}

static void report_close(struct fragi_remote_rx *rx)
{
	if (!rx->close_known || rx->close_reported || rx->next != rx->close_sequence)
		return;
	fragi_remote_rx_end(rx);
	atomic_store_explicit(&fragi_remote_of(rx->edge.endpoint)->credits_waiting, true,
			      memory_order_relaxed);
}

/* When the message was emitted, by our clock, to which its own times are converted; 0: unknown. */
static uint64_t stamp_of(const struct fragi_remote_rx *rx, struct frag_message *message,
			 int64_t publish_ns)
{
	const struct fragi_timeline *peer = &rx->edge.endpoint->base->timeline;
	struct fragi_time published;
	uint64_t stamp;

	fragi_message_convert_times(message, peer);
	if (!fragi_timeline_convert(peer, publish_ns, &published))
		return 0;
	if (__builtin_expect(published.error_ns != 0, 0))
		fragi_hist_note_error(&rx->rx.row->latency, (uint64_t)published.error_ns);
	stamp = fragi_moment_stamp_at(&fragi_remote_of(rx->edge.endpoint)->moment, published.ns);
	return stamp != 0 ? stamp : 1;
}

static inline void deliver_one(struct fragi_remote_rx *rx, struct frag_message *message,
			       uint64_t bytes, int64_t publish_ns)
{
	rx->sizes[rx->next & rx->mask] = bytes;
	rx->next_bytes += bytes;
	rx->next++;
	message->epoch = rx->edge.endpoint->peer->epoch;
	(void)fragi_rx_push(&rx->rx, message, stamp_of(rx, message, publish_ns));
}

/* Some were delivered. */
static void delivered(struct fragi_remote_rx *rx)
{
	if (atomic_load(&rx->done))
		end_credit(rx);
	else if (!rx->blocking)
		while (atomic_load_explicit(&rx->window.consumed, memory_order_relaxed) != rx->next)
			fragi_remote_rx_consume(rx);
	if (fragi_remote_rx_credit_is_due(rx))
		fragi_remote_rx_return_credit(rx, true);
	else if (!rx->blocking || atomic_load(&rx->done))
		atomic_store_explicit(&fragi_remote_of(rx->edge.endpoint)->credits_waiting, true,
				      memory_order_relaxed);
	notify_arrival(rx);
	report_close(rx);
}

void fragi_remote_rx_deliver_next(struct fragi_remote_rx *rx, struct frag_message *message,
				  uint64_t bytes, int64_t publish_ns)
{
	deliver_one(rx, message, bytes, publish_ns);
	delivered(rx);
}

void fragi_remote_rx_deliver(struct fragi_remote_rx *rx)
{
	struct fragi_remote_part *part = &rx->parts[rx->next & rx->mask];
	bool any = false;

	rx->waits_for_place = false;
	for (; part->state == FRAGI_PART_COMPLETE; part = &rx->parts[rx->next & rx->mask]) {
		const uint64_t bytes = part->body_bytes + part->descriptor_bytes;
		const int64_t publish_ns = part->publish_ns;
		struct frag_message *message = part->message;

		if (!fragi_window_has_place(&rx->window, rx->next)) {
			rx->waits_for_place = true;
			break;
		}
		part->message = NULL;
		fragi_remote_part_reset(part);
		deliver_one(rx, message, bytes, publish_ns);
		any = true;
	}
	if (any)
		delivered(rx);
}

void fragi_remote_rx_on_close(struct fragi_remote_rx *rx, const struct fragi_header *header)
{
	uint64_t sequence = rx->before + header->sequence;

	if (rx->close_known || sequence < rx->next ||
	    sequence - rx->next > rx->edge.config.window_messages) {
		fragi_remote_rx_broke_rule(rx, "a close that cannot be");
		return;
	}
	if ((header->flags & FRAGI_FLAG_YIELD) != 0)
		fragi_remote_yield(fragi_remote_of(rx->edge.endpoint));
	rx->close_known = true;
	rx->close_sequence = sequence;
	report_close(rx);
}

void fragi_remote_rx_restart(struct fragi_remote_rx *rx)
{
	fragi_remote_rx_abandon(rx);
	rx->broken = rx->waits_for_place = rx->close_known = rx->close_reported = false;
	rx->done_sent = false;
	rx->receiving = 0;
	rx->receiving_bytes = 0;
	fragi_remote_layout_forget(&rx->layout);
	rx->before = rx->next;
	rx->before_bytes = rx->next_bytes;
	fragi_window_restart_rx(&rx->window, rx->next, rx->next_bytes);
	atomic_store_explicit(&rx->rx.queue.sender_closed, false, memory_order_release);
}

uint64_t fragi_remote_rx_before(const struct fragi_rx *rx)
{
	return rx_of((struct fragi_rx *)(uintptr_t)rx)->before;
}

uint64_t fragi_remote_rx_link(const struct fragi_rx *rx)
{
	return rx_of((struct fragi_rx *)(uintptr_t)rx)->edge.link;
}

void fragi_remote_rx_on_want(struct fragi_remote_rx *rx)
{
	atomic_store_explicit(&rx->window.wanted, true, memory_order_relaxed);
	fragi_remote_rx_return_credit(rx, true);
}

void fragi_remote_rx_broke_rule(struct fragi_remote_rx *rx, const char *what)
{
	fragi_remote_endpoint_fail(rx->edge.endpoint, FRAGI_FAILURE_PROTOCOL,
				   "broke the rules of flow %u: %s", rx->edge.config.flow, what);
}

/* Life. */

int fragi_remote_rx_create(struct fragi_remote_endpoint *endpoint,
			   const struct fragi_edge_config *config, struct fragi_flow_row *row,
			   struct fragi_rx **out_rx)
{
	struct fragi_remote_rx *rx = fragi_aligned_alloc(64, sizeof(*rx));
	uint64_t places = 1;
	int r;

	if (rx == NULL)
		return -ENOMEM;
	memset(rx, 0, sizeof(*rx));
	r = fragi_rx_init(&rx->rx, config->window_messages, config->policy, row);
	if (r < 0)
		goto err_free;
	r = -EINVAL;
	if (config->window_messages > FRAGI_CAPACITY_MAX)
		goto err_rx;
	while (places < config->window_messages)
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
	rx->window.messages = config->window_messages;
	rx->window.bytes = config->window_bytes;
	r = fragi_remote_edge_add(endpoint, &rx->edge, config, false);
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

void fragi_remote_rx_abandon(struct fragi_remote_rx *rx)
{
	rx->broken = true;
	for (uint64_t i = 0; i <= rx->mask; i++) {
		if (rx->parts[i].state != FRAGI_PART_FREE)
			fragi_remote_part_abandon(&rx->parts[i]);
	}
	rx->waiting = 0;
}

void fragi_remote_rx_free(struct fragi_remote_rx *rx)
{
	assert(!atomic_load(&rx->kicked));
	fragi_remote_rx_abandon(rx);
	if (atomic_load(&rx->edge.endpoint->owing) == rx)
		atomic_store(&rx->edge.endpoint->owing, NULL);
	fragi_remote_edge_remove(&rx->edge);
	fragi_remote_layout_forget(&rx->layout);
	fragi_rx_fini(&rx->rx);
	fragi_free(rx->parts);
	fragi_free(rx->sizes);
	fragi_free(rx);
}
