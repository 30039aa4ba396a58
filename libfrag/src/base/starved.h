/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_STARVED_H
#define FRAGI_BASE_STARVED_H

#include <stdint.h>

#include <base/stamp.h>

/* A value may be so old: a thread reads the kernel's file no more often. */
#define FRAGI_STARVED_STALE_NS 100000u

/*
 * Returns for how long the calling thread could run since it began, and the kernel gave it no core;
 * 0 where the kernel does not count that, and on a virtual clock. The difference between wall and
 * CPU time would also be that of a thread that sleeps or waits for a disk, which is no preemption.
 *
 * It is at most FRAGI_STARVED_STALE_NS too small. Within that time the value of the last call is
 * returned again, because reading takes a system call of a microsecond.
 * - now: the present stamp
 */
static inline uint64_t fragi_starved_ns(uint64_t now);

/* What a thread has read last, and when; 0: it has not. */
struct fragi_starved {
	uint64_t read_at, ns;
};
extern __thread struct fragi_starved fragi_starved_mine
	__attribute__((tls_model("initial-exec"), visibility("hidden")));
uint64_t fragi_starved_read(uint64_t now);

static inline uint64_t fragi_starved_ns(uint64_t now)
{
	const struct fragi_starved *mine = &fragi_starved_mine;

	if (mine->read_at != 0 && fragi_stamp_diff_ns(mine->read_at, now) < FRAGI_STARVED_STALE_NS)
		return mine->ns;
	return fragi_starved_read(now);
}

#endif
