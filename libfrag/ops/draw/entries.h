/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRAW_ENTRIES_H
#define DRAW_ENTRIES_H

#include "layers.h"

/* Geometry: numbers of f32 or f64 in host memory, as many for each shape. */
struct entries {
	const void *numbers;
	bool is_f64;
	int64_t count, width;
};

static inline double entry_number(const struct entries *entries, int64_t i, int64_t k)
{
	const int64_t at = i * entries->width + k;

	return entries->is_f64 ? ((const double *)entries->numbers)[at]
			       : (double)((const float *)entries->numbers)[at];
}

int64_t draw_element_count(const struct frag_tensor *tensor);
/* Whether it has these elements, one behind the other; in host memory; or anywhere. */
bool draw_is_compact(const struct frag_tensor *tensor, uint8_t code, uint8_t bits);
bool draw_is_compact_anywhere(const struct frag_tensor *tensor, uint8_t code, uint8_t bits);

/*
 * Reads the shapes of a layer of geometry: the last dimension is one corner, or a whole shape.
 * Returns NULL, or what is wrong.
 */
const char *draw_entries_read(const struct frag_tensor *tensor, enum layer_type type,
			      struct entries *out);

#endif
