// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <libavcodec/avcodec.h>
#include <libswscale/swscale.h>

#include "av_error.h"
#include "encoder.h"
#include "muxer.h"

/* Of times in files: exact for 24, 25, 30, 50 and 60 Hz. mpeg4 has 16 bits for it. */
#define TICKS_A_SECOND 60000
/* An avi has an empty chunk for each frame that is missing in a gap, and FFmpeg refuses 60000. */
#define FRAMES_MISSING_MAX 50000

struct video_encoder {
	char *path;
	struct video_muxer *muxer;
	AVFormatContext *format; /* the muxer's */
	AVCodecContext *codec;
	AVStream *stream;
	AVPacket *packet;
	AVFrame *in;  /* a copy of the frame, padded as libswscale wants it */
	AVFrame *out; /* the frame in the codec's format */
	struct SwsContext *scale;
	bool is_fixed;
	int64_t last, period; /* the time of the last frame, and its duration, in the codec's */
	int64_t added;
	uint64_t bytes;
	struct frame like;
};

bool video_encoder_is_of_gpu(const char *codec)
{
	return strcmp(codec, "h264_nvenc") == 0;
}

/* Returns FFmpeg's encoder for the value of the parameter `codec`; NULL: there is none. */
static const AVCodec *find_codec(const char *codec)
{
	const AVCodec *found = NULL;

	if (strcmp(codec, "h264") == 0 || strcmp(codec, "auto") == 0)
		found = avcodec_find_encoder_by_name("libx264");
	if (found == NULL && strcmp(codec, "auto") == 0)
		codec = "mpeg4";
	if (strcmp(codec, "mpeg4") == 0 || strcmp(codec, "ffv1") == 0 ||
	    video_encoder_is_of_gpu(codec))
		found = avcodec_find_encoder_by_name(codec);
	return found;
}

/* What players take. The first one is what is advised for a codec that another cannot hold. */
static const struct container {
	const char *ending;
	enum AVCodecID codecs[4]; /* ends with AV_CODEC_ID_NONE */
} containers[] = {
	{"mkv", {AV_CODEC_ID_H264, AV_CODEC_ID_MPEG4, AV_CODEC_ID_FFV1}},
	{"mp4", {AV_CODEC_ID_H264, AV_CODEC_ID_MPEG4}},
	{"m4v", {AV_CODEC_ID_H264, AV_CODEC_ID_MPEG4}},
	{"mov", {AV_CODEC_ID_H264, AV_CODEC_ID_MPEG4}},
	{"ts", {AV_CODEC_ID_H264, AV_CODEC_ID_MPEG4}},
	{"avi", {AV_CODEC_ID_H264, AV_CODEC_ID_MPEG4, AV_CODEC_ID_FFV1}},
	{"nut", {AV_CODEC_ID_H264, AV_CODEC_ID_MPEG4, AV_CODEC_ID_FFV1}},
};

static bool container_holds(const struct container *container, enum AVCodecID codec)
{
	for (const enum AVCodecID *id = container->codecs; *id != AV_CODEC_ID_NONE; id++)
		if (*id == codec)
			return true;
	return false;
}

int video_encoder_check(const char *codec, const char *path, struct frag_err *err)
{
	const AVCodec *found = find_codec(codec);
	const char *name = strrchr(path, '/'), *ending = strrchr(name != NULL ? name : path, '.');
	char fits[100] = "";

	if (found == NULL)
		return frag_err_set(
			err, -ENOTSUP,
			"this FFmpeg has no encoder for codec %s; use another of auto, h264, h264_nvenc, mpeg4, ffv1",
			codec);
	for (size_t i = 0; i < FRAG_COUNT_OF(containers); i++) {
		size_t used = strlen(fits);

		if (!container_holds(&containers[i], found->id))
			continue;
		if (ending != NULL && strcasecmp(ending + 1, containers[i].ending) == 0)
			return 0;
		snprintf(fits + used, sizeof(fits) - used, "%s.%s", used > 0 ? ", " : "",
			 containers[i].ending);
	}
	return frag_err_set(
		err, -ENOTSUP,
		"a file %s does not hold video of codec %s (%s); give it one of the endings %s",
		ending != NULL ? ending : "without an ending", codec, avcodec_get_name(found->id),
		fits);
}

static enum AVPixelFormat source_format(const struct frame *frame)
{
	if (frame->is_deep)
		return frame->channels == 1   ? AV_PIX_FMT_GRAY16
		       : frame->channels == 3 ? AV_PIX_FMT_RGB48
					      : AV_PIX_FMT_RGBA64;
	return frame->channels == 1   ? AV_PIX_FMT_GRAY8
	       : frame->channels == 3 ? AV_PIX_FMT_RGB24
				      : AV_PIX_FMT_RGBA;
}

/* Sets pixel format and quality of each encoder: about what looks the same as the source. */
static void choose_quality(AVCodecContext *codec, const struct frame *frame, AVDictionary **options)
{
	switch (codec->codec_id) {
	case AV_CODEC_ID_FFV1:
		codec->pix_fmt = frame->is_deep         ? source_format(frame)
				 : frame->channels == 1 ? AV_PIX_FMT_GRAY8
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
		if (video_encoder_is_of_gpu(codec->codec->name)) {
			av_dict_set(options, "delay", "0", 0); /* as tune, below */
			av_dict_set(options, "forced-idr", "1", 0);
			av_dict_set(options, "cq", "19", 0);
			codec->max_b_frames = 0;
			break;
		}
		av_dict_set(options, "preset", "veryfast", 0);
		av_dict_set(options, "tune", "zerolatency", 0); /* what it holds would be lost */
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

/* Whether the frames of a file have no times, but a place each at a fixed rate. */
static bool has_places(const struct video_encoder *e)
{
	return strcmp(e->format->oformat->name, "avi") == 0;
}

/* The unit of the times of frames: of one frame where the rate is fixed, or the file wants that. */
static AVRational unit_of_time(const struct video_encoder *e, AVRational rate)
{
	if (e->is_fixed || has_places(e))
		return av_inv_q(rate);
	return (AVRational){1, TICKS_A_SECOND};
}

static int open_codec(struct video_encoder *e, const AVCodec *codec,
		      const struct video_encoder_config *config, const struct frame *frame)
{
	double frame_rate = config->frame_rate;
	AVDictionary *options = NULL;
	AVRational rate = av_d2q(frame_rate, 65535); /* mpeg4 has 16 bits for it */
	int r;

	e->codec = avcodec_alloc_context3(codec);
	if (e->codec == NULL)
		return AVERROR(ENOMEM);
	e->codec->width = (int)frame->columns;
	e->codec->height = (int)frame->rows;
	e->codec->framerate = rate;
	e->codec->sample_aspect_ratio = av_d2q(config->aspect, 255); /* mpeg4 has 8 bits for each */
	e->codec->time_base = unit_of_time(e, rate);
	e->period = llrint(1.0 / (frame_rate * av_q2d(e->codec->time_base)));
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
	e->stream->sample_aspect_ratio = e->codec->sample_aspect_ratio;
	if (e->codec->time_base.num == rate.den)
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
	e->scale = sws_getContext(width, height, source_format(frame), width, height,
				  e->codec->pix_fmt, SWS_BILINEAR | SWS_ACCURATE_RND, NULL, NULL,
				  NULL);
	if (e->packet == NULL || e->in == NULL || e->out == NULL || e->scale == NULL)
		return AVERROR(ENOMEM);
	e->out->colorspace = e->codec->colorspace;
	e->out->color_range = e->codec->color_range;
	return 0;
}

static void destroy(struct video_encoder *e)
{
	if (e == NULL)
		return;
	sws_freeContext(e->scale);
	av_frame_free(&e->in);
	av_frame_free(&e->out);
	av_packet_free(&e->packet);
	avcodec_free_context(&e->codec);
	video_muxer_destroy(e->muxer);
	free(e->path);
	free(e);
}

int video_encoder_open(const struct video_encoder_config *config, const struct frame *frame,
		       struct video_encoder **out, struct frag_err *err)
{
	const char *path = config->path;
	struct video_encoder *e;
	int r = video_encoder_check(config->codec, path, err);

	if (r < 0) {
		close(config->fd);
		return r;
	}
	video_log_errors_only();
	e = calloc(1, sizeof(*e));
	if (e != NULL)
		e->path = strdup(path);
	r = e != NULL && e->path != NULL
		    ? video_muxer_create(path, config->fd, config->flush_ns, config->stop_fd,
					 &e->muxer, &e->format)
		    : AVERROR(ENOMEM);
	if (r < 0) {
		close(config->fd);
		frag_err_set(err, av_errno(r), "cannot record %s: %s", path, AV_WHY(r));
		goto err_free;
	}
	e->like = *frame;
	e->is_fixed = config->is_fixed;
	e->last = -1;
	r = open_codec(e, find_codec(config->codec), config, frame);
	if (r >= 0)
		r = open_scale(e, frame);
	if (r < 0) {
		frag_err_set(err, av_errno(r),
			     "cannot encode frames of %lld x %lld as %s: %s; use another codec",
			     (long long)frame->columns, (long long)frame->rows, config->codec,
			     AV_WHY(r));
		goto err_free;
	}
	r = video_muxer_begin(e->muxer);
	if (r < 0) {
		frag_err_set(
			err, av_errno(r),
			"cannot create the video %s: %s; check the folder and the space on its disk",
			path, AV_WHY(r));
		goto err_free;
	}
	*out = e;
	return 0;
err_free:
	destroy(e);
	return av_errno(r);
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
		e->packet->duration = e->period;
		e->packet->stream_index = e->stream->index;
		av_packet_rescale_ts(e->packet, e->codec->time_base, e->stream->time_base);
		e->bytes += (uint64_t)e->packet->size;
		r = video_muxer_add(e->muxer, e->packet);
	}
	return r;
}

/*
 * Copies a frame into e->in. With an odd width libswscale mixes the colour of the last pixel with
 * that of the next one, which is padding, so the last pixel is repeated there.
 */
static void load(struct video_encoder *e, const struct frame *frame)
{
	size_t pixel = (size_t)frame->channels * frame_element_bytes(frame);
	size_t row = (size_t)frame->columns * pixel;

	for (int64_t y = 0; y < frame->rows; y++) {
		uint8_t *to = e->in->data[0] + y * e->in->linesize[0];

		memcpy(to, (const uint8_t *)frame->data + (size_t)y * frame->row_bytes, row);
		if (row + pixel <= (size_t)e->in->linesize[0])
			memcpy(to + row, to + row - pixel, pixel);
	}
}

/* The time of the next frame in the codec's unit; times in a file grow. */
static int64_t time_of(const struct video_encoder *e, int64_t time_ns)
{
	int64_t time = e->is_fixed ? e->added
				   : av_rescale_q(time_ns, (AVRational){1, 1000000000},
						  e->codec->time_base);

	if (has_places(e) && time > e->last + FRAMES_MISSING_MAX)
		time = e->last + FRAMES_MISSING_MAX;
	return time > e->last ? time : e->last + 1;
}

/* Words an error of writing, and what the file holds all the same. */
static int write_failed(struct video_encoder *e, int r, struct frag_err *err)
{
	return frag_err_set(
		err, av_errno(r),
		"cannot write to %s: %s; it keeps the first %lld frames; check the space on its disk",
		e->path, AV_WHY(r), (long long)video_muxer_kept(e->muxer));
}

int video_encoder_add(struct video_encoder *e, const struct frame *frame, int64_t time_ns,
		      struct frag_err *err)
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
	if (frame->is_deep != e->like.is_deep)
		return frag_err_set(
			err, -EINVAL,
			"a frame of %s came into a video of %s; convert with format_converter before",
			frame->is_deep ? "u16" : "u8", e->like.is_deep ? "u16" : "u8");
	r = av_frame_make_writable(e->out);
	if (r >= 0) {
		load(e, frame);
		sws_scale(e->scale, (const uint8_t *const *)e->in->data, e->in->linesize, 0,
			  e->in->height, e->out->data, e->out->linesize);
		e->out->pts = e->last = time_of(e, time_ns);
		e->out->pict_type = video_muxer_begins_piece(e->muxer) ? AV_PICTURE_TYPE_I
								       : AV_PICTURE_TYPE_NONE;
		if (e->codec->flags & AV_CODEC_FLAG_QSCALE)
			e->out->quality = e->codec->global_quality;
		r = encode(e, e->out);
		e->added++;
	}
	return r < 0 ? write_failed(e, r, err) : 0;
}

uint64_t video_encoder_bytes(const struct video_encoder *encoder)
{
	return encoder->bytes;
}

int video_encoder_close(struct video_encoder *e, struct frag_err *err)
{
	int r, written;

	if (e == NULL)
		return 0;
	r = encode(e, NULL);
	written = video_muxer_finish(e->muxer);
	r = written < 0 ? written : r;
	if (r < 0)
		r = write_failed(e, r, err);
	destroy(e);
	return r;
}
