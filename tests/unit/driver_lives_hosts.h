/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_DRIVER_LIVES_HOSTS_H
#define TESTS_UNIT_DRIVER_LIVES_HOSTS_H

#include "driver_lives.h"

/* The graphs of a life, and its workers with their hosts: what they say, and when. */
#define SHAPES 5
static const char *const app_names[] = {"app", "cam", "lab"};
static const struct shape {
	unsigned int fragments[3], count;
} shapes[SHAPES] = {{{0, 1}, 2}, {{0, 1, 3}, 3}, {{4}, 1}, {{0, 2, 3}, 3}, {{4, 0, 1}, 3}};
static const struct {
	const char *name, *op;
} fragments[] = {{"f1", "tx"}, {"f2", "rx"}, {"f3", "mid"}, {"f4", "rx"}, {"f5", "tx"}};
/* Of an operator's port, by place in the tables that its fragment answers. */
static const struct {
	unsigned int from, from_op, from_port, to, to_op;
	const char *from_name, *to_name;
} flows[] = {{0, 0, 0, 1, 0, "f1.tx.out", "f2.rx.in"},
	     {0, 0, 0, 2, 0, "f1.tx.out", "f3.mid.in"},
	     {2, 0, 1, 3, 0, "f3.mid.out", "f4.rx.in"},
	     {0, 0, 0, 3, 0, "f1.tx.out", "f4.rx.in"}};
static const char *const policies[] = {
	"", "", "on_failure: {policy: restart, intensity: 2, period: 60s, backoff: 1s}, ",
	"on_failure: {policy: migrate, intensity: 3, period: 20s, backoff: 500ms, lease: 2s}, ",
	"on_failure: {policy: migrate, lease: 0s}, "};
static const char *const needs[] = {"",
				    "",
				    "",
				    "requirements: {cpu: 2, memory: 1Gi}, ",
				    "requirements: {gpu: 1, cpuLimit: 1.5, memoryLimit: 64Mi}, ",
				    "requirements: {labels: {zone: or1}}, ",
				    "requirements: {apart: [f1]}, ",
				    "requirements: {near: [f1]}, "};

/* Of an operator, a fragment and the application: what only shows in a difference. */
static const char *const op_more[] = {"",
				      "",
				      "",
				      "",
				      ", deadline: 20ms",
				      ", rate: 30hz",
				      ", rate: 25hz, budget: 2ms",
				      ", watchdog: 2s",
				      ", conditions: [{type: count, count: 3}]",
				      ", conditions: [{type: count, count: 4}]",
				      ", metadata: false"};
static const char *const fragment_more[] = {
	"",
	"",
	"",
	"",
	"scheduler: {type: greedy}, ",
	"watchdog: 2s, ",
	"clock: manual, ",
	"thread_pools: {slow: {initial_size: 1, add: [{operators: [tx]}]}}, ",
	"thread_pools: {slow: {initial_size: 1, add: [{operators: [tx], pin_operator: true}]}}, ",
	"resources: {pool: {type: p, size: 4}}, ",
	"resources: {pool: {type: p, size: [5, {a: 1}]}}, ",
	"data_loggers: {l: {type: x}}, ",
	"services: {found: {type: s, size: 1}}, "};
static const char *const top_more[] = {
	"",
	"",
	"",
	"",
	"clock: {max_error: 1ms}\n",
	"services: {found: {type: s}}\n",
	"deadlines: [{path: [f1.tx, f2.rx], budget: 5ms}]\n",
	"deadlines: [{path: [f1.tx, f2.rx], budget: 6ms, on_miss: stop}]\n",
	"watchdog: 9s\n",
	"variables: {v: {type: f32, shape: [2], writer: f1.tx, readers: [f2.rx]}}\n",
	"variables: {v: {type: f32, shape: [3], writer: f1.tx, readers: [f2.rx]}}\n"};

static inline bool has_fragment(const struct life_graph *g, unsigned int fragment)
{
	for (unsigned int i = 0; i < shapes[g->shape].count; i++)
		if (shapes[g->shape].fragments[i] == fragment)
			return true;
	return false;
}

static inline bool has_flow(const struct life_graph *g, size_t flow)
{
	return has_fragment(g, flows[flow].from) && has_fragment(g, flows[flow].to) &&
	       (flow < 3 || !has_fragment(g, 2));
}

static inline const char *graph_text(const struct life_graph *g, const char *name)
{
	static char text[81920];
	FILE *out = fmemopen(text, sizeof(text), "w");

	fprintf(out, "frag: 1\napplication: %s\n%sfragments:\n", name,
		has_fragment(g, 0) && has_fragment(g, 1) ? top_more[g->more[2]] : "");
	for (unsigned int i = 0; i < shapes[g->shape].count; i++) {
		unsigned int f = shapes[g->shape].fragments[i];
		unsigned int need =
			(f == 0 || !has_fragment(g, 0)) && g->needs[f] >= 6 ? 0 : g->needs[f];

		fprintf(out, "  %s: {%s%s", fragments[f].name, policies[g->policy[f]], needs[need]);
		if (g->alone & (1u << f))
			fprintf(out, "host: own%u, ", f);
		if (f <= 1)
			fprintf(out,
				g->library % 3 == 2 ? "extensions: [libone%u.so, libtwo.so], "
						    : "extensions: [libone%u.so], ",
				g->library);
		if (f == 0)
			fprintf(out, "%s", fragment_more[g->more[1]]);
		fprintf(out, "operators: {");
		fprintf(out, "%s: {type: t", fragments[f].op);
		if (f == 0 || f == 4)
			fprintf(out, ", parameters: {value: %u}", g->value);
		fprintf(out, "%s}%s", f == 0 ? op_more[g->more[0]] : "",
			f == 4 ? ", rx: {type: t}" : "");
		fprintf(out, "}%s}\n", f == 4 ? ", flows: [tx.out -> rx.in]" : "");
	}
	if (g->shape != 2)
		fprintf(out, "flows:\n");
	for (size_t i = 0; i < FRAG_COUNT_OF(flows); i++)
		if (has_flow(g, i))
			fprintf(out, "  - {from: %s, to: %s%s%s}\n", flows[i].from_name,
				flows[i].to_name,
				(const char *[]){"", ", capacity: 7, policy: pop",
						 ", capacity: 2, policy: reject"}[g->capacity],
				(const char *[]){"", ", edge: ucx", ", encrypt: on",
						 ", edge: shm"}[g->edge]);
	if (g->is_mistaken)
		fprintf(out, "  - f1.tx.out -> f9.rx.in\n");
	for (int i = 0; g->is_large && i < 900; i++)
		fprintf(out,
			"# a line that makes this graph as long as those of many fragments are are\n");
	fclose(out);
	return text;
}

static inline void draw_graph(struct life *l, struct life_graph *g)
{
	g->shape = (unsigned int)drawn(l, SHAPES);
	g->value = 1;
	g->library = (unsigned int)drawn(l, 3);
	g->capacity = (unsigned int)drawn(l, 3);
	g->edge = one_in(l, 3) ? (unsigned int)drawn(l, 4) : 0;
	g->alone = one_in(l, 2) ? 31 : (unsigned int)drawn(l, 32);
	for (size_t i = 0; i < 3; i++)
		g->more[i] = 0;
	g->is_large = one_in(l, 30);
	if (one_in(l, 3)) {
		g->more[0] = (unsigned int)drawn(l, FRAG_COUNT_OF(op_more));
		g->more[1] = (unsigned int)drawn(l, FRAG_COUNT_OF(fragment_more));
		g->more[2] = (unsigned int)drawn(l, FRAG_COUNT_OF(top_more));
	}
	for (size_t i = 0; i < 5; i++) {
		g->policy[i] = l->is_calm && !one_in(l, 6)
				       ? 2 + (unsigned int)drawn(l, 3)
				       : (unsigned int)drawn(l, FRAG_COUNT_OF(policies));
		g->needs[i] = l->is_calm && !one_in(l, 5)
				      ? 0
				      : (unsigned int)drawn(l, FRAG_COUNT_OF(needs));
	}
}

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
		.cores = 1 + (uint32_t)drawn(l, 4),
		.gpus = (uint32_t)drawn(l, 2),
		.memory_bytes = UINT64_C(3) << 30,
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
		m.hello.cores, m.hello.gpus, reports);
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
	m.beat.gpus = (uint32_t)drawn(l, 3);
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
