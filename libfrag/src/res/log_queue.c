// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <res/log_queue.h>

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include <base/alloc.h>
#include <base/stamp.h>
#include <frag/message.h>

#define PAUSE_MAX_NS INT64_C(10000000)
/* How long a call of `log` may go on after the queue was given up. */
#define LAST_CALL_NS INT64_C(1000000000)

/*
 * A bounded queue of many writers and one reader (D. Vyukov, "Bounded MPMC queue"). A slot's turn
 * is its index plus `passed`, so that zeroed memory is an empty queue, and memory of slots that are
 * never reached is never touched.
 */
struct fragi_log_slot {
	_Atomic uint64_t passed;
	struct fragi_log_item item;
};

int fragi_log_queue_create(struct fragi_log_queue *queue, uint64_t capacity, int64_t sleep_ns,
			   void (*log)(void *arg, const struct fragi_log_item *item), void *arg)
{
	pthread_condattr_t attr;
	uint64_t slots = 2;

	assert(capacity > 0);
	while (slots < capacity)
		slots *= 2;
	queue->slots = fragi_calloc(slots, sizeof(*queue->slots));
	if (queue->slots == NULL)
		return -ENOMEM;
	queue->mask = slots - 1;
	queue->capacity = capacity;
	queue->sleep_ns = sleep_ns;
	queue->log = log;
	queue->arg = arg;
	pthread_mutex_init(&queue->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&queue->wake, &attr);
	pthread_condattr_destroy(&attr);
	return 0;
}

bool fragi_log_queue_put(struct fragi_log_queue *queue, const struct fragi_log_item *item)
{
	uint64_t at = atomic_load_explicit(&queue->tail, memory_order_relaxed), turn;
	struct fragi_log_slot *slot;

	for (;;) {
		/* The head may be beyond what was read of the tail; then that is read anew. */
		if ((int64_t)(at - atomic_load_explicit(&queue->head, memory_order_acquire)) >=
		    (int64_t)queue->capacity)
			return false;
		slot = &queue->slots[at & queue->mask];
		turn = atomic_load_explicit(&slot->passed, memory_order_acquire) +
		       (at & queue->mask);
		if (turn == at && atomic_compare_exchange_weak_explicit(&queue->tail, &at, at + 1,
									memory_order_relaxed,
									memory_order_relaxed))
			break;
		if (turn != at)
			at = atomic_load_explicit(&queue->tail, memory_order_relaxed);
	}
	slot->item = *item;
	atomic_store_explicit(&slot->passed, at + 1 - (at & queue->mask), memory_order_release);
	return true;
}

/* On the thread, or when it has ended. */
static bool take(struct fragi_log_queue *queue, struct fragi_log_item *out)
{
	uint64_t at = atomic_load_explicit(&queue->head, memory_order_relaxed);
	struct fragi_log_slot *slot = &queue->slots[at & queue->mask];

	if (atomic_load_explicit(&slot->passed, memory_order_acquire) + (at & queue->mask) !=
	    at + 1)
		return false;
	*out = slot->item;
	atomic_store_explicit(&slot->passed, at + queue->mask + 1 - (at & queue->mask),
			      memory_order_release);
	atomic_store_explicit(&queue->head, at + 1, memory_order_release);
	return true;
}

/* Returns whether the thread ends: it is to stop, and the queue is empty or given up. */
static bool ends(struct fragi_log_queue *queue, bool is_empty, int64_t pause_ns)
{
	int64_t until_ns = fragi_now_ns() + pause_ns;
	const struct timespec until = {until_ns / 1000000000, until_ns % 1000000000};
	bool end;

	pthread_mutex_lock(&queue->lock);
	if (!queue->stopping && pause_ns > 0)
		pthread_cond_timedwait(&queue->wake, &queue->lock, &until);
	end = queue->stopping && (is_empty || fragi_now_ns() >= queue->give_up_ns);
	pthread_mutex_unlock(&queue->lock);
	return end;
}

static void *thread_main(void *arg)
{
	struct fragi_log_queue *queue = arg;
	int64_t pause_ns = queue->sleep_ns;
	struct fragi_log_item item;
	bool stopping = false;

	for (;;) {
		if (take(queue, &item)) {
			queue->log(queue->arg, &item);
			frag_message_unref(item.message);
			pause_ns = queue->sleep_ns;
			/* In between only a clock is read: the lock is for every 16th item. */
			if ((atomic_load_explicit(&queue->head, memory_order_relaxed) & 15) == 0 &&
			    ends(queue, false, 0))
				return NULL;
			continue;
		}
		/* What was put before the stop is visible after its lock: one more look. */
		if (stopping && ends(queue, true, 0))
			return NULL;
		stopping = ends(queue, true, pause_ns);
		if (pause_ns < PAUSE_MAX_NS)
			pause_ns = pause_ns > 0 ? pause_ns * 2 : 1000;
	}
}

int fragi_log_queue_start(struct fragi_log_queue *queue, const char *name)
{
	char short_name[16];
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = -pthread_create(&queue->thread, NULL, thread_main, queue);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r < 0)
		return r;
	queue->has_thread = true;
	snprintf(short_name, sizeof(short_name), "log %.11s", name);
	pthread_setname_np(queue->thread, short_name);
	return 0;
}

int64_t fragi_log_queue_stop(struct fragi_log_queue *queue, int64_t give_up_ns)
{
	int64_t left = 0, until_ns;
	struct fragi_log_item item;
	struct timespec until;

	if (queue->slots == NULL)
		return 0;
	if (queue->has_thread) {
		pthread_mutex_lock(&queue->lock);
		queue->stopping = true;
		queue->give_up_ns = give_up_ns;
		pthread_cond_signal(&queue->wake);
		pthread_mutex_unlock(&queue->lock);
		clock_gettime(CLOCK_REALTIME, &until);
		until_ns = (int64_t)until.tv_sec * 1000000000 + until.tv_nsec + LAST_CALL_NS +
			   give_up_ns - fragi_now_ns();
		until = (struct timespec){until_ns / 1000000000, until_ns % 1000000000};
		if (pthread_timedjoin_np(queue->thread, NULL, &until) != 0)
			return -ETIMEDOUT;
		queue->has_thread = false;
	}
	for (; take(queue, &item); left++)
		frag_message_unref(item.message);
	return left;
}

void fragi_log_queue_fini(struct fragi_log_queue *queue)
{
	if (queue->slots == NULL)
		return;
	pthread_cond_destroy(&queue->wake);
	pthread_mutex_destroy(&queue->lock);
	fragi_free(queue->slots);
	queue->slots = NULL;
}
