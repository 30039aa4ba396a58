// SPDX-License-Identifier: Apache-2.0
#include "sim.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

/*
 * workerd's shell, as workerd/shell.c: events that actions cause wait until the step's actions are
 * done.
 */
#define QUEUE_MAX 64

const char *sim_worker_name(struct sim *sim, uint32_t worker)
{
	return worker < SIM_WORKERS_MAX ? sim->workers[worker].name : "stranger";
}

static void set_timer(struct sim *sim, uint32_t index)
{
	struct sim_worker *worker = &sim->workers[index];
	int64_t deadline = wrk_core_deadline_ns(worker->core), at_ns;

	if (deadline == INT64_MAX)
		return;
	at_ns = deadline - worker->process.clock_ns;
	if (at_ns < sim->now_ns)
		at_ns = sim->now_ns;
	if (worker->timer_at_ns >= sim->now_ns && worker->timer_at_ns <= at_ns)
		return;
	worker->timer_at_ns = at_ns + sim_between(sim, 0, SIM_MS);
	sim_put(sim, worker->timer_at_ns, SIM_EV_WORKER_TIMER, index, worker->generation, 0);
}

static void keep(struct sim *sim, struct sim_worker *worker, struct wrk_event event)
{
	if (worker->queue_count == QUEUE_MAX) {
		sim_fail(sim, "bounded", "%s: one step caused %u events", worker->name,
			 worker->queue_count);
		return;
	}
	worker->queue[(worker->queue_first + worker->queue_count++) % QUEUE_MAX] = event;
}

/* Encodes as the shell does. */
static uint8_t *encode(struct sim *sim, const struct fw_message *message, uint64_t seq,
		       size_t *out_size)
{
	struct fw_message copy = *message;
	uint8_t *frame = NULL;
	int r;

	copy.seq = seq;
	copy.reply_to = 0;
	r = fw_encode(&copy, &frame, out_size);
	if (r < 0)
		sim_fail(sim, "codec", "cannot encode %s: %d", fw_kind_name(message->kind), r);
	return r < 0 ? NULL : frame;
}

static void do_send_driver(struct sim *sim, struct sim_worker *worker,
			   const struct wrk_action *action)
{
	struct sim_connection *connection;
	uint8_t *frame;
	size_t size;

	if (worker->connection == SIM_CONNECTIONS_MAX ||
	    sim->connections[worker->connection].number != action->connection) {
		sim_fail(sim, "dead session", "%s sends %s on connection %llu, which is closed",
			 worker->name, fw_kind_name(action->message->kind),
			 (unsigned long long)action->connection);
		return;
	}
	connection = &sim->connections[worker->connection];
	if (action->message->kind == FW_HOST_EXIT) {
		sim_lease_refused(sim, action->message);
		sim_promise_exit_sent(sim, (uint32_t)(worker - sim->workers), action->message);
	}
	if (action->message->kind == FW_HOST_REPORT)
		sim_adopt_reported(sim, (uint32_t)(worker - sim->workers), action->message);
	if (action->message->kind == FW_HELLO) { /* a WELCOME that did not come held an identity */
		worker->identity_unknown = worker->identity_unknown || worker->hello_open;
		worker->hello_open = true;
	}
	frame = encode(sim, action->message, ++connection->seq, &size);
	if (frame != NULL && connection->open[1])
		sim_send(sim, worker->connection, 1, frame, size);
	else
		free(frame);
}

static void do_send_host(struct sim *sim, struct sim_host *host, const struct fw_message *message)
{
	uint8_t *frame;
	size_t size;

	if (host == NULL || !host->process.alive)
		return;
	frame = encode(sim, message, 1, &size);
	if (frame == NULL)
		return;
	host->end_requested = host->end_requested ||
			      (message->kind == FW_HOST_STOP && message->stop.drain_ns == 0);
	if (message->kind == FW_BEAT || message->kind == FW_HOST_CREATE)
		sim_promise_passed_on(sim, host);
	sim_host_put(sim, host, 0, SIM_FRAME_DATA, frame, size);
}

static void do_spawn(struct sim *sim, uint32_t index, const struct wrk_action *action)
{
	struct sim_worker *worker = &sim->workers[index];
	struct sim_host *host = sim_host_spawn(sim, index, action->host, action->message);
	struct fw_message create;

	if (!worker->has_network)
		sim_fail(sim, "network", "%s is given a host though it has no network",
			 worker->name);
	if (host == NULL) {
		keep(sim, worker,
		     (struct wrk_event){.kind = WRK_EVENT_HOST_FAILED,
					.host = action->host,
					.text = "cannot start a host: out of processes"});
		return;
	}
	keep(sim, worker,
	     (struct wrk_event){
		     .kind = WRK_EVENT_HOST_SPAWNED, .host = action->host, .pid = host->pid});
	create = *action->message;
	create.create.lease_until_ns = action->lease_until_ns;
	do_send_host(sim, host, &create);
}

static void perform(struct sim *sim, uint32_t index, const struct wrk_action *action)
{
	struct sim_worker *worker = &sim->workers[index];
	struct sim_host *host = sim_host_of(sim, index, action->host);

	switch (action->kind) {
	case WRK_DO_CONNECT:
		sim_connect(sim, index, action->connection);
		break;
	case WRK_DO_DISCONNECT:
		if (worker->connection != SIM_CONNECTIONS_MAX &&
		    sim->connections[worker->connection].number == action->connection) {
			sim_close(sim, worker->connection, 0, false);
			worker->connection = SIM_CONNECTIONS_MAX;
		}
		break;
	case WRK_DO_SEND_DRIVER:
		do_send_driver(sim, worker, action);
		break;
	case WRK_DO_REPORTER_SESSION:
		sim->connections[worker->connection].session = action->message->welcome.session;
		memcpy(sim->connections[worker->connection].secret, action->message->welcome.secret,
		       FW_SECRET_BYTES);
		break;
	case WRK_DO_REPORTER_HOST:
		if (host != NULL)
			host->connection = worker->connection;
		break;
	case WRK_DO_SEND_SAVED:
	case WRK_DO_TAKE_SAVED:
	case WRK_DO_PROMOTE_SAVED:
	case WRK_DO_FORGET_SAVED: /* no memory is simulated, nor a node */
	case WRK_DO_EXAMINE:
		break;
	case WRK_DO_SPAWN:
		do_spawn(sim, index, action);
		break;
	case WRK_DO_SEND_HOST:
		do_send_host(sim, host, action->message);
		break;
	case WRK_DO_SIGNAL_HOST:
		if (host != NULL)
			sim_host_signal(sim, host, action->signal);
		break;
	case WRK_DO_SAMPLE_HOST:
		if (host != NULL && host->has_page)
			keep(sim, worker,
			     (struct wrk_event){.kind = WRK_EVENT_HOST_SAMPLED,
						.host = action->host});
		break;
	case WRK_DO_LOG:
		sim_print(sim, worker->name, "| %s", action->text);
		break;
	case WRK_DO_EXIT:
		worker->exited = true;
		worker->exit_code = action->exit_code;
		sim_print(sim, worker->name, "exits with %d", action->exit_code);
		sim_worker_die(sim, index, SIM_DEATH_EXIT);
		break;
	}
}

static void step(struct sim *sim, uint32_t index, struct wrk_event *event)
{
	static struct fragi_flow_stats flows[SIM_FLOWS_MAX];
	static struct fw_op_stats ops[2 * SIM_FRAGMENTS_MAX];
	static struct fw_host_stats stats = {.flows = flows, .ops = ops};
	struct sim_worker *worker = &sim->workers[index];
	enum wrk_session before = wrk_core_session(worker->core);
	struct sim_host *host;

	if (event->kind == WRK_EVENT_HOST_SAMPLED) {
		host = sim_host_of(sim, index, event->host);
		if (host == NULL)
			return;
		sim_look_count(sim, host);
		stats.flow_count = sim_host_rows(host, flows);
		stats.op_count = sim_host_ops(host, ops);
		event->stats = &stats;
	}
	sim->step_count++;
	wrk_actions_reset(&worker->actions);
	if (wrk_core_step(worker->core, event, sim_clock(sim, &worker->process), &worker->actions) <
	    0) {
		sim_fail(sim, "memory", "%s is out of memory", worker->name);
		return;
	}
	sim_limit_session(sim, worker, before);
	if (worker->actions.count > 40 + 8 * SIM_HOSTS_MAX)
		sim_fail(sim, "bounded", "%s: %zu actions in one step", worker->name,
			 worker->actions.count);
	for (size_t i = 0; i < worker->actions.count && worker->process.alive && !sim->failed; i++)
		perform(sim, index, &worker->actions.items[i]);
}

/* The name that the driver gave is kept when a worker comes back to it. */
static void check_name(struct sim *sim, struct sim_worker *worker, const struct wrk_event *event)
{
	const struct fw_message *message = event->message;

	if (event->kind != WRK_EVENT_DRIVER_MESSAGE || message->kind != FW_WELCOME)
		return;
	worker->hello_open = false;
	if (worker->identity_unknown)
		return;
	if (strcmp(message->welcome.name, worker->name) != 0)
		sim_fail(sim, "identity", "%s is called %s by the driver when it comes back",
			 worker->name, message->welcome.name);
}

/* What the driver says of a host's end, to the worker that has it. */
static void take_kill(struct sim *sim, uint32_t index, const struct fw_message *message)
{
	struct sim_worker *worker = &sim->workers[index];

	for (uint32_t i = 0; i < sim->host_count; i++) {
		struct sim_host *host = &sim->hosts[i];

		if (host->reaped || host->worker != index ||
		    host->generation != worker->generation ||
		    host->connection != worker->connection || host->run != message->run ||
		    host->number != message->host || host->epoch != message->epoch)
			continue;
		if (!host->process.alive || host->ended_by_worker) {
			host->kill_crossed = true;
			continue;
		}
		host->kill_requested = true;
		host->killed_to_restart = message->stop.restarts;
		if (!message->stop.restarts) /* then it is no last word */
			worker->heard_end = host->app;
	}
}

/* The worker passes on that a host makes way for another process, which it may never read. */
static void take_yield(struct sim *sim, uint32_t index, const struct fw_message *message)
{
	for (uint32_t i = 0; i < sim->host_count; i++) {
		struct sim_host *host = &sim->hosts[i];

		if (host->worker == index && host->run == message->run &&
		    host->number == message->host && host->epoch == message->epoch)
			host->told_to_yield = true;
	}
}

void sim_worker_raise(struct sim *sim, uint32_t index, const struct wrk_event *event)
{
	struct sim_worker *worker = &sim->workers[index];
	struct wrk_event own = *event;
	uint32_t generation = worker->generation;

	if (!worker->process.alive || sim->failed)
		return;
	if (event->kind == WRK_EVENT_STOP && ++worker->stops == 2)
		worker->second_request_ns = sim->now_ns;
	check_name(sim, worker, event);
	if (event->kind == WRK_EVENT_DRIVER_MESSAGE && event->message->kind == FW_HOST_KILL)
		take_kill(sim, index, event->message);
	if (event->kind == WRK_EVENT_DRIVER_MESSAGE && event->message->kind == FW_HOST_STOP &&
	    event->message->stop.restarts)
		take_yield(sim, index, event->message);
	if (event->kind == WRK_EVENT_DRIVER_MESSAGE && event->message->kind == FW_HOST_LOOK)
		sim_look_heard(sim, index, event->message);
	step(sim, index, &own);
	while (worker->queue_count > 0 && worker->process.alive && !sim->failed) {
		own = worker->queue[worker->queue_first];
		worker->queue_first = (worker->queue_first + 1) % QUEUE_MAX;
		worker->queue_count--;
		step(sim, index, &own);
	}
	if (worker->process.alive && worker->generation == generation)
		set_timer(sim, index);
}

void sim_on_worker_timer(struct sim *sim, const struct sim_event *event)
{
	struct sim_worker *worker = &sim->workers[event->a];

	if (!worker->process.alive || worker->generation != event->b)
		return;
	if (sim_is_stopped(sim, &worker->process)) {
		worker->timer_at_ns = worker->process.stopped_until_ns;
		sim_put_back(sim, *event, worker->process.stopped_until_ns);
		return;
	}
	if (event->at_ns == worker->timer_at_ns)
		worker->timer_at_ns = -1;
	if (wrk_core_deadline_ns(worker->core) > sim_clock(sim, &worker->process)) {
		set_timer(sim, event->a);
		return;
	}
	sim_worker_raise(sim, event->a, &(struct wrk_event){.kind = WRK_EVENT_TIMER});
	if (worker->process.alive &&
	    wrk_core_deadline_ns(worker->core) <= sim_clock(sim, &worker->process)) {
		if (++worker->spins > 4)
			sim_fail(sim, "at rest", "the timer of %s is due again and again",
				 worker->name);
	} else {
		worker->spins = 0;
	}
}

/* Each machine was booted at another time, before the driver's or after it. */
static int64_t clock_of(const struct sim *sim, uint32_t index)
{
	return sim->is.leases ? (int64_t)((sim->seed + 3 * index) % 7 - 3) * 250 * SIM_S : 0;
}

void sim_worker_start(struct sim *sim, uint32_t index)
{
	struct sim_worker *worker = &sim->workers[index];

	if (worker->process.alive)
		return;
	wrk_core_destroy(worker->core);
	worker->core = NULL;
	worker->identity_unknown =
		worker->generation > 0 || worker->same_name || (index == 0 && sim->same_names);
	worker->end_requested = false;
	worker->stops = 0;
	worker->second_request_ns = 0;
	worker->exited = false;
	worker->served = worker->heard_end = NULL;
	worker->hello_open = false;
	worker->generation++;
	worker->process = (struct sim_process){.alive = true, .clock_ns = clock_of(sim, index)};
	worker->connection = SIM_CONNECTIONS_MAX;
	worker->timer_at_ns = -1;
	worker->queue_first = worker->queue_count = 0;
	worker->spins = 0;
	worker->gone_silent = false;
	worker->renewed_ns = 0;
	worker->driver_leaves = false;
	worker->config.seed = sim_random(sim);
	if (wrk_core_create(&worker->config, &worker->core) < 0) {
		sim_fail(sim, "memory", "cannot make %s", worker->name);
		return;
	}
	sim_print(sim, worker->name, "starts");
	worker->has_network = !sim_chance(sim, 10);
	if (!worker->has_network) { /* as at boot */
		sim_put(sim, sim->now_ns + sim_between(sim, 0, 3 * SIM_S), SIM_EV_NETWORK, index,
			worker->generation, 0);
		sim_worker_raise(
			sim, index,
			&(struct wrk_event){.kind = WRK_EVENT_NETWORK, .text = "eth0 has no link"});
	}
	sim_worker_raise(sim, index, &(struct wrk_event){.kind = WRK_EVENT_START});
}

void sim_on_network(struct sim *sim, const struct sim_event *event)
{
	struct sim_worker *worker = &sim->workers[event->a];

	if (!worker->process.alive || worker->generation != event->b)
		return;
	if (sim_is_stopped(sim, &worker->process)) {
		sim_put_back(sim, *event, worker->process.stopped_until_ns);
		return;
	}
	worker->has_network = true;
	sim_worker_raise(sim, event->a, &(struct wrk_event){.kind = WRK_EVENT_NETWORK});
}

void sim_worker_die(struct sim *sim, uint32_t index, enum sim_death death)
{
	struct sim_worker *worker = &sim->workers[index];
	bool silent = death == SIM_DEATH_NODE;
	uint32_t connection = worker->connection;

	if (!worker->process.alive)
		return;
	worker->process.alive = false;
	worker->gone_silent = silent;
	worker->connection = SIM_CONNECTIONS_MAX;
	if (death == SIM_DEATH_KILLED && connection != SIM_CONNECTIONS_MAX &&
	    sim->connections[connection].connected)
		sim_reporter_begin(sim, connection);
	for (uint32_t i = 0; i < sim->connection_count; i++)
		if (sim->connections[i].worker == index && !sim->connections[i].kept)
			sim_close(sim, i, 0, silent);
	for (uint32_t i = 0; i < sim->host_count; i++) {
		struct sim_host *host = &sim->hosts[i];

		if (host->worker != index || !host->process.alive)
			continue;
		if (host->dying && !silent) /* what holds it in the kernel still does */
			continue;
		if (silent) {
			sim_host_die(sim, host, 0, SIGKILL, true);
			continue;
		}
		if (sim_chance(sim, 2)) /* else the signal comes first */
			sim_host_put(sim, host, 0, SIM_FRAME_END, NULL, 0);
		sim_put(sim, sim->now_ns + sim_between(sim, 1000, 2 * SIM_MS), SIM_EV_HOST_END, i,
			SIGKILL, 0);
	}
}

void sim_worker_fini(struct sim *sim, uint32_t index)
{
	wrk_core_destroy(sim->workers[index].core);
	wrk_actions_fini(&sim->workers[index].actions);
	sim->workers[index].core = NULL;
}
