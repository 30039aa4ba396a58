/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_LOCK_H
#define FRAGI_BASE_LOCK_H

#include <stdatomic.h>
#include <stdint.h>

/*
 * A mutex for short sections that are rarely contended: without contention, taking and leaving it
 * costs one atomic instruction each and no call. A thread that has to wait spins for a moment, then
 * sleeps on a futex. Zeroed memory is a free lock.
 */
struct fragi_lock {
	_Atomic uint32_t state;
};
#define FRAGI_LOCK_FREE 0u
#define FRAGI_LOCK_TAKEN 1u
#define FRAGI_LOCK_AWAITED 2u /* taken, and a thread may sleep on it */

/* Between two looks of a thread that waits without sleeping. */
static inline void fragi_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

void fragi_lock_wait(struct fragi_lock *lock);
void fragi_lock_wake(struct fragi_lock *lock);

static inline void fragi_lock_take(struct fragi_lock *lock)
{
	uint32_t state = FRAGI_LOCK_FREE;

	if (__builtin_expect(!atomic_compare_exchange_strong_explicit(
				     &lock->state, &state, FRAGI_LOCK_TAKEN, memory_order_acquire,
				     memory_order_relaxed),
			     0))
		fragi_lock_wait(lock);
}

static inline void fragi_lock_leave(struct fragi_lock *lock)
{
	if (__builtin_expect(atomic_exchange_explicit(&lock->state, FRAGI_LOCK_FREE,
						      memory_order_release) == FRAGI_LOCK_AWAITED,
			     0))
		fragi_lock_wake(lock);
}

#endif
