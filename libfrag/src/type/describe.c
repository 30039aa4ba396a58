// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <base/json.h>
#include <frag/condition.h>
#include <frag/resource.h>
#include <type/params.h>

static void write_list(const void *items, size_t count,
		       void (*write)(const void *items, size_t i, FILE *out), FILE *out)
{
	fputc('[', out);
	for (size_t i = 0; i < count; i++) {
		fputs(i > 0 ? ", " : "", out);
		write(items, i, out);
	}
	fputc(']', out);
}

static void write_i64(const void *items, size_t i, FILE *out)
{
	fprintf(out, "%" PRId64, ((const int64_t *)items)[i]);
}

static void write_f64(const void *items, size_t i, FILE *out)
{
	double value = ((const double *)items)[i];

	fprintf(out, isfinite(value) ? "%.17g" : "\"%g\"", value);
}

/* A value may be a URL with a password. */
static void write_value(const char *text, FILE *out)
{
	char *shown = text != NULL ? strdup(text) : NULL;

	if (shown != NULL)
		frag_hide_credentials(shown, 0);
	fragi_json_text(shown, out);
	free(shown);
}

static void write_text(const void *items, size_t i, FILE *out)
{
	write_value(((const char *const *)items)[i], out);
}

static void write_map(const struct frag_string_map *map, FILE *out)
{
	fputc('{', out);
	for (size_t i = 0; i < map->count; i++) {
		fputs(i > 0 ? ", " : "", out);
		fragi_json_text(map->items[i].key, out);
		fputs(": ", out);
		write_value(map->items[i].text, out);
	}
	fputc('}', out);
}

static void write_tree(const struct frag_tree *tree, FILE *out)
{
	bool is_map = tree->kind == FRAG_TREE_MAP;

	if (tree->kind == FRAG_TREE_TEXT) {
		write_value(tree->text, out);
		return;
	}
	fputc(is_map ? '{' : '[', out);
	for (size_t i = 0; i < tree->count; i++) {
		fputs(i > 0 ? ", " : "", out);
		if (is_map) {
			fragi_json_text(tree->items[i].key, out);
			fputs(": ", out);
		}
		write_tree(&tree->items[i], out);
	}
	fputc(is_map ? '}' : ']', out);
}

static void write_name(const char *name, FILE *out)
{
	if (name != NULL)
		fprintf(out, "\"$%s\"", name);
	else
		fputs("null", out);
}

void fragi_param_write(const struct frag_param *param, const void *state, FILE *out)
{
	const void *field = (const char *)state + param->offset;
	const struct frag_i64_list *i64s = field;
	const struct frag_f64_list *f64s = field;
	const struct frag_string_list *texts = field;
	struct frag_resource *const *resource = field;
	struct frag_condition *const *condition = field;
	const struct frag_tree *const *tree = field;

	switch (param->kind) {
	case FRAG_PARAM_KIND_BOOL:
		fputs(*(const bool *)field ? "true" : "false", out);
		break;
	case FRAG_PARAM_KIND_I64:
	case FRAG_PARAM_KIND_DURATION:
		write_i64(field, 0, out);
		break;
	case FRAG_PARAM_KIND_SIZE:
		fprintf(out, "%" PRIu64, *(const uint64_t *)field);
		break;
	case FRAG_PARAM_KIND_F64:
		write_f64(field, 0, out);
		break;
	case FRAG_PARAM_KIND_STRING:
	case FRAG_PARAM_KIND_PATH:
		write_text(field, 0, out);
		break;
	case FRAG_PARAM_KIND_RESOURCE:
		write_name(*resource != NULL ? frag_resource_name(*resource) : NULL, out);
		break;
	case FRAG_PARAM_KIND_CONDITION:
		write_name(*condition != NULL ? frag_condition_name(*condition) : NULL, out);
		break;
	case FRAG_PARAM_KIND_I64_LIST:
		write_list(i64s->items, i64s->count, write_i64, out);
		break;
	case FRAG_PARAM_KIND_F64_LIST:
		write_list(f64s->items, f64s->count, write_f64, out);
		break;
	case FRAG_PARAM_KIND_STRING_LIST:
		write_list(texts->items, texts->count, write_text, out);
		break;
	case FRAG_PARAM_KIND_STRING_MAP:
		write_map(field, out);
		break;
	case FRAG_PARAM_KIND_TREE:
		if (*tree != NULL)
			write_tree(*tree, out);
		else
			fputs("null", out);
		break;
	}
}

void fragi_params_describe(const struct frag_param *params, uint32_t count, const void *state,
			   const char *indent, FILE *out)
{
	if (count == 0)
		return;
	fprintf(out, "%sparameters:\n", indent);
	for (uint32_t i = 0; i < count; i++) {
		fprintf(out, "%s  %s: ", indent, params[i].name);
		fragi_param_write(&params[i], state, out);
		fputc('\n', out);
	}
}
