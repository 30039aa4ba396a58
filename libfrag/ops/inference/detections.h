/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INFERENCE_DETECTIONS_H
#define INFERENCE_DETECTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A thing that a network found, in a picture whose sides go from 0 to 1. */
struct detection {
	float left, top, right, bottom;
	float score;
	int32_t label;
};

/* The orders of the four numbers of a box. */
enum detection_layout {
	DETECTION_YXYX,   /* top, left, bottom, right: TensorFlow's */
	DETECTION_XYXY,   /* left, top, right, bottom */
	DETECTION_XYWH,   /* left, top, width, height */
	DETECTION_CXCYWH, /* centre x, centre y, width, height */
};

/*
 * Reads a box, divides it by the scale and clips it to the picture.
 * Returns false when nothing of it is inside the picture.
 */
bool detection_read_box(struct detection *detection, enum detection_layout layout,
			const float *numbers, float scale_x, float scale_y);
/*
 * Moves a box of a picture to the frame that the picture is a part of.
 * - region: the part: left, top, right, bottom in the frame
 * Returns false when the border of the part cuts the box, or nothing of it is inside the frame:
 * parts overlap, so that another one shows the thing whole.
 */
bool detection_move(struct detection *detection, const float region[4]);
/* Returns the area that two boxes share, as a part of the area that they cover together. */
float detection_overlap(const struct detection *a, const struct detection *b);
/*
 * Sorts by score, the best first, and removes what overlaps a better one of the same label (greedy
 * non-maximum suppression). Returns the number of those that are left.
 * - most: how much boxes may overlap
 * - inside: the part of the smaller one of two boxes that may lie in the other one
 */
size_t detections_suppress(struct detection *detections, size_t count, float most, float inside);

#endif
