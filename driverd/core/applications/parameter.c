// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/applications/source.h>
#include <driverd/core/applications/parameter.h>

#include <errno.h>
#include <string.h>

#include <base/alloc.h>

/* A change that its host has not answered. */
struct drv_setting {
	struct drv_setting *next; /* the one that was asked for after it */
	uint64_t number;
	uint32_t host;
	uint64_t epoch;           /* of its process that was asked */
	uint64_t connection, seq; /* of the client and its SET */
	int64_t until_ns;
	const char *who; /* behind text */
	char text[];
};

static void refuse(struct drv_session *client, const struct drv_app *app, uint64_t seq,
		   const char *text, const struct fw_failure *failure)
{
	const char *name = drv_app_name(app);

	drv_log(client->core, FRAGI_LOG_WARN, name, "refused to set %.200s for %s: %s", text,
		client->who, failure->sentence);
	drv_history_add(client->core, FW_NOTICE_REFUSED, app, client->who, "set %.80s: %s", text,
			failure->sentence);
	drv_session_answer(client, seq, app->run, name, failure);
}

static void unlink_setting(struct drv_app *app, struct drv_setting *setting)
{
	struct drv_setting **at = &app->settings.first;

	while (*at != setting)
		at = &(*at)->next;
	*at = setting->next;
	app->settings.count--;
	fragi_free(setting);
}

/* Answers the client, if it is still there. failure NONE: the parameter was changed */
static void answer(struct drv_app *app, struct drv_setting *setting,
		   const struct fw_failure *failure)
{
	struct drv_session *client = drv_session_find(app->core, setting->connection);

	if (client != NULL && failure->code != FRAGI_FAILURE_NONE)
		refuse(client, app, setting->seq, setting->text, failure);
	else if (client != NULL)
		drv_session_answer_when_kept(
			client, setting->seq, app->run, drv_app_name(app),
			drv_text(app->core, "the next driverd does not know that %.200s was set",
				 setting->text));
	unlink_setting(app, setting);
}

/* Sets the timer for the first setting: they are in the order of their time. */
static void set_timer(struct drv_app *app)
{
	if (app->settings.first != NULL)
		drv_set(app->core, &app->settings.timeout, app->settings.first->until_ns);
	else
		drv_timer_cancel(&app->core->timers, &app->settings.timeout);
}

static void on_timeout(struct drv_timer *timer, int64_t now_ns, void *arg)
{
	struct drv_app *app = timer->owner;
	struct drv_setting *setting;

	(void)arg;
	while ((setting = app->settings.first) != NULL && setting->until_ns <= now_ns) {
		const struct drv_host *host = &app->hosts[setting->host - 1];

		answer(app, setting,
		       &(struct fw_failure){
			       FRAGI_FAILURE_HOST_LATE,
			       drv_text(app->core,
					"%s on worker %s did not answer in time; whether it has "
					"changed is not known",
					host->name, host->worker),
			       NULL});
	}
	set_timer(app);
}

/* The host of the fragment that the text names; NULL: there is none, err says why. */
static struct drv_host *find_host(struct drv_app *app, const char *text, struct frag_err *err)
{
	const char *dot = strchr(text, '.');
	char name[FRAG_NAME_MAX + 1];
	size_t bytes = dot != NULL ? (size_t)(dot - text) : sizeof(name);
	struct drv_host *host;

	if (bytes >= sizeof(name) || drv_source_name_bytes(text) < bytes) {
		frag_err_set(err, -EINVAL,
			     "\"%.80s\" is not understood; write FRAGMENT.OPERATOR.PARAMETER=VALUE",
			     text);
		return NULL;
	}
	memcpy(name, text, bytes);
	name[bytes] = '\0';
	host = drv_host_running(app, name);
	if (host == NULL)
		frag_err_set(err, -EINVAL, "unknown fragment \"%s\"%s", name,
			     drv_app_advise(app, name));
	return host;
}

static bool runs(const struct drv_host *host)
{
	return host->now.session != NULL && host->replacement.phase < DRV_PHASE_YIELDING &&
	       (host->now.state == DRV_HOST_RUNNING || host->now.state == DRV_HOST_DONE);
}

/* Why it cannot be changed now; code NONE: it can. */
static struct fw_failure check(struct drv_app *app, const struct drv_host *host, const char *text,
			       const struct frag_err *err)
{
	struct drv_core *core = app->core;
	const char *name = drv_app_name(app);

	if (app->state != DRV_APP_RUNNING)
		return (struct fw_failure){
			FRAGI_FAILURE_APPLICATION_UNKNOWN,
			drv_text(core,
				 "%s is %s; its parameters can be set while it runs, and "
				 "`fragctl start --set` sets them from the start",
				 name, drv_app_state_name(app->state)),
			NULL};
	if (err->code < 0)
		return (struct fw_failure){FRAGI_FAILURE_USAGE, drv_text(core, "%s", err->text),
					   NULL};
	if (!runs(host))
		return (struct fw_failure){
			FRAGI_FAILURE_HOST_FAILED,
			drv_text(core,
				 "%s on worker %s is being started again; try again when "
				 "`fragctl status %s` shows that it runs",
				 host->name, host->worker, name),
			NULL};
	if (host->now.session->minor < DRV_SETS_MINOR)
		return (struct fw_failure){
			FRAGI_FAILURE_VERSION_REFUSED,
			drv_text(core,
				 "worker %s has a frag that cannot change parameters; "
				 "install that of driverd there",
				 host->worker),
			NULL};
	if (app->settings.count >= DRV_SETS_MAX)
		return (struct fw_failure){
			FRAGI_FAILURE_DRIVER_FULL,
			drv_text(core, "%d changes of %s are not answered yet; try again",
				 DRV_SETS_MAX, name),
			NULL};
	if (app->source.size + strlen(text) + DRV_SET_ROOM > FRAGI_SOURCE_MAX)
		return (struct fw_failure){FRAGI_FAILURE_DRIVER_FULL, drv_source_too_large(app),
					   NULL};
	return (struct fw_failure){0};
}

static struct drv_setting *make_setting(const struct drv_session *client, struct drv_host *host,
					uint64_t seq, const char *text)
{
	size_t bytes = strlen(text) + 1, who_bytes = strlen(client->who) + 1;
	struct drv_setting *setting = fragi_malloc(sizeof(*setting) + bytes + who_bytes);

	if (setting == NULL)
		return NULL;
	*setting = (struct drv_setting){
		.number = ++host->app->settings.last,
		.host = host->number,
		.epoch = host->now.epoch,
		.connection = client->connection,
		.seq = seq,
		.until_ns = client->core->now_ns + client->core->config.dead_ns,
		.who = setting->text + bytes,
	};
	memcpy(setting->text, text, bytes);
	memcpy(setting->text + bytes, client->who, who_bytes);
	return setting;
}

static int ask(struct drv_session *client, struct drv_host *host, uint64_t seq, const char *text)
{
	struct drv_app *app = host->app;
	struct drv_setting *setting = make_setting(client, host, seq, text),
			   **at = &app->settings.first;
	struct fw_message request = {.kind = FW_HOST_SET,
				     .run = app->run,
				     .host = host->number,
				     .epoch = host->now.epoch};
	int r;

	if (setting == NULL)
		return -ENOMEM;
	request.host_set = (struct fw_host_set){setting->number, setting->text, setting->who};
	r = drv_send(host->now.session, &request);
	if (r < 0) {
		fragi_free(setting);
		return r;
	}
	while (*at != NULL)
		at = &(*at)->next;
	*at = setting;
	app->settings.count++;
	app->settings.timeout.fire = on_timeout;
	app->settings.timeout.owner = app;
	set_timer(app);
	return 0;
}

/* The text with the name of the fragment, which may be left out where there is only one. */
static const char *in_full(const struct drv_app *app, const char *text)
{
	const char *end = text + drv_source_name_bytes(text), *dot = strchr(text, '.');

	if (app->spec->fragment_count != 1 || dot == NULL || dot >= end ||
	    memchr(dot + 1, '.', (size_t)(end - dot - 1)) != NULL)
		return text;
	return drv_text(app->core, "%s.%s", app->spec->fragments[0].name, text);
}

void drv_parameter_set(struct drv_session *client, const struct fw_message *message)
{
	const char *name = message->set.name, *text;
	struct drv_core *core = client->core;
	struct drv_app *app = drv_app_named(core, name);
	struct frag_err err = FRAG_ERR_INIT;
	struct fw_failure failure;
	struct drv_host *host;

	if (app == NULL) {
		drv_refuse_unknown(client, message, name);
		return;
	}
	text = in_full(app, message->set.text);
	host = find_host(app, text, &err);
	failure = check(app, host, text, &err);
	if (failure.code == FRAGI_FAILURE_NONE && ask(client, host, message->seq, text) < 0)
		failure = (struct fw_failure){FRAGI_FAILURE_OUT_OF_MEMORY,
					      "driverd has no memory left for this change", NULL};
	if (failure.code != FRAGI_FAILURE_NONE)
		refuse(client, app, message->seq, text, &failure);
}

/* Remembers who changed it, for clients. Returns 0 or -ENOMEM. */
static int remember(struct drv_app *app, const char *text, const char *who)
{
	size_t bytes = strlen(text) + 1, who_bytes = strlen(who) + 1;
	struct drv_parameter *parameter = fragi_malloc(sizeof(*parameter) + bytes + who_bytes);
	struct drv_parameter **at = &app->settings.changed, *old;

	if (parameter == NULL)
		return -ENOMEM;
	*parameter =
		(struct drv_parameter){.at_ns = app->core->real_ns,
				       .name_bytes = drv_source_name_bytes(text),
				       .value = parameter->text + drv_source_name_bytes(text) + 1,
				       .who = parameter->text + bytes};
	memcpy(parameter->text, text, bytes);
	frag_hide_credentials(parameter->text, 0);
	memcpy(parameter->text + bytes, who, who_bytes);
	while ((old = *at) != NULL) {
		if (drv_source_is_same_set(old->text, text)) {
			*at = old->next;
			fragi_free(old);
		} else {
			at = &old->next;
		}
	}
	*at = parameter;
	return 0;
}

/* Makes the change a part of the application. */
static int keep_change(struct drv_app *app, const struct drv_setting *setting)
{
	size_t size;
	void *bytes;
	const char *text = setting->text;
	struct drv_host *moving = app->moving;
	const bool is_newest = moving != NULL && moving->next.sources == app->settings.sources;
	int r = drv_source_pack(app, &text, 1, &bytes, &size);

	if (r < 0)
		return r;
	drv_source_use(app, bytes, size);
	/* What was prepared to follow another host has all that concerns it. */
	if (moving != NULL && moving->number != setting->host && is_newest &&
	    moving->replacement.cause == DRV_CAUSE_DRAIN)
		moving->next.sources = app->settings.sources;
	return remember(app, setting->text, setting->who);
}

bool drv_parameter_is_being_set(const struct drv_host *host)
{
	const struct drv_setting *setting = host->app->settings.first;

	while (setting != NULL && setting->host != host->number)
		setting = setting->next;
	return setting != NULL;
}

static struct drv_setting *find(const struct drv_host *host, uint64_t number)
{
	struct drv_setting *setting = host->app->settings.first;

	while (setting != NULL && (setting->number != number || setting->host != host->number))
		setting = setting->next;
	return setting;
}

void drv_parameter_done(struct drv_host *host, const struct fw_host_set_done *done)
{
	struct drv_app *app = host->app;
	struct drv_setting *setting = find(host, done->number);
	struct fw_failure failure = done->failure;

	if (setting == NULL) /* it was late */
		return;
	if (failure.code == FRAGI_FAILURE_NONE) {
		drv_log(app->core, FRAGI_LOG_INFO, drv_app_name(app), "%s sets %.200s",
			setting->who, setting->text);
		drv_history_add(app->core, FW_NOTICE_SET, app, setting->who, "%s", setting->text);
		if (keep_change(app, setting) < 0)
			failure = (struct fw_failure){
				FRAGI_FAILURE_OUT_OF_MEMORY,
				"it has changed, but driverd has no memory left to keep it for the "
				"next start",
				NULL};
	}
	answer(app, setting, &failure);
	set_timer(app);
}

/* Whether the process that was asked is another one now, or ends. */
static bool has_ended(const struct drv_app *app, const struct drv_setting *setting)
{
	const struct drv_process *now = &app->hosts[setting->host - 1].now;

	return now->epoch != setting->epoch || now->state > DRV_HOST_DONE;
}

void drv_parameter_work(struct drv_app *app)
{
	struct drv_setting *setting = app->settings.first, *next;

	for (; setting != NULL; setting = next) {
		const struct drv_host *host = &app->hosts[setting->host - 1];

		next = setting->next;
		if (!has_ended(app, setting))
			continue;
		answer(app, setting,
		       &(struct fw_failure){FRAGI_FAILURE_HOST_FAILED,
					    drv_text(app->core,
						     "%s on worker %s ended before it answered",
						     host->name, host->worker),
					    NULL});
		set_timer(app);
	}
}

int drv_parameter_rows(const struct drv_app *app, struct fw_application_row *row,
		       struct fw_reply *reply)
{
	struct fragi_arena *arena = &app->core->actions->arena;
	size_t count = 0;

	for (const struct drv_parameter *p = app->settings.changed; p != NULL; p = p->next)
		count++;
	row->parameters = fragi_arena_alloc(arena, (count + 1) * sizeof(*row->parameters));
	if (row->parameters == NULL)
		return -ENOMEM;
	for (const struct drv_parameter *p = app->settings.changed; p != NULL; p = p->next) {
		const char *name = fragi_arena_strndup(arena, p->text, p->name_bytes);

		if (name == NULL)
			return -ENOMEM;
		if (!drv_session_take_row(app->core, p->text)) {
			reply->more++;
			continue;
		}
		row->parameters[row->parameter_count++] = (struct fw_parameter_row){
			.name = name,
			.value = p->value,
			.who = p->who,
			.age_ns = app->core->real_ns - p->at_ns,
		};
	}
	return 0;
}

void drv_parameter_fini(struct drv_app *app)
{
	while (app->settings.first != NULL)
		unlink_setting(app, app->settings.first);
	drv_source_forget_changes(app);
	fragi_free(app->settings.source);
}
