/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_HOST_H
#define DRV_HOST_H

#include <base/arena.h>
#include <base/machine.h>
#include <driverd/core/view/account.h>
#include <driverd/core/core.h>
#include <text/spec.h>
#include <wire/message.h>

/* A part of state.h: hosts, and their processes. */
struct drv_app;
struct drv_core;
struct drv_place;
struct drv_session;

/*
 * The goal of a host: what it is to reach. Its state says how far it has come; request.c sends the
 * request that brings it nearer to its goal.
 */
enum drv_goal {
	DRV_GOAL_NONE,
	DRV_GOAL_PREPARED,
	DRV_GOAL_WIRED,
	DRV_GOAL_RUNNING,
	DRV_GOAL_DRAINED, /* its sources stop, and what is queued is delivered */
	DRV_GOAL_CLOSED,  /* it ends by itself */
	DRV_GOAL_KILLED,
	DRV_GOALS
};

/*
 * The phases of a host's process (now) and the next one. They follow one another; a replacement
 * begins with any of the first three. hosts/replace.c has the table.
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
	bool is_old_swap; /* a driver before had begun a swap, and the host is on that worker */
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
	/*
	 * The first failure of those that follow one another, or the first after a restart that a
	 * person asked for; its texts are owned.
	 */
	enum fragi_failure first_code;
	char *first, *first_op;
	bool first_is_asked; /* so far it is the restart itself */
	char *last;          /* the sentence of the last one; owned; NULL: none */
};

/*
 * A process of a host: a fraghost that runs its fragments on a worker. Its epoch tells it from the
 * processes before and after it.
 */
struct drv_process {
	uint64_t epoch;
	enum drv_host_state state;
	enum drv_goal goal;
	enum drv_goal asked;         /* the goal that it was last asked to reach */
	struct drv_session *session; /* NULL: its worker is gone */
	/* owned; NULL: it is the first process, whose answer is the host's tables */
	struct fw_message *prepared;
	struct fw_message *stats; /* the last ones; owned; NULL: none */
	/* when they were counted, by the worker's clock; of an older worker when they came here */
	int64_t counted_ns;
	int64_t looked_until_ns;     /* its worker knows that somebody looks until then */
	struct fw_facts first_facts; /* of the stats, since somebody looks; cpu_ns 0: nobody does */
	/* it was reported, and its application does not run here yet (adopt.c); owned; else NULL */
	struct drv_report *report;
	bool is_orderly; /* it ended with 0 after it was asked to */
	bool is_lost;    /* its worker is gone */
	bool is_adopted; /* it was started for a driver before */
	bool has_begun;  /* it was wired: messages may come from then on */
	/* another one may have followed it elsewhere, and ends with its lease (adopt_take.c) */
	bool may_have_left;
	bool is_moved;   /* it is the first one of the host on its worker, and others were before */
	uint64_t change; /* of the record of where it runs, which the next driver must know */
	uint32_t sources; /* how often the application's source had changed when it was made */
	/* of the stats */
	uint64_t delivered_sum; /* of all flows */
	bool is_doubted;        /* they cannot be what the process counted */
	/* rest */
	bool is_idle; /* as it last reported */
	uint64_t sent, delivered;
};

struct drv_host {
	struct drv_app *app;
	uint32_t number; /* from 1 */
	struct drv_process now;
	struct drv_process next;                 /* prepared beside now; session NULL: none is */
	struct drv_host *next_there, **at_there; /* in the list of the session of now */
	const char *worker;                      /* its name, also when it is gone */
	const char *node, *clock, *memory, *no_memory;
	void *texts;              /* holds these; owned; NULL: there was no memory for them */
	const char *first_memory; /* of its first worker: how its flows travel follows from it */
	const char *all_names;    /* "fragment1, fragment2" */
	const char *name;         /* the same, in sentences: of many three and a count */
	uint32_t *fragments;      /* indices in the spec */
	uint32_t fragment_count;
	const struct fragi_spec_on_failure *on_failure;
	struct drv_replacement replacement;
	struct drv_restarts restarts;
	int64_t lease_over_ns; /* nobody runs a process before now from then on (lease.c) */
	struct drv_past past;
	struct fw_message *tables; /* owned; the first process's answer to PREPARE; NULL: not yet */
	bool failed;               /* it is the cause, or part of it */
	uint32_t first_flow, inner_flow_count; /* inner flows: in the app's table */
	uint32_t *edges;                       /* flows between hosts, rows after the inner ones */
	uint32_t edge_count;
	const char *transports[FW_TRANSPORTS_MAX]; /* that its flows to others need */
	uint32_t transport_count;
	bool is_out_of_reach; /* it was reported that a peer cannot reach it */
	bool noted_no_memory; /* it was logged why it shares none */
};

/* process.c: hosts and their processes */
extern const struct fragi_machine drv_host_machine;
/* The request that leads to a goal, for sentences: "PREPARE". */
const char *drv_goal_request(enum drv_goal goal);
/* How far a host has come that has reached the goal. */
enum drv_host_state drv_goal_reached(enum drv_goal goal);
struct drv_host *drv_host_find(struct drv_core *core, uint64_t run, uint32_t number);
/* Returns the host that runs a fragment; NULL: none yet, or there is no such fragment. */
struct drv_host *drv_host_running(const struct drv_app *app, const char *fragment);
void drv_host_transition(struct drv_host *host, enum drv_host_state to);
/* Now is another process from now on, of the worker that it is attached to. */
void drv_host_renew(struct drv_host *host, uint64_t epoch, enum drv_host_state state);
/* Frees what it owns, but for its report. */
void drv_process_fini(struct drv_process *process);
/* Assigns the host to a worker. */
void drv_host_attach(struct drv_host *host, struct drv_session *session);
/* Takes the host from its worker. */
void drv_host_detach(struct drv_host *host);
/* A process of the host was, or is just being, asked for on that worker. */
void drv_host_asked(struct drv_host *host, const struct drv_session *session);
/* Copies the texts about its worker into the host, from another worker. Returns 0 or -ENOMEM. */
int drv_host_take_texts(struct drv_host *host, const struct drv_session *session);
/* Gives the host the name that its fragments make. Returns 0 or -ENOMEM. */
int drv_host_name(struct drv_host *host);
/* Why its fragments run where they do, or nowhere. */
void drv_host_set_place(struct drv_host *host, const struct drv_place *place);
/* The other end of an edge of the host. */
struct drv_host *drv_host_neighbour(const struct drv_host *host, uint32_t edge);
bool drv_host_is_neighbour(const struct drv_host *host, const struct drv_host *other);
/* Returns the answer to PREPARE with the addresses of the present process of a host. */
const struct fw_host_prepared *drv_host_answer(const struct drv_host *host);
/* Whether a process answers PREPARE as the one before did. */
bool drv_host_tables_are_same(const struct fw_host_prepared *a, const struct fw_host_prepared *b);

/* Whether its next process may run on another worker when it has failed. */
static inline bool drv_migrates(const struct drv_host *host)
{
	return host->on_failure->policy == FRAGI_ON_FAILURE_MIGRATE;
}

/* Whether now is to end because next takes over from it. */
static inline bool drv_host_hands_over(const struct drv_host *host)
{
	return host->replacement.phase == DRV_PHASE_YIELDING ||
	       (host->replacement.phase == DRV_PHASE_ENDING && !host->replacement.is_anew);
}

/* Whether it does not run, and is to run again: now has failed, or has not run yet. */
static inline bool drv_host_is_restarting(const struct drv_host *host)
{
	return host->replacement.phase == DRV_PHASE_STARTING ||
	       (host->replacement.phase == DRV_PHASE_ENDING && host->replacement.is_anew);
}

#endif
