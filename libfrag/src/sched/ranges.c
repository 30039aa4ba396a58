// SPDX-License-Identifier: Apache-2.0
#include <sched/exec.h>
#include <type/nvtx.h>

static int compute(void *self, struct frag_tick *tick)
{
	struct fragi_exec *exec = (struct fragi_exec *)tick;
	const struct fragi_nvtx *nvtx = fragi_nvtx();
	int r;

	(void)nvtx->push(exec->op->subject);
	r = exec->ranged_compute(self, tick);
	(void)nvtx->pop();
	return r;
}

void fragi_ranges_bind(struct fragi_exec *exec)
{
	if (fragi_nvtx() == NULL)
		return;
	exec->ranged_compute = exec->compute;
	exec->compute = exec->usual_compute = compute;
}
