/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <turbojpeg.h>

#include "picture.h"

struct picture *viewer_picture_create(const struct canvas *canvas, int quality)
{
	int columns = (int)canvas->columns, rows = (int)canvas->rows;
	unsigned long size = tjBufSize(columns, rows, TJSAMP_420);
	struct picture *picture = NULL, *shorter;
	tjhandle encoder = tjInitCompress();
	unsigned char *jpeg;

	if (encoder != NULL && size != (unsigned long)-1)
		picture = calloc(1, sizeof(*picture) + size);
	if (picture == NULL)
		goto out;
	jpeg = picture->jpeg;
	if (tjCompress2(encoder, canvas->pixels, columns, 0, rows, TJPF_RGB, &jpeg, &size,
			TJSAMP_420, quality, TJFLAG_NOREALLOC) < 0) {
		free(picture);
		picture = NULL;
		goto out;
	}
	/* The buffer was for the worst case. */
	shorter = realloc(picture, sizeof(*picture) + size);
	picture = shorter != NULL ? shorter : picture;
	picture->references = 1;
	picture->size = size;
out:
	if (encoder != NULL)
		tjDestroy(encoder);
	return picture;
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
