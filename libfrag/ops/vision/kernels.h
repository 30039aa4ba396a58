/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VISION_KERNELS_H
#define VISION_KERNELS_H

#include "../draw/step.h"
#include "level_pixel.h"
#include "raw_pixel.h"
#include "sample_pixel.h"

/* The kernels of kernels.cu, X(name, job, function), beside those of convert.cu. */
#define VISION_KERNELS(X)                                                                          \
	X(vision_raw_nv12, raw_job, vision_raw_nv12_pixels)                                        \
	X(vision_raw_p010, raw_job, vision_raw_p010_pixels)                                        \
	X(vision_raw_yuv420, raw_job, vision_raw_yuv420_pixels)                                    \
	X(vision_raw_yuyv, raw_job, vision_raw_yuyv_pixels)                                        \
	X(vision_raw_uyvy, raw_job, vision_raw_uyvy_pixels)                                        \
	X(vision_raw_bilinear_words, raw_job, vision_raw_bilinear_words_pixels)                    \
	X(vision_raw_bilinear, raw_job, vision_raw_bilinear_pixels)                                \
	X(vision_raw_bilinear_deep, raw_job, vision_raw_bilinear_deep_pixels)                      \
	X(vision_raw_malvar_words, raw_job, vision_raw_malvar_words_pixels)                        \
	X(vision_raw_malvar, raw_job, vision_raw_malvar_pixels)                                    \
	X(vision_raw_malvar_deep, raw_job, vision_raw_malvar_deep_pixels)                          \
	X(vision_level, level_job, level_element)                                                  \
	X(vision_crop, crop_job, crop_pixels)                                                      \
	X(vision_draw_take, draw_take_job, draw_take)                                              \
	X(vision_draw_touch, draw_job, draw_touch)                                                 \
	X(vision_draw, draw_job, draw_pixels)

extern const char *const vision_ptx;

#endif
