// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <base/alloc.h>
#include <wire/frame.h>

/*
 * bytes[0 .. start) was handed out and is dropped at the next feed, bytes[start .. size) is still
 * to come. Room is made for what has arrived, not for what a length announces, so a peer that
 * announces much and sends little costs little.
 */
#define HEAD_BYTES 4u
#define CAPACITY_MIN 4096u
#define CAPACITY_KEPT (256u << 10) /* a larger buffer is given back once it is empty */

void fw_reader_init(struct fw_reader *reader, size_t limit)
{
	*reader = (struct fw_reader){.limit = limit < FW_FRAME_MAX ? limit : FW_FRAME_MAX};
}

/* Frames carry tokens and keys: no buffer is given back with their bytes. */
static void reader_drop(struct fw_reader *reader)
{
	if (reader->bytes != NULL)
		explicit_bzero(reader->bytes, reader->capacity);
	fragi_free(reader->bytes);
	reader->bytes = NULL;
	reader->capacity = 0;
}

void fw_reader_fini(struct fw_reader *reader)
{
	reader_drop(reader);
	reader->size = reader->start = 0;
	reader->frame_since_ns = 0;
}

static uint32_t get_u32(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
	       (uint32_t)bytes[3] << 24;
}

static void reader_compact(struct fw_reader *reader)
{
	size_t left = reader->size - reader->start;

	if (left == 0 && reader->capacity > CAPACITY_KEPT) {
		reader_drop(reader);
	} else if (reader->start != 0) {
		memmove(reader->bytes, reader->bytes + reader->start, left);
		explicit_bzero(reader->bytes + left, reader->start);
	}
	reader->start = 0;
	reader->size = left;
}

static int reader_reserve(struct fw_reader *reader, size_t size)
{
	size_t capacity = reader->capacity < CAPACITY_MIN ? CAPACITY_MIN : reader->capacity;
	uint8_t *bytes;

	if (size <= reader->capacity)
		return 0;
	while (capacity < size)
		capacity *= 2;
	bytes = fragi_malloc(capacity);
	if (bytes == NULL)
		return -ENOMEM;
	if (reader->size > 0)
		memcpy(bytes, reader->bytes, reader->size);
	reader_drop(reader);
	reader->bytes = bytes;
	reader->capacity = capacity;
	return 0;
}

int fw_reader_feed(struct fw_reader *reader, const void *bytes, size_t size, int64_t now_ns)
{
	if (size == 0)
		return 0;
	reader_compact(reader);
	if (size > FW_FRAME_MAX + HEAD_BYTES || reader->size > FW_FRAME_MAX + HEAD_BYTES)
		return -EMSGSIZE;
	if (reader_reserve(reader, reader->size + size) < 0)
		return -ENOMEM;
	memcpy(reader->bytes + reader->size, bytes, size);
	reader->size += size;
	if (reader->frame_since_ns == 0)
		reader->frame_since_ns = now_ns != 0 ? now_ns : 1;
	reader->fed_ns = now_ns != 0 ? now_ns : 1;
	return 0;
}

int fw_reader_next(struct fw_reader *reader, const uint8_t **out_bytes, size_t *out_size,
		   struct frag_err *err)
{
	size_t left = reader->size - reader->start;
	uint32_t length;

	if (left == 0)
		reader->frame_since_ns = 0;
	if (left < HEAD_BYTES)
		return 0;
	length = get_u32(reader->bytes + reader->start);
	if (length == 0)
		return frag_err_set(err, -EBADMSG, "a frame of length 0 came");
	if (length > reader->limit)
		return frag_err_set(err, -EMSGSIZE,
				    "a frame of %u bytes was announced, at most %zu are taken",
				    length, reader->limit);
	if (left - HEAD_BYTES < length)
		return 0;
	*out_bytes = reader->bytes + reader->start + HEAD_BYTES;
	*out_size = length;
	reader->start += HEAD_BYTES + length;
	/* What follows in the buffer came at the last feed at the latest. */
	reader->frame_since_ns = reader->start < reader->size ? reader->fed_ns : 0;
	return 1;
}
