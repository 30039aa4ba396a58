/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VIDEO_AV_ERROR_H
#define VIDEO_AV_ERROR_H

#include <errno.h>
#include <stdint.h>

#include <libavutil/avutil.h>
#include <libavutil/error.h>

/* Maps an error of FFmpeg to a negative errno value: FFmpeg returns those, or tags of its own. */
static inline int av_errno(int error)
{
	switch (error) {
	case AVERROR_INVALIDDATA:
		return -EBADMSG;
	case AVERROR_DECODER_NOT_FOUND:
	case AVERROR_ENCODER_NOT_FOUND:
	case AVERROR_DEMUXER_NOT_FOUND:
	case AVERROR_MUXER_NOT_FOUND:
	case AVERROR_STREAM_NOT_FOUND:
	case AVERROR_PATCHWELCOME:
		return -ENOTSUP;
	default:
		return error < 0 && error > -4096 ? error : -EIO;
	}
}

/* FFmpeg's text for an error. */
#define AV_WHY(error)                                                                              \
	av_make_error_string((char[AV_ERROR_MAX_STRING_SIZE]){0}, AV_ERROR_MAX_STRING_SIZE, error)

/* FFmpeg logs errors only, and no URL with a password in it. Thread: any. */
void video_log_errors_only(void);
/*
 * Returns how many errors FFmpeg has logged in this thread. Of some it returns nothing. Those of a
 * codec whose opaque is an _Atomic int64_t are counted there instead: it may log in threads of its
 * own.
 */
int64_t video_log_errors(void);

#endif
