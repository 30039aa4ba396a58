// SPDX-License-Identifier: Apache-2.0
#include "video.h"

static const struct frag_op_type *const video_ops[] = {&video_replayer_type, &video_recorder_type};

FRAG_PLUGIN(.name = "video", .version = FRAG_VERSION, FRAG_OPS(video_ops));
