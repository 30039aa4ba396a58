// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include "vision.h"

/* The orders of the four numbers of a box. */
enum layout { XYXY, YXYX, XYWH, CXCYWH };
static const char *const layouts[] = {"xyxy", "yxyx", "xywh", "cxcywh", NULL};

struct box_converter {
	const char *in_tensor_name, *out_tensor_name;
	const char *in_layout, *out_layout;
	double in_width, in_height, out_width, out_height;
	struct frag_resource *pool;

	enum layout from, to;
};

enum { IN, OUT };
static const struct frag_port box_converter_ports[] = {
	[IN] = {.name = "in",
		.dir = FRAG_IN,
		.type = "tensor",
		.headline = "boxes: [n, 4] f32, in any layout and unit"},
	[OUT] = {.name = "out",
		 .dir = FRAG_OUT,
		 .type = "tensor",
		 .headline = "the boxes, converted, and the other tensors of the message"},
};

static const struct frag_param box_converter_params[] = {
	FRAG_PARAM_STRING(struct box_converter, in_tensor_name, "boxes",
			  .headline = "Tensor of the boxes"),
	FRAG_PARAM_STRING(struct box_converter, out_tensor_name, "boxes",
			  .headline = "Name of the converted boxes"),
	FRAG_PARAM_STRING(struct box_converter, in_layout, "xyxy",
			  .headline = "What the four numbers of a received box are",
			  .choices = layouts),
	FRAG_PARAM_F64(struct box_converter, in_width, 1.0,
		       .headline = "x of the right border: 1, or the frame's width in pixels",
		       .min = 1e-6, .max = 1e6),
	FRAG_PARAM_F64(struct box_converter, in_height, 1.0,
		       .headline = "y of the lower border: 1, or the frame's height in pixels",
		       .min = 1e-6, .max = 1e6),
	FRAG_PARAM_STRING(struct box_converter, out_layout, "xyxy",
			  .headline = "What the four numbers of an emitted box are",
			  .choices = layouts),
	FRAG_PARAM_F64(struct box_converter, out_width, 1.0,
		       .headline = "x of the right border in the emitted boxes", .min = 1e-6,
		       .max = 1e6),
	FRAG_PARAM_F64(struct box_converter, out_height, 1.0,
		       .headline = "y of the lower border in the emitted boxes", .min = 1e-6,
		       .max = 1e6),
	FRAG_PARAM_RESOURCE(struct box_converter, pool, NULL, .headline = "Allocator of the boxes",
			    .flags = FRAG_PARAM_OPTIONAL),
};

static enum layout layout_of(const char *name)
{
	size_t i = 0;

	while (layouts[i + 1] != NULL && strcmp(layouts[i], name) != 0)
		i++;
	return (enum layout)i;
}

static int box_converter_setup(void *state, struct frag_op *op)
{
	struct box_converter *bc = state;

	(void)op;
	bc->from = layout_of(bc->in_layout);
	bc->to = layout_of(bc->out_layout);
	return 0;
}

/* Reads a box into left, top, right, bottom. */
static void read_box(enum layout layout, const float *in, double out[4])
{
	double a = (double)in[0], b = (double)in[1], c = (double)in[2], d = (double)in[3];
	const double box[][4] = {
		[XYXY] = {a, b, c, d},
		[YXYX] = {b, a, d, c},
		[XYWH] = {a, b, a + c, b + d},
		[CXCYWH] = {a - c / 2, b - d / 2, a + c / 2, b + d / 2},
	};

	memcpy(out, box[layout], sizeof(box[layout]));
}

/* Writes left, top, right, bottom as a box. */
static void write_box(enum layout layout, const double in[4], float *out)
{
	double width = in[2] - in[0], height = in[3] - in[1];
	const double box[][4] = {
		[XYXY] = {in[0], in[1], in[2], in[3]},
		[YXYX] = {in[1], in[0], in[3], in[2]},
		[XYWH] = {in[0], in[1], width, height},
		[CXCYWH] = {in[0] + width / 2, in[1] + height / 2, width, height},
	};

	for (int i = 0; i < 4; i++)
		out[i] = (float)box[layout][i];
}

static int convert(const struct box_converter *bc, const struct frag_tensor *in,
		   struct frag_tensor **out)
{
	const struct frag_dltensor *dl = frag_tensor_dl(in);
	double across = bc->out_width / bc->in_width, down = bc->out_height / bc->in_height;
	const float *from = frag_tensor_data(in);
	double box[4];
	float *to;
	int r = frag_tensor_create(bc->pool, dl->dtype, 2, dl->shape, out);

	if (r < 0)
		return r;
	to = frag_tensor_writable(*out);
	for (int64_t i = 0; i < dl->shape[0]; i++, from += 4, to += 4) {
		read_box(bc->from, from, box);
		box[0] *= across;
		box[1] *= down;
		box[2] *= across;
		box[3] *= down;
		write_box(bc->to, box, to);
	}
	return 0;
}

/* Adds the tensors that stay as they are. */
static int add_others(const struct box_converter *bc, const struct frag_message *from,
		      const struct frag_tensor *boxes, struct frag_message *message)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < frag_message_tensor_count(from); i++) {
		const char *name;
		struct frag_tensor *tensor = frag_message_tensor_at(from, i, &name);

		if (tensor != boxes && strcmp(name, bc->out_tensor_name) != 0)
			r = frag_message_add_tensor(message, name, frag_tensor_ref(tensor));
	}
	return r;
}

static int emit(const struct box_converter *bc, struct frag_tick *tick,
		const struct frag_message *from, const struct frag_tensor *boxes)
{
	struct frag_message *message = frag_message_create();
	struct frag_tensor *converted = NULL;
	int r = message != NULL ? frag_message_copy_stamps(message, from) : -ENOMEM;

	if (r == 0)
		r = convert(bc, boxes, &converted);
	if (r == 0)
		r = frag_message_add_tensor(message, bc->out_tensor_name, converted);
	if (r == 0)
		r = add_others(bc, from, boxes, message);
	if (r == 0)
		return frag_tick_emit(tick, OUT, message);
	frag_message_unref(message);
	return frag_op_fail(frag_tick_op(tick), r,
			    "cannot make the boxes: %s; give the pool larger or more blocks",
			    frag_strerror(r));
}

static int box_converter_compute(void *state, struct frag_tick *tick)
{
	const struct box_converter *bc = state;
	const struct frag_message *message;
	const struct frag_tensor *boxes;
	const struct frag_dltensor *dl;
	int r = frag_tick_receive(tick, IN, &message);

	if (r < 0)
		return r == -ENOMSG ? 0 : r;
	boxes = frag_message_tensor(message, bc->in_tensor_name);
	dl = boxes != NULL ? frag_tensor_dl(boxes) : NULL;
	if (dl == NULL)
		return frag_op_fail(
			frag_tick_op(tick), -EINVAL,
			"the message holds no tensor \"%s\"; set in_tensor_name to the name that the sender gives",
			bc->in_tensor_name);
	if (dl->ndim != 2 || dl->shape[1] != 4 || dl->dtype.code != FRAG_DTYPE_FLOAT ||
	    dl->dtype.bits != 32 || dl->dtype.lanes != 1 || !frag_tensor_is_compact(boxes) ||
	    (dl->device.type != FRAG_DEVICE_CPU && dl->device.type != FRAG_DEVICE_CUDA_HOST))
		return frag_op_fail(
			frag_tick_op(tick), -EINVAL,
			"tensor \"%s\" is not [n, 4] of f32 without gaps in host memory",
			bc->in_tensor_name);
	return emit(bc, tick, message, boxes);
}

const struct frag_op_type vision_box_converter_type = {
	FRAG_OP_TYPE_INIT,
	.name = "box_converter",
	.headline = "Converts boxes between layouts, and between pixels and parts of a frame",
	.description =
		"The operators of frag send and take boxes as left, top, right, bottom from 0 to 1. For boxes in pixels of frames of 640 x 480 in_width is 640 and in_height 480.",
	.state_size = sizeof(struct box_converter),
	FRAG_PORTS(box_converter_ports),
	FRAG_PARAMS(box_converter_params),
	.setup = box_converter_setup,
	.compute = box_converter_compute,
};
