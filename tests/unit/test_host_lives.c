// SPDX-License-Identifier: Apache-2.0
#include "../expected.h"
#include "draw.h"
#include "transcript.h"

#include <workerd/host/core/core.h>

/*
 * Drawn lives of a host: whatever its worker, its work, its run and time may do, in any order that
 * can happen, and all that its core answers.
 */
#define LIVES 2000
#define LIVES_SHOWN 100
#define STEPS 45
#define MS INT64_C(1000000)
#define NO_WORK HOST_EV_TIMER

static struct host_core *core;
static struct host_actions actions;
static int64_t now, shown_deadline;
static enum host_event_kind work; /* that is under way, by what completes it */
static bool ended, beats;

static void show_message(const char *prefix, const struct fw_message *message)
{
	fprintf(transcript, "%s%s", prefix, fw_kind_name(message->kind));
	if (message->run != 0)
		fprintf(transcript, " %d/%u/%d", (int)message->run, message->host,
			(int)message->epoch);
	transcript_body_once(message);
}

static void show_work(const char *what, const struct host_action *a, enum host_event_kind done)
{
	fprintf(transcript, "  %s", what);
	if (a->request != NULL)
		fprintf(transcript, " %s", fw_kind_name(a->request->kind));
	if (a->beat_ns != 0 || a->dead_ns != 0)
		fprintf(transcript, ", beat %" PRId64 ", dead %" PRId64, a->beat_ns, a->dead_ns);
	fprintf(transcript, "\n");
	work = done != NO_WORK ? done : work;
}

static void show_action(const struct host_action *a)
{
	static const char *const names[] = {
		[HOST_DO_PREPARE] = "prepare",   [HOST_DO_WIRE] = "wire",
		[HOST_DO_REWIRE] = "wire again", [HOST_DO_SUSPEND] = "suspend",
		[HOST_DO_START] = "start",       [HOST_DO_SET] = "set",
		[HOST_DO_TAP] = "tap",           [HOST_DO_HALT] = "halt",
		[HOST_DO_DESTROY] = "destroy"};
	static const enum host_event_kind done[] = {[HOST_DO_PREPARE] = HOST_EV_PREPARE_DONE,
						    [HOST_DO_WIRE] = HOST_EV_WIRE_DONE,
						    [HOST_DO_REWIRE] = NO_WORK,
						    [HOST_DO_SUSPEND] = NO_WORK,
						    [HOST_DO_START] = HOST_EV_START_DONE,
						    [HOST_DO_SET] = NO_WORK,
						    [HOST_DO_TAP] = NO_WORK,
						    [HOST_DO_HALT] = NO_WORK,
						    [HOST_DO_DESTROY] = HOST_EV_DESTROY_DONE};

	switch (a->kind) {
	case HOST_DO_SEND:
		show_message("  send ", &a->message);
		break;
	case HOST_DO_DRAIN:
	case HOST_DO_YIELD:
		fprintf(transcript, "  %s within %" PRId64 "\n",
			a->kind == HOST_DO_DRAIN ? "drain" : "yield", a->drain_ns);
		break;
	case HOST_DO_LOOK:
		fprintf(transcript, "  looks %u\n", a->looks);
		break;
	case HOST_DO_LEASE:
		fprintf(transcript, "  lease until %" PRId64 "\n", a->lease_until_ns);
		break;
	case HOST_DO_LOG:
		fprintf(transcript, "  %s: %s\n", fragi_log_level_name((int)a->level), a->text);
		break;
	case HOST_DO_EXIT:
		fprintf(transcript, "  exit %d%s\n", a->exit_code,
			a->operators_may_hang ? ", operators may hang" : "");
		ended = true;
		break;
	default:
		show_work(names[a->kind], a, done[a->kind]);
	}
}

static bool happen(struct host_event event)
{
	int64_t deadline_ns;

	host_core_step(core, &event, now, &actions);
	for (uint32_t i = 0; i < actions.count; i++)
		show_action(&actions.items[i]);
	deadline_ns = host_core_deadline_ns(core);
	if (deadline_ns != shown_deadline && deadline_ns == INT64_MAX)
		fprintf(transcript, "  waits\n");
	else if (deadline_ns != shown_deadline)
		fprintf(transcript, "  waits until %" PRId64 "\n", deadline_ns);
	shown_deadline = deadline_ns;
	return true;
}

static bool is(enum host_state state)
{
	return host_core_state(core) == state;
}

static bool worker_says(const struct fw_message *message)
{
	show_message("worker: ", message);
	return happen((struct host_event){.kind = HOST_EV_MESSAGE, .message = message});
}

static struct fw_message of(enum fw_kind kind)
{
	return (struct fw_message){.kind = kind, .run = 7, .host = 3, .epoch = 5};
}

static bool worker_creates(void)
{
	static const char *fragments[] = {"f", "another", "the_third"};
	static const int64_t beat_times[] = {0, 100 * MS, 250 * MS, 400 * MS, 1 * MS},
			     deaths[] = {0, 300 * MS, 3000 * MS, 1100 * MS};
	struct fw_message message = of(FW_HOST_CREATE);

	if (!is(HOST_STATE_NEW) && !draw_percent(2))
		return false;
	message.create = (struct fw_host_create){.application = "app", .fragments = fragments};
	message.create.fragment_count = 1 + draw(3);
	message.create.beat_ns = DRAW_OF(beat_times);
	message.create.dead_ns = DRAW_OF(deaths);
	message.create.lease_until_ns = draw_percent(30) ? now + 5000 * MS : 0;
	return worker_says(&message);
}

static bool worker_wires(void)
{
	static struct fw_peer peers[] = {{.host = 8, .epoch = 2, .name = "p"},
					 {.host = 9, .epoch = 3, .name = "q"}};
	struct fw_message message = of(FW_HOST_WIRE);

	if (!is(HOST_STATE_PREPARED) && !draw_percent(12))
		return false;
	message.wire.peers = peers;
	message.wire.peer_count = draw(3);
	return worker_says(&message);
}

static bool worker_starts(void)
{
	const struct fw_message message = of(FW_HOST_START);

	return (is(HOST_STATE_WIRED) || draw_percent(5)) && worker_says(&message);
}

static bool worker_stops(void)
{
	struct fw_message message = of(FW_HOST_STOP);

	if (!is(HOST_STATE_STARTED) && !is(HOST_STATE_FAILED) && !is(HOST_STATE_STARTING) &&
	    !draw_percent(15))
		return false;
	message.stop.drain_ns = draw_percent(65) ? (1 + draw(4)) * 1000 * MS : 0;
	message.stop.restarts = draw_percent(40);
	return worker_says(&message);
}

static bool worker_says_more(void)
{
	static const enum fw_kind kinds[] = {FW_HOST_SET, FW_HOST_SET,     FW_HOST_TAP,
					     FW_HOST_TAP, FW_HOST_SUSPEND, FW_HOST_SUSPEND,
					     FW_REPLY};
	struct fw_message message = of(DRAW_OF(kinds));

	if (message.kind == FW_HOST_SET)
		message.host_set.number = 1 + draw(9);
	if (message.kind == FW_HOST_TAP)
		message.host_tap.traces = draw_percent(50);
	return worker_says(&message);
}

static bool worker_beats(void)
{
	struct fw_message message = {.kind = FW_BEAT};

	message.beat.lease_until_ns = draw_percent(30) ? now + 4000 * MS : 0;
	message.beat.looks = draw(3);
	return worker_says(&message);
}

static bool worker_is_lost(void)
{
	bool breaks = draw_percent(50);

	fprintf(transcript, "connection lost%s\n", breaks ? ", broken" : "");
	return happen((struct host_event){.kind = HOST_EV_CONNECTION_LOST,
					  .text = breaks ? "a frame is too long" : ""});
}

static bool is_told_to_end(void)
{
	fprintf(transcript, "SIGTERM\n");
	return happen((struct host_event){.kind = HOST_EV_STOP});
}

static struct fw_failure some_failure(void)
{
	static const enum fragi_failure codes[] = {FRAGI_FAILURE_OPERATOR_FAILED,
						   FRAGI_FAILURE_EDGE_LOST, FRAGI_FAILURE_USAGE};

	return (struct fw_failure){DRAW_OF(codes), "it broke", "f.rx"};
}

static bool work_is_done(void)
{
	struct fw_host_result result = {0};
	struct fw_host_prepared prepared = {.pid = 17};
	struct fw_failure errors[1];
	struct host_event event = {.kind = work, .result = &result, .prepared = &prepared};
	bool fails = draw_percent(12);

	if (work == NO_WORK || draw_percent(40))
		return false;
	if (fails)
		result.failure = errors[0] = some_failure();
	prepared.ok = !fails;
	prepared.errors = errors;
	prepared.error_count = fails;
	if (draw_percent(8)) {
		event.prepared = NULL;
		event.text = "it is too large";
	}
	if (work == HOST_EV_PREPARE_DONE || work == HOST_EV_DESTROY_DONE)
		event.operators_may_hang = draw_percent(15);
	fprintf(transcript, "%s%s%s%s\n",
		work == HOST_EV_PREPARE_DONE ? "prepared"
		: work == HOST_EV_WIRE_DONE  ? "wired"
		: work == HOST_EV_START_DONE ? "started"
					     : "destroyed",
		work != HOST_EV_DESTROY_DONE && fails ? ", not well" : "",
		work == HOST_EV_PREPARE_DONE && event.prepared == NULL ? ", not to be reported"
								       : "",
		event.operators_may_hang ? ", operators may hang" : "");
	work = NO_WORK;
	return happen(event);
}

static bool peers_are_ready(void)
{
	if (work != NO_WORK || draw_percent(60) || (!is(HOST_STATE_WIRING) && !draw_percent(4)))
		return false;
	fprintf(transcript, "peers are ready\n");
	return happen((struct host_event){.kind = HOST_EV_PEERS_READY});
}

static bool run_reports(void)
{
	struct fw_host_event report = {.state = FW_STATE_RUNNING + draw(6)};

	if ((work != NO_WORK && work != HOST_EV_START_DONE) ||
	    (!is(HOST_STATE_STARTED) && !draw_percent(15)))
		return false;
	if (draw_percent(40))
		report.state = FW_STATE_IDLE;
	report.idle_rounds = draw(9);
	report.peer = draw(3);
	if (report.state == FW_STATE_FAILED || report.state == FW_STATE_PEER_LOST)
		report.failure = some_failure();
	fprintf(transcript, "the run reports %d\n", report.state);
	return happen((struct host_event){.kind = HOST_EV_RUN, .report = &report});
}

static bool run_answers(void)
{
	const struct fw_host_set_done set_done = {4, {FRAGI_FAILURE_NONE, "", ""}};
	const struct fw_tapped tapped = {0};
	bool is_set = draw_percent(50);

	if (!is(HOST_STATE_STARTED))
		return false;
	fprintf(transcript, "%s\n", is_set ? "set" : "tapped");
	return happen((struct host_event){.kind = is_set ? HOST_EV_SET_DONE : HOST_EV_TAPPED,
					  .set_done = &set_done,
					  .tapped = &tapped});
}

/* A worker that lives says so, which is of no interest by itself. */
static void beat(void)
{
	const struct fw_message message = {.kind = FW_BEAT};

	if (beats)
		happen((struct host_event){.kind = HOST_EV_MESSAGE, .message = &message});
}

static bool timer_at(int64_t at_ns)
{
	now = at_ns > now ? at_ns : now;
	fprintf(transcript, "@%" PRId64 " timer\n", now);
	return happen((struct host_event){.kind = HOST_EV_TIMER});
}

static bool time_goes_on(void)
{
	int64_t deadline_ns = host_core_deadline_ns(core);
	uint32_t times = draw(3);

	beat();
	if (draw_percent(10)) /* this process did not run */
		return timer_at(deadline_ns + draw(900) * MS);
	if ((!beats || is(HOST_STATE_WIRING) || is(HOST_STATE_ENDING)) && draw_percent(40))
		times = 45; /* until somebody waits no longer */
	for (; times > 0 && !ended; times--) {
		timer_at(host_core_deadline_ns(core));
		if (!ended)
			beat();
	}
	return true;
}

static bool time_is_between(void)
{
	int64_t left_ns = host_core_deadline_ns(core) - now;

	now += draw_percent(50) ? left_ns / 2 : left_ns > 0 ? left_ns - 1 : 0;
	return draw_percent(50) || timer_at(now);
}

static const struct drawn_event events[] = {
	{60, worker_creates, true},  {40, worker_wires, true}, {40, worker_starts, true},
	{7, worker_stops},           {7, worker_says_more},    {9, worker_beats},
	{1, worker_is_lost},         {1, is_told_to_end},      {40, work_is_done, true},
	{30, peers_are_ready, true}, {14, run_reports},        {4, run_answers},
	{11, time_goes_on, true},    {4, time_is_between},
};

static void live(uint64_t seed)
{
	const size_t count = sizeof(events) / sizeof(events[0]);
	uint32_t weights[DRAWN_EVENTS_MAX];
	struct host_config config = {0};

	draw_from(seed);
	draw_weights(events, count, weights);
	now = 1000 * MS;
	shown_deadline = 0;
	ended = false;
	work = NO_WORK;
	beats = draw_percent(80);
	config.beat_ns = draw_percent(30) ? 120 * MS : 0;
	config.dead_ns = draw_percent(30) ? 2000 * MS : 0;
	config.wire_ns = draw_percent(40) ? 2000 * MS : 0;
	fprintf(transcript, "life %d\n", (int)seed);
	cr_assert_eq(host_core_create(&config, now, &core), 0);
	for (int i = 0; i < STEPS && !ended; i++)
		draw_event(events, weights, count);
	fprintf(transcript, "state %d\n", host_core_state(core));
	cr_expect_eq(host_core_illegal_transitions(core), 0);
	host_core_destroy(core);
}

Test(host_lives, are_as_they_were)
{
	char *all;
	size_t bytes;
	FILE *out = open_memstream(&all, &bytes);

	for (uint64_t seed = 1; seed <= LIVES; seed++) {
		transcript_begin_life(seed <= LIVES_SHOWN);
		live(seed);
		transcript_end_life(out, (int)seed, seed <= LIVES_SHOWN);
	}
	fclose(out);
	expected_compare("host/lives", all);
	free(all);
	transcript_free_bodies();
}
