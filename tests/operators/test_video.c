// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <stdio.h>
#include <unistd.h>

#include "harness.h"
#include "video/video.h"
#include "vision/vision.h"
#include "video_clips.h"

TestSuite(ops_video, .init = setup, .fini = teardown);

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
