/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels.h"

VISION_KERNELS(GPU_KERNEL)
