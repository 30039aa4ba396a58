// SPDX-License-Identifier: Apache-2.0
#include <fragctl/trace_model.h>

#include <base/alloc.h>
#include <base/blame.h>
#include <base/look.h>
#include <base/units.h>
#include <fragctl/perfetto.h>

/*
 * Writes what was seen beside ticks: what operators waited for and what GPUs did for them, as
 * slices on a track of each, and how much of a pool is in use and how much of a flow was lost, as
 * counters.
 */
static const char *const waits[FRAGI_USES] = {
	[FRAGI_USE_INPUT] = "waits for a message", [FRAGI_USE_ROOM] = "waits for room",
	[FRAGI_USE_MEMORY] = "waits for memory",   [FRAGI_USE_THREAD] = "waits for a thread",
	[FRAGI_USE_TIME] = "waits for a time",     [FRAGI_USE_SUSPENDED] = "does not run",
};

static void write_wait(FILE *out, uint64_t track, int64_t begin_ns, int64_t end_ns,
		       const char *name)
{
	if (begin_ns >= end_ns)
		return;
	ctl_perfetto_slice(out, track, begin_ns, name, NULL);
	ctl_perfetto_slice_end(out, track, end_ns, NULL);
}

/* The ticks of an operator, in their order; `at`: the first that had not ended when last looked. */
struct ticks {
	const struct ctl_trace *trace;
	const uint32_t *order;
	uint32_t at, end;
	int64_t written_ns; /* until when its track is written */
};

static const struct trace_tick *tick_at(const struct ticks *ticks, uint32_t i)
{
	return &ticks->trace->ticks[ticks->order[i]];
}

/*
 * Between the ticks in that time it waited. What was seen after a tick was so from its end on.
 */
static void write_between(struct ticks *ticks, uint64_t track, int64_t from_ns, int64_t to_ns,
			  bool after_tick, const char *name, FILE *out)
{
	const uint32_t first = ticks->at;

	while (ticks->at < ticks->end && tick_at(ticks, ticks->at)->end_ns <= from_ns)
		ticks->at++;
	if (after_tick && ticks->at > first)
		from_ns = tick_at(ticks, ticks->at - 1)->end_ns;
	from_ns = from_ns > ticks->written_ns ? from_ns : ticks->written_ns;
	ticks->written_ns = to_ns;
	for (; ticks->at < ticks->end && tick_at(ticks, ticks->at)->begin_ns < to_ns; ticks->at++) {
		const struct trace_tick *tick = tick_at(ticks, ticks->at);

		write_wait(out, track, from_ns, tick->begin_ns, name);
		if (name == waits[FRAGI_USE_SUSPENDED]) /* it runs */
			return;
		from_ns = tick->end_ns > from_ns ? tick->end_ns : from_ns;
		if (tick->end_ns > to_ns)
			break;
	}
	write_wait(out, track, from_ns, to_ns, name);
}

/* What one operator was seen to do. */
static void write_operator(const struct ctl_trace *trace, const struct trace_sample *samples,
			   uint32_t count, struct ticks *ticks, FILE *out)
{
	const struct trace_host *host = &trace->hosts[samples->host];
	const uint64_t track = ctl_trace_track(samples->host, TRACE_TRACK_OPERATOR, samples->row);
	const char *op = samples->row < host->op_count ? host->ops[samples->row] : NULL;
	bool was_busy = false;

	ctl_perfetto_track(out, track, ctl_trace_track(samples->host, TRACE_TRACK_PROCESS, 0),
			   op != NULL ? op : "operator");
	for (uint32_t i = 0; i < count; i++) {
		const uint64_t use = samples[i].value;
		const int64_t until_ns = i + 1 < count ? samples[i + 1].at_ns : host->last_ns;

		if (use < FRAGI_USES && waits[use] != NULL)
			write_between(ticks, track, samples[i].at_ns, until_ns, was_busy,
				      waits[use], out);
		was_busy = use == FRAGI_USE_BUSY;
	}
}

static void write_level(const struct ctl_trace *trace, const struct trace_sample *samples,
			uint32_t count, FILE *out)
{
	const struct trace_host *host = &trace->hosts[samples->host];
	const bool is_pool = samples->kind == FRAGI_TRACE_POOL;
	const struct trace_flow *flow =
		!is_pool && samples->row < host->flow_count ? &host->flows[samples->row] : NULL;
	const uint64_t track = ctl_trace_track(
		samples->host, is_pool ? TRACE_TRACK_POOL : TRACE_TRACK_LOST, samples->row);
	char name[2 * FRAGI_TRACE_TEXT_MAX];

	if (is_pool && (samples->row >= FRAGI_POOLS_MAX || host->pools[samples->row] == NULL))
		return;
	if (!is_pool && (flow == NULL || flow->from == NULL))
		return;
	if (is_pool)
		snprintf(name, sizeof(name), "%s: blocks in use", host->pools[samples->row]);
	else
		ctl_trace_name_flow(flow, "dropped", name, sizeof(name));
	ctl_perfetto_counter(out, track, ctl_trace_track(samples->host, TRACE_TRACK_PROCESS, 0),
			     name);
	for (uint32_t i = 0; i < count; i++)
		ctl_perfetto_value(out, track, samples[i].at_ns, (int64_t)samples[i].value);
}

static void write_gpu(const struct ctl_trace *trace, const struct trace_sample *samples,
		      uint32_t count, FILE *out)
{
	const struct trace_host *host = &trace->hosts[samples->host];
	const uint64_t track = ctl_trace_track(samples->host, TRACE_TRACK_GPU, samples->row);
	const char *op = samples->row < host->op_count ? host->ops[samples->row] : NULL;
	int64_t written_ns = INT64_MIN;
	char name[FRAGI_TRACE_TEXT_MAX + 16];

	snprintf(name, sizeof(name), "%s: GPU", op != NULL ? op : "operator");
	ctl_perfetto_track(out, track, ctl_trace_track(samples->host, TRACE_TRACK_PROCESS, 0),
			   name);
	for (uint32_t i = 0; i < count; i++) {
		const int64_t at_ns = samples[i].at_ns > written_ns ? samples[i].at_ns : written_ns,
			      end_ns = (int64_t)((uint64_t)samples[i].at_ns + samples[i].value);

		write_wait(out, track, at_ns, end_ns, "work");
		written_ns = end_ns > at_ns ? end_ns : at_ns;
	}
}

/* Messages that were late where the operator ended their path. */
static void write_late(const struct ctl_trace *trace, const struct trace_sample *samples,
		       uint32_t count, FILE *out)
{
	const struct trace_host *host = &trace->hosts[samples->host];
	const uint64_t track = ctl_trace_track(samples->host, TRACE_TRACK_LATE, samples->row);
	const char *op = samples->row < host->op_count ? host->ops[samples->row] : NULL, *blamed;
	char name[FRAGI_TRACE_TEXT_MAX + 80], took[24];

	snprintf(name, sizeof(name), "%s: late messages", op != NULL ? op : "operator");
	ctl_perfetto_track(out, track, ctl_trace_track(samples->host, TRACE_TRACK_PROCESS, 0),
			   name);
	for (uint32_t i = 0; i < count; i++) {
		const struct trace_sample *late = &samples[i];

		blamed = late->blamed > 0 && late->blamed <= host->op_count
				 ? host->ops[late->blamed - 1]
				 : NULL;
		snprintf(name, sizeof(name), "late after %s: %s%s%s",
			 fragi_format_duration((int64_t)late->value, took, sizeof(took)),
			 blamed != NULL ? blamed : "", blamed != NULL ? " " : "",
			 late->cause < FRAGI_BLAME_CAUSES
				 ? fragi_blame_text((enum fragi_blame_cause)late->cause)
				 : "cause not known");
		ctl_perfetto_instant(out, track, late->at_ns, name);
	}
}

/* How many samples are of the same thing as the first. */
static uint32_t run_of(const struct ctl_trace *trace, uint32_t first)
{
	const struct trace_sample *a = &trace->samples[first];
	uint32_t count = 1;

	while (first + count < trace->sample_count && a[count].kind == a->kind &&
	       a[count].host == a->host && a[count].row == a->row)
		count++;
	return count;
}

/* Moves on to the ticks of that operator. */
static void find_ticks(struct ticks *ticks, uint32_t host, uint32_t op)
{
	uint32_t at = ticks->end;

	while (at < ticks->trace->tick_count &&
	       (tick_at(ticks, at)->host < host ||
		(tick_at(ticks, at)->host == host && tick_at(ticks, at)->op < op)))
		at++;
	ticks->at = ticks->end = at;
	ticks->written_ns = INT64_MIN;
	while (ticks->end < ticks->trace->tick_count && tick_at(ticks, ticks->end)->host == host &&
	       tick_at(ticks, ticks->end)->op == op)
		ticks->end++;
}

void ctl_trace_write_samples(const struct ctl_trace *trace, FILE *out)
{
	uint32_t *order = fragi_calloc(trace->tick_count + 1, sizeof(*order)), count;
	struct ticks ticks = {.trace = trace, .order = order};

	if (order != NULL)
		ctl_trace_sort_ticks(trace, TRACE_OF_OPERATORS, order);
	for (uint32_t i = 0; order != NULL && i < trace->sample_count; i += count) {
		const struct trace_sample *first = &trace->samples[i];

		count = run_of(trace, i);
		if (first->kind == FRAGI_TRACE_GPU) {
			write_gpu(trace, first, count, out);
			continue;
		}
		if (first->kind == FRAGI_TRACE_LATE) {
			write_late(trace, first, count, out);
			continue;
		}
		if (first->kind != FRAGI_TRACE_USE) {
			write_level(trace, first, count, out);
			continue;
		}
		find_ticks(&ticks, first->host, first->row);
		write_operator(trace, first, count, &ticks, out);
	}
	fragi_free(order);
}
