// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cuda/twin.h"
#include "cuda/twin_cases.h"
#include "inference/inference.h"
#include "vision/vision.h"

#define SIDE_MAX 50

static char layers[800]; /* the argument tensors of draw */

/* Columns of a frame: one in four is wide enough for whole warps and several tiles of draw. */
static int wider(uint64_t *s, int columns)
{
	return twin_below(s, 4) == 0 ? columns + 128 * (1 + twin_below(s, 2)) : columns;
}

/* Says which case it is, and lets the failure follow. */
static void head(char **why, size_t *size, uint64_t seed, const struct twin *twin)
{
	int n = snprintf(*why, *size, "seed %llu of %s:", (unsigned long long)seed,
			 twin->type->name);

	for (size_t i = 0; twin->args[i].name != NULL && (size_t)n < *size; i++)
		n += snprintf(*why + n, *size - (size_t)n, " %s=%s", twin->args[i].name,
			      twin->args[i].text);
	if ((size_t)n + 2 < *size)
		n += snprintf(*why + n, *size - (size_t)n, ": ");
	*why += n;
	*size -= (size_t)n;
}

/* Formats that are not RGB, and frames of 16 bits. */
static bool format_converter_case(uint64_t seed, char *why, size_t size)
{
	static const char *const formats[] = {
		"nv12",       "p010",       "yuv420",     "yuyv",   "uyvy",  "bayer_rggb",
		"bayer_bggr", "bayer_gbrg", "bayer_grbg", "uint16", "uint8", "float32"};
	static const char *const colors[] = {"bt601", "bt709", "bt2020"};
	static const char *const outs[] = {"rgb888", "rgba8888", "float32", "gray8", "gray32f"};
	static const int channels[] = {1, 3, 4};
	struct twin twin = {.type = &vision_format_converter_type,
			    .pool = "pool",
			    .out_port = "tensor",
			    .outputs = {"", NULL}};
	uint64_t s = seed;
	const int format = twin_below(&s, 12);
	struct frag_dtype dtype = TWIN_U8;
	int64_t rows = 2 * (2 + twin_below(&s, SIDE_MAX / 2));
	int64_t columns = wider(&s, 2 * (2 + twin_below(&s, SIDE_MAX / 2)));
	int64_t shape[3] = {rows, columns, 1};

	if (format == 1 || format == 9 || (format >= 5 && format < 9 && twin_below(&s, 2) == 0))
		dtype = TWIN_U16;
	if (format == 11)
		dtype = TWIN_F32;
	if (format < 3)
		shape[0] = rows / 2 * 3;
	else if (format < 5)
		shape[2] = 2;
	else if (format >= 9)
		shape[2] = channels[twin_below(&s, 3)];
	twin_arg(&twin, "in_dtype", "%s", format >= 9 ? "" : formats[format]);
	twin_arg(&twin, "in_color", "%s", colors[twin_below(&s, 3)]);
	twin_arg(&twin, "in_full_range", "%s", twin_below(&s, 2) == 0 ? "true" : "false");
	twin_arg(&twin, "demosaic", "%s", twin_below(&s, 2) == 0 ? "bilinear" : "malvar");
	twin_arg(&twin, "out_dtype", "%s", outs[twin_below(&s, 5)]);
	twin_arg(&twin, "out_layout", "%s", twin_below(&s, 2) == 0 ? "hwc" : "chw");
	if (twin_below(&s, 2) == 0) {
		twin_arg(&twin, "resize_width", "%d", 1 + twin_below(&s, SIDE_MAX));
		twin_arg(&twin, "resize_height", "%d", 1 + twin_below(&s, SIDE_MAX));
		twin_arg(&twin, "resize_mode", "%d", 1 << twin_below(&s, 3));
	}
	if (format >= 9 && twin_below(&s, 2) == 0)
		twin_arg(&twin, "window", "[%d, %d]", twin_below(&s, 100),
			 100 + twin_below(&s, 90));
	twin.pool_is_on_gpu = twin_below(&s, 2) == 0;
	twin.in[0] = (struct twin_input){
		.port = "source_video",
		.name = "",
		.tensor = twin_noise(&s, dtype, 3, shape, format != 2 && twin_below(&s, 2) == 0)};
	head(&why, &size, seed, &twin);
	return twin_same(&twin, why, size);
}

static bool resize_case(uint64_t seed, char *why, size_t size)
{
	static const char *const modes[] = {"nearest", "linear", "cubic", "area"};
	static const int channels[] = {1, 3, 4};
	struct twin twin = {.type = &vision_resize_type,
			    .pool = "pool",
			    .out_port = "out",
			    .outputs = {"", NULL}};
	uint64_t s = seed;
	const int64_t shape[] = {1 + twin_below(&s, SIDE_MAX), 1 + twin_below(&s, SIDE_MAX),
				 channels[twin_below(&s, 3)]};
	const struct frag_dtype dtype = twin_below(&s, 2) == 0 ? TWIN_U8 : TWIN_F32;
	const int sides = 1 + twin_below(&s, 3);

	if ((sides & 1) != 0)
		twin_arg(&twin, "width", "%d", 1 + twin_below(&s, SIDE_MAX));
	if ((sides & 2) != 0)
		twin_arg(&twin, "height", "%d", 1 + twin_below(&s, SIDE_MAX));
	twin_arg(&twin, "mode", "%s", modes[twin_below(&s, 4)]);
	twin.pool_is_on_gpu = twin_below(&s, 2) == 0;
	twin.in[0] = (struct twin_input){
		.port = "in",
		.name = "",
		.tensor = twin_noise(&s, dtype, 3, shape, twin_below(&s, 2) == 0)};
	head(&why, &size, seed, &twin);
	return twin_same(&twin, why, size);
}

static void fill_boxes(uint64_t *s, float *boxes, int64_t count, bool is_centred)
{
	for (int64_t i = 0; i < count; i++, boxes += 4) {
		/* of a few places, so that they overlap */
		float x = (float)twin_below(s, 6) / 6 + (float)twin_below(s, 100) / 2000;
		float y = (float)twin_below(s, 6) / 6 + (float)twin_below(s, 100) / 2000;
		float side = 0.05f + (float)twin_below(s, 100) / 400;

		boxes[0] = x;
		boxes[1] = y;
		boxes[2] = is_centred ? side : x + side;
		boxes[3] = is_centred ? side * 1.3f : y + side * 1.3f;
	}
}

static bool crop_case(uint64_t seed, char *why, size_t size)
{
	static const char *const dtypes[] = {"", "uint8", "float32"};
	static const int channels[] = {1, 3, 4};
	struct twin twin = {.type = &vision_crop_type,
			    .pool = "pool",
			    .out_port = "out",
			    .outputs = {"", "boxes", NULL}};
	uint64_t s = seed;
	const int64_t shape[] = {1 + twin_below(&s, SIDE_MAX), 1 + twin_below(&s, SIDE_MAX),
				 channels[twin_below(&s, 3)]};
	const struct frag_dtype dtype = twin_below(&s, 2) == 0 ? TWIN_U8 : TWIN_F32;
	const int64_t count = twin_below(&s, 6);
	struct frag_tensor *boxes = twin_tensor(TWIN_F32, 2, (int64_t[]){count, 4});

	twin_arg(&twin, "width", "%d", 1 + twin_below(&s, 30));
	twin_arg(&twin, "height", "%d", 1 + twin_below(&s, 30));
	twin_arg(&twin, "scale", "%g", 0.5 + (double)twin_below(&s, 100) / 60);
	twin_arg(&twin, "square", "%s", twin_below(&s, 2) == 0 ? "true" : "false");
	twin_arg(&twin, "out_dtype", "%s", dtypes[twin_below(&s, 3)]);
	twin_arg(&twin, "scale_min", "%g", (double)twin_below(&s, 10) / 7 - 1);
	twin_arg(&twin, "scale_max", "%g", 1 + (double)twin_below(&s, 10) / 7);
	fill_boxes(&s, frag_tensor_writable(boxes), count, false);
	/* a box of whole pixels is copied */
	if (count > 0 && twin_below(&s, 3) == 0) {
		twin_arg(&twin, "regions", "[[0, 0, 1, 1], [0.1, 0.2, 0.7, 0.9]]");
		frag_tensor_unref(boxes);
		boxes = NULL;
	}
	twin.pool_is_on_gpu = twin_below(&s, 2) == 0;
	twin.in[0] = (struct twin_input){
		.port = "source_video",
		.name = "",
		.tensor = twin_noise(&s, dtype, 3, shape, twin_below(&s, 2) == 0)};
	if (boxes != NULL)
		twin.in[1] = (struct twin_input){
			.port = "boxes", .name = "boxes", .tensor = boxes, .stays = true};
	head(&why, &size, seed, &twin);
	return twin_same(&twin, why, size);
}

static struct frag_tensor *numbers(uint64_t *s, int64_t count, int below)
{
	static const struct frag_dtype dtypes[] = {
		{FRAG_DTYPE_FLOAT, 32, 1}, {FRAG_DTYPE_INT, 32, 1}, {FRAG_DTYPE_INT, 64, 1}};
	const int kind = twin_below(s, 3);
	struct frag_tensor *tensor = twin_tensor(dtypes[kind], 1, &count);
	void *at = frag_tensor_writable(tensor);

	for (int64_t i = 0; i < count; i++) {
		int number = twin_below(s, below);

		if (kind == 0)
			((float *)at)[i] = (float)number;
		else if (kind == 1)
			((int32_t *)at)[i] = number;
		else
			((int64_t *)at)[i] = number;
	}
	return tensor;
}

/* Boxes of one picture or of parts of one, with classes of their own or by their scores. */
static bool detection_case(uint64_t seed, char *why, size_t size)
{
	static const char *const layouts[] = {"yxyx", "xyxy", "xywh", "cxcywh"};
	struct twin twin = {
		.type = &inference_detection_postprocessor_type,
		.out_port = "out",
		.outputs = {"boxes", "scores", "labels", "rectangles", "label_coords", NULL, NULL}};
	uint64_t s = seed;
	const int layout = twin_below(&s, 4);
	const int64_t pictures = 1 + twin_below(&s, 3), each = twin_below(&s, 120);
	const int64_t count = pictures * each;
	const int64_t columns = twin_below(&s, 2) == 0 ? 1 : 2 + twin_below(&s, 6);
	const bool has_classes = twin_below(&s, 2) == 0;
	struct frag_tensor *boxes = twin_tensor(TWIN_F32, 2, (int64_t[]){count, 4});
	struct frag_tensor *scores = twin_tensor(TWIN_F32, 2, (int64_t[]){count, columns});
	float *score = frag_tensor_writable(scores);
	int n = 0;

	fill_boxes(&s, frag_tensor_writable(boxes), count, layout >= 2);
	for (int64_t i = 0; i < count * columns; i++)
		score[i] = (float)twin_below(&s, 40) / 40; /* some are equal */
	if (count > 0 && twin_below(&s, 10) == 0) {
		score[twin_below(&s, (int)(count * columns))] = NAN;
		((float *)frag_tensor_writable(boxes))[twin_below(&s, (int)(4 * count))] = NAN;
		twin.fails = true;
	}
	if (twin_below(&s, 3) == 0) {
		const int values = 2 + twin_below(&s, 2), points = 1 + twin_below(&s, 5);

		twin_arg(&twin, "keypoints_tensor_name", "points");
		twin_arg(&twin, "keypoint_values", "%d", values);
		twin.outputs[5] = "keypoints";
		twin.in[n++] = (struct twin_input){
			.port = "receivers:1",
			.name = "points",
			.tensor = twin_noise(&s, TWIN_F32, 2, (int64_t[]){count, points * values},
					     false)};
	}
	twin_arg(&twin, "box_layout", "%s", layouts[layout]);
	twin_arg(&twin, "score_threshold", "%g", (double)twin_below(&s, 8) / 8);
	twin_arg(&twin, "iou_threshold", "%g", (double)twin_below(&s, 8) / 8);
	twin_arg(&twin, "inside_threshold", "%g", 0.5 + (double)twin_below(&s, 8) / 14);
	twin_arg(&twin, "max_detections", "%d", 1 + twin_below(&s, 60));
	twin_arg(&twin, "box_width", "%g", 0.8 + (double)twin_below(&s, 5) / 7);
	if (twin_below(&s, 2) == 0) {
		twin_arg(&twin, "labels", "[a, b, c, d]");
		twin_arg(&twin, "keep_labels", "[b, d]");
		twin_arg(&twin, "first_class", "%d", twin_below(&s, 2));
	}
	twin.has_streams = twin_below(&s, 2) == 0;
	twin.in[n++] = (struct twin_input){
		.port = "receivers:1", .name = "boxes", .tensor = boxes, .stays = false};
	twin.in[n++] = (struct twin_input){.port = "receivers:1",
					   .name = "scores",
					   .tensor = scores,
					   .stays = twin_below(&s, 4) == 0};
	if (has_classes) {
		twin_arg(&twin, "classes_tensor_name", "classes");
		twin.in[n++] = (struct twin_input){
			.port = "receivers:1", .name = "classes", .tensor = numbers(&s, count, 5)};
	}
	if (pictures > 1) {
		struct frag_tensor *regions = twin_tensor(TWIN_F32, 2, (int64_t[]){pictures, 4});

		fill_boxes(&s, frag_tensor_writable(regions), pictures, false);
		twin_arg(&twin, "regions_tensor_name", "regions");
		twin.in[n++] = (struct twin_input){.port = "receivers:2",
						   .name = "regions",
						   .tensor = regions,
						   .stays = twin_below(&s, 2) == 0};
		twin_arg(&twin, "count_tensor_name", "count");
		twin.in[n++] = (struct twin_input){.port = "receivers:2",
						   .name = "count",
						   .tensor = numbers(&s, pictures, (int)each + 2)};
	}
	head(&why, &size, seed, &twin);
	return twin_same(&twin, why, size);
}

/* One picture, or a batch that is pasted into a mask where its boxes are. */
static bool segmentation_case(uint64_t seed, char *why, size_t size)
{
	struct twin twin = {.type = &inference_segmentation_postprocessor_type,
			    .pool = "allocator",
			    .out_port = "out_tensor",
			    .outputs = {"out_tensor", NULL}};
	uint64_t s = seed;
	const bool is_planar = twin_below(&s, 2) == 0, pastes = twin_below(&s, 2) == 0;
	const int64_t count = pastes ? twin_below(&s, 7) : 1;
	const int64_t rows = 1 + twin_below(&s, 20), columns = 1 + twin_below(&s, 20);
	const bool is_softmax = twin_below(&s, 2) == 0;
	const int64_t channels = (is_softmax ? 2 : 1) + twin_below(&s, 4);
	const int64_t shape[] = {count, is_planar ? channels : rows, is_planar ? rows : columns,
				 is_planar ? columns : channels};
	struct frag_tensor *source = twin_noise(&s, TWIN_F32, 4, shape, false);

	if (count > 0 && twin_below(&s, 8) == 0) {
		const int all = (int)(count * rows * columns * channels);

		((float *)frag_tensor_writable(source))[twin_below(&s, all)] = NAN;
		twin.fails = true;
	}
	twin_arg(&twin, "in_tensor_name", "source");
	twin_arg(&twin, "data_format", "%s", is_planar ? "nchw" : "nhwc");
	twin_arg(&twin, "network_output_type", "%s", is_softmax ? "softmax" : "sigmoid");
	twin.in[0] = (struct twin_input){.port = "in_tensor", .name = "source", .tensor = source};
	if (pastes) {
		struct frag_tensor *boxes = twin_tensor(TWIN_F32, 2, (int64_t[]){count, 4});

		fill_boxes(&s, frag_tensor_writable(boxes), count, false);
		twin_arg(&twin, "rows", "%d", 1 + twin_below(&s, SIDE_MAX));
		twin_arg(&twin, "columns", "%d", 1 + twin_below(&s, SIDE_MAX));
		twin_arg(&twin, "instances", "%s", twin_below(&s, 2) == 0 ? "true" : "false");
		twin.in[1] = (struct twin_input){.port = "boxes",
						 .name = "boxes",
						 .tensor = boxes,
						 .stays = twin_below(&s, 2) == 0};
	}
	twin.pool_is_on_gpu = twin_below(&s, 2) == 0;
	twin.has_streams = !twin.pool_is_on_gpu && twin_below(&s, 2) == 0;
	head(&why, &size, seed, &twin);
	return twin_same(&twin, why, size);
}

/* A frame or two, masks, and boxes, points, lines and text over them. */
static bool draw_case(uint64_t seed, char *why, size_t size)
{
	static const char *const types[] = {"rectangles",
					    "lines",
					    "line_strip",
					    "points",
					    "crosses",
					    "text",
					    "triangles",
					    "ovals",
					    "points_3d",
					    "lines_3d",
					    "line_strip_3d",
					    "triangles_3d",
					    "depth_map, depth_map_render_mode: triangles"};
	static const int widths[] = {4, 4, 2, 2, 3, 2, 6, 4, 3, 6, 3, 9, 3};
	static const char *const views[] = {
		"", ", views: [{offset_x: 0.3, height: 0.6, width: 0.5}]",
		", views: [{width: 0.4, height: 0.4}, {offset_x: 0.5, offset_y: 0.2, width: 0.5, height: 0.8}]"};
	static const int channels[] = {1, 3, 4};
	struct twin twin = {.type = &vision_draw_type,
			    .pool = "pool",
			    .out_port = "out",
			    .outputs = {"", NULL}};
	uint64_t s = seed;
	const int shapes = twin_below(&s, 6), type = twin_below(&s, FRAG_COUNT_OF(widths));
	const int64_t count = 2 * (1 + twin_below(&s, 4));
	const int64_t shape[] = {1 + twin_below(&s, SIDE_MAX),
				 wider(&s, 1 + twin_below(&s, SIDE_MAX)),
				 channels[twin_below(&s, 3)]};
	const int64_t mask[] = {1 + twin_below(&s, SIDE_MAX), 1 + twin_below(&s, SIDE_MAX), 1};
	const int64_t places[] = {count, widths[type]};
	struct frag_tensor *geometry = twin_noise(&s, TWIN_F32, 2, places, false);
	float *at = frag_tensor_writable(geometry);
	struct frag_tensor *classes = twin_noise(&s, TWIN_U8, 3, mask, false);
	uint8_t *number = frag_tensor_writable(classes);
	int n = 0;

	for (int64_t i = 0; i < count * widths[type]; i++)
		at[i] = at[i] * 1.4f + 0.5f; /* some lie outside */
	for (int64_t i = 0; i < mask[0] * mask[1]; i++)
		number[i] %= 4;
	twin_arg(&twin, "width", "%d", shapes == 0 ? 0 : wider(&s, 1 + twin_below(&s, SIDE_MAX)));
	twin_arg(&twin, "height", "%d",
		 strcmp(twin.texts[0], "0") == 0 ? 0 : 1 + twin_below(&s, SIDE_MAX));
	twin_arg(&twin, "color_lut", "[[0, 0, 0, 0], [1, 0.2, 0, 0.6], [0, 0, 1, 1]]");
	snprintf(
		layers, sizeof(layers),
		"[{name: frame, type: color, opacity: 0.%d%s}, {name: mask, type: color_lut, opacity: 0.%d}, {name: shape, type: %s, color: [0.2, 0.9, 0.4, 0.7], line_width: %d, point_size: %d%s%s}]",
		1 + twin_below(&s, 9), views[twin_below(&s, 3)], 1 + twin_below(&s, 9), types[type],
		1 + twin_below(&s, 5), 1 + twin_below(&s, 9),
		type == 5 ? ", text: [ab, C9?, .]" : "", views[twin_below(&s, 3)]);
	twin.args[3] = (struct frag_arg){"tensors", layers};
	twin.in[n++] = (struct twin_input){
		.port = "receivers:1",
		.name = "frame",
		.tensor = twin_noise(&s, TWIN_U8, 3, shape, twin_below(&s, 2) == 0)};
	twin.in[n++] =
		(struct twin_input){.port = "receivers:1", .name = "mask", .tensor = classes};
	twin.in[n++] = (struct twin_input){
		.port = "receivers:2", .name = "shape", .tensor = geometry, .stays = true};
	twin.pool_is_on_gpu = twin_below(&s, 2) == 0;
	head(&why, &size, seed, &twin);
	return twin_same(&twin, why, size);
}

const struct twin_cases twin_cases[] = {
	{"format_converter of YUV, Bayer patterns and 16 bits", format_converter_case},
	{"resize", resize_case},
	{"crop", crop_case},
	{"detection_postprocessor", detection_case},
	{"segmentation_postprocessor", segmentation_case},
	{"draw", draw_case},
	{NULL, NULL},
};
