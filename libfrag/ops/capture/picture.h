/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAPTURE_PICTURE_H
#define CAPTURE_PICTURE_H

#include <stdint.h>

#include <frag/error.h>

/* How a camera lays out its pictures. */
struct picture_format {
	uint32_t pixel_format; /* V4L2_PIX_FMT_... */
	uint32_t columns, rows;
	uint32_t row_bytes; /* from one row to the next; 0 where there are no rows (MJPG) */
};

#define PICTURE_FOURCC_TEXT 5
/* Writes the four characters of a pixel format; what cannot be printed is a '?'. Returns text. */
const char *picture_fourcc(uint32_t pixel_format, char text[PICTURE_FOURCC_TEXT]);

/* Returns the bytes that a picture has at least; 0: the format is not known, or a row too short. */
uint64_t picture_bytes(const struct picture_format *format);

struct picture_converter;
struct picture_converter *picture_converter_create(void);
void picture_converter_destroy(struct picture_converter *converter);

/*
 * Converts a picture to RGB without gaps, 3 * columns * rows bytes. YUV is taken as BT.601 of
 * limited range, as Holoscan does.
 * - data, size: at least picture_bytes(); of MJPG any bytes
 * Returns 0; -EBADMSG: it is no such picture, or of another size; -ENOMEM.
 */
int picture_to_rgb(struct picture_converter *converter, const struct picture_format *format,
		   const uint8_t *data, uint64_t size, uint8_t *rgb);

#endif
