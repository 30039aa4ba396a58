// SPDX-License-Identifier: Apache-2.0
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/avstring.h>
#include <libavutil/parseutils.h>
#include <libavutil/pixdesc.h>

#include "av_error.h"
#include "decoder.h"
#include "formats.h"
#include "matroska.h"
#include "pipe.h"
#include "sender.h"
#include "url.h"

/* A stream may claim pictures of any size; this is that of 8192 x 8192. */
#define STREAM_PIXELS_MAX (1 << 26)

#define UDP_NS 3000000000LL    /* the longest wait for something over UDP before TCP is tried */
#define LATE_NS 500000000LL    /* a packet is late from this delay on */
#define NO_KEY_NS 5000000000LL /* some streams have no key frames: after this all is decoded */

#define HELD_MAX 5 /* frames that its users hold at a time, and one to spare */

/* Some demuxers stay at what they cannot read: so often in turn it is tried again. */
#define UNREAD_MAX 1000

/* A file is cut off when more than this is missing at its end. */
#define CUT_OFF_US 200000

struct video_decoder {
	char *name; /* of the file or stream, for people */
	bool is_stream;
	int64_t read_timeout_ns;
	struct video_watch watch;
	AVIOContext *pipe; /* the file, if it is a named pipe; else NULL */
	AVFormatContext *format;
	AVCodecContext *codec;
	AVPacket *packet;
	AVStream *stream;
	bool drained;           /* the codec was given the end of the file */
	int64_t end_us;         /* of the last packet, in the file's time */
	bool is_partial;        /* a part of the last packet is missing */
	bool is_cut_off;        /* the file is, which is not reported yet */
	_Atomic int64_t errors; /* that the codec has logged, in any thread, also between calls */
	int64_t known_errors;   /* of these, what is counted */
	bool fell_back;
	bool has_come; /* something of a stream has, while it is waited for */
	int unread;    /* failures to read since the last packet */
	/* where nothing that is late is decoded */
	bool is_low, skips;
	int64_t least_ns; /* the least of when a packet came minus its own time */
	struct video_sender sender;
	int64_t skipped_ns; /* when the first of those was skipped that are skipped now */
	_Atomic int64_t late;
};

/* Whether frames that are decoded on a GPU have the format that is wanted. */
static bool suits(const struct video_gpu *gpu, const AVCodecParameters *parameters)
{
	const AVPixFmtDescriptor *has = av_pix_fmt_desc_get(parameters->format);
	const AVPixFmtDescriptor *wanted = av_pix_fmt_desc_get(gpu->format);

	return has != NULL && has->nb_components == wanted->nb_components &&
	       has->log2_chroma_w == wanted->log2_chroma_w &&
	       has->log2_chroma_h == wanted->log2_chroma_h &&
	       has->comp[0].depth == wanted->comp[0].depth;
}

static int open_codec(struct video_decoder *d, const struct video_how *how, struct frag_err *err)
{
	const struct video_gpu *gpu = how != NULL ? how->gpu : NULL;
	const char *path = d->name;
	const AVCodec *codec;
	int index = av_find_best_stream(d->format, AVMEDIA_TYPE_VIDEO, -1, -1, NULL, 0);
	int r;

	if (index < 0)
		return frag_err_set(err, -ENOTSUP, "%s holds no video; give %s", path,
				    d->is_stream ? "the url of one that does" : "a video file");
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
		if (d->is_stream)
			d->codec->max_pixels = STREAM_PIXELS_MAX;
		/* Otherwise FFmpeg leaves columns that the file cuts off, for alignment. */
		d->codec->flags |= AV_CODEC_FLAG_UNALIGNED;
		if (d->is_low)
			d->codec->flags |= AV_CODEC_FLAG_LOW_DELAY;
		/* Where FFmpeg cannot use the device for this video, it decodes by itself. */
		if (gpu != NULL && gpu->device != NULL && suits(gpu, d->stream->codecpar)) {
			d->codec->hw_device_ctx = av_buffer_ref(gpu->device);
			d->codec->extra_hw_frames = HELD_MAX;
		}
		if (how != NULL && d->codec->hw_device_ctx == NULL)
			d->codec->thread_count = how->threads;
		if (d->is_stream || d->pipe != NULL)
			d->codec->thread_type = FF_THREAD_SLICE;
		d->codec->opaque = &d->errors;
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

static struct video_decoder *create(const char *name, struct frag_err *err)
{
	struct video_decoder *d = calloc(1, sizeof(*d));

	if (d != NULL)
		d->name = strdup(name);
	if (d != NULL && d->name != NULL)
		return d;
	free(d);
	frag_err_set(err, -ENOMEM, "no memory to open %s", name);
	return NULL;
}

int video_decoder_open(const char *path, const char *formats, int stop_fd,
		       const struct video_how *how, struct video_decoder **out,
		       struct frag_err *err)
{
	struct video_decoder *d = create(path, err);
	int r;

	if (d == NULL)
		return -ENOMEM;
	video_log_errors_only();
	d->read_timeout_ns = INT64_MAX / 2; /* a disk may take its time */
	d->watch.stop_fd = stop_fd;
	video_watch_begin(&d->watch, d->read_timeout_ns);
	d->format = avformat_alloc_context();
	if (d->format == NULL) {
		r = frag_err_set(err, -ENOMEM, "no memory to open %s", path);
		goto err_close;
	}
	d->format->interrupt_callback =
		(AVIOInterruptCB){.callback = video_watch_expired, .opaque = &d->watch};
	r = video_pipe_is(path) ? video_pipe_open(path, &d->watch, &d->pipe) : 0;
	d->format->pb = d->pipe;
	if (r >= 0)
		r = video_formats_open(&d->format, path, formats, err);
	if (r >= 0)
		r = avformat_find_stream_info(d->format, NULL);
	if (d->watch.is_stopped) {
		r = -ECANCELED;
		goto err_close;
	}
	if (r < 0) {
		r = frag_err_set(err, av_errno(r), "cannot open the video %s: %s", path,
				 video_formats_why(path, r, (char[VIDEO_WHY]){0}));
		goto err_close;
	}
	r = open_codec(d, how, err);
	if (r < 0)
		goto err_close;
	*out = d;
	return 0;
err_close:
	video_decoder_close(d);
	return r;
}

/* Words why a stream gives nothing. Returns the code. */
static int stream_failed(const struct video_decoder *d, int r, int64_t limit_ns,
			 struct frag_err *err)
{
	if (d->watch.is_stopped)
		return frag_err_set(err, -ECANCELED, "%s is not waited for any more", d->name);
	if (d->watch.timed_out)
		return frag_err_set(
			err, -ETIMEDOUT,
			d->has_come
				? "what came from %s within %.1f s makes no picture: it stalls, or no key frame came; have the sender send key frames more often, or give it more time with connect_timeout or read_timeout"
				: "nothing came from %s for %.1f s; check the sender, or give it more time with connect_timeout or read_timeout",
			d->name, (double)limit_ns / 1e9);
	return frag_err_set(err, av_errno(r), "cannot play %s: %s; check url and the sender",
			    d->name, AV_WHY(r));
}

/* Opens the stream with what FFmpeg may do for it. Returns 0 or FFmpeg's error. */
static int open_stream(struct video_decoder *d, const struct video_url *url, const char *protocols,
		       const char *transport)
{
	AVDictionary *options = NULL;
	char *text = strdup(url->text);
	int r;

	for (char *c = text; c != NULL && *c != ':'; c++)
		*c = (char)av_tolower(*c); /* FFmpeg knows no RTSP:// */
	d->format = text != NULL ? avformat_alloc_context() : NULL;
	if (d->format == NULL) {
		free(text);
		return AVERROR(ENOMEM);
	}
	d->format->interrupt_callback =
		(AVIOInterruptCB){.callback = video_watch_expired, .opaque = &d->watch};
	r = av_dict_set(&options, "protocol_whitelist", protocols, 0);
	if (r >= 0) /* FFmpeg does not check certificates by itself */
		r = av_dict_set(&options, "tls_verify", "1", 0);
	if (r >= 0 && transport[0] != '\0')
		r = av_dict_set(&options, "rtsp_transport", transport, 0);
	if (r >= 0)
		r = avformat_open_input(&d->format, text, NULL, &options);
	av_dict_free(&options);
	free(text);
	if (r >= 0)
		r = avformat_find_stream_info(d->format, NULL);
	if (d->format == NULL || d->format->pb == NULL)
		return r;
	d->has_come = d->format->pb->bytes_read > 0;
	/* FFmpeg guesses from what it has, and then reads no more. */
	return r >= 0 && d->watch.timed_out ? AVERROR_EXIT : r;
}

/*
 * With auto FFmpeg asks for UDP, and for TCP where the server refuses that. Where a firewall drops
 * the packets, nobody refuses anything: then the stream is opened anew.
 */
static int open_by_transport(struct video_decoder *d, const struct video_url *url,
			     const char *protocols)
{
	int64_t limit_ns = url->connect_timeout_ns, udp_ns = limit_ns / 3;
	bool is_auto =
		strncasecmp(url->text, "rtsp", 4) == 0 && strcmp(url->transport, "auto") == 0;
	int r;

	if (!is_auto) {
		video_watch_begin(&d->watch, limit_ns);
		return open_stream(d, url, protocols,
				   strcmp(url->transport, "auto") == 0 ? "" : url->transport);
	}
	if (udp_ns > UDP_NS)
		udp_ns = UDP_NS;
	video_watch_begin(&d->watch, udp_ns);
	r = open_stream(d, url, protocols, "");
	/* What timed out may also be taken for a stream without video. */
	if (!d->watch.timed_out || d->watch.is_stopped)
		return r;
	avformat_close_input(&d->format);
	video_watch_begin(&d->watch, limit_ns - udp_ns);
	r = open_stream(d, url, protocols, "tcp");
	d->fell_back = r >= 0;
	return r;
}

int video_decoder_open_url(const struct video_url *url, struct video_decoder **out,
			   struct frag_err *err)
{
	const char *protocols = NULL;
	char shown[VIDEO_URL_SHOWN];
	struct video_decoder *d;
	int r = video_url_check(url->text, &protocols, shown, err);

	if (r < 0)
		return r;
	d = create(shown, err);
	if (d == NULL)
		return -ENOMEM;
	video_log_errors_only();
	d->is_stream = true;
	d->is_low = url->is_low;
	d->read_timeout_ns = url->read_timeout_ns;
	d->watch.stop_fd = url->stop_fd;
	r = open_by_transport(d, url, protocols);
	r = r < 0 ? stream_failed(d, r, url->connect_timeout_ns, err)
		  : open_codec(d, url->how, err);
	if (r < 0) {
		video_decoder_close(d);
		return r;
	}
	*out = d;
	return 0;
}

bool video_decoder_fell_back(const struct video_decoder *decoder)
{
	return decoder->fell_back;
}

void video_decoder_why_cpu(const struct video_decoder *decoder, char out[VIDEO_WHY_CPU])
{
	const AVCodecParameters *parameters = decoder->stream->codecpar;
	const char *format = av_get_pix_fmt_name(parameters->format);

	snprintf(out, VIDEO_WHY_CPU, "it does not make frames of this format of %s of %s, %d x %d",
		 video_decoder_codec(decoder), format != NULL ? format : "an unknown format",
		 parameters->width, parameters->height);
}

const char *video_decoder_codec(const struct video_decoder *decoder)
{
	return avcodec_get_name(decoder->stream->codecpar->codec_id);
}

int64_t video_decoder_late(const struct video_decoder *decoder)
{
	return atomic_load(&decoder->late);
}

void video_decoder_interrupt(struct video_decoder *decoder)
{
	atomic_store(&decoder->watch.ends, true);
}

void video_decoder_close(struct video_decoder *decoder)
{
	if (decoder == NULL)
		return;
	av_packet_free(&decoder->packet);
	avcodec_free_context(&decoder->codec);
	avformat_close_input(&decoder->format);
	video_pipe_close(decoder->pipe);
	free(decoder->name);
	free(decoder);
}

/*
 * Whether what a demuxer reports as the end is a connection that was cut. That of RTSP does not
 * know the difference; a server that ended its stream in order still answers a request.
 */
static bool is_cut(struct video_decoder *d)
{
	const int unanswered = -1; /* of av_read_pause; what a server refuses has another code */

	if (!d->is_stream)
		return false;
	if (d->format->pb != NULL)
		return d->format->pb->error < 0 && d->format->pb->error != AVERROR_EOF;
	return strcmp(d->format->iformat->name, "rtsp") == 0 &&
	       av_read_pause(d->format) == unanswered;
}

/* How long the file says that the video is; 0: it does not say so. */
static int64_t stated_us(const struct video_decoder *d)
{
	const AVDictionaryEntry *tag = av_dict_get(d->stream->metadata, "DURATION", NULL, 0);
	int64_t us = 0;

	if (tag != NULL && av_parse_time(&us, tag->value, 1) >= 0)
		return us;
	if (d->stream->duration != AV_NOPTS_VALUE)
		return av_rescale_q(d->stream->duration, d->stream->time_base, AV_TIME_BASE_Q);
	return 0;
}

/* Whether the file has ended although its header promises more. */
static bool ends_early(const struct video_decoder *d)
{
	return d->end_us + CUT_OFF_US < stated_us(d);
}

/*
 * Whether the file is cut off: it ends before its time, or, as one that was written live states no
 * time, inside a packet.
 */
static bool is_cut_off(const struct video_decoder *d)
{
	if (d->is_stream)
		return false;
	if (ends_early(d) || d->is_partial)
		return true;
	return av_match_list("matroska", d->format->iformat->name, ',') != 0 &&
	       video_matroska_is_cut(d->format->pb);
}

static void note_end(struct video_decoder *d)
{
	const AVPacket *packet = d->packet;
	int64_t at = packet->pts != AV_NOPTS_VALUE ? packet->pts : packet->dts, us;

	d->is_partial = (packet->flags & AV_PKT_FLAG_CORRUPT) != 0;
	if (at == AV_NOPTS_VALUE)
		return;
	us = av_rescale_q(at + packet->duration, d->stream->time_base, AV_TIME_BASE_Q);
	d->end_us = us > d->end_us ? us : d->end_us;
}

static int64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/*
 * Whether the packet is skipped because it is late. What is late by the first packet that is
 * decoded again is the sender's clock, or its way, and is no delay that skipping could end.
 */
static bool is_late(struct video_decoder *d)
{
	const AVPacket *packet = d->packet;
	int64_t at = packet->dts != AV_NOPTS_VALUE ? packet->dts : packet->pts, now_ns, delay_ns;
	bool is_key = (packet->flags & AV_PKT_FLAG_KEY) != 0;

	if (!d->is_low || at == AV_NOPTS_VALUE)
		return false;
	now_ns = clock_ns();
	delay_ns = now_ns - av_rescale_q(at, d->stream->time_base, (AVRational){1, 1000000000});
	if (d->least_ns == 0 || delay_ns < d->least_ns)
		d->least_ns = delay_ns;
	if (!d->skips && delay_ns - d->least_ns > LATE_NS) {
		d->skips = true;
		d->skipped_ns = now_ns;
	}
	if (d->skips && !is_key && now_ns - d->skipped_ns < NO_KEY_NS) {
		atomic_fetch_add(&d->late, 1);
		return true;
	}
	if (d->skips)
		d->least_ns = delay_ns;
	d->skips = false;
	return false;
}

/* Gives the codec the next packet of the stream, or the end. Returns 0 or FFmpeg's error. */
static int feed(struct video_decoder *d)
{
	int r;

	do {
		av_packet_unref(d->packet);
		r = av_read_frame(d->format, d->packet);
		d->unread = r < 0 ? d->unread + 1 : 0;
	} while (r >= 0 && (d->packet->stream_index != d->stream->index || is_late(d)));
	if (r == AVERROR_EOF && is_cut(d))
		return d->format->pb != NULL ? d->format->pb->error : AVERROR(ECONNRESET);
	if (r == AVERROR_EOF) {
		d->drained = true;
		d->is_cut_off = is_cut_off(d);
		return avcodec_send_packet(d->codec, NULL);
	}
	if (r >= 0) {
		d->has_come = true;
		note_end(d);
		video_sender_note(&d->sender, d->packet, d->stream->time_base);
		r = avcodec_send_packet(d->codec, d->packet);
	}
	av_packet_unref(d->packet);
	return r;
}

/* All frames are out. Returns 0, or the failure of a file that is cut off. */
static int at_end(struct video_decoder *d, int64_t *skipped, struct frag_err *err)
{
	bool was_cut_off = d->is_cut_off;

	d->is_cut_off = false;
	if (was_cut_off && skipped != NULL)
		(*skipped)++;
	if (!was_cut_off || skipped != NULL)
		return 0;
	if (ends_early(d))
		return frag_err_set(err, -EIO,
				    "%s ends after %.1f s of %.1f s; is the file cut off?", d->name,
				    (double)d->end_us / 1e6, (double)stated_us(d) / 1e6);
	return frag_err_set(err, -EIO, "%s ends after %.1f s inside a packet; is the file cut off?",
			    d->name, (double)d->end_us / 1e6);
}

/* Returns whether FFmpeg has logged errors since the last call, or in this thread since `here`. */
static bool has_logged(struct video_decoder *d, int64_t here)
{
	int64_t errors = atomic_load(&d->errors);
	bool has = errors > d->known_errors || video_log_errors() > here;

	d->known_errors = errors;
	return has;
}

int video_decoder_next(struct video_decoder *d, AVFrame *frame, int64_t *skipped,
		       struct frag_err *err)
{
	video_watch_begin(&d->watch, d->read_timeout_ns);
	d->has_come = false;
	for (;;) {
		int64_t here = video_log_errors();
		int r = avcodec_receive_frame(d->codec, frame);
		bool is_frame = r >= 0, is_end = r == AVERROR_EOF, has_errors;

		if (r == AVERROR(EAGAIN))
			r = feed(d);
		has_errors = has_logged(d, here);
		/*
		 * FFmpeg leaves out some damage by itself, or hides it: then it only logs that. Of
		 * a GPU it also logs what it cannot decode there, and goes on here.
		 */
		if ((r >= 0 || is_end) && d->codec->hw_device_ctx == NULL && has_errors) {
			if (skipped == NULL)
				r = AVERROR_INVALIDDATA;
			else
				(*skipped)++;
		}
		if (is_end && r == AVERROR_EOF)
			return at_end(d, skipped, err);
		if (r >= 0 && is_frame) {
			video_gpu_crop(frame);
			return 1;
		}
		if (r >= 0)
			continue;
		(void)video_watch_expired(&d->watch);
		if (d->watch.is_stopped ||
		    (d->is_stream && (r != AVERROR_INVALIDDATA || d->watch.timed_out)))
			return stream_failed(d, r, d->read_timeout_ns, err);
		/*
		 * A damaged packet or picture may be followed by intact ones, so it is skipped. An
		 * error after the end of the file is not.
		 */
		if (r != AVERROR_INVALIDDATA || skipped == NULL || d->drained ||
		    d->unread > UNREAD_MAX)
			return frag_err_set(err, av_errno(r),
					    "cannot read more of %s: %s; is the file damaged?",
					    d->name, AV_WHY(r));
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

bool video_decoder_sender_ns(const struct video_decoder *decoder, const AVFrame *frame,
			     int64_t *out_unix_ns)
{
	return video_sender_time_ns(&decoder->sender, frame->best_effort_timestamp,
				    decoder->stream->time_base, out_unix_ns);
}

double video_decoder_frame_rate(const struct video_decoder *decoder)
{
	AVRational rate = av_guess_frame_rate(decoder->format, decoder->stream, NULL);

	return rate.num > 0 && rate.den > 0 ? av_q2d(rate) : 0.0;
}

const int32_t *video_decoder_matrix(const struct video_decoder *decoder, const AVFrame *frame)
{
	const AVFrameSideData *own = av_frame_get_side_data(frame, AV_FRAME_DATA_DISPLAYMATRIX);
	size_t size = 0;
	const uint8_t *matrix = own != NULL
					? own->data
					: av_stream_get_side_data(decoder->stream,
								  AV_PKT_DATA_DISPLAYMATRIX, &size);

	if (own != NULL)
		size = own->size;
	return size >= 9 * sizeof(int32_t) ? (const int32_t *)(const void *)matrix : NULL;
}

double video_decoder_aspect(const struct video_decoder *decoder, AVFrame *frame)
{
	AVRational aspect = av_guess_sample_aspect_ratio(decoder->format, decoder->stream, frame);

	return aspect.num > 0 && aspect.den > 0 ? av_q2d(aspect) : 0.0;
}
