// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/clients/look.h>
#include <driverd/core/clients/tap.h>
#include <driverd/core/clients/subscription.h>

#include <errno.h>

#include <base/alloc.h>

/*
 * Subscriptions of clients: to one milestone of one run, to events and to lines. They are served
 * when a step ends; a client without subscriptions costs nothing.
 */
#define ROWS_MAX 256 /* events in one message */

static bool waits(const struct drv_session *client)
{
	return client->await.run != 0 || client->watch.seq != 0 || client->log_watch != NULL ||
	       client->look != NULL || client->look_at_once != NULL || client->taps != NULL;
}

/* Enters the client into the list of those that wait, or removes it. */
static void relist(struct drv_session *client, bool waited)
{
	struct drv_session **at = &client->core->waiting;

	if (waits(client) == waited)
		return;
	while (waited && *at != client)
		at = &(*at)->next_waiting;
	if (waited) {
		*at = client->next_waiting;
		return;
	}
	client->next_waiting = *at;
	*at = client;
}

static const struct drv_app *find_run(const struct drv_core *core, uint64_t run)
{
	const struct drv_app *app = drv_app_find(core, run);

	return app != NULL && app->state != DRV_APP_ENDED ? app : NULL;
}

/* Whether an application will start anew under that number. */
static bool is_to_come(const struct drv_core *core, uint64_t run)
{
	for (size_t i = 0; i < core->app_count; i++)
		if (core->apps[i]->next.run == run)
			return true;
	return false;
}

static int send_ended(struct drv_session *client, const struct drv_ended *ended)
{
	struct fw_message *message;
	int r = fw_decode(ended->outcome + sizeof(uint32_t),
			  ended->outcome_bytes - sizeof(uint32_t), &message, NULL);

	if (r < 0)
		return r;
	client->core->items -= (int64_t)ended->outcome_bytes / 64;
	message->reply_to = client->await.seq;
	r = drv_send(client, message);
	fw_message_free(message);
	return r;
}

static int send_running(struct drv_session *client, const struct drv_app *app)
{
	struct fw_message message = {
		.kind = FW_OUTCOME, .reply_to = client->await.seq, .run = app->run};

	message.outcome.name = drv_app_name(app);
	message.outcome.reached = FW_RUNNING;
	return drv_send(client, &message);
}

static int send_unknown(struct drv_session *client)
{
	struct fw_message message = {
		.kind = FW_ANSWER, .reply_to = client->await.seq, .run = client->await.run};

	message.answer.failure = (struct fw_failure){
		FRAGI_FAILURE_APPLICATION_UNKNOWN,
		drv_text(client->core,
			 "run %llu was not started, or driverd has forgotten how it ended; "
			 "`fragctl events` may show why",
			 (unsigned long long)client->await.run),
		NULL};
	return drv_send(client, &message);
}

/* Whether all hosts run, also those that were started again, and it is not to fail. */
static bool runs(const struct drv_app *app)
{
	for (uint32_t i = 0; i < app->host_count; i++)
		if (drv_host_is_restarting(&app->hosts[i]))
			return false;
	return app->times.running_ns != 0 && app->end < DRV_END_FAILED;
}

/* Returns 0 when it has come, -EAGAIN, or -ENOMEM. */
static int serve_await(struct drv_session *client)
{
	struct drv_core *core = client->core;
	const struct drv_app *app = find_run(core, client->await.run);
	const struct drv_ended *ended;

	if (app != NULL)
		return client->await.until == FW_RUNNING && runs(app) ? send_running(client, app)
								      : -EAGAIN;
	ended = drv_history_find(&core->history, client->await.run);
	if (ended != NULL && ended->change > core->settled_change)
		return -EAGAIN; /* until it is on the disk */
	if (ended != NULL)
		return send_ended(client, ended);
	return is_to_come(core, client->await.run) ? -EAGAIN : send_unknown(client);
}

static int send_events(struct drv_session *client, uint64_t seq, uint64_t *last)
{
	struct drv_core *core = client->core;
	struct fw_message message = {.kind = FW_EVENTS, .reply_to = seq};
	struct fw_events *events = &message.events;
	const struct drv_notice *notice;

	events->rows = fragi_arena_alloc(&core->actions->arena, ROWS_MAX * sizeof(*events->rows));
	if (events->rows == NULL)
		return -ENOMEM;
	while ((notice = drv_history_after(&core->history, *last)) != NULL &&
	       events->count < ROWS_MAX && drv_session_take_row(core, notice->text)) {
		events->rows[events->count++] = (struct fw_notice){
			.number = notice->number,
			.unix_ns = notice->unix_ns,
			.kind = notice->kind,
			.application = notice->application,
			.run = notice->run,
			.who = notice->who,
			.text = notice->text,
		};
		*last = notice->number;
	}
	return drv_send(client, &message);
}

/* Returns 0 or -ENOMEM. */
static int serve_watch(struct drv_session *client)
{
	const struct drv_history *history = &client->core->history;
	int r;

	if (drv_history_after(history, client->watch.last) == NULL)
		return 0;
	r = send_events(client, client->watch.seq, &client->watch.last);
	if (drv_history_after(history, client->watch.last) != NULL)
		client->core->work_left = true;
	return r;
}

static void serve(struct drv_session *client)
{
	int r = client->await.run != 0 ? serve_await(client) : -EAGAIN;

	if (r == 0) {
		client->await.run = 0;
		relist(client, true);
	}
	if ((r == 0 || r == -EAGAIN) && client->watch.seq != 0)
		r = serve_watch(client);
	if ((r == 0 || r == -EAGAIN) && client->log_watch != NULL)
		r = drv_lines_serve(client);
	if ((r == 0 || r == -EAGAIN) && (client->look != NULL || client->look_at_once != NULL)) {
		r = drv_look_serve(client);
		relist(client, true);
	}
	if ((r == 0 || r == -EAGAIN) && client->taps != NULL) {
		r = drv_tap_serve(client);
		relist(client, true);
	}
	if (r < 0 && r != -EAGAIN)
		drv_session_drop(client, "no memory is left for what it waits for");
}

void drv_subscription_serve(struct drv_core *core)
{
	struct drv_session *next;

	for (struct drv_session *client = core->waiting; client != NULL; client = next) {
		next = client->next_waiting; /* it may wait no more */
		serve(client);
	}
}

void drv_subscription_run(struct drv_session *client, uint64_t seq, uint64_t run,
			  enum fw_milestone until)
{
	bool waited = waits(client);

	client->await.run = run;
	client->await.seq = seq;
	client->await.until = until;
	relist(client, waited);
}

void drv_subscription_await(struct drv_session *client, const struct fw_message *message)
{
	drv_subscription_run(client, message->seq, message->run, message->await.until);
	if (message->run == 0 && send_unknown(client) < 0)
		drv_session_drop(client, "no memory is left for an answer");
}

static bool follows(const struct drv_session *client)
{
	return client->watch.seq != 0 || client->log_watch != NULL || client->look != NULL ||
	       client->taps != NULL;
}

/* Whether the client may follow something. It is answered if not. */
static bool may_follow(struct drv_session *client, uint64_t seq)
{
	int count = 0;

	for (const struct drv_session *one = client->core->waiting; one; one = one->next_waiting)
		count += follows(one);
	if (follows(client) || count < DRV_FOLLOWERS_MAX)
		return true;
	drv_session_answer_failure(
		client, seq, "", FRAGI_FAILURE_DRIVER_FULL,
		drv_text(
			client->core,
			"%d clients follow events, logs, time or flows already, as many as driverd takes",
			DRV_FOLLOWERS_MAX));
	return false;
}

void drv_subscription_notices(struct drv_session *client, const struct fw_message *message)
{
	uint64_t last = message->watch.after;
	bool waited = waits(client);

	if (message->watch.follow && !may_follow(client, message->seq))
		return;
	if (send_events(client, message->seq, &last) < 0) {
		drv_session_drop(client, "no memory is left for events");
		return;
	}
	client->watch.seq = message->watch.follow ? message->seq : 0;
	client->watch.last = last;
	relist(client, waited);
}

void drv_subscription_logs(struct drv_session *client, const struct fw_message *message)
{
	bool waited = waits(client);
	int r;

	if (message->watch_logs.follow && !may_follow(client, message->seq))
		return;
	drv_lines_watch_end(client);
	relist(client, waited);
	waited = waits(client);
	r = drv_lines_watch(client, message);
	relist(client, waited);
	if (r < 0)
		drv_session_drop(client, "no memory is left for lines");
}

void drv_subscription_look(struct drv_session *client, const struct fw_message *message)
{
	bool waited = waits(client);
	int r;

	/* One window is no following: top --once and explain find a place beside all followers. */
	if (!message->look.at_once && !message->look.once && !may_follow(client, message->seq))
		return;
	r = drv_look_begin(client, message);
	relist(client, waited);
	if (r < 0)
		drv_session_drop(client, "no memory is left for a look");
}

void drv_subscription_tap(struct drv_session *client, const struct fw_message *message)
{
	bool waited = waits(client);
	int r;

	if (message->tap.ends == 0 && !may_follow(client, message->seq))
		return;
	r = drv_tap_change(client, message);
	relist(client, waited);
	if (r < 0)
		drv_session_drop(client, "no memory is left for a tap");
}

void drv_subscription_end(struct drv_session *client)
{
	bool waited = waits(client);

	client->await.run = client->watch.seq = 0;
	drv_lines_watch_end(client);
	drv_look_end(client);
	drv_tap_end(client);
	relist(client, waited);
}
