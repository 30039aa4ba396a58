/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_MINI_CRITERION_H
#define TESTS_MINI_CRITERION_H

/*
 * The part of Criterion's interface that frag's tests use. Criterion itself executes the program
 * anew for each test, with the libraries that it needs, which takes most of the time of a small
 * test, and it does not start under ThreadSanitizer. Here a test is a fork of a program that has
 * started no thread; main.c says what the programs accept.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mini_test {
	const char *suite, *name;
	void (*fn)(void);
	void (*init)(void), (*fini)(void);
	double timeout;
	int signal; /* that the test is to end by; 0: none */
	struct mini_test *next;
};

struct mini_suite {
	const char *name;
	void (*init)(void), (*fini)(void);
	double timeout;
	struct mini_suite *next;
};

void mini_add_test(struct mini_test *test);
void mini_add_suite(struct mini_suite *suite);
/* Notes that the test has failed, with what was expected and the test's own words. */
__attribute__((format(printf, 4, 5))) void mini_fail(const char *file, int line,
						     const char *expected, const char *format, ...);
/* The same, and ends the test; on a thread other than the first the whole of its process. */
__attribute__((noreturn, format(printf, 4, 5))) void
mini_end(const char *file, int line, const char *expected, const char *format, ...);

/* Ends the test, which counts as skipped. */
__attribute__((noreturn, format(printf, 1, 2))) void mini_skip(const char *format, ...);

#define Test(suite_, name_, ...)                                                                   \
	static void suite_##_##name_##_test(void);                                                 \
	__attribute__((constructor)) static void suite_##_##name_##_add(void)                      \
	{                                                                                          \
		static struct mini_test test = {.suite = #suite_,                                  \
						.name = #name_,                                    \
						.fn = suite_##_##name_##_test,                     \
						__VA_ARGS__};                                      \
		mini_add_test(&test);                                                              \
	}                                                                                          \
	static void suite_##_##name_##_test(void)

#define TestSuite(name_, ...)                                                                      \
	__attribute__((constructor)) static void name_##_add(void)                                 \
	{                                                                                          \
		static struct mini_suite suite = {.name = #name_, __VA_ARGS__};                    \
		mini_add_suite(&suite);                                                            \
	}                                                                                          \
	struct mini_suite /* takes the semicolon */

#define PLAIN_CHECK(do_, holds, expected, ...)                                                     \
	((holds) ? (void)0 : do_(__FILE__, __LINE__, expected, " " __VA_ARGS__))
#define PLAIN_NEAR(a, b, within) (fabs((double)(a) - (double)(b)) <= (double)(within))

#define cr_skip_test(...) mini_skip(__VA_ARGS__)
#define cr_assert(a, ...) PLAIN_CHECK(mini_end, a, #a, __VA_ARGS__)
#define cr_assert_not(a, ...) PLAIN_CHECK(mini_end, !(a), "not " #a, __VA_ARGS__)
#define cr_assert_null(a, ...) PLAIN_CHECK(mini_end, (a) == NULL, #a " is NULL", __VA_ARGS__)
#define cr_assert_not_null(a, ...)                                                                 \
	PLAIN_CHECK(mini_end, (a) != NULL, #a " is not NULL", __VA_ARGS__)
#define cr_assert_eq(a, b, ...) PLAIN_CHECK(mini_end, (a) == (b), #a " == " #b, __VA_ARGS__)
#define cr_assert_neq(a, b, ...) PLAIN_CHECK(mini_end, (a) != (b), #a " != " #b, __VA_ARGS__)
#define cr_assert_lt(a, b, ...) PLAIN_CHECK(mini_end, (a) < (b), #a " < " #b, __VA_ARGS__)
#define cr_assert_leq(a, b, ...) PLAIN_CHECK(mini_end, (a) <= (b), #a " <= " #b, __VA_ARGS__)
#define cr_assert_gt(a, b, ...) PLAIN_CHECK(mini_end, (a) > (b), #a " > " #b, __VA_ARGS__)
#define cr_assert_geq(a, b, ...) PLAIN_CHECK(mini_end, (a) >= (b), #a " >= " #b, __VA_ARGS__)
#define cr_assert_str_eq(a, b, ...)                                                                \
	PLAIN_CHECK(mini_end, strcmp(a, b) == 0, #a " is " #b, __VA_ARGS__)
#define cr_assert_str_empty(a, ...) PLAIN_CHECK(mini_end, *(a) == '\0', #a " is empty", __VA_ARGS__)
#define cr_assert_arr_eq(a, b, n, ...)                                                             \
	PLAIN_CHECK(mini_end, memcmp(a, b, n) == 0, #a " is " #b, __VA_ARGS__)
#define cr_assert_arr_neq(a, b, n, ...)                                                            \
	PLAIN_CHECK(mini_end, memcmp(a, b, n) != 0, #a " is not " #b, __VA_ARGS__)
#define cr_assert_float_eq(a, b, e, ...)                                                           \
	PLAIN_CHECK(mini_end, PLAIN_NEAR(a, b, e), #a " is near " #b, __VA_ARGS__)
#define cr_assert_fail(...) mini_end(__FILE__, __LINE__, "never here", " " __VA_ARGS__)

#define cr_expect(a, ...) PLAIN_CHECK(mini_fail, a, #a, __VA_ARGS__)
#define cr_expect_not(a, ...) PLAIN_CHECK(mini_fail, !(a), "not " #a, __VA_ARGS__)
#define cr_expect_null(a, ...) PLAIN_CHECK(mini_fail, (a) == NULL, #a " is NULL", __VA_ARGS__)
#define cr_expect_not_null(a, ...)                                                                 \
	PLAIN_CHECK(mini_fail, (a) != NULL, #a " is not NULL", __VA_ARGS__)
#define cr_expect_eq(a, b, ...) PLAIN_CHECK(mini_fail, (a) == (b), #a " == " #b, __VA_ARGS__)
#define cr_expect_neq(a, b, ...) PLAIN_CHECK(mini_fail, (a) != (b), #a " != " #b, __VA_ARGS__)
#define cr_expect_lt(a, b, ...) PLAIN_CHECK(mini_fail, (a) < (b), #a " < " #b, __VA_ARGS__)
#define cr_expect_leq(a, b, ...) PLAIN_CHECK(mini_fail, (a) <= (b), #a " <= " #b, __VA_ARGS__)
#define cr_expect_gt(a, b, ...) PLAIN_CHECK(mini_fail, (a) > (b), #a " > " #b, __VA_ARGS__)
#define cr_expect_geq(a, b, ...) PLAIN_CHECK(mini_fail, (a) >= (b), #a " >= " #b, __VA_ARGS__)
#define cr_expect_str_eq(a, b, ...)                                                                \
	PLAIN_CHECK(mini_fail, strcmp(a, b) == 0, #a " is " #b, __VA_ARGS__)
#define cr_expect_arr_eq(a, b, size, ...)                                                          \
	PLAIN_CHECK(mini_fail, memcmp(a, b, size) == 0, #a " is " #b, __VA_ARGS__)
#define cr_expect_arr_neq(a, b, size, ...)                                                         \
	PLAIN_CHECK(mini_fail, memcmp(a, b, size) != 0, #a " is not " #b, __VA_ARGS__)
#define cr_expect_str_neq(a, b, ...)                                                               \
	PLAIN_CHECK(mini_fail, strcmp(a, b) != 0, #a " is not " #b, __VA_ARGS__)
#define cr_expect_float_eq(a, b, e, ...)                                                           \
	PLAIN_CHECK(mini_fail, PLAIN_NEAR(a, b, e), #a " is near " #b, __VA_ARGS__)

#endif
