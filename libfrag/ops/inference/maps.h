/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INFERENCE_MAPS_H
#define INFERENCE_MAPS_H

#include <frag/frag.h>

/*
 * Parameters that are maps, as Holoscan's operators for inference take them: from a name to a text,
 * or to a list of texts.
 */

/* Returns the entry of that key; NULL: there is none. map may be NULL. */
const struct frag_tree *map_entry(const struct frag_tree *map, const char *key);
/*
 * Checks that a parameter is a map from names to texts, or lists of texts.
 * Returns 0, or -EINVAL, worded in the operator. map may be NULL.
 */
int map_check(struct frag_op *op, const char *parameter, const struct frag_tree *map);
/* Returns the number of texts of an entry: 1 for a text; 0 for NULL. */
size_t map_count(const struct frag_tree *entry);
/* Returns the i-th text of an entry. */
const char *map_text(const struct frag_tree *entry, size_t i);

#endif
