/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_DRAW_H
#define TESTS_UNIT_DRAW_H

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Draws that are the same on every machine, from a seed. */
static uint64_t draw_state;

static inline void draw_from(uint64_t seed)
{
	draw_state = seed * UINT64_C(0x9E3779B97F4A7C15) | 1;
}

static inline uint32_t draw(uint32_t below)
{
	draw_state ^= draw_state << 13;
	draw_state ^= draw_state >> 7;
	draw_state ^= draw_state << 17;
	return (uint32_t)((draw_state >> 11) % below);
}

static inline bool draw_percent(uint32_t percent)
{
	return draw(100) < percent;
}

#define DRAW_OF(list) ((list)[draw((uint32_t)(sizeof(list) / sizeof((list)[0])))])

/* What may happen next: tries it, and returns whether it made sense. */
struct drawn_event {
	uint32_t weight;
	bool (*happens)(void);
	bool is_always; /* in each life as often as its weight says */
};
#define DRAWN_EVENTS_MAX 32

/* Each life has events that are often in it, and some that never happen: so rare ones meet. */
static inline void draw_weights(const struct drawn_event *events, size_t count, uint32_t *weights)
{
	static const uint32_t times[] = {0, 1, 1, 4};

	for (size_t i = 0; i < count; i++)
		weights[i] = events[i].weight * (events[i].is_always ? 1 : DRAW_OF(times));
}

static inline void draw_event(const struct drawn_event *events, const uint32_t *weights,
			      size_t count)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += weights[i];
	for (;;) {
		uint32_t at = draw(sum);
		size_t i = 0;

		for (; at >= weights[i]; i++)
			at -= weights[i];
		if (events[i].happens())
			return;
	}
}

/*
 * The text of a drawn life, which is freed: out gets it, or what tells it from another one, its
 * number of lines and a sum over them. FRAG_TEST_LIFE=57 prints that life, FRAG_TEST_LIFE=all each.
 */
static inline void draw_life_ends(FILE *out, unsigned int life, char *text, bool is_shown)
{
	const char *wanted = getenv("FRAG_TEST_LIFE");
	uint64_t sum = UINT64_C(14695981039346656037);
	int lines = 0;

	for (const char *at = text; *at != '\0'; at++) {
		sum = (sum ^ (uint8_t)*at) * UINT64_C(1099511628211);
		lines += *at == '\n';
	}
	if (is_shown)
		fputs(text, out);
	else
		fprintf(out, "life %u: %d lines, sum %016" PRIx64 "\n", life, lines, sum);
	if (wanted != NULL && (atoi(wanted) == 0 || atoi(wanted) == (int)life))
		fputs(text, stderr);
	free(text);
}

#endif
