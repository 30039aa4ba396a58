/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_NODES_H
#define SIM_NODES_H

/* Events, processes and what connects them: the driver, and a worker on each node. */
#include <driverd/core/core.h>
#include <wire/frame.h>
#include <workerd/core/core.h>

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
	/* when it was sent; of the newest BEAT or HELLO that the driver had read then: the same */
	int64_t sent_ns, answers_ns;
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
	int64_t heard_ns[2];          /* when a frame came to that end */
	int64_t sent_ns, answered_ns; /* of the frame that is being read: as in it */
	bool owes_leave;              /* the driver leaves, and its worker does not know yet */
	int64_t beat_ns; /* when the newest BEAT or HELLO that the driver has read was sent */
	uint64_t seq;    /* of what end 0 sent */
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
	/* promise.c: when its newest BEAT or HELLO was sent that is answered */
	int64_t renewed_ns;
	bool driver_leaves; /* as the driver has said */
	bool was_attached;  /* when it lost its driver last */
	int64_t lost_ns;
};

#endif
