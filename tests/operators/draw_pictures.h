/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_OPERATORS_DRAW_PICTURES_H
#define TESTS_OPERATORS_DRAW_PICTURES_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "vision/vision.h"

/* Frames that are drawn into, and pictures of them with a letter for each pixel. */

#define ROWS 12
#define COLUMNS 24

/* A frame of one gray. */
static inline struct frag_tensor *frame_of(uint8_t gray)
{
	static uint8_t data[ROWS * COLUMNS * 3];

	memset(data, gray, sizeof(data));
	return tensor_of((struct frag_dtype){FRAG_DTYPE_UINT, 8, 1}, 3,
			 (const int64_t[]){ROWS, COLUMNS, 3}, data);
}

/* Gives a black frame and a tensor "t", in one message, and takes the picture. */
static inline struct frag_message *drawn(struct frag_harness *h, struct frag_tensor *t)
{
	struct frag_message *m = frag_message_create();

	cr_assert_eq(frag_message_add_tensor(m, "", frame_of(0)), 0);
	cr_assert_eq(frag_message_add_tensor(m, "t", t), 0);
	cr_assert_eq(frag_harness_give(h, "receivers", m), 0);
	m = ticked(h, "out");
	return m;
}

/* A letter for each pixel: its red in steps of 64. */
static inline void write_picture(const struct frag_message *m, char *text)
{
	const struct frag_tensor *t = frag_message_tensor(m, "");
	const uint8_t *pixel = frag_tensor_data(t);
	const int64_t *shape = frag_tensor_dl(t)->shape;

	for (int64_t y = 0; y < shape[0]; y++) {
		for (int64_t x = 0; x < shape[1]; x++, pixel += 3)
			*text++ = ".:o%#"[(pixel[0] + 63) / 64];
		*text++ = '\n';
	}
	*text = '\0';
}

/* The picture is `rows`, in which " xN" behind a row says how often it is there. */
static inline void expect_drawn(const struct frag_message *m, const char *rows, const char *what)
{
	char text[ROWS * (COLUMNS + 1) + 1], expected[sizeof(text)], *at = expected;

	while (*rows != '\0') {
		const char *end = strchr(rows, '\n');

		for (int times = rows[COLUMNS] == ' ' ? atoi(rows + COLUMNS + 2) : 1; times > 0;
		     times--) {
			cr_assert_lt(at, expected + ROWS * (COLUMNS + 1), "%s: too many rows",
				     what);
			memcpy(at, rows, COLUMNS);
			at[COLUMNS] = '\n';
			at += COLUMNS + 1;
		}
		rows = end + 1;
	}
	*at = '\0';
	write_picture(m, text);
	cr_expect_str_eq(text, expected, "%s is\n%s", what, text);
}

/* Draws a tensor by one layer over a black frame and compares the picture. */
static inline void expect_picture(const char *layer, struct frag_tensor *t, const char *expected)
{
	char tensors[300];
	struct frag_harness *h;
	struct frag_message *m;

	snprintf(tensors, sizeof(tensors), "[{type: color}, {name: t, %s}]", layer);
	h = make(&vision_draw_type, FRAG_ARGS({"tensors", tensors}));
	m = drawn(h, t);
	expect_drawn(m, expected, layer);
	finish(h, m);
}

#endif
