/* SPDX-License-Identifier: Apache-2.0 */
#include "convert_pixel.h"

#define KERNEL(name, float_input, channels, taps)                                                  \
	extern "C" __global__ void __launch_bounds__(CONVERT_THREADS_X *CONVERT_THREADS_Y)         \
		name(const struct convert_job job)                                                 \
	{                                                                                          \
		int x = (int)(blockIdx.x * blockDim.x + threadIdx.x);                              \
		int y = (int)(blockIdx.y * blockDim.y + threadIdx.y) * CONVERT_ROWS;               \
                                                                                                   \
		convert_pixels(&job, x, y, float_input, channels, taps);                           \
	}
CONVERT_KERNELS(KERNEL)
