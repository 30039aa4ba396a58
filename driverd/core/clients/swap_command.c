// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/applications/source.h>
#include <driverd/core/hosts/swap.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>
#include <base/sentence.h>

/* The command of a client that replaces a library: what speaks against it, and how it begins. */

static void refuse(struct drv_session *client, const struct drv_app *app,
		   const struct fw_message *message, const struct fw_failure *failure)
{
	const char *name = drv_app_name(app);

	drv_log(client->core, FRAGI_LOG_WARN, name, "refused to swap a library for %s: %s",
		client->who, failure->sentence);
	drv_history_add(client->core, FW_NOTICE_REFUSED, app, client->who, "swap of %.80s: %s",
			message->swap.fragment, failure->sentence);
	drv_session_answer(client, message->seq, app->run, name, failure);
}

/* The swap that is asked for, and what was found out about it. */
struct asking {
	struct drv_app *app;
	const struct fw_swap *wanted;
	struct fragi_spec *spec; /* of the present source */
	struct drv_host *host;
	const char *old; /* the library that is replaced, as it is called now */
	struct fw_failure failure;
};

static int fail(struct asking *a, enum fragi_failure code, const char *format, ...)
	FRAG_PRINTF(3, 4);
static int fail(struct asking *a, enum fragi_failure code, const char *format, ...)
{
	char sentence[FW_TEXT_MAX];
	va_list args;

	va_start(args, format);
	fragi_sentence_of(sentence, sizeof(sentence), format, args);
	va_end(args);
	a->failure = (struct fw_failure){code, drv_text(a->app->core, "%s", sentence), NULL};
	return -EINVAL;
}

static int find_host(struct asking *a)
{
	const char *name = a->wanted->fragment;

	a->host = drv_host_running(a->app, name);
	return a->host != NULL ? 0
			       : fail(a, FRAGI_FAILURE_USAGE, "unknown fragment \"%.80s\"%s", name,
				      drv_app_advise(a->app, name));
}

/* Checks that the host runs, and that no other host of the application is being replaced. */
static int check_host(struct asking *a)
{
	struct drv_app *app = a->app;
	struct drv_core *core = app->core;
	const struct drv_host *host = a->host;
	const char *why, *name = drv_app_name(app);

	if (app->swap != NULL && app->swap->until_ns != 0)
		return fail(a, FRAGI_FAILURE_NO_SERVICE,
			    "%s has %s on probation; try again when that is over",
			    app->swap->fragment, app->swap->library);
	if (app->moving != NULL || app->swap != NULL)
		return fail(
			a, FRAGI_FAILURE_NO_SERVICE,
			"%s of %s is being replaced already; try again when `fragctl events` shows that it runs",
			(app->moving != NULL ? app->moving : app->swap->host)->name, name);
	if (host->now.session == NULL || drv_host_is_restarting(host) ||
	    host->now.state != DRV_HOST_RUNNING)
		return fail(
			a, FRAGI_FAILURE_HOST_FAILED,
			host->now.state == DRV_HOST_DONE
				? "%s on worker %s is done; its library cannot be replaced"
				: "%s on worker %s is being started again; try again when it runs",
			host->name, host->worker);
	why = drv_candidate_process_obstacle(host);
	if (why != NULL)
		return fail(a, FRAGI_FAILURE_NO_SERVICE, "%s cannot be replaced while it runs: %s",
			    host->name, why);
	return !core->is_behind
		       ? 0
		       : fail(a, FRAGI_FAILURE_STATE_UNWRITABLE,
			      "%s cannot be replaced while it runs: the state folder cannot be written, and a driver that comes back must know which library is used; " DRV_STATE_ADVICE,
			      host->name);
}

static const struct fragi_spec_fragment *fragment_of(const struct asking *a, const char *name)
{
	for (size_t f = 0; f < a->spec->fragment_count; f++)
		if (strcmp(a->spec->fragments[f].name, name) == 0)
			return &a->spec->fragments[f];
	return NULL;
}

/* Finds the library that is meant; the client may name it as the graph does, or as it is. */
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
				"%s uses %s already; give another version of it a name of its own",
				fragment->name, own->library);
		if (replaces[0] != '\0' && strcmp(own->library, replaces) != 0 &&
		    strcmp(own->named, replaces) != 0)
			continue;
		found = own;
		count++;
	}
	if (count != 1 && replaces[0] != '\0')
		return fail(a, FRAGI_FAILURE_USAGE, "%s uses no library \"%.80s\"; it uses %s",
			    a->wanted->fragment, replaces, names);
	if (count == 0)
		return fail(a, FRAGI_FAILURE_USAGE, "%s uses no library that could be replaced",
			    a->wanted->fragment);
	if (count > 1)
		return fail(a, FRAGI_FAILURE_USAGE,
			    "%s uses several libraries; say with --replaces which of them: %s",
			    a->wanted->fragment, names);
	if (found->sha256 != NULL)
		return fail(
			a, FRAGI_FAILURE_USAGE,
			"the graph demands %s with a certain sha256; change both there, and use `fragctl apply`",
			found->library);
	if (strchr(found->named, '=') != NULL)
		return fail(a, FRAGI_FAILURE_USAGE,
			    "a library with \"=\" in its name, as %s, cannot be replaced",
			    found->library);
	a->old = found->library;
	return 0;
}

/* Lists the settings of all fragments of the host that use the library: a host loads it once. */
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

static const char no_memory[] = "driverd has no memory left for this swap";

static int begin(struct asking *a, struct drv_session *client, const struct fw_message *message)
{
	struct drv_app *app = a->app;
	struct drv_core *core = app->core;
	struct drv_swap *swap = fragi_calloc(1, sizeof(*swap));
	const char *no_room = NULL;
	int r;

	if (swap == NULL)
		return fail(a, FRAGI_FAILURE_OUT_OF_MEMORY, "%s", no_memory);
	r = write_texts(a, swap, client->who);
	if (r == 0)
		r = drv_source_pack(app, swap->forth, swap->set_count, &swap->source,
				    &swap->source_bytes);
	if (r == -EFBIG)
		no_room = drv_source_too_large(app);
	else if (r == 0)
		no_room = drv_source_no_room(core, 0, swap->source_bytes);
	if (r < 0 || no_room != NULL) {
		drv_swap_free(swap);
		return no_room != NULL ? fail(a, FRAGI_FAILURE_DRIVER_FULL, "%s", no_room)
				       : fail(a, FRAGI_FAILURE_OUT_OF_MEMORY, "%s", no_memory);
	}
	swap->host = a->host;
	swap->connection = client->connection;
	swap->seq = message->seq;
	swap->probation_ns = a->wanted->probation_ns;
	app->swap = swap;
	drv_app_wake(app);
	drv_history_add(core, FW_NOTICE_SWAP, app, swap->who, "%s: %s is prepared in place of %s",
			swap->fragment, swap->library, swap->old);
	return 0;
}

static int ask(struct asking *a, struct drv_session *client, const struct fw_message *message)
{
	struct drv_app *app = a->app;
	struct frag_err err = FRAG_ERR_INIT;

	if (app->swap != NULL && app->swap->until_ns != 0 &&
	    app->core->now_ns >= app->swap->until_ns)
		drv_swap_fini(app);
	if (app->state != DRV_APP_RUNNING || app->end != DRV_END_NONE)
		return fail(a, FRAGI_FAILURE_APPLICATION_UNKNOWN,
			    "%s is %s; a library is replaced while its application runs",
			    drv_app_name(app), drv_app_state_name(app->state));
	if (find_host(a) < 0 || check_host(a) < 0)
		return -EINVAL;
	if (drv_source_parse(app->source.bytes, app->source.size, &a->spec, &err) < 0)
		return fail(a, FRAGI_FAILURE_OTHER, "%s", err.text);
	return find_library(a) < 0 ? -EINVAL : begin(a, client, message);
}

void drv_swap(struct drv_session *client, const struct fw_message *message)
{
	struct asking a = {.wanted = &message->swap};

	a.app = drv_app_named(client->core, message->swap.name);
	if (a.app == NULL) {
		drv_refuse_unknown(client, message, message->swap.name);
		return;
	}
	if (ask(&a, client, message) < 0)
		refuse(client, a.app, message, &a.failure);
	fragi_spec_destroy(a.spec);
}
