/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_GRAPH_EDITS_H
#define TESTS_UNIT_GRAPH_EDITS_H

#include <criterion/criterion.h>

#include <text/node.h>

/*
 * Edits of a graph's text, as a person would make them: a key renamed, gone or given twice, another
 * value in the place of one. Which ones are made is drawn from a fixed seed.
 */
#define EDIT_NODES_MAX 1000

struct edit_node {
	const struct fragi_node *node;
	const char *path;
	size_t key, begin, end; /* the value in the text; end 0: it has no text of its own */
	size_t entry_end;       /* of an entry of a map, or of an item of a list */
	bool in_flow;           /* it stands between brackets */
};

struct edited {
	const char *text;
	struct fragi_arena arena;
	struct edit_node nodes[EDIT_NODES_MAX];
	size_t count;
	uint64_t state; /* of what is drawn */
};

static inline uint32_t edit_draw(struct edited *edited, size_t below)
{
	uint64_t z = edited->state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return (uint32_t)((z ^ z >> 31) >> 32) % (uint32_t)below;
}

static inline size_t edit_offset(const char *text, const struct fragi_node *place)
{
	const char *at = text;

	for (int line = 1; line < place->line; line++)
		at = strchr(at, '\n') + 1;
	return (size_t)(at - text) + (size_t)place->column - 1;
}

/* Behind the value that begins there: a quoted text, a list or map in brackets, or a word. */
static inline size_t edit_value_end(const char *text, size_t at, bool in_flow)
{
	int depth = 0;

	if (text[at] == '"')
		return (size_t)(strchr(text + at + 1, '"') - text) + 1;
	if (strchr("[{", text[at]) == NULL)
		return at + strcspn(text + at, in_flow ? ",]}\n" : "\n");
	do {
		if (text[at] == '"')
			at = (size_t)(strchr(text + at + 1, '"') - text);
		depth += text[at] == '[' || text[at] == '{';
		depth -= text[at] == ']' || text[at] == '}';
		at++;
	} while (depth > 0);
	return at;
}

/* Of a block: behind the last line that is indented more than its first one. */
static inline size_t edit_block_end(const char *text, size_t at, int column)
{
	const char *line = strchr(text + at, '\n') + 1;

	while (*line != '\0' && (int)strspn(line, " ") >= column)
		line = strchr(line, '\n') + 1;
	return (size_t)(line - text);
}

static inline void edit_add(struct edited *edited, const struct fragi_node *node,
			    const struct edit_node *parent, int number)
{
	struct edit_node *added = &edited->nodes[edited->count++];
	const struct fragi_node *first = node->key != NULL ? node->key : node;
	const char *text = edited->text, *before = parent != NULL ? parent->path : "";
	int child = 0;

	cr_assert_lt(edited->count, EDIT_NODES_MAX);
	*added = (struct edit_node){.node = node, .path = ""};
	if (node->key != NULL)
		added->path = fragi_arena_printf(&edited->arena, "%s%s%s", before,
						 before[0] != '\0' ? "." : "", node->key->text);
	else if (parent != NULL)
		added->path = fragi_arena_printf(&edited->arena, "%s[%d]", before, number);
	added->begin = edit_offset(text, node);
	added->key = edit_offset(text, first);
	added->in_flow = parent != NULL && parent->end != 0;
	if (node->kind == FRAGI_NODE_SCALAR || strchr("[{", text[added->begin]) != NULL)
		added->end = edit_value_end(text, added->begin, added->in_flow);
	added->entry_end =
		added->in_flow ? added->end : edit_block_end(text, added->key, first->column);
	for (const struct fragi_node *n = node->first; n != NULL; n = n->next)
		edit_add(edited, n, added, child++);
}

static inline void edited_init(struct edited *edited, const char *text, uint64_t seed)
{
	struct fragi_diag diag = {0};
	struct fragi_node *root = NULL;

	memset(edited, 0, sizeof(*edited));
	edited->text = text;
	edited->state = seed;
	edited->arena.limit_bytes = 16 << 20;
	cr_assert_eq(fragi_yaml_parse(&edited->arena, "g", text, strlen(text), &diag, &root), 0);
	edit_add(edited, root, NULL, 0);
	fragi_diag_fini(&diag);
}

/* A text with `with` in the place of what is between begin and end. Frees text if it is edited. */
static inline char *edit_replace(const char *text, size_t begin, size_t end, const char *with)
{
	char *made = malloc(strlen(text) + strlen(with) + 1);

	memcpy(made, text, begin);
	strcpy(made + begin, with);
	strcat(made + begin, text + end);
	return made;
}

/* Without the entry. In a block its lines stay, empty, so that those behind keep their numbers. */
static inline char *edit_delete(const char *text, const struct edit_node *at)
{
	size_t begin = at->key, end = at->entry_end, lines = 0;
	char blank[200];

	if (at->in_flow) {
		if (text[end] == ',')
			end += 1 + strspn(text + end + 1, " ");
		else if (text[begin - 1] == ' ' && text[begin - 2] == ',')
			begin -= 2;
		return edit_replace(text, begin, end, "");
	}
	while (begin > 0 && text[begin - 1] != '\n')
		begin--;
	for (size_t i = begin; i < end; i++)
		lines += text[i] == '\n';
	memset(blank, '\n', sizeof(blank));
	blank[lines] = '\0';
	return edit_replace(text, begin, end, blank);
}

static inline char *edit_twice(const char *text, const struct edit_node *at)
{
	size_t begin = at->key;
	char *again, *made;

	while (!at->in_flow && begin > 0 && text[begin - 1] != '\n')
		begin--;
	again = strndup(text + begin, at->entry_end - begin);
	made = edit_replace(text, at->entry_end, at->entry_end, again);
	free(again);
	if (at->in_flow) {
		again = made;
		made = edit_replace(again, at->entry_end, at->entry_end, ", ");
		free(again);
	}
	return made;
}

/*
 * The lines of two texts that are not in both, in order: "  - LINE" and "  + LINE"; where both have
 * a line of the same object what differs in it: "  OBJECT: THIS => THAT".
 */
struct edit_lines {
	char **items;
	size_t count;
};

static inline struct edit_lines edit_split(char *text)
{
	struct edit_lines lines = {calloc(strlen(text) + 1, sizeof(char *)), 0};

	for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"))
		lines.items[lines.count++] = line;
	return lines;
}

/* The kind and the name of the object that a line is about; 0: they are not the same. */
static inline size_t edit_object(const char *a, const char *b)
{
	size_t length = strspn(a, " ");

	length += strcspn(a + length, " ") + 1;
	length += strcspn(a + length, " ");
	return strncmp(a, b, length) == 0 ? length : 0;
}

/* From the first word that differs to the last one. */
static inline void edit_show_change(const char *a, const char *b, size_t object, FILE *out)
{
	const char *a_end = a + strlen(a), *b_end = b + strlen(b);
	size_t same = object;

	while (a[same] == b[same])
		same++;
	while (same > object && a[same - 1] != ' ')
		same--;
	while (a_end > a + same && b_end > b + same && a_end[-1] == b_end[-1])
		a_end--, b_end--;
	while (*a_end != '\0' && *a_end != ' ')
		a_end++, b_end++;
	fprintf(out, "  %.*s | %.*s => %.*s\n", (int)object, a, (int)(a_end - a - (long)same),
		a + same, (int)(b_end - b - (long)same), b + same);
}

/* The longest list of lines that both have, from each pair of lines on: same[i][k]. */
static inline unsigned short *edit_same(const struct edit_lines *a, const struct edit_lines *b)
{
	const size_t width = b->count + 1;
	unsigned short *same = calloc((a->count + 1) * width, sizeof(*same));

	for (size_t i = a->count; i-- > 0;)
		for (size_t k = b->count; k-- > 0;) {
			unsigned short *at = same + i * width + k;

			*at = at[width] > at[1] ? at[width] : at[1];
			if (strcmp(a->items[i], b->items[k]) == 0)
				*at = (unsigned short)(at[width + 1] + 1);
		}
	return same;
}

#define EDIT_SHOWN 6
static inline void edit_difference(struct edit_lines a, struct edit_lines b, FILE *out)
{
	size_t i = 0, k = 0, width, shown = 0;
	unsigned short *same;
	FILE *const whole = out;

	while (a.count > 0 && b.count > 0 && strcmp(*a.items, *b.items) == 0)
		a.items++, b.items++, a.count--, b.count--;
	while (a.count > 0 && b.count > 0 &&
	       strcmp(a.items[a.count - 1], b.items[b.count - 1]) == 0)
		a.count--, b.count--;
	same = edit_same(&a, &b);
	width = b.count + 1;
	while (i < a.count || k < b.count) {
		const unsigned short *at = same + i * width + k;
		bool both = i < a.count && k < b.count;
		size_t object = both ? edit_object(a.items[i], b.items[k]) : 0;

		if (both && strcmp(a.items[i], b.items[k]) == 0) {
			i++, k++;
			continue;
		}
		if (shown++ == EDIT_SHOWN)
			out = fopen("/dev/null", "w");
		if (both && object > 0 && at[width + 1] == *at)
			edit_show_change(a.items[i++], b.items[k++], object, out);
		else if (i < a.count && (k == b.count || at[width] == *at))
			fprintf(out, "  - %s\n", a.items[i++]);
		else
			fprintf(out, "  + %s\n", b.items[k++]);
	}
	if (shown > EDIT_SHOWN) {
		fclose(out);
		fprintf(whole, "  and %zu more\n", shown - EDIT_SHOWN);
	}
	free(same);
}

#endif
