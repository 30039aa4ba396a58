/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_EDGE_PUMP_STATE_H
#define FRAGI_EDGE_PUMP_STATE_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#include <base/alloc.h>
#include <base/counters.h>
#include <base/stamp.h>
#include <edge/pump.h>

/* What pump.c and backup_poller.c share. */
#define FRAGI_PUMP_TICK_NS INT64_C(10000000) /* of the backup poller */
#define FRAGI_PUMP_DISPOSE_MAX 64

enum fragi_pump_sleep {
	FRAGI_AWAKE,
	FRAGI_ON_FUTEX,
	FRAGI_ON_FD,
};

enum fragi_pump_driving {
	FRAGI_DRIVING_NONE,
	FRAGI_DRIVING_WAITER,
	FRAGI_DRIVING_BACKUP,
};

struct fragi_pump {
	/* constant after attach */
	const struct fragi_pump_ops *ops;
	void *object;
	int fd;
	bool busy_poll, adaptive;
	int64_t safety_ns; /* no sleep on the fd is longer; INT64_MAX in tests */
	/* the lock, and what it guards */
	_Alignas(64) _Atomic uint32_t lock;
	_Atomic uint32_t lock_waiters; /* in fragi_pump_lock: nobody overtakes them */
	uint32_t disposed_count;
	struct frag_message *disposed[FRAGI_PUMP_DISPOSE_MAX];
	uint32_t fd_wakes_seen;  /* fd_wakes when the sleeper on the fd has armed */
	_Atomic uint64_t passed; /* how often compute threads have polled; the holder counts */
	_Atomic int64_t awake_until_ns;
	/* submitted work, newest first */
	_Alignas(64) _Atomic(struct fragi_pump_work *) submitted;
	_Alignas(64) _Atomic uint32_t driving_thread; /* enum fragi_pump_driving */
	_Atomic bool has_fd_sleeper;                  /* a waiter sleeps on the fd */
	_Atomic uint32_t fd_wakes;                    /* how often it was poked */
	/* the backup poller */
	_Alignas(64) _Atomic uint32_t backup_key; /* futex: hints, stop */
	_Atomic bool backup_stop;
	_Atomic bool backup_rests; /* sleeps without a tick */
	_Atomic bool backup_on_fd; /* sleeps on the fd, or is about to */
	_Atomic bool hinted;
	_Atomic uint64_t turns; /* how often a waiter became the driving thread */
	bool backup_started;
	pthread_t backup;
};

/* pump.c */
/* Sleeps while *key is `seen`, until a wake or until_ns (INT64_MAX: no end). */
void fragi_futex_wait(_Atomic uint32_t *key, uint32_t seen, int64_t until_ns);
void fragi_futex_wake(_Atomic uint32_t *key, int count);
/*
 * Under the lock: arms the fd again for a thread that sleeps on it, or wakes that thread. Arming
 * consumes wake-ups, also one that the sleeper was poked with and has not seen.
 */
void fragi_pump_rearm(struct fragi_pump *pump);
/* Sleeps on the fd until its event, or until_ns. */
void fragi_pump_fd_sleep(const struct fragi_pump *pump, int64_t now_ns, int64_t until_ns);
/* until_ns, or when a sleep beside another thread that drives ends at the latest. */
int64_t fragi_pump_bounded(const struct fragi_pump *pump, int64_t until_ns, int64_t now_ns);

/* backup_poller.c */
int fragi_pump_backup_start(struct fragi_pump *pump);
void fragi_pump_backup_stop(struct fragi_pump *pump);

#endif
