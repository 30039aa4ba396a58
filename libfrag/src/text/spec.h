/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_TEXT_SPEC_H
#define FRAGI_TEXT_SPEC_H

#include <base/amounts.h>
#include <base/strmap.h>
#include <base/realtime.h>
#include <frag/flow.h>
#include <frag/deadline.h>
#include <frag/timing.h>
#include <base/clock.h>
#include <text/node.h>

/*
 * An application as its texts declare it: the YAML file with --config, --set and the arguments
 * applied, `when` decided, ${} replaced. Nothing of a plugin is known here: types, ports and
 * parameters are checked later, where the plugins are. Every process parses the same source with
 * this parser, so driver and host cannot disagree.
 */

/*
 * Everything that the spec depends on. It is sent to every host unchanged. The texts are borrowed.
 */
#define FRAGI_SPEC_TEXTS_MAX 64 /* of configs, and of files */
struct fragi_spec_text {
	const char *file; /* name for messages; of `files`: the path as from_file gives it */
	const char *text;
	size_t length;
};
struct fragi_spec_source {
	struct fragi_spec_text graph;
	const struct fragi_spec_text *configs; /* --config, in order */
	size_t config_count;
	const struct fragi_spec_text *files; /* what `config: {x: {from_file: PATH}}` names */
	size_t file_count;
	const char *app_folder;  /* absolute path of the graph's folder; NULL: unknown */
	const char *const *sets; /* --set fragment.op.param=value, in order */
	size_t set_count;
	const char *const *args; /* what followed `--` */
	size_t arg_count;
};

struct fragi_spec_argument {
	const char *name;
	const char *value; /* as given, else the default; NULL: neither */
	const char *help;
	const char *default_text;
	const char *const *choices; /* ended by NULL; NULL: any */
	bool is_boolean;            /* the default is true or false; without a value it is true */
	bool is_invalid;            /* an error about its declaration was reported */
};

/* one parameter: `name: value` */
struct fragi_spec_setting {
	const char *name;
	/* from_config resolved, ${} replaced; "$pool" stays as it is */
	const struct fragi_node *value;
	const struct fragi_node *place; /* where it was written, for messages */
};

enum fragi_object_kind { FRAGI_OBJECT_PLAIN, FRAGI_OBJECT_SERVICE, FRAGI_OBJECT_LOGGER };

/*
 * A condition, a resource, or a service or data logger, which are resources too. The scope is the
 * path of an instance of a subgraph: the qualified names of it and of those that it is in, the
 * outermost first, with dots between them. NULL: the fragment itself.
 */
struct fragi_spec_object {
	const char *name; /* NULL: a condition without one */
	const char *type;
	enum fragi_object_kind kind;
	const char *id; /* of a service; NULL: none */
	bool is_shared; /* of a data logger: it is the application's, each fragment has one */
	const char *scope;
	struct fragi_spec_setting *settings;
	size_t setting_count;
	const struct fragi_node *place;
};

/* frag/timing.h: which message of an input a tick gets */
struct fragi_timing {
	enum frag_take take;
	enum frag_missing missing;
	int64_t age_ns;           /* 0: any */
	const char *default_text; /* NULL: none */
};

/* ports: {in: {capacity, policy, condition, take, age, missing, default, rate, size}} */
struct fragi_spec_port {
	const char *name;
	uint32_t capacity;
	enum frag_policy policy;
	bool no_condition;
	struct fragi_timing timing;
	int64_t rate_ns; /* the period of its messages; 0: not given */
	int64_t size;    /* messages that a tick waits for; 0: as many as flows; -1: not given */
	const struct fragi_node *timed; /* where the first key of its timing stands; NULL: none */
	const struct fragi_node *place;
};

/* $name */
struct fragi_spec_reference {
	const char *name;
	const struct fragi_node *place;
};

struct fragi_spec_end;

#define FRAGI_DEADLINE_NO_BUDGET "the budget of a deadline is 0; leave the deadline out"
#define FRAGI_DEADLINE_DROPS_TICK                                                                  \
	"on_miss: drop needs `from: acquisition`, since what a tick has sent cannot be taken back"
#define FRAGI_DEADLINE_PATH_LENGTH                                                                 \
	"a deadline has a path of 2 to %d operators; write for example `path: [camera, detect, view]`"
#define FRAGI_DEADLINE_PATH_NO_FLOW                                                                \
	"a deadline has a path from %s.%s to %s.%s, and no flow leads there"

/* deadline: BUDGET, or {budget, from, on_miss} */
struct fragi_deadline {
	int64_t budget_ns;     /* 0: none */
	bool from_acquisition; /* of the oldest message that a tick gets; else from its begin */
	enum frag_on_miss on_miss;
};

#define FRAGI_SPEC_PATH_MAX 64
/* an entry of deadlines: {path, budget, on_miss} */
struct fragi_spec_path {
	struct fragi_spec_end *ops; /* from the first to the last one; fragment NULL: the same */
	size_t op_count;
	int64_t budget_ns;
	enum frag_on_miss on_miss;
	const struct fragi_node *place;
};

/* align: {inputs, window, timeout} */
struct fragi_spec_align {
	const char **inputs;
	size_t input_count;             /* 0: all */
	int64_t window_ns, timeout_ns;  /* timeout 0: none */
	const struct fragi_node *place; /* NULL: nothing is aligned */
};

struct fragi_spec_operator {
	const char *name;
	const char *type;     /* NULL: sets parameters of an operator composed in C */
	const char *replaced; /* the type of which a test_source has outputs; NULL: it is none */
	const char *subgraph; /* an instance of one that a library lists; type is NULL */
	const char *scope;    /* as that of struct fragi_spec_object */
	struct fragi_spec_setting *settings;
	size_t setting_count;
	struct fragi_spec_object *conditions;
	size_t condition_count;
	struct fragi_spec_port *ports;
	size_t port_count;
	struct fragi_spec_reference *resources; /* by position */
	size_t resource_count;
	struct fragi_spec_align align;
	struct fragi_deadline deadline;
	enum frag_metadata_policy metadata_policy;
	int metadata;        /* 0 off, 1 on, -1 not given */
	int64_t watchdog_ns; /* 0: as the fragment says */
	int64_t rate_ns;     /* the period of its ticks, of a source; 0: not given */
	int64_t budget_ns;   /* how long compute takes; 0: not given */
	bool is_invalid;     /* after an error: nothing is known but the name */
	const struct fragi_node *place;
};

/*
 * fragment NULL inside a fragment; port NULL: left out; op NULL: of fragi_spec_parse_partial, an
 * end that was refused (and between fragments fragment NULL: not even that is known)
 */
struct fragi_spec_end {
	const char *fragment, *op, *port;
	const struct fragi_node *place;
};

/*
 * What begins a fragment: an end of flows that no one declares. And the ports of execution flows
 * (frag/flow.h): no other port begins with '_'.
 */
#define FRAGI_START_OP "<|start|>"
static inline bool fragi_port_is_execution(const char *name)
{
	return name[0] == '_';
}

struct fragi_spec_flow {
	struct fragi_spec_end from;
	struct fragi_spec_end *to;
	size_t to_count;
	uint32_t capacity;       /* 0: as the port says */
	enum frag_policy policy; /* FRAG_POLICY_DEFAULT: as the port says */
	const char *edge;        /* auto, inproc, or a transport; NULL: auto */
	bool encrypt;            /* where it leaves its process */
	bool is_dynamic;         /* its operator chooses in each tick whether it is taken */
	/* number of to[0] among all ends in `to` of this list of flows; the others of to follow */
	uint32_t order;
	const struct fragi_node *place;
};

enum fragi_scheduler_kind {
	FRAGI_SCHEDULER_EVENT_BASED, /* the default; multi_thread is accepted as an alias */
	FRAGI_SCHEDULER_GREEDY,
};

#define FRAGI_RECESSION_MS 5.0 /* as in Holoscan */

struct fragi_spec_clock {
	struct fragi_clock_config config; /* FRAGI_CLOCK_MACHINE: none is given */
	const struct fragi_node *place;   /* NULL: none is given */
};

/*
 * Reads a clock that C chooses, with the checks and sentences of `clock` in graphs. Errors go to
 * diag. Returns 0, -EINVAL or -ENOMEM.
 */
int fragi_spec_clock_from_settings(struct fragi_arena *arena, struct fragi_diag *diag,
				   const char *subject, const char *type,
				   const struct fragi_spec_setting *settings, size_t count,
				   struct fragi_clock_config *out_config);

struct fragi_spec_scheduler {
	enum fragi_scheduler_kind kind;
	uint32_t worker_thread_number;                        /* 0: min(operators, cores) */
	bool stop_on_deadlock;                                /* true */
	int64_t stop_on_deadlock_timeout_ms, max_duration_ms; /* 0: none */
	double check_recession_period_ms; /* between two checks of conditions that are polled */
	const uint32_t *pin_cores;
	size_t pin_core_count;
	bool require_pin_cores;        /* else a warning where the kernel does not allow them */
	bool pins_strictly;            /* not used */
	struct fragi_spec_clock clock; /* moved to the fragment once that is read */
};

/* Operators of a thread pool that are added in the same way. */
struct fragi_spec_pool_member {
	const char *op;
	const struct fragi_node *place;
};
struct fragi_spec_pool_entry {
	struct fragi_spec_pool_member *members;
	size_t member_count;
	bool pin_operator; /* each has a thread of its own */
	const uint32_t *pin_cores;
	size_t pin_core_count;
	struct fragi_realtime realtime; /* policy NONE: none; else pin_operator is true */
	bool best_effort;
	const struct fragi_node *place;
};

struct fragi_spec_thread_pool {
	const char *name;
	uint32_t initial_size;
	struct fragi_spec_pool_entry *entries;
	size_t entry_count;
	const struct fragi_node *place;
};

#define FRAGI_SHA256_DIGITS 64

/*
 * The library that replaces one of a fragment while the application runs is a --set of its source:
 * "swap:FRAGMENT/NAME=LIBRARY", where the graph says NAME.
 */
#define FRAGI_SPEC_SWAP "swap:"
struct fragi_spec_extension {
	const char *library;
	const char *named;  /* what the graph calls it: another one where a swap has replaced it */
	const char *sha256; /* lower-case hexadecimal digits; NULL: any file of that name */
	const struct fragi_node *place;
};

enum fragi_failure_policy {
	FRAGI_ON_FAILURE_STOP,    /* a failure of the host is that of the application */
	FRAGI_ON_FAILURE_RESTART, /* it is started again, where it was */
	FRAGI_ON_FAILURE_MIGRATE, /* the same, on another worker where its own is lost */
};

/* What becomes of a host when one of its fragments, or all of it, fails. STOP: the rest is 0. */
struct fragi_spec_on_failure {
	enum fragi_failure_policy policy;
	uint32_t intensity; /* so many restarts in any period; one more is the application's end */
	int64_t period_ns;
	int64_t backoff_ns; /* before the second one within the period; then each time twice it */
	/* MIGRATE: it runs so long after its driver was heard last; 0: for as long as it likes */
	int64_t lease_ns;
};

#define FRAGI_SPEC_INTENSITY_MAX 1000
#define FRAGI_SPEC_LEASE_MIN_NS INT64_C(1000000000)
#define FRAGI_SPEC_LEASE_MAX_NS INT64_C(3600000000000)

struct fragi_spec_tracking {
	bool is_on;
	int64_t skip, discard, threshold_ms;
	bool is_limited;
	struct fragi_spec_end *probes; /* without a port */
	size_t probe_count;
	const char *log;  /* of a file; NULL: none */
	int64_t buffered; /* entries of the log */
	bool print;       /* the results at the end */
	const struct fragi_node *place;
};

#define FRAGI_MIG_PROFILE_MAX 24 /* bytes of its name, with the 0 */

struct fragi_spec_label {
	const char *key, *value;
};

/* What a worker must have free to be given a fragment, and how much of it the fragment may take. */
struct fragi_spec_requirements {
	int64_t wanted[FRAGI_AMOUNTS]; /* 0: nothing */
	int64_t limit[FRAGI_AMOUNTS];  /* 0: none */
	bool gives_cpu; /* else the fragment counts as one core, which need not be free */
	struct fragi_spec_label *labels; /* that the worker must have */
	size_t label_count;
	/* names of fragments, of which some may not exist because `when` excludes them */
	const struct fragi_node **near, **apart;
	size_t near_count, apart_count;
	const struct fragi_node *mig;   /* "1g.10gb": an instance of that profile; NULL: none */
	const struct fragi_node *place; /* NULL: none are given */
};

struct fragi_spec_fragment {
	const char *name;
	struct fragi_spec_extension *extensions; /* the application's first, then its own */
	size_t extension_count;
	const char *compose; /* name of a composer; NULL: none */
	bool is_composed;    /* by it or by subgraphs of a library: there are other operators */
	/* and services, which follow; and those and data loggers of instances of subgraphs */
	struct fragi_spec_object *resources;
	size_t resource_count;
	struct fragi_spec_object *loggers; /* data_loggers: the application's first, then its own */
	size_t logger_count;
	bool lost_resources; /* of fragi_spec_parse_partial: there may be more */
	struct fragi_spec_operator *operators;
	size_t operator_count;
	struct fragi_spec_flow *flows;
	size_t flow_count;
	struct fragi_spec_scheduler scheduler;
	struct fragi_spec_thread_pool *thread_pools;
	size_t thread_pool_count;
	const char *host;    /* NULL: the application's one host on that worker */
	int64_t watchdog_ns; /* 0: none */
	struct fragi_spec_on_failure on_failure; /* the same in all fragments of a `host` */
	int metadata;                            /* 0 off, 1 on, -1 not given */
	struct fragi_spec_tracking tracking;     /* of this fragment alone */
	struct fragi_spec_clock clock;           /* the same */
	struct fragi_spec_path *deadlines;       /* of paths inside it */
	size_t deadline_count;
	enum frag_metadata_policy metadata_policy;
	struct fragi_spec_requirements requirements;
	const struct fragi_node *place;
};

/* who may write or read a variable; op NULL: every operator of the fragment */
struct fragi_spec_party {
	const char *fragment, *op;
	const struct fragi_node *place;
};

#define FRAGI_SPEC_VARIABLES_MAX 256
#define FRAGI_SPEC_SERVICES_MAX 256 /* of the application */

struct fragi_spec_variable {
	const char *name;
	const char *path;        /* type path; NULL: memory, described by what follows */
	struct frag_dtype dtype; /* string: u8, and one dimension of -1 */
	int32_t ndim;
	int64_t shape[FRAG_TENSOR_NDIM_MAX]; /* -1: the writer decides */
	bool is_dynamic;                     /* there is a -1 */
	struct fragi_spec_party writer;      /* fragment NULL: none, a path from outside */
	struct fragi_spec_party *readers;
	size_t reader_count;
	const struct fragi_node *place;
};

struct fragi_spec_shared;

struct fragi_spec {
	struct fragi_arena arena;
	/* what owns all that this spec points to, but for what is in arena; NULL: this spec does */
	struct fragi_spec_shared *shared;
	const char *application;
	const char *app_folder; /* of the graph file, as the source gives it; NULL: unknown */
	/* --help is among the arguments: nothing below `arguments` is filled in */
	bool help_wanted;
	struct fragi_spec_argument *arguments;
	size_t argument_count;
	const struct fragi_node *config; /* merged; NULL: none */
	/* as declared, with arguments in place, for instances that composers make; NULL: none */
	const struct fragi_node *subgraphs;
	bool has_extensions; /* in any fragment: libraries may list subgraphs too */
	/* in the order of the file, without those that `when` excludes */
	struct fragi_spec_fragment *fragments;
	size_t fragment_count;
	struct fragi_spec_flow *flows; /* between fragments */
	size_t flow_count;
	struct fragi_spec_object *loggers; /* of the application; each fragment has them too */
	size_t logger_count;
	struct fragi_spec_variable *variables; /* only whole ones, also of a partial spec */
	size_t variable_count;
	struct fragi_spec_object *services; /* of the application */
	size_t service_count;
	struct fragi_spec_extension *extensions; /* of all fragments, for the services */
	size_t extension_count;
	bool metadata;
	enum frag_metadata_policy metadata_policy;
	struct fragi_spec_clock clock;       /* of all fragments together */
	struct fragi_spec_tracking tracking; /* the same */
	struct fragi_spec_path *deadlines;   /* of paths through any fragments */
	size_t deadline_count;
	struct fragi_spec_tracking set_tracking; /* of the command line; merged into `tracking` */
	/* about texts that are valid, for fragi_spec_log_remarks: as warnings, as information */
	struct fragi_diag warnings, remarks;
};

/*
 * Parses and checks everything that can be checked without plugins; all errors of a source in one
 * go, with file:line:column and "did you mean". Bounded in time and memory. Keys of the schema that
 * are not built are refused with "not built yet". Opens no file. The spec holds copies: the source
 * may go. While a spec of the same source is there, nothing is parsed: what both point to is there
 * once, and nobody changes it; the members of struct fragi_spec are each one's own. Any thread may
 * call it. Returns 0 and the spec; -EINVAL with errors in diag; -ENOMEM.
 */
FRAGI_API int fragi_spec_parse(const struct fragi_spec_source *source, struct fragi_diag *diag,
			       struct fragi_spec **out_spec);
/*
 * The same, but with -EINVAL *out_spec is the valid part, if there is any. It is only for finding
 * further errors and must never be run.
 */
FRAGI_API int fragi_spec_parse_partial(const struct fragi_spec_source *source,
				       struct fragi_diag *diag, struct fragi_spec **out_spec);
FRAGI_API void fragi_spec_destroy(struct fragi_spec *spec); /* NULL is accepted */
/*
 * Logs what is odd about the texts: a file of --config that looks misunderstood, a section that is
 * not obeyed yet. One program of a run does so, that which the person started.
 */
FRAGI_API void fragi_spec_log_remarks(const struct fragi_spec *spec);

/* The first module in Python that a fragment loads; NULL: it loads none. */
FRAGI_API const char *fragi_spec_python_module(const struct fragi_spec_fragment *fragment);
/*
 * Whether one worker runs both fragments in one host: they name the same one, or none, are not in
 * Python, have no MIG instance, and agree about what becomes of it when it fails.
 */
FRAGI_API bool fragi_spec_share_host(const struct fragi_spec_fragment *a,
				     const struct fragi_spec_fragment *b);
/* Whether it is the name of a profile of MIG, as NVIDIA writes them: "3g.40gb", "1g.10gb+me". */
FRAGI_API bool fragi_mig_profile_is_valid(const char *profile);
FRAGI_API bool fragi_spec_same_on_failure(const struct fragi_spec_on_failure *a,
					  const struct fragi_spec_on_failure *b);

/* Which fragments are to run on one worker, since `near` says so, directly or over others. */
struct fragi_spec_group {
	size_t *of; /* of each fragment: the index of the first one of its group */
	struct fragi_strmap by_name;
	struct fragi_arena arena;
};
/* *out is zeroed before. Returns 0 or -ENOMEM; fini in both cases. */
FRAGI_API int fragi_spec_group(const struct fragi_spec *spec, struct fragi_spec_group *out);
/* The index of a fragment; SIZE_MAX: there is none. */
FRAGI_API size_t fragi_spec_group_index(const struct fragi_spec_group *group, const char *fragment);
/*
 * Whether both fragments (by their numbers) may run on one worker, by their labels and by `near`
 * and `apart` of all: a worker has each label once.
 */
FRAGI_API bool fragi_spec_may_meet(const struct fragi_spec *spec,
				   const struct fragi_spec_group *group, size_t a, size_t b);
FRAGI_API void fragi_spec_group_fini(struct fragi_spec_group *group);
/* Whether a worker can have such a label. */
FRAGI_API bool fragi_label_is_valid(const char *key, const char *value);

/* Returns the text for `-- --help`: a line for each declared argument. Owned by the spec. */
FRAGI_API const char *fragi_spec_arguments_help(struct fragi_spec *spec);
/* Returns the value of a declared argument; NULL when there is none of that name. */
FRAGI_API const char *fragi_spec_argument(const struct fragi_spec *spec, const char *name);

/*
 * Reads files into a source for fragi_spec_parse: the graph (path) and the configs, relative to the
 * working folder, and what from_file names, relative to the graph's folder. Without configs,
 * FRAG_CONFIG_PATH names one. What is wrong inside the texts is left to fragi_spec_parse. The
 * strings of sets and args are borrowed. Free with fragi_source_fini. Returns 0; -ENOENT and the
 * like with a sentence; -EFBIG beyond FRAGI_SOURCE_MAX; *out_source is untouched on failure.
 */
struct fragi_source {
	struct fragi_spec_source source;
	struct fragi_arena arena;
};
/* The same for a graph that is a text in memory, copied; file: what messages call it. */
FRAGI_API int fragi_source_read_text(struct fragi_source *out_source, const char *text,
				     const char *file, const char *const *configs,
				     size_t config_count, const char *const *sets, size_t set_count,
				     const char *const *args, size_t arg_count,
				     struct frag_err *err);
FRAGI_API int fragi_source_read(struct fragi_source *out_source, const char *path,
				const char *const *configs, size_t config_count,
				const char *const *sets, size_t set_count, const char *const *args,
				size_t arg_count, struct frag_err *err);
FRAGI_API void fragi_source_fini(struct fragi_source *source);
/*
 * Convert a whole source to a block of bytes and back, to be sent. pack allocates the block with
 * malloc. unpack copies what it needs, takes FRAGI_SOURCE_MAX bytes at most, and refuses malformed
 * input with -EBADMSG.
 */
#define FRAGI_SOURCE_MAX (4u << 20)
FRAGI_API int fragi_source_pack(const struct fragi_spec_source *source, void **out_bytes,
				size_t *out_size);
FRAGI_API int fragi_source_unpack(const void *bytes, size_t size, struct fragi_source *out_source);

#endif
