/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VIDEO_DECODER_H
#define VIDEO_DECODER_H

#include <stdbool.h>

#include <libavutil/frame.h>

#include <frag/error.h>

#include "gpu.h"

/*
 * Reads a video file, or a stream of a network, frame by frame. Thread: one at a time. Every call
 * may block on the disk, or on the network within the limits that were given.
 */
struct video_decoder;

struct video_how {
	/* decodes what it can, see video_decoder_why_cpu; stays until the decoder is closed */
	const struct video_gpu *gpu;
	/*
	 * Threads that decode; 0: FFmpeg's choice for the cores of this process. Where frames come
	 * at their time, the threads share each picture, because each that had a picture of its own
	 * would delay them by one.
	 */
	int threads;
};

/*
 * Opens a file and its best video stream.
 * - formats: as of video_formats_open
 * - stop_fd: readable when the application is to stop, which ends every wait; -1: none
 * - how: NULL: by one thread of the CPU
 * Returns 0, or a failure with a sentence: -ENOENT and
 * other errors of opening a file; -EBADMSG: not a video file; -ENOTSUP: no video stream, or no
 * decoder for it; -ENOMEM.
 */
int video_decoder_open(const char *path, const char *formats, int stop_fd,
		       const struct video_how *how, struct video_decoder **out,
		       struct frag_err *err);

struct video_url {
	const char *text;
	int64_t connect_timeout_ns;  /* until the stream has begun */
	int64_t read_timeout_ns;     /* until the next frame */
	int stop_fd;                 /* readable when the application is to stop; -1: none */
	const char *transport;       /* of RTSP: udp, tcp; auto: TCP where nothing comes over UDP */
	bool is_low;                 /* buffers as little as possible, see below */
	const struct video_how *how; /* as of video_decoder_open */
};
/*
 * The same with a stream. -EINVAL: a protocol that may not be used; -ETIMEDOUT; -ECANCELED: the
 * application is to stop. video_decoder_next returns the latter two as well.
 *
 * With is_low, packets that come more than half a second later than the first ones did are skipped
 * to the next picture that needs no other (a key frame).
 */
int video_decoder_open_url(const struct video_url *url, struct video_decoder **out,
			   struct frag_err *err);
/* Returns whether a stream plays over TCP because nothing came over UDP. */
bool video_decoder_fell_back(const struct video_decoder *decoder);
/*
 * Writes why the CPU decodes although there is a GPU, as a part of a sentence: what
 * the GPU does not decode to frames of gpu->format.
 */
#define VIDEO_WHY_CPU 160
void video_decoder_why_cpu(const struct video_decoder *decoder, char out[VIDEO_WHY_CPU]);
/* Returns FFmpeg's name of how the video is encoded. */
const char *video_decoder_codec(const struct video_decoder *decoder);
/* Returns how many packets were skipped because they were late. */
int64_t video_decoder_late(const struct video_decoder *decoder);
/* Ends every wait of video_decoder_next, as if the application stopped. Thread: any. */
void video_decoder_interrupt(struct video_decoder *decoder);
void video_decoder_close(struct video_decoder *decoder);

/*
 * Reads the next frame, in the order in which they are shown.
 * - frame: receives it; its old content is dropped
 * - skipped: counts up for each damaged piece that is skipped; NULL: such a piece is an error
 * Returns 1; 0: the end of the file; or a negative errno with a sentence.
 */
int video_decoder_next(struct video_decoder *decoder, AVFrame *frame, int64_t *skipped,
		       struct frag_err *err);

/*
 * Returns the time of a frame in nanoseconds after the start of the stream; negative: the file does
 * not contain it.
 */
int64_t video_decoder_time_ns(const struct video_decoder *decoder, const AVFrame *frame);
/*
 * Unix time at which a sender of RTP says that it took the frame. Returns false: it has sent no
 * report yet, or the stream has none.
 */
bool video_decoder_sender_ns(const struct video_decoder *decoder, const AVFrame *frame,
			     int64_t *out_unix_ns);
/* Returns the matrix by which a frame is to be shown (libavutil/display.h); NULL: there is none. */
const int32_t *video_decoder_matrix(const struct video_decoder *decoder, const AVFrame *frame);
/* Returns the width of a pixel divided by its height; 0: the file does not contain it. */
double video_decoder_aspect(const struct video_decoder *decoder, AVFrame *frame);
/* Returns the file's frames per second; 0: the file does not contain it. */
double video_decoder_frame_rate(const struct video_decoder *decoder);

#endif
