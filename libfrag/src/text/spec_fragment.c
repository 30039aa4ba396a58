// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <string.h>

#include <text/builder.h>

#define COMPOSE 3 /* it says whether all operators are known; what follows it can be read last */
#define OF_ALL 14 /* from here on keys of the application in a graph of one fragment */
#define MEMBER(m) FRAGI_MEMBER(struct fragi_spec_fragment, m)
static const struct fragi_key fragment_keys[] = {
	{"extensions"},
	{"resources"},
	{"operators"},
	{"compose", FRAGI_KEY_NAME, MEMBER(compose)},
	{"metadata_policy", FRAGI_KEY_WORD, MEMBER(metadata_policy), .min = FRAG_METADATA_UPDATE,
	 .words = fragi_metadata_policies},
	{"flows"},
	{"scheduler", MEMBER(scheduler), .read = fragi_spec_read_scheduler},
	{"requirements", MEMBER(requirements), .read = fragi_spec_read_requirements},
	{"host", FRAGI_KEY_NAME, MEMBER(host)},
	{"on_failure", MEMBER(on_failure), .read = fragi_spec_read_on_failure},
	{"watchdog", FRAGI_KEY_DURATION, MEMBER(watchdog_ns)},
	{"metadata", FRAGI_KEY_BOOL, MEMBER(metadata)},
	{"when"},
	{"thread_pools", .read = fragi_spec_read_thread_pools}, /* after the scheduler */
	{"subgraphs"},
	{"clock", MEMBER(clock), .read = fragi_spec_read_clock},
	{"services"},
	{"data_loggers"},
	{"tracking", MEMBER(tracking), .read = fragi_spec_read_tracking},
	{"deadlines"},
};

static void read_keys(struct fragi_builder *builder, struct fragi_node *map,
		      struct fragi_spec_fragment *fragment)
{
	const char *name = fragment->name;
	bool is_root = map == builder->root;

	assert(strcmp(fragment_keys[COMPOSE].name, "compose") == 0 &&
	       strcmp(fragment_keys[OF_ALL].name, "subgraphs") == 0);
	fragi_keys_read(builder, map, name, &fragment_keys[COMPOSE], 1, fragment);
	if (!is_root)
		fragi_keys_read(builder, map, name, &fragment_keys[OF_ALL],
				FRAG_COUNT_OF(fragment_keys) - OF_ALL, fragment);
	if (fragi_node_get(map, "compose") != NULL)
		fragi_builder_note(builder, &builder->composed, name, fragment);
	fragment->is_composed = fragi_strmap_get(&builder->composed, name) != NULL;
	fragi_spec_read_resources(builder, fragi_node_get(map, "resources"),
				  !is_root ? fragi_node_get(map, "services") : NULL, fragment);
	fragi_spec_read_loggers(builder, fragi_node_get(map, "data_loggers"), name,
				!is_root ? builder->spec : NULL, &fragment->loggers,
				&fragment->logger_count);
	fragi_spec_read_operators(builder, fragi_node_get(map, "operators"), name, fragment);
	fragi_spec_read_flows(builder, fragi_node_get(map, "flows"), name, &fragment->flows,
			      &fragment->flow_count);
	fragi_keys_read(builder, map, name, &fragment_keys[COMPOSE + 1], OF_ALL - COMPOSE - 1,
			fragment);
	if (!is_root)
		fragi_spec_read_deadlines(builder, fragi_node_get(map, "deadlines"), name,
					  &fragment->deadlines, &fragment->deadline_count);
}

void fragi_spec_read_fragment(struct fragi_builder *builder, struct fragi_node *map,
			      const char *name, struct fragi_spec_extension *extensions,
			      size_t extension_count, struct fragi_spec_fragment *out_fragment)
{
	struct fragi_spec_fragment *fragment = out_fragment;
	const struct fragi_node *operators;
	bool is_root = map == builder->root;

	fragment->name = name;
	fragment->place = map->key != NULL ? map->key : map;
	fragment->metadata = -1;
	if (!is_root && fragi_read_map(builder, map, name, "a fragment") != NULL) {
		if (fragi_node_get(map, "subgraphs") != NULL)
			fragi_builder_error(
				builder, fragi_node_get(map, "subgraphs")->key, name,
				"subgraphs stand at the top, for all fragments; move them there");
		fragi_keys_check(builder, map, name, FRAGI_KEYS(fragment_keys));
		fragi_spec_read_extensions(builder, fragi_node_get(map, "extensions"), name,
					   extensions, extension_count, &fragment->extensions,
					   &fragment->extension_count);
	} else {
		fragment->extensions = extensions;
		fragment->extension_count = extension_count;
	}
	read_keys(builder, map, fragment);
	operators = fragi_node_get(map, "operators");
	if (fragment->operator_count == 0 && fragi_node_get(map, "compose") == NULL &&
	    (operators == NULL ||
	     (operators->count == 0 && !operators->is_reported && !operators->lost_a_name &&
	      operators->kind != FRAGI_NODE_SCALAR)) &&
	    (map->kind == FRAGI_NODE_MAP || map->kind == FRAGI_NODE_NULL))
		fragi_builder_error(
			builder, fragment->place, name,
			"has no operators (or `when` excludes all of them); add operators or a composer");
}
