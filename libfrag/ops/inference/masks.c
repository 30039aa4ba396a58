// SPDX-License-Identifier: Apache-2.0
#include "masks.h"

void mask_classify(const struct mask_source *source, struct mask *mask)
{
	for (int64_t y = 0; y < mask->rows; y++)
		for (int64_t x = 0; x < mask->columns; x++)
			mask->data[y * mask->columns + x] = mask_class(source, y, x);
}

void mask_paste(const struct mask_source *source, const float *boxes, int64_t i, bool as_instance,
		struct mask *mask)
{
	const struct mask_area area = mask_area_of(boxes + 4 * i, mask->rows, mask->columns);

	for (int64_t y = area.y0; y < area.y1; y++)
		for (int64_t x = area.x0; x < area.x1; x++) {
			uint8_t *pixel = &mask->data[y * mask->columns + x];

			*pixel = mask_pasted(source, boxes, i, &area, as_instance, mask->rows,
					     mask->columns, y, x, *pixel);
		}
}

bool mask_has_nan(const struct mask_source *source)
{
	int64_t count = source->rows * source->columns * source->channels;
	bool nan = false;

	for (int64_t i = 0; i < count; i++)
		nan |= isnan(source->data[i]) != 0;
	return nan;
}
