// SPDX-License-Identifier: Apache-2.0
#include "sim.h"

#include <string.h>

/*
 * The invariants. After every event: no illegal move, no state held longer than its deadline
 * allows, no end at rest that is none. At every look (100 ms): who should be there is there, who
 * should be gone is gone, nothing grows, and nothing happens for ever. At an application's end: its
 * result has a cause and its sums are true.
 */
#define FRAMES_MAX 800
#define SAME_TIME_MAX 3000
#define RESTART_MAX_NS (8 * SIM_S) /* waits for its backoff, at most so long */

/*
 * How long an application may stay in a state, by the driver's own deadlines; 0: as long as it
 * likes.
 */
static int64_t limit_of(enum drv_app_state state)
{
	switch (state) {
	case DRV_APP_PREPARING:
		return SIM_PREPARE_NS;
	case DRV_APP_WIRING:
		return SIM_WIRE_NS;
	case DRV_APP_STARTING:
		return SIM_START_NS;
	case DRV_APP_DRAINING:
	case DRV_APP_FAILING:
		return SIM_DRAIN_NS + SIM_CLOSE_NS;
	case DRV_APP_CLOSING:
		return SIM_CLOSE_NS;
	case DRV_APP_KILLING:
		return SIM_KILL_NS;
	default:
		return 0;
	}
}

bool sim_app_has_living_host(const struct sim *sim, const struct sim_app *app)
{
	for (uint32_t i = 0; i < sim->host_count; i++)
		if (sim->hosts[i].app == app && sim->hosts[i].process.alive)
			return true;
	return false;
}

static bool all_done(const struct sim_app *app)
{
	for (uint32_t i = 0; i < app->op_count; i++)
		if (!app->ops[i].done)
			return false;
	return true;
}

static void check_app(struct sim *sim, struct sim_app *app)
{
	const struct sim_process *driver = &sim->driver.process;
	enum drv_app_state state = drv_core_named_state(sim->driver.core, app->name);
	int64_t limit = limit_of(state), lasted_ns;
	bool fails_early;

	if (state != app->state) {
		if (app->state == DRV_APP_RUNNING && state == DRV_APP_CLOSING)
			app->ends_active = !app->stopped_by_op && !all_done(app) &&
					   !sim_data_is_settled(app) &&
					   !((app->restarts || sim_restart_was_made(app)) &&
					     app->stop_requested); /* none of its hosts was there */
		else if (state == DRV_APP_RUNNING) /* after a driver that had not seen its end */
			app->ends_active = false;
		/* What fails while it starts has its hosts ended in order too. */
		fails_early = app->state >= DRV_APP_PREPARING && app->state <= DRV_APP_STARTING &&
			      state >= DRV_APP_FAILING;
		if (app->state < DRV_APP_FAILING && state >= DRV_APP_FAILING)
			app->ending_ns = sim->now_ns;
		app->state = state;
		if (state > app->furthest && state < DRV_APP_KILLING && !fails_early)
			app->furthest = state;
		app->state_since_ns = sim->now_ns;
		app->rest_since_ns = app->dead_since_ns = app->move_since_ns = 0;
		if (state == sim->hasty_state)
			sim_haste(sim);
	}
	sim_limit_app(sim, app);
	lasted_ns = sim->now_ns - sim_able_since(driver, app->came_ns > app->state_since_ns
								 ? app->came_ns
								 : app->state_since_ns);
	if (limit != 0 && lasted_ns > limit + 20 * SIM_MS &&
	    sim->now_ns > sim->quiet_ns + 20 * SIM_MS)
		sim_fail(sim, "deadlines", "%s has been %s for %.3f s", app->name,
			 drv_app_state_name(state), (double)lasted_ns * 1e-9);
}

void sim_check(struct sim *sim)
{
	if (sim->driver.core != NULL && drv_core_illegal_transitions(sim->driver.core) != 0)
		sim_fail(sim, "moves", "the driver made a move that is not in its tables");
	for (uint32_t i = 0; i < sim->worker_count; i++)
		if (sim->workers[i].core != NULL &&
		    wrk_core_illegal_transitions(sim->workers[i].core) != 0)
			sim_fail(sim, "moves", "%s made a move that is not in its tables",
				 sim->workers[i].name);
	if (sim->is.leases)
		sim_lease_check(sim);
	if (sim->same_time > SAME_TIME_MAX || sim->event_count > SIM_EVENTS_MAX)
		sim_fail(sim, "at rest", "%llu events, %llu of them at one moment",
			 (unsigned long long)sim->event_count, (unsigned long long)sim->same_time);
	if (!sim->driver.process.alive)
		return;
	if (sim->is.places)
		sim_place_check(sim);
	for (uint32_t i = 0; i < sim->apps_given; i++)
		if (!sim->apps[i].ended && sim->apps[i].incarnation == sim->driver.incarnation)
			check_app(sim, &sim->apps[i]);
}

static bool worker_takes(const struct sim_worker *worker, uint32_t fragment)
{
	char name[16];

	snprintf(name, sizeof(name), "f%u", fragment);
	for (uint32_t i = 0; i < worker->config.fragment_count; i++)
		if (strcmp(worker->fragments[i], name) == 0)
			return true;
	return worker->config.fragment_count == 0;
}

/*
 * Whether the workers that the driver can have heard of take all fragments. One that has no network
 * yet keeps what it names from others.
 */
static bool can_be_placed(const struct sim *sim, const struct sim_app *app)
{
	for (uint32_t w = 0; w < sim->worker_count; w++)
		if (sim->workers[w].process.alive && !sim->workers[w].has_network)
			return false;
	for (uint32_t f = 0; f < app->fragment_count; f++) {
		bool taken = false;

		for (uint32_t w = 0; w < sim->worker_count; w++)
			taken = taken ||
				(sim->workers[w].process.alive &&
				 wrk_core_session(sim->workers[w].core) == WRK_SESSION_ATTACHED &&
				 worker_takes(&sim->workers[w], f));
		if (!taken)
			return false;
	}
	return true;
}

/* *since: when it began, 0: it does not hold. Returns for how long it has held. */
static int64_t held_for(const struct sim *sim, int64_t *since, bool holds)
{
	if (!holds)
		*since = 0;
	else if (*since == 0)
		*since = sim->now_ns;
	return holds ? sim->now_ns - *since : 0;
}

/*
 * A stranger has told it to end, and user code keeps it from that: it says nothing, whatever it is
 * asked, until its time for that is over.
 */
static bool hangs_unseen(const struct sim_host *host)
{
	return host->term_by_stranger && !host->end_requested && !host->done_reported &&
	       host->process.alive && !host->run_failed &&
	       host_core_state(host->core) == HOST_STATE_ENDING;
}

/* A driver that has ended asked for its start, which hangs: the next one takes it for started. */
static bool hangs_in_start(const struct sim *sim, const struct sim_host *host)
{
	return host->app->fate == SIM_FATE_START_HANGS && sim->driver.incarnation > 1 &&
	       host->process.alive && host_core_state(host->core) == HOST_STATE_STARTING;
}

/* What a running or waiting application waits for must exist. */
static void look_at_app(struct sim *sim, struct sim_app *app)
{
	bool dead = false, unseen = false, settled = sim_data_is_settled(app),
	     running = app->state == DRV_APP_RUNNING;

	for (uint32_t i = 0; i < sim->host_count; i++) {
		const struct sim_host *host = &sim->hosts[i];

		if (host->app != app || host->superseded)
			continue;
		dead = dead || !host->process.alive;
		if (app->state == DRV_APP_DRAINING && sim_host_runs(host) && !host->drained &&
		    sim->now_ns - app->state_since_ns > SIM_S)
			sim_fail(sim, "stop", "pid %d of %s was not told to drain", host->pid,
				 app->name);
		settled = settled && sim_host_runs(host) && !host->hangs;
		unseen = unseen || hangs_unseen(host) || hangs_in_start(sim, host);
	}
	for (uint32_t i = 0; i < app->flow_count; i++)
		dead = dead || app->flows[i].dead;
	if (held_for(sim, &app->dead_since_ns, running && dead && !sim->is.leases) >
	    sim->dead_ns + 3 * SIM_S +
		    /* what follows may hang while it is prepared, and be followed too */
		    (app->restarts || sim->is.swaps ? RESTART_MAX_NS + SIM_PREPARE_NS : 0))
		sim_fail(sim, "waits for nothing",
			 "%s is running though a host or a data link of it is dead", app->name);
	if (held_for(sim, &app->move_since_ns,
		     running && !unseen && sim_move_is_under_way(sim, app)) >
	    sim->dead_ns + 3 * SIM_S + RESTART_MAX_NS +
		    /* a new library may hang in start, and the old one is started after that */
		    (sim->is.swaps ? SIM_PREPARE_NS + SIM_START_NS : 0) +
		    (sim->is.leases ? FW_LEASE_AWAY_NS + 10 * SIM_S : 0))
		sim_fail(sim, "moves", "a host of %s is between two processes for ever", app->name);
	if (held_for(sim, &app->rest_since_ns,
		     (running && settled) ||
			     (app->state == DRV_APP_NEW && sim->disk.writing == 0) ||
			     (app->state == DRV_APP_WAITING && !sim_adopt_waits(sim, app) &&
			      !(sim->is.leases && sim_promise_holds(sim, app)) &&
			      can_be_placed(sim, app) && sim_place_is_certain(sim, app))) >
	    6 * sim->beat_ns + SIM_S +
		    (sim->is.leases && running ? FW_LEASE_AWAY_NS + 10 * SIM_S : 0))
		sim_fail(sim, "waits for nothing", "%s is %s, but nothing keeps it there",
			 app->name, drv_app_state_name(app->state));
}

/*
 * What is under way on an edge is bounded, and its credit comes back, unless one of its ends is
 * held up.
 */
static void look_at_credit(struct sim *sim, const struct sim_app *app, struct sim_flow *flow,
			   bool quiet)
{
	uint64_t consumed = sim_flow_consumed(flow);
	bool waits = !flow->dead && flow->token_known && sim_host_runs(flow->from) &&
		     sim_host_runs(flow->to) && quiet;

	if (flow->in_host || !flow->token_known)
		return;
	if (sim_flow_left(flow) - consumed > flow->window)
		sim_fail(sim, "bounded", "%s: %llu messages under way, its window is %u", app->name,
			 (unsigned long long)(sim_flow_left(flow) - consumed), flow->window);
	if (!waits || sim_flow_credited(flow) >= flow->owed) {
		flow->owed = waits ? consumed : 0;
		flow->owed_since_ns = sim->now_ns;
	}
	if (sim_flow_credited(flow) < flow->owed &&
	    sim->now_ns - flow->owed_since_ns > 2 * sim->beat_ns + SIM_S)
		sim_fail(sim, "credit",
			 "%s: %llu messages were consumed, credit of %llu came back in time",
			 app->name, (unsigned long long)flow->owed,
			 (unsigned long long)sim_flow_credited(flow));
}

/* Hosts of what has ended are gone in time. */
static void look_at_hosts(struct sim *sim, bool quiet)
{
	for (uint32_t i = 0; i < sim->host_count; i++) {
		const struct sim_host *host = &sim->hosts[i];
		const struct sim_worker *worker = &sim->workers[host->worker];
		int64_t since = host->app->ended_ns;

		if (!host->process.alive || host->dying || !host->app->ended)
			continue;
		if (since < sim->quiet_ns)
			since = sim->quiet_ns;
		if (sim->now_ns - since > 2 * sim->dead_ns + 2 * SIM_S)
			sim_fail(sim, "left over", "pid %d lives %.3f s after the end of %s",
				 host->pid, (double)(sim->now_ns - since) * 1e-9, host->app->name);
		if (quiet && host->app->ended_ns > sim->quiet_ns + sim->dead_ns + SIM_S &&
		    sim->now_ns - host->app->ended_ns > 2800 * SIM_MS + 3 * worker->latency_ns)
			sim_fail(sim, "left over",
				 "pid %d lives %.3f s after the end of %s, though all links run",
				 host->pid, (double)(sim->now_ns - host->app->ended_ns) * 1e-9,
				 host->app->name);
	}
}

/*
 * Sessions of the driver and its connections, but for those of reporters, are the same ones;
 * nothing is piled up.
 */
static void look_at_connections(struct sim *sim)
{
	size_t admitted = 0, sessions = 0;

	for (uint32_t i = 0; i < sim->connection_count; i++) {
		const struct sim_connection *connection = &sim->connections[i];

		if (connection->open[1] && connection->admitted && connection->of == 0 &&
		    connection->incarnation == sim->driver.incarnation)
			admitted++;
		if (connection->to[0].count > FRAMES_MAX || connection->to[1].count > FRAMES_MAX)
			sim_fail(sim, "bounded", "%u frames wait on connection %u",
				 connection->to[0].count + connection->to[1].count, i + 1);
	}
	if (sim->driver.process.alive)
		sessions = drv_core_session_count(sim->driver.core) - sim_client_is_there(sim) -
			   sim_look_sessions(sim);
	if (sim->driver.process.alive && sessions != admitted)
		sim_fail(sim, "sessions", "the driver has %zu sessions and %zu open connections",
			 sessions, admitted);
}

/* Long after everything runs again, every worker has found the driver. */
static void look_at_workers(struct sim *sim)
{
	for (uint32_t i = 0; i < sim->worker_count; i++) {
		const struct sim_worker *worker = &sim->workers[i];

		if (worker->process.alive && wrk_core_session(worker->core) != WRK_SESSION_ATTACHED)
			sim_fail(sim, "reconnect", "%s has not found the driver again",
				 worker->name);
	}
}

static bool all_is_over(const struct sim *sim)
{
	if (sim->driver_returns)
		return false;
	for (uint32_t i = 0; i < sim->apps_given; i++)
		if (!sim->apps[i].ended)
			return false;
	for (uint32_t i = 0; i < sim->plan_count; i++)
		if (sim->plan[i].at_ns > sim->now_ns && sim->plan[i].kind != SIM_FAULT_STOP)
			return false;
	return sim->now_ns > sim->quiet_ns;
}

/* The user's hand: what still runs when all is calm is stopped, twice if need be. */
static void user(struct sim *sim)
{
	if (!sim->driver.process.alive || sim->stops >= 2 || all_is_over(sim) ||
	    sim->now_ns < sim->stop_ns + (sim->stops == 1 ? 14 * SIM_S : 0))
		return;
	sim_driver_stop(sim);
}

void sim_check_look(struct sim *sim)
{
	bool quiet = sim->now_ns > sim->quiet_ns + sim->dead_ns + SIM_S;
	uint64_t steps = sim->step_count - sim->last_steps;

	sim->last_steps = sim->step_count;
	if (steps > 300 + 60ull * (sim->worker_count + SIM_FRAGMENTS_MAX * sim->app_count))
		sim_fail(sim, "at rest", "%llu steps within 100 ms", (unsigned long long)steps);
	user(sim);
	sim_lease_drift(sim);
	look_at_connections(sim);
	look_at_hosts(sim, quiet);
	sim_adopt_look(sim);
	sim_limit_look(sim, quiet);
	if (sim->is.leases)
		sim_promise_look(sim);
	sim_look_look(sim);
	for (uint32_t i = 0; i < sim->apps_given; i++)
		for (uint32_t f = 0; f < sim->apps[i].flow_count; f++)
			look_at_credit(sim, &sim->apps[i], &sim->apps[i].flows[f], quiet);
	for (uint32_t i = 0; quiet && sim->driver.process.alive && i < sim->apps_given; i++)
		if (!sim->apps[i].ended)
			look_at_app(sim, &sim->apps[i]);
	for (uint32_t i = 0; sim->is.restarts && i < sim->apps_given; i++) {
		sim_restart_look(sim, &sim->apps[i], quiet && sim->driver.process.alive);
		sim_apply_look(sim, &sim->apps[i], quiet && sim->driver.process.alive);
	}
	if (sim->now_ns > sim->quiet_ns + 14 * SIM_S && sim->driver.process.alive && !sim->once &&
	    sim->now_ns > sim->driver.started_ns + 14 * SIM_S)
		look_at_workers(sim);
	if (all_is_over(sim) && sim->end_ns > sim->now_ns + 2 * sim->dead_ns + 4 * SIM_S)
		sim->end_ns = sim->now_ns + 2 * sim->dead_ns + 4 * SIM_S;
}

void sim_check_end(struct sim *sim)
{
	for (uint32_t i = 0; i < sim->worker_count; i++)
		sim_verdict_worker(sim, &sim->workers[i]);
	sim_adopt_end(sim);
	for (uint32_t i = 0; i < sim->apps_given; i++)
		if (!sim->apps[i].ended)
			sim_fail(sim, "results", "%s has no result at the end: it is %s",
				 sim->apps[i].name, drv_app_state_name(sim->apps[i].state));
	for (uint32_t i = 0; i < sim->host_count; i++)
		if (sim->hosts[i].process.alive && !sim->hosts[i].dying)
			sim_fail(sim, "left over", "pid %d of %s is left over", sim->hosts[i].pid,
				 sim->hosts[i].app->name);
}

/* A process that a reason names is one of the application's. */
static void check_named(struct sim *sim, const struct sim_app *app, const char *reason)
{
	const char *named = reason != NULL ? strstr(reason, "fraghost ") : NULL;
	const struct sim_host *host;
	unsigned int pid;

	if (named == NULL || sscanf(named, "fraghost %u", &pid) != 1)
		return;
	host = sim_host_by_pid(sim, pid);
	if (host == NULL || host->app != app)
		sim_fail(sim, "causes", "%s failed for a host that is not its own: %s", app->name,
			 reason);
}

/* Whose end is told is the one that began it, whatever else was seen to break because of it. */
static void check_first_cause(struct sim *sim, const struct sim_app *app, const char *reason,
			      int exit_code)
{
	bool exits = app->fate == SIM_FATE_PREPARE_CRASHES || app->fate == SIM_FATE_OP_CRASHES ||
		     app->fate == SIM_FATE_OP_EXITS || app->fate == SIM_FATE_END_CRASHES;
	int pid = app->fate_met && app->harms == 0 && exits ? app->fate_pid
		  : !app->fate_met && app->harms == 1       ? app->harmed_pid
							    : 0;
	const struct sim_host *host = sim_host_by_pid(sim, (uint32_t)pid);
	char named[32];

	if (host != NULL && host->ended_by_worker) /* before it could be the cause */
		return;
	/* A host that may be started again is not the reason where that was done. */
	if (app->early_excuse || pid == 0 || app->failed_outside)
		return;
	/*
	 * Something else came first that is no harm: a library, a worker that slept too long, or
	 * that did not wait for what the kernel held.
	 */
	if (sim_swap_is_failing(sim, app) ||
	    (app->dies_slowly && strstr(reason, "was lost: it was told to end") != NULL) ||
	    strstr(reason, "its lease is over already") != NULL)
		return;
	if (sim->is.adopts && sim->driver.incarnation > 1) /* it may hear of several ends at once */
		return;
	snprintf(named, sizeof(named), "fraghost %d ", pid);
	if (strstr(reason, named) == NULL || exit_code != (app->fate_met ? app->fate_exit_code : 1))
		sim_fail(sim, "first cause", "%s failed because of pid %d, but it says %d: %s",
			 app->name, pid, exit_code, reason);
}

/* A failure of an operator ends its application at once. */
static void check_time(struct sim *sim, const struct sim_app *app)
{
	int64_t latency_ns = 0, took_ns = sim->now_ns - app->fate_ns;

	if (app->fate_ns == 0 || app->harms != 0 || app->blows != 0 || app->early_excuse ||
	    app->stop_requested || app->stopped_by_op || app->fate == SIM_FATE_OP_HANGS ||
	    sim->quiet_ns > app->fate_ns - SIM_S)
		return;
	for (uint32_t w = 0; w < sim->worker_count; w++)
		if (sim->workers[w].latency_ns > latency_ns)
			latency_ns = sim->workers[w].latency_ns;
	if (took_ns > 2700 * SIM_MS + 8 * latency_ns)
		sim_fail(sim, "in time", "%s ended %.3f s after its operator failed", app->name,
			 (double)took_ns * 1e-9);
}

/* A flow asks for shared memory, and not all workers share it. No host was made. */
static void check_refusal(struct sim *sim, const struct sim_app *app)
{
	const struct sim_worker *workers = sim->workers;
	bool asked = false, apart = false, made = false;

	for (uint32_t i = 0; i < app->flow_count; i++)
		asked = asked || (app->flows[i].given_edge != NULL &&
				  strcmp(app->flows[i].given_edge, "shm") == 0);
	for (uint32_t w = 0; w < sim->worker_count; w++)
		apart = apart || workers[w].memory[0] == '\0' ||
			strcmp(workers[w].memory, workers[0].memory) != 0;
	for (uint32_t i = 0; i < sim->host_count; i++)
		made = made || sim->hosts[i].app == app;
	if (!asked || !apart || made)
		sim_fail(sim, "results", "%s was refused for memory that is not shared%s%s%s",
			 app->name, asked ? "" : ", which it does not ask for",
			 apart ? "" : ", but all share it", made ? ", after a host was made" : "");
}

/* Its process is held up in the kernel, or its worker sleeps; or each start of it hangs. */
static bool is_late(const struct sim *sim, const struct sim_app *app, const char *reason)
{
	if (app->fate == SIM_FATE_START_HANGS && app->blows > 0 &&
	    strstr(reason, "did not answer START in time") != NULL)
		return true;
	/* A driver that is to stop does not begin anew: it says what its pause has cost. */
	if (sim->is.pauses && app->stop_requested &&
	    strstr(reason, "driverd itself did not run") != NULL)
		return true;
	if (!app->dies_slowly && sim->quiet_ns <= sim->now_ns - 3 * SIM_S)
		return false;
	return strstr(reason, "which is to be moved") != NULL ||
	       (app->blows > 0 && (strstr(reason, "which is to be started again") != NULL ||
				   strstr(reason, "was lost, while their control") != NULL));
}

static void check_result(struct sim *sim, struct sim_app *app, const struct fragi_summary *summary)
{
	bool timed_out = summary->exit_code == 4 && app->start_timeout_ns != 0 &&
			 app->furthest <= DRV_APP_STARTING;
	bool no_cause = app->fate == SIM_FATE_END_HANGS ||
			app->fate == SIM_FATE_END_FAILS; /* nobody sees it, or it ends already */
	/* The driver that waited for its start may have died; the next one takes it for started. */
	bool unseen = app->fate == SIM_FATE_START_HANGS && sim->driver.incarnation > 1;
	bool failed = summary->result == FRAGI_SUMMARY_FAILED;
	bool has_reason = summary->failure.sentence != NULL && summary->failure.sentence[0] != '\0';
	bool refused = summary->failure.code == FRAGI_FAILURE_MEMORY_NOT_SHARED;
	bool often, late, unknown;

	app->refused = refused;
	if (app->ends_active && !failed)
		sim_fail(sim, "rest", "%s is ended as at rest, but something can still happen",
			 app->name);
	if (refused)
		check_refusal(sim, app);
	if (failed ? summary->exit_code == 0 || !has_reason ||
			     summary->exit_code != fragi_failure_exit(summary->failure.code)
		   : has_reason || summary->failure.code != FRAGI_FAILURE_NONE)
		sim_fail(sim, "results", "%s: result %d with exit code %d and reason \"%s\"",
			 app->name, (int)summary->result, summary->exit_code,
			 has_reason ? summary->failure.sentence : "");
	check_named(sim, app, summary->failure.sentence);
	often = failed && has_reason &&
		sim_restart_failed_too_often(sim, app, summary->failure.sentence);
	if (failed && has_reason && !timed_out && !often)
		check_first_cause(sim, app, summary->failure.sentence, summary->exit_code);
	late = failed && has_reason && is_late(sim, app, summary->failure.sentence);
	if (failed && !refused && !late && !app->excused && (!app->fate_met || no_cause) &&
	    !timed_out && !often && !app->failed_outside &&
	    /* a stop came before the driver knew, and what is being stopped does not go back */
	    !((app->stop_requested || app->stopped_by_op) && sim_swap_is_failing(sim, app)))
		sim_fail(sim, "causes", "%s failed without a cause: %s", app->name,
			 summary->failure.sentence);
	/*
	 * Where hosts were killed, only the state shows who has stopped their application. The word
	 * of an operator is forgotten when its host has moved.
	 */
	unknown = app->stopped_by_op &&
		  (sim->disk.was_lost || (sim->driver.incarnation > 1 && sim_move_was_made(app)));
	if ((summary->result == FRAGI_SUMMARY_STOPPED && !app->stop_requested && !app->excused &&
	     !unknown) ||
	    (!failed && summary->exit_code != (app->cut ? 128 + 15 : 0)) ||
	    (app->cut && summary->result == FRAGI_SUMMARY_DONE))
		sim_fail(sim, "results", "%s: result %d with exit code %d, stopped by the user: %s",
			 app->name, (int)summary->result, summary->exit_code,
			 app->cut              ? "twice"
			 : app->stop_requested ? "once"
					       : "no");
	if (summary->result == FRAGI_SUMMARY_DONE && !app->excused && !app->stopped_by_op &&
	    !all_done(app) && !sim_data_is_settled(app))
		sim_fail(sim, "results", "%s is done, but not all of its operators", app->name);
	if (app->fate_met && !app->excused && !app->stop_requested && !timed_out && !no_cause &&
	    !unseen && !often && !late && !app->failed_outside && !sim_verdict_too_late(sim, app) &&
	    (!failed || summary->exit_code != app->fate_exit_code))
		sim_fail(sim, "causes", "%s: fate %d should end it with %d, it ended with %d",
			 app->name, app->fate, app->fate_exit_code, summary->exit_code);
}

void sim_check_summary(struct sim *sim, struct sim_app *app, const struct fragi_summary *summary)
{
	if (app->ended) {
		sim_fail(sim, "results", "%s ended twice", app->name);
		return;
	}
	app->has_result = true;
	app->result = summary->result;
	app->exit_code = summary->exit_code;
	sim->outcomes[summary->result]++;
	check_result(sim, app, summary);
	check_time(sim, app);
	sim_verdict_fragments(sim, app, summary);
	sim_account_check(sim, app, summary);
	sim_restart_check_summary(sim, app, summary);
}
