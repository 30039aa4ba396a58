// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/alloc.h>
#include <base/stamp.h>
#include <graph/spec.h>

#include "unit/graph_texts.h"

/* The example of the schema, as its page gives it. */
static void read_example(struct fragi_source *source, const char *const *args, size_t count)
{
	struct frag_err err = FRAG_ERR_INIT;

	cr_assert_eq(fragi_source_read(source, "tests/data/endoscopy.yaml", NULL, 0, NULL, 0, args, count,
				       &err),
		     0, "%s", err.text);
}

Test(spec, the_example_has_exactly_the_listed_refusals)
{
	struct fragi_diag diag = {0};
	struct fragi_source source;
	struct fragi_spec *spec = NULL;

	read_example(&source, NULL, 0);
	cr_expect_eq(fragi_spec_parse(&source.source, &diag, &spec), -EINVAL);
	expect_errors(&diag, "tests/data/endoscopy.yaml:29:26: fragment1: on_failure policy restart is not "
			     "built yet; write stop\n");
	cr_expect_null(spec);
	fragi_source_fini(&source);
	fragi_diag_fini(&diag);
}
