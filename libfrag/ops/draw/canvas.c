// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "canvas.h"
#include "font.h"

/* Far outside of every frame, and small enough to calculate with. */
#define FAR 1e6

static double near(double x)
{
	return x < -FAR ? -FAR : x > FAR ? FAR : x;
}

static int64_t clamp(int64_t x, int64_t least, int64_t most)
{
	return x < least ? least : x > most ? most : x;
}

static uint8_t *pixel_at(const struct canvas *canvas, int64_t y, int64_t x)
{
	const int64_t stride = canvas->stride > 0 ? canvas->stride : canvas->columns;

	return canvas->pixels + (y * stride + x) * 3;
}

static struct area cut(const struct canvas *canvas, const struct area *area)
{
	return (struct area){
		clamp(area->left, 0, canvas->columns), clamp(area->top, 0, canvas->rows),
		clamp(area->right, 0, canvas->columns), clamp(area->bottom, 0, canvas->rows)};
}

struct canvas draw_part(const struct canvas *canvas, const struct area *area)
{
	const struct area in = cut(canvas, area);

	if (in.left >= in.right || in.top >= in.bottom)
		return (struct canvas){0};
	return (struct canvas){
		.pixels = canvas->steps == NULL ? pixel_at(canvas, in.top, in.left) : NULL,
		.rows = in.bottom - in.top,
		.columns = in.right - in.left,
		.stride = canvas->stride > 0 ? canvas->stride : canvas->columns,
		.left = canvas->left + in.left,
		.top = canvas->top + in.top,
		.steps = canvas->steps,
	};
}

/* Returns a step for what is seen of a rectangle; NULL: it is nothing, or there is no room. */
static struct draw_step *add_step(const struct canvas *canvas, const struct area *area)
{
	const struct area seen = cut(canvas, area);
	struct draw_steps *steps = canvas->steps;
	struct draw_step *step = &steps->items[steps->count];

	if (seen.left >= seen.right || seen.top >= seen.bottom)
		return NULL;
	if (steps->count == steps->most) {
		steps->is_full = true;
		return NULL;
	}
	steps->count++;
	*step = (struct draw_step){
		.left = (int32_t)(canvas->left + seen.left),
		.top = (int32_t)(canvas->top + seen.top),
		.right = (int32_t)(canvas->left + seen.right),
		.bottom = (int32_t)(canvas->top + seen.bottom),
	};
	return step;
}

static void add_fill(const struct canvas *canvas, const struct area *area,
		     const struct paint *paint)
{
	struct draw_step *step = add_step(canvas, area);

	if (step != NULL)
		step->paint = *paint;
}

static void add_frame(const struct canvas *canvas, const struct area *area,
		      const struct frame *frame, enum draw_kind kind, uint16_t alpha)
{
	struct draw_step *step = add_step(canvas, area);

	if (step == NULL)
		return;
	step->kind = (uint8_t)kind;
	step->paint.alpha = alpha;
	step->frame_left = (int32_t)(canvas->left + area->left);
	step->frame_top = (int32_t)(canvas->top + area->top);
	step->frame_width = (int32_t)(area->right - area->left);
	step->frame_height = (int32_t)(area->bottom - area->top);
	step->rows = (int32_t)frame->rows;
	step->columns = (int32_t)frame->columns;
	step->channels = (int32_t)frame->channels;
	step->row_bytes = frame->row_bytes;
	step->data = frame->data;
}

/* Paints the pixels of a row from left to before right. */
static void span(struct canvas *canvas, int64_t y, int64_t left, int64_t right,
		 const struct paint *paint)
{
	uint8_t *pixel;

	left = left < 0 ? 0 : left;
	right = right > canvas->columns ? canvas->columns : right;
	if (y < 0 || y >= canvas->rows || left >= right)
		return;
	if (canvas->steps != NULL) {
		add_fill(canvas, &(struct area){left, y, right, y + 1}, paint);
		return;
	}
	pixel = pixel_at(canvas, y, left);
	for (int64_t x = left; x < right; x++, pixel += 3)
		draw_blend(pixel, paint->rgb, paint->alpha);
}

struct area draw_area(double left, double top, double right, double bottom)
{
	if (isnan(left) || isnan(top) || isnan(right) || isnan(bottom))
		return (struct area){0};
	return (struct area){
		.left = (int64_t)floor(near(left) + 0.5),
		.top = (int64_t)floor(near(top) + 0.5),
		.right = (int64_t)floor(near(right) + 0.5),
		.bottom = (int64_t)floor(near(bottom) + 0.5),
	};
}

static void fill(struct canvas *canvas, const struct area *area, const struct paint *paint)
{
	const struct area seen = cut(canvas, area);

	if (canvas->steps != NULL) {
		add_fill(canvas, &seen, paint);
		return;
	}
	for (int64_t y = seen.top; y < seen.bottom; y++)
		span(canvas, y, seen.left, seen.right, paint);
}

void draw_outline(struct canvas *canvas, const struct area *area, int64_t width,
		  const struct paint *paint)
{
	int64_t rows = area->bottom - area->top, columns = area->right - area->left;
	struct area inner;

	if (2 * width >= rows || 2 * width >= columns) {
		fill(canvas, area, paint);
		return;
	}
	inner = (struct area){area->left + width, area->top + width, area->right - width,
			      area->bottom - width};
	fill(canvas, &(struct area){area->left, area->top, area->right, inner.top}, paint);
	fill(canvas, &(struct area){area->left, inner.bottom, area->right, area->bottom}, paint);
	fill(canvas, &(struct area){area->left, inner.top, inner.left, inner.bottom}, paint);
	fill(canvas, &(struct area){inner.right, inner.top, area->right, inner.bottom}, paint);
}

/* Paints from one column to another, each with the rows within reach of the line. */
static void steep_columns(struct canvas *canvas, double x0, double y0, double x1, double y1,
			  double reach, const struct paint *paint)
{
	double slope = (y1 - y0) / (x1 - x0);
	int64_t right = clamp((int64_t)ceil(x1), 0, canvas->columns);

	for (int64_t x = clamp((int64_t)floor(x0), 0, canvas->columns); x < right; x++) {
		double at = y0 + ((double)x + 0.5 - x0) * slope;
		struct area column = draw_area((double)x, at - reach, (double)x, at + reach);

		column.right = x + 1;
		column.bottom += column.bottom == column.top;
		fill(canvas, &column, paint);
	}
}

static void steep_rows(struct canvas *canvas, double x0, double y0, double x1, double y1,
		       double reach, const struct paint *paint)
{
	double slope = (x1 - x0) / (y1 - y0);
	int64_t bottom = clamp((int64_t)ceil(y1), 0, canvas->rows);

	for (int64_t y = clamp((int64_t)floor(y0), 0, canvas->rows); y < bottom; y++) {
		double at = x0 + ((double)y + 0.5 - y0) * slope;
		struct area row = draw_area(at - reach, (double)y, at + reach, (double)y);

		span(canvas, y, row.left, row.right + (row.right == row.left), paint);
	}
}

void draw_line(struct canvas *canvas, double x0, double y0, double x1, double y1, double width,
	       const struct paint *paint)
{
	double dx, dy, length;

	if (isnan(x0) || isnan(y0) || isnan(x1) || isnan(y1))
		return;
	x0 = near(x0);
	y0 = near(y0);
	x1 = near(x1);
	y1 = near(y1);
	dx = fabs(x1 - x0);
	dy = fabs(y1 - y0);
	length = hypot(dx, dy);
	if (length == 0.0)
		return;
	/* The width is measured across the line; columns and rows cut it at an angle. */
	if (dx >= dy && x0 <= x1)
		steep_columns(canvas, x0, y0, x1, y1, width * length / dx / 2, paint);
	else if (dx >= dy)
		steep_columns(canvas, x1, y1, x0, y0, width * length / dx / 2, paint);
	else if (y0 <= y1)
		steep_rows(canvas, x0, y0, x1, y1, width * length / dy / 2, paint);
	else
		steep_rows(canvas, x1, y1, x0, y0, width * length / dy / 2, paint);
}

void draw_disc(struct canvas *canvas, double x, double y, double diameter,
	       const struct paint *paint)
{
	double radius = diameter / 2;
	struct area box = draw_area(x - radius, y - radius, x + radius, y + radius);
	int64_t bottom = clamp(box.bottom, 0, canvas->rows);

	if (isnan(x) || isnan(y))
		return;
	for (int64_t row = clamp(box.top, 0, canvas->rows); row < bottom; row++) {
		double away = (double)row + 0.5 - y;
		double half = sqrt(fmax(radius * radius - away * away, 0.0));
		struct area across = draw_area(x - half, 0, x + half, 0);

		span(canvas, row, across.left, across.right, paint);
	}
}

/* Returns half the width of an oval at this height from its centre; 0: it does not reach there. */
static double half_width(double width, double height, double away)
{
	const double share = 2 * away / height;

	return width > 0.0 && height > 0.0 ? width / 2 * sqrt(fmax(1.0 - share * share, 0.0)) : 0.0;
}

void draw_oval(struct canvas *canvas, double x, double y, double width, double height,
	       double line_width, const struct paint *paint)
{
	const double outer = fabs(height) + line_width;
	const struct area box = draw_area(x, y - outer / 2, x, y + outer / 2);
	const int64_t bottom = clamp(box.bottom, 0, canvas->rows);

	for (int64_t row = clamp(box.top, 0, canvas->rows); row < bottom; row++) {
		const double away = (double)row + 0.5 - y;
		const double half = half_width(fabs(width) + line_width, outer, away);
		const double hole =
			half_width(fabs(width) - line_width, fabs(height) - line_width, away);
		const struct area across = draw_area(x - half, 0, x + half, 0);
		const struct area inside = draw_area(x - hole, 0, x + hole, 0);

		if (inside.left < inside.right) {
			span(canvas, row, across.left, inside.left, paint);
			span(canvas, row, inside.right, across.right, paint);
		} else {
			span(canvas, row, across.left, across.right, paint);
		}
	}
}

void draw_triangle(struct canvas *canvas, const double corners[6], const struct paint *paint)
{
	struct draw_step *added;
	int32_t parts[6];
	struct area area;

	for (int i = 0; i < 6; i++) {
		if (isnan(corners[i]))
			return;
		parts[i] = (int32_t)lrint(near(corners[i]) * DRAW_PARTS);
	}
	area = draw_area(fmin(fmin(corners[0], corners[2]), corners[4]) - 1,
			 fmin(fmin(corners[1], corners[3]), corners[5]) - 1,
			 fmax(fmax(corners[0], corners[2]), corners[4]) + 1,
			 fmax(fmax(corners[1], corners[3]), corners[5]) + 1);
	area = cut(canvas, &area);
	if (canvas->steps != NULL) {
		added = add_step(canvas, &area);
		if (added == NULL)
			return;
		added->kind = DRAW_TRIANGLE;
		added->paint = *paint;
		for (int i = 0; i < 6; i += 2) {
			added->corners[i] = parts[i] + (int32_t)canvas->left * DRAW_PARTS;
			added->corners[i + 1] = parts[i + 1] + (int32_t)canvas->top * DRAW_PARTS;
		}
		return;
	}
	for (int64_t y = area.top; y < area.bottom; y++)
		for (int64_t x = area.left; x < area.right; x++)
			if (draw_covers(parts, x, y))
				draw_blend(pixel_at(canvas, y, x), paint->rgb, paint->alpha);
}

static bool has_dot(uint8_t row, int64_t column)
{
	return column < FONT_COLUMNS && (row >> (FONT_COLUMNS - 1 - column) & 1) != 0;
}

void draw_text(struct canvas *canvas, double x, double y, int64_t scale, const char *text,
	       const struct paint *paint)
{
	struct area origin = draw_area(x, y, x, y);
	int64_t left = origin.left;

	if (isnan(x) || isnan(y))
		return;
	for (; *text != '\0' && left < canvas->columns; text++) {
		const uint8_t *glyph = draw_font_glyph(*text);

		for (int64_t row = 0; row < FONT_ROWS; row++) {
			int64_t column = 0, first;

			while (column < FONT_COLUMNS) {
				struct area dots = {.top = origin.top + row * scale};

				for (first = column; has_dot(glyph[row], column); column++)
					;
				dots.left = left + first * scale;
				dots.right = left + column * scale;
				dots.bottom = dots.top + scale;
				fill(canvas, &dots, paint);
				column++;
			}
		}
		left += FONT_CELL_COLUMNS * scale;
	}
}

void draw_frame(struct canvas *canvas, const struct area *area, const struct frame *frame,
		const struct palette *palette, uint16_t alpha)
{
	int64_t rows = area->bottom - area->top, columns = area->right - area->left;
	int64_t right = clamp(area->right, 0, canvas->columns);
	int64_t bottom = clamp(area->bottom, 0, canvas->rows);
	int64_t left = clamp(area->left, 0, canvas->columns);
	bool is_same = palette->paints == NULL && frame->channels == 3 && alpha == 256 &&
		       rows == frame->rows && columns == frame->columns;

	if (rows <= 0 || columns <= 0)
		return;
	if (canvas->steps != NULL) {
		add_frame(canvas, area, frame,
			  palette->paints == NULL ? DRAW_PICTURE : DRAW_CLASSES, alpha);
		return;
	}
	for (int64_t y = clamp(area->top, 0, canvas->rows); y < bottom; y++) {
		const uint8_t *from =
			(const uint8_t *)frame->data +
			(size_t)((y - area->top) * frame->rows / rows) * frame->row_bytes;
		uint8_t *to = pixel_at(canvas, y, left);

		if (is_same && right > left) {
			memcpy(to, from + (left - area->left) * 3, (size_t)(right - left) * 3);
			continue;
		}
		for (int64_t x = left; x < right; x++, to += 3) {
			const uint8_t *pixel = from + (x - area->left) * frame->columns / columns *
							      frame->channels;

			if (palette->paints == NULL)
				draw_lay(to, pixel, frame->channels, alpha);
			else
				draw_class(to, pixel[0], palette->paints, palette->count, alpha);
		}
	}
}
