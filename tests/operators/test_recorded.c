// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "recorded.h"

#include "basic/basic.h"
#include "inference/inference.h"
#include "testing/testing.h"
#include "udp/udp.h"
#include "vision/vision.h"

RECORDED(ping_tx, &basic_ping_tx_type, 0)
RECORDED(ping_rx, &basic_ping_rx_type, 0)
RECORDED(forward, &basic_forward_type, 0)
RECORDED(ping_tensor_tx, &basic_ping_tensor_tx_type, 4096)
RECORDED(ping_tensor_rx, &basic_ping_tensor_rx_type, 0)
RECORDED(box_converter, &vision_box_converter_type, 0)
RECORDED(resize, &vision_resize_type, 64)
RECORDED(crop, &vision_crop_type, 64)
RECORDED(format_converter, &vision_format_converter_type, 64)
RECORDED(motion_boxes, &vision_motion_boxes_type, 4096)
RECORDED(image_writer, &vision_image_writer_type, 0)
RECORDED(test_sink, &testing_sink_type, 4096)
RECORDED(detection_postprocessor, &inference_detection_postprocessor_type, 4096)
RECORDED(segmentation_postprocessor, &inference_segmentation_postprocessor_type, 64)
RECORDED(inference_processor, &inference_inference_processor_type, 0)
RECORDED(draw, &vision_draw_type, 64)
RECORDED(test_connection, &testing_connection_type, 0)
RECORDED(test_source, &testing_source_type, 0)
RECORDED(udp_sink, &udp_sink_type, -1)
