/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_kernels.h"

/* The floor of a kernel that reads and writes: copies. */
extern "C" __global__ void bench_copy(const struct bench_job job)
{
	const uint4 *in = (const uint4 *)job.in;
	uint4 *out = (uint4 *)job.out;

	for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < job.count;
	     i += (uint64_t)gridDim.x * blockDim.x)
		out[i] = in[i];
}

/* Reads everything, and writes four bytes for each thread that saw other than one value. */
extern "C" __global__ void bench_touch(const struct bench_job job)
{
	const uint4 *in = (const uint4 *)job.in;
	uint32_t seen = 0;

	for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < job.count;
	     i += (uint64_t)gridDim.x * blockDim.x)
		seen |= in[i].x ^ in[i].y ^ in[i].z ^ in[i].w;
	if (seen != 0)
		*(uint32_t *)job.out = seen;
}
