/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INVERT_KERNEL_H
#define INVERT_KERNEL_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Launches out[i] = 255 - in[i] on a cudaStream_t, and does not wait for it. Returns NULL; else
 * CUDA's text: it was not launched.
 */
const char *invert_launch(const void *in, void *out, size_t size, void *stream);

#ifdef __cplusplus
}
#endif

#endif
