// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include <cond/condition.h>
#include <fragctl/graph.h>
#include <res/resource.h>

/*
 * `fragctl complete WORD...` prints what may stand in the place of the last word, a line each; the
 * words are those after "fragctl". The scripts of the shells (fragctl/completion) call it. The line
 * ":files:PREFIX" asks for names of files behind the prefix. Everything comes from the tables of verbs, flags and types.
 */
/* Prints prefix and name when they begin with what was typed. */
static void offer(const char *typed, const char *prefix, const char *name, const char *suffix)
{
	size_t length = strlen(prefix);

	if (strncmp(typed + length, name, strlen(typed) - length) == 0)
		printf("%s%s%s\n", prefix, name, suffix);
}

static void offer_files(const char *prefix)
{
	printf(":files:%s\n", prefix);
}

/* Prints the words of "table|json". Returns false when it is no such list. */
static bool offer_choices(const char *typed, const char *prefix, const char *list)
{
	char word[64];
	size_t length;

	if (strchr(list, '|') == NULL)
		return false;
	for (; *list != '\0'; list += length + (list[length] == '|')) {
		length = strcspn(list, "|");
		snprintf(word, sizeof(word), "%.*s", (int)length, list);
		offer(typed, prefix, word, "");
	}
	return true;
}

static void offer_operators(struct fragi_registry *registry, const char *typed, const char *prefix)
{
	size_t count;
	const struct fragi_library *const *libraries =
		fragi_registry_libraries(registry, true, &count);

	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < libraries[i]->op_count; k++)
			offer(typed, prefix, libraries[i]->ops[k]->name, "");
}

static void offer_types(const char *typed)
{
	const struct fragi_built_in_condition *condition;
	const struct fragi_built_in_resource *resource;
	struct fragi_registry *registry;

	if (ctl_registry_create(NULL, NULL, &registry) < 0)
		return;
	offer_operators(registry, typed, "");
	for (size_t i = 0; (condition = fragi_built_in_condition_at(i)) != NULL; i++)
		offer(typed, "", condition->type.name, "");
	for (size_t i = 0; (resource = fragi_built_in_resource_at(i)) != NULL; i++)
		offer(typed, "", resource->type.name, "");
	fragi_registry_destroy(registry);
}

/* The values of a parameter, behind its "key=". */
static void offer_values(const struct frag_param *param, const char *typed, const char *prefix)
{
	for (size_t i = 0; param->choices != NULL && param->choices[i] != NULL; i++)
		offer(typed, prefix, param->choices[i], "");
	if (param->kind == FRAG_PARAM_KIND_BOOL) {
		offer(typed, prefix, "true", "");
		offer(typed, prefix, "false", "");
	} else if (param->kind == FRAG_PARAM_KIND_PATH) {
		offer_files(prefix);
	}
}

/* The parameters of a type, the conditions, and what may stand behind an operator. */
static void offer_properties(const struct frag_op_type *type, const char *typed, const char *prefix)
{
	const struct fragi_built_in_condition *condition;

	for (uint32_t i = 0; i < type->param_count; i++)
		offer(typed, prefix, type->params[i].name, "=");
	for (size_t i = 0; (condition = fragi_built_in_condition_at(i)) != NULL; i++)
		offer(typed, prefix, condition->type.name, "=");
	offer(typed, prefix, "name", "=");
	offer(typed, prefix, "!", " ");
}

/*
 * The last word of a pipeline: a type at its beginning and after a `!`, else a parameter of the
 * operator before, or its value.
 */
static void offer_pipeline(const char *typed)
{
	struct fragi_registry *registry;
	const struct frag_op_type *type = NULL;
	const char *at = typed, *library, *word = typed, *equals;
	char name[FRAG_NAME_MAX + 1] = "", prefix[4096];
	size_t length;

	for (; *at != '\0'; at += length) {
		at += strspn(at, " ");
		word = at;
		length = strcspn(at, " ");
		if (at[length] == '\0')
			break;
		if (memchr(at, '=', length) == NULL && length < sizeof(name))
			snprintf(name, sizeof(name), "%.*s", (int)length, at);
	}
	equals = strchr(word, '=');
	length = (size_t)((equals != NULL ? equals + 1 : word) - typed);
	if (length >= sizeof(prefix) || ctl_registry_create(NULL, NULL, &registry) < 0)
		return;
	memcpy(prefix, typed, length);
	prefix[length] = '\0';
	if (name[0] == '\0' || strcmp(name, "!") == 0) {
		offer_operators(registry, typed, prefix);
	} else if (fragi_registry_discover(registry, name, &library) == 0) {
		type = fragi_registry_op(registry, name, NULL);
		if (type != NULL && equals == NULL)
			offer_properties(type, typed, prefix);
		for (uint32_t i = 0; type != NULL && equals != NULL && i < type->param_count; i++)
			if (strncmp(type->params[i].name, word, (size_t)(equals - word)) == 0 &&
			    type->params[i].name[equals - word] == '\0')
				offer_values(&type->params[i], typed, prefix);
	}
	fragi_registry_destroy(registry);
}

/* The words of one command line. */
struct words {
	char **items; /* the verb first */
	int count;
	const char *typed; /* the last one */
};

static const struct fragi_flag *flag_of(const struct fragi_flags *flags, const char *word)
{
	for (size_t i = 0; i < flags->count; i++)
		if ((strncmp(word, "--", 2) == 0 && strcmp(word + 2, flags->flags[i].name) == 0) ||
		    (word[0] == '-' && word[1] != '\0' && word[1] == flags->flags[i].letter &&
		     word[2] == '\0'))
			return &flags->flags[i];
	return NULL;
}

static void offer_word(const struct fragi_flags *flags, void *context)
{
	const struct words *words = context;
	const char *before = words->items[words->count - 2], *typed = words->typed;
	const struct fragi_flag *flag;
	char name[80], prefix[82] = "";
	size_t length = strcspn(typed, "=");

	/* bash makes three words of --output=json, other shells one. */
	if (strncmp(typed, "--", 2) == 0 && typed[length] == '=' && length < sizeof(name)) {
		snprintf(name, sizeof(name), "%.*s", (int)length, typed);
		snprintf(prefix, sizeof(prefix), "%s=", name);
		before = name;
	}
	if (strcmp(typed, "=") == 0)
		typed = "";
	else if (strcmp(before, "=") == 0 && words->count > 2)
		before = words->items[words->count - 3];
	flag = flag_of(flags, before);
	if (flag != NULL && flag->value != NULL && strcmp(flag->value, "LINE") == 0)
		offer_pipeline(typed[0] == '\'' || typed[0] == '"' ? typed + 1 : typed);
	else if (flag != NULL && flag->value != NULL && offer_choices(typed, prefix, flag->value))
		return;
	else if (flag != NULL && flag->value != NULL)
		offer_files(prefix);
	else if (typed[0] == '-')
		for (size_t i = 0; i < flags->count; i++) {
			if (flags->flags[i].help != NULL)
				offer(typed, "--", flags->flags[i].name, "");
		}
	else if (strstr(flags->usage, "TYPE") != NULL)
		offer_types(typed);
	if ((flag == NULL || flag->value == NULL) && typed[0] != '-')
		offer_files("");
}

int ctl_complete(int argc, char **argv)
{
	const struct ctl_verb *verb;
	struct words words = {argv + 1, argc - 1, argc > 1 ? argv[argc - 1] : ""};

	for (size_t i = 0; (verb = ctl_verb_at(i)) != NULL; i++) {
		if (verb->headline == NULL)
			continue;
		if (words.count <= 1)
			offer(words.typed, "", verb->name, "");
		else if (strcmp(verb->name, words.items[0]) == 0)
			ctl_verb_flags(verb, offer_word, &words);
	}
	return CTL_OK;
}
