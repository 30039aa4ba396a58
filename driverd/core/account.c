// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/account.h>

static const struct fw_flow_stats nothing;

static uint64_t sum(const uint64_t *reasons)
{
	uint64_t total = 0;

	for (int i = 0; i < FW_DROP_REASONS; i++)
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

static void add_dropped(struct drv_account *out, const uint64_t *reasons)
{
	for (int i = 0; i < FW_DROP_REASONS; i++)
		out->dropped[i] += reasons[i];
}

/*
 * sent is what is known or must be assumed to have been sent. What is missing from it is in flight
 * or lost. A sender that dies between two counters may have counted a message settled that it had
 * not counted sent.
 */
static void close_sum(struct drv_account *out, uint64_t sent, bool orderly)
{
	uint64_t settled = out->delivered + sum(out->dropped);

	out->sent = largest(sent, settled);
	out->in_flight = orderly ? out->sent - settled : 0;
	out->lost = orderly ? 0 : out->sent - settled;
}

void drv_account_inner(const struct drv_account_end *end, uint32_t capacity,
		       struct drv_account *out)
{
	const struct fw_flow_stats *row = end->row != NULL ? end->row : &nothing;
	uint64_t sent = row->sent;

	*out = (struct drv_account){.delivered = row->delivered, .bytes = row->bytes};
	add_dropped(out, row->tx_dropped);
	add_dropped(out, row->rx_dropped);
	if (!end->is_final)
		sent = largest(sent, out->delivered + sum(out->dropped) + capacity);
	close_sum(out, sent, end->is_final && end->is_orderly);
}

void drv_account_between(const struct drv_account_end *sender,
			 const struct drv_account_end *receiver, uint32_t window, bool queues,
			 struct drv_account *out)
{
	const struct fw_flow_stats *tx = sender->row != NULL ? sender->row : &nothing;
	const struct fw_flow_stats *rx = receiver->row != NULL ? receiver->row : &nothing;
	uint64_t on_the_way = (uint64_t)window + (queues ? window : 0); /* not yet arrived */
	uint64_t open = on_the_way + (queues ? window : 0);             /* not yet settled */
	uint64_t settled = rx->delivered + sum(rx->rx_dropped);
	uint64_t tx_dropped = sum(tx->tx_dropped), sent = tx->sent;

	*out = (struct drv_account){.delivered = rx->delivered, .bytes = tx->bytes};
	add_dropped(out, tx->tx_dropped);
	add_dropped(out, rx->rx_dropped);
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
}
