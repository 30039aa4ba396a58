// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "recorded.h"

#include "video/video.h"

RECORDED(video_replayer, &video_replayer_type, -1)
RECORDED(video_recorder, &video_recorder_type, -1)
