/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INFERENCE_MASKS_H
#define INFERENCE_MASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The output of a network for segmentation: for each pixel a number for each class. */
struct mask_source {
	const float *data;
	int64_t rows, columns, channels;
	bool planar;     /* a plane for each channel; else the channels of a pixel are adjacent */
	bool softmax;    /* the class is the channel with the largest number */
	float threshold; /* without softmax: class 1 is where the first channel is larger */
};

/* A picture of class numbers, 0 for nothing. */
struct mask {
	uint8_t *data;
	int64_t rows, columns;
};

/* Writes the class of every pixel; the mask has the size of the source. */
void mask_classify(const struct mask_source *source, struct mask *mask);
/*
 * Writes the classes of a source that covers a box of the mask, enlarged or reduced to it. Where
 * the source has class 0 the mask stays as it is.
 * - boxes: left, top, right, bottom of each from 0 to 1, also beyond the mask
 * - i: the box that the source covers; those before it were pasted
 * - as_instance: i + 1, at most 255, is written in place of the class. Where boxes overlap, each
 *   contains a part of its neighbour, so a pixel that an earlier one has goes to the box whose
 *   centre is nearer, measured in sizes of the box.
 */
void mask_paste(const struct mask_source *source, const float *boxes, int64_t i, bool as_instance,
		struct mask *mask);
/* Returns whether a number of the source is NaN. */
bool mask_has_nan(const struct mask_source *source);

#endif
