// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include <text/subgraph.h>

/* The ends that one end of a flow stands for, as nodes. */
struct ends {
	struct fragi_builder *builder;
	const char *fragment; /* of the flow; NULL: between fragments */
	const char *graph;    /* the subgraph that declares the flow; NULL: none */
	const char *text;     /* as it is written */
	const struct fragi_node *place;
	const struct fragi_subgraph_inner *inner; /* where a subgraph names the end; else NULL */
	enum fragi_subgraph_dir dir;              /* what must stand there */
	struct fragi_node *list;
	bool is_changed; /* an interface port or a prefix was replaced */
	bool failed;     /* an error was reported */
};

bool fragi_subgraph_split(struct fragi_builder *builder, const char *text, const char **out_from,
			  const char **out_to)
{
	const char *arrow = strstr(text, "->");

	if (arrow == NULL || strstr(arrow + 2, "->") != NULL)
		return false;
	*out_from = fragi_builder_trimmed(builder, text, (size_t)(arrow - text));
	*out_to = fragi_builder_trimmed(builder, arrow + 2, strlen(arrow + 2));
	return *out_from != NULL && *out_to != NULL;
}

static const struct fragi_subgraph_instance *find_instance(const struct ends *ends,
							   const char *fragment, const char *op)
{
	char path[2 * FRAG_NAME_MAX + 4];

	if (strlen(fragment) > FRAG_NAME_MAX || strlen(op) > FRAG_NAME_MAX)
		return NULL;
	snprintf(path, sizeof(path), "%s.%s", fragment, op);
	return fragi_strmap_get(&ends->builder->instances, path);
}

static const char *dir_text(enum fragi_subgraph_dir dir)
{
	return dir == FRAGI_SUBGRAPH_IN ? "input" : "output";
}

/* Whether the port may have the direction that the end needs. */
static bool may_be(const struct ends *ends, const struct fragi_subgraph *graph,
		   const struct fragi_subgraph_port *port)
{
	const char *execution = fragi_subgraph_execution(ends->builder, graph, port);

	if (execution != NULL)
		return ends->dir == (strcmp(execution, FRAG_INPUT_EXEC) == 0 ? FRAGI_SUBGRAPH_IN
									     : FRAGI_SUBGRAPH_OUT);
	return port->dir == FRAGI_SUBGRAPH_ANY || port->dir == ends->dir;
}

#define ends_error(ends, ...)                                                                      \
	do {                                                                                       \
		fragi_builder_error((ends)->builder,                                               \
				    (ends)->inner != NULL ? (ends)->inner->place : (ends)->place,  \
				    NULL, __VA_ARGS__);                                            \
		(ends)->failed = true;                                                             \
	} while (0)

const char *fragi_subgraph_inner_text(const struct fragi_subgraph_inner *inner, char *out,
				      size_t size)
{
	const char *dot = inner->port != NULL ? "." : "";
	const char *port = inner->port != NULL ? inner->port : "";

	if (inner->name != NULL)
		snprintf(out, size, "subgraphs.%s: port \"%s\": %.80s%s%.80s", inner->graph,
			 inner->name, inner->op, dot, port);
	else
		snprintf(out, size, "subgraphs.%s: flow end %.200s", inner->graph, inner->op);
	return out;
}

/* What an error calls the end: as the flow has it, or the subgraph where that names a port. */
static const char *name_of(const struct ends *ends, char *out, size_t size)
{
	if (ends->inner != NULL)
		return fragi_subgraph_inner_text(ends->inner, out, size);
	snprintf(out, size, "flow end %.200s", ends->text);
	return out;
}

static const char *advise_ports(const struct ends *ends, char *out, size_t size, const char *word,
				const struct fragi_subgraph *graph)
{
	const char *names[64];
	size_t count = 0;
	char what[32];

	for (const struct fragi_subgraph_port *port = graph->first_port;
	     port != NULL && count < FRAG_COUNT_OF(names); port = port->next)
		if (may_be(ends, graph, port))
			names[count++] = port->name;
	snprintf(what, sizeof(what), "its %ss", dir_text(ends->dir));
	if (count > 0)
		return fragi_builder_advise(ends->builder, out, size, word, what, names, count);
	snprintf(out, size, "; it has no %ss", dir_text(ends->dir));
	return out;
}

/*
 * Returns the port that is named, or the only one: of those for messages, else of those for
 * execution. NULL after an error.
 */
static const struct fragi_subgraph_port *
find_port(struct ends *ends, const struct fragi_subgraph *graph, const char *name)
{
	const struct fragi_subgraph_port *only = NULL, *port;
	size_t count = 0;
	char advice[512], what[FRAGI_SUBGRAPH_INNER_SIZE];

	if (name != NULL) {
		port = fragi_subgraph_port(ends->builder, graph, name);
		if (port != NULL && (port->is_invalid || may_be(ends, graph, port)))
			return port;
		if (port != NULL && ends->inner != NULL) /* NULL: the flow may be wrong */
			ends->inner = ends->inner->directed;
		name_of(ends, what, sizeof(what));
		ends->failed = true;
		if (port != NULL)
			ends_error(ends,
				   "%s: port \"%s\" of subgraph \"%s\" is an %s, and a flow %s%s",
				   what, name, graph->name,
				   ends->dir == FRAGI_SUBGRAPH_IN ? "output" : "input",
				   ends->dir == FRAGI_SUBGRAPH_IN ? "ends at an input"
								  : "begins at an output",
				   advise_ports(ends, advice, sizeof(advice), "", graph));
		else if (!graph->lost_ports)
			ends_error(ends, "%s: subgraph \"%s\" has no port \"%.80s\"%s", what,
				   graph->name, name,
				   advise_ports(ends, advice, sizeof(advice), name, graph));
		return NULL;
	}
	for (int execution = 0; count == 0 && execution <= 1; execution++)
		for (port = graph->first_port; port != NULL; port = port->next) {
			const char *name_of = fragi_subgraph_execution(ends->builder, graph, port);

			if ((name_of != NULL) != execution || !may_be(ends, graph, port))
				continue;
			only = port;
			count++;
		}
	if (count == 1)
		return only;
	ends->failed = true;
	if (graph->lost_ports)
		return NULL;
	name_of(ends, what, sizeof(what));
	if (count == 0)
		ends_error(ends, "%s: subgraph \"%s\" has no %ss; declare `ports:` in it", what,
			   graph->name, dir_text(ends->dir));
	else
		ends_error(ends, "%s: several could be meant; name the port%s", what,
			   advise_ports(ends, advice, sizeof(advice), "", graph));
	return NULL;
}

/* What a port stands for which itself stands there for another, which may state the direction. */
static const struct fragi_subgraph_inner *within(const struct ends *ends,
						 const struct fragi_subgraph_inner *outer,
						 const struct fragi_subgraph_inner *inner)
{
	struct fragi_subgraph_inner *copy;

	if (outer == NULL || outer->directed == NULL || inner->directed != NULL)
		return inner;
	copy = fragi_builder_alloc(ends->builder, 1, sizeof(*copy));
	if (copy == NULL)
		return inner;
	*copy = *inner;
	copy->directed = outer->directed;
	return copy;
}

/*
 * Adds what operator or instance "op" and port stand for. Ports stand for ports of operators that
 * are nested deeper, so this ends.
 */
static void add(struct ends *ends, const char *fragment, const char *op, const char *port)
{
	const struct fragi_subgraph_instance *instance = find_instance(ends, fragment, op);
	struct fragi_builder *builder = ends->builder;
	const struct fragi_subgraph_inner *outer_inner = ends->inner;
	const struct fragi_subgraph_port *outer;
	struct fragi_node *node;
	const char *name;

	if (instance != NULL && instance->graph != NULL) {
		ends->is_changed = true;
		outer = find_port(ends, instance->graph, port);
		ends->failed = ends->failed || outer == NULL || outer->is_invalid;
		for (size_t i = 0; outer != NULL && i < outer->inner_count; i++) {
			name = fragi_subgraph_join(builder, op, outer->inner[i].op);
			if (name == NULL || !fragi_subgraph_spend(builder, ends->place))
				break;
			ends->inner = within(ends, outer_inner, &outer->inner[i]);
			add(ends, fragment, name, outer->inner[i].port);
		}
		ends->inner = NULL;
		return;
	}
	node = fragi_subgraph_node(builder, FRAGI_NODE_SCALAR, ends->place, NULL);
	if (node == NULL)
		return;
	node->inner = ends->inner;
	node->text = fragi_arena_printf(&builder->spec->arena, "%s%s%s%s%s",
					ends->fragment == NULL ? fragment : "",
					ends->fragment == NULL ? "." : "", op,
					port != NULL ? "." : "", port != NULL ? port : "");
	if (node->text == NULL)
		builder->no_memory = true;
	else
		fragi_subgraph_append(ends->list, node);
}

/* Takes the text up to the first dot; the rest is NULL when there is no dot. */
static char *take_part(char **rest)
{
	char *part = *rest, *dot = strchr(part, '.');

	if (dot != NULL)
		*dot++ = '\0';
	*rest = dot;
	return part;
}

/* An end of a flow of a subgraph; all instances have the same one. */
static const struct fragi_subgraph_inner *end_in(const struct ends *ends, const char *text,
						 const struct fragi_node *place)
{
	struct fragi_subgraph_inner *end = fragi_builder_alloc(ends->builder, 1, sizeof(*end));

	if (end != NULL)
		*end = (struct fragi_subgraph_inner){
			.op = text, .graph = ends->graph, .place = place, .directed = end};
	return end;
}

/* Adds what the text of an end stands for. */
static void add_text(struct ends *ends, const struct fragi_node *place, const char *text,
		     const char *prefix)
{
	char *rest = fragi_builder_strdup(ends->builder, text);
	const char *fragment = ends->fragment, *op;

	if (rest == NULL)
		return;
	ends->place = place;
	ends->text = text;
	if (fragment == NULL)
		fragment = take_part(&rest);
	op = rest != NULL ? take_part(&rest) : "";
	ends->inner = ends->graph != NULL ? end_in(ends, text, place) : NULL;
	if (prefix != NULL) {
		op = fragi_subgraph_join(ends->builder, prefix, op);
		ends->is_changed = true;
	}
	if (op != NULL)
		add(ends, fragment, op, rest);
	ends->inner = NULL;
}

/* A value about which an error was reported, so that no further one is. */
static struct fragi_node *reported(struct ends *ends, const char *key)
{
	struct fragi_node *node =
		fragi_subgraph_node(ends->builder, FRAGI_NODE_SCALAR, ends->place, key);

	if (node != NULL) {
		node->text = "";
		node->is_reported = true;
	}
	return node;
}

static struct fragi_node *first_end(struct ends *ends)
{
	if (ends->list->count > 1) {
		ends_error(
			ends,
			"flow end %.200s: it stands for several inner ports, which only an input may",
			ends->text);
		return reported(ends, "from");
	}
	return ends->failed || ends->list->first == NULL ? reported(ends, "from")
							 : ends->list->first;
}

/*
 * Returns the value of `from` or `to` (key) with everything replaced; the node itself where nothing
 * changes. Values that are no texts are left for the reader of flows.
 */
static struct fragi_node *replace_end(struct ends *ends, struct fragi_node *node, const char *key,
				      const char *prefix)
{
	struct fragi_builder *builder = ends->builder;
	struct fragi_node *value;

	ends->place = node;
	ends->is_changed = ends->failed = false;
	ends->dir = key[0] == 'f' ? FRAGI_SUBGRAPH_OUT : FRAGI_SUBGRAPH_IN;
	ends->list = fragi_subgraph_node(builder, FRAGI_NODE_LIST, node, key);
	if (ends->list == NULL)
		return NULL;
	if (node->is_reported)
		return reported(ends, key);
	if (node->kind == FRAGI_NODE_SCALAR)
		add_text(ends, node, node->text, prefix);
	else if (node->kind != FRAGI_NODE_LIST || ends->dir == FRAGI_SUBGRAPH_OUT)
		return node;
	for (struct fragi_node *child = node->kind == FRAGI_NODE_LIST ? node->first : NULL;
	     child != NULL; child = child->next) {
		if (child->kind != FRAGI_NODE_SCALAR)
			return node;
		add_text(ends, child, child->text, prefix);
	}
	if (!ends->is_changed)
		return node;
	if (ends->dir == FRAGI_SUBGRAPH_OUT)
		value = first_end(ends);
	else
		value = ends->failed ? reported(ends, key) : ends->list;
	if (value != NULL && value->key == NULL && value != ends->list)
		value->key = ends->list->key;
	return value;
}

/* Returns a map with the same keys and other ends. */
static struct fragi_node *rewrite_map(struct ends *ends, struct fragi_node *node,
				      const char *prefix)
{
	struct fragi_builder *builder = ends->builder;
	struct fragi_node *map = fragi_subgraph_node(builder, FRAGI_NODE_MAP, node, NULL), *copy;
	const char *key;

	if (map == NULL)
		return NULL;
	for (struct fragi_node *child = node->first; child != NULL; child = child->next) {
		key = child->key->text;
		copy = strcmp(key, "from") == 0 || strcmp(key, "to") == 0
			       ? replace_end(ends, child, key, prefix)
			       : child;
		if (copy == child) {
			copy = fragi_builder_alloc(builder, 1, sizeof(*copy));
			if (copy != NULL)
				*copy = *child;
		}
		if (copy == NULL)
			return NULL;
		copy->next = NULL;
		fragi_subgraph_append(map, copy);
	}
	map->lost_a_name = node->lost_a_name;
	return map;
}

/* Returns a map in place of "a.x -> b.y"; the node itself where nothing changes. */
static struct fragi_node *rewrite_arrow(struct ends *ends, struct fragi_node *node,
					const char *prefix)
{
	struct fragi_builder *builder = ends->builder;
	struct fragi_node *map, *from, *to;
	const char *from_text, *to_text;
	bool is_changed;

	if (!fragi_subgraph_split(builder, node->text, &from_text, &to_text))
		return node;
	map = fragi_subgraph_node(builder, FRAGI_NODE_MAP, node, NULL);
	from = fragi_subgraph_node(builder, FRAGI_NODE_SCALAR, node, "from");
	to = fragi_subgraph_node(builder, FRAGI_NODE_SCALAR, node, "to");
	if (map == NULL || from == NULL || to == NULL)
		return NULL;
	from->text = from_text;
	to->text = to_text;
	from = replace_end(ends, from, "from", prefix);
	is_changed = ends->is_changed;
	to = replace_end(ends, to, "to", prefix);
	if (from == NULL || to == NULL)
		return NULL;
	if (!is_changed && !ends->is_changed)
		return node;
	fragi_subgraph_append(map, from);
	fragi_subgraph_append(map, to);
	return map;
}

struct fragi_node *fragi_subgraph_flow(struct fragi_builder *builder, struct fragi_node *node,
				       const char *fragment, const char *prefix, const char *graph)
{
	struct ends ends = {.builder = builder, .fragment = fragment, .graph = graph};

	if (node->is_reported)
		return node;
	if (node->kind == FRAGI_NODE_SCALAR)
		return rewrite_arrow(&ends, node, prefix);
	if (node->kind == FRAGI_NODE_MAP)
		return rewrite_map(&ends, node, prefix);
	return node;
}
