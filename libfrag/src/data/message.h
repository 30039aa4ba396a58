/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_DATA_MESSAGE_H
#define FRAGI_DATA_MESSAGE_H

#include <stdatomic.h>
#include <stdbool.h>

#include <base/diag.h>
#include <frag/message.h>

/*
 * Life of a message. It is made on a thread, from that thread's pool; it is written while `refs` is 1 and it
 * was not emitted; emit shares it. The last unref, on any thread, drops value, tensors and metadata and gives
 * the memory back: to the own pool directly, to another thread's by pushing on that pool's lock-free return
 * stack, which its owner empties when its own list is empty. A thread that ends leaves its pool to the next
 * new thread; pools are freed at unload.
 */
#define FRAGI_MESSAGE_INLINE 24

struct fragi_blob { /* a message's encoded descriptors, made at most once and shared by all edges it leaves on
		     */
	_Atomic uint32_t refs;
	uint32_t size;
	uint8_t bytes[];
};

struct fragi_named_tensor {
	struct frag_tensor *tensor;
	char name[FRAG_NAME_MAX + 1];
};

struct frag_message {
	_Atomic uint32_t refs;
	bool shared; /* emitted or received: immutable from then on, also with one reference */
	uint16_t tensor_count;
	uint16_t tensor_capacity;
	struct fragi_pool *pool;
	struct frag_message *next;    /* in a pool's free list */
	const struct frag_type *type; /* of the value; NULL: none */
	void *value;                  /* inline_value, or memory of its own */
	size_t value_size;
	_Alignas(16) uint8_t inline_value[FRAGI_MESSAGE_INLINE];
	struct fragi_named_tensor *tensors; /* kept by a pooled message for the next use */
	struct frag_metadata *metadata;     /* owned; NULL: none */
	_Atomic(struct fragi_blob *) blob;
	int64_t publish_ns;     /* CLOCK_MONOTONIC of the publishing node; filled where a message leaves its
				   process */
	int64_t acquisition_ns; /* Unix time; 0: not set */
};

/* Drops a reference without a read-modify-write when it is the only one. */
FRAGI_API void fragi_message_recycle(struct frag_message *message);
static inline void fragi_message_unref(struct frag_message *message)
{
	if (atomic_load_explicit(&message->refs, memory_order_acquire) == 1 ||
	    atomic_fetch_sub_explicit(&message->refs, 1, memory_order_acq_rel) == 1)
		fragi_message_recycle(message);
}

/* Payload bytes: value and tensors, as the ledger and the windows count them. */
FRAGI_API uint64_t fragi_message_bytes(const struct frag_message *message);

/* Takes over metadata (may be NULL); drops what was there. */
FRAGI_API void fragi_message_set_metadata(struct frag_message *message, struct frag_metadata *metadata);

#endif
