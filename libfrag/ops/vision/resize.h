/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VISION_RESIZE_H
#define VISION_RESIZE_H

#include "../frame.h"

/* The numbers of NPP's interpolation modes, which Holoscan's FormatConverterOp accepts. */
enum resize_mode {
	RESIZE_DEFAULT = 0, /* cubic */
	RESIZE_NEAREST = 1,
	RESIZE_LINEAR = 2,
	RESIZE_CUBIC = 4,
	RESIZE_SUPER = 8, /* the mean of the area that a pixel covers; a side that grows: linear */
};

/*
 * Resizes a frame; channels and element type stay. Pixel centres lie at half coordinates, and
 * beyond the border its pixels are repeated. All modes but RESIZE_SUPER use the nearest pixels
 * only, also when the picture gets smaller.
 * - out: receives rows without gaps
 * Returns 0 or -ENOMEM.
 * Thread: any. Blocks: no. RT-safe: no (it allocates).
 */
int vision_resize(const struct frame *in, enum resize_mode mode, int64_t rows, int64_t columns,
		  void *out);

#endif
