// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>

/*
 * The last events, in a ring, and the last runs that have ended, with their summaries as they are
 * sent to clients. Both are bounded; what is older is forgotten. Only the newest run of a name
 * keeps its source, from which the application can be started again.
 */
int drv_history_init(struct drv_history *history)
{
	history->notes = fragi_calloc(DRV_EVENTS_MAX, sizeof(*history->notes));
	return history->notes != NULL ? 0 : -ENOMEM;
}

static size_t bytes_of(const struct drv_ended *ended)
{
	return sizeof(*ended) + ended->outcome_bytes +
	       (ended->source != NULL ? ended->source_bytes : 0);
}

static void ended_free(struct drv_ended *ended)
{
	fragi_free(ended->name);
	fragi_free(ended->started_by);
	fragi_free(ended->outcome);
	fragi_free(ended->source);
	fragi_free(ended);
}

void drv_history_fini(struct drv_history *history)
{
	while (history->ended != NULL) {
		struct drv_ended *ended = history->ended;

		history->ended = ended->next;
		ended_free(ended);
	}
	fragi_free(history->notes);
}

void drv_history_note(struct drv_core *core, enum fw_event_kind kind, const struct drv_app *app,
		      const char *who, const char *format, ...)
{
	struct drv_history *history = &core->history;
	uint64_t number = ++history->last_note;
	struct drv_note *note = &history->notes[number % DRV_EVENTS_MAX];
	va_list args;

	note->number = number;
	note->unix_ns = core->real_ns + core->config.realtime_offset_ns;
	note->kind = kind;
	note->run = app != NULL ? app->run : 0;
	snprintf(note->application, sizeof(note->application), "%s",
		 app != NULL ? drv_app_name(app) : "");
	snprintf(note->who, sizeof(note->who), "%s", who != NULL ? who : "");
	va_start(args, format);
	vsnprintf(note->text, sizeof(note->text), format, args);
	va_end(args);
}

const struct drv_note *drv_history_after(const struct drv_history *history, uint64_t number)
{
	uint64_t first =
		history->last_note > DRV_EVENTS_MAX ? history->last_note - DRV_EVENTS_MAX + 1 : 1;
	uint64_t next = number < first ? first : number + 1;

	return next <= history->last_note ? &history->notes[next % DRV_EVENTS_MAX] : NULL;
}

const struct drv_ended *drv_history_find(const struct drv_history *history, uint64_t run)
{
	for (const struct drv_ended *ended = history->ended; ended != NULL; ended = ended->next)
		if (ended->run == run)
			return ended;
	return NULL;
}

const struct drv_ended *drv_history_named(const struct drv_history *history, const char *name)
{
	for (const struct drv_ended *ended = history->ended; ended != NULL; ended = ended->next)
		if (strcmp(ended->name, name) == 0)
			return ended;
	return NULL;
}

/* The frame of the summary, cut to DRV_ENDED_ROWS. */
static int encode_outcome(struct drv_app *app, struct drv_ended *ended)
{
	struct fw_message message = {.kind = FW_OUTCOME, .run = app->run};
	struct fw_outcome *outcome = &message.outcome;
	struct fragi_summary_fragment *fragments;
	size_t rows = 0, total, kept;

	outcome->name = drv_app_name(app);
	outcome->reached = FW_ENDED;
	outcome->summary = app->summary;
	total = app->summary.fragment_count;
	kept = total < DRV_ENDED_ROWS ? total : DRV_ENDED_ROWS;
	outcome->left_out = (uint32_t)(total - kept);
	outcome->summary.fragment_count = rows = kept;
	fragments = fragi_arena_alloc(&app->core->actions->arena, kept * sizeof(*fragments));
	if (fragments == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < kept; i++) {
		fragments[i] = app->summary.fragments[i];
		total = fragments[i].operator_count;
		if (total > DRV_ENDED_ROWS - rows)
			fragments[i].operator_count = DRV_ENDED_ROWS - rows;
		rows += fragments[i].operator_count;
		outcome->left_out += (uint32_t)(total - fragments[i].operator_count);
	}
	outcome->summary.fragments = fragments;
	total = app->summary.flow_count;
	kept = total < DRV_ENDED_ROWS - rows ? total : DRV_ENDED_ROWS - rows;
	outcome->summary.flow_count = kept;
	outcome->left_out += (uint32_t)(total - kept);
	return fw_encode(&message, &ended->outcome, &ended->outcome_bytes);
}

static void *copy_of(const void *bytes, size_t size)
{
	void *copy = fragi_malloc(size != 0 ? size : 1);

	return copy != NULL ? memcpy(copy, bytes, size) : NULL;
}

static struct drv_ended *make_ended(struct drv_app *app)
{
	struct drv_ended *ended = fragi_calloc(1, sizeof(*ended));
	const char *name = drv_app_name(app);

	if (ended == NULL)
		return NULL;
	ended->run = app->run;
	ended->name = copy_of(name, strlen(name) + 1);
	ended->started_by = copy_of(app->started_by, strlen(app->started_by) + 1);
	ended->start_timeout_ns = app->start_timeout_ns;
	ended->result = app->summary.result;
	ended->exit_code = app->summary.exit_code;
	ended->ended_ns = app->ended_ns;
	ended->duration_ns = app->summary.duration_ns;
	if (app->failure.code != FRAGI_FAILURE_NONE) {
		snprintf(ended->sentence, sizeof(ended->sentence), "%s", app->failure.sentence);
		ended->failure = (struct fw_failure){app->failure.code, ended->sentence, NULL};
	}
	ended->source = copy_of(app->source, app->source_bytes);
	ended->source_bytes = app->source_bytes;
	if (ended->name != NULL && ended->started_by != NULL && ended->source != NULL &&
	    encode_outcome(app, ended) == 0)
		return ended;
	ended_free(ended);
	return NULL;
}

/* Forgets the source of runs of that name, and then the oldest runs, until the rest has room. */
static void make_room(struct drv_history *history, const char *name)
{
	struct drv_ended **at = &history->ended;
	size_t count = 0, bytes = 0;

	for (; *at != NULL; at = &(*at)->next) {
		struct drv_ended *ended = *at;

		if (count > 0 && strcmp(ended->name, name) == 0) {
			fragi_free(ended->source);
			ended->source = NULL;
		}
		if (count == DRV_ENDED_MAX || bytes + bytes_of(ended) > DRV_ENDED_BYTES)
			break;
		count++;
		bytes += bytes_of(ended);
	}
	while (*at != NULL) {
		struct drv_ended *oldest = *at;

		*at = oldest->next;
		ended_free(oldest);
	}
	history->ended_count = count;
	history->ended_bytes = bytes;
}

static enum fw_event_kind kind_of(enum fragi_summary_result result)
{
	return result == FRAGI_SUMMARY_DONE      ? FW_EVENT_DONE
	       : result == FRAGI_SUMMARY_STOPPED ? FW_EVENT_STOPPED
						 : FW_EVENT_FAILED;
}

void drv_history_end(struct drv_app *app)
{
	struct drv_history *history = &app->core->history;
	struct drv_ended *ended = make_ended(app);

	if (app->failure.code != FRAGI_FAILURE_NONE)
		drv_history_note(app->core, FW_EVENT_FAILED, app, NULL, "%s",
				 app->failure.sentence);
	else
		drv_history_note(app->core, kind_of(app->summary.result), app, NULL, "after %.1f s",
				 (double)app->summary.duration_ns * 1e-9);
	if (ended == NULL)
		return;
	ended->next = history->ended;
	history->ended = ended;
	make_room(history, ended->name);
}
