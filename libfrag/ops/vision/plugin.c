// SPDX-License-Identifier: Apache-2.0
#include "vision.h"

static const struct frag_op_type *const vision_ops[] = {
	&vision_format_converter_type, &vision_motion_boxes_type, &vision_image_writer_type,
	&vision_resize_type,           &vision_crop_type,         &vision_draw_type,
	&vision_box_converter_type,
};

FRAG_PLUGIN(.name = "vision", .version = FRAG_VERSION, FRAG_OPS(vision_ops));
