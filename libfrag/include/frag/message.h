/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_MESSAGE_H
#define FRAG_MESSAGE_H

#include <frag/metadata.h>
#include <frag/tensor.h>
#include <frag/type.h>

FRAG_BEGIN_DECLS

/*
 * A message: an optional typed value, any number of named tensors, optional metadata.
 * Reference-counted; immutable once shared. Between operators of one process a message is a
 * pointer. Messages come from per-thread pools: after warm-up, making and dropping one allocates
 * nothing.
 */
struct frag_message;

/*
 * A new, empty message. NULL when memory is short.
 * Thread: any. Blocks: no. RT-safe: after warm-up.
 */
FRAG_API struct frag_message *frag_message_create(void);
/* Takes one more reference. Returns message. Thread: any. RT-safe: yes. */
FRAG_API struct frag_message *frag_message_ref(const struct frag_message *message);
/*
 * Drops a reference; NULL is accepted. Thread: any. RT-safe: yes, unless a type's fini or a
 * tensor's release is not.
 */
FRAG_API void frag_message_unref(struct frag_message *message);

/*
 * Takes a reference to a message and returns one that may be written: the same if nobody else holds
 * it, otherwise a copy that shares the tensors. NULL when memory is short; the reference is then
 * gone too. Thread: any. Blocks: no.
 */
FRAG_API struct frag_message *frag_message_writable(struct frag_message *message);

/*
 * Sets the value to a copy of `size` bytes at value; the previous value is dropped. With value NULL
 * the memory is zeroed, and out_value (which may be NULL) gives it to the caller to fill in. size
 * must be type->size, or a multiple of the element's size for an array, or any for string and
 * bytes. Returns 0, -EINVAL for a wrong size, -EBUSY when the message is shared, -ENOMEM. Thread:
 * the one that made the message. Blocks: no. RT-safe: up to 24 bytes.
 */
FRAG_API int frag_message_set_value(struct frag_message *message, const struct frag_type *type,
				    const void *value, size_t size, void **out_value);
/*
 * The value's type (NULL: no value), memory and size in bytes (out_ parameters may be NULL).
 * RT-safe: yes.
 */
FRAG_API const struct frag_type *frag_message_value(const struct frag_message *message,
						    const void **out_value, size_t *out_size);

/*
 * Adds a tensor under a name that is unique in the message ("" is one). Takes the reference, on
 * failure too. Returns 0, -EEXIST, -EINVAL (name too long), -E2BIG (FRAG_MESSAGE_TENSORS_MAX),
 * -EBUSY (shared), -ENOMEM.
 */
FRAG_API int frag_message_add_tensor(struct frag_message *message, const char *name,
				     struct frag_tensor *tensor);
/* How many tensors there are. */
FRAG_API uint32_t frag_message_tensor_count(const struct frag_message *message);
/* The i-th tensor, borrowed; NULL beyond the last. out_name may be NULL. */
FRAG_API struct frag_tensor *frag_message_tensor_at(const struct frag_message *message, uint32_t i,
						    const char **out_name);
/*
 * The tensor of that name, borrowed, NULL when there is none; name NULL: the only or first tensor.
 */
FRAG_API struct frag_tensor *frag_message_tensor(const struct frag_message *message,
						 const char *name);

/* The metadata to read; NULL: none. */
FRAG_API const struct frag_metadata *frag_message_metadata(const struct frag_message *message);

/*
 * Acquisition time: when the data was taken, in nanoseconds since the Unix epoch; 0: not set. Emit
 * fills in the publish time itself.
 */
FRAG_API int64_t frag_message_acquisition_ns(const struct frag_message *message);
FRAG_API void frag_message_set_acquisition_ns(struct frag_message *message, int64_t unix_ns);

FRAG_END_DECLS

#endif
