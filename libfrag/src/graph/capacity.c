// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LOG_TOPIC "graph"
#include <base/alloc.h>
#include <base/log.h>
#include <base/policy.h>
#include <graph/compose.h>

/*
 * A condition that asks for more messages than the flows of its inputs can ever hold, or for more
 * room than the flows of its output can ever have, would never be met. The capacity of a flow is
 * decided at its input, so it is known here, but for an output whose flow to another fragment has
 * none of its own: there the run checks the room once both ends are known.
 */
struct held {
	uint64_t sum; /* messages that all flows can hold */
	uint32_t least;
	uint32_t flows;
};

struct checking {
	struct frag_fragment *fragment;
	struct fragi_strmap ops; /* name: index + 1 */
	size_t *first;           /* number of each operator's first port */
	struct held *held;       /* of each port */
	int result;
};

static void hold(struct checking *checking, size_t port, uint32_t capacity)
{
	struct held *held = &checking->held[port];

	held->sum += capacity;
	held->least = held->flows == 0 || capacity < held->least ? capacity : held->least;
	held->flows++;
}

static bool asks_for_more(const struct frag_op *op)
{
	for (uint32_t i = 0; i < op->port_count; i++)
		if (op->ports[i].min_size > 1)
			return true;
	for (uint32_t i = 0; i < op->condition_count; i++)
		if (op->conditions[i]->gate_min > 1 || op->conditions[i]->sizes != NULL ||
		    op->conditions[i]->sum > 1)
			return true;
	return false;
}

static int checking_init(struct checking *checking, struct frag_fragment *fragment)
{
	size_t ports = 0;

	checking->fragment = fragment;
	checking->first = fragi_calloc(fragment->op_count + 1, sizeof(*checking->first));
	if (checking->first == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < fragment->op_count; i++) {
		checking->first[i] = ports;
		ports += fragment->ops[i]->port_count;
		if (fragment->spec != NULL &&
		    fragi_strmap_put(&checking->ops, fragment->ops[i]->name,
				     (void *)(uintptr_t)(i + 1)) == -ENOMEM)
			return -ENOMEM;
	}
	checking->held = fragi_calloc(ports + 1, sizeof(*checking->held));
	return checking->held != NULL ? 0 : -ENOMEM;
}

static void checking_fini(struct checking *checking)
{
	fragi_strmap_fini(&checking->ops);
	fragi_free(checking->first);
	fragi_free(checking->held);
}

/* An end in this fragment of a flow to or from another one, which was looked up already. */
static void hold_at(struct checking *checking, const struct fragi_spec_flow *flow,
		    const struct fragi_spec_end *end, enum frag_dir dir)
{
	const struct frag_fragment *fragment = checking->fragment;
	size_t i = end->op != NULL && end->fragment != NULL &&
				   strcmp(end->fragment, fragment->name) == 0
			   ? (size_t)(uintptr_t)fragi_strmap_get(&checking->ops, end->op)
			   : 0;
	const struct frag_op *op = i > 0 ? fragment->ops[i - 1] : NULL;

	for (uint32_t k = 0; op != NULL && k < op->port_count; k++) {
		const struct fragi_port_info *port = &fragment->info.ops[i - 1].ports[k];

		if (port->dir != dir || (end->port != NULL && strcmp(port->name, end->port) != 0))
			continue;
		if (dir == FRAG_IN)
			hold(checking, checking->first[i - 1] + k,
			     fragi_flow_capacity(flow, port, true));
		else if (flow->capacity > 0)
			hold(checking, checking->first[i - 1] + k,
			     fragi_policy(flow->policy)->blocking ? flow->capacity
								  : FRAGI_CAPACITY_MAX);
	}
}

static void hold_all(struct checking *checking)
{
	const struct frag_fragment *fragment = checking->fragment;

	for (size_t i = 0; i < fragment->flow_count; i++) {
		const struct fragi_flow_info *flow = &fragment->flows[i];

		hold(checking, checking->first[flow->to_op] + flow->to_port, flow->capacity);
		hold(checking, checking->first[flow->from_op] + flow->from_port,
		     fragi_policy(flow->policy)->blocking ? flow->capacity : FRAGI_CAPACITY_MAX);
	}
	for (size_t i = 0; fragment->spec != NULL && i < fragment->spec->flow_count; i++) {
		const struct fragi_spec_flow *flow = &fragment->spec->flows[i];

		hold_at(checking, flow, &flow->from, FRAG_OUT);
		for (size_t k = 0; k < flow->to_count; k++)
			hold_at(checking, flow, &flow->to[k], FRAG_IN);
	}
}

/* The messages that can wait at a port: on each flow of a multi-receiver, else on all of them. */
static uint64_t most_at(const struct fragi_port *port, const struct held *held)
{
	return port->dir == FRAG_OUT || (port->flags & FRAG_PORT_MULTI) != 0 ? held->least
									     : held->sum;
}

/*
 * condition NULL: the default condition of the port; port NULL: it asks all its inputs together;
 * flows: how many hold the messages
 */
static void refuse(struct checking *checking, const struct frag_op *op,
		   const struct frag_condition *condition, const struct fragi_node *place,
		   const struct fragi_port *port, uint32_t flows, uint64_t asked, uint64_t most)
{
	char name[FRAG_NAME_MAX + 16] = "", where[FRAG_NAME_MAX + 16] = "its inputs";
	bool is_out = port != NULL && port->dir == FRAG_OUT;
	bool is_one =
		flows == 1 || is_out || (port != NULL && (port->flags & FRAG_PORT_MULTI) != 0);

	if (condition != NULL)
		snprintf(name, sizeof(name), "condition %s: ", condition->name);
	if (port != NULL)
		snprintf(where, sizeof(where), "port \"%s\"", port->name);
	checking->result = fragi_making_fail(
		checking->fragment, -EINVAL, place, op->subject,
		"%sit asks for %s%llu messages, and %s of %s %s %llu at most; give a larger capacity, or ask for less",
		name, is_out ? "room for " : "", (unsigned long long)asked,
		!is_one      ? "the flows"
		: flows == 1 ? "the flow"
			     : "a flow",
		where, is_one ? "holds" : "hold", (unsigned long long)most);
}

static void check_condition(struct checking *checking, const struct frag_op *op,
			    const struct frag_condition *condition, const struct fragi_node *place)
{
	size_t first = checking->first[op->index];
	uint64_t sum = 0, most;
	uint32_t flows = 0;
	bool connected = true;

	for (uint32_t i = 0; i < condition->port_count; i++) {
		const struct fragi_port *port = &op->ports[condition->ports[i]];
		const struct held *held = &checking->held[first + condition->ports[i]];
		uint64_t asked = condition->sizes != NULL ? (uint64_t)condition->sizes[i]
							  : condition->gate_min;

		connected = connected && held->flows > 0;
		flows += held->flows;
		sum += held->sum;
		most = most_at(port, held);
		if (held->flows > 0 && asked > most)
			refuse(checking, op, condition, place, port, held->flows, asked, most);
	}
	if (connected && condition->sum > sum)
		refuse(checking, op, condition, place,
		       condition->port_count == 1 ? &op->ports[condition->ports[0]] : NULL, flows,
		       condition->sum, sum);
}

static void check_op(struct checking *checking, const struct frag_op *op)
{
	size_t first = checking->first[op->index];

	for (uint32_t i = 0; i < op->port_count; i++) {
		const struct fragi_port *port = &op->ports[i];
		const struct held *held = &checking->held[first + i];

		if ((port->flags & FRAG_PORT_NO_CONDITION) != 0 || held->flows == 0 ||
		    port->min_size == FRAG_PORT_PRECEDING_COUNT)
			continue;
		if (port->has_size && port->min_size > 1)
			log_warn(
				op->subject,
				"input \"%s\" has size %u and no condition, so each tick waits for %u messages; for a longer queue alone write capacity, else give it message_available with that min_size",
				port->name, port->min_size, port->min_size);
		if (port->min_size > most_at(port, held))
			refuse(checking, op, NULL, op->place, port, held->flows, port->min_size,
			       most_at(port, held));
	}
	for (uint32_t i = 0; i < op->condition_count; i++)
		check_condition(checking, op, op->conditions[i], op->made->conditions[i].place);
}

int fragi_fragment_check_capacity(struct frag_fragment *fragment)
{
	struct checking checking = {0};
	uint32_t first = 0;
	int r;

	while (first < fragment->op_count && !asks_for_more(fragment->ops[first]))
		first++;
	if (first == fragment->op_count)
		return 0;
	r = checking_init(&checking, fragment);
	if (r == 0)
		hold_all(&checking);
	for (uint32_t i = first; r == 0 && i < fragment->op_count; i++)
		if (asks_for_more(fragment->ops[i]))
			check_op(&checking, fragment->ops[i]);
	checking_fini(&checking);
	return r < 0 ? r : checking.result;
}

uint32_t fragi_op_asks_for_room(const struct frag_op *op, uint32_t port)
{
	uint32_t asked = (op->ports[port].flags & FRAG_PORT_NO_CONDITION) == 0
				 ? op->ports[port].min_size
				 : 0;

	for (uint32_t i = 0; i < op->condition_count; i++)
		if (op->conditions[i]->port == port && op->conditions[i]->gate_min > asked)
			asked = op->conditions[i]->gate_min;
	return asked;
}
