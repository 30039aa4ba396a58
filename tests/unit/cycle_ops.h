/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_CYCLE_OPS_H
#define TESTS_UNIT_CYCLE_OPS_H

#include "rig_ops.h"

/* Operators of cycles: `free` is ticked without messages, `bound` by each. */
struct turner {
	int64_t slot;
};
static const struct frag_param turner_params[] = {FRAG_PARAM_I64(struct turner, slot, 0)};
#define FREE_INPUT (FRAG_PORT_NO_CONDITION | FRAG_PORT_OPTIONAL)
static struct frag_port free_ports[] = {
	{.name = "a", .dir = FRAG_IN, .type = "i64", .flags = FREE_INPUT},
	{.name = "b", .dir = FRAG_IN, .type = "i64", .flags = FREE_INPUT},
	{.name = "x", .dir = FRAG_OUT, .type = "i64"},
	{.name = "y", .dir = FRAG_OUT, .type = "i64"},
};
static struct frag_port bound_ports[] = {
	{.name = "a", .dir = FRAG_IN, .type = "i64"},
	{.name = "x", .dir = FRAG_OUT, .type = "i64"},
};

static int free_compute(void *state, struct frag_tick *tick)
{
	int64_t value;
	int r;

	atomic_fetch_add(&note_of(((const struct turner *)state)->slot)->ticks, 1);
	(void)frag_tick_receive_i64(tick, 0, &value);
	(void)frag_tick_receive_i64(tick, 1, &value);
	r = frag_tick_emit_i64(tick, 2, 1);
	return r < 0 ? r : frag_tick_emit_i64(tick, 3, 2);
}

static int bound_compute(void *state, struct frag_tick *tick)
{
	int64_t value;
	int r = frag_tick_receive_i64(tick, 0, &value);

	atomic_fetch_add(&note_of(((const struct turner *)state)->slot)->ticks, 1);
	return r < 0 ? r : frag_tick_emit_i64(tick, 1, value);
}

TEST_OP(free, .state_size = sizeof(struct turner), FRAG_PORTS(free_ports),
	FRAG_PARAMS(turner_params));
TEST_OP(bound, .state_size = sizeof(struct turner), FRAG_PORTS(bound_ports),
	FRAG_PARAMS(turner_params));
TEST_PLUGIN(cycles, &source_type, &sink_type, &free_type, &bound_type);

/*
 * With queues of one message an operator that is ticked without messages may fill a cycle while the
 * others are in the middle of their ticks, so that all wait for room.
 */
static inline void make_wide(uint32_t capacity)
{
	for (size_t i = 0; i < FRAG_COUNT_OF(free_ports); i++)
		if (free_ports[i].dir == FRAG_IN)
			free_ports[i].capacity = capacity;
	bound_ports[0].capacity = capacity;
}

#endif
