/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_CUDA_H
#define FRAG_CUDA_H

#include <frag/operator.h>

FRAG_BEGIN_DECLS

/*
 * Streams of GPUs. An operator that gives work to a GPU asks for a stream in initialize, and
 * launches its kernels and copies on it. Messages then travel before their tensors are written, and
 * no operator waits for a GPU:
 *
 * 	static int blur_initialize(void *state, struct frag_op *op)
 * 	{
 * 		return frag_op_use_stream(op, NULL, (struct frag_device){FRAG_DEVICE_CUDA, 0});
 * 	}
 *
 * 	static int blur_compute(void *state, struct frag_tick *tick)
 * 	{
 * 		cudaStream_t stream = frag_tick_stream(tick);
 * 		...
 * 		frag_tick_receive(tick, 0, &message);     the stream waits for the tensors
 * 		frag_tensor_create_on(pool, gpu, ..., &out);
 * 		blur<<<blocks, threads, 0, stream>>>(...);
 * 		return frag_tick_emit_tensor(tick, 1, "", out); the message carries an event
 * 	}
 *
 * - A receive makes the stream wait for the work that writes the tensors of the message. In an
 *   operator without a stream it waits with the CPU instead, so that the operator may read them in
 *   any way.
 * - An emit gives the tensors of the message that are not in system memory, and were not emitted
 *   before, the work that the stream has been given until then.
 * - The messages that a tick received stay, with their tensors, until the work that the stream has
 *   been given when the tick ends is done. So does a tensor that was emitted until it is written.
 *   Its memory goes back to its allocator after that.
 *
 * What frag cannot see is the operator's to wait for, or to join with the stream by events: work on
 * other streams, and memory that was neither received in this tick nor emitted in it (see
 * frag_tick_hold). To read pinned or managed memory with the CPU, it waits for the stream first.
 *
 * Source: Holoscan SDK user guide, "CUDA Stream Handling" (receive_cuda_stream).
 */

/*
 * Gives the operator a stream; once, in initialize. Opens the GPU, as frag_op_use_device does.
 * - pool: a cuda_stream_pool of that GPU, which the stream is taken from and given back to when the
 *   operator has ended; NULL: the first one among the resources that the graph lists for the
 *   operator (`resources: [$pool]`), else a stream of its own, which does not wait for the default
 *   stream
 * - gpu: of type FRAG_DEVICE_CUDA
 * Returns 0; -ENODEV: there is no such GPU; -EINVAL: gpu is no GPU, or pool no cuda_stream_pool of
 * it; -EBUSY: the pool has no stream left, or the operator has one; -EPERM: the operator runs
 * already; -ENOMEM; -EIO: the GPU refuses. A failure is worded in the operator.
 * Thread: the callback's. Blocks: 0.3 s where it opens the GPU. RT-safe: no.
 */
FRAG_API int frag_op_use_stream(struct frag_op *op, struct frag_resource *pool,
				struct frag_device gpu);

/*
 * Finds the GPU of a cuda_stream_pool's streams, for frag_op_use_stream.
 * - pool: NULL is accepted
 * - out_gpu: receives the device, of type FRAG_DEVICE_CUDA
 * Returns 0; -EINVAL: the resource is no cuda_stream_pool.
 * Thread: any. Blocks: no. RT-safe: yes.
 */
FRAG_API int frag_cuda_stream_gpu(const struct frag_resource *pool, struct frag_device *out_gpu);

/*
 * Returns the stream of frag_op_use_stream, a cudaStream_t (CUstream), for work of this tick; NULL:
 * the operator asked for none. It is the same in all ticks.
 * Thread: the tick's. Blocks: no. RT-safe: yes.
 */
FRAG_API void *frag_tick_stream(const struct frag_tick *tick);
/*
 * Returns the same of an operator, for a library that is given the stream before the first tick;
 * work is given to it in ticks, or in initialize after frag_op_use_stream.
 * Thread: the callback's. Blocks: no. RT-safe: yes.
 */
FRAG_API void *frag_op_stream(const struct frag_op *op);

/*
 * Keeps a tensor until the work that the stream has been given when this tick ends is done: one
 * that work uses and that is not emitted, such as scratch memory, or that was received in an
 * earlier tick.
 * - tensor: takes the reference, also on failure
 * Returns 0; -EINVAL: the operator has no stream, or tensor is NULL; -ENOMEM: it has waited for the
 * work.
 * Thread: the tick's. Blocks: no, but on failure. RT-safe: after warm-up.
 */
FRAG_API int frag_tick_hold(struct frag_tick *tick, struct frag_tensor *tensor);

/*
 * Waits with the CPU until the work that a stream has been given is done, such as that of another
 * library. Makes the GPU ready, as frag_op_use_device does.
 * - gpu: of type FRAG_DEVICE_CUDA
 * - stream: a CUstream of that GPU; FRAG_STREAM_DEFAULT: its default stream
 * - err: receives the sentence of a failure; NULL is accepted
 * Returns 0; -EINVAL: gpu is no GPU; -ENODEV: there is no such GPU; -EIO: the work failed.
 * Thread: any. Blocks: until the work is done, and 0.3 s where it opens the GPU. RT-safe: no.
 */
#define FRAG_STREAM_DEFAULT ((void *)1) /* CU_STREAM_LEGACY */
FRAG_API int frag_stream_wait(struct frag_device gpu, void *stream, struct frag_err *err);

/*
 * Has compute called again, as frag_op_resume does, when the work that the stream has been given
 * until now is done. So an operator whose CPU reads what its kernels write into pinned memory makes
 * no thread wait: it returns what this returns, unless that is 0.
 * Returns FRAG_PENDING; 0: the work is done, or the operator has no stream; -ENOMEM, -EIO: the work
 * cannot be followed, and was waited for. A failure is worded in the operator.
 * Thread: the tick's. Blocks: no, but on failure. RT-safe: after warm-up.
 */
FRAG_API int frag_tick_await_stream(struct frag_tick *tick);

/*
 * Counts memory of GPUs that is taken without frag, by an operator (cudaMalloc) or by a library
 * that it uses, in what this host may have: requirements: {gpuMemoryLimit}, of all GPUs together.
 * frag counts what its allocators take itself. Without a limit these do nothing.
 * - err: receives the sentence of a refusal; NULL is accepted
 * Returns 0; -ENOMEM: it is more than is left, and was not counted.
 * Thread: any. Blocks: no. RT-safe: yes.
 */
FRAG_API int frag_gpu_memory_take(uint64_t bytes, struct frag_err *err);
/* Of memory that was given back. Thread: any. Blocks: no. RT-safe: yes. */
FRAG_API void frag_gpu_memory_give(uint64_t bytes);
/*
 * Returns the bytes that this host may still take; UINT64_MAX: there is no limit.
 * Thread: any. Blocks: no. RT-safe: yes.
 */
FRAG_API uint64_t frag_gpu_memory_left(void);

FRAG_END_DECLS

#endif
