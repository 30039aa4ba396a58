// SPDX-License-Identifier: Apache-2.0
#include "sim.h"

#include <signal.h>

/*
 * The run of a simulated host, as workerd/host/work.c has one: how long user code takes, where it
 * fails, hangs or crashes, and what the run reports of its peers and operators.
 */

bool sim_fate_is(const struct sim_host *host, enum sim_fate fate)
{
	if (host->app->fate != (int)fate || host->incoming)
		return false;
	if (host->instance < host->app->fate_first ||
	    host->instance - host->app->fate_first >= host->app->fate_count)
		return false;
	for (uint32_t i = 0; i < host->fragment_count; i++)
		if (host->fragments[i] == host->app->fate_fragment)
			return true;
	return false;
}

void sim_fate_meet(struct sim_host *host, int exit_code)
{
	struct sim_app *app = host->app;
	bool ends_it = !sim_restart_is_policy(host) ||
		       (host->instance == 0 && app->furthest < DRV_APP_STARTING);

	host->struck = app->disturbed = true;
	if (ends_it) {
		app->fate_met = true;
		app->fate_pid = host->pid;
		app->fate_exit_code = exit_code;
		return;
	}
	/* What had begun to stop may end by it, or not. */
	host->faulty = true;
	app->blows++;
	app->blow_ns = INT64_MAX; /* it is not known here; and a fate may strike again */
	app->excused = app->excused || !sim_restart_is_due(host);
}

/* A failure that ends an application with that exit code. */
static enum fragi_failure failure_of(enum fw_host_state state, int exit_code)
{
	if (state == FW_STATE_PEER_LOST)
		return FRAGI_FAILURE_EDGE_LOST;
	return exit_code == 0   ? FRAGI_FAILURE_NONE
	       : exit_code == 1 ? FRAGI_FAILURE_OPERATOR_FAILED
	       : exit_code == 2 ? FRAGI_FAILURE_GRAPH_INVALID
				: FRAGI_FAILURE_LIBRARY_MISSING;
}

void sim_run_report(struct sim *sim, struct sim_host *host, enum fw_host_state state, int exit_code,
		    const struct sim_host *peer, const char *sentence)
{
	struct fw_host_event report = {.state = state,
				       .failure = {failure_of(state, exit_code), sentence, ""},
				       .peer = peer != NULL ? peer->number : 0,
				       .peer_epoch = peer != NULL ? peer->epoch : 0};

	if (host->works) /* its shell does not look at the run */
		return;
	sim_host_sums(host, &report.sent, &report.delivered);
	sim_print(sim, sim_host_name(host), "its run reports %d: %s", (int)state, sentence);
	sim_host_raise(sim, host, &(struct host_event){.kind = HOST_EV_RUN, .report = &report});
}

void sim_run_fail(struct sim *sim, struct sim_host *host, int exit_code, const char *sentence)
{
	if (host->works)
		return;
	host->faulty = true;
	sim_run_report(sim, host, FW_STATE_FAILED, exit_code, NULL, sentence);
	host->run_failed = true;
}

void sim_run_before_end(struct sim *sim, struct sim_host *host)
{
	if (!sim_fate_is(host, SIM_FATE_END_FAILS) || !sim_host_runs(host))
		return;
	sim_fate_meet(host, 0);
	sim_run_report(sim, host, FW_STATE_FAILED, 1, NULL, "f.a: compute returned -5");
}

static bool hangs(struct sim_host *host, enum host_action_kind kind)
{
	static const struct {
		enum host_action_kind kind;
		enum sim_fate fate;
	} fates[] = {{HOST_DO_PREPARE, SIM_FATE_PREPARE_HANGS},
		     {HOST_DO_START, SIM_FATE_START_HANGS},
		     {HOST_DO_DESTROY, SIM_FATE_END_HANGS}};

	for (size_t i = 0; i < sizeof(fates) / sizeof(fates[0]); i++)
		if (fates[i].kind == kind && sim_fate_is(host, fates[i].fate)) {
			sim_fate_meet(host, 1);
			return true;
		}
	if (sim_swap_hangs(host, kind))
		return true;
	/* What hangs is left alone when the watchdog has seen it, and waited for if not. */
	return kind == HOST_DO_DESTROY && host->hangs && !host->run_failed;
}

static int64_t duration(struct sim *sim, enum host_action_kind kind)
{
	bool is_long = sim_chance(sim, 10);

	switch (kind) {
	case HOST_DO_PREPARE:
		return sim_between(sim, SIM_MS, is_long ? 3 * SIM_S : 80 * SIM_MS);
	case HOST_DO_DESTROY:
		return sim_between(sim, 100000, 40 * SIM_MS);
	default:
		return sim_between(sim, 10000, is_long ? 30 * SIM_MS : SIM_MS);
	}
}

/* Its edges may be there soon, and those of its peers. */
static void look_later(struct sim *sim, const struct sim_host *host)
{
	for (uint32_t i = 0; i < sim->host_count; i++)
		if (sim->hosts[i].app == host->app)
			sim_put(sim, sim->now_ns + sim_between(sim, 100000, 3 * SIM_MS),
				SIM_EV_WIRED, i, 0, 0);
}

static void begin_work(struct sim *sim, struct sim_host *host, enum host_action_kind kind)
{
	host->works = true;
	if (kind == HOST_DO_DESTROY && sim_fate_is(host, SIM_FATE_END_CRASHES)) {
		sim_fate_meet(host, 1);
		sim_put(sim, sim->now_ns + duration(sim, kind), SIM_EV_HOST_END, host->index,
			SIGSEGV, 0);
	} else if (!hangs(host, kind)) {
		sim_put(sim, sim->now_ns + duration(sim, kind), SIM_EV_WORK_DONE, host->index,
			(uint32_t)kind, 0);
	}
}

void sim_run_perform(struct sim *sim, struct sim_host *host, const struct host_action *action)
{
	switch (action->kind) {
	case HOST_DO_WIRE:
		sim_move_takes_over(sim, host);
		sim_tables_take(sim, host, &action->request->wire);
		host->wiring_ns = sim->now_ns;
		begin_work(sim, host, action->kind);
		break;
	case HOST_DO_REWIRE:
		sim_tables_retake(sim, host, &action->request->wire);
		look_later(sim, host);
		break;
	case HOST_DO_DRAIN:
		sim_move_check_drain(sim, host);
		host->drained = true;
		host->limit_ns = action->drain_ns;
		sim_data_end_dead(sim, host);
		if (!host->run_failed)
			sim_data_stop_sources(sim, host);
		if (host->hangs)
			sim_run_limit(sim, host);
		sim_run_look(sim, host);
		break;
	case HOST_DO_YIELD:
		sim_move_yield(sim, host, action->drain_ns);
		break;
	case HOST_DO_SUSPEND:
		sim_move_suspend(sim, host, &action->request->suspend);
		break;
	case HOST_DO_SET:
		sim_client_ask_host(sim, host, &action->request->host_set);
		break;
	case HOST_DO_TAP: /* nothing that it knows follows from it */
		break;
	case HOST_DO_LOOK:
		sim_look_host(sim, host, action->looks);
		break;
	case HOST_DO_LEASE:
		sim_lease_arm(sim, host, action->lease_until_ns);
		break;
	case HOST_DO_HALT:
		break;
	default:
		begin_work(sim, host, action->kind);
		break;
	}
}

static void prepare_done(struct sim *sim, struct sim_host *host)
{
	struct fw_failure error = {.sentence = "app.yaml:3:4: f1.a: unknown parameter"};
	struct fw_host_prepared prepared = {.pid = host->pid};
	int status;

	if (sim_fate_is(host, SIM_FATE_PREPARE_CRASHES)) {
		sim_fate_meet(host, 1);
		status = (int)sim_between(sim, 1, 3);
		sim_host_die(sim, host, status == 1 ? 0 : status, status == 1 ? SIGSEGV : 0, false);
		return;
	}
	if (sim_fate_is(host, SIM_FATE_PREPARE_FAILS)) {
		sim_fate_meet(host, (int)sim_between(sim, 2, 3));
		host->faulty = true;
		error.code = failure_of(FW_STATE_FAILED, host->app->fate_exit_code);
		prepared.errors = &error;
		prepared.error_count = 1;
	} else if (!sim_swap_prepares(host)) {
		error.code = FRAGI_FAILURE_LIBRARY_MISSING;
		prepared.errors = &error;
		prepared.error_count = 1;
	} else {
		if (host->instance > 0 && !host->incoming)
			sim_link_succeed(host);
		sim_tables_fill(host, &prepared);
		host->has_page = true;
	}
	sim_host_raise(sim, host,
		       &(struct host_event){.kind = HOST_EV_PREPARE_DONE, .prepared = &prepared});
}

/* The result of a phase, which fails when that is the host's fate. */
static struct fw_host_result result_of(struct sim *sim, struct sim_host *host, enum sim_fate fate,
				       const char *sentence)
{
	if (!sim_fate_is(host, fate))
		return (struct fw_host_result){0};
	sim_fate_meet(host, (int)sim_between(sim, 1, 3));
	return (struct fw_host_result){
		{failure_of(FW_STATE_FAILED, host->app->fate_exit_code), sentence, ""}};
}

static void wire_done(struct sim *sim, struct sim_host *host)
{
	struct fw_host_result result =
		result_of(sim, host, SIM_FATE_WIRE_FAILS, "the edge cannot be made");

	host->answers = result.failure.code == FRAGI_FAILURE_NONE;
	sim_host_raise(sim, host,
		       &(struct host_event){.kind = HOST_EV_WIRE_DONE, .result = &result});
	if (result.failure.code == FRAGI_FAILURE_NONE)
		look_later(sim, host);
}

static void start_done(struct sim *sim, struct sim_host *host)
{
	struct fw_host_result result =
		result_of(sim, host, SIM_FATE_START_FAILS, "an operator does not start");

	if (result.failure.code == FRAGI_FAILURE_NONE && !sim_swap_starts(sim, host))
		result.failure =
			(struct fw_failure){FRAGI_FAILURE_OPERATOR_FAILED,
					    "an operator of the new library does not start", ""};
	host->started = result.failure.code == FRAGI_FAILURE_NONE;
	sim_host_raise(sim, host,
		       &(struct host_event){.kind = HOST_EV_START_DONE, .result = &result});
	if (result.failure.code == FRAGI_FAILURE_NONE)
		sim_data_start(sim, host);
}

static void work_done(struct sim *sim, struct sim_host *host, enum host_action_kind kind)
{
	host->works = false;
	switch (kind) {
	case HOST_DO_PREPARE:
		prepare_done(sim, host);
		break;
	case HOST_DO_WIRE:
		wire_done(sim, host);
		break;
	case HOST_DO_START:
		start_done(sim, host);
		break;
	default:
		if (!host->hangs)
			sim_data_end(sim, host);
		sim_host_raise(sim, host, &(struct host_event){.kind = HOST_EV_DESTROY_DONE});
		break;
	}
}

/* Until when nothing comes over the data link; 0: it runs. */
static int64_t cut_until(const struct sim *sim, const struct sim_host *from,
			 const struct sim_host *to)
{
	return from->worker == to->worker ? 0 : sim->cut_until_ns[from->worker][to->worker];
}

static void look_at_peers(struct sim *sim, struct sim_host *host)
{
	if (host->works || !host->answers || host->wired)
		return;
	for (uint32_t i = 0; i < host->peer_count; i++) {
		const struct sim_host *peer = sim_host_by_pid(sim, host->peers[i]);
		int64_t until = cut_until(sim, host, peer);

		if (until < cut_until(sim, peer, host))
			until = cut_until(sim, peer, host);
		if (until > sim->now_ns) {
			sim_put(sim, until, SIM_EV_WIRED, host->index, 0, 0);
			return;
		}
		if (!peer->answers || !sim_link_connect(sim, host, peer))
			return;
	}
	host->wired = true;
	sim_host_raise(sim, host, &(struct host_event){.kind = HOST_EV_PEERS_READY});
}

void sim_run_look(struct sim *sim, struct sim_host *host)
{
	if (!sim_host_runs(host) || host->done_reported || !sim_data_is_done(host))
		return;
	host->done_reported = true;
	sim_run_report(sim, host, FW_STATE_DONE, 0, NULL, "");
}

/* With every beat: rest, done or not, is reported, and the data plane beats. */
static void run_beat(struct sim *sim, struct sim_host *host)
{
	if (sim_host_runs(host) && (host->done_reported || sim_host_is_idle(host)))
		sim_run_report(sim, host, FW_STATE_IDLE, 0, NULL, "");
	sim_data_beat(sim, host);
	sim_put(sim, sim->now_ns + host->beat_ns, SIM_EV_RUN_BEAT, host->index, 0, 0);
}

/* event->c: when the link that was cut runs again, if that is why. */
static void peer_lost(struct sim *sim, struct sim_host *host, const struct sim_event *event)
{
	const struct sim_host *peer = &sim->hosts[event->b];
	enum host_state state = host_core_state(host->core);
	int64_t until = (int64_t)event->c;
	bool known = false;

	for (uint32_t i = 0; i < host->peer_count; i++)
		known = known || host->peers[i] == (uint32_t)peer->pid;
	if (!known || state < HOST_STATE_WIRING || state > HOST_STATE_STARTED)
		return;
	if (event->c == SIM_SILENT &&
	    (!sim_is_stopped(sim, &peer->process) || !sim_restart_all_awake(sim, host, peer)))
		return;
	if (peer->process.alive && event->c != SIM_SILENT &&
	    (until <= sim->now_ns || cut_until(sim, peer, host) != until))
		return; /* it was heard again */
	if (peer->process.alive && !host->wired && sim_chance(sim, 2))
		return; /* it was never heard: nothing breaks */
	if (host->works) {
		sim_put(sim, sim->now_ns + 20 * SIM_MS, SIM_EV_PEER_LOST, host->index, event->b,
			event->c);
		return;
	}
	sim_data_cut(host, peer);
	sim_run_report(sim, host, FW_STATE_PEER_LOST, 0, peer, "its data link broke");
	if (!host->drained)
		return;
	sim_data_end_dead(sim, host);
	sim_run_look(sim, host);
}

void sim_run_limit(struct sim *sim, const struct sim_host *host)
{
	sim_put(sim, sim->now_ns + host->limit_ns, SIM_EV_WATCHDOG, host->index, 0, 0);
}

static void watchdog(struct sim *sim, struct sim_host *host)
{
	if (host->works || host->run_failed) /* nobody looks any more, or it is known */
		return;
	host->app->fate_exit_code = 1;
	sim_run_fail(sim, host, 1,
		     "an operator has been in compute for longer than its watchdog allows");
}

void sim_on_run(struct sim *sim, const struct sim_event *event)
{
	struct sim_host *host = &sim->hosts[event->a];

	switch (event->kind) {
	case SIM_EV_WORK_DONE:
		work_done(sim, host, (enum host_action_kind)event->b);
		break;
	case SIM_EV_WIRED:
		look_at_peers(sim, host);
		break;
	case SIM_EV_RUN_BEAT:
		run_beat(sim, host);
		break;
	case SIM_EV_PEER_LOST:
		peer_lost(sim, host, event);
		break;
	case SIM_EV_WATCHDOG:
		watchdog(sim, host);
		break;
	case SIM_EV_LIBRARY:
		sim_on_library(sim, host);
		break;
	default:
		break;
	}
}
