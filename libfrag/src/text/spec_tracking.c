// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include <frag/track.h>
#include <text/builder.h>

/* `tracking`: data flow tracking of a fragment or, at the top, of the application. */
#define SKIP_MAX INT64_C(1000000000000)
#define THRESHOLD_MAX_MS INT64_C(86400000)

void fragi_spec_read_tracking(struct fragi_builder *builder, struct fragi_node *node,
			      const char *subject, struct fragi_spec_tracking *out_tracking)
{
	static const struct fragi_field fields[] = {
		{"num_start_messages_to_skip", false},
		{"num_last_messages_to_discard", false},
		{"latency_threshold", false},
		{"is_limited_tracking", false},
		{"log", false},
		{"num_buffered_messages", false},
		{"print", false},
	};
	struct fragi_spec_tracking tracking = {
		.is_on = true,
		.skip = FRAG_TRACK_SKIP_DEFAULT,
		.discard = FRAG_TRACK_DISCARD_DEFAULT,
		.buffered = FRAG_TRACK_BUFFERED_DEFAULT,
		.print = true,
		.place = node,
	};
	const struct fragi_node *log;

	if (node == NULL)
		return;
	if (node->kind == FRAGI_NODE_SCALAR) {
		if (fragi_read_bool(builder, node, subject, "tracking", &tracking.is_on) &&
		    tracking.is_on)
			*out_tracking = tracking;
		return;
	}
	if (node->kind == FRAGI_NODE_MAP)
		fragi_fields_check(builder, node, subject, fields, FRAG_COUNT_OF(fields));
	else if (fragi_read_map(builder, node, subject, "tracking") == NULL)
		return;
	fragi_read_integer(builder, fragi_node_get(node, "num_start_messages_to_skip"), subject,
			   "num_start_messages_to_skip", 0, SKIP_MAX, &tracking.skip);
	fragi_read_integer(builder, fragi_node_get(node, "num_last_messages_to_discard"), subject,
			   "num_last_messages_to_discard", 0, FRAG_TRACK_DISCARD_MAX,
			   &tracking.discard);
	fragi_read_integer(builder, fragi_node_get(node, "latency_threshold"), subject,
			   "latency_threshold", 0, THRESHOLD_MAX_MS, &tracking.threshold_ms);
	fragi_read_bool(builder, fragi_node_get(node, "is_limited_tracking"), subject,
			"is_limited_tracking", &tracking.is_limited);
	fragi_read_integer(builder, fragi_node_get(node, "num_buffered_messages"), subject,
			   "num_buffered_messages", 1, SKIP_MAX, &tracking.buffered);
	fragi_read_bool(builder, fragi_node_get(node, "print"), subject, "print", &tracking.print);
	log = fragi_node_get(node, "log");
	tracking.log = fragi_read_text(builder, log, subject, "log");
	if (tracking.log != NULL && tracking.log[0] == '\0')
		fragi_builder_error(builder, log, subject,
				    "log is empty; write the name of a file");
	*out_tracking = tracking;
}

/* --track FILE, which arrives as --set tracking=FILE. */
bool fragi_spec_set_tracking(struct fragi_builder *builder, const char *set)
{
	static const char name[] = "tracking=";
	struct fragi_spec_tracking *tracking = &builder->spec->set_tracking;

	if (strncmp(set, name, sizeof(name) - 1) != 0)
		return false;
	*tracking = (struct fragi_spec_tracking){
		.is_on = true,
		.skip = FRAG_TRACK_SKIP_DEFAULT,
		.discard = FRAG_TRACK_DISCARD_DEFAULT,
		.buffered = FRAG_TRACK_BUFFERED_DEFAULT,
		.print = true,
		.log = fragi_builder_strdup(builder, set + sizeof(name) - 1),
	};
	return true;
}

/* What is given for each fragment, for all of them, and on the command line, comes together. */
void fragi_spec_merge_tracking(struct fragi_builder *builder)
{
	struct fragi_spec *spec = builder->spec;
	const char *log = spec->set_tracking.log;

	for (size_t i = 0; spec->tracking.is_on && i < spec->fragment_count; i++)
		if (spec->fragments[i].tracking.is_on)
			fragi_builder_error(
				builder, spec->fragments[i].tracking.place->key,
				spec->fragments[i].name,
				"tracking is given at the top too, for all fragments; remove one");
	if (log == NULL)
		return;
	if (log[0] == '\0')
		fragi_builder_error(builder, builder->root, NULL,
				    "--track names no file; write for example --track flow.log");
	if (!spec->tracking.is_on) {
		spec->tracking = spec->set_tracking;
		for (size_t i = 0; i < spec->fragment_count; i++)
			spec->fragments[i].tracking.is_on = false;
	}
	spec->tracking.log = log;
}
