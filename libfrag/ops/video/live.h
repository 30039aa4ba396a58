/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VIDEO_LIVE_H
#define VIDEO_LIVE_H

#include "decoder.h"

/*
 * Decodes a stream on a thread of its own and keeps its newest frame only, so that a receiver that
 * is slow gets fewer frames instead of old ones.
 */
struct video_live;

/*
 * - decoder: borrowed; nothing else reads frames of it until the end
 * - stop_fd: as of video_decoder_open; it ends every wait
 * Returns 0 or a negative errno.
 */
int video_live_create(struct video_decoder *decoder, int stop_fd, struct video_live **out);
/* Ends the thread. NULL is accepted. */
void video_live_destroy(struct video_live *live);

/*
 * Waits for a frame that was not taken yet, and moves it into *frame.
 * - left_out: counts up for each frame before it that nobody took
 * - skipped: counts up for each damaged piece
 * Returns as video_decoder_next.
 */
int video_live_take(struct video_live *live, AVFrame *frame, int64_t *left_out, int64_t *skipped,
		    struct frag_err *err);

#endif
