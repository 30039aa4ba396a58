/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VIDEO_FRAMES_H
#define VIDEO_FRAMES_H

#include <frag/frag.h>

#include "decoder.h"
#include "gpu.h"
#include "pixels.h"

/*
 * Makes tensors of decoded frames, in the memory that the allocator has. Frames that the CPU has
 * decoded are converted by it, and copied where the allocator has memory of a GPU only. Frames that
 * the GPU has decoded stay there.
 */
struct video_frames {
	const char *decoder, *format; /* parameters of the operator */
	bool auto_rotate;
	struct frag_resource *pool;

	struct frag_device device; /* of the tensors */
	bool is_on_gpu;
	struct video_gpu gpu;
	bool is_reported, was_on_gpu; /* who decoded the frame before */
	struct video_pixels pixels;
	struct video_picture picture; /* of the last frame */
	struct video_turn stated;     /* how receivers are to turn it */
	double aspect;                /* of its pixels; 0: unknown */
};

extern const char *const video_decoders[];
extern const char *const video_frame_formats[];

/*
 * For initialize, with the parameters set. The operator gets a stream if a GPU may decode.
 * Returns 0, or a failure that is worded in the operator.
 */
int video_frames_open(struct video_frames *frames, struct frag_op *op);
/* Waits for what the GPU was given: before the decoder of its frames is closed. */
void video_frames_settle(struct video_frames *frames);
/* For fini, after the decoder was closed. Accepts one that is zeroed. */
void video_frames_close(struct video_frames *frames);
/*
 * Makes the tensor of a frame, in a tick.
 * - name: of the file or stream, for people
 * Returns 0, or a failure that is worded in the operator.
 */
int video_frames_make(struct video_frames *frames, struct frag_op *op,
		      const struct video_decoder *decoder, AVFrame *frame, const char *name,
		      struct frag_tensor **out);
/* Adds what is stated of the last frame, where there is something. Returns 0 or -ENOMEM. */
int video_frames_describe(const struct video_frames *frames, struct frag_metadata *metadata);

#endif
