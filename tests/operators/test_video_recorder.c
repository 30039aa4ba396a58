// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"
#include "video/video.h"
#include "video_clips.h"

TestSuite(ops_video, .init = setup, .fini = teardown);

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
