/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_TYPE_PARAMS_H
#define FRAGI_TYPE_PARAMS_H

#include <stdio.h>

#include <frag/compose.h>
#include <text/spec.h>

/*
 * Writes parameters into a state by its table: defaults first, then the settings in order (later
 * wins). Operators, resources and conditions all go through here, so a wrong text has one wording.
 * Texts and lists live in arena.
 */
#define FRAGI_PARAMS_MAX 1024u /* of one table */
struct fragi_param_table {
	const struct frag_param *items;
	uint32_t count;
	uint32_t item_size; /* as the plugin was compiled */
};

struct fragi_param_context {
	struct fragi_arena *arena;
	struct fragi_diag *diag;
	const char *subject; /* "fragment1.detect", for messages */
	/* of the subject, for what is missing; NULL: composed in C */
	const struct fragi_node *place;
	const char *app_folder; /* for PATH; NULL: as it is */
	void *arg;
	struct frag_resource *(*resource)(void *arg, const char *name); /* of `$name`; NULL: none */
	struct frag_condition *(*condition)(void *arg, const char *name);
	/*
	 * The i-th name that resource or condition knows, NULL beyond the last: for "did you mean".
	 * May be NULL.
	 */
	const char *(*name_at)(void *arg, enum frag_param_kind kind, size_t i);
};

/* Returns 0, or -EINVAL with every error (unknown, wrong type, out of range, missing) in diag. */
FRAGI_API int fragi_params_fill(const struct fragi_param_table *table,
				const struct fragi_spec_setting *settings, size_t count,
				void *state, const struct fragi_param_context *context);
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
/* The i-th entry, copied out of a table that may be older or newer than this libfrag. */
FRAGI_API struct frag_param fragi_param_at(const struct fragi_param_table *table, uint32_t i);
/* The settings that args (of C) stand for; they live in arena. */
FRAGI_API int fragi_settings_from_args(struct fragi_arena *arena, const struct frag_arg *args,
				       struct fragi_spec_setting **out_settings, size_t *out_count);
FRAGI_API const char *fragi_param_kind_name(enum frag_param_kind kind);

/* What a kind is called, what its field is, and how a person is told to write one. */
struct fragi_param_kind {
	const char *name;
	size_t size, align;
	const char *is_no; /* `"abc" is no ...` */
};
/* NULL: this libfrag does not know the kind. */
const struct fragi_param_kind *fragi_param_kind(enum frag_param_kind kind);

/*
 * The values of all parameters in a state, as YAML whose texts are quoted as in JSON: a line
 * "parameters:", then a line for each. Nothing when the table is empty.
 */
void fragi_params_describe(const struct frag_param *params, uint32_t count, const void *state,
			   const char *indent, FILE *out);

#endif
