/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRAW_CANVAS_H
#define DRAW_CANVAS_H

#include "../frame.h"
#include "step.h"

/*
 * A picture of RGB that is drawn into. Coordinates are pixels, (0, 0) is the left top corner of the
 * left top pixel. Whatever lies outside of the picture is left out; coordinates may be any number.
 * Every pixel of a shape is painted once, so that a transparent one is even.
 */
struct canvas {
	uint8_t *pixels; /* [rows, columns, 3]; the caller's */
	int64_t rows, columns;
	int64_t stride;    /* pixels from one row to the next; 0: as many as there are columns */
	int64_t left, top; /* of the picture that this is a part of */
	struct draw_steps *steps; /* what is drawn is added to them instead; NULL: it is drawn */
};

/* For a GPU, in the coordinates of the whole picture. */
struct draw_steps {
	struct draw_step *items; /* the caller's */
	size_t count, most;
	bool is_full; /* what came after the last one is missing */
};

/* A rectangle of pixels; right and bottom lie outside. */
struct area {
	int64_t left, top, right, bottom;
};

/* Returns the rectangle of the pixels whose centres lie between these sides. */
struct area draw_area(double left, double top, double right, double bottom);

/* Returns a part of a canvas, which has coordinates of its own; without rows: it lies outside. */
struct canvas draw_part(const struct canvas *canvas, const struct area *area);

/* Draws the outline of a rectangle, inside it. */
void draw_outline(struct canvas *canvas, const struct area *area, int64_t width,
		  const struct paint *paint);
void draw_line(struct canvas *canvas, double x0, double y0, double x1, double y1, double width,
	       const struct paint *paint);
void draw_disc(struct canvas *canvas, double x, double y, double diameter,
	       const struct paint *paint);
/* Draws an oval, whose line lies half inside and half outside of its sides. */
void draw_oval(struct canvas *canvas, double x, double y, double width, double height,
	       double line_width, const struct paint *paint);
/* Fills a triangle: x, y of each corner. Those that share a side share no pixel. */
void draw_triangle(struct canvas *canvas, const double corners[6], const struct paint *paint);
/* - scale: pixels for each pixel of the font */
void draw_text(struct canvas *canvas, double x, double y, int64_t scale, const char *text,
	       const struct paint *paint);

/* How a frame's numbers become colours: those of a picture, or those of a table of classes. */
struct palette {
	const struct paint *paints; /* NULL: the frame is a picture, of u8 */
	size_t count;
};
/*
 * Lays a frame over a rectangle of the canvas; the nearest pixel is taken where sizes differ. An
 * alpha channel counts. With a palette every number that it has is painted; the frame then has 1
 * channel.
 * - alpha: 0 to 256
 */
void draw_frame(struct canvas *canvas, const struct area *area, const struct frame *frame,
		const struct palette *palette, uint16_t alpha);

#endif
