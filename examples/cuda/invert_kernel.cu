/* SPDX-License-Identifier: Apache-2.0 */
#include "invert_kernel.h"

__global__ static void invert(const unsigned char *in, unsigned char *out, size_t size)
{
	size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;

	if (i < size)
		out[i] = 255 - in[i];
}

const char *invert_launch(const void *in, void *out, size_t size, void *stream)
{
	unsigned int threads = 256, blocks = (unsigned int)((size + threads - 1) / threads);
	cudaError_t error;

	if (size == 0)
		return NULL;
	invert<<<blocks, threads, 0, (cudaStream_t)stream>>>((const unsigned char *)in,
							     (unsigned char *)out, size);
	error = cudaGetLastError();
	return error == cudaSuccess ? NULL : cudaGetErrorString(error);
}
