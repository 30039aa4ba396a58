/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VISION_RESIZE_H
#define VISION_RESIZE_H

#include "../frame.h"

/* The numbers of NPP's interpolation modes, which Holoscan's FormatConverterOp takes. */
enum resize_mode {
	RESIZE_DEFAULT = 0, /* cubic */
	RESIZE_NEAREST = 1,
	RESIZE_LINEAR = 2,
	RESIZE_CUBIC = 4,
	RESIZE_SUPER = 8, /* the mean of the area that a pixel covers; only to smaller sizes */
};

/*
 * Resizes a frame into compact rows at out, channels and element type as they are. Pixel centres
 * are at half coordinates; beyond the border the border's pixels go on. Modes but RESIZE_SUPER look
 * at the nearest pixels only, also when the picture gets smaller. Returns 0; -EINVAL for another
 * mode, or RESIZE_SUPER with a larger side; -ENOMEM. Thread: any. Blocks: no. RT-safe: no
 * (allocates).
 */
int vision_resize(const struct frame *in, enum resize_mode mode, int64_t rows, int64_t columns,
		  void *out);

#endif
