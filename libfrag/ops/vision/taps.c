// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdlib.h>

#include "taps.h"

void vision_taps_fini(struct taps *taps)
{
	free(taps->first);
	free(taps->weights);
}

/* R. Keys, "Cubic convolution interpolation for digital image processing", 1981, with a = -1/2. */
static double cubic(double x)
{
	x = fabs(x);
	if (x < 1.0)
		return (1.5 * x - 2.5) * x * x + 1.0;
	return x < 2.0 ? ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0 : 0.0;
}

static void taps_at(enum resize_mode mode, double ratio, int64_t i, struct taps *taps)
{
	double centre = ((double)i + 0.5) * ratio - 0.5;
	float *w = taps->weights + i * taps->count;
	double left = (double)i * ratio;

	switch (mode) {
	case RESIZE_NEAREST:
		taps->first[i] = (int64_t)floor(((double)i + 0.5) * ratio);
		w[0] = 1.0f;
		break;
	case RESIZE_LINEAR:
		taps->first[i] = (int64_t)floor(centre);
		w[1] = (float)(centre - floor(centre));
		w[0] = 1.0f - w[1];
		break;
	case RESIZE_SUPER:
		taps->first[i] = (int64_t)floor(left);
		for (int64_t k = 0; k < taps->count; k++) {
			double from = fmax(left, (double)(taps->first[i] + k));
			double to = fmin(left + ratio, (double)(taps->first[i] + k + 1));

			w[k] = (float)(fmax(0.0, to - from) / ratio);
		}
		break;
	default:
		taps->first[i] = (int64_t)floor(centre) - 1;
		for (int64_t k = 0; k < 4; k++)
			w[k] = (float)cubic(centre - (double)(taps->first[i] + k));
		break;
	}
}

int vision_taps_init(struct taps *taps, enum resize_mode mode, int64_t from, int64_t to)
{
	double ratio = (double)from / (double)to;

	if (mode == RESIZE_SUPER && to > from)
		mode = RESIZE_LINEAR;
	taps->count = mode == RESIZE_NEAREST  ? 1
		      : mode == RESIZE_LINEAR ? 2
		      : mode == RESIZE_SUPER  ? (int64_t)ceil(ratio) + 1
					      : 4;
	taps->first = calloc((size_t)to, sizeof(*taps->first));
	taps->weights = calloc((size_t)(to * taps->count), sizeof(*taps->weights));
	if (taps->first == NULL || taps->weights == NULL) {
		vision_taps_fini(taps);
		return -ENOMEM;
	}
	for (int64_t i = 0; i < to; i++)
		taps_at(mode, ratio, i, taps);
	return 0;
}
