// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <stdio.h>

#include "harness.h"
#include "video/video.h"
#include "video_clips.h"

TestSuite(ops_video, .init = setup, .fini = teardown);

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

/* Overwrites bytes in the middle of damaged.mkv. */
static void damage(size_t bytes)
{
	static const char noise[2000] = {1};
	FILE *file = fopen(in_folder("damaged.mkv"), "r+");

	cr_assert_not_null(file);
	fseek(file, 0, SEEK_END);
	fseek(file, ftell(file) / 2, SEEK_SET);
	cr_assert_eq(fwrite(noise, bytes, 1, file), 1);
	fclose(file);
}

/*
 * What FFmpeg hides is counted also where threads have found it before the next frame is asked for:
 * here they have time for that.
 */
Test(ops_video, damage_is_counted_whenever_threads_find_it)
{
	static const int threads[] = {1, 4, 1, 4};
	AVFrame *frame = av_frame_alloc();

	record_clip(in_folder("damaged.mkv"), "mpeg4", FRAMES);
	for (int k = 0; k < 4; k++) {
		const struct video_how how = {.threads = threads[k]};
		struct video_decoder *d = NULL;
		struct frag_err err = FRAG_ERR_INIT;
		int64_t skipped = 0;

		if (k == 2)
			damage(100);
		cr_assert_eq(video_decoder_open(in_folder("damaged.mkv"), "", -1, &how, &d, &err),
			     0, "%s", err.text);
		while (video_decoder_next(d, frame, &skipped, &err) == 1)
			usleep(2000);
		cr_assert_eq(skipped > 0, k >= 2, "%d threads: %d", how.threads, (int)skipped);
		video_decoder_close(d);
	}
	av_frame_free(&frame);
}

/* Bytes in the middle of the file overwritten: frames are missing, the others play. */
Test(ops_video, replayer_skips_damage)
{
	struct frag_harness *h;
	int frames = 0, r = 0;

	record_clip(in_folder("damaged.mkv"), "ffv1", FRAMES);
	damage(2000);
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
