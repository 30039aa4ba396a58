// SPDX-License-Identifier: Apache-2.0
/* An operator without ports that takes what limits of hosts are about: memory, once, and a core. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <frag/frag.h>

struct hungry {
	int64_t mebibytes;
	bool busy;
	char *memory;
};

static const struct frag_param params[] = {
	FRAG_PARAM_I64(struct hungry, mebibytes, 0, .headline = "How much it takes and writes to"),
	FRAG_PARAM_BOOL(struct hungry, busy, false, .headline = "Whether it computes all the time"),
};

static int compute(void *state, struct frag_tick *tick)
{
	struct hungry *s = state;
	const struct timespec pause = {.tv_nsec = 10000000};
	time_t end = time(NULL) + 1;

	if (s->memory == NULL && s->mebibytes > 0) {
		s->memory = malloc((size_t)s->mebibytes << 20);
		if (s->memory != NULL)
			memset(s->memory, 1, (size_t)s->mebibytes << 20);
	}
	while (s->busy && time(NULL) < end)
		continue;
	if (!s->busy)
		nanosleep(&pause, NULL);
	return 0;
}

static void fini(void *state, struct frag_op *op)
{
	struct hungry *s = state;

	free(s->memory);
}

static const struct frag_op_type hungry = {
	FRAG_OP_TYPE_INIT,
	.name = "hungry",
	.headline = "Takes memory and time",
	.state_size = sizeof(struct hungry),
	FRAG_PARAMS(params),
	.compute = compute,
	.fini = fini,
};

static const struct frag_op_type *const ops[] = {&hungry};
FRAG_PLUGIN(.name = "hungry", .version = "1.0.0", FRAG_OPS(ops));
