// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include <base/alloc.h>
#include <text/builder.h>

void fragi_settings_put(struct fragi_builder *builder, struct fragi_settings *settings,
			const char *name, const struct fragi_node *value,
			const struct fragi_node *place, const char *subject)
{
	uintptr_t known = (uintptr_t)fragi_strmap_get(&settings->index, name);
	struct fragi_spec_setting *items;
	size_t capacity;

	if (known != 0) {
		settings->items[known - 1].value = value;
		settings->items[known - 1].place = place;
		return;
	}
	if (builder->setting_count >= FRAGI_SPEC_SETTINGS_MAX) {
		if (builder->setting_count++ == FRAGI_SPEC_SETTINGS_MAX)
			fragi_builder_error(
				builder, place, subject,
				"more than %d parameters are set, those of from_config counted; make the graph smaller",
				FRAGI_SPEC_SETTINGS_MAX);
		return;
	}
	if (settings->count == settings->capacity) {
		capacity = settings->capacity == 0 ? 8 : settings->capacity * 2;
		items = fragi_realloc(settings->items, capacity * sizeof(*items));
		if (items == NULL) {
			builder->no_memory = true;
			return;
		}
		settings->items = items;
		settings->capacity = capacity;
	}
	builder->setting_count++;
	settings->items[settings->count++] =
		(struct fragi_spec_setting){.name = name, .value = value, .place = place};
	fragi_builder_note(builder, &settings->index, name, (void *)(uintptr_t)settings->count);
}

void fragi_settings_end(struct fragi_builder *builder, struct fragi_settings *settings,
			struct fragi_spec_setting **out_items, size_t *out_count)
{
	struct fragi_spec_setting *items;

	if (settings->count > 0) {
		items = fragi_builder_alloc(builder, settings->count, sizeof(*items));
		if (items != NULL) {
			memcpy(items, settings->items, settings->count * sizeof(*items));
			*out_items = items;
			*out_count = settings->count;
		}
	}
	fragi_free(settings->items);
	fragi_strmap_fini(&settings->index);
	memset(settings, 0, sizeof(*settings));
}

/*
 * Adds what one name of from_config sets: the children of a map, else the value under the last part
 * of the name.
 */
static void put_config(struct fragi_builder *builder, struct fragi_settings *settings,
		       const char *subject, const struct fragi_node *path, bool may_be_missing)
{
	const struct fragi_node *node;
	const char *dot;

	if (fragi_read_text(builder, path, subject, "from_config") == NULL)
		return;
	node = fragi_config_find(builder, path, subject, may_be_missing);
	if (node == NULL)
		return;
	if (node->kind != FRAGI_NODE_MAP) {
		dot = strrchr(path->text, '.');
		fragi_settings_put(builder, settings, dot != NULL ? dot + 1 : path->text, node,
				   node->key, subject);
		return;
	}
	for (const struct fragi_node *child = node->first;
	     child != NULL && builder->setting_count <= FRAGI_SPEC_SETTINGS_MAX;
	     child = child->next)
		fragi_settings_put(builder, settings, child->key->text, child, child->key, subject);
}

/*
 * In a list, a name with an argument in it ("detection_${source}") may be missing, because only
 * some values may need more settings. A literal name must exist.
 */
static void put_configs(struct fragi_builder *builder, struct fragi_settings *settings,
			const char *subject, const struct fragi_node *names)
{
	if (names->kind != FRAGI_NODE_LIST) {
		put_config(builder, settings, subject, names, false);
		return;
	}
	for (const struct fragi_node *child = names->first; child != NULL; child = child->next)
		put_config(builder, settings, subject, child, child->replaced);
}

/* a value that was refused */
static const struct fragi_node reported = {.kind = FRAGI_NODE_NULL, .is_reported = true};

/*
 * Returns the value of `parameter: {from_config: name}`: whatever config has there; the last name
 * wins.
 */
static const struct fragi_node *value_of(struct fragi_builder *builder,
					 const struct fragi_node *value, const char *subject)
{
	const struct fragi_node *names = fragi_node_get(value, "from_config"), *node, *found = NULL;

	if (names == NULL)
		return value;
	if (value->count > 1) {
		fragi_builder_error(
			builder, value, subject,
			"%s: from_config stands alone in a value; put the other keys into config",
			value->key != NULL ? value->key->text : "");
		return &reported;
	}
	if (names->kind != FRAGI_NODE_LIST) {
		if (fragi_read_text(builder, names, subject, "from_config") != NULL)
			found = fragi_config_find(builder, names, subject, false);
		return found != NULL ? found : &reported;
	}
	for (const struct fragi_node *child = names->first; child != NULL; child = child->next) {
		if (fragi_read_text(builder, child, subject, "from_config") == NULL) {
			found = &reported;
			continue;
		}
		node = fragi_config_find(builder, child, subject, child->replaced);
		if (node != NULL || !child->replaced)
			found = node != NULL ? node : &reported;
	}
	if (found == NULL)
		fragi_builder_error(builder, names, subject,
				    "from_config: config has none of these");
	return found != NULL ? found : &reported;
}

struct fragi_node *fragi_settings_merge(struct fragi_builder *builder, struct fragi_node *map,
					const char *subject)
{
	struct fragi_settings settings = {0};
	struct fragi_node *merged, *nodes;

	if (fragi_node_get(map, "from_config") == NULL)
		return map;
	fragi_settings_read(builder, map, subject, NULL, 0, &settings);
	merged = fragi_builder_alloc(builder, settings.count + 1, sizeof(*merged));
	if (merged != NULL) {
		nodes = merged + 1;
		*merged = *map;
		merged->count = settings.count;
		merged->first = merged->last = NULL;
		for (size_t i = 0; i < settings.count; i++) {
			nodes[i] = *settings.items[i].value;
			nodes[i].key = settings.items[i].place;
			nodes[i].next = i + 1 < settings.count ? &nodes[i + 1] : NULL;
			merged->last = &nodes[i];
		}
		merged->first = settings.count > 0 ? nodes : NULL;
	}
	fragi_free(settings.items);
	fragi_strmap_fini(&settings.index);
	return merged != NULL ? merged : map;
}

void fragi_settings_read(struct fragi_builder *builder, const struct fragi_node *map,
			 const char *subject, const char *const *reserved, size_t reserved_count,
			 struct fragi_settings *settings)
{
	const struct fragi_node *names = fragi_node_get(map, "from_config");
	size_t i;

	if (names != NULL)
		put_configs(builder, settings, subject, names);
	for (const struct fragi_node *child = map->first; child != NULL; child = child->next) {
		for (i = 0; i < reserved_count && strcmp(reserved[i], child->key->text) != 0; i++)
			;
		if (i == reserved_count && child != names)
			fragi_settings_put(builder, settings, child->key->text,
					   value_of(builder, child, subject), child->key, subject);
	}
}
