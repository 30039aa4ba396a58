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

#define MOVES_MAX 8 /* of hosts, for what messages prove of their clocks */

static int compare_ends(const void *a, const void *b)
{
	const struct trace_end *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	if (x->is_sent != y->is_sent)
		return x->is_sent ? -1 : 1;
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

static int compare_samples(const void *a, const void *b)
{
	const struct trace_sample *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->host != y->host)
		return x->host < y->host ? -1 : 1;
	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	return x->at_ns < y->at_ns ? -1 : x->at_ns > y->at_ns;
}

struct sorting {
	const struct trace_tick *ticks;
	enum trace_of of;
};

static int compare_ticks(const void *a, const void *b, void *arg)
{
	const struct sorting *sorting = arg;
	const struct trace_tick *x = &sorting->ticks[*(const uint32_t *)a],
				*y = &sorting->ticks[*(const uint32_t *)b];
	const uint32_t of_x = sorting->of == TRACE_OF_THREADS ? x->tid : x->op,
		       of_y = sorting->of == TRACE_OF_THREADS ? y->tid : y->op;

	if (x->host != y->host)
		return x->host < y->host ? -1 : 1;
	if (of_x != of_y)
		return of_x < of_y ? -1 : 1;
	return x->begin_ns < y->begin_ns ? -1 : x->begin_ns > y->begin_ns;
}

void ctl_trace_sort_ticks(const struct ctl_trace *trace, enum trace_of of, uint32_t *order)
{
	struct sorting sorting = {trace->ticks, of};

	for (uint32_t i = 0; i < trace->tick_count; i++)
		order[i] = i;
	qsort_r(order, trace->tick_count, sizeof(*order), compare_ticks, &sorting);
}

/* A host whose clock nobody has compared is placed by what its system clock showed. */
static void place_hosts(struct ctl_trace *trace)
{
	const struct fragi_trace_host *first = trace->host_count > 0 ? &trace->hosts->first : NULL;

	for (uint32_t i = 0; i < trace->host_count; i++) {
		struct trace_host *host = &trace->hosts[i];

		host->is_unsure = host->error_ns < 0;
		if (host->is_unsure)
			host->first_ahead_ns = ctl_trace_minus(
				ctl_trace_minus(host->first.now_ns, host->first.unix_ns),
				ctl_trace_minus(first->now_ns, first->unix_ns));
		host->first_ns = ctl_trace_minus(host->first.now_ns, host->first_ahead_ns);
		host->last_ns = ctl_trace_minus(host->last.now_ns,
						ctl_trace_ahead_at(host, host->last.now_ns));
	}
}

/* What a thread did never overlaps; a clock that was corrected in between may say so. */
static void place_ticks(struct ctl_trace *trace)
{
	const struct trace_tick *before = NULL;

	for (uint32_t i = 0; i < trace->tick_count; i++) {
		struct trace_tick *tick = &trace->ticks[i];
		int64_t ahead_ns = tick->is_placed ? 0 : trace->hosts[tick->host].first_ahead_ns;

		tick->begin_ns = ctl_trace_minus(tick->begin_ns, ahead_ns);
		tick->end_ns = ctl_trace_minus(tick->end_ns, ahead_ns);
	}
	ctl_trace_sort_ticks(trace, TRACE_OF_THREADS, trace->order);
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
static const struct trace_end *find_sender(const struct ctl_trace *trace, uint64_t key,
					   uint64_t number)
{
	const struct trace_end wanted = {
		.key = key, .is_sent = true, .first = number, .tick = UINT32_MAX};
	const struct trace_end *found;
	uint32_t low = 0, high = trace->end_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (compare_ends(&trace->ends[middle], &wanted) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	found = low > 0 ? &trace->ends[low - 1] : NULL;
	return found != NULL && found->key == key && found->is_sent &&
			       number - found->first < found->count
		       ? found
		       : NULL;
}

/*
 * An arrow leads from the begin of a tick to that of another. Where that would be back in time, as
 * when the receiver's tick had begun before, it leads into the midst of it. Perfetto draws none
 * that ends at the time at which it begins.
 */
static void add_message(struct ctl_trace *trace, const struct trace_end *from,
			const struct trace_end *to)
{
	const struct trace_tick *sender = &trace->ticks[from->tick],
				*receiver = &trace->ticks[to->tick];
	const uint32_t i = trace->message_count;
	int64_t at_ns = 0;

	if (receiver->begin_ns <= sender->begin_ns)
		at_ns = sender->begin_ns + 1;
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

/* Calls fn with both ends of each message, as long as there is room for them. */
static void match(struct ctl_trace *trace, uint64_t most,
		  void (*fn)(struct ctl_trace *trace, const struct trace_end *from,
			     const struct trace_end *to))
{
	uint64_t looked = 0; /* counts that hosts have sent may be anything */

	for (uint32_t i = 0; i < trace->end_count; i++) {
		const struct trace_end *to = &trace->ends[i], *from;

		for (uint32_t k = 0; !to->is_sent && k < to->count && looked < most;
		     k++, looked++) {
			from = find_sender(trace, to->key, to->first + k);
			if (from != NULL)
				fn(trace, from, to);
		}
	}
}

/*
 * Messages prove more of clocks than was known when they were sent: none was received before it was
 * sent. A host whose messages say so is moved, by no more than its clock may be wrong, and by no
 * more than leaves all other messages in order.
 */
static void measure(struct ctl_trace *trace, const struct trace_end *from,
		    const struct trace_end *to)
{
	const struct trace_tick *sender = &trace->ticks[from->tick],
				*receiver = &trace->ticks[to->tick];
	struct trace_moves *a = &trace->hosts[sender->host].moves,
			   *b = &trace->hosts[receiver->host].moves;
	const int64_t gap_ns = ctl_trace_minus(receiver->end_ns, sender->begin_ns + 1);

	if (a == b)
		return;
	if (gap_ns < 0) {
		a->earlier_ns = a->earlier_ns > -gap_ns ? a->earlier_ns : -gap_ns;
		b->later_ns = b->later_ns > -gap_ns ? b->later_ns : -gap_ns;
	}
	a->later_max_ns = a->later_max_ns < gap_ns ? a->later_max_ns : gap_ns;
	b->earlier_max_ns = b->earlier_max_ns < gap_ns ? b->earlier_max_ns : gap_ns;
}

static int64_t least(int64_t a, int64_t b, int64_t c)
{
	int64_t ab = a < b ? a : b;

	return ab < c ? ab : c;
}

static bool move_host(struct ctl_trace *trace, uint32_t index)
{
	struct trace_host *host = &trace->hosts[index];
	const struct trace_moves *moves = &host->moves;
	const int64_t left_ns = host->worst_ns - host->moved_ns;
	int64_t by_ns = least(moves->later_ns, moves->later_max_ns, left_ns);

	if (by_ns <= 0)
		by_ns = -least(moves->earlier_ns, moves->earlier_max_ns, left_ns);
	if (by_ns == 0 || left_ns <= 0 || moves->later_ns + moves->earlier_ns == 0)
		return false;
	for (uint32_t i = 0; i < trace->tick_count; i++) {
		if (trace->ticks[i].host != index)
			continue;
		trace->ticks[i].begin_ns += by_ns;
		trace->ticks[i].end_ns += by_ns;
	}
	for (uint32_t i = 0; i < trace->sample_count; i++)
		if (trace->samples[i].host == index)
			trace->samples[i].at_ns += by_ns;
	host->first_ns += by_ns;
	host->last_ns += by_ns;
	host->moved_ns += by_ns > 0 ? by_ns : -by_ns;
	return true;
}

/* One host after the other, since each changes what the others may do; the first one stays. */
static void move_hosts(struct ctl_trace *trace, uint64_t most)
{
	bool has_moved = true;

	for (int round = 0; has_moved && round < MOVES_MAX; round++) {
		for (uint32_t i = 0; i < trace->host_count; i++)
			trace->hosts[i].moves = (struct trace_moves){.later_max_ns = INT64_MAX,
								     .earlier_max_ns = INT64_MAX};
		match(trace, most, measure);
		has_moved = false;
		for (uint32_t i = 1; !has_moved && i < trace->host_count; i++)
			has_moved = move_host(trace, i);
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

	if (most > TRACE_MESSAGES_MAX) {
		trace->unmatched += most - TRACE_MESSAGES_MAX;
		most = TRACE_MESSAGES_MAX;
	}
	trace->order = fragi_calloc(trace->tick_count + 1, sizeof(*trace->order));
	trace->sent = fragi_calloc(most + 1, sizeof(*trace->sent));
	trace->received = fragi_calloc(most + 1, sizeof(*trace->received));
	if (trace->order == NULL || trace->sent == NULL || trace->received == NULL)
		return -ENOMEM;
	if (trace->end_count > 0)
		qsort(trace->ends, trace->end_count, sizeof(*trace->ends), compare_ends);
	place_hosts(trace);
	place_ticks(trace);
	for (uint32_t i = 0; i < trace->sample_count; i++)
		if (!trace->samples[i].is_placed)
			trace->samples[i].at_ns = ctl_trace_minus(
				trace->samples[i].at_ns,
				trace->hosts[trace->samples[i].host].first_ahead_ns);
	if (trace->sample_count > 0)
		qsort(trace->samples, trace->sample_count, sizeof(*trace->samples),
		      compare_samples);
	move_hosts(trace, most);
	match(trace, most, add_message);
	sort_marks(trace);
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
		if (host->last.end == FRAGI_TRACE_GOES_ON)
			out->open_hosts++;
		else
			out->left_records += host->last.left;
		out->lost_chunks += host->lost_chunks;
		out->unsure_hosts += host->is_unsure;
		if (host->worst_ns + host->moved_ns > out->error_ns)
			out->error_ns = host->worst_ns + host->moved_ns;
	}
}
