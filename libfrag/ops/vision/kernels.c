// SPDX-License-Identifier: Apache-2.0
#include <stddef.h>

#include "../gpu/ptx.h"
#include "kernels.h"

GPU_PTX(vision_ptx);
