// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <graph/compose.h>

/*
 * Execution ports and the start operator. An operator has these ports only where a flow begins or
 * ends at them, so that a graph without execution flows is what it was. Whether a flow without
 * ports is an execution flow is known when the setup of the operator at its end has added its
 * inputs. Of an operator in another fragment it is not known here: then the output is added, and no
 * flow may begin there.
 */

static int start_compute(void *state, struct frag_tick *tick)
{
	(void)state;
	(void)tick;
	return FRAG_DONE;
}

const struct frag_op_type fragi_start_type = {
	FRAG_OP_TYPE_INIT,
	.name = "start",
	.headline = "Ticks once, at the begin",
	.compute = start_compute,
};

struct frag_op *frag_start_op(struct frag_fragment *fragment)
{
	struct fragi_making *making = fragment != NULL ? fragment->making : NULL;
	struct frag_op *op;

	if (making == NULL)
		return NULL;
	op = fragi_strmap_get(&making->ops, FRAGI_START_OP);
	if (op != NULL)
		return op;
	if (making->sealed) {
		fragi_making_fail(fragment, -EBUSY, NULL, NULL,
				  "a graph can only be added to inside a composer, not in setup");
		return NULL;
	}
	op = fragi_op_make(fragment, FRAGI_START_OP, NULL, &fragi_start_type, NULL);
	return op != NULL && fragi_op_add(op) == 0 ? op : NULL;
}

int frag_set_dynamic_flows(struct frag_op *op, frag_dynamic_flows_fn choose, void *arg)
{
	if (op == NULL)
		return -EINVAL;
	if (!op->in_setup && (op->made == NULL || op->fragment->making->sealed))
		return frag_op_fail(
			op, -EBUSY,
			"frag_set_dynamic_flows was called too late; call it in a composer or in setup");
	op->choose_flows = choose;
	op->choose_arg = arg;
	return 0;
}

static bool is_here(const struct frag_fragment *fragment, const struct fragi_spec_end *end)
{
	return end->op != NULL &&
	       (end->fragment == NULL || strcmp(end->fragment, fragment->name) == 0);
}

static struct frag_op *op_of(struct frag_fragment *fragment, const struct fragi_spec_end *end)
{
	return is_here(fragment, end) ? fragi_strmap_get(&fragment->making->ops, end->op) : NULL;
}

static bool names(const struct fragi_spec_end *end, const char *port)
{
	return end->port != NULL && strcmp(end->port, port) == 0;
}

/* What one flow may need. Between fragments only one end is here. */
static void note_flow(struct frag_fragment *fragment, const struct fragi_spec_end *from,
		      const struct fragi_spec_end *to)
{
	const bool from_named = names(from, FRAG_OUTPUT_EXEC), between = from->fragment != NULL;
	struct frag_op *op = op_of(fragment, from);

	if (op != NULL)
		op->made->needs_exec_out |=
			from_named || (between && from->port == NULL &&
				       (to->port == NULL || names(to, FRAG_INPUT_EXEC)));
	op = op_of(fragment, to);
	if (op == NULL)
		return;
	op->made->needs_exec_in |= names(to, FRAG_INPUT_EXEC) || (from_named && to->port == NULL);
	op->made->may_exec_in |= from->port == NULL && to->port == NULL;
}

static void check_dynamic(struct frag_fragment *fragment, const struct fragi_spec_flow *flow)
{
	const struct frag_op *op = op_of(fragment, &flow->from);

	if (!flow->is_dynamic || op == NULL || !op->setup_done || op->choose_flows != NULL)
		return;
	fragi_making_fail(
		fragment, -EINVAL, flow->place, op->subject,
		"a flow that begins here is dynamic, but the operator (type %s) chooses no flows; leave dynamic out, or take a type that calls frag_set_dynamic_flows",
		op->type->name);
}

/* Calls `call` for the flows that may have an end in the fragment. */
static void each_flow(struct frag_fragment *fragment,
		      void (*call)(struct frag_fragment *fragment,
				   const struct fragi_spec_flow *flow))
{
	const struct fragi_spec_fragment *own = fragment->own;
	const struct fragi_spec *spec = fragment->spec;

	for (uint32_t i = 0; i < fragment->making->flow_count; i++)
		call(fragment, &fragment->making->flows[i]);
	for (size_t i = 0; own != NULL && i < own->flow_count; i++)
		call(fragment, &own->flows[i]);
	for (size_t i = 0; own != NULL && spec != NULL && i < spec->flow_count; i++)
		call(fragment, &spec->flows[i]);
}

/* Whether a port that an instance of a composer exports may be one for messages. */
static bool may_carry(const struct fragi_making *making, const struct fragi_made_interface *made,
		      enum frag_dir dir)
{
	if (fragi_made_execution(making, made) != NULL)
		return false;
	if (made->is_directed || made->op == NULL)
		return !made->is_directed || made->dir == dir;
	for (uint32_t i = 0; i < made->op->port_count; i++)
		if (made->port != NULL && strcmp(made->op->ports[i].name, made->port) == 0)
			return made->op->ports[i].dir == dir;
	return true; /* setup may add it */
}

/*
 * The n-th operator and execution port that an end means by an interface port of an instance that a
 * composer has made. Returns false when there are no more. An end without a port means one for
 * messages first.
 */
static bool find_execution(struct frag_fragment *fragment, const struct fragi_spec_end *end,
			   enum frag_dir dir, size_t n, struct fragi_spec_end *out)
{
	const struct fragi_making *making = fragment->making;
	const struct frag_subgraph *instance =
		making->exports_execution && is_here(fragment, end)
			? fragi_strmap_get(&making->subgraphs, end->op)
			: NULL;
	const char *const wanted = dir == FRAG_IN ? FRAG_INPUT_EXEC : FRAG_OUTPUT_EXEC;
	bool found = false;

	for (uint32_t i = 0; instance != NULL && i < making->interface_count; i++) {
		const struct fragi_made_interface *made = &making->interfaces[i];
		const char *name = made->name != NULL ? made->name : made->port;
		const char *port = fragi_made_execution(making, made);

		if (made->subgraph != instance ||
		    (end->port != NULL && (name == NULL || strcmp(name, end->port) != 0)))
			continue;
		if (end->port == NULL && may_carry(making, made, dir))
			return false;
		if (port == NULL || strcmp(port, wanted) != 0 || n-- > 0)
			continue;
		while (made->op == NULL)
			made = fragi_made_inner(making, made);
		*out = (struct fragi_spec_end){end->fragment, made->op->name, port, end->place};
		found = true;
	}
	return found;
}

/* Calls `call` for the two ends of each flow, where operators stand for interface ports. */
static void each_pair(struct frag_fragment *fragment, const struct fragi_spec_flow *flow,
		      void (*call)(struct frag_fragment *fragment,
				   const struct fragi_spec_end *from,
				   const struct fragi_spec_end *to))
{
	struct fragi_spec_end from = flow->from, to;
	size_t n;

	(void)find_execution(fragment, &flow->from, FRAG_OUT, 0, &from);
	for (size_t i = 0; i < flow->to_count; i++) {
		for (n = 0; find_execution(fragment, &flow->to[i], FRAG_IN, n, &to); n++)
			call(fragment, &from, &to);
		if (n == 0)
			call(fragment, &from, &flow->to[i]);
	}
}

static void note_ports(struct frag_fragment *fragment, const struct fragi_spec_flow *flow)
{
	each_pair(fragment, flow, note_flow);
}

static void make_start(struct frag_fragment *fragment, const struct fragi_spec_flow *flow)
{
	if (is_here(fragment, &flow->from) && strcmp(flow->from.op, FRAGI_START_OP) == 0)
		frag_start_op(fragment);
}

void fragi_execution_begin(struct frag_fragment *fragment)
{
	struct fragi_making *making = fragment->making;

	for (uint32_t i = 0; i < making->interface_count; i++)
		making->exports_execution |=
			fragi_made_execution(making, &making->interfaces[i]) != NULL;
	each_flow(fragment, make_start);
	each_flow(fragment, note_ports);
}

static bool has_data_input(const struct frag_op *op)
{
	for (uint32_t i = 0; i < op->port_count; i++)
		if (op->ports[i].dir == FRAG_IN && !fragi_port_is_execution(op->ports[i].name))
			return true;
	return false;
}

static bool has_exec_input(const struct frag_op *op)
{
	for (uint32_t i = 0; i < op->port_count; i++)
		if (strcmp(op->ports[i].name, FRAG_INPUT_EXEC) == 0)
			return true;
	return false;
}

int fragi_execution_add_input(struct frag_op *op)
{
	const struct fragi_made *made = op->made;
	int r = 0;

	if (strcmp(op->name, FRAGI_START_OP) != 0 &&
	    (made->needs_exec_in || (made->may_exec_in && !has_data_input(op))))
		r = fragi_op_append_port(op, FRAG_INPUT_EXEC, FRAG_IN);
	return r < 0 ? r : 0;
}

/* Of a flow inside the fragment that names no output. */
static void note_output(struct frag_fragment *fragment, const struct fragi_spec_end *from,
			const struct fragi_spec_end *to)
{
	struct frag_op *op = op_of(fragment, from), *next = op_of(fragment, to);

	if (op != NULL && next != NULL && from->port == NULL && has_exec_input(next) &&
	    (to->port == NULL ? !has_data_input(next) : names(to, FRAG_INPUT_EXEC)))
		op->made->needs_exec_out = true;
}

static void note_outputs(struct frag_fragment *fragment, const struct fragi_spec_flow *flow)
{
	each_pair(fragment, flow, note_output);
}

/*
 * In a loop the head's own metadata come back to it, and its callback writes them again. So such an
 * operator updates, as in Holoscan.
 */
static void let_update(struct frag_op *op)
{
	if (op->choose_flows != NULL && has_exec_input(op) &&
	    op->metadata_policy == FRAG_METADATA_DEFAULT)
		op->metadata_policy = FRAG_METADATA_UPDATE;
}

static void add_output(struct frag_op *op)
{
	if (op->made->needs_exec_out && fragi_op_append_port(op, FRAG_OUTPUT_EXEC, FRAG_OUT) < 0)
		fragi_making_note(op->fragment, -ENOMEM);
}

void fragi_execution_add_outputs(struct frag_fragment *fragment)
{
	each_flow(fragment, note_outputs);
	for (uint32_t i = 0; i < fragment->op_count; i++) {
		add_output(fragment->ops[i]);
		let_update(fragment->ops[i]);
	}
	each_flow(fragment, check_dynamic);
}
