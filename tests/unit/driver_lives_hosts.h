/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_DRIVER_LIVES_HOSTS_H
#define TESTS_UNIT_DRIVER_LIVES_HOSTS_H

#include "driver_lives_graphs.h"

/* The hosts of a life: what they say, and when. */
static inline struct fw_message of(const struct life_process *p, enum fw_kind kind)
{
	return (struct fw_message){.kind = kind,
				   .run = p->create->run,
				   .host = p->create->host,
				   .epoch = p->create->epoch};
}

static inline unsigned int fragment_of(const char *name)
{
	unsigned int i = 0;

	while (i < 4 && strcmp(fragments[i].name, name) != 0)
		i++;
	return i;
}

static inline void host_says(struct life *l, const struct life_process *p, struct fw_message *m)
{
	if (fails(l, 60)) { /* it is mistaken */
		switch (drawn(l, 3)) {
		case 0:
			m->epoch += drawn(l, 2) ? 1 : (uint64_t)-1;
			break;
		case 1:
			m->host = 1 + (uint32_t)drawn(l, 4);
			break;
		default:
			m->run++;
			break;
		}
		fprintf(transcript, "  (of host %u, run %" PRIu64 ", epoch %" PRIu64 ")\n", m->host,
			m->run, m->epoch);
	}
	speak(l, l->workers[p->worker].connection, m);
}

#define SAYS(l, p, what)                                                                           \
	happens(l, "%s/%" PRIu64 "/%u/%" PRIu64 " on %s %s", p->create->create.fragments[0],       \
		p->create->run, p->create->host, p->create->epoch,                                 \
		life_name(l, l->workers[p->worker].connection), what)

static inline void say_tables(struct life *l, struct life_process *p)
{
	const struct fw_host_create *create = &p->create->create;
	struct fw_message m = of(p, FW_HOST_PREPARED);
	struct fw_fragment rows[5];
	struct fw_op ops[5][2];
	struct fw_port ports[5][2][2];
	struct fw_inner_flow inner[8];
	struct fw_address addresses[FW_TRANSPORTS_MAX];
	struct fw_failure errors[] = {
		{FRAGI_FAILURE_GRAPH_INVALID, "it cannot be", "", "app.yaml", 4, 7},
		{FRAGI_FAILURE_LIBRARY_MISSING, "there is no such library", "f1.tx"}};
	static const char *dynamic[] = {"value"};
	static const char *const pools[] = {"f1.masks", "f1.frames"};
	struct fw_late_place late[5];
	uint32_t inner_count = 0, late_count = 0;
	bool is_odd = fails(l, 25) || (create->is_beside && one_in(l, 6));

	memset(ports, 0, sizeof(ports));
	for (uint32_t i = 0; i < create->fragment_count; i++) {
		unsigned int f = fragment_of(create->fragments[i]);
		struct fw_port in = {.name = "in",
				     .type = "message",
				     .dir = FRAG_IN,
				     .capacity = is_odd ? 3 : 0,
				     .has_codec = true},
			       out = in;

		out.name = "out";
		out.dir = FRAG_OUT;
		ports[i][0][0] = f == 0 || f == 4 ? out : in;
		ports[i][0][1] = out;
		ports[i][1][0] = in;
		ops[i][0] = (struct fw_op){.name = fragments[f].op,
					   .type = "t",
					   .ports = ports[i][0],
					   .port_count = f == 2 ? 2 : 1};
		ops[i][1] = (struct fw_op){
			.name = "rx", .type = "t", .ports = ports[i][1], .port_count = 1};
		if (f == 0) {
			ops[i][0].pools = "frames, masks";
			m.prepared.pools = pools;
			m.prepared.pool_count = 2;
		}
		if (f == 1 || f == 3)
			late[late_count++] = (struct fw_late_place){
				i, 0, one_in(l, 2) ? "f1.tx" : NULL, "f1.tx"};
		if (f == 0 || f == 4) {
			ops[i][0].dynamic = dynamic;
			ops[i][0].dynamic_count = 1;
		}
		rows[i] = (struct fw_fragment){
			.name = create->fragments[i], .ops = ops[i], .op_count = f == 4 ? 2 : 1};
		if (f == 4)
			inner[inner_count++] = (struct fw_inner_flow){i, 0, 0, i, 1, 0, 4, 1};
	}
	for (uint32_t i = 0; i < create->transport_count; i++)
		addresses[i] = (struct fw_address){create->transports[i], "address", 7, "tcp lo"};
	m.prepared = (struct fw_host_prepared){.ok = !fails(l, 30),
					       .fragments = rows,
					       .fragment_count = create->fragment_count,
					       .flows = inner,
					       .flow_count = inner_count,
					       .addresses = addresses,
					       .address_count = create->transport_count,
					       .late_places = late,
					       .late_place_count = late_count,
					       .pools = m.prepared.pools,
					       .pool_count = m.prepared.pool_count,
					       .pid = 100 + (int32_t)create->fragment_count};
	if (fails(l, 40))
		m.prepared.address_count = 0;
	if (fails(l, 60))
		m.prepared.fragment_count = m.prepared.flow_count = m.prepared.late_place_count = 0;
	if (!m.prepared.ok) {
		m.prepared.errors = errors;
		m.prepared.error_count = (uint32_t)drawn(l, 3);
		m.prepared.errors_beyond = (uint32_t)drawn(l, 3);
		m.prepared.flow_count = 0;
	}
	if (p->stage == LIFE_MADE) {
		p->edges = inner_count;
		p->sends[0] = true;
		p->pools = m.prepared.pool_count;
		p->lates = late_count;
		p->stage = LIFE_PREPARED;
	}
	SAYS(l, p, !m.prepared.ok ? "cannot prepare" : is_odd ? "prepares oddly" : "has prepared");
	host_says(l, p, &m);
}

static inline void say_counts(struct life *l, struct life_process *p, enum fw_kind kind, bool final)
{
	struct fw_message m = of(p, kind);
	struct fragi_flow_stats rows[8];
	struct fw_op_stats ops[8];
	struct fragi_pool_stats pools[2] = {
		{4, 4096, p->ticks % 5, p->ticks / 7, p->ticks * 9000000},
		{8, 512, 8, 0, p->ticks * 300000}};
	struct fw_late_counts lates[5];
	uint32_t op_count = 0;

	memset(rows, 0, sizeof(rows));
	memset(ops, 0, sizeof(ops));
	memset(lates, 0, sizeof(lates));
	p->ticks += drawn(l, 20);
	for (uint32_t i = 0; i < p->lates; i++)
		lates[i].late[p->ticks % FRAGI_BLAME_CAUSES] = p->ticks / 3;
	for (uint32_t i = 0; i < p->create->create.fragment_count; i++)
		op_count += fragment_of(p->create->create.fragments[i]) == 4 ? 2 : 1;
	for (uint32_t i = 0; i < op_count; i++) {
		ops[i].ticks = p->ticks + i;
		ops[i].time_ns = p->ticks * 1000;
		ops[i].waiting_ns = p->ticks * 700 + i;
		ops[i].state = (uint32_t)(p->ticks / 30 % 4);
		if (i == 1)
			ops[i].realtime = (struct fragi_realtime){FRAGI_SCHED_FIFO, 50, 1, 2, 3};
		for (size_t k = 0; k < FRAGI_OP_COUNTERS; k++)
			ops[i].counters[k] = p->ticks * (k + 3) / 8;
		for (size_t k = 0; k < FRAGI_USES; k++)
			(&ops[i].use_busy)[k] = p->ticks * (k + 1) * 1500000;
		ops[i].compute = (struct fragi_quantiles){p->ticks, 11, 13, 17, 19};
		ops[i].running = !final && one_in(l, 8);
	}
	for (uint32_t i = 0; i < p->edges; i++) {
		if (p->sends[i])
			rows[i].sent = p->ticks;
		if (!p->sends[i] || i == 0)
			rows[i].arrived = rows[i].delivered = p->ticks / (p->sends[i] ? 1 : 2);
		if (p->sends[i]) {
			rows[i].first_ns = (uint64_t)l->w->now_ns / 2;
			rows[i].bytes = p->ticks * 640;
			rows[i].confirmed = p->ticks / 2;
			rows[i].copied_out = p->ticks * 64;
			rows[i].gpu_mapped = p->ticks / 9;
			rows[i].gpu_staged = p->ticks / 11;
			rows[i].full_ns = p->ticks * 2000000;
			rows[i].room_ns = p->ticks * 3000000;
		} else {
			for (size_t k = FRAGI_SENDER_COUNTERS + 2; k < FRAGI_COUNTERS - 4; k++)
				rows[i].counters[k] = p->ticks / (k - 4);
			rows[i].input_ns = p->ticks * 4000000;
			rows[i].clock_locked = 1 + p->ticks / 20;
			rows[i].clock_stepped = (p->ticks + 10) / 40;
			rows[i].clock_silent = (p->ticks + 10) / 20 - (p->ticks + 10) / 40;
			rows[i].latency = (struct fragi_quantiles){p->ticks / 2, 21, 23, 27, 29};
			if (p->ticks > 40)
				rows[i].rx_dropped[p->ticks % FRAGI_DROP_REASONS] = p->ticks / 20;
		}
		if (p->sends[i] && p->ticks > 30)
			rows[i].tx_dropped[drawn(l, 2)] = 2 + i;
	}
	m.stats = (struct fw_host_stats){.final = final,
					 .ops = ops,
					 .op_count = op_count,
					 .flows = rows,
					 .flow_count = p->edges,
					 .pools = pools,
					 .pool_count = p->is_looked_at ? p->pools : 0,
					 .lates = lates,
					 .late_count = p->lates};
	if (p->is_looked_at)
		m.stats.facts = (struct fw_facts){.at_ns = (uint64_t)l->w->now_ns,
						  .cpu_ns = p->ticks * 3000000,
						  .rss_bytes = 1 << 20,
						  .cores = 4,
						  .machine_cores = 8,
						  .machine_cpu_ns = p->ticks * 5000000};
	SAYS(l, p, final ? "counts at last" : "counts");
	host_says(l, p, &m);
}

static inline void say_ended(struct life *l, struct life_process *p, int code, int signal,
			     enum fragi_failure failure, const char *why)
{
	struct fw_message m = of(p, FW_HOST_EXIT);
	const char *lines[] = {"last words", "of it"};

	m.exit = (struct fw_host_exit){
		.exit_code = code,
		.signal = signal,
		.asked = failure == FRAGI_FAILURE_NONE || failure == FRAGI_FAILURE_WORKER_LOST,
		.failure = {failure, why, why[0] != '\0' && one_in(l, 2) ? "f1.tx" : ""},
		.lines = lines,
		.line_count = (uint32_t)drawn(l, 3)};
	if (fails(l, 10)) {
		m.exit.asked = !m.exit.asked;
		m.exit.failure.code = FRAGI_FAILURE_NONE;
	}
	p->has_ended = true;
	if (!one_in(l, 8))
		say_counts(l, p, FW_HOST_STATS, true);
	SAYS(l, p, why[0] != '\0' ? why : "has ended");
	if (l->workers[p->worker].connection == 0)
		return;
	host_says(l, p, &m);
	if (p->is_there)
		life_forget(p);
}

static inline void say_state(struct life *l, struct life_process *p, enum fw_host_state state)
{
	static const char *const states[] = {
		"",           "runs again",      "is idle",      "is done",
		"has failed", "has lost a peer", "wants the end"};
	struct fw_message m = of(p, FW_HOST_EVENT);

	m.event.state = state;
	m.event.sent = m.event.delivered = p->ticks;
	if (state == FW_STATE_FAILED)
		m.event.failure = (struct fw_failure){FRAGI_FAILURE_OPERATOR_FAILED,
						      "f1.tx: compute returned -5", "f1.tx"};
	if (state == FW_STATE_PEER_LOST) {
		m.event.peer = 1 + (uint32_t)drawn(l, 3);
		for (size_t i = 0; i < LIFE_PROCESSES; i++)
			if (l->processes[i].is_there &&
			    l->processes[i].create->run == p->create->run &&
			    l->processes[i].create->host == m.event.peer)
				m.event.peer_epoch = l->processes[i].create->epoch;
		if (one_in(l, 4))
			m.event.peer_epoch = 0;
		m.event.failure = (struct fw_failure){FRAGI_FAILURE_EDGE_LOST, "no beat", ""};
	}
	p->is_done = p->is_done || state == FW_STATE_DONE;
	SAYS(l, p, states[state]);
	host_says(l, p, &m);
}

static inline void answer_wire(struct life *l, struct life_process *p,
			       const struct fw_message *wire)
{
	struct fw_message m = of(p, FW_HOST_WIRED);

	if (p->stage < LIFE_WIRED)
		for (uint32_t i = 0; i < wire->wire.edge_count && p->edges < 8; i++)
			p->sends[p->edges++] = wire->wire.edges[i].sends;
	p->stage = p->stage < LIFE_WIRED ? LIFE_WIRED : p->stage;
	if (fails(l, 40))
		m.result.failure = (struct fw_failure){FRAGI_FAILURE_EDGE_UNREACHABLE,
						       "there is no route to a", ""};
	SAYS(l, p, m.result.failure.code ? "cannot be wired" : "is wired");
	host_says(l, p, &m);
}

static inline void answer_stop(struct life *l, struct life_process *p,
			       const struct fw_message *stop)
{
	p->yields = stop->stop.restarts && stop->stop.drain_ns > 0;
	p->drains = stop->stop.drain_ns > 0;
	if (p->yields) {
		struct fw_message m = of(p, FW_HOST_SAVED);

		m.saved = (struct fw_host_saved){4096, "saved", 5};
		SAYS(l, p, "yields");
		host_says(l, p, &m);
	} else if (p->drains) {
		say_counts(l, p, FW_HOST_STATS, false);
		if (p->is_there)
			say_state(l, p, FW_STATE_DONE);
	} else {
		say_ended(l, p, 0, 0, FRAGI_FAILURE_NONE, "");
	}
}

/* A process does the first thing that it was asked for. */
static inline void answer(struct life *l, struct life_process *p)
{
	struct fw_message *m, done = of(p, FW_HOST_SET_DONE);

	if (p->stage == LIFE_MADE && !(p->owed_count > 0 && p->hangs)) {
		if (fails(l, 40) || (p->create->create.is_beside && one_in(l, 8)))
			say_ended(l, p, 3, 0,
				  one_in(l, 2) ? FRAGI_FAILURE_WORKER_BUSY
					       : FRAGI_FAILURE_HOST_NOT_STARTED,
				  "fraghost cannot be started");
		else
			say_tables(l, p);
		return;
	}
	if (p->yields && p->owed_count == 0) {
		say_ended(l, p, 0, 0, FRAGI_FAILURE_NONE, "");
		return;
	}
	if (p->hangs)
		while (p->owed_count > 1) /* but the last one, a kill */
			fw_message_free(life_owed(p));
	m = life_owed(p);
	switch (m->kind) {
	case FW_HOST_WIRE:
		answer_wire(l, p, m);
		break;
	case FW_HOST_START:
		if (fails(l, 40)) {
			say_state(l, p, FW_STATE_FAILED);
			break;
		}
		p->stage = LIFE_RUNS;
		done.kind = FW_HOST_STARTED;
		SAYS(l, p, "has started");
		host_says(l, p, &done);
		break;
	case FW_HOST_STOP:
		answer_stop(l, p, m);
		break;
	case FW_HOST_SET:
		done.host_set_done.number = m->host_set.number;
		if (one_in(l, 4))
			done.host_set_done.failure = (struct fw_failure){
				FRAGI_FAILURE_OPERATOR_REFUSED, "value is too large", "f1.tx"};
		SAYS(l, p, "answers SET");
		host_says(l, p, &done);
		break;
	default: /* HOST_KILL */
		say_ended(l, p, 137, 9, FRAGI_FAILURE_NONE, "");
		break;
	}
	fw_message_free(m);
}

static inline struct life_process *some_process(struct life *l, bool owes)
{
	size_t first = drawn(l, LIFE_PROCESSES);
	bool any = one_in(l, 40); /* one that hangs goes on */

	for (size_t i = 0; i < LIFE_PROCESSES; i++) {
		struct life_process *p = &l->processes[(first + i) % LIFE_PROCESSES];
		const struct life_worker *worker = &l->workers[p->worker];

		if (p->is_there && p->hangs && !any &&
		    (p->owed_count == 0 || p->owed[p->owed_count - 1]->kind != FW_HOST_KILL))
			continue;
		if (p->is_there && !p->has_ended && worker->connection != 0 &&
		    (!worker->reports || p->is_reported) && !worker->is_silent &&
		    (!owes || p->stage == LIFE_MADE || p->owed_count > 0 || p->yields))
			return p;
	}
	return NULL;
}

static inline void one_answers(struct life *l)
{
	struct life_process *p = some_process(l, true);

	if (p != NULL)
		answer(l, p);
}

static inline void all_answer(struct life *l)
{
	for (int i = 0; i < 12; i++)
		one_answers(l);
}

static inline void one_acts(struct life *l)
{
	struct life_process *p = some_process(l, false);
	struct fw_line line = {.level = FRAGI_LOG_WARN, .fragment = "f1", .op = "tx", .text = "hm"};
	struct fw_message m;

	if (p == NULL || p->stage < LIFE_PREPARED)
		return;
	switch (l->is_calm && !one_in(l, 4) ? 9 + drawn(l, 11) : drawn(l, 20)) {
	case 0:
		say_state(l, p, FW_STATE_FAILED);
		break;
	case 1:
		say_state(l, p, FW_STATE_PEER_LOST);
		break;
	case 2:
		say_state(l, p, one_in(l, 6) ? FW_STATE_STOPPED : FW_STATE_RUNNING);
		break;
	case 3:
	case 4:
		if (one_in(l, 4))
			say_state(l, p, FW_STATE_DONE);
		break;
	case 5:
	case 6:
		say_state(l, p, FW_STATE_IDLE);
		break;
	case 7:
		say_ended(l, p, 139, 11, FRAGI_FAILURE_HOST_CRASHED,
			  "fraghost 101 crashed in f1.tx, tick 5");
		break;
	case 8:
		if (one_in(l, 2))
			say_ended(l, p, 1, 0, FRAGI_FAILURE_HOST_EXITED, "fraghost 101 exited");
		break;
	case 9:
	case 10:
		m = of(p, FW_HOST_LINES);
		m.host_lines = (struct fw_host_lines){&line, 1, drawn(l, 3)};
		SAYS(l, p, "writes a line");
		host_says(l, p, &m);
		break;
	case 11:
	case 12:
		for (size_t i = 0; i < LIFE_PROCESSES && p->tap == 0; i++)
			if (l->processes[i].tap != 0 && !l->processes[i].has_ended)
				p = &l->processes[i];
		m = of(p, FW_HOST_TAPPED);
		m.tapped = (struct fw_tapped){p->tap, "a message", 9};
		SAYS(l, p, "shows a message");
		host_says(l, p, &m);
		break;
	default:
		say_counts(l, p, FW_HOST_STATS, false);
		break;
	}
}

/* A host fails as often as it is started again. */
static inline void one_crashes_often(struct life *l)
{
	struct life_process *p = some_process(l, false);
	uint64_t run = p != NULL ? p->create->run : 0;
	uint32_t host = p != NULL ? p->create->host : 0;

	for (int i = 0; i < 4 && run != 0; i++) {
		for (size_t k = 0; k < LIFE_PROCESSES; k++) {
			p = &l->processes[k];
			if (p->is_there && !p->has_ended && p->create->run == run &&
			    p->create->host == host && p->stage == LIFE_RUNS)
				say_ended(l, p, 139, 11, FRAGI_FAILURE_HOST_CRASHED,
					  "fraghost 101 crashed in f1.tx, tick 5");
		}
		for (int k = 0; k < 8; k++)
			one_answers(l);
		disk_writes(l);
		life_pass(l, (int64_t)drawn(l, 1500) * MS);
	}
}

static inline void one_loses_a_peer(struct life *l)
{
	struct life_process *p = some_process(l, false);

	if (p != NULL && p->stage == LIFE_RUNS)
		say_state(l, p, FW_STATE_PEER_LOST);
}

#endif
