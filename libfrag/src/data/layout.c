// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <data/layout.h>
#include <data/memory.h>

static inline bool same_tensor(const struct fragi_named_tensor *a,
			       const struct fragi_named_tensor *b)
{
	const struct frag_tensor *x = a->tensor, *y = b->tensor;
	int64_t differ = x->dl.ndim ^ y->dl.ndim;

	for (int32_t i = 0; i < x->dl.ndim; i++)
		differ |= x->shape[i] ^ y->shape[i];
	return differ == 0 && memcmp(&x->dl.dtype, &y->dl.dtype, sizeof(x->dl.dtype)) == 0 &&
	       a->name[0] == b->name[0] && (a->name[0] == '\0' || strcmp(a->name, b->name) == 0);
}

/* Whether the bytes of the value in memory are those that travel. */
static bool value_travels_as_it_is(const struct frag_message *message)
{
	const struct fragi_type_info *info = fragi_type_resolve(message->type);

	return info != NULL && info->is_dense && info->wire_size == message->value_size;
}

uint32_t fragi_layout_bytes(const struct frag_message *message)
{
	size_t bytes = FRAGI_DESCRIPTOR_HEAD_BYTES + FRAGI_DESCRIPTOR_END_BYTES;

	if (!fragi_layout_may_be(message))
		return 0;
	if (message->type != NULL) {
		if (!value_travels_as_it_is(message))
			return 0;
		bytes += message->value_size;
	}
	for (uint32_t i = 0; i < message->tensor_count; i++) {
		if (!message->tensors[i].tensor->sends_data)
			return 0;
		bytes += fragi_descriptor_bytes(&message->tensors[i]);
	}
	return (uint32_t)bytes;
}

int fragi_layout_set(struct fragi_layout *layout, const struct frag_message *message)
{
	struct frag_tensor *described[FRAGI_LAYOUT_TENSORS_MAX];
	uint32_t count = 0;
	int r = 0;

	for (; count < message->tensor_count && r == 0; count++)
		r = fragi_tensor_describe_as(message->tensors[count].tensor, &described[count]);
	if (r < 0) {
		for (count--; count > 0; count--)
			frag_tensor_unref(described[count - 1]);
		return r;
	}
	fragi_layout_fini(layout);
	layout->tensor_count = count;
	layout->descriptor_bytes = fragi_layout_bytes(message);
	layout->type = message->type;
	layout->value_bytes = (uint32_t)message->value_size;
	for (uint32_t i = 0; i < count; i++) {
		layout->tensors[i] = message->tensors[i];
		layout->tensors[i].tensor = described[i];
		layout->body_bytes += described[i]->compact_bytes;
	}
	return 0;
}

void fragi_layout_fini(struct fragi_layout *layout)
{
	for (uint32_t i = 0; i < layout->tensor_count; i++)
		frag_tensor_unref(layout->tensors[i].tensor);
	layout->tensor_count = layout->descriptor_bytes = 0;
	layout->body_bytes = 0;
}

bool fragi_layout_fits(const struct fragi_layout *layout, const struct frag_message *message)
{
	if (!fragi_layout_may_be(message) || message->tensor_count != layout->tensor_count ||
	    message->type != layout->type)
		return false;
	for (uint32_t i = 0; i < message->tensor_count; i++)
		if (!message->tensors[i].tensor->sends_data ||
		    !same_tensor(&message->tensors[i], &layout->tensors[i]))
			return false;
	return true;
}

/* A tensor of the message, in memory that is mapped or in its own. */
static int add(struct frag_message *message, const struct fragi_named_tensor *like,
	       struct frag_resource *allocator, const uint8_t *data, const struct fragi_body *body)
{
	const size_t bytes = like->tensor->compact_bytes;
	struct frag_tensor *tensor;
	int r = fragi_tensor_describe_as(like->tensor, &tensor);

	if (r < 0)
		return r;
	if (body != NULL)
		fragi_tensor_place(tensor, body->data, body->device, NULL, NULL);
	else if (bytes > 0 && bytes <= FRAGI_SMALL_BODY_BYTES)
		r = fragi_tensor_allocate_small(tensor);
	else
		r = fragi_tensor_allocate(tensor, allocator);
	if (r < 0) {
		frag_tensor_unref(tensor);
		return r;
	}
	if (body == NULL && bytes > 0)
		memcpy(tensor->dl.data, data, bytes);
	return fragi_message_append_tensor(message, like, tensor);
}

int fragi_layout_make(const struct fragi_layout *layout, struct frag_resource *allocator,
		      const uint8_t *value, const uint8_t *data, const struct fragi_body *mapped,
		      uint32_t mapped_count, struct frag_message **out_message)
{
	struct frag_message *message = fragi_message_take();
	uint32_t used = 0;
	int r = message == NULL ? -ENOMEM : 0;

	for (uint32_t i = 0; i < layout->tensor_count && r == 0; i++) {
		const size_t bytes = layout->tensors[i].tensor->compact_bytes;
		const bool is_mapped = data == NULL && bytes > 0;

		if (is_mapped && (used == mapped_count || mapped[used].bytes != bytes ||
				  !fragi_device_is_host(mapped[used].device)))
			r = -EBADMSG;
		else
			r = add(message, &layout->tensors[i], allocator, data,
				is_mapped ? &mapped[used] : NULL);
		used += is_mapped;
		data = data != NULL ? data + bytes : NULL;
	}
	if (r == 0 && used != mapped_count)
		r = -EBADMSG;
	if (r < 0) {
		frag_message_unref(message);
		return r;
	}
	if (layout->type != NULL) {
		message->type = layout->type;
		message->value = memcpy(message->inline_value, value, layout->value_bytes);
		message->value_size = layout->value_bytes;
	}
	for (uint32_t i = 0; i < layout->tensor_count && used > 0; i++) {
		struct frag_tensor *tensor = message->tensors[i].tensor;

		if (tensor->compact_bytes == 0)
			continue;
		tensor->release = mapped->release;
		tensor->context = mapped->owner;
		mapped++;
		used--;
	}
	fragi_message_share(message);
	*out_message = message;
	return 0;
}
