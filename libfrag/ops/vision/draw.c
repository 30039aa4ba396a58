/* SPDX-License-Identifier: Apache-2.0 */
#include "../draw/layers.h"
#include "vision.h"

struct draw {
	const struct frag_tree *tensors, *color_lut;
	int64_t width, height;
	const char *out_tensor_name;
	struct frag_resource *pool;

	struct layers layers;
};

enum { RECEIVERS, OUT };
static const struct frag_port draw_ports[] = {
	[RECEIVERS] = {.name = "receivers",
		       .dir = FRAG_IN,
		       .type = "tensor",
		       .headline = "what the picture is made of; see tensors",
		       .flags = FRAG_PORT_MULTI},
	[OUT] = {.name = "out",
		 .dir = FRAG_OUT,
		 .type = "tensor",
		 .headline = "the picture: [rows, columns, 3] u8, RGB"},
};

static const struct frag_param draw_params[] = {
	FRAG_PARAM_TREE(
		struct draw, tensors, "[]",
		.headline =
			"Layers: [{name, type, opacity, priority, color, line_width, point_size, text}, ...]",
		.description =
			"type: color, color_lut, points, lines, line_strip, crosses, rectangles or text. Empty: every frame of u8 is drawn."),
	FRAG_PARAM_TREE(
		struct draw, color_lut, "[]",
		.headline = "Colours of classes, for color_lut: [[red, green, blue, alpha], ...]"),
	FRAG_PARAM_I64(struct draw, width, 0,
		       .headline =
			       "Width of the picture; 0: of the first frame, or 1920 without one",
		       .min = 0, .max = FRAME_SIDE_MAX),
	FRAG_PARAM_I64(struct draw, height, 0,
		       .headline =
			       "Height of the picture; 0: of the first frame, or 1080 without one",
		       .min = 0, .max = FRAME_SIDE_MAX),
	FRAG_PARAM_STRING(struct draw, out_tensor_name, "", .headline = "Name of the picture"),
	FRAG_PARAM_RESOURCE(struct draw, pool, NULL, .headline = "Allocator of the pictures",
			    .flags = FRAG_PARAM_OPTIONAL),
};

static int draw_setup(void *state, struct frag_op *op)
{
	struct draw *d = state;
	struct frag_err err = FRAG_ERR_INIT;
	int r;

	if ((d->width == 0) != (d->height == 0))
		return frag_op_fail(op, -EINVAL, "one of width and height is 0; give both or none");
	r = draw_layers_init(&d->layers, d->tensors, d->color_lut, d->width, d->height, &err);
	return r < 0 ? frag_op_fail(op, r, "%s", err.text) : 0;
}

static int draw_compute(void *state, struct frag_tick *tick)
{
	struct draw *d = state;
	struct frag_op *op = frag_tick_op(tick);
	struct frag_err err = FRAG_ERR_INIT;
	struct messages messages = {0};
	struct canvas canvas = {0};
	struct frag_tensor *tensor;
	int64_t shape[3] = {0, 0, 3};
	int r = frag_tick_receive_all(tick, RECEIVERS, &messages.items);

	if (r < 0)
		return r;
	messages.count = (size_t)r;
	r = draw_layers_check(&d->layers, &messages, &err);
	if (r < 0)
		return frag_op_fail(op, r, "%s", err.text);
	draw_layers_size(&d->layers, &messages, &shape[1], &shape[0]);
	r = frame_create(op, d->pool, false, shape, &tensor);
	if (r < 0)
		return r;
	canvas = (struct canvas){frag_tensor_writable(tensor), shape[0], shape[1]};
	draw_layers_draw(&d->layers, &messages, &canvas);
	return frag_tick_emit_tensor(tick, OUT, d->out_tensor_name, tensor);
}

static void draw_fini(void *state, struct frag_op *op)
{
	struct draw *d = state;

	(void)op;
	draw_layers_fini(&d->layers);
}

const struct frag_op_type vision_draw_type = {
	FRAG_OP_TYPE_INIT,
	.name = "draw",
	.headline = "Draws boxes, points, lines, text and masks into frames",
	.description =
		"Makes the picture that the operator viewer shows with the same tensors and color_lut.",
	.state_size = sizeof(struct draw),
	FRAG_PORTS(draw_ports),
	FRAG_PARAMS(draw_params),
	.setup = draw_setup,
	.compute = draw_compute,
	.fini = draw_fini,
};
