// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include <base/policy.h>

/* holoscan: the values of IOSpec::QueuePolicy. */
static const struct fragi_policy policies[] = {
	[FRAG_POLICY_BLOCK] = {.name = "block", .blocking = true, .full_error = -ENOBUFS},
	[FRAG_POLICY_POP] = {.name = "pop", .holoscan = "0", .drops_oldest = true},
	[FRAG_POLICY_REJECT] = {.name = "reject", .holoscan = "1"},
	[FRAG_POLICY_FAULT] = {.name = "fault",
			       .holoscan = "2",
			       .blocking = true,
			       .full_error = -EOVERFLOW},
	[FRAG_POLICY_LATEST] = {.name = "latest", .drops_oldest = true, .capacity = 1},
	[FRAG_POLICY_ASYNC_BUFFER] = {.name = "async_buffer",
				      .drops_oldest = true,
				      .reads_again = true,
				      .capacity = 1},
};

const struct fragi_policy *fragi_policy(unsigned int policy)
{
	if (policy == FRAG_POLICY_DEFAULT)
		policy = FRAG_POLICY_BLOCK;
	return policy < FRAG_COUNT_OF(policies) ? &policies[policy] : NULL;
}
