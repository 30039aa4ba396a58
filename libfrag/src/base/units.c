// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE 1
#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <base/units.h>

#define FRACTION_DIGITS_MAX 9

/* A decimal number without a sign: whole + fraction / scale. */
struct decimal {
	uint64_t whole;
	uint64_t fraction, scale;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/*
 * Reads the number at text. *out_rest: the text after it and after blanks. Returns 0, -EINVAL or
 * -ERANGE.
 */
static int parse_decimal(const char *text, struct decimal *out_number, const char **out_rest)
{
	struct decimal number = {.scale = 1};
	int digits = 0;

	if (!is_digit(*text))
		return -EINVAL;
	for (; is_digit(*text); text++)
		if (__builtin_mul_overflow(number.whole, 10u, &number.whole) ||
		    __builtin_add_overflow(number.whole, (uint64_t)(*text - '0'), &number.whole))
			return -ERANGE;
	if (*text == '.') {
		for (text++; is_digit(*text); text++) {
			if (++digits > FRACTION_DIGITS_MAX)
				continue;
			number.fraction = number.fraction * 10 + (uint64_t)(*text - '0');
			number.scale *= 10;
		}
		if (digits == 0)
			return -EINVAL;
	}
	while (*text == ' ')
		text++;
	*out_number = number;
	*out_rest = text;
	return 0;
}

/* Computes number * unit, rounded down. Returns 0; -ERANGE: more than limit. */
static int scale_decimal(const struct decimal *number, uint64_t unit, uint64_t limit, uint64_t *out)
{
	unsigned __int128 product = (unsigned __int128)number->whole * unit +
				    (unsigned __int128)number->fraction * unit / number->scale;

	if (product > limit)
		return -ERANGE;
	*out = (uint64_t)product;
	return 0;
}

int fragi_parse_size(const char *text, uint64_t *out_bytes)
{
	static const char prefixes[] = "KMGT";
	struct decimal number;
	const char *rest, *prefix = NULL;
	uint64_t unit = 1;
	int r = parse_decimal(text, &number, &rest);

	if (r < 0)
		return r;
	if (*rest != '\0')
		prefix = strchr(prefixes, *rest >= 'a' && *rest <= 'z' ? *rest - 'a' + 'A' : *rest);
	if (prefix != NULL) {
		unit <<= 10 * (prefix - prefixes + 1);
		rest++;
		if (*rest == 'i' || *rest == 'I')
			rest++;
	}
	if (*rest == 'b' || *rest == 'B')
		rest++;
	if (*rest != '\0' || (unit == 1 && number.fraction != 0))
		return -EINVAL;
	return scale_decimal(&number, unit, UINT64_MAX, out_bytes);
}

int fragi_parse_time(const char *text, int64_t *out_ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{"", 1},
		{"ns", 1},
		{"us", 1000},
		{"ms", 1000000},
		{"s", 1000000000},
		{"m", UINT64_C(60) * 1000000000},
		{"min", UINT64_C(60) * 1000000000},
		{"h", UINT64_C(3600) * 1000000000},
	};
	struct decimal number;
	const char *rest;
	uint64_t ns = 0;
	int r = parse_decimal(text, &number, &rest);

	if (r < 0)
		return r;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(rest, units[i].name) != 0)
			continue;
		if (units[i].ns == 1 && number.fraction != 0)
			return -EINVAL;
		r = scale_decimal(&number, units[i].ns, INT64_MAX, &ns);
		if (r == 0)
			*out_ns = (int64_t)ns;
		return r;
	}
	return -EINVAL;
}

int fragi_parse_duration(const char *text, int64_t *out_ns)
{
	struct decimal number;
	const char *rest;
	double hz;
	int r = parse_decimal(text, &number, &rest);

	if (r < 0 || strcasecmp(rest, "hz") != 0)
		return fragi_parse_time(text, out_ns);
	hz = (double)number.whole + (double)number.fraction / (double)number.scale;
	if (!(hz > 1e-9) || hz > 1e9)
		return -EDOM;
	*out_ns = (int64_t)(1e9 / hz + 0.5);
	return 0;
}

bool fragi_duration_lacks_unit(const char *text)
{
	double number;

	return text[strspn(text, "0123456789.+")] == '\0' && fragi_parse_f64(text, &number) == 0 &&
	       number > 0;
}

int fragi_parse_bool(const char *text, bool *out_value)
{
	static const char *const yes[] = {"true", "yes", "on", "1"};
	static const char *const no[] = {"false", "no", "off", "0"};

	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
		if (strcasecmp(text, yes[i]) != 0 && strcasecmp(text, no[i]) != 0)
			continue;
		*out_value = strcasecmp(text, yes[i]) == 0;
		return 0;
	}
	return -EINVAL;
}

static int digit_value(char c)
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 16;
}

int fragi_parse_i64(const char *text, int64_t *out_value)
{
	bool negative = *text == '-';
	uint64_t value = 0;
	uint64_t limit = (uint64_t)INT64_MAX + (negative ? 1 : 0);
	int base = 10, digit;

	if (*text == '-' || *text == '+')
		text++;
	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
		base = 16;
		text += 2;
	}
	if (*text == '\0')
		return -EINVAL;
	for (const char *c = text; *c != '\0'; c++)
		if (digit_value(*c) >= base)
			return -EINVAL;
	for (; *text != '\0'; text++) {
		digit = digit_value(*text);
		if (__builtin_mul_overflow(value, (uint64_t)base, &value) ||
		    __builtin_add_overflow(value, (uint64_t)digit, &value) || value > limit)
			return -ERANGE;
	}
	*out_value = negative ? (int64_t)(0 - value) : (int64_t)value;
	return 0;
}

/* The "C" locale, so that 0.5 is one half also in a program that called setlocale. */
static locale_t c_locale;

__attribute__((constructor)) static void open_c_locale(void)
{
	c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

int fragi_parse_f64(const char *text, double *out_value)
{
	const char *digits = text + (*text == '-' || *text == '+');
	double value;
	char *end;

	if (strcasecmp(digits, ".inf") == 0 || strcasecmp(digits, "inf") == 0) {
		*out_value = *text == '-' ? -(double)INFINITY : (double)INFINITY;
		return 0;
	}
	if (strcasecmp(digits, ".nan") == 0 || strcasecmp(digits, "nan") == 0) {
		*out_value = (double)NAN;
		return 0;
	}
	if (!is_digit(*digits) && *digits != '.')
		return -EINVAL;
	value = strtod_l(text, &end, c_locale);
	if (end == text || *end != '\0')
		return -EINVAL;
	if (isinf(value))
		return -ERANGE;
	*out_value = value;
	return 0;
}

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
#define DIGITS "0123456789"

bool fragi_name_is_valid(const char *name)
{
	size_t length = strspn(name, LETTERS DIGITS "_-");

	return strspn(name, LETTERS) > 0 && length <= FRAG_NAME_MAX && name[length] == '\0';
}

bool fragi_type_name_is_valid(const char *name)
{
	size_t language = strspn(name, LETTERS), length;

	if (language == 0 || name[language] != ':')
		return fragi_name_is_valid(name);
	length = strspn(name + language + 1, LETTERS DIGITS "_.");
	return length > 0 && language + 1 + length <= FRAG_NAME_MAX &&
	       name[language + 1 + length] == '\0';
}

const char *fragi_format_duration(int64_t ns, char *out, size_t size)
{
	static const struct {
		const char *name;
		int64_t ns;
		int64_t tenths_below; /* smaller values show one decimal */
	} units[] = {
		{"us", 1000, 10},
		{"ms", 1000000, 100},
		{"s", 1000000000, INT64_MAX / 10},
	};
	int64_t magnitude = ns < 0 ? (ns == INT64_MIN ? INT64_MAX : -ns) : ns, tenths;
	const char *sign = ns < 0 ? "-" : "";

	if (magnitude < 1000) {
		snprintf(out, size, "%s%" PRId64 " ns", sign, magnitude);
		return out;
	}
	for (size_t i = 0;; i++) {
		tenths = magnitude / (units[i].ns / 10) +
			 (magnitude % (units[i].ns / 10) >= units[i].ns / 20 ? 1 : 0);
		if (tenths >= 10000 && i + 1 < sizeof(units) / sizeof(units[0]))
			continue;
		if (tenths < units[i].tenths_below * 10)
			snprintf(out, size, "%s%" PRId64 ".%" PRId64 " %s", sign, tenths / 10,
				 tenths % 10, units[i].name);
		else if ((tenths + 5) / 10 >= 1000 && i + 1 < sizeof(units) / sizeof(units[0]))
			continue;
		else
			snprintf(out, size, "%s%" PRId64 " %s", sign, (tenths + 5) / 10,
				 units[i].name);
		return out;
	}
}
