// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>
#include <base/secret.h>

/* The sessions of workers and clients: their states, and the table of them by connection. */

static const uint32_t session_transitions[DRV_SESSION_STATES] = {
	[DRV_SESSION_NEW] = FRAGI_TO(DRV_SESSION_LIVE),
	[DRV_SESSION_LIVE] = FRAGI_TO(DRV_SESSION_SUSPECT) | FRAGI_TO(DRV_SESSION_GONE),
	[DRV_SESSION_SUSPECT] = FRAGI_TO(DRV_SESSION_LIVE) | FRAGI_TO(DRV_SESSION_GONE),
	[DRV_SESSION_GONE] = 0,
};

static const char *const session_names[DRV_SESSION_STATES] = {[DRV_SESSION_NEW] = "new",
							      [DRV_SESSION_LIVE] = "live",
							      [DRV_SESSION_SUSPECT] = "suspect",
							      [DRV_SESSION_GONE] = "gone"};

/* What holds at the end of every step. */
static void session_check(const void *object)
{
	const struct drv_session *session = object;

	(void)session;
	assert(session->state == DRV_SESSION_LIVE || session->state == DRV_SESSION_SUSPECT);
	assert(drv_timer_is_set(&session->beat) && "it gets beats, and its silence is noticed");
	assert(session->placed >= 0 && (session->hosts != 0) == (session->placed != 0));
}

const struct fragi_machine drv_session_machine = {
	.name = "session",
	.state_names = session_names,
	.transitions = session_transitions,
	.count = DRV_SESSION_STATES,
	.check = session_check,
};

/* Each command of a person is a client that comes and goes; events name it where that matters. */
enum fragi_log_level drv_session_event_level(const struct drv_session *session)
{
	return session->role == FW_ROLE_CLIENT ? FRAGI_LOG_DEBUG : FRAGI_LOG_INFO;
}

const char *drv_session_role(const struct drv_session *session)
{
	return session->role == FW_ROLE_CLIENT ? "client" : "worker";
}

void drv_session_transition(struct drv_session *session, enum drv_session_state to)
{
	struct drv_core *core = session->core;
	bool legal = fragi_machine_transition(&drv_session_machine, session->state, to);

	drv_log(core, legal ? FRAGI_LOG_DEBUG : FRAGI_LOG_ERROR, NULL,
		"%s %s, session %llu: %s -> %s%s", drv_session_role(session), session->name,
		(unsigned long long)session->number, session_names[session->state],
		session_names[to], fragi_machine_remark(legal));
	if (legal)
		session->state = to;
	else
		core->illegal_transitions++;
}

/* Returns where the session of that connection is, or would be. */
static size_t session_index(const struct drv_core *core, uint64_t connection)
{
	size_t low = 0, high = core->session_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (core->connections[middle] < connection)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct drv_session *drv_session_find(const struct drv_core *core, uint64_t connection)
{
	size_t i = session_index(core, connection);

	return i < core->session_count && core->connections[i] == connection ? core->sessions[i]
									     : NULL;
}

struct drv_session *drv_session_worker(const struct drv_core *core, const char *name)
{
	for (size_t i = 0; i < core->session_count; i++)
		if (core->sessions[i]->role == FW_ROLE_WORKER &&
		    strcmp(core->sessions[i]->name, name) == 0)
			return core->sessions[i];
	return NULL;
}

int drv_session_insert(struct drv_core *core, struct drv_session *session)
{
	size_t i = session_index(core, session->connection);

	if (core->session_count == core->session_capacity) {
		size_t capacity = core->session_capacity == 0 ? 16 : core->session_capacity * 2;
		struct drv_session **sessions =
			fragi_realloc(core->sessions, capacity * sizeof(*sessions));
		uint64_t *connections;

		if (sessions == NULL)
			return -ENOMEM;
		core->sessions = sessions;
		connections = fragi_realloc(core->connections, capacity * sizeof(*connections));
		if (connections == NULL)
			return -ENOMEM;
		core->connections = connections;
		core->session_capacity = capacity;
	}
	memmove(core->sessions + i + 1, core->sessions + i,
		(core->session_count - i) * sizeof(*core->sessions));
	memmove(core->connections + i + 1, core->connections + i,
		(core->session_count - i) * sizeof(*core->connections));
	core->sessions[i] = session;
	core->connections[i] = session->connection;
	core->session_count++;
	core->client_count += session->role == FW_ROLE_CLIENT;
	return 0;
}

struct drv_session *drv_session_named(const struct drv_core *core, const struct fw_hello *hello)
{
	for (size_t i = 0; hello->session != 0 && i < core->session_count; i++) {
		struct drv_session *session = core->sessions[i];

		if (session->id == hello->session &&
		    fragi_secret_equal(session->secret, hello->secret, FW_SECRET_BYTES))
			return session;
	}
	return NULL;
}

void drv_session_destroy(struct drv_session *session)
{
	drv_timer_cancel(&session->core->timers, &session->beat);
	drv_timers_release(&session->core->timers, 1);
	fragi_free(session->log_watch);
	fw_message_free(session->deferred);
	session->core->held_count -= session->held != NULL;
	fw_message_free(session->held);
	fragi_arena_fini(&session->arena);
	explicit_bzero(session->secret, sizeof(session->secret));
	fragi_free(session);
}

void drv_session_remove(struct drv_session *session)
{
	struct drv_core *core = session->core;
	size_t i = session_index(core, session->connection);
	struct drv_session **at = &core->dropped;

	assert(session->hosts == 0 && "no host names a session that is freed");
	while (*at != NULL && *at != session)
		at = &(*at)->next_dropped;
	if (*at != NULL)
		*at = session->next_dropped;
	core->session_count--;
	core->client_count -= session->role == FW_ROLE_CLIENT;
	memmove(core->sessions + i, core->sessions + i + 1,
		(core->session_count - i) * sizeof(*core->sessions));
	memmove(core->connections + i, core->connections + i + 1,
		(core->session_count - i) * sizeof(*core->connections));
	drv_session_destroy(session);
}

void drv_session_drop(struct drv_session *session, const char *why)
{
	struct drv_core *core = session->core;

	if (session->dropped != NULL)
		return;
	session->dropped = why;
	session->next_dropped = core->dropped;
	core->dropped = session;
}

/* "10.0.0.2:48284", "[::ffff:10.0.0.2]:48284": the address alone. */
static const char *host_of_peer(const char *peer, char *out, size_t size)
{
	const char *colon = strrchr(peer, ':');

	if (*peer == '[')
		peer++;
	if (strncmp(peer, "::ffff:", 7) == 0)
		peer += 7;
	snprintf(out, size, "%.*s", colon > peer ? (int)(colon - peer) : 0, peer);
	if (*out != '\0' && out[strlen(out) - 1] == ']')
		out[strlen(out) - 1] = '\0';
	return out;
}

const char *drv_session_translation(const struct drv_session *session)
{
	const char *local = session->local_address;
	char from[64];

	if (session->role != FW_ROLE_WORKER || *local == '\0')
		return NULL;
	if (strncmp(local, "::ffff:", 7) == 0)
		local += 7;
	host_of_peer(session->peer, from, sizeof(from));
	if (*from == '\0' || strcmp(from, local) == 0)
		return NULL;
	return drv_text(
		session->core,
		"worker %s connects from %s, but its own address is %s, so it is behind NAT, and it offers %s for data%s",
		session->name, from, local, session->worker_address,
		strcmp(session->worker_address, session->local_address) != 0
			? ""
			: drv_text(
				  session->core,
				  ", which others cannot reach; forward its data ports and start it with --worker-address %s:PORT-PORT and --announce-address %s",
				  local, from));
}

void drv_session_answer(struct drv_session *client, uint64_t seq, uint64_t run, const char *name,
			const struct fw_failure *failure)
{
	struct fw_message message = {.kind = FW_ANSWER, .reply_to = seq, .run = run};

	message.answer.name = name;
	if (failure != NULL)
		message.answer.failure = *failure;
	if (drv_send(client, &message) < 0)
		drv_session_drop(client, "no memory is left for an answer");
}

void drv_session_answer_failure(struct drv_session *client, uint64_t seq, const char *name,
				enum fragi_failure code, const char *sentence)
{
	drv_session_answer(client, seq, 0, name,
			   &(struct fw_failure){.code = code, .sentence = sentence});
}

bool drv_session_take_row(struct drv_core *core, const char *text)
{
	int64_t items = 1 + (int64_t)strnlen(text, FW_TEXT_MAX) / 64;

	if (core->items + DRV_REPLY_ITEMS - DRV_STEP_ITEMS < items)
		return false;
	core->items -= items;
	return true;
}

void drv_session_refuse(struct drv_core *core, uint64_t connection, const char *peer,
			const struct fw_message *hello, enum fragi_failure code,
			const char *sentence)
{
	struct fw_message message = {.kind = FW_REFUSED, .seq = 1, .reply_to = hello->seq};
	struct drv_action action = {.kind = DRV_DO_SEND, .connection = connection};

	drv_log(core, FRAGI_LOG_WARN, NULL, "refused %s: %s", peer, sentence);
	if (code == FRAGI_FAILURE_KEY_REFUSED)
		drv_refuse_key(core, peer, sentence);
	message.refused.failure = (struct fw_failure){code, sentence, NULL};
	if (fw_encode(&message, &action.frame, &action.frame_bytes) == 0)
		drv_emit(core, &action);
	drv_close(core, connection);
}

/* The peer may connect again. */
