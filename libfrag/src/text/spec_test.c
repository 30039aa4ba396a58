// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include <base/units.h>
#include <text/builder.h>

/* What a set is about: INPUT and OUTPUT have a port, and all have a value. */
enum kind { CLOCK, DURATION, INPUT, OUTPUT, KINDS };
static const char *const prefixes[KINDS] = {"clock=", "duration=", "input:", "output:"};

struct set {
	enum kind kind;
	const char *fragment, *op, *port, *value;
	struct fragi_node *place;
};

static enum kind kind_of(const char *set)
{
	for (int i = 0; i < KINDS; i++)
		if (strncmp(set, prefixes[i], strlen(prefixes[i])) == 0)
			return (enum kind)i;
	return KINDS;
}

bool fragi_spec_is_test_set(const char *set)
{
	return kind_of(set) != KINDS;
}

/* Cuts `FRAGMENT.OPERATOR.PORT=FILE`; of one fragment its name may be left out. */
static bool cut(struct fragi_builder *builder, const char *text, struct set *set)
{
	const struct fragi_spec *spec = builder->spec;
	char *copy, *value, *dot;

	set->kind = kind_of(text);
	set->place = fragi_builder_alloc(builder, 1, sizeof(*set->place));
	copy = fragi_builder_strdup(builder, text + strlen(prefixes[set->kind]));
	if (set->place == NULL || copy == NULL)
		return false;
	set->place->file = fragi_arena_printf(&builder->spec->arena, "test: %s", text);
	set->place->kind = FRAGI_NODE_SCALAR;
	set->place->text = set->value = copy;
	if (set->kind == CLOCK || set->kind == DURATION)
		return true;
	value = strchr(copy, '=');
	dot = value != NULL ? memrchr(copy, '.', (size_t)(value - copy)) : NULL;
	if (dot == NULL) {
		fragi_builder_error(builder, set->place, NULL,
				    "no port of an operator; write OPERATOR.PORT, or "
				    "FRAGMENT.OPERATOR.PORT");
		return false;
	}
	*value = *dot = '\0';
	set->value = value + 1;
	set->port = dot + 1;
	set->op = copy;
	dot = strchr(copy, '.');
	if (dot != NULL) {
		*dot = '\0';
		set->fragment = copy;
		set->op = dot + 1;
	} else if (spec->fragment_count == 1) {
		set->fragment = spec->fragments[0].name;
	}
	return true;
}

static struct fragi_spec_fragment *fragment_of(struct fragi_builder *builder, const struct set *set)
{
	struct fragi_spec *spec = builder->spec;

	for (size_t i = 0; set->fragment != NULL && i < spec->fragment_count; i++)
		if (strcmp(spec->fragments[i].name, set->fragment) == 0)
			return &spec->fragments[i];
	fragi_builder_error(builder, set->place, NULL, "there is no fragment \"%.80s\"",
			    set->fragment != NULL ? set->fragment : "");
	return NULL;
}

static struct fragi_spec_operator *
op_of(struct fragi_builder *builder, struct fragi_spec_fragment *fragment, const struct set *set)
{
	const char *names[64];
	char advice[512];
	size_t count = 0;

	for (size_t i = 0; i < fragment->operator_count; i++) {
		if (strcmp(fragment->operators[i].name, set->op) == 0)
			return &fragment->operators[i];
		if (count < FRAG_COUNT_OF(names))
			names[count++] = fragment->operators[i].name;
	}
	/* A composer may make it; composing says so if it does not. */
	if (set->kind == OUTPUT && fragment->is_composed)
		return NULL;
	fragi_builder_error(builder, set->place, NULL, "there is no operator \"%.80s\"%s", set->op,
			    fragi_builder_advise(builder, advice, sizeof(advice), set->op,
						 "operators", names, count));
	return NULL;
}

static struct fragi_node *scalar(struct fragi_builder *builder, const struct set *set,
				 const char *text)
{
	struct fragi_node *node = fragi_builder_alloc(builder, 1, sizeof(*node));

	if (node == NULL)
		return NULL;
	*node = *set->place;
	node->text = text;
	node->quoted = true;
	return node;
}

/* Adds `port: file` to the map of a test_source, which its condition shares. */
static void add_file(struct fragi_builder *builder, const struct set *set, struct fragi_node *map)
{
	struct fragi_node *key = scalar(builder, set, set->port);
	struct fragi_node *value = scalar(builder, set, set->value);

	if (key == NULL || value == NULL)
		return;
	value->key = key;
	if (map->last != NULL)
		map->last->next = value;
	else
		map->first = value;
	map->last = value;
	map->count++;
}

/* The operator keeps its name, and nothing else. */
static struct fragi_node *replace(struct fragi_builder *builder, const struct set *set,
				  struct fragi_spec_operator *op)
{
	struct fragi_node *map = scalar(builder, set, NULL);
	struct fragi_spec_setting *settings = fragi_builder_alloc(builder, 1, sizeof(*settings));
	struct fragi_spec_object *condition = fragi_builder_alloc(builder, 1, sizeof(*condition));

	if (map == NULL || settings == NULL || condition == NULL)
		return NULL;
	map->kind = FRAGI_NODE_MAP;
	*settings = (struct fragi_spec_setting){"files", map, set->place};
	*condition = (struct fragi_spec_object){.type = "test_times",
						.settings = settings,
						.setting_count = 1,
						.place = set->place};
	*op = (struct fragi_spec_operator){
		.name = op->name,
		.type = "test_source",
		.replaced = op->type,
		.settings = settings,
		.setting_count = 1,
		.conditions = condition,
		.condition_count = 1,
		.metadata = -1,
		.place = op->place,
	};
	return map;
}

static void apply_input(struct fragi_builder *builder, const struct set *set)
{
	struct fragi_spec_fragment *fragment = fragment_of(builder, set);
	struct fragi_spec_operator *op = fragment != NULL ? op_of(builder, fragment, set) : NULL;
	struct fragi_node *map;

	if (op == NULL)
		return;
	map = op->type != NULL && strcmp(op->type, "test_source") == 0
		      ? (struct fragi_node *)(uintptr_t)op->settings[0].value
		      : replace(builder, set, op);
	if (map != NULL)
		add_file(builder, set, map);
}

#define SINK_CAPACITY 4096

static void apply_output(struct fragi_builder *builder, const struct set *set)
{
	struct fragi_spec_fragment *fragment = fragment_of(builder, set);
	struct fragi_spec_operator *ops;
	struct fragi_spec_flow *flows;
	struct fragi_spec_setting *setting = fragi_builder_alloc(builder, 1, sizeof(*setting));
	struct fragi_spec_end *to = fragi_builder_alloc(builder, 1, sizeof(*to));
	size_t count;

	if (fragment == NULL || setting == NULL || to == NULL ||
	    (op_of(builder, fragment, set) == NULL && !fragment->is_composed))
		return;
	count = fragment->operator_count;
	ops = fragi_builder_alloc(builder, count + 1, sizeof(*ops));
	flows = fragi_builder_alloc(builder, fragment->flow_count + 1, sizeof(*flows));
	if (ops == NULL || flows == NULL)
		return;
	if (count > 0)
		memcpy(ops, fragment->operators, count * sizeof(*ops));
	if (fragment->flow_count > 0)
		memcpy(flows, fragment->flows, fragment->flow_count * sizeof(*flows));
	*setting =
		(struct fragi_spec_setting){"path", scalar(builder, set, set->value), set->place};
	ops[count] = (struct fragi_spec_operator){
		.name = fragi_arena_printf(&builder->spec->arena, "test-output-%zu", count),
		.type = "test_sink",
		.settings = setting,
		.setting_count = 1,
		.metadata = -1,
		.place = set->place,
	};
	*to = (struct fragi_spec_end){.op = ops[count].name, .port = "in", .place = set->place};
	flows[fragment->flow_count++] = (struct fragi_spec_flow){
		.from = {.op = set->op, .port = set->port, .place = set->place},
		.to = to,
		.to_count = 1,
		.capacity = SINK_CAPACITY,
		.place = set->place,
	};
	fragment->operators = ops;
	fragment->operator_count++;
	fragment->flows = flows;
}

static void apply_clock(struct fragi_builder *builder, const struct set *set)
{
	struct fragi_spec *spec = builder->spec;

	for (size_t i = 0; i < spec->fragment_count; i++)
		spec->fragments[i].clock = (struct fragi_spec_clock){.place = NULL};
	spec->clock = (struct fragi_spec_clock){.place = NULL};
	fragi_spec_read_clock(builder, set->place, NULL, &spec->clock);
}

static void apply_duration(struct fragi_builder *builder, const struct set *set)
{
	int64_t ms = 0;

	fragi_read_integer(builder, set->place, NULL, "duration", 1, INT64_C(1) << 40, &ms);
	for (size_t i = 0; i < builder->spec->fragment_count; i++)
		builder->spec->fragments[i].scheduler.max_duration_ms = ms;
}

void fragi_spec_apply_test(struct fragi_builder *builder)
{
	static void (*const apply[KINDS])(struct fragi_builder * builder, const struct set *set) = {
		[CLOCK] = apply_clock,
		[DURATION] = apply_duration,
		[INPUT] = apply_input,
		[OUTPUT] = apply_output,
	};

	for (size_t i = 0; i < builder->source->set_count; i++) {
		struct set set = {.kind = CLOCK};

		if (fragi_spec_is_test_set(builder->source->sets[i]) &&
		    cut(builder, builder->source->sets[i], &set))
			apply[set.kind](builder, &set);
	}
}
