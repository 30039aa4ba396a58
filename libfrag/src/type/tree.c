// SPDX-License-Identifier: Apache-2.0
#include <type/tree.h>

static bool copy(struct fragi_arena *arena, const struct fragi_node *node, struct frag_tree *out);

static bool copy_items(struct fragi_arena *arena, const struct fragi_node *node,
		       struct frag_tree *out)
{
	struct frag_tree *item = fragi_arena_alloc(arena, (node->count + 1) * sizeof(*item));

	if (item == NULL)
		return false;
	out->kind = node->kind == FRAGI_NODE_LIST ? FRAG_TREE_LIST : FRAG_TREE_MAP;
	out->items = item;
	out->count = node->count;
	for (const struct fragi_node *child = node->first; child != NULL; child = child->next) {
		if (!copy(arena, child, item++))
			return false;
	}
	return true;
}

/* The tree outlives the nodes, whose arena is that of the graph's text. */
static bool copy(struct fragi_arena *arena, const struct fragi_node *node, struct frag_tree *out)
{
	*out = (struct frag_tree){.line = node->line, .column = node->column};
	if (node->key != NULL) {
		out->key = fragi_arena_strdup(arena, node->key->text);
		if (out->key == NULL)
			return false;
	}
	if (node->kind == FRAGI_NODE_LIST || node->kind == FRAGI_NODE_MAP)
		return copy_items(arena, node, out);
	out->kind = FRAG_TREE_TEXT;
	out->text = fragi_arena_strdup(arena, node->kind == FRAGI_NODE_SCALAR ? node->text : "");
	return out->text != NULL;
}

struct frag_tree *fragi_tree_create(struct fragi_arena *arena, const struct fragi_node *node)
{
	struct frag_tree *tree = fragi_arena_alloc(arena, sizeof(*tree));

	if (tree == NULL || !copy(arena, node, tree))
		return NULL;
	tree->key = NULL;
	return tree;
}
