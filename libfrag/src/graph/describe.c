// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <base/json.h>
#include <cond/cond.h>
#include <graph/op.h>

/* Descriptions of live things, as YAML whose texts are quoted as in JSON. */

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
	fprintf(out, "%.17g", ((const double *)items)[i]);
}

static void write_text(const void *items, size_t i, FILE *out)
{
	fragi_json_text(((const char *const *)items)[i], out);
}

static void write_map(const struct frag_string_map *map, FILE *out)
{
	fputc('{', out);
	for (size_t i = 0; i < map->count; i++) {
		fputs(i > 0 ? ", " : "", out);
		fragi_json_text(map->items[i].key, out);
		fputs(": ", out);
		fragi_json_text(map->items[i].text, out);
	}
	fputc('}', out);
}

static void write_value(const struct frag_param *param, const void *field, FILE *out)
{
	const struct frag_i64_list *i64s = field;
	const struct frag_f64_list *f64s = field;
	const struct frag_string_list *texts = field;
	struct frag_resource *const *resource = field;
	struct frag_condition *const *condition = field;

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
		fprintf(out, *resource != NULL ? "$%s" : "null",
			*resource != NULL ? frag_resource_name(*resource) : "");
		break;
	case FRAG_PARAM_KIND_CONDITION:
		fprintf(out, *condition != NULL ? "$%s" : "null",
			*condition != NULL ? (*condition)->name : "");
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
	}
}

static void write_params(const struct fragi_param_table *table, const void *state,
			 const char *indent, FILE *out)
{
	if (table->count == 0)
		return;
	fprintf(out, "%sparameters:\n", indent);
	for (uint32_t i = 0; i < table->count; i++) {
		struct frag_param param = fragi_param_at(table, i);

		fprintf(out, "%s  %s: ", indent, param.name);
		write_value(&param, (const char *)state + param.offset, out);
		fputc('\n', out);
	}
}

static void write_port(const struct fragi_port *port, FILE *out)
{
	fprintf(out, "  - {name: %s, direction: %s, type: %s, flows: %u}\n", port->name,
		port->dir == FRAG_IN ? "in" : "out", port->type_name, port->flow_count);
}

static void write_condition(const struct frag_condition *condition, FILE *out)
{
	const struct fragi_param_table table = {
		condition->type->params, condition->type->param_count, sizeof(struct frag_param)};

	fprintf(out, "  - name: %s\n    type: %s\n", condition->name, condition->type->name);
	write_params(&table, &condition->params, "    ", out);
}

/* Closes what open_memstream opened; NULL when memory was short. */
static char *finish(FILE *out, char **text)
{
	bool failed = out == NULL || ferror(out) != 0;

	if (out != NULL && fclose(out) != 0)
		failed = true;
	if (!failed)
		return *text;
	free(*text);
	return NULL;
}

char *frag_op_describe(const struct frag_op *op)
{
	const struct fragi_param_table table = {op->type->params, op->type->param_count,
						op->type->param_size};
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (out == NULL)
		return NULL;
	fprintf(out, "name: %s\nfragment: %s\ntype: %s\n", op->name, op->fragment->name,
		op->type->name);
	write_params(&table, op->state, "", out);
	if (op->port_count > 0)
		fputs("ports:\n", out);
	for (uint32_t i = 0; i < op->port_count; i++)
		write_port(&op->ports[i], out);
	if (op->condition_count > 0)
		fputs("conditions:\n", out);
	for (uint32_t i = 0; i < op->condition_count; i++)
		write_condition(op->conditions[i], out);
	return finish(out, &text);
}

char *frag_resource_describe(const struct frag_resource *resource)
{
	const struct fragi_param_table table = {resource->type->params, resource->type->param_count,
						sizeof(struct frag_param)};
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (out == NULL)
		return NULL;
	fprintf(out, "name: %s\ntype: %s\n", resource->name, resource->type->name);
	write_params(&table, resource->allocator.state, "", out);
	return finish(out, &text);
}

char *frag_args_describe(const struct frag_arg *args)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (out == NULL)
		return NULL;
	for (; args != NULL && args->name != NULL; args++) {
		fprintf(out, "%s: ", args->name);
		fragi_json_text(args->text, out);
		fputc('\n', out);
	}
	return finish(out, &text);
}
