/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_MESSAGE_H
#define FRAG_MESSAGE_H

#include <frag/metadata.h>
#include <frag/tensor.h>
#include <frag/type.h>

FRAG_BEGIN_DECLS

/*
 * A message: an optional typed value, any number of named tensors, and optional metadata. Messages
 * are reference-counted, and immutable once they are shared (emitted or received). Between
 * operators of one process a message travels as a pointer. Messages come from pools, one for each
 * thread: after warm-up, creating and dropping a message does not allocate.
 */
struct frag_message;

/*
 * Creates an empty message. Returns a new reference, or NULL when memory is short.
 * Thread: any. Blocks: no. RT-safe: after warm-up.
 */
FRAG_API struct frag_message *frag_message_create(void);
/* Takes one more reference. Returns message. Thread: any. Blocks: no. RT-safe: yes. */
FRAG_API struct frag_message *frag_message_ref(const struct frag_message *message);
/*
 * Drops a reference; NULL is accepted. The last one drops the value, the tensors and the metadata.
 * Thread: any. Blocks: as the fini of the value's type and the release of a tensor do. RT-safe:
 * yes, unless the message has metadata, a value of more than 24 bytes, or a tensor whose memory
 * cannot be released so.
 */
FRAG_API void frag_message_unref(struct frag_message *message);

/*
 * Returns a message that may be written: the same one when nobody else holds a reference, otherwise
 * a copy that shares the tensors. Takes the reference to message and returns a new one; NULL when
 * memory is short. The tensors of a message that was shared stay immutable.
 * Thread: the one that holds the reference. Blocks: no. RT-safe: no (it may allocate).
 */
FRAG_API struct frag_message *frag_message_writable(struct frag_message *message);

/*
 * Sets the value; the previous one is dropped.
 * - type: of the value
 * - value: `size` bytes, copied; NULL: the value is zeroed, for the caller to fill in
 * - size: in bytes: type->size; or any multiple of the element's size for an array; or any number
 *   for "string" (without the NUL) and "bytes"
 * - out_value: receives the address of the value in the message; NULL is accepted
 * Where the type has a fini, the message takes what the value holds when the call succeeds.
 * Returns 0; -EINVAL: wrong size; -EBUSY: the message is shared; -ENOMEM.
 * Thread: the one that created the message. Blocks: no. RT-safe: up to 24 bytes without a fini.
 */
FRAG_API int frag_message_set_value(struct frag_message *message, const struct frag_type *type,
				    const void *value, size_t size, void **out_value);
/*
 * Reads the value.
 * - out_value, out_size: receive its address, borrowed as long as a reference is held, and its size
 *   in bytes; each may be NULL
 * Returns the type of the value; NULL: the message has none.
 * Thread: any. Blocks: no. RT-safe: yes.
 */
FRAG_API const struct frag_type *frag_message_value(const struct frag_message *message,
						    const void **out_value, size_t *out_size);

/*
 * Adds a tensor.
 * - name: unique in the message, up to FRAG_NAME_MAX bytes; "" is a name; copied
 * - tensor: takes the reference, also on failure
 * Returns 0; -EEXIST: the message has a tensor of that name; -ENAMETOOLONG: the name is too long;
 * -EINVAL: name or tensor is NULL; -E2BIG: more than FRAG_MESSAGE_TENSORS_MAX; -EBUSY: the message
 * is shared; -ENOMEM.
 * Thread: the one that created the message. Blocks: no. RT-safe: after warm-up, up to 8 tensors.
 */
FRAG_API int frag_message_add_tensor(struct frag_message *message, const char *name,
				     struct frag_tensor *tensor);
/* Returns the number of tensors. Thread: any. Blocks: no. RT-safe: yes. */
FRAG_API uint32_t frag_message_tensor_count(const struct frag_message *message);
/*
 * Returns the i-th tensor, from 0, borrowed as long as the message is held; NULL beyond the last.
 * - out_name: receives its name, borrowed likewise; NULL is accepted
 * Thread: any. Blocks: no. RT-safe: yes.
 */
FRAG_API struct frag_tensor *frag_message_tensor_at(const struct frag_message *message, uint32_t i,
						    const char **out_name);
/*
 * Returns the tensor of that name, borrowed as long as the message is held; NULL when there is
 * none.
 * - name: NULL: the first tensor
 * Thread: any. Blocks: no. RT-safe: yes (it compares at most 64 short names).
 */
FRAG_API struct frag_tensor *frag_message_tensor(const struct frag_message *message,
						 const char *name);

/*
 * Returns the metadata, to read, borrowed as long as the message is held; NULL: the message has
 * none.
 * Thread: any. Blocks: no. RT-safe: yes.
 */
FRAG_API const struct frag_metadata *frag_message_metadata(const struct frag_message *message);
/*
 * Gives a message metadata: a copy that shares the content (frag_metadata_copy). An operator has no
 * need of it, because emit replaces it by the metadata of the tick where there is any. It is for
 * the test of an operator that receives the message.
 * - metadata: NULL: none
 * Returns 0; -EBUSY: the message is shared; -ENOMEM.
 * Thread: the one that created the message. Blocks: no. RT-safe: no.
 */
FRAG_API int frag_message_set_metadata(struct frag_message *message,
				       const struct frag_metadata *metadata);

/*
 * Stamps: acquisition time, sequence and flags. They travel with the message, to other hosts too,
 * and a message that is forwarded, or made writable, keeps them. A message made of others has none
 * until it is given some (frag_message_copy_stamps).
 *
 * All functions that set stamps return 0; -EBUSY: the message is shared; or what they name.
 * Thread: the one that created the message. Blocks: no. RT-safe: yes.
 * All functions that read them: Thread: any. Blocks: no. RT-safe: yes.
 */

/*
 * The clock of an acquisition time. The time of a message from another node is converted to the
 * same clock of this one where the offset is known (docs/TIME.md); else it cannot be compared, nor
 * can times of clocks of the application's own.
 */
enum frag_clock_id {
	/* nanoseconds since 1970-01-01 UTC, without leap seconds (CLOCK_REALTIME) */
	FRAG_CLOCK_UNIX = 0,
	/* International Atomic Time since 1970-01-01 TAI (CLOCK_TAI), as PTP distributes it */
	FRAG_CLOCK_TAI = 1,
	/* since the machine was started (CLOCK_MONOTONIC) */
	FRAG_CLOCK_MONOTONIC = 2,
	/* since the begin of a recording */
	FRAG_CLOCK_MEDIA = 3,
	/* this one and greater ones are the application's own */
	FRAG_CLOCK_OWN = 256
};

/*
 * Sets when the data was taken.
 * - time_ns: in nanoseconds of the clock; any value
 * - clock: of enum frag_clock_id, or one of the application's own
 * Also returns -EINVAL: a clock between FRAG_CLOCK_MEDIA and FRAG_CLOCK_OWN.
 */
FRAG_API int frag_message_set_acquisition(struct frag_message *message, int64_t time_ns,
					  uint32_t clock);
/*
 * Reads when the data was taken.
 * - out_time_ns, out_clock: receive the time and its clock; each may be NULL
 * Returns 0; -ENODATA: it is not set.
 */
FRAG_API int frag_message_acquisition(const struct frag_message *message, int64_t *out_time_ns,
				      uint32_t *out_clock);
/*
 * Sets the acquisition time on FRAG_CLOCK_UNIX.
 * - unix_ns: 0 removes the acquisition time
 */
FRAG_API int frag_message_set_acquisition_ns(struct frag_message *message, int64_t unix_ns);
/* Returns the Unix time in nanoseconds; 0: it is not set, or it is of another clock. */
FRAG_API int64_t frag_message_acquisition_ns(const struct frag_message *message);

/*
 * Sets the number of the data at its source: of a frame, a packet, a sample. A gap means that the
 * source has lost some.
 */
FRAG_API int frag_message_set_sequence(struct frag_message *message, uint64_t sequence);
/* Reads it. Returns 0; -ENODATA: it is not set, and *out_sequence is not changed. */
FRAG_API int frag_message_sequence(const struct frag_message *message, uint64_t *out_sequence);

/* Flags that inform receivers about the quality of the data; they can be combined. */
enum frag_message_flag {
	FRAG_MESSAGE_DEGRADED = 1, /* the data can be used, but is worse than usual */
	FRAG_MESSAGE_INVALID = 2 /* the data must not be used: it only shows that something came */
};
/*
 * Sets the flags, and clears those that are not given.
 * - flags: of enum frag_message_flag; 0: none
 * Also returns -EINVAL: a flag that does not exist.
 */
FRAG_API int frag_message_set_flags(struct frag_message *message, uint32_t flags);
/* Returns the flags; 0: none. */
FRAG_API uint32_t frag_message_flags(const struct frag_message *message);

/*
 * Gives a message all stamps of another one, for example a result those of the frame that it was
 * made of. Its own are dropped.
 */
FRAG_API int frag_message_copy_stamps(struct frag_message *message,
				      const struct frag_message *from);

/*
 * The epoch of the host that sent the message to this one; 0: it was not sent by another host. When
 * a host fails and is started again (on_failure: restart), its epoch grows, and its operators begin
 * anew: a message with a higher epoch than the one before it on the same flow is the first that
 * they sent.
 * Thread: any. Blocks: no. RT-safe: yes.
 */
FRAG_API uint64_t frag_message_epoch(const struct frag_message *message);

FRAG_END_DECLS

#endif
