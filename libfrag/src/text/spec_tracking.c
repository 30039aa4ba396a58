// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include <frag/track.h>
#include <text/builder.h>

/* `tracking`: data flow tracking of a fragment or, at the top, of the application. */
#define SKIP_MAX INT64_C(1000000000000)
#define THRESHOLD_MAX_MS INT64_C(86400000)

#define MEMBER(m) FRAGI_MEMBER(struct fragi_spec_tracking, m)
static const struct fragi_key keys[] = {
	{"num_start_messages_to_skip", FRAGI_KEY_INTEGER, MEMBER(skip), .max = SKIP_MAX,
	 .usual = FRAG_TRACK_SKIP_DEFAULT},
	{"num_last_messages_to_discard", FRAGI_KEY_INTEGER, MEMBER(discard),
	 .max = FRAG_TRACK_DISCARD_MAX, .usual = FRAG_TRACK_DISCARD_DEFAULT},
	{"latency_threshold", FRAGI_KEY_INTEGER, MEMBER(threshold_ms), .max = THRESHOLD_MAX_MS},
	{"is_limited_tracking", FRAGI_KEY_BOOL, MEMBER(is_limited)},
	{"probes"},
	{"log", FRAGI_KEY_TEXT, MEMBER(log)},
	{"num_buffered_messages", FRAGI_KEY_INTEGER, MEMBER(buffered), .min = 1, .max = SKIP_MAX,
	 .usual = FRAG_TRACK_BUFFERED_DEFAULT},
	{"print", FRAGI_KEY_BOOL, MEMBER(print), .usual = true},
};

void fragi_spec_read_tracking(struct fragi_builder *builder, struct fragi_node *node,
			      const char *subject, void *out)
{
	struct fragi_spec_tracking *out_tracking = out;
	struct fragi_spec_tracking tracking = {.is_on = true, .place = node};

	fragi_keys_default(FRAGI_KEYS(keys), &tracking);
	if (node == NULL)
		return;
	if (node->kind == FRAGI_NODE_SCALAR) {
		if (fragi_read_bool(builder, node, subject, "tracking", &tracking.is_on) &&
		    tracking.is_on)
			*out_tracking = tracking;
		return;
	}
	if (!fragi_section_read(builder, node, subject, "tracking", FRAGI_KEYS(keys), &tracking))
		return;
	if (tracking.log != NULL && tracking.log[0] == '\0')
		fragi_builder_error(builder, fragi_node_get(node, "log"), subject,
				    "log is empty; write the name of a file");
	tracking.log = fragi_builder_path(builder, tracking.log);
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
		.is_on = true, .log = fragi_builder_path(builder, set + sizeof(name) - 1)};
	fragi_keys_default(FRAGI_KEYS(keys), tracking);
	return true;
}

/* Once all operators are known. */
static void read_probes(struct fragi_builder *builder, struct fragi_spec_tracking *tracking,
			const char *fragment)
{
	struct fragi_node *list = fragi_read_list(
		builder, fragi_node_get(tracking->place, "probes"), fragment, "probes");

	if (list == NULL)
		return;
	tracking->probes = fragi_builder_alloc(builder, list->count, sizeof(*tracking->probes));
	for (const struct fragi_node *child = list->first; tracking->probes && child != NULL;
	     child = child->next)
		if (fragi_spec_find_op(builder, child, fragment, fragment,
				       &tracking->probes[tracking->probe_count]) == 1)
			tracking->probe_count++;
}

/* Each fragment begins its log anew, and would overwrite that of another one. */
static void check_logs(struct fragi_builder *builder)
{
	struct fragi_strmap logs = {0};

	for (size_t i = 0; i < builder->spec->fragment_count; i++) {
		const struct fragi_spec_fragment *fragment = &builder->spec->fragments[i];
		const struct fragi_spec_tracking *tracking = &fragment->tracking;
		const char *first;

		if (!tracking->is_on || tracking->log == NULL)
			continue;
		first = fragi_strmap_get(&logs, tracking->log);
		if (first == NULL)
			fragi_builder_note(builder, &logs, tracking->log, fragment->name);
		else
			fragi_builder_error(
				builder, fragi_node_get(tracking->place, "log"), fragment->name,
				"log names the file of fragment %s; name another file, or write tracking at the top, for all fragments",
				first);
	}
	fragi_strmap_fini(&logs);
}

/* What is given for each fragment, for all of them, and on the command line, comes together. */
void fragi_spec_merge_tracking(struct fragi_builder *builder)
{
	struct fragi_spec *spec = builder->spec;
	const char *log = spec->set_tracking.log;

	read_probes(builder, &spec->tracking,
		    fragi_node_get(builder->root, "fragments") != NULL ? NULL : spec->application);
	for (size_t i = 0; i < spec->fragment_count; i++)
		if (spec->fragments[i].tracking.place != spec->tracking.place)
			read_probes(builder, &spec->fragments[i].tracking, spec->fragments[i].name);
	for (size_t i = 0; spec->tracking.is_on && i < spec->fragment_count; i++)
		if (spec->fragments[i].tracking.is_on)
			fragi_builder_error(
				builder, spec->fragments[i].tracking.place->key,
				spec->fragments[i].name,
				"tracking is given at the top too, for all fragments; remove one");
	if (log == NULL) {
		check_logs(builder);
		return;
	}
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
