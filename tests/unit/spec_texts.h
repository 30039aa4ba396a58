/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_SPEC_TEXTS_H
#define TESTS_UNIT_SPEC_TEXTS_H

#include "unit/graph_texts.h"

/* Graphs that are read from their text, and what is wrong with them. */

#define HEAD "frag: 1\napplication: app\n"

/* The example of the schema, as its page gives it. */
static inline void read_example(struct fragi_source *source, const char *const *sets,
				size_t set_count, const char *const *args, size_t arg_count)
{
	struct frag_err err = FRAG_ERR_INIT;

	cr_assert_eq(fragi_source_read(source, "tests/data/endoscopy.yaml", NULL, 0, sets,
				       set_count, args, arg_count, &err),
		     0, "%s", err.text);
}

#endif
