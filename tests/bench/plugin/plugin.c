// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

/* As many operators as the argument `operators` says, in a line. */
static int chain_compose(struct frag_fragment *fragment)
{
	const char *text = frag_fragment_argument(fragment, "operators");
	long count = text != NULL ? atol(text) : 0;
	struct frag_op *before = NULL, *op;
	char name[32];
	int r;

	if (count < 2)
		return frag_fragment_fail(fragment, -EINVAL,
					  "the argument operators must be 2 or more");
	for (long i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "o%ld", i);
		op = i == 0 ? frag_make_operator(fragment, name, "bench_source",
						 FRAG_ARGS({"count", "1"}))
		     : i == count - 1
			     ? frag_make_operator(fragment, name, "bench_sink", FRAG_NO_ARGS)
			     : frag_make_operator(fragment, name, "bench_pass", FRAG_NO_ARGS);
		if (op == NULL)
			return -ENOMEM;
		r = before == NULL ? 0 : frag_add_flow(fragment, before, NULL, op, NULL);
		if (r < 0)
			return r;
		before = op;
	}
	return 0;
}

static const struct frag_composer composers[] = {
	{.name = "bench_chain", .headline = "A line of operators", .compose = chain_compose},
};
static const struct frag_op_type *const ops[] = {
	&bench_source_type, &bench_pass_type, &bench_sink_type,       &bench_kick_type,
	&bench_ping_type,   &bench_pong_type, &bench_pacer_type,      &bench_clock_type,
	&bench_router_type, &bench_beat_type, &bench_gpu_source_type, &bench_gpu_sink_type,
	&bench_work_type,
};
FRAG_PLUGIN(.name = "bench", .version = "1.0.0", FRAG_OPS(ops), FRAG_COMPOSERS(composers));
