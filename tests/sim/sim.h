/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_H
#define SIM_H

#include <stdio.h>

#include "apps.h"
#include "nodes.h"

/*
 * The simulator: the cores of driverd, workerd and fraghost, as they are, in one process on a
 * virtual clock and network, with runs that do as user code might and move messages over a small
 * model of the data plane. One seed is one history; everything random is drawn from it. Frames go
 * through the codec. After every event the invariants of check.c hold, or the history fails with
 * the name of the one that does not.
 */

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
	SIM_FAULT_RESTART_APP,       /* a user has it start anew */
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
	uint32_t blow_fault;  /* of the plan; 0: none */
	uint32_t lease_fault; /* the last one of those that last about as long as leases */
	int32_t blows_left;   /* of those that follow a restart */
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

/* stranger.c; bits: what the fault has drawn */
/* Somebody who is not one of the daemons connects to the driver; rogue: says it is a worker. */
void sim_stranger(struct sim *sim, uint32_t bits, bool rogue);
/* Frames of other epochs about the host (NULL: none), and a second HOST_CREATE of the same one. */
void sim_stale(struct sim *sim, const struct sim_host *host, uint32_t bits);

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
/* Message came to the driver, or NULL: it has lost a worker. A host may have come further. */
void sim_limit_came(struct sim *sim, const struct fw_message *message);
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
