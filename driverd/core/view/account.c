// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <base/alloc.h>
#include <track/account.h>

/*
 * What hosts have counted, as they report it. A ledger goes with its process, and the next process
 * counts from 0: the driver keeps the last report of the present process, and the sums of all
 * processes before it. view.c reads both.
 */

/* What an operator has overwritten is of no use, and nobody knows how much of it that is. */
static void doubt(struct drv_host *host)
{
	host->now.is_doubted = true;
	drv_log(host->app->core, FRAGI_LOG_WARN, host->app->spec->application,
		"the counts of %s on worker %s contradict each other or have become less: an operator may have overwritten them; they are not used, and the summary is not exact",
		host->name, host->worker);
}

/* The host has sent its first message no later than a flow its own. */
static void note_first(struct drv_past *past, const struct fragi_flow_stats *row)
{
	if (row->first_ns != 0 && row->first_ns < INT64_MAX &&
	    (past->first_ns == 0 || row->first_ns < past->first_ns))
		past->first_ns = row->first_ns;
}

/* Bars are only reported while somebody looks. */
static void keep_bars(struct fragi_quantiles *now, const struct fragi_quantiles *before)
{
	if (now->total_ns != 0)
		return;
	now->total_ns = before->total_ns;
	memcpy(now->bars, before->bars, sizeof(now->bars));
}

void drv_account_take(struct drv_host *host, struct fw_message *message)
{
	const struct fw_host_stats *stats = &message->stats;
	const struct fw_host_stats *before =
		host->now.stats != NULL ? &host->now.stats->stats : NULL;

	if (before != NULL && before->final && !stats->final) {
		fw_message_free(message);
		return;
	}
	host->now.delivered_sum = 0;
	for (uint32_t i = 0; i < stats->flow_count; i++) {
		struct fragi_flow_stats *row = &stats->flows[i];
		bool had_row = before != NULL && i < before->flow_count;

		if (!host->now.is_doubted &&
		    !fragi_account_is_sound(row, had_row ? &before->flows[i] : NULL))
			doubt(host);
		if (!host->now.is_doubted)
			note_first(&host->past, row);
		if (had_row)
			keep_bars(&row->latency, &before->flows[i].latency);
		host->now.delivered_sum += row->delivered;
	}
	for (uint32_t i = 0; before != NULL && i < stats->op_count && i < before->op_count; i++)
		keep_bars(&stats->ops[i].compute, &before->ops[i].compute);
	host->now.counted_ns =
		stats->facts.at_ns != 0 ? (int64_t)stats->facts.at_ns : host->app->core->real_ns;
	if (stats->facts.cpu_ns == 0 || host->now.first_facts.cpu_ns == 0)
		host->now.first_facts = stats->facts;
	host->app->core->items -= stats->flow_count;
	fw_message_free(host->now.stats);
	host->now.stats = message;
}

int drv_account_add(struct drv_host *host, struct fw_host_stats *stats)
{
	struct drv_past *past = &host->past;

	if (fw_stats_widen(&past->sums, stats) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < stats->flow_count; i++) {
		if (i < host->inner_flow_count)
			fragi_account_settle(&stats->flows[i]);
		past->delivered_sum += stats->flows[i].delivered;
		note_first(past, &stats->flows[i]);
	}
	fw_stats_add(&past->sums, stats);
	return 0;
}

int drv_account_end_epoch(struct drv_host *host)
{
	struct fw_host_stats *stats = host->now.stats != NULL ? &host->now.stats->stats : NULL;

	assert(host->now.state == DRV_HOST_GONE && "nothing more is counted");
	if (host->now.has_begun && (stats == NULL || !stats->final || host->now.is_doubted))
		host->past.is_inexact = true;
	if (stats != NULL && !host->now.is_doubted && drv_account_add(host, stats) < 0)
		return -ENOMEM;
	if (stats != NULL && host->now.is_doubted) /* but for this, which its worker counted */
		host->past.sums.facts.cpu_ns += stats->facts.cpu_ns;
	fw_message_free(host->now.stats);
	host->now.stats = NULL;
	host->now.delivered_sum = 0;
	host->now.is_doubted = false;
	return 0;
}

void drv_account_fini(struct drv_host *host)
{
	fw_message_free(host->now.stats);
	fw_stats_fini(&host->past.sums);
	host->now.stats = NULL;
	host->past = (struct drv_past){0};
}
