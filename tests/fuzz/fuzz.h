/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * One file a target. mk/fuzz.mk builds each twice: with libFuzzer, and (the two names below defined
 * to others) into tests/fuzz/test_corpus.c, which runs the corpora as plain tests.
 */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* What must hold whatever the input is. */
#define fuzz_check(condition)                                                                      \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__,          \
				#condition);                                                       \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

/* An input read from its start; beyond its end everything is 0. */
struct fuzz_input {
	const uint8_t *at, *end;
};

static inline size_t fuzz_left(const struct fuzz_input *input)
{
	return (size_t)(input->end - input->at);
}

static inline uint8_t fuzz_u8(struct fuzz_input *input)
{
	return input->at < input->end ? *input->at++ : 0;
}

static inline uint16_t fuzz_u16(struct fuzz_input *input)
{
	uint16_t low = fuzz_u8(input);

	return (uint16_t)(low | fuzz_u8(input) << 8);
}

static inline uint32_t fuzz_u32(struct fuzz_input *input)
{
	uint32_t low = fuzz_u16(input);

	return low | (uint32_t)fuzz_u16(input) << 16;
}

static inline uint64_t fuzz_u64(struct fuzz_input *input)
{
	uint64_t low = fuzz_u32(input);

	return low | (uint64_t)fuzz_u32(input) << 32;
}

/* The next at most `max` bytes. */
static inline const uint8_t *fuzz_bytes(struct fuzz_input *input, size_t max, size_t *out_size)
{
	const uint8_t *bytes = input->at;

	*out_size = fuzz_left(input) < max ? fuzz_left(input) : max;
	input->at += *out_size;
	return bytes;
}

/* The bytes as a text of its own size, so that reading beyond it is seen; free() it. */
static inline char *fuzz_text(const uint8_t *bytes, size_t size)
{
	char *text = malloc(size + 1);

	fuzz_check(text != NULL);
	if (size > 0)
		memcpy(text, bytes, size);
	text[size] = '\0';
	return text;
}

/* A copy of its own size, so that reading beyond it is seen; free() it. */
static inline uint8_t *fuzz_copy(const uint8_t *bytes, size_t size)
{
	uint8_t *copy = malloc(size > 0 ? size : 1);

	fuzz_check(copy != NULL);
	if (size > 0)
		memcpy(copy, bytes, size);
	return copy;
}

#endif
