/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_THREAD_POOL_H
#define FRAG_THREAD_POOL_H

#include <frag/compose.h>

FRAG_BEGIN_DECLS

/*
 * Thread pools: threads that run the operators of one pool only, beside the threads of the
 * event-based scheduler, which run all others. A pool keeps operators that compute for long, or
 * that must not wait, apart from the rest. The greedy scheduler has one thread and ignores pools.
 *
 * All functions below are called inside a composer, on its thread. A failure is worded in the
 * fragment, as for those of compose.h. None of them blocks or is RT-safe.
 * Source: Holoscan SDK, Fragment::make_thread_pool and ThreadPool.
 */
struct frag_thread_pool;

/*
 * Makes a thread pool. Its threads come in addition to the scheduler's.
 * - name: unique among the fragment's pools; in a subgraph the instance's name comes before it
 * - initial_size: threads, 1024 at most. The pool has more of them where each pinned operator is to
 *   have one, and the others together at least one
 * Returns the pool, which belongs to the fragment; NULL on failure.
 */
FRAG_API struct frag_thread_pool *frag_make_thread_pool(struct frag_fragment *fragment,
							const char *name, uint32_t initial_size);
/*
 * Adds operators to the pool. An operator is in one pool at most.
 * - ops, count: operators of the same fragment
 * - pin_operator: 0: the pool's threads run them, whichever is free; 1: each gets one of the pool's
 *   threads for itself
 * - pin_cores, core_count: the cores that these threads may run on, with pin_operator only; NULL
 *   and 0: all
 * Returns 0; -EINVAL: pool or an operator is NULL or of another fragment, is in a pool already, or
 * there are cores without pin_operator; -EBUSY: not inside a composer; -ENOMEM.
 */
FRAG_API int frag_thread_pool_add(struct frag_thread_pool *pool, struct frag_op *const *ops,
				  size_t count, int pin_operator, const uint32_t *pin_cores,
				  size_t core_count);

/* How the kernel schedules a thread: sched(7). */
enum frag_sched_policy {
	FRAG_SCHED_FIFO = 1,
	FRAG_SCHED_RR,
	FRAG_SCHED_DEADLINE,
};
/* How the thread of a real-time operator is to be scheduled. */
struct frag_realtime {
	/* set by FRAG_REALTIME_INIT */
	size_t struct_size;
	/* one of fifo, rr and deadline */
	enum frag_sched_policy sched_policy;
	/* of fifo and rr: 1 to 99, greater ones run before others */
	uint32_t sched_priority;
	/*
	 * For SCHED_DEADLINE, in ns: the thread gets sched_runtime within sched_deadline of the
	 * begin of each sched_period. sched_runtime <= sched_deadline <= sched_period;
	 * sched_deadline 0: sched_period
	 */
	uint64_t sched_runtime, sched_deadline, sched_period;
	/* cores that the thread may run on; NULL and 0: all */
	const uint32_t *pin_cores;
	/* of pin_cores */
	size_t core_count;
	/* 1: when the kernel refuses, the operator runs without real time, with a warning */
	int best_effort;
};
/* Begins a struct frag_realtime. */
#define FRAG_REALTIME_INIT .struct_size = sizeof(struct frag_realtime)
/*
 * Adds an operator to the pool that runs on a thread of its own, which the kernel schedules as
 * stated. When the kernel refuses that, the application does not start, with a sentence that names
 * what is missing.
 * - realtime: begins with FRAG_REALTIME_INIT; copied
 * Returns as frag_thread_pool_add; -EINVAL too: realtime is NULL or makes no sense.
 * Source: Holoscan SDK, ThreadPool::add_realtime.
 */
FRAG_API int frag_thread_pool_add_realtime(struct frag_thread_pool *pool, struct frag_op *op,
					   const struct frag_realtime *realtime);

FRAG_END_DECLS

#endif
