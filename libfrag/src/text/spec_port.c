// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include <base/policy.h>
#include <text/builder.h>

/* `ports` of an operator, with the timing of inputs (frag/timing.h), and `align`. */

static const char *const conditions[] = {"none", NULL};
static const char *const takes[] = {"every", "latest_within", NULL};
static const char *const missings[] = {"wait", "skip", "reuse_last", "default", NULL};

#define MEMBER(m) FRAGI_MEMBER(struct fragi_spec_port, m)
#define TIMING 3 /* the first key of an input's timing, and how many there are */
#define TIMING_KEYS 4
static const struct fragi_key port_keys[] = {
	{"capacity", FRAGI_KEY_INTEGER, MEMBER(capacity), .min = 1, .max = FRAGI_CAPACITY_MAX},
	{"policy", MEMBER(policy), .read = fragi_spec_read_policy},
	{"condition", FRAGI_KEY_WORD, MEMBER(no_condition), .min = true, .words = conditions},
	{"take", FRAGI_KEY_WORD, MEMBER(timing.take), .words = takes},
	{"age", FRAGI_KEY_TIME, MEMBER(timing.age_ns)},
	{"missing", FRAGI_KEY_WORD, MEMBER(timing.missing), .words = missings},
	{"default", FRAGI_KEY_TEXT, MEMBER(timing.default_text)},
	{"rate", FRAGI_KEY_TIME, MEMBER(rate_ns)},
	{"size", FRAGI_KEY_INTEGER, MEMBER(size), .max = FRAGI_CAPACITY_MAX},
};
static const struct fragi_key align_keys[] = {
	{"inputs"},
	{"window", FRAGI_KEY_TIME, FRAGI_MEMBER(struct fragi_spec_align, window_ns),
	 .what = "align.window", .missing = "align has no window; add for example `window: 10ms`"},
	{"timeout", FRAGI_KEY_TIME, FRAGI_MEMBER(struct fragi_spec_align, timeout_ns),
	 .what = "align.timeout"},
};

static const struct fragi_node *first_of_timing(const struct fragi_node *port)
{
	const struct fragi_node *one;

	for (size_t i = TIMING; i < TIMING + TIMING_KEYS; i++) {
		one = fragi_node_get(port, port_keys[i].name);
		if (one != NULL && one->kind != FRAGI_NODE_NULL)
			return one;
	}
	return NULL;
}

static void read_timing(struct fragi_builder *builder, const struct fragi_node *map,
			const char *path, struct fragi_spec_port *port)
{
	const enum frag_missing unknown = (enum frag_missing) - 1;
	const struct fragi_node *given = fragi_node_get(map, "default");
	const struct fragi_node *first = first_of_timing(map);
	struct fragi_timing *timing = &port->timing;

	if (first == NULL)
		return;
	timing->missing = unknown;
	fragi_keys_read(builder, map, path, &port_keys[TIMING], TIMING_KEYS, port);
	if (timing->take == FRAG_TAKE_LATEST_WITHIN && fragi_node_get(map, "age") == NULL)
		fragi_builder_error(builder, fragi_node_get(map, "take"), path,
				    "latest_within needs an age; add for example `age: 50ms`");
	if (given != NULL && timing->missing != unknown && timing->missing != FRAG_MISSING_DEFAULT)
		fragi_builder_error(builder, given, path,
				    "a default is only used with `missing: default`");
	else if (given != NULL && fragi_node_get(map, "missing") == NULL)
		fragi_builder_error(builder, given, path,
				    "a default is only used with `missing: default`; add that");
	if (timing->missing == unknown)
		timing->missing = FRAG_MISSING_WAIT;
	if (port->no_condition)
		fragi_builder_error(
			builder, first, path,
			"`condition: none` and %s exclude each other; leave the condition out, since `missing` says whether the tick waits",
			first->key != NULL ? first->key->text : "timing");
	port->timed = first;
}

static void read_port(struct fragi_builder *builder, struct fragi_node *node, const char *subject,
		      struct fragi_spec_port *port)
{
	char path[3 * (FRAG_NAME_MAX + 2)];

	port->place = node->key;
	if (!fragi_check_name(builder, node->key, subject, "port", node->key->text))
		return;
	port->name = node->key->text;
	snprintf(path, sizeof(path), "%s.%s", subject, port->name);
	node = fragi_read_map(builder, node, path, "a port");
	if (node == NULL)
		return;
	fragi_keys_check(builder, node, path, FRAGI_KEYS(port_keys));
	fragi_keys_read(builder, node, path, port_keys, TIMING, port);
	port->size = -1;
	fragi_keys_read(builder, node, path, &port_keys[TIMING + TIMING_KEYS], 2, port);
	read_timing(builder, node, path, port);
}

void fragi_spec_read_ports(struct fragi_builder *builder, struct fragi_node *map,
			   const char *subject, void *out)
{
	struct fragi_spec_operator *op = out;

	map = fragi_read_map(builder, map, subject, "ports");
	if (map == NULL)
		return;
	op->ports = fragi_builder_alloc(builder, map->count, sizeof(*op->ports));
	for (struct fragi_node *child = map->first; op->ports != NULL && child != NULL;
	     child = child->next)
		read_port(builder, child, subject, &op->ports[op->port_count++]);
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

void fragi_spec_read_align(struct fragi_builder *builder, struct fragi_node *map,
			   const char *subject, void *out)
{
	struct fragi_spec_align *align = out;

	if (!fragi_section_read(builder, map, subject, "align", FRAGI_KEYS(align_keys), align))
		return;
	read_inputs(builder, fragi_node_get(map, "inputs"), subject, align);
	align->place = map;
}
