// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "harness.h"
#include "vision/vision.h"

/* format_converter of frames that are not RGB: YUV and Bayer patterns. */
#define U8 ((struct frag_dtype){FRAG_DTYPE_UINT, 8, 1})
#define U16 ((struct frag_dtype){FRAG_DTYPE_UINT, 16, 1})

/* Converts to rgb888, or to what `args` name; 3 numbers a pixel. */
static struct frag_message *converted(const struct frag_arg *args, struct frag_tensor *frame)
{
	struct frag_harness *h = make(&vision_format_converter_type, args);
	struct frag_message *m = NULL;

	give_tensor(h, "source_video", "", frame);
	m = ticked(h, "tensor");
	frag_harness_destroy(h);
	return m;
}

static void expect_rgb(const uint8_t *pixel, int red, int green, int blue, const char *what)
{
	cr_expect(abs(pixel[0] - red) <= 1 && abs(pixel[1] - green) <= 1 &&
			  abs(pixel[2] - blue) <= 1,
		  "%s: %d %d %d and not %d %d %d", what, pixel[0], pixel[1], pixel[2], red, green,
		  blue);
}

/* Luma and colours of a red and a blue pair of pixels: ITU-R BT.601-7, 2.5; BT.709-6, 3. */
static const struct {
	const char *color, *full;
	uint8_t red[3], blue[3], white;
} yuvs[] = {
	{"bt601", "false", {81, 90, 240}, {41, 240, 110}, 235},
	{"bt709", "false", {63, 102, 240}, {32, 240, 118}, 235},
	{"bt601", "true", {76, 85, 255}, {29, 255, 107}, 255},
};

/* 2 x 4: the left half is red, and the right one blue; but the pixel at (1, 3) is white. */
static void check_yuv(const char *format, int32_t ndim, const int64_t *shape, const uint8_t *data,
		      size_t i)
{
	struct frag_message *m =
		converted(FRAG_ARGS({"in_dtype", format}, {"out_dtype", "rgb888"},
				    {"in_color", yuvs[i].color}, {"in_full_range", yuvs[i].full}),
			  tensor_of(U8, ndim, shape, data));
	const struct frag_tensor *out = frag_message_tensor(m, "");
	const uint8_t *rgb = frag_tensor_data(out);

	cr_assert_eq(frag_tensor_dl(out)->shape[0], 2);
	cr_assert_eq(frag_tensor_dl(out)->shape[1], 4);
	for (int p = 0; p < 8; p++)
		if (p % 4 < 2)
			expect_rgb(rgb + 3 * p, 255, 0, 0, format);
		else if (p < 7)
			expect_rgb(rgb + 3 * p, 0, 0, 255, format);
	/* its luma is that of white, its colours are those of its neighbours */
	cr_expect_gt(rgb[3 * 7], 150, "%s", format);
	frag_message_unref(m);
}

Test(ops_vision_raw, yuv_has_its_planes_and_colours_in_their_places)
{
	for (size_t i = 0; i < FRAG_COUNT_OF(yuvs); i++) {
		const uint8_t *r = yuvs[i].red, *b = yuvs[i].blue, w = yuvs[i].white;
		const uint8_t nv12[] = {r[0], r[0], b[0], b[0], r[0], r[0],
					b[0], w,    r[1], r[2], b[1], b[2]};
		const uint8_t yuv420[] = {r[0], r[0], b[0], b[0], r[0], r[0],
					  b[0], w,    r[1], b[1], r[2], b[2]};
		const uint8_t yuyv[] = {r[0], r[1], r[0], r[2], b[0], b[1], b[0], b[2],
					r[0], r[1], r[0], r[2], b[0], b[1], w,    b[2]};
		const uint8_t uyvy[] = {r[1], r[0], r[2], r[0], b[1], b[0], b[2], b[0],
					r[1], r[0], r[2], r[0], b[1], b[0], b[2], w};

		check_yuv("nv12", 2, (const int64_t[]){3, 4}, nv12, i);
		check_yuv("yuv420", 2, (const int64_t[]){3, 4}, yuv420, i);
		check_yuv("yuyv", 3, (const int64_t[]){2, 4, 2}, yuyv, i);
		check_yuv("uyvy", 3, (const int64_t[]){2, 4, 2}, uyvy, i);
	}
}

/* P010 keeps more than 8 bits: black, white, and a gray between two of u8. */
Test(ops_vision_raw, p010_has_ten_bits)
{
	const uint16_t p010[] = {64 << 6, 940 << 6, 503 << 6, 504 << 6, 512 << 6, 512 << 6};
	struct frag_message *m = converted(
		FRAG_ARGS({"in_dtype", "p010"}, {"out_dtype", "float32"}, {"out_layout", "chw"}),
		tensor_of(U16, 2, (const int64_t[]){3, 2}, p010));
	const float *red = frag_tensor_data(frag_message_tensor(m, ""));

	cr_expect_float_eq(red[0], 0.0f, 1e-5);
	cr_expect_float_eq(red[1], 1.0f, 1e-5);
	cr_expect_float_eq(red[2], 439.0f / 876.0f, 1e-4);
	cr_expect_float_eq(red[3], 440.0f / 876.0f, 1e-4);
	frag_message_unref(m);
}

/* Colours that grow evenly, which both ways find exactly where the pattern is on all sides. */
static int ramp(int channel, int x, int y)
{
	static const int from[] = {20, 90, 40}, across[] = {2, 1, 3}, down[] = {1, 3, 2};

	return from[channel] + across[channel] * x + down[channel] * y;
}

Test(ops_vision_raw, bayer_patterns_give_even_colours_back)
{
	enum { ROWS = 12, COLUMNS = 10 };
	static const struct {
		const char *name;
		int colors[4]; /* of the first two pixels of the first two rows */
	} patterns[] = {{"bayer_rggb", {0, 1, 1, 2}},
			{"bayer_bggr", {2, 1, 1, 0}},
			{"bayer_gbrg", {1, 2, 0, 1}},
			{"bayer_grbg", {1, 0, 2, 1}}};

	for (size_t i = 0; i < 16; i++) {
		const bool is_deep = i % 2 != 0;
		const char *demosaic = i / 2 % 2 != 0 ? "malvar" : "bilinear";
		const int *colors = patterns[i / 4].colors, unit = is_deep ? 257 : 1;
		uint16_t deep[ROWS * COLUMNS];
		uint8_t flat[ROWS * COLUMNS];
		struct frag_message *m;
		const uint8_t *rgb;

		for (int y = 0; y < ROWS; y++)
			for (int x = 0; x < COLUMNS; x++) {
				int color = colors[y % 2 * 2 + x % 2];

				flat[y * COLUMNS + x] = (uint8_t)ramp(color, x, y);
				deep[y * COLUMNS + x] = (uint16_t)(unit * ramp(color, x, y));
			}
		m = converted(FRAG_ARGS({"in_dtype", patterns[i / 4].name}, {"out_dtype", "rgb888"},
					{"demosaic", demosaic}),
			      tensor_of(is_deep ? U16 : U8, 2, (const int64_t[]){ROWS, COLUMNS},
					is_deep ? (const void *)deep : flat));
		rgb = frag_tensor_data(frag_message_tensor(m, ""));
		for (int y = 2; y < ROWS - 2; y++)
			for (int x = 2; x < COLUMNS - 2; x++)
				expect_rgb(rgb + 3 * (y * COLUMNS + x), ramp(0, x, y),
					   ramp(1, x, y), ramp(2, x, y), patterns[i / 4].name);
		frag_message_unref(m);
	}
}

/*
 * Rows without gaps are read and written in whole words, and those with a gap number by number.
 * Returns the pictures of the same random frame with both.
 */
static void words_and_numbers(const char *format, const char *demosaic, bool is_deep, int rows,
			      int columns, struct frag_message *out[2])
{
	enum { GAP = 3 };
	const struct frag_dtype dtype = is_deep ? U16 : U8;
	const int64_t shape[] = {rows, columns}, wide[] = {rows, columns + GAP};
	const int64_t strides[] = {columns + GAP, 1};
	const size_t bytes = is_deep ? 2 : 1, row = (size_t)columns * bytes;
	struct frag_tensor *whole = tensor_of(dtype, 2, wide, NULL), *frames[2];
	unsigned char *from = frag_tensor_writable(whole), *to;
	struct frag_dltensor dl = *frag_tensor_dl(whole);
	uint64_t state = (uint64_t)rows * 1000 + (uint64_t)columns;

	for (size_t i = 0; i < frag_tensor_size_bytes(whole); i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		from[i] = (state >> 62) == 0 ? 255 : (unsigned char)(state >> 40);
	}
	frames[0] = tensor_of(dtype, 2, shape, NULL);
	to = frag_tensor_writable(frames[0]);
	for (size_t y = 0; y < (size_t)rows; y++)
		memcpy(to + y * row, from + y * (row + GAP * bytes), row);
	dl.shape = (int64_t *)(uintptr_t)shape;
	dl.strides = (int64_t *)(uintptr_t)strides;
	cr_assert_eq(frag_tensor_wrap(&dl, NULL, NULL, &frames[1]), 0);
	for (int k = 0; k < 2; k++)
		out[k] = converted(FRAG_ARGS({"in_dtype", format}, {"demosaic", demosaic},
					     {"out_dtype", is_deep ? "float32" : "rgb888"}),
				   frames[k]);
	frag_tensor_unref(whole);
}

Test(ops_vision_raw, whole_words_give_what_single_numbers_give)
{
	static const struct {
		const char *format, *demosaic;
		bool is_deep;
	} cases[] = {{"nv12", "", false},
		     {"p010", "", true},
		     {"bayer_rggb", "bilinear", false},
		     {"bayer_rggb", "malvar", false},
		     {"bayer_bggr", "malvar", false},
		     {"bayer_gbrg", "malvar", false},
		     {"bayer_grbg", "malvar", false}};
	static const int sides[][2] = {{6, 4}, {6, 8}, {9, 12}, {24, 16}, {39, 40}};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases) * FRAG_COUNT_OF(sides); i++) {
		const size_t k = i / FRAG_COUNT_OF(sides);
		const int *side = sides[i % FRAG_COUNT_OF(sides)];
		const int rows = cases[k].demosaic[0] == '\0' ? side[0] / 3 * 6 : side[0];
		struct frag_message *m[2];
		const struct frag_tensor *out[2];

		words_and_numbers(cases[k].format,
				  cases[k].demosaic[0] == '\0' ? "bilinear" : cases[k].demosaic,
				  cases[k].is_deep, rows, side[1], m);
		for (int j = 0; j < 2; j++)
			out[j] = frag_message_tensor(m[j], "");
		cr_expect_eq(memcmp(frag_tensor_data(out[0]), frag_tensor_data(out[1]),
				    frag_tensor_size_bytes(out[0])),
			     0, "%s %s, %d x %d", cases[k].format, cases[k].demosaic, side[1],
			     rows);
		for (int j = 0; j < 2; j++)
			frag_message_unref(m[j]);
	}
}

/* At an edge malvar follows the other colours: the one in which both ways differ. */
Test(ops_vision_raw, malvar_keeps_edges_that_bilinear_smears)
{
	uint8_t pattern[8 * 8];
	int wrong[2] = {0, 0};

	/* gray: black on the left, white from column 4 on */
	for (int i = 0; i < 64; i++)
		pattern[i] = i % 8 < 4 ? 20 : 220;
	for (int k = 0; k < 2; k++) {
		struct frag_message *m =
			converted(FRAG_ARGS({"in_dtype", "bayer_rggb"}, {"out_dtype", "rgb888"},
					    {"demosaic", k == 0 ? "bilinear" : "malvar"}),
				  tensor_of(U8, 2, (const int64_t[]){8, 8}, pattern));
		const uint8_t *rgb = frag_tensor_data(frag_message_tensor(m, ""));

		for (int i = 0; i < 64 * 3; i++)
			wrong[k] += abs(rgb[i] - pattern[i / 3]);
		frag_message_unref(m);
	}
	cr_expect_gt(wrong[0], 0);
	cr_expect_lt(wrong[1], wrong[0]);
}

Test(ops_vision_raw, frames_that_are_none_have_a_sentence)
{
	static const struct {
		const char *format, *sentence;
		int bits;
		int32_t ndim;
		int64_t shape[3], good[3];
	} cases[] = {
		{"nv12", "rows are not 3/2", 8, 2, {4, 4}, {6, 4}},
		{"nv12", "columns are odd", 8, 2, {6, 5}, {6, 6}},
		{"nv12", "elements are not u8", 16, 2, {6, 4}, {0}},
		{"p010", "elements are not u16", 8, 2, {6, 4}, {0}},
		{"yuyv", "not [rows, columns, 2]", 8, 3, {4, 4, 1}, {4, 4, 2}},
		{"bayer_rggb", "less than 4", 8, 2, {3, 4}, {4, 4}},
		{"bayer_rggb", "not [rows, columns] or", 8, 3, {4, 4, 3}, {4, 4, 1}},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		struct frag_harness *h =
			make(&vision_format_converter_type,
			     FRAG_ARGS({"in_dtype", cases[i].format}, {"out_dtype", "rgb888"}));

		give_tensor(h, "source_video", "",
			    tensor_of(cases[i].bits == 8 ? U8 : U16, cases[i].ndim, cases[i].shape,
				      NULL));
		cr_expect_eq(frag_harness_tick(h), -EINVAL, "%s", cases[i].sentence);
		cr_expect(strstr(frag_harness_error(h), cases[i].sentence) != NULL, "%s",
			  frag_harness_error(h));
		if (cases[i].good[0] > 0) {
			give_tensor(h, "source_video", "",
				    tensor_of(U8, cases[i].ndim, cases[i].good, NULL));
			cr_expect_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
		}
		frag_harness_destroy(h);
	}
}
