// SPDX-License-Identifier: Apache-2.0
#include "sim.h"

#include <string.h>

#include <edge/in_flight.h>

/*
 * What the counters of the data plane say: whether a host or an application is done or at rest, and
 * its page.
 */

static const struct sim_op *op_at(const struct sim_app *app, uint32_t fragment, bool second)
{
	return &app->ops[2 * fragment + (second ? 1 : 0)];
}

bool sim_data_is_done(const struct sim_host *host)
{
	for (uint32_t i = 0; i < host->fragment_count; i++)
		for (int second = 0; second < 2; second++)
			if (!op_at(host->app, host->fragments[i], second == 1)->done)
				return false;
	for (uint32_t i = 0; i < host->app->flow_count; i++) {
		const struct sim_flow *flow = &host->app->flows[i];

		/* In a drain an edge to a host that is gone has ended. */
		if (host->app->restarts && host->drained && flow->from == host &&
		    flow->sender_knows)
			continue;
		if (flow->from == host && !flow->in_host &&
		    (flow->dead || (!flow->close_arrived && !host->yields) || flow->pending > 0 ||
		     flow->flying > 0))
			return false;
	}
	return true;
}

bool sim_data_is_settled(const struct sim_app *app)
{
	for (uint32_t i = 0; i < app->flow_count; i++) {
		const struct sim_flow *flow = &app->flows[i];
		uint64_t settled = flow->true_received + flow->true_lost;

		for (int r = 0; r < FRAGI_DROP_REASONS; r++)
			settled += flow->true_dropped[r];
		if (settled != flow->true_sent || flow->flying > 0 || flow->done_flying)
			return false;
		if (!flow->in_host && flow->policy == FRAG_POLICY_BLOCK && !flow->receiver_done &&
		    sim_flow_credited(flow) != sim_flow_consumed(flow))
			return false;
	}
	for (uint32_t i = 0; i < app->op_count; i++)
		if (app->ops[i].ticking)
			return false;
	return true;
}

/* As a run finds it: no operator computes or waits for a time. */
bool sim_host_is_idle(const struct sim_host *host)
{
	if (!sim_host_runs(host))
		return false;
	for (uint32_t i = 0; i < host->fragment_count; i++)
		for (int second = 0; second < 2; second++)
			if (op_at(host->app, host->fragments[i], second == 1)->ticking)
				return false;
	return true;
}

static uint64_t dropped(const uint64_t *reasons)
{
	uint64_t total = 0;

	for (int r = 0; r < FRAGI_DROP_REASONS; r++)
		total += reasons[r];
	return total;
}

/* As the receiver counts, of what came over the present link. */
static uint64_t consumed_of(const struct sim_flow *flow)
{
	uint64_t consumed = flow->policy == FRAG_POLICY_BLOCK
				    ? flow->rx.delivered + dropped(flow->rx.rx_dropped)
				    : flow->rx.arrived;

	return consumed > flow->rx_before ? consumed - flow->rx_before : 0;
}

void sim_host_sums(const struct sim_host *host, uint64_t *out_sent, uint64_t *out_delivered)
{
	struct fragi_in_flight in_flight = {0};

	for (uint32_t i = 0; i < host->edge_count; i++) {
		uint32_t number = host->edges[i].flow;
		const struct sim_flow *flow = &host->app->flows[number];

		if (host->edges[i].sends)
			fragi_in_flight_sender(&in_flight, number, flow->counted_link,
					       flow->tx.sent - dropped(flow->tx.tx_dropped) -
						       (flow->sent_before - flow->dropped_before),
					       flow->closing,
					       flow->tx.confirmed - flow->confirmed_before,
					       flow->receiver_done);
		else
			fragi_in_flight_receiver(&in_flight, number, flow->counted_link,
						 flow->rx.arrived - flow->rx_before,
						 flow->sender_closed, consumed_of(flow),
						 flow->receiver_closed);
	}
	*out_sent = in_flight.sent;
	*out_delivered = in_flight.arrived;
}

/* The page: flows inside the host, then its edges. Returns how many. */
uint32_t sim_host_rows(const struct sim_host *host, struct fragi_flow_stats *rows)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < host->app->flow_count; i++)
		if (host->app->flows[i].in_host && host->app->flows[i].from == host)
			rows[count++] = host->app->flows[i].tx;
	for (uint32_t i = 0; i < host->edge_count; i++) {
		const struct sim_flow *flow = &host->app->flows[host->edges[i].flow];

		rows[count++] = host->edges[i].sends ? flow->tx : flow->rx;
	}
	return count;
}

uint32_t sim_host_ops(const struct sim_host *host, struct fw_op_stats *rows)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < host->fragment_count; i++)
		for (int second = 0; second < 2; second++) {
			const struct sim_op *op = op_at(host->app, host->fragments[i], second == 1);

			rows[count] = host->incoming /* these are of the one that runs */
					      ? (struct fw_op_stats){0}
					      : (struct fw_op_stats){.running = op->ticking,
								     .ticks = op->ticks};
			if (!host->incoming)
				memcpy(&rows[count].use_busy, op->use_ns, sizeof(op->use_ns));
			count++;
		}
	return count;
}
