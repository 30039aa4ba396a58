// SPDX-License-Identifier: Apache-2.0
#include "sim.h"

#include <stdio.h>
#include <string.h>

/*
 * The client replaces libraries (driverd/core/hosts/swap.c). The number of a library says how it
 * goes wrong, if it does. What must hold: the client is answered once and in time; until its
 * library is prepared nothing changes; every process begins with the library that the last answers
 * say; one that fails before its probation is over goes back to the library before, whatever
 * on_failure says, and its application runs on.
 */
enum library {
	LIBRARY_GOOD, /* also the one of the graph, 0 */
	LIBRARY_GOOD_TOO,
	LIBRARY_CONSTRUCTOR_HANGS,
	LIBRARY_DOES_NOT_PREPARE,
	LIBRARY_START_HANGS,
	LIBRARY_DOES_NOT_START,
	LIBRARY_FAILS_SOON, /* within its probation */
	LIBRARY_FAILS_LATE, /* after it */
	LIBRARIES
};
#define PROBATION_NS (3 * SIM_S)
#define PROBATION_SHORT_NS (200 * SIM_MS)
#define ANSWER_NS                                                                                  \
	(SIM_PREPARE_NS + SIM_DRAIN_NS + SIM_CLOSE_NS + SIM_KILL_NS + SIM_WIRE_NS + SIM_START_NS + \
	 3 * SIM_S + 2 * SIM_DISK_NS)

static enum library kind_of(uint32_t library)
{
	return (enum library)(library % LIBRARIES);
}

static enum library kind_in(const struct sim_host *host)
{
	return kind_of(host->library);
}

/*
 * Whether another process ran with that library already: that one was started again for another
 * reason, so the probation may have been over when it failed.
 */
static bool ran_before(const struct sim_host *host)
{
	const struct sim_app *app = host->app;
	int64_t until_ns = app->probation_until_ns[host->number];

	return kind_in(host) == LIBRARY_FAILS_SOON &&
	       app->library[host->fragments[0]] == host->library &&
	       host->library_failed_ns > until_ns - PROBATION_NS / 2;
}

bool sim_swap_is_under_way(const struct sim *sim)
{
	return sim->client.swapping.seq != 0;
}

/* The process that is the host now; NULL: none was made. */
static struct sim_host *present(struct sim *sim, const struct sim_app *app, uint32_t number)
{
	for (uint32_t i = sim->host_count; i-- > 0;)
		if (sim->hosts[i].app == app && sim->hosts[i].number == number &&
		    !sim->hosts[i].superseded)
			return &sim->hosts[i];
	return NULL;
}

void sim_swap_turn(struct sim *sim)
{
	struct sim_swapping *swapping = &sim->client.swapping;
	struct sim_host *host;
	struct fw_message message = {.kind = FW_SWAP};
	char fragment[16], library[32];

	if (sim->host_count == 0 || !sim_chance(sim, 4))
		return;
	host = &sim->hosts[sim_between(sim, 0, (int64_t)sim->host_count - 1)];
	if (host->app->ended || host->app->incarnation != sim->driver.incarnation ||
	    host->superseded || (host->app->state != DRV_APP_RUNNING && !sim_chance(sim, 4)))
		return;
	*swapping = (struct sim_swapping){
		.seq = sim->client.seq + 1,
		.app = (uint32_t)(host->app - sim->apps),
		.pid = host->pid,
		.library = ++sim->client.value * LIBRARIES +
			   (uint32_t)sim_between(sim, 0, LIBRARIES - 1),
		.at_ns = sim->now_ns,
	};
	swapping->probation_ns = kind_of(swapping->library) == LIBRARY_FAILS_LATE
					 ? PROBATION_SHORT_NS
					 : PROBATION_NS;
	snprintf(fragment, sizeof(fragment), "f%u", host->fragments[0]);
	snprintf(library, sizeof(library), "lib%u.so", swapping->library);
	sim_print(sim, "client", "swaps %s of %s to %s, kind %d", fragment, host->app->name,
		  library, (int)kind_of(swapping->library));
	message.swap =
		(struct fw_swap){host->app->name, fragment, library, "", swapping->probation_ns};
	sim_client_say(sim, &message);
}

/* It runs: all processes of the host begin with it from now on. */
static void made(struct sim *sim, const struct sim_swapping *swapping, const struct sim_host *old)
{
	struct sim_app *app = old->app;
	const struct sim_host *host = present(sim, app, old->number);

	if (host == NULL || host->library != swapping->library || !host->started)
		sim_fail(sim, "swap", "lib%u.so of %s is said to run, and host %u has lib%u.so",
			 swapping->library, app->name, old->number,
			 host != NULL ? host->library : 0);
	for (uint32_t i = 0; i < old->fragment_count; i++) {
		app->former[old->fragments[i]] = app->library[old->fragments[i]];
		app->library[old->fragments[i]] = swapping->library;
	}
	app->probation_until_ns[old->number] = sim->now_ns + swapping->probation_ns;
}

/* Else the host makes way for the process of another swap. */
static bool was_tried(const struct sim *sim, const struct sim_swapping *swapping,
		      const struct sim_host *old)
{
	bool was = false;

	for (uint32_t i = 0; i < sim->host_count; i++)
		was = was ||
		      (sim->hosts[i].app == old->app && sim->hosts[i].number == old->number &&
		       sim->hosts[i].library == swapping->library);
	return was;
}

static void refused(struct sim *sim, const struct sim_swapping *swapping,
		    const struct sim_host *old)
{
	enum library kind = kind_of(swapping->library);
	const struct sim_app *app = old->app;

	if ((kind == LIBRARY_CONSTRUCTOR_HANGS || kind == LIBRARY_DOES_NOT_PREPARE) &&
	    !sim->is.moves && was_tried(sim, swapping, old) && old->yields && !old->superseded &&
	    app->state == DRV_APP_RUNNING)
		sim_fail(sim, "swap", "pid %d has ended for lib%u.so, which cannot be prepared",
			 old->pid, swapping->library);
}

bool sim_swap_hear(struct sim *sim, const struct fw_message *message)
{
	bool is_cut;
	struct sim_swapping *swapping = &sim->client.swapping;
	const struct sim_host *old;

	if (swapping->seq == 0 || message->reply_to != swapping->seq)
		return false;
	/* A process with the new library may be under way to its worker. */
	is_cut = message->kind == FW_ANSWER &&
		 ((message->answer.failure.code == FRAGI_FAILURE_NONE && message->run == 0) ||
		  strstr(message->answer.failure.sentence, "ended before the new library ran") !=
			  NULL);
	if (is_cut)
		sim_swap_forget(sim);
	swapping->seq = 0;
	old = sim_host_by_pid(sim, (uint32_t)swapping->pid);
	if (message->kind != FW_ANSWER) {
		sim_fail(sim, "answers", "a swap is answered by %s", fw_kind_name(message->kind));
		return true;
	}
	sim_print(sim, "client", "hears of lib%u.so of %s: %s", swapping->library, old->app->name,
		  message->answer.failure.sentence);
	if (message->answer.failure.code == FRAGI_FAILURE_NONE && !is_cut)
		made(sim, swapping, old);
	else
		refused(sim, swapping, old);
	return true;
}

void sim_swap_look_for_late(struct sim *sim)
{
	const struct sim_swapping *swapping = &sim->client.swapping;

	if (swapping->seq != 0 &&
	    sim->now_ns - sim_able_since(&sim->driver.process, swapping->at_ns) > ANSWER_NS)
		sim_fail(sim, "answers", "the client has no answer for lib%u.so of %s",
			 swapping->library, sim->apps[swapping->app].name);
}

/* What has failed by its library in time must not come back, and what failed late must. */
static void check_return(struct sim *sim, const struct sim_host *host,
			 const struct sim_host *before, bool is_swap)
{
	bool is_early = before->library_failed && kind_in(before) != LIBRARY_FAILS_LATE &&
			!ran_before(before);
	/* ... or goes on with the next one, for which it yielded when it failed. */
	bool is_late = before->library_failed && kind_in(before) == LIBRARY_FAILS_LATE &&
		       !host->app->excused && !is_swap;

	if (is_early && host->library == before->library)
		sim_fail(sim, "swap", "pid %d begins with lib%u.so, which has just failed",
			 host->pid, host->library);
	if (is_late && host->library != before->library)
		sim_fail(sim, "swap", "pid %d goes back from lib%u.so after its probation",
			 host->pid, before->library);
}

void sim_swap_begin(struct sim *sim, struct sim_host *host)
{
	const struct sim_swapping *swapping = &sim->client.swapping;
	struct sim_app *app = host->app;
	const struct sim_host *before = NULL;
	/* One that is prepared may have been refused meanwhile, and is killed then. */
	bool is_swap = host->incoming || (swapping->seq != 0 && host->library == swapping->library);

	for (uint32_t i = 0; i < sim->host_count; i++)
		if (sim->hosts[i].app == app && sim->hosts[i].number == host->number &&
		    &sim->hosts[i] != host && !sim->hosts[i].incoming)
			before = &sim->hosts[i];
	if (before != NULL && !host->incoming)
		check_return(sim, host, before, is_swap);
	for (uint32_t i = 0; i < host->fragment_count && !is_swap; i++) {
		uint8_t f = host->fragments[i];
		bool returns = host->library == app->former[f] &&
			       sim->now_ns < app->probation_until_ns[host->number] + 10 * SIM_S;

		if (host->library != app->library[f] && !returns)
			sim_fail(sim, "kept", "pid %d begins with lib%u.so; f%u has lib%u.so",
				 host->pid, host->library, f, app->library[f]);
		if (returns)
			app->former[f] = app->library[f];
		app->library[f] = host->library;
	}
}

/* It is not known whether the swap is made or not. */
void sim_swap_forget(struct sim *sim)
{
	struct sim_swapping *swapping = &sim->client.swapping;
	const struct sim_host *old = sim_host_by_pid(sim, (uint32_t)swapping->pid);

	for (uint32_t i = 0; swapping->seq != 0 && i < old->fragment_count; i++) {
		old->app->former[old->fragments[i]] = swapping->library;
		old->app->probation_until_ns[old->number] = INT64_MAX / 2;
	}
	swapping->seq = 0;
}

bool sim_swap_is_failing(const struct sim *sim, const struct sim_app *app)
{
	bool fails = false;

	for (uint32_t i = 0; i < sim->host_count; i++)
		fails = fails || (sim->hosts[i].app == app && !sim->hosts[i].superseded &&
				  sim->hosts[i].library_failed);
	return fails;
}

bool sim_swap_hangs(struct sim_host *host, enum host_action_kind kind)
{
	bool hangs = (kind == HOST_DO_PREPARE && kind_in(host) == LIBRARY_CONSTRUCTOR_HANGS) ||
		     (kind == HOST_DO_START && kind_in(host) == LIBRARY_START_HANGS);

	if (hangs)
		sim_swap_fails(host);
	return hangs;
}

void sim_swap_fails(struct sim_host *host)
{
	struct sim_app *app = host->app;

	host->faulty = host->library_failed = app->disturbed = true;
	if (host->incoming)
		return;
	app->blows++;
	app->blow_ns = INT64_MAX;
	/* What is being stopped goes back to no library. */
	if (app->stop_requested || app->stopped_by_op || app->state != DRV_APP_RUNNING ||
	    ((kind_in(host) == LIBRARY_FAILS_LATE || ran_before(host)) &&
	     !sim_restart_is_due(host)))
		app->excused = true;
}

bool sim_swap_prepares(struct sim_host *host)
{
	if (kind_in(host) != LIBRARY_DOES_NOT_PREPARE)
		return true;
	sim_swap_fails(host);
	return false;
}

bool sim_swap_starts(struct sim *sim, struct sim_host *host)
{
	switch (kind_in(host)) {
	case LIBRARY_DOES_NOT_START:
		sim_swap_fails(host);
		return false;
	case LIBRARY_FAILS_SOON:
		sim_put(sim, sim->now_ns + sim_between(sim, SIM_MS, PROBATION_NS / 2),
			SIM_EV_LIBRARY, host->index, 0, 0);
		return true;
	case LIBRARY_FAILS_LATE:
		sim_put(sim, sim->now_ns + sim_between(sim, PROBATION_NS, 2 * PROBATION_NS),
			SIM_EV_LIBRARY, host->index, 0, 0);
		return true;
	default:
		return true;
	}
}

void sim_on_library(struct sim *sim, struct sim_host *host)
{
	if (host->works || host->run_failed || host->done_reported || !sim_host_runs(host))
		return; /* nothing of it is called any more */
	host->library_failed_ns = sim->now_ns;
	sim_swap_fails(host);
	sim_run_fail(sim, host, 1, "f.a: the new library cannot go on");
}
