// SPDX-License-Identifier: Apache-2.0
#ifndef TEST_TRACE_RING_H
#define TEST_TRACE_RING_H

#include <stdlib.h>
#include <string.h>

#include <base/trace.h>

/* A ring of records as a host has it, and ticks in it. */

static inline struct fragi_trace_ring *ring_create(void)
{
	struct fragi_trace_ring *ring = aligned_alloc(64, sizeof(*ring));

	return ring != NULL ? memset(ring, 0, sizeof(*ring)) : NULL;
}

static inline void put_tick(struct fragi_trace_ring *ring, uint32_t op, uint32_t flows)
{
	uint64_t place = fragi_trace_take(ring, 1 + flows);

	for (uint32_t i = 0; i <= flows; i++) {
		struct fragi_trace_record record = {
			.begin = 100 + op,
			.value = i == 0 ? 200 + op : 300 + i,
			.object = (i == 0 ? op : 40 + i) & 0xffffff,
			.flows = i == 0 ? (uint8_t)flows : 0,
			.kind = i == 0 ? FRAGI_TRACE_TICK : FRAGI_TRACE_SENT,
			.count = (70000 + i) & 0xffffff,
		};

		fragi_trace_put(ring, place + i, &record);
	}
}

#endif
