/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VISION_MOTION_H
#define VISION_MOTION_H

#include "../frame.h"

/*
 * Finds what moves in front of a camera that stands still. The model is a background: the
 * brightness of every pixel (at half the size) as it is when nothing passes. It starts as the
 * median of the first frames and then follows the picture slowly. A pixel that differs from it is
 * in front; neighbouring ones make an object, and an object that is large enough and has changed
 * lately gets a box. Nothing is recognised: a shadow, a bush in the wind and a person are the same
 * to it.
 */
struct motion;

struct motion_config {
	/* how much brighter or darker than the background is in front, 0 .. 255 */
	double threshold;
	double learning_rate; /* share of a new frame in the background, 0 .. 1 */
	int64_t min_area;     /* of an object, in pixels of the frame that are in front */
	/* frames that the first background is made of, 1 .. 255; these have no boxes */
	int64_t warmup;
};

/* in pixels of the frame; right and bottom are the first ones outside */
struct motion_box {
	int32_t left, top, right, bottom;
};

/* The most boxes of a frame. */
#define MOTION_BOXES_MAX 256

/* A model for frames of that size. NULL when memory is short. */
struct motion *vision_motion_create(const struct motion_config *config, int64_t rows,
				    int64_t columns);
void vision_motion_destroy(struct motion *motion);

/*
 * Takes the next frame (u8, of the size given to create) and finds its boxes, in the order of their
 * top edges. Returns how many there are, at most MOTION_BOXES_MAX. config may change between calls,
 * but for warmup. Thread: one at a time. Blocks: no.
 */
int vision_motion_step(struct motion *motion, const struct motion_config *config,
		       const struct frame *frame, struct motion_box boxes[MOTION_BOXES_MAX]);

#endif
