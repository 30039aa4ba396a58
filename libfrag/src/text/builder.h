/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_TEXT_BUILDER_H
#define FRAGI_TEXT_BUILDER_H

#include <base/strmap.h>
#include <base/units.h>
#include <text/holoscan.h>
#include <text/spec.h>

/*
 * What the files of the spec share while one is built. Nobody returns early: a function that meets
 * an error adds it to diag and leaves its output at the default, so that all errors of a source
 * come out in one go; short memory sets no_memory. The order: arguments, when, config, ${}, then
 * what is left is read.
 */
#define FRAGI_SPEC_MEMORY_MAX ((size_t)256 << 20) /* bytes of one spec's arena */
#define FRAGI_SPEC_REPLACED_MAX (16u << 20)       /* bytes of texts made by ${} */
#define FRAGI_SPEC_SETTINGS_MAX 1000000           /* from_config may name one map many times */
#define FRAGI_THREADS_MAX 1024

struct fragi_set_group; /* the --set of one operator */

/* The keys at the top of one of source->configs, which merging takes apart. */
struct fragi_config_keys {
	const struct fragi_node **keys;
	size_t count;
};

struct fragi_builder {
	const struct fragi_spec_source *source;
	struct fragi_spec *spec;
	struct fragi_diag *diag;
	size_t errors_before; /* in diag, before this spec */
	bool no_memory;
	struct fragi_node *root;       /* the graph, a map */
	struct fragi_node *config;     /* merged; NULL: none */
	bool config_refused;           /* at least a part of it, with an error */
	struct fragi_strmap arguments; /* name: struct fragi_spec_argument */
	/* "fragment" or "fragment.operator": the node with the `when` */
	struct fragi_strmap excluded;
	struct fragi_strmap fragments; /* name: its node, or &root */
	/* fragments with a composer, whose operators are not known here */
	struct fragi_strmap composed;
	struct fragi_strmap operators;         /* "fragment.operator": its node */
	struct fragi_strmap configs;           /* keys of config: their nodes */
	struct fragi_strmap configs_read;      /* those that a from_config names: their nodes */
	struct fragi_config_keys *config_keys; /* [source->config_count] */
	struct fragi_strmap sets;              /* "fragment.operator": struct fragi_set_group */
	struct fragi_set_group *first_set, *last_set;
	struct fragi_strmap
		pinned; /* library: the fragi_spec_extension that first states a sha256 */
	struct fragi_strmap subgraphs; /* name: struct fragi_subgraph */
	/*
	 * "subgraphs.name.operator" and "name$resource": its node; "name:port": struct
	 * fragi_subgraph_port
	 */
	struct fragi_strmap subgraph_names;
	struct fragi_strmap instances; /* "fragment.name": struct fragi_subgraph_instance */
	/* names that ${} leaves as they are: a map of parameters of a subgraph; NULL: none */
	const struct fragi_node *locals;
	const char *outer_scope; /* the instance in which all is made; NULL: none */
	size_t subgraph_operators, subgraph_nodes; /* made for instances */
	size_t setting_count, replaced_bytes;
};

/*
 * Of what an instance of a subgraph has: an operator, a resource, a service or a data logger, and
 * the values in them.
 */
struct fragi_origin {
	const char *scope; /* the path of the instance */
	enum fragi_object_kind kind;
	const struct fragi_node *config; /* its own; NULL: none */
};

/* builder.c */
void fragi_builder_init(struct fragi_builder *builder, const struct fragi_spec_source *source,
			struct fragi_spec *spec, struct fragi_diag *diag);
void fragi_builder_fini(struct fragi_builder *builder); /* not the spec */
/*
 * Ends one that reads a part of a graph into a spec of its own, which has had arena: gives that
 * back with all that was read. Returns 0, -EINVAL (there were errors) or -ENOMEM.
 */
int fragi_builder_end_part(struct fragi_builder *builder, struct fragi_arena *arena);
bool fragi_builder_failed(const struct fragi_builder *builder);
/* Returns zeroed memory from the spec's arena. NULL: out of memory (recorded). */
void *fragi_builder_alloc(struct fragi_builder *builder, size_t count, size_t size);
char *fragi_builder_strdup(struct fragi_builder *builder, const char *text);
/* Copies a text without the blanks around it. */
char *fragi_builder_trimmed(struct fragi_builder *builder, const char *text, size_t length);
/* The path of a file that the graph names: a relative one starts in the graph's folder. */
char *fragi_builder_path(struct fragi_builder *builder, const char *path);
/* "f.o" */
char *fragi_builder_join(struct fragi_builder *builder, const char *fragment, const char *op);
/* Adds a key unless the map has it. A failed allocation is recorded. */
void fragi_builder_note(struct fragi_builder *builder, struct fragi_strmap *map, const char *key,
			const void *value);
#define fragi_builder_error(builder, place, subject, ...)                                          \
	((void)fragi_node_error((builder)->diag, place, subject, __VA_ARGS__))

/* Adds what fragi_spec_log_remarks logs, as a warning or as information. */
#define fragi_builder_warn(builder, place, subject, ...)                                           \
	((void)fragi_node_error(&(builder)->spec->warnings, place, subject, __VA_ARGS__))
#define fragi_builder_remark(builder, place, subject, ...)                                         \
	((void)fragi_node_error(&(builder)->spec->remarks, place, subject, __VA_ARGS__))

/* As fragi_advise; the second takes the keys of a map as names. Returns "" when diag is full. */
const char *fragi_builder_advise(const struct fragi_builder *builder, char *out, size_t size,
				 const char *word, const char *what, const char *const *names,
				 size_t count);
const char *fragi_builder_advise_keys(const struct fragi_builder *builder, char *out, size_t size,
				      const char *word, const char *what,
				      const struct fragi_node *map);

/*
 * fields.c: reads sections, which are maps with known keys, and values of one kind. `what` names
 * the value in an error.
 */
enum fragi_key_kind {
	FRAGI_KEY_OTHER,   /* `read` reads it; NULL: the code of the section does */
	FRAGI_KEY_UNBUILT, /* is refused with "not built yet" */
	FRAGI_KEY_BOOL,
	FRAGI_KEY_INTEGER,     /* from min to max */
	FRAGI_KEY_NUMBER,      /* a double, from least to most */
	FRAGI_KEY_DURATION,    /* an int64_t, in nanoseconds */
	FRAGI_KEY_TIME,        /* the same, and not 0 */
	FRAGI_KEY_NANOSECONDS, /* the same as DURATION; a number without a unit is in nanoseconds */
	FRAGI_KEY_WORD, /* an enum or a bool: min is the first word; max: they repeat, or 0 */
	FRAGI_KEY_TEXT,
	FRAGI_KEY_NAME,
};
/* node: the value, NULL where it is not given; out: the member, or the section's struct */
typedef void fragi_read_fn(struct fragi_builder *builder, struct fragi_node *node,
			   const char *subject, void *out);
struct fragi_key {
	const char *name;
	enum fragi_key_kind kind;
	uint16_t offset, size; /* of its member of the section's struct: FRAGI_MEMBER */
	union {
		struct {
			int64_t min, max, usual; /* usual: what it is when it is not given */
		};
		struct {
			double least, most, normal; /* the same */
		};
	};
	const char *const *words; /* ended by NULL */
	const char *what;         /* in errors; NULL: name */
	const char *missing;      /* the error when it is not given; NULL: it may be left out */
	const char *zero;         /* TIME: the error when it is 0; NULL: the usual one */
	const char *unit;         /* NUMBER: "a number UNIT from ..."; NULL: none */
	fragi_read_fn *read;      /* OTHER */
};
#define FRAGI_MEMBER(type, m) .offset = offsetof(type, m), .size = sizeof(((type *)NULL)->m)
#define FRAGI_KEYS(keys) keys, FRAG_COUNT_OF(keys)
/*
 * Refuses keys that are not among these. Where it is plain which one was meant, that counts as
 * given (is_reported).
 */
void fragi_keys_check(struct fragi_builder *builder, struct fragi_node *map, const char *subject,
		      const struct fragi_key *keys, size_t count);
/* Sets what has a usual value. */
void fragi_keys_default(const struct fragi_key *keys, size_t count, void *out);
/* Reads the values that map gives. What is refused or not given is left as it is. */
void fragi_keys_read(struct fragi_builder *builder, const struct fragi_node *map,
		     const char *subject, const struct fragi_key *keys, size_t count, void *out);
/* Checks the keys of a section and reads it. Returns false when it is no map, as fragi_read_map. */
bool fragi_section_read(struct fragi_builder *builder, struct fragi_node *node, const char *subject,
			const char *what, const struct fragi_key *keys, size_t count, void *out);
/* Reads one value; node NULL: it is not given. */
void fragi_key_read(struct fragi_builder *builder, struct fragi_node *node, const char *subject,
		    const struct fragi_key *key, void *out);
/*
 * Returns node if it is of the kind; NULL when it is absent or empty, or of another kind (an
 * error).
 */
struct fragi_node *fragi_read_map(struct fragi_builder *builder, struct fragi_node *node,
				  const char *subject, const char *what);
struct fragi_node *fragi_read_list(struct fragi_builder *builder, struct fragi_node *node,
				   const char *subject, const char *what);
/*
 * Returns NULL when it is absent, or is not a single value or not a name (an error, unless one was
 * reported).
 */
const char *fragi_read_text(struct fragi_builder *builder, const struct fragi_node *node,
			    const char *subject, const char *what);
const char *fragi_read_name(struct fragi_builder *builder, const struct fragi_node *node,
			    const char *subject, const char *what);
/* Returns whether *out was set; false without an error when it is absent. */
bool fragi_read_integer(struct fragi_builder *builder, const struct fragi_node *node,
			const char *subject, const char *what, int64_t min, int64_t max,
			int64_t *out);
bool fragi_read_bool(struct fragi_builder *builder, const struct fragi_node *node,
		     const char *subject, const char *what, bool *out);
bool fragi_read_duration(struct fragi_builder *builder, const struct fragi_node *node,
			 const char *subject, const char *what, int64_t *out_ns);
/*
 * Reads the type of a section, "clock" for example: a word, or Holoscan's name for it. Returns as
 * fragi_read_word.
 */
int fragi_read_section_type(struct fragi_builder *builder, const struct fragi_node *node,
			    const char *subject, const char *what, enum fragi_holoscan_kind kind,
			    const char *section, const char *const *words, size_t count);
/* Returns the index of the word; -1 when it is absent, or not one of the words (an error). */
int fragi_read_word(struct fragi_builder *builder, const struct fragi_node *node,
		    const char *subject, const char *what, const char *const *words, size_t count);
bool fragi_check_name(struct fragi_builder *builder, const struct fragi_node *place,
		      const char *subject, const char *what, const char *name);

/* arguments.c */
void fragi_arguments_declare(struct fragi_builder *builder, struct fragi_node *map);
void fragi_arguments_give(struct fragi_builder *builder); /* the words after `--` */
/* Returns NULL, with an error unless the declaration may have been refused. */
const struct fragi_spec_argument *fragi_arguments_find(struct fragi_builder *builder,
						       const struct fragi_node *place,
						       const char *name);
/* replace.c: replaces ${name} by the argument's value in every scalar at and below node. */
void fragi_replace(struct fragi_builder *builder, struct fragi_node *node);

/* when.c: removes from the graph what `when` excludes, and records its name. */
void fragi_when_prune(struct fragi_builder *builder, const char *application);
/* The same for the map of a subgraph; subject: "subgraphs.NAME". */
void fragi_when_prune_subgraph(struct fragi_builder *builder, struct fragi_node *map,
			       const char *subject);

/* config.c */
/* Merges the configs and replaces ${} in them. */
void fragi_config_merge(struct fragi_builder *builder, struct fragi_node *own);
/*
 * Parses the text that came with the source for a from_file. Returns NULL after an error, or when
 * memory is short.
 */
struct fragi_node *fragi_builder_parse_file(struct fragi_builder *builder,
					    const struct fragi_node *path, const char *subject);
/* Calls `found` for each {from_file: path} in config; NULL: there is none. */
void fragi_config_each_file(struct fragi_builder *builder, struct fragi_node *config,
			    void (*found)(void *context, struct fragi_node *map,
					  const struct fragi_node *path),
			    void *context);
/* The same for the subgraphs that have a file of their own, and for their configurations. */
void fragi_subgraphs_each_file(struct fragi_builder *builder,
			       void (*found)(void *context, struct fragi_node *map,
					     const struct fragi_node *path),
			       void *context);
/* Inserts the contents of source->files, then indexes the keys. */
void fragi_config_attach_files(struct fragi_builder *builder);
/* Inserts them into the configuration of a subgraph. */
void fragi_config_attach(struct fragi_builder *builder, struct fragi_node *config);
/*
 * Returns the value at a dotted path, in the configuration of the subgraph that names it if that
 * has the first key, else in the application's; NULL when there is none, with an error unless it
 * may be missing.
 */
const struct fragi_node *fragi_config_find(struct fragi_builder *builder,
					   const struct fragi_node *path, const char *subject,
					   bool may_be_missing);
/* Remarks on files of --config whose keys nothing reads. */
void fragi_config_remark(struct fragi_builder *builder);

/* settings.c */
/* grows on the heap */
struct fragi_settings {
	struct fragi_spec_setting *items;
	size_t count, capacity;
	struct fragi_strmap index; /* name: its index + 1 */
};
/* Adds the keys of map that are not reserved, after those of its from_config. */
void fragi_settings_read(struct fragi_builder *builder, const struct fragi_node *map,
			 const char *subject, const char *const *reserved, size_t reserved_count,
			 struct fragi_settings *settings);
/*
 * The map with what its from_config names, which what stands in the map itself goes before; the map
 * where it has none.
 */
struct fragi_node *fragi_settings_merge(struct fragi_builder *builder, struct fragi_node *map,
					const char *subject);
void fragi_settings_put(struct fragi_builder *builder, struct fragi_settings *settings,
			const char *name, const struct fragi_node *value,
			const struct fragi_node *place, const char *subject);
/* Moves the settings into the spec. */
void fragi_settings_end(struct fragi_builder *builder, struct fragi_settings *settings,
			struct fragi_spec_setting **out_items, size_t *out_count);

/* sets.c: --set fragment.operator.parameter=value */
void fragi_sets_read(struct fragi_builder *builder);
/* Adds the settings of one operator, and marks them as used. */
void fragi_sets_apply(struct fragi_builder *builder, const char *path,
		      struct fragi_settings *settings);
size_t fragi_sets_left(struct fragi_builder *builder, const char *fragment);
/* Adds an operator without a type for each operator of the fragment that only --set names. */
size_t fragi_sets_make(struct fragi_builder *builder, const char *fragment,
		       struct fragi_spec_operator *ops);
void fragi_sets_check(struct fragi_builder *builder); /* Reports each --set that was not used. */

/* spec_operator.c */
extern const char *const fragi_metadata_policies[];
/* spec_port.c, spec_deadline.c: of an operator; references: [$pool, $other] */
fragi_read_fn fragi_spec_read_ports, fragi_spec_read_references, fragi_spec_read_align,
	fragi_spec_read_deadline;
/* of a fragment; scheduler: also of one that has none */
fragi_read_fn fragi_spec_read_operators, fragi_spec_read_scheduler, fragi_spec_read_thread_pools,
	fragi_spec_read_on_failure, fragi_spec_read_requirements;
/* of a fragment and of the application */
fragi_read_fn fragi_spec_read_clock, fragi_spec_read_tracking;
fragi_read_fn fragi_spec_read_policy; /* spec_flow.c: of a flow and of a port */
/*
 * Finds an operator that the node names; fragment NULL: as fragment.operator. Returns 1; 0: `when`
 * excludes it; -1: there is none.
 */
int fragi_spec_find_op(struct fragi_builder *builder, const struct fragi_node *node,
		       const char *subject, const char *fragment, struct fragi_spec_end *out);
/* of paths; fragment NULL: through any */
void fragi_spec_read_deadlines(struct fragi_builder *builder, struct fragi_node *node,
			       const char *fragment, struct fragi_spec_path **out_paths,
			       size_t *out_count);
/* spec_resource.c; a type's name, Holoscan's names of built ones put into ours */
const char *fragi_spec_read_type(struct fragi_builder *builder, const struct fragi_node *node,
				 const char *subject, enum fragi_holoscan_kind kind);
/*
 * data_loggers. application: a fragment that has the loggers of the application too, before its
 * own; NULL: none.
 */
void fragi_spec_read_loggers(struct fragi_builder *builder, struct fragi_node *map,
			     const char *subject, const struct fragi_spec *application,
			     struct fragi_spec_object **out_loggers, size_t *out_count);
void fragi_spec_read_resources(struct fragi_builder *builder, struct fragi_node *map,
			       struct fragi_node *services, struct fragi_spec_fragment *fragment);
/* Those of the application. */
void fragi_spec_read_services(struct fragi_builder *builder, struct fragi_node *map);
/* spec_flow.c; fragment NULL: between fragments */
void fragi_spec_read_flows(struct fragi_builder *builder, struct fragi_node *list,
			   const char *fragment, struct fragi_spec_flow **out_flows,
			   size_t *out_count);
/*
 * Whether an unknown name may be one that the map lacks because of an error that was reported. A
 * name that looks like a valid one of the map is not.
 */
bool fragi_spec_may_be_lost(const struct fragi_builder *builder, const struct fragi_node *map,
			    const char *name);
/* spec_variable.c; after the fragments */
void fragi_spec_read_variables(struct fragi_builder *builder, struct fragi_node *map);
/* spec_scheduler.c */
/* Reads a list of numbers of cores. */
void fragi_spec_read_cores(struct fragi_builder *builder, struct fragi_node *list,
			   const char *subject, const uint32_t **out_cores, size_t *out_count);
/* spec_fragment.c */
void fragi_spec_read_fragment(struct fragi_builder *builder, struct fragi_node *map,
			      const char *name, struct fragi_spec_extension *extensions,
			      size_t extension_count, struct fragi_spec_fragment *out_fragment);
/* spec_on_failure.c; once all fragments and variables are read */
void fragi_spec_check_hosts(struct fragi_builder *builder);
/* spec_requirements.c; once all fragments are read */
void fragi_spec_check_requirements(struct fragi_builder *builder);
/* spec_tracking.c; set: returns whether this is no parameter, but --track; merge: at the end */
bool fragi_spec_set_tracking(struct fragi_builder *builder, const char *set);
void fragi_spec_merge_tracking(struct fragi_builder *builder);
/* spec_clock.c; at the end */
void fragi_spec_merge_clocks(struct fragi_builder *builder);
/*
 * spec_test.c: what fragctl test sets:
 * - clock=KIND, of all fragments; duration=MS, the same
 * - input:FRAGMENT.OPERATOR.PORT=FILE: the operator is replaced by a test_source
 * - output:FRAGMENT.OPERATOR.PORT=FILE: a test_sink is added
 * Whether it is one of them; apply: at the end.
 */
bool fragi_spec_is_test_set(const char *set);
void fragi_spec_apply_test(struct fragi_builder *builder);
/* spec_extension.c; spread: once all fragments are read */
void fragi_spec_read_extensions(struct fragi_builder *builder, struct fragi_node *list,
				const char *subject, struct fragi_spec_extension *before,
				size_t before_count, struct fragi_spec_extension **out_extensions,
				size_t *out_count);
void fragi_spec_spread_sha256(struct fragi_builder *builder);
bool fragi_spec_is_swap_set(const char *set);
/* Libraries that a swap has replaced (FRAGI_SPEC_SWAP). */
void fragi_spec_swap_extensions(struct fragi_builder *builder);

/* prune.c: marks what is incomplete, and removes what has no name of its own */
void fragi_spec_prune(struct fragi_spec *spec);
/* Reads a source into a spec of its own; else as fragi_spec_parse, or fragi_spec_parse_partial. */
int fragi_spec_read(const struct fragi_spec_source *source, struct fragi_diag *diag,
		    bool keep_partial, struct fragi_spec **out_spec);

/* spec.c: parses the texts up to the merged config. Also used to read a source. */
void fragi_builder_begin(struct fragi_builder *builder);

#endif
