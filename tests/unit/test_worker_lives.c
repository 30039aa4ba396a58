// SPDX-License-Identifier: Apache-2.0
#include "../expected.h"
#include "worker_lives.h"

/*
 * Drawn lives of a worker: whatever its driver, its hosts and time may do, in any order that can
 * happen, and all that its core answers.
 */
static bool from(const char *who, struct wrk_event event)
{
	show_time();
	show_message(who, event.message);
	happen(event);
	return true;
}

static bool is_attached(void)
{
	return wrk_core_session(core) == WRK_SESSION_ATTACHED;
}

static bool driver_says(const struct fw_message *message)
{
	if (!is_attached())
		return false;
	return from("driver: ", (struct wrk_event){.kind = WRK_EVENT_DRIVER_MESSAGE,
						   .connection = seen_connection,
						   .message = message});
}

/* A host that is there, whose socket may bring something; NULL: none. */
static struct drawn_host *host_up(void)
{
	for (int tries = 0; host_count > 0 && tries < 8; tries++) {
		struct drawn_host *host = &hosts[draw(host_count)];

		if (host->is_spawned && !host->is_gone)
			return host;
	}
	return NULL;
}

static struct drawn_host *host_spawning(void)
{
	for (uint32_t i = 0; i < host_count; i++)
		if (!hosts[i].is_spawned && !hosts[i].is_gone)
			return &hosts[i];
	return NULL;
}

static bool host_says(const struct drawn_host *host, const struct fw_message *message)
{
	char who[32];

	snprintf(who, sizeof(who), "host %u: ", host->id);
	return from(who, (struct wrk_event){.kind = WRK_EVENT_HOST_MESSAGE,
					    .host = host->id,
					    .message = message});
}

static struct fw_message of(const struct drawn_host *host, enum fw_kind kind)
{
	return (struct fw_message){
		.kind = kind, .run = host->run, .host = host->number, .epoch = host->epoch};
}

/* A message of the driver about a host, which may be another epoch of it, or none at all. */
static bool about(enum fw_kind kind, struct fw_message *out)
{
	struct drawn_host *host = host_up();

	if (host == NULL && host_count > 0 && draw_percent(40))
		host = &hosts[draw(host_count)];
	if (host == NULL)
		return false;
	*out = of(host, kind);
	if (draw_percent(6))
		out->epoch += draw(2) == 0 ? 1 : UINT64_MAX;
	return true;
}

static bool it_connects(void)
{
	if (wrk_core_session(core) != WRK_SESSION_CONNECTING)
		return false;
	if (draw_percent(7))
		life.proof = draw_percent(50) ? "key a" : draw_percent(50) ? "key b" : NULL;
	show_time();
	fprintf(transcript, "connected, proof %s\n", life.proof != NULL ? life.proof : "none");
	happen((struct wrk_event){.kind = WRK_EVENT_CONNECTED,
				  .connection = seen_connection - (draw_percent(3) ? 1 : 0),
				  .text = "10.0.0.2",
				  .proof = life.proof});
	return true;
}

static bool it_does_not_connect(void)
{
	static const enum fragi_failure failures[] = {
		FRAGI_FAILURE_NONE,        FRAGI_FAILURE_NONE,        FRAGI_FAILURE_NONE,
		FRAGI_FAILURE_NONE,        FRAGI_FAILURE_KEY_REFUSED, FRAGI_FAILURE_KEY_REFUSED,
		FRAGI_FAILURE_USER_REFUSED};
	enum fragi_failure failure = DRAW_OF(failures);

	if (wrk_core_session(core) != WRK_SESSION_CONNECTING)
		return false;
	failure = draw_percent(3) ? FRAGI_FAILURE_DRIVER_LOST : failure;
	show_time();
	fprintf(transcript, "cannot connect, failure %d\n", failure);
	happen((struct wrk_event){.kind = WRK_EVENT_CONNECT_FAILED,
				  .connection = seen_connection,
				  .failure = failure,
				  .text = failure != 0 ? "it refused" : "connection refused"});
	return true;
}

static bool driver_goes(void)
{
	enum wrk_session session = wrk_core_session(core);

	if (session != WRK_SESSION_HELLO_SENT && session != WRK_SESSION_ATTACHED)
		return false;
	show_time();
	fprintf(transcript, "the driver goes\n");
	happen((struct wrk_event){.kind = WRK_EVENT_DRIVER_LOST,
				  .connection = seen_connection - (draw_percent(5) ? 1 : 0),
				  .text = "end of file"});
	return true;
}

static bool hello_answered(void)
{
	static const int64_t beats[] = {0,        250 * MS, 250 * MS,   250 * MS,
					250 * MS, 100 * MS, 100000 * MS},
			     deaths[] = {0, 3000 * MS, 3000 * MS, 3000 * MS, 300 * MS};
	struct fw_message message = {.kind = FW_WELCOME};

	if (wrk_core_session(core) != WRK_SESSION_HELLO_SENT)
		return false;
	if (draw_percent(6))
		return driver_goes();
	if (draw_percent(10)) {
		message = (struct fw_message){.kind = draw_percent(70) ? FW_REFUSED : FW_BEAT};
		if (message.kind == FW_REFUSED)
			message.refused.failure = some_failure();
	} else {
		life.keeps_hosts ^= draw_percent(5);
		message.welcome = (struct fw_welcome){.version = "0.1.0",
						      .takes_lines = life.takes_lines,
						      .keeps_hosts = life.keeps_hosts};
		message.welcome.session = 71 + draw(2);
		message.welcome.name = draw_percent(80) ? "a" : "a#2";
		message.welcome.beat_ns = DRAW_OF(beats);
		message.welcome.dead_ns = DRAW_OF(deaths);
		message.welcome.secret[0] = (uint8_t)(1 + draw(2));
	}
	return from("driver: ", (struct wrk_event){.kind = WRK_EVENT_DRIVER_MESSAGE,
						   .connection = seen_connection,
						   .message = &message});
}

static bool driver_creates(void)
{
	static const char *const applications[] = {"none", "app", "other", "third"};
	static const char *names[] = {"f", "g", "a_fragment"}, *transports[] = {"ucx"};
	static const int64_t leases[] = {0, 0, 0, 2000 * MS, 10000 * MS};
	struct fw_message message = {.kind = FW_HOST_CREATE};
	struct fw_host_create *create = &message.create;
	struct drawn_host *host = host_up();

	message.run = draw_percent(15) ? 1 + draw(3) : 1;
	message.host = 1 + draw(draw_percent(20) ? 3 : 2);
	if (last_gone != NULL && draw_percent(30)) /* it is started again */
		message = of(last_gone, FW_HOST_CREATE);
	else if (host_count > 0 && draw_percent(20)) /* of one that perhaps is gone */
		message = of(&hosts[draw(host_count)], FW_HOST_CREATE);
	else if (host != NULL && draw_percent(40))
		message = of(host, FW_HOST_CREATE);
	if (message.epoch == 0 || draw_percent(85))
		message.epoch = ++last_epoch;
	create->application = applications[message.run];
	create->source = "the text of a graph";
	create->source_bytes = draw_percent(30) ? 0 : 4 + draw(3);
	create->fragments = names;
	create->fragment_count = draw_percent(70) ? 1 : 1 + draw(3);
	create->transports = transports;
	create->transport_count = draw_percent(10);
	create->may_restart = draw_percent(50);
	create->is_beside = message.run != 2 && draw_percent(25);
	create->is_moved = draw_percent(15);
	create->restarts = draw_percent(30) ? 1 + draw(3) : 0;
	create->memory = "memory";
	create->has_last_source = draw_percent(20);
	create->lease_ns = DRAW_OF(leases);
	return driver_says(&message);
}

static bool driver_requests(void)
{
	static const enum fw_kind kinds[] = {FW_HOST_WIRE,  FW_HOST_START, FW_HOST_WIRE,
					     FW_HOST_START, FW_HOST_SET,   FW_HOST_SUSPEND,
					     FW_HOST_LOOK,  FW_HOST_TAP};
	static struct fw_peer peers[2];
	struct fw_message message;

	if (!is_attached() || !about(DRAW_OF(kinds), &message))
		return false;
	if (message.kind == FW_HOST_WIRE) {
		peers[0] = (struct fw_peer){.host = 8, .epoch = last_epoch + draw(3), .name = "p"};
		peers[1] = (struct fw_peer){.host = 9, .epoch = last_epoch, .name = "q"};
		message.wire.peers = peers;
		message.wire.peer_count = draw(3);
		last_epoch = message.wire.peer_count > 0 ? peers[0].epoch : last_epoch;
	} else if (message.kind == FW_HOST_SUSPEND) {
		message.suspend = (struct fw_host_suspend){.peer = 8, .peer_epoch = 2};
	} else if (message.kind == FW_HOST_LOOK) {
		message.host_look.for_ns = draw(3) * 700 * MS;
	} else if (message.kind == FW_HOST_SET) {
		message.host_set.number = 1 + draw(9);
	}
	return driver_says(&message);
}

static bool driver_stops(void)
{
	struct fw_message message;

	if (!is_attached() || !about(draw_percent(70) ? FW_HOST_STOP : FW_HOST_KILL, &message))
		return false;
	if (message.kind == FW_HOST_STOP && draw_percent(50))
		message.stop.drain_ns = (1 + draw(5)) * 1000 * MS;
	message.stop.restarts = draw_percent(30);
	message.stop.exit_code = draw_percent(40) ? 1 + (int)draw(4) : 0;
	if (draw_percent(40)) {
		message.stop.reason = draw_percent(70) ? "its peer failed" : "";
		message.stop.failure = FRAGI_FAILURE_EDGE_LOST;
	}
	return driver_says(&message);
}

static bool driver_moves(void)
{
	static const enum fw_kind kinds[] = {FW_HOST_PAST, FW_HOST_SAVED, FW_HOST_ADOPTED};
	struct fw_message message;

	if (!is_attached() || !about(DRAW_OF(kinds), &message))
		return false;
	if (message.kind == FW_HOST_PAST) {
		message.stats = page_of(draw(30), 7);
		message.stats.final = draw_percent(70);
	} else if (message.kind == FW_HOST_SAVED) {
		message.saved = (struct fw_host_saved){.bytes = "saved", .size = 1 + draw(5)};
		message.saved.offset = 8 * draw(9);
	} else {
		message.adopted.is_inexact = draw_percent(40);
	}
	return driver_says(&message);
}

static bool driver_beats(void)
{
	struct fw_message message = {.kind = FW_BEAT};

	message.beat.heard_ns =
		draw_percent(70) ? sent_ns : sent_ns + ((int)draw(3) - 1) * 300 * MS;
	message.beat.leaves = draw_percent(5);
	return driver_says(&message);
}

static bool driver_ends_application(void)
{
	struct fw_message message = {.kind = FW_APP_ENDED, .run = 1};

	if (draw_percent(30))
		message.run = 1 + draw(3);
	message.app_ended.exit_code = draw_percent(50) ? 0 : 1 + (int)draw(4);
	return driver_says(&message);
}

/* Without the refusals that end a session, most of the time. */
static bool driver_says_seldom_things(void)
{
	static const enum fw_kind kinds[] = {FW_EXAMINE, FW_EXAMINE, FW_EXAMINE,
					     FW_REFUSED, FW_REFUSED, FW_REPLY};
	struct fw_message message = {.kind = DRAW_OF(kinds)};

	if (message.kind == FW_REFUSED) {
		message.refused.failure = some_failure();
		if (draw_percent(50))
			message.refused.failure.code = FRAGI_FAILURE_KEY_REFUSED;
	}
	return driver_says(&message);
}

static bool host_comes(void)
{
	struct drawn_host *host = host_spawning();
	struct wrk_event event = {.kind = WRK_EVENT_HOST_SPAWNED};

	if (host == NULL)
		return false;
	event.host = host->id;
	show_time();
	if (draw_percent(6)) {
		host->is_gone = true;
		event.kind = WRK_EVENT_HOST_FAILED;
		event.text = "no such file";
		fprintf(transcript, "host %u cannot be spawned\n", host->id);
	} else {
		host->is_spawned = true;
		event.pid = 4000 + (int)host->id;
		event.is_interpreter = draw_percent(20);
		fprintf(transcript, "host %u is there%s\n", host->id,
			event.is_interpreter ? ", an interpreter" : "");
	}
	happen(event);
	return true;
}

static bool host_has_prepared(void)
{
	static struct fw_port out = {.name = "o", .type = "i64", .dir = FRAG_OUT},
			      in = {.name = "i", .type = "i64", .dir = FRAG_IN};
	static struct fw_op ops[] = {{.name = "tx", .type = "t", .ports = &out, .port_count = 1},
				     {.name = "detect", .type = "d", .ports = &in, .port_count = 1},
				     {.name = "rx", .type = "r"}};
	static struct fw_fragment fragments[] = {{.name = "f", .ops = ops, .op_count = 3},
						 {.name = "g", .ops = ops, .op_count = 2}};
	static struct fw_inner_flow flows[] = {
		{.to_op = 1, .capacity = 4, .policy = FRAG_POLICY_BLOCK}};
	static struct fw_failure errors[2];
	struct drawn_host *host = host_up();
	struct fw_message message;

	if (host == NULL)
		return false;
	message = of(host, FW_HOST_PREPARED);
	message.prepared.fragments = fragments;
	message.prepared.flows = flows;
	message.prepared.ok = draw_percent(80);
	message.prepared.fragment_count = draw(3);
	if (message.prepared.ok) {
		message.prepared.flow_count = message.prepared.fragment_count > 0 ? draw(2) : 0;
	} else {
		errors[0] = some_failure();
		errors[1] = some_failure();
		message.prepared.errors = errors;
		message.prepared.error_count = draw(3);
	}
	return host_says(host, &message);
}

static bool host_reports(void)
{
	static const enum fw_kind kinds[] = {FW_HOST_WIRED,  FW_HOST_STARTED, FW_HOST_EVENT,
					     FW_HOST_EVENT,  FW_HOST_EVENT,   FW_HOST_SET_DONE,
					     FW_HOST_TAPPED, FW_HOST_SET_DONE};
	struct drawn_host *host = host_up();
	struct fw_message message;

	if (host == NULL)
		return false;
	message = of(host, DRAW_OF(kinds));
	if (draw_percent(2)) /* it may not */
		message.kind = FW_HOST_STOP;
	if (draw_percent(2))
		message.epoch++;
	if (message.kind == FW_HOST_EVENT) {
		message.event.state = FW_STATE_RUNNING + draw(6);
		message.event.peer = draw(3);
		message.event.idle_rounds = draw(3);
		if (message.event.state == FW_STATE_FAILED ||
		    message.event.state == FW_STATE_PEER_LOST)
			message.event.failure = some_failure();
	} else if (message.kind == FW_HOST_SET_DONE) {
		message.host_set_done.number = 1 + draw(9);
	} else if (message.kind != FW_HOST_TAPPED && message.kind != FW_HOST_STOP &&
		   draw_percent(25)) {
		message.result.failure = some_failure();
	}
	return host_says(host, &message);
}

static bool host_is_sampled(void)
{
	struct drawn_host *host = host_up();
	struct fw_host_stats stats;

	if (host == NULL)
		return false;
	host->counted = draw_percent(60) ? host->counted : draw(30);
	stats = page_of(host->counted, 8 + draw(2));
	show_time();
	for (uint32_t times = draw_percent(15) ? 5 : 1; times > 0; times--) {
		fprintf(transcript, "page %u of host %u\n", host->counted, host->id);
		happen((struct wrk_event){
			.kind = WRK_EVENT_HOST_SAMPLED, .host = host->id, .stats = &stats});
	}
	return true;
}

static bool host_writes(void)
{
	static const char *const texts[] = {
		"2026-11-22T20:24:04.159Z warn  host app/f.rx: it is slow",
		"f.tx: a line",
		"anything",
		"",
		"2026-11-22T20:24:04.159Z error run app/f: bad\x01",
		"not a name!.tx: a line"};
	const char *lines[FW_LOG_ROWS_MAX];
	struct drawn_host *host = host_up();
	struct wrk_event event = {.kind = WRK_EVENT_HOST_LINES, .lines = lines};

	if (host == NULL)
		return false;
	event.host = host->id;
	event.line_count = draw_percent(60) ? 1 + draw(2) : 60 + draw(197);
	event.left_out = draw_percent(20) ? draw(9) : 0;
	for (uint32_t i = 0; i < event.line_count; i++)
		lines[i] = event.line_count > LONG_ROWS ? "many" : DRAW_OF(texts);
	show_time();
	fprintf(transcript, "host %u writes %u lines, and %u are left out: %s\n", host->id,
		event.line_count, event.left_out, lines[0][0] == '2' ? lines[0] + 25 : lines[0]);
	happen(event);
	return true;
}

static bool host_hangs_up(void)
{
	struct drawn_host *host = host_up();
	bool cut = draw_percent(50);

	if (host == NULL)
		return false;
	show_time();
	fprintf(transcript, "host %u is %s\n", host->id, cut ? "cut" : "not connected any more");
	happen((struct wrk_event){.kind = WRK_EVENT_HOST_CONNECTION_LOST,
				  .host = host->id,
				  .cut = cut,
				  .text = cut ? "its frame is broken" : "it closed its socket"});
	return true;
}

static bool host_ends(void)
{
	struct drawn_host *host = host_up();
	struct wrk_exited how;

	if (host == NULL ||
	    (wrk_core_host_state(core, host->id) == WRK_HOST_UP && draw_percent(60)))
		return false;
	how = some_exit(host);
	host->is_gone = true;
	last_gone = host;
	show_time();
	fprintf(transcript, "host %u ends, status %d, signal %d%s%s%s%s%s\n", host->id, how.status,
		how.signal, how.memory_limit_bytes > 0 ? ", over its limit" : "",
		how.core_file != NULL ? ", core file" : "", how.stats == NULL ? ", no page" : "",
		how.note != NULL ? ", note of " : "",
		how.note == NULL             ? ""
		: how.note->cause[0] != '\0' ? how.note->cause
					     : how.note->op);
	happen((struct wrk_event){.kind = WRK_EVENT_HOST_EXITED, .host = host->id, .exited = &how});
	return true;
}

static bool node_changes(void)
{
	static struct fw_message examined = {.kind = FW_EXAMINED};
	uint32_t which = draw(4);

	show_time();
	fprintf(transcript, "%s\n",
		which == 0   ? "the network is missing"
		: which == 1 ? "the network is there"
		: which == 2 ? "GPUs are found"
			     : "it was examined");
	if (which == 0)
		happen((struct wrk_event){.kind = WRK_EVENT_NETWORK, .text = "eth1 has none"});
	else if (which == 1)
		happen((struct wrk_event){.kind = WRK_EVENT_NETWORK});
	else if (which == 2)
		happen((struct wrk_event){.kind = WRK_EVENT_GPUS,
					  .has = (const int64_t[FRAGI_AMOUNTS]){
						  [FRAGI_AMOUNT_GPU] = draw(3) * FRAGI_AMOUNT_ONE,
						  [FRAGI_AMOUNT_GPU_MEMORY] = 9}});
	else
		happen((struct wrk_event){.kind = WRK_EVENT_EXAMINED, .message = &examined});
	return true;
}

static bool told_to_end(void)
{
	if (steps_left > STEPS / 4)
		return false;
	show_time();
	is_stopped = true;
	fprintf(transcript, "told to end\n");
	happen((struct wrk_event){.kind = WRK_EVENT_STOP});
	return true;
}

/* Those that live say so, which is of no interest by itself. */
static void all_beat(void)
{
	const struct fw_message message = {.kind = FW_BEAT};

	for (uint32_t i = 0; life.beats && i < host_count; i++)
		if (hosts[i].is_spawned && !hosts[i].is_gone)
			happen((struct wrk_event){.kind = WRK_EVENT_HOST_MESSAGE,
						  .host = hosts[i].id,
						  .message = &message});
	if (life.beats && is_attached())
		happen((struct wrk_event){.kind = WRK_EVENT_DRIVER_MESSAGE,
					  .connection = seen_connection,
					  .message = &message});
}

static bool timer_at(int64_t at_ns, bool rings)
{
	if (wrk_core_deadline_ns(core) == INT64_MAX)
		return false;
	now = at_ns > now ? at_ns : now;
	show_time();
	if (!rings)
		return true;
	fprintf(transcript, "timer\n");
	happen((struct wrk_event){.kind = WRK_EVENT_TIMER});
	return true;
}

static bool time_goes_on(void)
{
	int64_t deadline_ns = wrk_core_deadline_ns(core);

	if (draw_percent(70))
		all_beat();
	if (draw_percent(75))
		return timer_at(deadline_ns, true);
	if (draw_percent(50))
		return timer_at(deadline_ns - 1, draw_percent(50));
	return timer_at(now + (deadline_ns - now) / 2, false);
}

/* This process did not run, or nobody is heard for some time. */
static bool time_is_lost(void)
{
	int64_t late_ns = draw(6000) * MS;

	if (wrk_core_deadline_ns(core) == INT64_MAX)
		return false;
	if (draw_percent(50))
		return timer_at(wrk_core_deadline_ns(core) + late_ns, draw_percent(60));
	for (uint32_t times = draw(16); times > 0; times--)
		timer_at(wrk_core_deadline_ns(core), true);
	return true;
}

static const struct drawn_event events[] = {
	{200, it_connects, true},
	{80, it_does_not_connect, true},
	{300, hello_answered, true},
	{3, driver_goes},
	{16, driver_creates, true},
	{14, driver_requests},
	{7, driver_stops},
	{12, driver_moves},
	{6, driver_beats},
	{2, driver_ends_application},
	{2, driver_says_seldom_things},
	{40, host_comes, true},
	{12, host_has_prepared},
	{12, host_reports},
	{8, host_is_sampled},
	{6, host_writes},
	{2, host_hangs_up},
	{8, host_ends, true},
	{2, node_changes},
	{2, told_to_end},
	{14, time_goes_on, true},
	{2, time_is_lost},
};

/* What is kept of its hosts shows when the driver comes back. */
static void end_life(void)
{
	for (uint32_t times = draw(12); is_stopped && times > 0 && !ended; times--)
		timer_at(wrk_core_deadline_ns(core), true);
	if (is_attached() && !ended)
		driver_goes();
	for (int tries = 0; tries < 20 && !ended && !is_attached(); tries++) {
		life.keeps_hosts = true;
		if (!hello_answered() && !it_connects())
			timer_at(wrk_core_deadline_ns(core), true);
	}
	for (int times = 0; times < 2 && !ended; times++)
		told_to_end();
	for (uint32_t i = 0; i < 3 * HOSTS_MAX && !ended; i++)
		if (!host_comes() && !host_ends())
			timer_at(wrk_core_deadline_ns(core), true);
	cr_expect(ended);
	fprintf(transcript, "state %016" PRIx64 "\n", state_sum);
	finish();
}

Test(worker_lives, are_as_they_were)
{
	const size_t count = sizeof(events) / sizeof(events[0]);
	uint32_t weights[DRAWN_EVENTS_MAX];
	char *all;
	size_t bytes;
	FILE *out = open_memstream(&all, &bytes);

	for (uint64_t seed = 1; seed <= LIVES; seed++) {
		transcript_begin_life(seed <= LIVES_SHOWN);
		begin_life(seed);
		draw_weights(events, count, weights);
		for (steps_left = STEPS; steps_left > 0 && !ended; steps_left--)
			draw_event(events, weights, count);
		end_life();
		transcript_end_life(out, (int)seed, seed <= LIVES_SHOWN);
	}
	fclose(out);
	expected_compare("worker/lives", all);
	free(all);
	transcript_free_bodies();
}
