// SPDX-License-Identifier: Apache-2.0
#include <errno.h>

#include <frag/frag.h>

/* An operator without ports: it counts its ticks and says that it is there. */
struct node {
	int64_t value;
};

static int node_compute(void *state, struct frag_tick *tick)
{
	struct node *node = state;

	node->value++;
	frag_op_log(frag_tick_op(tick), "I am here (%lld)", (long long)node->value);
	return 0;
}

static const struct frag_op_type node_type = {
	FRAG_OP_TYPE_INIT,
	.name = "node",
	.headline = "Says that it is there",
	.state_size = sizeof(struct node),
	.compute = node_compute,
};

/* The same, and it chooses: to `body` so many times, then to `after`. */
struct for_loop {
	struct node node;
	int64_t count;
	const char *body, *after;
	const struct frag_flow_info *to_body, *to_after;
};

static const struct frag_param for_loop_params[] = {
	FRAG_PARAM_I64(struct for_loop, count, 3, .headline = "Turns", .min = 0, .max = 1e6),
	FRAG_PARAM_STRING(struct for_loop, body, NULL, .headline = "Next operator of each turn",
			  .flags = FRAG_PARAM_REQUIRED),
	FRAG_PARAM_STRING(struct for_loop, after, NULL, .headline = "Next operator after the last",
			  .flags = FRAG_PARAM_REQUIRED),
};

static int for_loop_choose(void *state, struct frag_tick *tick, void *arg)
{
	struct for_loop *loop = state;
	bool again = loop->node.value <= loop->count;

	(void)arg;
	return frag_tick_add_dynamic_flow_info(tick, again ? loop->to_body : loop->to_after);
}

static int for_loop_setup(void *state, struct frag_op *op)
{
	(void)state;
	return frag_set_dynamic_flows(op, for_loop_choose, NULL);
}

/* Names are looked up once. */
static int for_loop_start(void *state, struct frag_op *op)
{
	struct for_loop *loop = state;

	loop->to_body = frag_op_find_flow_info(op, NULL, loop->body);
	loop->to_after = frag_op_find_flow_info(op, NULL, loop->after);
	if (loop->to_body == NULL || loop->to_after == NULL)
		return frag_op_fail(op, -EINVAL, "no flow leads from here to %s",
				    loop->to_body == NULL ? loop->body : loop->after);
	return 0;
}

static const struct frag_op_type for_loop_type = {
	FRAG_OP_TYPE_INIT,
	.name = "for_loop",
	.headline = "Ticks the operators of a loop so many times, then those after it",
	.state_size = sizeof(struct for_loop),
	FRAG_PARAMS(for_loop_params),
	.setup = for_loop_setup,
	.start = for_loop_start,
	.compute = node_compute,
};

/* Two branches, composed in C: node1 goes on with node2 in odd ticks, with node4 in even ones. */
static int branch_choose(void *state, struct frag_tick *tick, void *arg)
{
	const struct frag_flow_info *const *flows;
	const struct node *node = state;

	(void)arg;
	frag_op_next_flows(frag_tick_op(tick), &flows); /* in the order of frag_add_flow */
	return frag_tick_add_dynamic_flow_info(tick, flows[node->value % 2 == 1 ? 0 : 1]);
}

static int conditional_compose(struct frag_fragment *fragment)
{
	static const char *const names[] = {"node1", "node2", "node3", "node4", "node5"};
	struct frag_op *nodes[5];

	for (int i = 0; i < 5; i++)
		nodes[i] = frag_make_operator(fragment, names[i], "node", FRAG_NO_ARGS);
	frag_make_condition(nodes[0], NULL, "count", FRAG_ARGS({"count", "2"}));
	frag_add_flow(fragment, nodes[0], NULL, nodes[1], NULL);
	frag_add_flow(fragment, nodes[1], NULL, nodes[2], NULL);
	frag_add_flow(fragment, nodes[0], NULL, nodes[3], NULL);
	frag_add_flow(fragment, nodes[3], NULL, nodes[4], NULL);
	return frag_set_dynamic_flows(nodes[0], branch_choose, NULL);
}

static const struct frag_op_type *const ops[] = {&node_type, &for_loop_type};
static const struct frag_composer composers[] = {
	{"conditional", "Two branches, taken in turn", conditional_compose},
};
FRAG_PLUGIN(.name = "flow_control", .version = "1.0.0", FRAG_OPS(ops), FRAG_COMPOSERS(composers));
