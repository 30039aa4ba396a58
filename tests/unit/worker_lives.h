/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_WORKER_LIVES_H
#define TESTS_UNIT_WORKER_LIVES_H

#include <base/crash_note.h>
#include <frag/operator.h>

#include "draw.h"
#include "transcript.h"
#include "worker_state.h"
#include "worker_world.h"

/* Drawn lives of a worker: what is known of them, how they begin, and what their text shows. */
#define LIVES 800
#define LIVES_SHOWN 32
#define STEPS 120
#define HOSTS_MAX 256
#define LONG_ROWS 3 /* of HOST_LINES, which are shown */

static struct {
	bool once, keeps_hosts, takes_lines, beats;
	int64_t beat_ns, dead_ns;
	const char *proof;
} life;
static struct drawn_host {
	uint32_t id, number;
	uint64_t run, epoch;
	bool is_spawned, is_gone;
	uint32_t counted; /* seed of its last page */
} hosts[HOSTS_MAX];
static uint32_t host_count;
static const struct drawn_host *last_gone;
static uint64_t last_epoch;
static int64_t shown_now, shown_deadline, sent_ns;
static bool ended, is_stopped, took_lines, was_refused;
static int steps_left;
static const struct fw_message *given; /* of the present step */

static inline void show_message(const char *prefix, const struct fw_message *message)
{
	const struct fw_host_lines *lines = &message->host_lines;

	fprintf(transcript, "%s%s", prefix, fw_kind_name(message->kind));
	if (message->run != 0)
		fprintf(transcript, " %d/%u/%d", (int)message->run, message->host,
			(int)message->epoch);
	if (message == given && prefix[0] == ' ')
		fprintf(transcript, " as it is\n");
	else if (message->kind == FW_HOST_LINES && lines->count > LONG_ROWS)
		fprintf(transcript, ": %u lines, the last is %s, left_out: %d\n", lines->count,
			lines->rows[lines->count - 1].text, (int)lines->left_out);
	else
		transcript_body_once(message);
}

/* What a worker says of itself does not change: the first time in a life is enough. */
static inline void show_hello(const char *to, const struct fw_message *message)
{
	struct fw_message again = *message;

	cr_expect_eq(message->hello.minor, FW_PROTOCOL_MINOR);
	again.hello.minor = 0; /* not shown: a new one changes no line */
	if (message->hello.session != 0) {
		cr_expect_eq(message->hello.has[FRAGI_AMOUNT_CPU], 3 * FRAGI_AMOUNT_ONE);
		again.hello = (struct fw_hello){.session = message->hello.session,
						.waits_for = message->hello.waits_for,
						.reports = message->hello.reports,
						.last_epoch = message->hello.last_epoch,
						.last_name = message->hello.last_name};
		for (int i = 0; i < FRAGI_AMOUNTS; i++)
			if (fragi_amount_is_surveyed((enum fragi_amount)i))
				again.hello.has[i] = message->hello.has[i];
		memcpy(again.hello.secret, message->hello.secret, FW_SECRET_BYTES);
	}
	show_message(to, &again);
	sent_ns = now;
}

static inline void show_action(const struct wrk_action *a)
{
	char to[32];

	switch (a->kind) {
	case WRK_DO_CONNECT:
		fprintf(transcript, "  connect %d\n", (int)a->connection);
		break;
	case WRK_DO_DISCONNECT:
		fprintf(transcript, "  disconnect %d\n", (int)a->connection);
		break;
	case WRK_DO_SEND_DRIVER:
		snprintf(to, sizeof(to), "  to driver %d: ", (int)a->connection);
		if (a->message->kind == FW_HELLO)
			show_hello(to, a->message);
		else
			show_message(to, a->message);
		if (a->message->kind == FW_BEAT)
			sent_ns = a->message->beat.sent_ns;
		break;
	case WRK_DO_REPORTER_SESSION:
		fprintf(transcript, "  reporter: session %d of %d\n",
			(int)a->message->welcome.session, (int)a->connection);
		break;
	case WRK_DO_REPORTER_HOST:
		fprintf(transcript, "  reporter: host %u\n", a->host);
		break;
	case WRK_DO_SPAWN:
		snprintf(to, sizeof(to), "  spawn %u: ", a->host);
		show_message(to, a->message);
		if (a->lease_until_ns != 0)
			fprintf(transcript, "    until %" PRId64 "\n", a->lease_until_ns);
		cr_assert_lt(host_count, HOSTS_MAX);
		hosts[host_count++] = (struct drawn_host){.id = a->host,
							  .run = a->message->run,
							  .number = a->message->host,
							  .epoch = a->message->epoch};
		break;
	case WRK_DO_SEND_HOST:
		snprintf(to, sizeof(to), "  to host %u: ", a->host);
		show_message(to, a->message);
		break;
	case WRK_DO_SIGNAL_HOST:
		fprintf(transcript, "  signal %d to %u\n", a->signal, a->host);
		break;
	case WRK_DO_SAMPLE_HOST:
		fprintf(transcript, "  sample %u%s\n", a->host, a->looks ? " with facts" : "");
		break;
	case WRK_DO_SEND_SAVED:
		fprintf(transcript, "  send saved of %d/%u/%d to %d\n", (int)a->run, a->number,
			(int)a->epoch, (int)a->connection);
		break;
	case WRK_DO_TAKE_SAVED:
		show_message("  take saved: ", a->message);
		break;
	case WRK_DO_PROMOTE_SAVED:
	case WRK_DO_FORGET_SAVED:
		fprintf(transcript, "  %s saved of %d/%u/%d\n",
			a->kind == WRK_DO_PROMOTE_SAVED ? "promote" : "forget", (int)a->run,
			a->number, (int)a->epoch);
		break;
	case WRK_DO_EXAMINE:
		fprintf(transcript, "  examine\n");
		break;
	case WRK_DO_LOG:
		fprintf(transcript, "  %s: %s%s%s\n", fragi_log_level_name((int)a->level),
			a->subject != NULL ? a->subject : "", a->subject != NULL ? ": " : "",
			a->text);
		break;
	case WRK_DO_EXIT:
		fprintf(transcript, "  exit %d\n", a->exit_code);
		ended = true;
		break;
	}
}

static inline void show_time(void)
{
	if (now != shown_now)
		fprintf(transcript, "@%" PRId64 "\n", now);
	shown_now = now;
}

/* What came of it. */
static inline void happen(struct wrk_event event)
{
	int64_t deadline_ns;

	given = event.message;
	cr_assert_eq(step(event), 0);
	for (size_t i = 0; i < actions.count; i++)
		show_action(&actions.items[i]);
	given = NULL;
	if (wrk_core_takes_lines(core) != took_lines)
		fprintf(transcript, "  takes lines: %d\n", !took_lines);
	took_lines = wrk_core_takes_lines(core);
	if ((wrk_core_refusal(core) != NULL) != was_refused)
		fprintf(transcript, "  refused: %s\n", was_refused ? "no" : wrk_core_refusal(core));
	was_refused = wrk_core_refusal(core) != NULL;
	deadline_ns = wrk_core_deadline_ns(core);
	if (deadline_ns != shown_deadline && deadline_ns == INT64_MAX)
		fprintf(transcript, "  waits\n");
	else if (deadline_ns != shown_deadline)
		fprintf(transcript, "  waits until %" PRId64 "\n", deadline_ns);
	shown_deadline = deadline_ns;
	state_of_worker(core);
}

static inline struct fw_failure some_failure(void)
{
	static const enum fragi_failure codes[] = {
		FRAGI_FAILURE_OPERATOR_FAILED, FRAGI_FAILURE_USAGE, FRAGI_FAILURE_LIBRARY_MISSING,
		FRAGI_FAILURE_EDGE_LOST, FRAGI_FAILURE_START_TIMEOUT};
	struct fw_failure failure = {DRAW_OF(codes), "it broke", ""};

	if (draw_percent(50))
		failure.op = "f.rx";
	return failure;
}

/* A page; the same seed makes the same one, but for its times. */
static inline struct fw_host_stats page_of(uint32_t seed, uint64_t time_ns)
{
	static struct fw_op_stats ops[5];
	static struct fragi_flow_stats flows[2];
	static struct fragi_pool_stats pools[1];
	struct fw_host_stats stats = {.ops = ops,
				      .op_count = 1 + seed % 5,
				      .flows = flows,
				      .flow_count = seed / 5 % 3,
				      .pools = pools,
				      .pool_count = seed / 15 % 2};

	for (uint32_t i = 0; i < 5; i++)
		ops[i] = (struct fw_op_stats){.state = seed % 3,
					      .running = (seed >> i & 1) != 0,
					      .ticks = seed % 7 * 10 + i,
					      .time_ns = time_ns,
					      .held_back = seed % 2,
					      .use_busy = time_ns};
	for (uint32_t i = 0; i < 2; i++) {
		flows[i] = (struct fragi_flow_stats){
			.sent = 5 + seed % 4, .delivered = 4 + i, .input_ns = time_ns};
		flows[i].tx_dropped[0] = seed % 2;
		flows[i].rx_dropped[FRAGI_DROP_STOPPED] = i;
	}
	pools[0] = (struct fragi_pool_stats){8, 64, seed % 8, 0, time_ns};
	return stats;
}

static inline struct wrk_exited some_exit(const struct drawn_host *host)
{
	static const int statuses[] = {0, 0, 1, 3, 7},
			 signals[] = {0,       0,       SIGSEGV, SIGBUS,  SIGABRT,
				      SIGABRT, SIGTERM, SIGKILL, SIGKILL, 40};
	static const char *lines[] = {"last", "words"};
	static struct fragi_crash_note note;
	static struct fw_host_stats stats;
	enum wrk_host_state state = wrk_core_host_state(core, host->id);
	struct wrk_exited how = {.signal = DRAW_OF(signals), .lines = lines};

	how.line_count = draw(3);
	if (state == WRK_HOST_KILLED && draw_percent(70))
		how.signal = SIGKILL;
	if (state == WRK_HOST_STOPPING && draw_percent(75))
		how.signal = draw_percent(30) ? SIGKILL : draw(2) == 0 ? SIGTERM : 0;
	if (how.signal == 0)
		how.status = DRAW_OF(statuses);
	if (how.signal == SIGKILL && draw_percent(30))
		how.memory_limit_bytes = UINT64_C(512) << 20;
	if (how.signal != 0 && draw_percent(30))
		how.core_file = "its core file is /tmp/core";
	if (draw_percent(80)) {
		stats = page_of(host->counted + draw(2), 9);
		how.stats = &stats;
	}
	if (how.signal == 0 ? draw_percent(15) : draw_percent(45)) {
		static const enum fragi_call_kind calls[] = {FRAGI_CALL_COMPUTE, FRAGI_CALL_COMPUTE,
							     FRAGI_CALL_SETUP, FRAGI_CALL_STOP};

		note = (struct fragi_crash_note){.tick = draw(50)};
		note.callback = DRAW_OF(calls);
		if (draw_percent(70))
			snprintf(note.op, sizeof(note.op), "f.detect");
		if (draw_percent(25))
			snprintf(note.cause, sizeof(note.cause), "UCX gave up");
		how.note = &note;
	}
	return how;
}

static inline void begin_life(uint64_t seed)
{
	static const char *labels[] = {"room=1", "gpu=no"}, *fragments[] = {"f", "app/g"};
	struct wrk_config config = {.name = "a",
				    .fragments = fragments,
				    .driver = "driver:1",
				    .node = "boot",
				    .clock = "clock",
				    .memory = "memory",
				    .version = "0.1.0",
				    .has = {[FRAGI_AMOUNT_CPU] = 3 * FRAGI_AMOUNT_ONE,
					    [FRAGI_AMOUNT_MEMORY] = 5,
					    [FRAGI_AMOUNT_SHARED_MEMORY] = 6,
					    [FRAGI_AMOUNT_GPU_MEMORY] = 7},
				    .labels = labels};

	draw_from(seed);
	state_begin();
	memset(&life, 0, sizeof(life));
	memset(hosts, 0, sizeof(hosts));
	host_count = 0;
	last_gone = NULL;
	last_epoch = 0;
	ended = is_stopped = took_lines = was_refused = false;
	now = 1000 * MS;
	shown_now = shown_deadline = sent_ns = 0;
	life.once = draw_percent(25);
	life.keeps_hosts = draw_percent(80);
	life.takes_lines = draw_percent(60);
	life.beats = draw_percent(80);
	life.proof = draw_percent(80) ? "key a" : NULL;
	config.once = life.once;
	config.worker_address = draw_percent(70) ? "" : "10.1.1.1";
	config.fragment_count = draw(3);
	config.label_count = draw(3);
	config.has[FRAGI_AMOUNT_GPU] = draw(2) * FRAGI_AMOUNT_ONE;
	config.no_memory = draw_percent(20) ? "no memfd" : NULL;
	config.limited = draw_percent(20) ? "2 of 3 cores" : NULL;
	config.no_limits = draw_percent(20) ? "no cgroup" : NULL;
	config.outlives_refusal = draw_percent(50);
	config.grace_ns = draw_percent(60) ? 500 * MS : 0;
	config.beat_ns = draw_percent(30) ? 200 * MS : 0;
	config.dead_ns = draw_percent(30) ? 2000 * MS : 0;
	config.seed = seed;
	fprintf(transcript, "life %d:%s%s%s\n", (int)seed, life.once ? " once" : "",
		config.outlives_refusal ? " outlives refusals" : "",
		config.grace_ns > 0 ? " has grace" : "");
	cr_assert_eq(wrk_core_create(&config, &core), 0);
	show_time();
	happen((struct wrk_event){.kind = WRK_EVENT_START});
}

#endif
