// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <base/alloc.h>
#include <base/log.h>
#include <fragctl/graph.h>
#include <fragctl/pipeline.h>
#include <fragctl/python.h>

#define LINE_MAX_BYTES 1400

int ctl_exit_of(int r)
{
	return r == 0 ? CTL_OK
		      : fragi_failure_exit(fragi_err_failure(&(struct frag_err){.code = r}));
}

int ctl_diag_exit(const struct fragi_diag *diag)
{
	if (diag->count > 0)
		return fragi_failure_exit(fragi_err_failure(&diag->items[0]));
	return diag->beyond > 0 ? CTL_FAILED : CTL_OK;
}

void ctl_diag_print(const struct fragi_diag *diag)
{
	char line[LINE_MAX_BYTES];

	for (size_t i = 0; i < diag->count; i++)
		fragi_log_print("%s%s\n", diag->items[i].file[0] == '\0' ? "fragctl: " : "",
				fragi_err_line(&diag->items[i], line, sizeof(line)));
	if (diag->beyond > 0)
		fragi_log_print("and %zu more errors\n", diag->beyond);
}

int ctl_graph_take(struct ctl_graph *graph, const char *program, const struct fragi_texts *operands,
		   char **args, int arg_count)
{
	graph->args = args;
	graph->arg_count = arg_count;
	if (graph->line != NULL && operands->count > 0)
		return ctl_refuse(program, "%s stands beside -e; put the whole pipeline in quotes",
				  operands->items[0]);
	if (graph->line != NULL)
		return CTL_OK;
	if (operands->count != 1)
		return ctl_refuse(
			program, "%s; see %s --help",
			operands->count == 0
				? "name the application's graph, APP.yaml"
				: "give one graph; what is for the application follows --",
			program);
	graph->path = operands->items[0];
	if (strpbrk(graph->path, "! ") != NULL && access(graph->path, F_OK) < 0)
		return ctl_refuse(
			program,
			"there is no file \"%.200s\"; a graph in a line stands behind -e: %s -e '%.200s'",
			graph->path, program, graph->path);
	return CTL_OK;
}

static void fail_with(const struct frag_err *err, int code)
{
	char line[LINE_MAX_BYTES];

	ctl_fail_document(code, fragi_err_failure(err), fragi_err_line(err, line, sizeof(line)));
}

/* All errors are printed; the document has the first. */
static int refuse_invalid(struct ctl_graph *graph)
{
	int code = ctl_graph_check(graph);

	if (code != CTL_OK && graph->diag.count > 0)
		fail_with(&graph->diag.items[0], code);
	return code;
}

int ctl_graph_read(struct ctl_graph *graph, bool *out_help)
{
	struct frag_err *err = &graph->failure;
	int r;

	*err = (struct frag_err)FRAG_ERR_INIT;
	*out_help = false;
	r = graph->line != NULL ? ctl_pipeline_compile(graph) : CTL_OK;
	if (r != CTL_OK)
		return r;
	r = fragi_source_read(&graph->source, graph->path, graph->configs.items,
			      graph->configs.count, graph->sets.items, graph->sets.count,
			      (const char *const *)graph->args, (size_t)graph->arg_count, err);
	if (r < 0) {
		frag_err_set(err, r, "%s", frag_strerror(r));
		return ctl_fail_with(fragi_err_failure(err), "%s", err->text);
	}
	if (graph->line != NULL)
		graph->source.source.graph.file = "graph of -e"; /* as --print-yaml prints it */
	r = fragi_spec_parse_partial(&graph->source.source, &graph->diag, &graph->spec);
	if (graph->spec != NULL)
		fragi_spec_log_remarks(graph->spec);
	if (r < 0 && graph->spec != NULL)
		return refuse_invalid(graph);
	if (r < 0) {
		ctl_diag_print(&graph->diag);
		if (graph->diag.count != 0)
			*err = graph->diag.items[0];
		frag_err_set(err, r, "%s", frag_strerror(r));
		r = fragi_failure_exit(fragi_err_failure(err));
		fail_with(err, r);
		return r;
	}
	assert(graph->spec != NULL && "a graph without an error has been read");
	if (graph->spec->help_wanted) {
		*out_help = true;
		fputs(fragi_spec_arguments_help(graph->spec), stdout);
	}
	return CTL_OK;
}

int ctl_registry_create(const char *library_path, const char *app_folder,
			struct fragi_registry **out_registry)
{
	const struct fragi_registry_config config = {.library_folders = library_path,
						     .paths = FRAGI_LIBRARY_PATHS_ANY,
						     .app_folder = app_folder};

	ctl_python_begin();
	return fragi_registry_create(&config, out_registry);
}

int ctl_graph_registry(struct ctl_graph *graph, struct fragi_registry **out_registry)
{
	int r = ctl_registry_create(graph->library_path, graph->spec->app_folder, out_registry);

	if (r == 0)
		return CTL_OK;
	frag_err_set(&graph->failure, r, "cannot look for libraries (%s)", frag_strerror(r));
	return ctl_fail(CTL_FAILED, "%s", graph->failure.text);
}

int ctl_graph_forget(struct ctl_graph *graph)
{
	const char *folder = graph->spec->app_folder; /* a graph of --expression has none */

	graph->application = fragi_strdup(graph->spec->application);
	graph->app_folder = folder != NULL ? fragi_strdup(folder) : NULL;
	if (graph->application == NULL || (folder != NULL && graph->app_folder == NULL))
		return -ENOMEM;
	fragi_spec_destroy(graph->spec);
	graph->spec = NULL;
	return 0;
}

void ctl_graph_fini(struct ctl_graph *graph)
{
	fragi_free(graph->application);
	fragi_free(graph->app_folder);
	fragi_spec_destroy(graph->spec);
	fragi_diag_fini(&graph->diag);
	fragi_diag_fini(&graph->warnings);
	fragi_source_fini(&graph->source);
	fragi_texts_fini(&graph->configs);
	fragi_texts_fini(&graph->sets);
	memset(graph, 0, sizeof(*graph));
}
