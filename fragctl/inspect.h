/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CTL_INSPECT_H
#define CTL_INSPECT_H

#include <stdio.h>

#include <base/flags.h>
#include <text/spec.h>

/* One type that a graph may name, whatever it is. */
struct ctl_type {
	enum ctl_type_kind {
		CTL_OPERATOR,
		CTL_CONDITION,
		CTL_RESOURCE,
		CTL_COMPOSER,
		CTL_SUBGRAPH,
		CTL_VALUE,
	} kind;
	const char *name, *headline, *description;
	const char *library, *plugin, *version; /* NULL: part of libfrag */
	const struct frag_port *ports;
	uint32_t port_count;
	bool adds_ports;    /* setup may add some */
	size_t saved_bytes; /* the most that it saves (save and restore); 0: it saves nothing */
	int64_t save_period_ns;
	const struct frag_param *params;
	uint32_t param_count;
	const struct frag_type *value; /* of CTL_VALUE: the type that ports and fields name */
};

/* A library that was named. */
struct ctl_library {
	const char *path, *plugin, *version;
	char sha256[FRAGI_SHA256_DIGITS + 1]; /* empty: the module crypto is missing */
};

const char *ctl_type_kind_name(enum ctl_type_kind kind);
/* For people: a table of all, or everything about one. */
void ctl_types_print(const struct ctl_type *types, size_t count, FILE *out);
void ctl_type_print(const struct ctl_type *type, FILE *out);
void ctl_library_print(const struct ctl_library *library, FILE *out);
/* One JSON document: {"types": [...], "libraries": [...]} */
void ctl_types_print_json(const struct ctl_type *types, size_t count,
			  const struct ctl_library *libraries, size_t library_count, FILE *out);
/* The schema of graphs (docs/graph.schema.json) with these types. */
void ctl_types_print_schema(const struct ctl_type *types, size_t count, FILE *out);

/* What to look at, and how to show it. */
struct ctl_inspection {
	const char *library_path;
	const struct fragi_texts *operands; /* types, and libraries, which are opened */
	bool json;
	bool is_schema; /* all types, also with libraries */
};
/* Opens libraries in a child, since they may crash. Returns the exit code. */
int ctl_inspect_run(const char *verb, struct ctl_inspection *inspection);

/* A parameter's default as a graph would write it, into out; NULL: it has none. */
const char *ctl_param_default(const struct frag_param *param, char *out, size_t size);

#endif
