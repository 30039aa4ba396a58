// SPDX-License-Identifier: Apache-2.0
#include <sched/exec.h>
#include <type/nvtx.h>

/* Where a profiler is attached, each call of compute is a range of NVTX, named as the operator. */

static bool is_wanted(const struct fragi_exec *exec)
{
	(void)exec;
	return fragi_nvtx() != NULL;
}

static int compute(void *self, struct frag_tick *tick)
{
	const struct fragi_nvtx *nvtx = fragi_nvtx();
	int r;

	(void)nvtx->push(tick->op->subject);
	r = fragi_inside_compute(FRAGI_AROUND_RANGES, self, tick);
	(void)nvtx->pop();
	return r;
}

const struct fragi_around fragi_around_ranges = {
	.is_wanted = is_wanted,
	.compute = compute,
};
