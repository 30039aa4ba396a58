// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/units.h>
#include <fragctl/test.h>

#define FILE_MAX (1u << 20)

struct reading {
	struct ctl_tests *tests;
	struct fragi_diag diag;
	const char *folder; /* absolute, of the file */
};

#define wrong(reading, place, subject, ...)                                                        \
	((void)fragi_node_error(&(reading)->diag, place, subject, __VA_ARGS__))

static void check_keys(struct reading *reading, const struct fragi_node *map, const char *subject,
		       const char *const *names, size_t count)
{
	char advice[256];
	size_t i;

	for (const struct fragi_node *child = map->first; child != NULL; child = child->next) {
		for (i = 0; i < count && strcmp(names[i], child->key->text) != 0; i++)
			;
		if (i == count)
			wrong(reading, child->key, subject, "unknown key \"%.80s\"%s",
			      child->key->text,
			      fragi_advise(advice, sizeof(advice), child->key->text, "valid keys",
					   names, count));
	}
}

/* A map whose values are single; NULL: there is none, or it is none. */
static const struct fragi_node *map_of(struct reading *reading, const struct fragi_node *test,
				       const char *subject, const char *name)
{
	const struct fragi_node *map = fragi_node_get(test, name);

	if (map == NULL || map->kind == FRAGI_NODE_NULL)
		return NULL;
	if (map->kind != FRAGI_NODE_MAP) {
		wrong(reading, map, subject, "%s must be a map (keys and values)", name);
		return NULL;
	}
	for (const struct fragi_node *child = map->first; child != NULL; child = child->next)
		if (child->kind != FRAGI_NODE_SCALAR) {
			wrong(reading, child, subject, "%s of %s must be a single value",
			      child->key->text, name);
			return NULL;
		}
	return map;
}

/* `before` key = value, for a command line. */
static void read_words(struct reading *reading, const struct fragi_node *map, const char *before,
		       const char ***out_words, size_t *out_count)
{
	struct fragi_arena *arena = &reading->tests->arena;
	const char **words =
		map != NULL ? fragi_arena_alloc(arena, map->count * sizeof(char *)) : NULL;

	if (words == NULL)
		return;
	*out_words = words;
	for (const struct fragi_node *child = map->first; child != NULL; child = child->next)
		words[(*out_count)++] =
			fragi_arena_printf(arena, "%s%s=%s", before, child->key->text, child->text);
}

static void read_files(struct reading *reading, const struct fragi_node *map,
		       struct ctl_test_file **out_files, size_t *out_count)
{
	struct fragi_arena *arena = &reading->tests->arena;
	struct ctl_test_file *files =
		map != NULL ? fragi_arena_alloc(arena, map->count * sizeof(*files)) : NULL;

	if (files == NULL)
		return;
	*out_files = files;
	for (const struct fragi_node *child = map->first; child != NULL; child = child->next)
		files[(*out_count)++] = (struct ctl_test_file){
			.port = fragi_arena_printf(arena, "%s", child->key->text),
			.path = child->text[0] == '/'
					? fragi_arena_printf(arena, "%s", child->text)
					: fragi_arena_printf(arena, "%s/%s", reading->folder,
							     child->text),
		};
}

static void read_test(struct reading *reading, const struct fragi_node *node, struct ctl_test *test)
{
	static const char *const names[] = {"arguments", "set",      "inputs",
					    "outputs",   "duration", "tolerance"};
	const struct fragi_node *duration, *tolerance;
	const char *subject = node->key->text;
	int64_t ns = 0;

	test->name = fragi_arena_printf(&reading->tests->arena, "%s", subject);
	if (node->kind != FRAGI_NODE_MAP) {
		wrong(reading, node, subject, "a test must be a map; give it inputs and outputs");
		return;
	}
	check_keys(reading, node, subject, names, FRAG_COUNT_OF(names));
	read_words(reading, map_of(reading, node, subject, "arguments"), "--", &test->arguments,
		   &test->argument_count);
	read_words(reading, map_of(reading, node, subject, "set"), "", &test->sets,
		   &test->set_count);
	read_files(reading, map_of(reading, node, subject, "inputs"), &test->inputs,
		   &test->input_count);
	read_files(reading, map_of(reading, node, subject, "outputs"), &test->outputs,
		   &test->output_count);
	duration = fragi_node_get(node, "duration");
	if (duration != NULL && (duration->kind != FRAGI_NODE_SCALAR ||
				 fragi_parse_duration(duration->text, &ns) < 0 || ns < 1000000))
		wrong(reading, duration, subject,
		      "duration is not a valid duration of 1ms and more; write for example 10s");
	test->duration_ms = ns / 1000000;
	tolerance = fragi_node_get(node, "tolerance");
	if (tolerance != NULL &&
	    (tolerance->kind != FRAGI_NODE_SCALAR ||
	     fragi_parse_f64(tolerance->text, &test->tolerance) < 0 || !(test->tolerance >= 0)))
		wrong(reading, tolerance, subject, "tolerance is not a number from 0 up");
	if (test->output_count == 0)
		wrong(reading, node, subject,
		      "a test expects something; give outputs: {OPERATOR.PORT: FILE}");
}

static void read_all(struct reading *reading, const struct fragi_node *root)
{
	static const char *const names[] = {"frag_test", "tests"};
	const struct fragi_node *version = fragi_node_get(root, "frag_test");
	const struct fragi_node *map = fragi_node_get(root, "tests");
	struct ctl_tests *tests = reading->tests;

	if (root->kind != FRAGI_NODE_MAP || version == NULL || version->text == NULL ||
	    strcmp(version->text, "1") != 0) {
		wrong(reading, root, NULL,
		      "no file of tests that this version knows; begin with `frag_test: 1`");
		return;
	}
	check_keys(reading, root, NULL, names, FRAG_COUNT_OF(names));
	if (map == NULL || map->kind != FRAGI_NODE_MAP || map->count == 0) {
		wrong(reading, map != NULL ? map : root, NULL,
		      "there are no tests; add tests: {NAME: {inputs: {}, outputs: {}}}");
		return;
	}
	tests->items = fragi_arena_alloc(&tests->arena, map->count * sizeof(*tests->items));
	if (tests->items == NULL)
		return;
	memset(tests->items, 0, map->count * sizeof(*tests->items));
	for (const struct fragi_node *child = map->first; child != NULL; child = child->next)
		read_test(reading, child, &tests->items[tests->count++]);
}

static int read_text(const char *path, char **out_text, size_t *out_size)
{
	FILE *in = fopen(path, "re");
	char *text = malloc(FILE_MAX + 1);
	size_t size = 0;

	if (in != NULL && text != NULL)
		size = fread(text, 1, FILE_MAX + 1, in);
	if (in == NULL || text == NULL || ferror(in) || size > FILE_MAX) {
		int code = ctl_fail(CTL_MISSING, "cannot read %s: %s", path,
				    size > FILE_MAX ? "it has more than 1 MiB" : strerror(errno));

		free(text);
		if (in != NULL)
			fclose(in);
		return code;
	}
	fclose(in);
	*out_text = text;
	*out_size = size;
	return CTL_OK;
}

int ctl_tests_read(struct ctl_tests *tests, const char *path)
{
	struct reading reading = {.tests = tests};
	struct fragi_node *root = NULL;
	char *text = NULL, *absolute, *slash;
	size_t size = 0;
	int exit_code = read_text(path, &text, &size);

	if (exit_code != CTL_OK)
		return exit_code;
	absolute = realpath(path, NULL);
	slash = absolute != NULL ? strrchr(absolute, '/') : NULL;
	if (slash != NULL)
		*slash = '\0';
	reading.folder = absolute != NULL ? absolute : ".";
	(void)fragi_yaml_parse(&tests->arena, path, text, size, &reading.diag, &root);
	if (root != NULL)
		read_all(&reading, root);
	ctl_diag_print(&reading.diag);
	if (reading.diag.count > 0) {
		exit_code = CTL_USAGE;
		ctl_fail_document(exit_code, FRAGI_FAILURE_USAGE, reading.diag.items[0].text);
	} else if (tests->count == 0)
		exit_code = ctl_fail(CTL_FAILED, "out of memory");
	fragi_diag_fini(&reading.diag);
	free(absolute);
	free(text);
	return exit_code;
}

void ctl_tests_fini(struct ctl_tests *tests)
{
	fragi_arena_fini(&tests->arena);
}
