/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_TYPE_LIBRARY_H
#define FRAGI_TYPE_LIBRARY_H

#include <type/registry.h>

/*
 * Opens one shared object and reads its plugin table into *library, all of it in arena:
 * library->path is set by the caller, who has decided that it may be opened; so is library->sha256,
 * which is checked if it is not NULL (pinned.h). Nothing is registered. Returns 0; -ENOENT (cannot
 * be opened, or is not a plugin); -EBADMSG (another sha256); -EPROTO (another ABI major); -EINVAL
 * (its tables are wrong); -ENOMEM.
 */
int fragi_library_open(struct fragi_arena *arena, struct fragi_library *library,
		       struct frag_err *err);
/* The same for a table that is in memory already. Returns 0, -EPROTO, -EINVAL or -ENOMEM. */
int fragi_library_read(struct fragi_arena *arena, struct fragi_library *library,
		       const struct frag_plugin *table, struct frag_err *err);

/* Registers the types of values that it lists. Returns 0, or frag_type_register's error. */
int fragi_library_register_types(const struct fragi_library *library, struct frag_err *err);

/*
 * Whether the file holds name as a text that ends there. A plugin's tables are made by the
 * compiler, so a library without the text cannot list the name, and need not be opened with all
 * that it links.
 */
bool fragi_library_mentions(const char *path, const char *name);

#endif
