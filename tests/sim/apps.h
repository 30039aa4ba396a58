/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_APPS_H
#define SIM_APPS_H

/* Applications: their operators, flows and hosts. */
#include <base/transports.h>
#include <driverd/core/core.h>
#include <edge/window.h>
#include <frag/operator.h>
#include <workerd/host/core/core.h>

#include "nodes.h"

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
	int64_t came_ns; /* when the driver heard last that a host is wired, or has ended */
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
	int64_t lease_at_ns;                   /* when the kernel ends it */
	struct {                               /* promise.c: its lease, as it truly is */
		int64_t until_ns, span_ns;     /* when it is over, how long it was then */
		bool is_renewed;               /* by what its worker hears at present */
		int64_t told_ns, told_at_ns;   /* until when, as the host was told last */
		int64_t killed_ns, at_kill_ns; /* by its worker; until_ns then */
		bool end_is_known;             /* to a driver */
		int64_t late_ns;               /* when it was renewed last at its very end */
		int64_t known_ns; /* when it was last seen to be renewed, or need not be */
		uint64_t made_by; /* which one: incarnation */
	} promise;
	int64_t dead_ns_at;         /* when it died; 0: lives */
	int64_t reported_ns;        /* when a driver that had come back heard of it */
	int64_t heard_by_worker_ns; /* when its workerd last heard it */
	/* look.c: hosts that are looked at; until then it was asked to count; counted last */
	uint32_t looks;
	int64_t look_until_ns, looked_ns;
	int64_t owed_ns; /* by when it must be gone; 0: nobody wants that yet */
};

#endif
