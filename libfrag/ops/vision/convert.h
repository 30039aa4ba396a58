/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VISION_CONVERT_H
#define VISION_CONVERT_H

#include "../frame.h"

/*
 * Converts pixels from one format to another; the size stays. The steps, in this order:
 * - choose the channels: gray to colour repeats the value, colour to gray weights it by BT.601,
 *   alpha is dropped or set
 * - reorder the channels by `order`
 * - change the element type
 */
struct convert {
	int64_t channels; /* of the output: 1, 3 or 4 */
	bool is_float;    /* the output is f32; else u8 */
	bool is_deep;     /* the output is u16; not on a GPU */
	bool is_planar;   /* the output is one plane for each channel; else pixels side by side */
	double scale_min; /* the f32 value of u8 0 */
	double scale_max; /* the f32 value of u8 255, and of u16 65535 */
	uint8_t alpha;    /* value of an alpha channel that the input does not have */
	uint8_t order[4]; /* output channel i is channel order[i] */
	uint8_t pad;      /* of pixels around the picture, as a u8; their alpha is `alpha` */
};

/* Where the picture, the converted frame, lies in the output. */
struct convert_place {
	int64_t rows, columns; /* of the output */
	int64_t top, left;
	int64_t picture_rows, picture_columns;
};

/* The largest picture with the ratio of `in`, in the middle of an output of this size. */
struct convert_place vision_convert_fit(const struct frame *in, int64_t rows, int64_t columns);

/* Returns 1 when the output would equal the input, else 0. */
int vision_convert_is_identity(const struct convert *convert, const struct frame *in);

/* What each u8 is as an f32, and an alpha channel that the input does not have. */
void vision_convert_values(const struct convert *convert, float values[256]);
float vision_convert_alpha(const struct convert *convert);

/* Converts a frame of u8 or f32 into rows (or planes) without gaps. Thread: any. Blocks: no. */
void vision_convert(const struct convert *convert, const struct frame *in, void *out);
/* The same into a part of the output, and `pad` around it. `in` has the size of the picture. */
void vision_convert_into(const struct convert *convert, const struct frame *in,
			 const struct convert_place *place, void *out);

#endif
