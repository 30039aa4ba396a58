// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/clients/apply.h>
#include <driverd/core/applications/parameter.h>
#include <driverd/core/hosts/swap.h>
#include <driverd/core/clients/subscription.h>

#include <assert.h>
#include <errno.h>
#include <string.h>

/*
 * A client asks how things stand, gives commands (command.c) and waits for what becomes of them
 * (subscription.c). What it gets is what the driver knows in this step. Its rows are items of the
 * step; what is beyond DRV_REPLY_ITEMS is only counted. One that asks more often than a person can
 * read is closed: each request is a step, and steps of clients would take the time of all others.
 */
#define ROOM_BYTES 131072

static int64_t items_left(const struct drv_core *core)
{
	return core->items - (DRV_STEP_ITEMS - DRV_REPLY_ITEMS);
}

/* A table for the rows that may still be taken. */
static void *table_of(struct drv_core *core, size_t count, size_t row_bytes)
{
	int64_t left = items_left(core);

	if (left < (int64_t)count)
		count = left > 0 ? (size_t)left : 0;
	return fragi_arena_alloc(&core->actions->arena, count * row_bytes);
}

/* Whether the client asks for it; worker: empty: for all. */
static bool is_wanted(const char *name, const char *worker)
{
	return worker[0] == '\0' || strcmp(name, worker) == 0;
}

static bool runs_on(const struct drv_app *app, const char *worker)
{
	uint32_t i = 0;

	while (i < app->host_count && strcmp(app->hosts[i].worker, worker) != 0)
		i++;
	return worker[0] == '\0' || i < app->host_count;
}

static int fill_application(const struct drv_app *app, const char *worker,
			    struct fw_application_row *row, struct fw_reply *reply)
{
	struct drv_core *core = app->core;

	drv_view_application(app, row);
	row->hosts = table_of(core, app->host_count, sizeof(*row->hosts));
	if (row->hosts == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < app->host_count; i++) {
		const struct drv_host *host = &app->hosts[i];

		if (!is_wanted(host->worker, worker))
			continue;
		if (drv_session_take_row(core, host->name))
			drv_view_host(host, &row->hosts[row->host_count++]);
		else
			reply->more++;
	}
	return drv_parameter_rows(app, row, reply);
}

static int fill_applications(struct drv_core *core, const char *worker, struct fw_reply *reply)
{
	reply->applications = table_of(core, core->app_count, sizeof(*reply->applications));
	if (reply->applications == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < core->app_count; i++) {
		const struct drv_app *app = core->apps[i];

		if (!runs_on(app, worker))
			continue;
		if (!drv_session_take_row(core, "")) {
			reply->more += 1 + app->host_count;
			continue;
		}
		if (fill_application(app, worker, &reply->applications[reply->application_count++],
				     reply) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int fill_workers(struct drv_core *core, const char *worker, struct fw_reply *reply)
{
	struct fw_worker_row *away =
		fragi_arena_alloc(&core->actions->arena, drv_away_count(core) * sizeof(*away));
	uint32_t away_count;

	reply->workers =
		table_of(core, core->session_count + drv_away_count(core), sizeof(*reply->workers));
	if (reply->workers == NULL || away == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < core->session_count; i++) {
		const struct drv_session *session = core->sessions[i];

		if (session->role != FW_ROLE_WORKER || !is_wanted(session->name, worker))
			continue;
		if (!drv_session_take_row(core, session->name)) {
			reply->more++;
			continue;
		}
		reply->workers[reply->worker_count++] = (struct fw_worker_row){
			.name = session->name,
			.address = session->peer,
			.state = drv_session_machine.state_names[session->state],
			.cores = (uint32_t)(session->has[FRAGI_AMOUNT_CPU] / FRAGI_AMOUNT_ONE),
			.fragments = (uint32_t)session->placed,
			.waits_for = session->waits_for,
			.drained = session->is_drained,
			.ran = "",
			.limited = session->limited,
		};
	}
	away_count = drv_away_rows(core, worker, away);
	for (uint32_t i = 0; i < away_count; i++) {
		away[i].drained = drv_drain_is(core, away[i].name);
		if (drv_session_take_row(core, away[i].name))
			reply->workers[reply->worker_count++] = away[i];
		else
			reply->more++;
	}
	return 0;
}

/* The clock of the machine may have been set back since. */
static int64_t age_of(const struct drv_core *core, const struct drv_ended *run)
{
	int64_t age_ns = core->real_ns + core->config.realtime_offset_ns - run->ended_unix_ns;

	return age_ns > 0 ? age_ns : 0;
}

static int fill_ended(struct drv_core *core, struct fw_reply *reply)
{
	reply->ended = table_of(core, core->history.ended_count, sizeof(*reply->ended));
	if (reply->ended == NULL)
		return -ENOMEM;
	for (const struct drv_ended *run = core->history.ended; run != NULL; run = run->next) {
		if (!drv_session_take_row(core, run->sentence)) {
			reply->more++;
			continue;
		}
		reply->ended[reply->ended_count++] = (struct fw_ended_row){
			.run = run->run,
			.name = run->name,
			.result = run->result,
			.failure = run->failure,
			.exit_code = run->exit_code,
			.age_ns = age_of(core, run),
			.duration_ns = run->duration_ns,
			.started_by = run->started_by,
			.wanted = run->is_wanted,
		};
	}
	return 0;
}

static int reply_to(struct drv_session *client, const struct fw_message *request)
{
	struct fw_message message = {.kind = FW_REPLY, .reply_to = request->seq};
	const char *worker = request->request.worker;
	struct drv_core *core = client->core;
	bool is_of_one = worker[0] != '\0';

	memcpy(message.reply.notices, core->history.counts, sizeof(message.reply.notices));
	message.reply.state_bytes = core->machine.state_bytes;
	message.reply.state_free_bytes = core->machine.state_free_bytes;
	message.reply.certificate_ends_unix_s = core->machine.certificate_ends_unix_s;
	message.reply.state_failure = core->behind_why;
	message.reply.started_unix_s = core->machine.started_unix_s;
	/* The worker that is asked for comes first, so that it is not left out. */
	if ((is_of_one && fill_workers(core, worker, &message.reply) < 0) ||
	    fill_applications(core, worker, &message.reply) < 0 ||
	    (!is_of_one && (fill_workers(core, worker, &message.reply) < 0 ||
			    fill_ended(core, &message.reply) < 0)))
		return -ENOMEM;
	return drv_send(client, &message);
}

static void serve_beat(struct drv_session *client, const struct fw_message *message)
{
	(void)client;
	(void)message;
}

static void serve_request(struct drv_session *client, const struct fw_message *message)
{
	if (reply_to(client, message) < 0)
		drv_session_drop(client, "no memory is left for a reply");
}

static void serve_drain(struct drv_session *client, const struct fw_message *message)
{
	if (drv_drain(client, message) && message->drain.rebalance)
		drv_move_back(client->core, message->drain.worker);
}

/*
 * All that a client may send, and what it needs for it. What has no row here is not for a client.
 */
static const struct request {
	enum fw_kind kind;
	enum drv_right right;
	void (*serve)(struct drv_session *client, const struct fw_message *message);
} requests[] = {
	{FW_BEAT, DRV_RIGHT_NONE, serve_beat},
	{FW_REQUEST, DRV_RIGHT_READ, serve_request},
	{FW_AWAIT, DRV_RIGHT_READ, drv_subscription_await},
	{FW_WATCH, DRV_RIGHT_READ, drv_subscription_notices},
	{FW_WATCH_LOGS, DRV_RIGHT_READ, drv_subscription_logs},
	{FW_EXPLAIN, DRV_RIGHT_READ, drv_explain},
	{FW_LOOK, DRV_RIGHT_READ, drv_subscription_look},
	{FW_TAP, DRV_RIGHT_PAYLOAD, drv_subscription_tap}, /* encrypted flows need more: tap.c */
	{FW_START_APP, DRV_RIGHT_COMMAND, drv_command_start},
	{FW_STOP_APP, DRV_RIGHT_COMMAND, drv_command_stop},
	{FW_APPLY, DRV_RIGHT_COMMAND, drv_apply},
	{FW_SET, DRV_RIGHT_COMMAND, drv_parameter_set},
	{FW_SWAP, DRV_RIGHT_COMMAND, drv_swap},
	{FW_DRAIN, DRV_RIGHT_COMMAND, serve_drain},
	{FW_EXAMINE, DRV_RIGHT_COMMAND, drv_examine}, /* it starts a process there */
};

/* The roles of which a client needs one for that right. */
static const uint32_t roles_of_right[] = {
	[DRV_RIGHT_READ] = FW_ROLE_BIT(FW_ROLE_OBSERVER) | FW_ROLE_BIT(FW_ROLE_CLIENT),
	[DRV_RIGHT_PAYLOAD] = FW_ROLE_BIT(FW_ROLE_PAYLOAD) | FW_ROLE_BIT(FW_ROLE_CLIENT),
	[DRV_RIGHT_COMMAND] = FW_ROLE_BIT(FW_ROLE_CLIENT),
};

static const struct request *find_request(enum fw_kind kind)
{
	for (size_t i = 0; i < FRAG_COUNT_OF(requests); i++)
		if (requests[i].kind == kind)
			return &requests[i];
	return NULL;
}

static bool may(const struct drv_session *client, const struct fw_message *message)
{
	const struct request *request = find_request(message->kind);

	return request == NULL || request->right == DRV_RIGHT_NONE ||
	       (client->roles & roles_of_right[request->right]) != 0;
}

/* The first time in a session is an event: one that observes cannot displace those of others. */
void drv_client_refuse(struct drv_session *client, const struct fw_message *message,
		       const char *role, const char *what)
{
	const char *sentence = drv_text(
		client->core,
		"%s needs the role %s, which %s does not have; use a key, or an --allow-user, with it",
		what, role, client->who);

	if (!client->has_overreached) {
		client->has_overreached = true;
		drv_refuse_command(client, message, "", FRAGI_FAILURE_ROLE_REFUSED, sentence);
		return;
	}
	drv_session_answer_failure(client, message->seq, "", FRAGI_FAILURE_ROLE_REFUSED, sentence);
}

static void serve(struct drv_session *client, const struct fw_message *message)
{
	const struct request *request = find_request(message->kind);

	if (request != NULL)
		request->serve(client, message);
	else
		drv_session_drop(client,
				 drv_text(client->core, "it sent %s, which is not for a client",
					  fw_kind_name(message->kind)));
}

/* The source of an application is read, and written. */
static uint32_t source_cost(const struct drv_core *core, const char *name)
{
	const struct drv_app *app = drv_app_named(core, name);

	return app != NULL ? (uint32_t)(app->source.size / DRV_REQUEST_BYTES) : 0;
}

/* How many requests a message counts as: a graph is read in one step. */
static uint32_t cost_of(const struct drv_session *client, const struct fw_message *message)
{
	const struct drv_core *core = client->core;

	if (!may(client, message))
		return 1;
	if (message->kind == FW_BEAT)
		return 0;
	if (message->kind == FW_START_APP)
		return 1 + message->start_app.source_bytes / DRV_REQUEST_BYTES;
	if (message->kind == FW_APPLY)
		return 1 + message->apply.source_bytes / DRV_REQUEST_BYTES;
	if (message->kind == FW_SET)
		return 1 + source_cost(core, message->set.name);
	if (message->kind == FW_SWAP)
		return 1 + source_cost(core, message->swap.name);
	return 1;
}

/*
 * Commands that end something, or move it, and of which the next driver must know: space is held in
 * the state folder before them, so that they are refused at once if it cannot be written.
 */
static bool needs_folder(const struct drv_core *core, const struct fw_message *message)
{
	return core->config.keeps_state &&
	       ((message->kind == FW_STOP_APP && message->stop_app.restart) ||
		(message->kind == FW_APPLY && !message->apply.only_shows) ||
		(message->kind == FW_DRAIN && (!message->drain.undo || message->drain.rebalance)) ||
		message->kind == FW_SWAP);
}

/*
 * Reserves room for the graph of the next run, in the log and in its place, and for what the end of
 * this one leaves. A restart, and perhaps a changed graph, hold it until the next run is written.
 */
static void reserve_room(struct drv_session *client, const struct fw_message *message)
{
	struct drv_core *core = client->core;
	const struct drv_app *app;
	size_t bytes = 0;

	if (message->kind == FW_APPLY)
		bytes = message->apply.source_bytes;
	else if (message->kind == FW_STOP_APP &&
		 (app = drv_app_named(core, message->stop_app.name)) != NULL)
		bytes = app->source.size;
	client->held_bytes = 2 * bytes + ROOM_BYTES;
	client->held_change = drv_persist_reserve(core, client->held_bytes);
}

static void serve_with_room(struct drv_session *client, const struct fw_message *message)
{
	if (client->core->is_behind) /* it was not to be had */
		client->held_bytes = 0;
	serve(client, message);
	drv_persist_release(client->core, client->held_bytes);
	client->held_bytes = 0;
}

/* Takes the message. */
static void take(struct drv_session *client, struct fw_message *message)
{
	struct drv_core *core = client->core;

	if (!may(client, message)) {
		drv_client_refuse(client, message,
				  find_request(message->kind)->right == DRV_RIGHT_COMMAND
					  ? "client"
					  : "observer+payload",
				  "this");
		fw_message_free(message);
		return;
	}
	if (needs_folder(core, message) && client->held == NULL) {
		client->held = message;
		reserve_room(client, message);
		core->held_count++;
		return;
	}
	if (needs_folder(core, message))
		drv_refuse_command(client, message, "", FRAGI_FAILURE_NO_SERVICE,
				   "the command before it waits for the state folder; try again");
	else
		serve(client, message);
	fw_message_free(message);
}

void drv_client_serve_held(struct drv_core *core)
{
	for (size_t i = 0; core->held_count != 0 && i < core->session_count; i++) {
		struct drv_session *client = core->sessions[i];
		struct fw_message *message = client->held;

		if (message == NULL || client->held_change > core->settled_change)
			continue;
		if (core->items <= 0) { /* others take as long */
			core->work_left = true;
			return;
		}
		assert(core->held_count > 0 && needs_folder(core, message));
		client->held = NULL;
		core->held_count--;
		serve_with_room(client, message);
		fw_message_free(message);
	}
}

/* What takes long, as graphs do that are long, waits when it comes too early: one at a time. */
void drv_client_message(struct drv_session *client, struct fw_message *message)
{
	uint32_t cost = cost_of(client, message);
	bool is_alone = client->requests == 0;

	assert(client->role == FW_ROLE_CLIENT);
	client->requests += cost;
	if (client->requests <= DRV_REQUESTS_MAX || is_alone || cost == 0) {
		take(client, message);
	} else if (cost > 1 && client->deferred == NULL) {
		client->deferred = message;
	} else {
		drv_session_drop(client, "it asks too often");
		fw_message_free(message);
	}
}

void drv_client_beat(struct drv_session *client)
{
	struct fw_message *message = client->deferred;

	/* beats of several are due together: it then waits for one more */
	if (message != NULL && client->core->items <= 0)
		return;
	client->requests = 0;
	client->deferred = NULL;
	if (message != NULL)
		drv_client_message(client, message);
}
