// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <turbojpeg.h>

#include "picture.h"

/* Two bytes mark the start of an image, and four a comment and its length. */
#define START_BYTES 2
#define COMMENT_HEAD_BYTES 4

/* Writes the segment of a comment behind the start of the image. Returns its size. */
static size_t write_comment(uint8_t *jpeg, const struct picture *picture)
{
	char text[120];
	int length =
		snprintf(text, sizeof(text), "frag number=%llu received_ns=%lld acquired_ns=%lld",
			 (unsigned long long)picture->number, (long long)picture->received_ns,
			 (long long)picture->acquired_ns);
	const uint8_t head[] = {0xff, 0xd8, 0xff, 0xfe, 0, (uint8_t)(length + 2)};

	memcpy(jpeg, head, sizeof(head));
	memcpy(jpeg + sizeof(head), text, (size_t)length);
	return COMMENT_HEAD_BYTES + (size_t)length;
}

static int compress(const struct canvas *canvas, int quality, uint8_t *to, unsigned long *size)
{
	tjhandle encoder = tjInitCompress();
	int r = -1;

	if (encoder == NULL)
		return r;
	r = tjCompress2(encoder, canvas->pixels, (int)canvas->columns, 0, (int)canvas->rows,
			TJPF_RGB, &to, size, TJSAMP_420, quality, TJFLAG_NOREALLOC);
	tjDestroy(encoder);
	return r;
}

struct picture *viewer_picture_create(const struct canvas *canvas, int quality, uint64_t number,
				      int64_t received_ns, int64_t acquired_ns)
{
	unsigned long size = tjBufSize((int)canvas->columns, (int)canvas->rows, TJSAMP_420);
	struct picture *picture = NULL, *shorter;
	uint8_t comment[START_BYTES + COMMENT_HEAD_BYTES + 120];
	size_t comment_bytes;

	if (size != (unsigned long)-1)
		picture = malloc(sizeof(*picture) + sizeof(comment) + size);
	if (picture == NULL)
		return NULL;
	*picture = (struct picture){.references = 1,
				    .number = number,
				    .received_ns = received_ns,
				    .acquired_ns = acquired_ns};
	comment_bytes = write_comment(comment, picture);
	/* The comment goes in between the start of the image and the rest. */
	if (compress(canvas, quality, picture->jpeg + comment_bytes, &size) < 0) {
		free(picture);
		return NULL;
	}
	memcpy(picture->jpeg, comment, START_BYTES + comment_bytes);
	picture->size = comment_bytes + size;
	/* The buffer was for the worst case. */
	shorter = realloc(picture, sizeof(*picture) + picture->size);
	return shorter != NULL ? shorter : picture;
}

struct picture *viewer_picture_ref(struct picture *picture)
{
	__atomic_add_fetch(&picture->references, 1, __ATOMIC_RELAXED);
	return picture;
}

void viewer_picture_unref(struct picture *picture)
{
	if (picture != NULL && __atomic_sub_fetch(&picture->references, 1, __ATOMIC_ACQ_REL) == 0)
		free(picture);
}
