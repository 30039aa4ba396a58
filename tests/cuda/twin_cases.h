/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CUDA_TWIN_CASES_H
#define TESTS_CUDA_TWIN_CASES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Each runs an operator on the CPU and on GPU 0, with parameters and tensors chosen by a seed, and
 * compares what it emits bit for bit; any NaN equals any other. GPU 0 was made ready.
 * Returns whether all is the same; why: receives the case and the first difference, or what failed.
 */
typedef bool (*twin_case_fn)(uint64_t seed, char *why, size_t size);

/* The operators that have two bodies. NULL ends the list. */
struct twin_cases {
	const char *name;
	twin_case_fn run;
};
extern const struct twin_cases twin_cases[];

#endif
