/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPU_TWIN_H
#define GPU_TWIN_H

#include <frag/cuda.h>
#include <frag/kernel.h>

/*
 * The body of an operator for GPUs, beside the one for the CPU. Both have the same description,
 * parameters and checks; where a tensor lies decides which one runs. If the operator has a stream,
 * its ticks launch kernels on that and do not wait; otherwise each tick waits for its work.
 */
#define GPU_TWIN_KERNELS 16 /* more than any operator has */

struct gpu_twin {
	const char *ptx; /* of the kernels; NULL: this build has none */
	struct frag_resource *pool;
	bool pool_is_on_gpu; /* the pool has memory of `stream_device` only */
	bool has_stream;
	struct frag_device stream_device; /* of the stream, and of the pool */
	struct frag_device device;        /* of the kernels */
	struct {
		const char *name;
		struct frag_kernel *kernel;
	} loaded[GPU_TWIN_KERNELS]; /* the first ones */
	struct frag_tensor *scratch;
	size_t scratch_bytes;
};

/*
 * Finds the GPU of a pool. Returns whether it has memory of a GPU only; *out: which.
 * Thread: the callback's. Blocks: while the pool makes a byte.
 */
bool gpu_pool_is_on_gpu(struct frag_resource *pool, struct frag_device *out);

/*
 * For initialize. The operator gets a stream if the pool has memory of a GPU only, or if it was
 * given a cuda_stream_pool; where it has both they are of one GPU.
 * - pool, streams: NULL: none
 * Returns 0, or a failure that is worded in the operator.
 */
int gpu_twin_open(struct gpu_twin *twin, struct frag_op *op, const char *ptx,
		  struct frag_resource *pool, struct frag_resource *streams);
/* Frees what was kept, when the work is done: for fini. Accepts a twin that is zeroed. */
void gpu_twin_close(struct gpu_twin *twin);

/* Returns whether a tensor is for the GPU's body: the CPU cannot read it. */
bool gpu_holds(const struct frag_tensor *tensor);
/* The GPU on which a tensor lies. */
struct frag_device gpu_of(const struct frag_tensor *tensor);

/* The stream for work on the GPU of the kernels; NULL: frag's own one, which the tick waits for. */
void *gpu_twin_stream(const struct gpu_twin *twin, const struct frag_tick *tick);

/*
 * Before the work of a tick: makes `device` the GPU of the kernels.
 * Returns 0, or a failure that is worded in the operator.
 */
int gpu_twin_begin(struct gpu_twin *twin, struct frag_op *op, struct frag_device device);
/*
 * Creates a tensor of the output, on the GPU of the kernels. Returns 0, or a failure that is worded
 * in the operator.
 */
int gpu_twin_create(struct gpu_twin *twin, struct frag_op *op, struct frag_dtype dtype,
		    int32_t ndim, const int64_t *shape, struct frag_tensor **out);
/* The same in pinned memory of the host, which both read. */
int gpu_twin_create_pinned(struct gpu_twin *twin, struct frag_op *op, struct frag_dtype dtype,
			   int32_t ndim, const int64_t *shape, struct frag_tensor **out);
/*
 * Returns memory of the GPU for the work of this tick, which the next one uses again: it is only
 * ever used by kernels of this operator, which run one after the other. NULL: a failure is worded
 * in the operator.
 */
void *gpu_twin_scratch(struct gpu_twin *twin, struct frag_tick *tick, size_t bytes);
/*
 * Launches a kernel with a thread for each place.
 * - name: of the kernel; a literal
 * - job: its parameter, which is copied
 * Returns 0, or a failure that is worded in the operator.
 */
int gpu_twin_launch(struct gpu_twin *twin, struct frag_tick *tick, const char *name, void *job,
		    int64_t columns, int64_t rows);
/* The same with one block of 1024 threads. */
int gpu_twin_launch_block(struct gpu_twin *twin, struct frag_tick *tick, const char *name,
			  void *job);
/*
 * Waits for the work of a tick that has no stream. Returns 0, or a failure that is worded in the
 * operator.
 */
int gpu_twin_end(struct gpu_twin *twin, struct frag_tick *tick);
/*
 * For a tick whose CPU reads what its work writes. Returns FRAG_PENDING: compute is called again
 * when it is done; 0: gpu_twin_wait may wait for it; or a failure that is worded in the operator.
 */
int gpu_twin_await(struct gpu_twin *twin, struct frag_tick *tick);
/* Waits for the work of this operator in any case, so that the CPU may read what it wrote. */
int gpu_twin_wait(struct gpu_twin *twin, struct frag_tick *tick);

#endif
