// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <base/units.h>
#include <data/message.h>
#include <graph/compose.h>

/*
 * The timing of inputs (frag/timing.h): what composers and operators have asked for, then what the
 * graph says. As soon as one input of an operator is timed, every input that has the default
 * condition is: a tick is then formed of all of them at once (sched/timing.c).
 */

static const struct fragi_timing every = {FRAG_TAKE_EVERY, FRAG_MISSING_WAIT, 0, NULL};

static struct fragi_port *port_of(struct frag_op *op, const char *name)
{
	for (uint32_t i = 0; i < op->port_count; i++)
		if (strcmp(op->ports[i].name, name) == 0)
			return &op->ports[i];
	return NULL;
}

/* The input of that name; NULL: there is none, which is reported. */
static struct fragi_port *input_of(struct frag_op *op, const char *name,
				   const struct fragi_node *place, const char *what)
{
	struct fragi_port *port = port_of(op, name);
	const char *names[64];
	size_t count = 0;
	char advice[400];

	if (port != NULL && port->dir == FRAG_IN)
		return port;
	for (uint32_t i = 0; i < op->port_count && count < FRAG_COUNT_OF(names); i++)
		if (op->ports[i].dir == FRAG_IN && !fragi_port_is_execution(op->ports[i].name))
			names[count++] = op->ports[i].name;
	if (port != NULL)
		fragi_making_fail(op->fragment, -EINVAL, place, op->subject,
				  "%s: port \"%.80s\" is an output; only inputs have it", what,
				  name);
	else
		fragi_making_fail(
			op->fragment, -EINVAL, place, op->subject, "%s: unknown input \"%.80s\"%s",
			what, name,
			fragi_advise(advice, sizeof(advice), name, "its inputs", names, count));
	return NULL;
}

static void apply_port(struct frag_op *op, const struct fragi_spec_port *given)
{
	struct fragi_port *port = input_of(op, given->name, given->timed, "timing");

	if (port == NULL)
		return;
	port->timing = &given->timing;
	if (given->timing.take == FRAG_TAKE_LATEST_WITHIN && port->policy == FRAG_POLICY_DEFAULT)
		port->policy = FRAG_POLICY_LATEST;
}

void fragi_timing_apply(struct frag_op *op)
{
	const struct fragi_spec_operator *own = op->made->own;

	for (uint32_t i = 0; i < op->made->timing_count; i++)
		apply_port(op, &op->made->timings[i]);
	for (size_t i = 0; own != NULL && i < own->port_count; i++)
		if (own->ports[i].timed != NULL && port_of(op, own->ports[i].name) != NULL)
			apply_port(op, &own->ports[i]);
}

/* The condition that is about this port; NULL: only its default one. */
static const struct frag_condition *condition_on(const struct frag_op *op, uint32_t port)
{
	for (uint32_t i = 0; i < op->condition_count; i++)
		for (uint32_t k = 0; k < op->conditions[i]->port_count; k++)
			if (op->conditions[i]->ports[k] == port)
				return op->conditions[i];
	return NULL;
}

static bool is_usual(const struct frag_op *op, uint32_t index)
{
	const struct fragi_port *port = &op->ports[index];

	return port->dir == FRAG_IN && (port->flags & FRAG_PORT_NO_CONDITION) == 0 &&
	       port->min_size <= 1 && !fragi_port_is_execution(port->name) &&
	       condition_on(op, index) == NULL;
}

int fragi_timing_default(const struct fragi_port *port, struct frag_message **out_message)
{
	const char *text = port->timing->default_text;
	const struct frag_type *type = port->type;
	union {
		bool b;
		int64_t i64;
		double f64;
	} value;

	*out_message = NULL;
	if (text == NULL)
		return 0;
	if (type == &frag_type_string)
		return fragi_message_of_value(type, text, strlen(text), out_message);
	if (type == &frag_type_bool && fragi_parse_bool(text, &value.b) == 0)
		return fragi_message_of_value(type, &value.b, sizeof(value.b), out_message);
	if (type == &frag_type_i64 && fragi_parse_i64(text, &value.i64) == 0)
		return fragi_message_of_value(type, &value.i64, sizeof(value.i64), out_message);
	if (type == &frag_type_f64 && fragi_parse_f64(text, &value.f64) == 0)
		return fragi_message_of_value(type, &value.f64, sizeof(value.f64), out_message);
	return -EINVAL;
}

static void check_default(struct frag_op *op, const struct fragi_port *port,
			  const struct fragi_node *place)
{
	const struct frag_type *type = port->type;
	struct frag_message *message = NULL;
	int r = fragi_timing_default(port, &message);

	frag_message_unref(message);
	if (r == -ENOMEM)
		fragi_making_fail(op->fragment, r, place, op->subject, "out of memory");
	else if (r < 0 && type != &frag_type_bool && type != &frag_type_i64 &&
		 type != &frag_type_f64)
		fragi_making_fail(
			op->fragment, r, place, op->subject,
			"input \"%s\" is of type %s, which has no default in a graph (only bool, i64, f64 and string have); leave it out, and the tick goes without the input",
			port->name, port->type_name);
	else if (r < 0)
		fragi_making_fail(op->fragment, r, place, op->subject,
				  "default \"%.80s\" of input \"%s\" is not a valid %s",
				  port->timing->default_text, port->name, port->type_name);
}

/* An input that is timed must leave it to its timing when the operator is ticked. */
static bool check_input(struct frag_op *op, const struct fragi_port *port,
			const struct fragi_node *place, const char *what)
{
	const struct frag_condition *condition = condition_on(op, (uint32_t)(port - op->ports));

	if (condition == NULL && port->min_size <= 1)
		return true;
	if (condition != NULL)
		fragi_making_fail(
			op->fragment, -EINVAL, place, op->subject,
			"%s: input \"%s\" has condition %s, and both say when a tick begins; leave one of them out",
			what, port->name, condition->name);
	else
		fragi_making_fail(
			op->fragment, -EINVAL, place, op->subject,
			"%s: input \"%s\" waits for %u messages a tick, and an input with timing gives one; leave the timing out",
			what, port->name, port->min_size);
	return false;
}

static const struct fragi_node *timed_at(const struct frag_op *op, const struct fragi_port *port)
{
	const struct fragi_spec_operator *own = op->made->own;

	for (size_t i = 0; own != NULL && i < own->port_count; i++)
		if (port->timing == &own->ports[i].timing)
			return own->ports[i].timed;
	return op->place;
}

static void align_port(struct frag_op *op, struct fragi_port *port, const struct fragi_node *place)
{
	if (!check_input(op, port, place, "align"))
		return;
	if (port->timing != NULL && port->timing->take == FRAG_TAKE_LATEST_WITHIN)
		fragi_making_fail(
			op->fragment, -EINVAL, place, op->subject,
			"input \"%s\" takes latest_within, and align looks at every message; leave take out, or name the inputs to align without it",
			port->name);
	port->is_aligned = true;
}

static void check_align(struct frag_op *op)
{
	const struct fragi_spec_operator *own = op->made->own;
	const struct fragi_spec_align *align =
		own != NULL && own->align.place != NULL ? &own->align : &op->made->align;
	const struct fragi_node *place = align->place != NULL ? align->place : op->place;
	struct fragi_port *port;
	uint32_t inputs = 0;

	if (align->window_ns == 0)
		return;
	op->align.window_ns = align->window_ns;
	op->align.timeout_ns = align->timeout_ns;
	for (size_t i = 0; i < align->input_count; i++) {
		port = input_of(op, align->inputs[i], place, "align");
		if (port != NULL)
			align_port(op, port, place);
	}
	for (uint32_t i = 0; align->input_count == 0 && i < op->port_count; i++)
		if (is_usual(op, i) || (op->ports[i].timing != NULL && op->ports[i].dir == FRAG_IN))
			align_port(op, &op->ports[i], place);
	for (uint32_t i = 0; i < op->port_count; i++)
		if (op->ports[i].is_aligned)
			inputs += (op->ports[i].flags & FRAG_PORT_MULTI) != 0 ? 2 : 1;
	if (align->input_count == 0 && inputs < 2)
		fragi_making_fail(
			op->fragment, -EINVAL, place, op->subject,
			"align needs two inputs without conditions of their own, or one that takes several flows");
}

void fragi_timing_check(struct frag_op *op)
{
	bool is_timed = op->drops_late ||
			(op->deadline.budget_ns > 0 && op->deadline.on_miss == FRAG_ON_MISS_DROP);

	check_align(op);
	for (uint32_t i = 0; i < op->port_count; i++) {
		struct fragi_port *port = &op->ports[i];

		if (port->timing == NULL && port->is_aligned)
			port->timing = &every;
		if (port->timing == NULL)
			continue;
		is_timed = true;
		if (check_input(op, port, timed_at(op, port), "timing"))
			check_default(op, port, timed_at(op, port));
	}
	for (uint32_t i = 0; is_timed && i < op->port_count; i++) {
		if (op->ports[i].timing == NULL && is_usual(op, i))
			op->ports[i].timing = &every;
		if (op->ports[i].timing != NULL)
			op->ports[i].flags |= FRAG_PORT_NO_CONDITION;
	}
}

/* Called by composers, and by operators in setup. */

static int check_call(const struct frag_op *op)
{
	if (op == NULL)
		return -EINVAL;
	return op->in_setup || fragi_making_is_open(op->fragment) ? 0 : -EBUSY;
}

int frag_set_input_timing(struct frag_op *op, const char *port, enum frag_take take, int64_t age_ns,
			  enum frag_missing missing, const char *default_value)
{
	int r = check_call(op);
	struct fragi_spec_port *timings;
	const char *name, *text;

	if (r < 0)
		return r;
	if (port == NULL || (unsigned int)take > FRAG_TAKE_LATEST_WITHIN || age_ns < 0 ||
	    (unsigned int)missing > FRAG_MISSING_DEFAULT ||
	    (take == FRAG_TAKE_LATEST_WITHIN && age_ns == 0))
		return fragi_making_fail(
			op->fragment, -EINVAL, NULL, op->subject,
			"frag_set_input_timing: name an input, values of the enums, and an age that is not negative (for FRAG_TAKE_LATEST_WITHIN more than 0)");
	timings = fragi_making_room(op->fragment, op->made->timings, op->made->timing_count,
				    &op->made->timing_capacity, sizeof(*timings));
	if (timings == NULL || fragi_making_keep(op->fragment, port, &name) < 0 ||
	    fragi_making_keep(op->fragment, default_value, &text) < 0)
		return -ENOMEM;
	op->made->timings = timings;
	timings[op->made->timing_count++] = (struct fragi_spec_port){
		.name = name,
		.timing = {take, missing, age_ns, text},
	};
	return 0;
}

int frag_align_inputs(struct frag_op *op, const char *const *ports, size_t count, int64_t window_ns,
		      int64_t timeout_ns)
{
	int r = check_call(op);
	const char **inputs;

	if (r < 0)
		return r;
	if (count > UINT16_MAX)
		return fragi_making_fail(
			op->fragment, -EINVAL, NULL, op->subject,
			"frag_align_inputs: %zu inputs are named, and an operator aligns %u at most; give the number of names in the array, or 0 for all inputs",
			count, UINT16_MAX);
	if (window_ns <= 0 || timeout_ns < 0)
		return fragi_making_fail(
			op->fragment, -EINVAL, NULL, op->subject,
			"frag_align_inputs: give a window of more than 0 ns, and a timeout that is not negative");
	inputs = fragi_arena_alloc(&op->fragment->arena, (count + 1) * sizeof(*inputs));
	for (size_t i = 0; inputs != NULL && i < count; i++) {
		if (ports[i] == NULL)
			return fragi_making_fail(op->fragment, -EINVAL, NULL, op->subject,
						 "frag_align_inputs: the name of an input is NULL");
		if (fragi_making_keep(op->fragment, ports[i], &inputs[i]) < 0)
			return -ENOMEM;
	}
	if (inputs == NULL)
		return -ENOMEM;
	op->made->align = (struct fragi_spec_align){
		.inputs = inputs,
		.input_count = count,
		.window_ns = window_ns,
		.timeout_ns = timeout_ns,
	};
	return 0;
}
