/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VIDEO_ENCODER_H
#define VIDEO_ENCODER_H

#include "../frame.h"

/*
 * Writes a video file, frame by frame. A thread of its own sees to it that what is older than
 * flush_ns can be played, also if the process is killed or the power fails: it writes the pieces
 * (fragments of mp4, clusters of Matroska) and has them reach the disk.
 * Thread: one at a time. Every call may block on the disk.
 */
struct video_encoder;

/*
 * Checks a value of the parameter `codec` and the ending of a file.
 * - codec: h264 (libx264), h264_nvenc (of a GPU), mpeg4, ffv1 (lossless), auto (h264, or mpeg4 when
 *   FFmpeg has no libx264)
 * Returns 0; -ENOTSUP with a sentence: FFmpeg lacks the encoder, or such a file cannot hold it.
 */
int video_encoder_check(const char *codec, const char *path, struct frag_err *err);
/* Whether a codec needs the encoder of a GPU, which video_gpu_find_encoder looks for. */
bool video_encoder_is_of_gpu(const char *codec);

struct video_encoder_config {
	const char *path; /* its ending decides the format of the file */
	int fd;           /* of that file, which is empty; it is taken, also after a failure */
	const char *codec;
	double frame_rate; /* frames per second: of all frames if is_fixed, else about */
	bool is_fixed;     /* frames follow each other at frame_rate; else each has its time */
	double aspect;     /* width of a pixel divided by its height; 0: unknown */
	int64_t flush_ns;
	int stop_fd; /* of a named pipe: nobody waits long for its reader once this is readable */
};

/*
 * Begins a video file.
 * - frame: all frames are u8, with the size and the channels of this one
 * Returns 0, or a failure with a sentence: -ENOTSUP: encoder, file format and frame do not go
 * together; or the error of writing.
 */
int video_encoder_open(const struct video_encoder_config *config, const struct frame *frame,
		       struct video_encoder **out, struct frag_err *err);
/*
 * Adds a frame.
 * - time_ns: since the first frame of the file; ignored if the rate is fixed
 * Returns 0, or a failure with a sentence: -EINVAL: its size differs from the first one's; or the
 * error of writing, after which the file holds what the sentence says and takes no more.
 */
int video_encoder_add(struct video_encoder *encoder, const struct frame *frame, int64_t time_ns,
		      struct frag_err *err);
/* The bytes of the frames so far, which are about those of the file. */
uint64_t video_encoder_bytes(const struct video_encoder *encoder);
/*
 * Writes what the encoder still holds and the file's index, closes the file and frees the encoder.
 * Call it also after a failure: what was recorded can then be played. NULL is accepted. Returns 0
 * or a negative errno with a sentence; the encoder is freed in any case.
 */
int video_encoder_close(struct video_encoder *encoder, struct frag_err *err);

#endif
