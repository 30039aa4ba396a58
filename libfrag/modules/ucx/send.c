// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stddef.h>

#include "module.h"

/*
 * The sending operator encodes the message, applies the policy to the queue of what is not sent
 * yet, and asks for the lock; whoever holds it sends as far as credit allows. Under block and fault
 * the operator's own count keeps queue and window together within the window; under pop, reject and
 * latest the queue is as long as the window and drops.
 */

static struct ucx_tx *tx_of(const struct fragi_tx *tx)
{
	return (struct ucx_tx *)((char *)(uintptr_t)tx - offsetof(struct ucx_tx, tx));
}

/* Release: who has seen this drop sees the send before it. */
static void count_drop(struct ucx_tx *tx, struct frag_message *message, enum fragi_drop reason)
{
	atomic_fetch_add_explicit(&tx->tx.row->tx_dropped[reason], 1, memory_order_release);
	fragi_message_unref(message);
}

static void notify_room(struct ucx_tx *tx)
{
	if (tx->blocking && tx->tx.room.fn != NULL)
		tx->tx.room.fn(tx->tx.room.arg);
}

/* The sending operator. */

/*
 * Makes what leaves the process here, outside the lock, and measures it. Both are kept in the
 * message.
 */
static int prepare(const struct ucx_tx *tx, const struct frag_message *message, uint64_t *out_bytes)
{
	const struct fragi_blob *blob;
	uint64_t bodies = 0;
	size_t size;
	int r;

	for (uint32_t i = 0; i < message->tensor_count; i++) {
		size = message->tensors[i].tensor->compact_bytes;
		if (size > tx->link.config.message_bytes_max - bodies)
			return -EMSGSIZE;
		bodies += size;
	}
	/* Before the bodies: it refuses tensors whose memory the CPU cannot read. */
	r = fragi_message_encode(message, &blob);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < message->tensor_count; i++)
		if (fragi_tensor_body(message->tensors[i].tensor, &size) == NULL && size > 0)
			return -ENOMEM;
	*out_bytes = bodies + blob->size;
	return 0;
}

/* Returns 1 when there is room now, 0 when the message is gone, else the error to return. */
static int make_room(struct ucx_tx *tx, struct frag_message *message, uint64_t bytes)
{
	struct frag_message *oldest;
	uint64_t stamp;

	if (tx->blocking) {
		if (fragi_window_post(&tx->window, bytes))
			return 1;
		count_drop(tx, message, FRAGI_DROP_NO_ROOM);
		return tx->policy == FRAG_POLICY_FAULT ? -EOVERFLOW : -ENOBUFS;
	}
	if (!fragi_queue_is_full(&tx->pending))
		return 1;
	if (tx->policy == FRAG_POLICY_REJECT) {
		count_drop(tx, message, FRAGI_DROP_QUEUE_FULL);
		return 0;
	}
	oldest = fragi_queue_take_shared(&tx->pending, &stamp);
	if (oldest != NULL)
		count_drop(tx, oldest, FRAGI_DROP_QUEUE_FULL);
	return 1;
}

/* Sends at once when the lock is free; else its holder will. */
static void ask_for_lock(struct ucx_tx *tx)
{
	struct fragi_pump *pump = tx->link.peer->transport->config.pump;

	if (fragi_pump_try_lock(pump)) {
		ucx_tx_transmit(tx);
		fragi_pump_unlock(pump);
	} else if (!atomic_exchange(&tx->kicked, true)) {
		fragi_pump_submit(pump, &tx->kick);
	}
}

static int tx_send(struct fragi_tx *base, struct frag_message *message, uint64_t stamp)
{
	struct ucx_tx *tx = tx_of(base);
	struct fragi_flow_row *row = base->row;
	uint64_t bytes = 0;
	int r = prepare(tx, message, &bytes);

	if (r < 0) {
		fragi_message_unref(message);
		return r;
	}
	if (atomic_load_explicit(&row->sent, memory_order_relaxed) == 0)
		atomic_store_explicit(&row->first_ns, (uint64_t)fragi_now_ns(),
				      memory_order_relaxed);
	fragi_count(&row->bytes, fragi_message_bytes(message));
	fragi_count(&row->sent, 1);
	if (atomic_load_explicit(&base->receiver_done, memory_order_relaxed)) {
		count_drop(tx, message, FRAGI_DROP_RECEIVER_DONE);
		return 0;
	}
	r = make_room(tx, message, bytes);
	if (r <= 0)
		return r;
	fragi_queue_push(&tx->pending, message, stamp);
	ask_for_lock(tx);
	return 0;
}

static uint32_t tx_room(const struct fragi_tx *base)
{
	const struct ucx_tx *tx = tx_of(base);

	if (!tx->blocking || atomic_load_explicit(&base->receiver_done, memory_order_acquire))
		return FRAGI_ROOM_UNLIMITED;
	if (ucx_peer_state(tx->link.peer) == UCX_PEER_LOST)
		return 0;
	return (uint32_t)fragi_window_room(&tx->window);
}

static void tx_close(struct fragi_tx *base)
{
	struct ucx_tx *tx = tx_of(base);

	atomic_store(&tx->closing, true);
	ask_for_lock(tx);
}

/* The holder of the lock. */

/* Under pop, reject and latest the operator takes too. */
static struct frag_message *take_pending(struct ucx_tx *tx, uint64_t *out_stamp)
{
	return tx->blocking ? fragi_queue_take(&tx->pending, out_stamp)
			    : fragi_queue_take_shared(&tx->pending, out_stamp);
}

static void drop_pending(struct ucx_tx *tx, enum fragi_drop reason)
{
	struct frag_message *message = tx->held;
	uint64_t stamp;

	tx->held = NULL;
	if (message == NULL)
		message = take_pending(tx, &stamp);
	for (; message != NULL; message = take_pending(tx, &stamp)) {
		atomic_fetch_add_explicit(&tx->tx.row->tx_dropped[reason], 1, memory_order_release);
		fragi_pump_dispose(tx->link.peer->transport->config.pump, message);
	}
}

static void fill_token(const struct ucx_tx *tx, struct wire_header *header)
{
	header->flow = tx->link.config.flow;
	header->epoch = tx->link.peer->transport->config.epoch;
	memcpy(header->token, tx->link.config.token, sizeof(header->token));
}

/* Descriptors that do not fit into the header of DATA. */
static bool send_descriptors(struct ucx_tx *tx, const struct wire_header *data,
			     const struct frag_message *message, const struct fragi_blob *blob)
{
	struct ucx_op *op = ucx_op_create(tx->link.peer);
	struct wire_header header = *data;

	if (op == NULL)
		return false;
	header.kind = WIRE_DESCRIPTORS;
	header.flags = 0;
	wire_pack(&header, op->header);
	op->message = frag_message_ref(message);
	ucx_op_send(op, WIRE_DESCRIPTORS, WIRE_FIXED_BYTES, blob->bytes, blob->size,
		    ucp_dt_make_contig(1));
	return true;
}

/* The tensors' bytes; empty ones have none. */
static size_t gather(const struct frag_message *message, ucp_dt_iov_t *iov, uint64_t *out_bytes)
{
	size_t count = 0, size;

	*out_bytes = 0;
	for (uint32_t i = 0; i < message->tensor_count; i++) {
		void *body = fragi_tensor_body(message->tensors[i].tensor, &size);

		if (size == 0)
			continue;
		iov[count].buffer = body;
		iov[count].length = size;
		*out_bytes += size;
		count++;
	}
	return count;
}

static void fail_for_memory(struct ucx_tx *tx)
{
	ucx_peer_fail(tx->link.peer, "cannot be sent to: there is no memory left here");
}

static int64_t publish_ns_of(struct fragi_transport *transport, uint64_t stamp)
{
	if ((int64_t)(stamp - transport->moment.stamp) > transport->moment_stamps)
		transport->moment = fragi_moment_now();
	return fragi_moment_ns_at(&transport->moment, stamp);
}

/* Takes the message, whose descriptors are in blob. */
static void send_data(struct ucx_tx *tx, struct frag_message *message,
		      const struct fragi_blob *blob, uint64_t stamp)
{
	struct wire_header header = {.kind = WIRE_DATA, .sequence = tx->window.sent};
	struct ucx_op *op = ucx_op_create(tx->link.peer);
	size_t header_bytes = WIRE_FIXED_BYTES, count;
	struct wire_credit credit;

	if (op == NULL) {
		fail_for_memory(tx);
		fragi_pump_dispose(tx->link.peer->transport->config.pump, message);
		return;
	}
	op->message = message;
	fill_token(tx, &header);
	count = gather(message, op->iov, &header.body_bytes);
	header.descriptor_bytes = blob->size;
	header.publish_ns = publish_ns_of(tx->link.peer->transport, stamp);
	fragi_window_spend(&tx->window, header.body_bytes + blob->size);
	if (ucx_peer_take_credit(tx->link.peer, &credit)) {
		header.flags |= WIRE_CREDITED;
		wire_credit_pack(&credit, op->header + header_bytes);
		header_bytes += WIRE_CREDIT_BYTES;
	}
	if (blob->size <= WIRE_HEADER_MAX - header_bytes) {
		memcpy(op->header + header_bytes, blob->bytes, blob->size);
		header_bytes += blob->size;
	} else {
		header.flags |= WIRE_AHEAD;
		if (!send_descriptors(tx, &header, message, blob))
			fail_for_memory(tx);
	}
	wire_pack(&header, op->header);
	if (count <= 1)
		ucx_op_send(op, WIRE_DATA, header_bytes, count == 1 ? op->iov[0].buffer : NULL,
			    count == 1 ? op->iov[0].length : 0, ucp_dt_make_contig(1));
	else
		ucx_op_send(op, WIRE_DATA, header_bytes, op->iov, count, ucp_dt_make_iov());
}

static uint64_t bytes_of(const struct frag_message *message, const struct fragi_blob *blob)
{
	uint64_t bytes = blob->size;

	for (uint32_t i = 0; i < message->tensor_count; i++)
		bytes += message->tensors[i].tensor->compact_bytes;
	return bytes;
}

/*
 * Sends the oldest message if there is credit for it. Returns false when there is nothing more to
 * do now.
 */
static bool transmit_one(struct ucx_tx *tx)
{
	struct frag_message *message = tx->held;
	const struct fragi_blob *blob;

	if (!fragi_window_is_open(&tx->window))
		return false;
	if (message == NULL)
		message = take_pending(tx, &tx->held_stamp);
	if (message == NULL)
		return false;
	tx->held = message;
	if (fragi_message_encode(message, &blob) < 0) {
		fail_for_memory(tx);
		return false;
	}
	if (!fragi_window_fits(&tx->window, bytes_of(message, blob))) {
		if (fragi_window_want(&tx->window))
			ucx_op_send_control(&tx->link, WIRE_BEAT, WIRE_WANT, 0, 0);
		return false;
	}
	tx->held = NULL;
	send_data(tx, message, blob, tx->held_stamp);
	return true;
}

void ucx_tx_transmit(struct ucx_tx *tx)
{
	struct fragi_peer *peer = tx->link.peer;

	if (ucx_peer_state(peer) != UCX_PEER_READY)
		return;
	if (atomic_load_explicit(&tx->tx.receiver_done, memory_order_relaxed))
		drop_pending(tx, FRAGI_DROP_RECEIVER_DONE);
	while (!peer->failed && transmit_one(tx))
		;
	if (!tx->close_sent && tx->held == NULL && atomic_load(&tx->closing) &&
	    fragi_queue_count(&tx->pending) == 0) {
		tx->close_sent = true;
		ucx_op_send_control(&tx->link, WIRE_CLOSE, 0, tx->window.sent, 0);
	}
}

static void on_kick(struct fragi_pump_work *work)
{
	struct ucx_tx *tx = (struct ucx_tx *)(void *)((char *)work - offsetof(struct ucx_tx, kick));

	atomic_exchange(&tx->kicked, false); /* before the queue is looked at */
	ucx_tx_transmit(tx);
}

bool ucx_tx_is_empty(struct ucx_tx *tx)
{
	return tx->held == NULL && fragi_queue_count(&tx->pending) == 0 &&
	       (tx->close_sent || !atomic_load(&tx->closing));
}

void ucx_tx_on_credit(struct ucx_tx *tx, uint64_t messages, uint64_t bytes)
{
	uint64_t before = atomic_load_explicit(&tx->window.credited, memory_order_relaxed);

	if (!fragi_window_credit(&tx->window, messages, bytes)) {
		ucx_peer_fail(tx->link.peer, "gave back credit that it never had");
		return;
	}
	fragi_count(&tx->tx.row->confirmed, messages - before);
	ucx_tx_transmit(tx);
	notify_room(tx);
}

void ucx_tx_on_done(struct ucx_tx *tx)
{
	atomic_store_explicit(&tx->tx.receiver_done, true, memory_order_release);
	ucx_tx_transmit(tx);
	if (tx->tx.room.fn != NULL)
		tx->tx.room.fn(tx->tx.room.arg);
}

static const struct fragi_tx_ops tx_ops = {
	.name = "ucx",
	.send = tx_send,
	.room = tx_room,
	.close = tx_close,
};

int ucx_tx_create(struct fragi_peer *peer, const struct fragi_link *link,
		  struct fragi_flow_row *row, struct fragi_tx **out_tx)
{
	struct ucx_tx *tx = fragi_aligned_alloc(64, sizeof(*tx));
	int r;

	if (tx == NULL)
		return -ENOMEM;
	memset(tx, 0, sizeof(*tx));
	tx->policy = link->policy == FRAG_POLICY_DEFAULT ? FRAG_POLICY_BLOCK : link->policy;
	tx->blocking = tx->policy == FRAG_POLICY_BLOCK || tx->policy == FRAG_POLICY_FAULT;
	tx->tx.ops = &tx_ops;
	tx->tx.row = row;
	tx->kick.fn = on_kick;
	tx->window.messages = link->window_messages;
	tx->window.bytes = link->window_bytes;
	r = fragi_queue_init(&tx->pending,
			     tx->policy == FRAG_POLICY_LATEST ? 1 : link->window_messages);
	if (r < 0)
		goto err_free;
	r = ucx_link_add(peer, &tx->link, link, true);
	if (r < 0)
		goto err_queue;
	*out_tx = &tx->tx;
	return 0;

err_queue:
	fragi_queue_fini(&tx->pending);
err_free:
	fragi_free(tx);
	return r;
}

void ucx_tx_free(struct ucx_tx *tx)
{
	drop_pending(tx, FRAGI_DROP_STOPPED);
	fragi_queue_fini(&tx->pending);
	fragi_free(tx);
}
