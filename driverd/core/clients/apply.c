// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/applications/source.h>
#include <driverd/core/clients/apply.h>
#include <driverd/core/clients/difference.h>

#include <errno.h>
#include <signal.h>
#include <string.h>

#include <base/alloc.h>

struct applying {
	struct drv_session *client;
	const struct fw_message *message;
	struct drv_app *app;
	struct fragi_spec *before, *after;
	struct drv_differences *differences;
	enum fw_effect effect;
	const char *restarts;
};

static void refuse(const struct applying *a, enum fragi_failure code, const char *sentence)
{
	const char *name = drv_app_name(a->app);

	drv_log(a->client->core, FRAGI_LOG_WARN, name, "refused a changed graph of %s: %s",
		a->client->who, sentence);
	drv_history_add(a->client->core, FW_NOTICE_REFUSED, a->app, a->client->who, "apply: %s",
			sentence);
	drv_session_answer(a->client, a->message->seq, a->app->run, name,
			   &(struct fw_failure){.code = code, .sentence = sentence});
}

/* Whether that parameter may change while it runs, as its host has reported. */
static bool is_dynamic(const struct drv_host *host, const struct drv_difference *row)
{
	const struct fw_host_prepared *prepared =
		host->tables != NULL ? &host->tables->prepared : NULL;

	for (uint32_t f = 0; prepared != NULL && f < prepared->fragment_count; f++) {
		const struct fw_fragment *fragment = &prepared->fragments[f];

		if (strcmp(fragment->name, row->fragment) != 0)
			continue;
		for (uint32_t i = 0; i < fragment->op_count; i++)
			for (uint32_t k = 0; strcmp(fragment->ops[i].name, row->op) == 0 &&
					     k < fragment->ops[i].dynamic_count;
			     k++)
				if (strcmp(fragment->ops[i].dynamic[k], row->param) == 0)
					return true;
	}
	return false;
}

/* Returns what the change takes here, where operators and on_failure are known. */
static enum fw_effect effect_of(const struct drv_app *app, const struct drv_difference *row)
{
	const struct drv_host *host =
		row->fragment != NULL ? drv_host_running(app, row->fragment) : NULL;

	if (host == NULL || row->change.effect == FW_EFFECT_APPLICATION)
		return FW_EFFECT_APPLICATION;
	if (row->change.effect == FW_EFFECT_SET && is_dynamic(host, row))
		return FW_EFFECT_SET;
	return host->on_failure->policy != FRAGI_ON_FAILURE_STOP ? FW_EFFECT_FRAGMENT
								 : FW_EFFECT_APPLICATION;
}

static bool is_restarted(const struct applying *a, const struct drv_host *host)
{
	for (uint32_t i = 0; i < a->differences->count; i++) {
		const struct drv_difference *row = &a->differences->rows[i];

		if (row->change.effect == FW_EFFECT_FRAGMENT &&
		    drv_host_running(a->app, row->fragment) == host)
			return true;
	}
	return false;
}

static void judge(struct applying *a)
{
	char text[FRAGI_NAMES_MAX * 4 * FRAG_NAME_MAX + 32] = "";
	struct fragi_names names = {.text = text, .size = sizeof(text), .separator = "; "};
	struct drv_differences *d = a->differences;

	a->effect = d->more_effect != FW_EFFECT_NONE ? FW_EFFECT_APPLICATION : FW_EFFECT_NONE;
	for (uint32_t i = 0; i < d->count; i++) {
		d->rows[i].change.effect = effect_of(a->app, &d->rows[i]);
		if (d->rows[i].change.effect > a->effect)
			a->effect = d->rows[i].change.effect;
	}
	for (uint32_t h = 0; a->effect == FW_EFFECT_FRAGMENT && h < a->app->host_count; h++)
		if (is_restarted(a, &a->app->hosts[h]))
			fragi_names_add(&names, "%s", a->app->hosts[h].name);
	a->restarts = drv_text(a->app->core, "%s", text);
}

static void answer(const struct applying *a, uint64_t run)
{
	struct fw_message message = {.kind = FW_CHANGES, .reply_to = a->message->seq, .run = run};
	struct fw_changes *changes = &message.changes;
	const struct drv_differences *d = a->differences;
	int r;

	changes->rows = fragi_arena_alloc(&a->app->core->actions->arena,
					  (d->count + 1) * sizeof(*changes->rows));
	changes->more = d->more;
	changes->effect = a->effect;
	changes->restarts = a->restarts;
	for (uint32_t i = 0; changes->rows != NULL && i < d->count; i++)
		changes->rows[changes->count++] = d->rows[i].change;
	if (changes->rows == NULL)
		r = -ENOMEM;
	else if (a->message->apply.only_shows)
		r = drv_send(a->client, &message);
	else
		r = drv_session_send_when_kept(
			a->client, &message, &changes->remark,
			drv_text(a->app->core,
				 "the next driverd does not know the changed graph of %s",
				 drv_app_name(a->app)));
	if (r < 0)
		drv_session_drop(a->client, "no memory is left for an answer");
}

/* Why the changes cannot be made now; NULL: they can. */
static const char *obstacle(const struct applying *a, enum fragi_failure *out_code)
{
	struct drv_core *core = a->app->core;
	const char *name = drv_app_name(a->app);

	if (core->stops > 0 || a->effect == FW_EFFECT_APPLICATION)
		return drv_command_no_next_run(core, name, out_code);
	*out_code = FRAGI_FAILURE_NO_SERVICE;
	for (uint32_t i = 0; i < a->differences->count; i++) {
		const struct drv_difference *row = &a->differences->rows[i];
		const struct drv_host *host = drv_host_running(a->app, row->fragment);

		if (row->change.effect == FW_EFFECT_SET && !is_restarted(a, host))
			return drv_text(core,
					"%s has not been set; `fragctl apply %s` does so first",
					row->change.set, name);
		if (row->change.effect == FW_EFFECT_FRAGMENT && !drv_restart_may(host))
			return drv_text(
				core,
				"%s is being started again, or was as often as its on_failure allows; try again later",
				host->name);
	}
	return NULL;
}

static void *copy_of(const void *bytes, size_t size)
{
	void *copy = fragi_malloc(size);

	return copy != NULL ? memcpy(copy, bytes, size) : NULL;
}

/* The new source is the application's. Returns 0 or -ENOMEM. */
static int take_source(const struct applying *a)
{
	const struct fw_apply *apply = &a->message->apply;
	bool starts_anew = a->effect == FW_EFFECT_APPLICATION;
	struct drv_app *app = a->app;
	void *before = starts_anew ? copy_of(app->source.bytes, app->source.size) : NULL;
	void *copy = copy_of(apply->source, apply->source_bytes);

	if (copy == NULL || (starts_anew && before == NULL)) {
		fragi_free(before);
		fragi_free(copy);
		return -ENOMEM;
	}
	if (starts_anew) /* there was none: this application has run */
		app->before = (struct drv_source){before, app->source.size};
	drv_source_replace(app, copy, apply->source_bytes);
	return 0;
}

static void restart_hosts(const struct applying *a)
{
	const struct fw_failure why = {
		.code = FRAGI_FAILURE_OTHER,
		.sentence = drv_text(a->app->core, "%s applies a changed graph", a->client->who)};

	for (uint32_t i = 0; i < a->app->host_count; i++)
		if (is_restarted(a, &a->app->hosts[i]))
			drv_host_restart(&a->app->hosts[i], &why);
}

/* Makes the changes. Returns the run that they lead to; 0: refused. */
static uint64_t change(const struct applying *a)
{
	enum fragi_failure code;
	const char *why = obstacle(a, &code);
	struct drv_app *app = a->app;

	if (why != NULL) {
		refuse(a, code, why);
		return 0;
	}
	if (take_source(a) < 0) {
		refuse(a, FRAGI_FAILURE_OUT_OF_MEMORY, "driverd has no memory left for this graph");
		return 0;
	}
	drv_history_add(app->core, FW_NOTICE_APPLY, app, a->client->who, "%s",
			a->effect == FW_EFFECT_APPLICATION ? "starts it anew"
			: a->effect == FW_EFFECT_FRAGMENT
				? drv_text(app->core, "starts %s again", a->restarts)
				: "starts nothing again");
	drv_log(app->core, FRAGI_LOG_INFO, drv_app_name(app), "%s applies a changed graph",
		a->client->who);
	if (a->effect == FW_EFFECT_APPLICATION)
		return drv_command_start_anew(a->client, app);
	if (a->effect == FW_EFFECT_FRAGMENT)
		restart_hosts(a);
	return app->run;
}

static void apply(struct applying *a)
{
	const struct fw_apply *wanted = &a->message->apply;
	struct frag_err err = FRAG_ERR_INIT;
	uint64_t run = a->app->run;
	int r = drv_source_parse(a->app->source.bytes, a->app->source.size, &a->before, &err);

	if (r == 0)
		r = drv_source_parse(wanted->source, wanted->source_bytes, &a->after, &err);
	if (r < 0) {
		refuse(a, r == -ENOMEM ? FRAGI_FAILURE_OUT_OF_MEMORY : FRAGI_FAILURE_GRAPH_INVALID,
		       drv_text(a->app->core, "%s", err.text));
		return;
	}
	drv_difference_find(a->before, a->after, a->differences);
	if (a->differences->out_of_memory) {
		refuse(a, FRAGI_FAILURE_OUT_OF_MEMORY,
		       "driverd has no memory left to compare the graphs");
		return;
	}
	judge(a);
	if (!wanted->only_shows)
		run = change(a);
	if (run != 0)
		answer(a, run);
}

void drv_apply(struct drv_session *client, const struct fw_message *message)
{
	struct applying a = {.client = client, .message = message};
	struct drv_core *core = client->core;
	const char *no_room;

	a.app = drv_app_named(core, message->apply.name);
	if (a.app == NULL) {
		drv_refuse_unknown(client, message, message->apply.name);
		return;
	}
	if (a.app->state != DRV_APP_RUNNING || a.app->end != DRV_END_NONE) {
		refuse(&a, FRAGI_FAILURE_APPLICATION_UNKNOWN,
		       drv_text(core, "%s is %s; a changed graph is taken while it runs",
				drv_app_name(a.app), drv_app_state_name(a.app->state)));
		return;
	}
	no_room = drv_source_no_room(core, a.app->source.size, message->apply.source_bytes);
	if (no_room != NULL) {
		refuse(&a, FRAGI_FAILURE_DRIVER_FULL, no_room);
		return;
	}
	a.differences = fragi_calloc(1, sizeof(*a.differences));
	if (a.differences == NULL) {
		refuse(&a, FRAGI_FAILURE_OUT_OF_MEMORY,
		       "driverd has no memory left to compare the graphs");
		return;
	}
	a.differences->arena = &core->actions->arena;
	core->items -= (int64_t)message->apply.source_bytes / 64;
	apply(&a);
	fragi_spec_destroy(a.before);
	fragi_spec_destroy(a.after);
	fragi_free(a.differences);
}
