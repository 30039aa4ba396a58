/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_BENCH_GPU_KERNELS_H
#define TESTS_BENCH_GPU_KERNELS_H

#include <stdint.h>

/* The parameter of both kernels: pieces of 16 bytes. */
struct bench_job {
	const void *in;
	void *out;
	uint64_t count;
};

#define BENCH_BLOCKS 1056 /* 8 for each multiprocessor of an H100 */
#define BENCH_THREADS 256

#endif
