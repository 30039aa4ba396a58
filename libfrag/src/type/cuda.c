// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdatomic.h>

#include <base/failure.h>
#include <base/lock.h>
#include <type/cuda.h>
#include <type/module.h>

static struct fragi_lock lock; /* of ops, and of opening GPUs */
static const struct fragi_cuda_ops *_Atomic ops;

static int open_module(struct frag_err *err)
{
	const struct fragi_module module = {
		.name = "cuda",
		.kind = "module",
		.advice = "use system memory",
		.symbol = FRAGI_CUDA_SYMBOL,
		.table_size = sizeof(struct fragi_cuda_ops),
	};
	const void *table;
	int r;

	if (ops != NULL)
		return 0;
	r = fragi_module_open(&module, &table, err);
	if (r == 0)
		ops = table;
	return r;
}

const struct fragi_cuda_ops *fragi_cuda_opened(void)
{
	return ops;
}

int fragi_cuda_use(struct frag_device device, const struct fragi_cuda_ops **out_ops,
		   struct frag_err *err)
{
	struct frag_err why = FRAG_ERR_INIT;
	int r;

	fragi_lock_take(&lock);
	r = open_module(&why);
	if (r == 0)
		r = ops->use(device.id, &why);
	if (r == 0) {
		fragi_memory_install(ops->memory, device);
		*out_ops = ops;
	}
	fragi_lock_leave(&lock);
	return r < 0 ? fragi_err_fail(err, FRAGI_FAILURE_GPU_MISSING, NULL, -ENODEV, "%s", why.text)
		     : 0;
}

int fragi_cuda_survey(uint32_t *out_count, uint64_t *out_bytes, struct frag_err *err)
{
	int r;

	fragi_lock_take(&lock);
	r = open_module(err);
	if (r == 0)
		r = ops->survey(out_count, out_bytes, err);
	fragi_lock_leave(&lock);
	return r;
}
