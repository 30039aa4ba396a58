/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_TYPE_PARAMS_H
#define FRAGI_TYPE_PARAMS_H

#include <stdio.h>

#include <frag/compose.h>
#include <text/spec.h>

/*
 * Writes parameters into a state by its table: defaults first, then the settings in order (the
 * later one wins). Operators, resources and conditions all use this, so each error has one wording.
 * Texts and lists live in arena.
 */
#define FRAGI_PARAMS_MAX 1024u /* of one table */
struct fragi_param_table {
	const struct frag_param *items;
	uint32_t count;
	uint32_t item_size; /* as the plugin was compiled with */
};

struct fragi_param_context {
	struct fragi_arena *arena;
	struct fragi_diag *diag;
	const char *subject; /* "fragment1.detect", for messages */
	const char *what;    /* in messages; NULL: a parameter */
	/* of the subject, for errors about missing parameters; NULL: composed in C */
	const struct fragi_node *place;
	const char *app_folder; /* start of relative paths; NULL: they stay relative */
	void *arg;
	struct frag_resource *(*resource)(
		void *arg, const char *name); /* resolve `$name`; NULL: there are none */
	struct frag_condition *(*condition)(void *arg, const char *name);
	/*
	 * Returns the i-th name that resource or condition knows, NULL after the last, for "did you
	 * mean". May be NULL.
	 */
	const char *(*name_at)(void *arg, enum frag_param_kind kind, size_t i);
};

/* Returns 0, or -EINVAL with every error (unknown, wrong type, out of range, missing) in diag. */
FRAGI_API int fragi_params_fill(const struct fragi_param_table *table,
				const struct fragi_spec_setting *settings, size_t count,
				void *state, const struct fragi_param_context *context);
/* Writes one parameter and leaves the others as they are. Returns the same. */
int fragi_params_set(const struct fragi_param_table *table,
		     const struct fragi_spec_setting *setting, void *state,
		     const struct fragi_param_context *context);
/*
 * Checks a table against the state it writes into: names, kinds, offsets. Returns 0 or -EINVAL with
 * a sentence.
 */
FRAGI_API int fragi_params_check(const struct fragi_param_table *table, size_t state_size,
				 struct frag_err *err);
/*
 * The same, and copies the table into arena, in this libfrag's sizes: *out_params; NULL when it is
 * empty. Returns also -ENOMEM.
 */
int fragi_params_copy(struct fragi_arena *arena, const struct fragi_param_table *table,
		      size_t state_size, const struct frag_param **out_params,
		      struct frag_err *err);
/* Copies the i-th entry of a table that may be older or newer than this libfrag. */
FRAGI_API struct frag_param fragi_param_at(const struct fragi_param_table *table, uint32_t i);
/* Converts args (given in C) to settings, which live in arena. */
FRAGI_API int fragi_settings_from_args(struct fragi_arena *arena, const struct frag_arg *args,
				       struct fragi_spec_setting **out_settings, size_t *out_count);
FRAGI_API const char *fragi_param_kind_name(enum frag_param_kind kind);

/* A kind of parameter: its name, its field, and how its value is written. */
struct fragi_param_kind {
	const char *name;
	size_t size, align;
	const char *is_no; /* `"abc" is not a valid ...` */
};
/* NULL: this libfrag does not know the kind. */
const struct fragi_param_kind *fragi_param_kind(enum frag_param_kind kind);
/* Whether it may change while its operator runs: it is marked so and needs no memory of its own. */
FRAGI_API bool fragi_param_is_dynamic(const struct frag_param *param);

/*
 * Writes the value of one parameter as JSON: a resource or a condition as its name behind $, a
 * duration in nanoseconds, a size in bytes.
 */
FRAGI_API void fragi_param_write(const struct frag_param *param, const void *state, FILE *out);
/*
 * Prints the values of all parameters of a state as YAML, with values as in JSON: a line
 * "parameters:", then a line for each. Prints nothing when the table is empty.
 */
void fragi_params_describe(const struct frag_param *params, uint32_t count, const void *state,
			   const char *indent, FILE *out);

#endif
