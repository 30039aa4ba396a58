// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <base/alloc.h>
#include <graph/compose.h>
#include <graph/interface.h>

/*
 * Inputs that are not optional must be connected: by a flow inside the fragment, or by one from
 * another fragment, which the graph names too, so that this is known here without the tables of the
 * other fragments. An end whose meaning is not known after an error may be meant for any input of
 * its operator, or of the fragment: these are not checked.
 */
struct checking {
	const struct frag_fragment *fragment;
	struct fragi_strmap ops; /* name: index + 1 */
	size_t *first;           /* number of each operator's first port */
	bool *connected;         /* of each port */
	bool *in_doubt;          /* of each operator */
	bool all_in_doubt;
};

static int checking_init(struct checking *checking, const struct frag_fragment *fragment)
{
	const struct fragi_fragment_info *info = &fragment->info;
	size_t ports = 0;

	checking->fragment = fragment;
	checking->first = fragi_calloc(info->op_count + 1, sizeof(*checking->first));
	checking->in_doubt = fragi_calloc(info->op_count + 1, sizeof(*checking->in_doubt));
	if (checking->first == NULL || checking->in_doubt == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < info->op_count; i++) {
		if (fragi_strmap_put(&checking->ops, info->ops[i].name,
				     (void *)(uintptr_t)(i + 1)) == -ENOMEM)
			return -ENOMEM;
		checking->first[i] = ports;
		checking->in_doubt[i] = info->ops[i].has_gaps;
		ports += info->ops[i].port_count;
	}
	checking->all_in_doubt = info->has_gaps;
	checking->connected = fragi_calloc(ports + 1, sizeof(*checking->connected));
	return checking->connected != NULL ? 0 : -ENOMEM;
}

static void checking_fini(struct checking *checking)
{
	fragi_strmap_fini(&checking->ops);
	fragi_free(checking->first);
	fragi_free(checking->in_doubt);
	fragi_free(checking->connected);
}

/* An end of a flow in this fragment. */
static void mark(struct checking *checking, const struct fragi_spec_end *end)
{
	size_t i =
		end->op != NULL ? (size_t)(uintptr_t)fragi_strmap_get(&checking->ops, end->op) : 0;
	const struct fragi_op_info *op;
	size_t found = 0, port = 0;

	if (i == 0) {
		checking->all_in_doubt = true;
		return;
	}
	op = &checking->fragment->info.ops[--i];
	for (size_t k = 0; k < op->port_count; k++) {
		if (op->ports[k].dir != FRAG_IN ||
		    (end->port != NULL ? strcmp(op->ports[k].name, end->port) != 0
				       : fragi_port_is_execution(op->ports[k].name)))
			continue;
		found++;
		port = k;
	}
	if (found == 1)
		checking->connected[checking->first[i] + port] = true;
	else
		checking->in_doubt[i] = true;
}

/* A flow that is written the wrong way round was meant to end at the input that it begins at. */
static void mark_reversed(struct checking *checking, const struct fragi_spec_end *from)
{
	size_t i = from->op != NULL && from->port != NULL
			   ? (size_t)(uintptr_t)fragi_strmap_get(&checking->ops, from->op)
			   : 0;
	const struct fragi_op_info *op = i != 0 ? &checking->fragment->info.ops[i - 1] : NULL;

	bool is_input = false;

	for (size_t k = 0; op != NULL && k < op->port_count; k++) {
		if (strcmp(op->ports[k].name, from->port) != 0)
			continue;
		if (op->ports[k].dir == FRAG_OUT)
			return;
		is_input = true;
	}
	if (is_input)
		mark(checking, from);
}

/* outer: the flows between fragments */
static void mark_all(struct checking *checking, const struct fragi_spec_flow *outer,
		     size_t outer_count)
{
	const struct frag_fragment *fragment = checking->fragment;

	for (size_t i = 0; i < fragment->making->flow_count; i++) {
		const struct fragi_spec_flow *flow = &fragment->making->flows[i];

		mark_reversed(checking, &flow->from);
		checking->all_in_doubt = checking->all_in_doubt || flow->to_count == 0;
		for (size_t k = 0; k < flow->to_count; k++)
			mark(checking, &flow->to[k]);
	}
	for (size_t i = 0; i < outer_count; i++) {
		const struct fragi_spec_flow *flow = &outer[i];

		if (flow->from.fragment == NULL || strcmp(flow->from.fragment, fragment->name) == 0)
			mark_reversed(checking, &flow->from);
		checking->all_in_doubt = checking->all_in_doubt || flow->to_count == 0;
		for (size_t k = 0; k < flow->to_count; k++)
			if (flow->to[k].fragment == NULL ||
			    strcmp(flow->to[k].fragment, fragment->name) == 0)
				mark(checking, &flow->to[k]);
	}
}

static int refuse_unconnected(const struct checking *checking)
{
	const struct fragi_fragment_info *info = &checking->fragment->info;
	int r = 0;

	for (size_t i = 0; i < info->op_count && !checking->all_in_doubt; i++) {
		const struct fragi_op_info *op = &info->ops[i];

		for (size_t k = 0; k < op->port_count && !checking->in_doubt[i]; k++) {
			if (op->ports[k].dir != FRAG_IN ||
			    (op->ports[k].flags & FRAG_PORT_OPTIONAL) != 0 ||
			    fragi_port_is_execution(op->ports[k].name) ||
			    checking->connected[checking->first[i] + k])
				continue;
			r = fragi_node_error(
				checking->fragment->diag, checking->fragment->ops[i]->place, NULL,
				"%s.%s: input \"%s\" is not connected; add a flow that ends there",
				info->name, op->name, op->ports[k].name);
		}
	}
	return r;
}

int fragi_fragment_check_inputs(struct frag_fragment *fragment)
{
	struct checking checking = {0};
	const struct fragi_spec_flow *outer;
	size_t outer_count;
	struct fragi_diag ignored = {0}; /* who resolves these flows reports what is wrong */
	int r = checking_init(&checking, fragment);

	if (r == 0 && fragi_interfaces_apply(&fragment->arena, fragment->spec->flows,
					     fragment->spec->flow_count, -1, &fragment->info, 1,
					     &ignored, &outer, &outer_count) == -ENOMEM)
		r = -ENOMEM;
	fragi_diag_fini(&ignored);
	if (r == 0) {
		mark_all(&checking, outer, outer_count);
		r = refuse_unconnected(&checking);
	}
	checking_fini(&checking);
	return r;
}
