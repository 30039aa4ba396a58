// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <time.h>

#include <data/message.h>
#include <sched/lane.h>
#include <sched/path_deadline.h>

/* Time. */

static int64_t ahead_ns(clockid_t clock, int64_t now_ns)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec - now_ns;
}

static void read_clocks(struct fragi_lane_time *time)
{
	if (time->knows_clocks)
		return;
	time->knows_clocks = true;
	time->unix_ahead_ns = ahead_ns(CLOCK_REALTIME, time->now_ns);
	time->tai_ahead_ns = ahead_ns(CLOCK_TAI, time->now_ns);
	time->monotonic_ahead_ns =
		time->clock == NULL ? 0 : ahead_ns(CLOCK_MONOTONIC, time->now_ns);
}

/* Finds out when the held message was acquired. Returns false: in no time known here. */
static bool find_time(struct fragi_lane_time *time, struct fragi_lane *lane)
{
	const struct frag_message *message = lane->held;

	lane->domain = FRAGI_SYSTEM_TIME;
	if ((message->stamps & FRAGI_STAMP_ACQUIRED) == 0) {
		uint64_t stamps_ns = fragi_stamp_diff_ns(lane->stamp, fragi_stamp());
		int64_t since_ns = time->clock == NULL
					   ? (int64_t)stamps_ns
					   : fragi_clock_since_ns(time->clock, stamps_ns);

		lane->time_ns = time->now_ns - since_ns;
		return lane->stamp != 0 && since_ns >= 0;
	}
	if ((message->stamps & FRAGI_STAMP_FOREIGN) != 0)
		return false;
	read_clocks(time);
	lane->time_ns = message->acquisition_ns;
	if (message->clock == FRAG_CLOCK_UNIX)
		lane->time_ns = fragi_time_difference(lane->time_ns, time->unix_ahead_ns);
	else if (message->clock == FRAG_CLOCK_TAI)
		lane->time_ns = fragi_time_difference(lane->time_ns, time->tai_ahead_ns);
	else if (message->clock == FRAG_CLOCK_MONOTONIC)
		lane->time_ns = fragi_time_difference(lane->time_ns, time->monotonic_ahead_ns);
	else
		lane->domain = message->clock;
	return true;
}

bool fragi_acquired_ns(const struct frag_message *message, int64_t now_ns, int64_t *out_ns)
{
	struct fragi_lane_time time = {.now_ns = now_ns};
	struct fragi_lane lane = {.held = (struct frag_message *)(uintptr_t)message};

	if (!find_time(&time, &lane) || lane.domain != FRAGI_SYSTEM_TIME)
		return false;
	*out_ns = lane.time_ns;
	return true;
}

/* Lanes. */

void fragi_lane_drop(struct fragi_lane *lane, enum fragi_drop reason)
{
	fragi_rx_drop(lane->rx, lane->held, reason);
	lane->held = NULL;
	if (reason == FRAGI_DROP_STALE)
		lane->why = &lane->rx->row->absent_stale;
	else if (reason == FRAGI_DROP_CLOCKS)
		lane->why = &lane->rx->row->absent_clocks;
}

/* Holds the message that a tick may get: the oldest, or the newest. */
static bool lane_hold(struct fragi_lane_time *time, struct fragi_lane *lane)
{
	uint32_t most = lane->rx->queue.capacity + 1;
	struct frag_message *message;
	uint64_t stamp;

	if (lane->held != NULL && lane->timing->take == FRAG_TAKE_EVERY)
		return true;
	while (most-- > 0 && (message = fragi_rx_hold(lane->rx, &stamp)) != NULL) {
		if (lane->held != NULL)
			fragi_lane_drop(lane, FRAGI_DROP_SUPERSEDED);
		lane->held = message;
		lane->stamp = stamp;
		lane->held_ns = time->now_ns;
		if (lane->timing->take == FRAG_TAKE_EVERY)
			break;
	}
	return lane->held != NULL;
}

static bool is_older(const struct fragi_lane_time *time, const struct fragi_lane *lane,
		     int64_t age_ns)
{
	return age_ns > 0 && lane->domain == FRAGI_SYSTEM_TIME &&
	       fragi_time_difference(time->now_ns, lane->time_ns) > age_ns;
}

/* Whether a deadline of the operator, or of a path that ends with it, is over. Counts a miss. */
static __attribute__((noinline)) bool is_past_deadline(const struct fragi_lane_time *time,
						       const struct fragi_lane *lane, bool is_known)
{
	if (is_known && is_older(time, lane, lane->deadline_ns)) {
		fragi_count(lane->misses, 1);
		return true;
	}
	return lane->drops_late != NULL && fragi_path_is_late(lane->drops_late, lane->held);
}

/* Fills the lane with a message that is young enough, if there is one. */
void fragi_lane_fill(struct fragi_lane *lane, struct fragi_lane_time *time)
{
	const int64_t age_ns = lane->timing->age_ns;

	while (lane_hold(time, lane)) {
		bool is_known = false;

		if (age_ns > 0 || lane->is_aligned || lane->has_deadline)
			is_known = find_time(time, lane);
		if ((age_ns > 0 && (!is_known || lane->domain != FRAGI_SYSTEM_TIME)) ||
		    (lane->is_aligned && !is_known)) {
			fragi_lane_drop(lane, FRAGI_DROP_CLOCKS);
		} else if (is_known && is_older(time, lane, age_ns)) {
			fragi_lane_drop(lane, FRAGI_DROP_STALE);
		} else if (lane->has_deadline && is_past_deadline(time, lane, is_known)) {
			fragi_lane_drop(lane, FRAGI_DROP_DEADLINE);
		} else {
			return;
		}
	}
}
