// SPDX-License-Identifier: Apache-2.0
#include <workerd/core/state.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>
#include <base/sentence.h>

static const char *const host_names[WRK_HOST_STATES] = {
	[WRK_HOST_NONE] = "none",     [WRK_HOST_SPAWNING] = "spawning",
	[WRK_HOST_UP] = "up",         [WRK_HOST_STOPPING] = "stopping",
	[WRK_HOST_KILLED] = "killed", [WRK_HOST_GONE] = "gone",
};

static const uint32_t host_transitions[WRK_HOST_STATES] = {
	[WRK_HOST_NONE] = FRAGI_TO(WRK_HOST_SPAWNING),
	[WRK_HOST_SPAWNING] =
		FRAGI_TO(WRK_HOST_UP) | FRAGI_TO(WRK_HOST_KILLED) | FRAGI_TO(WRK_HOST_GONE),
	[WRK_HOST_UP] =
		FRAGI_TO(WRK_HOST_STOPPING) | FRAGI_TO(WRK_HOST_KILLED) | FRAGI_TO(WRK_HOST_GONE),
	[WRK_HOST_STOPPING] = FRAGI_TO(WRK_HOST_KILLED) | FRAGI_TO(WRK_HOST_GONE),
	[WRK_HOST_KILLED] = FRAGI_TO(WRK_HOST_GONE),
	[WRK_HOST_GONE] = 0,
};

static void host_check(const void *object)
{
	const struct wrk_host *host = object;

	assert(host->state != WRK_HOST_GONE && "what is gone is forgotten");
	if (host->state == WRK_HOST_NONE)
		return;
	assert(host->application != NULL);
	assert(host->state != WRK_HOST_KILLED || host->kill_at_ns == INT64_MAX);
	assert((host->state != WRK_HOST_STOPPING || host->stop_requested || host->ended_here) &&
	       "it is stopped for its driver, or for this worker");
	assert(!host->ending || host->state == WRK_HOST_STOPPING || host->state == WRK_HOST_KILLED);
	assert(!host->exit_reported && "what is gone is forgotten");
}

const struct fragi_machine wrk_host_machine = {
	.name = "host",
	.state_names = host_names,
	.transitions = host_transitions,
	.count = WRK_HOST_STATES,
	.check = host_check,
};

static void host_transition(struct wrk_core *core, struct wrk_host *host, enum wrk_host_state to,
			    struct wrk_actions *actions)
{
	bool legal = fragi_machine_transition(&wrk_host_machine, host->state, to);

	wrk_log(actions, legal ? FRAGI_LOG_DEBUG : FRAGI_LOG_ERROR,
		"host %u of run %llu, epoch %llu, pid %d: %s -> %s%s", host->number,
		(unsigned long long)host->run, (unsigned long long)host->epoch, host->pid,
		host_names[host->state], host_names[to], fragi_machine_remark(legal));
	if (legal)
		host->state = to;
	else
		core->illegal_transitions++;
}

struct wrk_host *wrk_host_next(const struct wrk_core *core, const struct wrk_host *after)
{
	size_t i = after != NULL ? (size_t)(after - core->hosts) + 1 : 0;

	for (; i < core->slot_count; i++)
		if (core->hosts[i].state != WRK_HOST_NONE)
			return (struct wrk_host *)(uintptr_t)&core->hosts[i];
	return NULL;
}

struct wrk_host *wrk_host_by_id(const struct wrk_core *core, uint32_t id)
{
	for (struct wrk_host *host = NULL; (host = wrk_host_next(core, host)) != NULL;)
		if (host->id == id)
			return host;
	return NULL;
}

/* The newest host of that number in the present session. */
static struct wrk_host *host_by_number(struct wrk_core *core, uint64_t run, uint32_t number)
{
	struct wrk_host *found = NULL;

	for (struct wrk_host *host = NULL; (host = wrk_host_next(core, host)) != NULL;)
		if (host->connection == core->connection && host->run == run &&
		    host->number == number && (found == NULL || host->epoch > found->epoch))
			found = host;
	return found;
}

struct wrk_host *wrk_host_of(const struct wrk_core *core, const struct fw_message *message)
{
	for (struct wrk_host *host = NULL; (host = wrk_host_next(core, host)) != NULL;)
		if (host->connection == core->connection && host->run == message->run &&
		    host->number == message->host && host->epoch == message->epoch)
			return host;
	return NULL;
}

static void host_signal(const struct wrk_host *host, int number, struct wrk_actions *actions)
{
	struct wrk_action *action = wrk_emit(actions, WRK_DO_SIGNAL_HOST);

	action->host = host->id;
	action->signal = number;
}

/* The first reason counts. */
static void note_why(struct wrk_host *host, enum fragi_failure failure, const char *why)
{
	if (host->why_failure != FRAGI_FAILURE_NONE)
		return;
	host->why_failure = failure;
	fragi_sentence(host->why, sizeof(host->why), "%s", why);
}

void wrk_host_kill(struct wrk_core *core, struct wrk_host *host, enum fragi_failure failure,
		   const char *why, struct wrk_actions *actions)
{
	if (host->state == WRK_HOST_KILLED)
		return;
	note_why(host, failure, why);
	host->kill_at_ns = INT64_MAX;
	host_transition(core, host, WRK_HOST_KILLED, actions);
	host_signal(host, SIGKILL, actions);
}

void wrk_host_kill_all(struct wrk_core *core, enum fragi_failure failure, const char *why,
		       struct wrk_actions *actions)
{
	for (struct wrk_host *host = NULL; (host = wrk_host_next(core, host)) != NULL;) {
		host->ended_here = core->stops > 0;
		wrk_host_kill(core, host, failure, why, actions);
	}
}

/* Ends a host in order, or kills it when it has not ended by then. */
static void end_by(struct wrk_core *core, struct wrk_host *host, int64_t kill_at_ns,
		   struct wrk_actions *actions)
{
	if (host->state == WRK_HOST_UP)
		host_transition(core, host, WRK_HOST_STOPPING, actions);
	if (host->state != WRK_HOST_STOPPING)
		return;
	host->ending = true;
	host->kill_at_ns = kill_at_ns;
	host_signal(host, SIGTERM, actions);
}

uint32_t wrk_host_stop_all(struct wrk_core *core, bool is_lost, int64_t now_ns,
			   struct wrk_actions *actions)
{
	enum fragi_failure failure =
		is_lost ? FRAGI_FAILURE_DRIVER_LOST : FRAGI_FAILURE_WORKER_LOST;
	const char *why = is_lost ? "its driver was lost" : "its workerd was told to end";
	uint32_t count = 0;

	for (struct wrk_host *host = NULL; (host = wrk_host_next(core, host)) != NULL;) {
		if (host->stop_requested && !is_lost)
			continue;
		count++;
		host->ended_here = true;
		if (host->state == WRK_HOST_SPAWNING)
			wrk_host_kill(core, host, failure, why, actions);
		if (host->state != WRK_HOST_UP && !(host->state == WRK_HOST_STOPPING && is_lost))
			continue;
		note_why(host, failure, why);
		end_by(core, host, now_ns + (is_lost ? WRK_LOST_NS : WRK_KILL_NS), actions);
	}
	return count;
}

/* The driver's order. */
static void kill_on_request(struct wrk_core *core, struct wrk_host *host, int64_t now_ns,
			    struct wrk_actions *actions)
{
	if (core->config.grace_ns == 0 || host->state == WRK_HOST_SPAWNING)
		wrk_host_kill(core, host, FRAGI_FAILURE_NONE, "", actions);
	else
		end_by(core, host, now_ns + core->config.grace_ns, actions);
}

/* A host that never came to be is reported with its exit alone. */
static void report_exit(struct wrk_core *core, struct wrk_host *host,
			const struct fw_host_exit *exit, struct wrk_actions *actions)
{
	struct fw_message *message = wrk_message(actions, FW_HOST_EXIT, host);

	assert(host->connection == core->connection && "another session does not know it");
	assert(!host->exit_reported);
	host->exit_reported = true;
	if (message == NULL)
		return;
	message->exit = *exit;
	wrk_session_send(core, message, actions);
}

static bool epoch_is_stale(struct wrk_core *core, const struct fw_message *message)
{
	const struct wrk_host *host = host_by_number(core, message->run, message->host);

	if ((host != NULL && host->epoch >= message->epoch) || wrk_keep_is_stale(core, message))
		return true;
	for (uint32_t i = 0; i < WRK_PAST_MAX; i++) {
		assert((core->past[i].epoch == 0 || core->past[i].connection == core->connection) &&
		       "epochs are of one driver");
		if (core->past[i].number == message->host && core->past[i].run == message->run &&
		    core->past[i].epoch >= message->epoch)
			return true;
	}
	return false;
}

void wrk_host_create(struct wrk_core *core, const struct fw_message *message, int64_t now_ns,
		     struct wrk_actions *actions)
{
	struct wrk_host *host = NULL, *old = host_by_number(core, message->run, message->host);
	const char *refusal = NULL;
	struct wrk_action *action;

	if (epoch_is_stale(core, message)) {
		wrk_log(actions, FRAGI_LOG_WARN,
			"refused HOST_CREATE of host %u of run %llu: epoch %llu is old",
			message->host, (unsigned long long)message->run,
			(unsigned long long)message->epoch);
		return;
	}
	for (uint32_t i = 0; i < WRK_HOSTS_MAX && host == NULL; i++)
		if (core->hosts[i].state == WRK_HOST_NONE)
			host = &core->hosts[i];
	if (core->stops > 0)
		refusal = wrk_text(actions, "worker %s has been told to end", core->config.name);
	else if (core->config.once && core->served && core->served_run != message->run)
		refusal = wrk_text(actions, "worker %s serves one application and ends (--once)",
				   core->config.name);
	else if (host == NULL)
		refusal = wrk_text(
			actions,
			"worker %s runs %d hosts already, its most; give it fewer fragments",
			core->config.name, WRK_HOSTS_MAX);
	else
		refusal = wrk_lease_refusal(core, &message->create, actions);
	if (refusal != NULL) {
		report_exit(core,
			    &(struct wrk_host){.run = message->run,
					       .number = message->host,
					       .epoch = message->epoch,
					       .connection = core->connection},
			    &(struct fw_host_exit){
				    .exit_code = fragi_failure_exit(FRAGI_FAILURE_WORKER_BUSY),
				    .failure = {FRAGI_FAILURE_WORKER_BUSY, refusal, NULL}},
			    actions);
		return;
	}
	assert((old == NULL || old->epoch < message->epoch) && "never two of one epoch");
	if (old != NULL && !message->create.is_beside)
		wrk_host_kill(core, old, FRAGI_FAILURE_HOST_EXITED,
			      "a newer epoch of it was started", actions);
	wrk_move_create(message, old != NULL, actions);
	if (host == &core->hosts[core->slot_count])
		core->slot_count++;
	*host = (struct wrk_host){.id = ++core->last_id,
				  .run = message->run,
				  .number = message->host,
				  .epoch = message->epoch,
				  .connection = core->connection,
				  .is_beside = message->create.is_beside,
				  .heard_ns = now_ns,
				  .kill_at_ns = INT64_MAX};
	host->application = fragi_strdup(message->create.application);
	wrk_host_name_fragments(host, &message->create);
	wrk_lease_begin(core, host, &message->create);
	if (host->application == NULL)
		actions->out_of_memory = true;
	core->host_count++;
	wrk_keep_create(core, message, now_ns, actions);
	core->served = true;
	core->served_run = message->run;
	host_transition(core, host, WRK_HOST_SPAWNING, actions);
	action = wrk_emit(actions, WRK_DO_SPAWN);
	action->host = host->id;
	action->message = message;
	action->lease_until_ns = host->lease_until_ns;
}

static void send_host(const struct wrk_host *host, const struct fw_message *message,
		      struct wrk_actions *actions)
{
	struct wrk_action *action;

	if (message == NULL)
		return;
	assert(message->run == host->run && message->host == host->number &&
	       message->epoch == host->epoch);
	action = wrk_emit(actions, WRK_DO_SEND_HOST);
	action->host = host->id;
	action->message = message;
}

static void take_failure(struct wrk_core *core, struct wrk_host *host,
			 const struct fw_failure *failure)
{
	host->failed = host->failed || failure->code != FRAGI_FAILURE_NONE;
	wrk_exit_result(core, fragi_failure_exit(failure->code));
}

void wrk_host_request(struct wrk_core *core, const struct fw_message *message, int64_t now_ns,
		      struct wrk_actions *actions)
{
	struct wrk_host *host = wrk_host_of(core, message);

	if (host == NULL) { /* it may just have ended: no fault of the driver */
		wrk_log(actions, FRAGI_LOG_DEBUG,
			"ignored %s for host %u of run %llu, epoch %llu: not here",
			fw_kind_name(message->kind), message->host,
			(unsigned long long)message->run, (unsigned long long)message->epoch);
		return;
	}
	if (message->kind == FW_HOST_LOOK) { /* the host hears of it with each beat */
		if (now_ns >= host->look_until_ns)
			host->counts_for = 0; /* what it counts now is new */
		/* of two who look, the one who looks for longer counts */
		if (now_ns + message->host_look.for_ns > host->look_until_ns ||
		    message->host_look.for_ns == 0)
			host->look_until_ns = now_ns + message->host_look.for_ns;
		return;
	}
	if (message->kind != FW_HOST_TAP) /* nothing that a later driver must know */
		wrk_keep_request(core, message, actions);
	if (message->kind == FW_HOST_STOP || message->kind == FW_HOST_KILL)
		wrk_exit_asked(core, host, message);
	if (message->kind == FW_HOST_KILL) {
		kill_on_request(core, host, now_ns, actions);
		return;
	}
	if (host->state != WRK_HOST_UP && host->state != WRK_HOST_STOPPING)
		return;
	if (message->kind == FW_HOST_STOP && host->state == WRK_HOST_UP)
		host_transition(core, host, WRK_HOST_STOPPING, actions);
	if (message->kind == FW_HOST_STOP && message->stop.drain_ns == 0)
		host->ending = true;
	if (message->kind == FW_HOST_STOP && message->stop.restarts)
		host->yields = true;
	send_host(host, message, actions);
}

/* The driver calls the first error the cause as well. */
static const struct fw_failure *prepare_failure(const struct fw_host_prepared *prepared)
{
	static const struct fw_failure unknown = {FRAGI_FAILURE_HOST_FAILED, "", ""};

	return prepared->error_count != 0 ? &prepared->errors[0] : &unknown;
}

static void host_frame(struct wrk_core *core, struct wrk_host *host,
		       const struct fw_message *message, int64_t now_ns,
		       struct wrk_actions *actions)
{
	bool ours = message->run == host->run && message->host == host->number &&
		    message->epoch == host->epoch;

	host->heard_ns = now_ns;
	host->starts_until_ns = 0;
	if (message->kind == FW_BEAT)
		return;
	if (message->kind == FW_HOST_TAPPED && ours) {
		wrk_session_send(core, message, actions);
		return;
	}
	if (!ours || (message->kind != FW_HOST_PREPARED && message->kind != FW_HOST_WIRED &&
		      message->kind != FW_HOST_STARTED && message->kind != FW_HOST_EVENT &&
		      message->kind != FW_HOST_SET_DONE)) {
		wrk_log_of(actions, FRAGI_LOG_ERROR, host,
			   "fraghost %d sent %s that it may not send", host->pid,
			   fw_kind_name(message->kind));
		wrk_host_kill(core, host, FRAGI_FAILURE_PROTOCOL,
			      "it sent a frame that a host may not send", actions);
		return;
	}
	if (message->kind == FW_HOST_PREPARED) {
		wrk_host_name_operators(host, &message->prepared, actions);
		if (!message->prepared.ok)
			take_failure(core, host, prepare_failure(&message->prepared));
	} else if (message->kind == FW_HOST_EVENT) {
		host->done = host->done || message->event.state == FW_STATE_DONE;
		if (message->event.state == FW_STATE_FAILED)
			take_failure(core, host, &message->event.failure);
	} else if (message->kind != FW_HOST_SET_DONE) { /* a refused value is no failure */
		take_failure(core, host, &message->result.failure);
	}
	wrk_keep_frame(core, message, actions);
	wrk_session_send(core, message, actions);
}

static void report_stats(struct wrk_core *core, const struct wrk_host *host,
			 const struct fw_host_stats *stats, bool final, struct wrk_actions *actions)
{
	struct fw_message *message;

	if (host->connection != core->connection)
		return;
	assert(!host->exit_reported && "nothing about it follows");
	message = wrk_message(actions, FW_HOST_STATS, host);
	if (message == NULL)
		return;
	message->stats = *stats;
	message->stats.final = final;
	wrk_session_send(core, message, actions);
}

/* So that its epoch does not come back. */
static void remember(struct wrk_core *core, const struct wrk_host *host)
{
	assert(host->connection == core->connection && "epochs are of one driver");
	core->past[core->past_next] = (struct wrk_past){.connection = host->connection,
							.run = host->run,
							.epoch = host->epoch,
							.number = host->number};
	core->past_next = (core->past_next + 1) % WRK_PAST_MAX;
}

static void host_gone(struct wrk_core *core, struct wrk_host *host, struct wrk_actions *actions)
{
	host_transition(core, host, WRK_HOST_GONE, actions);
	wrk_move_beside_gone(host, actions);
	/* The driver of another session counts from 1. */
	if (host->connection == core->connection)
		remember(core, host);
	wrk_host_forget(host);
	core->host_count--;
	if (core->host_count > 0)
		return;
	if (core->stops > 0)
		wrk_session_end(core, 0, actions);
	else if (core->config.once && (core->decided || core->session != WRK_SESSION_ATTACHED))
		wrk_session_end(core, core->result, actions); /* else when the driver has decided */
}

/*
 * Whether the end was asked for: the host ended in order after a request, or this workerd ended it
 * because it was asked to end itself.
 */
static bool end_was_asked(const struct wrk_host *host, const struct wrk_exited *exited)
{
	return wrk_exit_in_order(host, exited) ||
	       (host->ended_here && host->state == WRK_HOST_KILLED && exited->signal == SIGKILL);
}

static void host_exited(struct wrk_core *core, struct wrk_host *host,
			const struct wrk_exited *exited, struct wrk_actions *actions)
{
	const struct fw_failure failure = wrk_exit_failure(host, exited, actions);
	struct fw_host_exit exit = {
		.exit_code =
			exited->signal != 0 ? FRAGI_EXIT_SIGNAL + exited->signal : exited->status,
		.signal = exited->signal,
		.failure = failure,
		.lines = exited->lines,
		.line_count = exited->line_count,
		.asked = end_was_asked(host, exited),
	};

	wrk_exit_log(core, host, &failure, actions);
	wrk_keep_exit(core, host, exited->stats, &exit, actions);
	wrk_host_lines_left_out(core, host, actions);
	if (failure.code != FRAGI_FAILURE_NONE && core->stops == 0)
		wrk_exit_result(core, fragi_failure_exit(failure.code));
	if (host->yields && host->connection == core->connection)
		wrk_move_send_saved(core, host->run, host->number, host->epoch, actions);
	if (exited->stats != NULL)
		report_stats(core, host, exited->stats, true, actions);
	if (host->connection == core->connection)
		report_exit(core, host, &exit, actions);
	host_gone(core, host, actions);
}

static void not_spawned(struct wrk_core *core, struct wrk_host *host, const char *why,
			struct wrk_actions *actions)
{
	const enum fragi_failure code = FRAGI_FAILURE_HOST_NOT_STARTED;
	const struct fw_host_exit exit = {.exit_code = fragi_failure_exit(code),
					  .failure = {code, why, NULL}};

	wrk_exit_result(core, fragi_failure_exit(code));
	wrk_keep_exit(core, host, NULL, &exit, actions);
	if (host->connection == core->connection)
		report_exit(core, host, &exit, actions);
	host_gone(core, host, actions);
}

void wrk_host_event(struct wrk_core *core, const struct wrk_event *event, int64_t now_ns,
		    struct wrk_actions *actions)
{
	struct wrk_host *host = wrk_host_by_id(core, event->host);

	if (host == NULL)
		return;
	switch (event->kind) {
	case WRK_EVENT_HOST_SPAWNED:
		host->pid = event->pid;
		host->heard_ns = now_ns;
		host->starts_until_ns = event->is_interpreter ? now_ns + INTERPRETER_NS : 0;
		wrk_log_of(actions, FRAGI_LOG_INFO, host, "runs %s (fraghost %d)", host->fragments,
			   host->pid);
		if (host->state == WRK_HOST_SPAWNING)
			host_transition(core, host, WRK_HOST_UP, actions);
		else /* killed before it was there */
			host_signal(host, SIGKILL, actions);
		break;
	case WRK_EVENT_HOST_FAILED:
		wrk_log_of(actions, FRAGI_LOG_ERROR, host, "%s", event->text);
		not_spawned(core, host, event->text, actions);
		break;
	case WRK_EVENT_HOST_MESSAGE:
		if (host->state != WRK_HOST_UP && host->state != WRK_HOST_STOPPING)
			break;
		host_frame(core, host, event->message, now_ns, actions);
		assert(host->heard_ns == now_ns && "whatever comes shows that it lives");
		break;
	case WRK_EVENT_HOST_CONNECTION_LOST: /* its exit follows, or it closed the socket */
		if (host->state == WRK_HOST_UP || host->state == WRK_HOST_STOPPING) {
			if (!host->stop_requested && host->why_failure == FRAGI_FAILURE_NONE) {
				note_why(host, FRAGI_FAILURE_PROTOCOL, event->text);
				host->cut = event->cut;
			}
			if (host->kill_at_ns > now_ns + core->beat_ns)
				host->kill_at_ns = now_ns + core->beat_ns;
		}
		break;
	case WRK_EVENT_HOST_SAMPLED:
		if (wrk_beat_is_news(core, host, event->stats))
			report_stats(core, host, event->stats, false, actions);
		break;
	case WRK_EVENT_HOST_LINES:
		wrk_host_lines(core, host, event, now_ns, actions);
		break;
	case WRK_EVENT_HOST_EXITED:
		host_exited(core, host, event->exited, actions);
		break;
	default:
		break;
	}
}

/* When a host that goes on to say nothing is taken for dead. */
static int64_t silent_at(const struct wrk_core *core, const struct wrk_host *host)
{
	return host->heard_ns + core->dead_ns > host->starts_until_ns
		       ? host->heard_ns + core->dead_ns
		       : host->starts_until_ns;
}

void wrk_host_timer(struct wrk_core *core, int64_t now_ns, struct wrk_actions *actions)
{
	for (struct wrk_host *host = NULL; (host = wrk_host_next(core, host)) != NULL;) {
		if (now_ns >= host->kill_at_ns) {
			wrk_host_kill(core, host, FRAGI_FAILURE_NONE, "", actions);
		} else if (core->read_ns >= silent_at(core, host)) {
			char why[128];

			fragi_sentence(why, sizeof(why),
				       "its control thread has not been heard for %.1f s",
				       (double)core->dead_ns * 1e-9);
			wrk_host_kill(core, host, FRAGI_FAILURE_HOST_SILENT, why, actions);
		}
	}
}

int64_t wrk_host_deadline_ns(const struct wrk_core *core)
{
	int64_t deadline = INT64_MAX;

	for (const struct wrk_host *host = NULL; (host = wrk_host_next(core, host)) != NULL;) {
		if (host->state == WRK_HOST_KILLED)
			continue;
		if (host->kill_at_ns < deadline)
			deadline = host->kill_at_ns;
		if (silent_at(core, host) < deadline)
			deadline = silent_at(core, host);
	}
	return deadline;
}
