/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRAW_PARAMS_H
#define DRAW_PARAMS_H

#include "layers.h"

/*
 * The parameters of every operator that draws layers, with the fields of its state T, which
 * DRAW_FIELDS declares.
 */
#define DRAW_FIELDS                                                                                \
	const struct frag_tree *tensors, *color_lut, *camera_eye, *camera_look_at, *camera_up;     \
	int64_t width, height

/* The port at which they take what they draw. */
#define DRAW_RECEIVERS                                                                             \
	{                                                                                          \
		.name = "receivers", .dir = FRAG_IN, .type = "tensor",                             \
		.headline = "what the picture is made of; see tensors", .flags = FRAG_PORT_MULTI,  \
		.tensors = FRAG_BOXES "; " FRAG_MASK                                               \
	}

#define DRAW_PARAMS(T)                                                                             \
	FRAG_PARAM_TREE(T, tensors, "[]",                                                          \
			.headline = "Layers: [{name, type, opacity, priority, color, "             \
				    "line_width, point_size, text, views}, ...]",                  \
			.description = "type: color, color_lut, points, lines, line_strip, "       \
				       "triangles, crosses, rectangles, ovals, text, depth_map, "  \
				       "depth_map_color, points_3d, lines_3d, line_strip_3d or "   \
				       "triangles_3d. Empty: every frame of u8 is drawn."),        \
		FRAG_PARAM_TREE(T, color_lut, "[]",                                                \
				.headline = "Colours of classes, for color_lut: "                  \
					    "[[red, green, blue, alpha], ...]"),                   \
		FRAG_PARAM_TREE(T, camera_eye, "[0, 0, 1]",                                        \
				.headline = "Where the camera is that sees what lies in space"),   \
		FRAG_PARAM_TREE(T, camera_look_at, "[0, 0, 0]",                                    \
				.headline = "Where it looks; this is the middle of the picture"),  \
		FRAG_PARAM_TREE(T, camera_up, "[0, 1, 0]",                                         \
				.headline = "What direction is up in the picture"),                \
		FRAG_PARAM_I64(T, width, 0,                                                        \
			       .headline = "Width of the picture; 0: of the first frame, or "      \
					   "1920 without one",                                     \
			       .min = 0, .max = FRAME_SIDE_MAX),                                   \
		FRAG_PARAM_I64(T, height, 0,                                                       \
			       .headline = "Height of the picture; 0: of the first frame, or "     \
					   "1080 without one",                                     \
			       .min = 0, .max = FRAME_SIDE_MAX)

#define DRAW_GIVEN(state)                                                                          \
	(&(const struct draw_given){(state)->tensors, (state)->color_lut, (state)->camera_eye,     \
				    (state)->camera_look_at, (state)->camera_up, (state)->width,   \
				    (state)->height})

/* Layers that come with messages, beside those of the parameter. */
#define DRAW_INPUT_SPECS                                                                           \
	{                                                                                          \
		.name = "input_specs", .dir = FRAG_IN, .type = "string",                           \
		.headline =                                                                        \
			"more layers for this picture: a text as the parameter tensors has it",    \
		.flags = FRAG_PORT_OPTIONAL | FRAG_PORT_NO_CONDITION,                              \
	}

/* Reads them into the layers; for setup. Returns 0, or a failure that is worded in the operator. */
static inline int draw_params_read(struct frag_op *op, const struct draw_given *given,
				   struct layers *out)
{
	struct frag_err err = FRAG_ERR_INIT;
	int r;

	if ((given->width == 0) != (given->height == 0))
		return frag_op_fail(op, -EINVAL, "one of width and height is 0; give both or none");
	r = draw_layers_init(out, given, &err);
	return r < 0 ? frag_op_fail(op, r, "%s", err.text) : 0;
}

/* Receives the layers of this tick. Returns 0, also without any, or a failure that is worded. */
static inline int draw_receive_specs(struct frag_tick *tick, uint32_t port,
				     const struct layers *layers, struct layers **out)
{
	struct frag_err err = FRAG_ERR_INIT;
	const char *text;
	int r = frag_tick_receive_string(tick, port, &text);

	if (r < 0)
		return r == -ENOMSG ? 0 : r;
	r = draw_layers_extend(layers, text, out, &err);
	return r < 0 ? frag_op_fail(frag_tick_op(tick), r, "input_specs: %s", err.text) : 0;
}

/*
 * Receives a message of each flow of a multi-receiver input, and the layers of this tick at another
 * input, and checks them. Returns 0, or a failure that is worded in the operator. The caller
 * releases out->own in any case.
 */
static inline int draw_receive(struct frag_tick *tick, uint32_t receivers, uint32_t specs,
			       const struct layers *layers, struct messages *out)
{
	struct frag_err err = FRAG_ERR_INIT;
	int r = frag_tick_receive_all(tick, receivers, &out->items);

	if (r < 0)
		return r;
	out->count = (size_t)r;
	r = draw_receive_specs(tick, specs, layers, &out->own);
	if (r < 0)
		return r;
	r = draw_layers_check(layers, out, &err);
	return r < 0 ? frag_op_fail(frag_tick_op(tick), r, "%s", err.text) : 0;
}

#endif
