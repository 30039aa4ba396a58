// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>

/*
 * Rest: no host can run anything and nothing is on the way between them, though not every operator is done (a
 * cycle, a quiet graph). A host at rest says IDLE with every beat. A wave is complete when every host has
 * said IDLE since the wave began, or is done; when in two successive waves sent = delivered, and nothing was
 * sent between them, nothing can ever happen again: what the first wave counted as delivered was all that the
 * second counted as sent (the four counters of F. Mattern, "Algorithms for distributed termination
 * detection", 1987). That counts messages; credit and closes travel uncounted, and one of them can wake a
 * sender. A data link holds nothing back for longer than the time of death, after which its hosts report it
 * lost: so where hosts send to each other, rest is believed when it has lasted that long.
 */

/* A host that is done counts late arrivals as dropped; only its page tells. Two pages, so that one is new. */
static bool done_counts(struct drv_host *host)
{
	if (host->stats_since_done < 2)
		return false;
	host->sent = host->delivered = 0;
	for (uint32_t i = 0; i < host->stats->stats.flow_count; i++) {
		const struct fw_flow_stats *row = &host->stats->stats.flows[i];

		host->sent += row->sent;
		host->delivered += row->delivered;
		for (int r = 0; r < FW_DROP_REASONS; r++)
			host->delivered += row->tx_dropped[r] + row->rx_dropped[r];
	}
	return true;
}

static bool wave_is_complete(struct drv_app *app, uint64_t *out_sent, uint64_t *out_delivered)
{
	uint64_t sent = 0, delivered = 0;

	for (uint32_t i = 0; i < app->host_count; i++) {
		struct drv_host *host = &app->hosts[i];

		if (host->state == DRV_HOST_DONE ? !done_counts(host)
						 : !host->idle || host->idle_wave != app->wave)
			return false;
		sent += host->sent;
		delivered += host->delivered;
	}
	*out_sent = sent;
	*out_delivered = delivered;
	return true;
}

/* How long rest must last to be believed. */
static int64_t patience_ns(const struct drv_app *app)
{
	for (uint32_t i = 0; i < app->host_count; i++)
		if (app->hosts[i].edge_count != 0)
			return app->core->config.dead_ns;
	return 0;
}

void drv_rest_idle(struct drv_host *host, const struct fw_host_event *event)
{
	struct drv_app *app = host->app;
	uint64_t sent, delivered;

	if (host->state != DRV_HOST_RUNNING)
		return;
	host->idle = true;
	host->idle_wave = app->wave;
	host->sent = event->sent;
	host->delivered = event->delivered;
	if (app->state != DRV_APP_RUNNING || !wave_is_complete(app, &sent, &delivered))
		return;
	app->wave++;
	if (sent != delivered || app->suspicion.host != NULL) {
		app->rest_since_ns = 0;
		return;
	}
	if (app->rest_since_ns == 0 || sent != app->wave_sent) {
		app->rest_since_ns = app->core->now_ns;
		app->wave_sent = sent;
		return;
	}
	if (app->core->now_ns - app->rest_since_ns < patience_ns(app))
		return;
	drv_say(app->core, FRAGI_LOG_INFO, app->spec->application,
		"at rest: no operator can run any more, and nothing is on the way");
	drv_app_rest(app);
}
