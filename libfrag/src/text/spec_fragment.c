// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include <base/units.h>
#include <text/builder.h>

static const struct fragi_field fragment_fields[] = {
	{"extensions", false}, {"resources", false},       {"operators", false},
	{"compose", false},    {"metadata_policy", false}, {"flows", false},
	{"scheduler", false},  {"requirements", false},    {"host", false},
	{"on_failure", false}, {"watchdog", false},        {"metadata", false},
	{"when", false},       {"thread_pools", false},    {"subgraphs", false},
	{"clock", false},      {"services", false},        {"data_loggers", false},
	{"tracking", false},   {"deadlines", false},
};

static void read_fields(struct fragi_builder *builder, struct fragi_node *map,
			struct fragi_spec_fragment *fragment)
{
	char scheduler[FRAG_NAME_MAX + 32];
	bool metadata;

	snprintf(scheduler, sizeof(scheduler), "%s.scheduler", fragment->name);
	fragment->compose =
		fragi_read_name(builder, fragi_node_get(map, "compose"), fragment->name, "compose");
	if (fragi_node_get(map, "compose") != NULL)
		fragi_builder_note(builder, &builder->composed, fragment->name, fragment);
	fragment->is_composed = fragi_strmap_get(&builder->composed, fragment->name) != NULL;
	fragi_spec_read_resources(builder, fragi_node_get(map, "resources"),
				  map != builder->root ? fragi_node_get(map, "services") : NULL,
				  fragment);
	fragi_spec_read_loggers(builder, fragi_node_get(map, "data_loggers"), fragment->name,
				map != builder->root ? builder->spec : NULL, &fragment->loggers,
				&fragment->logger_count);
	fragi_spec_read_operators(builder, fragi_node_get(map, "operators"), fragment);
	fragi_spec_read_flows(builder, fragi_node_get(map, "flows"), fragment->name,
			      &fragment->flows, &fragment->flow_count);
	fragi_spec_read_scheduler(builder, fragi_node_get(map, "scheduler"), scheduler,
				  &fragment->scheduler);
	fragi_spec_read_thread_pools(builder, fragi_node_get(map, "thread_pools"), fragment);
	fragi_spec_read_requirements(builder, fragi_node_get(map, "requirements"), fragment->name,
				     &fragment->requirements);
	fragment->host =
		fragi_read_name(builder, fragi_node_get(map, "host"), fragment->name, "host");
	fragi_spec_read_on_failure(builder, fragi_node_get(map, "on_failure"), fragment->name,
				   &fragment->on_failure);
	fragi_read_duration(builder, fragi_node_get(map, "watchdog"), fragment->name, "watchdog",
			    &fragment->watchdog_ns);
	if (fragi_read_bool(builder, fragi_node_get(map, "metadata"), fragment->name, "metadata",
			    &metadata))
		fragment->metadata = metadata;
	fragment->metadata_policy = fragi_spec_read_metadata_policy(builder, map, fragment->name);
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
		fragi_fields_check(builder, map, name, fragment_fields,
				   FRAG_COUNT_OF(fragment_fields));
		fragi_spec_read_extensions(builder, fragi_node_get(map, "extensions"), name,
					   extensions, extension_count, &fragment->extensions,
					   &fragment->extension_count);
	} else {
		fragment->extensions = extensions;
		fragment->extension_count = extension_count;
	}
	if (!is_root) {
		fragi_spec_read_tracking(builder, fragi_node_get(map, "tracking"), name,
					 &fragment->tracking);
		fragi_spec_read_clock(builder, fragi_node_get(map, "clock"), name,
				      &fragment->clock);
	}
	read_fields(builder, map, fragment);
	if (!is_root)
		fragi_spec_read_deadlines(builder, fragi_node_get(map, "deadlines"), name,
					  &fragment->deadlines, &fragment->deadline_count);
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
