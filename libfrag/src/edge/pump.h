/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_EDGE_PUMP_H
#define FRAGI_EDGE_PUMP_H

#include <base/diag.h>
#include <data/message.h>
#include <edge/pump_spin.h>

/*
 * The pump drives what a host has between hosts (edge/remote, with its transports) by whoever has
 * time. Its progress lock is a try-lock around progress, arm and send only, never held in sleep nor
 * across compute. An idle scheduler thread waits *in* fragi_pump_wait, so the thread that receives
 * is the thread that computes; emit sends inline when the lock is free, else queues for the holder,
 * who looks at the queue again after unlocking (both sides with a full read-modify-write). One
 * waiting thread drives: it sleeps on the descriptor, always with a timeout; each of the others
 * sleeps on its own futex, so that work for one scheduler wakes no thread of another. The backup
 * poller, a thread of the pump's own, makes progress while operators compute for long: by a hint,
 * and a coarse tick (10 ms while messages move, none at rest), nothing per message. While threads
 * with short ticks make progress often enough it only polls every millisecond. With nothing
 * attached the pump is only the place to sleep.
 *
 * FRAG_PUMP: adaptive (default: spins before it sleeps where that has proved right: pump_spin.h),
 * busy_poll, event.
 */
struct fragi_pump;

/* What is driven. Called under the lock, except wake. */
struct fragi_pump_ops {
	/* One round; returns how many things happened. */
	uint32_t (*progress)(void *object, int64_t now_ns);
	/* Prepares to sleep on fd: 0, or -EBUSY when there is work (progress again). */
	int (*arm)(void *object);
	/* Constant while attached. */
	int (*fd)(const void *object);
	/* When progress must be called next at the latest, CLOCK_MONOTONIC ns. */
	int64_t (*deadline_ns)(const void *object);
	/* Makes fd readable. Thread: any, without the lock. */
	void (*wake)(void *object);
};

FRAGI_API int fragi_pump_create(struct fragi_pump **out_pump);
/* Stops the backup poller and frees. No other thread may be inside. NULL is accepted. */
FRAGI_API void fragi_pump_destroy(struct fragi_pump *pump);
/*
 * Attaches the object and starts the backup poller. Once, before any thread waits; the object is
 * borrowed until fragi_pump_detach. Returns 0 or negative errno.
 */
FRAGI_API int fragi_pump_attach(struct fragi_pump *pump, const struct fragi_pump_ops *ops,
				void *object);
/*
 * Stops the backup poller and lets go of the object, so that it may be destroyed (it still submits
 * to the pump while it is). No thread may wait in the pump. The pump must outlive the object.
 */
FRAGI_API void fragi_pump_detach(struct fragi_pump *pump);

/* Who waits: a scheduler, of which one thread at a time is in fragi_pump_wait. Begins as zeros. */
struct fragi_pump_waiter {
	_Atomic uint32_t pokes;  /* futex */
	_Atomic uint32_t sleeps; /* enum fragi_pump_sleep */
	struct fragi_spin spin;  /* of the thread that waits */
};
/*
 * Waits for something to do: returns when has_work(arg) holds (asked after every round, first under
 * the lock, and before sleep), when until_ns (CLOCK_MONOTONIC; INT64_MAX: none) has come, or when
 * poked in its sleep. May return early. Several waiters may wait: one of them drives.
 */
FRAGI_API void fragi_pump_wait(struct fragi_pump *pump, struct fragi_pump_waiter *waiter,
			       int64_t until_ns, bool (*has_work)(void *arg), void *arg);
/*
 * Wakes the waiter if it sleeps in fragi_pump_wait. What it is to see must be visible to has_work
 * before the call. Thread: any. Cheap when it does not sleep (a fence and a load).
 */
FRAGI_API void fragi_pump_poke(struct fragi_pump *pump, struct fragi_pump_waiter *waiter);
/* Progress in passing, if the lock is free: for threads that have been busy for some 50 us. */
FRAGI_API void fragi_pump_progress(struct fragi_pump *pump);
/*
 * The calling thread is about to compute for long (its histogram says 1 ms or more): another thread
 * should drive meanwhile. Costs up to one futex wake (7-12 us); nothing when a thread drives
 * already.
 */
FRAGI_API void fragi_pump_hint(struct fragi_pump *pump);

/*
 * Under the lock: an event is so near that a waiter which drives does not sleep before that time,
 * unless there is only one core.
 */
FRAGI_API void fragi_pump_stay_awake(struct fragi_pump *pump, int64_t until_ns);

/*
 * For what is driven: the lock. try_lock: true when the caller now holds it. unlock runs what was
 * submitted meanwhile.
 */
FRAGI_API bool fragi_pump_try_lock(struct fragi_pump *pump);
/* waits; for set-up, tear-down and counts at rest */
FRAGI_API void fragi_pump_lock(struct fragi_pump *pump);
FRAGI_API void fragi_pump_unlock(struct fragi_pump *pump);
/*
 * Runs work->fn(work) under the lock: now if the lock is free, else by the holder, soon, in order
 * of submission. The memory belongs to the pump until fn is called. Thread: any. Never blocks.
 */
struct fragi_pump_work {
	struct fragi_pump_work *next;
	void (*fn)(struct fragi_pump_work *work);
};
FRAGI_API void fragi_pump_submit(struct fragi_pump *pump, struct fragi_pump_work *work);
/*
 * Under the lock: gives up a reference to a message once the lock is free again, because its end
 * may run an operator's own code (the release of a tensor).
 */
FRAGI_API void fragi_pump_dispose(struct fragi_pump *pump, struct frag_message *message);

#endif
