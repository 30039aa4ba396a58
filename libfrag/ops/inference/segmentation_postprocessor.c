// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <math.h>
#include <string.h>

#include "../frame.h"
#include "../gpu/twin.h"
#include "inference.h"
#include "kernels.h"

#define SIDE_MAX 32767

struct segmentation_postprocessor {
	const char *in_tensor_name, *out_tensor_name, *network_output_type, *data_format;
	const char *boxes_tensor_name;
	double threshold;
	int64_t rows, columns;
	bool instances, has_warned;
	struct frag_resource *allocator, *cuda_stream_pool;

	const struct frag_message *message; /* of this tick, whose stamps the mask has */
	struct gpu_twin twin;
	struct frag_tensor *found; /* pinned: what mask_job's nan_picture leads to */
	struct frag_tensor *out;   /* of a tick that waits for the GPU; else NULL */
};

enum { IN_TENSOR, BOXES, OUT_TENSOR };
static const struct frag_port ports[] = {
	[IN_TENSOR] = {.name = "in_tensor",
		       .dir = FRAG_IN,
		       .type = "tensor",
		       .headline = "the output of the network; also in memory of a GPU"},
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
			"Of the network's GPU: masks are made while the thread does other work; without one it waits",
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
static int describe(struct segmentation_postprocessor *sp, struct frag_op *op,
		    const struct frag_tensor *tensor, struct mask_source *out, int64_t *out_count)
{
	const struct frag_dltensor *dl = frag_tensor_dl(tensor);
	bool planar = strcmp(sp->data_format, "nchw") == 0;
	int32_t first = dl->ndim - 3;
	const int64_t *sides = dl->shape + (first >= 0 ? first : 0);

	if (dl->dtype.code != FRAG_DTYPE_FLOAT || dl->dtype.bits != 32 || dl->dtype.lanes != 1)
		return frag_op_fail(
			op, -EINVAL,
			"the elements of the tensor \"%s\" are not f32; in_tensor_name selects the output of the network",
			sp->in_tensor_name);
	if (!frag_tensor_is_compact(tensor) ||
	    (uintptr_t)frag_tensor_data(tensor) % sizeof(float) != 0)
		return frag_op_fail(
			op, -EINVAL,
			"the tensor \"%s\" has gaps, or its last dimension is not the innermost one in memory; send a copy that is contiguous",
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
	if (!out->softmax && out->channels > 1 && !sp->has_warned) {
		sp->has_warned = true;
		frag_op_log(
			op,
			"Only the first channel will be used: network_output_type is sigmoid, and the tensor \"%s\" has %lld",
			sp->in_tensor_name, (long long)out->channels);
	}
	return 0;
}

static int fail_nan(struct frag_op *op, int64_t i)
{
	return frag_op_fail(
		op, -EBADMSG,
		"picture %lld of the network holds numbers that are none (NaN); check that the network's input is in the range that it was trained with (scale_min, scale_max of format_converter), and its file",
		(long long)i);
}

static int check_nan(const struct mask_source *source, struct frag_op *op, int64_t i)
{
	return mask_has_nan(source) ? fail_nan(op, i) : 0;
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
		      int64_t count, const struct frag_tensor **out)
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
	*out = tensor;
	return 0;
}

/* Puts the pictures of a batch where they were cut out. */
static int paste_all(const struct segmentation_postprocessor *sp, struct frag_tick *tick,
		     const struct mask_source *first, int64_t count, struct frag_tensor **out)
{
	struct frag_op *op = frag_tick_op(tick);
	struct mask mask = {.rows = sp->rows, .columns = sp->columns};
	struct mask_source source = *first;
	const struct frag_tensor *tensor = NULL;
	const float *boxes;
	int r = find_boxes(sp, tick, count, &tensor);

	if (r == 0 && gpu_holds(tensor))
		r = frag_op_fail(
			op, -EINVAL,
			"the boxes lie on GPU %d, and the pictures in memory of the host; send both from one place",
			(int)gpu_of(tensor).id);
	if (r == 0)
		r = mask_create(sp, op, &mask, out);
	if (r < 0)
		return r;
	boxes = frag_tensor_data(tensor);
	memset(mask.data, 0, (size_t)(mask.rows * mask.columns));
	for (int64_t i = 0; i < count && r == 0; i++) {
		r = check_nan(&source, op, i);
		if (r == 0)
			mask_paste(&source, boxes, i, sp->instances, &mask);
		source.data += source.rows * source.columns * source.channels;
	}
	if (r < 0)
		frag_tensor_unref(*out);
	return r;
}

/* Without a size of frames one picture may come, and no boxes. */
static int check_one(const struct segmentation_postprocessor *sp, struct frag_tick *tick,
		     int64_t count)
{
	struct frag_op *op = frag_tick_op(tick);
	const struct frag_message *boxes;

	if (frag_tick_receive(tick, BOXES, &boxes) == 0)
		return frag_op_fail(
			op, -EINVAL,
			"boxes came, and rows and columns are not set; give the size of the frames that the boxes are parts of");
	if (count != 1)
		return frag_op_fail(
			op, -EINVAL,
			"the tensor \"%s\" is a batch of %lld pictures; connect boxes to say where each of them belongs, and set rows and columns",
			sp->in_tensor_name, (long long)count);
	return 0;
}

static int classify(const struct segmentation_postprocessor *sp, struct frag_tick *tick,
		    const struct mask_source *source, int64_t count, struct frag_tensor **out)
{
	struct mask mask = {.rows = source->rows, .columns = source->columns};
	struct frag_op *op = frag_tick_op(tick);
	int r = check_nan(source, op, 0);

	if (r == 0)
		r = check_one(sp, tick, count);
	if (r == 0)
		r = mask_create(sp, op, &mask, out);
	if (r == 0)
		mask_classify(source, &mask);
	return r;
}

/* Boxes where the GPU reads them: those of the host are copied to pinned memory. */
static int boxes_for_gpu(struct segmentation_postprocessor *sp, struct frag_tick *tick,
			 int64_t count, struct frag_tensor **copy, const float **out)
{
	const struct frag_tensor *tensor = NULL;
	struct frag_err err = FRAG_ERR_INIT;
	int r = find_boxes(sp, tick, count, &tensor);

	if (r < 0)
		return r;
	if (frag_tensor_dl(tensor)->device.type == FRAG_DEVICE_CPU) {
		r = frag_tensor_copy(tensor, NULL, (struct frag_device){FRAG_DEVICE_CUDA_HOST, 0},
				     copy, &err);
		tensor = *copy;
	}
	if (r < 0)
		return frag_op_fail(frag_tick_op(tick), r, "cannot copy boxes: %s", err.text);
	*out = frag_tensor_data(tensor);
	return 0;
}

static int launch(struct segmentation_postprocessor *sp, struct frag_tick *tick,
		  struct mask_job *job)
{
	const struct mask_source *source = &job->source;
	struct gpu_twin *twin = &sp->twin;
	int r;

	*job->nan_picture = UINT32_MAX; /* the work of the tick before has been waited for */
	if (job->boxes == NULL && job->count > 0) { /* a batch without pictures has no boxes */
		r = gpu_twin_launch(twin, tick, "inference_mask_classes", job,
				    mask_threads(job->rows * job->columns), 1);
	} else {
		const int64_t numbers = source->rows * source->columns * source->channels;

		r = gpu_twin_launch(twin, tick, "inference_mask_find_nan", job,
				    mask_threads(numbers), job->count);
		if (r == 0)
			r = gpu_twin_launch(twin, tick, "inference_mask_pixels", job,
					    mask_threads(job->columns), job->rows);
	}
	return r < 0 ? r : gpu_twin_await(twin, tick);
}

/*
 * Begins a mask on a GPU. Returns 0: gpu_twin_wait waits for it; FRAG_PENDING: compute is called
 * again when it is made; or a failure.
 */
static int begin_on_gpu(struct segmentation_postprocessor *sp, struct frag_tick *tick,
			struct frag_device device, const struct mask_source *source, int64_t count)
{
	const struct frag_dtype u8 = {FRAG_DTYPE_UINT, 8, 1}, u32 = {FRAG_DTYPE_UINT, 32, 1};
	struct mask_job job = {.source = *source,
			       .rows = sp->rows > 0 ? sp->rows : source->rows,
			       .columns = sp->rows > 0 ? sp->columns : source->columns,
			       .count = count,
			       .instances = sp->instances};
	const int64_t shape[] = {job.rows, job.columns, 1}, one = 1;
	struct frag_op *op = frag_tick_op(tick);
	struct frag_tensor *copy = NULL;
	int r = gpu_twin_begin(&sp->twin, op, device);

	if (r == 0 && source->rows * source->columns * source->channels > INT32_MAX)
		r = frag_op_fail(
			op, -E2BIG,
			"a picture of the tensor \"%s\" has more than 2^31 numbers, too many for a GPU; copy it to the host before",
			sp->in_tensor_name);
	if (r == 0)
		r = sp->rows > 0 ? boxes_for_gpu(sp, tick, count, &copy, &job.boxes)
				 : check_one(sp, tick, count);
	if (r == 0 && sp->found == NULL)
		r = gpu_twin_create_pinned(&sp->twin, op, u32, 1, &one, &sp->found);
	if (r == 0)
		r = gpu_twin_create(&sp->twin, op, u8, 3, shape, &sp->out);
	if (r == 0) {
		job.nan_picture = frag_tensor_writable(sp->found);
		job.out = frag_tensor_writable(sp->out);
		r = launch(sp, tick, &job);
	}
	if (r == FRAG_PENDING && copy != NULL)
		(void)frag_tick_hold(tick, copy);
	else if (r == 0)
		r = gpu_twin_wait(&sp->twin, tick);
	if (r != FRAG_PENDING)
		frag_tensor_unref(copy);
	return r;
}

/* Ends what was begun: takes it to *out. */
static int end_on_gpu(struct segmentation_postprocessor *sp, struct frag_tick *tick, int r,
		      struct frag_tensor **out)
{
	if (r == 0)
		r = gpu_twin_wait(&sp->twin, tick);
	if (r == 0 && *(const uint32_t *)frag_tensor_data(sp->found) != UINT32_MAX)
		r = fail_nan(frag_tick_op(tick), *(const uint32_t *)frag_tensor_data(sp->found));
	*out = sp->out;
	sp->out = NULL;
	if (r < 0)
		frag_tensor_unref(*out);
	return r;
}

/* Receives, and makes the mask or begins it. Returns as begin_on_gpu. */
static int make(struct segmentation_postprocessor *sp, struct frag_tick *tick,
		struct frag_tensor **out)
{
	struct frag_op *op = frag_tick_op(tick);
	const struct frag_tensor *tensor;
	struct mask_source source;
	int64_t count = 0;
	int r = frag_tick_receive(tick, IN_TENSOR, &sp->message);

	if (r < 0)
		return r;
	tensor = frag_message_tensor(sp->message, sp->in_tensor_name);
	if (tensor == NULL && sp->in_tensor_name[0] == '\0')
		tensor = frag_message_tensor(sp->message, NULL);
	if (tensor == NULL)
		return frag_op_fail(
			op, -EINVAL,
			"the message holds no tensor \"%s\"; set in_tensor_name to the name that the sender gives",
			sp->in_tensor_name);
	r = describe(sp, op, tensor, &source, &count);
	if (r < 0)
		return r;
	/* Work of the GPU may still write pinned memory, unless it was waited for. */
	if (gpu_holds(tensor) ||
	    (sp->twin.has_stream && frag_tensor_dl(tensor)->device.type == FRAG_DEVICE_CUDA_HOST)) {
		r = begin_on_gpu(sp, tick, gpu_of(tensor), &source, count);
		return r == FRAG_PENDING ? r : end_on_gpu(sp, tick, r, out);
	}
	return sp->rows > 0 ? paste_all(sp, tick, &source, count, out)
			    : classify(sp, tick, &source, count, out);
}

static int compute(void *state, struct frag_tick *tick)
{
	struct segmentation_postprocessor *sp = state;
	struct frag_tensor *out = NULL;
	int r = sp->out != NULL ? end_on_gpu(sp, tick, 0, &out) : make(sp, tick, &out);

	if (r == 0)
		return frame_emit(tick, OUT_TENSOR, sp->out_tensor_name, out, sp->message);
	return r == -ENOMSG ? 0 : r;
}

static int initialize(void *state, struct frag_op *op)
{
	struct segmentation_postprocessor *sp = state;

	return gpu_twin_open(&sp->twin, op, inference_ptx, sp->allocator, sp->cuda_stream_pool);
}

static void fini(void *state, struct frag_op *op)
{
	struct segmentation_postprocessor *sp = state;

	(void)op;
	frag_tensor_unref(sp->out);
	frag_tensor_unref(sp->found);
	gpu_twin_close(&sp->twin);
}

const struct frag_op_type inference_segmentation_postprocessor_type = {
	FRAG_OP_TYPE_INIT,
	.name = "segmentation_postprocessor",
	.headline = "Makes a mask of classes of what a network segmented",
	.description =
		"A batch of pictures that were cut out of a frame is put together again in a mask of the frame's size, where boxes says what was cut out. A tensor in memory of a GPU is worked on there, with the same result.",
	.state_size = sizeof(struct segmentation_postprocessor),
	FRAG_PORTS(ports),
	FRAG_PARAMS(params),
	.setup = setup,
	.initialize = initialize,
	.compute = compute,
	.fini = fini,
};
