// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/base/timer.h>

#include <assert.h>
#include <errno.h>

#include <base/alloc.h>

static void put(struct drv_timers *timers, size_t place, struct drv_timer *timer)
{
	timers->heap[place] = timer;
	timer->place = place;
}

static void sift_up(struct drv_timers *timers, size_t place)
{
	struct drv_timer *timer = timers->heap[place];

	for (; place > 1 && timers->heap[place / 2]->at_ns > timer->at_ns; place /= 2)
		put(timers, place, timers->heap[place / 2]);
	put(timers, place, timer);
}

static void sift_down(struct drv_timers *timers, size_t place)
{
	struct drv_timer *timer = timers->heap[place];
	size_t child;

	for (; (child = place * 2) <= timers->count; place = child) {
		if (child < timers->count &&
		    timers->heap[child + 1]->at_ns < timers->heap[child]->at_ns)
			child++;
		if (timers->heap[child]->at_ns >= timer->at_ns)
			break;
		put(timers, place, timers->heap[child]);
	}
	put(timers, place, timer);
}

/* The heap begins at 1. */
static int make_room(struct drv_timers *timers, size_t count)
{
	size_t capacity = timers->capacity == 0 ? 16 : timers->capacity;
	struct drv_timer **heap;

	while (capacity < count + 1)
		capacity *= 2;
	if (capacity == timers->capacity)
		return 0;
	heap = fragi_realloc(timers->heap, capacity * sizeof(*heap));
	if (heap == NULL)
		return -ENOMEM;
	timers->heap = heap;
	timers->capacity = capacity;
	return 0;
}

int drv_timers_reserve(struct drv_timers *timers, size_t more)
{
	if (make_room(timers, timers->reserved + more) < 0)
		return -ENOMEM;
	timers->reserved += more;
	return 0;
}

void drv_timers_release(struct drv_timers *timers, size_t fewer)
{
	assert(timers->reserved >= fewer);
	timers->reserved -= fewer;
}

int drv_timer_set(struct drv_timers *timers, struct drv_timer *timer, int64_t at_ns)
{
	if (timer->place == 0) {
		if (make_room(timers, timers->count + 1) < 0)
			return -ENOMEM;
		put(timers, ++timers->count, timer);
	}
	timer->at_ns = at_ns;
	timer->is_due = false;
	sift_up(timers, timer->place);
	sift_down(timers, timer->place);
	return 0;
}

void drv_timer_cancel(struct drv_timers *timers, struct drv_timer *timer)
{
	size_t place = timer->place;
	struct drv_timer *last;

	timer->is_due = false;
	if (place == 0)
		return;
	assert(place <= timers->count && timers->heap[place] == timer);
	timer->place = 0;
	last = timers->heap[timers->count--];
	if (last == timer)
		return;
	put(timers, place, last);
	sift_up(timers, place);
	sift_down(timers, last->place);
}

int64_t drv_timers_next_ns(const struct drv_timers *timers)
{
	return timers->count != 0 ? timers->heap[1]->at_ns : INT64_MAX;
}

void drv_timers_run(struct drv_timers *timers, int64_t now_ns, void *arg)
{
	struct drv_timer *timer;

	while (timers->count != 0 && timers->heap[1]->at_ns <= now_ns) {
		timer = timers->heap[1];
		drv_timer_cancel(timers, timer);
		timer->is_due = true;
		if (timer->fire != NULL)
			timer->fire(timer, now_ns, arg);
	}
}

void drv_timers_fini(struct drv_timers *timers)
{
	fragi_free(timers->heap);
	timers->heap = NULL;
	timers->count = timers->capacity = 0;
}
