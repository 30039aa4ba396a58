// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <fragctl/ctl.h>
#include <fragctl/inspect.h>
#include <fragctl/json.h>

/*
 * `fragctl schema` prints the JSON schema of graphs for editors: docs/graph.schema.json, which
 * mk/schema.py makes of the parser's tables, with the types that are installed.
 */
__asm__(".pushsection .rodata\nctl_graph_schema:\n.incbin \"docs/graph.schema.json\"\n.byte 0\n"
	".popsection\n");
extern const char ctl_graph_schema[] __attribute__((visibility("hidden")));

/* What stands for a parameter's value whatever its kind: an argument, and a part of config. */
static void write_given(struct ctl_json *json)
{
	ctl_json_open(json, NULL, '{');
	ctl_json_text(json, "type", "string");
	ctl_json_text(json, "pattern", "^\\$|\\$\\{");
	ctl_json_close(json, '}');
	ctl_json_open(json, NULL, '{');
	ctl_json_text(json, "type", "object");
	ctl_json_open(json, "required", '[');
	ctl_json_text(json, NULL, "from_config");
	ctl_json_close(json, ']');
	ctl_json_number(json, "maxProperties", 1);
	ctl_json_close(json, '}');
}

static void write_ref(struct ctl_json *json, const char *name)
{
	char text[64];

	snprintf(text, sizeof(text), "#/$defs/%s", name);
	ctl_json_open(json, NULL, '{');
	ctl_json_text(json, "$ref", text);
	ctl_json_close(json, '}');
}

static void write_types(struct ctl_json *json, const char *const *types)
{
	ctl_json_open(json, NULL, '{');
	ctl_json_open(json, "type", '[');
	for (size_t i = 0; types[i] != NULL; i++)
		ctl_json_text(json, NULL, types[i]);
	ctl_json_close(json, ']');
	ctl_json_close(json, '}');
}

static void write_integer(struct ctl_json *json, const struct frag_param *param)
{
	ctl_json_open(json, NULL, '{');
	ctl_json_text(json, "type", "integer");
	if (param->min < param->max && param->min > -1e300)
		fprintf(ctl_json_value(json, "minimum"), "%.17g", param->min);
	if (param->min < param->max && param->max < 1e300)
		fprintf(ctl_json_value(json, "maximum"), "%.17g", param->max);
	ctl_json_close(json, '}');
	ctl_json_open(json, NULL, '{');
	ctl_json_text(json, "type", "string");
	ctl_json_text(json, "pattern", "^[-+]?[0-9]+$|^0[xX]");
	ctl_json_close(json, '}');
}

static void write_choices(struct ctl_json *json, const char *const *choices)
{
	static const char *const scalar[] = {"string", "number", "boolean", NULL};

	if (choices == NULL) {
		write_types(json, scalar);
		return;
	}
	ctl_json_open(json, NULL, '{');
	ctl_json_open(json, "enum", '[');
	for (size_t i = 0; choices[i] != NULL; i++)
		ctl_json_text(json, NULL, choices[i]);
	ctl_json_close(json, ']');
	ctl_json_close(json, '}');
}

/* What a graph may give it: one of these. */
static void write_value(struct ctl_json *json, const struct frag_param *param)
{
	static const char *const scalar[] = {"string", "number", "boolean", NULL};
	static const char *const list[] = {"array", "null", NULL};
	static const char *const map[] = {"object", "null", NULL};

	switch (param->kind) {
	case FRAG_PARAM_KIND_BOOL:
		write_ref(json, "bool");
		break;
	case FRAG_PARAM_KIND_I64:
		write_integer(json, param);
		break;
	case FRAG_PARAM_KIND_F64:
		write_ref(json, "number");
		break;
	case FRAG_PARAM_KIND_STRING:
		write_choices(json, param->choices);
		break;
	case FRAG_PARAM_KIND_I64_LIST:
	case FRAG_PARAM_KIND_F64_LIST:
	case FRAG_PARAM_KIND_STRING_LIST:
		write_types(json, list);
		break;
	case FRAG_PARAM_KIND_STRING_MAP:
		write_types(json, map);
		break;
	case FRAG_PARAM_KIND_TREE:
		write_types(json, list);
		write_types(json, map);
		write_types(json, scalar);
		break;
	case FRAG_PARAM_KIND_SIZE:
		write_ref(json, "size");
		break;
	case FRAG_PARAM_KIND_DURATION: /* without a unit: nanoseconds */
		write_integer(json, param);
		write_ref(json, "duration");
		break;
	case FRAG_PARAM_KIND_PATH:
		write_types(json, scalar);
		break;
	case FRAG_PARAM_KIND_RESOURCE: /* $name */
	case FRAG_PARAM_KIND_CONDITION:
		break;
	}
}

static void write_param(struct ctl_json *json, const struct frag_param *param)
{
	char given[64], text[512];
	const char *usual = ctl_param_default(param, given, sizeof(given));

	snprintf(text, sizeof(text), "%s%s%s%s",
		 param->headline != NULL ? param->headline : param->name,
		 usual != NULL ? " (default " : "", usual != NULL ? usual : "",
		 usual != NULL ? ")" : "");
	ctl_json_open(json, param->name, '{');
	ctl_json_text(json, "description", text);
	ctl_json_open(json, "anyOf", '[');
	write_value(json, param);
	write_given(json);
	ctl_json_close(json, ']');
	ctl_json_close(json, '}');
}

static void write_anything(struct ctl_json *json, const char *name)
{
	ctl_json_bool(json, name, true);
}

/* All of these, or a part of config, which may have them. */
static void write_required(struct ctl_json *json, const struct ctl_type *type)
{
	ctl_json_open(json, "anyOf", '[');
	ctl_json_open(json, NULL, '{');
	ctl_json_open(json, "required", '[');
	ctl_json_text(json, NULL, "from_config");
	ctl_json_close(json, ']');
	ctl_json_close(json, '}');
	ctl_json_open(json, NULL, '{');
	ctl_json_open(json, "required", '[');
	for (uint32_t i = 0; i < type->param_count; i++)
		if ((type->params[i].flags & FRAG_PARAM_REQUIRED) != 0)
			ctl_json_text(json, NULL, type->params[i].name);
	ctl_json_close(json, ']');
	ctl_json_close(json, '}');
	ctl_json_close(json, ']');
}

/* An operator has its parameters below a key; all others have them beside their type. */
static void write_params(struct ctl_json *json, const struct ctl_type *type)
{
	static const char *const beside[] = {"when", "id", "name"};
	bool is_operator = type->kind == CTL_OPERATOR;

	if (is_operator) {
		ctl_json_open(json, "parameters", '{');
		ctl_json_open(json, "properties", '{');
	}
	write_anything(json, "from_config");
	for (size_t i = 0; !is_operator && i < FRAG_COUNT_OF(beside); i++)
		write_anything(json, beside[i]);
	for (uint32_t i = 0; i < type->param_count; i++)
		write_param(json, &type->params[i]);
	ctl_json_close(json, '}');
	ctl_json_bool(json, "additionalProperties", false);
	if (!is_operator)
		write_required(json, type);
	if (is_operator) {
		ctl_json_close(json, '}');
		ctl_json_close(json, '}');
	}
}

/* If the type is this one, its parameters are known. */
static void write_type(struct ctl_json *json, const struct ctl_type *type)
{
	ctl_json_gap(json, "\n   ");
	ctl_json_open(json, NULL, '{');
	ctl_json_open(json, "if", '{');
	ctl_json_open(json, "properties", '{');
	ctl_json_open(json, "type", '{');
	ctl_json_text(json, "const", type->name);
	ctl_json_close(json, '}');
	ctl_json_close(json, '}');
	ctl_json_open(json, "required", '[');
	ctl_json_text(json, NULL, "type");
	ctl_json_close(json, ']');
	ctl_json_close(json, '}');
	ctl_json_open(json, "then", '{');
	ctl_json_open(json, "properties", '{');
	ctl_json_open(json, "type", '{');
	ctl_json_text(json, "description", type->headline != NULL ? type->headline : type->name);
	ctl_json_close(json, '}');
	write_params(json, type);
	ctl_json_close(json, '}');
	ctl_json_close(json, '}');
}

/*
 * The types of one kind. Others are accepted too, since a graph may name libraries that are not
 * here; editors offer these.
 */
static void write_kind(const struct ctl_type *types, size_t count, enum ctl_type_kind kind,
		       FILE *out)
{
	struct ctl_json json = {.out = out};

	ctl_json_open(&json, NULL, '{');
	ctl_json_open(&json, "properties", '{');
	ctl_json_open(&json, "type", '{');
	ctl_json_open(&json, "anyOf", '[');
	ctl_json_open(&json, NULL, '{');
	ctl_json_open(&json, "enum", '[');
	for (size_t i = 0; i < count; i++)
		if (types[i].kind == kind)
			ctl_json_text(&json, NULL, types[i].name);
	ctl_json_close(&json, ']');
	ctl_json_close(&json, '}');
	ctl_json_open(&json, NULL, '{');
	ctl_json_text(&json, "type", "string");
	ctl_json_close(&json, '}');
	ctl_json_close(&json, ']');
	ctl_json_close(&json, '}');
	ctl_json_close(&json, '}');
	ctl_json_open(&json, "allOf", '[');
	for (size_t i = 0; i < count; i++)
		if (types[i].kind == kind)
			write_type(&json, &types[i]);
	ctl_json_close(&json, ']');
	ctl_json_close(&json, '}');
}

void ctl_types_print_schema(const struct ctl_type *types, size_t count, FILE *out)
{
	static const struct {
		const char *place; /* in the order of the text */
		enum ctl_type_kind kind;
	} kinds[] = {{"\"operator_types\": ", CTL_OPERATOR},
		     {"\"condition_types\": ", CTL_CONDITION},
		     {"\"resource_types\": ", CTL_RESOURCE}};
	const char *text = ctl_graph_schema, *at;

	for (size_t i = 0; i < FRAG_COUNT_OF(kinds); i++) {
		at = strstr(text, kinds[i].place);
		assert(at != NULL);
		at += strlen(kinds[i].place);
		fwrite(text, 1, (size_t)(at - text), out);
		write_kind(types, count, kinds[i].kind, out);
		text = at + strlen("true");
	}
	fputs(text, out);
}

int ctl_schema(int argc, char **argv)
{
	struct ctl_common common = {0};
	struct fragi_texts operands = {0};
	struct ctl_inspection inspection = {.operands = &operands, .is_schema = true};
	const struct fragi_flag table[] = {CTL_COMMON_FLAGS(common)};
	const struct fragi_flags flags = {
		.program = "fragctl schema",
		.usage = "[LIBRARY]... [flags]",
		.headline =
			"Prints the JSON schema of graphs, with which editors complete and check them; libraries (libx.so, a path) add their types to those that are installed.",
		.flags = table,
		.count = FRAG_COUNT_OF(table),
	};
	int exit_code;

	if (ctl_begin(&flags, &common, argc, argv, &operands, NULL, &exit_code))
		exit_code = ctl_inspect_run("schema", &inspection);
	fragi_texts_fini(&operands);
	return exit_code;
}
