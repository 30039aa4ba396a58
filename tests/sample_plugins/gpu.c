/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receives what ping_tensor_tx sends, in memory of any kind: looks at every byte, and logs on which
 * kind of device the tensor lay.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>

#include <frag/frag.h>

enum { IN };

struct gpu_sink {
	bool use_gpu;
	int64_t received;
};

static const struct frag_port ports[] = {
	[IN] = {.name = "in", .dir = FRAG_IN, .type = "tensor"},
};
static const struct frag_param params[] = {
	FRAG_PARAM_BOOL(struct gpu_sink, use_gpu, true, .headline = "Makes GPU 0 ready"),
};

static int initialize(void *state, struct frag_op *op)
{
	const struct gpu_sink *sink = state;

	return sink->use_gpu ? frag_op_use_device(op, (struct frag_device){FRAG_DEVICE_CUDA, 0})
			     : 0;
}

static int look_at(const struct gpu_sink *sink, struct frag_op *op,
		   const struct frag_tensor *tensor, int32_t device)
{
	const unsigned char *at = frag_tensor_data(tensor);

	for (size_t i = 0; i < frag_tensor_size_bytes(tensor); i++)
		if (at[i] != (unsigned char)sink->received)
			return frag_op_fail(op, -EBADMSG, "byte %zu of tensor %" PRId64 " is %d", i,
					    sink->received, at[i]);
	frag_op_log(op, "tensor %" PRId64 " is whole, on device %d", sink->received, (int)device);
	return 0;
}

static int compute(void *state, struct frag_tick *tick)
{
	struct gpu_sink *sink = state;
	struct frag_op *op = frag_tick_op(tick);
	struct frag_err err = FRAG_ERR_INIT;
	const struct frag_message *message;
	const struct frag_tensor *tensor;
	struct frag_tensor *copy;
	int r = frag_tick_receive(tick, IN, &message);

	if (r < 0)
		return r == -ENOMSG ? 0 : r;
	sink->received++;
	tensor = frag_message_tensor_at(message, 0, NULL);
	r = frag_tensor_copy(tensor, NULL, (struct frag_device){FRAG_DEVICE_CPU, 0}, &copy, &err);
	if (r < 0)
		return frag_op_fail(op, r, "%s", err.text);
	r = look_at(sink, op, copy, frag_tensor_dl(tensor)->device.type);
	frag_tensor_unref(copy);
	return r;
}

static const struct frag_op_type gpu_sink_type = {
	FRAG_OP_TYPE_INIT,  .name = "gpu_sink",  .state_size = sizeof(struct gpu_sink),
	FRAG_PORTS(ports),  FRAG_PARAMS(params), .initialize = initialize,
	.compute = compute,
};

static const struct frag_op_type *const ops[] = {&gpu_sink_type};
FRAG_PLUGIN(.name = "gpu", .version = "1.0.0", FRAG_OPS(ops));
