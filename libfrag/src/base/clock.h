/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_BASE_CLOCK_H
#define FRAGI_BASE_CLOCK_H

#include <base/stamp.h>
#include <frag/clock.h>

/*
 * The clocks of frag/clock.h. A manual and a synthetic clock are *virtual*: their time is a number
 * that somebody sets. Who waits by a clock (a scheduler, the time limit of a run) joins it as a
 * user, so that it learns when the clock was moved, and so that a manual clock knows when everybody
 * waits.
 */
enum fragi_clock_kind {
	FRAGI_CLOCK_MACHINE, /* CLOCK_MONOTONIC */
	FRAGI_CLOCK_REALTIME,
	FRAGI_CLOCK_MANUAL,
	FRAGI_CLOCK_SYNTHETIC,
};

struct fragi_clock_config {
	enum fragi_clock_kind kind;
	/* realtime */
	double offset_s, scale;
	bool since_epoch;
	/* manual, synthetic */
	int64_t initial_ns;
	/* machine, realtime: how exact times of other machines must be; 0: as exact as they are */
	int64_t max_error_ns;
};

#define FRAGI_CLOCK_OFFSET_MAX_S 1e9
#define FRAGI_CLOCK_SCALE_MIN 1e-6
#define FRAGI_CLOCK_SCALE_MAX 1e6
#define FRAGI_CLOCK_TIME_MAX_NS (INT64_C(1) << 62)

#define FRAGI_CLOCK_NOBODY_WAITED INT64_MIN

/* What waits by a clock. The callbacks run under the clock's lock and must not call the clock. */
struct fragi_clock_user {
	struct fragi_clock_user *next;
	void *arg;
	/*
	 * Returns whether nothing happens here before time has passed.
	 * - out_next_ns: the next time that it waits for; INT64_MAX: none
	 * - out_rounds: a number that changes whenever it goes on: when two calls return the same
	 *   one, it has waited all the time between them
	 */
	bool (*waits)(void *arg, int64_t *out_next_ns, uint64_t *out_rounds);
	/*
	 * The clock was moved, or runs at another speed.
	 * - waited_ns: because all users waited, at this time; FRAGI_CLOCK_NOBODY_WAITED: for
	 *   another reason
	 */
	void (*moved)(void *arg, int64_t waited_ns);
};

/* Returns 0 or -ENOMEM. */
FRAGI_API int fragi_clock_create(const struct fragi_clock_config *config,
				 struct frag_clock **out_clock);
/* Nobody may be a user any more. NULL is accepted. */
FRAGI_API void fragi_clock_destroy(struct frag_clock *clock);
FRAGI_API void fragi_clock_join(struct frag_clock *clock, struct fragi_clock_user *user);
FRAGI_API void fragi_clock_leave(struct frag_clock *clock, struct fragi_clock_user *user);
/*
 * A user has begun to wait. When all users wait, a manual clock is set to the next time that one of
 * them waits for. Thread: any, without locks that the callbacks take.
 */
FRAGI_API void fragi_clock_waiting(struct frag_clock *clock);
/*
 * A user has gone on, maybe for no reason, and says so when it is asked. A manual clock that is
 * being set because all users waited is set when this returns, so that no time that the user reads
 * from now on is one of before. Thread: any, without locks that the callbacks take.
 */
FRAGI_API void fragi_clock_going_on(struct frag_clock *clock);
/* All sleeps end, and no further one waits: the application is to stop. */
FRAGI_API void fragi_clock_wake_sleepers(struct frag_clock *clock);

/* NULL is the clock of the machine, for all that follow. */
FRAGI_API enum fragi_clock_kind fragi_clock_kind_of(const struct frag_clock *clock);
FRAGI_API int64_t fragi_clock_read_ns(const struct frag_clock *clock);
static inline int64_t fragi_clock_now_ns(const struct frag_clock *clock)
{
	return clock == NULL ? fragi_now_ns() : fragi_clock_read_ns(clock);
}
static inline bool fragi_clock_is_virtual(const struct frag_clock *clock)
{
	return fragi_clock_kind_of(clock) >= FRAGI_CLOCK_MANUAL;
}
/*
 * Returns the time on CLOCK_MONOTONIC at which the clock will show a time, as it runs now;
 * INT64_MAX: nobody knows.
 */
FRAGI_API int64_t fragi_clock_machine_ns(const struct frag_clock *clock, int64_t time_ns);
/*
 * Converts the time since a stamp, in nanoseconds, to the clock. Returns a negative number where
 * stamps do not follow the clock.
 */
FRAGI_API int64_t fragi_clock_since_ns(const struct frag_clock *clock, uint64_t since_ns);
/*
 * From now on stamps are taken of this virtual clock, so that all that is measured with them is
 * measured in its time; NULL: no longer. No other thread may take stamps meanwhile.
 */
FRAGI_API void fragi_clock_use_for_stamps(const struct frag_clock *clock);

#endif
