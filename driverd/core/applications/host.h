/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_HOST_H
#define DRV_HOST_H

#include <base/machine.h>
#include <driverd/core/view/account.h>
#include <driverd/core/core.h>
#include <driverd/core/hosts/replace.h>
#include <text/spec.h>

/* A part of state.h: hosts, and their processes. */

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

/* host.c: what happened to a host */
void drv_host_message(struct drv_host *host, struct fw_message *message); /* takes message */
/* The host's worker is gone or does not answer any more; the host was not detached yet. */
void drv_host_lost(struct drv_host *host);
/*
 * Loses hosts of a worker that is gone: those in the application of the first one. Returns whether
 * one of them mattered.
 */
bool drv_host_lose_some(struct drv_session *session, const char *why);
/* The worker ends in order: what a stop would start there is not started any more. */
void drv_host_leave(const struct drv_session *session);
/* Whether it is an answer of the fragments of the host. */
bool drv_host_tables_match(const struct drv_host *host, const struct fw_host_prepared *prepared);

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
