// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <errno.h>
#include <stddef.h>

#include <base/readable.h>
#include <data/memory.h>
#include <edge/remote/state.h>

/*
 * The sending end of an edge. The sending operator encodes the message, applies the policy to the
 * queue of what is not sent yet, and asks for the lock; its holder sends as far as credit allows.
 * Under block and fault the operator's own count keeps queue and window together within the window;
 * under pop, reject and latest the queue is as long as the window and drops.
 */

static struct fragi_remote_tx *tx_of(const struct fragi_tx *tx)
{
	return (struct fragi_remote_tx *)((char *)(uintptr_t)tx -
					  offsetof(struct fragi_remote_tx, tx));
}

/* Release: who has seen this drop sees the send before it. */
static void count_drop(struct fragi_remote_tx *tx, struct frag_message *message,
		       enum fragi_drop reason)
{
	atomic_fetch_add_explicit(&tx->tx.row->tx_dropped[reason], 1, memory_order_release);
	fragi_message_unref(message);
}

/* Thread: the sending operator's, or the holder of the lock. */
void fragi_remote_tx_count_copied(struct fragi_remote_tx *tx, uint64_t bytes)
{
	if (__builtin_expect(bytes != 0, 0))
		atomic_fetch_add_explicit(&tx->tx.row->copied_out, bytes, memory_order_relaxed);
}

static void notify_room(struct fragi_remote_tx *tx)
{
	if (tx->policy->blocking && tx->tx.room.fn != NULL)
		tx->tx.room.fn(tx->tx.room.arg);
}

/* The sending operator. */

/*
 * Memory that the operator wrapped may be anywhere: the transport would crash on it, or report that
 * the network broke.
 */
static bool is_readable(const struct frag_tensor *tensor)
{
	uintptr_t first = (uintptr_t)tensor->dl.data + tensor->dl.byte_offset;

	return !tensor->foreign || tensor->dl.device.type != FRAG_DEVICE_CPU ||
	       fragi_memory_is_readable((const void *)first, tensor->size_bytes);
}

/*
 * Makes what leaves the process here, outside the lock, and measures it. Both are kept in the
 * message. Descriptors of a message that may be like those before are made if they are to be sent.
 */
static int prepare(struct fragi_remote_tx *tx, const struct frag_message *message,
		   uint64_t *out_body_bytes, uint64_t *out_bytes)
{
	const struct fragi_blob *blob;
	uint64_t bodies = 0, compacted = 0;
	uint32_t layout_bytes = 0;
	size_t size;
	int r;

	for (uint32_t i = 0; i < message->tensor_count; i++) {
		size = message->tensors[i].tensor->compact_bytes;
		if (size > tx->edge.config.message_bytes_max - bodies)
			return -EMSGSIZE;
		if (!is_readable(message->tensors[i].tensor))
			return -EFAULT;
		bodies += size;
	}
	*out_body_bytes = bodies;
	if (fragi_layout_may_be(message) && !tx->edge.config.encrypt &&
	    atomic_load_explicit(&tx->edge.endpoint->takes_next, memory_order_relaxed))
		layout_bytes = fragi_layout_bytes(message);
	*out_bytes = bodies + layout_bytes;
	if (layout_bytes > 0)
		return 0;
	/* Before the bodies: it refuses tensors whose memory the CPU cannot read. */
	r = fragi_message_encode(message, &blob);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < message->tensor_count; i++) {
		struct frag_tensor *tensor = message->tensors[i].tensor;

		if (tensor->sends_data || fragi_remote_tx_is_mapped(tx, tensor))
			continue;
		if (!fragi_tensor_has_body(tensor))
			compacted += tensor->compact_bytes;
		if (fragi_tensor_sent(tensor, &tx->copies) == NULL)
			return fragi_device_is_host(tensor->dl.device) ? -ENOMEM : -EIO;
		if (!fragi_device_is_host(tensor->dl.device))
			atomic_store_explicit(&tx->at_send, FRAGI_AT_RECEIVE_WORK,
					      memory_order_relaxed);
	}
	fragi_remote_tx_count_copied(tx, fragi_remote_copied(bodies, compacted));
	*out_bytes = bodies + blob->size;
	return 0;
}

/* Returns 1 when there is room now, 0 when the message is gone, else the error to return. */
static int make_room(struct fragi_remote_tx *tx, struct frag_message *message, uint64_t bytes)
{
	struct frag_message *oldest;
	uint64_t stamp;

	if (tx->policy->blocking) {
		if (fragi_window_post(&tx->window, bytes))
			return 1;
		count_drop(tx, message, FRAGI_DROP_NO_ROOM);
		return tx->policy->full_error;
	}
	if (!fragi_queue_is_full(&tx->pending))
		return 1;
	if (!tx->policy->drops_oldest) {
		count_drop(tx, message, FRAGI_DROP_QUEUE_FULL);
		return 0;
	}
	oldest = fragi_queue_take_shared(&tx->pending, &stamp);
	if (oldest != NULL)
		count_drop(tx, oldest, FRAGI_DROP_QUEUE_FULL);
	return 1;
}

/* Sends at once when the lock is free; else its holder will. */
static void ask_for_lock(struct fragi_remote_tx *tx)
{
	struct fragi_pump *pump = fragi_remote_of(tx->edge.endpoint)->config.pump;

	if (fragi_pump_try_lock(pump)) {
		fragi_remote_tx_transmit(tx);
		fragi_pump_unlock(pump);
	} else if (!atomic_exchange(&tx->kicked, true)) {
		fragi_pump_submit(pump, &tx->kick);
	}
}

static int tx_send(struct fragi_tx *base, struct frag_message *message, uint64_t stamp)
{
	struct fragi_remote_tx *tx = tx_of(base);
	struct fragi_flow_row *row = base->row;
	uint64_t bytes = 0, body_bytes = 0;
	int r = prepare(tx, message, &body_bytes, &bytes);

	if (r < 0) {
		fragi_message_unref(message);
		return r;
	}
	if (atomic_load_explicit(&row->sent, memory_order_relaxed) == 0)
		atomic_store_explicit(&row->first_ns, (uint64_t)fragi_now_ns(),
				      memory_order_relaxed);
	fragi_count(&row->bytes, body_bytes + message->value_size);
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
	const struct fragi_remote_tx *tx = tx_of(base);

	if (!tx->policy->blocking ||
	    atomic_load_explicit(&base->receiver_done, memory_order_acquire))
		return FRAGI_ROOM_UNLIMITED;
	return fragi_remote_endpoint_state(tx->edge.endpoint) == FRAGI_ENDPOINT_LOST
		       ? 0
		       : (uint32_t)fragi_window_room(&tx->window);
}

static bool tx_is_away(const struct fragi_tx *tx)
{
	return fragi_remote_endpoint_state(tx_of(tx)->edge.endpoint) != FRAGI_ENDPOINT_READY;
}

static void tx_close(struct fragi_tx *base)
{
	struct fragi_remote_tx *tx = tx_of(base);

	atomic_store(&tx->closing, true);
	ask_for_lock(tx);
}

/* The holder of the lock. */

/* Under pop, reject and latest the operator takes too. */
static struct frag_message *take_pending(struct fragi_remote_tx *tx, uint64_t *out_stamp)
{
	return tx->policy->blocking ? fragi_queue_take(&tx->pending, out_stamp)
				    : fragi_queue_take_shared(&tx->pending, out_stamp);
}

static uint64_t bytes_of(const struct frag_message *message, const struct fragi_blob *blob)
{
	uint64_t bytes = blob->size;

	for (uint32_t i = 0; i < message->tensor_count; i++)
		bytes += message->tensors[i].tensor->compact_bytes;
	return bytes;
}

/* As `prepare` measured it; the descriptors are there, or can be. */
static uint64_t posted_bytes(const struct frag_message *message)
{
	const struct fragi_blob *blob;

	return fragi_message_encode(message, &blob) == 0 ? bytes_of(message, blob) : 0;
}

static void drop_pending(struct fragi_remote_tx *tx, enum fragi_drop reason)
{
	struct frag_message *message = tx->held;
	uint64_t stamp;

	tx->held = NULL;
	tx->awaited = NULL;
	tx->awaited_ns = 0;
	if (message == NULL)
		message = take_pending(tx, &stamp);
	for (; message != NULL; message = take_pending(tx, &stamp)) {
		if (tx->policy->blocking)
			fragi_window_drop(&tx->window, posted_bytes(message));
		atomic_fetch_add_explicit(&tx->tx.row->tx_dropped[reason], 1, memory_order_release);
		fragi_pump_dispose(fragi_remote_of(tx->edge.endpoint)->config.pump, message);
	}
}

/* Whether a GPU still writes the message. */
static bool awaits(struct fragi_remote_tx *tx, const struct frag_message *message)
{
	if (!fragi_remote_tx_awaits(tx, message))
		return false;
	if (tx->awaited_ns == 0 && (message->at_receive & FRAGI_AT_SEND_TRAIL) != 0)
		tx->awaited_ns = fragi_now_ns();
	return true;
}

/*
 * Sends the oldest message if there is credit for it. Returns false when there is nothing more to
 * do now.
 */
static bool transmit_one(struct fragi_remote_tx *tx)
{
	struct frag_message *message = tx->held;
	const struct fragi_blob *blob = NULL;
	bool has_trail = false, has_next;
	uint64_t bytes;

	if (!fragi_window_is_open(&tx->window) || tx->under_way >= tx->under_way_max)
		return false;
	if (message == NULL)
		message = take_pending(tx, &tx->held_stamp);
	if (message == NULL)
		return false;
	tx->held = message;
	if (__builtin_expect(((message->at_receive |
			       atomic_load_explicit(&tx->at_send, memory_order_relaxed)) &
			      (FRAGI_AT_RECEIVE_WORK | FRAGI_AT_SEND_TRAIL)) != 0,
			     0)) {
		if (awaits(tx, message))
			return false;
		has_trail = (message->at_receive & FRAGI_AT_SEND_TRAIL) != 0;
	}
	has_next = fragi_remote_tx_has_next(tx, message);
	if (!has_next && fragi_message_encode(message, &blob) < 0) {
		fragi_remote_tx_fail_for_memory(tx);
		return false;
	}
	bytes = has_next ? tx->layout.known->body_bytes + tx->layout.known->descriptor_bytes
			 : bytes_of(message, blob);
	if (!fragi_window_fits(&tx->window, bytes)) {
		if (fragi_window_want(&tx->window))
			fragi_remote_send_control(&tx->edge, FRAGI_KIND_BEAT, FRAGI_FLAG_WANT, 0,
						  0);
		return false;
	}
	tx->held = NULL;
	tx->awaited = NULL;
	if (has_next)
		fragi_remote_tx_send_next(tx, message, tx->held_stamp);
	else
		fragi_remote_tx_depart(tx, message, blob, tx->held_stamp, has_trail);
	if (__builtin_expect(has_trail, 0))
		tx->awaited_ns = 0;
	return true;
}

void fragi_remote_tx_transmit(struct fragi_remote_tx *tx)
{
	struct fragi_remote_endpoint *endpoint = tx->edge.endpoint;

	if (fragi_remote_endpoint_state(endpoint) != FRAGI_ENDPOINT_READY)
		return;
	if (atomic_load_explicit(&tx->tx.receiver_done, memory_order_relaxed))
		drop_pending(tx, FRAGI_DROP_RECEIVER_DONE);
	while (!endpoint->failed && transmit_one(tx))
		;
	if (!tx->close_sent && tx->held == NULL && atomic_load(&tx->closing) &&
	    fragi_queue_count(&tx->pending) == 0 &&
	    !atomic_load(&fragi_remote_of(endpoint)->keeps_open)) {
		tx->close_sent = true;
		fragi_remote_send_control(&tx->edge, FRAGI_KIND_CLOSE, 0,
					  tx->window.sent - tx->before, 0);
	}
}

/*
 * A peer that gives back credit for what it does not receive would have this host keep ever more
 * messages. An honest one gets them, so that at most two windows are under way, with descriptors
 * that go ahead; those that are lent stay until it has no use for them any more.
 */
static uint32_t most_under_way(const struct fragi_remote_endpoint *endpoint, uint32_t window)
{
	return endpoint->transport->transport->lends ? UINT32_MAX : 4 * window;
}

/* An endpoint that is being closed sends nothing more, and the tx may be freed before a kick. */
void fragi_remote_tx_on_sent(struct fragi_remote_tx *tx)
{
	if (__builtin_expect(tx->under_way-- >= tx->under_way_max, 0) &&
	    !tx->edge.endpoint->closing && !atomic_exchange(&tx->kicked, true))
		fragi_pump_submit(fragi_remote_of(tx->edge.endpoint)->config.pump, &tx->kick);
}

static void on_kick(struct fragi_pump_work *work)
{
	void *const at = (char *)work - offsetof(struct fragi_remote_tx, kick);
	struct fragi_remote_tx *tx = at;

	atomic_exchange(&tx->kicked, false); /* before the queue is looked at */
	fragi_remote_tx_transmit(tx);
}

uint32_t fragi_remote_tx_kept(const struct fragi_tx *base)
{
	const struct fragi_remote_tx *tx = tx_of(base);

	return (tx->held != NULL ? 1 : 0) + fragi_queue_count(&tx->pending) + tx->under_way;
}

bool fragi_remote_tx_is_empty(const struct fragi_remote_tx *tx)
{
	return tx->held == NULL && fragi_queue_count(&tx->pending) == 0 &&
	       (tx->close_sent || !atomic_load(&tx->closing) ||
		fragi_remote_yields(fragi_remote_of(tx->edge.endpoint)));
}

void fragi_remote_tx_on_credit(struct fragi_remote_tx *tx, uint64_t messages, uint64_t bytes)
{
	uint64_t before = atomic_load_explicit(&tx->window.credited, memory_order_relaxed);

	messages += tx->before;
	bytes += tx->before_bytes;
	if (messages > tx->window.sent - fragi_remote_sends_waiting(tx) ||
	    !fragi_window_credit(&tx->window, messages, bytes)) {
		fragi_remote_endpoint_fail(tx->edge.endpoint, FRAGI_FAILURE_PROTOCOL,
					   "gave back credit that it never had");
		return;
	}
	/* Behind DONE comes the credit of what the receiver has dropped. */
	if (!atomic_load_explicit(&tx->tx.receiver_done, memory_order_relaxed))
		fragi_count(&tx->tx.row->confirmed, messages - before);
	fragi_remote_tx_transmit(tx);
	notify_room(tx);
}

void fragi_remote_tx_on_done(struct fragi_remote_tx *tx)
{
	atomic_store_explicit(&tx->tx.receiver_done, true, memory_order_release);
	fragi_remote_tx_transmit(tx);
	if (tx->tx.room.fn != NULL)
		tx->tx.room.fn(tx->tx.room.arg);
}

void fragi_remote_tx_restart(struct fragi_remote_tx *tx)
{
	tx->under_way = 0;
	tx->close_sent = false;
	fragi_remote_layout_forget(&tx->layout);
	tx->dropped_before += fragi_window_restart_tx(&tx->window);
	tx->before = tx->window.sent;
	tx->before_bytes = tx->window.sent_bytes;
	atomic_store_explicit(&tx->tx.receiver_done, false, memory_order_release);
	notify_room(tx);
}

uint64_t fragi_remote_tx_before(const struct fragi_tx *base)
{
	const struct fragi_remote_tx *tx = tx_of(base);

	return tx->before - tx->dropped_before;
}

uint64_t fragi_remote_tx_credited(const struct fragi_tx *base)
{
	const struct fragi_remote_tx *tx = tx_of(base);

	return atomic_load_explicit(&tx->window.credited, memory_order_relaxed) - tx->before;
}

uint64_t fragi_remote_tx_link(const struct fragi_tx *base)
{
	return tx_of(base)->edge.link;
}

void fragi_remote_tx_end(struct fragi_remote_tx *tx)
{
	fragi_remote_tx_on_done(tx);
	drop_pending(tx, FRAGI_DROP_RECEIVER_DONE);
}

static const struct fragi_tx_ops tx_ops = {
	.send = tx_send,
	.room = tx_room,
	.is_away = tx_is_away,
	.close = tx_close,
};

int fragi_remote_tx_create(struct fragi_remote_endpoint *endpoint,
			   const struct fragi_edge_config *config, struct fragi_flow_row *row,
			   struct fragi_tx **out_tx)
{
	struct fragi_remote_tx *tx = fragi_aligned_alloc(64, sizeof(*tx));
	int r;

	if (tx == NULL)
		return -ENOMEM;
	memset(tx, 0, sizeof(*tx));
	tx->policy = fragi_policy(config->policy);
	tx->tx.ops = &tx_ops;
	tx->tx.row = row;
	tx->kick.fn = on_kick;
	tx->window.messages = config->window_messages;
	tx->window.bytes = config->window_bytes;
	tx->under_way_max = most_under_way(endpoint, config->window_messages);
	r = fragi_queue_init(
		&tx->pending,
		tx->policy->capacity != 0 ? tx->policy->capacity : config->window_messages, 0);
	if (r < 0)
		goto err_free;
	r = fragi_remote_edge_add(endpoint, &tx->edge, config, true);
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

void fragi_remote_tx_silence(struct fragi_remote_tx *tx)
{
	tx->tx.room.fn = NULL;
	fragi_streams_settle(tx->copies);
}

void fragi_remote_tx_free(struct fragi_remote_tx *tx)
{
	assert(atomic_load(&tx->awaiting) == 0 && !atomic_load(&tx->kicked));
	drop_pending(tx, FRAGI_DROP_STOPPED);
	fragi_remote_sends_detach(tx->edge.endpoint, tx);
	fragi_remote_edge_remove(&tx->edge);
	fragi_remote_layout_forget(&tx->layout);
	fragi_queue_fini(&tx->pending);
	fragi_streams_free(tx->copies);
	fragi_free(tx);
}
