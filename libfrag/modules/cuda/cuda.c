// SPDX-License-Identifier: Apache-2.0
#include "device.h"
#include "module.h"

__attribute__((visibility("default"))) extern const struct fragi_cuda_ops fragi_cuda_v1;
const struct fragi_cuda_ops fragi_cuda_v1 = {
	.struct_size = sizeof(struct fragi_cuda_ops),
	.name = "cuda",
	.use = cuda_device_use,
	.memory = &cuda_memory,
	.stream_create = cuda_stream_create,
	.stream_destroy = cuda_stream_destroy,
	.stream_wait = cuda_stream_wait,
	.pool_create = cuda_pool_create,
	.pool_destroy = cuda_pool_destroy,
	.pool_alloc = cuda_pool_alloc,
	.pool_free = cuda_pool_free,
	.kernel_create = cuda_kernel_create,
	.kernel_launch = cuda_kernel_launch,
	.kernel_wait = cuda_kernel_wait,
	.kernel_destroy = cuda_kernel_destroy,
	.green_create = cuda_green_create,
	.green_destroy = cuda_green_destroy,
	.survey = cuda_device_survey,
};
