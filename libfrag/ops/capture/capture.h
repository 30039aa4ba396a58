/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAPTURE_CAPTURE_H
#define CAPTURE_CAPTURE_H

#include <frag/frag.h>

/* The operator type of this library; tests link it without the plugin. */
extern const struct frag_op_type v4l2_video_capture_type;

#endif
