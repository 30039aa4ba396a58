/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_WINDOW_H
#define FRAGI_WINDOW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * The window of an edge between hosts: how much may be under way, counted in messages and in bytes
 * of credit, and when the receiver gives credit back. No I/O: who uses it carries the messages.
 * Everything is a total since the edge was made, so that credit which arrives says all that credit
 * before it said, and what is under way is a difference.
 *
 * A message larger than the window of bytes travels alone. Under block and fault the operator's own
 * count keeps what waits at the sender and what is under way together within the window.
 *
 * Each half belongs to one host. There the *operator* and the *holder* of the progress lock may be
 * two threads; each field is written by one of them.
 */
struct fragi_window_tx {
	uint64_t messages, bytes; /* the window; constant */
	/* the operator's; who looks at the operator reads them */
	_Atomic uint64_t posted, posted_bytes;
	/* the holder's; the operator reads them */
	_Alignas(64) _Atomic uint64_t credited, credited_bytes;
	/* the holder's */
	uint64_t sent, sent_bytes;
	uint64_t dropped, dropped_bytes; /* posted for the present receiver, and never sent */
	bool wanted; /* the receiver knows that bytes of credit are waited for */
};

struct fragi_window_rx {
	uint64_t messages, bytes; /* the window; constant */
	/* of who consumes: the operator, or the holder */
	_Alignas(64) _Atomic uint64_t consumed, consumed_bytes;
	/* the holder's; the operator reads them */
	_Alignas(64) _Atomic uint64_t returned, returned_bytes;
	_Atomic bool wanted; /* the sender waits for bytes */
	/* the holder's */
	uint64_t accepted, accepted_bytes; /* of what has begun to arrive */
};

/* The sending operator. */

/*
 * How many messages may be posted now. A second one may whatever its size: it is made, and copied
 * from its GPU, while the first is under way.
 */
static inline uint64_t fragi_window_room(const struct fragi_window_tx *w)
{
	uint64_t messages = atomic_load_explicit(&w->posted, memory_order_relaxed) -
			    atomic_load_explicit(&w->credited, memory_order_acquire);
	uint64_t bytes = atomic_load_explicit(&w->posted_bytes, memory_order_relaxed) -
			 atomic_load_explicit(&w->credited_bytes, memory_order_relaxed);

	return messages >= w->messages || (bytes >= w->bytes && messages > 1)
		       ? 0
		       : w->messages - messages;
}

/* Returns false, and counts nothing, when the window has no room for another message. */
static inline bool fragi_window_post(struct fragi_window_tx *w, uint64_t bytes)
{
	uint64_t posted = atomic_load_explicit(&w->posted, memory_order_relaxed);
	uint64_t posted_bytes = atomic_load_explicit(&w->posted_bytes, memory_order_relaxed);

	if (posted - atomic_load_explicit(&w->credited, memory_order_acquire) >= w->messages)
		return false;
	atomic_store_explicit(&w->posted, posted + 1, memory_order_relaxed);
	atomic_store_explicit(&w->posted_bytes, posted_bytes + bytes, memory_order_relaxed);
	return true;
}

/* The sending holder. */

/* Whether another message may leave, if its bytes fit. */
static inline bool fragi_window_is_open(const struct fragi_window_tx *w)
{
	return w->sent - atomic_load_explicit(&w->credited, memory_order_relaxed) < w->messages;
}

static inline bool fragi_window_fits(const struct fragi_window_tx *w, uint64_t bytes)
{
	uint64_t under_way =
		w->sent_bytes - atomic_load_explicit(&w->credited_bytes, memory_order_relaxed);

	return w->sent == atomic_load_explicit(&w->credited, memory_order_relaxed) ||
	       under_way + bytes <= w->bytes;
}

/* A message does not fit. Returns whether to tell the receiver; once is enough. */
static inline bool fragi_window_want(struct fragi_window_tx *w)
{
	bool was_wanted = w->wanted;

	w->wanted = true;
	return !was_wanted;
}

static inline void fragi_window_spend(struct fragi_window_tx *w, uint64_t bytes)
{
	w->wanted = false;
	w->sent++;
	w->sent_bytes += bytes;
}

/*
 * What was posted will not be sent: this receiver takes no more. The window lacks it until the next
 * one.
 */
static inline void fragi_window_drop(struct fragi_window_tx *w, uint64_t bytes)
{
	w->dropped++;
	w->dropped_bytes += bytes;
}

/* Credit has arrived. Returns false for what was never sent, or was given back before. */
static inline bool fragi_window_credit(struct fragi_window_tx *w, uint64_t messages, uint64_t bytes)
{
	if (messages > w->sent ||
	    messages < atomic_load_explicit(&w->credited, memory_order_relaxed) ||
	    bytes > w->sent_bytes ||
	    bytes < atomic_load_explicit(&w->credited_bytes, memory_order_relaxed))
		return false;
	/* Bytes first: who sees the messages come back sees the bytes too. */
	atomic_store_explicit(&w->credited_bytes, bytes, memory_order_relaxed);
	atomic_store_explicit(&w->credited, messages, memory_order_release);
	return true;
}

/*
 * The receiver is another one, which has all its credit to give: what was sent to the one before is
 * written off, and what was dropped counts as sent. The totals go on, so that the operator, who
 * counts what it posts, need not know. Returns how many were dropped.
 */
static inline uint64_t fragi_window_restart_tx(struct fragi_window_tx *w)
{
	const uint64_t dropped = w->dropped;

	w->wanted = false;
	w->sent += dropped;
	w->sent_bytes += w->dropped_bytes;
	w->dropped = w->dropped_bytes = 0;
	atomic_store_explicit(&w->credited_bytes, w->sent_bytes, memory_order_relaxed);
	atomic_store_explicit(&w->credited, w->sent, memory_order_release);
	return dropped;
}

/* The receiving holder. */

/*
 * The sender is another one, which has the whole window, though what came of the one before, up to
 * these totals, may not be consumed yet.
 */
static inline void fragi_window_restart_rx(struct fragi_window_rx *w, uint64_t messages,
					   uint64_t bytes)
{
	w->accepted = messages;
	w->accepted_bytes = bytes;
	atomic_store_explicit(&w->wanted, false, memory_order_relaxed);
	atomic_store_explicit(&w->returned, messages, memory_order_relaxed);
	atomic_store_explicit(&w->returned_bytes, bytes, memory_order_relaxed);
}

/* Whether one more message may be delivered: the queue of the receiver has a place for it. */
static inline bool fragi_window_has_place(const struct fragi_window_rx *w, uint64_t delivered)
{
	return delivered - atomic_load_explicit(&w->consumed, memory_order_acquire) < w->messages;
}

/*
 * Whether the sender had credit for the message of that number; those before it may still be on
 * their way.
 */
static inline bool fragi_window_covers(const struct fragi_window_rx *w, uint64_t sequence)
{
	return sequence - atomic_load_explicit(&w->returned, memory_order_relaxed) < w->messages;
}

/*
 * A message begins to arrive. Returns false, and counts nothing, when the sender had no credit for
 * its bytes.
 */
static inline bool fragi_window_accept(struct fragi_window_rx *w, uint64_t bytes)
{
	uint64_t under_way =
		w->accepted_bytes - atomic_load_explicit(&w->returned_bytes, memory_order_relaxed);

	if (w->accepted != atomic_load_explicit(&w->returned, memory_order_relaxed) &&
	    under_way + bytes > w->bytes)
		return false;
	w->accepted++;
	w->accepted_bytes += bytes;
	return true;
}

/* Who consumes. */

static inline void fragi_window_consume(struct fragi_window_rx *w, uint64_t bytes)
{
	uint64_t consumed = atomic_load_explicit(&w->consumed, memory_order_relaxed);
	uint64_t before = atomic_load_explicit(&w->consumed_bytes, memory_order_relaxed);

	atomic_store_explicit(&w->consumed_bytes, before + bytes, memory_order_relaxed);
	atomic_store_explicit(&w->consumed, consumed + 1, memory_order_release);
}

/* All up to these totals, which lie behind what was consumed before. */
static inline void fragi_window_consume_to(struct fragi_window_rx *w, uint64_t messages,
					   uint64_t bytes)
{
	atomic_store_explicit(&w->consumed_bytes, bytes, memory_order_relaxed);
	atomic_store_explicit(&w->consumed, messages, memory_order_release);
}

/* Below 0 until what a sender that is gone had sent is consumed: nobody waits for that. */
static inline int64_t fragi_window_owed(const struct fragi_window_rx *w)
{
	return (int64_t)(atomic_load_explicit(&w->consumed, memory_order_relaxed) -
			 atomic_load_explicit(&w->returned, memory_order_relaxed));
}

/* Whether half a window of messages is owed: smaller batches would cost as much as the data. */
static inline bool fragi_window_owes_batch(const struct fragi_window_rx *w)
{
	return fragi_window_owed(w) * 2 >= (int64_t)w->messages;
}

/*
 * Whether credit is to go back at once. While nothing more is queued (messages that arrived and are
 * not consumed) a batch is no hurry: the sender has the other half of its window, and the answer
 * that the operator is perhaps about to send would wait behind the credit, which it can carry.
 * Bytes are in a hurry when there are half as many as the window, or the sender waits for them.
 */
static inline bool fragi_window_is_due(const struct fragi_window_rx *w, uint64_t queued)
{
	uint64_t arrived = (uint64_t)fragi_window_owed(w) + queued;
	int64_t bytes = (int64_t)(atomic_load_explicit(&w->consumed_bytes, memory_order_relaxed) -
				  atomic_load_explicit(&w->returned_bytes, memory_order_relaxed));

	return (fragi_window_owes_batch(w) &&
		(arrived > w->messages - w->messages / 2 || arrived >= w->messages)) ||
	       bytes * 2 >= (int64_t)w->bytes ||
	       atomic_load_explicit(&w->wanted, memory_order_relaxed);
}

/* The receiving holder. */

static inline bool fragi_window_owes(const struct fragi_window_rx *w)
{
	return (int64_t)(atomic_load_explicit(&w->consumed, memory_order_acquire) -
			 atomic_load_explicit(&w->returned, memory_order_relaxed)) > 0;
}

/* The sender has less than half of its window left, or waits for bytes. */
static inline bool fragi_window_sender_may_wait(const struct fragi_window_rx *w)
{
	uint64_t messages = w->accepted - atomic_load_explicit(&w->returned, memory_order_relaxed);
	uint64_t bytes =
		w->accepted_bytes - atomic_load_explicit(&w->returned_bytes, memory_order_relaxed);

	return atomic_load_explicit(&w->wanted, memory_order_relaxed) ||
	       messages * 2 >= w->messages || bytes * 2 >= w->bytes;
}

/* Takes what is owed as given back; the caller sends these totals. */
static inline void fragi_window_give_back(struct fragi_window_rx *w, uint64_t *out_messages,
					  uint64_t *out_bytes)
{
	/* The bytes may be newer than the messages: never more than what has begun to arrive. */
	uint64_t messages = atomic_load_explicit(&w->consumed, memory_order_acquire);
	uint64_t bytes = atomic_load_explicit(&w->consumed_bytes, memory_order_relaxed);

	if (messages == w->accepted)
		atomic_store_explicit(&w->wanted, false, memory_order_relaxed);
	atomic_store_explicit(&w->returned, messages, memory_order_relaxed);
	atomic_store_explicit(&w->returned_bytes, bytes, memory_order_relaxed);
	*out_messages = messages;
	*out_bytes = bytes;
}

#endif
