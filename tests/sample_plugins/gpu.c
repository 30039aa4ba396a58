// SPDX-License-Identifier: Apache-2.0
/*
 * gpu_sink receives what ping_tensor_tx sends, in memory of any kind: looks at every byte, and logs
 * on which kind of device the tensor lay. gpu_source sends the same memory, of the device or of the
 * host, in each message, as fast as the edge takes it; for measurements.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>

#include <frag/frag.h>

enum { IN };

struct gpu_sink {
	bool use_gpu, look;
	int64_t received;
};

static const struct frag_port ports[] = {
	[IN] = {.name = "in", .dir = FRAG_IN, .type = "tensor"},
};
static const struct frag_param params[] = {
	FRAG_PARAM_BOOL(struct gpu_sink, use_gpu, true, .headline = "Makes GPU 0 ready"),
	FRAG_PARAM_BOOL(struct gpu_sink, look, true, .headline = "Looks at what it receives"),
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
	if (!sink->look)
		return 0;
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

enum { OUT };

struct gpu_source {
	int64_t bytes, tensors;
	bool on_gpu;
	struct frag_tensor *memory;
};

static const struct frag_port source_ports[] = {
	[OUT] = {.name = "out", .dir = FRAG_OUT, .type = "tensor"},
};
static const struct frag_param source_params[] = {
	FRAG_PARAM_I64(struct gpu_source, bytes, 1 << 20, .headline = "Of a tensor", .min = 1,
		       .max = 4294967296.0),
	FRAG_PARAM_I64(struct gpu_source, tensors, 1, .headline = "Of a message", .min = 1,
		       .max = 9),
	FRAG_PARAM_BOOL(struct gpu_source, on_gpu, true, .headline = "Memory of GPU 0"),
};

static int source_initialize(void *state, struct frag_op *op)
{
	struct gpu_source *source = state;
	const struct frag_device device = {source->on_gpu ? FRAG_DEVICE_CUDA : FRAG_DEVICE_CPU, 0};
	int r = frag_op_use_device(op, device);

	return r < 0 ? r
		     : frag_tensor_create_on(NULL, device,
					     (struct frag_dtype){FRAG_DTYPE_UINT, 8, 1}, 1,
					     &source->bytes, &source->memory);
}

static void source_fini(void *state, struct frag_op *op)
{
	frag_tensor_unref(((struct gpu_source *)state)->memory);
}

static void release(void *context)
{
	frag_tensor_unref(context);
}

/* Adds a tensor over the memory, which may not end before it does. */
static int add(const struct gpu_source *source, struct frag_message *message, const char *name)
{
	struct frag_tensor *memory = frag_tensor_ref(source->memory), *tensor;
	int r = frag_tensor_wrap(frag_tensor_dl(memory), release, memory, &tensor);

	if (r < 0) {
		frag_tensor_unref(memory);
		return r;
	}
	return frag_message_add_tensor(message, name, tensor);
}

static int source_compute(void *state, struct frag_tick *tick)
{
	const struct gpu_source *source = state;
	struct frag_message *message = frag_message_create();
	char name[] = "tensor1";
	int r = message == NULL ? -ENOMEM : 0;

	for (int64_t i = 0; i < source->tensors && r == 0; i++) {
		name[sizeof(name) - 2] = (char)('1' + i);
		r = add(source, message, name);
	}
	if (r < 0) {
		frag_message_unref(message);
		return r;
	}
	return frag_tick_emit(tick, OUT, message);
}

static const struct frag_op_type gpu_source_type = {
	FRAG_OP_TYPE_INIT,
	.name = "gpu_source",
	.state_size = sizeof(struct gpu_source),
	FRAG_PORTS(source_ports),
	FRAG_PARAMS(source_params),
	.initialize = source_initialize,
	.fini = source_fini,
	.compute = source_compute,
};

static const struct frag_op_type *const ops[] = {&gpu_sink_type, &gpu_source_type};
FRAG_PLUGIN(.name = "gpu", .version = "1.0.0", FRAG_OPS(ops));
