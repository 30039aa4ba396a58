/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VISION_VISION_H
#define VISION_VISION_H

#include <frag/frag.h>

/* The operator types of this library, one in each file; tests link them without the plugin. */
extern const struct frag_op_type vision_format_converter_type;
extern const struct frag_op_type vision_motion_boxes_type;
extern const struct frag_op_type vision_image_writer_type;
extern const struct frag_op_type vision_resize_type;
extern const struct frag_op_type vision_crop_type;
extern const struct frag_op_type vision_draw_type;
extern const struct frag_op_type vision_box_converter_type;

#endif
