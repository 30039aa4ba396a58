/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_TYPE_TREE_H
#define FRAGI_TYPE_TREE_H

#include <frag/operator.h>
#include <text/node.h>

/* Copies a node, with all below it, for an operator. Returns NULL when memory is short. */
struct frag_tree *fragi_tree_create(struct fragi_arena *arena, const struct fragi_node *node);

#endif
