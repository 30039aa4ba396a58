// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>

/*
 * Rest: no host can run anything and nothing is on the way between them, though not every operator
 * is done (a cycle, a quiet graph). A host at rest, and one that is done, says IDLE with every
 * beat, with sums of what it has sent to other hosts and what has arrived from them, of all that
 * can wake an operator (edge/in_flight.h). When all have said so and the sums are equal, each edge has
 * delivered all that its sender had sent when that one counted. So nothing crossed between the
 * counts, whenever each host took its own: nothing was on the way, nobody could run, and nothing
 * can ever happen again. A drain leaves a cycle as it is: that is at rest too.
 */
bool drv_app_rests(const struct drv_app *app)
{
	uint64_t sent = 0, delivered = 0;

	if (app->suspicion.host != NULL || drv_replace_holds(app))
		return false;
	for (uint32_t i = 0; i < app->host_count; i++) {
		if (!app->hosts[i].now.is_idle || app->hosts[i].now.state == DRV_HOST_GONE)
			return false;
		sent += app->hosts[i].now.sent;
		delivered += app->hosts[i].now.delivered;
	}
	return sent == delivered;
}
