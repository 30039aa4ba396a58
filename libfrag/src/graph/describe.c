// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>

#include <base/json.h>
#include <cond/condition.h>
#include <graph/op.h>

/* Describes operators, resources and arguments as YAML; texts are quoted as in JSON. */

static void write_port(const struct fragi_port *port, FILE *out)
{
	fprintf(out, "  - {name: %s, direction: %s, type: %s, flows: %u}\n", port->name,
		port->dir == FRAG_IN ? "in" : "out", port->type_name, port->flow_count);
}

static void write_condition(const struct frag_condition *condition, FILE *out)
{
	fprintf(out, "  - name: %s\n    type: %s\n", condition->name, condition->type->name);
	fragi_params_describe(condition->type->params, condition->type->param_count,
			      condition->state, "    ", out);
}

/* Closes what open_memstream opened; NULL: out of memory. */
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
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (out == NULL)
		return NULL;
	fprintf(out, "name: %s\nfragment: %s\ntype: %s\n", op->name, op->fragment->name,
		op->type->name);
	fragi_params_describe(op->type->params, op->type->param_count, op->state, "", out);
	if (op->port_count > 0)
		fputs("ports:\n", out);
	for (uint32_t i = 0; i < op->port_count; i++)
		if (op->ports[i].flow_count > 0 || !fragi_port_is_execution(op->ports[i].name))
			write_port(&op->ports[i], out);
	if (op->condition_count > 0)
		fputs("conditions:\n", out);
	for (uint32_t i = 0; i < op->condition_count; i++)
		write_condition(op->conditions[i], out);
	return finish(out, &text);
}

char *frag_resource_describe(const struct frag_resource *resource)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (out == NULL)
		return NULL;
	fprintf(out, "name: %s\ntype: %s\n", resource->name, resource->type.name);
	fragi_params_describe(resource->type.params, resource->type.param_count,
			      resource->allocator.state, "", out);
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
