// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <base/alloc.h>
#include <base/log.h>
#include <fragctl/graph.h>
#include <fragctl/python.h>

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
	char line[CTL_ERR_LINE_SIZE];

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
