// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <frag/tree.h>
#include <type/tree.h>

/* A tree by itself, with the memory that it lies in. */
struct parsed {
	struct frag_tree tree; /* first: the tree is the whole */
	struct fragi_arena arena;
};

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

int frag_tree_parse(const char *text, const struct frag_tree **out_tree, struct frag_err *err)
{
	struct parsed *parsed = calloc(1, sizeof(*parsed));
	struct fragi_diag diag = {0};
	struct fragi_node *root = NULL;
	int r = -ENOMEM;

	if (parsed != NULL)
		r = fragi_yaml_parse(&parsed->arena, "text", text, strlen(text), &diag, &root);
	if (r == 0 && !copy(&parsed->arena, root, &parsed->tree))
		r = -ENOMEM;
	if (r < 0) {
		if (diag.count > 0)
			frag_err_set(err, r, "line %d: %s", diag.items[0].line, diag.items[0].text);
		else
			frag_err_set(err, r, "no memory to read a text of %zu bytes", strlen(text));
		if (parsed != NULL)
			frag_tree_destroy(&parsed->tree);
	} else {
		*out_tree = &parsed->tree;
	}
	fragi_diag_fini(&diag);
	return r;
}

void frag_tree_destroy(const struct frag_tree *tree)
{
	struct parsed *parsed = (struct parsed *)(uintptr_t)tree;

	if (parsed == NULL)
		return;
	fragi_arena_fini(&parsed->arena);
	free(parsed);
}
