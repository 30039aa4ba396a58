/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_DATA_LAYOUT_H
#define FRAGI_DATA_LAYOUT_H

#include <data/codec.h>
#include <data/message.h>

/*
 * What messages of a flow have in common: the type of the value, and names, types and shapes of the
 * tensors. Two ends that both know the layout of a message need no descriptors for the next one of
 * the same layout, only its value.
 *
 * A message has a layout if it has no metadata or stamps, no value but one that lies in the message
 * and travels as it is, and no more tensors than this, all of them without gaps in host memory.
 */
#define FRAGI_LAYOUT_TENSORS_MAX 8u

/* The owner zeroes it at first. */
struct fragi_layout {
	uint32_t tensor_count;
	uint32_t descriptor_bytes;
	uint64_t body_bytes;
	const struct frag_type *type; /* of the value; NULL: none */
	uint32_t value_bytes;
	struct fragi_named_tensor tensors[FRAGI_LAYOUT_TENSORS_MAX]; /* they have no memory */
};

/* Returns false for most messages that have no layout. */
static inline bool fragi_layout_may_be(const struct frag_message *message)
{
	return (message->stamps | message->at_receive) == 0 &&
	       message->tensor_count <= FRAGI_LAYOUT_TENSORS_MAX &&
	       (message->type == NULL || message->value == message->inline_value);
}
/* Returns how many bytes the descriptors of the message have; 0: it has no layout. */
FRAGI_API uint32_t fragi_layout_bytes(const struct frag_message *message);
/* Makes the layout that of a message which has one. Returns 0; -ENOMEM: then it is unchanged. */
FRAGI_API int fragi_layout_set(struct fragi_layout *layout, const struct frag_message *message);
FRAGI_API void fragi_layout_fini(struct fragi_layout *layout);
/* Returns whether the descriptors of the message are those of the layout's. */
FRAGI_API bool fragi_layout_fits(const struct fragi_layout *layout,
				 const struct frag_message *message);
/*
 * Makes a message of the layout, which is shared, as every received message is.
 * - allocator: of tensors that get a copy of their bytes; NULL: the heap
 * - data: body_bytes, one body behind the other, which are copied. NULL: the bodies are mapped
 * - value: value_bytes, which are copied
 * - mapped: of the tensors that are not empty, in order; on failure they are still the caller's
 * Returns 0; -EBADMSG: the bodies are not those of the layout; -ENOMEM; or a failure of the
 * allocator.
 */
FRAGI_API int fragi_layout_make(const struct fragi_layout *layout, struct frag_resource *allocator,
				const uint8_t *value, const uint8_t *data,
				const struct fragi_body *mapped, uint32_t mapped_count,
				struct frag_message **out_message);

#endif
