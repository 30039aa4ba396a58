/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_STAMP_OPS_H
#define TESTS_UNIT_STAMP_OPS_H

/* Operators that send messages with stamps, and note which ones came together. */
#include <data/message.h>

#include "rig_ops.h"

/*
 * Sends its numbers, one a tick, each acquired `ages` seconds ago, or where those are left out at
 * the times `at` of a clock of its own.
 */
struct stamper {
	struct frag_i64_list values, ages, at;
	int64_t clock;
	bool foreign; /* as if another machine had set the times */
	uint64_t next;
};
static const struct frag_port stamper_ports[] = {{.name = "out", .dir = FRAG_OUT, .type = "i64"}};
static const struct frag_param stamper_params[] = {
	FRAG_PARAM_I64_LIST(struct stamper, values, NULL),
	FRAG_PARAM_I64_LIST(struct stamper, ages, NULL),
	FRAG_PARAM_I64_LIST(struct stamper, at, NULL),
	FRAG_PARAM_I64(struct stamper, clock, FRAG_CLOCK_MONOTONIC),
	FRAG_PARAM_BOOL(struct stamper, foreign, false),
};

static int64_t clock_ns(int64_t clock)
{
	struct timespec t;

	clock_gettime(clock == FRAG_CLOCK_UNIX  ? CLOCK_REALTIME
		      : clock == FRAG_CLOCK_TAI ? CLOCK_TAI
						: CLOCK_MONOTONIC,
		      &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int stamper_compute(void *state, struct frag_tick *tick)
{
	struct stamper *s = state;
	struct frag_message *message;
	uint64_t i = s->next++;

	if (i >= s->values.count)
		return FRAG_DONE;
	message = frag_message_create();
	frag_message_set_value(message, &frag_type_i64, &s->values.items[i], sizeof(int64_t), NULL);
	if (i < s->ages.count)
		frag_message_set_acquisition(message,
					     clock_ns(s->clock) - s->ages.items[i] * 1000000000,
					     (uint32_t)s->clock);
	else if (i < s->at.count)
		frag_message_set_acquisition(message, s->at.items[i], (uint32_t)s->clock);
	if (s->foreign)
		message->stamps |= FRAGI_STAMP_FOREIGN;
	frag_tick_emit(tick, 0, message);
	return s->next == s->values.count ? FRAG_DONE : 0;
}

TEST_OP(stamper, FRAG_PORTS(stamper_ports), FRAG_PARAMS(stamper_params),
	.state_size = sizeof(struct stamper));

/* Notes what each tick gets: 1000 * that of a + that of b; nothing is 999. */
struct pair {
	int64_t ticks;
};
static const struct frag_param pair_params[] = {FRAG_PARAM_I64(struct pair, ticks, 0)};
static const struct frag_port pair_ports[] = {
	{.name = "a", .dir = FRAG_IN, .type = "i64"},
	{.name = "b", .dir = FRAG_IN, .type = "i64", .flags = FRAG_PORT_OPTIONAL},
	{.name = "text", .dir = FRAG_IN, .type = "string", .flags = FRAG_PORT_OPTIONAL},
	{.name = "out", .dir = FRAG_OUT, .type = "i64", .flags = FRAG_PORT_OPTIONAL},
};

static int pair_compute(void *state, struct frag_tick *tick)
{
	struct pair *s = state;
	int64_t a = 999, b = 999, more;

	frag_tick_receive_i64(tick, 0, &a);
	frag_tick_receive_i64(tick, 1, &b);
	if (frag_tick_receive_i64(tick, 0, &more) != -ENOMSG ||
	    frag_tick_receive_i64(tick, 1, &more) != -ENOMSG)
		return -EPROTO; /* a tick gets one message of each */
	note_add(note_of(0), 1000 * a + b);
	return --s->ticks == 0 ? FRAG_DONE : 0;
}

TEST_OP(pair, FRAG_PORTS(pair_ports), FRAG_PARAMS(pair_params), .state_size = sizeof(struct pair));

/* Notes the sum of 10^i * message i of a multi-receiver; 0: it has none. */
static const struct frag_port many_ports[] = {
	{.name = "in", .dir = FRAG_IN, .type = "i64", .flags = FRAG_PORT_MULTI}};

struct many {
	int64_t slot;
};
static const struct frag_param many_params[] = {FRAG_PARAM_I64(struct many, slot, 0)};

static int many_compute(void *state, struct frag_tick *tick)
{
	const struct many *s = state;
	const int64_t *const *values;
	int count = frag_tick_receive_all_i64(tick, 0, &values);
	int64_t sum = 0;

	for (int i = 0; i < count; i++)
		sum = 10 * sum + (values[i] != NULL ? *values[i] : 0);
	note_add(note_of(s->slot), sum);
	return count < 0 ? count : 0;
}

TEST_OP(many, FRAG_PORTS(many_ports), FRAG_PARAMS(many_params), .state_size = sizeof(struct many));

#endif
