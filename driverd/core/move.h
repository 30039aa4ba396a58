/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_MOVE_H
#define DRV_MOVE_H

#include <wire/message.h>

/* A part of state.h: workers that are drained, and how a host goes on in another process. */
struct drv_app;
struct drv_place;
struct drv_place_worker;
struct drv_core;
struct drv_host;
struct drv_session;

/* A host that leaves its worker while it runs: another process goes on for it. */
enum drv_move_phase {
	DRV_MOVE_NONE,
	DRV_MOVE_PREPARING, /* the new process loads and composes; the old one is the host */
	DRV_MOVE_YIELDING,  /* the old one drains, its peers wait for the new one */
	DRV_MOVE_ENDING,    /* the old one ends */
	DRV_MOVE_STARTING,  /* the host is the new one, and is started as after a failure */
};
struct drv_move {
	enum drv_move_phase phase;
	struct drv_session
		*session;         /* of the new process, until it is the host; NULL: it is lost */
	struct drv_session *from; /* of the process before, while the new one starts; NULL: gone */
	uint64_t epoch;           /* of the new process */
	uint64_t change;  /* of the record that its worker may have the host; 0: none is kept */
	uint32_t sources; /* how often the source had changed before it was made */
	bool is_swap;     /* the new process is of the same worker, with another library (swap.h) */
	bool is_resumed;  /* a driver before has begun it, and may have told the peers already */
	enum fragi_failure failure;  /* why it could not be prepared; NONE: not known */
	struct fw_message *prepared; /* its answer; owned; NULL: not yet */
	int64_t until_ns;            /* when the phase has lasted too long; INT64_MAX: never */
	int64_t again_ns;            /* not before this, as no worker could take it just now */
	char *stays; /* why it is not moved, though it should be; owned; NULL: it is */
};

/* drain.c */
void drv_drain(struct drv_session *client, const struct fw_message *message);
bool drv_drain_is(const struct drv_core *core, const char *worker);
/* An earlier driver has kept that. Returns 0 or -ENOMEM. */
int drv_drain_restore(struct drv_core *core, const char *worker);
void drv_drain_fini(struct drv_core *core);

/* move.c */
/* Brings hosts away from drained workers, one after the other. */
void drv_move_work(struct drv_app *app);
/* Whether some host is on its way, so that the application can neither stop nor end. */
bool drv_move_holds(const struct drv_app *app);
/* Whether there may be something to do. */
bool drv_move_is_wanted(const struct drv_app *app);
/* Whether its process is to end, because another one goes on for it. */
bool drv_move_ends(const struct drv_host *host);
/* What comes of the new process. Takes message. */
void drv_move_message(struct drv_host *host, struct fw_message *message);
/* Whether it is the new process of a host, of that worker. */
bool drv_move_is_of(const struct drv_host *host, const struct drv_session *session, uint64_t epoch);
/* A worker is gone, perhaps that of a new process. */
void drv_move_session_lost(const struct drv_session *session);
/*
 * A driver before had begun to move the host: to that new process, whose answer is taken; NULL: it
 * has not come yet. is_current: it was made from the present source
 */
void drv_move_resume(struct drv_host *host, struct drv_session *session, uint64_t epoch,
		     struct fw_message *prepared, bool is_current);
/* ... and the old process was told to yield. */
void drv_move_resume_yield(struct drv_host *host);
/* A part of what the operators of the old process have saved. */
void drv_move_saved(struct drv_host *host, const struct fw_message *message);
/* The application ends: nothing is moved any more. */
void drv_move_give_up(struct drv_app *app);
/* Has the host go on in another process, of that worker. No other host may be on its way. */
void drv_move_begin(struct drv_host *host, struct drv_session *session, const char *reason);
void drv_move_fini(struct drv_move *move);
/* The next phase, which may last so long; 0: as long as it takes. */
void drv_move_set_phase(struct drv_host *host, enum drv_move_phase phase, int64_t within_ns);
/* The new process is not needed, or not there any more. */
void drv_move_let_go(struct drv_host *host, bool kill);

/* move_over.c */
/* The host has ended; it goes on as the process that was prepared. Returns false if none was. */
bool drv_move_takes_over(struct drv_host *host);
/*
 * The new process has failed while it was wired to a host that is being started again: another one
 * follows it, whatever on_failure says. Returns whether it is so.
 */
bool drv_move_starts_again(struct drv_host *host);
/* Nothing comes of it any more: the host goes on otherwise. */
void drv_move_end(struct drv_host *host);
/* It runs again, or has failed on the way. */
void drv_move_over(struct drv_host *host);
/* The new process is the host, and was not started: another one follows it there. */
void drv_move_resume_start(struct drv_host *host);

/* where.c */
/*
 * Why no other process can go on for the host, on whichever worker; NULL: one can. In the arena of
 * the step.
 */
const char *drv_where_keeps_process(const struct drv_host *host);
/* The same for one on another worker. */
const char *drv_where_obstacle(const struct drv_host *host);
/* Whether its worker shares memory with those hosts with which its flows need that. */
bool drv_where_may_stay(const struct drv_host *host);
/*
 * Finds the worker that takes the host over; its place says why, or why there is none (out_session
 * NULL), in the arena. Returns 0 or -ENOMEM.
 */
int drv_where(const struct drv_host *host, struct fragi_arena *arena,
	      struct drv_session **out_session, struct drv_place *out_place);

/* start.c */
/* A worker's share of what the fragment, or each of a host's, requires; sign -1: given back. */
void drv_start_take_share(const struct drv_app *app, size_t fragment, struct drv_session *session,
			  int64_t sign);
void drv_start_take_shares(const struct drv_host *host, struct drv_session *session, int64_t sign);
/* That share, where the application has not taken it: of one fragment, of those of a host. */
void drv_start_reserve(const struct drv_app *app, size_t fragment, struct drv_session *session,
		       int64_t sign);
void drv_start_reserve_host(const struct drv_host *host, struct drv_session *session, int64_t sign);
/*
 * What placement looks at, for so many fragments. session_of: of each worker. Returns -ENOMEM, or
 * 0.
 */
int drv_start_workers(struct drv_core *core, size_t fragments,
		      struct drv_place_worker **out_workers, int **out_session_of,
		      size_t *out_count);

/* request.c */
/* Asks a worker to prepare another process for the host. Returns 0, -ENOMEM, -EMSGSIZE. */
int drv_request_another(struct drv_host *host, struct drv_session *session, uint64_t epoch);
/* It is not needed any more. */
void drv_request_no_other(struct drv_host *host, struct drv_session *session, uint64_t epoch);
/* The host is to be replaced: it yields, and its peer suspends the edges to it. */
void drv_request_yield(struct drv_host *host);
void drv_request_suspend(struct drv_host *peer, const struct drv_host *host);
/* The new process is the host: its worker, and the one before, get what was counted so far. */
void drv_request_past(struct drv_host *host);
void drv_request_past_of(const struct drv_host *host, struct drv_session *from);

/* host.c */
/* What the host knows of its worker is that of another one from now on. Returns 0 or -ENOMEM. */
int drv_host_take_texts(struct drv_host *host, const struct drv_session *session);
/* Whether a process answers PREPARE as the one before did. */
bool drv_host_tables_are_same(const struct fw_host_prepared *a, const struct fw_host_prepared *b);
/* The worker ends as it was told to: what a stop would start there is not started any more. */
void drv_host_leave(const struct drv_session *session);
/* The other end of an edge of the host. */
struct drv_host *drv_host_neighbour(const struct drv_host *host, uint32_t edge);

#endif
