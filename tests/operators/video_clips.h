/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_OPERATORS_VIDEO_CLIPS_H
#define TESTS_OPERATORS_VIDEO_CLIPS_H

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../video/clip.h"
#include "video/encoder.h"
#include "video/live.h"
#include "video/pixels.h"

/* Clips in a folder of the test, their frames, and what reads them. */

#define FRAMES 40

static char folder[200]; /* of this test; removed with what the test says it made */

static inline void setup(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(folder, sizeof(folder), "%s/frag-video-XXXXXX", tmp != NULL ? tmp : "/tmp");
	cr_assert_not_null(mkdtemp(folder));
}

static inline const char *in_folder(const char *name)
{
	static char path[4][300];
	static unsigned int next;
	char *p = path[next++ % 4];

	snprintf(p, sizeof(path[0]), "%s/%s", folder, name);
	return p;
}

static inline void teardown(void)
{
	static const char *const names[] = {"clip.mkv",   "clip.mp4",    "out.mp4",
					    "out.mkv",    "damaged.mkv", "gray16.pgm",
					    "turned.mov", "turned.rgb"};

	for (size_t i = 0; i < FRAG_COUNT_OF(names); i++)
		unlink(in_folder(names[i]));
	cr_assert_eq(rmdir(folder), 0, "something else was left in %s", folder);
}

static inline struct frame clip_frame(const uint8_t *rgb)
{
	return (struct frame){.data = rgb,
			      .rows = CLIP_ROWS,
			      .columns = CLIP_COLUMNS,
			      .channels = 3,
			      .row_bytes = (size_t)CLIP_COLUMNS * 3};
}

static inline struct video_encoder *begin_file(const char *path, const char *codec, double rate,
					       const struct frame *like)
{
	struct video_encoder_config config = {.path = path,
					      .codec = codec,
					      .frame_rate = rate,
					      .is_fixed = true,
					      .flush_ns = 1000000000};
	struct frag_err err = FRAG_ERR_INIT;
	struct video_encoder *e = NULL;

	config.fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	cr_assert_geq(config.fd, 0);
	cr_assert_eq(video_encoder_open(&config, like, &e, &err), 0, "%s", err.text);
	return e;
}

static inline void record_clip(const char *path, const char *codec, int frames)
{
	static uint8_t rgb[CLIP_BYTES];
	struct frame frame = clip_frame(rgb);
	struct frag_err err = FRAG_ERR_INIT;
	struct video_encoder *e = begin_file(path, codec, CLIP_RATE, &frame);

	for (int n = 0; n < frames; n++) {
		clip_draw(rgb, n, 0);
		cr_assert_eq(video_encoder_add(e, &frame, 0, &err), 0, "%s", err.text);
	}
	cr_assert_eq(video_encoder_close(e, &err), 0, "%s", err.text);
}

static inline void to_rgb(const AVFrame *frame, uint8_t *rgb)
{
	struct video_pixels pixels = {0};
	struct video_picture picture;

	video_picture_of(frame, "rgb8", &(struct video_turn){0}, &picture);
	cr_assert_eq(video_pixels_convert(&pixels, frame, &picture, rgb), 0);
	video_pixels_fini(&pixels);
}

/* The bar codes of a file read 0 .. frames - 1; with `exact` every pixel is as it was drawn. */
static inline void check_clip_by(const struct video_how *how, const char *path, int frames,
				 int exact)
{
	static uint8_t rgb[CLIP_BYTES], drawn[CLIP_BYTES];
	struct frag_err err = FRAG_ERR_INIT;
	struct video_decoder *d = NULL;
	AVFrame *frame = av_frame_alloc();
	int n = 0;

	cr_assert_eq(video_decoder_open(path, "", -1, how, &d, &err), 0, "%s", err.text);
	cr_assert_float_eq(video_decoder_frame_rate(d), CLIP_RATE, 1e-3);
	while (video_decoder_next(d, frame, NULL, &err) == 1) {
		cr_assert(frame->width == CLIP_COLUMNS && frame->height == CLIP_ROWS);
		cr_assert_float_eq((double)video_decoder_time_ns(d, frame), n * 1e9 / CLIP_RATE,
				   1e6);
		to_rgb(frame, rgb);
		cr_assert_eq(clip_number(rgb), n);
		clip_draw(drawn, n++, 0);
		if (exact)
			cr_assert_arr_eq(rgb, drawn, CLIP_BYTES);
	}
	cr_assert_str_empty(err.text);
	cr_assert_eq(n, frames);
	av_frame_free(&frame);
	video_decoder_close(d);
}

static inline void check_clip(const char *path, int frames, int exact)
{
	check_clip_by(NULL, path, frames, exact);
}

#endif
