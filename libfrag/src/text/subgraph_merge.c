// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include <text/subgraph.h>

/* Puts one key of an override in place: maps are merged, lists go on, all else is replaced. */
static void merge_child(struct fragi_builder *builder, struct fragi_node *known,
			struct fragi_node *child)
{
	struct fragi_node *next;

	if (known->kind == FRAGI_NODE_MAP && child->kind == FRAGI_NODE_MAP) {
		fragi_subgraph_merge(builder, known, child);
	} else if (known->kind == FRAGI_NODE_LIST && child->kind == FRAGI_NODE_LIST &&
		   strcmp(child->key->text, "conditions") == 0) {
		for (struct fragi_node *item = child->first; item != NULL; item = next) {
			next = item->next;
			fragi_subgraph_append(known, item);
		}
	} else {
		next = known->next;
		*known = *child;
		known->next = next;
	}
}

void fragi_subgraph_merge(struct fragi_builder *builder, struct fragi_node *into,
			  struct fragi_node *over)
{
	struct fragi_strmap index = {0};
	struct fragi_node *known, *next;

	for (struct fragi_node *child = into->first; child != NULL; child = child->next)
		fragi_builder_note(builder, &index, child->key->text, child);
	for (struct fragi_node *child = over->first; child != NULL; child = next) {
		next = child->next;
		known = fragi_strmap_get(&index, child->key->text);
		if (known != NULL)
			merge_child(builder, known, child);
		else
			fragi_subgraph_append(into, child);
	}
	fragi_strmap_fini(&index);
}
