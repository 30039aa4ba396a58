// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "format_converter.h"
#include "kernels.h"
#include "vision.h"

enum { SOURCE_VIDEO, TENSOR };
static const struct frag_port format_converter_ports[] = {
	[SOURCE_VIDEO] =
		{.name = "source_video",
		 .dir = FRAG_IN,
		 .type = "tensor",
		 .headline =
			 "a frame of u8, u16 or f32: gray, RGB or RGBA; or of YUV or a Bayer pattern (in_dtype); also in memory of a GPU"},
	[TENSOR] = {.name = "tensor",
		    .dir = FRAG_OUT,
		    .type = "tensor",
		    .headline = "the frame in out_dtype and the new size"},
};

static const char *const layouts[] = {"hwc", "chw", NULL};
static const char *const colors[] = {"bt601", "bt709", "bt2020", NULL};
static const char *const demosaics[] = {"bilinear", "malvar", NULL};

static const struct frag_param format_converter_params[] = {
	FRAG_PARAM_STRING(
		struct format_converter, in_tensor_name, "",
		.headline = "Tensor to convert; empty: the one without a name, else the first"),
	FRAG_PARAM_STRING(struct format_converter, out_tensor_name, "",
			  .headline = "Name of the output"),
	FRAG_PARAM_STRING(
		struct format_converter, in_dtype, "",
		.headline = "Format that the input must have; empty: any",
		.description = CONVERTER_FORMATS
		". Formats that are not RGB yet, and are unpacked first: " RAW_FORMATS
		". Of nv12, p010 and yuv420 the rows of the colours lie below the picture: [rows * 3 / 2, columns]"),
	FRAG_PARAM_STRING(struct format_converter, in_color, "bt601",
			  .headline = "Matrix of the YUV of the input", .choices = colors),
	FRAG_PARAM_BOOL(struct format_converter, in_full_range, 0,
			.headline = "Luma of the YUV goes from 0 to 255, and not from 16 to 235"),
	FRAG_PARAM_STRING(
		struct format_converter, demosaic, "malvar",
		.headline = "How the colours of a Bayer pattern are found",
		.description =
			"bilinear: the mean of the neighbours; malvar: with the differences of the other colours too (Malvar, He and Cutler, 2004)",
		.choices = demosaics),
	FRAG_PARAM_STRING(struct format_converter, out_dtype, NULL,
			  .headline = "Format of the output",
			  .description = CONVERTER_FORMATS
			  ". uint8, uint16 and float32: RGB, or gray when the input is gray",
			  .flags = FRAG_PARAM_REQUIRED),
	FRAG_PARAM_F64(struct format_converter, scale_min, 0.0,
		       .headline = "What 0 of a u8 or u16 is as a float"),
	FRAG_PARAM_F64(struct format_converter, scale_max, 1.0,
		       .headline = "What 255 of a u8, or 65535 of a u16, is as a float"),
	FRAG_PARAM_I64(struct format_converter, alpha_value, 255,
		       .headline = "Alpha of rgba8888 when the input has none", .min = 0,
		       .max = 255),
	FRAG_PARAM_I64(struct format_converter, resize_width, 0,
		       .headline = "New width; 0: as it is", .min = 0, .max = FRAME_SIDE_MAX),
	FRAG_PARAM_I64(struct format_converter, resize_height, 0,
		       .headline = "New height; 0: as it is", .min = 0, .max = FRAME_SIDE_MAX),
	FRAG_PARAM_I64(
		struct format_converter, resize_mode, 0,
		.headline = "Interpolation, by NPP's numbers",
		.description =
			"0 cubic, 1 nearest, 2 linear, 4 cubic, 8 the mean of the area (a side that grows: linear)"),
	FRAG_PARAM_BOOL(
		struct format_converter, pad, 0,
		.headline = "Keep the ratio of the sides, and fill the rest of the new size",
		.description =
			"The picture is as large as fits, and in the middle; where the rest is odd, there is one pixel less left of it or above it"),
	FRAG_PARAM_I64(
		struct format_converter, pad_value, 0,
		.headline = "Channels of the pixels that pad adds, as a u8", .min = 0, .max = 255,
		.description =
			"As a float it is scaled as those of the picture; alpha is alpha_value"),
	FRAG_PARAM_F64_LIST(
		struct format_converter, window, NULL,
		.headline = "Values of the input that become black and white, as [2000, 4000]",
		.description =
			"What lies below or above is cut off; alpha stays. Empty: the whole range of u8 or u16, and what an f32 is",
		.flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_F64_LIST(
		struct format_converter, percentile, NULL,
		.headline = "The same by shares of each frame: of [1, 99] one percent is black",
		.description =
			"The least values that so many percent of the elements do not exceed; of frames of u8 or u16",
		.flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_I64_LIST(
		struct format_converter, out_channel_order, NULL,
		.headline = "Which channel the output's first, second ... is: [2, 1, 0] is BGR",
		.flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_STRING(
		struct format_converter, out_layout, "hwc", .headline = "Order of the dimensions",
		.description =
			"hwc: [rows, columns, channels]; chw: [channels, rows, columns], a plane for each channel",
		.choices = layouts),
	FRAG_PARAM_RESOURCE(
		struct format_converter, pool, NULL, .headline = "Allocator of the output",
		.description = "A pool with memory of a GPU only: frames are converted there",
		.flags = FRAG_PARAM_OPTIONAL),
};

static int check_levels(const struct format_converter *fc, struct frag_op *op)
{
	const double *window = fc->window.items, *percentile = fc->percentile.items;

	if (fc->window.count > 0 && fc->percentile.count > 0)
		return frag_op_fail(op, -EINVAL,
				    "both window and percentile are given; remove one of them");
	if (fc->window.count != 0 && (fc->window.count != 2 || !(window[0] < window[1])))
		return frag_op_fail(
			op, -EINVAL,
			"window is not two numbers of which the first is less; give [black, white]");
	if (fc->percentile.count != 0 &&
	    (fc->percentile.count != 2 || !(percentile[0] >= 0.0) ||
	     !(percentile[0] < percentile[1]) || !(percentile[1] <= 100.0)))
		return frag_op_fail(
			op, -EINVAL,
			"percentile is not two numbers from 0 to 100 of which the first is less; give [1, 99]");
	return 0;
}

static int format_converter_setup(void *state, struct frag_op *op)
{
	struct format_converter *fc = state;
	const struct converter_format *format;
	int r = converter_find_format(op, "out_dtype", fc->out_dtype, &format);

	fc->raw_format = vision_raw_find(fc->in_dtype);
	if (fc->raw_format != NULL)
		vision_raw_set_color(&fc->raw, fc->raw_format, fc->in_color, fc->in_full_range);
	else if (r == 0 && fc->in_dtype[0] != '\0')
		r = converter_find_format(op, "in_dtype", fc->in_dtype, &format);
	if (r < 0)
		return r;
	if ((fc->resize_width == 0) != (fc->resize_height == 0))
		return frag_op_fail(
			op, -EINVAL,
			"resize_width is %lld and resize_height %lld; give both or none",
			(long long)fc->resize_width, (long long)fc->resize_height);
	if (fc->pad && fc->resize_width == 0)
		return frag_op_fail(
			op, -EINVAL,
			"pad is true without a new size; give resize_width and resize_height, or leave it out");
	switch (fc->resize_mode) {
	case RESIZE_DEFAULT:
	case RESIZE_NEAREST:
	case RESIZE_LINEAR:
	case RESIZE_CUBIC:
	case RESIZE_SUPER:
		break;
	default:
		return frag_op_fail(
			op, -EINVAL,
			"resize_mode %lld is not built yet; use 0 or 4 (cubic), 1 (nearest), 2 (linear) or 8 (mean of the area)",
			(long long)fc->resize_mode);
	}
	if (!(fc->scale_max > fc->scale_min) && !(fc->scale_max < fc->scale_min))
		return frag_op_fail(
			op, -EINVAL,
			"scale_min and scale_max are both %g; give two numbers that differ",
			fc->scale_min);
	r = check_levels(fc, op);
	if (r < 0)
		return r;
	for (size_t i = 0; i < fc->out_channel_order.count; i++) {
		if (fc->out_channel_order.items[i] < 0 || fc->out_channel_order.items[i] > 3)
			return frag_op_fail(
				op, -EINVAL,
				"out_channel_order names channel %lld; channels are 0 to 2, and 3 is alpha",
				(long long)fc->out_channel_order.items[i]);
	}
	return 0;
}

static void settle_place(struct format_converter *fc, const struct frame *in)
{
	int64_t rows = fc->resize_height > 0 ? fc->resize_height : in->rows;
	int64_t columns = fc->resize_width > 0 ? fc->resize_width : in->columns;

	fc->place = fc->pad ? vision_convert_fit(in, rows, columns)
			    : (struct convert_place){.rows = rows,
						     .columns = columns,
						     .picture_rows = rows,
						     .picture_columns = columns};
}

/* Chooses the conversion for frames of this format. */
static int settle(struct format_converter *fc, struct frag_op *op, const struct frame *in)
{
	struct convert *convert = &fc->convert;
	const struct converter_format *out = NULL, *expected = NULL;
	int r = converter_find_format(op, "out_dtype", fc->out_dtype, &out);

	if (r < 0)
		return r;
	if (fc->in_dtype[0] != '\0' && fc->raw_format == NULL) {
		r = converter_find_format(op, "in_dtype", fc->in_dtype, &expected);
		if (r < 0)
			return r;
		if (expected->bits != 8 * frame_element_bytes(in) ||
		    (expected->channels != 0 && expected->channels != in->channels))
			return frag_op_fail(
				op, -EINVAL,
				"in_dtype is %s, and a frame of %lld channels of %s came; correct in_dtype or leave it out",
				fc->in_dtype, (long long)in->channels,
				in->is_float  ? "f32"
				: in->is_deep ? "u16"
					      : "u8");
	}
	*convert = (struct convert){
		.channels = out->channels,
		.is_float = out->bits == 32,
		.is_deep = out->bits == 16,
		.is_planar = strcmp(fc->out_layout, "chw") == 0,
		.scale_min = fc->scale_min,
		.scale_max = fc->scale_max,
		.alpha = (uint8_t)fc->alpha_value,
		.pad = (uint8_t)fc->pad_value,
	};
	settle_place(fc, in);
	if (convert->channels == 0)
		convert->channels = in->channels == 1 ? 1 : 3;
	for (uint8_t c = 0; c < 4; c++)
		convert->order[c] = c;
	if (fc->out_channel_order.count == 0)
		return 0;
	if ((int64_t)fc->out_channel_order.count != convert->channels)
		return frag_op_fail(
			op, -EINVAL,
			"out_channel_order names %zu channels, the output has %lld; give one for each",
			fc->out_channel_order.count, (long long)convert->channels);
	for (size_t i = 0; i < fc->out_channel_order.count; i++)
		convert->order[i] = (uint8_t)fc->out_channel_order.items[i];
	return 0;
}

/* Makes scratch memory at least as large as `size`. */
static int reserve(void **memory, size_t *has, size_t size)
{
	void *larger = size > *has ? realloc(*memory, size) : *memory;

	if (larger == NULL)
		return -ENOMEM;
	*memory = larger;
	*has = size > *has ? size : *has;
	return 0;
}

bool converter_has_levels(const struct format_converter *fc, const struct frame *frame)
{
	return frame->is_deep || fc->window.count > 0 || fc->percentile.count > 0;
}

struct levels converter_levels(const struct format_converter *fc, const struct frame *frame)
{
	if (fc->window.count > 0)
		return (struct levels){fc->window.items[0], fc->window.items[1]};
	return draw_levels_all(frame);
}

/* Brings the values of a frame to those of an f32, in scratch memory that *frame then describes. */
static int level(struct format_converter *fc, struct frag_op *op, struct frame *frame)
{
	size_t row = (size_t)(frame->columns * frame->channels) * sizeof(float);
	struct levels levels = converter_levels(fc, frame);
	int r = reserve(&fc->leveled, &fc->leveled_size, row * (size_t)frame->rows);

	if (fc->percentile.count > 0 && frame->is_float)
		return frag_op_fail(
			op, -EINVAL,
			"percentile needs a frame of u8 or u16, and one of f32 came; give window");
	if (r == 0 && fc->percentile.count > 0)
		r = draw_levels_percentile(frame, fc->percentile.items[0], fc->percentile.items[1],
					   &levels);
	if (r < 0)
		return r;
	draw_levels_f32(&levels, frame, fc->scale_min, fc->scale_max, fc->leveled);
	frame->data = fc->leveled;
	frame->row_bytes = row;
	frame->is_float = true;
	frame->is_deep = false;
	return 0;
}

/* Resizes *frame into the scratch memory; *frame then describes the result. */
static int resize(struct format_converter *fc, struct frame *frame)
{
	const struct convert_place *place = &fc->place;
	size_t row =
		(size_t)(place->picture_columns * frame->channels) * frame_element_bytes(frame);
	size_t size = row * (size_t)place->picture_rows;
	int r;

	r = reserve(&fc->resized, &fc->resized_size, size);
	if (r < 0)
		return r;
	r = vision_resize(frame, (enum resize_mode)fc->resize_mode, place->picture_rows,
			  place->picture_columns, fc->resized);
	if (r < 0)
		return r;
	frame->data = fc->resized;
	frame->row_bytes = row;
	frame->rows = place->picture_rows;
	frame->columns = place->picture_columns;
	return 0;
}

struct frag_dtype converter_output(const struct format_converter *fc, int64_t shape[3])
{
	const struct convert *convert = &fc->convert;
	const int64_t rows = fc->place.rows, columns = fc->place.columns;

	shape[0] = convert->is_planar ? convert->channels : rows;
	shape[1] = convert->is_planar ? rows : columns;
	shape[2] = convert->is_planar ? columns : convert->channels;
	return convert->is_float ? FRAME_F32 : convert->is_deep ? FRAME_U16 : FRAME_U8;
}

/* Makes RGB of fc->raw, in scratch memory that *frame then describes. */
static int unpack(struct format_converter *fc, struct frame *frame)
{
	int r = reserve(&fc->unpacked, &fc->unpacked_size, frame->row_bytes * (size_t)frame->rows);

	if (r < 0)
		return r;
	fc->raw.out = fc->unpacked;
	vision_raw_settle(&fc->raw);
	vision_raw_convert(&fc->raw);
	frame->data = fc->unpacked;
	return 0;
}

static int convert_on_cpu(struct format_converter *fc, struct frag_op *op, struct frame *frame,
			  struct frag_tensor **out)
{
	bool resizes = fc->place.picture_rows != frame->rows ||
		       fc->place.picture_columns != frame->columns;
	struct frag_dtype dtype;
	int64_t shape[3];
	int r = fc->raw_format != NULL ? unpack(fc, frame) : 0;

	if (r == 0 && converter_has_levels(fc, frame))
		r = level(fc, op, frame);
	if (r == 0 && resizes)
		r = resize(fc, frame);
	if (r < 0)
		return r;
	dtype = converter_output(fc, shape);
	r = frame_create(op, fc->pool, dtype, shape, out);
	if (r == 0)
		vision_convert_into(&fc->convert, frame, &fc->place, frag_tensor_writable(*out));
	return r;
}

/* Brings a frame of the host to the GPU of the pool, and converts it there. */
static int send_to_gpu(struct format_converter *fc, struct frag_tick *tick,
		       const struct frag_tensor *in, struct frame *frame, struct frag_tensor **out)
{
	struct frag_device gpu = fc->twin.stream_device;
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_tensor *there;
	int r = frag_tensor_copy(in, NULL, gpu, &there, &err);

	if (r < 0)
		return frag_op_fail(frag_tick_op(tick), r, "cannot copy a frame to GPU %d: %s",
				    (int)gpu.id, err.text[0] != '\0' ? err.text : frag_strerror(r));
	if (fc->raw_format != NULL) {
		const struct frag_dltensor *dl = frag_tensor_dl(there);

		fc->raw.in = frag_tensor_data(there);
		fc->raw.row_bytes = (uint64_t)(dl->shape[1] * (dl->ndim == 3 ? dl->shape[2] : 1)) *
				    (dl->dtype.bits / 8u);
	} else {
		frame->data = frag_tensor_data(there);
		frame->row_bytes =
			(size_t)(frame->columns * frame->channels) * frame_element_bytes(frame);
	}
	r = converter_on_gpu(fc, tick, gpu, frame, out);
	(void)frag_tick_hold(tick, there);
	return r;
}

/* Converts on the GPU where the frame or the memory of the pool lies; else on the CPU. */
static int convert(struct format_converter *fc, struct frag_tick *tick,
		   const struct frag_tensor *in, struct frame *frame, struct frag_tensor **out)
{
	struct frag_op *op = frag_tick_op(tick);

	if ((fc->percentile.count > 0 || fc->convert.is_deep) &&
	    (!frame_is_on_host(in) || fc->twin.pool_is_on_gpu))
		return frag_op_fail(
			op, -ENOTSUP,
			"percentile and frames of u16 as output are made on the CPU only; give frames and a pool in memory of the host, or window and another out_dtype");
	if (!frame_is_on_host(in))
		return converter_on_gpu(fc, tick, gpu_of(in), frame, out);
	return fc->twin.pool_is_on_gpu ? send_to_gpu(fc, tick, in, frame, out)
				       : convert_on_cpu(fc, op, frame, out);
}

/* Finds a frame that is not RGB yet, and describes the RGB that it becomes. */
static int receive_raw(struct format_converter *fc, struct frag_op *op,
		       const struct frag_message *message, struct frag_tensor **in,
		       struct frame *out)
{
	const char *reason = NULL;
	int r = -EINVAL;

	*in = frame_tensor(message, fc->in_tensor_name);
	if (*in == NULL)
		return frag_op_fail(
			op, r,
			"the message holds no tensor \"%s\"; set in_tensor_name to the name that the sender gives",
			fc->in_tensor_name);
	r = vision_raw_describe(fc->raw_format, *in, strcmp(fc->demosaic, "malvar") == 0, &fc->raw,
				&reason);
	if (r < 0)
		return frag_op_fail(op, r, "tensor \"%s\" is not a valid frame of %s: %s",
				    fc->in_tensor_name, fc->in_dtype, reason);
	*out = (struct frame){.rows = fc->raw.rows,
			      .columns = fc->raw.columns,
			      .channels = 3,
			      .is_deep = fc->raw.is_deep != 0};
	out->row_bytes = (size_t)(out->columns * 3) * frame_element_bytes(out);
	return 0;
}

static int format_converter_compute(void *state, struct frag_tick *tick)
{
	struct format_converter *fc = state;
	struct frag_op *op = frag_tick_op(tick);
	const struct frag_message *message;
	struct frag_tensor *in = NULL, *out = NULL;
	struct frame frame = {0}, came;
	int r = frag_tick_receive(tick, SOURCE_VIDEO, &message);

	if (r < 0)
		return r == -ENOMSG ? 0 : r;
	r = fc->raw_format != NULL ? receive_raw(fc, op, message, &in, &frame)
				   : frame_receive_by(op, message, fc->in_tensor_name,
						      frame_deep_anywhere, &in, &frame);
	if (r < 0)
		return r;
	r = settle(fc, op, &frame);
	if (r < 0)
		return r;
	if (fc->raw_format == NULL && fc->place.rows == frame.rows &&
	    fc->place.columns == frame.columns && fc->window.count + fc->percentile.count == 0 &&
	    vision_convert_is_identity(&fc->convert, &frame))
		return frame_emit(tick, TENSOR, fc->out_tensor_name, frag_tensor_ref(in), message);
	came = frame;
	r = convert(fc, tick, in, &frame, &out);
	if (r < 0)
		return r;
	r = frame_change_sides(tick, &came, fc->place.picture_rows, fc->place.picture_columns);
	if (r == 0)
		return frame_emit(tick, TENSOR, fc->out_tensor_name, out, message);
	frag_tensor_unref(out);
	return r;
}

static int format_converter_initialize(void *state, struct frag_op *op)
{
	struct format_converter *fc = state;
	struct frag_err err = FRAG_ERR_INIT;
	int64_t channels = strcmp(fc->in_dtype, "rgba8888") == 0 ? 4
			   : strcmp(fc->in_dtype, "gray8") == 0  ? 1
								 : 3;

	/* as for a frame of the usual format */
	struct convert convert = {
		.scale_min = fc->scale_min, .scale_max = fc->scale_max, .order = {0, 1, 2, 3}};
	const struct converter_format *format = NULL;
	int r = converter_find_format(op, "out_dtype", fc->out_dtype, &format);

	if (r < 0)
		return r;
	convert.is_float = format->bits == 32;
	convert.channels = format->channels > 0 ? format->channels : channels == 1 ? 1 : 3;
	r = gpu_twin_open(&fc->twin, op, vision_ptx, fc->pool, NULL);
	if (r == 0 && fc->twin.pool_is_on_gpu &&
	    vision_convert_gpu_prepare(&fc->gpu, &convert, fc->twin.stream_device, channels,
				       fc->resize_width > 0, (enum resize_mode)fc->resize_mode,
				       fc->pad, &err) < 0)
		return frag_op_fail(op, -EIO, "no kernel for GPU %d: %s",
				    (int)fc->twin.stream_device.id, err.text);
	return r;
}

static void format_converter_fini(void *state, struct frag_op *op)
{
	struct format_converter *fc = state;

	(void)op;
	free(fc->leveled);
	free(fc->resized);
	free(fc->unpacked);
	vision_convert_gpu_fini(&fc->gpu);
	gpu_twin_close(&fc->twin);
}

const struct frag_op_type vision_format_converter_type = {
	FRAG_OP_TYPE_INIT,
	.name = "format_converter",
	.headline = "Changes size, channels and element type of frames",
	.description =
		"First unpacks YUV and Bayer patterns, then brings window or percentile to black and white, then resizes, then chooses and orders the channels, then changes the element type. A frame that is already as wanted is passed on without a copy. A frame in memory of a GPU is converted there, with the same result, and one in memory of the host where the pool has memory of a GPU only.",
	.state_size = sizeof(struct format_converter),
	FRAG_PORTS(format_converter_ports),
	FRAG_PARAMS(format_converter_params),
	.setup = format_converter_setup,
	.initialize = format_converter_initialize,
	.compute = format_converter_compute,
	.fini = format_converter_fini,
};
