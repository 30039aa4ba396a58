// SPDX-License-Identifier: Apache-2.0
#include "sim.h"

#include <string.h>

/*
 * The links of flows between hosts, over which they go on when a host is started again, as
 * libfrag/src/edge/remote/successor.c does it. A link breaks with either of its processes, and what
 * is under way on it is lost. The next one runs when the new process is there and each end has been
 * told of the other; what waits at a sender that lives leaves then, and what a receiver that lives
 * had got stays with it.
 */

static bool has_fragment(const struct sim_host *host, uint32_t fragment)
{
	for (uint32_t i = 0; i < host->fragment_count; i++)
		if (host->fragments[i] == fragment)
			return true;
	return false;
}

static void renew_op(struct sim_op *op)
{
	op->past_ticks += op->ticks;
	op->ticks = 0;
	memset(op->use_ns, 0, sizeof(op->use_ns));
	op->life++;
	op->started = op->ticking = op->done = op->hung = false;
}

static void renew_sender(struct sim_flow *flow)
{
	flow->true_lost += flow->pending;
	flow->pending = 0;
	flow->tx = (struct fragi_flow_stats){0};
	flow->tx_window = (struct fragi_window_tx){0};
	flow->dropped_before = 0;
	flow->closing = false;
	flow->short_bytes = 0;
}

static void renew_receiver(struct sim_flow *flow)
{
	flow->true_lost += flow->queued;
	flow->queued = 0;
	flow->rx = (struct fragi_flow_stats){0};
	flow->rx_window = (struct fragi_window_rx){0};
	flow->receiver_closed = false;
}

/* Nothing is under way any more, and nothing comes until the next link runs. */
static void break_link(struct sim_flow *flow)
{
	flow->true_lost += sim_flow_left(flow) - (flow->true_arrived - flow->arrived_before);
	flow->left_before = flow->true_left;
	flow->arrived_before = flow->true_arrived;
	flow->link++;
	flow->flying = flow->credits_flying = 0;
	flow->done_flying = flow->calm_comes = flow->close_sent = flow->close_arrived = false;
	flow->dead = true;
	flow->suspended = false;
	flow->ready[0] = flow->ready[1] = flow->token_known = false;
	flow->could_since_ns = 0;
	flow->owed = 0;
}

void sim_link_succeed(struct sim_host *host)
{
	struct sim_app *app = host->app;

	for (uint32_t i = 0; i < app->op_count; i++)
		if (has_fragment(host, app->ops[i].fragment))
			renew_op(&app->ops[i]);
	for (uint32_t i = 0; i < app->flow_count; i++) {
		struct sim_flow *flow = &app->flows[i];
		bool sends = has_fragment(host, flow->from_fragment),
		     receives = has_fragment(host, flow->to_fragment);

		if (!sends && !receives)
			continue;
		if (!flow->in_host)
			break_link(flow);
		if (sends) {
			renew_sender(flow);
			flow->receiver_done = flow->sender_knows = false;
		}
		if (receives) {
			renew_receiver(flow);
			flow->sender_closed = flow->receiver_knows = false;
		}
		if (flow->in_host)
			flow->close_sent = flow->close_arrived = false;
		flow->received_before = flow->true_received + flow->queued;
	}
}

void sim_link_ready(struct sim_flow *flow, const struct sim_host *host, const struct sim_host *peer)
{
	if (flow->from == host && flow->to == peer) {
		flow->ready[0] = true;
		flow->sender_knows = false;
	} else if (flow->to == host && flow->from == peer) {
		flow->ready[1] = true;
		flow->receiver_knows = false;
	}
}

/* Both ends begin anew with full credit. */
static void run_link(struct sim *sim, struct sim_flow *flow)
{
	struct fragi_window_tx *tx = &flow->tx_window;
	struct fragi_window_rx *rx = &flow->rx_window;

	flow->dead = flow->ready[0] = flow->ready[1] = false;
	flow->counted_link = flow->link;
	flow->dropped_before += fragi_window_restart_tx(tx);
	flow->sent_before = tx->sent;
	flow->sent_bytes_before = tx->sent_bytes;
	flow->confirmed_before = flow->tx.confirmed;
	flow->receiver_done = false;
	flow->rx_before = flow->rx.arrived;
	flow->rx_bytes_before = rx->accepted_bytes;
	fragi_window_restart_rx(rx, flow->rx.arrived, rx->accepted_bytes);
	flow->received_before = flow->true_received + flow->queued;
	flow->sender_closed = flow->calm_comes = false;
	sim_data_resume(sim, flow);
}

bool sim_link_connect(struct sim *sim, const struct sim_host *host, const struct sim_host *peer)
{
	struct sim_app *app = host->app;
	bool all = true;

	for (uint32_t i = 0; i < app->flow_count; i++) {
		struct sim_flow *flow = &app->flows[i];
		bool between = (flow->from == host && flow->to == peer) ||
			       (flow->from == peer && flow->to == host);

		if (!between || flow->in_host || flow->link == 0 || !flow->dead)
			continue;
		if (flow->ready[0] && flow->ready[1] && host->process.alive && peer->process.alive)
			run_link(sim, flow);
		all = all && !flow->dead;
	}
	return all;
}
