// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <errno.h>
#include <string.h>

#include <base/alloc.h>
#include <base/barrier.h>
#include <edge/queue.h>

int fragi_queue_init(struct fragi_queue *queue, uint32_t capacity, uint32_t spare)
{
	uint64_t slots = 1;

	if (capacity == 0 || capacity > FRAGI_CAPACITY_MAX)
		return -EINVAL;
	assert(spare <= 1);
	while (slots < (uint64_t)capacity + spare)
		slots *= 2;
	memset(queue, 0, sizeof(*queue));
	queue->slots = fragi_calloc((size_t)slots, sizeof(*queue->slots));
	if (queue->slots == NULL)
		return -ENOMEM;
	queue->mask = slots - 1;
	queue->capacity = capacity;
	return 0;
}

void fragi_queue_fini(struct fragi_queue *queue)
{
	assert(fragi_queue_count(queue) == 0 && "what was queued has an owner");
	fragi_free(queue->slots);
	queue->slots = NULL;
}

/*
 * A close must not miss a push that runs at the same time: the one stores its flag and looks at the
 * tail, the other stores the tail and looks at the flag, and without a fence on both sides each may
 * miss the other. A push happens a million times as often, so the close pays for both.
 */
void fragi_queue_close_receiver(struct fragi_queue *queue)
{
	atomic_store_explicit(&queue->receiver_closed, true, memory_order_release);
	/* Where it is refused, what was missed is counted when the queue ends. */
	(void)fragi_barrier_everywhere();
}

/* Takes the oldest message if there are more than `least`. */
static inline struct frag_message *take_beyond(struct fragi_queue *queue, uint64_t least,
					       uint64_t *out_stamp)
{
	uint64_t head = atomic_load_explicit(&queue->head, memory_order_acquire), stamp;
	struct frag_message *message;
	struct fragi_slot *slot;

	do {
		if (atomic_load_explicit(&queue->tail, memory_order_acquire) - head <= least)
			return NULL;
		slot = &queue->slots[head & queue->mask];
		message = atomic_load_explicit(&slot->message, memory_order_relaxed);
		stamp = atomic_load_explicit(&slot->stamp, memory_order_relaxed);
	} while (!atomic_compare_exchange_weak_explicit(
		&queue->head, &head, head + 1, memory_order_acq_rel, memory_order_acquire));
	*out_stamp = stamp;
	return message;
}

struct frag_message *fragi_queue_take_shared(struct fragi_queue *queue, uint64_t *out_stamp)
{
	return take_beyond(queue, 0, out_stamp);
}

struct frag_message *fragi_queue_take_excess(struct fragi_queue *queue)
{
	uint64_t stamp;

	return take_beyond(queue, queue->capacity, &stamp);
}
