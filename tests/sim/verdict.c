// SPDX-License-Identifier: Apache-2.0
#include "sim.h"

#include <string.h>

/*
 * What is said about an end, by the driver of each fragment and by a worker as its exit code,
 * against what the played processes did.
 */

static bool runs_fragment(const struct sim_host *host, const struct sim_app *app, uint32_t fragment)
{
	for (uint32_t f = 0; host->app == app && f < host->fragment_count; f++)
		if (host->fragments[f] == fragment)
			return true;
	return false;
}

/*
 * One that it was to move to is it too, once the one that ran has made way and this one died after
 * that. If it died before, the move had been given up, and the one that ran went on.
 */
static const struct sim_host *host_of(const struct sim *sim, const struct sim_app *app,
				      uint32_t fragment)
{
	const struct sim_host *incoming = NULL;

	for (uint32_t i = sim->host_count; i-- > 0;) {
		const struct sim_host *host = &sim->hosts[i];

		if (!runs_fragment(host, app, fragment))
			continue;
		if (!host->incoming && incoming != NULL && host->yields && !host->process.alive &&
		    incoming->dead_ns_at >= host->dead_ns_at)
			return incoming;
		if (!host->incoming)
			return host;
		if (incoming == NULL && !host->process.alive)
			incoming = host;
	}
	return NULL;
}

/*
 * It came to grief by itself, or its workerd ended it though the driver had not asked for that, or
 * a driver that was to start it again has ended before that.
 */
static bool can_have_failed(const struct sim_host *host)
{
	bool by_driver = (host->kill_requested && !host->killed_to_restart) ||
			 (host->end_requested && host->orderly);

	return host->faulty || host->killed_to_restart || (host->ended_by_worker && !by_driver);
}

/* The only one that something happened to, and it is why the application ended. */
static bool is_the_cause(const struct sim_app *app, const struct sim_host *host)
{
	bool by_fate =
		app->fate_met && !app->excused && host->pid == app->fate_pid && app->blows == 0;
	bool by_harm = !app->fate_met && app->harms == 1 && host->pid == app->harmed_pid &&
		       !sim_restart_is_policy(host);

	return (by_fate || by_harm) && host->faulty && !app->early_excuse &&
	       app->result == FRAGI_SUMMARY_FAILED && app->exit_code != 4;
}

/*
 * What is wrong with what is said of a host; NULL: nothing. calm: its worker could have told its
 * end.
 */
static const char *wrong_with(const struct sim_app *app, const struct sim_host *host,
			      const char *state, bool calm, uint64_t epoch)
{
	bool is_newest = epoch == host->epoch;
	bool failed = strcmp(state, "failed") == 0, lost = strcmp(state, "lost") == 0;
	bool all_done = app->result == FRAGI_SUMMARY_DONE;

	/* A later epoch may have got no process, and a newer one, which was prepared, is killed. */
	if (host->process.alive && !failed && !lost &&
	    (is_newest || (host->epoch < epoch && !host->dying)))
		return "lives, and nobody has seen its end";
	if (host->term_by_stranger && host->ends)
		return NULL; /* it ended in order, and its order to end may have crossed that */
	/* A later epoch may have been refused, and got no process. */
	if (failed && !can_have_failed(host) && host->instance == 0 && is_newest &&
	    !app->hosts[host->number].refused)
		return host->orderly ? "ended as it was told" : "was ended by the driver";
	/* That one was killed and does not die is no failure of its own. */
	if (!failed && !(lost && app->dies_slowly) && is_the_cause(app, host))
		return "is why the application failed";
	/*
	 * It may have died just before the application stopped, which then goes on without it. An
	 * operator that stops it stops what follows a failed library before it has started.
	 */
	if (all_done && host->died_early && !host->process.alive && !app->excused &&
	    !sim_restart_is_policy(host) &&
	    !(app->stopped_by_op && host->instance > 0 && !host->started && host->kill_requested))
		return "died before it was told to end, and yet the application is called done";
	if (strcmp(state, "done") == 0 && (!all_done || !host->orderly))
		return "did not end in order";
	/*
	 * A driver before this one may have killed it, in vain. A later epoch, which was to go on
	 * for it, may have got no process.
	 */
	if (strcmp(state, "stopped") == 0 && all_done && host->orderly && is_newest &&
	    !host->kill_crossed && app->state != DRV_APP_KILLING)
		return "ended in order";
	if ((strcmp(state, "waiting") == 0 || strcmp(state, "prepared") == 0) && host->started)
		return "had been started";
	/* A later epoch may have got no process: HOST_CREATE came when its worker had left. */
	if (lost && calm && !app->excused && !app->dies_slowly && !host->process.alive && is_newest)
		return "was never out of reach";
	return NULL;
}

static void check_fragment(struct sim *sim, const struct sim_app *app,
			   const struct fragi_summary_fragment *said, const struct sim_host *host)
{
	const char *wrong = wrong_with(app, host, said->state,
				       sim->quiet_ns < sim->now_ns - SIM_KILL_NS, said->epoch);

	if (wrong != NULL)
		sim_fail(sim, "fragments", "%s: %s is called %s, but its host, pid %d, %s",
			 app->name, said->name, said->state, host->pid, wrong);
}

void sim_verdict_fragments(struct sim *sim, const struct sim_app *app,
			   const struct fragi_summary *summary)
{
	for (uint32_t i = 0; i < summary->fragment_count; i++) {
		const struct sim_host *host = host_of(sim, app, i);

		if (host != NULL)
			check_fragment(sim, app, &summary->fragments[i], host);
		else if (strcmp(summary->fragments[i].state, "done") == 0)
			sim_fail(sim, "fragments",
				 "%s: %s is called done, but it never was anywhere", app->name,
				 summary->fragments[i].name);
	}
}

void sim_verdict_exit(struct sim *sim, const struct sim_connection *connection,
		      const struct fw_message *message)
{
	for (uint32_t i = 0; i < sim->host_count; i++) {
		struct sim_host *host = &sim->hosts[i];

		if (host->worker == connection->worker &&
		    host->incarnation == connection->incarnation && host->run == message->run &&
		    host->number == message->host && host->epoch == message->epoch &&
		    !host->process.alive && host->app->state < DRV_APP_KILLING)
			host->exit_heard = true;
	}
}

/*
 * The application had come to its end, and the driver, which had heard nothing of its hosts in
 * time, killed them: that one of them had crashed while it ended was held up on the way, and is no
 * longer judged.
 */
bool sim_verdict_too_late(struct sim *sim, const struct sim_app *app)
{
	const struct sim_host *host = sim_host_by_pid(sim, (uint32_t)app->fate_pid);
	bool overdue = app->state == DRV_APP_KILLING && app->furthest == DRV_APP_CLOSING &&
		       app->result == FRAGI_SUMMARY_DONE && app->exit_code == 0;

	return overdue && host != NULL && !host->exit_heard &&
	       sim->quiet_ns > sim->now_ns - SIM_CLOSE_NS - SIM_KILL_NS;
}

/* All that it ran of the application ended in order before the user's patience did. */
static bool ended_before_the_cut(const struct sim *sim, const struct sim_worker *worker)
{
	for (uint32_t i = 0; i < sim->host_count; i++)
		if (sim->hosts[i].app == worker->served &&
		    &sim->workers[sim->hosts[i].worker] == worker && !sim->hosts[i].orderly)
			return false;
	return worker->served->cut && worker->exit_code == 0;
}

/*
 * It was given nothing of it: the application was refused before, or its driver, which is for that
 * one alone, has sent its end to all workers.
 */
static bool ended_with_what_it_did_not_serve(const struct sim *sim, const struct sim_worker *worker)
{
	for (uint32_t i = 0; i < sim->app_count; i++)
		if ((sim->apps[i].refused || (sim->driver_for_one && sim->apps[i].ended)) &&
		    worker->exit_code == sim->apps[i].exit_code)
			return true;
	return false;
}

/* Its driver did not come back, or takes its key no more, before it had served anything. */
static bool ended_unserved(const struct sim_worker *worker)
{
	return worker->exit_code == fragi_failure_exit(FRAGI_FAILURE_DRIVER_LOST) ||
	       worker->exit_code == fragi_failure_exit(FRAGI_FAILURE_KEY_REFUSED);
}

/* A worker for one application ends with its result, as far as it can know it. */
void sim_verdict_worker(struct sim *sim, const struct sim_worker *worker)
{
	const struct sim_app *app = worker->served;

	if (!worker->exited)
		return;
	if (worker->stops > 0 || !sim->once || app == NULL) {
		if ((worker->stops == 0 || worker->exit_code != 0) &&
		    !(sim->once && app == NULL &&
		      (sim->is.leases || ended_unserved(worker) ||
		       ended_with_what_it_did_not_serve(sim, worker))))
			sim_fail(sim, "results",
				 "%s exited with %d after it was told %u times to end",
				 worker->name, worker->exit_code, worker->stops);
		return;
	}
	/* The driver's last word has reached it; or nothing came in between. */
	if (worker->heard_end != app && (app->excused || app->disturbed))
		return;
	if (sim_restart_was_made(app)) /* it may have ended when it ran no part of it */
		return;
	if (app->has_result && worker->exit_code != app->exit_code &&
	    !ended_before_the_cut(sim, worker))
		sim_fail(sim, "results", "%s exited with %d, %s ended with %d", worker->name,
			 worker->exit_code, app->name, app->exit_code);
}
