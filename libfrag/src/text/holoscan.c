// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include <base/units.h>
#include <text/holoscan.h>

enum state { BUILT, ABSENT };

static const struct known {
	enum fragi_holoscan_kind kind;
	const char *class_name, *name, *here;
	enum state state;
	const char *advice;
} list[] = {
#define X(kind, class_name, name, here, state, advice)                                             \
	{FRAGI_HOLOSCAN_##kind, class_name, name, here, state, advice},
	FRAGI_HOLOSCAN_LIST(X)
#undef X
};

static const struct kind {
	const char *name, *suffix, *place;
} kinds[] = {
#define X(kind, name, suffix, place) [FRAGI_HOLOSCAN_##kind] = {name, suffix, place},
	FRAGI_HOLOSCAN_KINDS(X)
#undef X
};

/* The first letter decides for most of them: each operator of a graph is looked up here. */
static bool is_name_of(const struct known *known, const char *name)
{
	size_t length;

	if (name[0] != known->name[0] && name[0] != known->class_name[0] &&
	    name[0] != known->here[0])
		return false;
	length = strlen(known->name);
	return strcmp(name, known->class_name) == 0 ||
	       (known->here[0] != '\0' && strcmp(name, known->here) == 0) ||
	       (strncmp(name, known->name, length) == 0 &&
		(name[length] == '\0' || strcmp(name + length, kinds[known->kind].suffix) == 0));
}

/* Of two kinds that share a name, the wanted one. */
static const struct known *find(enum fragi_holoscan_kind kind, const char *name)
{
	const struct known *other = NULL;

	for (size_t i = 0; i < FRAG_COUNT_OF(list); i++) {
		if ((list[i].kind == FRAGI_HOLOSCAN_KEY) != (kind == FRAGI_HOLOSCAN_KEY) ||
		    !is_name_of(&list[i], name))
			continue;
		if (list[i].kind == kind)
			return &list[i];
		other = &list[i];
	}
	return other;
}

const char *fragi_alias(enum fragi_holoscan_kind kind, const char *name)
{
	const struct known *known = find(kind, name);

	return known != NULL && known->kind == kind && known->state == BUILT ? known->here : name;
}

const char *fragi_holoscan_suggest(enum fragi_holoscan_kind kind, const char *name)
{
	const char *names[2 * FRAG_COUNT_OF(list)];
	size_t count = 0;

	for (size_t i = 0; i < FRAG_COUNT_OF(list); i++)
		if (list[i].kind == kind && list[i].state == BUILT) {
			names[count++] = list[i].class_name;
			names[count++] = list[i].name;
		}
	return fragi_suggest(name, names, count);
}

bool fragi_holoscan_explain(char *out, size_t size, enum fragi_holoscan_kind kind, const char *name)
{
	const struct known *known = find(kind, name);
	const char *what;

	if (known == NULL)
		return false;
	what = kinds[known->kind].name;
	if (known->state == ABSENT)
		snprintf(out, size, "%s type \"%.80s\" is not part of frag; %s", what, name,
			 known->advice);
	else if (known->kind != kind)
		snprintf(out, size, "%s type \"%.80s\" names the %s \"%s\"; %s", kinds[kind].name,
			 name, what, known->here, kinds[known->kind].place);
	else
		return false;
	return true;
}

const char *fragi_refuse_type(char *out, size_t size, enum fragi_holoscan_kind kind,
			      const char *name, const char *const *names, size_t count)
{
	const char *near = NULL;
	char advice[512];

	if (fragi_holoscan_explain(out, size, kind, name))
		return out;
	if (fragi_suggest(name, names, count) == NULL)
		near = fragi_holoscan_suggest(kind, name);
	if (near != NULL && strcmp(near, name) == 0) {
		snprintf(
			out, size,
			"%s type \"%.80s\" is one of frag's, and no library that was found has it; install all of frag, or name the library under extensions",
			kinds[kind].name, name);
		return out;
	}
	fragi_advise(advice, sizeof(advice), name, "valid", near != NULL ? &near : names,
		     near != NULL ? 1 : count);
	snprintf(out, size, "unknown %s type \"%.80s\"%s", kinds[kind].name, name, advice);
	return out;
}

const char *fragi_holoscan_explain_key(char *out, size_t size, const char *key)
{
	const struct known *known = find(FRAGI_HOLOSCAN_KEY, key);

	if (known == NULL)
		return NULL;
	snprintf(out, size, "no key \"%s\"; %s", key, known->advice);
	return out;
}
