/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_RUN_STATE_H
#define FRAGI_RUN_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include <edge/edge.h>
#include <edge/pump.h>
#include <edge/remote/remote.h>
#include <run/run.h>
#include <sched/saved.h>
#include <var/variable.h>

/* What the files of run/ share. */

#define FRAGI_RUN_FLUSH_NS 2000000000 /* for what was sent to leave, once all operators are done */

struct fragi_run_fragment {
	struct frag_fragment *fragment;
	struct fragi_sched *sched;
	struct fragi_run *run;
	const struct fragi_spec_scheduler *spec;
	uint32_t first_op;             /* row of its first operator */
	struct frag_clock *clock;      /* its own; NULL: the run's */
	struct fragi_clock_user limit; /* max_duration_ms; arg NULL: none */
	int64_t end_ns;                /* on the fragment's clock */
	_Atomic int64_t moved_ns;      /* of the machine: when a synthetic clock was moved last */
	_Atomic bool limit_is_due, timed_out;
	bool reported_hung;
	uint32_t slow_starts; /* warnings about the present start */
	const struct frag_op *slow_op;
	_Atomic bool finished;
};

#define FRAGI_RUN_BETWEEN ((uint64_t)1 << 40) /* the order of the first flow between fragments */

/* One end of a flow, as an operator's port sees it. */
struct fragi_run_end {
	uint32_t fragment, op, port;
	uint64_t
		order; /* of the flows of one port: inner ones first, then as in the graph's text */
	struct fragi_rx *rx;
	struct fragi_tx *tx;
	bool between_hosts;
	uint32_t flow;   /* between hosts: its number; else of a tx: its index in the run's flows */
	char *other_end; /* of a tx between hosts: "fragment2.rx.in"; owned */
	char *names;     /* the same in parts, for frag_flow_info; owned; NULL: nobody asked */
};

struct fragi_run_bindings {
	struct fragi_binding ***fragments;  /* [fragment][op] -> [port] */
	struct fragi_binding **ops, *ports; /* of all fragments */
	size_t port_count;
	struct fragi_rx **rx; /* parallel to the ends of the run */
	struct fragi_tx **tx;
};

struct fragi_run_queued {
	struct fragi_run_queued *next;
	bool reserved; /* not from the heap */
	bool used;
	struct fragi_run_event event;
};
#define FRAGI_RUN_RESERVE 8

struct fragi_run {
	/* constant after wire */
	struct fragi_run_config config;
	struct fragi_run_fragment *fragments;
	size_t fragment_count;
	struct frag_fragment *shared; /* services of the application; NULL: none */
	struct fragi_fragment_info *infos;
	/* inner ones, fragment by fragment, then those between fragments */
	struct fragi_flow_info *flows;
	size_t flow_count, inner_flow_count;
	/* of paths, by number; a NULL one has no operator here */
	struct fragi_path_deadline **deadlines;
	uint32_t deadline_count;
	struct fragi_run_late_at {
		const struct frag_op *end; /* of the paths */
		const char *from, *at;     /* as in struct fragi_late_place */
	} * late_places;                   /* by row of the ledger */
	uint32_t late_place_count;
	struct fragi_tx **inproc; /* of flows */
	struct fragi_run_end *ends;
	size_t end_count, end_capacity;
	struct fragi_run_bindings bindings; /* while schedulers are made; else empty */
	uint32_t edge_rows;                 /* flows between hosts that there may be */
	struct fragi_variables *variables;
	struct fragi_ledger ledger;
	struct fragi_saved_memory saved;
	struct fragi_pump *pump;
	struct fragi_remote *remote; /* NULL: no flow leaves this process */
	bool attached;
	bool restarts;                /* it is started again when it fails */
	struct frag_clock *clock;     /* of the fragments that have none of their own */
	bool has_own_stamps;          /* stamps are taken of it */
	struct fragi_run_peer *peers; /* host numbers only */
	size_t peer_count;
	/* run time */
	int stop_fd, event_fd, timer_fd, fd; /* fd: epoll of event_fd and timer_fd */
	_Atomic bool started, draining, halting, hung, done;
	_Atomic uint32_t starting; /* schedulers whose operators have not all been started */
	_Atomic uint32_t running;  /* schedulers not finished */
	_Atomic uint32_t peers_ready;
	_Atomic uint32_t peers_lost;
	pthread_mutex_t lock; /* of the queue */
	struct fragi_run_queued *first, **last;
	/* for when memory is short: an end must be reported */
	struct fragi_run_queued reserve[FRAGI_RUN_RESERVE];
	struct fragi_run_look *look; /* look.c; NULL: nobody looks */
	/* control thread */
	struct fragi_run_tap {
		uint32_t id; /* 0: nobody wants it */
		int64_t until_ns;
		struct fragi_tap *tap;         /* owned; NULL: none was made yet */
		struct fragi_run_trace *trace; /* owned; NULL: it is none */
	} taps[FRAGI_RUN_TAPS_MAX];
	uint32_t traces, looks; /* looks: of fragi_run_look */
	struct {
		uint64_t pools[FRAGI_POOLS_MAX]; /* blocks in use; UINT64_MAX: nobody knows it */
		uint64_t *lost;                  /* by flow; NULL: nobody has traced */
		bool is_probed;                  /* they take part for probes (sched/probes.h) */
	} traced;                                /* what traces have of them */
	int64_t rest_since_ns;                   /* 0: not at rest */
	uint64_t rest_rounds;
	int64_t idle_reported_ns;
	int64_t watched_ns;       /* when the watchdog looked last */
	struct fragi_pause pause; /* when it could not */
};

/*
 * events.c. Thread: any. When memory is short and FRAGI_RUN_RESERVE events wait to be taken, this
 * one is lost.
 */
void fragi_run_report(struct fragi_run *run, enum fragi_run_event_kind kind);
/* FAILED; op: NULL: none */
void fragi_run_report_failure(struct fragi_run *run, enum fragi_failure failure, const char *op,
			      const char *sentence);
void fragi_run_report_event(struct fragi_run *run, const struct fragi_run_event *event);
/* Makes the descriptor readable, so that the control thread looks. */
void fragi_run_nudge(struct fragi_run *run);

/* run.c: whether it is to run here */
bool fragi_run_has_fragment(const struct fragi_run *run, const char *name);

/* transports.c */
/*
 * If shared memory is among the transports: opens that one before anything is composed, so that
 * pools and tensors lie in its memory.
 */
int fragi_run_share_memory(struct fragi_run *run, struct fragi_diag *diag);
/* Opens the others. */
int fragi_run_open_transports(struct fragi_run *run, struct fragi_diag *diag);

/* variables.c: in prepare, once the operators are known; in wire */
int fragi_run_declare_variables(struct fragi_run *run, struct fragi_diag *diag);
int fragi_run_fetch_variables(struct fragi_run *run, struct frag_err *err);

/* clocks.c: in prepare, once the fragments are known; before they start; at the end */
int fragi_run_make_clocks(struct fragi_run *run, struct fragi_diag *diag);
void fragi_run_join_clocks(struct fragi_run *run);
/*
 * Whether max_duration_ms is over. A synthetic clock need not be moved by anybody, so it is also
 * over when that clock has stood still for so long.
 */
bool fragi_run_limit_is_over(const struct fragi_run_fragment *fragment);
/* When it will be, by the machine's clock; INT64_MAX: not known. */
int64_t fragi_run_limit_ns(const struct fragi_run_fragment *fragment);
void fragi_run_wake_sleepers(struct fragi_run *run);
/* After the schedulers, before the fragments. */
void fragi_run_destroy_clocks(struct fragi_run *run);

/* tracking.c: in prepare, once the flows are known; when the schedulers have ended */
int fragi_run_track(struct fragi_run *run, struct fragi_diag *diag);
void fragi_run_end_tracking(struct fragi_run *run);
/*
 * deadlines.c: those of paths, behind the tracker; then, with the ledger, the places at which what
 * is late is counted (0 or -ENOMEM); and what became of them, logged
 */
int fragi_run_add_deadlines(struct fragi_run *run, struct fragi_diag *diag);
int fragi_run_place_late(struct fragi_run *run, struct fragi_diag *diag);
void fragi_run_report_deadlines(const struct fragi_run *run);
/* look.c: nothing is counted any more. */
void fragi_run_look_end(struct fragi_run *run);

/* logging.c: in prepare, behind the tracker; before the schedulers; when they have ended */
int fragi_run_install_loggers(struct fragi_run *run, struct fragi_diag *diag);
int fragi_run_start_loggers(struct fragi_run *run, struct frag_err *err);
/* operator_hangs: as for fragi_data_logger_stop */
void fragi_run_stop_loggers(struct fragi_run *run, bool operator_hangs);

/* wire.c */
int fragi_run_resolve(struct fragi_run *run, struct fragi_diag *diag);
int fragi_run_connect(struct fragi_run *run);

/* tap.c: when no operator runs any more */
void fragi_run_destroy_taps(struct fragi_run *run);

/* trace.c: one that begins, and ends; NULL is accepted. Returns NULL: there is no memory. */
struct fragi_run_trace *fragi_run_trace_begin(struct fragi_run *run, uint32_t id);
void fragi_run_trace_end(struct fragi_run *run, struct fragi_run_trace *trace);
/* The run ends first: what the ring holds of the trace is for who has it then. */
void fragi_run_trace_destroy(struct fragi_run *run, struct fragi_run_trace *trace);
/* They take part while a probe is attached, too. From time to time. */
void fragi_run_probe(struct fragi_run *run);
/* Makes all operators take part while there are traces, or no longer. */
void fragi_run_trace_attach(struct fragi_run *run);
/* The next chunk; it is trace's. has_more: another one may have more. */
const struct fragi_trace_chunk *fragi_run_trace_chunk(struct fragi_run *run,
						      struct fragi_run_trace *trace, bool is_end);
bool fragi_run_trace_has_more(const struct fragi_run_trace *trace);

/* cycles.c: before the flows are bound. Returns 0 or -ENOMEM. */
int fragi_run_mark_cycles(struct fragi_run *run);

/* bind.c */
/* What the schedulers are made of. Returns 0 or -ENOMEM. */
int fragi_run_bind(struct fragi_run *run);
/* They have been made, or could not be. */
void fragi_run_unbind(struct fragi_run *run);
void fragi_run_unwire(struct fragi_run *run);

/* pools.c */
/*
 * Warns of pools with fewer blocks than their flows can hold. edges: those to other hosts. Returns
 * 0 or -ENOMEM.
 */
int fragi_run_check_pools(struct fragi_run *run, const struct fragi_run_edge *edges,
			  size_t edge_count);
/* Counts for each pool of blocks what it is like now, for the last `ns`. */
void fragi_run_look_at_pools(struct fragi_run *run, uint64_t ns);
/*
 * Writes instead of the sentence, which has room for `size` bytes, which flows hold the blocks of
 * the pool that op found empty. Thread: a scheduler's.
 */
void fragi_run_name_holders(struct fragi_run *run, const struct frag_op *op, char *sentence,
			    size_t size);

/* watchdog.c */
void fragi_run_watch(struct fragi_run *run);
/* It is halted: warns of the messages that wait at inputs, if that is because it rests. */
void fragi_run_report_waiting(const struct fragi_run *run);

#endif
