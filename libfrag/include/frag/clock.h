/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_CLOCK_H
#define FRAG_CLOCK_H

#include <frag/error.h>

FRAG_BEGIN_DECLS

/*
 * The clock of a fragment. Its conditions wait by it, and its operators read it and sleep by it.
 * `clock` in the graph chooses it, for a fragment or, at the top, for all fragments:
 * - none given: CLOCK_MONOTONIC of the machine
 * - realtime: runs on with the machine, from initial_time_offset seconds (0) or, with
 *   use_time_since_epoch (false), from the Unix time plus that; initial_time_scale (1) seconds a
 *   second
 * - manual: begins at initial_timestamp ns (0) and stands still while operators compute. When
 *   every operator waits it is set to the next time that one of them waits for, so that a run takes
 *   no longer than its operators compute and comes out the same each time. A sleep sets it forward.
 * - synthetic: begins at initial_timestamp ns (0) and is moved by frag_clock_advance_to and _by
 *   alone. A sleep waits for that.
 *
 * Each process of an application has clocks of its own, whose times cannot be compared, except for
 * those of the machine and, as far as the machines agree, of Unix time.
 *
 * Source: Holoscan SDK user guide, "Resources": RealtimeClock, ManualClock, SyntheticClock.
 */
struct frag_clock;
struct frag_op;

/*
 * Returns the clock of an operator's fragment, borrowed as long as the operator lives; from
 * initialize on, NULL before. Thread: any. Blocks: no. RT-safe: yes.
 */
FRAG_API struct frag_clock *frag_op_clock(const struct frag_op *op);

/* Returns the clock's time in seconds. Thread: any. Blocks: no. RT-safe: yes. */
FRAG_API double frag_clock_time(const struct frag_clock *clock);
/* Returns the clock's time in nanoseconds. Thread: any. Blocks: no. RT-safe: yes. */
FRAG_API int64_t frag_clock_timestamp(const struct frag_clock *clock);

/*
 * Waits until a time has passed on the clock; a manual one is set forward by it.
 * - duration_ns: 0 and less: returns at once
 * Returns 0; also before that time when the application is to stop.
 * Thread: any, but the caller's thread does nothing else meanwhile: a periodic condition is better
 * where it will do. Blocks: yes. RT-safe: no.
 */
FRAG_API int frag_clock_sleep_for(struct frag_clock *clock, int64_t duration_ns);
/*
 * Sleeps as frag_clock_sleep_for does, until time_ns of the clock. Returns at once if that is past.
 */
FRAG_API int frag_clock_sleep_until(struct frag_clock *clock, int64_t time_ns);

/*
 * Lets a realtime clock run faster or slower from now on. Its time does not jump.
 * - scale: seconds of the clock in a second; from 1e-6 to 1e6
 * Returns 0; -EINVAL: the clock is no realtime clock of the graph, or the scale is out of range.
 * Thread: any. Blocks: no. RT-safe: no.
 */
FRAG_API int frag_clock_set_time_scale(struct frag_clock *clock, double scale);

/*
 * Sets a synthetic or manual clock forward; conditions and sleeps whose time has come end.
 * - time_ns: the new time; not before the present one
 * Returns 0; -EINVAL: the clock is neither synthetic nor manual, or that time is over or beyond
 * 2^62 ns. Thread: any. Blocks: no. RT-safe: no.
 */
FRAG_API int frag_clock_advance_to(struct frag_clock *clock, int64_t time_ns);
/* Advances a manual clock by duration_ns, 0 or more; as frag_clock_advance_to otherwise. */
FRAG_API int frag_clock_advance_by(struct frag_clock *clock, int64_t duration_ns);

FRAG_END_DECLS

#endif
