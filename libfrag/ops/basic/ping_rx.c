// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <inttypes.h>

#include "basic.h"

enum { IN };
static const struct frag_port ping_rx_ports[] = {
	[IN] = {.name = "in", .dir = FRAG_IN, .type = "i64", .headline = "what to print"},
};

static int ping_rx_compute(void *state, struct frag_tick *tick)
{
	int64_t value;
	int r = frag_tick_receive_i64(tick, IN, &value);

	(void)state;
	if (r < 0)
		return r == -ENOMSG ? 0 : r;
	frag_op_log(frag_tick_op(tick), "Rx message value: %" PRId64, value);
	return 0;
}

const struct frag_op_type basic_ping_rx_type = {
	FRAG_OP_TYPE_INIT,
	.name = "ping_rx",
	.headline = "Prints the numbers it receives",
	FRAG_PORTS(ping_rx_ports),
	.compute = ping_rx_compute,
};
