/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libswscale/swscale.h>

#include "av_error.h"
#include "decoder.h"

struct video_decoder {
	AVFormatContext *format;
	AVCodecContext *codec;
	AVPacket *packet;
	AVStream *stream;
	bool drained; /* the codec was given the end of the file */
	struct SwsContext *scale;
	AVFrame *rgb; /* padded as libswscale likes to write */
};

static int open_codec(struct video_decoder *d, struct frag_err *err)
{
	const char *path = d->format->url;
	const AVCodec *codec;
	int index = av_find_best_stream(d->format, AVMEDIA_TYPE_VIDEO, -1, -1, NULL, 0);
	int r;

	if (index < 0)
		return frag_err_set(err, -ENOTSUP, "%s holds no video; give a video file", path);
	d->stream = d->format->streams[index];
	codec = avcodec_find_decoder(d->stream->codecpar->codec_id);
	if (codec == NULL)
		return frag_err_set(
			err, -ENOTSUP,
			"%s is encoded as %s, which this FFmpeg cannot decode; convert the file",
			path, avcodec_get_name(d->stream->codecpar->codec_id));
	d->codec = avcodec_alloc_context3(codec);
	d->packet = av_packet_alloc();
	if (d->codec == NULL || d->packet == NULL)
		return frag_err_set(err, -ENOMEM, "no memory to open %s", path);
	r = avcodec_parameters_to_context(d->codec, d->stream->codecpar);
	if (r >= 0) {
		d->codec->pkt_timebase = d->stream->time_base;
		r = avcodec_open2(d->codec, codec, NULL);
	}
	if (r < 0)
		return frag_err_set(err, av_errno(r), "cannot decode %s: %s; is the file damaged?",
				    path, AV_WHY(r));
	for (unsigned int i = 0; i < d->format->nb_streams; i++) {
		if ((int)i != index)
			d->format->streams[i]->discard = AVDISCARD_ALL;
	}
	return 0;
}

int video_decoder_open(const char *path, struct video_decoder **out, struct frag_err *err)
{
	struct video_decoder *d = calloc(1, sizeof(*d));
	int r;

	if (d == NULL)
		return frag_err_set(err, -ENOMEM, "no memory to open %s", path);
	av_log_errors_only();
	r = avformat_open_input(&d->format, path, NULL, NULL);
	if (r >= 0)
		r = avformat_find_stream_info(d->format, NULL);
	if (r < 0) {
		r = frag_err_set(err, av_errno(r),
				 "cannot open the video %s: %s; check path, directory and basename",
				 path, AV_WHY(r));
		goto err_close;
	}
	r = open_codec(d, err);
	if (r < 0)
		goto err_close;
	*out = d;
	return 0;
err_close:
	video_decoder_close(d);
	return r;
}

void video_decoder_close(struct video_decoder *decoder)
{
	if (decoder == NULL)
		return;
	sws_freeContext(decoder->scale);
	av_frame_free(&decoder->rgb);
	av_packet_free(&decoder->packet);
	avcodec_free_context(&decoder->codec);
	avformat_close_input(&decoder->format);
	free(decoder);
}

/* Gives the codec the next packet of the stream, or the end. Returns 0 or FFmpeg's error. */
static int feed(struct video_decoder *d)
{
	int r;

	do {
		av_packet_unref(d->packet);
		r = av_read_frame(d->format, d->packet);
	} while (r >= 0 && d->packet->stream_index != d->stream->index);
	if (r == AVERROR_EOF) {
		d->drained = true;
		return avcodec_send_packet(d->codec, NULL);
	}
	if (r >= 0)
		r = avcodec_send_packet(d->codec, d->packet);
	av_packet_unref(d->packet);
	return r;
}

int video_decoder_next(struct video_decoder *d, AVFrame *frame, int64_t *skipped,
		       struct frag_err *err)
{
	for (;;) {
		int r = avcodec_receive_frame(d->codec, frame);

		if (r >= 0)
			return 1;
		if (r == AVERROR_EOF)
			return 0;
		if (r == AVERROR(EAGAIN))
			r = feed(d);
		if (r >= 0)
			continue;
		/*
		 * A damaged packet or picture may be followed by intact ones, so it is skipped. An
		 * error after the end of the file is not.
		 */
		if (r != AVERROR_INVALIDDATA || skipped == NULL || d->drained)
			return frag_err_set(err, av_errno(r),
					    "cannot read more of %s: %s; is the file damaged?",
					    d->format->url, AV_WHY(r));
		(*skipped)++;
	}
}

int64_t video_decoder_time_ns(const struct video_decoder *decoder, const AVFrame *frame)
{
	int64_t start =
		decoder->stream->start_time == AV_NOPTS_VALUE ? 0 : decoder->stream->start_time;

	if (frame->best_effort_timestamp == AV_NOPTS_VALUE)
		return -1;
	return av_rescale_q(frame->best_effort_timestamp - start, decoder->stream->time_base,
			    (AVRational){1, 1000000000});
}

double video_decoder_frame_rate(const struct video_decoder *decoder)
{
	AVRational rate = av_guess_frame_rate(decoder->format, decoder->stream, NULL);

	return rate.num > 0 && rate.den > 0 ? av_q2d(rate) : 0.0;
}

/* Creates the scaler and its padded output for frames of this format and size. */
static int prepare_scale(struct video_decoder *d, const AVFrame *frame)
{
	if (d->rgb == NULL || d->rgb->width != frame->width || d->rgb->height != frame->height) {
		av_frame_free(&d->rgb);
		d->rgb = av_frame_alloc();
		if (d->rgb == NULL)
			return -ENOMEM;
		d->rgb->format = AV_PIX_FMT_RGB24;
		d->rgb->width = frame->width;
		d->rgb->height = frame->height;
		if (av_frame_get_buffer(d->rgb, 64) < 0) {
			av_frame_free(&d->rgb);
			return -ENOMEM;
		}
	}
	d->scale = sws_getCachedContext(d->scale, frame->width, frame->height, frame->format,
					frame->width, frame->height, AV_PIX_FMT_RGB24,
					SWS_BICUBIC | SWS_ACCURATE_RND, NULL, NULL, NULL);
	if (d->scale == NULL)
		return -ENOTSUP;
	/* Fails for a source that is RGB already, and has nothing to do then. */
	sws_setColorspaceDetails(d->scale, sws_getCoefficients((int)frame->colorspace),
				 frame->color_range == AVCOL_RANGE_JPEG,
				 sws_getCoefficients(SWS_CS_DEFAULT), 1, 0, 1 << 16, 1 << 16);
	return 0;
}

int video_decoder_rgb(struct video_decoder *d, const AVFrame *frame, uint8_t *out,
		      struct frag_err *err)
{
	size_t row = (size_t)frame->width * 3;
	int r = prepare_scale(d, frame);

	if (r < 0)
		return frag_err_set(
			err, r,
			"cannot convert frames of %s to RGB: %s; convert the file to yuv420p",
			d->format->url, frag_strerror(r));
	sws_scale(d->scale, (const uint8_t *const *)frame->data, frame->linesize, 0, frame->height,
		  d->rgb->data, d->rgb->linesize);
	for (int y = 0; y < frame->height; y++)
		memcpy(out + (size_t)y * row, d->rgb->data[0] + (ptrdiff_t)y * d->rgb->linesize[0],
		       row);
	return 0;
}
