// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <base/alloc.h>
#include <data/codec.h>
#include <data/metadata.h>

/* Bytes of a tensor's dtype code, bits, lanes, device type and ndim. */
#define TENSOR_KIND_BYTES 6u

/* Inline, because most calls have a size that is known at compile time. */
static inline int put(struct frag_writer *writer, const void *bytes, size_t size)
{
	uint8_t *at = fragi_writer_reserve(writer, size);

	if (at == NULL)
		return writer->error;
	memcpy(at, bytes, size);
	return 0;
}

static int put_u8(struct frag_writer *writer, uint8_t x)
{
	return put(writer, &x, sizeof(x));
}

static int put_u16(struct frag_writer *writer, uint16_t x)
{
	return put(writer, &x, sizeof(x));
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
	uint8_t kind[TENSOR_KIND_BYTES] = {dtype->code, dtype->bits,     0,
					   0,           FRAG_DEVICE_CPU, (uint8_t)tensor->dl.ndim};
	uint64_t body_bytes = tensor->compact_bytes;
	size_t name_length = strlen(named->name);

	if (tensor->dl.device.type == FRAG_DEVICE_CUDA)
		return -ENOTSUP;
	memcpy(kind + 2, &dtype->lanes, sizeof(dtype->lanes));
	put_u8(writer, (uint8_t)name_length);
	put(writer, named->name, name_length);
	put(writer, kind, sizeof(kind));
	put(writer, tensor->shape, (size_t)tensor->dl.ndim * sizeof(tensor->shape[0]));
	return put(writer, &body_bytes, sizeof(body_bytes));
}

static int encode_metadata(const struct frag_metadata *metadata, struct frag_writer *writer)
{
	uint32_t count = metadata != NULL ? frag_metadata_count(metadata) : 0;
	const struct fragi_type_info *info;
	const struct frag_type *type;
	const void *value;
	const char *key;
	size_t size, at;
	int r = put_u16(writer, (uint16_t)count);

	for (uint32_t i = 0; i < count && r == 0; i++) {
		key = fragi_metadata_at(metadata, i, &type, &value, &size);
		info = fragi_type_resolve(type);
		put_u8(writer, (uint8_t)strlen(key));
		frag_writer_put(writer, key, strlen(key));
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
 * The descriptors begin with a fixed part: version, flags, tensor count, acquisition time, type id,
 * bytes of the value.
 */
#define HEAD_BYTES 24u
#define HEAD_VALUE_SIZE 20u

static void put_head(uint8_t *head, const struct frag_message *message, uint64_t type_id)
{
	head[0] = FRAGI_DESCRIPTOR_VERSION;
	head[1] = 0;
	memcpy(head + 2, &message->tensor_count, sizeof(message->tensor_count));
	memcpy(head + 4, &message->acquisition_ns, sizeof(message->acquisition_ns));
	memcpy(head + 12, &type_id, sizeof(type_id));
	memset(head + HEAD_VALUE_SIZE, 0, sizeof(uint32_t));
}

static int encode_message(const struct frag_message *message, struct frag_writer *writer)
{
	const struct fragi_type_info *info =
		message->type != NULL ? fragi_type_resolve(message->type) : NULL;
	size_t head_at = writer->size, value_at;
	uint8_t *head = fragi_writer_reserve(writer, HEAD_BYTES);
	int r = 0;

	if (head == NULL)
		return writer->error;
	put_head(head, message, info != NULL ? info->id : 0);
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

int fragi_message_encode(const struct frag_message *message, const struct fragi_blob **out_blob)
{
	struct frag_message *owner = (struct frag_message *)(uintptr_t)message;
	struct frag_writer writer = {.limit = sizeof(struct fragi_blob) + FRAGI_DESCRIPTOR_MAX};
	struct fragi_blob *blob = atomic_load_explicit(&owner->blob, memory_order_acquire),
			  *other = NULL;
	int r;

	if (blob == NULL) {
		fragi_writer_reserve(&writer, sizeof(*blob));
		r = encode_message(message, &writer);
		if (r < 0) {
			fragi_free(writer.bytes);
			return r;
		}
		blob = (struct fragi_blob *)(void *)writer.bytes;
		blob->size = (uint32_t)(writer.size - sizeof(*blob));
		if (!atomic_compare_exchange_strong_explicit(&owner->blob, &other, blob,
							     memory_order_acq_rel,
							     memory_order_acquire)) {
			fragi_free(blob);
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
};

/* Reads a length and a name of that length, without a NUL in it, into out. */
static int get_name(struct frag_reader *reader, char out[FRAG_NAME_MAX + 1])
{
	const uint8_t *bytes;
	uint8_t length;

	if (get(reader, &length, sizeof(length)) < 0 || length > FRAG_NAME_MAX)
		return -EBADMSG;
	bytes = fragi_reader_skip(reader, length);
	if (bytes == NULL || memchr(bytes, '\0', length) != NULL)
		return -EBADMSG;
	memcpy(out, bytes, length);
	out[length] = '\0';
	return 0;
}

/* A tensor over the next body, which is still its owner's. */
static int tensor_over(struct limits *limits, struct frag_dtype dtype, uint8_t ndim,
		       const int64_t *shape, size_t bytes, struct frag_tensor **out)
{
	struct frag_dltensor dl = {
		.ndim = ndim, .dtype = dtype, .shape = (int64_t *)(uintptr_t)shape};

	if (limits->over == limits->over_end || limits->over->bytes != bytes)
		return -EBADMSG;
	dl.data = limits->over->data;
	dl.device = limits->over->device;
	limits->over++;
	return frag_tensor_wrap(&dl, NULL, NULL, out);
}

static int decode_tensor(struct frag_reader *reader, struct frag_message *message,
			 struct limits *limits)
{
	char name[FRAG_NAME_MAX + 1];
	struct frag_dtype dtype;
	int64_t shape[FRAG_TENSOR_NDIM_MAX];
	uint8_t kind[TENSOR_KIND_BYTES], ndim;
	struct frag_tensor *tensor;
	uint64_t stated;
	size_t bytes;
	int r;

	if (get_name(reader, name) < 0 || get(reader, kind, sizeof(kind)) < 0)
		return -EBADMSG;
	dtype = (struct frag_dtype){.code = kind[0], .bits = kind[1]};
	memcpy(&dtype.lanes, kind + 2, sizeof(dtype.lanes));
	ndim = kind[5];
	if (kind[4] != FRAG_DEVICE_CPU || ndim > FRAG_TENSOR_NDIM_MAX ||
	    get(reader, shape, ndim * sizeof(shape[0])) < 0 ||
	    get(reader, &stated, sizeof(stated)) < 0 ||
	    fragi_tensor_measure(dtype, ndim, shape, &bytes) < 0 || bytes != stated)
		return -EBADMSG;
	if (bytes > limits->bodies)
		return -EMSGSIZE;
	limits->bodies -= bytes;
	r = limits->over != NULL && bytes > 0
		    ? tensor_over(limits, dtype, ndim, shape, bytes, &tensor)
		    : fragi_tensor_create(limits->allocator, dtype, ndim, shape, &tensor);
	if (r < 0)
		return r;
	r = frag_message_add_tensor(message, name, tensor);
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
	char key[FRAG_NAME_MAX + 1];
	const uint8_t *wire;
	uint64_t type_id;
	uint32_t wire_size;
	void *value;
	size_t size;
	int r;

	if (get_name(reader, key) < 0 || frag_reader_get_u64(reader, &type_id) < 0 ||
	    frag_reader_get_u32(reader, &wire_size) < 0)
		return -EBADMSG;
	wire = fragi_reader_skip(reader, wire_size);
	if (wire == NULL)
		return -EBADMSG;
	r = measure_value(type_id, wire, wire_size, limits, &info, &size);
	if (r < 0)
		return r;
	r = fragi_metadata_append(metadata, key, strlen(key), info->type, size, &value);
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

static int decode_message(struct frag_reader *reader, struct frag_message *message,
			  struct limits *limits)
{
	const uint8_t *head = fragi_reader_skip(reader, HEAD_BYTES);
	uint16_t tensor_count;
	uint64_t type_id;
	uint32_t value_size;
	int r = 0;

	if (head == NULL || head[0] != FRAGI_DESCRIPTOR_VERSION || head[1] != 0)
		return -EBADMSG;
	memcpy(&tensor_count, head + 2, sizeof(tensor_count));
	if (tensor_count > FRAG_MESSAGE_TENSORS_MAX)
		return -EBADMSG;
	memcpy(&message->acquisition_ns, head + 4, sizeof(message->acquisition_ns));
	memcpy(&type_id, head + 12, sizeof(type_id));
	memcpy(&value_size, head + HEAD_VALUE_SIZE, sizeof(value_size));
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
