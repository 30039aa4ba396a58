// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "draw_pictures.h"

Test(ops_draw, rectangles)
{
	const float corners[] = {2 / 24.0f,  2 / 12.0f,  12 / 24.0f, 8 / 12.0f,
				 30 / 24.0f, 10 / 12.0f, 16 / 24.0f, 6 / 12.0f};

	expect_picture("type: rectangles, line_width: 2", numbers(4, 2, corners),
		       "........................ x2\n"
		       "..##########............ x2\n"
		       "..##......##............ x2\n"
		       "..##########....######## x2\n"
		       "................######## x2\n"
		       "........................ x2\n");
	expect_picture("type: rectangles, color: [0.5, 0, 0]", numbers(2, 4, corners),
		       "........................ x2\n"
		       "..oooooooooo............\n"
		       "..o........o............ x3\n"
		       "..o........o....oooooooo\n"
		       "..oooooooooo....o.......\n"
		       "................o.......\n"
		       "................oooooooo\n"
		       "........................ x2\n");
}

/* Lines that are half as wide as their rectangle, or wider, fill it and nothing beside it. */
Test(ops_draw, rectangles_that_are_thinner_than_their_lines)
{
	const float corners[] = {1 / 24.0f,  1 / 12.0f, 4 / 24.0f,  9 / 12.0f,
				 6 / 24.0f,  1 / 12.0f, 10 / 24.0f, 9 / 12.0f,
				 12 / 24.0f, 1 / 12.0f, 22 / 24.0f, 4 / 12.0f,
				 12 / 24.0f, 6 / 12.0f, 22 / 24.0f, 11 / 12.0f};
	const float narrow[] = {1 / 24.0f,  1 / 12.0f,  2 / 24.0f,  9 / 12.0f,  4 / 24.0f,
				1 / 12.0f,  6 / 24.0f,  9 / 12.0f,  8 / 24.0f,  1 / 12.0f,
				11 / 24.0f, 9 / 12.0f,  13 / 24.0f, 2 / 12.0f,  22 / 24.0f,
				3 / 12.0f,  13 / 24.0f, 5 / 12.0f,  22 / 24.0f, 7 / 12.0f};

	expect_picture("type: rectangles, line_width: 2", numbers(8, 2, corners),
		       "........................\n"
		       ".###..####..##########.. x3\n"
		       ".###..####.............. x2\n"
		       ".###..####..##########.. x2\n"
		       ".###..####..##......##..\n"
		       "............##########.. x2\n"
		       "........................\n");
	/* No pixel is painted twice, and a line is no wider than what it surrounds. */
	expect_picture("type: rectangles, line_width: 2, opacity: 0.5", numbers(10, 2, narrow),
		       "........................\n"
		       ".o..oo..ooo.............\n"
		       ".o..oo..ooo..ooooooooo..\n"
		       ".o..oo..ooo............. x2\n"
		       ".o..oo..ooo..ooooooooo.. x2\n"
		       ".o..oo..ooo............. x2\n"
		       "........................ x3\n");
}

Test(ops_draw, points_and_crosses)
{
	const float points[] = {4 / 24.0f, 4 / 12.0f, 1, 1, NAN, 0};
	const float keypoints[] = {4 / 24.0f, 4 / 12.0f, 0.9f, 1, 1, 0.1f, NAN, 0, 1};
	const float crosses[] = {12 / 24.0f, 6 / 12.0f, 10 / 12.0f};

	for (int i = 0; i < 2; i++)
		expect_picture("type: points, point_size: 5",
			       i == 0 ? numbers(3, 2, points) : numbers(3, 3, keypoints),
			       "........................ x2\n"
			       "..####.................. x4\n"
			       "........................ x4\n"
			       "......................## x2\n");
	expect_picture("type: crosses, line_width: 2, color: [1, 1, 1, 0.5]",
		       numbers(1, 3, crosses),
		       "........................\n"
		       "...........oo........... x4\n"
		       ".......oooooooooo....... x2\n"
		       "...........oo........... x4\n"
		       "........................\n");
}

Test(ops_draw, lines)
{
	const float lines[] = {0,          0.5f / 12,  1, 0.5f / 12, 20.5f / 24, 2 / 12.0f,
			       20.5f / 24, 10 / 12.0f, 0, 1,         0.75f,      0.25f};
	const float strip[] = {0, 0, 0.5f, 1, 1, 0};

	expect_picture("type: lines, color: [1, 1, 1, 0.5]", numbers(3, 4, lines),
		       "oooooooooooooooooooooooo\n"
		       "........................\n"
		       "....................o...\n"
		       "................oo..o...\n"
		       "..............oo....o...\n"
		       "............oo......o...\n"
		       "..........oo........o...\n"
		       "........oo..........o...\n"
		       "......oo............o...\n"
		       "....oo..............o...\n"
		       "..oo....................\n"
		       "oo......................\n");
	expect_picture("type: line_strip, line_width: 2", numbers(3, 2, strip),
		       "##....................##\n"
		       "###..................###\n"
		       ".###................###.\n"
		       "..###..............###..\n"
		       "...###............###...\n"
		       "....###..........###....\n"
		       ".....###........###.....\n"
		       "......###......###......\n"
		       ".......###....###.......\n"
		       "........###..###........\n"
		       ".........######.........\n"
		       "..........####..........\n");
}

static struct frag_tensor *doubles(int64_t rows, int64_t columns, const double *data)
{
	return tensor_of((struct frag_dtype){FRAG_DTYPE_FLOAT, 64, 1}, 2,
			 (const int64_t[]){rows, columns}, data);
}

/* Two that share a side and are half transparent, which would show a pixel painted twice. */
Test(ops_draw, triangles)
{
	const float corners[] = {2 / 24.0f,  1 / 12.0f,  20 / 24.0f, 1 / 12.0f,  20 / 24.0f,
				 10 / 12.0f, 2 / 24.0f,  1 / 12.0f,  20 / 24.0f, 10 / 12.0f,
				 2 / 24.0f,  10 / 12.0f, 21 / 24.0f, NAN,        23 / 24.0f,
				 0,          23 / 24.0f, 1};
	const double slim[] = {23 / 24.0, 11 / 12.0, 1 / 24.0, 11 / 12.0, 12 / 24.0, 2 / 12.0};
	const double flat[] = {0, 0, 1, 1, 0.5, 0.5};

	for (int i = 0; i < 2; i++)
		expect_picture("type: triangles, color: [1, 1, 1, 0.5]",
			       i == 0 ? numbers(9, 2, corners) : numbers(3, 6, corners),
			       "........................\n"
			       "..oooooooooooooooooo.... x9\n"
			       "........................ x2\n");
	expect_picture("type: triangles", doubles(3, 2, slim),
		       "........................ x2\n"
		       "...........##...........\n"
		       "..........####..........\n"
		       ".........######.........\n"
		       "........########........\n"
		       "......###########.......\n"
		       ".....##############.....\n"
		       "....################....\n"
		       "...##################...\n"
		       "..####################..\n"
		       "........................\n");
	expect_picture("type: triangles", doubles(3, 2, flat), "........................ x12\n");
}

Test(ops_draw, ovals)
{
	const float ovals[] = {8 / 24.0f,  5 / 12.0f, 12 / 24.0f, 8 / 12.0f,
			       20 / 24.0f, 9 / 12.0f, 5 / 24.0f,  -5 / 12.0f};
	const float centre[] = {0.5f, 0.5f};

	expect_picture("type: ovals, line_width: 2", numbers(2, 4, ovals),
		       ".....######.............\n"
		       "...##########...........\n"
		       "..###......###..........\n"
		       ".###........###.........\n"
		       ".##..........##......... x2\n"
		       ".###........###...####..\n"
		       "..###......###...######.\n"
		       "...##########....##..##.\n"
		       ".....######......##..##.\n"
		       ".................######.\n"
		       "..................####..\n");
	expect_picture("type: ovals, color: [1, 1, 1, 0.5]", numbers(2, 4, ovals),
		       "........................\n"
		       "....oooooooo............\n"
		       "...o........o...........\n"
		       "..o..........o.......... x3\n"
		       "..o..........o....oooo..\n"
		       "...o........o....oo..oo.\n"
		       "....oooooooo.....o....o.\n"
		       ".................o....o.\n"
		       ".................oo..oo.\n"
		       "..................oooo..\n");
	expect_picture("type: ovals, line_width: 99, opacity: 0.5", numbers(1, 4, ovals),
		       "oooooooooooooooooooooooo x12\n");
	/* without sizes: 0.05 of each side */
	expect_picture("type: ovals, line_width: 2", numbers(1, 2, centre),
		       "........................ x5\n"
		       "...........##........... x2\n"
		       "........................ x5\n");
}

/* From 1 away the picture is 2 / sqrt(3) high and wide. */
#define HALF 0.57735026918962576
Test(ops_draw, shapes_in_space)
{
	const double points[] = {0, 0, 0, -HALF / 2, HALF, 0, HALF, -HALF, -1, 0.02, 0, 0.95};
	const double lines[] = {-HALF, -HALF, 0, HALF, HALF, 0, -HALF, HALF, 0, 0, HALF, 0};
	/* the near one is half as far away, and lies behind the other one in the tensor */
	const float triangles[] = {-0.2f, -0.2f, 0.5f, 0.2f, -0.2f, 0.5f, 0, 0.2f, 0.5f,
				   -0.5f, -0.5f, 0,    0.5f, -0.5f, 0,    0, 0.5f, 0};

	expect_picture("type: points_3d, point_size: 2", doubles(4, 3, points),
		       ".....##.................\n"
		       "........................ x4\n"
		       "...........##........... x2\n"
		       "........................\n"
		       ".................##..... x2\n"
		       "........................ x2\n");
	expect_picture("type: lines_3d", doubles(4, 3, lines),
		       "############..........##\n"
		       "....................##..\n"
		       "..................##....\n"
		       "................##......\n"
		       "..............##........\n"
		       "............##..........\n"
		       "..........##............\n"
		       "........##..............\n"
		       "......##................\n"
		       "....##..................\n"
		       "..##....................\n"
		       "##......................\n");
	expect_picture("type: line_strip_3d", doubles(4, 3, lines),
		       "########################\n"
		       "....................##..\n"
		       "..................##....\n"
		       "................##......\n"
		       "..............##........\n"
		       "............##..........\n"
		       "..........##............\n"
		       "........##..............\n"
		       "......##................\n"
		       "....##..................\n"
		       "..##....................\n"
		       "##......................\n");
	expect_picture("type: triangles_3d, color: [1, 1, 1, 0.5]", numbers(6, 3, triangles),

		       "........................\n"
		       "...........oo...........\n"
		       "..........o%%o..........\n"
		       ".........o%%%%o.........\n"
		       "........o%%%%%%o........\n"
		       ".......o%%%%%%%%o.......\n"
		       "......o%%%%%%%%%%o......\n"
		       ".....o%%%%%%%%%%%%o.....\n"
		       "....o%%%%%%%%%%%%%%o....\n"
		       "...o%%%%%%%%%%%%%%%%o...\n"
		       "..oooooooooooooooooooo..\n"
		       "........................\n");
}

/* Rows of a map go up, as y does. */
Test(ops_draw, depth_maps)
{
	const struct frag_dtype u8 = {FRAG_DTYPE_UINT, 8, 1}, f32 = {FRAG_DTYPE_FLOAT, 32, 1};
	const uint8_t flat[12] = {0};
	const float hill[] = {0, 0, 0, 0, 0, 0.5f, 0.5f, 0, 0, 0, 0, 0};
	const int64_t shape[] = {3, 4, 1};

	expect_picture("type: depth_map, point_size: 2", tensor_of(u8, 2, shape, flat),
		       "........................ x3\n"
		       ".#....#....##....#......\n"
		       ".##...##...##...##......\n"
		       "........................ x2\n"
		       ".##...##...##...##......\n"
		       ".#....#....##....#......\n"
		       "........................\n"
		       ".#....##...##...##......\n"
		       ".##...##...##...##......\n");
	expect_picture("type: depth_map, depth_map_render_mode: lines",
		       tensor_of(f32, 3, shape, hill),
		       "........................ x4\n"
		       ".#################......\n"
		       ".#...#......#....#......\n"
		       ".#..#.......#....#......\n"
		       ".#.#........#...##......\n"
		       ".##.........####.#......\n"
		       ".############....#......\n"
		       ".#.###......#....#......\n"
		       ".#################......\n");
	expect_picture("type: depth_map, depth_map_render_mode: triangles, color: [1, 1, 1, 0.5]",
		       tensor_of(u8, 3, shape, flat),
		       "........................ x4\n"
		       "..ooooooooooooooo....... x7\n"
		       "........................\n");
}

/* A map and its colours have the same sides. */
Test(ops_draw, colours_of_another_size_are_refused)
{
	const struct frag_dtype u8 = {FRAG_DTYPE_UINT, 8, 1};
	static const uint8_t zeros[18];

	for (int64_t columns = 2; columns <= 3; columns++) {
		struct frag_message *m = frag_message_create();
		struct frag_harness *h =
			make(&vision_draw_type,
			     FRAG_ARGS({"tensors", "[{name: d, type: depth_map}, "
						   "{name: c, type: depth_map_color}]"}));

		cr_assert_eq(frag_message_add_tensor(
				     m, "d", tensor_of(u8, 2, (const int64_t[]){2, 3}, zeros)),
			     0);
		cr_assert_eq(
			frag_message_add_tensor(
				m, "c", tensor_of(u8, 3, (const int64_t[]){2, columns, 3}, zeros)),
			0);
		cr_assert_eq(frag_harness_give(h, "receivers", m), 0);
		cr_expect_eq(frag_harness_tick(h), columns == 3 ? 0 : -EINVAL);
		cr_expect(columns == 3 || strstr(frag_harness_error(h), "has other sides") != NULL,
			  "%s", frag_harness_error(h));
		frag_harness_destroy(h);
	}
}

/* The first one is nearer, and comes over the second one. */
Test(ops_draw, what_is_nearer_hides_what_is_farther)
{
	const struct frag_dtype u8 = {FRAG_DTYPE_UINT, 8, 1};
	const uint8_t depths[2] = {128, 0}, colors[6] = {255, 0, 0, 0, 255, 255};

	for (int turned = 0; turned < 2; turned++) {
		struct frag_message *m = frag_message_create();
		struct frag_harness *h =
			make(&vision_draw_type,
			     FRAG_ARGS({"tensors", "[{name: d, type: depth_map, point_size: 50}, "
						   "{name: c, type: depth_map_color}]"},
				       {"width", "40"}, {"height", "20"},
				       {"camera_eye", turned ? "[0, 0, -2]" : "[0, 0, 2]"}));
		const uint8_t *middle;

		cr_assert_eq(frag_message_add_tensor(
				     m, "d", tensor_of(u8, 2, (const int64_t[]){1, 2}, depths)),
			     0);
		cr_assert_eq(frag_message_add_tensor(
				     m, "c", tensor_of(u8, 3, (const int64_t[]){1, 2, 3}, colors)),
			     0);
		cr_assert_eq(frag_harness_give(h, "receivers", m), 0);
		m = ticked(h, "out");
		middle = (const uint8_t *)frag_tensor_data(frag_message_tensor(m, "")) +
			 (10 * 40 + 20) * 3;
		cr_expect_eq(middle[0], turned ? 0 : 255);
		cr_expect_eq(middle[1], turned ? 255 : 0);
		finish(h, m);
	}
}

/* Each corner of a map has the colour of its pixel, with its alpha. */
Test(ops_draw, depth_maps_have_colours)
{
	const struct frag_dtype u8 = {FRAG_DTYPE_UINT, 8, 1};
	const uint8_t depths[2] = {0, 0};
	const uint8_t colors[8] = {255, 0, 0, 255, 0, 255, 255, 51};
	static const char *const modes[] = {"points, point_size: 2", "lines"};

	for (int mode = 0; mode < 2; mode++) {
		char tensors[300];
		struct frag_message *m = frag_message_create();
		struct frag_harness *h;
		const uint8_t *pixels;

		snprintf(tensors, sizeof(tensors),
			 "[{name: c, type: depth_map_color}, {name: d, type: depth_map, "
			 "depth_map_render_mode: %s}]",
			 modes[mode]);
		h = make(&vision_draw_type,
			 FRAG_ARGS({"tensors", tensors}, {"width", "40"}, {"height", "20"},
				   {"camera_eye", "[-0.25, -0.5, 1]"},
				   {"camera_look_at", "[-0.25, -0.5, 0]"}));
		cr_assert_eq(frag_message_add_tensor(
				     m, "d", tensor_of(u8, 2, (const int64_t[]){1, 2}, depths)),
			     0);
		cr_assert_eq(frag_message_add_tensor(
				     m, "c", tensor_of(u8, 3, (const int64_t[]){1, 2, 4}, colors)),
			     0);
		cr_assert_eq(frag_harness_give(h, "receivers", m), 0);
		m = ticked(h, "out");
		pixels = frag_tensor_data(frag_message_tensor(m, ""));
		/* the corners lie 8.66 columns from the middle: 0.25 / (2 * HALF) of 40 */
		cr_expect_eq(pixels[(10 * 40 + 11) * 3], 255);
		cr_expect_eq(pixels[(10 * 40 + 11) * 3 + 1], 0);
		cr_expect_eq(pixels[(10 * 40 + 28) * 3], mode == 0 ? 0 : 255);
		cr_expect_eq(pixels[(10 * 40 + 28) * 3 + 1], mode == 0 ? 51 : 0);
		finish(h, m);
	}
}

Test(ops_draw, text)
{
	const float places[] = {1 / 24.0f, 2 / 12.0f, 0.1f, 13 / 24.0f, 4 / 12.0f, 0.1f};

	expect_picture("type: text, text: [aG, \"?\\u00e9\"]", numbers(2, 3, places),
		       "........................ x2\n"
		       "........###.............\n"
		       ".......#...#............\n"
		       "..###..#......###...###.\n"
		       ".....#.#.###.#...#.#...#\n"
		       "..####.#...#.....#.....#\n"
		       ".#...#.#...#....#.....#.\n"
		       "..####..####...#.....#..\n"
		       "........................\n"
		       "...............#.....#..\n"
		       "........................\n");
}
