// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <base/alloc.h>
#include <edge/edge.h>

/*
 * Drops are rare, and some can happen on both sides (a close against a push): these counters are
 * added to atomically. Release, as for `delivered`: who has seen this drop sees the send before it.
 */
static void drop(struct fragi_rx *rx, struct frag_message *message, enum fragi_drop reason,
		 bool by_taker)
{
	struct fragi_flow_row *row = rx->row;
	_Atomic uint64_t *counter =
		by_taker || rx->between_hosts ? &row->rx_dropped[reason] : &row->tx_dropped[reason];

	atomic_fetch_add_explicit(counter, 1, memory_order_release);
	fragi_message_unref(message);
}

static void drain(struct fragi_rx *rx, enum fragi_drop reason)
{
	struct frag_message *message;
	uint64_t stamp;

	while ((message = fragi_queue_take_shared(&rx->queue, &stamp)) != NULL)
		drop(rx, message, reason, true);
}

static const struct fragi_notify nobody;

int fragi_rx_init(struct fragi_rx *rx, uint32_t capacity, enum frag_policy policy,
		  struct fragi_flow_row *row)
{
	int r;

	memset(rx, 0, sizeof(*rx));
	rx->policy = fragi_policy(policy);
	r = fragi_queue_init(&rx->queue,
			     rx->policy->capacity != 0 ? rx->policy->capacity : capacity,
			     rx->policy->drops_oldest ? 1 : 0);
	if (r < 0)
		return r;
	rx->taken = &nobody;
	rx->row = row;
	fragi_hist_give_buckets(&row->latency);
	rx->blocking = rx->policy->blocking;
	rx->shared = rx->policy->drops_oldest;
	return 0;
}

void fragi_rx_fini(struct fragi_rx *rx)
{
	if (rx->queue.slots == NULL)
		return;
	drain(rx, atomic_load_explicit(&rx->queue.receiver_closed, memory_order_relaxed)
			  ? FRAGI_DROP_RECEIVER_DONE
			  : FRAGI_DROP_STOPPED);
	fragi_queue_fini(&rx->queue);
}

/* Drops the new message, for which there is no room. Returns what the policy reports then. */
static __attribute__((noinline)) int refuse(struct fragi_rx *rx, struct frag_message *message)
{
	drop(rx, message, rx->policy->full_error != 0 ? FRAGI_DROP_NO_ROOM : FRAGI_DROP_QUEUE_FULL,
	     false);
	return rx->policy->full_error;
}

int fragi_rx_push(struct fragi_rx *rx, struct frag_message *message, uint64_t stamp)
{
	struct fragi_flow_row *row = rx->row;
	struct frag_message *oldest;
	bool is_full;

	fragi_message_share(message);
	if (rx->between_hosts) {
		fragi_count(&row->arrived, 1);
	} else {
		if (atomic_load_explicit(&row->sent, memory_order_relaxed) == 0)
			atomic_store_explicit(&row->first_ns, (uint64_t)fragi_now_ns(),
					      memory_order_relaxed);
		/*
		 * Before the message can be delivered: who reads delivered before sent never sees
		 * more of it.
		 */
		fragi_count(&row->bytes, fragi_message_bytes(message));
		fragi_count(&row->sent, 1);
	}
	if (atomic_load_explicit(&rx->queue.receiver_closed, memory_order_relaxed)) {
		drop(rx, message, FRAGI_DROP_RECEIVER_DONE, false);
		return 0;
	}
	is_full = fragi_queue_is_full(&rx->queue);
	if (is_full && !rx->policy->drops_oldest)
		return refuse(rx, message);
	fragi_queue_push(&rx->queue, message, stamp);
	/*
	 * Only now does the oldest one go: a receiver that has seen a message, and is ticked for
	 * it, always finds one.
	 */
	oldest = is_full ? fragi_queue_take_excess(&rx->queue) : NULL;
	if (oldest != NULL)
		drop(rx, oldest, FRAGI_DROP_QUEUE_FULL, false);
	if (__builtin_expect(fragi_queue_is_closed(&rx->queue), 0))
		fragi_rx_drop_all(rx);
	return 0;
}

void fragi_rx_drop_all(struct fragi_rx *rx)
{
	drain(rx, FRAGI_DROP_RECEIVER_DONE);
}

void fragi_rx_sender_close(struct fragi_rx *rx)
{
	atomic_store_explicit(&rx->queue.sender_closed, true, memory_order_release);
}

struct frag_message *fragi_rx_take(struct fragi_rx *rx, uint64_t now)
{
	uint64_t stamp;
	struct frag_message *message = fragi_rx_is_shared(rx)
					       ? fragi_queue_take_shared(&rx->queue, &stamp)
					       : fragi_queue_take(&rx->queue, &stamp);

	if (message == NULL)
		return NULL;
	fragi_rx_count(rx, stamp, now);
	fragi_notify_call(rx->taken);
	return message;
}

void fragi_rx_settle(struct fragi_rx *rx, uint64_t stamp, uint64_t now)
{
	fragi_rx_count(rx, stamp, now);
	fragi_notify_call(rx->taken);
}

void fragi_rx_drop(struct fragi_rx *rx, struct frag_message *message, enum fragi_drop reason)
{
	drop(rx, message, reason, true);
	fragi_notify_call(rx->taken);
}

void fragi_rx_drop_last(struct fragi_rx *rx, struct frag_message *message, enum fragi_drop reason)
{
	drop(rx, message, reason, true);
}

static void rx_close(struct fragi_rx *rx, enum fragi_drop reason)
{
	if (atomic_load_explicit(&rx->queue.receiver_closed, memory_order_relaxed))
		return;
	fragi_queue_close_receiver(&rx->queue);
	drain(rx, reason);
	if (rx->closed != NULL)
		rx->closed(rx);
}

void fragi_rx_close(struct fragi_rx *rx)
{
	rx_close(rx, FRAGI_DROP_RECEIVER_DONE);
}

void fragi_rx_stop(struct fragi_rx *rx)
{
	rx_close(rx, FRAGI_DROP_STOPPED);
}

/* The kind inproc. */
struct inproc {
	struct fragi_tx tx;
	struct fragi_rx rx;
};

static inline struct inproc *inproc_of(const struct fragi_tx *tx)
{
	return (struct inproc *)((char *)(uintptr_t)tx - offsetof(struct inproc, tx));
}

static int inproc_send(struct fragi_tx *tx, struct frag_message *message, uint64_t stamp)
{
	struct fragi_rx *rx = &inproc_of(tx)->rx;
	int r = fragi_rx_push(rx, message, stamp);

	if (r == 0)
		fragi_notify_call(&rx->arrival);
	return r;
}

static uint32_t inproc_room(const struct fragi_tx *tx)
{
	const struct fragi_rx *rx = &inproc_of(tx)->rx;
	uint32_t count;

	if (!fragi_rx_blocks(rx) || atomic_load_explicit(&tx->receiver_done, memory_order_acquire))
		return FRAGI_ROOM_UNLIMITED;
	count = fragi_queue_count(&rx->queue);
	return count < rx->queue.capacity ? rx->queue.capacity - count : 0;
}

static void inproc_close(struct fragi_tx *tx)
{
	struct fragi_rx *rx = &inproc_of(tx)->rx;

	fragi_rx_sender_close(rx);
	fragi_notify_call(&rx->arrival);
}

static void inproc_closed(struct fragi_rx *rx)
{
	struct inproc *edge = (struct inproc *)(void *)((char *)rx - offsetof(struct inproc, rx));

	atomic_store_explicit(&edge->tx.receiver_done, true, memory_order_release);
	fragi_notify_call(&edge->tx.room);
}

static const struct fragi_tx_ops inproc_tx_ops = {
	.send = inproc_send,
	.room = inproc_room,
	.close = inproc_close,
};

int fragi_inproc_create(uint32_t capacity, enum frag_policy policy, struct fragi_flow_row *row,
			struct fragi_tx **out_tx, struct fragi_rx **out_rx)
{
	struct inproc *edge = fragi_aligned_alloc(64, sizeof(*edge));
	int r;

	if (edge == NULL)
		return -ENOMEM;
	memset(edge, 0, sizeof(*edge));
	r = fragi_rx_init(&edge->rx, capacity, policy, row);
	if (r < 0) {
		fragi_free(edge);
		return r;
	}
	edge->tx.ops = &inproc_tx_ops;
	edge->tx.row = row;
	edge->tx.rx = &edge->rx;
	if (fragi_rx_blocks(&edge->rx))
		edge->rx.taken = &edge->tx.room;
	edge->rx.closed = inproc_closed;
	*out_tx = &edge->tx;
	*out_rx = &edge->rx;
	return 0;
}

void fragi_inproc_destroy(struct fragi_tx *tx)
{
	struct inproc *edge;

	if (tx == NULL)
		return;
	edge = inproc_of(tx);
	fragi_rx_fini(&edge->rx);
	fragi_free(edge);
}
