// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/pixdesc.h>

#include "video/encoder.h"
#include "video/video.h"

#include "recorded.h"

/* ---- what a recorder writes ---- */

/* A sum in which each place has its weight. Only what ffv1 keeps is the same with each FFmpeg. */
static unsigned int sum_of(const AVFrame *frame)
{
	unsigned int sum = 0;

	for (int y = 0; y < frame->height; y++)
		for (int x = 0; x < frame->linesize[0] && x < frame->width; x++)
			sum += (unsigned int)(x + 3 * y + 1) *
			       frame->data[0][y * frame->linesize[0] + x];
	return sum;
}

static void print_packet(AVCodecContext *codec, const AVStream *stream, AVPacket *packet)
{
	AVFrame *frame = av_frame_alloc();
	double ms = av_q2d(stream->time_base) * 1e3;

	fprintf(out, " %.1f+%.1f", (double)packet->pts * ms, (double)packet->duration * ms);
	if (codec->codec_id == AV_CODEC_ID_FFV1 && avcodec_send_packet(codec, packet) == 0 &&
	    avcodec_receive_frame(codec, frame) == 0)
		fprintf(out, "=%u", sum_of(frame));
	av_frame_free(&frame);
	av_packet_unref(packet);
}

/* Prints what is in a video file: its frames with times in ms. */
static bool print_video(const char *path)
{
	AVFormatContext *format = NULL;
	AVPacket *packet = av_packet_alloc();
	const AVCodecParameters *is;
	AVCodecContext *codec;
	AVStream *stream;

	if (avformat_open_input(&format, path, NULL, NULL) < 0) {
		av_packet_free(&packet);
		return false;
	}
	cr_assert(avformat_find_stream_info(format, NULL) >= 0 && format->nb_streams > 0);
	stream = format->streams[0];
	is = stream->codecpar;
	codec = avcodec_alloc_context3(avcodec_find_decoder(is->codec_id));
	cr_assert(avcodec_parameters_to_context(codec, is) >= 0 &&
		  avcodec_open2(codec, NULL, NULL) >= 0);
	fprintf(out, "  file %s: %s %d x %d %s, pixels of %d:%d,", path,
		avcodec_get_name(is->codec_id), is->width, is->height,
		av_get_pix_fmt_name(is->format), stream->sample_aspect_ratio.num,
		stream->sample_aspect_ratio.den);
	while (av_read_frame(format, packet) >= 0)
		print_packet(codec, stream, packet);
	fprintf(out, ", in all %lld ms\n", (long long)format->duration / 1000);
	avcodec_free_context(&codec);
	avformat_close_input(&format);
	av_packet_free(&packet);
	return true;
}

Test(recorded, video_recorder)
{
	print_other = print_video;
	record(&(struct subject){.type = &video_recorder_type, .name = "video_recorder"});
}

/* ---- what a replayer plays ---- */

static void write_clip(const char *path, const char *like, int frames)
{
	struct video_encoder_config config = {.path = path,
					      .codec = "ffv1",
					      .frame_rate = 25.0,
					      .aspect = 1.5,
					      .flush_ns = 1000000000,
					      .stop_fd = -1};
	static const int64_t times_ms[] = {0, 40, 80, 200, 240};
	struct frag_err err = FRAG_ERR_INIT;
	struct video_encoder *e = NULL;
	uint32_t seed = 3;

	config.fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	for (int i = 0; i < frames; i++) {
		struct frag_tensor *tensor = sample_tensor(like, &seed);
		const struct frag_dltensor *dl = frag_tensor_dl(tensor);
		struct frame frame = {.data = frag_tensor_data(tensor),
				      .rows = dl->shape[0],
				      .columns = dl->shape[1],
				      .channels = dl->shape[2],
				      .is_deep = dl->dtype.bits == 16};

		frame.row_bytes =
			(size_t)(frame.columns * frame.channels) * frame_element_bytes(&frame);
		if (e == NULL)
			cr_assert_eq(video_encoder_open(&config, &frame, &e, &err), 0, "%s",
				     err.text);
		cr_assert_eq(video_encoder_add(e, &frame, times_ms[i] * 1000000, &err), 0, "%s",
			     err.text);
		frag_tensor_unref(tensor);
	}
	cr_assert_eq(video_encoder_close(e, &err), 0, "%s", err.text);
}

static void write_clips(void)
{
	write_clip("clip.mkv", "u8[6x8x3]", 5);
	write_clip("one.mkv", "u8[6x8x1]", 1);
	write_clip("rgba.mkv", "u8[5x7x4]", 2);
	write_clip("deep.mkv", "u16[4x6x1]", 2);
	write_clip("cut.mkv", "u8[6x8x3]", 5);
	cr_assert_eq(truncate("cut.mkv", 900), 0);
}

Test(recorded, video_replayer)
{
	record(&(struct subject){.type = &video_replayer_type,
				 .name = "video_replayer",
				 .prepare = write_clips,
				 .ends = true});
}
