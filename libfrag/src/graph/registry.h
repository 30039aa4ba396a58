/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_GRAPH_REGISTRY_H
#define FRAGI_GRAPH_REGISTRY_H

#include <frag/plugin.h>
#include <graph/spec.h>

/*
 * What loaded plugins brought: operator types and composers by name. Built-in operators are plugins too, in
 * lib/frag/plugins beside libfrag; each is opened when a graph first names a type it lists. A name is looked
 * up in the fragment's extensions first, then among the built-in ones.
 */
struct fragi_registry;

struct fragi_registry_config {
	const char *const *
		library_path; /* folders; NULL-ended. FRAG_LIBRARY_PATH and the installed folder come after */
	bool allow_paths;     /* an extension may be a path (everything runs in one process) */
	const char *app_folder; /* for relative paths then */
};

FRAGI_API int fragi_registry_create(const struct fragi_registry_config *config,
				    struct fragi_registry **out_registry);
FRAGI_API void fragi_registry_destroy(struct fragi_registry *registry);

/*
 * Opens a shared object (real path inside one of the allowed folders), checks its frag_plugin_v1 and
 * registers what it lists. The same one twice is no error. Returns 0; -ENOENT (library or symbol missing:
 * names the folders searched); -EPROTO (another ABI major: names both); -EINVAL (its tables are wrong);
 * -EEXIST (a name is taken: by whom).
 */
FRAGI_API int fragi_registry_load(struct fragi_registry *registry, const char *library, struct frag_err *err);
/* NULL when unknown; fragi_alias has been applied to name. */
FRAGI_API const struct frag_op_type *fragi_registry_op(struct fragi_registry *registry, const char *name);
FRAGI_API const struct frag_composer *fragi_registry_composer(struct fragi_registry *registry,
							      const char *name);
/* Every operator type that is known, built-in ones included, for `inspect` and "did you mean". */
FRAGI_API size_t fragi_registry_ops(struct fragi_registry *registry, const struct frag_op_type ***out_types);

/* The folder that holds lib/libfrag.so.1 ("<prefix>/lib"), from where this library was loaded. */
FRAGI_API const char *fragi_library_folder(void);

#endif
