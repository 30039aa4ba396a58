// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include "basic.h"

enum { IN, OUT };
static const struct frag_port forward_ports[] = {
	[IN] = {.name = "in", .dir = FRAG_IN, .headline = "any message"},
	[OUT] = {.name = "out", .dir = FRAG_OUT, .headline = "the same message"},
};

static int forward_compute(void *state, struct frag_tick *tick)
{
	const struct frag_message *message;
	int r = frag_tick_receive(tick, IN, &message);

	(void)state;
	if (r < 0)
		return r == -ENOMSG ? 0 : r;
	return frag_tick_emit(tick, OUT, frag_message_ref(message));
}

const struct frag_op_type basic_forward_type = {
	FRAG_OP_TYPE_INIT,
	.name = "forward",
	.headline = "Passes messages on as they are",
	FRAG_PORTS(forward_ports),
	.compute = forward_compute,
};
