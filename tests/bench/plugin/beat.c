// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

/*
 * Notes when it ticks, `count` times, and writes into `file` how late that was beside a tick in
 * each period_ns: the periods that it missed, then the 99th percentile and the maximum in ns.
 */
struct beat {
	const char *file;
	int64_t count, period_ns, ticks;
	int64_t *late_ns;
};

static const struct frag_param beat_params[] = {
	FRAG_PARAM_STRING(struct beat, file, NULL, .flags = FRAG_PARAM_REQUIRED),
	FRAG_PARAM_I64(struct beat, count, 1000),
	FRAG_PARAM_I64(struct beat, period_ns, 1000000),
};

static int beat_start(void *state, struct frag_op *op)
{
	struct beat *s = state;

	s->late_ns = calloc((size_t)s->count, sizeof(*s->late_ns));
	return s->late_ns != NULL ? 0 : frag_op_fail(op, -ENOMEM, "no memory");
}

static int beat_compute(void *state, struct frag_tick *tick)
{
	struct beat *s = state;

	s->late_ns[s->ticks] = bench_now_ns() - s->ticks * s->period_ns;
	return ++s->ticks == s->count ? FRAG_DONE : 0;
}

/* The earliest tick was on time. */
static int beat_stop(void *state, struct frag_op *op)
{
	struct beat *s = state;
	FILE *f = fopen(s->file, "w");
	int64_t missed = 0;

	if (f == NULL || s->ticks == 0)
		return frag_op_fail(op, -EIO, "cannot write %s: %s", s->file, strerror(errno));
	qsort(s->late_ns, (size_t)s->ticks, sizeof(*s->late_ns), bench_by_size);
	for (int64_t i = 0; i < s->ticks; i++)
		missed += s->late_ns[i] - s->late_ns[0] >= s->period_ns;
	fprintf(f, "%" PRId64 " %" PRId64 " %" PRId64 "\n", missed,
		s->late_ns[s->ticks * 99 / 100] - s->late_ns[0],
		s->late_ns[s->ticks - 1] - s->late_ns[0]);
	free(s->late_ns);
	return fclose(f) == 0 ? 0 : -EIO;
}

const struct frag_op_type bench_beat_type = {
	FRAG_OP_TYPE_INIT,
	.name = "bench_beat",
	.headline = "Notes when it ticks",
	.state_size = sizeof(struct beat),
	FRAG_PARAMS(beat_params),
	.start = beat_start,
	.compute = beat_compute,
	.stop = beat_stop,
};
