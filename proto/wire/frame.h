/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FW_FRAME_H
#define FW_FRAME_H

#include <wire/message.h>

/*
 * Cuts a stream of bytes into frames; no I/O. Memory grows with what has arrived, not with what a
 * length announces, and never beyond twice FW_FRAME_MAX when every frame is taken before more is
 * fed.
 */
struct fw_reader {
	uint8_t *bytes; /* owned */
	size_t start, size, capacity;
	/* frames above it are refused: FW_FRAME_MAX, or less before HELLO; may be raised */
	size_t limit;
	int64_t frame_since_ns; /* when the first byte of an unfinished frame came; 0: none */
	int64_t fed_ns;
};

void fw_reader_init(struct fw_reader *reader, size_t limit);
void fw_reader_fini(struct fw_reader *reader);
/* Appends what was read at now_ns. Returns 0, -ENOMEM, or -EMSGSIZE (frames were not taken). */
int fw_reader_feed(struct fw_reader *reader, const void *bytes, size_t size, int64_t now_ns);
/*
 * The next whole frame's envelope, valid until the next feed. Call it until it returns 0. Returns 1
 * with a frame, 0 when there is none yet, -EMSGSIZE (longer than limit) and -EBADMSG (length 0)
 * with a sentence.
 */
int fw_reader_next(struct fw_reader *reader, const uint8_t **out_bytes, size_t *out_size,
		   struct frag_err *err);

#endif
