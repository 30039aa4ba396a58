/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_EDGE_PUMP_H
#define FRAGI_EDGE_PUMP_H

#include <edge/transport.h>

/*
 * The pump drives a host's transport by whoever has time. Its progress lock is a try-lock around progress,
 * arm and send only, never held in sleep nor across user code. An idle scheduler thread waits *in*
 * fragi_pump_wait, so the thread that receives is the thread that computes; emit sends inline when the lock
 * is free, else queues for the holder, who looks at the queue again after unlocking (both sides with a full
 * read-modify-write). One thread sleeps in epoll at a time, always with a timeout. A spare thread makes
 * progress when operators compute for long: a coarse tick (10 ms while messages move, slower at rest),
 * nothing per message. Without a transport the pump is only the place to sleep.
 *
 * FRAG_PUMP: adaptive (default: spin, then sleep; spin 0 on <= 4 cores), busy_poll, event.
 */
struct fragi_pump;

FRAGI_API int fragi_pump_create(struct fragi_pump **out_pump);
/* Stops the spare thread and frees. No other thread may be inside. NULL is accepted. */
FRAGI_API void fragi_pump_destroy(struct fragi_pump *pump);
/* Attaches the transport and starts the spare thread. Once; the transport is borrowed. Returns 0 or negative
 * errno. */
FRAGI_API int fragi_pump_attach(struct fragi_pump *pump, const struct fragi_transport_ops *ops,
				struct fragi_transport *transport);

/*
 * Waits for something to do: returns when has_work(arg) holds (asked after every round and before sleep),
 * when until_ns (CLOCK_MONOTONIC; INT64_MAX: none) has come, or when poked. May return early. Several threads
 * may wait: one of them drives.
 */
FRAGI_API void fragi_pump_wait(struct fragi_pump *pump, int64_t until_ns, bool (*has_work)(void *arg),
			       void *arg);
/* Wakes the threads in fragi_pump_wait. Thread: any. Cheap when nobody sleeps (one load). */
FRAGI_API void fragi_pump_poke(struct fragi_pump *pump);
/* Progress without waiting, if the lock is free: for threads that have been busy for some 50 us. */
FRAGI_API void fragi_pump_progress(struct fragi_pump *pump);

/*
 * For transports: the lock. try_lock: true when the caller now holds it. unlock runs what was submitted
 * meanwhile.
 */
FRAGI_API bool fragi_pump_try_lock(struct fragi_pump *pump);
FRAGI_API void fragi_pump_lock(struct fragi_pump *pump); /* waits; for set-up and tear-down only */
FRAGI_API void fragi_pump_unlock(struct fragi_pump *pump);
/*
 * Runs work->fn(work) under the lock: now if the lock is free, else by the holder, soon, in order of
 * submission. The memory belongs to the pump until fn is called. Thread: any. Never blocks.
 */
struct fragi_pump_work {
	struct fragi_pump_work *next;
	void (*fn)(struct fragi_pump_work *work);
};
FRAGI_API void fragi_pump_submit(struct fragi_pump *pump, struct fragi_pump_work *work);

#endif
