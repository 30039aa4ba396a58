// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include <text/subgraph.h>

/* Where an operator, a resource or an instance of a fragment comes from. */
struct origin {
	const char *instance;           /* qualified; NULL: the fragment declares it */
	const char *name;               /* in the subgraph */
	const struct fragi_node *place; /* of the name */
	struct fragi_node *node;
	bool is_instance;
};

/* The new content of one fragment. */
struct expansion {
	struct fragi_builder *builder;
	const char *fragment;
	bool has_extensions; /* libraries may list subgraphs that are not known here */
	struct fragi_strmap operators, resources; /* qualified name: struct origin */
	struct fragi_node *new_operators, *new_resources, *new_flows;
};

/* The subgraph whose content is added. */
struct level {
	const struct fragi_subgraph *graph;
	const char *prefix;                 /* the instance; NULL: the fragment itself */
	const struct fragi_origin *origins; /* [FRAGI_OBJECT_...] of what it has */
	const struct fragi_node *values;    /* of its parameters; NULL: it has none */
};

const char *fragi_subgraph_join(struct fragi_builder *builder, const char *prefix, const char *name)
{
	const char *joined =
		prefix == NULL ? name
			       : fragi_arena_printf(&builder->spec->arena, "%s_%s", prefix, name);

	if (joined == NULL)
		builder->no_memory = true;
	return joined;
}

struct fragi_node *fragi_subgraph_node(struct fragi_builder *builder, enum fragi_node_kind kind,
				       const struct fragi_node *place, const char *key)
{
	struct fragi_node *node = fragi_builder_alloc(builder, 1, sizeof(*node));
	struct fragi_node *name = fragi_builder_alloc(builder, 1, sizeof(*name));

	if (node == NULL || name == NULL)
		return NULL;
	node->kind = kind;
	node->file = place->file;
	node->line = place->line;
	node->column = place->column;
	*name = *node;
	name->kind = FRAGI_NODE_SCALAR;
	name->text = key;
	node->key = key != NULL ? name : NULL;
	return node;
}

void fragi_subgraph_append(struct fragi_node *parent, struct fragi_node *child)
{
	child->next = NULL;
	if (parent->last != NULL)
		parent->last->next = child;
	else
		parent->first = child;
	parent->last = child;
	parent->count++;
}

bool fragi_subgraph_spend(struct fragi_builder *builder, const struct fragi_node *place)
{
	if (builder->subgraph_nodes > FRAGI_SUBGRAPH_NODES_MAX)
		return false;
	if (++builder->subgraph_nodes <= FRAGI_SUBGRAPH_NODES_MAX)
		return true;
	fragi_builder_error(
		builder, place, NULL,
		"the instances of subgraphs make more than %d values and ends of flows; use fewer",
		FRAGI_SUBGRAPH_NODES_MAX);
	return false;
}

/* $pool of a subgraph that has a resource of that name */
static bool is_own_resource(const struct fragi_builder *builder, const struct level *level,
			    const struct fragi_node *node)
{
	char key[2 * FRAG_NAME_MAX + 2];

	if (node->kind != FRAGI_NODE_SCALAR || node->text[0] != '$' || node->quoted ||
	    strlen(node->text) > FRAG_NAME_MAX + 1)
		return false;
	snprintf(key, sizeof(key), "%s%s", level->graph->name, node->text);
	return fragi_strmap_get(&builder->subgraph_names, key) != NULL;
}

/* Copies a node with all below it; $name is put into the qualified name. */
static struct fragi_node *copy_of(struct fragi_builder *builder, const struct level *level,
				  const struct fragi_node *node)
{
	struct fragi_node *copy, *child_copy;

	if (level->values != NULL && node->kind == FRAGI_NODE_SCALAR &&
	    strstr(node->text, "${") != NULL) {
		copy = fragi_subgraph_substitute(builder, level->values, node);
		if (copy != NULL && copy->kind == FRAGI_NODE_SCALAR && copy->origin == NULL)
			copy->origin = level->origins;
		return copy;
	}
	copy = fragi_subgraph_copy_alone(builder, node);
	if (copy == NULL)
		return NULL;
	if (copy->kind == FRAGI_NODE_SCALAR && copy->origin == NULL)
		copy->origin = level->origins;
	if (is_own_resource(builder, level, node)) {
		copy->text = fragi_arena_printf(&builder->spec->arena, "$%s_%s", level->prefix,
						node->text + 1);
		builder->no_memory = builder->no_memory || copy->text == NULL;
		if (copy->text == NULL)
			return NULL;
	}
	for (const struct fragi_node *child = node->first; child != NULL; child = child->next) {
		child_copy = copy_of(builder, level, child);
		if (child_copy == NULL)
			return NULL;
		fragi_subgraph_append(copy, child_copy);
	}
	return copy;
}

/* The node under its qualified name: a copy of one of a subgraph, the fragment's own itself. */
static struct fragi_node *qualified(struct expansion *x, const struct level *level,
				    struct fragi_node *node, const char *name,
				    enum fragi_object_kind kind)
{
	struct fragi_node *copy, *key;

	if (level->prefix == NULL)
		return node;
	copy = copy_of(x->builder, level, node);
	key = fragi_builder_alloc(x->builder, 1, sizeof(*key));
	if (copy == NULL || key == NULL)
		return NULL;
	*key = *node->key;
	key->text = name;
	copy->key = key;
	copy->origin = &level->origins[kind];
	return copy;
}

static const char *describe_origin(const struct origin *origin, const char *what, char *out,
				   size_t size)
{
	if (origin->instance == NULL)
		snprintf(out, size, "%s of the fragment (%.100s:%d:%d)",
			 origin->is_instance ? "an instance" : what, origin->place->file,
			 origin->place->line, origin->place->column);
	else
		snprintf(out, size, "\"%s\" of instance \"%s\" (%.100s:%d:%d)", origin->name,
			 origin->instance, origin->place->file, origin->place->line,
			 origin->place->column);
	return out;
}

/* Takes a qualified name. Returns NULL after an error; what: "an operator". */
static struct origin *claim(struct expansion *x, struct fragi_strmap *names,
			    const struct level *level, struct fragi_node *node, const char *name,
			    const char *what)
{
	struct origin *origin = fragi_builder_alloc(x->builder, 1, sizeof(*origin));
	const struct origin *other = fragi_strmap_get(names, name);
	char first[400], second[400];

	if (origin == NULL)
		return NULL;
	*origin = (struct origin){.instance = level->prefix,
				  .name = node->key->text,
				  .place = node->key,
				  .is_instance = fragi_node_get(node, "subgraph") != NULL};
	if (other == NULL && strlen(name) <= FRAG_NAME_MAX) {
		fragi_builder_note(x->builder, names, name, origin);
		return origin;
	}
	if (other == NULL)
		fragi_builder_error(
			x->builder, node->key, x->fragment,
			"the name \"%.200s\", of \"%s\" in an instance, has %zu characters; %d are allowed, so shorten the names that it is made of",
			name, node->key->text, strlen(name), FRAG_NAME_MAX);
	else if (other->instance != NULL || level->prefix != NULL)
		fragi_builder_error(x->builder, node->key, x->fragment,
				    "two are called \"%s\": %s and %s; rename one of them", name,
				    describe_origin(other, what, first, sizeof(first)),
				    describe_origin(origin, what, second, sizeof(second)));
	x->new_operators->lost_a_name = true;
	return NULL;
}

/* An operator without a type, called as one that an instance has made: settings for that one. */
static bool merge_override(struct expansion *x, struct fragi_node *node, const char *name)
{
	struct origin *origin = fragi_strmap_get(&x->operators, name);

	if (origin == NULL || origin->instance == NULL || origin->is_instance ||
	    origin->node == NULL || origin->node->kind != FRAGI_NODE_MAP)
		return false;
	fragi_subgraph_merge(x->builder, origin->node, node);
	return true;
}

/* Only settings: neither an operator with a type nor an instance. */
static bool is_override(const struct fragi_node *node)
{
	return node->kind == FRAGI_NODE_MAP && node->count > 0 && !node->is_reported &&
	       fragi_node_get(node, "type") == NULL && fragi_node_get(node, "subgraph") == NULL;
}

static void add_operator(struct expansion *x, const struct level *level, struct fragi_node *node,
			 const char *name)
{
	struct origin *origin;
	struct fragi_node *copy;

	if (level->prefix == NULL && fragi_strmap_get(&x->operators, name) != NULL &&
	    ((struct origin *)fragi_strmap_get(&x->operators, name))->instance == NULL) {
		fragi_subgraph_append(x->new_operators, node); /* a key given twice */
		return;
	}
	origin = claim(x, &x->operators, level, node, name, "an operator");
	copy = origin != NULL ? qualified(x, level, node, name, FRAGI_OBJECT_PLAIN) : NULL;
	if (copy == NULL)
		return;
	origin->node = copy;
	fragi_subgraph_append(x->new_operators, copy);
}

static void add_content(struct expansion *x, const struct level *level);

/*
 * Checks the map of an instance. Returns its subgraph; NULL when it is refused, or is left for the
 * host (is_composed).
 */
static const struct fragi_subgraph *read_instance(struct expansion *x, const struct level *level,
						  struct fragi_node *node, const char *name,
						  bool *out_is_composed)
{
	static const struct fragi_key fields[] = {{"subgraph"}, {"when"}, {"parameters"}};
	struct fragi_builder *builder = x->builder;
	struct fragi_node *given = fragi_node_get(node, "subgraph"), *parameters;
	const struct fragi_subgraph *graph;
	char subject[3 * FRAG_NAME_MAX], advice[512];
	const char *text;

	snprintf(subject, sizeof(subject), "%s.%.100s", x->fragment, name);
	text = fragi_read_text(builder, given, subject, "subgraph");
	if (text == NULL)
		return NULL;
	graph = fragi_subgraph_find(builder, text);
	if (x->has_extensions && (graph == NULL || graph->is_of_library)) {
		*out_is_composed = true;
		return NULL;
	}
	if (graph == NULL) {
		if (!fragi_spec_may_be_lost(builder, fragi_node_get(builder->root, "subgraphs"),
					    text))
			fragi_builder_error(
				builder, given, subject, "unknown subgraph \"%.80s\"%s", text,
				fragi_builder_advise_keys(
					builder, advice, sizeof(advice), text, "subgraphs",
					fragi_node_get(builder->root, "subgraphs")));
		return NULL;
	}
	if (graph->is_of_library)
		fragi_builder_error(
			builder, given, subject,
			"subgraph \"%s\" has a configuration only; list its library under extensions, or add operators",
			text);
	fragi_keys_check(builder, node, subject, fields,
			 FRAG_COUNT_OF(fields) - 1 + (fragi_node_get(node, "parameters") != NULL));
	parameters = fragi_node_get(node, "parameters");
	if (parameters != NULL && graph->parameters == NULL)
		fragi_builder_error(
			builder, parameters->key, subject,
			"subgraph %s declares no parameters; set those of its operators, for example `%s_%s: {parameters: {...}}` among the operators",
			graph->name, name,
			graph->operators != NULL && graph->operators->first != NULL
				? graph->operators->first->key->text
				: "OPERATOR");
	if (graph->is_refused)
		return NULL;
	if (level->prefix == NULL) /* the count is that of all nested ones */
		builder->subgraph_operators += graph->operator_count;
	if (builder->subgraph_operators > FRAGI_SUBGRAPH_OPERATORS_MAX) {
		fragi_builder_error(
			builder, given, subject,
			"the instances of subgraphs have more than %d operators in all; use fewer",
			FRAGI_SUBGRAPH_OPERATORS_MAX);
		builder->subgraph_operators = FRAGI_SUBGRAPH_OPERATORS_MAX;
		return NULL;
	}
	return graph;
}

/* What the instance is given, where the outer subgraph's parameters are in place, and defaults. */
static const struct fragi_node *instance_values(struct expansion *x, const struct level *level,
						const struct fragi_subgraph *graph,
						struct fragi_node *node, const char *name)
{
	struct fragi_node *given = fragi_node_get(node, "parameters");
	char subject[3 * FRAG_NAME_MAX];

	snprintf(subject, sizeof(subject), "%s.%.100s", x->fragment, name);
	if (fragi_read_map(x->builder, given, subject, "parameters") != NULL &&
	    level->prefix != NULL)
		given = copy_of(x->builder, level, given);
	return fragi_subgraph_values(x->builder, graph, given, node->key, subject);
}

/* Notes where what the inner level has comes from. Returns false when memory is short. */
static bool begin_scope(struct fragi_builder *builder, const struct level *level,
			struct level *inner)
{
	const char *outer = level->prefix != NULL ? level->origins[0].scope : builder->outer_scope;
	struct fragi_origin *origins = fragi_builder_alloc(builder, 3, sizeof(*origins));
	const struct fragi_node *config = inner->graph != NULL ? inner->graph->config : NULL;
	const char *scope = inner->prefix;

	if (outer != NULL)
		scope = fragi_builder_join(builder, outer, scope);
	if (config != NULL && inner->values != NULL)
		config = copy_of(builder, inner, config);
	if (origins == NULL || scope == NULL)
		return false;
	for (int kind = FRAGI_OBJECT_PLAIN; kind <= FRAGI_OBJECT_LOGGER; kind++)
		origins[kind] = (struct fragi_origin){scope, (enum fragi_object_kind)kind, config};
	inner->origins = origins;
	return true;
}

static void add_instance(struct expansion *x, const struct level *level, struct fragi_node *node,
			 const char *name)
{
	bool is_composed = false;
	const struct fragi_subgraph *graph = read_instance(x, level, node, name, &is_composed);
	struct fragi_builder *builder = x->builder;
	struct fragi_subgraph_instance *instance =
		fragi_builder_alloc(builder, 1, sizeof(*instance));
	struct level inner = {.graph = graph, .prefix = name};

	if (graph != NULL && graph->parameters != NULL)
		inner.values = instance_values(x, level, graph, node, name);
	if (instance == NULL || !begin_scope(builder, level, &inner) ||
	    claim(x, &x->operators, level, node, name, "an operator") == NULL)
		return;
	*instance = (struct fragi_subgraph_instance){name, graph};
	fragi_builder_note(builder, &builder->instances,
			   fragi_builder_join(builder, x->fragment, name), instance);
	if (is_composed) {
		fragi_builder_note(builder, &builder->composed, x->fragment, node);
		node = qualified(x, level, node, name, FRAGI_OBJECT_PLAIN);
		if (node != NULL)
			fragi_subgraph_append(x->new_operators, node);
		return;
	}
	if (graph == NULL) {
		node = fragi_subgraph_node(builder, FRAGI_NODE_MAP, node->key, name);
		if (node == NULL)
			return;
		node->is_reported = true;
		fragi_subgraph_append(x->new_operators, node);
		return;
	}
	if (graph->operators->lost_a_name || graph->lost_ports)
		x->new_operators->lost_a_name = true;
	add_content(x, &inner);
}

static void add_operators(struct expansion *x, const struct level *level,
			  struct fragi_node *operators)
{
	struct fragi_node *child, *next;
	struct fragi_node *later = NULL, **last = &later;
	const char *name;

	for (child = operators->first; child != NULL; child = next) {
		next = child->next;
		name = fragi_subgraph_join(x->builder, level->prefix, child->key->text);
		if (name == NULL)
			return;
		if (!fragi_name_is_valid(child->key->text) && level->prefix != NULL)
			continue; /* reported where it is declared */
		if (fragi_node_get(child, "subgraph") != NULL) {
			add_instance(x, level, child, name);
		} else if (is_override(child)) {
			*last = qualified(x, level, child, name, FRAGI_OBJECT_PLAIN);
			if (*last == NULL)
				return;
			(*last)->next = NULL;
			last = &(*last)->next;
		} else {
			add_operator(x, level, child, name);
		}
	}
	for (child = later; child != NULL; child = next) {
		const struct level own = {0};

		next = child->next;
		if (!merge_override(x, child, child->key->text))
			add_operator(x, &own, child, child->key->text);
	}
}

/* Services and data loggers of an instance go on as resources with that origin. */
static void add_resources(struct expansion *x, const struct level *level,
			  struct fragi_node *resources, enum fragi_object_kind kind)
{
	struct fragi_node *copy;
	const char *name;

	for (struct fragi_node *child = resources != NULL ? resources->first : NULL, *next;
	     child != NULL; child = next) {
		next = child->next;
		name = fragi_subgraph_join(x->builder, level->prefix, child->key->text);
		if (name == NULL ||
		    (level->prefix != NULL && !fragi_name_is_valid(child->key->text)))
			continue;
		if (level->prefix == NULL && fragi_strmap_get(&x->resources, name) != NULL) {
			fragi_subgraph_append(x->new_resources, child); /* a key given twice */
			continue;
		}
		if (claim(x, &x->resources, level, child, name, "a resource") == NULL)
			continue;
		copy = qualified(x, level, child, name, kind);
		if (copy != NULL)
			fragi_subgraph_append(x->new_resources, copy);
	}
}

static void add_flows(struct expansion *x, const struct level *level, struct fragi_node *flows)
{
	struct fragi_node *flow, *copy;

	for (struct fragi_node *child = flows != NULL ? flows->first : NULL, *next; child != NULL;
	     child = next) {
		next = child->next;
		if (level->prefix != NULL && !fragi_subgraph_spend(x->builder, child))
			return;
		if (level->values != NULL)
			child = copy_of(x->builder, level, child);
		if (child == NULL)
			return;
		flow = fragi_subgraph_flow(x->builder, child, x->fragment, level->prefix,
					   level->prefix != NULL ? level->graph->name : NULL);
		if (flow == NULL)
			return;
		if (flow == child && level->prefix != NULL) {
			copy = fragi_builder_alloc(x->builder, 1, sizeof(*copy));
			if (copy == NULL)
				return;
			*copy = *flow;
			flow = copy;
		}
		fragi_subgraph_append(x->new_flows, flow);
	}
}

static void add_content(struct expansion *x, const struct level *level)
{
	add_resources(x, level, level->graph->resources, FRAGI_OBJECT_PLAIN);
	add_resources(x, level, level->graph->services, FRAGI_OBJECT_SERVICE);
	add_resources(x, level, level->graph->loggers, FRAGI_OBJECT_LOGGER);
	add_operators(x, level, level->graph->operators);
	add_flows(x, level, level->graph->flows);
}

static bool has_instance(const struct fragi_node *operators)
{
	for (const struct fragi_node *child = operators->first; child != NULL; child = child->next)
		if (fragi_node_get(child, "subgraph") != NULL)
			return true;
	return false;
}

/*
 * Begins a new section of the fragment with the kind of the one that is there, which may be absent;
 * NULL: it is neither absent nor of the kind, which its reader reports.
 */
static struct fragi_node *begin_section(struct expansion *x, struct fragi_node *map,
					const char *key, enum fragi_node_kind kind)
{
	const struct fragi_node *known = fragi_node_get(map, key);
	struct fragi_node *section;

	if (known != NULL && known->kind != kind && known->kind != FRAGI_NODE_NULL)
		return NULL;
	section = fragi_subgraph_node(
		x->builder, kind, known != NULL ? known : fragi_node_get(map, "operators"), key);
	if (section != NULL && known != NULL) {
		section->key = known->key;
		section->is_reported = known->is_reported;
		section->lost_a_name = known->lost_a_name;
	}
	return section;
}

/* Puts a section in place of the one that is there. */
static void end_section(struct fragi_node *map, struct fragi_node *section)
{
	struct fragi_node *known, *next;

	if (section == NULL)
		return;
	known = fragi_node_get(map, section->key->text);
	if (known == NULL) {
		if (section->count > 0)
			fragi_subgraph_append(map, section);
		return;
	}
	next = known->next;
	*known = *section;
	known->next = next;
}

static void expand_fragment(struct fragi_builder *builder, struct fragi_node *map,
			    const char *fragment)
{
	struct fragi_node *operators = fragi_node_get(map, "operators");
	const struct fragi_node *own_extensions = fragi_node_get(map, "extensions");
	const struct fragi_node *extensions = fragi_node_get(builder->root, "extensions");
	struct expansion x = {.builder = builder, .fragment = fragment};
	const struct level own = {0};
	struct fragi_node scratch = {0};

	if (operators == NULL || operators->kind != FRAGI_NODE_MAP || operators->is_reported ||
	    !has_instance(operators) || fragment == NULL || !fragi_name_is_valid(fragment))
		return;
	x.has_extensions = (extensions != NULL && extensions->count > 0) ||
			   (own_extensions != NULL && own_extensions->count > 0);
	x.new_operators = begin_section(&x, map, "operators", FRAGI_NODE_MAP);
	x.new_resources = begin_section(&x, map, "resources", FRAGI_NODE_MAP);
	x.new_flows = begin_section(&x, map, "flows", FRAGI_NODE_LIST);
	if (x.new_operators != NULL) {
		struct fragi_node *resources = x.new_resources, *flows = x.new_flows;

		x.new_resources = resources != NULL ? resources : &scratch;
		x.new_flows = flows != NULL ? flows : &scratch;
		if (resources != NULL)
			add_resources(&x, &own, fragi_node_get(map, "resources"),
				      FRAGI_OBJECT_PLAIN);
		add_operators(&x, &own, operators);
		if (flows != NULL)
			add_flows(&x, &own, fragi_node_get(map, "flows"));
		end_section(map, x.new_operators);
		end_section(map, resources);
		end_section(map, flows);
	}
	fragi_strmap_fini(&x.operators);
	fragi_strmap_fini(&x.resources);
}

void fragi_subgraphs_expand(struct fragi_builder *builder)
{
	struct fragi_node *fragments = fragi_node_get(builder->root, "fragments");
	struct fragi_node *flows = fragi_node_get(builder->root, "flows"), *flow, *next;
	struct fragi_node rewritten;

	fragi_subgraphs_declare(builder, fragi_node_get(builder->root, "subgraphs"));
	if (fragments == NULL) {
		expand_fragment(builder, builder->root, builder->spec->application);
		return;
	}
	for (struct fragi_node *child = fragments->kind == FRAGI_NODE_MAP ? fragments->first : NULL;
	     child != NULL; child = child->next)
		expand_fragment(builder, child, child->key->text);
	if (builder->instances.count == 0 || flows == NULL || flows->kind != FRAGI_NODE_LIST)
		return;
	rewritten = *flows;
	rewritten.first = rewritten.last = NULL;
	rewritten.count = 0;
	for (struct fragi_node *child = flows->first; child != NULL; child = next) {
		next = child->next;
		flow = fragi_subgraph_flow(builder, child, NULL, NULL, NULL);
		if (flow == NULL)
			return;
		fragi_subgraph_append(&rewritten, flow);
	}
	*flows = rewritten;
}
