// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <math.h>

#include <base/alloc.h>
#include <type/params.h>

#include "unit/graph_texts.h"

struct all {
	bool b;
	int64_t i;
	double f;
	const char *s;
	const char *optional;
	uint64_t size;
	int64_t duration;
	const char *path;
	struct frag_resource *resource;
	struct frag_i64_list i64s;
	struct frag_f64_list f64s;
	struct frag_string_list strings;
	struct frag_condition *condition;
};

static const struct frag_param params[] = {
	FRAG_PARAM_BOOL(struct all, b, true),
	FRAG_PARAM_I64(struct all, i, 7, .min = -10, .max = 9.2e18),
	FRAG_PARAM_F64(struct all, f, 0.25, .min = -1e19, .max = 1),
	FRAG_PARAM_STRING(struct all, s, "text"),
	FRAG_PARAM_STRING(struct all, optional, NULL, .flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_SIZE(struct all, size, 4096),
	FRAG_PARAM_DURATION(struct all, duration, 5, .min = 1, .max = 2e9),
	FRAG_PARAM_PATH(struct all, path, "sub/file"),
	FRAG_PARAM_RESOURCE(struct all, resource, NULL, .flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_I64_LIST(struct all, i64s, "[1, -2]"),
	FRAG_PARAM_F64_LIST(struct all, f64s, NULL),
	FRAG_PARAM_STRING_LIST(struct all, strings, NULL),
	FRAG_PARAM_CONDITION(struct all, condition, NULL),
};

static const struct fragi_param_table table = {params, FRAG_COUNT_OF(params), sizeof(params[0])};

static int pool_stub;

static struct frag_resource *resource_named(void *arg, const char *name)
{
	cr_expect_eq(arg, &pool_stub);
	return strcmp(name, "pool") == 0 ? (struct frag_resource *)(void *)&pool_stub : NULL;
}

static struct frag_condition *condition_named(void *arg, const char *name)
{
	cr_expect_eq(arg, &pool_stub);
	return strcmp(name, "camera") == 0 ? (struct frag_condition *)(void *)&pool_stub : NULL;
}

static const char *name_at(void *arg, enum frag_param_kind kind, size_t i)
{
	return kind == FRAG_PARAM_KIND_RESOURCE && i == 0 ? "pool" : NULL;
}

/* Fills a state from a map in YAML and then from arguments of C; lines: the errors. */
static int fill(const char *yaml, const struct frag_arg *args, struct all *state, const char *lines)
{
	/* the state's texts outlive this call; freed at exit of the test */
	static struct fragi_arena arena;
	struct fragi_spec_setting settings[64], *from_args;
	struct fragi_diag diag = {0};
	struct fragi_node *map;
	size_t count = 0, arg_count;
	struct fragi_param_context context = {.arena = &arena,
					      .diag = &diag,
					      .subject = "f.op",
					      .app_folder = "/app",
					      .arg = &pool_stub,
					      .resource = resource_named,
					      .condition = condition_named,
					      .name_at = name_at};
	int r;

	cr_assert_eq(fragi_yaml_parse(&arena, "a.yaml", yaml, strlen(yaml), &diag, &map), 0);
	for (const struct fragi_node *child = map->first; child != NULL; child = child->next)
		settings[count++] =
			(struct fragi_spec_setting){child->key->text, child, child->key};
	cr_assert_eq(fragi_settings_from_args(&arena, args, &from_args, &arg_count), 0);
	memcpy(settings + count, from_args, arg_count * sizeof(settings[0]));
	r = fragi_params_fill(&table, settings, count + arg_count, state, &context);
	expect_errors(&diag, lines);
	fragi_diag_fini(&diag);
	return r;
}

Test(params, defaults)
{
	struct all s;

	memset(&s, 0xff, sizeof(s));
	cr_assert_eq(fill("{}", FRAG_NO_ARGS, &s, ""), 0);
	cr_expect(s.b);
	cr_expect_eq(s.i, 7);
	cr_expect_eq(s.f, 0.25);
	cr_expect_str_eq(s.s, "text");
	cr_expect_null(s.optional);
	cr_expect_eq(s.size, 4096);
	cr_expect_eq(s.duration, 5);
	cr_expect_str_eq(s.path, "/app/sub/file");
	cr_expect_null(s.resource);
	cr_assert_eq(s.i64s.count, 2);
	cr_expect_eq(s.i64s.items[1], -2);
	cr_expect_eq(s.strings.count, 0);
	cr_expect_null(s.condition);
}

Test(params, texts_become_what_the_table_says)
{
	struct all s = {0};

	cr_assert_eq(
		fill("{b: off, i: 0x10, f: -1.5, s: 12, optional: \"\", size: 2KB, duration: 30hz, path: /x, resource: $pool, i64s: [], f64s: [1, 2.5], strings: [1, on, \"a: b\"]}",
		     FRAG_NO_ARGS, &s, ""),
		0);
	cr_expect_not(s.b);
	cr_expect_eq(s.i, 16);
	cr_expect_eq(s.f, -1.5);
	cr_expect_str_eq(s.s, "12");
	cr_expect_str_eq(s.optional, "");
	cr_expect_eq(s.size, 2048);
	cr_expect_eq(s.duration, 33333333);
	cr_expect_str_eq(s.path, "/x");
	cr_expect_eq((void *)s.resource, &pool_stub);
	cr_expect_eq(s.i64s.count, 0);
	cr_assert_eq(s.f64s.count, 2);
	cr_expect_eq(s.f64s.items[1], 2.5);
	cr_assert_eq(s.strings.count, 3);
	cr_expect_str_eq(s.strings.items[1], "on");
	cr_expect_str_eq(s.strings.items[2], "a: b");
}

Test(params, arguments_of_c_are_plain_texts)
{
	struct all s = {0};

	cr_assert_eq(
		fill("{i: 1, s: yes}",
		     FRAG_ARGS({"i", "2"}, {"i", "3"}, {"s", "{not: yaml"}, {"i64s", "[4, 5, 6]"},
			       {"resource", "$pool"}, {"optional", "x"}, {"optional", NULL}),
		     &s, ""),
		0);
	cr_expect_eq(s.i, 3);
	cr_expect_str_eq(s.s, "{not: yaml");
	cr_assert_eq(s.i64s.count, 3);
	cr_expect_eq(s.i64s.items[2], 6);
	cr_expect_null(s.optional);
}

Test(params, every_wrong_text_has_its_sentence)
{
	struct all s = {0};

	cr_expect_eq(
		fill("b: maybe\ni: 1.5\nf: one\ns: [a]\nsize: -1\nduration: 3 days\npath: {a: b}\nresource: pool\n"
		     "i64s: 3\nf64s: [a]\nstrings: [[a]]\ncondition: $x\ni64: 3\nzzzzzz: 1\n",
		     FRAG_NO_ARGS, &s,
		     "a.yaml:1:4: f.op: parameter \"b\": \"maybe\" is not a valid bool; write true or false\n"
		     "a.yaml:2:4: f.op: parameter \"i\": \"1.5\" is not a valid integer; write a whole number such as 3\n"
		     "a.yaml:3:4: f.op: parameter \"f\": \"one\" is not a valid number; write one such as 0.5\n"
		     "a.yaml:4:4: f.op: parameter \"s\": a list is not a valid string\n"
		     "a.yaml:5:7: f.op: parameter \"size\": \"-1\" is not a valid size; write bytes, or a number with a unit such as 512Mi or 2MB\n"
		     "a.yaml:6:11: f.op: parameter \"duration\": \"3 days\" is not a valid duration; write nanoseconds, or a number with a unit such as 10ms, 2s or 30hz\n"
		     "a.yaml:7:7: f.op: parameter \"path\": a map is not a valid path\n"
		     "a.yaml:8:11: f.op: parameter \"resource\": \"pool\" is not a valid reference to a resource; write $NAME\n"
		     "a.yaml:9:7: f.op: parameter \"i64s\": \"3\" is not a valid list of integers; write [1, 2]\n"
		     "a.yaml:10:8: f.op: parameter \"f64s\": \"a\" is not a valid number; write one such as 0.5\n"
		     "a.yaml:11:11: f.op: parameter \"strings\": a list is not a valid list of strings; write [a, b]\n"
		     "a.yaml:12:12: f.op: parameter \"condition\": there is no condition \"x\"\n"
		     "a.yaml:13:1: f.op: unknown parameter \"i64\"; did you mean \"i64s\"?\n"
		     "a.yaml:14:1: f.op: unknown parameter \"zzzzzz\"; its parameters: b, i, f, s, optional, size, duration, path, resource, i64s, f64s, strings, condition\n"),
		-EINVAL);
	cr_expect_eq(
		fill("s: $pool\npath: $camera\noptional: $none\n", FRAG_NO_ARGS, &s,
		     "a.yaml:1:4: f.op: parameter \"s\": $pool is a resource or condition, and the parameter takes none; write \"${pool}\" for an argument, or quotes around a text that begins with $\n"
		     "a.yaml:2:7: f.op: parameter \"path\": $camera is a resource or condition, and the parameter takes none; write \"${camera}\" for an argument, or quotes around a text that begins with $\n"
		     "a.yaml:3:11: f.op: parameter \"optional\": $none names nothing; write \"${none}\" for an argument, or quotes around a text that begins with $\n"),
		-EINVAL);
	cr_expect_eq(
		fill("i: -11\nf: 1.5\nduration: 3s\nsize: 99999999999999999999\ns:\n"
		     "resource: $pol\n",
		     FRAG_NO_ARGS, &s,
		     "a.yaml:1:4: f.op: parameter \"i\": -11 is out of range; it must be at least -10\n"
		     "a.yaml:2:4: f.op: parameter \"f\": 1.5 is out of range; it must be at most 1\n"
		     "a.yaml:3:11: f.op: parameter \"duration\": 3s is out of range; it must be from 1 ns to 2.0 s\n"
		     "a.yaml:4:7: f.op: parameter \"size\": \"99999999999999999999\" is too large for 64 bits\n"
		     "a.yaml:5:1: f.op: parameter \"s\" has no value\n"
		     "a.yaml:6:11: f.op: parameter \"resource\": there is no resource \"pol\"; did you mean \"pool\"?\n"),
		-EINVAL);
}

Test(params, a_frequency_is_that_of_a_period)
{
	struct all s = {0};

	cr_expect_eq(
		fill("duration: 0hz\n", FRAG_NO_ARGS, &s,
		     "a.yaml:1:11: f.op: parameter \"duration\": \"0hz\" is no frequency of a period; write one above 0 and up to 1000000000hz\n"),
		-EINVAL);
}

Test(params, required_ones_must_be_set)
{
	static const struct frag_param needed[] = {
		FRAG_PARAM_PATH(struct all, path, NULL, .flags = FRAG_PARAM_REQUIRED),
	};
	static const struct fragi_param_table needs = {needed, 1, sizeof(needed[0])};
	struct fragi_arena arena = {0};
	struct fragi_diag diag = {0};
	struct fragi_node place = {.file = "b.yaml", .line = 4, .column = 2};
	struct fragi_param_context context = {
		.arena = &arena, .diag = &diag, .subject = "f.op", .place = &place};
	struct all s = {0};

	cr_expect_eq(fragi_params_fill(&needs, NULL, 0, &s, &context), -EINVAL);
	expect_errors(&diag,
		      "b.yaml:4:2: f.op: parameter \"path\" (path) is required and not set\n");
	fragi_diag_fini(&diag);
	fragi_arena_fini(&arena);
}

Test(params, entries_of_other_sizes)
{
	struct wide {
		struct frag_param now;
		uint64_t later;
	} wide[2] = {{FRAG_PARAM_I64(struct all, i, 1), 99},
		     {FRAG_PARAM_I64(struct all, i, 2), 99}};
	struct narrow {
		const char *name;
		enum frag_param_kind kind;
		uint32_t offset;
		int64_t def_int;
	} narrow[2] = {{"a", FRAG_PARAM_KIND_I64, 0, 1}, {"b", FRAG_PARAM_KIND_I64, 8, 2}};
	struct fragi_param_table newer = {&wide[0].now, 2, sizeof(wide[0])};
	struct fragi_param_table older = {(const struct frag_param *)(const void *)narrow, 2,
					  sizeof(narrow[0])};

	cr_expect_eq(fragi_param_at(&newer, 1).def_int, 2);
	cr_expect_str_eq(fragi_param_at(&older, 1).name, "b");
	cr_expect_eq(fragi_param_at(&older, 1).offset, 8);
	cr_expect_null(fragi_param_at(&older, 1).headline);
	cr_expect_eq(fragi_param_at(&older, 1).flags, 0);
}

static void wrong_table(const struct frag_param *items, uint32_t count, uint32_t size,
			size_t state_size, const char *sentence)
{
	struct fragi_param_table wrong = {items, count, size};
	struct frag_err err = FRAG_ERR_INIT;

	cr_expect_eq(fragi_params_check(&wrong, state_size, &err), -EINVAL);
	cr_expect_str_eq(err.text, sentence);
}

Test(params, wrong_tables)
{
	struct frag_param two[2] = {FRAG_PARAM_I64(struct all, i, 1),
				    FRAG_PARAM_I64(struct all, i, 2)};
	struct frag_param one = FRAG_PARAM_I64(struct all, i, 1);

	cr_expect_eq(fragi_params_check(&table, sizeof(struct all), NULL), 0);
	wrong_table(two, 2, sizeof(two[0]), sizeof(struct all), "two parameters are called \"i\"");
	wrong_table(two, 2, 4, sizeof(struct all),
		    "parameters of 4 bytes each are not valid; set the table with FRAG_PARAMS");
	wrong_table(NULL, 2, sizeof(two[0]), sizeof(struct all),
		    "2 parameters in an invalid table");
	one.name = "a.b";
	wrong_table(&one, 1, sizeof(one), sizeof(struct all),
		    "\"a.b\" is not a valid name of a parameter");
	one.name = NULL;
	wrong_table(&one, 1, sizeof(one), sizeof(struct all),
		    "\"\" is not a valid name of a parameter");
	one.name = "a";
	one.kind = 99;
	wrong_table(&one, 1, sizeof(one), sizeof(struct all),
		    "parameter \"a\" is of kind 99, which this libfrag does not know");
	one.kind = FRAG_PARAM_KIND_I64;
	one.offset = 4;
	wrong_table(&one, 1, sizeof(one), 64,
		    "parameter \"a\" (i64 at offset 4) does not lie in the state of 64 bytes");
	one.offset = UINT32_MAX - 7;
	wrong_table(
		&one, 1, sizeof(one), 64,
		"parameter \"a\" (i64 at offset 4294967288) does not lie in the state of 64 bytes");
	one.offset = 0;
	one.flags = FRAG_PARAM_REQUIRED | FRAG_PARAM_OPTIONAL;
	wrong_table(&one, 1, sizeof(one), 64, "parameter \"a\" is both required and optional");
	one.flags = 64;
	wrong_table(&one, 1, sizeof(one), 64,
		    "parameter \"a\" has flags 0x40, which this libfrag does not know");
}

Test(params, short_memory_is_an_error)
{
	struct frag_param text = FRAG_PARAM_STRING(struct all, s, "text");
	struct fragi_param_table needs = {&text, 1, sizeof(text)};
	struct fragi_arena arena = {0};
	struct fragi_diag diag = {0};
	struct fragi_param_context context = {.arena = &arena, .diag = &diag, .subject = "f.op"};
	struct all s = {0};

	fragi_alloc_fail_after(0, INT64_MAX);
	cr_expect_eq(fragi_params_fill(&needs, NULL, 0, &s, &context), -ENOMEM);
	fragi_alloc_fail_off();
	fragi_diag_fini(&diag);
	fragi_arena_fini(&arena);
}

struct mapped {
	struct frag_string_map map;
};

static const struct frag_param mapped_params[] = {
	FRAG_PARAM_STRING_MAP(struct mapped, map, "{a: x}")};
static const struct fragi_param_table mapped_table = {mapped_params, 1, sizeof(mapped_params[0])};

Test(params, maps_from_graphs_and_from_c)
{
	struct fragi_arena arena = {0};
	struct fragi_diag diag = {0};
	struct fragi_param_context context = {.arena = &arena, .diag = &diag, .subject = "f.op"};
	struct fragi_spec_setting setting = {.name = "map"}, *from_args;
	struct fragi_node *root;
	struct mapped s = {0};
	size_t count;

	cr_assert_eq(fragi_params_fill(&mapped_table, NULL, 0, &s, &context), 0);
	cr_assert_eq(s.map.count, 1);
	cr_expect_str_eq(s.map.items[0].key, "a");
	cr_expect_str_eq(s.map.items[0].text, "x");

	cr_assert_eq(fragi_yaml_parse(&arena, "a.yaml", "{one: 1, two: [2]}", 18, &diag, &root), 0);
	setting.value = setting.place = root;
	cr_assert_eq(fragi_params_fill(&mapped_table, &setting, 1, &s, &context), -EINVAL);
	cr_assert_eq(diag.count, 1);
	cr_expect_str_eq(
		diag.items[0].text,
		"f.op: parameter \"map\": a list is not a valid map of strings; write {key: text}");
	fragi_diag_fini(&diag);

	cr_assert_eq(fragi_settings_from_args(&arena, FRAG_ARGS({"map", "{one: 1, two: b c}"}),
					      &from_args, &count),
		     0);
	cr_assert_eq(fragi_params_fill(&mapped_table, from_args, count, &s, &context), 0);
	cr_assert_eq(s.map.count, 2);
	cr_expect_str_eq(s.map.items[1].key, "two");
	cr_expect_str_eq(s.map.items[1].text, "b c");

	cr_assert_eq(
		fragi_settings_from_args(&arena, FRAG_ARGS({"map", "[1]"}), &from_args, &count), 0);
	cr_assert_eq(fragi_params_fill(&mapped_table, from_args, count, &s, &context), -EINVAL);
	cr_expect_str_eq(
		diag.items[0].text,
		"f.op: parameter \"map\": \"[1]\" is not a valid map of strings; write {key: text}");
	fragi_diag_fini(&diag);
	fragi_arena_fini(&arena);
}

struct nested {
	const struct frag_tree *tree;
};

static const struct frag_param nested_params[] = {FRAG_PARAM_TREE(struct nested, tree, "[]")};
static const struct fragi_param_table nested_table = {nested_params, 1, sizeof(nested_params[0])};

Test(params, trees_from_graphs_and_from_c)
{
	static const char text[] = "- {name: boxes, color: [1.0, 0]}\n- ~\n";
	struct fragi_arena arena = {0}, of_text = {0};
	struct fragi_diag diag = {0};
	struct fragi_param_context context = {.arena = &arena, .diag = &diag, .subject = "f.op"};
	struct fragi_spec_setting setting = {.name = "tree"}, *from_args;
	struct fragi_node *root;
	struct nested s = {0};
	const struct frag_tree *map;
	size_t count;

	cr_assert_eq(fragi_params_fill(&nested_table, NULL, 0, &s, &context), 0);
	cr_assert(s.tree->kind == FRAG_TREE_LIST && s.tree->count == 0, "the default");

	cr_assert_eq(fragi_yaml_parse(&of_text, "a.yaml", text, strlen(text), &diag, &root), 0);
	setting.value = setting.place = root;
	cr_assert_eq(fragi_params_fill(&nested_table, &setting, 1, &s, &context), 0);
	fragi_arena_fini(&of_text);
	cr_assert(s.tree->kind == FRAG_TREE_LIST && s.tree->count == 2 && s.tree->key == NULL);
	map = &s.tree->items[0];
	cr_assert(map->kind == FRAG_TREE_MAP && map->count == 2 && map->text == NULL);
	cr_expect_str_eq(map->items[0].key, "name");
	cr_expect_str_eq(map->items[0].text, "boxes");
	cr_expect_str_eq(map->items[1].key, "color");
	cr_assert(map->items[1].kind == FRAG_TREE_LIST && map->items[1].count == 2);
	cr_expect_str_eq(map->items[1].items[0].text, "1.0");
	cr_expect(map->items[1].items[0].line == 1 && map->items[1].items[0].column == 25);
	cr_expect(s.tree->items[1].kind == FRAG_TREE_TEXT && s.tree->items[1].line == 2);
	cr_expect_str_eq(s.tree->items[1].text, "");

	cr_assert_eq(fragi_settings_from_args(&arena, FRAG_ARGS({"tree", "{a: {b: [c]}}"}),
					      &from_args, &count),
		     0);
	cr_assert_eq(fragi_params_fill(&nested_table, from_args, count, &s, &context), 0);
	cr_assert(s.tree->kind == FRAG_TREE_MAP && s.tree->items[0].kind == FRAG_TREE_MAP);
	cr_expect_str_eq(s.tree->items[0].items[0].items[0].text, "c");

	cr_assert_eq(fragi_settings_from_args(&arena, FRAG_ARGS({"tree", "a"}), &from_args, &count),
		     0);
	cr_assert_eq(fragi_params_fill(&nested_table, from_args, count, &s, &context), -EINVAL);
	cr_expect_str_eq(
		diag.items[0].text,
		"f.op: parameter \"tree\": \"a\" is not a valid list or map; write [a, b] or {key: value}");
	fragi_diag_fini(&diag);
	fragi_arena_fini(&arena);
}
