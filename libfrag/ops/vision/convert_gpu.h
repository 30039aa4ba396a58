/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VISION_CONVERT_GPU_H
#define VISION_CONVERT_GPU_H

#include "convert.h"
#include "resize.h"

/*
 * Resizes and converts frames on a GPU, in one kernel, and pads in another one: what vision_resize
 * and vision_convert_into do, bit for bit where the CPU's compiler fuses no operations, as on
 * x86-64. What the kernels need for frames of one format is kept for the next. Zeroed: nothing is
 * kept yet.
 */
struct convert_gpu {
	struct frag_kernel *kernel;
	const char *kernel_name; /* of the list of kernels */
	struct frag_device device;
	struct frag_kernel *pads; /* stores the pixels beside the picture */
	struct frag_device pads_device;
	struct frag_tensor *tables; /* of the filters, and of values */
	struct {
		enum resize_mode mode;
		int64_t from_rows, from_columns, rows, columns;
		double scale_min, scale_max;
	} tables_of;
	int64_t across, down; /* taps in the tables */
	bool has_line;        /* as a u8 becomes an f32: as in struct convert_job */
	float line[3];
	void *stream; /* of the last launch */
};

/* Returns 1 when this build has the kernels: a CUDA toolkit was there. */
int vision_convert_gpu_is_built(void);
/*
 * Loads the kernel for frames of u8 ahead, so that the first one is not late; those of another
 * format load theirs.
 * - convert: as the frames will need it
 * - channels: of the input
 * - resizes: with `mode`
 * - pads: the picture may be smaller than the output
 * Returns 0; -ENOMEM; -EIO.
 */
int vision_convert_gpu_prepare(struct convert_gpu *gpu, const struct convert *convert,
			       struct frag_device device, int64_t channels, bool resizes,
			       enum resize_mode mode, bool pads, struct frag_err *err);
/*
 * Launches the conversion of a frame into rows (or planes) without gaps.
 * - gpu: keeps what it needs for frames of this format
 * - device: the GPU, which something has opened
 * - in: its data is memory that the GPU can read
 * - mode, place: it is resized to the picture's size, unless it has that
 * - out: memory of the GPU
 * - stream: as in struct frag_launch
 * Returns 0; -ENOTSUP: this build has no kernels; -ENOMEM; -EIO: the GPU refuses. After 0 the work
 * is under way: the memory stays as it is until it is done.
 * Thread: one at a time for each *gpu. Blocks: for the first frame of a format.
 */
int vision_convert_gpu(struct convert_gpu *gpu, const struct convert *convert,
		       struct frag_device device, const struct frame *in, enum resize_mode mode,
		       const struct convert_place *place, void *out, void *stream,
		       struct frag_err *err);
/* Waits for the last launch. Returns 0; -EIO: it failed. */
int vision_convert_gpu_wait(const struct convert_gpu *gpu, struct frag_err *err);
/* Frees what was kept, when the work is done. */
void vision_convert_gpu_fini(struct convert_gpu *gpu);

#endif
