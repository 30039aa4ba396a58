/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_GRAPH_H
#define CTL_GRAPH_H

#include <fragctl/ctl.h>
#include <type/registry.h>
#include <text/spec.h>

/* An application's graph as the command line names it. Zeroed: none. */
struct ctl_graph {
	const char *path;
	const char *library_path; /* DIR:DIR; NULL: none */
	struct fragi_texts configs, sets;
	char **args; /* what followed `--` */
	int arg_count;
	/* filled by ctl_graph_read */
	struct fragi_source source;
	struct fragi_spec *spec;
	/* what is wrong with it; then spec is what could be read (NULL: nothing) */
	struct fragi_diag diag;
	struct frag_err failure; /* the first of these, or why it could not be read at all */
};

#define CTL_GRAPH_FLAGS(graph)                                                                     \
	{.name = "config",                                                                         \
	 .value = "FILE",                                                                          \
	 .help = "a file that is merged over the graph's config; repeatable",                      \
	 .texts = &(graph).configs},                                                               \
		{.name = "set",                                                                    \
		 .value = "F.OP.PARAM=VALUE",                                                      \
		 .help = "a parameter; wins over the graph; repeatable",                           \
		 .texts = &(graph).sets},                                                          \
	{                                                                                          \
		.name = "library-path", .no_env = true, .value = "DIR:DIR",                        \
		.help = "folders of the libraries that graphs may name",                           \
		.text = &(graph).library_path                                                      \
	}

/* Takes the one operand APP.yaml. Returns CTL_OK or CTL_USAGE, complained. */
int ctl_graph_take(struct ctl_graph *graph, const char *program, const struct fragi_texts *operands,
		   char **args, int arg_count);
/*
 * Reads and parses; prints the errors, if there are any also those that only plugins show. Returns
 * CTL_OK, CTL_USAGE, CTL_MISSING or CTL_FAILED; *out_help: --help was among the arguments and has
 * been answered.
 */
int ctl_graph_read(struct ctl_graph *graph, bool *out_help);
/*
 * Composes what could be read, in a child, and prints all errors, those of the text included, or
 * that there are none. Returns an exit code.
 */
int ctl_graph_check(struct ctl_graph *graph);
/* A registry for composing in this process, where libraries may be paths. Returns an exit code. */
int ctl_graph_registry(const struct ctl_graph *graph, struct fragi_registry **out_registry);
void ctl_graph_fini(struct ctl_graph *graph);

/* A registry with the folders of a text DIR:DIR (NULL: none). Returns 0 or negative errno. */
int ctl_registry_create(const char *library_path, const char *app_folder,
			struct fragi_registry **out_registry);
/* All errors, a line each, on stderr. */
void ctl_diag_print(const struct fragi_diag *diag);
/* The exit code of the first error; CTL_OK: there is none. */
int ctl_diag_exit(const struct fragi_diag *diag);
/* Exit code for a negative errno of composing. */
int ctl_exit_of(int r);

#endif
