/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VIDEO_DECODER_H
#define VIDEO_DECODER_H

#include <stdbool.h>

#include <libavutil/frame.h>

#include <frag/error.h>

/* A video file, frame by frame. Thread: one at a time. Every call may block on the disk. */
struct video_decoder;

/*
 * Opens path and its best video stream. Returns 0; -ENOENT and the like, -EBADMSG (no video file),
 * -ENOTSUP (no video stream, no decoder for it), -ENOMEM, with a sentence in err.
 */
int video_decoder_open(const char *path, struct video_decoder **out, struct frag_err *err);
void video_decoder_close(struct video_decoder *decoder);

/*
 * The next frame, in the order in which they are shown; what frame held is dropped. Damaged pieces
 * are skipped and counted in *skipped; with skipped NULL they are an error. Returns 1; 0 at the end
 * of the file; negative with a sentence.
 */
int video_decoder_next(struct video_decoder *decoder, AVFrame *frame, int64_t *skipped,
		       struct frag_err *err);

/*
 * Time of a frame from the start of the stream in nanoseconds; negative when the file does not
 * tell.
 */
int64_t video_decoder_time_ns(const struct video_decoder *decoder, const AVFrame *frame);
/* Frames a second by the file's own account; 0 when it has none. */
double video_decoder_frame_rate(const struct video_decoder *decoder);

/*
 * Writes the frame as compact RGB, 3 * width * height bytes. Returns 0 or negative with a sentence.
 */
int video_decoder_rgb(struct video_decoder *decoder, const AVFrame *frame, uint8_t *out,
		      struct frag_err *err);

#endif
