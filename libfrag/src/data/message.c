// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <base/alloc.h>
#include <data/box.h>
#include <data/codec.h>
#include <data/message.h>
#include <data/metadata.h>

_Static_assert(offsetof(struct frag_message, acquisition_ns) == 128,
	       "a message without stamps is two cache lines");

#define KEPT_BOX_BYTES 1024u
#define KEPT_TENSORS 8u

struct frag_message *frag_message_create(void)
{
	return fragi_message_take();
}

/* Drops the value in the box. A small box that nobody else holds is kept for the next value. */
static void drop_boxed_value(struct frag_message *message)
{
	struct fragi_box *box = message->box;

	if (box->capacity <= KEPT_BOX_BYTES && box->offset == sizeof(*box) &&
	    fragi_box_is_mine(box)) {
		if (message->type->fini != NULL)
			fragi_value_fini(message->type, message->value, message->value_size);
		return;
	}
	fragi_box_unref(box, message->type, message->value_size);
	message->box = NULL;
}

static void drop_tensors(struct frag_message *message)
{
	for (uint32_t i = 0; i < message->tensor_count; i++)
		frag_tensor_unref(message->tensors[i].tensor);
	message->tensor_count = 0;
	if (message->tensor_capacity > KEPT_TENSORS) {
		fragi_free(message->tensors);
		message->tensors = NULL;
		message->tensor_capacity = 0;
	}
}

static void drop_blob(struct frag_message *message)
{
	struct fragi_blob *blob = atomic_load_explicit(&message->blob, memory_order_relaxed);

	if (blob == NULL)
		return;
	atomic_store_explicit(&message->blob, NULL, memory_order_relaxed);
	fragi_blob_free(blob);
}

/* What is known of the paths that the message has taken. */
static __attribute__((noinline)) void drop_paths(struct frag_message *message)
{
	if ((message->stamps & FRAGI_STAMP_LABEL) != 0)
		fragi_label_unref(message->label);
	if ((message->stamps & FRAGI_STAMP_TRAIL) != 0)
		fragi_trail_unref(message->trail);
}

/* Returns a message to its pool. All that it holds, but an inline value, was dropped before. */
static inline void return_to_pool(struct frag_message *message)
{
	message->type = NULL;
	message->value = NULL;
	message->value_size = 0;
	message->contents = 0;
	message->epoch = 0;
	/* With 0 references, one unref too many does not return it to the pool twice. */
	atomic_store_explicit(&message->refs, 0, memory_order_relaxed);
	fragi_pool_poison((char *)message + FRAGI_MESSAGE_KEPT,
			  sizeof(*message) - FRAGI_MESSAGE_KEPT);
	fragi_pool_give(FRAGI_POOL_MESSAGE, &message->home);
}

static __attribute__((noinline)) void recycle_full(struct frag_message *message)
{
	if (message->type != NULL && message->value != message->inline_value)
		drop_boxed_value(message);
	if (message->tensor_count > 0)
		drop_tensors(message);
	if (message->metadata != NULL) {
		fragi_metadata_destroy(message->metadata);
		message->metadata = NULL;
	}
	if ((message->stamps & (FRAGI_STAMP_LABEL | FRAGI_STAMP_TRAIL)) != 0)
		drop_paths(message);
	drop_blob(message);
	return_to_pool(message);
}

void fragi_message_recycle(struct frag_message *message)
{
	if (__builtin_expect(message->value != message->inline_value ||
				     (message->contents & FRAGI_CONTENTS_MORE) != 0 ||
				     atomic_load_explicit(&message->blob, memory_order_relaxed) !=
					     NULL,
			     0))
		recycle_full(message);
	else
		return_to_pool(message);
}

void fragi_message_fini(void *object)
{
	struct frag_message *message = object;

	if (message->box != NULL)
		fragi_box_unref(message->box, NULL, 0);
	fragi_free(message->tensors);
}

struct frag_message *frag_message_ref(const struct frag_message *message)
{
	struct frag_message *same = (struct frag_message *)(uintptr_t)message;

	atomic_fetch_add_explicit(&same->refs, 1, memory_order_relaxed);
	return same;
}

void frag_message_unref(struct frag_message *message)
{
	if (message != NULL)
		fragi_message_unref(message);
}

static void copy_value(void *to, const void *from, size_t size)
{
	if (from == NULL)
		memset(to, 0, size);
	else if (size == sizeof(uint64_t))
		memmove(to, from, sizeof(uint64_t));
	else
		memmove(to, from, size);
}

/*
 * Copies the value into a box. The old value is dropped after that, because `value` may point into
 * it.
 */
static int set_boxed_value(struct frag_message *message, const struct frag_type *type,
			   const void *value, size_t size, size_t capacity)
{
	bool was_boxed = message->type != NULL && message->value != message->inline_value;
	size_t align = type->align != 0 ? type->align : 8;
	struct fragi_box *box = message->box, *old = NULL;

	if (box == NULL || box->capacity < capacity || align > FRAGI_BOX_ALIGN ||
	    !fragi_box_is_mine(box) || (was_boxed && message->type->fini != NULL)) {
		old = box;
		box = fragi_box_create(capacity, align);
		if (box == NULL)
			return -ENOMEM;
	}
	copy_value(fragi_box_value(box), value, size);
	if (old != NULL)
		fragi_box_unref(old, was_boxed ? message->type : NULL, message->value_size);
	message->box = box;
	message->value = fragi_box_value(box);
	return 0;
}

int frag_message_set_value(struct frag_message *message, const struct frag_type *type,
			   const void *value, size_t size, void **out_value)
{
	size_t capacity = size;

	if (fragi_message_is_busy(message))
		return -EBUSY;
	if (size != type->size || size == 0) {
		if (fragi_type_check_size(type, size) < 0)
			return -EINVAL;
		capacity += type == &frag_type_string;
	}
	if (capacity <= FRAGI_MESSAGE_INLINE && type->fini == NULL) {
		copy_value(message->inline_value, value, size);
		if (message->type != NULL && message->value != message->inline_value)
			drop_boxed_value(message);
		message->value = message->inline_value;
	} else if (set_boxed_value(message, type, value, size, capacity) < 0) {
		return -ENOMEM;
	}
	if (capacity > size)
		((char *)message->value)[size] = '\0';
	message->type = type;
	message->value_size = size;
	if (out_value != NULL)
		*out_value = message->value;
	return 0;
}

const struct frag_type *frag_message_value(const struct frag_message *message,
					   const void **out_value, size_t *out_size)
{
	if (out_value != NULL)
		*out_value = message->value;
	if (out_size != NULL)
		*out_size = message->value_size;
	return message->type;
}

static int tensors_reserve(struct frag_message *message, uint16_t capacity)
{
	struct fragi_named_tensor *tensors;

	if (capacity <= message->tensor_capacity)
		return 0;
	tensors = fragi_realloc(message->tensors, capacity * sizeof(*tensors));
	if (tensors == NULL)
		return -ENOMEM;
	message->tensors = tensors;
	message->tensor_capacity = capacity;
	return 0;
}

/* Room for one more. */
static inline int tensors_extend(struct frag_message *message)
{
	const uint16_t capacity = message->tensor_capacity;

	if (__builtin_expect(message->tensor_count < capacity, 1))
		return 0;
	return tensors_reserve(message, capacity == 0 ? 1 : (uint16_t)(capacity * 2));
}

int fragi_message_append_tensor(struct frag_message *message, const struct fragi_named_tensor *like,
				struct frag_tensor *tensor)
{
	struct fragi_named_tensor *slot;

	if (tensors_extend(message) < 0) {
		frag_tensor_unref(tensor);
		return -ENOMEM;
	}
	slot = &message->tensors[message->tensor_count++];
	*slot = *like;
	slot->tensor = tensor;
	return 0;
}

static int add_tensor(struct frag_message *message, const void *name, size_t length,
		      struct frag_tensor *tensor)
{
	struct fragi_named_tensor *slot;

	if (fragi_message_is_busy(message))
		return -EBUSY;
	if (name == NULL || tensor == NULL)
		return -EINVAL;
	if (length > FRAG_NAME_MAX)
		return -ENAMETOOLONG;
	for (uint32_t i = 0; i < message->tensor_count; i++)
		if (strncmp(message->tensors[i].name, name, length) == 0 &&
		    message->tensors[i].name[length] == '\0')
			return -EEXIST;
	if (message->tensor_count == FRAG_MESSAGE_TENSORS_MAX)
		return -E2BIG;
	if (tensors_extend(message) < 0)
		return -ENOMEM;
	slot = &message->tensors[message->tensor_count++];
	slot->tensor = tensor;
	if (length > 0)
		memcpy(slot->name, name, length);
	slot->name[length] = '\0';
	return 0;
}

int fragi_message_add_tensor(struct frag_message *message, const void *name, size_t length,
			     struct frag_tensor *tensor)
{
	int r = add_tensor(message, name, length, tensor);

	if (r < 0)
		frag_tensor_unref(tensor);
	return r;
}

int frag_message_add_tensor(struct frag_message *message, const char *name,
			    struct frag_tensor *tensor)
{
	return fragi_message_add_tensor(message, name, name != NULL ? strlen(name) : 0, tensor);
}

/* Passes on a message when filling it succeeded, and drops it when it failed. Returns r. */
static int pass_filled(struct frag_message *message, int r, struct frag_message **out_message)
{
	if (r < 0)
		fragi_message_unref(message);
	else
		*out_message = message;
	return r;
}

int fragi_message_of_value(const struct frag_type *type, const void *value, size_t size,
			   struct frag_message **out_message)
{
	struct frag_message *message = fragi_message_take();

	if (message == NULL)
		return -ENOMEM;
	return pass_filled(message, frag_message_set_value(message, type, value, size, NULL),
			   out_message);
}

int fragi_message_of_tensor(const char *name, struct frag_tensor *tensor,
			    struct frag_message **out_message)
{
	struct frag_message *message = fragi_message_take();

	if (message == NULL) {
		frag_tensor_unref(tensor);
		return -ENOMEM;
	}
	return pass_filled(message, frag_message_add_tensor(message, name, tensor), out_message);
}

uint32_t frag_message_tensor_count(const struct frag_message *message)
{
	return message->tensor_count;
}

struct frag_tensor *frag_message_tensor_at(const struct frag_message *message, uint32_t i,
					   const char **out_name)
{
	if (i >= message->tensor_count)
		return NULL;
	if (out_name != NULL)
		*out_name = message->tensors[i].name;
	return message->tensors[i].tensor;
}

struct frag_tensor *frag_message_tensor(const struct frag_message *message, const char *name)
{
	if (name == NULL)
		return message->tensor_count > 0 ? message->tensors[0].tensor : NULL;
	for (uint32_t i = 0; i < message->tensor_count; i++)
		if (strcmp(message->tensors[i].name, name) == 0)
			return message->tensors[i].tensor;
	return NULL;
}

const struct frag_metadata *frag_message_metadata(const struct frag_message *message)
{
	return message->metadata;
}

int frag_message_set_metadata(struct frag_message *message, const struct frag_metadata *metadata)
{
	struct frag_metadata *copy = NULL;

	if (fragi_message_is_busy(message))
		return -EBUSY;
	if (metadata != NULL) {
		copy = fragi_metadata_copy(metadata);
		if (copy == NULL)
			return -ENOMEM;
	}
	fragi_message_set_metadata(message, copy);
	return 0;
}

void fragi_message_set_metadata(struct frag_message *message, struct frag_metadata *metadata)
{
	fragi_metadata_destroy(message->metadata);
	message->metadata = metadata;
	message->at_receive = (uint8_t)((message->at_receive & ~FRAGI_AT_RECEIVE_METADATA) |
					(metadata != NULL ? FRAGI_AT_RECEIVE_METADATA : 0));
}

uint64_t frag_message_epoch(const struct frag_message *message)
{
	return message->epoch;
}

uint64_t fragi_message_bytes(const struct frag_message *message)
{
	uint64_t bytes = message->value_size;

	for (uint32_t i = 0; i < message->tensor_count; i++)
		bytes += message->tensors[i].tensor->compact_bytes;
	return bytes;
}

/* Returns a message that shares value, tensors and metadata; NULL when memory is short. */
static struct frag_message *message_copy(const struct frag_message *message)
{
	struct frag_message *copy = frag_message_create();

	if (copy == NULL || tensors_reserve(copy, message->tensor_count) < 0)
		goto err_unref;
	if (message->metadata != NULL) {
		copy->metadata = fragi_metadata_copy(message->metadata);
		if (copy->metadata == NULL)
			goto err_unref;
	}
	if (message->type != NULL && message->value == message->inline_value) {
		memcpy(copy->inline_value, message->inline_value, sizeof(copy->inline_value));
		copy->value = copy->inline_value;
	} else if (message->type != NULL) {
		if (copy->box != NULL)
			fragi_box_unref(copy->box, NULL, 0);
		copy->box = fragi_box_ref(message->box);
		copy->value = message->value;
	}
	copy->type = message->type;
	copy->value_size = message->value_size;
	for (uint32_t i = 0; i < message->tensor_count; i++) {
		copy->tensors[i] = message->tensors[i];
		frag_tensor_ref(copy->tensors[i].tensor);
	}
	copy->tensor_count = message->tensor_count;
	copy->at_receive = message->at_receive;
	fragi_message_copy_stamps(copy, message);
	return copy;

err_unref:
	frag_message_unref(copy);
	return NULL;
}

struct frag_message *frag_message_writable(struct frag_message *message)
{
	struct frag_message *copy;

	if (atomic_load_explicit(&message->refs, memory_order_acquire) == 1) {
		message->shared = false;
		drop_blob(message);
		return message;
	}
	copy = message_copy(message);
	fragi_message_unref(message);
	return copy;
}
