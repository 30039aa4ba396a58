/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "basic.h"

struct ping_tensor_rx {
	int64_t received;
};

enum { IN };
static const struct frag_port ping_tensor_rx_ports[] = {
	[IN] = {.name = "in", .dir = FRAG_IN, .type = "tensor", .headline = "one or more tensors"},
};

/* Writes a shape as "3, 4, 5". */
static void shape_text(const struct frag_dltensor *dl, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (int32_t i = 0; i < dl->ndim && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s%" PRId64, i > 0 ? ", " : "",
					 dl->shape[i]);
}

static int ping_tensor_rx_compute(void *state, struct frag_tick *tick)
{
	struct ping_tensor_rx *rx = state;
	struct frag_op *op = frag_tick_op(tick);
	const struct frag_message *message;
	int r = frag_tick_receive(tick, IN, &message);

	if (r < 0)
		return r == -ENOMSG ? 0 : r;
	rx->received++;
	for (uint32_t i = 0; i < frag_message_tensor_count(message); i++) {
		const char *name;
		const struct frag_tensor *tensor = frag_message_tensor_at(message, i, &name);
		char shape[FRAG_TENSOR_NDIM_MAX * 22 + 1];

		shape_text(frag_tensor_dl(tensor), shape, sizeof(shape));
		frag_op_log(op, "%s received message %" PRId64 ": Tensor key: '%s', shape: (%s)",
			    frag_op_name(op), rx->received, name, shape);
	}
	return 0;
}

const struct frag_op_type basic_ping_tensor_rx_type = {
	FRAG_OP_TYPE_INIT,
	.name = "ping_tensor_rx",
	.headline = "Prints the names and shapes of the tensors it receives",
	.state_size = sizeof(struct ping_tensor_rx),
	FRAG_PORTS(ping_tensor_rx_ports),
	.compute = ping_tensor_rx_compute,
};
