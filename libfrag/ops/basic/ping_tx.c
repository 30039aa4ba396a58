// SPDX-License-Identifier: Apache-2.0
#include "basic.h"

struct ping_tx {
	int64_t sent;
};

enum { OUT };
static const struct frag_port ping_tx_ports[] = {
	[OUT] = {.name = "out", .dir = FRAG_OUT, .type = "i64", .headline = "1, 2, 3 ..."},
};

static int ping_tx_compute(void *state, struct frag_tick *tick)
{
	struct ping_tx *tx = state;

	return frag_tick_emit_i64(tick, OUT, ++tx->sent);
}

const struct frag_op_type basic_ping_tx_type = {
	FRAG_OP_TYPE_INIT,
	.name = "ping_tx",
	.headline = "Sends the numbers 1, 2, 3 ...",
	.description = "One number a tick. A count condition on it ends the application.",
	.state_size = sizeof(struct ping_tx),
	FRAG_PORTS(ping_tx_ports),
	.compute = ping_tx_compute,
};
