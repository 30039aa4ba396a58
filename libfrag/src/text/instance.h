/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_TEXT_INSTANCE_H
#define FRAGI_TEXT_INSTANCE_H

#include <text/spec.h>

/*
 * Instances that a composer makes of subgraphs that the graph declares. They are read where they
 * are made, by the code that expands those of the graph itself.
 */

/* An interface port: a port of an operator, or of a nested instance that its host composes. */
struct fragi_spec_interface {
	const char *name;
	const char *op, *port; /* op: qualified; port NULL: the only one */
	bool is_directed;
	enum frag_dir dir;
	const struct fragi_node *place;
};

struct fragi_spec_instance {
	struct fragi_spec_fragment content; /* with qualified names */
	struct fragi_spec_interface *interfaces;
	size_t interface_count;
};

/* Whether the graph declares a subgraph of that name, and not only a configuration for it. */
bool fragi_spec_declares(const struct fragi_spec *spec, const char *subgraph);
/*
 * Reads an instance. All that it points to lies in arena, or in spec.
 * - fragment, name: where it is made, and its qualified name
 * - outer: the path of the instance in which it is made; NULL: none
 * - settings, count: what it is given
 * Returns 0; -EINVAL with errors in diag; -ENOMEM.
 */
int fragi_spec_instance_read(const struct fragi_spec *spec, struct fragi_arena *arena,
			     struct fragi_diag *diag, const char *fragment, const char *outer,
			     const char *name, const char *subgraph,
			     const struct fragi_spec_setting *settings, size_t count,
			     struct fragi_spec_instance *out_instance);

/*
 * Settings of the graph over an operator of such an instance: what `over` says counts. Conditions
 * are not in it. NULL: out of memory.
 */
const struct fragi_spec_operator *fragi_spec_operator_over(struct fragi_arena *arena,
							   const struct fragi_spec_operator *under,
							   const struct fragi_spec_operator *over);

#endif
