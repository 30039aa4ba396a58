// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "turn.h"

/* The matrix (a b u, c d v, x y w) shows place p, q at a * p + c * q, b * p + d * q. */
struct video_turn video_turn_of(const int32_t *matrix)
{
	struct video_turn turn = {.is_exact = true};
	double a, b, c, d;

	if (matrix == NULL)
		return turn;
	a = matrix[0];
	b = matrix[1];
	c = matrix[3];
	d = matrix[4];
	if (a * d - b * c == 0.0) /* shows nothing */
		return turn;
	turn.swaps = fabs(b) > fabs(a);
	turn.flips_x = (turn.swaps ? c : a) < 0.0;
	turn.flips_y = (turn.swaps ? b : d) < 0.0;
	turn.is_mirrored = a * d - b * c < 0.0;
	turn.degrees = (turn.is_mirrored ? atan2(-b, -a) : atan2(b, a)) / M_PI * 180.0;
	if (turn.degrees < 0.0)
		turn.degrees += 360.0;
	turn.is_exact = fabs(remainder(turn.degrees, 90.0)) < 1.0;
	if (turn.is_exact)
		turn.degrees = fmod(90.0 * rint(turn.degrees / 90.0), 360.0);
	return turn;
}

static inline __attribute__((always_inline)) void
copy(const struct video_turn *turn, const uint8_t *in, ptrdiff_t row_bytes, size_t columns,
     size_t rows, size_t pixel_bytes, uint8_t *out, ptrdiff_t out_row_bytes)
{
	size_t out_columns = turn->swaps ? rows : columns;
	size_t out_rows = turn->swaps ? columns : rows;

	for (size_t y = 0; y < out_rows; y++) {
		size_t v = turn->flips_y ? out_rows - 1 - y : y;

		for (size_t x = 0; x < out_columns; x++) {
			size_t u = turn->flips_x ? out_columns - 1 - x : x;
			size_t row = turn->swaps ? u : v, column = turn->swaps ? v : u;

			memcpy(out + (ptrdiff_t)y * out_row_bytes + x * pixel_bytes,
			       in + (ptrdiff_t)row * row_bytes + column * pixel_bytes, pixel_bytes);
		}
	}
}

/* The usual sizes as constants: the compiler then copies a pixel with few instructions. */
void video_turn_copy(const struct video_turn *turn, const uint8_t *in, ptrdiff_t row_bytes,
		     size_t columns, size_t rows, size_t pixel_bytes, uint8_t *out,
		     ptrdiff_t out_row_bytes)
{
	switch (pixel_bytes) {
	case 1:
		copy(turn, in, row_bytes, columns, rows, 1, out, out_row_bytes);
		break;
	case 2:
		copy(turn, in, row_bytes, columns, rows, 2, out, out_row_bytes);
		break;
	case 3:
		copy(turn, in, row_bytes, columns, rows, 3, out, out_row_bytes);
		break;
	default:
		copy(turn, in, row_bytes, columns, rows, pixel_bytes, out, out_row_bytes);
		break;
	}
}
