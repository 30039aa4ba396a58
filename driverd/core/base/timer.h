/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_TIMER_H
#define DRV_TIMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Deadlines of the core in a heap, so that thousands of them cost what a few do. Zeroed: none, not
 * set.
 */
struct drv_timer {
	int64_t at_ns;
	size_t place; /* in the heap, from 1; 0: not set */
	bool is_due;  /* it has fired, and was neither set nor cancelled since */
	/* NULL: the owner looks at is_due */
	void (*fire)(struct drv_timer *timer, int64_t now_ns, void *arg);
	void *owner; /* of fire */
};

struct drv_timers {
	struct drv_timer **heap; /* [1 .. count] */
	size_t count, capacity;
	size_t reserved; /* for so many there is room */
};

/* Room for `more` timers beside those of earlier calls: setting them cannot fail. 0 or -ENOMEM. */
int drv_timers_reserve(struct drv_timers *timers, size_t more);
void drv_timers_release(struct drv_timers *timers, size_t fewer);

/* Sets or moves the timer. Returns 0 or -ENOMEM. */
int drv_timer_set(struct drv_timers *timers, struct drv_timer *timer, int64_t at_ns);
void drv_timer_cancel(struct drv_timers *timers, struct drv_timer *timer);
static inline bool drv_timer_is_set(const struct drv_timer *timer)
{
	return timer->place != 0;
}
int64_t drv_timers_next_ns(const struct drv_timers *timers); /* INT64_MAX: none is set */
/* Fires what is due; a timer is no longer set when it fires, and may set itself for later. */
void drv_timers_run(struct drv_timers *timers, int64_t now_ns, void *arg);
void drv_timers_fini(struct drv_timers *timers);

#endif
