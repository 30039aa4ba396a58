// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <stdlib.h>

#include "vision/motion.h"

#define ROWS 120
#define COLUMNS 160
#define SIDE 24

static const struct motion_config config = {
	.threshold = 25.0, .learning_rate = 0.02, .min_area = 200, .warmup = 15};

/* A street of gray with some noise, the same in every run, that differs from frame to frame. */
static void street(uint8_t *picture, uint32_t *seed)
{
	for (int y = 0; y < ROWS; y++) {
		for (int x = 0; x < COLUMNS; x++) {
			uint8_t *p = picture + (y * COLUMNS + x) * 3;

			*seed = *seed * 1664525u + 1013904223u;
			p[0] = p[1] = p[2] = (uint8_t)(70 + x / 4 + (int)((*seed >> 24) % 9));
		}
	}
}

static void square(uint8_t *picture, int left, int top, uint8_t value)
{
	for (int y = top; y < top + SIDE; y++) {
		for (int x = left; x < left + SIDE; x++) {
			if (x >= 0 && x < COLUMNS && y >= 0 && y < ROWS)
				memset(picture + (y * COLUMNS + x) * 3, value, 3);
		}
	}
}

static double iou(const struct motion_box *box, int left, int top)
{
	int right = left + SIDE, bottom = top + SIDE;
	int l = left > box->left ? left : box->left, t = top > box->top ? top : box->top;
	int r = right < box->right ? right : box->right,
	    b = bottom < box->bottom ? bottom : box->bottom;
	double both = r > l && b > t ? (double)(r - l) * (b - t) : 0.0;
	double boxed = (double)(box->right - box->left) * (box->bottom - box->top);

	return both / (boxed + SIDE * SIDE - both);
}

struct scene {
	uint8_t picture[ROWS * COLUMNS * 3];
	struct frame frame;
	struct motion *motion;
	struct motion_box boxes[MOTION_BOXES_MAX];
	uint32_t seed;
};

static struct scene *scene_create(void)
{
	struct scene *s = calloc(1, sizeof(*s));

	s->frame = (struct frame){.data = s->picture,
				  .rows = ROWS,
				  .columns = COLUMNS,
				  .channels = 3,
				  .row_bytes = COLUMNS * 3};
	s->motion = vision_motion_create(&config, ROWS, COLUMNS);
	cr_assert_not_null(s->motion);
	return s;
}

static int step(struct scene *s)
{
	return vision_motion_step(s->motion, &config, &s->frame, s->boxes);
}

static void scene_destroy(struct scene *s)
{
	vision_motion_destroy(s->motion);
	free(s);
}

Test(ops_motion, a_still_clip_has_no_boxes)
{
	struct scene *s = scene_create();

	for (int i = 0; i < 100; i++) {
		street(s->picture, &s->seed);
		square(s->picture, 40, 40, 230);
		cr_assert_eq(step(s), 0, "frame %d", i);
	}
	scene_destroy(s);
}

/* It is there from the first frame on: where it stood then must not stay marked. */
Test(ops_motion, one_box_covers_a_moving_square)
{
	struct scene *s = scene_create();

	for (int i = 0; i < 34; i++) {
		int left = 4 + 4 * i, top = 20 + 2 * i;

		street(s->picture, &s->seed);
		square(s->picture, left, top, 230);
		int n = step(s);

		if (i < config.warmup) {
			cr_assert_eq(n, 0, "frame %d belongs to the first background", i);
			continue;
		}
		cr_assert_eq(n, 1, "frame %d has %d boxes", i, n);
		cr_assert_geq(iou(&s->boxes[0], left, top), 0.5,
			      "frame %d: %d %d %d %d against %d %d", i, s->boxes[0].left,
			      s->boxes[0].top, s->boxes[0].right, s->boxes[0].bottom, left, top);
	}
	scene_destroy(s);
}

Test(ops_motion, two_squares_have_two_boxes_in_order)
{
	struct scene *s = scene_create();

	for (int i = 0; i < 40; i++) {
		street(s->picture, &s->seed);
		if (i >= config.warmup) {
			square(s->picture, 2 * i, 80, 10);
			square(s->picture, 130 - 2 * i, 10, 230);
			cr_assert_eq(step(s), 2, "frame %d", i);
			cr_assert_geq(iou(&s->boxes[0], 130 - 2 * i, 10), 0.5);
			cr_assert_geq(iou(&s->boxes[1], 2 * i, 80), 0.5);
		} else {
			cr_assert_eq(step(s), 0);
		}
	}
	scene_destroy(s);
}

Test(ops_motion, what_stops_loses_its_box)
{
	struct scene *s = scene_create();
	int boxed = 0, last = 0;

	for (int i = 0; i < 200; i++) {
		int left = i < 30 ? 4 * i : 120;

		street(s->picture, &s->seed);
		square(s->picture, left, 40, 230);
		last = step(s);
		boxed += last;
	}
	cr_assert_gt(boxed, 10);
	cr_assert_eq(last, 0);
	scene_destroy(s);
}

Test(ops_motion, a_change_of_light_is_no_object)
{
	struct scene *s = scene_create();

	for (int i = 0; i < 60; i++) {
		street(s->picture, &s->seed);
		for (size_t k = 0; i >= 30 && k < sizeof(s->picture); k++)
			s->picture[k] = (uint8_t)(s->picture[k] + 60);
		cr_assert_eq(step(s), 0, "frame %d", i);
	}
	scene_destroy(s);
}

Test(ops_motion, small_things_are_left_out)
{
	struct motion_config large = config;
	struct scene *s = scene_create();

	large.min_area = SIDE * SIDE * 2;
	for (int i = 0; i < 40; i++) {
		street(s->picture, &s->seed);
		square(s->picture, 4 * i, 40, 230);
		cr_assert_eq(vision_motion_step(s->motion, &large, &s->frame, s->boxes), 0);
	}
	scene_destroy(s);
}

/* Odd sides and gray: the model has half the sides, rounded up, and boxes stay inside. */
Test(ops_motion, odd_and_gray_frames)
{
	uint8_t picture[31 * 33];
	struct frame f = {
		.data = picture, .rows = 31, .columns = 33, .channels = 1, .row_bytes = 33};
	struct motion_config small = {
		.threshold = 25, .learning_rate = 0.02, .min_area = 16, .warmup = 1};
	struct motion *m = vision_motion_create(&small, 31, 33);
	struct motion_box boxes[MOTION_BOXES_MAX];
	int n = 0;

	for (int i = 0; i < 20; i++) {
		memset(picture, 50, sizeof(picture));
		for (int y = 19; y < 31 && i > 0; y++)
			memset(picture + y * 33 + 13 + i, 200, (size_t)(33 - 13 - i));
		n = vision_motion_step(m, &small, &f, boxes);
		for (int k = 0; k < n; k++)
			cr_assert(boxes[k].right <= 33 && boxes[k].bottom <= 31 &&
				  boxes[k].left >= 0 && boxes[k].top >= 0);
	}
	vision_motion_destroy(m);
}
