/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_BENCH_GPU_PTX_H
#define TESTS_BENCH_GPU_PTX_H

/* The kernels of gpu_kernels.cu, for the one file of a program or library that includes this. */
#include <stddef.h>

#ifdef BENCH_PTX
__asm__(".pushsection .rodata\n"
	"bench_ptx_bytes:\n"
	".incbin \"" BENCH_PTX "\"\n"
	".byte 0\n"
	".popsection\n");
extern const char bench_ptx_bytes[] __attribute__((visibility("hidden")));
static const char *const bench_ptx = bench_ptx_bytes;
#else
static const char *const bench_ptx = NULL; /* built without nvcc */
#endif

#endif
