// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <frag/frag.h>

#include "invert_kernel.h"

static const struct frag_device gpu = {FRAG_DEVICE_CUDA, 0}, cpu = {FRAG_DEVICE_CPU, 0};

/* Inverts tensors of u8 on the GPU. It waits for nothing: messages travel before their kernels. */
struct invert {
	struct frag_resource *pool;
};

enum { IN, OUT };
static const struct frag_port invert_ports[] = {
	[IN] = {.name = "in", .dir = FRAG_IN, .type = "tensor"},
	[OUT] = {.name = "out", .dir = FRAG_OUT, .type = "tensor"},
};
static const struct frag_param invert_params[] = {
	FRAG_PARAM_RESOURCE(struct invert, pool, NULL, .headline = "Allocator of the output"),
};

static int invert_initialize(void *state, struct frag_op *op)
{
	(void)state;
	return frag_op_use_stream(op, NULL, gpu);
}

static int invert_compute(void *state, struct frag_tick *tick)
{
	const struct invert *s = state;
	struct frag_op *op = frag_tick_op(tick);
	const struct frag_message *message;
	const struct frag_tensor *in;
	const struct frag_dltensor *dl;
	struct frag_tensor *out;
	const char *why;
	int r = frag_tick_receive(tick, IN, &message);

	if (r < 0)
		return r;
	in = frag_message_tensor_at(message, 0, NULL);
	dl = frag_tensor_dl(in);
	if (dl->device.type != FRAG_DEVICE_CUDA)
		return frag_op_fail(op, -EINVAL, "the tensor lies in memory of the host");
	r = frag_tensor_create_on(s->pool, gpu, dl->dtype, dl->ndim, dl->shape, &out);
	if (r < 0)
		return frag_op_fail(op, r, "no tensor for the output: %s", frag_strerror(r));
	why = invert_launch(frag_tensor_data(in), frag_tensor_writable(out),
			    frag_tensor_size_bytes(in), frag_tick_stream(tick));
	if (why == NULL)
		return frag_tick_emit_tensor(tick, OUT, "", out);
	frag_tensor_unref(out);
	return frag_op_fail(op, -EIO, "the kernel was not launched: %s", why);
}

const struct frag_op_type invert_type = {
	FRAG_OP_TYPE_INIT,
	.name = "invert",
	.headline = "Inverts tensors of u8 on a GPU",
	.state_size = sizeof(struct invert),
	FRAG_PORTS(invert_ports),
	FRAG_PARAMS(invert_params),
	.initialize = invert_initialize,
	.compute = invert_compute,
};

/* Prints the mean of tensors of u8, wherever they lie. */
static const struct frag_port mean_ports[] = {{.name = "in", .dir = FRAG_IN, .type = "tensor"}};

static int mean_compute(void *state, struct frag_tick *tick)
{
	struct frag_op *op = frag_tick_op(tick);
	const struct frag_message *message;
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_tensor *host;
	uint64_t sum = 0;
	size_t size;
	int r = frag_tick_receive(tick, 0, &message);

	(void)state;
	if (r < 0)
		return r;
	r = frag_tensor_copy(frag_message_tensor_at(message, 0, NULL), NULL, cpu, &host, &err);
	if (r < 0)
		return frag_op_fail(op, r, "%s", err.text);
	size = frag_tensor_size_bytes(host);
	for (size_t i = 0; i < size; i++)
		sum += ((const uint8_t *)frag_tensor_data(host))[i];
	frag_op_log(op, "mean %g", size > 0 ? (double)sum / (double)size : 0.0);
	frag_tensor_unref(host);
	return 0;
}

const struct frag_op_type mean_type = {
	FRAG_OP_TYPE_INIT,
	.name = "mean",
	.headline = "Prints the mean of tensors of u8",
	FRAG_PORTS(mean_ports),
	.compute = mean_compute,
};

static const struct frag_op_type *const ops[] = {&invert_type, &mean_type};
FRAG_PLUGIN(.name = "invert", .version = "1.0.0", FRAG_OPS(ops));
