// SPDX-License-Identifier: Apache-2.0
#include "capture.h"

static const struct frag_op_type *const capture_ops[] = {&v4l2_video_capture_type};

FRAG_PLUGIN(.name = "capture", .version = FRAG_VERSION, FRAG_OPS(capture_ops));
