// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"
#include "folders.h"
#include "inference/detections.h"
#include "inference/inference.h"
#include "inference/models.h"
#include "video/video.h"
#include "image/png_file.h"
#include "vision/resize.h"
#include "vision/vision.h"

/*
 * What the networks of make deps-ai find in the clip of the examples, compared with people that
 * were labelled and drawn by hand, and what the operator costs beside the engine alone. The numbers
 * are printed. With FRAG_PICTURES=FOLDER the frames are written there: labels and drawings green,
 * what was found red.
 */
#define CLIP "examples/data/pedestrians.mp4"
#define ENGINE ".cache/ai/openvino"
#define DETECTOR ".cache/ai/models/person-detection"
#define SEGMENTER ".cache/ai/models/person-segmentation"
#define ROWS 576
#define COLUMNS 768
#define FRAMES 300
/*
 * Four parts of each frame, as in examples/people: squares of the size that the network takes,
 * which overlap by more than a person is wide.
 */
#define PARTS                                                                                      \
	"[[0, 0.173611, 0.390625, 0.694444], [0.203125, 0.173611, 0.59375, 0.694444], [0.40625, 0.173611, 0.796875, 0.694444], [0.609375, 0.173611, 1, 0.694444]]"

/* Returns why the networks cannot run here; NULL: they can. */
static const char *hindrance(void)
{
	/* OpenVINO opens libraries in a way that sanitizers end a program for. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return "the engine does not run under sanitizers";
#elif !defined(__x86_64__)
	return "make deps-ai fetches the engine for x86-64";
#endif
	if (access(ENGINE "/libopenvino_c.so", R_OK) != 0 || access(DETECTOR ".onnx", R_OK) != 0)
		return "make deps-ai has not fetched the engine and the models";
	if (access(CLIP, R_OK) != 0)
		return "it is not run in the top folder of frag";
	setenv("FRAG_OPENVINO", ENGINE, 1);
	setenv("FRAG_ONNXRUNTIME", ".cache/ai/onnxruntime", 1);
	return NULL;
}

static struct frag_message *take(struct frag_harness *h, const char *out)
{
	struct frag_message *result = NULL;

	cr_assert_geq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
	cr_assert_eq(frag_harness_take(h, out, &result), 0);
	return result;
}

static struct frag_message *message(const char *name, struct frag_tensor *tensor)
{
	struct frag_message *m = frag_message_create();

	cr_assert_not_null(m);
	cr_assert_eq(frag_message_add_tensor(m, name, tensor), 0);
	return m;
}

static struct frag_tensor *create(enum frag_dtype_code code, uint8_t bits, int32_t ndim,
				  const int64_t *shape)
{
	struct frag_tensor *t;

	cr_assert_eq(frag_tensor_create(NULL, (struct frag_dtype){(uint8_t)code, bits, 1}, ndim,
					shape, &t),
		     0);
	return t;
}

static const uint8_t *pixels(const struct frag_message *frame)
{
	return frag_tensor_data(frag_message_tensor(frame, ""));
}

static struct frag_harness *open_clip(void)
{
	return make(&video_replayer_type, FRAG_ARGS({"path", CLIP}, {"realtime", "false"}));
}

/* The network of OpenVINO, or the one for ONNX Runtime, which leaves out no boxes. */
static struct frag_harness *open_detector(bool is_onnx)
{
	return make(
		&inference_inference_type,
		FRAG_ARGS(
			{"backend", is_onnx ? "onnxruntime" : "openvino"},
			{"model_path_map",
			 is_onnx ? "{person: " DETECTOR ".onnx}" : "{person: " DETECTOR ".xml}"},
			{"pre_processor_map", "{person: ['']}"},
			{"inference_map",
			 is_onnx ? "{person: ['detection_boxes:0', 'detection_scores:0']}"
				 : "{person: ['detection_boxes:0', 'detection_scores:0', 'num_detections:0']}"}));
}

/* Pictures. */

static void write_picture(uint8_t *picture, const char *kind, int number)
{
	const char *folder = getenv("FRAG_PICTURES");
	struct frame f = {.data = picture,
			  .rows = ROWS,
			  .columns = COLUMNS,
			  .channels = 3,
			  .row_bytes = (size_t)3 * COLUMNS};
	char path[512];

	if (folder == NULL || folder[0] == '\0')
		return;
	snprintf(path, sizeof(path), "%s/%s-%03d.png", folder, kind, number);
	cr_assert_eq(folders_make(path), 0);
	cr_assert_eq(image_png_write(path, &f), 0, "cannot write %s", path);
}

static void draw(uint8_t *picture, const struct detection *box, const uint8_t *colour)
{
	int left = (int)(box->left * COLUMNS), right = (int)(box->right * COLUMNS) - 1;
	int top = (int)(box->top * ROWS), bottom = (int)(box->bottom * ROWS) - 1;

	for (int y = top < 0 ? 0 : top; y <= bottom && y < ROWS; y++)
		for (int x = left < 0 ? 0 : left; x <= right && x < COLUMNS; x++)
			if (y == top || y == bottom || x == left || x == right)
				memcpy(picture + 3 * (y * COLUMNS + x), colour, 3);
}

/* Detection. */

struct label {
	int frame;
	struct detection box;
	bool hidden; /* more than half: neither a miss nor a false alarm */
	bool found;
};
static struct label labels[256];
static int label_count;

static void read_labels(void)
{
	FILE *file = fopen("tests/inference/people.txt", "r");
	char line[128];

	cr_assert_not_null(file);
	while (fgets(line, sizeof(line), file) != NULL) {
		struct label *l = &labels[label_count];
		float left, top, right, bottom;

		if (line[0] == '#')
			continue;
		cr_assert_eq(
			sscanf(line, "%d %f %f %f %f", &l->frame, &left, &top, &right, &bottom), 5);
		l->box = (struct detection){left / COLUMNS, top / ROWS, right / COLUMNS,
					    bottom / ROWS,  1.0f,       1};
		l->hidden = strstr(line, "hidden") != NULL;
		label_count++;
	}
	fclose(file);
}

static bool is_labelled(int frame)
{
	for (int i = 0; i < label_count; i++)
		if (labels[i].frame == frame)
			return true;
	return false;
}

/* Returns whether most of a box lies on a person who is hidden more than half. */
static bool is_hidden(const struct detection *d, const struct label *label)
{
	float width = fminf(d->right, label->box.right) - fmaxf(d->left, label->box.left);
	float height = fminf(d->bottom, label->box.bottom) - fmaxf(d->top, label->box.top);

	return label->hidden && width > 0.0f && height > 0.0f &&
	       width * height >= 0.5f * (d->right - d->left) * (d->bottom - d->top);
}

/* Compares one box with the labels of its frame. Returns 1 when it is a false alarm. */
static int compare(int frame, const struct detection *d)
{
	struct label *best = NULL;
	float most = 0.5f;
	bool excused = false;

	for (int i = 0; i < label_count; i++) {
		float overlap = detection_overlap(&labels[i].box, d);

		if (labels[i].frame != frame)
			continue;
		excused |= is_hidden(d, &labels[i]);
		if (labels[i].hidden || labels[i].found || overlap < most)
			continue;
		best = &labels[i];
		most = overlap;
	}
	if (best != NULL)
		best->found = true;
	return best == NULL && !excused;
}

static int compare_all(int frame, const struct frag_message *found, const uint8_t *frame_pixels)
{
	static const uint8_t red[] = {255, 0, 0}, green[] = {0, 255, 0};
	const struct frag_tensor *t = frag_message_tensor(found, "boxes");
	const float *box = frag_tensor_data(t);
	uint8_t *picture = malloc((size_t)3 * ROWS * COLUMNS);
	int wrong = 0;

	cr_assert_not_null(picture);
	memcpy(picture, frame_pixels, (size_t)3 * ROWS * COLUMNS);
	for (int i = 0; i < label_count; i++)
		if (labels[i].frame == frame)
			draw(picture, &labels[i].box, green);
	for (int64_t k = 0; k < frag_tensor_dl(t)->shape[0]; k++, box += 4) {
		struct detection d = {box[0], box[1], box[2], box[3], 1.0f, 1};

		draw(picture, &d, red);
		wrong += compare(frame, &d);
	}
	write_picture(picture, "people", frame);
	free(picture);
	return wrong;
}

static int detect(struct frag_harness *crop, struct frag_harness *detector,
		  struct frag_harness *postprocessor, int frame, struct frag_message *m)
{
	struct frag_message *parts, *boxes;
	int wrong;

	/* Without metadata, which would meet itself at the postprocessor. */
	give_tensor(crop, "source_video", "", frag_tensor_ref(frag_message_tensor(m, "")));
	parts = take(crop, "out");
	cr_assert_eq(frag_harness_give(detector, "receivers", frag_message_ref(parts)), 0);
	cr_assert_eq(frag_harness_give(postprocessor, "receivers", take(detector, "transmitter")),
		     0);
	cr_assert_eq(frag_harness_give(postprocessor, "receivers:1", parts), 0);
	boxes = take(postprocessor, "out");
	wrong = compare_all(frame, boxes, pixels(m));
	frag_message_unref(boxes);
	return wrong;
}

static void find_people(bool is_onnx)
{
	struct frag_harness *clip, *crop, *detector, *postprocessor;
	int visible = 0, found = 0, wrong = 0, frames = 0;

	if (hindrance() != NULL)
		cr_skip_test("%s", hindrance());
	read_labels();
	clip = open_clip();
	crop = make(&vision_crop_type,
		    FRAG_ARGS({"width", "300"}, {"height", "300"}, {"regions", PARTS}));
	detector = open_detector(is_onnx);
	postprocessor = make(&inference_detection_postprocessor_type,
			     FRAG_ARGS({"boxes_tensor_name", "detection_boxes:0"},
				       {"scores_tensor_name", "detection_scores:0"},
				       {"count_tensor_name", is_onnx ? "" : "num_detections:0"},
				       {"regions_tensor_name", "boxes"},
				       {"score_threshold", "0.33"}, {"inside_threshold", "0.7"}));
	for (int frame = 0; frame < FRAMES; frame++) {
		struct frag_message *m = take(clip, "output");

		if (is_labelled(frame)) {
			wrong += detect(crop, detector, postprocessor, frame, m);
			frames++;
		}
		frag_message_unref(m);
	}
	for (int i = 0; i < label_count; i++) {
		visible += !labels[i].hidden;
		found += !labels[i].hidden && labels[i].found;
	}
	fprintf(stderr,
		"people, %s: %d of %d found (recall %.3f at IoU 0.5), %d false boxes in %d frames; %d people are hidden more than half and do not count\n",
		is_onnx ? "onnxruntime" : "openvino", found, visible, (double)found / visible,
		wrong, frames, label_count - visible);
	cr_expect_eq(frames, 20);
	cr_expect_geq(found, (int)ceil(0.75 * visible));
	cr_expect_leq(wrong, frames / 10);
	frag_harness_destroy(postprocessor);
	frag_harness_destroy(detector);
	frag_harness_destroy(crop);
	frag_harness_destroy(clip);
}

Test(people, most_are_found_and_few_are_invented, .timeout = 300)
{
	find_people(false);
}

Test(people, onnxruntime_finds_as_many, .timeout = 300)
{
	find_people(true);
}

/* Segmentation. */

struct drawing {
	int frame, corners;
	float x[80], y[80];
	struct detection box; /* around it */
};

static bool read_drawing(char *line, struct drawing *out)
{
	char *text = strchr(line, ':'), *word, *rest = NULL;

	if (line[0] == '#' || text == NULL)
		return false;
	*out = (struct drawing){.frame = atoi(line), .box = {1.0f, 1.0f, 0.0f, 0.0f, 1.0f, 1}};
	for (word = strtok_r(text + 1, " \n", &rest); word != NULL;
	     word = strtok_r(NULL, " \n", &rest)) {
		float *x = &out->x[out->corners], *y = &out->y[out->corners];

		cr_assert(out->corners < 80 && sscanf(word, "%f,%f", x, y) == 2);
		out->box.left = fminf(out->box.left, *x / COLUMNS);
		out->box.right = fmaxf(out->box.right, *x / COLUMNS);
		out->box.top = fminf(out->box.top, *y / ROWS);
		out->box.bottom = fmaxf(out->box.bottom, *y / ROWS);
		out->corners++;
	}
	return true;
}

/* Returns whether the centre of a pixel is inside: a ray to the right crosses an odd number. */
static bool is_inside(const struct drawing *d, int column, int row)
{
	float x = (float)column + 0.5f, y = (float)row + 0.5f;
	bool inside = false;

	for (int i = 0, k = d->corners - 1; i < d->corners; k = i++)
		if ((d->y[i] > y) != (d->y[k] > y) &&
		    x < (d->x[k] - d->x[i]) * (y - d->y[i]) / (d->y[k] - d->y[i]) + d->x[i])
			inside = !inside;
	return inside;
}

/* Cuts out a square, 1.25 times the box's larger side, as f32 from 0 to 1. */
static struct frag_message *cut_out(const struct frag_message *m, const struct detection *box)
{
	int side = (int)lrintf(
		1.25f * fmaxf((box->right - box->left) * COLUMNS, (box->bottom - box->top) * ROWS));
	int left = (int)lrintf((box->left + box->right) / 2.0f * COLUMNS) - side / 2;
	int top = (int)lrintf((box->top + box->bottom) / 2.0f * ROWS) - side / 2;
	float *square = calloc((size_t)(side * side), 3 * sizeof(float));
	struct frag_tensor *t = create(FRAG_DTYPE_FLOAT, 32, 4, (int64_t[]){1, 256, 256, 3});
	struct frag_tensor *place = create(FRAG_DTYPE_FLOAT, 32, 2, (int64_t[]){1, 4});
	struct frame f = {.data = square,
			  .rows = side,
			  .columns = side,
			  .channels = 3,
			  .row_bytes = (size_t)side * 3 * sizeof(float),
			  .is_float = true};
	struct frag_message *out;
	float *to;

	cr_assert_not_null(square);
	for (int y = 0; y < side; y++)
		for (int x = 0; x < side; x++)
			for (int c = 0; c < 3; c++)
				if (top + y >= 0 && top + y < ROWS && left + x >= 0 &&
				    left + x < COLUMNS)
					square[3 * (y * side + x) + c] =
						pixels(m)[3 * ((top + y) * COLUMNS + left + x) +
							  c] /
						255.0f;
	cr_assert_eq(vision_resize(&f, RESIZE_LINEAR, 256, 256, frag_tensor_writable(t)), 0);
	free(square);
	to = frag_tensor_writable(place);
	to[0] = (float)left / COLUMNS;
	to[1] = (float)top / ROWS;
	to[2] = (float)(left + side) / COLUMNS;
	to[3] = (float)(top + side) / ROWS;
	out = message("", t);
	cr_assert_eq(frag_message_add_tensor(out, "boxes", place), 0);
	return out;
}

/* Returns the part that a mask and the drawing share of what they cover together. */
static double agree(const struct drawing *d, const struct frag_message *result,
		    const struct frag_message *m, int number)
{
	const uint8_t *mask = frag_tensor_data(frag_message_tensor(result, "out_tensor"));
	uint8_t *picture = malloc((size_t)3 * ROWS * COLUMNS);
	int both = 0, either = 0;

	cr_assert_not_null(picture);
	memcpy(picture, pixels(m), (size_t)3 * ROWS * COLUMNS);
	for (int y = 0; y < ROWS; y++) {
		for (int x = 0; x < COLUMNS; x++) {
			bool drawn = is_inside(d, x, y), found = mask[y * COLUMNS + x] != 0;

			both += drawn && found;
			either += drawn || found;
			if (drawn || found) {
				picture[3 * (y * COLUMNS + x)] = found ? 255 : 0;
				picture[3 * (y * COLUMNS + x) + 1] = drawn ? 255 : 0;
			}
		}
	}
	write_picture(picture, "mask", number);
	free(picture);
	return (double)both / either;
}

static double segment(struct frag_harness *segmenter, struct frag_harness *postprocessor,
		      const struct drawing *d, const struct frag_message *m, int number)
{
	struct frag_message *square = cut_out(m, &d->box), *result;
	double shared;

	cr_assert_eq(frag_harness_give(segmenter, "receivers", frag_message_ref(square)), 0);
	cr_assert_eq(frag_harness_give(postprocessor, "in_tensor", take(segmenter, "transmitter")),
		     0);
	cr_assert_eq(frag_harness_give(postprocessor, "boxes", square), 0);
	result = take(postprocessor, "out_tensor");
	shared = agree(d, result, m, number);
	frag_message_unref(result);
	return shared;
}

static void compare_masks(bool is_onnx)
{
	struct frag_harness *clip, *segmenter, *postprocessor;
	struct drawing drawings[16];
	char line[2048];
	int count = 0;
	FILE *file;

	if (hindrance() != NULL)
		cr_skip_test("%s", hindrance());
	file = fopen("tests/inference/masks.txt", "r");
	cr_assert_not_null(file);
	while (fgets(line, sizeof(line), file) != NULL)
		count += read_drawing(line, &drawings[count]);
	fclose(file);
	cr_assert_eq(count, 10);
	clip = open_clip();
	segmenter = make(&inference_inference_type,
			 FRAG_ARGS({"backend", is_onnx ? "onnxruntime" : "openvino"},
				   {"model_path_map", is_onnx ? "{person: " SEGMENTER ".onnx}"
							      : "{person: " SEGMENTER ".xml}"},
				   {"pre_processor_map", "{person: ['']}"},
				   {"inference_map", "{person: [masks]}"}));
	postprocessor = make(
		&inference_segmentation_postprocessor_type,
		FRAG_ARGS({"network_output_type", "sigmoid"}, {"rows", "576"}, {"columns", "768"}));
	for (int frame = 0; frame < FRAMES; frame++) {
		struct frag_message *m = take(clip, "output");

		for (int i = 0; i < count; i++) {
			double shared;

			if (drawings[i].frame != frame)
				continue;
			shared = segment(segmenter, postprocessor, &drawings[i], m, i);
			fprintf(stderr, "mask %d, frame %d: IoU %.3f\n", i, frame, shared);
			cr_expect_geq(shared, 0.7);
		}
		frag_message_unref(m);
	}
	frag_harness_destroy(postprocessor);
	frag_harness_destroy(segmenter);
	frag_harness_destroy(clip);
}

Test(people, masks_agree_with_drawings, .timeout = 300)
{
	compare_masks(false);
}

Test(people, masks_of_onnxruntime_agree_too, .timeout = 300)
{
	compare_masks(true);
}

/* Speed. */

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/*
 * The same frame goes through the operator and through the engine alone, in turn, so that both meet
 * the same load. The figures are printed, and nothing is required of them: on a busy machine they
 * prove nothing.
 */
Test(people, the_operator_beside_the_engine, .timeout = 300)
{
	enum { RUNS = 60 };
	struct inference_model *model = NULL;
	struct inference_request *request = NULL;
	struct frag_err err = FRAG_ERR_INIT;
	const struct inference_options options = {0};
	const int64_t shape[] = {1, 300, 300, 3};
	int64_t alone[RUNS], operator[RUNS], start;
	struct frag_harness *detector;
	struct frag_tensor *t;

	if (hindrance() != NULL)
		cr_skip_test("%s", hindrance());
	detector = open_detector(false);
	cr_assert_eq(
		inference_model_open(&inference_openvino, DETECTOR ".xml", &options, &model, &err),
		0, "%s", err.text);
	cr_assert_eq(inference_openvino.request_create(model, &request, &err), 0);
	t = create(FRAG_DTYPE_UINT, 8, 4, shape);
	memset(frag_tensor_writable(t), 99, frag_tensor_size_bytes(t));
	for (int i = 0; i < RUNS; i++) {
		start = now_ns();
		cr_assert_eq(inference_openvino.set_input(request, 0, 4, shape,
							  frag_tensor_dl(t)->device,
							  frag_tensor_data(t), &err),
			     0);
		cr_assert_eq(inference_openvino.start(request, NULL, NULL, &err), 0);
		cr_assert_eq(inference_openvino.wait(request, &err), 0);
		alone[i] = now_ns() - start;
		give_tensor(detector, "receivers", "", frag_tensor_ref(t));
		start = now_ns();
		frag_message_unref(take(detector, "transmitter"));
		operator[i] = now_ns() - start;
	}
	qsort(alone, RUNS, sizeof(*alone), by_value);
	qsort(operator, RUNS, sizeof(*operator), by_value);
	fprintf(stderr,
		"one frame: %.2f ms by the operator, %.2f ms by the engine alone (medians of %d): %.3f times\n",
		(double)operator[RUNS / 2] / 1e6, (double)alone[RUNS / 2] / 1e6, RUNS,
		(double)operator[RUNS / 2] /(double) alone[RUNS / 2]);
	frag_tensor_unref(t);
	inference_openvino.request_destroy(request);
	inference_model_close(model);
	frag_harness_destroy(detector);
}
