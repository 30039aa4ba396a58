// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/clients/look.h>
#include <driverd/core/view/look.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>
#include <track/cause.h>

/*
 * A client looks at an application, or at each of them: after each window it gets their tables. The
 * hosts count times only while somebody looks: their workers hear of it about every second, for
 * a little longer than a window. So it ends by itself when the client, this driver or the way to it
 * is gone.
 */
#define LONGER_NS INT64_C(3000000000)
#define AGAIN_NS INT64_C(1000000000)

/* An application that the client has seen. */
struct looked_at {
	struct looked_at *next;
	uint64_t run;
	struct drv_look_past *past;
	bool was_sent;
};

struct drv_look {
	uint64_t seq;
	char application[FRAG_NAME_MAX + 1]; /* empty: all */
	int64_t every_ns;
	bool once, at_once, changes;
	uint32_t rows;
	struct drv_timer timer;
	int64_t begun_ns;   /* the present window */
	uint64_t window_ns; /* how long the one lasted that is being sent */
	bool is_sending;
	uint64_t next_run; /* of the first application that was not sent in this window */
	struct looked_at *runs;
};

static bool is_wanted(const struct drv_look *look, const struct drv_app *app)
{
	return app->spec != NULL && app->state != DRV_APP_ENDED &&
	       (look->application[0] == '\0' || strcmp(look->application, drv_app_name(app)) == 0);
}

static struct looked_at *find(struct drv_look *look, uint64_t run)
{
	struct looked_at *at = look->runs;

	while (at != NULL && at->run != run)
		at = at->next;
	if (at != NULL)
		return at;
	at = fragi_calloc(1, sizeof(*at));
	if (at == NULL)
		return NULL;
	at->run = run;
	at->next = look->runs;
	look->runs = at;
	return at;
}

static void forget_ended(struct drv_core *core, struct drv_look *look)
{
	struct looked_at **link = &look->runs, *at;

	while ((at = *link) != NULL) {
		const struct drv_app *app = drv_app_find(core, at->run);

		if (app != NULL && app->state != DRV_APP_ENDED) {
			link = &at->next;
			continue;
		}
		*link = at->next;
		drv_look_past_free(at->past);
		fragi_free(at);
	}
}

/* Asks the hosts to count times, unless any client had them asked within the last second. */
static int send_look(const struct drv_app *app, int64_t for_ns)
{
	int64_t until_ns = app->core->now_ns + for_ns;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < app->host_count; i++) {
		struct drv_host *host = &app->hosts[i];
		struct fw_message message = {.kind = FW_HOST_LOOK,
					     .run = app->run,
					     .host = host->number,
					     .epoch = host->now.epoch,
					     .host_look.for_ns = for_ns};

		if (host->now.session == NULL || host->now.session->minor < FW_LOOK_MINOR ||
		    host->now.state < DRV_HOST_PREPARING ||
		    host->now.looked_until_ns > until_ns - AGAIN_NS)
			continue;
		host->now.looked_until_ns = until_ns;
		r = drv_send(host->now.session, &message);
	}
	app->core->items -= app->host_count;
	return r;
}

/* The next application that the client is to see; NULL: none. */
static const struct drv_app *next_app(const struct drv_core *core, const struct drv_look *look,
				      uint64_t from_run)
{
	for (size_t i = 0; i < core->app_count; i++)
		if (core->apps[i]->run >= from_run && is_wanted(look, core->apps[i]))
			return core->apps[i];
	return NULL;
}

/* Returns 0 or -ENOMEM. */
static int find_cause(struct fw_looked *looked, struct fragi_arena *arena)
{
	struct fragi_cause cause;

	if (looked->look.window_ns == 0)
		return 0;
	if (fragi_cause_find(&looked->look, arena, &cause) < 0)
		return -ENOMEM;
	/* under NONE it names what bounds the rate, if anything does */
	if (cause.kind != FRAGI_CAUSE_NONE || cause.op != FRAGI_LOOK_NONE)
		looked->look.cause = cause.sentence;
	looked->cause = cause.kind;
	looked->op = cause.op;
	looked->flow = cause.flow;
	looked->host = cause.host;
	looked->help = cause.help;
	looked->chain = cause.chain;
	looked->chain_count = cause.chain_count;
	return 0;
}

static void forget_quantiles(struct fragi_quantiles *of)
{
	of->p50 = of->p99 = of->p999 = of->max = 0;
}

/* Who asks at once takes sums: numbers of the window would be half of a long message. */
static void forget_window(struct fragi_look *look)
{
	for (uint32_t i = 0; i < look->operator_count; i++) {
		struct fragi_look_operator *op =
			(struct fragi_look_operator *)(uintptr_t)&look->operators[i];

		memset(op->use_ns, 0, sizeof(op->use_ns));
		op->type = op->pool = NULL;
		op->ticks = op->budget_ns = op->period_ns = 0;
		forget_quantiles(&op->compute);
	}
	for (uint32_t i = 0; i < look->flow_count; i++) {
		struct fragi_look_flow *flow = (struct fragi_look_flow *)(uintptr_t)&look->flows[i];

		memset(flow->dropped, 0, sizeof(flow->dropped));
		flow->edge = flow->policy = NULL;
		flow->sent = flow->delivered = flow->bytes = flow->lost = flow->full_ns = 0;
		forget_quantiles(&flow->latency);
	}
}

static int send_looked(struct drv_session *client, struct drv_look *look, const struct drv_app *app,
		       bool is_last)
{
	struct fragi_arena *arena = &client->core->actions->arena;
	struct fw_message message = {.kind = FW_LOOKED, .reply_to = look->seq};
	struct fw_looked *looked = &message.looked;
	struct looked_at *at = app != NULL ? find(look, app->run) : NULL;

	looked->op = looked->flow = looked->host = FRAGI_LOOK_NONE;
	looked->is_last = is_last;
	if (app == NULL)
		return drv_send(client, &message);
	message.run = app->run;
	if (at != NULL && at->was_sent && look->changes && drv_view_is_same(app, at->past)) {
		looked->is_same = true;
		looked->look.unix_ns =
			client->core->real_ns + client->core->config.realtime_offset_ns;
		client->core->items -= app->host_count;
		return drv_send(client, &message);
	}
	if (at == NULL ||
	    drv_view_look(app, &at->past, look->window_ns, look->rows, arena, &looked->look) < 0 ||
	    find_cause(looked, arena) < 0)
		return -ENOMEM;
	if (look->at_once)
		forget_window(&looked->look);
	at->was_sent = true;
	return drv_send(client, &message);
}

/* It is sent now, and the next one begins. */
static void end_window(const struct drv_core *core, struct drv_look *look)
{
	look->window_ns = (uint64_t)(core->now_ns - look->begun_ns);
	look->begun_ns = core->now_ns;
	look->is_sending = true;
	look->next_run = 0;
}

/* Returns 0, -ENOMEM, or 1: this was all that the client has asked for. */
static int serve(struct drv_session *client, struct drv_look *look)
{
	struct drv_core *core = client->core;
	const struct drv_app *app, *next;
	int r;

	if (look->timer.is_due) {
		look->timer.is_due = false;
		end_window(core, look);
		if (drv_timer_set(&core->timers, &look->timer, core->now_ns + look->every_ns) < 0)
			return -ENOMEM;
	}
	if (!look->is_sending)
		return 0;
	app = next_app(core, look, look->next_run);
	do {
		next = app != NULL ? next_app(core, look, app->run + 1) : NULL;
		r = send_looked(client, look, app, next == NULL);
		if (r == 0 && app != NULL && !look->once)
			r = send_look(app, look->every_ns + (look->at_once ? 0 : LONGER_NS));
		if (r < 0)
			return r;
		app = next;
	} while (app != NULL && core->items > DRV_STEP_ITEMS / 2);
	look->is_sending = app != NULL;
	look->next_run = app != NULL ? app->run : 0;
	core->work_left |= app != NULL;
	forget_ended(core, look);
	return look->once && !look->at_once && app == NULL;
}

/* What is counted up to now belongs to no window. */
static int begin_window(struct drv_session *client)
{
	struct drv_core *core = client->core;
	struct drv_look *look = client->look;
	struct fragi_look nothing;

	look->begun_ns = core->now_ns;
	for (const struct drv_app *app = next_app(core, look, 0); app != NULL;
	     app = next_app(core, look, app->run + 1)) {
		struct looked_at *at = find(look, app->run);

		if (at == NULL || send_look(app, look->every_ns + LONGER_NS) < 0 ||
		    drv_view_look(app, &at->past, 0, look->rows, &core->actions->arena, &nothing) <
			    0)
			return -ENOMEM;
	}
	return drv_timer_set(&core->timers, &look->timer, core->now_ns + look->every_ns);
}

static void end(struct drv_session *client, struct drv_look **slot)
{
	struct drv_look *look = *slot;
	struct looked_at *at;

	if (look == NULL)
		return;
	drv_timer_cancel(&client->core->timers, &look->timer);
	while ((at = look->runs) != NULL) {
		look->runs = at->next;
		drv_look_past_free(at->past);
		fragi_free(at);
	}
	fragi_free(look);
	*slot = NULL;
}

int drv_look_serve(struct drv_session *client)
{
	int r = client->look != NULL ? serve(client, client->look) : 0;

	if (r > 0)
		end(client, &client->look);
	if (r >= 0 && client->look_at_once != NULL)
		r = serve(client, client->look_at_once);
	return r < 0 ? r : 0;
}

void drv_look_end(struct drv_session *client)
{
	end(client, &client->look);
	end(client, &client->look_at_once);
}

static int64_t bounded(int64_t every_ns, int64_t most_ns)
{
	if (every_ns == 0)
		every_ns = 1000000000;
	if (every_ns < FW_LOOK_MIN_NS)
		every_ns = FW_LOOK_MIN_NS;
	return every_ns < most_ns ? every_ns : most_ns;
}

int drv_look_begin(struct drv_session *client, const struct fw_message *message)
{
	const struct fw_look *wanted = &message->look;
	struct drv_look **slot = wanted->at_once ? &client->look_at_once : &client->look;
	struct drv_look *look = *slot;

	if (look != NULL && !(look->at_once && strcmp(look->application, wanted->name) == 0))
		end(client, slot);
	if (wanted->name[0] != '\0' && drv_app_named(client->core, wanted->name) == NULL) {
		drv_refuse_unknown(client, message, wanted->name);
		return 0;
	}
	if (*slot == NULL) {
		*slot = look = fragi_calloc(1, sizeof(*look));
		if (look == NULL)
			return -ENOMEM;
		look->begun_ns = client->core->now_ns;
	}
	look->seq = message->seq;
	look->once = wanted->once;
	look->at_once = wanted->at_once;
	look->changes = wanted->changes;
	look->rows = wanted->rows < FW_LOOK_ROWS_MOST ? wanted->rows : FW_LOOK_ROWS_MOST;
	look->every_ns =
		bounded(wanted->every_ns, look->at_once ? FW_LOOK_AT_ONCE_MAX_NS : DRV_LOOK_MAX_NS);
	snprintf(look->application, sizeof(look->application), "%s", wanted->name);
	if (!look->at_once)
		return begin_window(client);
	end_window(client->core, look);
	return 0;
}
