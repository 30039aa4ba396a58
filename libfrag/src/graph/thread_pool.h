/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_GRAPH_THREAD_POOL_H
#define FRAGI_GRAPH_THREAD_POOL_H

#include <base/realtime.h>
#include <frag/thread_pool.h>
#include <graph/op.h>

/*
 * The thread pools of a fragment. Once it is complete, its pools are crews: threads that run the
 * same operators. A pool is one crew for all of its operators that are not pinned, and one more for
 * each pinned operator.
 */
struct frag_thread_pool {
	struct frag_fragment *fragment;
	const char *name, *subject; /* "capture", "fragment1.capture" */
	uint32_t initial_size;
	uint32_t shared_count, pinned_count; /* its operators */
	const struct fragi_node *place;      /* in the graph; NULL: made in C */
	/* the first use of a GPU by one of its operators; op NULL: none uses one */
	struct {
		const struct frag_op *op;
		int64_t gpu;
	} first_use;
};

/* The threads of one pinned operator, or those that the others of its pool share. */
struct fragi_crew {
	const struct frag_thread_pool *pool;
	const struct frag_op *pinned; /* NULL: the other operators of the pool */
	uint32_t thread_count;
	const uint32_t *cores; /* that they may run on; none: all */
	size_t core_count;
	struct fragi_realtime realtime; /* of a pinned operator; policy NONE: as other threads */
	bool best_effort;               /* real time that is refused is no failure */
};

/* An operator's place in a pool. */
struct fragi_pool_place {
	struct frag_thread_pool *pool;
	bool is_pinned;
	const uint32_t *cores;
	size_t core_count;
	struct fragi_realtime realtime;
	bool best_effort;
};

#define FRAGI_POOL_THREADS_MAX 1024u /* in all pools of a fragment */

/* Makes the pools of the graph, once all operators are known, then the crews. */
void fragi_thread_pools_complete(struct frag_fragment *fragment);
/*
 * Reports pools whose operators use several GPUs, once the resources have their parameters. Source:
 * Holoscan SDK, where this is a failure too.
 */
void fragi_thread_pools_check_gpus(struct frag_fragment *fragment);
/*
 * An operator uses a GPU by itself, whatever parameter named it. Returns 0; -EINVAL: its pool uses
 * another one, and the operator has failed with a sentence.
 */
int fragi_thread_pool_use_gpu(struct frag_op *op, int64_t gpu);
/* The number of the fragment's operators that are in no pool. */
uint32_t fragi_thread_pools_unpooled(const struct frag_fragment *fragment);

#endif
