/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_DEADLINE_H
#define FRAG_DEADLINE_H

#include <frag/operator.h>

FRAG_BEGIN_DECLS

/*
 * Deadlines: how long an operator may take, or a message on a path through several operators. A
 * graph declares the same as `deadline` of an operator and `deadlines` of a fragment or of the
 * application. What is past a deadline is counted, and the summary and the log name it.
 */

/* The event from which an operator's deadline counts. It counts until compute returns. */
enum frag_deadline_from {
	/* with the tick */
	FRAG_DEADLINE_FROM_TICK = 0,
	/* with the acquisition of the oldest message that the tick gets (frag/message.h) */
	FRAG_DEADLINE_FROM_ACQUISITION = 1
};

/* The reaction to a missed deadline, which is counted in any case. */
enum frag_on_miss {
	FRAG_ON_MISS_COUNT = 0,
	/*
	 * A message that is past it before its tick begins is dropped. Of operators only with
	 * FRAG_DEADLINE_FROM_ACQUISITION
	 */
	FRAG_ON_MISS_DROP = 1,
	/* the application fails */
	FRAG_ON_MISS_STOP = 2
};

/*
 * Sets the deadline of an operator, in a composer or in the operator's own setup. A graph's wins
 * over it.
 * - budget_ns: the time that it may take, in nanoseconds, more than 0
 * Returns 0; -EINVAL: op is NULL, the budget is not more than 0, or a value is none of its enum;
 * -EBUSY: neither in a composer nor in setup.
 * Thread: the composer's. Blocks: no. RT-safe: no.
 */
FRAG_API int frag_set_deadline(struct frag_op *op, int64_t budget_ns, enum frag_deadline_from from,
			       enum frag_on_miss on_miss);
/*
 * Adds a deadline of a path through the fragment, in a composer: from the begin of the tick of the
 * first operator to the end of compute of the last one, for each message that took this path.
 * - path, count: the operators, from the first to the last one, 2 to 64, each connected to the next
 *   by a flow
 * - budget_ns: the time that it may take, in nanoseconds, more than 0
 * - on_miss: FRAG_ON_MISS_DROP drops a message before the tick of the last operator
 * Returns 0; -EINVAL: an operator is NULL or of another fragment, count is not 2 to 64, the budget
 * is not more than 0, or on_miss is none of its enum; -EBUSY: not inside a composer; -ENOMEM. That
 * no flow connects two of them is reported when the composer has returned.
 * Thread: the composer's. Blocks: no. RT-safe: no.
 */
FRAG_API int frag_add_path_deadline(struct frag_fragment *fragment, struct frag_op *const *path,
				    size_t count, int64_t budget_ns, enum frag_on_miss on_miss);

FRAG_END_DECLS

#endif
