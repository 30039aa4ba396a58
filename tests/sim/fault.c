// SPDX-License-Identifier: Apache-2.0
#include "sim.h"

#include <signal.h>
#include <stdlib.h>

/*
 * What goes wrong. What lives while a fault lasts is excused when it fails.
 */

/*
 * excuse: what lives then may fail; later: so may what is given while it lasts, and a while longer.
 */
static void disturb(struct sim *sim, int64_t until_ns, bool excuse, bool later)
{
	if (until_ns > sim->quiet_ns)
		sim->quiet_ns = until_ns;
	if (later && until_ns + sim->dead_ns + SIM_S > sim->excuse_until_ns)
		sim->excuse_until_ns = until_ns + sim->dead_ns + SIM_S;
	for (uint32_t i = 0; i < sim->app_count; i++) {
		struct sim_app *app = &sim->apps[i];

		if (!app->given || app->ended)
			continue;
		app->disturbed = true;
		app->harms += excuse;
		app->excused = app->excused || excuse;
	}
}

void sim_disturb(struct sim *sim, int64_t until_ns)
{
	disturb(sim, until_ns, false, false);
}

static struct sim_host *some_host(struct sim *sim, uint32_t bits)
{
	uint32_t alive = 0;

	for (uint32_t i = 0; i < sim->host_count; i++)
		alive += sim->hosts[i].process.alive;
	for (uint32_t i = 0; i < sim->host_count && alive > 0; i++)
		if (sim->hosts[i].process.alive && bits % alive-- == 0)
			return &sim->hosts[i];
	return NULL;
}

/* A host that has a data link to another worker's, and that one. */
static struct sim_host *some_linked_host(struct sim *sim, uint32_t bits,
					 const struct sim_host **out_peer)
{
	for (uint32_t n = 0; n < sim->host_count; n++) {
		struct sim_host *host = &sim->hosts[(bits + n) % sim->host_count];

		for (uint32_t i = 0; i < host->peer_count && sim_host_runs(host); i++) {
			*out_peer = sim_host_by_pid(sim, host->peers[i]);
			if ((*out_peer)->worker != host->worker && sim_host_runs(*out_peer))
				return host;
		}
	}
	return NULL;
}

static void stop_process(struct sim *sim, const char *name, struct sim_process *process,
			 int64_t for_ns)
{
	if (!process->alive)
		return;
	sim_print(sim, name, "is stopped for %.3f s", (double)for_ns * 1e-9);
	if (sim->now_ns + for_ns > process->stopped_until_ns) {
		process->stopped_until_ns = sim->now_ns + for_ns;
		process->slept_ns = for_ns;
	}
}

static void jump(struct sim *sim, struct sim_process *process, int64_t ahead_ns)
{
	process->clock_ns += ahead_ns;
	process->jumped_ns = sim->now_ns;
}

static struct sim_process *some_process(struct sim *sim, const struct sim_fault *fault)
{
	struct sim_host *host = some_host(sim, fault->other);

	if (fault->other % 3 == 0 && host != NULL)
		return &host->process;
	return fault->worker < sim->worker_count ? &sim->workers[fault->worker].process
						 : &sim->driver.process;
}

/* Two of them in a row would be longer than a process may sleep. */
static void nap(struct sim *sim, struct sim_process *process, int64_t for_ns)
{
	if (process->stopped_until_ns + sim->dead_ns < sim->now_ns)
		stop_process(sim, "nap", process, for_ns);
}

/* Every process that lives, in any order. */
static uint32_t all_processes(struct sim *sim, struct sim_process **out)
{
	uint32_t count = 0;

	out[count++] = &sim->driver.process;
	for (uint32_t i = 0; i < sim->worker_count; i++)
		out[count++] = &sim->workers[i].process;
	for (uint32_t i = 0; i < sim->host_count; i++)
		out[count++] = &sim->hosts[i].process;
	for (uint32_t i = 0; i < count;)
		if (out[i]->alive)
			i++;
		else
			out[i] = out[--count];
	for (uint32_t i = count; i > 1; i--) {
		uint32_t k = (uint32_t)sim_between(sim, 0, i - 1);
		struct sim_process *other = out[k];

		out[k] = out[i - 1];
		out[i - 1] = other;
	}
	return count;
}

/*
 * A frozen group of processes, or a machine that was suspended: nobody has died. They come back
 * within half the time of death. One that napped just before has used up its time already.
 */
static void freeze(struct sim *sim, int64_t for_ns)
{
	struct sim_process *processes[1 + SIM_WORKERS_MAX + SIM_HOSTS_MAX];
	uint32_t count = all_processes(sim, processes);
	int64_t apart_ns = sim_between(sim, 0, sim->dead_ns / 2 / (count + 1));

	for (uint32_t i = 0; i < count; i++)
		if (processes[i]->stopped_until_ns + sim->dead_ns > sim->now_ns)
			return;
	sim->frozen_until_ns = sim->now_ns + for_ns + count * apart_ns;
	disturb(sim, sim->frozen_until_ns, false, false);
	for (uint32_t i = 0; i < count; i++)
		stop_process(sim, "freeze", processes[i], for_ns + i * apart_ns);
}

static void jump_clocks(struct sim *sim, const struct sim_fault *fault)
{
	struct sim_process *processes[1 + SIM_WORKERS_MAX + SIM_HOSTS_MAX];
	uint32_t count = all_processes(sim, processes);

	/* A lease may be over then, also one that begins just now. */
	disturb(sim, sim->now_ns, sim->is.leases, sim->is.leases);
	if (fault->other % 2 == 0 && count > 1)
		count = 1;
	for (uint32_t i = 0; i < count; i++)
		jump(sim, processes[i], fault->for_ns);
	for (uint32_t i = 0; sim->is.leases && i < sim->apps_given; i++)
		sim->apps[i].blows++;
}

/* Nothing that one worker's hosts send reaches those of the other, and these see it. */
static void cut_one_way(struct sim *sim, uint32_t from, uint32_t to, int64_t for_ns)
{
	int64_t until = sim->now_ns + for_ns;

	if (from == to)
		return;
	if (until < sim->cut_until_ns[from][to])
		until = sim->cut_until_ns[from][to];
	sim->cut_until_ns[from][to] = until;
	for (uint32_t i = 0; i < sim->host_count; i++)
		for (uint32_t k = 0; k < sim->host_count; k++)
			if (sim->hosts[i].process.alive && sim->hosts[k].process.alive &&
			    sim->hosts[i].app == sim->hosts[k].app && sim->hosts[i].worker == to &&
			    sim->hosts[k].worker == from)
				sim_put(sim, sim->now_ns + sim->dead_ns, SIM_EV_PEER_LOST, i, k,
					(uint64_t)until);
}

static void cut_data(struct sim *sim, uint32_t a, uint32_t b, int64_t for_ns)
{
	cut_one_way(sim, a, b, for_ns);
	cut_one_way(sim, b, a, for_ns);
}

static void partition(struct sim *sim, const struct sim_fault *fault, uint32_t w)
{
	struct sim_worker *worker = &sim->workers[w];
	int64_t until = sim->now_ns + fault->for_ns;
	uint32_t ways = fault->other % 4; /* both twice */

	sim_print(sim, worker->name, "is cut off for %.3f s, ways %u", (double)fault->for_ns * 1e-9,
		  ways);
	if (ways != 1)
		worker->stalled_until_ns[0] = until;
	if (ways != 2)
		worker->stalled_until_ns[1] = until;
	worker->reset_at_heal = fault->other % 3 == 0;
	for (uint32_t i = 0; i < sim->worker_count && ways != 1 && ways != 2; i++)
		cut_data(sim, w, i, fault->for_ns);
	sim_put(sim, until, SIM_EV_HEAL, w, 0, 0);
}

/* The worker's own end breaks; the driver hears nothing of it. */
static void break_quietly(struct sim *sim, uint32_t w)
{
	uint32_t connection = sim->workers[w].connection;
	struct wrk_event lost = {.kind = WRK_EVENT_DRIVER_LOST, .text = "connection reset by peer"};

	if (connection == SIM_CONNECTIONS_MAX || !sim->connections[connection].connected ||
	    sim_is_stopped(sim, &sim->workers[w].process))
		return;
	lost.connection = sim->connections[connection].number;
	sim_close(sim, connection, 0, true);
	sim->workers[w].connection = SIM_CONNECTIONS_MAX;
	sim_worker_raise(sim, w, &lost);
}

/* Its key is removed from the driver's key file. */
static void revoke(struct sim *sim, uint32_t w)
{
	static const struct fw_identity identity = {.name = "key", .serial = 1};
	uint32_t connection = sim->workers[w].connection;

	if (connection == SIM_CONNECTIONS_MAX || !sim->connections[connection].open[1] ||
	    !sim->driver.process.alive || sim_is_stopped(sim, &sim->driver.process))
		return;
	sim_print(sim, "driver", "the key of %s is removed", sim->workers[w].name);
	sim_driver_step(sim, &(struct drv_event){.kind = DRV_EVENT_REVOKED,
						 .connection = connection + 1,
						 .peer = "10.0.0.1:4711",
						 .identity = &identity});
}

void sim_on_nap(struct sim *sim, const struct sim_event *event)
{
	disturb(sim, sim->now_ns + (int64_t)event->c, false, false);
	nap(sim, &sim->workers[event->a].process, (int64_t)event->c);
}

static void harm_worker(struct sim *sim, const struct sim_fault *fault, uint32_t w)
{
	struct sim_worker *worker = &sim->workers[w];
	enum sim_death death;
	int64_t back_ns = sim->now_ns + sim_between(sim, 50 * SIM_MS, 3 * SIM_S);

	switch (fault->kind) {
	case SIM_FAULT_WORKER_CRASH:
	case SIM_FAULT_NODE_CRASH:
		if (!worker->process.alive)
			return;
		death = fault->kind == SIM_FAULT_NODE_CRASH ? SIM_DEATH_NODE
			: sim_chance(sim, 4)                ? SIM_DEATH_ALL_KILLED
							    : SIM_DEATH_KILLED;
		sim_print(sim, worker->name,
			  death == SIM_DEATH_NODE     ? "dies with its node"
			  : death == SIM_DEATH_KILLED ? "is killed"
						      : "is killed with its reporter");
		for (uint32_t i = 0; i < sim->apps_given && death == SIM_DEATH_KILLED; i++)
			sim->apps[i].kept = sim->apps[i].harms == 1;
		sim_worker_die(sim, w, death);
		break;
	case SIM_FAULT_WORKER_STOPPED:
		stop_process(sim, worker->name, &worker->process, fault->for_ns);
		return;
	case SIM_FAULT_WORKER_TERM:
		if (sim_is_stopped(sim, &worker->process))
			return;
		sim_print(sim, worker->name, "is told to end");
		worker->end_requested = true;
		sim_worker_raise(sim, w, &(struct wrk_event){.kind = WRK_EVENT_STOP});
		if (fault->other % 3 == 0)
			sim_worker_raise(sim, w, &(struct wrk_event){.kind = WRK_EVENT_STOP});
		back_ns += 3 * SIM_S;
		break;
	default:
		return;
	}
	disturb(sim, back_ns, false, false);
	if (back_ns + sim->dead_ns + SIM_S > sim->excuse_until_ns)
		sim->excuse_until_ns = back_ns + sim->dead_ns + SIM_S;
	if (fault->other % 4 != 0)
		sim_put(sim, back_ns, SIM_EV_RESTART, w, 0, 0);
}

/* A host of one application: the others go on as if nothing had happened. */
static void harm_one(struct sim *sim, const struct sim_fault *fault, const struct sim_host *host)
{
	disturb(sim, sim->now_ns + fault->for_ns, false, false);
	if (host == NULL || host->app->ended)
		return;
	host->app->harms++;
	host->app->excused = true;
}

static void harm(struct sim *sim, const struct sim_fault *fault)
{
	uint32_t w = fault->worker % sim->worker_count;
	struct sim_host *host = some_host(sim, fault->other);
	const struct sim_host *peer;

	if (sim->is.restarts && fault->kind >= SIM_FAULT_HOST_CRASH &&
	    fault->kind <= SIM_FAULT_HOST_TERM) {
		harm_one(sim, fault, host);
	} else {
		/* What a new driver is given is none the worse for the end of the old one. */
		disturb(sim, sim->now_ns + fault->for_ns, true,
			fault->kind != SIM_FAULT_DRIVER_CRASH);
	}
	switch (fault->kind) {
	case SIM_FAULT_HOST_CRASH:
		if (host == NULL)
			break;
		if (host->app->harms == 1 && !host->dying && !sim_restart_is_policy(host) &&
		    host_core_state(host->core) != HOST_STATE_ENDING)
			host->app->harmed_pid = host->pid;
		sim_host_die(sim, host, 0, fault->other % 2 == 0 ? SIGSEGV : SIGKILL, false);
		break;
	case SIM_FAULT_HOST_STOPPED:
		if (host != NULL)
			stop_process(sim, "host", &host->process, fault->for_ns);
		break;
	case SIM_FAULT_HOST_TERM:
		if (host == NULL)
			break;
		host->term_by_stranger = true;
		sim_put(sim, sim->now_ns, SIM_EV_HOST_STOP, host->index, 0, 0);
		break;
	case SIM_FAULT_DRIVER_CRASH:
		sim_driver_die(sim, true);
		sim->driver_returns = true;
		sim_put(sim,
			sim->now_ns + sim_between(sim, SIM_MS,
						  sim_chance(sim, 2) ? 50 * SIM_MS : 3 * SIM_S),
			SIM_EV_RESTART, SIM_WORKERS_MAX, 0, 0);
		break;
	case SIM_FAULT_DRIVER_STOPPED:
		stop_process(sim, "driver", &sim->driver.process, fault->for_ns);
		break;
	case SIM_FAULT_PARTITION:
		partition(sim, fault, w);
		break;
	case SIM_FAULT_RESET:
		if (fault->other % 4 == 0) {
			revoke(sim, w);
			break;
		}
		sim_print(sim, sim->workers[w].name, "its connection is reset");
		if (sim->workers[w].connection != SIM_CONNECTIONS_MAX)
			sim_reset(sim, sim->workers[w].connection);
		break;
	case SIM_FAULT_DUPLICATE:
		break_quietly(sim, w);
		break;
	case SIM_FAULT_DATA_CUT:
		host = some_linked_host(sim, fault->other, &peer);
		if (host == NULL)
			break;
		cut_one_way(sim, host->worker, peer->worker, fault->for_ns + sim->dead_ns / 2);
		if (sim->is.restarts && sim->blow_fault != 0) /* when that is reported */
			sim_put(sim, sim->now_ns + sim->dead_ns - sim_between(sim, 0, 30 * SIM_MS),
				SIM_EV_FAULT, sim->blow_fault, 0, 0);
		if (fault->other % 7 > 2)
			cut_one_way(sim, peer->worker, host->worker,
				    fault->for_ns + sim->dead_ns / 2);
		/* An end's worker may be asleep when that is judged. */
		if (sim_chance(sim, 2))
			sim_put(sim, sim->now_ns + sim->dead_ns + sim_between(sim, 0, 400 * SIM_MS),
				SIM_EV_NAP, sim_chance(sim, 2) ? peer->worker : host->worker, 0,
				(uint64_t)sim_between(sim, sim->dead_ns / 4, sim->dead_ns * 3 / 5));
		break;
	default:
		harm_worker(sim, fault, w);
		break;
	}
}

/* It is a run that began after the stop, or the driver that heard the stop is dead. */
static bool knows_no_stop(const struct sim *sim, const struct sim_app *app)
{
	return !app->stop_requested || !sim->driver.process.alive ||
	       sim->driver.incarnation != sim->stopped_in;
}

static void stop_worker(struct sim *sim, uint32_t w)
{
	struct sim_worker *worker = &sim->workers[w];

	worker->end_requested = true;
	for (uint32_t i = 0; i < sim->host_count; i++)
		if (sim->hosts[i].process.alive && sim->hosts[i].worker == w &&
		    knows_no_stop(sim, sim->hosts[i].app))
			sim->hosts[i].app->excused = true;
	for (uint32_t i = 0; i < sim->apps_given; i++) /* the same, and has no host yet */
		sim->apps[i].excused |= sim->apps[i].state <= DRV_APP_WAITING &&
					!sim->apps[i].ended && knows_no_stop(sim, &sim->apps[i]);
	if (worker->process.alive && !sim_is_stopped(sim, &worker->process))
		sim_worker_raise(sim, w, &(struct wrk_event){.kind = WRK_EVENT_STOP});
}

static void stop_workers(struct sim *sim)
{
	for (uint32_t w = 0; w < sim->worker_count; w++)
		stop_worker(sim, w);
}

/*
 * The user stops the driver, and perhaps a worker too, in a hurry: its hosts die while the others
 * drain.
 */
static void stop(struct sim *sim, const struct sim_event *event)
{
	if (event->b == 0)
		sim_driver_stop(sim);
	else
		for (int times = 0; times < 2; times++)
			stop_worker(sim, event->b - 1);
	if (event->b == 0 && sim->stops == 1 && sim_chance(sim, 2))
		sim_put(sim, sim->now_ns + sim_between(sim, 0, 40 * SIM_MS), SIM_EV_FAULT, event->a,
			(uint32_t)sim_between(sim, 1, (int64_t)sim->worker_count), 0);
}

/*
 * Everybody in the terminal's group gets it. The applications end as if the driver alone had got
 * it. A second one ends them at once, also when the driver gets it later than its workers.
 */
static void ctrl_c(struct sim *sim, const struct sim_event *event)
{
	if (sim->stops > 0 && event->b == 0 && sim_chance(sim, 2)) {
		stop_workers(sim);
		sim_put(sim, sim->now_ns + sim_between(sim, 0, 600 * SIM_MS), SIM_EV_FAULT,
			event->a, 2, 0);
		return;
	}
	/* It learns of the first one too late to say why its workers leave, or of none. */
	if (!sim->driver.process.alive ||
	    (sim->stops == 0 && sim_is_stopped(sim, &sim->driver.process)))
		disturb(sim, sim->now_ns, true, true);
	sim_driver_stop(sim);
	if (event->b < 2)
		stop_workers(sim);
	if (event->b == 0 && sim->stops == 1 && sim_chance(sim, 2))
		sim_put(sim,
			sim->now_ns +
				sim_between(sim, 0, sim_chance(sim, 2) ? 60 * SIM_MS : 3 * SIM_S),
			SIM_EV_FAULT, event->a, 0, 0);
}

/* No data link of a worker runs while its hosts await their peers, for longer than they do. */
static void cut_while_wiring(struct sim *sim)
{
	int64_t for_ns = SIM_WIRE_NS + SIM_S;
	uint32_t w = (uint32_t)sim_between(sim, 0, (int64_t)sim->worker_count - 1);

	disturb(sim, sim->now_ns + for_ns, true, true);
	for (uint32_t i = 0; i < sim->worker_count; i++)
		cut_data(sim, w, i, for_ns);
}

void sim_haste(struct sim *sim)
{
	int64_t at_ns = sim->now_ns + sim_between(sim, 0, 20 * SIM_MS);
	bool cuts = sim->hasty_state == DRV_APP_WIRING && sim_chance(sim, 2);

	sim->hasty_state = DRV_APP_NEW;
	if (cuts) {
		cut_while_wiring(sim);
		return;
	}
	if (sim_chance(sim, 2)) { /* and somebody sleeps through it */
		int64_t for_ns = sim_between(sim, SIM_MS, sim->dead_ns * 3 / 5);

		disturb(sim, sim->now_ns + for_ns, false, false);
		nap(sim, &sim->workers[sim_between(sim, 0, (int64_t)sim->worker_count - 1)].process,
		    for_ns);
	}
	sim_put(sim, at_ns, SIM_EV_FAULT, sim->hasty_fault, 0, 0);
}

void sim_on_fault(struct sim *sim, const struct sim_event *event)
{
	const struct sim_fault *fault = &sim->plan[event->a];

	switch (fault->kind) {
	case SIM_FAULT_STOP:
		stop(sim, event);
		break;
	case SIM_FAULT_CTRL_C:
		ctrl_c(sim, event);
		break;
	case SIM_FAULT_STRANGER:
	case SIM_FAULT_ROGUE:
		sim_stranger(sim, fault->other, fault->kind == SIM_FAULT_ROGUE);
		break;
	case SIM_FAULT_STALE:
		sim_stale(sim, some_host(sim, fault->other), fault->other);
		break;
	case SIM_FAULT_NAP:
		disturb(sim, sim->now_ns + fault->for_ns, false, false);
		nap(sim, some_process(sim, fault), fault->for_ns);
		break;
	case SIM_FAULT_SLOW:
		disturb(sim, sim->now_ns + 100 * SIM_MS, false, false);
		sim->workers[fault->worker % sim->worker_count].latency_ns =
			sim_between(sim, 10 * SIM_MS, sim->dead_ns / 15);
		break;
	case SIM_FAULT_HICCUP:
		disturb(sim, sim->now_ns + fault->for_ns, false, false);
		for (uint32_t i = 0; i < sim->worker_count && sim->now_ns > sim->hiccup_until_ns;
		     i++)
			cut_data(sim, fault->worker % sim->worker_count, i, fault->for_ns);
		if (sim->now_ns > sim->hiccup_until_ns)
			sim->hiccup_until_ns = sim->now_ns + fault->for_ns;
		break;
	case SIM_FAULT_FREEZE:
		freeze(sim, fault->for_ns);
		break;
	case SIM_FAULT_CLOCK:
		jump_clocks(sim, fault);
		break;
	case SIM_FAULT_BLOW:
		disturb(sim, sim->now_ns, false, false);
		sim_restart_blow(sim);
		break;
	case SIM_FAULT_DRAIN:
		sim_place_drain(sim, fault->worker % sim->worker_count);
		break;
	case SIM_FAULT_APP:
		if (!sim->driver_for_one && sim->stops == 0 &&
		    !sim_is_stopped(sim, &sim->driver.process))
			sim_driver_app(sim);
		break;
	case SIM_FAULT_DRIVER_AWAY:
		sim_adopt_away(sim);
		break;
	case SIM_FAULT_RESTART_APP:
		sim_lease_restart_app(sim, fault->other);
		break;
	case SIM_FAULT_DRIVER_PAUSES:
		sim_adopt_pause(sim, event);
		break;
	case SIM_FAULT_DRIVER_CRASH:
		if (sim->is.adopts)
			sim_adopt_away(sim);
		else
			harm(sim, fault);
		break;
	default:
		if (fault->kind < SIM_FAULTS)
			harm(sim, fault);
		break;
	}
}

void sim_on_restart(struct sim *sim, const struct sim_event *event)
{
	if (sim->frozen_until_ns > sim->now_ns) { /* whoever starts processes is frozen too */
		sim_put_back(sim, *event, sim->frozen_until_ns);
		return;
	}
	if (event->a == SIM_WORKERS_MAX) {
		if (sim->driver.process.alive)
			return;
		sim_driver_fini(sim);
		sim_driver_start(sim);
		return;
	}
	if (sim->workers[event->a]
		    .gone_silent) /* its node answers again: there is no such connection */
		for (uint32_t i = 0; i < sim->connection_count; i++)
			if (sim->connections[i].worker == event->a && sim->connections[i].open[1])
				sim_reset(sim, i);
	sim_worker_start(sim, event->a);
}
