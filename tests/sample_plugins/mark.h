/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Versions of one operator, each in a library of its own: it passes on each number with the number
 * of its version in the millions, and saves how many it has passed on.
 * - VERSION: that number
 * - CRASH_AT: it crashes at that message of its process; 0: never
 * - WIDE: it saves more bytes than the others
 * - SECOND: it has one more output
 * - HANGS: the callback of that name does not return
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <frag/frag.h>

/* Each library defines its own before it includes this. */
#ifndef VERSION
#define VERSION 0
#endif

#ifndef CRASH_AT
#define CRASH_AT 0
#endif

enum { IN, OUT };

struct mark {
	int64_t passed, here;
};

static const struct frag_port ports[] = {
	[IN] = {.name = "in", .dir = FRAG_IN},
	[OUT] = {.name = "out", .dir = FRAG_OUT},
#ifdef SECOND
	{.name = "second", .dir = FRAG_OUT},
#endif
};

static int mark_compute(void *state, struct frag_tick *tick)
{
	struct mark *s = state;
	const int64_t *number;
	const void *value;
	int r = frag_tick_receive_value(tick, IN, &frag_type_i64, &value, NULL);

	if (r < 0)
		return r;
	number = value;
	s->passed++;
	if (++s->here == CRASH_AT)
		raise(SIGSEGV);
	return frag_tick_emit_i64(tick, OUT, *number + VERSION * INT64_C(1000000));
}

static int mark_save(void *state, struct frag_op *op, void *bytes, size_t size)
{
	const struct mark *s = state;

	memset(bytes, 0, size);
	memcpy(bytes, &s->passed, sizeof(s->passed));
	return (int)size;
}

static int mark_restore(void *state, struct frag_op *op, const void *bytes, size_t size)
{
	struct mark *s = state;

	memcpy(&s->passed, bytes, sizeof(s->passed));
	fprintf(stderr, "mark %d goes on behind %lld\n", VERSION, (long long)s->passed);
	return 0;
}

#ifdef HANGS
static int mark_hang(void *state, struct frag_op *op)
{
	fprintf(stderr, "mark %d hangs\n", VERSION);
	while (pause() < 0)
		;
	return 0;
}
#endif

static const struct frag_op_type mark = {
	FRAG_OP_TYPE_INIT,
	.name = "mark",
	.state_size = sizeof(struct mark),
	FRAG_PORTS(ports),
	.compute = mark_compute,
#ifdef HANGS
	.HANGS = mark_hang,
#endif
	.save = mark_save,
	.restore = mark_restore,
#ifdef WIDE
	.save_size = 4 * sizeof(int64_t),
#else
	.save_size = sizeof(int64_t),
#endif
};
static const struct frag_op_type *const ops[] = {&mark};
FRAG_PLUGIN(.name = "mark", .version = "1.0.0", FRAG_OPS(ops));
