/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VIDEO_VIDEO_H
#define VIDEO_VIDEO_H

#include <frag/frag.h>

/* The operator types of this library, one in each file; tests link them without the plugin. */
extern const struct frag_op_type video_replayer_type;
extern const struct frag_op_type video_recorder_type;

#endif
