// SPDX-License-Identifier: Apache-2.0
#include "types.h"

#include <base/alloc.h>
#include <data/codec.h>
#include <edge/remote/header.h>

/*
 * What a stranger sends to the data port, as far as one message goes: the fixed header, then the
 * descriptors. What is understood is encoded again and must come back the same.
 */
#define LIMIT_BYTES (16u << 20)

/*
 * Whether a message that was decoded is encoded to the same bytes. The times of trail and label are
 * turned into stamps and back, and so only near what they were; and a tensor of a GPU is decoded
 * into memory of the host, and so encoded as one of the host.
 */
static bool encodes_the_same(const struct frag_message *message)
{
	for (uint32_t i = 0; i < message->tensor_count; i++)
		if (message->tensors[i].tensor->was_on_gpu)
			return false;
	return (message->stamps & (FRAGI_STAMP_TRAIL | FRAGI_STAMP_LABEL)) == 0;
}

static void decode(const uint8_t *bytes, size_t size, uint64_t limit_bytes)
{
	struct frag_message *message = NULL, *copy = NULL;
	const struct fragi_blob *blob = NULL;
	uint64_t type_id = 0, bodies = 0;
	int r = fragi_message_decode(bytes, size, limit_bytes, &message, &type_id);

	fuzz_check(r == 0 || r == -EBADMSG || r == -EMSGSIZE || r == -ENOENT);
	fuzz_check((r == 0) == (message != NULL));
	fuzz_check(r != -ENOENT || fragi_type_by_id(type_id) == NULL ||
		   !fragi_type_has_codec(fragi_type_by_id(type_id)));
	if (message == NULL)
		return;
	for (uint32_t i = 0; i < message->tensor_count; i++) {
		size_t body;
		void *at = fragi_tensor_body(message->tensors[i].tensor, &body);

		if (body > 0)
			memset(at, 0x55, body);
		bodies += body;
	}
	fuzz_check(bodies <= limit_bytes);
	fuzz_check(fragi_message_encode(message, &blob) == 0);
	/* Of a trail, names of workers are forgotten beyond some. */
	fuzz_check(blob->size == size ||
		   (blob->size < size && (message->stamps & FRAGI_STAMP_TRAIL) != 0));
	fuzz_check(!encodes_the_same(message) || memcmp(blob->bytes, bytes, size) == 0);
	fuzz_check(fragi_message_decode(blob->bytes, blob->size, limit_bytes, &copy, NULL) == 0);
	for (uint32_t i = 0; i < copy->tensor_count; i++)
		fuzz_check(!copy->tensors[i].tensor->was_on_gpu);
	fuzz_check(fragi_message_bytes(copy) == fragi_message_bytes(message));
	frag_message_unref(copy);
	frag_message_unref(message);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	uint8_t *copy = fuzz_copy(bytes, size), packed[FRAGI_HEADER_BYTES];
	struct fragi_header header;
	uint64_t limit_bytes = LIMIT_BYTES;

	(void)fuzz_type(0);
	if (fragi_header_unpack(copy, size, &header)) {
		fragi_header_pack(&header, packed);
		fuzz_check(memcmp(packed, copy, FRAGI_HEADER_BYTES) == 0);
		fuzz_check(fragi_token_equal(header.token, copy + 8));
		if (header.body_bytes < limit_bytes)
			limit_bytes = header.body_bytes;
		decode(copy + FRAGI_HEADER_BYTES, size - FRAGI_HEADER_BYTES, limit_bytes);
	}
	free(copy);
	return 0;
}
