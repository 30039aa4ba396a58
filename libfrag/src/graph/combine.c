// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <base/units.h>
#include <graph/compose.h>

/*
 * The terms of a combination are conditions of its operator. Each counts through one combination at
 * most, and stands before it in the list, so that none can be a term of itself.
 */
struct combining {
	struct frag_op *op;
	struct frag_condition *combination;
	uint32_t index; /* of the combination, in the list */
	const struct fragi_node *place;
};

#define refuse(combining, ...)                                                                     \
	fragi_making_fail((combining)->op->fragment, -EINVAL, (combining)->place,                  \
			  (combining)->op->subject, __VA_ARGS__)

static int term_add(const struct combining *combining, struct frag_condition *term)
{
	struct frag_condition *combination = combining->combination;

	for (uint32_t i = 0; i < combination->term_count; i++)
		if (combination->terms[i] == term)
			return 0; /* it is about two of the ports */
	if (term->is_term)
		return refuse(combining,
			      "condition %s: its term \"%s\" is a term of another combination too",
			      combination->name, term->name);
	if (term->built_in == &fragi_condition_none)
		return refuse(combining,
			      "condition %s: its term \"%s\" asks for nothing; leave it out",
			      combination->name, term->name);
	term->is_term = true;
	combination->terms[combination->term_count++] = term;
	return 0;
}

/* A term by its name, which may be written as $name. */
static int term_of_name(const struct combining *combining, const char *name)
{
	const struct frag_op *op = combining->op;
	const char *names[64];
	char advice[400];
	size_t count = 0;

	name += name[0] == '$';
	for (uint32_t i = 0; i < combining->index; i++) {
		if (strcmp(op->conditions[i]->name, name) == 0)
			return term_add(combining, op->conditions[i]);
		if (count < FRAG_COUNT_OF(names))
			names[count++] = op->conditions[i]->name;
	}
	if (frag_op_condition(op, name) != NULL)
		return refuse(
			combining,
			"condition %s: its term \"%.80s\" does not stand before it; list the terms first",
			combining->combination->name, name);
	return refuse(
		combining, "condition %s: there is no condition \"%.80s\" before it%s",
		combining->combination->name, name,
		fragi_advise(advice, sizeof(advice), name, "conditions before it", names, count));
}

static bool is_about(const struct frag_condition *condition, uint32_t port)
{
	for (uint32_t i = 0; i < condition->port_count; i++)
		if (condition->ports[i] == port && condition->built_in != &fragi_condition_none)
			return true;
	return false;
}

/* The terms of a port: the conditions that are about it, else its default one. */
static int terms_of_port(const struct combining *combining, const char *name)
{
	struct frag_op *op = combining->op;
	const char *names[64];
	char advice[400];
	size_t names_count = 0;
	uint32_t port = 0, found = 0, count = op->condition_count;
	struct frag_condition *condition;
	int r = 0;

	for (; port < op->port_count && strcmp(op->ports[port].name, name) != 0; port++)
		if (names_count < FRAG_COUNT_OF(names))
			names[names_count++] = op->ports[port].name;
	if (port == op->port_count)
		return refuse(combining, "condition %s: there is no port \"%.80s\"%s",
			      combining->combination->name, name,
			      fragi_advise(advice, sizeof(advice), name, "its ports", names,
					   names_count));
	for (uint32_t i = 0; r == 0 && i < count; i++) {
		if (!is_about(op->conditions[i], port))
			continue;
		r = term_add(combining, op->conditions[i]);
		found++;
	}
	if (r < 0 || found > 0)
		return r;
	if ((op->ports[port].flags & FRAG_PORT_NO_CONDITION) != 0)
		return refuse(
			combining,
			"condition %s: port \"%s\" has no condition to combine; give it one, or leave it out",
			combining->combination->name, name);
	condition = fragi_condition_of_port(op, &op->ports[port], combining->place);
	return condition != NULL ? term_add(combining, condition) : -ENOMEM;
}

int fragi_condition_bind_terms(struct frag_op *op, uint32_t index)
{
	const struct combining combining = {
		.op = op,
		.combination = op->conditions[index],
		.index = index,
		.place = op->made->conditions[index].place,
	};
	struct frag_condition *combination = combining.combination;
	struct frag_string_list terms = fragi_condition_names(combination, "terms");
	struct frag_string_list ports = fragi_condition_names(combination, "ports");
	int r = 0;

	/* A port adds one condition at most to those of the operator. */
	combination->terms =
		fragi_arena_alloc(&op->fragment->arena, (op->condition_count + ports.count + 1) *
								sizeof(struct frag_condition *));
	if (combination->terms == NULL)
		return fragi_making_fail(op->fragment, -ENOMEM, combining.place, op->subject,
					 "out of memory for a condition");
	for (size_t i = 0; r == 0 && i < terms.count; i++)
		r = term_of_name(&combining, terms.items[i]);
	for (size_t i = 0; r == 0 && i < ports.count; i++)
		r = terms_of_port(&combining, ports.items[i]);
	if (r == 0 && combination->term_count == 0)
		r = refuse(
			&combining,
			"condition %s combines nothing; name conditions in terms, or ports in ports",
			combination->name);
	return r;
}
