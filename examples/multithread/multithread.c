// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <time.h>

#include <frag/frag.h>

/* Passes a number on after a while, in which it keeps its thread. */
struct delay {
	int64_t delay, add;
};

enum { IN, OUT };
static const struct frag_port delay_ports[] = {
	[IN] = {.name = "in", .dir = FRAG_IN, .type = "i64"},
	[OUT] = {.name = "out", .dir = FRAG_OUT, .type = "i64"},
};
static const struct frag_param delay_params[] = {
	FRAG_PARAM_DURATION(struct delay, delay, 50000000, .headline = "How long a tick takes",
			    .min = 0, .max = 1e10),
	FRAG_PARAM_I64(struct delay, add, 0, .headline = "Added to the number"),
};

static int delay_compute(void *state, struct frag_tick *tick)
{
	const struct delay *d = state;
	const struct timespec t = {(time_t)(d->delay / 1000000000), (long)(d->delay % 1000000000)};
	int64_t value;
	int r = frag_tick_receive_i64(tick, IN, &value);

	if (r < 0)
		return r;
	nanosleep(&t, NULL);
	return frag_tick_emit_i64(tick, OUT, value + d->add);
}

static const struct frag_op_type delay_type = {
	FRAG_OP_TYPE_INIT,
	.name = "delay",
	.headline = "Passes a number on after a while",
	.state_size = sizeof(struct delay),
	FRAG_PORTS(delay_ports),
	FRAG_PARAMS(delay_params),
	.compute = delay_compute,
};

/* Prints the numbers of all flows in one line, in the order of the flows. */
enum { RECEIVERS };
static const struct frag_port rx_ports[] = {
	[RECEIVERS] = {.name = "receivers",
		       .dir = FRAG_IN,
		       .type = "i64",
		       .flags = FRAG_PORT_MULTI},
};

static int rx_compute(void *state, struct frag_tick *tick)
{
	const int64_t *const *values;
	int count = frag_tick_receive_all_i64(tick, RECEIVERS, &values);
	char text[128] = "";
	int length = 0;

	(void)state;
	for (int i = 0; i < count && length < (int)sizeof(text) - 24; i++)
		if (values[i] != NULL)
			length += sprintf(text + length, " %lld", (long long)*values[i]);
	if (count > 0)
		frag_op_log(frag_tick_op(tick), "received%s", text);
	return count < 0 ? count : 0;
}

static const struct frag_op_type rx_type = {
	FRAG_OP_TYPE_INIT,    .name = "delay_rx",    .headline = "Prints the numbers of all flows",
	FRAG_PORTS(rx_ports), .compute = rx_compute,
};

static const struct frag_op_type *const ops[] = {&delay_type, &rx_type};
FRAG_PLUGIN(.name = "multithread", .version = "1.0.0", FRAG_OPS(ops));
