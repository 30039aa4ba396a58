// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <base/units.h>
#include <text/builder.h>
#include <text/holoscan.h>

#define FIELDS_MAX 32

static const char *kind_text(const struct fragi_node *node)
{
	switch (node->kind) {
	case FRAGI_NODE_NULL:
		return "empty";
	case FRAGI_NODE_SCALAR:
		return "a single value";
	case FRAGI_NODE_LIST:
		return "a list";
	case FRAGI_NODE_MAP:
		return "a map";
	}
	return "";
}

/* Adds a key that is not there, because another key was meant to be it. */
static void add_reported(struct fragi_builder *builder, struct fragi_node *map, const char *name)
{
	struct fragi_node *key = fragi_builder_alloc(builder, 1, sizeof(*key));
	struct fragi_node *node = fragi_builder_alloc(builder, 1, sizeof(*node));

	if (key == NULL || node == NULL || fragi_node_get(map, name) != NULL)
		return;
	*key = *map->last->key;
	key->text = name;
	*node = (struct fragi_node){
		.kind = FRAGI_NODE_NULL,
		.is_reported = true,
		.file = key->file,
		.line = key->line,
		.column = key->column,
		.key = key,
	};
	map->last->next = node;
	map->last = node;
	map->count++;
}

/* "type:count" has a key and a value for people, and is one key for YAML. */
static const char *key_before_colon(const char *text, const char *const *names, size_t count)
{
	size_t length = strcspn(text, ":");

	for (size_t i = 0; text[length] == ':' && i < count; i++)
		if (strncmp(names[i], text, length) == 0 && names[i][length] == '\0')
			return names[i];
	return NULL;
}

/* names: the valid keys */
static void refuse_key(struct fragi_builder *builder, struct fragi_node *map,
		       const struct fragi_node *child, const char *subject,
		       const char *const *names, size_t count)
{
	const char *key = child->key->text, *before_colon = key_before_colon(key, names, count);
	const char *meant = before_colon != NULL ? before_colon : fragi_suggest(key, names, count);
	struct fragi_node *operators = fragi_node_get(map, "operators");
	char advice[512];

	if (fragi_holoscan_explain_key(advice, sizeof(advice), key) != NULL) {
		fragi_builder_error(builder, child->key, subject, "%s", advice);
	} else if (before_colon != NULL) {
		fragi_builder_error(builder, child->key, subject,
				    "\"%.80s\" lacks a blank after the colon; write \"%s: %.80s\"",
				    key, meant, key + strlen(meant) + 1);
	} else if (meant == NULL && operators != NULL && fragi_node_get(child, "type") != NULL) {
		fragi_builder_error(
			builder, child->key, subject,
			"\"%.80s\" stands beside operators; if it is one, indent it as the others",
			key);
		operators->lost_a_name = true;
	} else {
		fragi_builder_error(builder, child->key, subject, "unknown key \"%.80s\"%s", key,
				    fragi_builder_advise(builder, advice, sizeof(advice), key,
							 "valid keys", names, count));
	}
	if (meant != NULL)
		add_reported(builder, map, meant);
}

void fragi_fields_check(struct fragi_builder *builder, struct fragi_node *map, const char *subject,
			const struct fragi_field *fields, size_t count)
{
	const char *names[FIELDS_MAX];
	size_t name_count = 0, i;

	for (i = 0; i < count && name_count < FIELDS_MAX; i++)
		if (!fields[i].later)
			names[name_count++] = fields[i].name;
	for (const struct fragi_node *child = map->first; child != NULL; child = child->next) {
		for (i = 0; i < count && strcmp(fields[i].name, child->key->text) != 0; i++)
			;
		if (i == count)
			refuse_key(builder, map, child, subject, names, name_count);
		else if (fields[i].later)
			fragi_builder_error(builder, child->key, subject,
					    "%s is not built yet; leave it out", child->key->text);
	}
}

static struct fragi_node *read_kind(struct fragi_builder *builder, struct fragi_node *node,
				    const char *subject, const char *what,
				    enum fragi_node_kind kind)
{
	if (node == NULL || node->kind == FRAGI_NODE_NULL || node->is_reported)
		return NULL;
	if (node->kind == kind)
		return node;
	fragi_builder_error(builder, node, subject, "%s is %s; it must be %s", what,
			    kind_text(node),
			    kind == FRAGI_NODE_MAP ? "a map (keys and values)" : "a list ([a, b])");
	fragi_diag_compare(builder->diag, kind == FRAGI_NODE_MAP ? "a map" : "a list",
			   kind_text(node));
	return NULL;
}

struct fragi_node *fragi_read_map(struct fragi_builder *builder, struct fragi_node *node,
				  const char *subject, const char *what)
{
	return read_kind(builder, node, subject, what, FRAGI_NODE_MAP);
}

struct fragi_node *fragi_read_list(struct fragi_builder *builder, struct fragi_node *node,
				   const char *subject, const char *what)
{
	return read_kind(builder, node, subject, what, FRAGI_NODE_LIST);
}

const char *fragi_read_text(struct fragi_builder *builder, const struct fragi_node *node,
			    const char *subject, const char *what)
{
	if (node == NULL || node->is_reported)
		return NULL;
	if (node->kind != FRAGI_NODE_SCALAR) {
		fragi_builder_error(builder, node, subject, "%s is %s; it must be a single value",
				    what, kind_text(node));
		fragi_diag_compare(builder->diag, "a single value", kind_text(node));
		return NULL;
	}
	return node->text;
}

bool fragi_check_name(struct fragi_builder *builder, const struct fragi_node *place,
		      const char *subject, const char *what, const char *name)
{
	if (fragi_name_is_valid(name))
		return true;
	fragi_builder_error(
		builder, place, subject,
		"%s \"%.80s\" is not a valid name; a name begins with a letter, goes on with letters, digits, - and _, and has at most %d characters",
		what, name, FRAG_NAME_MAX);
	return false;
}

const char *fragi_read_name(struct fragi_builder *builder, const struct fragi_node *node,
			    const char *subject, const char *what)
{
	const char *text = fragi_read_text(builder, node, subject, what);

	if (text == NULL || !fragi_check_name(builder, node, subject, what, text))
		return NULL;
	return text;
}

bool fragi_read_integer(struct fragi_builder *builder, const struct fragi_node *node,
			const char *subject, const char *what, int64_t min, int64_t max,
			int64_t *out)
{
	const char *text = fragi_read_text(builder, node, subject, what);
	char required[80];
	int64_t value;

	if (text == NULL)
		return false;
	if (fragi_parse_i64(text, &value) < 0 || value < min || value > max) {
		snprintf(required, sizeof(required), "a whole number from %" PRId64 " to %" PRId64,
			 min, max);
		fragi_builder_error(builder, node, subject, "%s \"%.80s\" is not %s", what, text,
				    required);
		fragi_diag_compare(builder->diag, required, text);
		return false;
	}
	*out = value;
	return true;
}

bool fragi_read_bool(struct fragi_builder *builder, const struct fragi_node *node,
		     const char *subject, const char *what, bool *out)
{
	const char *text = fragi_read_text(builder, node, subject, what);

	if (text == NULL)
		return false;
	if (fragi_parse_bool(text, out) < 0) {
		fragi_builder_error(builder, node, subject,
				    "%s \"%.80s\" is neither true nor false", what, text);
		fragi_diag_compare(builder->diag, "true or false", text);
		return false;
	}
	return true;
}

bool fragi_read_duration(struct fragi_builder *builder, const struct fragi_node *node,
			 const char *subject, const char *what, int64_t *out_ns)
{
	const char *text = fragi_read_text(builder, node, subject, what);

	if (text == NULL)
		return false;
	if (fragi_duration_lacks_unit(text)) {
		fragi_builder_error(builder, node, subject,
				    "%s \"%.80s\" has no unit; write for example %.80ss", what,
				    text, text);
		fragi_diag_compare(builder->diag, "a duration with a unit", text);
		return false;
	}
	if (fragi_parse_duration(text, out_ns) < 0) {
		fragi_builder_error(
			builder, node, subject,
			"%s \"%.80s\" is not a valid duration; write for example 10ms, 2s or 30hz",
			what, text);
		fragi_diag_compare(builder->diag, "a duration", text);
		return false;
	}
	return true;
}

int fragi_read_word(struct fragi_builder *builder, const struct fragi_node *node,
		    const char *subject, const char *what, const char *const *words, size_t count)
{
	const char *text = fragi_read_text(builder, node, subject, what);
	char advice[256];

	if (text == NULL)
		return -1;
	for (size_t i = 0; i < count; i++)
		if (strcmp(words[i], text) == 0)
			return (int)i;
	fragi_builder_error(
		builder, node, subject, "%s \"%.80s\" is not known%s", what, text,
		fragi_builder_advise(builder, advice, sizeof(advice), text, "valid", words, count));
	return -1;
}
