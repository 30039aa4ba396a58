// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "convert_gpu.h"
#include "kernels.h"
#include "../gpu/twin.h"
#include "vision.h"

struct resize_frames {
	const char *in_tensor_name, *out_tensor_name;
	int64_t width, height;
	const char *mode;
	struct frag_resource *pool;

	struct gpu_twin twin;
	struct convert_gpu gpu; /* converts to the format that the frame has */
};

enum { IN, OUT };
static const struct frag_port resize_ports[] = {
	[IN] = {.name = "in",
		.dir = FRAG_IN,
		.type = "tensor",
		.headline = "a frame: gray, RGB or RGBA, u8 or f32; also in memory of a GPU"},
	[OUT] = {.name = "out",
		 .dir = FRAG_OUT,
		 .type = "tensor",
		 .headline = "the same in the new size"},
};

static const char *const mode_names[] = {"nearest", "linear", "cubic", "area", NULL};
static const enum resize_mode modes[] = {RESIZE_NEAREST, RESIZE_LINEAR, RESIZE_CUBIC, RESIZE_SUPER};

static const struct frag_param resize_params[] = {
	FRAG_PARAM_STRING(
		struct resize_frames, in_tensor_name, "",
		.headline = "Tensor of the frame; empty: the one without a name, else the first"),
	FRAG_PARAM_STRING(struct resize_frames, out_tensor_name, "",
			  .headline = "Name of the output"),
	FRAG_PARAM_I64(struct resize_frames, width, 0,
		       .headline = "New width; 0: by the height, with the ratio of the frame",
		       .min = 0, .max = FRAME_SIDE_MAX),
	FRAG_PARAM_I64(struct resize_frames, height, 0,
		       .headline = "New height; 0: by the width, with the ratio of the frame",
		       .min = 0, .max = FRAME_SIDE_MAX),
	FRAG_PARAM_STRING(
		struct resize_frames, mode, "linear", .headline = "Interpolation",
		.description =
			"area is the mean of all that a new pixel covers; a side that grows is linear",
		.choices = mode_names),
	FRAG_PARAM_RESOURCE(struct resize_frames, pool, NULL, .headline = "Allocator of the output",
			    .flags = FRAG_PARAM_OPTIONAL),
};

static int resize_setup(void *state, struct frag_op *op)
{
	struct resize_frames *rf = state;

	if (rf->width == 0 && rf->height == 0)
		return frag_op_fail(op, -EINVAL,
				    "width and height are 0; give one of them or both");
	return 0;
}

static enum resize_mode mode_of(const struct resize_frames *rf)
{
	size_t i = 0;

	while (strcmp(mode_names[i], rf->mode) != 0)
		i++;
	return modes[i];
}

static int64_t by_ratio(int64_t side, int64_t numerator, int64_t denominator)
{
	int64_t other = llrint((double)side * (double)numerator / (double)denominator);

	return other < 1 ? 1 : other > FRAME_SIDE_MAX ? FRAME_SIDE_MAX : other;
}

static int on_cpu(struct resize_frames *rf, struct frag_op *op, const struct frame *frame,
		  const int64_t shape[3], struct frag_tensor **out)
{
	int r = frame_create(op, rf->pool, frame->is_float ? FRAME_F32 : FRAME_U8, shape, out);

	if (r < 0)
		return r;
	r = vision_resize(frame, mode_of(rf), shape[0], shape[1], frag_tensor_writable(*out));
	if (r < 0)
		frag_tensor_unref(*out);
	return r;
}

static int on_gpu(struct resize_frames *rf, struct frag_tick *tick, struct frag_device device,
		  const struct frame *frame, const int64_t shape[3], struct frag_tensor **out)
{
	const struct convert same = {.channels = frame->channels,
				     .is_float = frame->is_float,
				     .scale_max = 1.0,
				     .order = {0, 1, 2, 3}};
	const struct convert_place place = {.rows = shape[0],
					    .columns = shape[1],
					    .picture_rows = shape[0],
					    .picture_columns = shape[1]};
	struct frag_op *op = frag_tick_op(tick);
	struct frag_err err = FRAG_ERR_INIT;
	void *stream;
	int r = gpu_twin_begin(&rf->twin, op, device);

	if (r == 0)
		r = gpu_twin_create(&rf->twin, op, frame->is_float ? FRAME_F32 : FRAME_U8, 3, shape,
				    out);
	if (r < 0)
		return r;
	stream = gpu_twin_stream(&rf->twin, tick);
	r = vision_convert_gpu(&rf->gpu, &same, device, frame, mode_of(rf), &place,
			       frag_tensor_writable(*out), stream, &err);
	if (r == 0 && stream == NULL)
		r = vision_convert_gpu_wait(&rf->gpu, &err);
	if (r == 0)
		return 0;
	frag_tensor_unref(*out);
	return frag_op_fail(op, r, "cannot resize a frame on GPU %d: %s", (int)device.id, err.text);
}

static int resize_initialize(void *state, struct frag_op *op)
{
	struct resize_frames *rf = state;

	return gpu_twin_open(&rf->twin, op, vision_ptx, rf->pool, NULL);
}

static void resize_fini(void *state, struct frag_op *op)
{
	struct resize_frames *rf = state;

	(void)op;
	vision_convert_gpu_fini(&rf->gpu);
	gpu_twin_close(&rf->twin);
}

static int resize_compute(void *state, struct frag_tick *tick)
{
	struct resize_frames *rf = state;
	struct frag_op *op = frag_tick_op(tick);
	const struct frag_message *message;
	struct frag_tensor *in = NULL, *out;
	struct frame frame = {0};
	int64_t shape[3];
	int r = frag_tick_receive(tick, IN, &message);

	if (r == 0)
		r = frame_receive_by(op, message, rf->in_tensor_name, frame_anywhere, &in, &frame);
	if (r < 0)
		return r;
	shape[0] = rf->height > 0 ? rf->height : by_ratio(rf->width, frame.rows, frame.columns);
	shape[1] = rf->width > 0 ? rf->width : by_ratio(rf->height, frame.columns, frame.rows);
	shape[2] = frame.channels;
	if (shape[0] == frame.rows && shape[1] == frame.columns)
		return frame_emit(tick, OUT, rf->out_tensor_name, frag_tensor_ref(in), message);
	r = frame_is_on_host(in) ? on_cpu(rf, op, &frame, shape, &out)
				 : on_gpu(rf, tick, gpu_of(in), &frame, shape, &out);
	if (r < 0)
		return r;
	r = frame_change_sides(tick, &frame, shape[0], shape[1]);
	if (r == 0)
		return frame_emit(tick, OUT, rf->out_tensor_name, out, message);
	frag_tensor_unref(out);
	return r;
}

const struct frag_op_type vision_resize_type = {
	FRAG_OP_TYPE_INIT,
	.name = "resize",
	.headline = "Changes the size of frames",
	.description =
		"A frame that already has the size is passed on without a copy. Smaller frames are best by area. A frame in memory of a GPU is resized there, with the same result.",
	.state_size = sizeof(struct resize_frames),
	FRAG_PORTS(resize_ports),
	FRAG_PARAMS(resize_params),
	.setup = resize_setup,
	.initialize = resize_initialize,
	.compute = resize_compute,
	.fini = resize_fini,
};
