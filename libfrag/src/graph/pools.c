// SPDX-License-Identifier: Apache-2.0
#define LOG_TOPIC "graph"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <base/alloc.h>
#include <base/amounts.h>
#include <base/log.h>
#include <base/names.h>
#include <graph/outlet.h>
#include <graph/pools.h>

struct frag_resource *fragi_op_resource(const struct frag_op *op, uint32_t param)
{
	const struct frag_param *p = &op->type->params[param];

	return p->kind == FRAG_PARAM_KIND_RESOURCE
		       ? *(struct frag_resource **)(void *)((char *)op->state + p->offset)
		       : NULL;
}

bool fragi_op_uses(const struct frag_op *op, const struct frag_resource *resource)
{
	for (uint32_t i = 0; i < op->type->param_count; i++)
		if (fragi_op_resource(op, i) == resource)
			return true;
	return false;
}

struct frag_resource *fragi_op_starved_pool(const struct frag_op *op)
{
	struct frag_resource *resource;
	struct fragi_blocks blocks;

	for (uint32_t i = 0; i < op->type->param_count; i++) {
		resource = fragi_op_resource(op, i);
		if (resource == NULL || resource->allocator.blocks == NULL)
			continue;
		resource->allocator.blocks(resource->allocator.state, &blocks);
		if (blocks.refused > 0)
			return resource;
	}
	return NULL;
}

/* The blocks that one operator can have in use: it fills one, also where nothing is connected. */
static uint64_t need_of(const struct frag_op *op, const struct fragi_outlet *outlets)
{
	uint64_t need = 0;

	for (uint32_t i = 0; i < op->port_count; i++)
		if (fragi_port_may_carry_tensors(&op->ports[i]))
			need += outlets[i].newest + outlets[i].older;
	return need > 0 ? need : 1;
}

static const struct fragi_node *place_of(const struct frag_fragment *fragment, const char *name)
{
	const struct fragi_spec_fragment *own = fragment->own;

	for (size_t i = 0; own != NULL && i < own->resource_count; i++)
		if (strcmp(own->resources[i].name, name) == 0)
			return own->resources[i].place;
	return NULL;
}

/* outlets: of the ports of all operators; first: the first port of each. */
static void check(const struct frag_fragment *fragment, struct frag_resource *pool,
		  const struct fragi_outlet *outlets, const uint32_t *first,
		  struct fragi_diag *warnings)
{
	char users[200] = "", subject[2 * FRAG_NAME_MAX + 2];
	struct fragi_blocks blocks;
	uint64_t need, sum = 0;
	struct fragi_names names = {.text = users, .size = sizeof(users)};

	for (uint32_t i = 0; i < fragment->op_count; i++) {
		const struct frag_op *op = fragment->ops[i];

		if (!fragi_op_uses(op, pool))
			continue;
		need = need_of(op, &outlets[first[i]]);
		sum += need;
		fragi_names_add(&names, "%s %llu", op->name, (unsigned long long)need);
	}
	pool->blocks_needed = sum;
	pool->allocator.blocks(pool->allocator.state, &blocks);
	if (blocks.all >= sum)
		return;
	snprintf(subject, sizeof(subject), "%s.%s", fragment->name, frag_resource_name(pool));
	fragi_node_error(
		warnings, place_of(fragment, frag_resource_name(pool)), subject,
		"the pool has %zu block%s, and %llu can be in use at a time (%s); set num_blocks to %llu or more, or give the flows less capacity",
		blocks.all, blocks.all == 1 ? "" : "s", (unsigned long long)sum, users,
		(unsigned long long)sum);
}

/*
 * Pools of blocks take all of their memory when the graph starts, so a limit that is less than that
 * needs others in the host that leave some of theirs.
 */
static void check_gpu_limit(const struct frag_fragment *fragment, struct fragi_diag *warnings)
{
	const struct fragi_spec_requirements *own =
		fragment->own != NULL ? &fragment->own->requirements : NULL;
	const int64_t limit = own != NULL ? own->limit[FRAGI_AMOUNT_GPU_MEMORY] : 0;
	char all[FRAGI_AMOUNT_TEXT], most[FRAGI_AMOUNT_TEXT];
	struct fragi_blocks blocks;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < fragment->resource_count && limit != 0; i++) {
		const struct fragi_allocator *allocator = &fragment->resources[i]->allocator;

		if (allocator->blocks == NULL || allocator->gpu.type == 0)
			continue;
		allocator->blocks(allocator->state, &blocks);
		sum += (uint64_t)blocks.all * blocks.block_bytes;
	}
	if (sum > (uint64_t)limit)
		fragi_node_error(
			warnings, own->place, fragment->name,
			"its pools take %s of GPU memory, and its gpuMemoryLimit is %s; raise it, or make the pools smaller, unless fragments in its host leave it so much",
			fragi_amount_text(FRAGI_AMOUNT_GPU_MEMORY, (int64_t)sum, all),
			fragi_amount_text(FRAGI_AMOUNT_GPU_MEMORY, limit, most));
}

int fragi_pools_check(const struct frag_fragment *fragment, uint32_t index,
		      const struct fragi_flow_info *between, size_t between_count,
		      struct fragi_diag *warnings)
{
	const struct fragi_flow_info *flow;
	uint32_t *first = fragi_calloc(fragment->op_count + 1, sizeof(*first));
	struct fragi_outlet *outlets = NULL;
	int r = -ENOMEM;

	if (first == NULL)
		return r;
	for (uint32_t i = 0; i < fragment->op_count; i++)
		first[i + 1] = first[i] + fragment->ops[i]->port_count;
	outlets = fragi_calloc(first[fragment->op_count] + 1, sizeof(*outlets));
	if (outlets == NULL)
		goto out;
	for (size_t i = 0; i < fragment->flow_count; i++) {
		flow = &fragment->flows[i];
		fragi_outlet_add(&outlets[first[flow->from_op] + flow->from_port], flow, false,
				 fragment->ops[flow->from_op]->choose_flows != NULL);
	}
	for (size_t i = 0; i < between_count; i++) {
		flow = &between[i];
		if (flow->from_fragment == index)
			fragi_outlet_add(&outlets[first[flow->from_op] + flow->from_port], flow,
					 true, fragment->ops[flow->from_op]->choose_flows != NULL);
	}
	for (uint32_t i = 0; i < fragment->resource_count; i++)
		if (fragment->resources[i]->allocator.blocks != NULL)
			check(fragment, fragment->resources[i], outlets, first, warnings);
	check_gpu_limit(fragment, warnings);
	r = 0;
out:
	fragi_free(outlets);
	fragi_free(first);
	return r;
}

void fragi_pools_warn(struct fragi_diag *warnings)
{
	char line[sizeof(struct frag_err)];

	fragi_diag_sort(warnings, 0);
	for (size_t i = 0; i < warnings->count; i++)
		log_warn(NULL, "%s", fragi_err_line(&warnings->items[i], line, sizeof(line)));
	if (warnings->beyond > 0)
		log_warn(NULL, "and %zu more pools", warnings->beyond);
}
