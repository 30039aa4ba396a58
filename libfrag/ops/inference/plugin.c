// SPDX-License-Identifier: Apache-2.0
#include "inference.h"

static const struct frag_op_type *const inference_ops[] = {
	&inference_inference_type,
	&inference_inference_processor_type,
	&inference_detection_postprocessor_type,
	&inference_segmentation_postprocessor_type,
};

FRAG_PLUGIN(.name = "inference", .version = FRAG_VERSION, FRAG_OPS(inference_ops));
