// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include "maps.h"

const struct frag_tree *map_entry(const struct frag_tree *map, const char *key)
{
	for (size_t i = 0; map != NULL && i < map->count; i++)
		if (strcmp(map->items[i].key, key) == 0)
			return &map->items[i];
	return NULL;
}

static bool is_texts(const struct frag_tree *entry)
{
	if (entry->kind == FRAG_TREE_TEXT)
		return true;
	for (size_t i = 0; i < entry->count; i++)
		if (entry->items[i].kind != FRAG_TREE_TEXT)
			return false;
	return entry->kind == FRAG_TREE_LIST;
}

int map_check(struct frag_op *op, const char *parameter, const struct frag_tree *map)
{
	if (map == NULL)
		return 0;
	if (map->kind != FRAG_TREE_MAP)
		return frag_op_fail(
			op, -EINVAL,
			"%s is not a map; write %s: {NAME: VALUE, ...} with the name of each model",
			parameter, parameter);
	for (size_t i = 0; i < map->count; i++)
		if (!is_texts(&map->items[i]))
			return frag_op_fail(
				op, -EINVAL,
				"%s: %s is neither a text nor a list of texts; write %s: [NAME, ...]",
				parameter, map->items[i].key, map->items[i].key);
	return 0;
}

size_t map_count(const struct frag_tree *entry)
{
	if (entry == NULL)
		return 0;
	return entry->kind == FRAG_TREE_TEXT ? 1 : entry->count;
}

const char *map_text(const struct frag_tree *entry, size_t i)
{
	return entry->kind == FRAG_TREE_TEXT ? entry->text : entry->items[i].text;
}
