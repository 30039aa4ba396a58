// SPDX-License-Identifier: Apache-2.0
#include <driverd/core/hosts/adopt.h>

#include <errno.h>
#include <string.h>

#include <base/alloc.h>

/*
 * A driver that starts gets back what earlier ones have kept. A run of theirs that had no end yet
 * ended with its driver, or waits to be adopted where hosts outlive the driver (adopt.c). An
 * application is wanted from its start until a client stops it, or it ends by itself; the end of
 * the driver, or of a worker, is no such end. What is wanted starts again, each in a step of its
 * own, as a new run with the source of the newest one, and then waits for its workers as long as
 * that takes.
 */
int drv_core_restore(struct drv_core *core, const struct drv_record *record)
{
	switch (record->kind) {
	case DRV_RECORD_NUMBERS:
		if (record->epoch > core->last_epoch)
			core->last_epoch = record->epoch;
		core->given_run = record->run;
		if (record->run > core->last_run)
			core->last_run = record->run;
		return 0;
	case DRV_RECORD_RUN:
		return core->config.ends_with_app ? 0 : drv_history_restore_run(core, record);
	case DRV_RECORD_NOTICE:
		if (!core->config.ends_with_app)
			drv_history_restore_notice(&core->history, record);
		return 0;
	case DRV_RECORD_PLACED:
		drv_adopt_placed(core, record->run, record->text);
		return 0;
	case DRV_RECORD_DRAINED:
		return core->config.ends_with_app ? 0 : drv_drain_restore(core, record->name);
	default:
		return -EINVAL;
	}
}

/*
 * The oldest one with something left to do; NULL: none. A driver that is to stop starts
 * nothing, and stops what workers may still run.
 */
static struct drv_ended *next_left(const struct drv_core *core)
{
	struct drv_ended *next = NULL;

	for (struct drv_ended *ended = core->history.ended; ended != NULL; ended = ended->next)
		if (core->stops == 0 ? ended->is_cut || ended->restarts
				     : ended->is_cut && core->config.adopts)
			next = ended;
	return next;
}

static void restart(struct drv_core *core, struct drv_ended *ended)
{
	struct drv_app *app = ended->is_wanted ? drv_app_create_again(core, ended, 0) : NULL;

	if (app == NULL)
		return;
	app->origin = DRV_ORIGIN_RESTORED;
	drv_app_begin(app);
}

void drv_restore_step(struct drv_core *core, bool may_start)
{
	struct drv_ended *ended = core->is_restoring ? next_left(core) : NULL;

	core->is_restoring = ended != NULL;
	core->work_left = core->work_left || core->is_restoring;
	if (!core->is_restoring || !may_start)
		return;
	if (ended->is_cut && drv_adopt_restore(core, ended))
		return;
	/* A newer one decides, also when that is forgotten first. */
	if (ended->is_wanted && drv_history_named(&core->history, ended->name) != ended)
		drv_history_unwant(core, ended);
	if (ended->is_cut) {
		ended->ended_unix_ns = core->real_ns + core->config.realtime_offset_ns;
		drv_persist_end(core, ended);
	}
	if (ended->restarts && core->stops == 0)
		restart(core, ended);
	ended->is_cut = ended->restarts = false;
}
