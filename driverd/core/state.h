/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_STATE_H
#define DRV_STATE_H

#include <base/awake.h>
#include <base/machine.h>
#include <base/strmap.h>
#include <driverd/core/applications/app.h>
#include <driverd/core/core.h>
#include <driverd/core/kept/history.h>
#include <driverd/core/applications/host.h>
#include <driverd/core/placement/place.h>
#include <driverd/core/base/timer.h>
#include <driverd/core/view/view.h>
#include <graph/predict.h>
#include <graph/resolve.h>
#include <text/spec.h>

/*
 * What the files of the core share; nobody else includes it. A function is called from its own
 * folder and from those after it, which mk/layers.py checks:
 *  - base: what a step returns (actions.c), timers, the lines that applications have written
 *  - kept: what goes to the disk (keep.c), and what has happened (history.c)
 *  - sessions: those of workers and clients, and the answers to clients
 *  - applications: an application, its hosts and their processes, its source, parameters and flows
 *  - view: what is known and counted, at any time
 *  - placement: which worker runs what, at a start (start.c) and later (where.c)
 *  - hosts: what a host reports (host.c), how a process is replaced by the next one (replace.c),
 *    what its failure leads to (failure.c), and how what ran before is adopted
 *  - clients: what clients ask for
 *  - here: core.c records an event, decide.c decides at the end of the step; join.c and keeper.c
 *    begin and end sessions, restore.c starts what is to start again with the driver
 */

struct drv_session {
	struct drv_core *core;
	uint64_t connection;
	uint64_t
		number; /* counts up, for people: whoever knows the id is half way to the session */
	uint64_t id;    /* random */
	/*
	 * What the worker brings when it comes back. Like the id it is good for as long as this
	 * process lives, so a core file of it holds nothing that is still of use.
	 */
	uint8_t secret[FW_SECRET_BYTES];
	uint64_t keeper; /* connection of its worker's keeper; 0: none */
	enum drv_session_state state;
	enum fw_role role; /* a client is given no fragments */
	uint32_t minor;    /* of its protocol */
	uint32_t requests; /* of a client, since the last beat */
	struct fw_message
		*deferred; /* of a client: it waits for the next beat; owned; NULL: none */
	const char *who;   /* of a client: "user alice", "key tablet" */
	/* of a client: what it awaits (run 0: nothing), and the events that it is shown */
	struct {
		uint64_t run, seq;
		enum fw_milestone until;
	} await;
	struct {
		uint64_t seq;  /* of its WATCH; 0: it follows nothing */
		uint64_t last; /* the event that it has got last */
	} watch;
	struct drv_log_watch *log_watch; /* the lines that it is shown; owned; NULL: none */
	struct fragi_arena arena;        /* of the texts below */
	const char *name;                /* as the driver calls it */
	const char *peer;
	const char *const *fragments;
	uint32_t fragment_count;
	const char *worker_address, *node, *clock, *memory, *no_memory;
	char waits_for[FW_WAITS_FOR_MAX]; /* why it can run nothing yet; empty: it can */
	int64_t has[FRAGI_AMOUNTS], used[FRAGI_AMOUNTS]; /* used: that its fragments require */
	int64_t load;                                    /* as in struct drv_place_worker */
	const char *const *labels;
	uint32_t label_count;
	bool is_reporting;            /* what it ran while the driver was away, until REPORTED */
	size_t report_bytes;          /* of the graphs of what it has reported */
	uint32_t to_report, reported; /* hosts: that it may still report; that wait to be adopted */
	bool is_drained;              /* it is given no more fragments */
	const char *no_limits;        /* why it cannot enforce limits; empty: it can */
	int64_t placed;               /* fragments of all applications */
	/* that name this session, and the list of them in the order in which they came to it */
	uint32_t hosts;
	struct drv_host *first_host, **last_host;
	/* lease.c: the time in its last BEAT, and when that came */
	int64_t lease_sent_ns, lease_heard_ns;
	uint64_t told_end;                /* of which run it heard the end last */
	struct drv_session *next_waiting; /* of a client that waits: the next one */
	const char *dropped; /* why it is lost at the end of the event; NULL: it is not */
	struct drv_session *next_dropped;
	uint64_t seq;                /* of the last message sent */
	int64_t joined_ns, heard_ns; /* when it said HELLO, and something last */
	struct drv_timer beat;
};

/* What applications and their hosts have written (lines.c). */
struct drv_lines {
	struct drv_log *logs;
	size_t count;
	uint64_t last; /* number of the last line */
};

struct drv_placed {
	struct drv_placed *next;
	uint64_t run;
	char workers[]; /* names, each followed by a newline */
};
#define DRV_FOREIGN_MAX 64

struct drv_core {
	struct drv_config config;
	struct drv_timers timers;
	struct fragi_awake clock;
	struct drv_session **sessions; /* by connection */
	uint64_t *connections;         /* of the sessions: one look at few lines of the cache */
	size_t session_count, session_capacity;
	size_t client_count;         /* of these sessions */
	struct drv_session *dropped; /* to be lost */
	struct drv_session *waiting; /* of these clients: they await or follow something */
	struct drv_history history;
	struct drv_lines lines;
	/* where runs may have hosts, as the state folder knows it */
	struct drv_placed *placed;
	/* numbers of runs that only workers know, or did at first: a driver before gave them */
	struct {
		uint64_t first, last;
	} foreign[DRV_FOREIGN_MAX];
	size_t foreign_count;
	struct drv_owed *owed;    /* lease.c: applications whose hosts may still run somewhere */
	int64_t born_ns;          /* its first step */
	int64_t woken_ns;         /* real: when it had not run for as long as the dead do; or 0 */
	bool leaves;              /* it ends, and the hosts run on for the next one */
	uint64_t workers_version; /* counts changes of workers */
	struct drv_drained *drained; /* names of workers that are given nothing */
	size_t drained_count;
	struct drv_app **apps; /* by run */
	size_t app_count, app_capacity;
	size_t over_count; /* of these apps: they have ended, and are forgotten by the next step */
	/* those that decide at the end of a step; the first one is the last one in the next step */
	struct drv_app *awake, **last_awake;
	struct fragi_summary refused; /* of an application for which there was no memory at all */
	uint64_t last_run, last_epoch, last_session;
	uint64_t given_run; /* the highest of these runs that a driver of this state has given */
	uint64_t last_change, settled_change; /* handed out; tried, whether it succeeded or not */
	/* that reserves epochs above those of drivers before; 0: none does, or nothing is kept */
	uint64_t numbers_change;
	bool is_behind;    /* the last try failed */
	bool has_room;     /* what others wait for may have become free */
	bool is_restoring; /* applications are still to start again */
	size_t turn;       /* which one is looked at though it sleeps */
	uint32_t stops;
	uint32_t illegal_moves;
	/* during a step */
	struct drv_actions *actions;
	int64_t now_ns;  /* of the clock that stands still while this process does: all timers */
	int64_t real_ns; /* for what the summary reports */
	int64_t items;   /* that it may still handle; below 0 when one frame had more */
	bool work_left;  /* the next step is wanted at once */
	bool decides; /* what the event was is recorded; hosts are asked for something only now */
};

/*
 * actions.c: what a step returns. Memory that is short for the list of actions itself is remembered
 * there, and is the end of the core; any other is the end of one application, or of one session.
 */
void drv_log(struct drv_core *core, enum fragi_log_level level, const char *subject,
	     const char *format, ...) FRAG_PRINTF(4, 5);
void drv_emit(struct drv_core *core, const struct drv_action *action);
const char *drv_text(struct drv_core *core, const char *format, ...) FRAG_PRINTF(2, 3);
/* The same, but `fragctl logs` does not show it: it has come in another way. */
void drv_log_again(struct drv_core *core, enum fragi_log_level level, const char *subject,
		   const char *format, ...) FRAG_PRINTF(4, 5);
/* Sends message to the session's peer; counts its seq. Returns 0, -ENOMEM, or -EMSGSIZE. */
int drv_send(struct drv_session *session, struct fw_message *message);
void drv_set(struct drv_core *core, struct drv_timer *timer, int64_t at_ns);
/* Closes a connection after what was sent on it has left. */
void drv_close(struct drv_core *core, uint64_t connection);

/* session.c: the sessions of workers and clients */
extern const struct fragi_machine drv_session_machine;
struct drv_session *drv_session_find(const struct drv_core *core, uint64_t connection);
/* The session that the peer has proven to know by its secret; NULL: none. */
struct drv_session *drv_session_named(const struct drv_core *core, const struct fw_hello *hello);
void drv_session_move(struct drv_session *session, enum drv_session_state to);
const char *drv_session_role(const struct drv_session *session); /* "client", "worker" */
enum fragi_log_level drv_session_event_level(const struct drv_session *session);
int drv_session_insert(struct drv_core *core, struct drv_session *session); /* 0 or -ENOMEM */
void drv_session_remove(struct drv_session *session);                       /* and frees it */
void drv_session_destroy(struct drv_session *session);
/* It is lost when the event is recorded, or the step ends. why: of the step's arena */
void drv_session_drop(struct drv_session *session, const char *why);
/* Answers a command of a client. failure: NULL: none */
void drv_session_answer(struct drv_session *client, uint64_t seq, uint64_t run, const char *name,
			const struct fw_failure *failure);
/* Takes one row of a reply, of that text, from the items of the step; false: none is left. */
bool drv_session_take_row(struct drv_core *core, const char *text);

/* join.c: how sessions begin and end */
/* Answers a HELLO with REFUSED. */
void drv_session_refuse(struct drv_core *core, uint64_t connection, const char *peer,
			const struct fw_message *hello, enum fragi_failure code,
			const char *sentence);
/* It sent another message before HELLO. */
void drv_session_refuse_stranger(struct drv_core *core, uint64_t connection, const char *peer,
				 const struct fw_message *message);
void drv_session_hello(struct drv_core *core, const struct drv_event *event,
		       const struct fw_message *message);
/* The peer of a connection has proven a key that counts no more. */
void drv_session_revoke(struct drv_core *core, const struct drv_event *event);
void drv_session_heard(struct drv_session *session);
/* A worker can run nothing yet, for the reason given in words; empty: it can. */
void drv_session_waits(struct drv_session *session, const char *why);
/*
 * It is gone: the hosts there are lost, for the reason given in words. close: the connection is
 * still there.
 */
void drv_session_lost(struct drv_session *session, bool close, const char *why);
/* Loses those that were dropped. */
void drv_session_lose_dropped(struct drv_core *core);

/* keeper.c */
/* The HELLO of a keeper. */
void drv_keeper_hello(struct drv_core *core, uint64_t connection, const char *peer,
		      const struct fw_message *message);
/* The session whose keeper has that connection; NULL: it is no keeper's. */
struct drv_session *drv_keeper_session(const struct drv_core *core, uint64_t connection);
/* Whether a keeper may send this; if not, its connection is closed. */
bool drv_keeper_may_send(struct drv_session *session, const struct fw_message *message);

/* client.c: takes a message of a client's session, which may end by it */
void drv_client_message(struct drv_session *client, struct fw_message *message);
/* A beat: it may ask again. The session may end by what it has asked before. */
void drv_client_beat(struct drv_session *client);

/* explain.c */
void drv_explain(struct drv_session *client, const struct fw_message *message);

/* refuse.c: the client, the log and the events get the sentence */
void drv_refuse_command(struct drv_session *client, const struct fw_message *command,
			const char *name, enum fragi_failure code, const char *sentence);
/* There is no application of that name that runs. */
void drv_refuse_unknown(struct drv_session *client, const struct fw_message *command,
			const char *name);
/* The same, where it is known how it ended (NULL: it is not). again: it was to start anew */
void drv_refuse_ended(struct drv_session *client, const struct fw_message *command,
		      const char *name, const struct drv_ended *ended, bool again);

/* command.c */
void drv_command_start(struct drv_session *client, const struct fw_message *message);
void drv_command_stop(struct drv_session *client, const struct fw_message *message);
/* The application is kept: who asked for it hears so. */
void drv_command_accepted(struct drv_app *app);
/* It ended before that. */
void drv_command_refused(struct drv_app *app);
/* Starts what has ended and is to start anew. */
void drv_command_restart(struct drv_core *core);

/*
 * transports.c: after the hosts are made, which transports each of them opens. Returns 0, or
 * -EINVAL (app->diag): the graph asks for one that does not connect the hosts of a flow.
 */
int drv_transports_choose(struct drv_app *app);
/* What decides how a flow with an end in that host travels. */
struct fragi_fragment_info drv_transports_info(const struct drv_host *host);

/* request.c */
/* The request that leads to a goal, for sentences: "PREPARE". */
const char *drv_goal_request(enum drv_goal goal);
/* How far a host has come that has reached the goal. */
enum drv_host_state drv_goal_reached(enum drv_goal goal);
/* Asks the host for what brings it to its goal, once. Returns false to be called again later. */
bool drv_request(struct drv_host *host);
/* Wires a host that has been wired to a peer that was started again. */
void drv_request_rewire(struct drv_host *host, const struct drv_host *peer);

/*
 * wiring.c: tables of all hosts become flows, flows become edges. Returns 0, -EINVAL (app->diag),
 * -ENOMEM
 */
int drv_wiring_resolve(struct drv_app *app); /* -EAGAIN: call it again in the next step */
void drv_wiring_end(struct drv_app *app);
/*
 * What WIRE says to the host, of all its peers, or of one (NULL: all); lives as long as the step.
 * Returns 0 or -ENOMEM.
 */
int drv_wiring_fill(struct drv_host *host, const struct drv_host *only, struct fw_host_wire *wire);
/* The edges of a host that is started again get new tokens. */
void drv_wiring_draw_tokens(struct drv_host *host);
/* The address of the host for those who send or receive over that flow; NULL: it has none. */
const struct fw_address *drv_wiring_address(const struct drv_host *host,
					    const struct fragi_flow_info *flow);
bool drv_flow_is_encrypted(const struct drv_app *app, const struct fragi_flow_info *flow);

/* report.c: fills app->summary. Returns 0, -EAGAIN (call it again in the next step), -ENOMEM. */
int drv_report(struct drv_app *app);

#include <driverd/core/kept/keep.h>

#endif
