/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "../draw/levels.h"
#include "convert.h"
#include "convert_gpu.h"
#include "resize.h"
#include "vision.h"

#define GPUS_MAX 64

struct format_converter {
	const char *in_tensor_name, *out_tensor_name;
	const char *in_dtype, *out_dtype, *out_layout;
	double scale_min, scale_max;
	int64_t alpha_value;
	int64_t resize_width, resize_height, resize_mode;
	bool pad;
	int64_t pad_value;
	struct frag_i64_list out_channel_order;
	struct frag_f64_list window, percentile;
	struct frag_resource *pool;

	struct convert convert; /* channels and order for the format of the current frame */
	struct convert_place place;
	void *leveled; /* scratch memory between the levels and resizing */
	size_t leveled_size;
	void *resized; /* the same between resizing and converting */
	size_t resized_size;

	struct convert_gpu gpu;
	bool pool_is_on_gpu; /* the pool has memory of pool_device only */
	struct frag_device pool_device;
};

enum { SOURCE_VIDEO, TENSOR };
static const struct frag_port format_converter_ports[] = {
	[SOURCE_VIDEO] =
		{.name = "source_video",
		 .dir = FRAG_IN,
		 .type = "tensor",
		 .headline =
			 "a frame of u8, u16 or f32: gray, RGB or RGBA; of u8 or f32 also in memory of a GPU"},
	[TENSOR] = {.name = "tensor",
		    .dir = FRAG_OUT,
		    .type = "tensor",
		    .headline = "the frame in out_dtype and the new size"},
};

static const char *const layouts[] = {"hwc", "chw", NULL};

/*
 * Holoscan's names of formats. The ones that are missing here are refused by name. gray8, gray16
 * and gray32f are additions of frag.
 */
#define FORMATS                                                                                    \
	"rgb888, rgba8888, uint8, float32, gray8, gray32f, rgb161616, rgba16161616, uint16, gray16"
static const struct {
	const char *name;
	int64_t channels; /* 0: 3, or 1 when the input is gray */
	uint8_t bits;     /* 32: f32 */
	bool built;
} formats[] = {
	{"rgb888", 3, 8, true},     {"uint8", 0, 8, true},         {"float32", 0, 32, true},
	{"rgba8888", 4, 8, true},   {"gray8", 1, 8, true},         {"gray32f", 1, 32, true},
	{"rgb161616", 3, 16, true}, {"rgba16161616", 4, 16, true}, {"uint16", 0, 16, true},
	{"gray16", 1, 16, true},    {"yuv420", 0, 8, false},       {"nv12", 0, 8, false},
	{"yuyv", 0, 8, false},
};

static const struct frag_param format_converter_params[] = {
	FRAG_PARAM_STRING(
		struct format_converter, in_tensor_name, "",
		.headline = "Tensor to convert; empty: the one without a name, else the first"),
	FRAG_PARAM_STRING(struct format_converter, out_tensor_name, "",
			  .headline = "Name of the output"),
	FRAG_PARAM_STRING(struct format_converter, in_dtype, "",
			  .headline = "Format that the input must have; empty: any",
			  .description = FORMATS),
	FRAG_PARAM_STRING(struct format_converter, out_dtype, NULL,
			  .headline = "Format of the output",
			  .description = FORMATS
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

static int find_format(struct frag_op *op, const char *parameter, const char *name, size_t *out)
{
	for (size_t i = 0; i < FRAG_COUNT_OF(formats); i++) {
		if (strcmp(name, formats[i].name) != 0)
			continue;
		if (!formats[i].built)
			return frag_op_fail(op, -ENOTSUP,
					    "%s %s is not built yet; use one of " FORMATS,
					    parameter, name);
		*out = i;
		return 0;
	}
	return frag_op_fail(op, -EINVAL, "%s \"%s\" is not a valid format; it is one of " FORMATS,
			    parameter, name);
}

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
	size_t format;
	int r = find_format(op, "out_dtype", fc->out_dtype, &format);

	if (r == 0 && fc->in_dtype[0] != '\0')
		r = find_format(op, "in_dtype", fc->in_dtype, &format);
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
	size_t out = 0, expected = 0;
	int r = find_format(op, "out_dtype", fc->out_dtype, &out);

	if (r < 0)
		return r;
	if (fc->in_dtype[0] != '\0') {
		r = find_format(op, "in_dtype", fc->in_dtype, &expected);
		if (r < 0)
			return r;
		if (formats[expected].bits != 8 * frame_element_bytes(in) ||
		    (formats[expected].channels != 0 && formats[expected].channels != in->channels))
			return frag_op_fail(
				op, -EINVAL,
				"in_dtype is %s, and a frame of %lld channels of %s came; correct in_dtype or leave it out",
				fc->in_dtype, (long long)in->channels,
				in->is_float  ? "f32"
				: in->is_deep ? "u16"
					      : "u8");
	}
	*convert = (struct convert){
		.channels = formats[out].channels,
		.is_float = formats[out].bits == 32,
		.is_deep = formats[out].bits == 16,
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

static bool has_levels(const struct format_converter *fc, const struct frame *frame)
{
	return frame->is_deep || fc->window.count > 0 || fc->percentile.count > 0;
}

/* Brings the values of a frame to those of an f32, in scratch memory that *frame then describes. */
static int level(struct format_converter *fc, struct frag_op *op, struct frame *frame)
{
	size_t row = (size_t)(frame->columns * frame->channels) * sizeof(float);
	struct levels levels = draw_levels_all(frame);
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
	if (fc->window.count > 0)
		levels = (struct levels){fc->window.items[0], fc->window.items[1]};
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

/* Creates the output. A device on the host: where the pool has memory. */
static int create(const struct format_converter *fc, struct frag_op *op, struct frag_device device,
		  struct frag_tensor **out)
{
	const struct convert *convert = &fc->convert;
	const int64_t rows = fc->place.rows, columns = fc->place.columns;
	const struct frag_dtype dtype = convert->is_float  ? FRAME_F32
					: convert->is_deep ? FRAME_U16
							   : FRAME_U8;
	const int64_t pixels[] = {rows, columns, convert->channels};
	const int64_t planes[] = {convert->channels, rows, columns};
	const int64_t *shape = convert->is_planar ? planes : pixels;
	int r;

	if (device.type == FRAG_DEVICE_CPU)
		return frame_create(op, fc->pool, dtype, shape, out);
	r = frag_tensor_create_on(fc->pool, device, dtype, 3, shape, out);
	if (r == -EXDEV)
		return frag_op_fail(
			op, r,
			"the frame came in memory of GPU %d, and the pool has none of that; give the pool memory of this GPU, or leave it out",
			(int)device.id);
	if (r < 0)
		return frag_op_fail(
			op, r,
			"cannot make a frame of %lld x %lld x %lld on GPU %d: %s; give the pool larger or more blocks",
			(long long)shape[0], (long long)shape[1], (long long)shape[2],
			(int)device.id, frag_strerror(r));
	return 0;
}

static int convert_on_cpu(struct format_converter *fc, struct frag_op *op, struct frame *frame,
			  struct frag_tensor **out)
{
	bool resizes = fc->place.picture_rows != frame->rows ||
		       fc->place.picture_columns != frame->columns;
	int r = has_levels(fc, frame) ? level(fc, op, frame) : 0;

	if (r == 0 && resizes)
		r = resize(fc, frame);
	if (r == 0)
		r = create(fc, op, (struct frag_device){FRAG_DEVICE_CPU, 0}, out);
	if (r == 0)
		vision_convert_into(&fc->convert, frame, &fc->place, frag_tensor_writable(*out));
	return r;
}

/* With a stream the message travels before the frame is converted; else it is done on return. */
static int convert_on_gpu(struct format_converter *fc, struct frag_op *op, void *stream,
			  struct frag_device device, const struct frame *frame,
			  struct frag_tensor **out)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_tensor *tensor;
	int r;

	if (frame->is_float && (uintptr_t)frame->data % sizeof(float) != 0)
		return frag_op_fail(
			op, -EINVAL,
			"the f32 of the frame are not aligned to 4 bytes, and a GPU cannot read them; give the tensor another byte_offset");
	r = create(fc, op, device, &tensor);
	if (r < 0)
		return r;
	r = vision_convert_gpu(&fc->gpu, &fc->convert, device, frame,
			       (enum resize_mode)fc->resize_mode, &fc->place,
			       frag_tensor_writable(tensor), stream, &err);
	if (r == 0 && stream == NULL)
		r = vision_convert_gpu_wait(&fc->gpu, &err);
	if (r == 0) {
		*out = tensor;
		return 0;
	}
	frag_tensor_unref(tensor);
	return frag_op_fail(op, r, "cannot convert a frame on GPU %d: %s", (int)device.id,
			    err.text[0] != '\0' ? err.text : frag_strerror(r));
}

/* Converts on the GPU where the frame or the memory of the pool lies; else on the CPU. */
static int convert(struct format_converter *fc, struct frag_tick *tick,
		   const struct frag_tensor *in, struct frame *frame, struct frag_tensor **out)
{
	struct frag_device gpu = {FRAG_DEVICE_CUDA, frag_tensor_dl(in)->device.id};
	struct frag_op *op = frag_tick_op(tick);
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_tensor *there;
	int r;

	if ((has_levels(fc, frame) || fc->convert.is_deep) &&
	    (!frame_is_on_host(in) || fc->pool_is_on_gpu))
		return frag_op_fail(
			op, -ENOTSUP,
			"frames of u16, window and percentile are converted on the CPU only; give frames and a pool in memory of the host");
	if (!frame_is_on_host(in))
		return convert_on_gpu(fc, op,
				      gpu.id == fc->pool_device.id ? frag_tick_stream(tick) : NULL,
				      gpu, frame, out);
	if (!fc->pool_is_on_gpu)
		return convert_on_cpu(fc, op, frame, out);
	r = frag_tensor_copy(in, NULL, fc->pool_device, &there, &err);
	if (r < 0)
		return frag_op_fail(op, r, "cannot copy a frame to GPU %d: %s",
				    (int)fc->pool_device.id,
				    err.text[0] != '\0' ? err.text : frag_strerror(r));
	frame->data = frag_tensor_data(there);
	frame->row_bytes = (size_t)(frame->columns * frame->channels) * frame_element_bytes(frame);
	r = convert_on_gpu(fc, op, frag_tick_stream(tick), fc->pool_device, frame, out);
	(void)frag_tick_hold(tick, there);
	return r;
}

static int format_converter_compute(void *state, struct frag_tick *tick)
{
	struct format_converter *fc = state;
	struct frag_op *op = frag_tick_op(tick);
	const struct frag_message *message;
	struct frag_tensor *in = NULL, *out = NULL;
	struct frame frame = {0};
	int r = frag_tick_receive(tick, SOURCE_VIDEO, &message);

	if (r < 0)
		return r == -ENOMSG ? 0 : r;
	r = frame_receive_by(op, message, fc->in_tensor_name, frame_deep_anywhere, &in, &frame);
	if (r < 0)
		return r;
	r = settle(fc, op, &frame);
	if (r < 0)
		return r;
	if (fc->place.rows == frame.rows && fc->place.columns == frame.columns &&
	    fc->window.count + fc->percentile.count == 0 &&
	    vision_convert_is_identity(&fc->convert, &frame))
		return frame_emit(tick, TENSOR, fc->out_tensor_name, frag_tensor_ref(in), message);
	r = convert(fc, tick, in, &frame, &out);
	return r < 0 ? r : frame_emit(tick, TENSOR, fc->out_tensor_name, out, message);
}

/* Finds out where the pool has its memory; a pool has one GPU. */
static void find_pool(struct format_converter *fc)
{
	const struct frag_dtype u8 = {FRAG_DTYPE_UINT, 8, 1};
	struct frag_tensor *tensor = NULL;
	const int64_t one = 1;
	int r = fc->pool != NULL ? frag_tensor_create(fc->pool, u8, 1, &one, &tensor) : -ENOMSG;

	for (int32_t id = 0; id < GPUS_MAX && r == -EXDEV; id++) {
		fc->pool_device = (struct frag_device){FRAG_DEVICE_CUDA, id};
		r = frag_tensor_create_on(fc->pool, fc->pool_device, u8, 1, &one, &tensor);
		fc->pool_is_on_gpu = r == 0;
	}
	if (r == 0)
		frag_tensor_unref(tensor);
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
	size_t format;
	int r = find_format(op, "out_dtype", fc->out_dtype, &format);

	if (r < 0)
		return r;
	convert.is_float = formats[format].bits == 32;
	convert.channels = formats[format].channels > 0 ? formats[format].channels
			   : channels == 1              ? 1
							: 3;
	find_pool(fc);
	if (!fc->pool_is_on_gpu)
		return 0;
	if (!vision_convert_gpu_is_built())
		return frag_op_fail(
			op, -ENOTSUP,
			"its pool has memory of a GPU, and this build of frag has no kernels: it was made without a CUDA toolkit; use a pool with storage_type: 2");
	if (vision_convert_gpu_prepare(&fc->gpu, &convert, fc->pool_device, channels,
				       fc->resize_width > 0, (enum resize_mode)fc->resize_mode,
				       fc->pad, &err) < 0)
		return frag_op_fail(op, -EIO, "no kernel for GPU %d: %s", (int)fc->pool_device.id,
				    err.text);
	return frag_op_use_stream(op, NULL, fc->pool_device);
}

static void format_converter_fini(void *state, struct frag_op *op)
{
	struct format_converter *fc = state;

	(void)op;
	free(fc->leveled);
	free(fc->resized);
	vision_convert_gpu_fini(&fc->gpu);
}

const struct frag_op_type vision_format_converter_type = {
	FRAG_OP_TYPE_INIT,
	.name = "format_converter",
	.headline = "Changes size, channels and element type of frames",
	.description =
		"First brings window or percentile to black and white, then resizes, then chooses and orders the channels, then changes the element type. A frame that is already as wanted is passed on without a copy. A frame in memory of a GPU is converted there, with the same result, and one in memory of the host where the pool has memory of a GPU only.",
	.state_size = sizeof(struct format_converter),
	FRAG_PORTS(format_converter_ports),
	FRAG_PARAMS(format_converter_params),
	.setup = format_converter_setup,
	.initialize = format_converter_initialize,
	.compute = format_converter_compute,
	.fini = format_converter_fini,
};
