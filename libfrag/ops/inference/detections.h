/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INFERENCE_DETECTIONS_H
#define INFERENCE_DETECTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "../gpu/kernel.h"

/* A thing that a network found, in a picture whose sides go from 0 to 1. */
struct detection {
	float left, top, right, bottom;
	float score;
	int32_t label;
	uint32_t number; /* of the box; of two with the same score the lower one is better */
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
GPU_INLINE bool detection_read_box(struct detection *detection, enum detection_layout layout,
				   const float *numbers, float scale_x, float scale_y)
{
	float left = numbers[0], top = numbers[1], right = numbers[2], bottom = numbers[3];

	if (layout == DETECTION_YXYX) {
		left = numbers[1];
		top = numbers[0];
		right = numbers[3];
		bottom = numbers[2];
	} else if (layout == DETECTION_CXCYWH) {
		left -= numbers[2] / 2.0f;
		top -= numbers[3] / 2.0f;
	}
	if (layout == DETECTION_XYWH || layout == DETECTION_CXCYWH) {
		right += left;
		bottom += top;
	}
	detection->left = fminf(fmaxf(left / scale_x, 0.0f), 1.0f);
	detection->top = fminf(fmaxf(top / scale_y, 0.0f), 1.0f);
	detection->right = fminf(fmaxf(right / scale_x, 0.0f), 1.0f);
	detection->bottom = fminf(fmaxf(bottom / scale_y, 0.0f), 1.0f);
	return detection->right > detection->left && detection->bottom > detection->top;
}

/* What is nearer to a border of a part than this is cut by it. */
#define DETECTION_CUT 0.01f

/*
 * Moves a box of a picture to the frame that the picture is a part of.
 * - region: the part: left, top, right, bottom in the frame
 * Returns false when the border of the part cuts the box, or nothing of it is inside the frame:
 * parts overlap, so that another one shows the thing whole.
 */
GPU_INLINE bool detection_move(struct detection *d, const float *region)
{
	float width = region[2] - region[0], height = region[3] - region[1];

	if ((d->left < DETECTION_CUT && region[0] > 0.0f) ||
	    (d->right > 1.0f - DETECTION_CUT && region[2] < 1.0f) ||
	    (d->top < DETECTION_CUT && region[1] > 0.0f) ||
	    (d->bottom > 1.0f - DETECTION_CUT && region[3] < 1.0f))
		return false;
	d->left = fminf(fmaxf(region[0] + d->left * width, 0.0f), 1.0f);
	d->right = fminf(fmaxf(region[0] + d->right * width, 0.0f), 1.0f);
	d->top = fminf(fmaxf(region[1] + d->top * height, 0.0f), 1.0f);
	d->bottom = fminf(fmaxf(region[1] + d->bottom * height, 0.0f), 1.0f);
	return d->right > d->left && d->bottom > d->top;
}

GPU_INLINE float detection_area(const struct detection *d)
{
	return (d->right - d->left) * (d->bottom - d->top);
}

GPU_INLINE float detection_shared(const struct detection *a, const struct detection *b)
{
	float width = fminf(a->right, b->right) - fmaxf(a->left, b->left);
	float height = fminf(a->bottom, b->bottom) - fmaxf(a->top, b->top);

	return width > 0.0f && height > 0.0f ? width * height : 0.0f;
}

/* Returns the area that two boxes share, as a part of the area that they cover together. */
GPU_INLINE float detection_overlap(const struct detection *a, const struct detection *b)
{
	float both = detection_shared(a, b);

	return both > 0.0f ? both / (detection_area(a) + detection_area(b) - both) : 0.0f;
}

/* Whether a box goes because of a better one of the same label. most, inside: as below */
GPU_INLINE bool detection_suppresses(const struct detection *better, const struct detection *d,
				     float most, float inside)
{
	return better->label == d->label &&
	       (detection_overlap(better, d) > most ||
		detection_shared(better, d) >
			inside * fminf(detection_area(better), detection_area(d)));
}

GPU_INLINE bool detection_is_better(const struct detection *a, const struct detection *b)
{
	return a->score > b->score || (a->score == b->score && a->number < b->number);
}

/*
 * Sorts by score, the best first, and removes what overlaps a better one of the same label (greedy
 * non-maximum suppression). Returns the number of those that are left.
 * - most: how much boxes may overlap
 * - inside: the part of the smaller one of two boxes that may lie in the other one
 */
size_t detections_suppress(struct detection *detections, size_t count, float most, float inside);

#endif
