// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/alloc.h>
#include <base/arena.h>
#include <frag/frag.h>
#include <type/library.h>
#include <type/registry.h>

/* What the author of a plugin is told about tables that cannot be. */

static int compute(void *state, struct frag_tick *tick)
{
	return FRAG_DONE;
}

static int compose(struct frag_fragment *fragment)
{
	return 0;
}

static void refused(const struct frag_plugin *plugin, int code, const char *sentence)
{
	struct fragi_library library = {.file = "libmine.so"};
	struct frag_err err = FRAG_ERR_INIT;
	struct fragi_arena arena = {0};

	cr_expect_eq(fragi_library_read(&arena, &library, plugin, &err), code, "%s", sentence);
	cr_expect_str_eq(err.text, sentence);
	fragi_arena_fini(&arena);
}

static const struct frag_plugin sound = {
	.struct_size = sizeof(struct frag_plugin), .abi_major = FRAG_ABI_MAJOR, .name = "mine"};

Test(plugin_tables, of_the_plugin)
{
	struct frag_plugin p = sound;

	refused(&p, 0, "");
	p.struct_size = offsetof(struct frag_plugin, name) - 1;
	refused(&p, -EINVAL,
		"library libmine.so: its frag_plugin_v1 is not filled in; define it with FRAG_PLUGIN(...)");
	p = sound;
	p.name = NULL;
	refused(&p, -EINVAL, "library libmine.so: \"\" is not a valid name of a plugin");
	p.name = "my plugin";
	refused(&p, -EINVAL, "library libmine.so: \"my plugin\" is not a valid name of a plugin");
	p = sound;
	p.op_count = 3;
	refused(&p, -EINVAL, "library libmine.so: it lists 3 operator types in an invalid table");
	p = sound;
	p.type_count = 2;
	refused(&p, -EINVAL, "library libmine.so: it lists 2 types in an invalid table");
	p.type_count = 5000;
	refused(&p, -EINVAL, "library libmine.so: it lists 5000 types in an invalid table");
}

Test(plugin_tables, of_composers)
{
	struct frag_composer composers[] = {{.name = "line", .compose = compose}};
	struct frag_plugin p = sound;

	p.composers = composers;
	p.composer_count = 1;
	p.composer_size = sizeof(composers[0]);
	refused(&p, 0, "");
	composers[0].compose = NULL;
	refused(&p, -EINVAL, "library libmine.so: composer \"line\" has no function");
	composers[0].name = NULL;
	refused(&p, -EINVAL, "library libmine.so: \"\" is not a valid name of a composer");
	composers[0].name = "a line";
	refused(&p, -EINVAL, "library libmine.so: \"a line\" is not a valid name of a composer");
	p.composer_size = 8;
	refused(&p, -EINVAL,
		"library libmine.so: 1 composers in an invalid table; set it with FRAG_COMPOSERS");
	p.composer_size = sizeof(composers[0]) + 4;
	refused(&p, -EINVAL,
		"library libmine.so: 1 composers in an invalid table; set it with FRAG_COMPOSERS");
	p.composer_size = sizeof(composers[0]);
	p.composer_count = 5000;
	refused(&p, -EINVAL,
		"library libmine.so: 5000 composers in an invalid table; set it with FRAG_COMPOSERS");
}

/* A plugin with this type alone, or with it twice. */
static void type_refused(const struct frag_op_type *type, const char *sentence)
{
	const struct frag_op_type *const ops[] = {type};
	struct frag_plugin p = sound;

	p.ops = ops;
	p.op_count = 1;
	refused(&p, -EINVAL, sentence);
}

static const struct frag_op_type sound_type = {FRAG_OP_TYPE_INIT, .name = "op", .compute = compute};

Test(plugin_tables, of_operator_types)
{
	const struct frag_op_type *const twice[] = {&sound_type, &sound_type};
	struct frag_op_type type = sound_type;
	struct frag_plugin p = sound;

	type_refused(NULL, "library libmine.so: the table of an operator type is NULL");
	type.name = NULL;
	type_refused(&type, "library libmine.so: \"\" is not a valid name of an operator type");
	type.name = "no.name";
	type_refused(&type,
		     "library libmine.so: \"no.name\" is not a valid name of an operator type");
	type = sound_type;
	type.compute = NULL;
	type_refused(&type, "library libmine.so: operator type \"op\" has no compute");
	type = sound_type;
	type.param_count = 2;
	type_refused(&type,
		     "library libmine.so: operator type \"op\": 2 parameters in an invalid table");
	p.ops = twice;
	p.op_count = 2;
	refused(&p, -EINVAL, "library libmine.so: it lists operator type \"op\" twice");
}

static enum frag_ready check(void *state, int64_t now_ns, int64_t *out_until_ns)
{
	return FRAG_READY;
}

static void condition_refused(const struct frag_condition_type *type, const char *sentence)
{
	const struct frag_condition_type *const conditions[] = {type};
	struct frag_plugin p = sound;

	p.conditions = conditions;
	p.condition_count = 1;
	refused(&p, -EINVAL, sentence);
}

static const struct frag_condition_type sound_condition = {FRAG_CONDITION_TYPE_INIT, .name = "c",
							   .check = check};

Test(plugin_tables, of_condition_types)
{
	const struct frag_condition_type *const twice[] = {&sound_condition, &sound_condition};
	struct frag_condition_type type = sound_condition;
	const struct frag_param params[] = {{.name = "p", .kind = FRAG_PARAM_KIND_I64}};
	struct frag_plugin p = sound;

	condition_refused(NULL, "library libmine.so: the table of a condition type is NULL");
	type.struct_size = 8;
	condition_refused(
		&type,
		"library libmine.so: a condition type of 8 bytes is not valid; begin its table with FRAG_CONDITION_TYPE_INIT");
	type = sound_condition;
	type.name = "no name";
	condition_refused(
		&type, "library libmine.so: \"no name\" is not a valid name of a condition type");
	type = sound_condition;
	type.check = NULL;
	condition_refused(&type, "library libmine.so: condition type \"c\" has no check");
	type = sound_condition;
	type.flags = 0x80;
	condition_refused(
		&type,
		"library libmine.so: condition type \"c\" has flags 0x80, which this libfrag does not know");
	type = sound_condition;
	type.params = params;
	type.param_count = 1;
	type.param_size = sizeof(params[0]);
	condition_refused(
		&type,
		"library libmine.so: condition type \"c\": parameter \"p\" (i64 at offset 0) does not lie in the state of 0 bytes");
	p.conditions = twice;
	p.condition_count = 2;
	refused(&p, -EINVAL, "library libmine.so: it lists condition type \"c\" twice");
	p.condition_count = 5000;
	refused(&p, -EINVAL,
		"library libmine.so: it lists 5000 condition types in an invalid table");
}

/* Plugins of before have tables of shorter ports; declarations have any length up to the most. */
Test(plugin_tables, of_ports_with_and_without_declarations)
{
	static const struct {
		const char *name;
		enum frag_dir dir;
		const char *type, *headline;
		uint32_t flags, capacity;
		enum frag_policy policy;
		uint32_t min_size;
	} older[] = {{.name = "in", .dir = FRAG_IN, .min_size = 3},
		     {.name = "out", .dir = FRAG_OUT, .min_size = 5}};
	static char longest[FRAG_PORT_TENSORS_MAX + 1] = "a: ";
	struct frag_port ports[] = {
		{.name = "in", .dir = FRAG_IN, .tensors = longest},
		{.name = "out", .dir = FRAG_OUT, .tensors = FRAG_BOXES "; " FRAG_MASK},
	};
	struct frag_op_type type = {FRAG_OP_TYPE_INIT,  .name = "op",
				    .compute = compute, .ports = (const struct frag_port *)older,
				    .port_count = 2,    .port_size = sizeof(older[0])};
	const struct frag_op_type *copy;
	struct fragi_arena arena = {0};
	struct frag_err err = FRAG_ERR_INIT;

	cr_assert_eq(fragi_op_type_copy(&arena, &type, &copy, &err), 0, "%s", err.text);
	for (int i = 0; i < 2; i++) {
		cr_expect_str_eq(copy->ports[i].name, older[i].name);
		cr_expect_eq(copy->ports[i].min_size, older[i].min_size);
		cr_expect_null(copy->ports[i].tensors);
	}
	memset(longest + 3, '1', FRAG_PORT_TENSORS_MAX - 3);
	type.ports = ports;
	type.port_size = sizeof(ports[0]);
	cr_assert_eq(fragi_op_type_copy(&arena, &type, &copy, &err), 0, "%s", err.text);
	cr_expect_str_eq(copy->ports[0].tensors, longest);
	cr_expect_str_eq(copy->ports[1].tensors, FRAG_BOXES "; " FRAG_MASK);
	fragi_arena_fini(&arena);
}

/* Plugins of later have longer ports and parameters; copies have those of this libfrag. */
Test(plugin_tables, of_longer_ports_and_parameters)
{
	static const struct {
		struct frag_port port;
		uint64_t later;
	} ports[] = {{{.name = "in", .dir = FRAG_IN}, 7}, {{.name = "out", .dir = FRAG_OUT}, 8}};
	static const struct {
		struct frag_param param;
		uint64_t later;
	} params[] = {{{.name = "a", .kind = FRAG_PARAM_KIND_I64}, 5},
		      {{.name = "b", .kind = FRAG_PARAM_KIND_I64, .offset = 8}, 6}};
	struct frag_op_type type = {FRAG_OP_TYPE_INIT,
				    .name = "op",
				    .compute = compute,
				    .state_size = 16,
				    .ports = &ports[0].port,
				    .port_count = 2,
				    .port_size = sizeof(ports[0]),
				    .params = &params[0].param,
				    .param_count = 2,
				    .param_size = sizeof(params[0])};
	struct frag_condition_type condition = sound_condition;
	const struct frag_condition_type *of_condition;
	const struct frag_op_type *copy;
	struct fragi_arena arena = {0};
	struct frag_err err = FRAG_ERR_INIT;

	cr_assert_eq(fragi_op_type_copy(&arena, &type, &copy, &err), 0, "%s", err.text);
	cr_expect_eq(copy->port_size, sizeof(struct frag_port));
	cr_expect_eq(copy->param_size, sizeof(struct frag_param));
	for (int i = 0; i < 2; i++) {
		cr_expect_str_eq(copy->ports[i].name, ports[i].port.name);
		cr_expect_str_eq(copy->params[i].name, params[i].param.name);
	}
	condition.state_size = 16;
	condition.params = &params[0].param;
	condition.param_count = 2;
	condition.param_size = sizeof(params[0]);
	cr_assert_eq(fragi_condition_type_copy(&arena, &condition, &of_condition, &err), 0, "%s",
		     err.text);
	cr_expect_eq(of_condition->param_size, sizeof(struct frag_param));
	cr_expect_str_eq(of_condition->params[1].name, "b");
	fragi_arena_fini(&arena);
}

/* What lies beyond the size that a plugin was compiled with is not its table's. */
Test(plugin_tables, of_older_conditions)
{
	struct fragi_library library = {.file = "libmine.so"};
	struct frag_err err = FRAG_ERR_INIT;
	struct fragi_arena arena = {0};
	struct frag_condition_type type = sound_condition;
	const struct frag_condition_type *const types[] = {&type};
	struct frag_plugin p = sound;

	p.struct_size = offsetof(struct frag_plugin, conditions);
	p.conditions = (const struct frag_condition_type *const *)(uintptr_t)8;
	p.condition_count = 3;
	cr_expect_eq(fragi_library_read(&arena, &library, &p, &err), 0);
	cr_expect_eq(library.condition_count, 0);
	p = sound;
	p.conditions = types;
	p.condition_count = 1;
	type.struct_size = offsetof(struct frag_condition_type, ticked);
	type.ticked = (void (*)(void *, int64_t))(uintptr_t)8;
	type.fini = (void (*)(void *))(uintptr_t)8;
	cr_assert_eq(fragi_library_read(&arena, &library, &p, &err), 0);
	cr_assert_eq(library.condition_count, 1);
	cr_expect_eq(library.conditions[0]->check, check);
	cr_expect_null(library.conditions[0]->ticked);
	cr_expect_null(library.conditions[0]->fini);
	fragi_arena_fini(&arena);
}

#define DECLARE                                                                                    \
	"write \"KIND: LAYOUT | CONVERTER\" for each kind once, separated by \";\", in 255 bytes at most"

Test(plugin_tables, of_ports)
{
	static char long_tensors[FRAG_PORT_TENSORS_MAX + 2] = "a: ";
	static const struct {
		struct frag_port port;
		const char *sentence;
	} cases[] = {
		{{.dir = FRAG_IN}, "\"\" is not a valid name of a port"},
		{{.name = "9", .dir = FRAG_IN}, "\"9\" is not a valid name of a port"},
		{{.name = "p"}, "port \"p\" is neither FRAG_IN nor FRAG_OUT"},
		{{.name = "p", .dir = FRAG_OUT, .flags = 0x80},
		 "port \"p\" has flags 0x80, which this libfrag does not know"},
		{{.name = "p", .dir = FRAG_OUT, .flags = FRAG_PORT_MULTI},
		 "port \"p\" is an output and so cannot be FRAG_PORT_MULTI"},
		{{.name = "p", .dir = FRAG_IN, .capacity = 65537},
		 "port \"p\" has capacity 65537; give 65536 at most"},
		{{.name = "p", .dir = FRAG_IN, .policy = (enum frag_policy)9},
		 "port \"p\" has policy 9, which this libfrag does not know"},
		{{.name = "first", .dir = FRAG_OUT}, "two ports are called \"first\""},
		{{.name = "out", .dir = FRAG_OUT, .tensors = ""},
		 "the tensors of port \"out\" are declared as \"\"; " DECLARE},
		{{.name = "out", .dir = FRAG_OUT, .tensors = "boxes"},
		 "the tensors of port \"out\" are declared as \"boxes\"; " DECLARE},
		{{.name = "out", .dir = FRAG_OUT, .tensors = "boxes: ; mask: 8"},
		 "the tensors of port \"out\" are declared as \"boxes: ; mask: 8\"; " DECLARE},
		{{.name = "out", .dir = FRAG_OUT, .tensors = "a: 1; b: 2; a : 1"},
		 "the tensors of port \"out\" are declared as \"a: 1; b: 2; a : 1\"; " DECLARE},
		{{.name = "out", .dir = FRAG_OUT, .tensors = "a: 1\n"},
		 "the tensors of port \"out\" are declared as \"a: 1 \"; " DECLARE},
		{{.name = "out", .dir = FRAG_OUT, .tensors = long_tensors},
		 "the tensors of port \"out\" are declared as \"a: 11111111111111111111111111111111111111111111111111111111111111111111111111111\"; " DECLARE},
		{{.name = "out", .dir = FRAG_OUT, .tensors = "a: 1 |"},
		 "the tensors of port \"out\" are declared as \"a: 1 |\"; " DECLARE},
		{{.name = "out", .dir = FRAG_OUT, .tensors = "a | b: 1"},
		 "the tensors of port \"out\" are declared as \"a | b: 1\"; " DECLARE},
	};
	struct frag_port ports[] = {{.name = "first", .dir = FRAG_IN}, {0}};
	struct frag_op_type type = {FRAG_OP_TYPE_INIT, .name = "op", .compute = compute,
				    FRAG_PORTS(ports)};
	char sentence[512];

	memset(long_tensors + 3, '1', FRAG_PORT_TENSORS_MAX - 2);
	for (size_t i = 0; i < FRAG_COUNT_OF(cases); i++) {
		ports[1] = cases[i].port;
		snprintf(sentence, sizeof(sentence), "library libmine.so: operator type \"op\": %s",
			 cases[i].sentence);
		type_refused(&type, sentence);
	}
	type.port_size = 8;
	type_refused(
		&type,
		"library libmine.so: operator type \"op\": ports of 8 bytes each are not valid; set the table with FRAG_PORTS");
	type.port_size = sizeof(struct frag_port) + 4;
	snprintf(
		sentence, sizeof(sentence),
		"library libmine.so: operator type \"op\": ports of %zu bytes each are not valid; set the table with FRAG_PORTS",
		sizeof(struct frag_port) + 4);
	type_refused(&type, sentence);
	type.ports = NULL;
	type_refused(&type,
		     "library libmine.so: operator type \"op\": 2 ports in an invalid table");
	type.ports = ports;
	type.port_count = 5000;
	type_refused(&type,
		     "library libmine.so: operator type \"op\": 5000 ports in an invalid table");
}

Test(plugin_tables, that_do_not_fit_into_memory)
{
	static const struct frag_port ports[] = {{.name = "in", .dir = FRAG_IN}};
	static const struct frag_op_type type = {FRAG_OP_TYPE_INIT, .name = "op",
						 .compute = compute, FRAG_PORTS(ports)};
	static const struct frag_op_type *const ops[] = {&type};
	static const struct frag_composer composers[] = {{.name = "line", .compose = compose}};
	struct frag_plugin p = sound;
	int r = -ENOMEM;

	p.ops = ops;
	p.op_count = 1;
	p.composers = composers;
	p.composer_count = 1;
	p.composer_size = sizeof(composers[0]);
	for (int64_t skip = 0; r < 0; skip++) {
		struct fragi_library library = {.file = "libmine.so"};
		struct frag_err err = FRAG_ERR_INIT;
		struct fragi_arena arena = {0};

		fragi_alloc_fail_after(skip, 1);
		r = fragi_library_read(&arena, &library, &p, &err);
		fragi_alloc_fail_off();
		cr_assert(r == 0 || r == -ENOMEM);
		cr_expect_eq(r == 0, err.text[0] == '\0');
		fragi_arena_fini(&arena);
	}
}

/* Where a plugin finds the libraries of another project: as asked, or beside those of frag. */
Test(plugin_tables, the_folder_of_another_project)
{
	char own[4096], out[4200] = "untouched";
	bool is_there;

	snprintf(own, sizeof(own), "%s/frag/plugins", fragi_library_folder());
	is_there = access(own, X_OK) == 0; /* unless this program alone was built */
	setenv("FRAG_SOMETHING", "/opt/some thing", 1);
	cr_expect_eq(frag_library_folder("FRAG_SOMETHING", "plugins", out, sizeof(out)), 0);
	cr_expect_str_eq(out, "/opt/some thing", "it is not looked at");
	unsetenv("FRAG_SOMETHING");
	cr_expect_eq(frag_library_folder("FRAG_SOMETHING", "nothing", out, sizeof(out)), -ENOENT);
	cr_expect_eq(frag_library_folder("FRAG_SOMETHING", "plugins", out, strlen(own)),
		     -ENAMETOOLONG);
	cr_expect_str_eq(out, "/opt/some thing", "untouched");
	setenv("FRAG_SOMETHING", "", 1);
	cr_expect_eq(frag_library_folder("FRAG_SOMETHING", "plugins", out, strlen(own) + 1),
		     is_there ? 0 : -ENOENT);
	cr_expect_str_eq(out, is_there ? own : "/opt/some thing");
}
