// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/arena.h>
#include <fragctl/describe.h>
#include <fragctl/json.h>
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

static void json_place(struct ctl_json *json, const char *name, int number)
{
	if (number > 0)
		ctl_json_number(json, name, number);
	else
		ctl_json_text(json, name, NULL);
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

static void json_error(struct ctl_json *json, const struct texts *texts, const struct frag_err *err)
{
	char path[1024];

	ctl_json_gap(json, "\n  ");
	ctl_json_open(json, NULL, '{');
	ctl_json_text(json, "code", fragi_failure_name(fragi_err_failure(err)));
	ctl_json_optional(json, "sentence", err->text);
	ctl_json_optional(json, "file", err->file);
	json_place(json, "line", err->line);
	json_place(json, "column", err->column);
	ctl_json_optional(json, "path", path_of(texts, err, path, sizeof(path)));
	ctl_json_optional(json, "required", err->required);
	ctl_json_optional(json, "provided", err->provided);
	ctl_json_close(json, '}');
}

static void json_errors(struct ctl_json *json, const struct ctl_graph *graph,
			const struct texts *texts)
{
	const struct fragi_diag *diag = &graph->diag;

	ctl_json_gap(json, "\n ");
	ctl_json_open(json, "errors", '[');
	for (size_t i = 0; i < diag->count; i++)
		json_error(json, texts, &diag->items[i]);
	if (diag->count == 0 && graph->failure.code != 0)
		json_error(json, texts, &graph->failure);
	ctl_json_close(json, ']');
	ctl_json_unsigned(json, "more_errors", diag->beyond);
}

/* Of the texts, then of the pools. */
static void json_warnings(struct ctl_json *json, const struct ctl_graph *graph,
			  const struct texts *texts)
{
	const struct fragi_diag none = {0};
	const struct fragi_diag *own = graph->spec != NULL ? &graph->spec->warnings : &none;

	ctl_json_gap(json, "\n ");
	ctl_json_open(json, "warnings", '[');
	for (size_t i = 0; i < own->count; i++)
		json_error(json, texts, &own->items[i]);
	for (size_t i = 0; i < graph->warnings.count; i++)
		json_error(json, texts, &graph->warnings.items[i]);
	ctl_json_close(json, ']');
	ctl_json_unsigned(json, "more_warnings", own->beyond + graph->warnings.beyond);
}

/* The lines of the arithmetic. */
static void json_prediction(struct ctl_json *json, const char *lines)
{
	const char *end;
	char line[1024];

	if (lines == NULL)
		return;
	ctl_json_gap(json, "\n ");
	ctl_json_open(json, "prediction", '[');
	for (; (end = strchr(lines, '\n')) != NULL; lines = end + 1) {
		lines += strspn(lines, " ");
		snprintf(line, sizeof(line), "%.*s", (int)(end - lines), lines);
		ctl_json_gap(json, "\n  ");
		ctl_json_text(json, NULL, line);
	}
	ctl_json_close(json, ']');
}

static void json_counts(struct ctl_json *json, const struct ctl_composed *composed)
{
	ctl_json_open(json, "counts", '{');
	ctl_json_unsigned(json, "fragments", composed->fragment_count);
	ctl_json_unsigned(json, "operators", composed->op_count);
	ctl_json_unsigned(json, "flows", composed->inner_flow_count + composed->flow_count);
	ctl_json_close(json, '}');
}

void ctl_report(struct ctl_graph *graph, const struct ctl_composed *composed)
{
	bool is_valid = graph->diag.count == 0 && graph->diag.beyond == 0 &&
			graph->failure.code == 0 && composed != NULL;
	char digest[CTL_DIGEST_SIZE] = "";
	struct ctl_json json;
	struct texts texts;

	if (!graph->is_json || graph->is_reported)
		return;
	graph->is_reported = true;
	texts_read(&texts, &graph->source.source);
	if (is_valid)
		(void)ctl_plan_digest(graph->spec, composed, digest);
	json = ctl_json_begin(stdout);
	ctl_json_bool(&json, "valid", is_valid);
	ctl_json_text(&json, "application", graph->spec != NULL ? graph->spec->application : NULL);
	ctl_json_optional(&json, "digest", digest);
	if (is_valid)
		json_counts(&json, composed);
	else
		ctl_json_text(&json, "counts", NULL);
	json_errors(&json, graph, &texts);
	json_warnings(&json, graph, &texts);
	json_prediction(&json, graph->prediction);
	ctl_json_end(&json);
	fragi_arena_fini(&texts.arena);
}
