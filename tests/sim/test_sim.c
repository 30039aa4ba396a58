// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define SEEDS 1000

Test(sim, the_invariants_hold_in_every_history)
{
	struct sim_result result;
	uint32_t outcomes[3] = {0};

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		sim_run(seed, NULL, &result);
		cr_expect(!result.failed, "seed %llu: %s: %s; replay: make sim SEED=%llu",
			  (unsigned long long)seed, result.invariant, result.failure,
			  (unsigned long long)seed);
		for (int i = 0; i < 3; i++)
			outcomes[i] += result.outcomes[i];
	}
	/* The seeds reach all ends, each often. */
	for (int i = 0; i < 3; i++)
		cr_expect_gt(outcomes[i], SEEDS / 20, "result %d came %u times", i, outcomes[i]);
}

static char *history(uint64_t seed, struct sim_result *out_result)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	cr_assert_not_null(out);
	sim_run(seed, out, out_result);
	fclose(out);
	return text;
}

Test(sim, a_seed_is_replayed_to_the_byte)
{
	struct sim_result first, again, quiet, other;

	for (uint64_t seed = 1; seed <= 40; seed++) {
		char *one, *two;

		sim_run(seed, NULL, &quiet);
		one = history(seed, &first);
		sim_run(seed + 1, NULL, &other); /* what ran between leaves no trace */
		two = history(seed, &again);
		cr_expect_str_eq(one, two);
		cr_expect_eq(first.hash, again.hash);
		cr_expect_eq(first.hash, quiet.hash, "writing the history of seed %llu changes it",
			     (unsigned long long)seed);
		cr_expect_neq(first.hash, other.hash);
		cr_expect_gt(strlen(one), 500);
		free(one);
		free(two);
	}
}
