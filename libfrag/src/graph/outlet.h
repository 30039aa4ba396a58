/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_GRAPH_OUTLET_H
#define FRAGI_GRAPH_OUTLET_H

#include <base/policy.h>
#include <graph/resolve.h>

/*
 * How many blocks of a pool the messages of an output can hold. The rule, for a flow of capacity c,
 * counting the block that its sender is filling:
 * - block, fault: c messages wait, or one of them is being worked on and another is being filled:
 *   c + 1. Between hosts the window of credits bounds the sender in the same way.
 * - pop, reject, latest: the sender does not wait, so the receiver may be at work while the queue
 *   is full and one more is filled: c + 2. Between fragments up to c more wait to be sent and up to
 *   c are on their way: 3c + 2. (Where they do not share memory, those at the receiver are copies.)
 * The flows of one output carry the same messages. All of them hold the newest ones (`newest`), so
 * these count once; what a flow holds besides (`older`) counts for each. Where the operator chooses
 * its flows, each may hold other messages: then all but the one being filled count for each.
 */
struct fragi_outlet {
	uint64_t newest, older;
};

/* Adds a flow. between: to another fragment. */
static inline void fragi_outlet_add(struct fragi_outlet *outlet, const struct fragi_flow_info *flow,
				    bool between, bool is_dynamic)
{
	const struct fragi_policy *policy = fragi_policy(flow->policy);
	uint64_t newest = (uint64_t)flow->capacity + 1;

	if (!policy->blocking) {
		outlet->older +=
			1 + (between ? 2 * (uint64_t)flow->capacity : 0) + policy->reads_again;
		if (!policy->drops_oldest) {
			outlet->older += newest - 1;
			newest = 1;
		}
	}
	if (is_dynamic) {
		outlet->older += newest - 1;
		newest = 1;
	}
	if (newest > outlet->newest)
		outlet->newest = newest;
}

#endif
