// SPDX-License-Identifier: Apache-2.0
#include "sim.h"

/*
 * What must happen within a time, judged by what truly happened: what is told, awake and reached
 * does its part. A process that slept, or whose clock jumped, has its time from then on.
 */
#define SLACK_NS (20 * SIM_MS) /* timers are rounded, and looked at together */

int64_t sim_able_since(const struct sim_process *process, int64_t happened_ns)
{
	int64_t since_ns = happened_ns;

	if (process->stopped_until_ns > since_ns)
		since_ns = process->stopped_until_ns;
	if (process->jumped_ns > since_ns)
		since_ns = process->jumped_ns;
	return since_ns;
}

void sim_limit_came(struct sim *sim, const struct fw_message *message)
{
	for (uint32_t i = 0; i < sim->apps_given; i++)
		if (message == NULL ||
		    (message->run == sim->apps[i].run &&
		     (message->kind == FW_HOST_WIRED || message->kind == FW_HOST_EXIT)))
			sim->apps[i].came_ns = sim->now_ns;
}

/* An application that has a start timeout runs by then, or has ended. */
void sim_limit_app(struct sim *sim, const struct sim_app *app)
{
	int64_t late_ns = sim->now_ns - sim_able_since(&sim->driver.process, app->given_ns) -
			  app->start_timeout_ns;

	if (app->start_timeout_ns != 0 && app->state <= DRV_APP_STARTING && late_ns > SLACK_NS)
		sim_fail(sim, "start timeout",
			 "%s is still %s, %.3f s after its start timeout of %.3f s", app->name,
			 drv_app_state_name(app->state), (double)late_ns * 1e-9,
			 (double)app->start_timeout_ns * 1e-9);
}

void sim_limit_session(struct sim *sim, struct sim_worker *worker, enum wrk_session before)
{
	enum wrk_session now = wrk_core_session(worker->core);
	int64_t most_ns = worker->was_attached ? WRK_BACKOFF_MIN_NS : WRK_BACKOFF_MAX_NS;
	int64_t waited_ns = sim->now_ns - sim_able_since(&worker->process, worker->lost_ns);

	if (before != WRK_SESSION_BACKOFF && now == WRK_SESSION_BACKOFF) {
		worker->lost_ns = sim->now_ns;
		worker->was_attached = before == WRK_SESSION_ATTACHED;
	}
	if (before == WRK_SESSION_BACKOFF && now == WRK_SESSION_CONNECTING &&
	    waited_ns > most_ns + SLACK_NS)
		sim_fail(sim, "backoff",
			 "%s waited %.3f s before it tried to connect again; it had %s",
			 worker->name, (double)waited_ns * 1e-9,
			 worker->was_attached ? "just been attached" : "found nobody");
}

/* By when a peer that was last heard then is given up, with the beat that finds it. */
static int64_t given_up_at(const struct sim *sim, const struct sim_process *process,
			   int64_t heard_ns)
{
	return sim_able_since(process, heard_ns) + sim->dead_ns + sim->beat_ns;
}

/* A process that does not say anything any more is ended by its workerd. */
static void look_at_host(struct sim *sim, const struct sim_host *host)
{
	const struct sim_worker *worker = &sim->workers[host->worker];
	int64_t silent_ns =
		sim->now_ns - sim_able_since(&worker->process, host->heard_by_worker_ns);

	if (host->process.alive && !host->dying && worker->process.alive &&
	    worker->generation == host->generation && silent_ns > sim->dead_ns + SLACK_NS)
		sim_fail(sim, "silent host",
			 "pid %d has not been heard for %.3f s, and was not killed", host->pid,
			 (double)silent_ns * 1e-9);
}

/* A host gives up a workerd that does not say anything any more, and peers that do not answer. */
static void look_at_patience(struct sim *sim, const struct sim_host *host)
{
	int64_t wired_ns = sim_able_since(&host->process, host->wiring_ns) + SIM_HOST_WIRE_NS;

	if (!host->process.alive || host->dying)
		return;
	if (sim->now_ns > given_up_at(sim, &host->process, host->heard_ns) + SLACK_NS)
		sim_fail(sim, "silence", "pid %d has not heard its workerd for %.3f s, and runs on",
			 host->pid, (double)(sim->now_ns - host->heard_ns) * 1e-9);
	if (host_core_state(host->core) == HOST_STATE_WIRING && !host->works &&
	    sim->now_ns > wired_ns + SLACK_NS)
		sim_fail(sim, "deadlines", "pid %d has awaited its peers for %.3f s", host->pid,
			 (double)(sim->now_ns - host->wiring_ns) * 1e-9);
}

/* A peer that does not say anything any more is given up: at both ends. */
static void look_at_connection(struct sim *sim, const struct sim_connection *connection)
{
	bool is_live[2] = {
		connection->worker < SIM_WORKERS_MAX && connection->connected && !connection->kept,
		connection->admitted && connection->incarnation == sim->driver.incarnation,
	};

	for (int end = 0; end < 2; end++) {
		const struct sim_process *process;
		int64_t silent_ns;

		if (!connection->open[end] || !is_live[end])
			continue;
		process =
			end == 1 ? &sim->driver.process : &sim->workers[connection->worker].process;
		if (!process->alive)
			continue;
		silent_ns = sim->now_ns - sim_able_since(process, connection->heard_ns[end]);
		if (sim->now_ns > given_up_at(sim, process, connection->heard_ns[end]) + SLACK_NS)
			sim_fail(sim, "silent peer",
				 "%s has not heard its peer for %.3f s, and keeps it",
				 end == 1 ? "the driver" : sim_worker_name(sim, connection->worker),
				 (double)silent_ns * 1e-9);
	}
}

/* Who is told twice does not wait for children that even SIGKILL does not end. */
static void look_at_worker(struct sim *sim, const struct sim_worker *worker)
{
	int64_t took_ns = sim->now_ns - sim_able_since(&worker->process, worker->second_request_ns);

	if (worker->process.alive && worker->second_request_ns != 0 &&
	    took_ns > 2 * WRK_KILL_NS + SLACK_NS)
		sim_fail(sim, "stop", "%s lives %.3f s after it was told to end a second time",
			 worker->name, (double)took_ns * 1e-9);
}

/* A message waits at the sender, and nothing is under way. */
static bool waits_for_nothing(const struct sim_flow *flow)
{
	return !flow->in_host && flow->token_known && !flow->dead && flow->pending > 0 &&
	       !flow->suspended && !flow->receiver_done && flow->flying == 0 &&
	       sim_host_runs(flow->from) && sim_host_runs(flow->to) &&
	       sim_flow_left(flow) == sim_flow_consumed(flow);
}

static void look_at_flow(struct sim *sim, const struct sim_app *app, struct sim_flow *flow,
			 bool quiet)
{
	if (!quiet || !waits_for_nothing(flow) || flow->stuck_at != flow->true_left) {
		flow->stuck_at = flow->true_left;
		flow->stuck_since_ns = sim->now_ns;
	}
	if (sim->now_ns - flow->stuck_since_ns > 2 * sim->beat_ns + SIM_S)
		sim_fail(
			sim, "progress",
			"%s: f%u.b.o%u: message %llu waits at the sender, though nothing is under way",
			app->name, flow->from_fragment, flow->from_port - 1u,
			(unsigned long long)flow->true_left);
}

void sim_limit_consumed(struct sim *sim, struct sim_flow *flow)
{
	const struct fragi_window_tx *tx = &flow->tx_window;
	const struct fragi_window_rx *rx = &flow->rx_window;

	if (flow->link == 0 && flow->short_bytes != 0 && flow->could_since_ns == 0 &&
	    (tx->sent == rx->consumed ||
	     tx->sent_bytes - rx->consumed_bytes + flow->short_bytes <= tx->bytes))
		flow->could_since_ns = sim->now_ns;
}

/* Who waits for bytes says so, and gets what is consumed at once: not with the next beat. */
void sim_limit_left(struct sim *sim, struct sim_flow *flow)
{
	int64_t since_ns = flow->could_since_ns, way_ns = SIM_MS;

	if (flow->from->worker != flow->to->worker)
		way_ns += 2 * (sim->workers[flow->from->worker].latency_ns +
			       sim->workers[flow->to->worker].latency_ns);
	if (since_ns != 0 && since_ns > sim->quiet_ns + sim->dead_ns + SIM_S &&
	    sim->now_ns - since_ns > 2 * way_ns)
		sim_fail(sim, "credit",
			 "%s: message %llu of %llu bytes waited %.3f s for what was consumed",
			 sim->apps[flow->app].name, (unsigned long long)flow->true_left,
			 (unsigned long long)flow->short_bytes,
			 (double)(sim->now_ns - since_ns) * 1e-9);
	flow->could_since_ns = 0;
	flow->short_bytes = 0;
}

/* What has ended holds no place; what is moved holds two. */
static void look_at_places(struct sim *sim)
{
	int64_t placed = drv_core_placed(sim->driver.core), most = 0;

	for (uint32_t i = 0; i < sim->apps_given; i++)
		if (!sim->apps[i].ended && sim->apps[i].incarnation == sim->driver.incarnation)
			most += sim->apps[i].fragment_count *
				(sim->apps[i].state == DRV_APP_RUNNING ? 2 : 1);
	if (placed < 0 || placed > most)
		sim_fail(sim, "places",
			 "%lld fragments hold places on workers, and %lld have not ended",
			 (long long)placed, (long long)most);
	if (most == 0 && drv_core_load(sim->driver.core) != 0)
		sim_fail(sim, "places", "all have ended, and places on workers are still held");
}

static bool is_done(const struct sim_host *host)
{
	/* A worker told to end has ended it during a drain; another goes on if it yielded. */
	if (!host->process.alive)
		return host->drained && !host->yields && host->ended_by_worker && host->exit_heard;
	return !host->dying && host->done_reported;
}

/* All hosts have said that they are done: the drain does not run to its deadline. */
static void look_at_done(struct sim *sim, struct sim_app *app, bool quiet)
{
	bool waits = quiet && sim->driver.process.alive && !app->ended &&
		     (app->state == DRV_APP_RUNNING || app->state == DRV_APP_DRAINING);

	for (uint32_t i = 0; i < sim->host_count; i++)
		if (sim->hosts[i].app == app && !sim->hosts[i].superseded)
			waits = waits && is_done(&sim->hosts[i]);
	if (!waits || sim_move_is_under_way(sim, app))
		app->busy_ns = sim->now_ns;
	if (sim->now_ns - app->busy_ns > 2 * sim->beat_ns + SIM_S)
		sim_fail(sim, "progress",
			 "%s is %s, though all its hosts have been done for %.3f s", app->name,
			 drv_app_state_name(app->state),
			 (double)(sim->now_ns - app->busy_ns) * 1e-9);
}

void sim_limit_look(struct sim *sim, bool quiet)
{
	for (uint32_t i = 0; i < sim->host_count; i++) {
		look_at_host(sim, &sim->hosts[i]);
		look_at_patience(sim, &sim->hosts[i]);
	}
	for (uint32_t i = 0; i < sim->connection_count; i++)
		look_at_connection(sim, &sim->connections[i]);
	for (uint32_t i = 0; i < sim->worker_count; i++)
		look_at_worker(sim, &sim->workers[i]);
	for (uint32_t i = 0; i < sim->apps_given; i++)
		for (uint32_t f = 0; f < sim->apps[i].flow_count; f++)
			look_at_flow(sim, &sim->apps[i], &sim->apps[i].flows[f], quiet);
	for (uint32_t i = 0; i < sim->apps_given; i++)
		look_at_done(sim, &sim->apps[i], quiet);
	if (sim->driver.process.alive)
		look_at_places(sim);
}
