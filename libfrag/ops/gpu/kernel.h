/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPU_KERNEL_H
#define GPU_KERNEL_H

/*
 * What operators compute for one element is written once, in headers that nvcc compiles for the
 * kernels, and the C compiler for the CPU and for the driver of tests. A function of a kernel takes
 * a job, its one parameter, and the place of the thread: `static void f(const struct job *, int x,
 * int y)`. A function of a block takes the number of the thread and how many there are.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#define GPU_WARP 32       /* threads that run together, side by side */
#define GPU_THREADS 256   /* of a block of a kernel with a thread for each place */
#define GPU_STORE_WORDS 6 /* most of gpu_store */

/*
 * gpu_store(to, words, count, is_whole) stores the words of a thread.
 * - count: of them; constant in a kernel
 * - is_whole: all threads of the warp store, each behind the one before it
 */

#ifdef __CUDACC__
#define GPU_INLINE static __device__ __forceinline__
#define GPU_UNROLL _Pragma("unroll") /* the loop behind it */
#define GPU_SYNC() __syncthreads()
#define GPU_ADD(counter, value) atomicAdd(counter, value)
#define GPU_MIN(least, value) ((void)atomicMin(least, value))
#define GPU_LOWEST(bits) (__ffs((int)(bits)) - 1) /* the lowest bit that is set */
/* Byte i of the result is that byte of high:low which four bits of the selector name. */
#define GPU_BYTES(low, high, selector) __byte_perm(low, high, selector)
/* Brings two numbers to bytes, 0 to 255; above them lie the lower ones of `rest`. */
#define GPU_PACK(first, second, rest) gpu_pack(first, second, rest)

GPU_INLINE uint32_t gpu_pack(int first, int second, uint32_t rest)
{
	uint32_t bytes;

	asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;"
	    : "=r"(bytes)
	    : "r"(second), "r"(first), "r"(rest));
	return bytes;
}

/* The words go through shared memory, so that each store of the warp fills whole lines. */
GPU_INLINE void gpu_store(uint32_t *to, const uint32_t *words, int count, int is_whole)
{
	__shared__ uint32_t lines[GPU_THREADS / GPU_WARP][GPU_WARP * GPU_STORE_WORDS];
	const int thread = (int)(threadIdx.y * blockDim.x + threadIdx.x), lane = thread % GPU_WARP;
	uint32_t *line = lines[thread / GPU_WARP], *first = to - lane * count;

	if (!is_whole) {
		GPU_UNROLL
		for (int i = 0; i < count; i++)
			to[i] = words[i];
		return;
	}
	GPU_UNROLL
	for (int i = 0; i < count; i++)
		line[lane * count + i] = words[i];
	__syncwarp();
	GPU_UNROLL
	for (int i = 0; i < count; i++)
		first[lane + i * GPU_WARP] = line[lane + i * GPU_WARP];
	__syncwarp(); /* before the next ones */
}

#define GPU_KERNEL(name, job_type, run)                                                            \
	extern "C" __global__ void name(const struct job_type job)                                 \
	{                                                                                          \
		run(&job, (int)(blockIdx.x * blockDim.x + threadIdx.x),                            \
		    (int)(blockIdx.y * blockDim.y + threadIdx.y));                                 \
	}
#define GPU_BLOCK_KERNEL(name, job_type, run)                                                      \
	extern "C" __global__ void name(const struct job_type job)                                 \
	{                                                                                          \
		run(&job, (int)threadIdx.x, (int)blockDim.x);                                      \
	}
#else
#define GPU_INLINE static inline __attribute__((unused))
#define GPU_UNROLL
#define GPU_SYNC() ((void)0) /* the one thread has done it */
#define GPU_ADD(counter, value) gpu_add(counter, value)

GPU_INLINE uint32_t gpu_add(uint32_t *counter, uint32_t value)
{
	uint32_t before = *counter;

	*counter += value;
	return before;
}

#define GPU_LOWEST(bits) __builtin_ctz(bits)
#define GPU_MIN(least, value) gpu_min(least, value)

GPU_INLINE void gpu_min(uint32_t *least, uint32_t value)
{
	*least = value < *least ? value : *least;
}

#define GPU_BYTES(low, high, selector) gpu_bytes(low, high, selector)

GPU_INLINE uint32_t gpu_bytes(uint32_t low, uint32_t high, uint32_t selector)
{
	uint64_t all = (uint64_t)high << 32 | low;
	uint32_t bytes = 0;

	for (int i = 0; i < 4; i++)
		bytes |= (uint32_t)(all >> (8 * (selector >> (4 * i) & 7)) & 0xff) << (8 * i);
	return bytes;
}

GPU_INLINE void gpu_store(uint32_t *to, const uint32_t *words, int count, int is_whole)
{
	(void)is_whole;
	for (int i = 0; i < count; i++)
		to[i] = words[i];
}

#define GPU_PACK(first, second, rest) gpu_pack(first, second, rest)

GPU_INLINE uint32_t gpu_byte(int x)
{
	return x < 0 ? 0 : x > 255 ? 255 : (uint32_t)x;
}

GPU_INLINE uint32_t gpu_pack(int first, int second, uint32_t rest)
{
	return gpu_byte(first) | gpu_byte(second) << 8 | rest << 16;
}
#endif

/* 8 bytes, which are read at once. */
struct gpu_pair {
	uint32_t at[2];
} __attribute__((aligned(8)));

#endif
