/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INFERENCE_INFERENCE_H
#define INFERENCE_INFERENCE_H

#include <frag/frag.h>

/* The operator types of this library, one in each file; tests link them without the plugin. */
extern const struct frag_op_type inference_inference_type;
extern const struct frag_op_type inference_inference_processor_type;
extern const struct frag_op_type inference_detection_postprocessor_type;
extern const struct frag_op_type inference_segmentation_postprocessor_type;

#endif
