// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <stdlib.h>

#include <frag/harness.h>

struct all {
	bool loud;
	int64_t count;
	double factor;
	const char *title;
	uint64_t size;
	int64_t period;
	struct frag_resource *pool;
	struct frag_i64_list taps;
	struct frag_f64_list gains;
	struct frag_string_list names;
	struct frag_string_map labels;
	const struct frag_tree *layers, *none;
	char *seen;
};

static const struct frag_port ports[] = {{.name = "in", .dir = FRAG_IN, .type = "i64"}};
static const struct frag_param params[] = {
	FRAG_PARAM_BOOL(struct all, loud, true),
	FRAG_PARAM_I64(struct all, count, 3),
	FRAG_PARAM_F64(struct all, factor, 0.5),
	FRAG_PARAM_STRING(struct all, title, "a \"b\""),
	FRAG_PARAM_SIZE(struct all, size, 4096),
	FRAG_PARAM_DURATION(struct all, period, 1000),
	FRAG_PARAM_RESOURCE(struct all, pool, NULL, .flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_I64_LIST(struct all, taps, "[1, -2]"),
	FRAG_PARAM_F64_LIST(struct all, gains, "[0.5]"),
	FRAG_PARAM_STRING_LIST(struct all, names, "[x, y]"),
	FRAG_PARAM_STRING_MAP(struct all, labels, "{a: 1, b: two}"),
	FRAG_PARAM_TREE(struct all, layers, "[{name: a, size: [1, 2]}, b, ~]"),
	FRAG_PARAM_TREE(struct all, none, NULL, .flags = FRAG_PARAM_OPTIONAL),
};

static int compute(void *state, struct frag_tick *tick)
{
	struct all *s = state;

	s->seen = frag_op_describe(frag_tick_op(tick));
	return 0;
}

static const struct frag_op_type type = {
	FRAG_OP_TYPE_INIT, .name = "all",       .state_size = sizeof(struct all),
	FRAG_PORTS(ports), FRAG_PARAMS(params), .compute = compute,
};

Test(describe, operators_resources_and_arguments)
{
	const struct frag_harness_resource resources[] = {
		{"mine", "block_memory_pool", FRAG_ARGS({"block_size", "64"}, {"num_blocks", "2"})},
		{NULL}};
	struct frag_harness *h = frag_harness_create_with(
		&type, FRAG_ARGS({"pool", "$mine"}, {"count", "7"}), resources, NULL);
	struct all *s;
	char *text;

	cr_assert_not_null(h);
	s = frag_harness_state(h);
	cr_assert_eq(frag_harness_tick(h), 0);
	cr_assert_str_eq(s->seen,
			 "name: all\n"
			 "fragment: harness\n"
			 "type: all\n"
			 "parameters:\n"
			 "  loud: true\n"
			 "  count: 7\n"
			 "  factor: 0.5\n"
			 "  title: \"a \\\"b\\\"\"\n"
			 "  size: 4096\n"
			 "  period: 1000\n"
			 "  pool: \"$mine\"\n"
			 "  taps: [1, -2]\n"
			 "  gains: [0.5]\n"
			 "  names: [\"x\", \"y\"]\n"
			 "  labels: {\"a\": \"1\", \"b\": \"two\"}\n"
			 "  layers: [{\"name\": \"a\", \"size\": [\"1\", \"2\"]}, \"b\", \"\"]\n"
			 "  none: null\n"
			 "ports:\n"
			 "  - {name: in, direction: in, type: i64, flows: 1}\n");
	free(s->seen);
	text = frag_resource_describe(s->pool);
	cr_assert_str_eq(text, "name: mine\n"
			       "type: block_memory_pool\n"
			       "parameters:\n"
			       "  storage_type: 2\n"
			       "  block_size: 64\n"
			       "  num_blocks: 2\n"
			       "  dev_id: 0\n");
	free(text);
	text = frag_args_describe(FRAG_ARGS({"count", "7"}, {"path", "a b"}));
	cr_assert_str_eq(text, "count: \"7\"\npath: \"a b\"\n");
	free(text);
	frag_harness_destroy(h);
}
