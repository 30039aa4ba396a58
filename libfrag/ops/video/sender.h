/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VIDEO_SENDER_H
#define VIDEO_SENDER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <libavcodec/packet.h>
#include <libavutil/frame.h>

#include <frag/operator.h>

struct video_decoder;

/*
 * The clock of a camera that sends RTP. Its reports (RTCP, RFC 3550, 6.4.1) state which Unix time
 * belongs to which time of the stream; FFmpeg adds that to packets once a report has come.
 */
struct video_sender {
	_Atomic int64_t ahead_us; /* what its Unix time is ahead of the stream's; 0: not known */
};

/* acquisition: the parameter */
bool video_sender_is_wanted(const char *acquisition);
/* Returns 0, or the failure that a stream of another kind reports no time. */
int video_sender_check(struct frag_op *op, const char *acquisition, const char *url);

void video_sender_note(struct video_sender *sender, const AVPacket *packet, AVRational time_base);
/* Returns false: the sender's time is not known. pts: AV_NOPTS_VALUE where there is none */
bool video_sender_time_ns(const struct video_sender *sender, int64_t pts, AVRational time_base,
			  int64_t *out_unix_ns);
/*
 * Sets the sender's time as acquisition time, unless it is not known, or so far from the time of
 * this machine that the sender's clock cannot be kept by anything. That is logged, once.
 */
int video_sender_stamp(const struct video_decoder *decoder, const AVFrame *frame,
		       struct frag_op *op, const char *shown, bool *logged,
		       struct frag_message *message);

#endif
