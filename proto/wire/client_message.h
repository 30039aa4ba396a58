/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FW_CLIENT_MESSAGE_H
#define FW_CLIENT_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/look.h>
#include <base/passed.h>
#include <base/summary.h>
#include <wire/failure.h>

/* What clients and the driver say to each other, but for what change.h has. */

enum fw_request_what {
	FW_REQUEST_STATE = 1, /* of all applications and workers */
};
struct fw_request {
	enum fw_request_what what;
	const char *worker; /* of this one alone, with what it runs; empty: of all */
};

/* What happened at the driver: X(NAME, name). A place is the number on the wire, from 1. */
#define FW_NOTICE_LIST(X)                                                                          \
	X(START, start)                                                                            \
	X(STOP, stop)                                                                              \
	X(RESTART, restart)                                                                        \
	X(REFUSED, refused)                                                                        \
	X(RUNNING, running)                                                                        \
	X(DONE, done)                                                                              \
	X(STOPPED, stopped)                                                                        \
	X(FAILED, failed)                                                                          \
	X(WORKER_JOINED, worker_joined)                                                            \
	X(WORKER_LEFT, worker_left)                                                                \
	X(SET, set)                                                                                \
	X(DRAIN, drain)                                                                            \
	X(APPLY, apply)                                                                            \
	X(ADOPTED, adopted)                                                                        \
	X(MOVE, move)                                                                              \
	X(SWAP, swap)                                                                              \
	X(MIGRATED, migrated)                                                                      \
	X(LOSS, loss)                                                                              \
	X(CLOCK, clock)
#define FW_NOTICE_ENUM(NAME, name) FW_NOTICE_##NAME,
enum fw_notice_kind { FW_NOTICE_NONE, FW_NOTICE_LIST(FW_NOTICE_ENUM) FW_NOTICE_KINDS };
#undef FW_NOTICE_ENUM
const char *fw_notice_name(enum fw_notice_kind kind); /* "start"; "none" for none of them */

struct fw_host_row {
	uint32_t number;
	const char *fragments; /* "fragment1, fragment2" */
	const char *worker;
	const char *state; /* for people: the driver's word for it */
	int32_t pid;       /* 0: not known */
	const char *stays; /* why it stays on a worker that is drained; empty: it does not */
};
struct fw_parameter_row {
	const char *name, *value; /* "fragment1.tx.value", "5" */
	const char *who;          /* changed it: "user alice" */
	int64_t age_ns;           /* since then */
};
struct fw_application_row {
	uint64_t run;
	const char *name, *state;
	int64_t age_ns; /* since it was given to the driver */
	struct fw_host_row *hosts;
	uint32_t host_count;
	uint64_t epoch, delivered; /* delivered: messages of all flows */
	const char *started_by; /* "user alice", "key tablet"; empty: the driver's command line */
	const char *missing;    /* what it waits for: "f1, f2"; empty: nothing */
	struct fw_parameter_row *parameters; /* that were changed while it ran; the newest last */
	uint32_t parameter_count;
	bool adopted; /* it ran already when this driver started */
};
struct fw_worker_row {
	const char *name, *address, *state;
	uint32_t cores;
	uint32_t fragments;    /* that hold a place on it */
	const char *waits_for; /* as in HELLO */
	bool drained;          /* it is given no more fragments */
	int64_t age_ns;        /* since it went; 0: it is there, or was never */
	const char *ran;       /* the hosts that it ran then */
	const char *limited;   /* as in HELLO */
};
/* a run that has ended */
struct fw_ended_row {
	uint64_t run;
	const char *name;
	enum fragi_summary_result result;
	struct fw_failure failure;
	int exit_code;
	int64_t age_ns; /* since it ended */
	int64_t duration_ns;
	const char *started_by;
	bool wanted; /* it starts again with the next driver */
};
struct fw_reply {
	struct fw_application_row *applications;
	uint32_t application_count;
	struct fw_worker_row *workers;
	uint32_t worker_count;
	struct fw_ended_row *ended; /* the newest first */
	uint32_t ended_count;
	uint64_t notices[FW_NOTICE_KINDS];      /* since the driver started, by kind */
	uint64_t state_bytes, state_free_bytes; /* of the disk of its state folder; 0: not known */
	int64_t certificate_ends_unix_s;        /* of the driver; 0: it has none */
	const char *state_failure; /* why that folder cannot be written; empty: it can */
	uint32_t more;             /* rows of all tables that were left out to bound the reply */
	int64_t started_unix_s;    /* the driver; 0: not known */
};

struct fw_start_app {
	const char *name;   /* empty: as the graph says */
	const void *source; /* fragi_source_pack */
	uint32_t source_bytes;
	int64_t start_timeout_ns; /* 0: none */
};
struct fw_stop_app {
	const char *name;
	bool at_once; /* it does not drain */
	bool restart; /* it starts anew when it has ended; one that has ended starts now */
	bool awaits;  /* the Outcome follows the Answer, and precedes the end of the driver */
};
/* `run` of the message: the run that starts or stops; of STOP_APP with restart, the new one */
struct fw_answer {
	struct fw_failure failure; /* NONE: it is done, and survives the end of the driver */
	const char *name;          /* of the application */
	const char *remark;        /* what does not survive it, as a sentence; empty: nothing */
};
/* what a client waits for; `run` of the message says of what */
enum fw_milestone {
	FW_RUNNING = 1, /* all its hosts run, none is started again; or it ended without that */
	FW_ENDED,
};
struct fw_await {
	enum fw_milestone until;
};
struct fw_outcome {
	const char *name;
	enum fw_milestone reached;
	struct fragi_summary summary; /* when it has ended */
	uint32_t left_out;            /* operators and flows that there was no room for */
};

struct fw_watch {
	uint64_t after; /* the number of the last notice that is known; 0: none */
	bool follow;    /* later ones are sent as they happen */
};
struct fw_notice {
	uint64_t number; /* counts up; gaps: notices that are forgotten */
	int64_t unix_ns;
	enum fw_notice_kind kind;
	const char *application; /* empty: none */
	uint64_t run;            /* 0: none */
	const char *who;         /* issued the command: "user alice", "key tablet"; empty: nobody */
	const char *text;        /* for people */
};
struct fw_events {
	struct fw_notice *rows; /* oldest first */
	uint32_t count;
};

/* The answer to HOST_SET. */
struct fw_host_set_done {
	uint64_t number;
	struct fw_failure failure; /* NONE: it changes before the operator's next tick */
};

struct fw_drain {
	const char *worker;
	bool undo;      /* it takes fragments again */
	bool rebalance; /* with undo: what the drain moved goes back */
};
struct fw_explain {
	const char *name; /* of the application */
	const char *what; /* a fragment, or an end of a flow; empty: all */
};
/* a worker that does not run a fragment */
struct fw_other_row {
	const char *worker, *reason;
	bool fits; /* it could */
};
struct fw_placement_row {
	const char *fragment;
	const char *worker;    /* empty: none */
	const char *required;  /* "cpu 2, memory 512 MiB"; empty: nothing */
	const char *reason;    /* why there, or why nowhere */
	const char *no_limits; /* why its limits are not enforced there; empty: they are, or none */
	struct fw_other_row *others;
	uint32_t other_count, others_beyond; /* beyond: that the driver has not kept */
};
/* a flow between fragments */
struct fw_route_row {
	const char *from, *to; /* as the graph names them */
	const char *edge;      /* empty: its ends run nowhere yet */
	bool encrypted;
	const char *reason;
};
struct fw_explanation {
	const char *name, *state; /* of the application */
	struct fw_placement_row *placements;
	uint32_t placement_count;
	struct fw_route_row *routes;
	uint32_t route_count;
	uint32_t more; /* rows of all tables that were left out to bound the reply */
};

#define FW_LOOK_MIN_NS INT64_C(250000000)
#define FW_LOOK_ROWS_MAX 500   /* operators, and flows: the busiest ones */
#define FW_LOOK_ROWS_MOST 2000 /* that a client may ask for */
#define FW_LOOK_AT_ONCE_MAX_NS INT64_C(300000000000)
struct fw_look {
	const char *name; /* of the application; empty: each of them */
	int64_t every_ns; /* the window; 0: a second */
	bool once;        /* only one window */
	/*
	 * Answers now, and only now: with sums since the start, the histograms, and the root cause
	 * in the window since the client asked so before, without the numbers of that window. The
	 * hosts measure for every_ns from now on.
	 */
	bool at_once;
	uint32_t rows; /* the first ones in the order of the graph; 0: the busiest ones */
	bool changes;  /* the client keeps tables, and takes is_same in place of them */
};
/*
 * An application in a window. Before the first window has passed nothing is sent. Where no
 * application runs, one without a name comes.
 */
struct fw_looked {
	struct fragi_look look;
	bool is_last; /* of this window */
	/* all is as the client got it last for this run; only look.unix_ns is new */
	bool is_same;
	/* the root cause that look.cause names: its kind, what is to blame, and the way to it */
	uint32_t cause, op, flow, host;
	const char *help; /* NULL: none is known */
	struct fragi_look_step *chain;
	uint32_t chain_count;
};

#define FW_TAP_MIN_NS INT64_C(100000000) /* between two messages */
#define FW_TAPPED_BYTES_MAX (128u << 10)
/*
 * Copies of messages of a flow. The client gets an ANSWER with the name of the output, or why not;
 * then TAPPED; and an ANSWER with a failure when the application has ended.
 */
struct fw_tap {
	const char *name; /* of the application */
	const char *flow; /* "f1.tx.out", as much of it as is unique, or "f1.tx.out -> f2.rx.in" */
	int64_t every_ns; /* 0: FW_TAP_MIN_NS */
	bool pictures;    /* also the picture in a message */
	uint64_t ends;    /* seq of a TAP that ends; name and flow are not read; 0: it begins */
	bool traces;      /* in place of a flow: what all operators do, from each host */
};
struct fw_tapped {
	uint32_t tap;       /* of HOST_TAP; towards a client 0: reply_to is its TAP */
	const void *passed; /* a frame of PASSED, or a chunk of a trace (base/trace.h) */
	uint32_t size;
};

/*
 * To a host: a client taps an output of an operator for so long, unless this comes again; 0: no
 * longer. The indices are those of HOST_PREPARED.
 */
struct fw_host_tap {
	uint32_t tap; /* its number, of this driver */
	uint32_t fragment, op, port;
	int64_t every_ns, for_ns;
	bool pictures;
	bool traces; /* what all its operators do; fragment, op and port are not read */
};

#define FW_FINDINGS_MAX 64
/* EXAMINE: a worker is to look at its node, as `fragctl doctor` does there. */
struct fw_examine {
	const char *worker;
};
struct fw_finding {
	const char *check;
	bool is_wrong;
	const char *found, *cost, *mend; /* cost, mend: empty where nothing is wrong */
};
struct fw_examined {
	const char *why_not; /* it could not look; empty: it could */
	struct fw_finding *findings;
	uint32_t finding_count;
};

#endif
