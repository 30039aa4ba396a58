/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VIDEO_ENCODER_H
#define VIDEO_ENCODER_H

#include "../frame.h"

/* Writes a video file, frame by frame. Thread: one at a time. Every call may block on the disk. */
struct video_encoder;

/*
 * Returns the name, for the log, of the encoder that the parameter `codec` selects; NULL: this
 * FFmpeg does not have it.
 * - codec: h264 (libx264), mpeg4, ffv1 (lossless), auto (h264, or mpeg4 when FFmpeg has no libx264)
 */
const char *video_encoder_name(const char *codec);

/*
 * Creates a video file.
 * - path: its ending decides the format of the file
 * - frame_rate: frames per second
 * - frame: all frames are u8, with the size and the channels of this one
 * Returns 0, or a failure with a sentence: -ENOTSUP: encoder, file format and frame do not go
 * together; or the error of creating the file.
 */
int video_encoder_open(const char *path, const char *codec, double frame_rate,
		       const struct frame *frame, struct video_encoder **out, struct frag_err *err);
/*
 * Adds a frame. Returns 0, or a failure with a sentence: -EINVAL: its size differs from the first
 * one's; or the error of writing.
 */
int video_encoder_add(struct video_encoder *encoder, const struct frame *frame,
		      struct frag_err *err);
/*
 * Writes what the encoder still holds and the file's index, closes the file and frees the encoder.
 * Call it also after a failure: what was recorded can then be played. NULL is accepted. Returns 0
 * or a negative errno with a sentence; the encoder is freed in any case.
 */
int video_encoder_close(struct video_encoder *encoder, struct frag_err *err);

#endif
