// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include "draw.h"
#include "expected.h"
#include "logged.h"
#include "state_sum.h"

#include <base/log.h>
#include <conformance/message.h>
#include <conformance/socket.h>
#include <edge/pump_state.h>
#include <edge/remote/state.h>

/*
 * Two hosts whose machines read other clocks, over the transport of tests: what they ask each
 * other, what they find out and what they log, compared with a recorded text. The clocks are the
 * test's. CLOCK_MONOTONIC_RAW is the true time.
 */
#define MS INT64_C(1000000)
#define S INT64_C(1000000000)
#define BEGIN_NS (INT64_C(1000000) * S)
#define UNIX_NS (INT64_C(1800000000) * S)

struct machine {
	int64_t since_ns, monotonic_ns, rate; /* of CLOCK_MONOTONIC; ns a second */
	int64_t boot_ahead_ns, unix_ahead_ns, tai_ahead_ns;
	struct timex kept;
	int state;
};

struct side {
	struct fragi_remote *remote;
	struct fragi_pump *pump;
	struct fragi_ledger ledger;
	struct fragi_remote_peer *peer;
	struct fragi_remote_endpoint *endpoint;
	uint32_t questions, answers;
};

static FILE *out;
static struct side sides[2];
static struct machine machines[2];
static uint32_t flow_count;
static int64_t true_ns, reading_ns;
static int reader = -1; /* whose clocks are read; -1: those of the real machine */
/* What side 0 is shown of the clocks of side 1, and whether it is answered. */
static int64_t unix_shown, tai_shown;
static bool is_unanswered;

static int64_t monotonic_ns(const struct machine *m)
{
	const int64_t gone_ns = true_ns - m->since_ns;

	return m->monotonic_ns + gone_ns + fragi_timeline_drift_ns(m->rate, gone_ns);
}

/* A thread is interrupted now and then. */
int clock_gettime(clockid_t id, struct timespec *time)
{
	const struct machine *m = &machines[reader < 0 ? 0 : reader];
	int64_t ns;

	if (reader < 0)
		return (int)syscall(SYS_clock_gettime, id, time);
	true_ns += reading_ns > 0 ? reading_ns : draw(12) == 0 ? 7000 : 20 + draw(60);
	ns = id == CLOCK_MONOTONIC_RAW ? true_ns : monotonic_ns(m);
	ns += id == CLOCK_BOOTTIME   ? m->boot_ahead_ns
	      : id == CLOCK_REALTIME ? m->unix_ahead_ns
	      : id == CLOCK_TAI      ? m->tai_ahead_ns
				     : 0;
	*time = (struct timespec){ns / S, ns % S};
	return 0;
}

int adjtimex(struct timex *timex)
{
	*timex = machines[reader < 0 ? 0 : reader].kept;
	return machines[reader < 0 ? 0 : reader].state;
}

static uint64_t stamp(void)
{
	return (uint64_t)true_ns;
}

static void say(const char *format, ...) FRAG_PRINTF(1, 2);
static void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(out, format, args);
	fputc('\n', out);
	va_end(args);
}

/* What travels is counted, and all of it is in the sum. */
static uint32_t relay(struct message *message)
{
	struct fragi_header header;

	cr_assert(fragi_header_unpack(message->header, message->header_bytes, &header));
	STATE(header.kind), STATE(header.flags), STATE(header.epoch), STATE(header.sequence);
	STATE(header.descriptor_bytes), STATE(header.body_bytes), STATE(header.publish_ns);
	if (header.kind != FRAGI_KIND_BEAT || header.publish_ns == 0)
		return 1;
	if ((header.flags & FRAGI_FLAG_REPLY) != 0) {
		sides[reader].answers++;
		return reader == 0 || !is_unanswered;
	}
	sides[reader].questions++;
	if (reader == 1 && unix_shown != 0)
		header.sequence = (uint64_t)unix_shown;
	if (reader == 1 && tai_shown != 0)
		header.body_bytes = (uint64_t)tai_shown;
	fragi_header_pack(&header, message->header);
	return 1;
}

static void on_ready(void *arg, uint32_t host)
{
	say("  side %d: host %u is ready", (int)(intptr_t)arg, host);
}

static void on_lost(void *arg, uint32_t host, enum fragi_failure failure, const char *sentence)
{
	say("  side %d: host %u is lost, %d: %s", (int)(intptr_t)arg, host, failure, sentence);
}

/* Its clocks, unless something happens to them. */
static void make_side(int i)
{
	struct fragi_remote_config config = {.host = (uint32_t)i + 1,
					     .epoch = 7,
					     .dead_ns = INT64_MAX / 2,
					     .arg = (void *)(intptr_t)i,
					     .peer_ready = on_ready,
					     .peer_lost = on_lost};
	struct frag_err err = FRAG_ERR_INIT;

	reader = i;
	machines[i] = (struct machine){.since_ns = true_ns,
				       .monotonic_ns = i == 0 ? 5000 * S : 90 * S,
				       .rate = i == 0 ? 700 : -2100,
				       .boot_ahead_ns = i * 3 * S,
				       .kept = {.maxerror = 1500, .tai = 37}};
	machines[i].unix_ahead_ns = UNIX_NS - machines[i].monotonic_ns + i * 2 * MS;
	machines[i].tai_ahead_ns = machines[i].unix_ahead_ns + 37 * S;
	cr_assert_eq(fragi_ledger_create(&sides[i].ledger, -1, 1, flow_count), 0);
	cr_assert_eq(fragi_pump_create(&sides[i].pump), 0);
	config.pump = sides[i].pump;
	cr_assert_eq(fragi_remote_create(&config, &sides[i].remote), 0);
	cr_assert_eq(fragi_remote_open(sides[i].remote, &socket_transport, &err), 0);
}

static void wire(int i)
{
	const struct fragi_transport *there = fragi_remote_transport(sides[1 - i].remote, "socket");
	struct fragi_edge_config config = {
		.window_messages = 4, .window_bytes = 1 << 20, .message_bytes_max = 1 << 20};
	struct frag_err err = FRAG_ERR_INIT;
	struct fragi_tx *tx;
	struct fragi_rx *rx;
	size_t size;
	const void *address = socket_transport.address(there, &size);

	reader = i;
	cr_assert_eq(
		fragi_remote_peer_create(sides[i].remote, (uint32_t)(2 - i), 7, &sides[i].peer), 0);
	cr_assert_eq(fragi_remote_connect(sides[i].peer, "socket", address, size,
					  &sides[i].endpoint, &err),
		     0);
	sides[i].endpoint->base->timeline.state = FRAGI_TIMELINE_UNKNOWN;
	for (config.flow = 0; config.flow < flow_count; config.flow++) {
		struct fragi_flow_row *row = &sides[i].ledger.flows[config.flow];

		config.token[0] = (uint8_t)(1 + config.flow);
		cr_assert_eq((int)config.flow == i
				     ? fragi_remote_tx_create(sides[i].endpoint, &config, row, &tx)
				     : fragi_remote_rx_create(sides[i].endpoint, &config, row, &rx),
			     0);
	}
}

static void show_side(int i)
{
	static const char *const states[] = {"acquiring", "locked", "holdover", "expired"};
	const struct side *side = &sides[i];
	const struct fragi_remote_endpoint *e = side->endpoint;
	const struct fragi_peer_clock *c = &e->clock;
	const struct fragi_timeline *t = &e->base->timeline;
	const struct fragi_timeline_line *line = &t->line;
	const struct fragi_remote_clock *own = &side->remote->clock;
	const struct fragi_flow_row *flows = side->ledger.flows;
	int64_t ahead_ns = 0, error_ns = 0;

	reader = i;
	fprintf(out, "  side %d: %u questions, %u answers, %s", i, side->questions, side->answers,
		states[c->state]);
	if (fragi_remote_peer_ahead(side->peer, monotonic_ns(&machines[i]), &ahead_ns, &error_ns))
		fprintf(out, ", %" PRId64 " ns wrong, within %" PRId64,
			ahead_ns - (monotonic_ns(&machines[1 - i]) - monotonic_ns(&machines[i])),
			error_ns);
	fprintf(out, "%s%s, %u steps, %u slews, rate %" PRId64 "%s", t->knows_unix ? ", UTC" : "",
		t->knows_tai ? ", TAI" : "", own->steps, own->slews, own->rate,
		own->awaits_leap ? ", a leap" : "");
	for (const struct fragi_flow_row *row = flows; row < flows + flow_count; row++)
		if (row->clock_locked > 0)
			fprintf(out, ", locked %" PRIu64 ", stepped %" PRIu64 ", silent %" PRIu64,
				row->clock_locked, row->clock_stepped, row->clock_silent);
	STATE(c->count), STATE(c->since_ns), STATE(c->steps), STATE(c->slews);
	STATE(c->last.at_ns), STATE(c->last.low_ns), STATE(c->last.high_ns);
	STATE(c->rate_low), STATE(c->rate_high), STATE(c->anchor_count);
	STATE(c->restarts), STATE(c->refused), STATE(t->state);
	STATE(t->unix_ahead_ns), STATE(t->tai_ahead_ns);
	STATE(t->our_unix_ahead_ns), STATE(t->our_tai_ahead_ns);
	STATE(line->base_ns), STATE(line->offset_ns), STATE(line->rate_before);
	STATE(line->rate), STATE(line->rate_after), STATE(line->low_ns), STATE(line->high_ns);
	STATE(line->rate_low), STATE(line->rate_high);
	STATE(own->looked_ns), STATE(own->boot_ahead_ns), STATE(own->unix_ahead_ns);
	STATE(own->tai_ahead_ns), STATE(own->monotonic_ns), STATE(own->raw_ns);
	STATE(own->knows_rate);
	STATE(e->clock_reported), STATE(e->asked_ns), STATE(e->clock_until_ns);
	STATE(e->questions), STATE(e->refused), STATE(e->smeared_until_ns);
	STATE(side->pump->awake_until_ns);
	say(", sum %016" PRIx64, state_sum);
}

static void show(void)
{
	for (int i = 0; i < 2; i++) {
		show_side(i);
		sides[i].questions = sides[i].answers = 0;
	}
}

static void progress(int i)
{
	reader = i;
	fragi_pump_lock(sides[i].pump);
	for (int n = 0; n < 5; n++)
		(void)fragi_remote_pump_ops.progress(sides[i].remote, fragi_now_ns());
	fragi_pump_unlock(sides[i].pump);
}

static void pass(int steps, int64_t step_ns)
{
	logged_begin();
	for (; steps > 0; steps--) {
		true_ns += step_ns;
		progress(0);
		progress(1);
	}
	reader = -1;
	logged_end(out);
}

/* A tenth of a second is a step; what is known after so many of them is shown. */
static void see(int steps)
{
	pass(5 * steps, 20 * MS);
	show();
}

/* From here on it is at another rate. */
static void set_rate(struct machine *m, int64_t rate)
{
	m->monotonic_ns = monotonic_ns(m);
	m->since_ns = true_ns;
	m->rate = rate;
}

/* It stands still for so long. */
static void stop(struct machine *m, int64_t ns)
{
	set_rate(m, m->rate);
	true_ns += ns;
	m->since_ns = true_ns;
}

/* What happens. */

static void rates(void)
{
	/* What is reported, and what is not, before and behind a reading that was interrupted. */
	static const int64_t steps[] = {1000, 1500, 2500, 2600, -2600, 9000, -9000};

	for (size_t k = 0; k < FRAG_COUNT_OF(steps); k++) {
		say("side 1 is faster by %" PRId64, steps[k]);
		set_rate(&machines[1], machines[1].rate + steps[k]);
		see(6);
		for (reading_ns = 250; reading_ns < 252; reading_ns++)
			see(3);
		reading_ns = 0;
	}
}

static void suspends(void)
{
	static const int64_t slept_ns[] = {MS - 5000, MS + 5000, 5 * S};

	for (size_t k = 0; k < FRAG_COUNT_OF(slept_ns); k++)
		for (int i = 0; i < 2; i++) {
			say("side %d sleeps for %" PRId64, i, slept_ns[k]);
			machines[i].boot_ahead_ns += slept_ns[k];
			stop(&machines[i], slept_ns[k]);
			see(1);
			see(6);
		}
}

/* Nobody knows of it; so each time the log says how the system clock is kept. */
static void pauses(void)
{
	static const struct {
		int state, status;
		long maxerror;
		int tai;
	} rows[] = {{TIME_OK, 0, 1500, 37},    {-1, 0, 1500, 37},
		    {TIME_ERROR, 0, 1500, 37}, {TIME_OK, STA_UNSYNC, 1500, 37},
		    {TIME_OK, STA_PLL, 20, 0}, {TIME_ERROR, STA_UNSYNC, 20, 0}};

	for (size_t k = 0; k < FRAG_COUNT_OF(rows); k++) {
		say("side 1 was paused");
		machines[0].state = rows[k].state;
		machines[0].kept = (struct timex){
			.status = rows[k].status, .maxerror = rows[k].maxerror, .tai = rows[k].tai};
		stop(&machines[1], 3 * S);
		see(1);
		see(6);
	}
	machines[0].state = TIME_OK;
	machines[0].kept.status = 0;
}

/* Whose system clock shows TAI. */
static void apart(void)
{
	static const int64_t apart_ns[] = {37 * S,         36 * S,         38 * S,
					   37 * S + S / 3, 36 * S + S / 3, 37 * S * 10,
					   29999 * MS + S, -37 * S};

	for (size_t k = 0; k < FRAG_COUNT_OF(apart_ns); k++) {
		say("CLOCK_REALTIME of side 1 is set by %" PRId64, apart_ns[k]);
		machines[1].unix_ahead_ns += apart_ns[k];
		machines[1].tai_ahead_ns += apart_ns[k];
		see(4);
		machines[1].unix_ahead_ns -= apart_ns[k];
		machines[1].tai_ahead_ns -= apart_ns[k];
		see(4);
	}
}

static void leaps(void)
{
	static const struct {
		int state, status;
	} rows[] = {{TIME_INS, 0},      {TIME_DEL, 0},      {TIME_OOP, 0},      {TIME_WAIT, 0},
		    {TIME_OK, STA_INS}, {TIME_OK, STA_DEL}, {TIME_OK, STA_PLL}, {-1, STA_INS}};

	for (size_t k = 0; k < FRAG_COUNT_OF(rows); k++)
		for (int both = 1; both >= 0; both--) {
			say("state %d, status %d of %s", rows[k].state, rows[k].status,
			    both ? "both" : "one");
			for (int i = !both; i < 2; i++) {
				machines[i].state = rows[k].state;
				machines[i].kept.status = rows[k].status;
			}
			see(4);
			for (int i = 0; i < 2; i++) {
				machines[i].state = TIME_OK;
				machines[i].kept.status = 0;
			}
			see(4);
			true_ns += 24 * 3600 * S - 2 * S;
			pass(15, 100 * MS);
			see(8);
		}
}

static void offsets(void)
{
	static const int64_t tai_ns[] = {0,
					 36 * S,
					 36 * S + 499 * MS,
					 36 * S + 501 * MS,
					 37 * S + 499 * MS,
					 37 * S + 501 * MS,
					 -37 * S};

	for (size_t k = 0; k < FRAG_COUNT_OF(tai_ns); k++)
		for (int i = 0; i < 2; i++) {
			say("TAI of side %d is %" PRId64 " ahead", i, tai_ns[k]);
			machines[i].tai_ahead_ns = machines[i].unix_ahead_ns + tai_ns[k];
			see(4);
			machines[i].tai_ahead_ns = machines[i].unix_ahead_ns + 37 * S;
		}
	see(4);
}

/* What no clock shows, and what just may be. */
static void claims(void)
{
	const int64_t most = INT64_MAX / 3;
	const int64_t claimed[] = {most, most + 1, -most, -most - 1, INT64_MAX, INT64_MIN};

	for (size_t k = 0; k < FRAG_COUNT_OF(claimed); k++) {
		say("side 1 claims %" PRId64, claimed[k]);
		unix_shown = claimed[k];
		see(4);
		unix_shown = 0;
		tai_shown = claimed[k];
		see(4);
		tai_shown = 0;
		see(4);
	}
}

static void silence(void)
{
	static const int steps[] = {18, 21, 610};

	for (size_t k = 0; k < FRAG_COUNT_OF(steps); k++) {
		say("side 1 does not answer for %d steps", steps[k]);
		is_unanswered = true;
		see(steps[k]);
		is_unanswered = false;
		see(6);
	}
}

static const struct {
	const char *name;
	void (*happens)(void);
} histories[] = {{"rates", rates},   {"suspends", suspends}, {"pauses", pauses},
		 {"apart", apart},   {"leaps", leaps},       {"offsets", offsets},
		 {"claims", claims}, {"silence", silence}};

static void destroy(int i)
{
	reader = i;
	reading_ns = 900000; /* it waits for its peer */
	fragi_remote_destroy(sides[i].remote);
	reading_ns = 0;
	fragi_pump_destroy(sides[i].pump);
	fragi_ledger_close(&sides[i].ledger);
}

/* With a flow from side 0 to side 1, or one in each direction. */
static void live(size_t history)
{
	say("%s", histories[history].name);
	draw_from(history + 1);
	state_begin();
	flow_count = 1 + history % 2;
	true_ns = BEGIN_NS;
	memset(sides, 0, sizeof(sides));
	socket_settings = (struct socket_settings){.seed = (unsigned int)history, .relay = relay};
	for (int i = 0; i < 2; i++)
		make_side(i);
	for (int i = 0; i < 2; i++)
		wire(i);
	pass(8, 2 * MS);
	show();
	see(16);
	histories[history].happens();
	for (int i = 0; i < 2; i++)
		destroy(i);
	reader = -1;
}

Test(remote_clock, is_compared_as_it_is_recorded)
{
	char *text;
	size_t size;

	out = open_memstream(&text, &size);
	fragi_log_threshold = FRAGI_LOG_INFO;
	(void)fragi_stamp();
	fragi_stamp_take_from(stamp);
	for (size_t history = 0; history < FRAG_COUNT_OF(histories); history++)
		live(history);
	fclose(out);
	expected_compare("transports/clocks", text);
	free(text);
}
