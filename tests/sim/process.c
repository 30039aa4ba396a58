// SPDX-License-Identifier: Apache-2.0
#include "sim.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* The process of a simulated host: how it is spawned, gets signals, dies and is reaped. */

struct sim_host *sim_host_by_pid(struct sim *sim, uint32_t pid)
{
	return pid >= 100 && pid < 100 + sim->host_count ? &sim->hosts[pid - 100] : NULL;
}

struct sim_host *sim_host_of(struct sim *sim, uint32_t worker, uint32_t id)
{
	for (uint32_t i = sim->host_count; i-- > 0;)
		if (sim->hosts[i].worker == worker && sim->hosts[i].id == id &&
		    sim->hosts[i].generation == sim->workers[worker].generation)
			return &sim->hosts[i];
	return NULL;
}

/* Which driver the worker's present connection leads to. */
static uint64_t incarnation_of(const struct sim *sim, uint32_t worker)
{
	uint32_t connection = sim->workers[worker].connection;

	return connection < SIM_CONNECTIONS_MAX ? sim->connections[connection].incarnation : 0;
}

/* The worker that made it is at the driver. */
static bool is_known(const struct sim *sim, const struct sim_host *host)
{
	const struct sim_worker *worker = &sim->workers[host->worker];

	return worker->process.alive && worker->generation == host->generation &&
	       wrk_core_session(worker->core) == WRK_SESSION_ATTACHED;
}

/*
 * It runs nothing: it was prepared beside the host. Its driver may have made it the host, and died
 * before that came to it.
 */
static bool is_only_prepared(const struct sim_host *host)
{
	return host->incoming ||
	       (host->was_beside && host_core_state(host->core) < HOST_STATE_WIRING);
}

static void check_owners(struct sim *sim, const struct sim_host *host)
{
	for (uint32_t i = 0; i < sim->host_count; i++) {
		const struct sim_host *other = &sim->hosts[i];

		if (other == host || other->app != host->app)
			continue;
		/* The driver that has asked for it has died, and nobody will wire it. */
		if (host->incarnation < other->incarnation)
			continue;
		/* The state of the driver that gave it is lost, and it never was the host. */
		if (other->incoming && sim->disk.was_lost)
			continue;
		/* The same, and nobody has told the present one of it. */
		if (other->incarnation <= sim->disk.lost_with && sim->disk.was_lost &&
		    !is_known(sim, other))
			continue;
		if (other->number == host->number && other->epoch >= host->epoch)
			sim_fail(sim, "epochs", "host %u of %s: epoch %llu after %llu",
				 host->number, host->app->name, (unsigned long long)host->epoch,
				 (unsigned long long)other->epoch);
		if (sim_lease_is_of(other)) /* at every step: lease.c */
			continue;
		if (!other->process.alive || is_only_prepared(other))
			continue;
		for (uint32_t k = 0; k < other->fragment_count; k++)
			for (uint32_t n = 0; n < host->fragment_count; n++)
				if (other->fragments[k] == host->fragments[n])
					sim_fail(sim, "owners",
						 "fragment %u of %s lives in pid %d and pid %d",
						 host->fragments[n], host->app->name, other->pid,
						 host->pid);
	}
}

/* Epochs rise from driver to driver where they are kept. */
static void check_epoch(struct sim *sim, uint64_t incarnation, uint64_t epoch)
{
	struct sim_disk *disk = &sim->disk;

	if (!disk->is_used || incarnation <= disk->lost_with) /* still under way when it was lost */
		return;
	if (incarnation > disk->heard_from && epoch <= disk->heard)
		sim_fail(sim, "epochs",
			 "driver %llu gives epoch %llu, and driver %llu gave %llu before",
			 (unsigned long long)incarnation, (unsigned long long)epoch,
			 (unsigned long long)disk->heard_from, (unsigned long long)disk->heard);
	if (epoch > disk->heard) {
		disk->heard = epoch;
		disk->heard_from = incarnation;
	}
}

_Static_assert(FW_DATA_KEY_BYTES == FW_VARIABLES_KEY_BYTES, "check_key compares either");

/* All hosts of an application have one key, and nobody else has it. */
static void check_key(struct sim *sim, struct sim_app *app, const struct fw_message *create,
		      size_t key_at, const uint8_t *key)
{
	static const uint8_t none[FW_DATA_KEY_BYTES];
	uint8_t *known = (uint8_t *)app + key_at;

	if (memcmp(key, none, sizeof(none)) == 0)
		sim_fail(sim, "data keys", "a host of %s was given no key", app->name);
	if (app->run == create->run && memcmp(key, known, sizeof(none)) != 0)
		sim_fail(sim, "data keys", "two hosts of %s were given two keys", app->name);
	for (uint32_t i = 0; i < sim->app_count; i++)
		if (&sim->apps[i] != app &&
		    memcmp(key, (uint8_t *)&sim->apps[i] + key_at, sizeof(none)) == 0)
			sim_fail(sim, "data keys", "%s was given the key of %s", app->name,
				 sim->apps[i].name);
	memcpy(known, key, sizeof(none));
}

struct sim_host *sim_host_spawn(struct sim *sim, uint32_t worker, uint32_t id,
				const struct fw_message *create)
{
	const struct fw_host_create *wanted = &create->create;
	uint64_t incarnation = incarnation_of(sim, worker);
	struct sim_app *app = NULL;
	struct sim_host *host;

	for (uint32_t i = 0; i < sim->app_count; i++)
		if (strcmp(sim->apps[i].name, wanted->application) == 0 &&
		    (sim->is.adopts ? sim->apps[i].kept_run == create->run
				    : sim->apps[i].incarnation == incarnation))
			app = &sim->apps[i];
	if (app == NULL || sim->host_count == SIM_HOSTS_MAX ||
	    wanted->fragment_count > SIM_FRAGMENTS_MAX) {
		sim_fail(sim, "owners",
			 "a host was spawned for %s, which this driver does not have",
			 wanted->application);
		return NULL;
	}
	check_epoch(sim, incarnation, create->epoch);
	check_key(sim, app, create, offsetof(struct sim_app, data_key), wanted->data_key);
	check_key(sim, app, create, offsetof(struct sim_app, variables_key), wanted->variables_key);
	app->run = create->run;
	sim->workers[worker].served = app;
	host = &sim->hosts[sim->host_count];
	*host = (struct sim_host){.index = sim->host_count,
				  .id = id,
				  .pid = 100 + (int)sim->host_count,
				  .worker = worker,
				  .generation = sim->workers[worker].generation,
				  .connection = sim->workers[worker].connection,
				  .made_over = sim->workers[worker].connection,
				  .app = app,
				  .incarnation = incarnation,
				  .run = create->run,
				  .number = create->host,
				  .epoch = create->epoch,
				  .incoming = wanted->is_beside,
				  .was_beside = wanted->is_beside,
				  .heard_ns = sim->now_ns,
				  .heard_by_worker_ns = sim->now_ns,
				  .fragment_count = wanted->fragment_count};
	for (uint32_t i = 0; i < wanted->fragment_count; i++)
		host->fragments[i] = (uint8_t)atoi(wanted->fragments[i] + 1); /* "f7" */
	for (uint32_t i = 0; i < wanted->transport_count; i++)
		host->opened |= 1u << sim_transport(wanted->transports[i]);
	sim_restart_spawned(sim, host);
	sim_client_check_source(sim, host, wanted);
	if (sim_fate_is(host, SIM_FATE_SPAWN_FAILS)) {
		sim_fate_meet(host, 3);
		host->dead_ns_at = sim->now_ns;
		host->faulty = true;
		sim->host_count++;
		host->id = UINT32_MAX;
		return NULL;
	}
	host->process.alive = true;
	sim->host_count++;
	host->beat_ns = wanted->beat_ns;
	host->dead_ns = wanted->dead_ns;
	if (!host->incoming)
		check_owners(sim, host);
	sim_place_spawned(sim, host);
	sim_promise_begin(sim, host);
	sim_promise_spawned(sim, host, sim->connections[host->made_over].sent_ns);
	sim_print(sim, sim_worker_name(sim, worker), "spawns pid %d: host %u of %s, epoch %llu",
		  host->pid, host->number, app->name, (unsigned long long)host->epoch);
	sim_host_begin(sim, host);
	return host;
}

static bool has_worker(const struct sim *sim, const struct sim_host *host)
{
	const struct sim_worker *worker = &sim->workers[host->worker];

	return worker->process.alive && worker->generation == host->generation;
}

/*
 * It had said that it is done, or all was at rest, when its worker, which was told twice to end,
 * killed it: nothing was missing.
 */
static bool had_come_to_its_end(const struct sim *sim, const struct sim_host *host)
{
	return (host->done_reported || sim_data_is_settled(host->app)) && host->dying &&
	       has_worker(sim, host) && sim->workers[host->worker].stops > 1;
}

/* It is dead; its ledger stays as it was. silent: with its whole node. */
void sim_host_die(struct sim *sim, struct sim_host *host, int status, int signal, bool silent)
{
	if (!host->process.alive)
		return;
	sim_print(sim, sim_host_name(host), "dies: status %d, signal %d", status, signal);
	sim_look_count(sim, host);
	host->process.alive = false;
	host->dead_ns_at = sim->now_ns;
	host->status = status;
	host->signal = signal;
	host->orderly = host->ends && signal == 0 && status == 0 &&
			(!host->term_by_stranger || host->end_requested || host->ended_by_worker);
	host->died_early = !host->orderly && host->app->state < DRV_APP_CLOSING &&
			   host->app->furthest < DRV_APP_CLOSING && /* with a driver before */
			   !had_come_to_its_end(sim, host);
	host->faulty = host->faulty || (!host->orderly && !host->dying && has_worker(sim, host));
	sim_pipe_clear(&host->to[0]);
	if (!silent)
		sim_host_put(sim, host, 1, SIM_FRAME_END, NULL, 0);
	for (uint32_t i = 0; i < sim->host_count && !host->orderly; i++) {
		const struct sim_host *peer = &sim->hosts[i];
		int64_t after = silent ? host->dead_ns : sim_between(sim, SIM_MS, 30 * SIM_MS);

		if (peer->app == host->app && peer != host && peer->process.alive)
			sim_put(sim, sim->now_ns + after, SIM_EV_PEER_LOST, i, host->index, 0);
	}
}

/* Even SIGKILL waits for a process that is in the kernel. */
static int64_t time_to_die(struct sim *sim, const struct sim_host *host)
{
	bool orphan = !sim->driver.process.alive || host->incarnation != sim->driver.incarnation;

	if (orphan && sim_chance(sim, 2)) /* while its worker comes back to the next driver */
		return sim_between(sim, 0, 300 * SIM_MS);
	if (sim->workers[host->worker].stops > 1 ? sim_chance(sim, 3) : sim_chance(sim, 200))
		return sim_between(sim, 0, 5 * SIM_S);
	if (sim_chance(sim, 40))
		return sim_between(sim, 0, 1600 * SIM_MS);
	return sim_chance(sim, 12) ? sim_between(sim, 0, 600 * SIM_MS)
				   : sim_between(sim, 10000, 5 * SIM_MS);
}

void sim_host_signal(struct sim *sim, struct sim_host *host, int signal)
{
	int64_t after_ns;

	if (!host->process.alive)
		return;
	host->ended_by_worker = true;
	if (signal == SIGTERM) {
		sim_put(sim, sim->now_ns, SIM_EV_HOST_STOP, host->index, 0, 0);
	} else if (signal == SIGKILL && !host->dying) {
		host->dying = true; /* nothing of it runs any more, and it owes no credit */
		sim_promise_killed(sim, host);
		after_ns = time_to_die(sim, host);
		host->app->dies_slowly = host->app->dies_slowly || after_ns > 300 * SIM_MS;
		if (sim->workers[host->worker].stops > 0 &&
		    after_ns > 300 * SIM_MS) /* it is left behind */
			host->app->excused = host->app->disturbed = true;
		sim_put(sim, sim->now_ns + after_ns, SIM_EV_HOST_END, host->index, SIGKILL, 0);
	}
}

void sim_host_reap(struct sim *sim, const struct sim_event *event)
{
	static struct fragi_flow_stats flows[SIM_FLOWS_MAX];
	static struct fw_op_stats ops[2 * SIM_FRAGMENTS_MAX];
	struct sim_host *host = &sim->hosts[event->a];
	const struct sim_worker *worker = &sim->workers[host->worker];
	struct fw_host_stats stats = {.flows = flows, .ops = ops};
	struct wrk_exited exited = {.status = host->status, .signal = host->signal};

	if (!worker->process.alive || worker->generation != host->generation)
		return;
	if (sim_is_stopped(sim, &worker->process)) {
		sim_put_back(sim, *event, worker->process.stopped_until_ns);
		return;
	}
	host->reaped = true;
	stats.flow_count = sim_host_rows(host, flows);
	stats.op_count = sim_host_ops(host, ops);
	exited.stats = host->has_page ? &stats : NULL;
	sim_worker_raise(sim, host->worker,
			 &(struct wrk_event){.kind = WRK_EVENT_HOST_EXITED,
					     .host = host->id,
					     .exited = &exited});
}
