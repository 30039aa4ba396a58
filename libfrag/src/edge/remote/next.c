// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stddef.h>

#include <edge/remote/state.h>

/*
 * Most flows carry messages of one layout. Where the transport says whose a message is, such a
 * message leaves as NEXT: a sequence, a time, the value and the bodies. So it needs no descriptors
 * at either end, and half as many cache lines of shared memory.
 *
 * The sender chooses: of two messages in a row that have a layout and as many bytes, the second
 * announces its own by a flag. From then on those that fit are NEXT, also behind messages that do
 * not, until another layout is announced. Both ends forget it when the peer is replaced. The
 * receiver keeps the descriptors too, so that whatever is not the next message in order, or has no
 * bodies yet, goes the way of all others.
 */

void fragi_remote_layout_forget(struct fragi_remote_layout *layout)
{
	if (layout->known != NULL)
		fragi_layout_fini(layout->known);
	fragi_free(layout->known);
	fragi_free(layout->descriptors);
	*layout = (struct fragi_remote_layout){0};
}

static int set(struct fragi_remote_layout *layout, const struct frag_message *message)
{
	struct fragi_layout *known = layout->known;
	int r;

	if (known == NULL)
		known = fragi_calloc(1, sizeof(*known));
	r = known != NULL ? fragi_layout_set(known, message) : -ENOMEM;
	if (r == 0)
		layout->known = known;
	else if (layout->known == NULL)
		fragi_free(known);
	return r;
}

/* The sender. */

bool fragi_remote_tx_has_next(const struct fragi_remote_tx *tx, const struct frag_message *message)
{
	const struct fragi_remote_rx *owing =
		atomic_load_explicit(&tx->edge.endpoint->owing, memory_order_relaxed);

	return tx->layout.known != NULL && (owing == NULL || owing->edge.seal != NULL) &&
	       fragi_layout_fits(tx->layout.known, message);
}

uint8_t fragi_remote_tx_learn(struct fragi_remote_tx *tx, const struct frag_message *message,
			      uint32_t descriptor_bytes, uint64_t body_bytes)
{
	struct fragi_remote_layout *layout = &tx->layout;
	bool as_before;

	if (!fragi_layout_may_be(message) ||
	    !atomic_load_explicit(&tx->edge.endpoint->takes_next, memory_order_relaxed) ||
	    tx->edge.seal != NULL || fragi_layout_bytes(message) == 0 ||
	    (layout->known != NULL && fragi_layout_fits(layout->known, message)))
		return 0;
	as_before =
		layout->descriptor_bytes == descriptor_bytes && layout->body_bytes == body_bytes;
	layout->descriptor_bytes = descriptor_bytes;
	layout->body_bytes = body_bytes;
	return as_before && set(layout, message) == 0 ? FRAGI_FLAG_LAYOUT : 0;
}

static uint32_t gather(const struct frag_message *message, struct fragi_body *bodies)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < message->tensor_count; i++) {
		const struct frag_tensor *tensor = message->tensors[i].tensor;

		if (tensor->compact_bytes > 0)
			bodies[count++] = (struct fragi_body){
				.data = (uint8_t *)tensor->dl.data + tensor->dl.byte_offset,
				.bytes = tensor->compact_bytes,
				.device = tensor->dl.device,
				.owner = tensor->allocator,
			};
	}
	return count;
}

void fragi_remote_tx_send_next(struct fragi_remote_tx *tx, struct frag_message *message,
			       uint64_t stamp)
{
	struct fragi_remote *remote = fragi_remote_of(tx->edge.endpoint);
	struct fragi_remote_send *send = fragi_remote_send_create(tx->edge.endpoint);
	const struct fragi_layout *layout = tx->layout.known;
	struct fragi_body bodies[FRAGI_LAYOUT_TENSORS_MAX];
	const struct fragi_next next = {
		.flow = tx->edge.config.flow,
		.sequence = tx->window.sent - tx->before,
		.publish_ns = fragi_remote_publish_ns(remote, stamp),
	};

	if (send == NULL) {
		fragi_remote_tx_fail_for_memory(tx);
		fragi_pump_dispose(remote->config.pump, message);
		return;
	}
	send->tx = tx;
	send->message = message;
	fragi_next_pack(&next, send->base.header);
	memcpy(send->base.header + FRAGI_NEXT_BYTES, message->inline_value, FRAGI_MESSAGE_INLINE);
	send->base.header_bytes = FRAGI_NEXT_BYTES + layout->value_bytes;
	fragi_window_spend(&tx->window, layout->body_bytes + layout->descriptor_bytes);
	fragi_remote_send_next(send, bodies, gather(message, bodies));
}

/* The receiver. */

/* Returns 0; -EBADMSG: they are none of a layout; -ENOMEM. */
static int learn(struct fragi_remote_layout *layout, const uint8_t *descriptors, size_t size)
{
	struct frag_message *message = NULL;
	uint8_t *copy = fragi_malloc(size + 1);
	int r = copy != NULL ? fragi_message_describe(descriptors, size, &message) : -ENOMEM;

	if (r == 0 && fragi_layout_bytes(message) != size)
		r = -EBADMSG;
	for (uint32_t i = 0; r == 0 && i < message->tensor_count; i++)
		r = message->tensors[i].tensor->was_on_gpu ? -EBADMSG : 0;
	if (r == 0)
		r = set(layout, message);
	frag_message_unref(message);
	if (r < 0) {
		fragi_free(copy);
		return r == -ENOMEM ? r : -EBADMSG;
	}
	memcpy(copy, descriptors, size);
	fragi_free(layout->descriptors);
	layout->descriptors = copy;
	return 0;
}

/* At once: what follows may be here before the bodies are. */
bool fragi_remote_rx_learn(struct fragi_remote_rx *rx, const uint8_t *descriptors, size_t size)
{
	int r = rx->edge.endpoint->transport->transport->names_sender
			? learn(&rx->layout, descriptors, size)
			: 0;

	if (r == -ENOMEM)
		fragi_remote_rx_fault_for_memory(rx);
	else if (r < 0)
		fragi_remote_rx_broke_rule(rx, "a layout that it does not have");
	return r == 0;
}

static const uint8_t *value_of(const struct fragi_arrival *arrival)
{
	return (const uint8_t *)arrival->header + FRAGI_NEXT_BYTES;
}

/* As if it had come with its descriptors. */
static __attribute__((noinline)) enum fragi_arrival_use as_data(struct fragi_remote_rx *rx,
								const struct fragi_next *next,
								const struct fragi_arrival *arrival)
{
	const struct fragi_layout *layout = rx->layout.known;
	uint8_t *end = rx->layout.descriptors + layout->descriptor_bytes;
	const struct fragi_header header = {
		.kind = FRAGI_KIND_DATA,
		.flow = next->flow,
		.descriptor_bytes = layout->descriptor_bytes,
		.sequence = next->sequence,
		.body_bytes = layout->body_bytes,
		.publish_ns = next->publish_ns,
	};

	if (layout->value_bytes > 0)
		memcpy(end - FRAGI_DESCRIPTOR_END_BYTES - layout->value_bytes, value_of(arrival),
		       layout->value_bytes);
	return fragi_remote_on_data(rx, &header, NULL, rx->layout.descriptors,
				    layout->descriptor_bytes, arrival);
}

/* Whether nothing stands between the message and the queue. Counts its bytes then. */
static bool is_next(struct fragi_remote_rx *rx, const struct fragi_next *next,
		    const struct fragi_arrival *arrival)
{
	const struct fragi_layout *layout = rx->layout.known;

	return !rx->broken && rx->before + next->sequence == rx->next && !rx->close_known &&
	       arrival->body_bytes == layout->body_bytes && arrival->handle == NULL &&
	       (arrival->mapped_count > 0 || layout->body_bytes <= FRAGI_INLINE_MAX) &&
	       rx->parts[rx->next & rx->mask].state == FRAGI_PART_FREE &&
	       fragi_window_has_place(&rx->window, rx->next) &&
	       fragi_window_covers(&rx->window, rx->next) &&
	       fragi_window_accept(&rx->window, layout->body_bytes + layout->descriptor_bytes);
}

enum fragi_arrival_use fragi_remote_on_next(struct fragi_remote_rx *rx,
					    const struct fragi_next *next,
					    const struct fragi_arrival *arrival)
{
	const struct fragi_layout *layout = rx->layout.known;
	struct frag_message *message;
	int r;

	if (layout == NULL) {
		fragi_remote_rx_broke_rule(rx, "a message like one that it never sent");
		return FRAGI_ARRIVAL_USED;
	}
	if (arrival->header_bytes != FRAGI_NEXT_BYTES + layout->value_bytes) {
		fragi_remote_rx_broke_rule(rx, "a value of another layout");
		return FRAGI_ARRIVAL_USED;
	}
	if (!is_next(rx, next, arrival))
		return as_data(rx, next, arrival);
	r = fragi_layout_make(layout, fragi_remote_of(rx->edge.endpoint)->bodies, value_of(arrival),
			      arrival->data, arrival->mapped, arrival->mapped_count, &message);
	if (r == -EBADMSG)
		fragi_remote_rx_broke_rule(rx, "bodies of another layout");
	else if (r < 0)
		fragi_remote_rx_fault_for_memory(rx);
	if (r < 0)
		return FRAGI_ARRIVAL_USED;
	fragi_remote_rx_deliver_next(rx, message, layout->body_bytes + layout->descriptor_bytes,
				     next->publish_ns);
	return arrival->mapped_count > 0 ? FRAGI_ARRIVAL_KEPT : FRAGI_ARRIVAL_USED;
}
