/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_PERSIST_H
#define DRV_PERSIST_H

#include <driverd/core/state.h>

/* The memory of the driver, and its state folder. */

/* restore.c: restarts one application that is wanted, if may_start */
void drv_restore_step(struct drv_core *core, bool may_start);

/* history.c: what has happened, as far as it is remembered */
int drv_history_init(struct drv_history *history); /* 0 or -ENOMEM */
void drv_history_fini(struct drv_history *history);
/* app: NULL: none. who: NULL: nobody */
void drv_history_add(struct drv_core *core, enum fw_notice_kind kind, const struct drv_app *app,
		     const char *who, const char *format, ...) FRAG_PRINTF(5, 6);
/* The first one with a higher number; NULL: none. */
const struct drv_notice *drv_history_after(const struct drv_history *history, uint64_t number);
/* Remembers how the application has ended, if memory is not short. */
void drv_history_end(struct drv_app *app);
/* Restores a run, or a notice, of an earlier driver. Returns 0, -EUCLEAN, -ENOMEM. */
int drv_history_restore_run(struct drv_core *core, const struct drv_record *record);
void drv_history_restore_notice(struct drv_history *history, const struct drv_record *record);
/* A client has stopped what has ended already: it does not start again. */
void drv_history_unwant(struct drv_core *core, struct drv_ended *ended);
/* A newer run of that name is kept, which alone may start again. */
void drv_history_supersede(struct drv_history *history, const char *name);
struct drv_ended *drv_history_find(const struct drv_history *history, uint64_t run);
/* Takes a run out, and frees it: it is no run that has ended. */
void drv_history_take(struct drv_history *history, struct drv_ended *ended);
/* Remembers that the run has ended with the driver before, if memory is not short. */
void drv_history_cut(struct drv_app *app);
/* The newest run of that name; NULL: none. */
struct drv_ended *drv_history_named(const struct drv_history *history, const char *name);

/* persist.c: writes records into the state folder; does nothing if the driver keeps no state */
uint64_t drv_persist_next_run(struct drv_core *core);   /* higher than all before, also of others */
uint64_t drv_persist_next_epoch(struct drv_core *core); /* higher than all before, also of others */
/* The application is to be kept before anybody hears of it. */
void drv_persist_start(struct drv_app *app);
/* Space is held for records to come. Returns the change; 0: nothing is kept. */
uint64_t drv_persist_reserve(struct drv_core *core, size_t bytes);
void drv_persist_release(struct drv_core *core, size_t bytes);
/* The application is adopted, and is to be kept as one that was started here. */
void drv_persist_adopted(struct drv_app *app);
/* The workers that have its hosts. */
void drv_persist_placed(const struct drv_app *app);
/* A worker has joined: if another has its name, nobody knows any more which of them runs what. */
void drv_persist_joined(const struct drv_session *session);
/* A worker is drained, or is so no more. */
void drv_persist_drained(struct drv_core *core, const char *worker, bool is_drained);
/* Numbers of runs up to this one are not given again. */
void drv_persist_raise_runs(struct drv_core *core, uint64_t run);
/* Numbers that a driver before has given are known now. */
void drv_persist_numbers(struct drv_core *core);
/* An epoch was reported that a driver before gave, whose state is lost. */
void drv_persist_epochs_above(struct drv_core *core, uint64_t epoch);
/* Writes the source of an application that was changed while it runs. */
void drv_persist_source(const struct drv_app *app);
/* The application has ended before its start was written. */
void drv_persist_no_start(struct drv_app *app);
/* Returns the change; 0: none. */
uint64_t drv_persist_wanted(struct drv_core *core, uint64_t run, bool is_wanted);
void drv_persist_end(struct drv_core *core, struct drv_ended *ended);
/* kind: SOURCELESS or FORGOTTEN */
void drv_persist_less(struct drv_core *core, const struct drv_ended *ended,
		      enum drv_record_kind kind);
void drv_persist_notice(struct drv_core *core, const struct drv_notice *notice);
#endif
