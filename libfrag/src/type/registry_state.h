/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_TYPE_REGISTRY_STATE_H
#define FRAGI_TYPE_REGISTRY_STATE_H

#include <base/strmap.h>
#include <type/registry.h>
#include <type/search_path.h>

/* What the files of the registry share. */

struct fragi_built_in_library {
	const char *path; /* real path */
	bool tried;
};

struct fragi_libraries {
	struct fragi_library **items;
	size_t count, capacity;
};

struct fragi_registry {
	struct fragi_registry *root; /* itself, or what it was made within */
	struct fragi_libraries used; /* whose names count here, but for built-in ones */
	struct fragi_strmap names[FRAGI_ENTRY_KINDS]; /* of those: its table */
	/* of the root: */
	struct fragi_arena arena;
	struct fragi_search_path search;
	struct fragi_libraries opened; /* or tried, by any registry within */
	struct fragi_strmap built_in_names[FRAGI_ENTRY_KINDS];
	struct fragi_built_in_library *built_in; /* by path */
	size_t built_in_count;
};

/* root: of the registries */
bool fragi_registry_is_built_in(const struct fragi_registry *root, const char *real);
/* Opens the library at a real path, and lets its names count in the registry. */
int fragi_registry_use(struct fragi_registry *registry, const char *real, const char *sha256,
		       const struct frag_plugin *table, struct frag_err *err);
/* The table of that name, also of a built-in library, which is opened for it; NULL: none. */
const void *fragi_registry_look_up(struct fragi_registry *registry, enum fragi_entry_kind kind,
				   const char *name);

#endif
