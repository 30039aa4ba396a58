/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FUZZ_MUTATE_H
#define TESTS_FUZZ_MUTATE_H

#include "../fuzz.h"

/* What mutators share: libFuzzer's side of them, and numbers that follow from its seed. */
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t max, unsigned int seed);

static uint64_t mutate_state;

static inline void mutate_begin(unsigned int seed)
{
	mutate_state = (uint64_t)seed * 0x9E3779B97F4A7C15u + 1;
}

/* Below n. */
static inline uint32_t random_below(uint32_t n)
{
	mutate_state ^= mutate_state << 13;
	mutate_state ^= mutate_state >> 7;
	mutate_state ^= mutate_state << 17;
	return (uint32_t)((mutate_state >> 11) % n);
}

#endif
