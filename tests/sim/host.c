// SPDX-License-Identifier: Apache-2.0
#include "sim.h"

#include <stdlib.h>

#include <base/beat.h>

/*
 * fraghost's shell, as workerd/host/host.c: frames, signals, the clock and what the run reports
 * become events of its core, and what the core asks for is done. run.c plays the run.
 */

const char *sim_host_name(const struct sim_host *host)
{
	static char name[32];

	snprintf(name, sizeof(name), "pid %d", host->pid);
	return name;
}

bool sim_host_runs(const struct sim_host *host)
{
	return host->process.alive && !host->dying && !host->run_failed && host->core != NULL &&
	       host_core_state(host->core) == HOST_STATE_STARTED;
}

void sim_host_put(struct sim *sim, struct sim_host *host, uint32_t end, enum sim_frame_kind kind,
		  uint8_t *frame, size_t size)
{
	sim_pipe_put(sim, &host->to[end], sim->now_ns + sim_between(sim, 10000, 200000), kind,
		     frame, size);
	if (!host->to[end].scheduled)
		sim_put(sim, host->to[end].first->at_ns, SIM_EV_SOCKET, host->index, end, 0);
	host->to[end].scheduled = true;
}

/* HOST_WIRED promises that every peer has its edges too. */
static void check_wired(struct sim *sim, const struct sim_host *host)
{
	for (uint32_t i = 0; i < host->peer_count; i++)
		if (!sim_host_by_pid(sim, host->peers[i])->answers)
			sim_fail(sim, "wiring", "pid %d is wired, but pid %u has no edges yet",
				 host->pid, host->peers[i]);
}

static void send_frame(struct sim *sim, struct sim_host *host, const struct fw_message *message)
{
	struct fw_message copy = *message;
	uint8_t *frame;
	size_t size;

	copy.seq = 1;
	if (fw_encode(&copy, &frame, &size) < 0) {
		sim_fail(sim, "codec", "a host cannot encode %s", fw_kind_name(message->kind));
		return;
	}
	if ((message->kind == FW_HOST_WIRED || message->kind == FW_HOST_STARTED) &&
	    message->result.failure.code != FRAGI_FAILURE_NONE)
		host->faulty = true;
	if (message->kind == FW_HOST_WIRED && message->result.failure.code == FRAGI_FAILURE_NONE)
		check_wired(sim, host);
	if (message->kind != FW_BEAT)
		sim_print(sim, sim_host_name(host), "-> %s", fw_kind_name(message->kind));
	if (host_core_state(host->core) == HOST_STATE_ENDING && message->kind == FW_HOST_EVENT &&
	    message->event.state == FW_STATE_FAILED) /* an operator keeps it from its end */
		host->faulty = host->run_failed = true;
	sim_note_bytes(sim, frame, size);
	sim_host_put(sim, host, 1, SIM_FRAME_DATA, frame, size);
}

static void set_timer(struct sim *sim, struct sim_host *host)
{
	int64_t deadline = host_core_deadline_ns(host->core), at_ns;

	if (deadline == INT64_MAX)
		return;
	at_ns = deadline - host->process.clock_ns;
	if (at_ns < sim->now_ns)
		at_ns = sim->now_ns;
	if (host->timer_at_ns >= sim->now_ns && host->timer_at_ns <= at_ns)
		return;
	host->timer_at_ns = at_ns + sim_between(sim, 0, SIM_MS);
	sim_put(sim, host->timer_at_ns, SIM_EV_HOST_TIMER, host->index, 0, 0);
}

static void perform(struct sim *sim, struct sim_host *host, const struct host_action *action)
{
	switch (action->kind) {
	case HOST_DO_SEND:
		send_frame(sim, host, &action->message);
		break;
	case HOST_DO_LOG:
		sim_print(sim, sim_host_name(host), "| %s", action->text);
		break;
	case HOST_DO_EXIT:
		host->ends = true;
		if (host->hangs && !action->operators_may_hang)
			sim_fail(sim, "left over", "pid %d frees what an operator works on",
				 host->pid);
		sim_host_die(sim, host, action->exit_code, 0, false);
		break;
	default:
		sim_run_perform(sim, host, action);
		break;
	}
}

void sim_host_raise(struct sim *sim, struct sim_host *host, const struct host_event *event)
{
	struct host_actions actions;

	if (!host->process.alive || host->dying || sim->failed)
		return;
	sim->step_count++;
	host_core_step(host->core, event, sim_clock(sim, &host->process), &actions);
	if (host_core_illegal_transitions(host->core) != 0)
		sim_fail(sim, "moves", "pid %d made a move that is not in its table", host->pid);
	for (uint32_t i = 0; i < actions.count && host->process.alive && !sim->failed; i++)
		perform(sim, host, &actions.items[i]);
	if (host->process.alive)
		set_timer(sim, host);
}

/* What the driver sends comes in order, and to the right one. */
static void check_order(struct sim *sim, const struct sim_host *host,
			const struct fw_message *message)
{
	bool rewires = message->kind == FW_HOST_WIRE &&
		       (host->app->restarts || sim_restart_was_made(host->app));
	enum host_state state = host_core_state(host->core),
			fits = message->kind == FW_HOST_CREATE ? HOST_STATE_NEW
			       : message->kind == FW_HOST_WIRE ? HOST_STATE_PREPARED
							       : HOST_STATE_WIRED;

	if (message->run != host->run || message->host != host->number ||
	    message->epoch != host->epoch)
		sim_fail(sim, "addressing", "pid %d got %s for host %u, epoch %llu", host->pid,
			 fw_kind_name(message->kind), message->host,
			 (unsigned long long)message->epoch);
	if (rewires && state >= HOST_STATE_WIRING && state <= HOST_STATE_STARTED)
		return; /* of a peer that was started again */
	if (message->kind == FW_HOST_SET && state >= HOST_STATE_STARTED)
		return;
	if (message->kind == FW_HOST_SUSPEND && state >= HOST_STATE_WIRING)
		return; /* a driver that has come back does not know that it starts yet */
	if (message->kind != FW_HOST_STOP && state != fits && state != HOST_STATE_FAILED &&
	    state != HOST_STATE_ENDING)
		sim_fail(sim, "order", "pid %d got %s in state %d", host->pid,
			 fw_kind_name(message->kind), (int)state);
}

static void on_message(struct sim *sim, struct sim_host *host, const struct fw_message *message)
{
	host->heard_ns = sim->now_ns;
	if (message->kind != FW_BEAT) {
		sim_print(sim, sim_host_name(host), "<- %s", fw_kind_name(message->kind));
		check_order(sim, host, message);
	}
	if (message->kind == FW_HOST_STOP && message->stop.drain_ns == 0)
		sim_run_before_end(sim, host);
	sim_host_raise(sim, host,
		       &(struct host_event){.kind = HOST_EV_MESSAGE, .message = message});
}

/* Its workerd is gone: whatever it does, it ends at once. */
static void lose_workerd(struct sim *sim, struct sim_host *host)
{
	sim_host_raise(sim, host,
		       &(struct host_event){.kind = HOST_EV_CONNECTION_LOST, .text = ""});
	if (host->process.alive)
		sim_fail(sim, "left over", "pid %d lives though its workerd is gone", host->pid);
}

static void to_worker(struct sim *sim, struct sim_host *host, enum sim_frame_kind kind,
		      const struct fw_message *message)
{
	if (message != NULL) {
		host->heard_by_worker_ns = sim->now_ns;
		sim_worker_raise(sim, host->worker,
				 &(struct wrk_event){.kind = WRK_EVENT_HOST_MESSAGE,
						     .host = host->id,
						     .message = message});
	} else if (kind == SIM_FRAME_END) {
		if (!sim_chance(sim, 16))
			sim_worker_raise(
				sim, host->worker,
				&(struct wrk_event){
					.kind = WRK_EVENT_HOST_CONNECTION_LOST,
					.host = host->id,
					.text = "something in its process closed its control socket"});
		sim_put(sim, sim->now_ns + sim_between(sim, 0, 5 * SIM_MS), SIM_EV_REAP,
			host->index, 0, 0);
	}
}

/* A frame has come through the socket between a host and its workerd. */
static void on_socket(struct sim *sim, const struct sim_event *event)
{
	struct sim_host *host = &sim->hosts[event->a];
	struct sim_pipe *pipe = &host->to[event->b];
	struct sim_worker *worker = &sim->workers[host->worker];
	bool there = worker->process.alive && worker->generation == host->generation;
	struct frag_err err = FRAG_ERR_INIT;
	struct fw_message *message = NULL;
	struct sim_frame *frame;

	if (event->b == 1 && there && sim_is_stopped(sim, &worker->process)) {
		sim_put_back(sim, *event, worker->process.stopped_until_ns);
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
	if (event->b == 0 && host->process.alive && message != NULL)
		on_message(sim, host, message);
	else if (event->b == 0 && host->process.alive && frame->kind == SIM_FRAME_END)
		lose_workerd(sim, host);
	else if (event->b == 1 && there)
		to_worker(sim, host, frame->kind, message);
	fw_message_free(message);
	free(frame->bytes);
	free(frame);
}

/* It gave its workerd up as silent: rightly, and not because it slept itself. */
static void check_silence(struct sim *sim, const struct sim_host *host)
{
	const struct sim_process *process = &host->process;
	int64_t awake_ns = sim->now_ns - host->heard_ns, unseen_ns = 2 * SIM_MS;
	bool has_slept = process->stopped_until_ns > host->heard_ns;

	if (has_slept)
		awake_ns -= process->slept_ns;
	/* It counts from the beat that it missed, which may be the first one. */
	if (has_slept || process->jumped_ns > host->heard_ns)
		unseen_ns += 2 * sim->beat_ns > FRAGI_BEAT_NS ? 2 * sim->beat_ns : FRAGI_BEAT_NS;
	if (awake_ns < sim->dead_ns - unseen_ns)
		sim_fail(sim, "silence",
			 "pid %d gives its workerd up, which was silent for %.3f s of its own time",
			 host->pid, (double)awake_ns * 1e-9);
}

static void on_timer(struct sim *sim, struct sim_host *host, const struct sim_event *event)
{
	if (event->at_ns == host->timer_at_ns)
		host->timer_at_ns = -1;
	if (host_core_deadline_ns(host->core) > sim_clock(sim, &host->process)) {
		set_timer(sim, host);
		return;
	}
	sim_host_raise(sim, host, &(struct host_event){.kind = HOST_EV_TIMER});
	if (!host->process.alive)
		check_silence(sim, host);
	else if (host_core_deadline_ns(host->core) <= sim_clock(sim, &host->process))
		sim_fail(sim, "at rest", "the timer of pid %d is due again and again", host->pid);
}

/* Its process is there. */
void sim_host_begin(struct sim *sim, struct sim_host *host)
{
	const struct host_config config = {.wire_ns = SIM_HOST_WIRE_NS};

	host->timer_at_ns = -1;
	if (host_core_create(&config, sim_clock(sim, &host->process), &host->core) < 0) {
		sim_fail(sim, "memory", "cannot make a host");
		return;
	}
	set_timer(sim, host);
	sim_put(sim, sim->now_ns + host->beat_ns, SIM_EV_RUN_BEAT, host->index, 0, 0);
	sim_clocks_begin(sim, host);
}

void sim_host_fini(struct sim_host *host)
{
	host_core_destroy(host->core);
	host->core = NULL;
	for (int end = 0; end < 2; end++)
		sim_pipe_clear(&host->to[end]);
}

void sim_on_host(struct sim *sim, const struct sim_event *event)
{
	struct sim_host *host = &sim->hosts[event->a];
	bool dies = event->kind == SIM_EV_HOST_END;

	if (event->kind == SIM_EV_REAP) {
		sim_host_reap(sim, event);
		return;
	}
	if (event->kind == SIM_EV_SOCKET && event->b == 1) {
		on_socket(sim, event);
		return;
	}
	if (!host->process.alive)
		return;
	if (host->dying && !dies)
		return; /* it is in the kernel, and will not come back */
	if (sim_is_stopped(sim, &host->process) && !dies) {
		if (event->kind == SIM_EV_HOST_TIMER)
			host->timer_at_ns = host->process.stopped_until_ns;
		sim_put_back(sim, *event, host->process.stopped_until_ns);
		return;
	}
	switch (event->kind) {
	case SIM_EV_SOCKET:
		on_socket(sim, event);
		break;
	case SIM_EV_HOST_TIMER:
		on_timer(sim, host, event);
		break;
	case SIM_EV_HOST_STOP:
		sim_host_raise(sim, host, &(struct host_event){.kind = HOST_EV_STOP});
		break;
	case SIM_EV_HOST_END:
		sim_host_die(sim, host, 0, (int)event->b, false);
		break;
	default:
		sim_on_run(sim, event);
		break;
	}
}
