// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include <base/printable.h>
#include <base/sentence.h>
#include <base/strmap.h>
#include <text/node.h>
#include <text/syntax.h>

#define KEYS_LINEAR 8 /* a map with more keys finds duplicates by hash */

/* A list or map whose end has not been read yet. */
struct frame {
	struct fragi_node *node;
	const struct fragi_node *key; /* MAP: the key whose value comes next */
	yaml_mark_t bracket;          /* its [ or {, when it is written with them */
	bool has_bracket;
	struct fragi_strmap keys; /* MAP, once it has KEYS_LINEAR */
};

struct anchor {
	struct fragi_node *node;
};

struct reading {
	struct fragi_arena *arena;
	struct fragi_diag *diag;
	const char *file, *text;
	size_t length;
	yaml_parser_t parser;
	struct frame frames[FRAGI_YAML_DEPTH_MAX];
	size_t depth;
	size_t nodes;
	struct fragi_strmap anchors;
	struct fragi_node *root;
	bool ended;    /* after the document, or after an error that ends reading */
	bool failed;   /* diag got an error */
	bool repeated; /* a key was given twice; the tree is still complete */
};

int fragi_node_error(struct fragi_diag *diag, const struct fragi_node *place, const char *subject,
		     const char *format, ...)
{
	char text[sizeof(((struct frag_err *)0)->text)];
	size_t length = 0;
	va_list args;

	text[0] = '\0';
	if (subject != NULL && subject[0] != '\0')
		length = (size_t)snprintf(text, sizeof(text), "%.400s: ", subject);
	va_start(args, format);
	fragi_sentence_of(text + length, sizeof(text) - length, format, args);
	va_end(args);
	fragi_make_printable(text, '?');
	return fragi_diag_add(diag, -EINVAL, place != NULL ? place->file : NULL,
			      place != NULL ? place->line : 0, place != NULL ? place->column : 0,
			      "%s", text);
}

/* Adds an error at an event's place; reading goes on. */
#define reading_error(reading, mark, ...)                                                          \
	do {                                                                                       \
		const struct fragi_node place_ = {.file = (reading)->file,                         \
						  .line = (int)(mark).line + 1,                    \
						  .column = (int)(mark).column + 1};               \
		fragi_node_error((reading)->diag, &place_, NULL, __VA_ARGS__);                     \
		(reading)->failed = true;                                                          \
	} while (0)

/* Adds libyaml's own error, in our words where it is a usual one. */
static int reading_syntax_error(struct reading *reading)
{
	const yaml_parser_t *parser = &reading->parser;
	struct fragi_node place = {.file = reading->file};
	const yaml_mark_t *bracket = NULL;
	struct fragi_syntax_error error;

	reading->failed = true;
	if (parser->error == YAML_MEMORY_ERROR)
		return -ENOMEM;
	if (parser->error == YAML_READER_ERROR)
		return fragi_node_error(reading->diag, &place, NULL,
					"not a text in UTF-8: %s at byte %zu; save it as UTF-8",
					parser->problem, parser->problem_offset);
	if (reading->depth > 0 && reading->frames[reading->depth - 1].has_bracket)
		bracket = &reading->frames[reading->depth - 1].bracket;
	fragi_syntax_explain(parser, reading->text, reading->length, bracket, &error);
	place.line = (int)error.mark.line + 1;
	place.column = (int)error.mark.column + 1;
	return fragi_node_error(reading->diag, &place, NULL, "%s", error.text);
}

/* Creates a node of the tree. Returns 0, -EINVAL (too many nodes) or -ENOMEM. */
static int reading_node(struct reading *reading, yaml_mark_t mark, enum fragi_node_kind kind,
			struct fragi_node **out_node)
{
	struct fragi_node *node;

	if (++reading->nodes > FRAGI_YAML_NODES_MAX) {
		reading_error(reading, mark,
			      "more than %d values, those of aliases counted; make it smaller",
			      FRAGI_YAML_NODES_MAX);
		return -EINVAL;
	}
	node = fragi_arena_alloc(reading->arena, sizeof(*node));
	if (node == NULL)
		return -ENOMEM;
	node->kind = kind;
	node->file = reading->file;
	node->line = (int)mark.line + 1;
	node->column = (int)mark.column + 1;
	*out_node = node;
	return 0;
}

static void append(struct fragi_node *parent, struct fragi_node *child)
{
	if (parent->last != NULL)
		parent->last->next = child;
	else
		parent->first = child;
	parent->last = child;
	parent->count++;
}

/* Remembers a key. Returns 1 when map had it already, else 0; or -ENOMEM. */
static int frame_has_key(struct frame *frame, const struct fragi_node *key)
{
	int r;

	if (frame->node->count < KEYS_LINEAR)
		return fragi_node_get(frame->node, key->text) != NULL;
	if (frame->keys.count == 0)
		for (struct fragi_node *child = frame->node->first; child != NULL;
		     child = child->next)
			if (fragi_strmap_put(&frame->keys, child->key->text, child) == -ENOMEM)
				return -ENOMEM;
	r = fragi_strmap_put(&frame->keys, key->text, (void *)key);
	return r == -EEXIST ? 1 : r;
}

static int reading_key(struct reading *reading, struct frame *frame, yaml_mark_t mark,
		       const struct fragi_node *key)
{
	bool failed;
	int r;

	if (key->kind != FRAGI_NODE_SCALAR) {
		reading_error(
			reading, mark,
			"a key must be a name, and this is none; close the { or [ before it, if one is open");
		return -EINVAL;
	}
	if (!key->quoted && strcmp(key->text, "<<") == 0)
		reading_error(reading, mark,
			      "merge keys (<<) are not supported; write the keys out");
	failed = reading->failed;
	r = frame_has_key(frame, key);
	if (r == 1) {
		reading_error(reading, mark,
			      "the key \"%.80s\" is given twice in one map; remove one", key->text);
		reading->failed = failed;
		reading->repeated = true;
		frame->node->lost_a_name = true;
	}
	frame->key = key;
	return r < 0 ? r : 0;
}

/* Adds a node to the tree: as the root, an item, a key or a value. */
static int reading_place(struct reading *reading, yaml_mark_t mark, struct fragi_node *node)
{
	struct frame *frame;

	if (reading->depth == 0) {
		reading->root = node;
		return 0;
	}
	frame = &reading->frames[reading->depth - 1];
	if (frame->node->kind == FRAGI_NODE_MAP) {
		if (frame->key == NULL)
			return reading_key(reading, frame, mark, node);
		node->key = frame->key;
		frame->key = NULL;
	}
	append(frame->node, node);
	return 0;
}

static int reading_anchor(struct reading *reading, const yaml_char_t *name, struct fragi_node *node)
{
	struct anchor *anchor;
	char *copy;

	if (name == NULL)
		return 0;
	anchor = fragi_strmap_get(&reading->anchors, (const char *)name);
	if (anchor !=
	    NULL) { /* an anchor may be defined again; later aliases refer to the new one */
		anchor->node = node;
		return 0;
	}
	copy = fragi_arena_strdup(reading->arena, (const char *)name);
	anchor = fragi_arena_alloc(reading->arena, sizeof(*anchor));
	if (copy == NULL || anchor == NULL)
		return -ENOMEM;
	anchor->node = node;
	return fragi_strmap_put(&reading->anchors, copy, anchor);
}

static bool is_null(const char *text)
{
	return text[0] == '\0' || strcmp(text, "~") == 0 || strcmp(text, "null") == 0 ||
	       strcmp(text, "Null") == 0 || strcmp(text, "NULL") == 0;
}

static void check_tag(struct reading *reading, yaml_mark_t mark, const yaml_char_t *tag)
{
	if (tag != NULL)
		reading_error(
			reading, mark,
			"type tags (%.80s) are not supported; a value becomes a type by the declared type of its parameter alone",
			(const char *)tag);
}

static int on_scalar(struct reading *reading, const yaml_event_t *event)
{
	const char *text = (const char *)event->data.scalar.value;
	size_t length = event->data.scalar.length;
	bool quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
	struct fragi_node *node;
	int r = reading_node(reading, event->start_mark,
			     !quoted && is_null(text) ? FRAGI_NODE_NULL : FRAGI_NODE_SCALAR, &node);

	if (r < 0)
		return r;
	check_tag(reading, event->start_mark, event->data.scalar.tag);
	if (memchr(text, '\0', length) != NULL)
		reading_error(reading, event->start_mark,
			      "a text must not hold the character NUL (\\0)");
	node->quoted = quoted;
	if (node->kind == FRAGI_NODE_SCALAR) {
		node->text = fragi_arena_strndup(reading->arena, text, length);
		if (node->text == NULL)
			return -ENOMEM;
	}
	r = reading_anchor(reading, event->data.scalar.anchor, node);
	return r < 0 ? r : reading_place(reading, event->start_mark, node);
}

static int on_start(struct reading *reading, const yaml_event_t *event)
{
	bool is_map = event->type == YAML_MAPPING_START_EVENT;
	struct frame *frame;
	struct fragi_node *node;
	int r = reading_node(reading, event->start_mark, is_map ? FRAGI_NODE_MAP : FRAGI_NODE_LIST,
			     &node);

	if (r < 0)
		return r;
	if (reading->depth == FRAGI_YAML_DEPTH_MAX) {
		reading_error(reading, event->start_mark, "nested deeper than %d levels",
			      FRAGI_YAML_DEPTH_MAX);
		return -EINVAL;
	}
	check_tag(reading, event->start_mark,
		  is_map ? event->data.mapping_start.tag : event->data.sequence_start.tag);
	r = reading_anchor(reading,
			   is_map ? event->data.mapping_start.anchor
				  : event->data.sequence_start.anchor,
			   node);
	if (r == 0)
		r = reading_place(reading, event->start_mark, node);
	if (r < 0)
		return r;
	frame = &reading->frames[reading->depth++];
	frame->node = node;
	frame->bracket = event->start_mark;
	frame->has_bracket = is_map ? event->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE
				    : event->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE;
	return 0;
}

static void on_end(struct reading *reading)
{
	struct frame *frame = &reading->frames[--reading->depth];

	fragi_strmap_fini(&frame->keys);
	memset(frame, 0, sizeof(*frame));
}

/* Copies a tree for an alias, so that every node has one parent. The copies keep their places. */
static int copy_node(struct reading *reading, yaml_mark_t mark, const struct fragi_node *from,
		     size_t depth, struct fragi_node **out_copy)
{
	struct fragi_node *copy, *child_copy;
	int r = reading_node(reading, mark, from->kind, &copy);

	if (r < 0)
		return r;
	if (from->kind >= FRAGI_NODE_LIST && depth == FRAGI_YAML_DEPTH_MAX) {
		reading_error(reading, mark, "nested deeper than %d levels by aliases",
			      FRAGI_YAML_DEPTH_MAX);
		return -EINVAL;
	}
	copy->quoted = from->quoted;
	copy->line = from->line;
	copy->column = from->column;
	copy->text = from->text;
	for (const struct fragi_node *child = from->first; child != NULL; child = child->next) {
		r = copy_node(reading, mark, child, depth + 1, &child_copy);
		if (r < 0)
			return r;
		child_copy->key = child->key;
		append(copy, child_copy);
	}
	*out_copy = copy;
	return 0;
}

static int on_alias(struct reading *reading, const yaml_event_t *event)
{
	const char *name = (const char *)event->data.alias.anchor;
	const struct anchor *anchor = fragi_strmap_get(&reading->anchors, name);
	struct frame *frame = reading->depth > 0 ? &reading->frames[reading->depth - 1] : NULL;
	struct fragi_node *copy;
	int r;

	if (anchor == NULL) {
		reading_error(reading, event->start_mark,
			      "the alias *%.80s has no anchor &%.80s before it", name, name);
		return -EINVAL;
	}
	for (size_t i = 0; i < reading->depth; i++) {
		if (reading->frames[i].node == anchor->node) {
			reading_error(reading, event->start_mark,
				      "the alias *%.80s stands inside its anchor", name);
			return -EINVAL;
		}
	}
	if (frame != NULL && frame->node->kind == FRAGI_NODE_MAP && frame->key == NULL) {
		reading_error(reading, event->start_mark,
			      "an alias cannot be a key; write the key out");
		return -EINVAL;
	}
	r = copy_node(reading, event->start_mark, anchor->node, reading->depth, &copy);
	return r < 0 ? r : reading_place(reading, event->start_mark, copy);
}

static int reading_event(struct reading *reading, const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT:
		if (reading->root != NULL) {
			reading_error(reading, event->start_mark,
				      "more than one document; write one file each");
			return -EINVAL;
		}
		return 0;
	case YAML_SCALAR_EVENT:
		return on_scalar(reading, event);
	case YAML_SEQUENCE_START_EVENT:
	case YAML_MAPPING_START_EVENT:
		return on_start(reading, event);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		on_end(reading);
		return 0;
	case YAML_ALIAS_EVENT:
		return on_alias(reading, event);
	case YAML_STREAM_END_EVENT:
		reading->ended = true;
		return 0;
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_DOCUMENT_END_EVENT:
		return 0;
	}
	return 0;
}

static int reading_run(struct reading *reading)
{
	yaml_event_t event;
	int r = 0;

	while (r == 0 && !reading->ended) {
		if (yaml_parser_parse(&reading->parser, &event) == 0)
			return reading_syntax_error(reading);
		r = reading_event(reading, &event);
		yaml_event_delete(&event);
	}
	if (r == 0 && reading->root == NULL)
		r = reading_node(reading, (yaml_mark_t){0}, FRAGI_NODE_NULL, &reading->root);
	return r;
}

/* What some editors begin a file of UTF-8 with; libyaml takes it for a character of the text. */
static const char byte_order_mark[] = "\xEF\xBB\xBF";

int fragi_yaml_parse(struct fragi_arena *arena, const char *file, const char *text, size_t length,
		     struct fragi_diag *diag, struct fragi_node **out_root)
{
	struct reading reading = {.arena = arena, .diag = diag};
	int r;

	reading.file = fragi_arena_strdup(arena, file);
	if (file != NULL && reading.file == NULL)
		return -ENOMEM;
	if (length > FRAGI_YAML_TEXT_MAX)
		return fragi_diag_add(diag, -EINVAL, file, 0, 0,
				      "%zu bytes of text; at most 3 MiB are read; make it smaller",
				      length);
	if (yaml_parser_initialize(&reading.parser) == 0)
		return -ENOMEM;
	if (length >= sizeof(byte_order_mark) - 1 &&
	    memcmp(text, byte_order_mark, sizeof(byte_order_mark) - 1) == 0) {
		text += sizeof(byte_order_mark) - 1;
		length -= sizeof(byte_order_mark) - 1;
	}
	reading.text = text;
	reading.length = length;
	yaml_parser_set_encoding(&reading.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&reading.parser, (const unsigned char *)text, length);
	r = reading_run(&reading);
	while (reading.depth > 0)
		on_end(&reading);
	fragi_strmap_fini(&reading.anchors);
	yaml_parser_delete(&reading.parser);
	if (r == 0 && !reading.failed)
		*out_root = reading.root;
	return r == 0 && (reading.failed || reading.repeated) ? -EINVAL : r;
}

struct fragi_node *fragi_node_get(const struct fragi_node *map, const char *key)
{
	if (map == NULL || map->kind != FRAGI_NODE_MAP)
		return NULL;
	for (struct fragi_node *child = map->first; child != NULL; child = child->next)
		if (strcmp(child->key->text, key) == 0)
			return child;
	return NULL;
}

struct fragi_node *fragi_node_at(const struct fragi_node *node, const char *path)
{
	struct fragi_node *child = NULL;
	size_t length;

	for (;; path += length + 1) {
		length = strcspn(path, ".");
		child = NULL;
		if (node != NULL && node->kind == FRAGI_NODE_MAP)
			for (child = node->first; child != NULL; child = child->next)
				if (strncmp(child->key->text, path, length) == 0 &&
				    child->key->text[length] == '\0')
					break;
		if (child == NULL || path[length] == '\0')
			return child;
		node = child;
	}
}

static bool stands_at(const struct fragi_node *node, int line, int column)
{
	return (node->line == line && node->column == column) ||
	       (node->key != NULL && node->key->line == line && node->key->column == column);
}

bool fragi_node_path(const struct fragi_node *root, int line, int column, char *out, size_t size)
{
	size_t i = 0;
	int length;

	for (const struct fragi_node *child = root->first; child != NULL; child = child->next) {
		if (root->kind == FRAGI_NODE_LIST)
			length = snprintf(out, size, "[%zu]", i++);
		else
			length = snprintf(out, size, "%s", child->key->text);
		if ((size_t)length + 1 >= size)
			continue;
		if (stands_at(child, line, column))
			return true;
		if (child->kind == FRAGI_NODE_MAP)
			out[length++] = '.';
		if (fragi_node_path(child, line, column, out + length, size - (size_t)length))
			return true;
	}
	return false;
}
