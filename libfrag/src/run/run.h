/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_RUN_RUN_H
#define FRAGI_RUN_RUN_H

#include <base/passed.h>
#include <base/trace.h>
#include <edge/remote/remote.h>
#include <graph/op.h>
#include <sched/sched.h>

/*
 * A run is one host's part of an application: some of its fragments, or all of them. The phases are
 * the driver's: prepare, wire, start, drain or halt, join. The caller is the control thread;
 * nothing here blocks on user code except prepare (setup, initialize) and join. A run decides
 * nothing about the application: it reports that it rests, has failed or was stopped by an
 * operator, and goes on until it is drained or halted.
 */
struct fragi_run;

enum fragi_run_event_kind {
	FRAGI_RUN_WIRED, /* every peer said HELLO */
	/*
	 * At rest, done or not; reported again every beat_ns while that lasts. sent, delivered:
	 * what has left for other hosts and what has come from them (edge/in_flight.h);
	 * idle_rounds.
	 */
	FRAGI_RUN_IDLE,
	/*
	 * Every operator is done and what was sent has left. Follows also after FAILED and STOPPED,
	 * once the rest has ended; not when an operator hangs.
	 */
	FRAGI_RUN_DONE,
	/* sentence, failure, op; its fragment stops at once */
	FRAGI_RUN_FAILED,
	FRAGI_RUN_STOPPED, /* an operator stopped the application: finished; its fragment drains */
	FRAGI_RUN_PEER_LOST, /* peer, peer_epoch, sentence */
	FRAGI_RUN_STARTED,   /* start of every operator has succeeded */
};

struct fragi_run_event {
	enum fragi_run_event_kind kind;
	uint32_t peer;
	uint64_t peer_epoch;
	enum fragi_failure failure;
	char op[2 * FRAG_NAME_MAX + 2]; /* "fragment.operator" that failed; empty: none */
	char sentence[1024];
	uint64_t sent, delivered, idle_rounds;
};

struct fragi_run_config {
	const struct fragi_spec *spec;   /* borrowed until destroy */
	const char *const *fragments;    /* to run here; NULL-ended; NULL: all */
	struct fragi_registry *registry; /* borrowed */
	int ledger_fd;                   /* memfd for the ledger; -1: anonymous memory */
	int saved_fd;  /* memory for what operators save (sched/saved.h); 0: nobody keeps it */
	uint32_t host; /* number in the run */
	uint64_t epoch;
	int64_t beat_ns, dead_ns;
	/*
	 * FRAGI_DATA_KEY_BYTES (edge/transport.h), the same in all hosts of the run; borrowed until
	 * destroy. NULL: flows cannot leave this host.
	 */
	const uint8_t *data_key;
	/*
	 * The transports that flows to other hosts go over; NULL-ended, borrowed until destroy.
	 * NULL or none: where there are such flows, the one that connects any two hosts.
	 */
	const char *const *transports;
	/*
	 * FRAGI_VARIABLES_KEY_BYTES (var/variable.h), as data_key. NULL: variables stay in this
	 * process.
	 */
	const uint8_t *variables_key;
};

FRAGI_API int fragi_run_create(const struct fragi_run_config *config, struct fragi_run **out_run);
/*
 * Loads, composes, initializes, resolves the flows inside this process, makes the ledger; opens the
 * transports if the spec has flows that leave this process.
 * Errors in diag, classified (base/failure.h). Returns 0 or negative errno.
 */
FRAGI_API int fragi_run_prepare(struct fragi_run *run, struct fragi_diag *diag);

/*
 * After prepare. Tables of this process's fragments and of the flows inside it (rows 0.. of the
 * ledger).
 */
FRAGI_API const struct fragi_fragment_info *fragi_run_fragments(const struct fragi_run *run,
								size_t *out_count);
FRAGI_API const struct fragi_flow_info *fragi_run_flows(const struct fragi_run *run,
							size_t *out_count);

/*
 * The name of a pool of blocks, such as "fragment1.frames", by its number in the ledger; NULL: there
 * are not so many. Pools beyond FRAGI_POOLS_MAX have none.
 */
FRAGI_API const char *fragi_run_pool(const struct fragi_run *run, uint32_t number, char *out,
				     size_t size);
/*
 * A place on the paths that end in an operator (base/blame.h), by its number in the ledger. Returns
 * whether there is one. Places beyond FRAGI_LATE_PLACES_MAX have none.
 */
struct fragi_run_late_place {
	uint32_t fragment, op; /* that ends the paths: indices in this process */
	const char *from, *at; /* as in struct fragi_late_place */
};
FRAGI_API bool fragi_run_late_place(const struct fragi_run *run, uint32_t number,
				    struct fragi_run_late_place *out);
/*
 * Services of the application (frag/service.h): how many there are; whether their driver_start was
 * called here, because the first fragment is; what the i-th one has announced then, "": nothing.
 */
FRAGI_API uint32_t fragi_run_service_count(const struct fragi_run *run);
FRAGI_API bool fragi_run_is_driver(const struct fragi_run *run);
FRAGI_API const char *fragi_run_announced(const struct fragi_run *run, uint32_t i);
/*
 * Calls worker_connect of all of them; after wire and before start. Blocks on user code.
 * announced, count: what the host of the first fragment has reported
 * Returns 0, or the first failure with a sentence. They are disconnected when the last operator has
 * stopped, or by destroy.
 */
FRAGI_API int fragi_run_connect_services(struct fragi_run *run, const char *const *announced,
					 uint32_t count, struct frag_err *err);
/* Whether wire asks another host for a variable, or services are to be connected after it. */
FRAGI_API bool fragi_run_wire_may_wait(const struct fragi_run *run);
/* Where this host is reached over one transport. */
struct fragi_run_address {
	const char *transport; /* "ucx" */
	const void *bytes;
	size_t size;
	const char *detail; /* "tcp lo", for people */
};
/* Of the transports that are open; the run's. Returns how many: 0 if no flow leaves this host. */
FRAGI_API uint32_t fragi_run_addresses(const struct fragi_run *run,
				       struct fragi_run_address out[FRAGI_HOST_TRANSPORTS_MAX]);
FRAGI_API const struct fragi_ledger *fragi_run_ledger(const struct fragi_run *run);

struct fragi_run_peer {
	uint32_t host;
	uint64_t epoch;
	const struct fragi_run_address *addresses;
	uint32_t address_count;
	const char *name;
};
struct fragi_run_edge {
	const char *transport;
	struct fragi_edge_config config;
	bool sends;
	uint32_t fragment, op, port; /* in fragi_run_fragments */
	uint32_t peer;               /* host number */
	uint32_t order;              /* of struct fragi_flow_info */
	const char *other_end;
};
/*
 * Makes the edges to other hosts (rows after the inner flows, in this order) and begins to connect;
 * FRAGI_RUN_WIRED follows when every peer has answered (at once without peers). Returns 0 or
 * negative errno with a sentence.
 */
FRAGI_API int fragi_run_wire(struct fragi_run *run, const struct fragi_run_peer *peers,
			     size_t peer_count, const struct fragi_run_edge *edges,
			     size_t edge_count, struct frag_err *err);
/*
 * Peers were started again (edge/remote/remote.h, fragi_remote_peer_succeed): all edges to each of
 * them, with their new tokens. Reports FAILED if that cannot be. Thread: control thread, after wire
 * has returned 0.
 */
FRAGI_API void fragi_run_rewire(struct fragi_run *run, const struct fragi_run_peer *peers,
				size_t peer_count, const struct fragi_run_edge *edges,
				size_t edge_count);
/* Returns at once; FRAGI_RUN_STARTED or FRAGI_RUN_FAILED follows. */
FRAGI_API int fragi_run_start(struct fragi_run *run, struct frag_err *err);
/*
 * From now on an operator that is in one callback for longer has failed, and hangs. Thread: control
 * thread.
 */
FRAGI_API void fragi_run_limit_calls(struct fragi_run *run, int64_t limit_ns);
/*
 * Orderly stop of all fragments; FRAGI_RUN_DONE follows when drained, FRAGI_RUN_IDLE where only a
 * cycle is left. How long that may take is up to the caller. Thread: any.
 */
FRAGI_API void fragi_run_drain(struct fragi_run *run);
/*
 * The same, but another process goes on for this host: peers are told that they wait for it, not
 * that anything ends, and DONE follows when all that was sent has arrived there. Thread: any.
 */
FRAGI_API void fragi_run_yield(struct fragi_run *run);
/*
 * The other side of it: that epoch of a peer is to be replaced. Nothing is sent to it any more
 * until fragi_run_rewire. Thread: control thread, after wire has returned 0.
 */
FRAGI_API void fragi_run_suspend(struct fragi_run *run, uint32_t host, uint64_t epoch);
/* Stop without draining; FRAGI_RUN_DONE follows after the present ticks. */
FRAGI_API void fragi_run_halt(struct fragi_run *run);
/*
 * Changes a dynamic parameter of an operator of this host before its next tick. text:
 * FRAGMENT.OPERATOR.PARAMETER=VALUE; who: has asked for it, for the log. Returns as fragi_exec_set,
 * and -EINVAL: there is no such operator here. Thread: any, while the run is started.
 */
FRAGI_API int fragi_run_set(struct fragi_run *run, const char *text, const char *who,
			    struct frag_err *err);
/*
 * Somebody looks, or nobody any more: meanwhile a thread counts what the operators wait for
 * (run/look.c), in the use_ counters of the ledger. It ends with the run. Where it cannot be
 * created nothing is counted. Thread: control thread, while the run is started.
 * - hosts: of this machine that are looked at, this one too; 0: this one is not, any more
 */
FRAGI_API void fragi_run_look(struct fragi_run *run, uint32_t hosts);
/*
 * A tap on an output of an operator (sched/tap.h), by its place in fragi_run_fragments. It ends
 * after for_ns, unless it is wanted again; 0: now. Returns 0; -EINVAL: there is no such output;
 * -EBUSY: there are FRAGI_RUN_TAPS_MAX of them; -EAGAIN, -ESRCH: it does not run yet, or no more;
 * -ENOMEM. Thread: control thread, while the run is started.
 */
#define FRAGI_RUN_TAPS_MAX 8
struct fragi_run_tap_wish {
	uint32_t id; /* not 0 */
	uint32_t fragment, op, port;
	int64_t every_ns, for_ns;
	bool pictures;
	bool traces; /* what all operators do (base/trace.h); of no output */
};
FRAGI_API int fragi_run_tap(struct fragi_run *run, const struct fragi_run_tap_wish *wish);
/*
 * Gives what was copied since to take, which returns whether it has it; else it is given again.
 * Returns whether there are taps. Thread: control thread, while the run is started.
 */
typedef bool (*fragi_run_passed_fn)(void *arg, uint32_t id, const struct fragi_passed *passed);
FRAGI_API bool fragi_run_passed(struct fragi_run *run, fragi_run_passed_fn take, void *arg);
/*
 * The same with a chunk of each trace, from the start on. `take` returns whether it wants another
 * one, if there is more. is_end: nothing follows.
 */
typedef bool (*fragi_run_traced_fn)(void *arg, uint32_t id, const struct fragi_trace_chunk *chunk);
FRAGI_API void fragi_run_traced(struct fragi_run *run, bool is_end, fragi_run_traced_fn take,
				void *arg);
/*
 * Events: fd becomes readable; next returns 1 with an event, 0 when there is none. Calling it also
 * does the control thread's work (watchdog, rest detection), so call it at least every 100 ms while
 * the run is started.
 */
FRAGI_API int fragi_run_fd(const struct fragi_run *run);
FRAGI_API int fragi_run_next(struct fragi_run *run, struct fragi_run_event *out_event);
/*
 * Joins threads, stops operators, closes edges, frees everything. NULL and any phase are accepted.
 * Waits for ticks under way; but after a FAILED of the watchdog it returns at once and frees
 * nothing, because a thread is still in an operator: the caller then leaves by _exit.
 */
FRAGI_API bool fragi_run_hangs(const struct fragi_run *run); /* that it would free nothing */
FRAGI_API void fragi_run_destroy(struct fragi_run *run);

#endif
