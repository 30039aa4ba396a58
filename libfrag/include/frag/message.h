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
 * Acquisition time: when the data was taken, in nanoseconds since the Unix epoch; 0: not set. It
 * travels with the message. Set it before the message is emitted.
 * Thread: any to read; to set, the one that created the message. Blocks: no. RT-safe: yes.
 */
FRAG_API int64_t frag_message_acquisition_ns(const struct frag_message *message);
FRAG_API void frag_message_set_acquisition_ns(struct frag_message *message, int64_t unix_ns);

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
