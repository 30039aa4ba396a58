// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/timex.h>

#include <base/units.h>
#include <edge/remote/state.h>

#define LOG_TOPIC "clock"
#include <base/log.h>

/*
 * The clocks of peers that read another one than this host: each beat to such a peer asks for its
 * time, and its answer, which is sent at once, carries four times (base/peer_clock.h). Some more
 * questions follow an answer without a wait. Meanwhile the threads of both hosts do not sleep, so
 * these prove more than the first one: no wake-up of a thread is part of their round trips.
 */
#define AWAKE_NS 100000 /* the longest that a thread stays awake for one question or answer */
#define QUESTIONS 16u   /* without a wait, between two beats */
#define STEP_NS 1000000 /* a suspended machine sleeps for longer */
#define SLEW 2000       /* ns a second: a change of rate that is reported */
#define BRACKET_NS 500  /* two clocks were not read together when it took longer */
#define READINGS 5      /* of which the one that took least is used */
#define FASTER 16       /* so much more often is asked while nothing is known of the rate */
#define TAI_LEAST_NS INT64_C(30000000000)
#define SECOND_NS INT64_C(1000000000)
#define SMEAR_NS (INT64_C(24 * 3600) * SECOND_NS) /* the longest that anybody smears */

static int64_t read_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * SECOND_NS + t.tv_nsec;
}

static void for_each_peer(struct fragi_remote *remote, bool restarts)
{
	for (struct fragi_remote_peer *peer = remote->peers; peer != NULL; peer = peer->next)
		for (struct fragi_remote_endpoint *endpoint = peer->endpoints; endpoint != NULL;
		     endpoint = endpoint->next) {
			if (endpoint->base == NULL || !fragi_remote_clock_is_other(endpoint))
				continue;
			if (restarts)
				fragi_peer_clock_restart(&endpoint->clock, fragi_now_ns(),
							 &endpoint->base->timeline);
			else
				fragi_peer_clock_forget_rate(&endpoint->clock);
		}
}

/* CLOCK_MONOTONIC stands still while the machine is suspended, CLOCK_BOOTTIME does not. */
static void look_for_steps(struct fragi_remote *remote, struct fragi_remote_clock *own)
{
	const int64_t ahead_ns = read_ns(CLOCK_BOOTTIME) - fragi_now_ns();

	if (own->looked_ns != 0 && llabs(ahead_ns - own->boot_ahead_ns) > STEP_NS) {
		own->steps++;
		log_warn(NULL, "this machine was suspended: the clocks of other nodes are not "
			       "known until they have been compared again");
		for_each_peer(remote, true);
	}
	own->boot_ahead_ns = ahead_ns;
}

/* Both clocks at once. Returns false: the thread was interrupted each time. */
static bool read_pair(int64_t *out_ns, int64_t *out_raw_ns)
{
	int64_t least_ns = BRACKET_NS + 1;

	for (int i = 0; i < READINGS; i++) {
		const int64_t before_ns = fragi_now_ns(), raw_ns = read_ns(CLOCK_MONOTONIC_RAW);
		const int64_t took_ns = fragi_now_ns() - before_ns;

		if (took_ns >= least_ns)
			continue;
		least_ns = took_ns;
		*out_ns = before_ns + took_ns / 2;
		*out_raw_ns = raw_ns;
	}
	return least_ns <= BRACKET_NS;
}

/* CLOCK_MONOTONIC is slewed to follow other clocks, CLOCK_MONOTONIC_RAW never is. */
static void look_for_slews(struct fragi_remote *remote, struct fragi_remote_clock *own)
{
	int64_t now_ns, raw_ns, since_ns, rate, unsure;

	if (!read_pair(&now_ns, &raw_ns))
		return;
	since_ns = raw_ns - own->raw_ns;
	if (own->raw_ns != 0 && since_ns > 0) {
		rate = (int64_t)((__int128)(now_ns - own->monotonic_ns - since_ns) * SECOND_NS /
				 since_ns);
		unsure = SLEW + BRACKET_NS * SECOND_NS / since_ns;
		if (own->knows_rate && llabs(rate - own->rate) > unsure) {
			own->slews++;
			for_each_peer(remote, false);
		}
		if (!own->knows_rate || llabs(rate - own->rate) > unsure)
			own->rate = rate;
		own->knows_rate = true;
	}
	own->monotonic_ns = now_ns;
	own->raw_ns = raw_ns;
}

/* Where a leap second is smeared instead, the kernel does not hear of it. */
static bool awaits_leap(void)
{
	struct timex kept = {0};
	const int state = adjtimex(&kept);

	return state == TIME_INS || state == TIME_DEL || state == TIME_OOP ||
	       (state >= 0 && (kept.status & (STA_INS | STA_DEL)) != 0);
}

static void look(struct fragi_remote *remote)
{
	struct fragi_remote_clock *own = &remote->clock;
	const int64_t now_ns = fragi_now_ns();

	if (own->looked_ns != 0 && now_ns - own->looked_ns < remote->config.beat_ns / 2)
		return;
	look_for_steps(remote, own);
	look_for_slews(remote, own);
	own->unix_ahead_ns = read_ns(CLOCK_REALTIME) - fragi_now_ns();
	own->tai_ahead_ns = read_ns(CLOCK_TAI) - fragi_now_ns();
	own->awaits_leap = awaits_leap();
	own->looked_ns = now_ns;
}

/* For as long as three of the best round trips take. */
static void stay_awake(const struct fragi_remote_endpoint *endpoint)
{
	const int64_t now_ns = fragi_now_ns();
	const int64_t error_ns = fragi_peer_clock_error_ns(&endpoint->clock, now_ns);
	const int64_t near_ns = error_ns >= 0 && error_ns < AWAKE_NS / 6 ? 6 * error_ns : AWAKE_NS;

	fragi_pump_stay_awake(fragi_remote_of(endpoint)->config.pump, now_ns + near_ns);
}

static uint32_t changes_of(const struct fragi_remote_clock *own)
{
	return (uint32_t)own->steps << 16 | own->slews;
}

static void ask(struct fragi_remote_endpoint *endpoint)
{
	struct fragi_remote *remote = fragi_remote_of(endpoint);
	struct fragi_header header = {.kind = FRAGI_KIND_BEAT};

	look(remote);
	header.flags = remote->clock.awaits_leap ? FRAGI_FLAG_LEAP : 0;
	header.sequence = (uint64_t)remote->clock.unix_ahead_ns;
	header.body_bytes = (uint64_t)remote->clock.tai_ahead_ns;
	header.descriptor_bytes = changes_of(&remote->clock);
	header.publish_ns = fragi_now_ns();
	fragi_remote_send_header(endpoint, &header);
	stay_awake(endpoint);
}

static void answer(struct fragi_remote_endpoint *endpoint, const struct fragi_header *question,
		   int64_t heard_ns)
{
	struct fragi_remote *remote = fragi_remote_of(endpoint);
	struct fragi_header header = {
		.kind = FRAGI_KIND_BEAT,
		.flags = FRAGI_FLAG_REPLY,
		.sequence = (uint64_t)question->publish_ns,
		.body_bytes = (uint64_t)heard_ns,
	};

	look(remote);
	header.descriptor_bytes = changes_of(&remote->clock);
	header.publish_ns = fragi_now_ns();
	fragi_remote_send_header(endpoint, &header);
	if (fragi_remote_clock_is_other(endpoint))
		stay_awake(endpoint);
}

static int64_t rounded_s(int64_t ns)
{
	return (ns + (ns < 0 ? -SECOND_NS / 2 : SECOND_NS / 2)) / SECOND_NS;
}

enum refusal { REFUSAL_NONE, REFUSAL_SHOWS_TAI, REFUSAL_SMEARED, REFUSAL_TAI_OFFSET };

/* Why times of a peer's other clocks are not compared: logged once for each reason. */
static void refuse(struct fragi_remote_endpoint *endpoint, enum refusal why, int64_t theirs_s,
		   int64_t ours_s)
{
	const char *name = endpoint->peer->name;
	const bool is_known = endpoint->refused == (int)why;

	endpoint->refused = (int)why;
	if (is_known)
		return;
	if (why == REFUSAL_SHOWS_TAI)
		log_warn(
			NULL,
			"%s: its system clock and ours are %d s apart, so one of them shows TAI and not UTC; acquisition times on them are not compared. Look at utc_offset of ptp4l or phc2sys",
			name, FRAGI_TAI_AHEAD_S);
	else if (why == REFUSAL_SMEARED)
		log_warn(
			NULL,
			"%s: a leap second is announced to only one of its kernel and ours, so the other one may smear it: for a day acquisition times on system clocks and CLOCK_TAI are not compared. Let all nodes follow servers that do the same (leapsecmode and smoothtime of chrony)",
			name);
	else
		log_info(
			NULL,
			"%s: its kernel takes TAI to be %lld s ahead of UTC, and ours %lld s; acquisition times on CLOCK_TAI are not compared. chrony sets that with leapsectz, ptp4l and phc2sys do by themselves",
			name, (long long)theirs_s, (long long)ours_s);
}

/* Whether one of both nodes may spread a leap second over a day, and the other one has a step. */
static bool is_smeared(struct fragi_remote_endpoint *endpoint, const struct fragi_header *header)
{
	const struct fragi_remote *remote = fragi_remote_of(endpoint);

	if (((header->flags & FRAGI_FLAG_LEAP) != 0) != remote->clock.awaits_leap)
		endpoint->smeared_until_ns = remote->clock.looked_ns + SMEAR_NS;
	return endpoint->smeared_until_ns > remote->clock.looked_ns;
}

/*
 * The peer's other clocks. Where its CLOCK_REALTIME shows TAI, or its kernel does not know how far
 * TAI is ahead, times of them would be compared that lie 37 s apart; and up to 1 s where only one
 * of both smears a leap second.
 */
static void take_others(struct fragi_remote_endpoint *endpoint, const struct fragi_header *header)
{
	struct fragi_timeline *timeline = &endpoint->base->timeline;
	const struct fragi_remote_clock *own = &fragi_remote_of(endpoint)->clock;
	const int64_t unix_ns = (int64_t)header->sequence, tai_ns = (int64_t)header->body_bytes;
	const int64_t limit = INT64_MAX / 3; /* until 2067, and no sum below overflows */
	int64_t apart_ns, theirs_s, ours_s;
	struct fragi_time time;

	timeline->knows_unix = timeline->knows_tai = false;
	if (timeline->state != FRAGI_TIMELINE_ESTIMATED || unix_ns < -limit || unix_ns > limit ||
	    tai_ns < -limit || tai_ns > limit ||
	    !fragi_timeline_convert(timeline, header->publish_ns, &time))
		return;
	timeline->unix_ahead_ns = unix_ns;
	timeline->tai_ahead_ns = tai_ns;
	timeline->our_unix_ahead_ns = own->unix_ahead_ns;
	timeline->our_tai_ahead_ns = own->tai_ahead_ns;
	apart_ns = header->publish_ns + unix_ns - (time.ns + own->unix_ahead_ns);
	theirs_s = rounded_s(tai_ns - unix_ns);
	ours_s = rounded_s(own->tai_ahead_ns - own->unix_ahead_ns);
	if (llabs(apart_ns) >= TAI_LEAST_NS && llabs(rounded_s(apart_ns)) == FRAGI_TAI_AHEAD_S) {
		refuse(endpoint, REFUSAL_SHOWS_TAI, 0, 0);
		return;
	}
	if (is_smeared(endpoint, header)) {
		refuse(endpoint, REFUSAL_SMEARED, 0, 0);
		return;
	}
	timeline->knows_unix = true;
	timeline->knows_tai = theirs_s == ours_s;
	if (timeline->knows_tai)
		endpoint->refused = REFUSAL_NONE;
	else
		refuse(endpoint, REFUSAL_TAI_OFFSET, theirs_s, ours_s);
}

/* How the kernel says that the system clock is kept, which a bound between nodes does not need. */
static const char *discipline(char out[128])
{
	struct timex kept = {0};
	char error[24];
	int state = adjtimex(&kept);

	if (state < 0)
		return "it is not known how the system clock is kept";
	if (state == TIME_ERROR || (kept.status & STA_UNSYNC) != 0)
		return "nothing keeps the system clock here (chrony, ptp4l)";
	fragi_format_duration((int64_t)kept.maxerror * 1000, error, sizeof(error));
	snprintf(out, 128, "the system clock here is kept to within %s, TAI is %d s ahead", error,
		 kept.tai);
	return out;
}

static void report(const struct fragi_remote_endpoint *endpoint)
{
	const struct fragi_peer_clock *clock = &endpoint->clock;
	const char *name = endpoint->peer->name;
	char error[24], kept[128];
	struct fragi_time now = {0};

	(void)fragi_timeline_convert(&endpoint->base->timeline,
				     endpoint->base->timeline.line.base_ns, &now);
	fragi_format_duration(fragi_peer_clock_error_ns(clock, fragi_now_ns()), error,
			      sizeof(error));
	switch (clock->state) {
	case FRAGI_PEER_CLOCK_ACQUIRING:
		log_warn(
			NULL,
			"the clock of %s has stepped, or was compared wrongly: acquiring, times from there are not compared until then",
			name);
		break;
	case FRAGI_PEER_CLOCK_LOCKED:
		log_info(NULL,
			 "the clock of %s: locked, %lld ns ahead of ours, to within %lld ns; %s",
			 name, (long long)(endpoint->base->timeline.line.base_ns - now.ns),
			 (long long)now.error_ns, discipline(kept));
		break;
	case FRAGI_PEER_CLOCK_HOLDOVER:
		log_warn(
			NULL,
			"the clock of %s: holdover, because it does not answer within %d s; its times are known to within %s, and that grows",
			name, (int)(FRAGI_PEER_CLOCK_ROUND_NS / SECOND_NS), error);
		break;
	case FRAGI_PEER_CLOCK_EXPIRED:
		log_warn(NULL, "the clock of %s: expired, it did not answer for %d s", name,
			 (int)(FRAGI_PEER_CLOCK_EXPIRE_NS / SECOND_NS));
		break;
	}
}

static void stop_awaiting(struct fragi_remote_endpoint *endpoint)
{
	if (endpoint->clock_until_ns == 0)
		return;
	endpoint->clock_until_ns = 0;
	fragi_remote_peer_is_ready(endpoint->peer);
}

/*
 * Counts in one of the flows that come from the peer, because the driver makes events of what flows
 * count. Where none comes from there, nobody converts its times.
 */
static void count_change(const struct fragi_remote_endpoint *endpoint,
			 enum fragi_peer_clock_state state)
{
	const bool was_locked = endpoint->clock_reported == FRAGI_PEER_CLOCK_LOCKED;
	struct fragi_remote_edge *edge = endpoint->edges;
	struct fragi_flow_row *row;

	while (edge != NULL && edge->is_tx)
		edge = edge->next;
	if (edge == NULL)
		return;
	row = ((struct fragi_remote_rx *)edge)->rx.row;
	if (state == FRAGI_PEER_CLOCK_LOCKED)
		fragi_count(&row->clock_locked, 1);
	else if (was_locked && state == FRAGI_PEER_CLOCK_ACQUIRING)
		fragi_count(&row->clock_stepped, 1);
	else if (was_locked)
		fragi_count(&row->clock_silent, 1);
}

static void note(struct fragi_remote_endpoint *endpoint)
{
	const enum fragi_peer_clock_state state = endpoint->clock.state;

	if (state == endpoint->clock_reported)
		return;
	count_change(endpoint, state);
	endpoint->clock_reported = state;
	report(endpoint);
}

static void on_answer(struct fragi_remote_endpoint *endpoint, const struct fragi_header *header,
		      int64_t back_ns)
{
	const struct fragi_round_trip trip = {
		.asked_ns = (int64_t)header->sequence,
		.back_ns = back_ns,
		.heard_ns = (int64_t)header->body_bytes,
		.answered_ns = header->publish_ns,
		.steps = (uint16_t)(header->descriptor_bytes >> 16),
		.slews = (uint16_t)header->descriptor_bytes,
	};

	if (!fragi_remote_clock_is_other(endpoint))
		return;
	fragi_peer_clock_add(&endpoint->clock, &trip, &endpoint->base->timeline);
	note(endpoint);
	if (endpoint->questions == 0)
		return;
	endpoint->questions--;
	ask(endpoint);
}

void fragi_remote_on_beat(struct fragi_remote_endpoint *endpoint, const struct fragi_header *header)
{
	const int64_t now_ns = fragi_now_ns();

	if (header->publish_ns == 0 || !fragi_remote_endpoint_is_up(endpoint))
		return;
	if ((header->flags & FRAGI_FLAG_REPLY) != 0) {
		on_answer(endpoint, header, now_ns);
		return;
	}
	answer(endpoint, header, now_ns);
	if (!fragi_remote_clock_is_other(endpoint))
		return;
	take_others(endpoint, header);
	/* The first message may have a time of those already. */
	if (endpoint->clock.state == FRAGI_PEER_CLOCK_LOCKED)
		stop_awaiting(endpoint);
}

/* A few round trips, or a beat at most. */
static void await(struct fragi_remote_endpoint *endpoint)
{
	const struct fragi_remote *remote = fragi_remote_of(endpoint);

	endpoint->clock_until_ns = remote->now_ns + remote->config.beat_ns;
	(void)fragi_remote_clock_tick(endpoint, remote->now_ns);
}

void fragi_remote_clock_begin(struct fragi_remote_endpoint *endpoint)
{
	fragi_peer_clock_init(&endpoint->clock);
	endpoint->base->timeline.max_error_ns = fragi_remote_of(endpoint)->config.max_error_ns;
	endpoint->clock_reported = FRAGI_PEER_CLOCK_ACQUIRING;
	endpoint->asked_ns = endpoint->clock_until_ns = 0;
	if (fragi_remote_clock_is_other(endpoint))
		await(endpoint);
	else
		log_debug(NULL, "%s reads the same clock as this host", endpoint->peer->name);
}

int64_t fragi_remote_clock_tick(struct fragi_remote_endpoint *endpoint, int64_t now_ns)
{
	int64_t beat_ns = fragi_remote_of(endpoint)->config.beat_ns;

	/* the first anchor was just set: for FRAGI_PEER_CLOCK_ANCHOR_NS */
	if (endpoint->clock.anchor_count < 2)
		beat_ns /= FASTER;
	(void)fragi_peer_clock_tick(&endpoint->clock, now_ns, &endpoint->base->timeline);
	note(endpoint);
	if (now_ns >= endpoint->clock_until_ns)
		stop_awaiting(endpoint);
	if (endpoint->asked_ns == 0 || now_ns - endpoint->asked_ns >= beat_ns) {
		endpoint->asked_ns = now_ns;
		endpoint->questions = QUESTIONS;
		ask(endpoint);
	}
	return endpoint->asked_ns + beat_ns;
}

bool fragi_remote_peer_ahead(const struct fragi_remote_peer *peer, int64_t now_ns,
			     int64_t *out_ahead_ns, int64_t *out_error_ns)
{
	for (const struct fragi_remote_endpoint *endpoint = peer->endpoints; endpoint != NULL;
	     endpoint = endpoint->next) {
		const struct fragi_timeline *timeline =
			endpoint->base != NULL ? &endpoint->base->timeline : NULL;
		int64_t ahead_ns = 0;
		struct fragi_time time;

		if (timeline == NULL || timeline->state == FRAGI_TIMELINE_UNKNOWN)
			continue;
		/* first what it was at the base of the line, and with that what it is now */
		if (timeline->state == FRAGI_TIMELINE_ESTIMATED) {
			if (!fragi_timeline_convert(timeline, timeline->line.base_ns, &time))
				continue;
			ahead_ns = timeline->line.base_ns - time.ns;
		}
		if (!fragi_timeline_convert(timeline, now_ns + ahead_ns, &time))
			continue;
		*out_ahead_ns = now_ns + ahead_ns - time.ns;
		*out_error_ns = time.error_ns;
		return true;
	}
	return false;
}
