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

/* An application in the windows of its clients. */
struct looked_at {
	struct looked_at *next;
	uint64_t run;
	struct drv_look_past *past;
	uint64_t since;  /* the window in which it was found: not all clients got it then */
	uint64_t number; /* of the window that the rest is about */
	bool is_same;    /* as in the window before */
	bool is_last;    /* ... as the frame says it */
	uint8_t *frame;  /* its tables; NULL: nobody has needed them yet */
	size_t frame_bytes;
};

/*
 * One window after the other. Clients that look at the same, as long each time and again and again,
 * have one: so its tables are made once for all of them. Another client has its own.
 */
struct drv_window {
	struct drv_window *next; /* of those that are shared */
	uint32_t users;
	char application[FRAG_NAME_MAX + 1]; /* empty: all */
	int64_t every_ns;
	uint32_t rows;
	bool at_once;
	struct drv_timer timer;
	uint64_t number;    /* how many have ended */
	int64_t begun_ns;   /* the present one */
	uint64_t length_ns; /* of the one that is being sent */
	struct looked_at *runs;
};

struct drv_look {
	uint64_t seq;
	bool once, changes;
	struct drv_window *window;
	uint64_t number; /* of the window that is sent, or was */
	bool is_sending;
	bool has_got;      /* a whole window */
	bool has_before;   /* ... that before the one that is sent */
	uint64_t next_run; /* of the first application that was not sent in this window */
};

static bool is_wanted(const struct drv_window *window, const struct drv_app *app)
{
	return app->spec != NULL && app->state != DRV_APP_ENDED &&
	       (window->application[0] == '\0' ||
		strcmp(window->application, drv_app_name(app)) == 0);
}

static struct looked_at *find(struct drv_window *window, uint64_t run)
{
	struct looked_at *at = window->runs;

	while (at != NULL && at->run != run)
		at = at->next;
	if (at != NULL)
		return at;
	at = fragi_calloc(1, sizeof(*at));
	if (at == NULL)
		return NULL;
	at->run = run;
	at->since = window->number;
	at->next = window->runs;
	window->runs = at;
	return at;
}

static void drop(struct looked_at *at)
{
	drv_look_past_free(at->past);
	fragi_free(at->frame);
	fragi_free(at);
}

static void forget_ended(struct drv_core *core, struct drv_window *window)
{
	struct looked_at **link = &window->runs, *at;

	while ((at = *link) != NULL) {
		const struct drv_app *app = drv_app_find(core, at->run);

		if (app != NULL && app->state != DRV_APP_ENDED) {
			link = &at->next;
			continue;
		}
		*link = at->next;
		drop(at);
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
static const struct drv_app *next_app(const struct drv_core *core, const struct drv_window *window,
				      uint64_t from_run)
{
	for (size_t i = 0; i < core->app_count; i++)
		if (core->apps[i]->run >= from_run && is_wanted(window, core->apps[i]))
			return core->apps[i];
	return NULL;
}

/* "it waits for f1: no worker fits f1; ..."; NULL: it waits for no worker. */
static const char *waits_text(const struct drv_app *app)
{
	const char *why = drv_start_why_missing(app);

	if (app->state != DRV_APP_WAITING || app->placing.missing[0] == '\0')
		return NULL;
	return drv_text(app->core, "it waits for %s%s%s", app->placing.missing,
			why != NULL ? ": " : "", why != NULL ? why : "");
}

/* Returns 0 or -ENOMEM. */
static int find_cause(const struct drv_app *app, struct fw_looked *looked,
		      struct fragi_arena *arena)
{
	struct fragi_cause cause;

	if (looked->look.window_ns == 0)
		return 0;
	if (fragi_cause_find(&looked->look, arena, &cause) < 0)
		return -ENOMEM;
	/* under NONE it names what bounds the rate, if anything does */
	if (cause.kind != FRAGI_CAUSE_NONE || cause.op != FRAGI_LOOK_NONE)
		looked->look.cause = cause.sentence;
	if (cause.kind == FRAGI_CAUSE_UNMEASURED && waits_text(app) != NULL)
		looked->look.cause = waits_text(app);
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

static int send_none(struct drv_session *client, const struct drv_look *look)
{
	struct fw_message message = {.kind = FW_LOOKED, .reply_to = look->seq};
	struct fw_looked *looked = &message.looked;

	looked->op = looked->flow = looked->host = FRAGI_LOOK_NONE;
	looked->is_last = true;
	return drv_send(client, &message);
}

static int send_same(struct drv_session *client, const struct drv_look *look,
		     const struct drv_app *app, bool is_last)
{
	struct fw_message message = {.kind = FW_LOOKED, .reply_to = look->seq, .run = app->run};
	struct fw_looked *looked = &message.looked;

	looked->op = looked->flow = looked->host = FRAGI_LOOK_NONE;
	looked->is_last = is_last;
	looked->is_same = true;
	looked->look.unix_ns = client->core->real_ns + client->core->config.realtime_offset_ns;
	client->core->items -= app->host_count;
	return drv_send(client, &message);
}

/* The tables of this window; they are the same when they are made once more in it. */
static int make_tables(const struct drv_app *app, const struct drv_window *window,
		       struct looked_at *at, bool is_last, struct fw_message *out)
{
	struct fragi_arena *arena = &app->core->actions->arena;
	struct fw_looked *looked = &out->looked;

	*out = (struct fw_message){.kind = FW_LOOKED, .run = app->run};
	looked->op = looked->flow = looked->host = FRAGI_LOOK_NONE;
	looked->is_last = is_last;
	if (drv_view_look(app, &at->past, window->length_ns, window->rows, arena, &looked->look) <
		    0 ||
	    find_cause(app, looked, arena) < 0)
		return -ENOMEM;
	if (window->at_once)
		forget_window(&looked->look);
	return 0;
}

static void drop_frame(struct looked_at *at)
{
	fragi_free(at->frame);
	at->frame = NULL;
}

static int send_tables(struct drv_session *client, const struct drv_look *look,
		       const struct drv_app *app, struct looked_at *at, bool is_last)
{
	struct fw_message message;
	int r = 0;

	if (at->is_last != is_last)
		drop_frame(at);
	at->is_last = is_last;
	if (at->frame == NULL) {
		r = make_tables(app, look->window, at, is_last, &message);
		if (r == 0 && look->window->users == 1) {
			message.reply_to = look->seq;
			return drv_send(client, &message);
		}
		if (r == 0)
			r = fw_encode(&message, &at->frame, &at->frame_bytes);
	}
	client->core->items -= app->host_count;
	return r < 0 ? r : drv_send_frame(client, at->frame, at->frame_bytes, look->seq);
}

static int send_looked(struct drv_session *client, const struct drv_look *look,
		       const struct drv_app *app, bool is_last)
{
	struct drv_window *window = look->window;
	struct looked_at *at = find(window, app->run);

	if (at == NULL)
		return -ENOMEM;
	if (at->number != window->number) {
		at->is_same = at->number + 1 == window->number && at->since + 1 < window->number &&
			      drv_view_is_same(app, at->past);
		at->number = window->number;
		drop_frame(at);
	}
	if (at->is_same && look->changes && look->has_before)
		return send_same(client, look, app, is_last);
	return send_tables(client, look, app, at, is_last);
}

/* What it has counted is sent now, and the next one begins. */
static void end_window(const struct drv_core *core, struct drv_window *window)
{
	window->length_ns = (uint64_t)(core->now_ns - window->begun_ns);
	window->begun_ns = core->now_ns;
	window->number++;
}

/* Returns 0, -ENOMEM, or 1: this was all that the client has asked for. */
static int serve(struct drv_session *client, struct drv_look *look)
{
	struct drv_core *core = client->core;
	struct drv_window *window = look->window;
	const struct drv_app *app, *next;
	int r;

	if (window->timer.is_due) {
		end_window(core, window);
		if (drv_timer_set(&core->timers, &window->timer, core->now_ns + window->every_ns) <
		    0)
			return -ENOMEM;
	}
	if (look->number != window->number) {
		look->has_before =
			look->has_got && !look->is_sending && look->number + 1 == window->number;
		look->number = window->number;
		look->is_sending = true;
		look->next_run = 0;
	}
	if (!look->is_sending)
		return 0;
	app = next_app(core, window, look->next_run);
	do {
		next = app != NULL ? next_app(core, window, app->run + 1) : NULL;
		r = app != NULL ? send_looked(client, look, app, next == NULL)
				: send_none(client, look);
		if (r == 0 && app != NULL && !look->once)
			r = send_look(app, window->every_ns + (window->at_once ? 0 : LONGER_NS));
		if (r < 0)
			return r;
		app = next;
	} while (app != NULL && core->items > DRV_STEP_ITEMS / 2);
	look->is_sending = app != NULL;
	look->next_run = app != NULL ? app->run : 0;
	look->has_got |= app == NULL;
	core->work_left |= app != NULL;
	forget_ended(core, window);
	return look->once && !window->at_once && app == NULL;
}

/* What is counted up to now belongs to no window. */
static int begin_window(struct drv_core *core, struct drv_window *window)
{
	struct fragi_look nothing;

	for (const struct drv_app *app = next_app(core, window, 0); app != NULL;
	     app = next_app(core, window, app->run + 1)) {
		struct looked_at *at = find(window, app->run);

		if (at == NULL || send_look(app, window->every_ns + LONGER_NS) < 0 ||
		    drv_view_look(app, &at->past, 0, window->rows, &core->actions->arena,
				  &nothing) < 0)
			return -ENOMEM;
	}
	return drv_timer_set(&core->timers, &window->timer, core->now_ns + window->every_ns);
}

static void leave_window(struct drv_core *core, struct drv_window *window)
{
	struct drv_window **link = &core->windows;
	struct looked_at *at;

	if (--window->users > 0)
		return;
	while (*link != NULL && *link != window)
		link = &(*link)->next;
	if (*link == window)
		*link = window->next;
	drv_timer_cancel(&core->timers, &window->timer);
	while ((at = window->runs) != NULL) {
		window->runs = at->next;
		drop(at);
	}
	fragi_free(window);
}

static void end(struct drv_session *client, struct drv_look **slot)
{
	struct drv_look *look = *slot;

	if (look == NULL)
		return;
	if (look->window != NULL)
		leave_window(client->core, look->window);
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

static bool is_equal(const struct drv_window *window, const struct drv_window *other)
{
	return window->every_ns == other->every_ns && window->rows == other->rows &&
	       strcmp(window->application, other->application) == 0;
}

/* The window that a client looks at; is_shared: others may look at it too. NULL: no memory */
static struct drv_window *join_window(struct drv_core *core, const struct drv_window *wanted,
				      bool is_shared)
{
	struct drv_window *window = is_shared ? core->windows : NULL;

	while (window != NULL && !is_equal(window, wanted))
		window = window->next;
	if (window == NULL) {
		window = fragi_malloc(sizeof(*window));
		if (window == NULL)
			return NULL;
		*window = *wanted;
		window->begun_ns = core->now_ns;
		if (is_shared) {
			window->next = core->windows;
			core->windows = window;
		}
	}
	window->users++;
	return window;
}

int drv_look_begin(struct drv_session *client, const struct fw_message *message)
{
	const struct fw_look *wanted = &message->look;
	struct drv_look **slot = wanted->at_once ? &client->look_at_once : &client->look;
	struct drv_look *look = *slot;
	struct drv_window window = {.at_once = wanted->at_once};

	if (look != NULL &&
	    !(wanted->at_once && strcmp(look->window->application, wanted->name) == 0))
		end(client, slot);
	if (wanted->name[0] != '\0' && drv_app_named(client->core, wanted->name) == NULL) {
		drv_refuse_unknown(client, message, wanted->name);
		return 0;
	}
	window.rows = wanted->rows < FW_LOOK_ROWS_MOST ? wanted->rows : FW_LOOK_ROWS_MOST;
	window.every_ns = bounded(wanted->every_ns,
				  wanted->at_once ? FW_LOOK_AT_ONCE_MAX_NS : DRV_LOOK_MAX_NS);
	snprintf(window.application, sizeof(window.application), "%s", wanted->name);
	if (*slot == NULL) {
		*slot = look = fragi_calloc(1, sizeof(*look));
		if (look == NULL)
			return -ENOMEM;
		look->window =
			join_window(client->core, &window, !wanted->at_once && !wanted->once);
		if (look->window == NULL)
			return -ENOMEM;
		look->number = look->window->number;
	}
	look->seq = message->seq;
	look->once = wanted->once;
	look->changes = wanted->changes;
	look->window->rows = window.rows;
	look->window->every_ns = window.every_ns;
	if (wanted->at_once) {
		end_window(client->core, look->window);
		return 0;
	}
	return look->window->users > 1 ? 0 : begin_window(client->core, look->window);
}
