/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_BENCH_BENCH_H
#define TESTS_BENCH_BENCH_H

/* Operators that benchmarks are made of, on public headers only. Times are CLOCK_MONOTONIC. */
#include <time.h>

#include <frag/frag.h>

extern const struct frag_op_type bench_source_type, bench_pass_type, bench_work_type,
	bench_sink_type;
extern const struct frag_op_type bench_kick_type, bench_ping_type, bench_pong_type,
	bench_pacer_type, bench_clock_type, bench_router_type, bench_beat_type,
	bench_gpu_source_type, bench_gpu_sink_type;

static inline int64_t bench_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* For qsort, of times. */
static inline int bench_by_size(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/*
 * What the operators send: an int64 up to 8 bytes, else the same tensor again and again in a new
 * message.
 */
struct bench_load {
	struct frag_tensor *tensor; /* NULL: int64 */
};
int bench_load_init(struct bench_load *load, struct frag_op *op, uint64_t bytes);
int bench_load_emit(struct bench_load *load, struct frag_tick *tick, uint32_t port, int64_t value);
void bench_load_fini(struct bench_load *load);

#endif
