/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_DRIVER_LIVES_WORKERS_H
#define TESTS_UNIT_DRIVER_LIVES_WORKERS_H

#include "driver_lives_hosts.h"

/* The workers of a life, and others who speak as if they were some. */
/* Of worker d. */
static const struct fw_identity life_key = {
	.name = "node7", .serial = 1, .roles = FW_ROLE_BIT(FW_ROLE_WORKER)};

static inline void worker_comes(struct life *l)
{
	size_t i = l->config.is_local ? 0 : drawn(l, LIFE_WORKERS);
	struct life_worker *worker = &l->workers[i];
	const char *wished[] = {"a", "b", "c", "b"};
	const char *names[] = {one_of(l, "f1", "f2", "app/f1", "f9")};
	const char *labels[] = {"zone=or1", "slot=3"};
	struct fw_message m = {.kind = FW_HELLO, .seq = 1};
	uint32_t reports = 0;
	bool is_old = fails(l, 8); /* its frag is */

	if (worker->connection != 0)
		return;
	for (size_t k = 0; k < LIFE_PROCESSES; k++)
		if (l->processes[k].is_there && l->processes[k].worker == i) {
			reports++;
			l->processes[k].is_reported = false;
		}
	m.hello = (struct fw_hello){
		.major = FW_PROTOCOL_MAJOR,
		.minor = is_old ? (uint32_t)drawn(l, 15) : FW_PROTOCOL_MINOR,
		.role = FW_ROLE_WORKER,
		.name = wished[i],
		.last_name = worker->name,
		.last_epoch = worker->last_epoch,
		.session = worker->knows_driver && one_in(l, 2) ? worker->session : 0,
		.fragments = names,
		.fragment_count = fails(l, 6),
		.worker_address = fails(l, 8) ? "127.0.0.1" : "10.0.0.1",
		.node = i == 3 ? "other" : "node",
		.clock = i >= 2 ? "other" : "node",
		.memory = i == 1   ? ""
			  : i == 3 ? "theirs"
				   : "ours",
		.no_memory = i == 1 ? "files are limited" : "",
		.waits_for = fails(l, 12) ? "its GPUs" : "",
		.version = "test",
		.local_address = one_in(l, 6) ? "192.168.0.7:5" : "",
		.has = {[FRAGI_AMOUNT_CPU] = (1 + (int64_t)drawn(l, 4)) * FRAGI_AMOUNT_ONE,
			[FRAGI_AMOUNT_GPU] = (int64_t)drawn(l, 2) * FRAGI_AMOUNT_ONE,
			[FRAGI_AMOUNT_MEMORY] = INT64_C(3) << 30},
		.labels = labels,
		.label_count = (uint32_t)drawn(l, 3),
		.no_limits = i == 2 ? "it has no control groups" : "",
		.limited = i == 2 ? "2 of 16 cores" : "",
		.reports = fails(l, 20) ? reports + 1 : reports};
	memcpy(m.hello.secret, worker->secret, sizeof(worker->secret));
	worker->connection = life_connect(l, (char)('a' + i));
	worker->reports = reports > 0;
	worker->is_silent = false;
	worker->heard_ns = 0;
	happens(l, "worker %c comes%s%s, %u cores, %u gpus, reports %u", (char)('a' + i),
		m.hello.fragment_count ? " for " : "", m.hello.fragment_count ? names[0] : "",
		(unsigned int)(m.hello.has[FRAGI_AMOUNT_CPU] / FRAGI_AMOUNT_ONE),
		(unsigned int)(m.hello.has[FRAGI_AMOUNT_GPU] / FRAGI_AMOUNT_ONE), reports);
	if (is_old)
		fprintf(transcript, "  it speaks minor %u\n", m.hello.minor);
	l->w->identity = i == 3 ? &life_key : NULL;
	speak(l, worker->connection, &m);
	l->w->identity = NULL;
}

static inline struct life_worker *some_worker(struct life *l)
{
	struct life_worker *worker = &l->workers[drawn(l, LIFE_WORKERS)];

	return worker->connection != 0 ? worker : NULL;
}

/* Its connection breaks, and what it runs is gone with it, or is reported later. */
static inline void worker_goes(struct life *l)
{
	struct life_worker *worker = some_worker(l);
	uint64_t connection = worker != NULL ? worker->connection : 0;
	struct fw_message leave = {.kind = FW_LEAVE, .leave.reason = "it was told to end"};
	bool dies = one_in(l, 2);

	if (worker == NULL)
		return;
	if (one_in(l, 3)) {
		for (size_t i = 0; i < LIFE_PROCESSES; i++)
			if (l->processes[i].is_there && !l->processes[i].has_ended &&
			    &l->workers[l->processes[i].worker] == worker && one_in(l, 2))
				say_ended(l, &l->processes[i], 0, 0,
					  one_in(l, 4) ? FRAGI_FAILURE_NONE
						       : FRAGI_FAILURE_WORKER_LOST,
					  "its worker was told to end");
		happens(l, "%s leaves", life_name(l, connection));
		speak(l, connection, &leave);
		dies = true;
	} else {
		happens(l, "%s %s", life_name(l, connection), dies ? "dies" : "is cut off");
		worker->connection = 0;
		event(l, (struct drv_event){.kind = DRV_EVENT_CLOSED,
					    .connection = connection,
					    .text = "connection reset"});
	}
	if (dies)
		life_forget_worker(l, (size_t)(worker - l->workers));
	worker->connection = 0;
}

static inline void worker_is_silent(struct life *l)
{
	struct life_worker *worker = some_worker(l);

	if (worker == NULL)
		return;
	worker->is_silent = true;
	happens(l, "%s is silent", life_name(l, worker->connection));
	life_pass(l, (int64_t)drawn(l, 4000) * MS);
	if (worker->connection != 0 && one_in(l, 2))
		worker->is_silent = false;
	else if (worker->connection == 0)
		life_forget_worker(l, (size_t)(worker - l->workers));
}

/* As a driver that was ending an application has told its hosts. */
static inline void report_in_mood(struct life *l, struct fw_host_report *report)
{
	if (l->mood == 0 || one_in(l, 4))
		return;
	report->stop = (enum fw_stop_state)((l->mood - 1) % 5);
	report->is_closing = l->mood > 5 && l->mood <= 10;
	report->failure =
		l->mood > 10 && l->mood <= 15 ? FRAGI_FAILURE_OPERATOR_FAILED : FRAGI_FAILURE_NONE;
}

/* A worker that has come back reports a process, or that it has reported all. */
static inline void worker_reports(struct life *l)
{
	for (size_t i = 0; i < LIFE_WORKERS; i++) {
		struct life_worker *worker = &l->workers[i];
		struct life_process *p = NULL;
		struct fw_message m;

		if (worker->connection == 0 || !worker->reports)
			continue;
		for (size_t k = 0; k < LIFE_PROCESSES && p == NULL; k++)
			if (l->processes[k].is_there && l->processes[k].worker == i &&
			    !l->processes[k].is_reported)
				p = &l->processes[k];
		if (p == NULL) {
			worker->reports = false;
			happens(l, "%s has reported", life_name(l, worker->connection));
			speak(l, worker->connection, &(struct fw_message){.kind = FW_REPORTED});
			return;
		}
		p->is_reported = true;
		m = of(p, FW_HOST_REPORT);
		m.report = (struct fw_host_report){
			.create = p->create->create,
			.started = p->stage == LIFE_RUNS,
			.has_run = p->stage == LIFE_RUNS,
			.is_wired = p->stage >= LIFE_WIRED,
			.stop = one_in(l, 8) ? (enum fw_stop_state)drawn(l, 5)
				: p->drains  ? FW_STOP_DRAINS
					     : FW_STOP_NOT,
			.failure =
				one_in(l, 20) ? FRAGI_FAILURE_OPERATOR_FAILED : FRAGI_FAILURE_NONE,
			.reason = "f1.tx: compute returned -5",
			.is_closing = one_in(l, 20),
			.yields = p->yields,
			.is_beside = p->create->create.is_beside,
			.restarts = p->create->create.restarts,
			.is_inexact = one_in(l, 10),
			.age_ns = (int64_t)drawn(l, 100) * SECOND};
		report_in_mood(l, &m.report);
		if (m.report.failure == FRAGI_FAILURE_NONE)
			m.report.reason = "";
		if (fails(l, 30))
			m.report.create.fragment_count = 0;
		if (fails(l, 30))
			m.report.create.application = "apb";
		fprintf(transcript, "  stop %d%s%s%s%s\n", (int)m.report.stop,
			m.report.is_wired ? ", wired" : "", m.report.started ? ", started" : "",
			m.report.is_closing ? ", closing" : "", m.report.reason);
		SAYS(l, p, "is reported");
		host_says(l, p, &m);
		if (p->is_there && p->stage >= LIFE_PREPARED)
			say_tables(l, p);
		if (p->is_there && p->create->create.restarts > 0)
			say_counts(l, p, FW_HOST_PAST, true);
		if (p->is_there && p->is_done)
			say_state(l, p, FW_STATE_DONE);
		if (p->is_there && p->has_ended)
			say_ended(l, p, 139, 11, FRAGI_FAILURE_HOST_CRASHED,
				  "fraghost 101 crashed meanwhile");
		return;
	}
}

static inline void worker_beats(struct life *l)
{
	struct life_worker *worker = some_worker(l);
	struct fw_message m = {.kind = FW_BEAT};

	if (worker == NULL)
		return;
	m.beat.sent_ns = l->w->now_ns - 50 * MS;
	m.beat.waits_for = one_in(l, 4) ? "its GPUs" : "";
	m.beat.has_gpus = one_in(l, 3);
	m.beat.has[FRAGI_AMOUNT_GPU] = (int64_t)drawn(l, 3) * FRAGI_AMOUNT_ONE;
	happens(l, "%s beats, waits for \"%s\"%s", life_name(l, worker->connection),
		m.beat.waits_for, m.beat.has_gpus ? ", has asked for its GPUs" : "");
	speak(l, worker->connection, &m);
}

static inline void worker_examines(struct life *l)
{
	struct fw_finding finding = {"memlock", true, "64 KiB", "copies", "ulimit -l"};
	struct fw_message m = {.kind = FW_EXAMINED, .examined = {"", &finding, 1}};

	for (size_t i = 0; i < LIFE_WORKERS; i++) {
		if (l->workers[i].examine == NULL || l->workers[i].connection == 0)
			continue;
		fw_message_free(l->workers[i].examine);
		l->workers[i].examine = NULL;
		happens(l, "%s has looked at its node", life_name(l, l->workers[i].connection));
		speak(l, l->workers[i].connection, &m);
	}
}

/* Somebody says what is not for a driver, or not for him to say. */
static inline void nonsense(struct life *l)
{
	static const enum fw_kind kinds[] = {FW_HOST_START, FW_WELCOME, FW_REPORTED,
					     FW_HELLO,      FW_LEAVE,   FW_HOST_WIRED};
	struct fw_message m = {.kind = kinds[drawn(l, FRAG_COUNT_OF(kinds))], .seq = 1};
	struct life_worker *worker = some_worker(l);
	bool is_client = one_in(l, 3);
	uint64_t to = is_client || worker == NULL ? l->clients[drawn(l, LIFE_CLIENTS)].connection
						  : worker->connection;

	if (one_in(l, 3))
		to = life_connect(l, 's');
	if (m.kind == FW_HELLO)
		m.hello = (struct fw_hello){.major = (uint32_t)drawn(l, 3),
					    .minor = 3,
					    .role = 1 + (enum fw_role)drawn(l, 3),
					    .name = "stranger",
					    .version = "test"};
	if (m.kind == FW_LEAVE)
		m.leave.reason = "it likes to";
	if (to == 0)
		return;
	happens(l, "%s sends %s", life_name(l, to), fw_kind_name(m.kind));
	speak(l, to, &m);
}

static inline void stranger(struct life *l)
{
	happens(l, "a stranger without a key");
	event(l, (struct drv_event){.kind = DRV_EVENT_STRANGER,
				    .peer = one_of(l, "10.0.0.7:1", "10.0.0.7:2", "10.0.0.8:1"),
				    .text = "it has no key"});
}

struct life_gone_key {
	int is_it; /* what else is no such key */
	const char *name;
};

static inline bool accepts_none(void *arg, const struct fw_identity *identity)
{
	const struct life_gone_key *gone = arg;

	return gone->is_it == 7 && strcmp(identity->name, gone->name) != 0;
}

static inline void keys_change(struct life *l)
{
	struct life_worker *worker = some_worker(l);
	static struct life_gone_key gone = {7, "node7"};

	happens(l, "a key is gone");
	if (worker != NULL && one_in(l, 2))
		event(l, (struct drv_event){.kind = DRV_EVENT_REVOKED,
					    .connection = worker->connection,
					    .peer = "10.0.0.9:1",
					    .identity = &life_key});
	else if (one_in(l, 2))
		event(l,
		      (struct drv_event){.kind = DRV_EVENT_UNHEARD, .connection = l->last_closed});
	else
		event(l, (struct drv_event){
				 .kind = DRV_EVENT_KEYS, .accepts = accepts_none, .arg = &gone});
}

/* What remains of a worker that died speaks for it. */
static inline void reporter(struct life *l)
{
	struct life_worker *worker = &l->workers[drawn(l, LIFE_WORKERS)];
	struct fw_message m = {.kind = FW_HELLO, .seq = 1};
	struct life_process *p = some_process(l, false);

	m.hello = (struct fw_hello){.major = FW_PROTOCOL_MAJOR,
				    .role = FW_ROLE_REPORTER,
				    .session = worker->session,
				    .version = "test"};
	memcpy(m.hello.secret, worker->secret, FW_SECRET_BYTES);
	if (l->reporter == 0) {
		l->reporter = life_connect(l, 'r');
		happens(l, "a reporter comes");
		speak(l, l->reporter, &m);
	} else if (p != NULL && !one_in(l, 4)) {
		m = of(p, FW_HOST_STATS);
		m.stats.final = !one_in(l, 4);
		happens(l, "the reporter counts");
		speak(l, l->reporter, &m);
	} else {
		happens(l, "the reporter goes");
		event(l, (struct drv_event){.kind = DRV_EVENT_CLOSED,
					    .connection = l->reporter,
					    .text = "it closed"});
		l->reporter = 0;
	}
}

#endif
