/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VISION_KERNELS_H
#define VISION_KERNELS_H

#include "raw_pixel.h"

/* The kernels of kernels.cu, X(name, job, function), beside those of convert.cu. */
#define VISION_KERNELS(X)                                                                          \
	X(vision_raw, raw_job, raw_pixel)                                                          \
	X(vision_level, level_job, level_element)

extern const char *const vision_ptx;

#endif
