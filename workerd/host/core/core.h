/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HOST_CORE_H
#define HOST_CORE_H

#include <base/log.h>
#include <wire/message.h>

/*
 * The decisions of fraghost, without I/O: the phases of its run, its beats, and whether its workerd
 * still lives. host_core_step takes one event and the time, and returns actions; the shell turns
 * frames, signals, finished work and reports of the run into events and performs the actions in
 * order. The core makes no system call, and has neither clock nor thread: the simulator is another
 * shell.
 *
 * The happy path: HOST_CREATE (PREPARE), PREPARE_DONE (HOST_PREPARED is sent), HOST_WIRE (WIRE),
 * WIRE_DONE, PEERS_READY (HOST_WIRED), HOST_START (START), START_DONE (HOST_STARTED), reports of
 * the run (HOST_EVENT), HOST_STOP with a time (DRAIN), HOST_STOP without (HALT, DESTROY),
 * DESTROY_DONE (EXIT).
 *
 * Work that may take long is an action, and its completion is an event; there is at most one at a
 * time. A failure is reported, and the host then waits to be ended; only the loss of its workerd
 * ends it by itself.
 */
enum host_state {
	HOST_STATE_NEW,       /* waits for HOST_CREATE */
	HOST_STATE_PREPARING, /* PREPARE is under way */
	HOST_STATE_PREPARED,
	HOST_STATE_WIRING, /* WIRE is under way, then the peers' answers are awaited */
	HOST_STATE_WIRED,
	HOST_STATE_STARTING, /* START is under way */
	HOST_STATE_STARTED,
	HOST_STATE_FAILED, /* a phase failed: waits to be ended */
	HOST_STATE_ENDING, /* DESTROY is under way */
	HOST_STATE_ENDED,
	HOST_STATES
};

/* 0: the defaults of base/beat.h. HOST_CREATE may set beat_ns and dead_ns. */
struct host_config {
	int64_t beat_ns, dead_ns, wire_ns;
};

enum host_event_kind {
	HOST_EV_MESSAGE,         /* message: a frame of workerd */
	HOST_EV_CONNECTION_LOST, /* text: what broke; empty: workerd closed its end */
	HOST_EV_STOP,            /* SIGTERM: ends as after HOST_STOP without a time */
	HOST_EV_PREPARE_DONE, /* prepared; NULL: what was prepared cannot be reported, text: why */
	HOST_EV_WIRE_DONE,    /* result: the edges are made */
	HOST_EV_START_DONE,   /* result */
	HOST_EV_DESTROY_DONE,
	HOST_EV_PEERS_READY, /* every peer has answered, at once when there are none */
	HOST_EV_SET_DONE,    /* set_done: of HOST_DO_SET */
	HOST_EV_TAPPED,      /* tapped: a message that has passed a tap */
	HOST_EV_RUN,         /* report: what the run reports, as HOST_EVENT will carry it */
	HOST_EV_TIMER,       /* the deadline has come */
};
struct host_event {
	enum host_event_kind kind;
	/* All borrowed until the actions of the step have been performed. */
	const struct fw_message *message;
	const struct fw_host_prepared *prepared;
	const struct fw_host_result *result;
	const struct fw_host_event *report;
	const struct fw_host_set_done *set_done;
	const struct fw_tapped *tapped;
	const char *text;
	/* of PREPARE_DONE and DESTROY_DONE: a thread does not come back from an operator */
	bool operators_may_hang;
};

enum host_action_kind {
	/*
	 * message; when it cannot be sent: CONNECTION_LOST, but for a BEAT, which workerd misses,
	 * and HOST_TAPPED, which nobody misses
	 */
	HOST_DO_SEND,
	HOST_DO_PREPARE, /* request (HOST_CREATE), beat_ns, dead_ns: answers PREPARE_DONE */
	/* request (HOST_WIRE): answers WIRE_DONE, then PEERS_READY or a report of a failure */
	HOST_DO_WIRE,
	/* request (HOST_WIRE of peers that were started again): a report follows if it fails */
	HOST_DO_REWIRE,
	HOST_DO_SUSPEND, /* request (HOST_SUSPEND): nothing more is sent to that peer */
	HOST_DO_START,   /* answers START_DONE; the run may report before */
	HOST_DO_SET,     /* request (HOST_SET): answers SET_DONE, at once */
	/* drain_ns: no callback may run longer; a report DONE, or of a failure, follows */
	HOST_DO_DRAIN,
	HOST_DO_YIELD,   /* drain_ns: the same, as another process goes on for this host */
	HOST_DO_LOOK,    /* looks: what the operators wait for is counted from now on, or no more */
	HOST_DO_TAP,     /* request (HOST_TAP) */
	HOST_DO_LEASE,   /* lease_until_ns: the kernel ends this process then */
	HOST_DO_HALT,    /* whatever runs stops without draining */
	HOST_DO_DESTROY, /* answers DESTROY_DONE */
	HOST_DO_LOG,     /* level, text */
	HOST_DO_EXIT,    /* exit_code, operators_may_hang; the last action ever */
};
struct host_action {
	enum host_action_kind kind;
	struct fw_message message;        /* seq is 0: the connection counts */
	const struct fw_message *request; /* the event's */
	int64_t beat_ns, dead_ns, drain_ns, lease_until_ns;
	int exit_code;
	uint32_t looks;
	/* Nothing may be taken away from under them: the process ends without freeing. */
	bool operators_may_hang;
	enum fragi_log_level level;
	char text[256];
};
/* No step has more. */
#define HOST_ACTIONS_MAX 8
struct host_actions {
	struct host_action items[HOST_ACTIONS_MAX];
	uint32_t count;
};

struct host_core;
/* Returns 0 or -ENOMEM. */
int host_core_create(const struct host_config *config, int64_t now_ns, struct host_core **out_core);
void host_core_destroy(struct host_core *core); /* NULL is accepted */
/*
 * Fills actions, which are valid until the event is given up or the next step. Never after
 * HOST_DO_EXIT. A completion comes only for work that is under way, and a report of the run only
 * while none is, or START.
 */
void host_core_step(struct host_core *core, const struct host_event *event, int64_t now_ns,
		    struct host_actions *actions);
/* Returns when HOST_EV_TIMER is due; INT64_MAX: never. */
int64_t host_core_deadline_ns(const struct host_core *core);

/* State for shells and tests. */
enum host_state host_core_state(const struct host_core *core);
uint32_t host_core_illegal_transitions(const struct host_core *core); /* 0 unless there is a bug */

#endif
