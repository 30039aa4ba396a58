/* SPDX-License-Identifier: Apache-2.0 */
#include "sim.h"

#include <workerd/keeper.h>

/*
 * workerd's keeper, as workerd/keeper.c: when workerd alone is killed it keeps the connection open
 * until the hosts have died, sends what they have counted, and closes it.
 */

void sim_keeper_begin(struct sim *sim, uint32_t index)
{
	struct sim_connection *connection = &sim->connections[index];

	connection->kept = true;
	connection->kept_until_ns = sim->now_ns + WRK_KEEPER_END_NS;
	sim_put(sim, sim->now_ns, SIM_EV_KEEPER, index, 0, 0);
}

static bool is_of(const struct sim_host *host, const struct sim_connection *connection,
		  uint32_t index)
{
	return host->worker == connection->worker && host->generation == connection->generation &&
	       host->connection == index && host->core != NULL;
}

static void send_counts(struct sim *sim, uint32_t index, const struct sim_host *host)
{
	static struct fragi_flow_stats flows[SIM_FLOWS_MAX];
	static struct fw_op_stats ops[2 * SIM_FRAGMENTS_MAX];
	struct fw_message message = {.kind = FW_HOST_STATS,
				     .run = host->run,
				     .host = host->number,
				     .epoch = host->epoch};
	uint8_t *frame;
	size_t size;

	message.stats = (struct fw_host_stats){.final = true, .flows = flows, .ops = ops};
	message.stats.flow_count = sim_host_rows(host, flows);
	message.stats.op_count = sim_host_ops(host, ops);
	if (fw_encode(&message, &frame, &size) < 0)
		sim_fail(sim, "codec", "a keeper cannot encode HOST_STATS");
	else
		sim_send(sim, index, 1, frame, size);
}

void sim_on_keeper(struct sim *sim, const struct sim_event *event)
{
	const struct sim_connection *connection = &sim->connections[event->a];

	if (!connection->open[0])
		return;
	for (uint32_t i = 0; i < sim->host_count && sim->now_ns < connection->kept_until_ns; i++) {
		if (!is_of(&sim->hosts[i], connection, event->a) || !sim->hosts[i].process.alive)
			continue;
		sim_put(sim, sim->now_ns + sim_between(sim, 100000, 2 * SIM_MS), SIM_EV_KEEPER,
			event->a, 0, 0);
		return;
	}
	for (uint32_t i = 0; i < sim->host_count && connection->open[1]; i++)
		if (is_of(&sim->hosts[i], connection, event->a) && !sim->hosts[i].process.alive &&
		    sim->hosts[i].has_page)
			send_counts(sim, event->a, &sim->hosts[i]);
	sim_print(sim, "keeper", "closes connection %u", event->a + 1);
	sim_close(sim, event->a, 0, false);
}
