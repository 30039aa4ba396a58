// SPDX-License-Identifier: Apache-2.0
#include "sim.h"

#include <string.h>

/*
 * What a history is about. Seeds in a row have each kind as often as its share says, so that what
 * only few kinds can show is met by every run of some length.
 */
static const struct sim_kind kinds[] = {
	{.name = "faults", .share = 4},
	{.name = "client", .share = 1, .has_client = true},
	{.name = "places", .share = 2, .places = true},
	{.name = "restarts", .share = 2, .restarts = true},
	{.name = "set", .share = 2, .restarts = true, .has_client = true},
	{.name = "swaps", .share = 2, .swaps = true, .has_client = true},
	{.name = "swaps-restarts", .share = 1, .swaps = true, .restarts = true, .has_client = true},
	{.name = "swaps-drains", .share = 1, .swaps = true, .moves = true, .has_client = true},
	{.name = "returns", .share = 2, .adopts = true},
	{.name = "restarts-returns", .share = 1, .restarts = true, .adopts = true},
	{.name = "leases", .share = 2, .restarts = true, .leases = true},
	{.name = "leases-set", .share = 1, .restarts = true, .leases = true, .has_client = true},
	{.name = "leases-places", .share = 2, .restarts = true, .leases = true, .places = true},
	{.name = "leases-returns", .share = 5, .restarts = true, .leases = true, .adopts = true},
	{.name = "leases-drains",
	 .share = 1,
	 .restarts = true,
	 .leases = true,
	 .moves = true,
	 .adopts = true},
	{.name = "pauses", .share = 2, .adopts = true, .pauses = true},
	{.name = "leases-pauses",
	 .share = 2,
	 .restarts = true,
	 .leases = true,
	 .adopts = true,
	 .pauses = true},
	{.name = "drains-pauses", .share = 1, .moves = true, .adopts = true, .pauses = true},
	{.name = "drains", .share = 1, .moves = true},
	{.name = "drains-set", .share = 1, .moves = true, .has_client = true},
	{.name = "drains-returns", .share = 4, .moves = true, .adopts = true},
	{.name = "drains-restarts", .share = 1, .moves = true, .restarts = true, .adopts = true},
};

/* The n-th of those that repeat. */
static const struct sim_kind *kind_at(uint64_t n)
{
	const struct sim_kind *kind = kinds;

	for (; n >= kind->share; kind++)
		n -= kind->share;
	return kind;
}

static uint64_t shares(void)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < FRAG_COUNT_OF(kinds); i++)
		sum += kinds[i].share;
	return sum;
}

const struct sim_kind *sim_kind_of(uint64_t seed, uint64_t *out_variant)
{
	*out_variant = seed / shares();
	return kind_at(seed % shares());
}

const struct sim_kind *sim_kind_named(const char *name)
{
	for (size_t i = 0; i < FRAG_COUNT_OF(kinds); i++)
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	return NULL;
}
