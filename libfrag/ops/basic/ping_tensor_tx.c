// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "basic.h"

#define GPUS_MAX 64 /* that are tried */

struct ping_tensor_tx {
	struct frag_resource *allocator;
	const char *storage_type;
	int64_t batch_size, rows, columns, channels;
	const char *data_type;
	const char *tensor_name;

	struct frag_dtype dtype;
	int32_t ndim;
	int64_t shape[4];
	struct frag_device device;
	struct frag_tensor *staged; /* in host memory, for a device that the CPU cannot write to */
	int64_t sent;
};

enum { OUT };
static const struct frag_port ping_tensor_tx_ports[] = {
	[OUT] = {.name = "out",
		 .dir = FRAG_OUT,
		 .type = "tensor",
		 .headline = "one tensor a message"},
};

/* The type names that Holoscan's PingTensorTxOp accepts. */
static const struct {
	const char *name;
	struct frag_dtype dtype;
} data_types[] = {
	{"int8_t", {FRAG_DTYPE_INT, 8, 1}},
	{"int16_t", {FRAG_DTYPE_INT, 16, 1}},
	{"int32_t", {FRAG_DTYPE_INT, 32, 1}},
	{"int64_t", {FRAG_DTYPE_INT, 64, 1}},
	{"uint8_t", {FRAG_DTYPE_UINT, 8, 1}},
	{"uint16_t", {FRAG_DTYPE_UINT, 16, 1}},
	{"uint32_t", {FRAG_DTYPE_UINT, 32, 1}},
	{"uint64_t", {FRAG_DTYPE_UINT, 64, 1}},
	{"float", {FRAG_DTYPE_FLOAT, 32, 1}},
	{"double", {FRAG_DTYPE_FLOAT, 64, 1}},
	{"complex<float>", {FRAG_DTYPE_COMPLEX, 64, 1}},
	{"complex<double>", {FRAG_DTYPE_COMPLEX, 128, 1}},
};
static const char *const data_type_choices[] = {
	"int8_t",         "int16_t",         "int32_t",  "int64_t", "uint8_t",
	"uint16_t",       "uint32_t",        "uint64_t", "float",   "double",
	"complex<float>", "complex<double>", NULL,
};
static const char *const storage_choices[] = {"system", "host", "device", "cuda_managed", NULL};
static const int32_t storage_devices[] = {FRAG_DEVICE_CPU, FRAG_DEVICE_CUDA_HOST, FRAG_DEVICE_CUDA,
					  FRAG_DEVICE_CUDA_MANAGED};

#define DIMENSION_MAX 2147483647.0

static const struct frag_param ping_tensor_tx_params[] = {
	FRAG_PARAM_RESOURCE(struct ping_tensor_tx, allocator, NULL,
			    .headline = "Allocator of the tensors", .flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_STRING(
		struct ping_tensor_tx, storage_type, "system", .headline = "Where the tensors lie",
		.description =
			"host is pinned memory, device that of the allocator's GPU, or of GPU 0; all but system need a GPU",
		.choices = storage_choices),
	FRAG_PARAM_I64(struct ping_tensor_tx, batch_size, 0,
		       .headline = "Batch size; 0: no such dimension", .min = 0,
		       .max = DIMENSION_MAX),
	FRAG_PARAM_I64(struct ping_tensor_tx, rows, 32, .headline = "Rows", .min = 1,
		       .max = DIMENSION_MAX),
	FRAG_PARAM_I64(struct ping_tensor_tx, columns, 64,
		       .headline = "Columns; 0: no such dimension", .min = 0, .max = DIMENSION_MAX),
	FRAG_PARAM_I64(struct ping_tensor_tx, channels, 0,
		       .headline = "Channels; 0: no such dimension", .min = 0,
		       .max = DIMENSION_MAX),
	FRAG_PARAM_STRING(struct ping_tensor_tx, data_type, "uint8_t",
			  .headline = "Type of the elements", .choices = data_type_choices),
	FRAG_PARAM_STRING(struct ping_tensor_tx, tensor_name, "tensor",
			  .headline = "Name of the tensor"),
};

static int ping_tensor_tx_setup(void *state, struct frag_op *op)
{
	struct ping_tensor_tx *tx = state;

	(void)op;
	for (size_t i = 0; storage_choices[i] != NULL; i++)
		if (strcmp(tx->storage_type, storage_choices[i]) == 0)
			tx->device.type = storage_devices[i];
	for (size_t i = 0; i < FRAG_COUNT_OF(data_types); i++) {
		if (strcmp(tx->data_type, data_types[i].name) == 0)
			tx->dtype = data_types[i].dtype;
	}
	tx->ndim = 0;
	if (tx->batch_size > 0)
		tx->shape[tx->ndim++] = tx->batch_size;
	tx->shape[tx->ndim++] = tx->rows;
	if (tx->columns > 0)
		tx->shape[tx->ndim++] = tx->columns;
	if (tx->channels > 0)
		tx->shape[tx->ndim++] = tx->channels;
	return 0;
}

/* The GPU that the allocator has memory of, which it has opened. */
static int32_t gpu_of(const struct ping_tensor_tx *tx)
{
	const struct frag_dtype u8 = {FRAG_DTYPE_UINT, 8, 1};
	struct frag_tensor *tensor = NULL;
	const int64_t one = 1;
	int32_t id = 0;
	int r = -EXDEV;

	for (; tx->allocator != NULL && r == -EXDEV && id < GPUS_MAX; id++)
		r = frag_tensor_create_on(tx->allocator, (struct frag_device){FRAG_DEVICE_CUDA, id},
					  u8, 1, &one, &tensor);
	if (r < 0)
		return 0;
	frag_tensor_unref(tensor);
	return id - 1;
}

static int ping_tensor_tx_initialize(void *state, struct frag_op *op)
{
	struct ping_tensor_tx *tx = state;

	if (tx->device.type == FRAG_DEVICE_CUDA)
		tx->device.id = gpu_of(tx);
	return frag_op_use_device(op, tx->device);
}

/*
 * Every byte of the n-th tensor is n modulo 256: receivers can check it, and nothing that the
 * memory held before is sent.
 */
static void fill(const struct ping_tensor_tx *tx, struct frag_tensor *tensor)
{
	memset(frag_tensor_writable(tensor), (int)((tx->sent + 1) & 0xff),
	       frag_tensor_size_bytes(tensor));
}

static int make_on_gpu(struct ping_tensor_tx *tx, struct frag_tensor **out, struct frag_err *err)
{
	int r = tx->staged == NULL
			? frag_tensor_create(NULL, tx->dtype, tx->ndim, tx->shape, &tx->staged)
			: 0;

	if (r < 0)
		return r;
	fill(tx, tx->staged);
	return frag_tensor_copy(tx->staged, tx->allocator, tx->device, out, err);
}

static int make(struct ping_tensor_tx *tx, struct frag_tensor **out, struct frag_err *err)
{
	int r;

	if (tx->device.type == FRAG_DEVICE_CUDA)
		return make_on_gpu(tx, out, err);
	r = frag_tensor_create_on(tx->allocator, tx->device, tx->dtype, tx->ndim, tx->shape, out);
	if (r == 0)
		fill(tx, *out);
	return r;
}

static int ping_tensor_tx_compute(void *state, struct frag_tick *tick)
{
	struct ping_tensor_tx *tx = state;
	struct frag_op *op = frag_tick_op(tick);
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_tensor *tensor;
	int r = make(tx, &tensor, &err);

	if (r == -EXDEV)
		return frag_op_fail(
			op, r,
			"cannot make tensor %" PRId64
			": the allocator has no memory of storage_type %s; give it one that has, or another storage_type",
			tx->sent + 1, tx->storage_type);
	if (r < 0)
		return frag_op_fail(
			op, r, "cannot make tensor %" PRId64 ": %s; %s", tx->sent + 1,
			err.text[0] != '\0' ? err.text : frag_strerror(r),
			r == -EIO
				? "see what nvidia-smi and the kernel's log say of the GPU"
				: "make the tensor smaller, or the blocks of its allocator larger or more");
	tx->sent++;
	r = frag_tick_emit_tensor(tick, OUT, tx->tensor_name, tensor);
	if (r == 0)
		frag_op_log(op, "Sent message %" PRId64, tx->sent);
	return r;
}

static void ping_tensor_tx_fini(void *state, struct frag_op *op)
{
	(void)op;
	frag_tensor_unref(((struct ping_tensor_tx *)state)->staged);
}

const struct frag_op_type basic_ping_tensor_tx_type = {
	FRAG_OP_TYPE_INIT,
	.name = "ping_tensor_tx",
	.headline = "Sends a tensor a tick",
	.description =
		"The shape is [batch_size,] rows [, columns] [, channels]; every byte of the n-th tensor is n modulo 256.",
	.state_size = sizeof(struct ping_tensor_tx),
	FRAG_PORTS(ping_tensor_tx_ports),
	FRAG_PARAMS(ping_tensor_tx_params),
	.setup = ping_tensor_tx_setup,
	.initialize = ping_tensor_tx_initialize,
	.fini = ping_tensor_tx_fini,
	.compute = ping_tensor_tx_compute,
};
