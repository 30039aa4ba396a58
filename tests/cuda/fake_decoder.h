/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FAKE_DECODER_H
#define FAKE_DECODER_H

#include <stddef.h>
#include <stdint.h>

/* The pictures of the decoder of tests: two neighbours differ in each direction. */
static inline uint8_t fake_decoder_luma(uint8_t seed, size_t x, size_t y)
{
	return (uint8_t)(seed + 3 * x + 5 * y);
}

static inline uint8_t fake_decoder_chroma(uint8_t seed, size_t x, size_t y)
{
	return (uint8_t)(seed + 7 * x + 11 * y + 128);
}

#endif
