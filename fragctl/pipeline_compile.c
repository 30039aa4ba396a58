// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <base/alloc.h>
#include <base/log.h>
#include <base/printable.h>
#include <fragctl/composed.h>
#include <fragctl/pipeline.h>

/*
 * The graph is made in a child, since the libraries that have its types are somebody's code. The
 * child parses the line, writes the graph into a memfd that it shares with this process, checks the
 * graph as `validate` does, and prints what is wrong at its place in the line.
 */

/* Returns how many bytes take one column. */
static size_t print_character(const char *at)
{
	size_t length = fragi_printable(at);

	if (length > 0)
		fwrite(at, length, 1, stderr);
	else
		fputc(*at == '\t' ? '\t' : '?', stderr);
	return length > 0 ? length : 1;
}

/* The line with a caret below the place. */
static void print_caret(const char *line, size_t at)
{
	size_t length;

	fputs("  ", stderr);
	for (const char *c = line; *c != '\0';)
		c += print_character(c);
	fputs("\n  ", stderr);
	for (size_t i = 0; i < at && line[i] != '\0'; i += length > 0 ? length : 1) {
		length = fragi_printable(line + i);
		fputc(line[i] == '\t' ? '\t' : ' ', stderr);
	}
	fputs("^\n", stderr);
}

static void print_errors(const struct ctl_pipeline *pipeline, const struct fragi_diag *diag)
{
	char *shown = strdup(pipeline->line);
	bool hides;

	if (shown != NULL)
		frag_hide_credentials(shown, 0);
	hides = shown == NULL || strcmp(shown, pipeline->line) != 0;
	free(shown);
	for (size_t i = 0; i < diag->count; i++) {
		fragi_log_print("fragctl: %s\n", diag->items[i].text);
		if (diag->items[i].line > 0 && !hides)
			print_caret(pipeline->line, (size_t)diag->items[i].column - 1);
	}
	if (diag->beyond > 0)
		fragi_log_print("and %zu more errors\n", diag->beyond);
}

/*
 * Puts places in the line where the errors have places in the graph that was made of it. Nobody
 * else sees the name of that file.
 */
static void diag_translate(struct fragi_diag *diag, const char *file, const size_t *places,
			   size_t count)
{
	for (size_t i = 0; i < diag->count; i++) {
		struct frag_err *err = &diag->items[i];

		bool is_of_graph = strcmp(err->file, file) == 0;

		if (is_of_graph)
			snprintf(err->file, sizeof(err->file), "%s", CTL_PIPELINE_NAME);
		if (!is_of_graph || err->line < 1 || (size_t)err->line > count) {
			err->line = err->column = 0;
			continue;
		}
		err->column = (int)places[err->line - 1] + 1;
		err->line = 1;
	}
	fragi_diag_sort(diag, 0);
}

/* Checks the graph that was written. */
static int compose(struct ctl_graph *graph)
{
	struct ctl_composed composed;
	int exit_code = ctl_composed_make(graph, &composed);

	ctl_composed_fini(&composed);
	return exit_code;
}

static int check(const struct ctl_pipeline *pipeline, struct ctl_graph *graph, const size_t *places,
		 size_t count)
{
	struct frag_err *err = &graph->failure;
	int r = fragi_source_read(&graph->source, graph->path, graph->configs.items,
				  graph->configs.count, graph->sets.items, graph->sets.count,
				  (const char *const *)graph->args, (size_t)graph->arg_count, err);
	int exit_code;

	if (r < 0)
		return ctl_fail(fragi_failure_exit(fragi_err_failure(err)), "%s", err->text);
	fragi_log_threshold = FRAGI_LOG_ERROR; /* in this child: what follows warns again */
	r = fragi_spec_parse_partial(&graph->source.source, &graph->diag, &graph->spec);
	exit_code = graph->spec != NULL ? compose(graph) : ctl_exit_of(r);
	diag_translate(&graph->diag, graph->path, places, count);
	print_errors(pipeline, &graph->diag);
	return exit_code;
}

static int cannot_make(struct ctl_graph *graph, int r)
{
	fragi_err_fail(&graph->failure, FRAGI_FAILURE_OTHER, NULL, r,
		       "cannot make a graph of the line (%s)", frag_strerror(r));
	return ctl_fail(CTL_FAILED, "%s", graph->failure.text);
}

static int compile(struct ctl_graph *graph)
{
	struct ctl_pipeline pipeline;
	struct fragi_registry *registry = NULL;
	const size_t *places = NULL;
	size_t count = 0;
	FILE *out = NULL;
	int r = ctl_pipeline_parse(&pipeline, graph->line), exit_code;

	if (r == 0)
		r = ctl_registry_create(graph->library_path, NULL, &registry);
	if (r == 0) {
		out = fopen(graph->path, "we");
		r = out != NULL ? ctl_pipeline_write(&pipeline, registry, out, &places, &count)
				: -errno;
	}
	print_errors(&pipeline, &pipeline.diag);
	if (pipeline.diag.count > 0)
		graph->failure = pipeline.diag.items[0];
	if (r == 0)
		exit_code = check(&pipeline, graph, places, count);
	else if (pipeline.diag.count > 0)
		exit_code = ctl_diag_exit(&pipeline.diag);
	else
		exit_code = cannot_make(graph, r);
	if (out != NULL)
		fclose(out);
	fragi_registry_destroy(registry);
	ctl_pipeline_fini(&pipeline);
	return exit_code;
}

int ctl_pipeline_compile(struct ctl_graph *graph)
{
	int fd = memfd_create("pipeline", MFD_CLOEXEC);

	if (fd < 0)
		return cannot_make(graph, -errno);
	/* Other processes of this run open it, so it is named by this process's id. */
	snprintf(graph->made_path, sizeof(graph->made_path), "/proc/%d/fd/%d", (int)getpid(), fd);
	graph->path = graph->made_path;
	return ctl_in_child(graph, compile);
}
