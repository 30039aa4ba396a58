// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <base/units.h>
#include <text/builder.h>
#include <text/holoscan.h>

#define KEYS_MAX 32

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
				    "\"%.80s\" lacks a space after the colon; write \"%s: %.80s\"",
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

void fragi_keys_check(struct fragi_builder *builder, struct fragi_node *map, const char *subject,
		      const struct fragi_key *keys, size_t count)
{
	const char *names[KEYS_MAX];
	size_t name_count = 0, i;

	assert(map->kind == FRAGI_NODE_MAP && count <= KEYS_MAX);
	for (i = 0; i < count && name_count < KEYS_MAX; i++)
		if (keys[i].kind != FRAGI_KEY_UNBUILT)
			names[name_count++] = keys[i].name;
	for (const struct fragi_node *child = map->first; child != NULL; child = child->next) {
		for (i = 0; i < count && strcmp(keys[i].name, child->key->text) != 0; i++)
			;
		if (i == count)
			refuse_key(builder, map, child, subject, names, name_count);
		else if (keys[i].kind == FRAGI_KEY_UNBUILT)
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

int fragi_read_section_type(struct fragi_builder *builder, const struct fragi_node *node,
			    const char *subject, const char *what, enum fragi_holoscan_kind kind,
			    const char *section, const char *const *words, size_t count)
{
	const char *text = fragi_read_text(builder, node, subject, what);
	char advice[256], plural[32];

	if (text == NULL)
		return -1;
	text = fragi_alias(kind, text);
	for (size_t i = 0; i < count; i++)
		if (strcmp(words[i], text) == 0)
			return (int)i;
	snprintf(plural, sizeof(plural), "%ss", section);
	fragi_builder_error(
		builder, node, subject, "no %s \"%.80s\"%s", section, text,
		fragi_builder_advise(builder, advice, sizeof(advice), text, plural, words, count));
	return -1;
}

static void set_integer(const struct fragi_key *key, void *out, int64_t value)
{
	void *member = (uint8_t *)out + key->offset;

	assert(key->size == sizeof(bool) || key->size == sizeof(int32_t) ||
	       key->size == sizeof(int64_t));
	if (key->size == sizeof(bool))
		*(bool *)member = value != 0;
	else if (key->size == sizeof(int32_t))
		*(int32_t *)member = (int32_t)value;
	else
		*(int64_t *)member = value;
}

static void read_number(struct fragi_builder *builder, const struct fragi_node *node,
			const char *subject, const struct fragi_key *key, const char *what,
			double *out)
{
	const char *text = fragi_read_text(builder, node, subject, what);
	double value;

	if (text == NULL)
		return;
	if (fragi_parse_f64(text, &value) < 0 || !(value >= key->least && value <= key->most))
		fragi_builder_error(builder, node, subject,
				    "%s \"%.80s\" is not a number%s from %.10g to %.10g", what,
				    text, key->unit != NULL ? key->unit : "", key->least,
				    key->most);
	else
		*out = value;
}

static bool read_word(struct fragi_builder *builder, const struct fragi_node *node,
		      const char *subject, const struct fragi_key *key, const char *what,
		      int64_t *out)
{
	size_t count = 0;
	int i;

	assert(key->words != NULL);
	while (key->words[count] != NULL)
		count++;
	i = fragi_read_word(builder, node, subject, what, key->words, count);
	*out = key->min + (key->max != 0 ? i % key->max : i);
	return i >= 0;
}

static bool read_time(struct fragi_builder *builder, const struct fragi_node *node,
		      const char *subject, const struct fragi_key *key, const char *what,
		      int64_t *out_ns)
{
	bool is_set = fragi_read_duration(builder, node, subject, what, out_ns);

	if (is_set && *out_ns == 0 && key->zero != NULL)
		fragi_builder_error(builder, node, subject, "%s", key->zero);
	else if (is_set && *out_ns == 0 && key->kind == FRAGI_KEY_TIME)
		fragi_builder_error(builder, node, subject, "%s is 0; leave it out to have none",
				    what);
	return is_set;
}

/* A number without a unit is in nanoseconds, as in Holoscan. */
static bool read_nanoseconds(struct fragi_builder *builder, const struct fragi_node *node,
			     const char *subject, const char *what, int64_t *out_ns)
{
	const char *text = fragi_read_text(builder, node, subject, what);

	if (text == NULL || fragi_parse_duration(text, out_ns) == 0)
		return text != NULL;
	fragi_builder_error(
		builder, node, subject,
		"%s \"%.80s\" is not a valid duration; write nanoseconds, or for example 10ms",
		what, text);
	fragi_diag_compare(builder->diag, "a duration", text);
	return false;
}

void fragi_key_read(struct fragi_builder *builder, struct fragi_node *node, const char *subject,
		    const struct fragi_key *key, void *out)
{
	const char *what = key->what != NULL ? key->what : key->name;
	void *member = (uint8_t *)out + key->offset; /* without a member: out itself */
	bool is_set = false, truth = false;
	const char *text = NULL;
	int64_t value = 0;

	switch (key->kind) {
	case FRAGI_KEY_UNBUILT:
		break;
	case FRAGI_KEY_OTHER:
		if (key->read != NULL)
			key->read(builder, node, subject, member);
		break;
	case FRAGI_KEY_BOOL:
		is_set = fragi_read_bool(builder, node, subject, what, &truth);
		value = truth;
		break;
	case FRAGI_KEY_INTEGER:
		is_set = fragi_read_integer(builder, node, subject, what, key->min, key->max,
					    &value);
		break;
	case FRAGI_KEY_NUMBER:
		read_number(builder, node, subject, key, what, member);
		break;
	case FRAGI_KEY_DURATION:
	case FRAGI_KEY_TIME:
		is_set = read_time(builder, node, subject, key, what, &value);
		break;
	case FRAGI_KEY_NANOSECONDS:
		is_set = read_nanoseconds(builder, node, subject, what, &value);
		break;
	case FRAGI_KEY_WORD:
		is_set = read_word(builder, node, subject, key, what, &value);
		break;
	case FRAGI_KEY_TEXT:
	case FRAGI_KEY_NAME:
		text = key->kind == FRAGI_KEY_NAME ? fragi_read_name(builder, node, subject, what)
						   : fragi_read_text(builder, node, subject, what);
		if (text != NULL)
			*(const char **)member = text;
		break;
	}
	if (is_set)
		set_integer(key, out, value);
}

void fragi_keys_read(struct fragi_builder *builder, const struct fragi_node *map,
		     const char *subject, const struct fragi_key *keys, size_t count, void *out)
{
	for (size_t i = 0; i < count; i++) {
		struct fragi_node *node = fragi_node_get(map, keys[i].name);

		if (node == NULL && keys[i].missing != NULL)
			fragi_builder_error(builder, map, subject, "%s", keys[i].missing);
		fragi_key_read(builder, node, subject, &keys[i], out);
	}
}

bool fragi_section_read(struct fragi_builder *builder, struct fragi_node *node, const char *subject,
			const char *what, const struct fragi_key *keys, size_t count, void *out)
{
	node = fragi_read_map(builder, node, subject, what);
	if (node == NULL)
		return false;
	fragi_keys_check(builder, node, subject, keys, count);
	fragi_keys_read(builder, node, subject, keys, count, out);
	return true;
}

void fragi_keys_default(const struct fragi_key *keys, size_t count, void *out)
{
	for (size_t i = 0; i < count; i++)
		if (keys[i].kind == FRAGI_KEY_NUMBER)
			*(double *)(void *)((uint8_t *)out + keys[i].offset) = keys[i].normal;
		else if (keys[i].kind != FRAGI_KEY_OTHER && keys[i].usual != 0)
			set_integer(&keys[i], out, keys[i].usual);
}
