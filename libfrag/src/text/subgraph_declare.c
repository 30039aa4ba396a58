// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include <text/subgraph.h>

#define SUBJECT_SIZE (FRAG_NAME_MAX + 16)
#define CHAIN_SIZE ((FRAG_NAME_MAX + 4) * (FRAGI_SUBGRAPH_DEPTH_MAX + 2))

struct fragi_subgraph *fragi_subgraph_find(const struct fragi_builder *builder, const char *name)
{
	return fragi_strmap_get(&builder->subgraphs, name);
}

static const char *subject_of(const struct fragi_subgraph *graph, char *out, size_t size)
{
	snprintf(out, size, "subgraphs.%s", graph->name);
	return out;
}

static bool is_valid_port(const char *name)
{
	return fragi_name_is_valid(name) || strcmp(name, FRAG_INPUT_EXEC) == 0 ||
	       strcmp(name, FRAG_OUTPUT_EXEC) == 0;
}

/* Checks the operator of an end "op.port" in the subgraph; its port is known later. */
static bool check_inner(struct fragi_builder *builder, const struct fragi_subgraph *graph,
			const struct fragi_node *place, const char *what, const char *text)
{
	size_t length = strcspn(text, ".");
	char subject[SUBJECT_SIZE], advice[512], op[FRAG_NAME_MAX + 2], path[SUBJECT_SIZE * 2];

	snprintf(op, sizeof(op), "%.*s", (int)(length < sizeof(op) ? length : sizeof(op) - 1),
		 text);
	subject_of(graph, subject, sizeof(subject));
	snprintf(path, sizeof(path), "%s.%s", subject, op);
	if (!fragi_name_is_valid(op) || (text[length] == '.' && !is_valid_port(text + length + 1)))
		fragi_builder_error(builder, place, subject,
				    "%s: \"%.200s\" is not valid; write OPERATOR.PORT or OPERATOR",
				    what, text);
	else if (fragi_strmap_get(&builder->excluded, path) != NULL)
		fragi_builder_error(builder, place, subject,
				    "%s: operator %s is excluded by its when; leave it out too",
				    what, op);
	else if (fragi_strmap_get(&builder->subgraph_names, path) != NULL)
		return true;
	else if (!fragi_spec_may_be_lost(builder, graph->operators, op))
		fragi_builder_error(builder, place, subject, "%s: unknown operator \"%s\"%s", what,
				    op,
				    fragi_builder_advise_keys(builder, advice, sizeof(advice), op,
							      "operators", graph->operators));
	return false;
}

/* Ends that are no texts are left for the reader of flows. */
static void check_flow_end(struct fragi_builder *builder, const struct fragi_subgraph *graph,
			   struct fragi_node *node)
{
	if (node == NULL)
		return;
	if (node->kind == FRAGI_NODE_SCALAR &&
	    !check_inner(builder, graph, node, "a flow", node->text))
		node->is_reported = true;
	for (struct fragi_node *child = node->kind == FRAGI_NODE_LIST ? node->first : NULL;
	     child != NULL; child = child->next)
		if (child->kind == FRAGI_NODE_SCALAR &&
		    !check_inner(builder, graph, child, "a flow", child->text))
			node->is_reported = true;
}

static void check_flow(struct fragi_builder *builder, const struct fragi_subgraph *graph,
		       struct fragi_node *node)
{
	const char *from, *to;

	if (node->kind == FRAGI_NODE_MAP) {
		check_flow_end(builder, graph, fragi_node_get(node, "from"));
		check_flow_end(builder, graph, fragi_node_get(node, "to"));
	} else if (node->kind == FRAGI_NODE_SCALAR &&
		   fragi_subgraph_split(builder, node->text, &from, &to)) {
		node->is_reported = !check_inner(builder, graph, node, "a flow", from);
		node->is_reported =
			!check_inner(builder, graph, node, "a flow", to) || node->is_reported;
	}
}

struct fragi_subgraph_port *fragi_subgraph_port(const struct fragi_builder *builder,
						const struct fragi_subgraph *graph,
						const char *name)
{
	char key[SUBJECT_SIZE * 2];

	snprintf(key, sizeof(key), "%s:%.*s", graph->name, FRAG_NAME_MAX + 1, name);
	return fragi_strmap_get(&builder->subgraph_names, key);
}

const char *fragi_subgraph_execution(const struct fragi_builder *builder,
				     const struct fragi_subgraph *graph,
				     const struct fragi_subgraph_port *port)
{
	const struct fragi_subgraph_inner *inner = port->inner_count > 0 ? port->inner : NULL;
	const struct fragi_node *name;
	const struct fragi_subgraph *below;

	if (inner == NULL || (inner->port != NULL && fragi_port_is_execution(inner->port)))
		return inner != NULL ? inner->port : NULL;
	name = fragi_node_get(fragi_node_get(graph->operators, inner->op), "subgraph");
	below = name != NULL && name->kind == FRAGI_NODE_SCALAR
			? fragi_subgraph_find(builder, name->text)
			: NULL;
	if (below == NULL || below->is_refused) /* it may contain itself */
		return NULL;
	if (inner->port != NULL)
		port = fragi_subgraph_port(builder, below, inner->port);
	else
		port = below->first_port == below->last_port ? below->first_port : NULL;
	return port != NULL ? fragi_subgraph_execution(builder, below, port) : NULL;
}

/* An execution port has a direction by its name. */
static void take_direction(struct fragi_builder *builder, const struct fragi_subgraph *graph,
			   const struct fragi_node *place, const char *inner,
			   struct fragi_subgraph_port *port)
{
	const bool is_input = strcmp(inner, FRAG_INPUT_EXEC) == 0;
	const enum fragi_subgraph_dir dir = is_input ? FRAGI_SUBGRAPH_IN : FRAGI_SUBGRAPH_OUT;
	char subject[SUBJECT_SIZE];

	if (port->dir != FRAGI_SUBGRAPH_ANY && port->dir != dir && !port->is_invalid) {
		fragi_builder_error(builder, place, subject_of(graph, subject, sizeof(subject)),
				    "port \"%s\": %s is an %s, and it is to be an %s", port->name,
				    inner, is_input ? "input" : "output",
				    is_input ? "output" : "input");
		port->is_invalid = true;
	}
	port->dir = dir;
}

/* Reads "op.port", or a list of them, which the port stands for. */
static void read_inner(struct fragi_builder *builder, const struct fragi_subgraph *graph,
		       const struct fragi_node *node, struct fragi_subgraph_port *port)
{
	const struct fragi_node *child = node->kind == FRAGI_NODE_LIST ? node->first : node;
	size_t count = node->kind == FRAGI_NODE_LIST ? node->count : 1;
	const bool is_directed = port->dir != FRAGI_SUBGRAPH_ANY;
	struct fragi_subgraph_inner *inner;
	char subject[SUBJECT_SIZE], what[FRAG_NAME_MAX + 16];
	const char *text;
	char *op, *dot;

	subject_of(graph, subject, sizeof(subject));
	snprintf(what, sizeof(what), "port \"%s\"", port->name);
	port->inner = fragi_builder_alloc(builder, count, sizeof(*port->inner));
	if (count == 0)
		fragi_builder_error(builder, node, subject,
				    "%s stands for nothing; name the inner ports", what);
	port->is_invalid = port->is_invalid || count == 0;
	for (size_t i = 0; i < count && port->inner != NULL; i++, child = child->next) {
		text = fragi_read_text(builder, child, subject, what);
		if (text == NULL || !check_inner(builder, graph, child, what, text)) {
			port->is_invalid = true;
			continue;
		}
		op = fragi_builder_strdup(builder, text);
		if (op == NULL)
			return;
		dot = strchr(op, '.');
		if (dot != NULL)
			*dot++ = '\0';
		inner = &port->inner[port->inner_count++];
		*inner = (struct fragi_subgraph_inner){.op = op,
						       .port = dot,
						       .graph = graph->name,
						       .name = port->name,
						       .place = child,
						       .directed = is_directed ? inner : NULL};
		if (dot != NULL && fragi_port_is_execution(dot))
			take_direction(builder, graph, child, dot, port);
	}
	if (port->inner_count > 1 && port->dir == FRAGI_SUBGRAPH_OUT) {
		fragi_builder_error(
			builder, node, subject,
			"%s is an output and stands for several ports; only an input may", what);
		port->is_invalid = true;
	}
}

/* {in: ...} or {out: ...} */
static const struct fragi_node *read_direction(struct fragi_builder *builder,
					       const struct fragi_subgraph *graph,
					       const struct fragi_node *node,
					       struct fragi_subgraph_port *port)
{
	char subject[SUBJECT_SIZE];

	if (node->kind == FRAGI_NODE_MAP && node->count == 1 &&
	    strcmp(node->first->key->text, "in") == 0)
		port->dir = FRAGI_SUBGRAPH_IN;
	else if (node->kind == FRAGI_NODE_MAP && node->count == 1 &&
		 strcmp(node->first->key->text, "out") == 0)
		port->dir = FRAGI_SUBGRAPH_OUT;
	if (port->dir != FRAGI_SUBGRAPH_ANY)
		return node->first;
	if (node->kind != FRAGI_NODE_MAP && node->kind != FRAGI_NODE_NULL)
		return node;
	if (node->kind == FRAGI_NODE_MAP && fragi_node_get(node, "in") != NULL &&
	    fragi_node_get(node, "out") != NULL)
		fragi_builder_error(builder, node, subject_of(graph, subject, sizeof(subject)),
				    "port \"%s\" is an input and an output; give them two names",
				    port->name);
	else
		fragi_builder_error(
			builder, node, subject_of(graph, subject, sizeof(subject)),
			"port \"%s\": write OPERATOR.PORT, a list of them, {in: ...} or {out: ...}",
			port->name);
	port->is_invalid = true;
	return NULL;
}

static struct fragi_subgraph_port *add_port(struct fragi_builder *builder,
					    struct fragi_subgraph *graph, const char *name)
{
	struct fragi_subgraph_port *port = fragi_builder_alloc(builder, 1, sizeof(*port));

	if (port == NULL)
		return NULL;
	port->name = name;
	fragi_builder_note(builder, &builder->subgraph_names,
			   fragi_arena_printf(&builder->spec->arena, "%s:%.*s", graph->name,
					      FRAG_NAME_MAX + 1, name),
			   port);
	if (graph->last_port != NULL)
		graph->last_port->next = port;
	else
		graph->first_port = port;
	graph->last_port = port;
	return port;
}

/* One of a list of ports: it is called as its inner port. */
static void read_unnamed_port(struct fragi_builder *builder, struct fragi_subgraph *graph,
			      const struct fragi_node *node)
{
	char subject[SUBJECT_SIZE];
	const char *text, *dot;
	struct fragi_subgraph_port *port;

	subject_of(graph, subject, sizeof(subject));
	text = fragi_read_text(builder, node, subject, "a port in ports");
	dot = text != NULL ? strchr(text, '.') : NULL;
	if (text != NULL && dot == NULL)
		fragi_builder_error(
			builder, node, subject,
			"port \"%.80s\": a port without a name of its own is called as its inner port; write OPERATOR.PORT",
			text);
	graph->lost_ports = graph->lost_ports || dot == NULL;
	if (dot == NULL)
		return;
	port = fragi_subgraph_port(builder, graph, dot + 1);
	if (port != NULL) {
		fragi_builder_error(
			builder, node, subject,
			"two ports are called \"%.80s\": %s.%.80s and %.80s; give them names, or write `%.80s: [...]` for an input of several",
			dot + 1, port->inner_count > 0 ? port->inner[0].op : "?", port->name, text,
			dot + 1);
		return;
	}
	port = add_port(builder, graph, dot + 1);
	if (port != NULL)
		read_inner(builder, graph, node, port);
}

static void read_ports(struct fragi_builder *builder, struct fragi_subgraph *graph,
		       struct fragi_node *node)
{
	struct fragi_subgraph_port *port;
	char subject[SUBJECT_SIZE];

	if (node == NULL || (node->kind == FRAGI_NODE_NULL && !node->is_reported))
		return;
	subject_of(graph, subject, sizeof(subject));
	if (node->kind == FRAGI_NODE_LIST) {
		for (const struct fragi_node *child = node->first; child != NULL;
		     child = child->next)
			read_unnamed_port(builder, graph, child);
		return;
	}
	node = fragi_read_map(builder, node, subject, "ports");
	graph->lost_ports = node == NULL || node->lost_a_name;
	for (const struct fragi_node *child = node != NULL ? node->first : NULL; child != NULL;
	     child = child->next) {
		const struct fragi_node *inner;

		if (!fragi_check_name(builder, child->key, subject, "port", child->key->text)) {
			graph->lost_ports = true;
			continue;
		}
		if (fragi_subgraph_port(builder, graph, child->key->text) != NULL)
			continue; /* a key given twice was reported */
		port = add_port(builder, graph, child->key->text);
		inner = port != NULL ? read_direction(builder, graph, child, port) : NULL;
		if (inner != NULL)
			read_inner(builder, graph, inner, port);
	}
}

/* Checks names and notes them under "subgraphs.NAME.OPERATOR" or "NAME$RESOURCE". */
static void check_names(struct fragi_builder *builder, const struct fragi_subgraph *graph,
			struct fragi_node *map, const char *what, const char *separator)
{
	char subject[SUBJECT_SIZE];
	const char *of = separator[0] == '.' ? subject : graph->name;

	subject_of(graph, subject, sizeof(subject));
	for (struct fragi_node *child = map != NULL ? map->first : NULL; child != NULL;
	     child = child->next) {
		if (!fragi_check_name(builder, child->key, subject, what, child->key->text))
			map->lost_a_name = true;
		else
			fragi_builder_note(builder, &builder->subgraph_names,
					   fragi_arena_printf(&builder->spec->arena, "%s%s%s", of,
							      separator, child->key->text),
					   child);
	}
}

/*
 * Returns the map that declares the subgraph. The content of its own file takes the place of what
 * names the file.
 */
static struct fragi_node *content_of(struct fragi_builder *builder,
				     const struct fragi_subgraph *graph, struct fragi_node *node)
{
	static const struct fragi_key only[] = {{"from_file"}};
	struct fragi_node *path = fragi_node_get(node, "from_file"), *root, *next = node->next;
	const struct fragi_node *key = node->key;
	char subject[SUBJECT_SIZE];

	if (path == NULL)
		return node;
	subject_of(graph, subject, sizeof(subject));
	fragi_keys_check(builder, node, subject, only, FRAG_COUNT_OF(only));
	if (fragi_read_text(builder, path, subject, "from_file") == NULL)
		return NULL;
	root = fragi_builder_parse_file(builder, path, subject);
	if (root == NULL)
		return NULL;
	fragi_when_prune_subgraph(builder, root, subject);
	fragi_subgraph_replace(builder, root);
	*node = *root;
	node->key = key;
	node->next = next;
	return node;
}

/* Keys that stand elsewhere are refused with where they belong. */
static void check_fields(struct fragi_builder *builder, struct fragi_node *map, const char *subject)
{
	static const struct fragi_key fields[] = {
		{"operators"},  {"flows"},     {"resources"},    {"services"}, {"ports"},
		{"parameters"}, {"from_file"}, {"data_loggers"}, {"config"},
	};
	static const struct {
		const char *key, *advice;
	} misplaced[] = {
		{"extensions",
		 "extensions belong to the application or to a fragment; list them there"},
		{"thread_pools",
		 "thread pools belong to a fragment; list the operators of the instances there, as INSTANCE_OPERATOR"},
	};
	struct fragi_key all[FRAG_COUNT_OF(fields) + FRAG_COUNT_OF(misplaced)];
	size_t count = FRAG_COUNT_OF(fields);

	memcpy(all, fields, sizeof(fields));
	for (size_t i = 0; i < FRAG_COUNT_OF(misplaced); i++)
		if (fragi_node_get(map, misplaced[i].key) != NULL)
			all[count++] = (struct fragi_key){misplaced[i].key};
	fragi_keys_check(builder, map, subject, all, count);
	for (size_t i = 0; i < FRAG_COUNT_OF(misplaced); i++)
		if (fragi_node_get(map, misplaced[i].key) != NULL)
			fragi_builder_error(builder, fragi_node_get(map, misplaced[i].key)->key,
					    subject, "%s", misplaced[i].advice);
}

/* A subgraph's own file is read where its graph is; what it named would have to be read later. */
static void refuse_file(void *context, struct fragi_node *map, const struct fragi_node *path)
{
	struct fragi_builder *builder = context;

	map->is_reported = true;
	fragi_builder_error(
		builder, path, "config",
		"a subgraph's own file names no further files; write here what is in \"%.200s\"",
		path->text);
}

static void read_config(struct fragi_builder *builder, struct fragi_subgraph *graph,
			struct fragi_node *given, bool is_in_file)
{
	char subject[SUBJECT_SIZE];

	if (is_in_file)
		fragi_config_each_file(builder, given, refuse_file, builder);
	else
		fragi_config_attach(builder, given);
	(void)fragi_read_map(builder, given, subject_of(graph, subject, sizeof(subject)), "config");
	graph->config = given != NULL && given->kind != FRAGI_NODE_NULL ? given : NULL;
}

static void declare(struct fragi_builder *builder, struct fragi_subgraph *graph,
		    struct fragi_node *node)
{
	const bool is_in_file = fragi_node_get(node, "from_file") != NULL;
	struct fragi_node *map, *given;
	char subject[SUBJECT_SIZE];

	subject_of(graph, subject, sizeof(subject));
	graph->is_refused = true;
	map = fragi_read_map(builder, node, subject, "a subgraph");
	if (map != NULL && (map = content_of(builder, graph, map)) == NULL)
		return;
	if (map != NULL)
		map = fragi_read_map(builder, map, subject, "a subgraph");
	if (map == NULL && node->kind != FRAGI_NODE_NULL && node->kind != FRAGI_NODE_MAP)
		return;
	if (map != NULL)
		check_fields(builder, map, subject);
	read_config(builder, graph, fragi_node_get(map, "config"), is_in_file);
	graph->is_of_library = graph->config != NULL && map->count == 1;
	if (graph->is_of_library)
		return;
	given = fragi_node_get(map, "operators");
	graph->operators = fragi_read_map(builder, given, subject, "operators");
	if (given == NULL ||
	    (given->count == 0 && given->kind != FRAGI_NODE_SCALAR && !given->is_reported))
		fragi_builder_error(
			builder, graph->place, subject,
			"has no operators (or `when` excludes all of them); add operators");
	if (graph->operators == NULL || graph->operators->count == 0)
		return;
	graph->is_refused = false;
	check_names(builder, graph, graph->operators, "operator", ".");
	graph->resources =
		fragi_read_map(builder, fragi_node_get(map, "resources"), subject, "resources");
	check_names(builder, graph, graph->resources, "resource", "$");
	graph->services =
		fragi_read_map(builder, fragi_node_get(map, "services"), subject, "services");
	check_names(builder, graph, graph->services, "service", "$");
	graph->loggers = fragi_read_map(builder, fragi_node_get(map, "data_loggers"), subject,
					"data_loggers");
	check_names(builder, graph, graph->loggers, "data logger", "$");
	fragi_subgraph_declare_parameters(builder, graph, fragi_node_get(map, "parameters"));
	graph->flows = fragi_read_list(builder, fragi_node_get(map, "flows"), subject, "flows");
	for (struct fragi_node *child = graph->flows != NULL ? graph->flows->first : NULL;
	     child != NULL; child = child->next)
		check_flow(builder, graph, child);
	read_ports(builder, graph, fragi_node_get(map, "ports"));
}

void fragi_subgraphs_each_file(struct fragi_builder *builder,
			       void (*found)(void *context, struct fragi_node *map,
					     const struct fragi_node *path),
			       void *context)
{
	struct fragi_node *map = fragi_node_get(builder->root, "subgraphs"), *path;

	for (struct fragi_node *child = map != NULL ? map->first : NULL; child != NULL;
	     child = child->next) {
		builder->locals = fragi_node_get(child, "parameters");
		fragi_replace(builder, fragi_node_get(child, "config"));
		builder->locals = NULL;
		fragi_config_each_file(builder, fragi_node_get(child, "config"), found, context);
		path = fragi_node_get(child, "from_file");
		if (path == NULL || path->kind != FRAGI_NODE_SCALAR)
			continue;
		fragi_replace(builder, path);
		if (!path->is_reported)
			found(context, child, path);
	}
}

/* The subgraphs on the way to the one that is measured. */
struct chain {
	struct fragi_subgraph *graph;
	const struct chain *up;
	uint32_t length;
};

static void write_chain(const struct chain *chain, char *out, size_t size)
{
	size_t length;

	if (chain->up != NULL)
		write_chain(chain->up, out, size);
	length = strlen(out);
	snprintf(out + length, size - length, "%s%s", length > 0 ? " > " : "", chain->graph->name);
}

/* Reports that instances contain each other without end, or too deep. */
static void refuse_chain(struct fragi_builder *builder, const struct chain *chain,
			 const struct fragi_node *place, const struct fragi_subgraph *inner)
{
	char names[CHAIN_SIZE] = "", subject[SUBJECT_SIZE];
	const struct chain *first = chain;

	subject_of(chain->graph, subject, sizeof(subject));
	while (first->up != NULL)
		first = first->up;
	write_chain(chain, names, sizeof(names));
	if (inner->state == FRAGI_SUBGRAPH_UNDER_WAY)
		fragi_builder_error(
			builder, place, subject,
			"subgraph \"%s\" contains itself: %s > %s; take one of these instances out",
			inner->name, names, inner->name);
	else
		fragi_builder_error(builder, place, subject,
				    "instances are more than %d deep: %s > %s; nest them less",
				    FRAGI_SUBGRAPH_DEPTH_MAX, names, inner->name);
	for (; chain != NULL; chain = chain->up)
		chain->graph->is_refused = true;
}

/* Counts the operators of the subgraph and finds cycles. */
static void measure(struct fragi_builder *builder, struct fragi_subgraph *graph,
		    const struct chain *up)
{
	struct chain chain = {graph, up, up != NULL ? up->length + 1 : 1};
	struct fragi_subgraph *inner;
	const struct fragi_node *name;

	graph->state = FRAGI_SUBGRAPH_UNDER_WAY;
	graph->depth = 1;
	for (const struct fragi_node *child = graph->operators != NULL ? graph->operators->first
								       : NULL;
	     child != NULL; child = child->next) {
		name = fragi_node_get(child, "subgraph");
		inner = name != NULL && name->kind == FRAGI_NODE_SCALAR
				? fragi_subgraph_find(builder, name->text)
				: NULL;
		if (inner == NULL) {
			graph->operator_count++;
			continue;
		}
		if (inner->state == FRAGI_SUBGRAPH_NEW && chain.length < FRAGI_SUBGRAPH_DEPTH_MAX)
			measure(builder, inner, &chain);
		if (inner->state != FRAGI_SUBGRAPH_MEASURED ||
		    chain.length + inner->depth > FRAGI_SUBGRAPH_DEPTH_MAX) {
			if (!graph->is_refused)
				refuse_chain(builder, &chain, name, inner);
			continue;
		}
		graph->operator_count += inner->operator_count;
		if (graph->depth <= inner->depth)
			graph->depth = inner->depth + 1;
		if (graph->operator_count > FRAGI_SUBGRAPH_OPERATORS_MAX)
			graph->operator_count = FRAGI_SUBGRAPH_OPERATORS_MAX + 1;
	}
	graph->state = FRAGI_SUBGRAPH_MEASURED;
}

void fragi_subgraphs_declare(struct fragi_builder *builder, struct fragi_node *map)
{
	struct fragi_subgraph *graph;

	map = fragi_read_map(builder, map, NULL, "subgraphs");
	if (map == NULL)
		return;
	for (struct fragi_node *child = map->first; child != NULL; child = child->next) {
		if (!fragi_check_name(builder, child->key, NULL, "subgraph", child->key->text)) {
			map->lost_a_name = true;
			continue;
		}
		graph = fragi_builder_alloc(builder, 1, sizeof(*graph));
		if (graph == NULL)
			return;
		graph->name = child->key->text;
		graph->place = child->key;
		if (fragi_subgraph_find(builder, graph->name) != NULL)
			continue; /* a key given twice was reported */
		fragi_builder_note(builder, &builder->subgraphs, graph->name, graph);
		declare(builder, graph, child);
	}
	for (struct fragi_node *child = map->first; child != NULL; child = child->next) {
		graph = fragi_subgraph_find(builder, child->key->text);
		if (graph != NULL && graph->state == FRAGI_SUBGRAPH_NEW)
			measure(builder, graph, NULL);
	}
}
