// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>

#include "scale.h"

/*
 * Ten times as many workers, hosts and applications: what walked through all of them at each event
 * would make an event cost several times as much. Processor time is compared with processor time of
 * the same run, and the bound leaves room for caches and checkers.
 */
#define SMALL 50
#define LARGE 500
/*
 * One application, with TIMES as many workers and fragments: to place it anew with each worker that
 * comes, and to send its graph with each host, cost some 25 times as much.
 */
#define WORKERS 50
#define FRAGMENTS 500
#define TIMES 4
#define MOST_OF_ONE 10.0
#ifdef __SANITIZE_ADDRESS__ /* the checker's own memory costs more than the driver's */
#define MOST 10.0
#else
#define MOST 3.0
#endif

Test(scale, an_event_costs_the_same_with_ten_times_the_workers, .timeout = 300)
{
	struct scale_costs small = {0}, large = {0};
	const char *failure = NULL;
	double growth = 0;

	/* A measurement that others disturbed is made again. */
	for (int round = 0; round < 4 && failure == NULL && (round == 0 || growth > MOST);
	     round++) {
		failure = scale_measure(SMALL, &small);
		if (failure == NULL)
			failure = scale_measure(LARGE, &large);
		growth = scale_growth(&small, &large);
	}
	cr_assert_null(failure, "%s", failure);
	cr_expect_leq(growth, MOST, "it costs %.2f x as much", growth);
}

Test(scale, one_application_over_many_workers_grows_with_them, .timeout = 300)
{
	double small = 0, large = 0;
	const char *failure = NULL;

	for (int round = 0;
	     round < 4 && failure == NULL && (round == 0 || large > MOST_OF_ONE * small); round++) {
		failure = scale_measure_one(WORKERS, FRAGMENTS, &small);
		if (failure == NULL)
			failure = scale_measure_one(TIMES * WORKERS, TIMES * FRAGMENTS, &large);
	}
	cr_assert_null(failure, "%s", failure);
	cr_expect_leq(large, MOST_OF_ONE * small, "it costs %.2f x as much", large / small);
}
