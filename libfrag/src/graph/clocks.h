/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGI_GRAPH_CLOCKS_H
#define FRAGI_GRAPH_CLOCKS_H

#include <graph/op.h>
#include <text/spec.h>

/* Which clock a fragment has: what the graph says, else what composers have chosen. */

/* The fragment's own clock; NULL: it shares that of the application. */
FRAGI_API const struct fragi_clock_config *fragi_clock_own(const struct frag_fragment *fragment);
/*
 * The clock of the application; of the machine, where none is chosen.
 * - fragments: those of the process; NULL among them is accepted
 * Returns 0; -EINVAL, with an error: composers disagree.
 */
FRAGI_API int fragi_clock_shared(const struct fragi_spec *spec,
				 struct frag_fragment *const *fragments, size_t count,
				 struct fragi_diag *diag, struct fragi_clock_config *out_config);

#endif
