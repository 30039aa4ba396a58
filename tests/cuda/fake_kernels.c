/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/plugin/gpu_kernels.h"
#include "fake_kernels.h"
#include "vision/convert_pixel.h"

static char *(*reach_memory)(unsigned long long address, size_t size);

/* Every pointer of a job has to lead to memory of the GPU, with all that the kernel touches. */
static void *reached(const void *address, size_t size)
{
	void *at = reach_memory((uintptr_t)address, size);

	if (at == NULL) {
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
	job->across_first = reached(job->across_first, columns * sizeof(int32_t));
	job->across_weights =
		reached(job->across_weights, columns * (size_t)job->across * sizeof(float));
	job->down_first = reached(job->down_first, rows * sizeof(int32_t));
	job->down_weights = reached(job->down_weights, rows * (size_t)job->down * sizeof(float));
}

#define RUN(name, float_input, channels, taps)                                                     \
	static void run_##name(const unsigned int grid[3], const unsigned int block[3],            \
			       void *argument,                                                     \
			       char *(*reach)(unsigned long long address, size_t size))            \
	{                                                                                          \
		struct convert_job job;                                                            \
                                                                                                   \
		memcpy(&job, argument, sizeof(job));                                               \
		reach_memory = reach;                                                              \
		reach_all(&job);                                                                   \
		for (unsigned int y = 0; y < grid[1] * block[1]; y++)                              \
			for (unsigned int x = 0; x < grid[0] * block[0]; x++)                      \
				convert_pixels(&job, (int)x, (int)y *CONVERT_ROWS, float_input,    \
					       channels, taps);                                    \
	}
CONVERT_KERNELS(RUN)

static void run_bench_copy(const unsigned int grid[3], const unsigned int block[3], void *argument,
			   char *(*reach)(unsigned long long address, size_t size))
{
	struct bench_job job;

	(void)grid;
	(void)block;
	memcpy(&job, argument, sizeof(job));
	reach_memory = reach;
	memcpy(reached(job.out, job.count * 16), reached(job.in, job.count * 16), job.count * 16);
}

static void run_bench_touch(const unsigned int grid[3], const unsigned int block[3], void *argument,
			    char *(*reach)(unsigned long long address, size_t size))
{
	struct bench_job job;

	(void)grid;
	(void)block;
	memcpy(&job, argument, sizeof(job));
	reach_memory = reach;
	(void)reached(job.in, job.count * 16);
}

#define ROW(name, float_input, channels, taps) {#name, sizeof(struct convert_job), run_##name},
static const struct fake_kernel kernels[] = {
	CONVERT_KERNELS(ROW){"bench_copy", sizeof(struct bench_job), run_bench_copy},
	{"bench_touch", sizeof(struct bench_job), run_bench_touch},
};

const struct fake_kernel *fake_kernel_find(const char *name)
{
	for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
		if (strcmp(kernels[i].name, name) == 0)
			return &kernels[i];
	return NULL;
}
