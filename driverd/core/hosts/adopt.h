/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_ADOPT_H
#define DRV_ADOPT_H

#include <driverd/core/state.h>

/*
 * Applications that ran while this driver, or the one before it, was away (adopt.c). Such an
 * application waits for its workers to report its hosts.
 */

/* A host that was reported. */
struct drv_reported {
	struct drv_reported *next;
	struct drv_app *app;
	struct drv_session *session;
	uint32_t number;
	uint64_t epoch;
	/* owned; NULL: not come, or taken */
	struct fw_message *report, *prepared, *past;
	struct fw_message **queue; /* owned, in the order in which they came */
	uint32_t queued, capacity;
	uint32_t heard;  /* of these: NULL from then on */
	bool is_partial; /* it was being started again */
	enum fw_stop_state stop;
};

struct drv_adopting {
	struct drv_reported *first;
	bool is_touched;    /* something was reported since the last look */
	bool is_kept;       /* the run is in the state folder */
	bool is_taken;      /* its hosts are the application's */
	bool is_heard;      /* what they have said is being heard, in as many steps as that takes */
	char *workers;      /* that may run hosts of it; owned; NULL: not known */
	const char *unseen; /* the rest of them: those before have reported, and are there */
};

/*
 * A message of a worker about what it has reported, or is reporting. Returns true when it was
 * taken.
 */
bool drv_adopt_takes(struct drv_session *session, struct fw_message *message);
/* WELCOME was sent to a worker that reports so many hosts. */
void drv_adopt_joined(struct drv_session *session, uint32_t reports);
/* Why it has taken too long to report them, until when it is given nothing; NULL: it has not. */
const char *drv_adopt_why_late(const struct drv_session *session);
/* The worker is gone: what it has reported, and nobody has taken yet, is not known any more. */
void drv_adopt_session_lost(struct drv_session *session);

/*
 * A run without an end, of an earlier driver, waits to be reported. Takes ended, or returns false:
 * it is over.
 */
bool drv_adopt_restore(struct drv_core *core, struct drv_ended *ended);
/* workers: the names of those that may run hosts of it, each followed by a newline */
void drv_adopt_placed(struct drv_core *core, uint64_t run, const char *workers);

/* WAITING is entered. */
void drv_adopt_wait(struct drv_app *app);
/* Whether its hosts can be taken now, or have to be given up. */
void drv_adopt_work(struct drv_app *app);
/*
 * It runs, or ends: what its hosts have said meanwhile is heard. It is to be called again while
 * app->adopting is not NULL.
 */
void drv_adopt_hear(struct drv_app *app);
/* It is over before it was adopted: what was reported is killed. */
void drv_adopt_end(struct drv_app *app);
void drv_adopt_fini(struct drv_app *app);

/*
 * adopt_move.c: hosts that are reported by more than one worker, or by one on which they do not run
 * any more
 */
/* Of the processes of each host, those that are not the host, nor to be the next, are ended. */
void drv_adopt_choose(struct drv_app *app);
/* Whether the host may be a process that was not reported yet. */
bool drv_adopt_may_be_elsewhere(const struct drv_app *app);
/* Its hosts are taken: one of them may go on in another process. */
void drv_adopt_take_beside(struct drv_app *app);
/* What a process that is not the host has sent. Takes message. */
void drv_adopt_hear_other(struct drv_app *app, const struct drv_reported *reported,
			  struct fw_message *message);
/* Whether it was prepared beside the host, and is not the host. */
static inline bool drv_reported_is_beside(const struct drv_reported *reported)
{
	return reported->report->report.is_beside;
}
/* Whether that worker is where a driver before has noted last that it runs the host. */
enum drv_adopt_place {
	DRV_ADOPT_UNKNOWN,
	DRV_ADOPT_LAST,    /* or was about to, because the host was being moved there */
	DRV_ADOPT_EARLIER, /* it was moved away from there */
};
enum drv_adopt_place drv_adopt_place(const struct drv_app *app, uint32_t number,
				     const struct drv_session *session);
/*
 * Whether the host may have run elsewhere after that process, with nobody left who knows it: then
 * what it counted there is missing.
 */
bool drv_adopt_may_have_left(const struct drv_app *app, const struct drv_reported *reported);

/* For adopt_take.c. */
void drv_reported_free(struct drv_reported *reported);
/* The worker is to end that host, and to forget the run if it is over. */
void drv_adopt_disown(struct drv_session *session, uint64_t run, uint32_t number, uint64_t epoch,
		      bool is_over);

#endif
