// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <graph/subgraph.h>
#include <text/instance.h>

/* Instances that a composer makes of subgraphs that the graph declares. */

static int add_flows(struct frag_fragment *fragment, const struct fragi_spec_fragment *content)
{
	struct fragi_making *making = fragment->making;

	for (size_t i = 0; i < content->flow_count; i++) {
		struct fragi_spec_flow *flows = fragi_making_room(
			fragment, (void *)(uintptr_t)making->flows, making->flow_count,
			&making->flow_capacity, sizeof(*flows));

		if (flows == NULL)
			return -ENOMEM;
		making->flows = flows;
		flows[making->flow_count++] = content->flows[i];
	}
	return 0;
}

/* Adds an interface port; its operator, or nested instance, has been made. */
static int add_interface(struct frag_subgraph *subgraph,
			 const struct fragi_spec_interface *interface)
{
	struct frag_fragment *fragment = subgraph->fragment;
	struct fragi_making *making = fragment->making;
	struct fragi_made_interface row = {
		.subgraph = subgraph,
		.name = interface->name,
		.op = fragi_strmap_get(&making->ops, interface->op),
		.port = interface->port,
		.is_directed = interface->is_directed,
		.dir = interface->dir,
		.place = interface->place,
	};
	struct fragi_made_interface *rows;

	if (row.op == NULL)
		row.inner = fragi_strmap_get(&making->subgraphs, interface->op);
	if (row.op == NULL && row.inner == NULL)
		return 0; /* it could not be made, which was reported */
	rows = fragi_making_room(fragment, making->interfaces, making->interface_count,
				 &making->interface_capacity, sizeof(*rows));
	if (rows == NULL)
		return -ENOMEM;
	making->interfaces = rows;
	rows[making->interface_count++] = row;
	return 0;
}

int fragi_subgraph_make_declared(struct frag_subgraph *subgraph)
{
	struct frag_fragment *fragment = subgraph->fragment;
	struct fragi_making *making = fragment->making;
	struct fragi_spec_instance instance;
	struct fragi_diag unseen = {0};
	int r = fragi_spec_instance_read(
		fragment->spec, &fragment->arena, fragment->diag != NULL ? fragment->diag : &unseen,
		fragment->name, subgraph->outer_scope, subgraph->name, subgraph->type->name,
		subgraph->settings, subgraph->setting_count, &instance);

	fragi_diag_fini(&unseen);
	fragi_making_note(fragment, r);
	if (r < 0)
		return r;
	subgraph->first_op = fragment->made_count;
	making->subgraph = subgraph; /* nested ones of libraries are deeper */
	fragi_resources_make(fragment, instance.content.resources, instance.content.resource_count);
	fragi_operators_make(fragment, instance.content.operators, instance.content.operator_count);
	making->subgraph = subgraph->outer;
	subgraph->op_end = fragment->made_count;
	r = add_flows(fragment, &instance.content);
	for (size_t i = 0; r == 0 && i < instance.interface_count; i++)
		r = add_interface(subgraph, &instance.interfaces[i]);
	return r;
}
