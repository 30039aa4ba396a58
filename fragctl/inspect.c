// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/alloc.h>
#include <base/units.h>
#include <cond/condition.h>
#include <fragctl/graph.h>
#include <fragctl/child.h>
#include <fragctl/inspect.h>
#include <text/holoscan.h>
#include <res/resource.h>
#include <type/pinned.h>

static const struct frag_type *const own_values[] = {
	&frag_type_bool,  &frag_type_i8,        &frag_type_i16,        &frag_type_i32,
	&frag_type_i64,   &frag_type_u8,        &frag_type_u16,        &frag_type_u32,
	&frag_type_u64,   &frag_type_f32,       &frag_type_f64,        &frag_type_string,
	&frag_type_bytes, &frag_type_complex64, &frag_type_complex128,
};

struct catalogue {
	struct ctl_type *types;
	size_t count, capacity;
	struct ctl_library *libraries; /* that were named */
	size_t library_count;
	bool no_memory;
};

/* library NULL: part of libfrag */
static void put(struct catalogue *catalogue, const struct fragi_library *library,
		const struct ctl_type *type)
{
	struct ctl_type *at;
	size_t capacity = catalogue->capacity == 0 ? 64 : catalogue->capacity * 2;
	struct ctl_type *wider;

	if (catalogue->count == catalogue->capacity) {
		wider = fragi_realloc(catalogue->types, capacity * sizeof(*wider));
		if (wider == NULL) {
			catalogue->no_memory = true;
			return;
		}
		catalogue->types = wider;
		catalogue->capacity = capacity;
	}
	at = &catalogue->types[catalogue->count++];
	*at = *type;
	if (library == NULL)
		return;
	at->library = library->path;
	at->plugin = library->name;
	at->version = library->version;
}

/* What the tables of operators, conditions and resources have in common. */
#define DECLARED(KIND, type)                                                                       \
	.kind = (KIND), .name = (type)->name, .headline = (type)->headline,                        \
	.description = (type)->description, .params = (type)->params,                              \
	.param_count = (type)->param_count

static void put_condition(struct catalogue *catalogue, const struct fragi_library *library,
			  const struct frag_condition_type *type)
{
	put(catalogue, library, &(struct ctl_type){DECLARED(CTL_CONDITION, type)});
}

static void put_resource(struct catalogue *catalogue, const struct fragi_library *library,
			 const struct frag_resource_type *type)
{
	put(catalogue, library, &(struct ctl_type){DECLARED(CTL_RESOURCE, type)});
}

static void put_value(struct catalogue *catalogue, const struct fragi_library *library,
		      const struct frag_type *type)
{
	put(catalogue, library,
	    &(struct ctl_type){.kind = CTL_VALUE,
			       .name = type->name,
			       .headline = type->headline,
			       .value = type});
}

static void put_library(struct catalogue *catalogue, const struct fragi_library *library)
{
	const struct frag_op_type *op;

	for (size_t i = 0; i < library->op_count; i++) {
		op = library->ops[i];
		put(catalogue, library,
		    &(struct ctl_type){DECLARED(CTL_OPERATOR, op), .ports = op->ports,
				       .port_count = op->port_count,
				       .adds_ports = op->setup != NULL,
				       .saved_bytes = op->save != NULL ? op->save_size : 0,
				       .save_period_ns = op->save_period_ns});
	}
	for (size_t i = 0; i < library->condition_count; i++)
		put_condition(catalogue, library, library->conditions[i]);
	for (size_t i = 0; i < library->resource_count; i++)
		put_resource(catalogue, library, library->resources[i]);
	for (size_t i = 0; i < library->composer_count; i++)
		put(catalogue, library,
		    &(struct ctl_type){.kind = CTL_COMPOSER,
				       .name = library->composers[i].name,
				       .headline = library->composers[i].headline});
	for (size_t i = 0; i < library->subgraph_count; i++)
		put(catalogue, library,
		    &(struct ctl_type){.kind = CTL_SUBGRAPH,
				       .name = library->subgraphs[i].name,
				       .headline = library->subgraphs[i].headline});
	for (size_t i = 0; i < library->type_count; i++)
		put_value(catalogue, library, library->types[i]);
}

/* sha256: for the graph that is to pin a library */
static void put_named(struct catalogue *catalogue, struct fragi_registry *registry)
{
	const struct fragi_library *const *libraries;
	struct frag_err err = FRAG_ERR_INIT;
	size_t count;

	libraries = fragi_registry_libraries(registry, false, &count);
	catalogue->libraries = fragi_calloc(count + 1, sizeof(*catalogue->libraries));
	catalogue->no_memory |= catalogue->libraries == NULL;
	for (size_t i = 0; catalogue->libraries != NULL && i < count; i++) {
		struct ctl_library *library = &catalogue->libraries[catalogue->library_count++];

		library->path = libraries[i]->path;
		library->plugin = libraries[i]->name;
		library->version = libraries[i]->version;
		if (fragi_file_sha256(library->path, library->sha256, &err) < 0)
			library->sha256[0] = '\0';
	}
}

static void put_own(struct catalogue *catalogue)
{
	const struct fragi_built_in_resource *resource;
	const struct fragi_built_in_condition *condition;

	for (size_t i = 0; (condition = fragi_built_in_condition_at(i)) != NULL; i++)
		put_condition(catalogue, NULL, &condition->type);
	for (size_t i = 0; (resource = fragi_built_in_resource_at(i)) != NULL; i++)
		put_resource(catalogue, NULL, &resource->type);
	for (size_t i = 0; i < FRAG_COUNT_OF(own_values); i++)
		put_value(catalogue, NULL, own_values[i]);
}

static int compare(const void *a, const void *b)
{
	const struct ctl_type *x = a, *y = b;

	return x->kind != y->kind ? (int)x->kind - (int)y->kind : strcmp(x->name, y->name);
}

static bool is_library(const char *operand)
{
	size_t length = strlen(operand);

	return strchr(operand, '/') != NULL || strstr(operand, ".so.") != NULL ||
	       (length > 3 && strcmp(operand + length - 3, ".so") == 0);
}

/*
 * The types of that name, first; how many. An operator, a condition and a resource may share one.
 */
static size_t find(const struct catalogue *catalogue, const char *name, struct ctl_type *out,
		   size_t most)
{
	static const enum fragi_holoscan_kind kinds[] = {
		[CTL_OPERATOR] = FRAGI_HOLOSCAN_OPERATOR,
		[CTL_CONDITION] = FRAGI_HOLOSCAN_CONDITION,
		[CTL_RESOURCE] = FRAGI_HOLOSCAN_RESOURCE,
		[CTL_COMPOSER] = FRAGI_HOLOSCAN_KEY,
		[CTL_SUBGRAPH] = FRAGI_HOLOSCAN_KEY,
		[CTL_VALUE] = FRAGI_HOLOSCAN_KEY,
	};
	size_t count = 0;

	for (size_t i = 0; i < catalogue->count && count < most; i++)
		if (strcmp(catalogue->types[i].name,
			   fragi_alias(kinds[catalogue->types[i].kind], name)) == 0)
			out[count++] = catalogue->types[i];
	return count;
}

static int refuse_type(const struct catalogue *catalogue, const char *name)
{
	const char **names = fragi_calloc(catalogue->count + 1, sizeof(*names)), *near;
	char advice[600];

	if (fragi_holoscan_explain(advice, sizeof(advice), FRAGI_HOLOSCAN_OPERATOR, name)) {
		fragi_free(names);
		return ctl_fail(CTL_USAGE, "%s", advice);
	}
	for (size_t i = 0; names != NULL && i < catalogue->count; i++)
		names[i] = catalogue->types[i].name;
	near = names != NULL ? fragi_suggest(name, names, catalogue->count) : NULL;
	if (near == NULL)
		near = fragi_holoscan_suggest(FRAGI_HOLOSCAN_OPERATOR, name);
	ctl_fail(CTL_USAGE, "unknown type \"%.80s\"%s", name,
		 fragi_advise(advice, sizeof(advice), name, "types", near != NULL ? &near : names,
			      near != NULL    ? 1
			      : names != NULL ? catalogue->count
					      : 0));
	fragi_free(names);
	return CTL_USAGE;
}

/* Says what could not be looked into; it does not stand in the way of the rest. */
static void warn_of_broken(const struct fragi_library *const *libraries, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (libraries[i]->error != NULL)
			ctl_complain("%s", libraries[i]->error);
}

static int show(const struct catalogue *catalogue, const struct fragi_texts *operands,
		bool in_detail, bool json)
{
	struct ctl_type *chosen = fragi_calloc(4 * operands->count + 1, sizeof(*chosen));
	const struct ctl_type *types = catalogue->types;
	size_t count = 0, found, named = 0;

	if (chosen == NULL || catalogue->no_memory) {
		fragi_free(chosen);
		return ctl_fail(CTL_FAILED, "out of memory");
	}
	for (size_t i = 0; i < operands->count; i++) {
		if (is_library(operands->items[i]))
			continue;
		named++;
		found = find(catalogue, operands->items[i], chosen + count, 4);
		count += found;
		if (found > 0)
			continue;
		fragi_free(chosen);
		return refuse_type(catalogue, operands->items[i]);
	}
	if (named > 0)
		types = chosen;
	else
		count = catalogue->count;
	if (json)
		ctl_types_print_json(types, count, catalogue->libraries, catalogue->library_count,
				     stdout);
	else if (named == 0 && !in_detail)
		ctl_types_print(types, count, stdout);
	for (size_t i = 0; !json && named == 0 && i < catalogue->library_count; i++)
		ctl_library_print(&catalogue->libraries[i], stdout);
	for (size_t i = 0; !json && (named > 0 || in_detail) && i < count; i++) {
		if (i > 0)
			putchar('\n');
		ctl_type_print(&types[i], stdout);
	}
	fragi_free(chosen);
	return CTL_OK;
}

/*
 * Libraries among the operands are opened. Named alone, only what they bring is shown, in detail;
 * with type names, the types are looked for everywhere.
 */
static int inspect(struct fragi_registry *registry, const struct ctl_inspection *inspection)
{
	const struct fragi_texts *operands = inspection->operands;
	bool shows_all = operands->count == 0 || inspection->is_schema;
	struct catalogue catalogue = {0};
	const struct fragi_library *const *libraries;
	struct frag_err err = FRAG_ERR_INIT;
	size_t count, named = 0;
	int r = 0;

	for (size_t i = 0; i < operands->count; i++) {
		if (!is_library(operands->items[i]) && inspection->is_schema)
			return ctl_refuse(
				"fragctl schema",
				"\"%.200s\" is no library; name libx.so, or a path of one",
				operands->items[i]);
		if (!is_library(operands->items[i])) {
			fragi_registry_seek(registry, operands->items[i]);
			named++;
			continue;
		}
		r = fragi_registry_load(registry, operands->items[i], &err);
		if (r < 0)
			return ctl_fail(fragi_failure_exit(fragi_err_failure(&err)), "%s",
					err.text);
	}
	if (named < operands->count)
		put_named(&catalogue, registry);
	shows_all |= named > 0;
	libraries = fragi_registry_libraries(registry, shows_all, &count);
	for (size_t i = 0; i < count; i++)
		put_library(&catalogue, libraries[i]);
	if (shows_all)
		put_own(&catalogue);
	if (catalogue.count > 0)
		qsort(catalogue.types, catalogue.count, sizeof(*catalogue.types), compare);
	warn_of_broken(libraries, count);
	if (inspection->is_schema && catalogue.no_memory)
		r = ctl_fail(CTL_FAILED, "out of memory");
	else if (inspection->is_schema)
		ctl_types_print_schema(catalogue.types, catalogue.count, stdout);
	else
		r = show(&catalogue, operands, operands->count > 0, inspection->json);
	fragi_free(catalogue.libraries);
	fragi_free(catalogue.types);
	return r;
}

static int inspect_in_child(void *arg)
{
	const struct ctl_inspection *inspection = arg;
	struct fragi_registry *registry;
	int r = ctl_registry_create(inspection->library_path, NULL, &registry), exit_code;

	if (r < 0)
		return ctl_fail(CTL_FAILED, "cannot look for libraries (%s)", frag_strerror(r));
	exit_code = inspect(registry, inspection);
	fragi_registry_destroy(registry);
	return exit_code;
}

int ctl_inspect_run(const char *verb, struct ctl_inspection *inspection)
{
	struct frag_err err = FRAG_ERR_INIT;
	int exit_code;

	if (ctl_child_run(verb, inspect_in_child, inspection, &exit_code, &err) < 0)
		return ctl_fail(CTL_FAILED, "%s", err.text);
	return exit_code;
}

int ctl_inspect(int argc, char **argv)
{
	struct ctl_common common = {0};
	struct fragi_texts operands = {0};
	const char *library_path = NULL, *output = NULL;
	const struct fragi_flag table[] = {
		{.name = "library-path",
		 .no_env = true,
		 .value = "DIR:DIR",
		 .help = "folders of the libraries and types that are named",
		 .text = &library_path},
		CTL_OUTPUT_FLAG(output),
		CTL_COMMON_FLAGS(common),
	};
	const struct fragi_flags flags = {
		.program = "fragctl inspect",
		.usage = "[TYPE | LIBRARY]... [flags]",
		.headline =
			"Lists types; of those that are named (TYPE), or that a library brings (libx.so, a path), prints ports, parameters, conditions and fields.",
		.flags = table,
		.count = FRAG_COUNT_OF(table),
	};
	struct ctl_inspection inspection = {.operands = &operands};
	int exit_code;

	if (!ctl_begin(&flags, &common, argc, argv, &operands, NULL, &exit_code))
		goto out;
	exit_code = CTL_USAGE;
	inspection.library_path = library_path;
	if (!ctl_output(output, &inspection.json))
		goto out;
	exit_code = ctl_inspect_run("inspect", &inspection);
out:
	fragi_texts_fini(&operands);
	return exit_code;
}
