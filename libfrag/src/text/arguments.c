// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include <base/units.h>
#include <text/builder.h>

/* The place of the words after `--`. */
static const struct fragi_node command_line = {.file = NULL};

static size_t choice_count(const struct fragi_spec_argument *argument)
{
	size_t count = 0;

	while (argument->choices != NULL && argument->choices[count] != NULL)
		count++;
	return count;
}

static bool is_choice(const struct fragi_spec_argument *argument, const char *value)
{
	size_t count = choice_count(argument);

	for (size_t i = 0; i < count; i++)
		if (strcmp(argument->choices[i], value) == 0)
			return true;
	return count == 0;
}

static void declare_choices(struct fragi_builder *builder, struct fragi_node *list,
			    const char *subject, struct fragi_spec_argument *argument)
{
	const char **choices;
	size_t count = 0;

	list = fragi_read_list(builder, list, subject, "choices");
	if (list == NULL)
		return;
	choices = fragi_builder_alloc(builder, list->count + 1, sizeof(*choices));
	if (choices == NULL)
		return;
	for (struct fragi_node *child = list->first; child != NULL; child = child->next) {
		choices[count] = fragi_read_text(builder, child, subject, "a choice");
		if (choices[count] != NULL)
			count++;
	}
	argument->choices = choices;
}

static void declare_default(struct fragi_builder *builder, struct fragi_node *node,
			    const char *subject, struct fragi_spec_argument *argument)
{
	char advice[512];
	const char *text;

	if (node == NULL || node->kind == FRAGI_NODE_NULL)
		return;
	text = fragi_read_text(builder, node, subject, "default");
	if (text == NULL)
		return;
	if (strstr(text, "${") != NULL) {
		fragi_builder_error(
			builder, node, subject,
			"default \"%.80s\" refers to an argument; arguments cannot refer to one another",
			text);
	} else if (!is_choice(argument, text)) {
		fragi_builder_error(builder, node, subject,
				    "default \"%.80s\" is not one of the choices%s", text,
				    fragi_builder_advise(builder, advice, sizeof(advice), text,
							 "choices", argument->choices,
							 choice_count(argument)));
	}
	argument->is_boolean =
		!node->quoted && (strcmp(text, "true") == 0 || strcmp(text, "false") == 0);
	argument->default_text = text;
	argument->value = text;
}

static void declare_one(struct fragi_builder *builder, struct fragi_node *map,
			struct fragi_node *node, struct fragi_spec_argument *argument)
{
	static const struct fragi_key keys[] = {
		{"default"},
		{"choices"},
		{"help", FRAGI_KEY_TEXT, FRAGI_MEMBER(struct fragi_spec_argument, help)},
	};
	const char *name = node->key->text;
	char subject[FRAG_NAME_MAX + 32];

	if (!fragi_check_name(builder, node->key, "arguments", "argument", name)) {
		map->lost_a_name = true;
		return;
	}
	if (strcmp(name, "help") == 0)
		fragi_builder_error(
			builder, node->key, "arguments",
			"help is taken: --help lists the arguments; choose another name");
	snprintf(subject, sizeof(subject), "argument %s", name);
	argument->name = name;
	fragi_builder_note(builder, &builder->arguments, name, argument);
	if (!fragi_section_read(builder, node, subject, "an argument", FRAGI_KEYS(keys), argument))
		return;
	declare_choices(builder, fragi_node_get(node, "choices"), subject, argument);
	declare_default(builder, fragi_node_get(node, "default"), subject, argument);
}

void fragi_arguments_declare(struct fragi_builder *builder, struct fragi_node *map)
{
	struct fragi_spec *spec = builder->spec;

	map = fragi_read_map(builder, map, NULL, "arguments");
	if (map == NULL)
		return;
	spec->arguments = fragi_builder_alloc(builder, map->count, sizeof(*spec->arguments));
	for (struct fragi_node *child = map->first; spec->arguments != NULL && child != NULL;
	     child = child->next) {
		struct fragi_spec_argument *argument = &spec->arguments[spec->argument_count];
		size_t errors = builder->diag->count;

		declare_one(builder, map, child, argument);
		argument->is_invalid = builder->diag->count != errors;
		if (argument->name != NULL)
			spec->argument_count++;
	}
}

/* Of the subgraph that is read, its parameters too. */
static const char *advise_argument(struct fragi_builder *builder, char *out, size_t size,
				   const char *name)
{
	const char *names[256];
	size_t count = 0;

	if (builder->locals != NULL)
		for (const struct fragi_node *local = builder->locals->first;
		     local != NULL && count < FRAG_COUNT_OF(names); local = local->next)
			if (local->key != NULL)
				names[count++] = local->key->text;
	for (size_t i = 0; i < builder->spec->argument_count && count < FRAG_COUNT_OF(names); i++)
		names[count++] = builder->spec->arguments[i].name;
	if (count == 0)
		snprintf(out, size, "; none are declared");
	else
		fragi_builder_advise(builder, out, size, name, "declared", names, count);
	return out;
}

/* Whether an unknown argument may be one whose declaration was refused. */
static bool may_be_refused(const struct fragi_builder *builder)
{
	const struct fragi_node *map = fragi_node_get(builder->root, "arguments");

	return map != NULL && (map->is_reported || map->lost_a_name ||
			       (map->kind != FRAGI_NODE_MAP && map->kind != FRAGI_NODE_NULL));
}

const struct fragi_spec_argument *fragi_arguments_find(struct fragi_builder *builder,
						       const struct fragi_node *place,
						       const char *name)
{
	const struct fragi_spec_argument *argument = fragi_strmap_get(&builder->arguments, name);
	char advice[512];

	if (argument == NULL && !may_be_refused(builder))
		fragi_builder_error(builder, place, NULL, "unknown argument \"%.80s\"%s", name,
				    advise_argument(builder, advice, sizeof(advice), name));
	return argument;
}

/* Sets the value of an argument; booleans are stored as "true" or "false". */
static void give_value(struct fragi_builder *builder, struct fragi_spec_argument *argument,
		       const char *value)
{
	char subject[FRAG_NAME_MAX + 32], advice[512];
	bool is_true;

	snprintf(subject, sizeof(subject), "argument --%s", argument->name);
	if (argument->is_boolean) {
		if (fragi_parse_bool(value, &is_true) < 0) {
			fragi_builder_error(builder, &command_line, subject,
					    "\"%.80s\" is neither true nor false", value);
			return;
		}
		argument->value = is_true ? "true" : "false";
		return;
	}
	if (!is_choice(argument, value)) {
		fragi_builder_error(builder, &command_line, subject,
				    "\"%.80s\" is not one of its choices%s", value,
				    fragi_builder_advise(builder, advice, sizeof(advice), value,
							 "choices", argument->choices,
							 choice_count(argument)));
		return;
	}
	argument->value = fragi_builder_strdup(builder, value);
}

/* Reads one argument at args[i]. Returns the number of texts that it used. */
static size_t give_one(struct fragi_builder *builder, const char *const *args, size_t count)
{
	const char *text = args[0], *equals = strchr(text, '=');
	char name[FRAG_NAME_MAX + 1], advice[512];
	struct fragi_spec_argument *argument = NULL;
	size_t length;

	if (strncmp(text, "--", 2) != 0 || text[2] == '\0') {
		fragi_builder_error(
			builder, &command_line, NULL,
			"argument \"%.80s\": not understood; write --NAME VALUE or --NAME=VALUE",
			text);
		return 1;
	}
	text += 2;
	length = equals != NULL ? (size_t)(equals - text) : strlen(text);
	if (length < sizeof(name)) {
		memcpy(name, text, length);
		name[length] = '\0';
		argument = fragi_strmap_get(&builder->arguments, name);
	}
	if (argument == NULL) {
		snprintf(name, sizeof(name), "%.*s",
			 (int)(length < FRAG_NAME_MAX ? length : FRAG_NAME_MAX), text);
		if (!may_be_refused(builder))
			fragi_builder_error(builder, &command_line, NULL, "unknown argument --%s%s",
					    name,
					    advise_argument(builder, advice, sizeof(advice), name));
		return equals == NULL && count > 1 && strncmp(args[1], "--", 2) != 0 ? 2 : 1;
	}
	if (equals != NULL) {
		give_value(builder, argument, equals + 1);
		return 1;
	}
	if (count > 1 && strncmp(args[1], "--", 2) != 0) {
		give_value(builder, argument, args[1]);
		return 2;
	}
	if (argument->is_boolean)
		argument->value = "true";
	else
		fragi_builder_error(builder, &command_line, NULL,
				    "argument --%s: its value is missing; write --%s=VALUE", name,
				    name);
	return 1;
}

void fragi_arguments_give(struct fragi_builder *builder)
{
	const struct fragi_spec_source *source = builder->source;

	for (size_t i = 0; i < source->arg_count; i++)
		if (strcmp(source->args[i], "--help") == 0)
			builder->spec->help_wanted = true;
	for (size_t i = 0; i < source->arg_count && !builder->spec->help_wanted;)
		i += give_one(builder, &source->args[i], source->arg_count - i);
}

const char *fragi_spec_argument(const struct fragi_spec *spec, const char *name)
{
	for (size_t i = 0; i < spec->argument_count; i++)
		if (strcmp(spec->arguments[i].name, name) == 0)
			return spec->arguments[i].value;
	return NULL;
}

/* "--source VALUE   where frames come from (replayer, aja; default replayer)" */
static char *help_line(struct fragi_spec *spec, const struct fragi_spec_argument *argument)
{
	char flag[FRAG_NAME_MAX + 16], choices[512] = "";
	const char *def = argument->default_text;
	size_t length = 0;

	snprintf(flag, sizeof(flag), "--%s%s", argument->name,
		 argument->is_boolean ? "" : " VALUE");
	for (size_t i = 0; i < choice_count(argument) && length + 80 < sizeof(choices); i++)
		length += (size_t)snprintf(choices + length, sizeof(choices) - length, "%s%.64s",
					   i > 0 ? ", " : "", argument->choices[i]);
	return fragi_arena_printf(&spec->arena, "  %-24s %s%s(%s%s%s%s)\n", flag,
				  argument->help != NULL ? argument->help : "",
				  argument->help != NULL ? " " : "", choices,
				  choices[0] != '\0' ? "; " : "",
				  def != NULL ? "default " : "no default", def != NULL ? def : "");
}

const char *fragi_spec_arguments_help(struct fragi_spec *spec)
{
	const char **lines =
		fragi_arena_alloc(&spec->arena, (spec->argument_count + 1) * sizeof(*lines));
	size_t size = 1, at = 0;
	char *text;

	if (spec->argument_count == 0)
		return "  (this application declares no arguments)\n";
	for (size_t i = 0; lines != NULL && i < spec->argument_count; i++) {
		lines[i] = help_line(spec, &spec->arguments[i]);
		if (lines[i] == NULL)
			return "";
		size += strlen(lines[i]);
	}
	text = lines != NULL ? fragi_arena_alloc(&spec->arena, size) : NULL;
	if (text == NULL)
		return "";
	for (size_t i = 0; i < spec->argument_count; i++) {
		memcpy(text + at, lines[i], strlen(lines[i]));
		at += strlen(lines[i]);
	}
	return text;
}
