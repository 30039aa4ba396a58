// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"
#include "../video/clip.h"
#include "video/decoder.h"
#include "video/encoder.h"
#include "video/live.h"
#include "video/pixels.h"
#include "video/video.h"
#include "vision/vision.h"

#define FRAMES 40

static char folder[200]; /* of this test; removed with what the test says it made */

static void setup(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(folder, sizeof(folder), "%s/frag-video-XXXXXX", tmp != NULL ? tmp : "/tmp");
	cr_assert_not_null(mkdtemp(folder));
}

static const char *in_folder(const char *name)
{
	static char path[4][300];
	static unsigned int next;
	char *p = path[next++ % 4];

	snprintf(p, sizeof(path[0]), "%s/%s", folder, name);
	return p;
}

static void teardown(void)
{
	static const char *const names[] = {"clip.mkv",   "clip.mp4",    "out.mp4",
					    "out.mkv",    "damaged.mkv", "gray16.pgm",
					    "turned.mov", "turned.rgb"};

	for (size_t i = 0; i < FRAG_COUNT_OF(names); i++)
		unlink(in_folder(names[i]));
	cr_assert_eq(rmdir(folder), 0, "something else was left in %s", folder);
}

TestSuite(ops_video, .init = setup, .fini = teardown);

static struct frame clip_frame(const uint8_t *rgb)
{
	return (struct frame){.data = rgb,
			      .rows = CLIP_ROWS,
			      .columns = CLIP_COLUMNS,
			      .channels = 3,
			      .row_bytes = (size_t)CLIP_COLUMNS * 3};
}

static struct video_encoder *begin_file(const char *path, const char *codec, double rate,
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

static void record_clip(const char *path, const char *codec, int frames)
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

static void to_rgb(const AVFrame *frame, uint8_t *rgb)
{
	struct video_pixels pixels = {0};
	struct video_picture picture;

	video_picture_of(frame, "rgb8", &(struct video_turn){0}, &picture);
	cr_assert_eq(video_pixels_convert(&pixels, frame, &picture, rgb), 0);
	video_pixels_fini(&pixels);
}

/* The bar codes of a file read 0 .. frames - 1; with `exact` every pixel is as it was drawn. */
static void check_clip_by(const struct video_how *how, const char *path, int frames, int exact)
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

static void check_clip(const char *path, int frames, int exact)
{
	check_clip_by(NULL, path, frames, exact);
}

Test(ops_video, threads_decode_the_same_frames)
{
	record_clip(in_folder("out.mkv"), "ffv1", FRAMES);
	for (int threads = 0; threads <= 4; threads += 2)
		check_clip_by(&(struct video_how){.threads = threads}, in_folder("out.mkv"), FRAMES,
			      1);
	record_clip(in_folder("out.mp4"), "auto", FRAMES);
	check_clip_by(&(struct video_how){.threads = 4}, in_folder("out.mp4"), FRAMES, 0);
}

Test(ops_video, files_hold_every_frame_in_order)
{
	record_clip(in_folder("out.mkv"), "ffv1", FRAMES);
	check_clip(in_folder("out.mkv"), FRAMES, 1);
	record_clip(in_folder("out.mp4"), "mpeg4", FRAMES);
	check_clip(in_folder("out.mp4"), FRAMES, 0);
	record_clip(in_folder("out.mp4"), "auto", FRAMES);
	check_clip(in_folder("out.mp4"), FRAMES, 0);
}

Test(ops_video, files_of_odd_sizes)
{
	static const struct {
		const char *codec, *name;
	} kinds[] = {{"auto", "out.mp4"}, {"mpeg4", "out.mp4"}, {"ffv1", "out.mkv"}};
	uint8_t rgb[33 * 35 * 3], back[33 * 35 * 3];

	for (size_t k = 0; k < FRAG_COUNT_OF(kinds); k++) {
		struct frame frame = {
			.data = rgb, .rows = 33, .columns = 35, .channels = 3, .row_bytes = 35 * 3};
		struct frag_err err = FRAG_ERR_INIT;
		struct video_encoder *e;
		struct video_decoder *d = NULL;
		AVFrame *f = av_frame_alloc();

		for (int y = 0; y < 33; y++)
			memset(rgb + y * 35 * 3, 40 + 5 * y, 35 * 3);
		e = begin_file(in_folder(kinds[k].name), kinds[k].codec, 10, &frame);
		cr_assert_eq(video_encoder_add(e, &frame, 0, &err), 0, "%s", err.text);
		cr_assert_eq(video_encoder_close(e, &err), 0, "%s", err.text);
		cr_assert_eq(video_decoder_open(in_folder(kinds[k].name), "", -1, NULL, &d, &err),
			     0, "%s", err.text);
		cr_assert_eq(video_decoder_next(d, f, NULL, &err), 1, "%s", err.text);
		cr_assert(f->width == 35 && f->height == 33);
		to_rgb(f, back);
		for (size_t i = 0; i < sizeof(rgb); i++)
			cr_assert_lt(abs(rgb[i] - back[i]), 16, "%s at %zu", kinds[k].codec, i);
		av_frame_free(&f);
		video_decoder_close(d);
	}
}

/*
 * Ticks a replayer once; the frame's bar code must be number and its metadata frame. Returns
 * compute's.
 */
static int replay_one(struct frag_harness *h, int number, int64_t frame)
{
	struct frag_message *m = NULL;
	const struct frag_metadata *metadata;
	const struct frag_tensor *t;
	int64_t told = -1, pts_ns = -1, time_ns = -1;
	uint64_t sequence = UINT64_MAX;
	uint32_t clock = UINT32_MAX;
	int r = frag_harness_tick(h);

	cr_assert_geq(r, 0, "%s", frag_harness_error(h));
	cr_assert_eq(frag_harness_take(h, "output", &m), 0);
	t = frag_message_tensor(m, "");
	cr_assert_not_null(t);
	cr_assert_eq(frag_tensor_size_bytes(t), CLIP_BYTES);
	cr_assert_eq(clip_number(frag_tensor_data(t)), number);
	metadata = frag_message_metadata(m);
	cr_assert_not_null(metadata);
	cr_assert_eq(frag_metadata_get_i64(metadata, "frame", &told), 0);
	cr_assert_eq(told, frame);
	cr_assert_eq(frag_metadata_get_i64(metadata, "pts_ns", &pts_ns), 0);
	cr_assert_float_eq((double)pts_ns, (double)frame * 1e9 / CLIP_RATE, 1e6);
	cr_assert_eq(frag_message_acquisition(m, &time_ns, &clock), 0);
	cr_assert(time_ns == pts_ns && clock == FRAG_CLOCK_MEDIA);
	cr_assert(frag_message_sequence(m, &sequence) == 0 && sequence == (uint64_t)frame);
	frag_message_unref(m);
	return r;
}

Test(ops_video, replayer_plays_to_the_end)
{
	struct frag_harness *h;

	record_clip(in_folder("clip.mp4"), "auto", FRAMES);
	h = make(&video_replayer_type,
		 FRAG_ARGS({"path", in_folder("clip.mp4")}, {"realtime", "false"}));
	for (int n = 0; n < FRAMES; n++)
		cr_assert_eq(replay_one(h, n, n), n + 1 < FRAMES ? 0 : FRAG_DONE);
	frag_harness_destroy(h);
}

Test(ops_video, replayer_counts_and_repeats)
{
	struct frag_harness *h;

	record_clip(in_folder("clip.mkv"), "ffv1", 5);
	h = make(&video_replayer_type,
		 FRAG_ARGS({"directory", folder}, {"basename", "clip"}, {"realtime", "false"},
			   {"repeat", "true"}, {"count", "12"}));
	for (int n = 0; n < 12; n++)
		cr_assert_eq(replay_one(h, n % 5, n), n + 1 < 12 ? 0 : FRAG_DONE);
	frag_harness_destroy(h);
}

/* The elements of the only frame of a file, and the format that its metadata states, or "". */
static void replay_picture(const char *path, const char *format, void *out, size_t size,
			   const char **out_stated)
{
	struct frag_harness *h =
		make(&video_replayer_type, FRAG_ARGS({"path", path}, {"format", format}));
	struct frag_message *m = NULL;
	const struct frag_tensor *t;
	static char kept[32];

	cr_assert_eq(frag_harness_tick(h), FRAG_DONE, "%s", frag_harness_error(h));
	cr_assert_eq(frag_harness_take(h, "output", &m), 0);
	t = frag_message_tensor(m, "");
	cr_assert_eq(frag_tensor_size_bytes(t), size, "%s", format);
	memcpy(out, frag_tensor_data(t), size);
	*out_stated = "";
	(void)frag_metadata_get_string(frag_message_metadata(m), "pixel_format", out_stated);
	snprintf(kept, sizeof(kept), "%s", *out_stated);
	*out_stated = kept;
	finish(h, m);
}

Test(ops_video, replayer_sends_the_format_that_is_wanted)
{
	static const uint8_t pgm[] = "P5\n4 1\n65535\n\x00\x00\x0a\x00\x80\x00\xff\xff";
	const uint8_t gray8[] = {0, 10, 128, 255},
		      rgb8[] = {0, 0, 0, 10, 10, 10, 128, 128, 128, 255, 255, 255};
	const uint16_t gray16[] = {0, 0x0a00, 0x8000, 0xffff};
	FILE *file = fopen(in_folder("gray16.pgm"), "w");
	const char *stated;
	uint8_t bytes[24];
	uint16_t words[12];

	cr_assert(file != NULL && fwrite(pgm, sizeof(pgm) - 1, 1, file) == 1);
	fclose(file);
	replay_picture(in_folder("gray16.pgm"), "rgb8", bytes, sizeof(rgb8), &stated);
	cr_assert_arr_eq(bytes, rgb8, sizeof(rgb8));
	cr_assert_str_eq(stated, "");
	replay_picture(in_folder("gray16.pgm"), "gray8", bytes, sizeof(gray8), &stated);
	cr_assert_arr_eq(bytes, gray8, sizeof(gray8));
	replay_picture(in_folder("gray16.pgm"), "gray16", words, sizeof(gray16), &stated);
	cr_assert_arr_eq(words, gray16, sizeof(gray16));
	replay_picture(in_folder("gray16.pgm"), "native", words, sizeof(gray16), &stated);
	cr_assert_arr_eq(words, gray16, sizeof(gray16));
	cr_assert_str_eq(stated, "gray16le");
	replay_picture(in_folder("gray16.pgm"), "rgb16", words, sizeof(words), &stated);
	for (size_t i = 0; i < FRAG_COUNT_OF(words); i++)
		cr_assert_eq(words[i], gray16[i / 3]);
}

/* Writes the matrix of a file's only track: where its container says how frames are shown. */
static void set_matrix(const char *path, const int32_t abcd[4])
{
	static uint8_t bytes[20000];
	FILE *file = fopen(path, "r+");
	size_t size = file != NULL ? fread(bytes, 1, sizeof(bytes), file) : 0, at = 0;
	const int32_t matrix[9] = {
		abcd[0] * 65536, abcd[1] * 65536, 0, abcd[2] * 65536, abcd[3] * 65536, 0, 0, 0,
		1 << 30};

	while (at + 80 < size && memcmp(bytes + at, "tkhd", 4) != 0)
		at++;
	cr_assert_lt(at + 80, size);
	for (size_t i = 0; i < 9; i++) {
		for (size_t b = 0; b < 4; b++)
			bytes[at + 44 + 4 * i + b] = (uint8_t)((uint32_t)matrix[i] >> (24 - 8 * b));
	}
	cr_assert_eq(fseek(file, 0, SEEK_SET), 0);
	cr_assert_eq(fwrite(bytes, size, 1, file), 1);
	cr_assert_eq(fclose(file), 0);
}

/* Plays the only frame of a file. */
static struct frag_message *play_one(const char *path, const char *auto_rotate)
{
	struct frag_harness *h =
		make(&video_replayer_type, FRAG_ARGS({"path", path}, {"auto_rotate", auto_rotate}));
	struct frag_message *m = NULL;

	cr_assert_eq(frag_harness_tick(h), FRAG_DONE, "%s", frag_harness_error(h));
	cr_assert_eq(frag_harness_take(h, "output", &m), 0);
	frag_harness_destroy(h);
	return m;
}

static double stated(const struct frag_message *m, const char *key)
{
	double value = 0.0;

	(void)frag_metadata_get_f64(frag_message_metadata(m), key, &value);
	return value;
}

/* All eight ways to turn and mirror, as the program ffmpeg does it. Pixels of 2 : 3 turn too. */
static void check_turns(const char *codec, const char *flags)
{
	static const struct {
		int32_t abcd[4];
		double degrees;
		int mirrored;
	} ways[] = {
		{{1, 0, 0, 1}, 0, 0},    {{0, 1, -1, 0}, 90, 0}, {{-1, 0, 0, -1}, 180, 0},
		{{0, -1, 1, 0}, 270, 0}, {{-1, 0, 0, 1}, 0, 1},  {{0, -1, -1, 0}, 90, 1},
		{{1, 0, 0, -1}, 180, 1}, {{0, 1, 1, 0}, 270, 1},
	};
	const size_t size = 22 * 14 * 3;
	uint8_t expected[22 * 14 * 3], flat[22 * 14 * 3];
	struct frag_message *m;
	char command[700];

	snprintf(command, sizeof(command),
		 "cd %s && ffmpeg -v error -y -f lavfi -i testsrc2=size=22x14 -frames:v 1 "
		 "-vf setsar=2/3 %s turned.mov",
		 folder, codec);
	cr_assert_eq(system(command), 0);
	for (size_t i = 0; i < FRAG_COUNT_OF(ways); i++) {
		bool swaps = ways[i].abcd[0] == 0;
		const int64_t *shape;
		int mirrored = 0;
		FILE *file;

		set_matrix(in_folder("turned.mov"), ways[i].abcd);
		snprintf(
			command, sizeof(command),
			"cd %s && ffmpeg -v error -y -i turned.mov %s -pix_fmt rgb24 -f rawvideo turned.rgb",
			folder, flags);
		cr_assert_eq(system(command), 0);
		file = fopen(in_folder("turned.rgb"), "r");
		cr_assert(file != NULL && fread(expected, size, 1, file) == 1);
		fclose(file);
		m = play_one(in_folder("turned.mov"), "true");
		shape = frag_tensor_dl(frag_message_tensor(m, ""))->shape;
		cr_assert(shape[0] == (swaps ? 22 : 14) && shape[1] == (swaps ? 14 : 22));
		cr_assert_arr_eq(frag_tensor_data(frag_message_tensor(m, "")), expected, size,
				 "way %zu", i);
		cr_assert_float_eq(stated(m, "sample_aspect_ratio"), swaps ? 1.5 : 2.0 / 3.0, 1e-9);
		cr_assert(stated(m, "rotation") == 0.0);
		cr_assert_lt(
			frag_metadata_get_bool(frag_message_metadata(m), "mirrored", &mirrored), 0);
		frag_message_unref(m);

		m = play_one(in_folder("turned.mov"), "false");
		shape = frag_tensor_dl(frag_message_tensor(m, ""))->shape;
		cr_assert(shape[0] == 14 && shape[1] == 22);
		if (i == 0)
			memcpy(flat, frag_tensor_data(frag_message_tensor(m, "")), size);
		cr_assert_arr_eq(frag_tensor_data(frag_message_tensor(m, "")), flat, size);
		cr_assert_float_eq(stated(m, "sample_aspect_ratio"), 2.0 / 3.0, 1e-9);
		cr_assert_float_eq(stated(m, "rotation"), ways[i].degrees, 1e-9, "way %zu", i);
		(void)frag_metadata_get_bool(frag_message_metadata(m), "mirrored", &mirrored);
		cr_assert_eq(mirrored, ways[i].mirrored, "way %zu", i);
		frag_message_unref(m);
	}
	set_matrix(in_folder("turned.mov"), (const int32_t[]){1, 1, -1, 1});
	m = play_one(in_folder("turned.mov"), "true");
	cr_assert_arr_eq(frag_tensor_data(frag_message_tensor(m, "")), flat, size);
	cr_assert_float_eq(stated(m, "rotation"), 45.0, 1e-9);
	frag_message_unref(m);
}

Test(ops_video, replayer_turns_and_mirrors_frames)
{
	check_turns("-pix_fmt rgb24 -c:v png", "");
	check_turns("-pix_fmt yuv420p -c:v libx264 -qp 0", "-sws_flags bilinear");
	check_turns("-pix_fmt yuv444p -c:v libx264 -qp 0",
		    "-sws_flags bilinear+accurate_rnd -sws_dither none");
}

/* 8 frames at 25 a second: the last is due 7 / 25 s after the first. */
Test(ops_video, replayer_keeps_time)
{
	struct frag_harness *h;

	record_clip(in_folder("clip.mp4"), "mpeg4", 8);
	h = make(&video_replayer_type, FRAG_ARGS({"path", in_folder("clip.mp4")}));
	for (int n = 0; n < 8; n++) {
		replay_one(h, n, n);
		cr_assert_float_eq(frag_clock_time(frag_harness_clock(h)), (double)n / CLIP_RATE,
				   0.001);
	}
	frag_harness_destroy(h);
}

Test(ops_video, replayer_says_what_is_missing)
{
	static const struct {
		struct frag_arg args[3];
		const char *says;
	} cases[] = {
		{{{"path", "/nowhere/clip.mp4"}}, "/nowhere/clip.mp4"},
		{{{"directory", "/nowhere"}, {"basename", "clip"}}, "no video clip in /nowhere"},
		{{{"directory", "/nowhere"}}, "give path"},
		{{{"path", "/proc/self/status"}}, "/proc/self/status"},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct frag_err err = FRAG_ERR_INIT;

		cr_assert_null(frag_harness_create(&video_replayer_type, cases[i].args, &err),
			       "case %zu", i);
		cr_assert(strstr(err.text, cases[i].says) != NULL, "case %zu said: %s", i,
			  err.text);
	}
}

/* However slow a receiver is, it gets frames in order and the last one; all others are counted. */
Test(ops_video, live_keeps_the_newest_frame)
{
	static uint8_t rgb[CLIP_BYTES];
	int64_t left_out = 0, skipped = 0, taken = 0;
	struct frag_err err = FRAG_ERR_INIT;
	struct video_decoder *d = NULL;
	struct video_live *live = NULL;
	AVFrame *frame = av_frame_alloc();
	int last = -1, r;

	record_clip(in_folder("clip.mkv"), "ffv1", FRAMES);
	cr_assert_eq(video_decoder_open(in_folder("clip.mkv"), "", -1, NULL, &d, &err), 0);
	cr_assert_eq(video_live_create(d, -1, &live), 0);
	while ((r = video_live_take(live, frame, &left_out, &skipped, &err)) == 1) {
		to_rgb(frame, rgb);
		cr_assert_gt(clip_number(rgb), last);
		last = clip_number(rgb);
		taken++;
	}
	cr_assert(r == 0 && last == FRAMES - 1 && skipped == 0);
	cr_assert_eq(taken + left_out, FRAMES);
	video_live_destroy(live);
	video_decoder_close(d);

	/* one that is not read to its end */
	cr_assert_eq(video_decoder_open(in_folder("clip.mkv"), "", -1, NULL, &d, &err), 0);
	cr_assert_eq(video_live_create(d, -1, &live), 0);
	cr_assert_eq(video_live_take(live, frame, &left_out, &skipped, &err), 1);
	video_live_destroy(live);
	video_decoder_close(d);
	av_frame_free(&frame);
}

/* Bytes in the middle of the file overwritten: frames are missing, the others play. */
Test(ops_video, replayer_skips_damage)
{
	static const char noise[2000] = {1};
	struct frag_harness *h;
	FILE *file;
	int frames = 0, r = 0;

	record_clip(in_folder("damaged.mkv"), "ffv1", FRAMES);
	file = fopen(in_folder("damaged.mkv"), "r+");
	cr_assert_not_null(file);
	fseek(file, 0, SEEK_END);
	fseek(file, ftell(file) / 2, SEEK_SET);
	cr_assert_eq(fwrite(noise, sizeof(noise), 1, file), 1);
	fclose(file);
	h = make(&video_replayer_type,
		 FRAG_ARGS({"path", in_folder("damaged.mkv")}, {"realtime", "false"}));
	while (r == 0) {
		struct frag_message *m = NULL;

		r = frag_harness_tick(h);
		frames += frag_harness_take(h, "output", &m) == 0;
		frag_message_unref(m);
	}
	cr_assert_eq(r, FRAG_DONE, "%s", frag_harness_error(h));
	cr_assert_gt(frames, FRAMES / 2);
	frag_harness_destroy(h);
}

static void give_clip(struct frag_harness *h, const char *port, int n)
{
	int64_t shape[] = {CLIP_ROWS, CLIP_COLUMNS, 3};
	struct frag_tensor *t;

	cr_assert_eq(
		frag_tensor_create(NULL, (struct frag_dtype){FRAG_DTYPE_UINT, 8, 1}, 3, shape, &t),
		0);
	clip_draw(frag_tensor_writable(t), n, 0);
	give_tensor(h, port, "", t);
}

Test(ops_video, recorder_writes_one_frame_a_message)
{
	struct frag_harness *h =
		make(&video_recorder_type,
		     FRAG_ARGS({"directory", folder}, {"basename", "out"}, {"frame_rate", "25"}));

	for (int n = 0; n < FRAMES; n++) {
		give_clip(h, "input", n);
		cr_assert_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
	}
	frag_harness_destroy(h);
	check_clip(in_folder("out.mp4"), FRAMES, 0);
}

Test(ops_video, recorder_finishes_its_file_after_a_failure)
{
	struct frag_harness *h =
		make(&video_recorder_type, FRAG_ARGS({"path", in_folder("out.mkv")},
						     {"codec", "ffv1"}, {"frame_rate", "25"}));
	int64_t shape[] = {8, 8, 3};
	struct frag_tensor *t;

	for (int n = 0; n < 7; n++) {
		give_clip(h, "input", n);
		cr_assert_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
	}
	cr_assert_eq(
		frag_tensor_create(NULL, (struct frag_dtype){FRAG_DTYPE_UINT, 8, 1}, 3, shape, &t),
		0);
	give_tensor(h, "input", "", t);
	cr_assert_eq(frag_harness_tick(h), -EINVAL);
	cr_assert(strstr(frag_harness_error(h), "8 x 8 x 3") != NULL, "said: %s",
		  frag_harness_error(h));
	frag_harness_destroy(h);
	check_clip(in_folder("out.mkv"), 7, 1);
}

static struct frag_tensor *deep_frame(uint16_t first)
{
	int64_t shape[] = {5, 7, 1};
	struct frag_tensor *t;

	cr_assert_eq(
		frag_tensor_create(NULL, (struct frag_dtype){FRAG_DTYPE_UINT, 16, 1}, 3, shape, &t),
		0);
	for (int i = 0; i < 35; i++)
		((uint16_t *)frag_tensor_writable(t))[i] = (uint16_t)(first + 1873 * i);
	return t;
}

/* ffv1 keeps all 16 bits, and the replayer gives them back; other codecs have 8. */
Test(ops_video, recorder_keeps_16_bits_with_ffv1)
{
	struct frag_harness *h = make(&video_recorder_type,
				      FRAG_ARGS({"path", in_folder("out.mkv")}, {"codec", "ffv1"}));
	struct frag_tensor *expected = deep_frame(3);
	struct frag_message *m = NULL;

	give_tensor(h, "input", "", deep_frame(3));
	cr_assert_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
	frag_harness_destroy(h);
	h = make(&video_replayer_type,
		 FRAG_ARGS({"path", in_folder("out.mkv")}, {"format", "native"}));
	cr_assert_eq(frag_harness_tick(h), FRAG_DONE, "%s", frag_harness_error(h));
	cr_assert_eq(frag_harness_take(h, "output", &m), 0);
	cr_assert_arr_eq(frag_tensor_data(frag_message_tensor(m, "")), frag_tensor_data(expected),
			 70);
	frag_message_unref(m);
	frag_tensor_unref(expected);
	frag_harness_destroy(h);

	h = make(&video_recorder_type, FRAG_ARGS({"path", in_folder("out.mp4")}));
	give_tensor(h, "input", "", deep_frame(0));
	cr_assert_eq(frag_harness_tick(h), -EINVAL);
	cr_assert(strstr(frag_harness_error(h), "u16; convert it with format_converter") != NULL);
	frag_harness_destroy(h);
}

Test(ops_video, recorder_writes_no_file_without_frames)
{
	struct frag_harness *h =
		make(&video_recorder_type, FRAG_ARGS({"path", in_folder("out.mp4")}));

	frag_harness_destroy(h);
	cr_assert_neq(access(in_folder("out.mp4"), F_OK), 0);
}

Test(ops_video, recorder_says_what_does_not_go_together)
{
	static const struct {
		const char *codec, *name, *says;
	} cases[] = {
		{"ffv1", "out.mp4",
		 "a file .mp4 does not hold video of codec ffv1 (ffv1); give it one of the endings .mkv, .avi, .nut"},
		{"h264", "out.gif",
		 "a file .gif does not hold video of codec h264 (h264); give it one of the endings .mkv, .mp4, "},
		{"mpeg4", "out.ogv", "a file .ogv does not hold"},
		{"h264_nvenc", "out.gif", "a file .gif does not hold video of codec h264_nvenc"},
		{"h264_nvenc", "out.mp4", "h264_nvenc needs a GPU of NVIDIA with an encoder"},
		{"auto", "out", "a file without an ending does not hold"},
		{"auto", "out-%Q.mp4", "has the unknown field %Q"},
		{"auto", "out-%.mp4", "has the unknown field %."},
		{"auto", "http://bob:pw@h/out.mp4", "path is the URL http://h/out.mp4, and this"},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct frag_err err = FRAG_ERR_INIT;

		cr_assert_null(frag_harness_create(
			&video_recorder_type,
			FRAG_ARGS({"path", in_folder(cases[i].name)}, {"codec", cases[i].codec}),
			&err));
		cr_assert(strstr(err.text, cases[i].says) != NULL, "case %zu said: %s", i,
			  err.text);
	}
	/* A graph that records on a GPU can be checked without one. */
	cr_assert_eq(video_encoder_check("h264_nvenc", "out.mp4", NULL), 0);
}

/* What a file promises holds for each codec in each of them. */
Test(ops_video, every_codec_in_every_file_that_holds_it)
{
	static const char *const codecs[] = {"h264", "mpeg4", "ffv1"}, *const endings[] = {
									       "mkv", "mp4", "m4v",
									       "mov", "ts",  "avi",
									       "nut"};
	int held = 0;

	for (size_t i = 0; i < FRAG_COUNT_OF(codecs) * FRAG_COUNT_OF(endings); i++) {
		const char *codec = codecs[i % 3];
		char name[20];

		snprintf(name, sizeof(name), "out.%s", endings[i / 3]);
		if (video_encoder_check(codec, name, NULL) < 0)
			continue;
		held++;
		record_clip(in_folder(name), codec, 5);
		check_clip(in_folder(name), 5, strcmp(codec, "ffv1") == 0);
		cr_assert_eq(unlink(in_folder(name)), 0);
	}
	cr_assert_eq(held, 17);
}

/* Gives frame n with an acquisition time, and ticks. */
static void record_with(struct frag_harness *h, int n, int64_t time_ns, uint32_t clock,
			const struct frag_metadata *metadata)
{
	int64_t shape[] = {CLIP_ROWS, CLIP_COLUMNS, 3};
	struct frag_message *m = frag_message_create();
	struct frag_tensor *t;

	cr_assert_eq(
		frag_tensor_create(NULL, (struct frag_dtype){FRAG_DTYPE_UINT, 8, 1}, 3, shape, &t),
		0);
	clip_draw(frag_tensor_writable(t), n, 0);
	cr_assert_eq(frag_message_add_tensor(m, "", t), 0);
	cr_assert_eq(frag_message_set_acquisition(m, time_ns, clock), 0);
	cr_assert_eq(frag_message_set_metadata(m, metadata), 0);
	cr_assert_eq(frag_harness_give(h, "input", m), 0);
	cr_assert_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
}

static void record_at(struct frag_harness *h, int n, int64_t time_ns, uint32_t clock)
{
	record_with(h, n, time_ns, clock, NULL);
}

/* A file has frames first .. at these times. */
static void check_times(const char *path, int first, const int64_t *times_ms, int count)
{
	static uint8_t rgb[CLIP_BYTES];
	struct frag_err err = FRAG_ERR_INIT;
	struct video_decoder *d = NULL;
	AVFrame *frame = av_frame_alloc();
	int n = 0;

	cr_assert_eq(video_decoder_open(path, "", -1, NULL, &d, &err), 0, "%s", err.text);
	for (; video_decoder_next(d, frame, NULL, &err) == 1; n++) {
		cr_assert_lt(n, count, "%s has more", path);
		to_rgb(frame, rgb);
		cr_assert_eq(clip_number(rgb), first + n, "%s", path);
		cr_expect_float_eq((double)video_decoder_time_ns(d, frame) / 1e6,
				   (double)times_ms[n], 1.0, "%s: frame %d at %lld", path, n,
				   (long long)video_decoder_time_ns(d, frame));
	}
	cr_expect_eq(n, count, "%s: %d", path, n);
	av_frame_free(&frame);
	video_decoder_close(d);
}

#define SECOND INT64_C(1000000000)
#define MS INT64_C(1000000)

/* Until a piece of the file is written, or none is waited for any longer. */
static void wait_for_piece(const char *path, off_t *bytes)
{
	struct stat status = {0};

	for (int i = 0; i < 50 && (stat(path, &status) < 0 || status.st_size <= *bytes); i++)
		usleep(1000);
	*bytes = status.st_size;
}

/*
 * Stamps of a rate that varies are those of the file, in each format that knows any, also of the
 * first frame of each piece.
 */
Test(ops_video, recorder_keeps_the_times_of_acquisition)
{
	/* A piece of a mov cannot begin before the guessed end of the one before it. */
	static const int64_t times_ms[2][6] = {{0, 40, 130, 131, 700, 1960},
					       {0, 40, 130, 231, 700, 1960}};
	/* an avi has a place each 1/30 s */
	static const int64_t places_ms[2][6] = {{0, 33, 133, 167, 700, 1967},
						{0, 33, 133, 233, 700, 1967}};
	static const char *const names[] = {"out.mp4", "out.mkv", "out.ts", "out.mov", "out.avi"};

	for (size_t k = 0; k < 2 * FRAG_COUNT_OF(names); k++) {
		const bool in_pieces = k >= FRAG_COUNT_OF(names);
		const size_t i = k % FRAG_COUNT_OF(names);
		struct frag_harness *h =
			make(&video_recorder_type, FRAG_ARGS({"path", in_folder(names[i])},
							     {"flush", in_pieces ? "1ms" : "1s"}));
		const int64_t *ms = times_ms[in_pieces];
		off_t bytes = 0;

		for (int n = 0; n < 6; n++) {
			record_at(h, n, 77 * SECOND + ms[n] * MS, FRAG_CLOCK_TAI);
			if (in_pieces)
				wait_for_piece(in_folder(names[i]), &bytes);
		}
		frag_harness_destroy(h);
		check_times(in_folder(names[i]), 0, i == 4 ? places_ms[in_pieces] : ms, 6);
		cr_assert_eq(unlink(in_folder(names[i])), 0);
	}
}

/* The clock is set back, far ahead, and is another one: the recording goes on. */
Test(ops_video, recorder_goes_on_where_stamps_do_not)
{
	static const int64_t ms[] = {0, 100, 100, 250, 250, 260, 260, 1260};
	struct frag_harness *h =
		make(&video_recorder_type, FRAG_ARGS({"path", in_folder("out.mkv")}));

	record_at(h, 0, 50 * SECOND, FRAG_CLOCK_UNIX);
	record_at(h, 1, 50 * SECOND + 100 * MS, FRAG_CLOCK_UNIX);
	record_at(h, 2, 10 * SECOND, FRAG_CLOCK_UNIX);
	record_at(h, 3, 10 * SECOND + 150 * MS, FRAG_CLOCK_UNIX);
	record_at(h, 4, 30 * 24 * 3600 * SECOND, FRAG_CLOCK_UNIX);
	record_at(h, 5, 30 * 24 * 3600 * SECOND + 10 * MS, FRAG_CLOCK_UNIX);
	record_at(h, 6, 30 * 24 * 3600 * SECOND + 20 * MS, FRAG_CLOCK_MEDIA);
	record_at(h, 7, 30 * 24 * 3600 * SECOND + 1020 * MS, FRAG_CLOCK_MEDIA);
	frag_harness_destroy(h);
	check_times(in_folder("out.mkv"), 0, ms, 8);
}

static _Atomic int64_t synchronised; /* bytes of the file, when the disk last had it */

/* Takes the place of the C library's. */
int fdatasync(int fd)
{
	struct stat status;

	if (fstat(fd, &status) == 0)
		synchronised = status.st_size;
	return 0;
}

static int count_frames(const char *path)
{
	struct video_decoder *d = NULL;
	AVFrame *frame = av_frame_alloc();
	int n = 0;

	if (video_decoder_open(path, "", -1, NULL, &d, NULL) == 0)
		while (video_decoder_next(d, frame, NULL, NULL) == 1)
			n++;
	av_frame_free(&frame);
	video_decoder_close(d);
	return n;
}

/* Power fails while the recorder waits for a frame: what came before `flush` is on the disk. */
Test(ops_video, recorder_has_the_disk_keep_what_is_old)
{
	static const char *const names[] = {"out.mp4", "out.mkv", "out.ts", "out.avi"};

	for (size_t i = 0; i < FRAG_COUNT_OF(names); i++) {
		struct frag_harness *h =
			make(&video_recorder_type,
			     FRAG_ARGS({"path", in_folder(names[i])}, {"flush", "20ms"}));
		char copy[20], command[1000];
		int polls = 0;

		synchronised = 0;
		snprintf(copy, sizeof(copy), "cut%s", strrchr(names[i], '.'));
		for (int n = 0; n < 5; n++)
			record_at(h, n, n * 40 * MS, FRAG_CLOCK_MEDIA);
		do {
			const struct timespec pause = {.tv_nsec = 10000000};

			cr_assert_lt(++polls, 1000, "%s keeps fewer", names[i]);
			nanosleep(&pause, NULL);
			snprintf(command, sizeof(command), "head -c %lld %s > %s",
				 (long long)synchronised, in_folder(names[i]), in_folder(copy));
			cr_assert_eq(system(command), 0);
		} while (count_frames(in_folder(copy)) < 5);
		frag_harness_destroy(h);
		cr_assert_eq(count_frames(in_folder(names[i])), 5);
		cr_assert(unlink(in_folder(copy)) == 0 && unlink(in_folder(names[i])) == 0);
	}
}

/* Also if nothing follows it, and whatever `flush` is: no file has a header only. */
Test(ops_video, recorder_writes_the_first_frame_of_a_file_at_once)
{
	static const char *const names[] = {"out.mp4", "out.mkv", "out.ts", "out.avi"};
	const struct timespec pause = {.tv_nsec = 10000000};

	for (size_t i = 0; i < FRAG_COUNT_OF(names); i++) {
		struct frag_harness *h =
			make(&video_recorder_type,
			     FRAG_ARGS({"path", in_folder(names[i])}, {"flush", "3600s"}));

		record_at(h, 0, 0, FRAG_CLOCK_MEDIA);
		for (int polls = 0; count_frames(in_folder(names[i])) < 1; polls++) {
			cr_assert_lt(polls, 1000, "%s has none", names[i]);
			nanosleep(&pause, NULL);
		}
		frag_harness_destroy(h);
		cr_assert_eq(unlink(in_folder(names[i])), 0);
	}
}

Test(ops_video, recorder_keeps_the_shape_of_pixels)
{
	static const char *const names[] = {"out.mp4", "out.mkv", "out.mov"};
	static const double shapes[] = {16.0 / 11.0, 2.0 / 3.0, 0.0};
	struct frag_metadata *metadata;

	for (size_t i = 0; i < 9; i++) {
		const char *path = in_folder(names[i / 3]);
		struct frag_harness *h = make(&video_recorder_type, FRAG_ARGS({"path", path}));
		struct frag_err err = FRAG_ERR_INIT;
		struct video_decoder *d = NULL;
		AVFrame *frame = av_frame_alloc();
		double aspect;

		cr_assert_eq(frag_metadata_create(FRAG_METADATA_UPDATE, &metadata), 0);
		cr_assert_eq(frag_metadata_set_f64(metadata, "sample_aspect_ratio", shapes[i % 3]),
			     0);
		record_with(h, 0, 0, FRAG_CLOCK_MEDIA, metadata);
		frag_metadata_destroy(metadata);
		frag_harness_destroy(h);
		cr_assert_eq(video_decoder_open(path, "", -1, NULL, &d, &err), 0, "%s", err.text);
		cr_assert_eq(video_decoder_next(d, frame, NULL, &err), 1);
		aspect = video_decoder_aspect(d, frame);
		cr_expect(fabs(aspect - shapes[i % 3]) < 1e-3 ||
				  (shapes[i % 3] == 0.0 && aspect == 1.0),
			  "%s: %f", path, aspect);
		av_frame_free(&frame);
		video_decoder_close(d);
		unlink(path);
	}
}

Test(ops_video, recorder_begins_files_by_time_and_by_size)
{
	static const int64_t ms[] = {0, 400, 800};
	struct frag_harness *h =
		make(&video_recorder_type,
		     FRAG_ARGS({"path", in_folder("out.mp4")}, {"segment_time", "1s"}));

	for (int n = 0; n < 7; n++)
		record_at(h, n, n * 400 * MS, FRAG_CLOCK_MEDIA);
	frag_harness_destroy(h);
	check_times(in_folder("out-000001.mp4"), 0, ms, 3);
	check_times(in_folder("out-000002.mp4"), 3, ms, 3);
	check_times(in_folder("out-000003.mp4"), 6, ms, 1);

	/* The next run counts on; with %r it has a number of its own. */
	h = make(&video_recorder_type, FRAG_ARGS({"path", in_folder("out.mp4")},
						 {"segment_size", "1"}, {"codec", "mpeg4"}));
	for (int n = 0; n < 2; n++)
		record_at(h, n, n * 400 * MS, FRAG_CLOCK_MEDIA);
	frag_harness_destroy(h);
	check_times(in_folder("out-000004.mp4"), 0, ms, 1);
	check_times(in_folder("out-000005.mp4"), 1, ms, 1);
	for (int run = 1; run <= 2; run++) {
		h = make(&video_recorder_type,
			 FRAG_ARGS({"path", in_folder("r%r-%n.mkv")}, {"segment_size", "1"}));
		for (int n = 0; n < 2; n++)
			record_at(h, n, n * 400 * MS, FRAG_CLOCK_MEDIA);
		frag_harness_destroy(h);
	}
	for (int k = 0; k < 4; k++) {
		char name[20];

		snprintf(name, sizeof(name), "r%04d-%06d.mkv", 1 + k / 2, 1 + k % 2);
		check_times(in_folder(name), k % 2, ms, 1);
		cr_assert_eq(unlink(in_folder(name)), 0);
	}
	for (int number = 1; number <= 5; number++) {
		char name[20];

		snprintf(name, sizeof(name), "out-%06d.mp4", number);
		cr_assert_eq(unlink(in_folder(name)), 0, "%s", name);
	}
}

/* The bytes of all numbered files but the newest one, which is written. */
static int64_t closed_bytes(void)
{
	int64_t bytes = 0, newest = 0;

	for (int number = 1; number < 100; number++) {
		char name[20];
		struct stat status;

		snprintf(name, sizeof(name), "out-%06d.mkv", number);
		if (stat(in_folder(name), &status) == 0) {
			bytes += newest;
			newest = status.st_size;
		}
	}
	return bytes;
}

/*
 * The oldest files go, also those of the run before; what only looks like them stays. When a file
 * begins, a third is free for it: the one that was just closed counts too.
 */
Test(ops_video, recorder_keeps_to_a_limit_of_disk)
{
	const char *others[] = {"out-000001x.mkv", "out-1.mkv", "xout-000001.mkv"};
	int64_t bytes = 0;
	int files = 0;

	for (size_t i = 0; i < FRAG_COUNT_OF(others); i++)
		fclose(fopen(in_folder(others[i]), "w"));
	for (int run = 0; run < 2; run++) {
		struct frag_harness *h = make(&video_recorder_type,
					      FRAG_ARGS({"path", in_folder("out-%n.mkv")},
							{"codec", "ffv1"}, {"disk_limit", "60kB"}));

		for (int n = 0; n < 60; n++) {
			record_at(h, n, n * 40 * MS, FRAG_CLOCK_MEDIA);
			cr_assert_leq(closed_bytes(), 40000);
		}
		frag_harness_destroy(h);
	}
	for (size_t i = 0; i < FRAG_COUNT_OF(others); i++)
		cr_assert_eq(unlink(in_folder(others[i])), 0, "%s", others[i]);
	for (int number = 1; number < 100; number++) {
		char name[20];
		struct stat status;

		snprintf(name, sizeof(name), "out-%06d.mkv", number);
		if (stat(in_folder(name), &status) < 0) {
			cr_assert_eq(files, 0, "%s: only the oldest go", name);
			continue;
		}
		if (++files == 1)
			cr_assert_gt(number, 4, "%d: some went", number);
		bytes += status.st_size;
		unlink(in_folder(name));
		snprintf(name, sizeof(name), "out-%06d.mkv", number + 1);
		if (access(in_folder(name), F_OK) < 0)
			break;
	}
	cr_assert_geq(files, 3);
	cr_assert(bytes > 30000 && bytes <= 60000, "%lld bytes", (long long)bytes);
}

static void pass(struct frag_harness *from, const char *out, struct frag_harness *to,
		 const char *in)
{
	struct frag_message *m = NULL;

	cr_assert_eq(frag_harness_take(from, out, &m), 0);
	cr_assert_eq(frag_harness_give(to, in, m), 0);
	cr_assert_eq(frag_harness_tick(to), 0, "%s", frag_harness_error(to));
}

/* What the example does, with every operator ticked by hand. */
Test(ops_video, replay_convert_box_record)
{
	struct frag_harness *replay, *convert, *box, *record;
	int r = 0, n;

	record_clip(in_folder("clip.mp4"), "auto", FRAMES);
	replay = make(&video_replayer_type,
		      FRAG_ARGS({"path", in_folder("clip.mp4")}, {"realtime", "false"}));
	convert = make(&vision_format_converter_type, FRAG_ARGS({"out_dtype", "rgb888"}));
	box = make(&vision_motion_boxes_type, FRAG_ARGS({"min_area", CLIP_MIN_AREA}));
	record = make(&video_recorder_type, FRAG_ARGS({"path", in_folder("out.mp4")}));
	for (n = 0; r == 0; n++) {
		struct frag_message *m = NULL;
		const struct frag_tensor *boxes;
		const float *b;

		r = frag_harness_tick(replay);
		pass(replay, "output", convert, "source_video");
		pass(convert, "tensor", box, "in");
		cr_assert_eq(frag_harness_take(box, "out", &m), 0);
		boxes = frag_message_tensor(m, "boxes");
		cr_assert_eq(frag_tensor_dl(boxes)->shape[0], n < 15 ? 0 : 1, "frame %d", n);
		b = frag_tensor_data(boxes);
		if (n >= 15)
			cr_assert_geq(
				clip_iou(n, (double)b[0] * CLIP_COLUMNS, (double)b[1] * CLIP_ROWS,
					 (double)b[2] * CLIP_COLUMNS, (double)b[3] * CLIP_ROWS),
				0.5);
		cr_assert_eq(frag_harness_give(record, "input", m), 0);
		cr_assert_eq(frag_harness_tick(record), 0, "%s", frag_harness_error(record));
	}
	cr_assert_eq(r, FRAG_DONE);
	frag_harness_destroy(replay);
	frag_harness_destroy(convert);
	frag_harness_destroy(box);
	frag_harness_destroy(record);
	check_clip(in_folder("out.mp4"), n, 0);
	cr_assert_eq(n, FRAMES);
}
