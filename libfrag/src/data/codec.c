// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <base/alloc.h>
#include <data/codec.h>
#include <data/memory.h>
#include <data/metadata.h>
#include <data/staging.h>

void fragi_blob_free(struct fragi_blob *blob)
{
	if (blob->home.pool == NULL) {
		fragi_free(blob);
		return;
	}
	fragi_pool_poison(&blob->size, FRAGI_BLOB_POOLED - offsetof(struct fragi_blob, size));
	fragi_pool_give(FRAGI_POOL_BLOB, &blob->home);
}

static struct fragi_blob *blob_take(void)
{
	struct fragi_blob *blob = fragi_pool_take(FRAGI_POOL_BLOB);

	if (blob != NULL)
		fragi_pool_unpoison(&blob->size,
				    FRAGI_BLOB_POOLED - offsetof(struct fragi_blob, size));
	return blob;
}

static inline int get(struct frag_reader *reader, void *out, size_t size)
{
	const uint8_t *at = fragi_reader_skip(reader, size);

	if (at == NULL)
		return -EBADMSG;
	memcpy(out, at, size);
	return 0;
}

/* Sets the u32 at offset `at` to the number of bytes written since offset `from`. */
static void patch_size(struct frag_writer *writer, size_t at, size_t from)
{
	uint32_t size = (uint32_t)(writer->size - from);

	memcpy(writer->bytes + at, &size, sizeof(size));
}

static int encode_tensor(const struct fragi_named_tensor *named, struct frag_writer *writer)
{
	const struct frag_tensor *tensor = named->tensor;
	const struct frag_dtype *dtype = &tensor->dl.dtype;
	uint64_t body_bytes = tensor->compact_bytes;
	size_t name_length = named->name[0] == '\0' ? 0 : strlen(named->name);
	size_t dims = (size_t)tensor->dl.ndim;
	uint8_t *at;

	if (!fragi_memory_can_be_sent(tensor->dl.device))
		return -ENOTSUP;
	at = fragi_writer_reserve(writer, fragi_descriptor_bytes(named));
	if (at == NULL)
		return writer->error;
	*at++ = (uint8_t)name_length;
	if (name_length > 0)
		memcpy(at, named->name, name_length);
	at += name_length;
	at[0] = dtype->code;
	at[1] = dtype->bits;
	memcpy(at + 2, &dtype->lanes, sizeof(dtype->lanes));
	at[4] = fragi_device_is_host(tensor->dl.device) ? FRAG_DEVICE_CPU : FRAG_DEVICE_CUDA;
	at[5] = (uint8_t)dims;
	at += FRAGI_DESCRIPTOR_KIND_BYTES;
	for (size_t i = 0; i < dims; i++, at += sizeof(tensor->shape[0]))
		memcpy(at, &tensor->shape[i], sizeof(tensor->shape[0]));
	memcpy(at, &body_bytes, sizeof(body_bytes));
	return 0;
}

static int encode_metadata(const struct frag_metadata *metadata, struct frag_writer *writer)
{
	uint16_t count = metadata != NULL ? (uint16_t)frag_metadata_count(metadata) : 0;
	uint8_t *head = fragi_writer_reserve(writer, sizeof(count));
	const struct fragi_type_info *info;
	const struct frag_type *type;
	const void *value;
	const char *key;
	uint8_t length;
	size_t size, at;
	int r = 0;

	if (head == NULL)
		return writer->error;
	memcpy(head, &count, sizeof(count));
	for (uint32_t i = 0; i < count && r == 0; i++) {
		key = fragi_metadata_at(metadata, i, &type, &value, &size);
		info = fragi_type_resolve(type);
		length = (uint8_t)strlen(key);
		frag_writer_put(writer, &length, sizeof(length));
		frag_writer_put(writer, key, length);
		frag_writer_put_u64(writer, info != NULL ? info->id : 0);
		at = writer->size;
		r = frag_writer_put_u32(writer, 0);
		if (r == 0)
			r = fragi_value_encode(info, value, size, writer);
		if (r == 0)
			patch_size(writer, at, at + sizeof(uint32_t));
	}
	return r;
}

/*
 * The descriptors begin with a fixed part: version, stamps, tensor count, bytes of the value, type
 * id. The stamps that the message has follow.
 */
#define HEAD_VALUE_SIZE 4u

static void put_head(uint8_t *head, const struct frag_message *message, uint64_t type_id)
{
	head[0] = FRAGI_DESCRIPTOR_VERSION;
	head[1] = message->stamps;
	head[2] = message->tensor_count;
	head[3] = 0;
	memset(head + HEAD_VALUE_SIZE, 0, sizeof(uint32_t));
	memcpy(head + 8, &type_id, sizeof(type_id));
}

/*
 * Appends those stamps that have a value; failures stay in the writer. A trail or label that does
 * not travel is taken out of the head.
 */
static __attribute__((noinline)) void encode_stamps(const struct frag_message *message,
						    size_t head_at, struct frag_writer *writer)
{
	const bool has_trail = (message->stamps & FRAGI_STAMP_TRAIL) != 0 &&
			       fragi_trail_travels(message->trail),
		   has_label = (message->stamps & FRAGI_STAMP_LABEL) != 0 &&
			       message->label->names != NULL;
	const struct fragi_trail_held held = {0};

	if (message->stamps & FRAGI_STAMP_ACQUIRED) {
		frag_writer_put_u64(writer, (uint64_t)message->acquisition_ns);
		frag_writer_put_u32(writer, message->clock);
	}
	if (message->stamps & FRAGI_STAMP_SEQUENCE)
		frag_writer_put_u64(writer, message->sequence);
	if (message->stamps & FRAGI_STAMP_TRACKED)
		frag_writer_put_u64(writer, message->tracking_id);
	if (!has_trail)
		writer->bytes[head_at + 1] &= (uint8_t)~FRAGI_STAMP_TRAIL;
	if (!has_label)
		writer->bytes[head_at + 1] &= (uint8_t)~FRAGI_STAMP_LABEL;
	if (has_trail || has_label)
		frag_writer_put(writer, &held, sizeof(held)); /* fragi_blob_set_held */
	if (has_trail)
		fragi_trail_encode(message->trail, writer);
	if (has_label)
		fragi_label_encode(message->label, writer);
}

void fragi_blob_set_held(const struct fragi_blob *blob, uint8_t *copy,
			 const struct fragi_trail_held *held)
{
	const uint8_t stamps = blob->bytes[1];
	size_t at = FRAGI_DESCRIPTOR_HEAD_BYTES;

	if ((stamps & (FRAGI_STAMP_TRAIL | FRAGI_STAMP_LABEL)) == 0)
		return;
	at += (stamps & FRAGI_STAMP_ACQUIRED) != 0 ? sizeof(uint64_t) + sizeof(uint32_t) : 0;
	at += (stamps & FRAGI_STAMP_SEQUENCE) != 0 ? sizeof(uint64_t) : 0;
	at += (stamps & FRAGI_STAMP_TRACKED) != 0 ? sizeof(uint64_t) : 0;
	memcpy(copy + at, held, sizeof(*held));
}

static int encode_message(const struct frag_message *message, struct frag_writer *writer)
{
	const struct fragi_type_info *info =
		message->type != NULL ? fragi_type_resolve(message->type) : NULL;
	size_t head_at = writer->size, value_at;
	uint8_t *head = fragi_writer_reserve(writer, FRAGI_DESCRIPTOR_HEAD_BYTES);
	int r = 0;

	if (head == NULL)
		return writer->error;
	put_head(head, message, info != NULL ? info->id : 0);
	if (message->stamps != 0)
		encode_stamps(message, head_at, writer);
	for (uint32_t i = 0; i < message->tensor_count && r == 0; i++)
		r = encode_tensor(&message->tensors[i], writer);
	value_at = writer->size;
	if (r == 0 && message->type != NULL)
		r = fragi_value_encode(info, message->value, message->value_size, writer);
	if (r == 0 && writer->error == 0)
		patch_size(writer, head_at + HEAD_VALUE_SIZE, value_at);
	if (r == 0)
		r = encode_metadata(message->metadata, writer);
	return r < 0 ? r : writer->error;
}

/* Into one of the pool's, which gives way to one from the heap if it is too small. */
static int blob_create(const struct frag_message *message, struct fragi_blob **out_blob)
{
	struct fragi_blob *pooled = blob_take(), *blob;
	struct frag_writer writer = {
		.bytes = (uint8_t *)pooled,
		.borrowed = true,
		.size = offsetof(struct fragi_blob, bytes),
		.capacity = FRAGI_BLOB_POOLED,
		.limit = offsetof(struct fragi_blob, bytes) + FRAGI_DESCRIPTOR_MAX,
	};
	int r;

	if (pooled == NULL)
		return -ENOMEM;
	r = encode_message(message, &writer);
	blob = (struct fragi_blob *)(void *)writer.bytes;
	if (!writer.borrowed)
		blob->home.pool = NULL;
	if (r < 0 || !writer.borrowed)
		fragi_blob_free(pooled);
	if (r == 0) {
		blob->size = (uint32_t)(writer.size - offsetof(struct fragi_blob, bytes));
		*out_blob = blob;
	} else if (!writer.borrowed) {
		fragi_free(blob);
	}
	return r;
}

int fragi_message_encode(const struct frag_message *message, const struct fragi_blob **out_blob)
{
	struct frag_message *owner = (struct frag_message *)(uintptr_t)message;
	struct fragi_blob *blob = atomic_load_explicit(&owner->blob, memory_order_acquire),
			  *other = NULL;
	int r;

	if (blob == NULL) {
		r = blob_create(message, &blob);
		if (r != 0)
			return r;
		if (!atomic_compare_exchange_strong_explicit(&owner->blob, &other, blob,
							     memory_order_acq_rel,
							     memory_order_acquire)) {
			fragi_blob_free(blob);
			blob = other;
		}
	}
	*out_blob = blob;
	return 0;
}

/* What is left of the limits while one message is decoded. */
struct limits {
	uint64_t bodies;
	uint64_t decoded;
	uint64_t type_id;                /* the unknown type id, when decoding returns -ENOENT */
	struct frag_resource *allocator; /* of the tensors */
	/* the memory of those that are not empty; NULL: from the allocator */
	const struct fragi_body *over, *over_end;
	bool without_memory;
};

/* Reads a length and a name of that length, without a NUL in it. NULL: it is none. */
static const uint8_t *get_name(struct frag_reader *reader, uint8_t *out_length)
{
	const uint8_t *length = fragi_reader_skip(reader, sizeof(*length)), *name;

	if (length == NULL || *length > FRAG_NAME_MAX)
		return NULL;
	name = fragi_reader_skip(reader, *length);
	if (name == NULL || (*length > 0 && memchr(name, '\0', *length) != NULL))
		return NULL;
	*out_length = *length;
	return name;
}

/* Where the bytes of a tensor are received: those for a GPU in memory that it reads fast. */
static struct frag_resource *allocator_of(const struct frag_tensor *tensor,
					  const struct limits *limits)
{
	struct frag_device gpu;

	return tensor->was_on_gpu && fragi_memory_gpu(&gpu) ? fragi_staging() : limits->allocator;
}

/* The memory of a tensor: of the next body, which is still its owner's, or its own. */
static int tensor_fill(struct frag_tensor *tensor, struct limits *limits)
{
	if (tensor->compact_bytes > limits->bodies)
		return -EMSGSIZE;
	limits->bodies -= tensor->compact_bytes;
	if (limits->without_memory)
		return 0;
	if (limits->over == NULL || tensor->compact_bytes == 0)
		return tensor->compact_bytes > 0 && tensor->compact_bytes <= FRAGI_SMALL_BODY_BYTES
			       ? fragi_tensor_allocate_small(tensor)
			       : fragi_tensor_allocate(tensor, allocator_of(tensor, limits));
	if (limits->over == limits->over_end || limits->over->bytes != tensor->compact_bytes)
		return -EBADMSG;
	fragi_tensor_place(tensor, limits->over->data, limits->over->device, NULL, NULL);
	if (!fragi_device_is_host(limits->over->device))
		tensor->sends_data = tensor->was_on_gpu = false; /* it is on one here */
	limits->over++;
	return 0;
}

static int decode_tensor(struct frag_reader *reader, struct frag_message *message,
			 struct limits *limits)
{
	uint8_t length, ndim;
	const uint8_t *name = get_name(reader, &length), *kind, *rest;
	int64_t shape[FRAG_TENSOR_NDIM_MAX];
	struct frag_tensor *tensor;
	struct frag_dtype dtype;
	uint64_t stated;
	int r;

	kind = name != NULL ? fragi_reader_skip(reader, FRAGI_DESCRIPTOR_KIND_BYTES) : NULL;
	if (kind == NULL || (kind[4] != FRAG_DEVICE_CPU && kind[4] != FRAG_DEVICE_CUDA) ||
	    kind[5] > FRAG_TENSOR_NDIM_MAX)
		return -EBADMSG;
	ndim = kind[5];
	rest = fragi_reader_skip(reader, ndim * sizeof(shape[0]) + sizeof(stated));
	if (rest == NULL)
		return -EBADMSG;
	dtype = (struct frag_dtype){.code = kind[0], .bits = kind[1]};
	memcpy(&dtype.lanes, kind + 2, sizeof(dtype.lanes));
	for (uint32_t i = 0; i < ndim; i++, rest += sizeof(shape[0]))
		memcpy(&shape[i], rest, sizeof(shape[0]));
	memcpy(&stated, rest, sizeof(stated));
	r = fragi_tensor_describe(dtype, ndim, shape, &tensor);
	if (r < 0)
		return r == -ENOMEM ? r : -EBADMSG;
	tensor->was_on_gpu = kind[4] == FRAG_DEVICE_CUDA;
	r = tensor->compact_bytes == stated ? tensor_fill(tensor, limits) : -EBADMSG;
	if (r < 0) {
		frag_tensor_unref(tensor);
		return r;
	}
	r = fragi_message_add_tensor(message, name, length, tensor);
	return r == 0 || r == -ENOMEM ? r : -EBADMSG;
}

/*
 * Looks up the type of an encoded value and computes how much memory the value takes, within the
 * limits.
 */
static int measure_value(uint64_t type_id, const uint8_t *wire, size_t wire_size,
			 struct limits *limits, const struct fragi_type_info **out_info,
			 size_t *out_size)
{
	const struct fragi_type_info *info = fragi_type_info_by_id(type_id);
	int r;

	if (info == NULL || !fragi_type_info_has_codec(info)) {
		limits->type_id = type_id;
		return -ENOENT;
	}
	r = fragi_value_measure(info, wire, wire_size, out_size);
	if (r < 0)
		return r;
	if (*out_size > limits->decoded)
		return -EMSGSIZE;
	limits->decoded -= *out_size;
	*out_info = info;
	return 0;
}

static int decode_value(struct frag_reader *reader, struct frag_message *message, uint64_t type_id,
			uint32_t wire_size, struct limits *limits)
{
	const uint8_t *wire = fragi_reader_skip(reader, wire_size);
	const struct fragi_type_info *info;
	void *value;
	size_t size;
	int r;

	if (wire == NULL || (type_id == 0 && wire_size > 0))
		return -EBADMSG;
	if (type_id == 0)
		return 0;
	r = measure_value(type_id, wire, wire_size, limits, &info, &size);
	if (r == 0)
		r = frag_message_set_value(message, info->type, NULL, size, &value);
	return r == 0 ? fragi_value_decode(info, wire, wire_size, value, size) : r;
}

static int decode_metadatum(struct frag_reader *reader, struct frag_metadata *metadata,
			    struct limits *limits)
{
	const struct fragi_type_info *info;
	const uint8_t *wire;
	uint64_t type_id;
	uint32_t wire_size;
	uint8_t length;
	const uint8_t *key = get_name(reader, &length);
	void *value;
	size_t size;
	int r;

	if (key == NULL || frag_reader_get_u64(reader, &type_id) < 0 ||
	    frag_reader_get_u32(reader, &wire_size) < 0)
		return -EBADMSG;
	wire = fragi_reader_skip(reader, wire_size);
	if (wire == NULL)
		return -EBADMSG;
	r = measure_value(type_id, wire, wire_size, limits, &info, &size);
	if (r < 0)
		return r;
	r = fragi_metadata_append(metadata, (const char *)key, length, info->type, size, &value);
	if (r < 0)
		return r == -ENOMEM ? r : -EBADMSG;
	return fragi_value_decode(info, wire, wire_size, value, size);
}

static int decode_metadata(struct frag_reader *reader, struct frag_message *message,
			   struct limits *limits)
{
	struct frag_metadata *metadata;
	uint16_t count;
	int r = 0;

	if (get(reader, &count, sizeof(count)) < 0 || count > FRAG_METADATA_KEYS_MAX)
		return -EBADMSG;
	if (count == 0)
		return 0;
	metadata = fragi_metadata_create(FRAG_METADATA_DEFAULT);
	if (metadata == NULL)
		return -ENOMEM;
	fragi_message_set_metadata(message, metadata);
	for (uint32_t i = 0; i < count && r == 0; i++)
		r = decode_metadatum(reader, metadata, limits);
	return r;
}

static int decode_stamps(struct frag_reader *reader, struct frag_message *message, uint8_t stamps)
{
	struct fragi_trail_held held;
	uint64_t acquisition_ns = 0;
	struct fragi_label *label;
	struct fragi_trail *trail;
	int r = 0;

	if ((stamps & FRAGI_STAMP_ACQUIRED) != 0) {
		r = frag_reader_get_u64(reader, &acquisition_ns) < 0 ||
				    frag_reader_get_u32(reader, &message->clock) < 0 ||
				    !fragi_clock_exists(message->clock)
			    ? -EBADMSG
			    : 0;
		message->acquisition_ns = (int64_t)acquisition_ns;
	}
	if (r == 0 && (stamps & FRAGI_STAMP_SEQUENCE) != 0)
		r = frag_reader_get_u64(reader, &message->sequence);
	if (r == 0 && (stamps & FRAGI_STAMP_TRACKED) != 0)
		r = frag_reader_get_u64(reader, &message->tracking_id);
	message->stamps = stamps & FRAGI_STAMPS_SENT;
	if (r == 0 && (stamps & (FRAGI_STAMP_TRAIL | FRAGI_STAMP_LABEL)) != 0)
		r = frag_reader_get(reader, &held, sizeof(held));
	if (r == 0 && (stamps & FRAGI_STAMP_TRAIL) != 0) {
		r = fragi_trail_decode(reader, &trail);
		if (r == 0) {
			trail->held = held;
			fragi_message_set_trail(message, trail);
		}
	}
	if (r == 0 && (stamps & FRAGI_STAMP_LABEL) != 0) {
		r = fragi_label_decode(reader, &label);
		if (r == 0) {
			label->held_ns = held.ns;
			fragi_message_set_label(message, label);
		}
	}
	return r == -ENOMEM ? r : r < 0 ? -EBADMSG : 0;
}

static int decode_message(struct frag_reader *reader, struct frag_message *message,
			  struct limits *limits)
{
	const uint8_t *head = fragi_reader_skip(reader, FRAGI_DESCRIPTOR_HEAD_BYTES);
	uint16_t tensor_count;
	uint64_t type_id;
	uint32_t value_size;
	int r = 0;

	if (head == NULL || head[0] != FRAGI_DESCRIPTOR_VERSION)
		return -EBADMSG;
	memcpy(&tensor_count, head + 2, sizeof(tensor_count));
	if (tensor_count > FRAG_MESSAGE_TENSORS_MAX)
		return -EBADMSG;
	memcpy(&value_size, head + HEAD_VALUE_SIZE, sizeof(value_size));
	memcpy(&type_id, head + 8, sizeof(type_id));
	if (head[1] != 0)
		r = decode_stamps(reader, message, head[1]);
	for (uint32_t i = 0; i < tensor_count && r == 0; i++)
		r = decode_tensor(reader, message, limits);
	if (r == 0)
		r = decode_value(reader, message, type_id, value_size, limits);
	if (r == 0)
		r = decode_metadata(reader, message, limits);
	if (r == 0 && frag_reader_left(reader) > 0)
		r = -EBADMSG;
	return r;
}

int fragi_message_decode(const void *bytes, size_t size, uint64_t limit_bytes,
			 struct frag_message **out_message, uint64_t *out_type_id)
{
	return fragi_message_decode_in(NULL, bytes, size, limit_bytes, out_message, out_type_id);
}

static int decode(const void *bytes, size_t size, struct limits *limits,
		  struct frag_message **out_message, uint64_t *out_type_id)
{
	struct frag_reader reader = {bytes, (const uint8_t *)bytes + size};
	struct frag_message *message;
	int r;

	if (size > FRAGI_DESCRIPTOR_MAX)
		return -EMSGSIZE;
	message = frag_message_create();
	if (message == NULL)
		return -ENOMEM;
	r = decode_message(&reader, message, limits);
	if (r == 0 && limits->over != limits->over_end)
		r = -EBADMSG;
	if (r < 0) {
		frag_message_unref(message);
		if (r == -ENOENT && out_type_id != NULL)
			*out_type_id = limits->type_id;
		return r;
	}
	fragi_message_share(message);
	*out_message = message;
	return 0;
}

int fragi_message_decode_in(struct frag_resource *allocator, const void *bytes, size_t size,
			    uint64_t limit_bytes, struct frag_message **out_message,
			    uint64_t *out_type_id)
{
	struct limits limits = {
		.bodies = limit_bytes, .decoded = FRAGI_DECODED_MAX, .allocator = allocator};

	return decode(bytes, size, &limits, out_message, out_type_id);
}

int fragi_message_describe(const void *bytes, size_t size, struct frag_message **out_message)
{
	struct limits limits = {
		.bodies = UINT64_MAX, .decoded = FRAGI_DECODED_MAX, .without_memory = true};

	return decode(bytes, size, &limits, out_message, NULL);
}

int fragi_message_decode_over(const struct fragi_body *bodies, uint32_t body_count,
			      const void *bytes, size_t size, struct frag_message **out_message,
			      uint64_t *out_type_id)
{
	struct limits limits = {.bodies = UINT64_MAX,
				.decoded = FRAGI_DECODED_MAX,
				.over = bodies,
				.over_end = bodies + body_count};
	int r = decode(bytes, size, &limits, out_message, out_type_id);

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < (*out_message)->tensor_count; i++) {
		struct frag_tensor *tensor = (*out_message)->tensors[i].tensor;

		if (tensor->compact_bytes == 0)
			continue;
		tensor->release = bodies->release;
		tensor->context = bodies->owner;
		bodies++;
	}
	return 0;
}
