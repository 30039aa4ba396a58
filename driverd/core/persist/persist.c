// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/state.h>

#include <assert.h>
#include <string.h>

/*
 * The state folder of the driver, if it has one. Every record has the number of its change; the
 * shell reports up to which change writing was tried. Only a start waits for that, and clients that
 * wait for the end of a run: everything else goes on, and records that could not be written are
 * written when the disk has recovered.
 *
 * Epochs are reserved on the disk well ahead, with each start: so a host can be restarted under a
 * higher epoch at once, also while the disk is full.
 */
#define EPOCHS_AHEAD 1024

/*
 * Returns the change; 0: nothing is kept. A driver with --app keeps numbers and nothing else.
 */
static uint64_t keep(struct drv_core *core, const struct drv_record *record)
{
	struct drv_action action = {.kind = DRV_DO_PERSIST, .record = *record};

	if (!core->config.keeps_state ||
	    (core->config.ends_with_app && record->kind != DRV_RECORD_NUMBERS))
		return 0;
	assert(core->last_change >= core->settled_change && "only what was handed out is settled");
	action.change = ++core->last_change;
	drv_emit(core, &action);
	return action.change;
}

static uint64_t reserve_epochs(struct drv_core *core, bool is_attempt)
{
	return keep(core, &(struct drv_record){.kind = DRV_RECORD_NUMBERS,
					       .is_attempt = is_attempt,
					       .epoch = core->last_epoch + EPOCHS_AHEAD,
					       .run = core->given_run});
}

uint64_t drv_persist_next_run(struct drv_core *core)
{
	core->given_run = ++core->last_run;
	return core->given_run;
}

uint64_t drv_persist_next_epoch(struct drv_core *core)
{
	core->last_epoch++;
	assert(core->last_epoch != 0 && "no epoch is given twice");
	if (core->last_epoch % (EPOCHS_AHEAD / 2) == 0)
		reserve_epochs(core, false);
	return core->last_epoch;
}

void drv_persist_start(struct drv_app *app)
{
	struct drv_core *core = app->core;
	const bool is_attempt = app->origin == DRV_ORIGIN_GIVEN;
	const uint64_t numbers = reserve_epochs(core, is_attempt);
	const uint64_t run = keep(core, &(struct drv_record){
						.kind = DRV_RECORD_RUN,
						.is_attempt = is_attempt,
						.run = app->run,
						.epoch = app->epoch,
						.name = drv_app_name(app),
						.who = app->given.by,
						.start_timeout_ns = app->given.timeout_ns,
						.is_wanted = app->next.is_wanted,
						.source = app->source.bytes,
						.source_bytes = app->source.size,
					});

	app->kept.change = run != 0 ? run : numbers;
	if (app->kept.change == 0 && app->kept.state == DRV_KEPT_NOT)
		app->kept.state = DRV_KEPT_WRITTEN;
}

uint64_t drv_persist_reserve(struct drv_core *core, size_t bytes)
{
	return keep(core, &(struct drv_record){
				  .kind = DRV_RECORD_RESERVED, .is_attempt = true, .bytes = bytes});
}

void drv_persist_release(struct drv_core *core, size_t bytes)
{
	if (bytes != 0)
		keep(core, &(struct drv_record){.kind = DRV_RECORD_RELEASED, .bytes = bytes});
}

void drv_persist_adopted(struct drv_app *app)
{
	app->origin = DRV_ORIGIN_RESTORED;
	drv_persist_start(app);
}

/* The first of several workers of one name has it alone, the others with a number. */
static bool is_twin(const struct drv_session *session)
{
	return session->role == FW_ROLE_WORKER && strchr(session->name, '#') != NULL;
}

static uint32_t twins(const struct drv_core *core)
{
	uint32_t count = 0;

	for (size_t i = 0; i < core->session_count; i++)
		count += is_twin(core->sessions[i]);
	return count;
}

/* Workers that share a name get it in the order in which they come. */
static bool places_are_known(const struct drv_app *app)
{
	bool are_known = twins(app->core) == 0;

	for (uint32_t i = 0; i < app->host_count; i++)
		are_known = are_known && !app->hosts[i].now.may_have_left;
	return are_known;
}

/*
 * The worker of the host that is recorded beside that of its process now; NULL: none is. It has the
 * next process, or that before, until this worker was asked for one.
 */
static const char *other_place(const struct drv_host *host)
{
	const char *was_at = host->replacement.was_at;

	if (host->next.session != NULL)
		return host->next.session->name;
	return host->now.state == DRV_HOST_PLACED && was_at != NULL &&
			       strcmp(was_at, host->worker) != 0
		       ? was_at
		       : NULL;
}

void drv_persist_placed(const struct drv_app *app)
{
	struct drv_core *core = app->core;
	const uint32_t hosts = places_are_known(app) ? app->host_count : 0;
	size_t bytes = 1;
	char *names, *at;

	if (!core->config.keeps_state || !core->config.adopts)
		return;
	for (uint32_t i = 0; i < hosts; i++) {
		const char *other = other_place(&app->hosts[i]);

		bytes += strlen(app->hosts[i].worker) + 1;
		bytes += other != NULL ? strlen(other) + 2 : 0;
	}
	names = at = fragi_arena_alloc(&core->actions->arena, bytes);
	for (uint32_t i = 0; names != NULL && i < hosts; i++) {
		const char *other = other_place(&app->hosts[i]);

		at += sprintf(at, "%s\n", app->hosts[i].worker);
		if (other != NULL)
			at += sprintf(at, "\t%s\n", other);
	}
	if (names != NULL) /* else it is not known where it runs: then all workers are waited for */
		keep(core, &(struct drv_record){
				   .kind = DRV_RECORD_PLACED, .run = app->run, .text = names});
}

void drv_persist_joined(const struct drv_session *session)
{
	struct drv_core *core = session->core;

	if (!is_twin(session) || twins(core) != 1) /* it was so before */
		return;
	for (size_t i = 0; i < core->app_count; i++)
		if (core->apps[i]->host_count != 0 && core->apps[i]->state != DRV_APP_ENDED)
			drv_persist_placed(core->apps[i]);
}

void drv_persist_numbers(struct drv_core *core)
{
	core->numbers_change = reserve_epochs(core, false);
}

/*
 * Runs above those that this driver, or one whose state it has, has given are of drivers whose
 * state was lost: such a run, and those between, may still be with their workers. That holds for
 * one of the state folder too, which was kept when a worker had reported it.
 */
void drv_persist_raise_runs(struct drv_core *core, uint64_t run)
{
	if (run <= core->last_run)
		return;
	if (core->foreign_count < DRV_FOREIGN_MAX) {
		core->foreign[core->foreign_count].first = core->last_run + 1;
		core->foreign[core->foreign_count++].last = run;
	}
	core->last_run = run;
}

/*
 * The epoch was given by a driver whose state is lost. That driver may have given higher ones, to
 * processes that ended with their workers, and neighbours still know those.
 */
void drv_persist_epochs_above(struct drv_core *core, uint64_t epoch)
{
	core->last_epoch = epoch + EPOCHS_AHEAD;
	drv_persist_numbers(core);
}

void drv_persist_source(const struct drv_app *app)
{
	struct drv_core *core = app->core;
	struct drv_record record = {
		.kind = DRV_RECORD_SOURCE, .run = app->run, .source_bytes = app->source.size};
	void *copy;

	if (!core->config.keeps_state)
		return;
	/* another change in this step frees the source before the shell has written it */
	copy = fragi_arena_alloc(&core->actions->arena, record.source_bytes);
	if (copy == NULL) {
		core->actions->out_of_memory = true;
		return;
	}
	record.source = memcpy(copy, app->source.bytes, record.source_bytes);
	keep(core, &record);
}

void drv_persist_no_start(struct drv_app *app)
{
	bool is_void =
		app->kept.change <= app->core->settled_change && app->kept.state == DRV_KEPT_NOT;

	if (app->kept.change != 0 && !is_void)
		keep(app->core,
		     &(struct drv_record){.kind = DRV_RECORD_FORGOTTEN, .run = app->run});
}

uint64_t drv_persist_wanted(struct drv_core *core, uint64_t run, bool is_wanted)
{
	return keep(core, &(struct drv_record){
				  .kind = DRV_RECORD_WANTED, .run = run, .is_wanted = is_wanted});
}

void drv_persist_end(struct drv_core *core, struct drv_ended *ended)
{
	ended->change = keep(core, &(struct drv_record){.kind = DRV_RECORD_END,
							.run = ended->run,
							.is_wanted = ended->is_wanted,
							.ended_unix_ns = ended->ended_unix_ns,
							.outcome = ended->outcome,
							.outcome_bytes = ended->outcome_bytes});
}

void drv_persist_less(struct drv_core *core, const struct drv_ended *ended,
		      enum drv_record_kind kind)
{
	keep(core, &(struct drv_record){.kind = kind, .run = ended->run});
}

void drv_persist_notice(struct drv_core *core, const struct drv_notice *notice)
{
	keep(core, &(struct drv_record){.kind = DRV_RECORD_NOTICE,
					.run = notice->run,
					.name = notice->application,
					.who = notice->who,
					.notice = notice->number,
					.first_notice = core->history.first_notice,
					.notice_kind = (uint32_t)notice->kind,
					.unix_ns = notice->unix_ns,
					.text = notice->text});
}

void drv_persist_drained(struct drv_core *core, const char *worker, bool is_drained)
{
	/* of a message, or a list entry, that is freed before the record is written */
	const char *name = drv_text(core, "%s", worker);

	if (name != NULL)
		keep(core, &(struct drv_record){.kind = is_drained ? DRV_RECORD_DRAINED
								   : DRV_RECORD_UNDRAINED,
						.name = name});
}
