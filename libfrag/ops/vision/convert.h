/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VISION_CONVERT_H
#define VISION_CONVERT_H

#include "../frame.h"

/*
 * Pixels from one format into another of the same size. The steps, in their order: choose the
 * channels (gray to colour repeats it, colour to gray weighs it by BT.601, alpha is dropped or
 * set), put them into `order`, change the element type.
 */
struct convert {
	int64_t channels; /* of the output: 1, 3 or 4 */
	bool is_float;    /* the output is f32; else u8 */
	double scale_min; /* the f32 value of u8 0 */
	double scale_max; /* the f32 value of u8 255 */
	uint8_t alpha;    /* of an alpha channel that the input lacks */
	uint8_t order[4]; /* output channel i is channel order[i] */
};

/* 1 when the output would be what the input is. */
int vision_convert_is_identity(const struct convert *convert, const struct frame *in);

/* Converts into compact rows at out. Thread: any. Blocks: no. */
void vision_convert(const struct convert *convert, const struct frame *in, void *out);

#endif
