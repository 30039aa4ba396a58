/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_EDGE_EDGE_H
#define FRAGI_EDGE_EDGE_H

#include <base/notify.h>
#include <base/policy.h>
#include <base/stamp.h>
#include <edge/ledger.h>
#include <edge/queue.h>
#include <frag/operator.h>

/*
 * An edge is a flow at run time: a sending end (tx) and a receiving end (rx). Whatever lies
 * between, the receiving end is a queue of `capacity` messages that the receiving operator takes
 * from, and the sending end an ops table. inproc: tx pushes into rx. remote: tx encodes and sends,
 * the other host's protocol pushes into its rx.
 *
 * One thread at a time sends on a tx, one at a time takes from an rx (the operators' threads,
 * ordered by the scheduler); where the policy drops the oldest message the pushing side also takes,
 * so the head is moved by compare-and-swap there.
 */
struct fragi_rx {
	/* constant once wired */
	struct fragi_notify arrival; /* the receiving operator: a message, or the sender's close */
	const struct fragi_notify *taken; /* called after a message was taken; NULL: nobody */
	struct fragi_rx *after;           /* the flow whose turn is next; itself if it is alone */
	struct fragi_flow_row *row;
	const struct fragi_policy *policy;
	bool blocking, shared; /* the policy's blocking and drops_oldest */
	bool between_hosts; /* pushed by a transport: the receiver's half of the row counts alone */
	/* of the flows of its cycle together, in messages; 0: it is part of no cycle */
	uint32_t cycle_capacity;
	/* the receiver has closed this end; NULL: nobody cares */
	void (*closed)(struct fragi_rx *rx);
	struct fragi_queue queue;
};

/*
 * Returns 0, -EINVAL for a capacity that cannot be, or -ENOMEM. A policy with a capacity of its own
 * keeps that.
 */
FRAGI_API int fragi_rx_init(struct fragi_rx *rx, uint32_t capacity, enum frag_policy policy,
			    struct fragi_flow_row *row);
/*
 * Counts what is still queued as dropped (receiver_done if the receiver closed, else stopped) and
 * frees the queue.
 */
FRAGI_API void fragi_rx_fini(struct fragi_rx *rx);
/*
 * Pushing side. Takes the message in every case. stamp: of the emit; 0 when it is not known: no
 * latency is recorded then. 0: queued, or dropped as the policy says (counted); -ENOBUFS: full
 * under block, -EOVERFLOW: full under fault (both counted dropped, no_room). Does not notify.
 */
FRAGI_API int fragi_rx_push(struct fragi_rx *rx, struct frag_message *message, uint64_t stamp);
/* Either side, once the receiver has closed: drops what is queued, receiver_done. */
FRAGI_API void fragi_rx_drop_all(struct fragi_rx *rx);
/* Pushing side: no more messages will come. Call arrival after it. */
FRAGI_API void fragi_rx_sender_close(struct fragi_rx *rx);
/* Taking side: closes; what is queued and what still comes is dropped, receiver_done. */
FRAGI_API void fragi_rx_close(struct fragi_rx *rx);
/* The same when the whole is being stopped: what is queued is dropped, stopped. */
FRAGI_API void fragi_rx_stop(struct fragi_rx *rx);

/* Taking side: counts a message delivered, with the latency from its stamp up to now. */
static inline void fragi_rx_count(struct fragi_rx *rx, uint64_t stamp, uint64_t now)
{
	struct fragi_flow_row *row = rx->row;

	if (stamp != 0)
		fragi_hist_add(&row->latency, fragi_stamp_diff_ns(stamp, now));
	/* Release: who has seen this delivery sees the sends before it. */
	atomic_store_explicit(&row->delivered,
			      atomic_load_explicit(&row->delivered, memory_order_relaxed) + 1,
			      memory_order_release);
}

/* The pushing side takes too. */
static inline bool fragi_rx_is_shared(const struct fragi_rx *rx)
{
	return rx->shared;
}

/* Taking side: the oldest message, delivered at the stamp now; NULL when empty. */
FRAGI_API struct frag_message *fragi_rx_take(struct fragi_rx *rx, uint64_t now);
/* The same of one that is not shared; it is the caller's to tell rx->taken of it. */
static inline __attribute__((always_inline)) struct frag_message *
fragi_rx_take_alone(struct fragi_rx *rx, uint64_t now)
{
	uint64_t stamp;
	struct frag_message *message = fragi_queue_take(&rx->queue, &stamp);

	if (message != NULL)
		fragi_rx_count(rx, stamp, now);
	return message;
}

/*
 * Taking side: takes the oldest message and settles it later, by fragi_rx_settle or fragi_rx_drop:
 * until then it is in flight, and the sender does not learn of it. NULL when empty.
 */
static inline struct frag_message *fragi_rx_hold(struct fragi_rx *rx, uint64_t *out_stamp)
{
	return fragi_rx_is_shared(rx) ? fragi_queue_take_shared(&rx->queue, out_stamp)
				      : fragi_queue_take(&rx->queue, out_stamp);
}
/* Taking side: a message that is held is delivered at the stamp now. */
FRAGI_API void fragi_rx_settle(struct fragi_rx *rx, uint64_t stamp, uint64_t now);
/* Taking side: a message that is held is dropped. Takes it. */
FRAGI_API void fragi_rx_drop(struct fragi_rx *rx, struct frag_message *message,
			     enum fragi_drop reason);
/* The same of an input that closes next, which tells the sender of all that is dropped with it. */
FRAGI_API void fragi_rx_drop_last(struct fragi_rx *rx, struct frag_message *message,
				  enum fragi_drop reason);

static inline uint32_t fragi_rx_available(const struct fragi_rx *rx)
{
	return fragi_queue_count(&rx->queue);
}
/* A full queue is one to wait for. */
static inline bool fragi_rx_blocks(const struct fragi_rx *rx)
{
	return rx->blocking;
}
/* Closed by the sender and empty: nothing will ever come. */
static inline bool fragi_rx_is_finished(const struct fragi_rx *rx)
{
	return atomic_load_explicit(&rx->queue.sender_closed, memory_order_acquire) &&
	       fragi_rx_available(rx) == 0;
}

#define FRAGI_ROOM_UNLIMITED UINT32_MAX

struct fragi_tx;
struct fragi_tx_ops {
	/*
	 * As fragi_rx_push, and tells the receiver. Also -EMSGSIZE beyond the edge's limit,
	 * -EPROTOTYPE without a codec, -ENOMEM; these are not counted as sent.
	 */
	int (*send)(struct fragi_tx *tx, struct frag_message *message, uint64_t stamp);
	/*
	 * How many messages send would take now without a drop; FRAGI_ROOM_UNLIMITED where the
	 * policy does not block, and when the receiver is done. Thread: the sending operator's, or
	 * the scheduler's evaluating it.
	 */
	uint32_t (*room)(const struct fragi_tx *tx);
	/* Whether its receiver's host is not there, or is to be replaced. NULL: it always is. */
	bool (*is_away)(const struct fragi_tx *tx);
	/* No more messages; the close arrives after the last one. Once, by fragi_tx_close. */
	void (*close)(struct fragi_tx *tx);
};

struct fragi_tx {
	const struct fragi_tx_ops *ops;
	/* the sending operator: there is room again, or the receiver is done */
	struct fragi_notify room;
	struct fragi_flow_row *row;
	/* inproc: the other end, for who goes there without a call; else NULL */
	struct fragi_rx *rx;
	uint32_t cycle_capacity; /* as the rx's */
	_Atomic bool receiver_done;
	_Atomic bool closed; /* close was called */
};

static inline void fragi_tx_close(struct fragi_tx *tx)
{
	atomic_store_explicit(&tx->closed, true, memory_order_release);
	tx->ops->close(tx);
}

/*
 * The short way of a message from a tx with an rx: as tx->ops->send, for one that is shared
 * already; bytes: its payload. Returns false, and has done nothing, in a case for the slow path:
 * call send.
 */
static inline __attribute__((always_inline)) bool
fragi_tx_pass(struct fragi_tx *tx, struct frag_message *message, uint64_t bytes, uint64_t stamp)
{
	struct fragi_rx *rx = tx->rx;
	struct fragi_flow_row *row = tx->row;
	uint64_t sent = atomic_load_explicit(&row->sent, memory_order_relaxed);

	if (__builtin_expect(sent == 0 || fragi_queue_is_full(&rx->queue), 0))
		return false;
	/*
	 * Before the message can be delivered: who reads delivered before sent never sees more of
	 * it.
	 */
	fragi_count(&row->bytes, bytes);
	atomic_store_explicit(&row->sent, sent + 1, memory_order_relaxed);
	fragi_queue_push(&rx->queue, message, stamp);
	if (__builtin_expect(fragi_queue_is_closed(&rx->queue), 0))
		fragi_rx_drop_all(rx);
	else
		fragi_notify_call(&rx->arrival);
	return true;
}

/*
 * The kind inproc: both ends in this process. tx and rx live in one allocation until
 * fragi_inproc_destroy, after all threads have let go. Returns 0 or -ENOMEM.
 */
FRAGI_API int fragi_inproc_create(uint32_t capacity, enum frag_policy policy,
				  struct fragi_flow_row *row, struct fragi_tx **out_tx,
				  struct fragi_rx **out_rx);
FRAGI_API void fragi_inproc_destroy(struct fragi_tx *tx);

#endif
