/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRAW_FONT_H
#define DRAW_FONT_H

#include <stdint.h>

/* A font of printable ASCII: glyphs of 5 x 7 pixels in cells of 6 x 8. */
#define FONT_COLUMNS 5
#define FONT_ROWS 7
#define FONT_CELL_COLUMNS 6
#define FONT_CELL_ROWS 8

/*
 * Returns the rows of a glyph, top first; bit 4 is the left pixel. What is not printable ASCII
 * looks like a question mark.
 */
const uint8_t *draw_font_glyph(char character);

#endif
