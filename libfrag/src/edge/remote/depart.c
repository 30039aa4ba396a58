// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stddef.h>

#include <edge/remote/state.h>

/*
 * A message leaves as DATA: header, credit of another flow if there is some, descriptors, and the
 * bodies of its tensors.
 */

static struct fragi_header header_of(const struct fragi_remote_tx *tx, enum fragi_header_kind kind)
{
	struct fragi_header header = {
		.kind = kind,
		.flow = tx->edge.config.flow,
		.epoch = fragi_remote_of(tx->edge.endpoint)->config.epoch,
	};

	memcpy(header.token, tx->edge.config.token, sizeof(header.token));
	return header;
}

/* Descriptors that do not fit into the header of DATA. */
static bool send_descriptors(struct fragi_remote_tx *tx, const struct fragi_header *data,
			     const struct frag_message *message, const struct fragi_blob *blob)
{
	struct fragi_remote_send *send = fragi_remote_send_create(tx->edge.endpoint);
	struct fragi_header header = *data;
	struct fragi_body body = {
		.data = (void *)(uintptr_t)blob->bytes,
		.bytes = blob->size,
		.device = {FRAG_DEVICE_CPU, 0},
	};

	if (send == NULL)
		return false;
	header.kind = FRAGI_KIND_DESCRIPTORS;
	header.flags = 0;
	send->tx = tx;
	send->message = frag_message_ref(message);
	send->seal = tx->edge.seal;
	send->back = false;
	fragi_remote_send_start(send, &header,
				FRAGI_HEADER_BYTES + fragi_remote_seal_room(send->seal, true),
				&body, 1);
	return true;
}

void fragi_remote_tx_fail_for_memory(struct fragi_remote_tx *tx)
{
	fragi_remote_endpoint_fail(tx->edge.endpoint, FRAGI_FAILURE_OUT_OF_MEMORY,
				   "cannot be sent to: there is no memory left here");
}

/* How long a message has waited since it was emitted, and what for. */
static struct fragi_trail_held held_since(const struct fragi_remote_tx *tx, int64_t publish_ns)
{
	const int64_t now_ns = fragi_now_ns(), ready_ns = tx->edge.endpoint->ready_ns;

	if (now_ns < publish_ns)
		return (struct fragi_trail_held){0};
	return (struct fragi_trail_held){
		.ns = (uint64_t)(now_ns - publish_ns),
		.restart_ns = ready_ns > publish_ns ? (uint64_t)(ready_ns - publish_ns) : 0,
		.gpu_ns = tx->awaited_ns != 0 ? (uint64_t)(now_ns - tx->awaited_ns) : 0,
	};
}

/*
 * Keeps the copies that are sent in place of the message. Blocks of pools of GPU memory are then
 * free when it is sent, as the receiver gives the copies back only when its own GPU has read them.
 * Where memory is short, the message is kept.
 */
static void keep_copies(struct fragi_remote_send *send)
{
	struct frag_message *message = send->message, *copies = fragi_message_take();
	int r = copies != NULL ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < message->tensor_count && r == 0; i++) {
		const struct fragi_named_tensor *like = &message->tensors[i];

		r = fragi_message_append_tensor(
			copies, like, frag_tensor_ref(fragi_tensor_sent(like->tensor, NULL)));
	}
	if (r == 0) {
		send->message = copies;
		fragi_pump_dispose(send->transport->remote->config.pump, message);
	} else if (copies != NULL) {
		fragi_message_unref(copies);
	}
}

/* Descriptors that go ahead do not say how long they were held: they are shared. */
void fragi_remote_tx_depart(struct fragi_remote_tx *tx, struct frag_message *message,
			    const struct fragi_blob *blob, uint64_t stamp, bool has_trail)
{
	struct fragi_header header = header_of(tx, FRAGI_KIND_DATA);
	struct fragi_remote_send *send = NULL;
	struct fragi_body bodies[FRAG_MESSAGE_TENSORS_MAX];
	size_t header_bytes = FRAGI_HEADER_BYTES;
	struct fragi_credit credit;
	uint32_t count;
	int staged = fragi_remote_tx_gather(tx, message, bodies, &count, &header.body_bytes);

	if (staged < 0)
		fragi_remote_endpoint_fail(tx->edge.endpoint, FRAGI_FAILURE_HOST_FAILED,
					   "cannot be sent to: a GPU here does not copy a tensor");
	else if ((send = fragi_remote_send_create(tx->edge.endpoint)) == NULL)
		fragi_remote_tx_fail_for_memory(tx);
	if (send == NULL) {
		fragi_pump_dispose(fragi_remote_of(tx->edge.endpoint)->config.pump, message);
		return;
	}
	send->tx = tx;
	send->message = message;
	send->seal = tx->edge.seal;
	send->back = false;
	header_bytes += fragi_remote_seal_room(send->seal, count > 0);
	header.sequence = tx->window.sent - tx->before;
	header.descriptor_bytes = blob->size;
	header.publish_ns = fragi_remote_publish_ns(fragi_remote_of(tx->edge.endpoint), stamp);
	fragi_window_spend(&tx->window, header.body_bytes + blob->size);
	if (fragi_remote_take_credit(&tx->edge, &credit)) {
		header.flags |= FRAGI_FLAG_CREDITED;
		fragi_credit_pack(&credit, send->base.header + header_bytes);
		header_bytes += FRAGI_CREDIT_BYTES;
	}
	if (blob->size <= tx->edge.endpoint->transport->header_max - header_bytes) {
		header.flags |= fragi_remote_tx_learn(tx, message, blob->size, header.body_bytes);
		memcpy(send->base.header + header_bytes, blob->bytes, blob->size);
		if (__builtin_expect(has_trail, 0)) {
			const struct fragi_trail_held held = held_since(tx, header.publish_ns);

			fragi_blob_set_held(blob, send->base.header + header_bytes, &held);
		}
		header_bytes += blob->size;
	} else {
		header.flags |= FRAGI_FLAG_AHEAD;
		if (!send_descriptors(tx, &header, message, blob))
			fragi_remote_tx_fail_for_memory(tx);
	}
	if (__builtin_expect(staged > 0, 0))
		keep_copies(send);
	fragi_remote_send_start(send, &header, header_bytes, bodies, count);
}
