// SPDX-License-Identifier: Apache-2.0
#include <cond/condition.h>

struct count {
	int64_t count;
	int64_t ticks;
};

static const struct frag_param params[] = {
	FRAG_PARAM_I64(struct count, count, 1,
		       .headline = "Ticks, then never again; below 0: without end"),
};

static enum frag_ready check(void *state, int64_t now_ns, int64_t *out_until_ns)
{
	const struct count *s = state;

	(void)now_ns;
	(void)out_until_ns;
	return s->count < 0 || s->ticks < s->count ? FRAG_READY : FRAG_NEVER;
}

static bool ends(const void *state)
{
	return ((const struct count *)state)->count >= 0;
}

static void ticked(void *state, int64_t now_ns)
{
	struct count *s = state;

	(void)now_ns;
	s->ticks++;
}

const struct fragi_built_in_condition fragi_condition_count = {
	.type = {FRAG_CONDITION_TYPE_INIT, .name = "count",
		 .headline = "A number of ticks, then never again",
		 .state_size = sizeof(struct count), FRAG_PARAMS(params),
		 .flags = FRAG_CONDITION_ENDS, .check = check, .ticked = ticked},
	.ends = ends,
};
