/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FW_MESSAGE_H
#define FW_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/saved_bytes.h>
#include <wire/change.h>
#include <wire/client_message.h>
#include <wire/facts.h>
#include <wire/failure.h>
#include <wire/session_message.h>

/*
 * What travels on a control connection, as plain structs. Protobuf stops in encode.c and decode.c,
 * which follow the tables of fields and bounds in layout_*.c. A frame is a u32 length
 * (little-endian, at most FW_FRAME_MAX) and an envelope.
 *
 * Who sends what:
 *   worker, client, reporter -> driver   HELLO first; the driver answers WELCOME, or REFUSED and
 *                                      closes
 *   worker -> driver           HELLO of a reporter with a binding, over a second connection: what
 *                              that one proves is the key or certificate of its session from
 *                              WELCOME on; nothing follows
 *   both                       BEAT
 *   worker -> driver           LEAVE, its last message
 *   driver -> worker           HOST_CREATE, HOST_KILL, APP_ENDED
 *   driver -> host (relayed)   HOST_WIRE, HOST_START, HOST_STOP
 *   host -> driver (relayed)   HOST_PREPARED, HOST_WIRED, HOST_STARTED, HOST_EVENT
 *   worker -> driver           HOST_STATS, HOST_EXIT; a host that could not be started gets a
 *   HOST_EXIT alone
 *   client -> driver           REQUEST; the driver answers REPLY
 *   client -> driver           START_APP, STOP_APP, DRAIN; the driver answers ANSWER
 *   client -> driver           AWAIT; the driver answers OUTCOME when it has come, or ANSWER that
 *                              it cannot come
 *   client -> driver           WATCH; the driver answers EVENTS, again and again if it is to follow
 *   client -> driver           SET; the driver asks the host, then answers ANSWER
 *   driver -> host (relayed)   HOST_SET, while it runs; the host answers HOST_SET_DONE (relayed)
 *   client -> driver           WATCH_LOGS; the driver answers LOGS, as EVENTS; or ANSWER that there
 *                              is no such application
 *   client -> driver           APPLY; the driver answers CHANGES, or ANSWER that it is refused
 *   worker -> driver           HOST_LINES, if WELCOME asked for them
 *   client -> driver           EXPLAIN; the driver answers EXPLANATION, or ANSWER that it cannot
 *   worker -> driver           HOST_REPORT for each host that its HELLO announced, each followed by
 *                              what the driver needs of it: HOST_PREPARED, HOST_PAST, HOST_EVENT,
 *                              HOST_STATS, HOST_EXIT; then REPORTED
 *   driver -> host (relayed)   HOST_SUSPEND
 *   client -> driver           LOOK; the driver answers LOOKED after each window, or ANSWER that
 *                              there is no such application
 *   driver -> worker           HOST_LOOK, again and again while somebody looks
 *   client -> driver           TAP; the driver answers ANSWER, then TAPPED with each message that a
 *                              host has copied, until the client ends it or the application ends
 *   driver -> host (relayed)   HOST_TAP, again and again while a client taps
 *   host -> driver (relayed)   HOST_TAPPED, where nothing else waits to be sent; else it is dropped
 *   host -> client             PASSED, within the bytes of HOST_TAPPED and TAPPED
 *   client -> driver -> worker EXAMINE
 *   worker -> driver -> client EXAMINED; or the driver answers ANSWER that there is none
 *   worker -> driver           HOST_SAVED, before the final HOST_STATS of a host that has yielded
 *   driver -> worker           HOST_SAVED, for the host that goes on in its place, and HOST_PAST,
 *                              with which that one is the host
 *   driver -> worker           HOST_ADOPTED: a host that was reported is its own now, so the beats
 *                              renew its lease; or its sums may lack something
 *   reporter -> driver         HOST_STATS, final, of hosts of the session that its HELLO names
 * On the socket between a workerd and its fraghost the same frames are used; HOST_CREATE is the
 * first one, BEATs go both ways.
 */
#define FW_PROTOCOL_MAJOR 1
#define FW_PROTOCOL_MINOR 18
#define FW_LOOK_MINOR 9         /* from this minor on workers know HOST_LOOK */
#define FW_TAP_MINOR 10         /* ... HOST_TAP */
#define FW_LAST_SOURCE_MINOR 11 /* ... has_last_source */
#define FW_EXAMINE_MINOR 12     /* ... EXAMINE */
#define FW_TRACE_MINOR 14       /* ... HOST_TAP with traces */
#define FW_GPU_LIMIT_MINOR 16   /* ... gpu_memory_limit_bytes */
#define FW_BINDING_MINOR 17     /* ... binding */
#define FW_FRAME_MAX (4u << 20)
#define FW_WORKER_NAME_MAX 255 /* bytes, with the number that the driver adds */
#define FW_TEXT_MAX 4096       /* a sentence, a log line */
#define FW_NAMES_MAX 4096      /* fragments named by one worker */
#define FW_TOKEN_BYTES 16
#define FW_DATA_KEY_BYTES 32 /* of an application, as its driver drew it */
#define FW_VARIABLES_KEY_BYTES 32
#define FW_LABELS_MAX 64            /* of a worker */
#define FW_WORKER_HOSTS_MAX 256     /* that a worker runs at a time */
#define FW_TRANSPORTS_MAX 4         /* of a host */
#define FW_ADDRESS_MAX 4096         /* a host's data-plane address */
#define FW_WAITS_FOR_MAX 512        /* bytes that are kept of why a worker waits */
#define FW_LIMITED_MAX 256          /* bytes of what a worker may not use */
#define FW_LINES_MAX 20             /* last lines of a host */
#define FW_LOG_ROWS_MAX 256         /* lines in one message */
#define FW_CHANGES_MAX 256          /* differences between two graphs in one message */
#define FW_LOG_LINE_MAX 1024        /* bytes that are kept of a line */
#define FW_ERRORS_MAX 128           /* errors of a graph */
#define FW_ROWS_MAX 65536           /* operators, flows, edges, peers of a host */
#define FW_PORTS_MAX 1024           /* of an operator */
#define FW_INTERFACE_PORTS_MAX 4096 /* of the subgraphs of a fragment */
#define FW_HELLO_MAX (1u << 20)     /* the limit of frames before HELLO is accepted */

/*
 * The kinds of messages: X(number, KIND, type), the number of the field in Envelope
 * (control.proto), and the type of the field as protobuf-c writes it in functions. A new kind is a
 * row here, with its struct below, a field of Envelope, and its layout in a layout_*.c.
 */
#define FW_KIND_LIST(X)                                                                            \
	X(16, HELLO, hello)                                                                        \
	X(17, WELCOME, welcome)                                                                    \
	X(18, REFUSED, refused)                                                                    \
	X(19, BEAT, beat)                                                                          \
	X(20, HOST_CREATE, host_create)                                                            \
	X(21, HOST_PREPARED, host_prepared)                                                        \
	X(22, HOST_WIRE, host_wire)                                                                \
	X(23, HOST_WIRED, host_result)                                                             \
	X(24, HOST_START, host_start)                                                              \
	X(25, HOST_STARTED, host_result)                                                           \
	X(26, HOST_STOP, host_stop)                                                                \
	X(27, HOST_KILL, host_stop)                                                                \
	X(28, HOST_EVENT, host_event)                                                              \
	X(29, HOST_STATS, host_stats)                                                              \
	X(30, HOST_EXIT, host_exit)                                                                \
	X(31, REQUEST, request)                                                                    \
	X(32, REPLY, reply)                                                                        \
	X(33, APP_ENDED, app_ended)                                                                \
	X(34, LEAVE, leave)                                                                        \
	X(40, START_APP, start_app)                                                                \
	X(41, STOP_APP, stop_app)                                                                  \
	X(42, ANSWER, answer)                                                                      \
	X(43, AWAIT, await)                                                                        \
	X(44, OUTCOME, outcome)                                                                    \
	X(45, WATCH, watch)                                                                        \
	X(46, EVENTS, events)                                                                      \
	X(80, SET, set)                                                                            \
	X(81, HOST_SET, host_set)                                                                  \
	X(82, HOST_SET_DONE, host_set_done)                                                        \
	X(83, WATCH_LOGS, watch_logs)                                                              \
	X(84, LOGS, logs)                                                                          \
	X(85, HOST_LINES, host_lines)                                                              \
	X(86, APPLY, apply)                                                                        \
	X(87, CHANGES, changes)                                                                    \
	X(90, EXPLAIN, explain)                                                                    \
	X(91, EXPLANATION, explanation)                                                            \
	X(92, DRAIN, drain)                                                                        \
	X(93, HOST_SUSPEND, host_suspend)                                                          \
	X(94, HOST_SAVED, host_saved)                                                              \
	X(95, SWAP, swap)                                                                          \
	X(100, HOST_REPORT, host_report)                                                           \
	X(101, REPORTED, reported)                                                                 \
	X(102, HOST_PAST, host_stats)                                                              \
	X(103, HOST_ADOPTED, host_adopted)                                                         \
	X(104, LOOK, look)                                                                         \
	X(105, LOOKED, looked)                                                                     \
	X(106, HOST_LOOK, host_look)                                                               \
	X(107, TAP, tap)                                                                           \
	X(108, TAPPED, tapped)                                                                     \
	X(109, HOST_TAP, host_tap)                                                                 \
	X(110, HOST_TAPPED, tapped)                                                                \
	X(111, PASSED, passed)                                                                     \
	X(112, EXAMINE, examine)                                                                   \
	X(113, EXAMINED, examined)

#define FW_KIND_ENUM(number, KIND, type) FW_##KIND = (number),
enum fw_kind { FW_KIND_LIST(FW_KIND_ENUM) };
#undef FW_KIND_ENUM

struct fw_host_create {
	const char *application;
	const void *source; /* fragi_source_pack */
	uint32_t source_bytes;
	const char **fragments; /* that this host runs */
	uint32_t fragment_count;
	int64_t beat_ns, dead_ns;
	/* that this host opens; none: no flow leaves it, or the driver is of minor 1 */
	const char **transports;
	uint32_t transport_count;
	/* how much it may use, of all GPUs together, and of the threads of each; 0: all there is */
	int64_t limits[FRAGI_AMOUNTS];
	const char *mig; /* the profile of the MIG instance that it gets; empty: none */
	/* wiped by fw_message_free, and by whoever fills it */
	uint8_t data_key[FW_DATA_KEY_BYTES];
	uint8_t variables_key[FW_VARIABLES_KEY_BYTES];
	bool may_restart; /* it may be started again: its worker keeps what its operators save */
	/* an earlier epoch of it runs, here or elsewhere, and is the host until HOST_PAST comes */
	bool is_beside;
	bool is_moved;     /* ... its epoch before this one ran on another worker */
	uint64_t restarts; /* its epochs before this one, on all workers */
	/* as in HELLO of its first worker: how its flows travel follows from it */
	const char *memory;   /* FW_MEMORY_NONE: empty there; empty: an older driver has not said */
	bool has_last_source; /* its source is that of the last HOST_CREATE of the session */
	int64_t lease_ns;     /* it ends so long after its driver was heard last; 0: it runs on */
	int64_t lease_until_ns; /* from its worker: as in BEAT */
};

/*
 * HOST_REPORT: of a host that was made for a driver that went away since, and that runs, or has
 * ended meanwhile (then its HOST_EXIT follows). create: its HOST_CREATE; without its source when
 * the frame has no room for it.
 */
enum fw_stop_state {
	FW_STOP_NOT,
	FW_STOP_DRAINS,       /* it was told to drain */
	FW_STOP_ENDS,         /* ... to end, and had not been told to drain */
	FW_STOP_DRAINED_ENDS, /* ... to drain, then to end */
	FW_STOP_KILLED,       /* it was to be killed, and not to be started again */
};
struct fw_host_report {
	struct fw_host_create create;
	bool started,
		has_run; /* START was asked for: of this epoch; of this one or an earlier one */
	enum fw_stop_state stop;
	enum fragi_failure failure; /* of the request that it follows from */
	const char *reason;         /* ... */
	uint64_t restarts; /* epochs before this one on that worker; HOST_PAST is their sum */
	bool is_inexact;   /* that sum lacks something */
	int64_t age_ns;    /* since its first epoch was made */
	bool is_closing;   /* it was told to end, and not to drain before; perhaps killed then */
	bool yields;       /* it was told so, and another process is to go on for it */
	bool is_beside;    /* it is that other process, and HOST_PAST has not come */
	bool is_wired;     /* WIRE was asked for: messages may have come */
};

struct fw_host_adopted {
	bool is_inexact; /* it may have run elsewhere, too: its sums lack that */
};

/* Tables as graph/resolve.h has them, flat. */
struct fw_port {
	const char *name, *type;
	uint32_t dir, flags, capacity, policy;
	uint64_t type_id;
	bool has_codec;
	const char *tensors;
};
struct fw_op {
	const char *name, *type;
	struct fw_port *ports;
	uint32_t port_count;
	const char **dynamic; /* names of parameters that may change while it runs */
	uint32_t dynamic_count;
	bool has_gaps;
	const char *pools; /* whose memory its conditions wait for: "frames"; NULL: none */
};
struct fw_interface_port {
	const char *instance, *port;
	uint32_t op, op_port; /* indices into the fragment's ops and the op's ports */
};
struct fw_fragment {
	const char *name;
	struct fw_op *ops;
	uint32_t op_count;
	bool has_gaps;
	struct fw_interface_port *interface_ports;
	uint32_t interface_port_count;
};
/* indices into the fragments of the same message */
struct fw_inner_flow {
	uint32_t from_fragment, from_op, from_port, to_fragment, to_op, to_port, capacity, policy;
	bool encrypt; /* what the graph says; it does not matter there */
};

/* Where a host is reached over one transport. */
struct fw_address {
	const char *transport; /* "ucx" */
	const void *bytes;
	uint32_t size;
	const char *detail; /* "tcp lo", for people */
};

/* A place on the paths that end in an operator (base/blame.h). */
struct fw_late_place {
	uint32_t fragment, op; /* that ends them */
	const char *from;      /* NULL: no flow leads there */
	const char *at;
};

struct fw_host_prepared {
	bool ok;
	struct fw_failure *errors; /* when not ok; the tables then have gaps, and no flows */
	uint32_t error_count, errors_beyond; /* beyond: that there was no room for */
	struct fw_fragment *fragments;
	uint32_t fragment_count;
	/* inside this host, within and between its fragments: rows 0.. of its ledger */
	struct fw_inner_flow *flows;
	uint32_t flow_count;
	struct fw_address *addresses; /* of its transports; none: no flow leaves it */
	uint32_t address_count;
	int32_t pid;
	/* by the services of the application, where its first fragment runs; "": nothing */
	const char *const *announced;
	uint32_t announced_count;
	const char *const
		*pools; /* "fragment1.frames": pools of blocks, in the order of its ledger */
	uint32_t pool_count;
	struct fw_late_place *late_places; /* in the order of its ledger */
	uint32_t late_place_count;
};

/* one end of a flow between hosts */
struct fw_edge {
	uint32_t flow;               /* index in the run */
	bool sends;                  /* this host is the sending side */
	uint32_t fragment, op, port; /* indices in this host's HOST_PREPARED */
	uint32_t peer;               /* host number of the other side */
	uint8_t token[FW_TOKEN_BYTES];
	uint32_t window_messages;
	uint64_t window_bytes, message_bytes_max;
	uint32_t policy;
	uint32_t order;        /* of the flows of one port, in the graph's text */
	const char *other_end; /* "fragment2.rx.in", for people */
	const char *transport; /* over which it goes */
	bool encrypt;
};
struct fw_peer {
	uint32_t host;
	uint64_t epoch;
	struct fw_address *addresses;
	uint32_t address_count;
	const char *name; /* of its fragments, for people */
};
/*
 * rows of the ledger after the inner flows: these edges in this order. A host that has been wired
 * gets another one when peers were started again: it names those alone, with their new epochs and
 * addresses, and the edges to them with new tokens.
 */
struct fw_host_wire {
	struct fw_peer *peers;
	uint32_t peer_count;
	struct fw_edge *edges;
	uint32_t edge_count;
	/* as the host of the first fragment has answered */
	const char *const *announced;
	uint32_t announced_count;
};
/* HOST_WIRED, HOST_STARTED */
struct fw_host_result {
	struct fw_failure failure;
};

/*
 * HOST_STOP. drain_ns > 0: sources stop, queues drain, for so long at most; then the host says
 * DONE, as at an end by itself, and waits for the next HOST_STOP, so that nobody's peer leaves
 * before the last message is through. 0: the host stops what still runs, counts what is queued as
 * dropped (stopped), and exits 0. HOST_KILL: it is killed at once; drain_ns is 0.
 */
struct fw_host_stop {
	int64_t drain_ns;
	/* the application's result so far, as driverd would exit: `workerd --once` ends with it */
	int32_t exit_code;
	const char *reason; /* what the application failed with; empty: it did not */
	/*
	 * the application goes on: of HOST_KILL, with this host started again; of HOST_STOP, which
	 * is then a yield, with another process that its peers wait for
	 */
	bool restarts;
	enum fragi_failure failure; /* what reason is; NONE: of a driver of minor 4 */
};

/*
 * a peer is to be replaced: nothing more is sent to that epoch of it, until HOST_WIRE names another
 */
struct fw_host_suspend {
	uint32_t peer;
	uint64_t peer_epoch;
};

/*
 * What the operators of a host have saved, as its workerd keeps it (workerd/saved.h): these bytes
 * of that memory. What is not sent is zero.
 */
struct fw_host_saved {
	uint64_t offset;
	const void *bytes;
	uint32_t size;
};
#define FW_SAVED_BYTES_MAX (1u << 20) /* of one message */

enum fw_host_state {
	FW_STATE_RUNNING = 1, /* no longer at rest */
	/* at rest or done: nothing can run until something comes; said with every beat */
	FW_STATE_IDLE,
	FW_STATE_DONE,      /* all its operators are done and everything sent has left */
	FW_STATE_FAILED,    /* with a sentence; the host waits to be killed */
	FW_STATE_PEER_LOST, /* sentence; the host's edges to `peer` are dead */
	FW_STATE_STOPPED, /* stop_execution() of a fragment: the application is to end, finished */
};
struct fw_host_event {
	enum fw_host_state state;
	uint32_t peer;
	uint64_t peer_epoch;       /* the one that was lost; 0: of a host of minor 2 */
	struct fw_failure failure; /* FAILED, PEER_LOST */
	uint64_t idle_rounds;
	/* IDLE: what has left for other hosts and arrived here (edge/in_flight.h) */
	uint64_t sent, delivered;
};

struct fw_op_stats {
	uint32_t state;
	bool running; /* was in a callback when the page was read */
	uint64_t ticks;
	struct fragi_quantiles compute; /* ns a tick */
	uint64_t time_ns, waiting_ns;   /* in compute; started and not in compute */
	FRAGI_OP_COUNTER_FIELDS;        /* base/counters.h */
	/* how the kernel schedules its thread; policy NONE: nothing was asked for */
	struct fragi_realtime realtime;
};
/* What was to blame at a place. */
struct fw_late_counts {
	uint64_t late[FRAGI_BLAME_CAUSES];
};
/*
 * The tables of what a host counts: X(type, rows, count, row, most). Their rows are in the order of
 * HOST_PREPARED: ops fragment by fragment, inner flows, then edges. row: its layout, and how it is
 * added to that of an earlier process (stats.c). A further table is a row here.
 */
#define FW_STATS_LIST(X)                                                                           \
	X(struct fw_op_stats, ops, op_count, op_stats, FW_ROWS_MAX)                                \
	X(struct fragi_flow_stats, flows, flow_count, flow_stats, FW_ROWS_MAX)                     \
	X(struct fragi_pool_stats, pools, pool_count, pool_stats, FRAGI_POOLS_MAX)                 \
	X(struct fw_late_counts, lates, late_count, late_counts, FRAGI_LATE_PLACES_MAX)
struct fw_host_stats {
	/* after the host is gone; a HOST_EXIT follows, unless its workerd is gone too */
	bool final;
	struct fw_facts facts; /* while somebody looks */
#define FW_STATS_TABLE(type, rows, count, row, most)                                               \
	type *rows;                                                                                \
	uint32_t count;
	FW_STATS_LIST(FW_STATS_TABLE)
#undef FW_STATS_TABLE
};
/* Adds those rows that both have, and the time on CPUs. */
void fw_stats_add(struct fw_host_stats *sum, const struct fw_host_stats *stats);
/* Gives a sum that owns its rows as many as stats has. Returns 0 or -ENOMEM. */
int fw_stats_widen(struct fw_host_stats *sum, const struct fw_host_stats *stats);
void fw_stats_fini(struct fw_host_stats *sum); /* frees its rows */

/* always after the final HOST_STATS */
struct fw_host_exit {
	int32_t exit_code; /* exit status; 128 + n for signal n */
	int32_t signal;    /* 0: none */
	/*
	 * "fraghost 4711 crashed in fragment1.detect, tick 17: signal 11 (SIGSEGV)"; NONE after an
	 * orderly end
	 */
	struct fw_failure failure;
	const char **lines; /* the host's last lines on stderr */
	uint32_t line_count;
	/*
	 * it ended with 0 after it was told to end (a drain is not an end), or was killed by its
	 * workerd, which was told to end
	 */
	bool asked;
};

struct fw_message {
	enum fw_kind kind;
	uint64_t seq;      /* counts up per direction of a connection */
	uint64_t reply_to; /* seq of what this answers; 0: nothing */
	uint64_t run;      /* HOST_*, AWAIT, ANSWER: which run of an application */
	uint32_t host;     /* HOST_*: number in the run, from 1 */
	uint64_t epoch;    /* HOST_*: of that host; others are refused */
	union {
		struct fw_hello hello;
		struct fw_beat beat;
		struct fw_welcome welcome;
		struct fw_refused refused;
		struct fw_app_ended app_ended;
		struct fw_leave leave;
		struct fw_host_create create;
		struct fw_host_prepared prepared;
		struct fw_host_wire wire;
		struct fw_host_result result;
		struct fw_host_stop stop;
		struct fw_host_event event;
		struct fw_host_suspend suspend;
		struct fw_look look;
		struct fw_looked looked;
		struct fw_host_look host_look;
		struct fw_tap tap;
		struct fw_tapped tapped;
		struct fw_host_tap host_tap;
		struct fragi_passed passed;
		struct fw_host_saved saved;
		struct fw_host_stats stats;
		struct fw_host_exit exit;
		struct fw_request request;
		struct fw_reply reply;
		struct fw_start_app start_app;
		struct fw_stop_app stop_app;
		struct fw_answer answer;
		struct fw_await await;
		struct fw_outcome outcome;
		struct fw_watch watch;
		struct fw_events events;
		struct fw_set set;
		struct fw_host_set host_set;
		struct fw_host_set_done host_set_done;
		struct fw_watch_logs watch_logs;
		struct fw_logs logs;
		struct fw_host_lines host_lines;
		struct fw_apply apply;
		struct fw_changes changes;
		struct fw_explain explain;
		struct fw_explanation explanation;
		struct fw_drain drain;
		struct fw_swap swap;
		struct fw_host_report report;
		struct fw_host_adopted adopted;
		struct fw_examine examine;
		struct fw_examined examined;
	};
};

/*
 * Encodes message as a whole frame, length included; free() it. Texts beyond FW_TEXT_MAX, errors
 * beyond FW_ERRORS_MAX and lines before the last FW_LINES_MAX are cut; NULL texts travel as empty
 * ones. Returns 0; -EMSGSIZE (a table or the frame beyond its bound), -EINVAL (no such kind),
 * -ENOMEM.
 */
int fw_encode(const struct fw_message *message, uint8_t **out_frame, size_t *out_size);
/* A copy of a frame that was encoded with seq and reply_to 0, with these. Returns as fw_encode. */
int fw_frame_address(const uint8_t *frame, size_t size, uint64_t seq, uint64_t reply_to,
		     uint8_t **out_frame, size_t *out_size);
/*
 * Decodes one envelope (without the length). What it points to is freed with fw_message_free. Every
 * enum, count and length is within the bounds above, every text is NUL-terminated, never NULL and
 * without control characters. Of a HELLO with another major only major and minor are read: the rest
 * may mean anything. Returns 0; -EBADMSG with a sentence; -ENOMEM. Memory: at most 64 MiB, whatever
 * the bytes are.
 */
int fw_decode(const uint8_t *bytes, size_t size, struct fw_message **out_message,
	      struct frag_err *err);
/* A copy that is freed with fw_message_free, and the bytes of its frame. Returns as fw_encode. */
int fw_message_copy(const struct fw_message *message, struct fw_message **out_message,
		    size_t *out_size);
void fw_message_free(struct fw_message *message); /* NULL is accepted */
const char *fw_kind_name(enum fw_kind kind);      /* "HOST_CREATE"; "?" for no kind */

/*
 * Whether a peer that said hello can be talked to. Returns 0, or -EPROTONOSUPPORT with a sentence
 * that names both versions.
 */
int fw_hello_check(const struct fw_hello *hello, struct frag_err *err);

#endif
