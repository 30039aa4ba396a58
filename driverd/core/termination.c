// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>

/*
 * Termination detection: an application is at rest when no host can run anything and nothing is in
 * flight between them, though not every operator is done (a cycle, a quiet graph). A host that is
 * at rest, or done, sends IDLE with every beat, with sums of what it has sent to other hosts and of
 * what has arrived from them, of all that can wake an operator (edge/in_flight.h). When all hosts
 * are idle and the sums are equal, each edge has delivered all that its sender had sent when the
 * sender counted. So nothing crossed between the counts, whenever each host took its own: nothing
 * was in flight, no operator could run, and nothing can happen any more. A drain does not empty a
 * cycle; a drained cycle is at rest too.
 */
bool drv_app_is_at_rest(const struct drv_app *app)
{
	uint64_t sent = 0, delivered = 0;

	if (app->suspicions != NULL || drv_move_holds(app))
		return false;
	for (uint32_t i = 0; i < app->host_count; i++) {
		if (!app->hosts[i].now.is_idle || app->hosts[i].now.state == DRV_HOST_GONE)
			return false;
		sent += app->hosts[i].now.sent;
		delivered += app->hosts[i].now.delivered;
	}
	return sent == delivered;
}
