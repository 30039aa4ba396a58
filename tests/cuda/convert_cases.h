/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CUDA_CONVERT_CASES_H
#define TESTS_CUDA_CONVERT_CASES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Runs format_converter on the CPU and on GPU 0, with parameters and a frame chosen by a seed, and
 * compares the results bit for bit; any NaN equals any other. The frame lies on the GPU, or the
 * pool does. GPU 0 was made ready.
 * Returns whether they are the same; why: receives the case and the first difference, or what
 * failed.
 */
bool convert_case(uint64_t seed, char *why, size_t size);

#endif
