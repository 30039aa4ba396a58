/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_H
#define SIM_H

#include <stdio.h>

#include <base/transports.h>
#include <driverd/core/core.h>
#include <edge/window.h>
#include <frag/operator.h>
#include <wire/frame.h>
#include <workerd/core/core.h>
#include <workerd/host/core/core.h>

/*
 * The simulator: the cores of driverd, workerd and fraghost, as they are, in one process on a
 * virtual clock and network, with runs that do as user code might and move messages over a small
 * model of the data plane. One seed is one history; everything random is drawn from it. Frames go
 * through the codec. After every event the invariants of check.c hold, or the history fails with
 * the name of the one that does not.
 */
#define SIM_MS 1000000ll
#define SIM_S 1000000000ll
#define SIM_NEVER 0ll             /* the clock starts later */
#define SIM_LASTS_NS (90 * SIM_S) /* a history, unless all is over sooner */
#define SIM_WORKERS_MAX 8
#define SIM_FRAGMENTS_MAX 10
#define SIM_FLOWS_MAX 40
#define SIM_PLANNED_MAX 4
#define SIM_APPS_MAX 48 /* runs */
#define SIM_HOSTS_MAX 256
#define SIM_CONNECTIONS_MAX 640
#define SIM_EVENTS_MAX 1000000

/* The driver's deadlines, short enough to be reached within a history. */
#define SIM_PREPARE_NS (6 * SIM_S)
#define SIM_WIRE_NS (5 * SIM_S)
#define SIM_START_NS (4 * SIM_S)
#define SIM_DRAIN_NS (5 * SIM_S)
#define SIM_CLOSE_NS (2 * SIM_S)
#define SIM_KILL_NS (1 * SIM_S)
/* A host's own, for its peers: before the driver's. */
#define SIM_HOST_WIRE_NS (SIM_WIRE_NS - SIM_S)

/* A peer that does not run. */
#define SIM_SILENT UINT64_MAX

struct sim;
struct sim_host;

/* event.c: what happens next. Events of one time happen in the order in which they were put. */
enum sim_event_kind {
	SIM_EV_CONNECTION,   /* connection, end: something arrives there */
	SIM_EV_SYN,          /* connection: the driver's machine sees it */
	SIM_EV_STRANGER,     /* connection: its time to say HELLO is over */
	SIM_EV_DRIVER_TIMER, /* incarnation */
	SIM_EV_SYNCED,       /* incarnation, 1: it failed, epoch */
	SIM_EV_WORKER_TIMER, /* worker, generation */
	SIM_EV_SOCKET,       /* host, 0: at the host, 1: at its workerd */
	SIM_EV_REAP,         /* host */
	SIM_EV_REPORTER,     /* connection: look whether the hosts have died */
	SIM_EV_HOST_TIMER,   /* host */
	SIM_EV_HOST_STOP,    /* host: SIGTERM */
	SIM_EV_HOST_END,     /* host, signal that it dies of */
	SIM_EV_RUN_BEAT,     /* host */
	SIM_EV_WORK_DONE,    /* host, kind of the action */
	SIM_EV_WIRED,        /* host: look whether all peers are there */
	SIM_EV_PEER_LOST,    /* host, peer's index, until when it is cut off or SIM_SILENT */
	SIM_EV_WATCHDOG,     /* host */
	SIM_EV_TICK,         /* app, operator */
	SIM_EV_DATA,         /* app, flow */
	SIM_EV_CREDIT,       /* app, flow, totals of messages and bytes */
	SIM_EV_WANT,         /* app, flow: its sender waits for bytes of credit */
	SIM_EV_CALM,         /* app, flow: its receiver has nothing else to do */
	SIM_EV_CLOSE,        /* app, flow */
	SIM_EV_DONE,         /* app, flow */
	SIM_EV_FAULT,        /* index in the plan */
	SIM_EV_NAP,          /* worker, for how long */
	SIM_EV_HEAL,         /* worker: links run again */
	SIM_EV_NETWORK,      /* worker, generation: its interface is there */
	SIM_EV_RESTART,      /* worker, or SIM_WORKERS_MAX: the driver */
	SIM_EV_LEASE,        /* host: its lease is over */
	SIM_EV_CLIENT,       /* a client has its turn */
	SIM_EV_LIBRARY,      /* host: its library goes wrong */
	SIM_EV_LOOKER,       /* its number: look.c */
	SIM_EV_LOOK,         /* at what only time shows */
	SIM_EV_CLOCK,        /* host, a pair of clocks, number: peer_clock.c */
	SIM_EVENTS
};
struct sim_event {
	int64_t at_ns;
	uint64_t order;
	enum sim_event_kind kind;
	uint32_t a, b;
	uint64_t c;
};
struct sim_events {
	struct sim_event *heap;
	size_t count, capacity;
	uint64_t last_order;
};
void sim_put(struct sim *sim, int64_t at_ns, enum sim_event_kind kind, uint32_t a, uint32_t b,
	     uint64_t c);
/* keeps its place among others */
void sim_put_back(struct sim *sim, struct sim_event event, int64_t at_ns);
bool sim_take(struct sim *sim, struct sim_event *out_event);

/* A process: may be stopped for a while, and its clock may jump ahead. */
struct sim_process {
	bool alive;
	int64_t stopped_until_ns;
	int64_t clock_ns;  /* its clock - the simulator's */
	int64_t jumped_ns; /* when its clock last jumped */
	int64_t slept_ns;  /* for how long it was stopped last */
};

/* Frames in order, each with the time at which it arrives. */
enum sim_frame_kind {
	SIM_FRAME_DATA,
	SIM_FRAME_END, /* end of the stream, or reset */
};
struct sim_frame {
	struct sim_frame *next;
	int64_t at_ns;
	enum sim_frame_kind kind;
	uint8_t *bytes;
	size_t size;
};
struct sim_pipe {
	struct sim_frame *first, *last;
	int64_t last_at_ns;
	uint32_t count;
	bool scheduled;
};
void sim_pipe_put(struct sim *sim, struct sim_pipe *pipe, int64_t at_ns, enum sim_frame_kind kind,
		  uint8_t *bytes, size_t size);
struct sim_frame *sim_pipe_take(struct sim_pipe *pipe);
void sim_pipe_clear(struct sim_pipe *pipe);

/* net.c: TCP between a worker (end 0) and the driver (end 1). */
struct sim_connection {
	uint32_t worker; /* SIM_WORKERS_MAX: a stranger */
	uint32_t generation;
	uint64_t incarnation; /* of the driver that accepted; 0: nobody has */
	uint64_t number;      /* as the worker's core counts it */
	bool open[2];         /* the process has it open */
	bool connected;       /* the worker was told */
	bool admitted;
	bool rogue;
	bool kept; /* its worker is dead, and the reporter has it until then */
	int64_t kept_until_ns;
	uint64_t session; /* of a worker's: what its reporter knows */
	uint8_t secret[FW_SECRET_BYTES];
	bool hosts_gone; /* of a worker's that is kept: the reporter has waited for them */
	uint32_t link;   /* of a worker's that is kept: the reporter's own; 0: none at the moment */
	uint32_t of;     /* of a reporter's own: 1 + that of its worker; 0: it is none */
	bool reported;   /* of a reporter's own: the counts are sent */
	struct sim_pipe to[2]; /* pieces of the streams to end 0 and 1 */
	struct fw_reader reader[2];
	int64_t heard_ns[2]; /* when a frame came to that end */
	uint64_t seq;        /* of what end 0 sent */
};

struct sim_driver {
	struct sim_process process;
	struct drv_core *core;
	struct drv_actions actions;
	uint64_t incarnation; /* counts starts */
	int64_t timer_at_ns;  /* the earliest timer event in the queue */
	uint32_t spins;
	int64_t started_ns;
};

struct sim_worker {
	struct sim_process process;
	struct wrk_core *core;
	struct wrk_actions actions;
	struct wrk_config config;
	const char *fragments[SIM_FRAGMENTS_MAX], *labels[1];
	uint32_t drained_apps; /* that had their places when its drain began, by bits */
	bool was_drained;      /* after the event before */
	char name[16], node[16];
	char memory[32]; /* as HELLO has it; empty: its hosts share with nobody */
	uint32_t generation;
	uint32_t connection; /* its present one; SIM_CONNECTIONS_MAX: none */
	int64_t timer_at_ns;
	uint32_t spins;
	int64_t latency_ns;          /* one way, to the driver and to other nodes */
	int64_t stalled_until_ns[2]; /* frames for the worker, for the driver; data too */
	bool reset_at_heal;
	bool same_name;                    /* it calls itself as another one does */
	bool hello_open, identity_unknown; /* whether the driver can know it again */
	struct wrk_event queue[64];        /* events that actions caused */
	uint32_t queue_first, queue_count;
	bool exited;
	int exit_code;
	struct sim_app *served;    /* of which it spawned a host last */
	struct sim_app *heard_end; /* of which the driver's KILL has reached it */
	bool has_network;
	bool end_requested, gone_silent; /* its node died without a word */
	uint32_t stops;                  /* how often it was told to end, while it ran */
	int64_t second_request_ns;       /* 0: not */
	bool was_attached;               /* when it lost its driver last */
	int64_t lost_ns;
};

/* data.c */
enum sim_source {
	SIM_SOURCE_FINITE,
	SIM_SOURCE_RESTING, /* after its messages it waits for what never comes */
	SIM_SOURCE_ENDLESS, /* until somebody stops it */
	SIM_SOURCE_STOPPER, /* after its messages it stops the application */
	SIM_SOURCE_NONE,    /* a relay: takes what comes */
};
struct sim_op {
	uint32_t app, fragment;
	bool second; /* a: source or inputs -> inner flow; b: inner flow -> outputs */
	enum sim_source source;
	uint32_t limit; /* messages; 0: none */
	uint32_t burst; /* emitted for each received one */
	int64_t period_ns, compute_ns;
	int64_t next_ns; /* a source's next tick */
	uint32_t ticks;
	uint64_t past_ticks; /* of hosts before the present one */
	uint32_t life;       /* counts its hosts */
	bool started, ticking, done, hung;
	uint64_t use_ns[FRAGI_USES]; /* of the present host, while somebody looked */
};
#define SIM_QUEUE_MAX 64 /* a power of 2, above any window */
struct sim_flow {
	uint32_t app;
	uint8_t from_fragment, from_op, from_port, to_fragment, to_op, to_port;
	bool inner; /* within a fragment: its first operator -> its second */
	uint32_t given_capacity, capacity;
	enum frag_policy given_policy, policy;
	const char *given_edge;     /* the transport that the graph asks for; NULL: none */
	struct sim_host *from, *to; /* NULL: not prepared */
	bool in_host;
	uint8_t token[FW_TOKEN_BYTES];
	const char *transport; /* as it was first made; NULL: not yet */
	bool token_known, dead;
	bool sender_knows, receiver_knows; /* that it is dead */
	uint32_t window;
	uint32_t largest;               /* credit of its messages, in bytes: drawn up to this */
	struct fragi_flow_stats tx, rx; /* within a host both halves are in tx */
	/* the sending end */
	struct fragi_window_tx tx_window;
	uint32_t pending;
	bool receiver_done, closing, close_sent, close_arrived;
	bool suspended; /* its receiver is to be replaced */
	/* the receiving end */
	struct fragi_window_rx rx_window;
	uint32_t queued;
	bool sender_closed, receiver_closed, calm_comes, done_flying;
	int64_t last_ns, last_back_ns;
	uint32_t flying; /* data and closes under way */
	uint32_t credits_flying;
	uint32_t sizes[SIM_QUEUE_MAX]; /* credit of what is queued */
	uint32_t size_first;
	/* the link between the present processes of both ends: link.c */
	uint32_t link;         /* counts them; what is under way on one before is lost */
	uint32_t counted_link; /* that both ends count for */
	bool ready[2];         /* the sender, the receiver: has been told of the other */
	/* what was counted before it */
	uint64_t left_before, arrived_before, received_before, sent_before, sent_bytes_before,
		dropped_before, confirmed_before, rx_before, rx_bytes_before;
	uint64_t true_lost; /* with processes that died, and on links that broke */
	uint64_t true_sent, true_received, true_left; /* true_left: for the other host */
	uint64_t true_arrived;                        /* there */
	uint64_t true_dropped[FRAGI_DROP_REASONS];    /* at both ends */
	uint64_t owed;                                /* credit of so many messages is waited for */
	int64_t owed_since_ns;
	int64_t stuck_since_ns; /* a message waits though nothing is under way ... */
	uint64_t stuck_at;      /* ... after so many have left */
	uint64_t short_bytes;   /* of a message that waits for bytes of credit; 0: none does */
	int64_t could_since_ns; /* since when all that it waits for is consumed; 0: it is not */
};

/* What a fragment says in on_failure. */
struct sim_on_failure {
	bool restarts;
	uint32_t intensity;
	int64_t period_ns, backoff_ns;
	int64_t lease_ns; /* lease.c; 0: it is not migrated */
};
#define SIM_RESTARTS_MAX 64
/* How often a host of an application was started again, as its driver came to know. */
struct sim_restarts {
	uint32_t spawned;
	uint32_t count;                    /* ends that it was started again after */
	int64_t gone_ns[SIM_RESTARTS_MAX]; /* when the driver heard of each */
	uint32_t moves;     /* of those that were spawned: to go on for one that ran */
	int64_t trouble_ns; /* the first word of the present one's failure; 0: none */
	int64_t since_ns;   /* since when it is not what it should be; 0: it is */
	bool refused;       /* its worker did not start another process: it ends, or has no room */
};

/* What a fragment requires. */
struct sim_required {
	int64_t cpu, gpu;
	int zone, near, apart; /* fragments; -1: none */
};

/* One run of an application by one driver, or those that adopt it. */
struct sim_app {
	uint32_t planned;  /* which one of the plan */
	uint64_t kept_run; /* adopt.c: its number in the state folder; 0: none yet */
	bool ran;          /* when its driver died last */
	struct sim_required required[SIM_FRAGMENTS_MAX];
	bool given, ended, stop_requested;
	bool refused; /* when its transports were chosen: no worker served it */
	uint64_t incarnation, run;
	uint8_t data_key[FW_DATA_KEY_BYTES]; /* of its hosts; run 0: not known yet */
	uint8_t variables_key[FW_VARIABLES_KEY_BYTES];
	char name[16];
	uint32_t fragment_count, flow_count, op_count;
	struct sim_op ops[2 * SIM_FRAGMENTS_MAX];
	struct sim_flow flows[SIM_FLOWS_MAX];
	uint8_t in_count[SIM_FRAGMENTS_MAX], out_count[SIM_FRAGMENTS_MAX];
	bool own_host[SIM_FRAGMENTS_MAX];
	char text[8192];
	int64_t start_timeout_ns;
	int64_t given_ns, ended_ns;
	/* what the plan does to it */
	uint32_t fate_fragment;
	int fate; /* enum sim_fate */
	uint32_t fate_tick;
	bool fate_late; /* it strikes while the application stops */
	bool fate_met;
	int fate_exit_code, fate_pid;
	int64_t fate_ns;
	int harms, harmed_pid; /* faults since it was given; the host that the first one crashed */
	bool early_excuse;     /* before it was given */
	bool excused;          /* something happened that may end it */
	bool kept;             /* ... and that was only the end of a workerd that has a reporter */
	bool disturbed;        /* ... or that may cost messages or reports though it goes well */
	bool stopped_by_op, dies_slowly;
	bool cut;     /* the user stopped it a second time, before it was being ended already */
	bool was_cut; /* ... and its driver ended before it did */
	/* restart.c */
	bool restarts; /* some of its hosts */
	struct sim_on_failure on_failure[SIM_FRAGMENTS_MAX];
	struct sim_restarts hosts[SIM_FRAGMENTS_MAX + 1]; /* by number */
	uint32_t fate_first, fate_count; /* which hosts of its fragment it strikes */
	int64_t blow_ns;                 /* the last one */
	uint32_t blows;                  /* failures after which a host is to be started again */
	bool failed_outside; /* one of them was heard of when the application did not run */
	/* as last seen */
	enum drv_app_state state, furthest; /* before it was killed */
	int64_t state_since_ns, ending_ns;  /* since when it fails or closes */
	int64_t rest_since_ns, dead_since_ns, move_since_ns;
	bool ends_active; /* it is not stopped or at rest: it has to have failed */
	int64_t busy_ns;  /* when it was last seen to have something to do, or to be ending */
	bool was_at_rest;
	int64_t looked_ns; /* when a host of it counted first: look.c; 0: none yet */
	/* client.c, by fragment: the last value that was answered as set, and that a host took */
	uint32_t set[SIM_FRAGMENTS_MAX], taken[SIM_FRAGMENTS_MAX];
	/* apply.c: the value of the last changed graph that was taken, and of the last one sent */
	uint32_t applied[SIM_FRAGMENTS_MAX], offered[SIM_FRAGMENTS_MAX];
	int64_t behind_since_ns[SIM_FRAGMENTS_MAX]; /* its host has an older one; 0: it has not */
	/* swap.c, by fragment: what a process begins with, and what it returns to */
	uint32_t library[SIM_FRAGMENTS_MAX], former[SIM_FRAGMENTS_MAX];
	int64_t probation_until_ns[SIM_FRAGMENTS_MAX + 1]; /* by host */
	bool has_result;
	enum fragi_summary_result result;
	int exit_code;
};

/* run.c */
enum sim_fate {
	SIM_FATE_NONE,
	SIM_FATE_SPAWN_FAILS,
	SIM_FATE_PREPARE_FAILS,
	SIM_FATE_PREPARE_CRASHES,
	SIM_FATE_PREPARE_HANGS,
	SIM_FATE_WIRE_FAILS,
	SIM_FATE_START_FAILS,
	SIM_FATE_OP_FAILS,
	SIM_FATE_OP_CRASHES,
	SIM_FATE_OP_EXITS,
	SIM_FATE_OP_HANGS,    /* for ever; it is seen when the application stops */
	SIM_FATE_OP_WATCHDOG, /* for ever, the watchdog sees */
	SIM_FATE_END_HANGS,   /* does not end when told */
	SIM_FATE_END_CRASHES, /* when told to end */
	SIM_FATE_END_FAILS,   /* it says so when told to end, and ends */
	SIM_FATE_START_HANGS,
	SIM_FATES
};
struct sim_edge {
	uint32_t flow; /* of the app */
	bool sends;
	uint32_t peer; /* number */
};
struct sim_host {
	struct sim_process process;
	uint32_t index, id; /* in the simulator; in the worker's core */
	int pid;
	uint32_t worker, generation, connection; /* over which it was asked for */
	uint32_t made_over;                      /* the same when it was made */
	struct sim_app *app;
	uint64_t incarnation, run, epoch;
	uint32_t number;
	struct host_core *core; /* NULL: it could not be spawned */
	int64_t timer_at_ns;
	uint8_t fragments[SIM_FRAGMENTS_MAX];
	uint32_t fragment_count;
	uint32_t
		opened; /* transports, by their place in base/transports.h: what it was asked for */
	struct sim_pipe to[2]; /* for the host, for workerd */
	struct sim_edge edges[SIM_FLOWS_MAX];
	uint32_t edge_count;
	uint32_t peers[SIM_FRAGMENTS_MAX]; /* pids */
	uint32_t peer_count;
	int64_t beat_ns, dead_ns;
	int64_t heard_ns;  /* when its workerd was last heard */
	int64_t wiring_ns; /* when it began to make its edges */
	/* of the run; works: prepare, wire, start or destroy is under way */
	bool works, has_page, answers, wired, done_reported, drained, run_failed, hangs;
	int64_t spawned_ns;
	uint32_t applied[SIM_FRAGMENTS_MAX]; /* by fragment: apply.c */
	uint32_t instance;                   /* how many of its number there were before */
	bool superseded;                     /* there is a newer one */
	/* move.c: another process goes on for it; it is to go on for another one, which runs yet */
	bool yields, incoming;
	bool was_beside; /* it was made for that */
	/* values of parameters, and those of an applied graph */
	uint32_t begins_with[SIM_FRAGMENTS_MAX], begins_applied[SIM_FRAGMENTS_MAX];
	uint32_t library;   /* swap.c */
	bool told_to_yield; /* as its worker knows */
	bool library_failed;
	int64_t library_failed_ns;
	bool struck;      /* by the fate of its application */
	int64_t limit_ns; /* of each callback, once it is to drain; 0: none */
	bool ends;        /* its core has ended it */
	bool orderly, dying;
	bool end_requested; /* its workerd has passed on that it shall end */
	bool started;
	bool died_early; /* not in order, before it was done or its application was told to end */
	/* its HOST_EXIT came before the driver killed what was left of its application */
	bool exit_heard;
	bool faulty; /* it came to grief by itself, or something did it to this process alone */
	bool term_by_stranger;
	bool ended_by_worker;
	bool kill_requested; /* the driver's KILL has reached its workerd */
	bool killed_to_restart;
	bool reaped; /* its workerd has seen that it ended */
	/* KILL came when it had ended and was not reaped: its workerd takes that for a kill */
	bool kill_crossed;
	int status, signal;
	int64_t lease_at_ns;        /* when the kernel ends it */
	int64_t dead_ns_at;         /* when it died; 0: lives */
	int64_t reported_ns;        /* when a driver that had come back heard of it */
	int64_t heard_by_worker_ns; /* when its workerd last heard it */
	/* look.c: hosts that are looked at; until then it was asked to count; counted last */
	uint32_t looks;
	int64_t look_until_ns, looked_ns;
	int64_t owed_ns; /* by when it must be gone; 0: nobody wants that yet */
};

enum sim_fault_kind {
	SIM_FAULT_STOP,
	SIM_FAULT_CTRL_C, /* the driver and all workers at once, as from a terminal */
	SIM_FAULT_STRANGER,
	SIM_FAULT_ROGUE,
	SIM_FAULT_STALE,
	SIM_FAULT_NAP,    /* a process is stopped for less than it may be */
	SIM_FAULT_SLOW,   /* a slow link for a while */
	SIM_FAULT_HICCUP, /* data links stall for less than they may */
	SIM_FAULT_FREEZE, /* all processes are stopped, and continued one after the other */
	SIM_FAULT_CLOCK,  /* a clock jumps ahead, or all do */
	SIM_FAULT_APP,    /* one more application */
	SIM_FAULT_HARMLESS_END = SIM_FAULT_APP,
	SIM_FAULT_HOST_CRASH,
	SIM_FAULT_HOST_STOPPED,
	SIM_FAULT_HOST_TERM, /* somebody sends a host SIGTERM, whatever it does */
	SIM_FAULT_WORKER_CRASH,
	SIM_FAULT_WORKER_STOPPED,
	SIM_FAULT_WORKER_TERM,
	SIM_FAULT_NODE_CRASH,
	SIM_FAULT_DRIVER_CRASH,
	SIM_FAULT_DRIVER_STOPPED,
	SIM_FAULT_PARTITION,
	SIM_FAULT_RESET,
	/* the worker gives up a connection of which the driver hears nothing */
	SIM_FAULT_DUPLICATE,
	SIM_FAULT_DATA_CUT,
	SIM_FAULTS,
	SIM_FAULT_BLOW = SIM_FAULTS, /* to a host that is to be started again */
	SIM_FAULT_DRAIN,             /* a client drains a worker, or ends that */
	SIM_FAULT_DRIVER_AWAY,       /* of hosts that outlive it */
	SIM_FAULT_DRIVER_PAUSES,     /* it runs for moments only */
};
struct sim_fault {
	enum sim_fault_kind kind;
	int64_t at_ns, for_ns;
	uint32_t worker, other;
};
#define SIM_PLAN_MAX 24

/* Of the driver's machine: a write that is not synced yet may be lost with the driver. */
struct sim_disk {
	bool is_used;             /* the driver has a state folder */
	uint64_t epoch;           /* what a driver that starts now reads */
	uint64_t wanted, writing; /* the newest change; the one being written, 0: none */
	uint64_t wanted_epoch, writing_epoch; /* reserved up to that */
	uint64_t written;                     /* the newest change that was written */
	bool was_lost;
	uint64_t lost_with;  /* the last driver whose state is lost: incarnation */
	uint64_t synced;     /* adopt.c: the newest change that is there */
	uint64_t heard;      /* the highest that a worker has heard */
	uint64_t heard_from; /* incarnation */
};

/* client.c: a change that is not answered yet; seq 0: none */
struct sim_asked {
	uint64_t seq;
	uint32_t app, fragment, value;
	int64_t at_ns;
};
#define SIM_ASKED_MAX 64
/* apply.c: a changed graph; seq 0: it is not under way */
struct sim_applying {
	uint64_t seq;
	uint32_t app, fragment, value;
	bool only_shows, is_impossible;
	bool is_next; /* it was shown, and is to be sent to be made */
	int64_t at_ns;
};
/* swap.c: a new library; seq 0: none is under way */
struct sim_swapping {
	uint64_t seq;
	uint32_t app, library;
	int pid; /* of the process that it is to replace */
	int64_t probation_ns, at_ns;
};
#define SIM_HELD_MAX 64
struct sim_client {
	bool is_there;
	uint64_t incarnation, greetings, seq;
	uint32_t value; /* the last one */
	struct sim_asked asked[SIM_ASKED_MAX];
	struct sim_applying applying;
	struct sim_swapping swapping;
	/* what it asked for before its connection ended may have been done */
	bool is_unsure;
	/* answers that the driver holds for the disk: learnt, not heard yet */
	uint64_t learnt, learnt_of, held[SIM_HELD_MAX];
	uint32_t held_count;
};

/* look.c */
#define SIM_LOOKERS 2
struct sim_looker {
	bool is_there, is_refused;
	uint64_t incarnation, number, seq;
	uint64_t asked; /* seq of its last LOOK */
	int64_t every_ns, heard_ns;
	int64_t silent_ns; /* since when it says nothing; 0: it does */
	uint64_t sums[SIM_APPS_MAX][2 * SIM_FRAGMENTS_MAX]; /* of operators, as heard last */
};

/* kind.c */
struct sim_kind {
	const char *name;
	uint32_t share;
	bool restarts; /* of hosts */
	bool leases;   /* of some of those */
	bool places;   /* fragments have requirements */
	bool adopts;   /* hosts outlive the driver */
	bool moves;    /* workers that run everything are drained often */
	bool swaps;    /* its client replaces libraries */
	bool pauses;   /* the driver stands still, time and again */
	bool has_client;
};

struct sim {
	uint64_t seed, random, hash;
	int64_t now_ns;
	FILE *out; /* NULL: no history is written */
	struct sim_events events;
	uint64_t event_count, step_count;
	int64_t beat_ns, dead_ns;
	bool once, same_names;
	struct sim_kind is; /* what this history is about */
	uint64_t variant;   /* of its kind */
	uint64_t place_random;
	uint32_t blow_fault; /* of the plan; 0: none */
	int32_t blows_left;  /* of those that follow a restart */
	struct sim_driver driver;
	struct sim_disk disk;
	struct sim_client client;
	struct sim_looker lookers[SIM_LOOKERS];
	uint64_t looker_count;
	struct sim_worker workers[SIM_WORKERS_MAX];
	uint32_t worker_count;
	struct sim_app apps[SIM_APPS_MAX];
	uint32_t app_count, apps_given;
	struct sim_app planned[SIM_PLANNED_MAX];
	struct sim_host hosts[SIM_HOSTS_MAX];
	uint32_t host_count;
	struct sim_connection connections[SIM_CONNECTIONS_MAX];
	uint32_t connection_count;
	/* data from the first to the second */
	int64_t cut_until_ns[SIM_WORKERS_MAX][SIM_WORKERS_MAX];
	struct sim_fault plan[SIM_PLAN_MAX];
	uint32_t plan_count;
	enum drv_app_state hasty_state; /* in which the user stops an application; NEW: does not */
	uint32_t hasty_fault;           /* of the plan: how */
	int64_t hiccup_until_ns, frozen_until_ns;
	int64_t stop_ns, end_ns; /* when the user stops what runs, when the history ends */
	int64_t excuse_until_ns; /* what begins before is excused */
	int64_t quiet_ns;        /* since when nothing is disturbed */
	bool driver_returns, driver_for_one;
	uint32_t stops;
	uint64_t stopped_in; /* incarnation of the driver that heard the last one */
	uint64_t same_time;
	uint64_t last_steps;
	bool failed;
	const char *invariant;
	char failure[1024];
	uint32_t outcomes[3], waiting;
	uint64_t compared; /* times of another node's clock */
};

/* world.c */
struct sim_result {
	bool failed;
	const char *invariant;
	char failure[1024];
	uint64_t hash, events, steps;
	uint32_t outcomes[3]; /* by enum fragi_summary_result */
	/* had no result when their driver died, or waited for workers to the end */
	uint32_t waiting;
	uint64_t compared;
};
/* Runs one history; out: where to write it, NULL: nowhere. */
void sim_run(uint64_t seed, FILE *out, struct sim_result *out_result);
void sim_fail(struct sim *sim, const char *invariant, const char *format, ...) FRAG_PRINTF(3, 4);
void sim_print(struct sim *sim, const char *who, const char *format, ...) FRAG_PRINTF(3, 4);
void sim_note(struct sim *sim, uint64_t a, uint64_t b); /* into the hash */
void sim_note_bytes(struct sim *sim, const void *bytes, size_t size);
uint64_t sim_random(struct sim *sim);
/* low .. high, both included */
int64_t sim_between(struct sim *sim, int64_t low, int64_t high);
bool sim_chance(struct sim *sim, uint32_t of); /* one of that many */
const char *sim_worker_name(struct sim *sim, uint32_t worker);
static inline int64_t sim_clock(const struct sim *sim, const struct sim_process *process)
{
	return sim->now_ns + process->clock_ns;
}
static inline bool sim_is_stopped(const struct sim *sim, const struct sim_process *process)
{
	return process->stopped_until_ns > sim->now_ns;
}

/* net.c */
void sim_connect(struct sim *sim, uint32_t worker, uint64_t number);
struct sim_connection *sim_connection_new(struct sim *sim, uint32_t worker);
void sim_connection_fini(struct sim_connection *connection);
void sim_send(struct sim *sim, uint32_t connection, uint32_t to, uint8_t *frame, size_t size);
/* A process closes its end; silent: nobody hears of it. */
/* That end sends no more, and reads on. */
void sim_half_close(struct sim *sim, uint32_t connection, uint32_t end);
void sim_close(struct sim *sim, uint32_t connection, uint32_t end, bool silent);
void sim_reset(struct sim *sim, uint32_t connection);
void sim_on_connection(struct sim *sim, const struct sim_event *event);
void sim_on_syn(struct sim *sim, const struct sim_event *event);
void sim_on_stranger(struct sim *sim, const struct sim_event *event);
void sim_heal(struct sim *sim, uint32_t worker);

/* driver.c */
void sim_driver_start(struct sim *sim);
void sim_driver_die(struct sim *sim, bool crashed);
void sim_driver_step(struct sim *sim, struct drv_event *event);
void sim_driver_app(struct sim *sim);
void sim_driver_stop(struct sim *sim);
void sim_on_driver_timer(struct sim *sim, const struct sim_event *event);
void sim_on_synced(struct sim *sim, const struct sim_event *event);
void sim_driver_fini(struct sim *sim);

/* apply.c */
/* The client has its turn, and nothing that it has set is unanswered. */
void sim_apply_turn(struct sim *sim);
bool sim_apply_is_under_way(const struct sim *sim);
/* Returns whether that is the answer. */
bool sim_apply_hear(struct sim *sim, const struct fw_message *message);
/* A host begins with a value of its fragment, or none (0). */
void sim_apply_begin(struct sim *sim, struct sim_host *host, uint8_t fragment, uint32_t value);
void sim_apply_look(struct sim *sim, struct sim_app *app, bool quiet);

/* swap.c */
void sim_swap_turn(struct sim *sim);
bool sim_swap_is_under_way(const struct sim *sim);
bool sim_swap_hear(struct sim *sim, const struct fw_message *message);
void sim_swap_look_for_late(struct sim *sim);
/* A process was made with host->library. */
void sim_swap_begin(struct sim *sim, struct sim_host *host);
/* Whether its library lets the run hang, prepare or start. */
bool sim_swap_hangs(struct sim_host *host, enum host_action_kind kind);
bool sim_swap_prepares(struct sim_host *host);
bool sim_swap_starts(struct sim *sim, struct sim_host *host);
void sim_swap_fails(struct sim_host *host);
/* The client has lost its connection. */
void sim_swap_forget(struct sim *sim);
/* Whether a process of it fails by its library, and is not replaced yet. */
bool sim_swap_is_failing(const struct sim *sim, const struct sim_app *app);
void sim_on_library(struct sim *sim, struct sim_host *host);

/* client.c */
void sim_client_say(struct sim *sim, struct fw_message *message);
#define SIM_DISK_NS (2 * SIM_S) /* a slow one, for each write */
/*
 * After the time of death an answer is late. A command may wait for what is being written, and for
 * one write more.
 */
#define SIM_CLIENT_LATE_NS (2 * SIM_S + 2 * SIM_DISK_NS)
void sim_client_start(struct sim *sim); /* of some histories */
void sim_on_client(struct sim *sim);
bool sim_client_is_there(const struct sim *sim);
bool sim_client_has(const struct sim *sim, uint64_t connection);
/* An action about its connection. */
void sim_client_hear(struct sim *sim, const struct drv_action *action);
/* What the driver has decided in this step, and answers later. */
void sim_client_learn(struct sim *sim);
void sim_client_ask_host(struct sim *sim, struct sim_host *host, const struct fw_host_set *request);
/* It is the host from now on. */
void sim_client_check_values(struct sim *sim, struct sim_host *host);
void sim_client_check_source(struct sim *sim, struct sim_host *host,
			     const struct fw_host_create *create);

/* look.c */
void sim_look_start(struct sim *sim); /* of some histories */
void sim_on_looker(struct sim *sim, const struct sim_event *event);
bool sim_look_has(uint64_t connection);
size_t sim_look_sessions(const struct sim *sim); /* that the driver has */
/* An action about such a connection. */
void sim_look_hear(struct sim *sim, const struct drv_action *action);
void sim_look_sent(struct sim *sim, const uint8_t *frame, size_t size);
void sim_look_heard(struct sim *sim, uint32_t worker, const struct fw_message *message);
void sim_look_host(struct sim *sim, struct sim_host *host, uint32_t looks);
void sim_look_count(struct sim *sim, struct sim_host *host);
void sim_look_look(struct sim *sim);

/* peer_clock.c */
void sim_clocks_start(struct sim *sim); /* of some histories */
void sim_clocks_begin(struct sim *sim, const struct sim_host *host);
void sim_on_clock(struct sim *sim, const struct sim_event *event);

/* worker.c */
void sim_worker_start(struct sim *sim, uint32_t worker);
void sim_on_network(struct sim *sim, const struct sim_event *event);
/* How a worker ends; with what it has had. */
enum sim_death {
	SIM_DEATH_EXIT,
	SIM_DEATH_KILLED, /* workerd alone: its reporter lives */
	SIM_DEATH_ALL_KILLED,
	SIM_DEATH_NODE, /* nobody is told */
};
void sim_worker_die(struct sim *sim, uint32_t worker, enum sim_death death);
void sim_worker_raise(struct sim *sim, uint32_t worker, const struct wrk_event *event);
void sim_on_worker_timer(struct sim *sim, const struct sim_event *event);
void sim_worker_fini(struct sim *sim, uint32_t worker);

/* reporter.c */
/* Its worker has been killed. */
void sim_reporter_begin(struct sim *sim, uint32_t connection);
void sim_on_reporter(struct sim *sim, const struct sim_event *event);
/* Of the reporter's own connection: it is there, something came, it has ended. */
void sim_reporter_connected(struct sim *sim, uint32_t link);
void sim_reporter_message(struct sim *sim, uint32_t link, const struct fw_message *message);
void sim_reporter_ended(struct sim *sim, uint32_t link);

/* process.c */
struct sim_host *sim_host_spawn(struct sim *sim, uint32_t worker, uint32_t id,
				const struct fw_message *create);
void sim_host_die(struct sim *sim, struct sim_host *host, int status, int signal, bool silent);
void sim_host_signal(struct sim *sim, struct sim_host *host, int signal);
void sim_host_reap(struct sim *sim, const struct sim_event *event);
struct sim_host *sim_host_by_pid(struct sim *sim, uint32_t pid);
struct sim_host *sim_host_of(struct sim *sim, uint32_t worker, uint32_t id);

/* host.c */
void sim_host_begin(struct sim *sim, struct sim_host *host);
void sim_host_fini(struct sim_host *host);
void sim_host_raise(struct sim *sim, struct sim_host *host, const struct host_event *event);
/* A frame into the socket between it and its workerd; end 0: for the host. */
void sim_host_put(struct sim *sim, struct sim_host *host, uint32_t end, enum sim_frame_kind kind,
		  uint8_t *frame, size_t size);
bool sim_host_runs(const struct sim_host *host); /* so that its operators do */
const char *sim_host_name(const struct sim_host *host);
void sim_on_host(struct sim *sim, const struct sim_event *event);

/* run.c */
void sim_run_perform(struct sim *sim, struct sim_host *host, const struct host_action *action);
void sim_run_report(struct sim *sim, struct sim_host *host, enum fw_host_state state, int exit_code,
		    const struct sim_host *peer, const char *sentence);
void sim_run_fail(struct sim *sim, struct sim_host *host, int exit_code, const char *sentence);
void sim_run_look(struct sim *sim, struct sim_host *host); /* whether it is done */
/* An operator hangs, and the run is to end: it will be seen. */
void sim_run_limit(struct sim *sim, const struct sim_host *host);
void sim_run_before_end(struct sim *sim, struct sim_host *host); /* HOST_STOP without a time came */
void sim_on_run(struct sim *sim, const struct sim_event *event);
bool sim_fate_is(const struct sim_host *host, enum sim_fate fate);
void sim_fate_meet(struct sim_host *host, int exit_code); /* once */

/* tables.c */
/* The place of a transport in base/transports.h. */
uint32_t sim_transport(const char *name);
/* Over which one a flow between two hosts is to go. */
const char *sim_transport_of(const struct sim *sim, const struct sim_flow *flow);
void sim_tables_fill(struct sim_host *host, struct fw_host_prepared *out); /* until the next call */
void sim_tables_take(struct sim *sim, struct sim_host *host, const struct fw_host_wire *wire);
/* Of peers that were started again. */
void sim_tables_retake(struct sim *sim, struct sim_host *host, const struct fw_host_wire *wire);

/* data.c */
void sim_data_start(struct sim *sim, struct sim_host *host);
void sim_data_stop_sources(struct sim *sim, struct sim_host *host);
void sim_data_end(struct sim *sim, struct sim_host *host); /* queues are dropped, stopped */
void sim_data_cut(struct sim_host *host, const struct sim_host *peer);
void sim_data_end_dead(struct sim *sim, struct sim_host *host);
void sim_data_beat(struct sim *sim, struct sim_host *host); /* of the data plane */
uint64_t sim_flow_consumed(
	const struct sim_flow *flow); /* messages that the sender is owed credit for, in truth */
bool sim_op_can_run(const struct sim *sim, const struct sim_op *op);
void sim_on_data(struct sim *sim, const struct sim_event *event);
struct sim_host *sim_op_host(const struct sim_app *app, const struct sim_op *op);

/* Of a flow between hosts, on its present link. */
static inline uint64_t sim_flow_left(const struct sim_flow *flow)
{
	return flow->true_left - flow->left_before;
}
static inline uint64_t sim_flow_credited(const struct sim_flow *flow)
{
	return flow->tx_window.credited - flow->sent_before;
}
/* Its link runs: what had waited leaves, and what had ended says so again. */
void sim_data_resume(struct sim *sim, struct sim_flow *flow);

/* Nothing more is sent to the receiver, and it is told so. */
void sim_data_suspend(struct sim *sim, struct sim_flow *flow);

/* move.c */
/* Whether a host that is spawned is to go on for another one, on another worker. */
bool sim_move_spawned(struct sim *sim, struct sim_host *host);
/* It is the host from now on. */
void sim_move_takes_over(struct sim *sim, struct sim_host *host);
/* A frame of the driver to a worker, which may make a process the host. */
void sim_move_sent(struct sim *sim, const struct sim_connection *connection, const uint8_t *frame,
		   size_t size);
void sim_move_suspend(struct sim *sim, struct sim_host *host,
		      const struct fw_host_suspend *request);
/* Some host is between two processes, and a stop waits for it. */
/* Drains, and a driver that dies soon after some of them. */
void sim_move_plan(struct sim *sim,
		   void (*add)(struct sim *sim, enum sim_fault_kind kind, int64_t at_ns));
/*
 * A host has made way for a process that ended beside it, while its driver was away: the next one
 * cannot know whether that process was the host for a while, of which nobody has the counts.
 */
/* It is told to drain, which closes its edges: nobody is to go on for it. */
void sim_move_check_drain(struct sim *sim, const struct sim_host *host);
bool sim_move_is_unknown(const struct sim *sim, const struct sim_app *app, uint32_t number);
bool sim_move_was_made(const struct sim_app *app); /* or begun */
bool sim_move_is_under_way(const struct sim *sim, const struct sim_app *app);
void sim_move_yield(struct sim *sim, struct sim_host *host, int64_t drain_ns);

/* ledger.c */
bool sim_data_is_done(const struct sim_host *host);
/* nothing is on the way and no operator can run */
bool sim_data_is_settled(const struct sim_app *app);
bool sim_host_is_idle(const struct sim_host *host);
void sim_host_sums(const struct sim_host *host, uint64_t *out_sent, uint64_t *out_delivered);
uint32_t sim_host_rows(const struct sim_host *host, struct fragi_flow_stats *rows);
uint32_t sim_host_ops(const struct sim_host *host, struct fw_op_stats *rows);

/* kind.c */
/* *out_variant: counts the histories of that kind, roughly. */
const struct sim_kind *sim_kind_of(uint64_t seed, uint64_t *out_variant);
const struct sim_kind *sim_kind_named(const char *name); /* NULL: there is none */

/* plan.c */
void sim_plan(struct sim *sim);
int sim_app_source(const struct sim_app *app, void **out_bytes, size_t *out_size);

/* fault.c */
/* Until then, and nobody is excused. */
void sim_disturb(struct sim *sim, int64_t until_ns);
void sim_haste(struct sim *sim); /* the user stops what has just come into this state */
void sim_on_nap(struct sim *sim, const struct sim_event *event);
void sim_on_fault(struct sim *sim, const struct sim_event *event);
void sim_on_restart(struct sim *sim, const struct sim_event *event);

/* check.c */
void sim_check(struct sim *sim);
void sim_check_look(struct sim *sim);
void sim_check_end(struct sim *sim);
void sim_check_summary(struct sim *sim, struct sim_app *app, const struct fragi_summary *summary);
bool sim_app_has_living_host(const struct sim *sim, const struct sim_app *app);

/* account.c: what a summary counts, against what became of every message and tick */
void sim_account_check(struct sim *sim, const struct sim_app *app,
		       const struct fragi_summary *summary);

/* limit.c */
/* Since when a process could have acted on what happened at that time. */
int64_t sim_able_since(const struct sim_process *process, int64_t happened_ns);
void sim_limit_app(struct sim *sim, const struct sim_app *app);
void sim_limit_session(struct sim *sim, struct sim_worker *worker, enum wrk_session before);
void sim_limit_consumed(struct sim *sim,
			struct sim_flow *flow); /* something of it, or something waits for that */
void sim_limit_left(struct sim *sim, struct sim_flow *flow); /* a message */
void sim_limit_look(struct sim *sim, bool quiet);

/* verdict.c: the states of fragments in a summary; a worker's exit code */
void sim_verdict_fragments(struct sim *sim, const struct sim_app *app,
			   const struct fragi_summary *summary);
void sim_verdict_worker(struct sim *sim, const struct sim_worker *worker);
/* A HOST_EXIT comes to the driver. */
void sim_verdict_exit(struct sim *sim, const struct sim_connection *connection,
		      const struct fw_message *message);
/* its fate was heard, to count */
bool sim_verdict_too_late(struct sim *sim, const struct sim_app *app);

#include "adopt.h"
#include "lease.h"
#include "place.h"
#include "restart.h"

#endif
