/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPU_PTX_H
#define GPU_PTX_H

/*
 * Holds the PTX of a library's kernels (kernels.cu) as `const char *const NAME`, which is NULL
 * where nvcc was not found at build time. mk/cuda.mk sets FRAG_PTX for the file that uses this.
 */
#ifdef FRAG_PTX
#define GPU_PTX(name)                                                                              \
	__asm__(".pushsection .rodata\n" #name "_bytes:\n"                                         \
		".incbin \"" FRAG_PTX "\"\n"                                                       \
		".byte 0\n"                                                                        \
		".popsection\n");                                                                  \
	extern const char name##_bytes[] __attribute__((visibility("hidden")));                    \
	const char *const name = name##_bytes
#else
#define GPU_PTX(name) const char *const name = NULL
#endif

#endif
