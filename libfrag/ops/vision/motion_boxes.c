// SPDX-License-Identifier: Apache-2.0
#include "motion.h"
#include "vision.h"

struct motion_boxes {
	const char *in_tensor_name, *out_tensor_name;
	double threshold, learning_rate;
	int64_t min_area, warmup, thickness;
	struct frag_i64_list color;
	struct frag_resource *pool;

	struct motion *motion; /* created with the first frame */
	int64_t rows, columns;
	uint8_t paint[4];
	struct motion_box boxes[MOTION_BOXES_MAX];
};

enum { IN, OUT };
static const struct frag_port motion_boxes_ports[] = {
	[IN] = {.name = "in",
		.dir = FRAG_IN,
		.type = "tensor",
		.headline = "a frame of u8: gray, RGB or RGBA"},
	[OUT] = {.name = "out",
		 .dir = FRAG_OUT,
		 .type = "tensor",
		 .headline = "the frame with boxes, and the tensor boxes",
		 .tensors = FRAG_BOXES},
};

static const struct frag_param motion_boxes_params[] = {
	FRAG_PARAM_STRING(
		struct motion_boxes, in_tensor_name, "",
		.headline = "Tensor of the frame; empty: the one without a name, else the first"),
	FRAG_PARAM_STRING(struct motion_boxes, out_tensor_name, "",
			  .headline = "Name of the frame with boxes"),
	FRAG_PARAM_F64(struct motion_boxes, threshold, 25.0,
		       .headline = "Difference of brightness to the background that counts",
		       .flags = FRAG_PARAM_DYNAMIC, .min = 1.0, .max = 255.0),
	FRAG_PARAM_F64(struct motion_boxes, learning_rate, 0.02,
		       .headline = "Share of each frame in the background",
		       .flags = FRAG_PARAM_DYNAMIC, .min = 0.0, .max = 1.0),
	FRAG_PARAM_I64(struct motion_boxes, min_area, 400, .headline = "Smallest object, in pixels",
		       .flags = FRAG_PARAM_DYNAMIC, .min = 1, .max = 1e9),
	FRAG_PARAM_I64(struct motion_boxes, warmup, 15,
		       .headline = "Frames, without boxes, that the first background is made of",
		       .min = 1, .max = 255),
	FRAG_PARAM_I64(struct motion_boxes, thickness, 2,
		       .headline = "Thickness of the lines, in pixels", .flags = FRAG_PARAM_DYNAMIC,
		       .min = 0, .max = 100),
	FRAG_PARAM_I64_LIST(struct motion_boxes, color, "[0, 255, 0]",
			    .headline = "Colour of the boxes: red, green, blue"),
	FRAG_PARAM_RESOURCE(struct motion_boxes, pool, NULL,
			    .headline = "Allocator of the frames with boxes",
			    .flags = FRAG_PARAM_OPTIONAL),
};

static int motion_boxes_setup(void *state, struct frag_op *op)
{
	struct motion_boxes *mb = state;

	if (mb->color.count != 3)
		return frag_op_fail(op, -EINVAL, "color has %zu numbers; give red, green and blue",
				    mb->color.count);
	for (size_t i = 0; i < 3; i++) {
		if (mb->color.items[i] < 0 || mb->color.items[i] > 255)
			return frag_op_fail(op, -EINVAL,
					    "color holds %lld; its numbers go from 0 to 255",
					    (long long)mb->color.items[i]);
		mb->paint[i] = (uint8_t)mb->color.items[i];
	}
	mb->paint[3] = 255;
	return 0;
}

/* Fills a rectangle of a compact picture, clipped to the picture. */
static void fill(uint8_t *picture, const struct frame *frame, const uint8_t *paint, int64_t left,
		 int64_t top, int64_t right, int64_t bottom)
{
	left = left < 0 ? 0 : left;
	top = top < 0 ? 0 : top;
	right = right > frame->columns ? frame->columns : right;
	bottom = bottom > frame->rows ? frame->rows : bottom;
	for (int64_t y = top; y < bottom; y++) {
		for (int64_t x = left; x < right; x++)
			memcpy(picture + (y * frame->columns + x) * frame->channels, paint,
			       (size_t)frame->channels);
	}
}

/* Draws the box's outline inside it. */
static void draw(uint8_t *picture, const struct frame *frame, const struct motion_boxes *mb,
		 const struct motion_box *box)
{
	uint8_t gray[1] = {
		(uint8_t)((19595u * mb->paint[0] + 38470u * mb->paint[1] + 7471u * mb->paint[2]) >>
			  16)};
	const uint8_t *paint = frame->channels == 1 ? gray : mb->paint;
	int64_t t = mb->thickness;

	/* Lines that meet leave no gap, also where the box has a middle. */
	if (2 * t > box->right - box->left)
		t = (box->right - box->left + 1) / 2;
	if (2 * t > box->bottom - box->top)
		t = (box->bottom - box->top + 1) / 2;
	fill(picture, frame, paint, box->left, box->top, box->right, box->top + t);
	fill(picture, frame, paint, box->left, box->bottom - t, box->right, box->bottom);
	fill(picture, frame, paint, box->left, box->top, box->left + t, box->bottom);
	fill(picture, frame, paint, box->right - t, box->top, box->right, box->bottom);
}

static int draw_all(const struct motion_boxes *mb, const struct frame *frame, int count,
		    struct frag_tensor **out)
{
	int64_t shape[] = {frame->rows, frame->columns, frame->channels};
	size_t row = (size_t)(frame->columns * frame->channels);
	uint8_t *picture;
	int r = frag_tensor_create(mb->pool, (struct frag_dtype){FRAG_DTYPE_UINT, 8, 1}, 3, shape,
				   out);

	if (r < 0)
		return r;
	picture = frag_tensor_writable(*out);
	for (int64_t y = 0; y < frame->rows; y++)
		memcpy(picture + (size_t)y * row,
		       (const uint8_t *)frame->data + (size_t)y * frame->row_bytes, row);
	for (int i = 0; i < count; i++)
		draw(picture, frame, mb, &mb->boxes[i]);
	return 0;
}

/* Makes the tensor of boxes, as parts of the frame. */
static int boxes_tensor(const struct motion_boxes *mb, const struct frame *frame, int count,
			struct frag_tensor **out)
{
	float columns = (float)frame->columns, rows = (float)frame->rows;
	int64_t shape[] = {count, 4};
	float *to;
	int r = frag_tensor_create(NULL, (struct frag_dtype){FRAG_DTYPE_FLOAT, 32, 1}, 2, shape,
				   out);

	if (r < 0 || count == 0)
		return r;
	to = frag_tensor_writable(*out);
	for (int i = 0; i < count; i++) {
		*to++ = (float)mb->boxes[i].left / columns;
		*to++ = (float)mb->boxes[i].top / rows;
		*to++ = (float)mb->boxes[i].right / columns;
		*to++ = (float)mb->boxes[i].bottom / rows;
	}
	return 0;
}

/* The background is of one size: frames of another size start a new model. */
static int prepare(struct motion_boxes *mb, struct frag_op *op, const struct frame *frame,
		   const struct motion_config *config)
{
	if (frame->is_float)
		return frag_op_fail(
			op, -EINVAL,
			"the frame has f32 elements; convert it with format_converter to out_dtype rgb888 before");
	if (mb->motion != NULL && mb->rows == frame->rows && mb->columns == frame->columns)
		return 0;
	vision_motion_destroy(mb->motion);
	mb->motion = vision_motion_create(config, frame->rows, frame->columns);
	mb->rows = frame->rows;
	mb->columns = frame->columns;
	return mb->motion != NULL ? 0 : -ENOMEM;
}

static int emit(const struct motion_boxes *mb, struct frag_tick *tick,
		const struct frag_message *from, struct frag_tensor *in, const struct frame *frame,
		int count)
{
	struct frag_message *message = frag_message_create();
	struct frag_tensor *picture = NULL, *boxes = NULL;
	int r = message != NULL ? frag_message_copy_stamps(message, from) : -ENOMEM;

	if (r == 0 && count == 0)
		picture = frag_tensor_ref(in);
	else if (r == 0)
		r = draw_all(mb, frame, count, &picture);
	if (r == 0)
		r = frag_message_add_tensor(message, mb->out_tensor_name, picture);
	if (r == 0)
		r = boxes_tensor(mb, frame, count, &boxes);
	if (r == 0)
		r = frag_message_add_tensor(message, "boxes", boxes);
	if (r == 0)
		return frag_tick_emit(tick, OUT, message);
	frag_message_unref(message);
	return frag_op_fail(
		frag_tick_op(tick), r,
		"cannot make the frame with boxes: %s; give the pool larger or more blocks",
		frag_strerror(r));
}

static int motion_boxes_compute(void *state, struct frag_tick *tick)
{
	struct motion_boxes *mb = state;
	struct frag_op *op = frag_tick_op(tick);
	struct motion_config config = {.threshold = mb->threshold,
				       .learning_rate = mb->learning_rate,
				       .min_area = mb->min_area,
				       .warmup = mb->warmup};
	const struct frag_message *message;
	struct frag_tensor *in = NULL;
	struct frame frame = {0};
	int r = frag_tick_receive(tick, IN, &message);

	if (r < 0)
		return r == -ENOMSG ? 0 : r;
	r = frame_receive(op, message, mb->in_tensor_name, &in, &frame);
	if (r == 0)
		r = prepare(mb, op, &frame, &config);
	if (r < 0)
		return r;
	return emit(mb, tick, message, in, &frame,
		    vision_motion_step(mb->motion, &config, &frame, mb->boxes));
}

static void motion_boxes_fini(void *state, struct frag_op *op)
{
	struct motion_boxes *mb = state;

	(void)op;
	vision_motion_destroy(mb->motion);
}

const struct frag_op_type vision_motion_boxes_type = {
	FRAG_OP_TYPE_INIT,
	.name = "motion_boxes",
	.headline = "Boxes what moves in front of a still camera",
	.description =
		"A running background model: what differs from the background, is large enough and has moved lately gets a box. Nothing is recognised.",
	.state_size = sizeof(struct motion_boxes),
	FRAG_PORTS(motion_boxes_ports),
	FRAG_PARAMS(motion_boxes_params),
	.setup = motion_boxes_setup,
	.compute = motion_boxes_compute,
	.fini = motion_boxes_fini,
};
