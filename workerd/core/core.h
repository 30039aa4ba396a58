/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRK_CORE_H
#define WRK_CORE_H

#include <base/arena.h>
#include <base/log.h>
#include <wire/message.h>

/*
 * The decisions of workerd, without I/O: the session with the driver and the hosts. wrk_core_step
 * takes one event and the time, and returns actions; the shell turns libuv's callbacks into events
 * and performs the actions in order. The core makes no system call, and has neither clock nor
 * randomness: a simulator is another shell.
 *
 * The happy path: START, CONNECTED (HELLO is sent), WELCOME, HOST_CREATE (SPAWN), the frames
 * between driver and host relayed by (run, host, epoch), HOST_STOP, HOST_EXITED (final HOST_STATS,
 * HOST_EXIT). When the driver is lost, silent or broken, the worker connects again and again. A
 * driver that serves (WELCOME, keeps_hosts) finds its hosts again: they run on meanwhile, and are
 * reported when it is back (report.c). The hosts of another driver are killed at once, since their
 * application ends with it. A host that is silent is killed and reported. Silence and delays are
 * judged in the time for which this process was awake itself (base/awake.h).
 */
enum wrk_session {
	WRK_SESSION_DISCONNECTED,
	WRK_SESSION_CONNECTING,
	WRK_SESSION_HELLO_SENT,
	WRK_SESSION_ATTACHED,
	WRK_SESSION_BACKOFF,
	WRK_SESSION_ENDED,
	WRK_SESSIONS
};
enum wrk_host_state {
	WRK_HOST_NONE,
	WRK_HOST_SPAWNING,
	WRK_HOST_UP,
	WRK_HOST_STOPPING, /* asked to end by itself */
	WRK_HOST_KILLED,   /* SIGKILL is sent, the exit is not seen yet */
	WRK_HOST_GONE,
	WRK_HOST_STATES
};

#define WRK_HOSTS_MAX FW_WORKER_HOSTS_MAX
/* Beside each host one that has ended, and of which not everything is closed yet. */
#define WRK_PROCESSES_MAX (2 * WRK_HOSTS_MAX)
#define WRK_BACKOFF_MIN_NS 100000000ll
#define WRK_BACKOFF_MAX_NS 5000000000ll
#define WRK_BACKOFF_HOSTS_NS 1000000000ll    /* while hosts wait for their driver */
#define WRK_BACKOFF_REFUSED_NS 30000000000ll /* while its driver refuses it */
#define WRK_CONNECT_NS 5000000000ll          /* longest attempt */
#define WRK_KILL_NS 1000000000ll             /* from SIGTERM to SIGKILL */
#define WRK_LOST_NS 2000000000ll             /* the same, of hosts whose driver was lost */
#define WRK_WAITS_NS 10000000000ll           /* between two lines about what is waited for */
#define WRK_GRACE_NS 500000000ll /* for the driver to stop them, when this workerd is to end */

/* texts are borrowed for the life of the core */
struct wrk_config {
	const char *name;
	const char **fragments; /* --fragments; none: whatever fits */
	uint32_t fragment_count;
	const char *driver; /* its address, for people */
	/* announced, or the interface's; empty: the local address of the control connection */
	const char *worker_address;
	const char *node, *clock, *version;
	const char *memory, *no_memory; /* as in HELLO; NULL: none */
	int64_t has[FRAGI_AMOUNTS];
	const char *mig;     /* as in HELLO; NULL: none */
	const char **labels; /* "key=value" */
	uint32_t label_count;
	const char *limited;   /* as in HELLO; NULL: nothing is */
	const char *no_limits; /* as in HELLO; NULL: it enforces them */
	bool once;
	/* a driver's refusal does not end it: the service manager would only start it again */
	bool outlives_refusal;
	int64_t beat_ns, dead_ns; /* until WELCOME has them; 0: base/beat.h */
	/* from HOST_KILL to SIGKILL, for the host to end by SIGTERM; 0: at once */
	int64_t grace_ns;
	uint64_t seed; /* of the jitter */
};

/* Lines of a host that are passed on to the driver: so many in a row, and then so many a second. */
#define WRK_LINES_BURST 256
#define WRK_LINES_RATE 100

enum wrk_event_kind {
	WRK_EVENT_START,
	WRK_EVENT_CONNECTED,      /* connection, text: the local address, proof */
	WRK_EVENT_CONNECT_FAILED, /* connection, failure, text: why */
	WRK_EVENT_RENEWED,        /* proof: the key of the session was exchanged */
	WRK_EVENT_DRIVER_MESSAGE, /* connection, message */
	WRK_EVENT_DRIVER_LOST,    /* connection, text: why; the connection is closed already */
	WRK_EVENT_HOST_SPAWNED,   /* host, pid */
	WRK_EVENT_HOST_FAILED,    /* host, text: why it could not be spawned */
	WRK_EVENT_HOST_MESSAGE,   /* host, message */
	WRK_EVENT_HOST_CONNECTION_LOST, /* host, text: end of file, or a broken frame; cut */
	WRK_EVENT_HOST_SAMPLED,         /* host, stats */
	/* host, lines, line_count, left_out: what it has written, if the driver takes it */
	WRK_EVENT_HOST_LINES,
	WRK_EVENT_HOST_EXITED, /* host, exited; after all its messages */
	WRK_EVENT_NETWORK,     /* text: why no host can reach others yet; NULL: they can */
	WRK_EVENT_GPUS,        /* has, mig: what this worker offers, after all */
	WRK_EVENT_EXAMINED,    /* message: what was found on this node */
	WRK_EVENT_TIMER,       /* the deadline has come */
	/*
	 * SIGINT, SIGTERM: whoever ends the workers usually ends the driver too, so it gets a
	 * moment to stop the hosts in order. The second one: at once.
	 */
	WRK_EVENT_STOP,
};
struct wrk_exited {
	int status, signal;          /* exit status, or signal that ended it (0: none) */
	uint64_t memory_limit_bytes; /* the kernel killed for it; 0: it did not */
	const char *core_file;       /* sentence part about the core file; NULL: none was written */
	const struct fw_host_stats *stats;   /* the page read a last time; NULL: there was none */
	const struct fragi_crash_note *note; /* NULL: it left none */
	const char **lines;
	uint32_t line_count;
};
struct wrk_event {
	enum wrk_event_kind kind;
	uint64_t
		connection; /* of the driver's connection; others than the present one's are ignored */
	uint32_t host;      /* id of the core */
	int pid;
	bool is_interpreter; /* HOST_SPAWNED: it starts in seconds, and says nothing before */
	bool cut;            /* this side gave the socket up */
	const char *text;
	/* what the driver has proven: its key, certificate or user; NULL: nothing */
	const char *proof;
	/*
	 * CONNECT_FAILED, DRIVER_LOST: KEY_REFUSED when no key is accepted, USER_REFUSED when a
	 * process listens there whose commands this worker must not take; else NONE
	 */
	enum fragi_failure failure;
	const struct fw_message *message; /* borrowed, may be relayed by the actions of this step */
	const struct fw_host_stats *stats;
	const struct wrk_exited *exited;
	const char *const *lines; /* FW_LOG_ROWS_MAX at most */
	uint32_t line_count, left_out;
	const int64_t *has; /* [FRAGI_AMOUNTS], of which those count that are surveyed */
	const char *mig;    /* borrowed for the life of the core */
};

enum wrk_action_kind {
	WRK_DO_CONNECT,     /* connection: answers CONNECTED or CONNECT_FAILED */
	WRK_DO_DISCONNECT,  /* connection: what was sent before leaves first; no event follows */
	WRK_DO_SEND_DRIVER, /* connection, message */
	WRK_DO_REPORTER_SESSION, /* connection, message (WELCOME): for the crash reporter */
	/* host, message (HOST_CREATE), lease_until_ns: answers HOST_SPAWNED or HOST_FAILED */
	WRK_DO_SPAWN,
	WRK_DO_SEND_HOST,   /* host, message */
	WRK_DO_SIGNAL_HOST, /* host, signal */
	/* host, looks: answers HOST_SAMPLED if there is a page; with facts if somebody looks */
	WRK_DO_SAMPLE_HOST,
	/* host: it belongs to the session that the reporter got last */
	WRK_DO_REPORTER_HOST,
	/* run, number, epoch: what the operators of that host have saved goes to the driver too */
	WRK_DO_SEND_SAVED,
	WRK_DO_TAKE_SAVED, /* message (HOST_SAVED): a part of what operators have saved elsewhere */
	/* run, number, epoch: that process is the host, and what it has got is what it saves to */
	WRK_DO_PROMOTE_SAVED,
	/*
	 * run; 0: all; number: of that host; 0: of all; epoch: of that process beside it; 0: of it
	 * too: what was saved is of no use any more
	 */
	WRK_DO_FORGET_SAVED,
	WRK_DO_EXAMINE, /* this node: answers EXAMINED */
	WRK_DO_LOG,     /* level, subject, text */
	WRK_DO_EXIT,    /* exit_code; the last action ever */
};
struct wrk_action {
	enum wrk_action_kind kind;
	uint64_t connection, run, epoch;
	uint32_t host, number;
	int signal, exit_code;
	bool looks;
	const struct fw_message *message; /* seq is 0: the connection counts */
	int64_t lease_until_ns;           /* 0: it has none */
	enum fragi_log_level level;
	const char *subject; /* the application; NULL: none */
	const char *text;
};
/* zeroed: empty */
struct wrk_actions {
	struct wrk_action *items;
	size_t count, capacity;
	struct fragi_arena arena; /* what the items point to, but for relayed messages */
	/* the HOST_CREATE that source.c has completed; its keys are wiped with the step */
	struct fw_message completed;
	bool out_of_memory;
	struct wrk_action nowhere; /* takes what found no memory; never performed */
};
void wrk_actions_reset(struct wrk_actions *actions);
void wrk_actions_fini(struct wrk_actions *actions);

struct wrk_core;
int wrk_core_create(const struct wrk_config *config, struct wrk_core **out_core); /* 0 or -ENOMEM */
void wrk_core_destroy(struct wrk_core *core); /* NULL is accepted */
/*
 * now_ns: by a clock that goes on while the machine is suspended (CLOCK_BOOTTIME), for leases.
 * Appends to actions, which the caller has reset. They are valid until the event or actions are
 * given up. Returns 0 or -ENOMEM, after which the core must not be used on.
 */
int wrk_core_step(struct wrk_core *core, const struct wrk_event *event, int64_t now_ns,
		  struct wrk_actions *actions);
/* Returns when WRK_EVENT_TIMER is due; INT64_MAX: never. */
int64_t wrk_core_deadline_ns(const struct wrk_core *core);

/* Whether the driver wants WRK_EVENT_HOST_LINES. */
bool wrk_core_takes_lines(const struct wrk_core *core);
/* Why its driver refuses this worker, valid until the next step; NULL: it does not. */
const char *wrk_core_refusal(const struct wrk_core *core);
/* States for shells and tests. */
enum wrk_session wrk_core_session(const struct wrk_core *core);
/* WRK_HOST_NONE: gone */
enum wrk_host_state wrk_core_host_state(const struct wrk_core *core, uint32_t host);
uint32_t wrk_core_host_count(const struct wrk_core *core);
uint32_t wrk_core_illegal_transitions(const struct wrk_core *core); /* 0 unless there is a bug */

#endif
