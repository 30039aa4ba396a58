// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <text/instance.h>
#include <text/subgraph.h>

#define INTERFACES_STEP 16

bool fragi_spec_declares(const struct fragi_spec *spec, const char *subgraph)
{
	const struct fragi_node *map = fragi_node_get(spec->subgraphs, subgraph);

	return fragi_node_get(map, "operators") != NULL;
}

/* Appends a map or a scalar (text not NULL) under a key. NULL: out of memory. */
static struct fragi_node *put(struct fragi_builder *builder, struct fragi_node *map,
			      const char *key, const char *text, const struct fragi_node *place)
{
	struct fragi_node *node = fragi_subgraph_node(
		builder, text != NULL ? FRAGI_NODE_SCALAR : FRAGI_NODE_MAP, place, key);

	if (node == NULL)
		return NULL;
	node->text = text;
	fragi_subgraph_append(map, node);
	return node;
}

/* A copy of the node's head, so that it may stand in another map; what is below it is shared. */
static bool put_shared(struct fragi_builder *builder, struct fragi_node *map, const char *key,
		       const struct fragi_node *node)
{
	struct fragi_node *copy = put(builder, map, key, NULL, node);
	const struct fragi_node *name;

	if (copy == NULL)
		return false;
	name = copy->key;
	*copy = *node;
	copy->key = name;
	copy->next = NULL;
	return true;
}

/* The graph that holds this one instance: `operators: {NAME: {subgraph: ..., parameters: ...}}`. */
static bool make_graph(struct fragi_builder *builder, const struct fragi_spec *spec,
		       const char *name, const char *subgraph,
		       const struct fragi_spec_setting *settings, size_t count)
{
	static const struct fragi_node nowhere = {.kind = FRAGI_NODE_NULL};
	const struct fragi_node *place = fragi_node_get(spec->subgraphs, subgraph)->key;
	struct fragi_node *root = fragi_subgraph_node(builder, FRAGI_NODE_MAP, place, NULL);
	struct fragi_node *operators, *instance, *parameters = NULL;

	builder->root = root;
	if (root == NULL || !put_shared(builder, root, "subgraphs", spec->subgraphs))
		return false;
	if (spec->has_extensions && (put(builder, root, "extensions", NULL, place) == NULL ||
				     put(builder, root->last, "any", "any", place) == NULL))
		return false;
	operators = put(builder, root, "operators", NULL, place);
	instance = operators != NULL ? put(builder, operators, name, NULL, place) : NULL;
	if (instance == NULL || put(builder, instance, "subgraph", subgraph, place) == NULL)
		return false;
	if (count > 0) {
		parameters = put(builder, instance, "parameters", NULL, place);
		if (parameters == NULL)
			return false;
	}
	for (size_t i = count; i-- > 0;) /* the later one wins */
		if (fragi_node_get(parameters, settings[i].name) == NULL &&
		    !put_shared(builder, parameters, settings[i].name,
				settings[i].value != NULL ? settings[i].value : &nowhere))
			return false;
	return true;
}

/* Makes room for one more. */
static bool has_room(struct fragi_builder *builder, struct fragi_spec_instance *out)
{
	struct fragi_spec_interface *wider;

	if (out->interface_count % INTERFACES_STEP != 0)
		return true;
	wider = fragi_builder_alloc(builder, out->interface_count + INTERFACES_STEP,
				    sizeof(*wider));
	if (wider == NULL)
		return false;
	if (out->interface_count > 0)
		memcpy(wider, out->interfaces, out->interface_count * sizeof(*wider));
	out->interfaces = wider;
	return true;
}

/* What a port of an instance stands for, under this name. */
static bool list_port(struct fragi_builder *builder, const char *fragment, const char *prefix,
		      const struct fragi_subgraph_port *port, const char *name,
		      struct fragi_spec_instance *out)
{
	for (size_t i = 0; i < port->inner_count; i++) {
		const char *op = fragi_subgraph_join(builder, prefix, port->inner[i].op);
		const char *path = op != NULL ? fragi_builder_join(builder, fragment, op) : NULL;
		const struct fragi_subgraph_instance *inner =
			path != NULL ? fragi_strmap_get(&builder->instances, path) : NULL;
		const struct fragi_subgraph_port *below = NULL;

		if (path == NULL)
			return false;
		if (inner != NULL && inner->graph != NULL) {
			if (port->inner[i].port != NULL)
				below = fragi_subgraph_port(builder, inner->graph,
							    port->inner[i].port);
			else if (inner->graph->first_port == inner->graph->last_port)
				below = inner->graph->first_port;
			if (below == NULL)
				fragi_builder_error(
					builder, port->inner[i].place, fragment,
					"port \"%s\" of %s stands for a port that %s does not have",
					name, prefix, op);
			else if (!list_port(builder, fragment, op, below, name, out))
				return false;
			continue;
		}
		if (!has_room(builder, out))
			return false;
		out->interfaces[out->interface_count++] = (struct fragi_spec_interface){
			.name = name,
			.op = op,
			.port = port->inner[i].port,
			.is_directed = port->dir != FRAGI_SUBGRAPH_ANY,
			.dir = port->dir == FRAGI_SUBGRAPH_OUT ? FRAG_OUT : FRAG_IN,
			.place = port->inner[i].place,
		};
	}
	return true;
}

static void list_ports(struct fragi_builder *builder, const char *fragment, const char *name,
		       const char *subgraph, struct fragi_spec_instance *out)
{
	const struct fragi_subgraph *graph = fragi_subgraph_find(builder, subgraph);

	for (const struct fragi_subgraph_port *port = graph != NULL ? graph->first_port : NULL;
	     port != NULL; port = port->next)
		if (!list_port(builder, fragment, name, port, port->name, out))
			return;
}

static void read_content(struct fragi_builder *builder, struct fragi_spec_fragment *content)
{
	struct fragi_node *root = builder->root;

	fragi_builder_note(builder, &builder->fragments, content->name, root);
	fragi_builder_note(builder, &builder->composed, content->name, root);
	content->is_composed = true;
	fragi_spec_read_resources(builder, fragi_node_get(root, "resources"), NULL, content);
	fragi_spec_read_operators(builder, fragi_node_get(root, "operators"), content->name,
				  content);
	fragi_spec_read_flows(builder, fragi_node_get(root, "flows"), content->name,
			      &content->flows, &content->flow_count);
}

int fragi_spec_instance_read(const struct fragi_spec *spec, struct fragi_arena *arena,
			     struct fragi_diag *diag, const char *fragment, const char *outer,
			     const char *name, const char *subgraph,
			     const struct fragi_spec_setting *settings, size_t count,
			     struct fragi_spec_instance *out_instance)
{
	static const struct fragi_spec_source nothing = {0};
	struct fragi_spec scratch = {.arena = *arena, .application = fragment};
	struct fragi_spec_instance instance = {.content = {.name = fragment}};
	struct fragi_builder builder;
	int r;

	fragi_builder_init(&builder, &nothing, &scratch, diag);
	builder.outer_scope = outer;
	builder.config = (struct fragi_node *)(uintptr_t)spec->config;
	for (const struct fragi_node *child = spec->config != NULL ? spec->config->first : NULL;
	     child != NULL; child = child->next)
		fragi_builder_note(&builder, &builder.configs, child->key->text, child);
	if (make_graph(&builder, spec, name, subgraph, settings, count)) {
		fragi_subgraphs_expand(&builder);
		list_ports(&builder, fragment, name, subgraph, &instance);
		read_content(&builder, &instance.content);
	}
	r = fragi_builder_end_part(&builder, arena);
	*out_instance = instance;
	return r;
}

/* The items of two arrays, one behind the other. */
static void *joined(struct fragi_arena *arena, const void *first, size_t first_count,
		    const void *second, size_t second_count, size_t size)
{
	char *items = fragi_arena_alloc(arena, (first_count + second_count + 1) * size);

	if (items != NULL && first_count > 0)
		memcpy(items, first, first_count * size);
	if (items != NULL && second_count > 0)
		memcpy(items + first_count * size, second, second_count * size);
	return items;
}

const struct fragi_spec_operator *fragi_spec_operator_over(struct fragi_arena *arena,
							   const struct fragi_spec_operator *under,
							   const struct fragi_spec_operator *over)
{
	struct fragi_spec_operator *both = fragi_arena_alloc(arena, sizeof(*both));

	if (both == NULL)
		return NULL;
	*both = *under;
	both->place = over->place;
	both->settings = joined(arena, under->settings, under->setting_count, over->settings,
				over->setting_count, sizeof(*both->settings));
	both->setting_count += over->setting_count;
	both->ports = joined(arena, under->ports, under->port_count, over->ports, over->port_count,
			     sizeof(*both->ports));
	both->port_count += over->port_count;
	both->resources = joined(arena, under->resources, under->resource_count, over->resources,
				 over->resource_count, sizeof(*both->resources));
	both->resource_count += over->resource_count;
	if (over->metadata >= 0)
		both->metadata = over->metadata;
	if (over->metadata_policy != FRAG_METADATA_DEFAULT)
		both->metadata_policy = over->metadata_policy;
	if (over->watchdog_ns > 0)
		both->watchdog_ns = over->watchdog_ns;
	return both->settings != NULL && both->ports != NULL && both->resources != NULL ? both
											: NULL;
}
