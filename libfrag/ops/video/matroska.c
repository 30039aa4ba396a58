// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include "matroska.h"

/* EBML, RFC 8794: an element is its id, the size of its content, and the content. */
#define SEGMENT 0x18538067
#define CLUSTER 0x1F43B675

/* The number of leading zero bits of the first byte is that of further bytes. 0: no number. */
static int read_number(AVIOContext *io, uint64_t *out)
{
	int first = avio_r8(io), bytes = 1;

	for (int bit = 0x80; bytes <= 8 && (first & bit) == 0; bit >>= 1)
		bytes++;
	if (bytes > 8)
		return 0;
	*out = (uint64_t)first;
	for (int i = 1; i < bytes; i++)
		*out = *out << 8 | (uint64_t)avio_r8(io);
	return bytes;
}

bool video_matroska_is_cut(AVIOContext *io)
{
	int64_t end = avio_size(io), at = 0;

	while (at < end && avio_seek(io, at, SEEK_SET) == at) {
		uint64_t id, size;
		int bytes = read_number(io, &id), length = read_number(io, &size);
		uint64_t unknown = (UINT64_C(1) << 7 * length) - 1;

		if (avio_feof(io))
			return true;
		if (bytes == 0 || length == 0)
			return false; /* damaged, or no element: not for us to judge */
		at += bytes + length;
		size &= unknown;
		if (size == unknown && (id == SEGMENT || id == CLUSTER))
			continue; /* its elements follow, as if they stood beside it */
		if (size > (uint64_t)(end - at))
			return true;
		at += (int64_t)size;
	}
	return false;
}
