/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VISION_TAPS_H
#define VISION_TAPS_H

#include "resize.h"

/*
 * Every mode of resizing is a separable filter: pixel i of the output is the weighted sum of
 * `count` pixels of the input, starting at first[i]. The rows are filtered first, into an f32
 * picture of the new width, then the columns.
 */
struct taps {
	int64_t count;  /* for each output pixel */
	int64_t *first; /* [size of the output]; outside the input the border's pixel is used */
	float *weights; /* [size of the output][count] */
};

/*
 * Computes the filter of one side.
 * - from, to: sizes of the input and the output
 * Returns 0 or -ENOMEM.
 */
int vision_taps_init(struct taps *taps, enum resize_mode mode, int64_t from, int64_t to);
void vision_taps_fini(struct taps *taps);

#endif
