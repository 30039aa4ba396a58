// SPDX-License-Identifier: Apache-2.0
#include "../gpu/ptx.h"
#include "kernels.h"

GPU_PTX(inference_ptx);
