// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/hosts/adopt.h>
#include <driverd/core/applications/parameter.h>
#include <driverd/core/hosts/swap.h>
#include <driverd/core/clients/subscription.h>
#include <driverd/core/clients/tap.h>

#include <assert.h>
#include <errno.h>
#include <string.h>

#include <base/alloc.h>
#include <base/beat.h>
#include <base/sentence.h>

static void or_default(int64_t *value, int64_t fallback)
{
	if (*value == 0)
		*value = fallback;
}

int drv_core_create(const struct drv_config *config, struct drv_core **out_core)
{
	struct drv_core *core;
	const int64_t s = 1000000000;

	if (config->random == NULL)
		return -EINVAL;
	core = fragi_calloc(1, sizeof(*core));
	if (core == NULL)
		return -ENOMEM;
	if (drv_history_init(&core->history) < 0) {
		fragi_free(core);
		return -ENOMEM;
	}
	core->config = *config;
	core->last_awake = &core->awake;
	or_default(&core->config.beat_ns, FRAGI_BEAT_NS);
	or_default(&core->config.dead_ns, FRAGI_DEAD_NS);
	or_default(&core->config.wire_ns, FRAGI_WIRE_NS);
	or_default(&core->config.drain_ns, 10 * s);
	or_default(&core->config.close_ns, 2 * s);
	or_default(&core->config.kill_ns, 1 * s);
	or_default(&core->config.report_missing_ns, 10 * s);
	or_default(&core->config.progress_ns, 1 * s);
	or_default(&core->config.adopt_ns, 8 * s);
	*out_core = core;
	return 0;
}

static void host_fini(struct drv_host *host)
{
	fw_message_free(host->tables);
	fw_message_free(host->now.prepared);
	host->tables = host->now.prepared = NULL;
	drv_account_fini(host);
	fragi_free(host->texts);
	drv_process_fini(&host->next);
	drv_replacement_fini(&host->replacement);
	drv_restarts_fini(&host->restarts);
}

static void app_destroy(struct drv_app *app)
{
	for (uint32_t i = 0; i < app->host_count; i++)
		host_fini(&app->hosts[i]);
	drv_adopt_fini(app);
	drv_swap_fini(app);
	drv_parameter_fini(app);
	drv_suspicion_fini(app);
	drv_flows_resolving_end(app);
	drv_app_free(app);
}

void drv_core_destroy(struct drv_core *core)
{
	if (core == NULL)
		return;
	for (size_t i = 0; i < core->app_count; i++)
		app_destroy(core->apps[i]);
	for (size_t i = 0; i < core->session_count; i++) {
		drv_subscription_end(core->sessions[i]);
		drv_session_destroy(core->sessions[i]);
	}
	fragi_free(core->apps);
	fragi_free(core->sessions);
	fragi_free(core->connections);
	drv_timers_fini(&core->timers);
	drv_history_fini(&core->history);
	drv_lines_fini(&core->lines);
	drv_drain_fini(core);
	drv_away_fini(core);
	drv_lease_fini(core);
	drv_held_answers_fini(core);
	while (core->placed != NULL) {
		struct drv_placed *placed = core->placed;

		core->placed = placed->next;
		fragi_free(placed);
	}
	fragi_free(core);
}

void drv_core_set_clock(struct drv_core *core, int64_t realtime_offset_ns)
{
	core->config.realtime_offset_ns = realtime_offset_ns;
}

void drv_core_set_machine(struct drv_core *core, const struct drv_machine *machine)
{
	core->machine = *machine;
}

/* Forgets the applications that have ended: their summaries were valid until this step. */
static void forget_ended(struct drv_core *core)
{
	size_t kept = 0;

	if (core->over_count == 0)
		return;
	core->over_count = 0;
	for (size_t i = 0; i < core->app_count; i++) {
		if (core->apps[i]->state == DRV_APP_ENDED)
			app_destroy(core->apps[i]);
		else
			core->apps[kept++] = core->apps[i];
	}
	core->app_count = kept;
}

/*
 * A frame of a worker about one of its hosts; others than its own, and old epochs, are not heard.
 */
static void host_message(struct drv_core *core, struct drv_session *session,
			 struct fw_message *message)
{
	struct drv_host *host = drv_host_find(core, message->run, message->host);

	if (host != NULL && host->now.session == session && host->now.epoch == message->epoch) {
		drv_app_wake(host->app);
		if (message->kind == FW_HOST_WIRED)
			drv_tap_begin(host);
		drv_host_message(host, message);
		return;
	}
	if (host != NULL && drv_next_is(host, session, message->epoch)) {
		drv_app_wake(host->app);
		drv_next_message(host, message);
		return;
	}
	drv_log(core, FRAGI_LOG_DEBUG, NULL,
		"ignored %s of worker %s for host %u of run %llu, epoch %llu: not there",
		fw_kind_name(message->kind), session->name, message->host,
		(unsigned long long)message->run, (unsigned long long)message->epoch);
	fw_message_free(message);
}

/* A message on a connection that has no session of its own: a stranger's, or a reporter's. */
static void stranger_message(struct drv_core *core, const struct drv_event *event,
			     struct fw_message *message)
{
	struct drv_session *kept = drv_reporter_session(core, event->connection);

	if (kept != NULL && drv_reporter_may_send(kept, message)) {
		host_message(core, kept, message);
		return;
	}
	if (kept == NULL && message->kind == FW_HELLO)
		drv_session_hello(core, event, message);
	else if (kept == NULL)
		drv_session_refuse_stranger(core, event->connection, event->peer, message);
	fw_message_free(message);
}

static void core_closed(struct drv_core *core, const struct drv_event *event)
{
	struct drv_session *session = drv_session_find(core, event->connection);
	struct drv_session *kept =
		session == NULL ? drv_reporter_session(core, event->connection) : NULL;

	if (session != NULL)
		drv_session_lost(session, false,
				 session->role == FW_ROLE_WORKER ? drv_pause_why(core, event->text)
								 : event->text);
	if (kept != NULL)
		kept->reporter = 0;
}

static void core_message(struct drv_core *core, struct drv_event *event)
{
	struct drv_session *session = drv_session_find(core, event->connection);
	struct fw_message *message = event->message;

	if (session == NULL) {
		stranger_message(core, event, message);
		return;
	}
	drv_session_heard(session);
	if (session->role == FW_ROLE_CLIENT) {
		drv_client_message(session, message);
		return;
	}
	switch (message->kind) {
	case FW_HOST_REPORT:
		drv_adopt_report(session, message);
		break;
	case FW_REPORTED:
		drv_adopt_reported(session);
		fw_message_free(message);
		break;
	case FW_BEAT:
		drv_session_waits(session, message->beat.waits_for);
		drv_session_gpus(session, &message->beat);
		drv_lease_heard(session, message->beat.sent_ns);
		fw_message_free(message);
		break;
	case FW_HOST_TAPPED:
		drv_tap_take(session, message);
		fw_message_free(message);
		break;
	case FW_EXAMINED:
		drv_examine_take(session, message);
		fw_message_free(message);
		break;
	case FW_LEAVE:
		drv_host_leave(session);
		session->has_left = true;
		drv_session_lost(session, true, message->leave.reason);
		fw_message_free(message);
		break;
	case FW_HOST_PREPARED:
	case FW_HOST_WIRED:
	case FW_HOST_STARTED:
	case FW_HOST_EVENT:
	case FW_HOST_SET_DONE:
	case FW_HOST_LINES:
	case FW_HOST_SAVED:
	case FW_HOST_STATS:
	case FW_HOST_EXIT:
	case FW_HOST_PAST:
		host_message(core, session, message);
		break;
	default:
		drv_session_lost(session, true,
				 drv_text(core, "it sent %s, which is not for a driver",
					  fw_kind_name(message->kind)));
		fw_message_free(message);
		break;
	}
}

static void core_app(struct drv_core *core, const struct drv_event_app *event)
{
	struct drv_app *app = drv_app_create(core, event, 0);

	if (app != NULL)
		drv_app_begin(app);
}

static void core_stop(struct drv_core *core, int signal)
{
	core->stops++;
	for (size_t i = 0; i < core->app_count; i++) {
		core->apps[i]->next.run = 0;
		if (core->stops == 1)
			drv_app_stop(core->apps[i], signal);
		else
			drv_app_stop_at_once(core->apps[i], signal);
	}
}

static void log_turn(struct drv_core *core, const char *why_not)
{
	bool is_behind = why_not != NULL;

	fragi_sentence(core->behind_why, sizeof(core->behind_why), "%s", is_behind ? why_not : "");
	if (is_behind == core->is_behind)
		return;
	core->is_behind = is_behind;
	if (is_behind) {
		drv_log(core, FRAGI_LOG_ERROR, NULL,
			"%s; applications run on, none can be started, and what happens from now on is tried again until it is written",
			why_not);
		/* this is tried again too, and shows when there is room */
		drv_history_add(core, FW_NOTICE_REFUSED, NULL, "", "%s", why_not);
	} else {
		drv_log(core, FRAGI_LOG_INFO, NULL, "state is kept again");
		drv_app_wake_all(core); /* hosts may be moved again */
	}
}

/* Workers keep what they know of a run until its end is on the disk. */
static void send_ends(struct drv_core *core)
{
	for (struct drv_ended *ended = core->history.ended; ended != NULL; ended = ended->next) {
		struct fw_message message = {.kind = FW_APP_ENDED, .run = ended->run};

		if (!ended->is_untold || ended->change > core->settled_change)
			continue;
		ended->is_untold = false;
		message.app_ended.exit_code = ended->exit_code;
		for (size_t i = 0; i < core->session_count; i++)
			if (core->sessions[i]->role == FW_ROLE_WORKER)
				(void)drv_send(core->sessions[i], &message);
	}
}

/* All records up to change were tried; why_not: NULL, or why they are not on the disk. */
static void core_persisted(struct drv_core *core, uint64_t change, const char *why_not)
{
	assert(change >= core->settled_change && change <= core->last_change);
	core->settled_change = change;
	if (why_not == NULL)
		core->written_change = change;
	log_turn(core, why_not);
	drv_held_answers_send(core, change, why_not == NULL);
	if (why_not == NULL)
		send_ends(core);
	for (size_t i = 0; i < core->app_count; i++) {
		struct drv_app *app = core->apps[i];

		if (app->state == DRV_APP_NEW && app->kept.change <= change)
			drv_app_persisted(app, why_not);
		if (app->moving != NULL || app->replaced_count != 0)
			drv_app_wake(app);
	}
}

/* It has left: its connection is closed, or it is back on another one. */
static bool has_left(const struct drv_core *core, const struct drv_event *event)
{
	const struct drv_session *session = NULL;

	if (event->kind == DRV_EVENT_CLOSED)
		session = drv_session_find(core, event->connection);
	else if (event->kind == DRV_EVENT_MESSAGE && event->message->kind == FW_HELLO)
		session = drv_session_named(core, &event->message->hello);
	return session != NULL && session->role == FW_ROLE_WORKER;
}

bool drv_core_is_given_up(const struct drv_core *core, const struct drv_event *event,
			  int64_t now_ns)
{
	return core->config.adopts && !core->leaves && core->stops == 0 &&
	       drv_pause_is_death(core, now_ns) && has_left(core, event);
}

/*
 * Checks the objects that may have changed, and one session and application that should not have.
 */
static void check_invariants(const struct drv_core *core, const struct drv_event *event)
{
	const struct drv_session *session = drv_session_find(core, event->connection);

	assert(drv_core_step_items(core) <= DRV_STEP_ITEMS_MAX);
	if (session != NULL)
		fragi_machine_check(&drv_session_machine, session);
	if (core->session_count != 0)
		fragi_machine_check(&drv_session_machine,
				    core->sessions[core->turn % core->session_count]);
	for (size_t i = 0; i < core->app_count; i++) {
		const struct drv_app *app = core->apps[i];

		if (app->turn.decided != core->turn - 1 && i != core->turn % core->app_count)
			continue;
		fragi_machine_check(&drv_app_machine, app);
		for (uint32_t k = 0; k < app->host_count; k++)
			fragi_machine_check(&drv_host_machine, &app->hosts[k]);
	}
}

int drv_core_step(struct drv_core *core, struct drv_event *event, int64_t real_now_ns,
		  struct drv_actions *actions)
{
	bool has_paused;

	core->actions = actions;
	has_paused = drv_pause_begin_step(core, real_now_ns);
	core->now_ns = fragi_awake_read(&core->clock, drv_core_deadline_ns(core),
					core->config.beat_ns, real_now_ns);
	core->real_ns = real_now_ns;
	core->items = DRV_STEP_ITEMS;
	core->work_left = false;
	if (core->born_ns == 0)
		core->born_ns = core->now_ns;
	drv_command_restart(core);
	forget_ended(core);
	drv_restore_step(core, event->kind == DRV_EVENT_TIMER);
	switch (event->kind) {
	case DRV_EVENT_APP:
		core_app(core, &event->app);
		break;
	case DRV_EVENT_MESSAGE:
		core_message(core, event);
		break;
	case DRV_EVENT_CLOSED:
		core_closed(core, event);
		break;
	case DRV_EVENT_UNHEARD:
		drv_away_unheard(core, event->connection);
		break;
	case DRV_EVENT_REVOKED:
		drv_session_revoke(core, event);
		break;
	case DRV_EVENT_KEYS:
		drv_away_revoke(core, event);
		break;
	case DRV_EVENT_KEYS_KEPT:
		drv_history_add(core, FW_NOTICE_REFUSED, NULL, "", "%s", event->text);
		break;
	case DRV_EVENT_STRANGER:
		drv_refuse_key(core, event->peer, event->text);
		break;
	case DRV_EVENT_TIMER:
		core->pause.defers = has_paused && !core->pause.defers;
		if (core->pause.defers) /* what has arrived meanwhile comes first */
			core->work_left = true;
		else
			drv_timers_run(&core->timers, core->now_ns, core);
		break;
	case DRV_EVENT_LEAVE:
		drv_lease_leave(core);
		break;
	case DRV_EVENT_STOP:
		core_stop(core, event->signal);
		break;
	case DRV_EVENT_PERSISTED:
		core_persisted(core, event->change, event->text);
		break;
	}
	drv_client_serve_held(core);
	drv_session_lose_dropped(core);
	drv_pause_catch_up(core);
	drv_decide(core);
	core->turn++;
	if (core->has_room)
		drv_app_wake_all(core);
	core->has_room = false;
	drv_subscription_serve(core);
	drv_session_lose_dropped(core);
	if (!actions->out_of_memory)
		check_invariants(core, event);
	core->actions = NULL;
	return actions->out_of_memory ? -ENOMEM : 0;
}

int64_t drv_core_deadline_ns(const struct drv_core *core)
{
	return fragi_awake_to_real(
		&core->clock, core->work_left ? core->now_ns : drv_timers_next_ns(&core->timers));
}

int64_t drv_core_step_items(const struct drv_core *core)
{
	return DRV_STEP_ITEMS - core->items;
}

size_t drv_core_session_count(const struct drv_core *core)
{
	return core->session_count;
}

const struct fw_identity *drv_core_identity(const struct drv_core *core, uint64_t connection,
					    const struct fw_identity *first)
{
	const struct drv_session *session = drv_session_find(core, connection);

	return session != NULL && session->identity.name[0] != '\0' ? &session->identity : first;
}

const char *drv_core_failed(const struct drv_core *core)
{
	const struct drv_ended *last = core->history.ended;

	return last != NULL && last->result == FRAGI_SUMMARY_FAILED &&
			       drv_app_named(core, last->name) == NULL
		       ? last->name
		       : NULL;
}

int64_t drv_core_placed(const struct drv_core *core)
{
	int64_t placed = 0;

	for (size_t i = 0; i < core->session_count; i++)
		placed += core->sessions[i]->placed;
	return placed;
}

int64_t drv_core_load(const struct drv_core *core)
{
	int64_t load = 0;

	for (size_t i = 0; i < core->session_count; i++)
		load += core->sessions[i]->load;
	return load;
}

bool drv_core_is_drained(const struct drv_core *core, const char *worker)
{
	return drv_drain_is(core, worker);
}

enum drv_app_state drv_core_app_state(const struct drv_core *core)
{
	return core->app_count != 0 ? core->apps[core->app_count - 1]->state : DRV_APP_ENDED;
}

enum drv_app_state drv_core_named_state(const struct drv_core *core, const char *application)
{
	for (size_t i = core->app_count; i-- > 0;)
		if (core->apps[i]->spec != NULL &&
		    strcmp(core->apps[i]->spec->application, application) == 0)
			return core->apps[i]->state;
	return DRV_APP_ENDED;
}

uint32_t drv_core_illegal_transitions(const struct drv_core *core)
{
	return core->illegal_transitions;
}
