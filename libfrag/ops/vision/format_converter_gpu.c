// SPDX-License-Identifier: Apache-2.0
#include "format_converter.h"
#include "kernels.h"

/* Where the next part of the scratch memory may begin. */
static size_t aligned(size_t bytes)
{
	return (bytes + 255) / 256 * 256;
}

static size_t frame_bytes(const struct frame *frame)
{
	return (size_t)(frame->rows * frame->columns * frame->channels) *
	       frame_element_bytes(frame);
}

static int unpack(struct format_converter *fc, struct frag_tick *tick, struct frame *frame,
		  unsigned char *to)
{
	fc->raw.out = to;
	frame->data = to;
	vision_raw_settle(&fc->raw);
	return gpu_twin_launch(&fc->twin, tick, vision_raw_kernel(&fc->raw), &fc->raw,
			       vision_raw_thread_columns(&fc->raw),
			       vision_raw_thread_rows(&fc->raw));
}

static int level(struct format_converter *fc, struct frag_tick *tick, struct frame *frame,
		 unsigned char *to)
{
	const struct levels levels = converter_levels(fc, frame);
	struct level_job job = {
		.in = frame->data,
		.out = (float *)(void *)to,
		.row_bytes = frame->row_bytes,
		.rows = (int32_t)frame->rows,
		.columns = (int32_t)frame->columns,
		.channels = (int32_t)frame->channels,
		.element_bytes = (int32_t)frame_element_bytes(frame),
		.low = levels.low,
		.high = levels.high,
		.all_high = draw_levels_all(frame).high,
		.min = fc->scale_min,
		.max = fc->scale_max,
	};

	frame->data = to;
	frame->row_bytes = (size_t)(frame->columns * frame->channels) * sizeof(float);
	frame->is_float = true;
	frame->is_deep = false;
	return gpu_twin_launch(&fc->twin, tick, "vision_level", &job,
			       frame->columns * frame->channels, frame->rows);
}

/* The steps before resizing, in scratch memory that *frame then describes. */
static int prepare(struct format_converter *fc, struct frag_tick *tick, struct frame *frame)
{
	const size_t raw_bytes = fc->raw_format != NULL ? aligned(frame_bytes(frame)) : 0;
	const bool has_levels = converter_has_levels(fc, frame);
	const size_t elements = (size_t)(frame->rows * frame->columns * frame->channels);
	unsigned char *scratch;
	int r = 0;

	if (raw_bytes == 0 && !has_levels)
		return 0;
	scratch = gpu_twin_scratch(&fc->twin, tick,
				   raw_bytes + (has_levels ? elements * sizeof(float) : 0));
	if (scratch == NULL)
		return -ENOMEM;
	if (raw_bytes > 0)
		r = unpack(fc, tick, frame, scratch);
	if (r == 0 && has_levels)
		r = level(fc, tick, frame, scratch + raw_bytes);
	return r;
}

static int check_alignment(struct frag_op *op, const struct frame *frame)
{
	if ((uintptr_t)frame->data % frame_element_bytes(frame) == 0)
		return 0;
	return frag_op_fail(
		op, -EINVAL,
		"the %s of the frame are not aligned to %zu bytes, and a GPU cannot read them; give the tensor another byte_offset",
		frame->is_float ? "f32" : "u16", frame_element_bytes(frame));
}

int converter_on_gpu(struct format_converter *fc, struct frag_tick *tick, struct frag_device device,
		     const struct frame *in, struct frag_tensor **out)
{
	struct frag_op *op = frag_tick_op(tick);
	struct frag_err err = FRAG_ERR_INIT;
	struct frame frame = *in;
	struct frag_tensor *tensor;
	struct frag_dtype dtype;
	int64_t shape[3];
	int r = gpu_twin_begin(&fc->twin, op, device);

	if (r == 0)
		r = check_alignment(op, &frame);
	if (r == 0)
		r = prepare(fc, tick, &frame);
	if (r < 0)
		return r;
	dtype = converter_output(fc, shape);
	r = gpu_twin_create(&fc->twin, op, dtype, 3, shape, &tensor);
	if (r < 0)
		return r;
	r = vision_convert_gpu(
		&fc->gpu, &fc->convert, device, &frame, (enum resize_mode)fc->resize_mode,
		&fc->place, frag_tensor_writable(tensor), gpu_twin_stream(&fc->twin, tick), &err);
	if (r == 0 && gpu_twin_stream(&fc->twin, tick) == NULL)
		r = vision_convert_gpu_wait(&fc->gpu, &err);
	if (r == 0) {
		*out = tensor;
		return 0;
	}
	frag_tensor_unref(tensor);
	return frag_op_fail(op, r, "cannot convert a frame on GPU %d: %s", (int)device.id,
			    err.text[0] != '\0' ? err.text : frag_strerror(r));
}
