/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_DATA_STREAM_H
#define FRAGI_DATA_STREAM_H

#include <stdbool.h>

#include <base/diag.h>
#include <frag/type.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the wire format is little-endian, and this code copies values without swapping bytes"
#endif

/* A buffer that grows. After a failure it accepts nothing more; `error` is that failure. */
struct frag_writer {
	uint8_t *bytes; /* owned: fragi_free; or borrowed, until it grows */
	bool borrowed;
	size_t size, capacity;
	size_t limit; /* of size */
	int error;    /* 0, -ENOMEM, or -EMSGSIZE beyond the limit */
};

/* A position in bytes that are read. */
struct frag_reader {
	const uint8_t *at, *end;
};

int fragi_writer_grow(struct frag_writer *writer, size_t size);
/* Appends `size` bytes, which the caller fills in. Returns their address; NULL on failure. */
static inline uint8_t *fragi_writer_reserve(struct frag_writer *writer, size_t size)
{
	uint8_t *at;

	if (__builtin_expect(writer->error != 0 || (writer->capacity - writer->size < size &&
						    fragi_writer_grow(writer, size) < 0),
			     0))
		return NULL;
	/* bytes is NULL as long as nothing was written */
	at = size > 0 ? writer->bytes + writer->size : writer->bytes;
	writer->size += size;
	return at;
}

/* Skips the next `size` bytes. Returns their address; NULL when fewer are left. */
static inline const uint8_t *fragi_reader_skip(struct frag_reader *reader, size_t size)
{
	const uint8_t *at = reader->at;

	if (__builtin_expect(size > (size_t)(reader->end - at), 0))
		return NULL;
	reader->at += size;
	return at;
}

#endif
