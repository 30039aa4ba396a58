/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_PIPELINE_H
#define CTL_PIPELINE_H

#include <base/arena.h>
#include <fragctl/graph.h>

/*
 * A graph in a line, `ping_tx count=10 ! forward ! ping_rx`:
 * - an element is the type of an operator, followed by its parameters as key=value; name=NAME names
 *   the operator, which is otherwise called as its type
 * - `a ! b` is a flow; an element without a `!` before it begins a new chain
 * - `NAME.` or `NAME.PORT` stands for an element of the line
 * - a key that is no parameter of the operator but the type of a condition adds that condition; the
 *   value is that of the condition's first parameter
 * Blanks separate words; a value with blanks stands in quotes.
 *
 * The line is compiled into a graph as in a file. Places in the line are offsets in bytes.
 */
#define CTL_PIPELINE_NAME "-e" /* of the line, where errors name a file */

struct ctl_property {
	const char *key, *value;
	size_t at;
};

struct ctl_element {
	const char *type, *name; /* of a reference: type is NULL */
	const char *port;        /* of a reference: NULL when it names none */
	size_t at;
	struct ctl_property *properties;
	size_t property_count;
};

struct ctl_flow {
	size_t from, to; /* elements */
	size_t at;
};

struct ctl_pipeline {
	const char *line;
	struct fragi_arena arena;
	struct ctl_element *elements; /* in the order of the line; references too */
	size_t element_count;
	struct ctl_flow *flows;
	size_t flow_count;
	/* the place of each is in the line: CTL_PIPELINE_NAME, 1, and the offset + 1 */
	struct fragi_diag diag;
};

/* Parses a line; errors go into its diag. Returns 0, -EINVAL or -ENOMEM. fini is always due. */
int ctl_pipeline_parse(struct ctl_pipeline *pipeline, const char *line);
void ctl_pipeline_fini(struct ctl_pipeline *pipeline);
/* Adds an error. Returns -EINVAL. */
int ctl_pipeline_error(struct ctl_pipeline *pipeline, size_t at, const char *format, ...)
	FRAG_PRINTF(3, 4);

/*
 * Writes the graph into out, with the types that the registry finds.
 * - out_places: receives an array, owned by the pipeline: for each line of the graph, from 0, the
 *   place in the line that it was made of
 * Returns 0, -EINVAL with errors in pipeline->diag, or -ENOMEM.
 */
int ctl_pipeline_write(struct ctl_pipeline *pipeline, struct fragi_registry *registry, FILE *out,
		       const size_t **out_places, size_t *out_count);

/*
 * Compiles graph->line into a memfd and checks it as `validate` does, in a child. Errors are
 * printed with the line and a caret. On success graph->path leads to the graph. Returns an exit
 * code.
 */
int ctl_pipeline_compile(struct ctl_graph *graph);

#endif
