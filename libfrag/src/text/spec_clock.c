// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <string.h>

#include <base/units.h>
#include <text/builder.h>
#include <text/holoscan.h>
#include <text/subgraph.h>

/* `clock`: of a fragment, of its scheduler or, at the top, of all fragments. */

static enum fragi_clock_kind read_kind(struct fragi_builder *builder, const struct fragi_node *node,
				       const char *subject)
{
	static const char *const words[] = {"realtime", "manual", "synthetic"};
	const char *text = fragi_read_text(builder, node, subject, "the type of clock");
	char advice[256];

	if (text == NULL)
		return FRAGI_CLOCK_MACHINE;
	text = fragi_alias(FRAGI_HOLOSCAN_CLOCK, text);
	for (size_t i = 0; i < FRAG_COUNT_OF(words); i++)
		if (strcmp(text, words[i]) == 0)
			return FRAGI_CLOCK_REALTIME + (enum fragi_clock_kind)i;
	fragi_builder_error(builder, node, subject, "no clock \"%.80s\"%s", text,
			    fragi_builder_advise(builder, advice, sizeof(advice), text, "clocks",
						 words, FRAG_COUNT_OF(words)));
	return FRAGI_CLOCK_MACHINE;
}

static void read_number(struct fragi_builder *builder, const struct fragi_node *node,
			const char *subject, const char *what, double min, double max, double *out)
{
	const char *text = fragi_read_text(builder, node, subject, what);
	double value;

	if (text == NULL)
		return;
	if (fragi_parse_f64(text, &value) < 0 || !(value >= min && value <= max))
		fragi_builder_error(builder, node, subject,
				    "%s \"%.80s\" is not a number from %.10g to %.10g", what, text,
				    min, max);
	else
		*out = value;
}

static void read_realtime(struct fragi_builder *builder, struct fragi_node *map,
			  const char *subject, struct fragi_clock_config *config)
{
	static const struct fragi_field fields[] = {
		{"type", false},
		{"initial_time_offset", false},
		{"initial_time_scale", false},
		{"use_time_since_epoch", false},
	};

	fragi_fields_check(builder, map, subject, fields, FRAG_COUNT_OF(fields));
	read_number(builder, fragi_node_get(map, "initial_time_offset"), subject,
		    "initial_time_offset", -FRAGI_CLOCK_OFFSET_MAX_S, FRAGI_CLOCK_OFFSET_MAX_S,
		    &config->offset_s);
	read_number(builder, fragi_node_get(map, "initial_time_scale"), subject,
		    "initial_time_scale", FRAGI_CLOCK_SCALE_MIN, FRAGI_CLOCK_SCALE_MAX,
		    &config->scale);
	fragi_read_bool(builder, fragi_node_get(map, "use_time_since_epoch"), subject,
			"use_time_since_epoch", &config->since_epoch);
}

static void read_virtual(struct fragi_builder *builder, struct fragi_node *map, const char *subject,
			 struct fragi_clock_config *config)
{
	static const struct fragi_field fields[] = {{"type", false}, {"initial_timestamp", false}};

	fragi_fields_check(builder, map, subject, fields, FRAG_COUNT_OF(fields));
	fragi_read_integer(builder, fragi_node_get(map, "initial_timestamp"), subject,
			   "initial_timestamp", 0, FRAGI_CLOCK_TIME_MAX_NS - 1,
			   &config->initial_ns);
}

void fragi_spec_read_clock(struct fragi_builder *builder, struct fragi_node *node,
			   const char *subject, struct fragi_spec_clock *out_clock)
{
	struct fragi_clock_config config = {.scale = 1};

	if (node == NULL || node->kind == FRAGI_NODE_NULL || node->is_reported)
		return;
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
			read_realtime(builder, node, subject, &config);
		else if (config.kind != FRAGI_CLOCK_MACHINE)
			read_virtual(builder, node, subject, &config);
	}
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
	const size_t limit_bytes = arena->limit_bytes;
	int r = 0;

	fragi_builder_init(&builder, &nothing, &scratch, diag);
	if (make_map(&builder, type, settings, count, &map))
		fragi_spec_read_clock(&builder, &map, subject, &clock);
	if (builder.no_memory)
		r = -ENOMEM;
	else if (fragi_builder_failed(&builder))
		r = -EINVAL;
	fragi_builder_fini(&builder);
	fragi_diag_fini(&scratch.warnings);
	fragi_diag_fini(&scratch.remarks);
	*arena = scratch.arena;
	arena->limit_bytes = limit_bytes;
	if (r == 0)
		*out_config = clock.config;
	return r;
}
