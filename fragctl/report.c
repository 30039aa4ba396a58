// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/arena.h>
#include <base/json.h>
#include <fragctl/describe.h>
#include <fragctl/report.h>
#include <type/pinned.h>

int ctl_plan_digest(const struct fragi_spec *spec, const struct ctl_composed *composed,
		    char out[CTL_DIGEST_SIZE])
{
	struct frag_err err = FRAG_ERR_INIT;
	char *plan = NULL;
	size_t size = 0;
	FILE *text = open_memstream(&plan, &size);
	int r;

	if (text == NULL)
		return ctl_fail(CTL_FAILED, "out of memory");
	ctl_describe_print_json(spec, composed, NULL, text);
	if (fclose(text) != 0)
		r = ctl_fail(CTL_FAILED, "out of memory");
	else if (fragi_sha256(plan, size, "the plan", "print the plan as a table", out, &err) < 0)
		r = ctl_fail(CTL_MISSING, "%s", err.text);
	else
		r = CTL_OK;
	free(plan);
	return r;
}

static void json_text(const char *name, const char *text, FILE *out)
{
	fprintf(out, ", \"%s\": ", name);
	fragi_json_text(text[0] != '\0' ? text : NULL, out);
}

static void json_number(const char *name, int number, FILE *out)
{
	if (number > 0)
		fprintf(out, ", \"%s\": %d", name, number);
	else
		fprintf(out, ", \"%s\": null", name);
}

/* The trees of an application's texts, to look up where an error stands. */
struct texts {
	const struct fragi_spec_source *source;
	struct fragi_arena arena;
	struct fragi_node *roots[1 + FRAGI_SPEC_TEXTS_MAX]; /* the graph, then the configs */
};

static void texts_read(struct texts *texts, const struct fragi_spec_source *source)
{
	struct fragi_diag diag = {0}; /* what is wrong with them was found before */

	*texts = (struct texts){.source = source};
	for (size_t i = 0; i <= source->config_count && i <= FRAGI_SPEC_TEXTS_MAX; i++) {
		const struct fragi_spec_text *text =
			i == 0 ? &source->graph : &source->configs[i - 1];

		if (text->text != NULL)
			(void)fragi_yaml_parse(&texts->arena, text->file, text->text, text->length,
					       &diag, &texts->roots[i]);
	}
	fragi_diag_fini(&diag);
}

/* The path of the node at an error's place; "" where there is none. */
static const char *path_of(const struct texts *texts, const struct frag_err *err, char *out,
			   size_t size)
{
	for (size_t i = 0; i < FRAG_COUNT_OF(texts->roots); i++) {
		const struct fragi_node *root = texts->roots[i];

		if (root != NULL && root->file != NULL && strcmp(root->file, err->file) == 0 &&
		    fragi_node_path(root, err->line, err->column, out, size))
			return out;
	}
	return "";
}

static void json_error(const struct texts *texts, const struct frag_err *err, bool first, FILE *out)
{
	enum fragi_failure failure = fragi_err_failure(err);
	char path[1024];

	fprintf(out, "%s{\"code\": \"%s\"", first ? "\n  " : ",\n  ", fragi_failure_name(failure));
	json_text("sentence", err->text, out);
	json_text("file", err->file, out);
	json_number("line", err->line, out);
	json_number("column", err->column, out);
	json_text("path", path_of(texts, err, path, sizeof(path)), out);
	json_text("required", err->required, out);
	json_text("provided", err->provided, out);
	fputc('}', out);
}

static void json_errors(const struct ctl_graph *graph, const struct texts *texts, FILE *out)
{
	const struct fragi_diag *diag = &graph->diag;

	fputs(",\n \"errors\": [", out);
	for (size_t i = 0; i < diag->count; i++)
		json_error(texts, &diag->items[i], i == 0, out);
	if (diag->count == 0 && graph->failure.code != 0)
		json_error(texts, &graph->failure, true, out);
	fprintf(out, "], \"more_errors\": %zu", diag->beyond);
}

/* Of the texts, then of the pools. */
static void json_warnings(const struct ctl_graph *graph, const struct texts *texts, FILE *out)
{
	const struct fragi_diag none = {0};
	const struct fragi_diag *own = graph->spec != NULL ? &graph->spec->warnings : &none;

	fputs(",\n \"warnings\": [", out);
	for (size_t i = 0; i < own->count; i++)
		json_error(texts, &own->items[i], i == 0, out);
	for (size_t i = 0; i < graph->warnings.count; i++)
		json_error(texts, &graph->warnings.items[i], own->count + i == 0, out);
	fprintf(out, "], \"more_warnings\": %zu", own->beyond + graph->warnings.beyond);
}

/* The lines of the arithmetic. */
static void json_prediction(const char *lines, FILE *out)
{
	const char *end;
	char line[1024];

	if (lines == NULL)
		return;
	fputs(",\n \"prediction\": [", out);
	for (bool first = true; (end = strchr(lines, '\n')) != NULL;
	     lines = end + 1, first = false) {
		lines += strspn(lines, " ");
		snprintf(line, sizeof(line), "%.*s", (int)(end - lines), lines);
		fputs(first ? "\n  " : ",\n  ", out);
		fragi_json_text(line, out);
	}
	fputc(']', out);
}

void ctl_report(struct ctl_graph *graph, const struct ctl_composed *composed)
{
	bool is_valid = graph->diag.count == 0 && graph->diag.beyond == 0 &&
			graph->failure.code == 0 && composed != NULL;
	char digest[CTL_DIGEST_SIZE] = "";
	struct texts texts;

	if (!graph->is_json || graph->is_reported)
		return;
	graph->is_reported = true;
	texts_read(&texts, &graph->source.source);
	if (is_valid)
		(void)ctl_plan_digest(graph->spec, composed, digest);
	printf("{\"valid\": %s, \"application\": ", is_valid ? "true" : "false");
	fragi_json_text(graph->spec != NULL ? graph->spec->application : NULL, stdout);
	json_text("digest", digest, stdout);
	if (is_valid)
		printf(", \"counts\": {\"fragments\": %zu, \"operators\": %zu, \"flows\": %zu}",
		       composed->fragment_count, composed->op_count,
		       composed->inner_flow_count + composed->flow_count);
	else
		printf(", \"counts\": null");
	json_errors(graph, &texts, stdout);
	json_warnings(graph, &texts, stdout);
	json_prediction(graph->prediction, stdout);
	printf("}\n");
	fragi_arena_fini(&texts.arena);
}

int ctl_report_verb(int argc, char **argv, const char *program, const char *headline,
		    int (*work)(struct ctl_graph *graph))
{
	struct ctl_graph graph = {0};
	struct ctl_common common = {0};
	struct fragi_texts operands = {0};
	const char *output = NULL;
	const struct fragi_flag table[] = {
		CTL_GRAPH_FLAGS(graph),
		CTL_OUTPUT_FLAG(output),
		CTL_COMMON_FLAGS(common),
	};
	const struct fragi_flags flags = {
		.program = program,
		.usage = "APP.yaml | -e LINE [flags] [-- ARGS]",
		.headline = headline,
		.flags = table,
		.count = FRAG_COUNT_OF(table),
		.rest = "arguments of the application",
	};
	bool help = false;
	int rest, exit_code;

	if (!ctl_begin(&flags, &common, argc, argv, &operands, &rest, &exit_code))
		goto out;
	exit_code = ctl_output(output, &graph.is_json)
			    ? ctl_graph_take(&graph, program, &operands, argv + rest, argc - rest)
			    : CTL_USAGE;
	if (exit_code != CTL_OK)
		goto out;
	exit_code = ctl_graph_read(&graph, &help);
	if (exit_code == CTL_OK && !help)
		exit_code = ctl_in_child(&graph, work);
	if (!help)
		ctl_report(&graph, NULL);
out:
	fragi_texts_fini(&operands);
	ctl_graph_fini(&graph);
	return exit_code;
}
