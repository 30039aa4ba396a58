/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INFERENCE_KERNELS_H
#define INFERENCE_KERNELS_H

#include "detect_box.h"
#include "masks.h"

/* The kernels of kernels.cu, X(name, job, function): a thread for each place, or one block. */
#define INFERENCE_KERNELS(X)                                                                       \
	X(inference_detect_begin, detect_job, detect_begin)                                        \
	X(inference_detect_box, detect_job, detect_box)                                            \
	X(inference_detect_rank, detect_job, detect_rank)                                          \
	X(inference_detect_keypoints, detect_job, detect_keypoints)                                \
	X(inference_mask_classes, mask_job, mask_classes)                                          \
	X(inference_mask_find_nan, mask_job, mask_find_nan)                                        \
	X(inference_mask_pixels, mask_job, mask_pixels)
#define INFERENCE_BLOCK_KERNELS(X) X(inference_detect_suppress, detect_job, detect_suppress)

extern const char *const inference_ptx;

#endif
