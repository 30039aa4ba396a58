/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_GRAPH_H
#define CTL_GRAPH_H

#include <fragctl/ctl.h>
#include <type/registry.h>
#include <text/spec.h>

/* An application's graph as the command line names it. Zeroed: none. */
struct ctl_graph {
	const char *path;
	const char *line; /* -e: a pipeline, of which the graph is made; NULL: path is a file */
	const char *library_path; /* DIR:DIR; NULL: none */
	struct fragi_texts configs, sets;
	char **args; /* what followed `--` */
	int arg_count;
	bool is_json;     /* --output json: ctl_report is to say what is right or wrong */
	bool is_reported; /* it has */
	/* filled by ctl_graph_read */
	char made_path[64]; /* of the graph that was made of line */
	struct fragi_source source;
	struct fragi_spec *spec;
	/* what is wrong with it; then spec is what could be read (NULL: nothing) */
	struct fragi_diag diag;
	struct frag_err failure; /* the first of all errors, or why it could not be read at all */
	/* of a graph without errors: pools that are too small, and what the prediction shows */
	struct fragi_diag warnings;
	const char *prediction; /* lines for people, while they are reported; NULL: none */
	/* filled by ctl_graph_forget */
	char *application, *app_folder;
};

#define CTL_GRAPH_FLAGS(graph)                                                                         \
	{.name = "pipeline",                                                                           \
	 .letter = 'e',                                                                                \
	 .no_env = true,                                                                               \
	 .value = "LINE",                                                                              \
	 .help = "a graph in a line instead of APP.yaml: 'ping_tx count=10 ! ping_rx'",                \
	 .text = &(graph).line},                                                                       \
		{.name = "config",                                                                     \
		 .value = "FILE",                                                                      \
		 .help = "YAML with the keys below the graph's config:, merged over them; repeatable", \
		 .texts = &(graph).configs},                                                           \
		{.name = "set",                                                                        \
		 .value = "F.OP.PARAM=VALUE",                                                          \
		 .help = "a parameter; wins over the graph; repeatable",                               \
		 .texts = &(graph).sets},                                                              \
	{                                                                                              \
		.name = "library-path", .no_env = true, .value = "DIR:DIR",                            \
		.help = "folders of the libraries that graphs may name",                               \
		.text = &(graph).library_path                                                          \
	}

/* As sentences name it. */
static inline const char *ctl_graph_name(const struct ctl_graph *graph)
{
	return graph->line != NULL ? "-e" : graph->path;
}
/* Takes the one operand APP.yaml, or none after -e. Returns CTL_OK or CTL_USAGE, complained. */
int ctl_graph_take(struct ctl_graph *graph, const char *program, const struct fragi_texts *operands,
		   char **args, int arg_count);
/*
 * Frees what was parsed, but for the application's name and folder: who runs the graph parses the
 * source again. Returns 0 or -ENOMEM.
 */
int ctl_graph_forget(struct ctl_graph *graph);
/* A registry for composing in this process, where libraries may be paths. Returns an exit code. */
int ctl_graph_registry(struct ctl_graph *graph, struct fragi_registry **out_registry);
void ctl_graph_fini(struct ctl_graph *graph);

/* graph_read.c */
/*
 * Reads and parses; prints the errors, if there are any also those that only plugins show. Returns
 * CTL_OK, or the exit code of graph->failure; *out_help: --help was among the arguments and has
 * been answered.
 */
int ctl_graph_read(struct ctl_graph *graph, bool *out_help);
/*
 * Composes it in this process, a child, and prints what is wrong, with what the text alone has
 * shown, or that all is right. Returns an exit code.
 */
int ctl_graph_check(struct ctl_graph *graph);

/* validate.c */
/*
 * A verb that says what is right or wrong with a graph, to people or with --output json to
 * programs: reads the graph that the command line names, and does work on it in a child
 * (ctl_in_child). Returns an exit code.
 */
int ctl_report_verb(int argc, char **argv, const char *program, const char *headline,
		    int (*work)(struct ctl_graph *graph));

/* A registry with the folders of a text DIR:DIR (NULL: none). Returns 0 or negative errno. */
int ctl_registry_create(const char *library_path, const char *app_folder,
			struct fragi_registry **out_registry);
#define CTL_ERR_LINE_SIZE 1400u /* of an error and its place, for people */
/* All errors, a line each, on stderr. */
void ctl_diag_print(const struct fragi_diag *diag);
/* The exit code of the first error; CTL_OK: there is none. */
int ctl_diag_exit(const struct fragi_diag *diag);
/* Exit code for a negative errno of composing. */
int ctl_exit_of(int r);

#endif
