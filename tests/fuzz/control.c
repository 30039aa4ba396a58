// SPDX-License-Identifier: Apache-2.0
#include "fuzz.h"

#include <errno.h>

#include <wire/frame.h>

/*
 * What a stranger sends to the control port: a byte that says how the stream is cut into reads and
 * which limit holds, then the stream. What is decoded is encoded again and must come back the same.
 */
static void again(const struct fw_message *message)
{
	uint8_t *frame = NULL, *frame_again = NULL;
	size_t size = 0, size_again = 0;
	struct fw_message *decoded = NULL;
	struct frag_err err = FRAG_ERR_INIT;

	fuzz_check(fw_kind_name(message->kind)[0] != '?');
	if (message->kind == FW_HELLO && fw_hello_check(&message->hello, &err) < 0)
		return; /* of another major: the rest may mean anything */
	fuzz_check(fw_encode(message, &frame, &size) == 0);
	fuzz_check(fw_decode(frame + 4, size - 4, &decoded, &err) == 0);
	fuzz_check(fw_encode(decoded, &frame_again, &size_again) == 0);
	fuzz_check(size == size_again && memcmp(frame, frame_again, size) == 0);
	fw_message_free(decoded);
	free(frame);
	free(frame_again);
}

static void decode(const uint8_t *bytes, size_t size)
{
	uint8_t *copy = fuzz_copy(bytes, size);
	struct frag_err err = FRAG_ERR_INIT;
	struct fw_message *message = NULL;
	int r = fw_decode(copy, size, &message, &err);

	fuzz_check(r == 0 || r == -EBADMSG);
	fuzz_check((r == 0) == (message != NULL));
	fuzz_check(r == 0 || err.text[0] != '\0');
	if (message != NULL)
		again(message);
	fw_message_free(message);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct fuzz_input input = {bytes, bytes + size};
	uint8_t how = fuzz_u8(&input);
	size_t step = (how & 7) == 7 ? SIZE_MAX : (size_t)1 << (how & 7) * 2, count, frame_size;
	struct fw_reader reader;
	struct frag_err err = FRAG_ERR_INIT;
	const uint8_t *chunk, *frame;
	int64_t now_ns = 1;
	int r = 0;

	fw_reader_init(&reader, (how & 8) != 0 ? FW_HELLO_MAX : FW_FRAME_MAX);
	while (r == 0 && fuzz_left(&input) > 0) {
		chunk = fuzz_bytes(&input, step, &count);
		fuzz_check(fw_reader_feed(&reader, chunk, count, now_ns++) == 0);
		while ((r = fw_reader_next(&reader, &frame, &frame_size, &err)) == 1)
			decode(frame, frame_size);
		fuzz_check(r == 0 || ((r == -EMSGSIZE || r == -EBADMSG) && err.text[0] != '\0'));
		fuzz_check(reader.capacity <= 2 * FW_FRAME_MAX);
	}
	fw_reader_fini(&reader);
	return 0;
}
