/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_TRACK_ACCOUNT_H
#define FRAGI_TRACK_ACCOUNT_H

#include <stdbool.h>

#include <track/summary.h>

/*
 * The sum of one flow from the rows that its ends last reported. Every counter was counted where it
 * happened; what is missing from the sum is in flight after an orderly end, and lost when an end
 * was not orderly. Where the last page of an end could not be read (its node is gone), its true
 * counters lie beyond what it last reported, by at most what the window lets be open: `lost` is
 * then counted up to that bound, so that it may exceed the truth by at most the window and never
 * falls short of it, and what must have been sent or settled meanwhile is added to sent and
 * delivered. An end that never reported may have had a whole window open as well. What a receiver
 * dropped because it was stopped, and nobody has the count of, is lost by this sum; what it dropped
 * by its policy or the timing of its inputs after its last report is delivered. The sum always
 * balances, and the summary also gets the other ends of the ranges in which the truth lies.
 * As long as an end is open, nothing is assumed: the sum is that of the last reports, `lost` is
 * what is lost for certain, and everything else that is missing is in flight. So none of sent,
 * delivered, dropped and lost becomes less while the counts of all epochs are known.
 */
struct fragi_account_end {
	const struct fragi_flow_stats *row;  /* NULL: never reported */
	bool is_final;                       /* read after the host was gone */
	bool is_orderly;                     /* the host ended by itself when it was told to */
	bool was_restarted;                  /* there were other epochs of the host */
	const struct fragi_flow_stats *past; /* their sum; NULL: none of them has reported */
	bool is_inexact; /* some epoch of them has not reported all that it counted */
	/*
	 * A process of the host still counts, or another one is going to: the row is what was
	 * counted when the host last reported; final if that is known to be all.
	 */
	bool is_open;
};

/*
 * For a row of a flow inside a host that has ended: one that dies between two counters may have
 * counted a message settled and not sent.
 */
FRAGI_API void fragi_account_settle(struct fragi_flow_stats *row);

/*
 * Whether a row that a host reported can be what frag has counted, as far as the row shows it
 * itself: no more was settled than was sent or had arrived, and nothing is less than it was in the
 * report before. An operator shares the memory of its host and may have overwritten the page.
 * - before: the same row of the report before; NULL: there was none
 */
FRAGI_API bool fragi_account_is_sound(const struct fragi_flow_stats *row,
				      const struct fragi_flow_stats *before);

/* A flow inside a host: both halves are in one row. Fills in what *out counts. */
FRAGI_API void fragi_account_inner(const struct fragi_account_end *end, uint32_t capacity,
				   struct fragi_summary_flow *out);
/*
 * A flow between hosts. Where one of them has had several epochs, what is missing from the sums of
 * all is lost: with what was on its way to a host that died. window: messages that may be open.
 * queues: the policy does not block: the credit returns on arrival, so that as many again may wait
 * in the receiver's queue, and as many in the sender's.
 */
FRAGI_API void fragi_account_between(const struct fragi_account_end *sender,
				     const struct fragi_account_end *receiver, uint32_t window,
				     bool queues, struct fragi_summary_flow *out);

#endif
