/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_TYPE_SEARCH_PATH_H
#define FRAGI_TYPE_SEARCH_PATH_H

#include <type/registry.h>

/* The folders of libraries, in the order in which they are searched. */
struct fragi_folder {
	const char *text;  /* as it was given */
	const char *real;  /* real path; NULL: the folder does not exist */
	bool is_installed; /* libfrag itself lies there, too */
};

struct fragi_search_path {
	struct fragi_arena arena;
	struct fragi_folder *folders;
	size_t folder_count;
	enum fragi_library_paths paths;
	bool trusted_only;
	const char *app_folder; /* NULL: unknown */
};

/*
 * Collects the folders of the config, of FRAG_LIBRARY_PATH and of the installation. Returns 0 or
 * -ENOMEM; call fini in both cases.
 */
int fragi_search_path_init(struct fragi_search_path *search,
			   const struct fragi_registry_config *config);
void fragi_search_path_fini(struct fragi_search_path *search);
/*
 * Finds a library by name or, where that is allowed, by path, and writes its real path to real
 * (PATH_MAX bytes). Returns 0; -ENOENT: it does not exist, or a link leads out of the folders;
 * -EINVAL: a path where none is allowed; -EPERM: other users could change the file.
 */
int fragi_search_path_find(const struct fragi_search_path *search, const char *library, char *real,
			   struct frag_err *err);

#endif
