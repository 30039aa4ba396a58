/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VISION_MOTION_H
#define VISION_MOTION_H

#include "../frame.h"

/*
 * Finds moving objects in the picture of a camera that stands still. The model is the background:
 * the usual brightness of every pixel, at half the size. It starts as the median of the first
 * frames and then follows the picture slowly. A pixel that differs from the background is
 * foreground. Neighbouring foreground pixels form an object, and an object that is large enough and
 * has changed recently gets a box. Nothing is recognised: a shadow, a bush in the wind and a person
 * are treated alike.
 */
struct motion;

struct motion_config {
	/* difference in brightness, 0 to 255, from which on a pixel is foreground */
	double threshold;
	double learning_rate; /* weight of a new frame in the background, 0 to 1 */
	int64_t min_area;     /* of an object, in foreground pixels of the frame */
	/* frames that the first background is computed from, 1 to 255; they get no boxes */
	int64_t warmup;
};

/* In pixels of the frame; right and bottom are the first pixels outside. */
struct motion_box {
	int32_t left, top, right, bottom;
};

/* The most boxes of a frame. */
#define MOTION_BOXES_MAX 256

/* Creates a model for frames of this size. Returns NULL when memory is short. */
struct motion *vision_motion_create(const struct motion_config *config, int64_t rows,
				    int64_t columns);
void vision_motion_destroy(struct motion *motion);

/*
 * Finds the boxes of the next frame.
 * - config: may change between calls, except warmup
 * - frame: u8, of the model's size
 * - boxes: receives at most MOTION_BOXES_MAX boxes, in the order of their top edges
 * Returns how many there are. Thread: one at a time. Blocks: no.
 */
int vision_motion_step(struct motion *motion, const struct motion_config *config,
		       const struct frame *frame, struct motion_box boxes[MOTION_BOXES_MAX]);

#endif
