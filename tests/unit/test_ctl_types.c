// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "expected.h"

#include <frag/frag.h>
#include <fragctl/inspect.h>

/*
 * All that `fragctl inspect` and `fragctl schema` print of types that are made here: each field of
 * each table has a value of its own once, and is not there once.
 */
static const char *const choices[] = {"fast", "slow", "none", NULL};

#define EACH(kind_) .kind = FRAG_PARAM_KIND_##kind_, .def_int = 91, .def_float = 9.5

static const struct frag_param params[] = {
	{.name = "on", EACH(BOOL), .headline = "Whether", .description = "or whether not"},
	{.name = "off", .kind = FRAG_PARAM_KIND_BOOL, .flags = FRAG_PARAM_DYNAMIC},
	{.name = "count", EACH(I64), .min = -3, .max = 7, .headline = "How many"},
	{.name = "same", EACH(I64), .min = 7, .max = 7, .flags = FRAG_PARAM_OPTIONAL},
	{.name = "turned", EACH(I64), .min = 8, .max = 7},
	{.name = "from", EACH(I64), .min = 2, .max = 9.2e18, .flags = FRAG_PARAM_REQUIRED},
	{.name = "to", EACH(I64), .min = -9.2e18, .max = 11},
	{.name = "upward", EACH(I64), .min = 2, .max = 1e300},
	{.name = "downward", EACH(I64), .min = -1e300, .max = 13},
	{.name = "nearly", EACH(I64), .min = -9.1e18, .max = 9.1e18},
	{.name = "all", EACH(I64), .min = -9.3e18, .max = 9.3e18},
	{.name = "ratio", EACH(F64), .min = 0.25, .max = 1e6, .flags = FRAG_PARAM_DYNAMIC},
	{.name = "bytes", EACH(SIZE), .min = 1, .max = 4096},
	{.name = "largest", .kind = FRAG_PARAM_KIND_SIZE, .def_int = -1},
	{.name = "never", .kind = FRAG_PARAM_KIND_DURATION, .min = 0, .max = 5},
	{.name = "period", .kind = FRAG_PARAM_KIND_DURATION, .def_int = 30000000},
	{.name = "odd", .kind = FRAG_PARAM_KIND_DURATION, .def_int = 30000001},
	{.name = "wait", EACH(DURATION), .flags = FRAG_PARAM_REQUIRED | FRAG_PARAM_DYNAMIC},
	{.name = "text", EACH(STRING), .def_text = "a \"b\"", .headline = "What"},
	{.name = "empty", EACH(STRING), .def_text = ""},
	{.name = "none", EACH(STRING), .flags = FRAG_PARAM_OPTIONAL | FRAG_PARAM_DYNAMIC},
	{.name = "mode", EACH(STRING), .def_text = "slow", .choices = choices, .max = 5},
	{.name = "path", EACH(PATH), .def_text = "a/b", .flags = FRAG_PARAM_REQUIRED},
	{.name = "pool", EACH(RESOURCE), .flags = FRAG_PARAM_OPTIONAL},
	{.name = "condition", EACH(CONDITION)},
	{.name = "numbers", EACH(I64_LIST), .def_text = "[1, 2]"},
	{.name = "ratios", EACH(F64_LIST), .def_text = "[0.5]"},
	{.name = "names", EACH(STRING_LIST), .flags = FRAG_PARAM_REQUIRED},
	{.name = "map", EACH(STRING_MAP), .def_text = "{a: b}"},
	{.name = "tree", EACH(TREE)},
};

static const struct frag_port ports[] = {
	{.name = "in", .dir = FRAG_IN, .type = "i64", .headline = "numbers"},
	{.name = "any_of_them",
	 .dir = FRAG_IN,
	 .flags = FRAG_PORT_MULTI,
	 .capacity = 5,
	 .min_size = 3,
	 .policy = FRAG_POLICY_POP},
	{.name = "left", .dir = FRAG_IN, .flags = FRAG_PORT_OPTIONAL | FRAG_PORT_NO_CONDITION},
	{.name = "one", .dir = FRAG_IN, .min_size = 1, .capacity = 1},
	{.name = "out",
	 .dir = FRAG_OUT,
	 .type = "tensor",
	 .min_size = 2,
	 .policy = FRAG_POLICY_LATEST,
	 .headline = "boxes and masks",
	 .tensors = "boxes: f32[n][4], 0 to 1 | box_converter; mask: u8[r][c][1], classes"},
	{.name = "log", .dir = FRAG_OUT, .flags = FRAG_PORT_NO_CONDITION},
};

static const struct frag_port shut[] = {
	{.name = "shut", .dir = FRAG_OUT, .flags = FRAG_PORT_NO_CONDITION}};

static const struct frag_field fields[] = {
	{.name = "x", .type = "f64", .offset = 0, .count = 1, .size = 8},
	{.name = "matrix_of_it", .type = "f32", .offset = 8, .count = 12, .size = 4},
	{.name = "n", .type = "u8", .offset = 56, .count = 2, .size = 1},
};
static const struct frag_type pose = {FRAG_TYPE_INIT, .name = "pose", .size = 64,
				      FRAG_FIELDS(fields)};

static int encode(const void *value, struct frag_writer *writer)
{
	(void)value, (void)writer;
	return 0;
}

static int decode(void *value, struct frag_reader *reader)
{
	(void)value, (void)reader;
	return 0;
}

static const struct frag_type coded = {FRAG_TYPE_INIT, .name = "coded", .size = 2, .encode = encode,
				       .decode = decode};
static const struct frag_type handle = {FRAG_TYPE_INIT,   .name = "handle",
					.size = 1,        .fields = fields,
					.field_count = 1, .field_size = sizeof(fields[0])};
static const struct frag_type open_end = {FRAG_TYPE_INIT, .name = "open_end"};

#define OF_LIBRARY .library = "/x/y/libz.so", .plugin = "zett", .version = "2.1"
#define PORTS(table) .ports = (table), .port_count = FRAG_COUNT_OF(table)
#define SOME_PARAMS(first, number) .params = &params[first], .param_count = (number)

static const struct ctl_type types[] = {
	{.kind = CTL_OPERATOR,
	 .name = "camera",
	 .headline = "Looks",
	 .description = "More about it.",
	 OF_LIBRARY,
	 PORTS(ports),
	 SOME_PARAMS(0, FRAG_COUNT_OF(params)),
	 .saved_bytes = 77,
	 .save_period_ns = 1500000},
	{.kind = CTL_OPERATOR, .name = "none", .saved_bytes = 78},
	{.kind = CTL_OPERATOR,
	 .name = "made",
	 .adds_ports = true,
	 .library = "liby.so",
	 .plugin = "y",
	 .version = ""},
	{.kind = CTL_OPERATOR,
	 .name = "shut",
	 PORTS(shut),
	 .adds_ports = true,
	 .library = "/x/l.so",
	 .plugin = "y",
	 .version = ""},
	{.kind = CTL_CONDITION, .name = "when", .headline = "Waits", SOME_PARAMS(2, 1)},
	{.kind = CTL_CONDITION, .name = "always_or_more_than_that"},
	{.kind = CTL_RESOURCE,
	 .name = "camera",
	 .description = "A pool.",
	 OF_LIBRARY,
	 SOME_PARAMS(16, 8)},
	{.kind = CTL_COMPOSER, .name = "compose_it", .headline = "Composes", OF_LIBRARY},
	{.kind = CTL_SUBGRAPH, .name = "part", .headline = "A part", OF_LIBRARY},
	{.kind = CTL_VALUE, .name = "pose", .headline = "A place", .value = &pose, OF_LIBRARY},
	{.kind = CTL_VALUE, .name = "coded", .value = &coded},
	{.kind = CTL_VALUE, .name = "handle", .value = &handle},
	{.kind = CTL_VALUE, .name = "open_end", .value = &open_end},
};

static const struct ctl_library libraries[] = {
	{.path = "/x/y/libz.so", .plugin = "zett", .version = "2.1", .sha256 = "0123abcd"},
	{.path = "libother.so", .plugin = "other", .version = ""},
};

/* Takes the place of fragctl/inspect.c. */
int ctl_inspect_run(const char *verb, struct ctl_inspection *inspection)
{
	(void)verb, (void)inspection;
	return 0;
}

static char *text;
static size_t size;

static FILE *begin(void)
{
	FILE *out = open_memstream(&text, &size);

	cr_assert_not_null(out);
	return out;
}

static void end(FILE *out, const char *name)
{
	fclose(out);
	expected_compare(name, text);
	free(text);
}

Test(ctl_types, are_shown_to_people)
{
	FILE *out = begin();

	ctl_types_print(types, FRAG_COUNT_OF(types), out);
	ctl_types_print(&types[1], 2, out); /* names that are short */
	for (size_t i = 0; i < FRAG_COUNT_OF(types); i++) {
		fputc('\n', out);
		ctl_type_print(&types[i], out);
	}
	for (size_t i = 0; i < FRAG_COUNT_OF(libraries); i++)
		ctl_library_print(&libraries[i], out);
	end(out, "fragctl/types");
}

/* A line for each parameter, port and field: documents have long ones. */
static void put_lines(const char *document, FILE *out)
{
	for (const char *at = document; *at != '\0'; at++) {
		fputc(*at, out);
		if (strncmp(at, ", {\"name\"", 9) == 0 || strncmp(at, ", {\"if\"", 7) == 0 ||
		    (strncmp(at, ", \"", 3) == 0 && at[-1] == '}'))
			fputs("\n     ", out);
	}
}

Test(ctl_types, are_documents)
{
	char *document;
	size_t bytes;
	FILE *out = open_memstream(&document, &bytes), *lines = begin();

	cr_assert_not_null(out);
	ctl_types_print_json(types, FRAG_COUNT_OF(types), libraries, FRAG_COUNT_OF(libraries), out);
	ctl_types_print_json(NULL, 0, NULL, 0, out);
	fclose(out);
	put_lines(document, lines);
	free(document);
	end(lines, "fragctl/types_json");
}

#define KINDS 3 /* of types in the schema */

/* The schema is that of docs, but for three words, in whose place the types are. */
Test(ctl_types, are_in_the_schema)
{
	static const char word[] = "_types\": true";
	static char docs[1 << 16];
	char *parts[KINDS + 1] = {docs}, *schema, *at, *after;
	FILE *file = fopen("docs/graph.schema.json", "r"), *out, *lines = begin();
	size_t bytes;

	cr_assert_not_null(file);
	cr_assert_lt(fread(docs, 1, sizeof(docs) - 1, file), sizeof(docs) - 1);
	fclose(file);
	for (int i = 0; i < KINDS; i++) {
		at = strstr(parts[i], word);
		cr_assert_not_null(at);
		parts[i + 1] = at + sizeof(word) - 1;
		at[sizeof(word) - 1 - strlen("true")] = '\0';
	}
	out = open_memstream(&schema, &bytes);
	cr_assert_not_null(out);
	ctl_types_print_schema(types, FRAG_COUNT_OF(types), out);
	fclose(out);
	at = schema;
	for (int i = 0; i < KINDS; i++) {
		cr_assert_eq(strncmp(at, parts[i], strlen(parts[i])), 0, "%.200s", at);
		at += strlen(parts[i]);
		after = strstr(at, parts[i + 1]);
		cr_assert_not_null(after);
		*after = '\0';
		put_lines(at, lines);
		fputc('\n', lines);
		*after = parts[i + 1][0];
		at = after;
	}
	cr_expect_str_eq(at, parts[KINDS]);
	free(schema);
	end(lines, "fragctl/types_schema");
}
