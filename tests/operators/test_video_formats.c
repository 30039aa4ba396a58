// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>

#include "video/pixels.h"

/*
 * Every pixel format of FFmpeg's list, in every range and some colour spaces that a file may state,
 * is converted as the program ffmpeg converts it without dither. Each picture holds random values
 * of the whole depth of its format.
 */
#define WIDTH 22 /* no multiple of what libswscale works on at once */
#define HEIGHT 6
#define FORMATS_MAX 400

static char folder[200];
static enum AVPixelFormat formats[FORMATS_MAX];
static size_t count;

static const char *in_folder(const char *kind, const char *name)
{
	static char path[2][300];
	static unsigned int next;
	char *p = path[next++ % 2];

	snprintf(p, sizeof(path[0]), "%s/%s.%s", folder, name, kind);
	return p;
}

static void setup(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(folder, sizeof(folder), "%s/frag-formats-XXXXXX", tmp != NULL ? tmp : "/tmp");
	cr_assert_not_null(mkdtemp(folder));
	for (const AVPixFmtDescriptor *d = NULL; (d = av_pix_fmt_desc_next(d)) != NULL;) {
		enum AVPixelFormat format = av_pix_fmt_desc_get_id(d);

		if (sws_isSupportedInput(format) && count < FORMATS_MAX)
			formats[count++] = format;
	}
	cr_assert(count > 150 && count < FORMATS_MAX);
}

static void teardown(void)
{
	for (size_t i = 0; i < count; i++) {
		unlink(in_folder("in", av_get_pix_fmt_name(formats[i])));
		unlink(in_folder("out", av_get_pix_fmt_name(formats[i])));
	}
	cr_assert_eq(rmdir(folder), 0, "something else was left in %s", folder);
}

TestSuite(ops_video_formats, .init = setup, .fini = teardown);

static unsigned int random_below(unsigned int limit)
{
	static unsigned int seed = 17;

	seed = seed * 1103515245u + 12345u;
	return (seed >> 8) % limit;
}

static void put(uint8_t *at, uint64_t value, size_t bytes, bool is_big)
{
	for (size_t i = 0; i < bytes; i++)
		at[is_big ? bytes - 1 - i : i] = (uint8_t)(value >> 8 * i);
}

/* Floats from 0 to 1, of 32 or 16 bits; the latter as large as their bits. */
static void fill_floats(const AVPixFmtDescriptor *d, uint8_t *bytes, size_t size)
{
	size_t each = (size_t)d->comp[0].depth / 8;
	bool is_big = (d->flags & AV_PIX_FMT_FLAG_BE) != 0;

	for (size_t i = 0; i + each <= size; i += each) {
		float value = (float)random_below(65536) / 65535.0f;
		uint32_t bits;

		memcpy(&bits, &value, sizeof(bits));
		put(bytes + i, each == 4 ? bits : random_below(0x3c00), each, is_big);
	}
}

static void fill(AVFrame *frame, uint8_t *bytes, size_t size)
{
	const AVPixFmtDescriptor *d = av_pix_fmt_desc_get(frame->format);

	memset(bytes, 0, size);
	if (d->flags & AV_PIX_FMT_FLAG_FLOAT) {
		fill_floats(d, bytes, size);
		return;
	}
	if (d->flags & (AV_PIX_FMT_FLAG_PAL | AV_PIX_FMT_FLAG_BAYER)) {
		for (size_t i = 0; i < size; i++)
			bytes[i] = (uint8_t)random_below(256);
		return;
	}
	for (int c = 0; c < d->nb_components; c++) {
		bool is_chroma = (c == 1 || c == 2) && !(d->flags & AV_PIX_FMT_FLAG_RGB);
		int w = is_chroma ? AV_CEIL_RSHIFT(WIDTH, d->log2_chroma_w) : WIDTH;
		int h = is_chroma ? AV_CEIL_RSHIFT(HEIGHT, d->log2_chroma_h) : HEIGHT;

		for (int y = 0; y < h; y++) {
			uint16_t row[WIDTH];

			for (int x = 0; x < w; x++)
				row[x] = (uint16_t)random_below(1u << d->comp[c].depth);
			av_write_image_line2(row, frame->data, frame->linesize, d, 0, y, c, w, 2);
		}
	}
}

/* Draws a picture, and writes it for ffmpeg. */
static AVFrame *draw(enum AVPixelFormat format, enum AVColorRange range, enum AVColorSpace space)
{
	int size = av_image_get_buffer_size(format, WIDTH, HEIGHT, 1);
	uint8_t *bytes = calloc(1, (size_t)size);
	AVFrame *packed = av_frame_alloc(), *frame = av_frame_alloc();
	FILE *file = fopen(in_folder("in", av_get_pix_fmt_name(format)), "w");

	packed->format = frame->format = format;
	packed->width = frame->width = WIDTH;
	packed->height = frame->height = HEIGHT;
	cr_assert_geq(av_image_fill_arrays(packed->data, packed->linesize, bytes, format, WIDTH,
					   HEIGHT, 1),
		      0);
	fill(packed, bytes, (size_t)size);
	cr_assert(file != NULL && fwrite(bytes, (size_t)size, 1, file) == 1);
	cr_assert_eq(fclose(file), 0);
	cr_assert_eq(av_frame_get_buffer(frame, 64), 0);
	cr_assert_eq(av_frame_copy(frame, packed), 0);
	frame->color_range = range;
	frame->colorspace = space;
	av_frame_free(&packed);
	free(bytes);
	return frame;
}

/* Whether the numbers stay, but for their byte order. */
static bool is_kept(const AVFrame *frame, const struct video_picture *picture)
{
	return frame->format == picture->format ||
	       frame->format == av_pix_fmt_swap_endianness(picture->format);
}

/* What ffmpeg is to convert a picture to; without an effect where `native` keeps the format. */
static const char *target(const AVFrame *frame, const char *format)
{
	struct video_picture picture;

	video_picture_of(frame, format, &(struct video_turn){0}, &picture);
	return av_get_pix_fmt_name(is_kept(frame, &picture) ? frame->format : picture.format);
}

/* YUV of 8 bits in planes becomes RGB in the quick way, which is FFmpeg's own choice. */
static const char *flags_for(const AVFrame *frame, const char *to)
{
	const enum AVPixelFormat quick[] = {AV_PIX_FMT_YUV420P, AV_PIX_FMT_YUVJ420P,
					    AV_PIX_FMT_YUV422P, AV_PIX_FMT_YUVJ422P};
	bool is_quick = false;

	for (size_t i = 0; strcmp(to, "rgb24") == 0 && i < FRAG_COUNT_OF(quick); i++)
		is_quick |= frame->format == quick[i];
	return is_quick ? "-sws_flags bilinear"
			: "-sws_flags bilinear+accurate_rnd -sws_dither none";
}

/* Lets ffmpeg convert pictures from first on up to end. */
static void judge_some(AVFrame *const *frames, const char *stated, const char *format, size_t first,
		       size_t end)
{
	static char command[200000];
	size_t n = (size_t)snprintf(command, sizeof(command),
				    "cd %s && ffmpeg -v error -y -filter_threads 1", folder);

	for (size_t i = first; i < end; i++) {
		const char *name = av_get_pix_fmt_name(formats[i]);

		n += (size_t)snprintf(
			command + n, sizeof(command) - n,
			" -threads 1 %s -f rawvideo -pixel_format %s -video_size %dx%d -i %s.in",
			stated, name, WIDTH, HEIGHT, name);
	}
	for (size_t i = first; i < end; i++) {
		const char *to = target(frames[i], format);

		n += (size_t)snprintf(command + n, sizeof(command) - n,
				      " -map %zu:v %s -pix_fmt %s -f rawvideo %s.out", i - first,
				      flags_for(frames[i], to), to,
				      av_get_pix_fmt_name(formats[i]));
	}
	cr_assert_lt(n, sizeof(command));
	cr_assert_eq(system(command), 0);
}

/* Lets ffmpeg convert all pictures; of each it holds two files. */
static void judge(AVFrame *const *frames, const char *stated, const char *format)
{
	const size_t at_once = 64;

	for (size_t i = 0; i < count; i += at_once)
		judge_some(frames, stated, format, i, i + at_once < count ? i + at_once : count);
}

/*
 * Gray and RGB of the full range become 16 bits exactly, which libswscale does not do: white is
 * 65535. Overwrites what ffmpeg has made of such a picture.
 */
static void widen(const AVFrame *frame, const struct video_picture *picture, uint16_t *expected)
{
	const AVPixFmtDescriptor *d = av_pix_fmt_desc_get(frame->format);
	bool is_rgb = (d->flags & AV_PIX_FMT_FLAG_RGB) != 0;
	int colours = is_rgb ? 3 : 1;

	if (picture->dtype.bits != 16 || is_kept(frame, picture) ||
	    (d->flags & (AV_PIX_FMT_FLAG_PAL | AV_PIX_FMT_FLAG_BITSTREAM | AV_PIX_FMT_FLAG_BAYER |
			 AV_PIX_FMT_FLAG_FLOAT)) ||
	    (is_rgb ? picture->shape[2] == 1
		    : d->nb_components > 2 || frame->color_range == AVCOL_RANGE_MPEG))
		return;
	for (int i = 0; i < WIDTH * HEIGHT * (int)picture->shape[2]; i++) {
		int channel = i % (int)picture->shape[2], at = i / (int)picture->shape[2];
		int c = channel == 3 ? colours : channel % colours;
		uint16_t value;

		av_read_image_line2(&value, (const uint8_t **)frame->data, frame->linesize, d,
				    at % WIDTH, at / WIDTH, c, 1, 0, 2);
		expected[i] = (uint16_t)(value * 65535.0 / ((1 << d->comp[c].depth) - 1) + 0.5);
	}
}

static void check_one(struct video_pixels *pixels, const AVFrame *frame, const char *format)
{
	const char *name = av_get_pix_fmt_name(frame->format);
	FILE *file = fopen(in_folder("out", name), "r");
	struct video_picture picture;
	uint8_t *out, *expected;
	size_t size, bytes;

	video_picture_of(frame, format, &(struct video_turn){0}, &picture);
	bytes = picture.dtype.bits / 8;
	size = (size_t)(picture.shape[0] * picture.shape[1] * picture.shape[2]) * bytes;
	cr_assert_eq(size, av_image_get_buffer_size(picture.format, WIDTH, HEIGHT, 1));
	out = malloc(size);
	expected = malloc(size);
	cr_assert(file != NULL && fread(expected, size, 1, file) == 1, "%s", name);
	fclose(file);
	for (size_t i = 0; is_kept(frame, &picture) && frame->format != picture.format && i < size;
	     i += bytes) {
		for (size_t low = 0; low < bytes / 2; low++) {
			uint8_t byte = expected[i + low];

			expected[i + low] = expected[i + bytes - 1 - low];
			expected[i + bytes - 1 - low] = byte;
		}
	}
	widen(frame, &picture, (uint16_t *)expected);
	cr_assert_eq(video_pixels_convert(pixels, frame, &picture, out), 0, "%s", name);
	cr_expect_arr_eq(out, expected, size, "%s to %s, range %d", name, format,
			 (int)frame->color_range);
	free(out);
	free(expected);
}

static void check_all(enum AVColorRange range, enum AVColorSpace space, const char *stated,
		      const char *format)
{
	struct video_pixels pixels = {0};
	AVFrame *frames[FORMATS_MAX];

	for (size_t i = 0; i < count; i++)
		frames[i] = draw(formats[i], range, space);
	judge(frames, stated, format);
	for (size_t i = 0; i < count; i++) {
		check_one(&pixels, frames[i], format);
		av_frame_free(&frames[i]);
	}
	video_pixels_fini(&pixels);
}

Test(ops_video_formats, without_a_stated_range)
{
	check_all(AVCOL_RANGE_UNSPECIFIED, AVCOL_SPC_UNSPECIFIED, "", "rgb8");
}

Test(ops_video_formats, of_full_range)
{
	check_all(AVCOL_RANGE_JPEG, AVCOL_SPC_BT2020_NCL, "-color_range pc -colorspace bt2020nc",
		  "rgb8");
}

Test(ops_video_formats, of_limited_range)
{
	check_all(AVCOL_RANGE_MPEG, AVCOL_SPC_RGB, "-color_range tv -colorspace rgb", "rgb8");
}

Test(ops_video_formats, to_gray)
{
	check_all(AVCOL_RANGE_UNSPECIFIED, AVCOL_SPC_BT709, "-colorspace bt709", "gray8");
}

Test(ops_video_formats, to_gray_of_16_bits)
{
	check_all(AVCOL_RANGE_UNSPECIFIED, AVCOL_SPC_UNSPECIFIED, "", "gray16");
}

Test(ops_video_formats, to_16_bits)
{
	check_all(AVCOL_RANGE_MPEG, AVCOL_SPC_UNSPECIFIED, "-color_range tv", "rgb16");
}

Test(ops_video_formats, to_16_bits_of_the_full_range)
{
	check_all(AVCOL_RANGE_UNSPECIFIED, AVCOL_SPC_UNSPECIFIED, "", "rgb16");
}

/* By numbers, beside what ffmpeg and libavutil say. */
Test(ops_video_formats, white_is_65535)
{
	static const struct {
		enum AVPixelFormat format;
		const char *to;
		uint16_t in[4], out[4];
	} cases[] = {
		{AV_PIX_FMT_GRAY8, "gray16", {0, 10, 128, 255}, {0, 2570, 32896, 65535}},
		{AV_PIX_FMT_GRAY8, "rgb16", {0, 10, 128, 255}, {0, 2570, 32896, 65535}},
		{AV_PIX_FMT_GRAY10, "rgb16", {0, 1, 512, 1023}, {0, 64, 32800, 65535}},
		{AV_PIX_FMT_GRAY12, "gray16", {0, 1, 2048, 4095}, {0, 16, 32776, 65535}},
		{AV_PIX_FMT_GRAY16, "rgb16", {0, 1, 32768, 65535}, {0, 1, 32768, 65535}},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct video_pixels pixels = {0};
		struct video_picture picture;
		AVFrame *frame = av_frame_alloc();
		uint16_t out[12];

		frame->format = cases[i].format;
		frame->width = 4;
		frame->height = 1;
		cr_assert_eq(av_frame_get_buffer(frame, 64), 0);
		for (int x = 0; x < 4; x++)
			if (cases[i].format == AV_PIX_FMT_GRAY8)
				frame->data[0][x] = (uint8_t)cases[i].in[x];
			else
				memcpy(frame->data[0] + 2 * x, &cases[i].in[x], 2);
		video_picture_of(frame, cases[i].to, &(struct video_turn){0}, &picture);
		cr_assert_eq(video_pixels_convert(&pixels, frame, &picture, (uint8_t *)out), 0);
		for (int x = 0; x < 4 * (int)picture.shape[2]; x++)
			cr_expect_eq(out[x], cases[i].out[x / picture.shape[2]], "%zu: %d: %u", i,
				     x, out[x]);
		video_pixels_fini(&pixels);
		av_frame_free(&frame);
	}
}

Test(ops_video_formats, as_they_are)
{
	struct video_picture picture;
	AVFrame *frame = av_frame_alloc();
	static const struct {
		enum AVPixelFormat from, to;
	} kept[] = {
		{AV_PIX_FMT_GRAY8, AV_PIX_FMT_GRAY8},
		{AV_PIX_FMT_GRAY10BE, AV_PIX_FMT_GRAY10},
		{AV_PIX_FMT_GRAY16LE, AV_PIX_FMT_GRAY16},
		{AV_PIX_FMT_BAYER_GRBG8, AV_PIX_FMT_BAYER_GRBG8},
		{AV_PIX_FMT_BAYER_RGGB16BE, AV_PIX_FMT_BAYER_RGGB16},
		{AV_PIX_FMT_YA8, AV_PIX_FMT_RGBA},
		{AV_PIX_FMT_YUV420P, AV_PIX_FMT_RGB24},
		{AV_PIX_FMT_P010LE, AV_PIX_FMT_RGB48},
		{AV_PIX_FMT_GBRAP12LE, AV_PIX_FMT_RGBA64},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(kept); i++) {
		frame->format = kept[i].from;
		video_picture_of(frame, "native", &(struct video_turn){0}, &picture);
		cr_assert_eq(picture.format, kept[i].to, "%s", av_get_pix_fmt_name(kept[i].from));
	}
	av_frame_free(&frame);
	check_all(AVCOL_RANGE_UNSPECIFIED, AVCOL_SPC_UNSPECIFIED, "", "native");
}
