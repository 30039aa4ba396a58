/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRAW_SPACE_H
#define DRAW_SPACE_H

#include "canvas.h"

/*
 * Shapes in space as a camera sees them: 60 degrees high and as wide, y is up, and it looks along
 * -z from [0, 0, 1] unless it is told otherwise, as Holoviz's. (Holoscan SDK, module holoviz.)
 */
struct camera {
	double eye[3], right[3], up[3], back[3];
};

/* Returns 0, or -EINVAL where it looks nowhere, or along `up`. */
int draw_camera_init(struct camera *camera, const double eye[3], const double look_at[3],
		     const double up[3]);

enum space_kind {
	SPACE_POINTS,
	SPACE_LINES,
	SPACE_TRIANGLES,
};

/* Shapes of one kind. Each has one colour, that of its first corner. */
struct space {
	enum space_kind kind;
	bool is_strip; /* LINES: each line begins where the one before ends */
	int64_t corners;
	/* Writes x, y, z of a corner. */
	void (*corner)(const struct space *space, int64_t i, double out[3]);
	const void *data;
	bool is_wide;          /* f64, or a depth map of f32 */
	int64_t rows, columns; /* a depth map, whose neighbours are joined; 0: a list of shapes */
	const uint8_t *colors; /* of the corners of a depth map; NULL: that of `paint` */
	int64_t channels;      /* of colors: 3 or 4 */
	struct paint paint;    /* its alpha counts for colors too */
	double line_width, point_size;
};

/*
 * Draws the shapes, the farthest first. Those that come nearer to the camera than 0.1 are left out,
 * and all of them if there is no memory for their order.
 */
void draw_space(struct canvas *canvas, const struct camera *camera, const struct space *space);

#endif
