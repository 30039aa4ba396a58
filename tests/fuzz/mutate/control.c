// SPDX-License-Identifier: Apache-2.0
#include "mutate.h"

/*
 * Changes one field of one frame somewhere in its tree, and makes all lengths around it right
 * again: random bytes hardly ever leave a frame whole. A tree is guessed from the bytes: what reads
 * as fields is taken for a message.
 */
#define ROOM 65536
#define FIELDS_MAX 256

struct field {
	const uint8_t *at, *content, *end; /* at: its tag; content: behind tag and length */
	uint32_t wire_type;
};

static const uint8_t *get_varint(const uint8_t *at, const uint8_t *end, uint64_t *out)
{
	*out = 0;
	for (int shift = 0; at < end && shift < 64; shift += 7) {
		*out |= (uint64_t)(*at & 0x7f) << shift;
		if ((*at++ & 0x80) == 0)
			return at;
	}
	return NULL;
}

static size_t put_varint(uint8_t *out, uint64_t value)
{
	size_t n = 0;

	do {
		out[n++] = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
		value >>= 7;
	} while (value > 0);
	return n;
}

/* The fields of a message, or 0 when the bytes are none. */
static size_t read_fields(const uint8_t *at, const uint8_t *end, struct field fields[FIELDS_MAX])
{
	size_t count = 0;
	uint64_t tag, length;

	while (at < end && count < FIELDS_MAX) {
		struct field *field = &fields[count++];

		field->at = at;
		at = get_varint(at, end, &tag);
		if (at == NULL || tag >> 3 == 0)
			return 0;
		field->wire_type = tag & 7;
		field->content = at;
		if (field->wire_type == 0) {
			at = get_varint(at, end, &length);
		} else if (field->wire_type == 1 && end - at >= 8) {
			at += 8;
		} else if (field->wire_type == 2) {
			at = get_varint(at, end, &length);
			if (at == NULL || length > (uint64_t)(end - at))
				return 0;
			field->content = at;
			at += length;
		} else {
			return 0;
		}
		if (at == NULL)
			return 0;
		field->end = at;
	}
	return at == end ? count : 0;
}

static uint64_t interesting(void)
{
	static const uint64_t values[] = {
		0,          1,          2,          127,        128,       255,        4095,
		4096,       4097,       65535,      65536,      65537,     1u << 20,   1u << 22,
		0x7fffffff, 0x80000000, 0xffffffff, 1ull << 32, INT64_MAX, 1ull << 63, UINT64_MAX};

	return random_below(3) == 0 ? mutate_state
				    : values[random_below(sizeof(values) / sizeof(values[0]))];
}

static size_t put_field(uint8_t *out, size_t room)
{
	uint32_t wire_type = random_below(3);
	size_t n = put_varint(out, (uint64_t)(1 + random_below(32)) << 3 | wire_type);

	if (room < 32)
		return 0;
	if (wire_type == 0)
		return n + put_varint(out + n, interesting());
	if (wire_type == 1) {
		uint64_t value = interesting();

		memcpy(out + n, &value, 8);
		return n + 8;
	}
	out[n++] = 4;
	memcpy(out + n, "name", 4);
	return n + 4;
}

static size_t mutate_message(const uint8_t *bytes, size_t size, uint8_t *out, size_t room,
			     int depth);

/* The content of one field, changed, behind its tag. */
static size_t mutate_field(const struct field *field, uint8_t *out, size_t room, int depth)
{
	static uint8_t inner[8][ROOM];
	uint8_t *content = inner[depth];
	struct field fields[1 + FIELDS_MAX];
	uint64_t tag;
	size_t n, length = (size_t)(field->end - field->content);

	get_varint(field->at, field->end, &tag);
	n = put_varint(out, tag);
	if (field->wire_type == 0)
		return n + put_varint(out + n, interesting());
	if (field->wire_type == 1) {
		uint64_t value = interesting();

		memcpy(out + n, &value, 8);
		return n + 8;
	}
	if (depth < 7 && length > 1 && read_fields(field->content, field->end, fields) > 0 &&
	    random_below(8) != 0) {
		length = mutate_message(field->content, length, content, ROOM / 2, depth + 1);
	} else {
		if (length > ROOM / 4)
			length = ROOM / 4;
		memcpy(content, field->content, length);
		length = LLVMFuzzerMutate(content, length, length + 64);
	}
	if (n + 10 + length > room)
		return 0;
	n += put_varint(out + n, length);
	memcpy(out + n, content, length);
	return n + length;
}

static size_t append(uint8_t *out, size_t n, size_t room, const uint8_t *from, const uint8_t *to)
{
	size_t size = (size_t)(to - from);

	if (n + size > room)
		return n;
	memcpy(out + n, from, size);
	return n + size;
}

static size_t mutate_message(const uint8_t *bytes, size_t size, uint8_t *out, size_t room,
			     int depth)
{
	struct field fields[FIELDS_MAX];
	size_t count = read_fields(bytes, bytes + size, fields), chosen, n = 0;
	uint32_t how = random_below(10);

	if (count == 0 || how == 0) {
		n = append(out, 0, room, bytes, bytes + size);
		return n + put_field(out + n, room - n);
	}
	chosen = random_below((uint32_t)count);
	for (size_t i = 0; i < count; i++) {
		if (i != chosen || how == 2)
			n = append(out, n, room, fields[i].at, fields[i].end);
		if (i == chosen && how == 2) /* twice */
			n = append(out, n, room, fields[i].at, fields[i].end);
		else if (i == chosen && how > 2)
			n += mutate_field(&fields[i], out + n, room - n, depth);
		/* 1: left out */
	}
	return n;
}

/* A frame somewhere in the stream: *out_at its length, its envelope behind it. */
static bool find_frame(const uint8_t *bytes, size_t size, size_t *out_at, uint32_t *out_length)
{
	size_t at = 1, starts[64];
	uint32_t length, count = 0;

	while (at + 4 <= size && count < 64) {
		memcpy(&length, bytes + at, 4);
		if (length > size - at - 4)
			break;
		starts[count++] = at;
		at += 4 + length;
	}
	if (count == 0)
		return false;
	*out_at = starts[random_below(count)];
	memcpy(out_length, bytes + *out_at, 4);
	return true;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t max, unsigned int seed)
{
	static uint8_t out[ROOM];
	uint32_t length, changed;
	size_t at, tail;

	mutate_begin(seed);
	if (random_below(10) == 0 || size > ROOM / 2 || !find_frame(bytes, size, &at, &length))
		return LLVMFuzzerMutate(bytes, size, max);
	changed = (uint32_t)mutate_message(bytes + at + 4, length, out, ROOM - 64, 0);
	tail = size - at - 4 - length;
	if (at + 4 + changed + tail > max)
		return LLVMFuzzerMutate(bytes, size, max);
	memmove(bytes + at + 4 + changed, bytes + at + 4 + length, tail);
	memcpy(bytes + at, &changed, 4);
	memcpy(bytes + at + 4, out, changed);
	return at + 4 + changed + tail;
}
