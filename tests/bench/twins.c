// SPDX-License-Identifier: Apache-2.0
/*
 * Kernels of operators alone, each beside a copy of as many bytes and, where its libraries are
 * found (LD_LIBRARY_PATH), the function of NVIDIA's NPP 13. Prints lines "NAME UNIT VALUE". NPP has
 * none for Malvar, drawing, masks of several classes or of boxes, and the search for boxes. That of
 * NPP 13.2 for P010 (nppiP010ToRGB_16u_P2C3R) reads beyond the end of a frame.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <frag/frag.h>
#include <type/cuda.h>

#include "draw/canvas.h"
#include "inference/kernels.h"
#include "npp.h"
#include "plugin/gpu_kernels.h"
#include "plugin/gpu_ptx.h"
#include "vision/convert_gpu.h"
#include "vision/kernels.h"
#include "vision/raw.h"

#define GPU ((struct frag_device){FRAG_DEVICE_CUDA, 0})
#define U8 ((struct frag_dtype){FRAG_DTYPE_UINT, 8, 1})
#define SERIES 7
#define LAUNCHES 200
#define SKIPPED 77
#define ROWS 1080
#define COLUMNS 1920

static struct frag_kernel *copy;

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void die(const char *what, const struct frag_err *err)
{
	fprintf(stderr, "twins: %s: %s\n", what, err->text);
	exit(1);
}

/* A copy in memory of the GPU, which stays until the end. */
static void *on_gpu(const void *bytes, size_t size)
{
	const int64_t count = (int64_t)size;
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_tensor *host, *there;

	if (frag_tensor_create(NULL, U8, 1, &count, &host) < 0)
		exit(1);
	memcpy(frag_tensor_writable(host), bytes, size);
	if (frag_tensor_copy(host, NULL, GPU, &there, &err) < 0)
		die("copy", &err);
	frag_tensor_unref(host);
	return (void *)(uintptr_t)frag_tensor_data(there);
}

/* The same of bytes by chance. */
static void *some_bytes(int64_t size)
{
	unsigned char *bytes = malloc((size_t)size);
	void *there;

	for (int64_t i = 0; bytes != NULL && i < size; i++)
		bytes[i] = (unsigned char)((uint64_t)i * 2654435761u >> 11);
	there = bytes != NULL ? on_gpu(bytes, (size_t)size) : NULL;
	free(bytes);
	return there;
}

static void *floats(int64_t count, float (*value)(int64_t i))
{
	float *numbers = malloc((size_t)count * sizeof(float));
	void *there;

	for (int64_t i = 0; numbers != NULL && i < count; i++)
		numbers[i] = value(i);
	there = numbers != NULL ? on_gpu(numbers, (size_t)count * sizeof(float)) : NULL;
	free(numbers);
	return there;
}

static struct frag_kernel *load(const char *ptx, const char *name)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_kernel *kernel;

	if (frag_kernel_create(GPU, ptx, name, &kernel, &err) < 0)
		die(name, &err);
	return kernel;
}

static void launch(const struct frag_kernel *kernel, void *job, int64_t columns, int64_t rows,
		   uint32_t across, uint32_t down)
{
	const struct frag_launch how = {FRAG_LAUNCH_INIT, .block = {across, down, 1},
					.grid = {(uint32_t)(columns + across - 1) / across,
						 (uint32_t)(rows + down - 1) / down, 1}};
	struct frag_err err = FRAG_ERR_INIT;

	if (frag_kernel_launch(kernel, &how, (void *[]){job}, &err) < 0)
		die("launch", &err);
}

static int (*synchronize)(void); /* of the context: also what NPP has launched */

static void wait_for_all(void)
{
	if (synchronize() != 0) {
		fprintf(stderr, "twins: the work on the GPU failed\n");
		exit(1);
	}
}

/* frag's module has opened the driver; NPP uses the same context, the primary one. */
static void find_synchronize(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW), *context = NULL;
	int (*retain)(void **context, int device);
	int (*set)(void *context);

	*(void **)&retain = dlsym(driver, "cuDevicePrimaryCtxRetain");
	*(void **)&set = dlsym(driver, "cuCtxSetCurrent");
	*(void **)&synchronize = dlsym(driver, "cuCtxSynchronize");
	if (retain(&context, 0) != 0 || set(context) != 0)
		exit(1);
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The time of one of many calls, one behind the other: the median of series. */
static void measure(const char *name, void (*call)(void *context), void *context)
{
	double values[SERIES], began;

	for (int s = -1; s < SERIES; s++) {
		began = now_us();
		for (int i = 0; i < LAUNCHES; i++)
			call(context);
		wait_for_all();
		if (s >= 0)
			values[s] = (now_us() - began) / LAUNCHES;
	}
	qsort(values, SERIES, sizeof(*values), by_size);
	printf("%s us %.2f\n", name, values[SERIES / 2]);
}

static void call_copy(void *context)
{
	launch(copy, context, (int64_t)BENCH_BLOCKS * BENCH_THREADS, 1, BENCH_THREADS, 1);
}

static void measure_copy(const char *name, uint64_t bytes)
{
	static unsigned char *from, *to;
	struct bench_job job;

	if (from == NULL) {
		from = some_bytes(32 << 20);
		to = some_bytes(32 << 20);
	}
	job = (struct bench_job){from, to, bytes / 32};
	measure(name, call_copy, &job);
}

struct conversion {
	struct frag_kernel *kernel;
	struct raw_job job;
	union {
		int (*planes)(const void *const from[2], int step, void *to, int to_step,
			      struct npp_size size, struct npp_context context);
		int (*packed)(const void *from, int step, void *to, int to_step,
			      struct npp_size size, struct npp_context context);
		int (*bayer)(const void *from, int step, struct npp_size size, struct npp_rect part,
			     void *to, int to_step, int grid, int mode, struct npp_context context);
		void *any;
	} npp;
};

static void call_raw(void *context)
{
	struct conversion *c = context;

	launch(c->kernel, &c->job, vision_raw_thread_columns(&c->job),
	       vision_raw_thread_rows(&c->job), 32, 8);
}

static void call_npp(void *context)
{
	const struct conversion *c = context;
	const struct npp_size size = {c->job.columns, c->job.rows};
	const struct npp_rect part = {0, 0, c->job.columns, c->job.rows};
	const int step = (int)c->job.row_bytes;
	const void *planes[2] = {c->job.in, c->job.in + (ptrdiff_t)ROWS * step};

	if (c->job.layout == RAW_SEMIPLANAR)
		npp_check(c->npp.planes(planes, step, c->job.out, 3 * COLUMNS, size, npp));
	else if (c->job.layout == RAW_YUYV)
		npp_check(c->npp.packed(c->job.in, step, c->job.out, 3 * COLUMNS, size, npp));
	else
		npp_check(c->npp.bayer(c->job.in, step, size, part, c->job.out, 3 * COLUMNS,
				       NPP_RGGB, 0, npp));
}

/* Of 1080p to RGB of u8, or of u16. */
static void measure_raw(const char *format_name, bool is_malvar, const char *npp_name)
{
	const struct raw_format *format = vision_raw_find(format_name);
	const int bytes = format->bits == 16 ? 2 : format->layout == RAW_YUYV ? 2 : 1;
	const bool has_planes = format->layout == RAW_SEMIPLANAR;
	struct conversion c = {.job = {.rows = ROWS, .columns = COLUMNS}};
	int64_t in_bytes = (int64_t)ROWS * COLUMNS * bytes * (has_planes ? 3 : 2) / 2;
	const int64_t out_bytes = (int64_t)ROWS * COLUMNS * 3 * (format->bits == 16 ? 2 : 1);
	const char *what = is_malvar ? "malvar" : format_name;
	char name[80];

	vision_raw_set_color(&c.job, format, "bt601", false);
	c.job.in = some_bytes(in_bytes);
	c.job.out = some_bytes(out_bytes);
	c.job.row_bytes = (uint64_t)(COLUMNS * bytes);
	c.job.is_deep = format->bits == 16;
	c.job.layout = is_malvar ? RAW_MALVAR : (int32_t)format->layout;
	vision_raw_settle(&c.job);
	c.kernel = load(vision_ptx, vision_raw_kernel(&c.job));
	snprintf(name, sizeof(name), "twins.raw.%s", what);
	measure(name, call_raw, &c);
	snprintf(name, sizeof(name), "twins.raw.%s.copy", what);
	measure_copy(name, (uint64_t)(in_bytes + out_bytes));
	c.npp.any = npp_name != NULL ? npp_function("libnppicc.so.13", npp_name) : NULL;
	snprintf(name, sizeof(name), "twins.raw.%s.npp", what);
	if (c.npp.any != NULL)
		measure(name, call_npp, &c);
	frag_kernel_destroy(c.kernel);
}

struct resizing {
	struct convert_gpu gpu;
	struct frame in;
	int64_t rows, columns;
	void *out;
	int (*npp)(const void *from, int step, struct npp_size size, struct npp_rect part, void *to,
		   int to_step, struct npp_size to_size, struct npp_rect to_part, int mode,
		   struct npp_context context);
};

static void call_resize(void *context)
{
	struct resizing *r = context;
	const struct convert same = {.channels = 3, .scale_max = 1, .order = {0, 1, 2, 3}};
	const struct convert_place place = {.rows = r->rows,
					    .columns = r->columns,
					    .picture_rows = r->rows,
					    .picture_columns = r->columns};
	struct frag_err err = FRAG_ERR_INIT;

	if (vision_convert_gpu(&r->gpu, &same, GPU, &r->in, RESIZE_LINEAR, &place, r->out, NULL,
			       &err) < 0)
		die("resize", &err);
}

static void call_npp_resize(void *context)
{
	const struct resizing *r = context;
	const int rows = (int)r->rows, columns = (int)r->columns;

	npp_check(r->npp(r->in.data, 3 * COLUMNS, (struct npp_size){COLUMNS, ROWS},
			 (struct npp_rect){0, 0, COLUMNS, ROWS}, r->out, 3 * columns,
			 (struct npp_size){columns, rows}, (struct npp_rect){0, 0, columns, rows},
			 NPP_LINEAR, npp));
}

/* Of 1080p, RGB of u8, to 720p, linear. */
static void measure_resize(void)
{
	struct resizing r = {.in = {.data = some_bytes(ROWS * COLUMNS * 3),
				    .rows = ROWS,
				    .columns = COLUMNS,
				    .channels = 3,
				    .row_bytes = COLUMNS * 3},
			     .rows = 720,
			     .columns = 1280,
			     .out = some_bytes(1280 * 720 * 3)};

	measure("twins.resize.720p", call_resize, &r);
	measure_copy("twins.resize.720p.copy", ROWS * COLUMNS * 3 + 1280 * 720 * 3);
	*(void **)&r.npp = npp_function("libnppig.so.13", "nppiResize_8u_C3R_Ctx");
	if (r.npp != NULL)
		measure("twins.resize.720p.npp", call_npp_resize, &r);
	vision_convert_gpu_fini(&r.gpu);
}

#define REGIONS 5
#define REGION 384 /* pixels, on each side */
#define CROP 256

/* Squares of a frame side by side, as shares: left, top, right, bottom of each. */
static float region(int64_t i)
{
	const float begin = i % 2 == 0 ? (float)(i / 4 * REGION) : ROWS / 2;
	const float at = begin + (i % 4 < 2 ? 0 : REGION);

	return at / (i % 2 == 0 ? COLUMNS : ROWS);
}

struct cropping {
	struct frag_kernel *kernel;
	struct crop_job job;
	struct npp_image *from, *to;
	struct npp_part *parts;
	int (*npp)(int most_columns, int most_rows, struct npp_image *from, struct npp_image *to,
		   struct npp_part *parts, unsigned int count, int mode,
		   struct npp_context context);
};

static void call_crop(void *context)
{
	struct cropping *c = context;

	launch(c->kernel, &c->job, (int64_t)crop_step(&c->job) * CROP, REGIONS, 32, 8);
}

static void call_npp_crop(void *context)
{
	const struct cropping *c = context;

	npp_check(c->npp(CROP, CROP, c->from, c->to, c->parts, REGIONS, NPP_LINEAR, npp));
}

/* Describes the same for NPP, on the GPU. */
static void describe_for_npp(struct cropping *c)
{
	struct npp_image from[REGIONS], to[REGIONS];
	struct npp_part parts[REGIONS];

	for (int i = 0; i < REGIONS; i++) {
		from[i] = (struct npp_image){c->job.in, 3 * COLUMNS, {COLUMNS, ROWS}};
		to[i] = (struct npp_image){
			c->job.out + (ptrdiff_t)i * CROP * CROP * 3, 3 * CROP, {CROP, CROP}};
		parts[i] = (struct npp_part){{i * REGION, ROWS / 2, REGION, REGION},
					     {0, 0, CROP, CROP}};
	}
	c->from = on_gpu(from, sizeof(from));
	c->to = on_gpu(to, sizeof(to));
	c->parts = on_gpu(parts, sizeof(parts));
}

/* Squares of a frame of 1080p, RGB of u8, as operators crop people. */
static void measure_crop(bool is_float)
{
	const int64_t numbers = (int64_t)REGIONS * CROP * CROP * 3;
	const int64_t bytes = numbers * (is_float ? (int64_t)sizeof(float) : 1);
	struct cropping c = {
		.kernel = load(vision_ptx, "vision_crop"),
		.job = {.in = some_bytes(ROWS * COLUMNS * 3),
			.out = some_bytes(bytes),
			.regions = floats(4 * REGIONS, region),
			.row_bytes = COLUMNS * 3,
			.in_rows = ROWS,
			.in_columns = COLUMNS,
			.channels = 3,
			.rows = CROP,
			.columns = CROP,
			.count = REGIONS,
			.out_is_float = is_float,
			.scale_max = 1},
	};

	measure(is_float ? "twins.crop.f32" : "twins.crop.u8", call_crop, &c);
	measure_copy(is_float ? "twins.crop.f32.copy" : "twins.crop.u8.copy",
		     (uint64_t)(REGIONS * REGION * REGION * 3 + bytes));
	if (!is_float) /* its crops have the type of the frame */
		*(void **)&c.npp =
			npp_function("libnppig.so.13", "nppiResizeBatch_8u_C3R_Advanced_Ctx");
	if (c.npp != NULL) {
		describe_for_npp(&c);
		measure("twins.crop.u8.npp", call_npp_crop, &c);
	}
	frag_kernel_destroy(c.kernel);
}

struct drawing {
	struct frag_kernel *take, *find, *draw;
	struct draw_take_job taking;
	struct draw_job job;
	int64_t tiles;
};

static void call_draw(void *context)
{
	struct drawing *d = context;

	launch(d->take, &d->taking, (int64_t)d->taking.bytes / 16, 1, 256, 1);
	launch(d->find, &d->job, d->tiles, draw_words(&d->job), 32, 8);
	launch(d->draw, &d->job, COLUMNS / DRAW_ACROSS, ROWS, 32, 8);
}

/* What is drawn: a frame, the mask of its classes, and boxes with labels. */
static size_t list_steps(struct draw_step *items, size_t most)
{
	static const struct paint line = {{255, 200, 20}, 256}, classes[4];
	const struct area all = {0, 0, COLUMNS, ROWS};
	const struct frame frame = {.data = some_bytes(ROWS * COLUMNS * 3),
				    .rows = ROWS,
				    .columns = COLUMNS,
				    .channels = 3,
				    .row_bytes = COLUMNS * 3};
	const struct frame mask = {.data = some_bytes(ROWS * COLUMNS),
				   .rows = ROWS,
				   .columns = COLUMNS,
				   .channels = 1,
				   .row_bytes = COLUMNS};
	struct draw_steps steps = {.items = items, .most = most};
	struct canvas canvas = {.rows = ROWS, .columns = COLUMNS, .steps = &steps};

	draw_frame(&canvas, &all, &frame, &(struct palette){NULL, 0}, 256);
	draw_frame(&canvas, &all, &mask, &(struct palette){classes, 4}, 128);
	for (int64_t i = 0; i < REGIONS; i++) {
		const struct area box = {i * REGION, ROWS / 2, (i + 1) * REGION, ROWS};

		draw_outline(&canvas, &box, 2, &line);
		draw_text(&canvas, (double)box.left, (double)box.top - 16, 2, "person 0.87", &line);
	}
	return steps.count;
}

static void measure_draw(void)
{
	const int64_t bytes = 4096 * (int64_t)sizeof(struct draw_step);
	struct drawing d = {.take = load(vision_ptx, "vision_draw_take"),
			    .find = load(vision_ptx, "vision_draw_touch"),
			    .draw = load(vision_ptx, "vision_draw"),
			    .job = {.rows = ROWS, .columns = COLUMNS}};
	struct frag_tensor *pinned;

	if (frag_tensor_create_on(NULL, (struct frag_device){FRAG_DEVICE_CUDA_HOST, 0}, U8, 1,
				  &bytes, &pinned) < 0)
		exit(1);
	d.job.count = (int32_t)list_steps(frag_tensor_writable(pinned), 4096);
	d.taking = (struct draw_take_job){
		.in = frag_tensor_data(pinned),
		.out = some_bytes(bytes),
		.bytes = ((uint64_t)d.job.count * sizeof(struct draw_step) + 15) / 16 * 16};
	d.job.steps = (const struct draw_step *)(const void *)d.taking.out;
	d.job.paints = some_bytes(4 * sizeof(struct paint));
	d.job.paint_count = 4;
	d.job.out = some_bytes(ROWS * COLUMNS * 3);
	d.tiles = (int64_t)draw_tiles_across(&d.job) * draw_tiles_down(&d.job);
	d.job.tiles = some_bytes(d.tiles * draw_words(&d.job) * (int64_t)sizeof(uint32_t));
	measure("twins.draw", call_draw, &d);
	printf("twins.draw.steps n %d\n", (int)d.job.count);
	measure_copy("twins.draw.copy", ROWS * COLUMNS * (3 + 1 + 3) + d.taking.bytes);
	frag_kernel_destroy(d.take);
	frag_kernel_destroy(d.find);
	frag_kernel_destroy(d.draw);
	frag_tensor_unref(pinned);
}

struct masking {
	struct frag_kernel *classes, *find_nan, *pixels;
	struct mask_job job;
	int (*npp)(const float *from, int step, float threshold, void *to, int to_step,
		   struct npp_size size, int comparison, struct npp_context context);
};

static void call_mask(void *context)
{
	struct masking *m = context;
	const struct mask_source *source = &m->job.source;

	if (m->job.boxes == NULL) {
		launch(m->classes, &m->job, mask_threads(ROWS * COLUMNS), 1, 256, 1);
		return;
	}
	launch(m->find_nan, &m->job,
	       mask_threads(source->rows * source->columns * source->channels), m->job.count, 32,
	       8);
	launch(m->pixels, &m->job, mask_threads(COLUMNS), ROWS, 32, 8);
}

static void call_npp_mask(void *context)
{
	const struct masking *m = context;

	npp_check(m->npp(m->job.source.data, 4 * COLUMNS, m->job.source.threshold, m->job.out,
			 COLUMNS, (struct npp_size){COLUMNS, ROWS}, NPP_GREATER, npp));
}

static float share(int64_t i)
{
	return (float)((uint64_t)i * 2654435761u >> 9 & 1023) / 1023.0f;
}

/* The mask of a frame of 1080p: of the classes of a network, or of boxes that it was given. */
static void measure_mask(const char *what, int64_t channels, int64_t boxes, const char *npp_name)
{
	const int64_t rows = boxes > 0 ? CROP : ROWS, columns = boxes > 0 ? CROP : COLUMNS;
	const int64_t pictures = boxes > 0 ? boxes : 1;
	const int64_t numbers = pictures * rows * columns * channels, one = sizeof(uint32_t);
	struct masking m = {.classes = load(inference_ptx, "inference_mask_classes"),
			    .find_nan = load(inference_ptx, "inference_mask_find_nan"),
			    .pixels = load(inference_ptx, "inference_mask_pixels"),
			    .job = {.source = {.data = floats(numbers, share),
					       .rows = rows,
					       .columns = columns,
					       .channels = channels,
					       .softmax = channels > 1,
					       .threshold = 0.5f},
				    .boxes = boxes > 0 ? floats(4 * boxes, region) : NULL,
				    .out = some_bytes(ROWS * COLUMNS),
				    .rows = ROWS,
				    .columns = COLUMNS,
				    .count = pictures,
				    .instances = boxes > 0}};
	struct frag_tensor *pinned;
	char name[80];

	if (frag_tensor_create_on(NULL, (struct frag_device){FRAG_DEVICE_CUDA_HOST, 0}, U8, 1, &one,
				  &pinned) < 0)
		exit(1);
	m.job.nan_picture = frag_tensor_writable(pinned);
	*m.job.nan_picture = UINT32_MAX;
	snprintf(name, sizeof(name), "twins.mask.%s", what);
	measure(name, call_mask, &m);
	snprintf(name, sizeof(name), "twins.mask.%s.copy", what);
	measure_copy(name, (uint64_t)(numbers * 4 + ROWS * COLUMNS));
	if (npp_name != NULL)
		*(void **)&m.npp = npp_function("libnppitc.so.13", npp_name);
	snprintf(name, sizeof(name), "twins.mask.%s.npp", what);
	if (m.npp != NULL)
		measure(name, call_npp_mask, &m);
	frag_kernel_destroy(m.classes);
	frag_kernel_destroy(m.find_nan);
	frag_kernel_destroy(m.pixels);
	frag_tensor_unref(pinned);
}

struct search {
	struct detect_job job;
	struct frag_kernel *begin, *box, *rank, *suppress;
};

static void call_search(void *context)
{
	struct search *s = context;

	launch(s->begin, &s->job, 1, 1, 256, 1);
	launch(s->box, &s->job, s->job.count, 1, 256, 1);
	launch(s->rank, &s->job, s->job.count,
	       (s->job.count + DETECT_COMPARED - 1) / DETECT_COMPARED, 32, 8);
	launch(s->suppress, &s->job, 1, 1, 1024, 1);
}

static float side(int64_t i)
{
	uint64_t hash = (uint64_t)(i / 4) * 2654435761u;
	float at = (float)(hash >> (i % 2 == 0 ? 8 : 20) & 1023) / 1100.0f;

	return i % 4 < 2 ? at : at + 0.06f;
}

static float score(int64_t i)
{
	/* 1 of 1000 above the threshold */
	return (float)((uint64_t)i * 2654435761u >> 7 & 4095) / 4095.0f * 0.5005f;
}

/* As YOLO gives them: 8400 boxes with 80 scores. */
static void measure_search(void)
{
	const int64_t count = 8400, columns = 80;
	struct search s = {
		.job = {.boxes = floats(count * 4, side),
			.scores = floats(count * columns, score),
			.count = (uint32_t)count,
			.in_region = (uint32_t)count,
			.columns = (uint32_t)columns,
			.pictures = 1,
			.layout = DETECTION_XYXY,
			.box_width = 1,
			.box_height = 1,
			.score_threshold = 0.5f,
			.most = 0.5f,
			.inside = INFINITY,
			.most_kept = 100,
			.candidates = some_bytes(count * (int64_t)sizeof(struct detection)),
			.sorted = some_bytes(count * (int64_t)sizeof(struct detection)),
			.ranks = some_bytes(count * (int64_t)sizeof(uint32_t)),
			.gone = some_bytes(count),
			.candidate_count = some_bytes(16)},
		.begin = load(inference_ptx, "inference_detect_begin"),
		.box = load(inference_ptx, "inference_detect_box"),
		.rank = load(inference_ptx, "inference_detect_rank"),
		.suppress = load(inference_ptx, "inference_detect_suppress"),
	};
	struct frag_tensor *pinned;
	const int64_t bytes = 1 << 16;

	if (frag_tensor_create_on(NULL, (struct frag_device){FRAG_DEVICE_CUDA_HOST, 0}, U8, 1,
				  &bytes, &pinned) < 0)
		exit(1);
	s.job.result = frag_tensor_writable(pinned);
	measure("twins.detect.8400x80", call_search, &s);
	printf("twins.detect.8400x80.kept n %u\n", s.job.result->count);
	measure_copy("twins.detect.8400x80.copy", (uint64_t)(count * (columns + 4) * 4));
	frag_tensor_unref(pinned);
}

int main(void)
{
	const struct fragi_cuda_ops *ops;
	struct frag_err err = FRAG_ERR_INIT;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (fragi_cuda_use(GPU, &ops, &err) < 0) {
		printf("skipped: %s\n", err.text);
		return SKIPPED;
	}
	if (bench_ptx == NULL || vision_ptx == NULL) {
		printf("skipped: built without nvcc\n");
		return SKIPPED;
	}
	find_synchronize();
	copy = load(bench_ptx, "bench_copy");
	measure_raw("nv12", false, "nppiNV12ToRGB_8u_P2C3R_Ctx");
	measure_raw("p010", false, NULL);
	measure_raw("yuyv", false, "nppiYUV422ToRGB_8u_C2C3R_Ctx");
	measure_raw("bayer_rggb", false, "nppiCFAToRGB_8u_C1C3R_Ctx");
	measure_raw("bayer_rggb", true, NULL);
	measure_resize();
	measure_crop(false);
	measure_crop(true);
	measure_draw();
	measure_mask("sigmoid", 1, 0, "nppiCompareC_32f_C1R_Ctx");
	measure_mask("softmax", 4, 0, NULL);
	measure_mask("boxes", 1, REGIONS, NULL);
	measure_search();
	frag_kernel_destroy(copy);
	return 0;
}
