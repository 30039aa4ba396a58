// SPDX-License-Identifier: Apache-2.0
#include "sim.h"

#include <signal.h>
#include <string.h>

/*
 * Hosts that are started again when they fail (on_failure): which ones the plan makes so, what
 * befalls them, and whether that is done as often as it may be and no more often, and their
 * application fails only where it has to.
 */
#define SLACK_NS (5 * SIM_MS)

void sim_restart_plan(struct sim *sim, struct sim_app *app)
{
	app->fate_count = 1;
	if (!sim->is.restarts)
		return;
	for (uint32_t f = 0; f < app->fragment_count; f++) {
		struct sim_on_failure *own = &app->on_failure[f];

		if (f > 0 && sim_chance(sim, 3)) { /* often several share a host */
			*own = app->on_failure[f - 1];
			continue;
		}
		*own = (struct sim_on_failure){
			.restarts = !sim_chance(sim, 3),
			.intensity = (uint32_t)sim_between(sim, 1, sim_chance(sim, 3) ? 8 : 3),
			.period_ns = sim_between(sim, 1, 8) * SIM_S,
			.backoff_ns = sim_between(sim, 1, 400) * SIM_MS,
		};
		sim_lease_plan(sim, own);
		app->restarts = app->restarts || own->restarts;
	}
	/* Where it strikes later hosts of its fragment, or several of them. */
	if (!app->on_failure[app->fate_fragment].restarts)
		return;
	if (app->fate == SIM_FATE_OP_HANGS) /* is seen in the end, which that host may not see */
		app->fate = SIM_FATE_OP_WATCHDOG;
	app->fate_first = (uint32_t)sim_between(sim, 0, 2);
	app->fate_count = sim_chance(sim, 4) ? SIM_RESTARTS_MAX : (uint32_t)sim_between(sim, 1, 4);
}

void sim_restart_text(const struct sim_on_failure *own, char *out, size_t size)
{
	char lease[32] = "";

	out[0] = '\0';
	if (own->lease_ns > 0)
		snprintf(lease, sizeof(lease), ", lease: %llds",
			 (long long)(own->lease_ns / SIM_S));
	if (own->restarts)
		snprintf(
			out, size,
			"    on_failure: {policy: %s, intensity: %u, period: %llds, backoff: %lldms%s}\n",
			own->lease_ns > 0 ? "migrate" : "restart", own->intensity,
			(long long)(own->period_ns / SIM_S), (long long)(own->backoff_ns / SIM_MS),
			lease);
}

static const struct sim_on_failure *on_failure_of(const struct sim_host *host)
{
	return &host->app->on_failure[host->fragments[0]];
}

bool sim_restart_is_policy(const struct sim_host *host)
{
	return on_failure_of(host)->restarts;
}

bool sim_restart_was_made(const struct sim_app *app)
{
	for (uint32_t n = 0; n <= SIM_FRAGMENTS_MAX; n++)
		if (app->hosts[n].count > 0 || app->hosts[n].spawned > 1)
			return true;
	return false;
}

static bool app_runs(const struct sim_app *app)
{
	return app->state == DRV_APP_RUNNING && !app->ended && !app->stop_requested &&
	       !app->stopped_by_op;
}

bool sim_restart_is_due(const struct sim_host *host)
{
	return sim_restart_is_policy(host) && app_runs(host->app);
}

/* A host that would be started again, most often one that was before. */
static struct sim_host *some_host(struct sim *sim, uint32_t bits)
{
	struct sim_host *found = NULL;
	uint32_t count = 0;

	for (uint32_t i = 0; i < sim->host_count; i++) {
		struct sim_host *host = &sim->hosts[i];

		if (!host->process.alive || host->dying || !sim_restart_is_due(host) ||
		    host->term_by_stranger)
			continue;
		count += host->instance > 0 ? 3 : 1;
		if (bits % count < (host->instance > 0 ? 3u : 1u))
			found = host;
	}
	return found;
}

bool sim_restart_all_awake(const struct sim *sim, const struct sim_host *host,
			   const struct sim_host *peer)
{
	int64_t since_ns = sim->now_ns - sim->dead_ns - sim->beat_ns;

	return host->process.stopped_until_ns < since_ns &&
	       sim->workers[host->worker].process.stopped_until_ns < since_ns &&
	       sim->workers[peer->worker].process.stopped_until_ns < since_ns &&
	       sim->driver.process.stopped_until_ns < since_ns;
}

void sim_restart_blow(struct sim *sim)
{
	uint32_t bits = (uint32_t)(sim_random(sim) >> 40);
	struct sim_host *host = some_host(sim, bits >> 4);
	struct sim_process *process;
	int64_t for_ns;

	if (host == NULL)
		return;
	host->app->blows++;
	host->app->blow_ns = sim->now_ns;
	host->app->disturbed = true;
	if (bits % 3 != 0) {
		sim_host_die(sim, host, bits % 5 == 0 ? 1 : 0,
			     bits % 5 == 0   ? 0
			     : bits % 2 == 0 ? SIGSEGV
					     : SIGKILL,
			     false);
		return;
	}
	/* It hangs, and goes on before anybody has noticed, or never. */
	process = &host->process;
	for_ns = sim_chance(sim, 4) ? sim_between(sim, sim->dead_ns / 4, sim->dead_ns / 2)
				    : 2 * sim->dead_ns;
	for (uint32_t i = 0; for_ns > sim->dead_ns && i < host->peer_count; i++)
		sim_put(sim,
			sim->now_ns + sim->dead_ns + sim_between(sim, 0, 2 * sim->beat_ns) -
				sim->beat_ns,
			SIM_EV_PEER_LOST, sim_host_by_pid(sim, host->peers[i])->index, host->index,
			SIM_SILENT);
	sim_print(sim, "blow", "pid %d is stopped for %.3f s", host->pid, (double)for_ns * 1e-9);
	if (sim->now_ns + for_ns > process->stopped_until_ns) {
		process->stopped_until_ns = sim->now_ns + for_ns;
		process->slept_ns = for_ns;
	}
}

/* The driver's clock is that of the simulator. */
static bool driver_is_even(const struct sim *sim)
{
	const struct sim_process *driver = &sim->driver.process;

	return driver->jumped_ns == 0 && driver->stopped_until_ns == 0 &&
	       !(sim->is.adopts &&
		 sim->driver.incarnation > 1); /* it does not know of earlier ones */
}

/* The clock of the driver may be faster, or slower. */
static int64_t slack(const struct sim *sim, int64_t ns)
{
	return SLACK_NS + (sim->is.leases ? ns / 100 : 0);
}

/* How many restarts lie within the period before that time. */
static uint32_t recent(const struct sim_restarts *r, const struct sim_on_failure *own,
		       int64_t at_ns)
{
	uint32_t n = 0;

	while (n < r->count && r->gone_ns[r->count - 1 - n] > at_ns - own->period_ns)
		n++;
	return n;
}

/* What the driver has decided about the host before this one, which ran or not, was right. */
static void check_decision(struct sim *sim, const struct sim_host *host, struct sim_restarts *r,
			   bool ran)
{
	const struct sim_on_failure *own = on_failure_of(host);
	uint32_t n = r->count, before;
	int64_t wait_ns = own->backoff_ns;

	if (r->moves > 0) /* the end of what has left counts as a failure here */
		return;
	if (!own->restarts)
		sim_fail(sim, "restarts", "pid %d is started again, which nobody wants", host->pid);
	if (n != host->instance || n > SIM_RESTARTS_MAX || !driver_is_even(sim))
		return;
	if (n > own->intensity && r->gone_ns[n - 1] - r->gone_ns[n - 1 - own->intensity] <
					  own->period_ns - slack(sim, own->period_ns))
		sim_fail(sim, "intensity", "host %u of %s is started %u times within %.3f s",
			 host->number, host->app->name, own->intensity + 1,
			 (double)(r->gone_ns[n - 1] - r->gone_ns[n - 1 - own->intensity]) * 1e-9);
	r->count--; /* those before the failure that is the reason */
	before = r->trouble_ns != 0 && ran
			 ? recent(r, own, r->gone_ns[n - 1] + slack(sim, own->period_ns))
			 : 0;
	r->count++;
	for (uint32_t i = 1; i < before && wait_ns < own->period_ns; i++)
		wait_ns *= 2;
	if (wait_ns > own->period_ns)
		wait_ns = own->period_ns;
	if (before > 0 && sim->now_ns - r->trouble_ns < wait_ns - slack(sim, wait_ns))
		sim_fail(sim, "backoff", "host %u of %s is started again after %.3f s, not %.3f s",
			 host->number, host->app->name,
			 (double)(sim->now_ns - r->trouble_ns) * 1e-9, (double)wait_ns * 1e-9);
}

void sim_restart_spawned(struct sim *sim, struct sim_host *host)
{
	struct sim_restarts *r = &host->app->hosts[host->number];

	bool ran = false;

	host->instance = r->spawned;
	host->spawned_ns = sim->now_ns;
	if (sim_move_spawned(sim, host)) {
		r->spawned++;
		return;
	}
	for (uint32_t i = 0; i < sim->host_count; i++) {
		struct sim_host *other = &sim->hosts[i];

		if (other->app != host->app || other->number != host->number)
			continue;
		other->superseded = true;
		ran = other->started;
	}
	host->instance = r->spawned++;
	host->spawned_ns = sim->now_ns;
	if (host->instance > 0)
		check_decision(sim, host, r, ran);
	/* While it comes, something happens to it, or to a neighbour. */
	if (host->instance > 0 && sim->blow_fault != 0 && sim_chance(sim, 3) &&
	    sim->blows_left-- > 0)
		sim_put(sim, sim->now_ns + sim_between(sim, 0, 120 * SIM_MS), SIM_EV_FAULT,
			sim->blow_fault, 0, 0);
	r->trouble_ns = 0;
}

/* Whether it says that the host has failed. */
static bool is_trouble(const struct fw_message *message)
{
	switch (message->kind) {
	case FW_HOST_EXIT:
		return true;
	case FW_HOST_EVENT:
		return message->event.state == FW_STATE_FAILED;
	case FW_HOST_PREPARED:
		return !message->prepared.ok;
	case FW_HOST_WIRED:
	case FW_HOST_STARTED:
		return message->result.failure.code != FRAGI_FAILURE_NONE;
	default:
		return false;
	}
}

/* A neighbour that is started again itself may wait for a third one, and answers late. */
static bool others_run(const struct sim *sim, const struct sim_host *host)
{
	for (uint32_t i = 0; i < sim->host_count; i++) {
		const struct sim_host *other = &sim->hosts[i];

		if (other->app == host->app && other != host && !other->superseded &&
		    !sim_host_runs(other))
			return false;
	}
	return true;
}

/* Who lost a peer that is being started again is the first to say that it has failed. */
static void heard_of_peer(struct sim *sim, const struct sim_connection *connection,
			  const struct fw_message *message)
{
	for (uint32_t i = 0; i < sim->host_count; i++) {
		const struct sim_host *host = &sim->hosts[i];
		struct sim_restarts *r = &host->app->hosts[host->number];

		if (host->incarnation == connection->incarnation && host->run == message->run &&
		    host->number == message->event.peer &&
		    host->epoch == message->event.peer_epoch && r->trouble_ns == 0)
			r->trouble_ns = sim->now_ns;
	}
}

/* No process was made, so that is all that there is of it. */
static void heard_of_refusal(struct sim *sim, const struct sim_connection *connection,
			     const struct fw_message *message)
{
	for (uint32_t i = 0; i < sim->apps_given; i++) {
		struct sim_app *app = &sim->apps[i];

		if (app->incarnation == connection->incarnation && app->run == message->run &&
		    !app->ended && message->host <= SIM_FRAGMENTS_MAX)
			app->hosts[message->host].refused = true;
	}
}

void sim_restart_heard(struct sim *sim, const struct sim_connection *connection,
		       const struct fw_message *message)
{
	if (message->kind == FW_HOST_EXIT &&
	    message->exit.failure.code == FRAGI_FAILURE_WORKER_BUSY)
		heard_of_refusal(sim, connection, message);
	if (sim->is.restarts && message->kind == FW_HOST_EVENT &&
	    message->event.state == FW_STATE_PEER_LOST)
		heard_of_peer(sim, connection, message);
	for (uint32_t i = 0; sim->is.restarts && is_trouble(message) && i < sim->host_count; i++) {
		const struct sim_host *host = &sim->hosts[i];
		struct sim_app *app = host->app;
		struct sim_restarts *r = &app->hosts[host->number];

		if (host->worker != connection->worker || host->superseded ||
		    host->incarnation != connection->incarnation || host->run != message->run ||
		    host->number != message->host || host->epoch != message->epoch || app->ended)
			continue;
		/* Once it is being killed, why it ends is decided. */
		if (!app_runs(app) && app->state < DRV_APP_KILLING)
			app->failed_outside = true;
		if (message->kind == FW_HOST_WIRED && host->instance > 0 && app->harms == 0 &&
		    message->result.failure.code == FRAGI_FAILURE_EDGE_UNREACHABLE &&
		    others_run(sim, host) && !host->struck && app->blow_ns < host->wiring_ns &&
		    sim->quiet_ns < host->wiring_ns)
			sim_fail(sim, "runs again", "pid %d could not be wired to its peers: %s",
				 host->pid, message->result.failure.sentence);
		if (r->trouble_ns == 0)
			r->trouble_ns = sim->now_ns;
		/* One that its worker brings when it comes back was counted when that was lost. */
		if (message->kind == FW_HOST_EXIT && app->state == DRV_APP_RUNNING &&
		    connection == &sim->connections[host->made_over] &&
		    r->count == host->instance && r->count < SIM_RESTARTS_MAX)
			r->gone_ns[r->count++] = sim->now_ns;
	}
}

bool sim_restart_failed_too_often(struct sim *sim, const struct sim_app *app, const char *reason)
{
	bool found = false;

	if (strstr(reason, " as many as its on_failure allows") == NULL)
		return false;
	for (uint32_t i = 0; i < sim->host_count; i++) {
		const struct sim_host *host = &sim->hosts[i];
		struct sim_restarts r = app->hosts[host->number];

		if (host->app != app || host->superseded || !sim_restart_is_policy(host))
			continue;
		/* The end of the last one may have been heard: it was not started again. */
		if (r.count > host->instance)
			r.count = host->instance;
		found = found || r.moves > 0 || /* as in check_decision */
			recent(&r, on_failure_of(host), sim->now_ns - 2 * SIM_KILL_NS) >=
				on_failure_of(host)->intensity ||
			recent(&r, on_failure_of(host), app->state_since_ns) >=
				on_failure_of(host)->intensity ||
			recent(&r, on_failure_of(host), app->ending_ns) >=
				on_failure_of(host)->intensity;
	}
	if (!found && driver_is_even(sim) && !sim->is.leases) /* that of a worker is one too */
		sim_fail(sim, "intensity", "%s failed, but none of its hosts did so too often: %s",
			 app->name, reason);
	return true;
}

/* A host that is to be started again runs in time, by all deadlines of the driver. */
static void look_at_host(struct sim *sim, const struct sim_host *host, bool quiet)
{
	const struct sim_on_failure *own = on_failure_of(host);
	struct sim_restarts *r = &host->app->hosts[host->number];
	int64_t wait_ns = own->period_ns < own->backoff_ns << own->intensity
				  ? own->period_ns
				  : own->backoff_ns << own->intensity;
	bool whole = host->process.alive && (sim_host_runs(host) || host->run_failed);

	if (own->lease_ns > 0) {
		sim_lease_look(sim, host, quiet);
		return;
	}
	if (!quiet || whole || !own->restarts || !app_runs(host->app)) {
		r->since_ns = 0;
		return;
	}
	if (host->process.alive && host->instance > 0 && !host->has_page &&
	    sim->now_ns - sim_able_since(&sim->driver.process, host->spawned_ns) >
		    SIM_PREPARE_NS + SIM_S + SIM_KILL_NS)
		sim_fail(sim, "runs again", "pid %d has been preparing for %.3f s", host->pid,
			 (double)(sim->now_ns - host->spawned_ns) * 1e-9);
	if (r->since_ns == 0)
		r->since_ns = sim->now_ns;
	if (sim->now_ns - r->since_ns >
	    wait_ns + SIM_PREPARE_NS + SIM_WIRE_NS + SIM_START_NS + 2 * SIM_S +
		    /* a neighbour may wait for leases */
		    (sim->is.leases && sim->driver.incarnation > 1 ? FW_LEASE_AWAY_NS + 10 * SIM_S
								   : 0))
		sim_fail(sim, "runs again", "host %u of %s, pid %d, has not run for %.3f s",
			 host->number, host->app->name, host->pid,
			 (double)(sim->now_ns - r->since_ns) * 1e-9);
}

void sim_restart_look(struct sim *sim, struct sim_app *app, bool quiet)
{
	for (uint32_t i = 0; app->restarts && i < sim->host_count; i++)
		if (sim->hosts[i].app == app && !sim->hosts[i].superseded)
			look_at_host(sim, &sim->hosts[i], quiet);
}

/*
 * Whether a process of the host was on a worker that has ended since, or is away, and the present
 * driver has not heard of it.
 */
static bool went_with_its_worker(const struct sim *sim, const struct sim_host *host)
{
	bool went = false;

	for (uint32_t i = 0; i < sim->host_count; i++) {
		const struct sim_host *other = &sim->hosts[i];
		const struct sim_worker *worker = &sim->workers[other->worker];

		went = went ||
		       (other->app == host->app && other->number == host->number &&
			other->incarnation < sim->driver.incarnation &&
			(!worker->process.alive || worker->generation != other->generation ||
			 wrk_core_session(worker->core) != WRK_SESSION_ATTACHED));
	}
	return went;
}

void sim_restart_check_summary(struct sim *sim, const struct sim_app *app,
			       const struct fragi_summary *summary)
{
	for (uint32_t i = 0; i < summary->fragment_count; i++) {
		const struct fragi_summary_fragment *said = &summary->fragments[i];

		for (uint32_t h = 0; h < sim->host_count; h++) {
			const struct sim_host *host = &sim->hosts[h];
			bool has = false;

			for (uint32_t f = 0; f < host->fragment_count; f++)
				has = has || host->fragments[f] == i;
			if (!has || host->app != app || host->superseded)
				continue;
			/*
			 * Those that wait for their backoff, or were refused, are counted too. How
			 * often it was started on a worker that is away is lost with the state,
			 * which does not name workers while some share a name, or with that worker.
			 */
			if (said->restarts < host->instance &&
			    app->hosts[host->number].moves == 0 &&
			    !((sim->disk.was_lost || sim->same_names ||
			       went_with_its_worker(sim, host)) &&
			      sim->driver.incarnation > 1 && sim_lease_is_of(host)))
				sim_fail(sim, "restarts",
					 "%s: %s was started again %u times, its summary says %llu",
					 app->name, said->name, host->instance,
					 (unsigned long long)said->restarts);
		}
	}
}
