// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE /* qsort_r */
#include <fragctl/trace_model.h>

#include <errno.h>
#include <stdlib.h>

#include <base/alloc.h>

/*
 * Places all ticks on one clock, and finds the two ends of each message: both have the number that
 * it has in its flow.
 */

static int compare_ends(const void *a, const void *b)
{
	const struct trace_end *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	return x->tick < y->tick ? -1 : x->tick > y->tick;
}

static int compare_marks(const void *a, const void *b)
{
	const struct trace_mark *x = a, *y = b;

	if (x->tick != y->tick)
		return x->tick < y->tick ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

static int compare_ticks(const void *a, const void *b, void *arg)
{
	const struct ctl_trace *trace = arg;
	const struct trace_tick *x = &trace->ticks[*(const uint32_t *)a],
				*y = &trace->ticks[*(const uint32_t *)b];

	if (x->host != y->host)
		return x->host < y->host ? -1 : 1;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return x->begin_ns < y->begin_ns ? -1 : x->begin_ns > y->begin_ns;
}

static int64_t minus(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a - (uint64_t)b);
}

/* A host whose clock nobody has compared is placed by what its system clock showed. */
static void place_hosts(struct ctl_trace *trace)
{
	const struct fragi_trace_host *first = trace->host_count > 0 ? &trace->hosts->first : NULL;

	for (uint32_t i = 0; i < trace->host_count; i++) {
		struct trace_host *host = &trace->hosts[i];

		host->is_unsure = host->error_ns < 0;
		if (host->is_unsure)
			host->ahead_ns = minus(minus(host->first.now_ns, host->first.unix_ns),
					       minus(first->now_ns, first->unix_ns));
		host->first_ns = minus(host->first.now_ns, host->ahead_ns);
		host->last_ns = minus(host->last.now_ns, host->ahead_ns);
	}
}

/* What a thread did never overlaps; a clock that was corrected in between may say so. */
static void place_ticks(struct ctl_trace *trace)
{
	const struct trace_tick *before = NULL;

	for (uint32_t i = 0; i < trace->tick_count; i++) {
		struct trace_tick *tick = &trace->ticks[i];
		int64_t ahead_ns =
			tick->is_placed ? tick->ahead_ns : trace->hosts[tick->host].ahead_ns;

		tick->begin_ns = minus(tick->begin_ns, ahead_ns);
		tick->end_ns = minus(tick->end_ns, ahead_ns);
		trace->order[i] = i;
	}
	qsort_r(trace->order, trace->tick_count, sizeof(*trace->order), compare_ticks, trace);
	for (uint32_t i = 0; i < trace->tick_count; i++) {
		struct trace_tick *tick = &trace->ticks[trace->order[i]];

		if (before != NULL && before->host == tick->host && before->tid == tick->tid &&
		    tick->begin_ns < before->end_ns)
			tick->begin_ns = before->end_ns;
		if (tick->end_ns < tick->begin_ns)
			tick->end_ns = tick->begin_ns;
		before = tick;
	}
}

/* The sending end of a message: that of the last tick that can have sent it. */
static const struct trace_end *find_sender(const struct trace_end *ends, uint32_t count,
					   uint64_t key, uint64_t number)
{
	const struct trace_end *found;
	uint32_t low = 0, high = count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (ends[middle].key < key ||
		    (ends[middle].key == key && ends[middle].first <= number))
			low = middle + 1;
		else
			high = middle;
	}
	found = low > 0 ? &ends[low - 1] : NULL;
	return found != NULL && found->key == key && number - found->first < found->count ? found
											  : NULL;
}

/*
 * An arrow leads from the begin of a tick to that of another. Where that would be back in time, as
 * when the receiver's tick had begun before, it leads into the midst of it.
 */
static void add_message(struct ctl_trace *trace, const struct trace_end *from,
			const struct trace_end *to)
{
	const struct trace_tick *sender = &trace->ticks[from->tick],
				*receiver = &trace->ticks[to->tick];
	const uint32_t i = trace->message_count;
	int64_t at_ns = 0;

	if (receiver->begin_ns < sender->begin_ns)
		at_ns = sender->begin_ns;
	if (at_ns > receiver->end_ns) {
		trace->backwards++;
		return;
	}
	trace->sent[i] = (struct trace_mark){from->tick, i + 1, 0};
	trace->received[i] = (struct trace_mark){to->tick, i + 1, at_ns};
	trace->message_count++;
}

static uint64_t count_received(const struct ctl_trace *trace)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < trace->end_count; i++)
		count += trace->ends[i].is_sent ? 0 : trace->ends[i].count;
	return count;
}

static void match(struct ctl_trace *trace, const struct trace_end *sent, uint32_t sent_count,
		  uint64_t most)
{
	uint64_t looked = 0; /* counts that hosts have sent may be anything */

	for (uint32_t i = 0; i < trace->end_count; i++) {
		const struct trace_end *to = &trace->ends[i], *from;

		for (uint32_t k = 0; !to->is_sent && k < to->count && looked < most;
		     k++, looked++) {
			from = find_sender(sent, sent_count, to->key, to->first + k);
			if (from != NULL)
				add_message(trace, from, to);
		}
	}
}

/* Gives each tick its marks. */
static void sort_marks(struct ctl_trace *trace)
{
	qsort(trace->sent, trace->message_count, sizeof(*trace->sent), compare_marks);
	qsort(trace->received, trace->message_count, sizeof(*trace->received), compare_marks);
	for (uint32_t i = trace->message_count; i-- > 0;) {
		trace->ticks[trace->sent[i].tick].first_sent = i;
		trace->ticks[trace->sent[i].tick].sent_count++;
		trace->ticks[trace->received[i].tick].first_received = i;
		trace->ticks[trace->received[i].tick].received_count++;
	}
}

int ctl_trace_join(struct ctl_trace *trace)
{
	uint64_t most = count_received(trace);
	struct trace_end *sent = fragi_calloc(trace->end_count + 1, sizeof(*sent));
	uint32_t sent_count = 0;

	if (most > TRACE_MESSAGES_MAX) {
		trace->unmatched += most - TRACE_MESSAGES_MAX;
		most = TRACE_MESSAGES_MAX;
	}
	trace->order = fragi_calloc(trace->tick_count + 1, sizeof(*trace->order));
	trace->sent = fragi_calloc(most + 1, sizeof(*trace->sent));
	trace->received = fragi_calloc(most + 1, sizeof(*trace->received));
	if (sent == NULL || trace->order == NULL || trace->sent == NULL ||
	    trace->received == NULL) {
		fragi_free(sent);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < trace->end_count; i++)
		if (trace->ends[i].is_sent)
			sent[sent_count++] = trace->ends[i];
	qsort(sent, sent_count, sizeof(*sent), compare_ends);
	place_hosts(trace);
	place_ticks(trace);
	match(trace, sent, sent_count, most);
	sort_marks(trace);
	fragi_free(sent);
	return 0;
}

void ctl_trace_sums(const struct ctl_trace *trace, struct ctl_trace_sums *out)
{
	*out = (struct ctl_trace_sums){
		.hosts = trace->host_count,
		.ticks = trace->tick_count,
		.messages = trace->message_count,
		.backwards = trace->backwards,
		.unmatched = trace->unmatched,
		.cut = trace->cut,
	};
	for (uint32_t i = 0; i < trace->host_count; i++) {
		const struct trace_host *host = &trace->hosts[i];

		out->lost_records += host->last.lost;
		out->lost_chunks += host->lost_chunks;
		out->unsure_hosts += host->is_unsure;
		if (host->worst_ns > out->error_ns)
			out->error_ns = host->worst_ns;
	}
}
