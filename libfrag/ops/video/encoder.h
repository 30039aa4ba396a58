/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VIDEO_ENCODER_H
#define VIDEO_ENCODER_H

#include "../frame.h"

/* Writes a video file, frame by frame. Thread: one at a time. Every call may block on the disk. */
struct video_encoder;

/*
 * The encoder that a `codec` parameter means: h264 (libx264), mpeg4, ffv1 (without loss), auto
 * (h264, or mpeg4 where FFmpeg has no libx264). Returns its codec name for the log, NULL when this
 * FFmpeg lacks it.
 */
const char *video_encoder_name(const char *codec);

/*
 * Creates the file for frames like this one (u8, of its size and channels) at a steady frame rate;
 * the kind of file follows from path's ending. Returns 0; -ENOTSUP when encoder, file kind and
 * frame do not go together; what creating the file failed with; with a sentence in err.
 */
int video_encoder_open(const char *path, const char *codec, double frame_rate,
		       const struct frame *frame, struct video_encoder **out, struct frag_err *err);
/*
 * Adds a frame; it must be like the first. Returns 0; -EINVAL for another size; negative; with a
 * sentence.
 */
int video_encoder_add(struct video_encoder *encoder, const struct frame *frame,
		      struct frag_err *err);
/*
 * Writes what the encoder still holds and the file's index, and closes it: also after a failure, so
 * that what was recorded can be played. Frees the encoder in any case. NULL is accepted. Returns 0
 * or negative with a sentence.
 */
int video_encoder_close(struct video_encoder *encoder, struct frag_err *err);

#endif
