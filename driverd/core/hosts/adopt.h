/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_ADOPT_H
#define DRV_ADOPT_H

#include <driverd/core/state.h>

/*
 * Applications that ran while this driver, or the one before it, was away (adopt.c). Such an
 * application waits for its workers to report its hosts. A process that is reported is at once the
 * process of now of its host, or the next one; adopt_take.c makes these hosts the application's.
 */
#define DRV_REPORT_EVENTS_MAX 64

/* What a worker has reported of a process, until the application runs here. */
struct drv_report {
	struct drv_host *host;
	struct fw_message *message; /* HOST_REPORT; owned */
	/* that wait for the application to run, in the order in which they came; owned */
	struct fw_message *events[DRV_REPORT_EVENTS_MAX];
	uint32_t count;
	/* that it has failed, that an operator has stopped it, that it is done: among them */
	bool has_failed, has_stopped, is_done;
	const struct fw_host_exit *exit; /* one of them; NULL: none */
	bool had_ended; /* before it was reported: another one may have followed it */
};

/* The workers on which the hosts of a run are, as the state folder has it. */
struct drv_placed {
	struct drv_placed *next;
	uint64_t run;
	bool is_reported; /* a worker had a host of it, though the run is over: it may live */
	uint32_t count;
	struct {
		uint32_t host;
		const char *worker;
	} at[]; /* by host: its worker, and another one where it may be; then their names */
};

struct drv_adopting {
	bool is_touched;                 /* something was reported since the last look */
	bool is_kept;                    /* the run is in the state folder */
	const struct drv_placed *placed; /* the workers that may run hosts of it; NULL: not known */
	uint32_t seen;                   /* of these: they have reported, and are there */
};

/* HOST_REPORT, and REPORTED, of a worker. The first one takes message. */
void drv_adopt_report(struct drv_session *session, struct fw_message *message);
void drv_adopt_reported(struct drv_session *session);
/* Takes a message of the process of now, for when the application runs. False: it need not wait. */
bool drv_adopt_keep(struct drv_host *host, struct fw_message *message);
/* WELCOME was sent to a worker. */
void drv_adopt_joined(struct drv_session *session, const struct fw_hello *hello);
/* Why it has taken too long to report them, until when it is given nothing; NULL: it has not. */
const char *drv_adopt_why_late(const struct drv_session *session);
/* The worker is gone: what it has reported, and nobody has taken yet, is not known any more. */
void drv_adopt_session_lost(const struct drv_session *session);

/*
 * A run without an end, of an earlier driver, waits to be reported. Takes ended, or returns false:
 * it is over.
 */
bool drv_adopt_restore(struct drv_core *core, struct drv_ended *ended);
/* workers: as in struct drv_record */
void drv_adopt_placed(struct drv_core *core, uint64_t run, const char *workers);

/* WAITING is entered. */
void drv_adopt_wait(struct drv_app *app);
/* Takes the reported hosts if all are there, or gives them up if they cannot come any more. */
void drv_adopt_work(struct drv_app *app);
/*
 * Handles the messages that the hosts of an application have sent meanwhile, once it runs or ends.
 * The caller repeats it until app->adopting is NULL.
 */
void drv_adopt_replay(struct drv_app *app);
/* Ends an adoption whose application is over: kills what was reported. */
void drv_adopt_end(struct drv_app *app);
void drv_adopt_fini(struct drv_app *app);

/* adopt.c for adopt_take.c */
/* The first process that was reported from *at on, which begins with 0; NULL: none is left. */
struct drv_process *drv_adopt_each(const struct drv_app *app, uint32_t *at);
/* The process is not the application's, or all of its report was heard. */
void drv_adopt_forget(struct drv_process *process);
/* The worker is to end what it has reported, and to forget its run if that is over. */
void drv_adopt_disown(struct drv_session *session, const struct fw_message *report);
/* Where hosts of that run were, as an earlier driver has noted; NULL: it has not. */
const struct drv_placed *drv_adopt_placed_of(const struct drv_core *core, uint64_t run);
/* Whether all these workers are there, and have reported. */
bool drv_adopt_have_reported(const struct drv_core *core, const struct drv_placed *placed);
/* Whether all workers that may run hosts of it are known, there, and have reported. */
bool drv_adopt_all_have_reported(const struct drv_app *app);
/* Whether that worker is where a driver before has noted last that it runs the host. */
enum drv_adopt_place {
	DRV_ADOPT_UNKNOWN, /* or another one may, which has not reported yet */
	DRV_ADOPT_LAST,    /* or was about to, because the host was being moved there */
	DRV_ADOPT_EARLIER, /* it was moved away from there */
};
enum drv_adopt_place drv_adopt_place(const struct drv_host *host,
				     const struct drv_session *session);

#endif
