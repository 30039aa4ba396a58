/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FW_FRAME_H
#define FW_FRAME_H

#include <wire/message.h>

/* Cuts a stream of bytes into frames; no I/O. Memory grows with the frame being read, never beyond
 * FW_FRAME_MAX. */
struct fw_reader {
	uint8_t *bytes; /* owned */
	size_t size, capacity;
	size_t limit;           /* frames above it are refused: FW_FRAME_MAX, or less before HELLO */
	int64_t frame_since_ns; /* when the first byte of an unfinished frame came; 0: none */
};

void fw_reader_init(struct fw_reader *reader, size_t limit);
void fw_reader_fini(struct fw_reader *reader);
/* Appends what was read at now_ns. Returns 0 or -ENOMEM, -EMSGSIZE (a frame announces more than limit). */
int fw_reader_feed(struct fw_reader *reader, const void *bytes, size_t size, int64_t now_ns);
/*
 * The next whole frame's envelope, valid until the next call on reader. Returns 1 with it, 0 when there is
 * none yet, -EMSGSIZE (longer than limit; err says so), -EBADMSG (length 0).
 */
int fw_reader_next(struct fw_reader *reader, const uint8_t **out_bytes, size_t *out_size,
		   struct frag_err *err);

#endif
