// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <string.h>

#include <base/names.h>
#include <base/units.h>

#define KEPT 12345

Test(units, sizes)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {
		{"0", 0},
		{"4096", 4096},
		{"512Mi", 512u << 20},
		{"512MB", 512u << 20},
		{"2 GB", UINT64_C(2) << 30},
		{"8K", 8192},
		{"8kib", 8192},
		{"1.5G", UINT64_C(3) << 29},
		{"100B", 100},
		{"1TiB", UINT64_C(1) << 40},
		{"18446744073709551615", UINT64_MAX},
	};
	static const char *const bad[] = {"",      "K",  "-1", "1.5", "1x",   "1KK",
					  "1 K B", "1.", " 1", "1e3", "0x10", "1Mbit"};
	uint64_t bytes;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		bytes = KEPT;
		cr_expect_eq(fragi_parse_size(good[i].text, &bytes), 0, "%s", good[i].text);
		cr_expect_eq(bytes, good[i].bytes, "%s", good[i].text);
	}
	bytes = KEPT;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(fragi_parse_size(bad[i], &bytes), -EINVAL, "%s", bad[i]);
	cr_expect_eq(fragi_parse_size("18446744073709551616", &bytes), -ERANGE);
	cr_expect_eq(fragi_parse_size("99999999T", &bytes), -ERANGE);
	cr_expect_eq(bytes, KEPT);
}

Test(units, durations)
{
	static const struct {
		const char *text;
		int64_t ns;
	} good[] = {
		{"1000", 1000},
		{"10ns", 10},
		{"5us", 5000},
		{"10ms", 10000000},
		{"2s", 2000000000},
		{"1.5s", 1500000000},
		{"0.1s", 100000000},
		{"1m", INT64_C(60000000000)},
		{"2h", INT64_C(7200000000000)},
		{"30hz", 33333333},
		{"30Hz", 33333333},
		{"29.97 hz", 33366700},
		{"1000hz", 1000000},
		{"0", 0},
	};
	static const char *const bad[] = {"",        "s",  "-1s", "1.5", "1.5ns",
					  "2 weeks", "1S", "hz",  "1s2"};
	int64_t ns;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		ns = KEPT;
		cr_expect_eq(fragi_parse_duration(good[i].text, &ns), 0, "%s", good[i].text);
		cr_expect_eq(ns, good[i].ns, "%s: %lld", good[i].text, (long long)ns);
	}
	ns = KEPT;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(fragi_parse_duration(bad[i], &ns), -EINVAL, "%s", bad[i]);
	cr_expect_eq(fragi_parse_duration("0hz", &ns), -EDOM);
	cr_expect_eq(fragi_parse_duration("2000000000hz", &ns), -EDOM);
	cr_expect_eq(fragi_parse_duration("9999999999999h", &ns), -ERANGE);
	cr_expect_eq(ns, KEPT);
}

Test(units, a_time_is_a_duration_that_is_no_frequency)
{
	int64_t ns = KEPT;

	cr_expect_eq(fragi_parse_time("30hz", &ns), -EINVAL);
	cr_expect_eq(ns, KEPT);
	cr_expect_eq(fragi_parse_time("1.5s", &ns), 0);
	cr_expect_eq(ns, 1500000000);
}

Test(units, durations_without_a_unit)
{
	cr_expect(fragi_duration_lacks_unit("2"));
	cr_expect(fragi_duration_lacks_unit("1000"));
	cr_expect_not(fragi_duration_lacks_unit("0"), "no time needs no unit");
	cr_expect_not(fragi_duration_lacks_unit("2s"));
	cr_expect_not(fragi_duration_lacks_unit("30hz"));
	cr_expect_not(fragi_duration_lacks_unit("soon"));
	cr_expect_not(fragi_duration_lacks_unit(""));
}

Test(units, booleans)
{
	bool value = false;

	cr_expect(fragi_parse_bool("true", &value) == 0 && value);
	cr_expect(fragi_parse_bool("No", &value) == 0 && !value);
	cr_expect(fragi_parse_bool("on", &value) == 0 && value);
	cr_expect(fragi_parse_bool("0", &value) == 0 && !value);
	cr_expect_eq(fragi_parse_bool("2", &value), -EINVAL);
	cr_expect_eq(fragi_parse_bool("", &value), -EINVAL);
}

Test(units, integers)
{
	int64_t value = KEPT;

	cr_expect(fragi_parse_i64("-9223372036854775808", &value) == 0 && value == INT64_MIN);
	cr_expect(fragi_parse_i64("9223372036854775807", &value) == 0 && value == INT64_MAX);
	cr_expect(fragi_parse_i64("+0x1F", &value) == 0 && value == 31);
	cr_expect(fragi_parse_i64("-0x10", &value) == 0 && value == -16);
	value = KEPT;
	cr_expect_eq(fragi_parse_i64("9223372036854775808", &value), -ERANGE);
	cr_expect_eq(fragi_parse_i64("-9223372036854775809", &value), -ERANGE);
	cr_expect_eq(fragi_parse_i64("", &value), -EINVAL);
	cr_expect_eq(fragi_parse_i64("-", &value), -EINVAL);
	cr_expect_eq(fragi_parse_i64("0x", &value), -EINVAL);
	cr_expect_eq(fragi_parse_i64("1.0", &value), -EINVAL);
	cr_expect_eq(fragi_parse_i64("99999999999999999999x", &value), -EINVAL);
	cr_expect_eq(value, KEPT);
}

Test(units, numbers_do_not_depend_on_the_locale)
{
	double value = 0;

	setlocale(LC_ALL, "de_DE.UTF-8"); /* where it is installed */
	cr_expect(fragi_parse_f64("0.5", &value) == 0 && value == 0.5);
	cr_expect(fragi_parse_f64("-1e-3", &value) == 0 && value == -1e-3);
	cr_expect(fragi_parse_f64(".25", &value) == 0 && value == 0.25);
	cr_expect(fragi_parse_f64("-.inf", &value) == 0 && isinf(value) && value < 0);
	cr_expect(fragi_parse_f64(".nan", &value) == 0 && isnan(value));
	value = KEPT;
	cr_expect_eq(fragi_parse_f64("1,5", &value), -EINVAL);
	cr_expect_eq(fragi_parse_f64("", &value), -EINVAL);
	cr_expect_eq(fragi_parse_f64(" 1", &value), -EINVAL);
	cr_expect_eq(fragi_parse_f64("1x", &value), -EINVAL);
	cr_expect_eq(fragi_parse_f64("infinity2", &value), -EINVAL);
	cr_expect_eq(fragi_parse_f64("1e999", &value), -ERANGE);
	cr_expect_eq(value, KEPT);
}

Test(units, names)
{
	char name[FRAG_NAME_MAX + 2];

	memset(name, 'a', sizeof(name));
	name[FRAG_NAME_MAX] = '\0';
	cr_expect(fragi_name_is_valid(name));
	name[FRAG_NAME_MAX] = 'a';
	name[FRAG_NAME_MAX + 1] = '\0';
	cr_expect_not(fragi_name_is_valid(name));
	cr_expect(fragi_name_is_valid("A-b_9"));
	cr_expect_not(fragi_name_is_valid(""));
	cr_expect_not(fragi_name_is_valid("9a"));
	cr_expect_not(fragi_name_is_valid("a.b"));
	cr_expect_not(fragi_name_is_valid("\xC3\xA4"));
	cr_expect(fragi_type_name_is_valid("A-b_9"));
	cr_expect(fragi_type_name_is_valid("python:a_1.b.C"));
	cr_expect_not(fragi_type_name_is_valid("python:"));
	cr_expect_not(fragi_type_name_is_valid(":a"));
	cr_expect_not(fragi_type_name_is_valid("a.b"));
	cr_expect_not(fragi_type_name_is_valid("python:a-b"));
	cr_expect_not(fragi_type_name_is_valid("python:a:b"));
	name[1] = ':';
	name[FRAG_NAME_MAX] = '\0';
	cr_expect(fragi_type_name_is_valid(name));
	name[FRAG_NAME_MAX] = 'a';
	cr_expect_not(fragi_type_name_is_valid(name));
}

Test(units, durations_for_people)
{
	static const struct {
		int64_t ns;
		const char *text;
	} cases[] = {
		{0, "0 ns"},
		{999, "999 ns"},
		{1000, "1.0 us"},
		{41200, "41 us"},
		{9960, "10 us"},
		{999600, "1.0 ms"},
		{1230000, "1.2 ms"},
		{99960000, "100 ms"},
		{210000, "210 us"},
		{999960000, "1.0 s"},
		{30100000000, "30.1 s"},
		{INT64_C(3600000000000), "3600.0 s"},
		{-1500000, "-1.5 ms"},
	};
	char text[32];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_expect_str_eq(fragi_format_duration(cases[i].ns, text, sizeof(text)),
				 cases[i].text);
	fragi_format_duration(INT64_MIN, text, sizeof(text));
	cr_expect_eq(text[0], '-');
}

Test(units, of_many_names_a_sentence_has_three_and_a_count)
{
	static const char *const expected[] = {"a0", "a0, a1", "a0, a1, a2",
					       "a0, a1, a2 and 1 more", "a0, a1, a2 and 2 more"};
	char text[64], small[8];
	struct fragi_names names = {.text = text, .size = sizeof(text)};
	struct fragi_names cut = {.text = small, .size = sizeof(small), .separator = "; "};

	for (int i = 0; i < 5; i++) {
		fragi_names_add(&names, "a%d", i);
		cr_expect_str_eq(text, expected[i]);
		fragi_names_add(&cut, "b%d", i);
	}
	cr_expect_str_eq(small, "b0; ...", "a cut is marked");
}

Test(units, numbers_without_their_fraction)
{
	static const struct {
		double number;
		uint64_t whole;
	} rows[] = {
		{-INFINITY, 0},
		{-1, 0},
		{NAN, 0},
		{0, 0},
		{0.9, 0},
		{1, 1},
		{1.9, 1},
		{0x1p63, (uint64_t)1 << 63},
		{0x1.fffffffffffffp63, UINT64_MAX - 2047},
		{0x1p64, UINT64_MAX},
		{1e300, UINT64_MAX},
		{INFINITY, UINT64_MAX},
	};

	for (size_t i = 0; i < FRAG_COUNT_OF(rows); i++)
		cr_expect_eq(fragi_whole(rows[i].number), rows[i].whole, "row %zu", i);
}
