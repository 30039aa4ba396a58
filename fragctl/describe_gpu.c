// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include <base/transports.h>
#include <fragctl/describe.h>
#include <graph/pools.h>

/*
 * How tensors in memory of a GPU will go from operator to operator, as far as a graph decides it:
 * by the allocators of the sender, the edge that is asked for, encryption, and who may share a
 * host. The rest is decided by placement, and by which GPUs the receiving host uses: that is named.
 * Memory that operators take by themselves is not seen.
 */

/* The allocators of device memory of an operator. */
struct gpu_memory {
	struct frag_device shared, private; /* that hosts can map, and that they cannot; 0: none */
	bool spills;                        /* shared: what does not fit there is private */
};

static void add(const struct frag_resource *resource, struct gpu_memory *memory)
{
	if (resource == NULL || resource->allocator.gpu.type == 0)
		return;
	if (!resource->allocator.is_shared) {
		memory->private = resource->allocator.gpu;
		return;
	}
	memory->shared = resource->allocator.gpu;
	memory->spills |= resource->allocator.spills;
}

static struct gpu_memory memory_of(const struct frag_op *op)
{
	struct gpu_memory memory = {0};

	for (uint32_t i = 0; i < op->type->param_count; i++)
		add(fragi_op_resource(op, i), &memory);
	for (uint32_t i = 0; i < op->resource_count; i++)
		add(op->resources[i], &memory);
	return memory;
}

/* Whether a resource of the fragment opens that GPU before the application starts. */
static bool opens(const struct frag_fragment *fragment, struct frag_device gpu)
{
	for (uint32_t i = 0; i < fragment->resource_count; i++)
		if (fragi_device_is(fragment->resources[i]->allocator.gpu, gpu))
			return true;
	return false;
}

/* The GPU of the receiver's own memory, if that is another one; else -1. */
static int other_gpu(const struct frag_op *receiver, struct frag_device gpu)
{
	struct gpu_memory memory = memory_of(receiver);
	struct frag_device own = memory.shared.type != 0 ? memory.shared : memory.private;

	return own.type != 0 && own.id != gpu.id ? own.id : -1;
}

/* Between hosts: why memory that can be mapped may be staged all the same. */
static void mapped_text(const struct ctl_flow *flow, const struct frag_fragment *to,
			const struct gpu_memory *memory, char *out, size_t size)
{
	const struct frag_device gpu = memory->shared;
	const char *rest = memory->spills
				   ? ", and where it does not fit into device_memory_initial_size,"
				   : "";
	const char *place = fragi_transport_shares_memory(flow->edge) ? "" : " of one machine";

	if (opens(to, gpu))
		snprintf(
			out, size,
			"mapped where both hosts see the same GPU %d%s and the tensor has no gaps between its elements; else%s staged",
			(int)gpu.id, place, rest);
	else
		snprintf(
			out, size,
			"mapped where both hosts see the same GPU %d%s, the receiving one uses it before the start, and the tensor has no gaps between its elements; else%s staged",
			(int)gpu.id, place, rest);
}

static void between_hosts(const struct fragi_flow_info *info, const struct ctl_composed *composed,
			  const struct gpu_memory *memory, struct ctl_flow *flow)
{
	const struct frag_fragment *to = composed->fragments[info->to_fragment];
	const struct fragi_spec_fragment *fragments = composed->spec->fragments;
	const bool is_named = info->transport != NULL;
	char hosts[300];

	flow->gpu_ways |= CTL_GPU_STAGED;
	if (is_named && !fragi_transport_shares_memory(info->transport)) {
		snprintf(hosts, sizeof(hosts), "staged: the edge is %s", info->transport);
	} else if (info->encrypt) {
		snprintf(hosts, sizeof(hosts), "staged: the flow is encrypted");
	} else if (fragments[info->from_fragment].requirements.mig != NULL ||
		   fragments[info->to_fragment].requirements.mig != NULL) {
		snprintf(hosts, sizeof(hosts), "staged: a MIG instance is a GPU of its own");
	} else if (memory->shared.type == 0) {
		snprintf(hosts, sizeof(hosts),
			 "staged: of the sender's allocators, other hosts can map none");
	} else {
		flow->gpu_ways |= CTL_GPU_MAPPED;
		mapped_text(flow, to, memory, hosts, sizeof(hosts));
	}
	if (!is_named && ctl_may_share_host(composed, info->from_fragment, info->to_fragment)) {
		flow->gpu_ways |= CTL_GPU_POINTER;
		snprintf(flow->gpu_reason, sizeof(flow->gpu_reason),
			 "by pointer if one host runs both fragments; between hosts %s", hosts);
	} else {
		snprintf(flow->gpu_reason, sizeof(flow->gpu_reason), "%s", hosts);
	}
}

void ctl_flow_gpu(const struct fragi_flow_info *info, const struct ctl_composed *composed,
		  struct ctl_flow *flow)
{
	const struct frag_op *sender = composed->fragments[flow->from_fragment]->ops[flow->from_op];
	const struct frag_op *receiver = composed->fragments[flow->to_fragment]->ops[flow->to_op];
	struct gpu_memory memory = memory_of(sender);
	struct frag_device gpu = memory.shared.type != 0 ? memory.shared : memory.private;
	size_t used;
	int other;

	if (gpu.type == 0 || flow->is_execution ||
	    !fragi_port_may_carry_tensors(&sender->ports[flow->from_port]))
		return;
	if (flow->from_fragment == flow->to_fragment) {
		flow->gpu_ways = CTL_GPU_POINTER;
		snprintf(flow->gpu_reason, sizeof(flow->gpu_reason),
			 "by pointer: both ends are in one process");
	} else {
		between_hosts(info, composed, &memory, flow);
	}
	other = other_gpu(receiver, gpu);
	used = strlen(flow->gpu_reason);
	if (other >= 0)
		snprintf(flow->gpu_reason + used, sizeof(flow->gpu_reason) - used,
			 "; it stays on GPU %d%s, and the receiver's own memory is on GPU %d",
			 (int)gpu.id,
			 (flow->gpu_ways & CTL_GPU_STAGED) != 0 ? " unless it is staged" : "",
			 other);
}

/* The text of an operator's parameter; NULL: it has none of that name. */
static const char *text_of(const struct frag_op *op, const char *name)
{
	for (uint32_t i = 0; i < op->type->param_count; i++)
		if (op->type->params[i].kind == FRAG_PARAM_KIND_STRING &&
		    strcmp(op->type->params[i].name, name) == 0)
			return *(const char *const *)((const char *)op->state +
						      op->type->params[i].offset);
	return NULL;
}

/* The GPU of the first allocator among the parameters, if it has no memory of the host; else -1. */
static int gpu_of_frames(const struct frag_op *op)
{
	for (uint32_t i = 0; i < op->type->param_count; i++) {
		const struct frag_resource *resource = fragi_op_resource(op, i);

		if (resource != NULL)
			return resource->allocator.gpu.type != 0 && !resource->allocator.is_pinned
				       ? resource->allocator.gpu.id
				       : -1;
	}
	return -1;
}

const char *ctl_decoder(const struct frag_op *op, char *out, size_t size)
{
	const char *decoder = text_of(op, "decoder"), *format = text_of(op, "format");
	const int gpu = gpu_of_frames(op);

	if (decoder == NULL || format == NULL)
		return NULL;
	if (strcmp(decoder, "cpu") == 0)
		snprintf(out, size, "cpu: decoder says so");
	else if (gpu < 0)
		snprintf(out, size, "cpu: no allocator of frames has memory of a GPU only");
	else if (strcmp(format, "nv12") != 0 && strcmp(format, "p010") != 0)
		snprintf(out, size, "cpu: a GPU makes nv12 and p010, and format is %s", format);
	else if (strcmp(decoder, "gpu") == 0)
		snprintf(out, size, "gpu %d; where its driver cannot, the start is refused", gpu);
	else
		snprintf(
			out, size,
			"gpu %d where its driver has a decoder for the file, else cpu; the log of the run reports which",
			gpu);
	return out;
}

const char *ctl_gpu_ways(unsigned ways, char *out, size_t size)
{
	static const char *const names[] = {"by pointer", "mapped", "staged"};
	size_t used = 0;

	out[0] = '\0';
	for (unsigned i = 0, left = ways; left != 0; left &= ~(1u << i), i++)
		if ((left & 1u << i) != 0)
			used += (size_t)snprintf(out + used, size - used, "%s%s",
						 used == 0              ? ""
						 : left >> (i + 1) == 0 ? " or "
									: ", ",
						 names[i]);
	return out;
}

void ctl_gpu_json(struct ctl_json *json, const struct ctl_flow *flow)
{
	static const char *const names[] = {"pointer", "mapped", "staged"};

	ctl_json_open(json, "gpu_memory", '[');
	for (unsigned i = 0; flow->gpu_ways >> i != 0; i++)
		if ((flow->gpu_ways & 1u << i) != 0)
			ctl_json_text(json, NULL, names[i]);
	ctl_json_close(json, ']');
	ctl_json_text(json, "gpu_memory_reason", flow->gpu_ways != 0 ? flow->gpu_reason : NULL);
}
