// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>

/*
 * Rest: no host can run anything and nothing is on the way between them, though not every operator
 * is done (a cycle, a quiet graph). A host at rest, and one that is done, says IDLE with every
 * beat, with sums of what it has sent to other hosts and what has arrived from them, of all that
 * can wake an operator (edge/travel.h). When all have said so and the sums are equal, each edge has
 * delivered all that its sender had sent when that one counted. So nothing crossed between the
 * counts, whenever each host took its own: nothing was on the way, nobody could run, and nothing
 * can ever happen again.
 */
void drv_rest_idle(struct drv_host *host, const struct fw_host_event *event)
{
	struct drv_app *app = host->app;
	uint64_t sent = 0, delivered = 0;

	host->idle = true;
	host->sent = event->sent;
	host->delivered = event->delivered;
	if (app->state != DRV_APP_RUNNING || app->suspicion.host != NULL)
		return;
	for (uint32_t i = 0; i < app->host_count; i++) {
		if (!app->hosts[i].idle || app->hosts[i].state == DRV_HOST_GONE)
			return;
		sent += app->hosts[i].sent;
		delivered += app->hosts[i].delivered;
	}
	if (sent != delivered)
		return;
	drv_log(app->core, FRAGI_LOG_INFO, app->spec->application,
		"at rest: no operator can run any more, and nothing is on the way");
	drv_app_rest(app);
}
