/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_EDGE_EDGE_H
#define FRAGI_EDGE_EDGE_H

#include <base/notify.h>
#include <edge/ledger.h>
#include <edge/queue.h>
#include <frag/operator.h>

/*
 * An edge is a flow at run time: a sending end (tx) and a receiving end (rx). Whatever lies between, the
 * receiving end is a queue of `capacity` messages that the receiving operator takes from, and the sending end
 * an ops table. inproc: tx pushes into rx. ucx: tx encodes and sends, the transport pushes into the other
 * process's rx.
 *
 * One thread at a time sends on a tx, one at a time takes from an rx (the operators' threads, ordered by the
 * scheduler); under pop and latest the pushing side also takes, so the head is moved by compare-and-swap
 * there.
 */
struct fragi_rx;
struct fragi_rx_ops {
	void (*taken)(struct fragi_rx *rx);  /* one message was taken; NULL: nobody cares */
	void (*closed)(struct fragi_rx *rx); /* the receiver has closed this end */
};

struct fragi_rx {
	/* constant once wired */
	const struct fragi_rx_ops *ops; /* NULL: nobody cares */
	struct fragi_notify
		arrival; /* the receiving operator: a message, or the sender's close; fn may be NULL */
	struct fragi_flow_row *row;
	enum frag_policy policy; /* LATEST is held as POP */
	bool between_hosts;      /* pushed by a transport: the receiver's half of the row counts alone */
	void *peer;              /* of ops */
	struct fragi_queue queue;
};

/* Returns 0, -EINVAL for a capacity that cannot be, or -ENOMEM. LATEST is POP with a capacity of 1. */
FRAGI_API int fragi_rx_init(struct fragi_rx *rx, uint32_t capacity, enum frag_policy policy,
			    struct fragi_flow_row *row);
/* Counts what is still queued as dropped (receiver_done if the receiver closed, else stopped) and frees the
 * queue. */
FRAGI_API void fragi_rx_fini(struct fragi_rx *rx);
/*
 * Pushing side. Takes the message in every case. stamp: of the emit; 0 when it is not known: no latency is
 * recorded then. 0: queued, or dropped as the policy says (counted);
 * -ENOBUFS: full under block, -EOVERFLOW: full under fault (both counted dropped, no_room). Does not notify.
 */
FRAGI_API int fragi_rx_push(struct fragi_rx *rx, struct frag_message *message, uint64_t stamp);
/* Pushing side: no more messages will come. Call arrival after it. */
FRAGI_API void fragi_rx_sender_close(struct fragi_rx *rx);
/*
 * Taking side: the oldest message, NULL when empty; counts it delivered with the latency up to now (a stamp)
 * and calls taken.
 */
FRAGI_API struct frag_message *fragi_rx_take(struct fragi_rx *rx, uint64_t now);
/* Taking side: closes; what is queued and what still comes is dropped, receiver_done. */
FRAGI_API void fragi_rx_close(struct fragi_rx *rx);
/* The same when the whole is being stopped: what is queued is dropped, stopped. */
FRAGI_API void fragi_rx_stop(struct fragi_rx *rx);

static inline uint32_t fragi_rx_available(const struct fragi_rx *rx)
{
	return fragi_queue_count(&rx->queue);
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
	const char *name; /* "inproc", "ucx" */
	/*
	 * As fragi_rx_push, and tells the receiver. Also -EMSGSIZE beyond the edge's limit, -EPROTOTYPE
	 * without a codec, -ENOMEM; these are not counted as sent.
	 */
	int (*send)(struct fragi_tx *tx, struct frag_message *message, uint64_t stamp);
	/*
	 * How many messages send would take now without a drop; FRAGI_ROOM_UNLIMITED under pop, reject and
	 * latest, and when the receiver is done. Thread: the sending operator's, or the scheduler's
	 * evaluating it.
	 */
	uint32_t (*room)(const struct fragi_tx *tx);
	/* No more messages; the close arrives after the last one. Once. */
	void (*close)(struct fragi_tx *tx);
};

struct fragi_tx {
	const struct fragi_tx_ops *ops;
	struct fragi_notify room; /* the sending operator: there is room again, or the receiver is done;
				     fn may be NULL */
	struct fragi_flow_row *row;
	/* inproc under block and fault: the receiver's queue, for who wants to see its room without a call */
	const struct fragi_queue *queue;
	_Atomic bool receiver_done;
};

/*
 * The kind inproc: both ends in this process. tx and rx live in one allocation until fragi_inproc_destroy,
 * after all threads have let go. Returns 0 or -ENOMEM.
 */
FRAGI_API int fragi_inproc_create(uint32_t capacity, enum frag_policy policy, struct fragi_flow_row *row,
				  struct fragi_tx **out_tx, struct fragi_rx **out_rx);
FRAGI_API void fragi_inproc_destroy(struct fragi_tx *tx);

#endif
