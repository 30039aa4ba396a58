// SPDX-License-Identifier: Apache-2.0
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/plugin/gpu_kernels.h"
#include "fake_kernels.h"
#include "inference/kernels.h"
#include "vision/convert_rgb.h"
#include "vision/kernels.h"

static char *(*reach_memory)(unsigned long long address, size_t size);

/* Every pointer of a job has to lead to memory of the GPU, with all that the kernel touches. */
static void *reached(const void *address, size_t size)
{
	void *at = reach_memory((uintptr_t)address, size);

	if (at == NULL && size > 0) {
		fprintf(stderr, "fake_cuda: a kernel uses memory beyond an allocation\n");
		abort();
	}
	return at;
}

static void reach_all(struct convert_job *job)
{
	size_t in_element = job->in_is_float ? sizeof(float) : 1;
	size_t out_element = job->is_float ? sizeof(float) : 1;
	size_t rows = (size_t)job->rows, columns = (size_t)job->columns;

	job->in =
		reached(job->in, (size_t)(job->in_rows - 1) * job->in_row_bytes +
					 (size_t)(job->in_columns * job->in_channels) * in_element);
	job->out = reached(job->out, (size_t)job->out_rows * (size_t)job->out_columns *
					     (size_t)job->channels * out_element);
	job->values = reached(job->values, 256 * sizeof(float));
	if (job->across == 0)
		return;
	job->across_taps =
		reached(job->across_taps, columns * 2 * (size_t)job->across * sizeof(float));
	job->down_taps = reached(job->down_taps, rows * 2 * (size_t)job->down * sizeof(float));
	for (size_t c = 0; c < 3 && job->planes[c] != NULL; c++)
		job->planes[c] = reached(job->planes[c], out_element);
}

#define RUN(name, convert)                                                                         \
	static void run_##name(const unsigned int grid[3], const unsigned int block[3],            \
			       void *argument,                                                     \
			       char *(*reach)(unsigned long long address, size_t size))            \
	{                                                                                          \
		struct convert_job job;                                                            \
                                                                                                   \
		memcpy(&job, argument, sizeof(job));                                               \
		reach_memory = reach;                                                              \
		reach_all(&job);                                                                   \
		for (int y = 0; y < (int)(grid[1] * block[1]) * CONVERT_ROWS; y += CONVERT_ROWS)   \
			for (int x = 0; x < (int)(grid[0] * block[0]); x++)                        \
				convert;                                                           \
	}
#define RUN_ANY(name, float_input, channels, taps)                                                 \
	RUN(name, convert_pixels(&job, x, y, float_input, channels, taps))
#define RUN_RGB(name, store) RUN(name, convert_rgb(&job, x, y, store))
RUN(convert_beside, convert_pads(&job, x, y))
CONVERT_KERNELS(RUN_ANY)
CONVERT_RGB_KERNELS(RUN_RGB)

/* Leads the pointers of a job to where they are read and written. */
static void reach_raw_job(struct raw_job *job)
{
	const size_t bytes = job->is_deep ? 2 : 1, rows = (size_t)job->rows;
	const bool has_planes = job->layout == RAW_SEMIPLANAR || job->layout == RAW_PLANAR;
	const bool is_packed = job->layout == RAW_YUYV || job->layout == RAW_UYVY;

	job->in = reached(job->in, ((has_planes ? rows / 2 * 3 : rows) - 1) * job->row_bytes +
					   (size_t)job->columns * bytes * (is_packed ? 2 : 1));
	job->out = reached(job->out, rows * (size_t)job->columns * 3 * bytes);
}

static void reach_level_job(struct level_job *job)
{
	const size_t width = (size_t)(job->columns * job->channels), rows = (size_t)job->rows;

	job->in =
		reached(job->in, (rows - 1) * job->row_bytes + width * (size_t)job->element_bytes);
	job->out = reached(job->out, rows * width * sizeof(float));
}

static void reach_numbers(struct detect_numbers *numbers, size_t count)
{
	if (numbers->data != NULL)
		numbers->data =
			reached(numbers->data, count * (numbers->kind == DETECT_I64 ? 8 : 4));
}

static void reach_detect_job(struct detect_job *job)
{
	const size_t count = job->count, list = count * sizeof(struct detection);

	job->boxes = reached(job->boxes, count * 4 * sizeof(float));
	job->scores = reached(job->scores, count * job->columns * sizeof(float));
	if (job->regions != NULL)
		job->regions = reached(job->regions, job->pictures * 4 * sizeof(float));
	reach_numbers(&job->classes, count);
	reach_numbers(&job->valid, job->pictures);
	if (job->keep != NULL)
		job->keep = reached(job->keep, (size_t)job->labels + 1);
	if (job->keypoints != NULL)
		job->keypoints = reached(
			job->keypoints, count * job->of_box * job->keypoint_values * sizeof(float));
	if (job->kept_keypoints != NULL)
		job->kept_keypoints =
			reached(job->kept_keypoints,
				(size_t)job->most_kept * job->of_box * 3 * sizeof(float));
	job->candidates = reached(job->candidates, list);
	job->sorted = reached(job->sorted, list);
	job->ranks = reached(job->ranks, count * sizeof(uint32_t));
	job->gone = reached(job->gone, count);
	job->candidate_count = reached(job->candidate_count, sizeof(uint32_t));
	job->result = reached(job->result,
			      sizeof(*job->result) + job->most_kept * sizeof(struct detection));
}

static void reach_mask_job(struct mask_job *job)
{
	const struct mask_source *source = &job->source;
	const size_t numbers = (size_t)(source->rows * source->columns * source->channels);

	job->source.data = reached(source->data, numbers * (size_t)job->count * sizeof(float));
	if (job->boxes != NULL)
		job->boxes = reached(job->boxes, (size_t)job->count * 4 * sizeof(float));
	job->out = reached(job->out, (size_t)(job->rows * job->columns));
	job->nan_picture = reached(job->nan_picture, sizeof(uint32_t));
}

static void reach_crop_job(struct crop_job *job)
{
	const size_t in = job->is_float ? sizeof(float) : 1;
	const size_t out = job->out_is_float ? sizeof(float) : 1;
	const size_t channels = (size_t)job->channels, count = (size_t)job->count;

	job->in = reached(job->in, (size_t)(job->in_rows - 1) * job->row_bytes +
					   (size_t)job->in_columns * channels * in);
	job->out = reached(job->out, count * (size_t)(job->rows * job->columns) * channels * out);
	job->regions = reached(job->regions, count * 4 * sizeof(float));
}

static void reach_draw_take_job(struct draw_take_job *job)
{
	job->in = reached(job->in, job->bytes);
	job->out = reached(job->out, job->bytes);
}

/* The steps are written for this launch alone. */
static void reach_draw_job(struct draw_job *job)
{
	struct draw_step *steps =
		reached(job->steps, (size_t)job->count * sizeof(struct draw_step));

	for (int32_t i = 0; i < job->count; i++)
		if (steps[i].kind != DRAW_FILL)
			steps[i].data = reached(steps[i].data,
						(size_t)(steps[i].rows - 1) * steps[i].row_bytes +
							(size_t)steps[i].columns *
								(size_t)steps[i].channels);
	job->steps = steps;
	job->paints = reached(job->paints, (size_t)job->paint_count * sizeof(struct paint));
	job->out = reached(job->out, (size_t)job->rows * (size_t)job->columns * 3);
	job->tiles = reached(job->tiles, (size_t)(draw_tiles_across(job) * draw_tiles_down(job)) *
						 (size_t)draw_words(job) * sizeof(uint32_t));
}

/* One thread after the other. */
#define RUN_THREADS(name, job_type, one)                                                           \
	static void run_##name(const unsigned int grid[3], const unsigned int block[3],            \
			       void *argument,                                                     \
			       char *(*reach)(unsigned long long address, size_t size))            \
	{                                                                                          \
		struct job_type job;                                                               \
                                                                                                   \
		memcpy(&job, argument, sizeof(job));                                               \
		reach_memory = reach;                                                              \
		reach_##job_type(&job);                                                            \
		for (int y = 0; y < (int)(grid[1] * block[1]); y++)                                \
			for (int x = 0; x < (int)(grid[0] * block[0]); x++)                        \
				one(&job, x, y);                                                   \
	}
VISION_KERNELS(RUN_THREADS)
INFERENCE_KERNELS(RUN_THREADS)

/* A block of one thread. */
#define RUN_BLOCK(name, job_type, block_of)                                                        \
	static void run_##name(const unsigned int grid[3], const unsigned int block[3],            \
			       void *argument,                                                     \
			       char *(*reach)(unsigned long long address, size_t size))            \
	{                                                                                          \
		struct job_type job;                                                               \
                                                                                                   \
		memcpy(&job, argument, sizeof(job));                                               \
		reach_memory = reach;                                                              \
		reach_##job_type(&job);                                                            \
		block_of(&job, 0, 1);                                                              \
	}
INFERENCE_BLOCK_KERNELS(RUN_BLOCK)

static void run_bench_copy(const unsigned int grid[3], const unsigned int block[3], void *argument,
			   char *(*reach)(unsigned long long address, size_t size))
{
	struct bench_job job;

	memcpy(&job, argument, sizeof(job));
	reach_memory = reach;
	memcpy(reached(job.out, job.count * 16), reached(job.in, job.count * 16), job.count * 16);
}

static void run_bench_touch(const unsigned int grid[3], const unsigned int block[3], void *argument,
			    char *(*reach)(unsigned long long address, size_t size))
{
	struct bench_job job;

	memcpy(&job, argument, sizeof(job));
	reach_memory = reach;
	(void)reached(job.in, job.count * 16);
}

#define ROW(name, ...) {#name, sizeof(struct convert_job), run_##name},
#define ROW_OF(name, job_type, ...) {#name, sizeof(struct job_type), run_##name},
static const struct fake_kernel kernels[] = {
	VISION_KERNELS(ROW_OF) INFERENCE_KERNELS(ROW_OF) INFERENCE_BLOCK_KERNELS(ROW_OF)
		ROW(convert_beside) CONVERT_KERNELS(ROW) CONVERT_RGB_KERNELS(ROW){
			"bench_copy", sizeof(struct bench_job), run_bench_copy},
	{"bench_touch", sizeof(struct bench_job), run_bench_touch},
};

const struct fake_kernel *fake_kernel_find(const char *name)
{
	for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
		if (strcmp(kernels[i].name, name) == 0)
			return &kernels[i];
	return NULL;
}
