// SPDX-License-Identifier: Apache-2.0
#include <track/account.h>

#include <assert.h>

static const struct fragi_flow_stats nothing;

static uint64_t sum(const uint64_t *reasons)
{
	uint64_t total = 0;

	for (int i = 0; i < FRAGI_DROP_REASONS; i++)
		total += reasons[i];
	return total;
}

static uint64_t largest(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t without(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* A message in each nanosecond of two years. */
#define COUNT_MAX (UINT64_C(1) << 56)

static bool has_grown(const uint64_t *row, const uint64_t *before, int count)
{
	for (int i = 0; i < count; i++)
		if (row[i] > COUNT_MAX || (before != NULL && row[i] < before[i]))
			return false;
	return true;
}

bool fragi_account_is_sound(const struct fragi_flow_stats *row,
			    const struct fragi_flow_stats *before)
{
	const struct fragi_flow_stats *b = before;
	const uint64_t now[] = {row->sent, row->confirmed, row->arrived, row->delivered};
	const uint64_t then[] = {b ? b->sent : 0, b ? b->confirmed : 0, b ? b->arrived : 0,
				 b ? b->delivered : 0};

	/* A host that was killed between two counters has counted one message in one of them. */
	return has_grown(now, then, FRAG_COUNT_OF(now)) &&
	       has_grown(row->tx_dropped, b ? b->tx_dropped : NULL, FRAGI_DROP_REASONS) &&
	       has_grown(row->rx_dropped, b ? b->rx_dropped : NULL, FRAGI_DROP_REASONS) &&
	       sum(row->tx_dropped) <= row->sent + 1 && row->confirmed <= row->sent + 1 &&
	       row->delivered + sum(row->rx_dropped) <= largest(row->sent, row->arrived) + 1;
}

/* What the ends counted: the sender's half of one row, the receiver's half of the other. */
static void take_counts(struct fragi_summary_flow *out, const struct fragi_flow_stats *tx,
			const struct fragi_flow_stats *rx)
{
	for (int i = 0; i < FRAGI_COUNTERS; i++)
		out->counters[i] = (i < FRAGI_SENDER_COUNTERS ? tx : rx)->counters[i];
	for (int i = 0; i < FRAGI_DROP_REASONS; i++)
		out->dropped[i] = tx->tx_dropped[i] + rx->rx_dropped[i];
	out->latency = rx->latency;
}

/*
 * sent is what is known or must be assumed to have been sent. What is missing from it is in flight
 * or lost. A sender that dies between two counters may have counted a message settled that it had
 * not counted sent.
 */
static void close_sum(struct fragi_summary_flow *out, uint64_t sent, bool orderly)
{
	uint64_t settled = out->delivered + sum(out->dropped);

	out->sent = largest(sent, settled);
	out->in_flight = orderly ? out->sent - settled : 0;
	out->lost = orderly ? 0 : out->sent - settled;
}

/*
 * The other ends of the ranges. known, received, lost: for certain. Nobody knows
 * what an end that left no page did after its last report; but what a receiver got is no more than
 * its sender sent.
 */
static void set_ranges(struct fragi_summary_flow *out, bool sender_is_final, bool receiver_is_final,
		       uint64_t known, uint64_t received, uint64_t lost)
{
	out->exact = sender_is_final && receiver_is_final;
	out->lost_at_least = out->exact || lost > out->lost ? out->lost : lost;
	out->sent_at_least = out->sent_at_most = out->sent;
	if (!sender_is_final) {
		out->sent_at_least =
			largest(known, received + sum(out->dropped) + out->lost_at_least);
		out->sent_at_most = FRAGI_SUMMARY_OPEN;
	}
	out->delivered_at_least = received;
	out->delivered_at_most = out->delivered;
	if (!receiver_is_final)
		out->delivered_at_most = sender_is_final
						 ? out->delivered + out->lost - out->lost_at_least
						 : FRAGI_SUMMARY_OPEN;
}

void fragi_account_settle(struct fragi_flow_stats *row)
{
	row->sent =
		largest(row->sent, row->delivered + sum(row->tx_dropped) + sum(row->rx_dropped));
}

/* What epochs that are over left open is lost. */
static void add_past(struct fragi_summary_flow *out, const struct fragi_flow_stats *past)
{
	uint64_t settled = past->delivered + sum(past->tx_dropped) + sum(past->rx_dropped);
	uint64_t lost = without(past->sent, settled), first_ns = past->first_ns;
	struct fragi_quantiles latency = past->latency;

	for (int i = 0; i < FRAGI_COUNTERS; i++)
		out->counters[i] += past->counters[i];
	for (int i = 0; i < FRAGI_DROP_REASONS; i++)
		out->dropped[i] += past->tx_dropped[i] + past->rx_dropped[i];
	out->first_ns = first_ns != 0 ? first_ns : out->first_ns;
	out->lost += lost;
	out->lost_at_least += lost;
	out->sent_at_least += past->sent;
	out->delivered_at_least += past->delivered;
	if (out->sent_at_most != FRAGI_SUMMARY_OPEN)
		out->sent_at_most += past->sent;
	if (out->delivered_at_most != FRAGI_SUMMARY_OPEN)
		out->delivered_at_most += past->delivered;
	fragi_quantiles_add(&latency, &out->latency);
	out->latency = latency;
}

/* Nobody knows what some epoch has counted beside what it reported. */
static void open_ranges(struct fragi_summary_flow *out)
{
	out->exact = false;
	out->sent_at_most = out->delivered_at_most = FRAGI_SUMMARY_OPEN;
}

void fragi_account_inner(const struct fragi_account_end *end, uint32_t capacity,
			 struct fragi_summary_flow *out)
{
	const struct fragi_flow_stats *row = end->row != NULL ? end->row : &nothing;
	uint64_t sent = row->sent;

	take_counts(out, row, row);
	if (!end->is_final && !end->is_open)
		sent = largest(sent, out->delivered + sum(out->dropped) + capacity);
	close_sum(out, sent, end->is_open || (end->is_final && end->is_orderly));
	set_ranges(out, end->is_final, end->is_final, row->sent, row->delivered, 0);
	if (end->past != NULL) {
		struct fragi_flow_stats past = *end->past;

		fragi_account_settle(&past); /* another worker may have summed it up otherwise */
		add_past(out, &past);
	}
	if (end->is_inexact) {
		open_ranges(out);
		out->lost_at_least = 0;
	}
	assert(fragi_summary_flow_balances(out));
}

/*
 * Some epoch of an end is over, and with it what was on the way: how much can only be told from
 * what is missing. Without the last counts of an end nothing more is assumed.
 */
static void close_epochs(struct fragi_summary_flow *out, const struct fragi_flow_stats *tx,
			 const struct fragi_flow_stats *rx, bool exact)
{
	close_sum(out, tx->sent, false);
	set_ranges(out, true, true, tx->sent, rx->delivered, 0);
	if (exact)
		return;
	open_ranges(out);
	out->lost_at_least = 0;
}

/*
 * A host of an end still counts: nothing is assumed. What is missing may yet arrive, but for what
 * waited in a receiver that is over.
 */
static void keep_open(struct fragi_summary_flow *out, const struct fragi_flow_stats *tx,
		      const struct fragi_flow_stats *rx, const struct fragi_flow_stats *past,
		      bool exact)
{
	uint64_t lost = without(past->arrived, past->delivered + sum(past->rx_dropped));

	close_sum(out, largest(tx->sent, sum(tx->tx_dropped) + rx->arrived), true);
	set_ranges(out, true, true, 0, out->delivered, 0);
	out->lost = out->lost_at_least = lost < out->in_flight ? lost : out->in_flight;
	out->in_flight -= out->lost;
	if (!exact)
		open_ranges(out);
}

/* What all epochs of an end have counted. */
static struct fragi_flow_stats total_of(const struct fragi_account_end *end)
{
	struct fragi_flow_stats total = {0};

	if (end->past != NULL)
		fragi_flow_stats_add(&total, end->past);
	if (end->row != NULL)
		fragi_flow_stats_add(&total, end->row);
	return total;
}

void fragi_account_between(const struct fragi_account_end *sender,
			   const struct fragi_account_end *receiver, uint32_t window, bool queues,
			   struct fragi_summary_flow *out)
{
	const struct fragi_flow_stats sent_row = total_of(sender), *tx = &sent_row;
	const struct fragi_flow_stats received_row = total_of(receiver), *rx = &received_row;
	bool exact = sender->is_final && !sender->is_inexact && receiver->is_final &&
		     !receiver->is_inexact;
	uint64_t on_the_way = (uint64_t)window + (queues ? window : 0); /* not yet arrived */
	uint64_t open = on_the_way + (queues ? window : 0);             /* not yet settled */
	uint64_t settled = rx->delivered + sum(rx->rx_dropped);
	uint64_t tx_dropped = sum(tx->tx_dropped), sent = tx->sent, lost;

	take_counts(out, tx, rx);
	if (sender->is_open || receiver->is_open) {
		bool is_known = receiver->past != NULL && !receiver->is_inexact;

		keep_open(out, tx, rx, is_known ? receiver->past : &nothing, exact);
		return;
	}
	if (sender->was_restarted || receiver->was_restarted) {
		close_epochs(out, tx, rx, exact);
		return;
	}
	if (!receiver->is_final) {
		/*
		 * It has settled at least what it confirmed, and what the window did not hold back.
		 */
		settled = largest(settled, without(tx->confirmed, queues ? window : 0));
		settled = largest(settled, without(without(tx->sent, tx_dropped), open));
		settled = largest(settled, without(rx->arrived, window));
		out->delivered = settled - sum(rx->rx_dropped);
	}
	if (!sender->is_final) {
		if (receiver->is_final)
			sent = largest(sent, tx_dropped + rx->arrived + on_the_way);
		else
			sent = largest(sent, tx_dropped + settled + open);
	}
	close_sum(out, sent,
		  sender->is_final && sender->is_orderly && receiver->is_final &&
			  receiver->is_orderly);
	/* What waited in the receiver's queue, or had no credit to leave the sender. */
	if (receiver->is_final)
		lost = without(rx->arrived, settled);
	else
		lost = sender->is_final
			       ? without(without(tx->sent, tx_dropped), tx->confirmed + window)
			       : 0;
	set_ranges(out, sender->is_final, receiver->is_final, tx->sent, rx->delivered, lost);
	assert(fragi_summary_flow_balances(out));
}
