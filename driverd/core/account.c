// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>

#include <errno.h>

#include <base/alloc.h>
#include <track/account.h>

/*
 * What a host counted in the epochs that are over. Its ledger goes with its process, and the next
 * process counts from 0; the sums of the application are those of all epochs.
 */

static int make_room(struct drv_past *past, const struct fw_host_stats *stats)
{
	if (past->flows == NULL && stats->flow_count > 0) {
		past->flows = fragi_calloc(stats->flow_count, sizeof(*past->flows));
		if (past->flows == NULL)
			return -ENOMEM;
		past->flow_count = stats->flow_count;
	}
	if (past->ops == NULL && stats->op_count > 0) {
		past->ops = fragi_calloc(stats->op_count, sizeof(*past->ops));
		if (past->ops == NULL)
			return -ENOMEM;
		past->op_count = stats->op_count;
	}
	return 0;
}

/* A host that dies between two counters may have counted a message settled and not sent. */
static void settle(struct fragi_flow_stats *row)
{
	uint64_t settled = row->delivered;

	for (int i = 0; i < FRAGI_DROP_REASONS; i++)
		settled += row->tx_dropped[i] + row->rx_dropped[i];
	if (row->sent < settled)
		row->sent = settled;
}

int drv_past_add(struct drv_host *host)
{
	const struct fw_host_stats *stats =
		host->now.stats != NULL ? &host->now.stats->stats : NULL;
	struct drv_past *past = &host->past;

	if (host->now.has_begun && (stats == NULL || !stats->final || host->now.is_doubted))
		past->is_inexact = true;
	if (stats != NULL && !host->now.is_doubted) {
		if (make_room(past, stats) < 0)
			return -ENOMEM;
		for (uint32_t i = 0; i < stats->flow_count && i < past->flow_count; i++) {
			struct fragi_flow_stats row = stats->flows[i];

			if (i < host->inner_flow_count)
				settle(&row);
			fragi_account_add(&past->flows[i], &row);
		}
		for (uint32_t i = 0; i < stats->op_count && i < past->op_count; i++) {
			past->ops[i].ticks += stats->ops[i].ticks;
			for (int k = 0; k < FRAGI_OP_COUNTERS; k++)
				past->ops[i].counters[k] += stats->ops[i].counters[k];
		}
		past->delivered_sum += host->now.delivered_sum;
		if (past->first_ns == 0)
			past->first_ns = host->now.first_ns;
	}
	fw_message_free(host->now.stats);
	host->now.stats = NULL;
	host->now.delivered_sum = 0;
	host->now.is_doubted = false;
	return 0;
}

void drv_past_fini(struct drv_past *past)
{
	fragi_free(past->flows);
	fragi_free(past->ops);
	*past = (struct drv_past){0};
}
