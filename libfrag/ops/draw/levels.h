/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRAW_LEVELS_H
#define DRAW_LEVELS_H

#include "../frame.h"

/*
 * Which values of a frame are black and white: what lies below or above is cut off. Alpha has its
 * whole range whatever the levels are.
 */
struct levels {
	double low, high;
};

/* The whole range of a frame's elements; an f32 goes from 0 to 1. */
struct levels draw_levels_all(const struct frame *frame);
/*
 * The least values that `low` and `high` percent of the elements do not exceed, alpha left out.
 * - frame: of u8 or u16
 * - low, high: 0 to 100
 * Returns 0; -ENOMEM.
 */
int draw_levels_percentile(const struct frame *frame, double low, double high, struct levels *out);

/* Write the elements without gaps between rows, from 0 to 255, or from min to max. */
void draw_levels_u8(const struct levels *levels, const struct frame *frame, uint8_t *out);
void draw_levels_f32(const struct levels *levels, const struct frame *frame, double min, double max,
		     float *out);

#endif
