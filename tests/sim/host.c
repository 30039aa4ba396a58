/* SPDX-License-Identifier: Apache-2.0 */
#include "sim.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

/*
 * A simulated fraghost, as workerd/host/host.c is one: it answers the phases, beats, looks after
 * its operators, judges its workerd, and ends when it is told to; or it does what its fate says.
 */
#define WIRE_NS (SIM_WIRE_NS - SIM_S)

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

static bool fate_is(const struct sim_host *host, enum sim_fate fate)
{
	if (host->app->fate != (int)fate)
		return false;
	for (uint32_t i = 0; i < host->fragment_count; i++)
		if (host->fragments[i] == host->app->fate_fragment)
			return true;
	return false;
}

static void meet_fate(struct sim_host *host, int exit_code)
{
	host->app->fate_met = true;
	host->app->fate_pid = host->pid;
	host->app->fate_exit_code = exit_code;
	host->app->disturbed = true;
}

static const char *host_name(const struct sim_host *host)
{
	static char name[32];

	snprintf(name, sizeof(name), "pid %d", host->pid);
	return name;
}

/* Which driver the worker's present connection leads to. */
static uint64_t incarnation_of(const struct sim *sim, uint32_t worker)
{
	uint32_t connection = sim->workers[worker].connection;

	return connection < SIM_CONNECTIONS_MAX ? sim->connections[connection].incarnation : 0;
}

static void check_owners(struct sim *sim, const struct sim_host *host)
{
	for (uint32_t i = 0; i < sim->host_count; i++) {
		const struct sim_host *other = &sim->hosts[i];

		if (other == host || other->app != host->app)
			continue;
		if (other->number == host->number && other->epoch >= host->epoch)
			sim_fail(sim, "epochs", "host %u of %s: epoch %llu after %llu",
				 host->number, host->app->name, (unsigned long long)host->epoch,
				 (unsigned long long)other->epoch);
		for (uint32_t k = 0; k < other->fragment_count && other->process.alive; k++)
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

	if (!disk->is_used)
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

struct sim_host *sim_host_spawn(struct sim *sim, uint32_t worker, uint32_t id,
				const struct fw_message *create)
{
	const struct fw_host_create *wanted = &create->create;
	uint64_t incarnation = incarnation_of(sim, worker);
	struct sim_app *app = NULL;
	struct sim_host *host;

	for (uint32_t i = 0; i < sim->app_count; i++)
		if (sim->apps[i].incarnation == incarnation &&
		    strcmp(sim->apps[i].name, wanted->application) == 0)
			app = &sim->apps[i];
	if (app == NULL || sim->host_count == SIM_HOSTS_MAX ||
	    wanted->fragment_count > SIM_FRAGMENTS_MAX) {
		sim_fail(sim, "owners",
			 "a host was spawned for %s, which this driver does not have",
			 wanted->application);
		return NULL;
	}
	check_epoch(sim, incarnation, create->epoch);
	app->run = create->run;
	sim->workers[worker].served = app;
	host = &sim->hosts[sim->host_count];
	*host = (struct sim_host){.index = sim->host_count,
				  .id = id,
				  .pid = 100 + (int)sim->host_count,
				  .worker = worker,
				  .generation = sim->workers[worker].generation,
				  .connection = sim->workers[worker].connection,
				  .app = app,
				  .incarnation = incarnation,
				  .run = create->run,
				  .number = create->host,
				  .epoch = create->epoch,
				  .heard_ns = sim->now_ns,
				  .said_ns = sim->now_ns,
				  .fragment_count = wanted->fragment_count};
	for (uint32_t i = 0; i < wanted->fragment_count; i++)
		host->fragments[i] = (uint8_t)atoi(wanted->fragments[i] + 1); /* "f7" */
	if (fate_is(host, SIM_FATE_SPAWN_FAILS)) {
		meet_fate(host, 3);
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
	check_owners(sim, host);
	sim_say(sim, sim_worker_name(sim, worker), "spawns pid %d: host %u of %s, epoch %llu",
		host->pid, host->number, app->name, (unsigned long long)host->epoch);
	host->beat_expected_ns = sim->now_ns + host->beat_ns;
	sim_put(sim, host->beat_expected_ns, SIM_EV_HOST_BEAT, host->index, 0, 0);
	return host;
}

static void to_worker(struct sim *sim, struct sim_host *host, enum sim_frame_kind kind,
		      uint8_t *frame, size_t size)
{
	sim_pipe_put(sim, &host->to[1], sim->now_ns + sim_between(sim, 10000, 200000), kind, frame,
		     size);
	if (!host->to[1].scheduled)
		sim_put(sim, host->to[1].first->at_ns, SIM_EV_SOCKET, host->index, 1, 0);
	host->to[1].scheduled = true;
}

void sim_host_send(struct sim *sim, struct sim_host *host, struct fw_message *message)
{
	uint8_t *frame;
	size_t size;

	message->run = host->run;
	message->host = host->number;
	message->epoch = host->epoch;
	message->seq = 1;
	if (fw_encode(message, &frame, &size) < 0) {
		sim_fail(sim, "codec", "a host cannot encode %s", fw_kind_name(message->kind));
		return;
	}
	sim_note_bytes(sim, frame, size);
	to_worker(sim, host, SIM_FRAME_DATA, frame, size);
}

void sim_host_event(struct sim *sim, struct sim_host *host, enum fw_host_state state, int exit_code,
		    uint32_t peer, const char *sentence)
{
	struct fw_message message = {.kind = FW_HOST_EVENT};

	message.event = (struct fw_host_event){
		.state = state, .exit_code = exit_code, .peer = peer, .sentence = sentence};
	sim_host_sums(host, &message.event.sent, &message.event.delivered);
	sim_say(sim, host_name(host), "says event %d: %s", (int)state, sentence);
	sim_host_send(sim, host, &message);
}

void sim_host_fail(struct sim *sim, struct sim_host *host, int exit_code, const char *sentence)
{
	host->state = SIM_HOST_FAILED;
	host->faulty = true;
	sim_host_event(sim, host, FW_STATE_FAILED, exit_code, 0, sentence);
}

static bool has_worker(const struct sim *sim, const struct sim_host *host)
{
	const struct sim_worker *worker = &sim->workers[host->worker];

	return worker->process.alive && worker->generation == host->generation;
}

/*
 * It had said that it is done, when its worker, which was told twice to end, killed it: nothing was
 * missing.
 */
static bool had_come_to_its_end(const struct sim *sim, const struct sim_host *host)
{
	return host->done_said && host->dying && has_worker(sim, host) &&
	       sim->workers[host->worker].stops > 1;
}

/* It is dead; its ledger stays as it was. silent: with its whole node. */
void sim_host_die(struct sim *sim, struct sim_host *host, int status, int signal, bool silent)
{
	if (!host->process.alive)
		return;
	sim_say(sim, host_name(host), "dies: status %d, signal %d", status, signal);
	host->process.alive = false;
	host->dead_ns_at = sim->now_ns;
	host->status = status;
	host->signal = signal;
	host->orderly = signal == 0 && status == 0 && host->state == SIM_HOST_ENDING;
	host->died_early = !host->orderly && host->app->state < DRV_APP_CLOSING &&
			   !had_come_to_its_end(sim, host);
	host->faulty = host->faulty || (!host->orderly && !host->dying && has_worker(sim, host));
	sim_pipe_clear(&host->to[0]);
	if (!silent)
		to_worker(sim, host, SIM_FRAME_END, NULL, 0);
	for (uint32_t i = 0; i < sim->host_count && !host->orderly; i++) {
		const struct sim_host *peer = &sim->hosts[i];
		int64_t after = silent ? host->dead_ns : sim_between(sim, SIM_MS, 30 * SIM_MS);

		if (peer->app == host->app && peer != host && peer->process.alive)
			sim_put(sim, sim->now_ns + after, SIM_EV_PEER_LOST, i, host->index, 0);
	}
}

static void begin_end(struct sim *sim, struct sim_host *host)
{
	if (host->state == SIM_HOST_ENDING)
		return;
	host->state = SIM_HOST_ENDING;
	if (host->hangs || fate_is(host, SIM_FATE_END_HANGS)) {
		if (!host->hangs)
			meet_fate(host, 1);
		return;
	}
	if (fate_is(host, SIM_FATE_END_CRASHES))
		meet_fate(host, 1);
	sim_put(sim, sim->now_ns + sim_between(sim, 100000, 40 * SIM_MS), SIM_EV_HOST_END,
		host->index, fate_is(host, SIM_FATE_END_CRASHES) ? SIGSEGV : 0, 0);
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
	if (signal == SIGKILL && !host->dying) {
		host->dying = true;
		if (host->state ==
		    SIM_HOST_STARTED) /* nothing of it runs any more, and it owes no credit */
			host->state = SIM_HOST_ENDING;
		after_ns = time_to_die(sim, host);
		host->app->dies_slowly = host->app->dies_slowly || after_ns > 300 * SIM_MS;
		if (sim->workers[host->worker].stops > 0 &&
		    after_ns > 300 * SIM_MS) /* it is left behind */
			host->app->excused = host->app->disturbed = true;
		sim_put(sim, sim->now_ns + after_ns, SIM_EV_HOST_END, host->index, SIGKILL, 0);
	} else if (signal == SIGTERM) {
		begin_end(sim, host);
	}
}

static void send_result(struct sim *sim, struct sim_host *host, enum fw_kind kind, int exit_code,
			const char *sentence)
{
	struct fw_message message = {.kind = kind};

	message.result = (struct fw_host_result){exit_code == 0, exit_code, sentence};
	if (exit_code != 0) {
		host->state = SIM_HOST_FAILED;
		host->faulty = true;
	}
	sim_say(sim, host_name(host), "answers %s, exit code %d", fw_kind_name(kind), exit_code);
	sim_host_send(sim, host, &message);
}

static void prepared(struct sim *sim, struct sim_host *host)
{
	struct fw_message message = {.kind = FW_HOST_PREPARED};
	const char *errors[] = {"app.yaml:3:4: f1.a: unknown parameter"};
	uint32_t address = (uint32_t)host->pid;
	int status;

	message.prepared.pid = host->pid;
	if (fate_is(host, SIM_FATE_PREPARE_HANGS)) {
		meet_fate(host, 1);
		return;
	}
	if (fate_is(host, SIM_FATE_PREPARE_CRASHES)) {
		/* A crash is the application's, an early exit says itself what is wrong. */
		meet_fate(host, (int)sim_between(sim, 1, 3));
		status = host->app->fate_exit_code;
		sim_host_die(sim, host, status == 1 ? 0 : status, status == 1 ? SIGSEGV : 0, false);
		return;
	}
	if (fate_is(host, SIM_FATE_PREPARE_FAILS)) {
		meet_fate(host, (int)sim_between(sim, 2, 3));
		host->state = SIM_HOST_FAILED;
		host->faulty = true;
		message.prepared.exit_code = host->app->fate_exit_code;
		message.prepared.errors = errors;
		message.prepared.error_count = 1;
		sim_host_send(sim, host, &message);
		return;
	}
	sim_tables_fill(host, &message.prepared);
	message.prepared.address = &address;
	message.prepared.address_bytes = sizeof(address);
	message.prepared.transport = "ucx 1.13.1 tcp lo";
	host->has_page = true;
	host->state = SIM_HOST_PREPARED;
	sim_say(sim, host_name(host), "is prepared");
	sim_host_send(sim, host, &message);
}

static void wire(struct sim *sim, struct sim_host *host, const struct fw_host_wire *wire)
{
	host->state = SIM_HOST_WIRING;
	host->wire_until_ns = sim->now_ns + WIRE_NS;
	sim_tables_take(sim, host, wire);
	if (fate_is(host, SIM_FATE_WIRE_FAILS)) {
		meet_fate(host, (int)sim_between(sim, 1, 3));
		send_result(sim, host, FW_HOST_WIRED, host->app->fate_exit_code,
			    "the edge cannot be made");
		return;
	}
	for (uint32_t i = 0; i < sim->host_count; i++)
		if (sim->hosts[i].app == host->app)
			sim_put(sim, sim->now_ns + sim_between(sim, 100000, 3 * SIM_MS),
				SIM_EV_WIRED, i, 0, 0);
}

/* Until when nothing comes over the data link; 0: it runs. */
static int64_t cut_until(const struct sim *sim, const struct sim_host *from,
			 const struct sim_host *to)
{
	return from->worker == to->worker ? 0 : sim->cut_until_ns[from->worker][to->worker];
}

static void look_wired(struct sim *sim, struct sim_host *host)
{
	if (host->state != SIM_HOST_WIRING)
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
		if (peer->state < SIM_HOST_WIRING)
			return;
	}
	host->state = SIM_HOST_WIRED;
	send_result(sim, host, FW_HOST_WIRED, 0, "");
}

static void start(struct sim *sim, struct sim_host *host)
{
	if (fate_is(host, SIM_FATE_START_FAILS)) {
		meet_fate(host, (int)sim_between(sim, 1, 3));
		send_result(sim, host, FW_HOST_STARTED, host->app->fate_exit_code,
			    "an operator does not start");
		return;
	}
	if (fate_is(host, SIM_FATE_START_HANGS)) {
		meet_fate(host, 1);
		return;
	}
	host->state = SIM_HOST_STARTED;
	host->started = true;
	send_result(sim, host, FW_HOST_STARTED, 0, "");
	sim_data_start(sim, host);
}

static void on_message(struct sim *sim, struct sim_host *host, const struct fw_message *message)
{
	enum sim_host_state fits = message->kind == FW_HOST_CREATE ? SIM_HOST_NEW
				   : message->kind == FW_HOST_WIRE ? SIM_HOST_PREPARED
								   : SIM_HOST_WIRED;

	host->heard_ns = sim_clock(sim, &host->process);
	if (message->kind == FW_BEAT)
		return;
	sim_say(sim, host_name(host), "<- %s", fw_kind_name(message->kind));
	if (message->run != host->run || message->host != host->number ||
	    message->epoch != host->epoch)
		sim_fail(sim, "addressing", "pid %d got %s for host %u, epoch %llu", host->pid,
			 fw_kind_name(message->kind), message->host,
			 (unsigned long long)message->epoch);
	if (message->kind == FW_HOST_STOP) {
		if (message->stop.drain_ns > 0 && host->state == SIM_HOST_STARTED) {
			host->drained = true;
			sim_data_stop_sources(sim, host);
			sim_host_look(sim, host);
		} else if (message->stop.drain_ns == 0 || host->state != SIM_HOST_FAILED) {
			if (fate_is(host, SIM_FATE_END_FAILS) && host->state == SIM_HOST_STARTED) {
				meet_fate(host, 0);
				sim_host_event(sim, host, FW_STATE_FAILED, 1, 0,
					       "f.a: compute returned -5");
			}
			begin_end(sim, host);
		}
		return;
	}
	if (host->state != fits) {
		if (host->state != SIM_HOST_FAILED && host->state != SIM_HOST_ENDING)
			sim_fail(sim, "order", "pid %d got %s in state %d", host->pid,
				 fw_kind_name(message->kind), (int)host->state);
		return;
	}
	if (message->kind == FW_HOST_CREATE) {
		host->state = SIM_HOST_PREPARING;
		sim_put(sim,
			sim->now_ns + sim_between(sim, SIM_MS,
						  sim_chance(sim, 10) ? 3 * SIM_S : 80 * SIM_MS),
			SIM_EV_PREPARED, host->index, 0, 0);
	} else if (message->kind == FW_HOST_WIRE) {
		wire(sim, host, &message->wire);
	} else {
		start(sim, host);
	}
}

void sim_host_look(struct sim *sim, struct sim_host *host)
{
	if (host->state != SIM_HOST_STARTED || host->done_said || host->dying ||
	    !sim_data_is_done(host))
		return;
	host->done_said = true;
	sim_host_event(sim, host, FW_STATE_DONE, 0, 0, "");
}

static void beat(struct sim *sim, struct sim_host *host)
{
	struct fw_message message = {.kind = FW_BEAT};
	int64_t now_ns = sim_clock(sim, &host->process);
	bool idle = sim_host_is_idle(host);

	fragi_spare_late(&host->spare, now_ns - host->beat_expected_ns, host->beat_ns,
			 host->dead_ns, now_ns);
	if (now_ns >= fragi_spare_dead_at(&host->spare, host->heard_ns, host->dead_ns)) {
		sim_host_die(sim, host, 3, 0, false);
		return;
	}
	if (host->state == SIM_HOST_STARTED) {
		if (idle || host->done_said)
			sim_host_event(sim, host, FW_STATE_IDLE, 0, 0, "");
		else if (host->idle)
			sim_host_event(sim, host, FW_STATE_RUNNING, 0, 0, "");
		host->idle = idle;
	}
	if (host->state == SIM_HOST_WIRING && sim->now_ns >= host->wire_until_ns)
		send_result(sim, host, FW_HOST_WIRED, 1, "no answer over the data plane in time");
	sim_host_send(sim, host, &message);
	sim_data_beat(sim, host);
	host->beat_expected_ns = now_ns + host->beat_ns;
	sim_put(sim, sim->now_ns + host->beat_ns, SIM_EV_HOST_BEAT, host->index, 0, 0);
}

/* A frame has come through the socket between a host and its workerd. */
static void on_socket(struct sim *sim, const struct sim_event *event)
{
	struct sim_host *host = &sim->hosts[event->a];
	struct sim_pipe *pipe = &host->to[event->b];
	struct sim_worker *worker = &sim->workers[host->worker];
	bool there = worker->process.alive && worker->generation == host->generation;
	const struct sim_process *process = event->b == 0 ? &host->process : &worker->process;
	struct frag_err err = FRAG_ERR_INIT;
	struct fw_message *message = NULL;
	struct sim_frame *frame;

	if (event->b == 1 && there && sim_is_stopped(sim, process)) {
		sim_put_back(sim, *event, process->stopped_until_ns);
		return;
	}
	pipe->scheduled = false;
	if (pipe->first != NULL && pipe->first->at_ns > sim->now_ns) {
		pipe->scheduled = true;
		sim_put(sim, pipe->first->at_ns, SIM_EV_SOCKET, host->index, event->b, 0);
		return;
	}
	frame = sim_pipe_take(pipe);
	if (pipe->first != NULL) {
		pipe->scheduled = true;
		sim_put(sim, pipe->first->at_ns, SIM_EV_SOCKET, host->index, event->b, 0);
	}
	if (frame == NULL)
		return;
	if (frame->bytes != NULL &&
	    fw_decode(frame->bytes + 4, frame->size - 4, &message, &err) < 0)
		sim_fail(sim, "codec", "a frame that was sent cannot be read: %s", err.text);
	if (event->b == 0 && message != NULL && host->process.alive) {
		on_message(sim, host, message);
	} else if (event->b == 1 && there && message != NULL) {
		host->said_ns = sim->now_ns;
		sim_worker_raise(sim, host->worker,
				 &(struct wrk_event){.kind = WRK_HOST_MESSAGE,
						     .host = host->id,
						     .message = message});
	} else if (event->b == 1 && there && frame->kind == SIM_FRAME_END) {
		if (!sim_chance(sim, 16))
			sim_worker_raise(
				sim, host->worker,
				&(struct wrk_event){.kind = WRK_HOST_LINK_LOST,
						    .host = host->id,
						    .text = "it closed its control socket"});
		sim_put(sim, sim->now_ns + sim_between(sim, 0, 5 * SIM_MS), SIM_EV_REAP,
			host->index, 0, 0);
	}
	fw_message_free(message);
	free(frame->bytes);
	free(frame);
}

static void reap(struct sim *sim, const struct sim_event *event)
{
	static struct fragi_flow_stats flows[SIM_FLOWS_MAX];
	static struct fw_op_stats ops[2 * SIM_FRAGMENTS_MAX];
	const struct sim_host *host = &sim->hosts[event->a];
	const struct sim_worker *worker = &sim->workers[host->worker];
	struct fw_host_stats stats = {.flows = flows, .ops = ops};
	struct wrk_exited exited = {.status = host->status, .signal = host->signal};

	if (!worker->process.alive || worker->generation != host->generation)
		return;
	if (sim_is_stopped(sim, &worker->process)) {
		sim_put_back(sim, *event, worker->process.stopped_until_ns);
		return;
	}
	stats.flow_count = sim_host_rows(host, flows);
	stats.op_count = sim_host_ops(host, ops);
	exited.stats = host->has_page ? &stats : NULL;
	sim_worker_raise(
		sim, host->worker,
		&(struct wrk_event){.kind = WRK_HOST_EXITED, .host = host->id, .exited = &exited});
}

/* until: when the link that was cut runs again, if that is why. */
static void peer_lost(struct sim *sim, struct sim_host *host, const struct sim_host *peer,
		      int64_t until)
{
	bool known = false;

	for (uint32_t i = 0; i < host->peer_count; i++)
		known = known || host->peers[i] == (uint32_t)peer->pid;
	if (!known || host->state < SIM_HOST_WIRING || host->state > SIM_HOST_STARTED)
		return;
	if (peer->process.alive && (until <= sim->now_ns || cut_until(sim, peer, host) != until))
		return; /* it was heard again */
	sim_data_cut(sim, host, peer);
	if (host->state == SIM_HOST_WIRING)
		send_result(sim, host, FW_HOST_WIRED, 1, "a peer was lost");
	else
		sim_host_event(sim, host, FW_STATE_PEER_LOST, 0, peer->number,
			       "its data link broke");
}

void sim_on_host(struct sim *sim, const struct sim_event *event)
{
	struct sim_host *host = &sim->hosts[event->a];

	if (event->kind == SIM_EV_REAP) {
		reap(sim, event);
		return;
	}
	if (event->kind == SIM_EV_SOCKET && event->b == 1) {
		on_socket(sim, event);
		return;
	}
	if (!host->process.alive)
		return;
	if (host->dying && !(event->kind == SIM_EV_HOST_END && event->b != 0))
		return; /* it is in the kernel, and will not come back */
	if (sim_is_stopped(sim, &host->process) &&
	    !(event->kind == SIM_EV_HOST_END && event->b != 0)) {
		sim_put_back(sim, *event, host->process.stopped_until_ns);
		return;
	}
	switch (event->kind) {
	case SIM_EV_SOCKET:
		on_socket(sim, event);
		break;
	case SIM_EV_HOST_BEAT:
		beat(sim, host);
		break;
	case SIM_EV_PREPARED:
		if (host->state == SIM_HOST_PREPARING)
			prepared(sim, host);
		break;
	case SIM_EV_WIRED:
		look_wired(sim, host);
		break;
	case SIM_EV_HOST_END:
		if (event->b == 0)
			sim_data_end(sim, host);
		sim_host_die(sim, host, 0, (int)event->b, false);
		break;
	case SIM_EV_PEER_LOST:
		peer_lost(sim, host, &sim->hosts[event->b], (int64_t)event->c);
		break;
	case SIM_EV_WATCHDOG:
		sim_host_fail(
			sim, host, 1,
			"an operator has been in compute for longer than its watchdog allows");
		break;
	default:
		break;
	}
}
