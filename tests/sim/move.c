// SPDX-License-Identifier: Apache-2.0
#include "sim.h"

/*
 * Hosts that leave a drained worker while they run (driverd/core/hosts/move.c): one that is spawned
 * on another worker beside the one that runs is *incoming* until the driver makes it the host with
 * HOST_PAST, or wires it: after a driver that died, a host that is only started anew may look as if
 * it were incoming. If it ends before HOST_PAST comes, the host has failed. What must hold: the
 * other one has ended by then, and what it had got and sent has been received; a move that is given
 * up changes nothing.
 */

/* The one that runs; NULL: none does. */
static struct sim_host *running(struct sim *sim, const struct sim_host *host)
{
	for (uint32_t i = 0; i < sim->host_count; i++) {
		struct sim_host *other = &sim->hosts[i];

		if (other != host && other->app == host->app && other->number == host->number &&
		    !other->superseded)
			return other;
	}
	return NULL;
}

bool sim_move_spawned(struct sim *sim, struct sim_host *host)
{
	host->incoming = host->incoming && running(sim, host) != NULL;
	if (!host->incoming)
		return false;
	host->superseded = true;
	host->app->hosts[host->number].moves++;
	return true;
}

static bool is_of(const struct sim_flow *flow, const struct sim_host *host)
{
	return !flow->in_host && (flow->from == host || flow->to == host);
}

/* All that it sent was received, and all that was sent to it. */
static void check_loss(struct sim *sim, const struct sim_host *old)
{
	for (uint32_t i = 0; i < old->app->flow_count; i++) {
		const struct sim_flow *flow = &old->app->flows[i];
		uint64_t lost = sim_flow_left(flow) - (flow->true_arrived - flow->arrived_before);

		if (!is_of(flow, old) || flow->dead) /* what was on a link that broke is lost */
			continue;
		if (flow->receiver_closed) /* it had ended: what comes is dropped for that */
			continue;
		if (flow->from == old)
			lost += flow->pending;
		if (flow->to == old)
			lost += flow->queued;
		if (lost != 0)
			sim_fail(sim, "moves", "pid %d has left, and %llu messages are lost",
				 old->pid, (unsigned long long)lost);
	}
}

void sim_move_takes_over(struct sim *sim, struct sim_host *host)
{
	struct sim_app *app = host->app;
	struct sim_host *old = running(sim, host);

	if (!host->incoming)
		return;
	host->incoming = host->superseded = false;
	sim_client_check_values(sim, host);
	sim_print(sim, "move", "pid %d goes on for pid %d", host->pid, old->pid);
	if (old->process.alive)
		sim_fail(sim, "owners", "host %u of %s lives in pid %d and pid %d", host->number,
			 app->name, old->pid, host->pid);
	if (old->orderly && old->yields && old->done_reported)
		check_loss(sim, old);
	old->superseded = true;
	sim_link_succeed(host);
	for (uint32_t i = 0; i < app->flow_count; i++) {
		struct sim_flow *flow = &app->flows[i];

		flow->from = flow->from == old ? host : flow->from;
		flow->to = flow->to == old ? host : flow->to;
	}
}

void sim_move_sent(struct sim *sim, const struct sim_connection *connection, const uint8_t *frame,
		   size_t size)
{
	for (uint32_t i = 0; i < sim->host_count; i++) {
		struct sim_host *host = &sim->hosts[i];
		struct frag_err err = FRAG_ERR_INIT;
		struct fw_message *message;

		/* Runs and epochs are of one driver: another counts from 1. */
		if (!host->incoming || host->worker != connection->worker ||
		    host->incarnation != connection->incarnation)
			continue;
		if (fw_decode(frame + 4, size - 4, &message, &err) < 0) {
			sim_fail(sim, "codec", "a frame of the driver cannot be read: %s",
				 err.text);
			return;
		}
		if (message->kind == FW_HOST_PAST && message->run == host->run &&
		    message->host == host->number && message->epoch == host->epoch)
			sim_move_takes_over(sim, host);
		fw_message_free(message);
	}
}

void sim_move_suspend(struct sim *sim, struct sim_host *host, const struct fw_host_suspend *request)
{
	for (uint32_t i = 0; i < host->app->flow_count; i++) {
		struct sim_flow *flow = &host->app->flows[i];

		if (flow->from == host && !flow->in_host && flow->to != NULL &&
		    flow->to->number == request->peer && flow->to->epoch == request->peer_epoch)
			sim_data_suspend(sim, flow);
	}
}

void sim_move_yield(struct sim *sim, struct sim_host *host, int64_t drain_ns)
{
	host->drained = host->yields = true;
	host->limit_ns = drain_ns;
	sim_data_end_dead(sim, host);
	if (!host->run_failed)
		sim_data_stop_sources(sim, host);
	if (host->hangs)
		sim_run_limit(sim, host);
	sim_run_look(sim, host);
}

void sim_move_check_drain(struct sim *sim, const struct sim_host *host)
{
	if (host->told_to_yield && !host->yields && host->app->state == DRV_APP_RUNNING &&
	    host->incarnation == sim->driver.incarnation)
		sim_fail(sim, "moves", "pid %d drains, though another one is to go on for it",
			 host->pid);
}

bool sim_move_is_under_way(const struct sim *sim, const struct sim_app *app)
{
	return sim->driver.process.alive && drv_core_moves(sim->driver.core, app->name);
}

bool sim_move_is_unknown(const struct sim *sim, const struct sim_app *app, uint32_t number)
{
	bool yields = false, ended = false;

	for (uint32_t i = 0; i < sim->host_count && sim->driver.incarnation > 1; i++) {
		const struct sim_host *host = &sim->hosts[i];

		if (host->app != app || host->number != number || host->process.alive)
			continue;
		yields = yields || host->told_to_yield;
		/* ... as nobody has told the present driver that it had become the host */
		ended = ended || host->incoming ||
			(host->was_beside && host->incarnation < sim->driver.incarnation);
	}
	return yields && ended;
}

bool sim_move_was_made(const struct sim_app *app)
{
	for (uint32_t n = 0; n <= SIM_FRAGMENTS_MAX; n++)
		if (app->hosts[n].moves > 0)
			return true;
	return false;
}

void sim_move_plan(struct sim *sim,
		   void (*add)(struct sim *sim, enum sim_fault_kind kind, int64_t at_ns))
{
	for (int64_t i = sim_between(sim, 2, 8); i > 0; i--) {
		int64_t at_ns = sim->now_ns + sim_between(sim, 500 * SIM_MS, 9 * SIM_S);

		add(sim, SIM_FAULT_DRAIN, at_ns);
		if (sim->is.adopts && sim_chance(sim, 3))
			add(sim, SIM_FAULT_DRIVER_AWAY,
			    at_ns + sim_between(sim, 0,
						sim_chance(sim, 2) ? 20 * SIM_MS : 300 * SIM_MS));
	}
}
