/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_KERNEL_H
#define FRAG_KERNEL_H

#include <frag/tensor.h>

FRAG_BEGIN_DECLS

/*
 * Kernels of an operator that does not link the CUDA runtime: compiled ahead to PTX (nvcc -ptx),
 * loaded and launched through the driver that frag has opened. So the operator's library loads on
 * machines without CUDA too. An operator that links the runtime launches its kernels with <<<>>>
 * instead (examples/cuda).
 */
struct frag_kernel;

/* How a kernel is launched; zeroed where not said otherwise. */
struct frag_launch {
	/* set by FRAG_LAUNCH_INIT */
	size_t struct_size;
	/* blocks, and threads of a block, along x, y and z; each at least 1 */
	uint32_t grid[3], block[3];
	/* dynamic shared memory of a block, in bytes */
	uint32_t shared_bytes;
	/* frag_tick_stream or another stream of that GPU; NULL: frag's own one */
	void *stream;
};
/* The first member of a struct frag_launch. */
#define FRAG_LAUNCH_INIT .struct_size = sizeof(struct frag_launch)

/*
 * Loads a kernel onto a GPU. The driver compiles PTX the first time, which takes a tenth of a
 * second or more, and remembers the result.
 * - device: a GPU that was made ready: by frag_op_use_device, by an allocator, or because a tensor
 *   lies there
 * - image: PTX that ends with a zero byte, a cubin or a fatbin; not needed afterwards
 * - name: of the kernel, as it is in the image: declare it extern "C"
 * - out: receives the kernel, for frag_kernel_destroy
 * - err: NULL is accepted
 * Returns 0; -ENODEV: nothing has opened the GPU; -ENOMEM; -EIO: the driver refuses the image, or
 * the image has no such kernel.
 * Thread: any. Blocks: while the driver loads and compiles. RT-safe: no.
 */
FRAG_API int frag_kernel_create(struct frag_device device, const void *image, const char *name,
				struct frag_kernel **out, struct frag_err *err);
/*
 * Launches a kernel and does not wait for it. What its pointers lead to must stay until the work
 * is done: frag_kernel_wait.
 * - how: see struct frag_launch
 * - arguments: for each parameter of the kernel the address of its value; the values are copied
 * - err: NULL is accepted
 * Returns 0; -EINVAL: no struct_size; -ENOMEM; -EIO: the GPU refuses, or earlier work failed.
 * Thread: any. Blocks: no. RT-safe: no (a call of the driver).
 */
FRAG_API int frag_kernel_launch(const struct frag_kernel *kernel, const struct frag_launch *how,
				void **arguments, struct frag_err *err);
/*
 * Waits for all work on a stream.
 * - stream: as in struct frag_launch
 * - err: names the kernel and gives CUDA's text; NULL is accepted
 * Returns 0; -EIO: the work failed.
 * Thread: any. Blocks: until the work is done. RT-safe: no.
 */
FRAG_API int frag_kernel_wait(const struct frag_kernel *kernel, void *stream, struct frag_err *err);
/* Unloads a kernel whose work is done. NULL is accepted. Thread: any. Blocks: shortly. */
FRAG_API void frag_kernel_destroy(struct frag_kernel *kernel);

FRAG_END_DECLS

#endif
