/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_STATE_SUM_H
#define TESTS_STATE_SUM_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * A sum over all that a core remembers, member by member, after each step of a life: a member that
 * is not set, or stays set, changes it though nobody is told yet. What depends on the machine or
 * its allocator (pointers, capacities) is left out. FRAG_TEST_STATE=FILE writes each member there.
 */
static uint64_t state_sum;
static FILE *state_shown;

static inline void state_begin(void)
{
	const char *path = getenv("FRAG_TEST_STATE");

	state_sum = 14695981039346656037ull;
	if (path != NULL && state_shown == NULL)
		state_shown = fopen(path, "w");
}

static inline void state_mix(const char *name, uint64_t value)
{
	state_sum = (state_sum ^ value) * 1099511628211ull;
	state_sum ^= state_sum >> 29;
	if (state_shown != NULL)
		fprintf(state_shown, "%s %" PRId64 "\n", name, (int64_t)value);
}

static inline void state_text(const char *name, const char *text)
{
	size_t length = text != NULL ? strlen(text) : 1;
	uint64_t sum = length, part;

	for (size_t at = 0; text != NULL && at < length; at += sizeof(part)) {
		part = 0;
		memcpy(&part, text + at, length - at < sizeof(part) ? length - at : sizeof(part));
		sum = (sum ^ part) * 1099511628211ull;
		sum ^= sum >> 29;
	}
	state_mix(name, sum);
}

#define STATE(member) state_mix(#member, (uint64_t)(int64_t)(member))
#define STATE_TEXT(member) state_text(#member, member)
#define STATE_HAS(member) state_mix("has " #member, (member) != NULL)

#endif
