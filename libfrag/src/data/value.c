// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <data/codec.h>
#include <data/collection.h>

int fragi_type_check_size(const struct frag_type *type, size_t size)
{
	const struct fragi_type_info *info;

	if (type->size != 0)
		return size == type->size ? 0 : -EINVAL;
	if (size > PTRDIFF_MAX - 1)
		return -EINVAL;
	if (!fragi_type_is_array(type))
		return 0;
	info = fragi_type_info(type);
	if (info != NULL && fragi_type_is_collection(info))
		return size >= FRAGI_COLLECTION_HEAD ? 0 : -EINVAL;
	return info != NULL && info->kind == FRAGI_TYPE_ARRAY &&
			       size % info->element->type->size == 0
		       ? 0
		       : -EINVAL;
}

void fragi_array_fini(void *value)
{
	(void)value;
}

void fragi_value_fini(const struct frag_type *type, void *value, size_t size)
{
	const struct frag_type *element;

	if (type->fini != fragi_array_fini) {
		type->fini(value);
		return;
	}
	element = fragi_type_info(type)->element->type;
	for (size_t at = 0; at < size; at += element->size)
		element->fini((char *)value + at);
}

/* The codec. */

/* Encodes one value of fixed size at `to`. Returns the end of what it wrote. */
static uint8_t *pack(const struct fragi_type_info *info, const uint8_t *value, uint8_t *to)
{
	if (info->kind == FRAGI_TYPE_SCALAR || info->is_dense) {
		memcpy(to, value, info->type->size);
		return to + info->type->size;
	}
	for (uint32_t i = 0; i < info->field_count; i++) {
		const struct fragi_type_field *field = &info->fields[i];
		const uint8_t *from = value + field->offset;
		size_t size = field->of->type->size;

		if (field->of->is_dense) {
			memcpy(to, from, field->count * size);
			to += field->count * size;
			continue;
		}
		for (uint32_t k = 0; k < field->count; k++, from += size)
			to = pack(field->of, from, to);
	}
	return to;
}

/* Decodes one value of fixed size. Returns the end of what it read; NULL: not a valid value. */
static const uint8_t *unpack(const struct fragi_type_info *info, const uint8_t *from,
			     uint8_t *value)
{
	if (info->is_dense) {
		memcpy(value, from, info->type->size);
		return from + info->type->size;
	}
	if (info->kind == FRAGI_TYPE_SCALAR) {
		/* A bool: reading one with any other byte would be undefined behaviour. */
		*value = *from;
		return *from <= 1 ? from + 1 : NULL;
	}
	for (uint32_t i = 0; i < info->field_count; i++) {
		const struct fragi_type_field *field = &info->fields[i];
		uint8_t *to = value + field->offset;
		size_t size = field->of->type->size;

		if (field->of->is_dense) {
			memcpy(to, from, field->count * size);
			from += field->count * size;
			continue;
		}
		for (uint32_t k = 0; k < field->count; k++, to += size) {
			from = unpack(field->of, from, to);
			if (from == NULL)
				return NULL;
		}
	}
	return from;
}

static int encode_fixed(const struct fragi_type_info *info, const uint8_t *value, size_t count,
			struct frag_writer *writer)
{
	uint64_t size;
	uint8_t *to;

	if (info->is_dense)
		return frag_writer_put(writer, value, count * info->type->size);
	if (__builtin_mul_overflow(info->wire_size, count, &size))
		return writer->error = -EMSGSIZE;
	to = fragi_writer_reserve(writer, size);
	if (to == NULL)
		return writer->error;
	for (size_t i = 0; i < count; i++)
		to = pack(info, value + i * info->type->size, to);
	return 0;
}

static int encode_custom(const struct fragi_type_info *info, const void *value,
			 struct frag_writer *writer)
{
	int r = info->type->encode(value, writer);

	return r < 0 ? r : writer->error;
}

static int encode_array(const struct fragi_type_info *info, const uint8_t *value, size_t size,
			struct frag_writer *writer)
{
	const struct fragi_type_info *element = info->element;
	size_t count = size / element->type->size, before;
	int r;

	if (element->kind != FRAGI_TYPE_CUSTOM)
		return encode_fixed(element, value, count, writer);
	if (count > UINT32_MAX)
		return -EMSGSIZE;
	r = frag_writer_put_u32(writer, (uint32_t)count);
	for (size_t i = 0; i < count && r == 0; i++) {
		before = writer->size;
		r = encode_custom(element, value + i * element->type->size, writer);
		/*
		 * The receiver bounds the number of elements by the number of bytes, so each
		 * element must have at least one.
		 */
		if (r == 0 && writer->size == before)
			r = -EPROTOTYPE;
	}
	return r;
}

/* Appends the bytes of one element and then, in front of them, their number. */
static int encode_element(const struct fragi_type_info *element, const void *value, size_t size,
			  struct frag_writer *writer)
{
	size_t at = writer->size;
	uint32_t bytes;
	int r = frag_writer_put_u32(writer, 0);

	if (r == 0)
		r = fragi_value_encode(element, value, size, writer);
	if (r == 0 && writer->size - at - sizeof(bytes) > UINT32_MAX)
		r = -EMSGSIZE;
	if (r < 0)
		return r;
	bytes = (uint32_t)(writer->size - at - sizeof(bytes));
	memcpy(writer->bytes + at, &bytes, sizeof(bytes));
	return 0;
}

static int encode_collection(const struct fragi_type_info *info, const void *value, size_t size,
			     struct frag_writer *writer)
{
	const struct fragi_type_info *key =
		info->kind == FRAGI_TYPE_MAP ? fragi_type_info(&frag_type_string) : NULL;
	const void *part;
	uint32_t count;
	int r;

	if (!fragi_collection_is_whole(info, value, size))
		return -EPROTOTYPE;
	count = frag_collection_count(value);
	r = frag_writer_put_u32(writer, count);
	for (uint32_t i = 0; i < count && r == 0; i++) {
		if (key != NULL) {
			part = frag_collection_key(value, i);
			r = encode_element(key, part, strlen(part), writer);
		}
		part = frag_collection_at(value, i, &size);
		if (r == 0)
			r = encode_element(info->element, part, size, writer);
	}
	return r;
}

int fragi_value_encode(const struct fragi_type_info *info, const void *value, size_t size,
		       struct frag_writer *writer)
{
	switch (info != NULL ? info->kind : FRAGI_TYPE_OPAQUE) {
	case FRAGI_TYPE_SCALAR:
	case FRAGI_TYPE_PLAIN:
		return encode_fixed(info, value, 1, writer);
	case FRAGI_TYPE_STRING:
	case FRAGI_TYPE_BYTES:
		return frag_writer_put(writer, value, size);
	case FRAGI_TYPE_CUSTOM:
		return encode_custom(info, value, writer);
	case FRAGI_TYPE_ARRAY:
		if (info->element->kind != FRAGI_TYPE_OPAQUE)
			return encode_array(info, value, size, writer);
		return -EPROTOTYPE;
	case FRAGI_TYPE_LIST:
	case FRAGI_TYPE_MAP:
		return encode_collection(info, value, size, writer);
	case FRAGI_TYPE_OPAQUE:
	default:
		return -EPROTOTYPE;
	}
}

static int measure_array(const struct fragi_type_info *element, const uint8_t *wire,
			 size_t wire_size, size_t *out_size)
{
	uint64_t count;
	uint32_t stated;

	if (element->kind == FRAGI_TYPE_CUSTOM) {
		if (wire_size < sizeof(stated))
			return -EBADMSG;
		memcpy(&stated, wire, sizeof(stated));
		if (stated > wire_size - sizeof(stated))
			return -EBADMSG;
		count = stated;
	} else {
		if (wire_size % element->wire_size != 0)
			return -EBADMSG;
		count = wire_size / element->wire_size;
	}
	if (count > FRAGI_DECODED_MAX / element->type->size)
		return -EMSGSIZE;
	*out_size = count * element->type->size;
	return 0;
}

/* A part of an encoded collection: `size` bytes at `bytes`. Returns 0 or -EBADMSG. */
static int get_part(struct frag_reader *reader, const uint8_t **out_bytes, uint32_t *out_size)
{
	if (frag_reader_get_u32(reader, out_size) < 0)
		return -EBADMSG;
	*out_bytes = fragi_reader_skip(reader, *out_size);
	return *out_bytes != NULL ? 0 : -EBADMSG;
}

/* Returns whether a key is a text that comes after the key before it (NULL: it is the first). */
static bool key_follows(const uint8_t *before, uint32_t before_size, const uint8_t *key,
			uint32_t size)
{
	uint32_t least = before_size < size ? before_size : size;
	int order = before != NULL ? memcmp(before, key, least) : -1;

	return memchr(key, '\0', size) == NULL && (order < 0 || (order == 0 && before_size < size));
}

/*
 * Reads an encoded collection.
 * - bytes: zeroed memory for the value; NULL: only checks the bytes and computes how much that is
 * Every part has at least a size of four bytes, so their number is bounded by the bytes that are
 * there, and the depth by the type.
 */
static int read_collection(const struct fragi_type_info *info, const uint8_t *wire,
			   size_t wire_size, void *bytes, size_t *out_size)
{
	const struct fragi_type_info *element = info->element;
	bool is_map = info->kind == FRAGI_TYPE_MAP;
	struct frag_reader reader = {wire, wire + wire_size}, keys;
	const uint8_t *part, *before = NULL;
	uint32_t count, part_size, before_size = 0;
	struct fragi_layout layout;
	uint8_t *to;
	size_t size;
	int r;

	if (frag_reader_get_u32(&reader, &count) < 0 ||
	    count > frag_reader_left(&reader) / (is_map ? 8 : 4))
		return -EBADMSG;
	layout = fragi_layout_begin(bytes, FRAGI_DECODED_MAX, count,
				    (uint64_t)count * (is_map ? 2 : 1));
	keys = reader;
	for (uint32_t i = 0; i < count && is_map; i++) {
		if (get_part(&keys, &part, &part_size) < 0 ||
		    !key_follows(before, before_size, part, part_size))
			return -EBADMSG;
		to = fragi_layout_add(&layout, part_size, 1, true);
		if (to != NULL)
			memcpy(to, part, part_size);
		before = part;
		before_size = part_size;
		if (get_part(&keys, &part, &part_size) < 0)
			return -EBADMSG;
	}
	for (uint32_t i = 0; i < count; i++) {
		if ((is_map && get_part(&reader, &part, &part_size) < 0) ||
		    get_part(&reader, &part, &part_size) < 0)
			return -EBADMSG;
		r = fragi_value_measure(element, part, part_size, &size);
		if (r < 0)
			return r;
		to = fragi_layout_add(&layout, size, fragi_element_align(element),
				      element->kind == FRAGI_TYPE_STRING);
		if (layout.used > layout.limit)
			return -EMSGSIZE;
		r = to != NULL ? fragi_value_decode(element, part, part_size, to, size) : 0;
		if (r < 0)
			return r;
	}
	if (frag_reader_left(&reader) > 0)
		return -EBADMSG;
	*out_size = layout.used;
	return 0;
}

int fragi_value_measure(const struct fragi_type_info *info, const uint8_t *wire, size_t wire_size,
			size_t *out_size)
{
	int r;

	switch (info->kind) {
	case FRAGI_TYPE_SCALAR:
	case FRAGI_TYPE_PLAIN:
		if (wire_size != info->wire_size)
			return -EBADMSG;
		*out_size = info->type->size;
		break;
	case FRAGI_TYPE_STRING:
	case FRAGI_TYPE_BYTES:
		*out_size = wire_size;
		break;
	case FRAGI_TYPE_CUSTOM:
		*out_size = info->type->size;
		break;
	case FRAGI_TYPE_ARRAY:
		if (info->element->kind == FRAGI_TYPE_OPAQUE)
			return -EBADMSG;
		return measure_array(info->element, wire, wire_size, out_size);
	case FRAGI_TYPE_LIST:
	case FRAGI_TYPE_MAP:
		r = read_collection(info, wire, wire_size, NULL, out_size);
		if (r < 0)
			return r;
		break;
	case FRAGI_TYPE_OPAQUE:
	default:
		return -EBADMSG;
	}
	return *out_size <= FRAGI_DECODED_MAX ? 0 : -EMSGSIZE;
}

static int decode_custom(const struct fragi_type_info *info, struct frag_reader *reader,
			 void *value)
{
	return info->type->decode(value, reader) < 0 ? -EBADMSG : 0;
}

int fragi_value_decode(const struct fragi_type_info *info, const uint8_t *wire, size_t wire_size,
		       void *value, size_t size)
{
	const struct fragi_type_info *element =
		info->kind == FRAGI_TYPE_ARRAY ? info->element : info;
	struct frag_reader reader = {wire, wire + wire_size};
	uint8_t *to = value, *end = to + size;

	if (fragi_type_is_collection(info))
		return read_collection(info, wire, wire_size, value, &size);
	if (info->is_dense || info->kind == FRAGI_TYPE_STRING || info->kind == FRAGI_TYPE_BYTES) {
		if (size > 0)
			memcpy(value, wire, size);
		return 0;
	}
	if (element->kind == FRAGI_TYPE_CUSTOM) {
		if (info->kind == FRAGI_TYPE_ARRAY)
			reader.at += sizeof(uint32_t);
		for (; to < end; to += element->type->size)
			if (decode_custom(element, &reader, to) < 0)
				return -EBADMSG;
		return frag_reader_left(&reader) == 0 ? 0 : -EBADMSG;
	}
	for (; to < end; to += element->type->size) {
		wire = unpack(element, wire, to);
		if (wire == NULL)
			return -EBADMSG;
	}
	return 0;
}
