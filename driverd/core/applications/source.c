// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/applications/source.h>
#include <driverd/core/hosts/swap.h>

#include <errno.h>
#include <string.h>

#include <base/alloc.h>

/* The bytes before the '='; 0: there is none. */
size_t drv_source_name_bytes(const char *text)
{
	const char *sign = strchr(text, '=');

	return sign != NULL ? (size_t)(sign - text) : 0;
}

bool drv_source_is_same_set(const char *a, const char *b)
{
	size_t bytes = drv_source_name_bytes(b);

	return drv_source_name_bytes(a) == bytes && strncmp(a, b, bytes) == 0;
}

int drv_source_parse(const void *bytes, size_t size, struct fragi_spec **out_spec,
		     struct frag_err *err)
{
	struct fragi_source source;
	struct fragi_diag diag = {0};
	int r = fragi_source_unpack(bytes, size, &source);

	if (r < 0)
		return frag_err_set(err, r, "%s",
				    r == -ENOMEM ? frag_strerror(r)
						 : "the application is not a packed source");
	r = fragi_spec_parse(&source.source, &diag, out_spec);
	fragi_source_fini(&source);
	if (r < 0) {
		char line[FW_TEXT_MAX];

		fragi_diag_sort(&diag, 0);
		frag_err_set(err, r, "%s",
			     diag.count > 0 ? fragi_err_line(diag.items, line, sizeof(line))
					    : frag_strerror(r));
	}
	fragi_diag_fini(&diag);
	return r;
}

static bool is_among(const char *text, const char *const *texts, size_t count)
{
	size_t i = 0;

	while (i < count && !drv_source_is_same_set(text, texts[i]))
		i++;
	return i < count;
}

int drv_source_pack(const struct drv_app *app, const char *const *texts, size_t text_count,
		    void **out_bytes, size_t *out_size)
{
	struct fragi_source source;
	const char **sets;
	size_t count = 0;
	int r = fragi_source_unpack(app->source.bytes, app->source.size, &source);

	if (r < 0)
		return r;
	sets = fragi_arena_alloc(&source.arena,
				 (source.source.set_count + text_count) * sizeof(*sets));
	for (size_t i = 0; sets != NULL && i < source.source.set_count; i++)
		if (!is_among(source.source.sets[i], texts, text_count))
			sets[count++] = source.source.sets[i];
	if (sets != NULL) {
		memcpy(sets + count, texts, text_count * sizeof(*sets));
		source.source.sets = sets;
		source.source.set_count = count + text_count;
		r = fragi_source_pack(&source.source, out_bytes, out_size);
	} else {
		r = -ENOMEM;
	}
	fragi_source_fini(&source);
	return r;
}

void drv_source_use(struct drv_app *app, void *bytes, size_t size)
{
	fragi_free(app->settings.source);
	app->settings.source = bytes;
	app->settings.sources++;
	app->source.bytes = bytes;
	app->source.size = size;
	app->core->items -= (int64_t)size / 64;
	drv_persist_source(app);
}

size_t drv_source_bytes_of_all(const struct drv_core *core)
{
	size_t bytes = 0;

	for (size_t i = 0; i < core->app_count; i++)
		bytes += core->apps[i]->source.size + core->apps[i]->before.size;
	for (const struct drv_ended *ended = core->history.ended; ended; ended = ended->next)
		bytes += ended->is_wanted && ended->source != NULL ? ended->source_bytes : 0;
	return bytes;
}

const char *drv_source_no_room(struct drv_core *core, size_t fewer, size_t more)
{
	if (drv_source_bytes_of_all(core) - fewer + more <= DRV_SOURCES_MAX)
		return NULL;
	return drv_text(
		core,
		"the graphs of all applications would have more than %zu MiB, the most that driverd keeps; stop one first",
		DRV_SOURCES_MAX >> 20);
}

const char *drv_source_too_large(const struct drv_app *app)
{
	return drv_text(app->core,
			"the graph of %s and what was set have %u MiB, the most that driverd keeps",
			drv_app_name(app), FRAGI_SOURCE_MAX >> 20);
}

void drv_source_forget_before(struct drv_app *app)
{
	fragi_free(app->before.bytes);
	app->before = (struct drv_source){0};
}

void drv_source_forget_changes(struct drv_app *app)
{
	struct drv_parameter *parameter;

	while ((parameter = app->settings.changed) != NULL) {
		app->settings.changed = parameter->next;
		fragi_free(parameter);
	}
}

void drv_source_replace(struct drv_app *app, void *source, size_t size)
{
	drv_source_use(app, source, size);
	drv_source_forget_changes(app);
	if (app->swap != NULL) /* this one names its libraries anew */
		app->swap->is_taken = false;
}

bool drv_source_undo(struct drv_app *app)
{
	struct drv_core *core = app->core;

	if (app->before.bytes == NULL || app->times.running_ns != 0 ||
	    app->kept.state != DRV_KEPT_ACCEPTED || !app->next.is_wanted ||
	    app->end == DRV_END_IN_ORDER || app->next.run != 0 || core->stops > 0)
		return false;
	drv_source_replace(app, app->before.bytes, app->before.size);
	app->before = (struct drv_source){0};
	app->next.run = drv_persist_next_run(core);
	app->next.by = app->given.by;
	drv_history_add(core, FW_NOTICE_APPLY, app, NULL, "the graph before returns, as run %llu",
			(unsigned long long)app->next.run);
	return true;
}

void drv_source_follows(struct drv_app *app, struct drv_app *old)
{
	app->before = old->before;
	old->before = (struct drv_source){0};
}
