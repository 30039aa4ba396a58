// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/hosts/adopt.h>
#include <driverd/core/hosts/swap.h>
#include <driverd/core/clients/subscription.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>
#include <base/secret.h>
#include <base/units.h>

#define SUGGESTIONS_MAX 8 /* similar names that are looked for when a worker comes */

/*
 * A worker or a client says HELLO and gets WELCOME; then beats go both ways. One that is silent for
 * a third of the time of death is suspected, at the time of death it is dead: its connection is
 * closed and, if it is a worker, its hosts are lost. It may come back as a new session at any time;
 * one session id is never used twice, so what it still runs is not ours.
 */

static void turn_away(struct drv_core *core, uint64_t connection, const char *peer)
{
	drv_log(core, FRAGI_LOG_WARN, NULL, "turned %s away: no memory is left for a session",
		peer);
	drv_close(core, connection);
}

/*
 * Drops the session of a worker that came back before its old connection was seen to break. One
 * that does not know the secret is another one, and gets a session of its own.
 */
static void drop_former(struct drv_core *core, const struct fw_hello *hello)
{
	struct drv_session *former = drv_session_named(core, hello);

	if (former != NULL && former->role == hello->role)
		drv_session_lost(former, true,
				 drv_pause_why(core, "it came back on a new connection"));
}

/*
 * Returns the N of "name#N" that a worker is called: 1 for the name itself, 0 for any other. Names
 * beyond `most` do not matter.
 */
static size_t number_of(const char *taken, const char *name, size_t most)
{
	size_t length = strlen(name);
	int64_t number;

	if (strncmp(taken, name, length) != 0)
		return 0;
	if (taken[length] == '\0')
		return 1;
	if (taken[length] != '#' || fragi_parse_i64(taken + length + 1, &number) < 0 ||
	    number < 2 || (uint64_t)number > most)
		return 0;
	return (size_t)number;
}

/*
 * The name that is wished, or with the lowest number that makes it different from all of its role.
 * A worker that had such a name from this driver, or from the one before, keeps it: drains and the
 * places of hosts are noted by it.
 */
static const char *choose_name(struct drv_session *session, const char *wished, const char *last)
{
	struct drv_core *core = session->core;
	struct fragi_arena *arena = &session->arena;
	char name[FRAG_NAME_MAX * 2 + 16];
	size_t most = core->session_count + 1, number = 1;
	bool *taken = fragi_arena_alloc(&core->actions->arena, most + 1);

	if (taken == NULL)
		return NULL;
	snprintf(name, sizeof(name), "%.126s",
		 wished[0] != '\0' ? wished : drv_session_role(session));
	if (session->role == FW_ROLE_WORKER && number_of(last, name, SIZE_MAX) != 0 &&
	    drv_session_worker(core, last) == NULL)
		return fragi_arena_strdup(arena, last);
	for (size_t i = 0; i < core->session_count; i++)
		if (core->sessions[i]->role == session->role)
			taken[number_of(core->sessions[i]->name, name, most)] = true;
	while (taken[number])
		number++;
	return number == 1 ? fragi_arena_strdup(arena, name)
			   : fragi_arena_printf(arena, "%s#%zu", name, number);
}

/* Returns what events name the peer by: what it has proven, or where it is. */
static const char *who_of(struct drv_session *session, const struct drv_event *event)
{
	const struct fw_identity *identity = event->identity;

	if (identity != NULL)
		return fragi_arena_printf(&session->arena, "%s %s",
					  identity->serial != 0 ? "key" : "certificate",
					  identity->name);
	if (event->user != NULL)
		return fragi_arena_printf(&session->arena, "user %s", event->user);
	return fragi_arena_strdup(&session->arena, event->peer);
}

/* Takes what the worker offers. Returns whether it is other than before. */
static bool take_amounts(struct drv_session *session, const int64_t has[FRAGI_AMOUNTS],
			 bool is_survey)
{
	bool is_other = false;

	for (int i = 0; i < FRAGI_AMOUNTS; i++) {
		const enum fragi_amount amount = (enum fragi_amount)i;
		const int64_t value = fragi_amount_clamp(amount, (uint64_t)has[i]);

		if (is_survey && !fragi_amount_is_surveyed(amount))
			continue;
		is_other = is_other || session->has[i] != value;
		session->has[i] = value;
	}
	return is_other;
}

/* Returns NULL when memory is short. */
static const char *const *copy_texts(struct fragi_arena *arena, const char *const *texts,
				     uint32_t count)
{
	const char **copies = fragi_arena_alloc(arena, count * sizeof(*copies));

	for (uint32_t i = 0; copies != NULL && i < count; i++) {
		copies[i] = fragi_arena_strdup(arena, texts[i]);
		if (copies[i] == NULL)
			return NULL;
	}
	return copies;
}

static int session_copy(struct drv_session *session, const struct drv_event *event,
			const struct fw_hello *hello)
{
	struct fragi_arena *arena = &session->arena;

	session->fragments = copy_texts(arena, hello->fragments, hello->fragment_count);
	session->fragment_count = hello->fragment_count;
	session->labels = copy_texts(arena, hello->labels, hello->label_count);
	session->label_count = hello->label_count;
	session->name = choose_name(session, hello->name, hello->last_name);
	session->peer = fragi_arena_strdup(arena, event->peer);
	session->who = who_of(session, event);
	if (event->identity != NULL)
		session->identity = *event->identity;
	session->worker_address = fragi_arena_strdup(arena, hello->worker_address);
	session->local_address = fragi_arena_strdup(arena, hello->local_address);
	session->node = fragi_arena_strdup(arena, hello->node);
	session->clock = fragi_arena_strdup(arena, hello->clock);
	session->memory = fragi_arena_strdup(arena, hello->memory);
	session->no_memory = fragi_arena_strdup(arena, hello->no_memory);
	session->no_limits = fragi_arena_strdup(arena, hello->no_limits);
	session->limited = fragi_arena_strdup(arena, hello->limited);
	session->is_drained = session->role == FW_ROLE_WORKER && session->name != NULL &&
			      drv_drain_is(session->core, session->name);
	take_amounts(session, hello->has, false);
	drv_mig_offer(&session->mig, hello->mig);
	return session->fragments != NULL && session->labels != NULL &&
			       session->no_limits != NULL && session->limited != NULL &&
			       session->name != NULL && session->peer != NULL &&
			       session->who != NULL && session->worker_address != NULL &&
			       session->local_address != NULL && session->node != NULL &&
			       session->clock != NULL && session->memory != NULL &&
			       session->no_memory != NULL
		       ? 0
		       : -ENOMEM;
}

static void session_beat(struct drv_timer *timer, int64_t now_ns, void *arg)
{
	struct drv_session *session = timer->owner;
	struct drv_core *core = arg;
	struct fw_message beat = {.kind = FW_BEAT};
	int64_t dead_ns = core->config.dead_ns, silent_ns = now_ns - session->heard_ns;
	const char *why = drv_adopt_why_late(session);

	if (silent_ns >= dead_ns)
		why = drv_text(core, "it has not been heard for %.1f s", (double)silent_ns * 1e-9);
	if (why != NULL) {
		drv_session_lost(session, true, why);
		return;
	}
	if (silent_ns >= dead_ns / 3 && session->state == DRV_SESSION_LIVE) {
		drv_session_transition(session, DRV_SESSION_SUSPECT);
		drv_log(core, FRAGI_LOG_WARN, NULL, "%s %s has not been heard for %.1f s",
			drv_session_role(session), session->name, (double)silent_ns * 1e-9);
	}
	drv_lease_fill(session, &beat.beat);
	drv_send(session, &beat);
	drv_set(core, timer, now_ns + core->config.beat_ns);
	if (session->role == FW_ROLE_CLIENT)
		drv_client_beat(session);
}

/*
 * Whether --fragments of a worker names a fragment of the application: "fragment", "app/fragment"
 */
static bool names_fragment(const struct drv_app *app, const char *name)
{
	size_t length = strlen(app->spec->application);

	if (fragi_strmap_get(&app->by_name, name) != NULL || strcmp(name, "all") == 0)
		return true;
	return strncmp(name, app->spec->application, length) == 0 && name[length] == '/' &&
	       fragi_strmap_get(&app->by_name, name + length + 1) != NULL;
}

/* Names that no application knows are most likely misspelt. */
static void warn_of_names(struct drv_session *session, const struct drv_app *app)
{
	const struct fragi_spec *spec = app->spec;
	const char **names = fragi_arena_alloc(&session->core->actions->arena,
					       (spec->fragment_count + 1) * sizeof(*names));
	const char *near;
	int unknown = 0;

	for (size_t i = 0; names != NULL && i < spec->fragment_count; i++)
		names[i] = spec->fragments[i].name;
	for (uint32_t i = 0; names != NULL && i < session->fragment_count; i++) {
		if (names_fragment(app, session->fragments[i]))
			continue;
		/* the search for a similar name compares with all of them */
		near = unknown++ < SUGGESTIONS_MAX
			       ? fragi_suggest(session->fragments[i], names, spec->fragment_count)
			       : NULL;
		drv_log(session->core, FRAGI_LOG_WARN, app->spec->application,
			"worker %s names the fragment \"%s\", which this application does not have%s%s%s",
			session->name, session->fragments[i],
			near != NULL ? "; did you mean \"" : "", near != NULL ? near : "",
			near != NULL ? "\"?" : "");
	}
}

static void warn_of_translation(const struct drv_session *session)
{
	const char *text = drv_session_translation(session);
	bool is_offered = strcmp(session->worker_address, session->local_address) == 0;

	if (text != NULL)
		drv_log(session->core, is_offered ? FRAGI_LOG_WARN : FRAGI_LOG_INFO, NULL, "%s",
			text);
}

static int session_welcome(struct drv_session *session, const struct drv_event *event,
			   const struct fw_message *hello)
{
	const struct fw_identity *identity = event->identity;
	struct drv_core *core = session->core;
	struct fw_message message = {.kind = FW_WELCOME, .reply_to = hello->seq};

	core->config.random(core->config.random_arg, &session->id, sizeof(session->id));
	core->config.random(core->config.random_arg, session->secret, sizeof(session->secret));
	session->id += session->id == 0;
	session->number = ++core->last_session;
	message.welcome = (struct fw_welcome){
		.session = session->id,
		.name = session->name,
		.beat_ns = core->config.beat_ns,
		.dead_ns = core->config.dead_ns,
		.version = core->config.version,
		.takes_lines = session->role == FW_ROLE_WORKER && !core->config.is_local,
		.keeps_hosts = session->role == FW_ROLE_WORKER && core->config.adopts};
	memcpy(message.welcome.secret, session->secret, sizeof(session->secret));
	drv_emit(core,
		 &(struct drv_action){.kind = DRV_DO_ADMIT, .connection = session->connection});
	if (drv_send(session, &message) < 0)
		return -ENOMEM;
	drv_session_transition(session, DRV_SESSION_LIVE);
	session->beat = (struct drv_timer){.fire = session_beat, .owner = session};
	drv_set(core, &session->beat, core->now_ns + core->config.beat_ns);
	drv_log(core, drv_session_event_level(session), NULL, "%s %s joined from %s%s%s",
		drv_session_role(session), session->name, session->peer,
		identity == NULL        ? ""
		: identity->serial != 0 ? " with the key "
					: " with the certificate ",
		identity != NULL ? identity->name : "");
	warn_of_translation(session);
	return 0;
}

static bool is_full(const struct drv_core *core, enum fw_role role, bool is_admin)
{
	size_t clients_max = DRV_CLIENTS_MAX + (is_admin ? DRV_ADMINS_MAX : 0);

	return role == FW_ROLE_CLIENT ? core->client_count >= clients_max
				      : core->session_count - core->client_count >= DRV_WORKERS_MAX;
}

/*
 * The roles of a peer: what it has proven, or those of its user. Without either, as by --insecure,
 * it may be a worker or a client.
 */
static uint32_t roles_of(const struct drv_event *event)
{
	if (event->identity != NULL)
		return event->identity->roles;
	return event->user_roles != 0 ? event->user_roles : FW_USER_ROLES;
}

/* Returns the roles of which a peer needs one to join so. A reporter has the key of its worker. */
static uint32_t roles_for(enum fw_role role)
{
	return role == FW_ROLE_CLIENT ? FW_ROLE_BIT(FW_ROLE_CLIENT) | FW_ROLE_BIT(FW_ROLE_OBSERVER)
				      : FW_ROLE_BIT(FW_ROLE_WORKER);
}

/* Whether a peer may join so. It is refused with a sentence if not. */
static bool may_join(struct drv_core *core, const struct drv_event *event,
		     const struct fw_message *message)
{
	const struct fw_identity *identity = event->identity;
	enum fw_role role = message->hello.role;
	struct frag_err err = FRAG_ERR_INIT;
	enum fragi_failure code = FRAGI_FAILURE_NONE;

	if (fw_hello_check(&message->hello, &err) < 0) {
		code = FRAGI_FAILURE_VERSION_REFUSED;
	} else if ((roles_of(event) & roles_for(role)) == 0) {
		code = identity != NULL ? FRAGI_FAILURE_KEY_REFUSED : FRAGI_FAILURE_USER_REFUSED;
		frag_err_set(&err, -EACCES, "its %s %s is not for a %s",
			     identity == NULL        ? "user"
			     : identity->serial != 0 ? "key"
						     : "certificate",
			     identity != NULL ? identity->name : event->user,
			     role == FW_ROLE_CLIENT ? "client" : "worker");
	} else if (event->is_local && role != FW_ROLE_CLIENT) {
		code = FRAGI_FAILURE_SESSION_REFUSED;
		frag_err_set(&err, -EACCES,
			     "only clients may join over the unix socket; a worker connects to %s",
			     core->config.address);
	} else if (role != FW_ROLE_REPORTER && is_full(core, role, event->is_admin)) {
		code = FRAGI_FAILURE_DRIVER_FULL;
		frag_err_set(&err, -EAGAIN, "driverd has as many %s as it takes",
			     role == FW_ROLE_CLIENT ? "clients" : "workers");
	}
	if (code != FRAGI_FAILURE_NONE)
		drv_session_refuse(core, event->connection, event->peer, message, code, err.text);
	return code == FRAGI_FAILURE_NONE;
}

void drv_session_hello(struct drv_core *core, const struct drv_event *event,
		       const struct fw_message *message)
{
	uint64_t connection = event->connection;
	struct drv_session *session;

	if (!may_join(core, event, message))
		return;
	if (message->hello.role == FW_ROLE_REPORTER) {
		drv_reporter_hello(core, event, message);
		return;
	}
	drop_former(core, &message->hello);
	session = fragi_calloc(1, sizeof(*session));
	if (session == NULL || drv_timers_reserve(&core->timers, 1) < 0) {
		fragi_free(session);
		turn_away(core, connection, event->peer);
		return;
	}
	session->core = core;
	session->connection = connection;
	session->role = message->hello.role;
	session->roles = roles_of(event);
	session->minor = message->hello.minor;
	session->heard_ns = core->now_ns;
	session->heard_again_ns = INT64_MIN / 2;
	if (session_copy(session, event, &message->hello) < 0 ||
	    drv_session_insert(core, session) < 0) {
		drv_session_destroy(session);
		turn_away(core, connection, event->peer);
		return;
	}
	if (session_welcome(session, event, message) < 0) {
		drv_session_remove(session);
		turn_away(core, connection, event->peer);
		return;
	}
	drv_session_waits(session, message->hello.waits_for);
	drv_lease_heard(session, 0);
	drv_adopt_joined(session, &message->hello);
	if (session->role == FW_ROLE_CLIENT)
		return;
	drv_away_drop(core, session->name);
	drv_history_add(core, FW_NOTICE_WORKER_JOINED, NULL, session->who, "%s", session->name);
	for (size_t i = 0; session->fragment_count != 0 && i < core->app_count; i++)
		if (core->apps[i]->state == DRV_APP_WAITING)
			warn_of_names(session, core->apps[i]);
	drv_app_wake_all(core);
}

void drv_session_refuse_stranger(struct drv_core *core, uint64_t connection, const char *peer,
				 const struct fw_message *message)
{
	drv_log(core, FRAGI_LOG_WARN, NULL, "closed the connection of %s: it sent %s before HELLO",
		peer, fw_kind_name(message->kind));
	drv_close(core, connection);
}

void drv_session_heard(struct drv_session *session)
{
	int64_t silent_ns = session->core->now_ns - session->heard_ns;

	session->heard_ns = session->core->now_ns;
	if (session->state != DRV_SESSION_SUSPECT)
		return;
	drv_session_transition(session, DRV_SESSION_LIVE);
	session->heard_again_ns = session->heard_ns;
	drv_swap_heard_again(session, silent_ns);
	drv_set(session->core, &session->beat, session->core->now_ns); /* its leases run out */
	drv_log(session->core, FRAGI_LOG_INFO, NULL, "%s %s is heard again",
		drv_session_role(session), session->name);
}

void drv_session_waits(struct drv_session *session, const char *why)
{
	struct drv_core *core = session->core;
	bool waited = session->waits_for[0] != '\0';

	snprintf(session->waits_for, sizeof(session->waits_for), "%s", why);
	if (why[0] != '\0' && !waited)
		drv_log(core, FRAGI_LOG_WARN, NULL, "worker %s can run nothing yet: %s",
			session->name, why);
	if (why[0] == '\0' && waited)
		drv_app_wake_all(core);
}

void drv_session_gpus(struct drv_session *session, const struct fw_beat *beat)
{
	const struct drv_mig before = session->mig;

	if (!beat->has_gpus)
		return;
	drv_mig_offer(&session->mig, beat->mig);
	if (take_amounts(session, beat->has, true) ||
	    memcmp(&before, &session->mig, sizeof(before)) != 0)
		drv_app_wake_all(session->core);
}

void drv_session_lost(struct drv_session *session, bool close, const char *why)
{
	struct drv_core *core = session->core;
	enum fragi_log_level level = close ? FRAGI_LOG_INFO : drv_session_event_level(session);
	bool mattered = false;

	if (close)
		drv_close(core, session->connection);
	if (session->reporter != 0)
		drv_close(core, session->reporter);
	if (session->held_bytes != 0)
		drv_persist_release(core, session->held_bytes);
	drv_session_transition(session, DRV_SESSION_GONE);
	drv_subscription_end(session);
	drv_examine_lost(session);
	drv_adopt_session_lost(session);
	drv_next_session_lost(session);
	if (session->role == FW_ROLE_WORKER)
		drv_history_add(core, FW_NOTICE_WORKER_LEFT, NULL, session->who, "%s: %s",
				session->name, why);
	if (session->role == FW_ROLE_WORKER)
		drv_away_add(session);
	while (session->first_host != NULL)
		mattered = drv_host_lose_some(session, why) || mattered;
	if (session->role == FW_ROLE_WORKER) /* what it named is for others now */
		drv_app_wake_all(core);
	drv_log(core, mattered ? FRAGI_LOG_DEBUG : level, NULL, "%s %s left: %s",
		drv_session_role(session), session->name, why);
	drv_session_remove(session);
}

void drv_session_lose_dropped(struct drv_core *core)
{
	while (core->dropped != NULL)
		drv_session_lost(core->dropped, true, core->dropped->dropped);
}

void drv_session_revoke(struct drv_core *core, const struct drv_event *event)
{
	struct drv_session *session = drv_session_find(core, event->connection);
	struct fw_message message = {.kind = FW_REFUSED};
	const char *why =
		drv_text(core, "its key %s is no longer in the key file", event->identity->name);

	drv_log(core, FRAGI_LOG_WARN, NULL, "closes the connection of %s: %s", event->peer, why);
	if (session == NULL) {
		drv_close(core, event->connection);
		return;
	}
	message.refused.failure = (struct fw_failure){FRAGI_FAILURE_KEY_REFUSED, why, NULL};
	(void)drv_send(session, &message);
	session->is_revoked = true;
	drv_session_lost(session, true, why);
}
