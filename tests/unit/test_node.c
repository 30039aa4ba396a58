// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>

#include <base/alloc.h>
#include <base/stamp.h>
#include <text/node.h>

#include "unit/graph_texts.h"

static struct fragi_node *parsed(struct fragi_arena *arena, const char *text)
{
	struct fragi_diag diag = {0};
	struct fragi_node *root = NULL;
	int r = fragi_yaml_parse(arena, "a.yaml", text, strlen(text), &diag, &root);

	expect_errors(&diag, "");
	cr_assert_eq(r, 0);
	fragi_diag_fini(&diag);
	return root;
}

static void refused_text(const char *text, size_t length, const char *lines)
{
	struct fragi_arena arena = {0};
	struct fragi_diag diag = {0};
	struct fragi_node *root = NULL;

	cr_expect_eq(fragi_yaml_parse(&arena, "a.yaml", text, length, &diag, &root), -EINVAL);
	/* A tree with a key twice is whole; of anything worse nothing is given. */
	cr_expect_eq(root != NULL,
		     strstr(lines, "given twice") != NULL && strstr(lines, "merge keys") == NULL);
	expect_errors(&diag, lines);
	fragi_diag_fini(&diag);
	fragi_arena_fini(&arena);
}

static void refused(const char *text, const char *lines)
{
	refused_text(text, strlen(text), lines);
}

Test(node, keeps_kinds_texts_order_and_places)
{
	struct fragi_arena arena = {0};
	const struct fragi_node *root = parsed(&arena, "b: 1\n"
						       "a: [x, 'y', ~, \"\"]\n"
						       "c:\n"
						       "  - {d: null}\n"
						       "  - |\n"
						       "    two\n"
						       "    lines\n"
						       "e:\n");
	const struct fragi_node *list = fragi_node_get(root, "a"), *item;

	cr_assert_eq(root->kind, FRAGI_NODE_MAP);
	cr_expect_eq(root->count, 4);
	cr_expect_str_eq(root->first->key->text, "b");
	cr_expect_str_eq(root->first->text, "1");
	cr_expect_str_eq(root->last->key->text, "e");
	cr_expect_eq(root->last->kind, FRAGI_NODE_NULL);
	cr_assert_eq(list->kind, FRAGI_NODE_LIST);
	cr_assert_eq(list->count, 4);
	cr_expect_eq(list->line, 2);
	cr_expect_eq(list->column, 4);
	cr_expect_eq(list->key->line, 2);
	cr_expect_eq(list->key->column, 1);
	cr_expect_str_eq(list->file, "a.yaml");
	item = list->first;
	cr_expect(item->kind == FRAGI_NODE_SCALAR && !item->quoted && item->column == 5);
	item = item->next;
	cr_expect(item->kind == FRAGI_NODE_SCALAR && item->quoted && strcmp(item->text, "y") == 0);
	item = item->next;
	cr_expect(item->kind == FRAGI_NODE_NULL && item->text == NULL);
	item = item->next;
	cr_expect(item->kind == FRAGI_NODE_SCALAR && item->quoted && item->text[0] == '\0');
	cr_expect_null(item->next);
	cr_expect_str_eq(fragi_node_get(root, "c")->last->text, "two\nlines\n");
	fragi_arena_fini(&arena);
}

Test(node, a_byte_order_mark_is_skipped)
{
	struct fragi_arena arena = {0};

	cr_expect_str_eq(fragi_node_get(parsed(&arena, "\xEF\xBB\xBF"
						       "a: b\n"),
					"a")
				 ->text,
			 "b");
	fragi_arena_fini(&arena);
	refused("a: \xEF\xBB",
		"a.yaml: not a text in UTF-8: incomplete UTF-8 octet sequence at byte 3; save it as UTF-8\n");
}

Test(node, paths_and_lookups)
{
	struct fragi_arena arena = {0};
	struct fragi_node *root = parsed(&arena, "a: {b: {c: 5, cc: 6}, bb: 7}\nab: 1\n");

	cr_expect_str_eq(fragi_node_at(root, "a.b.c")->text, "5");
	cr_expect_str_eq(fragi_node_at(root, "a.bb")->text, "7");
	cr_expect_str_eq(fragi_node_at(root, "ab")->text, "1");
	cr_expect_null(fragi_node_at(root, "a.b.d"));
	cr_expect_null(fragi_node_at(root, "a.b.c.d"));
	cr_expect_null(fragi_node_at(root, ""));
	cr_expect_null(fragi_node_at(root, "a."));
	cr_expect_null(fragi_node_at(root, "."));
	cr_expect_null(fragi_node_at(NULL, "a"));
	cr_expect_null(fragi_node_get(NULL, "a"));
	cr_expect_null(fragi_node_get(fragi_node_get(root, "ab"), "a"));
	fragi_arena_fini(&arena);
}

Test(node, the_path_of_a_place)
{
	struct fragi_arena arena = {0};
	struct fragi_node *root = parsed(&arena, "a: {b: [5, {c: 6}]}\n"
						 "flows:\n"
						 "  - x -> y\n"
						 "  - [[1], [2, 3]]\n");
	char path[64], small[6];

	cr_expect(fragi_node_path(root, 1, 1, path, sizeof(path)));
	cr_expect_str_eq(path, "a");
	cr_expect(fragi_node_path(root, 1, 16, path, sizeof(path)));
	cr_expect_str_eq(path, "a.b[1].c", "the value's place");
	cr_expect(fragi_node_path(root, 1, 13, path, sizeof(path)));
	cr_expect_str_eq(path, "a.b[1].c", "the key's place");
	cr_expect(fragi_node_path(root, 3, 5, path, sizeof(path)));
	cr_expect_str_eq(path, "flows[0]");
	cr_expect(fragi_node_path(root, 4, 15, path, sizeof(path)));
	cr_expect_str_eq(path, "flows[1][1][1]");
	cr_expect_not(fragi_node_path(root, 2, 3, path, sizeof(path)), "nothing stands there");
	cr_expect_not(fragi_node_path(root, 1, 16, small, sizeof(small)), "it does not fit");
	fragi_arena_fini(&arena);
}

Test(node, an_alias_is_a_copy_with_the_places_of_its_anchor)
{
	struct fragi_arena arena = {0};
	struct fragi_node *root = parsed(&arena, "a: &x {k: [1, 2]}\n"
						 "b: *x\n"
						 "c: &x 7\n"
						 "d: *x\n");
	const struct fragi_node *a = fragi_node_get(root, "a"), *b = fragi_node_get(root, "b");

	cr_expect_neq(a, b);
	cr_expect_neq(a->first, b->first);
	cr_expect_str_eq(b->key->text, "b");
	cr_expect_str_eq(b->first->key->text, "k");
	cr_expect_str_eq(b->first->last->text, "2");
	cr_expect_eq(b->line, 1);
	cr_expect_str_eq(fragi_node_get(root, "d")->text, "7");
	fragi_arena_fini(&arena);
}

Test(node, an_empty_text_is_an_empty_node)
{
	static const char *const texts[] = {"", "\n", "# nothing\n", "---\n", "--- ~\n"};

	for (size_t i = 0; i < FRAG_COUNT_OF(texts); i++) {
		struct fragi_arena arena = {0};

		cr_expect_eq(parsed(&arena, texts[i])->kind, FRAGI_NODE_NULL, "%zu", i);
		fragi_arena_fini(&arena);
	}
}

#define A_KEY(at)                                                                                  \
	"a.yaml:" at                                                                               \
	": a key must be a name, and this is none; close the { or [ before it, if one is open\n"

Test(node, what_is_not_accepted_is_said_with_its_place)
{
	refused("a: 1\nb: 2\na: 3\n",
		"a.yaml:3:1: the key \"a\" is given twice in one map; remove one\n");
	refused("a: 1\na: 2\nb: {c: 1, c: 1}\n",
		"a.yaml:2:1: the key \"a\" is given twice in one map; remove one\n"
		"a.yaml:3:11: the key \"c\" is given twice in one map; remove one\n");
	refused("a: &x {b: 1}\nc:\n  <<: *x\n",
		"a.yaml:3:3: merge keys (<<) are not supported; write the keys out\n");
	refused("a: !!int 5\n",
		"a.yaml:1:4: type tags (tag:yaml.org,2002:int) are not supported; a value becomes a type by the declared type of its parameter alone\n");
	refused("a: !mine {b: 1}\n",
		"a.yaml:1:4: type tags (!mine) are not supported; a value becomes a type by the declared type of its parameter alone\n");
	refused("a: 1\n---\nb: 1\n", "a.yaml:2:1: more than one document; write one file each\n");
	refused("a: *x\n", "a.yaml:1:4: the alias *x has no anchor &x before it\n");
	refused("a: &x [1, *x]\n", "a.yaml:1:11: the alias *x stands inside its anchor\n");
	refused("a: &x k\n*x : 1\n", "a.yaml:2:1: an alias cannot be a key; write the key out\n");
	refused("? [a, b]\n: 1\n", A_KEY("1:3"));
	refused("~: 1\n", A_KEY("1:1"));
	refused("a: \"x\\0y\"\n", "a.yaml:1:4: a text must not hold the character NUL (\\0)\n");
	refused("a: \xff\n",
		"a.yaml: not a text in UTF-8: invalid leading UTF-8 octet at byte 3; save it as UTF-8\n");
	refused("\xff\xfe\x61\x00",
		"a.yaml: not a text in UTF-8: invalid leading UTF-8 octet at byte 0; save it as UTF-8\n");
}

Test(node, brackets_that_are_not_closed)
{
	refused("a: [1\nb: 2\n", "a.yaml:1:4: this \"[\" is not closed; add \"]\"\n");
	refused("a: [\n", "a.yaml:1:4: this \"[\" is not closed; add \"]\"\n");
	refused("a: {b: [1, 2}\n",
		"a.yaml:1:13: \"}\" closes the \"[\" of line 1, column 8; write \"]\"\n");
	refused("\xEF\xBB\xBF\xC3\xA4: {b: {c: 1}\nd: 1\n",
		"a.yaml:1:4: this \"{\" is not closed; add \"}\"\n");
	refused("x:\n  a: {type: t\n  b: {type: u}\n",
		"a.yaml:2:6: this \"{\" is not closed; add \"}\"\n");
	refused("a: {b: 1\n    c: 2}\n",
		"a.yaml:2:6: inside the \"{\" of line 1, column 4 a comma is missing, or quotes around a text that holds a colon or a bracket\n");
	refused("a: [b c: d: e]\n",
		"a.yaml:1:11: inside the \"[\" of line 1, column 4 a comma is missing, or quotes around a text that holds a colon or a bracket\n");
	refused("a: [1,, 2]\n", "a.yaml:1:7: a value is missing before this comma\n");
	refused("a: [b: ${c}]\n",
		"a.yaml:1:9: a reference to an argument needs quotes inside [] and {}; write \"${NAME}\"\n");
	refused("a: [1]]\n",
		"a.yaml:1:7: \"]\" closes nothing; remove it, or add the \"[\" that it is to close\n");
}

Test(node, lines_that_fit_nowhere)
{
	static const char colon[] =
		"no key can stand here; indent it as the keys around it, and write a space after the colon in the line before";
	char wanted[200];

	refused("a: 1\nb\nc: 2\n",
		"a.yaml:2:1: \"b\" is no key with a value; write a colon and a space after the key\n");
	refused("a: 1\nb123456789b123456789b123456789b123456789c\nc: 2\n",
		"a.yaml:2:1: \"b123456789b123456789b123456789b123456789\" is no key with a value; write a colon and a space after the key\n");
	refused("a:\n    b: 1\n  c: 2\n",
		"a.yaml:3:3: this line is indented otherwise than those before it; begin the keys of one map, and the items of one list, in the same column\n");
	snprintf(wanted, sizeof(wanted), "a.yaml:2:2: %s\n", colon);
	refused("a:1\nb: 2\n", wanted);
	snprintf(wanted, sizeof(wanted), "a.yaml:2:4: %s\n", colon);
	refused("a: 1\n  b: 2\n", wanted);
	refused("a: b: c\n",
		"a.yaml:1:5: a second colon in this line; put quotes around the value if the colon is a part of it\n");
	refused("a:\n  - 1\n - 2\n",
		"a.yaml:3:2: this line is indented otherwise than those before it; begin the keys of one map, and the items of one list, in the same column\n");
	refused("a: \"b\" c\n",
		"a.yaml:1:8: a value ends before this; put quotes around all of it, or begin a new line\n");
	refused("a: - 1\n",
		"a.yaml:1:4: no item of a list (\"- \") can stand here; begin it in a line of its own, below the key of the list\n");
	refused("a:\n\tb: 1\n",
		"a.yaml:2:1: a tab; indent with spaces, since YAML allows no tabs there\n");
}

Test(node, texts_that_need_quotes)
{
	refused("a: \"b\nc: 1\n",
		"a.yaml:1:4: this quote (\") is not closed; add one at the end of the text\n");
	refused("a: 'b\nc: 1\n",
		"a.yaml:1:4: this quote (') is not closed; add one at the end of the text\n");
	refused("a: @b\n", "a.yaml:1:4: a text cannot begin with \"@\"; put it into quotes\n");
	refused("a: \"\\d\"\n",
		"a.yaml:1:5: inside double quotes a backslash begins an escape, and this is none; write two of them, or single quotes around the text\n");
	refused("a: *\n",
		"a.yaml:1:5: not YAML: did not find expected alphabetic or numeric character while scanning an alias\n");
}

Test(node, duplicates_are_found_in_large_maps)
{
	char *text = malloc(1 << 20);
	size_t length = 0;

	for (int i = 0; i < 50000; i++)
		length += (size_t)sprintf(text + length, "key%d: %d\n", i, i);
	sprintf(text + length, "key7: 1\nkey40000: 1\n");
	refused(text,
		"a.yaml:50001:1: the key \"key7\" is given twice in one map; remove one\n"
		"a.yaml:50002:1: the key \"key40000\" is given twice in one map; remove one\n");
	free(text);
}

Test(node, text_depth_and_number_are_bounded)
{
	char *text = malloc(FRAGI_YAML_TEXT_MAX + 2);
	struct fragi_arena arena = {0};
	size_t i;

	memset(text, ' ', FRAGI_YAML_TEXT_MAX + 1);
	refused_text(text, FRAGI_YAML_TEXT_MAX + 1,
		     "a.yaml: 3145729 bytes of text; at most 3 MiB are read; make it smaller\n");
	memset(text, '[', FRAGI_YAML_DEPTH_MAX);
	memset(text + FRAGI_YAML_DEPTH_MAX, ']', FRAGI_YAML_DEPTH_MAX);
	text[2 * FRAGI_YAML_DEPTH_MAX] = '\0';
	cr_expect_eq(parsed(&arena, text)->kind, FRAGI_NODE_LIST);
	fragi_arena_fini(&arena);
	memset(text, '[', FRAGI_YAML_TEXT_MAX);
	refused_text(text, FRAGI_YAML_TEXT_MAX, "a.yaml:1:65: nested deeper than 64 levels\n");
	text[0] = '[';
	for (i = 1; i < FRAGI_YAML_TEXT_MAX - 2; i += 2)
		memcpy(text + i, "1,", 2);
	text[i] = ']';
	refused_text(
		text, i + 1,
		"a.yaml:1:2000000: more than 1000000 values, those of aliases counted; make it smaller\n");
	free(text);
}

Test(node, alias_bombs_are_bounded)
{
	char text[4096];
	size_t length;

	length = (size_t)sprintf(text, "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
	for (int i = 1; i < 12; i++)
		length += (size_t)sprintf(
			text + length,
			"a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", i, i, i - 1,
			i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
	refused(text,
		"a.yaml:7:15: more than 1000000 values, those of aliases counted; make it smaller\n");
	length = (size_t)sprintf(text, "- &b0 [x]\n");
	for (int i = 1; i < 80; i++)
		length += (size_t)sprintf(text + length, "- &b%d [*b%d]\n", i, i - 1);
	refused(text, "a.yaml:64:9: nested deeper than 64 levels by aliases\n");
}

Test(node, every_failure_of_memory_is_told)
{
	static const char text[] =
		"a: &x {b: [1, 2, 'three']}\nc: *x\nd: {1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 7: 7, 8: 8, 9: 9, 10: 10}\n";
	int r = -ENOMEM;

	for (int64_t skip = 0; r != 0; skip++) {
		struct fragi_arena arena = {0};
		struct fragi_diag diag = {0};
		struct fragi_node *root = NULL;

		cr_assert_lt(skip, 1000);
		fragi_alloc_fail_after(skip, 1);
		r = fragi_yaml_parse(&arena, "a.yaml", text, sizeof(text) - 1, &diag, &root);
		if (fragi_alloc_fail_off() > 0)
			cr_assert_eq(r, -ENOMEM, "%lld", (long long)skip);
		fragi_diag_fini(&diag);
		fragi_arena_fini(&arena);
	}
}

Test(node, errors_are_printable)
{
	struct fragi_diag diag = {0};

	fragi_node_error(&diag, NULL, "f.op", "\"a\x1b[31m\xff\xc3\xa9\xc3\" %d", 5);
	expect_errors(&diag, "f.op: \"a?[31m?\xc3\xa9?\" 5\n");
	fragi_diag_fini(&diag);
}
