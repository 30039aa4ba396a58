/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_RES_LOG_QUEUE_H
#define FRAGI_RES_LOG_QUEUE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <base/diag.h>

/*
 * The queue of an asynchronous logger, and the thread that empties it. Any number of threads put
 * items in without a lock, a system call or an allocation; nobody is woken: the thread looks again
 * after a pause, which is `sleep_ns` while items come, and grows up to 10 ms while none do.
 */
struct fragi_log_item {
	struct frag_message *message; /* the queue's reference */
	const void *point;            /* of the port: logger.c */
	int64_t time_unix_ns;
	bool has_content;
};

struct fragi_log_slot;

struct fragi_log_queue {
	/* constant once created */
	struct fragi_log_slot *slots; /* NULL: not created */
	uint64_t mask, capacity;
	int64_t sleep_ns;
	void (*log)(void *arg, const struct fragi_log_item *item);
	void *arg;

	_Alignas(64) _Atomic uint64_t tail; /* of all that put */
	_Alignas(64) _Atomic uint64_t head; /* of the thread */
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool stopping;      /* under the lock */
	int64_t give_up_ns; /* under the lock; when `stopping`: until when items are still logged */
};

/*
 * - capacity: items that wait at most
 * - log: called on the thread for each item; the item's reference is dropped after it
 * Returns 0 or -ENOMEM.
 */
int fragi_log_queue_create(struct fragi_log_queue *queue, uint64_t capacity, int64_t sleep_ns,
			   void (*log)(void *arg, const struct fragi_log_item *item), void *arg);
/* Starts the thread. Returns 0 or a negative errno. */
int fragi_log_queue_start(struct fragi_log_queue *queue, const char *name);
/* Takes the reference when it returns true. false: the queue is full. Thread: any. */
bool fragi_log_queue_put(struct fragi_log_queue *queue, const struct fragi_log_item *item);
/*
 * Ends the thread when the queue is empty, or at give_up_ns of CLOCK_MONOTONIC. Returns how many
 * items were left, and drops them; -ETIMEDOUT: the thread is still inside `log`, and the queue must
 * not be freed.
 */
int64_t fragi_log_queue_stop(struct fragi_log_queue *queue, int64_t give_up_ns);
void fragi_log_queue_fini(struct fragi_log_queue *queue);

#endif
