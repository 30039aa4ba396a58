/* SPDX-License-Identifier: Apache-2.0 */
#include "../draw/params.h"
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
		       .flags = FRAG_PORT_MULTI,
		       .tensors = FRAG_BOXES "; " FRAG_MASK},
	[OUT] = {.name = "out",
		 .dir = FRAG_OUT,
		 .type = "tensor",
		 .headline = "the picture: [rows, columns, 3] u8, RGB"},
};

static const struct frag_param draw_params[] = {
	DRAW_PARAMS(struct draw),
	FRAG_PARAM_STRING(struct draw, out_tensor_name, "", .headline = "Name of the picture"),
	FRAG_PARAM_RESOURCE(struct draw, pool, NULL, .headline = "Allocator of the pictures",
			    .flags = FRAG_PARAM_OPTIONAL),
};

static int draw_setup(void *state, struct frag_op *op)
{
	struct draw *d = state;

	return draw_params_read(op, d->tensors, d->color_lut, d->width, d->height, &d->layers);
}

/* Returns the first message that says when it was taken; NULL: none does. */
static const struct frag_message *first_with_time(const struct messages *messages)
{
	for (size_t i = 0; i < messages->count; i++)
		if (messages->items[i] != NULL &&
		    frag_message_acquisition(messages->items[i], NULL, NULL) == 0)
			return messages->items[i];
	return NULL;
}

static int draw_compute(void *state, struct frag_tick *tick)
{
	struct draw *d = state;
	struct frag_op *op = frag_tick_op(tick);
	struct messages messages = {0};
	struct canvas canvas = {0};
	struct frag_tensor *tensor;
	int64_t shape[3] = {0, 0, 3};
	int r = draw_receive(tick, RECEIVERS, &d->layers, &messages);

	if (r < 0)
		return r;
	draw_layers_size(&d->layers, &messages, &shape[1], &shape[0]);
	r = frame_create(op, d->pool, FRAME_U8, shape, &tensor);
	if (r < 0)
		return r;
	canvas = (struct canvas){frag_tensor_writable(tensor), shape[0], shape[1]};
	draw_layers_draw(&d->layers, &messages, &canvas);
	return frame_emit(tick, OUT, d->out_tensor_name, tensor, first_with_time(&messages));
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
