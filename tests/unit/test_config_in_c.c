// SPDX-License-Identifier: Apache-2.0
#include <graph/compose.h>

#include "graph_texts.h"
#include "rig_ops.h"

/* What composers read of the configuration, value by value and as arguments. */

static void (*in_compose)(struct frag_fragment *fragment);
static int (*in_inner)(struct frag_fragment *fragment);

/* Parameters of several kinds, written down when it is set up. */
struct detector {
	double threshold;
	int64_t size;
	const char *model;
	struct frag_string_map labels;
	const struct frag_tree *layers;
	struct frag_i64_list crop;
};
static const struct frag_param detector_params[] = {
	FRAG_PARAM_F64(struct detector, threshold, 0.1),
	FRAG_PARAM_I64(struct detector, size, 1),
	FRAG_PARAM_STRING(struct detector, model, "none"),
	FRAG_PARAM_STRING_MAP(struct detector, labels, NULL, .flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_TREE(struct detector, layers, NULL, .flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_I64_LIST(struct detector, crop, NULL, .flags = FRAG_PARAM_OPTIONAL),
};
static struct detector seen;
static char seen_model[32], seen_label[32];

static int detector_setup(void *state, struct frag_op *op)
{
	seen = *(struct detector *)state;
	snprintf(seen_model, sizeof(seen_model), "%s", seen.model);
	if (seen.labels.count > 0)
		snprintf(seen_label, sizeof(seen_label), "%s", seen.labels.items[0].text);
	return 0;
}

static int detector_compute(void *state, struct frag_tick *tick)
{
	return FRAG_DONE;
}

TEST_OP(detector, .state_size = sizeof(struct detector), FRAG_PARAMS(detector_params),
	.setup = detector_setup);

static int compose(struct frag_fragment *fragment)
{
	in_compose(fragment);
	return 0;
}

static int compose_inner(struct frag_subgraph *inner, struct frag_fragment *fragment)
{
	return in_inner(fragment);
}

static const struct frag_subgraph_type subgraphs[] = {{"inner", NULL, compose_inner}};
static const struct frag_op_type *const ops[] = {&detector_type};
static const struct frag_composer composers[] = {{"c", NULL, compose}};
static const struct frag_plugin plugin = {TEST_PLUGIN_INIT, .name = "reading", FRAG_OPS(ops),
					  FRAG_SUBGRAPHS(subgraphs), FRAG_COMPOSERS(composers)};

#define HEAD "frag: 1\napplication: app\ncompose: c\n"
#define CONFIG                                                                                     \
	HEAD "config:\n"                                                                           \
	     "  detection: {threshold: 0.5, size: 640, on: true}\n"                                \
	     "  deep: {a: {b: [1, -2, 3]}, f: [0.5, 2], t: [x, y], m: {k: v, l: w}}\n"             \
	     "  name: hello\n"                                                                     \
	     "  bytes: 2MB\n"                                                                      \
	     "  wait: 20ms\n"                                                                      \
	     "  nothing:\n"                                                                        \
	     "  list: [{x: 1}, 2]\n"

/* Composes it; lines: all errors. */
static void composed(const char *yaml, void (*fn)(struct frag_fragment *fragment),
		     const char *lines)
{
	struct rig rig;

	in_compose = fn;
	seen = (struct detector){0};
	seen_model[0] = seen_label[0] = '\0';
	cr_expect_eq(rig_prepare(&rig, &plugin, yaml), lines[0] != '\0' ? -EINVAL : 0);
	expect_errors(&rig.diag, lines);
	rig_end(&rig);
}

/* One operator, so that the graph has nothing else wrong. */
static void detect(struct frag_fragment *fragment, const struct frag_arg *args)
{
	frag_add_operator(fragment, frag_make_operator(fragment, "d", "detector", args));
}

static void read_all(struct frag_fragment *fragment)
{
	struct frag_string_list texts;
	struct frag_f64_list f64s;
	struct frag_i64_list i64s;
	struct frag_string_map map;
	const struct frag_tree *tree;
	const char *text;
	uint64_t size;
	int64_t i64;
	double f64;
	bool on = false;

	cr_expect_eq(frag_config_bool(fragment, "detection.on", &on), 0);
	cr_expect(on);
	cr_expect_eq(frag_config_i64(fragment, "detection.size", 0, 640, &i64), 0);
	cr_expect_eq(i64, 640);
	cr_expect_eq(frag_config_f64(fragment, "detection.threshold", &f64), 0);
	cr_expect_eq(f64, 0.5);
	cr_expect_eq(frag_config_string(fragment, "name", &text), 0);
	cr_expect_str_eq(text, "hello");
	cr_expect_eq(frag_config_size(fragment, "bytes", &size), 0);
	cr_expect_eq(size, 2 << 20);
	cr_expect_eq(frag_config_duration(fragment, "wait", &i64), 0);
	cr_expect_eq(i64, 20000000);
	cr_expect_eq(frag_config_i64_list(fragment, "deep.a.b", &i64s), 0);
	cr_assert_eq(i64s.count, 3);
	cr_expect_eq(i64s.items[1], -2);
	cr_expect_eq(frag_config_f64_list(fragment, "deep.f", &f64s), 0);
	cr_assert_eq(f64s.count, 2);
	cr_expect_eq(f64s.items[0], 0.5);
	cr_expect_eq(frag_config_string_list(fragment, "deep.t", &texts), 0);
	cr_assert_eq(texts.count, 2);
	cr_expect_str_eq(texts.items[1], "y");
	cr_expect_eq(frag_config_string_map(fragment, "deep.m", &map), 0);
	cr_assert_eq(map.count, 2);
	cr_expect_str_eq(map.items[1].key, "l");
	cr_expect_str_eq(map.items[1].text, "w");
	cr_expect_eq(frag_config_tree(fragment, "list", &tree), 0);
	cr_expect_eq(tree->kind, FRAG_TREE_LIST);
	cr_expect_str_eq(tree->items[0].items[0].key, "x");
	cr_expect_eq(frag_config_tree(fragment, NULL, &tree), 0);
	cr_expect_eq(tree->count, 7);
	/* What is not there leaves the default. */
	i64 = 7;
	cr_expect_eq(frag_config_i64(fragment, "detection.sise", 0, 9, &i64), -ENOENT);
	cr_expect_eq(frag_config_i64(fragment, "nothing", 0, 9, &i64), -ENOENT);
	cr_expect_eq(frag_config_i64(fragment, "detection.size.x", 0, 9, &i64), -ENOENT);
	cr_expect_eq(frag_config_i64(fragment, NULL, 0, 9, &i64), -ENOENT);
	cr_expect_eq(frag_config_tree(fragment, "nothing", &tree), -ENOENT);
	cr_expect_eq(i64, 7);
	detect(fragment, NULL);
}

Test(config_in_c, values_of_all_kinds_by_path)
{
	composed(CONFIG, read_all, "");
}

static void read_wrong(struct frag_fragment *fragment)
{
	struct frag_i64_list list = {0};
	int64_t i64 = 7;
	double f64 = 7;
	bool on = true;

	cr_expect_eq(frag_config_bool(fragment, "name", &on), -EINVAL);
	cr_expect_eq(frag_config_i64(fragment, "detection.size", INT8_MIN, INT8_MAX, &i64),
		     -EINVAL);
	cr_expect_eq(frag_config_i64(fragment, "detection.threshold", 0, 9, &i64), -EINVAL);
	cr_expect_eq(frag_config_i64(fragment, "detection", 0, 9, &i64), -EINVAL);
	cr_expect_eq(frag_config_f64(fragment, "deep.a.b", &f64), -EINVAL);
	cr_expect_eq(frag_config_i64_list(fragment, "deep.f", &list), -EINVAL);
	cr_expect(i64 == 7 && f64 == 7 && on && list.count == 0, "what fails writes nothing");
	detect(fragment, FRAG_ARGS({"size", "x"}));
}

Test(config_in_c, wrong_values_are_all_reported_with_their_places)
{
	composed(
		CONFIG, read_wrong,
		"test.yaml:5:14: app: config \"detection\": a map is not a valid integer; write a whole number such as 3\n"
		"test.yaml:5:26: app: config \"detection.threshold\": \"0.5\" is not a valid integer; write a whole number such as 3\n"
		"test.yaml:5:37: app: config \"detection.size\": 640 is out of range; it must be from -128 to 127\n"
		"test.yaml:6:17: app: config \"deep.a.b\": a list is not a valid number; write one such as 0.5\n"
		"test.yaml:6:34: app: config \"deep.f\": \"0.5\" is not a valid integer; write a whole number such as 3\n"
		"test.yaml:7:9: app: config \"name\": \"hello\" is not a valid bool; write true or false\n"
		"app.d: parameter \"size\": \"x\" is not a valid integer; write a whole number such as 3\n");
}

static void read_bounds(struct frag_fragment *fragment)
{
	int64_t i64;

	cr_expect_eq(frag_config_i64(fragment, "max", INT64_MIN, INT64_MAX, &i64), 0);
	cr_expect_eq(i64, INT64_MAX);
	cr_expect_eq(frag_config_i64(fragment, "max", INT64_MIN, INT64_MAX - 1, &i64), -EINVAL);
	cr_expect_eq(frag_config_i64(fragment, "min", INT64_MIN, 0, &i64), 0);
	cr_expect_eq(i64, INT64_MIN);
	cr_expect_eq(frag_config_i64(fragment, "more", INT64_MIN, INT64_MAX, &i64), -EINVAL);
	detect(fragment, NULL);
}

Test(config_in_c, ranges_are_exact)
{
	composed(
		HEAD
		"config: {max: 9223372036854775807, min: -9223372036854775808, more: 9223372036854775808}\n",
		read_bounds,
		"test.yaml:4:15: app: config \"max\": 9223372036854775807 is out of range; it must be from -9223372036854775808 to 9223372036854775806\n"
		"test.yaml:4:69: app: config \"more\": \"9223372036854775808\" is too large for 64 bits\n");
}

static void list_keys(struct frag_fragment *fragment)
{
	static const char *const wanted[] = {"detection",
					     "detection.threshold",
					     "detection.size",
					     "detection.on",
					     "deep",
					     "deep.a",
					     "deep.a.b",
					     "deep.f",
					     "deep.t",
					     "deep.m",
					     "deep.m.k",
					     "deep.m.l",
					     "name",
					     "bytes",
					     "wait",
					     "nothing",
					     "list"};
	struct frag_string_list keys = frag_config_keys(fragment);

	cr_assert_eq(keys.count, FRAG_COUNT_OF(wanted));
	for (size_t i = 0; i < keys.count; i++)
		cr_expect_str_eq(keys.items[i], wanted[i]);
	detect(fragment, NULL);
}

static void list_none(struct frag_fragment *fragment)
{
	const struct frag_tree *tree;

	cr_expect_eq(frag_config_keys(fragment).count, 0);
	if (fragment->spec->config == NULL)
		cr_expect_eq(frag_config_tree(fragment, NULL, &tree), -ENOENT);
	detect(fragment, NULL);
}

Test(config_in_c, keys_of_all_levels)
{
	composed(CONFIG, list_keys, "");
	composed(HEAD, list_none, "");
	composed(HEAD "config: {}\n", list_none, "");
}

static const char models[] = HEAD "arguments: {w: {default: big}}\n"
				  "config:\n"
				  "  detection: {threshold: 0.5, size: 640}\n"
				  "  models: {first: {model: a.onnx}, threshold: 0.9}\n"
				  "  labels: {\"1\": cat}\n"
				  "  crop: [1, 2]\n"
				  "  model: \"${w}.onnx\"\n";

static void from_maps(struct frag_fragment *fragment)
{
	detect(fragment, FRAG_ARGS({"size", "9"}, {"from_config", "detection"},
				   {"from_config", "models.first"}, {"threshold", "0.7"}));
}

static void from_values(struct frag_fragment *fragment)
{
	detect(fragment,
	       FRAG_ARGS({"threshold", "0.7"}, {"from_config", "models.threshold"},
			 {"from_config", "[crop, model]"}, {"labels", "{from_config: labels}"},
			 {"layers", "{from_config: models}"}));
}

Test(config_in_c, a_map_gives_its_children_and_a_value_itself_and_later_ones_win)
{
	composed(models, from_maps, "");
	cr_expect_eq(seen.size, 640, "after the one beside");
	cr_expect_eq(seen.threshold, 0.7, "before the one beside");
	cr_expect_str_eq(seen_model, "a.onnx");
	composed(models, from_values, "");
	cr_expect_eq(seen.threshold, 0.9);
	cr_expect_eq(seen.size, 1);
	cr_expect_str_eq(seen_model, "big.onnx", "arguments were put in place");
	cr_expect_str_eq(seen_label, "cat");
	cr_expect_eq(seen.crop.count, 2);
	cr_expect_not_null(seen.layers);
}

static void from_nowhere(struct frag_fragment *fragment)
{
	detect(fragment, FRAG_ARGS({"from_config", "detektion"}, {"from_config", NULL},
				   {"model", "{from_config: detection.nothing}"},
				   {"from_config", "[crop, [x]]"}, {"from_config", "[crop"}));
	cr_expect_null(frag_make_resource(fragment, "r", "unbounded_allocator",
					  FRAG_ARGS({"from_config", "x"})));
}

static void from_wrong(struct frag_fragment *fragment)
{
	detect(fragment, FRAG_ARGS({"from_config", "models"}));
}

Test(config_in_c, what_is_not_there_is_reported)
{
	composed(
		models, from_nowhere,
		"app.d: from_config: config has no \"detektion\"; did you mean \"detection\"?\n"
		"app.d: from_config: config has no \"\"; its keys: detection, models, labels, crop, model\n"
		"app.d: from_config: config has no \"detection.nothing\"; its keys: detection, models, labels, crop, model\n"
		"app.d: from_config: \"[crop\" is not valid YAML\n"
		"app.r: from_config: config has no \"x\"; its keys: detection, models, labels, crop, model\n");
	composed(
		models, from_wrong,
		"test.yaml:7:12: app.d: unknown parameter \"first\"; its parameters: threshold, size, model, labels, layers, crop\n");
	composed(HEAD, from_wrong, "app.d: from_config: config has no \"models\"\n");
}

/* The first keys, of the subgraph or of the application. */
static void expect_keys(struct frag_fragment *fragment, const char *first, size_t count)
{
	struct frag_string_list keys = frag_config_keys(fragment);

	cr_assert_eq(keys.count, count);
	cr_expect_str_eq(keys.items[0], first);
}

static int read_inner(struct frag_fragment *fragment)
{
	const struct frag_tree *tree;
	const char *text = "";
	int64_t size = 0;

	expect_keys(fragment, "detection", 3);
	cr_expect_eq(frag_config_i64(fragment, "detection.size", 0, 9, &size), 0);
	cr_expect_eq(size, 7);
	cr_expect_eq(frag_config_f64(fragment, "detection.threshold", &(double){0}), -ENOENT);
	cr_expect_eq(frag_config_string(fragment, "model", &text), 0);
	cr_expect_str_eq(text, "big.onnx", "what it lacks is the application's");
	cr_expect_eq(frag_config_tree(fragment, NULL, &tree), 0);
	detect(fragment, FRAG_ARGS({"from_config", "detection"}, {"from_config", "model"}));
	return 0;
}

static void with_inner(struct frag_fragment *fragment)
{
	frag_make_subgraph(fragment, "one", "inner", FRAG_NO_ARGS);
	expect_keys(fragment, "detection", 11);
}

static int from_inner_nowhere(struct frag_fragment *fragment)
{
	detect(fragment, FRAG_ARGS({"from_config", "detection.threshold"}));
	return 0;
}

Test(config_in_c, a_subgraph_has_one_of_its_own)
{
	char graph[1000];

	snprintf(graph, sizeof(graph), "%s%s", models,
		 "subgraphs: {inner: {config: {detection: {size: 7}, on: 1}}}\n");
	in_inner = read_inner;
	composed(graph, with_inner, "");
	cr_expect_eq(seen.size, 7);
	cr_expect_eq(seen.threshold, 0.1);
	cr_expect_str_eq(seen_model, "big.onnx");
	in_inner = from_inner_nowhere;
	composed(
		graph, with_inner,
		"app.one_d: from_config: config has no \"detection.threshold\"; its keys: detection, on\n");
}
