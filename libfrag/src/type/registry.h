/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_TYPE_REGISTRY_H
#define FRAGI_TYPE_REGISTRY_H

#include <frag/plugin.h>
#include <text/spec.h>

/*
 * What plugins have registered: operator types and composers by name. Built-in operators are
 * plugins too, in lib/frag/plugins beside libfrag. One of these is opened only when a graph names a
 * type that no extension has and that occurs in the file of this library. A name is looked up in
 * the extensions first, then in the built-in libraries. A library stays open until the process
 * ends, because types of values that it registered may be in use. Not thread-safe.
 */
struct fragi_registry;

/* Which paths a graph may name as libraries, beside the names of files in the folders. */
enum fragi_library_paths {
	FRAGI_LIBRARY_PATHS_NONE,
	FRAGI_LIBRARY_PATHS_IN_APP, /* relative ones that stay inside the app folder */
	FRAGI_LIBRARY_PATHS_ANY,    /* who wrote the graph is the user who runs it */
};

struct fragi_registry_config {
	/*
	 * Folders, NULL-ended; NULL: none. FRAG_LIBRARY_PATH and the installed folders
	 * (lib/frag/extensions, lib/frag/plugins) are searched after them.
	 */
	const char *const *library_path;
	const char *library_folders; /* more of them, after these: DIR:DIR; NULL: none */
	enum fragi_library_paths paths;
	const char *app_folder; /* for relative paths; NULL: unknown */
	/* only what nobody but this user and root can change (base/trusted_path.h) is loaded */
	bool trusted_only;
};

FRAGI_API int fragi_registry_create(const struct fragi_registry_config *config,
				    struct fragi_registry **out_registry);
/*
 * One for a fragment: what is loaded into it counts there only, so that a fragment finds the same
 * names wherever others run. It shares with outer the folders, what was opened, what is built in,
 * and what outer itself has loaded. outer stays until it is destroyed. Returns 0 or -ENOMEM.
 */
FRAGI_API int fragi_registry_create_within(struct fragi_registry *outer,
					   struct fragi_registry **out_registry);
FRAGI_API void fragi_registry_destroy(struct fragi_registry *registry);

/*
 * Opens a shared object (whose real path is inside one of the allowed folders), checks its
 * frag_plugin_v1 and registers what it lists. Loading it twice is no error.
 * - sha256: the file has to have this one (FRAGI_SHA256_DIGITS lower-case digits), and what is
 *   loaded are the bytes that were hashed; NULL: any
 * Returns 0; -ENOENT (library or symbol missing; the error lists the folders searched); -EBADMSG
 * (another sha256, or it was loaded before without a check); -EPROTO (another ABI major; the error
 * has both numbers); -EINVAL (its tables are wrong); -EEXIST (a name is taken; the error says by
 * which library).
 */
FRAGI_API int fragi_registry_load_pinned(struct fragi_registry *registry, const char *library,
					 const char *sha256, struct frag_err *err);
static inline int fragi_registry_load(struct fragi_registry *registry, const char *library,
				      struct frag_err *err)
{
	return fragi_registry_load_pinned(registry, library, NULL, err);
}
/*
 * Registers a plugin that is linked into the program, as a library of that name (no path). Returns
 * as load.
 */
FRAGI_API int fragi_registry_add(struct fragi_registry *registry, const char *name,
				 const struct frag_plugin *plugin, struct frag_err *err);
/* Registers what the program has added (frag_plugin_add). Returns as add. */
FRAGI_API int fragi_registry_add_linked(struct fragi_registry *registry, struct frag_err *err);
/*
 * What is registered under a name, also one of Holoscan (text/holoscan.h). NULL when there is
 * nothing: err then says so, with a near name or all valid ones, and which built-in library could
 * not be opened and why.
 */
FRAGI_API const struct frag_op_type *fragi_registry_op(struct fragi_registry *registry,
						       const char *name, struct frag_err *err);
/*
 * Finds the library that a graph must list under extensions to name this operator type, and loads
 * it: the first one of the search path that has the type.
 * - out_library: receives its file's name, owned by the registry; NULL: the type is built in, or
 *   its library is loaded already
 * Returns 0; -ENOENT: none has it, or it cannot be loaded.
 */
FRAGI_API int fragi_registry_discover(struct fragi_registry *registry, const char *name,
				      const char **out_library);
/* Loads a library of the folders that has a type of that name, of any kind, if there is one. */
FRAGI_API void fragi_registry_seek(struct fragi_registry *registry, const char *name);
FRAGI_API const struct frag_composer *
fragi_registry_composer(struct fragi_registry *registry, const char *name, struct frag_err *err);
FRAGI_API const struct frag_subgraph_type *
fragi_registry_subgraph(struct fragi_registry *registry, const char *name, struct frag_err *err);

/*
 * Returns the condition type that a library registered under this name; NULL: none. built_in: also
 * search the built-in libraries.
 */
FRAGI_API const struct frag_condition_type *
fragi_registry_condition(struct fragi_registry *registry, const char *name, bool built_in);
/* The same for a resource type. */
FRAGI_API const struct frag_resource_type *fragi_registry_resource(struct fragi_registry *registry,
								   const char *name, bool built_in);

/* The same for a type of data logger. */
FRAGI_API const struct frag_data_logger_type *
fragi_registry_data_logger(struct fragi_registry *registry, const char *name, bool built_in);

/*
 * The type of values of that name, unless only libraries that are not loaded into this registry
 * have it. NULL: there is none.
 */
FRAGI_API const struct frag_type *fragi_registry_type(struct fragi_registry *registry,
						      const char *name);

/* The kinds of names that a library brings. */
enum fragi_entry_kind {
	FRAGI_ENTRY_OP,
	FRAGI_ENTRY_CONDITION,
	FRAGI_ENTRY_RESOURCE,
	FRAGI_ENTRY_DATA_LOGGER,
	FRAGI_ENTRY_COMPOSER,
	FRAGI_ENTRY_SUBGRAPH,
	FRAGI_ENTRY_KINDS,
};
#define FRAGI_ENTRY_NAMES_MAX 512
/*
 * Lists the names of a kind that count in the registry, for advice: those of built-in libraries,
 * all of which are opened, and of those that it has loaded. Returns how many of `names`, which has
 * room for FRAGI_ENTRY_NAMES_MAX, are taken, the first `count` of which were before.
 */
FRAGI_API size_t fragi_registry_names(struct fragi_registry *registry, enum fragi_entry_kind kind,
				      const char **names, size_t count);

/* Returns where a type or composer came from, for people. */
struct fragi_library {
	const char *path;   /* real path */
	const char *file;   /* its last component */
	const char *sha256; /* of what was loaded, as the graph states it; NULL: not checked */
	bool built_in;
	const char *name, *version; /* of the plugin; NULL: could not be opened */
	const char *error;          /* why it is not open; NULL: it is open */
	int error_code;
	const struct frag_op_type **ops; /* checked copies */
	size_t op_count;
	const struct frag_condition_type **conditions; /* checked copies */
	size_t condition_count;
	const struct frag_resource_type **resources; /* checked copies */
	size_t resource_count;
	const struct frag_data_logger_type **data_loggers; /* checked copies */
	size_t data_logger_count;
	struct frag_composer *composers;
	size_t composer_count;
	struct frag_subgraph_type *subgraphs;
	size_t subgraph_count;
	const struct frag_type *const *types;
	size_t type_count;
};
/*
 * All that are open or were tried (of a registry within another one: that were loaded into it);
 * with built_in all built-in ones are tried first. For `inspect`.
 */
FRAGI_API const struct fragi_library *const *
fragi_registry_libraries(struct fragi_registry *registry, bool built_in, size_t *out_count);

/*
 * Checks an operator type's table, whatever libfrag it was compiled for, and copies it into arena
 * with tables of this libfrag's sizes. Returns 0, -EINVAL with a sentence, -ENOMEM.
 */
FRAGI_API int fragi_op_type_copy(struct fragi_arena *arena, const struct frag_op_type *type,
				 const struct frag_op_type **out_type, struct frag_err *err);

/* The same for a condition type. */
int fragi_condition_type_copy(struct fragi_arena *arena, const struct frag_condition_type *type,
			      const struct frag_condition_type **out_type, struct frag_err *err);

/* The same for a resource type. */
int fragi_resource_type_copy(struct fragi_arena *arena, const struct frag_resource_type *type,
			     const struct frag_resource_type **out_type, struct frag_err *err);

/* The same for a type of data logger. */
int fragi_data_logger_type_copy(struct fragi_arena *arena, const struct frag_data_logger_type *type,
				const struct frag_data_logger_type **out_type,
				struct frag_err *err);

/* Copies one entry of a port table in this libfrag's size. */
int fragi_port_check(const struct frag_port *port, struct frag_err *err);

/* Returns the folder from which libfrag.so.1 was loaded ("<prefix>/lib"). */
FRAGI_API const char *fragi_library_folder(void);

#endif
