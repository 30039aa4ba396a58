/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CUDA_FAKE_KERNELS_H
#define TESTS_CUDA_FAKE_KERNELS_H

#include <stddef.h>

/* What the driver of tests runs in place of a kernel: the same code, compiled for the CPU. */
struct fake_kernel {
	const char *name;
	size_t argument_bytes; /* of its one parameter */
	/*
	 * argument: a copy of the parameter
	 * reach: where memory of the GPU can be read and written; NULL: that is not allocated
	 */
	void (*run)(const unsigned int grid[3], const unsigned int block[3], void *argument,
		    char *(*reach)(unsigned long long address, size_t size));
};

/* Returns NULL when there is none. */
const struct fake_kernel *fake_kernel_find(const char *name);

#endif
