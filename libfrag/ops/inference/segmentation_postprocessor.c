/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "inference.h"
#include "masks.h"

#define SIDE_MAX 32767

struct segmentation_postprocessor {
	const char *in_tensor_name, *out_tensor_name, *network_output_type, *data_format;
	const char *boxes_tensor_name;
	double threshold;
	int64_t rows, columns;
	bool instances;
	struct frag_resource *allocator, *cuda_stream_pool;
};

enum { IN_TENSOR, BOXES, OUT_TENSOR };
static const struct frag_port ports[] = {
	[IN_TENSOR] = {.name = "in_tensor",
		       .dir = FRAG_IN,
		       .type = "tensor",
		       .headline = "the output of the network"},
	[BOXES] = {.name = "boxes",
		   .dir = FRAG_IN,
		   .type = "tensor",
		   .headline = "where each picture of a batch was cut out of a frame, from crop",
		   .flags = FRAG_PORT_OPTIONAL,
		   .tensors = FRAG_BOXES},
	[OUT_TENSOR] = {.name = "out_tensor",
			.dir = FRAG_OUT,
			.type = "tensor",
			.headline = "a mask; with instances numbers of boxes in place of classes",
			.tensors = FRAG_MASK},
};

static const char *const types[] = {"softmax", "sigmoid", NULL};
static const char *const formats[] = {"hwc", "nhwc", "nchw", NULL};
static const struct frag_param params[] = {
	FRAG_PARAM_STRING(
		struct segmentation_postprocessor, in_tensor_name, "",
		.headline = "Tensor of the network; empty: the one without a name, else the first"),
	FRAG_PARAM_STRING(struct segmentation_postprocessor, out_tensor_name, "out_tensor",
			  .headline = "Name of the mask"),
	FRAG_PARAM_STRING(
		struct segmentation_postprocessor, network_output_type, "softmax",
		.headline =
			"softmax: the class is the channel with the largest number; sigmoid: class 1 is above the threshold",
		.choices = types),
	FRAG_PARAM_STRING(struct segmentation_postprocessor, data_format, "hwc",
			  .headline = "Order of the tensor's dimensions", .choices = formats),
	FRAG_PARAM_F64(struct segmentation_postprocessor, threshold, 0.5, .headline = "Of sigmoid",
		       .flags = FRAG_PARAM_DYNAMIC),
	FRAG_PARAM_STRING(struct segmentation_postprocessor, boxes_tensor_name, "boxes",
			  .headline = "Tensor of the boxes: f32 [N, 4], from 0 to 1"),
	FRAG_PARAM_I64(struct segmentation_postprocessor, rows, 0,
		       .headline = "Rows of the frames that the boxes are parts of", .min = 0,
		       .max = SIDE_MAX),
	FRAG_PARAM_I64(struct segmentation_postprocessor, columns, 0,
		       .headline = "Columns of the frames that the boxes are parts of", .min = 0,
		       .max = SIDE_MAX),
	FRAG_PARAM_BOOL(struct segmentation_postprocessor, instances, false,
			.headline = "Number the boxes, from 1, in place of the classes"),
	FRAG_PARAM_RESOURCE(struct segmentation_postprocessor, allocator, NULL,
			    .headline = "Allocator of the mask", .flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_RESOURCE(
		struct segmentation_postprocessor, cuda_stream_pool, NULL,
		.headline =
			"Accepted, because Holoscan has it; without effect: masks are made by the CPU",
		.flags = FRAG_PARAM_OPTIONAL),
};

static int setup(void *state, struct frag_op *op)
{
	const struct segmentation_postprocessor *sp = state;

	if ((sp->rows > 0) == (sp->columns > 0))
		return 0;
	return frag_op_fail(op, -EINVAL,
			    "rows is %lld and columns %lld; give the size of the frames, or none",
			    (long long)sp->rows, (long long)sp->columns);
}

/* Describes the tensor of the network. Returns 0 with the number of pictures in it. */
static int describe(const struct segmentation_postprocessor *sp, struct frag_op *op,
		    const struct frag_tensor *tensor, struct mask_source *out, int64_t *out_count)
{
	const struct frag_dltensor *dl = frag_tensor_dl(tensor);
	bool planar = strcmp(sp->data_format, "nchw") == 0;
	int32_t first = dl->ndim - 3;
	const int64_t *sides = dl->shape + (first >= 0 ? first : 0);

	if (dl->dtype.code != FRAG_DTYPE_FLOAT || dl->dtype.bits != 32 || dl->dtype.lanes != 1 ||
	    !frag_tensor_is_compact(tensor) ||
	    (dl->device.type != FRAG_DEVICE_CPU && dl->device.type != FRAG_DEVICE_CUDA_HOST))
		return frag_op_fail(
			op, -EINVAL,
			"the tensor \"%s\" is not f32 without gaps in host memory; in_tensor_name selects the output of the network",
			sp->in_tensor_name);
	if (dl->ndim != 3 && dl->ndim != 4)
		return frag_op_fail(
			op, -EINVAL,
			"the tensor \"%s\" has %d dimensions; a network for segmentation gives [rows, columns, classes], or a batch of it",
			sp->in_tensor_name, dl->ndim);
	*out = (struct mask_source){
		.data = frag_tensor_data(tensor),
		.rows = planar ? sides[1] : sides[0],
		.columns = planar ? sides[2] : sides[1],
		.channels = planar ? sides[0] : sides[2],
		.planar = planar,
		.softmax = strcmp(sp->network_output_type, "softmax") == 0,
		.threshold = (float)sp->threshold,
	};
	*out_count = dl->ndim == 4 ? dl->shape[0] : 1;
	if (out->rows < 1 || out->columns < 1 || out->rows > SIDE_MAX || out->columns > SIDE_MAX ||
	    out->channels < 1 || out->channels > 256)
		return frag_op_fail(
			op, -EINVAL,
			"the tensor \"%s\" is of %lld x %lld pixels with %lld classes; sides go to 32767 and classes to 256: check data_format, which is %s",
			sp->in_tensor_name, (long long)out->columns, (long long)out->rows,
			(long long)out->channels, sp->data_format);
	if (out->softmax && out->channels < 2)
		return frag_op_fail(
			op, -EINVAL,
			"the tensor \"%s\" has one class, and network_output_type is softmax; set it to sigmoid, or check data_format, which is %s",
			sp->in_tensor_name, sp->data_format);
	return 0;
}

static int check_nan(const struct mask_source *source, struct frag_op *op, int64_t i)
{
	if (!mask_has_nan(source))
		return 0;
	return frag_op_fail(
		op, -EBADMSG,
		"picture %lld of the network holds numbers that are none (NaN); check that the network's input is in the range that it was trained with (scale_min, scale_max of format_converter), and its file",
		(long long)i);
}

static int mask_create(const struct segmentation_postprocessor *sp, struct frag_op *op,
		       struct mask *mask, struct frag_tensor **out)
{
	int64_t shape[] = {mask->rows, mask->columns, 1};
	int r = frag_tensor_create(sp->allocator, (struct frag_dtype){FRAG_DTYPE_UINT, 8, 1}, 3,
				   shape, out);

	if (r < 0)
		return frag_op_fail(
			op, r,
			"cannot make a mask of %lld x %lld bytes: %s; give the allocator larger or more blocks",
			(long long)mask->rows, (long long)mask->columns, frag_strerror(r));
	mask->data = frag_tensor_writable(*out);
	return 0;
}

/* Finds the boxes that belong to `count` pictures. */
static int find_boxes(const struct segmentation_postprocessor *sp, struct frag_tick *tick,
		      int64_t count, const float **out)
{
	struct frag_op *op = frag_tick_op(tick);
	const struct frag_message *message;
	const struct frag_tensor *tensor;
	const struct frag_dltensor *dl;
	int r = frag_tick_receive(tick, BOXES, &message);

	if (r < 0)
		return r;
	tensor = frag_message_tensor(message, sp->boxes_tensor_name);
	if (tensor == NULL)
		return frag_op_fail(
			op, -EINVAL,
			"the message at boxes holds no tensor \"%s\"; set boxes_tensor_name to the name that the sender gives",
			sp->boxes_tensor_name);
	dl = frag_tensor_dl(tensor);
	if (dl->dtype.code != FRAG_DTYPE_FLOAT || dl->dtype.bits != 32 || dl->ndim != 2 ||
	    dl->shape[1] != 4 || !frag_tensor_is_compact(tensor))
		return frag_op_fail(
			op, -EINVAL,
			"the tensor \"%s\" is not f32 [N, 4]; set boxes_tensor_name to that of the boxes",
			sp->boxes_tensor_name);
	if (dl->shape[0] != count)
		return frag_op_fail(
			op, -EINVAL,
			"there are %lld boxes and %lld pictures; both must come from the same crop, and no flow in between may drop messages",
			(long long)dl->shape[0], (long long)count);
	*out = frag_tensor_data(tensor);
	return 0;
}

/* Boxes may reach beyond the frame; one of no size, or far away, covers nothing. */
static bool covers(const float box[4])
{
	for (int i = 0; i < 4; i++)
		if (!(fabsf(box[i]) < 1000.0f))
			return false;
	return box[2] > box[0] && box[3] > box[1];
}

/* Puts the pictures of a batch where they were cut out. */
static int paste_all(const struct segmentation_postprocessor *sp, struct frag_tick *tick,
		     const struct mask_source *first, int64_t count, struct frag_tensor **out)
{
	struct frag_op *op = frag_tick_op(tick);
	struct mask mask = {.rows = sp->rows, .columns = sp->columns};
	struct mask_source source = *first;
	const float *boxes = NULL;
	int r = find_boxes(sp, tick, count, &boxes);

	if (r == 0)
		r = mask_create(sp, op, &mask, out);
	if (r < 0)
		return r;
	memset(mask.data, 0, (size_t)(mask.rows * mask.columns));
	for (int64_t i = 0; i < count && r == 0; i++) {
		r = check_nan(&source, op, i);
		if (r == 0 && covers(boxes + 4 * i))
			mask_paste(&source, boxes, i, sp->instances, &mask);
		source.data += source.rows * source.columns * source.channels;
	}
	if (r < 0)
		frag_tensor_unref(*out);
	return r;
}

static int classify(const struct segmentation_postprocessor *sp, struct frag_tick *tick,
		    const struct mask_source *source, int64_t count, struct frag_tensor **out)
{
	struct mask mask = {.rows = source->rows, .columns = source->columns};
	struct frag_op *op = frag_tick_op(tick);
	const struct frag_message *boxes;
	int r = check_nan(source, op, 0);

	if (r == 0 && frag_tick_receive(tick, BOXES, &boxes) == 0)
		r = frag_op_fail(
			op, -EINVAL,
			"boxes came, and rows and columns are not set; give the size of the frames that the boxes are parts of");
	if (r == 0 && count != 1)
		r = frag_op_fail(
			op, -EINVAL,
			"the tensor \"%s\" is a batch of %lld pictures; connect boxes to say where each of them belongs, and set rows and columns",
			sp->in_tensor_name, (long long)count);
	if (r == 0)
		r = mask_create(sp, op, &mask, out);
	if (r == 0)
		mask_classify(source, &mask);
	return r;
}

static int compute(void *state, struct frag_tick *tick)
{
	const struct segmentation_postprocessor *sp = state;
	struct frag_op *op = frag_tick_op(tick);
	const struct frag_message *message;
	const struct frag_tensor *tensor;
	struct frag_tensor *out;
	struct mask_source source;
	int64_t count = 0;
	int r = frag_tick_receive(tick, IN_TENSOR, &message);

	if (r < 0)
		return r == -ENOMSG ? 0 : r;
	tensor = frag_message_tensor(message, sp->in_tensor_name);
	if (tensor == NULL && sp->in_tensor_name[0] == '\0')
		tensor = frag_message_tensor(message, NULL);
	if (tensor == NULL)
		return frag_op_fail(
			op, -EINVAL,
			"the message holds no tensor \"%s\"; set in_tensor_name to the name that the sender gives",
			sp->in_tensor_name);
	r = describe(sp, op, tensor, &source, &count);
	if (r == 0 && sp->rows > 0)
		r = paste_all(sp, tick, &source, count, &out);
	else if (r == 0)
		r = classify(sp, tick, &source, count, &out);
	if (r < 0)
		return r;
	return frag_tick_emit_tensor(tick, OUT_TENSOR, sp->out_tensor_name, out);
}

const struct frag_op_type inference_segmentation_postprocessor_type = {
	FRAG_OP_TYPE_INIT,
	.name = "segmentation_postprocessor",
	.headline = "Makes a mask of classes of what a network segmented",
	.description =
		"A batch of pictures that were cut out of a frame is put together again in a mask of the frame's size, where boxes says what was cut out.",
	.state_size = sizeof(struct segmentation_postprocessor),
	FRAG_PORTS(ports),
	FRAG_PARAMS(params),
	.setup = setup,
	.compute = compute,
};
