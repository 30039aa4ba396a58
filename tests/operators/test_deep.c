// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <png.h>
#include <stdlib.h>
#include <unistd.h>

#include "harness.h"
#include "vision/vision.h"

/* Frames of u16: how operators bring them to fewer bits, and which of them keep all. */

static const struct frag_dtype u8 = {FRAG_DTYPE_UINT, 8, 1}, u16 = {FRAG_DTYPE_UINT, 16, 1},
			       f32 = {FRAG_DTYPE_FLOAT, 32, 1};

/* A frame of one row. */
static struct frag_tensor *row_of(struct frag_dtype dtype, int64_t columns, int64_t channels,
				  const void *data)
{
	return tensor_of(dtype, 3, (const int64_t[]){1, columns, channels}, data);
}

/* Ticks an operator with one frame; its only tensor must then hold `expected`. */
static void expect(const struct frag_op_type *type, const struct frag_arg *args,
		   struct frag_tensor *in, struct frag_dtype dtype, const void *expected,
		   size_t size)
{
	struct frag_harness *h = make(type, args);
	bool is_draw = type == &vision_draw_type;
	struct frag_message *m = NULL;
	const struct frag_tensor *t;

	give_tensor(h, is_draw ? "receivers" : "source_video", "", in);
	cr_assert_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
	cr_assert_eq(frag_harness_take(h, is_draw ? "out" : "tensor", &m), 0);
	t = frag_message_tensor(m, "");
	cr_assert(frag_tensor_dl(t)->dtype.bits == dtype.bits &&
		  frag_tensor_dl(t)->dtype.code == dtype.code);
	cr_assert_eq(frag_tensor_size_bytes(t), size);
	cr_assert_arr_eq(frag_tensor_data(t), expected, size);
	finish(h, m);
}

#define EXPECT_CONVERTED(args, in, dtype, ...)                                                     \
	do {                                                                                       \
		expect(&vision_format_converter_type, args, in, dtype, (__VA_ARGS__),              \
		       sizeof(__VA_ARGS__));                                                       \
	} while (0)

Test(ops_deep, the_whole_range_becomes_that_of_fewer_bits)
{
	const uint16_t deep[] = {0, 0x0a0a, 0x8080, 0xffff};

	EXPECT_CONVERTED(FRAG_ARGS({"out_dtype", "gray8"}), row_of(u16, 4, 1, deep), u8,
			 (uint8_t[]){0, 10, 128, 255});
	EXPECT_CONVERTED(FRAG_ARGS({"out_dtype", "rgb888"}), row_of(u16, 2, 1, deep + 1), u8,
			 (uint8_t[]){10, 10, 10, 128, 128, 128});
	EXPECT_CONVERTED(FRAG_ARGS({"out_dtype", "float32"}, {"scale_max", "65535"}),
			 row_of(u16, 4, 1, deep), f32, (float[]){0, 0x0a0a, 0x8080, 0xffff});
}

Test(ops_deep, a_window_becomes_black_and_white)
{
	const uint16_t deep[] = {999, 1000, 1500, 2999, 3000, 3001};
	const float metres[] = {0.5f, 2.0f, 3.0f, 9.0f};

	EXPECT_CONVERTED(FRAG_ARGS({"out_dtype", "gray8"}, {"window", "[1000, 3000]"}),
			 row_of(u16, 6, 1, deep), u8, (uint8_t[]){0, 0, 64, 255, 255, 255});
	EXPECT_CONVERTED(FRAG_ARGS({"out_dtype", "uint16"}, {"window", "[1000, 3000]"}),
			 row_of(u16, 6, 1, deep), u16,
			 (uint16_t[]){0, 0, 16384, 65502, 65535, 65535});
	EXPECT_CONVERTED(FRAG_ARGS({"out_dtype", "gray8"}, {"window", "[1, 5]"}),
			 row_of(f32, 4, 1, metres), u8, (uint8_t[]){0, 64, 128, 255});
	/* alpha stays, and is not looked at */
	EXPECT_CONVERTED(FRAG_ARGS({"out_dtype", "rgba8888"}, {"window", "[10, 20]"}),
			 row_of(u8, 1, 4, ((uint8_t[]){10, 12, 20, 13})), u8,
			 (uint8_t[]){0, 51, 255, 13});
}

Test(ops_deep, shares_of_the_pixels_become_black_and_white)
{
	const uint16_t deep[] = {9000, 0, 1000, 2000, 8000, 3000, 4000, 7000, 5000, 6000};

	/* one of ten is at most 0, nine of ten are at most 8000 */
	EXPECT_CONVERTED(FRAG_ARGS({"out_dtype", "gray8"}, {"percentile", "[10, 90]"}),
			 row_of(u16, 10, 1, deep), u8,
			 (uint8_t[]){255, 0, 32, 64, 255, 96, 128, 223, 159, 191});
	EXPECT_CONVERTED(FRAG_ARGS({"out_dtype", "gray8"}, {"percentile", "[11, 89]"}),
			 row_of(u16, 10, 1, deep), u8,
			 (uint8_t[]){255, 0, 0, 36, 255, 73, 109, 219, 146, 182});
	/* alpha is no share of anything, and stays */
	EXPECT_CONVERTED(FRAG_ARGS({"out_dtype", "rgba8888"}, {"percentile", "[0, 100]"}),
			 row_of(u8, 1, 4, ((uint8_t[]){10, 12, 20, 250})), u8,
			 (uint8_t[]){0, 51, 255, 250});
	EXPECT_CONVERTED(FRAG_ARGS({"out_dtype", "rgba8888"}, {"percentile", "[0, 100]"}),
			 row_of(u8, 1, 4, ((uint8_t[]){10, 12, 20, 0})), u8,
			 (uint8_t[]){0, 51, 255, 0});
	/* a frame of one value, which is both black and white */
	EXPECT_CONVERTED(FRAG_ARGS({"out_dtype", "gray8"}, {"percentile", "[0, 100]"}),
			 row_of(u8, 2, 1, ((uint8_t[]){7, 7})), u8, (uint8_t[]){0, 0});
}

Test(ops_deep, sixteen_bits_are_made_and_kept)
{
	const uint16_t colours[] = {1, 2, 0xfffe};

	EXPECT_CONVERTED(FRAG_ARGS({"out_dtype", "gray16"}),
			 row_of(u8, 3, 1, ((uint8_t[]){0, 1, 255})), u16,
			 (uint16_t[]){0, 257, 65535});
	EXPECT_CONVERTED(FRAG_ARGS({"out_dtype", "uint16"}),
			 row_of(f32, 3, 1, ((float[]){-1.0f, 0.5f, 2.0f})), u16,
			 (uint16_t[]){0, 32768, 65535});
	EXPECT_CONVERTED(FRAG_ARGS({"out_dtype", "rgb161616"}), row_of(u16, 1, 3, colours), u16,
			 (uint16_t[]){1, 2, 0xfffe});
	EXPECT_CONVERTED(
		FRAG_ARGS({"out_dtype", "rgba16161616"}, {"out_channel_order", "[2, 1, 0, 3]"}),
		row_of(u16, 1, 3, colours), u16, (uint16_t[]){0xfffe, 2, 1, 65535});
	EXPECT_CONVERTED(FRAG_ARGS({"out_dtype", "uint16"}, {"resize_width", "3"},
				   {"resize_height", "1"}, {"resize_mode", "1"}),
			 row_of(u16, 1, 1, colours + 2), u16, (uint16_t[]){0xfffe, 0xfffe, 0xfffe});
	/* four columns, of which the picture has one */
	EXPECT_CONVERTED(FRAG_ARGS({"out_dtype", "gray16"}, {"resize_width", "3"},
				   {"resize_height", "1"}, {"pad", "true"}, {"pad_value", "2"}),
			 row_of(u16, 1, 1, colours), u16, (uint16_t[]){514, 1, 514});
}

Test(ops_deep, pictures_are_drawn_by_their_levels)
{
	const uint16_t deep[] = {0x0a0a, 0x8080, 0xffff};
	const struct frag_op_type *draw = &vision_draw_type;

	expect(draw, FRAG_NO_ARGS, row_of(u16, 3, 1, deep), u8,
	       ((uint8_t[]){10, 10, 10, 128, 128, 128, 255, 255, 255}), 9);
	expect(draw, FRAG_ARGS({"tensors", "[{name: '', type: color, window: [0, 0x8080]}]"}),
	       row_of(u16, 3, 1, deep), u8, ((uint8_t[]){20, 20, 20, 255, 255, 255, 255, 255, 255}),
	       9);
	expect(draw, FRAG_ARGS({"tensors", "[{name: '', type: color, percentile: [1, 100]}]"}),
	       row_of(u8, 3, 1, ((uint8_t[]){10, 20, 30})), u8,
	       ((uint8_t[]){0, 0, 0, 128, 128, 128, 255, 255, 255}), 9);
}

static void refused(const struct frag_op_type *type, const struct frag_arg *args, const char *says)
{
	struct frag_err err = FRAG_ERR_INIT;

	cr_assert_null(frag_harness_create(type, args, &err), "%s", says);
	cr_assert(strstr(err.text, says) != NULL, "said: %s", err.text);
}

Test(ops_deep, levels_that_make_no_sense_are_refused)
{
	const struct frag_op_type *type = &vision_format_converter_type;
	struct frag_harness *h;

	refused(type,
		FRAG_ARGS({"out_dtype", "gray8"}, {"window", "[1, 2]"}, {"percentile", "[1, 2]"}),
		"both window and percentile");
	refused(type, FRAG_ARGS({"out_dtype", "gray8"}, {"window", "[2, 2]"}), "window is not two");
	refused(type, FRAG_ARGS({"out_dtype", "gray8"}, {"window", "[2]"}), "window is not two");
	refused(type, FRAG_ARGS({"out_dtype", "gray8"}, {"percentile", "[1, 101]"}), "0 to 100");
	refused(&vision_draw_type,
		FRAG_ARGS({"tensors", "[{name: '', type: color, window: [2, 1]}]"}),
		"not less than the second");
	refused(&vision_draw_type,
		FRAG_ARGS({"tensors",
			   "[{name: '', type: color, window: [1, 2], percentile: [1, 2]}]"}),
		"both window and percentile");
	h = make(type, FRAG_ARGS({"out_dtype", "gray8"}, {"percentile", "[1, 99]"}));
	give_tensor(h, "source_video", "", row_of(f32, 1, 1, ((float[]){1})));
	cr_assert_eq(frag_harness_tick(h), -EINVAL);
	cr_assert(strstr(frag_harness_error(h), "give window") != NULL);
	frag_harness_destroy(h);
}

Test(ops_deep, others_name_the_operator_that_converts)
{
	struct frag_harness *h = make(&vision_motion_boxes_type, FRAG_NO_ARGS);

	give_tensor(h, "in", "", row_of(u16, 1, 1, ((uint16_t[]){1})));
	cr_assert_eq(frag_harness_tick(h), -EINVAL);
	cr_assert(strstr(frag_harness_error(h), "u16; convert it with format_converter") != NULL,
		  "said: %s", frag_harness_error(h));
	frag_harness_destroy(h);
}

Test(ops_deep, pictures_are_written_with_16_bits)
{
	const uint16_t colours[] = {1, 0x0203, 0xfffe};
	char path[] = "/tmp/frag-deep-XXXXXX";
	int fd = mkstemp(path);
	struct frag_harness *h = make(&vision_image_writer_type, FRAG_ARGS({"path", path}));
	png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
	png_infop info = png_create_info_struct(png);
	png_bytep row;
	FILE *file;

	close(fd);
	give_tensor(h, "in", "", row_of(u16, 1, 3, colours));
	cr_assert_eq(frag_harness_tick(h), 0, "%s", frag_harness_error(h));
	frag_harness_destroy(h);
	file = fopen(path, "r");
	png_init_io(png, file);
	png_read_png(png, info, PNG_TRANSFORM_IDENTITY, NULL);
	cr_assert_eq(png_get_bit_depth(png, info), 16);
	cr_assert_eq(png_get_color_type(png, info), PNG_COLOR_TYPE_RGB);
	row = png_get_rows(png, info)[0];
	for (size_t i = 0; i < 3; i++)
		cr_assert_eq(row[2 * i] << 8 | row[2 * i + 1], colours[i]);
	png_destroy_read_struct(&png, &info, NULL);
	fclose(file);
	unlink(path);
}
