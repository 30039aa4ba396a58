/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VIEWER_PICTURE_H
#define VIEWER_PICTURE_H

#include <stdint.h>

#include "../draw/canvas.h"

/* A picture as JPEG. It is reference-counted, and nobody changes it once it is made. */
struct picture {
	unsigned int references;
	uint64_t number;     /* of the messages that it shows, from 1 */
	int64_t received_ns; /* when the viewer received them, Unix time */
	int64_t acquired_ns; /* when they were taken, Unix time; 0: not known */
	size_t size;
	uint8_t jpeg[];
};

/*
 * Makes a picture with these numbers, which its JPEG holds too, as a comment:
 * "frag number=N received_ns=N acquired_ns=N".
 * - quality: 1 to 100
 * Returns it; NULL when memory is short or a side is larger than JPEG's 65535 pixels. Thread: any.
 * Blocks: no.
 */
struct picture *viewer_picture_create(const struct canvas *canvas, int quality, uint64_t number,
				      int64_t received_ns, int64_t acquired_ns);
struct picture *viewer_picture_ref(struct picture *picture);
void viewer_picture_unref(struct picture *picture); /* NULL is accepted */

#endif
