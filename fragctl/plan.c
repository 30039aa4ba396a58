// SPDX-License-Identifier: Apache-2.0
#include <base/policy.h>
#include <cond/condition.h>
#include <fragctl/describe.h>
#include <graph/clocks.h>
#include <graph/pools.h>

/*
 * The plan of an application, composed as its hosts would compose it. Where the fragments will run
 * is not known without a driver, so it says of the flows between them what each place would mean.
 */

uint32_t ctl_thread_count(const struct fragi_spec_fragment *fragment)
{
	return fragment->scheduler.kind == FRAGI_SCHEDULER_GREEDY
		       ? 1
		       : fragment->scheduler.worker_thread_number;
}

const char *ctl_scheduler_name(const struct fragi_spec_fragment *fragment)
{
	return fragment->scheduler.kind == FRAGI_SCHEDULER_GREEDY ? "greedy" : "event_based";
}

/* All bytes of the pools that an operator takes memory from; UINT64_MAX: something has no end. */
static uint64_t pool_bytes(const struct frag_op *op)
{
	const struct frag_resource *resource;
	struct fragi_blocks blocks;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < op->type->param_count; i++) {
		resource = fragi_op_resource(op, i);
		if (resource == NULL)
			continue;
		if (resource->allocator.blocks == NULL)
			return UINT64_MAX;
		resource->allocator.blocks(resource->allocator.state, &blocks);
		sum += (uint64_t)blocks.all * blocks.block_bytes;
	}
	return sum > 0 ? sum : UINT64_MAX;
}

/* The bound of what waits in the flow of a sender. */
static void bound(const struct frag_op *op, const struct fragi_port *port, struct ctl_flow *flow)
{
	flow->bytes_max = 0;
	flow->bytes_reason = "execution flows carry no data";
	if (fragi_port_is_execution(port->name))
		return;
	flow->bytes_max = UINT64_MAX;
	if (!fragi_port_may_carry_tensors(port)) {
		flow->bytes_max = (uint64_t)flow->capacity * port->type->size;
		flow->bytes_reason = "the values themselves";
		return;
	}
	flow->bytes_max = pool_bytes(op);
	flow->bytes_reason = flow->bytes_max != UINT64_MAX
				     ? "all of the pools that the sender allocates from"
				     : "the sender does not allocate from pools alone";
}

/* Between fragments: which edge carries the flow, and how much can wait. */
static void span(const struct fragi_flow_info *info, const struct ctl_composed *composed,
		 struct ctl_flow *flow)
{
	bool one_host = ctl_may_share_host(composed, info->from_fragment, info->to_fragment);

	flow->edge = "auto";
	flow->edge_reason =
		one_host
			? "a pointer if one worker runs both fragments; shared memory if both workers are on one machine; else UCX"
			: "shared memory if both hosts are on one machine; else UCX";
	if (info->transport != NULL) {
		flow->edge = info->transport;
		flow->edge_reason = info->transport_reason;
	}
	if (flow->bytes_max > FRAGI_WINDOW_BYTES) {
		flow->bytes_max = FRAGI_WINDOW_BYTES;
		flow->bytes_reason =
			"the window between hosts; a larger message travels alone; in one host nothing bounds it";
	}
}

void ctl_flow_at(const struct ctl_composed *composed, size_t i, struct ctl_flow *out)
{
	const struct fragi_fragment_info *infos = composed->infos;
	const struct fragi_flow_info *info = NULL;
	const struct frag_fragment *sender = NULL;
	size_t f = 0;

	for (; f < composed->fragment_count && i >= composed->fragments[f]->flow_count; f++)
		i -= composed->fragments[f]->flow_count;
	if (f < composed->fragment_count) {
		sender = composed->fragments[f];
		info = &sender->flows[i];
		infos = &composed->infos[f]; /* the flows inside a fragment name it by 0 */
	} else {
		info = &composed->flows[i];
		sender = composed->fragments[info->from_fragment];
	}
	*out = (struct ctl_flow){
		.from_fragment = f < composed->fragment_count ? (uint32_t)f : info->from_fragment,
		.from_op = info->from_op,
		.from_port = info->from_port,
		.to_fragment = f < composed->fragment_count ? (uint32_t)f : info->to_fragment,
		.to_op = info->to_op,
		.to_port = info->to_port,
		.capacity = info->capacity,
		.policy = fragi_policy(info->policy)->name,
		.type = sender->info.ops[info->from_op].ports[info->from_port].type,
		.edge = info->transport != NULL ? info->transport : "inproc",
		.edge_reason = info->transport != NULL ? info->transport_reason
						       : "both ends are in one process",
	};
	out->is_dynamic = sender->ops[info->from_op]->choose_flows != NULL;
	out->is_execution =
		fragi_port_is_execution(sender->ops[info->from_op]->ports[info->from_port].name);
	if (out->is_execution)
		out->type = "execution";
	fragi_flow_from(infos, info, out->from, sizeof(out->from));
	fragi_flow_to(infos, info, out->to, sizeof(out->to));
	bound(sender->ops[info->from_op], &sender->ops[info->from_op]->ports[info->from_port], out);
	if (f == composed->fragment_count)
		span(info, composed, out);
	ctl_flow_gpu(info, composed, out);
}

bool ctl_port_is_used(const struct ctl_composed *composed, uint32_t fragment, uint32_t op,
		      uint32_t port)
{
	const struct fragi_flow_info *flow;

	if (composed->fragments[fragment]->ops[op]->ports[port].flow_count > 0)
		return true;
	for (size_t i = 0; i < composed->flow_count; i++) {
		flow = &composed->flows[i];
		if ((flow->from_fragment == fragment && flow->from_op == op &&
		     flow->from_port == port) ||
		    (flow->to_fragment == fragment && flow->to_op == op && flow->to_port == port))
			return true;
	}
	return false;
}

bool ctl_port_is_shown(const struct ctl_composed *composed, uint32_t f, uint32_t o, uint32_t port)
{
	return ctl_port_is_used(composed, f, o, port) ||
	       !fragi_port_is_execution(composed->fragments[f]->ops[o]->ports[port].name);
}

void ctl_each_condition(const struct ctl_composed *composed, uint32_t f, uint32_t o,
			void (*call)(const char *type, const char *port,
				     const struct frag_condition *own, bool first, void *arg),
			void *arg)
{
	const struct frag_op *op = composed->fragments[f]->ops[o];
	bool first = true;

	for (uint32_t i = 0; i < op->port_count; i++) {
		const struct fragi_port *port = &op->ports[i];

		if ((port->flags & FRAG_PORT_NO_CONDITION) != 0 ||
		    !ctl_port_is_used(composed, f, o, i))
			continue;
		call(port->dir == FRAG_IN ? "message_available" : "downstream_affordable",
		     port->name, NULL, first, arg);
		first = false;
	}
	for (uint32_t i = 0; i < op->condition_count; i++) {
		const struct frag_condition *own = op->conditions[i];

		call(own->type->name, own->port < op->port_count ? op->ports[own->port].name : NULL,
		     own, first, arg);
		first = false;
	}
}

const char *ctl_clock_name(enum fragi_clock_kind kind)
{
	static const char *const names[] = {
		[FRAGI_CLOCK_MACHINE] = "machine",
		[FRAGI_CLOCK_REALTIME] = "realtime",
		[FRAGI_CLOCK_MANUAL] = "manual",
		[FRAGI_CLOCK_SYNTHETIC] = "synthetic",
	};

	return names[kind];
}
