// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdlib.h>

#include "../gpu/twin.h"
#include "convert.h"
#include "kernels.h"
#include "sample.h"
#include "vision.h"

#define REGIONS_MAX 4096

struct crop {
	const char *in_tensor_name, *boxes_tensor_name, *out_tensor_name;
	int64_t width, height, max_boxes;
	double scale;
	bool square;
	const char *out_dtype;
	double scale_min, scale_max;
	const struct frag_tree *regions;
	struct frag_resource *pool;

	float *fixed; /* of regions: left, top, right, bottom of each */
	int64_t fixed_count;
	void *cut; /* one crop, in the element type of the frame */
	size_t cut_size;
	struct neighbours *across; /* [width] */
	struct gpu_twin twin;
};

enum { SOURCE_VIDEO, BOXES, OUT };
static const struct frag_port crop_ports[] = {
	[SOURCE_VIDEO] = {.name = "source_video",
			  .dir = FRAG_IN,
			  .type = "tensor",
			  .headline =
				  "a frame: gray, RGB or RGBA, u8 or f32; also in memory of a GPU"},
	[BOXES] = {.name = "boxes",
		   .dir = FRAG_IN,
		   .type = "tensor",
		   .headline = "what to cut out; not with regions",
		   .flags = FRAG_PORT_OPTIONAL,
		   .tensors = FRAG_BOXES},
	[OUT] = {.name = "out",
		 .dir = FRAG_OUT,
		 .type = "tensor",
		 .headline =
			 "the crops: [n, height, width, channels]; and the tensor boxes: what was cut out",
		 .tensors = FRAG_BOXES},
};

static const char *const dtype_choices[] = {"", "uint8", "float32", NULL};

static const struct frag_param crop_params[] = {
	FRAG_PARAM_STRING(
		struct crop, in_tensor_name, "",
		.headline = "Tensor of the frame; empty: the one without a name, else the first"),
	FRAG_PARAM_STRING(struct crop, boxes_tensor_name, "boxes",
			  .headline = "Tensor of the boxes"),
	FRAG_PARAM_STRING(struct crop, out_tensor_name, "", .headline = "Name of the crops"),
	FRAG_PARAM_I64(struct crop, width, 256, .headline = "Width of a crop", .min = 1,
		       .max = 8192),
	FRAG_PARAM_I64(struct crop, height, 256, .headline = "Height of a crop", .min = 1,
		       .max = 8192),
	FRAG_PARAM_I64(struct crop, max_boxes, 64,
		       .headline = "Boxes that are cut out; further ones are left out", .min = 1,
		       .max = 4096),
	FRAG_PARAM_F64(struct crop, scale, 1.25,
		       .headline = "How much larger than its box a crop is, about the same centre",
		       .flags = FRAG_PARAM_DYNAMIC, .min = 0.01, .max = 100.0),
	FRAG_PARAM_BOOL(struct crop, square, true,
			.headline = "Cut out a square around the box, by its larger side in pixels",
			.flags = FRAG_PARAM_DYNAMIC),
	FRAG_PARAM_STRING(struct crop, out_dtype, "",
			  .headline = "Element type of the crops; empty: that of the frame",
			  .choices = dtype_choices),
	FRAG_PARAM_F64(struct crop, scale_min, 0.0, .headline = "What 0 of a u8 is as a float"),
	FRAG_PARAM_F64(struct crop, scale_max, 1.0, .headline = "What 255 of a u8 is as a float"),
	FRAG_PARAM_TREE(
		struct crop, regions, "[]",
		.headline =
			"Parts that are cut out of every frame as they are, in place of boxes: [[left, top, right, bottom], ...], from 0 to 1"),
	FRAG_PARAM_RESOURCE(struct crop, pool, NULL, .headline = "Allocator of the crops",
			    .flags = FRAG_PARAM_OPTIONAL),
};

/* Reads one side of a region: a number from 0 to 1. */
static bool read_side(const struct frag_tree *tree, float *out)
{
	char *end = NULL;

	if (tree->kind == FRAG_TREE_TEXT)
		*out = strtof(tree->text, &end);
	return end != NULL && end != tree->text && *end == '\0' && *out >= 0.0f && *out <= 1.0f;
}

static bool read_region(const struct frag_tree *item, float side[4])
{
	bool is_good = item->kind == FRAG_TREE_LIST && item->count == 4;

	for (size_t k = 0; is_good && k < 4; k++)
		is_good = read_side(&item->items[k], &side[k]);
	return is_good && side[0] < side[2] && side[1] < side[3];
}

static int read_regions(struct crop *c, struct frag_op *op)
{
	const struct frag_tree *list = c->regions;

	if (list->kind != FRAG_TREE_LIST || list->count > REGIONS_MAX)
		return frag_op_fail(
			op, -EINVAL,
			"regions is no list of up to %d parts of a frame; give [[left, top, right, bottom], ...], from 0 to 1",
			REGIONS_MAX);
	if (list->count == 0)
		return 0;
	c->fixed = calloc(list->count, 4 * sizeof(float));
	if (c->fixed == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < list->count; i++) {
		if (read_region(&list->items[i], c->fixed + 4 * i))
			continue;
		free(c->fixed); /* fini is not called after setup has failed */
		c->fixed = NULL;
		return frag_op_fail(
			op, -EINVAL,
			"item %zu of regions is no part of a frame; give [left, top, right, bottom], from 0 to 1, with left < right and top < bottom",
			i + 1);
	}
	c->fixed_count = (int64_t)list->count;
	return 0;
}

static int crop_setup(void *state, struct frag_op *op)
{
	struct crop *c = state;

	if (!(c->scale_max > c->scale_min) && !(c->scale_max < c->scale_min))
		return frag_op_fail(
			op, -EINVAL,
			"scale_min and scale_max are both %g; give two numbers that differ",
			c->scale_min);
	return read_regions(c, op);
}

static int crop_initialize(void *state, struct frag_op *op)
{
	struct crop *c = state;

	if (c->fixed_count == 0 && frag_op_flow_count(op, BOXES) == 0)
		return frag_op_fail(
			op, -EINVAL,
			"no flow ends at boxes, and there are no regions; connect the boxes that are to be cut out, or set regions");
	return gpu_twin_open(&c->twin, op, vision_ptx, c->pool, NULL);
}

/* Finds the boxes: *out_boxes and their number. */
static int receive_boxes(const struct crop *c, struct frag_op *op,
			 const struct frag_message *message, const float **out_boxes,
			 int64_t *out_count)
{
	const struct frag_tensor *tensor = frame_tensor(message, c->boxes_tensor_name);
	const struct frag_dltensor *dl = tensor != NULL ? frag_tensor_dl(tensor) : NULL;

	if (dl == NULL)
		return frag_op_fail(
			op, -EINVAL,
			"the message of boxes holds no tensor \"%s\"; set boxes_tensor_name to the name that the sender gives",
			c->boxes_tensor_name);
	if (dl->ndim != 2 || dl->shape[1] != 4 || dl->dtype.code != FRAG_DTYPE_FLOAT ||
	    dl->dtype.bits != 32 || dl->dtype.lanes != 1 || !frag_tensor_is_compact(tensor) ||
	    (dl->device.type != FRAG_DEVICE_CPU && dl->device.type != FRAG_DEVICE_CUDA_HOST))
		return frag_op_fail(
			op, -EINVAL,
			"tensor \"%s\" is not [n, 4] of f32 without gaps in host memory; send boxes as left, top, right, bottom",
			c->boxes_tensor_name);
	*out_boxes = frag_tensor_data(tensor);
	*out_count = dl->shape[0] < c->max_boxes ? dl->shape[0] : c->max_boxes;
	return 0;
}

/* What is cut out around a box, in the same coordinates. It may reach beyond the frame. */
static void enlarge(const struct crop *c, const struct frame *frame, const float *box, float *out)
{
	double wide = (double)frame->columns, high = (double)frame->rows;
	double x = (box[0] + box[2]) / 2.0, y = (box[1] + box[3]) / 2.0;
	double width = fabs((double)box[2] - box[0]) * wide * c->scale;
	double height = fabs((double)box[3] - box[1]) * high * c->scale;

	if (c->square)
		width = height = fmax(width, height);
	out[0] = (float)(x - width / wide / 2);
	out[1] = (float)(y - height / high / 2);
	out[2] = (float)(x + width / wide / 2);
	out[3] = (float)(y + height / high / 2);
}

static int prepare_cut(struct crop *c, const struct frame *cut)
{
	size_t size = cut->row_bytes * (size_t)cut->rows;
	void *larger;

	if (c->across == NULL)
		c->across = calloc((size_t)cut->columns, sizeof(*c->across));
	if (c->across == NULL)
		return -ENOMEM;
	if (size <= c->cut_size)
		return 0;
	larger = realloc(c->cut, size);
	if (larger == NULL)
		return -ENOMEM;
	c->cut = larger;
	c->cut_size = size;
	return 0;
}

/* What is cut out for place i of a message, or of the regions. */
static void find_region(const struct crop *c, const struct frame *frame, const float *places,
			int64_t i, float *region)
{
	if (c->fixed_count > 0)
		memcpy(region, places + i * 4, 4 * sizeof(float));
	else
		enlarge(c, frame, places + i * 4, region);
}

static bool makes_floats(const struct crop *c, const struct frame *frame)
{
	return c->out_dtype[0] != '\0' ? c->out_dtype[0] == 'f' : frame->is_float;
}

/* The same on the GPU where the frame lies; the regions are in pinned memory, which both read. */
static int cut_on_gpu(struct crop *c, struct frag_tick *tick, struct frag_device device,
		      const struct frame *frame, const float *places, int64_t count,
		      struct frag_tensor **crops, struct frag_tensor **regions)
{
	const int64_t shape[] = {count, c->height, c->width, frame->channels};
	const int64_t corners[] = {count, 4};
	struct frag_op *op = frag_tick_op(tick);
	struct crop_job job = {
		.in = frame->data,
		.row_bytes = frame->row_bytes,
		.in_rows = (int32_t)frame->rows,
		.in_columns = (int32_t)frame->columns,
		.channels = (int32_t)frame->channels,
		.is_float = frame->is_float,
		.rows = (int32_t)c->height,
		.columns = (int32_t)c->width,
		.count = (int32_t)count,
		.out_is_float = makes_floats(c, frame),
		.scale_min = c->scale_min,
		.scale_max = c->scale_max,
	};
	int r = gpu_twin_begin(&c->twin, op, device);

	if (r == 0 && ((uintptr_t)frame->data | frame->row_bytes) % frame_element_bytes(frame) != 0)
		r = frag_op_fail(
			op, -EINVAL,
			"the f32 of the frame are not aligned to 4 bytes, and a GPU cannot read them; give the tensor another byte_offset");
	if (r == 0)
		r = gpu_twin_create_pinned(&c->twin, op, FRAME_F32, 2, corners, regions);
	if (r == 0)
		r = gpu_twin_create(&c->twin, op, job.out_is_float ? FRAME_F32 : FRAME_U8, 4, shape,
				    crops);
	if (r < 0)
		return r;
	for (int64_t i = 0; i < count; i++)
		find_region(c, frame, places, i, (float *)frag_tensor_writable(*regions) + 4 * i);
	job.regions = frag_tensor_data(*regions);
	job.out = frag_tensor_writable(*crops);
	r = gpu_twin_launch(&c->twin, tick, "vision_crop", &job,
			    (int64_t)crop_step(&job) * c->width, count);
	return r == 0 ? gpu_twin_end(&c->twin, tick) : r;
}

/* Cuts boxes or regions out, into *crops and *regions, which are new. */
static int cut_all(struct crop *c, const struct frame *frame, const float *places, int64_t count,
		   struct frag_tensor **crops, struct frag_tensor **regions)
{
	struct frame cut = {.rows = c->height,
			    .columns = c->width,
			    .channels = frame->channels,
			    .is_float = frame->is_float};
	struct convert convert = {
		.channels = frame->channels,
		.is_float = makes_floats(c, frame),
		.order = {0, 1, 2, 3},
		.scale_min = c->scale_min,
		.scale_max = c->scale_max,
	};
	int64_t shape[] = {count, c->height, c->width, frame->channels}, corners[] = {count, 4};
	struct frag_dtype f32 = {FRAG_DTYPE_FLOAT, 32, 1}, u8 = {FRAG_DTYPE_UINT, 8, 1};
	size_t bytes = (size_t)(c->height * c->width * frame->channels) *
		       (convert.is_float ? sizeof(float) : 1);
	bool is_as_it_is;
	uint8_t *to;
	float *region;
	int r;

	cut.row_bytes = (size_t)(cut.columns * cut.channels) * frame_element_bytes(&cut);
	r = prepare_cut(c, &cut);
	if (r == 0)
		r = frag_tensor_create(NULL, f32, 2, corners, regions);
	if (r == 0)
		r = frag_tensor_create(c->pool, convert.is_float ? f32 : u8, 4, shape, crops);
	if (r < 0)
		return r;
	cut.data = c->cut;
	is_as_it_is = vision_convert_is_identity(&convert, &cut) != 0;
	to = frag_tensor_writable(*crops);
	region = frag_tensor_writable(*regions);
	for (int64_t i = 0; i < count; i++, to += bytes, region += 4) {
		find_region(c, frame, places, i, region);
		vision_sample(frame, region, &cut, c->across, is_as_it_is ? to : c->cut);
		if (!is_as_it_is)
			vision_convert(&convert, &cut, to);
	}
	return 0;
}

/* Emits the crops of a message's frame, with its stamps. */
static int emit(struct crop *c, struct frag_tick *tick, const struct frag_message *from,
		const struct frag_tensor *in, const struct frame *frame, const float *places,
		int64_t count)
{
	struct frag_message *message = frag_message_create();
	struct frag_tensor *crops = NULL, *regions = NULL;
	int r = message == NULL ? -ENOMEM
		: frame_is_on_host(in)
			? cut_all(c, frame, places, count, &crops, &regions)
			: cut_on_gpu(c, tick, gpu_of(in), frame, places, count, &crops, &regions);

	if (r == 0) {
		r = frag_message_add_tensor(message, c->out_tensor_name, crops);
		crops = NULL;
	}
	if (r == 0) {
		r = frag_message_add_tensor(message, "boxes", regions);
		regions = NULL;
	}
	if (r == 0)
		r = frag_message_copy_stamps(message, from);
	if (r == 0)
		return frag_tick_emit(tick, OUT, message);
	frag_tensor_unref(crops);
	frag_tensor_unref(regions);
	frag_message_unref(message);
	return frag_op_fail(
		frag_tick_op(tick), r,
		"cannot make %lld crops of %lld x %lld: %s; give the pool larger or more blocks, or lower max_boxes",
		(long long)count, (long long)c->width, (long long)c->height, frag_strerror(r));
}

/* Receives what is cut out: the boxes of a message, or the regions. */
static int receive_places(const struct crop *c, struct frag_tick *tick, const float **out_places,
			  int64_t *out_count)
{
	struct frag_op *op = frag_tick_op(tick);
	const struct frag_message *message;
	int r = frag_tick_receive(tick, BOXES, &message);

	if (c->fixed_count == 0)
		return r == 0 ? receive_boxes(c, op, message, out_places, out_count) : r;
	if (r == 0)
		return frag_op_fail(
			op, -EINVAL,
			"it has regions, and boxes came too; remove one of the two, because only one can say what is cut out");
	*out_places = c->fixed;
	*out_count = c->fixed_count;
	return 0;
}

static int crop_compute(void *state, struct frag_tick *tick)
{
	struct crop *c = state;
	const struct frag_message *message;
	struct frag_tensor *tensor = NULL;
	struct frame frame = {0};
	const float *places = NULL;
	int64_t count = 0;
	int r = frag_tick_receive(tick, SOURCE_VIDEO, &message);

	if (r == 0)
		r = frame_receive_by(frag_tick_op(tick), message, c->in_tensor_name, frame_anywhere,
				     &tensor, &frame);
	if (r == 0)
		r = receive_places(c, tick, &places, &count);
	return r == 0 ? emit(c, tick, message, tensor, &frame, places, count) : r;
}

static void crop_fini(void *state, struct frag_op *op)
{
	struct crop *c = state;

	(void)op;
	free(c->fixed);
	free(c->cut);
	free(c->across);
	gpu_twin_close(&c->twin);
}

const struct frag_op_type vision_crop_type = {
	FRAG_OP_TYPE_INIT,
	.name = "crop",
	.headline = "Cuts boxes out of frames, all to one size",
	.description =
		"Either those of a tensor, or the same regions of every frame. Each crop is linear between the pixels' centres. Beyond the frame its border goes on. Without boxes the crops are an empty batch. Of a frame in memory of a GPU the crops lie there, with the same numbers; boxes come in memory of the host.",
	.state_size = sizeof(struct crop),
	FRAG_PORTS(crop_ports),
	FRAG_PARAMS(crop_params),
	.setup = crop_setup,
	.initialize = crop_initialize,
	.compute = crop_compute,
	.fini = crop_fini,
};
