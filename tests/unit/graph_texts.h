/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_GRAPH_TEXTS_H
#define TESTS_UNIT_GRAPH_TEXTS_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include <text/spec.h>

/* All errors, a line each. */
static inline void expect_errors(const struct fragi_diag *diag, const char *lines)
{
	static char all[128 * 1024];
	char line[1400];
	size_t length = 0;

	all[0] = '\0';
	for (size_t i = 0; i < diag->count; i++)
		length += (size_t)snprintf(all + length, sizeof(all) - length, "%s\n",
					   fragi_err_line(&diag->items[i], line, sizeof(line)));
	cr_expect_str_eq(all, lines, "got:\n%swanted:\n%s", all, lines);
}

/* A graph given as text, called app.yaml. */
struct graph_text {
	const char *text;
	const char *config;            /* NULL: none */
	const char *sets[4], *args[6]; /* up to the first NULL */
	const char *file, *file_text;  /* of from_file */
};

static inline int parse_graph(const struct graph_text *graph, struct fragi_diag *diag,
			      struct fragi_spec **out_spec)
{
	struct fragi_spec_text config = {"more.yaml", graph->config, 0};
	struct fragi_spec_text file = {graph->file, graph->file_text, 0};
	struct fragi_spec_source source = {
		.graph = {"app.yaml", graph->text, strlen(graph->text)},
		.sets = graph->sets,
		.args = graph->args,
	};

	if (graph->config != NULL) {
		config.length = strlen(graph->config);
		source.configs = &config;
		source.config_count = 1;
	}
	if (graph->file != NULL) {
		file.length = strlen(graph->file_text);
		source.files = &file;
		source.file_count = 1;
	}
	while (source.set_count < 4 && graph->sets[source.set_count] != NULL)
		source.set_count++;
	while (source.arg_count < 6 && graph->args[source.arg_count] != NULL)
		source.arg_count++;
	return fragi_spec_parse(&source, diag, out_spec);
}

/* A graph that has nothing wrong. Free with fragi_spec_destroy. */
static inline struct fragi_spec *good_graph(const struct graph_text *graph)
{
	struct fragi_diag diag = {0};
	struct fragi_spec *spec = NULL;
	int r = parse_graph(graph, &diag, &spec);

	expect_errors(&diag, "");
	fragi_diag_fini(&diag);
	cr_assert_eq(r, 0);
	return spec;
}

/* A graph and all that is wrong with it. */
static inline void bad_graph(const struct graph_text *graph, const char *lines)
{
	struct fragi_diag diag = {0};
	struct fragi_spec *spec = NULL;

	cr_expect_eq(parse_graph(graph, &diag, &spec), -22);
	cr_expect_null(spec);
	expect_errors(&diag, lines);
	fragi_diag_fini(&diag);
}

#define good_text(text_) good_graph(&(const struct graph_text){.text = text_})
#define bad_text(text_, lines_) bad_graph(&(const struct graph_text){.text = text_}, lines_)

#endif
