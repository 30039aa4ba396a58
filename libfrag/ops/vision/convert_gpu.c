// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "convert_gpu.h"
#include "convert_rgb.h"
#include "taps.h"

#ifdef FRAG_CONVERT_PTX
__asm__(".pushsection .rodata\n"
	"vision_convert_ptx:\n"
	".incbin \"" FRAG_CONVERT_PTX "\"\n"
	".byte 0\n"
	".popsection\n");
extern const char vision_convert_ptx[] __attribute__((visibility("hidden")));
static const char *const ptx = vision_convert_ptx;
#else
static const char *const ptx = NULL;
#endif

#define ROW(name, float_input, channels, taps) {#name, float_input, channels, taps},
static const struct {
	const char *name;
	int float_input, channels, taps; /* -1: any */
} kernels[] = {CONVERT_KERNELS(ROW)};

int vision_convert_gpu_is_built(void)
{
	return ptx != NULL;
}

#define RGB_NAME(name, store) #name,
static const char *const rgb_kernels[] = {CONVERT_RGB_KERNELS(RGB_NAME)};

/* Whether convert_rgb.h has this conversion. Then job->planes[c] is where channel c goes. */
static bool settle_planes(struct convert_job *job)
{
	const size_t element = job->is_float ? sizeof(float) : 1;
	bool fits = job->in_is_float == 0 && job->in_channels == 3 && job->across == 2 &&
		    job->down == 2 && job->channels == 3 && job->in_row_bytes % 4 == 0 &&
		    job->in_row_bytes <= UINT32_MAX;

	memset(job->planes, 0, sizeof(job->planes));
	for (size_t c = 0; c < 3 && fits; c++)
		if (job->order[c] < 3)
			job->planes[job->order[c]] = job->out + c * job->channel_step * element;
	return fits && (1 << job->order[0] | 1 << job->order[1] | 1 << job->order[2]) == 7;
}

/* The first kernel of the list that fits; the last one fits all. */
static const char *kernel_for(struct convert_job *job, bool has_line)
{
	size_t i = 0;

	if (settle_planes(job))
		return rgb_kernels[!job->is_float ? CONVERT_BYTE
				   : has_line     ? CONVERT_LINE
						  : CONVERT_TABLE];
	while (kernels[i].channels >= 0 &&
	       (kernels[i].float_input != job->in_is_float ||
		kernels[i].channels != job->in_channels || kernels[i].taps != job->across ||
		kernels[i].taps != job->down))
		i++;
	return kernels[i].name;
}

/* Finds a line that goes through all values, to the bit, as the kernels compute it. */
static bool find_line(const struct convert *convert, float line[3])
{
	const double slope = (convert->scale_max - convert->scale_min) / 255.0;
	float values[256];
	int i = 0;

	line[0] = (float)slope;
	line[1] = (float)(slope - (double)line[0]);
	line[2] = (float)convert->scale_min;
	vision_convert_values(convert, values);
	while (i < 256 && fmaf((float)i, line[0], fmaf((float)i, line[1], line[2])) == values[i])
		i++;
	return i == 256;
}

static int settle_kernel(struct convert_gpu *gpu, struct convert_job *job,
			 struct frag_device device, struct frag_err *err)
{
	const char *name = kernel_for(job, gpu->has_line);
	struct frag_kernel *kernel;
	int r;

	if (gpu->kernel != NULL && gpu->device.id == device.id && gpu->kernel_name == name)
		return 0;
	r = frag_kernel_create(device, ptx, name, &kernel, err);
	if (r < 0)
		return r;
	if (gpu->kernel != NULL)
		r = vision_convert_gpu_wait(gpu, err);
	frag_kernel_destroy(gpu->kernel);
	gpu->kernel = kernel;
	gpu->kernel_name = name;
	return r;
}

/* After settle_kernel, which waits for the work on another GPU. */
static int settle_pads(struct convert_gpu *gpu, struct frag_device device, struct frag_err *err)
{
	if (gpu->pads != NULL && gpu->pads_device.id == device.id)
		return 0;
	frag_kernel_destroy(gpu->pads);
	gpu->pads = NULL;
	gpu->pads_device = device;
	return frag_kernel_create(device, ptx, "convert_beside", &gpu->pads, err);
}

int vision_convert_gpu_prepare(struct convert_gpu *gpu, const struct convert *convert,
			       struct frag_device device, int64_t channels, bool resizes,
			       enum resize_mode mode, bool pads, struct frag_err *err)
{
	struct convert_job job = {.in_channels = (int32_t)channels,
				  .channels = (int32_t)convert->channels,
				  .is_float = convert->is_float};
	int r;

	memcpy(job.order, convert->order, sizeof(job.order));
	gpu->has_line = find_line(convert, gpu->line);

	if (resizes)
		job.across = mode == RESIZE_LINEAR                            ? 2
			     : mode == RESIZE_CUBIC || mode == RESIZE_DEFAULT ? 4
									      : 1;
	job.down = job.across;
	r = settle_kernel(gpu, &job, device, err);
	if (r == 0 && pads)
		r = settle_pads(gpu, device, err);
	if (r == 0)
		gpu->device = device;
	return r;
}

static int32_t clamp(int64_t x, int64_t size)
{
	return (int32_t)(x < 0 ? 0 : x >= size ? size - 1 : x);
}

/*
 * Of one side, whose input has `from` pixels; returns the end. A side that keeps its size has none.
 */
static unsigned char *put_taps(const struct taps *taps, int64_t from, int64_t to, unsigned char *at)
{
	for (int64_t i = 0; taps->count > 0 && i < to; i++) {
		int32_t *pixels = (int32_t *)(void *)at;

		for (int64_t k = 0; k < taps->count; k++)
			pixels[k] = clamp(taps->first[i] + k, from);
		memcpy(pixels + taps->count, taps->weights + i * taps->count,
		       (size_t)taps->count * sizeof(float));
		at += 2 * (size_t)taps->count * sizeof(float);
	}
	return at;
}

static int send_tables(struct convert_gpu *gpu, const struct taps *across, const struct taps *down,
		       const float *values, struct frag_device device, struct frag_err *err)
{
	const int64_t rows = gpu->tables_of.rows, columns = gpu->tables_of.columns;
	const int64_t size = 4 * (256 + columns * 2 * across->count + rows * 2 * down->count);
	struct frag_tensor *host, *there;
	unsigned char *at;
	int r = frag_tensor_create(NULL, (struct frag_dtype){FRAG_DTYPE_UINT, 8, 1}, 1, &size,
				   &host);

	if (r < 0)
		return r;
	at = frag_tensor_writable(host);
	memcpy(at, values, 256 * sizeof(*values));
	at = put_taps(across, gpu->tables_of.from_columns, columns, at + 256 * sizeof(*values));
	put_taps(down, gpu->tables_of.from_rows, rows, at);
	r = frag_tensor_copy(host, NULL, device, &there, err);
	frag_tensor_unref(host);
	if (r < 0)
		return r;
	frag_tensor_unref(gpu->tables);
	gpu->tables = there;
	gpu->across = across->count;
	gpu->down = down->count;
	return 0;
}

static int make_tables(struct convert_gpu *gpu, const struct convert *convert,
		       struct frag_device device, struct frag_err *err)
{
	const __typeof__(gpu->tables_of) *of = &gpu->tables_of;
	bool resizes = of->rows != of->from_rows || of->columns != of->from_columns;
	struct taps across = {0}, down = {0};
	float values[256];
	int r = 0;

	vision_convert_values(convert, values);
	gpu->has_line = find_line(convert, gpu->line);
	if (resizes)
		r = vision_taps_init(&across, of->mode, of->from_columns, of->columns);
	if (r == 0 && resizes)
		r = vision_taps_init(&down, of->mode, of->from_rows, of->rows);
	if (r == 0)
		r = send_tables(gpu, &across, &down, values, device, err);
	vision_taps_fini(&across);
	vision_taps_fini(&down);
	return r;
}

/* Makes the tables of this format, unless they are there. */
static int settle_tables(struct convert_gpu *gpu, const struct convert *convert,
			 struct frag_device device, const struct frame *in, enum resize_mode mode,
			 int64_t rows, int64_t columns, struct frag_err *err)
{
	__typeof__(gpu->tables_of) of, before = gpu->tables_of;
	int r;

	memset(&of, 0, sizeof(of));
	of.mode = mode;
	of.from_rows = in->rows;
	of.from_columns = in->columns;
	of.rows = rows;
	of.columns = columns;
	of.scale_min = convert->scale_min;
	of.scale_max = convert->scale_max;
	if (gpu->tables != NULL && gpu->device.id == device.id &&
	    memcmp(&of, &before, sizeof(of)) == 0)
		return 0;
	gpu->tables_of = of;
	r = gpu->tables != NULL && gpu->kernel != NULL ? vision_convert_gpu_wait(gpu, err) : 0;
	if (r == 0)
		r = make_tables(gpu, convert, device, err);
	if (r < 0) {
		frag_tensor_unref(gpu->tables);
		gpu->tables = NULL;
	}
	return r;
}

/* Says where the tables are, as send_tables has written them. */
static void find_tables(const struct convert_gpu *gpu, struct convert_job *job)
{
	const unsigned char *at = frag_tensor_data(gpu->tables);

	job->across = (int32_t)gpu->across;
	job->down = (int32_t)gpu->down;
	job->values = (const float *)(const void *)at;
	at += 256 * sizeof(float);
	job->across_taps = at;
	job->down_taps = at + (size_t)job->columns * 2 * (size_t)job->across * sizeof(float);
	memcpy(job->line, gpu->line, sizeof(job->line));
}

/* A thread for each column and each CONVERT_ROWS rows. */
static int launch(const struct frag_kernel *kernel, struct convert_job *job, int64_t rows,
		  int64_t columns, void *stream, struct frag_err *err)
{
	const int64_t block_rows = (int64_t)CONVERT_THREADS_Y * CONVERT_ROWS;
	const struct frag_launch launch = {
		FRAG_LAUNCH_INIT,
		.block = {CONVERT_THREADS_X, CONVERT_THREADS_Y, 1},
		.grid = {(uint32_t)((columns + CONVERT_THREADS_X - 1) / CONVERT_THREADS_X),
			 (uint32_t)((rows + block_rows - 1) / block_rows), 1},
		.stream = stream,
	};

	return frag_kernel_launch(kernel, &launch, (void *[]){job}, err);
}

int vision_convert_gpu(struct convert_gpu *gpu, const struct convert *convert,
		       struct frag_device device, const struct frame *in, enum resize_mode mode,
		       const struct convert_place *place, void *out, void *stream,
		       struct frag_err *err)
{
	const double span = convert->scale_max - convert->scale_min;
	const int64_t rows = place->picture_rows, columns = place->picture_columns;
	struct convert_job job = {
		.in = in->data,
		.out = out,
		.in_row_bytes = in->row_bytes,
		.row_bytes = (uint32_t)in->row_bytes,
		.scale_min = convert->scale_min,
		.scale_span = span,
		.in_rows = (int32_t)in->rows,
		.in_columns = (int32_t)in->columns,
		.in_channels = (int32_t)in->channels,
		.in_is_float = in->is_float,
		.rows = (int32_t)rows,
		.columns = (int32_t)columns,
		.out_rows = (int32_t)place->rows,
		.out_columns = (int32_t)place->columns,
		.top = (int32_t)place->top,
		.left = (int32_t)place->left,
		.channels = (int32_t)convert->channels,
		.is_float = convert->is_float,
		.pixel_step = convert->is_planar ? 1 : (int32_t)convert->channels,
		.channel_step = convert->is_planar ? (uint64_t)(place->rows * place->columns) : 1,
		.alpha_f32 = vision_convert_alpha(convert),
		.alpha = convert->alpha,
		.pad = convert->pad,
	};
	int r;

	if (!vision_convert_gpu_is_built())
		return frag_err_set(
			err, -ENOTSUP,
			"this build has no kernels for GPUs: it was made without a CUDA toolkit");
	memcpy(job.order, convert->order, sizeof(job.order));
	r = settle_tables(gpu, convert, device, in, mode, rows, columns, err);
	if (r < 0)
		return r;
	find_tables(gpu, &job);
	r = settle_kernel(gpu, &job, device, err);
	if (r < 0)
		return r;
	gpu->device = device;
	gpu->stream = stream;
	if (rows != place->rows || columns != place->columns) {
		r = settle_pads(gpu, device, err);
		if (r == 0)
			r = launch(gpu->pads, &job, place->rows, place->columns, stream, err);
		if (r < 0)
			return r;
	}
	return launch(gpu->kernel, &job, rows, columns, stream, err);
}

int vision_convert_gpu_wait(const struct convert_gpu *gpu, struct frag_err *err)
{
	return frag_kernel_wait(gpu->kernel, gpu->stream, err);
}

void vision_convert_gpu_fini(struct convert_gpu *gpu)
{
	frag_kernel_destroy(gpu->kernel);
	frag_kernel_destroy(gpu->pads);
	frag_tensor_unref(gpu->tables);
}
