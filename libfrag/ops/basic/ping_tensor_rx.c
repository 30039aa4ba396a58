// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "basic.h"

struct ping_tensor_rx {
	bool verify;
	int64_t received;
};

enum { IN };
static const struct frag_port ping_tensor_rx_ports[] = {
	[IN] = {.name = "in", .dir = FRAG_IN, .type = "tensor", .headline = "one or more tensors"},
};

static const struct frag_param ping_tensor_rx_params[] = {
	FRAG_PARAM_BOOL(
		struct ping_tensor_rx, verify, false,
		.headline = "Checks that every byte is what ping_tensor_tx sends",
		.description =
			"the number of the message modulo 256, so none may be dropped; tensors on a GPU are copied to memory of the host"),
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

static int find_wrong_byte(const struct ping_tensor_rx *rx, struct frag_op *op, const char *name,
			   const struct frag_tensor *tensor)
{
	const unsigned char *bytes = frag_tensor_data(tensor);
	unsigned char wanted = (unsigned char)rx->received;

	for (size_t i = 0; i < frag_tensor_size_bytes(tensor); i++)
		if (bytes[i] != wanted)
			return frag_op_fail(
				op, -EBADMSG,
				"byte %zu of tensor '%s' of message %" PRId64
				" is %d instead of %d; verify expects what ping_tensor_tx sends, without gaps",
				i, name, rx->received, bytes[i], wanted);
	return 0;
}

static int verify(const struct ping_tensor_rx *rx, struct frag_op *op, const char *name,
		  const struct frag_tensor *tensor)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_tensor *copy;
	int r = frag_tensor_copy(tensor, NULL, (struct frag_device){FRAG_DEVICE_CPU, 0}, &copy,
				 &err);

	if (r < 0)
		return frag_op_fail(op, r, "tensor '%s' of message %" PRId64 " cannot be read: %s",
				    name, rx->received,
				    err.text[0] != '\0' ? err.text : frag_strerror(r));
	r = find_wrong_byte(rx, op, name, copy);
	frag_tensor_unref(copy);
	return r;
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
	for (uint32_t i = 0; i < frag_message_tensor_count(message) && r == 0; i++) {
		const char *name;
		const struct frag_tensor *tensor = frag_message_tensor_at(message, i, &name);
		char shape[FRAG_TENSOR_NDIM_MAX * 22 + 1];

		shape_text(frag_tensor_dl(tensor), shape, sizeof(shape));
		frag_op_log(op, "%s received message %" PRId64 ": Tensor key: '%s', shape: (%s)",
			    frag_op_name(op), rx->received, name, shape);
		if (rx->verify)
			r = verify(rx, op, name, tensor);
	}
	return r;
}

const struct frag_op_type basic_ping_tensor_rx_type = {
	FRAG_OP_TYPE_INIT,
	.name = "ping_tensor_rx",
	.headline = "Prints the names and shapes of the tensors it receives",
	.state_size = sizeof(struct ping_tensor_rx),
	FRAG_PORTS(ping_tensor_rx_ports),
	FRAG_PARAMS(ping_tensor_rx_params),
	.compute = ping_tensor_rx_compute,
};
