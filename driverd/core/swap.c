// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/swap.h>

#include <driverd/core/apply.h>
#include <driverd/core/parameter.h>

#include <errno.h>
#include <string.h>

#include <base/alloc.h>
#include <base/units.h>

struct drv_swap {
	struct drv_host *host;
	uint64_t connection, seq; /* of the client that waits for the answer; 0: it has got it */
	int64_t probation_ns;
	int64_t until_ns; /* of the probation; 0: the new process does not run yet */
	bool has_begun;   /* a process with the new library was asked for */
	bool is_taken;    /* the application's source has the new library */
	void *source;     /* until then; owned */
	size_t source_bytes;
	const char **forth, **back; /* the --set of the new library, and of the old one */
	size_t set_count;
	const char *who, *fragment, *library, *old;
	struct fragi_arena arena; /* of these texts */
};

static void swap_free(struct drv_swap *swap)
{
	fragi_arena_fini(&swap->arena);
	fragi_free(swap->source);
	fragi_free(swap);
}

/* The swap of the host that is under way, or whose probation is; NULL: there is none. */
static struct drv_swap *swap_of(const struct drv_host *host)
{
	struct drv_swap *swap = host->app->swap;

	return swap != NULL && swap->host == host ? swap : NULL;
}

static void forget(struct drv_swap *swap)
{
	swap->host->app->swap = NULL;
	swap_free(swap);
}

/* failure NULL: it is done. */
static void answer(struct drv_swap *swap, const struct fw_failure *failure)
{
	struct drv_app *app = swap->host->app;
	struct drv_session *client =
		swap->connection != 0 ? drv_session_find(app->core, swap->connection) : NULL;

	swap->connection = 0;
	if (client != NULL)
		drv_command_answer(client, swap->seq, app->run, drv_app_name(app), failure);
}

static void refuse(struct drv_session *client, const struct drv_app *app,
		   const struct fw_message *message, const struct fw_failure *failure)
{
	const char *name = drv_app_name(app);

	drv_log(client->core, FRAGI_LOG_WARN, name, "refused to swap a library for %s: %s",
		client->who, failure->sentence);
	drv_history_note(client->core, FW_EVENT_REFUSED, app, client->who, "swap of %.80s: %s",
			 message->swap.fragment, failure->sentence);
	drv_command_answer(client, message->seq, app->run, name, failure);
}

/* What is asked for, and what was found out about it. */
struct asking {
	struct drv_app *app;
	const struct fw_swap *wanted;
	struct fragi_spec *spec; /* of the present source */
	struct drv_host *host;
	const char *named, *old; /* the library that is replaced: in the graph, and now */
	struct fw_failure failure;
};

static int fail(struct asking *a, enum fragi_failure code, const char *sentence)
{
	a->failure = (struct fw_failure){code, sentence, NULL};
	return -EINVAL;
}

static int find_host(struct asking *a)
{
	struct drv_app *app = a->app;
	const struct fragi_spec *spec = app->spec;
	const struct fragi_spec_fragment *found =
		fragi_strmap_get(&app->by_name, a->wanted->fragment);
	const char **names;
	char advice[512];

	if (found != NULL) {
		a->host = app->fragments[found - spec->fragments].host;
		return 0;
	}
	names = fragi_arena_alloc(&app->core->actions->arena,
				  (spec->fragment_count + 1) * sizeof(*names));
	for (size_t i = 0; names != NULL && i < spec->fragment_count; i++)
		names[i] = spec->fragments[i].name;
	return fail(a, FRAGI_FAILURE_USAGE,
		    drv_text(app->core, "unknown fragment \"%.80s\"%s", a->wanted->fragment,
			     fragi_advise(advice, sizeof(advice), a->wanted->fragment, "fragments",
					  names, names != NULL ? spec->fragment_count : 0)));
}

/* Only where its host runs, and no other one of the application is being replaced. */
static int check_host(struct asking *a)
{
	struct drv_app *app = a->app;
	struct drv_core *core = app->core;
	const struct drv_host *host = a->host;
	const char *why = drv_where_keeps_process(host), *name = drv_app_name(app);

	if (app->swap != NULL && app->swap->until_ns != 0)
		return fail(a, FRAGI_FAILURE_NO_SERVICE,
			    drv_text(core, "%s has %s on probation; try again when that is over",
				     app->swap->fragment, app->swap->library));
	if (app->moving != NULL || app->swap != NULL)
		return fail(a, FRAGI_FAILURE_NO_SERVICE,
			    drv_text(core,
				     "%s of %s is being replaced already; try again when `fragctl "
				     "events` shows that it runs",
				     (app->moving != NULL ? app->moving : app->swap->host)->name,
				     name));
	if (host->now.session == NULL || drv_host_is_started_again(host) ||
	    host->now.state != DRV_HOST_RUNNING)
		return fail(
			a, FRAGI_FAILURE_HOST_FAILED,
			drv_text(core,
				 host->now.state == DRV_HOST_DONE
					 ? "%s on worker %s is done; its library cannot be replaced"
					 : "%s on worker %s is being started again; try again "
					   "when it runs",
				 host->name, host->worker));
	if (why == NULL && core->is_behind)
		why = "the state folder cannot be written, and a driver that comes back must know "
		      "which library is used";
	return why == NULL ? 0
			   : fail(a, FRAGI_FAILURE_NO_SERVICE,
				  drv_text(core, "%s cannot be replaced while it runs: %s",
					   host->name, why));
}

static const struct fragi_spec_fragment *fragment_of(const struct asking *a, const char *name)
{
	for (size_t f = 0; f < a->spec->fragment_count; f++)
		if (strcmp(a->spec->fragments[f].name, name) == 0)
			return &a->spec->fragments[f];
	return NULL;
}

/* Which library of the fragment is meant; the client may name it as the graph does, or as it is. */
static int find_library(struct asking *a)
{
	const struct fragi_spec_fragment *fragment = fragment_of(a, a->wanted->fragment);
	const struct fragi_spec_extension *found = NULL;
	const char *replaces = a->wanted->replaces;
	struct drv_core *core = a->app->core;
	const char *names = "";
	size_t count = 0;

	for (size_t i = 0; fragment != NULL && i < fragment->extension_count; i++) {
		const struct fragi_spec_extension *own = &fragment->extensions[i];

		names = i < 8 ? drv_text(core, "%s%s%s", names, i > 0 ? ", " : "", own->library)
			      : names;
		if (strcmp(own->library, a->wanted->library) == 0)
			return fail(
				a, FRAGI_FAILURE_USAGE,
				drv_text(core,
					 "%s uses %s already; give another version of it a name "
					 "of its own",
					 fragment->name, own->library));
		if (replaces[0] != '\0' && strcmp(own->library, replaces) != 0 &&
		    strcmp(own->named, replaces) != 0)
			continue;
		found = own;
		count++;
	}
	if (count != 1 && replaces[0] != '\0')
		return fail(a, FRAGI_FAILURE_USAGE,
			    drv_text(core, "%s uses no library \"%.80s\"; it uses %s",
				     a->wanted->fragment, replaces, names));
	if (count != 1)
		return fail(a, FRAGI_FAILURE_USAGE,
			    count == 0 ? drv_text(core, "%s uses no library that could be replaced",
						  a->wanted->fragment)
				       : drv_text(core,
						  "%s uses several libraries; say with --replaces "
						  "which of them: %s",
						  a->wanted->fragment, names));
	if (found->sha256 != NULL)
		return fail(
			a, FRAGI_FAILURE_USAGE,
			drv_text(core,
				 "the graph demands %s with a certain sha256; change both there, "
				 "and use `fragctl apply`",
				 found->library));
	if (strchr(found->named, '=') != NULL)
		return fail(a, FRAGI_FAILURE_USAGE,
			    drv_text(core,
				     "a library with \"=\" in its name, as %s, cannot be "
				     "replaced",
				     found->library));
	a->named = found->named;
	a->old = found->library;
	return 0;
}

/* Of all fragments of the host that use it: a host loads a library once. */
static void list_sets(const struct asking *a, struct drv_swap *swap)
{
	for (uint32_t i = 0; i < a->host->fragment_count; i++) {
		const char *name = a->app->spec->fragments[a->host->fragments[i]].name;
		const struct fragi_spec_fragment *fragment = fragment_of(a, name);

		for (size_t k = 0; fragment != NULL && k < fragment->extension_count; k++) {
			const struct fragi_spec_extension *own = &fragment->extensions[k];

			if (strcmp(own->library, a->old) != 0)
				continue;
			swap->forth[swap->set_count] =
				fragi_arena_printf(&swap->arena, FRAGI_SPEC_SWAP "%s/%s=%s", name,
						   own->named, a->wanted->library);
			swap->back[swap->set_count++] = fragi_arena_printf(
				&swap->arena, FRAGI_SPEC_SWAP "%s/%s=%s", name, own->named, a->old);
			break;
		}
	}
}

/* Returns 0 or -ENOMEM. */
static int write_texts(const struct asking *a, struct drv_swap *swap, const char *who)
{
	struct fragi_arena *arena = &swap->arena;
	size_t bytes = a->host->fragment_count * sizeof(*swap->forth);
	bool is_whole;

	swap->forth = fragi_arena_alloc(arena, bytes);
	swap->back = fragi_arena_alloc(arena, bytes);
	if (swap->forth == NULL || swap->back == NULL)
		return -ENOMEM;
	list_sets(a, swap);
	swap->who = fragi_arena_strdup(arena, who);
	swap->fragment = fragi_arena_strdup(arena, a->wanted->fragment);
	swap->library = fragi_arena_strdup(arena, a->wanted->library);
	swap->old = fragi_arena_strdup(arena, a->old);
	is_whole = swap->who != NULL && swap->fragment != NULL && swap->library != NULL &&
		   swap->old != NULL;
	for (size_t i = 0; i < swap->set_count; i++)
		is_whole = is_whole && swap->forth[i] != NULL && swap->back[i] != NULL;
	return is_whole ? 0 : -ENOMEM;
}

static int begin(struct asking *a, struct drv_session *client, const struct fw_message *message)
{
	struct drv_app *app = a->app;
	struct drv_core *core = app->core;
	struct drv_swap *swap = fragi_calloc(1, sizeof(*swap));
	int r = swap != NULL ? 0 : -ENOMEM;

	if (r == 0)
		r = write_texts(a, swap, client->who);
	if (r == 0)
		r = drv_parameter_pack(app, swap->forth, swap->set_count, &swap->source,
				       &swap->source_bytes);
	if (r == 0 && drv_command_source_bytes(core) + swap->source_bytes > DRV_SOURCES_MAX)
		r = -EFBIG;
	if (r < 0) {
		if (swap != NULL)
			swap_free(swap);
		return r == -EFBIG ? fail(a, FRAGI_FAILURE_DRIVER_FULL,
					  "the graphs that driverd keeps have no room for this")
				   : fail(a, FRAGI_FAILURE_OUT_OF_MEMORY,
					  "driverd has no memory left for this swap");
	}
	swap->host = a->host;
	swap->connection = client->connection;
	swap->seq = message->seq;
	swap->probation_ns = a->wanted->probation_ns;
	app->swap = swap;
	drv_app_wake(app);
	drv_history_note(core, FW_EVENT_SWAP, app, swap->who, "%s: %s is prepared in place of %s",
			 swap->fragment, swap->library, swap->old);
	return 0;
}

void drv_swap_work(struct drv_app *app)
{
	struct drv_swap *swap = app->swap;

	if (!drv_swap_is_asked(app))
		return;
	swap->has_begun = true;
	drv_log(app->core, FRAGI_LOG_INFO, drv_app_name(app),
		"%s goes on in another process on worker %s: %s replaces %s by %s",
		swap->host->name, swap->host->worker, swap->who, swap->old, swap->library);
	drv_replace_prepare(swap->host, swap->host->now.session, DRV_CAUSE_SWAP);
}

bool drv_swap_is_asked(const struct drv_app *app)
{
	return app->swap != NULL && !app->swap->has_begun;
}

static int ask(struct asking *a, struct drv_session *client, const struct fw_message *message)
{
	struct drv_app *app = a->app;
	struct frag_err err = FRAG_ERR_INIT;

	if (app->swap != NULL && app->swap->until_ns != 0 &&
	    app->core->now_ns >= app->swap->until_ns)
		forget(app->swap);
	if (app->state != DRV_APP_RUNNING || app->end != DRV_END_NONE)
		return fail(a, FRAGI_FAILURE_APPLICATION_UNKNOWN,
			    drv_text(app->core,
				     "%s is %s; a library is replaced while its application runs",
				     drv_app_name(app), drv_app_state_name(app->state)));
	if (find_host(a) < 0 || check_host(a) < 0)
		return -EINVAL;
	if (drv_apply_parse(app->source.bytes, app->source.size, &a->spec, &err) < 0)
		return fail(a, FRAGI_FAILURE_OTHER, drv_text(app->core, "%s", err.text));
	return find_library(a) < 0 ? -EINVAL : begin(a, client, message);
}

void drv_swap(struct drv_session *client, const struct fw_message *message)
{
	struct asking a = {.wanted = &message->swap};

	a.app = drv_app_named(client->core, message->swap.name);
	if (a.app == NULL) {
		drv_command_refuse_unknown(client, message, message->swap.name);
		return;
	}
	if (ask(&a, client, message) < 0)
		refuse(client, a.app, message, &a.failure);
	fragi_spec_destroy(a.spec);
}

uint32_t drv_swap_cost(const struct drv_core *core, const struct fw_message *message)
{
	const struct drv_app *app = drv_app_named(core, message->swap.name);

	return app != NULL ? (uint32_t)(app->source.size / DRV_REQUEST_BYTES) : 0;
}

const void *drv_swap_source(const struct drv_host *host, size_t *out_bytes)
{
	const struct drv_swap *swap = swap_of(host);

	if (swap == NULL || swap->source == NULL)
		return NULL;
	*out_bytes = swap->source_bytes;
	return swap->source;
}

void drv_swap_takes_source(struct drv_host *host)
{
	struct drv_swap *swap = swap_of(host);

	if (swap == NULL || swap->source == NULL)
		return;
	drv_parameter_use_source(host->app, swap->source, swap->source_bytes);
	host->next.sources = host->app->settings.sources;
	swap->source = NULL;
	swap->is_taken = true;
}

/* The application's source has the old library again. */
static void return_source(struct drv_swap *swap)
{
	struct drv_app *app = swap->host->app;
	size_t bytes;
	void *source;

	if (!swap->is_taken)
		return;
	swap->is_taken = false;
	if (drv_parameter_pack(app, swap->back, swap->set_count, &source, &bytes) < 0)
		drv_app_fail_for_memory(app);
	else
		drv_parameter_use_source(app, source, bytes);
}

void drv_swap_refused(struct drv_host *host, enum fragi_failure code, const char *why)
{
	struct drv_swap *swap = swap_of(host);
	struct drv_core *core = host->app->core;
	struct fw_failure failure = {code != FRAGI_FAILURE_NONE ? code : FRAGI_FAILURE_HOST_FAILED,
				     NULL, NULL};

	if (swap == NULL)
		return;
	return_source(swap);
	failure.sentence = drv_text(core, "%s; nothing has changed, %s goes on with %s", why,
				    swap->fragment, swap->old);
	drv_log(core, FRAGI_LOG_WARN, drv_app_name(host->app), "%s does not replace %s: %s",
		swap->library, swap->old, why);
	drv_history_note(core, FW_EVENT_REFUSED, host->app, swap->who, "swap of %s: %s",
			 swap->fragment, failure.sentence);
	answer(swap, &failure);
	forget(swap);
}

/* The host is started again with the library that it had before. */
static void go_back(struct drv_swap *swap, enum fragi_failure code, const char *why)
{
	struct drv_app *app = swap->host->app;
	struct fw_failure failure = {code != FRAGI_FAILURE_NONE ? code : FRAGI_FAILURE_HOST_FAILED,
				     NULL, NULL};

	return_source(swap);
	failure.sentence = drv_text(app->core, "%s: %s has failed, and %s returns: %s",
				    swap->fragment, swap->library, swap->old, why);
	drv_log(app->core, FRAGI_LOG_WARN, drv_app_name(app), "%s", failure.sentence);
	drv_history_note(app->core, FW_EVENT_SWAP, app, NULL, "%s", failure.sentence);
	answer(swap, &failure);
	forget(swap);
}

void drv_swap_lost(struct drv_host *host, const char *why)
{
	struct drv_swap *swap = swap_of(host);

	if (swap != NULL)
		go_back(swap, FRAGI_FAILURE_HOST_FAILED, why);
}

void drv_swap_runs(struct drv_host *host)
{
	struct drv_swap *swap = swap_of(host);

	if (swap == NULL || swap->until_ns != 0)
		return;
	drv_history_note(host->app->core, FW_EVENT_SWAP, host->app, NULL,
			 "%s: %s runs in place of %s", swap->fragment, swap->library, swap->old);
	answer(swap, NULL);
	if (swap->probation_ns > 0)
		swap->until_ns = host->app->core->now_ns + swap->probation_ns;
	else
		forget(swap);
}

bool drv_swap_returns(struct drv_host *host, const struct fw_failure *failure)
{
	struct drv_app *app = host->app;
	struct drv_swap *swap = swap_of(host);

	if (swap == NULL || !swap->is_taken || app->state != DRV_APP_RUNNING ||
	    app->end != DRV_END_NONE || host->now.session == NULL || host->now.is_lost ||
	    failure->code == FRAGI_FAILURE_WORKER_LOST ||
	    (host->replacement.phase != DRV_PHASE_NONE &&
	     host->replacement.phase != DRV_PHASE_STARTING))
		return false;
	if (swap->until_ns != 0 && app->core->now_ns >= swap->until_ns) {
		forget(swap);
		return false;
	}
	go_back(swap, failure->code, failure->sentence);
	return app->end != DRV_END_AT_ONCE;
}

void drv_swap_end(struct drv_app *app)
{
	if (app->swap == NULL)
		return;
	answer(app->swap,
	       &(struct fw_failure){FRAGI_FAILURE_NO_SERVICE,
				    drv_text(app->core, "%s ended before the new library ran",
					     drv_app_name(app)),
				    NULL});
	forget(app->swap);
}

void drv_swap_fini(struct drv_app *app)
{
	if (app->swap != NULL)
		forget(app->swap);
}
