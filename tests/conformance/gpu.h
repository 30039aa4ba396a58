/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CONFORMANCE_GPU_H
#define TESTS_CONFORMANCE_GPU_H

#include <criterion/criterion.h>
#include <stdlib.h>

#include <cuda/load.h>
#include <type/cuda.h>

/* A GPU for tests of edges: the driver of tests, and what it lets tests do. */
#define GPU ((struct frag_device){FRAG_DEVICE_CUDA, 0})

/*
 * For the dead_ns of a pair: no beat comes during a test, so what is not reported is not noticed.
 */
#define NO_BEAT_NS ((int64_t)100000 * 1000000000)

/* Loads the driver of tests, and makes GPU 0 ready in this process. */
static inline void gpu_open(void)
{
	const struct fragi_cuda_ops *ops;
	struct frag_err err = FRAG_ERR_INIT;

	load_fake();
	cr_assert_eq(fragi_cuda_use(GPU, &ops, &err), 0, "%s", err.text);
}

static inline void *bytes_filled(size_t bytes, uint8_t value)
{
	void *memory = malloc(bytes);

	cr_assert_not_null(memory);
	return memset(memory, value, bytes);
}

/* Fills memory of the GPU with a byte; whether it holds that byte everywhere. */
static inline void gpu_fill(void *memory, size_t bytes, uint8_t value)
{
	void *from = bytes_filled(bytes, value);

	cr_assert_eq(fake.poke((unsigned long long)(uintptr_t)memory, from, bytes), 0);
	free(from);
}

static inline bool gpu_holds(const void *memory, size_t bytes, uint8_t value)
{
	void *want = bytes_filled(bytes, value), *have = bytes_filled(bytes, (uint8_t)~value);
	bool same = fake.peek((unsigned long long)(uintptr_t)memory, have, bytes) == 0 &&
		    memcmp(want, have, bytes) == 0;

	free(want);
	free(have);
	return same;
}

#endif
