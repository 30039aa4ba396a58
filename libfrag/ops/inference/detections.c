// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "detections.h"

static int by_score(const void *a, const void *b)
{
	return detection_is_better(b, a) - detection_is_better(a, b);
}

size_t detections_suppress(struct detection *detections, size_t count, float most, float inside)
{
	size_t kept = 0;

	if (count > 0)
		qsort(detections, count, sizeof(*detections), by_score);
	for (size_t i = 0; i < count; i++) {
		bool better = false;

		for (size_t k = 0; k < kept && !better; k++)
			better = detection_suppresses(&detections[k], &detections[i], most, inside);
		if (!better)
			detections[kept++] = detections[i];
	}
	return kept;
}
