// SPDX-License-Identifier: Apache-2.0
#include "sim.h"

#include <string.h>

/*
 * What leases promise, by what truly happened on the way and not by what either end believes. A
 * lease runs from when its worker sent the newest BEAT or HELLO that the driver has read and
 * answered, if the answer has come. So of each frame to the driver it is kept when it was sent,
 * and of each frame of the driver what the driver had read by then.
 *
 * A host ends with its lease, not later and not sooner. Nobody is given a fragment while the lease
 * of a process that ran it lasts, also when that process happens to be dead already, unless the
 * driver was told of its end; and when the lease is over somebody is given it in time.
 */
#define SLACK_NS (2 * SIM_MS) /* timers are rounded, and clocks drift in steps */

static int64_t lease_of(const struct sim_host *host)
{
	return host->app->on_failure[host->fragments[0]].lease_ns;
}

/* The clock of a machine may be faster or slower by so much over a lease. */
static int64_t slack(const struct sim_host *host)
{
	return SLACK_NS + host->promise.span_ns / 100;
}

static bool is_on(const struct sim *sim, const struct sim_host *host, uint32_t w)
{
	return host->worker == w && host->generation == sim->workers[w].generation &&
	       host->process.alive && sim_lease_is_of(host);
}

static void extend(const struct sim *sim, struct sim_host *host)
{
	const struct sim_worker *worker = &sim->workers[host->worker];
	int64_t span_ns = lease_of(host) + (worker->driver_leaves ? FW_LEASE_AWAY_NS : 0);

	if (!host->promise.is_renewed || worker->renewed_ns + span_ns <= host->promise.until_ns)
		return;
	if (sim->now_ns > host->promise.until_ns - slack(host))
		host->promise.late_ns = sim->now_ns;
	host->promise.until_ns = worker->renewed_ns + span_ns;
	host->promise.span_ns = span_ns;
}

void sim_promise_begin(struct sim *sim, struct sim_host *host)
{
	if (!sim_lease_is_of(host))
		return;
	host->promise.made_by = host->incarnation;
	host->promise.is_renewed = true;
	extend(sim, host);
}

void sim_promise_heard(struct sim *sim, struct sim_connection *connection,
		       const struct fw_message *message)
{
	struct sim_worker *worker = &sim->workers[connection->worker];
	bool is_welcome = message->kind == FW_WELCOME;

	if (!sim->is.leases ||
	    (!is_welcome && message->kind != FW_BEAT && message->kind != FW_HOST_ADOPTED))
		return;
	if (message->kind == FW_BEAT && message->beat.leaves) {
		worker->driver_leaves = true;
		connection->owes_leave = false;
	}
	if (is_welcome)
		worker->driver_leaves = false;
	if (message->kind != FW_HOST_ADOPTED && connection->answered_ns > worker->renewed_ns)
		worker->renewed_ns = connection->answered_ns;
	for (uint32_t i = 0; i < sim->host_count; i++) {
		struct sim_host *host = &sim->hosts[i];

		if (!is_on(sim, host, connection->worker))
			continue;
		if (is_welcome)
			host->promise.is_renewed = false;
		if (message->kind == FW_HOST_ADOPTED && host->run == message->run &&
		    host->number == message->host && host->epoch == message->epoch)
			host->promise.is_renewed = true;
		extend(sim, host);
	}
}

/*
 * The application runs, its worker is at the driver, and yet the lease of the host goes on as if
 * the driver had not adopted it.
 */
static bool is_forgotten(const struct sim *sim, const struct sim_host *host)
{
	const struct sim_worker *worker = &sim->workers[host->worker];

	return is_on(sim, host, host->worker) && !host->dying && !host->promise.is_renewed &&
	       host->app->state == DRV_APP_RUNNING && !host->app->ended &&
	       sim->driver.process.alive && !sim_is_stopped(sim, &sim->driver.process) &&
	       !sim_is_stopped(sim, &worker->process) &&
	       worker->stalled_until_ns[0] <= sim->now_ns &&
	       worker->stalled_until_ns[1] <= sim->now_ns &&
	       worker->connection != SIM_CONNECTIONS_MAX &&
	       sim->connections[worker->connection].incarnation == host->app->incarnation &&
	       wrk_core_session(worker->core) == WRK_SESSION_ATTACHED;
}

void sim_promise_look(struct sim *sim)
{
	for (uint32_t i = 0; i < sim->host_count; i++) {
		struct sim_host *host = &sim->hosts[i];

		if (!is_forgotten(sim, host))
			host->promise.known_ns = sim->now_ns;
		if (sim->now_ns - host->promise.known_ns > 700 * SIM_MS)
			sim_fail(sim, "leases", "pid %d runs, and nobody renews its lease",
				 host->pid);
	}
}

void sim_promise_leaves(struct sim *sim)
{
	for (uint32_t w = 0; w < sim->worker_count; w++) {
		struct sim_connection *connection = &sim->connections[sim->workers[w].connection];
		const struct sim_frame *frame = connection->to[0].first;

		if (sim->workers[w].connection == SIM_CONNECTIONS_MAX || !connection->admitted ||
		    connection->incarnation != sim->driver.incarnation)
			continue;
		while (frame != NULL && frame->kind != SIM_FRAME_END) /* it is being broken */
			frame = frame->next;
		connection->owes_leave = connection->open[1] && frame == NULL;
	}
}

void sim_promise_closed(struct sim *sim, const struct sim_connection *connection)
{
	if (connection->owes_leave && !connection->kept)
		sim_fail(sim, "leases", "the driver has left, and %s was not told",
			 sim->workers[connection->worker].name);
}

void sim_promise_passed_on(struct sim *sim, struct sim_host *host)
{
	host->promise.told_ns = host->promise.until_ns;
	host->promise.told_at_ns = sim->now_ns;
}

void sim_promise_armed(struct sim *sim, const struct sim_host *host)
{
	if (host->lease_at_ns > host->promise.until_ns + SLACK_NS &&
	    host->lease_at_ns > sim->now_ns)
		sim_fail(sim, "leases", "pid %d is to run %.3f s longer than its lease", host->pid,
			 (double)(host->lease_at_ns - host->promise.until_ns) * 1e-9);
}

/* Whether that clock has jumped since the lease began that was over then. */
static bool jumped_in(const struct sim_process *process, const struct sim_host *host,
		      int64_t until_ns)
{
	return process->jumped_ns != 0 && process->jumped_ns >= until_ns - host->promise.span_ns;
}

static void check_end(struct sim *sim, const struct sim_host *host, int64_t at_ns, int64_t until_ns)
{
	if (until_ns > at_ns + slack(host) &&
	    !jumped_in(&sim->workers[host->worker].process, host, until_ns))
		sim_fail(sim, "leases", "pid %d ended with its lease, which lasts %.3f s more",
			 host->pid, (double)(until_ns - at_ns) * 1e-9);
}

void sim_promise_ended(struct sim *sim, const struct sim_host *host)
{
	/* What it was told last may not have been read. */
	if (host->process.stopped_until_ns >= host->promise.told_at_ns ||
	    sim->now_ns < host->promise.told_at_ns + SIM_MS)
		return;
	check_end(sim, host, sim->now_ns, host->promise.told_ns);
}

void sim_promise_killed(struct sim *sim, struct sim_host *host)
{
	host->promise.killed_ns = sim->now_ns;
	host->promise.at_kill_ns = host->promise.until_ns;
}

/* Of two with these numbers, which every driver counts anew, it is the newer one. */
static struct sim_host *host_of(struct sim *sim, uint32_t w, const struct fw_message *exit)
{
	for (uint32_t i = sim->host_count; sim->is.leases && i-- > 0;)
		if (sim->hosts[i].worker == w && sim->hosts[i].run == exit->run &&
		    sim->hosts[i].number == exit->host && sim->hosts[i].epoch == exit->epoch)
			return &sim->hosts[i];
	return NULL;
}

void sim_promise_exit_sent(struct sim *sim, uint32_t w, const struct fw_message *exit)
{
	const struct sim_host *host = host_of(sim, w, exit);

	/* What came when it was over, or nearly, by a fast clock, did not renew it. */
	if (host != NULL && host->promise.killed_ns > host->promise.late_ns + SIM_MS &&
	    exit->exit.failure.code == FRAGI_FAILURE_LEASE_ENDED)
		check_end(sim, host, host->promise.killed_ns, host->promise.at_kill_ns);
}

void sim_promise_exit_heard(struct sim *sim, const struct sim_connection *connection,
			    const struct fw_message *exit)
{
	struct sim_host *host = host_of(sim, connection->worker, exit);

	if (host != NULL)
		host->promise.end_is_known = true;
}

/*
 * Whether the driver may know that it has ended, or that it never ran. Of a run of an earlier
 * driver it is enough that its worker has come as another process, or without it.
 */
static bool is_settled(const struct sim *sim, const struct sim_host *other, bool is_earlier_run)
{
	const struct sim_worker *worker = &sim->workers[other->worker];
	bool is_here =
		worker->connection != SIM_CONNECTIONS_MAX &&
		sim->connections[worker->connection].incarnation == sim->driver.incarnation &&
		(!other->process.alive || other->dying);

	return other->promise.end_is_known || other->incoming || other->wiring_ns == 0 ||
	       (is_earlier_run && other->promise.made_by < sim->driver.incarnation &&
		(is_here || worker->generation != other->generation));
}

/*
 * When leases that earlier drivers may have given are over for the present one, whose clock stands
 * still while it is stopped, and may be slow.
 */
static int64_t earlier_over(const struct sim *sim, int64_t lease_ns)
{
	int64_t span_ns = lease_ns + FW_LEASE_AWAY_NS;

	return sim_able_since(&sim->driver.process, sim->driver.started_ns) + span_ns +
	       span_ns / 25 + SIM_S;
}

int64_t sim_promise_over(const struct sim *sim, const struct sim_host *host)
{
	int64_t over_ns = host->dead_ns_at;

	for (uint32_t i = 0; i < sim->host_count; i++) {
		const struct sim_host *other = &sim->hosts[i];

		if (other->app == host->app && other->number == host->number &&
		    !other->promise.end_is_known && other->promise.until_ns > over_ns)
			over_ns = other->promise.until_ns + 2 * slack(other);
	}
	if (host->promise.made_by != sim->driver.incarnation &&
	    earlier_over(sim, lease_of(host)) > over_ns)
		over_ns = earlier_over(sim, lease_of(host));
	return over_ns;
}

bool sim_promise_holds(const struct sim *sim, const struct sim_app *app)
{
	int64_t longest_ns = 0;
	bool holds = false;

	for (uint32_t i = 0; i < sim->host_count; i++) {
		const struct sim_host *other = &sim->hosts[i];

		holds = holds || (other->app != app && strcmp(other->app->name, app->name) == 0 &&
				  !other->promise.end_is_known &&
				  sim->now_ns < other->promise.until_ns + 2 * slack(other));
	}
	for (uint32_t f = 0; f < app->fragment_count; f++)
		if (app->on_failure[f].lease_ns > longest_ns)
			longest_ns = app->on_failure[f].lease_ns;
	return holds || (sim->driver.incarnation > 1 && longest_ns > 0 &&
			 sim->now_ns < earlier_over(sim, longest_ns));
}

static bool shares_fragment(const struct sim_host *a, const struct sim_host *b)
{
	for (uint32_t i = 0; i < a->fragment_count; i++)
		for (uint32_t k = 0; k < b->fragment_count; k++)
			if (a->fragments[i] == b->fragments[k])
				return true;
	return false;
}

/* Whether the end of other's lease is to be awaited before host, or its application, starts. */
static bool is_in_the_way(const struct sim *sim, const struct sim_host *host,
			  const struct sim_host *other)
{
	if (other == host || !sim_lease_is_of(other) ||
	    is_settled(sim, other, other->app != host->app) ||
	    (other->worker == host->worker && other->generation == host->generation))
		return false;
	return other->app == host->app ? shares_fragment(host, other)
				       : strcmp(other->app->name, host->app->name) == 0;
}

void sim_promise_spawned(struct sim *sim, const struct sim_host *host, int64_t asked_ns)
{
	const struct sim_process *driver = &sim->driver.process;

	/* Without its state, and of two workers that share a name, it cannot know. */
	if (!sim->is.leases || host->incoming || sim->disk.was_lost || sim->same_names)
		return;
	for (uint32_t i = 0; i < sim->host_count; i++) {
		const struct sim_host *other = &sim->hosts[i];

		if (is_in_the_way(sim, host, other) &&
		    asked_ns < other->promise.until_ns - SLACK_NS &&
		    !jumped_in(driver, other, other->promise.until_ns))
			sim_fail(
				sim, "leases",
				"pid %d was asked for %.3f s before the lease of pid %d is over, of whose end nobody was told",
				host->pid, (double)(other->promise.until_ns - asked_ns) * 1e-9,
				other->pid);
	}
}
