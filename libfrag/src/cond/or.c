// SPDX-License-Identifier: Apache-2.0
#include <cond/condition.h>

struct or
{
	struct frag_string_list terms, ports;
};

static const struct frag_param params[] = {
	FRAG_PARAM_STRING_LIST(struct or, terms, NULL, .flags = FRAG_PARAM_OPTIONAL,
			       .headline = "Conditions of the operator that it combines"),
	FRAG_PARAM_STRING_LIST(struct or, ports, NULL, .flags = FRAG_PARAM_OPTIONAL,
			       .headline = "Ports whose conditions it combines"),
};

/*
 * NEVER of one term is final. Otherwise the term that can be READY first counts: one whose time is
 * known, then one that waits for messages or room, then one that waits for an event.
 */
static enum frag_ready combine(void *state, const struct frag_term *terms, uint32_t count,
			       int64_t *out_until_ns)
{
	enum frag_ready best = FRAG_WAIT_EVENT;
	int64_t until_ns = INT64_MAX;

	(void)state;
	for (uint32_t i = 0; i < count; i++) {
		if (terms[i].ready == FRAG_NEVER)
			return FRAG_NEVER;
		best = terms[i].ready < best ? terms[i].ready : best;
		if (terms[i].ready == FRAG_WAIT_TIME && terms[i].until_ns < until_ns)
			until_ns = terms[i].until_ns;
	}
	*out_until_ns = until_ns;
	return best;
}

const struct fragi_built_in_condition fragi_condition_or = {
	.type = {FRAG_CONDITION_TYPE_INIT, .name = "or",
		 .headline = "One of several conditions is met",
		 .description =
			 "The conditions that it names count through it alone. When one of them answers that the operator is never ticked again, the operator ends.",
		 .state_size = sizeof(struct or), FRAG_PARAMS(params), .combine = combine},
};
