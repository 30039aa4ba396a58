// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <base/alloc.h>
#include <data/stream.h>

int fragi_writer_grow(struct frag_writer *writer, size_t size)
{
	size_t capacity = writer->capacity < 128 ? 128 : writer->capacity, wanted;
	uint8_t *bytes;

	if (__builtin_add_overflow(writer->size, size, &wanted) || wanted > writer->limit)
		return writer->error = -EMSGSIZE;
	while (capacity < wanted)
		capacity = capacity > writer->limit / 2 ? writer->limit : capacity * 2;
	bytes = fragi_realloc(writer->borrowed ? NULL : writer->bytes, capacity);
	if (bytes == NULL)
		return writer->error = -ENOMEM;
	if (writer->borrowed)
		memcpy(bytes, writer->bytes, writer->size);
	writer->borrowed = false;
	writer->bytes = bytes;
	writer->capacity = capacity;
	return 0;
}

int frag_writer_put(struct frag_writer *writer, const void *bytes, size_t size)
{
	uint8_t *at;

	if (size == 0)
		return writer->error;
	at = fragi_writer_reserve(writer, size);
	if (at == NULL)
		return writer->error;
	memcpy(at, bytes, size);
	return 0;
}

int frag_writer_put_u32(struct frag_writer *writer, uint32_t x)
{
	return frag_writer_put(writer, &x, sizeof(x));
}

int frag_writer_put_u64(struct frag_writer *writer, uint64_t x)
{
	return frag_writer_put(writer, &x, sizeof(x));
}

int frag_reader_get(struct frag_reader *reader, void *out, size_t size)
{
	const uint8_t *at = fragi_reader_skip(reader, size);

	if (at == NULL)
		return -EBADMSG;
	if (size > 0)
		memcpy(out, at, size);
	return 0;
}

int frag_reader_get_u32(struct frag_reader *reader, uint32_t *out)
{
	return frag_reader_get(reader, out, sizeof(*out));
}

int frag_reader_get_u64(struct frag_reader *reader, uint64_t *out)
{
	return frag_reader_get(reader, out, sizeof(*out));
}

size_t frag_reader_left(const struct frag_reader *reader)
{
	return (size_t)(reader->end - reader->at);
}
