/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAPTURE_PICTURE_H
#define CAPTURE_PICTURE_H

#include <stdbool.h>
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

bool picture_is_bayer(uint32_t pixel_format);
/* Whether pictures may be sent as they are: gray and Bayer patterns, of 8 or 16 bits a value. */
bool picture_is_kept(uint32_t pixel_format, uint8_t *out_bits);
/* Copies such a picture without gaps between its rows. Returns 0; -EBADMSG: it is too short. */
int picture_keep(const struct picture_format *format, const uint8_t *data, uint64_t size,
		 uint8_t *out);
/*
 * The shape of a camera's buffer as it is, the distances in it, and the bits of an element.
 * Returns the dimensions.
 */
int32_t picture_describe(const struct picture_format *format, uint32_t size_bytes, int64_t shape[3],
			 int64_t strides[3], uint8_t *out_bits);

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
