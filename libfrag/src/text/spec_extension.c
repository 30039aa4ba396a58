// SPDX-License-Identifier: Apache-2.0
#include <ctype.h>
#include <string.h>

#include <text/builder.h>

#define EXTENSION_MAX 255 /* bytes of a file's name */

static const char *read_library(struct fragi_builder *builder, const struct fragi_node *node,
				const char *subject)
{
	const char *text = fragi_read_text(builder, node, subject, "an extension");

	if (text == NULL || (text[0] != '\0' && strlen(text) <= EXTENSION_MAX))
		return text;
	fragi_builder_error(
		builder, node, subject,
		"extension \"%.80s\" is not a valid name of a shared object; write for example libview.so",
		text);
	return NULL;
}

/* Returns the digits in lower case; NULL: there are none, or an error was reported. */
static const char *read_sha256(struct fragi_builder *builder, const struct fragi_node *node,
			       const char *subject, const char *library)
{
	const char *text = fragi_read_text(builder, node, subject, "sha256");
	char *digits;

	if (text == NULL)
		return NULL;
	if (strlen(text) != FRAGI_SHA256_DIGITS ||
	    strspn(text, "0123456789abcdefABCDEF") != FRAGI_SHA256_DIGITS) {
		fragi_builder_error(
			builder, node, subject,
			"sha256 \"%.80s\" is not %d hexadecimal digits; `fragctl inspect %.200s` prints them",
			text, FRAGI_SHA256_DIGITS, library != NULL ? library : "LIBRARY");
		return NULL;
	}
	digits = fragi_builder_strdup(builder, text);
	for (char *at = digits; at != NULL && *at != '\0'; at++)
		*at = (char)tolower((unsigned char)*at);
	return digits;
}

/*
 * A library is loaded once in a host, whichever of its fragments names it first. So the sha256 that
 * one mention states holds for all mentions, wherever their fragments run.
 */
static void note_sha256(struct fragi_builder *builder, const struct fragi_node *node,
			const char *subject, const struct fragi_spec_extension *extension)
{
	struct fragi_spec_extension *first = fragi_strmap_get(&builder->pinned, extension->library);

	if (first == NULL) {
		first = fragi_builder_alloc(builder, 1, sizeof(*first));
		if (first == NULL)
			return;
		*first = *extension;
		fragi_builder_note(builder, &builder->pinned, extension->library, first);
	} else if (strcmp(first->sha256, extension->sha256) != 0) {
		fragi_builder_error(
			builder, node, subject,
			"%.200s has another sha256 in line %d; a library is loaded once, so state the same one",
			extension->library, first->place->line);
	}
}

/* LIBRARY or {name: LIBRARY, sha256: DIGITS}. Returns whether there is a library. */
static bool read_extension(struct fragi_builder *builder, struct fragi_node *node,
			   const char *subject, struct fragi_spec_extension *out)
{
	static const struct fragi_key fields[] = {{"name"}, {"sha256"}};
	const struct fragi_node *name, *sha256;

	*out = (struct fragi_spec_extension){.place = node};
	if (node->kind != FRAGI_NODE_MAP) {
		out->library = out->named = read_library(builder, node, subject);
		return out->library != NULL;
	}
	fragi_keys_check(builder, node, subject, fields, FRAG_COUNT_OF(fields));
	name = fragi_node_get(node, "name");
	sha256 = fragi_node_get(node, "sha256");
	if (name == NULL)
		fragi_builder_error(
			builder, node, subject,
			"an extension without `name`; write for example {name: libview.so, sha256: DIGITS}");
	out->library = out->named = read_library(builder, name, subject);
	out->sha256 = read_sha256(builder, sha256, subject, out->library);
	if (out->library != NULL && out->sha256 != NULL)
		note_sha256(builder, sha256, subject, out);
	return out->library != NULL;
}

void fragi_spec_read_extensions(struct fragi_builder *builder, struct fragi_node *list,
				const char *subject, struct fragi_spec_extension *before,
				size_t before_count, struct fragi_spec_extension **out_extensions,
				size_t *out_count)
{
	struct fragi_spec_extension *extensions, extension;
	struct fragi_strmap known = {0};
	size_t count = before_count;

	*out_extensions = before;
	*out_count = before_count;
	list = fragi_read_list(builder, list, subject, "extensions");
	if (list == NULL)
		return;
	extensions = fragi_builder_alloc(builder, before_count + list->count, sizeof(*extensions));
	if (extensions == NULL)
		return;
	for (size_t i = 0; i < before_count; i++) {
		extensions[i] = before[i];
		fragi_builder_note(builder, &known, before[i].library, &extensions[i]);
	}
	for (struct fragi_node *child = list->first; child != NULL; child = child->next) {
		if (!read_extension(builder, child, subject, &extension) ||
		    fragi_strmap_get(&known, extension.library) != NULL)
			continue;
		extensions[count] = extension;
		fragi_builder_note(builder, &known, extension.library, &extensions[count++]);
	}
	fragi_strmap_fini(&known);
	*out_extensions = extensions;
	*out_count = count;
}

static void spread_sha256(const struct fragi_builder *builder,
			  struct fragi_spec_extension *extensions, size_t count)
{
	const struct fragi_spec_extension *pinned;

	for (size_t i = 0; i < count; i++) {
		pinned = fragi_strmap_get(&builder->pinned, extensions[i].library);
		if (pinned != NULL)
			extensions[i].sha256 = pinned->sha256;
	}
}

void fragi_spec_spread_sha256(struct fragi_builder *builder)
{
	struct fragi_spec *spec = builder->spec;

	spread_sha256(builder, spec->extensions, spec->extension_count);
	for (size_t i = 0; i < spec->fragment_count; i++)
		spread_sha256(builder, spec->fragments[i].extensions,
			      spec->fragments[i].extension_count);
}

bool fragi_spec_is_swap_set(const char *set)
{
	return strncmp(set, FRAGI_SPEC_SWAP, sizeof(FRAGI_SPEC_SWAP) - 1) == 0;
}

/* Those at the top are shared by all fragments, and this one is to have others. */
static struct fragi_spec_extension *own_extensions(struct fragi_builder *builder,
						   struct fragi_spec_fragment *fragment)
{
	struct fragi_spec_extension *own =
		fragi_builder_alloc(builder, fragment->extension_count, sizeof(*own));

	if (own == NULL)
		return NULL;
	memcpy(own, fragment->extensions, fragment->extension_count * sizeof(*own));
	fragment->extensions = own;
	return own;
}

static void swap(struct fragi_builder *builder, const char *set)
{
	struct fragi_spec *spec = builder->spec;
	char *fragment = fragi_builder_strdup(builder, set + sizeof(FRAGI_SPEC_SWAP) - 1);
	char *named = fragment != NULL ? strchr(fragment, '/') : NULL;
	char *library = named != NULL ? strchr(named, '=') : NULL;

	if (library != NULL && library[1] != '\0' && strlen(library + 1) <= EXTENSION_MAX) {
		*named++ = '\0';
		*library++ = '\0';
	} else {
		named = NULL;
	}
	for (size_t f = 0; named != NULL && f < spec->fragment_count; f++) {
		struct fragi_spec_fragment *of = &spec->fragments[f];

		for (size_t i = 0; strcmp(of->name, fragment) == 0 && i < of->extension_count;
		     i++) {
			struct fragi_spec_extension *own;

			if (strcmp(of->extensions[i].named, named) != 0)
				continue;
			own = own_extensions(builder, of);
			if (own == NULL)
				return;
			own[i].library = library;
			own[i].sha256 = NULL;
			return;
		}
	}
	if (!builder->no_memory)
		fragi_builder_error(builder, builder->root, NULL,
				    "\"%.200s\" names no library of a fragment to replace", set);
}

void fragi_spec_swap_extensions(struct fragi_builder *builder)
{
	for (size_t i = 0; i < builder->source->set_count; i++)
		if (fragi_spec_is_swap_set(builder->source->sets[i]))
			swap(builder, builder->source->sets[i]);
}
