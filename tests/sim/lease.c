// SPDX-License-Identifier: Apache-2.0
#include "sim.h"

#include <signal.h>
#include <string.h>

/*
 * Hosts with policy migrate, under leases: which ones the plan makes so, the kernel that ends them,
 * clocks of machines that run at different rates, and that nobody ever runs twice.
 */
#define RATE_MAX 900 /* one clock is faster than the slowest one by so many millionths, at most */
#define LOOK_NS (100 * SIM_MS)

void sim_lease_plan(struct sim *sim, struct sim_on_failure *own)
{
	if (sim->is.leases && own->restarts && !sim_chance(sim, 3))
		own->lease_ns = sim_between(sim, 1, 6) * SIM_S;
}

uint32_t sim_lease_faults(const struct sim *sim)
{
	return sim->is.leases ? 1 + (uint32_t)(sim->variant % 3) : 0;
}

enum sim_fault_kind sim_lease_fault(struct sim *sim)
{
	static const enum sim_fault_kind kinds[] = {
		SIM_FAULT_PARTITION,      SIM_FAULT_PARTITION,     SIM_FAULT_PARTITION,
		SIM_FAULT_WORKER_STOPPED, SIM_FAULT_WORKER_CRASH,  SIM_FAULT_NODE_CRASH,
		SIM_FAULT_HOST_STOPPED,   SIM_FAULT_DRIVER_STOPPED};

	return kinds[sim_between(sim, 0, FRAG_COUNT_OF(kinds) - 1)];
}

/* That of some fragment, or 0. */
static int64_t some_lease(struct sim *sim)
{
	int64_t lease_ns = 0;

	for (uint32_t a = 0; a < sim->app_count && a < SIM_PLANNED_MAX; a++)
		for (uint32_t f = 0; f < sim->apps[a].fragment_count; f++)
			if (sim->apps[a].on_failure[f].lease_ns > 0 &&
			    (lease_ns == 0 || sim_chance(sim, 3)))
				lease_ns = sim->apps[a].on_failure[f].lease_ns;
	return lease_ns;
}

int64_t sim_lease_lasts(struct sim *sim, int64_t else_ns)
{
	int64_t lease_ns = sim->is.leases && !sim_chance(sim, 3) ? some_lease(sim) : 0;

	return lease_ns > 0 ? sim_between(sim, lease_ns - 400 * SIM_MS, lease_ns + 400 * SIM_MS)
			    : else_ns;
}

void sim_lease_restart_app(struct sim *sim, uint32_t bits)
{
	struct fw_message message = {.kind = FW_STOP_APP};
	struct sim_app *app;

	if (sim->apps_given == 0 || !sim->driver.process.alive || sim->stops != 0 ||
	    sim_is_stopped(sim, &sim->driver.process))
		return;
	app = &sim->apps[sim->apps_given - 1 - bits / 2 % sim->apps_given];
	if (app->ended || app->incarnation != sim->driver.incarnation ||
	    app->state != DRV_APP_RUNNING)
		return;
	app->excused = app->disturbed = app->stop_requested = true;
	sim_print(sim, "user", "starts %s anew", app->name);
	message.stop_app =
		(struct fw_stop_app){.name = app->name, .at_once = bits % 2 == 0, .restart = true};
	sim_place_user(sim, &message);
}

bool sim_lease_is_of(const struct sim_host *host)
{
	return host->app->on_failure[host->fragments[0]].lease_ns > 0;
}

bool sim_lease_is_unknown(const struct sim *sim, const struct sim_app *app, uint32_t number)
{
	bool is_unknown = false;

	for (uint32_t i = 0; sim->driver.incarnation > 1 && i < sim->host_count; i++) {
		const struct sim_host *host = &sim->hosts[i];

		is_unknown = is_unknown || (host->app == app && host->number == number &&
					    !host->process.alive && sim_lease_is_of(host) &&
					    (host->incarnation < sim->driver.incarnation ||
					     host->dead_ns_at < host->reported_ns));
	}
	return is_unknown;
}

/* Its worker has its machine's clock, also while it is stopped, and when it is dead. */
void sim_lease_arm(struct sim *sim, struct sim_host *host, int64_t until_ns)
{
	int64_t at_ns = until_ns - sim->workers[host->worker].process.clock_ns;

	if (!sim_lease_is_of(host))
		sim_fail(sim, "leases", "pid %d is to end with a lease that it has not", host->pid);
	host->lease_at_ns = at_ns > sim->now_ns ? at_ns : sim->now_ns;
	sim_promise_armed(sim, host);
	sim_put(sim, host->lease_at_ns, SIM_EV_LEASE, host->index, 0, 0);
}

void sim_on_lease(struct sim *sim, const struct sim_event *event)
{
	struct sim_host *host = &sim->hosts[event->a];

	if (!host->process.alive || host->dying || event->at_ns != host->lease_at_ns)
		return;
	sim_print(sim, sim_host_name(host), "is ended by the kernel: its lease is over");
	sim_promise_ended(sim, host);
	host->app->excused = host->app->disturbed = true;
	host->app->blows++;
	host->ended_by_worker = true;
	sim_host_die(sim, host, 0, SIGKILL, false);
}

void sim_lease_refused(struct sim *sim, const struct fw_message *exit)
{
	for (uint32_t i = 0; sim->is.leases && i < sim->apps_given; i++)
		if (sim->apps[i].run == exit->run || sim->apps[i].run == 0)
			sim->apps[i].excused |= strstr(exit->exit.failure.sentence,
						       "its lease is over already") != NULL;
}

/*
 * One that the kernel holds while it dies runs nothing any more, one that is prepared beside the
 * host nothing yet.
 */
static bool runs(const struct sim_host *host)
{
	return host->process.alive && !host->dying && !host->incoming && host->fragment_count > 0;
}

/*
 * A driver that has died had asked for it, and was not there to wire it: it runs nothing. The next
 * one could not know of it where the disk was full.
 */
static bool is_left_over(const struct sim_host *host, const struct sim_host *other)
{
	return host->epoch < other->epoch && host_core_state(host->core) < HOST_STATE_WIRING;
}

void sim_lease_check(struct sim *sim)
{
	const struct sim_host *owners[SIM_APPS_MAX][SIM_FRAGMENTS_MAX];

	memset(owners, 0, sizeof(owners[0]) * sim->app_count);
	for (uint32_t i = 0; i < sim->host_count; i++) {
		const struct sim_host *host = &sim->hosts[i];

		for (uint32_t f = 0;
		     runs(host) && sim_lease_is_of(host) && f < host->fragment_count; f++) {
			const struct sim_host **at =
				&owners[host->app - sim->apps][host->fragments[f]];

			if (*at != NULL && !is_left_over(*at, host) && !is_left_over(host, *at))
				sim_fail(sim, "owners",
					 "fragment %u of %s is run by pid %d and pid %d",
					 host->fragments[f], host->app->name, (*at)->pid,
					 host->pid);
			*at = host;
		}
	}
}

static void drift(struct sim_process *process, uint32_t rate)
{
	process->clock_ns += LOOK_NS / 100000 * rate;
}

void sim_lease_drift(struct sim *sim)
{
	if (!sim->is.leases)
		return;
	drift(&sim->driver.process, (uint32_t)(sim->seed / 7 % RATE_MAX));
	for (uint32_t i = 0; i < sim->worker_count; i++)
		drift(&sim->workers[i].process, (uint32_t)(sim->seed / (11 + i) % RATE_MAX));
}

/* One that takes whatever comes, on the same node as all others, so that all reach it. */
static bool has_spare(const struct sim *sim)
{
	bool found = false;

	if (sim->is.places || sim->once)
		return false;
	for (uint32_t w = 0; w < sim->worker_count; w++) {
		const struct sim_worker *worker = &sim->workers[w];

		if (worker->memory[0] == '\0' ||
		    strcmp(worker->memory, sim->workers[0].memory) != 0 ||
		    worker->config.fragment_count != 0)
			return false;
		found = found || (worker->process.alive && worker->has_network &&
				  wrk_core_session(worker->core) == WRK_SESSION_ATTACHED);
	}
	return found;
}

void sim_lease_look(struct sim *sim, const struct sim_host *host, bool quiet)
{
	const struct sim_on_failure *own = &host->app->on_failure[host->fragments[0]];
	struct sim_restarts *r = &host->app->hosts[host->number];
	int64_t wait_ns = own->period_ns < own->backoff_ns << own->intensity
				  ? own->period_ns
				  : own->backoff_ns << own->intensity;
	int64_t due_ns;
	int64_t most_ns = own->period_ns + own->lease_ns + own->lease_ns / 50 + sim->dead_ns +
			  SIM_PREPARE_NS + SIM_WIRE_NS + SIM_START_NS + 3 * SIM_S;

	if (sim->is.adopts && sim->driver.incarnation > 1)
		most_ns += FW_LEASE_AWAY_NS + FW_LEASE_AWAY_NS / 50;
	if (!quiet || host->app->state != DRV_APP_RUNNING || host->app->ended ||
	    host->app->stop_requested || host->app->stopped_by_op || !has_spare(sim) ||
	    (host->process.alive && (sim_host_runs(host) || host->run_failed))) {
		r->since_ns = 0;
		return;
	}
	if (r->since_ns == 0)
		r->since_ns = sim->now_ns;
	due_ns = sim_promise_over(sim, host);
	due_ns = due_ns > r->since_ns ? due_ns : r->since_ns;
	if (!host->process.alive &&
	    sim->now_ns > due_ns + wait_ns + (sim->disk.is_used ? 2 * SIM_DISK_NS : 0) + SIM_S)
		sim_fail(sim, "runs again",
			 "host %u of %s, pid %d, is not started again, %.3f s after its lease",
			 host->number, host->app->name, host->pid,
			 (double)(sim->now_ns - due_ns) * 1e-9);
	if (sim->now_ns - r->since_ns > most_ns)
		sim_fail(sim, "runs again", "host %u of %s, pid %d, has not run for %.3f s",
			 host->number, host->app->name, host->pid,
			 (double)(sim->now_ns - r->since_ns) * 1e-9);
}
