/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_TYPE_LINKED_H
#define FRAGI_TYPE_LINKED_H

#include <type/registry.h>

/*
 * What the program itself has brought (frag_plugin_add, frag_loader_register); see
 * fragi_registry_add_linked too.
 */

/* Returns the loader for files of this name; NULL: they are shared objects. */
const struct frag_loader *fragi_linked_loader(const char *file);

#endif
