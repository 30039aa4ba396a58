/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libswscale/swscale.h>

#include <frag/draft.h>

#include "av_error.h"
#include "encoder.h"

struct video_encoder {
	AVFormatContext *format;
	AVCodecContext *codec;
	AVStream *stream;
	AVPacket *packet;
	AVFrame *in;  /* a copy of the frame, padded as libswscale wants it */
	AVFrame *out; /* the frame in the codec's format */
	struct SwsContext *scale;
	bool opened; /* the header of the file was written */
	int64_t added;
	struct frame like;
};

/* Returns FFmpeg's encoder for the value of the parameter `codec`; NULL: there is none. */
static const AVCodec *find_codec(const char *codec)
{
	const AVCodec *found = NULL;

	if (strcmp(codec, "h264") == 0 || strcmp(codec, "auto") == 0)
		found = avcodec_find_encoder_by_name("libx264");
	if (found == NULL && strcmp(codec, "auto") == 0)
		codec = "mpeg4";
	if (strcmp(codec, "mpeg4") == 0 || strcmp(codec, "ffv1") == 0)
		found = avcodec_find_encoder_by_name(codec);
	return found;
}

const char *video_encoder_name(const char *codec)
{
	const AVCodec *found = find_codec(codec);

	return found != NULL ? found->name : NULL;
}

static enum AVPixelFormat source_format(const struct frame *frame)
{
	return frame->channels == 1   ? AV_PIX_FMT_GRAY8
	       : frame->channels == 3 ? AV_PIX_FMT_RGB24
				      : AV_PIX_FMT_RGBA;
}

/* Sets pixel format and quality of each encoder: about what looks the same as the source. */
static void choose_quality(AVCodecContext *codec, const struct frame *frame, AVDictionary **options)
{
	switch (codec->codec_id) {
	case AV_CODEC_ID_FFV1:
		codec->pix_fmt = frame->channels == 1   ? AV_PIX_FMT_GRAY8
				 : frame->channels == 3 ? AV_PIX_FMT_0RGB32
							: AV_PIX_FMT_RGB32;
		return;
	case AV_CODEC_ID_H264:
		/*
		 * In 4:2:0 two by two pixels share their colour. Odd sides need 4:4:4, in which
		 * they do not.
		 */
		codec->pix_fmt = frame->rows % 2 != 0 || frame->columns % 2 != 0
					 ? AV_PIX_FMT_YUV444P
					 : AV_PIX_FMT_YUV420P;
		av_dict_set(options, "preset", "veryfast", 0);
		av_dict_set(options, "crf", "18", 0);
		break;
	default:
		codec->pix_fmt = AV_PIX_FMT_YUV420P;
		codec->flags |= AV_CODEC_FLAG_QSCALE;
		codec->global_quality = 3 * FF_QP2LAMBDA;
		break;
	}
	codec->colorspace = AVCOL_SPC_SMPTE170M; /* what libswscale converts RGB to */
	codec->color_range = AVCOL_RANGE_MPEG;
}

static int open_codec(struct video_encoder *e, const AVCodec *codec, double frame_rate,
		      const struct frame *frame)
{
	AVDictionary *options = NULL;
	AVRational rate = av_d2q(frame_rate, 65535); /* mpeg4 has 16 bits for it */
	int r;

	e->codec = avcodec_alloc_context3(codec);
	if (e->codec == NULL)
		return AVERROR(ENOMEM);
	e->codec->width = (int)frame->columns;
	e->codec->height = (int)frame->rows;
	e->codec->framerate = rate;
	e->codec->time_base = av_inv_q(rate);
	choose_quality(e->codec, frame, &options);
	if (e->format->oformat->flags & AVFMT_GLOBALHEADER)
		e->codec->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
	r = avcodec_open2(e->codec, codec, &options);
	av_dict_free(&options);
	if (r < 0)
		return r;
	e->stream = avformat_new_stream(e->format, NULL);
	if (e->stream == NULL)
		return AVERROR(ENOMEM);
	e->stream->time_base = e->codec->time_base;
	e->stream->avg_frame_rate = rate;
	return avcodec_parameters_from_context(e->stream->codecpar, e->codec);
}

static AVFrame *new_frame(enum AVPixelFormat format, const struct frame *like)
{
	AVFrame *frame = av_frame_alloc();

	if (frame == NULL)
		return NULL;
	frame->format = format;
	frame->width = (int)like->columns;
	frame->height = (int)like->rows;
	if (av_frame_get_buffer(frame, 64) < 0)
		av_frame_free(&frame);
	return frame;
}

static int open_scale(struct video_encoder *e, const struct frame *frame)
{
	int width = (int)frame->columns, height = (int)frame->rows;

	e->packet = av_packet_alloc();
	e->in = new_frame(source_format(frame), frame);
	e->out = new_frame(e->codec->pix_fmt, frame);
	e->scale =
		sws_getContext(width, height, source_format(frame), width, height,
			       e->codec->pix_fmt, SWS_BICUBIC | SWS_ACCURATE_RND, NULL, NULL, NULL);
	if (e->packet == NULL || e->in == NULL || e->out == NULL || e->scale == NULL)
		return AVERROR(ENOMEM);
	e->out->colorspace = e->codec->colorspace;
	e->out->color_range = e->codec->color_range;
	return 0;
}

/* By the rules of all output files: no link is followed, and no protocol of FFmpeg's is meant. */
static int open_output(struct video_encoder *e, const char *path)
{
	char own[64];
	FILE *file;
	int r = frag_output_open(path, &file);

	if (r < 0)
		return AVERROR(-r);
	snprintf(own, sizeof(own), "file:/proc/self/fd/%d", fileno(file));
	r = avio_open(&e->format->pb, own, AVIO_FLAG_WRITE);
	fclose(file);
	return r;
}

int video_encoder_open(const char *path, const char *codec, double frame_rate,
		       const struct frame *frame, struct video_encoder **out, struct frag_err *err)
{
	const AVCodec *found = find_codec(codec);
	struct video_encoder *e;
	int r;

	if (found == NULL)
		return frag_err_set(
			err, -ENOTSUP,
			"this FFmpeg has no encoder for codec %s; use another of auto, h264, mpeg4, ffv1",
			codec);
	av_log_errors_only();
	e = calloc(1, sizeof(*e));
	if (e == NULL)
		return frag_err_set(err, -ENOMEM, "no memory to record %s", path);
	e->like = *frame;
	r = avformat_alloc_output_context2(&e->format, NULL, NULL, path);
	if (r < 0) {
		r = frag_err_set(
			err, -ENOTSUP,
			"FFmpeg does not know the file format of %s by its ending; use .mp4 or .mkv",
			path);
		goto err_free;
	}
	if (avformat_query_codec(e->format->oformat, found->id, FF_COMPLIANCE_NORMAL) == 0) {
		r = frag_err_set(err, -ENOTSUP,
				 "%s cannot hold %s; give it the ending .mkv, or use another codec",
				 path, found->name);
		goto err_free;
	}
	r = open_codec(e, found, frame_rate, frame);
	if (r >= 0)
		r = open_scale(e, frame);
	if (r < 0) {
		r = frag_err_set(err, av_errno(r),
				 "cannot encode frames of %lld x %lld as %s: %s; use another codec",
				 (long long)frame->columns, (long long)frame->rows, found->name,
				 AV_WHY(r));
		goto err_free;
	}
	r = open_output(e, path);
	if (r >= 0)
		r = avformat_write_header(e->format, NULL);
	if (r < 0) {
		r = frag_err_set(
			err, av_errno(r),
			"cannot create the video %s: %s; check the folder and the space on its disk",
			path, AV_WHY(r));
		goto err_free;
	}
	e->opened = true;
	*out = e;
	return 0;
err_free:
	video_encoder_close(e, NULL);
	return r;
}

/* Encodes a frame (NULL: the end) and writes the packets. Returns 0 or FFmpeg's error. */
static int encode(struct video_encoder *e, const AVFrame *frame)
{
	int r = avcodec_send_frame(e->codec, frame);

	while (r >= 0) {
		r = avcodec_receive_packet(e->codec, e->packet);
		if (r == AVERROR(EAGAIN) || r == AVERROR_EOF)
			return 0;
		if (r < 0)
			return r;
		if (e->packet->duration == 0)
			e->packet->duration = 1;
		av_packet_rescale_ts(e->packet, e->codec->time_base, e->stream->time_base);
		e->packet->stream_index = e->stream->index;
		r = av_interleaved_write_frame(e->format, e->packet);
	}
	return r;
}

/*
 * Copies a frame into e->in. With an odd width libswscale mixes the colour of the last pixel with
 * that of the next one, which is padding, so the last pixel is repeated there.
 */
static void load(struct video_encoder *e, const struct frame *frame)
{
	size_t pixel = (size_t)frame->channels, row = (size_t)frame->columns * pixel;

	for (int64_t y = 0; y < frame->rows; y++) {
		uint8_t *to = e->in->data[0] + y * e->in->linesize[0];

		memcpy(to, (const uint8_t *)frame->data + (size_t)y * frame->row_bytes, row);
		if (row + pixel <= (size_t)e->in->linesize[0])
			memcpy(to + row, to + row - pixel, pixel);
	}
}

int video_encoder_add(struct video_encoder *e, const struct frame *frame, struct frag_err *err)
{
	int r;

	if (frame->rows != e->like.rows || frame->columns != e->like.columns ||
	    frame->channels != e->like.channels)
		return frag_err_set(
			err, -EINVAL,
			"a frame of %lld x %lld x %lld came into a video of %lld x %lld x %lld; resize with format_converter before",
			(long long)frame->columns, (long long)frame->rows,
			(long long)frame->channels, (long long)e->like.columns,
			(long long)e->like.rows, (long long)e->like.channels);
	r = av_frame_make_writable(e->out);
	if (r >= 0) {
		load(e, frame);
		sws_scale(e->scale, (const uint8_t *const *)e->in->data, e->in->linesize, 0,
			  e->in->height, e->out->data, e->out->linesize);
		e->out->pts = e->added++;
		if (e->codec->flags & AV_CODEC_FLAG_QSCALE)
			e->out->quality = e->codec->global_quality;
		r = encode(e, e->out);
	}
	if (r < 0)
		return frag_err_set(err, av_errno(r),
				    "cannot write to %s: %s; check the space on its disk",
				    e->format->url, AV_WHY(r));
	return 0;
}

int video_encoder_close(struct video_encoder *e, struct frag_err *err)
{
	int r = 0;

	if (e == NULL)
		return 0;
	if (e->opened) {
		int flushed = encode(e, NULL);
		int indexed = av_write_trailer(e->format);

		r = flushed < 0 ? flushed : indexed;
	}
	if (e->format != NULL) {
		int closed = avio_closep(&e->format->pb);

		r = r < 0 ? r : closed;
		if (r < 0)
			r = frag_err_set(
				err, av_errno(r),
				"cannot finish the video %s: %s; check the space on its disk",
				e->format->url, AV_WHY(r));
	}
	sws_freeContext(e->scale);
	av_frame_free(&e->in);
	av_frame_free(&e->out);
	av_packet_free(&e->packet);
	avcodec_free_context(&e->codec);
	avformat_free_context(e->format);
	free(e);
	return r < 0 ? r : 0;
}
