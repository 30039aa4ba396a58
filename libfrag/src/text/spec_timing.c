// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include <text/builder.h>

/* The timing of inputs: keys of `ports`, and `align` of an operator (frag/timing.h). */

/* A duration that must be more than 0, because 0 stands for none. */
static bool read_time(struct fragi_builder *builder, const struct fragi_node *node,
		      const char *subject, const char *what, int64_t *out_ns)
{
	int64_t ns;

	if (!fragi_read_duration(builder, node, subject, what, &ns))
		return false;
	if (ns == 0)
		fragi_builder_error(builder, node, subject, "%s is 0; leave it out to have none",
				    what);
	*out_ns = ns;
	return ns > 0;
}

static const struct fragi_node *first_key(const struct fragi_node *port)
{
	static const char *const keys[] = {"take", "age", "missing", "default"};
	const struct fragi_node *first = NULL, *one;

	for (size_t i = 0; first == NULL && i < FRAG_COUNT_OF(keys); i++) {
		one = fragi_node_get(port, keys[i]);
		first = one != NULL && one->kind != FRAGI_NODE_NULL ? one : NULL;
	}
	return first;
}

void fragi_spec_read_timing(struct fragi_builder *builder, const struct fragi_node *port,
			    const char *path, struct fragi_spec_port *out_port)
{
	static const char *const takes[] = {"every", "latest_within"};
	static const char *const missings[] = {"wait", "skip", "reuse_last", "default"};
	const struct fragi_node *age = fragi_node_get(port, "age");
	const struct fragi_node *given = fragi_node_get(port, "default");
	const struct fragi_node *first = first_key(port);
	struct fragi_timing *timing = &out_port->timing;
	int take, missing;

	if (first == NULL)
		return;
	take = fragi_read_word(builder, fragi_node_get(port, "take"), path, "take", takes,
			       FRAG_COUNT_OF(takes));
	missing = fragi_read_word(builder, fragi_node_get(port, "missing"), path, "missing",
				  missings, FRAG_COUNT_OF(missings));
	timing->take = take > 0 ? (enum frag_take)take : FRAG_TAKE_EVERY;
	timing->missing = missing > 0 ? (enum frag_missing)missing : FRAG_MISSING_WAIT;
	read_time(builder, age, path, "age", &timing->age_ns);
	if (timing->take == FRAG_TAKE_LATEST_WITHIN && age == NULL)
		fragi_builder_error(builder, fragi_node_get(port, "take"), path,
				    "latest_within needs an age; add for example `age: 50ms`");
	timing->default_text = fragi_read_text(builder, given, path, "default");
	if (given != NULL && missing >= 0 && timing->missing != FRAG_MISSING_DEFAULT)
		fragi_builder_error(builder, given, path,
				    "a default is only used with `missing: default`");
	else if (given != NULL && fragi_node_get(port, "missing") == NULL)
		fragi_builder_error(builder, given, path,
				    "a default is only used with `missing: default`; add that");
	if (out_port->no_condition)
		fragi_builder_error(
			builder, first, path,
			"`condition: none` and %s exclude each other; leave the condition out, since `missing` says whether the tick waits",
			first->key != NULL ? first->key->text : "timing");
	out_port->timed = first;
}

static void read_inputs(struct fragi_builder *builder, struct fragi_node *node, const char *subject,
			struct fragi_spec_align *align)
{
	const struct fragi_node *list = fragi_read_list(builder, node, subject, "align.inputs");
	const char *name;

	if (list == NULL)
		return;
	if (list->count < 2)
		fragi_builder_error(
			builder, node, subject,
			"align.inputs names fewer than two inputs; name those that belong together, or leave it out for all");
	align->inputs = fragi_builder_alloc(builder, list->count, sizeof(*align->inputs));
	for (const struct fragi_node *child = list->first; align->inputs != NULL && child != NULL;
	     child = child->next) {
		name = fragi_read_name(builder, child, subject, "an input of align");
		for (size_t i = 0; name != NULL && i < align->input_count; i++)
			if (strcmp(align->inputs[i], name) == 0)
				fragi_builder_error(builder, child, subject,
						    "align names input \"%s\" twice", name);
		if (name != NULL)
			align->inputs[align->input_count++] = name;
	}
}

void fragi_spec_read_align(struct fragi_builder *builder, struct fragi_node *node,
			   const char *subject, struct fragi_spec_align *out_align)
{
	static const struct fragi_field fields[] = {
		{"inputs", false}, {"window", false}, {"timeout", false}};
	struct fragi_node *map = fragi_read_map(builder, node, subject, "align");

	if (map == NULL)
		return;
	fragi_fields_check(builder, map, subject, fields, FRAG_COUNT_OF(fields));
	if (fragi_node_get(map, "window") == NULL)
		fragi_builder_error(builder, map, subject,
				    "align has no window; add for example `window: 10ms`");
	read_time(builder, fragi_node_get(map, "window"), subject, "align.window",
		  &out_align->window_ns);
	read_time(builder, fragi_node_get(map, "timeout"), subject, "align.timeout",
		  &out_align->timeout_ns);
	read_inputs(builder, fragi_node_get(map, "inputs"), subject, out_align);
	out_align->place = map;
}
