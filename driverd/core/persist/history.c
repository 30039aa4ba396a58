// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>
#include <base/sentence.h>

/*
 * The last events, in a ring, and the last runs that have ended, with their summaries as they are
 * sent to clients. Both are bounded in number, size and age; what is older is forgotten, but for
 * what starts again with the next driver: that is bounded by what may be started. Only the newest
 * run of a name keeps its source, from which the application can be started again.
 */
int drv_history_init(struct drv_history *history)
{
	history->first_notice = 1;
	history->notices = fragi_calloc(DRV_NOTICES_MAX, sizeof(*history->notices));
	return history->notices != NULL ? 0 : -ENOMEM;
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
	fragi_free(history->notices);
}

static int64_t unix_now(const struct drv_core *core)
{
	int64_t now_ns = core->real_ns + core->config.realtime_offset_ns;

	return now_ns > 0 ? now_ns : 0;
}

/* Forgets the oldest notices until there is room for one, and none is too old. */
static void forget_notes(struct drv_history *history, int64_t now_unix_ns)
{
	while (history->first_notice <= history->last_notice &&
	       (history->last_notice - history->first_notice + 1 == DRV_NOTICES_MAX ||
		history->notices[history->first_notice % DRV_NOTICES_MAX].unix_ns <
			now_unix_ns - DRV_KEPT_NS))
		history->first_notice++;
}

void drv_history_add(struct drv_core *core, enum fw_notice_kind kind, const struct drv_app *app,
		     const char *who, const char *format, ...)
{
	struct drv_history *history = &core->history;
	struct drv_notice *notice;
	va_list args;

	forget_notes(history, unix_now(core));
	notice = &history->notices[++history->last_notice % DRV_NOTICES_MAX];
	notice->number = history->last_notice;
	notice->unix_ns = unix_now(core);
	notice->kind = kind;
	history->counts[kind]++;
	notice->run = app != NULL ? app->run : 0;
	snprintf(notice->application, sizeof(notice->application), "%s",
		 app != NULL ? drv_app_name(app) : "");
	snprintf(notice->who, sizeof(notice->who), "%s", who != NULL ? who : "");
	va_start(args, format);
	fragi_sentence_of(notice->text, sizeof(notice->text), format, args);
	va_end(args);
	frag_hide_credentials(notice->text, sizeof(notice->text));
	drv_persist_notice(core, notice);
}

void drv_history_restore_notice(struct drv_history *history, const struct drv_record *record)
{
	struct drv_notice *notice = &history->notices[record->notice % DRV_NOTICES_MAX];

	if (record->notice <= history->last_notice || record->notice_kind >= FW_NOTICE_KINDS)
		return;
	/* numbers follow each other, unless somebody else has written the file */
	if (record->notice != history->last_notice + 1 ||
	    record->notice - history->first_notice >= DRV_NOTICES_MAX)
		history->first_notice = record->notice;
	history->last_notice = record->notice;
	*notice = (struct drv_notice){
		.number = record->notice,
		.unix_ns = record->unix_ns,
		.kind = (enum fw_notice_kind)record->notice_kind,
		.run = record->run,
	};
	snprintf(notice->application, sizeof(notice->application), "%s", record->name);
	snprintf(notice->who, sizeof(notice->who), "%s", record->who);
	fragi_sentence(notice->text, sizeof(notice->text), "%s", record->text);
}

const struct drv_notice *drv_history_after(const struct drv_history *history, uint64_t number)
{
	uint64_t next = number < history->first_notice ? history->first_notice : number + 1;

	return next <= history->last_notice ? &history->notices[next % DRV_NOTICES_MAX] : NULL;
}

struct drv_ended *drv_history_find(const struct drv_history *history, uint64_t run)
{
	for (struct drv_ended *ended = history->ended; ended != NULL; ended = ended->next)
		if (ended->run == run)
			return ended;
	return NULL;
}

struct drv_ended *drv_history_named(const struct drv_history *history, const char *name)
{
	for (struct drv_ended *ended = history->ended; ended != NULL; ended = ended->next)
		if (strcmp(ended->name, name) == 0)
			return ended;
	return NULL;
}

static size_t at_most(size_t count, size_t most)
{
	return count < most ? count : most;
}

/*
 * The frame of the summary with so many flows at most, since they account for every message, and
 * DRV_ENDED_ROWS of fragments and operators.
 */
static int encode_rows(struct drv_app *app, size_t flows_max, struct drv_ended *ended)
{
	struct fw_message message = {.kind = FW_OUTCOME, .run = app->run};
	struct fw_outcome *outcome = &message.outcome;
	struct fragi_summary *summary = &outcome->summary;
	size_t left = DRV_ENDED_ROWS, rows = app->summary.fragment_count + app->summary.flow_count;
	struct fragi_summary_fragment *fragments;

	for (size_t i = 0; i < app->summary.fragment_count; i++)
		rows += app->summary.fragments[i].operator_count;
	outcome->name = drv_app_name(app);
	outcome->reached = FW_ENDED;
	*summary = app->summary;
	summary->fragment_count = at_most(summary->fragment_count, left);
	summary->flow_count = at_most(summary->flow_count, flows_max);
	left -= summary->fragment_count;
	rows -= summary->fragment_count + summary->flow_count;
	fragments = fragi_arena_alloc(&app->core->actions->arena,
				      summary->fragment_count * sizeof(*fragments));
	if (fragments == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < summary->fragment_count; i++) {
		fragments[i] = app->summary.fragments[i];
		fragments[i].operator_count = at_most(fragments[i].operator_count, left);
		left -= fragments[i].operator_count;
		rows -= fragments[i].operator_count;
	}
	summary->fragments = fragments;
	outcome->left_out = (uint32_t)rows;
	return fw_encode(&message, &ended->outcome, &ended->outcome_bytes);
}

static int encode_outcome(struct drv_app *app, struct drv_ended *ended)
{
	size_t flows_max = DRV_ENDED_FLOWS;
	int r;

	do
		r = encode_rows(app, flows_max, ended);
	while (r == -EMSGSIZE && (flows_max /= 2) != 0);
	return r;
}

/* What is left to report of a run whose driver ended before it. */
static int encode_cut(const char *name, struct drv_ended *ended)
{
	struct fw_message message = {.kind = FW_OUTCOME, .run = ended->run};

	message.outcome.name = name;
	message.outcome.reached = FW_ENDED;
	message.outcome.summary = (struct fragi_summary){
		.application = name,
		.result = FRAGI_SUMMARY_FAILED,
		.failure = {.code = FRAGI_FAILURE_DRIVER_LOST,
			    .sentence = "driverd ended while it ran; what it counted is not known"},
		.exit_code = fragi_failure_exit(FRAGI_FAILURE_DRIVER_LOST),
	};
	return fw_encode(&message, &ended->outcome, &ended->outcome_bytes);
}

static void *copy_of(const void *bytes, size_t size)
{
	void *copy = fragi_malloc(size != 0 ? size : 1);

	return copy != NULL ? memcpy(copy, bytes, size) : NULL;
}

/* Reads what a row shows from the outcome. Returns 0, -EUCLEAN, -ENOMEM. */
static int read_outcome(struct drv_ended *ended)
{
	const size_t prefix = sizeof(uint32_t);
	struct fw_message *message;
	int r = ended->outcome_bytes <= prefix
			? -EPROTO
			: fw_decode(ended->outcome + prefix, ended->outcome_bytes - prefix,
				    &message, NULL);

	if (r < 0)
		return r == -ENOMEM ? r : -EUCLEAN;
	if (message->kind == FW_OUTCOME) {
		const struct fragi_summary *summary = &message->outcome.summary;

		ended->result = summary->result;
		ended->exit_code = summary->exit_code;
		ended->duration_ns = summary->duration_ns;
		if (summary->failure.code != FRAGI_FAILURE_NONE) {
			fragi_sentence(ended->sentence, sizeof(ended->sentence), "%s",
				       summary->failure.sentence);
			ended->failure =
				(struct fw_failure){summary->failure.code, ended->sentence, NULL};
		}
	}
	r = message->kind == FW_OUTCOME ? 0 : -EUCLEAN;
	fw_message_free(message);
	return r;
}

static struct drv_ended *make_ended(uint64_t run, const char *name, const char *started_by,
				    const void *source, size_t source_bytes)
{
	struct drv_ended *ended = fragi_calloc(1, sizeof(*ended));

	if (ended == NULL)
		return NULL;
	ended->run = run;
	ended->name = copy_of(name, strlen(name) + 1);
	ended->started_by = copy_of(started_by, strlen(started_by) + 1);
	if (source_bytes != 0)
		ended->source = copy_of(source, source_bytes);
	ended->source_bytes = source_bytes;
	if (ended->name != NULL && ended->started_by != NULL &&
	    (ended->source != NULL || source_bytes == 0))
		return ended;
	ended_free(ended);
	return NULL;
}

static void forget_source(struct drv_core *core, struct drv_ended *ended)
{
	if (ended->source == NULL)
		return;
	fragi_free(ended->source);
	ended->source = NULL;
	drv_persist_less(core, ended, DRV_RECORD_SOURCELESS);
}

/*
 * Whether the run is needed: it starts with the next driver, or the record of its end, which
 * borrows from it, was handed out and has not been tried yet.
 */
static bool is_needed(const struct drv_core *core, const struct drv_ended *ended)
{
	return ended->is_wanted || ended->change > core->settled_change;
}

/*
 * The newest run has come. Forgets the source of older ones of its name, and then the oldest runs,
 * until the rest has room.
 */
static void make_room(struct drv_core *core)
{
	struct drv_history *history = &core->history;
	struct drv_ended *newest = history->ended, **at = &history->ended;
	size_t count = 0, bytes = 0;

	while (*at != NULL) {
		struct drv_ended *ended = *at;

		if (ended != newest && strcmp(ended->name, newest->name) == 0)
			forget_source(core, ended);
		if (is_needed(core, ended) ||
		    (count < DRV_ENDED_MAX && bytes + bytes_of(ended) <= DRV_ENDED_BYTES &&
		     ended->ended_unix_ns >= unix_now(core) - DRV_KEPT_NS)) {
			count++;
			bytes += bytes_of(ended);
			at = &ended->next;
			continue;
		}
		*at = ended->next;
		drv_persist_less(core, ended, DRV_RECORD_FORGOTTEN);
		ended_free(ended);
	}
	history->ended_count = count;
	history->ended_bytes = bytes;
}

static enum fw_notice_kind kind_of(enum fragi_summary_result result)
{
	return result == FRAGI_SUMMARY_DONE      ? FW_NOTICE_DONE
	       : result == FRAGI_SUMMARY_STOPPED ? FW_NOTICE_STOPPED
						 : FW_NOTICE_FAILED;
}

/* Whether the next driver starts it: neither a client has stopped it nor has it ended by itself. */
static bool stays_wanted(const struct drv_app *app)
{
	bool lost_worker = app->summary.failure.code == FRAGI_FAILURE_WORKER_LOST &&
			   (app->times.running_ns != 0 || app->origin != DRV_ORIGIN_GIVEN);

	if (!app->next.is_wanted || app->summary.result == FRAGI_SUMMARY_DONE)
		return false;
	return app->next.run != 0 || app->core->stops > 0 || lost_worker;
}

static void add(struct drv_history *history, struct drv_ended *ended)
{
	ended->next = history->ended;
	history->ended = ended;
	history->ended_count++;
	history->ended_bytes += bytes_of(ended);
}

void drv_history_end(struct drv_app *app)
{
	struct drv_core *core = app->core;
	struct drv_ended *ended = make_ended(app->run, drv_app_name(app), app->given.by,
					     app->source.bytes, app->source.size);
	double seconds = (double)app->summary.duration_ns * 1e-9;

	if (app->summary.failure.code != FRAGI_FAILURE_NONE)
		drv_history_add(core, FW_NOTICE_FAILED, app, NULL, "%s",
				app->summary.failure.sentence);
	else
		drv_history_add(core, kind_of(app->summary.result), app, NULL, "after %.1f s",
				seconds);
	if (!core->config.ends_with_app)
		drv_log(core,
			app->summary.failure.code != FRAGI_FAILURE_NONE ? FRAGI_LOG_WARN
									: FRAGI_LOG_INFO,
			drv_app_name(app), "%s after %.1f s",
			fw_notice_name(kind_of(app->summary.result)), seconds);
	if (ended != NULL && (encode_outcome(app, ended) < 0 || read_outcome(ended) < 0)) {
		ended_free(ended);
		ended = NULL;
	}
	if (ended == NULL) {
		drv_persist_wanted(core, app->run, stays_wanted(app));
		return;
	}
	ended->is_untold = core->config.adopts && core->config.keeps_state;
	ended->start_timeout_ns = app->given.timeout_ns;
	ended->ended_unix_ns = unix_now(core);
	ended->is_wanted = stays_wanted(app);
	add(&core->history, ended);
	drv_persist_end(core, ended);
	make_room(core);
}

int drv_history_restore_run(struct drv_core *core, const struct drv_record *record)
{
	struct drv_ended *ended = make_ended(record->run, record->name, record->who, record->source,
					     record->source_bytes);
	int r;

	if (ended == NULL)
		return -ENOMEM;
	ended->start_timeout_ns = record->start_timeout_ns;
	ended->ended_unix_ns = record->ended_unix_ns;
	ended->is_wanted = ended->restarts = record->is_wanted;
	ended->is_cut = record->outcome_bytes == 0;
	if (ended->is_cut) {
		r = encode_cut(ended->name, ended);
	} else {
		ended->is_earlier = true;
		ended->outcome = copy_of(record->outcome, record->outcome_bytes);
		ended->outcome_bytes = record->outcome_bytes;
		r = ended->outcome != NULL ? 0 : -ENOMEM;
	}
	if (r == 0)
		r = read_outcome(ended);
	if (r < 0) {
		ended_free(ended);
		return r == -ENOMEM ? r : -EUCLEAN;
	}
	drv_persist_raise_runs(core, record->run);
	add(&core->history, ended);
	core->is_restoring = core->is_restoring || ended->is_cut || ended->restarts;
	core->work_left = core->is_restoring;
	return 0;
}

void drv_history_take(struct drv_history *history, struct drv_ended *ended)
{
	struct drv_ended **at = &history->ended;

	while (*at != ended)
		at = &(*at)->next;
	*at = ended->next;
	history->ended_count--;
	history->ended_bytes -= bytes_of(ended);
	ended_free(ended);
}

void drv_history_cut(struct drv_app *app)
{
	struct drv_core *core = app->core;
	struct drv_ended *ended = make_ended(app->run, drv_app_name(app), app->given.by,
					     app->source.bytes, app->source.size);

	if (ended != NULL && (encode_cut(ended->name, ended) < 0 || read_outcome(ended) < 0)) {
		ended_free(ended);
		ended = NULL;
	}
	if (ended == NULL)
		return;
	ended->is_untold = core->config.adopts && core->config.keeps_state;
	ended->ended_unix_ns = unix_now(core);
	ended->is_wanted = app->next.is_wanted && (app->next.run != 0 || core->stops > 0);
	add(&core->history, ended);
	drv_persist_end(core, ended);
	make_room(core);
}

void drv_history_unwant(struct drv_core *core, struct drv_ended *ended)
{
	ended->is_wanted = false;
	ended->change = drv_persist_wanted(core, ended->run, false);
}

void drv_history_supersede(struct drv_history *history, const char *name)
{
	for (struct drv_ended *ended = history->ended; ended != NULL; ended = ended->next)
		if (strcmp(ended->name, name) == 0)
			ended->is_wanted = false;
}
