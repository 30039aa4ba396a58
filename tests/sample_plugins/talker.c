// SPDX-License-Identifier: Apache-2.0
/*
 * An operator that prints numbered lines: "line 1", "line 2", ..., after a text that it writes to
 * the descriptor itself.
 */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <frag/frag.h>

struct talker {
	int64_t lines, ticks, pause;
	const char *raw;
	int64_t printed, seen;
};

static const struct frag_param params[] = {
	FRAG_PARAM_I64(struct talker, lines, 1, .headline = "Lines to print in each tick"),
	FRAG_PARAM_I64(struct talker, ticks, 1, .headline = "Ticks; 0: for ever"),
	FRAG_PARAM_STRING(struct talker, raw, "", .headline = "Text for the descriptor of stderr"),
	FRAG_PARAM_DURATION(struct talker, pause, 0, .headline = "Time each tick takes"),
};

static int talker_compute(void *state, struct frag_tick *tick)
{
	struct talker *s = state;
	struct timespec pause = {.tv_sec = s->pause / 1000000000, .tv_nsec = s->pause % 1000000000};

	dprintf(STDERR_FILENO, "%s", s->raw);
	for (int64_t i = 0; i < s->lines; i++)
		printf("line %lld of the talker, which has much to say\n", (long long)++s->printed);
	nanosleep(&pause, NULL);
	return ++s->seen == s->ticks ? FRAG_DONE : 0;
}

static const struct frag_op_type talker = {
	FRAG_OP_TYPE_INIT,
	.name = "talker",
	.headline = "Prints numbered lines",
	.state_size = sizeof(struct talker),
	FRAG_PARAMS(params),
	.compute = talker_compute,
};
static const struct frag_op_type *const ops[] = {&talker};
FRAG_PLUGIN(.name = "talker", .version = "1.0.0", FRAG_OPS(ops));
