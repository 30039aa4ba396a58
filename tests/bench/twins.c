// SPDX-License-Identifier: Apache-2.0
/*
 * Kernels of operators alone, each beside a copy of as many bytes and, where its libraries are
 * found (LD_LIBRARY_PATH), the function of NVIDIA's NPP 13. Prints lines "NAME UNIT VALUE".
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <frag/frag.h>
#include <type/cuda.h>

#include "inference/kernels.h"
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

/* Memory of the GPU with bytes by chance; it stays until the end. */
static void *some_bytes(int64_t size)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_tensor *host, *there;
	unsigned char *at;

	if (frag_tensor_create(NULL, U8, 1, &size, &host) < 0)
		exit(1);
	at = frag_tensor_writable(host);
	for (int64_t i = 0; i < size; i++)
		at[i] = (unsigned char)((uint64_t)i * 2654435761u >> 11);
	if (frag_tensor_copy(host, NULL, GPU, &there, &err) < 0)
		die("copy", &err);
	frag_tensor_unref(host);
	return (void *)(uintptr_t)frag_tensor_data(there);
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

/* NPP 13: the declarations of nppdefs.h. */
struct npp_size {
	int width, height;
};
struct npp_rect {
	int x, y, width, height;
};
struct npp_context {
	void *stream;
	int device, multiprocessors, threads_of_one, threads_of_block;
	size_t shared_of_block;
	int major, minor;
	unsigned int flags, workspace;
};
/* One H100 or H200. */
static const struct npp_context npp = {NULL, 0, 132, 2048, 1024, 48 << 10, 9, 0, 0, 0};

static void *npp_function(const char *library, const char *name)
{
	void *handle = dlopen(library, RTLD_NOW);
	void *function = handle != NULL ? dlsym(handle, name) : NULL;

	if (function == NULL)
		printf("lacks %s of %s\n", name, library);
	return function;
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

static void check_npp(int status)
{
	if (status != 0) {
		fprintf(stderr, "twins: NPP refuses: %d\n", status);
		exit(1);
	}
}

static void call_npp(void *context)
{
	const struct conversion *c = context;
	const struct npp_size size = {c->job.columns, c->job.rows};
	const struct npp_rect part = {0, 0, c->job.columns, c->job.rows};
	const void *planes[2] = {c->job.in, c->job.in + ROWS * COLUMNS};
	const int step = (int)c->job.row_bytes;

	if (c->job.layout == RAW_SEMIPLANAR)
		check_npp(c->npp.planes(planes, step, c->job.out, 3 * COLUMNS, size, npp));
	else if (c->job.layout == RAW_YUYV)
		check_npp(c->npp.packed(c->job.in, step, c->job.out, 3 * COLUMNS, size, npp));
	else
		check_npp(c->npp.bayer(c->job.in, step, size, part, c->job.out, 3 * COLUMNS, 1, 0,
				       npp));
}

/* Of 1080p to RGB of u8. */
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

	check_npp(r->npp(r->in.data, 3 * COLUMNS, (struct npp_size){COLUMNS, ROWS},
			 (struct npp_rect){0, 0, COLUMNS, ROWS}, r->out, 3 * columns,
			 (struct npp_size){columns, rows}, (struct npp_rect){0, 0, columns, rows},
			 2, npp));
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

static void *floats(int64_t count, float (*value)(int64_t i))
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_tensor *host, *there;

	if (frag_tensor_create(NULL, (struct frag_dtype){FRAG_DTYPE_FLOAT, 32, 1}, 1, &count,
			       &host) < 0)
		exit(1);
	for (int64_t i = 0; i < count; i++)
		((float *)frag_tensor_writable(host))[i] = value(i);
	if (frag_tensor_copy(host, NULL, GPU, &there, &err) < 0)
		die("copy", &err);
	frag_tensor_unref(host);
	return (void *)(uintptr_t)frag_tensor_data(there);
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
	measure_search();
	frag_kernel_destroy(copy);
	return 0;
}
