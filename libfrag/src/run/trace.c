// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <run/state.h>

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/alloc.h>
#include <base/identity.h>
#include <sched/probes.h>
#include <sched/trace.h>

/*
 * The traces of a host, one for each program that asks: they read one ring, into which all
 * operators write while there is any. A chunk begins with the host and its clocks, so that it means
 * something by itself; a part of each has the names, again and again, since chunks may be lost.
 */
#define NAMES_BYTES (FRAGI_TRACE_CHUNK_MAX / 4)
#define FIRST_CHUNKS 4
#define THREADS_MAX 256u
#define THREADS_NS INT64_C(1000000000)

struct fragi_run_trace {
	struct fragi_trace_reader *reader; /* in the ring */
	uint64_t place, lost, number;
	size_t name;    /* the next one, in the order of add_name */
	bool has_named; /* all of them, once: what records mean is known */
	bool has_more;
	int64_t threads_ns;
	struct fragi_moment last; /* of the chunk before */
	char host[FRAGI_TRACE_TEXT_MAX], clock[FRAGI_IDENTITY_SIZE];
	struct fragi_trace_chunk chunk;
};

void fragi_run_trace_attach(struct fragi_run *run)
{
	struct fragi_trace_ring *ring = run->traces > 0 ? run->ledger.ring : NULL;

	for (size_t i = 0; i < run->fragment_count; i++) {
		const struct frag_fragment *fragment = run->fragments[i].fragment;

		for (uint32_t k = 0; k < fragment->op_count; k++) {
			struct fragi_exec *exec = fragment->ops[k]->exec;

			if (exec != NULL && exec->sched != NULL &&
			    atomic_load(&exec->row->state) < FRAGI_OP_DONE)
				fragi_exec_trace(exec, ring, run->ledger.ops, run->ledger.flows);
		}
	}
}

static void name_host(const struct fragi_run *run, struct fragi_run_trace *trace)
{
	char node[128] = "";
	FILE *out = fmemopen(trace->host, sizeof(trace->host), "w");

	if (out == NULL)
		return;
	(void)gethostname(node, sizeof(node) - 1);
	for (size_t i = 0; i < run->fragment_count; i++)
		fprintf(out, "%s%s", i > 0 ? ", " : "", run->infos[i].name);
	fprintf(out, " on %s", node);
	fclose(out);
	trace->host[sizeof(trace->host) - 1] = '\0';
	if (fragi_identity_clock(false, trace->clock) < 0)
		trace->clock[0] = '\0';
}

/* One more, or one less, for whom operators take part. Returns 0 or -ENOMEM. */
static int take_part(struct fragi_run *run)
{
	if (run->traced.lost == NULL)
		run->traced.lost =
			fragi_calloc(run->ledger.head->flow_count + 1, sizeof(*run->traced.lost));
	if (run->traced.lost == NULL)
		return -ENOMEM;
	run->traces++;
	fragi_run_trace_attach(run);
	return 0;
}

static void take_no_part(struct fragi_run *run)
{
	if (--run->traces == 0)
		fragi_run_trace_attach(run);
	if (run->traces == 0 && run->look != NULL)
		fragi_run_look(run, run->looks);
}

struct fragi_run_trace *fragi_run_trace_begin(struct fragi_run *run, uint32_t id)
{
	struct fragi_run_trace *trace = fragi_calloc(1, sizeof(*trace));
	struct fragi_trace_ring *ring = run->ledger.ring;

	for (int i = 0; trace != NULL && trace->reader == NULL && i < FRAGI_TRACE_READERS; i++)
		if (atomic_load(&ring->readers[i].id) == 0)
			trace->reader = &ring->readers[i];
	if (trace == NULL || trace->reader == NULL)
		goto err_free;
	trace->place = atomic_load(&ring->next);
	trace->last = fragi_moment_now();
	if (take_part(run) < 0)
		goto err_free;
	fragi_trace_publish(trace->reader, 0, trace->place, 0, &trace->last);
	atomic_store(&trace->reader->id, id);
	name_host(run, trace);
	for (uint32_t i = 0; i < FRAGI_POOLS_MAX; i++)
		run->traced.pools[i] = UINT64_MAX; /* whoever comes is to know it */
	if (atomic_load(&run->started))
		fragi_run_look(run, run->looks);
	return trace;

err_free:
	fragi_free(trace);
	return NULL;
}

void fragi_run_trace_end(struct fragi_run *run, struct fragi_run_trace *trace)
{
	if (trace == NULL)
		return;
	atomic_store(&trace->reader->id, 0);
	fragi_run_trace_destroy(run, trace);
}

void fragi_run_trace_destroy(struct fragi_run *run, struct fragi_run_trace *trace)
{
	if (trace == NULL)
		return;
	take_no_part(run);
	fragi_free(trace);
}

static int64_t unix_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool add_op(const struct fragi_run *run, struct fragi_trace_chunk *chunk, size_t i)
{
	for (size_t f = 0; f < run->fragment_count; f++) {
		const struct frag_fragment *fragment = run->fragments[f].fragment;

		if (i < fragment->op_count)
			return fragi_trace_add_name(chunk, FRAGI_TRACE_OPERATOR,
						    run->fragments[f].first_op + (uint32_t)i,
						    fragment->ops[i]->subject);
		i -= fragment->op_count;
	}
	return true;
}

static bool add_flow(const struct fragi_run *run, struct fragi_trace_chunk *chunk, size_t i)
{
	const struct fragi_flow_info *info = &run->flows[i];
	const struct fragi_trace_flow flow = {
		.row = (uint32_t)i,
		.is_received = true,
		.is_sent = true,
		.capacity = info->capacity,
	};
	char from[3 * FRAG_NAME_MAX + 3], to[3 * FRAG_NAME_MAX + 3];

	return fragi_trace_add_flow(chunk, &flow,
				    fragi_flow_from(run->infos, info, from, sizeof(from)),
				    fragi_flow_to(run->infos, info, to, sizeof(to)));
}

/* The end of a flow between hosts. */
static bool add_end(const struct fragi_run *run, struct fragi_trace_chunk *chunk,
		    const struct fragi_run_end *end)
{
	const struct frag_op *op = run->fragments[end->fragment].fragment->ops[end->op];
	const struct fragi_flow_row *row = end->tx != NULL ? end->tx->row : end->rx->row;
	struct fragi_trace_flow flow = {
		.row = (uint32_t)(row - run->ledger.flows),
		.is_received = end->rx != NULL,
		.is_sent = end->tx != NULL,
		.capacity = end->rx != NULL ? end->rx->queue.capacity : 0,
		.flow = end->flow,
	};
	char own[3 * FRAG_NAME_MAX + 3];

	snprintf(own, sizeof(own), "%s.%s", op->subject, op->ports[end->port].name);
	fragi_pump_lock(run->pump);
	if (end->tx != NULL) {
		flow.before = fragi_remote_tx_before(end->tx);
		flow.link = fragi_remote_tx_link(end->tx);
	} else {
		flow.before = fragi_remote_rx_before(end->rx);
		flow.link = fragi_remote_rx_link(end->rx);
	}
	fragi_pump_unlock(run->pump);
	return fragi_trace_add_flow(chunk, &flow, end->tx != NULL ? own : "",
				    end->tx == NULL          ? own
				    : end->other_end != NULL ? end->other_end
							     : "");
}

static uint64_t lost_of(const struct fragi_flow_row *row)
{
	uint64_t lost = 0;

	for (int i = 0; i < FRAGI_DROP_REASONS; i++)
		lost += atomic_load_explicit(&row->tx_dropped[i], memory_order_relaxed) +
			atomic_load_explicit(&row->rx_dropped[i], memory_order_relaxed);
	return lost;
}

/* Of the flow with that row: "a.out -> b.in"; of one between hosts this end. */
static void name_flow(const struct fragi_run *run, uint32_t row, char *out, size_t size)
{
	char from[3 * FRAG_NAME_MAX + 3], to[3 * FRAG_NAME_MAX + 3];

	if (row < run->flow_count)
		snprintf(out, size, "%s -> %s",
			 fragi_flow_from(run->infos, &run->flows[row], from, sizeof(from)),
			 fragi_flow_to(run->infos, &run->flows[row], to, sizeof(to)));
	for (size_t i = 0; row >= run->flow_count && i < run->end_count; i++) {
		const struct fragi_run_end *end = &run->ends[i];
		const struct frag_op *op = run->fragments[end->fragment].fragment->ops[end->op];

		if (end->between_hosts &&
		    (end->tx != NULL ? end->tx->row : end->rx->row) == &run->ledger.flows[row])
			snprintf(out, size, "%s.%s", op->subject, op->ports[end->port].name);
	}
}

/* Pools are looked at by the thread that looks at operators, about every 2 ms. */
static void note_levels(struct fragi_run *run)
{
	const struct fragi_ledger_head *head = run->ledger.head;
	char flow[6 * FRAG_NAME_MAX + 12] = "";

	for (uint32_t i = 0; i < FRAGI_POOLS_MAX; i++) {
		uint64_t all = atomic_load_explicit(&head->pools[i].blocks, memory_order_relaxed),
			 used = all -
				atomic_load_explicit(&head->pools[i].free, memory_order_relaxed);

		if (all == 0 || used == run->traced.pools[i])
			continue;
		run->traced.pools[i] = used;
		fragi_trace_note(run->ledger.ring, FRAGI_TRACE_POOL, i, used);
	}
	for (uint32_t i = 0; i < head->flow_count; i++) {
		uint64_t lost = lost_of(&run->ledger.flows[i]);

		if (lost == run->traced.lost[i])
			continue;
		name_flow(run, i, flow, sizeof(flow));
		FRAGI_PROBE(drop, (const char *)flow, lost - run->traced.lost[i]);
		run->traced.lost[i] = lost;
		fragi_trace_note(run->ledger.ring, FRAGI_TRACE_LOST, i, lost);
	}
}

void fragi_run_probe(struct fragi_run *run)
{
	const bool wanted = fragi_probes_are_wanted();

	if (wanted && !run->traced.is_probed)
		run->traced.is_probed = take_part(run) == 0;
	else if (!wanted && run->traced.is_probed) {
		run->traced.is_probed = false;
		take_no_part(run);
	} else if (wanted) {
		note_levels(run);
	}
}

static void add_pools(const struct fragi_run *run, struct fragi_trace_chunk *chunk)
{
	char name[3 * FRAG_NAME_MAX + 3];
	const char *pool;

	for (uint32_t i = 0; (pool = fragi_run_pool(run, i, name, sizeof(name))) != NULL; i++)
		(void)fragi_trace_add_name(chunk, FRAGI_TRACE_POOL_NAME, i, pool);
}

/* The i-th name of all: of operators, of flows inside, of ends of others. */
static bool add_name(const struct fragi_run *run, struct fragi_trace_chunk *chunk, size_t i)
{
	size_t ops = 0;

	for (size_t f = 0; f < run->fragment_count; f++)
		ops += run->fragments[f].fragment->op_count;
	if (i < ops)
		return add_op(run, chunk, i);
	i -= ops;
	if (i < run->flow_count)
		return add_flow(run, chunk, i);
	i -= run->flow_count;
	return !run->ends[i].between_hosts || add_end(run, chunk, &run->ends[i]);
}

/*
 * As many names as there is room for, which is all of it until all were sent once; those that were
 * left out come in the next chunk.
 */
static void add_names(const struct fragi_run *run, struct fragi_run_trace *trace)
{
	const uint32_t room = trace->has_named ? NAMES_BYTES : FRAGI_TRACE_CHUNK_MAX;
	size_t count = run->flow_count + run->end_count;

	for (size_t f = 0; f < run->fragment_count; f++)
		count += run->fragments[f].fragment->op_count;
	for (size_t i = 0; i < count && trace->chunk.size < room; i++) {
		if (!add_name(run, &trace->chunk, trace->name))
			return;
		trace->name = trace->name + 1 < count ? trace->name + 1 : 0;
		trace->has_named |= trace->name == 0;
	}
	trace->has_named |= count == 0;
}

static void add_threads(struct fragi_run_trace *trace)
{
	DIR *folder = opendir("/proc/self/task");
	const struct dirent *entry;
	char path[64], name[32];

	for (uint32_t i = 0; folder != NULL && i < THREADS_MAX && (entry = readdir(folder)) != NULL;
	     i++) {
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%.20s/comm", entry->d_name);
		file = entry->d_name[0] != '.' ? fopen(path, "r") : NULL;
		if (file == NULL)
			continue;
		if (fgets(name, sizeof(name), file) != NULL) {
			name[strcspn(name, "\n")] = '\0';
			(void)fragi_trace_add_name(&trace->chunk, FRAGI_TRACE_THREAD,
						   (uint32_t)strtoul(entry->d_name, NULL, 10),
						   name);
		}
		fclose(file);
	}
	if (folder != NULL)
		closedir(folder);
}

static void add_peers(const struct fragi_run *run, struct fragi_trace_chunk *chunk, int64_t now_ns)
{
	for (size_t i = 0; run->remote != NULL && i < run->peer_count; i++) {
		const struct fragi_remote_peer *found;
		struct fragi_trace_peer peer = {.host = run->peers[i].host};
		bool is_known;

		fragi_pump_lock(run->pump);
		found = fragi_remote_peer_find(run->remote, peer.host);
		is_known = found != NULL &&
			   fragi_remote_peer_ahead(found, now_ns, &peer.ahead_ns, &peer.error_ns);
		peer.epoch = found != NULL ? fragi_remote_peer_epoch(found) : 0;
		fragi_pump_unlock(run->pump);
		if (is_known)
			(void)fragi_trace_add_peer(chunk, &peer);
	}
}

const struct fragi_trace_chunk *fragi_run_trace_chunk(struct fragi_run *run,
						      struct fragi_run_trace *trace, bool is_end)
{
	const struct fragi_interval interval = {trace->last, fragi_moment_now()};
	const uint64_t place = trace->place;
	uint64_t behind;
	const struct fragi_trace_host host = {
		.host = run->config.host,
		.pid = (uint32_t)getpid(),
		.epoch = run->config.epoch,
		.number = trace->number++,
		.lost = trace->lost,
		.now_ns = interval.last.ns,
		.unix_ns = unix_now_ns(),
		.left = atomic_load(&run->ledger.ring->next) - place,
		.end = is_end ? FRAGI_TRACE_ENDS : FRAGI_TRACE_GOES_ON,
	};

	trace->chunk.size = 0;
	(void)fragi_trace_add_host(&trace->chunk, &host, trace->host, trace->clock);
	add_peers(run, &trace->chunk, interval.last.ns);
	/* threads get their names a moment after their start */
	if (host.number < FIRST_CHUNKS || interval.last.ns - trace->threads_ns >= THREADS_NS) {
		add_threads(trace);
		add_pools(run, &trace->chunk);
		trace->threads_ns = interval.last.ns;
	}
	add_names(run, trace);
	note_levels(run);
	if (trace->has_named)
		fragi_trace_add_records(&trace->chunk, run->ledger.ring, &interval, &trace->place,
					&trace->lost);
	trace->last = interval.last;
	behind = atomic_load(&run->ledger.ring->next) - trace->place;
	trace->has_more =
		!trace->has_named || (trace->place != place && behind > FRAGI_TRACE_SLOTS / 4);
	fragi_trace_publish(trace->reader, trace->number, trace->place, trace->lost, &trace->last);
	return &trace->chunk;
}

bool fragi_run_trace_has_more(const struct fragi_run_trace *trace)
{
	return trace->has_more;
}
