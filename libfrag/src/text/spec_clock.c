// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <text/builder.h>
#include <text/subgraph.h>

/* `clock`: of a fragment, of its scheduler or, at the top, of all fragments. */

static enum fragi_clock_kind read_kind(struct fragi_builder *builder, const struct fragi_node *node,
				       const char *subject)
{
	static const char *const words[] = {"realtime", "manual", "synthetic"};
	int i = fragi_read_section_type(builder, node, subject, "the type of clock",
					FRAGI_HOLOSCAN_CLOCK, "clock", words, FRAG_COUNT_OF(words));

	return i >= 0 ? FRAGI_CLOCK_REALTIME + (enum fragi_clock_kind)i : FRAGI_CLOCK_MACHINE;
}

#define MEMBER(m) FRAGI_MEMBER(struct fragi_clock_config, m)
static const struct fragi_key realtime_keys[] = {
	{"type"},
	{"initial_time_offset", FRAGI_KEY_NUMBER, MEMBER(offset_s),
	 .least = -FRAGI_CLOCK_OFFSET_MAX_S, .most = FRAGI_CLOCK_OFFSET_MAX_S},
	{"initial_time_scale", FRAGI_KEY_NUMBER, MEMBER(scale), .least = FRAGI_CLOCK_SCALE_MIN,
	 .most = FRAGI_CLOCK_SCALE_MAX, .normal = 1},
	{"use_time_since_epoch", FRAGI_KEY_BOOL, MEMBER(since_epoch)},
	{"max_error", FRAGI_KEY_TIME, MEMBER(max_error_ns)},
};
static const struct fragi_key virtual_keys[] = {
	{"type"},
	{"initial_timestamp", FRAGI_KEY_INTEGER, MEMBER(initial_ns),
	 .max = FRAGI_CLOCK_TIME_MAX_NS - 1},
};

/* `clock: {max_error: 200us}`: the clock of the machine, but not any time of other machines. */
static const struct fragi_key machine_keys[] = {
	{"max_error", FRAGI_KEY_TIME, MEMBER(max_error_ns)},
};

static bool is_of_machine(const struct fragi_node *node)
{
	return node->kind == FRAGI_NODE_MAP && fragi_node_get(node, "type") == NULL &&
	       fragi_node_get(node, "max_error") != NULL;
}

/* A host has one timeline of a peer, so all its fragments have one limit. */
static void refuse_own_error(struct fragi_builder *builder, const struct fragi_node *node,
			     const char *subject)
{
	fragi_builder_error(
		builder, fragi_node_get(node, "max_error"), subject,
		"max_error holds for the whole application; move it to clock at the top of the graph");
}

void fragi_spec_read_clock(struct fragi_builder *builder, struct fragi_node *node,
			   const char *subject, void *out)
{
	struct fragi_spec_clock *out_clock = out;
	struct fragi_clock_config config = {0};

	if (node == NULL || node->kind == FRAGI_NODE_NULL || node->is_reported)
		return;
	fragi_keys_default(FRAGI_KEYS(realtime_keys), &config);
	if (is_of_machine(node)) {
		fragi_section_read(builder, node, subject, "clock", FRAGI_KEYS(machine_keys),
				   &config);
		if (out_clock != &builder->spec->clock)
			refuse_own_error(builder, node, subject);
		out_clock->config = config;
		return;
	}
	out_clock->place = node;
	if (node->kind == FRAGI_NODE_SCALAR) {
		config.kind = read_kind(builder, node, subject);
	} else if (fragi_read_map(builder, node, subject, "clock") != NULL) {
		if (fragi_node_get(node, "type") == NULL)
			fragi_builder_error(
				builder, node, subject,
				"clock lacks type; give it realtime, manual or synthetic");
		config.kind = read_kind(builder, fragi_node_get(node, "type"), subject);
		if (config.kind == FRAGI_CLOCK_REALTIME)
			fragi_section_read(builder, node, subject, "clock",
					   FRAGI_KEYS(realtime_keys), &config);
		else if (config.kind != FRAGI_CLOCK_MACHINE)
			fragi_section_read(builder, node, subject, "clock",
					   FRAGI_KEYS(virtual_keys), &config);
	}
	if (config.max_error_ns != 0 && out_clock != &builder->spec->clock)
		refuse_own_error(builder, node, subject);
	out_clock->config = config;
}

static void refuse_second(struct fragi_builder *builder, const struct fragi_spec_clock *clock,
			  const char *subject, const char *first)
{
	fragi_builder_error(builder, clock->place->key, subject,
			    "clock is given for %s too; remove one", first);
}

/* A fragment has one clock: its own, its scheduler's, or that of all fragments. */
void fragi_spec_merge_clocks(struct fragi_builder *builder)
{
	struct fragi_spec *spec = builder->spec;

	for (size_t i = 0; i < spec->fragment_count; i++) {
		struct fragi_spec_fragment *fragment = &spec->fragments[i];
		struct fragi_spec_clock *of_scheduler = &fragment->scheduler.clock;

		if (fragment->clock.place != NULL && of_scheduler->place != NULL)
			refuse_second(builder, of_scheduler, fragment->name, "its fragment");
		if (fragment->clock.place == NULL)
			fragment->clock = *of_scheduler;
		if (fragment->clock.place != NULL && spec->clock.place != NULL)
			refuse_second(builder, &fragment->clock, fragment->name,
				      "all fragments at the top");
	}
}

static bool put(struct fragi_builder *builder, struct fragi_node *map, const char *key,
		const struct fragi_node *value)
{
	struct fragi_node *node = fragi_builder_alloc(builder, 2, sizeof(*node));

	if (node == NULL)
		return false;
	node[0] = *value;
	node[1] = (struct fragi_node){.kind = FRAGI_NODE_SCALAR, .text = key};
	node[0].key = &node[1];
	fragi_subgraph_append(map, &node[0]);
	return true;
}

/* A map of the type and the settings, of which later ones win. */
static bool make_map(struct fragi_builder *builder, const char *type,
		     const struct fragi_spec_setting *settings, size_t count,
		     struct fragi_node *map)
{
	const struct fragi_node text = {.kind = FRAGI_NODE_SCALAR, .text = type};
	bool is_whole = put(builder, map, "type", &text);
	size_t later;

	for (size_t i = 0; i < count; i++) {
		for (later = i + 1;
		     later < count && strcmp(settings[later].name, settings[i].name) != 0; later++)
			;
		if (later == count)
			is_whole &= put(builder, map, settings[i].name, settings[i].value);
	}
	return is_whole;
}

int fragi_spec_clock_from_settings(struct fragi_arena *arena, struct fragi_diag *diag,
				   const char *subject, const char *type,
				   const struct fragi_spec_setting *settings, size_t count,
				   struct fragi_clock_config *out_config)
{
	static const struct fragi_spec_source nothing = {0};
	struct fragi_spec scratch = {.arena = *arena};
	struct fragi_node map = {.kind = FRAGI_NODE_MAP};
	struct fragi_spec_clock clock = {0};
	struct fragi_builder builder;
	int r;

	fragi_builder_init(&builder, &nothing, &scratch, diag);
	if (make_map(&builder, type, settings, count, &map))
		fragi_spec_read_clock(&builder, &map, subject, &clock);
	r = fragi_builder_end_part(&builder, arena);
	if (r == 0)
		*out_config = clock.config;
	return r;
}
