/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRV_CORE_H
#define DRV_CORE_H

#include <base/arena.h>
#include <base/log.h>
#include <driverd/core/record.h>
#include <track/summary.h>
#include <wire/identity.h>

/*
 * The decisions of driverd, without I/O: the sessions of workers, the applications, their hosts.
 * drv_core_step takes one event and the time, and returns actions; the shell turns libuv's
 * callbacks into events and performs the actions in order. The core makes no system call and reads
 * no clock; randomness comes from the config: a simulator is another shell.
 *
 * The happy path of an application: it is on the disk with its epoch before anybody hears of it
 * (where the driver keeps state); it waits until every fragment has a worker; then HOST_CREATE
 * to each host and HOST_PREPARED back; flows between fragments are resolved; HOST_WIRE, HOST_WIRED;
 * HOST_START, HOST_STARTED; it runs; every host says DONE (or all are at rest); HOST_STOP; the last
 * HOST_STATS and HOST_EXIT; the summary. The first cause of a failure is the one sentence of the
 * run; then the hosts that live are stopped as at a stop, and killed if they do not end; what they
 * counted is collected, and the summary follows.
 */
#define DRV_WORKERS_MAX 8192
/* Clients have no part of that, and each may ask so often between two beats. */
#define DRV_CLIENTS_MAX 64
#define DRV_ADMINS_MAX 8     /* more, who are administrators of the driver's machine */
#define DRV_FOLLOWERS_MAX 48 /* of all clients: the places of the others are for commands */
#define DRV_REQUESTS_MAX 64
/*
 * The work of a step is bounded, so that beats go on whatever the size of a graph. A step handles
 * items (operators, flows, edges, rows of counters, 64 bytes of a text that is sent, pairs of a
 * fragment that is placed and a worker) until it has
 * handled DRV_STEP_ITEMS of them; what is left is done by further steps, which the deadline asks
 * for at once. What cannot be divided is the rows of a frame, or of two
 * when a flow is the first one between their tables: a step never handles more than
 * DRV_STEP_ITEMS_MAX. Beside that it may look once at each session and host, read the text of one
 * application, and finish to place the fragments of one that it has begun.
 */
#define DRV_STEP_ITEMS 4096
#define DRV_PLACE_PAIRS 16 /* as much work as one item: a fragment and a worker it may run on */
/*
 * An attempt to place more pairs than these, in which fragments found no worker, is followed by the
 * next one after so long a time for each pair, some ten times as long as it took.
 */
#define DRV_PLACE_AT_ONCE 16384
#define DRV_PLACE_PAUSE_NS 100
#define DRV_STEP_ITEMS_MAX (DRV_STEP_ITEMS + 2 * (int64_t)FW_ROWS_MAX)
#define DRV_REPLY_ITEMS (DRV_STEP_ITEMS / 2) /* of a reply, so that applications get theirs */
/*
 * Limits of what clients can make the driver keep: applications at a time and bytes of their
 * sources; bytes of source between two beats of a client for each of its requests (one command may
 * have more, and waits for the next beat when others came before it); runs that have ended, with
 * bytes of their sources and summaries; rows of one of these summaries; and notices.
 */
#define DRV_APPS_MAX 1000
#define DRV_SOURCES_MAX ((size_t)256 << 20)
#define DRV_REQUEST_BYTES 65536
#define DRV_ENDED_MAX 64
#define DRV_ENDED_BYTES ((size_t)64 << 20)
#define DRV_ENDED_ROWS (DRV_STEP_ITEMS / 2) /* fragments and operators */
#define DRV_ENDED_FLOWS ((size_t)4 * DRV_STEP_ITEMS)
#define DRV_NOTICES_MAX 1024
/*
 * Changes of parameters of an application that hosts have not answered, bytes that one needs in the
 * source beside its text, and the minor of workers that know them.
 */
#define DRV_SETS_MAX 64
#define DRV_SET_ROOM 8
#define DRV_SETS_MINOR 4
#define DRV_MOVES_MINOR 6  /* of workers that know how a host goes on in another process */
#define DRV_LEASES_MINOR 8 /* of workers that end a host with its lease */
/* Of a worker before FW_GPU_LIMIT_MINOR. */
#define DRV_NO_GPU_LIMIT "its frag is older and knows no gpuMemoryLimit; install this one there"
/*
 * Lines of an application, with their bytes; of all applications together about twice the bytes of
 * 64. They are not kept over the end of the driver.
 */
#define DRV_LINES_MAX 1024
#define DRV_LINES_BYTES ((size_t)256 << 10)
#define DRV_LINES_KEPT_NS (INT64_C(7) * 86400 * 1000000000)
#define DRV_KEPT_NS (INT64_C(90) * 86400 * 1000000000) /* of runs that have ended, and events */

enum drv_app_state {
	DRV_APP_NEW,       /* until it is on the disk */
	DRV_APP_WAITING,   /* for workers */
	DRV_APP_PREPARING, /* hosts load and compose */
	DRV_APP_WIRING,
	DRV_APP_STARTING,
	DRV_APP_RUNNING,
	DRV_APP_DRAINING, /* sources stop, queues drain */
	DRV_APP_FAILING,  /* so do those that live; what has failed ends */
	DRV_APP_CLOSING,  /* hosts end by themselves */
	DRV_APP_KILLING,
	DRV_APP_ENDED,
	DRV_APP_STATES
};
enum drv_host_state {
	DRV_HOST_PLACED,
	DRV_HOST_PREPARING,
	DRV_HOST_PREPARED,
	DRV_HOST_WIRING,
	DRV_HOST_WIRED,
	DRV_HOST_STARTING,
	DRV_HOST_RUNNING,
	DRV_HOST_DONE,
	DRV_HOST_STOPPING, /* asked to end by itself */
	DRV_HOST_KILLED,   /* its worker was asked to kill it */
	DRV_HOST_GONE,
	DRV_HOST_STATES
};
enum drv_session_state {
	DRV_SESSION_NEW,
	DRV_SESSION_LIVE,
	DRV_SESSION_SUSPECT, /* silent for a third of the time of death */
	DRV_SESSION_GONE,
	DRV_SESSION_STATES
};

/* of the driver, as fw_reply shows it; zeros: not known */
struct drv_machine {
	uint64_t state_bytes, state_free_bytes; /* of the disk of the state folder */
	int64_t certificate_ends_unix_s;
	int64_t started_unix_s;
};

/* zero: the default; texts are borrowed for the life of the core */
struct drv_config {
	const char *version;
	const char *clock;                   /* the driver's; base/identity.h */
	const char *address;                 /* where workers connect, for people */
	int64_t beat_ns, dead_ns, wire_ns;   /* base/beat.h */
	int64_t prepare_ns, start_ns;        /* 0: only the start timeout limits them */
	int64_t drain_ns, close_ns, kill_ns; /* 10 s, 2 s, 1 s */
	int64_t report_missing_ns;           /* 10 s */
	int64_t progress_ns;                 /* 1 s; below 0: nobody sees it */
	int64_t adopt_ns;           /* 8 s: for workers to come back and report what runs */
	int64_t realtime_offset_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC; drv_core_set_clock */
	/*
	 * The driver and its only worker are one process: all fragments share a host, and no
	 * worker is named in the summary.
	 */
	bool is_local;
	/* it takes no further application, nor any of clients: every worker hears of the end */
	bool ends_with_app;
	/*
	 * Hosts outlive it, and the next driver finds them again (adopt.h): with a service. How
	 * the shell ends then is its own affair: it just goes, or sends STOP before.
	 */
	bool adopts;
	bool keeps_state;            /* DRV_DO_PERSIST is answered with DRV_EVENT_PERSISTED */
	const char *const *expected; /* names of workers; shown until they come */
	size_t expected_count;
	bool encrypts_data; /* all flows between hosts, whatever the graph says */
	void (*random)(void *arg, void *bytes,
		       size_t size); /* ids and secrets of sessions, tokens of edges; required */
	void *random_arg;
};

enum drv_event_kind {
	DRV_EVENT_APP,     /* app: an application to run */
	DRV_EVENT_MESSAGE, /* connection, peer, identity, message */
	DRV_EVENT_CLOSED,  /* connection, text: why; it is gone */
	/* connection: its peer may not have read what came before DRV_DO_CLOSE */
	DRV_EVENT_UNHEARD,
	/* connection, peer, identity: its key is not accepted any more */
	DRV_EVENT_REVOKED,
	DRV_EVENT_KEYS,      /* accepts, arg: keys were read again */
	DRV_EVENT_KEYS_KEPT, /* text: why the keys that the files hold now are not used */
	DRV_EVENT_STRANGER,  /* peer, text: it has proven no key that is accepted; it is gone */
	DRV_EVENT_TIMER,     /* the deadline has come */
	DRV_EVENT_LEAVE, /* it ends after this step, and what runs goes on for the next driver */
	DRV_EVENT_STOP,  /* signal: every application stops in order; the second time at once */
	/* change: all records up to it were tried; text: NULL, or why they are not on the disk */
	DRV_EVENT_PERSISTED,
};
struct drv_event_app {
	const void *source; /* fragi_source_pack; copied */
	size_t source_bytes;
	int64_t start_timeout_ns; /* 0: none */
	uint64_t id;              /* the shell's own; DRV_DO_ENDED carries it */
	const char *name;         /* in place of the graph's; NULL: the graph's */
	const char *started_by;   /* who asked for it; NULL: nobody that has a name */
};
struct drv_event {
	enum drv_event_kind kind;
	uint64_t connection; /* the shell's id of a connection, never used again */
	const char *peer;    /* MESSAGE, REVOKED: its address, for people */
	/* MESSAGE, REVOKED: what the peer has proven by a key or certificate; NULL: nothing */
	const struct fw_identity *identity;
	bool is_local; /* MESSAGE: it came over the unix socket, where only clients may join */
	const char
		*user; /* MESSAGE: the user of this machine whose process it is; NULL: not known */
	bool is_admin; /* MESSAGE: that user is root, or the driver's own */
	uint32_t user_roles; /* MESSAGE: of that user; 0: there is none, or it is not known */
	const char *text;    /* CLOSED, STRANGER, PERSISTED */
	struct fw_message *message; /* from fw_decode; the core takes it */
	struct drv_event_app app;
	int signal;
	uint64_t change;
	bool (*accepts)(void *arg, const struct fw_identity *identity);
	void *arg;
};

enum drv_action_kind {
	/*
	 * connection, frame: the shell takes the frame (and sets it NULL); may_drop: it is not sent
	 * where more than room_bytes wait to be sent, or anything at all with 0
	 */
	DRV_DO_SEND,
	DRV_DO_ADMIT,    /* connection: the peer's HELLO was accepted */
	DRV_DO_CLOSE,    /* connection: after what was sent before has left; no event follows */
	DRV_DO_LOG,      /* level, subject, text */
	DRV_DO_PROGRESS, /* text: how things stand, for a line that is written over */
	/* record, change: the records of a step are written together, or none of them is */
	DRV_DO_PERSIST,
	/* app, summary: that application has ended; valid until the next step */
	DRV_DO_ENDED,
};
struct drv_action {
	enum drv_action_kind kind;
	uint64_t connection;
	uint8_t *frame;
	size_t frame_bytes;
	bool may_drop;
	uint32_t room_bytes;
	enum fragi_log_level level;
	const char *subject, *text;
	const struct fragi_summary *summary;
	uint64_t app;
	struct drv_record record;
	uint64_t change;
};
/* zeroed: empty */
struct drv_actions {
	struct drv_action *items;
	size_t count, capacity;
	struct fragi_arena arena; /* what the items point to, but for frames and summaries */
	bool out_of_memory;
};
void drv_actions_reset(struct drv_actions *actions); /* frees frames that nobody took */
/*
 * Joins small frames for the same connection, so that they are written by one call. Those that were
 * appended to another one are NULL. Without memory for that they stay as they are.
 */
void drv_actions_join(struct drv_actions *actions);
void drv_actions_fini(struct drv_actions *actions);

struct drv_core;
/* Returns 0, -EINVAL (no random), -ENOMEM. */
int drv_core_create(const struct drv_config *config, struct drv_core **out_core);
void drv_core_destroy(struct drv_core *core); /* NULL is accepted */
/*
 * Restores a record before the first step, in this order: NUMBERS, each PLACED, each RUN with its
 * end, each NOTICE, the oldest first, each DRAINED worker. Returns 0, -EUCLEAN (no driver has
 * written that), -ENOMEM.
 */
int drv_core_restore(struct drv_core *core, const struct drv_record *record);
/* The clock of the machine was set, or it was suspended. */
void drv_core_set_clock(struct drv_core *core, int64_t realtime_offset_ns);
/* What clients are shown of it. */
void drv_core_set_machine(struct drv_core *core, const struct drv_machine *machine);
/*
 * now_ns: CLOCK_MONOTONIC; what the process slept is not counted (base/awake.h).
 * Appends to actions, which the caller has reset. Takes event->message in every case. Returns 0 or
 * -ENOMEM, after which the core can only be destroyed.
 */
int drv_core_step(struct drv_core *core, struct drv_event *event, int64_t now_ns,
		  struct drv_actions *actions);
/*
 * Whether a service has been given up: it did not run for the time of death, at once or in pieces,
 * as after a SIGSTOP, in a virtual machine that was paused or without a processor, and now a worker
 * has left it. The hosts of that worker run on and wait for a driver that adopts them, of which
 * this core knows nothing: the shell destroys it, and begins again as the next driver would. To be
 * asked before each step.
 */
bool drv_core_is_given_up(const struct drv_core *core, const struct drv_event *event,
			  int64_t now_ns);
/*
 * Returns when DRV_EVENT_TIMER is due; INT64_MAX: never. A time that is not after that of the last
 * step means: there is work left, and the next step comes as soon as other events have had their
 * turn.
 */
int64_t drv_core_deadline_ns(const struct drv_core *core);

/* Counts for shells, tests and simulators. */
size_t drv_core_session_count(const struct drv_core *core);
size_t drv_core_app_count(const struct drv_core *core); /* that have not ended */
/* The application whose run has ended last, if it has failed and does not run; NULL: none. */
const char *drv_core_failed(const struct drv_core *core);
/*
 * What the peer of a connection has proven last: a worker may exchange its key while its session
 * goes on. first: what it proved at first; NULL: nothing.
 */
const struct fw_identity *drv_core_identity(const struct drv_core *core, uint64_t connection,
					    const struct fw_identity *first);
int64_t drv_core_placed(const struct drv_core *core); /* fragments that hold a place on a worker */
/*
 * Returns the load that workers are counted to carry, with places that are held for a move or an
 * adoption.
 */
int64_t drv_core_load(const struct drv_core *core);
/* Whether the worker that the driver calls so is given no more fragments. */
bool drv_core_is_drained(const struct drv_core *core, const char *worker);
/* Whether clients wait for answers that the state folder holds up. */
bool drv_core_holds_answers(const struct drv_core *core);
/*
 * Returns, for the simulator, the next answer after *number that was held for the state folder and
 * is not sent yet, as a frame of the core; NULL: there is none. number: receives its number.
 */
const uint8_t *drv_core_held_answer(const struct drv_core *core, uint64_t *number,
				    uint64_t *out_connection, size_t *out_bytes);
/* The state of the only application; DRV_APP_ENDED when there is none. */
enum drv_app_state drv_core_app_state(const struct drv_core *core);
/* Returns the state of the newest application of that name; DRV_APP_ENDED if there is none. */
enum drv_app_state drv_core_named_state(const struct drv_core *core, const char *application);
/* Whether a host of it is between two processes: one yields, or the other is to start. */
bool drv_core_moves(const struct drv_core *core, const char *application);
int64_t drv_core_step_items(const struct drv_core *core); /* that the last step has handled */
uint32_t drv_core_illegal_transitions(const struct drv_core *core); /* 0 unless there is a bug */
const char *drv_app_state_name(enum drv_app_state state);

#endif
