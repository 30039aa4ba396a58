/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_PUMP_ENGINE_H
#define TESTS_UNIT_PUMP_ENGINE_H

/* The pump with an engine that is a counter and a pipe. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <edge/pump.h>

#define PATIENCE_NS 20000000000
/* A waiter asks at first, under the lock, when it has unlocked, and last when it has armed. */
#define LAST_ASKED 4

/*
 * events are made by fake_event and handled by progress. As with UCX, an event makes the fd
 * readable only if a thread has armed since the last one.
 */
struct engine {
	int fd;
	_Atomic uint64_t events;
	_Atomic uint64_t handled;
	_Atomic bool armed;
	_Atomic uint32_t inside; /* more than one thread in here is an error */
	_Atomic uint32_t collisions;
	uint64_t entries; /* not atomic: ThreadSanitizer sees whether the lock orders its holders */
	_Atomic uint64_t rounds;
	_Atomic uint64_t rounds_of_others; /* than the thread of the test */
	pthread_t test;
	struct fragi_pump *pump;
	struct fragi_pump_waiter *pokes; /* progress makes work for it and says so; NULL: none */
	_Atomic bool *done_in_arm; /* work that is published while a thread arms; NULL: none */
};

/* of the thread of the test */
static struct fragi_pump_waiter here;

static inline void enter(struct engine *t)
{
	if (atomic_fetch_add_explicit(&t->inside, 1, memory_order_relaxed) != 0)
		atomic_fetch_add(&t->collisions, 1);
	t->entries++;
}

static inline void leave(struct engine *t)
{
	atomic_fetch_sub_explicit(&t->inside, 1, memory_order_relaxed);
}

static inline void wake(void *object)
{
	const struct engine *t = object;
	uint64_t one = 1;

	cr_assert_eq(write(t->fd, &one, sizeof(one)), sizeof(one));
}

static inline void fake_event(struct engine *t)
{
	atomic_fetch_add(&t->events, 1);
	if (atomic_exchange(&t->armed, false))
		wake(t);
}

static inline uint32_t progress(void *object, int64_t now_ns)
{
	struct engine *t = object;
	uint64_t new;

	enter(t);
	atomic_fetch_add(&t->rounds, 1);
	if (!pthread_equal(pthread_self(), t->test))
		atomic_fetch_add(&t->rounds_of_others, 1);
	new = atomic_load(&t->events) - atomic_load(&t->handled);
	atomic_fetch_add(&t->handled, new);
	if (new > 0 && t->pokes != NULL)
		fragi_pump_poke(t->pump, t->pokes);
	leave(t);
	return (uint32_t) new;
}

static inline int arm(void *object)
{
	struct engine *t = object;
	uint64_t n;

	enter(t);
	if (read(t->fd, &n, sizeof(n)) == sizeof(n)) {
		leave(t);
		return -EBUSY;
	}
	if (t->done_in_arm != NULL) {
		atomic_store(t->done_in_arm, true);
		fragi_pump_poke(t->pump, &here);
	}
	atomic_store(&t->armed, true);
	if (atomic_load(&t->events) != atomic_load(&t->handled)) {
		atomic_store(&t->armed, false);
		leave(t);
		return -EBUSY;
	}
	leave(t);
	return 0;
}

static inline int fd_of(const void *object)
{
	return ((const struct engine *)object)->fd;
}

static inline int64_t deadline_ns(const void *object)
{
	return INT64_MAX;
}

static const struct fragi_pump_ops fake_ops = {
	.progress = progress,
	.arm = arm,
	.fd = fd_of,
	.deadline_ns = deadline_ns,
	.wake = wake,
};

static struct fragi_pump *pump;
static struct engine fake;

static inline void open_pump(void)
{
	cr_assert_eq(fragi_pump_create(&pump), 0);
	fake.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	fake.pump = pump;
	fake.test = pthread_self();
	cr_assert_eq(fragi_pump_attach(pump, &fake_ops, &fake), 0);
}

static inline void close_pump(void)
{
	fragi_pump_destroy(pump);
	cr_assert_eq(fake.collisions, 0);
	close(fake.fd);
}

static inline bool never(void *arg)
{
	return false;
}

static inline bool is_true(void *arg)
{
	return atomic_load((_Atomic bool *)arg);
}

static inline void compute_for(int64_t ns)
{
	int64_t until = fragi_now_ns() + ns;

	while (fragi_now_ns() < until)
		;
}

#endif
