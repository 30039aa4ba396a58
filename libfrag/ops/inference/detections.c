/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "detections.h"

bool detection_read_box(struct detection *detection, enum detection_layout layout,
			const float *numbers, float scale_x, float scale_y)
{
	float left = numbers[0], top = numbers[1], right = numbers[2], bottom = numbers[3];

	if (layout == DETECTION_YXYX) {
		left = numbers[1];
		top = numbers[0];
		right = numbers[3];
		bottom = numbers[2];
	} else if (layout == DETECTION_CXCYWH) {
		left -= numbers[2] / 2.0f;
		top -= numbers[3] / 2.0f;
	}
	if (layout == DETECTION_XYWH || layout == DETECTION_CXCYWH) {
		right += left;
		bottom += top;
	}
	detection->left = fminf(fmaxf(left / scale_x, 0.0f), 1.0f);
	detection->top = fminf(fmaxf(top / scale_y, 0.0f), 1.0f);
	detection->right = fminf(fmaxf(right / scale_x, 0.0f), 1.0f);
	detection->bottom = fminf(fmaxf(bottom / scale_y, 0.0f), 1.0f);
	return detection->right > detection->left && detection->bottom > detection->top;
}

/* What is nearer to a border of a part than this is cut by it. */
#define CUT 0.01f

bool detection_move(struct detection *detection, const float region[4])
{
	float width = region[2] - region[0], height = region[3] - region[1];
	struct detection *d = detection;

	if ((d->left < CUT && region[0] > 0.0f) || (d->right > 1.0f - CUT && region[2] < 1.0f) ||
	    (d->top < CUT && region[1] > 0.0f) || (d->bottom > 1.0f - CUT && region[3] < 1.0f))
		return false;
	d->left = fminf(fmaxf(region[0] + d->left * width, 0.0f), 1.0f);
	d->right = fminf(fmaxf(region[0] + d->right * width, 0.0f), 1.0f);
	d->top = fminf(fmaxf(region[1] + d->top * height, 0.0f), 1.0f);
	d->bottom = fminf(fmaxf(region[1] + d->bottom * height, 0.0f), 1.0f);
	return d->right > d->left && d->bottom > d->top;
}

static float area(const struct detection *d)
{
	return (d->right - d->left) * (d->bottom - d->top);
}

static float shared(const struct detection *a, const struct detection *b)
{
	float width = fminf(a->right, b->right) - fmaxf(a->left, b->left);
	float height = fminf(a->bottom, b->bottom) - fmaxf(a->top, b->top);

	return width > 0.0f && height > 0.0f ? width * height : 0.0f;
}

float detection_overlap(const struct detection *a, const struct detection *b)
{
	float both = shared(a, b);

	return both > 0.0f ? both / (area(a) + area(b) - both) : 0.0f;
}

static bool suppresses(const struct detection *better, const struct detection *d, float most,
		       float inside)
{
	return better->label == d->label &&
	       (detection_overlap(better, d) > most ||
		shared(better, d) > inside * fminf(area(better), area(d)));
}

static int by_score(const void *a, const void *b)
{
	float x = ((const struct detection *)a)->score, y = ((const struct detection *)b)->score;

	return (x < y) - (x > y);
}

size_t detections_suppress(struct detection *detections, size_t count, float most, float inside)
{
	size_t kept = 0;

	if (count > 0)
		qsort(detections, count, sizeof(*detections), by_score);
	for (size_t i = 0; i < count; i++) {
		bool better = false;

		for (size_t k = 0; k < kept && !better; k++)
			better = suppresses(&detections[k], &detections[i], most, inside);
		if (!better)
			detections[kept++] = detections[i];
	}
	return kept;
}
