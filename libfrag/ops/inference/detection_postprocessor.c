// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "detection_postprocessor.h"
#include "inference.h"
#include "kernels.h"
#include "received.h"

enum { RECEIVERS, OUT };
static const struct frag_port ports[] = {
	[RECEIVERS] =
		{.name = "receivers",
		 .dir = FRAG_IN,
		 .type = "tensor",
		 .headline =
			 "boxes, scores and classes of a network, in one or more messages; also in memory of a GPU",
		 .flags = FRAG_PORT_MULTI},
	[OUT] = {.name = "out",
		 .dir = FRAG_OUT,
		 .type = "tensor",
		 .headline =
			 "boxes, scores and labels, the best first; rectangles [2n, 2] and label_coords [n, 3] for a viewer; the labels as text, one a line; keypoints where the network has them",
		 .tensors = FRAG_BOXES "; " FRAG_SCORES "; " FRAG_LABELS "; " FRAG_KEYPOINTS},
};

static const char *const layouts[] = {"yxyx", "xyxy", "xywh", "cxcywh", NULL};
static const struct frag_param params[] = {
	FRAG_PARAM_STRING(struct detection_postprocessor, boxes_tensor_name, "boxes",
			  .headline = "Tensor of the boxes: f32 [..., N, 4]"),
	FRAG_PARAM_STRING(
		struct detection_postprocessor, scores_tensor_name, "scores",
		.headline = "Tensor of the scores: f32 [..., N], or [..., N, C] for C classes"),
	FRAG_PARAM_STRING(struct detection_postprocessor, classes_tensor_name, "",
			  .headline =
				  "Tensor of the classes: f32, i32 or i64 [..., N]; empty: none"),
	FRAG_PARAM_STRING(
		struct detection_postprocessor, count_tensor_name, "",
		.headline =
			"Tensor that says how many boxes of each picture are valid; empty: all"),
	FRAG_PARAM_STRING(
		struct detection_postprocessor, regions_tensor_name, "",
		.headline =
			"Tensor of the parts of the frame that the pictures of a batch are: f32 [P, 4], from crop; empty: one whole frame"),
	FRAG_PARAM_STRING(
		struct detection_postprocessor, keypoints_tensor_name, "",
		.headline =
			"Tensor of keypoints, in the units of the boxes: f32 [..., N, K * keypoint_values]; empty: none"),
	FRAG_PARAM_I64(struct detection_postprocessor, keypoint_values, 3,
		       .headline = "2: x, y of each keypoint; 3: x, y, score", .min = 2, .max = 3),
	FRAG_PARAM_STRING(struct detection_postprocessor, box_layout, "yxyx",
			  .headline = "What the four numbers of a box are", .choices = layouts),
	FRAG_PARAM_F64(struct detection_postprocessor, box_width, 1.0,
		       .headline = "What the right border is in the boxes: 1, or pixels",
		       .min = 1e-6, .max = 1e6),
	FRAG_PARAM_F64(struct detection_postprocessor, box_height, 1.0,
		       .headline = "What the lower border is in the boxes: 1, or pixels",
		       .min = 1e-6, .max = 1e6),
	FRAG_PARAM_F64(struct detection_postprocessor, score_threshold, 0.5,
		       .headline = "Boxes with a lower score are left out", .min = 0.0, .max = 1.0,
		       .flags = FRAG_PARAM_DYNAMIC),
	FRAG_PARAM_F64(struct detection_postprocessor, iou_threshold, 0.5,
		       .headline = "A box that overlaps a better one by more than this is left out",
		       .min = 0.0, .max = 1.0, .flags = FRAG_PARAM_DYNAMIC),
	FRAG_PARAM_F64(
		struct detection_postprocessor, inside_threshold, 1.0,
		.headline =
			"A box is left out when more than this part of it is inside a better one, or of that one inside of it",
		.min = 0.0, .max = 1.0, .flags = FRAG_PARAM_DYNAMIC),
	FRAG_PARAM_I64(struct detection_postprocessor, max_detections, 100,
		       .headline = "No more than these, the best ones", .min = 1, .max = BOXES_MAX),
	FRAG_PARAM_STRING_LIST(struct detection_postprocessor, labels, NULL,
			       .headline = "Names of the classes", .flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_I64(struct detection_postprocessor, first_class, 0,
		       .headline = "Number of the class that the first label names", .min = -1000,
		       .max = 1000),
	FRAG_PARAM_STRING_LIST(struct detection_postprocessor, keep_labels, NULL,
			       .headline = "Only boxes with these labels; empty: all",
			       .flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_RESOURCE(struct detection_postprocessor, allocator, NULL,
			    .headline = "Allocator of the tensors that are emitted",
			    .flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_RESOURCE(
		struct detection_postprocessor, cuda_stream_pool, NULL,
		.headline =
			"Of the network's GPU: its tensors are searched while the thread does other work; without one it waits",
		.flags = FRAG_PARAM_OPTIONAL),
};

static const char *label_of(const struct detection_postprocessor *dp, int32_t number)
{
	int64_t i = number - dp->first_class;

	return i >= 0 && i < (int64_t)dp->labels.count ? dp->labels.items[i] : "";
}

static int setup(void *state, struct frag_op *op)
{
	struct detection_postprocessor *dp = state;

	for (size_t i = 0; layouts[i] != NULL; i++)
		if (strcmp(layouts[i], dp->box_layout) == 0)
			dp->job.layout = (int32_t)i;
	for (size_t i = 0; i < dp->keep_labels.count; i++) {
		bool known = false;

		for (size_t k = 0; k < dp->labels.count; k++)
			known |= strcmp(dp->labels.items[k], dp->keep_labels.items[i]) == 0;
		if (!known)
			return frag_op_fail(
				op, -EINVAL,
				"keep_labels names \"%s\", which labels lacks; add it to labels at the place of its class",
				dp->keep_labels.items[i]);
	}
	return 0;
}

/* Finds a tensor of compact f32; with `any` also of i32 and i64. */
static int find(struct frag_op *op, const struct frag_message *const *messages, int count,
		const char *parameter, const char *name, bool any, const struct frag_tensor **out)
{
	const struct frag_tensor *tensor = received_tensor(messages, count, name);
	const struct frag_dltensor *dl;
	bool is_good;

	if (tensor == NULL)
		return frag_op_fail(
			op, -EINVAL,
			"no message holds the tensor \"%s\"; correct %s, or out_tensor_names of the inference",
			name, parameter);
	dl = frag_tensor_dl(tensor);
	is_good =
		dl->dtype.lanes == 1 && dl->dtype.code == FRAG_DTYPE_FLOAT && dl->dtype.bits == 32;
	if (any && dl->dtype.lanes == 1 && dl->dtype.code == FRAG_DTYPE_INT)
		is_good = dl->dtype.bits == 32 || dl->dtype.bits == 64;
	if (!is_good || !frag_tensor_is_compact(tensor) ||
	    (uintptr_t)frag_tensor_data(tensor) % (dl->dtype.bits / 8u) != 0)
		return frag_op_fail(
			op, -EINVAL,
			"the tensor \"%s\" is not %s without gaps; name another one with %s", name,
			any ? "f32, i32 or i64" : "f32", parameter);
	*out = tensor;
	return 0;
}

static size_t elements(const struct frag_tensor *tensor)
{
	const struct frag_dltensor *dl = tensor != NULL ? frag_tensor_dl(tensor) : NULL;
	size_t count = dl != NULL;

	for (int32_t i = 0; dl != NULL && i < dl->ndim; i++)
		count *= (size_t)dl->shape[i];
	return count;
}

/* Checks the regions, and how many boxes of each are valid. */
static int check_regions(struct detection_postprocessor *dp, struct frag_op *op,
			 const struct detection_found *found)
{
	const struct frag_tensor *regions = found->tensors[REGIONS], *valid = found->tensors[VALID];
	const size_t count = dp->job.count;
	const size_t pictures = regions != NULL ? elements(regions) / 4 : 1;

	if ((regions != NULL && elements(regions) % 4 != 0) ||
	    (pictures == 0 ? count > 0 : count % pictures != 0) ||
	    (valid != NULL && elements(valid) != pictures))
		return frag_op_fail(
			op, -EINVAL,
			"there are %zu boxes, %zu regions and %zu counts; name tensors of the same batch with boxes_tensor_name, regions_tensor_name and count_tensor_name",
			count, pictures, elements(valid));
	dp->job.pictures = (uint32_t)pictures;
	dp->job.in_region = pictures > 0 ? (uint32_t)(count / pictures) : 1;
	return 0;
}

static int check_shapes(struct detection_postprocessor *dp, struct frag_op *op,
			const struct detection_found *found)
{
	const struct frag_dltensor *dl = frag_tensor_dl(found->tensors[BOXES]);
	const size_t count = elements(found->tensors[BOXES]) / 4;
	const size_t scored = elements(found->tensors[SCORES]);
	const struct frag_tensor *classes = found->tensors[CLASSES];
	const struct frag_tensor *keypoints = found->tensors[KEYPOINTS];
	const size_t numbers = count > 0 ? elements(keypoints) / count : 0; /* of a box */

	if (dl->ndim < 1 || dl->shape[dl->ndim - 1] != 4 || count > BOXES_MAX)
		return frag_op_fail(
			op, -EINVAL,
			"the tensor \"%s\" does not hold boxes of four numbers; name another one with boxes_tensor_name",
			dp->boxes_tensor_name);
	if ((count > 0 && scored % count != 0) || (scored == 0) != (count == 0) ||
	    (classes != NULL && elements(classes) != count))
		return frag_op_fail(
			op, -EINVAL,
			"there are %zu boxes, %zu scores and %zu classes; name tensors of the same network with boxes_tensor_name, scores_tensor_name and classes_tensor_name",
			count, scored, elements(classes));
	if (numbers % (size_t)dp->keypoint_values != 0 || numbers * count != elements(keypoints))
		return frag_op_fail(
			op, -EINVAL,
			"there are %zu boxes and %zu numbers of keypoints, %lld for each keypoint; name a tensor of the same network with keypoints_tensor_name, or correct keypoint_values",
			count, elements(keypoints), (long long)dp->keypoint_values);
	dp->job.of_box = (uint32_t)(numbers / (size_t)dp->keypoint_values);
	dp->job.keypoint_values = (uint32_t)dp->keypoint_values;
	dp->job.count = (uint32_t)count;
	dp->job.columns = count > 0 ? (uint32_t)(scored / count) : 1;
	return check_regions(dp, op, found);
}

/* Brings all tensors to where the boxes are searched. */
static int place(struct detection_postprocessor *dp, struct frag_op *op,
		 struct detection_found *found)
{
	const struct frag_device device = frag_tensor_dl(found->tensors[BOXES])->device;
	struct frag_err err = FRAG_ERR_INIT;

	/* Work of the GPU may still write pinned memory, unless it was waited for. */
	found->on_gpu = gpu_holds(found->tensors[BOXES]) ||
			(dp->twin.has_stream && device.type == FRAG_DEVICE_CUDA_HOST);
	for (int i = 0; i < ROLES; i++) {
		const struct frag_tensor *tensor = found->tensors[i];

		if (tensor == NULL)
			continue;
		if (!found->on_gpu && gpu_holds(tensor))
			return frag_op_fail(
				op, -EINVAL,
				"the boxes lie in memory of the host, and another tensor of the network on GPU %d; send all of them from one place",
				(int)gpu_of(tensor).id);
		if (found->on_gpu && frag_tensor_dl(tensor)->device.type == FRAG_DEVICE_CPU) {
			int r = frag_tensor_copy(tensor, NULL,
						 (struct frag_device){FRAG_DEVICE_CUDA, device.id},
						 &found->copies[i], &err);

			if (r < 0)
				return frag_op_fail(op, r, "cannot copy a tensor to GPU %d: %s",
						    (int)device.id, err.text);
			found->tensors[i] = found->copies[i];
		}
	}
	return 0;
}

static struct detect_numbers numbers_of(const struct frag_tensor *tensor)
{
	const struct frag_dltensor *dl = tensor != NULL ? frag_tensor_dl(tensor) : NULL;

	if (dl == NULL)
		return (struct detect_numbers){0};
	return (struct detect_numbers){
		.data = frag_tensor_data(tensor),
		.kind = dl->dtype.code == FRAG_DTYPE_FLOAT ? DETECT_F32
			: dl->dtype.bits == 32             ? DETECT_I32
							   : DETECT_I64,
	};
}

/* Fills in the job. On failure there may be copies too. */
static int find_all(struct detection_postprocessor *dp, struct frag_op *op,
		    struct detection_found *found)
{
	const struct {
		const char *parameter, *name;
		bool any;
	} roles[ROLES] = {
		[BOXES] = {"boxes_tensor_name", dp->boxes_tensor_name, false},
		[SCORES] = {"scores_tensor_name", dp->scores_tensor_name, false},
		[CLASSES] = {"classes_tensor_name", dp->classes_tensor_name, true},
		[VALID] = {"count_tensor_name", dp->count_tensor_name, true},
		[REGIONS] = {"regions_tensor_name", dp->regions_tensor_name, false},
		[KEYPOINTS] = {"keypoints_tensor_name", dp->keypoints_tensor_name, false},
	};
	int r = 0;

	for (int i = 0; i < ROLES && r == 0; i++)
		if (i <= SCORES || roles[i].name[0] != '\0')
			r = find(op, dp->messages, dp->flows, roles[i].parameter, roles[i].name,
				 roles[i].any, &found->tensors[i]);
	if (r == 0)
		r = check_shapes(dp, op, found);
	if (r == 0)
		r = place(dp, op, found);
	if (r < 0)
		return r;
	dp->job.boxes = frag_tensor_data(found->tensors[BOXES]);
	dp->job.scores = frag_tensor_data(found->tensors[SCORES]);
	dp->job.classes = numbers_of(found->tensors[CLASSES]);
	dp->job.valid = numbers_of(found->tensors[VALID]);
	dp->job.regions =
		found->tensors[REGIONS] != NULL ? frag_tensor_data(found->tensors[REGIONS]) : NULL;
	dp->job.keypoints = found->tensors[KEYPOINTS] != NULL
				    ? frag_tensor_data(found->tensors[KEYPOINTS])
				    : NULL;
	dp->job.kept_keypoints = NULL;
	dp->job.score_threshold = (float)dp->score_threshold;
	dp->job.most = (float)dp->iou_threshold;
	dp->job.inside = dp->inside_threshold < 1.0 ? (float)dp->inside_threshold : INFINITY;
	return 0;
}

int detection_fail_nan(struct frag_op *op, size_t box)
{
	return frag_op_fail(
		op, -EBADMSG,
		"box %zu of the network is not a number (NaN); check that the network's input is in the range that it was trained with (scale_min, scale_max of format_converter), and its file",
		box);
}

int detection_fail_count(const struct detection_postprocessor *dp, struct frag_op *op,
			 size_t picture)
{
	return frag_op_fail(
		op, -EBADMSG,
		"the tensor \"%s\" holds no number of boxes for picture %zu; check the model and its input",
		dp->count_tensor_name, picture);
}

int detection_reserve(struct detection_postprocessor *dp, size_t count)
{
	struct detection *larger = dp->detections;

	if (count > dp->capacity)
		larger = realloc(dp->detections, count * sizeof(*larger));
	if (larger == NULL && count > 0)
		return -ENOMEM;
	dp->detections = larger;
	dp->capacity = count > dp->capacity ? count : dp->capacity;
	return 0;
}

/* Fills the list with what stands out. Returns its length or a failure. */
static int64_t search_on_cpu(struct detection_postprocessor *dp, struct frag_op *op)
{
	const struct detect_job *job = &dp->job;
	size_t count = 0;
	int r = detection_reserve(dp, job->count);

	for (uint32_t i = 0; r == 0 && job->valid.data != NULL && i < job->pictures; i++)
		if (!(detect_number(&job->valid, i) >= 0.0))
			return detection_fail_count(dp, op, i);
	for (uint32_t i = 0; r == 0 && i < job->count; i++) {
		enum detect_answer answer = detect_read(job, i, &dp->detections[count]);

		if (answer == DETECT_NAN)
			return detection_fail_nan(op, i);
		count += answer == DETECT_FOUND;
	}
	if (r < 0)
		return r;
	count = detections_suppress(dp->detections, count, job->most, job->inside);
	return count < (size_t)dp->max_detections ? (int64_t)count : dp->max_detections;
}

static int add(const struct detection_postprocessor *dp, struct frag_message *message,
	       const char *name, enum frag_dtype_code code, int64_t rows, int64_t columns,
	       void **out)
{
	int64_t shape[] = {rows, columns};
	struct frag_tensor *tensor;
	int r = frag_tensor_create(dp->allocator, (struct frag_dtype){(uint8_t)code, 32, 1},
				   columns > 0 ? 2 : 1, shape, &tensor);

	if (r < 0)
		return r;
	*out = frag_tensor_writable(tensor);
	return frag_message_add_tensor(message, name, tensor);
}

/* One label a line, in the order of the boxes. */
static int add_labels(const struct detection_postprocessor *dp, struct frag_message *message,
		      int64_t count)
{
	size_t size = 1, at = 0;
	void *text;
	char *to;
	int r;

	for (int64_t i = 0; i < count; i++)
		size += strlen(label_of(dp, dp->detections[i].label)) + 1;
	to = malloc(size);
	if (to == NULL)
		return -ENOMEM;
	for (int64_t i = 0; i < count; i++) {
		const char *label = label_of(dp, dp->detections[i].label);

		memcpy(to + at, label, strlen(label));
		at += strlen(label);
		to[at++] = '\n';
	}
	r = frag_message_set_value(message, &frag_type_string, to, at, &text);
	free(to);
	return r;
}

static int fill(const struct detection_postprocessor *dp, struct frag_message *message,
		int64_t count)
{
	void *boxes = NULL, *scores = NULL, *labels = NULL, *rectangles = NULL, *coords = NULL;
	int r = add(dp, message, "boxes", FRAG_DTYPE_FLOAT, count, 4, &boxes);

	if (r == 0)
		r = add(dp, message, "scores", FRAG_DTYPE_FLOAT, count, 0, &scores);
	if (r == 0)
		r = add(dp, message, "labels", FRAG_DTYPE_INT, count, 0, &labels);
	if (r == 0)
		r = add(dp, message, "rectangles", FRAG_DTYPE_FLOAT, 2 * count, 2, &rectangles);
	if (r == 0)
		r = add(dp, message, "label_coords", FRAG_DTYPE_FLOAT, count, 3, &coords);
	if (r == 0)
		r = add_labels(dp, message, count);
	if (r == 0 && dp->keypoints_tensor_name[0] != '\0')
		r = detection_add_keypoints(dp, message, count);
	for (int64_t i = 0; i < count && r == 0; i++) {
		const struct detection *d = &dp->detections[i];
		const float box[] = {d->left, d->top, d->right, d->bottom};
		const float place[] = {d->left, d->top, 0.04f};

		memcpy((float *)boxes + 4 * i, box, sizeof(box));
		memcpy((float *)rectangles + 4 * i, box, sizeof(box));
		memcpy((float *)coords + 3 * i, place, sizeof(place));
		((float *)scores)[i] = d->score;
		((int32_t *)labels)[i] = d->label;
	}
	return r;
}

static int emit(struct detection_postprocessor *dp, struct frag_tick *tick, int64_t count)
{
	struct frag_message *message = frag_message_create();
	int r;

	if (message == NULL)
		return -ENOMEM;
	r = fill(dp, message, count);
	if (r < 0) {
		frag_message_unref(message);
		return frag_op_fail(
			frag_tick_op(tick), r,
			"cannot make the tensors of %lld boxes: %s; give the allocator larger or more blocks",
			(long long)count, frag_strerror(r));
	}
	received_stamp(dp->messages, dp->flows, message);
	return frag_tick_emit(tick, OUT, message);
}

/* Begins with what came. Returns the number of boxes, a failure, or FRAG_PENDING in *pending. */
static int64_t search(struct detection_postprocessor *dp, struct frag_tick *tick, bool *pending)
{
	struct detection_found found = {0};
	int64_t count;
	int r;

	dp->flows = frag_tick_receive_all(tick, RECEIVERS, &dp->messages);
	if (dp->flows < 0)
		return dp->flows;
	r = find_all(dp, frag_tick_op(tick), &found);
	if (r == 0 && found.on_gpu)
		r = detection_search_on_gpu(dp, tick, &found);
	*pending = r == FRAG_PENDING;
	count = r;
	if (r == 0)
		count = found.on_gpu ? detection_collect(dp, tick)
				     : search_on_cpu(dp, frag_tick_op(tick));
	for (int i = 0; i < ROLES; i++)
		if (*pending && found.copies[i] != NULL)
			(void)frag_tick_hold(tick, found.copies[i]);
		else
			frag_tensor_unref(found.copies[i]);
	return count;
}

static int compute(void *state, struct frag_tick *tick)
{
	struct detection_postprocessor *dp = state;
	const bool was_pending = dp->is_pending;
	int64_t count;

	dp->is_pending = false;
	count = was_pending ? detection_collect(dp, tick) : search(dp, tick, &dp->is_pending);
	return dp->is_pending || count < 0 ? (int)count : emit(dp, tick, count);
}

/* Which labels are kept, in a table. */
static int make_keep(struct detection_postprocessor *dp)
{
	const int64_t size = (int64_t)dp->labels.count + 1;
	const struct frag_dtype u8 = {FRAG_DTYPE_UINT, 8, 1};
	unsigned char *keep;
	int r;

	dp->job.labels = (int64_t)dp->labels.count;
	dp->job.first_class = dp->first_class;
	dp->job.box_width = (float)dp->box_width;
	dp->job.box_height = (float)dp->box_height;
	if (dp->keep_labels.count == 0)
		return 0;
	r = frag_tensor_create(NULL, u8, 1, &size, &dp->keep);
	if (r < 0)
		return r;
	keep = frag_tensor_writable(dp->keep);
	for (int64_t i = 0; i < size; i++) {
		const char *label = i < dp->job.labels ? dp->labels.items[i] : "";

		keep[i] = 0;
		for (size_t k = 0; k < dp->keep_labels.count; k++)
			keep[i] |= strcmp(dp->keep_labels.items[k], label) == 0;
	}
	dp->job.keep = keep;
	return 0;
}

static int initialize(void *state, struct frag_op *op)
{
	struct detection_postprocessor *dp = state;
	int r = make_keep(dp);

	return r < 0 ? r : gpu_twin_open(&dp->twin, op, inference_ptx, NULL, dp->cuda_stream_pool);
}

static int stop(void *state, struct frag_op *op)
{
	struct detection_postprocessor *dp = state;

	(void)op;
	dp->is_pending = false;
	return 0;
}

static void fini(void *state, struct frag_op *op)
{
	struct detection_postprocessor *dp = state;

	(void)op;
	free(dp->detections);
	frag_tensor_unref(dp->keep);
	frag_tensor_unref(dp->result);
	gpu_twin_close(&dp->twin);
}

const struct frag_op_type inference_detection_postprocessor_type = {
	FRAG_OP_TYPE_INIT,
	.name = "detection_postprocessor",
	.headline = "Makes boxes with labels of what a network detected",
	.description =
		"Leaves out boxes with a low score and those that overlap a better one of the same class. What it emits is sorted by score, the best first, and lies in memory of the host. Tensors in memory of a GPU are searched there, with the same result.",
	.state_size = sizeof(struct detection_postprocessor),
	FRAG_PORTS(ports),
	FRAG_PARAMS(params),
	.setup = setup,
	.initialize = initialize,
	.compute = compute,
	.stop = stop,
	.fini = fini,
};
