/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "detections.h"
#include "inference.h"
#include "received.h"

/* More boxes than any network makes. */
#define BOXES_MAX 100000

struct detection_postprocessor {
	const char *boxes_tensor_name, *scores_tensor_name, *classes_tensor_name;
	const char *count_tensor_name, *regions_tensor_name;
	const char *box_layout;
	double box_width, box_height;
	double score_threshold, iou_threshold, inside_threshold;
	int64_t max_detections, first_class;
	struct frag_string_list labels, keep_labels;
	struct frag_resource *allocator;

	enum detection_layout layout;
	struct detection *detections;
	size_t capacity;
};

/* The tensors of the current messages. */
struct found {
	const float *boxes, *scores;
	const struct frag_tensor *classes, *valid;
	const float *regions; /* NULL: the boxes are of the whole frame */
	size_t count;         /* boxes */
	size_t in_region;     /* boxes of each region */
	size_t columns;       /* scores of each box */
};

enum { RECEIVERS, OUT };
static const struct frag_port ports[] = {
	[RECEIVERS] = {.name = "receivers",
		       .dir = FRAG_IN,
		       .type = "tensor",
		       .headline =
			       "boxes, scores and classes of a network, in one or more messages",
		       .flags = FRAG_PORT_MULTI},
	[OUT] = {.name = "out",
		 .dir = FRAG_OUT,
		 .type = "tensor",
		 .headline =
			 "boxes, scores and labels, the best first; rectangles [2n, 2] and label_coords [n, 3] for a viewer; the labels as text, one a line",
		 .tensors = FRAG_BOXES "; " FRAG_SCORES "; " FRAG_LABELS},
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
			dp->layout = (enum detection_layout)i;
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

/* Finds a tensor of compact f32 in host memory; with `any` also of i32 and i64. */
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
	    (dl->device.type != FRAG_DEVICE_CPU && dl->device.type != FRAG_DEVICE_CUDA_HOST))
		return frag_op_fail(
			op, -EINVAL,
			"the tensor \"%s\" is not %s without gaps in host memory; name another one with %s",
			name, any ? "f32, i32 or i64" : "f32", parameter);
	*out = tensor;
	return 0;
}

static size_t elements(const struct frag_tensor *tensor)
{
	const struct frag_dltensor *dl = frag_tensor_dl(tensor);
	size_t count = 1;

	for (int32_t i = 0; i < dl->ndim; i++)
		count *= (size_t)dl->shape[i];
	return count;
}

/* Element i of a tensor of f32, i32 or i64. */
static double element(const struct frag_tensor *tensor, size_t i)
{
	const struct frag_dltensor *dl = frag_tensor_dl(tensor);
	const void *data = frag_tensor_data(tensor);

	if (dl->dtype.code == FRAG_DTYPE_FLOAT)
		return (double)((const float *)data)[i];
	return dl->dtype.bits == 32 ? (double)((const int32_t *)data)[i]
				    : (double)((const int64_t *)data)[i];
}

/* Finds the regions, and how many boxes of each are valid. */
static int find_regions(const struct detection_postprocessor *dp, struct frag_op *op,
			const struct frag_message *const *messages, int count, struct found *found)
{
	const struct frag_tensor *regions = NULL;
	size_t pictures = 1;
	int r = 0;

	if (dp->regions_tensor_name[0] != '\0') {
		r = find(op, messages, count, "regions_tensor_name", dp->regions_tensor_name, false,
			 &regions);
		if (r < 0)
			return r;
		pictures = elements(regions) / 4;
		found->regions = frag_tensor_data(regions);
	}
	if (dp->count_tensor_name[0] != '\0')
		r = find(op, messages, count, "count_tensor_name", dp->count_tensor_name, true,
			 &found->valid);
	if (r < 0)
		return r;
	if ((regions != NULL && elements(regions) % 4 != 0) ||
	    (pictures == 0 ? found->count > 0 : found->count % pictures != 0) ||
	    (found->valid != NULL && elements(found->valid) != pictures))
		return frag_op_fail(
			op, -EINVAL,
			"there are %zu boxes, %zu regions and %zu counts; name tensors of the same batch with boxes_tensor_name, regions_tensor_name and count_tensor_name",
			found->count, pictures, found->valid != NULL ? elements(found->valid) : 0);
	found->in_region = pictures > 0 ? found->count / pictures : 1;
	for (size_t i = 0; found->valid != NULL && i < pictures; i++)
		if (!(element(found->valid, i) >= 0.0))
			return frag_op_fail(
				op, -EBADMSG,
				"the tensor \"%s\" holds no number of boxes (%g); check the model and its input",
				dp->count_tensor_name, element(found->valid, i));
	return 0;
}

static int find_all(const struct detection_postprocessor *dp, struct frag_op *op,
		    const struct frag_message *const *messages, int count, struct found *found)
{
	const struct frag_tensor *boxes, *scores;
	const struct frag_dltensor *dl;
	size_t scored;
	int r = find(op, messages, count, "boxes_tensor_name", dp->boxes_tensor_name, false,
		     &boxes);

	if (r == 0)
		r = find(op, messages, count, "scores_tensor_name", dp->scores_tensor_name, false,
			 &scores);
	if (r == 0 && dp->classes_tensor_name[0] != '\0')
		r = find(op, messages, count, "classes_tensor_name", dp->classes_tensor_name, true,
			 &found->classes);
	if (r < 0)
		return r;
	dl = frag_tensor_dl(boxes);
	found->count = elements(boxes) / 4;
	scored = elements(scores);
	if (dl->ndim < 1 || dl->shape[dl->ndim - 1] != 4 || found->count > BOXES_MAX)
		return frag_op_fail(
			op, -EINVAL,
			"the tensor \"%s\" does not hold boxes of four numbers; name another one with boxes_tensor_name",
			dp->boxes_tensor_name);
	if ((found->count > 0 && scored % found->count != 0) ||
	    (scored == 0) != (found->count == 0) ||
	    (found->classes != NULL && elements(found->classes) != found->count))
		return frag_op_fail(
			op, -EINVAL,
			"there are %zu boxes, %zu scores and %zu classes; name tensors of the same network with boxes_tensor_name, scores_tensor_name and classes_tensor_name",
			found->count, scored,
			found->classes != NULL ? elements(found->classes) : 0);
	found->columns = found->count > 0 ? scored / found->count : 1;
	found->boxes = frag_tensor_data(boxes);
	found->scores = frag_tensor_data(scores);
	return find_regions(dp, op, messages, count, found);
}

/* Reads score and class of box i. Returns false when a number is NaN. */
static bool read_score(const struct found *found, size_t i, struct detection *out)
{
	const float *scores = found->scores + i * found->columns;
	double label = 0.0;
	size_t best = 0;

	for (size_t c = 0; c < found->columns; c++) {
		if (isnan(scores[c]))
			return false;
		if (scores[c] > scores[best])
			best = c;
	}
	out->score = scores[best];
	if (found->columns > 1)
		label = (double)best;
	if (found->classes != NULL)
		label = element(found->classes, i);
	out->label = (int32_t)lrint(fmin(fmax(label, -1e9), 1e9));
	return !isnan(label);
}

static bool is_kept(const struct detection_postprocessor *dp, const struct detection *detection)
{
	for (size_t i = 0; i < dp->keep_labels.count; i++)
		if (strcmp(dp->keep_labels.items[i], label_of(dp, detection->label)) == 0)
			return true;
	return dp->keep_labels.count == 0;
}

static bool has_nan(const float *box)
{
	return isnan(box[0]) || isnan(box[1]) || isnan(box[2]) || isnan(box[3]);
}

/* Reads where box i is. Returns false when it does not count. */
static bool read_place(const struct detection_postprocessor *dp, const struct found *found,
		       size_t i, struct detection *out)
{
	const float *region = found->regions;
	size_t picture = i / found->in_region;

	if (found->valid != NULL &&
	    (double)(i % found->in_region) >= element(found->valid, picture))
		return false;
	if (!detection_read_box(out, dp->layout, found->boxes + 4 * i, (float)dp->box_width,
				(float)dp->box_height))
		return false;
	return region == NULL || detection_move(out, region + 4 * picture);
}

/* Fills the list with what stands out. Returns its length or a failure. */
static int64_t decode(struct detection_postprocessor *dp, struct frag_op *op,
		      const struct found *found)
{
	size_t count = 0;

	if (found->count > dp->capacity) {
		struct detection *larger = realloc(dp->detections, found->count * sizeof(*larger));

		if (larger == NULL)
			return -ENOMEM;
		dp->detections = larger;
		dp->capacity = found->count;
	}
	for (size_t i = 0; i < found->count; i++) {
		struct detection *detection = &dp->detections[count];
		const float *box = found->boxes + 4 * i;

		if (!read_score(found, i, detection) || has_nan(box))
			return frag_op_fail(
				op, -EBADMSG,
				"box %zu of the network is not a number (NaN); check that the network's input is in the range that it was trained with (scale_min, scale_max of format_converter), and its file",
				i);
		if (detection->score >= (float)dp->score_threshold &&
		    read_place(dp, found, i, detection) && is_kept(dp, detection))
			count++;
	}
	count = detections_suppress(dp->detections, count, (float)dp->iou_threshold,
				    dp->inside_threshold < 1.0 ? (float)dp->inside_threshold
							       : INFINITY);
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

static int compute(void *state, struct frag_tick *tick)
{
	struct detection_postprocessor *dp = state;
	struct frag_op *op = frag_tick_op(tick);
	const struct frag_message *const *messages;
	int flows = frag_tick_receive_all(tick, RECEIVERS, &messages);
	struct found found = {0};
	struct frag_message *message;
	int64_t count;
	int r;

	if (flows < 0)
		return flows;
	r = find_all(dp, op, messages, flows, &found);
	if (r < 0)
		return r;
	count = decode(dp, op, &found);
	if (count < 0)
		return (int)count;
	message = frag_message_create();
	if (message == NULL)
		return -ENOMEM;
	r = fill(dp, message, count);
	if (r < 0) {
		frag_message_unref(message);
		return frag_op_fail(
			op, r,
			"cannot make the tensors of %lld boxes: %s; give the allocator larger or more blocks",
			(long long)count, frag_strerror(r));
	}
	received_stamp(messages, flows, message);
	return frag_tick_emit(tick, OUT, message);
}

static void fini(void *state, struct frag_op *op)
{
	struct detection_postprocessor *dp = state;

	(void)op;
	free(dp->detections);
}

const struct frag_op_type inference_detection_postprocessor_type = {
	FRAG_OP_TYPE_INIT,
	.name = "detection_postprocessor",
	.headline = "Makes boxes with labels of what a network detected",
	.description =
		"Leaves out boxes with a low score and those that overlap a better one of the same class. What it emits is sorted by score, the best first.",
	.state_size = sizeof(struct detection_postprocessor),
	FRAG_PORTS(ports),
	FRAG_PARAMS(params),
	.setup = setup,
	.compute = compute,
	.fini = fini,
};
