/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CUDA_GPU_CHECK_H
#define TESTS_CUDA_GPU_CHECK_H

#include <stdbool.h>

/* Prints a line for a check; why: of one that failed. Returns ok. */
bool check(bool ok, const char *what, const char *why);
double now_us(void);

/* gpu_check_streams.c: streams and events of operators, and what they cost. */
void check_streams(void);

#endif
