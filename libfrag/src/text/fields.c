// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
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

void fragi_fields_check(struct fragi_builder *builder, const struct fragi_node *map,
			const char *subject, const struct fragi_field *fields, size_t count)
{
	const char *names[FIELDS_MAX];
	char advice[512];
	size_t name_count = 0, i;

	for (i = 0; i < count && name_count < FIELDS_MAX; i++)
		if (!fields[i].later)
			names[name_count++] = fields[i].name;
	for (const struct fragi_node *child = map->first; child != NULL; child = child->next) {
		for (i = 0; i < count && strcmp(fields[i].name, child->key->text) != 0; i++)
			;
		if (i == count &&
		    fragi_holoscan_explain_key(advice, sizeof(advice), child->key->text) != NULL)
			fragi_builder_error(builder, child->key, subject, "%s", advice);
		else if (i == count)
			fragi_builder_error(builder, child->key, subject, "unknown key \"%.80s\"%s",
					    child->key->text,
					    fragi_builder_advise(builder, advice, sizeof(advice),
								 child->key->text, "valid keys",
								 names, name_count));
		else if (fields[i].later)
			fragi_builder_error(builder, child->key, subject,
					    "%s is not built yet; leave it out", child->key->text);
	}
}

static struct fragi_node *read_kind(struct fragi_builder *builder, struct fragi_node *node,
				    const char *subject, const char *what,
				    enum fragi_node_kind kind)
{
	if (node == NULL || node->kind == FRAGI_NODE_NULL)
		return NULL;
	if (node->kind == kind)
		return node;
	fragi_builder_error(builder, node, subject, "%s is %s; it must be %s", what,
			    kind_text(node),
			    kind == FRAGI_NODE_MAP ? "a map (keys and values)" : "a list ([a, b])");
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
	if (node == NULL)
		return NULL;
	if (node->kind != FRAGI_NODE_SCALAR) {
		fragi_builder_error(builder, node, subject, "%s is %s; it must be a single value",
				    what, kind_text(node));
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
	int64_t value;

	if (text == NULL)
		return false;
	if (fragi_parse_i64(text, &value) < 0 || value < min || value > max) {
		fragi_builder_error(builder, node, subject,
				    "%s \"%.80s\" is not a whole number from %" PRId64
				    " to %" PRId64,
				    what, text, min, max);
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
		return false;
	}
	if (fragi_parse_duration(text, out_ns) < 0) {
		fragi_builder_error(
			builder, node, subject,
			"%s \"%.80s\" is not a valid duration; write for example 10ms, 2s or 30hz",
			what, text);
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
