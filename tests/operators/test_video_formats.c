/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>

#include "video/pixels.h"

/*
 * Every pixel format of FFmpeg's list, in every range and some colour spaces that a file may state, is converted as the
 * program ffmpeg converts it. Each picture holds random values of the whole depth of its format.
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

/* Lets ffmpeg convert all pictures. */
static void judge(const char *stated, enum AVPixelFormat to)
{
	static char command[200000];
	size_t n = (size_t)snprintf(command, sizeof(command),
				    "cd %s && ffmpeg -v error -y -filter_threads 1", folder);

	for (size_t i = 0; i < count; i++) {
		const char *name = av_get_pix_fmt_name(formats[i]);

		n += (size_t)snprintf(
			command + n, sizeof(command) - n,
			" -threads 1 %s -f rawvideo -pixel_format %s -video_size %dx%d -i %s.in",
			stated, name, WIDTH, HEIGHT, name);
	}
	for (size_t i = 0; i < count; i++)
		n += (size_t)snprintf(
			command + n, sizeof(command) - n,
			" -map %zu:v -sws_flags bicubic+accurate_rnd -pix_fmt %s -f rawvideo %s.out",
			i, av_get_pix_fmt_name(to), av_get_pix_fmt_name(formats[i]));
	cr_assert_lt(n, sizeof(command));
	cr_assert_eq(system(command), 0);
}

static void check_all(enum AVColorRange range, enum AVColorSpace space, const char *stated,
		      enum AVPixelFormat to)
{
	size_t size = (size_t)av_image_get_buffer_size(to, WIDTH, HEIGHT, 1);
	uint8_t *out = malloc(size), *expected = malloc(size);
	struct video_pixels pixels = {0};
	AVFrame *frame[FORMATS_MAX];

	for (size_t i = 0; i < count; i++)
		frame[i] = draw(formats[i], range, space);
	judge(stated, to);
	for (size_t i = 0; i < count; i++) {
		const char *name = av_get_pix_fmt_name(formats[i]);
		FILE *file = fopen(in_folder("out", name), "r");

		cr_assert(file != NULL && fread(expected, size, 1, file) == 1, "%s", name);
		fclose(file);
		cr_assert_eq(video_pixels_convert(&pixels, frame[i], to, out), 0, "%s", name);
		cr_expect_arr_eq(out, expected, size, "%s to %s, range %d", name,
				 av_get_pix_fmt_name(to), (int)range);
		av_frame_free(&frame[i]);
	}
	video_pixels_fini(&pixels);
	free(out);
	free(expected);
}

Test(ops_video_formats, without_a_stated_range)
{
	check_all(AVCOL_RANGE_UNSPECIFIED, AVCOL_SPC_UNSPECIFIED, "", AV_PIX_FMT_RGB24);
}

Test(ops_video_formats, of_full_range)
{
	check_all(AVCOL_RANGE_JPEG, AVCOL_SPC_BT2020_NCL, "-color_range pc -colorspace bt2020nc",
		  AV_PIX_FMT_RGB24);
}

Test(ops_video_formats, of_limited_range)
{
	check_all(AVCOL_RANGE_MPEG, AVCOL_SPC_RGB, "-color_range tv -colorspace rgb",
		  AV_PIX_FMT_RGB24);
}
