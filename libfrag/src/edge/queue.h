/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_EDGE_QUEUE_H
#define FRAGI_EDGE_QUEUE_H

#include <base/policy.h>
#include <data/message.h>

/*
 * A bounded queue of messages between one pushing and one taking side. Each side moves its own
 * index with plain loads and stores; where the pushing side also takes (pop: the oldest makes
 * room), the head is moved by compare-and-swap and the slot is read before it, so that a lost race
 * is a retry. Indices are 64 bits and never repeat.
 */
struct fragi_slot {
	_Atomic(struct frag_message *) message;
	_Atomic uint64_t stamp; /* of the emit, in this process's stamps; 0: not known */
};

struct fragi_queue {
	/* constant, but for the flag that is written once */
	struct fragi_slot *slots;
	uint64_t mask;
	uint32_t capacity;
	_Atomic bool receiver_closed;
	/* the pushing side */
	_Alignas(64) _Atomic uint64_t tail;
	_Atomic bool sender_closed;
	/* the taking side */
	_Alignas(64) _Atomic uint64_t head;
};

/*
 * Returns 0, -EINVAL or -ENOMEM.
 * - capacity: 1 .. FRAGI_CAPACITY_MAX
 * - spare: slots beyond it, for a side that pushes into a full queue and then drops the oldest
 *   message (fragi_queue_take_excess): 1, else 0
 */
FRAGI_API int fragi_queue_init(struct fragi_queue *queue, uint32_t capacity, uint32_t spare);
/* Frees the slots; the queue must be empty. */
FRAGI_API void fragi_queue_fini(struct fragi_queue *queue);
/*
 * Marks the queue closed by its receiver so that every push on another thread either sees the mark
 * or is seen by the caller's next look at the queue. The pushing side pays nothing for that.
 */
FRAGI_API void fragi_queue_close_receiver(struct fragi_queue *queue);

static inline uint32_t fragi_queue_count(const struct fragi_queue *queue)
{
	uint64_t head = atomic_load_explicit(&queue->head, memory_order_acquire);

	return (uint32_t)(atomic_load_explicit(&queue->tail, memory_order_acquire) - head);
}

/* Taking side: the stamp of the oldest message. Returns false: empty. */
static inline bool fragi_queue_oldest(const struct fragi_queue *queue, uint64_t *out_stamp)
{
	uint64_t head = atomic_load_explicit(&queue->head, memory_order_acquire), seen;

	do {
		seen = head;
		if (atomic_load_explicit(&queue->tail, memory_order_acquire) == head)
			return false;
		*out_stamp = atomic_load_explicit(&queue->slots[head & queue->mask].stamp,
						  memory_order_acquire);
		/* Where the pushing side drops the oldest one, the slot may hold another now. */
		head = atomic_load_explicit(&queue->head, memory_order_acquire);
	} while (head != seen);
	return true;
}

/* Pushing side. */
static inline bool fragi_queue_is_full(const struct fragi_queue *queue)
{
	uint64_t tail = atomic_load_explicit(&queue->tail, memory_order_relaxed);

	return tail - atomic_load_explicit(&queue->head, memory_order_acquire) >= queue->capacity;
}

/* Pushing side, when the queue is not full, or has a spare slot. */
static inline void fragi_queue_push(struct fragi_queue *queue, struct frag_message *message,
				    uint64_t stamp)
{
	uint64_t tail = atomic_load_explicit(&queue->tail, memory_order_relaxed);
	struct fragi_slot *slot = &queue->slots[tail & queue->mask];

	atomic_store_explicit(&slot->message, message, memory_order_relaxed);
	atomic_store_explicit(&slot->stamp, stamp, memory_order_relaxed);
	atomic_store_explicit(&queue->tail, tail + 1, memory_order_release);
}

/* Pushing side, after a push: fragi_queue_close_receiver pairs with the order of these two. */
static inline bool fragi_queue_is_closed(const struct fragi_queue *queue)
{
	atomic_signal_fence(memory_order_seq_cst);
	return atomic_load_explicit(&queue->receiver_closed, memory_order_acquire);
}

/* Taking side, when only it takes. NULL: empty. */
static inline struct frag_message *fragi_queue_take(struct fragi_queue *queue, uint64_t *out_stamp)
{
	uint64_t head = atomic_load_explicit(&queue->head, memory_order_relaxed);
	struct fragi_slot *slot = &queue->slots[head & queue->mask];
	struct frag_message *message;

	if (atomic_load_explicit(&queue->tail, memory_order_acquire) == head)
		return NULL;
	message = atomic_load_explicit(&slot->message, memory_order_relaxed);
	if (message == NULL)
		__builtin_unreachable(); /* callers that inline this need no check */
	*out_stamp = atomic_load_explicit(&slot->stamp, memory_order_relaxed);
	atomic_store_explicit(&queue->head, head + 1, memory_order_release);
	return message;
}

/* Taking side, when only it takes: the oldest message, which stays. NULL: empty. */
static inline const struct frag_message *fragi_queue_first(const struct fragi_queue *queue)
{
	uint64_t head = atomic_load_explicit(&queue->head, memory_order_relaxed);

	if (atomic_load_explicit(&queue->tail, memory_order_acquire) == head)
		return NULL;
	return atomic_load_explicit(&queue->slots[head & queue->mask].message,
				    memory_order_relaxed);
}

/* Either side, when both may take. NULL: empty. */
FRAGI_API struct frag_message *fragi_queue_take_shared(struct fragi_queue *queue,
						       uint64_t *out_stamp);
/* Pushing side, when both may take: the oldest message if there are more than the capacity. */
FRAGI_API struct frag_message *fragi_queue_take_excess(struct fragi_queue *queue);

#endif
