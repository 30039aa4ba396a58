/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_GRAPH_OP_H
#define FRAGI_GRAPH_OP_H

#include <stdatomic.h>

#include <data/work.h>
#include <frag/subgraph.h>
#include <base/failure.h>
#include <base/call.h>
#include <base/clock.h>
#include <type/params.h>
#include <type/registry.h>
#include <graph/resolve.h>
#include <res/resource.h>

/*
 * A composed fragment: operators with their ports, conditions and states, resources, flows inside.
 * It is made once, from YAML and composers, on one thread. While it runs it is constant, except for
 * what belongs to the scheduler (`exec`).
 */
struct fragi_port {
	const char *name;
	enum frag_dir dir;
	const char *type_name;        /* "message", "tensor", or of the value */
	const struct frag_type *type; /* NULL: message and tensor */
	/*
	 * FRAG_PORT_*. FRAG_PORT_NO_CONDITION is also set where the graph removes the default
	 * condition (`condition: none`, a condition of type none) or gives the port another one.
	 */
	uint32_t flags;
	uint32_t capacity; /* 0: not given */
	enum frag_policy policy;
	uint32_t min_size;   /* of the default condition; FRAG_PORT_PRECEDING_COUNT: the flows */
	bool has_size;       /* min_size is the `size` of the graph */
	const char *tensors; /* as declared; NULL: not */
	/* which message of an input a tick gets (timing.c); NULL: what it receives */
	const struct fragi_timing *timing;
	bool is_aligned; /* with the other inputs of op->align */
	/* flows inside the fragment; before initialize, run/ adds those to other fragments */
	uint32_t flow_count;
};

/* The stream of an operator that gives work to a GPU (device.c, sched/stream.c). */
struct fragi_op_stream {
	const struct fragi_stream_ops *ops;
	struct fragi_stream *stream;
	struct frag_resource *pool; /* which the stream was taken from; NULL: it is its own */
	/* of the tick: tensors that it holds */
	struct frag_tensor **held;
	uint32_t held_count, held_capacity;
	bool has_work; /* of the tick: it was recorded (sched/stream.c) */
};

struct fragi_pool_place;
struct fragi_crew;
struct fragi_logged;  /* sched/: an operator whose messages data loggers get */
struct fragi_tracked; /* sched/: an operator under data flow tracking */
struct fragi_on_path; /* sched/: an operator on a path with a deadline, or behind one */
struct fragi_saved;   /* sched/: where its state is kept */
struct fragi_exec;    /* sched/: what the scheduler keeps of an operator */
struct fragi_made;    /* compose: an operator's settings until its state is filled in */

struct frag_op {
	struct frag_fragment *fragment;
	const char *name;               /* "detect" */
	const char *subject;            /* "fragment1.detect" */
	const struct fragi_node *place; /* in the graph; NULL: composed in C alone */
	uint32_t index; /* in the fragment, in order of composition; UINT32_MAX until added */
	const struct frag_op_type
		*type; /* a copy of the plugin's table, with tables of this libfrag's sizes */
	void *state;
	struct fragi_port *ports;
	uint32_t port_count;
	struct frag_condition **conditions; /* given in the graph; the defaults are not here */
	uint32_t condition_count;
	struct frag_resource **resources; /* given by position; borrowed from the fragment */
	uint32_t resource_count;
	enum frag_metadata_policy metadata_policy;
	bool metadata;
	int64_t watchdog_ns; /* 0: none */
	/* of the inputs that are aligned; window 0: none is */
	struct {
		int64_t window_ns, timeout_ns;
	} align;
	struct fragi_deadline deadline;
	bool drops_late; /* a deadline of a path that ends here drops what is late */
	bool in_setup, setup_done;
	frag_dynamic_flows_fn choose_flows; /* of frag_set_dynamic_flows; NULL: none */
	void *choose_arg;
	/* the first failure that frag_op_fail has told and nobody has taken; code 0: none */
	struct {
		int code;
		struct frag_err *text; /* owned; NULL: it never failed, or memory was short */
	} failed;
	/*
	 * Any thread may request a stop while exec is created. It writes stop_asked and then reads
	 * exec; the creating thread writes exec and then reads stop_asked. All are seq_cst, so at
	 * least one of the two sees the other's write.
	 */
	_Atomic(struct fragi_exec *) exec;
	_Atomic bool stop_asked; /* frag_op_stop_execution, also before there is an exec */
	/*
	 * Its flag in the ledger, for who looks at a crash: 1 while one of its callbacks other than
	 * compute runs. NULL: there is no ledger yet.
	 */
	_Atomic uint64_t *running;
	struct fragi_made *made;                   /* NULL once composed */
	const struct fragi_pool_place *pool_place; /* thread_pool.h; NULL: in no pool */
	uint32_t crew; /* whose threads run it: fragment->crews[crew - 1]; 0: the scheduler's */
	struct fragi_tracked *tracked;  /* NULL: its data flow is not tracked */
	struct fragi_on_path *on_path;  /* NULL: no path with a deadline leads here */
	struct fragi_saved *saved;      /* NULL: nothing keeps its state */
	struct fragi_logged *logged;    /* NULL: no data logger wants its messages */
	struct fragi_op_stream *stream; /* NULL: it has none */
	const char *scope; /* the path of its instance of a subgraph (text/spec.h); NULL: none */
	bool sends_away, receives_from_away; /* it has flows to other hosts, from them */
};

/*
 * The operator whose callback the calling thread runs: for the prefix of its output and for crash
 * reports. The caller of a callback sets it before and clears op afterwards. It may be read in a
 * signal handler, and atomically by another thread when that one has died (sched/alive.c).
 */
struct fragi_current {
	const struct frag_op *op; /* NULL: none */
	enum fragi_call_kind callback;
};
FRAGI_API struct fragi_current *fragi_current(void);
/* Shows in the counts of the host whether it is in a callback; where it has none, nothing. */
void fragi_op_show_running(const struct frag_op *op, bool running);
/* Sets the operator whose callback this thread runs; op NULL: none any more. */
void fragi_current_set(const struct frag_op *op, enum fragi_call_kind callback);

/* device.c: gives back what frag_op_use_stream has taken. */
void fragi_op_release_stream(struct frag_op *op);

/* The sentence of frag_op_fail; "": there was none. */
FRAGI_API const char *fragi_op_own_error(const struct frag_op *op);
/* Words the failure as frag_op_fail does, and says of what class it is. Returns code. */
int fragi_op_fail_as(struct frag_op *op, enum fragi_failure failure, int code, const char *format,
		     ...) __attribute__((format(printf, 4, 5)));
/* What was said has been told, or is no failure. */
FRAGI_API void fragi_op_forget_failure(struct frag_op *op);

/* What a callback has returned: 0, a negative errno; or, where it is positive, its refusal. */
int fragi_op_callback_result(struct frag_op *op, enum fragi_call_kind callback, int r);

struct fragi_making;

/*
 * Whether the instance of a subgraph at `path` is the one at `scope`, or in it. NULL: the fragment
 * itself, in which all are.
 */
FRAGI_API bool fragi_scope_holds(const char *scope, const char *path);

/* A resource that is found by its type, and id. */
struct fragi_service {
	const char *id;    /* "": none */
	const char *scope; /* the path of the instance that registered it; NULL: none */
	struct frag_resource *resource;
};

struct frag_fragment {
	const struct fragi_spec *spec;         /* NULL: composed in C alone */
	const struct fragi_spec_fragment *own; /* the same */
	struct fragi_registry *registry;       /* borrowed, or own_registry */
	struct fragi_registry *own_registry;   /* NULL: none */
	struct fragi_arena arena;
	struct fragi_diag *diag; /* while composing */
	const char *name;
	struct frag_op **ops; /* added ones, in order of composition; as in info.ops */
	uint32_t op_count;
	struct frag_op **made; /* all operators, to find those never added */
	uint32_t made_count;
	struct frag_resource **resources;
	uint32_t resource_count;
	struct frag_thread_pool **pools;
	uint32_t pool_count;
	struct fragi_crew *crews; /* the threads of all pools */
	uint32_t crew_count;
	struct fragi_service *services;
	uint32_t service_count;
	struct frag_fragment *shared;   /* services of the application; borrowed; NULL: none */
	struct frag_resource **loggers; /* data loggers, among the resources; NULL: none */
	uint32_t logger_count;
	/* as composers choose it, for the fragment and for all; of the machine: they do not */
	struct fragi_clock_config clock_of_c, shared_clock_of_c;
	struct fragi_fragment_info info; /* the tables for resolve.h and the driver */
	/* inside this fragment; from_fragment and to_fragment are 0 */
	struct fragi_flow_info *flows;
	size_t flow_count;
	uint32_t *order;                   /* of fragi_fragment_order */
	struct fragi_making *making;       /* compose: NULL once it is complete */
	void *run;                         /* run/: the host's run this fragment is in */
	struct fragi_variables *variables; /* var/: those of the process; NULL: none */
	struct frag_tracker *tracker;      /* a reference; NULL: its data flow is not tracked */
	struct fragi_spec_path *paths;     /* deadlines that were added in C */
	uint32_t path_count;
	struct frag_clock *clock; /* run/: borrowed; NULL: that of the machine */
};

/*
 * Composes one fragment of spec: extensions, resources, operators with a type, compose, operators
 * without, flows; parameters checked and written, setup called. All errors go to diag. Returns 0,
 * -EINVAL (errors in diag; exit code 2), -ENOENT (a library or symbol is missing; exit code 3),
 * -ENOMEM.
 */
FRAGI_API int fragi_fragment_compose(const struct fragi_spec *spec,
				     const struct fragi_spec_fragment *own,
				     struct fragi_registry *registry, struct fragi_diag *diag,
				     struct frag_fragment **out_fragment);
/*
 * The same, and after a failure *out_fragment is what could be made, where that is anything: its
 * info has gaps, its flows are not to be used. Only for looking for further errors; destroy it.
 * shared: of fragi_services_compose, borrowed until destroy; NULL: none
 */
FRAGI_API int
fragi_fragment_compose_partial(const struct fragi_spec *spec, const struct fragi_spec_fragment *own,
			       struct frag_fragment *shared, struct fragi_registry *registry,
			       struct fragi_diag *diag, struct frag_fragment **out_fragment);
/*
 * The same in two halves, for callers that compose in C alone (the harness): begin, frag_make_...,
 * frag_add_..., complete. spec and own may be NULL, and so may registry (then only
 * frag_make_operator_of makes operators). complete fills in the parameters, calls setup and
 * resolves the flows. After a failure: destroy.
 */
FRAGI_API int fragi_fragment_begin(const char *name, const struct fragi_spec *spec,
				   const struct fragi_spec_fragment *own,
				   struct fragi_registry *registry, struct fragi_diag *diag,
				   struct frag_fragment **out_fragment);
FRAGI_API int fragi_fragment_complete(struct frag_fragment *fragment);
/*
 * Calls fini of the operators and frees everything. Accepts NULL and fragments that are incomplete.
 */
FRAGI_API void fragi_fragment_destroy(struct frag_fragment *fragment);
/*
 * timing.c: makes the message that stands for what an input misses; NULL where its timing gives
 * none. Returns 0; -EINVAL: no default of this text for that type; -ENOMEM.
 */
FRAGI_API int fragi_timing_default(const struct fragi_port *port,
				   struct frag_message **out_message);
/* The room that the conditions of an output ask for on each of its flows, in messages. */
FRAGI_API uint32_t fragi_op_asks_for_room(const struct frag_op *op, uint32_t port);
/*
 * Calls initialize of every operator in topological order (features.md, A4). Returns 0 or the first
 * failure, in diag.
 */
FRAGI_API int fragi_fragment_initialize(struct frag_fragment *fragment, struct fragi_diag *diag);
/*
 * The services of the application: a fragment without operators. *out_shared: NULL when there are
 * none, or after a failure. Returns as fragi_fragment_compose.
 */
FRAGI_API int fragi_services_compose(const struct fragi_spec *spec, struct fragi_registry *registry,
				     struct fragi_diag *diag, struct frag_fragment **out_shared);
/*
 * Callbacks of the services of the application. shared NULL: there are none.
 * start calls driver_start; after a failure, as always, stop calls what is due. announced, count:
 * what the process of the first fragment reports, "": nothing.
 */
int fragi_services_start(struct frag_fragment *shared, struct fragi_diag *diag);
int fragi_services_connect(struct frag_fragment *shared, const char *const *announced,
			   uint32_t count, struct frag_err *err);
void fragi_services_disconnect(struct frag_fragment *shared);
void fragi_services_stop(struct frag_fragment *shared);
/*
 * Adds the failure of a callback of a resource to diag; err has its sentence, if it gave one.
 * Returns r.
 */
int fragi_resource_failed(const struct frag_resource *resource, const char *callback, int r,
			  const struct frag_err *err, struct fragi_diag *diag);
/*
 * Returns the indices of ops in topological order (with cycles: as far as possible), op_count
 * entries, owned by the fragment.
 */
FRAGI_API const uint32_t *fragi_fragment_order(struct frag_fragment *fragment);

#endif
