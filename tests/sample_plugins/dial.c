// SPDX-License-Identifier: Apache-2.0
/* An operator that prints the value of its dynamic parameter when it starts and when it changes. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <frag/frag.h>

#define DEADLY 13 /* a value that it does not survive */

struct dial {
	int64_t value, shown;
	const char *mode, *title;
};

static const char *const modes[] = {"soft", "hard", NULL};
static const struct frag_param params[] = {
	FRAG_PARAM_I64(struct dial, value, 1, .min = 0, .max = 100, .flags = FRAG_PARAM_DYNAMIC),
	FRAG_PARAM_STRING(struct dial, mode, "soft", .choices = modes, .flags = FRAG_PARAM_DYNAMIC),
	FRAG_PARAM_STRING(struct dial, title, "none"),
};

static int dial_start(void *state, struct frag_op *op)
{
	struct dial *s = state;

	if (strcmp(s->title, "refused") == 0)
		return frag_op_fail(op, -EINVAL, "this title is refused");
	s->shown = s->value;
	printf("begins with %" PRId64 "\n", s->value);
	return 0;
}

static int dial_compute(void *state, struct frag_tick *tick)
{
	struct dial *s = state;

	if (s->value == DEADLY)
		abort();
	if (s->value != s->shown)
		printf("now %" PRId64 ", %s\n", s->value, s->mode);
	s->shown = s->value;
	return 0;
}

static const struct frag_op_type dial = {
	FRAG_OP_TYPE_INIT,
	.name = "dial",
	.headline = "Prints its value when it changes",
	.state_size = sizeof(struct dial),
	FRAG_PARAMS(params),
	.start = dial_start,
	.compute = dial_compute,
};
static const struct frag_op_type *const ops[] = {&dial};
FRAG_PLUGIN(.name = "dial", .version = "1.0.0", FRAG_OPS(ops));
