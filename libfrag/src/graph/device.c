// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include <base/failure.h>
#include <graph/compose.h>
#include <type/cuda.h>

int frag_op_use_device(struct frag_op *op, struct frag_device device)
{
	const struct fragi_cuda_ops *ops;
	struct frag_err why = FRAG_ERR_INIT;

	if (device.type == FRAG_DEVICE_CPU)
		return 0;
	if (!fragi_device_is_known(device))
		return frag_op_fail(op, -EINVAL,
				    "%d is no kind of device; use one of enum frag_device_type",
				    (int)device.type);
	if (fragi_cuda_use(device, &ops, &why) == 0)
		return 0;
	return fragi_err_fail(
		&op->err, FRAGI_FAILURE_GPU_MISSING, op->subject, -ENODEV,
		"it needs GPU %d, and %s; run the fragment on a worker with a GPU (requirements: {gpu: 1})",
		(int)device.id, why.text);
}
