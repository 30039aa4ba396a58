/* SPDX-License-Identifier: Apache-2.0 */
#include "convert_rgb.h"

#define CONVERT_BLOCK (CONVERT_THREADS_X * CONVERT_THREADS_Y)

#define KERNEL_OF(name, convert, blocks)                                                           \
	extern "C" __global__ void __launch_bounds__(CONVERT_BLOCK, blocks)                        \
		name(const struct convert_job job)                                                 \
	{                                                                                          \
		int x = (int)(blockIdx.x * CONVERT_THREADS_X + threadIdx.x);                       \
		int y = (int)(blockIdx.y * CONVERT_THREADS_Y + threadIdx.y) * CONVERT_ROWS;        \
                                                                                                   \
		convert;                                                                           \
	}
#define KERNEL(name, float_input, channels, taps)                                                  \
	KERNEL_OF(name, convert_pixels(&job, x, y, float_input, channels, taps), 1)
CONVERT_KERNELS(KERNEL)

KERNEL_OF(convert_beside, convert_pads(&job, x, y), 1)

/* 8 blocks on a multiprocessor: a frame of 720p is then on all of an H100 at once. */
#define RGB_KERNEL(name, store) KERNEL_OF(name, convert_rgb(&job, x, y, store), 8)
CONVERT_RGB_KERNELS(RGB_KERNEL)
