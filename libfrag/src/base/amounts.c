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

enum unit { COUNT, SIZE, PERCENT };
enum time { START, SURVEY };

static const struct {
	const char *max_text, *flaw;
	int64_t max;
} units[] = {
	[COUNT] = {"4096", "not a number from 0 up", FRAGI_AMOUNT_COUNT_MAX},
	[SIZE] = {"8 TiB", "not a valid size; write for example 512Mi or 2GB",
		  FRAGI_AMOUNT_BYTES_MAX},
	[PERCENT] = {"100%", "not a whole percentage; write for example 25%",
		     100 * FRAGI_AMOUNT_ONE},
};

#define ROW(NAME, name, UNIT, BOUND, TIME) {name, UNIT, FRAGI_BOUND_##BOUND, TIME},
static const struct {
	const char *name;
	enum unit unit;
	enum fragi_bound bound;
	enum time time;
} amounts[FRAGI_AMOUNTS] = {FRAGI_AMOUNT_LIST(ROW)};

const char *fragi_amount_name(enum fragi_amount amount)
{
	return amounts[amount].name;
}

const char *fragi_amount_max(enum fragi_amount amount)
{
	return units[amounts[amount].unit].max_text;
}

bool fragi_amount_is_count(enum fragi_amount amount)
{
	return amounts[amount].unit == COUNT;
}

enum fragi_bound fragi_amount_bound(enum fragi_amount amount)
{
	return amounts[amount].bound;
}

bool fragi_amount_is_surveyed(enum fragi_amount amount)
{
	return amounts[amount].time == SURVEY;
}

int64_t fragi_amount_clamp(enum fragi_amount amount, uint64_t value)
{
	const int64_t max = units[amounts[amount].unit].max;

	return value < (uint64_t)max ? (int64_t)value : max;
}

const char *fragi_amount_flaw(enum fragi_amount amount)
{
	return units[amounts[amount].unit].flaw;
}

enum fragi_amount fragi_amount_named(const char *name, size_t length)
{
	for (int i = 0; i < FRAGI_AMOUNTS; i++)
		if (strlen(amounts[i].name) == length &&
		    strncmp(amounts[i].name, name, length) == 0)
			return (enum fragi_amount)i;
	return FRAGI_AMOUNTS;
}

const char *fragi_amount_names(void)
{
#define NAMED(NAME, name, UNIT, BOUND, TIME) ", " name
	static const char names[] = FRAGI_AMOUNT_LIST(NAMED);

	return names + strlen(", ");
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

	if (amounts[amount].unit == SIZE) {
		r = fragi_parse_size(text, &bytes);
		if (r < 0)
			return r;
		if (bytes > (uint64_t)FRAGI_AMOUNT_BYTES_MAX)
			return -ERANGE;
		*out = (int64_t)bytes;
		return 0;
	}
	if (amounts[amount].unit == PERCENT)
		return parse_percent(text, out);
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
	static const char *const steps[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double scaled = (double)value;
	size_t step = 0;

	if (amounts[amount].unit != SIZE) {
		snprintf(out, FRAGI_AMOUNT_TEXT, "%.10g%s", scaled / (double)FRAGI_AMOUNT_ONE,
			 amounts[amount].unit == PERCENT ? "%" : "");
		return out;
	}
	while (step + 1 < FRAG_COUNT_OF(steps) && scaled >= 1024) {
		scaled /= 1024;
		step++;
	}
	snprintf(out, FRAGI_AMOUNT_TEXT, "%.4g %s", scaled, steps[step]);
	return out;
}
