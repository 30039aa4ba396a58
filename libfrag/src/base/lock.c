// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <base/lock.h>

#define LOOKS 100 /* about a microsecond */

/*
 * A thread that has slept cannot know whether other threads still sleep, so it takes the lock as
 * awaited. At worst one later wake-up finds no sleeper.
 */
void fragi_lock_wait(struct fragi_lock *lock)
{
	uint32_t state;

	for (int i = 0; i < LOOKS; i++) {
		state = FRAGI_LOCK_FREE;
		if (atomic_load_explicit(&lock->state, memory_order_relaxed) == FRAGI_LOCK_FREE &&
		    atomic_compare_exchange_strong_explicit(&lock->state, &state, FRAGI_LOCK_TAKEN,
							    memory_order_acquire,
							    memory_order_relaxed))
			return;
		fragi_relax();
	}
	while (atomic_exchange_explicit(&lock->state, FRAGI_LOCK_AWAITED, memory_order_acquire) !=
	       FRAGI_LOCK_FREE)
		syscall(SYS_futex, &lock->state, FUTEX_WAIT_PRIVATE, FRAGI_LOCK_AWAITED, NULL, NULL,
			0);
}

void fragi_lock_wake(struct fragi_lock *lock)
{
	syscall(SYS_futex, &lock->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
