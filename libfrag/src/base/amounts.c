// SPDX-License-Identifier: Apache-2.0
#include <base/amounts.h>

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <base/units.h>

static const struct {
	const char *name, *max;
	bool is_size;
} amounts[FRAGI_AMOUNTS] = {
	[FRAGI_AMOUNT_CPU] = {"cpu", "4096", false},
	[FRAGI_AMOUNT_GPU] = {"gpu", "4096", false},
	[FRAGI_AMOUNT_MEMORY] = {"memory", "8 TiB", true},
	[FRAGI_AMOUNT_SHARED_MEMORY] = {"sharedMemory", "8 TiB", true},
	[FRAGI_AMOUNT_GPU_MEMORY] = {"gpuMemory", "8 TiB", true},
};

const char *fragi_amount_name(enum fragi_amount amount)
{
	return amounts[amount].name;
}

const char *fragi_amount_max(enum fragi_amount amount)
{
	return amounts[amount].max;
}

bool fragi_amount_is_size(enum fragi_amount amount)
{
	return amounts[amount].is_size;
}

enum fragi_amount fragi_amount_named(const char *name, size_t length)
{
	for (int i = 0; i < FRAGI_AMOUNTS; i++)
		if (strlen(amounts[i].name) == length &&
		    strncmp(amounts[i].name, name, length) == 0)
			return (enum fragi_amount)i;
	return FRAGI_AMOUNTS;
}

int fragi_amount_parse(enum fragi_amount amount, const char *text, int64_t *out)
{
	uint64_t bytes;
	double number, rest;
	int64_t whole;
	int r;

	if (amounts[amount].is_size) {
		r = fragi_parse_size(text, &bytes);
		if (r < 0)
			return r;
		if (bytes > (uint64_t)FRAGI_AMOUNT_BYTES_MAX)
			return -ERANGE;
		*out = (int64_t)bytes;
		return 0;
	}
	r = fragi_parse_f64(text, &number);
	if (r < 0)
		return r;
	if (!isfinite(number) || number < 0)
		return -EINVAL;
	if (number * (double)FRAGI_AMOUNT_ONE > (double)FRAGI_AMOUNT_COUNT_MAX)
		return -ERANGE;
	whole = (int64_t)(number * (double)FRAGI_AMOUNT_ONE);
	rest = number * (double)FRAGI_AMOUNT_ONE - (double)whole;
	*out = whole + (rest > 1e-6 ? 1 : 0);
	return 0;
}

const char *fragi_amount_text(enum fragi_amount amount, int64_t value,
			      char out[static FRAGI_AMOUNT_TEXT])
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double scaled = (double)value;
	size_t unit = 0;

	if (!amounts[amount].is_size) {
		snprintf(out, FRAGI_AMOUNT_TEXT, "%.10g", scaled / (double)FRAGI_AMOUNT_ONE);
		return out;
	}
	while (unit + 1 < FRAG_COUNT_OF(units) && scaled >= 1024) {
		scaled /= 1024;
		unit++;
	}
	snprintf(out, FRAGI_AMOUNT_TEXT, "%.4g %s", scaled, units[unit]);
	return out;
}
