// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <string.h>

#include <base/units.h>
#include <text/builder.h>

#define BYTES_MAX ((int64_t)1 << 40)

/* Element types by name; then the types that are no element. */
static const struct {
	const char *name;
	struct frag_dtype dtype;
} types[] = {
	{"bool", {FRAG_DTYPE_BOOL, 8, 1}},
	{"i8", {FRAG_DTYPE_INT, 8, 1}},
	{"i16", {FRAG_DTYPE_INT, 16, 1}},
	{"i32", {FRAG_DTYPE_INT, 32, 1}},
	{"i64", {FRAG_DTYPE_INT, 64, 1}},
	{"u8", {FRAG_DTYPE_UINT, 8, 1}},
	{"u16", {FRAG_DTYPE_UINT, 16, 1}},
	{"u32", {FRAG_DTYPE_UINT, 32, 1}},
	{"u64", {FRAG_DTYPE_UINT, 64, 1}},
	{"f16", {FRAG_DTYPE_FLOAT, 16, 1}},
	{"bf16", {FRAG_DTYPE_BFLOAT, 16, 1}},
	{"f32", {FRAG_DTYPE_FLOAT, 32, 1}},
	{"f64", {FRAG_DTYPE_FLOAT, 64, 1}},
	{"string", {FRAG_DTYPE_UINT, 8, 1}},
	{"path", {0, 0, 0}},
};
#define STRING (FRAG_COUNT_OF(types) - 2)
#define PATH (FRAG_COUNT_OF(types) - 1)

/* One variable that is being read; its errors name it. */
struct reading {
	struct fragi_builder *builder;
	struct fragi_node *map;
	struct fragi_spec_variable *variable;
	const char *subject; /* "variables.NAME" */
	bool is_whole;       /* so far */
};

#define refuse(reading, place, ...)                                                                \
	do {                                                                                       \
		(reading)->is_whole = false;                                                       \
		fragi_builder_error((reading)->builder, place, (reading)->subject, __VA_ARGS__);   \
	} while (0)

static void read_dimension(struct reading *reading, const struct fragi_node *node)
{
	struct fragi_spec_variable *variable = reading->variable;
	int64_t value;

	if (!fragi_read_integer(reading->builder, node, reading->subject, "a dimension", -1,
				BYTES_MAX, &value)) {
		reading->is_whole = false;
		return;
	}
	if (value == 0)
		refuse(reading, node,
		       "a dimension of 0 holds nothing; write its size, or -1 where the writer decides");
	variable->is_dynamic |= value < 0;
	variable->shape[variable->ndim++] = value;
}

static void check_bytes(struct reading *reading, const struct fragi_node *place)
{
	const struct fragi_spec_variable *variable = reading->variable;
	int64_t bytes = variable->dtype.bits / 8;

	for (int32_t i = 0; i < variable->ndim; i++)
		if (__builtin_mul_overflow(bytes, variable->shape[i] > 0 ? variable->shape[i] : 1,
					   &bytes) ||
		    bytes > BYTES_MAX) {
			refuse(reading, place, "the shape takes more than %" PRId64 " GiB",
			       BYTES_MAX >> 30);
			return;
		}
}

static void read_shape(struct reading *reading, struct fragi_node *node)
{
	if (node == NULL || node->kind == FRAGI_NODE_NULL)
		return;
	if (node->kind == FRAGI_NODE_SCALAR) {
		read_dimension(reading, node);
		check_bytes(reading, node);
		return;
	}
	if (fragi_read_list(reading->builder, node, reading->subject, "shape") == NULL ||
	    node->count == 0 || node->count > FRAG_TENSOR_NDIM_MAX) {
		reading->is_whole = false;
		if (node->kind == FRAGI_NODE_LIST)
			refuse(reading, node, "shape has %zu dimensions; it may have 1 to %d",
			       node->count, FRAG_TENSOR_NDIM_MAX);
		return;
	}
	for (const struct fragi_node *child = node->first; child != NULL; child = child->next)
		read_dimension(reading, child);
	if (reading->is_whole)
		check_bytes(reading, node);
}

static void read_path(struct reading *reading, const struct fragi_node *node)
{
	const char *text = fragi_read_text(reading->builder, node, reading->subject, "path");

	if (text == NULL || text[0] == '\0')
		refuse(reading, node != NULL ? node : reading->map,
		       "a variable of type path without a path; add `path: FOLDER`");
	else
		reading->variable->path = fragi_builder_path(reading->builder, text);
}

/* Its type, and the keys that go with it. */
static void read_type(struct reading *reading)
{
	static const char *const keys[] = {"shape", "path"};
	const struct fragi_node *node = fragi_node_get(reading->map, "type");
	struct fragi_node *shape = fragi_node_get(reading->map, "shape");
	struct fragi_node *path = fragi_node_get(reading->map, "path");
	struct fragi_spec_variable *variable = reading->variable;
	const char *words[FRAG_COUNT_OF(types)];
	size_t type;
	int i;

	for (size_t k = 0; k < FRAG_COUNT_OF(types); k++)
		words[k] = types[k].name;
	if (node == NULL)
		refuse(reading, reading->map->key,
		       "a variable without a type; add one, such as `type: f32`");
	i = fragi_read_word(reading->builder, node, reading->subject, "type", words,
			    FRAG_COUNT_OF(types));
	if (i < 0) {
		reading->is_whole = false;
		return;
	}
	type = (size_t)i;
	variable->dtype = types[type].dtype;
	for (size_t k = 0; k < FRAG_COUNT_OF(keys); k++) {
		const struct fragi_node *given = k == 0 ? shape : path;

		if (given != NULL && !given->is_reported &&
		    (k == 0 ? type >= STRING : type != PATH))
			refuse(reading, given->key, "a variable of type %s has no %s; leave it out",
			       words[type], keys[k]);
	}
	if (type == PATH) {
		read_path(reading, path);
	} else if (type == STRING) {
		variable->ndim = 1;
		variable->shape[0] = -1;
		variable->is_dynamic = true;
	} else {
		read_shape(reading, shape);
	}
}

/* Checks that fragment and operator exist. Returns 1; 0: `when` excludes it; -1: an error. */
static int check_party(struct reading *reading, const char *text, const char *what,
		       const struct fragi_spec_party *party)
{
	struct fragi_builder *builder = reading->builder;
	const struct fragi_node *fragments = fragi_node_get(builder->root, "fragments");
	const struct fragi_node *known = fragi_strmap_get(&builder->fragments, party->fragment);
	const struct fragi_node *operators;
	char *path, advice[512];

	if (fragi_strmap_get(&builder->excluded, party->fragment) != NULL)
		return 0;
	if (known == NULL) {
		reading->is_whole = false;
		if (!fragi_spec_may_be_lost(builder, fragments, party->fragment))
			refuse(reading, party->place, "%s %s: unknown fragment \"%s\"%s", what,
			       text, party->fragment,
			       fragi_builder_advise_keys(builder, advice, sizeof(advice),
							 party->fragment, "fragments", fragments));
		return -1;
	}
	if (party->op == NULL)
		return 1;
	path = fragi_builder_join(builder, party->fragment, party->op);
	if (path == NULL || fragi_strmap_get(&builder->operators, path) != NULL ||
	    fragi_strmap_get(&builder->composed, party->fragment) != NULL)
		return path != NULL ? 1 : -1;
	if (fragi_strmap_get(&builder->excluded, path) != NULL)
		return 0;
	reading->is_whole = false;
	operators = fragi_node_get(known, "operators");
	if (!fragi_spec_may_be_lost(builder, operators, party->op))
		refuse(reading, party->place, "%s %s: fragment %s has no operator \"%s\"%s", what,
		       text, party->fragment, party->op,
		       fragi_builder_advise_keys(builder, advice, sizeof(advice), party->op,
						 "operators", operators));
	return -1;
}

/* "FRAGMENT.OPERATOR" or "FRAGMENT"; in a graph of one fragment "OPERATOR". As check_party. */
static int read_party(struct reading *reading, const struct fragi_node *node, const char *what,
		      struct fragi_spec_party *out)
{
	struct fragi_builder *builder = reading->builder;
	const char *text = fragi_read_text(builder, node, reading->subject, what);
	bool is_single = fragi_node_get(builder->root, "fragments") == NULL;
	struct fragi_spec_party party = {.place = node};
	char *first, *dot;

	first = fragi_builder_strdup(builder, text);
	if (first == NULL) {
		reading->is_whole = false;
		return -1;
	}
	dot = strchr(first, '.');
	if (dot != NULL)
		*dot++ = '\0';
	if (!fragi_name_is_valid(first) || (dot != NULL && !fragi_name_is_valid(dot))) {
		refuse(reading, node, "%s \"%.200s\" is neither FRAGMENT nor FRAGMENT.OPERATOR",
		       what, text);
		return -1;
	}
	party.fragment = first;
	party.op = dot;
	if (is_single && dot == NULL) {
		party.fragment = builder->spec->application;
		party.op = strcmp(first, party.fragment) != 0 ? first : NULL;
	}
	*out = party;
	return check_party(reading, text, what, &party);
}

static void read_writer(struct reading *reading)
{
	const struct fragi_node *node = fragi_node_get(reading->map, "writer");

	if (node == NULL) {
		if (reading->is_whole && reading->variable->path == NULL)
			refuse(reading, reading->map->key,
			       "nobody writes it; add `writer: FRAGMENT.OPERATOR`");
		return;
	}
	if (read_party(reading, node, "writer", &reading->variable->writer) == 0)
		refuse(reading, node,
		       "writer %s is excluded by its when; give the variable the same when",
		       node->text);
}

static void read_readers(struct reading *reading)
{
	struct fragi_node *node = fragi_node_get(reading->map, "readers");
	struct fragi_spec_variable *variable = reading->variable;
	bool is_list = node != NULL && node->kind == FRAGI_NODE_LIST;
	size_t count = is_list                                         ? node->count
		       : node != NULL && node->kind != FRAGI_NODE_NULL ? 1
								       : 0;

	variable->readers =
		fragi_builder_alloc(reading->builder, count + 1, sizeof(*variable->readers));
	if (variable->readers == NULL || count == 0)
		return;
	for (const struct fragi_node *child = is_list ? node->first : node; child != NULL;
	     child = is_list ? child->next : NULL)
		if (read_party(reading, child, "reader",
			       &variable->readers[variable->reader_count]) > 0)
			variable->reader_count++;
}

static bool is_taken(const struct fragi_spec *spec, const char *name)
{
	for (size_t i = 0; i < spec->variable_count; i++)
		if (strcmp(spec->variables[i].name, name) == 0)
			return true;
	return false;
}

static void read_variable(struct fragi_builder *builder, struct fragi_node *map)
{
	static const struct fragi_key fields[] = {{"type"},   {"shape"},   {"path"},
						  {"writer"}, {"readers"}, {"when"}};
	struct fragi_spec *spec = builder->spec;
	struct fragi_spec_variable *variable = &spec->variables[spec->variable_count];
	const char *name = map->key->text;
	const char *subject = fragi_builder_join(builder, "variables", name);
	struct reading reading = {builder, map, variable, subject, true};

	*variable = (struct fragi_spec_variable){.name = name, .place = map->key};
	if (!fragi_check_name(builder, map->key, NULL, "variable", name) ||
	    fragi_read_map(builder, map, subject, "a variable") == NULL) {
		if (map->kind == FRAGI_NODE_NULL && !map->is_reported)
			refuse(&reading, map->key, "a variable without a type and a writer");
		return;
	}
	fragi_keys_check(builder, map, subject, fields, FRAG_COUNT_OF(fields));
	read_type(&reading);
	read_writer(&reading);
	read_readers(&reading);
	if (reading.is_whole && !is_taken(spec, name))
		spec->variable_count++;
}

void fragi_spec_read_variables(struct fragi_builder *builder, struct fragi_node *map)
{
	map = fragi_read_map(builder, map, NULL, "variables");
	if (map == NULL || builder->spec->application == NULL)
		return;
	if (map->count > FRAGI_SPEC_VARIABLES_MAX) {
		fragi_builder_error(builder, map->key, NULL,
				    "there are %zu variables, and an application has at most %d",
				    map->count, FRAGI_SPEC_VARIABLES_MAX);
		return;
	}
	builder->spec->variables =
		fragi_builder_alloc(builder, map->count, sizeof(*builder->spec->variables));
	if (builder->spec->variables == NULL)
		return;
	for (struct fragi_node *child = map->first; child != NULL; child = child->next)
		read_variable(builder, child);
}
