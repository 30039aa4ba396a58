// SPDX-License-Identifier: Apache-2.0
#include <fragctl/trace_model.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/alloc.h>

#define AHEAD_MAX_NS (INT64_MAX / 4) /* between two clocks */

/* Chunks of hosts become ticks and ends of messages, in arrays that are bounded. */

struct ctl_trace *ctl_trace_create(void)
{
	return fragi_calloc(1, sizeof(struct ctl_trace));
}

static void host_fini(struct trace_host *host)
{
	for (uint32_t i = 0; i < host->op_count; i++)
		fragi_free(host->ops[i]);
	for (uint32_t i = 0; i < host->flow_count; i++) {
		fragi_free(host->flows[i].from);
		fragi_free(host->flows[i].to);
	}
	for (uint32_t i = 0; i < FRAGI_POOLS_MAX; i++)
		fragi_free(host->pools[i]);
	fragi_free(host->ops);
	fragi_free(host->flows);
	fragi_free(host->peers);
	fragi_free(host->name);
}

void ctl_trace_destroy(struct ctl_trace *trace)
{
	if (trace == NULL)
		return;
	for (uint32_t i = 0; i < trace->host_count; i++)
		host_fini(&trace->hosts[i]);
	fragi_free(trace->hosts);
	fragi_free(trace->ticks);
	fragi_free(trace->ends);
	fragi_free(trace->samples);
	fragi_free(trace->sent);
	fragi_free(trace->received);
	fragi_free(trace->order);
	fragi_free(trace);
}

/* Makes room for an index. Returns 0, -EBADMSG beyond the most, or -ENOMEM. */
static int reserve(void *items, uint32_t *count, uint32_t index, uint32_t most, size_t size)
{
	uint8_t *grown;
	uint32_t room = *count;

	if (index < room)
		return 0;
	if (index >= most)
		return -EBADMSG;
	while (room <= index)
		room = room < 16 ? 16 : 2 * room;
	grown = fragi_realloc(*(void **)items, room * size);
	if (grown == NULL)
		return -ENOMEM;
	*(void **)items = grown;
	*count = room;
	return 0;
}

/* The same. New items are zero. */
static int grow(void *items, uint32_t *count, uint32_t index, uint32_t most, size_t size)
{
	uint32_t before = *count;
	int r = reserve(items, count, index, most, size);

	if (r == 0 && *count > before)
		memset(*(uint8_t **)items + before * size, 0, (*count - before) * size);
	return r;
}

static int keep_text(char **kept, const char *text)
{
	char *copy;

	if (*kept != NULL && strcmp(*kept, text) == 0)
		return 0;
	copy = fragi_strdup(text);
	if (copy == NULL)
		return -ENOMEM;
	fragi_free(*kept);
	*kept = copy;
	return 0;
}

static struct trace_host *find(const struct ctl_trace *trace, uint32_t number, uint64_t epoch)
{
	for (uint32_t i = 0; i < trace->host_count; i++)
		if (trace->hosts[i].first.host == number && trace->hosts[i].first.epoch == epoch)
			return &trace->hosts[i];
	return NULL;
}

static int take_host(struct ctl_trace *trace, const struct fragi_trace_read *read,
		     struct trace_host **out_host)
{
	struct trace_host *host = find(trace, read->host.host, read->host.epoch), *grown;

	if (host == NULL && trace->host_count == TRACE_HOSTS_MAX)
		return -EBADMSG;
	if (host == NULL) {
		grown = fragi_realloc(trace->hosts, (trace->host_count + 1) * sizeof(*grown));
		if (grown == NULL)
			return -ENOMEM;
		trace->hosts = grown;
		host = &grown[trace->host_count++];
		*host = (struct trace_host){
			.first = read->host, .last = read->host, .placed_until_ns = INT64_MIN};
		host->error_ns = host == grown ? 0 : -1;
		host->lost_chunks = read->host.number;
	} else if (read->host.number > host->last.number + 1) {
		host->lost_chunks += read->host.number - host->last.number - 1;
	}
	host->last = read->host;
	if (read->other[0] != '\0')
		strncpy(host->clock, read->other, sizeof(host->clock) - 1);
	host->peer_count = 0;
	*out_host = host;
	return read->text[0] != '\0' || host->name == NULL ? keep_text(&host->name, read->text) : 0;
}

static bool has_ended_in_order(const struct trace_host *host)
{
	return host->last.end == FRAGI_TRACE_ENDS;
}

bool ctl_trace_has_crash(const struct ctl_trace *trace)
{
	for (uint32_t i = 0; i < trace->host_count; i++)
		for (uint32_t k = 0; !has_ended_in_order(&trace->hosts[i]) && k < trace->host_count;
		     k++)
			if (trace->hosts[k].first.host == trace->hosts[i].first.host &&
			    trace->hosts[k].first.epoch > trace->hosts[i].first.epoch)
				return true;
	return false;
}

static int take_peer(struct trace_host *host, const struct fragi_trace_peer *peer)
{
	struct fragi_trace_peer *grown;

	if (host->peer_count >= TRACE_HOSTS_MAX || peer->error_ns < 0 ||
	    peer->ahead_ns < -AHEAD_MAX_NS || peer->ahead_ns > AHEAD_MAX_NS)
		return -EBADMSG;
	grown = fragi_realloc(host->peers, (host->peer_count + 1) * sizeof(*grown));
	if (grown == NULL)
		return -ENOMEM;
	host->peers = grown;
	host->peers[host->peer_count++] = *peer;
	return 0;
}

static int take_flow(struct trace_host *host, const struct fragi_trace_read *read)
{
	int r = grow(&host->flows, &host->flow_count, read->flow.row, TRACE_ROWS_MAX,
		     sizeof(*host->flows));
	struct trace_flow *flow;

	if (r < 0)
		return r;
	flow = &host->flows[read->flow.row];
	flow->info = read->flow;
	r = keep_text(&flow->from, read->text);
	return r < 0 ? r : keep_text(&flow->to, read->other);
}

static int take_op(struct trace_host *host, const struct fragi_trace_read *read)
{
	int r = grow(&host->ops, &host->op_count, read->row, TRACE_ROWS_MAX, sizeof(*host->ops));

	return r < 0 ? r : keep_text(&host->ops[read->row], read->text);
}

static int take_pool(struct trace_host *host, const struct fragi_trace_read *read)
{
	return read->row < FRAGI_POOLS_MAX ? keep_text(&host->pools[read->row], read->text)
					   : -EBADMSG;
}

static void take_thread(struct trace_host *host, const struct fragi_trace_read *read)
{
	uint32_t i = 0;

	while (i < host->thread_count && host->threads[i].tid != read->tid)
		i++;
	if (i == TRACE_THREADS_MAX)
		return;
	host->thread_count += i == host->thread_count;
	host->threads[i] = (struct trace_thread){.tid = read->tid};
	strncpy(host->threads[i].name, read->text, sizeof(host->threads[i].name) - 1);
}

/* What a host knows of another one's clock; NULL: nothing. */
static const struct fragi_trace_peer *peer_of(const struct trace_host *host,
					      const struct trace_host *other)
{
	for (uint32_t i = 0; i < host->peer_count; i++)
		if (host->peers[i].host == other->first.host &&
		    host->peers[i].epoch == other->first.epoch)
			return &host->peers[i];
	return NULL;
}

/* What `to` is ahead of `from`, as one of them knows; false: neither does. */
static bool compare(const struct trace_host *from, const struct trace_host *to,
		    int64_t *out_ahead_ns, int64_t *out_error_ns)
{
	const struct fragi_trace_peer *known;

	*out_ahead_ns = *out_error_ns = 0;
	if (from->clock[0] != '\0' && strcmp(from->clock, to->clock) == 0)
		return true;
	if ((known = peer_of(from, to)) != NULL)
		*out_ahead_ns = known->ahead_ns;
	else if ((known = peer_of(to, from)) != NULL)
		*out_ahead_ns = -known->ahead_ns;
	else
		return false;
	*out_error_ns = known->error_ns;
	return true;
}

static const struct trace_bend *add_bend(struct trace_host *host, int64_t at_ns, int64_t ahead_ns)
{
	struct trace_bend *added = &host->bends[host->bend_count % TRACE_BENDS];

	if (host->bend_count++ == 0)
		host->first_ahead_ns = ahead_ns;
	*added = (struct trace_bend){at_ns, ahead_ns};
	return added;
}

/* The newest bend is that with i 0. */
static const struct trace_bend *bend_at(const struct trace_host *host, uint64_t i)
{
	return &host->bends[(host->bend_count - 1 - i) % TRACE_BENDS];
}

/*
 * Bends the line to what is known at the end of this chunk, so little that times keep their order.
 * Returns how far the line stays from it.
 */
static int64_t bend(struct trace_host *host)
{
	const struct trace_bend *last = host->bend_count > 0 ? bend_at(host, 0) : NULL;
	const int64_t now_ns = host->last.now_ns;
	int64_t step_ns, most_ns;

	if (last != NULL && host->placed_until_ns > last->at_ns)
		last = add_bend(host, host->placed_until_ns, last->ahead_ns);
	if (last == NULL)
		last = add_bend(host, now_ns, host->ahead_ns);
	if (now_ns > last->at_ns) {
		most_ns = (int64_t)(((uint64_t)now_ns - (uint64_t)last->at_ns) / 4);
		step_ns = host->ahead_ns - last->ahead_ns;
		step_ns = step_ns > most_ns ? most_ns : step_ns < -most_ns ? -most_ns : step_ns;
		last = add_bend(host, now_ns, last->ahead_ns + step_ns);
	}
	step_ns = host->ahead_ns - last->ahead_ns;
	return step_ns < 0 ? -step_ns : step_ns;
}

/* Between two bends. */
static int64_t ahead_between(const struct trace_bend *a, const struct trace_bend *b, int64_t at_ns)
{
	const __int128 length = (__int128)b->at_ns - a->at_ns;

	return a->ahead_ns + (int64_t)((__int128)(b->ahead_ns - a->ahead_ns) *
				       ((__int128)at_ns - a->at_ns) / length);
}

int64_t ctl_trace_ahead_at(const struct trace_host *host, int64_t at_ns)
{
	uint64_t i = 0, count = host->bend_count < TRACE_BENDS ? host->bend_count : TRACE_BENDS;

	while (i < count && at_ns < bend_at(host, i)->at_ns)
		i++;
	if (i == count)
		return count < TRACE_BENDS ? host->first_ahead_ns : bend_at(host, i - 1)->ahead_ns;
	return i == 0 ? bend_at(host, 0)->ahead_ns
		      : ahead_between(bend_at(host, i), bend_at(host, i - 1), at_ns);
}

/* A time of the host on the clock of the trace; as it is until the join, if that is not known. */
static int64_t place_time(struct trace_host *host, uint64_t at)
{
	const int64_t at_ns = (int64_t)at;

	if (host->error_ns < 0)
		return at_ns;
	if (at_ns > host->placed_until_ns)
		host->placed_until_ns = at_ns;
	return ctl_trace_minus(at_ns, ctl_trace_ahead_at(host, at_ns));
}

/* By the best way over other hosts: each is placed at once, or one after the other. */
static void place(struct ctl_trace *trace, struct trace_host *host)
{
	int64_t ahead_ns, error_ns, best_ns = -1, best_ahead_ns = 0;

	if (host == trace->hosts)
		return;
	for (uint32_t i = 0; i < trace->host_count; i++) {
		const struct trace_host *other = &trace->hosts[i];

		if (other == host || other->error_ns < 0 ||
		    !compare(other, host, &ahead_ns, &error_ns))
			continue;
		if (__builtin_add_overflow(error_ns, other->error_ns, &error_ns) ||
		    __builtin_add_overflow(ahead_ns, other->ahead_ns, &ahead_ns) ||
		    ahead_ns < -AHEAD_MAX_NS || ahead_ns > AHEAD_MAX_NS ||
		    (best_ns >= 0 && error_ns >= best_ns))
			continue;
		best_ns = error_ns;
		best_ahead_ns = ahead_ns;
	}
	if (best_ns < 0)
		return;
	host->ahead_ns = best_ahead_ns;
	host->error_ns = best_ns;
	if (!__builtin_add_overflow(best_ns, bend(host), &error_ns) && error_ns > host->worst_ns)
		host->worst_ns = error_ns;
}

static uint64_t key_of(const struct ctl_trace *trace, const struct trace_host *host,
		       const struct fragi_trace_flow *flow)
{
	if (flow->is_sent && flow->is_received)
		return (uint64_t)(host - trace->hosts) << 32 | flow->row;
	return UINT64_C(1) << 63 | flow->link << 24 | flow->flow;
}

/* The last ticks are kept: those that came first make room, a quarter of all at a time. */
static void make_room(struct ctl_trace *trace)
{
	const uint32_t gone = trace->tick_count / 4;
	uint32_t kept = 0;

	if (trace->tick_count < TRACE_TICKS_MAX && trace->end_count < TRACE_ENDS_MAX)
		return;
	for (uint32_t i = 0; i < trace->end_count; i++) {
		if (trace->ends[i].tick < gone)
			continue;
		trace->ends[kept] = trace->ends[i];
		trace->ends[kept++].tick -= gone;
	}
	trace->end_count = kept;
	trace->tick_count -= gone;
	memmove(trace->ticks, trace->ticks + gone, trace->tick_count * sizeof(*trace->ticks));
	trace->cut += gone;
}

static int add_tick(struct ctl_trace *trace, struct trace_host *host,
		    const struct fragi_trace_record *record)
{
	int r;

	make_room(trace);
	r = reserve(&trace->ticks, &trace->tick_room, trace->tick_count, TRACE_TICKS_MAX,
		    sizeof(*trace->ticks));
	if (r < 0)
		return r;
	trace->ticks[trace->tick_count++] = (struct trace_tick){
		.begin_ns = place_time(host, record->begin),
		.end_ns = place_time(host, record->value),
		.is_placed = host->error_ns >= 0,
		.host = (uint32_t)(host - trace->hosts),
		.op = record->object,
		.tid = record->count,
	};
	return 0;
}

static int add_end(struct ctl_trace *trace, const struct trace_host *host,
		   const struct fragi_trace_record *record)
{
	const struct trace_flow *flow =
		record->object < host->flow_count ? &host->flows[record->object] : NULL;
	int r = reserve(&trace->ends, &trace->end_room, trace->end_count, TRACE_ENDS_MAX,
			sizeof(*trace->ends));

	if (r == -EBADMSG && record->kind == FRAGI_TRACE_RECEIVED)
		trace->unmatched += record->count;
	if (r < 0)
		return r;
	if (flow == NULL || flow->from == NULL) /* its name was lost with a chunk */
		return 0;
	trace->ends[trace->end_count++] = (struct trace_end){
		.key = key_of(trace, host, &flow->info),
		.first = record->value - flow->info.before,
		.count = record->count,
		.tick = trace->tick_count - 1,
		.row = record->object,
		.is_sent = record->kind == FRAGI_TRACE_SENT,
	};
	return 0;
}

static int add_sample(struct ctl_trace *trace, struct trace_host *host,
		      const struct fragi_trace_record *record)
{
	uint32_t gone = trace->sample_count == TRACE_SAMPLES_MAX ? TRACE_SAMPLES_MAX / 4 : 0;
	int r;

	if (gone > 0) { /* the last are kept, as of ticks */
		trace->sample_count -= gone;
		memmove(trace->samples, trace->samples + gone,
			trace->sample_count * sizeof(*trace->samples));
	}
	r = reserve(&trace->samples, &trace->sample_room, trace->sample_count, TRACE_SAMPLES_MAX,
		    sizeof(*trace->samples));
	if (r < 0)
		return r;
	trace->samples[trace->sample_count++] = (struct trace_sample){
		.at_ns = place_time(host, record->begin),
		.value = record->kind == FRAGI_TRACE_GPU ? record->value - record->begin
							 : record->value,
		.host = (uint32_t)(host - trace->hosts),
		.row = record->object,
		.kind = record->kind,
		.cause = record->flows,
		.blamed = record->count,
		.is_placed = host->error_ns >= 0,
	};
	return 0;
}

static int take_records(struct ctl_trace *trace, struct trace_host *host,
			const struct fragi_trace_read *read)
{
	bool has_tick = false; /* others would be of another host */
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < read->record_count; i++) {
		const struct fragi_trace_record record = fragi_trace_record_at(read, i);

		switch (record.kind) {
		case FRAGI_TRACE_TICK:
			r = add_tick(trace, host, &record);
			has_tick = r == 0;
			break;
		case FRAGI_TRACE_SENT:
		case FRAGI_TRACE_RECEIVED:
			r = has_tick ? add_end(trace, host, &record) : 0;
			break;
		case FRAGI_TRACE_USE:
		case FRAGI_TRACE_POOL:
		case FRAGI_TRACE_LOST:
		case FRAGI_TRACE_GPU:
		case FRAGI_TRACE_LATE:
			r = add_sample(trace, host, &record);
			break;
		default:
			return -EBADMSG;
		}
		r = r == -EBADMSG ? 0 : r;
	}
	return r;
}

int ctl_trace_take(struct ctl_trace *trace, const uint8_t *bytes, uint32_t size)
{
	struct trace_host *host = NULL;
	struct fragi_trace_read read;
	uint32_t at = 0;
	int r, taken = 0;

	while (taken == 0 && (r = fragi_trace_read(bytes, size, &at, &read)) > 0) {
		if (read.kind != FRAGI_TRACE_HOST && host == NULL)
			return -EBADMSG;
		switch (read.kind) {
		case FRAGI_TRACE_HOST:
			taken = take_host(trace, &read, &host);
			break;
		case FRAGI_TRACE_OPERATOR:
			taken = take_op(host, &read);
			break;
		case FRAGI_TRACE_FLOW:
			taken = take_flow(host, &read);
			break;
		case FRAGI_TRACE_POOL_NAME:
			taken = take_pool(host, &read);
			break;
		case FRAGI_TRACE_THREAD:
			take_thread(host, &read);
			break;
		case FRAGI_TRACE_PEER:
			taken = take_peer(host, &read.peer);
			break;
		case FRAGI_TRACE_RECORDS:
			place(trace, host);
			taken = take_records(trace, host, &read);
			break;
		}
	}
	return taken < 0 ? taken : r;
}
