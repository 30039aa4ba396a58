// SPDX-License-Identifier: Apache-2.0
/* The camera is tests/camera/fake_camera.c, which is linked into this program. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <linux/videodev2.h>

#include <frag/harness.h>

#include "../expected.h"
#include "../left.h"
#include "../video/clip.h"
#include "capture/capture.h"
#include "capture/picture.h"

#define DEVICE "/dev/video99"

/* Whatever a test did, nothing is left of it but the map of the camera that is not there. */
static struct left before;

static void note_what_is_there(void)
{
	before = left_now();
	before.shared_maps++;
	left_own.shared_maps = 1;
}

TestSuite(ops_capture, .init = note_what_is_there);

static struct frag_harness *try_make(const char *camera, const struct frag_arg *args,
				     struct frag_err *err)
{
	setenv("FAKE_CAMERA", camera, 1);
	return frag_harness_create(&v4l2_video_capture_type, args, err);
}

static struct frag_harness *make(const char *camera, const struct frag_arg *args)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_harness *h = try_make(camera, args, &err);

	cr_assert_not_null(h, "%s", err.text);
	return h;
}

/* Ticks until a frame comes; a tick without one dropped a frame. */
static struct frag_message *next_frame(struct frag_harness *h)
{
	struct frag_message *m = NULL;

	while (frag_harness_take(h, "signal", &m) != 0)
		cr_assert_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
	return m;
}

static int64_t metadata_of(const struct frag_message *m, const char *key)
{
	int64_t value = -1;

	cr_assert_eq(frag_metadata_get_i64(frag_message_metadata(m), key, &value), 0, "%s", key);
	return value;
}

/* The bar code of an RGB frame; its pixels may have gaps between rows. */
static int number_of(const struct frag_message *m)
{
	static uint8_t rgb[CLIP_BYTES];
	const struct frag_tensor *t = frag_message_tensor(m, "");
	const struct frag_dltensor *dl = frag_tensor_dl(t);
	const uint8_t *data = frag_tensor_data(t);

	cr_assert_eq(dl->ndim, 3);
	cr_assert(dl->shape[0] == CLIP_ROWS && dl->shape[1] == CLIP_COLUMNS && dl->shape[2] == 3);
	for (size_t y = 0; y < CLIP_ROWS; y++)
		memcpy(rgb + y * CLIP_COLUMNS * 3, data + y * (size_t)dl->strides[0],
		       (size_t)CLIP_COLUMNS * 3);
	return clip_number(rgb);
}

static void expect_frame(struct frag_harness *h, int number, int64_t frame, int64_t dropped)
{
	struct frag_message *m = next_frame(h);
	uint64_t sequence = 0;

	cr_assert_eq(number_of(m), number);
	cr_assert_eq(metadata_of(m, "frame"), frame);
	cr_assert(frag_message_sequence(m, &sequence) == 0 && sequence == (uint64_t)frame);
	cr_assert_eq(metadata_of(m, "dropped"), dropped);
	cr_assert_geq(metadata_of(m, "pts_ns"), 0);
	cr_assert_gt(frag_message_acquisition_ns(m), INT64_C(1600000000000000000));
	frag_message_unref(m);
}

/* The last row needs no gap behind it; of colours that two rows share, an odd row has its own. */
Test(ops_capture, how_many_bytes_a_picture_has)
{
	static const struct {
		struct picture_format format;
		uint64_t bytes;
	} rows[] = {
		{{V4L2_PIX_FMT_YUV420, 4, 2, 4}, 12}, {{V4L2_PIX_FMT_YUV420, 4, 3, 4}, 20},
		{{V4L2_PIX_FMT_YUV420, 3, 3, 6}, 30}, {{V4L2_PIX_FMT_YUV420, 5, 2, 5}, 0},
		{{V4L2_PIX_FMT_NV12, 4, 2, 4}, 12},   {{V4L2_PIX_FMT_NV12, 3, 3, 6}, 28},
		{{V4L2_PIX_FMT_YUYV, 3, 2, 8}, 16},   {{V4L2_PIX_FMT_YUYV, 3, 2, 7}, 0},
		{{V4L2_PIX_FMT_RGB24, 3, 2, 10}, 19}, {{V4L2_PIX_FMT_RGB24, 3, 2, 8}, 0},
		{{V4L2_PIX_FMT_Y10, 3, 2, 6}, 12},    {{V4L2_PIX_FMT_Y10, 3, 2, 5}, 0},
		{{V4L2_PIX_FMT_GREY, 3, 0, 3}, 0},    {{V4L2_PIX_FMT_MJPEG, 3, 2, 0}, 1},
		{{V4L2_PIX_FMT_HSV24, 3, 2, 9}, 0},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++)
		cr_expect_eq(picture_bytes(&rows[i].format), rows[i].bytes, "row %zu: %llu", i,
			     (unsigned long long)picture_bytes(&rows[i].format));
}

/* Of bytes, with a weight for each place. */
static unsigned int sum_of(const uint8_t *bytes, size_t count)
{
	unsigned int sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += (unsigned int)(i % 251 + 1) * bytes[i];
	return sum;
}

static void print_picture(FILE *out, const struct picture_format *f, const uint8_t *data)
{
	struct picture_converter *converter = picture_converter_create();
	const uint64_t bytes = picture_bytes(f);
	int64_t shape[3] = {0}, strides[3] = {0};
	uint8_t made[8 * 8 * 3] = {0}, bits = 0;
	char name[PICTURE_FOURCC_TEXT];
	int32_t ndim = picture_describe(f, (uint32_t)bytes, shape, strides, &bits);
	int r;

	fprintf(out, "%s %u x %u of %u: %d bytes, %d bits of",
		picture_fourcc(f->pixel_format, name), f->columns, f->rows, f->row_bytes,
		(int)bytes, bits);
	for (int32_t i = 0; i < ndim; i++)
		fprintf(out, " %d(%d)", (int)shape[i], (int)strides[i]);
	r = picture_to_rgb(converter, f, data, bytes, made);
	fprintf(out, "; rgb %d %u", r, r == 0 ? sum_of(made, (size_t)f->columns * f->rows * 3) : 0);
	fprintf(out, ", short %d", picture_to_rgb(converter, f, data, bytes - 1, made));
	if (picture_is_kept(f->pixel_format, &bits)) {
		r = picture_keep(f, data, bytes, made);
		fprintf(out, "; kept %d of %d bits, %s %u, short %d", r, bits,
			picture_is_bayer(f->pixel_format) ? "bayer" : "gray",
			sum_of(made, (size_t)f->columns * f->rows * bits / 8),
			picture_keep(f, data, bytes - 1, made));
	}
	fputc('\n', out);
	picture_converter_destroy(converter);
}

Test(ops_capture, pictures_are_as_recorded)
{
	static const uint32_t formats[] = {
		V4L2_PIX_FMT_YUYV,    V4L2_PIX_FMT_UYVY,    V4L2_PIX_FMT_NV12,
		V4L2_PIX_FMT_YUV420,  V4L2_PIX_FMT_RGB24,   V4L2_PIX_FMT_BGR24,
		V4L2_PIX_FMT_RGBA32,  V4L2_PIX_FMT_GREY,    V4L2_PIX_FMT_Y10,
		V4L2_PIX_FMT_Y12,     V4L2_PIX_FMT_Y16,     V4L2_PIX_FMT_SBGGR8,
		V4L2_PIX_FMT_SGBRG8,  V4L2_PIX_FMT_SGRBG8,  V4L2_PIX_FMT_SRGGB8,
		V4L2_PIX_FMT_SBGGR16, V4L2_PIX_FMT_SGBRG16, V4L2_PIX_FMT_SGRBG16,
		V4L2_PIX_FMT_SRGGB16, V4L2_PIX_FMT_MJPEG,
	};
	uint8_t data[1024];
	uint32_t seed = 7;
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (size_t i = 0; i < sizeof(data); i++) {
		seed = seed * 1664525u + 1013904223u;
		data[i] = (uint8_t)(seed >> 24);
	}
	for (size_t i = 0; i < FRAG_COUNT_OF(formats); i++) {
		print_picture(out, &(struct picture_format){formats[i], 6, 4, 24}, data);
		print_picture(out, &(struct picture_format){formats[i], 5, 7, 30}, data);
	}
	fclose(out);
	expected_compare("operators/pictures", text);
	free(text);
}

Test(ops_capture, every_format_becomes_rgb)
{
	static const char *const cameras[] = {
		"formats=YUYV,pad=64", "formats=NV12,pad=32", "formats=RGB3,pad=7",
		"formats=AB24,pad=64", "formats=MJPG",        "formats=UYVY,pad=64",
		"formats=YU12,pad=64", "formats=BGR3,pad=7",  "formats=GREY,pad=3",
		"formats=Y10 ,pad=2",  "formats=Y16 ,pad=6",
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cameras); i++) {
		struct frag_harness *h = make(cameras[i], FRAG_ARGS({"device", DEVICE}));
		struct frag_message *m = next_frame(h);
		int first = number_of(m), next = metadata_of(m, "frame") == 0;
		const uint8_t *data = frag_tensor_data(frag_message_tensor(m, ""));
		uint8_t drawn[CLIP_BYTES];

		clip_draw(drawn, first, 0);
		for (size_t b = 0; b < CLIP_BYTES; b++)
			cr_assert_lt(abs(data[b] - drawn[b]), 12, "%s: byte %zu", cameras[i], b);
		frag_message_unref(m);
		cr_assert_eq(next, 1);
		for (; next < 10; next++)
			expect_frame(h, first + next, next, 0);
		frag_harness_destroy(h);
	}
}

/* Element `at` of a frame of one channel, without the gaps between its rows. */
static int gray_at(const struct frag_tensor *t, size_t at)
{
	const struct frag_dltensor *dl = frag_tensor_dl(t);
	size_t row = dl->strides != NULL ? (size_t)dl->strides[0] : CLIP_COLUMNS;
	const uint8_t *u8 = frag_tensor_data(t);
	const uint16_t *u16 = frag_tensor_data(t);

	at = at / CLIP_COLUMNS * row + at % CLIP_COLUMNS;
	return dl->dtype.bits == 8 ? u8[at] : u16[at];
}

/* The bar code of such a frame. */
static int gray_number(const struct frag_tensor *t)
{
	static uint8_t rgb[CLIP_BYTES];
	int most = 0;

	for (size_t at = 0; at < CLIP_ROWS * (size_t)CLIP_COLUMNS; at++)
		most = gray_at(t, at) > most ? gray_at(t, at) : most;
	for (size_t at = 0; at < CLIP_ROWS * (size_t)CLIP_COLUMNS; at++)
		memset(rgb + 3 * at, gray_at(t, at) * 255 / most, 3);
	return clip_number(rgb);
}

/* Gray and Bayer patterns are sent with their numbers, copied or not. */
Test(ops_capture, gray_and_bayer_are_sent_as_they_are)
{
	static const struct {
		const char *camera, *name, *stated;
		int bits;
		bool is_scaled; /* 10 bits; else the low byte is the column */
	} kinds[] = {
		{"formats=GREY,pad=3", "GREY", "GREY", 8, false},
		{"formats=Y10 ,pad=2", "Y10", "Y10 ", 16, true},
		{"formats=Y16 ,pad=6", "Y16", "Y16 ", 16, false},
		{"formats=RGGB,pad=3", "RGGB", "RGGB", 8, false},
		{"formats=GR16,pad=2", "GR16", "GR16", 16, false},
	};
	uint8_t drawn[CLIP_BYTES];

	for (size_t i = 0; i < 2 * FRAG_COUNT_OF(kinds); i++) {
		const size_t k = i / 2;
		const char *pass = i % 2 == 0 ? "false" : "true";
		struct frag_harness *h =
			make(kinds[k].camera,
			     FRAG_ARGS({"device", DEVICE}, {"format", "native"},
				       {"pixel_format", kinds[k].name}, {"pass_through", pass}));
		struct frag_message *m = next_frame(h);
		const struct frag_tensor *t = frag_message_tensor(m, "");
		const struct frag_dltensor *dl = frag_tensor_dl(t);
		const char *stated = "";

		cr_assert(dl->ndim == 3 && dl->shape[0] == CLIP_ROWS &&
			  dl->shape[1] == CLIP_COLUMNS && dl->shape[2] == 1);
		cr_assert(dl->dtype.code == FRAG_DTYPE_UINT && dl->dtype.bits == kinds[k].bits);
		clip_draw(drawn, gray_number(t), 0);
		for (size_t at = 0; at < CLIP_ROWS * (size_t)CLIP_COLUMNS; at++) {
			int gray = drawn[at * 3], column = (int)(at % CLIP_COLUMNS);

			cr_assert_eq(gray_at(t, at), kinds[k].bits == 8 ? gray
						     : kinds[k].is_scaled
							     ? gray * 1023 / 255
							     : gray << 8 | (column & 0xff));
		}
		cr_assert_eq(
			frag_metadata_get_string(frag_message_metadata(m), "pixel_format", &stated),
			0);
		cr_assert_str_eq(stated, kinds[k].stated);
		frag_message_unref(m);
		frag_harness_destroy(h);
	}
}

Test(ops_capture, bayer_needs_native)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_harness *h;
	struct frag_message *m;

	cr_assert_null(try_make("formats=RGGB",
				FRAG_ARGS({"device", DEVICE}, {"pixel_format", "RGGB"}), &err));
	cr_assert(strstr(err.text, "give format: native") != NULL, "said: %s", err.text);
	err = (struct frag_err)FRAG_ERR_INIT;
	cr_assert_null(try_make("formats=RGGB", FRAG_ARGS({"device", DEVICE}), &err));
	cr_assert(strstr(err.text, "with format: native Bayer") != NULL, "said: %s", err.text);
	h = make("formats=RGGB+YUYV", FRAG_ARGS({"device", DEVICE}));
	m = next_frame(h);
	cr_assert_eq(frag_tensor_dl(frag_message_tensor(m, ""))->shape[2], 3);
	frag_message_unref(m);
	frag_harness_destroy(h);
}

int fake_camera_control(uint32_t id);

Test(ops_capture, controls_are_set_by_their_names)
{
	static const struct {
		const char *controls, *says;
	} wrong[] = {
		{"{sharpness: 3}",
		 "has no control sharpness that can be set; it has brightness, white_balance_automatic, gain, power_line_frequency, exposure_time_absolute"},
		{"{brightness: 65}",
		 "brightness is \"65\", and the camera " DEVICE " takes -64 to 64 in steps of 1"},
		{"{brightness: much}", "takes -64 to 64"},
		{"{white_balance_automatic: 2}", "takes 0 to 1"},
		{"{power_line_frequency: 70 Hz}", "takes disabled, 50_hz, 60_hz"},
	};
	struct frag_harness *h = make(
		"",
		FRAG_ARGS(
			{"device", DEVICE},
			{"controls",
			 "{brightness: -7, white_balance_automatic: false, power_line_frequency: 60 Hz}"}));

	frag_message_unref(next_frame(h));
	cr_assert_eq(fake_camera_control(V4L2_CID_BRIGHTNESS), -7);
	cr_assert_eq(fake_camera_control(V4L2_CID_AUTO_WHITE_BALANCE), 0);
	cr_assert_eq(fake_camera_control(V4L2_CID_POWER_LINE_FREQUENCY), 2);
	frag_harness_destroy(h);
	h = make("", FRAG_ARGS({"device", DEVICE}, {"controls", "{power_line_frequency: 1}"}));
	frag_message_unref(next_frame(h));
	cr_assert_eq(fake_camera_control(V4L2_CID_POWER_LINE_FREQUENCY), 1);
	frag_harness_destroy(h);
	for (size_t i = 0; i < FRAG_COUNT_OF(wrong); i++) {
		struct frag_err err = FRAG_ERR_INIT;

		cr_assert_null(try_make(
			"", FRAG_ARGS({"device", DEVICE}, {"controls", wrong[i].controls}), &err));
		cr_assert(strstr(err.text, wrong[i].says) != NULL, "said: %s", err.text);
	}
}

Test(ops_capture, a_camera_that_comes_back_under_another_number_is_found)
{
	struct frag_harness *h = make("unplug=2,back=3,moves=98",
				      FRAG_ARGS({"device", DEVICE}, {"reconnect", "1000s"}));

	for (int n = 0; n < 2; n++)
		expect_frame(h, n, n, 0);
	expect_frame(h, 2, 2, 0);
	frag_harness_destroy(h);
}

Test(ops_capture, the_format_can_be_chosen)
{
	struct frag_harness *h =
		make("formats=XXXX+MJPG+NV12",
		     FRAG_ARGS({"device", DEVICE}, {"pixel_format", "NV12"}, {"width", "480"},
			       {"height", "320"}, {"frame_rate", "25"}, {"pass_through", "true"}));
	struct frag_message *m = next_frame(h);
	const struct frag_dltensor *dl = frag_tensor_dl(frag_message_tensor(m, ""));
	const char *name = "";

	cr_assert(dl->ndim == 2 && dl->shape[0] == CLIP_ROWS * 3 / 2 &&
		  dl->shape[1] == CLIP_COLUMNS);
	cr_assert_eq(frag_metadata_get_string(frag_message_metadata(m), "pixel_format", &name), 0);
	cr_assert_str_eq(name, "NV12");
	frag_message_unref(m);
	frag_harness_destroy(h);
	h = make("formats=XXXX+MJPG+NV12", FRAG_ARGS({"device", DEVICE}, {"pass_through", "true"}));
	m = next_frame(h);
	dl = frag_tensor_dl(frag_message_tensor(m, ""));
	cr_assert(dl->ndim == 1 && dl->shape[0] > 1000, "auto takes the first that is known");
	frag_message_unref(m);
	frag_harness_destroy(h);
}

/* The camera keeps one of its buffers; a frame that comes into the last one is dropped. */
Test(ops_capture, buffers_travel_and_come_back)
{
	struct frag_harness *h =
		make("formats=RGB3,pad=64",
		     FRAG_ARGS({"device", DEVICE}, {"pass_through", "true"}, {"num_buffers", "4"}));
	struct frag_message *held[3], *m = NULL;

	for (int n = 0; n < 3; n++) {
		held[n] = next_frame(h);
		cr_assert_eq(number_of(held[n]), n);
	}
	for (int n = 3; n < 6; n++) {
		cr_assert_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
		cr_assert_eq(frag_harness_take(h, "signal", &m), -ENOMSG);
	}
	frag_message_unref(held[1]);
	held[1] = next_frame(h);
	cr_assert_eq(number_of(held[1]), 6);
	cr_assert_eq(metadata_of(held[1], "dropped"), 3);
	cr_assert_eq(metadata_of(held[1], "frame"), 6);
	frag_harness_destroy(h);
	cr_assert_eq(number_of(held[0]), 0, "what is held outlives the operator");
	cr_assert_eq(number_of(held[2]), 2);
	for (int n = 0; n < 3; n++)
		frag_message_unref(held[n]);
}

Test(ops_capture, damaged_and_lost_frames_are_left_out_and_counted)
{
	struct frag_harness *h = make("short=1,error=3,skip=5", FRAG_ARGS({"device", DEVICE}));

	expect_frame(h, 0, 0, 0);
	expect_frame(h, 2, 2, 1);
	expect_frame(h, 4, 4, 2);
	expect_frame(h, 5, 7, 4);
	frag_harness_destroy(h);
}

Test(ops_capture, a_jpeg_that_is_none_is_left_out)
{
	struct frag_harness *h =
		make("formats=MJPG,garbage=1,short=3", FRAG_ARGS({"device", DEVICE}));

	expect_frame(h, 0, 0, 0);
	expect_frame(h, 2, 2, 1);
	expect_frame(h, 4, 4, 2);
	frag_harness_destroy(h);
}

/* Ticks until the operator fails, which it must do with this sentence. */
static void expect_failure(struct frag_harness *h, const char *says)
{
	struct frag_message *m = NULL;
	int r = 0;

	while (r == 0) {
		r = frag_harness_tick(h);
		if (frag_harness_take(h, "signal", &m) == 0)
			frag_message_unref(m);
	}
	cr_assert_lt(r, 0);
	cr_assert(strstr(frag_harness_error(h), says) != NULL, "said: %s", frag_harness_error(h));
	frag_harness_destroy(h);
}

Test(ops_capture, a_camera_that_is_unplugged_is_a_failure)
{
	expect_failure(make("unplug=3", FRAG_ARGS({"device", DEVICE})),
		       DEVICE " was unplugged; plug it in again; with the parameter reconnect");
}

Test(ops_capture, frames_are_numbered_on_after_the_camera_is_back)
{
	struct frag_harness *h =
		make("unplug=2,back=2", FRAG_ARGS({"device", DEVICE}, {"reconnect", "1000s"}));

	for (int n = 0; n < 5; n++)
		expect_frame(h, n, n, 0);
	frag_harness_destroy(h);
}

Test(ops_capture, a_camera_that_stays_away_is_a_failure)
{
	expect_failure(make("unplug=3", FRAG_ARGS({"device", DEVICE}, {"reconnect", "1ms"})),
		       "was unplugged; plug it in again; then it did not come back within 0.0 s: "
		       "there is no camera " DEVICE);
}

Test(ops_capture, a_camera_that_stalls_fails_or_is_opened_again)
{
	struct frag_harness *h;

	h = make("stall=2",
		 FRAG_ARGS({"device", DEVICE}, {"stall_timeout", "100ms"}, {"reconnect", "1000s"}));
	for (int n = 0; n < 5; n++)
		expect_frame(h, n, n, 0);
	frag_harness_destroy(h);
}

Test(ops_capture, a_stall_is_a_sentence)
{
	expect_failure(make("stall=2", FRAG_ARGS({"device", DEVICE}, {"stall_timeout", "100ms"})),
		       "no usable frame came from the camera " DEVICE " for 0.1 s");
}

Test(ops_capture, a_failure_while_it_streams_is_a_sentence_or_survived)
{
	struct frag_harness *h;

	h = make("fail=DQBUF:2:5", FRAG_ARGS({"device", DEVICE}, {"reconnect", "1000s"}));
	for (int n = 0; n < 5; n++)
		frag_message_unref(next_frame(h));
	frag_harness_destroy(h);
	expect_failure(make("fail=DQBUF:0:5", FRAG_ARGS({"device", DEVICE})),
		       "cannot take a frame from the camera " DEVICE ": ");
}

/* A buffer that the camera does not take back is gone; with the last one the camera stalls. */
Test(ops_capture, a_camera_that_takes_no_buffers_back_stalls)
{
	struct frag_err err = FRAG_ERR_INIT;
	struct frag_harness *h =
		try_make("", FRAG_ARGS({"device", DEVICE}, {"stall_timeout", "100ms"}), &err);

	cr_assert_not_null(h, "%s", err.text);
	setenv("FAKE_CAMERA", "fail=QBUF:0:5", 1);
	expect_failure(h, "no usable frame came");
}

/* Each call of the kernel fails, for the second buffer too: there is a sentence. */
Test(ops_capture, every_call_that_fails_is_a_sentence)
{
	static const char *const calls[] = {"QUERYCAP:0", "G_FMT:0",   "S_FMT:0",    "S_PARM:0",
					    "S_CTRL:0",   "REQBUFS:0", "QUERYBUF:2", "QUERYBUF:0",
					    "QBUF:2",     "QBUF:0",    "STREAMON:0"};

	for (size_t i = 0; i < FRAG_COUNT_OF(calls); i++) {
		struct frag_err err = FRAG_ERR_INIT;
		char camera[40];

		snprintf(camera, sizeof(camera), "fail=%s:5", calls[i]);
		cr_assert_null(try_make(camera,
					FRAG_ARGS({"device", DEVICE}, {"frame_rate", "25"},
						  {"gain", "10"}),
					&err),
			       "%s", calls[i]);
		cr_assert(strstr(err.text, DEVICE) != NULL, "%s said: %s", calls[i], err.text);
		cr_assert(strstr(err.text, frag_strerror(-EIO)) != NULL, "%s said: %s", calls[i],
			  err.text);
		cr_assert_not(left_is_more(before), "%s", calls[i]);
	}
}

Test(ops_capture, what_a_camera_cannot_do_is_explained)
{
	static const struct {
		const char *camera;
		struct frag_arg args[4];
		const char *says;
	} cases[] = {
		{"", {{"device", "/dev/video98"}}, "there is no camera /dev/video98"},
		{"", {{"device", "/dev/null"}}, "/dev/null is not a camera"},
		{"open=13", {{"device", DEVICE}}, "add the user of the hosts to the group video"},
		{"kind=radio", {{"device", DEVICE}}, "captures no video"},
		{"fail=REQBUFS:1:16", {{"device", DEVICE}}, "is used by another program"},
		{"fail=STREAMON:1:28", {{"device", DEVICE}}, "cameras at the same USB controller"},
		{"",
		 {{"device", DEVICE}, {"gain", "101"}},
		 "gain is 101, and the camera " DEVICE " takes 1 to 100 in steps of 1"},
		{"",
		 {{"device", DEVICE}, {"exposure_time", "0"}},
		 "exposure_time is 0, and the camera " DEVICE " takes 1 to 5000"},
		{"fail=QUERYCTRL:0:22",
		 {{"device", DEVICE}, {"gain", "1"}},
		 "has no control for gain; leave gain out"},
		{"",
		 {{"device", DEVICE}, {"frame_rate", "60"}},
		 "frame_rate is 60, and the camera " DEVICE " gives 25 pictures a second"},
		{"",
		 {{"device", DEVICE}, {"width", "641"}, {"height", "480"}},
		 "gives no pictures of 641x480 in YUYV; it offers 480x320"},
		{"", {{"device", DEVICE}, {"width", "641"}}, "give both or none"},
		{"formats=XXXX+H264", {{"device", DEVICE}}, "has the pixel formats XXXX, H264"},
		{"formats=NV12+MJPG",
		 {{"device", DEVICE}, {"pixel_format", "YUYV"}},
		 "has no pixel_format YUYV; it has NV12, MJPG"},
		{"length=100", {{"device", DEVICE}}, "offers buffers of 100 bytes for pictures of"},
	};
	/* What the controls take at most and at least. */
	static const struct frag_arg bounds[][3] = {
		{{"device", DEVICE}, {"gain", "1"}},
		{{"device", DEVICE}, {"gain", "100"}},
		{{"device", DEVICE}, {"exposure_time", "1"}},
		{{"device", DEVICE}, {"exposure_time", "5000"}},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct frag_err err = FRAG_ERR_INIT;

		cr_assert_null(try_make(cases[i].camera, cases[i].args, &err), "case %zu", i);
		cr_assert(strstr(err.text, cases[i].says) != NULL, "case %zu said: %s", i,
			  err.text);
	}
	for (size_t i = 0; i < FRAG_COUNT_OF(bounds); i++)
		frag_harness_destroy(make("", bounds[i]));
}
