/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_COMPOSE_H
#define FRAG_COMPOSE_H

#include <frag/operator.h>

FRAG_BEGIN_DECLS

/*
 * Composing a fragment in C: the same graph that a YAML file declares, made by a composer that a
 * plugin lists and a graph names (`compose: endoscopy_view`). All calls are made inside the
 * composer, on its thread. Names and texts are copied. Every function words its failure in the
 * fragment; a composer passes negative returns on.
 */

/*
 * One argument of an operator, resource or condition: a parameter's name and the text a graph would
 * write.
 */
struct frag_arg {
	const char *name;
	const char *text;
};

/*
 * An argument list: FRAG_ARGS({"count", "10"}, {"path", "a.mp4"}); FRAG_NO_ARGS for none. Later
 * ones win.
 */
#define FRAG_ARGS(...) ((const struct frag_arg[]){__VA_ARGS__, {NULL, NULL}})
#define FRAG_NO_ARGS NULL
/* An argument list, for people, as YAML. NULL when memory is short; free() it. Thread: any. */
FRAG_API char *frag_args_describe(const struct frag_arg *args);

/*
 * Makes an operator of a registered type. It is part of the graph once added. Returns NULL on
 * failure.
 */
FRAG_API struct frag_op *frag_make_operator(struct frag_fragment *fragment, const char *name,
					    const char *type, const struct frag_arg *args);
/* The same from a table that need not be registered; the table is borrowed. */
FRAG_API struct frag_op *frag_make_operator_of(struct frag_fragment *fragment, const char *name,
					       const struct frag_op_type *type,
					       const struct frag_arg *args);
/*
 * Adds an operator without flows. Twice does nothing. Returns 0 or a negative errno (op NULL:
 * -EINVAL).
 */
FRAG_API int frag_add_operator(struct frag_fragment *fragment, struct frag_op *op);
/*
 * Connects two ports and adds both operators. A port name may be NULL where there is exactly one.
 * The same pair twice does nothing. capacity 0 and FRAG_POLICY_DEFAULT: as the port declares.
 */
FRAG_API int frag_add_flow(struct frag_fragment *fragment, struct frag_op *from,
			   const char *out_port, struct frag_op *to, const char *in_port);
FRAG_API int frag_add_flow_with(struct frag_fragment *fragment, struct frag_op *from,
				const char *out_port, struct frag_op *to, const char *in_port,
				uint32_t capacity, enum frag_policy policy);

/* Makes a resource of a registered type. Returns NULL on failure. */
FRAG_API struct frag_resource *frag_make_resource(struct frag_fragment *fragment, const char *name,
						  const char *type, const struct frag_arg *args);
/* Adds a condition to an operator; name NULL: the type's name. Returns NULL on failure. */
FRAG_API struct frag_condition *frag_make_condition(struct frag_op *op, const char *name,
						    const char *type, const struct frag_arg *args);

/*
 * Words a failure of the composer's own: `return frag_fragment_fail(f, -EINVAL, "...")`. Returns
 * code.
 */
FRAG_API int frag_fragment_fail(struct frag_fragment *fragment, int code, const char *format, ...)
	FRAG_PRINTF(3, 4);
FRAG_API const char *frag_fragment_name(const struct frag_fragment *fragment);
/* The value of a declared argument, NULL when none of that name is declared. */
FRAG_API const char *frag_fragment_argument(const struct frag_fragment *fragment, const char *name);
/*
 * Text of the scalar at a dotted path in `config:` ("detection.threshold"), NULL when there is
 * none.
 */
FRAG_API const char *frag_fragment_config(const struct frag_fragment *fragment, const char *path);

/* A composer. Returns 0 or a negative errno. */
struct frag_composer {
	const char *name;
	const char *headline;
	int (*compose)(struct frag_fragment *fragment);
};

FRAG_END_DECLS

#endif
