// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/call.h>
#include <base/units.h>
#include <graph/subgraph.h>
#include <text/instance.h>

const char *fragi_subgraph_qualify(struct frag_fragment *fragment, const char *name)
{
	const struct frag_subgraph *subgraph =
		fragment->making != NULL ? fragment->making->subgraph : NULL;
	const char *qualified;

	if (subgraph == NULL || name == NULL)
		return name;
	qualified = fragi_arena_printf(&fragment->arena, "%s_%s", subgraph->name, name);
	if (qualified == NULL)
		fragi_making_fail(fragment, -ENOMEM, NULL, NULL, "out of memory");
	return qualified;
}

int fragi_subgraph_qualify_args(struct frag_fragment *fragment, struct fragi_spec_setting *settings,
				size_t count)
{
	struct fragi_node *node;
	const char *name;

	for (size_t i = 0; fragment->making->subgraph != NULL && i < count; i++) {
		if (settings[i].value->kind != FRAGI_NODE_SCALAR ||
		    settings[i].value->text[0] != '$')
			continue;
		name = fragi_subgraph_qualify(fragment, settings[i].value->text + 1);
		if (name == NULL)
			return -ENOMEM;
		if (fragi_resource_find(fragment, name) == NULL &&
		    fragi_strmap_get(&fragment->making->bad_resources, name) == NULL)
			continue;
		node = fragi_arena_alloc(&fragment->arena, sizeof(*node));
		if (node == NULL)
			return -ENOMEM;
		*node = *settings[i].value;
		node->text = fragi_arena_printf(&fragment->arena, "$%s", name);
		if (node->text == NULL)
			return -ENOMEM;
		settings[i].value = node;
	}
	return 0;
}

/* Checks the qualified name of an instance; reports errors. */
static bool name_is_free(struct frag_fragment *fragment, const char *name,
			 const struct fragi_node *place)
{
	const struct fragi_making *making = fragment->making;
	const bool is_op = name != NULL && fragi_strmap_get(&making->ops, name) != NULL;

	if (name == NULL || !fragi_name_is_valid(name))
		fragi_making_fail(
			fragment, -EINVAL, place, NULL,
			"\"%.200s\" is not a valid name of an instance; write a letter, then letters, digits, _ or -, %d in all at most",
			name != NULL ? name : "", FRAG_NAME_MAX);
	else if (is_op)
		fragi_making_fail(
			fragment, -EINVAL, place, NULL,
			"an operator and an instance of a subgraph are called \"%s\"; rename one of them",
			name);
	else if (fragi_strmap_get(&making->subgraphs, name) != NULL)
		fragi_making_fail(
			fragment, -EINVAL, place, NULL,
			"two instances of subgraphs are called \"%s\"; rename one of them", name);
	else
		return true;
	return false;
}

static const struct frag_subgraph_type *
type_of(struct frag_fragment *fragment, const struct frag_subgraph *subgraph, const char *name)
{
	const struct fragi_node *declared =
		fragment->spec != NULL ? fragment->spec->subgraphs : NULL;
	const struct frag_subgraph_type *type = NULL;
	struct frag_err err = FRAG_ERR_INIT;
	const char *names[64], *near;
	size_t count = 0;

	for (declared = declared != NULL ? declared->first : NULL;
	     declared != NULL && count < FRAG_COUNT_OF(names); declared = declared->next)
		names[count++] = declared->key->text;
	near = fragi_suggest(name, names, count);
	if (fragment->registry == NULL)
		frag_err_set(&err, -EINVAL,
			     "no subgraphs are registered here; make it of its table");
	else
		type = fragi_registry_subgraph(fragment->registry, name, &err);
	if (type == NULL && near != NULL) {
		err = (struct frag_err)FRAG_ERR_INIT;
		frag_err_set(&err, -EINVAL, "unknown subgraph \"%.80s\"; did you mean \"%s\"?",
			     name, near);
	}
	if (type == NULL && !fragment->making->no_library)
		fragi_making_fail_by(fragment, &err, subgraph->place, subgraph->subject, "");
	return type;
}

/* Stands for the type of one that the graph declares: it has a name only. */
static const struct frag_subgraph_type *declared_type(struct frag_fragment *fragment,
						      const char *name)
{
	struct frag_subgraph_type *type = fragi_arena_alloc(&fragment->arena, sizeof(*type));

	if (type != NULL)
		type->name = fragi_arena_strdup(&fragment->arena, name);
	if (type != NULL && type->name != NULL)
		return type;
	fragi_making_fail(fragment, -ENOMEM, NULL, NULL, "out of memory for a subgraph");
	return NULL;
}

static struct frag_subgraph *subgraph_alloc(struct frag_fragment *fragment, const char *name,
					    size_t setting_count)
{
	struct fragi_arena *arena = &fragment->arena;
	struct frag_subgraph *subgraph = fragi_arena_alloc(arena, sizeof(*subgraph));

	if (subgraph == NULL)
		return NULL;
	subgraph->fragment = fragment;
	subgraph->name = fragi_arena_strdup(arena, name);
	subgraph->subject = fragi_arena_printf(arena, "%s.%s", fragment->name, name);
	subgraph->is_asked = fragi_arena_alloc(arena, setting_count + 1);
	subgraph->outer = fragment->making->subgraph;
	subgraph->outer_scope = fragment->making->scope;
	subgraph->scope = subgraph->outer_scope == NULL
				  ? subgraph->name
				  : fragi_arena_printf(arena, "%s.%s", subgraph->outer_scope, name);
	subgraph->depth = subgraph->outer != NULL ? subgraph->outer->depth + 1 : 1;
	if (subgraph->name == NULL || subgraph->subject == NULL || subgraph->is_asked == NULL ||
	    subgraph->scope == NULL)
		return NULL;
	return subgraph;
}

/* Reports parameters that compose has not asked for. */
static int check_arguments(struct frag_subgraph *subgraph)
{
	char advice[400];
	int r = 0;

	for (size_t i = 0; i < subgraph->setting_count; i++) {
		if (subgraph->is_asked[i])
			continue;
		if (subgraph->asked_count > 0)
			fragi_advise(advice, sizeof(advice), subgraph->settings[i].name,
				     "its parameters", subgraph->asked, subgraph->asked_count);
		else
			snprintf(advice, sizeof(advice), "; it has no parameters");
		r = fragi_making_fail(subgraph->fragment, -EINVAL, subgraph->settings[i].place,
				      subgraph->subject, "unknown parameter \"%.80s\"%s",
				      subgraph->settings[i].name, advice);
	}
	return r;
}

static int compose(struct frag_subgraph *subgraph)
{
	struct frag_fragment *fragment = subgraph->fragment;
	struct fragi_making *making = fragment->making;
	const bool is_from_graph = subgraph->place != NULL && subgraph->outer == NULL;
	size_t errors = fragment->diag != NULL ? fragment->diag->count + fragment->diag->beyond : 0;
	int r;

	subgraph->first_op = fragment->made_count;
	making->subgraph = subgraph;
	making->scope = subgraph->scope;
	if (is_from_graph) {
		fragi_current_set(NULL, FRAGI_CALL_COMPOSE);
		fragi_call_begin(fragment->name, FRAGI_CALL_COMPOSE, 0);
	}
	r = subgraph->type->compose(subgraph, fragment);
	if (is_from_graph)
		fragi_current_set(NULL, FRAGI_CALL_NONE);
	making->subgraph = subgraph->outer;
	making->scope = subgraph->outer_scope;
	subgraph->op_end = fragment->made_count;
	if (r > 0)
		return fragi_making_fail(
			fragment, -EINVAL, subgraph->place, subgraph->subject,
			"subgraph \"%s\" returned %d; return 0 or a negative errno",
			subgraph->type->name, r);
	if (r == 0)
		return check_arguments(subgraph);
	fragi_making_note(fragment, r);
	if (fragment->diag != NULL && fragment->diag->count + fragment->diag->beyond == errors &&
	    !making->no_library)
		fragi_making_fail(fragment, r, subgraph->place, subgraph->subject,
				  "subgraph \"%s\" returned %d (%s)", subgraph->type->name, r,
				  frag_strerror(r));
	return r;
}

/* "a > b > c" */
static void write_nesting(const struct frag_subgraph *subgraph, char *out, size_t size)
{
	size_t length;

	if (subgraph->outer != NULL)
		write_nesting(subgraph->outer, out, size);
	length = strlen(out);
	snprintf(out + length, size - length, "%s%s", length > 0 ? " > " : "",
		 subgraph->type->name);
}

struct frag_subgraph *fragi_subgraph_make(struct frag_fragment *fragment, const char *name,
					  const char *type_name,
					  const struct frag_subgraph_type *type,
					  const struct fragi_spec_setting *settings, size_t count,
					  const struct fragi_node *place)
{
	char nesting[FRAGI_SUBGRAPH_NESTING_MAX * 40] = "";
	struct frag_subgraph *subgraph;
	bool is_declared;

	if (!name_is_free(fragment, name, place))
		return NULL;
	subgraph = subgraph_alloc(fragment, name, count);
	if (subgraph == NULL ||
	    fragi_strmap_put(&fragment->making->subgraphs, subgraph->name, subgraph) < 0) {
		fragi_making_fail(fragment, -ENOMEM, place, NULL, "out of memory for \"%s\"", name);
		return NULL;
	}
	subgraph->settings = settings;
	subgraph->setting_count = count;
	subgraph->place = place;
	is_declared = type_name != NULL && fragment->spec != NULL &&
		      fragi_spec_declares(fragment->spec, type_name);
	subgraph->type = is_declared         ? declared_type(fragment, type_name)
			 : type_name != NULL ? type_of(fragment, subgraph, type_name)
					     : type;
	if (subgraph->type == NULL)
		return NULL;
	if (fragment->spec != NULL)
		subgraph->config = fragi_node_get(
			fragi_node_get(fragment->spec->subgraphs, subgraph->type->name), "config");
	if (subgraph->depth > FRAGI_SUBGRAPH_NESTING_MAX) {
		write_nesting(subgraph->outer, nesting, sizeof(nesting));
		fragi_making_fail(
			fragment, -EINVAL, place, NULL,
			"instances of subgraphs are more than %d deep: %s > %s; nest them less",
			FRAGI_SUBGRAPH_NESTING_MAX, nesting, subgraph->type->name);
		return NULL;
	}
	if (is_declared)
		return fragi_subgraph_make_declared(subgraph) == 0 ? subgraph : NULL;
	return compose(subgraph) == 0 ? subgraph : NULL;
}

static struct frag_subgraph *make_subgraph(struct frag_fragment *fragment, const char *name,
					   const char *type_name,
					   const struct frag_subgraph_type *type,
					   const struct frag_arg *args)
{
	struct fragi_spec_setting *settings;
	size_t count;

	if (!fragi_making_is_open(fragment))
		return NULL;
	if (fragi_making_settings(fragment, NULL, args, &settings, &count) < 0)
		return NULL;
	return fragi_subgraph_make(fragment, fragi_subgraph_qualify(fragment, name), type_name,
				   type, settings, count, NULL);
}

struct frag_subgraph *frag_make_subgraph(struct frag_fragment *fragment, const char *name,
					 const char *type, const struct frag_arg *args)
{
	return make_subgraph(fragment, name, type != NULL ? type : "", NULL, args);
}

struct frag_subgraph *frag_make_subgraph_of(struct frag_fragment *fragment, const char *name,
					    const struct frag_subgraph_type *type,
					    const struct frag_arg *args)
{
	if (type == NULL || type->name == NULL || type->compose == NULL) {
		if (fragi_making_is_open(fragment))
			fragi_making_fail(
				fragment, -EINVAL, NULL, NULL,
				"frag_make_subgraph_of: the type has no name or no compose");
		return NULL;
	}
	return make_subgraph(fragment, name, NULL, type, args);
}

/* Adds an interface port of one of op and inner. */
static int add_interface(struct frag_subgraph *subgraph, struct frag_op *op,
			 const struct frag_subgraph *inner, const char *port, const char *name,
			 int dir)
{
	struct frag_fragment *fragment;
	struct fragi_made_interface row = {.subgraph = subgraph, .op = op, .inner = inner};
	struct fragi_made_interface *rows;
	struct fragi_making *making;

	if (subgraph == NULL)
		return -EINVAL;
	fragment = subgraph->fragment;
	making = fragment->making;
	if (!fragi_making_is_open(fragment))
		return -EBUSY;
	if (op == NULL && inner == NULL)
		return making->code == 0 && !making->no_library
			       ? fragi_making_fail(fragment, -EINVAL, subgraph->place,
						   subgraph->subject, "an interface port of NULL")
			       : -EINVAL;
	if ((op != NULL ? op->fragment : inner->fragment) != fragment)
		return fragi_making_fail(
			fragment, -EINVAL, subgraph->place, subgraph->subject,
			"an interface port of \"%s\", which is in another fragment",
			op != NULL ? op->name : inner->name);
	if ((name != NULL || (name = port) != NULL) && !fragi_name_is_valid(name))
		return fragi_making_fail(fragment, -EINVAL, subgraph->place, subgraph->subject,
					 "\"%.80s\" is not a valid name of a port", name);
	if (making->interface_count >= FRAGI_INTERFACES_MAX)
		return fragi_making_fail(fragment, -EINVAL, subgraph->place, subgraph->subject,
					 "more than %d interface ports in a fragment",
					 FRAGI_INTERFACES_MAX);
	row.is_directed = dir >= 0;
	row.dir = dir >= 0 ? (enum frag_dir)dir : FRAG_IN;
	rows = fragi_making_room(fragment, making->interfaces, making->interface_count,
				 &making->interface_capacity, sizeof(*rows));
	if (rows == NULL || fragi_making_keep(fragment, port, &row.port) < 0 ||
	    fragi_making_keep(fragment, name, &row.name) < 0)
		return fragi_making_fail(fragment, -ENOMEM, NULL, NULL, "out of memory");
	making->interfaces = rows;
	rows[making->interface_count++] = row;
	return 0;
}

int frag_add_interface_port(struct frag_subgraph *subgraph, struct frag_op *op, const char *port,
			    const char *name)
{
	return add_interface(subgraph, op, NULL, port, name, -1);
}

int frag_add_input_interface_port(struct frag_subgraph *subgraph, struct frag_op *op,
				  const char *port, const char *name)
{
	return add_interface(subgraph, op, NULL, port, name, FRAG_IN);
}

int frag_add_output_interface_port(struct frag_subgraph *subgraph, struct frag_op *op,
				   const char *port, const char *name)
{
	return add_interface(subgraph, op, NULL, port, name, FRAG_OUT);
}

int frag_add_interface_port_of(struct frag_subgraph *subgraph, const struct frag_subgraph *inner,
			       const char *port, const char *name)
{
	if (subgraph != NULL && inner != NULL && port == NULL)
		return fragi_making_fail(
			subgraph->fragment, -EINVAL, subgraph->place, subgraph->subject,
			"frag_add_interface_port_of: name the port of \"%s\"", inner->name);
	return add_interface(subgraph, NULL, inner, port, name, -1);
}

/* The name of one end of a flow; an operator of that name is added. NULL after an error. */
static const char *named_end(struct frag_fragment *fragment, const char *name)
{
	const char *qualified = fragi_subgraph_qualify(fragment, name);
	struct frag_op *op =
		qualified != NULL ? fragi_strmap_get(&fragment->making->ops, qualified) : NULL;
	const char *copy;

	if (op != NULL)
		return fragi_op_add(op) == 0 ? op->name : NULL;
	if (qualified != NULL &&
	    fragi_strmap_get(&fragment->making->subgraphs, qualified) == NULL) {
		if (fragi_strmap_get(&fragment->making->bad_ops, qualified) == NULL)
			fragi_making_fail(
				fragment, -EINVAL, NULL, NULL,
				"frag_add_named_flow: there is no operator and no instance \"%.200s\"; make it first",
				qualified);
		return NULL;
	}
	return fragi_making_keep(fragment, qualified, &copy) == 0 ? copy : NULL;
}

int frag_add_named_flow(struct frag_fragment *fragment, const char *from, const char *out_port,
			const char *to, const char *in_port, uint32_t capacity,
			enum frag_policy policy)
{
	struct fragi_spec_end from_end = {0}, to_end = {0};
	int r;

	if (!fragi_making_is_open(fragment))
		return -EBUSY;
	if (from == NULL || to == NULL)
		return fragi_making_fail(fragment, -EINVAL, NULL, NULL,
					 "frag_add_named_flow: a name is NULL");
	r = fragi_making_check_flow(fragment, from, to, capacity, policy);
	if (r < 0)
		return r;
	from_end.op = named_end(fragment, from);
	to_end.op = named_end(fragment, to);
	if (from_end.op == NULL || to_end.op == NULL)
		return -EINVAL;
	if (fragi_making_keep(fragment, out_port, &from_end.port) < 0 ||
	    fragi_making_keep(fragment, in_port, &to_end.port) < 0)
		return fragi_making_fail(fragment, -ENOMEM, NULL, NULL, "out of memory for a flow");
	return fragi_making_flow(fragment, &from_end, &to_end, capacity, policy);
}

const char *frag_subgraph_argument(struct frag_subgraph *subgraph, const char *name)
{
	const struct fragi_node *value = NULL;
	size_t i;

	for (i = 0; i < subgraph->asked_count && strcmp(subgraph->asked[i], name) != 0; i++)
		;
	if (i == subgraph->asked_count && i < FRAG_COUNT_OF(subgraph->asked) &&
	    fragi_making_keep(subgraph->fragment, name, &subgraph->asked[i]) == 0)
		subgraph->asked_count++;
	for (i = 0; i < subgraph->setting_count; i++) {
		if (strcmp(subgraph->settings[i].name, name) != 0)
			continue;
		subgraph->is_asked[i] = true;
		value = subgraph->settings[i].value; /* the later one wins */
	}
	return value != NULL && value->kind == FRAGI_NODE_SCALAR ? value->text : NULL;
}

const char *frag_subgraph_name(const struct frag_subgraph *subgraph)
{
	return subgraph->name;
}

struct frag_op *frag_subgraph_operator(const struct frag_subgraph *subgraph, uint32_t i)
{
	const struct frag_fragment *fragment = subgraph->fragment;
	const bool is_composed = fragment->making == NULL || subgraph->op_end > 0;
	uint32_t end = is_composed ? subgraph->op_end : fragment->made_count;

	return i < end - subgraph->first_op ? fragment->made[subgraph->first_op + i] : NULL;
}
