// SPDX-License-Identifier: Apache-2.0
#include <base/timeline.h>

#include <base/identity.h>

struct fragi_timeline fragi_timeline_between(const char *our_clock, const char *their_clock)
{
	return (struct fragi_timeline){
		.state = fragi_identity_is_same(our_clock, their_clock) ? FRAGI_TIMELINE_SAME
									: FRAGI_TIMELINE_UNKNOWN,
	};
}

int64_t fragi_timeline_drift_ns(int64_t rate, int64_t ns)
{
	const __int128 product = (__int128)rate * ns, second = 1000000000;

	return (int64_t)(product >= 0 ? product / second : (product - second + 1) / second);
}

static int64_t taken_ns(const struct fragi_timeline_line *line, int64_t since_ns)
{
	int64_t offset_ns = line->offset_ns;

	if (since_ns < 0)
		return offset_ns + fragi_timeline_drift_ns(line->rate_before, since_ns);
	if (since_ns > FRAGI_TIMELINE_SETTLE_NS) {
		offset_ns += fragi_timeline_drift_ns(line->rate_after,
						     since_ns - FRAGI_TIMELINE_SETTLE_NS);
		since_ns = FRAGI_TIMELINE_SETTLE_NS;
	}
	return offset_ns + fragi_timeline_drift_ns(line->rate, since_ns);
}

bool fragi_timeline_estimate(const struct fragi_timeline *peer, int64_t their_ns,
			     struct fragi_time *out)
{
	const struct fragi_timeline_line *line = &peer->line;
	int64_t since_ns, offset_ns, low_ns, high_ns;

	if (peer->state != FRAGI_TIMELINE_ESTIMATED ||
	    __builtin_sub_overflow(their_ns, line->base_ns, &since_ns) ||
	    since_ns > FRAGI_TIMELINE_REACH_NS || since_ns < -FRAGI_TIMELINE_REACH_NS)
		return false;
	offset_ns = taken_ns(line, since_ns);
	low_ns = line->low_ns +
		 fragi_timeline_drift_ns(since_ns < 0 ? line->rate_high : line->rate_low, since_ns);
	high_ns =
		line->high_ns +
		fragi_timeline_drift_ns(since_ns < 0 ? line->rate_low : line->rate_high, since_ns) +
		1;
	out->ns = (int64_t)((uint64_t)their_ns + (uint64_t)offset_ns);
	out->error_ns =
		high_ns - offset_ns > offset_ns - low_ns ? high_ns - offset_ns : offset_ns - low_ns;
	return peer->max_error_ns == 0 || out->error_ns <= peer->max_error_ns;
}
