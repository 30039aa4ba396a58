/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VISION_RAW_H
#define VISION_RAW_H

#include "../frame.h"
#include "raw_pixel.h"

/* A format of frames that are not RGB yet. */
struct raw_format {
	const char *name;
	enum raw_layout layout;
	uint8_t bits; /* of an element; 0: 8 or 16 */
	uint8_t red_x, red_y;
};

#define RAW_FORMATS "nv12, p010, yuv420, yuyv, uyvy, bayer_rggb, bayer_bggr, bayer_gbrg, bayer_grbg"

/* Returns NULL when there is none of that name. */
const struct raw_format *vision_raw_find(const char *name);
/*
 * Sets the numbers by which YUV becomes RGB.
 * - color: bt601, bt709 or bt2020
 * - is_full: luma goes from 0 to 255; else from 16 to 235
 */
void vision_raw_set_color(struct raw_job *job, const struct raw_format *format, const char *color,
			  bool is_full);
/*
 * Describes a tensor of a format, wherever it lies; the numbers of set_color stay.
 * Returns 0; -EINVAL: it is not one, *reason says why.
 */
int vision_raw_describe(const struct raw_format *format, const struct frag_tensor *tensor,
			bool is_malvar, struct raw_job *job, const char **reason);
/* When job->in and job->out are where they will be: how they can be reached. */
void vision_raw_settle(struct raw_job *job);
/* The kernel that writes job->out, and how many threads it has on each side. */
const char *vision_raw_kernel(const struct raw_job *job);
int vision_raw_thread_columns(const struct raw_job *job);
int vision_raw_thread_rows(const struct raw_job *job);
/* Writes job->out, on the CPU. */
void vision_raw_convert(const struct raw_job *job);

#endif
