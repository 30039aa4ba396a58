/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_REPLACE_H
#define DRV_REPLACE_H

#include <base/arena.h>
#include <wire/message.h>

/* A part of state.h: how a host comes from its process to the next one. */
struct drv_app;
struct drv_core;
struct drv_host;
struct drv_place;
struct drv_place_worker;
struct drv_session;

/*
 * The phases of a host's process (now) and the next one. They follow one another; a replacement
 * begins with any of the first three. replace.c has the table.
 */
enum drv_phase {
	DRV_PHASE_NONE,
	DRV_PHASE_PREPARING, /* next loads and composes, while now runs on */
	DRV_PHASE_YIELDING,  /* now drains, and its peers wait for next */
	DRV_PHASE_ENDING,    /* now ends, or is killed */
	DRV_PHASE_STARTING,  /* next is now: it is placed, prepared, wired and started */
};

enum drv_cause {
	DRV_CAUSE_FAILURE, /* now has failed, or its worker is lost (failure.c) */
	DRV_CAUSE_DRAIN,   /* its worker is drained (move.c) */
	DRV_CAUSE_SWAP,    /* a client replaces a library (swap.c) */
};

struct drv_replacement {
	enum drv_phase phase;
	enum drv_cause cause;
	bool is_anew;     /* ENDING: now has failed, so next is made anew and counts as a restart */
	bool is_resumed;  /* a driver before has begun it, and may have suspended the peers */
	bool is_given_up; /* a stop waits for it no longer: the worker of next, or of now, ends */
	int64_t at_ns;    /* STARTING: next is not asked for anything before */
	int64_t until_ns; /* when the phase has lasted too long; INT64_MAX: never */
	/* why next cannot be the next process; owned; NULL: nothing is known against it */
	char *failed;
	enum fragi_failure failed_code;
	struct drv_session *from; /* STARTING: of the process before; NULL: gone, or the same */
	uint64_t was_on;          /* number of the session that got the last HOST_CREATE */
	char *was_at;             /* name of its worker; owned; NULL: none, or no memory */
	/* migrate.c: on which worker next is to run */
	bool is_leaving;       /* on another one than now */
	bool is_refused;       /* that of now does not take it any more */
	uint64_t left;         /* number of the session where it failed last; 0: any will do */
	uint64_t seen_version; /* of the workers among which none was found; 0: nobody has looked */
	struct fragi_arena places; /* of its fragments' places, since it was placed anew */
	/* move.c: a host whose worker is drained */
	char *stays;      /* why it is not moved; owned; NULL: it is, or need not be */
	int64_t retry_ns; /* not before this, as no worker could take it just now */
	char *home;       /* the drained worker that it left last; owned; NULL: none */
	bool returns;     /* it is to go back there */
};

/* How often a host was replaced, and why. */
struct drv_restarts {
	uint32_t count;    /* restarts in all */
	uint32_t earlier;  /* of these, by a driver before: it is not known when */
	uint32_t moves;    /* the same for processes that took over */
	int64_t *begun_ns; /* of the last `intensity` ones, at count % intensity; NULL: none */
	/* the first failure of those that follow one another; its texts are owned */
	enum fragi_failure first_code;
	char *first, *first_op;
	char *last; /* the sentence of the last one; owned; NULL: none */
};

/* failure.c */
/*
 * A host has failed: it is to be started again, if its policy says so and the application runs;
 * else the application has failed.
 */
void drv_host_failed(struct drv_host *host, const struct fw_failure *failure);
/* The same for a host that a command has started again, which is an event of its own. */
void drv_host_restart(struct drv_host *host, const struct fw_failure *why);
/*
 * The worker of a host is lost; the host is GONE and detached. Returns whether it goes on on
 * another worker; if not, that is the failure of the application.
 */
bool drv_host_survives_loss(struct drv_host *host, bool was_killed, const char *sentence);
/* The worker, which ends in order, has ended the host. Returns the same. */
bool drv_host_survives_leave(struct drv_host *host, const char *sentence);
/* Whether its policy, and the state of its application, have it started again when it fails. */
bool drv_restart_is_due(const struct drv_host *host);
/* Whether a client may have it started again now: it runs, and its intensity has room. */
bool drv_restart_may(const struct drv_host *host);
/* A process that has failed is replaced: that counts for the intensity. */
void drv_restart_count(struct drv_host *host);
void drv_restarts_fini(struct drv_restarts *restarts);

/* replace.c */
/* Now is to end, because it has failed, and another process follows it after so long. */
void drv_replace_failed(struct drv_host *host, int64_t wait_ns);
/*
 * Prepares another process on that worker while now runs on. No other host of the application may
 * be in such a replacement.
 */
void drv_replace_prepare(struct drv_host *host, struct drv_session *session, enum drv_cause cause);
/* The same, but next was asked to prepare. is_resumed: by a driver before */
void drv_replace_begin(struct drv_host *host, enum drv_cause cause, bool is_resumed);
/* A driver before has asked now to yield. */
void drv_replace_resume_yield(struct drv_host *host);
/* Now took over from another process, and could not be started: one more follows it there. */
void drv_replace_resume_start(struct drv_host *host);
/* Brings the hosts that are replaced nearer to running, and finds those that are to be. */
enum drv_work drv_replace_work(struct drv_app *app);
/* The application ends: nothing is replaced any more. */
void drv_replace_give_up(struct drv_app *app);
/* Whether a stop waits for the host though a neighbour has ended: what waits for it is lost. */
bool drv_replace_is_in_vain(const struct drv_host *host);
/* A stop waits no longer for the host, which does not come to its end. */
void drv_replace_not_awaited(struct drv_host *host);
/* Next does not follow a process that was drained for it: it goes on otherwise. */
void drv_replace_no_move(struct drv_host *host);
void drv_replacement_fini(struct drv_replacement *replacement);

/* next.c */
/* Whether a message of that epoch, from that worker, is of the host's next process. */
bool drv_next_is(const struct drv_host *host, const struct drv_session *session, uint64_t epoch);
/* A message of next; takes it. */
void drv_next_message(struct drv_host *host, struct fw_message *message);
/* Takes the answer of next to PREPARE. */
void drv_next_prepared(struct drv_host *host, struct fw_message *message);
/* A worker is gone, perhaps that of a next process. */
void drv_next_session_lost(const struct drv_session *session);
/* Next is not needed, or GONE. */
void drv_next_let_go(struct drv_host *host);

/* move.c: hosts leave drained workers */
/* Begins with the first one that can leave. */
void drv_move_look(struct drv_app *app);
/* What left that worker when it was drained is to go back. */
void drv_move_back(struct drv_core *core, const char *worker);
/* Whether there are hosts to look at in the next step. */
bool drv_move_has_more(const struct drv_app *app);
/* Whether a host may leave its worker now, as the peers of its flows can wait for it. */
bool drv_move_may_yield(const struct drv_host *host);
/* Leaves the host where it is; why is shown until it moves. */
void drv_move_stays(struct drv_host *host, const char *why);
/* The host is not the one that moves any more; an adopted application may have another one. */
void drv_move_ends(struct drv_host *host);
/* Whether a host is between two processes, so that the application can neither stop nor end. */
bool drv_move_holds(const struct drv_app *app);
/* A stop waits for the host that moves, but no longer than for a drain. */
void drv_move_wait(struct drv_app *app);
/* A part of what the operators of now have saved, for next. */
void drv_move_saved(struct drv_host *host, const struct fw_message *message);

/* migrate.c: hosts whose next process may run on another worker */
/* Whether next of a host that is GONE waits for another worker from now on, and has none. */
bool drv_migrate_leaves(struct drv_host *host);
/* Whether a host that is PLACED must go on to another worker before it is started on this one. */
bool drv_migrate_goes_on(struct drv_host *host);
/* Gives next a worker, if one fits, and makes it now. */
void drv_migrate_place(struct drv_host *host);

#endif
