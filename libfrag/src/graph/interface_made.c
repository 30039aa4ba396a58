// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/units.h>
#include <graph/subgraph.h>

#define NAMES_MAX 64

/* The interface ports that composers have added, looked up among the operators' ports. */
struct table {
	struct frag_fragment *fragment;
	struct fragi_interface_info *rows;
	uint32_t count, capacity;
};

static const char *dir_text(enum frag_dir dir)
{
	return dir == FRAG_IN ? "input" : "output";
}

static enum frag_dir dir_of(const struct table *table, uint32_t op, uint32_t port)
{
	return table->fragment->ops[op]->ports[port].dir;
}

const struct fragi_made_interface *fragi_made_inner(const struct fragi_making *making,
						    const struct fragi_made_interface *made)
{
	const char *name;

	for (uint32_t i = 0; made->op == NULL && i < making->interface_count; i++) {
		const struct fragi_made_interface *row = &making->interfaces[i];

		name = row->name != NULL ? row->name : row->port;
		if (row->subgraph == made->inner && name != NULL && strcmp(name, made->port) == 0)
			return row;
	}
	return NULL;
}

const char *fragi_made_execution(const struct fragi_making *making,
				 const struct fragi_made_interface *made)
{
	while (made != NULL && made->op == NULL)
		made = fragi_made_inner(making, made);
	return made != NULL && made->port != NULL && fragi_port_is_execution(made->port)
		       ? made->port
		       : NULL;
}

#define refuse(table, made, ...)                                                                   \
	do {                                                                                       \
		(table)->fragment->info.has_gaps = true;                                           \
		fragi_making_fail((table)->fragment, -EINVAL,                                      \
				  (made)->place != NULL ? (made)->place : (made)->subgraph->place, \
				  (made)->subgraph->subject, __VA_ARGS__);                         \
	} while (0)

/* Checks that a name stands for inputs, or for one output. */
static bool is_allowed(struct table *table, const struct fragi_made_interface *made,
		       const char *name, uint32_t op, uint32_t port)
{
	const enum frag_dir dir = dir_of(table, op, port);
	const struct fragi_interface_info *row;
	uint32_t inputs = 0;

	for (uint32_t i = 0; i < table->count; i++) {
		row = &table->rows[i];
		if (strcmp(row->port, name) != 0 ||
		    strcmp(row->instance, made->subgraph->name) != 0)
			continue;
		if (dir_of(table, row->op, row->op_port) != dir)
			refuse(table, made,
			       "interface port \"%s\" is an input and an output; give them two names",
			       name);
		else if (dir == FRAG_OUT)
			refuse(table, made,
			       "interface port \"%s\" stands for two outputs; only an input may stand for several",
			       name);
		else if (row->op == op && row->op_port == port)
			return false; /* it is there already */
		else if (++inputs == FRAGI_INTERFACE_INPUTS_MAX)
			refuse(table, made, "interface port \"%s\" stands for more than %u inputs",
			       name, FRAGI_INTERFACE_INPUTS_MAX);
		else
			continue;
		return false;
	}
	return true;
}

static void put(struct table *table, const struct fragi_made_interface *made, const char *name,
		uint32_t op, uint32_t port)
{
	struct fragi_interface_info *rows;

	if (!is_allowed(table, made, name, op, port))
		return;
	if (table->count >= FRAGI_INTERFACES_MAX) {
		if (!table->fragment->info.has_gaps)
			refuse(table, made, "more than %d interface ports in a fragment",
			       FRAGI_INTERFACES_MAX);
		return;
	}
	rows = fragi_making_room(table->fragment, table->rows, table->count, &table->capacity,
				 sizeof(*rows));
	if (rows == NULL)
		return;
	table->rows = rows;
	rows[table->count++] = (struct fragi_interface_info){
		.instance = made->subgraph->name, .port = name, .op = op, .op_port = port};
}

/* Those of a nested instance, which was composed before. */
static void put_inner(struct table *table, const struct fragi_made_interface *made)
{
	const char *names[NAMES_MAX];
	const uint32_t known = table->count;
	size_t count = 0;
	char advice[400];
	bool found = false;

	for (uint32_t i = 0; i < known; i++) {
		const struct fragi_interface_info row = table->rows[i];

		if (strcmp(row.instance, made->inner->name) != 0)
			continue;
		if (count < NAMES_MAX)
			names[count++] = row.port;
		if (strcmp(row.port, made->port) != 0)
			continue;
		found = true;
		put(table, made, made->name, row.op, row.op_port);
	}
	if (!found && !table->fragment->info.has_gaps &&
	    fragi_made_execution(table->fragment->making, made) == NULL)
		refuse(table, made, "interface port \"%s\": instance \"%s\" has no port \"%s\"%s",
		       made->name, made->inner->name, made->port,
		       count > 0 ? fragi_advise(advice, sizeof(advice), made->port, "its ports",
						names, count)
				 : "");
}

/* Finds the port of the operator; UINT32_MAX after an error. */
static uint32_t find_port(struct table *table, const struct fragi_made_interface *made)
{
	const struct frag_op *op = made->op;
	const char *names[NAMES_MAX];
	struct fragi_only_port only = {0};
	size_t count = 0;
	char advice[400] = "; it has no ports";

	for (uint32_t i = 0; i < op->port_count; i++) {
		if (count < NAMES_MAX)
			names[count++] = op->ports[i].name;
		if (made->port != NULL ? strcmp(op->ports[i].name, made->port) != 0
				       : made->is_directed && op->ports[i].dir != made->dir)
			continue;
		fragi_only_port_add(&only, i, made->is_directed ? op->ports[i].flags : 0);
	}
	if (fragi_only_port_is_known(&only))
		return only.port;
	if (made->port != NULL &&
	    (strcmp(made->port, FRAG_INPUT_EXEC) == 0 || strcmp(made->port, FRAG_OUTPUT_EXEC) == 0))
		return UINT32_MAX; /* no flow uses it, so the operator does not have it */
	if (count > 0)
		fragi_advise(advice, sizeof(advice), made->port != NULL ? made->port : "",
			     "its ports", names, count);
	if (made->port != NULL)
		refuse(table, made, "an interface port: operator \"%s\" has no port \"%s\"%s",
		       op->name, made->port, advice);
	else
		refuse(table, made, "an interface port of operator \"%s\" without its port: %s%s",
		       op->name,
		       only.count == 0 ? "there is none" : "several could be meant; name one",
		       advice);
	return UINT32_MAX;
}

static void put_own(struct table *table, const struct fragi_made_interface *made)
{
	const struct frag_op *op = made->op;
	uint32_t port;

	if (op->index == UINT32_MAX || op->made->failed ||
	    fragi_strmap_get(&table->fragment->making->bad_ops, op->name) != NULL) {
		table->fragment->info.has_gaps = true; /* it was reported */
		return;
	}
	port = find_port(table, made);
	if (port == UINT32_MAX)
		return;
	if (made->is_directed && op->ports[port].dir != made->dir)
		refuse(table, made,
		       "interface port \"%s\" is to be an %s, and port \"%s\" of \"%s\" is an %s",
		       made->name != NULL ? made->name : op->ports[port].name, dir_text(made->dir),
		       op->ports[port].name, op->name, dir_text(op->ports[port].dir));
	else
		put(table, made, made->name != NULL ? made->name : op->ports[port].name, op->index,
		    port);
}

int fragi_subgraphs_complete(struct frag_fragment *fragment)
{
	const struct fragi_making *making = fragment->making;
	struct table table = {.fragment = fragment};

	for (uint32_t i = 0; i < making->interface_count; i++) {
		if (making->interfaces[i].op != NULL)
			put_own(&table, &making->interfaces[i]);
		else
			put_inner(&table, &making->interfaces[i]);
	}
	fragment->info.interfaces = table.rows;
	fragment->info.interface_count = table.count;
	return making->code == -ENOMEM ? -ENOMEM : 0;
}
