/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_APP_H
#define DRV_APP_H

#include <base/machine.h>
#include <base/strmap.h>
#include <driverd/core/core.h>
#include <driverd/core/placement/place.h>
#include <driverd/core/base/timer.h>
#include <driverd/core/view/view.h>
#include <graph/predict.h>
#include <graph/resolve.h>
#include <text/spec.h>

/* A part of state.h: an application, from when it is given to its summary. */
struct drv_adopting;
struct drv_ended;
struct drv_host;
struct drv_resolving;
struct drv_suspicion;
struct drv_swap;

struct drv_fragment {
	struct drv_host *host;  /* NULL: not placed */
	uint32_t in_host;       /* its index there */
	struct drv_place place; /* of the last attempt; in app->placing */
};

/* A flow between hosts: its rows in the ledgers of both. */
struct drv_edge_rows {
	uint32_t sender, receiver;
};

/* How far the making of the summary has come: its tables, of which it counts what is there. */
struct drv_reporting {
	struct fragi_summary_fragment *fragments;
	struct fragi_summary_operator *operators; /* of the present fragment */
	struct fragi_summary_flow *flows;         /* NULL: not begun */
	struct drv_view_at next;                  /* the next operator */
	struct fragi_prediction prediction;       /* ops NULL: none */
};

#define DRV_APP_TIMERS 6

/*
 * The changes of parameters that clients have made while the application runs (parameter.c), the
 * oldest first.
 */
struct drv_settings {
	struct drv_setting *first; /* that their hosts have not answered */
	uint32_t count;
	uint64_t last;
	struct drv_timer timeout; /* when the first one has waited too long */
	struct drv_parameter *changed;
	void *source;     /* owned; with the changes; NULL: none was made */
	uint32_t sources; /* how often the source has changed */
};

/* A packed source. */
struct drv_source {
	void *bytes;
	size_t size;
};

/* How the start of an application was asked for. */
struct drv_given {
	const char *by;     /* empty: nobody that has a name */
	int64_t timeout_ns; /* of its start; 0: none */
	/* the client and its START_APP that wait for an answer; connection 0: none does */
	uint64_t connection, seq;
};

/* The run that follows this one. */
struct drv_next_run {
	bool is_wanted; /* no client has stopped the application: its driver starts it again */
	uint64_t run;   /* it starts anew under this number when it has ended; 0: it does not */
	const char *by; /* who asked for that */
	size_t reserved_bytes; /* for it, in the state folder */
};

/* The flows of an application. */
struct drv_flows {
	struct fragi_fragment_info *infos; /* as in the spec; NULL before wiring */
	/* of all: inner ones host by host, then those between hosts */
	struct fragi_flow_info *items;
	size_t count;
	struct drv_edge_rows *rows;      /* of all flows; NULL before wiring */
	struct drv_resolving *resolving; /* while flows are resolved; NULL: not begun, or done */
	uint8_t *tokens;                 /* of the edges; FW_TOKEN_BYTES each */
};

/* Secrets of a run. */
struct drv_keys {
	uint8_t *data;      /* FW_DATA_KEY_BYTES */
	uint8_t *variables; /* FW_VARIABLES_KEY_BYTES */
};

/* The result of the last attempt to place the fragments of an application. */
struct drv_placing {
	struct fragi_arena arena;
	const char *nearest; /* why the first of those without a worker has none; in the arena */
	char missing[512];   /* what WAITING waits for */
	bool is_cut;         /* it does not name all */
	bool is_explained;   /* a line has said why, or soon does */
	int64_t again_ns;    /* when the next attempt may be made */
};

/* The moves of its hosts, one after the other, because of drains (hosts/move.c). */
struct drv_moves {
	bool is_back;     /* some go back to a worker that was drained */
	uint32_t looked;  /* hosts before this one are moved, or stay */
	int64_t until_ns; /* so long a stop waits for one; 0: none is wanted */
};

/* The times at which the application reached its milestones; 0: not yet. */
struct drv_app_times {
	int64_t given_ns;
	int64_t started_ns; /* its hosts were asked to start */
	int64_t running_ns; /* all of them had */
	int64_t ending_ns, ended_ns;
};

enum drv_origin {
	DRV_ORIGIN_GIVEN,
	DRV_ORIGIN_RESTORED, /* it starts again with its driver, or waits to be adopted */
	DRV_ORIGIN_ADOPTED,
};

/* How it is to end. */
enum drv_end {
	DRV_END_NONE,
	DRV_END_IN_ORDER,
	DRV_END_FAILED, /* in order too, if its operators run; why it ends is decided */
	DRV_END_AT_ONCE,
};

/* How much of the application is on the disk, if the driver keeps state. */
enum drv_keeping {
	DRV_KEPT_NOT,
	DRV_KEPT_WRITTEN,  /* it is on the disk, or nothing is kept */
	DRV_KEPT_ACCEPTED, /* its client has the answer, and its end will be remembered */
	DRV_KEPT_CUT,      /* that it ended with the driver before */
};
struct drv_kept {
	enum drv_keeping state;
	uint64_t change; /* what is to be on the disk before anybody hears of it */
};

struct drv_app_timers {
	struct drv_timer phase;    /* the present state's limit; WAITING: the next line about it */
	struct drv_timer start;    /* all states of the start together */
	struct drv_timer judge;    /* of what is suspected */
	struct drv_timer retry;    /* the next look at hosts that are replaced */
	struct drv_timer progress; /* the next line about how far it is */
};

/* How decide.c comes to it. */
struct drv_turn {
	bool is_awake;        /* it has something to look at */
	size_t decided;       /* in which turn it decided last */
	struct drv_app *next; /* in the list of the core */
};

/* The result of the work of a state. */
enum drv_work {
	DRV_WAITS,   /* nothing is left to do before something wakes the application */
	DRV_AGAIN,   /* it is to be looked at in the next step */
	DRV_CHANGED, /* the next state follows */
};

struct drv_app {
	struct drv_core *core;
	uint64_t id; /* the shell's */
	uint64_t run;
	uint64_t epoch; /* of its hosts */
	struct fragi_arena arena;
	struct fragi_spec *spec;
	struct drv_source source;
	struct drv_source before; /* apply.c: what ran before, while this has not; owned */
	struct drv_given given;
	enum drv_origin origin;
	struct drv_adopting *adopting; /* its hosts are being reported (adopt.h); NULL: no */
	struct drv_kept kept;
	struct drv_next_run next;
	enum drv_app_state state;
	struct drv_fragment *fragments; /* as in the spec */
	struct fragi_strmap by_name;    /* those of the spec */
	struct drv_host *hosts;
	uint32_t host_count;
	uint32_t hosts_in[DRV_HOST_STATES]; /* how many hosts are in each state */
	uint32_t asked_count;               /* hosts before this one know the present goal */
	struct drv_flows flows;
	struct drv_keys keys;
	struct drv_app_timers timers;
	uint32_t replaced_count; /* hosts that are replaced, without those that still run */
	struct drv_host *moving; /* the one that is drained or swapped; NULL: none */
	struct drv_swap *swap;   /* of a library; NULL: none (swap.h) */
	struct drv_moves moves;
	struct drv_suspicion *suspicions; /* the oldest first; owned (suspicion.c) */
	struct fragi_diag diag;           /* of PREPARE and of the flows */
	const struct drv_host *diag_host; /* that the first of them is about; NULL: none */
	struct drv_placing placing;
	/* what events recorded, for decide.c */
	bool workers_changed; /* since the last attempt to place its fragments */
	enum drv_end end;     /* it is to end so */
	struct drv_turn turn;
	struct drv_app_times times;
	struct drv_reporting reporting;
	/* result, exit_code and failure (the first cause) while it runs; report.c adds the rest */
	struct fragi_summary summary;
	struct drv_settings settings;
	struct drv_losses *losses; /* of its flows (view/loss.c); NULL: not looked for yet */
};

/* app.c: an application, and what is recorded about it */
/* Progress is shown in a while, if anybody sees it. */
void drv_app_progress_defer(struct drv_app *app);
extern const struct fragi_machine drv_app_machine;
/*
 * run: its number; 0: the next one. It fails, and begins nothing, when its graph is wrong. Returns
 * NULL when there is no memory even for that, and has reported so.
 */
struct drv_app *drv_app_create(struct drv_core *core, const struct drv_event_app *event,
			       uint64_t run);
/* The same of a run that has ended. NULL also where another has its name, or it has no source. */
struct drv_app *drv_app_create_again(struct drv_core *core, const struct drv_ended *ended,
				     uint64_t run);
/* It was created, and nothing speaks against it: it is kept, and then waits for workers. */
void drv_app_begin(struct drv_app *app);
/*
 * Something has happened to it, so it decides at the end of the step. Most applications sleep in
 * most steps: code that changes what decide.c looks at wakes them.
 */
void drv_app_wake(struct drv_app *app);
/* Workers have come, gone or changed: all applications look at them. */
void drv_app_wake_all(struct drv_core *core);
/* Returns the application of that number, if it is not forgotten; NULL: none. */
struct drv_app *drv_app_find(const struct drv_core *core, uint64_t run);
/* Advises where a name is no fragment: which there are, or is meant; in the arena of the step. */
const char *drv_app_advise(const struct drv_app *app, const char *name);
/* Returns the application of that name that has not ended; NULL: none. */
struct drv_app *drv_app_named(const struct drv_core *core, const char *name);
/* Frees the application's memory, but for its hosts and what belongs to them. */
void drv_app_free(struct drv_app *app);
void drv_app_transition(struct drv_app *app, enum drv_app_state to);
/* The application is on the disk, or could not be written (why_not: the reason). */
void drv_app_persisted(struct drv_app *app, const char *why_not);
/* Fails the application. Its first cause counts. host: where; NULL: nowhere in particular */
void drv_app_fail(struct drv_app *app, enum fragi_failure code, const struct drv_host *host,
		  const char *format, ...) FRAG_PRINTF(4, 5);
/* Fails the application as a host reported; without a sentence, by naming that host. */
void drv_app_fail_by_host(const struct drv_host *host, const struct fw_failure *failure);
/* Memory is short for this application, which ends; others go on. */
void drv_app_fail_for_memory(struct drv_app *app);
/* The first error of app->diag is the cause; the others are logged. */
void drv_app_fail_by_diag(struct drv_app *app);
void drv_app_stop(struct drv_app *app, int signal); /* signal 0: an operator asked */
void drv_app_stop_at_once(struct drv_app *app, int signal);
/* Whether every host has come at least as far; one that is gone has come furthest. */
bool drv_app_all_at(const struct drv_app *app, enum drv_host_state state);

static inline const char *drv_app_name(const struct drv_app *app)
{
	return app->spec != NULL ? app->spec->application : "application";
}

#endif
