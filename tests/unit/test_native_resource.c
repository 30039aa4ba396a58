// SPDX-License-Identifier: Apache-2.0
#include <base/alloc.h>
#include <graph/compose.h>

#include "graph_texts.h"
#include "rig_ops.h"

/* Resources of a plugin: their life, and how operators reach them. */

/* What was called, in order: a letter for each callback, then the mark of the resource. */
static char lived[256];

static int live(char c, const char *mark)
{
	size_t length = strlen(lived);

	snprintf(lived + length, sizeof(lived) - length, "%c%s ", c, mark);
	return 0;
}

struct store {
	const char *mark;
	const char *fails_in;
	int64_t level;
	struct frag_resource *below;
};
static const struct frag_param store_params[] = {
	FRAG_PARAM_STRING(struct store, mark, "?"),
	FRAG_PARAM_STRING(struct store, fails_in, ""),
	FRAG_PARAM_I64(struct store, level, 1, .min = 0, .max = 9),
	FRAG_PARAM_RESOURCE(struct store, below, NULL, .flags = FRAG_PARAM_OPTIONAL),
};

/* fails_in "setup": with a sentence; "setup!": without; "setup+": a positive number */
static int live_or_fail(const struct store *s, const char *callback, struct frag_err *err)
{
	live(callback[0], s->mark);
	if (strncmp(s->fails_in, callback, strlen(callback)) != 0)
		return 0;
	switch (s->fails_in[strlen(callback)]) {
	case '\0':
		return frag_err_set(err, -ENODEV, "there is no device; plug one in");
	case '!':
		return -EIO;
	default:
		return 1;
	}
}

static int store_setup(void *state, struct frag_resource *resource, struct frag_err *err)
{
	const struct store *s = state;

	cr_expect_eq(frag_resource_state(resource, "store"), state);
	cr_expect_null(frag_resource_state(resource, "other"));
	cr_expect_eq((uintptr_t)state % 64, 0);
	return live_or_fail(s, "setup", err);
}

static int store_initialize(void *state, struct frag_resource *resource, struct frag_err *err)
{
	return live_or_fail(state, "initialize", err);
}

static void store_fini(void *state)
{
	const struct store *s = state, *below = frag_resource_state(s->below, "store");

	live('f', s->mark);
	if (below != NULL) /* what a parameter names lives longer */
		cr_expect_eq(below->level, 1);
}

static int store_alloc(void *state, size_t size, void **out_memory)
{
	struct store *s = state;

	if (s->level == 0)
		return -ENOMEM;
	*out_memory = aligned_alloc(64, (size + 63) / 64 * 64);
	s->level--;
	return 0;
}

static void store_free(void *state, void *memory)
{
	((struct store *)state)->level++;
	free(memory);
}

static const struct frag_resource_type store_type = {
	FRAG_RESOURCE_TYPE_INIT,
	.name = "store",
	.headline = "Notes its callbacks",
	.state_size = sizeof(struct store),
	FRAG_PARAMS(store_params),
	.setup = store_setup,
	.initialize = store_initialize,
	.fini = store_fini,
	.alloc = store_alloc,
	.free = store_free,
};
/* no state, no callbacks, no allocator */
static const struct frag_resource_type mark_type = {FRAG_RESOURCE_TYPE_INIT, .name = "mark"};

/* Reaches a resource in each way. */
struct user {
	struct frag_resource *store;
	const char *by_position;
	int64_t ticks;
};
static const struct frag_param user_params[] = {
	FRAG_PARAM_RESOURCE(struct user, store, NULL, .flags = FRAG_PARAM_OPTIONAL),
	FRAG_PARAM_STRING(struct user, by_position, ""),
};

static int user_setup(void *state, struct frag_op *op)
{
	const struct user *s = state;
	char names[64] = "";
	struct frag_resource *given;

	for (uint32_t i = 0; (given = frag_op_resource_at(op, i)) != NULL; i++)
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s",
			 i > 0 ? " " : "", frag_resource_name(given));
	cr_expect_str_eq(names, s->by_position);
	return live('S', frag_op_name(op));
}

static int user_initialize(void *state, struct frag_op *op)
{
	return live('I', frag_op_name(op));
}

static int user_compute(void *state, struct frag_tick *tick)
{
	struct user *s = state;
	struct store *store = frag_resource_state(s->store, "store");

	if (store != NULL)
		store->level++;
	return FRAG_DONE;
}

static void user_fini(void *state, struct frag_op *op)
{
	live('F', frag_op_name(op));
}

TEST_OP(user, .state_size = sizeof(struct user), FRAG_PARAMS(user_params), .setup = user_setup,
	.initialize = user_initialize, .fini = user_fini);

static int compose_users(struct frag_fragment *fragment)
{
	struct frag_resource *a =
		frag_make_resource(fragment, "a", "store", FRAG_ARGS({"mark", "a"}));
	struct frag_resource *b = frag_make_resource_of(fragment, "b", &store_type,
							FRAG_ARGS({"mark", "b"}, {"below", "$a"}));
	struct frag_op *op = frag_make_operator(fragment, "u", "user",
						FRAG_ARGS({"store", "$b"}, {"by_position", "b a"}));

	cr_expect_eq(frag_add_resource(op, b), 0);
	cr_expect_eq(frag_add_resource(op, a), 0);
	cr_expect_eq(frag_add_resource(NULL, a), -EINVAL);
	return frag_add_operator(fragment, op);
}

static int compose_null(struct frag_fragment *fragment)
{
	struct frag_op *op = frag_make_operator(fragment, "u", "user", FRAG_NO_ARGS);

	cr_expect_eq(frag_add_resource(op, NULL), -EINVAL);
	return frag_add_operator(fragment, op);
}

static const struct frag_op_type *const ops[] = {&user_type};
static const struct frag_resource_type *const resources[] = {&store_type, &mark_type};
static const struct frag_composer composers[] = {{"users", NULL, compose_users},
						 {"null", NULL, compose_null}};
static const struct frag_plugin plugin = {TEST_PLUGIN_INIT, .name = "stores", FRAG_OPS(ops),
					  FRAG_RESOURCES(resources), FRAG_COMPOSERS(composers)};

/* Prepares a graph that is refused, and compares why. */
static void refused(const char *yaml, const char *lines)
{
	struct rig rig;

	lived[0] = '\0';
	cr_expect_lt(rig_prepare(&rig, &plugin, yaml), 0);
	expect_errors(&rig.diag, lines);
	rig_end(&rig);
}

#define HEAD "frag: 1\napplication: app\n"
#define OP "operators: {u: {type: user}}\n"

Test(native_resource, lives_as_operators_and_conditions_do)
{
	struct rig rig;

	rig_run(&rig, &plugin,
		HEAD
		"resources:\n"
		"  a: {type: store, mark: a}\n"
		"  b: {type: store, mark: b, below: $a}\n"
		"operators:\n"
		"  u: {type: user, resources: [$b, $a], parameters: {store: $b, by_position: b a}}\n"
		"  v: {type: user}\n");
	rig_end(&rig);
	cr_expect_str_eq(lived, "sa sb Su Sv ia ib Iu Iv Fv Fu fb fa ");
}

Test(native_resource, a_composer_makes_and_gives_them)
{
	struct rig rig;

	rig_run(&rig, &plugin, HEAD "compose: users\n");
	rig_end(&rig);
	cr_expect_str_eq(lived, "sa sb Su ia ib Iu Fu fb fa ");
	refused(HEAD "compose: \"null\"\n", "app.u: frag_add_resource: the resource is NULL\n");
}

Test(native_resource, failures_refuse_the_application)
{
	refused(HEAD "resources:\n"
		     "  a: {type: store, mark: a, fails_in: setup}\n"
		     "  b: {type: store, mark: b, fails_in: setup!}\n"
		     "  c: {type: store, mark: c, fails_in: setup+}\n"
		     "  d: {type: store, mark: d}\n" OP,
		"test.yaml:4:3: app.a: there is no device; plug one in\n"
		"test.yaml:5:3: app.b: Input/output error\n"
		"test.yaml:6:3: app.c: setup returned 1; return 0 or a negative errno\n");
	cr_expect_str_eq(lived, "sa sb sc sd Su Fu fd ", "fini only where setup succeeded");
	refused(HEAD "resources:\n"
		     "  a: {type: store, mark: a}\n"
		     "  b: {type: store, mark: b, fails_in: initialize}\n"
		     "  c: {type: store, mark: c}\n" OP,
		"app.b: there is no device; plug one in\n");
	cr_expect_str_eq(lived, "sa sb sc Su ia ib Fu fc fb fa ", "the first failure ends it");
	refused(HEAD "resources: {a: {type: store, fails_in: initialize!}}\n" OP,
		"app.a: initialize returned -5 (Input/output error)\n");
	refused(HEAD "resources: {a: {type: store, fails_in: initialize+}}\n" OP,
		"app.a: initialize returned 1; return 0 or a negative errno\n");
}

Test(native_resource, wrong_parameters_and_references_are_all_reported)
{
	refused(HEAD "resources:\n"
		     "  a: {type: stor}\n"
		     "  b: {type: store, levl: 2}\n"
		     "  c: {type: store, level: 12}\n"
		     "  d: {type: store, below: $e}\n"
		     "  e: {type: store}\n"
		     "  f: {type: mark, size: 2}\n"
		     "operators:\n"
		     "  u: {type: user, resources: [$a, $ee, e]}\n"
		     "  v: {type: user, resources: $e}\n"
		     "  w: {type: user, parameters: {store: $a}}\n",
		"test.yaml:11:40: app.u: \"e\" is no reference to a resource; write $e\n"
		"test.yaml:12:30: app.v: resources is a single value; it must be a list ([a, b])\n");
	refused(HEAD "resources:\n"
		     "  a: {type: stor}\n"
		     "  b: {type: store, levl: 2}\n"
		     "  c: {type: store, level: 12}\n"
		     "  d: {type: store, below: $e}\n"
		     "  e: {type: store}\n"
		     "  f: {type: mark, size: 2}\n"
		     "operators:\n"
		     "  u: {type: user, resources: [$a, $ee]}\n"
		     "  w: {type: user, parameters: {store: $a}}\n",
		"test.yaml:4:3: app.a: unknown resource type \"stor\"; did you mean \"store\"?\n"
		"test.yaml:5:20: app.b: unknown parameter \"levl\"; did you mean \"level\"?\n"
		"test.yaml:6:27: app.c: parameter \"level\": 12 is out of range; it must be from 0 to 9\n"
		"test.yaml:7:27: app.d: parameter \"below\": there is no resource \"e\"\n"
		"test.yaml:9:19: app.f: unknown parameter \"size\"; it has no parameters\n"
		"test.yaml:11:35: app.u: there is no resource \"ee\"; resources: e\n");
}

Test(native_resource, a_tensor_keeps_its_allocator)
{
	struct fragi_diag diag = {0};
	struct frag_fragment *fragment;
	struct frag_resource *a, *b;
	struct frag_tensor *tensor, *more;
	const int64_t shape = 100;
	const struct frag_dtype u8 = {FRAG_DTYPE_UINT, 8, 1};
	char mark[] = "b";

	lived[0] = '\0';
	cr_assert_eq(fragi_fragment_begin("f", NULL, NULL, NULL, &diag, &fragment), 0);
	a = frag_make_resource_of(fragment, "a", &store_type, FRAG_ARGS({"mark", "a"}));
	b = frag_make_resource_of(fragment, "b", &store_type,
				  FRAG_ARGS({"mark", mark}, {"below", "$a"}));
	mark[0] = 'x'; /* texts were copied */
	cr_assert_eq(fragi_fragment_complete(fragment), 0);
	cr_assert_not_null(a);
	cr_assert_eq(frag_tensor_create(b, u8, 1, &shape, &tensor), 0);
	cr_expect_eq(frag_tensor_create(b, u8, 1, &shape, &more), -ENOMEM);
	cr_expect_eq(frag_resource_blocks_free(b), SIZE_MAX);
	fragi_fragment_destroy(fragment);
	cr_expect_str_eq(lived, "sa sb ", "the tensor still needs both");
	memset(frag_tensor_writable(tensor), 1, 100);
	frag_tensor_unref(tensor);
	cr_expect_str_eq(lived, "sa sb fb fa ");
	fragi_diag_fini(&diag);
}

Test(native_resource, one_that_is_no_allocator_gives_no_memory)
{
	struct fragi_diag diag = {0};
	struct frag_fragment *fragment;
	struct frag_resource *mark;
	void *memory;

	cr_assert_eq(fragi_fragment_begin("f", NULL, NULL, NULL, &diag, &fragment), 0);
	mark = frag_make_resource_of(fragment, "m", &mark_type, FRAG_NO_ARGS);
	cr_assert_not_null(mark);
	cr_expect_eq(frag_alloc(mark, 10, &memory), -EINVAL);
	cr_expect_not_null(frag_resource_state(mark, "mark"));
	cr_expect_null(frag_resource_state(NULL, "mark"));
	fragi_fragment_destroy(fragment);
	fragi_diag_fini(&diag);
}

/* A table that is wrong is refused when its library is loaded, or the resource made. */
static void refused_table(const struct frag_resource_type *type, const char *sentence)
{
	const struct frag_resource_type *const table[] = {type};
	const struct frag_plugin bad = {.struct_size = sizeof(bad),
					.abi_major = FRAG_ABI_MAJOR,
					.name = "bad",
					FRAG_RESOURCES(table)};
	struct fragi_registry *registry;
	struct frag_err err = FRAG_ERR_INIT;

	cr_assert_eq(fragi_registry_create(&(struct fragi_registry_config){0}, &registry), 0);
	cr_expect_eq(fragi_registry_add(registry, "bad", &bad, &err), -EINVAL);
	cr_expect_str_eq(err.text, sentence);
	err = (struct frag_err)FRAG_ERR_INIT;
	cr_expect_eq(fragi_registry_add(registry, "a name", &bad, &err), -EINVAL);
	cr_expect_str_eq(err.text, "\"a name\" is not a valid name of a library");
	fragi_registry_destroy(registry);
}

Test(native_resource, wrong_tables_are_refused)
{
	struct frag_resource_type type = store_type;
	struct fragi_diag diag = {0};
	struct frag_fragment *fragment;

	refused_table(NULL, "library bad: the table of a resource type is NULL");
	type.struct_size = 0;
	refused_table(
		&type,
		"library bad: a resource type of 0 bytes is not valid; begin its table with FRAG_RESOURCE_TYPE_INIT");
	type = store_type;
	type.name = "a b";
	refused_table(&type, "library bad: \"a b\" is not a valid name of a resource type");
	type = store_type;
	type.free = NULL;
	refused_table(
		&type,
		"library bad: resource type \"store\" has alloc without free; an allocator has both");
	type = store_type;
	type.state_size = 8;
	refused_table(
		&type,
		"library bad: resource type \"store\": parameter \"fails_in\" (string at offset 8) does not lie in the state of 8 bytes");
	cr_assert_eq(fragi_fragment_begin("f", NULL, NULL, NULL, &diag, &fragment), 0);
	cr_expect_null(frag_make_resource_of(fragment, "r", &type, FRAG_NO_ARGS));
	cr_expect_null(frag_make_resource_of(fragment, "r", NULL, FRAG_NO_ARGS));
	cr_expect_null(frag_make_resource(fragment, NULL, "mark", FRAG_NO_ARGS));
	cr_expect_eq(diag.count, 3);
	fragi_fragment_destroy(fragment);
	fragi_diag_fini(&diag);
}

/* An older plugin, whose table ends before the callbacks of services. */
Test(native_resource, a_shorter_table_is_read_as_far_as_it_goes)
{
	struct frag_resource_type type = store_type;
	struct fragi_diag diag = {0};
	struct frag_fragment *fragment;
	struct frag_resource *resource;

	type.struct_size = offsetof(struct frag_resource_type, driver_start);
	memset((char *)&type + type.struct_size, 0xFF, sizeof(type) - type.struct_size);
	cr_assert_eq(fragi_fragment_begin("f", NULL, NULL, NULL, &diag, &fragment), 0);
	resource = frag_make_resource_of(fragment, "r", &type, FRAG_NO_ARGS);
	cr_assert_not_null(resource);
	cr_expect_null(resource->type.driver_start);
	fragi_fragment_destroy(fragment);
	fragi_diag_fini(&diag);
}

Test(native_resource, every_failed_allocation_is_survived)
{
	struct fragi_diag diag = {0};
	struct frag_fragment *fragment;
	struct frag_resource *b;
	bool done = false;

	for (int n = 0; !done; n++) {
		cr_assert_lt(n, 200);
		cr_assert_eq(fragi_fragment_begin("f", NULL, NULL, NULL, &diag, &fragment), 0);
		fragi_alloc_fail_after(n, 1);
		frag_make_resource_of(fragment, "a", &store_type, FRAG_NO_ARGS);
		b = frag_make_resource_of(fragment, "b", &store_type, FRAG_ARGS({"below", "$a"}));
		done = fragi_alloc_fail_off() == 0 && b != NULL;
		fragi_fragment_destroy(fragment);
	}
	fragi_diag_fini(&diag);
}
