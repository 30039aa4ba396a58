// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <text/holoscan.h>
#include <type/library.h>
#include <type/registry_state.h>

static int is_library(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name);

	return entry->d_name[0] != '.' && length > 3 &&
	       strcmp(entry->d_name + length - 3, ".so") == 0;
}

/* kind FRAGI_ENTRY_KINDS: of any kind */
static bool has(const struct fragi_registry *registry, enum fragi_entry_kind kind, const char *name)
{
	for (int k = 0; k < FRAGI_ENTRY_KINDS; k++)
		if ((kind == FRAGI_ENTRY_KINDS || (int)kind == k) &&
		    fragi_strmap_get(&registry->names[k], name) != NULL)
			return true;
	return false;
}

/* Loads the libraries of a folder that mention name, until one has such a type. */
static const char *discover_in(struct fragi_registry *registry, const char *folder,
			       enum fragi_entry_kind kind, const char *name)
{
	struct dirent **entries = NULL;
	const char *found = NULL;
	char path[PATH_MAX], real[PATH_MAX];
	int count = scandir(folder, &entries, is_library, alphasort);

	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
		if (found == NULL && realpath(path, real) != NULL &&
		    !fragi_registry_is_built_in(registry->root, real) &&
		    fragi_library_mentions(real, name) &&
		    fragi_registry_use(registry, real, NULL, NULL, NULL) == 0 &&
		    has(registry, kind, name))
			found = fragi_arena_strdup(&registry->root->arena, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	return found;
}

int fragi_registry_discover(struct fragi_registry *registry, const char *name,
			    const char **out_library)
{
	const struct fragi_search_path *search = &registry->root->search;
	const char *library = NULL;

	name = fragi_alias(FRAGI_HOLOSCAN_OPERATOR, name);
	if (fragi_registry_look_up(registry, FRAGI_ENTRY_OP, name) != NULL) {
		*out_library = NULL;
		return 0;
	}
	for (size_t i = 0; i < search->folder_count && library == NULL; i++)
		if (search->folders[i].real != NULL)
			library = discover_in(registry, search->folders[i].real, FRAGI_ENTRY_OP,
					      name);
	if (library == NULL)
		return -ENOENT;
	*out_library = library;
	return 0;
}

void fragi_registry_seek(struct fragi_registry *registry, const char *name)
{
	const struct fragi_search_path *search = &registry->root->search;

	for (size_t i = 0; i < search->folder_count; i++)
		if (search->folders[i].real != NULL &&
		    discover_in(registry, search->folders[i].real, FRAGI_ENTRY_KINDS, name) != NULL)
			return;
}
