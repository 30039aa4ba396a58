/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRAW_PARAMS_H
#define DRAW_PARAMS_H

#include "layers.h"

/*
 * The parameters of every operator that draws layers: its state T has the fields `tensors` and
 * `color_lut` (const struct frag_tree *), `width` and `height` (int64_t).
 */
#define DRAW_PARAMS(T)                                                                             \
	FRAG_PARAM_TREE(T, tensors, "[]",                                                          \
			.headline = "Layers: [{name, type, opacity, priority, color, "             \
				    "line_width, point_size, text, views}, ...]",                  \
			.description = "type: color, color_lut, points, lines, line_strip, "       \
				       "crosses, rectangles or text. Empty: every frame of u8 "    \
				       "is drawn."),                                               \
		FRAG_PARAM_TREE(T, color_lut, "[]",                                                \
				.headline = "Colours of classes, for color_lut: "                  \
					    "[[red, green, blue, alpha], ...]"),                   \
		FRAG_PARAM_I64(T, width, 0,                                                        \
			       .headline = "Width of the picture; 0: of the first frame, or "      \
					   "1920 without one",                                     \
			       .min = 0, .max = FRAME_SIDE_MAX),                                   \
		FRAG_PARAM_I64(T, height, 0,                                                       \
			       .headline = "Height of the picture; 0: of the first frame, or "     \
					   "1080 without one",                                     \
			       .min = 0, .max = FRAME_SIDE_MAX)

/* Reads them into the layers; for setup. Returns 0, or a failure that is worded in the operator. */
static inline int draw_params_read(struct frag_op *op, const struct frag_tree *tensors,
				   const struct frag_tree *color_lut, int64_t width, int64_t height,
				   struct layers *out)
{
	struct frag_err err = FRAG_ERR_INIT;
	int r;

	if ((width == 0) != (height == 0))
		return frag_op_fail(op, -EINVAL, "one of width and height is 0; give both or none");
	r = draw_layers_init(out, tensors, color_lut, width, height, &err);
	return r < 0 ? frag_op_fail(op, r, "%s", err.text) : 0;
}

/*
 * Receives a message of each flow of a multi-receiver input, and checks them against the layers.
 * Returns 0, or a failure that is worded in the operator.
 */
static inline int draw_receive(struct frag_tick *tick, uint32_t port, const struct layers *layers,
			       struct messages *out)
{
	struct frag_err err = FRAG_ERR_INIT;
	int r = frag_tick_receive_all(tick, port, &out->items);

	if (r < 0)
		return r;
	out->count = (size_t)r;
	r = draw_layers_check(layers, out, &err);
	return r < 0 ? frag_op_fail(frag_tick_op(tick), r, "%s", err.text) : 0;
}

#endif
