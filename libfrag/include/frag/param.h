/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_PARAM_H
#define FRAG_PARAM_H

#include <stdbool.h>

#include <frag/abi.h>
#include <frag/check.h>

FRAG_BEGIN_DECLS

/*
 * Parameters. An entry of the table ties a name to a field of the operator's state. The value is
 * written into the field before setup. The kind alone decides how a text of a graph becomes a
 * value. The comment of each kind is the type of the field.
 */
enum frag_param_kind {
	/* bool */
	FRAG_PARAM_KIND_BOOL = 1,
	/* int64_t */
	FRAG_PARAM_KIND_I64 = 2,
	/* double */
	FRAG_PARAM_KIND_F64 = 3,
	/* const char *, not NULL unless the parameter is optional */
	FRAG_PARAM_KIND_STRING = 4,
	/* uint64_t, bytes: 4096, "512Mi", "2MB" */
	FRAG_PARAM_KIND_SIZE = 5,
	/* int64_t, nanoseconds: 1000, "10ms", "30hz" (the period) */
	FRAG_PARAM_KIND_DURATION = 6,
	/* const char *; a relative path is resolved against the application's folder */
	FRAG_PARAM_KIND_PATH = 7,
	/* struct frag_resource *; `$name` in a graph */
	FRAG_PARAM_KIND_RESOURCE = 8,
	/* struct frag_i64_list */
	FRAG_PARAM_KIND_I64_LIST = 9,
	/* struct frag_f64_list */
	FRAG_PARAM_KIND_F64_LIST = 10,
	/* struct frag_string_list */
	FRAG_PARAM_KIND_STRING_LIST = 11,
	/* struct frag_condition *; `$name` in a graph */
	FRAG_PARAM_KIND_CONDITION = 12,
	/* struct frag_string_map; {key: text} in a graph */
	FRAG_PARAM_KIND_STRING_MAP = 13,
	/* const struct frag_tree *; lists and maps of any depth */
	FRAG_PARAM_KIND_TREE = 14,
};

/*
 * Values of lists and maps. The memory belongs to the graph and lives as long as the operator.
 * items is NULL when count is 0.
 */

/* A list of integers. */
struct frag_i64_list {
	/* [count] in the order of the graph */
	const int64_t *items;
	size_t count;
};
/* A list of numbers. */
struct frag_f64_list {
	/* [count] in the order of the graph */
	const double *items;
	size_t count;
};
/* A list of texts. */
struct frag_string_list {
	/* [count] in the order of the graph */
	const char *const *items;
	size_t count;
};
/* One entry of a map of texts. */
struct frag_string_entry {
	/* both end with a NUL */
	const char *key, *text;
};
/* A map of texts. */
struct frag_string_map {
	/* [count] in the order of the graph; no key appears twice */
	const struct frag_string_entry *items;
	size_t count;
};

/* The kind of a struct frag_tree. */
enum frag_tree_kind {
	/* a scalar, as it is written */
	FRAG_TREE_TEXT = 1,
	/* [a, b] */
	FRAG_TREE_LIST = 2,
	/* {key: a} */
	FRAG_TREE_MAP = 3,
};
/* A value as a graph writes it, of any depth up to 64. What its texts mean is the operator's. */
struct frag_tree {
	/* which of the members below are set */
	enum frag_tree_kind kind;
	/* of an entry of a map; NULL: an item of a list, or the whole value */
	const char *key;
	/* of a TEXT; "" where the graph writes nothing, ~ or null. NULL: a LIST or MAP */
	const char *text;
	/* of a LIST or MAP, in the order of the graph; no key appears twice in a map */
	const struct frag_tree *items;
	size_t count;
	/* in the text that it was read from, both from 1 */
	int line, column;
};

/*
 * Flags of a parameter:
 * - FRAG_PARAM_REQUIRED: it has no default, and a graph that does not set it is refused
 * - FRAG_PARAM_OPTIONAL: it may stay unset; a pointer is then NULL, a list or map empty
 * - FRAG_PARAM_DYNAMIC: it may be changed between two ticks while the application runs
 */
#define FRAG_PARAM_REQUIRED 1u
#define FRAG_PARAM_OPTIONAL 2u
#define FRAG_PARAM_DYNAMIC 4u

/* One parameter of an operator, a resource or a condition; FRAG_PARAM_... fill it in. */
struct frag_param {
	/* in graphs */
	const char *name;
	/* how a text becomes its value, and the type of the field */
	enum frag_param_kind kind;
	/* of the field in the state, in bytes */
	uint32_t offset;
	/* default of BOOL, I64, SIZE and DURATION */
	int64_t def_int;
	/* default of F64 */
	double def_float;
	/* default of STRING and PATH; of all other kinds the text that a graph would write */
	const char *def_text;
	/* one line for people; NULL: none */
	const char *headline;
	/* more lines for people; NULL: none */
	const char *description;
	/* FRAG_PARAM_... */
	uint32_t flags;
	/* allowed range of I64, F64, SIZE and DURATION, when min < max; both ends are allowed */
	double min, max;
	/* allowed texts of a STRING, ended by NULL; NULL: any text */
	const char *const *choices;
};

/* offsetof(T, field). It does not compile when the field has another type. */
#define FRAG_PARAM_OFFSET(T, field, type)                                                          \
	((uint32_t)offsetof(T, field) + FRAG_CHECK_PARAMETER(((T *)0)->field, type))

/*
 * Entries of a parameter table, for example
 *
 * 	FRAG_PARAM_F64(struct scale, factor, 2.0, .headline = "Factor", .flags = FRAG_PARAM_DYNAMIC)
 *
 * - T: type of the operator's state
 * - field: the field, which is also the name of the parameter
 * - then the default, and any further members of struct frag_param
 */
#define FRAG_PARAM_BOOL(T, field, ...)                                                             \
	{                                                                                          \
		.name = #field, .kind = FRAG_PARAM_KIND_BOOL,                                      \
		.offset = FRAG_PARAM_OFFSET(T, field, bool), .def_int = __VA_ARGS__                \
	}
#define FRAG_PARAM_I64(T, field, ...)                                                              \
	{                                                                                          \
		.name = #field, .kind = FRAG_PARAM_KIND_I64,                                       \
		.offset = FRAG_PARAM_OFFSET(T, field, int64_t), .def_int = __VA_ARGS__             \
	}
#define FRAG_PARAM_F64(T, field, ...)                                                              \
	{                                                                                          \
		.name = #field, .kind = FRAG_PARAM_KIND_F64,                                       \
		.offset = FRAG_PARAM_OFFSET(T, field, double), .def_float = __VA_ARGS__            \
	}
#define FRAG_PARAM_STRING(T, field, ...)                                                           \
	{                                                                                          \
		.name = #field, .kind = FRAG_PARAM_KIND_STRING,                                    \
		.offset = FRAG_PARAM_OFFSET(T, field, const char *), .def_text = __VA_ARGS__       \
	}
#define FRAG_PARAM_SIZE(T, field, ...)                                                             \
	{                                                                                          \
		.name = #field, .kind = FRAG_PARAM_KIND_SIZE,                                      \
		.offset = FRAG_PARAM_OFFSET(T, field, uint64_t), .def_int = __VA_ARGS__            \
	}
#define FRAG_PARAM_DURATION(T, field, ...)                                                         \
	{                                                                                          \
		.name = #field, .kind = FRAG_PARAM_KIND_DURATION,                                  \
		.offset = FRAG_PARAM_OFFSET(T, field, int64_t), .def_int = __VA_ARGS__             \
	}
#define FRAG_PARAM_PATH(T, field, ...)                                                             \
	{                                                                                          \
		.name = #field, .kind = FRAG_PARAM_KIND_PATH,                                      \
		.offset = FRAG_PARAM_OFFSET(T, field, const char *), .def_text = __VA_ARGS__       \
	}
/* The default of these kinds is the text that a graph would write, or NULL. */
#define FRAG_PARAM_RESOURCE(T, field, ...)                                                         \
	{                                                                                          \
		.name = #field, .kind = FRAG_PARAM_KIND_RESOURCE,                                  \
		.offset = FRAG_PARAM_OFFSET(T, field, struct frag_resource *),                     \
		.def_text = __VA_ARGS__                                                            \
	}
#define FRAG_PARAM_CONDITION(T, field, ...)                                                        \
	{                                                                                          \
		.name = #field, .kind = FRAG_PARAM_KIND_CONDITION,                                 \
		.offset = FRAG_PARAM_OFFSET(T, field, struct frag_condition *),                    \
		.def_text = __VA_ARGS__                                                            \
	}
#define FRAG_PARAM_I64_LIST(T, field, ...)                                                         \
	{                                                                                          \
		.name = #field, .kind = FRAG_PARAM_KIND_I64_LIST,                                  \
		.offset = FRAG_PARAM_OFFSET(T, field, struct frag_i64_list),                       \
		.def_text = __VA_ARGS__                                                            \
	}
#define FRAG_PARAM_F64_LIST(T, field, ...)                                                         \
	{                                                                                          \
		.name = #field, .kind = FRAG_PARAM_KIND_F64_LIST,                                  \
		.offset = FRAG_PARAM_OFFSET(T, field, struct frag_f64_list),                       \
		.def_text = __VA_ARGS__                                                            \
	}
#define FRAG_PARAM_STRING_LIST(T, field, ...)                                                      \
	{                                                                                          \
		.name = #field, .kind = FRAG_PARAM_KIND_STRING_LIST,                               \
		.offset = FRAG_PARAM_OFFSET(T, field, struct frag_string_list),                    \
		.def_text = __VA_ARGS__                                                            \
	}
#define FRAG_PARAM_STRING_MAP(T, field, ...)                                                       \
	{                                                                                          \
		.name = #field, .kind = FRAG_PARAM_KIND_STRING_MAP,                                \
		.offset = FRAG_PARAM_OFFSET(T, field, struct frag_string_map),                     \
		.def_text = __VA_ARGS__                                                            \
	}
#define FRAG_PARAM_TREE(T, field, ...)                                                             \
	{                                                                                          \
		.name = #field, .kind = FRAG_PARAM_KIND_TREE,                                      \
		.offset = FRAG_PARAM_OFFSET(T, field, const struct frag_tree *),                   \
		.def_text = __VA_ARGS__                                                            \
	}

FRAG_END_DECLS

#endif
