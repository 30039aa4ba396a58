// SPDX-License-Identifier: Apache-2.0
#include <workerd/core/state.h>

#include <stdio.h>
#include <string.h>

#include <base/beat.h>

static const char *const session_names[WRK_SESSIONS] = {
	[WRK_SESSION_DISCONNECTED] = "disconnected", [WRK_SESSION_CONNECTING] = "connecting",
	[WRK_SESSION_HELLO_SENT] = "hello sent",     [WRK_SESSION_ATTACHED] = "attached",
	[WRK_SESSION_BACKOFF] = "backoff",           [WRK_SESSION_ENDED] = "ended",
};

static const uint32_t session_transitions[WRK_SESSIONS] = {
	[WRK_SESSION_DISCONNECTED] = FRAGI_TO(WRK_SESSION_CONNECTING) | FRAGI_TO(WRK_SESSION_ENDED),
	[WRK_SESSION_CONNECTING] = FRAGI_TO(WRK_SESSION_HELLO_SENT) |
				   FRAGI_TO(WRK_SESSION_BACKOFF) | FRAGI_TO(WRK_SESSION_ENDED),
	[WRK_SESSION_HELLO_SENT] = FRAGI_TO(WRK_SESSION_ATTACHED) | FRAGI_TO(WRK_SESSION_BACKOFF) |
				   FRAGI_TO(WRK_SESSION_ENDED),
	[WRK_SESSION_ATTACHED] = FRAGI_TO(WRK_SESSION_BACKOFF) | FRAGI_TO(WRK_SESSION_ENDED),
	[WRK_SESSION_BACKOFF] = FRAGI_TO(WRK_SESSION_CONNECTING) | FRAGI_TO(WRK_SESSION_ENDED),
	[WRK_SESSION_ENDED] = 0,
};

static int64_t driver_dead_at(const struct wrk_core *core)
{
	return core->heard_ns + core->dead_ns;
}

/* Asserts the invariants of the session after every step. */
static void session_check(const void *object)
{
	const struct wrk_core *core = object;
	bool is_attached = core->session == WRK_SESSION_ATTACHED;

	if (core->session == WRK_SESSION_ENDED) {
		assert(core->deadline_ns == INT64_MAX);
		return;
	}
	if (core->session == WRK_SESSION_CONNECTING || core->session == WRK_SESSION_BACKOFF)
		assert(core->deadline_ns <= core->wait_until_ns && "no wait lasts for ever");
	if (core->session == WRK_SESSION_HELLO_SENT || is_attached) {
		assert(core->deadline_ns <= driver_dead_at(core) && "silence is judged");
		assert(core->deadline_ns <= core->beat_at_ns);
	}
	assert((!is_attached ||
		(core->backoff_ns == WRK_BACKOFF_MIN_NS && !core->waiting_logged)) &&
	       "the next wait begins small again");
	assert((core->stops == 0 || core->host_count > 0) && "stopped without hosts, it ends");
	assert((core->stops < 2 || core->stop_at_ns != INT64_MAX) &&
	       "stopped twice, it ends in time");
	assert(core->deadline_ns <= core->grace_until_ns && core->deadline_ns <= core->stop_at_ns);
}

const struct fragi_machine wrk_session_machine = {
	.name = "session",
	.state_names = session_names,
	.transitions = session_transitions,
	.count = WRK_SESSIONS,
	.check = session_check,
};

static void session_transition(struct wrk_core *core, enum wrk_session to,
			       struct wrk_actions *actions)
{
	bool legal = fragi_machine_transition(&wrk_session_machine, core->session, to);

	wrk_log(actions, legal ? FRAGI_LOG_DEBUG : FRAGI_LOG_ERROR,
		"session, connection %llu: %s -> %s%s", (unsigned long long)core->connection,
		session_names[core->session], session_names[to], fragi_machine_remark(legal));
	if (legal)
		core->session = to;
	else
		core->illegal_transitions++;
}

static void session_connect(struct wrk_core *core, int64_t now_ns, struct wrk_actions *actions)
{
	core->connection++;
	session_transition(core, WRK_SESSION_CONNECTING, actions);
	core->wait_until_ns = now_ns + WRK_CONNECT_NS;
	wrk_emit(actions, WRK_DO_CONNECT)->connection = core->connection;
}

static uint64_t next_random(struct wrk_core *core)
{
	core->random ^= core->random << 13;
	core->random ^= core->random >> 7;
	core->random ^= core->random << 17;
	return core->random;
}

/*
 * The connection is gone: waits, longer each time, with jitter so that many workers do not come at
 * once. That an idle worker's driver has ended is no news; that it is not back at the first try is.
 * What does not answer HELLO is news once more: it may be another program. So is a process of a
 * user that this worker does not trust.
 */
static void session_back_off(struct wrk_core *core, bool refused, const char *why, int64_t now_ns,
			     struct wrk_actions *actions)
{
	int64_t longest_ns = core->kept != NULL         ? WRK_BACKOFF_HOSTS_NS
			     : core->refusal[0] != '\0' ? WRK_BACKOFF_REFUSED_NS
							: WRK_BACKOFF_MAX_NS;
	int64_t delay = core->backoff_ns / 2 +
			(int64_t)(next_random(core) % (uint64_t)(core->backoff_ns / 2));
	bool is_news = core->session != WRK_SESSION_ATTACHED || core->host_count > 0;
	bool is_odd = core->session == WRK_SESSION_HELLO_SENT && !core->unanswered_logged;
	bool is_threat = refused && !core->refusal_logged;

	session_transition(core, WRK_SESSION_BACKOFF, actions);
	core->wait_until_ns = now_ns + delay;
	core->backoff_ns *= 2;
	if (core->backoff_ns > longest_ns)
		core->backoff_ns = longest_ns;
	if ((!core->waiting_logged && is_news) || is_odd || is_threat) {
		wrk_log(actions, refused ? FRAGI_LOG_WARN : FRAGI_LOG_INFO,
			"waiting for the driver at %s: %s", core->config.driver, why);
		core->waiting_logged = true;
		core->unanswered_logged |= is_odd;
		core->refusal_logged |= is_threat;
	}
}

void wrk_session_result(struct wrk_core *core, int exit_code)
{
	assert(!core->decided && "the driver's last word counts");
	core->result = exit_code;
}

/* So that the driver does not take this end for a failure. */
static void session_leave(struct wrk_core *core, struct wrk_actions *actions)
{
	struct fw_message *message = wrk_message(actions, FW_LEAVE, NULL);

	if (message != NULL)
		message->leave.reason = core->stops > 0 ? "it was told to end"
							: "it has served its application (--once)";
	wrk_session_send(core, message, actions);
}

void wrk_session_end(struct wrk_core *core, int exit_code, struct wrk_actions *actions)
{
	if (core->session == WRK_SESSION_ENDED)
		return;
	if (core->session == WRK_SESSION_ATTACHED)
		session_leave(core, actions);
	if (core->session != WRK_SESSION_DISCONNECTED && core->session != WRK_SESSION_BACKOFF)
		wrk_emit(actions, WRK_DO_DISCONNECT)->connection = core->connection;
	session_transition(core, WRK_SESSION_ENDED, actions);
	wrk_emit(actions, WRK_DO_EXIT)->exit_code = exit_code;
}

/* A worker with --once is of no use without the driver that it was started for. */
static bool waits_in_vain(const struct wrk_core *core, int64_t now_ns)
{
	return core->config.once && !core->served && core->session_id != 0 &&
	       now_ns - core->lost_ns >= core->dead_ns;
}

/* closed: the shell has closed the connection itself. */
static void session_drop(struct wrk_core *core, bool closed, const char *why, int64_t now_ns,
			 struct wrk_actions *actions)
{
	bool attached = core->session == WRK_SESSION_ATTACHED;

	wrk_source_forget(core);
	if (attached)
		core->lost_ns = now_ns;
	if (!closed)
		wrk_emit(actions, WRK_DO_DISCONNECT)->connection = core->connection;
	if (attached && core->host_count > 0 && core->keeps_hosts) {
		wrk_log(actions, FRAGI_LOG_WARN,
			"lost the driver at %s: %s; %u host%s on meanwhile", core->config.driver,
			why, core->host_count, core->host_count == 1 ? " runs" : "s run");
		core->waiting_logged = true;
	} else if (attached && core->host_count > 0) {
		wrk_log(actions, FRAGI_LOG_WARN,
			"lost the driver at %s: %s; its applications end here", core->config.driver,
			why);
		wrk_host_stop_all(core, true, now_ns, actions);
	}
	session_back_off(core, false, why, now_ns, actions);
	if (attached && core->config.once && core->served && core->host_count == 0)
		wrk_session_end(core, core->result, actions);
	else if (attached && core->config.once && core->served && !core->decided)
		/* with which it ends when the last host is gone */
		wrk_session_result(core, fragi_failure_exit(FRAGI_FAILURE_DRIVER_LOST));
	if (attached || !waits_in_vain(core, now_ns))
		return;
	wrk_log(actions, FRAGI_LOG_ERROR, "the driver at %s has ended: %s", core->config.driver,
		why);
	wrk_session_end(core, fragi_failure_exit(FRAGI_FAILURE_DRIVER_LOST), actions);
}

static void note_refusal(struct wrk_core *core, const char *sentence)
{
	snprintf(core->refusal, sizeof(core->refusal), "%s", sentence);
}

/*
 * Waits after a refusal: the driver may accept this worker later. The same reason is logged once.
 */
static void session_wait_refused(struct wrk_core *core, const char *sentence, int64_t now_ns,
				 struct wrk_actions *actions)
{
	if (core->refusal[0] == '\0')
		wrk_log(actions, FRAGI_LOG_ERROR,
			"the driver at %s refused this worker: %s; tries again, after %d s at most",
			core->config.driver, sentence,
			(int)(WRK_BACKOFF_REFUSED_NS / INT64_C(1000000000)));
	note_refusal(core, sentence);
	core->waiting_logged = true;
	session_back_off(core, false, sentence, now_ns, actions);
}

/*
 * The driver has ended the session because it does not accept the key any more: what runs by that
 * key ends at once. The word counts because the session was authenticated; a handshake that is
 * refused later ends nothing.
 */
static void session_revoked(struct wrk_core *core, const char *sentence, int64_t now_ns,
			    struct wrk_actions *actions)
{
	wrk_emit(actions, WRK_DO_DISCONNECT)->connection = core->connection;
	wrk_log(actions, FRAGI_LOG_ERROR, "the driver at %s has revoked this worker: %s; %u host%s",
		core->config.driver, sentence, core->host_count,
		core->host_count == 1 ? " ends" : "s end");
	note_refusal(core, sentence);
	core->waiting_logged = true;
	core->lost_ns = now_ns;
	wrk_host_kill_all(core, FRAGI_FAILURE_KEY_REFUSED, "the key of its worker was revoked",
			  actions);
	session_back_off(core, false, sentence, now_ns, actions);
	if (!core->config.once)
		return;
	if (core->host_count == 0)
		wrk_session_end(core, fragi_failure_exit(FRAGI_FAILURE_KEY_REFUSED), actions);
	else if (!core->decided)
		wrk_session_result(core, fragi_failure_exit(FRAGI_FAILURE_KEY_REFUSED));
}

void wrk_session_send(struct wrk_core *core, const struct fw_message *message,
		      struct wrk_actions *actions)
{
	struct wrk_action *action;

	if (message == NULL || core->session != WRK_SESSION_ATTACHED)
		return;
	action = wrk_emit(actions, WRK_DO_SEND_DRIVER);
	action->connection = core->connection;
	action->message = message;
}

static void session_hello(struct wrk_core *core, const char *local, const char *proof,
			  int64_t now_ns, struct wrk_actions *actions)
{
	const struct wrk_config *config = &core->config;
	struct fw_message *message = wrk_message(actions, FW_HELLO, NULL);
	struct wrk_action *action;

	snprintf(core->proof, sizeof(core->proof), "%s", proof != NULL ? proof : "");
	snprintf(core->address, sizeof(core->address), "%s",
		 *config->worker_address != '\0' ? config->worker_address : local);
	snprintf(core->local, sizeof(core->local), "%s", local);
	session_transition(core, WRK_SESSION_HELLO_SENT, actions);
	core->heard_ns = now_ns;
	core->beat_at_ns = now_ns + core->beat_ns;
	core->dead_ns = config->dead_ns;
	wrk_lease_sent(core, core->real_ns);
	if (message == NULL)
		return;
	message->hello = (struct fw_hello){
		.major = FW_PROTOCOL_MAJOR,
		.minor = FW_PROTOCOL_MINOR,
		.role = FW_ROLE_WORKER,
		.name = config->name,
		.session = core->session_id,
		.fragments = config->fragments,
		.fragment_count = config->fragment_count,
		.worker_address = core->address,
		.local_address = core->local,
		.node = config->node,
		.clock = config->clock,
		.memory = config->memory,
		.no_memory = config->no_memory,
		.waits_for = core->waits_for,
		.version = config->version,
		.mig = config->mig != NULL ? config->mig : "",
		.labels = config->labels,
		.label_count = config->label_count,
		.no_limits = config->no_limits,
		.limited = config->limited,
		.reports = core->kept_count,
		.last_epoch = core->last_epoch,
		.last_name = core->name,
	};
	memcpy(message->hello.has, config->has, sizeof(message->hello.has));
	memcpy(message->hello.secret, core->secret, sizeof(core->secret));
	action = wrk_emit(actions, WRK_DO_SEND_DRIVER);
	action->connection = core->connection;
	action->message = message;
}

/*
 * Hands the hosts that were made for the earlier driver over to this one, if it keeps hosts and has
 * proven the same identity: a driver with another key is another driver. Runs and epochs are of one
 * driver: another one counts from 1.
 */
static void hand_over(struct wrk_core *core, const struct fw_welcome *welcome, int64_t now_ns,
		      struct wrk_actions *actions)
{
	bool is_same = strcmp(core->proof, core->served_proof) == 0;
	bool reports = core->kept_count > 0;

	if (!welcome->keeps_hosts || !core->keeps_hosts || !is_same) {
		if (core->host_count > 0 && core->keeps_hosts)
			wrk_log(actions, FRAGI_LOG_WARN, "the driver at %s %s; %u host%s here",
				core->config.driver,
				is_same ? "runs one application only"
					: "has another key than the one before",
				core->host_count, core->host_count == 1 ? " ends" : "s end");
		wrk_host_kill_all(core, FRAGI_FAILURE_DRIVER_LOST,
				  "another driver has taken the place of its own", actions);
		wrk_keep_forget(core, 0);
		wrk_emit(actions, WRK_DO_FORGET_SAVED);
		memset(core->past, 0, sizeof(core->past));
	} else {
		wrk_report_take_over(core, actions);
	}
	snprintf(core->served_proof, sizeof(core->served_proof), "%s", core->proof);
	core->keeps_hosts = welcome->keeps_hosts && !core->config.once;
	if (reports && welcome->keeps_hosts)
		wrk_report_all(core, now_ns, actions);
}

static void session_welcome(struct wrk_core *core, const struct fw_message *message, int64_t now_ns,
			    struct wrk_actions *actions)
{
	const struct fw_welcome *welcome = &message->welcome;
	bool was_attached = core->session_id != 0;
	struct wrk_action *keep = wrk_emit(actions, WRK_DO_REPORTER_SESSION);

	keep->connection = core->connection;
	keep->message = message;
	session_transition(core, WRK_SESSION_ATTACHED, actions);
	core->session_id = welcome->session;
	snprintf(core->name, sizeof(core->name), "%s", welcome->name);
	core->takes_lines = welcome->takes_lines;
	memcpy(core->secret, welcome->secret, sizeof(core->secret));
	core->beat_ns = fragi_beat_within_ns(welcome->beat_ns);
	core->dead_ns = fragi_dead_within_ns(welcome->dead_ns, core->beat_ns);
	core->backoff_ns = WRK_BACKOFF_MIN_NS;
	core->beat_at_ns = now_ns;
	wrk_lease_welcome(core);
	hand_over(core, welcome, now_ns, actions);
	wrk_log(actions, FRAGI_LOG_INFO, "%s the driver at %s as %s",
		core->waiting_logged && was_attached ? "back at" : "attached to",
		core->config.driver, welcome->name);
	core->waiting_logged = core->unanswered_logged = core->refusal_logged = false;
	core->refusal[0] = '\0';
}

static void session_refused(struct wrk_core *core, const struct fw_refused *refused, int64_t now_ns,
			    struct wrk_actions *actions)
{
	if (core->keeps_hosts && core->host_count > 0) { /* another one may be there soon */
		session_drop(
			core, false,
			wrk_text(actions, "it refused this worker: %s", refused->failure.sentence),
			now_ns, actions);
		return;
	}
	if (core->config.outlives_refusal && !core->config.once) {
		wrk_emit(actions, WRK_DO_DISCONNECT)->connection = core->connection;
		session_wait_refused(core, refused->failure.sentence, now_ns, actions);
		return;
	}
	wrk_log(actions, FRAGI_LOG_ERROR, "the driver at %s refused this worker: %s",
		core->config.driver, refused->failure.sentence);
	wrk_session_end(core, fragi_failure_exit(refused->failure.code), actions);
}

/*
 * Ends the hosts of an earlier session, which the driver has not seen end, and which no other one
 * will.
 */
static void end_hosts_of(struct wrk_core *core, uint64_t run, struct wrk_actions *actions)
{
	for (struct wrk_host *host = NULL; (host = wrk_host_next(core, host)) != NULL;)
		if (host->run == run)
			wrk_host_kill(core, host, FRAGI_FAILURE_DRIVER_LOST,
				      "its application has ended", actions);
}

/*
 * The driver's last word on an application: the one that was served, or that nobody needed here.
 * Once it is known it stays: another driver, which counts from 1 too, may speak of another one.
 */
static void session_app_ended(struct wrk_core *core, const struct fw_message *message,
			      struct wrk_actions *actions)
{
	wrk_emit(actions, WRK_DO_FORGET_SAVED)->run = message->run;
	wrk_keep_forget(core, message->run);
	if (core->keeps_hosts)
		end_hosts_of(core, message->run, actions);
	if (!core->config.once || (core->served && message->run != core->served_run))
		return;
	if (!core->decided)
		core->result = message->app_ended.exit_code;
	core->decided = true;
	if (core->host_count == 0)
		wrk_session_end(core, core->result, actions);
}

/* A host refuses what is older than the epochs of its peers that it knows. */
static void note_epochs(struct wrk_core *core, const struct fw_message *message)
{
	const uint32_t peers = message->kind == FW_HOST_WIRE ? message->wire.peer_count : 0;

	if (message->epoch > core->last_epoch)
		core->last_epoch = message->epoch;
	for (uint32_t i = 0; i < peers; i++)
		if (message->wire.peers[i].epoch > core->last_epoch)
			core->last_epoch = message->wire.peers[i].epoch;
}

static void session_frame(struct wrk_core *core, const struct fw_message *message, int64_t now_ns,
			  struct wrk_actions *actions)
{
	core->heard_ns = now_ns;
	if (core->session == WRK_SESSION_HELLO_SENT) {
		if (message->kind == FW_WELCOME)
			session_welcome(core, message, now_ns, actions);
		else if (message->kind == FW_REFUSED)
			session_refused(core, &message->refused, now_ns, actions);
		else
			session_drop(core, false, "it did not answer HELLO with WELCOME", now_ns,
				     actions);
		return;
	}
	note_epochs(core, message);
	switch (message->kind) {
	case FW_BEAT:
		wrk_lease_beat(core, &message->beat);
		break;
	case FW_HOST_ADOPTED:
		wrk_lease_adopted(core, message);
		wrk_keep_adopted(core, message);
		break;
	case FW_REFUSED: /* it judged this worker dead meanwhile, or takes its key no more */
		if (message->refused.failure.code == FRAGI_FAILURE_KEY_REFUSED) {
			session_revoked(core, message->refused.failure.sentence, now_ns, actions);
			break;
		}
		session_drop(core, false,
			     wrk_text(actions, "it ended the session: %s",
				      message->refused.failure.sentence),
			     now_ns, actions);
		break;
	case FW_APP_ENDED:
		session_app_ended(core, message, actions);
		break;
	case FW_HOST_CREATE:
		message = wrk_source_complete(core, message, actions);
		if (message != NULL)
			wrk_host_create(core, message, now_ns, actions);
		else
			session_drop(core, false,
				     "it refers to the graph of an earlier host, and has sent none",
				     now_ns, actions);
		break;
	case FW_EXAMINE:
		(void)wrk_emit(actions, WRK_DO_EXAMINE);
		break;
	case FW_HOST_SAVED:
	case FW_HOST_PAST:
		wrk_move_frame(core, message, actions);
		break;
	case FW_HOST_WIRE:
	case FW_HOST_START:
	case FW_HOST_SET:
	case FW_HOST_SUSPEND:
	case FW_HOST_LOOK:
	case FW_HOST_TAP:
	case FW_HOST_STOP:
	case FW_HOST_KILL:
		wrk_host_request(core, message, now_ns, actions);
		break;
	default:
		session_drop(core, false,
			     wrk_text(actions, "it sent %s, which is not for a worker",
				      fw_kind_name(message->kind)),
			     now_ns, actions);
	}
}

/* Explains why HELLO was not answered: another program may have the port. */
static const char *explain_loss(const struct wrk_core *core, const char *why,
				struct wrk_actions *actions)
{
	return core->session == WRK_SESSION_HELLO_SENT
		       ? wrk_text(actions, "%s; does a driverd listen there?", why)
		       : why;
}

/*
 * There is no driver any more, or none yet. A worker that no driver has ever accepted ends when its
 * key is refused, so that a person sees it. Later it tries again: until the driver has accepted
 * the key, anybody may speak for it, and keys are exchanged while workers run.
 *
 * A process that may not command this worker can take the driver's port at any time, so a worker
 * that serves waits for the right driver.
 */
static void session_without_driver(struct wrk_core *core, const struct wrk_event *event,
				   int64_t now_ns, struct wrk_actions *actions)
{
	if (event->failure == FRAGI_FAILURE_USER_REFUSED && !core->config.once) {
		session_back_off(core, true, event->text, now_ns, actions);
		return;
	}
	if (event->failure == FRAGI_FAILURE_KEY_REFUSED && core->session_id == 0 &&
	    core->config.outlives_refusal && !core->config.once) {
		session_wait_refused(core, event->text, now_ns, actions);
		return;
	}
	if (event->failure == FRAGI_FAILURE_NONE ||
	    (event->failure == FRAGI_FAILURE_KEY_REFUSED && core->session_id != 0)) {
		note_refusal(core, event->failure == FRAGI_FAILURE_NONE ? "" : event->text);
		session_drop(core, true,
			     event->failure != FRAGI_FAILURE_NONE
				     ? event->text
				     : explain_loss(core, event->text, actions),
			     now_ns, actions);
		return;
	}
	wrk_log(actions, FRAGI_LOG_ERROR, "cannot attach to the driver at %s: %s",
		core->config.driver, event->text);
	wrk_session_end(core, fragi_failure_exit(event->failure), actions);
}

void wrk_session_event(struct wrk_core *core, const struct wrk_event *event, int64_t now_ns,
		       struct wrk_actions *actions)
{
	if (event->kind == WRK_EVENT_START) {
		session_connect(core, now_ns, actions);
		return;
	}
	if (event->connection != core->connection || core->session == WRK_SESSION_ENDED ||
	    core->session == WRK_SESSION_BACKOFF)
		return; /* of a connection that was given up */
	switch (event->kind) {
	case WRK_EVENT_CONNECTED:
		if (core->session == WRK_SESSION_CONNECTING)
			session_hello(core, event->text, event->proof, now_ns, actions);
		break;
	case WRK_EVENT_CONNECT_FAILED:
	case WRK_EVENT_DRIVER_LOST:
		session_without_driver(core, event, now_ns, actions);
		break;
	case WRK_EVENT_DRIVER_MESSAGE:
		if (core->session != WRK_SESSION_CONNECTING)
			session_frame(core, event->message, now_ns, actions);
		break;
	default:
		break;
	}
}

void wrk_session_timer(struct wrk_core *core, int64_t now_ns, struct wrk_actions *actions)
{
	const char *why;

	switch (core->session) {
	case WRK_SESSION_CONNECTING:
		if (now_ns >= core->wait_until_ns)
			session_drop(core, false, "it does not answer", now_ns, actions);
		break;
	case WRK_SESSION_HELLO_SENT:
	case WRK_SESSION_ATTACHED:
		if (core->read_ns < driver_dead_at(core))
			break;
		why = wrk_text(actions, "it has not been heard for %.1f s",
			       (double)core->dead_ns * 1e-9);
		session_drop(core, false, explain_loss(core, why, actions), now_ns, actions);
		break;
	case WRK_SESSION_BACKOFF:
		if (now_ns >= core->wait_until_ns)
			session_connect(core, now_ns, actions);
		break;
	default:
		break;
	}
}
