/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_GRAPH_OPS_H
#define TESTS_UNIT_GRAPH_OPS_H

#include <frag/frag.h>
#include <stdlib.h>
#include <string.h>

#include "../ops.h"

/* Types for graphs that are composed and never run: ports and parameters of every kind. */

static int none_compute(void *state, struct frag_tick *tick)
{
	return FRAG_DONE;
}

#define TYPE(op, ...) TEST_OP_BY(op, none_compute, __VA_ARGS__)
#define IN(n, t, ...)                                                                              \
	{                                                                                          \
		.name = n, .dir = FRAG_IN, .type = t, ##__VA_ARGS__                                \
	}
#define OUT(n, t, ...)                                                                             \
	{                                                                                          \
		.name = n, .dir = FRAG_OUT, .type = t, ##__VA_ARGS__                               \
	}

struct adds {
	int64_t add, count;
	struct frag_resource *pool;
};
static const struct frag_param adds_params[] = {FRAG_PARAM_I64(struct adds, add, 0),
						FRAG_PARAM_I64(struct adds, count, 1)};
static const struct frag_param pool_params[] = {
	FRAG_PARAM_RESOURCE(struct adds, pool, NULL, .flags = FRAG_PARAM_OPTIONAL)};

static const struct frag_port tx_ports[] = {OUT("out", "i64")};
static const struct frag_port rx_ports[] = {IN("in", "i64", .capacity = 2)};
static const struct frag_port fwd_ports[] = {IN("in", "i64"), OUT("out", "i64")};
static const struct frag_port join_ports[] = {IN("a", "i64"),
					      IN("b", "i64", .policy = FRAG_POLICY_POP),
					      OUT("out", "i64", .min_size = 2)};
static const struct frag_port all_ports[] = {IN("receivers", NULL, .flags = FRAG_PORT_MULTI),
					     OUT("out", "i64", .flags = FRAG_PORT_OPTIONAL)};
static const struct frag_port some_ports[] = {
	IN("in", "i64"), IN("extra", "f64", .flags = FRAG_PORT_OPTIONAL),
	OUT("out", "f64", .flags = FRAG_PORT_OPTIONAL),
	OUT("more", "i64", .flags = FRAG_PORT_OPTIONAL | FRAG_PORT_NO_CONDITION)};
static const struct frag_port img_ports[] = {OUT("out", "tensor", .tensors = FRAG_BOXES)};
static const struct frag_port see_ports[] = {IN("in", "tensor", .tensors = FRAG_BOXES)};

TYPE(tx, .state_size = sizeof(struct adds), FRAG_PORTS(tx_ports), FRAG_PARAMS(adds_params));
TYPE(rx, FRAG_PORTS(rx_ports));
TYPE(fwd, FRAG_PORTS(fwd_ports));
TYPE(join, FRAG_PORTS(join_ports));
TYPE(all, FRAG_PORTS(all_ports));
TYPE(some, FRAG_PORTS(some_ports));
TYPE(img, .state_size = sizeof(struct adds), FRAG_PORTS(img_ports), FRAG_PARAMS(pool_params));
TYPE(see, FRAG_PORTS(see_ports));
TYPE(step, .headline = "Has no ports");

static int choose(void *self, struct frag_tick *tick, void *arg)
{
	return 0;
}

static int pick_setup(void *state, struct frag_op *op)
{
	return frag_set_dynamic_flows(op, choose, NULL);
}
TYPE(pick, .state_size = sizeof(struct adds), FRAG_PORTS(tx_ports), FRAG_PARAMS(adds_params),
     .setup = pick_setup);

struct knobs {
	bool flag;
	int64_t whole, pause, tune;
	uint64_t size;
	double part;
	const char *word, *path;
	struct frag_resource *heap;
	struct frag_condition *gate;
	struct frag_i64_list list;
	struct frag_f64_list parts;
	struct frag_string_list words;
	struct frag_string_map map;
	const struct frag_tree *deep, *tree;
};
static const char *const knobs_words[] = {"mild", "wild", NULL};
static const struct frag_param knobs_params[] = {
	FRAG_PARAM_BOOL(struct knobs, flag, false),
	FRAG_PARAM_I64(struct knobs, whole, 3, .min = -5, .max = 7),
	FRAG_PARAM_F64(struct knobs, part, 0.25, .min = 0.25, .max = 0.5),
	FRAG_PARAM_STRING(struct knobs, word, "wild", .choices = knobs_words),
	FRAG_PARAM_SIZE(struct knobs, size, 1024, .min = 1000, .max = 2048),
	FRAG_PARAM_DURATION(struct knobs, pause, 1000000, .min = 0, .max = 3000000),
	FRAG_PARAM_PATH(struct knobs, path, "here"),
	FRAG_PARAM_RESOURCE(struct knobs, heap, NULL, .flags = FRAG_PARAM_REQUIRED),
	FRAG_PARAM_CONDITION(struct knobs, gate, NULL, .flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_I64_LIST(struct knobs, list, "[4]"),
	FRAG_PARAM_F64_LIST(struct knobs, parts, NULL, .flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_STRING_LIST(struct knobs, words, "[w]"),
	FRAG_PARAM_STRING_MAP(struct knobs, map, NULL, .flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_TREE(struct knobs, deep, NULL, .flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_TREE(struct knobs, tree, "[]"),
	FRAG_PARAM_I64(struct knobs, tune, 4, .flags = FRAG_PARAM_DYNAMIC, .min = 4, .max = 40),
};
TYPE(knobs, .state_size = sizeof(struct knobs), FRAG_PARAMS(knobs_params));

struct tally {
	int64_t limit;
	struct frag_resource *uses;
};
static const struct frag_param tally_params[] = {
	FRAG_PARAM_I64(struct tally, limit, 2, .min = 1, .max = 4),
	FRAG_PARAM_RESOURCE(struct tally, uses, NULL, .flags = FRAG_PARAM_OPTIONAL)};
static const struct frag_resource_type tally_type = {FRAG_RESOURCE_TYPE_INIT, .name = "tally",
						     .state_size = sizeof(struct tally),
						     FRAG_PARAMS(tally_params)};

static int scribe_log(void *state, const struct frag_log_entry *entry)
{
	return 0;
}
static const struct frag_param scribe_params[] = {
	FRAG_PARAM_I64(struct tally, limit, 2, .min = 1, .max = 4)};
static const struct frag_data_logger_type scribe_type = {
	FRAG_DATA_LOGGER_TYPE_INIT, .name = "scribe", .state_size = sizeof(struct tally),
	FRAG_PARAMS(scribe_params), .log = scribe_log};

static struct frag_op *make(struct frag_fragment *fragment, const char *name, const char *type)
{
	struct frag_op *op = frag_make_operator(fragment, name, type, FRAG_NO_ARGS);

	frag_add_operator(fragment, op);
	return op;
}

static int pair_compose(struct frag_subgraph *subgraph, struct frag_fragment *fragment)
{
	struct frag_op *a = make(fragment, "a", "fwd"), *b = make(fragment, "b", "rx");

	frag_add_flow_with(fragment, a, "out", b, NULL, 5, FRAG_POLICY_REJECT);
	return frag_add_input_interface_port(subgraph, a, NULL, "in");
}

static const struct frag_subgraph_type pair_type = {"pair", NULL, pair_compose};

/* What a composer may try, by number: most of it is wrong, the rest adds to the graph. */
#define DEEDS 44
static void made_do(struct frag_fragment *fragment, int deed, struct frag_op *last)
{
	static const struct frag_arg none[] = {{NULL, NULL}};
	const char *const twice[] = {"a", "a"}, *const one[] = {"a"}, *const out[] = {"out"};
	struct frag_op *op = deed < 28 ? make(fragment, "own", "join") : last;
	struct frag_subgraph *pair = NULL;
	struct frag_thread_pool *pool = NULL;
	struct frag_resource *heap = NULL;
	const uint32_t cores[] = {1, 3};
	int64_t whole = 0;
	double number = 0;
	bool flag = false;
	const char *text = NULL;
	uint64_t bytes = 0;

	if (op != last) {
		frag_add_named_flow(fragment, "c_source", "out", "own", "a", 0,
				    FRAG_POLICY_DEFAULT);
		frag_add_named_flow(fragment, "c_source", "out", "own", "b", 0,
				    FRAG_POLICY_DEFAULT);
	}
	if (deed >= 20 && deed < 28)
		pool = frag_make_thread_pool(fragment, deed == 20 ? "a b" : "own_pool",
					     (uint32_t)deed - 20);
	if (deed >= 12 && deed < 20)
		pair = frag_make_subgraph_of(fragment, deed == 12 ? "p" : "q", &pair_type, none);
	if (deed >= 36)
		heap = frag_make_resource(fragment, "own_heap", "unbounded_allocator", none);
	switch (deed) {
	case 0:
		make(fragment, "own", "fwd");
		break;
	case 1:
		make(fragment, "other", "none");
		break;
	case 2:
		frag_make_operator(fragment, "lost", "fwd", none);
		break;
	case 3:
		frag_add_flow(fragment, op, "out", last, "c");
		break;
	case 4:
		frag_add_flow(fragment, op, "a", last, "out");
		break;
	case 5:
		frag_add_flow(fragment, op, NULL, last, NULL);
		break;
	case 6:
		frag_add_flow_with(fragment, op, "out", last, "a", 65537, FRAG_POLICY_BLOCK);
		break;
	case 7:
		frag_add_flow_with(fragment, op, "out", last, "a", 65536, FRAG_POLICY_LATEST);
		break;
	case 8:
		frag_add_named_flow(fragment, "own", "out", "nobody", "a", 0, FRAG_POLICY_BLOCK);
		break;
	case 9:
		frag_add_named_flow(fragment, "own", "out", "c", "data_out", 0, FRAG_POLICY_BLOCK);
		break;
	case 10:
		frag_add_named_flow(fragment, "p", NULL, "own", "a", 0, FRAG_POLICY_BLOCK);
		break;
	case 11:
		frag_add_flow(fragment, frag_start_op(fragment), NULL, op, FRAG_INPUT_EXEC);
		break;
	case 13:
		frag_add_named_flow(fragment, "own", NULL, "q", NULL, 9, FRAG_POLICY_POP);
		break;
	case 14:
		frag_add_interface_port(pair, op, "a", "more");
		break;
	case 15:
		frag_make_subgraph(fragment, "r2", "none", none);
		break;
	case 16:
		frag_make_subgraph(fragment, "r2", "camera", none);
		break;
	case 17:
		frag_make_subgraph(fragment, "r2", "camera",
				   FRAG_ARGS({"size", "1k"}, {"sise", "2k"}));
		break;
	case 18:
		frag_make_subgraph(fragment, "a b", "list", none);
		break;
	case 19:
		frag_make_subgraph(fragment, "r2", "rig", FRAG_ARGS({"count", "9"}));
		break;
	case 21:
		frag_thread_pool_add(pool, &op, 1, 0, NULL, 0);
		break;
	case 22:
		frag_thread_pool_add(pool, &op, 1, 1, cores, 2);
		break;
	case 23:
		frag_thread_pool_add(pool, &op, 1, 0, cores, 2);
		break;
	case 24:
		frag_thread_pool_add(pool, &op, 1, 1, NULL, 0);
		frag_thread_pool_add(pool, &op, 1, 0, NULL, 0);
		break;
	case 25:
		frag_make_thread_pool(fragment, "own_pool", 1);
		break;
	case 26:
		frag_thread_pool_add(pool, &last, 0, 0, NULL, 0);
		break;
	case 27:
		frag_make_thread_pool(fragment, "large", 1025);
		break;
	case 28:
		frag_or_combine_port_conditions(op, twice, 2);
		break;
	case 29:
		frag_set_deadline(op, 0, FRAG_DEADLINE_FROM_TICK, FRAG_ON_MISS_COUNT);
		break;
	case 30:
		frag_set_deadline(op, 5, FRAG_DEADLINE_FROM_TICK, FRAG_ON_MISS_DROP);
		break;
	case 31:
		frag_set_input_timing(op, "none", FRAG_TAKE_EVERY, 5, FRAG_MISSING_WAIT, NULL);
		break;
	case 32:
		frag_set_input_timing(op, "a", FRAG_TAKE_LATEST_WITHIN, 0, FRAG_MISSING_SKIP, NULL);
		break;
	case 33:
		frag_align_inputs(op, twice, 2, 5, 6);
		break;
	case 34:
		frag_align_inputs(op, out, 1, 5, 6);
		break;
	case 35:
		frag_add_path_deadline(fragment, &op, 1, 5, FRAG_ON_MISS_STOP);
		break;
	case 36:
		frag_add_resource(op, heap);
		break;
	case 37:
		frag_register_service(fragment, heap, "own");
		frag_register_service(fragment, heap, "own");
		break;
	case 38:
		frag_make_resource(fragment, "pool", "block_memory_pool",
				   FRAG_ARGS({"num_blocks", "0"}));
		break;
	case 39:
		frag_make_condition(op, "gate", "boolean", FRAG_ARGS({"enable_tick", "2"}));
		break;
	case 40:
		frag_make_condition(op, "more", "periodic", none);
		frag_or_combine_port_conditions(op, one, 1);
		break;
	case 41:
		frag_config_i64(fragment, "far.count", 1, 11, &whole);
		frag_config_bool(fragment, "own.count", &flag);
		break;
	case 42:
		frag_config_f64(fragment, "own", &number);
		frag_config_string(fragment, "none.x", &text);
		break;
	case 43:
		frag_config_size(fragment, "own.count", &bytes);
		frag_fragment_fail(fragment, -EIO, "as far as %llu", (unsigned long long)bytes);
		break;
	default:
		break;
	}
}

/* What the graph connects, sets and adds to. */
static int made_compose(struct frag_fragment *fragment)
{
	const char *deed = frag_fragment_argument(fragment, "deed");
	const struct frag_arg args[] = {{"size", "4k"}, {"count", "3"}, {NULL, NULL}};
	struct frag_op *last = make(fragment, "last", "join"),
		       *sum = make(fragment, "c_sum", "all");
	const char *const inputs[] = {"a", "b"};

	frag_make_subgraph(fragment, "c", "camera", args);
	frag_make_subgraph_of(fragment, "p", &pair_type, FRAG_NO_ARGS);
	frag_make_condition(last, "beat", "periodic", FRAG_ARGS({"recess_period", "7ms"}));
	frag_or_combine_port_conditions(last, inputs, 2);
	frag_set_deadline(last, 9000000, FRAG_DEADLINE_FROM_TICK, FRAG_ON_MISS_COUNT);
	frag_fragment_set_clock(fragment, "manual", FRAG_ARGS({"initial_timestamp", "5"}));
	frag_add_named_flow(fragment, "c", "data_out", "last", "a", 2, FRAG_POLICY_DEFAULT);
	frag_add_named_flow(fragment, "last", NULL, "c_sum", NULL, 0, FRAG_POLICY_POP);
	frag_add_path_deadline(fragment, (struct frag_op *const[]){last, sum}, 2, 4000000,
			       FRAG_ON_MISS_DROP);
	frag_add_named_flow(fragment, "c_source", "out", "last", "b", 3, FRAG_POLICY_LATEST);
	if (deed != NULL && strcmp(deed, "none") != 0)
		made_do(fragment, atoi(deed), last);
	return 0;
}

static const struct frag_op_type *const graph_ops[] = {
	&tx_type,  &rx_type,  &fwd_type,  &join_type, &all_type,   &some_type,
	&img_type, &see_type, &step_type, &pick_type, &knobs_type,
};
static const struct frag_resource_type *const graph_resources[] = {&tally_type};
static const struct frag_data_logger_type *const graph_loggers[] = {&scribe_type};
static const struct frag_composer graph_composers[] = {{"made", NULL, made_compose}};
static const struct frag_plugin graph_plugin = {TEST_PLUGIN_INIT,
						.name = "ops",
						FRAG_OPS(graph_ops),
						FRAG_RESOURCES(graph_resources),
						FRAG_DATA_LOGGERS(graph_loggers),
						FRAG_COMPOSERS(graph_composers)};

#endif
