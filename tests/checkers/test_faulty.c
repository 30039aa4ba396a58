// SPDX-License-Identifier: Apache-2.0
/*
 * Tests that pass and must fail all the same: checkers.sh shows that tests/run.py sees what the
 * checkers report of them.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>

static char *volatile kept;
static int counter;

static void *count(void *arg)
{
	for (int i = 0; i < 1000; i++)
		counter++;
	return arg;
}

Test(faulty, leaks)
{
	kept = malloc(1234);
	kept[0] = 1;
	kept = NULL;
}

Test(faulty, races)
{
	pthread_t thread;

	pthread_create(&thread, NULL, count, NULL);
	count(NULL);
	pthread_join(thread, NULL);
	cr_assert_leq(counter, 2000);
}
