/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VISION_SAMPLE_H
#define VISION_SAMPLE_H

#include "../frame.h"
#include "sample_pixel.h"

/*
 * Samples a region of a frame into a frame of the same channels and element type, linear between
 * the centres of pixels. Beyond the border its pixels are repeated.
 * - region: left, top, right, bottom as shares of the frame's sides
 * - to: the size; its data is not used
 * - across: [to->columns], overwritten
 * - data: receives rows without gaps
 * Thread: any. Blocks: no.
 */
void vision_sample(const struct frame *frame, const float *region, const struct frame *to,
		   struct neighbours *across, void *data);

#endif
