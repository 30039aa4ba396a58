// SPDX-License-Identifier: Apache-2.0
#include <fragctl/trace_model.h>

#include <inttypes.h>
#include <stdlib.h>

#include <base/alloc.h>
#include <base/units.h>
#include <fragctl/perfetto.h>

/* Writes what was joined: hosts as processes, threads, ticks as slices, messages as arrows. */
#define MARKS_MAX 128u /* of one event */

static uint64_t process_track(uint32_t host)
{
	return ctl_trace_track(host, TRACE_TRACK_PROCESS, 0);
}

static uint64_t thread_track(uint32_t host, uint32_t tid)
{
	return ctl_trace_track(host, TRACE_TRACK_THREAD, tid);
}

/* Two machines may have the same one: Perfetto would take it for one process. */
static uint32_t pid_of(const struct ctl_trace *trace, uint32_t host)
{
	for (uint32_t i = 0; i < host; i++)
		if (trace->hosts[i].first.pid == trace->hosts[host].first.pid)
			return (host + 1) << 22 | (trace->hosts[host].first.pid & 0x3fffff);
	return trace->hosts[host].first.pid;
}

static const char *thread_name(const struct trace_host *host, uint32_t tid)
{
	for (uint32_t i = 0; i < host->thread_count; i++)
		if (host->threads[i].tid == tid)
			return host->threads[i].name;
	return "thread";
}

static void write_host(const struct ctl_trace *trace, uint32_t index, FILE *out)
{
	const struct trace_host *host = &trace->hosts[index];
	const uint64_t left = host->last.end != FRAGI_TRACE_GOES_ON ? host->last.left : 0;
	char text[300], error[24];

	ctl_perfetto_process(out, process_track(index), pid_of(trace, index), host->name);
	for (uint32_t i = 0; i < trace->host_count; i++)
		if (trace->hosts[i].first.host == host->first.host &&
		    trace->hosts[i].first.epoch < host->first.epoch) {
			ctl_perfetto_instant(out, process_track(index), host->first_ns,
					     "started again");
			break;
		}
	fragi_format_duration(host->worst_ns, error, sizeof(error));
	if (host->is_unsure)
		snprintf(text, sizeof(text),
			 "clock never compared: placed by the system clock, with an unknown error");
	else
		snprintf(text, sizeof(text), "clock known to within %s", error);
	ctl_perfetto_instant(out, process_track(index), host->first_ns, text);
	if (host->last.lost == 0 && host->lost_chunks == 0 && left == 0)
		return;
	snprintf(text, sizeof(text),
		 "missing: %" PRIu64 " records that were overwritten, %" PRIu64
		 " chunks that were dropped on the way, %" PRIu64 " records at the end",
		 host->last.lost, host->lost_chunks, left);
	ctl_perfetto_instant(out, process_track(index), host->last_ns, text);
}

static void copy_ids(const struct trace_mark *marks, uint32_t count, bool at_begin,
		     uint64_t ids[MARKS_MAX], uint32_t *out_count)
{
	*out_count = 0;
	for (uint32_t i = 0; i < count && i < MARKS_MAX; i++)
		if (!at_begin || marks[i].at_ns == 0)
			ids[(*out_count)++] = marks[i].id;
}

/* Those that the slice itself has no room for, or that come later in it: events within it. */
static void write_more(FILE *out, uint64_t track, const struct trace_tick *tick,
		       const struct trace_mark *sent, const struct trace_mark *received)
{
	for (uint32_t i = MARKS_MAX; i < tick->sent_count; i++) {
		const uint64_t id = sent[i].id;
		const struct ctl_perfetto_flows one = {&id, NULL, 1, 0};

		ctl_perfetto_slice(out, track, tick->begin_ns, "sends", &one);
		ctl_perfetto_slice_end(out, track, tick->begin_ns, NULL);
	}
	for (uint32_t i = 0; i < tick->received_count; i++) {
		const uint64_t id = received[i].id;
		const struct ctl_perfetto_flows one = {NULL, &id, 0, 1};
		int64_t at_ns = received[i].at_ns != 0 ? received[i].at_ns : tick->begin_ns;

		if (i < MARKS_MAX && received[i].at_ns == 0)
			continue;
		ctl_perfetto_slice(out, track, at_ns, "receives", &one);
		ctl_perfetto_slice_end(out, track, at_ns, NULL);
	}
}

static void write_tick(const struct ctl_trace *trace, const struct trace_tick *tick, FILE *out)
{
	const struct trace_host *host = &trace->hosts[tick->host];
	const struct trace_mark *sent = &trace->sent[tick->first_sent],
				*received = &trace->received[tick->first_received];
	const char *name = tick->op < host->op_count ? host->ops[tick->op] : NULL;
	uint64_t sent_ids[MARKS_MAX], received_ids[MARKS_MAX];
	uint64_t track = thread_track(tick->host, tick->tid);
	struct ctl_perfetto_flows flows = {.sent = sent_ids, .received = received_ids};

	copy_ids(sent, tick->sent_count, false, sent_ids, &flows.sent_count);
	copy_ids(received, tick->received_count, true, received_ids, &flows.received_count);
	ctl_perfetto_slice(out, track, tick->begin_ns, name != NULL ? name : "operator", &flows);
	write_more(out, track, tick, sent, received);
	ctl_perfetto_slice_end(out, track, tick->end_ns, NULL);
}

/* A message enters the queue when the tick that sent it ends, and leaves it when one begins. */
struct level {
	int64_t at_ns;
	uint64_t number; /* of the next message at that end */
	bool is_sent;
};

static int compare_levels(const void *a, const void *b)
{
	const struct level *x = a, *y = b;

	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

void ctl_trace_name_flow(const struct trace_flow *flow, const char *what, char *out, size_t size)
{
	snprintf(out, size, "%s%s%s: %s", flow->from,
		 flow->from[0] != '\0' && flow->to[0] != '\0' ? " -> " : "", flow->to, what);
}

/* Of one flow; the first end is that of a sender, which knows both names, if there is any. */
static void write_counter(const struct ctl_trace *trace, const struct trace_end *ends,
			  uint32_t count, struct level *levels, FILE *out)
{
	const uint32_t host = trace->ticks[ends->tick].host;
	const struct trace_flow *flow = &trace->hosts[host].flows[ends->row];
	const uint64_t track = ctl_trace_track(host, TRACE_TRACK_QUEUE, ends->row);
	uint64_t sent = 0, received = 0;
	bool has_sent = false, has_received = false;
	char name[2 * FRAGI_TRACE_TEXT_MAX];

	ctl_trace_name_flow(flow, "queued", name, sizeof(name));
	ctl_perfetto_counter(out, track, process_track(host), name);
	for (uint32_t i = 0; i < count; i++) {
		const struct trace_tick *tick = &trace->ticks[ends[i].tick];

		levels[i] = (struct level){ends[i].is_sent ? tick->end_ns : tick->begin_ns,
					   ends[i].first + ends[i].count, ends[i].is_sent};
	}
	qsort(levels, count, sizeof(*levels), compare_levels);
	for (uint32_t i = 0; i < count; i++) {
		has_sent |= levels[i].is_sent;
		has_received |= !levels[i].is_sent;
		*(levels[i].is_sent ? &sent : &received) = levels[i].number;
		if (has_sent && has_received)
			ctl_perfetto_value(out, track, levels[i].at_ns,
					   sent > received ? (int64_t)(sent - received) : 0);
	}
}

/* The ends of a flow stand together. */
static uint32_t run_of(const struct ctl_trace *trace, uint32_t first)
{
	uint32_t count = 1;

	while (first + count < trace->end_count &&
	       trace->ends[first + count].key == trace->ends[first].key)
		count++;
	return count;
}

static void write_counters(const struct ctl_trace *trace, FILE *out)
{
	struct level *levels;
	uint32_t most = 1, count;

	for (uint32_t i = 0; i < trace->end_count; i += count) {
		count = run_of(trace, i);
		most = count > most ? count : most;
	}
	levels = fragi_calloc(most, sizeof(*levels));
	for (uint32_t i = 0; levels != NULL && i < trace->end_count; i += count) {
		count = run_of(trace, i);
		write_counter(trace, &trace->ends[i], count, levels, out);
	}
	fragi_free(levels);
}

void ctl_trace_write(const struct ctl_trace *trace, FILE *out)
{
	const struct trace_tick *before = NULL;

	if (trace->host_count > 0)
		ctl_perfetto_begin(out, trace->hosts->first.now_ns, trace->hosts->first.unix_ns);
	for (uint32_t i = 0; i < trace->host_count; i++)
		write_host(trace, i, out);
	for (uint32_t i = 0; i < trace->tick_count; i++) {
		const struct trace_tick *tick = &trace->ticks[trace->order[i]];

		if (before == NULL || before->host != tick->host || before->tid != tick->tid)
			ctl_perfetto_thread(out, thread_track(tick->host, tick->tid),
					    pid_of(trace, tick->host), tick->tid,
					    thread_name(&trace->hosts[tick->host], tick->tid));
		write_tick(trace, tick, out);
		before = tick;
	}
	write_counters(trace, out);
	ctl_trace_write_samples(trace, out);
}
