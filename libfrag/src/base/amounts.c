// SPDX-License-Identifier: Apache-2.0
#include <base/amounts.h>

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/units.h>

#define COUNT                                                                                      \
	{                                                                                          \
		"4096", "not a number from 0 up", FRAGI_AMOUNT_COUNT_MAX                           \
	}
#define SIZE                                                                                       \
	{                                                                                          \
		"8 TiB", "not a valid size; write for example 512Mi or 2GB", 0                     \
	}
#define PERCENT                                                                                    \
	{                                                                                          \
		"100%", "not a whole percentage; write for example 25%", 100 * FRAGI_AMOUNT_ONE    \
	}

static const struct {
	const char *name;
	struct {
		const char *max, *flaw;
		int64_t count_max; /* 0: it is a size */
	} kind;
} amounts[FRAGI_AMOUNTS] = {
	[FRAGI_AMOUNT_CPU] = {"cpu", COUNT},
	[FRAGI_AMOUNT_GPU] = {"gpu", COUNT},
	[FRAGI_AMOUNT_MEMORY] = {"memory", SIZE},
	[FRAGI_AMOUNT_SHARED_MEMORY] = {"sharedMemory", SIZE},
	[FRAGI_AMOUNT_GPU_MEMORY] = {"gpuMemory", SIZE},
	[FRAGI_AMOUNT_GPU_THREADS] = {"gpuThreads", PERCENT},
};

static bool is_percent(enum fragi_amount amount)
{
	return amount == FRAGI_AMOUNT_GPU_THREADS;
}

const char *fragi_amount_name(enum fragi_amount amount)
{
	return amounts[amount].name;
}

const char *fragi_amount_max(enum fragi_amount amount)
{
	return amounts[amount].kind.max;
}

bool fragi_amount_is_size(enum fragi_amount amount)
{
	return amounts[amount].kind.count_max == 0;
}

const char *fragi_amount_flaw(enum fragi_amount amount)
{
	return amounts[amount].kind.flaw;
}

enum fragi_amount fragi_amount_named(const char *name, size_t length)
{
	for (int i = 0; i < FRAGI_AMOUNTS; i++)
		if (strlen(amounts[i].name) == length &&
		    strncmp(amounts[i].name, name, length) == 0)
			return (enum fragi_amount)i;
	return FRAGI_AMOUNTS;
}

/* A whole number, as MPS takes it. */
static int parse_percent(const char *text, int64_t *out)
{
	size_t digits = strspn(text, "0123456789");
	long value = digits > 3 ? LONG_MAX : strtol(text, NULL, 10);

	if (digits == 0 || strcmp(text + digits, "%") != 0 || (text[0] == '0' && digits > 1))
		return -EINVAL;
	if (value > 100)
		return -ERANGE;
	*out = value * FRAGI_AMOUNT_ONE;
	return 0;
}

int fragi_amount_parse(enum fragi_amount amount, const char *text, int64_t *out)
{
	uint64_t bytes;
	double number, rest;
	int64_t whole;
	int r;

	if (fragi_amount_is_size(amount)) {
		r = fragi_parse_size(text, &bytes);
		if (r < 0)
			return r;
		if (bytes > (uint64_t)FRAGI_AMOUNT_BYTES_MAX)
			return -ERANGE;
		*out = (int64_t)bytes;
		return 0;
	}
	if (is_percent(amount))
		return parse_percent(text, out);
	r = fragi_parse_f64(text, &number);
	if (r < 0)
		return r;
	if (!isfinite(number) || number < 0)
		return -EINVAL;
	if (number * (double)FRAGI_AMOUNT_ONE > (double)amounts[amount].kind.count_max)
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

	if (!fragi_amount_is_size(amount)) {
		snprintf(out, FRAGI_AMOUNT_TEXT, "%.10g%s", scaled / (double)FRAGI_AMOUNT_ONE,
			 is_percent(amount) ? "%" : "");
		return out;
	}
	while (unit + 1 < FRAG_COUNT_OF(units) && scaled >= 1024) {
		scaled /= 1024;
		unit++;
	}
	snprintf(out, FRAGI_AMOUNT_TEXT, "%.4g %s", scaled, units[unit]);
	return out;
}
