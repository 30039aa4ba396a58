/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_DATA_MESSAGE_H
#define FRAGI_DATA_MESSAGE_H

#include <stdatomic.h>
#include <stdbool.h>

#include <base/diag.h>
#include <base/stamp.h>
#include <data/label.h>
#include <data/pool.h>
#include <data/tensor.h>
#include <data/trail.h>
#include <frag/message.h>

/*
 * The life of a message. A thread creates it from its own pool, and may write it while `refs` is 1
 * and it was not emitted. Emitting shares it. The last unref, on any thread, drops the value, the
 * tensors and the metadata, and returns the memory to the pool that it came from.
 *
 * A value of up to FRAGI_MESSAGE_INLINE bytes lies in the message itself. A larger one, or one
 * whose type has a fini, lies in a box, which copies of the message share. A small box and the
 * array of tensors stay with the pooled message for its next use.
 */
#define FRAGI_MESSAGE_INLINE 24

/*
 * The encoded descriptors of a message, made once for all edges that it leaves on. Most fit into
 * FRAGI_BLOB_POOLED bytes with this head.
 */
struct fragi_blob {
	struct fragi_pooled home; /* pool is NULL: larger, from the heap */
	uint32_t size;
	uint8_t bytes[];
};
#define FRAGI_BLOB_POOLED 256u
void fragi_blob_free(struct fragi_blob *blob); /* codec.c */

struct fragi_named_tensor {
	struct frag_tensor *tensor;
	char name[FRAG_NAME_MAX + 1];
};

/*
 * Which stamps a message has: bits of struct frag_message.stamps. The lower ones are those of enum
 * frag_message_flag. They stand like this in the descriptors too (codec.h).
 */
#define FRAGI_STAMP_ACQUIRED 4u /* acquisition_ns, clock */
#define FRAGI_STAMP_SEQUENCE 8u
#define FRAGI_STAMP_TRACKED 16u /* tracking_id */
#define FRAGI_STAMP_FOREIGN 32u /* acquisition_ns is of a clock that was not converted to ours */
#define FRAGI_STAMP_TRAIL 64u   /* trail */
#define FRAGI_STAMP_LABEL 128u  /* label */
#define FRAGI_STAMPS_FLAGS (FRAG_MESSAGE_DEGRADED | FRAG_MESSAGE_INVALID)
/* Those that copies of the message have too; trail and label are sent, but are of one message. */
#define FRAGI_STAMPS_SENT                                                                          \
	(FRAGI_STAMPS_FLAGS | FRAGI_STAMP_ACQUIRED | FRAGI_STAMP_SEQUENCE | FRAGI_STAMP_TRACKED |  \
	 FRAGI_STAMP_FOREIGN)

/*
 * The message has metadata; a tensor of it may not be written yet (tensor.h). A receive has nothing
 * to do for a trail, but whoever sends the message to another host says in it, and in a label, how
 * long it was held.
 */
#define FRAGI_AT_RECEIVE_METADATA 1u
#define FRAGI_AT_RECEIVE_WORK 2u
#define FRAGI_AT_RECEIVE (FRAGI_AT_RECEIVE_METADATA | FRAGI_AT_RECEIVE_WORK)
#define FRAGI_AT_SEND_TRAIL 4u

struct frag_message {
	/* kept while the message lies in the pool */
	struct fragi_pooled home;
	struct fragi_named_tensor *tensors;
	struct fragi_box *box; /* of the value, or an empty one for the next; may be NULL */
	uint16_t tensor_capacity;

	_Alignas(8) _Atomic uint32_t refs;
	union {
		struct {
			bool shared; /* emitted or received: immutable, even with one reference */
			uint8_t stamps; /* FRAGI_STAMP_*: which of them are set */
			uint8_t tensor_count;
			uint8_t at_receive; /* FRAGI_AT_RECEIVE_*: what a receive has to do */
		};
		uint32_t contents; /* the four as one: a message without any is recycled faster */
	};
	const struct frag_type *type; /* of the value; NULL: none */
	void *value;                  /* inline_value, or in the box */
	_Alignas(16) uint8_t inline_value[FRAGI_MESSAGE_INLINE];
	size_t value_size;
	struct frag_metadata *metadata;    /* owned; NULL: none */
	_Atomic(struct fragi_blob *) blob; /* owned; NULL: not encoded yet */
	uint64_t epoch;            /* of the host that sent it to this one; 0: it was made here */
	struct fragi_label *label; /* owned, if FRAGI_STAMP_LABEL is set */

	/*
	 * Each is valid only if its bit of `stamps` is set: a message without stamps never touches
	 * this cache line.
	 */
	_Alignas(64) int64_t acquisition_ns;
	uint64_t sequence;
	uint64_t tracking_id;      /* of the same message in all hosts */
	uint32_t clock;            /* of acquisition_ns */
	struct fragi_trail *trail; /* owned, if FRAGI_STAMP_TRAIL is set */
};
/* `contents`: anything but `shared`. It is written while only one thread can see the message. */
#define FRAGI_CONTENTS_MORE 0xffffff00u

/* The bytes at the start of a message that the pool uses while the message lies in it. */
#define FRAGI_MESSAGE_KEPT offsetof(struct frag_message, refs)
/* frag_message_create, inline. */
static inline struct frag_message *fragi_message_take(void)
{
	struct frag_message *message = fragi_pool_take(FRAGI_POOL_MESSAGE);

	if (__builtin_expect(message == NULL, 0))
		return NULL;
	fragi_pool_unpoison((char *)message + FRAGI_MESSAGE_KEPT,
			    sizeof(*message) - FRAGI_MESSAGE_KEPT);
	atomic_store_explicit(&message->refs, 1, memory_order_relaxed);
	return message;
}

/* As frag_message_add_tensor, with a name of that length, which has no NUL. */
int fragi_message_add_tensor(struct frag_message *message, const void *name, size_t length,
			     struct frag_tensor *tensor);

/*
 * Appends a tensor under the name of `like`, which the message does not have, to one that nobody
 * else sees. Takes the reference, also on failure. Returns 0 or -ENOMEM.
 */
int fragi_message_append_tensor(struct frag_message *message, const struct fragi_named_tensor *like,
				struct frag_tensor *tensor);

/*
 * Creates a message with a copy of one value, or with one tensor, whose reference it takes, also on
 * failure. Returns 0 or a negative errno.
 */
int fragi_message_of_value(const struct frag_type *type, const void *value, size_t size,
			   struct frag_message **out_message);
int fragi_message_of_tensor(const char *name, struct frag_tensor *tensor,
			    struct frag_message **out_message);

/* frag_message_unref, inline: the only reference is dropped without a read-modify-write. */
FRAGI_API void fragi_message_recycle(struct frag_message *message);
static inline void fragi_message_unref(struct frag_message *message)
{
	if (atomic_load_explicit(&message->refs, memory_order_acquire) == 1 ||
	    atomic_fetch_sub_explicit(&message->refs, 1, memory_order_acq_rel) == 1)
		fragi_message_recycle(message);
}

/* Returns whether others may read the message, so that it must not be changed. */
static inline bool fragi_message_is_busy(const struct frag_message *message)
{
	return message->shared || atomic_load_explicit(&message->refs, memory_order_acquire) != 1;
}

/*
 * Returns whether nobody else holds the message, so that its label or trail may be replaced. Else
 * that is done in frag_message_writable. One that was encoded has them in its descriptors.
 */
static inline bool fragi_message_takes_paths(const struct frag_message *message)
{
	return atomic_load_explicit(&message->refs, memory_order_acquire) == 1 &&
	       atomic_load_explicit(&message->blob, memory_order_relaxed) == NULL;
}

/* Makes the message and the data of its tensors immutable, before another thread can see it. */
static inline void fragi_message_share(struct frag_message *message)
{
	if (message->shared)
		return;
	message->shared = true;
	for (uint32_t i = 0; i < message->tensor_count; i++)
		fragi_tensor_freeze(message->tensors[i].tensor);
}

/* Returns the payload in bytes (value and tensors), as ledger and windows count it. */
FRAGI_API uint64_t fragi_message_bytes(const struct frag_message *message);

/* Waits with the CPU until all tensors are written. Returns 0; -EIO: the GPU has failed. */
FRAGI_API int fragi_message_wait(const struct frag_message *message, struct frag_err *err);
/* Makes later work of a CUstream wait until all tensors are written. Returns 0; -EIO. */
int fragi_message_follow(const struct frag_message *message, void *stream, struct frag_err *err);

/* Replaces the metadata. Takes `metadata`, which may be NULL. */
FRAGI_API void fragi_message_set_metadata(struct frag_message *message,
					  struct frag_metadata *metadata);

/*
 * Puts the tensors of a received message that lay on a GPU at their sender on the GPU of this
 * process, without waiting: the message then has tensors that are not written yet. Where the
 * process has opened no GPU, they stay in host memory.
 * - streams: as for fragi_tensor_sent
 * Returns 0; -ENOMEM; -EIO: the GPU refuses. message_gpu.c
 */
FRAGI_API int fragi_message_to_gpu(struct frag_message *message, struct fragi_stream **streams,
				   struct frag_err *err);
/* Copies what FRAGI_STAMPS_SENT names; the other stamps of `message` are cleared. */
void fragi_message_copy_stamps(struct frag_message *message, const struct frag_message *from);
FRAGI_API void fragi_message_convert_from(struct frag_message *message,
					  const struct fragi_timeline *peer);
/*
 * Converts the times of a message that comes from a peer to our clock; those for which that cannot
 * be done are marked as foreign. Before others can see it.
 */
static inline void fragi_message_convert_times(struct frag_message *message,
					       const struct fragi_timeline *peer)
{
	if (__builtin_expect(peer->state != FRAGI_TIMELINE_SAME, 0))
		fragi_message_convert_from(message, peer);
}

/* It is whole, here. Before others can see it. */
static inline void fragi_message_has_arrived(struct frag_message *message)
{
	if (__builtin_expect((message->at_receive & FRAGI_AT_SEND_TRAIL) == 0, 1))
		return;
	if ((message->stamps & FRAGI_STAMP_TRAIL) != 0)
		message->trail->arrived = fragi_stamp();
	if ((message->stamps & FRAGI_STAMP_LABEL) != 0)
		message->label->arrived = fragi_stamp();
}

/* Replaces the label, which says what paths the message has taken. Takes `label`; NULL: none. */
void fragi_message_set_label(struct frag_message *message, struct fragi_label *label);
/* Replaces the trail, of paths with deadlines. Takes `trail`; NULL: none. */
void fragi_message_set_trail(struct frag_message *message, struct fragi_trail *trail);
/* It has no trail any more: the caller has taken it. */
void fragi_message_leave_trail(struct frag_message *message);
/* Returns whether a clock of that number may stand in a message. */
bool fragi_clock_exists(uint32_t clock);

/* Frees what a struct frag_message in a pool keeps for its next use. */
void fragi_message_fini(void *object);

#endif
