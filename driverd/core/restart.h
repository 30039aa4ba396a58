/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_RESTART_H
#define DRV_RESTART_H

#include <base/arena.h>
#include <wire/message.h>

/* A part of state.h: hosts that are started again when they fail, where they were or elsewhere. */
struct drv_app;
struct drv_core;
struct drv_host;
struct drv_session;

/* A host that is started again when it fails (on_failure). */
struct drv_restarting {
	bool is_wanted;    /* it has failed, and does not run again yet */
	bool has_begun;    /* its present epoch was wired: messages may come from then on */
	uint32_t count;    /* restarts in all */
	uint32_t moves;    /* the same for moves */
	int64_t *begun_ns; /* of the last `intensity` ones, at count % intensity; NULL: none */
	int64_t at_ns;     /* PLACED, GONE: when it is started again */
	int64_t until_ns;  /* when the present phase has lasted too long; INT64_MAX: never */
	/* the first failure of those that follow one another; its texts are owned */
	enum fragi_failure first_code;
	char *first, *first_op;
	char *last; /* the sentence of the last one; owned; NULL: none */
	/* migrate.c */
	bool is_leaving;       /* it is to go to another worker */
	bool is_moved;         /* its present epoch is the first one on its worker */
	uint64_t left;         /* number of the session where it failed last; 0: any will do */
	uint64_t was_on;       /* number of the session that got its last HOST_CREATE */
	uint64_t change;       /* where it runs now is on the disk with that */
	bool is_refused;       /* ... which does not take it any more */
	uint64_t seen_version; /* of the workers among which none was found; 0: nobody has looked */
	int64_t lease_over_ns; /* lease.c: nobody runs an earlier epoch from then on */
	struct fragi_arena places; /* of its fragments' places, since it was placed anew */
};

/* restart.c */
/*
 * A host has failed: it is to be started again, if its policy says so and the application runs;
 * else the application has failed.
 */
void drv_host_failed(struct drv_host *host, const struct fw_failure *failure);
/* Whether its policy, and the state of its application, have it started again when it fails. */
bool drv_restart_is_due(const struct drv_host *host);
/* It has ended, and is to be started again. */
void drv_restart_gone(struct drv_host *host);
/* Whether a client may have it started again now: it runs, and its intensity has room. */
bool drv_restart_may(const struct drv_host *host);
/* Brings the hosts that are started again nearer to running. */
void drv_restart_work(struct drv_app *app);
void drv_restart_fini(struct drv_restarting *restarting);
/* The application ends: they are not started any more. */
void drv_restart_give_up(struct drv_app *app);

/* migrate.c */
bool drv_migrates(const struct drv_host *host);
/*
 * Its worker is lost, and it is GONE and detached: it goes on elsewhere. Returns false where it
 * does not, which is the failure of the application.
 */
bool drv_migrate_lost(struct drv_host *host, bool was_killed, const char *sentence);
/* Its worker, which was told to end, has ended it. Returns false as above. */
bool drv_migrate_left(struct drv_host *host, const char *sentence);
/* It has failed. */
void drv_migrate_failed(struct drv_host *host, const struct fw_failure *failure);
/* It is GONE: whether it waits for another worker from now on, and has none. */
bool drv_migrate_leaves(struct drv_host *host);
/* It is PLACED: whether it must go on to another worker before it is started on this one. */
bool drv_migrate_goes_on(struct drv_host *host);
/* Gives it a worker, if one fits. Returns whether it did. */
bool drv_migrate_place(struct drv_host *host);
/* It runs again. */
void drv_migrate_over(struct drv_host *host);

/* lease.c */
/* A BEAT of a worker, or its HELLO (0). */
void drv_lease_heard(struct drv_session *session, int64_t sent_ns);
/* What the BEAT for a worker says. */
void drv_lease_fill(const struct drv_session *session, struct fw_beat *beat);
/* From when on nobody runs the host, though its worker was lost at this moment. */
int64_t drv_lease_over_ns(const struct drv_host *host);
/*
 * How it ended was reported, and happened while no driver was there: if it is not known that this
 * worker was the last one that ran it, another one may still do so.
 */
void drv_lease_ended_before(struct drv_host *host);
/* That process of the host was reported, and is this driver's now. Returns 0 or -ENOMEM. */
int drv_lease_adopt(const struct drv_host *host, struct drv_session *session, uint64_t epoch);
/* What a driver before may have left running of the application ends by itself. */
void drv_lease_owe_all(struct drv_app *app);
/* The application has ended; hosts of it may still run where nobody can reach them. */
void drv_lease_owe(struct drv_app *app);
/* Whether it may not be placed yet, because of an earlier run of its name. */
bool drv_lease_holds(struct drv_app *app);
/* This driver ends, and leases are to last until the next one is there. */
void drv_lease_leave(struct drv_core *core);
void drv_lease_fini(struct drv_core *core);

#endif
