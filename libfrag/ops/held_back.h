/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPS_HELD_BACK_H
#define OPS_HELD_BACK_H

#include <time.h>

#include <frag/frag.h>

/*
 * A live source that cannot send, because a receiver has no room, goes on with what is old: a
 * camera's buffers and a network's wait meanwhile. It begins its next tick late.
 */
#define HELD_BACK_PERIODS 3

struct held_back {
	int64_t left_ns; /* the end of the last tick, by CLOCK_MONOTONIC; 0: there was none */
	bool is_logged;
};

static inline int64_t held_back_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* For live_ns in the metadata of a live frame: it has come just now. */
static inline int64_t held_back_unix_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* A tick begins, of a source with so many frames a second; 0: it is not known. */
static inline void held_back_begin(struct held_back *held, const struct frag_op *op, double rate)
{
	double waited_s = (double)(held_back_now_ns() - held->left_ns) / 1e9;

	if (held->left_ns == 0 || rate <= 0.0 || waited_s * rate <= HELD_BACK_PERIODS)
		return;
	frag_op_count(op, FRAG_OP_HELD_BACK, 1);
	if (!held->is_logged)
		frag_op_log(
			op,
			"waited %.0f ms for a receiver that is slower than its %g frames a second, so frames are old when they are used; policy latest of its flow gives the newest one, pop drops the oldest",
			waited_s * 1e3, rate);
	held->is_logged = true;
}

/* A tick ends. */
static inline void held_back_end(struct held_back *held)
{
	held->left_ns = held_back_now_ns();
}

#endif
