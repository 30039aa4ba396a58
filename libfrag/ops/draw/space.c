// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "space.h"

#define NEAREST 0.1
#define TAN_HALF 0.57735026918962576 /* of 60 degrees */

static double dot(const double a[3], const double b[3])
{
	return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static void cross(const double a[3], const double b[3], double out[3])
{
	out[0] = a[1] * b[2] - a[2] * b[1];
	out[1] = a[2] * b[0] - a[0] * b[2];
	out[2] = a[0] * b[1] - a[1] * b[0];
}

/* Returns whether it had a length. */
static bool normalize(double v[3])
{
	const double length = sqrt(dot(v, v));

	if (!(length > 1e-9 && length < 1e18))
		return false;
	for (int k = 0; k < 3; k++)
		v[k] /= length;
	return true;
}

int draw_camera_init(struct camera *camera, const double eye[3], const double look_at[3],
		     const double up[3])
{
	struct camera c;

	for (int k = 0; k < 3; k++) {
		c.eye[k] = eye[k];
		c.back[k] = eye[k] - look_at[k];
	}
	if (!normalize(c.back))
		return -EINVAL;
	cross(up, c.back, c.right);
	if (!normalize(c.right))
		return -EINVAL;
	cross(c.back, c.right, c.up);
	*camera = c;
	return 0;
}

/* Writes the corners of shape i by their numbers. Returns whether there is such a shape. */
static bool shape_at(const struct space *space, int64_t i, int64_t out[3])
{
	const int64_t at = i / 2, column = space->columns > 0 ? at % space->columns : 0;
	const bool is_last = column + 1 == space->columns;
	const bool is_lowest = at + space->columns >= space->corners;

	if (space->kind == SPACE_POINTS) {
		out[0] = i;
		return true;
	}
	if (space->columns == 0) {
		for (int k = 0; k < 3; k++)
			out[k] = space->is_strip ? i + k : i * ((int)space->kind + 1) + k;
		return true;
	}
	/* Of each corner of a depth map: a line to the right and one down, or two triangles. */
	out[0] = at;
	out[1] = at + 1;
	out[2] = at + space->columns;
	if (space->kind == SPACE_LINES && i % 2 == 1)
		out[1] = out[2];
	else if (space->kind == SPACE_TRIANGLES && i % 2 == 1) {
		out[0] = at + 1;
		out[1] = at + space->columns + 1;
	}
	if (space->kind == SPACE_TRIANGLES)
		return !is_last && !is_lowest;
	return i % 2 == 0 ? !is_last : !is_lowest;
}

static int64_t shape_count(const struct space *space)
{
	if (space->kind == SPACE_POINTS)
		return space->corners;
	if (space->columns > 0)
		return 2 * space->corners;
	return space->is_strip ? space->corners - 1 : space->corners / ((int)space->kind + 1);
}

/* A shape in pixels. */
struct seen {
	double corners[6];
	double distance; /* of its middle */
	int64_t first;   /* corner */
};

static bool see(const struct space *space, const struct camera *camera, const struct canvas *canvas,
		int64_t i, struct seen *out)
{
	int64_t numbers[3];

	if (!shape_at(space, i, numbers))
		return false;
	out->distance = 0.0;
	out->first = numbers[0];
	for (int k = 0; k <= (int)space->kind; k++) {
		double at[3], away;

		space->corner(space, numbers[k], at);
		for (int d = 0; d < 3; d++)
			at[d] -= camera->eye[d];
		away = -dot(at, camera->back);
		if (!(away >= NEAREST))
			return false;
		out->distance += away;
		out->corners[2 * k] = (0.5 + dot(at, camera->right) / (2 * TAN_HALF * away)) *
				      (double)canvas->columns;
		out->corners[2 * k + 1] =
			(0.5 - dot(at, camera->up) / (2 * TAN_HALF * away)) * (double)canvas->rows;
	}
	out->distance /= (int)space->kind + 1;
	return true;
}

struct order {
	double distance;
	int64_t i;
};

static int farthest_first(const void *left, const void *right)
{
	const struct order *a = left, *b = right;

	if (a->distance != b->distance)
		return a->distance > b->distance ? -1 : 1;
	return a->i < b->i ? -1 : 1;
}

static void draw_seen(struct canvas *canvas, const struct space *space, const struct seen *seen)
{
	const double *at = seen->corners;
	struct paint paint = space->paint;

	if (space->colors != NULL) {
		const uint8_t *color = space->colors + seen->first * space->channels;

		for (int c = 0; c < 3; c++)
			paint.rgb[c] = color[c];
		if (space->channels == 4)
			paint.alpha = (uint16_t)((paint.alpha * color[3] + 127) / 255);
	}
	if (space->kind == SPACE_POINTS)
		draw_disc(canvas, at[0], at[1], space->point_size, &paint);
	else if (space->kind == SPACE_LINES)
		draw_line(canvas, at[0], at[1], at[2], at[3], space->line_width, &paint);
	else
		draw_triangle(canvas, at, &paint);
}

void draw_space(struct canvas *canvas, const struct camera *camera, const struct space *space)
{
	const int64_t most = shape_count(space);
	struct order *order;
	struct seen seen;
	int64_t count = 0;

	if (most <= 0)
		return;
	order = malloc((size_t)most * sizeof(*order));
	if (order == NULL)
		return;
	for (int64_t i = 0; i < most; i++)
		if (see(space, camera, canvas, i, &seen))
			order[count++] = (struct order){seen.distance, i};
	qsort(order, (size_t)count, sizeof(*order), farthest_first);
	for (int64_t k = 0; k < count; k++)
		if (see(space, camera, canvas, order[k].i, &seen))
			draw_seen(canvas, space, &seen);
	free(order);
}
